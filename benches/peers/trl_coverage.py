"""Do the intervals of `niwaki advise` cover the truth on real GRPO runs of TRL? Needs torch and TRL (python/test-extras.sh).

    python benches/peers/trl_coverage.py [RUNS] [NIWAKI] > coverage.csv        (the summary goes to standard error)

Each run trains a tiny random model on the CPU (`num_iterations = 4`) with the recipe of docs/advise.md, taken out of the page: the last
use of each batch, with its group ("recipe"). Beside it the run writes what the page warns of, every use under its optimiser step and
without a group ("mixed"), and the truth: many fresh completions of the policy that drew each batch, scored by that policy and by the one
after the update. The same seeds then run once more with half of the prompts of each batch kept out of the update, as the recipe does
where it is told to ("kept out"). An interval covers where it holds the number of the fresh completions, or the mean of the other
runs' numbers (what batches that were updated on come to); a verdict is wrong where both decide and differ.
"""

import contextlib
import csv
import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import trl
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

ROOT = Path(__file__).resolve().parents[2]
WORDS = ["<pad>", "<eos>", "<unk>", *(f"w{index}" for index in range(29))]
NUMBERS = ["drift", "kl_k1", "kl_k3", "clip_fraction"]
FRESH, BATCH, GROUP, LENGTH, BATCHES = 1024, 64, 4, 8, 6


def tokenizer():
    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left")


def tiny():
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    ))


def frozen(model):
    """The policy as it is now. (Not a deep copy: what accelerate wraps around a model's forward pass goes on calling the model.)"""
    kept = LlamaForCausalLM(model.config)
    kept.load_state_dict(model.state_dict())
    return kept.eval()


def reward(completions, **_):
    return [float(text.split().count("w3") - text.split().count("w4")) + 0.01 * len(text.split()) for text in completions]


def recipe():
    """The page's class."""
    space = {}
    exec(re.search(r"```python trl\n(.*?)```", (ROOT / "docs/advise.md").read_text(), re.S).group(1), space)
    return space["Dumping"]


def scores(model, prompts, completions):
    logits = model(torch.cat([prompts, completions], dim=1)).logits[:, prompts.shape[1] - 1 : -1]
    return logits.log_softmax(-1).gather(-1, completions[..., None])[..., 0]


@torch.no_grad()
def fresh(old, new, words, prompts, noise):
    """Completions of the old policy in groups, with rewards as the run pays them, as lines of a dump."""
    chosen = [prompt for _ in range(FRESH // GROUP) for prompt in [noise.choice(prompts)] * GROUP]
    ids = torch.tensor([words(prompt)["input_ids"] for prompt in chosen])
    out, done = ids, torch.zeros(FRESH, dtype=torch.bool)
    masks = []
    for _ in range(LENGTH):
        drawn = torch.multinomial(old(out).logits[:, -1].softmax(-1), 1)[:, 0]
        masks.append(~done)
        drawn = torch.where(done, torch.zeros_like(drawn), drawn)
        done |= drawn == 1
        out = torch.cat([out, drawn[:, None]], dim=1)
    completions, mask = out[:, ids.shape[1] :], torch.stack(masks, 1)
    texts = words.batch_decode(torch.where(mask, completions, 0), skip_special_tokens=True)
    paid = torch.tensor(reward(texts)).view(-1, GROUP)
    advantages = ((paid - paid.mean(1, keepdim=True)) / (paid.std(1, keepdim=True) + 1e-4)).flatten().tolist()
    before, after = scores(old, ids, completions), scores(new, ids, completions)
    return [
        {"group": n // GROUP, "advantages": advantages[n], "completion_mask": mask[n].int().tolist(),
         "old_per_token_logps": before[n].tolist(), "per_token_logps": after[n].tolist()}
        for n in range(FRESH)
    ]


def run(seed, folder, kept):
    noise = random.Random(seed)
    prompts = [f"w{a} w{b}" for a in range(8) for b in range(8)]
    words = tokenizer()

    class Watched(recipe()):
        KEPT = kept

        def _compute_loss(self, model, inputs):
            use = self._step // self.args.steps_per_generation % self.num_iterations
            if use == 0:
                self.before = frozen(model)
            self._every_use(model, inputs)
            if use == self.num_iterations - 1:
                lines = fresh(self.before, frozen(model), words, prompts, noise)
                with open("truth.jsonl", "a") as out:
                    for line in lines:
                        place = {"iteration": self._step // self.num_iterations}
                        out.write(json.dumps(line | place | {"group": f"{self._step}-{line['group']}"}) + "\n")
            return super()._compute_loss(model, inputs)

        @torch.no_grad()
        def _every_use(self, model, inputs):
            ids, mask = inputs["completion_ids"], inputs["completion_mask"]
            new, *_ = self._get_per_token_logps_and_entropies(
                model, torch.cat([inputs["prompt_ids"], ids], 1), torch.cat([inputs["prompt_mask"], mask], 1), ids.size(1)
            )
            with open("mixed.jsonl", "a") as out:
                for n in range(len(ids)):
                    out.write(json.dumps({
                        "iteration": self._step, "advantages": inputs["advantages"][n].item(), "completion_mask": mask[n].tolist(),
                        "old_per_token_logps": inputs["old_per_token_logps"][n].tolist(), "per_token_logps": new[n].tolist(),
                    }) + "\n")

    args = trl.GRPOConfig(
        output_dir=str(folder), num_iterations=4, per_device_train_batch_size=BATCH, num_generations=GROUP, max_completion_length=LENGTH,
        max_steps=4 * BATCHES, learning_rate=4e-3, report_to=[], use_cpu=True, seed=seed, save_strategy="no", disable_tqdm=True,
        logging_strategy="no",
    )
    data = Dataset.from_list([{"prompt": prompt} for prompt in prompts])
    Watched(tiny(), reward_funcs=reward, args=args, train_dataset=data, processing_class=words).train()


def advise(niwaki, file):
    # The truth has more trajectories than a batch: what matters is still the noise of a batch of the run's.
    command = [niwaki, "advise", str(file), "--json", "--batch", str(BATCH)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found["verdict"]["action"]["kind"], {number["name"]: number for number in found["measured"]["numbers"]}


def judged(niwaki, seed, kept):
    """What each dump of a run says beside the truth: one row for each."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with contextlib.chdir(folder), contextlib.redirect_stdout(sys.stderr):
            run(seed, folder, kept)
        true_verdict, truth = advise(niwaki, folder / "truth.jsonl")
        for dump, file in [("kept out", "dump-0")] if kept else [("recipe", "dump-0"), ("mixed", "mixed")]:
            verdict, numbers = advise(niwaki, folder / f"{file}.jsonl")
            row = {"seed": seed, "dump": dump, "verdict": verdict, "true_verdict": true_verdict}
            for name in NUMBERS:
                row |= {f"{name}_{part}": numbers[name][part] for part in ("value", "low", "high")}
                row[f"{name}_truth"] = truth[name]["value"]
            yield row


def summary(rows):
    """Coverage of both truths and wrong verdicts of one kind of dump, in a line."""
    said = []
    for name in NUMBERS:
        inside = lambda row, truth: row[f"{name}_low"] <= truth <= row[f"{name}_high"]
        total = sum(row[f"{name}_value"] for row in rows)
        others = lambda row: (total - row[f"{name}_value"]) / max(len(rows) - 1, 1)
        fresh_ones, runs = sum(inside(row, row[f"{name}_truth"]) for row in rows), sum(inside(row, others(row)) for row in rows)
        said.append(f"{name} {fresh_ones} and {runs}")
    decided = [row for row in rows if "not-enough-data" not in (row["verdict"], row["true_verdict"])]
    wrong = sum(row["verdict"] != row["true_verdict"] for row in decided)
    return f"of {len(rows)} covered: {', '.join(said)}; of {len(decided)} verdicts that both decide, {wrong} wrong"


def main():
    runs, niwaki = int((sys.argv[1:] or ["40"])[0]), (sys.argv[2:] or ["niwaki"])[0]
    torch.set_num_threads(1)
    rows, table = [], None
    for kept, seed in itertools.product((0.0, 0.5), range(runs)):
        for row in judged(niwaki, seed, kept):
            if table is None:
                table = csv.DictWriter(sys.stdout, row)
                table.writeheader()
            table.writerow(row)
            rows.append(row)
        sys.stdout.flush()
    for dump in ("recipe", "mixed", "kept out"):
        print(f"{dump}: {summary([row for row in rows if row['dump'] == dump])}", file=sys.stderr)


if __name__ == "__main__":
    main()

"""Do the intervals of `niwaki advise` cover the truth on real GRPO runs of TRL? Needs torch and TRL (python/test-extras.sh).

    python benches/peers/trl_coverage.py [RUNS] [NIWAKI] > coverage.json

Each run trains a tiny random model on the CPU (`num_iterations = 4`) with the recipe of docs/advise.md, taken out of the page: the last
use of each batch, with its group. Beside it the run writes what the page warns of, every use under its optimiser step and without
a group, and the truth: many fresh completions of the policy that drew each batch, scored by that policy and by the one after the
update. An interval covers where it holds the number of the fresh completions; a verdict is wrong where both decide and differ.
"""

import copy
import json
import os
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
FRESH, GROUP, LENGTH, BATCHES = 1024, 4, 8, 6


def tokenizer():
    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left")


def tiny(seed):
    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    ))


def reward(completions, **_):
    return [float(text.split().count("w3") - text.split().count("w4")) + 0.01 * len(text.split()) for text in completions]


def recipe():
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


def run(seed, folder):
    noise = random.Random(seed)
    prompts = [f"w{a} w{b}" for a in range(8) for b in range(8)]
    words = tokenizer()

    class Watched(recipe()):
        def _compute_loss(self, model, inputs):
            use = self._step // self.args.steps_per_generation % self.num_iterations
            if use == 0:
                self.before = copy.deepcopy(model).eval()
            self._every_use(model, inputs)
            if use == self.num_iterations - 1:
                lines = fresh(self.before, copy.deepcopy(model).eval(), words, prompts, noise)
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
        output_dir=str(folder), num_iterations=4, per_device_train_batch_size=64, num_generations=GROUP, max_completion_length=LENGTH,
        max_steps=4 * BATCHES, learning_rate=4e-3, report_to=[], use_cpu=True, seed=seed, save_strategy="no", disable_tqdm=True,
        logging_strategy="no",
    )
    data = Dataset.from_list([{"prompt": prompt} for prompt in prompts])
    os.chdir(folder)
    Watched(tiny(0), reward_funcs=reward, args=args, train_dataset=data, processing_class=words).train()


def advise(niwaki, file):
    said = subprocess.run([niwaki, "advise", str(file), "--json"], capture_output=True, text=True, check=True).stdout
    found = json.loads(said)
    return found["verdict"]["action"]["kind"], {number["name"]: number for number in found["measured"]["numbers"]}


def main():
    runs, niwaki = int((sys.argv[1:] or ["40"])[0]), (sys.argv[2:] or ["niwaki"])[0]
    torch.set_num_threads(1)
    rows = []
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            run(seed, Path(folder))
            os.chdir(here)
            truth = advise(niwaki, Path(folder) / "truth.jsonl")
            row = {"seed": seed, "truth": {"verdict": truth[0]} | {name: truth[1][name]["value"] for name in NUMBERS}}
            for name, file in (("recipe", "dump-0.jsonl"), ("mixed", "mixed.jsonl")):
                verdict, numbers = advise(niwaki, Path(folder) / file)
                ends = {key: (numbers[key]["value"], numbers[key]["low"], numbers[key]["high"]) for key in NUMBERS}
                row[name] = {"verdict": verdict} | ends
            rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    open_ = "not-enough-data"
    summary = {}
    for way in ("recipe", "mixed"):
        covers = {
            key: sum(row[way][key][1] <= row["truth"][key] <= row[way][key][2] for row in rows) / len(rows) for key in NUMBERS
        }
        decided = [row for row in rows if open_ not in (row[way]["verdict"], row["truth"]["verdict"])]
        wrong = sum(row[way]["verdict"] != row["truth"]["verdict"] for row in decided)
        summary[way] = {"covers": covers, "decided": len(decided), "wrong": wrong}
    json.dump({"runs": rows, "summary": summary}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()

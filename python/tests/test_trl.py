"""niwaki.trl against TRL's real GRPOTrainer, on the CPU with a tiny model built here."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
trl = pytest.importorskip("trl", reason="trl is not installed; python/test-extras.sh runs this")

from datasets import Dataset  # noqa: E402
from niwaki.advise import Advisor, advise  # noqa: E402
from niwaki.trl import AdviseCallback, GRPOTrainer  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402

WORDS = ["<pad>", "<eos>", "<unk>", *(f"w{index}" for index in range(29))]


def tokenizer():
    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left")


def model(folder):
    """Read back from a folder, where TRL looks for the reference of a KL."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder / "model")
    return LlamaForCausalLM.from_pretrained(folder / "model")


def reward(completions, **_):
    return [float(text.split().count("w3") - text.split().count("w4")) + 0.01 * len(text.split()) for text in completions]


def train(kind, folder, steps=6, losses=None, callback=False, **extra):
    settings = {name: extra.pop(name) for name in list(extra) if name in trl.GRPOConfig.__dataclass_fields__}
    args = trl.GRPOConfig(
        **{"num_iterations": 3, "loss_type": "grpo"} | settings,
        output_dir=str(folder), per_device_train_batch_size=8, num_generations=4, max_completion_length=8,
        max_steps=steps, learning_rate=3e-2, logging_steps=1, report_to=[], use_cpu=True, seed=3, save_strategy="no",
        disable_tqdm=True, temperature=1.0,
    )

    class Recorded(kind):
        def compute_loss(self, *arguments, **keywords):
            loss = super().compute_loss(*arguments, **keywords)
            losses.append(loss.item())
            return loss

    losses = [] if losses is None else losses
    data = Dataset.from_list([{"prompt": f"w{index} w{index + 1}"} for index in range(12)])
    trainer = Recorded(model(folder), reward_funcs=reward, args=args, train_dataset=data, processing_class=tokenizer(), **extra)
    watching = AdviseCallback(folder, **callback if isinstance(callback, dict) else {}) if callback else None
    if watching is not None:
        trainer.add_callback(watching)
    trainer.train()
    weights = torch.cat([part.detach().flatten() for part in trainer.model.parameters()])
    return losses, weights, trainer, watching


SETTINGS = [
    {}, {"beta": 0.1, "loss_type": "dapo"}, {"loss_type": "bnpo"}, {"loss_type": "dr_grpo", "delta": 1.5}, {"loss_type": "luspo"},
    {"loss_type": "sapo"}, {"loss_type": "cispo", "epsilon_high": 1.2}, {"off_policy_mask_threshold": 0.001},
    {"beta": 0.1, "use_bias_correction_kl": True, "top_entropy_quantile": 0.5},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(map(str, settings.values())) or "grpo")
def test_no_correction_is_trls_own_grpo(tmp_path, settings):
    own, weights, _, _ = train(trl.GRPOTrainer, tmp_path, **settings)
    ours, same, _, _ = train(GRPOTrainer, tmp_path, correction="tempered:0", **settings)
    assert len(own) == 6 and np.ptp(own) > 1e-3
    np.testing.assert_allclose(ours, own, rtol=0, atol=1e-6)
    torch.testing.assert_close(same, weights, rtol=0, atol=1e-6)


def test_a_correction_changes_reused_batches_and_trains(tmp_path):
    plain, _, _, _ = train(trl.GRPOTrainer, tmp_path)
    losses, weights, trainer, _ = train(GRPOTrainer, tmp_path, correction="tempered:0.1")
    # The first pass over a batch has ratios of one; from then on the routed channel has moved the weights.
    assert losses[0] == pytest.approx(plain[0], abs=1e-6)
    assert max(abs(a - b) for a, b in zip(losses[1:3], plain[1:3])) > 1e-6
    assert torch.isfinite(weights).all() and trainer.state.global_step == 6


def test_stale_sequences_are_masked_by_their_own_ratios(tmp_path):
    seen = []

    class Watched(GRPOTrainer):
        """What the mask compares, beside what it would without a correction."""

        def _get_per_token_logps_and_entropies(self, *args, **kwargs):
            self.plain = trl.GRPOTrainer._get_per_token_logps_and_entropies(self, *args, **kwargs)[0].detach()
            return super()._get_per_token_logps_and_entropies(*args, **kwargs)

        def get_off_policy_mask(self, *, per_token_logps, sampling_per_token_logps, mask, **rest):
            seen.append(((sampling_per_token_logps - per_token_logps).detach() * mask, (self.old - self.plain) * mask))
            return trl.GRPOTrainer.get_off_policy_mask(
                per_token_logps=per_token_logps, sampling_per_token_logps=sampling_per_token_logps, mask=mask, **rest
            )

        def _compute_loss(self, model, inputs):
            self.old = inputs["old_per_token_logps"]
            return super()._compute_loss(model, inputs)

    train(Watched, tmp_path, correction="tempered:0.5", off_policy_mask_threshold=0.001)
    assert len(seen) == 6 and any(theirs.abs().max() > 1e-3 for _, theirs in seen)
    for found, theirs in seen:
        torch.testing.assert_close(found, theirs, rtol=0, atol=1e-5)


def test_the_warmup_reuses_more_and_hands_over(tmp_path):
    seen = []

    class Watched(GRPOTrainer):
        def _generate_and_score_completions(self, inputs):
            seen.append(self.state.global_step)
            return super()._generate_and_score_completions(inputs)

    _, _, trainer, _ = train(
        Watched, tmp_path, steps=10, num_iterations=2, correction="tempered:0.1", warmup_iterations=2, warmup_reuse=3
    )
    # Two generations of three passes, then every two.
    assert seen == [0, 3, 6, 8] and not trainer.corrected


def dumped(folder):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    return [row for file in sorted(folder.glob("dump-*.parquet")) for row in parquet.read_table(file).to_pylist()]


def test_the_callback_says_what_the_command_says(tmp_path):
    _, _, trainer, watching = train(GRPOTrainer, tmp_path, correction="tempered:0.1", callback=True)
    rows = dumped(tmp_path)
    # Six steps, three passes each: two batches of eight, each dumped once.
    assert len(rows) == 16 and {row["iteration"] for row in rows} == {0, 1}
    # Two prompts a batch, whose completions TRL has shuffled: advantages are relative to those of their own prompt.
    groups = {}
    for row in rows:
        groups.setdefault((row["iteration"], row["group"]), []).append(row["advantage"])
    assert [len(group) for group in groups.values()] == [4, 4, 4, 4]
    assert all(abs(sum(group)) < 1e-4 for group in groups.values()) and any(any(group) for group in groups.values())
    live = watching.advice
    logged = [logs for logs in trainer.state.log_history if "niwaki/drift" in logs]
    assert live["drift"] > 0 and logged and all(sum(key.startswith("niwaki/") for key in logs) <= 12 for logs in logged)
    if shutil.which("niwaki") is None:
        pytest.skip("the command is not installed; python/test-extras.sh runs this")
    said = subprocess.run(
        ["niwaki", "advise", *map(str, tmp_path.glob("dump-*.parquet")), "--format", "json"], check=True, capture_output=True, text=True
    )
    for entry in json.loads(said.stdout)["measured"]["numbers"]:
        if entry["value"] is not None:
            # A dump's log-probs are rounded to a millionth.
            assert live[entry["name"]] == pytest.approx(entry["value"], rel=1e-3, abs=1e-6), entry["name"]


def test_the_callback_takes_the_samplers_log_probs(tmp_path):
    class Sampled(GRPOTrainer):
        """What vLLM's log-probs look like: a little beside the trainer's, and none for a token that was not scored."""

        def _generate_and_score_completions(self, inputs):
            found = super()._generate_and_score_completions(inputs)
            found["sampling_per_token_logps"] = found["old_per_token_logps"] - 0.25
            found["sampling_per_token_logps"][0, 0] = float("nan")
            return found

    _, _, _, watching = train(Sampled, tmp_path, correction="tempered:0.1", callback=True)
    rows = dumped(tmp_path)
    apart = [old - engine for row in rows for old, engine in zip(row["old_log_prob"], row["behaviour_log_prob"])]
    assert sum(np.isnan(apart)) == 2 and np.nanmax(np.abs(np.array(apart) - 0.25)) < 2e-6
    # KL of the sampler from the old policy, by verl's name: the mean of log-probs of the sampler less the old ones.
    assert watching.advice.verl["rollout_corr/kl"] == pytest.approx(-0.25, abs=1e-6)


PROCESS = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_trl
from niwaki.trl import GRPOTrainer
folder = Path(sys.argv[2])
test_trl.model = lambda folder: test_trl.LlamaForCausalLM.from_pretrained(folder / "model")
settings = {"callback": {"dumps": sys.argv[3] == "dumps", "alarms": ["drift>0"]}, "correction": "tempered:0.1"}
_, _, trainer, watching = test_trl.train(GRPOTrainer, folder, **settings)
found = watching.advice.to_dict()
logged = [logs["niwaki/drift"] for logs in trainer.state.log_history if "niwaki/drift" in logs]
(folder / f"said-{trainer.accelerator.process_index}.json").write_text(json.dumps([found["numbers"], found["facts"], logged]))
"""


def two_processes(folder, kind):
    # Of several processes the first alone would write it.
    model(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    together = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROCESS, str(Path(__file__).parent), str(folder), kind]
    ranks = [
        subprocess.Popen(command, env=os.environ | together | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    said = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said
    return said, [json.loads((folder / f"said-{rank}.json").read_text()) for rank in (0, 1)]


def plain(numbers):
    return {name: (number.value, number.low, number.high) for name, number in numbers.items() if np.isfinite(number.value)}


@pytest.mark.parametrize("kind", ["dumps", "tallies"])
def test_two_processes_measure_the_whole_batch(tmp_path, kind):
    said, (first, second) = two_processes(tmp_path, kind)
    assert json.dumps(first) == json.dumps(second)
    numbers, facts, logged = first
    # Eight completions each: of 16, two prompts of four and parts of more lie on either.
    assert facts["trajectories"] == 32 and facts["ranks"] == {"seen": [0, 1], "world": 2} and facts["batch"] == 16
    files = sorted(tmp_path.glob("dump-*.parquet" if kind == "dumps" else "generation-*.tally"))
    assert len(files) == (4 if kind == "dumps" else 2)
    whole = plain((advise(files, batch=16) if kind == "dumps" else advise(files)).numbers)
    live = {name: (one["value"], one["low"], one["high"]) for name, one in numbers.items() if np.isfinite(one["value"])}
    if kind == "tallies":
        assert live == whole
    else:
        assert live.keys() == whole.keys()
        for name, ends in live.items():
            for one, other in zip(ends, whole[name]):
                assert one == other or one == pytest.approx(other, rel=1e-2, abs=1e-6), name
    # Once for each generation, and that one's.
    alone = [Advisor(batch=16), Advisor(batch=16)]
    if kind == "dumps":
        for row in dumped(tmp_path):
            one = {"logprobs": [row["new_log_prob"]], "old_logprobs": [row["old_log_prob"]], "advantages": [row["advantage"]]}
            alone[row["iteration"]].update(**one, group=[row["group"]], iteration=row["iteration"])
        assert logged == pytest.approx([one.advice()["drift"] for one in alone], rel=1e-3)
    assert said[0].count("alarm: drift > 0") == 1 and "verdict: " in said[0] and "verdict: " not in said[1]


def test_a_callback_on_another_trainer_says_that_it_saw_nothing(tmp_path):
    with pytest.warns(UserWarning, match="AdviseCallback saw no batch"):
        train(trl.GRPOTrainer, tmp_path, steps=1, callback=True)


def test_settings_that_do_not_go_together_are_refused(tmp_path):
    for extra, word in (
        ({"correction": "gspo"}, "correction 'gspo'"),
        ({"correction": "tempered:0.1", "warmup_reuse": 0}, "warmup_reuse is 0"),
        ({"correction": "tempered:0.1", "loss_type": "vespo"}, "loss_type is 'vespo': its weights are of whole sequences"),
        ({"correction": "tempered:0.1", "importance_sampling_level": "sequence"}, "importance_sampling_level must be 'token'"),
    ):
        with pytest.raises(ValueError, match=word):
            train(GRPOTrainer, tmp_path, **extra)

"""The recipes of docs/advise.md, taken out of the page and run: TRL's in its real trainer, verl's on its real nested tensors.

verl's trainer needs a GPU, an engine and its queue; the test stands in for these and holds every name that the recipe uses to the
installed source.
"""

import ast
import importlib.util
import json
import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/advise.md"
ADVICE = ROOT / "crates/niwaki-advise/src/verdict/trainers.rs"


def recipe(name):
    return re.search(rf"```python {name}\n(.*?)```", PAGE.read_text(), re.S).group(1)


@pytest.mark.parametrize("kept", [0.0, 1.0])
def test_trls_recipe_writes_the_last_use_of_each_batch(tmp_path, monkeypatch, kept):
    pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
    trl = pytest.importorskip("trl", reason="trl is not installed; python/test-extras.sh runs this")
    import test_trl
    from datasets import Dataset

    space = {}
    exec(recipe("trl"), space)
    space["Dumping"].KEPT = kept
    monkeypatch.chdir(tmp_path)
    args = trl.GRPOConfig(
        output_dir=str(tmp_path), num_iterations=4, per_device_train_batch_size=8, num_generations=4, max_completion_length=8,
        max_steps=16, learning_rate=3e-2, logging_steps=1, report_to=[], use_cpu=True, seed=3, save_strategy="no", disable_tqdm=True,
        eval_strategy="steps", eval_steps=5, per_device_eval_batch_size=8,
    )
    data = Dataset.from_list([{"prompt": f"w{index} w{index + 1}"} for index in range(12)])
    trainer = space["Dumping"](
        test_trl.model(tmp_path), reward_funcs=test_trl.reward, args=args, train_dataset=data, eval_dataset=data.select(range(2)),
        processing_class=test_trl.tokenizer(),
    )
    trainer.train()
    rows = [json.loads(line) for line in (tmp_path / "dump-0.jsonl").read_text().splitlines()]
    # Sixteen steps with four uses each: four batches of eight completions, two prompts each, at their last use.
    assert len(rows) == 32 and {row["use"] for row in rows} == {3} and {row["iteration"] for row in rows} == {0, 1, 2, 3}
    groups = {}
    for row in rows:
        groups.setdefault((row["iteration"], row["group"]), []).append(row["advantages"])
    assert len(groups) == 8 and all(len(group) == 4 and abs(sum(group)) < 1e-4 for group in groups.values())
    moved = [abs(new - old) for row in rows for old, new, own in
             zip(row["old_per_token_logps"], row["per_token_logps"], row["completion_mask"]) if own]
    # What is kept out of the update does not move the policy, and is dumped with its advantages.
    assert max(moved) > 1e-3 if kept == 0.0 else max(moved) < 1e-6
    assert any(row["advantages"] for row in rows)


def test_verls_recipe_writes_what_advise_reads(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
    pytest.importorskip("verl", reason="verl is not installed; python/test-extras.sh runs this")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed; python/test-extras.sh runs this")
    nested = lambda rows: torch.nested.as_nested_tensor([torch.tensor(row) for row in rows], layout=torch.jagged)
    responses = [[-0.5, -1.5], [-1.0]]
    fields = {
        "uid": types.SimpleNamespace(tolist=lambda: ["a", "b"]),
        "response_mask": nested([[1, 1], [1]]),
        "old_log_probs": nested(responses), "rollout_log_probs": nested(responses),
        "advantages": nested([[1.0, 1.0], [-1.0]]), "rm_scores": nested([[0.0, 1.0], [0.0]]),
        # As the engine gives them: prompt and response, shifted by one token. The prompts have two and three tokens.
        "log_probs": nested([[9.0, -0.6, -1.4, 9.0], [9.0, 9.0, -1.1, 9.0]]),
    }
    queue = types.ModuleType("transfer_queue")
    queue.kv_batch_get = lambda keys, partition_id, select_fields: {name: fields[name] for name in select_fields}
    base = types.ModuleType("verl.trainer.ppo.v1.trainer_base")

    class Own:
        def _update_actor(self, batch, metrics):
            metrics["updated"] = True
            return batch

    base.get_trainer_cls = lambda name: {"sync": Own}[name]
    base.register_trainer = lambda name: lambda kind: kind
    monkeypatch.setitem(sys.modules, "transfer_queue", queue)
    monkeypatch.setitem(sys.modules, "verl.trainer.ppo.v1.trainer_base", base)
    monkeypatch.setitem(sys.modules, "verl.trainer.ppo.v1", types.ModuleType("verl.trainer.ppo.v1"))
    monkeypatch.chdir(tmp_path)
    space = {}
    exec(recipe("verl"), space)
    trainer = space["Dumping"]()
    scored, metrics = [], {}
    trainer.global_steps = 3
    trainer.config = types.SimpleNamespace(actor_rollout_ref=types.SimpleNamespace(rollout=types.SimpleNamespace(temperature=0.7)))
    trainer.actor_rollout_wg = types.SimpleNamespace(compute_log_prob=scored.append)
    batch = types.SimpleNamespace(keys=["x", "y"], partition_id="train", extra_info={})
    assert trainer._update_actor(batch, metrics) is batch and metrics == {"updated": True} and scored == [batch]
    rows = parquet.read_table(tmp_path / "dump-00003.parquet").to_pylist()
    assert [row["uid"] for row in rows] == ["a", "b"] and rows[0]["iteration"] == 3
    assert [[round(value, 6) for value in row["log_probs"]] for row in rows] == [[-0.6, -1.4], [-1.1]]
    assert rows[0]["token_level_scores"] == [0.0, 1.0]


def test_verls_recipe_uses_names_that_verl_has():
    found = importlib.util.find_spec("verl")
    if found is None:
        pytest.skip("verl is not installed; python/test-extras.sh runs this")
    folder = Path(found.submodule_search_locations[0])
    source = (folder / "trainer/ppo/v1/trainer_base.py").read_text()
    functions = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    assert {"_update_actor", "_compute_old_log_prob", "get_trainer_cls", "register_trainer"} <= functions
    assert "self.actor_rollout_wg.compute_log_prob(batch)" in source and "self.global_steps" in source
    assert "import transfer_queue as tq" in source and "response_from_nested(data.pop(\"log_probs\")" in source
    for field in ("uid", "response_mask", "old_log_probs", "rollout_log_probs", "advantages", "rm_scores"):
        assert f'"{field}"' in source
    assert '@register_trainer("sync")' in (folder / "trainer/ppo/v1/trainer_sync.py").read_text()


def test_what_the_verdict_tells_to_set_exists():
    named = set(re.findall(r"`([a-z_.]+)`", ADVICE.read_text()))
    trl = importlib.util.find_spec("trl")
    verl = importlib.util.find_spec("verl")
    if trl is None or verl is None:
        pytest.skip("trl and verl are not installed; python/test-extras.sh runs this")
    config = (Path(trl.submodule_search_locations[0]) / "trainer/grpo_config.py").read_text()
    yaml = "".join(file.read_text() for file in (Path(verl.submodule_search_locations[0]) / "trainer/config").rglob("*.yaml"))
    # Names of the loss, and keys of our own specs.
    own = (ROOT / "crates/niwaki-train/src/spec/fields.rs").read_text()
    known = {"vanilla"} | {name for name in named if f'"{name}"' in own}
    for name in named - known:
        last = name.rsplit(".", 1)[-1]
        assert re.search(rf"\b{last}\b", config) or re.search(rf"\b{last}:", yaml), name

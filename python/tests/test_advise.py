"""niwaki.advise: arrays, lists, frames and files give the command's numbers."""

import json
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from niwaki.advise import Advisor, Monitor, advise

ROOT = Path(__file__).resolve().parents[2]
WIN = ROOT / "examples" / "advise" / "win.jsonl"


def records():
    return [json.loads(line) for line in WIN.read_text().splitlines()]


def as_update(rows):
    found = {"logprobs": [np.array(row["new_log_prob"]) for row in rows]}
    found["old_logprobs"] = [np.array(row["old_log_prob"]) for row in rows]
    many = isinstance(rows[0].get("advantage"), list)
    if "advantage" in rows[0]:
        found["advantages"] = [np.array(row["advantage"]) for row in rows] if many else [row["advantage"] for row in rows]
    if "reward" in rows[0]:
        found["rewards"] = [float(np.sum(row["reward"])) for row in rows]
    if "mask" in rows[0]:
        found["mask"] = [np.array(row["mask"]) for row in rows]
    if "group" in rows[0]:
        found["group"] = [row["group"] for row in rows]
    if "iteration" in rows[0]:
        found["iteration"] = [row["iteration"] for row in rows]
    return found


def test_arrays_equal_the_file():
    of_file = advise(WIN)
    of_arrays = advise(as_update(records()))
    assert of_arrays.to_dict() == of_file.to_dict()
    assert str(of_file) and of_file.says in of_file._repr_html_()


def test_a_live_run_equals_the_file():
    rows = records()
    advisor = Advisor()
    # In the order of the file, so that every sum is taken alike.
    for start in range(0, len(rows), 100):
        advisor.update(**as_update(rows[start : start + 100]))
    live, whole = advisor.advice(), advise(WIN)
    assert live.action == whole.action and live.facts == whole.facts
    for name, number in whole.numbers.items():
        assert live[name] == pytest.approx(number.value, rel=1e-12, nan_ok=True), name


@pytest.mark.skipif(shutil.which("niwaki") is None, reason="the command is not installed; python/test.sh runs this")
def test_equals_the_command():
    said = subprocess.run(["niwaki", "advise", str(WIN), "--format", "json"], check=True, capture_output=True, text=True)
    command = json.loads(said.stdout)
    found = advise(WIN)
    assert found.says == command["verdict"]["says"] and list(found.because) == command["verdict"]["because"]
    assert {name: number.value for name, number in found.numbers.items() if np.isfinite(number.value)} == {
        entry["name"]: entry["value"] for entry in command["measured"]["numbers"] if entry["value"] is not None
    }


def test_padded_equals_lists():
    rng = np.random.default_rng(1)
    old = -rng.exponential(size=(40, 6)) - 0.5
    new = old + rng.normal(scale=0.1, size=old.shape)
    advantages = rng.normal(size=40)
    mask = np.arange(6) < rng.integers(1, 7, size=40)[:, None]
    cut = lambda values: [row[own] for row, own in zip(values, mask)]
    padded, lists = Advisor(), Advisor()
    padded.update(new, old, advantages, mask=mask)
    lists.update(cut(new), cut(old), advantages)
    assert padded.advice().to_dict() == lists.advice().to_dict()


def test_logging_helpers_only_format():
    found = advise(WIN)
    logged = found.to_log("run/")
    assert logged["run/drift"] == found["drift"] and all(np.isfinite(value) for value in logged.values())

    class Writer:
        said: dict = {}

        def add_scalar(self, name, value, step):
            self.said[name] = (value, step)

        def add_text(self, name, value, step):
            self.said[name] = (value, step)

    found.to_tensorboard(Writer(), 7)
    assert Writer.said["niwaki/drift"] == (found["drift"], 7) and Writer.said["niwaki/verdict"] == (found.says, 7)
    json.dumps(found.to_dict())


def test_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed; python/test-extras.sh runs this")
    found = advise(pandas.DataFrame(records()))
    assert found.to_dict() == advise(WIN).to_dict()
    assert list(found.to_pandas()["name"]) == list(found.numbers)
    assert len(found.to_pandas("iterations")) == found.facts["iterations"]


def refusal(**changes):
    old = np.full((4, 3), -1.0)
    arguments = {"logprobs": old, "old_logprobs": old, "advantages": np.ones(4)} | changes
    with pytest.raises((TypeError, ValueError)) as caught:
        Advisor().update(**arguments)
    return f"{caught.type.__name__}: {caught.value}"


def test_refusals_name_the_argument():
    wrong = np.full((4, 3), -1.0)
    wrong[2, 1] = np.nan
    positive = np.full((4, 3), -1.0)
    positive[1, 0] = 0.5
    assert refusal(logprobs=wrong).startswith("ValueError: trajectory 2: logprobs[1] is NaN")
    assert "trajectory 1: old_logprobs[0]" in refusal(old_logprobs=positive)
    assert refusal(logprobs=np.zeros((0, 3))).startswith("ValueError: logprobs is empty")
    assert refusal(old_logprobs=np.zeros((4, 2))).startswith("ValueError: old_logprobs has shape (4, 2)")
    assert refusal(advantages=None) == "ValueError: advantages and rewards are both missing; give one of them"
    assert refusal(group=[1]).startswith("ValueError: group has 1 values")
    assert refusal(rewards=[1.0]).startswith("ValueError: rewards has shape (1,)")
    assert refusal(mask=np.full((4, 3), 2)).startswith("TypeError: mask holds other values")
    assert refusal(mask=np.zeros((4, 3), bool)) == "ValueError: mask leaves no step of the policy in the batch"
    assert refusal(logprobs=np.full(3, -1.0)).startswith("ValueError: logprobs has shape (3,)")
    with pytest.raises(ValueError, match="ess_floor is 2"):
        Advisor(ess_floor=2)
    with pytest.raises(ValueError, match="nothing was added yet"):
        Advisor().advice()
    with pytest.raises(OSError, match="no-such-file"):
        advise("no-such-file.jsonl")


def test_a_refused_batch_changes_nothing():
    advisor = Advisor()
    good = np.full((4, 3), -1.0)
    advisor.update(good, good - 0.1, np.ones(4))
    before = advisor.advice().to_dict()
    with pytest.raises(ValueError):
        advisor.update(good + 2, good, np.ones(4))
    assert advisor.advice().to_dict() == before


def test_groups_beyond_floats_stay_apart():
    old = np.full((8, 2), -1.0)
    new = old - np.linspace(0.1, 0.3, 16).reshape(8, 2)
    advantages = [1.0, -1.0] * 4
    names = [2**53 + lane // 2 for lane in range(8)]
    for groups in (names, np.array(names), [str(name) for name in names]):
        advisor = Advisor()
        advisor.update(new, old, advantages, group=groups)
        assert advisor.advice().facts["groups"] == 4
    with pytest.raises(ValueError, match="group holds"):
        Advisor().update(new, old, advantages, group=[float(name) for name in names])


def test_one_advisor_serves_many_threads():
    old = np.full((64, 16), -1.0)
    advisor = Advisor()

    def add():
        for _ in range(8):
            advisor.update(old - 0.1, old, [1.0, -1.0] * 32)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert advisor.advice().facts["trajectories"] == 4 * 8 * 64


def test_a_monitor_shows_the_newest_iteration_and_not_the_mean_of_all():
    rng = np.random.default_rng(3)
    monitor, alone = Monitor(), {}
    assert monitor.to_log() == {} and monitor.changed() is None
    for iteration, scale in enumerate([0.5, 0.2, 0.05]):
        old = -rng.exponential(size=(64, 8)) - 0.5
        new = np.minimum(old + rng.normal(scale=scale, size=old.shape), 0.0)
        worth = rng.normal(size=64)
        # A batch comes in two parts.
        for part in (slice(0, 32), slice(32, 64)):
            monitor.update(new[part], old[part], worth[part], iteration=iteration)
        single = Advisor()
        single.update(new, old, worth, iteration=iteration)
        alone[iteration] = single.advice()["drift"]
        logged = monitor.to_log()
        assert len(logged) <= 12 and logged["niwaki/drift"] == pytest.approx(alone[iteration], rel=1e-9)
        assert logged["niwaki/drift_low"] <= logged["niwaki/drift"] <= logged["niwaki/drift_high"]
    assert alone[2] < monitor.to_log()["niwaki/drift_smooth"] < alone[0] and monitor.advice["drift"] > 2 * alone[2]
    assert monitor.changed() == monitor.recent.says == monitor.advice.says and monitor.changed() is None
    assert logged["niwaki/drift_smooth_low"] < logged["niwaki/drift_smooth"] < logged["niwaki/drift_smooth_high"]

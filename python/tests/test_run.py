"""niwaki.Run: the folder of a run written from Python is one that the Rust half reads, resumes and shows."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
from niwaki.run import Run, episodes


def open_run(folder, **more):
    return Run(folder, **({"task": "coin", "iterations": 6, "seed": 3, "loss": "ppo", "reuse": 4, "rate": 0.1} | more))


def work(run, until):
    """A trainer that goes on from what was saved, with an own tensor and a note."""
    found = run.restore()
    weights = np.zeros(3, np.float32) if found is None else found[0]["weights"]
    assert found is None or found[1] == {"note": [run.done, "x"]}
    rng = np.random.default_rng(0)
    old = -1.0 - rng.random((8, 5))
    while run.done < until:
        weights = weights + np.float32(0.25)
        measured = run.log(reward=float(weights[0]), batch={"logprobs": old + 0.01 * weights[0], "old_logprobs": old, "advantages": np.ones(8)})
        assert measured.lanes == 8
        run.save({"weights": weights, "step": np.int64(run.done)}, note=[run.done, "x"])


def test_a_run_that_was_cut_off_ends_with_the_same_bytes(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    with open_run(whole) as run:
        work(run, 6)
        run.finish()
    with open_run(cut) as run:
        work(run, 3)
        run.log(reward=9.0)  # no checkpoint counts on it
    with open_run(cut) as run:
        assert run.done == 3 and not run.finished
        work(run, 6)
        page = run.finish()
    assert page == cut / "index.html" and "niwaki.Run" in page.read_text()
    for name in ("spec.toml", "curve.jsonl", "checkpoint.safetensors", "summary.json", "index.html"):
        assert (whole / name).read_bytes() == (cut / name).read_bytes(), name
    assert (cut / "events.out.tfevents.0.niwaki").stat().st_size == (whole / "events.out.tfevents.0.niwaki").stat().st_size
    lines = [json.loads(line) for line in (cut / "curve.jsonl").read_text().splitlines()]
    # Log-ratios of 0.01 · 0.25 n at every step: their mean square k3 is e^x − 1 − x.
    step = 0.01 * 0.25 * 6
    assert lines[5]["iteration"] == 6 and math.isclose(lines[5]["kl"], math.expm1(step) - step, rel_tol=1e-6)
    with open_run(cut) as run:
        assert run.finished and run.done == 6
        with pytest.raises(ValueError, match="all 6 iterations"):
            run.log(reward=1.0)


def test_runs_of_python_are_compared_by_seed(tmp_path):
    command = shutil.which("niwaki")
    if command is None:
        pytest.skip("the command is not installed; python/test.sh runs this")
    for rate in (0.1, 0.2):
        for seed in range(6):
            with open_run(tmp_path / f"{rate}" / f"{seed}", seed=seed, rate=rate) as run:
                for iteration in range(6):
                    run.log(reward=rate * iteration + 0.01 * seed)
                run.finish()
    said = subprocess.run([command, "compare", str(tmp_path), "--json"], capture_output=True, text=True, check=True).stdout
    found = json.loads(said)
    assert [group["name"] for group in found["groups"]] == ["own.rate = 0.1", "own.rate = 0.2"]
    assert found["differences"][0]["verdict"].startswith("ahead") and found["differences"][0]["pairs"] == 6
    refused = subprocess.run([command, "train", str(tmp_path / "0.1/0/spec.toml")], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "another trainer's" in refused.stderr and len(refused.stderr.splitlines()) == 1


def test_tensors_come_back_as_they_were(tmp_path):
    kept = {
        "a": np.arange(6, dtype=np.float64).reshape(2, 3), "b": np.array([True, False]), "c": np.array(7, np.int64),
        "d": np.zeros((0, 4), np.float32), "e": np.array([1, 2], np.uint8),
    }
    with open_run(tmp_path) as run:
        run.log(reward=0.0)
        run.save(kept, weird="é", nested={"x": [1, None]})
        found, state = run.restore()
    assert state == {"weird": "é", "nested": {"x": [1, None]}}
    for name, value in kept.items():
        assert found[name].dtype == value.dtype and found[name].shape == value.shape and np.array_equal(found[name], value), name


def test_what_cannot_be_kept_is_refused_in_a_line(tmp_path):
    def refused(call, kind=ValueError):
        with pytest.raises(kind) as error:
            call()
        assert "\n" not in str(error.value)
        return str(error.value)

    with open_run(tmp_path / "a", code="one") as run:
        assert "reward is nan in iteration 1" in refused(lambda: run.log(reward=math.nan))
        assert "charts/x is inf" in refused(lambda: run.log(reward=1.0, **{"charts/x": math.inf}))
        run.log(reward=1.0)
        assert "tensor w is no longer finite" in refused(lambda: run.save({"w": np.array([math.nan])}))
        assert "tensor w is object" in refused(lambda: run.save({"w": np.array([{}])}))
        assert "state: " in refused(lambda: run.save({}, thing=object()))
        run.save({"w": np.ones(1)})
        assert "another process" in refused(lambda: open_run(tmp_path / "a", code="one"))
    assert "closed" in refused(lambda: run.done)
    assert "the folder holds spec" in refused(lambda: open_run(tmp_path / "a", code="one", rate=0.5))
    assert "code of the script has changed" in refused(lambda: open_run(tmp_path / "a", code="two"))
    with open_run(tmp_path / "a", code="two", changed=True) as run:
        assert run.done == 1
    for argument, value in (("iterations", 0), ("seed", -1), ("reuse", 1.5), ("rate", math.nan), ("rate", [1])):
        assert argument in refused(lambda: open_run(tmp_path / "b", **{argument: value}))
    checkpoint = tmp_path / "a" / "checkpoint.safetensors"
    data = bytearray(checkpoint.read_bytes())
    data[-1] ^= 1
    checkpoint.write_bytes(bytes(data))
    assert "checksum" in refused(lambda: open_run(tmp_path / "a", code="one"))


def test_episodes_are_cut_where_they_begin():
    starts = np.array([[1, 1], [0, 1], [0, 0]], bool)
    values = np.array([[0, 10], [1, 11], [2, 12]])
    (rows,) = episodes(starts, values)
    assert [row.tolist() for row in rows] == [[0, 1, 2], [10], [11, 12]]
    with pytest.raises(ValueError, match="shape"):
        episodes(starts, values[:2])

"""niwaki.runs: the numbers of runs are those of the command, to the last digit."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from niwaki import runs, stats

pytestmark = pytest.mark.skipif(shutil.which("niwaki") is None, reason="the command is not installed; python/test.sh runs this")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    (home / "base.toml").write_text("iterations = 5\n[task]\nhorizon = 3\n[rollout]\nlanes = 16\n")
    line = ["niwaki", "sweep", str(home / "base.toml"), "--arm", "ppo", "--arm", "full", "--seeds", "7", "--out", str(home)]
    subprocess.run(line, check=True, capture_output=True)
    return home / "base"


def test_numbers_are_those_of_the_command(folder):
    found = runs.read(folder)
    assert len(found) == 14 and not found.damaged
    said = json.loads(subprocess.run(["niwaki", "compare", str(folder), "--json"], check=True, capture_output=True).stdout)
    known = {run["folder"]: run for group in said["groups"] for run in group["runs"]}
    of = {"ppo": {}, "full": {}}
    for run in found:
        assert run.standing == known[run.folder]["standing"] == "finished" and run.done == run.iterations == 5
        assert run.endpoints["auc"] == known[run.folder]["auc"] == run.endpoint("auc")
        assert run.endpoints["final"] == known[run.folder]["final"] == run.curve["eta"][-1]
        assert run.endpoints["mean-drift"] == known[run.folder]["mean_drift"]
        of[run.arm][run.seed] = run.endpoints["auc"]
    decided = stats.paired([of["full"][seed] for seed in range(7)], [of["ppo"][seed] for seed in range(7)])
    theirs = next(one for one in said["differences"] if one["endpoint"] == "auc")
    assert (decided.mean, decided.p, decided.verdict) == (theirs["mean"], theirs["p"], theirs["verdict"])
    assert (decided.interval.low, decided.interval.high) == (theirs["low"], theirs["high"])


def test_what_is_unfinished_or_damaged_says_so(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    homes = sorted(path.parent for path in (tmp_path / "copy").rglob("curve.jsonl"))
    (homes[0] / "summary.json").unlink()
    text = (homes[1] / "curve.jsonl").read_text()
    (homes[1] / "curve.jsonl").write_text(text.replace('"iteration":2', '"iteration":9', 1))
    found = runs.read(tmp_path)
    unfinished = [run for run in found if not run.is_over]
    assert [run.standing for run in unfinished] == ["unfinished"]
    assert unfinished[0].endpoints == {} and unfinished[0].endpoint("auc") is None
    assert np.isfinite(unfinished[0].curve["eta"]).all() and len(unfinished[0].curve["eta"]) == 5
    assert len(found) == 13 and len(found.damaged) == 1 and "line 2" in found.damaged[0][1]


def test_mistakes_are_one_line():
    with pytest.raises(ValueError, match="no folder"):
        runs.read()
    with pytest.raises(ValueError, match="nowhere"):
        runs.read("nowhere")

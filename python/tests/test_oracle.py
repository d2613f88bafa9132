"""niwaki.oracle: the command's numbers, tables of one's own, and what it refuses."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from niwaki.correction import Correction, Rule
from niwaki.oracle import measure, rewards


def test_ppo_is_biased_and_the_full_correction_is_not():
    ppo, half, full = measure(vocab=3, horizon=4, drift=0.6, seeds=6, losses=["ppo", "tempered:0.5", "full"])
    assert abs(full.bias) < 1e-12 < 1e-4 < ppo.absolute_bias
    assert full.variance > half.variance > ppo.variance
    assert ppo.mse == pytest.approx(ppo.mse, abs=0) and ppo.seeds == 6 and ppo.ess == pytest.approx(1.0)


@pytest.mark.skipif(shutil.which("niwaki") is None, reason="the command is not installed; python/test.sh runs this")
def test_equals_the_command():
    line = "niwaki oracle --reward late-only early-gate --vocab 3 --horizon 4 --drift 0.7 --seeds 4 --clip 0.2 --format json"
    said = subprocess.run(line.split(), check=True, capture_output=True, text=True)
    # The command draws 4,096 trajectories for each pair, in batches.
    league = measure(["late-only", "early-gate"], vocab=3, horizon=4, drift=0.7, seeds=4, clip=0.2, draws=4096 // 256)
    assert len(league) == 24
    for row, theirs in zip(league.to_dict(), json.loads(said.stdout)["rows"], strict=True):
        assert {name: row[name] for name in theirs if theirs[name] is not None} == {
            name: value for name, value in theirs.items() if value is not None
        }


def test_tables_of_ones_own():
    rng = np.random.default_rng(1)
    old = rng.normal(scale=0.1, size=(13, 3))
    new = old + rng.normal(scale=0.3, size=old.shape)
    reward = rng.random((3, 3, 3))
    cube = measure(reward, logits=(old, new), losses=["ppo"])[0]
    flat = measure({"mine": reward.reshape(-1)}, logits=(old, new), losses=["ppo"])[0]
    assert (cube.reward, flat.reward) == ("reward", "mine") and cube.mse == flat.mse
    assert np.isnan(cube.mse_sem) and cube.horizon == 3
    # Nothing has moved: no bias, and every loss is the same.
    still = measure(reward, logits=(old, old), losses=["ppo", "full"])
    assert still[0].mse == pytest.approx(still[1].mse, abs=1e-15) and abs(still[0].bias) < 1e-15


def test_a_rule_of_ones_own_is_measured_like_the_member_it_equals():
    mine = Correction.custom("mine", Rule(strength=0.25))
    own, member = measure(vocab=3, horizon=3, seeds=3, losses=[mine, "tempered:0.25"])
    assert own.loss == "mine" and own.mse == member.mse and own.bias == member.bias


def test_leagues_are_shown_and_handed_on():
    league = measure(vocab=2, horizon=3, seeds=2, losses=["ppo", "full"])
    assert "<table>" in league._repr_html_() and "ppo" in league._repr_html_()
    assert league.best.alignment == max(row.alignment for row in league)
    assert league[0].batch == 256 and all(np.isnan(row.batch_cosine) for row in league)
    small, large = (measure(vocab=2, horizon=3, seeds=2, losses=["full"], batch=n, draws=4)[0] for n in (2, 4096))
    assert small.alignment < large.alignment <= large.cosine and np.isfinite(small.batch_cosine)
    with pytest.raises(ValueError, match="batch is 1"):
        measure(vocab=2, horizon=3, seeds=2, batch=1)
    json.dumps(league.to_dict())
    pandas = pytest.importorskip("pandas", reason="pandas is not installed; python/test-extras.sh runs this")
    assert list(league.to_pandas()["loss"]) == ["ppo", "full"] and isinstance(league.to_pandas(), pandas.DataFrame)


def test_refusals_name_the_argument():
    old = np.zeros((13, 3))
    bad = old.copy()
    bad[2, 1] = np.nan
    refused = [
        ({"reward": "late"}, "reward"),
        ({"losses": ["temperd:0.1"]}, "did you mean 'tempered'"),
        ({"drift": -1.0}, "drift is -1"),
        ({"seeds": 0}, "seeds is empty"),
        ({"vocab": 1}, "vocab is 1"),
        ({"vocab": 50, "horizon": 30}, "horizon"),
        ({"clip": -0.1}, "clip"),
        ({"logits": (old, bad)}, r"logits\[1\]\[2, 1\] is not a finite number"),
        ({"logits": (old, old[:5].copy())}, "logits have shapes"),
        ({"logits": (np.zeros((12, 3)),) * 2}, "logits have 12 rows"),
        ({"logits": (old, old), "vocab": 4}, "vocab is 4 where the tables"),
        ({"logits": (old.astype(np.float16), old)}, r"logits\[0\] is float16"),
        ({"reward": np.zeros(5), "vocab": 2, "horizon": 2}, "reward has shape"),
        ({"reward": np.full(4, np.nan), "vocab": 2, "horizon": 2}, "reward.* is not a finite number"),
    ]
    for arguments, word in refused:
        with pytest.raises((TypeError, ValueError), match=word):
            measure(**arguments)
    assert "two-branch" in rewards()


def soft(ell, advantage):
    return 0.5 * np.tanh(2.0 * np.expm1(ell)) * advantage


def quarter(ell, advantage):
    """As the member does it: a sum over the prefix, whose gradient is routed."""
    return np.exp(ell + 0.25 * (np.cumsum(ell, 1) - ell)) * advantage


def test_a_function_is_measured_like_the_member_it_equals():
    found = measure(vocab=3, horizon=4, drift=0.6, seeds=3, batch=64, draws=4, losses=["tempered:0.25", quarter, soft])
    member, mine, other = found
    assert [row.loss for row in found] == ["tempered:0.25", "quarter", "soft"]
    for name in ("bias", "variance", "mse"):
        assert getattr(mine, name) == pytest.approx(getattr(member, name), rel=1e-12), name
    for name in ("cosine", "alignment", "batch_cosine", "noise_batch", "routing_along_eta"):
        assert getattr(mine, name) == pytest.approx(getattr(member, name), rel=1e-6), name
    assert other.mse != member.mse and other.alignment > 0


def test_a_function_that_fails_is_a_line():
    def refused(loss):
        with pytest.raises(Exception) as error:
            measure(vocab=2, horizon=2, seeds=1, losses=[loss])
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "returned shape (4,) for log-ratios of (4, 2)" in refused(lambda ell, advantage: ell.sum(1))
    assert "returned nan where the log-ratio is" in refused(lambda ell, advantage: ell * np.nan)
    assert "returned str; return an array" in refused(lambda ell, advantage: "x")
    assert "division by zero" in refused(lambda ell, advantage: 1 / 0)
    assert "a member of the family has that name" in refused(type("Named", (), {"__name__": "ppo", "__call__": lambda *_: 0})())


@pytest.mark.skipif(shutil.which("niwaki") is None, reason="the command is not installed; python/test.sh runs this")
def test_the_command_takes_a_function_of_a_file(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nprint('hello')\n\ndef quarter(ell, advantage):\n"
        "    return np.exp(ell + 0.25 * (np.cumsum(ell, 1) - ell)) * advantage\n\ndef breaks(ell, advantage):\n    return ell[7000]\n"
    )
    asked = ["niwaki", "oracle", "--vocab", "3", "--horizon", "4", "--seeds", "3", "--json", "--losses", "tempered:0.25"]
    call = lambda *more: subprocess.run([*asked, *more], cwd=tmp_path, capture_output=True, text=True, check=False)
    member, mine = json.loads(call("--loss", "mine.py:quarter").stdout)["rows"]
    assert mine["loss"] == "quarter" and mine["mse"] == pytest.approx(member["mse"], rel=1e-12)
    assert mine["alignment"] == pytest.approx(member["alignment"], rel=1e-6)
    for place, said in (
        ("mine.py:quartr", "did you mean 'quarter'?"), ("no.py:fn", "no.py is not a file"), ("mine.py", "write FILE.py:FUNCTION"),
        ("mine.py:breaks", "mine.py, line 8: IndexError"),
    ):
        ended = call("--loss", place)
        lines = [line for line in ended.stderr.splitlines() if line != "hello"]
        assert ended.returncode == 2 and len(lines) == 1 and said in lines[0], ended.stderr

"""How far the doors of five trainers are from the trainers' own losses at α = 0: value, gradient and metrics over their settings.

    NIWAKI_TRAINERS=~/trainers python python/bench/doors.py

Against the checkouts that `NIWAKI_TRAINERS` has (`TRAINER/VERSION/…`), and against the formulas written out in `python/tests/twins.py`. TRL's and
verl's figures are those of `python/tests/test_trl.py` and `test_verl.py`, which train and evaluate with the real packages.
"""

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
warnings.simplefilter("ignore")

import peers  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from test_doors import SETTINGS, apart  # noqa: E402


def main():
    print(f"torch {torch.__version__}, double precision; largest differences at tempered:0, and how much tempered:0.3 moves the gradient")
    print("trainer    version      settings   value      gradient   metrics    tempered:0.3")
    for name, version in peers.sources():
        worst, moved, tried = [0.0] * 3, 0.0, 0
        for settings in SETTINGS[name]:
            with pytest.MonkeyPatch.context() as patch:
                try:
                    members = [None, "tempered:0", "tempered:0.3"]
                    (own, expected, theirs), (value, gradient, metrics), (_, other, _) = apart(name, version, patch, [settings] * 3, members)
                except pytest.skip.Exception:
                    continue
            tried += 1
            told = max((abs(metrics[key] - theirs[key]) for key in theirs), default=0.0)
            worst = [max(pair) for pair in zip(worst, (abs(value - own), (gradient - expected).abs().max().item(), told))]
            moved = max(moved, ((other - expected).norm() / expected.norm()).item())
        print(f"{name:<10} {version:<12} {tried:<10} {worst[0]:<10.1e} {worst[1]:<10.1e} {worst[2]:<10.1e} {100 * moved:.0f}%")


if __name__ == "__main__":
    main()

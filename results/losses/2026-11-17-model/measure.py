"""Asks the oracle and advise of every run that run.sh brought back.

    python measure.py NIWAKI STUDY [TABLES]      STUDY: where study.tgz and the cells' files were unpacked

Writes league.csv (a row per run, iteration and loss) and curves.csv (a row per run and iteration) into TABLES, and models.csv (a row per dump of PPO's runs). Without TABLES
they are those of the league: beside this file, and in the folder of the calibration of advise.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LEAGUE = ["bias", "variance", "mse", "cosine", "ess", "mean_kl", "sigma2_horizon", "dose"]
ADVICE = ["headroom", "headroom_ahead", "drift", "bias_to_noise", "ess_forecast"]
# The first batches are judged, and all that the run has.
EARLY = 3
# The iterations whose exact return is averaged; a run that was cut has those before the cut.
ENDPOINT = range(2, 9)


def rounded(text):
    return f"{float(text):.6g}"


def league(niwaki, run):
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([niwaki, "oracle", "--run", run, "--quiet", "--out", place], check=True)
        with open(Path(place) / "iterations.csv") as file:
            for row in csv.DictReader(file):
                yield [row["iteration"], row["loss"], *(rounded(row[name]) for name in LEAGUE)]


def verdict(niwaki, run, batches):
    kept = [line for line in (run / "dump.jsonl").read_text().splitlines() if json.loads(line)["iteration"] <= batches]
    found = subprocess.run([niwaki, "advise", "-", "--json"], input="\n".join(kept) + "\n", text=True, capture_output=True, check=False)
    if found.returncode not in (0, 1):
        sys.exit(f"{run}: {found.stderr.strip()}")
    found = json.loads(found.stdout)
    number = {entry["name"]: entry["value"] for entry in found["measured"]["numbers"]}
    return [found["verdict"]["says"], *("" if number[name] is None else rounded(number[name]) for name in ADVICE)]


def returns(run):
    """The exact return after each iteration that the run finished."""
    return {row["iteration"]: row["eta"] for row in map(json.loads, (run / "curve.jsonl").read_text().splitlines())}


def mean_return(run, last):
    own = [eta for iteration, eta in returns(run).items() if iteration in ENDPOINT and iteration <= last]
    return rounded(sum(own) / len(own))


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    niwaki, study = sys.argv[1], Path(sys.argv[2])
    tables = Path(sys.argv[3]) if sys.argv[3:] else HERE
    models = tables if sys.argv[3:] else HERE.parent.parent / "advise" / "2026-11-17"
    runs = sorted(place.parent for place in study.glob("*/*/*/curve.jsonl"))
    if not runs:
        sys.exit(f"{study}: no runs; unpack cell-1.tgz, cell-3.tgz and cell-4.tgz there")
    with open(tables / "league.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["arm", "cell", "seed", "iteration", "loss", *LEAGUE])
        out.writerows([*run.relative_to(study).parts, *row] for run in runs for row in league(niwaki, run))
    with open(tables / "curves.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["arm", "cell", "seed", "iteration", "eta"])
        out.writerows([*run.relative_to(study).parts, iteration, rounded(eta)] for run in runs for iteration, eta in returns(run).items())
    with open(models / "models.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["cell", "seed", "batches", "verdict", *ADVICE, "iterations", "ppo", "tempered"])
        for run in sorted((study / "ppo").glob("*/*")):
            _, cell, seed = run.relative_to(study).parts
            other = study / "tempered-0.1" / cell / seed
            last = min(max(returns(run)), max(returns(other)))
            means = [last, mean_return(run, last), mean_return(other, last)]
            out.writerows([cell, seed, batches, *verdict(niwaki, run, batches), *means] for batches in (EARLY, max(returns(run))))


main()

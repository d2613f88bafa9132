"""Asks the oracle and advise of every run that run.sh brought back.

    python measure.py NIWAKI STUDY      STUDY: where study.tgz and the cells' files were unpacked

Writes league.csv beside this file (a row per run, iteration and loss) and models.csv into the folder of the calibration of advise (a row per dump).
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
# What is judged: the first batches, and all that the run has.
BATCHES = [3, 9]


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


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    niwaki, study = sys.argv[1], Path(sys.argv[2])
    with open(study / "endpoints.csv") as file:
        ends = {(row["arm"], row["cell"], row["seed"]): row for row in csv.DictReader(file)}
    finished = [(key, study / key[0].replace(":", "-") / key[1] / key[2]) for key in ends]
    with open(HERE / "league.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["arm", "cell", "seed", "iteration", "loss", *LEAGUE])
        out.writerows([*key, *row] for key, run in finished for row in league(niwaki, run))
    with open(HERE.parent / "2026-11-17-advise" / "models.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["cell", "seed", "batches", "verdict", *ADVICE, "ppo", "tempered"])
        for (arm, cell, seed), run in finished:
            other = ends.get(("tempered:0.1", cell, seed))
            if arm == "ppo" and other:
                means = [rounded(row["mean:2-8"]) for row in (ends[arm, cell, seed], other)]
                out.writerows([cell, seed, batches, *verdict(niwaki, run, batches), *means] for batches in BATCHES)


main()

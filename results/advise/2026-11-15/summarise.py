"""Turns the lines of the two calibration examples into the tables of this folder's README.

    python summarise.py pairs.jsonl training.jsonl
"""

import json
import sys
from collections import defaultdict

pairs, runs = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])

print("### Pairs: verdict against the exact bias of PPO's estimate\n")
print("| exact bias | wasted | short warmup | reduce reuse | not enough data |")
print("|---|---|---|---|---|")
kinds = ["correction-wasted", "short-warmup", "reduce-reuse", "not-enough-data"]
for truth, name in [(False, "below a quarter of the noise"), (True, "above")]:
    rows = [row for row in pairs if row["material"] == truth]
    print(f"| {name} ({len(rows)}) |", " | ".join(str(sum(r["verdict"]["kind"] == k for r in rows)) for k in kinds), "|")
decided = [r for r in pairs if r["verdict"]["kind"] in kinds[:2]]
right = sum((r["verdict"]["kind"] == "short-warmup") == r["material"] for r in decided)
print(f"\nDecided between the first two: {len(decided)} of {len(pairs)}; right: {right} ({right / len(decided):.0%}).")

print("\n### Pairs: verdict against the exact direction of a batch's update\n")
print("| verdict | pairs | best α gains over 0.02 | mean gain of the best α | mean gain of the advised α |")
print("|---|---|---|---|---|")
for kind in kinds:
    rows = [row for row in pairs if row["verdict"]["kind"] == kind]
    if rows:
        best = [max(r["directions"]) - r["directions"][0] for r in rows]
        advised = [r["advised"] - r["directions"][0] for r in rows]
        print(f"| {kind} | {len(rows)} | {sum(g > 0.02 for g in best)} | {sum(best) / len(rows):+.4f} |"
              f" {sum(advised) / len(rows):+.4f} |")

print("\n### Training: verdict on the first seed's dump against the gain of a warmup\n")
print("| verdict | reward | settings | mean gain in AUC | seeds that gain | seeds that lose |")
print("|---|---|---|---|---|---|")
groups = defaultdict(list)
for run in runs:
    groups[(run["verdict"].split(":")[0].split(" at")[0], run["reward"])].append(run)
for (verdict, reward), rows in sorted(groups.items()):
    gain = sum(r["gain"] for r in rows) / len(rows)
    print(f"| {verdict} | {reward} | {len(rows)} | {gain:+.4f} | {sum(r['wins'] for r in rows)} |"
          f" {sum(r['losses'] for r in rows)} |")

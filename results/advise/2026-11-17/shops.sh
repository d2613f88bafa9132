#!/usr/bin/env bash
# Dumps of the first 12 batches of shops that reuse hard without a correction, judged: shops.csv on standard output.
#
#   results/advise/2026-11-17/shops.sh NIWAKI FOLDER > results/advise/2026-11-17/shops.csv        (from the repository's root)
set -euo pipefail
niwaki="$1" folder="$2"
dump="--set warmup.iterations=0 --set iterations=12 --set dump.every=1 --set evaluate.every=12 --quiet"

# judged SHOP DEADLINE SEED SPEC [--set …]: one row.
judged() {
  local shop="$1" deadline="$2" seed="$3" spec="$4" out="$folder/$1-$2-$3"
  shift 4
  # shellcheck disable=SC2086
  [ -e "$out/dump.jsonl" ] || "$niwaki" train "examples/train/$spec.toml" $dump "$@" --set task.deadline="$deadline" --set seed="$seed" --out "$out" > /dev/null
  "$niwaki" advise "$out/dump.jsonl" --json | python3 -c '
import csv, json, sys
found = json.load(sys.stdin)
number = {entry["name"]: entry["value"] for entry in found["measured"]["numbers"]}
names = ("headroom", "headroom_ahead", "silent_groups", "drift", "bias_to_noise")
csv.writer(sys.stdout).writerow([*sys.argv[1:], found["verdict"]["says"], *(round(number[name], 4) for name in names)])
' "$shop" "$deadline" "$seed"
}

echo "shop,deadline,seed,verdict,headroom,headroom_ahead,silent_groups,drift,bias_to_noise"
for seed in 0 1 2; do
  for c in 1.06 1.05 1.04; do
    judged hard "$c" "$seed" flow-shop --set update.reuse=31
  done
  judged easy 1.02 "$seed" flow-shop --set update.reuse=31 --set task.machines=3 --set task.jobs=12
  for c in 1.15 1.1 1.05; do
    judged job "$c" "$seed" job-shop --set update.reuse=31 --set advantage.standardise=true --set task.order=machine
  done
done
# The point of 15 November.
for seed in 0 1 2 3 4 5; do
  for c in 1.15 1.1 1.05; do
    judged job-in-order "$c" "$seed" job-shop --set update.reuse=30
  done
done

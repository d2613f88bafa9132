#!/usr/bin/env bash
# What the machinery costs: planning 10,000 units, claiming units whose runs are finished, and what a unit costs beside its work.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$work"

study() { # NAME SEEDS: four runs per seed, as short as can be
  cat > "$1.toml" <<TOML
label = "$1"
title = "Short runs"
question = "What does a unit cost beside its work?"
seeds = $2
endpoints = ["final"]
[base]
iterations = 2
[base.task]
horizon = 3
[base.rollout]
lanes = 16
[[arm]]
name = "ppo"
[[arm]]
name = "full"
[[cell]]
name = "a"
[[cell]]
name = "b"
set = { "optimiser.rate" = 0.1 }
TOML
}

timed() { /usr/bin/env time -f "%e %U %S" -o time.txt "$@" > out.txt; read -r wall user system < time.txt; }

study big 2500
timed "$niwaki" cluster split big.toml --out big.json
echo "planning: $(cat out.txt)"
echo "planning 10,000 units: $wall s ($user s user, $system s system)"

units=400
study small 100
"$niwaki" cluster split small.toml --out small.json > /dev/null
export RAYON_NUM_THREADS=1
timed "$niwaki" reproduce small.toml --out whole
one=$wall one_cpu=$(echo "$user + $system" | bc)
timed "$niwaki" cluster work --claim --plan small.json --out claimed --quiet
echo "one process, no units: $one s; $units units claimed and trained: $wall s"
echo "overhead per unit: $(echo "scale=2; 1000 * ($wall - $one) / $units" | bc) ms ($(echo "scale=2; 1000 * ($user + $system - $one_cpu) / $units" | bc) ms of processor time)"
timed "$niwaki" cluster work --claim --plan small.json --out whole --quiet
echo "claiming units whose runs are finished: $(echo "scale=0; $units / $wall" | bc) per second ($wall s for $units)"
timed "$niwaki" cluster work --unit 7 --plan big.json --out alone --quiet
echo "one unit of a plan of 10,000 by its number: $wall s ($user s user, $system s system)"

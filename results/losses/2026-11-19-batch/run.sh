#!/usr/bin/env bash
# The league at batches of 64, 256 and 4,096: bash run.sh NIWAKI FOLDER. Random pairs, then the pairs of twelve training runs.
set -euo pipefail
niwaki="$1" out="$2"
mkdir -p "$out"
losses="ppo tempered:0.1 tempered:0.25 tempered:0.5 full truncated:2 clipped:0.25,1 self-normalised adaptive:0.9 minpro ctpo gspo
  token-tis sequence-tis token-mis sequence-mis cispo gpg token-k1 token-k2 token-k3 sequence-k1 mean-k1 sequence-k2 sequence-k3 mean-k2
  mean-k3 max-k2 max-k3 sequence-clamp:0.5,2 normalised-token-tis normalised-sequence-tis sapo vespo gmpo dppo-tv dppo-kl:0.05,0.05,3
  clip-cov:0.1,0.01,5 kl-cov:0.1,0.1 dro:0.1 kl-penalty:0.1 kl-corrected:0.1 off-policy-mask:0.1 top-entropy token-tis+mean-k3:0.05"
rewards="early-gate late-only sparse-match two-branch"
for batch in 64 256 4096; do
  for drift in 0.1 0.3 1; do
    "$niwaki" oracle --reward $rewards --drift $drift --seeds 10 --batch $batch --losses $losses --format csv > "$out/random-$drift-$batch.csv"
  done
done
for reward in $rewards; do
  for seed in 1 2 3; do
    run="$out/runs/$reward-$seed"
    "$niwaki" train --set task.kind=$reward --set task.horizon=6 --set iterations=40 --set update.reuse=16 \
      --set dump.policies=true --set seed=$seed --quiet --out "$run"
    for batch in 64 256 4096; do
      "$niwaki" oracle --run "$run" --batch $batch --losses $losses --format csv > "$out/training-$reward-$seed-$batch.csv"
    done
  done
done

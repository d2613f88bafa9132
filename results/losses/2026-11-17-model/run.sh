#!/usr/bin/env bash
# Trains the runs of a study and packs what they kept: the study's tables and page, and the runs of each cell, a file each.
#
#   run.sh NIWAKI MODEL OUT [SECONDS] [SEEDS] [DEVICE] [STUDY]
#     NIWAKI   the command, built with the feature cuda
#     MODEL    SmolLM2-135M-Instruct.Q4_1.gguf
#     OUT      folder for what is to be brought back: log.txt, study.tgz, cell-1.tgz, cell-3.tgz, cell-4.tgz
#     SECONDS  after which training is stopped, 200 where absent
#     SEEDS    per arm and cell, 4 where absent
#     DEVICE   cuda where absent
#     STUDY    runs.toml where absent, the league itself
set -uo pipefail
niwaki=$(realpath "$1") model=$(realpath "$2") seconds=${4:-200} seeds=${5:-4} device=${6:-cuda}
here=$(cd "$(dirname "$0")" && pwd)
study=$(realpath "${7:-$here/runs.toml}")
mkdir -p "$3"
out=$(realpath "$3")
runs=$(mktemp -d)
log=$out/log.txt
precision=()
[ "$device" = cuda ] && precision=(--precision bf16)

{
  echo "$("$niwaki" --version), $device, $seeds seeds, model $([ -f "$model" ] && sha256sum "$model" | cut -c1-12)"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
} > "$log" 2>&1
began=$SECONDS
# Four members to a program: each is done before a minute is over, after which it would save gigabytes.
timeout -k 5 "$seconds" "$niwaki" reproduce "$study" --model "$model" --seeds "$seeds" --members 4 --device "$device" "${precision[@]}" \
  --out "$runs" --no-progress >> "$log" 2>&1
status=$?
echo "training ended with $status after $((SECONDS - began)) s" | tee -a "$log"
if [ "$status" != 0 ]; then
  timeout 30 "$niwaki" reproduce "$study" --model "$model" --seeds "$seeds" --report-only --out "$runs" >> "$log" 2>&1
fi

cd "$runs"/*/ || exit 1
find . -maxdepth 1 -type f -print0 | tar czf "$out/study.tgz" --null -T -
for cell in 1 3 4; do
  # Weights stay here: a run that was stopped has a checkpoint of more than a gigabyte.
  find . -path "*/cell $cell,*" -type f \( -name 'spec.toml' -o -name '*.jsonl' -o -name 'summary.json' -o -name 'turns.json' \) -print0 |
    tar czf "$out/cell-$cell.tgz" --null -T -
done
rm -rf "$runs"
du -h "$out"/*
exit "$status"

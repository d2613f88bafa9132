#!/usr/bin/env bash
# The stages of RECORDS.md, within a time limit, going on from what is there.
#
# records.sh BINARY MODEL RUNS PACK SECONDS [DEVICE] [STAGE...]
#   BINARY   niwaki, built with the feature cuda
#   MODEL    SmolLM2-135M-Instruct.Q4_1.gguf
#   RUNS     folder of all runs, kept between calls
#   PACK     folder for what is to be brought back
#   SECONDS  after which nothing is begun and what runs is stopped
#   DEVICE   cuda where absent
#   STAGE    pilot readings pair grid slow falsifier rest; all of them where absent
set -uo pipefail
binary=$1 model=$2 runs=$3 pack=$4 limit=$5 device=${6:-cuda}
shift $(($# < 6 ? $# : 6))
stages=("$@")
[ $# -gt 0 ] || stages=(pilot readings pair grid slow falsifier rest)
here=$(cd "$(dirname "$0")" && pwd)
began=$SECONDS
mkdir -p "$runs" "$pack"
log=$pack/log.txt
# A choice that was committed stands for the runs that it came of.
[ -f "$here/records-pilot.tsv" ] && cp "$here/records-pilot.tsv" "$runs/"

pack_up() {
  cp "$runs/records-pilot.tsv" "$pack" 2>/dev/null
  (cd "$runs" && find . -maxdepth 2 \( -name endpoints.csv -o -name speed.json -o -name '*.toml' \) -print0 | tar czf "$pack/results.tgz" --null -T -)
  (cd "$runs" && find . -name curve.jsonl -print0 | tar czf "$pack/curves.tgz" --null -T -)
}
trap pack_up EXIT

# study FILE: one study, then its report.
study() {
  local room=$((limit - (SECONDS - began)))
  if [ "$room" -lt 20 ]; then echo "no time for $1" | tee -a "$log"; return 1; fi
  echo "== $1 ($((SECONDS - began)) s gone)" | tee -a "$log"
  local precision=()
  [ "$device" = cuda ] && precision=(--precision bf16 --members 16)
  timeout -k 5 $((room - 10)) "$binary" reproduce "$1" --model "$model" --device "$device" "${precision[@]}" --out "$runs" >>"$log" 2>&1 && return
  echo "stopped or refused: $1" | tee -a "$log"
  return 1
}

for stage in "${stages[@]}"; do
  files=$(python3 "$here/records.py" plan "$stage" "$runs") || exit 2
  for file in $files; do study "$file" || exit 1; done
  case $stage in
    pilot) [ -f "$here/records-pilot.tsv" ] || python3 "$here/records.py" choose "$runs" | tee -a "$log" ;;
    readings) python3 "$here/records.py" readings "$runs" | tee "$pack/readings.tsv" ;;
  esac
done

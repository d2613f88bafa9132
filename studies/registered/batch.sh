#!/usr/bin/env bash
# The rounds of BATCH.md and its confirmation, within a time limit, going on from what is there.
#
# batch.sh BINARY RUNS PACK SECONDS [DEVICE] [STAGE...]
#   BINARY   niwaki, built with the feature cuda
#   RUNS     folder of all runs, kept between calls
#   PACK     folder for what is to be brought back
#   SECONDS  after which nothing is begun and what runs is stopped
#   DEVICE   cuda where absent
#   STAGE    screen second job-1 job-2 job-3 confirm; all of them where absent
set -uo pipefail
binary=$1 runs=$2 pack=$3 limit=$4 device=${5:-cuda}
shift $(($# < 5 ? $# : 5))
stages=("$@")
[ $# -gt 0 ] || stages=(screen second job-1 job-2 job-3 confirm)
here=$(cd "$(dirname "$0")" && pwd)
began=$SECONDS
mkdir -p "$runs" "$pack"
log=$pack/log-$(date +%s).txt
# Distances that were committed stand for the runs that they came of.
for kept in "$here"/batch-*.tsv; do [ -f "$kept" ] && cp "$kept" "$runs/"; done

left() { echo $((limit - (SECONDS - began))); }

# What is small of every study, and the pages by themselves: they may be too large to bring back.
pack_up() {
  cp "$runs"/batch-*.tsv "$pack" 2>/dev/null
  (cd "$runs" && find . -maxdepth 2 \( -name endpoints.csv -o -name speed.json -o -name '*.toml' \) -print0 | tar czf "$pack/results.tgz" --null -T -)
  (cd "$runs" && find registered-batch-confirm-* -maxdepth 1 -name index.html -print0 2>/dev/null | tar czf "$pack/pages.tgz" --null -T -)
}
trap pack_up EXIT

# study FILE: one study, then its report; where time runs out, the report of what is finished.
study() {
  local room
  room=$(left)
  if [ "$room" -lt 15 ]; then echo "no time for $1" | tee -a "$log"; return 1; fi
  echo "== $1 ($((SECONDS - began)) s gone)" | tee -a "$log"
  timeout -k 5 $((room - 8)) "$binary" reproduce "$1" --device "$device" --out "$runs" >>"$log" 2>&1 && return
  echo "stopped or refused: $1" | tee -a "$log"
  timeout 8 "$binary" reproduce "$1" --report-only --out "$runs" >>"$log" 2>&1
  return 1
}

for stage in "${stages[@]}"; do
  if [ "$stage" = confirm ]; then
    files=$(python3 "$here/batch.py" fill "$runs") || exit 2
    for file in $files; do study "$file" || exit 1; done
  elif [ ! -f "$runs/batch-$stage.tsv" ]; then
    files=$(python3 "$here/batch.py" plan "$stage" "$runs") || exit 2
    for file in $files; do study "$file" || exit 1; done
    python3 "$here/batch.py" choose "$stage" "$runs" | tee -a "$log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || exit 2
  fi
done

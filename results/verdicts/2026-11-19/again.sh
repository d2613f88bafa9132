#!/usr/bin/env bash
# Every statement whose runs are kept, judged by today's rule: again.sh BINARY, from the root of a clone.
binary=$1
# Large tables are packed; their lines are judged all the same.
judge() {
  local lines=$2
  if ! test -f "$lines"; then lines=$(mktemp); gzip -dc "$2.gz" >"$lines"; fi
  printf '%s\t%s\t' "$2" "$1"; "$binary" reproduce "$1" --endpoints "$lines" 2>&1 | tail -1 | sed 's/^[^ ]*: //'
}
for name in tab:g-detail tab:h-detail tab:i-detail tab:i-aggressive tab:results-summary; do
  judge "$name" "results/testbed/2026-11-15/${name/:/-}/endpoints.csv"
done
judge app:diagnostics-null-controls+training results/testbed/2026-11-15-tables/app-diagnostics-null-controls-training/endpoints.csv
judge app:opt-ablation results/testbed/2026-11-15-tables/app-opt-ablation/endpoints.csv
judge tab:envladder results/testbed/2026-11-15-ladder/envladder.csv
for of in bf16 tf32; do
  for name in tab:i-detail tab:i-aggressive; do judge "$name" "results/testbed/2026-11-18-bf16/$of/${name/:/-}.csv"; done
done
for set in paper fresh; do
  for folder in results/shops/2026-11-16/$set/*/; do
    name=$(basename "$folder")
    case $name in *pilot | sec-disc*) continue ;; esac
    judge "${name/-/:}" "${folder}endpoints.csv"
  done
done
for name in published acquisition dial rich; do judge "tab:sched-null+$name" "results/dispatchers/2026-11-17-correction/$name.csv"; done
judge tab:pretrained-summary results/pretrained/2026-11-17/endpoints.csv
judge tab:v2-cell3-fatal-drift results/pretrained/2026-11-17/cell3-endpoints.csv

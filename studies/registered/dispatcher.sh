#!/usr/bin/env bash
# The dispatcher's pilots, stage by stage, then its studies; goes on from what RUNS holds.
#
# dispatcher.sh BINARY RUNS SECONDS [DEVICE] [STAGE...]
#   BINARY   niwaki, built with the feature cuda
#   RUNS     folder of all runs, kept between calls
#   SECONDS  after which what runs is stopped: finished runs stay, and a run on its way was saved within the last minute
#   DEVICE   cuda where absent
#   STAGE    p0 p1-returns p2 p1-dial p1-fair p1-rich p3 published dial rich acquisition; all of them where absent
set -uo pipefail
binary=$1 runs=$2 limit=$3 device=${4:-cuda}
shift $(($# < 4 ? $# : 4))
stages=("$@")
[ $# -gt 0 ] || stages=(p0 p1-returns p2 p1-dial p1-fair p1-rich p3 published dial rich acquisition)
here=$(cd "$(dirname "$0")" && pwd)
began=$SECONDS
mkdir -p "$runs"

# run NAME [FLAGS]: one file of the design with the point so far.
run() {
  local name=$1 room=$((limit - (SECONDS - began)))
  shift
  [ "$room" -gt 15 ] || { echo "no time for $name"; exit 1; }
  python3 "$here/dispatcher.py" fill "$name" "$runs" || exit 2
  echo "== $name ($((SECONDS - began)) s gone)"
  timeout -k 5 "$room" "$binary" reproduce "$runs/filled/$name.toml" --device "$device" --out "$runs" "$@" || exit 1
}

for stage in "${stages[@]}"; do
  case $stage in
    p1-returns)
      # Published drifts are of the size of tf32's rounding.
      if [ "$device" = cuda ]; then run "$stage" --precision f32; else run "$stage"; fi ;;
    *) run "$stage" ;;
  esac
  case $stage in
    p3)
      # A fair deadline that a dial misses is moved, twice at most, and measured again.
      until python3 "$here/dispatcher.py" choose p3 "$runs"; do
        run p1-fair
        python3 "$here/dispatcher.py" choose p1-fair "$runs" || exit 2
        run p3
      done
      python3 "$here/dispatcher.py" freeze "$runs" ;;
    p*) [ "$stage" = published ] || python3 "$here/dispatcher.py" choose "$stage" "$runs" || exit 2 ;;
  esac
done

#!/usr/bin/env bash
# The registered studies in the order of README.md, within a time limit, going on from what is there.
#
# run.sh BINARY RUNS PACK SECONDS [DEVICE]
#   BINARY   niwaki, built with the feature cuda
#   RUNS     folder of all runs, kept between calls
#   PACK     folder for what is to be brought back
#   SECONDS  after which nothing is begun and what runs is stopped
#   DEVICE   cuda where absent
set -uo pipefail
binary=$1 runs=$2 pack=$3 limit=$4 device=${5:-cuda}
here=$(cd "$(dirname "$0")" && pwd)
began=$SECONDS
mkdir -p "$runs/filled" "$pack"
log=$pack/log.txt

left() { echo $((limit - (SECONDS - began))); }

# What is small of every study, and the pages by themselves: they may be too large to bring back.
pack_up() {
  (cd "$runs" && find . -maxdepth 2 \( -name endpoints.csv -o -name strengths.json -o -name speed.json \
    -o -name calibration.json -o -name '*.toml' -o -name chosen.env \) -print0 | tar czf "$pack/results.tgz" --null -T -)
  (cd "$runs" && find . -maxdepth 2 -name index.html -print0 | tar czf "$pack/pages.tgz" --null -T -)
}
trap pack_up EXIT

# study FILE [SEEDS]: one study, then its report; where time runs out, the report of what is finished.
study() {
  local file=$1 seeds=${2:+--seeds $2} room
  room=$(left)
  if [ "$room" -lt 15 ]; then echo "no time for $file" | tee -a "$log"; return 1; fi
  echo "== $file ${2:-} ($((SECONDS - began)) s gone)" | tee -a "$log"
  # shellcheck disable=SC2086
  if ! timeout -k 5 $((room - 8)) "$binary" reproduce "$file" $seeds --device "$device" --out "$runs" >>"$log" 2>&1; then
    echo "stopped or refused: $file" | tee -a "$log"
    # shellcheck disable=SC2086
    timeout 5 "$binary" reproduce "$file" $seeds --report-only --out "$runs" >>"$log" 2>&1
    [ "$(left)" -gt 15 ]
  fi
}

# The point of README.md's rule, off the two pilots.
choose() {
  awk -F'"' '
    $1 != "ppo," { next }
    {
      split($2, at, ","); split($3, number, ","); c = at[1]
      point = at[2] "," at[3] "," at[4] "," at[5]
      seen[point] = 1
      total[point, c] += number[4]; count[point, c]++
      if (c == "c = 1.02") drift[point, ++drifts[point]] = number[5]
    }
    END {
      printed["c = 1.06"] = .99; printed["c = 1.05"] = .89; printed["c = 1.04"] = .79; printed["c = 1.02"] = .98
      best = -1
      for (g = 0; g < 2; ++g) for (k = 12; k < 14; ++k) for (s = 0; s < 2; ++s) for (r = 1; r < 3; ++r) {
        point = "glimpse=" (g ? "residual" : "plain") ",K=" k ",standardise=" (s ? "true" : "false") ",rate=" (r == 1 ? "0.05" : "0.1")
        if (!(point in seen)) { print "no runs at " point > "/dev/stderr"; exit 1 }
        distance = 0
        for (c in printed) {
          off = total[point, c] / count[point, c] - printed[c]
          distance += (off < 0 ? -off : off) / .05 / 4
        }
        n = drifts[point]
        for (i = 1; i <= n; ++i) sorted[i] = drift[point, i]
        for (i = 2; i <= n; ++i) for (j = i; j > 1 && sorted[j - 1] > sorted[j]; --j) {
          swap = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = swap
        }
        median = n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
        far = log(median / 1.38) / log(2)
        distance += far < 0 ? -far : far
        printf "%s: distance %.3f, drift %.3f\n", point, distance, median > "/dev/stderr"
        if (best < 0 || distance < best) { best = distance; chosen = point; glimpse = g; reuse = k; standardise = s; rate = r }
      }
      printf "GLIMPSE=%s\nK=%d\nKW=%d\nSTANDARDISE=%s\nRATE=%s\n", glimpse ? "residual" : "plain", reuse, reuse + 18,
        standardise ? "true" : "false", rate == 1 ? "0.05" : "0.1"
    }' "$runs/registered-pilot-hard/endpoints.csv" "$runs/registered-pilot-easy/endpoints.csv" \
    >"$runs/chosen.env.new" 2>>"$log" && mv "$runs/chosen.env.new" "$runs/chosen.env"
}

if [ -f "$here/chosen.env" ]; then
  cp "$here/chosen.env" "$runs/chosen.env"
elif [ ! -f "$runs/chosen.env" ]; then
  study "$here/2026-11-16-pilot-hard.toml" && study "$here/2026-11-16-pilot-easy.toml" && choose || exit 1
fi
# shellcheck disable=SC1091
. "$runs/chosen.env"
tee -a "$log" <"$runs/chosen.env"
for template in "$here"/*.toml.in; do
  filled=$runs/filled/$(basename "$template" .in)
  sed -e "s/@GLIMPSE@/$GLIMPSE/; s/@KW@/$KW/; s/@K@/$K/; s/@STANDARDISE@/$STANDARDISE/; s/@RATE@/$RATE/" "$template" >"$filled"
done
for file in "$here"/*.toml; do cp "$file" "$runs/filled/"; done

for name in headline warmup dial jobs; do study "$runs/filled/2026-11-16-$name.toml" || exit 0; done
for name in map-hard map-easy; do study "$runs/filled/2026-11-16-$name.toml" 24 || exit 0; done
for jobs in 20 30 40 50; do study "$runs/filled/2026-11-16-horizon-$jobs.toml" || exit 0; done
for name in map-easy map-hard; do study "$runs/filled/2026-11-16-$name.toml" || exit 0; done

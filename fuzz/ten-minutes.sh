#!/usr/bin/env bash
# Ten minutes of changed inputs to every reader, from a place of its own each day; ends with 1 where one breaks.
set -euo pipefail
cd "$(dirname "$0")/.."
day=$(($(date +%s) / 86400))
exec cargo run --quiet --locked -p niwaki-fuzz -- --seconds 600 --inputs 1000000000 --from $((day * 1000000000))

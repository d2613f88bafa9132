#!/usr/bin/env bash
# The same forty units through a real Ray (PyPI) on this machine: two workers, one killed with a unit in its hands.
# PYTHON names a Python that has Ray; where it has none, a virtual environment is made.
set -euo pipefail
source "$(dirname "$0")/common.sh"
python=${PYTHON:-python3}
if ! "$python" -c 'import ray' 2> /dev/null; then
  "$python" -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet ray
  python=$work/venv/bin/python
fi
local_run
ray_command=$(dirname "$("$python" -c 'import sys; print(sys.executable)')")/ray
"$ray_command" start --head --num-cpus=2 --include-dashboard=false --disable-usage-stats > /dev/null
trap '"$ray_command" stop --force > /dev/null 2>&1 || true' EXIT
export RAY_ADDRESS=auto
"$niwaki" cluster launch ray --plan plan.json --out ray --python "$python" & launcher=$!
while true; do
  unit=$(pgrep -f "^$niwaki cluster work --plan .* --out $work/ray " | head -1 || true)
  worker=$([ -n "$unit" ] && ps -o ppid= -p "$unit" | tr -d ' ' || true)
  if [ -n "$worker" ] && kill -KILL "$worker" 2> /dev/null; then echo "killed Ray's worker $worker with a unit in its hands"; break; fi
done
wait $launcher
"$niwaki" cluster status --plan plan.json --out ray
same ray

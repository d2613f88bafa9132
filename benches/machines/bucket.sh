#!/usr/bin/env bash
# The same forty units in a bucket: an S3-compatible server on the loopback (moto, PyPI) behind a proxy that fails one request in
# seven. Three processes claim, one is killed with a unit in its hands, one is stopped beyond its lease and woken; then the runs are
# brought home and held against those of one process. NIWAKI names a program with the feature `buckets`; PYTHON a Python that
# has moto[server,s3]; where it has none, a virtual environment is made.
set -euo pipefail
source "$(dirname "$0")/common.sh"
python=${PYTHON:-python3}
if ! "$python" -c 'import moto.server' 2> /dev/null; then
  "$python" -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet 'moto[server,s3]'
  python=$work/venv/bin/python
fi
local_run

started=()
finish() { for pid in "${started[@]}"; do kill "$pid" 2> /dev/null || true; done; }
trap finish EXIT
free() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
direct=$(free)
"$python" -m moto.server -H 127.0.0.1 -p "$direct" > moto.log 2>&1 & started+=($!)
failing=$(free)
"$python" "$here/faults.py" "$failing" "$direct" 7 2> faults.log & proxy=$!; started+=("$proxy")
export AWS_ACCESS_KEY_ID=anybody AWS_SECRET_ACCESS_KEY=nothing AWS_REGION=us-east-1 AWS_ALLOW_HTTP=true
export AWS_ENDPOINT_URL=http://127.0.0.1:$failing TMPDIR=$work/scratch
mkdir -p "$TMPDIR"
for _ in $(seq 100); do curl -s -o /dev/null "http://127.0.0.1:$direct" && break; sleep 0.2; done
curl -s -o /dev/null -X PUT "http://127.0.0.1:$direct/niwaki"

refused() { # COMMAND...: one line, exit code 2
  local status=0 said
  said=$("$@" 2>&1 > /dev/null) || status=$?
  [ "$status" -eq 2 ] && [ "$(wc -l <<< "$said")" -eq 1 ] || { echo "NOT REFUSED ($status): $said"; exit 1; }
  echo "refused: ${said//$work/}"
}
refused "$niwaki" cluster status --plan plan.json --out s3://nowhere/runs
refused "$niwaki" cluster work --claim --plan s3://niwaki/none.json --out s3://niwaki/runs

out=s3://niwaki/runs plan=s3://niwaki/plan.json
"$niwaki" cluster split "$here/study.toml" --out "$plan"
claim() { exec "$niwaki" cluster work --claim --plan "$plan" --out "$out" --lease 3 --quiet; }
holding() { # PID: until it has begun a unit
  while kill -0 "$1" 2> /dev/null; do
    "$niwaki" cluster status --plan "$plan" --out "$out" --json | grep -q -- "-$1\"" && return
  done
  echo "process $1 ended before it was caught at work"; exit 1
}
claim & killed=$!
holding $killed
kill -KILL $killed
echo "killed a process with a unit in its hands"
claim & stopped=$!
holding $stopped
kill -STOP $stopped
echo "stopped another"
claim & one=$!
claim & two=$!
wait $one $two
kill -CONT $stopped
wait $stopped
echo "woken, it found everything done"
"$niwaki" cluster status --plan "$plan" --out "$out"
"$niwaki" reproduce "$here/study.toml" --report-only --from "$out" --out bucket > /dev/null
kill -TERM "$proxy"; wait "$proxy" || true
echo "requests, by what was done to them: $(cat faults.log)"
same bucket

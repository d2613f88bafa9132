#!/usr/bin/env bash
# The same forty units through an S3 server on the loopback (moto, from PyPI) behind a proxy that spoils every seventeenth request;
# two processes, one killed with a unit in its hands. The program needs the feature `buckets`. PYTHON names a Python that has
# moto's server; where it has none, a virtual environment is made.
set -euo pipefail
source "$(dirname "$0")/common.sh"
python=${PYTHON:-python3}
if ! "$python" -c 'import moto.server' 2> /dev/null; then
  "$python" -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet 'moto[server]'
  python=$work/venv/bin/python
fi
local_run
"$python" -c 'from moto.server import main; main(["-H", "127.0.0.1", "-p", "5555"])' > moto.log 2>&1 & server=$!
"$python" "$here/faults.py" 5556 5555 17 2> faults.log & proxy=$!
trap 'kill $server $proxy' EXIT
for _ in $(seq 100); do curl -sf -X PUT http://127.0.0.1:5555/niwaki > /dev/null && break; sleep 0.2; done
export AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing AWS_REGION=us-east-1 AWS_ALLOW_HTTP=true
export AWS_ENDPOINT=http://127.0.0.1:5556
out=s3://niwaki/studies
claim=("$niwaki" work --claim --plan plan.json --out "$out" --lease 5 --scratch scratch --quiet)
"${claim[@]}" & first=$!
sleep 3
kill -KILL $first && echo "killed process $first"
"${claim[@]}" & second=$!
"${claim[@]}" & third=$!
wait $second $third
"$niwaki" status --plan plan.json --out "$out"
"$niwaki" reproduce "$here/study.toml" --report-only --from "$out" --out s3 | tail -2
echo "requests spoiled: $(wc -l < faults.log)"
same s3
for address in s3://no-such-bucket/x; do
  "$niwaki" work --unit 0 --plan plan.json --out $address && exit 1 || echo "exit code $?"
done

#!/bin/bash
# Everything in raw.txt, from one binary built with
#   cargo build --release -p niwaki --features cuda
# Run in the root of the repository on a machine with the GPU; $1 is the binary (default target/release/niwaki).
niwaki=${1:-target/release/niwaki}
export NIWAKI_CACHE=$(mktemp -d)
run() { echo; echo "\$ niwaki $*"; "$niwaki" "$@"; echo "[exit $?]"; }
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm --format=csv,noheader; nproc; uname -r
run bench device --soak 10000
echo; echo "# the same with the kernel cache warm"
run bench device --soak 100 --skip-checks
largest=$(ls -S "$NIWAKI_CACHE" | head -1); echo; echo "# one cache file cut short: $largest"
head -c 1000 "$NIWAKI_CACHE/$largest" > "$NIWAKI_CACHE/cut" && mv "$NIWAKI_CACHE/cut" "$NIWAKI_CACHE/$largest"
run bench device --members 1 --soak 1000 --skip-checks
run bench engine --device cuda --members 120 --repeats 100
run bench engine --device cuda --members 120 --repeats 30 --precision bf16
run bench engine --device cuda --members 120 --repeats 30 --precision f32
run bench engine --device cuda --members 120 --peers

# What the scripts of this folder share: the program, a scratch folder, the local run that all others are held against.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
niwaki=${NIWAKI:-$here/../../target/release/niwaki}
[ -x "$niwaki" ] || { echo "no $niwaki: build it with cargo build --release, or set NIWAKI" >&2; exit 1; }
niwaki=$(cd "$(dirname "$niwaki")" && pwd)/$(basename "$niwaki")
work=$(mktemp -d)

# local_run: plan.json, and what one process makes of the study, in whole/.
local_run() {
  cd "$work"
  "$niwaki" cluster split "$here/study.toml"
  /usr/bin/env time -f 'one process: %e s' "$niwaki" reproduce "$here/study.toml" --out whole > /dev/null
}

# sums FOLDER: the checksum of every file of every run, without the file of the clock (TensorBoard's events).
sums() {
  (cd "$1/forty" && find . -type f -path './*/*/*/*' ! -name '*tfevents*' | sort | xargs sha256sum)
}

# same FOLDER: whether its runs are those of the local run, to the byte.
same() {
  if diff <(sums whole) <(sums "$1") > "$work/diff"; then
    echo "same bytes: $(sums "$1" | wc -l) files of $(find "$1/forty" -name summary.json | wc -l) runs in $1"
  else
    echo "DIFFERENT BYTES in $1:"; head "$work/diff"; exit 1
  fi
}

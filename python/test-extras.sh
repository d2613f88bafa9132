#!/usr/bin/env bash
# Installs the wheel with every extra in an environment of its own, runs all of Python's tests there, the notebooks under
# Jupyter, and the measurements. Downloads gigabytes (torch). What it prints is what results/<date>-python holds.
#
#   python/test-extras.sh [ENVIRONMENT]        default: target/python-extras; one that exists is used as it is
set -euo pipefail
cd "$(dirname "$0")/.."

home="${1:-target/python-extras}"
if [ ! -d "$home" ]; then
  python3 -m venv "$home"
  "$home/bin/pip" install --quiet --disable-pip-version-check \
    torch 'trl==1.16.0' jax gymnasium sb3-contrib pandas scipy pytest mypy jupyter_client nbclient ipykernel \
    tensordict omegaconf hydra-core codetiming ray torchdata orjson peft pylatexenc dill
  # Their requirements would pull in engines that no test needs, and other versions of transformers.
  "$home/bin/pip" install --quiet --disable-pip-version-check --no-deps 'verl==0.9.1' rliable arch absl-py
fi
"$home/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps .
export PATH="$(cd "$home/bin" && pwd):$PATH"

echo "== versions"
niwaki --version
python --version
pip list 2>/dev/null | grep -i -E '^(niwaki|numpy|torch|trl|transformers|accelerate|verl|jax|jaxlib|gymnasium|sb3[-_]contrib|stable[-_]baselines3|pandas|scipy|rliable|pytest|mypy) '
echo "== types"
mypy python/niwaki
python -m mypy.stubtest niwaki._native --ignore-disjoint-bases --mypy-config-file pyproject.toml
echo "== tests"
pytest python -rs
echo "== notebooks under Jupyter"
for notebook in docs/python/notebooks/*.ipynb; do
  python -c "
import sys, nbformat
from nbclient import NotebookClient
NotebookClient(nbformat.read(sys.argv[1], as_version=4), timeout=600).execute()
print(sys.argv[1], 'runs')" "$notebook"
done
echo "== measurements"
for script in python/bench/*.py; do
  echo "-- $script"
  python "$script"
done

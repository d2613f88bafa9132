#!/usr/bin/env bash
# Builds the wheel as a user does, installs it in a fresh virtual environment with NumPy and pytest, and runs Python's tests,
# the pages' examples and the notebooks there. Tests of extras say how they are run.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf target/python
python3 -m venv target/python
target/python/bin/pip install --quiet --disable-pip-version-check '.[test]'
export PATH="$PWD/target/python/bin:$PATH"
niwaki --version
pytest python -rs "$@"

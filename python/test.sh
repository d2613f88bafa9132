#!/usr/bin/env bash
# Builds the wheel as a user does, in a fresh virtual environment with NumPy and pytest, and runs Python's tests.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf target/python
python3 -m venv target/python
target/python/bin/pip install --quiet --disable-pip-version-check '.[test]'
target/python/bin/niwaki --version
target/python/bin/pytest python "$@"

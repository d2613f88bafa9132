#!/usr/bin/env bash
# Builds the wheel as a user does, in a fresh virtual environment with NumPy and pytest, and runs Python's tests. With
# NIWAKI_PROFILE=dev it is built in cargo's profile for tests, in less time.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf target/python
python3 -m venv target/python
target/python/bin/pip install --quiet --disable-pip-version-check '.[test]'
export PATH="$PWD/target/python/bin:$PATH"
niwaki --version
pytest python "$@"

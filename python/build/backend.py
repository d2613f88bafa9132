"""Builds the wheel: maturin's backend, with the `niwaki` command beside the extension module.

maturin packs one crate; the command is another one. So each hook first builds the command with cargo and leaves it in
the wheel's data folder (`[tool.maturin] data`), from where installers put it on the path as a script.

NIWAKI_FEATURES names cargo features of the command, e.g. "cuda" (nothing of CUDA is needed to build or to start it).
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  (hooks that need no command)
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "target" / "wheel-data" / "scripts"
# Every hook of maturin's asks for the folder.
SCRIPTS.mkdir(parents=True, exist_ok=True)


def build_command() -> Path:
    """Builds the command as maturin builds the module (same profile and target, locked) and returns its copy."""
    # The module's crate is named too: so both choose the same features of what they share, and it is compiled once.
    cargo = ["cargo", "build", "--release", "--locked", "--package", "niwaki", "--package", "niwaki-py", "--bin", "niwaki"]
    cargo += ["--message-format", "json-render-diagnostics"]
    if os.environ.get("NIWAKI_FEATURES"):
        cargo += ["--features", os.environ["NIWAKI_FEATURES"]]
    said = subprocess.run(cargo, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    built = next(Path(message["executable"]) for message in messages if message.get("executable"))
    for stale in SCRIPTS.iterdir():
        stale.unlink()
    copy = Path(shutil.copy2(built, SCRIPTS / built.name))
    if shutil.which("strip") and not os.environ.get("CARGO_BUILD_TARGET"):
        subprocess.run(["strip", str(copy)], check=True)
    return copy


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build_command()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build_command()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)

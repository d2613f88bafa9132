"""A stranger types docs/python/train.md: the three scripts into files, the commands as they stand, in the book's own order.

Sweeps are typed with two seeds and a few iterations, so that it takes seconds; a run that is killed ends with the bytes of one that was not.
"""

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
pytest.importorskip("gymnasium", reason="gymnasium is not installed; python/test-extras.sh runs this")

PAGE = Path(__file__).resolve().parents[2] / "docs/python/train.md"
PARTS = re.findall(r"```python\n# (\w+\.py)\n(.*?)```\n+```sh\n(.*?)```", PAGE.read_text(), re.S)
LINES = 25
ITERATIONS = 8


def typed(line, folder):
    line = line.replace("python ", f"{sys.executable} ", 1).replace("--seeds 8", "--seeds 2")
    if line.startswith("niwaki ") and shutil.which("niwaki") is None:
        return None
    return subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False)


def test_the_page_has_three_scripts():
    assert [name for name, *_ in PARTS] == ["lock.py", "pole.py", "shop.py"]


@pytest.mark.parametrize(("name", "script", "commands"), PARTS, ids=[name for name, *_ in PARTS])
def test_a_script_of_the_book_is_short_and_does_what_the_book_says(tmp_path, name, script, commands):
    code = [line for line in script.splitlines() if line.strip()]
    assert len(code) <= LINES, f"{name} has {len(code)} lines"
    (tmp_path / name).write_text(re.sub(r"iterations=\d+", f"iterations={ITERATIONS}, save=2", script))
    first, sweep, compare = commands.strip().splitlines()
    ended = typed(first, tmp_path)
    assert ended.returncode == 0, ended.stderr
    page = tmp_path / re.search(r"wrote (.*index\.html)", ended.stdout).group(1)
    files = ("spec.toml", "curve.jsonl", "checkpoint.safetensors", "summary.json", "index.html")
    whole = {file: (page.parent / file).read_bytes() for file in files}
    assert any(page.parent.glob("*tfevents*"))
    # The same again, killed as soon as a checkpoint stands, and typed again.
    shutil.rmtree(page.parent)
    process = subprocess.Popen(first.replace("python ", f"exec {sys.executable} ", 1), shell=True, cwd=tmp_path, stderr=subprocess.PIPE)
    while process.poll() is None and len(lines(page.parent)) < 3:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ended = typed(first, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert {file: (page.parent / file).read_bytes() for file in files} == whole
    ended = typed(sweep, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert len(list((tmp_path / sweep.split()[-1]).glob("*/*/index.html"))) == 4
    # The sweep's last line is the book's next.
    assert ended.stdout.strip() == compare
    ended = typed(compare, tmp_path)
    if ended is None:
        pytest.skip("the command is not installed; python/test.sh runs this")
    assert ended.returncode == 0 and "loss" not in ended.stderr, ended.stderr
    assert "2" in ended.stdout and "ppo" in ended.stdout


def lines(folder):
    curve = folder / "curve.jsonl"
    return curve.read_text().splitlines() if curve.exists() else []

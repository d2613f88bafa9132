"""A script of your own over losses, seeds and settings: each run a process, each in its folder, for `niwaki compare`.

    python -m niwaki.sweep mine.py --seeds 8 loss=ppo loss=tempered:0.1 --out runs/sweep
    niwaki compare runs/sweep

The script takes its settings from `niwaki.settings` and hands them to `niwaki.train`. A key that is given twice has two values;
every combination is a run. Runs that are finished are not trained again, and runs that were cut off go on. `--print` prints the
commands, one a line, for a scheduler of your own: Slurm's arrays, Ray, xargs.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

__all__ = ["settings"]


def settings(**defaults: Any) -> dict[str, Any]:
    """What a script is told on its command line, `key=value` each, over its own defaults; a value is of its default's kind.

        told = niwaki.settings(loss="ppo", seed=0, out="runs/mine")
        niwaki.train(env, Net, **told, iterations=100)
    """
    found = dict(defaults)
    for said in sys.argv[1:]:
        key, equals, text = said.partition("=")
        if not equals or key not in defaults:
            near = difflib.get_close_matches(key, defaults, 1)
            mend = f"did you mean '{near[0]}'?" if near else f"write KEY=VALUE with one of {', '.join(defaults)}"
            raise SystemExit(f"{Path(sys.argv[0]).name}: unknown setting '{said}'; {mend}")
        try:
            found[key] = _read(text, defaults[key])
        except ValueError:
            raise SystemExit(f"{Path(sys.argv[0]).name}: {said}: expected {type(defaults[key]).__name__}") from None
    return found


def _read(text: str, like: Any) -> Any:
    if isinstance(like, bool):
        if text not in ("true", "false"):
            raise ValueError(text)
        return text == "true"
    return type(like)(text) if isinstance(like, (int, float, str)) else text


def commands(script: str, seeds: int, said: Sequence[str], out: str) -> list[tuple[Path, list[str]]]:
    """Every run's folder, and the command that makes it."""
    values: dict[str, list[str]] = {}
    for setting in said:
        key, equals, value = setting.partition("=")
        if not equals or key in ("seed", "out"):
            raise ValueError(f"'{setting}': write KEY=VALUE; seeds are --seeds, the folder is --out")
        if value in values.setdefault(key, []):
            raise ValueError(f"'{setting}' is given twice")
        values[key].append(value)
    found: dict[Path, list[str]] = {}
    for chosen in itertools.product(*([(key, value) for value in each] for key, each in values.items())):
        for seed in range(seeds):
            varied = [f"{key}={value}" for key, value in chosen if len(values[key]) > 1]
            # A folder's name has no characters that a shell or a file system knows.
            parts = [re.sub(r"[^\w.=+-]", "-", part) for part in varied] or ["runs"]
            folder = Path(out, ",".join(parts), str(seed))
            if folder in found:
                raise ValueError(f"two runs would share the folder {folder}; give settings that differ in letters or digits")
            each = [f"{key}={value}" for key, value in chosen]
            found[folder] = [sys.executable, script, *each, f"seed={seed}", f"out={folder}"]
    return list(found.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """What `python -m niwaki.sweep` does; the exit status."""
    parser = argparse.ArgumentParser("python -m niwaki.sweep", description=__doc__.split("\n")[0])
    parser.add_argument("script", help="takes its settings from niwaki.settings")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="a key that is given twice has two values")
    parser.add_argument("--seeds", type=int, default=8, help="paired seeds, from 0 [default: 8]")
    parser.add_argument("--out", default="runs/sweep", help="folder of all runs [default: runs/sweep]")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time [default: 1]")
    parser.add_argument("--print", action="store_true", dest="show", help="print the commands, one a line, and stop")
    asked = parser.parse_intermixed_args(arguments)
    if asked.seeds < 1 or asked.jobs < 1:
        parser.error("--seeds and --jobs must be at least 1")
    if not Path(asked.script).is_file():
        parser.error(f"{asked.script} is not a file")
    try:
        runs = commands(asked.script, asked.seeds, asked.settings, asked.out)
    except ValueError as error:
        parser.error(str(error))
    if asked.show:
        print("\n".join(shlex.join(command) for _, command in runs))
        return 0

    def work(run: tuple[Path, list[str]]) -> str | None:
        ended = subprocess.run(run[1], capture_output=True, text=True, check=False)
        said = ended.stderr.strip().splitlines()
        return None if ended.returncode == 0 else f"{run[0]}: {said[-1] if said else f'exit status {ended.returncode}'}"

    failed = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for done, fault in enumerate(pool.map(work, runs), 1):
            failed += [fault] if fault else []
            print(f"{done} of {len(runs)} runs" + (f", {len(failed)} failed" if failed else ""), file=sys.stderr)
    for fault in failed:
        print(f"niwaki: {fault}", file=sys.stderr)
    if not failed:
        print(f"niwaki compare {shlex.quote(asked.out)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

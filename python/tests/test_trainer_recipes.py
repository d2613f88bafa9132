"""The recipes of docs/python/trainers.md as they are printed: each is carried out against the formulas of its trainer."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")

import peers  # noqa: E402
from test_doors import RUN, tensors  # noqa: E402

TESTS = Path(__file__).resolve().parent
PAGE = (TESTS.parents[1] / "docs/python/trainers.md").read_text()


def blocks(section, kind):
    """The blocks of code of a section."""
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M).group(1)
    return re.findall(rf"```{kind}\n(.*?)```", text, re.S)


def short(*recipe):
    """Nobody types more than five lines."""
    assert sum(len(text.strip().splitlines()) for text in recipe) <= 5
    return recipe


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.setenv("NIWAKI_CORRECTION", "")
    monkeypatch.setenv("NIWAKI_ROUTING", "1")


def at(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_openrlhf(monkeypatch):
    (text,) = short(*blocks("OpenRLHF", "json"))
    hook = json.loads(text)
    peers.open_trainer("openrlhf", "formulas", monkeypatch)
    for name, value in hook["env_vars"].items():
        monkeypatch.setenv(name, value)
    # Ray calls it so, in each of its workers.
    at(hook["worker_process_setup_hook"])()
    from openrlhf.models.loss import PolicyLoss

    assert PolicyLoss.niwaki.correction.name == "tempered:0.1"


def test_prime_rl(monkeypatch):
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    (text,) = short(*blocks("prime-rl", "toml"))
    said = tomllib.loads(text)["trainer"]["loss"]
    door = peers.open_trainer("prime_rl", "formulas", monkeypatch)
    assert said["type"] == "custom" and at(said["import_path"]) is door.loss
    from prime_rl.trainer.rl.loss import LossInputs

    row = int(tensors()[4].sum(1).argmax())
    new, old, _, advantages, mask, _ = (part[row] for part in tensors())
    inputs = LossInputs(new, old, None, advantages, mask)
    assert at(said["import_path"])(inputs, **said["kwargs"]).loss != at(said["import_path"])(inputs, correction="ppo").loss


def test_slime(monkeypatch):
    (line,) = blocks("slime", "sh")
    (config,) = blocks("slime", "yaml")
    short(line, config)
    flags = dict(zip(shlex.split(line)[::2], shlex.split(line)[1::2]))
    door = peers.open_trainer("slime", "formulas", monkeypatch)
    assert flags["--loss-type"] == "custom_loss" and at(flags["--custom-loss-function-path"]) is door.loss
    ((name, value),) = [line.split(": ") for line in config.strip().splitlines()]
    seen = []
    monkeypatch.setattr(door, "_door", lambda *asked: seen.append(asked) or types.SimpleNamespace(shift=lambda whole, *_: whole))
    RUN["slime"](door, {name: value}, value)
    assert seen == [("tempered:0.1", None)]


def package(folder, name, text):
    place = folder / name.replace(".", "/")
    place.parent.mkdir(parents=True, exist_ok=True)
    for parent in name.split(".")[:-1]:
        folder = folder / parent
        (folder / "__init__.py").touch()
    place.with_suffix(".py").write_text(text)


def told(folder, *command):
    """What a process with a package in `folder` prints."""
    paths = os.pathsep.join([str(folder), str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run([sys.executable, *command], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_areal_in_a_worker(tmp_path, monkeypatch):
    (text,) = short(*blocks("AReaL", "yaml"))
    command = re.search(r"cmd: (.*)", text).group(1).split()
    assert command[0] == "python"
    monkeypatch.setenv("NIWAKI_CORRECTION", re.search(r'NIWAKI_CORRECTION: "(.*?)"', text).group(1))
    package(tmp_path, "areal.trainer.ppo.actor", "from twins import grpo_loss_fn, ppo_actor_loss_fn\nsapo_loss_fn = None\n")
    # What AReaL's own command would run, with the arguments that its scheduler adds.
    server = "import sys\nif __name__ == '__main__':\n    import areal.trainer.ppo.actor as actor\n"
    server += "    print(hasattr(actor.ppo_actor_loss_fn, 'niwaki'), *sys.argv[1:])\n"
    package(tmp_path, "areal.infra.rpc.rpc_server", server)
    assert told(tmp_path, *command[1:], "--port", "0") == ["True", "--port", "0"]


def test_areal_in_a_script(monkeypatch):
    (text,) = short(*blocks("AReaL", "py"))
    peers.open_trainer("areal", "formulas", monkeypatch)
    exec(text, {})
    import areal.trainer.ppo.actor as actor

    assert hasattr(actor.ppo_actor_loss_fn, "niwaki")


def test_nemo_rl(tmp_path):
    (line,), (text,) = blocks("NeMo-RL", "sh"), blocks("NeMo-RL", "py")
    short(line)
    short(text)
    command = line.split("python ")[1].split(" examples")[0].split()
    package(tmp_path, "nemo_rl.algorithms.loss.loss_functions", "from twins import ClippedPGLossConfig, ClippedPGLossFn\n")
    package(tmp_path, "nemo_rl.algorithms.grpo", "from nemo_rl.algorithms.loss.loss_functions import ClippedPGLossFn\n")
    script = tmp_path / "run_grpo.py"
    made = "import sys\nfrom nemo_rl.algorithms import grpo\nfrom nemo_rl.algorithms.loss.loss_functions import ClippedPGLossConfig\n"
    made += "made = grpo.ClippedPGLossFn(ClippedPGLossConfig())\nprint(__name__, made.door.correction.name, *sys.argv[1:])\n"
    script.write_text(made)
    assert told(tmp_path, *command, str(script), "--config", "a.yaml") == ["__main__", "tempered:0.1", "--config", "a.yaml"]
    script.write_text(text + made)
    assert told(tmp_path, str(script)) == ["__main__", "tempered:0.1"]


def test_nemo_rl_without_a_script_says_what_is_missing(tmp_path):
    package(tmp_path, "nemo_rl.algorithms.loss.loss_functions", "from twins import ClippedPGLossFn\n")
    with pytest.raises(AssertionError, match="name the script that trains"):
        told(tmp_path, "-m", "niwaki.nemo_rl")

"""Trainers whose losses the doors stand before: their own code, or its formulas written out (`twins`).

Where `NIWAKI_TRAINERS` names a folder with checkouts, `TRAINER/VERSION/…` each, the files with the loss are read from them. All
that these import beside is hollow: engines, launchers and devices that no loss needs.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
import types
from pathlib import Path

import torch
import twins

PACKAGES = {"openrlhf": "openrlhf", "areal": "areal", "slime": "slime", "prime_rl": "prime-rl", "nemo_rl": "nemo-rl"}
"""Module → distribution, whose name the checkouts' folder has, too."""

READ = {
    "openrlhf": ["openrlhf.models.loss", "openrlhf.models.utils"],
    "areal": [
        "areal.utils.functional", "areal.utils.functional.functional", "areal.trainer.ppo.actor", "areal.trainer.ppo.stats",
        "areal.utils.constants",
    ],
    "slime": [
        "slime.backends.megatron_utils.loss", "slime.backends.megatron_utils.cp_utils", "slime.utils.ppo_utils", "slime.utils.misc",
    ],
    "prime_rl": ["prime_rl.trainer.rl.loss"],
    "nemo_rl": [
        "nemo_rl.algorithms.loss.loss_functions", "nemo_rl.algorithms.loss.interfaces", "nemo_rl.algorithms.loss_functions",
        "nemo_rl.algorithms.utils",
    ],
}
"""Files that are read from a checkout."""

HOLLOW = ["deepspeed", "megatron", "torchdata", "uvloop", "einops", "jaxtyping", "beartype"]
"""Packages that they import beside their own."""


class Nothing:
    """Whatever is asked of it: an attribute, an item, a base of nothing, a decorator that changes nothing."""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __getitem__(self, key):
        return self

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __mro_entries__(self, bases):
        return ()

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)) else Nothing()


class Hollow(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class Checkout(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a trainer's modules: the listed ones in its files, all others hollow."""

    def __init__(self, name, root):
        self.name, self.root = name, root

    def find_spec(self, fullname, path=None, target=None):
        top = fullname.partition(".")[0]
        if top == self.name and fullname in READ[self.name]:
            place = self.root / fullname.replace(".", "/")
            for file, folder in ((place.with_suffix(".py"), None), (place / "__init__.py", [str(place)])):
                if file.exists():
                    return importlib.util.spec_from_file_location(fullname, file, submodule_search_locations=folder)
            return None
        if top == self.name or top in HOLLOW:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return Hollow(spec.name)

    def exec_module(self, module):
        pass


def checkouts(name):
    """The versions of a trainer that are there, and where."""
    folder = os.environ.get("NIWAKI_TRAINERS")
    folder = folder and Path(folder) / PACKAGES[name]
    return sorted(folder.iterdir()) if folder and folder.is_dir() else []


def sources():
    """Every trainer as it can be had here: `(trainer, version)`, where the version `formulas` is written out."""
    found = [(name, "formulas") for name in PACKAGES]
    return found + [(name, place.name) for name in PACKAGES for place in checkouts(name)]


def forget(name):
    for known in [known for known in sys.modules if known.partition(".")[0] in (name, *HOLLOW) or known == f"niwaki.{name}"]:
        if not isinstance(sys.modules[known], types.ModuleType) or known.partition(".")[0] not in HOLLOW or isinstance(sys.modules[known], Hollow):
            del sys.modules[known]


def compiled_as_it_is(*args, **kwargs):
    """In place of `torch.compile`, whose compiler a test of formulas need not wait for."""
    return args[0] if args and callable(args[0]) else lambda function: function


def open_trainer(name, version, monkeypatch):
    """Puts a trainer among the modules; returns its door, imported afresh."""
    forget(name)
    real = importlib.metadata.version
    told = "99" if version == "formulas" else version.lstrip("v")
    monkeypatch.setattr(torch, "compile", compiled_as_it_is)
    if version == "formulas":
        twins.put(name)
    else:
        root = next(place for place in checkouts(name) if place.name == version)
        inside = root / "src" if (root / "src" / name).is_dir() else root
        monkeypatch.setattr(sys, "meta_path", [Checkout(name, inside), *sys.meta_path])
        if name == "prime_rl":
            twins.put_prime_configs()
        if name == "areal":
            # Its own file of estimators needs an installation of much more.
            module = Hollow("areal.utils.data")
            module.KLEstimator = twins.KLEstimator
            sys.modules["areal.utils.data"] = module
    newest = {}

    def found(package):
        return newest.get("told", told) if package == PACKAGES[name] else real(package)

    monkeypatch.setattr(importlib.metadata, "version", found)
    if version in ("formulas", "head"):
        newest["told"] = NEWEST[name]
    return importlib.import_module(f"niwaki.{name}")


NEWEST = {"openrlhf": "0.11.2", "areal": "1.0.4", "slime": "0.3.1", "prime_rl": "0.8.0", "nemo_rl": "0.7.0"}

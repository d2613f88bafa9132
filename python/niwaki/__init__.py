"""The correction that PPO drops, where RL people live.

| module | what it answers |
|---|---|
| `niwaki.correction` | objective, exact cotangent, two channels and diagnostics of any loss of the family, on NumPy arrays |
| `niwaki.oracle` | any loss measured exactly, without sampling, on a process small enough to enumerate |
| `niwaki.advise` | whether stale data costs a run its signal: from arrays, DataFrames, files or a live run |
| `niwaki.runs` | runs out of their folders: standing, endpoints, curves, as every page reads them |
| `niwaki.stats` | paired comparisons, exact sign tests, bootstrap intervals, rliable's aggregates |
| `niwaki.shop` | shops: read, generate, solve, verify, draw |
| `niwaki.torch` | the same loss as a differentiable PyTorch function on the tensors' own device |
| `niwaki.jax` | the same as a JAX function |
| `niwaki.trl` | TRL's GRPOTrainer with the correction and its warmup, and a callback that advises live |
| `niwaki.verl` | verl's policy loss with the correction, through verl's registry |
| `niwaki.gym` | shops under construction as a Gymnasium `VectorEnv` |
| `niwaki.load`, `niwaki.policy` | trained policies: schedules, log-probs, tensors, plain PyTorch code |
| `niwaki.Run` | the folder of a run, for any trainer: curve, checkpoint, TensorBoard, page |
| `niwaki.train`, `niwaki.settings` | your environment, policy, loss and optimizer, trained; and swept by `python -m niwaki.sweep` |

Modules are imported when they are first used; NumPy is the only dependency that is always needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._native import __version__

if TYPE_CHECKING:
    from . import advise, correction, gym, jax, oracle, policy, run, runs, shop, stats, sweep, torch, trl, verl
    from .policy import load
    from .run import Run
    from .sweep import settings
    from .train import train

_MODULES = ("advise", "correction", "gym", "jax", "oracle", "policy", "run", "runs", "shop", "stats") + (
    "sweep", "torch", "train", "trl", "verl",
)  # fmt: skip
_NAMES = {"load": "policy", "Run": "run", "settings": "sweep"}
"""What stands here of a module's own names."""

__all__ = ["__version__", *_NAMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _NAMES:
        return getattr(importlib.import_module(f".{_NAMES[name]}", __name__), name)
    raise AttributeError(f"module 'niwaki' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""A trained policy out of its run's folder: schedules, log-probs, tensors, and plain PyTorch code.

    import niwaki

    policy = niwaki.load("runs/flow-shop")                      # a folder that `niwaki train` has written
    solutions = policy.schedule(instances, samples=128)         # of niwaki.shop.Instance
    policy.export("exported")                                   # policy.py, weights.npz, policy.json: torch alone

Nothing trains here: the forward pass runs in the Rust engine.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._arrays import whole
from .shop import Instance, Solution, _solution

__all__ = ["Scored", "SequencePolicy", "ShopPolicy", "load"]


@dataclass(frozen=True)
class Scored:
    """Constructions of one instance as a policy sees and scores them."""

    log_probs: np.ndarray
    """Of the choices, `[constructions, steps]`."""
    features: np.ndarray
    """Of the instance, `[candidates, features]`."""
    context: np.ndarray
    """The state before each step, `[constructions, steps, context]`."""
    open: np.ndarray
    """Which candidates could be chosen, `[constructions, steps, candidates]`."""
    makespans: np.ndarray
    """`[constructions]`."""


class _Policy:
    """What every policy has."""

    kind: str

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def iteration(self) -> int:
        """Iterations of training behind it."""
        return self._native.iteration

    @property
    def tensors(self) -> dict[str, np.ndarray]:
        """The parameters by name, in the precision that they were trained in; a weight is `[in, out]`."""
        kind = np.float64 if self.kind == "tabular" else np.float32
        return {name: values.reshape(shape).astype(kind) for name, shape, values in self._native.tensors()}

    def _sizes(self) -> dict[str, Any]:
        raise NotImplementedError

    def export(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the policy as plain PyTorch: `policy.py` (no import of this package), `weights.npz`, `policy.json`.

        `policy.py` has a function `load(folder)` that returns the module with its weights.
        """
        to = Path(folder)
        to.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(__file__).parent / "_export" / f"{self.kind}.py", to / "policy.py")
        np.savez(to / "weights.npz", allow_pickle=False, **self.tensors)
        (to / "policy.json").write_text(json.dumps({"kind": self.kind} | self._sizes(), indent=1) + "\n")
        return to

    def to_torch(self) -> Any:
        """The policy as a `torch.nn.Module` with its weights, the same code as `export` writes."""
        import torch

        code = importlib.import_module(f"niwaki._export.{self.kind}")
        weights = {name: torch.from_numpy(value) for name, value in self.tensors.items()}
        make = getattr(code, self.kind.capitalize())
        names = {"pointer": ("heads", "residual", "bound"), "causal": ("heads",)}.get(self.kind, ())
        return make(weights, *(self._sizes()[name] for name in names))


class ShopPolicy(_Policy):
    """A pointer policy, which schedules the shops that it was trained for."""

    kind = "pointer"

    def _sizes(self) -> dict[str, Any]:
        return dict(zip(("heads", "residual", "bound"), self._native.sizes(), strict=True))

    def schedule(
        self,
        instances: Instance | Sequence[Instance],
        *,
        samples: int = 128,
        beam: int = 0,
        multistart: bool = False,
        seed: int = 0,
    ) -> list[Solution]:
        """The best schedule that the policy finds for each instance; every one has passed the checker.

        Args:
            samples: schedules drawn by chance, beside the likeliest one.
            beam: width of a beam search; 0 for none.
            multistart: whether to take the likeliest schedule from every first choice too.

        Raises ValueError for an instance that the policy was not trained for.
        """
        for name, value in (("samples", samples), ("beam", beam), ("seed", seed)):
            if value < 0:
                raise ValueError(f"{name} is {value}; give at least 0")
        found = []
        for instance in [instances] if isinstance(instances, Instance) else instances:
            told, _, _ = self._native.schedule(instance._native, samples, beam, multistart, seed)
            found.append(_solution(instance, None, *told))
        return found

    def score(self, instance: Instance, choices: Any) -> Scored:
        """Log-probs of given constructions, and what the network read.

        Shapes: choices `[constructions, steps]`: the candidate chosen at each step (in a flow shop the job).
        """
        return Scored(**self._native.score(instance._native, whole("choices", choices, np.int32, "[constructions, steps]")))


class SequencePolicy(_Policy):
    """A policy over token sequences: tabular, bag or causal."""

    def __init__(self, native: Any) -> None:
        super().__init__(native)
        self.kind = native.kind
        self.vocab, self.horizon, self._heads = native.sizes()

    def _sizes(self) -> dict[str, Any]:
        return {"vocab": self.vocab, "horizon": self.horizon, "heads": self._heads}

    def score(self, tokens: Any) -> tuple[np.ndarray, np.ndarray]:
        """Log-probs of the tokens, `[sequences, steps]`, and which were open, `[sequences, steps, vocab]`.

        Shapes: tokens `[sequences, horizon]`, negative after a token that ends a sequence.
        """
        given = whole("tokens", tokens, np.int32, "[sequences, steps]")
        if given.shape[1] != self.horizon:
            raise ValueError(f"tokens has shape {given.shape}; pass [sequences, {self.horizon}]")
        log_probs, open = self._native.score(given)
        return log_probs.reshape(given.shape), open.reshape(*given.shape, self.vocab)


def load(folder: str | os.PathLike[str]) -> ShopPolicy | SequencePolicy:
    """The policy of a run's folder, as its last checkpoint has it.

    Raises ValueError with a sentence that names the file where the folder holds no run or none that was saved.
    """
    native = _native.load_policy(os.fspath(folder))
    return ShopPolicy(native) if isinstance(native, _native.ShopPolicy) else SequencePolicy(native)

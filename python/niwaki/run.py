"""A run's folder written from Python, as `niwaki train` writes its own: curve, checkpoint, TensorBoard, page, resume.

    >>> import tempfile
    >>> from niwaki.run import Run
    >>> with Run(tempfile.mkdtemp(), task="coin", iterations=3, loss="ppo", rate=0.1) as run:
    ...     for iteration in range(run.done, run.iterations):
    ...         run.log(reward=iteration / 2, **{"charts/heads": 0.5})
    ...     run.finish().name
    'index.html'

`niwaki compare` sets such runs beside others, those of other seeds and settings included. Nothing here needs a trainer of ours.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

import numpy as np

from . import _native
from ._arrays import array
from .correction import Correction, Diagnostics, evaluate

__all__ = ["Run", "episodes"]

Scalar = Union[bool, int, float, str]

_KINDS = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16"} | {
    "int8": "I8", "uint8": "U8", "bool": "BOOL", "bfloat16": "BF16", "uint16": "U16", "uint32": "U32", "uint64": "U64"
}
"""Kinds of numbers, as NumPy and PyTorch call them and as safetensors does."""


class Run:
    """One run in its folder: what it is, a line per iteration, what it goes on from.

    Args:
        folder: made where it is missing. A run that was cut off is opened at its last checkpoint (`done`); another run's folder
            is refused.
        task: what is played.
        iterations: how many lines the curve has in the end.
        seed: runs that differ in their seed alone are one group of `niwaki compare`.
        loss: the name of the loss.
        reuse: epochs on each batch.
        code: a digest of the code that trains; a run is not resumed by other code unless `changed`.
        settings: whatever else sets this run apart: numbers, names, flags.

    Raises ValueError with a sentence, OSError where the disk refuses.
    """

    policy: Any = None
    """The policy, where `niwaki.train` has trained one."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        task: str,
        iterations: int,
        seed: int = 0,
        loss: str = "ppo",
        reuse: int = 1,
        code: str | None = None,
        changed: bool = False,
        **settings: Scalar,
    ) -> None:
        self.folder, self.iterations = Path(folder), _whole("iterations", iterations, 1)
        own = dict(settings) if code is None else {**settings, "code": code}
        lines = [f"seed = {_whole('seed', seed, 0)}", f"iterations = {self.iterations}"]
        lines += ["[task]", f"kind = {_toml('task', task)}", "[update]", f"correction = {_toml('loss', loss)}"]
        lines += [f"reuse = {_whole('reuse', reuse, 1)}", "[own]"]
        lines += [f"{_quoted(name)} = {_toml(name, own[name])}" for name in sorted(own)]
        self._native = _native.RunFolder(self.folder, "\n".join(lines), changed)
        try:
            # What does not parse as a member measures its batches as PPO.
            self._measured_as = Correction.parse(loss)
        except ValueError:
            self._measured_as = Correction.ppo()

    @property
    def done(self) -> int:
        """Iterations done: where to go on."""
        return self._native.done()

    @property
    def finished(self) -> bool:
        """Whether the run was finished before."""
        return self._native.finished()

    def log(
        self,
        *,
        reward: float,
        rewarded: bool | None = None,
        eta: float | None = None,
        greedy: float | None = None,
        entropy: float = 0.0,
        gradient_norm: float = 0.0,
        batch: Mapping[str, Any] | None = None,
        **numbers: float,
    ) -> Diagnostics | None:
        """Adds the next iteration to curve and TensorBoard.

        Args:
            reward: mean return of the batch.
            rewarded: whether any trajectory was rewarded; whether `reward` is not 0 where None.
            eta, greedy: expected return, and the likeliest trajectory's, where they are known.
            batch: `logprobs`, `old_logprobs`, `advantages` and, where there is one, `mask`, as `niwaki.correction.evaluate`
                takes them; drift, effective sample size, clipping and dose are measured on it, and returned.
            numbers: anything else, by TensorBoard's tags.
        """
        line: dict[str, Any] = {"batch_reward": reward, "entropy": entropy, "gradient_norm": gradient_norm}
        line |= {"eta": eta, "greedy": greedy}
        line = {name: _number(name, value, self.done) for name, value in line.items() if value is not None}
        line |= {"zero_signal": 0.0, "drift": 0.0, "clip_fraction": 0.0, "prefix_ess": 1.0, "ess": 1.0, "dose": 0.0}
        line |= {"rollout_dose": 0.0, "kl": 0.0, "first": [], "last": [], "iteration": 0, "zero_reward": not (reward != 0.0 if rewarded is None else rewarded)}
        measured = None
        if batch is not None:
            measured = evaluate(**batch, correction=self._measured_as).diagnostics
            names = ("zero_signal", "drift", "clip_fraction", "ess", "dose", "rollout_dose")
            line |= {name: _held(getattr(measured, name)) for name in names}
            line |= {"kl": _held(measured.kl_k3), "prefix_ess": _held(measured.prefix_ess[-1])}
        if numbers:
            line["own"] = {name: _number(name, value, self.done) for name, value in numbers.items()}
        self._native.push(json.dumps(line))
        return measured

    def save(self, tensors: Mapping[str, Any], **state: Any) -> None:
        """Saves what the run goes on from: tensors of NumPy or PyTorch by name, and whatever JSON can say beside them."""
        kept = [(name, *_bytes(name, tensor)) for name, tensor in sorted(tensors.items())]
        try:
            said = json.dumps(state, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"state: {error}; keep numbers, names and lists") from None
        self._native.save(kept, said)

    def restore(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """What was saved last, or None. Tensors of bfloat16 come as their bits, uint16."""
        found = self._native.restore()
        if found is None:
            return None
        kinds = {kind: name for name, kind in _KINDS.items()} | {"BF16": "uint16"}
        read = lambda kind, shape, raw: np.frombuffer(raw, kinds[kind]).reshape(shape).copy()
        return {name: read(*tensor) for name, *tensor in found[0]}, json.loads(found[1])

    def finish(self, device: str = "cpu") -> Path | None:
        """Says that the run is done and writes its page; returns its place, or None where a file of another program has it."""
        return self._native.finish(device)

    def close(self) -> None:
        """Lets go of the folder, which one process writes at a time."""
        self._native.close()

    def curve(self) -> list[dict[str, Any]]:
        """The lines of the curve so far."""
        return [json.loads(line) for line in (self.folder / "curve.jsonl").read_text().splitlines()]

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def episodes(starts: Any, *values: Any) -> list[list[np.ndarray]]:
    """Values of steps, cut into trajectories: a prefix does not reach back into the episode before.

    Shapes:
        starts: `[steps, lanes]`, true where an observation is the first of an episode.
        values: `[steps, lanes]` each; a list of one array per trajectory comes back for each.
    """
    first = array("starts", starts).astype(bool)
    if first.ndim != 2 or first.size == 0:
        raise ValueError(f"starts has shape {first.shape}; pass [steps, lanes], not empty")
    found = []
    for place, value in enumerate(values):
        each = array(f"values[{place}]", value)
        if each.shape != first.shape:
            raise ValueError(f"values[{place}] has shape {each.shape} where starts has {first.shape}")
        lanes = zip(np.ascontiguousarray(each.T), first.T)
        cut = [np.split(lane, np.flatnonzero(begin[1:]) + 1) for lane, begin in lanes]
        found.append([np.ascontiguousarray(part) for parts in cut for part in parts])
    return found


def _bytes(name: str, value: Any) -> tuple[str, list[int], bytes]:
    """A tensor as a checkpoint keeps it; what is not finite is refused, since nothing goes on from it."""
    if type(value).__module__.partition(".")[0] == "torch":
        import torch

        found = value.detach().cpu().contiguous()
        kind, shape = str(found.dtype).removeprefix("torch."), list(found.shape)
        finite = not found.is_floating_point() or bool(torch.isfinite(found).all())
        raw = found.reshape(-1).view(torch.uint8).numpy().tobytes()
    else:
        found = np.ascontiguousarray(value)
        found = found.astype(found.dtype.newbyteorder("<"), copy=False)
        kind, shape = found.dtype.name, list(np.shape(value))
        finite = found.dtype.kind != "f" or bool(np.isfinite(found).all())
        raw = found.tobytes()
    if kind not in _KINDS:
        raise ValueError(f"tensor {name} is {kind}; keep {', '.join(_KINDS)}")
    if not finite:
        raise ValueError(f"tensor {name} is no longer finite; a lower learning rate may help")
    return _KINDS[kind], shape, raw


def _number(name: str, value: Any, done: int) -> float:
    found = float(value)
    if not math.isfinite(found):
        raise ValueError(f"{name} is {found} in iteration {done + 1}; log finite numbers")
    return found


def _held(value: float) -> float:
    """What overflowed is the largest number, as in our own curves."""
    return float(value) if math.isfinite(value) else float(np.finfo(np.float64).max)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; give a whole number from {least} up")
    return int(value)


def _quoted(text: str) -> str:
    """A text as TOML quotes it, which has no surrogate pairs and no bare delete."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(name: str, value: Any) -> str:
    """A setting as the spec holds it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        # TOML wants a point or an exponent.
        text = repr(value)
        return text if re.search(r"[.e]", text) else f"{text}.0"
    if isinstance(value, str):
        return _quoted(value)
    raise ValueError(f"{name} is {value!r}; a setting is a finite number, a name or a flag")

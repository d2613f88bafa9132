"""What comes in: arrays of the caller's, checked under the names of the caller's arguments.

Every refusal names the argument and the mend. Nothing is copied that is already a contiguous float32 or float64 array.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def array(name: str, value: Any, narrow: bool = False) -> np.ndarray:
    """The argument as a NumPy array, without a copy where it is one (or a tensor on the CPU). `narrow`: floats of 16 bits are
    taken as they are, widened, where others refuse them."""
    device = getattr(value, "device", None)
    if device is not None and type(value).__module__.partition(".")[0] == "torch":
        if device.type != "cpu":
            raise TypeError(f"{name} is a tensor on {device}; pass {name}.cpu(), or use niwaki.torch on the device")
        if str(value.dtype) in ("torch.bfloat16", "torch.float16"):
            if narrow:
                return value.detach().float().numpy()
            raise TypeError(f"{name} is {value.dtype}, which keeps two or three digits; pass {name}.float()")
        value = value.detach().numpy()
    try:
        found = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} is not an array of numbers: {error}") from None
    if found.dtype == object:
        raise TypeError(f"{name} holds objects; pass numbers in an array, or a list of one array per trajectory")
    return found


def floats(name: str, value: Any, narrow: bool = False) -> np.ndarray:
    """The argument as a contiguous array of float32 or float64; whole numbers become float64, and with `narrow` floats of 16
    bits float32, and strides are laid out."""
    found = array(name, value, narrow)
    if found.dtype.kind in "iub":
        found = found.astype(np.float64)
    if narrow and (found.dtype == np.float16 or found.dtype.name == "bfloat16"):
        found = found.astype(np.float32)
    if found.dtype == np.float16:
        raise TypeError(f"{name} is float16, which keeps three digits; pass float32 or float64")
    if found.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} is {found.dtype}; pass float32 or float64")
    if not found.flags.c_contiguous:
        if narrow:
            return np.ascontiguousarray(found)
        raise ValueError(f"{name} is not contiguous; pass np.ascontiguousarray({name})")
    return found


def flags(name: str, value: Any, copied: bool = False) -> np.ndarray:
    """The argument as a contiguous array of booleans; 0 and 1 are taken for them. `copied`: strides are laid out, where others
    refuse them."""
    found = array(name, value)
    if found.dtype != np.bool_:
        taken = found.astype(np.bool_)
        if found.dtype.kind not in "iuf" or not np.array_equal(taken, found):
            raise TypeError(f"{name} holds other values than False and True (or 0 and 1)")
        found = taken
    if copied:
        found = np.ascontiguousarray(found)
    if not found.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous; pass np.ascontiguousarray({name})")
    return found


def whole(name: str, value: Any, kind: type[np.integer], axes: str) -> np.ndarray:
    """The argument as a contiguous array of whole numbers of a kind; `axes` are its sizes in words, `[jobs, machines]`."""
    found = array(name, value)
    if found.ndim != axes.count(",") + 1 or found.dtype.kind not in "iu" or found.size == 0:
        raise ValueError(f"{name} has shape {found.shape} and type {found.dtype}; pass whole numbers, {axes}, not empty")
    for outside in (found.min(), found.max()):
        if not np.iinfo(kind).min <= outside <= np.iinfo(kind).max:
            raise ValueError(f"{name} holds {outside}; pass numbers from {np.iinfo(kind).min} to {np.iinfo(kind).max}")
    return np.ascontiguousarray(found, kind)


def ragged(value: Any) -> bool:
    """Whether the argument is one array per trajectory."""
    return isinstance(value, (list, tuple)) and any(np.ndim(part) > 0 for part in value)

"""A loss as a function of log-ratios and advantages in NumPy: its terms and their derivatives, for the exact oracle.

`niwaki oracle --loss mine.py:fn` runs this file as a program beside it, and `niwaki.oracle` calls it; nothing here needs the
package. A function takes log-ratios `[sequences, steps]` and advantages of that shape and returns the terms of its objective
(to be maximised), of that shape.
"""

import difflib
import importlib.util
import os
import struct
import sys

import numpy as np

STEP = 1e-6
"""Of the central differences: derivatives are right to about nine digits, and a kink matters to what lies this close to it."""


class LossError(ValueError):
    """What is wrong with a function, in a sentence."""


def terms(function, name, ell, advantage):
    """Terms, their derivatives by the step's own log-ratio, and what the other steps' terms say of it, `[sequences, steps]`."""
    value = _asked(function, name, ell, advantage)
    own, routed = np.zeros_like(value), np.zeros_like(value)
    for step in range(ell.shape[1]):
        moved = []
        for away in (STEP, -STEP):
            there = ell.copy()
            there[:, step] += away
            moved.append(_asked(function, name, there, advantage))
        slope = (moved[0] - moved[1]) / (2.0 * STEP)
        own[:, step] = slope[:, step]
        routed[:, step] = slope.sum(1) - slope[:, step]
    return value, own, routed


def _asked(function, name, ell, advantage):
    # A function may write into what it is given.
    found = function(ell.copy(), advantage.copy())
    try:
        found = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise LossError(f"loss '{name}' returned {type(found).__name__}; return an array of numbers") from None
    if found.shape != ell.shape:
        raise LossError(f"loss '{name}' returned shape {found.shape} for log-ratios of {ell.shape}; return a term for each step")
    if not np.isfinite(found).all():
        at = np.argwhere(~np.isfinite(found))[0]
        raise LossError(f"loss '{name}' returned {found[tuple(at)]} where the log-ratio is {ell[tuple(at)]:.6g}; return finite terms")
    return found


def load(place, name):
    """The function of a file."""
    if not os.path.isfile(place):
        raise LossError(f"{place} is not a file")
    spec = importlib.util.spec_from_file_location("loss", place)
    if spec is None:
        raise LossError(f"{place} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        known = [each for each, thing in vars(module).items() if callable(thing) and not each.startswith("_")]
        near = difflib.get_close_matches(name, known, 1)
        mend = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(known) or 'none'}"
        raise LossError(f"{place} has no function '{name}'; {mend}")
    return function


def said(error):
    """An error in one line, with the line of the user's file that raised it."""
    text = " ".join(str(error).split())
    if isinstance(error, LossError):
        return text
    place, here, last = error.__traceback__, sys._getframe().f_code.co_filename, ""
    while place is not None:
        file = place.tb_frame.f_code.co_filename
        if file != here and os.path.isfile(file):
            last = f"{os.path.basename(file)}, line {place.tb_lineno}: "
        place = place.tb_next
    return f"{last}{type(error).__name__}: {text}"


def serve(place, name):
    """Answers questions on standard input until it ends: two counts, log-ratios, advantages; then three arrays, or a fault."""
    # What the user's code prints goes beside the answers.
    answers, questions = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)

    def tell(fault, *arrays):
        text = fault.encode()
        answers.write(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays))
        answers.flush()

    try:
        function = load(place, name)
    except BaseException as error:
        tell(said(error))
        return
    tell("")
    while len(head := questions.read(16)) == 16:
        rows, steps = struct.unpack("<QQ", head)
        whole = np.frombuffer(questions.read(16 * rows * steps)).reshape(2, rows, steps)
        try:
            with np.errstate(all="ignore"):
                found = terms(function, name, whole[0], whole[1])
        except KeyboardInterrupt:
            return
        except Exception as error:
            tell(said(error))
        else:
            tell("", *found)


if __name__ == "__main__":
    serve(*sys.argv[1:3])

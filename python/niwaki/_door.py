"""What the doors of trainers share: the members that go through, the shift of a trainer's log-probs, and how a process that the
user does not start comes to know them."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import Any

from ._amplification import Watch
from .correction import Correction

CORRECTION, ROUTING = "NIWAKI_CORRECTION", "NIWAKI_ROUTING"


def multiplying(correction: str | Correction, place: str, alone: bool = False) -> Correction:
    """The member by name, if it goes through a door; `place` is the loss that it multiplies the ratio in, `alone` says that this
    is given one trajectory at a time."""
    member = Correction.parse(correction)
    rule = member.rule
    if rule.form != "multiply" or rule.growing_clip or rule.dual < float("inf"):
        raise ValueError(f"correction '{member}' does not multiply the ratio inside {place}")
    if alone and (rule.self_normalised or rule.ess_floor is not None or rule.amplification is not None):
        raise ValueError(f"correction '{member}' reads the whole batch, and {place} is given one trajectory at a time")
    return member


def asked(correction: str | Correction | None, routing: bool | None) -> tuple[str | Correction, bool]:
    """What was given, else what the environment says, else `tempered:0.1` with both channels. What has a name is left in the
    environment, for processes that this one starts."""
    if correction is None:
        correction = os.environ.get(CORRECTION) or "tempered:0.1"
    if routing is None:
        text = os.environ.get(ROUTING, "1")
        if text not in ("0", "1"):
            raise ValueError(f"{ROUTING} is {text!r}; write 1, or 0 to detach the factor")
        routing = text == "1"
    member = Correction.parse(correction)
    if not member.own:
        os.environ |= {CORRECTION: member.name, ROUTING: str(int(routing))}
    return correction, routing


def after(name: str, do: Callable[[Any], None]) -> None:
    """Does it to a module: now if it was imported, else right after it is. Nothing is imported for it."""
    if name in sys.modules:
        do(sys.modules[name])
    else:
        sys.meta_path.insert(0, _After(name, do))


class _After(MetaPathFinder):
    """Finds a module where the others find it, once."""

    def __init__(self, name: str, do: Callable[[Any], None]) -> None:
        self.name, self.do = name, do

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executed(module: Any) -> None:
                execute(module)
                self.do(module)

            spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


class Door:
    """One correction before a trainer's own loss."""

    def __init__(self, correction: Correction, routing: bool = True) -> None:
        self.correction, self.routing = correction, routing
        self._watch = Watch()

    def shift(self, logprobs: Any, old: Any, mask: Any, advantages: Any = None, clip: Any = None, cu_seqlens: Any = None) -> Any:
        """`niwaki.torch.corrected_logprobs`, and a word where the gradient of the batch becomes long. A batch without tokens, as
        ranks may have, is left as it is."""
        from ._packed import Rows
        from .torch import corrected_logprobs

        if sum(map(len, logprobs)) == 0 if isinstance(logprobs, list) else logprobs.numel() == 0:
            return logprobs
        rows = Rows.of(logprobs, cu_seqlens)
        if rows is not None:
            logprobs, old, mask = rows.pad("logprobs", logprobs), rows.pad("old_logprobs", old), rows.mask(mask)
            advantages = None if advantages is None else rows.pad("advantages", advantages)
        self.look(logprobs, old, mask, advantages, clip)
        shifted = corrected_logprobs(logprobs, old, mask, correction=self.correction, routing=self.routing)
        return shifted if rows is None else rows.back(shifted)

    def look(self, logprobs: Any, old: Any, mask: Any, advantages: Any, clip: Any) -> None:
        """Warns once where the correction more than doubles the gradient of a batch that is trained on."""
        from .torch import watch_amplification

        if advantages is None or not logprobs.requires_grad:
            return
        batch = (logprobs.detach(), old, advantages, mask)
        watch_amplification(self._watch, self.correction, *batch, clip=clip, routing=self.routing, stacklevel=3)

"""How much longer a correction makes the gradient of a batch, and the warning where that is more than learning rates forgive.

With an advantage that is constant along a trajectory (GRPO's group-relative one), the routed channel credits each step with
every later one: step `i` of `T` counts `1 + α(T − i)` times, on fresh data too.
"""

from __future__ import annotations

import math
import warnings

LIMIT = 2.0
"""Above this ratio of norms a run is told."""


class AmplificationWarning(UserWarning):
    """A correction makes the gradient of a batch much longer than PPO's."""


class Watch:
    """Measures the batches of a run until it has warned once: the first, the second, the fourth and so on, since every
    look waits for the device."""

    def __init__(self) -> None:
        self.batches = 0
        self.said = False

    def due(self) -> bool:
        """Counts a batch, and says whether it is measured."""
        if self.said:
            return False
        self.batches += 1
        return self.batches & (self.batches - 1) == 0

    def tell(self, correction: object, figure: float, steps: int, stacklevel: int) -> None:
        """Warns where the figure, the ratio of the norms on a batch of so many steps, is above the limit."""
        if not (math.isfinite(figure) and figure > LIMIT):
            return
        self.said = True
        warnings.warn(
            f"correction '{correction}' multiplies the norm of this batch's per-token coefficients by {figure:.3g} ({steps} steps): "
            "with an advantage constant along a trajectory of T steps, step i counts 1 + α(T − i) times; "
            "lower α or the learning rate, give advantages per step, or pass routing=False",
            AmplificationWarning,
            stacklevel=stacklevel + 1,
        )


WATCHES: dict[str, Watch] = {}
"""Of the doors that have no object of a run: one per member that is used in this process."""

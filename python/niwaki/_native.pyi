"""The compiled half; use the modules around it."""

from typing import Any

import numpy as np

__version__: str

def parse(text: str) -> tuple[str, str, dict[str, Any]]: ...
def members() -> list[tuple[str, str, str, list[tuple[str, float | None]]]]: ...
def alpha_for_drift(drift: float) -> float: ...

class Surrogate:
    def __new__(
        cls, correction: str, clip: tuple[float, float, float | None] | None, routing: bool, trajectories: bool
    ) -> Surrogate: ...
    def evaluate_f32(
        self, batch: Any
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, dict[str, Any], dict[str, Any]]: ...
    def evaluate_f64(
        self, batch: Any
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, dict[str, Any], dict[str, Any]]: ...

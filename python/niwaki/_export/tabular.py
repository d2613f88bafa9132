"""A table of logits, one row per prefix, in plain PyTorch.

Needs torch and NumPy alone. `load(folder)` reads the weights that lie beside this file.
"""

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn


class Tabular(nn.Module):
    """Log-probabilities of every token at every step of some sequences.

    `logits` is `[prefixes, vocab]`, prefixes breadth first: the row after token `a` in row `r` is `vocab · r + 1 + a`.
    """

    logits: Tensor

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        for name, value in weights.items():
            self.register_parameter(name, nn.Parameter(value.clone()))

    def forward(self, tokens: Tensor, open: Tensor | None = None) -> Tensor:
        """Log-probabilities of every token at every step, `[sequences, steps, vocab]`.

        Shapes: tokens `[sequences, steps]`, negative after an end; open `[sequences, steps, vocab]`.
        """
        vocab = self.logits.shape[1]
        row, rows = torch.zeros_like(tokens[:, 0]).long(), []
        for step in range(tokens.shape[1]):
            rows.append(row)
            row = (vocab * row + 1 + tokens[:, step].clamp(min=0)).clamp(max=self.logits.shape[0] - 1)
        logits = self.logits[torch.stack(rows, 1)]
        if open is not None:
            logits = logits.masked_fill(open == 0, -math.inf)
        return logits.log_softmax(-1)


def load(folder: str | Path) -> Tabular:
    """The policy of an exported folder."""
    with np.load(Path(folder) / "weights.npz") as weights:
        return Tabular({name: torch.from_numpy(weights[name]) for name in weights.files})

"""A perceptron on the bag of earlier tokens in plain PyTorch.

Needs torch and NumPy alone. `load(folder)` reads the weights that lie beside this file.
"""

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn


class Bag(nn.Module):
    """Log-probabilities of every token at every step of some sequences.

    Parameters are named as their run saved them, with dots written as underscores; a weight is `[in, out]`.
    """

    tokens_weight: Tensor
    positions_weight: Tensor
    head_weight: Tensor
    head_bias: Tensor
    steps_bias: Tensor

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        for name, value in weights.items():
            self.register_parameter(name.replace(".", "_"), nn.Parameter(value.clone()))

    def forward(self, tokens: Tensor, open: Tensor | None = None) -> Tensor:
        """Log-probabilities of every token at every step, `[sequences, steps, vocab]`.

        Shapes: tokens `[sequences, steps]`, negative after an end; open `[sequences, steps, vocab]`.
        """
        vocab, steps = self.tokens_weight.shape[0], self.positions_weight.shape[0]
        chosen = nn.functional.one_hot(tokens.clamp(min=0).long(), vocab) * (tokens >= 0)[..., None]
        # How often each token was chosen before a step, over the horizon.
        counts = (chosen.cumsum(1) - chosen).to(self.tokens_weight.dtype) / steps
        hidden = torch.tanh(counts @ self.tokens_weight + self.positions_weight)
        logits = hidden @ self.head_weight + self.head_bias + self.steps_bias
        if open is not None:
            logits = logits.masked_fill(open == 0, -math.inf)
        return logits.log_softmax(-1)


def load(folder: str | Path) -> Bag:
    """The policy of an exported folder."""
    with np.load(Path(folder) / "weights.npz") as weights:
        return Bag({name: torch.from_numpy(weights[name]) for name in weights.files})

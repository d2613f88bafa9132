"""A causal transformer over token sequences in plain PyTorch.

Needs torch and NumPy alone. `load(folder)` reads the weights that lie beside this file.
"""

import json
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn


class Causal(nn.Module):
    """Log-probabilities of every token at every step of some sequences.

    Parameters are named as their run saved them, with dots written as underscores; a weight is `[in, out]`.
    """

    def __init__(self, weights: dict[str, Tensor], heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.blocks = sum(name.endswith("attention.in.weight") for name in weights)
        for name, value in weights.items():
            self.register_parameter(name.replace(".", "_"), nn.Parameter(value.clone()))

    def weight(self, name: str) -> Tensor:
        return self.get_parameter(name.replace(".", "_"))

    def norm(self, name: str, x: Tensor) -> Tensor:
        return nn.functional.layer_norm(x, x.shape[-1:], self.weight(f"{name}.gain"), self.weight(f"{name}.bias"), 1e-5)

    def block(self, name: str, x: Tensor) -> Tensor:
        """A pre-norm block in which every step sees those before it and itself."""
        mixed = self.norm(f"{name}.norm1", x) @ self.weight(f"{name}.attention.in.weight")
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in mixed.chunk(3, -1))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        attended = (scores.masked_fill(later, -math.inf).softmax(-1) @ value).transpose(1, 2).flatten(-2)
        x = x + attended @ self.weight(f"{name}.attention.out.weight")
        raised = self.norm(f"{name}.norm2", x) @ self.weight(f"{name}.up.weight") + self.weight(f"{name}.up.bias")
        return x + nn.functional.gelu(raised) @ self.weight(f"{name}.down.weight") + self.weight(f"{name}.down.bias")

    def forward(self, tokens: Tensor, open: Tensor | None = None) -> Tensor:
        """Log-probabilities of every token at every step, `[sequences, steps, vocab]`.

        Shapes: tokens `[sequences, steps]`; open `[sequences, steps, vocab]`, nonzero where a token may be chosen.
        """
        table = self.weight("tokens.weight")
        # The row after the vocabulary stands before the first choice; what follows an end is never read.
        first = torch.full_like(tokens[:, :1], table.shape[0] - 1)
        before = torch.cat([first, tokens[:, :-1].clamp(min=0)], 1).long()
        x = table[before] + self.weight("positions.weight")[: tokens.shape[1]]
        for number in range(self.blocks):
            x = self.block(f"blocks.{number}", x)
        logits = self.norm("norm", x) @ self.weight("head.weight") + self.weight("head.bias")
        if open is not None:
            logits = logits.masked_fill(open == 0, -math.inf)
        return logits.log_softmax(-1)


def load(folder: str | Path) -> Causal:
    """The policy of an exported folder."""
    sizes = json.loads((Path(folder) / "policy.json").read_text())
    with np.load(Path(folder) / "weights.npz") as weights:
        tensors = {name: torch.from_numpy(weights[name]) for name in weights.files}
    return Causal(tensors, sizes["heads"])

"""A pointer transformer in plain PyTorch: an encoder over candidates, and a decoder that points at the next one.

Needs torch and NumPy alone. `load(folder)` reads the weights that lie beside this file.
"""

import json
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn


class Pointer(nn.Module):
    """Log-probabilities of the next choice at every step of some constructions of each instance.

    Parameters are named as their run saved them, with dots written as underscores; a weight is `[in, out]`.
    """

    def __init__(self, weights: dict[str, Tensor], heads: int, residual: bool, bound: float) -> None:
        super().__init__()
        self.heads, self.residual, self.bound = heads, residual, bound
        self.blocks = sum(name.endswith("attention.in.weight") for name in weights)
        for name, value in weights.items():
            self.register_parameter(name.replace(".", "_"), nn.Parameter(value.clone()))

    def weight(self, name: str) -> Tensor:
        return self.get_parameter(name.replace(".", "_"))

    def norm(self, name: str, x: Tensor) -> Tensor:
        return nn.functional.layer_norm(x, x.shape[-1:], self.weight(f"{name}.gain"), self.weight(f"{name}.bias"), 1e-5)

    def block(self, name: str, x: Tensor) -> Tensor:
        """A pre-norm block in which every candidate sees all others."""
        mixed = self.norm(f"{name}.norm1", x) @ self.weight(f"{name}.attention.in.weight")
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in mixed.chunk(3, -1))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        attended = (scores.softmax(-1) @ value).transpose(1, 2).flatten(-2)
        x = x + attended @ self.weight(f"{name}.attention.out.weight")
        raised = self.norm(f"{name}.norm2", x) @ self.weight(f"{name}.up.weight") + self.weight(f"{name}.up.bias")
        return x + nn.functional.gelu(raised) @ self.weight(f"{name}.down.weight") + self.weight(f"{name}.down.bias")

    def forward(self, features: Tensor, context: Tensor, open: Tensor, last: Tensor) -> Tensor:
        """Log-probabilities of every candidate, minus infinity where it is closed, `[instances, steps, candidates]`.

        Shapes:
            features: `[instances, candidates, features]`.
            context: `[instances, steps, context]`, the state before each step.
            open: `[instances, steps, candidates]`, nonzero where a candidate may be chosen.
            last: `[instances, steps]`, the choice before; the number of candidates before the first.
        """
        open = open.bool()
        x = features @ self.weight("features.weight") + self.weight("features.bias")
        for number in range(self.blocks):
            x = self.block(f"blocks.{number}", x)
        embedded = self.norm("norm", x)
        mean = embedded.mean(1, keepdim=True) @ self.weight("mean.weight")
        chosen = embedded @ self.weight("last.weight")
        # No last choice counts as zero.
        chosen = torch.cat([chosen, torch.zeros_like(chosen[:, :1])], 1)
        before = chosen.gather(1, last.long()[..., None].expand(-1, -1, chosen.shape[-1]))
        query = mean + before + context @ self.weight("context.weight") + self.weight("context.bias")
        glimpse = self.glimpse(query, embedded @ self.weight("glimpse.in.weight"), open)
        if self.residual:
            glimpse = glimpse + query
        key = embedded @ self.weight("pointer.weight") @ self.weight("glimpse.out.weight").T
        scores = glimpse @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        logits = self.bound * torch.tanh(scores) if self.bound else scores
        return logits.masked_fill(~open, -math.inf).log_softmax(-1)

    def glimpse(self, query: Tensor, mixed: Tensor, open: Tensor) -> Tensor:
        """What the query sees of the open candidates, head by head."""
        split = lambda part: part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key, value = (split(part) for part in mixed.chunk(2, -1))
        scores = split(query) @ key.transpose(-1, -2) / math.sqrt(key.shape[-1])
        scores = scores.masked_fill(~open[:, None], -math.inf)
        return (scores.softmax(-1) @ value).transpose(1, 2).flatten(-2)


def load(folder: str | Path) -> Pointer:
    """The policy of an exported folder."""
    sizes = json.loads((Path(folder) / "policy.json").read_text())
    with np.load(Path(folder) / "weights.npz") as weights:
        tensors = {name: torch.from_numpy(weights[name]) for name in weights.files}
    return Pointer(tensors, sizes["heads"], sizes["residual"], sizes["bound"])

"""One update step of the testbed transformer in PyTorch (eager): forward, backward, normalised SGD.

Speaks lines on standard input and output, so that steps of the peer and of niwaki can alternate in one run:
prints "ready"; then for each line "step" the wall and processor seconds of one step, for "memory" the peak resident bytes and
those after the imports. Ends with its input. `niwaki bench engine --peers` runs it.

Install: pip install torch
"""

import argparse
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        lanes, steps, width = x.shape
        mixed = self.mix(self.norm1(x)).view(lanes, steps, 3, self.heads, width // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(lanes, steps, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Causal(nn.Module):
    def __init__(self, vocab, horizon, width=128, heads=4, blocks=4, hidden=512):
        super().__init__()
        self.tokens = nn.Embedding(vocab + 1, width)
        self.positions = nn.Embedding(horizon, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def update(model, tokens, actions, advantage, rate=0.01):
    for parameter in model.parameters():
        parameter.grad = None
    log_prob = F.log_softmax(model(tokens), -1).gather(-1, actions[..., None])[..., 0]
    (log_prob * advantage[:, None]).mean().backward()
    with torch.no_grad():
        parameters = list(model.parameters())
        gradients = [parameter.grad for parameter in parameters]
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))).item()
        if norm >= 1e-12:
            torch._foreach_add_(parameters, gradients, alpha=rate / norm)


def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--lanes", type=int, default=256)
    options.add_argument("--horizon", type=int, default=8)
    options.add_argument("--vocab", type=int, default=4)
    options.add_argument("--members", type=int, default=1)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--device", default="cpu")
    options = options.parse_args()
    torch.set_num_threads(options.threads)
    imported = resident()
    torch.manual_seed(1)
    shape = (options.lanes, options.horizon)
    members = []
    for _ in range(options.members):
        model = Causal(options.vocab, options.horizon).to(options.device)
        actions = torch.randint(options.vocab, shape, device=options.device)
        begin = torch.full((options.lanes, 1), options.vocab, device=options.device)
        tokens = torch.cat([begin, actions[:, :-1]], 1)
        members.append((model, tokens, actions, torch.randn(options.lanes, device=options.device)))

    def step():
        for member in members:
            update(*member)
        if options.device != "cpu":
            torch.cuda.synchronize()

    step()
    step()
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        if line.strip() == "step":
            wall, processor = time.perf_counter(), time.process_time()
            step()
            print(time.perf_counter() - wall, time.process_time() - processor, flush=True)
        else:
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, imported, flush=True)


main()

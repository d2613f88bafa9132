"""PyTorch's update step of a decoder on records that share their prompt, beside `niwaki bench decoder`.

    python benches/peers/decoder_torch.py [--precision bf16] [--prefixes ROWS]

The sizes are SmolLM2-135M's with random weights: time does not ask for their values. One step is what `niwaki bench decoder` times: one
forward pass over 387 rows (a prompt, and 8 records that branch off it and see the prompt and themselves), log-probs of four
candidates at each record's six decisions, the backward pass, the gradient clipped to norm 1, Adam in f32. Blocks go through
`torch.compile`; the whole step is one CUDA graph. `prefixes` is one forward pass over 4,096 records' tree of prefixes, given as so many
rows, with a dense mask in bf16.
"""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

WIDTH, HIDDEN, LAYERS, HEADS, KEY_HEADS, HEAD = 576, 1536, 30, 9, 3, 64
VOCABULARY, CANDIDATES, SLOTS = 512, 4, 6


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.RMSNorm(WIDTH, 1e-5), torch.nn.RMSNorm(WIDTH, 1e-5)
        self.qkv = torch.nn.Linear(WIDTH, (HEADS + 2 * KEY_HEADS) * HEAD, bias=False)
        self.out = torch.nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.wide = torch.nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.down = torch.nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, mask, cosine, sine):
        rows = x.shape[0]
        mixed = self.qkv(self.first(x)).view(rows, HEADS + 2 * KEY_HEADS, HEAD)
        turned, value = mixed.split([HEADS + KEY_HEADS, KEY_HEADS], 1)
        a, b = turned.chunk(2, -1)
        turned = torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1).to(value.dtype)
        query, key = turned.split([HEADS, KEY_HEADS], 1)
        key, value = (t.repeat_interleave(HEADS // KEY_HEADS, 1) for t in (key, value))
        heads = [t.transpose(0, 1).unsqueeze(0) for t in (query, key, value)]
        seen = F.scaled_dot_product_attention(*heads, attn_mask=mask)
        x = x + self.out(seen.squeeze(0).transpose(0, 1).reshape(rows, -1))
        gate, up = self.wide(self.second(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = torch.nn.RMSNorm(WIDTH, 1e-5)

    def forward(self, tokens, mask, cosine, sine, decisions):
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x, mask, cosine, sine)
        return self.norm(x[decisions]) @ self.table.weight[:CANDIDATES].T


def tree(prompt, records, each, device):
    """Who sees whom, positions, and the rows at which something is decided."""
    rows = prompt + records * each
    mask = torch.zeros(rows, rows, dtype=torch.bool)
    mask[:, :prompt] = True
    mask[:prompt, :prompt] = torch.ones(prompt, prompt).tril().bool()
    position, decisions = torch.arange(rows), []
    for record in range(records):
        start = prompt + record * each
        mask[start : start + each, start : start + each] = torch.ones(each, each).tril().bool()
        position[start : start + each] = prompt + torch.arange(each)
        decisions += [start + each * slot // SLOTS for slot in range(SLOTS)]
    frequency = 1e5 ** (-torch.arange(HEAD // 2) / (HEAD // 2))
    angle = (position[:, None] * frequency)[:, None, :]
    return [t.to(device) for t in (mask, angle.cos(), angle.sin(), torch.tensor(decisions))]


def median(work, rounds):
    times = []
    for turn in range(rounds + 3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        if turn >= 3:
            times.append(1e3 * (time.perf_counter() - began))
    return f"median {statistics.median(times):.2f} ms, least {min(times):.2f}, of {rounds}"


def captured(work):
    """The work as one CUDA graph, after three runs that lay everything out."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=["tf32", "bf16"], default="bf16")
    parser.add_argument("--prompt", type=int, default=227)
    parser.add_argument("--tokens", type=int, default=20, help="tokens of a record")
    parser.add_argument("--prefixes", type=int, default=0, help="rows of the tree of all prefixes; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    device = "cuda"
    model = Decoder().to(device)
    half = torch.autocast(device, torch.bfloat16, enabled=given.precision == "bf16", cache_enabled=False)
    if not given.eager:
        for block in model.blocks:
            block.compile(dynamic=False)
    adam = torch.optim.Adam(model.parameters(), 1e-7, fused=True, capturable=True)
    mask, cosine, sine, decisions = tree(given.prompt, 8, given.tokens, device)
    tokens = torch.randint(VOCABULARY, (mask.shape[0],), device=device)
    actions = torch.randint(CANDIDATES, (len(decisions), 1), device=device)
    weights = torch.randn(len(decisions), 1, device=device)

    def step():
        adam.zero_grad(set_to_none=False)
        with half:
            logits = model(tokens, mask, cosine, sine, decisions)
        (logits.float().log_softmax(-1).gather(1, actions) * weights).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        adam.step()

    name = "eager" if given.eager else "torch.compile"
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, {given.precision}, {name} in a CUDA graph")
    began = time.perf_counter()
    replay = captured(step)
    print(f"laid out in {time.perf_counter() - began:.1f} s")
    print(f"{mask.shape[0]} rows: update step {median(replay, given.rounds)}", flush=True)
    if given.prefixes:
        rows = given.prefixes
        wide, cosine, sine, decisions = tree(given.prompt, 1, rows - given.prompt, device)
        more = torch.randint(VOCABULARY, (rows,), device=device)

        def score():
            with torch.no_grad(), half:
                model(more, wide, cosine, sine, decisions)

        print(f"{rows} rows: forward {median(captured(score), given.rounds)}")


main()

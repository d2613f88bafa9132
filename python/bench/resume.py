"""Kills TRL runs with a warmup at many points, takes them up again, and compares what follows with the uninterrupted run.

    python python/bench/resume.py [--points 100] [--only TEXT]

A tiny random model on a CPU; one process and two (gloo), `num_train_epochs` and `max_steps`, with a warmup of its own passes and
without. A run is killed (SIGKILL, all its processes) while it draws, before a loss, after an optimiser's step, or while it saves,
and taken up again from its newest whole checkpoint. Compared from there on: prompts and completions of every micro-batch,
generation, pass, learning rate, loss, and the weights in the end.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "TOKENIZERS_PARALLELISM": "false"}
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
warnings.simplefilter("ignore")

import test_trl  # noqa: E402
import torch  # noqa: E402
import trl  # noqa: E402
from datasets import Dataset  # noqa: E402
from niwaki.trl import GRPOTrainer  # noqa: E402
from transformers.utils import logging  # noqa: E402

logging.disable_progress_bar()

WARMUP = {"warmup_iterations": 2, "warmup_reuse": 3}
PHASES = ("draw", "loss", "step", "save")


def settings(schedule, processes):
    """Twelve prompts; a batch of sixteen completions whatever the number of processes, in two slices; two slices a step."""
    size = {"per_device_train_batch_size": 8 // processes, "steps_per_generation": 2, "gradient_accumulation_steps": 2}
    return size | ({"max_steps": 16} if schedule == "steps" else {"num_train_epochs": 2})


class Watched(GRPOTrainer):
    """Writes down every micro-batch, and dies where it is told."""

    book, dies, seen = None, None, None

    def reach(self, phase):
        self.seen[phase] = self.seen.get(phase, 0) + 1
        if self.dies == [phase, self.seen[phase]]:
            os.kill(os.getpid(), signal.SIGKILL)

    def _generate_and_score_completions(self, inputs):
        self.shown = sorted(example["prompt"] for example in inputs)
        found = super()._generate_and_score_completions(inputs)
        found["shown"] = torch.full((len(found["completion_ids"]),), zlib.crc32(" ".join(self.shown).encode()))
        self.reach("draw")
        return found

    def compute_loss(self, model, inputs, *args, **kwargs):
        self.reach("loss")
        place = [self.state.global_step, self._generation, self._pass, self._step % self.args.steps_per_generation]
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        drawn = zlib.crc32(str(inputs["completion_ids"].tolist()).encode())
        row = [*place, inputs["shown"][0].item(), drawn, loss.item(), self.lr_scheduler.get_last_lr()[0]]
        self.book.write(json.dumps(row) + "\n")
        self.book.flush()
        return loss

    def _maybe_log_save_evaluate(self, *args, **kwargs):
        self.reach("step")
        return super()._maybe_log_save_evaluate(*args, **kwargs)

    def _save_optimizer_and_scheduler(self, folder):
        self.reach("save")
        return super()._save_optimizer_and_scheduler(folder)


def train(folder, name, case, rank, dies=None, checkpoint=None):
    """One process of a run."""
    schedule, warmup, processes, every = case
    sys.stdout = sys.stderr = Path(os.devnull).open("w")
    args = trl.GRPOConfig(
        **settings(schedule, processes), output_dir=str(folder / "out"), num_generations=4, max_completion_length=4, learning_rate=3e-2,
        num_iterations=2, save_strategy="steps", save_steps=every, logging_strategy="no", report_to=[], use_cpu=True, seed=3, disable_tqdm=True,
        dataloader_num_workers=0,
    )
    data = Dataset.from_list([{"prompt": f"w{index} w{index + 1}"} for index in range(12)])
    model = test_trl.LlamaForCausalLM.from_pretrained(folder.parent / "model")
    found = Watched(
        model, reward_funcs=test_trl.reward, args=args, train_dataset=data, processing_class=test_trl.tokenizer(),
        correction="tempered:0.1", **WARMUP if warmup else {},
    )
    found.book, found.dies, found.seen = (folder / f"{name}-{rank}.jsonl").open("w"), dies, {}
    found.train(resume_from_checkpoint=checkpoint)
    weights = zlib.crc32(b"".join(part.detach().numpy().tobytes() for part in found.model.parameters()))
    (folder / f"{name}-{rank}.end").write_text(json.dumps([found.state.global_step, weights]))


def run(folder, name, case, dies=None, checkpoint=None):
    """A run of all its processes; whether it ended by itself. They are forked, so that nothing is imported again."""
    processes, children = case[2], []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for rank in range(processes):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if processes > 1:
                    os.environ |= {"WORLD_SIZE": str(processes), "RANK": str(rank), "LOCAL_RANK": str(rank)}
                    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
                train(folder, name, case, rank, dies if rank == processes - 1 else None, checkpoint)
                code = 0
            except BaseException:
                import traceback

                (folder / f"{name}-{rank}.error").write_text(traceback.format_exc())
            finally:
                os._exit(code)
        children.append(child)
    ended = 0
    for _ in range(processes):
        child, status = os.wait()
        children.remove(child)
        if status != 0:
            for other in children:
                os.kill(other, signal.SIGKILL)
        ended += status == 0
    return ended == processes


def rows(folder, name, processes):
    found = []
    for rank in range(processes):
        text = (folder / f"{name}-{rank}.jsonl").read_text() if (folder / f"{name}-{rank}.jsonl").exists() else ""
        found.append([json.loads(line) for line in text.splitlines()])
    return found


def whole_checkpoint(folder, processes):
    """The newest checkpoint that was written to its end, by all processes, and its step."""
    whole = [place.parent for place in folder.glob("out/checkpoint-*/trainer_state.json")]
    steps = [int(place.name.rpartition("-")[2]) for place in whole if len([*place.glob("rng_state*.pth")]) == processes]
    return (str(folder / "out" / f"checkpoint-{max(steps)}"), max(steps)) if steps else (None, 0)


def compare(case, home, folder, dies):
    """One kill, and what differs after it."""
    if run(folder, "killed", case, dies):
        return None, ["it was not killed"]
    checkpoint, step = whole_checkpoint(folder, case[2])
    if not run(folder, "again", case, None, checkpoint):
        errors = [place.read_text().strip().splitlines()[-1] for place in folder.glob("again-*.error")]
        return step, ["it did not end: " + "; ".join(errors)]
    wrong = []
    names = ("step", "generation", "pass", "slice", "prompts", "completions", "loss", "learning rate")
    for rank, (expected, found) in enumerate(zip(rows(home, "whole", case[2]), rows(folder, "again", case[2]))):
        expected = [row for row in expected if row[0] >= step]
        if len(expected) != len(found):
            wrong.append(f"rank {rank}: {len(found)} micro-batches, not {len(expected)}")
        for index, name in enumerate(names):
            differ = [abs(a[index] - b[index]) for a, b in zip(expected, found) if a[index] != b[index]]
            if differ:
                wrong.append(f"rank {rank}: {name} differs in {len(differ)} of {len(expected)} micro-batches, by {max(differ):.3g} at most")
        ends = [json.loads((place / f"{kind}-{rank}.end").read_text()) for place, kind in ((home, "whole"), (folder, "again"))]
        if ends[0] != ends[1]:
            wrong.append(f"rank {rank}: the run ends with other weights or steps, {ends}")
    return step, wrong


def points(home, case, count):
    """Where a run of this kind is killed, spread over its course and over what it does."""
    places = sorted({(row[0], row[1]) for row in rows(home, "whole", case[2])[0]})
    totals = {"draw": len({generation for _, generation in places}), "loss": len(rows(home, "whole", case[2])[0]), "step": places[-1][0] + 1}
    totals["save"] = totals["step"] // case[3]
    shares = [PHASES[index % 4] for index in range(count)]
    found = []
    for phase in PHASES:
        share, total = shares.count(phase), totals[phase]
        found += [[phase, 1 + (total - 1) * (2 * index + 1) // (2 * share)] for index in range(share)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    cases = [
        (schedule, warmup, processes, every)
        for processes in (1, 2) for schedule, every in (("epochs", 3), ("steps", 1)) for warmup in (True, False)
    ]
    begun, tried, bad = time.time(), 0, 0
    base = Path(tempfile.mkdtemp())
    try:
        test_trl.model(base)
        for number, case in enumerate(cases):
            schedule, warmup, processes, every = case
            title = f"{schedule}, {'warmup' if warmup else 'no warmup'}, {processes} process{'es' if processes > 1 else ''}, saved every {every}"
            if asked.only not in title:
                continue
            home = base / f"whole-{number}"
            home.mkdir()
            assert run(home, "whole", case), [place.read_text() for place in home.glob("*.error")]
            count = asked.points // len(cases) + (number < asked.points % len(cases))
            same = 0
            for dies in points(home, case, count):
                folder = base / f"killed-{number}-{tried}"
                folder.mkdir()
                step, wrong = compare(case, home, folder, dies)
                tried, bad, same = tried + 1, bad + bool(wrong), same + (not wrong)
                for line in wrong:
                    print(f"  {title}: killed at {dies[0]} {dies[1]}, taken up from step {step}: {line}", flush=True)
                shutil.rmtree(folder)
            rows_there = sum(len(part) for part in rows(home, "whole", processes))
            print(f"{title}: {same} of {count} the same ({rows_there} micro-batches uninterrupted)", flush=True)
    finally:
        shutil.rmtree(base)
    print(f"{tried - bad} of {tried} kill points equal the uninterrupted run: prompts, completions, passes, rates, losses, weights")
    print(f"trl {trl.__version__}, torch {torch.__version__}, {time.time() - begun:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

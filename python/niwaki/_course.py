"""The course of a run whose warmup has passes of its own: which prompts come how often, how many steps that makes, and where the
data set's epochs end.

Trainers take every epoch to have as many steps as the first. A warmup breaks that, so the whole run is one epoch of its sampler:
steps, schedules and resuming then count what is there. `Epochs` tells trainer and logs where the data set's own epochs end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import Sampler
from transformers import TrainerCallback


class Course:
    """Generations of a run, each a chunk of the data set's prompts, and their passes.

    Args:
        chunks: generations in one epoch of the data set.
        steps: micro-batches of one pass.
        accumulated: micro-batches of an optimiser's step.
        reuse_of: passes over the batch of a generation, from 0.
    """

    def __init__(self, chunks: int, steps: int, accumulated: int, reuse_of: Callable[[int], int]) -> None:
        self.chunks, self.steps, self.accumulated, self.reuse_of = chunks, steps, accumulated, reuse_of

    def in_epoch(self, epoch: int) -> int:
        """Micro-batches of an epoch of the data set."""
        first = epoch * self.chunks
        return self.steps * sum(self.reuse_of(generation) for generation in range(first, first + self.chunks))

    def in_epochs(self, epochs: float) -> int:
        """Micro-batches of so many epochs, the last of which may be a part of one."""
        whole = int(epochs)
        return sum(map(self.in_epoch, range(whole))) + math.ceil((epochs - whole) * self.in_epoch(whole))

    def to_steps(self, batches: int) -> int:
        """The optimiser's steps of so many micro-batches."""
        return math.ceil(batches / self.accumulated)

    def place(self, batches: int) -> tuple[int, int]:
        """The generation of which the next micro-batch is, and those already taken of it."""
        generation = 0
        while batches >= (whole := self.reuse_of(generation) * self.steps):
            batches -= whole
            generation += 1
        return generation, batches

    def epoch(self, step: int) -> float:
        """Epochs of the data set behind so many of the optimiser's steps; whole at the step that ends one."""
        epoch, before = 0, 0
        while self.chunks:
            after = before + self.in_epoch(epoch)
            first, last = self.to_steps(before), self.to_steps(after)
            if step <= last:
                return epoch + (step - first) / max(last - first, 1)
            epoch, before = epoch + 1, after
        return 0.0


class Repeated(Sampler):
    """Each generation's prompts as often as its passes ask for them, over all epochs of a run.

    Args:
        once: one epoch's prompts, drawn again by every iteration.
        size: prompts of a micro-batch of all processes, repeats counted.
        batches: micro-batches of the run.
    """

    def __init__(self, once: Sampler, size: int, batches: int, course: Course) -> None:
        self.once, self.size, self.course = once, size, course
        self.batches = batches if course.chunks else 0

    def __iter__(self) -> Iterator[int]:
        left, generation = self.batches, 0
        while left > 0:
            indices = list(self.once)
            for start in range(0, len(indices), self.size):
                shown = min(self.course.reuse_of(generation) * self.course.steps, left)
                for _ in range(shown):
                    yield from indices[start : start + self.size]
                left, generation = left - shown, generation + 1

    def __len__(self) -> int:
        return self.batches * self.size


class Epochs(TrainerCallback):
    """Counts epochs of the data set, and does at their ends what the arguments want done there."""

    def __init__(self, course: Callable[[], Course]) -> None:
        self.course = course

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Sets the epoch; at the run's last step the trainer ends its own."""
        state.epoch = self.course().epoch(state.global_step)
        if state.epoch != int(state.epoch) or state.global_step >= state.max_steps:
            return
        control.should_log = control.should_log or args.logging_strategy == "epoch"
        control.should_save = control.should_save or args.save_strategy == "epoch"
        wanted = args.eval_strategy == "epoch" and args.eval_delay <= state.epoch
        control.should_evaluate = control.should_evaluate or wanted


class Orders(TrainerCallback):
    """Has TRL's sampler draw the order of the epoch that begins. Left alone, the one of a run that is taken up starts with the
    first epoch's.

    Args:
        sampler: what the trainer's data loader draws from.
    """

    def __init__(self, sampler: Callable[[], Any]) -> None:
        self.sampler = sampler

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Seeds it, and skips the orders of the epochs before."""
        sampler = self.sampler()
        seed, generator = getattr(sampler, "seed", None), getattr(sampler, "generator", None)
        if seed is None or generator is None:
            return
        generator.manual_seed(seed)
        for _ in range(int(state.epoch or 0)):
            torch.randperm(sampler.num_samples, generator=generator)

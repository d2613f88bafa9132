"""TRL's `GRPOTrainer` with the correction, and a callback that says live whether stale data costs signal.

    from niwaki.trl import AdviseCallback, GRPOTrainer

    trainer = GRPOTrainer(model, reward_funcs=…, args=…, train_dataset=…,
                          correction="tempered:0.1", warmup_iterations=50, warmup_reuse=4)
    trainer.add_callback(AdviseCallback("runs/mine"))

The loss alone changes, and in one place: the log of the correction factor is added to the log-probs that TRL's own loss
reads, so `exp(log-prob − old)` becomes the corrected ratio with both channels of its gradient. Clipping, gates, KL, masks, aggregation,
entropy and metrics stay TRL's.
"""

from __future__ import annotations

import logging
import warnings
import zlib
from pathlib import Path
from typing import Any

from ._pinned import pinned

TESTED = ("1.16.0", "1.16.0")
"""The oldest and the newest version of TRL that the tests ran with."""

pinned("niwaki.trl", "trl", *TESTED)

import torch  # noqa: E402
import trl  # noqa: E402
from accelerate.utils import send_to_device  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.utils.data import Sampler  # noqa: E402
from transformers import TrainerCallback  # noqa: E402
from trl.trainer.utils import RepeatSampler  # noqa: E402

from ._amplification import Watch  # noqa: E402
from ._course import Course, Epochs, Orders, Repeated  # noqa: E402
from ._door import multiplying  # noqa: E402
from .advise import Advice, Dump, Monitor  # noqa: E402
from .correction import Correction  # noqa: E402
from .torch import corrected_logprobs, gather_tallies, watch_amplification  # noqa: E402

__all__ = ["AdviseCallback", "GRPOTrainer"]

_LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo", "sapo", "cispo")
_UNCLIPPED = ("sapo", "cispo")
"""Losses whose gradient no clip cuts: a soft gate, and a weight that is held."""
_FAR = 1 << 40


class GRPOTrainer(trl.GRPOTrainer):
    """TRL's GRPO with the correction on its ratios.

    Args:
        correction: a member of the family that multiplies the ratio, by name or as a `Correction`.
        warmup_iterations: generations that are corrected; all of them where None.
        warmup_reuse: passes over each batch during the warmup; `num_iterations` of the config where None.
        routing: whether gradients flow through the factor to earlier tokens.

    Everything else is TRL's. Raises ValueError for settings of TRL's that read the log-probs in other ways. Warns once
    (`niwaki.torch.AmplificationWarning`) where the correction more than doubles the norm of the gradient on a batch.
    """

    num_iterations: int
    _buffered_inputs: Any
    _step: int

    def __init__(
        self,
        *args: Any,
        correction: str | Correction = "tempered:0.1",
        warmup_iterations: int | None = None,
        warmup_reuse: int | None = None,
        routing: bool = True,
        **kwargs: Any,
    ) -> None:
        self.correction = multiplying(
            correction, "TRL's own clip; use importance_sampling_level='sequence' for gspo and loss_type='cispo' for cispo"
        )
        for name, value in (("warmup_iterations", warmup_iterations), ("warmup_reuse", warmup_reuse)):
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; give at least 1, or leave it out")
        self._routing = routing
        self._watch = Watch()
        self._warmup = warmup_iterations
        self._warmup_reuse = warmup_reuse
        self._read: dict[str, Any] | None = None
        self._generation = -1
        self._checkpoint: str | None = None
        self._order: Sampler | None = None
        self._left = 0
        self._pass = 0
        super().__init__(*args, **kwargs)
        self._reuse = self.num_iterations
        self._check()
        self.add_callback(Orders(lambda: self._order) if warmup_reuse is None else Epochs(self._course))

    def _check(self) -> None:
        if self.loss_type not in _LOSSES:
            why = ": its weights are of whole sequences already" if self.loss_type == "vespo" else ""
            raise ValueError(f"loss_type is '{self.loss_type}'{why}; the correction goes with {', '.join(_LOSSES)}")
        if self.importance_sampling_level != "token":
            raise ValueError("importance_sampling_level must be 'token': the correction is on token ratios")
        # Since 1.16 liger's layers alone are used, and the loss is TRL's.
        if hasattr(self, "compute_liger_loss") and getattr(self.args, "use_liger_kernel", False):
            raise ValueError("use_liger_kernel: liger's fused loss has no place for a correction; leave it out")
        if self._warmup_reuse is not None and isinstance(self.train_dataset, torch.utils.data.IterableDataset):
            raise ValueError("warmup_reuse needs a dataset with a length; an iterable one repeats as TRL decides")

    def _watchers(self) -> list[AdviseCallback]:
        return [callback for callback in self.callback_handler.callbacks if isinstance(callback, AdviseCallback)]

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Logs what TRL logs, and what the callbacks have measured."""
        for watcher in self._watchers():
            logs = logs | watcher.to_log()
        super().log(logs, *args, **kwargs)

    def reuse_of(self, generation: int) -> int:
        """Passes over the batch of a generation (from 0)."""
        warm = self._warmup_reuse is not None and (self._warmup is None or generation < self._warmup)
        return self._warmup_reuse if warm and self._warmup_reuse is not None else self._reuse

    @property
    def corrected(self) -> bool:
        """Whether the batch in hand is corrected."""
        return self._warmup is None or self._generation < self._warmup

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        self._read = dict(inputs)
        try:
            return super()._compute_loss(model, self._read)
        finally:
            self._read = None

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        logps, *rest = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        # The loss asks once; the log-probs of a rollout and of the reference are left as they are.
        inputs, self._read = self._read, None
        if inputs is None:
            return (logps, *rest)
        mask = inputs["completion_mask"]
        if inputs.get("tool_mask") is not None:
            mask = mask * inputs["tool_mask"]
        old = inputs.get("old_per_token_logps")
        old = logps.detach() if old is None else old
        # The last pass over a batch is the stalest.
        if self.model.training and self._pass == self.reuse_of(self._generation) - 1:
            for watcher in self._watchers():
                watcher.see(self, inputs, old, logps.detach(), mask, self._generation)
                if self._left == 0:
                    watcher.close(self, self._generation)
        if not self.corrected:
            return (logps, *rest)
        if self.model.training and self.accelerator.is_main_process:
            batch = (logps.detach(), old, inputs["advantages"], mask)
            edges = None if self.loss_type in _UNCLIPPED else (self.epsilon_low, self.epsilon_high, self.args.delta)
            watch_amplification(self._watch, self.correction, *batch, clip=edges, routing=self._routing)
        corrected = corrected_logprobs(logps, old, mask, correction=self.correction, routing=self._routing)
        if inputs.get("ref_per_token_logps") is not None:
            # Shifted alike, so that the KL to the reference is that of the log-probs as they are.
            inputs["ref_per_token_logps"] = inputs["ref_per_token_logps"] + (corrected - logps)
        if self.off_policy_mask_threshold is not None:
            # So is what the mask of stale sequences compares them with.
            engine = inputs.get("sampling_per_token_logps")
            inputs["sampling_per_token_logps"] = (old if engine is None else engine) + (corrected - logps).detach()
        return (corrected, *rest)

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        if not self.model.training:
            return super()._prepare_inputs(generation_batch)
        steps = self.args.steps_per_generation
        if self._generation < 0 and not self._take_up():
            # Where no batch was kept, the one in hand is drawn again for the passes that are left.
            self._step = self.state.global_step * self.args.gradient_accumulation_steps
            self._generation, taken = self._course().place(self._step)
            self._left = self.reuse_of(self._generation) * steps - taken
        elif self._left == 0:
            self._generation += 1
            self._left, self._buffered_inputs = self.reuse_of(self._generation) * steps, None
        reuse = self.reuse_of(self._generation)
        # TRL draws a batch where its own count says so, too: not before ours does.
        self.num_iterations = reuse if self._buffered_inputs is None else _FAR
        inputs = super()._prepare_inputs(generation_batch)
        self.num_iterations = reuse
        self._pass = (reuse * steps - self._left) // steps
        self._left -= 1
        return inputs

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if not self.args.save_only_model:
            # Before the rest, so that a checkpoint that is whole has it.
            place = self._kept(Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}")
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_suffix(".part")
            here = {"step": self._step, "generation": self._generation, "left": self._left}
            torch.save(here | {"ranks": self.accelerator.num_processes, "batch": self._buffered_inputs if self._left else None}, part)
            part.replace(place)
        super()._save_checkpoint(model, trial)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        super()._load_rng_state(checkpoint)
        self._checkpoint = checkpoint

    def _kept(self, checkpoint: Path) -> Path:
        """Where a process keeps the batch in hand."""
        return checkpoint / f"niwaki-batch-{self.accelerator.process_index}.pt"

    def _take_up(self) -> bool:
        """Goes on with the batch that a checkpoint kept, if it did."""
        if self._checkpoint is None:
            return False
        place = self._kept(Path(self._checkpoint))
        # Where it was kept says nothing of where it goes: the device of a process may have another name.
        kept = torch.load(place, map_location=lambda storage, _: storage, weights_only=True) if place.is_file() else {}
        own = kept.get("ranks") == self.accelerator.num_processes
        # All draw again, or none does: drawing is in common.
        if not self.accelerator.gather(torch.tensor([own], device=self.accelerator.device)).all():
            return False
        self._step, self._generation, self._left = kept["step"], kept["generation"], kept["left"]
        self._buffered_inputs = send_to_device(kept["batch"], self.accelerator.device)
        return True

    def _course(self) -> Course:
        dataset = self.train_dataset
        prompts = len(dataset) if hasattr(dataset, "__len__") else 0
        chunks = prompts // (self.args.generation_batch_size // self.num_generations)
        return Course(chunks, self.args.steps_per_generation, self.args.gradient_accumulation_steps, self.reuse_of)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Trains as TRL does. With `warmup_reuse` the steps of `num_train_epochs` are those of the warmup and what follows it."""
        self._generation, self._left, self._buffered_inputs, self._checkpoint = -1, 0, None, None
        if self._warmup_reuse is None or self.args.max_steps > 0:
            return super().train(*args, **kwargs)
        course = self._course()
        self.args.max_steps = course.to_steps(course.in_epochs(self.args.num_train_epochs))
        try:
            return super().train(*args, **kwargs)
        finally:
            self.args.max_steps = -1

    def _get_train_sampler(self, dataset: Any = None) -> Sampler:
        if self._warmup_reuse is None:
            self._order = super()._get_train_sampler(dataset)
            return self._order
        once = RepeatSampler(
            data_source=self.train_dataset if dataset is None else dataset,
            mini_repeat_count=self.num_generations,
            batch_size=self.args.generation_batch_size // self.num_generations,
            repeat_count=1,
            shuffle=self.shuffle_dataset,
            seed=self.args.seed,
        )
        course, steps = self._course(), self.args.max_steps
        batches = steps * self.args.gradient_accumulation_steps if steps > 0 else course.in_epochs(self.args.num_train_epochs)
        return Repeated(once, self.args.generation_batch_size, batches, course)


class AdviseCallback(TrainerCallback):
    """Measures the last pass over each batch of a `niwaki.trl.GRPOTrainer`, and adds the numbers to its logs.

    Of several processes each measures its part of a batch, and they gather their tallies (`niwaki.advise.Advisor.tally`), so that
    numbers and verdict are those of the whole batch. Logged once for each generation are a dozen numbers with intervals
    (`niwaki.advise.Monitor`); the verdict goes to the logger `niwaki` when it changes, an alarm when it first holds, and
    `advice` has the whole run.

    Args:
        folder: where the run can be read by `niwaki advise FOLDER`; nothing is written where None.
        dumps: write every completion's log-probs (`niwaki.advise.Dump`); where False, a tally of each generation,
            `generation-<number>.tally`.
        budget: tokens that each process writes of a generation; where there are more, the dump is thinned.
        settings: of `niwaki.advise.Monitor`; clip and batch (completions of an optimiser's step, over processes and accumulated
            micro-batches) are the trainer's own unless given.
    """

    def __init__(
        self, folder: str | Path | None = None, *, dumps: bool = True, budget: int | None = None, **settings: Any
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self._dumps, self._budget = dumps, budget
        self._dump: Dump | None = None
        self._settings = settings
        self._monitor: Monitor | None = None
        self._taken_up = False
        self._fresh = False

    @property
    def advice(self) -> Advice:
        """What the run says so far; ValueError before the first batch has had its last pass."""
        if self._monitor is None:
            raise ValueError("no batch has had its last pass yet")
        return self._monitor.advice

    @property
    def monitor(self) -> Monitor:
        """The newest generation, and the last few; ValueError before the first batch has had its last pass."""
        if self._monitor is None:
            raise ValueError("no batch has had its last pass yet")
        return self._monitor

    def to_log(self) -> dict[str, float]:
        """Names and values of a generation that was not logged yet."""
        if self._monitor is None or not self._fresh:
            return {}
        self._fresh = False
        return self._monitor.to_log()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Makes the folder."""
        self._taken_up = state.global_step > 0
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._dumps:
            rank = None if args.world_size == 1 else args.process_index
            self._dump = Dump(self.folder, budget=self._budget, rank=rank)
        if not self._taken_up:
            self._forget(0, state.is_world_process_zero)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Says so where nothing was measured."""
        if self._monitor is None and state.is_world_process_zero:
            warnings.warn("AdviseCallback saw no batch; add it to a niwaki.trl.GRPOTrainer", stacklevel=2)

    def see(
        self, trainer: GRPOTrainer, inputs: dict[str, Any], old: Tensor, new: Tensor, mask: Tensor, generation: int
    ) -> None:
        """Takes one micro-batch, `[trajectories, tokens]` each, with what TRL's loss was given beside: advantages, prompts, and
        the log-probs of the engine that sampled, where there was one."""
        monitor = self._made(trainer, generation)
        own = mask.bool()
        rows = lambda values: [row[kept].double().cpu().numpy() for row, kept in zip(values, own)]
        olds, news = rows(old), rows(new)
        engine = inputs.get("sampling_per_token_logps")
        engines = None if engine is None else rows(engine)
        groups = _groups(inputs)
        advantages = inputs["advantages"]
        each = advantages if advantages.dim() == 2 and advantages.shape[1] > 1 else advantages.reshape(-1)
        worth = rows(each) if each.dim() == 2 else each.double().cpu().numpy()
        if any(len(row) for row in news):
            for taker in (monitor, self._dump):
                if taker is not None:
                    taker.update(news, olds, worth, behaviour_logprobs=engines, group=groups, iteration=generation)

    def close(self, trainer: GRPOTrainer, generation: int) -> None:
        """Ends a generation, on every process at the same place: gathers what they measured, and tells what is new."""
        monitor = self._made(trainer, generation)
        if self._dump is not None:
            self._dump.close()
        tally = monitor.close()
        self._fresh = tally is not None
        if not trainer.accelerator.is_main_process or tally is None:
            return
        if self.folder is not None and not self._dumps:
            place = self.folder / f"generation-{generation:06}.tally"
            part = place.with_suffix(".part")
            part.write_bytes(tally.tally())
            part.replace(place)
        logger = logging.getLogger("niwaki")
        if (verdict := monitor.changed()) is not None:
            logger.warning("generation %d, verdict: %s", generation, verdict)
        for rung in monitor.alarm():
            logger.warning("generation %d, alarm: %s", generation, rung)

    def _made(self, trainer: GRPOTrainer, generation: int) -> Monitor:
        """The monitor. Where a run is taken up again, what was written of the generations to come is forgotten."""
        if self._monitor is None:
            accelerator = trainer.accelerator
            processes = accelerator.num_processes
            low, high = trainer.epsilon_low, trainer.epsilon_high
            # CISPO's bound is on the ratio itself, and only from above.
            own: dict[str, Any] = {"clip": (1.0, max(high - 1.0, 0.0)) if trainer.loss_type == "cispo" else (low, high)}
            own["batch"] = trainer.args.per_device_train_batch_size * processes * trainer.args.gradient_accumulation_steps
            if processes > 1:
                own |= {"share": (accelerator.process_index, processes), "gather": gather_tallies}
            self._monitor = Monitor(**own | self._settings)
            if self._taken_up and self.folder is not None:
                self._forget(generation, accelerator.is_main_process)
        return self._monitor

    def _forget(self, generation: int, main: bool) -> None:
        """Drops what a folder has of a generation and those after it: they are drawn again."""
        assert self.folder is not None, "there is a folder"
        if self._dump is not None:
            self._dump.forget(generation)
        elif main:
            for place in self.folder.glob("generation-*.tally"):
                if place.stem[len("generation-") :].isdigit() and int(place.stem[len("generation-") :]) >= generation:
                    place.unlink()


def _groups(inputs: dict[str, Any]) -> list[int]:
    """What completions of one prompt share. TRL shuffles a batch before it is cut, so their places do not say it."""
    prompts = zip(inputs["prompt_ids"], inputs["prompt_mask"])
    return [zlib.crc32(str(ids[shown.bool()].tolist()).encode()) for ids, shown in prompts]

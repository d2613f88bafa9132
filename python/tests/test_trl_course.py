"""A warmup with passes of its own in whole runs of TRL's trainer: epochs, schedules, and runs that are taken up again."""

import pytest

pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
trl = pytest.importorskip("trl", reason="trl is not installed; python/test-extras.sh runs this")

import test_trl  # noqa: E402
from datasets import Dataset  # noqa: E402
from niwaki.advise import advise  # noqa: E402
from niwaki.trl import AdviseCallback, GRPOTrainer  # noqa: E402

RATE = 3e-2
# Twelve prompts, two a generation: six generations an epoch. Two generations of three passes, then every two.
WARMUP = {"correction": "tempered:0.1", "warmup_iterations": 2, "warmup_reuse": 3}


class Watched(GRPOTrainer):
    """Writes down what every micro-batch is of: its step, generation, pass, slice and prompts."""

    def compute_loss(self, model, inputs, *arguments, **keywords):
        place = self._step % self.args.steps_per_generation
        prompts = zip(inputs["prompt_ids"], inputs["prompt_mask"].bool())
        shown = tuple(sorted({" ".join(test_trl.WORDS[word] for word in ids[own]) for ids, own in prompts}))
        loss = super().compute_loss(model, inputs, *arguments, **keywords)
        self.seen.append((self.state.global_step, self._generation, self._pass, place, shown))
        self.losses.append(loss.item())
        return loss


def trainer(folder, warmup=True, **settings):
    args = trl.GRPOConfig(
        **{"num_iterations": 2, "num_train_epochs": 2, "save_strategy": "no", "per_device_train_batch_size": 8} | settings,
        output_dir=str(folder / "out"), num_generations=4, max_completion_length=4, learning_rate=RATE, logging_steps=1,
        report_to=[], use_cpu=True, seed=3, disable_tqdm=True, save_only_model=False,
    )
    data = Dataset.from_list([{"prompt": f"w{index} w{index + 1}"} for index in range(12)])
    found = Watched(
        test_trl.model(folder), reward_funcs=test_trl.reward, args=args, train_dataset=data, processing_class=test_trl.tokenizer(),
        **WARMUP if warmup else {"correction": "tempered:0.1"},
    )
    found.seen, found.losses = [], []
    return found


def logged(found, name):
    return {row["step"]: row[name] for row in found.state.log_history if name in row}


def generations(seen):
    """Generation → (prompts, passes)."""
    numbers = sorted({number for _, number, *_ in seen})
    shown = {number: sorted({one for _, g, _, _, some in seen if g == number for one in some}) for number in numbers}
    return {number: (tuple(shown[number]), 1 + max(p for _, g, p, _, _ in seen if g == number)) for number in numbers}


def test_a_run_of_epochs_ends_where_it_was_planned(tmp_path):
    found = trainer(tmp_path, save_strategy="epoch")
    found.train()
    # 2 · 3 + 4 · 2 steps in the first epoch, 6 · 2 in the second.
    assert found.state.global_step == found.state.max_steps == 26 and found.args.max_steps == -1
    rates, epochs = logged(found, "learning_rate"), logged(found, "epoch")
    assert rates[26] == pytest.approx(RATE / 26) and rates[1] == pytest.approx(RATE)
    assert [step for step, epoch in epochs.items() if epoch == int(epoch)] == [14, 26] and epochs[7] == pytest.approx(0.5)
    assert sorted(path.name for path in (tmp_path / "out").glob("checkpoint-*")) == ["checkpoint-14", "checkpoint-26"]
    shown = generations(found.seen)
    assert [passes for _, passes in shown.values()] == [3, 3] + 10 * [2]
    # Every prompt is shown in every epoch, in an order of its own.
    for first in (0, 6):
        assert sorted(sum((shown[first + chunk][0] for chunk in range(6)), ())) == sorted(f"w{i} w{i + 1}" for i in range(12))
    assert [shown[chunk][0] for chunk in range(6)] != [shown[chunk][0] for chunk in range(6, 12)]


@pytest.mark.parametrize("epochs, steps", [(1, 14), (1.5, 20), (3, 38)])
def test_parts_of_epochs(tmp_path, epochs, steps):
    found = trainer(tmp_path, num_train_epochs=epochs)
    found.train()
    assert found.state.global_step == found.state.max_steps == steps


def test_steps_beyond_an_epoch_are_all_taken(tmp_path):
    found = trainer(tmp_path, max_steps=31)
    found.train()
    assert found.state.global_step == 31 and logged(found, "epoch")[31] == pytest.approx(2 + 5 / 12)
    assert logged(found, "learning_rate")[31] == pytest.approx(RATE / 31)
    # Again from the start, as TRL does it.
    first, found.seen = found.seen, []
    found.train()
    assert [place[:4] for place in found.seen] == [place[:4] for place in first]


@pytest.mark.parametrize(
    "settings, stops",
    [
        ({}, (4, 6, 7, 13, 14, 17)),
        ({"per_device_train_batch_size": 4, "steps_per_generation": 2, "gradient_accumulation_steps": 1}, (3, 9, 30)),
        ({"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}, (4, 17)),
    ],
    ids=["one slice", "two slices", "accumulated"],
)
def test_a_run_that_is_taken_up_again_is_the_run(tmp_path, settings, stops):
    whole = trainer(tmp_path, save_strategy="steps", save_steps=1, **settings)
    whole.train()
    for stop in stops:
        again = trainer(tmp_path, **settings)
        again.train(resume_from_checkpoint=str(tmp_path / "out" / f"checkpoint-{stop}"))
        assert again.seen == [place for place in whole.seen if place[0] >= stop], stop
        # The batch in hand was kept with the checkpoint, so that completions are the same, too.
        assert again.losses == whole.losses[-len(again.losses) :], stop
        assert logged(again, "learning_rate") == pytest.approx(logged(whole, "learning_rate"))
        assert again.state.global_step == whole.state.global_step


def test_without_a_warmup_a_later_epoch_keeps_its_order(tmp_path):
    whole = trainer(tmp_path, warmup=False, save_strategy="steps", save_steps=1, num_train_epochs=2, num_iterations=2)
    whole.train()
    # Six generations of two passes an epoch: within one, at its end, and within the next.
    for stop in (5, 12, 15):
        again = trainer(tmp_path, warmup=False, num_train_epochs=2, num_iterations=2)
        again.train(resume_from_checkpoint=str(tmp_path / "out" / f"checkpoint-{stop}"))
        assert again.seen == [place for place in whole.seen if place[0] >= stop], stop
        assert again.losses == whole.losses[-len(again.losses) :], stop
    # And the orders are TRL's.
    shown = generations(whole.seen)
    plain = trl.trainer.utils.RepeatSampler(range(12), 1, batch_size=2, seed=3)
    orders = [list(plain), list(plain)]
    prompts = [tuple(sorted(f"w{i} w{i + 1}" for i in order[at : at + 2])) for order in orders for at in range(0, 12, 2)]
    assert [prompts_ for prompts_, _ in shown.values()] == prompts


def test_where_no_batch_was_kept_it_is_drawn_again(tmp_path):
    whole = trainer(tmp_path, save_strategy="steps", save_steps=1, num_train_epochs=1)
    whole.train()
    (tmp_path / "out" / "checkpoint-4" / "niwaki-batch-0.pt").unlink()
    again = trainer(tmp_path, num_train_epochs=1)
    again.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))
    assert again.seen == [place for place in whole.seen if place[0] >= 4]
    assert again.losses != whole.losses[-len(again.losses) :]


@pytest.mark.parametrize("dumps", [True, False], ids=["dumps", "tallies"])
def test_a_run_that_is_taken_up_again_leaves_each_generation_once(tmp_path, dumps):
    whole = trainer(tmp_path, save_strategy="steps", save_steps=1, num_train_epochs=1)
    whole.add_callback(AdviseCallback(tmp_path / "advice", dumps=dumps))
    whole.train()
    before = advise(tmp_path / "advice")
    # Generations 0 and 1 have three passes each: step 4 lies in the second, whose rows and tally are written again.
    again = trainer(tmp_path, num_train_epochs=1)
    again.add_callback(AdviseCallback(tmp_path / "advice", dumps=dumps))
    again.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))
    after = advise(tmp_path / "advice")
    assert after.facts["iterations"] == before.facts["iterations"] == 6
    assert after.facts["trajectories"] == before.facts["trajectories"] == 48

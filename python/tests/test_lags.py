"""Versions and ages of the policies that sampled: the split of drift, ranks, and what is refused."""

import numpy as np
import pytest
from niwaki.advise import Advisor, Dump, advise


def batch(lanes=64, steps=30, seed=0):
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 4, size=(lanes, 1))
    ages = np.where(np.arange(steps) >= steps // 2, np.maximum(start - 1, 0), start)
    old = -rng.exponential(size=(lanes, steps)) - 0.5
    behaviour = np.minimum(old - rng.normal(size=old.shape) * np.sqrt(0.0004 + 0.0016 * ages), 0)
    new = np.minimum(old + rng.normal(scale=0.03, size=old.shape), 0)
    return (new, old, rng.normal(size=lanes)), {"behaviour_logprobs": behaviour, "group": np.arange(lanes) // 4}, ages


def test_ages_and_versions_say_the_same():
    arrays, given, ages = batch()
    aged, versioned = Advisor(), Advisor()
    aged.update(*arrays, **given, ages=ages)
    versioned.update(*arrays, **given, versions=40 - ages, trainer_version=40)
    found = aged.advice()
    assert found.ages == versioned.advice().ages and found.limits == versioned.advice().limits
    assert [row["age"] for row in found.ages] == [0, 1, 2, 3]
    assert found.ages[3]["sampler"] > 4 * found.ages[0]["sampler"] > 0
    assert found["sampler_drift"] > found["drift"] and "3 versions old" in " ".join(found.because)
    # One for each trajectory.
    single = Advisor()
    single.update(*arrays, **given, versions=np.repeat([3, 4, 5, 6], 16))
    assert [row["age"] for row in single.advice().ages] == [0, 1, 2, 3]


def test_ranks_agree_on_ages_only_together():
    arrays, given, ages = batch()
    whole = Advisor()
    whole.update(*arrays, **given, versions=9 - ages)
    order = np.argsort(ages.min(1), kind="stable")
    ranks = []
    for rank, own in enumerate((order[:32], order[32:])):
        share = Advisor(share=(rank, 2))
        rest = {name: values[own] for name, values in given.items()}
        share.update(*(part[own] for part in arrays), **rest, versions=(9 - ages)[own])
        ranks.append(share)
    ranks[1].merge(ranks[0].tally())
    assert ranks[1].advice().ages == whole.advice().ages


def test_dumps_keep_them(tmp_path):
    arrays, given, ages = batch()
    with Dump(tmp_path) as dump:
        dump.update(*arrays, **given, ages=ages)
    live = Advisor()
    live.update(*arrays, **given, ages=ages)
    for one, other in zip(advise(tmp_path).ages, live.advice().ages):
        assert one["age"] == other["age"] and one["drift"] == pytest.approx(other["drift"], rel=1e-3)


def test_what_is_wrong_is_refused_by_name():
    arrays, given, ages = batch()
    for more, said in (
        ({"ages": ages - 1}, r"trajectory \d+: ages\[\d+\] is -1; it must be a whole number from 0 on"),
        ({"ages": ages[:, ::-1]}, r"ages\[\d+\] is \d after \d; a later step is never sampled by an older policy"),
        ({"versions": ages}, r"versions\[\d+\] is \d after \d"),
        ({"versions": 9 - ages, "ages": ages}, "both there; keep one"),
        ({"versions": 9 - ages, "trainer_version": 5}, r"trainer_version is 5, below the versions? \d of a step"),
        ({"trainer_version": 5}, "trainer_version must be beside versions?"),
        ({"versions": np.ones((64, 29))}, r"versions has shape \(64, 29\)"),
        ({"versions": np.full(64, 1.5)}, "is 1.5; it must be a whole number"),
    ):
        with pytest.raises(ValueError, match=said):
            Advisor().update(*arrays, **given, **more)
    advisor = Advisor()
    advisor.update(*arrays, **given, ages=ages)
    before = advisor.tally()
    with pytest.raises(ValueError, match="neither versions nor ages"):
        advisor.update(*arrays, **given)
    assert advisor.tally() == before

"""Wrong inputs, as a table: every array of every public entry × every fault is an exception that names the argument.

What the libraries of tensors can only see by waiting for the device (NaN, positive log-probs, a mask of zeros) they see with
`check=True`; half precision and strides are theirs to handle, and they do.
"""

import numpy as np
import pytest
from niwaki import advise, correction, oracle, shop, stats

RNG = np.random.default_rng(0)
OLD = -RNG.exponential(size=(4, 5)) - 0.3
NEW = OLD + RNG.uniform(-0.05, 0.05, size=OLD.shape)
MASK = np.ones((4, 5), bool)


class Elsewhere:
    """What a tensor on a GPU looks like to code that has not imported torch."""

    def __init__(self, shape):
        self.shape, self.dtype = shape, "torch.float32"
        self.device = type("device", (), {"type": "cuda", "__str__": lambda self: "cuda:0"})()


Elsewhere.__module__ = "torch"


def with_value(array, value):
    found = array.copy()
    found.reshape(-1)[0] = value
    return found


FAULTS = {
    "another shape": lambda good: good[None].copy(),
    "too short": lambda good: good[..., :-1].copy(),
    "empty": lambda good: good[:0].copy(),
    "not a number": lambda good: with_value(good, np.nan),
    "infinite": lambda good: with_value(good, np.inf),
    "float16": lambda good: good.astype(np.float16),
    "complex": lambda good: good.astype(complex),
    "objects": lambda good: np.full(good.shape, None),
    "strided": lambda good: np.repeat(good, 2, axis=-1)[..., ::2],
    "on a GPU": lambda good: Elsewhere(good.shape),
    "text": lambda good: "x",
}
LOGPROBS = {"positive": lambda good: with_value(good, 0.5)}
# Two tokens over three steps: 1 + 2 + 4 prefixes.
LOGITS = RNG.normal(size=(7, 2))
SAMPLE = RNG.normal(size=8)
SCORES = RNG.uniform(size=(6, 3))


def live(**arguments):
    return advise.Advisor().update(**arguments)


BATCH = {"logprobs": NEW, "old_logprobs": OLD, "advantages": RNG.normal(size=(4, 5))}
BEHAVIOUR = {"behaviour_logprobs": OLD}
# What is measured is widened and laid out in any case; log-probs of 16 bits are told (test_hostile.py).
WIDENED = ("float16", "strided")
# entry → (call, good arguments, the arrays among them, faults that are none there, in all of them or in one)
ENTRIES = {
    "correction.evaluate": (correction.evaluate, BATCH | {"weights": np.ones(4)}, None, ()),
    "correction.evaluate, a weight": (
        lambda **arguments: correction.evaluate(**arguments, correction="token-tis"), BATCH | BEHAVIOUR, None, (),
    ),
    "correction.evaluate, written out": (
        lambda **arguments: correction.evaluate(**arguments, correction="top-entropy:0.5"),
        BATCH | {"reference_logprobs": OLD, "entropies": -OLD},
        None,
        (),
    ),
    # A sampler that scored no token says so by NaN; the token is left out and counted.
    "advise.Advisor.update": (
        live, BATCH | BEHAVIOUR | {"weights": np.ones(4)}, None, (("behaviour_logprobs", "not a number"), *WIDENED),
    ),
    "advise.advise": (lambda **arguments: advise.advise(arguments), BATCH, None, WIDENED),
    "stats.paired": (stats.paired, {"first": SAMPLE, "second": SAMPLE[::-1].copy()}, None, ()),
    "stats.silence": (lambda **arguments: stats.silence(**arguments, group=2), {"rates": np.linspace(0.1, 0.8, 8)}, None, ("too short",)),
    "stats.sign_test": (stats.sign_test, {"first": SAMPLE, "second": SAMPLE[::-1].copy()}, None, ()),
    "stats.bca": (stats.bca, {"sample": SAMPLE}, None, ("too short",)),
    "stats.aggregate": (stats.aggregate, {"scores": SCORES}, None, ("too short",)),
    "stats.probability_of_improvement": (
        stats.probability_of_improvement, {"first": SCORES, "second": SCORES[::-1].copy()}, None, (),
    ),
    "stats.profile": (stats.profile, {"scores": SCORES, "thresholds": np.linspace(0, 1, 5)}, None, ("too short",)),
    "stats.auc": (stats.auc, {"curve": SAMPLE, "x": np.arange(8.0)}, None, ()),
    "stats.correlation": (stats.correlation, {"x": SAMPLE, "y": SAMPLE**2}, None, ()),
}


def cases():
    for entry, (_, good, arrays, none) in ENTRIES.items():
        for name in arrays or good:
            faults = FAULTS | (LOGPROBS if name.endswith("logprobs") else {})
            for fault in faults:
                if fault not in none and (name, fault) not in none:
                    yield pytest.param(entry, name, faults[fault], id=f"{entry}, {name} {fault}")


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_good_arguments_are_taken(entry):
    call, good, *_ = ENTRIES[entry]
    call(**good)


@pytest.mark.parametrize("entry, name, fault", list(cases()))
def test_every_fault_is_an_exception_that_names_the_argument(entry, name, fault):
    call, good, *_ = ENTRIES[entry]
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        call(**good | {name: fault(good[name])})


@pytest.mark.parametrize("fault", FAULTS)
def test_tables_of_the_oracle(fault):
    wrong = FAULTS[fault]
    measure = lambda **changes: oracle.measure(**{"logits": (LOGITS, LOGITS + 0.1), "reward": np.arange(8.0), "losses": ["ppo"]} | changes)
    measure()
    with pytest.raises((TypeError, ValueError), match=r"\blogits\b"):
        measure(logits=(LOGITS, wrong(LOGITS)))
    with pytest.raises((TypeError, ValueError), match=r"\breward\b"):
        measure(reward=wrong(np.arange(8.0)))


@pytest.mark.parametrize("call", [correction.evaluate, live], ids=["correction.evaluate", "advise.Advisor.update"])
@pytest.mark.parametrize(
    "mask", [np.zeros((4, 5), bool), np.ones((4, 4), bool), np.full((4, 5), 0.5), np.ones((5, 4), bool).T, "x"],
    ids=["of zeros", "too short", "of halves", "strided", "text"],
)
def test_masks(call, mask):
    call(**BATCH, mask=MASK)
    if call is live and isinstance(mask, np.ndarray) and mask.shape == MASK.shape and mask.all() and not mask.flags.c_contiguous:
        call(**BATCH, mask=mask)
        return
    with pytest.raises((TypeError, ValueError), match=r"\bmask\b"):
        call(**BATCH, mask=mask)


@pytest.mark.parametrize(
    "times", [[1, 2], [[[1]]], [[1.5, 2.0]], [[-1, 2]], np.zeros((0, 3), int), [["a"]], [[None]], [[np.nan]], [[2**40]]],
)
def test_times_of_a_shop(times):
    with pytest.raises((TypeError, ValueError), match="times|jobs|machines"):
        shop.Instance.flow(times)


@pytest.mark.parametrize("routes", [[[(0, 2**40)]], [[(-1, 2)]], [[(0, 1.5)]], [[(0,)]], [[3]], [[("a", 1)]], 7, [[(5, 1)]], []])
def test_routes_of_a_shop(routes):
    with pytest.raises(ValueError, match="routes|machine|jobs"):
        shop.Instance.job(2, routes)

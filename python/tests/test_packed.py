"""Packed rows with boundaries and lists of one tensor per trajectory are the padded batch, value and gradient."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")

from members import batch  # noqa: E402
from niwaki import _packed  # noqa: E402
from niwaki.torch import PackedWarning, amplification, corrected_logprobs, log_factor, surrogate, terms  # noqa: E402

NAMES = ("logprobs", "old_logprobs", "behaviour_logprobs", "advantages", "mask")
LENGTHS = [5, 1, 7, 0, 3]
LAYOUTS = ["flat", "one row", "list"]


def padded():
    """A batch whose masks end where trajectories do, with a hole inside one of them."""
    *parts, weights = batch(len(LENGTHS), max(LENGTHS), seed=5)
    found = dict(zip(NAMES, map(torch.tensor, parts)))
    found["mask"] = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    found["mask"][0, 2] = False
    return found, torch.tensor(weights)


def lay(layout, values):
    """Padded values in a layout, and the boundaries that go with it."""
    rows = [row[:length] for row, length in zip(values, LENGTHS)]
    flat = torch.cat(rows)
    return {"flat": flat, "one row": flat[None], "list": [row.clone() for row in rows]}[layout]


def bounds(layout):
    return {} if layout == "list" else {"cu_seqlens": torch.tensor([0, *np.cumsum(LENGTHS)], dtype=torch.int32)}


def unlaid(layout, values):
    return torch.cat(values) if layout == "list" else values.reshape(-1)


def packed(layout, found):
    made = {name: lay(layout, values) for name, values in found.items()}
    for leaf in made["logprobs"] if layout == "list" else [made["logprobs"]]:
        leaf.requires_grad_()
    return made


def gradient(layout, made):
    leaves = made["logprobs"]
    grads = [leaf.grad if leaf.grad is not None else torch.zeros_like(leaf) for leaf in leaves] if layout == "list" else leaves.grad
    return unlaid(layout, grads)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mean", ["steps", "trajectories"])
@pytest.mark.parametrize("loss", ["tempered:0.4", "truncated:2", "minpro", "self-normalised:0.5", "gspo"])
def test_the_loss_is_that_of_the_padded_batch(layout, mean, loss):
    found, weights = padded()
    settings = {"correction": loss, "mean": mean, "weights": weights, "behaviour_weight": "token-tis:1.1"}
    leaf = found["logprobs"].clone().requires_grad_()
    expected, theirs = surrogate(**found | {"logprobs": leaf}, **settings)
    expected.backward()
    made = packed(layout, found)
    value, metrics = surrogate(**made, **settings, **bounds(layout))
    value.backward()
    assert value.item() == pytest.approx(expected.item(), abs=1e-14)
    assert {name: each.item() for name, each in metrics.items()} == pytest.approx({n: e.item() for n, e in theirs.items()}, abs=1e-14)
    torch.testing.assert_close(gradient(layout, made), unlaid(layout, lay(layout, leaf.grad)), rtol=0, atol=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("entry", [terms, log_factor, corrected_logprobs])
def test_steps_return_as_they_came(layout, entry):
    found, _ = padded()
    names = ("logprobs", "old_logprobs", "mask") + (("advantages",) if entry is terms else ())
    made = packed(layout, {name: found[name] for name in names})
    given = entry(**made, correction="tempered:0.4", **bounds(layout))
    expected = lay(layout, entry(**{name: found[name] for name in names}, correction="tempered:0.4"))
    assert isinstance(given, list) == (layout == "list") and (layout == "list" or given.shape == expected.shape)
    torch.testing.assert_close(unlaid(layout, given), unlaid(layout, expected), rtol=0, atol=1e-14)
    unlaid(layout, given).sum().backward()
    assert torch.isfinite(gradient(layout, made)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_a_mask_and_with_one_advantage_each(layout):
    found, _ = padded()
    made = {name: lay(layout, found[name]) for name in ("logprobs", "old_logprobs")}
    each = found["advantages"][:, 0]
    whole = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    expected, _ = surrogate(found["logprobs"], found["old_logprobs"], each, whole)
    value, _ = surrogate(**made, advantages=each, **bounds(layout))
    assert value.item() == pytest.approx(expected.item(), abs=1e-14)
    ours = amplification(**made, advantages=each, **bounds(layout))
    assert ours.item() == pytest.approx(amplification(found["logprobs"], found["old_logprobs"], each, whole).item(), abs=1e-12)


def test_a_row_without_boundaries_is_one_trajectory():
    # So that nobody packs by accident: the prefix runs on over what were two trajectories.
    new, old = torch.tensor([[-1.0, -1.0, -1.0]]), torch.tensor([[-1.5, -1.0, -1.0]])
    apart = log_factor(new, old, correction="full", cu_seqlens=[0, 1, 3])
    torch.testing.assert_close(apart, torch.tensor([[0.0, 0.0, 0.0]]))
    torch.testing.assert_close(log_factor(new, old, correction="full"), torch.tensor([[0.0, 0.5, 0.5]]))


@pytest.mark.parametrize(
    "wrong", [[0, 2], [1, 3], [0, 2, 1, 3], [0.0, 3.0], [3], 3, torch.tensor([0.0, 3.0]), torch.tensor(3)],
    ids=["short", "late", "falling", "floats", "one", "a number", "a tensor of floats", "a tensor of one number"],
)
def test_wrong_boundaries_are_refused(wrong):
    flat = torch.tensor([-1.0, -1.0, -1.0])
    with pytest.raises(ValueError, match="^cu_seqlens must be whole numbers"):
        surrogate(flat, flat, flat, cu_seqlens=wrong)


@pytest.mark.parametrize("entry", [surrogate, terms, corrected_logprobs, log_factor, amplification])
def test_refusals_name_the_argument(entry):
    flat, bound = torch.tensor([-1.0, -1.0, -1.0]), {"cu_seqlens": [0, 1, 3]}
    takes = {"logprobs": flat, "old_logprobs": flat, "mask": torch.ones(3)}
    takes |= {} if entry in (corrected_logprobs, log_factor) else {"advantages": torch.ones(2)}
    entry(**takes, **bound)
    wrongs = {
        "logprobs": [None, flat.reshape(3, 1), torch.zeros(2, 3), torch.zeros(3, dtype=torch.long), [0.0, 1.0], [flat[None]]],
        "old_logprobs": [None, flat[:2], flat[None], [flat], torch.zeros(3, device="meta")],
        "mask": [flat[:2], [flat]],
        "advantages": [None, torch.ones(1), [flat]],
    }
    for name, several in wrongs.items():
        for wrong in several if name in takes else []:
            with pytest.raises((TypeError, ValueError), match=rf"^({name}\b|cu_seqlens goes with)"):
                entry(**takes | {name: wrong}, **bound)
    lists = {name: [value[:1], value[1:]] for name, value in takes.items() if name != "advantages"}
    lists |= {"advantages": torch.ones(2)} if "advantages" in takes else {}
    entry(**lists)
    for name in takes:
        for wrong in (flat[None], [flat[:1], flat[:1]], "x"):
            with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
                entry(**lists | {name: wrong})


def test_a_row_that_looks_packed_is_told_once(monkeypatch):
    monkeypatch.setattr(_packed.SINGLE, "said", False)
    monkeypatch.setattr(_packed.SINGLE, "rows", 0)
    old = torch.full((1, 12), -1.0)
    one = torch.full((1, 12), 0.5)
    two = torch.tensor([[0.5] * 5 + [-0.5] * 7])
    noise = torch.linspace(-1, 1, 12)[None]
    with warnings.catch_warnings():
        warnings.simplefilter("error", PackedWarning)
        # One trajectory, a critic's advantages, boundaries, and two rows.
        surrogate(old, old, one)
        surrogate(old, old, noise)
        surrogate(old, old, two, cu_seqlens=[0, 5, 12])
        surrogate(old.repeat(2, 1), old.repeat(2, 1), two.repeat(2, 1))
        surrogate(old, old, two, mask=torch.arange(12)[None] < 5)
    monkeypatch.setattr(_packed.SINGLE, "rows", 0)
    with pytest.warns(PackedWarning, match="2 values one after the other.*pass cu_seqlens"):
        surrogate(old, old, two)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PackedWarning)
        surrogate(old, old, two)

"""niwaki.torch against the kernel: value and gradient of every member, and what it refuses."""

import niwaki.correction
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")

from members import LOSSES, batch  # noqa: E402
from niwaki.torch import corrected_logprobs, log_factor, surrogate, terms  # noqa: E402

SWITCHES = {
    "plain": {},
    "no clip": {"clip": None},
    "dual clip": {"clip": (0.1, 0.2, 1.5)},
    "no routing": {"routing": False},
    "trajectories": {"mean": "trajectories"},
}


def both(loss, kind, engines=False, weighted=False, holes=True, **switches):
    new, old, behaviour, advantages, mask, weights = batch(holes=holes)
    extra = {"behaviour_logprobs": behaviour} if engines else {}
    extra |= {"weights": weights} if weighted else {}
    kernel = niwaki.correction.evaluate(new, old, advantages, mask=mask, correction=loss, **extra, **switches)
    tensors = {name: torch.tensor(value, dtype=kind) for name, value in extra.items()}
    leaf = torch.tensor(new, dtype=kind, requires_grad=True)
    made = [torch.tensor(value, dtype=kind) for value in (old, advantages)]
    found, metrics = surrogate(leaf, *made, torch.tensor(mask), correction=loss, **tensors, **switches)
    found.backward()
    return kernel, found.item(), leaf.grad.numpy(), metrics


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("loss", LOSSES)
def test_equals_the_kernel(loss, switch):
    for options in ({}, {"engines": True}, {"weighted": True}):
        if "engines" in options and niwaki.correction.Correction.parse(loss).rule.form != "weigh":
            continue
        kernel, value, gradient, _ = both(loss, torch.float64, **options, **SWITCHES[switch])
        # The strength of an ESS floor is found by 40 halvings on either side; its last digits may differ.
        close = 1e-9 if loss.startswith("adaptive") else 1e-12
        assert value == pytest.approx(kernel.loss, abs=close), options
        np.testing.assert_allclose(gradient, -kernel.cotangent, rtol=0, atol=close, err_msg=str(options))


@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_equals_the_kernel_to_1e_6(loss):
    kernel, value, gradient, _ = both(loss, torch.float32)
    steps = kernel.diagnostics.steps
    assert value == pytest.approx(kernel.loss, abs=1e-6)
    np.testing.assert_allclose(gradient, -kernel.cotangent, rtol=0, atol=1e-6)
    # The same as gradients of a sum over steps, which are of order one.
    np.testing.assert_allclose(gradient * steps, -kernel.cotangent * steps, rtol=0, atol=3e-5)


@pytest.mark.parametrize("loss", ["tempered:0.3", "ppo", "full", "clipped:0.5,0.2", "truncated:3"])
def test_metrics_are_the_kernels(loss):
    kernel, _, _, metrics = both(loss, torch.float64)
    for name, value in metrics.items():
        assert value.item() == pytest.approx(getattr(kernel.diagnostics, name), abs=1e-12), name
        assert not value.requires_grad
    assert {"kl_k1", "kl_k3", "clip_fraction", "ess"} <= set(metrics)


def tensors(**changes):
    new, old, behaviour, advantages, mask, weights = batch(4, 5)
    found = {"logprobs": new, "old_logprobs": old, "advantages": advantages, "mask": mask}
    return {name: torch.tensor(value) for name, value in found.items()} | changes


def test_ties_of_a_fresh_batch_route_as_the_kernel_does():
    new, old, _, advantages, mask, _ = batch(6, 5)
    for loss in LOSSES:
        kernel = niwaki.correction.evaluate(old, old, advantages, mask=mask, correction=loss)
        leaf = torch.tensor(old, requires_grad=True)
        value, _ = surrogate(leaf, torch.tensor(old), torch.tensor(advantages), torch.tensor(mask), correction=loss)
        value.backward()
        assert value.item() == pytest.approx(kernel.loss, abs=1e-12), loss
        np.testing.assert_allclose(leaf.grad, -kernel.cotangent, rtol=0, atol=1e-12, err_msg=loss)


def test_what_lies_under_the_mask_is_never_looked_at():
    clean = tensors()
    dirty = tensors()
    hidden = ~dirty["mask"]
    for name, junk in (("logprobs", float("nan")), ("old_logprobs", float("-inf")), ("advantages", float("inf"))):
        dirty[name] = torch.where(hidden, junk, dirty[name])
    for found in (clean, dirty):
        found["logprobs"].requires_grad_()
        found["loss"], _ = surrogate(*(found[name] for name in ("logprobs", "old_logprobs", "advantages", "mask")))
        found["loss"].backward()
    assert clean["loss"] == dirty["loss"]
    torch.testing.assert_close(clean["logprobs"].grad, dirty["logprobs"].grad, rtol=0, atol=0)


def test_half_precision_is_taken_to_float32():
    found = tensors()
    narrow = {name: found[name].bfloat16() for name in ("logprobs", "old_logprobs", "advantages")}
    wide = {name: value.float() for name, value in narrow.items()}
    leaf = narrow["logprobs"].requires_grad_()
    loss, _ = surrogate(leaf, narrow["old_logprobs"], narrow["advantages"], found["mask"])
    loss.backward()
    expected, _ = surrogate(**wide, mask=found["mask"])
    assert loss.dtype == torch.float32 and loss == expected and leaf.grad.dtype == torch.bfloat16


def test_advantages_per_trajectory_strides_and_a_mask_of_numbers():
    found = tensors()
    each = found["advantages"][:, 0].clone()
    loss, _ = surrogate(found["logprobs"], found["old_logprobs"], each, found["mask"].float())
    whole, _ = surrogate(found["logprobs"], found["old_logprobs"], each[:, None].repeat(1, 5), found["mask"])
    turned = found["logprobs"].T.contiguous().T
    strided, _ = surrogate(turned, found["old_logprobs"], each, found["mask"])
    assert loss.item() == pytest.approx(whole.item(), abs=1e-15) and loss.item() == pytest.approx(strided.item(), abs=1e-15)


def test_terms_sum_to_the_objective():
    found = tensors()
    each = terms(**found, correction="tempered:0.4")
    loss, _ = surrogate(**found, correction="tempered:0.4")
    assert (each.sum() / found["mask"].sum()).item() == pytest.approx(-loss.item(), abs=1e-14)
    factor = log_factor(found["logprobs"], found["old_logprobs"], found["mask"], correction="tempered:0.4")
    ell = torch.where(found["mask"], found["logprobs"] - found["old_logprobs"], 0.0)
    torch.testing.assert_close(factor, torch.where(found["mask"], 0.4 * (ell.cumsum(1) - ell), 0.0))


@pytest.mark.parametrize("loss", ["tempered:0.4", "full", "clipped:0.5,0.2", "truncated:2", "minpro", "self-normalised:0.5"])
@pytest.mark.parametrize("routing", [True, False])
def test_corrected_logprobs_are_the_sum_and_route_alike(loss, routing):
    found = tensors()
    pulled = []
    weights = torch.linspace(-1.0, 1.0, 20, dtype=torch.float64).reshape(4, 5)
    for fast in (True, False):
        leaf = found["logprobs"].clone().requires_grad_()
        if fast:
            value = corrected_logprobs(leaf, found["old_logprobs"], found["mask"], correction=loss, routing=routing)
        else:
            factor = log_factor(leaf, found["old_logprobs"], found["mask"], correction=loss)
            value = leaf + (factor if routing else factor.detach())
        (value * weights).sum().backward()
        pulled.append((value.detach(), leaf.grad))
    for ours, expected in zip(*pulled):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", [torch.bool, torch.int64, torch.float32])
def test_corrected_logprobs_leave_what_they_read_as_it_was(kind, turned):
    found = tensors()
    lay = lambda values: values.T.contiguous().T if turned else values.clone()
    leaf, old = lay(found["logprobs"]).requires_grad_(), lay(found["old_logprobs"])
    # A mask's numbers need not be ones.
    mask = lay(found["mask"]).to(kind) * (1 if kind == torch.bool else 3)
    value = corrected_logprobs(leaf, old, mask, correction="tempered:0.4")
    kept, came = value.detach().clone(), lay(torch.linspace(-1.0, 1.0, 20, dtype=torch.float64).reshape(4, 5))
    sent = came.clone()
    value.backward(sent)
    assert torch.equal(leaf.detach(), found["logprobs"]) and torch.equal(old, found["old_logprobs"])
    assert torch.equal(mask != 0, found["mask"]) and torch.equal(sent, came) and torch.equal(value.detach(), kept)
    # Row by row, as the formula is written.
    own, ell = found["mask"].double(), torch.where(found["mask"], found["logprobs"] - found["old_logprobs"], 0.0)
    for row in range(4):
        for step in range(5):
            before = found["logprobs"][row, step] + 0.4 * own[row, step] * ell[row, :step].sum()
            after = came[row, step] + 0.4 * own[row, step] * (own * came)[row, step + 1 :].sum()
            assert value[row, step].item() == pytest.approx(before.item(), abs=1e-14)
            assert leaf.grad[row, step].item() == pytest.approx(after.item(), abs=1e-14)


def test_corrected_logprobs_never_look_under_the_mask():
    found = tensors()
    hidden = ~found["mask"]
    dirty = torch.where(hidden, float("nan"), found["logprobs"]).requires_grad_()
    value = corrected_logprobs(dirty, torch.where(hidden, float("-inf"), found["old_logprobs"]), found["mask"])
    expected = corrected_logprobs(found["logprobs"], found["old_logprobs"], found["mask"])
    torch.testing.assert_close(value[found["mask"]], expected[found["mask"]], rtol=0, atol=0)
    value[found["mask"]].sum().backward()
    assert torch.isfinite(dirty.grad).all() and (dirty.grad[hidden] == 0).all()


def _summed(loss, logprobs, old_logprobs, mask, **_):
    """What a trainer with a loss of its own would read, where the member multiplies."""
    if loss == "ctpo":
        return 0.0
    return (corrected_logprobs(logprobs, old_logprobs, mask, correction=loss) * mask).sum()


@pytest.mark.parametrize("loss", ["tempered:0.1", "truncated:3", "self-normalised:0.5", "minpro", "ctpo"])
def test_compiles_whole(loss):
    found = tensors()
    found["logprobs"].requires_grad_()
    whole = lambda **values: surrogate(**values, correction=loss)[0] + _summed(loss, **values)
    compiled = torch.compile(whole, fullgraph=True, backend="aot_eager")
    value = compiled(**found)
    value.backward()
    gradient, found["logprobs"].grad = found["logprobs"].grad, None
    expected = whole(**found)
    expected.backward()
    torch.testing.assert_close(value, expected, rtol=0, atol=1e-14)
    torch.testing.assert_close(gradient, found["logprobs"].grad, rtol=0, atol=1e-14)


@pytest.mark.parametrize("entry", [surrogate, terms, corrected_logprobs, log_factor])
def test_every_entry_names_the_argument(entry):
    takes = {name: value for name, value in tensors().items() if name != "advantages" or entry in (surrogate, terms)}
    entry(**takes)
    empty, flat, short = torch.zeros(0, 5), torch.zeros(5), torch.zeros(4, 4)
    for name, wrongs in {
        "logprobs": [None, np.zeros((4, 5)), torch.ones(4, 5, dtype=torch.long), empty, flat],
        "old_logprobs": [None, np.zeros((4, 5)), short, flat, torch.zeros(4, 5, device="meta")],
        "advantages": [None, np.zeros(4), short, flat, torch.zeros(4, device="meta")],
        "mask": [np.ones((4, 5)), short, flat, torch.ones(4, 5, device="meta")],
    }.items():
        for wrong in wrongs if name in takes else []:
            with pytest.raises((TypeError, ValueError), match=f"^{name} "):
                entry(**takes | {name: wrong})


def refusal(check=False, **changes):
    with pytest.raises((TypeError, ValueError)) as caught:
        surrogate(**tensors(**changes), check=check)
    return f"{caught.type.__name__}: {caught.value}"


def test_refusals_name_the_argument():
    good = tensors()
    bad = good["old_logprobs"].clone()
    bad[0, 0] = float("nan")
    positive = good["logprobs"].clone()
    positive[0, 0] = 0.5
    assert refusal(logprobs=np.zeros((4, 5))).startswith("TypeError: logprobs is ndarray")
    assert refusal(logprobs=torch.ones(4, 5, dtype=torch.long)).startswith("TypeError: logprobs is torch.int64")
    assert refusal(logprobs=torch.zeros(0, 5)).startswith("ValueError: logprobs is empty")
    assert refusal(logprobs=torch.zeros(5)).startswith("ValueError: logprobs has shape (5,)")
    assert refusal(old_logprobs=torch.zeros(4, 4)) == (
        "ValueError: old_logprobs has shape (4, 4) where logprobs has (4, 5)"
    )
    assert refusal(advantages=torch.zeros(5)).startswith("ValueError: advantages has shape (5,)")
    assert refusal(mask=torch.ones(4)).startswith("ValueError: mask has shape (4,)")
    assert refusal(old_logprobs=torch.zeros(4, 5, device="meta")).startswith("ValueError: old_logprobs is on meta")
    assert refusal(mask=torch.ones(4, 5, device="meta")).startswith("ValueError: mask is on meta")
    assert refusal(check=True, old_logprobs=bad) == "ValueError: old_logprobs[0, 0] is not a finite number"
    assert refusal(check=True, logprobs=positive) == (
        "ValueError: logprobs[0, 0] = 0.5 is positive, which no log-probability is"
    )
    assert refusal(check=True, mask=torch.zeros(4, 5)) == "ValueError: mask leaves no step of the policy in the batch"


def test_the_arrays_door_refuses_other_devices_and_narrow_tensors():
    new, old, _, advantages, _, _ = batch(4, 5)
    with pytest.raises(TypeError, match="logprobs is a tensor on meta.*niwaki.torch"):
        niwaki.correction.evaluate(torch.zeros(4, 5, device="meta"), old, advantages)
    with pytest.raises(TypeError, match="old_logprobs is torch.bfloat16"):
        niwaki.correction.evaluate(new, torch.tensor(old).bfloat16(), advantages)
    found = niwaki.correction.evaluate(torch.tensor(new, requires_grad=True), torch.tensor(old), advantages)
    assert found.objective == niwaki.correction.evaluate(new, old, advantages).objective

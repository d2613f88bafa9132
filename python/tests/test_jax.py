"""niwaki.jax against the kernel: value and gradient of every member, jitted and vmapped, and what it refuses."""

import niwaki.correction
import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed; python/test-extras.sh runs this")

import jax.numpy as jnp  # noqa: E402
from members import LOSSES, batch  # noqa: E402
from niwaki.jax import surrogate  # noqa: E402

SWITCHES = [{}, {"clip": None, "routing": False}, {"clip": (0.1, 0.2, 1.5), "mean": "trajectories"}]


@pytest.fixture(autouse=True, scope="module")
def double():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def both(loss, kind=np.float64, engines=False, weighted=False, fresh=False, jit=False, **switches):
    new, old, behaviour, advantages, mask, weights = batch()
    new = old if fresh else new
    extra = {"behaviour_logprobs": behaviour} if engines else {}
    extra |= {"weights": weights} if weighted else {}
    kernel = niwaki.correction.evaluate(new, old, advantages, mask=mask, correction=loss, **extra, **switches)
    arrays = {name: jnp.asarray(value, kind) for name, value in extra.items()}
    constants = [jnp.asarray(value, kind) for value in (old, advantages)]
    run = lambda leaf: surrogate(leaf, *constants, jnp.asarray(mask), correction=loss, **arrays, **switches)
    differentiate = jax.value_and_grad(run, has_aux=True)
    (value, metrics), gradient = (jax.jit(differentiate) if jit else differentiate)(jnp.asarray(new, kind))
    return kernel, float(value), np.asarray(gradient), metrics


@pytest.mark.parametrize("loss", LOSSES)
def test_equals_the_kernel(loss):
    # The strength of an ESS floor is found by 40 halvings on either side; its last digits may differ.
    close = 1e-9 if loss.startswith("adaptive") else 1e-12
    for switches in (*SWITCHES, {"engines": True}, {"weighted": True}, {"fresh": True}):
        if "engines" in switches and niwaki.correction.Correction.parse(loss).rule.form != "weigh":
            continue
        kernel, value, gradient, _ = both(loss, **switches)
        assert value == pytest.approx(kernel.loss, abs=close), switches
        np.testing.assert_allclose(gradient, -kernel.cotangent, rtol=0, atol=close, err_msg=str(switches))


@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_equals_the_kernel_to_1e_6(loss):
    kernel, value, gradient, _ = both(loss, np.float32)
    assert gradient.dtype == np.float32
    assert value == pytest.approx(kernel.loss, abs=1e-6)
    np.testing.assert_allclose(gradient, -kernel.cotangent, rtol=0, atol=1e-6)


@pytest.mark.parametrize("loss", ["tempered:0.3", "truncated:3", "minpro"])
def test_jits(loss):
    kernel, value, gradient, _ = both(loss, jit=True)
    assert value == pytest.approx(kernel.loss, abs=1e-12)
    np.testing.assert_allclose(gradient, -kernel.cotangent, rtol=0, atol=1e-12)


def test_metrics_are_the_kernels():
    kernel, _, _, metrics = both("tempered:0.3")
    for name, value in metrics.items():
        assert float(value) == pytest.approx(getattr(kernel.diagnostics, name), abs=1e-12), name


def test_vmaps_over_batches():
    found = [batch(seed=seed, lanes=5, steps=7) for seed in range(3)]
    new, old, _, advantages, mask, _ = (jnp.stack([jnp.asarray(part[index]) for part in found]) for index in range(6))
    run = lambda *parts: surrogate(*parts, correction="tempered:0.2")[0]
    together = jax.vmap(run)(new, old, advantages, mask)
    alone = jnp.stack([run(new[i], old[i], advantages[i], mask[i]) for i in range(3)])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-15)


def test_what_lies_under_the_mask_is_never_looked_at():
    new, old, _, advantages, mask, _ = batch(4, 5)
    run = lambda new, old, advantages: jax.value_and_grad(
        lambda leaf: surrogate(leaf, old, advantages, mask)[0]
    )(jnp.asarray(new))
    clean = run(new, old, advantages)
    hide = lambda values, junk: np.where(mask, values, junk)
    dirty = run(hide(new, np.nan), hide(old, -np.inf), hide(advantages, np.inf))
    np.testing.assert_array_equal(clean[0], dirty[0])
    np.testing.assert_array_equal(clean[1], dirty[1])


def refusal(**changes):
    new, old, _, advantages, mask, _ = batch(4, 5)
    arguments = {"logprobs": new, "old_logprobs": old, "advantages": advantages, "mask": mask} | changes
    with pytest.raises((TypeError, ValueError)) as caught:
        surrogate(**arguments)
    return f"{caught.type.__name__}: {caught.value}"


def test_refusals_name_the_argument():
    assert refusal(logprobs=np.zeros(5)).startswith("ValueError: logprobs has shape (5,)")
    assert refusal(logprobs=np.zeros((0, 5))).startswith("ValueError: logprobs is empty")
    assert refusal(logprobs=np.zeros((4, 5), int)).startswith("TypeError: logprobs is int")
    assert refusal(logprobs="x").startswith("TypeError: logprobs is str")
    assert refusal(old_logprobs=np.zeros((4, 4))).startswith("ValueError: old_logprobs has shape (4, 4)")
    assert refusal(advantages=np.zeros(5)).startswith("ValueError: advantages has shape (5,)")
    assert refusal(mask=np.ones(4)).startswith("ValueError: mask has shape (4,)")
    assert refusal(weights=np.ones(3)).startswith("ValueError: weights has shape (3,)")
    nan, positive = batch(4, 5)[1].copy(), batch(4, 5)[0].copy()
    nan[0, 1], positive[2, 0] = np.nan, 0.5
    assert refusal(check=True, old_logprobs=nan, mask=np.ones((4, 5))) == "ValueError: old_logprobs[0, 1] is not a finite number"
    assert refusal(check=True, logprobs=positive, mask=np.ones((4, 5))).startswith("ValueError: logprobs[2, 0] is positive")
    assert refusal(check=True, advantages=np.full(4, np.inf)).startswith("ValueError: advantages[0, 0] is not a finite")
    assert refusal(check=True, mask=np.zeros((4, 5))) == "ValueError: mask leaves no step of the policy in the batch"


def test_a_weight_of_the_sampler_decouples_the_correction():
    new, old, behaviour, advantages, mask, _ = batch()
    outside = np.minimum(np.exp(old - behaviour), 1.1)
    kernel = niwaki.correction.evaluate(new, old, advantages * outside, mask=mask, correction="tempered:0.3")
    run = lambda leaf: surrogate(
        leaf, old, advantages, mask, correction="tempered:0.3", behaviour_logprobs=behaviour, behaviour_weight="token-tis:1.1"
    )[0]
    value, gradient = jax.jit(jax.value_and_grad(run))(jnp.asarray(new))
    assert float(value) == pytest.approx(kernel.loss, abs=1e-12)
    np.testing.assert_allclose(gradient, -kernel.cotangent, rtol=0, atol=1e-12)
    assert "behaviour_logprobs: correction 'tempered:0.1' does not read them" in refusal(behaviour_logprobs=batch(4, 5)[2])

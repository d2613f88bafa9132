"""Three policies: the engine that sampled, the old one, the one now. A constant weight leads from the first to the second, the
correction from the second to the third; log-probs that no loss would read are refused."""

import itertools

import numpy as np
import pytest
from niwaki.correction import evaluate

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")

from members import batch  # noqa: E402
from niwaki.torch import surrogate, terms  # noqa: E402

WEIGHTS = {
    "token-tis:1.1": lambda ell: np.minimum(np.exp(ell), 1.1),
    "sequence-tis:1.2": lambda ell: np.minimum(np.exp(ell.sum(1, keepdims=True)), 1.2),
    "token-mis:0.9,1.1": lambda ell: np.exp(ell) * ((np.exp(ell) >= 0.9) & (np.exp(ell) <= 1.1)),
}


def found(correction, **settings):
    new, old, behaviour, advantages, mask, _ = batch()
    leaf = torch.tensor(new, requires_grad=True)
    rest = [torch.tensor(part) for part in (old, advantages, mask)]
    given = torch.tensor(behaviour)
    loss, metrics = surrogate(leaf, *rest, correction=correction, behaviour_logprobs=given, **settings)
    loss.backward()
    each = terms(leaf, *rest, correction=correction, behaviour_logprobs=given, **settings)
    assert -(each.sum() / rest[2].sum()).item() == pytest.approx(loss.item(), abs=1e-14)
    return loss.item(), leaf.grad.numpy(), metrics


@pytest.mark.parametrize("weight", WEIGHTS)
def test_without_a_correction_it_is_decoupled_ppo(weight):
    # The family's own weights around PPO are that loss, and are held to TRL's and verl's in test_peer_losses.
    expected, gradient, _ = found(weight)
    for nothing in ("ppo", "tempered:0"):
        value, ours, _ = found(nothing, behaviour_weight=weight)
        assert value == pytest.approx(expected, abs=1e-14)
        np.testing.assert_allclose(ours, gradient, rtol=0, atol=1e-14)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("loss", ["tempered:0.4", "full", "clipped:0.5,0.2", "truncated:3", "minpro", "gspo"])
def test_the_weight_is_one_on_the_advantages(loss, weight):
    new, old, behaviour, advantages, mask, _ = batch()
    outside = WEIGHTS[weight](np.where(mask, old - behaviour, 0.0))
    kernel = evaluate(new, old, advantages * outside, mask=mask, correction=loss)
    # The kernel has the weight itself, too.
    own = evaluate(new, old, advantages, mask=mask, correction=loss, behaviour_logprobs=behaviour, behaviour_weight=weight)
    assert own.loss == pytest.approx(kernel.loss, abs=1e-12)
    np.testing.assert_allclose(own.cotangent, kernel.cotangent, rtol=0, atol=1e-12)
    value, gradient, metrics = found(loss, behaviour_weight=weight)
    assert value == pytest.approx(kernel.loss, abs=1e-12)
    np.testing.assert_allclose(gradient, -kernel.cotangent, rtol=0, atol=1e-12)
    if "ess" in metrics:
        assert metrics["ess"].item() == pytest.approx(kernel.diagnostics.ess, abs=1e-12)


def test_the_whole_correction_has_the_exact_gradient_on_an_enumerable_process():
    """All sequences of four steps over two tokens, weighed by the sampler's probability: with α = 1 and no bound on the weight
    the gradient is that of the expected reward under the policy now; with α = 0 it is not."""
    steps, rng = 4, np.random.default_rng(7)
    sequences = list(itertools.product((0, 1), repeat=steps))
    prefixes = {prefix: row for row, prefix in enumerate(p for t in range(steps) for p in itertools.product((0, 1), repeat=t))}
    rows = torch.tensor([[prefixes[sequence[:t]] for t in range(steps)] for sequence in sequences])
    tokens = torch.tensor(sequences)
    reward = torch.tensor(rng.normal(size=len(sequences)))
    sampler, old = (torch.tensor(rng.normal(size=(len(prefixes), 2))) for _ in range(2))
    logits = (old + 0.5 * torch.tensor(rng.normal(size=old.shape))).requires_grad_()
    scored = lambda table: table.log_softmax(1)[rows, tokens]

    (scored(logits).sum(1).exp() * reward).sum().backward()
    exact, gradients = logits.grad.clone(), {}
    # The advantage of a step under the old policy, by its values.
    chances = scored(old).sum(1).exp()
    value = lambda prefix: (
        sum(chances[i] * reward[i] for i, s in enumerate(sequences) if s[: len(prefix)] == prefix)
        / sum(chances[i] for i, s in enumerate(sequences) if s[: len(prefix)] == prefix)
    )
    values = {sequence[:t]: value(sequence[:t]) for sequence in sequences for t in range(steps + 1)}
    advantages = torch.tensor([[values[s[: t + 1]] - values[s[:t]] for t in range(steps)] for s in sequences])
    for alpha in (0, 1):
        logits.grad = None
        behaviour = scored(sampler)
        each = terms(
            scored(logits), scored(old), advantages, correction=f"tempered:{alpha}", clip=None,
            behaviour_logprobs=behaviour, behaviour_weight="sequence-tis:1e9",
        )
        (behaviour.sum(1).exp()[:, None] * each).sum().backward()
        gradients[alpha] = logits.grad.clone()
    torch.testing.assert_close(gradients[1], exact, rtol=0, atol=1e-12)
    assert (gradients[0] - exact).norm() > 0.05 * exact.norm()


def refusal(entry=surrogate, **settings):
    new, old, behaviour, advantages, mask, _ = batch()
    rest = [torch.tensor(part) for part in (new, old, advantages, mask)]
    with pytest.raises(ValueError) as caught:
        entry(*rest, **{"behaviour_logprobs": torch.tensor(behaviour)} | settings)
    return str(caught.value)


@pytest.mark.parametrize("entry", [surrogate, terms])
def test_what_would_be_ignored_is_refused_by_name(entry):
    said = "behaviour_logprobs: correction 'tempered:0.1' does not read them; name the weight"
    assert refusal(entry, correction="tempered:0.1").startswith(said)
    assert refusal(entry, correction="gspo").startswith("behaviour_logprobs: correction 'gspo'")
    assert refusal(entry, behaviour_weight="tempered:0.5").startswith("behaviour_weight 'tempered:0.5' is not a constant weight")
    assert "needs behaviour_logprobs" in refusal(entry, behaviour_weight="token-tis:2", behaviour_logprobs=None)
    assert "'cispo:" in refusal(entry, correction="cispo:0.2,0.2", behaviour_weight="token-tis:2")
    assert refusal(entry, behaviour_weight="token-tis:x").startswith("correction")
    new, old, behaviour, advantages, mask, _ = batch()
    with pytest.raises(ValueError, match="behaviour_logprobs: correction 'tempered:0.1' does not read them; name the weight"):
        evaluate(new, old, advantages, mask=mask, behaviour_logprobs=behaviour)
    for given, said in (
        ({"behaviour_weight": "token-tis:2"}, "'token-tis:2' needs behaviour_logprobs"),
        ({"behaviour_weight": "full", "behaviour_logprobs": behaviour}, "'full' is not a constant weight"),
    ):
        with pytest.raises(ValueError, match=said):
            evaluate(new, old, advantages, mask=mask, **given)

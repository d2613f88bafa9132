"""niwaki.verl against verl's real loss and metrics on random batches."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
pytest.importorskip("verl", reason="verl is not installed; python/test-extras.sh runs this")

from members import batch  # noqa: E402
from niwaki import torch as niwaki_torch  # noqa: E402
from niwaki.verl import register  # noqa: E402
from verl.trainer.ppo.core_algos import get_policy_loss_fn  # noqa: E402
from verl.workers.config import ActorConfig  # noqa: E402

MODES = ["token-mean", "seq-mean-token-sum", "seq-mean-token-mean"]


def config(**settings):
    base = {"strategy": "fsdp", "ppo_micro_batch_size_per_gpu": 1, "rollout_n": 1, "clip_ratio": 0.2}
    return ActorConfig(**base | settings)


def run(name, mode="token-mean", weights=None):
    new, old, _, advantages, mask, _ = batch(holes=False)
    leaf = torch.tensor(new, requires_grad=True)
    rest = [torch.tensor(old), leaf, torch.tensor(advantages), torch.tensor(mask).double()]
    loss, metrics = get_policy_loss_fn(name)(*rest, mode, config(), weights)
    loss.backward()
    return loss.item(), leaf.grad.numpy(), metrics


@pytest.mark.parametrize("mode", MODES)
def test_no_correction_is_verls_own_loss(mode):
    register("tempered:0", name="niwaki-none")
    loss, gradient, metrics = run("niwaki-none", mode)
    own, expected, theirs = run("vanilla", mode)
    assert loss == pytest.approx(own, abs=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-12)
    assert {name: metrics[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)


def test_a_correction_is_the_surrogate_with_verls_dual_clip():
    register("tempered:0.3", name="niwaki-some")
    loss, gradient, metrics = run("niwaki-some")
    new, old, _, advantages, mask, _ = batch(holes=False)
    leaf = torch.tensor(new, requires_grad=True)
    rest = [torch.tensor(part) for part in (old, advantages, mask)]
    expected, measured = niwaki_torch.surrogate(leaf, *rest, correction="tempered:0.3", clip=(0.2, 0.2, 3.0))
    expected.backward()
    assert loss == pytest.approx(expected.item(), abs=1e-12)
    np.testing.assert_allclose(gradient, leaf.grad, rtol=0, atol=1e-12)
    assert metrics["niwaki/ess"] == pytest.approx(measured["ess"].item(), abs=1e-12)
    assert metrics["actor/ppo_kl"] == pytest.approx(measured["kl_k1"].item(), abs=1e-12)


def test_rollout_weights_still_count():
    register("tempered:0.1", name="niwaki-weighed")
    new = batch(holes=False)[0]
    half, _, _ = run("niwaki-weighed", weights=torch.full(new.shape, 0.5, dtype=torch.float64))
    assert half == pytest.approx(0.5 * run("niwaki-weighed")[0], abs=1e-12)


def test_members_with_a_clip_of_their_own_are_refused():
    for member in ("gspo", "cispo", "ctpo", "token-tis"):
        with pytest.raises(ValueError, match=f"correction '{member}"):
            register(member)

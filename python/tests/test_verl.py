"""niwaki.verl against verl's real loss and metrics on random batches."""

import importlib.metadata
import json
import os
import subprocess
import sys
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
pytest.importorskip("verl", reason="verl is not installed; python/test-extras.sh runs this")

from members import batch  # noqa: E402
from niwaki import torch as niwaki_torch  # noqa: E402
from niwaki._verl_losses import VARIABLE, listed, note  # noqa: E402
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


# What a worker does that knows nothing of niwaki: it imports verl and asks for the loss by its name.
WORKER = """
import json, sys, torch
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.workers.config import ActorConfig
config = ActorConfig(strategy="fsdp", ppo_micro_batch_size_per_gpu=1, rollout_n=1, clip_ratio=0.2)
old = torch.tensor([[-1.0, -1.0, -1.0]], dtype=torch.float64)
new = old + torch.tensor([[0.1, -0.05, 0.02]], dtype=torch.float64)
ones = torch.ones_like(old)
print(json.dumps({name: get_policy_loss_fn(name)(old, new, ones, ones, "token-mean", config, None)[0].item() for name in sys.argv[1:]}))
"""


def installed():
    found = importlib.metadata.entry_points(group="verl.plugins")
    if "niwaki" not in found.names:
        pytest.skip("niwaki is on the path and not installed, so verl does not find its entry point; python/test-extras.sh runs this")


def expected(correction, routing=True):
    old = torch.tensor([[-1.0, -1.0, -1.0]], dtype=torch.float64)
    new = old + torch.tensor([[0.1, -0.05, 0.02]], dtype=torch.float64)
    return niwaki_torch.surrogate(new, old, torch.ones_like(old), correction=correction, routing=routing)[0].item()


def test_verls_workers_know_the_losses_by_name():
    installed()
    noted = json.dumps({"mine": {"correction": "tempered:0.7", "routing": False}})
    run = lambda names, more: subprocess.run(
        [sys.executable, "-c", WORKER, *names], env=os.environ | more, check=True, capture_output=True, text=True
    ).stdout
    found = json.loads(run(["niwaki", "mine", "vanilla"], {VARIABLE: noted}).splitlines()[-1])
    assert found["niwaki"] == pytest.approx(expected("tempered:0.1"), abs=1e-14)
    assert found["mine"] == pytest.approx(expected("tempered:0.7"), abs=1e-14)
    assert found["vanilla"] == pytest.approx(expected("ppo"), abs=1e-14) and found["mine"] != found["vanilla"]


def test_what_the_driver_registers_reaches_rays_workers(monkeypatch):
    installed()
    ray = pytest.importorskip("ray", reason="ray is not installed; python/test-extras.sh runs this")
    monkeypatch.delenv(VARIABLE, raising=False)
    register("tempered:0.7", name="of-the-driver")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        @ray.remote
        def work(source):
            import subprocess
            import sys

            found = subprocess.run([sys.executable, "-c", source, "of-the-driver"], check=True, capture_output=True, text=True)
            return json.loads(found.stdout.splitlines()[-1])

        found = ray.get(work.remote(WORKER), timeout=120)
    finally:
        ray.shutdown()
    assert found == {"of-the-driver": pytest.approx(expected("tempered:0.7"), abs=1e-14)}


def test_what_is_noted_is_read_again(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert listed() == {"niwaki": {"correction": "tempered:0.1", "routing": True}}
    note("a", "clipped:0.25,1", False)
    note("niwaki", "full", True)
    assert listed() == {"a": {"correction": "clipped:0.25,1", "routing": False}, "niwaki": {"correction": "full", "routing": True}}
    for wrong in ("tempered:0.1", "[1]", '{"a": 3}', '{"a": {"correction": "full"}}'):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(ValueError, match=f"^{VARIABLE} is .*; write JSON"):
            listed()


def bypass(mode, **settings):
    from omegaconf import OmegaConf
    from verl.trainer.ppo import rollout_corr_helper

    batch = types.SimpleNamespace(batch={"rollout_log_probs": "the sampler's", "old_log_probs": None})
    chosen = OmegaConf.create({"loss_mode": mode})
    for _ in range(2):
        rollout_corr_helper.apply_bypass_mode(
            batch=batch, rollout_corr_config=OmegaConf.create({"bypass_mode": True} | settings), policy_loss_config=chosen
        )
    assert batch.batch["old_log_probs"] == "the sampler's"
    return chosen.loss_mode


def test_bypass_mode_keeps_the_corrected_loss_or_refuses_by_name():
    register("tempered:0.1", name="niwaki-past")
    assert bypass("niwaki-past") == bypass("niwaki-past", loss_type="ppo_clip", rollout_is="token") == "niwaki-past"
    assert bypass("vanilla", loss_type="reinforce", rollout_rs="token_k1") == "bypass_mode"
    with pytest.raises(ValueError, match="loss_type is 'reinforce', which would replace loss_mode 'niwaki-past'"):
        bypass("niwaki-past", loss_type="reinforce")
    with pytest.raises(ValueError, match="rollout_rs: loss_mode 'niwaki-past' rejects no samples"):
        bypass("niwaki-past", rollout_rs="token_k1")

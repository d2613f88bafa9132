"""Written-out losses against the real code of the trainers that they come from, value and gradient."""

import types
from collections import defaultdict

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")

from members import batch  # noqa: E402
from niwaki.correction import evaluate  # noqa: E402


def tensors(advantage_per="step"):
    """A batch without holes as tensors, with one advantage per step or per trajectory."""
    new, old, behaviour, advantages, mask, _ = batch(holes=False)
    if advantage_per == "trajectory":
        advantages = np.repeat(advantages[:, :1], advantages.shape[1], axis=1)
    return new, old, behaviour, advantages, mask


def agree(theirs, leaf, found, scale=1.0, value=True, atol=1e-12):
    """Gradients are equal, and values where a score step has one."""
    theirs.backward()
    np.testing.assert_allclose(leaf.grad.numpy(), -scale * found.cotangent, rtol=0, atol=atol)
    if value:
        assert theirs.item() == pytest.approx(-scale * found.objective, abs=max(1e-10, 10 * atol))


# ---------------------------------------------------------------- verl

VERL = [
    # loss, verl's name, its settings, mean, whether values agree, one advantage per
    ("sapo", "sapo", {}, "trajectories", True, "step"),
    ("sapo:2,3", "sapo", {"tau_pos": 2.0, "tau_neg": 3.0}, "trajectories", True, "step"),
    ("gmpo:0.1,0.15", "geo_mean", {"clip_ratio_low": 0.1, "clip_ratio_high": 0.15}, "trajectories", True, "trajectory"),
    ("dppo-tv:0.02,0.03,1.2", "dppo_tv", {"clip_ratio_low": 0.02, "clip_ratio_high": 0.03, "clip_ratio_c": 1.2}, "steps", False, "step"),
    ("dppo-kl:0.001,0.002,1.2", "dppo_kl", {"clip_ratio_low": 0.001, "clip_ratio_high": 0.002, "clip_ratio_c": 1.2}, "steps", False, "step"),
    ("kl-cov:0.1,0.5", "kl_cov", {"policy_loss": {"kl_cov_ratio": 0.1, "ppo_kl_coef": 0.5}}, "steps", True, "step"),
    # With a budget above what is eligible every draw drops all of it.
    ("clip-cov:0.9,0.05,5", "clip_cov", {"policy_loss": {"clip_cov_ratio": 0.9, "clip_cov_lb": 0.05, "clip_cov_ub": 5.0}}, "steps", True, "step"),
    ("dro:0.3", "dro", {"policy_loss": {"dro_beta": 0.3}}, "steps", False, "step"),
]


@pytest.mark.parametrize("loss, name, settings, mean, value, per", VERL, ids=[row[0] for row in VERL])
def test_verl(loss, name, settings, mean, value, per):
    pytest.importorskip("verl", reason="verl is not installed; python/test-extras.sh runs this")
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.workers.config import ActorConfig, PolicyLossConfig

    settings = dict(settings)
    if "policy_loss" in settings:
        settings["policy_loss"] = PolicyLossConfig(loss_mode=name, **settings["policy_loss"])
    config = ActorConfig(**{"strategy": "fsdp", "ppo_micro_batch_size_per_gpu": 1, "rollout_n": 1, "clip_ratio": 0.2} | settings)
    new, old, _, advantages, mask = tensors(per)
    leaf = torch.tensor(new, requires_grad=True)
    rest = torch.tensor(old), leaf, torch.tensor(advantages), torch.tensor(mask).double()
    theirs, _ = get_policy_loss_fn(name)(*rest, "token-mean", config)
    # verl divides a trajectory's sum by its length plus 1e-8.
    atol = 1e-8 if mean == "trajectories" else 1e-12
    agree(theirs, leaf, evaluate(new, old, advantages, mask=mask, correction=loss, mean=mean), value=value, atol=atol)


REJECTIONS = [
    ("sequence-k2:0.05", "seq_sum_k2", "0.05"),
    ("sequence-k3:0.05", "seq_sum_k3", "0.05"),
    ("mean-k2:0.005", "seq_mean_k2", "0.005"),
    ("mean-k3:0.005", "seq_mean_k3", "0.005"),
    ("max-k2:0.02", "seq_max_k2", "0.02"),
    ("max-k3:0.02", "seq_max_k3", "0.02"),
    ("seq-sum-k1:0.9,1.1", "seq_sum_k1", "0.9_1.1"),
    ("seq-mean-k1:0.97,1.03", "seq_mean_k1", "0.97_1.03"),
    ("token-k2:0.005+mean-k3:0.006", "token_k2,seq_mean_k3", "0.005,0.006"),
    ("token-k1:0.9,1.1+seq-max-k2:0.03", "token_k1,seq_max_k2", "0.9_1.1,0.03"),
]


@pytest.mark.parametrize("loss, options, thresholds", REJECTIONS, ids=[row[0] for row in REJECTIONS])
def test_verls_rejections(loss, options, thresholds):
    pytest.importorskip("verl", reason="verl is not installed; python/test-extras.sh runs this")
    from verl.trainer.ppo.rollout_corr_helper import compute_rollout_rejection_mask

    new, old, _, advantages, mask = tensors()
    kept, _ = compute_rollout_rejection_mask(torch.tensor(new - old), torch.tensor(mask).double(), options, thresholds)
    kept = kept.bool().numpy()
    found = evaluate(new, old, advantages, mask=mask, correction=loss)
    assert 0 < kept.sum() < mask.sum()
    np.testing.assert_array_equal(found.cotangent != 0, kept)


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_verls_normalised_weights_and_a_rejection_beside_them(level):
    pytest.importorskip("verl", reason="verl is not installed; python/test-extras.sh runs this")
    from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_and_rejection_mask

    new, old, behaviour, advantages, mask = tensors()
    weights, kept, metrics = compute_rollout_correction_and_rejection_mask(
        torch.tensor(old), torch.tensor(behaviour), torch.tensor(mask).double(), rollout_is=level, rollout_is_threshold=1.1,
        rollout_is_batch_normalize=True, rollout_rs="seq_mean_k3", rollout_rs_threshold="0.005",
    )
    expected = (weights.batch["rollout_is_weights"] * kept).numpy()
    loss = f"normalised-{level}-tis:1.1+mean-k3:0.005"
    found = evaluate(new, old, advantages, mask=mask, correction=loss, clip=None, behaviour_logprobs=behaviour)
    plain = evaluate(new, old, advantages, mask=mask, correction="ppo", clip=None)
    # verl divides by lengths plus 1e-8.
    np.testing.assert_allclose(found.cotangent, plain.cotangent * expected, rtol=0, atol=1e-9)


# ---------------------------------------------------------------- TRL


def trl_loss(leaf, old, behaviour, advantages, mask, entropies=None, reference=None, **settings):
    """The loss of TRL's own trainer on given log-probs; nothing of it but the method is made."""
    trl = pytest.importorskip("trl", reason="trl is not installed; python/test-extras.sh runs this")
    args = trl.GRPOConfig(output_dir="unused", report_to=[], bf16=False, use_cpu=True, **settings)
    lanes, steps = mask.shape
    accelerator = types.SimpleNamespace(
        num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x, pad_across_processes=lambda x, dim, pad_index: x
    )
    stub = types.SimpleNamespace(
        args=args, accelerator=accelerator, model=types.SimpleNamespace(training=False), beta=args.beta,
        loss_type=args.loss_type, importance_sampling_level=args.importance_sampling_level, epsilon_low=args.epsilon,
        epsilon_high=args.epsilon if args.epsilon_high is None else args.epsilon_high, use_vllm=behaviour is not None,
        vllm_importance_sampling_correction=False, off_policy_mask_threshold=args.off_policy_mask_threshold,
        top_entropy_quantile=args.top_entropy_quantile, aux_loss_enabled=False, _entropy_bonus_enabled=False,
        current_gradient_accumulation_steps=1, max_completion_length=steps, _metrics=defaultdict(lambda: defaultdict(list)),
        get_off_policy_mask=trl.GRPOTrainer.get_off_policy_mask, get_gamma_weights=trl.GRPOTrainer.get_gamma_weights,
    )
    entropies = torch.zeros(lanes, steps, dtype=torch.float64) if entropies is None else torch.tensor(entropies)
    stub._get_per_token_logps_and_entropies = lambda *_, **__: (leaf, entropies, None)
    stub.get_high_entropy_mask = types.MethodType(trl.GRPOTrainer.get_high_entropy_mask, stub)
    whole = torch.tensor(mask).double()
    inputs = {
        "prompt_ids": torch.zeros(lanes, 1, dtype=torch.long), "prompt_mask": torch.ones(lanes, 1),
        "completion_ids": torch.zeros(lanes, steps, dtype=torch.long), "completion_mask": whole,
        "advantages": torch.tensor(advantages), "old_per_token_logps": torch.tensor(old), "num_items_in_batch": whole.sum(),
    }
    if behaviour is not None:
        inputs["sampling_per_token_logps"] = torch.tensor(behaviour)
    if reference is not None:
        inputs["ref_per_token_logps"] = torch.tensor(reference)
    return trl.GRPOTrainer._compute_loss(stub, None, inputs)


TRL = [
    ("ppo", {"loss_type": "grpo"}, "trajectories", True),
    ("dual-clip:1.15", {"loss_type": "dapo", "delta": 1.15, "epsilon": 0.1}, "steps", True),
    ("sapo", {"loss_type": "sapo"}, "trajectories", True),
    ("vespo", {"loss_type": "vespo"}, "steps", False),
    ("vespo:1,2,1.5,0.5", {"loss_type": "vespo", "vespo_k_pos": 1.0, "vespo_lambda_pos": 2.0, "vespo_k_neg": 1.5, "vespo_lambda_neg": 0.5}, "steps", False),
    ("off-policy-mask:0.01", {"loss_type": "grpo", "off_policy_mask_threshold": 0.01}, "trajectories", True),
    ("top-entropy:0.3", {"loss_type": "dapo", "top_entropy_quantile": 0.3}, "steps", True),
    ("kl-penalty:0.4", {"loss_type": "dapo", "beta": 0.4, "use_bias_correction_kl": False}, "steps", True),
    ("kl-corrected:0.4", {"loss_type": "dapo", "beta": 0.4, "use_bias_correction_kl": True}, "steps", True),
]


@pytest.mark.parametrize("loss, settings, mean, value", TRL, ids=[row[0] for row in TRL])
def test_trl(loss, settings, mean, value):
    new, old, behaviour, advantages, mask = tensors("trajectory")
    entropies, reference = np.exp(-old), behaviour
    behaviour = behaviour if loss.startswith("off-policy") else None
    leaf = torch.tensor(new, requires_grad=True)
    theirs = trl_loss(leaf, old, behaviour, advantages[:, 0], mask, entropies, reference, **settings)
    clip = settings.get("epsilon", 0.2)
    found = evaluate(
        new, old, advantages, mask=mask, correction=loss, mean=mean, clip=clip, behaviour_logprobs=behaviour,
        entropies=entropies, reference_logprobs=reference,
    )
    # TRL keeps SAPO's temperatures in single precision.
    agree(theirs, leaf, found, value=value, atol=1e-8 if loss == "sapo" else 1e-12)


def test_luspo_is_gspo_with_the_mean_over_steps_times_the_mean_length():
    new, old, _, advantages, mask = tensors("trajectory")
    leaf = torch.tensor(new, requires_grad=True)
    theirs = trl_loss(leaf, old, None, advantages[:, 0], mask, loss_type="luspo", importance_sampling_level="sequence")
    found = evaluate(new, old, advantages, mask=mask, correction="luspo", mean="steps")
    agree(theirs, leaf, found, scale=mask.sum() / len(mask))


def test_a_corrected_cispo_has_the_gradient_of_the_corrected_ratio():
    """Where nothing is held back, the score with its weight is the gradient of `ratio · factor`, by both channels."""
    from niwaki.torch import corrected_logprobs, surrogate

    new, old, _, advantages, mask = (torch.tensor(part) for part in tensors("trajectory"))
    leaf, plain = new.clone().requires_grad_(), new.clone().requires_grad_()
    shifted = corrected_logprobs(leaf, old, mask, correction="tempered:0.3")
    found = trl_loss(shifted, old.numpy(), None, advantages[:, 0].numpy(), mask.numpy(), loss_type="cispo", epsilon_high=1e9)
    found.backward()
    expected, _ = surrogate(plain, old, advantages[:, 0], mask, correction="tempered:0.3", clip=None)
    expected.backward()
    torch.testing.assert_close(leaf.grad, plain.grad, rtol=0, atol=1e-12)

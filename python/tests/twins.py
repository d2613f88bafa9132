"""The losses of five trainers, written out from their formulas under the names that their code has."""

import dataclasses
import sys
import types

import torch


def module(name, **holds):
    """A module with its parents, among the imported ones."""
    parent, _, last = name.rpartition(".")
    found = types.ModuleType(name)
    found.__path__ = []
    found.__dict__.update(holds)
    sys.modules[name] = found
    if parent:
        setattr(sys.modules.get(parent) or module(parent), last, found)
    return found


def masked_mean(values, mask, dim=None):
    return (values * mask).sum(dim) / mask.sum(dim)


def clipped(ratio, advantages, low, high, dual=None):
    """The clipped loss of each token, and which are clipped."""
    plain, held = -ratio * advantages, -ratio.clamp(1 - low, 1 + high) * advantages
    each = torch.maximum(plain, held)
    if dual is not None:
        each = torch.where(advantages < 0, torch.minimum(each, -dual * advantages), each)
    return each, held > plain


# ---------------------------------------------------------------- OpenRLHF


class PolicyLoss(torch.nn.Module):
    def __init__(
        self, clip_eps_low=0.2, clip_eps_high=0.2, dual_clip=None, token_level_loss=True, policy_loss_type="ppo",
        enable_vllm_is_correction=False, vllm_is_truncated_threshold=None, vllm_is_correction_type="tis",
    ):
        super().__init__()
        self.__dict__.update({name: value for name, value in locals().items() if name not in ("self", "__class__")})

    def forward(
        self, log_probs, old_log_probs, advantages, action_mask=None, rollout_log_probs=None, dp_size=1, batch_num_tokens=None,
        global_batch_size=None,
    ):
        ratio = (log_probs - old_log_probs).clamp(-20, 20).exp()
        each, bound = clipped(ratio, advantages, self.clip_eps_low, self.clip_eps_high, self.dual_clip)
        engine = None
        if self.enable_vllm_is_correction:
            low, high = self.vllm_is_truncated_threshold
            apart = old_log_probs - rollout_log_probs
            weight = apart.exp().detach()
            inside = lambda value: (value >= low) & (value <= high)
            if self.vllm_is_correction_type == "tis":
                weight = weight.clamp(low, high)
            elif self.vllm_is_correction_type == "icepop":
                weight = weight * inside(weight)
            else:
                weight = weight * inside(masked_mean(apart, action_mask, -1).exp())[:, None]
            each, engine = each * weight, masked_mean(-apart, action_mask)
        if self.token_level_loss:
            count = action_mask.sum() if batch_num_tokens is None else batch_num_tokens / dp_size
            loss = (each * action_mask).sum() / count
        else:
            lengths = action_mask.sum(-1)
            loss = masked_mean((each * action_mask).sum(-1) / (lengths + 1e-8), (lengths > 0).float())
        return loss, masked_mean(bound.float(), action_mask), masked_mean((old_log_probs - log_probs).detach(), action_mask), engine


# ---------------------------------------------------------------- AReaL


class KLEstimator:
    @staticmethod
    def _compute_approx_kl(log_probs, log_probs_base, kl_estimator="k1", apply_clamp=True):
        apart = log_probs.float() - log_probs_base.float()
        return {"k1": apart, "k2": apart**2 / 2, "k3": (-apart).exp() - 1 + apart}[kl_estimator]


def ppo_actor_loss_fn(
    logprobs, proximal_logprobs, old_logprobs, advantages, eps_clip, loss_mask, eps_clip_higher=None, c_clip=None,
    rejection_sampling=None, importance_sampling_level="token", cu_seqlens=None,
):
    count = loss_mask.count_nonzero()
    apart = logprobs - proximal_logprobs
    ratio = torch.where(loss_mask, apart.exp(), 0)
    each, bound = clipped(ratio, advantages, eps_clip, eps_clip if eps_clip_higher is None else eps_clip_higher, c_clip)
    kept = loss_mask
    if rejection_sampling is not None:
        weight = (proximal_logprobs - old_logprobs).detach().float().exp()
        lower = 0.0 if rejection_sampling.lower is None else rejection_sampling.lower
        if rejection_sampling.action == "clamp":
            weight = weight.clamp(lower, rejection_sampling.upper)
        else:
            kept = loss_mask & (weight >= lower) & (weight <= rejection_sampling.upper)
        each = each * torch.where(kept, weight, 0.0)
    stat = {"loss": each.detach(), "importance_weight": ratio.detach(), "approx_kl": apart.detach(), "clip_mask": bound & kept}
    return torch.where(kept, each, 0).sum() / count, stat


def grpo_loss_fn(logprobs, entropy, input_data, rejection_sampling=None, use_sapo_loss=False, **settings):
    here = sys.modules["areal.trainer.ppo.actor"]
    if use_sapo_loss:
        return here.sapo_loss_fn()
    rows = {"logprobs": logprobs, "old_logprobs": input_data["logprobs"], "proximal_logprobs": input_data["prox_logp"]}
    rows |= {"advantages": input_data["advantages"], "loss_mask": input_data["loss_mask"].bool(), "cu_seqlens": input_data.get("cu_seqlens")}
    return here.ppo_actor_loss_fn(**rows, **settings, rejection_sampling=rejection_sampling)[0]


# ---------------------------------------------------------------- slime


def compute_policy_loss(ppo_kl, advantages, eps_clip, eps_clip_high, eps_clip_c=None):
    each, bound = clipped((-ppo_kl).exp(), advantages, eps_clip, eps_clip_high, eps_clip_c)
    return each, bound.float()


def policy_loss_function(args, batch, logits, sum_of_sample_mean):
    here = sys.modules["slime.backends.megatron_utils.loss"]
    _, found = here.get_log_probs_and_entropy(logits)
    advantages, new, old = (torch.cat(part) for part in (batch["advantages"], found["log_probs"], batch["log_probs"]))
    each, bound = here.compute_policy_loss(old - new, advantages, args.eps_clip, args.eps_clip_high, eps_clip_c=args.eps_clip_c)
    if args.use_opsm:
        rows = zip(found["log_probs"], batch["log_probs"], batch["advantages"], batch["loss_masks"])
        far = [(worth < 0) & (((b - a) * own).sum() / own.sum().clamp(min=1) > args.opsm_delta) for a, b, worth, own in rows]
        each = each * (1 - torch.cat(far).float())
    if args.use_tis:
        each = each * (old - torch.cat(batch["rollout_log_probs"])).exp().clamp(args.tis_clip_low, args.tis_clip)
    loss = sum_of_sample_mean(each) - args.entropy_coef * sum_of_sample_mean(torch.cat(found["entropy"]))
    if args.use_kl_loss:
        apart = torch.cat(batch["ref_log_probs"]) - new
        loss = loss + args.kl_loss_coef * sum_of_sample_mean(apart.exp() - 1 - apart)
    return loss, {"ppo_kl": sum_of_sample_mean(old - new).detach(), "pg_clipfrac": sum_of_sample_mean(bound).detach()}


# ---------------------------------------------------------------- prime-rl


@dataclasses.dataclass
class LossInputs:
    trainer_logprobs: torch.Tensor
    inference_logprobs: torch.Tensor
    ref_logprobs: torch.Tensor | None
    advantages: torch.Tensor
    loss_mask: torch.Tensor
    loss_weights: torch.Tensor | None = None


@dataclasses.dataclass
class LossOutputs:
    loss: torch.Tensor
    metrics: dict


@dataclasses.dataclass
class DefaultLossConfig:
    dppo_mask_low: float = 0.2
    dppo_mask_high: float = 0.2
    adv_tau: float = 1.0
    kl_tau: float = 1e-3


@dataclasses.dataclass
class IPOLossConfig:
    ipo_threshold: float = 0.1
    adv_tau: float = 1.0
    kl_tau: float = 1e-3


def masked_policy_gradient(inputs, config, far):
    apart = inputs.trainer_logprobs - inputs.inference_logprobs
    gain = (inputs.loss_mask & ~far) * config.adv_tau * inputs.advantages * apart.exp()
    each = config.kl_tau * inputs.loss_mask * apart**2 - gain
    each = each if inputs.loss_weights is None else each * inputs.loss_weights
    return LossOutputs(each.sum(), {"is_masked": masked_mean(far.double(), inputs.loss_mask)})


def moved(inputs):
    return inputs.trainer_logprobs.exp() - inputs.inference_logprobs.exp()


def default_loss_fn(inputs, loss_config):
    up, down = moved(inputs) > loss_config.dppo_mask_high, moved(inputs) < -loss_config.dppo_mask_low
    return masked_policy_gradient(inputs, loss_config, torch.where(inputs.advantages > 0, up, down))


def ipo_loss_fn(inputs, loss_config):
    return masked_policy_gradient(inputs, loss_config, moved(inputs).abs() > loss_config.ipo_threshold)


# ---------------------------------------------------------------- NeMo-RL


class ClippedPGLossConfig(types.SimpleNamespace):
    pass


class ClippedPGLossFn:
    def __init__(self, cfg):
        self.__dict__.update(cfg.__dict__)

    def __call__(self, next_token_logprobs, data, global_valid_seqs, global_valid_toks):
        new = next_token_logprobs
        old, engine, advantages, own = (
            data[name][:, 1:] for name in ("prev_logprobs", "generation_logprobs", "advantages", "token_mask")
        )
        own = own * data["sample_mask"].unsqueeze(-1)

        def mean(each):
            if self.token_level_loss:
                return (each * own).sum() / (global_valid_toks + 1e-8)
            rows = (each * own).sum(-1) / (own.sum(-1) + 1e-8)
            return (rows * data["sample_mask"]).sum() / (global_valid_seqs + 1e-8)

        each, _ = clipped((new - old).exp(), advantages, self.ratio_clip_min, self.ratio_clip_max, self.ratio_clip_c)
        if self.use_importance_sampling_correction:
            weight = (old - engine).exp()
            low = self.truncated_importance_sampling_ratio_min or 0.0
            if self.truncated_importance_sampling_type == "tis":
                weight = weight.clamp(low, self.truncated_importance_sampling_ratio)
            each = each * weight
        loss = mean(each)
        kl = 0.0
        if self.reference_policy_kl_penalty:
            plain = data.get("curr_logprobs_unfiltered", new)
            apart = data["reference_policy_logprobs"][:, 1:] - plain
            kl = mean((plain - plain.detach()).exp() * (apart.exp() - 1 - apart))
        entropy = -((new - engine).exp() * new * own).sum() / (global_valid_toks + 1e-8)
        metrics = {"approx_entropy": entropy.item(), "kl_penalty": float(torch.as_tensor(kl).detach())}
        return loss + self.reference_policy_kl_penalty * kl, metrics


# ---------------------------------------------------------------- where they are found


def refused(*_, **__):
    raise AssertionError("a loss that no door leads to")


def put_prime_configs():
    module("prime_rl.configs.trainer", DefaultLossConfig=DefaultLossConfig, IPOLossConfig=IPOLossConfig, CustomLossConfig=type, LossConfig=object)


def put(name):
    """The twin of a trainer among the imported modules."""
    if name == "openrlhf":
        fresh = type("PolicyLoss", (PolicyLoss,), {"forward": PolicyLoss.forward})
        module("openrlhf.models.loss", PolicyLoss=fresh)
    elif name == "areal":
        holds = {"ppo_actor_loss_fn": ppo_actor_loss_fn, "sapo_loss_fn": refused, "grpo_loss_fn": grpo_loss_fn}
        module("areal.trainer.ppo.actor", **holds)
    elif name == "slime":
        holds = {"compute_policy_loss": compute_policy_loss, "policy_loss_function": policy_loss_function}
        module("slime.backends.megatron_utils.loss", **holds)
        here = {"all_gather_with_cp": lambda part, *_: part, "slice_log_prob_with_cp": lambda part, *_: part}
        module("slime.backends.megatron_utils.cp_utils", **here)
    elif name == "prime_rl":
        put_prime_configs()
        holds = {"LossInputs": LossInputs, "default_loss_fn": default_loss_fn, "ipo_loss_fn": ipo_loss_fn}
        module("prime_rl.trainer.rl.loss", **holds)
    else:
        holds = {"ClippedPGLossFn": ClippedPGLossFn, "ClippedPGLossConfig": ClippedPGLossConfig}
        module("nemo_rl.algorithms.loss.loss_functions", **holds)

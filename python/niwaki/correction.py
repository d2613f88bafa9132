"""Objective, exact cotangent, two channels and diagnostics of a policy loss, on NumPy arrays.

    >>> import numpy as np
    >>> from niwaki.correction import evaluate
    >>> old = np.array([[-1.2, -0.7, -0.3], [-0.9, -1.1, -0.4]])
    >>> new = np.array([[-1.1, -0.8, -0.2], [-1.0, -1.0, -0.5]])
    >>> found = evaluate(new, old, advantages=[0.5, -0.5], correction="tempered:0.25")
    >>> found.cotangent.shape
    (2, 3)
    >>> bool(np.allclose(found.cotangent, found.own + found.routed))
    True
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal, Union

import numpy as np

from . import _native
from ._arrays import flags, floats, ragged

__all__ = [
    "Correction",
    "Diagnostics",
    "Evaluation",
    "Member",
    "Rule",
    "alpha_for_drift",
    "clip_range",
    "evaluate",
    "members",
]

Clip = Union[None, float, tuple[float, float], tuple[float, float, Union[float, None]]]
"""No clip, ε, (low, high), or (low, high, dual): ratios are held in [1 − low, 1 + high]."""


_WORDS = {
    "reads": ("prefix", "window", "minimum", "step", "sequence-mean", "sequence-sum"),
    "beyond": ("hold", "drop", "keep"),
    "form": ("multiply", "replace", "weigh"),
}
"""What a rule says in words."""


@dataclass(frozen=True)
class Rule:
    """The normal form of a member: what it reads, how strongly, how it bounds it, and how the factor enters.

    `log_factor = strength · reading`, held in [low, high] or dropped beyond them; with `keep` it is 0 (a factor of one) within
    them and dropped beyond. Where the advantage is negative, ratios above `dual` are flat inside a clip. Readings are sums of log-ratios over
    the policy's own steps: the whole prefix, its last `window` steps, its minimum, the step itself, or the whole
    sequence's mean or sum.
    """

    reads: Literal["prefix", "window", "minimum", "step", "sequence-mean", "sequence-sum"] = "prefix"
    window: int | None = None
    strength: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    beyond: Literal["hold", "drop", "keep"] = "hold"
    form: Literal["multiply", "replace", "weigh"] = "multiply"
    self_normalised: bool = False
    growing_clip: bool = False
    dual: float = math.inf
    ess_floor: float | None = None
    amplification: float | None = None
    written: str | None = None
    """A member that is written out step by step, by name; the other fields then say nothing."""

    def __post_init__(self) -> None:
        for name, known in _WORDS.items():
            said = getattr(self, name)
            if said not in known:
                near = difflib.get_close_matches(str(said), known, 1)
                mend = f"did you mean '{near[0]}'?" if near else f"write {', '.join(known)}"
                raise ValueError(f"rule: {name} is {said!r}; {mend}")
        for name in ("strength", "low", "high", "dual"):
            if not isinstance(getattr(self, name), Real):
                raise TypeError(f"rule: {name} is {getattr(self, name)!r}; give a number")


class _Member:
    """A constructor of several members alike: called, it gives the one that it was made for."""

    def __init__(self, member: str, summary: str) -> None:
        self.member, self.__doc__ = member, summary


class _Within(_Member):
    def __call__(self, low: float = 0.5, high: float = 2.0) -> Correction:
        return Correction._of(self.member, low, high)


class _AtMost(_Member):
    def __call__(self, most: float = 0.1) -> Correction:
        return Correction._of(self.member, most)


@dataclass(frozen=True)
class Correction:
    """A member of the family with its parameters: what `tempered:0.25` names.

    >>> Correction.parse("tempered:0.25").label
    'Tempered α = 0.25'
    >>> Correction.clipped(alpha=0.25, cap=1).name
    'clipped:0.25,1'
    """

    name: str
    label: str
    rule: Rule
    own: bool = False
    """Whether the rule is a user's own rather than a member's."""

    @classmethod
    def custom(cls, name: str, rule: Rule) -> Correction:
        """A rule of your own under a name of your own; every loss of this package takes it like a member.

        >>> half = Correction.custom("half-window", Rule(reads="window", window=4, strength=0.5, high=math.log(2)))
        >>> half.name, half.rule.window
        ('half-window', 4)

        Raises ValueError where the name is taken or the rule is no point of the normal form.
        """
        if not isinstance(name, str):
            raise TypeError(f"name is {type(name).__name__}; give a word")
        if callable(rule):
            raise TypeError(
                "rule is a function; pass a Rule(…). A loss that is a function goes to niwaki.train(loss=fn), "
                "niwaki.oracle.measure(losses=[fn]) or niwaki oracle --loss FILE.py:fn"
            )
        if not isinstance(rule, Rule):
            raise TypeError(f"rule is {type(rule).__name__}; pass a Rule(…)")
        _native.check_rule(name, rule)
        return cls(name, name, rule, own=True)

    @classmethod
    def parse(cls, text: str | Correction) -> Correction:
        """The member that a name such as `"clipped:0.25,1"` stands for.

        Raises ValueError with the nearest name, or with what the member's parameters must be.
        """
        if isinstance(text, Correction):
            return text
        if not isinstance(text, str):
            raise TypeError(f"correction is {type(text).__name__}; pass a name such as 'tempered:0.1' or a Correction")
        name, label, rule = _native.parse(text)
        return cls(name, label, Rule(**rule))

    @classmethod
    def ppo(cls) -> Correction:
        """No correction: PPO's own ratio."""
        return cls.parse("ppo")

    @classmethod
    def full(cls) -> Correction:
        """The whole prefix ratio."""
        return cls.parse("full")

    @classmethod
    def tempered(cls, alpha: float) -> Correction:
        """The prefix ratio to the power alpha, between PPO (0) and full (1)."""
        return cls._of("tempered", alpha)

    @classmethod
    def truncated(cls, window: int) -> Correction:
        """The ratio of the last `window` steps of the prefix only."""
        return cls._of("truncated", window)

    @classmethod
    def clipped(cls, alpha: float, cap: float) -> Correction:
        """The tempered member with the log of its factor capped at ±cap."""
        return cls._of("clipped", alpha, cap)

    @classmethod
    def self_normalised(cls, alpha: float = 1.0) -> Correction:
        """The tempered member divided by its batch mean at each step."""
        return cls._of("self-normalised", alpha)

    @classmethod
    def adaptive(cls, floor: float = 0.9) -> Correction:
        """The tempered member with the largest alpha that keeps the batch's ESS at or above `floor`."""
        return cls._of("adaptive", floor)

    @classmethod
    def by_length(cls, limit: float = 2.0) -> Correction:
        """The tempered member with the largest alpha that makes a fresh gradient at most `limit` times PPO's, from the batch's lengths."""
        return cls._of("by-length", limit)

    @classmethod
    def outside(cls, alpha: float) -> Correction:
        """The tempered factor outside of the clip, which then sees the step's own ratio alone."""
        return cls._of("outside", alpha)

    @classmethod
    def minpro(cls) -> Correction:
        """MinPRO: the smallest single-step ratio of the prefix in place of their product."""
        return cls.parse("minpro")

    @classmethod
    def ctpo(cls) -> Correction:
        """CTPO: the full correction with a clip range that grows with √t in log space."""
        return cls.parse("ctpo")

    @classmethod
    def gspo(cls) -> Correction:
        """GSPO: one length-normalised ratio for the whole sequence."""
        return cls.parse("gspo")

    @classmethod
    def token_tis(cls, high: float = 2.0) -> Correction:
        """Truncated importance sampling per token, as a constant weight."""
        return cls._of("token-tis", high)

    @classmethod
    def sequence_tis(cls, high: float = 2.0) -> Correction:
        """Truncated importance sampling per sequence, as a constant weight."""
        return cls._of("sequence-tis", high)

    @classmethod
    def cispo(cls, low: float = 1.0, high: float = 0.2) -> Correction:
        """CISPO: the clipped ratio as a constant weight on the score."""
        return cls._of("cispo", low, high)

    @classmethod
    def dual_clip(cls, c: float = 3.0) -> Correction:
        """PPO whose losses go flat above a ratio of `c`, too; needs a clip."""
        return cls._of("dual-clip", c)

    @classmethod
    def gpg(cls) -> Correction:
        """The plain policy gradient: no ratio, no clip."""
        return cls.parse("gpg")

    token_mis = _Within("token-mis", "Masked importance sampling per token: the ratio inside [low, high], else 0.")
    sequence_mis = _Within("sequence-mis", "Masked importance sampling per sequence: the product inside [low, high], else 0.")
    token_k1 = _Within("token-k1", "Drops tokens whose inverse ratio lies outside [low, high].")
    sequence_k1 = _Within("sequence-k1", "Drops sequences whose inverse product of ratios lies outside [low, high].")
    mean_k1 = _Within("mean-k1", "Drops sequences whose inverse geometric mean of ratios lies outside [low, high].")
    token_k2 = _AtMost("token-k2", "Drops tokens whose k2, half the squared log-ratio, exceeds `most`.")
    token_k3 = _AtMost("token-k3", "Drops tokens whose k3, ratio − 1 − log-ratio, exceeds `most`.")
    sequence_k2 = _AtMost("sequence-k2", "Drops sequences whose k2, half the squared log-ratio, sums to more than `most`.")
    sequence_k3 = _AtMost("sequence-k3", "Drops sequences whose k3, ratio − 1 − log-ratio, sums to more than `most`.")
    mean_k2 = _AtMost("mean-k2", "Drops sequences whose mean k2 exceeds `most`.")
    mean_k3 = _AtMost("mean-k3", "Drops sequences whose mean k3 exceeds `most`.")
    max_k2 = _AtMost("max-k2", "Drops sequences whose largest k2 exceeds `most`.")
    max_k3 = _AtMost("max-k3", "Drops sequences whose largest k3 exceeds `most`.")

    @classmethod
    def sequence_clamp(cls, low: float = 0.0, high: float = 3.0) -> Correction:
        """Importance sampling per sequence, truncated from both sides, as a constant weight."""
        return cls._of("sequence-clamp", low, high)

    @classmethod
    def normalised_token_tis(cls, high: float = 2.0) -> Correction:
        """Token TIS with its weights divided by their mean over the batch."""
        return cls._of("normalised-token-tis", high)

    @classmethod
    def normalised_sequence_tis(cls, high: float = 2.0) -> Correction:
        """Sequence TIS with its weights divided by their mean over the batch's sequences."""
        return cls._of("normalised-sequence-tis", high)

    @classmethod
    def sapo(cls, gain: float = 1.0, loss: float = 1.05) -> Correction:
        """SAPO: a soft gate around a ratio of one in place of the clip."""
        return cls._of("sapo", gain, loss)

    @classmethod
    def vespo(
        cls, k_gain: float = 2.0, rate_gain: float = 3.0, k_loss: float = 3.0, rate_loss: float = 2.0
    ) -> Correction:
        """VESPO: a gamma-shaped constant weight of the sequence's ratio."""
        return cls._of("vespo", k_gain, rate_gain, k_loss, rate_loss)

    @classmethod
    def gmpo(cls, low: float = 0.4, high: float = 0.4) -> Correction:
        """GMPO: the geometric mean of a sequence's ratios, each clipped in logs first."""
        return cls._of("gmpo", low, high)

    @classmethod
    def dppo_tv(cls, low: float = 0.2, high: float = 0.2, cap: float = 3.0) -> Correction:
        """DPPO: drops steps whose probability moved too far, weighs the others by min(ratio, cap)."""
        return cls._of("dppo-tv", low, high, cap)

    @classmethod
    def dppo_kl(cls, low: float = 0.2, high: float = 0.2, cap: float = 3.0) -> Correction:
        """DPPO by the KL of "this action or another"."""
        return cls._of("dppo-kl", low, high, cap)

    @classmethod
    def clip_cov(cls, share: float = 0.0002, low: float = 1.0, high: float = 5.0) -> Correction:
        """Clip-Cov: PPO without a random share of the steps of high covariance, averaged over the draw."""
        return cls._of("clip-cov", share, low, high)

    @classmethod
    def kl_cov(cls, share: float = 0.0002, beta: float = 1.0) -> Correction:
        """KL-Cov: PPO without a clip that holds back the share of steps of the highest covariance."""
        return cls._of("kl-cov", share, beta)

    @classmethod
    def dro(cls, beta: float) -> Correction:
        """DRO: the plain policy gradient with a penalty on the squared log-ratio."""
        return cls._of("dro", beta)

    @classmethod
    def kl_penalty(cls, beta: float) -> Correction:
        """PPO less beta times k3 of a reference policy."""
        return cls._of("kl-penalty", beta)

    @classmethod
    def kl_corrected(cls, beta: float) -> Correction:
        """PPO less beta times the ratio times k3 of a reference policy."""
        return cls._of("kl-corrected", beta)

    @classmethod
    def off_policy_mask(cls, most: float = 0.5) -> Correction:
        """PPO that drops the losses of sequences whose mean log-ratio has fallen by more than `most`."""
        return cls._of("off-policy-mask", most)

    @classmethod
    def top_entropy(cls, share: float = 0.2) -> Correction:
        """PPO at the share of steps with the highest entropy only; `evaluate` needs `entropies`."""
        return cls._of("top-entropy", share)

    def for_autodiff(self) -> Correction:
        """The member itself, where an array library can differentiate it; a ValueError where it is written out."""
        if self.rule.written is None:
            return self
        raise ValueError(
            f"correction '{self.name}' is written out step by step and has no differentiable twin; take its cotangent from "
            "niwaki.correction.evaluate, −(logprobs · cotangent).sum() is a loss with that gradient"
        )

    @classmethod
    def _of(cls, member: str, *values: float) -> Correction:
        return cls.parse(f"{member}:{','.join(repr(float(value)) for value in values)}")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Member:
    """What a member of the family says of itself; `parameters` maps names to defaults (None: must be given)."""

    name: str
    summary: str
    formula: str
    parameters: dict[str, float | None]


def members() -> list[Member]:
    """Every member of the family, the paper's first."""
    return [Member(name, summary, formula, dict(rest)) for name, summary, formula, rest in _native.members()]


@dataclass(frozen=True)
class Diagnostics:
    """What a batch says of drift, weights and bias. Vectors hold one value per position of the policy's own steps."""

    steps: int
    """Steps of the policy's own."""
    lanes: int
    """Trajectories with at least one such step."""
    clip_fraction: float
    """Share of steps on the flat side of the clip or dropped by the member."""
    step_variance: float
    """Variance of the log-ratio at a step, averaged over positions (σ²)."""
    drift: float
    """σ² times the mean trajectory length (σ²T)."""
    kl_k1: float
    """KL(old ‖ current) per step, the mean of −ℓ."""
    kl_k3: float
    """The same by the estimator r − 1 − ℓ, which is never negative."""
    chi2_step: float
    """χ² of the step ratio."""
    chi2_sequence: float
    """χ² of the whole trajectory's ratio."""
    ess: float
    """Normalised ESS of the member's own factors over all (trajectory, step) pairs."""
    ess_step: float
    """Normalised ESS of the step ratios."""
    ess_sequence: float
    """Normalised ESS of the whole trajectories' ratios."""
    dose: float
    """Σ_t |b_t|, the bias that PPO's dropped ratio leaves."""
    rollout_dose: float
    """The same with r_t = 1."""
    zero_signal: float
    """Share of trajectories whose advantage is zero throughout."""
    prefix_ess: np.ndarray
    """Normalised ESS of the prefix ratio at each position, raw."""
    prefix_ess_clamped: np.ndarray
    """The same after clamping the prefix ratio at 2."""
    bias_witness: np.ndarray
    """b_t = E[(R_t − 1) r_t A_t] at each position."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Evaluation:
    """What a loss says of a batch. Arrays have the shape of `logprobs` (lists where lists came); masked steps hold 0."""

    objective: float
    """To be maximised."""
    cotangent: Any
    """∂objective/∂logprobs, exact: own + routed."""
    own: Any
    """PPO's term, reweighted by the factor and gated by the clip."""
    routed: Any
    """Credit routed back along the prefix."""
    rule: Rule
    """The member as it acted: an ESS floor is replaced by the strength it led to."""
    diagnostics: Diagnostics

    @property
    def loss(self) -> float:
        """−objective, what optimisers minimise."""
        return -self.objective


@dataclass
class _Batch:
    """What the compiled half takes: flat arrays of one type."""

    horizon: int | None
    offsets: np.ndarray | None
    logprobs: np.ndarray
    old_logprobs: np.ndarray
    advantages: np.ndarray
    mask: np.ndarray | None
    behaviour_logprobs: np.ndarray | None
    weights: np.ndarray | None
    reference_logprobs: np.ndarray | None
    entropies: np.ndarray | None
    densities: bool


def evaluate(
    logprobs: Any,
    old_logprobs: Any,
    advantages: Any,
    *,
    correction: str | Correction = "tempered:0.1",
    mask: Any = None,
    offsets: Any = None,
    clip: Clip = 0.2,
    routing: bool = True,
    mean: Literal["steps", "trajectories"] = "steps",
    behaviour_logprobs: Any = None,
    behaviour_weight: str | Correction | None = None,
    weights: Any = None,
    reference_logprobs: Any = None,
    entropies: Any = None,
    densities: bool = False,
) -> Evaluation:
    """Objective, exact cotangent, channels and diagnostics of a batch.

    Shapes:
        logprobs, old_logprobs: `[trajectories, steps]` (padded, with `mask`), or a list of one array per trajectory, or
            flat `[steps of all]` with `offsets` `[trajectories + 1]`. float32 or float64.
        advantages: as `logprobs`, or `[trajectories]`.
        mask: as `logprobs`; False at steps that the policy did not take (padding, tool outputs).
        behaviour_logprobs: as `logprobs`: those of the engine that sampled, for members that weigh from outside.
        weights: `[trajectories]`, how much each counts.
        reference_logprobs: as `logprobs`: those of the policy that a penalty holds on to (the old one, where none is given).
        entropies: as `logprobs`: of the current policy at each step, for `top-entropy`.

    Args:
        correction: a name (`"tempered:0.1"`) or a `Correction`.
        clip: None, ε, (low, high) or (low, high, dual).
        routing: whether gradients flow through the factor to earlier log-probs.
        mean: over all steps alike, or over trajectories, each the mean of its steps.
        behaviour_weight: the constant weight from the policy of the engine that sampled to the old one, for corrections that are not
            such a weight themselves: `"token-tis:2"`, `"sequence-tis:2"` and the like (decoupled PPO).
        densities: log-probs are log-densities of continuous actions and may be positive.

    Raises:
        TypeError, ValueError: with a sentence that names the argument.
    """
    member = Correction.parse(correction)
    outside = None if behaviour_weight is None else Correction.parse(behaviour_weight)
    if member.rule.written is None or outside is not None:
        from ._surrogate import behaviour_rule

        behaviour_rule(member, behaviour_logprobs is not None, outside)
    if mean not in ("steps", "trajectories"):
        raise ValueError(f"mean is {mean!r}; write 'steps' or 'trajectories'")
    values = {"logprobs": logprobs, "old_logprobs": old_logprobs, "advantages": advantages}
    values |= {"mask": mask, "behaviour_logprobs": behaviour_logprobs, "weights": weights}
    values |= {"reference_logprobs": reference_logprobs, "entropies": entropies}
    batch, back = _batch(values, offsets, bool(densities))
    surrogate = _native.Surrogate(member, clip_range(clip), bool(routing), mean == "trajectories", outside)
    run = surrogate.evaluate_f32 if batch.logprobs.dtype == np.float32 else surrogate.evaluate_f64
    objective, cotangent, own, routed, rule, diagnostics = run(batch)
    return Evaluation(objective, back(cotangent), back(own), back(routed), Rule(**rule), Diagnostics(**diagnostics))


def alpha_for_drift(drift: float) -> float:
    """The strength that a measured drift licenses, min(1, 1/σ²T).

    >>> alpha_for_drift(4.0)
    0.25
    """
    return _native.alpha_for_drift(drift)


def clip_range(clip: Clip) -> tuple[float, float, float | None] | None:
    """The clip as (low, high, dual), checked.

    >>> clip_range(0.2)
    (0.2, 0.2, None)
    """
    if clip is None:
        return None
    if not isinstance(clip, (Real, tuple, list, np.ndarray)):
        raise TypeError(f"clip is {type(clip).__name__}; pass ε, (low, high) or (low, high, dual)")
    parts: list[Any] = [clip, clip] if isinstance(clip, Real) else list(clip)
    if len(parts) not in (2, 3):
        raise ValueError(f"clip has {len(parts)} values; pass ε, (low, high) or (low, high, dual)")
    low, high, dual = parts if len(parts) == 3 else [*parts, None]
    for part in (low, high) if dual is None else (low, high, dual):
        if not isinstance(part, Real):
            raise TypeError(f"clip has {part!r} in it; pass numbers: ε, (low, high) or (low, high, dual)")
    if not (0.0 <= low <= 1.0 and high >= 0.0):
        raise ValueError(f"clip ({low}, {high}): the lower width lies in [0, 1], the upper one is not negative")
    if dual is not None and not dual > 1.0:
        raise ValueError(f"clip: the dual bound is {dual}; it must be greater than 1")
    return float(low), float(high), None if dual is None else float(dual)


def _batch(values: dict[str, Any], offsets: Any, densities: bool) -> tuple[_Batch, Any]:
    """The batch, and the way back from flat results to the caller's shape."""
    first = values["logprobs"]
    lists = ragged(first)
    if lists:
        if offsets is not None:
            raise ValueError("offsets goes with a flat array; logprobs is a list of trajectories")
        lengths = [len(part) for part in first]
        values = {name: _joined(name, value, lengths) for name, value in values.items()}
        offsets = np.concatenate(([0], np.cumsum(lengths)))
    found = {name: floats(name, value) for name, value in values.items() if value is not None and name != "mask"}
    shape = found["logprobs"].shape
    if found["logprobs"].size == 0:
        raise ValueError(f"logprobs is empty (shape {shape}): there is nothing to evaluate")
    horizon, bounds, lanes = _rows(shape, offsets)
    for name in ("old_logprobs", "advantages", "behaviour_logprobs", "reference_logprobs", "entropies"):
        if name in found:
            found[name] = _shaped(name, found[name], shape, lanes, bounds)
    if "weights" in found and found["weights"].shape != (lanes,):
        raise ValueError(f"weights has shape {found['weights'].shape}; one per trajectory is ({lanes},)")
    mask = None if values["mask"] is None else flags("mask", values["mask"])
    if mask is not None and mask.shape != shape:
        raise ValueError(f"mask has shape {mask.shape} where logprobs has {shape}")
    kind = np.float32 if all(part.dtype == np.float32 for part in found.values()) else np.float64
    flat = {name: np.ascontiguousarray(part, kind).reshape(-1) for name, part in found.items()}
    batch = _Batch(
        horizon=horizon,
        offsets=bounds,
        logprobs=flat["logprobs"],
        old_logprobs=flat["old_logprobs"],
        advantages=flat["advantages"],
        mask=None if mask is None else mask.reshape(-1),
        behaviour_logprobs=flat.get("behaviour_logprobs"),
        weights=flat.get("weights"),
        reference_logprobs=flat.get("reference_logprobs"),
        entropies=flat.get("entropies"),
        densities=densities,
    )
    if lists and bounds is not None:
        ends = bounds[1:-1].astype(np.int64)
        return batch, lambda values: np.split(values, ends)
    return batch, lambda values: values.reshape(shape)


def _joined(name: str, value: Any, lengths: Sequence[int]) -> Any:
    """One array per trajectory as one flat array; anything else stays as it is."""
    if not ragged(value):
        return value
    if len(value) != len(lengths):
        raise ValueError(f"{name} has {len(value)} trajectories where logprobs has {len(lengths)}")
    kind = flags if name == "mask" else floats
    parts = [kind(f"{name}[{index}]", part) for index, part in enumerate(value)]
    for index, (part, length) in enumerate(zip(parts, lengths)):
        if part.shape != (length,):
            raise ValueError(f"{name}[{index}] has shape {part.shape} where logprobs[{index}] has ({length},)")
    return np.concatenate(parts)


def _rows(shape: tuple[int, ...], offsets: Any) -> tuple[int | None, np.ndarray | None, int]:
    """Steps of every trajectory or the offsets, and the number of trajectories."""
    if offsets is None:
        if len(shape) != 2:
            raise ValueError(
                f"logprobs has shape {shape}; pass [trajectories, steps], a list of arrays, or flat with offsets"
            )
        return shape[1], None, shape[0]
    if len(shape) != 1:
        raise ValueError(f"logprobs has shape {shape}; with offsets it is flat, [steps]")
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or bounds.dtype.kind not in "iu" or len(bounds) < 2 or bounds.min() < 0:
        raise ValueError("offsets must be whole numbers, [trajectories + 1], starting at 0")
    return None, np.ascontiguousarray(bounds, np.uintp), len(bounds) - 1


def _shaped(
    name: str, values: np.ndarray, shape: tuple[int, ...], lanes: int, offsets: np.ndarray | None
) -> np.ndarray:
    """The values in the shape of the log-probs; one advantage per trajectory is repeated over its steps."""
    if values.shape == shape:
        return values
    if name == "advantages" and values.shape == (lanes,):
        if offsets is None:
            return np.broadcast_to(values[:, None], shape)
        ends = offsets.astype(np.int64)
        return np.repeat(values, ends[1:] - ends[:-1])
    either = f" or ({lanes},)" if name == "advantages" else ""
    raise ValueError(f"{name} has shape {values.shape} where logprobs has {shape}{either}")

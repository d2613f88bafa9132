"""Which losses verl is to know, in words that reach its workers: an environment variable, which processes started later inherit."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from typing import Any

VARIABLE = "NIWAKI_VERL_LOSSES"
DEFAULT = {"niwaki": {"correction": "tempered:0.1", "routing": True}}

HERE: set[str] = set()
"""Names that this process has registered, those of rules of a user's own included."""


def listed() -> dict[str, dict[str, Any]]:
    """Name → correction and routing: the default, and what was noted."""
    text = os.environ.get(VARIABLE, "")
    try:
        noted = json.loads(text) if text else {}
        return DEFAULT | {name: {"correction": str(one["correction"]), "routing": bool(one["routing"])} for name, one in noted.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"{VARIABLE} is {text!r}; write JSON, {json.dumps(DEFAULT)} say") from None


def note(name: str, correction: str, routing: bool) -> None:
    """Adds a loss to the environment of processes to come."""
    os.environ[VARIABLE] = json.dumps(listed() | {name: {"correction": correction, "routing": routing}})


def ours(name: str) -> bool:
    """Whether a loss mode is a corrected one."""
    return name in HERE or name in listed()


def keeping(apply: Callable[..., None]) -> Callable[..., None]:
    """verl's `apply_bypass_mode`, which puts a loss of its own in place of any: around a corrected one it leaves that."""
    if hasattr(apply, "niwaki"):
        return apply

    @functools.wraps(apply)
    def kept(batch: Any, rollout_corr_config: Any = None, policy_loss_config: Any = None) -> None:
        name = policy_loss_config.get("loss_mode", "vanilla")
        settings = rollout_corr_config or {}
        if ours(name):
            if settings.get("loss_type", "ppo_clip") != "ppo_clip":
                raise ValueError(
                    f"algorithm.rollout_correction.loss_type is '{settings.get('loss_type')}', which would replace loss_mode "
                    f"'{name}'; set loss_type=ppo_clip, or bypass_mode=false"
                )
            if settings.get("rollout_rs") is not None:
                raise ValueError(
                    f"algorithm.rollout_correction.rollout_rs: loss_mode '{name}' rejects no samples in bypass mode; "
                    "leave rollout_rs out, or set bypass_mode=false"
                )
        apply(batch, rollout_corr_config, policy_loss_config)
        if ours(name):
            from omegaconf import open_dict

            with open_dict(policy_loss_config):
                policy_loss_config["loss_mode"] = name

    kept.niwaki = True  # type: ignore[attr-defined]
    return kept

"""The doors of OpenRLHF, AReaL, slime, prime-rl and NeMo-RL: at α = 0 each trainer's own loss, value and gradient, over its settings;
else the surrogate. Against formulas, and against checkouts where `NIWAKI_TRAINERS` has them (see `peers`)."""

import inspect
import os
import pickle
import sys
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")

import peers  # noqa: E402
from members import batch  # noqa: E402
from niwaki.torch import AmplificationWarning, surrogate  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::niwaki.torch.AmplificationWarning")


def tensors():
    new, old, engine, advantages, mask, _ = batch(holes=False)
    reference = old + 0.1 * np.sin(np.arange(old.size)).reshape(old.shape)
    return [torch.tensor(part) for part in (new, old, engine, advantages, mask, reference)]


def ragged(mask, *values):
    return [[row[own] for row, own in zip(value, mask)] for value in values]


def openrlhf(door, settings, member):
    new, old, engine, advantages, mask, _ = tensors()
    from openrlhf.models.loss import PolicyLoss

    if member is not None:
        door.register(member)
    of_call = {name: settings[name] for name in ("batch_num_tokens", "dp_size") if name in settings}
    if of_call and "dp_size" not in inspect.signature(PolicyLoss.forward).parameters:
        pytest.skip("this version divides by the micro-batch's own tokens")
    settings = {name: value for name, value in settings.items() if name not in of_call}
    if "is_correction_level" in inspect.signature(PolicyLoss).parameters and settings.pop("enable_vllm_is_correction", False):
        # Since 0.11.2 rollout weights have other names.
        kind = settings.pop("vllm_is_correction_type")
        settings["is_correction_threshold"] = settings.pop("vllm_is_truncated_threshold")
        settings |= {"is_correction_level": "seq" if kind == "seq-mask-tis" else "token", "is_correction_mode": "clip" if kind == "tis" else "mask"}
    loss = PolicyLoss(**settings)
    leaf = new.requires_grad_()
    found, _, kl, *_ = loss(leaf, old, advantages, action_mask=mask.double(), rollout_log_probs=engine, **of_call)
    return found, leaf, {"kl": kl.item()}


def areal(door, settings, member):
    new, old, engine, advantages, mask, _ = tensors()
    import areal.trainer.ppo.actor as actor

    if member is not None:
        door.register(member)
    settings = {"eps_clip": 0.2, "eps_clip_higher": None, "c_clip": None} | settings
    known = inspect.signature(actor.grpo_loss_fn).parameters
    if "rejection" in settings:
        if not {"rejection_sampling", "settings"} & set(known):
            pytest.skip("this version cuts weights in another way")
        settings["rejection_sampling"] = types.SimpleNamespace(level="token", metric="ratio", agg="mean", **settings.pop("rejection"))
    for name in {"behav_imp_weight_cap", "behave_imp_weight_cap"} & set(known):
        # Before 1.0.3 the engine's weight is always there.
        settings[name], engine = None, old
    rows = {"logprobs": engine, "prox_logp": old, "advantages": advantages, "loss_mask": mask}
    leaf = new.requires_grad_()
    if settings.pop("packed", True):
        lengths = mask.sum(1)
        rows = {name: torch.cat(part) for name, part in zip(rows, ragged(mask, *rows.values()))}
        rows["cu_seqlens"] = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
        given = leaf[mask]
    else:
        given = leaf
    return actor.grpo_loss_fn(given, torch.zeros_like(given), rows, **settings), leaf, {}


def slime(door, settings, member):
    new, old, engine, advantages, mask, reference = tensors()
    import slime.backends.megatron_utils.loss as theirs

    args = {"advantage_estimator": "grpo", "use_rollout_logprobs": False, "use_opsm": False, "opsm_delta": 0.0, "use_tis": False}
    args |= {"get_mismatch_metrics": False, "tis_clip": 1.1, "tis_clip_low": 0.9, "custom_tis_function_path": None, "eps_clip": 0.2}
    args |= {"eps_clip_high": 0.3, "eps_clip_c": None, "entropy_coef": 0.0, "use_kl_loss": False, "kl_loss_coef": 0.3}
    args |= {"kl_loss_type": "k3", "use_unbiased_kl": False, "calculate_per_token_loss": True, "qkv_format": "thd"}
    args = types.SimpleNamespace(**args | settings)
    if args.eps_clip_c is not None and "eps_clip_c=args" not in inspect.getsource(theirs.policy_loss_function):
        pytest.skip("this version has no dual clip here")
    leaf = new.requires_grad_()
    lengths = mask.sum(1).tolist()
    names = ("advantages", "log_probs", "rollout_log_probs", "ref_log_probs")
    rows = dict(zip(names, ragged(mask, advantages, old, engine, reference)))
    rows |= {"loss_masks": [torch.ones(length) for length in lengths], "response_lengths": lengths, "total_lengths": [n + 3 for n in lengths]}
    rows |= {"unconcat_tokens": None, "rollout_mask_sums": None, "group_mask_sums": None}
    logps = [row[own] for row, own in zip(leaf, mask)]
    theirs.get_log_probs_and_entropy = lambda *_, **__: (None, {"log_probs": logps, "entropy": [part * part for part in logps]})
    theirs.get_rollout_top_p_logprob_kwargs = lambda *_: {}
    sums = lambda each: sum(part.sum() for part in each.split(lengths)) / sum(lengths)
    # With truncated weights slime makes its mean again.
    theirs.get_sum_of_sample_mean = lambda *_, **__: sums
    if getattr(theirs, "mpu", None) is not None:
        from slime.backends.megatron_utils import cp_utils

        for place in (theirs, cp_utils):
            place.mpu = types.SimpleNamespace(get_context_parallel_world_size=lambda: 1, get_context_parallel_group=lambda: None)
    if member is None:
        run = theirs.policy_loss_function
    else:
        args.niwaki_correction = member
        run = door.loss
    loss, metrics = run(args, rows, None, sums)
    return loss, leaf, {name: metrics[name].item() for name in ("ppo_kl", "pg_clipfrac")}


def prime_rl(door, settings, member):
    new, old, engine, advantages, mask, _ = tensors()
    from prime_rl.configs.trainer import DefaultLossConfig, IPOLossConfig
    from prime_rl.trainer.rl.loss import LossInputs, default_loss_fn, ipo_loss_fn

    settings = dict(settings)
    weights = settings.pop("weights", False)
    kind = settings.pop("type", "default")
    leaf = new.requires_grad_()
    loss, masked = 0.0, 0.0
    for row in range(len(new)):
        inputs = LossInputs(leaf[row], old[row], None, advantages[row], mask[row], torch.linspace(0.5, 1.5, new.shape[1]) if weights else None)
        if member is None:
            theirs, config = {"default": (default_loss_fn, DefaultLossConfig), "ipo": (ipo_loss_fn, IPOLossConfig)}[kind]
            found = theirs(inputs, config(**settings))
        else:
            found = door.loss(inputs, correction=member, type=kind, **settings)
        loss, masked = loss + found.loss / mask.sum(), masked + found.metrics["is_masked"].item()
    return loss, leaf, {"masked": masked}


def nemo_rl(door, settings, member):
    new, old, engine, advantages, mask, reference = tensors()
    from nemo_rl.algorithms.loss.loss_functions import ClippedPGLossConfig, ClippedPGLossFn

    whole = {"ratio_clip_min": 0.2, "ratio_clip_max": 0.3, "ratio_clip_c": None, "reference_policy_kl_penalty": 0.0, "token_level_loss": True}
    whole |= {"reference_policy_kl_type": "k3", "kl_input_clamp_value": 20.0, "kl_output_clamp_value": 10.0, "disable_ppo_ratio": False}
    whole |= {"force_on_policy_ratio": False, "use_on_policy_kl_approximation": False, "use_importance_sampling_correction": False}
    whole |= {"truncated_importance_sampling_ratio": None, "truncated_importance_sampling_type": None}
    whole |= {"truncated_importance_sampling_ratio_min": None, "sequence_level_importance_ratios": False}
    config = ClippedPGLossConfig(**whole | settings)
    loss = ClippedPGLossFn(config) if member is None else door.CorrectedPGLossFn(config, correction=member)
    # The first token of a row is given, and the last row is a sample that does not count.
    before = torch.zeros(len(new), 1, dtype=torch.float64)
    shown = lambda value: torch.cat([before, value.double()], 1)
    data = {"advantages": shown(advantages), "prev_logprobs": shown(old), "generation_logprobs": shown(engine), "token_mask": shown(mask)}
    data |= {"reference_policy_logprobs": shown(reference), "sample_mask": torch.ones(len(new)).double(), "input_ids": before}
    data["sample_mask"][-1] = 0.0
    leaf = new.requires_grad_()
    held = set(data)
    counts = (data["sample_mask"].sum(), (mask * data["sample_mask"][:, None]).sum())
    found, metrics = loss(next_token_logprobs=leaf, data=data, global_valid_seqs=counts[0], global_valid_toks=counts[1])
    assert set(data) == held
    return found, leaf, {name: metrics[name] for name in ("approx_entropy", "kl_penalty")}


RUN = {"openrlhf": openrlhf, "areal": areal, "slime": slime, "prime_rl": prime_rl, "nemo_rl": nemo_rl}

TIS = {"use_importance_sampling_correction": True, "truncated_importance_sampling_type": "tis", "truncated_importance_sampling_ratio": 1.05}
SETTINGS = {
    "openrlhf": [
        {}, {"clip_eps_low": 0.1, "clip_eps_high": 0.28}, {"dual_clip": 1.05}, {"token_level_loss": False},
        {"batch_num_tokens": 100.0, "dp_size": 2},
        *(
            {"enable_vllm_is_correction": True, "vllm_is_truncated_threshold": [0.9, 1.05], "vllm_is_correction_type": kind}
            for kind in ("tis", "icepop", "seq-mask-tis")
        ),
    ],
    "areal": [
        {}, {"packed": False}, {"eps_clip": 0.1, "eps_clip_higher": 0.3}, {"c_clip": 1.05},
        {"rejection": {"action": "mask", "upper": 1.05, "lower": 0.9}}, {"rejection": {"action": "clamp", "upper": 1.05, "lower": None}},
    ],
    "slime": [{}, {"eps_clip_c": 1.05}, {"use_opsm": True}, {"use_tis": True}, {"use_kl_loss": True}, {"entropy_coef": 0.1}],
    "prime_rl": [
        {}, {"dppo_mask_low": 0.01, "dppo_mask_high": 0.02}, {"adv_tau": 0.5, "kl_tau": 0.1}, {"weights": True},
        {"type": "ipo", "ipo_threshold": 0.02},
    ],
    "nemo_rl": [{}, {"token_level_loss": False}, {"ratio_clip_c": 1.05}, {"reference_policy_kl_penalty": 0.2}, TIS],
}


def apart(name, version, monkeypatch, settings, members):
    """Value, gradient and metrics of one setting by one member after the other."""
    door = peers.open_trainer(name, version, monkeypatch)
    monkeypatch.delenv("NIWAKI_CORRECTION", raising=False)
    monkeypatch.delenv("NIWAKI_ROUTING", raising=False)
    found = []
    for member, one in zip(members, settings):
        loss, leaf, metrics = RUN[name](door, one, member)
        loss.backward()
        found.append((loss.item(), leaf.grad, metrics))
    return found


CASES = [(name, version, one) for name, version in peers.sources() for one in SETTINGS[name]]


@pytest.mark.parametrize("name, version, settings", CASES, ids=[f"{n}-{v}-{'-'.join(map(str, s)) or 'plain'}" for n, v, s in CASES])
def test_no_correction_is_the_trainers_own_loss(monkeypatch, name, version, settings):
    (own, expected, theirs), (loss, gradient, metrics) = apart(name, version, monkeypatch, [settings] * 2, [None, "tempered:0"])
    assert expected.abs().max() > 1e-4 and loss == pytest.approx(own, abs=1e-12)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-12)
    assert metrics == pytest.approx(theirs, abs=1e-12)


CHANGED = {("nemo_rl", "v0.6.0"): "reference_policy_kl_penalty"}
"""Settings whose formula an older version has otherwise: its KL had no gradient through the sampling."""

CHECKOUTS = [pair for pair in peers.sources() if pair[1] != "formulas"]


@pytest.mark.skipif(not CHECKOUTS, reason="no checkouts; see NIWAKI_TRAINERS in python/tests/peers.py")
@pytest.mark.parametrize("name, version", CHECKOUTS)
def test_the_formulas_are_the_trainers(monkeypatch, name, version):
    for settings in SETTINGS[name]:
        if CHANGED.get((name, version)) in settings:
            continue
        try:
            ((value, gradient, _),) = apart(name, version, monkeypatch, [settings], [None])
        except pytest.skip.Exception:
            continue
        ((twin, expected, _),) = apart(name, "formulas", monkeypatch, [settings], [None])
        # Divisors differ by 1e-8 in some of them, and AReaL's weights are of single precision.
        assert value == pytest.approx(twin, abs=1e-7)
        torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-7)


BARE = {
    "openrlhf": ({}, (0.2, 0.2)), "areal": ({}, 0.2), "slime": ({}, (0.2, 0.3)),
    "prime_rl": ({"dppo_mask_low": 9.0, "dppo_mask_high": 9.0, "kl_tau": 0.0}, None), "nemo_rl": ({}, (0.2, 0.3)),
}


@pytest.mark.parametrize("name, version", peers.sources())
def test_a_correction_is_the_surrogate(monkeypatch, name, version):
    settings, clip = BARE[name]
    ((value, gradient, metrics),) = apart(name, version, monkeypatch, [settings], ["tempered:0.3"])
    new, old, _, advantages, mask, _ = tensors()
    if name == "nemo_rl":
        mask[-1] = False
    leaf = new.requires_grad_()
    expected, _ = surrogate(leaf, old, advantages, mask, correction="tempered:0.3", clip=clip)
    expected.backward()
    assert value == pytest.approx(expected.item(), abs=1e-9)
    torch.testing.assert_close(gradient, leaf.grad, rtol=0, atol=1e-9)
    if name == "openrlhf":
        assert metrics["kl"] == pytest.approx(((old - new.detach()) * mask).sum().item() / mask.sum().item(), abs=1e-12)


BESIDE = {"slime": [{"use_kl_loss": True}, {"entropy_coef": 0.1}], "nemo_rl": [{"reference_policy_kl_penalty": 0.2}]}


@pytest.mark.parametrize("name, version, more", [(*pair, more) for pair in peers.sources() for more in BESIDE.get(pair[0], [])])
def test_what_stands_beside_the_ratio_is_left_as_it_is(monkeypatch, name, version, more):
    runs = apart(name, version, monkeypatch, [{}, more] * 2, [None, None, "tempered:0.3", "tempered:0.3"])
    (a, da, _), (b, db, theirs), (c, dc, _), (d, dd, ours) = runs
    assert d - c == pytest.approx(b - a, abs=1e-10) and abs(b - a) > 1e-4 and abs(c - a) > 1e-4
    torch.testing.assert_close(dd - dc, db - da, rtol=0, atol=1e-10)
    for metric in ("approx_entropy", "kl_penalty"):
        assert ours.get(metric) == pytest.approx(theirs.get(metric), abs=1e-12)


REFUSED = [
    ("openrlhf", {"policy_loss_type": "gspo"}, "tempered:0.1", "policy_loss_type is gspo"),
    ("areal", {"importance_sampling_level": "sequence"}, "tempered:0.1", "importance_sampling_level is sequence"),
    ("areal", {"use_sapo_loss": True}, "tempered:0.1", "actor.use_sapo_loss"),
    ("slime", {"advantage_estimator": "gspo"}, "tempered:0.1", "advantage-estimator is gspo"),
    ("slime", {"advantage_estimator": "cispo"}, "tempered:0.1", "advantage-estimator is cispo"),
    ("prime_rl", {}, "self-normalised:0.5", "reads the whole batch"),
    ("prime_rl", {"type": "custom"}, "tempered:0.1", "type is 'custom'"),
    ("nemo_rl", {"disable_ppo_ratio": True}, "tempered:0.1", "loss_fn.disable_ppo_ratio"),
    ("nemo_rl", {"force_on_policy_ratio": True}, "tempered:0.1", "loss_fn.force_on_policy_ratio"),
    ("nemo_rl", {"sequence_level_importance_ratios": True, "token_level_loss": False}, "tempered:0.1", "loss_fn.sequence_level"),
    ("nemo_rl", {"use_cispo": True}, "tempered:0.1", "loss_fn.use_cispo"),
    ("nemo_rl", {"positive_example_nll_weight": 0.1}, "tempered:0.1", "loss_fn.positive_example"),
    *((name, {}, member, f"correction '{member}") for name in RUN for member in ("gspo", "cispo", "token-tis", "ctpo")),
]


@pytest.mark.parametrize("name, settings, member, said", REFUSED)
def test_what_does_not_go_together_is_refused_by_name(monkeypatch, name, settings, member, said):
    with pytest.raises(ValueError, match=said):
        apart(name, "formulas", monkeypatch, [settings], [member])


def test_a_packed_row_without_boundaries_is_refused(monkeypatch):
    door = peers.open_trainer("areal", "formulas", monkeypatch)
    import areal.trainer.ppo.actor as actor

    door.register("tempered:0.1")
    row = -torch.ones(6)
    rows = {"logprobs": row, "prox_logp": row, "advantages": row, "loss_mask": row.bool()}
    with pytest.raises(ValueError, match="cu_seqlens is missing"):
        actor.grpo_loss_fn(row, row, rows, eps_clip=0.2)


def test_a_rank_without_tokens_passes(monkeypatch):
    door = peers.open_trainer("prime_rl", "formulas", monkeypatch)
    from prime_rl.trainer.rl.loss import LossInputs

    none = torch.zeros(0, requires_grad=True)
    assert door.loss(LossInputs(none, none, None, none, none.bool())).loss.item() == 0.0
    from niwaki._door import Door
    from niwaki.correction import Correction

    assert Door(Correction.tempered(0.1)).shift(none, none, none.bool(), none).numel() == 0
    assert Door(Correction.tempered(0.1)).shift([none], [none], [none.bool()], [none]) == [none]


def test_a_loss_travels_to_workers(monkeypatch):
    peers.open_trainer("nemo_rl", "formulas", monkeypatch)
    import nemo_rl.algorithms.loss.loss_functions as losses
    import niwaki.nemo_rl as door
    import twins

    grpo = twins.module("nemo_rl.algorithms.grpo", ClippedPGLossFn=losses.ClippedPGLossFn)
    door.register("clipped:0.25,1", routing=False)
    config = losses.ClippedPGLossConfig(ratio_clip_min=0.2)
    found = pickle.loads(pickle.dumps(grpo.ClippedPGLossFn(config)))
    assert isinstance(found, losses.ClippedPGLossFn)
    assert found.door.correction.name == "clipped:0.25,1" and not found.door.routing


def test_what_is_imported_later_is_corrected(monkeypatch, tmp_path):
    door = peers.open_trainer("openrlhf", "formulas", monkeypatch)
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "openrlhf"}
    (tmp_path / "openrlhf" / "models").mkdir(parents=True)
    for package in ("openrlhf", "openrlhf/models"):
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "openrlhf" / "models" / "loss.py").write_text("from twins import PolicyLoss\nclass PolicyLoss(PolicyLoss): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NIWAKI_CORRECTION", "clipped:0.5,2")
    monkeypatch.setenv("NIWAKI_ROUTING", "0")
    finders = len(sys.meta_path)
    door.register()
    from openrlhf.models.loss import PolicyLoss

    assert PolicyLoss.niwaki.correction.name == "clipped:0.5,2" and not PolicyLoss.niwaki.routing
    assert len(sys.meta_path) == finders
    # Once more, with another member: the loss is not corrected twice.
    forward = PolicyLoss.forward
    door.register("tempered:0.2", routing=True)
    assert PolicyLoss.forward is forward and PolicyLoss.niwaki.correction.name == "tempered:0.2"
    assert os.environ["NIWAKI_CORRECTION"] == "tempered:0.2" and os.environ["NIWAKI_ROUTING"] == "1"
    peers.forget("openrlhf")
    sys.modules.update(kept)


def test_environments_that_say_nothing_sensible(monkeypatch):
    door = peers.open_trainer("openrlhf", "formulas", monkeypatch)
    monkeypatch.setenv("NIWAKI_ROUTING", "yes")
    with pytest.raises(ValueError, match="NIWAKI_ROUTING is 'yes'"):
        door.register()
    monkeypatch.setenv("NIWAKI_ROUTING", "1")
    monkeypatch.setenv("NIWAKI_CORRECTION", "temperd:0.1")
    with pytest.raises(ValueError, match="temperd"):
        door.register()


@pytest.mark.filterwarnings("default::niwaki.torch.AmplificationWarning")
@pytest.mark.parametrize("name", RUN)
def test_long_gradients_are_told(monkeypatch, name):
    settings, _ = BARE[name]
    rng = np.random.default_rng(0)
    old = -rng.exponential(size=(4, 256)) - 0.1
    rows = [old, old, old, np.repeat([[1.0], [-1.0]] * 2, 256, 1), np.ones(old.shape, bool), old]
    monkeypatch.setattr(sys.modules[__name__], "tensors", lambda: [torch.tensor(part) for part in rows])
    with pytest.warns(AmplificationWarning, match="multiplies the norm"):
        apart(name, "formulas", monkeypatch, [settings], ["tempered:0.3"])


def test_a_long_row_and_what_is_no_number(monkeypatch):
    door = peers.open_trainer("openrlhf", "formulas", monkeypatch)
    from openrlhf.models.loss import PolicyLoss

    rng = np.random.default_rng(0)
    old = torch.tensor(-rng.exponential(size=(2, 100_000)), dtype=torch.float32)
    new = (old + 1e-4 * torch.randn(old.shape)).requires_grad_()
    mask = torch.ones(old.shape)
    mask[1, 50_000:] = 0
    # What lies under the mask may be anything; OpenRLHF multiplies by the mask, so its own loss would not be a number.
    odd = torch.where(mask.bool(), new, torch.nan)
    door.register("tempered:0.1")
    shifted = PolicyLoss.niwaki.shift(odd, old, mask, torch.ones(2, 1), (0.2, 0.2))
    assert torch.isfinite(shifted[mask.bool()]).all() and torch.isnan(shifted[~mask.bool()]).all()
    shifted[mask.bool()].sum().backward()
    assert torch.isfinite(new.grad).all()
    # A token of the policy's own that is none makes the loss none, as in the trainer without us.
    broken = old.clone()
    broken[0, 7] = torch.nan
    assert torch.isnan(PolicyLoss()(broken, old, torch.ones(2, 1), action_mask=mask)[0])


def test_one_door_on_four_threads(monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    expected = apart("slime", "formulas", monkeypatch, [{}], ["tempered:0.3"])[0]
    door = peers.open_trainer("slime", "formulas", monkeypatch)
    import slime.backends.megatron_utils.loss as theirs

    new, old, _, advantages, mask, _ = tensors()
    lengths = mask.sum(1).tolist()

    def one(turn):
        # Some threads train another loss meanwhile.
        row, leaf = types.SimpleNamespace(advantage_estimator="grpo", niwaki_correction="tempered:0.3"), new.clone().requires_grad_()
        logps = [values[own] for values, own in zip(leaf, mask)]
        names = ("advantages", "log_probs")
        rows = dict(zip(names, ragged(mask, advantages, old))) | {"response_lengths": lengths, "total_lengths": lengths}
        rows["loss_masks"] = [torch.ones(length) for length in lengths]

        def policy(args, batch, logits, sums):
            kl = torch.cat(batch["log_probs"]) - torch.cat(logps)
            return theirs.compute_policy_loss(kl, torch.cat(batch["advantages"]), 0.2, 0.3)[0].mean(), {}

        if turn % 2:
            return policy(row, rows, None, None)[0].item()
        with lock:
            theirs.policy_loss_function = policy
            return door.loss(row, rows, None, None)[0].item()

    import threading

    lock = threading.Lock()
    plain = one(1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one, range(40)))
    assert found[0::2] == pytest.approx([expected[0]] * 20, abs=1e-9) and found[1::2] == [plain] * 20
    assert abs(plain - expected[0]) > 1e-4


def test_a_door_is_one_after_pickling_and_in_a_child():
    from niwaki._door import Door
    from niwaki.correction import Correction

    new, old, _, advantages, mask, _ = tensors()
    door = Door(Correction.tempered(0.3))
    expected = door.shift(new, old, mask)
    torch.testing.assert_close(pickle.loads(pickle.dumps(door)).shift(new, old, mask), expected)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(door.shift(new, old, mask), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("values", [torch.tensor(-1.0), torch.ones(2, 2, 2), -torch.ones(3, dtype=torch.long)[None]])
def test_tensors_of_no_use_are_named(values):
    from niwaki._door import Door
    from niwaki.correction import Correction

    with pytest.raises((TypeError, ValueError), match="logprobs"):
        Door(Correction.tempered(0.3)).shift(values, values, values)

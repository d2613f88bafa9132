"""niwaki.correction: values by hand, shapes that agree, refusals that name the argument."""

import inspect

import niwaki
import numpy as np
import pytest
from niwaki import correction
from niwaki.correction import Correction, Rule, evaluate

OLD = np.array([[-1.2, -0.7, -0.3], [-0.9, -1.1, -0.4]])
NEW = np.array([[-1.1, -0.8, -0.2], [-1.0, -1.0, -0.5]])
ADVANTAGES = np.array([[0.5, 0.2, -0.3], [-0.5, 1.0, 0.7]])


def draw(lanes, steps, seed=0, kind=np.float64):
    rng = np.random.default_rng(seed)
    old = -rng.exponential(size=(lanes, steps)) - 0.6
    new = old + rng.normal(scale=0.15, size=(lanes, steps))
    return new.astype(kind), old.astype(kind), rng.normal(size=(lanes, steps)).astype(kind)


def test_tempered_by_hand():
    # One trajectory, ℓ = (0.1, −0.1, 0.1), α = 0.5: log corrected = ℓ + ½ prefix = 0.1, −0.05, 0.1 + 0 = 0.1.
    found = evaluate(NEW[:1], OLD[:1], [[1.0, 1.0, 1.0]], correction="tempered:0.5", clip=None)
    terms = np.exp([0.1, -0.1 + 0.05, 0.1]) / 3
    assert found.objective == pytest.approx(terms.sum(), abs=1e-15)
    np.testing.assert_allclose(found.own[0], terms, rtol=1e-14)
    # Credit of step t flows with slope ½ to every earlier step.
    np.testing.assert_allclose(found.routed[0], 0.5 * np.array([terms[1] + terms[2], terms[2], 0.0]), rtol=1e-14)
    np.testing.assert_allclose(found.cotangent, found.own + found.routed)
    assert found.loss == -found.objective
    assert found.diagnostics.steps == 3 and found.diagnostics.lanes == 1


WRITTEN = {"tempered": "tempered:0.3", "truncated": "truncated:2", "clipped": "clipped:0.5,0.3"}
WRITTEN |= {"outside": "outside:0.3", "dro": "dro:0.5", "kl-penalty": "kl-penalty:0.5", "kl-corrected": "kl-corrected:0.5"}
ALL = [WRITTEN.get(member.name, member.name) for member in correction.members()]
# Weighing members and the adaptive strength carry constants of the batch that a difference quotient would move.
SMOOTH = [text for text in ALL if Correction.parse(text).rule.form != "weigh" and text != "adaptive"]
# Score steps and masks of the batch, likewise; the kernel's own laws hold their gradients.
SMOOTH = [text for text in SMOOTH if Correction.parse(text).rule.written in (None, "sapo:1,1.05", "gmpo:0.4,0.4", "kl-corrected:0.5")]


@pytest.mark.parametrize("text", SMOOTH)
def test_cotangent_is_the_derivative(text):
    new, old, advantages = draw(5, 6)
    found = evaluate(new, old, advantages, correction=text, clip=None)
    step = 1e-6
    for at in [(0, 0), (1, 3), (4, 5), (2, 1)]:
        moved = [new.copy(), new.copy()]
        moved[0][at] += step
        moved[1][at] -= step
        up, down = (evaluate(side, old, advantages, correction=text, clip=None).objective for side in moved)
        assert found.cotangent[at] == pytest.approx((up - down) / (2 * step), abs=1e-8), (text, at)


def test_padded_ragged_and_flat_agree():
    new, old, advantages = draw(3, 5)
    lengths = [5, 2, 4]
    mask = np.arange(5) < np.array(lengths)[:, None]
    padded = evaluate(new, old, advantages, mask=mask)
    cut = lambda values: [row[:length].copy() for row, length in zip(values, lengths)]
    lists = evaluate(cut(new), cut(old), cut(advantages))
    flat = evaluate(
        np.concatenate(cut(new)), np.concatenate(cut(old)), np.concatenate(cut(advantages)), offsets=[0, 5, 7, 11]
    )
    assert padded.objective == lists.objective == flat.objective
    np.testing.assert_array_equal(np.concatenate(lists.cotangent), flat.cotangent)
    np.testing.assert_array_equal(padded.cotangent[mask], flat.cotangent)
    assert not padded.cotangent[~mask].any()
    assert [len(part) for part in lists.own] == lengths


def test_one_advantage_per_trajectory_is_repeated():
    new, old, _ = draw(4, 3)
    each = np.array([1.0, -1.0, 0.5, 0.0])
    whole = np.repeat(each[:, None], 3, axis=1)
    assert evaluate(new, old, each).objective == evaluate(new, old, whole).objective
    flat = evaluate(new.reshape(-1), old.reshape(-1), each, offsets=[0, 3, 6, 9, 12])
    assert flat.objective == evaluate(new, old, whole).objective


def test_precision_follows_the_arrays():
    new, old, advantages = draw(16, 8, kind=np.float32)
    single = evaluate(new, old, advantages)
    double = evaluate(new.astype(float), old.astype(float), advantages.astype(float))
    assert single.cotangent.dtype == np.float32 and double.cotangent.dtype == np.float64
    assert single.objective == pytest.approx(double.objective, abs=1e-6)
    assert evaluate(new, old, advantages.astype(float)).cotangent.dtype == np.float64


def test_names_constructors_and_members_agree():
    written = {
        "ppo": Correction.ppo(),
        "full": Correction.full(),
        "tempered:0.25": Correction.tempered(0.25),
        "truncated:2": Correction.truncated(2),
        "clipped:0.25,1": Correction.clipped(0.25, 1),
        "self-normalised:0.5": Correction.self_normalised(0.5),
        "adaptive:0.8": Correction.adaptive(0.8),
        "by-length:3": Correction.by_length(3),
        "outside:0.3": Correction.outside(0.3),
        "minpro": Correction.minpro(),
        "ctpo": Correction.ctpo(),
        "gspo": Correction.gspo(),
        "token-tis:3": Correction.token_tis(3),
        "sequence-tis:2": Correction.sequence_tis(),
        "token-mis:0.5,2": Correction.token_mis(),
        "sequence-mis:0.4,3": Correction.sequence_mis(0.4, 3),
        "cispo:1,0.2": Correction.cispo(),
        "dual-clip:3": Correction.dual_clip(),
        "gpg": Correction.gpg(),
        "token-k1:0.5,2": Correction.token_k1(),
        "token-k2:0.1": Correction.token_k2(),
        "token-k3:0.1": Correction.token_k3(),
        "sequence-k1:0.5,2": Correction.sequence_k1(),
        "mean-k1:0.5,2": Correction.mean_k1(),
        "sequence-k2:0.1": Correction.sequence_k2(),
        "sequence-k3:0.1": Correction.sequence_k3(),
        "mean-k2:0.1": Correction.mean_k2(),
        "mean-k3:0.1": Correction.mean_k3(),
        "max-k2:0.1": Correction.max_k2(),
        "max-k3:0.1": Correction.max_k3(),
        "sequence-clamp:0,3": Correction.sequence_clamp(),
        "normalised-token-tis:2": Correction.normalised_token_tis(),
        "normalised-sequence-tis:2": Correction.normalised_sequence_tis(),
        "sapo:1,1.05": Correction.sapo(),
        "vespo:2,3,3,2": Correction.vespo(),
        "gmpo:0.4,0.4": Correction.gmpo(),
        "dppo-tv:0.2,0.2,3": Correction.dppo_tv(),
        "dppo-kl:0.2,0.2,3": Correction.dppo_kl(),
        "clip-cov:0.0002,1,5": Correction.clip_cov(),
        "kl-cov:0.0002,1": Correction.kl_cov(),
        "dro:0.5": Correction.dro(0.5),
        "kl-penalty:0.5": Correction.kl_penalty(0.5),
        "kl-corrected:0.5": Correction.kl_corrected(0.5),
        "off-policy-mask:0.5": Correction.off_policy_mask(),
        "top-entropy:0.2": Correction.top_entropy(),
    }
    for text, built in written.items():
        assert Correction.parse(text) == built and str(built) == text
    assert {text.partition(":")[0] for text in written} == {member.name for member in correction.members()}
    assert Correction.clipped(0.5, float("inf")).rule.high == float("inf")


def test_an_adaptive_member_says_the_strength_it_took():
    new, old, advantages = draw(64, 12)
    found = evaluate(new, old, advantages, correction="adaptive:0.95")
    assert found.rule.ess_floor is None and 0 < found.rule.strength < 1
    assert found.diagnostics.ess == pytest.approx(0.95, abs=1e-6)


def test_a_rule_of_ones_own():
    new, old, advantages = draw(8, 6)
    entropies = -old
    for text in ALL:
        member = Correction.parse(text)
        same = Correction.custom("mine", member.rule)
        assert evaluate(new, old, advantages, correction=same, entropies=entropies).objective == (
            evaluate(new, old, advantages, correction=member, entropies=entropies).objective
        ), text
    with pytest.raises(ValueError, match="'top-entropy' needs entropies"):
        evaluate(new, old, advantages, correction="top-entropy")
    refused = [
        (("ppo", Rule()), "a member of the family has that name"),
        (("a b", Rule()), "one word"),
        (("mine", Rule(strength=float("nan"))), "the strength must be finite"),
        (("mine", Rule(low=1.0, high=0.0)), "the lower one first"),
        (("mine", Rule(reads="window")), "window is missing"),
        (("mine", Rule(window=3)), "window goes with reads='window'"),
    ]
    for arguments, word in refused:
        with pytest.raises(ValueError, match=word):
            Correction.custom(*arguments)


def refusal(**changes):
    arguments = {"logprobs": NEW, "old_logprobs": OLD, "advantages": ADVANTAGES} | changes
    with pytest.raises((TypeError, ValueError)) as caught:
        evaluate(**arguments)
    return f"{caught.type.__name__}: {caught.value}"


def test_refusals_name_the_argument():
    nan = OLD.copy()
    nan[1, 2] = np.nan
    positive = NEW.copy()
    positive[0, 1] = 0.5
    assert refusal(old_logprobs=OLD[:, :2].copy()) == (
        "ValueError: old_logprobs has shape (2, 2) where logprobs has (2, 3)"
    )
    assert refusal(advantages=[1.0, 2.0, 3.0]) == (
        "ValueError: advantages has shape (3,) where logprobs has (2, 3) or (2,)"
    )
    assert refusal(old_logprobs=nan) == "ValueError: old_logprobs[1, 2] is not a finite number"
    assert refusal(advantages=nan) == "ValueError: advantages[1, 2] is not a finite number"
    assert refusal(logprobs=positive).startswith("ValueError: logprobs[0, 1] = 0.5 is positive")
    assert refusal(mask=np.zeros((2, 3), bool)) == "ValueError: mask leaves no step of the policy in the batch"
    assert refusal(mask=np.full((2, 3), 2)).startswith("TypeError: mask holds other values")
    assert refusal(mask=np.ones((2, 2), bool)) == "ValueError: mask has shape (2, 2) where logprobs has (2, 3)"
    assert refusal(logprobs=NEW.astype(np.float16)).startswith("TypeError: logprobs is float16")
    assert refusal(logprobs=NEW.astype(complex)) == "TypeError: logprobs is complex128; pass float32 or float64"
    assert refusal(old_logprobs=np.asfortranarray(OLD)) == (
        "ValueError: old_logprobs is not contiguous; pass np.ascontiguousarray(old_logprobs)"
    )
    assert refusal(logprobs=np.zeros((0, 3))).startswith("ValueError: logprobs is empty")
    assert refusal(logprobs=NEW[0]).startswith("ValueError: logprobs has shape (3,)")
    assert refusal(logprobs=np.array([[None, 1]])).startswith("TypeError: logprobs holds objects")
    assert refusal(weights=[1.0]) == "ValueError: weights has shape (1,); one per trajectory is (2,)"
    assert refusal(weights=[-1.0, 1.0]).startswith("ValueError: weights must be finite, not negative")
    assert refusal(correction="temperd:0.1").endswith("did you mean 'tempered'?")
    assert refusal(correction="tempered:2").startswith("ValueError: correction: loss 'tempered': alpha = 2")
    assert refusal(correction=0.1).startswith("TypeError: correction is float")
    assert refusal(clip=(0.1,)).startswith("ValueError: clip has 1 values")
    assert refusal(clip="0.2").startswith("TypeError: clip is str")
    assert refusal(clip=(None, 0.2)).startswith("TypeError: clip has None in it")
    assert refusal(clip=-0.1).startswith("ValueError: clip (-0.1, -0.1)")
    assert refusal(clip=(0.2, 0.2, 0.5)).startswith("ValueError: clip: the dual bound is 0.5")
    assert refusal(mean="tokens").startswith("ValueError: mean is 'tokens'")
    assert refusal(offsets=[0, 6]).startswith("ValueError: logprobs has shape (2, 3); with offsets it is flat")
    flat = {"logprobs": NEW[0].copy(), "old_logprobs": OLD[0].copy(), "advantages": ADVANTAGES[0].copy()}
    assert refusal(**flat, offsets=[0, 2]).startswith("ValueError: offsets must start at 0, never fall")
    assert refusal(**flat | {"old_logprobs": nan[1].copy()}, offsets=[0, 2, 3]) == (
        "ValueError: old_logprobs[2] (step 0 of trajectory 1) is not a finite number"
    )
    lists = {"logprobs": [NEW[0], NEW[1]], "old_logprobs": [OLD[0], OLD[1, :2]], "advantages": [1.0, 2.0]}
    assert refusal(**lists) == "ValueError: old_logprobs[1] has shape (2,) where logprobs[1] has (3,)"


def test_padding_may_hold_anything():
    new, old, advantages = draw(2, 4)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]])
    clean = evaluate(new, old, advantages, mask=mask)
    new[mask == 0], old[mask == 0], advantages[mask == 0] = np.nan, 7.0, np.inf
    assert evaluate(new, old, advantages, mask=mask).objective == clean.objective


def test_densities_may_be_positive():
    assert np.isfinite(evaluate(NEW + 3, OLD + 3, ADVANTAGES, densities=True).objective)


def test_arrays_are_left_alone_and_never_copied_on_the_way_in():
    new, old, advantages = draw(4, 4)
    kept = [part.copy() for part in (new, old, advantages)]
    evaluate(new, old, advantages)
    for part, before in zip((new, old, advantages), kept):
        np.testing.assert_array_equal(part, before)
    batch, _ = correction._batch(
        {"logprobs": new, "old_logprobs": old, "advantages": advantages, "mask": None, "behaviour_logprobs": None, "weights": None},
        None,
        False,
    )
    assert np.shares_memory(batch.logprobs, new) and np.shares_memory(batch.advantages, advantages)


def test_every_public_name_has_a_docstring():
    for name in correction.__all__:
        assert inspect.getdoc(getattr(correction, name)), name
    assert niwaki.__version__ and "correction" in dir(niwaki)


def test_rules_say_what_is_wrong_with_them():
    for words, said in (
        ({"reads": "widow"}, "reads is 'widow'; did you mean 'window'"), ({"reads": "xyz"}, "reads is 'xyz'; write prefix, "),
        ({"form": "add"}, "form is 'add'"), ({"beyond": "fall"}, "beyond is 'fall'"),
    ):
        with pytest.raises(ValueError, match=said):
            Rule(**words)
    with pytest.raises(TypeError, match="rule is a function; pass a Rule"):
        Correction.custom("m", lambda ell: ell)
    with pytest.raises(TypeError, match="rule is str"):
        Correction.custom("m", "tempered:0.1")
    with pytest.raises(TypeError, match="strength is '1'"):
        Rule(strength="1")

"""A correction that makes gradients much longer says so once, with the figure, at every door."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")

from niwaki._amplification import WATCHES  # noqa: E402
from niwaki.torch import AmplificationWarning, amplification, surrogate  # noqa: E402


def fresh(steps, lanes=4):
    """A batch that was just drawn, one advantage per trajectory."""
    torch.manual_seed(0)
    old = -torch.rand(lanes, steps, dtype=torch.float64) - 0.2
    return old.clone().requires_grad_(), old, torch.randn(lanes, dtype=torch.float64)


@pytest.fixture(autouse=True)
def unsaid():
    WATCHES.clear()


def told(work):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in found if issubclass(one.category, AmplificationWarning)]


# Fresh: every ratio is 1, PPO's coefficient is the advantage, and step i of T (from 1) counts 1 + α(T − i) times.
@pytest.mark.parametrize("steps, alpha", [(1, 0.5), (7, 0.3), (512, 0.1)])
def test_the_figure_is_that_of_the_formula(steps, alpha):
    counts = 1.0 + alpha * (steps - np.arange(1, steps + 1))
    found = amplification(*fresh(steps), correction=f"tempered:{alpha}")
    assert found.item() == pytest.approx(np.sqrt((counts**2).mean()), rel=1e-12)


def test_the_figure_is_the_gradients():
    new, old, advantages = fresh(9)
    new = (old + 0.05 * torch.randn_like(old)).requires_grad_()
    mask = torch.ones_like(old)
    mask[1, 5:] = 0
    for member in ("tempered:0.6", "truncated:3", "clipped:0.5,0.1", "minpro", "self-normalised:0.5"):
        norms = []
        for correction in (member, "ppo"):
            new.grad = None
            surrogate(new, old, advantages, mask, correction=correction, clip=(0.1, 0.3))[0].backward()
            norms.append(new.grad.norm().item())
        found = amplification(new, old, advantages, mask, correction=member, clip=(0.1, 0.3))
        assert found.item() == pytest.approx(norms[0] / norms[1], rel=1e-12), member
        assert not found.requires_grad and amplification(new, old, advantages, mask, correction="ppo") == 1


def test_the_loss_warns_once_with_the_figure():
    batch = fresh(512)
    said = told(lambda: [surrogate(*batch, correction="tempered:0.1") for _ in range(9)])
    assert len(said) == 1 and "by 30.6 (512 steps)" in said[0] and "correction 'tempered:0.1'" in said[0]
    # Another member has a figure of its own.
    assert len(told(lambda: surrogate(*batch, correction="tempered:0.2"))) == 1


def test_what_amplifies_little_is_silent():
    assert told(lambda: surrogate(*fresh(8), correction="tempered:0.1")) == []
    assert told(lambda: surrogate(*fresh(512), correction="tempered:0.1", routing=False)) == []
    assert told(lambda: surrogate(*fresh(512), correction="ppo")) == []
    # No signal, no figure; and nothing is measured where nothing is trained.
    new, old, advantages = fresh(512)
    assert told(lambda: surrogate(new, old, 0 * advantages, correction="tempered:0.1")) == []
    assert told(lambda: surrogate(new.detach(), old, advantages, correction="tempered:0.1")) == []


def test_a_batch_without_signal_does_not_silence_those_after_it():
    new, old, advantages = fresh(512)
    run = lambda: [surrogate(new, old, scale * advantages, correction="tempered:0.1") for scale in (0, 0, 1, 1)]
    # The fourth batch is measured, the third is not.
    assert len(told(run)) == 1


def test_half_precision_and_compiled_code():
    new, old, advantages = fresh(512)
    narrow = [part.detach().bfloat16() for part in (new, old, advantages)]
    assert amplification(*narrow, correction="tempered:0.1").item() == pytest.approx(30.6, abs=0.1)
    compiled = torch.compile(lambda *parts: surrogate(*parts, correction="tempered:0.1")[0], fullgraph=True, backend="aot_eager")
    assert told(lambda: compiled(new, old, advantages).backward()) == []


def test_jax_has_the_figure_and_warns_where_it_looks():
    jax = pytest.importorskip("jax", reason="jax is not installed; python/test-extras.sh runs this")
    from niwaki import jax as door

    arrays = [jax.numpy.asarray(part.detach().float().numpy()) for part in fresh(512)]
    expected = amplification(*fresh(512)).item()
    assert float(jax.jit(door.amplification)(*arrays)) == pytest.approx(expected, rel=1e-4)
    WATCHES.clear()
    assert len(told(lambda: [door.surrogate(*arrays, check=True) for _ in range(3)])) == 1


def test_trls_trainer_warns_once(tmp_path):
    pytest.importorskip("trl", reason="trl is not installed; python/test-extras.sh runs this")
    import test_trl
    from niwaki.trl import GRPOTrainer

    run = lambda member: told(lambda: test_trl.train(GRPOTrainer, tmp_path, correction=member))
    said = run("tempered:1")
    assert len(said) == 1 and "correction 'tempered:1'" in said[0]
    assert run("tempered:0.01") == []


def test_verls_loss_warns_once():
    pytest.importorskip("verl", reason="verl is not installed; python/test-extras.sh runs this")
    from niwaki.verl import register
    from test_verl import config
    from verl.trainer.ppo.core_algos import get_policy_loss_fn

    register("tempered:0.1", name="niwaki-watched")
    new, old, advantages = fresh(512)
    rest = (old, new, advantages[:, None].expand_as(old), torch.ones_like(old))
    said = told(lambda: [get_policy_loss_fn("niwaki-watched")(*rest, "token-mean", config(), None) for _ in range(5)])
    assert len(said) == 1 and "by 30.6 (512 steps)" in said[0]

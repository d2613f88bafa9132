"""niwaki.load: schedules and log-probs of trained policies, and the same log-probs from plain PyTorch."""

import shutil
import subprocess
import sys

import niwaki
import numpy as np
import pytest
from niwaki import shop

pytestmark = pytest.mark.skipif(shutil.which("niwaki") is None, reason="the command is not installed; python/test.sh runs this")

SPECS = {
    "pointer": '[task]\nkind = "flow-shop"\njobs = 6\nmachines = 3\ndeadline = 1.05\ntraining = 8\nvalidation = 4\n'
    '[policy]\nkind = "pointer"\nblocks = 1\nwidth = 16\nheads = 2\n[rollout]\nlanes = 16\ngroup = 4\n[advantage]\nkind = "group"\n',
    "residual": '[task]\nkind = "job-shop"\njobs = 3\nmachines = 2\norder = "list"\ndeadline = 1.05\ntraining = 8\nvalidation = 4\n'
    '[policy]\nkind = "pointer"\nblocks = 1\nwidth = 16\nheads = 2\nglimpse = "residual"\nbound = 0\n[rollout]\nlanes = 16\ngroup = 4\n'
    '[advantage]\nkind = "group"\n',
    "causal": '[task]\nhorizon = 5\n[policy]\nkind = "causal"\nblocks = 2\nwidth = 16\nheads = 2\n[rollout]\nlanes = 32\n',
    "bag": '[task]\nkind = "choice"\nhorizon = 5\nterminal = "chosen"\n[policy]\nkind = "bag"\nwidth = 8\n[rollout]\nlanes = 32\n'
    '[advantage]\nkind = "group"\n',
    "tabular": '[task]\nhorizon = 5\n[policy]\nkind = "tabular"\n[rollout]\nlanes = 32\n',
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, text in SPECS.items():
        (folder / f"{name}.toml").write_text(f"iterations = 2\n{text}")
        line = ["niwaki", "train", str(folder / f"{name}.toml"), "--out", str(folder / name)]
        ran = subprocess.run(line, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
    return folder


def constructions(policy, instance, count=3, seed=0):
    """Choices drawn among those that are open, replayed from the beginning as they grow."""
    rng = np.random.default_rng(seed)
    if instance.kind == "flow shop":
        return np.argsort(rng.random((count, instance.jobs)), axis=1)
    # A job shop's candidates are its operations, job by job; each job's come in order.
    routes = instance.operations // instance.jobs
    jobs = [rng.permutation(np.repeat(np.arange(instance.jobs), routes)) for _ in range(count)]
    step = lambda order: [order[place] * routes + np.count_nonzero(order[:place] == order[place]) for place in range(len(order))]
    return np.array([step(order) for order in jobs])


@pytest.mark.parametrize("name", ["pointer", "residual"])
def test_a_pointer_schedules_and_scores(runs, name):
    policy = niwaki.load(runs / name)
    assert policy.kind == "pointer" and policy.iteration == 2 and policy.tensors["mean.weight"].shape == (16, 16)
    task, size = ("hard-flow", {"jobs": 6, "machines": 3}) if name == "pointer" else ("job-shop", {"jobs": 3, "machines": 2})
    instances = [shop.generate(task, **size, seed=9, index=index) for index in range(3)]
    for instance, found in zip(instances, policy.schedule(instances, samples=16), strict=True):
        assert instance.verify(found.schedule).makespan == found.makespan >= instance.solve().makespan
    assert policy.schedule(instances[0], samples=4)[0].makespan == policy.schedule(instances[:1], samples=4)[0].makespan
    if name == "pointer":
        scored = policy.score(instances[0], constructions(policy, instances[0]))
        assert scored.log_probs.shape == (3, 6) and (scored.log_probs <= 0).all() and scored.open.shape == (3, 6, 6)
        # The last choice is the only one that is left, and the first choices share the mass.
        np.testing.assert_allclose(scored.log_probs[:, -1], 0.0, atol=1e-6)
        every = [np.roll(np.arange(6), -first) for first in range(6)]
        assert np.exp(policy.score(instances[0], every).log_probs[:, 0]).sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", ["causal", "bag", "tabular"])
def test_sequences_are_scored(runs, name):
    policy = niwaki.load(runs / name)
    assert policy.kind == name and policy.iteration == 2
    # Every first token and then zeros: the probabilities of the first add up.
    tokens = np.zeros((policy.vocab, policy.horizon), int)
    tokens[:, 0] = np.arange(policy.vocab)
    log_probs, open = policy.score(tokens)
    assert log_probs.shape == tokens.shape and open.shape == (*tokens.shape, policy.vocab)
    assert np.exp(log_probs[:, 0]).sum() == pytest.approx(1.0, abs=1e-5)
    if name == "tabular":
        # Rows by hand: the one after token a in row r is vocab · r + 1 + a.
        logits = policy.tensors["logits"]
        picked = lambda row, token: logits[row, token] - np.log(np.exp(logits[row]).sum())
        found, _ = policy.score([[1, 2, 0, 1, 3]])
        rows = [0, 2, 4 * 2 + 3, 4 * 11 + 1, 4 * 45 + 2]
        np.testing.assert_allclose(found[0], [picked(row, token) for row, token in zip(rows, [1, 2, 0, 1, 3])], atol=1e-12)


def logged(name, module, policy, torch):
    """Log-probs by the module and by the engine, on the same constructions or sequences."""
    if policy.kind == "pointer":
        size = {"jobs": 6, "machines": 3} if name == "pointer" else {"jobs": 3, "machines": 2}
        instance = shop.generate("hard-flow" if name == "pointer" else "job-shop", **size, seed=4)
        choices = constructions(policy, instance)
        scored = policy.score(instance, choices)
        candidates = scored.open.shape[-1]
        last = np.concatenate([np.full((len(choices), 1), candidates), choices[:, :-1]], 1)
        lanes = len(choices)
        features = torch.from_numpy(scored.features).expand(lanes, -1, -1)
        all_of_them = module(features, torch.from_numpy(scored.context), torch.from_numpy(scored.open), torch.from_numpy(last))
        expected = scored.log_probs
    else:
        choices = np.random.default_rng(0).integers(policy.vocab, size=(16, policy.horizon))
        expected, open = policy.score(choices)
        all_of_them = module(torch.from_numpy(choices), torch.from_numpy(open))
    picked = all_of_them.gather(-1, torch.from_numpy(choices)[..., None])[..., 0]
    return picked.detach().numpy(), expected


@pytest.mark.parametrize("name", SPECS)
def test_plain_pytorch_gives_the_same_log_probs(runs, name, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
    policy = niwaki.load(runs / name)
    ours, expected = logged(name, policy.to_torch(), policy, torch)
    close = 1e-12 if name == "tabular" else 2e-6
    np.testing.assert_allclose(ours, expected, rtol=0, atol=close)
    # The exported folder stands alone: it is imported under another name, without this package.
    policy.export(tmp_path)
    assert "niwaki" not in (tmp_path / "policy.py").read_text()
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import policy; print(sum(p.numel() for p in policy.load({str(tmp_path)!r}).parameters()))"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(said.stdout) == sum(value.size for value in policy.tensors.values())


def test_refusals_name_what_is_wrong(runs, tmp_path):
    with pytest.raises(ValueError, match="expected the folder of a run"):
        niwaki.load(tmp_path)
    policy = niwaki.load(runs / "pointer")
    instance = shop.generate("hard-flow", jobs=6, machines=3)
    with pytest.raises(ValueError, match="the policy schedules .* with 3 machines"):
        policy.schedule(shop.generate("hard-flow", jobs=6, machines=4))
    with pytest.raises(ValueError, match="samples is -1"):
        policy.schedule(instance, samples=-1)
    with pytest.raises(ValueError, match="choices has shape"):
        policy.score(instance, [0, 1])
    with pytest.raises(ValueError):
        policy.score(instance, [[0, 0, 1, 2, 3, 4]])
    with pytest.raises(ValueError, match="tokens has shape"):
        niwaki.load(runs / "causal").score([[0, 1]])
    with pytest.raises(ValueError, match="token 9 at step 1"):
        niwaki.load(runs / "tabular").score([[0, 9, 0, 0, 0]])

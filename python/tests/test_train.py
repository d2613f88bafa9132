"""niwaki.train: what it learns, that a killed run ends with the same bytes, its advantages by hand, and what it refuses."""

import json
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed; python/test-extras.sh runs this")

import niwaki  # noqa: E402
from gymnasium import spaces  # noqa: E402
from niwaki import train as loop  # noqa: E402
from niwaki._merging import digests, merged  # noqa: E402
from niwaki.gym import ShopVectorEnv, TokenVectorEnv  # noqa: E402
from torch import nn  # noqa: E402

FILES = ("spec.toml", "curve.jsonl", "checkpoint.safetensors", "summary.json", "index.html")


class Lock:
    def vocab(self):
        return 3

    def horizon(self):
        return 4

    def reward(self, tokens):
        return sum(b == (a + 1) % 3 for a, b in zip(tokens, tokens[1:])) / 3


def policy():
    return nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 3))


class Critic(nn.Module):
    def __init__(self, seen=4, actions=2):
        super().__init__()
        self.actor, self.critic = nn.Linear(seen, actions), nn.Linear(seen, 1)

    def forward(self, seen):
        return self.actor(seen), self.critic(seen)


def lock(folder, **more):
    settings = {"iterations": 30, "advantage": "batch", "quiet": True, "optimizer": lambda these: torch.optim.Adam(these, lr=0.01)}
    return niwaki.train(TokenVectorEnv(Lock(), 32), more.pop("policy", policy), out=folder, **(settings | more))


def pole(folder, **more):
    settings = {"iterations": 4, "steps": 32, "gamma": 0.99, "save": 2, "quiet": True}
    return niwaki.train(gymnasium.make_vec("CartPole-v1", 4), more.pop("policy", Critic), out=folder, **(settings | more))


def rewards(run):
    return [line["batch_reward"] for line in run.curve()]


@pytest.mark.parametrize("loss", ["ppo", "tempered:0.25", "gspo", "sapo"])
def test_it_learns_a_token_task(tmp_path, loss):
    run = lock(tmp_path, loss=loss)
    assert np.mean(rewards(run)[-3:]) > 0.7 > np.mean(rewards(run)[:3])
    assert run.curve()[2]["drift"] > 0 and run.curve()[-1]["own"]["states/merged"] == 0.0
    assert "correction = \"" + loss in (tmp_path / "spec.toml").read_text()


def test_it_schedules_a_shop_and_masks_what_is_closed(tmp_path):
    env = ShopVectorEnv(16, task="flow-shop", jobs=5, machines=3, reward="makespan", pool=4)

    class Dispatcher(nn.Module):
        def __init__(self):
            super().__init__()
            self.score = nn.Linear(3, 1)

        def forward(self, seen):
            return self.score(seen["features"]).squeeze(-1)

    run = niwaki.train(env, Dispatcher, out=tmp_path, iterations=6, advantage="group", group=4, loss="tempered:0.1", quiet=True)
    # A makespan is never below the optimum, and a closed candidate would be refused by the shop.
    assert all(-3.0 < reward <= -1.0 for reward in rewards(run))


def test_continuous_actions_and_a_penalty(tmp_path):
    class Walk(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean, self.value = nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, seen):
            return torch.distributions.Normal(self.mean(seen), 0.5), self.value(seen)

    env = gymnasium.make_vec("Pendulum-v1", 2)
    run = niwaki.train(env, Walk, out=tmp_path, iterations=3, steps=16, loss="full", reference_kl=0.1, entropy=0.01, quiet=True)
    assert len(run.curve()) == 3


SCRIPT = """
import sys, gymnasium, niwaki
sys.path.insert(0, {tests!r})
from test_train import Critic
told = niwaki.settings(loss="tempered:0.1", seed=1, out="x", kill=0)
kill = told.pop("kill")
if kill:
    from niwaki.run import Run
    log = Run.log
    def dies(self, **more):
        if self.done == kill:
            import os; os._exit(9)
        return log(self, **more)
    Run.log = dies
env = gymnasium.make_vec("CartPole-v1", 4)
niwaki.train(env, Critic, iterations=9, steps=32, gamma=.99, save=2, minibatches=2, entropy=.01, anneal=True, reference_kl=.05, quiet=True, **told)
"""


def test_a_killed_run_ends_with_the_same_bytes(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT.format(tests=str(__file__).rsplit("/", 1)[0]))
    call = lambda *said: subprocess.run([sys.executable, script, *said], capture_output=True, text=True, check=False)
    assert call(f"out={tmp_path / 'whole'}").returncode == 0
    for kill in (1, 5):
        cut = tmp_path / f"cut-{kill}"
        assert call(f"out={cut}", f"kill={kill}").returncode == 9
        assert len((cut / "curve.jsonl").read_text().splitlines()) <= kill
        ended = call(f"out={cut}")
        assert ended.returncode == 0, ended.stderr
        for name in FILES:
            assert (tmp_path / "whole" / name).read_bytes() == (cut / name).read_bytes(), (kill, name)
    # Other code is refused, by the digest of the user's files.
    cut = tmp_path / "other"
    assert call(f"out={cut}", "kill=5").returncode == 9
    script.write_text(script.read_text() + "\n# changed\n")
    refused = call(f"out={cut}")
    assert refused.returncode == 1 and "the code of the script has changed" in refused.stderr.splitlines()[-1]
    unknown = call("sed=3")
    assert unknown.returncode == 1 and unknown.stderr.strip() == "mine.py: unknown setting 'sed=3'; did you mean 'seed'?"


def test_a_sweep_runs_the_script_and_names_what_failed(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT.format(tests=str(__file__).rsplit("/", 1)[0]))
    out = tmp_path / "sweep"
    sweep = [sys.executable, "-m", "niwaki.sweep", script, "--seeds", "1", "loss=ppo", "loss=tempred", "--out", out]
    shown = subprocess.run([*sweep, "--print"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(shown) == 2 and shown[1].endswith(f"loss=tempred seed=0 out={out}/loss=tempred/0")
    ended = subprocess.run(sweep, capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and (out / "loss=ppo/0/summary.json").exists()
    assert "loss=tempred/0: " in ended.stderr and "did you mean 'tempered'?" in ended.stderr
    wrong = subprocess.run([*sweep[:3], "no.py"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "no.py is not a file" in wrong.stderr


class Corridor(gymnasium.vector.VectorEnv):
    """Two lanes on which everything is known: rewards 1, 2, 3, …; lane 0 ends after two steps, lane 1 is cut after three."""

    def __init__(self):
        self.num_envs = 2
        self.single_observation_space = spaces.Box(-1, 1, (2,), np.float32)
        self.single_action_space = spaces.Discrete(2)
        self.metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}

    def reset(self, *, seed=None, options=None):
        self.at, self.over = np.zeros(2, int), np.zeros(2, bool)
        return self._seen(), {}

    def _seen(self):
        return np.stack([self.at, np.arange(2)], 1).astype(np.float32)

    def step(self, actions):
        fresh = self.over.copy()
        self.at = np.where(fresh, 0, self.at + 1)
        reward = np.where(fresh, 0.0, self.at.astype(float))
        ended, cut = ~fresh & (self.at == 2) & (np.arange(2) == 0), ~fresh & (self.at == 3) & (np.arange(2) == 1)
        self.over = ended | cut
        return self._seen(), reward, ended, cut, {}


class Says(nn.Module):
    """Values of 10 · position."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))

    def forward(self, seen):
        return self.weight.expand(len(seen), 2), 10.0 * seen[:, 0] + 0.0 * self.weight.sum()


def test_advantages_by_hand():
    lanes = loop._Lanes(Corridor(), 4, 1, "cpu")
    lanes.restart(0)
    batch = lanes.play(Says())
    # Lane 0: 1, 2, end, the reset, 1. Lane 1: 1, 2, 3, cut, the reset.
    assert batch.own.T.tolist() == [[True, True, False, True], [True, True, True, False]]
    assert sorted(row[row >= 0].tolist() for row in batch.rows) == [[0, 2], [1, 3, 5], [6]]
    judged, target = loop._judge(batch, "critic", 0.5, 0.5, False, 1)
    judged = judged.reshape(4, 2).T.tolist()
    # Lane 0, values 0, 10: δ_1 = 2 − 10 = −8 at the end, δ_0 = 1 + .5·10 − 0 = 6, A_0 = 6 + .25·(−8) = 4. After the reset the value is
    # 0 and that of where it stands 10: 1 + .5·10 = 6.
    assert judged[0] == [4.0, -8.0, 0.0, 6.0]
    # Lane 1, values 0, 10, 20, and 30 where it was cut: δ_2 = 3 + 15 − 20 = −2, δ_1 = 2 + 10 − 10 = 2, δ_0 = 6.
    # A_1 = 2 − .5 = 1.5, A_0 = 6 + .375.
    assert judged[1] == [6.375, 1.5, -2.0, 0.0]
    assert target.reshape(4, 2).T.tolist()[0][:2] == [4.0, 2.0]
    assert lanes.mean == pytest.approx((3 + 6) / 2)


def test_baselines_by_hand():
    lanes = loop._Lanes(Corridor(), None, 1, "cpu")
    lanes.restart(0)
    batch = lanes.play(Says())
    # Returns to go: 3, 2 and 6, 5, 3; means at the steps 4.5, 3.5 and 3, where one lane is left.
    assert batch.own.T.tolist() == [[True, True, False], [True, True, True]]
    judged, _ = loop._judge(batch, "batch", 1.0, 1.0, False, 1)
    assert judged.reshape(3, 2).T.tolist() == [[-1.5, -1.5, 0.0], [1.5, 1.5, 0.0]]
    judged, _ = loop._judge(batch, "group", 1.0, 1.0, False, 2)
    assert judged.reshape(3, 2).T.tolist() == [[-1.5, -1.5, 0.0], [1.5, 1.5, 0.0]]


def test_where_histories_merge_by_hand():
    # Two lanes go to state 5 by different ways with weights 2 and 1/2, a third by the first's way.
    states = digests(np.array([[0], [5], [0], [5], [0], [5]])).reshape(3, 2)
    actions = digests(np.array([1, 0, 2, 0, 1, 0])).reshape(3, 2)
    ell = np.log([[2.0, 1.0], [0.5, 1.0], [2.0, 1.0]])
    share, premium = merged(states, actions, ell, np.ones((3, 2), bool))
    # Three of six steps; all that weights spread at the second step, they spread within the state.
    assert share == 0.5 and premium == pytest.approx(1.0)
    apart = digests(np.array([[0], [5], [0], [6], [0], [5]])).reshape(3, 2)
    assert merged(apart, actions, ell, np.ones((3, 2), bool)) == (0.0, 0.0)


def test_a_process_whose_histories_merge_is_told(tmp_path, capsys):
    class Sum(TokenVectorEnv):
        """Shows how many of each token came, not their order."""

        def _observe(self):
            seen = super()._observe().reshape(self.num_envs, self.horizon, self.vocab).sum(1)
            return np.concatenate([seen, np.zeros((self.num_envs, 9), np.float32)], 1)

    env = Sum(Lock(), 32)
    run = niwaki.train(env, policy, out=tmp_path, iterations=3, advantage="batch", loss="full")
    said = capsys.readouterr().err
    assert "is not a tree as the policy sees it" in said and said.count("not a tree") == 1
    assert run.curve()[-1]["own"]["states/merged"] > 0.3 and 0 < run.curve()[-1]["own"]["states/premium"] < 1


def refused(call, kind=ValueError):
    with pytest.raises(kind) as error:
        call()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_bad_input_is_a_line(tmp_path):
    def nan(new, old, advantage, own):
        return (new * float("nan")).sum()

    assert "loss 'nan' returned nan in iteration 1" in refused(lambda: lock(tmp_path / "a", loss=nan))
    assert "loss '<lambda>' returned a tensor of shape [32, 4]" in refused(lambda: lock(tmp_path / "b", loss=lambda new, *_: new))
    assert "no gradient comes from loss" in refused(lambda: lock(tmp_path / "c", loss=lambda new, *_: new.detach().sum()))

    class Fixed(nn.Module):
        def forward(self, seen):
            return torch.zeros(len(seen), 3)

    assert "no parameter that takes a gradient" in refused(lambda: lock(tmp_path / "d", policy=Fixed))
    assert "did you mean 'group'?" in refused(lambda: lock(tmp_path / "e", advantage="grup"))
    assert "did you mean 'tempered'?" in refused(lambda: lock(tmp_path / "f", loss="tempred:0.1"))
    assert "returns no value" in refused(lambda: lock(tmp_path / "g", advantage="critic"))
    assert "needs whole episodes" in refused(lambda: lock(tmp_path / "h", steps=4))
    assert "returns a tensor of shape [32, 3, 1]" in refused(lambda: lock(tmp_path / "i", policy=lambda: nn.Sequential(policy(), nn.Unflatten(1, (3, 1)))))
    assert "make_vec" in refused(lambda: niwaki.train(gymnasium.make("CartPole-v1"), Critic, out=tmp_path / "j", iterations=1))
    same = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP})
    assert "NEXT_STEP" in refused(lambda: niwaki.train(same, Critic, out=tmp_path / "k", iterations=1))
    assert "iterations is 0" in refused(lambda: lock(tmp_path / "l", iterations=0))

    class Grows(Corridor):
        def _seen(self):
            return np.zeros((2, 2 + int(self.at.max() == 2)), np.float32)

    shape = refused(lambda: niwaki.train(Grows(), Says, out=tmp_path / "m", iterations=2, steps=8, quiet=True))
    assert shape == "env: the observation is (2, 3) at step 2, it was (2, 2)"
    task = Lock()
    task.reward = lambda tokens: float("nan")
    pays = refused(lambda: niwaki.train(TokenVectorEnv(task, 4), policy, out=tmp_path / "n", iterations=2, advantage="batch", quiet=True))
    assert "task: it pays nan for" in pays
    assert "no method reward" in refused(lambda: TokenVectorEnv(object.__new__(type("Half", (), {"vocab": len, "horizon": len}))))
    # A finished run is read, and one of another policy refused.
    first = pole(tmp_path / "o")
    assert rewards(pole(tmp_path / "o")) == rewards(first)
    assert "the folder holds spec" in refused(lambda: pole(tmp_path / "o", clip=0.1))


def test_the_spec_says_what_was_asked(tmp_path):
    run = pole(tmp_path, seed=5, reuse=2)
    text = (tmp_path / "spec.toml").read_text()
    for said in ("seed = 5", 'kind = "CartPole-v1"', "reuse = 2", "gamma = 0.99", 'optimizer = "Adam"', "code = "):
        assert said in text, text
    assert json.loads((tmp_path / "summary.json").read_text())["done"] == 4 and run.policy is not None

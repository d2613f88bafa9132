"""niwaki.gym: Gymnasium's own checkers, episodes that end at the built makespan, and a third-party trainer."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed; python/test-extras.sh runs this")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from niwaki import shop  # noqa: E402
from niwaki.gym import FlowShopEnv, FlowShopVectorEnv  # noqa: E402


def choose(mask, rng):
    return np.argmax(np.where(mask, rng.random(mask.shape), -1.0), axis=1)


class Open(gymnasium.Wrapper):
    """Takes the next open job for one that is closed, since the checker knows no masks."""

    def step(self, action):
        mask = self.env.action_masks()
        if not mask.any():
            return self.env.step(action)
        return self.env.step(int(action) if mask[action] else int(np.argmax(mask)))


def test_gymnasiums_checker_accepts_a_lane():
    check_env(Open(FlowShopEnv(jobs=4, machines=3, pool=2)), skip_render_check=True)


def test_episodes_end_at_the_makespan_of_what_was_built():
    env = FlowShopVectorEnv(16, jobs=6, machines=3, pool=5)
    rng = np.random.default_rng(0)
    numbers = rng.integers(5, size=16)
    observation, info = env.reset(seed=0, options={"instances": numbers})
    assert env.observation_space.contains(observation)
    for step in range(6):
        before = observation["placed"].copy()
        actions = choose(info["action_mask"], rng)
        observation, reward, done, cut, info = env.step(actions)
        assert (observation["placed"].sum(1) == step + 1).all() and not cut.any()
        assert (observation["placed"] - before)[np.arange(16), actions].all()
        assert done.all() == (step == 5) and (reward == 0).all() == (step < 5)
    for lane, number in enumerate(numbers):
        times = env.instances[number].times
        free = np.zeros(3, int)
        for job in env.sequence(lane):
            ready = 0
            for machine in range(3):
                ready = max(ready, free[machine]) + times[job, machine]
                free[machine] = ready
        assert info["makespan"][lane] == free[-1]
        neh = env.instances[number].solve("neh").makespan
        assert reward[lane] == pytest.approx(1 - free[-1] / neh)
    observation, reward, done, _, info = env.step(np.zeros(16, int))
    assert not done.any() and info["action_mask"].all() and not observation["front"].any() and (reward == 0).all()


def test_seeds_repeat_and_copies_are_the_callers():
    runs = []
    for _ in range(2):
        env = FlowShopVectorEnv(8, jobs=5, machines=3)
        rng = np.random.default_rng(1)
        observation, info = env.reset(seed=7)
        kept = observation["front"]
        held = kept.copy()
        for _ in range(12):
            observation, *_, info = env.step(choose(info["action_mask"] | ~info["action_mask"].any(1, keepdims=True), rng))
        np.testing.assert_array_equal(kept, held)
        runs.append(observation["front"])
    np.testing.assert_array_equal(*runs)


def test_refusals_name_the_argument():
    env = FlowShopVectorEnv(2, jobs=3, machines=2)
    env.reset(seed=0)
    env.step([1, 2])
    with pytest.raises(ValueError, match=r"actions\[0\] = 1 is not open"):
        env.step([1, 0])
    with pytest.raises(ValueError, match=r"actions\[1\] = 9 is not open"):
        env.step([0, 9])
    with pytest.raises(ValueError, match="actions has 3 values for 2 lanes"):
        env.step([0, 0, 0])
    with pytest.raises(ValueError, match="num_envs is 0"):
        FlowShopVectorEnv(0)
    with pytest.raises(ValueError, match="instances must be flow shops"):
        FlowShopVectorEnv(1, instances=[shop.Instance.job(1, [[(0, 1)]])])


def test_a_third_party_trainer_learns_on_it():
    sb3 = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed; python/test-extras.sh runs this")
    env = FlowShopEnv(jobs=5, machines=3, pool=4)
    model = sb3.MaskablePPO("MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=2, seed=0, device="cpu")
    model.learn(192)
    assert model.num_timesteps == 192
    observation, _ = env.reset(seed=1)
    for _ in range(5):
        action, _ = model.predict(observation, action_masks=env.action_masks(), deterministic=True)
        observation, reward, done, _, info = env.step(action)
    assert done and info["makespan"] > 0

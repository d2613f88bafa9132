"""niwaki.gym: Gymnasium's own checkers, episodes that end at what was built, and a third-party trainer."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed; python/test-extras.sh runs this")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from niwaki import shop  # noqa: E402
from niwaki.gym import ShopEnv, ShopVectorEnv  # noqa: E402

TASKS = {
    "flow-shop": {"jobs": 5, "machines": 3},
    "job-shop": {"jobs": 3, "machines": 3},
    "job-shop, active": {"task": "job-shop", "order": "active", "jobs": 3, "machines": 3},
    "job-shop, machine": {"task": "job-shop", "order": "machine", "jobs": 3, "machines": 3},
    "job-shop, list": {"task": "job-shop", "order": "list", "jobs": 3, "machines": 3},
    "lags": {"jobs": 5},
    "lags, hidden": {"task": "lags", "jobs": 5, "hidden": True},
    "single-machine": {"jobs": 6},
    "two-orders": {"both": True, "slack": 3},
}


def settings(name):
    return {"task": name, "pool": 4} | TASKS[name]


def choose(mask, rng):
    return np.argmax(np.where(mask, rng.random(mask.shape), -1.0), axis=1)


class Open(gymnasium.Wrapper):
    """Takes the next open candidate for one that is closed, since the checker knows no masks."""

    def step(self, action):
        mask = self.env.action_masks()
        if not mask.any():
            return self.env.step(action)
        return self.env.step(int(action) if mask[action] else int(np.argmax(mask)))


@pytest.mark.parametrize("name", TASKS)
def test_gymnasiums_checker_accepts_a_lane(name):
    check_env(Open(ShopEnv(**settings(name))), skip_render_check=True)


@pytest.mark.parametrize("name", TASKS)
def test_episodes_end_at_a_schedule_that_the_checker_accepts(name):
    # One machine ends at the same time in every order.
    reward = "due-dates" if name == "single-machine" else "makespan"
    env = ShopVectorEnv(16, **settings(name), reward=reward)
    rng = np.random.default_rng(0)
    numbers = rng.integers(4, size=16)
    observation, info = env.reset(seed=0, options={"instances": numbers})
    assert env.observation_space.contains(observation)
    for step in range(env.horizon):
        actions = choose(info["action_mask"], rng)
        observation, reward, done, cut, info = env.step(actions)
        assert env.observation_space.contains(observation) and not cut.any()
        assert not observation["open"][np.arange(16), actions].any()
        assert done.all() == (step == env.horizon - 1) and ((reward == 0).all() or step == env.horizon - 1)
    assert not info["action_mask"].any()
    for lane, number in enumerate(numbers):
        found = env.instances[number].verify(env.schedule(lane))
        assert (found.makespan, found.late) == (info["makespan"][lane], info["late"][lane])
        paid = float(found.late == 0) if name == "single-machine" else -found.makespan / env.optima[number]
        assert reward[lane] == pytest.approx(paid)
        best = env.instances[number].solve()
        assert best.objective != "makespan" or (best.proven and best.makespan == env.optima[number])
    observation, reward, done, _, info = env.step(np.zeros(16, int))
    assert not done.any() and info["action_mask"].any(1).all() and (reward == 0).all() and not info["makespan"].any()


def test_what_a_flow_shop_shows():
    # Times of two jobs on two machines; the longest is 4, the busiest machine has 6 to do (as in the task's own law).
    env = ShopVectorEnv(1, instances=[shop.Instance.flow([[3, 2], [1, 4]])], reward="deadline", deadline=1.2)
    observation, _ = env.reset()
    np.testing.assert_array_equal(observation["features"][0], [[0.75, 0.5], [0.25, 1.0]])
    observation, *_ = env.step([0])
    np.testing.assert_allclose(observation["context"][0], [3 / 6, 5 / 6, 0.0, 2 / 4])
    np.testing.assert_array_equal(observation["open"][0], [0, 1])
    # Job 0 first ends at 9, job 1 first at 7, which is the optimum; 1.2 · 7 = 8.4.
    _, reward, *_, info = env.step([1])
    assert (reward[0], info["makespan"][0], env.optima[0]) == (0.0, 9, 7)
    env.reset()
    env.step([1])
    assert env.step([0])[1][0] == 1.0


def test_orders_of_job_shops_differ():
    found = {}
    for order in ("machine", "non-delay", "active", "list"):
        env = ShopVectorEnv(256, task="job-shop", order=order, jobs=4, machines=3, pool=1)
        _, info = env.reset(seed=1)
        rng, widths = np.random.default_rng(2), []
        for _ in range(env.horizon):
            widths.append(info["action_mask"].sum())
            *_, info = env.step(choose(info["action_mask"], rng))
        found[order] = sum(widths)
    # A list leaves every job open; an active order at least what a non-delay one does.
    assert found["list"] == max(found.values()) and found["active"] >= found["non-delay"]
    assert len(set(found.values())) > 2


def test_due_dates_pay_where_jobs_have_them():
    env = ShopVectorEnv(64, task="single-machine", jobs=5, pool=3)
    rng, (_, info) = np.random.default_rng(0), env.reset(seed=0)
    for _ in range(env.horizon):
        _, reward, _, _, info = env.step(choose(info["action_mask"], rng))
    np.testing.assert_array_equal(reward, info["late"] == 0)
    assert 0 < reward.sum() < 64


def test_seeds_repeat_and_copies_are_the_callers():
    runs = []
    for _ in range(2):
        env = ShopVectorEnv(8, jobs=5, machines=3)
        rng = np.random.default_rng(1)
        observation, info = env.reset(seed=7)
        kept = observation["context"]
        held = kept.copy()
        for _ in range(12):
            observation, *_, info = env.step(choose(info["action_mask"] | ~info["action_mask"].any(1, keepdims=True), rng))
        np.testing.assert_array_equal(kept, held)
        runs.append(observation["features"])
    np.testing.assert_array_equal(*runs)


def test_refusals_name_the_argument():
    env = ShopVectorEnv(2, jobs=3, machines=2)
    env.reset(seed=0)
    env.step([1, 2])
    flow, job = shop.Instance.flow([[1, 2], [3, 4]]), shop.Instance.job(2, [[(0, 1), (1, 2)], [(1, 3), (0, 4)]])
    with pytest.raises(ValueError, match=r"actions\[0\] = 1 is not open"):
        env.step([1, 0])
    with pytest.raises(ValueError, match=r"actions\[1\] = 9 is not open"):
        env.step([0, 9])
    for wrong, sentence in (
        (lambda: env.step([0, 0, 0]), "actions has 3 values for 2 lanes"),
        (lambda: env.step([0.5, 1.0]), r"actions has shape \(2,\) and type float64"),
        (lambda: env.step([[0], [1]]), r"actions has shape \(2, 1\)"),
        (lambda: env.reset(options={"instances": [0]}), "instances has 1 values for 2 lanes"),
        (lambda: env.reset(options={"instances": [0, 99]}), "instances names 99 of a pool of 64"),
        (lambda: env.reset(options={"instances": [0, -1]}), "instances holds -1"),
        (lambda: env.reset(options={"instances": [0, 2**40]}), "instances holds 1099511627776"),
        (lambda: env.schedule(2), "lane is 2; there are 2"),
        (lambda: ShopVectorEnv(0), "num_envs is 0"),
        (lambda: ShopVectorEnv(1.5), "num_envs is 1.5"),
        (lambda: ShopVectorEnv(1, pool=0), "pool is 0"),
        (lambda: ShopVectorEnv(1, task="flow-shp"), "task: no task is called 'flow-shp'; did you mean 'flow-shop'"),
        (lambda: ShopVectorEnv(1, task="choice"), "task: 'choice' is not a shop"),
        (lambda: ShopVectorEnv(1, task="job-shop", order="actve"), "order: no order is called 'actve'"),
        (lambda: ShopVectorEnv(1, order="active"), "order=.*flow-shop"),
        (lambda: ShopVectorEnv(1, deadline=0.5), "deadline: deadline 0.5"),
        (lambda: ShopVectorEnv(1, reward="late"), "reward: 'late'"),
        (lambda: ShopVectorEnv(1, patience=-1.0), "patience: -1"),
        (lambda: ShopVectorEnv(1, jobs=1), "jobs of at least 2"),
        (lambda: ShopVectorEnv(1, instances=[]), "instances must be"),
        (lambda: ShopVectorEnv(1, instances=[flow, flow], jobs=2), "jobs is that of the instances"),
        (lambda: ShopVectorEnv(1, instances=[flow, job]), r"instances\[1\]: this is a job shop"),
        (lambda: ShopVectorEnv(1, instances=[flow, shop.Instance.flow([[1, 2]])]), "instances: .*instance 1 has 1 jobs"),
    ):
        with pytest.raises(ValueError, match=sentence):
            wrong()


@pytest.mark.parametrize("name", ["flow-shop", "job-shop, active", "lags"])
def test_a_third_party_trainer_learns_on_it(name):
    sb3 = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed; python/test-extras.sh runs this")
    env = ShopEnv(**settings(name))
    model = sb3.MaskablePPO("MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=2, seed=0, device="cpu")
    model.learn(192)
    assert model.num_timesteps == 192
    observation, _ = env.reset(seed=1)
    done = False
    while not done:
        action, _ = model.predict(observation, action_masks=env.action_masks(), deterministic=True)
        observation, reward, done, _, info = env.step(action)
    assert info["makespan"] == env.schedule().makespan > 0

"""Tallies: shares of a batch that add up to the whole, as bytes, files and pickles; and a monitor of several ranks."""

import json
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from niwaki.advise import Advisor, Monitor, advise


def batch(seed=0, lanes=96, steps=12, scale=0.2):
    rng = np.random.default_rng(seed)
    old = -rng.exponential(size=(lanes, steps)) - 0.5
    new = np.minimum(old + rng.normal(scale=scale, size=old.shape), 0.0)
    own = np.arange(steps) < rng.integers(1, steps + 1, size=lanes)[:, None]
    return {"logprobs": new, "old_logprobs": old, "advantages": rng.normal(size=lanes), "mask": own, "group": np.arange(lanes) // 8}


def rows(values, kept):
    return {name: value[kept] for name, value in values.items()}


def whole_of(values, **settings):
    advisor = Advisor(**settings)
    advisor.update(**values)
    return advisor


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_shares_add_up_to_the_whole_in_any_order(ranks):
    values = batch()
    whole = whole_of(values)
    rng = np.random.default_rng(ranks)
    owner = rng.integers(ranks, size=96)
    shares = [Advisor() for _ in range(ranks)]
    for rank, share in enumerate(shares):
        # Completions of one prompt lie on several ranks, and each adds its own one by one.
        for lane in np.flatnonzero(owner == rank):
            share.update(**rows(values, [lane]))
    merged = Advisor()
    for rank in rng.permutation(ranks):
        merged.merge(shares[rank].tally())
    assert merged.tally() == whole.tally() and merged.advice().to_dict() == whole.advice().to_dict()
    again = Advisor.from_tally(merged.tally())
    assert pickle.loads(pickle.dumps(again)).tally() == whole.tally()
    again.update(**batch(1), iteration=1)
    whole.update(**batch(1), iteration=1)
    assert again.tally() == whole.tally()


def test_a_share_says_that_it_is_one():
    values = batch()
    share = whole_of(rows(values, slice(0, 48)), share=(0, 2))
    assert share.advice().says.startswith("of 1 of 2 ranks, a share of the batch: ") and share.advice().facts["batch"] == 96
    share.merge(whole_of(rows(values, slice(48, 96)), share=(1, 2)))
    found = share.advice()
    assert not found.says.startswith("of ") and found.facts["ranks"] == {"seen": [0, 1], "world": 2}
    assert found.numbers == whole_of(values).advice().numbers
    with pytest.raises(ValueError, match="rank 1 of iteration 0 is in both; its trajectories would count twice"):
        share.merge(whole_of(values, share=(1, 2)))


def test_files_of_ranks_are_read_as_one_run(tmp_path):
    values = batch()
    for rank in range(3):
        share = whole_of(rows(values, slice(rank, None, 3)), share=(rank, 3))
        (tmp_path / f"rank{rank}.tally").write_bytes(share.tally())
    files = sorted(tmp_path.iterdir())
    assert advise(files).numbers == whole_of(values).advice().numbers
    assert advise(files, batch=16).facts["batch"] == 16
    with pytest.raises(ValueError, match="clip: .*rank0.tally was measured under its own settings; leave clip out"):
        advise(files, clip=0.3)
    files[1].write_bytes(files[1].read_bytes()[:-1])
    with pytest.raises(ValueError, match="rank1.tally: a damaged tally: it ends too early"):
        advise(files)


def test_what_is_not_a_tally_of_this_run_is_refused():
    own = whole_of(batch())
    before = own.tally()
    for other, words in (
        (b"", "tally: not a tally"),
        (before[:-1], "tally: a damaged tally: it ends too early"),
        (before[:40] + bytes([before[40] ^ 1]) + before[41:], "tally: a damaged tally: its checksum is another"),
        (before[:12] + b"\x09" + before[13:], "tally: a tally of version 9, and this program reads version 2"),
        (whole_of(batch(), clip=(0.2, 0.28)), "tally: clip is"),
        (whole_of({**batch(), "advantages": None, "rewards": np.arange(96.0)}), None),
    ):
        if words is None:
            continue
        with pytest.raises(ValueError, match=words):
            own.merge(other)
    with pytest.raises(TypeError, match="tally is str; pass the bytes"):
        own.merge("rank0.tally")
    for share, words in (((2, 2), "a rank lies in"), ((-1, 2), "a rank lies in"), ("ab", "pass \\(rank, ranks\\)"), (3, "pass")):
        with pytest.raises((TypeError, ValueError), match=words):
            Advisor(share=share)
    assert own.tally() == before
    # A prompt's mean reward is neither rank's.
    rewards = {name: value for name, value in batch().items() if name != "advantages"} | {"rewards": np.arange(96.0)}
    left, right = (whole_of(rows(rewards, slice(start, None, 2))) for start in (0, 1))
    with pytest.raises(ValueError, match="made from rewards of one share alone; give advantages"):
        left.merge(right)


def test_threads_and_merges_at_once():
    one, other = whole_of(batch(), share=None), whole_of(batch(1))
    failures = []

    def work(mine, theirs):
        try:
            for _ in range(5):
                mine.merge(theirs)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in ((one, other), (other, one), (one, one), (other, other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_a_monitor_of_ranks_shows_the_whole_batch():
    values = [batch(seed, scale=scale) for seed, scale in enumerate((0.4, 0.2, 0.05))]
    tallies = [None, None]
    barrier = threading.Barrier(2)

    def gather(rank):
        def gathered(tally):
            tallies[rank] = tally
            barrier.wait()
            found = list(tallies)
            barrier.wait()
            return found

        return gathered

    monitors = [Monitor(share=(rank, 2), gather=gather(rank), batch=32, alarms=["drift<0.1", "ess>0.2"]) for rank in (0, 1)]
    logged, rung = [[], []], [[], []]

    def train(rank):
        for iteration, one in enumerate(values):
            # The second rank has nothing in the last batch but one.
            kept = slice(rank, None, 2) if iteration != 1 else slice(0, None if rank == 0 else 0)
            for part in np.array_split(np.arange(96)[kept], 2):
                if len(part):
                    monitors[rank].update(**rows(one, part), iteration=iteration)
            assert monitors[rank].close() is not None
            logged[rank].append(monitors[rank].to_log())
            rung[rank].append(monitors[rank].alarm())

    threads = [threading.Thread(target=train, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert logged[0] == logged[1] and rung[0] == rung[1] and len(logged[0]) == 3
    for iteration, one in enumerate(values):
        alone = Advisor(batch=32)
        alone.update(**one, iteration=iteration)
        expected = alone.advice()
        for name in ("drift", "bias_to_noise", "ess", "kl_k3", "clip_fraction"):
            assert logged[0][iteration][f"niwaki/{name}"] == expected[name]
        assert logged[0][iteration]["niwaki/drift_low"] == expected.numbers["drift"].low
        assert len(logged[0][iteration]) <= 12
    # Each alarm once.
    assert [len(told) for told in rung[0]] in ([1, 0, 1], [2, 0, 0], [1, 1, 0], [0, 1, 1])
    assert sum(rung[0], []) and any(text.startswith("drift < 0.1: ") for text in sum(rung[0], []))
    whole = Advisor(batch=32)
    for iteration, one in enumerate(values):
        whole.update(**one, iteration=iteration)
    assert monitors[1].advice.numbers == whole.advice().numbers
    assert monitors[0].advice.facts["ranks"] == {"seen": [0, 1], "world": 2}


def test_the_verdict_is_of_the_last_iterations_and_says_what_it_was():
    monitor = Monitor(recent=2)
    told = []
    rng = np.random.default_rng(5)
    for iteration in range(6):
        scale = 0.9 if iteration < 3 else 0.001
        old = -rng.exponential(size=(256, 8)) - 0.5
        monitor.update(np.minimum(old + rng.normal(scale=scale, size=old.shape), 0.0), old, rng.normal(size=256), iteration=iteration)
        told.append(monitor.changed())
    assert told[0] and monitor.recent.action == "correction-wasted"
    last = [text for text in told if text][-1]
    assert "(before: " in last and sum(text is not None for text in told) <= 3
    # The whole run still holds what drifted long ago.
    assert monitor.advice["drift"] > 10 * monitor.recent["drift"]


def test_smoothed_intervals_cover_the_mean_of_a_steady_run():
    rng = np.random.default_rng(7)
    inside, smooth_inside, runs = 0, 0, 60
    for _ in range(runs):
        monitor = Monitor()
        for iteration in range(6):
            old = np.full((128, 4), -3.0)
            monitor.update(old + rng.normal(scale=0.1, size=old.shape), old, rng.normal(size=128), iteration=iteration)
        logged = monitor.to_log()
        # σ²T = 4 · 0.01.
        inside += logged["niwaki/drift_low"] <= 0.04 <= logged["niwaki/drift_high"]
        smooth_inside += logged["niwaki/drift_smooth_low"] <= 0.04 <= logged["niwaki/drift_smooth_high"]
    # 95% of 60 is 57; three standard deviations of 1.7 below.
    assert inside >= 52 and smooth_inside >= 52, (inside, smooth_inside)


GLOO = """
import sys, json
import numpy as np, torch.distributed as dist
from niwaki.advise import Advisor, Monitor
from niwaki.torch import gather_tallies
sys.path.insert(0, sys.argv[3])
from test_tallies import batch, rows
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
values = batch()
monitor = Monitor(share=(rank, 2), gather=gather_tallies)
if rank == 0:
    monitor.update(**rows(values, slice(0, None, 2)))
else:
    for lane in range(1, 96, 2):
        monitor.update(**rows(values, [lane]))
monitor.close()
whole = Advisor()
whole.update(**values)
print(json.dumps([monitor.to_log(), monitor.advice["drift"], whole.advice()["drift"], monitor.advice.facts["ranks"]["seen"]]))
dist.destroy_process_group()
"""


def test_two_processes_gather_over_gloo(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
    command = [sys.executable, "-c", GLOO]
    told = [str(tmp_path / "store"), str(__import__("pathlib").Path(__file__).parent)]
    ranks = [subprocess.Popen([*command, str(rank), *told], stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
    first, second = (json.loads(rank.communicate(timeout=120)[0]) for rank in ranks)
    assert first == second and first[1] == first[2] and first[3] == [0, 1] and first[0]["niwaki/drift"] == first[2]

"""What Python does to objects: forks, pickles, interrupts, 16 bits and columns under two names."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from niwaki import correction, oracle, shop
from niwaki.advise import Advisor, NarrowWarning, advise


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_threads_of_its_own():
    before = oracle.measure(losses=["ppo", "full"], seeds=2)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            again = oracle.measure(losses=["ppo", "full"], seeds=2)
            code = 0 if again.to_dict() == before.to_dict() else 2
        finally:
            os._exit(code)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


@pytest.mark.parametrize("task", sorted(shop.tasks()))
def test_instances_pickle(task):
    instance = shop.generate(task, seed=3)
    again = pickle.loads(pickle.dumps(instance))
    assert again.to_text() == instance.to_text() and (again.name, again.kind) == (instance.name, instance.kind)


def test_an_advisor_pickles_and_is_copied():
    advisor = Advisor(clip=(0.2, 0.28), share=(1, 4))
    advisor.update([[-1.0, -2.0], [-1.5, -1.0]], [[-1.1, -2.0], [-1.5, -1.2]], [1.0, -1.0], group=["a", "b"])
    again = pickle.loads(pickle.dumps(advisor))
    assert again.tally() == advisor.tally() and again.advice().to_dict() == advisor.advice().to_dict()


INTERRUPTED = """
import numpy as np, time, sys
from niwaki.correction import evaluate
steps = 1 << 11
old = np.full((1 << 12, steps), -1.0)
print("ready", flush=True)
try:
    for _ in range(100):
        evaluate(old, old, np.ones(1 << 12), correction="adaptive:0.9")
except KeyboardInterrupt:
    print("interrupted", flush=True)
    import os
    os._exit(7)
"""


def test_an_interrupt_is_answered_within_a_second():
    running = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "ready\n"
    time.sleep(1.0)
    sent = time.monotonic()
    running.send_signal(signal.SIGINT)
    assert running.stdout.readline() == "interrupted\n"
    taken = time.monotonic() - sent
    assert running.wait(30) == 7 and taken < 1.0, taken


def test_sixteen_bits_are_measured_as_they_are_and_told():
    rng = np.random.default_rng(0)
    old = -rng.exponential(size=(64, 8)) - 0.5
    new = np.minimum(old + rng.normal(scale=0.2, size=old.shape), 0.0)
    half, wide = Advisor(), Advisor()
    with pytest.warns(NarrowWarning, match="logprobs is float16: its rounding alone looks like drift"):
        half.update(new.astype(np.float16), old.astype(np.float16), np.ones(64))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide.update(new.astype(np.float16).astype(float), old.astype(np.float16).astype(float), np.ones(64))
    assert half.tally() == wide.tally()
    with pytest.raises(TypeError, match="logprobs is float16"):
        correction.evaluate(new.astype(np.float16), old, np.ones(64))


def test_bfloat16_is_measured_as_it_is():
    torch = pytest.importorskip("torch", reason="torch is not installed; python/test-extras.sh runs this")
    old = -torch.rand(16, 8) - 0.5
    new = (old + 0.1 * torch.randn(16, 8)).clamp(max=0.0)
    narrow, wide = Advisor(), Advisor()
    with pytest.warns(NarrowWarning, match="bfloat16"):
        narrow.update(new.bfloat16(), old.bfloat16(), torch.ones(16).bfloat16())
    wide.update(new.bfloat16().float(), old.bfloat16().float(), torch.ones(16))
    assert narrow.tally() == wide.tally()


def test_two_names_of_one_field_are_refused(tmp_path):
    line = '{"old_log_prob": [-1.0], "new_log_prob": [-1.1], "advantage": 1.0, "advantages": 2.0}\n'
    (tmp_path / "two.jsonl").write_text(line)
    with pytest.raises(ValueError, match="advantages? is a second advantage; keep one of the two"):
        advise(tmp_path / "two.jsonl")
    assert advise(tmp_path / "two.jsonl", names={"advantage": "advantages"}).facts["unread"] == ["advantage"]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed; python/test-extras.sh runs this")
    frame = pandas.DataFrame({"logprobs": [[-1.0]], "old_logprobs": [[-1.0]], "advantage": [1.0], "advantages": [2.0]})
    with pytest.raises(ValueError, match="data has the columns advantages and advantage"):
        advise(frame)


def test_arrays_that_are_none_name_the_argument():
    sound = {"logprobs": np.full((2, 3), -1.0), "old_logprobs": np.full((2, 3), -1.0), "advantages": np.ones(2)}
    for name, value in (
        ("logprobs", np.float64(-1.0)),
        ("logprobs", np.array([[None]])),
        ("advantages", np.float64(1.0)),
        ("old_logprobs", np.full((2, 3), np.nan)),
        ("mask", np.array(True)),
        ("weights", np.array([np.nan, 1.0])),
    ):
        with pytest.raises((TypeError, ValueError), match=name.rstrip("s")):
            Advisor().update(**sound | {name: value})
    long = np.full((1, 100_000), -1.0)
    advisor = Advisor()
    advisor.update(long, long - 0.001, [1.0])
    advisor.update(long, long, [-1.0])
    assert advisor.advice().facts["longest"] == 100_000


def test_one_advisor_on_four_threads():
    advisor, failures = Advisor(), []
    old = np.full((8, 4), -1.0)

    def work(number):
        try:
            for step in range(20):
                advisor.update(old, old - 0.01 * number, np.ones(8), iteration=step)
                advisor.advice()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and advisor.advice().facts["trajectories"] == 640

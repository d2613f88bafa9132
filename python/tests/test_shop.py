"""niwaki.shop: known optima, the checker, files, charts; long searches end on Ctrl-C and leave other threads running."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from niwaki import shop

LA01 = Path(__file__).resolve().parents[2] / "data" / "jsp" / "la01.txt"


def test_a_benchmark_instance_to_its_known_optimum():
    instance = shop.read(LA01)
    assert (instance.kind, instance.jobs, instance.machines, instance.operations) == ("job shop", 10, 5, 50)
    found = instance.solve(time=20)
    # la01's optimum is 666 (data/known.csv).
    assert (found.makespan, found.bound, found.proven, found.gap) == (666, 666, True, 0.0)
    assert instance.verify(found.schedule).makespan == 666
    assert "<svg" in found._repr_svg_() and "la01" in found._repr_svg_()


def test_what_no_chart_can_show_is_refused():
    for operation, machines, said in [
        ((0, 0, 2**32 - 1, 0, 5), 3, "operation 0 is on machine 4294967295"),
        ((0, 0, 0, 9, 5), 3, "operation 0 ends at 5, before it starts at 9"),
        ((0, 0, 0, 0, 5), 10**9, "machines is 1000000000"),
    ]:
        with pytest.raises(ValueError, match=said):
            shop.Schedule((shop.Placed(*operation),), machines).to_svg()
    assert "<svg" in shop.Schedule(((0, 0, 2, 0, 5),), 3).to_svg()


def test_flow_shops_from_arrays():
    # Johnson by hand: jobs (3, 2) and (1, 4): job 1 first: ends 5, then job 0: 4 → max(4, 5) + 2 = 7.
    instance = shop.Instance.flow([[3, 2], [1, 4]])
    assert instance.solve().makespan == 7 and instance.solve("neh").makespan == 7
    np.testing.assert_array_equal(instance.times, [[3, 2], [1, 4]])
    again = shop.Instance.job(2, [[(0, 3), (1, 2)], [(0, 1), (1, 4)]])
    assert again.times is None and again.solve().makespan == 7


def test_a_single_machine_is_judged_by_its_late_jobs():
    instance = shop.generate("single", jobs=6, seed=2)
    by_date, best = instance.solve("jackson"), instance.solve()
    assert best.objective == by_date.objective == "late jobs" and best.proven
    assert by_date.value >= best.value == best.bound == instance.verify(best.schedule).late


def test_drawn_instances_are_a_function_of_their_seed():
    first, second = (shop.generate("hard-flow", jobs=6, machines=3, seed=3, index=1) for _ in range(2))
    assert first.to_text() == second.to_text() != shop.generate("hard-flow", jobs=6, machines=3, seed=4).to_text()
    assert "hard-flow" in shop.tasks()


def test_the_checker_names_what_is_broken():
    instance = shop.Instance.flow([[3, 2], [1, 4]])
    rows = [list(placed) for placed in instance.solve().schedule.operations]
    rows[0][3] += 1
    with pytest.raises(ValueError, match="job"):
        instance.verify([tuple(row) for row in rows])


def test_refusals_name_the_argument():
    refused = [
        (lambda: shop.read("no-such.txt"), OSError, "no-such.txt"),
        (lambda: shop.generate("hard-flo"), ValueError, "hard-flo"),
        (lambda: shop.Instance.flow([1, 2]), ValueError, "times has shape"),
        (lambda: shop.Instance.flow([[0.5]]), ValueError, "times has shape"),
        (lambda: shop.Instance.flow([[1]]).solve("best"), ValueError, "method: expected exact, neh"),
        (lambda: shop.Instance.flow([[1]]).solve(time=-1), ValueError, "time is -1"),
        (lambda: shop.Instance.job(1, [[(0, 1)]]).solve("neh"), ValueError, "neh"),
    ]
    for call, kind, word in refused:
        with pytest.raises(kind, match=word):
            call()


HARD = "from niwaki.shop import generate; i = generate('taillard-job', jobs=30, machines=20, seed=1); print('on', flush=True); i.solve(time=60)"


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as on Unix")
def test_ctrl_c_ends_a_search():
    child = subprocess.Popen([sys.executable, "-c", HARD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "on\n"
    time.sleep(0.5)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    assert "KeyboardInterrupt" in said and time.monotonic() - began < 20


def test_other_threads_run_while_a_search_does():
    counted = 0
    over = threading.Event()

    def count():
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    shop.generate("taillard-job", jobs=15, machines=15, seed=1).solve(time=0.5)
    over.set()
    thread.join()
    assert counted > 5

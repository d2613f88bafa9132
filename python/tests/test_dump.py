"""Dumps as Python writes them: what pyarrow and the measurements read, their size, and what is refused."""

import numpy as np
import pytest
from niwaki.advise import Advisor, Dump, advise


def batches(iterations=3, lanes=64, steps=200):
    rng = np.random.default_rng(1)
    for iteration in range(iterations):
        old = np.float32(-rng.exponential(size=(lanes, steps)) * rng.choice([0.02, 2.0], size=(lanes, steps)))
        new = np.minimum(old + np.float32(rng.normal(scale=0.03, size=old.shape)), 0)
        mask = np.arange(steps) < rng.integers(1, steps, size=lanes)[:, None]
        given = {"mask": mask, "behaviour_logprobs": np.minimum(old + np.float32(rng.normal(scale=0.01, size=old.shape)), 0)}
        yield iteration, (new, old, rng.normal(size=lanes)), given | {"group": [f"prompt {lane // 8}" for lane in range(lanes)]}


def write(folder, **settings):
    whole = Advisor()
    with Dump(folder, **settings) as dump:
        for iteration, arrays, given in batches():
            dump.update(*arrays, **given, iteration=iteration)
            whole.update(*arrays, **given, iteration=iteration)
    return dump, whole.advice()


def test_a_dump_says_what_the_batches_say(tmp_path):
    dump, live = write(tmp_path)
    found = advise(tmp_path)
    assert found.facts["trajectories"] == 192 and found.facts["thinned"] == 0 and found.facts["steps"] == dump.tokens == dump.kept
    for name, number in live.numbers.items():
        for one, other in ((number.value, found.numbers[name].value), (number.low, found.numbers[name].low)):
            # Log-probs are rounded to a millionth. Folds follow from the groups, so that intervals are the same too.
            assert one == other or np.isnan(one) or one == pytest.approx(other, rel=1e-3, abs=1e-6), name
    assert dump.bytes == sum(file.stat().st_size for file in tmp_path.iterdir())
    # Three policies that differ by noise, which no coding makes smaller than its bits.
    assert dump.bytes / dump.tokens <= 10.5


def test_pyarrow_reads_it(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    write(tmp_path)
    _, (new, old, advantages), given = next(iter(batches()))
    table = parquet.read_table(tmp_path / "dump-000000.parquet")
    assert table.column_names == ["iteration", "group", "old_log_prob", "new_log_prob", "behaviour_log_prob", "advantage"]
    for name, values in {"old_log_prob": old, "new_log_prob": new, "behaviour_log_prob": given["behaviour_logprobs"]}.items():
        for row, (cells, own) in enumerate(zip(values, given["mask"])):
            np.testing.assert_allclose(table[name][row].as_py(), cells[own], rtol=2e-7, atol=5e-7)
    np.testing.assert_array_equal(table["advantage"].to_numpy(), advantages)
    groups = table["group"].to_pylist()
    assert len(set(groups)) == 8 and groups[0] == groups[7] != groups[8]


def test_a_budget_thins_by_whole_groups_and_says_so(tmp_path):
    dump, live = write(tmp_path / "thin", budget=2000)
    assert dump.kept < 0.6 * dump.tokens
    found = advise(tmp_path / "thin")
    assert found.facts["trajectories"] == 192 and found.facts["thinned"] + found.facts["lanes"] == 192
    assert found.facts["batch"] == live.facts["batch"] == 64 and "thinned: the steps of " in found.text
    # Of 24 groups in three iterations, whole ones.
    assert found.facts["lanes"] % 8 == 0


def test_ranks_write_files_of_their_own(tmp_path):
    for rank in (0, 1):
        with Dump(tmp_path, rank=rank) as dump:
            for iteration, (new, old, advantages), given in batches():
                own = {name: values[rank::2] for name, values in given.items()}
                dump.update(new[rank::2], old[rank::2], advantages[rank::2], **own, iteration=iteration)
    assert len(list(tmp_path.iterdir())) == 6
    _, live = write(tmp_path / "whole")
    found = advise([file for file in tmp_path.iterdir() if file.is_file()])
    whole = advise(tmp_path / "whole")
    assert found.facts == whole.facts and found.facts["trajectories"] == 192
    for name, number in whole.numbers.items():
        assert number.value == found.numbers[name].value or np.isnan(number.value), name


def test_iterations_to_come_are_forgotten(tmp_path):
    dump, _ = write(tmp_path)
    dump.forget(1)
    assert [file.name for file in tmp_path.iterdir()] == ["dump-000000.parquet"]
    assert dump.close() is None


def test_what_is_wrong_is_refused_by_name(tmp_path):
    for given, said in (({"budget": 0}, "budget is 0; give at least 1"), ({"rank": -1}, "rank is -1; give at least 0")):
        with pytest.raises(ValueError, match=said):
            Dump(tmp_path, **given)
    dump = Dump(tmp_path)
    with pytest.raises(ValueError, match="old_logprobs"):
        dump.update([[-1.0]], [[0.5]], [1.0])
    assert dump.close() is None and not list(tmp_path.iterdir())
    dump.update([[-1.0]], [[-1.5]], [1.0], behaviour_logprobs=[[-1.0]])
    with pytest.raises(ValueError, match="behaviour_log"):
        dump.update([[-1.0]], [[-1.5]], [1.0])
    dump.close()
    file = tmp_path / "dump-000000.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ValueError, match="not a whole parquet file"):
        advise(tmp_path)

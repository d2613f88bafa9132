"""studies/registered/batch.py: which points go on, and in which units."""

import csv
import importlib.util
import math
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "studies" / "registered"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the design lies in the repository")


@pytest.fixture(scope="module")
def batch():
    found = importlib.util.spec_from_file_location("batch", FOLDER / "batch.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def ran(batch, runs, round_, row, seeds=None):
    """Endpoints of every run of a round: row(arm, shop, point, seed) gives those of a run."""
    first = batch.ROUNDS[round_][0]
    for name, arms, shops, points in batch.studies(round_, batch.entered(round_, runs)):
        folder = runs / f"registered-batch-{round_}-{name}"
        folder.mkdir()
        with open(folder / "endpoints.csv", "w", newline="") as file:
            lines = csv.DictWriter(file, ["arm", "cell", "seed", "greedy-auc", "greedy-final", "dose:50", "first-drift"])
            lines.writeheader()
            for shop, count in shops.items():
                cells = dict.fromkeys(batch.cell(shop, point) for point in points)
                for arm in arms:
                    for cell in cells:
                        for seed in range(first, first + (seeds or count)):
                            given = {"greedy-auc": 0.5, "greedy-final": 0.5, "dose:50": 1.0, "first-drift": 1.0} | row(arm, shop, cell, seed)
                            lines.writerow({"arm": arm, "cell": f"shop={shop},{cell}", "seed": seed} | given)


def test_a_mean_and_its_wins_imply_a_spread(batch):
    # 14 of 16 ahead: Φ⁻¹(14.5 / 17) = Φ⁻¹(.85294) = 1.0491; .087 / 1.0491 = .0829.
    assert batch.implied([(0.087, 14, 16)]) == pytest.approx(0.0829, abs=1e-4)
    # As many wins as losses say nothing, nor does a mean that points the other way.
    assert batch.implied([(0.040, 3, 6)]) is None and batch.implied([(0.006, 2, 6)]) is None
    # 4 of 6: Φ⁻¹(4.5 / 7) = .3661, so .2731; 6 of 6: Φ⁻¹(6.5 / 7) = 1.4652, so .2484; their root mean square is .2611.
    assert batch.spread("job-1.10") == pytest.approx(0.2611, abs=2e-4)
    # 0 of 6: .110 / 1.4652 = .0751. At 1.15 no row says anything, so all three of the block stand in: √((.2731² + .2484² + .0751²) / 3) = .2175.
    assert batch.spread("job-1.15") == pytest.approx(0.2175, abs=2e-4)
    assert batch.spread("J50-1.03") == batch.spread("hard-1.03")


def test_standard_errors_of_prints(batch):
    # A lead: .2611 / √6 = .1066.
    assert math.sqrt(batch.printed_variance("lead", ["job-1.10"], -0.264, 6)) == pytest.approx(0.1066, abs=1e-4)
    # A final: .2611² / 2 / 6 + 2 · .57 · .43 / 128 + .0001 / 12 = .005681 + .003830 + .000008 = .009519, √ = .0976.
    assert math.sqrt(batch.printed_variance("final", ["job-1.10"], 0.57, 6)) == pytest.approx(0.0976, abs=1e-4)
    assert batch.printed_variance("dose", ["job-1.10"], 6.11, 6) is None


def test_all_prints_are_compared_in_the_last_rounds(batch):
    # The screens: three finals, two or three doses, the drift of a first update; no final or AUC of runs that were cut short.
    for round_, prints in (("screen", 6), ("second", 30), ("job-1", 6), ("job-2", 9), ("job-3", 9)):
        assert sum(batch.read(kind, shops.split(), round_) is not None for kind, shops, _, _ in batch.PRINTS) == prints, round_
    assert len(batch.PRINTS) == 39
    assert len(list(batch.points())) == 288 and len(list(batch.points(batch.ORDERS))) == 1152
    # No round runs a corrected arm.
    corrected = [key for _, _, studies in batch.ROUNDS.values() for _, arms, _ in studies for keys in arms.values() for key in keys if "correction" in key]
    assert corrected == []


def test_the_point_that_is_the_papers_is_found(batch, tmp_path):
    aim = "N=48,G=8,K=12,glimpse=residual,rate=0.2,bound=0"
    finals = {"hard-1.06": 0.99, "hard-1.05": 0.89, "hard-1.04": 0.79}
    doses = {"hard-1.035": 3.08, "hard-1.03": 3.75}

    def row(arm, shop, point, seed):
        apart = 0.01 * (seed % 2)
        if point != aim:
            return {"greedy-final": 0.5 + apart, "dose:50": 1.0 + apart, "first-drift": 0.2 + apart}
        return {"greedy-final": finals.get(shop, 0) + apart - 0.005, "dose:50": doses.get(shop, 1) + apart - 0.005, "first-drift": 1.38 + apart - 0.005}

    ran(batch, tmp_path, "screen", row)
    batch.choose("screen", tmp_path)
    order = batch.ranked("screen", tmp_path)
    assert len(order) == 288 and order[0] == aim
    # All others are equally far, so they stand in the order of the grid.
    assert order[1:] == [point for point in batch.points() if point != aim]
    assert batch.nearest("screen", tmp_path) == order[:12] == batch.entered("second", tmp_path)
    with open(tmp_path / "batch-screen.tsv", newline="") as lines:
        first = next(csv.DictReader(lines, delimiter="\t"))
    assert float(first["distance"]) == pytest.approx(0.0, abs=1e-6) and first["final hard-1.06 (0.99, 24)"].startswith("0.990 (")


def test_a_distance_in_standard_errors(batch, tmp_path):
    # Every final is .5 ± .01 over two seeds, .49 and .51: s = .014142, s² / 2 = .0001.
    ran(batch, tmp_path, "job-1", lambda arm, shop, point, seed: {"greedy-final": 0.49 + 0.02 * (seed % 2)}, seeds=2)
    _, _, table = batch.distances("job-1", tmp_path)[0]
    here, z = table["final", "job-1.10", 0.57, 6]
    # √(.009519 + .0001) = .09808; (.5 − .57) / .09808 = −.714.
    assert here == pytest.approx(0.5) and z == pytest.approx(-0.714, abs=2e-3)


def test_two_readings_go_on_with_all_their_points(batch, tmp_path):
    def row(arm, shop, point, seed):
        near = "order=list" in point and "glimpse=residual" in point and "K=13" in point
        return {"greedy-final": (0.5 if near else 0.9) + 0.01 * (seed % 2), "dose:50": 1 + 0.1 * (seed % 2)}

    ran(batch, tmp_path, "job-1", row)
    batch.choose("job-1", tmp_path)
    entered = batch.entered("job-2", tmp_path)
    assert len(entered) == 72 and {batch.reading(point) for point in entered} == {("list", "13", "residual", "10"), ("list", "13", "residual", "0")}


def test_what_was_stopped_counts_for_nobody(batch, tmp_path):
    ran(batch, tmp_path, "job-1", lambda *_: {}, seeds=1)
    with pytest.raises(SystemExit, match="fewer than two seeds"):
        batch.choose("job-1", tmp_path)


def test_trapped_seeds_are_set_apart(batch, tmp_path, capsys):
    rows = [("control", 1, 0.2, 0.0), ("control", 2, 0.5, 1.5), ("control", 3, 0.6, 1.0)]
    rows += [("corrected, 0.72", 1, 0.9, 0.0), ("corrected, 0.72", 2, 0.6, 1.0), ("corrected, 0.72", 3, 0.9, 1.0)]
    text = "arm,cell,seed,greedy-auc,dose:50\n" + "".join(f'"{arm}",c,{seed},{auc},{dose}\n' for arm, seed, auc, dose in rows)
    (tmp_path / "endpoints.csv").write_text(text)
    batch.trapped([str(tmp_path)])
    # Leads .7, .1, .3: mean .3667, median .3; without the first, whose control has no dose, .2 and .2.
    assert capsys.readouterr().out.splitlines()[1].split("\t")[2:] == ["corrected, 0.72", "3", "+0.3667", "+0.3000", "1", "+0.2000", "+0.2000"]


def test_a_dial_moves_its_own_rate_clip_and_reuse(batch):
    point = "N=64,G=16,K=13,glimpse=plain,rate=0.2,bound=10"
    assert batch.cell("D3", point) == "N=64,G=16,K=13,glimpse=plain,bound=10"
    found = batch.settings("D3", point)
    assert (found["optimiser.rate"], found["update.clip"], found["update.reuse"]) == (0.45, 0.8, 41)
    assert batch.settings("D3", point.replace("K=13", "K=12"))["update.reuse"] == 40

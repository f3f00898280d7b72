"""Operation counts, and the benchmark's machinery (no timing is asserted: machines are shared)."""

import importlib.util
import json
from pathlib import Path

import pytest

import polhode as ph
from polhode.analysis import bench
from polhode.run.cost import TALLY, Counted, cost, cost_to_tolerance
from polhode.run.ensemble.lane_steps import lane_order


def test_counting_numbers_count():
    TALLY.clear()
    a, b = Counted(3.0), Counted(4.0)
    value = ph.math.sqrt(a * a + b * b) / 2 - 1 + ph.math.sin(a)
    assert float(value) == pytest.approx(5.0 / 2 - 1 + ph.math.sin(3.0), rel=1e-15)
    assert dict(TALLY) == {"mul": 2, "add": 3, "sqrt": 1, "div": 1, "function": 1}


def test_sums_over_pairs_save_a_third_of_the_products():
    """Of an expansion of the same order; the numbers narrowed and tried twice are among what is counted."""
    top = ph.problems.heavy_top()
    paired, usual = cost_to_tolerance(top, 1e-12), cost(ph.methods[f"taylor({lane_order(1e-12)})"], top, 0.01)
    assert 0.5 * usual.mul < paired.mul < 0.8 * usual.mul


def test_a_torque_costs_and_an_implicit_step_costs_more():
    free, top = ph.problems.free_body(), ph.problems.fast_top()
    explicit, implicit = ph.methods["fem"], ph.methods["bem"]
    assert cost(explicit, free, 0.01).flops < cost(explicit, top, 0.01).flops < cost(implicit, top, 0.01).flops


def test_an_exponential_has_one_sine_and_one_cosine():
    assert cost(ph.methods["fem"], ph.problems.free_body(), 0.01).function == 2


def test_bench_measures_every_figure_it_prints(monkeypatch):
    monkeypatch.setattr(bench, "SECONDS", 0.002)
    monkeypatch.setattr(bench, "STEP_SIZES", {"free_body": 0.01, "fast_top": 0.001})
    curve = bench.dop853_curve
    monkeypatch.setattr(bench, "dop853_curve", lambda problem, ladder: curve(problem, ladder[:7:2]))  # to 1e-9
    told = []
    result = bench.measure(["fem"], lambda what, done, total: told.append((what, done, total)))
    assert [row["problem"] for row in result["rows"]] == ["free_body", "fast_top"]
    for row in result["rows"]:
        assert row["ns_per_step"] > 0
        assert row["plain_over_compiled"] > 1
    assert {"attitude_error", "seconds", "dop853_over_ours"} <= set(result["rows"][1])
    assert {"processor", "python", "commit", "versions", "date"} <= set(result["machine"])
    errors = [row["attitude_error"] for row in result["dop853"]]
    assert errors[0] > 1e3 * errors[-1]  # the ladder of tolerances is climbed
    assert told[-1][1:] == (2, 2)


def test_figures_are_not_overwritten(tmp_path):
    path = bench.write({"rows": []}, bench.checked(tmp_path / "figures.json", False))
    assert json.loads(path.read_text()) == {"rows": []}
    with pytest.raises(ph.InputError, match="exists; choose another name or use --overwrite"):
        bench.checked(path, False)
    with pytest.raises(ph.InputError, match="does not exist"):
        bench.checked(tmp_path / "missing" / "figures.json", False)


def test_dmv_against_fortran_measures_every_figure_it_prints(monkeypatch):
    """The script's figures, from a few steps: what is measured is not asserted, machines are shared."""
    path = Path(__file__).parents[2] / "benchmarks" / "dmv_fortran.py"
    spec = importlib.util.spec_from_file_location("dmv_fortran", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "STEPS", 20)
    monkeypatch.setattr(script, "ROUNDS", 2)
    result = script.measure()
    assert len(result["rows"]) == 15
    for row in result["rows"]:
        assert row["ratio"]["turn"] == pytest.approx(
            row["ns_per_step"] / (row["fortran_ns"] * result["sincos_ns"]["turn"] / 9.6)
        )

"""Problem files in all commands, results as JSON and as tables, and commands about the library itself."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import polhode as ph
from commands import good, polhode, refused
from polhode.cli.console import duration
from polhode.cli.problem import method_names, problem_names
from polhode.methods.ranking import best_first

pytestmark = pytest.mark.usefixtures("in_a_folder")

FREE = """
[body]
moments = [0.9144, 1.098, 1.66]
[start]
omega = [0.45549, 0.82623, 0.03476]
[run]
method = "imidm"
dt = 0.5
t_end = 5.0
"""


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(FREE, "utf-8")


def exact_end():
    problem = ph.problems.free_body()
    return ph.exact(problem, 5.0)


# --- problem files ----------------------------------------------------------------------------------


def test_exact_takes_a_problem_file():
    output = good("exact", "mine.toml")
    assert "mine at t = 5, exactly" in output
    found = json.loads(good("exact", "mine.toml", "--json"))
    np.testing.assert_allclose(found["states"][0]["quaternion"], exact_end().quaternion[-1], atol=1e-14)


def test_problems_shows_a_problem_file():
    output = good("problems", "mine.toml")
    for word in ("the problem file mine.toml", "moments", "0.9144", "t end          5"):
        assert word in output
    assert json.loads(good("problems", "mine.toml", "--json"))["t_end"] == 5
    Path("tilted.toml").write_text(
        FREE.replace("moments = [0.9144, 1.098, 1.66]", "tensor = [[2.0, 0.1, 0.0], [0.1, 3.0, 0.0], [0.0, 0.0, 4.0]]")
    )
    assert re.search(r"inertia +\( 2,  0.1,  0\) +tensor", good("problems", "tilted.toml"))
    facts = json.loads(good("problems", "tilted.toml", "--json"))
    np.testing.assert_allclose(sorted(facts["moments"]), np.linalg.eigvalsh(facts["tensor"]), rtol=1e-14)


def test_problems_shows_a_start_that_is_not_at_zero():
    Path("late.toml").write_text(FREE.replace("[start]", "[start]\nt0 = 2.5"))
    assert "t start        2.5" in good("problems", "late.toml")
    assert "t start" not in good("problems", "mine.toml")


def test_compare_takes_a_problem_file():
    output = good("compare", "mine.toml", "--methods", "imidm", "--dt", "0.5, 0.25")
    assert "mine to t = 5" in output
    assert "polhode run mine.toml" in output
    assert Path("results-mine/results.json").exists()
    found = json.loads(good("compare", "mine.toml", "--methods", "imidm", "--dt", "0.5", "--overwrite", "--json"))
    error = ph.solve(ph.problems.free_body(), "imidm", dt=0.5, t_end=5.0).matrix[-1] - exact_end().matrix[-1]
    assert found["rows"][0]["attitude_error"] == pytest.approx(np.linalg.norm(error, 2), rel=1e-9)


def test_view_runs_a_problem_file():
    good("view", "mine.toml")
    assert Path("mine.html").stat().st_size > 10_000


def test_bench_takes_a_problem_file():
    found = json.loads(good("bench", "mine.toml", "--methods", "imidm", "--json"))
    assert [(row["method"], row["problem"]) for row in found["rows"]] == [("imidm", "mine")]
    assert found["rows"][0]["ns_per_step"] > 0


@pytest.mark.parametrize("command", ["run", "compare", "exact", "problems", "view", "bench"])
def test_a_mistake_in_a_problem_file_is_one_sentence(command):
    Path("mine.toml").write_text(FREE.replace("omega", "omeg"), "utf-8")
    assert re.search(r"mine.toml, line \d+: start.omeg", refused(command, "mine.toml"))
    assert "no.toml cannot be read" in refused(command, "no.toml")


@pytest.mark.parametrize("command", ["run", "compare", "exact", "problems", "view", "bench"])
def test_no_command_runs_code_unasked(command):
    Path("mine.py").write_text("raise SystemExit('it ran')")
    Path("mine.toml").write_text(FREE + '[[field]]\npython = "mine.py:drag"\n', "utf-8")
    assert "if you trust it, use --allow-code" in refused(command, "mine.toml")


def test_a_reference_over_a_long_motion_is_quick_and_says_how_good_it_is():
    """1400 rad; 34 digits would take minutes."""
    fast = ph.Problem(ph.Body([1.0, 1.0, 0.5]), ph.fields.gravity(1.0), omega=[0.0, 0.1, 700.0], t_end=2.0)
    from polhode.analysis.convergence import reference_solution

    reference = reference_solution(fast)
    assert "doubles" in reference.source
    truth = ph.exact(fast, 2.0).matrix[-1]
    q = ph.Problem(fast.body, attitude=reference.quaternion, omega=[0, 0, 1]).quaternion
    off = np.linalg.norm(ph.exact(ph.Problem(fast.body, attitude=q, omega=[0, 0, 1]), 0.0).matrix[-1] - truth, 2)
    assert off < 20 * max(reference.error, 1e-13)


# --- JSON and tables --------------------------------------------------------------------------------


def test_run_as_json():
    found = json.loads(good("run", "mine.toml", "--json"))
    sol = ph.solve(ph.problems.free_body(), "imidm", dt=0.5, t_end=5.0)
    assert found["end"]["quaternion"] == sol.quaternion[-1].tolist()
    assert found["drift"] == dict(sol.drift())
    assert (found["method"], found["steps"], found["status"]) == ("imidm", 10, "finished")
    many = json.loads(good("run", "mine.toml", "--digits", "30", "--steps", "1", "--json"))
    assert len(many["end"]["quaternion"][1]) > 30


@pytest.mark.parametrize("command", [("cache",), ("body", "box", "1", "2", "3"), ("methods", "imidm")])
def test_other_results_as_json(command):
    assert json.loads(good(*command, "--json"))


def table(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_states_as_tables():
    good("run", "mine.toml", "--samples", "3", "--csv", "run.csv", "--out", "run.zarr")
    rows = table("run.csv")
    assert [float(row["t"]) for row in rows] == [0.0, 2.5, 5.0]
    last = ph.load("run.zarr").last()
    assert [float(rows[-1][f"quaternion_{x}"]) for x in "wxyz"] == last.quaternion[-1].tolist()
    assert [float(rows[-1][f"omega_{x}"]) for x in "xyz"] == last.omega[-1].tolist()
    assert "exists" in refused("run", "mine.toml", "--csv", "run.csv")
    good("export", "run.zarr", "again.csv")
    assert Path("again.csv").read_bytes() == Path("run.csv").read_bytes()
    assert ".csv" in refused("run", "mine.toml", "--csv", "run.txt")
    good("exact", "mine.toml", "--samples", "3", "--csv", "exact.csv")
    assert [float(row["t"]) for row in table("exact.csv")] == [0.0, 2.5, 5.0]


def test_exact_at_several_times():
    output = good("exact", "mine.toml", "--times", "0,5")
    assert "at 2 times" in output
    assert "remove --t" in refused("exact", "mine.toml", "--times", "0,5", "--t", "3")
    assert "at least 2" in refused("exact", "mine.toml", "--samples", "1")
    assert "--times must be numbers" in refused("exact", "mine.toml", "--times", "0,x")


# --- lists and times --------------------------------------------------------------------------------


def test_methods_are_listed_by_what_people_look_for():
    output = good("methods")
    titles = ["Explicit", "Implicit", "Symplectic", "Exact", "Adaptive", "Stochastic", "Combinators", "Known elsewhere"]
    assert re.findall(r"^([A-Z]\w+(?: elsewhere)?)", output, re.MULTILINE) == titles
    assert all(re.search(rf"^  {re.escape(name)} ", output, re.MULTILINE) for name in ph.methods)
    assert all(f"  {name}(...)" in output for name in ph.methods.combinators)
    for word in ("linear_bodies", "increments", "asks"):
        assert word not in output + good("methods", "imidm")


def test_methods_of_one_kind():
    listed = json.loads(good("methods", "--kind", "symplectic", "--json"))
    assert [m["name"] for m in listed] == [m.name for m in best_first(ph.methods.values(), "free") if m.symplectic]
    assert "akw" not in good("methods", "--kind", "symplectic")
    assert "must be one of" in refused("methods", "--kind", "good")


def test_methods_fit_a_screen_of_80_columns(monkeypatch):
    monkeypatch.setattr("polhode.cli.console.PIPE_WIDTH", 80)
    output = good("methods").rpartition("\n\n")[0]
    assert max(map(len, output.splitlines())) <= 80


def test_a_combinator_is_explained():
    assert "Strang splitting" in good("methods", "strang")
    assert good("methods", "strang(...)") == good("methods", "strang")
    assert json.loads(good("methods", "strang", "--json"))["example"] == "strang(jacobi)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3e-8, "30 ns"), (3.4e-4, "340 \N{MICRO SIGN}s"), (2.5e-3, "2.5 ms"), (0.9999, "1 s"), (12.0, "12 s"),
     (210.0, "3.5 min"), (9000.0, "2.5 h"), (0.0, "0 ns")],
)  # fmt: skip
def test_times_are_written_as_a_person_would(seconds, text):
    assert duration(seconds) == text


# --- doctor -----------------------------------------------------------------------------------------


def test_doctor():
    output = good("doctor")
    for word in ("polhode", "numba", "processor", "GPU", "cache", "all is well"):
        assert word in output
    found = json.loads(good("doctor", "--json"))
    assert found["polhode"] == ph.__version__
    assert [check["passed"] for check in found["self_test"]] == [True, True]


def test_doctor_sees_a_fault(monkeypatch):
    """A method that is wrong, here one with another step than asked for, ends with exit code 1."""
    from polhode.run import solve

    right = solve.solve
    monkeypatch.setattr(solve, "solve", lambda p, m, dt, **how: right(p, m, dt=min(dt, 0.125), **how))
    result = polhode("doctor")
    assert result.exit_code == 1
    assert "FAILED: free_body" in result.stdout
    assert "please report" in result.stdout


# --- sweeps and completion --------------------------------------------------------------------------


def test_a_sweep_of_a_problem_file_as_json():
    Path("many.toml").write_text(FREE + "[grid]\nomega.x = [0.4, 0.5]\n", "utf-8")
    plan = json.loads(good("sweep", "many.toml", "--dry-run", "--json"))
    assert (plan["bodies"], plan["varied"], plan["steps"]) == (2, ["omega.x"], 10)
    found = json.loads(good("sweep", "many.toml", "--json"))
    assert (found["bodies"], found["failed"], found["file"]) == (2, [], "many.zarr")
    assert ph.load("many.zarr").quaternion.shape[1] == 2


def test_completion():
    assert problem_names("fast") == ["fast_top"]
    assert "mine.toml" in problem_names("m")
    assert method_names("imid") == [name for name in ph.methods if name.startswith("imid")]

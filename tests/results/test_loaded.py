"""Trajectories from files: their problem, and states between those that the file holds."""

import json

import numpy as np
import pytest

import polhode as ph
from polhode.physics import problem_data


@ph.torque
def driven(t, R, omega, size=0.3):
    return size * ph.math.sin(3 * t) - 0.1 * omega[0], ph.where(t > 0.5, 0.2, 0.0), R[2][0] - 0.1 * omega[2] * t


@ph.torque
def facets(R, omega, damping, normals, areas):
    def pressure(n, area):
        lit = ph.math.dot(n, R[2])
        return ph.where(lit > 0, area * lit, 0.0) * n

    return ph.total(pressure, normals, areas) - damping * omega


ROWS = np.random.default_rng(4).normal(size=(100, 3))
TENSOR = [[2.0, 0.1, 0.0], [0.1, 3.0, 0.2], [0.0, 0.2, 4.0]]


def problems():
    yield from map(ph.problems.get, ph.problems.names())
    yield ph.Problem(ph.Body(TENSOR), driven(), omega=[0.3, 4.0, 0.2], t0=0.1)
    table = ph.fields.tabulated([0.0, 1.0, 2.0], [[0.1, 0, 0], [0, 0.2, 0], [0, 0, 0.3]])
    yield ph.Problem(ph.Body(TENSOR), table, omega=[0.3, 4.0, 0.2])
    long = ph.fields.tabulated(np.linspace(0, 2, 100), 0.1 * ROWS)
    yield ph.Problem(ph.Body(TENSOR), long, omega=[0.3, 4.0, 0.2])
    yield ph.Problem(ph.Body(TENSOR), facets(0.1, ROWS, ROWS[:, 0] ** 2), omega=[0.3, 4.0, 0.2])
    yield ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.fields.gravity(mgl=1.0) + driven(), omega=[0.3, 4.0, 0.2])


@pytest.mark.parametrize("problem", list(problems()), ids=repr)
def test_a_problem_comes_back_from_its_text(problem):
    text = problem_data.to_text(problem)
    back = problem_data.from_text(text)
    assert problem_data.to_text(back) == text
    assert (back.quaternion, back.momentum, back.t0) == (problem.quaternion, problem.momentum, problem.t0)
    assert back.energy() == problem.energy()
    if problem.field is not None:
        R, omega = ((0.36, 0.48, -0.8), (-0.8, 0.6, 0.0), (0.48, 0.64, 0.6)), (0.3, -0.2, 0.7)
        for t in (0.0, 0.7, 1.9):
            assert back.field.torque_value(t, R, omega) == problem.field.torque_value(t, R, omega)


def test_what_is_no_formula_is_not_written():
    @ph.torque(plain=True)
    def by_hand(omega):
        return [-0.1 * x for x in omega]

    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), by_hand(), omega=[1.0, 0.2, 0.1])
    assert problem_data.to_text(problem) is None


FIELD = ("fields", 0)


def changes():
    """Texts that are not those of a problem."""
    lit = facets(0.1, ROWS, ROWS[:, 0] ** 2)
    sums = json.loads(problem_data.to_text(ph.Problem(ph.Body(TENSOR), lit, omega=[0.3, 4.0, 0.2])))
    nodes = sums["fields"][0]["nodes"]
    places = {op: [node[0] for node in nodes].index(op) for op in ("sum", "total", "item")}
    for op, change in (
        ("sum", ["sum", -1, *nodes[places["sum"]][2:]]), ("sum", ["sum", 1, 4, [["symbol", "t"]], [0]]),
        ("sum", ["sum", 1, 4, [["symbol", "x4"]], [0]]), ("sum", ["sum", 1, 4, [["symbol", "x0"]], [1]]),
        ("sum", ["sum", 1, 4, [["symbol", "x0"]], []]), ("sum", ["sum", 1, 4, [["eval", "x0"]], [0]]),
        ("total", nodes[places["total"]][:-1]), ("total", ["total", 0]), ("item", ["item", places["total"], 3]),
        ("item", ["item", 0, 0]), ("item", ["item", places["total"], "0"]),
    ):  # fmt: skip
        others = [*nodes]
        others[places[op]] = change
        yield (json.dumps(sums | {"fields": [sums["fields"][0] | {"nodes": others}]}),)
    text = problem_data.to_text(ph.problems.heavy_top())
    yield "", "[]", "{}", "null", text[:-9]
    for path, value in (
        ((*FIELD, "nodes", 0), ["const", "__import__('os')"]), ((*FIELD, "nodes", 0), ["eval", 1.0]),
        ((*FIELD, "nodes", 0), ["symbol", "x"]), ((*FIELD, "nodes", 0), ["symbol", "p7"]),
        ((*FIELD, "nodes", 0), ["mul", 0, 0]), ((*FIELD, "nodes", 0), ["named", "tau"]),
        ((*FIELD, "kind"), "torque"), ((*FIELD, "kind"), "x"),
        ((*FIELD, "value"), [99]), ((*FIELD, "value"), [-1]), ((*FIELD, "value"), []),
        (("inertia",), [1.0, 2.0]), (("momentum",), "x"), (("quaternion",), [0, 0, 0, 0]), (("t0",), None),
        ((*FIELD, "parameters"), ["x"]), ((*FIELD, "parameters"), []), ((*FIELD, "nodes", 0), ["call", "f"]),
    ):  # fmt: skip
        data = json.loads(text)
        inner = data
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        yield (json.dumps(data),)


@pytest.mark.parametrize("text", [text for group in changes() for text in group])
def test_any_other_text_is_refused(text):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError, IndexError)):
        problem_data.from_text(text)


RUNS = {
    "fixed": {"method": "imidm", "dt": 0.01}, "every": {"method": "imidm", "dt": 0.001, "every": 50},
    "expression": {"method": "strang(dmv4)", "dt": 0.01},
    "tol": {"tol": 1e-10}, "times": {"step_tol": 1e-10, "times": [0.0, 0.5, 2.0]},
    "back": {"tol": 1e-10, "t_end": -2.0},
    "fixed times": {"method": "imidm", "dt": 0.001, "times": [0.1, 0.5, 2.0]},
    "fixed times back": {"method": "imidm", "dt": 0.001, "t_end": -2.0, "times": [0.0, -0.5, -2.0]},
}  # fmt: skip


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
@pytest.mark.parametrize("run", RUNS)
def test_states_between_those_of_the_file(run, suffix, tmp_path):
    if suffix == ".nc":
        pytest.importorskip("h5py")
    top = ph.problems.heavy_top()
    given = {"t_end": 2.0} | RUNS[run]
    sol = ph.solve(top, **given, out=tmp_path / f"run{suffix}")
    back = ph.load(tmp_path / f"run{suffix}")
    assert back.problem.momentum == top.momentum
    times = np.array([0.123, 0.5, 1.7777]) * np.sign(sol.t[-1])
    there = ph.solve(top, tol=1e-11, t_end=2.0 * np.sign(sol.t[-1])).at(times)
    assert np.abs(back.at(times).matrix - there.matrix).max() < (2e-4 if "dt" in given else 1e-9)
    if run in {"fixed", "expression"}:
        assert (back.at(times).momentum == sol.at(times).momentum).all()
    copy = back.save(tmp_path / f"copy{suffix}")
    assert (ph.load(copy).at(times).momentum == back.at(times).momentum).all()
    with pytest.raises(ph.InputError, match="t must be times between"):
        back.at([5.0])


def test_a_resumed_run_keeps_its_problem(tmp_path):
    top, path = ph.problems.heavy_top(), tmp_path / "run.zarr"
    ph.solve(top, "imidm", dt=0.01, steps=10, out=path)
    ph.solve(top, "imidm", dt=0.01, steps=20, out=path, resume=True)
    assert ph.load(path).at([0.15]).t.tolist() == [0.15]


def test_a_loaded_motion_goes_on():
    """From the problem and the last state, with any method."""
    top = ph.problems.heavy_top()
    sol = ph.solve(top, tol=1e-10, t_end=1.0)
    last = sol.last()
    more = ph.solve(
        sol.problem.starting(attitude=last.quaternion[0], momentum=last.momentum[0], t0=1.0), tol=1e-10, t_end=2.0
    )
    assert np.abs(more.matrix[-1] - ph.solve(top, tol=1e-10, t_end=2.0).matrix[-1]).max() < 1e-8

"""Every picture is made, has labels and data, and shows nothing on a screen."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import polhode as ph
from polhode import plots
from polhode.analysis.convergence import Row
from polhode.plots.sphere import path_on
from polhode.plots.style import checked
from polhode.run.poinsot import herpolhode_ring

METHOD = ph.methods["imidm"]  # many tests share its programs


@pytest.fixture(scope="module")
def sol():
    return ph.solve(ph.problems.free_body(), METHOD, dt=0.5)


@pytest.fixture(scope="module")
def rows():
    found = []
    for method, order, scale in (("one", 2.0, 1.0), ("other", 4.0, 5.0)):
        for dt in (0.1, 0.05, 0.025):
            error = scale * dt**order
            found.append(Row(method, order, dt, 100, error, error, 1e-9, 1e-15, 1e-14, 1e-3 / dt, 50.0))
    lost = Row("other", 4.0, 0.2, 50, math.nan, math.nan, 1.0, 1.0, 1e-14, math.nan, math.nan, "failed")
    return [*found, lost]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def finite_points(ax):
    return sum(int(np.isfinite(np.asarray(line.get_ydata(), dtype=float)).sum()) for line in ax.lines)


@pytest.mark.parametrize("name", ["energy", "momentum"])
def test_pictures_over_time(sol, name, tmp_path):
    fig, ax = getattr(sol.plot, name)()
    assert "t" in ax.get_xlabel()
    assert "units of the problem" in ax.get_xlabel()
    assert ax.get_ylabel()
    assert finite_points(ax) >= len(sol) - 1
    plots.save(fig, tmp_path / "a.png", tmp_path / "a.svg")
    assert (tmp_path / "a.png").stat().st_size > 5000
    assert (tmp_path / "a.svg").read_text("utf-8").count("<path") > 5


@pytest.mark.parametrize("name", ["attitude", "polhode"])
def test_pictures_on_the_sphere(sol, name, tmp_path):
    fig, ax = getattr(sol.plot, name)()
    assert len(ax.texts) == 3
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[-2:] == ["start", "end"]
    for line in ax.lines:
        size = np.linalg.norm(np.array(line.get_data_3d(), dtype=float), axis=0)
        assert (np.isnan(size) | ((size > 1 - 1e-9) & (size < 1.3))).all()
    plots.save(fig, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_attitude_of_chosen_axes(sol):
    _, ax = sol.plot.attitude("xyz")
    assert len(ax.get_legend().get_texts()) == 5
    with pytest.raises(ph.InputError, match="axes"):
        sol.plot.attitude("w")


def test_own_axes_are_used(sol):
    fig, ax = plt.subplots()
    assert sol.plot.energy(ax=ax) == (fig, ax)
    assert plots.drift_plot([sol], ax=ax) == (fig, ax)


def test_overview(sol):
    fig, axes = sol.plot.overview()
    assert len(axes) == 4
    assert METHOD.name in fig.get_suptitle()


def test_drift_of_one_trajectory(sol):
    _, ax = sol.plot.drift()
    assert ax.get_yscale() == "log"
    ends = [line.get_ydata()[-1] for line in ax.lines]
    assert ends == pytest.approx([max(size, plots.style.SMALLEST) for size in sol.drift().values()], rel=1e-9)
    assert all(np.array_equal(line.get_xdata(), sol.t[1:]) for line in ax.lines)
    assert [text.get_text()[:6] for text in ax.get_legend().get_texts()] == ["energy", "spatia", "its le"]


def test_drift_of_a_top_and_of_a_body_with_drag():
    """What is conserved, or all if nothing is."""
    top = ph.solve(ph.problems.fast_top(), METHOD, dt=0.01, steps=20)
    drag = ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.fields.linear_drag(0.1), omega=[1.0, 0.2, 0.3])
    for sol, sizes in ((top, top.drift()), (slowed := ph.solve(drag, METHOD, dt=0.1, steps=20), slowed.changes())):
        ends = [line.get_ydata()[-1] for line in sol.plot.drift()[1].lines]
        assert ends == pytest.approx([max(size, plots.style.SMALLEST) for size in sizes.values()], rel=1e-6)


def test_herpolhode_of_a_free_trajectory(sol):
    """Its distance from the momentum is the part of omega across it, and lies in the ring."""
    _, ax = sol.plot.herpolhode()
    path = np.array(ax.lines[0].get_data()).T
    spin = np.einsum("nij,nj->ni", sol.matrix, sol.omega)
    momentum = sol.spatial_momentum[0] / np.linalg.norm(sol.spatial_momentum[0])
    along = np.outer(spin @ momentum, momentum)
    assert np.linalg.norm(path, axis=1) == pytest.approx(np.linalg.norm(spin - along, axis=1), abs=1e-13)
    exact = ph.exact(ph.problems.free_body(), np.linspace(0, 30, 500))
    sizes = np.linalg.norm(np.array(exact.plot.herpolhode()[1].lines[0].get_data()), axis=0)
    least, largest = herpolhode_ring(ph.problems.free_body())
    assert least - 1e-12 < sizes.min() < sizes.max() < largest + 1e-12
    assert np.linalg.norm(ax.lines[1].get_data()) == 0


def test_herpolhode_with_a_torque_and_at_rest():
    top = ph.solve(ph.problems.slow_top(), METHOD, dt=0.1, steps=50)
    _, ax = top.plot.herpolhode()
    assert len(ax.lines[0].get_xdata()) == 51
    assert "L_0" in ax.get_xlabel()
    rest = ph.solve(ph.Problem(ph.Body([1, 2, 3]), omega=[0, 0, 0]), METHOD, dt=0.1, steps=3)
    with pytest.raises(ph.InputError, match="at rest"):
        rest.plot.herpolhode()


def test_drift_plot(sol):
    _, ax = plots.drift_plot([sol, sol])
    assert ax.get_yscale() == "log"
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert len(ax.get_legend().get_texts()) == 2
    assert all((np.diff(line.get_ydata()) >= 0).all() for line in ax.lines)


def test_convergence_plot(rows):
    _, ax = plots.convergence_plot(rows)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert r"\Delta t" in ax.get_xlabel()
    assert "R" in ax.get_ylabel()
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert labels == {"one", "other (1 of 4 failed)"}
    slopes = [line for line in ax.lines if line.get_label() not in labels and line.get_marker() != "x"]
    found = [np.diff(np.log(s.get_ydata()))[0] / np.diff(np.log(s.get_xdata()))[0] for s in slopes]
    assert sorted(found) == pytest.approx([2, 4])


def test_work_precision_plot(rows):
    _, ax = plots.work_precision_plot(rows)
    assert "time" in ax.get_xlabel()
    assert finite_points(ax) == 6


def test_comparison_plot(rows, sol):
    _, axes = plots.comparison_plot(rows, [sol])
    assert [bool(ax.get_legend()) for ax in axes] == [False, True]


def test_pictures_survive_failures_only(sol):
    nan = math.nan
    lost = [Row("a", 2.0, 0.1, 9, nan, nan, nan, nan, 0.0, nan, nan, "failed")]
    fig, _ = plots.convergence_plot(lost)
    fig.draw_without_rendering()


def test_failed_runs_are_marked(rows, sol):
    """A cross on the upper edge above the step size, and a count in the legend."""
    failed = dataclasses.replace(rows[0], attitude_error=math.nan, seconds=math.nan, failure="why")
    _, ax = plots.convergence_plot([failed, *rows[1:]])
    crosses = [line for line in ax.lines if line.get_marker() == "x"]
    assert [list(line.get_xdata()) for line in crosses] == [[0.2], [0.1]]
    assert len({line.get_ydata()[0] for line in crosses}) == 2, "none covers another"
    assert all(line.get_transform() == ax.get_xaxis_transform() for line in crosses)
    for draw in (plots.convergence_plot, plots.work_precision_plot):
        labels = {text.get_text() for text in draw([failed, *rows[1:]])[1].get_legend().get_texts()}
        assert labels == {"one (1 of 3 failed)", "other (1 of 4 failed)"}
    ended = dataclasses.replace(sol.info, status="failed")
    _, ax = plots.drift_plot([sol, ph.Trajectory(sol.stored, ended)])
    assert [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "x"] == [sol.t[-1]]


def test_lines_are_told_apart():
    looks = [tuple(map(str, plots.style.look(i).values())) for i in range(91)]
    assert len(set(looks)) == len(looks)


def test_settings_of_the_user_stay(sol):
    before = dict(plt.rcParams)
    sol.plot.energy()
    assert dict(plt.rcParams) == before


def test_suffix_of_a_picture():
    with pytest.raises(ph.InputError, match=r"\.png"):
        checked("a.txt")


# --- the free body ----------------------------------------------------------------------------------

FREE = ph.problems.free_body()


def test_polhode_family():
    _, ax = plots.polhode_family(FREE.body)
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert labels == {"largest moment", "separatrix", "smallest moment"}
    for moments, label in (([1.0, 2.0, 2.0], "smallest moment"), ([1.0, 1.0, 2.0], "largest moment")):
        _, ax = plots.polhode_family(ph.Body(moments))
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [label]


def test_herpolhode_plot():
    _, ax = plots.herpolhode_plot(FREE)
    path, inner, outer, *_ = (np.array(line.get_data()) for line in ax.lines)
    sizes = [np.linalg.norm(line, axis=0) for line in (path, inner, outer)]
    assert sizes[1][0] <= sizes[0].min() + 1e-12
    assert sizes[2][0] >= sizes[0].max() - 1e-12
    assert ax.get_aspect() == 1.0


def test_flip_plot():
    handle = ph.problems.t_handle()
    _, ax = plots.flip_plot(handle)
    middle = np.array(ax.lines[1].get_ydata())
    assert middle.min() < -0.99
    assert middle.max() > 0.99
    assert np.count_nonzero(np.diff(np.sign(middle))) == 4
    assert f"{ph.period(handle):.5g}" in ax.get_title(loc="left")


def test_cycle_plot():
    _, axes = plots.cycle_plot(FREE.body)
    assert len(axes) == 2
    assert len(axes[0].get_legend().get_texts()) == 2
    fig, given = plt.subplots(2)
    assert plots.cycle_plot(FREE.body, given)[0] is fig


def test_poinsot_plot(tmp_path):
    fig, axes = plots.poinsot_plot(FREE)
    assert len(axes) == 5
    plots.save(fig, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 50_000
    assert ph.plots is plots


def test_long_steps_are_drawn_as_curves() -> None:
    """Between the states of a run to a tolerance the motion is known, and drawn."""
    sol = ph.solve(ph.problems.get("heavy_top"), tol=1e-6, t_end=5.0)
    _, ax = sol.plot.herpolhode()
    drawn = np.stack(ax.lines[0].get_data(), axis=1)
    assert len(drawn) > 4 * len(sol)
    corners = drawn[1:-1] - drawn[:-2], drawn[2:] - drawn[1:-1]
    lengths = [np.linalg.norm(side, axis=1) for side in corners]
    turn = (corners[0] * corners[1]).sum(axis=1) / (lengths[0] * lengths[1])
    assert np.degrees(np.arccos(turn.clip(-1, 1))).max() < 15
    plain = ph.Trajectory(sol.stored, sol.info)  # as from a file: the states are all there is
    assert len(plain.plot.herpolhode()[1].lines[0].get_xdata()) == len(sol)


def test_no_part_of_a_path_on_the_sphere_is_missing() -> None:
    """Where a path goes behind the sphere its pale part begins where the full one ends."""
    fig = plt.figure()
    ax = fig.add_subplot(projection="3d")
    ax.view_init(elev=0, azim=0)
    around = np.linspace(0.0, 2 * math.pi, 9)
    path_on(ax, np.stack([np.cos(around), np.sin(around), 0 * around], axis=1), "black", "")
    front, behind = (np.isfinite(line.get_data_3d()[0]) for line in ax.lines)
    pieces = (front[1:] & front[:-1]) | (behind[1:] & behind[:-1])
    assert pieces.all()


def test_names_on_logarithmic_axes_do_not_meet(rows) -> None:
    for draw in (ph.plots.convergence_plot, ph.plots.work_precision_plot):
        fig, ax = draw(rows)
        fig.canvas.draw()
        named = [tick.label1 for tick in (*ax.xaxis.get_major_ticks(), *ax.xaxis.get_minor_ticks())]
        boxes = sorted((b.x0, b.x1) for b in (t.get_window_extent() for t in named if t.get_text() and t.get_visible()))
        assert len(boxes) >= 2
        assert all(left[1] < right[0] for left, right in itertools.pairwise(boxes))


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda sol: sol.plot.polhode(ax=plt.figure().add_subplot()), r"projection='3d'\); got rectilinear axes"),
        (lambda sol: sol.plot.energy(ax=plt.figure().add_subplot(projection="3d")), r"add_subplot\(\); got 3d axes"),
        (lambda sol: sol.plot.energy(ax=3), "got int"),
        (lambda sol: sol.plot.attitude(3), "axes must be some of"),
        (lambda sol: ph.plots.drift_plot([]), "one or several"),
        (lambda sol: ph.plots.drift_plot([3]), "one or several"),
        (lambda sol: ph.plots.convergence_plot([]), "rows must be those of"),
        (lambda sol: ph.plots.work_precision_plot("rows"), "rows must be those of.*got str"),
        (lambda sol: ph.plots.polhode_family([1.0, 2.0, 3.0]), r"body must be a ph\.Body; got list"),
        (lambda sol: ph.plots.polhode_family(ph.Body([1.0, 2.0, 3.0]), count=0), "count must be a whole number"),
        (lambda sol: ph.plots.poinsot_plot(sol), r"problem must be a ph\.Problem; got Trajectory"),
        (lambda sol: ph.plots.flip_plot(ph.problems.t_handle(), periods=-1), "periods must be positive"),
        (lambda sol: ph.plots.save(sol.plot.energy(), "energy.png"), "fig, ax = .*got tuple"),
        (lambda sol: ph.plots.save(sol.plot.energy()[0], "none/energy.png"), "the folder none does not exist"),
        (lambda sol: ph.plots.save(sol.plot.energy()[0], "energy.bad"), r"must end in \.png"),
    ],
)
def test_mistakes_are_told(draw: Callable[[ph.Trajectory], Any], said: str) -> None:
    sol = ph.exact(ph.problems.get("free_body"), [0.0, 1.0])
    with pytest.raises(ph.InputError, match=said):
        draw(sol)

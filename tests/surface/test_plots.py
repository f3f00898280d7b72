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
from polhode.plots.polhode import ellipsoid_of
from polhode.plots.sphere import path_on
from polhode.plots.style import checked
from polhode.run.poinsot import herpolhode_ring

METHOD = ph.methods["imidm"]  # many tests share its programs


ROWS = [Row("one", 2.0, dt, 100, dt**2, dt**2, 1e-9, 1e-15, 1e-14, 1e-3, 50.0) for dt in (0.1, 0.05)]


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


@pytest.mark.parametrize("name", ["omega", "energy", "momentum"])
def test_pictures_over_time(sol, name, tmp_path):
    fig, ax = getattr(sol.plot, name)()
    assert "t" in ax.get_xlabel()
    assert "units of the problem" in ax.get_xlabel()
    assert ax.get_ylabel()
    assert finite_points(ax) >= len(sol) - 1
    plots.save(fig, tmp_path / "a.png", tmp_path / "a.svg")
    assert (tmp_path / "a.png").stat().st_size > 5000
    assert (tmp_path / "a.svg").read_text("utf-8").count("<path") > 5


@pytest.mark.parametrize(("name", "how"), [("attitude", {}), ("polhode", {"on": "sphere"})])
def test_pictures_on_the_sphere(sol, name, how, tmp_path):
    fig, ax = getattr(sol.plot, name)(**how)
    assert len(ax.texts) == 3
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[-2:] == ["start", "end"]
    for line in ax.lines:
        size = np.linalg.norm(np.array(line.get_data_3d(), dtype=float), axis=0)
        assert (np.isnan(size) | ((size > 1 - 1e-9) & (size < 1.3))).all()
    plots.save(fig, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


def lines_in_space(ax):
    return [np.array(line.get_data_3d(), dtype=float).T for line in ax.lines]


TENSOR = [[2.0, 0.3, 0.1], [0.3, 3.0, 0.2], [0.1, 0.2, 4.0]]


def test_the_polhode_is_drawn_on_the_energy_ellipsoid():
    """All polhodes lie on omega . I omega = 2 T, as does the surface."""
    problem = ph.Problem(ph.Body(TENSOR), omega=[0.1, 2.0, 0.3])
    sol = ph.exact(problem, np.linspace(0.0, 30.0, 400))
    _, ax = sol.plot.polhode()
    twice = 2 * sol.energy[0]
    *curves, start, end = lines_in_space(ax)[:-3]  # the last three are the axes
    assert len(curves) > 10
    for points in (*curves, start, end):
        finite = points[np.isfinite(points).all(axis=1)]
        level = np.einsum("ni,ij,nj->n", finite, TENSOR, finite)
        assert level == pytest.approx(np.full(len(finite), twice), rel=1e-9)
    path = np.where(np.isfinite(curves[-2]), curves[-2], curves[-1])
    assert path == pytest.approx(sol.omega, abs=1e-12)
    assert start == pytest.approx(sol.omega[:1])
    surface = np.random.default_rng(1).normal(size=(20, 3))
    surface = surface / np.linalg.norm(surface, axis=1, keepdims=True) @ ellipsoid_of(sol).shape.T
    assert np.einsum("ni,ij,nj->n", surface, TENSOR, surface) == pytest.approx(np.full(len(surface), twice))
    assert len(ax.collections) == 1
    assert "2T" in ax.get_legend().get_title().get_text()


def test_a_path_without_an_ellipsoid_is_drawn_alone():
    """Under a torque that changes the kinetic energy, at rest, and on an ellipsoid like a needle."""
    drag = ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.fields.linear_drag(0.1), omega=[1.0, 0.2, 0.3])
    rest = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.0, 0.0, 0.0])
    needle = ph.Problem(ph.Body([1e-4, 1.0, 1.0]), omega=[0.0, 1.0, 0.0])
    for problem in (drag, rest, needle):
        sol = ph.solve(problem, METHOD, dt=0.1, steps=40)
        _, ax = sol.plot.polhode()
        assert not ax.collections
        assert lines_in_space(ax)[0] == pytest.approx(sol.omega)
        assert "ellipsoid" not in ax.get_legend().get_title().get_text()


def test_polhodes_of_an_ensemble():
    """On one ellipsoid if the bodies have the same inertia, else alone."""
    momenta = [[1.0, 0.01, 0.0], [0.0, 2.0, 0.01]]
    same = ph.ensemble([1.5, 2.0, 2.5], None, momenta, "dmv6", dt=0.1, steps=20, every=1)
    _, ax = same.plot.polhode()
    front, behind = lines_in_space(ax)[:2]
    path = np.where(np.isfinite(front), front, behind)
    assert path == pytest.approx(same[0].omega / math.sqrt(2 * same[0].energy[0]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["body 0", "body 1"]
    other = ph.ensemble([[1.5, 2.0, 2.5], [1.0, 2.0, 2.5]], None, momenta, "dmv6", dt=0.1, steps=20, every=1)
    _, ax = other.plot.polhode()
    assert not ax.collections
    assert lines_in_space(ax)[1] == pytest.approx(other[1].omega)


def test_components_of_omega(sol):
    _, ax = sol.plot.omega()
    drawn = np.stack([line.get_ydata() for line in ax.lines], axis=-1)
    assert (drawn == sol.omega).all()
    assert "angular velocity" in ax.get_ylabel()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [rf"$\omega_{i}$" for i in (1, 2, 3)]


def test_titles_are_words(sol):
    """The problem in words, and how it was computed in small print; names that users gave stay as they are."""
    handle = ph.exact(ph.problems.t_handle(), [0.0, 1.0])
    _, ax = handle.plot.energy()
    assert (ax.get_title(loc="left"), ax.get_title(loc="right")) == ("T-handle", "jacobi")
    assert sol.plot.polhode()[1].get_title(loc="left") == "Free body"
    own = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.0, 1.0, 0.0], name="my_cube_sat")
    assert ph.exact(own, [0.0, 1.0]).plot.omega()[1].get_title(loc="left") == "my_cube_sat"
    assert "error of energy" in ax.get_ylabel()
    drag = ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.fields.linear_drag(0.1), omega=[1.0, 0.2, 0.3])
    slowed = ph.solve(drag, METHOD, dt=0.1, steps=5)
    assert "change of energy" in slowed.plot.energy()[1].get_ylabel()


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
    assert [text.get_text()[:6] for text in ax.get_legend().get_texts()] == ["energy", "angula", "its le"]


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
    fig, axes = plots.comparison_plot(rows, [sol])
    labels = [text.get_text() for text in fig.legends[0].get_texts()]
    assert sorted(label.split(": ")[-1] for label in labels) == sorted([METHOD.name, "one", "other (1 of 4 failed)"])
    assert {line.get_gid() for line in axes[0].lines} == {"one", "other", None}
    assert [line.get_gid() for line in axes[1].lines] == [METHOD.name]


def test_of_many_methods_the_best_of_each_order_are_named(rows, sol):
    many = [dataclasses.replace(row, method=f"m{k}", attitude_error=(1 + k) * row.attitude_error, order=2.0 + k % 3)
            for k in range(9) for row in rows[:3]]  # fmt: skip
    fig, axes = plots.comparison_plot(many, [sol])
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["m0", "m1", "m2", "7 other methods"]
    assert "order (2, 3, 4)" in fig.legends[0].get_title().get_text()
    colours = {line.get_gid(): line.get_color() for line in axes[0].lines}
    assert len({colours[f"m{k}"] for k in range(3)}) == 3
    assert {colours[f"m{k}"] for k in range(3, 9)} == {plots.style.GREY["color"]}


def test_methods_in_words():
    """What they are, from their description, before the name."""
    in_words = plots.convergence._in_words
    assert in_words("taylor(6)") == "Taylor series of order 6: taylor(6)"
    assert in_words("galpha(0.8)") == "Generalised-alpha method: galpha(0.8)"
    assert in_words("mine") == "mine"


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
        (lambda sol: sol.plot.polhode(on="cube"), "on must be 'ellipsoid' or 'sphere'; got 'cube'"),
        (lambda sol: ph.plots.polhode_family(ph.Body([0.0, 1.0, 1.0])), "zero has no energy ellipsoid"),
        (lambda sol: sol.plot.attitude(3), "axes must be some of"),
        (lambda sol: ph.plots.drift_plot([]), "one or several"),
        (lambda sol: ph.plots.drift_plot([3]), "one or several"),
        (lambda sol: ph.plots.comparison_plot(ROWS, [3]), "one or several"),
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

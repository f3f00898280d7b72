"""Ensembles to a tolerance: bodies that choose their own steps in lanes, against single runs and exact solutions."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.compile.simd.vector_types import LANES
from polhode.numbers.floats import number
from polhode.physics.mixed_precision import controlled_step_in_mixed_precision
from polhode.physics.taylor_steps import body, controlled_taylor_step
from polhode.run import step_control
from polhode.run.adaptive import Run
from polhode.run.ensemble import api, task
from polhode.run.ensemble.lane_steps import adaptive_method, lane_order
from polhode.run.step_control import mixed_orders

END = 6.0


@ph.potential
def weight(R, *, mgl):
    return mgl * R[2][2]


@ph.torque(frame="body")
def growing(omega, *, k):
    """A torque with which the speed about the first axis becomes infinite: w' = k w^2 for a unit moment."""
    return k * omega[0] ** 2, 0.0 * omega[1], 0.0 * omega[2]


@ph.torque
def bump(t, size, centre, width):
    """A push for a short time."""
    return 0.0, 0.0, size * ph.math.exp(-(((t - centre) / width) ** 2))


@ph.potential
def walled(R, *, k):
    return k * ph.where(R[2][2] > 0.5, (R[2][2] - 0.5) ** 2, 0.0)


def tops(number: int = 3 * LANES + 5):
    rng = np.random.default_rng(4)
    moments, momenta = rng.uniform(1, 1.9, (number, 3)), rng.normal([0, 0, 4], size=(number, 3))
    half = rng.uniform(0.05, 0.5, number)
    quaternions = np.stack([np.cos(half), np.sin(half), 0 * half, 0 * half], axis=1)
    return moments, quaternions, momenta, rng.uniform(0.5, 2, number)


def angle(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Angles between attitudes, accurate where they are small."""
    sign = np.where((p * q).sum(-1) < 0, -1, 1)[..., None]
    return 4 * np.arcsin(np.linalg.norm(p - sign * q, axis=-1) / 2)


@pytest.mark.parametrize("tol", [1e-4, 1e-8, 1e-12])
def test_every_top_ends_where_a_finer_run_of_its_own_ends(tol: float) -> None:
    moments, q, m, mgl = tops()
    found = ph.ensemble(moments, q, m, field=weight, params={"mgl": mgl}, step_tol=tol, t_end=END)
    assert found.quaternion.shape == (2, len(moments), 4)
    assert (found.failed == -1).all()
    assert found.t[-1] == END
    assert found.steps is not None
    assert found.steps.min() >= 3
    assert len(set(found.steps.tolist())) > 3
    for i in range(0, len(moments), 7):
        top = ph.Problem(ph.Body(moments[i]), weight(mgl=mgl[i]), attitude=q[i], momentum=m[i])
        fine = ph.solve(top, tol=1e-13, t_end=END)
        assert angle(found.quaternion[-1, i], fine.quaternion[-1]) < 30 * tol + 1e-12
        difference = np.linalg.norm(found.momentum[-1, i] - fine.momentum[-1])
        assert difference < (30 * tol + 1e-12) * np.linalg.norm(m[i])


def test_errors_follow_the_tolerance() -> None:
    moments, q, m, mgl = tops(LANES)
    runs = [
        ph.ensemble(moments, q, m, field=weight, params={"mgl": mgl}, step_tol=tol, t_end=END)
        for tol in (1e-4, 1e-6, 1e-8, 1e-13)
    ]
    errors = [np.median(angle(run.quaternion[-1], runs[-1].quaternion[-1])) for run in runs[:-1]]
    assert errors[0] > 20 * errors[1] > 400 * errors[2] > 0
    assert runs[0].steps.sum() < runs[-1].steps.sum()


def test_the_bits_of_a_body_do_not_depend_on_its_company() -> None:
    moments, q, m, mgl = tops()
    given = {"field": weight, "step_tol": 1e-9, "t_end": END}
    together = ph.ensemble(moments, q, m, params={"mgl": mgl}, **given)
    order = np.random.default_rng(1).permutation(len(moments))
    shuffled = ph.ensemble(moments[order], q[order], m[order], params={"mgl": mgl[order]}, **given)
    np.testing.assert_array_equal(shuffled.quaternion, together.quaternion[:, order])
    np.testing.assert_array_equal(shuffled.momentum, together.momentum[:, order])
    np.testing.assert_array_equal(shuffled.steps, together.steps[order])
    alone = ph.ensemble(moments[:1], q[:1], m[:1], params={"mgl": mgl[:1]}, **given)
    np.testing.assert_array_equal(alone.quaternion[:, 0], together.quaternion[:, 0])


def scaled(mass: float, rate: float) -> tuple[np.ndarray, ...]:
    """The same tops with other units of mass and time: attitudes as before at the times t/rate."""
    moments, q, m, mgl = tops(LANES)
    return moments * mass, q, m * mass * rate, mgl * mass * rate**2


@pytest.mark.parametrize(("mass", "rate"), [(1e42, 1.0), (1e-42, 1.0), (1.0, 1e9), (1.0, 1e-9), (1e30, 1e-20)])
def test_units_of_mass_and_time_do_not_matter(mass: float, rate: float) -> None:
    """Single precision has numbers from 1e-38 to 1e38; what lies outside is computed in double precision."""
    usual, other = scaled(1.0, 1.0), scaled(mass, rate)
    for tol in (1e-6, 1e-10):
        ends = [
            ph.ensemble(*given[:3], field=weight, params={"mgl": given[3]}, step_tol=tol, t_end=end).quaternion[-1]
            for given, end in ((usual, END), (other, END / rate))
        ]
        assert angle(*ends).max() < 30 * tol


def test_a_body_out_of_range_does_not_change_the_bits_of_its_neighbours() -> None:
    usual, huge = scaled(1.0, 1.0), scaled(1e42, 1.0)
    mixed = tuple(np.where(np.arange(LANES).reshape(-1, *[1] * (a.ndim - 1)) % 3 == 0, b, a)
                  for a, b in zip(usual, huge, strict=True))  # fmt: skip
    ends = [
        ph.ensemble(*given[:3], field=weight, params={"mgl": given[3]}, step_tol=1e-8, t_end=END)
        for given in (usual, huge, mixed)
    ]
    for i in range(LANES):
        expected = ends[1 if i % 3 == 0 else 0]
        np.testing.assert_array_equal(ends[2].quaternion[-1, i], expected.quaternion[-1, i])
        np.testing.assert_array_equal(ends[2].momentum[-1, i], expected.momentum[-1, i])


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e-30, 1e-12])
def test_bodies_that_hardly_move_at_the_start(size: float) -> None:
    """Pendulums let go: what is small is not lost, and none of them stays where it is."""
    moments, q, _, mgl = tops(4)
    found = ph.ensemble(moments, q, [size, 0, size], field=weight, params={"mgl": mgl}, step_tol=1e-9, t_end=END)
    assert (found.failed == -1).all()
    for i in range(3):
        top = ph.Problem(ph.Body(moments[i]), weight(mgl=mgl[i]), attitude=q[i], momentum=[size, 0, size])
        assert angle(found.quaternion[-1, i], ph.solve(top, tol=1e-12, t_end=END).quaternion[-1]) < 1e-7


@pytest.mark.parametrize("speed", [0.0, 0.1])
def test_pendulums_whose_steps_change_much(speed: float) -> None:
    """Sums over pairs need a unit of time that suits the step; a first step, or one of another length, must not."""
    moments, q, m, mgl = tops(64)
    given = {"field": weight, "params": {"mgl": mgl}, "t_end": END}
    fine = ph.ensemble(moments, q, speed * m, step_tol=1e-15, **given)
    for tol in (1e-4, 1e-6, 1e-9, 1e-12):
        found = ph.ensemble(moments, q, speed * m, step_tol=tol, **given)
        assert angle(found.quaternion[-1], fine.quaternion[-1]).max() < 3 * tol


@pytest.mark.parametrize(("proposal", "suits"), [(0.1, False), (0.45, False), (0.6, True), (1.2, True), (1.9, True),
                                                 (2.2, False), (5.0, False)])  # fmt: skip
def test_a_step_much_longer_or_shorter_than_the_one_before_is_made_in_the_usual_way(proposal, suits) -> None:
    moments, q, m, mgl = tops(1)
    problem = ph.Problem(ph.Body(moments[0]), weight(mgl=mgl[0]), attitude=q[0], momentum=m[0])
    y, system = problem.kernel_data(number)
    order, given = lane_order(1e-9), (END, system, (1e18, 1e18))
    orders = mixed_orders(1e-9, order)
    expanded = body(problem.field, False)
    _, h, _, _ = controlled_taylor_step(expanded, number)(0.0, y, 0.0, *given, order)
    proposal *= h
    in_proposals = controlled_taylor_step(expanded, number, unit_of=lambda unit: unit)
    usual, _, _, _ = in_proposals(0.0, y, orders[2] * proposal, *given, order)
    found, step, _, _ = controlled_step_in_mixed_precision(expanded, number)(0.0, y, proposal, *given, orders)
    assert (found == usual) != suits
    assert step == pytest.approx(h, rel=1e-13)
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(usual), rtol=0, atol=1e-13)


@ph.torque(frame="body")
def mixture(t, R, omega, *, k):
    """Functions, quotients and powers, of everything that moves."""
    d = 2 + R[2][2] + 0.3 * ph.math.sin(2 * t) * R[0][1]
    push = k * ph.math.exp(-d) + ph.math.log(d) / d**3
    return push * R[2][1], ph.math.sqrt(d) * R[0][2] - k * omega[1] / (1 + omega[2] ** 2), ph.math.atan2(R[1][0], d)


@pytest.mark.slow
def test_a_field_with_functions() -> None:
    """The pulses below have one function, which is enough for the fast suite: this program takes 17 s to compile."""
    moments, q, m, k = tops(5)
    starts = [ph.Problem(ph.Body(moments[i]), mixture(k=k[i]), attitude=q[i], momentum=m[i]) for i in range(5)]
    fine = np.array([ph.solve(start, tol=1e-12, t_end=END).quaternion[-1] for start in starts])
    for tol in (1e-5, 1e-11):
        found = ph.ensemble(moments, q, m, field=mixture, params={"k": k}, step_tol=tol, t_end=END)
        assert angle(found.quaternion[-1], fine).max() < 100 * tol + 1e-11


@pytest.mark.usefixtures("plain_first")
def test_principal_axes_of_ones_own() -> None:
    moments, q, m, mgl = tops(5)
    turn = Rotation.from_rotvec([0.3, -1.0, 0.7]).as_matrix()
    tensors = [turn @ np.diag(i) @ turn.T for i in moments]
    found = ph.ensemble(np.array(tensors), q, m, field=weight, params={"mgl": mgl}, step_tol=1e-10, t_end=END)
    for i in range(5):
        top = ph.Problem(ph.Body(tensors[i]), weight(mgl=mgl[i]), attitude=q[i], momentum=m[i])
        assert angle(found.quaternion[-1, i], ph.solve(top, tol=1e-12, t_end=END).quaternion[-1]) < 1e-8


def test_free_bodies_are_exact() -> None:
    moments, q, m, _ = tops(4)
    found = ph.ensemble(moments, q, m, step_tol=1e-9, t_end=END)
    exact = ph.exact(ph.Problem(ph.Body(moments[3]), attitude=q[3], momentum=m[3]), END)
    assert found.steps is None
    assert angle(found.quaternion[-1, 3], exact.quaternion[0]) < 1e-14


def test_a_body_that_cannot_go_on_is_marked_and_the_others_go_on() -> None:
    """w = w0/(1 - k w0 t) is infinite at t = 1/(k w0): at 2 for the second body, never within the run for others."""
    k = np.array([0.01, 0.5, 0.02, 0.0])
    with pytest.warns(ph.ResultWarning, match=r"1 of 4 bodies failed .*: body 1; body 1 in step \d+: no step"):
        found = ph.ensemble([1, 1, 1], None, [1.0, 0, 0], field=growing, params={"k": k}, step_tol=1e-8, t_end=4.0)
    assert found.failed[1] > 3
    assert (found.failed[[0, 2, 3]] == -1).all()
    np.testing.assert_allclose(found.momentum[-1, [0, 2, 3], 0], 1 / (1 - 4 * k[[0, 2, 3]]), rtol=1e-6)
    assert np.isfinite(found.momentum[-1, 1]).all()
    assert found.momentum[-1, 1, 0] > 1e3


def test_a_pulse_is_not_stepped_over_and_rest_is_no_obstacle() -> None:
    params = {"size": [1.0, 2.0], "centre": 3.0, "width": 0.05}
    found = ph.ensemble([1, 1, 1], None, [0, 0, 0], field=bump, params=params, step_tol=1e-9, t_end=END)
    np.testing.assert_allclose(found.momentum[-1, :, 2], np.array([1.0, 2.0]) * 0.05 * np.sqrt(np.pi), rtol=1e-7)


# --- pairs in lanes, and the choice ------------------------------------------------------------------

PAIRS = ("verner87", "enright_verner76")


@pytest.fixture
def with_method(monkeypatch):
    """A function that makes all ensembles to a tolerance use one method."""

    def use(name):
        for module in (api, task):
            monkeypatch.setattr(module, "adaptive_method", lambda *given: ph.methods[name])

    return use


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_makes_the_same_steps_in_lanes_as_alone(name: str, with_method) -> None:
    moments, q, m, mgl = tops(2 * LANES + 3)
    with_method(name)
    tol = 1e-6
    found = ph.ensemble(moments, q, m, field=weight, params={"mgl": mgl}, step_tol=tol, t_end=END)
    assert found.method == name
    for i in range(0, len(moments), 5):
        top = ph.Problem(ph.Body(moments[i]), weight(mgl=mgl[i]), attitude=q[i], momentum=m[i])
        path = Run(top, step_control.estimated(top, ph.methods[name]), END, tol)()
        assert abs(found.steps[i] - (len(path.times) - 1)) <= 1  # factors of the step differ by some 1e-3 where rough
        assert angle(found.quaternion[-1, i], path.rows[-1][:4]) < 30 * tol


@pytest.mark.parametrize("name", PAIRS)
def test_the_bits_of_a_pair_do_not_depend_on_the_company(name: str, with_method) -> None:
    """Slow and fast tops: the factors of some steps are rough, those of others are not."""
    moments, q, m, mgl = tops()
    m = m * np.logspace(-2, 1, len(m))[:, None]
    with_method(name)
    given = {"field": weight, "step_tol": 1e-7, "t_end": END}
    together = ph.ensemble(moments, q, m, params={"mgl": mgl}, **given)
    order = np.random.default_rng(1).permutation(len(moments))
    shuffled = ph.ensemble(moments[order], q[order], m[order], params={"mgl": mgl[order]}, **given)
    np.testing.assert_array_equal(shuffled.quaternion, together.quaternion[:, order])
    np.testing.assert_array_equal(shuffled.momentum, together.momentum[:, order])
    np.testing.assert_array_equal(shuffled.steps, together.steps[order])
    for i in (0, len(m) - 1):
        one = slice(i, i + 1)
        alone = ph.ensemble(moments[one], q[one], m[one], params={"mgl": mgl[one]}, **given)
        np.testing.assert_array_equal(alone.quaternion[:, 0], together.quaternion[:, i])


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_that_cannot_go_on_and_bodies_at_rest(name: str, with_method) -> None:
    with_method(name)
    k, start = np.array([0.01, 0.5, 0.02, 0.0]), [[1.0, 0, 0], [1.0, 0, 0], [1.0, 0, 0], [0, 0, 0]]
    with pytest.warns(ph.ResultWarning, match=r"1 of 4 bodies failed .*: body 1"):
        found = ph.ensemble([1, 1, 1], None, start, field=growing, params={"k": k}, step_tol=1e-8, t_end=4.0)
    np.testing.assert_allclose(found.momentum[-1, [0, 2], 0], 1 / (1 - 4 * k[[0, 2]]), rtol=1e-6)
    assert np.isfinite(found.momentum).all()
    assert found.steps[3] < 5  # nothing moves: the first step is a fifth of the run, and steps grow by factors of 5

    for size in (1e-30, 1e30):
        given = scaled(size, 1.0)
        ends = ph.ensemble(*given[:3], field=weight, params={"mgl": given[3]}, step_tol=1e-6, t_end=END)
        assert (ends.failed == -1).all()


@ph.potential
def quadratic(R, *, mgl):
    return mgl * (R[2][0] ** 2 + 2 * R[2][1] ** 2 + 3 * R[2][2] ** 2)


def test_the_choice_is_the_measured_one() -> None:
    """By `validation/lane_steps.py`: the low pair near 1e-3, Taylor for tops from 1e-6 on and where functions are."""
    chosen = {tol: adaptive_method(weight(mgl=1.0), tol).name for tol in (1e-2, 2e-3, 1e-6, 1e-9, 1e-12)}
    assert chosen == {1e-2: "enright_verner76", 2e-3: "enright_verner76", 1e-6: "taylor(12)", 1e-9: "taylor(16)",
                      1e-12: "taylor(19)"}  # fmt: skip
    assert [adaptive_method(quadratic(mgl=1.0), tol).name for tol in (1e-3, 1e-8)] == ["enright_verner76", "verner87"]
    assert adaptive_method(mixture(k=1.0), 1e-3).name.startswith("taylor")


# --- the error at the end ---------------------------------------------------------------------------


def upright(number: int = 2 * LANES + 3):
    """Slow tops that nearly stand on their points: some fall at once, others late, and errors grow meanwhile."""
    moments, _, momenta, mgl = tops(number)
    half = np.logspace(-5, 0, number) / 2
    return moments, np.stack([np.cos(half), np.sin(half), 0 * half, 0 * half], 1), momenta / 20, mgl


LONG = {"field": weight, "t_end": 25.0}


def errors(found, fine) -> np.ndarray:
    size = np.linalg.norm(fine.momentum, axis=-1).max(0)
    gap = np.linalg.norm(found.momentum[-1] - fine.momentum[-1], axis=-1) / size
    return np.maximum(angle(found.quaternion[-1], fine.quaternion[-1]), gap)


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_tol_is_the_error_at_the_end(tol: float) -> None:
    *start, mgl = upright()
    fine = ph.ensemble(*start, params={"mgl": mgl}, step_tol=1e-15, **LONG)
    rough = ph.ensemble(*start, params={"mgl": mgl}, step_tol=tol, **LONG)
    assert errors(rough, fine).max() > 30 * tol  # what an error of tol in every step comes to
    assert rough.error_estimate is None
    found = ph.ensemble(*start, params={"mgl": mgl}, tol=tol, **LONG)
    assert errors(found, fine).max() < tol
    assert found.error_estimate.max() <= tol
    assert (found.failed == -1).all()
    assert found.steps.min() > 0


def test_with_tol_too_the_bits_do_not_depend_on_the_company() -> None:
    moments, q, m, mgl = upright()
    given = {"tol": 1e-7, **LONG}
    together = ph.ensemble(moments, q, m, params={"mgl": mgl}, **given)
    assert len(set(together.steps.tolist())) > 5
    order = np.random.default_rng(2).permutation(len(moments))
    shuffled = ph.ensemble(moments[order], q[order], m[order], params={"mgl": mgl[order]}, **given)
    for name in ("steps", "failed", "error_estimate"):
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(together, name)[order])
    for name in ("quaternion", "momentum"):
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(together, name)[:, order])
    for i in (0, 9, len(moments) - 1):
        one = slice(i, i + 1)
        alone = ph.ensemble(moments[one], q[one], m[one], params={"mgl": mgl[one]}, **given)
        np.testing.assert_array_equal(alone.quaternion[:, 0], together.quaternion[:, i])


def test_what_is_out_of_reach_is_said() -> None:
    *start, mgl = upright()
    said = r"may be above tol = 1e-13 for \d+ of \d+ bodies, .*: bodies \d+, .*largest estimate is"
    with pytest.warns(ph.ResultWarning, match=said):
        found = ph.ensemble(*start, params={"mgl": mgl}, tol=1e-13, **LONG)
    assert (found.failed == -1).all()
    assert (found.error_estimate > 1e-13).sum() > 3
    with pytest.warns(ph.ResultWarning, match="tol = 1e-15 for the body,"):
        free = ph.ensemble(start[0][0], None, [0, 0, 1.0], tol=1e-15, t_end=100.0)
    assert 1e-15 < free.error_estimate[0] < 1e-12


def test_a_body_that_fails_has_no_estimate() -> None:
    with pytest.warns(ph.ResultWarning, match=r"1 of 2 bodies failed"):
        found = ph.ensemble([1, 1, 1], None, [1.0, 0, 0], field=growing, params={"k": [0.5, 0.01]}, tol=1e-6, t_end=4.0)
    assert found.failed[0] > 3
    assert np.isnan(found.error_estimate[0])
    assert found.error_estimate[1] <= 1e-6
    assert abs(found.momentum[-1, 1, 0] - 1 / 0.96) < 1e-6


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tol": 1e-9}, "give t_end, and either tol"),
        ({"step_tol": 1e-9}, "give t_end, and either tol"),
        ({"t_end": 1.0}, "give t_end, and either tol"),
        ({"tol": 1e-9, "step_tol": 1e-9, "t_end": 1.0}, "give t_end, and either tol"),
        ({"tol": 1e-30, "t_end": 1.0}, "tol must be from"),
        ({"step_tol": 1e-30, "t_end": 1.0}, "step_tol must be from"),
        ({"tol": "small", "t_end": 1.0}, "tol"),
        ({"tol": 1e-9, "t_end": 0.0}, "t_end must differ from t0"),
        ({"tol": 1e-9, "t_end": 1.0, "dt": 0.1}, "leave out `dt`"),
        ({"step_tol": 1e-9, "t_end": 1.0, "method": "imidm"}, "leave out `method`"),
        ({"tol": 1e-9, "t_end": 1.0, "every": 3}, "its own steps.*give times="),
        ({"tol": 1e-9, "t_end": 1.0, "statistics": "energy"}, "give times=.*count fast phases more often"),
        ({"tol": 1e-9, "t_end": 1.0, "times": [0.5, 2.0]}, "times must lie between t0 = 0 and t_end = 1"),
        ({"tol": 1e-9, "times": [0.0]}, "t_end must differ from t0"),
        ({"tol": 1e-9, "t_end": 1.0, "resume": True}, "resume needs a file"),
        ({"tol": 1e-9, "t_end": 1.0, "device": "gpu"}, "device must be one of 'cpu', 'cuda'"),
        ({"tol": 1e-9, "t_end": 1.0, "field": walled, "params": {"k": 1.0}, "device": "cuda"}, "one by one on the"),
        ({"tol": 1e-9, "t_end": 1.0, "field": walled, "params": {"k": 1.0}, "out": "x.zarr"}, "one by one, in memory"),
        ({"method": "imidm", "dt": 0.1}, "needs either method, dt and steps"),
    ],
)
def test_what_does_not_go_together_is_said(given, said) -> None:
    field = {"field": weight, "params": {"mgl": 1.0}} | given
    with pytest.raises(ph.InputError, match=said):
        ph.ensemble([1, 2, 2.5], None, [0, 0, 1.0], **field)


def gained(centres, **limits):
    """The momenta that bodies at rest gain from short pulses at these times, over the right one."""
    centres, width = np.asarray(centres, dtype=float), 0.05
    params = {"size": 1.0, "centre": centres, "width": width}
    rest = np.zeros((max(2, centres.size), 3))
    many = ph.ensemble([1.0, 2.0, 2.5], None, rest, field=bump, params=params, step_tol=1e-9, t_end=100.0, **limits)
    return many.momentum[-1, :, 2] / (width * np.sqrt(np.pi))


def test_a_short_pulse_is_not_stepped_over():
    np.testing.assert_allclose(gained(61.7), 1, rtol=1e-7)
    np.testing.assert_allclose(gained([61.7, 3.2, 3.3]), 1, rtol=1e-7)
    assert gained([61.7, 3.2, 3.3])[0] == gained(61.7)[0]


def test_pulses_that_differ_in_too_many_bodies_are_told():
    centres = np.linspace(20.0, 80.0, 40)
    with pytest.warns(ph.ResultWarning, match=r"may be missed; give max_step"):
        lost = gained(centres)
    assert lost.min() < 0.5
    np.testing.assert_allclose(gained(centres, max_step=0.05), 1, rtol=1e-7)
    with pytest.raises(ph.InputError, match="max_step is for adaptive steps"):
        ph.ensemble([1.0, 2.0, 2.5], None, np.ones((2, 3)), "dmv2", dt=0.1, steps=1, max_step=0.1)


@pytest.mark.parametrize("how", [{"tol": 1e-8}, {"step_tol": 1e-8}, {"tol": 1e-8, "control": True}], ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_body_run_by_itself_keeps_its_states_until_it_fails(how, sign) -> None:
    """As in lanes; its estimate is not a number, and is not reported as missed."""

    @ph.potential
    def bent(R, c):
        return abs(R[0][2]) + (c - R[2][2]) ** 0.5

    @ph.controller
    def braking(omega):
        return -0.01 * omega[0], -0.01 * omega[1], -0.01 * omega[2]

    how = dict(how)
    law = {"control": braking, "period": 0.05} if how.pop("control", False) and sign > 0 else {}
    momentum = [-0.9 * sign, -0.4 * sign, 0.5 * sign]  # the same motion, forwards or backwards
    start = {"attitude": [math.cos(0.86), math.sin(0.86), 0.0, 0.0], "momentum": momentum}
    one = ph.Problem(ph.Body([1.5, 2.0, 2.5]), bent(c=0.5), **start)
    times = sign * np.array([0.1, 0.2, 0.3, 3.0])
    with pytest.warns(ph.ResultWarning) as told:
        many = ph.ensemble(one, momentum=[momentum] * 2, times=times, **law, **how)
    assert ["2 of 2 bodies failed" in str(x.message) for x in told] == [True]
    assert (many.failed > 0).all()
    assert many.error_estimate is None or np.isnan(many.error_estimate).all()
    short = ph.solve(one, times=times[:3], progress=False, **law, **how)
    np.testing.assert_allclose(many.quaternion[:3, 0], short.quaternion, atol=1e-7)
    assert np.isfinite(many.quaternion).all()
    assert many[0].t.tolist() == times[:3].tolist()


def test_results_with_a_tolerance_can_be_pickled() -> None:
    for how in ({"tol": 1e-6}, {"step_tol": 1e-6}):
        many = ph.ensemble(ph.problems.heavy_top(), momentum=np.eye(3), t_end=1.0, **how)
        copy = pickle.loads(pickle.dumps(many))
        assert np.array_equal(copy.quaternion, many.quaternion)
        assert np.array_equal(copy.steps, many.steps)


def test_a_controller_that_fails_at_the_last_sample() -> None:
    """The body has reached the last time; that state is the last good one."""

    @ph.controller
    def until_the_end(t):
        return 0.001 * ph.math.sqrt(1.0 - 1e-9 - t), 0.0, 0.0

    problem = ph.Problem(ph.Body([1.0, 2.0, 2.5]), ph.fields.gravity(mgl=1.0), omega=[0.3, 0.2, 1.0])
    with pytest.warns(ph.ResultWarning, match="2 of 2 bodies failed"):
        many = ph.ensemble(
            problem, omega=[[0.3, 0.2, 1.0]] * 2, times=[0.5, 1.0], control=until_the_end, period=0.05, step_tol=1e-8
        )
    assert (many.failed > 0).all()
    assert np.isfinite(many.quaternion).all()

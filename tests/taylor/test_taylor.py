"""The Taylor series flow against closed forms, invariants, published digits and independent integrations."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest
from mpmath import mpf

import polhode as ph
from in_digits import energy, start
from polhode.analysis import reference
from polhode.kernels.so3 import conj, dot, mul, rotate
from polhode.numbers.primitives import FUNCTIONS
from polhode.symbolic.expression import Expr, lift, symbol
from polhode.taylor import graph, interpreter

DIGITS = 50
EXACT = mpf(10) ** -49  # flow(digits=50) truncates each expansion at 1e-54; tens of expansions, growth below 1e3


@pytest.fixture(autouse=True)
def _many_digits() -> Any:
    with mpmath.workdps(DIGITS + 15):
        yield


def turn(axis: Any, angle: Any) -> Any:
    """Quaternion of the rotation through an angle about an axis of any length."""
    length = mpmath.sqrt(sum(x * x for x in axis))
    return (mpmath.cos(angle / 2), *(x / length * mpmath.sin(angle / 2) for x in axis))


def gap(a: Any, b: Any) -> Any:
    """Largest difference of two states, the quaternion's sign included."""
    return max(abs(x - y) for x, y in zip((*a[0], *a[1]), (*b[0], *b[1]), strict=True))


# --- the recursions ---------------------------------------------------------------------------------

TWO_ARGUMENTS = {"atan2": lambda x: (x, 2 - x * x), "power": lambda x: (x, 1 + x)}


@pytest.mark.parametrize("name", [*FUNCTIONS, "div", "constant power"])
def test_coefficients_of_every_function_are_its_derivatives(name: str) -> None:
    """With x' = 1 and y' = f(x), (k+1) y_(k+1) is the k-th Taylor coefficient of f, which mpmath differentiates."""
    x0, order = mpf(3) / 10, 9
    if name == "div":
        node, plain = _both(lambda x, lib: (1 + x) / (2 - x * x))
    elif name == "constant power":
        node, plain = _both(lambda x, lib: lib("power")(x, lift(2.5) if isinstance(x, Expr) else mpf(2.5)))
    else:
        node, plain = _both(lambda x, lib: lib(name)(*TWO_ARGUMENTS.get(name, lambda x: (x,))(x)))
    x, y = symbol("x"), symbol("y")
    series = interpreter.expansion(graph.plan([x, y], [lift(1), node]), {"x": x0, "y": mpf(0), "t": mpf(0)}, order + 1)
    wanted = mpmath.taylor(plain, x0, order)
    for k, c in enumerate(wanted):
        assert abs((k + 1) * series[y][k + 1] - c) <= mpf(10) ** -40 * (1 + abs(c))  # differences keep 65 - 25 digits


def _both(formula: Any) -> tuple[Expr, Any]:
    """A formula as a graph of the symbol x, and as a function of mpmath numbers."""
    traced = formula(symbol("x"), lambda name: lambda *args: Expr.make(name, *(lift(a) for a in args)))
    return traced, lambda x: formula(x, lambda name: getattr(mpmath, name))


# --- closed forms -----------------------------------------------------------------------------------


def test_spherical_body_turns_about_its_momentum() -> None:
    problem = ph.Problem(ph.Body([2, 2, 2]), attitude=(0.5, 0.5, -0.5, 0.5), momentum=[1, -2, 3])
    q, m = start(problem)
    wanted = mul(q, turn(m, mpmath.sqrt(14) * 3 / 2)), m  # |omega| t = sqrt(14)/2 * 3
    assert gap(reference.flow(problem, 3), wanted) <= EXACT


def test_symmetric_body_turns_about_momentum_and_axis() -> None:
    """R(t) = exp(t L/I1) R0 exp(t (1/I3 - 1/I1) m3 e3)."""
    problem = ph.Problem(ph.Body([2, 2, 1]), attitude=(0.5, 0.5, -0.5, 0.5), momentum=[1, -2, 3], t0=4.0)
    (q, m), t = start(problem), mpf(7)
    space = rotate(q, m)
    q_end = mul(turn(space, mpmath.sqrt(14) * t / 2), mul(q, turn((0, 0, 1), 3 * t / 2)))
    m_end = rotate(conj(q_end), space)
    assert gap(reference.flow(problem, t), (q_end, m_end)) <= EXACT


def test_linear_body_runs_along_a_great_circle() -> None:
    problem = ph.Problem(ph.Body([3, 3, 0]), momentum=[1, 2, 0])
    wanted = turn((1, 2, 0), mpmath.sqrt(5)), (mpf(1), mpf(2), mpf(0))  # |omega| t = sqrt(5)/3 * 3
    assert gap(reference.flow(problem, 3), wanted) <= EXACT


def test_linear_body_in_axes_of_the_users() -> None:
    problem = ph.Problem(ph.Body([[1.5, 1.5, 0], [1.5, 1.5, 0], [0, 0, 3]]), momentum=[1, 1, 1])
    wanted = turn((1, 1, 1), mpmath.sqrt(3)), (mpf(1), mpf(1), mpf(1))
    assert (
        gap(reference.flow(problem, 3), wanted) <= 4e-15
    )  # its axis is a pair of rounded 1/sqrt(2): 1.1e-16 each, t = 3


@ph.torque
def wind(t: Any, R: Any, omega: Any, k: Any) -> Any:
    """A torque of everything: time, attitude and velocity."""
    gust = math.exp(math.sin(2 * t)) * R[0][2]
    return (
        gust - k * omega[0],
        R[1][2] / (2 + math.cos(t)) - k * omega[1] * omega[2],
        -k * math.atan2(omega[2], t + 2),
    )


def test_axes_of_the_users_only_rename_the_motion() -> None:
    """A tensor with principal moments 2, 3, 4 and axes at 45 degrees, against the same body straight."""
    tensor = [[2.5, 0.5, 0], [0.5, 2.5, 0], [0, 0, 4]]
    a = turn((0, 0, 1), -mpmath.pi / 4)  # principal to user axes: e1 becomes (1, -1, 0)/sqrt(2), of moment 2
    tilted = ph.Problem(ph.Body(tensor), ph.fields.gravity(3.0), momentum=[1, 2, -1])
    straight = ph.Problem(ph.Body([2, 3, 4]), ph.fields.gravity(3.0), momentum=[0, 0, 0])
    q, m = start(tilted)
    q_end, m_end = reference.flow(straight, 2, state=(mul(q, a), rotate(conj(a), m)))
    assert gap(reference.flow(tilted, 2), (mul(q_end, conj(a)), rotate(a, m_end))) <= EXACT


@ph.torque
def switched(t: Any, omega: Any, t1: Any) -> Any:
    """Pushes until t1, then pulls as strongly."""
    return (0.0, 0.0, ph.where(t < t1, 1.0, -1.0) * abs(omega[2] + 2) / (omega[2] + 2))


def test_a_branch_is_cut_at_its_switch() -> None:
    """Momentum t until 1/2, then 1 - t: zero at 1, angle 1/4 over I = 2; then it falls until 2 to -1, angle -1/4."""
    problem = ph.Problem(ph.Body([2, 2, 2]), switched(0.5), momentum=[0, 0, 0])
    for end, momentum, angle in ((1, 0, mpf(1) / 8), (2, -1, -mpf(1) / 8)):
        wanted = turn((0, 0, 1), angle), (mpf(0), mpf(0), mpf(momentum))
        assert (
            gap(reference.flow(problem, end), wanted) <= EXACT * 10
        )  # the cut lies at most 1e-50 (1 + h) behind the switch


@ph.torque
def rubbing(omega: Any) -> Any:
    """Dry friction about the third axis of magnitude 1, reversed with the velocity; zero behind the reversal."""
    return (0.0, 0.0, ph.where(omega[2] > 0, -1.0, 0.0))


def test_a_branch_on_the_velocity_stops_the_body() -> None:
    problem = ph.Problem(ph.Body([1, 1, 1]), rubbing(), momentum=[0, 0, 1])
    wanted = turn((0, 0, 1), mpf(1) / 2), (mpf(0), mpf(0), mpf(0))  # stops at t = 1 after half a radian
    assert gap(reference.flow(problem, 3), wanted) <= EXACT * 10


# --- invariants -------------------------------------------------------------------------------------


def test_free_body_keeps_energy_and_spatial_momentum() -> None:
    problem = ph.problems.free_body()
    state = reference.flow(problem, 10)
    assert abs(energy(problem, state) - energy(problem, start(problem))) <= mpf(10) ** -45
    q, m = start(problem)
    change = [a - b for a, b in zip(rotate(*state), rotate(q, m), strict=True)]
    assert max(abs(x) for x in change) <= mpf(10) ** -45
    assert abs(mpmath.sqrt(dot(m, m)) - mpmath.sqrt(dot(state[1], state[1]))) <= mpf(10) ** -45


@pytest.mark.parametrize(("name", "h"), [("slow_top", 2), ("fast_top", 1), ("soft_wall", 1), ("coulomb_wall", 1)])
def test_potentials_keep_the_energy_and_the_vertical_momentum(name: str, h: int) -> None:
    problem = ph.problems.get(name)
    begin, end = start(problem), reference.flow(problem, h)
    assert abs(energy(problem, end) / energy(problem, begin) - 1) <= mpf(10) ** -45
    assert abs(rotate(*end)[2] - rotate(*begin)[2]) <= mpf(10) ** -45
    assert gap(begin, end) > 0.1  # it did move


@pytest.mark.parametrize("name", ["free_body", "fast_top", "soft_wall"])
def test_there_and_back_is_the_identity(name: str) -> None:
    problem = ph.problems.get(name)
    there = reference.flow(problem, 0.5)
    assert gap(reference.flow(problem, -0.5, t=0.5, state=there), start(problem)) <= EXACT


def test_two_flows_make_one_flow() -> None:
    problem = ph.Problem(ph.Body([1, 2, 2.5]), wind(0.25), omega=[1.0, 0.5, -2.0], t0=0.25)
    half = reference.flow(problem, 0.75)
    assert gap(reference.flow(problem, 0.75, t=1, state=half), reference.flow(problem, 1.5)) <= EXACT


# --- independent integrations and published numbers -------------------------------------------------


def test_torque_of_time_and_velocity_against_mpmaths_integrator() -> None:
    """The same equations written out, integrated by mpmath.odefun."""
    inertia, k = (mpf(1), mpf(2), mpf(2.5)), mpf(0.25)
    problem = ph.Problem(ph.Body([1, 2, 2.5]), wind(0.25), omega=[1.0, 0.5, -2.0], t0=0.25)

    def rates(t: Any, y: Any) -> Any:
        (w, x, yy, z), m = y[:4], y[4:]
        o = [a / b for a, b in zip(m, inertia, strict=True)]
        r02, r12 = 2 * (x * z + w * yy), 2 * (yy * z - w * x)
        force = (
            mpmath.exp(mpmath.sin(2 * t)) * r02 - k * o[0],
            r12 / (2 + mpmath.cos(t)) - k * o[1] * o[2],
            -k * mpmath.atan2(o[2], t + 2),
        )
        return [
            (-x * o[0] - yy * o[1] - z * o[2]) / 2,
            (w * o[0] + yy * o[2] - z * o[1]) / 2,
            (w * o[1] + z * o[0] - x * o[2]) / 2,
            (w * o[2] + x * o[1] - yy * o[0]) / 2,
            m[1] * o[2] - m[2] * o[1] + force[0],
            m[2] * o[0] - m[0] * o[2] + force[1],
            m[0] * o[1] - m[1] * o[0] + force[2],
        ]

    q, m = start(problem)
    with mpmath.workdps(20):
        end = mpmath.odefun(rates, mpf(0.25), [*q, *m])(mpf(0.75))
    assert gap(reference.flow(problem, 0.5), (end[:4], end[4:])) <= 1e-18  # odefun was asked for 20 digits


def test_nasa_check_case_2() -> None:
    """Tumbling brick. In degrees of angle (time unit 180/pi s) and 1e-9 slug ft^2 its data are whole numbers."""
    inertia = (1894220, 6211019, 7194665)
    problem = ph.Problem(ph.Body(inertia), omega=[10, 20, 30])
    q, m = reference.flow(problem, 30 * mpmath.pi / 180, 25)
    omega = [x / i for x, i in zip(m, inertia, strict=True)]
    published = [12.6183907757, -17.3974747619, 31.1195888868]  # SIM 4, itself 4e-10 from the reference
    printed = ["12.6183907759142197", "-17.3974747616113931", "31.1195888869443444"]
    turned = ["-0.88114718531042352", "0.47018252776669253", "0.0117282523248711814", "0.0486875394720837703"]
    assert max(abs(a - b) for a, b in zip(omega, published, strict=True)) <= 4e-10
    assert [agrees(a, b) for a, b in zip((*omega, *q), (*printed, *turned), strict=True)] == [True] * 7


def agrees(value: Any, text: str) -> bool:
    """Does a number round to the printed digits (to one unit of the last of them)."""
    return bool(abs(value - mpf(text)) <= mpf(10) ** -len(text.split(".")[1]))


def test_case_of_the_dmv10_driver() -> None:
    """I = (0.6, 0.8, 1), y = (1.8, 0.4, -0.9), t = 10; times 5 and 10, at half the time, they are whole."""
    problem = ph.Problem(ph.Body([3, 4, 5]), momentum=[18, 4, -9])
    q, m = reference.flow(problem, 5, 25)
    printed = ["1.7659625085182075", "-0.69546419703308912", "0.77955498148187109"]
    turned = ["-0.73606136416079394", "-0.57078695124035073", "-0.29938857183079009", "-0.20683908610467319"]
    assert [agrees(a, b) for a, b in zip((*(x / 10 for x in m), *q), (*printed, *turned), strict=True)] == [True] * 7


def test_third_top_of_simo_and_wong() -> None:
    """Tilt 0.05, spin 50: energy and the axis R e3 at t = 1 and 10 to the printed digits."""
    tilt = (math.cos(0.025), math.sin(0.025), 0.0, 0.0)
    problem = ph.Problem(ph.Body([5, 5, 1]), ph.fields.gravity(20.0), attitude=tilt, omega=[0, 0, 50])
    assert agrees(energy(problem, start(problem)), "1269.9750052079")
    one = reference.flow(problem, 1, 12)
    ten = reference.flow(problem, 9, 12, t=1, state=one)
    assert all(map(agrees, rotate(one[0], (0, 0, 1)), ("0.0215411", "-0.05001034", "0.99851637")))
    assert all(map(agrees, rotate(ten[0], (0, 0, 1)), ("-0.04713223", "0.02674869", "0.99853045")))


def test_solution_knows_its_error() -> None:
    problem = ph.problems.soft_wall()
    q, m, error = reference.solution(problem, 2.0, 15)
    truth = reference.flow(problem, 2.0, 40)
    assert 0 < error <= 1e-15
    assert gap((q, m), truth) <= error  # the second run is the better one

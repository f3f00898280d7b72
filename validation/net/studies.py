"""What is computed from runs: chaos, periods of free bodies, modified energies, attitudes from angular velocities."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

from .cases import ATTITUDE, OMEGA, ONE, TENSOR, Fields, Units, gravity, smooth
from .check import Cell
from .runs import ROUND_OFF

UNITS = ((60, 0), (0, -60), (-40, 40))
"""Powers of two of the units of time and of inertia."""


def _in(units: Units, field: Fields) -> ph.Problem:
    body = ph.Body(TENSOR * units.inertia)
    return ph.Problem(body, field(units), euler=ATTITUDE, omega=OMEGA / units.time)


TOP, PUSHED = _in(ONE, gravity), _in(ONE, smooth)
SYMMETRIC = ph.Problem(ph.Body([1.0, 1.0, 1.3]), gravity(ONE), euler=ATTITUDE, omega=OMEGA)
FREE = ph.Problem(ph.Body([1.0, 1.7, 2.3]), omega=OMEGA, euler=ATTITUDE)
WORDS = ("megno", "mean_megno", "fli", "lyapunov")
TIMES = np.linspace(0.25, 5.0, 20)

# --- chaos ------------------------------------------------------------------------------------------


def _indicators(found: Any, body: int = 0) -> dict[str, Any]:
    """The indicators at the end, by the words of statistics."""
    values = found.megno, found.mean_megno, found.growth, found.exponent
    return {word: value[-1, body] for word, value in zip(WORDS, values, strict=True)}


def indicators_as_statistics(cell: Cell) -> None:
    """Statistics of one body and of an ensemble are the indicators of `ph.chaos`."""
    given: dict[str, Any] = {"step_tol": 1e-10, "t_end": 5.0, "times": TIMES}
    expected = _indicators(ph.chaos(TOP, **given))
    one, many = ph.solve(TOP, **given, statistics=WORDS), ph.ensemble(TOP, omega=[OMEGA], **given, statistics=WORDS)
    for word, value in expected.items():
        cell.close(f"{word} of an ensemble", many.statistics[word].last[0], value, ROUND_OFF)
        cell.close(f"{word} of one body", one.statistics[word].last, value, 1e-7)


def indicators_with_equal_steps(cell: Cell) -> None:
    """With equal steps, one body has the indicators of an ensemble, and nearly those of a tolerance."""
    given: dict[str, Any] = {"method": "strang(rot123)", "dt": 0.005, "t_end": 5.0, "statistics": WORDS}
    expected = _indicators(ph.chaos(TOP, step_tol=1e-10, t_end=5.0))
    one, many = ph.solve(TOP, **given), ph.ensemble(TOP, momentum=[TOP.momentum], **given)
    for word, value in expected.items():
        cell.same(f"{word} of an ensemble", many.statistics[word].last[0], one.statistics[word].last)
        cell.close(f"{word} of equal steps", one.statistics[word].last, value, 1e-3)


def indicators_of_many(cell: Cell) -> None:
    """Indicators of a motion depend neither on the others nor on their number; those of a tolerance are close."""
    momentum = np.outer(1 + 0.05 * np.arange(19), TOP.momentum)
    many = ph.chaos(TOP, momentum=momentum, t_end=5.0, step_tol=1e-10, frequency=1.3)
    one = _indicators(ph.chaos(TOP, t_end=5.0, step_tol=1e-10, frequency=1.3))
    to_tol = _indicators(ph.chaos(TOP, t_end=5.0, tol=1e-9, frequency=1.3))
    for word, value in _indicators(many).items():
        cell.same(f"{word} of the first of many", value, one[word])
        cell.close(f"{word} to a tolerance", to_tol[word], value, 1e-4)


def indicators_in_other_units(cell: Cell) -> None:
    """In other units of time and of inertia, indicators are the same."""
    base = _indicators(ph.chaos(_in(ONE, gravity), t_end=5.0, step_tol=1e-10))
    for a, b in UNITS:
        units = Units(2.0**a, 2.0**b)
        found = _indicators(ph.chaos(_in(units, gravity), t_end=5.0 * units.time, step_tol=1e-10))
        found["lyapunov"] = found["lyapunov"] * units.time
        for word, value in found.items():
            cell.close(f"{word}, time 2^{a}, inertia 2^{b}", value, base[word], 1e-8)


def map_of_chaos(cell: Cell) -> None:
    """A point of a map is the motion alone."""
    x, y = ("x", [0.2, 0.9]), ("y", [-0.4, 0.1, 0.7])

    def start(a: Any, b: Any) -> dict[str, Any]:
        return {"omega": np.stack([a, b, 0 * a + 1.1], axis=1)}

    found = ph.chaos_map(TOP, x, y, start, t_end=5.0, step_tol=1e-10, frequency=1.3)
    one = ph.chaos(TOP, omega=(0.9, -0.4, 1.1), t_end=5.0, step_tol=1e-10, frequency=1.3)
    for name in ("growth", "exponent", "megno", "mean_megno", "fli"):
        cell.same(name, getattr(found, name)[0, 1], getattr(one, name)[-1, 0])
        cell.claim(getattr(found, name).shape == (3, 2), f"{name} has the shape {getattr(found, name).shape}")


def exponents(cell: Cell) -> None:
    """Lyapunov exponents of equal steps and of both tolerances agree; their sum is that of the volume."""
    given: dict[str, dict[str, Any]] = {
        "dt": {"method": "mkrk(gauss3)", "dt": 0.02, "steps": 150},
        "tol": {"tol": 1e-10, "t_end": 3.0},
        "step_tol": {"step_tol": 1e-11, "t_end": 3.0},
    }
    base = None
    for how, run in given.items():
        found = ph.lyapunov(PUSHED, **run)
        sol = ph.solve(PUSHED, **run, tangent=True)
        volume = np.linalg.slogdet(sol.tangent.matrix[-1])[1] / 3.0
        cell.close(f"sum, {how}", found.exponents.sum(), volume, 1e-9)
        cell.same(f"times, {how}", found.t, sol.t)
        base = found.exponents if base is None else base
        cell.close(f"exponents, {how}", found.exponents, base, 1e-3)
        again = ph.lyapunov(PUSHED, **run)
        cell.same(f"history, second call, {how}", again.history, found.history)


def exponents_in_other_units(cell: Cell) -> None:
    """In another unit of time and of inertia, exponents are in the inverse of that unit."""
    base = ph.lyapunov(PUSHED, "mkrk(gauss3)", dt=0.02, steps=100).exponents
    for a, b in UNITS:
        units = Units(2.0**a, 2.0**b)
        found = ph.lyapunov(_in(units, smooth), "mkrk(gauss3)", dt=0.02 * units.time, steps=100).exponents
        cell.close(f"time 2^{a}, inertia 2^{b}", found * units.time, base, 1e-10)


# --- free bodies ------------------------------------------------------------------------------------


def period_of_a_body(cell: Cell) -> None:
    """After a period the momentum is back, and the body has turned about it by the angle; in 30 digits too."""
    period, angle = ph.period(FREE), ph.precession_angle(FREE)
    cell.close("period in digits", float(ph.period(FREE, digits=30)), period, ROUND_OFF)
    cell.close("angle in digits", float(ph.precession_angle(FREE, digits=30)), angle, ROUND_OFF)
    ends = {
        "exact": ph.exact(FREE, [0.0, period]),
        "tol": ph.solve(FREE, tol=1e-11, t_end=period),
        "step_tol": ph.solve(FREE, step_tol=1e-12, t_end=period),
    }
    for name, sol in ends.items():
        cell.close(f"momentum, {name}", sol.momentum[-1], sol.momentum[0], 1e-9)
        axis = sol.spatial_momentum[0] / np.linalg.norm(sol.spatial_momentum[0])
        turn = (sol.rotation[-1] * sol.rotation[0].inv()).as_rotvec() @ axis
        cell.close(f"turn, {name}", np.exp(1j * (turn - angle)).imag, 0.0, 1e-9)


def period_of_tumbling(cell: Cell) -> None:
    """The periods from energy and momentum are those of the motion, and give it back; in other axes too."""
    momentum = float(np.linalg.norm(FREE.momentum))
    found = ph.tumbling(FREE.body, energy=FREE.energy(), momentum=momentum)
    cell.close("period", found.P_psi, ph.period(FREE), ROUND_OFF)
    back = ph.tumbling(FREE.body, P_psi=found.P_psi, P_phi=found.P_phi, mode=found.mode)
    cell.close("energy from periods", back.energy, FREE.energy(), 1e-8)
    cell.close("momentum from periods", back.momentum, momentum, 1e-8)
    start = ph.Problem(FREE.body, momentum=found.start)
    cell.close("period of its start", ph.period(start), found.P_psi, 1e-10)
    turn = np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2 + np.eye(3))[0]
    turned = ph.Body(turn @ np.diag(FREE.body.moments) @ turn.T)
    other = ph.tumbling(turned, energy=FREE.energy(), momentum=momentum)
    cell.close("periods in other axes", [other.P_psi, other.P_phi], [found.P_psi, found.P_phi], 1e-10)


def energies(cell: Cell) -> None:
    """The modified energy without corrections is the energy; each correction keeps it better; digits agree."""
    for name, problem, method in (("symmetric top", SYMMETRIC, "strang(symrot123)"), ("top", TOP, "strang(dmv2)")):
        sol = ph.solve(problem, method, dt=0.02, steps=40)
        cell.close(f"{name}: energy", ph.modified_energy(problem, sol, terms=0), sol.energy, ROUND_OFF)
        changes = [np.ptp(ph.modified_energy(problem, sol, terms=k)) for k in (0, 1, 2)]
        cell.claim(changes[0] > 30 * changes[1] > 0, f"{name}: changes of {changes} are not smaller with corrections")
        more = ph.solve(problem, method, dt=0.02, steps=40, digits=25)
        digits = np.array([float(x) for x in ph.modified_energy(problem, more, terms=1)])
        cell.close(f"{name}: in digits", ph.modified_energy(problem, sol, terms=1), digits, ROUND_OFF)
        pickled = pickle.loads(pickle.dumps(sol))
        cell.same(f"{name}: of a pickled run", ph.modified_energy(problem, pickled), ph.modified_energy(problem, sol))


# --- attitudes from angular velocities --------------------------------------------------------------


def _rate(t: Any) -> Any:
    return ph.math.sin(2 * t), 0.3 + 0.5 * ph.math.cos(t), -0.7 * ph.math.sin(t + 1)


def _rates(t: np.ndarray) -> np.ndarray:
    return np.stack([np.sin(2 * t), 0.3 + 0.5 * np.cos(t), -0.7 * np.sin(t + 1)], axis=-1)


def attitudes(cell: Cell) -> None:
    """To a tolerance, with equal steps, in digits, backwards and in the space frame, the attitude is the same."""
    start = np.array([0.6, 0.0, 0.8, 0.0])
    base = ph.kinematics(_rate, 3.0, attitude=start, tol=1e-13)
    end = base.quaternion[-1]
    stepped = ph.kinematics(_rate, 3.0, attitude=start, dt=0.05, order=12)
    digits = ph.kinematics(_rate, 3.0, attitude=start, dt=0.05, order=12, digits=25)
    cell.close("quaternion, equal steps", stepped.quaternion[-1], end, 1e-12)
    cell.close("quaternion, in digits", digits.quaternion, stepped.quaternion, 1e-13)
    back = ph.kinematics(_rate, 0.0, attitude=end, t0=3.0, tol=1e-13)
    cell.close("quaternion, backwards", back.quaternion[-1], start, 1e-11)
    cell.same("second call", ph.kinematics(_rate, 3.0, attitude=start, tol=1e-13).quaternion, base.quaternion)
    times = np.array([0.3, 1.7, 2.9])
    cell.close("quaternion, between steps", stepped.at(times).quaternion, base.at(times).quaternion, 1e-11)
    cell.close("quaternion, at steps", base.at(base.t).quaternion, base.quaternion, ROUND_OFF)
    # R' = R hat(w) and S' = hat(-w) S with S = R^T
    mirrored = ph.kinematics(_mirrored, 3.0, attitude=start * [1, -1, -1, -1], frame="space", tol=1e-13)
    cell.close("quaternion, in space", mirrored.quaternion[-1] * [1, -1, -1, -1], end, 1e-11)


def _mirrored(t: Any) -> Any:
    x, y, z = _rate(t)
    return -x, -y, -z


def attitudes_on_a_group(cell: Cell) -> None:
    """The attitude is that of `ph.lie.solve` on SO(3)."""
    base = ph.kinematics(_rate, 2.0, tol=1e-13)
    sol = ph.lie.solve("SO(3)", _rate, dt=0.05, steps=40, method="taylor(10)", trivialised="left")
    cell.close("matrix", sol.y[-1], base.matrix[-1], 1e-11)


def samples_of_gyros(cell: Cell) -> None:
    """Samples of rates and their integrals give the attitude of the angular velocity."""
    t = np.linspace(0.0, 2.0, 401)
    base = ph.kinematics(_rate, 2.0, tol=1e-13)
    cell.close(
        "quaternion, rates", ph.strapdown(t, rates=_rates(t), samples=8).quaternion[-1], base.quaternion[-1], 1e-9
    )
    whole = np.stack([-np.cos(2 * t) / 2, 0.3 * t + 0.5 * np.sin(t), 0.7 * np.cos(t + 1)], axis=-1)
    summed = ph.strapdown(t, increments=np.diff(whole, axis=0), samples=8)
    cell.close("quaternion, increments", summed.quaternion[-1], base.quaternion[-1], 1e-9)
    cell.close("quaternion, at samples", summed.at(t).quaternion, summed.quaternion, ROUND_OFF)
    force = np.stack([np.cos(3 * t), 0.5 * np.sin(t), 2 + np.sin(t)], axis=-1)
    with_force = ph.strapdown(t, rates=_rates(t), specific_force=force, samples=8)
    cell.same(
        "quaternion with accelerometers", with_force.quaternion, ph.strapdown(t, rates=_rates(t), samples=8).quaternion
    )
    gained = np.stack([np.sin(3 * t) / 3, -0.5 * np.cos(t), 2 * t - np.cos(t)], axis=-1)
    other = ph.strapdown(t, rates=_rates(t), velocity_increments=np.diff(gained, axis=0), samples=8)
    cell.close("velocity", other.velocity[-1], with_force.velocity[-1], 1e-8)


def samples_of_a_run(cell: Cell) -> None:
    """Samples of the angular velocity of a run give back its attitudes."""
    t = np.linspace(0.0, 2.0, 401)
    sol = ph.solve(TOP, tol=1e-12, t_end=2.0, times=t)
    back = ph.strapdown(t, rates=sol.omega, attitude=sol.quaternion[0], samples=8)
    cell.close(
        "quaternion",
        back.quaternion * np.sign((back.quaternion * sol.quaternion).sum(1))[:, None],
        sol.quaternion,
        1e-9,
    )


CELLS: dict[str, Callable[[Cell], None]] = {
    "indicators as statistics": indicators_as_statistics,
    "indicators with equal steps": indicators_with_equal_steps,
    "indicators of many": indicators_of_many,
    "indicators in other units": indicators_in_other_units,
    "map of chaos": map_of_chaos,
    "Lyapunov exponents": exponents,
    "Lyapunov exponents in other units": exponents_in_other_units,
    "period and precession": period_of_a_body,
    "tumbling": period_of_tumbling,
    "modified energy": energies,
    "kinematics": attitudes,
    "kinematics on a group": attitudes_on_a_group,
    "strapdown": samples_of_gyros,
    "strapdown of a run": samples_of_a_run,
}  # fmt: skip
"""By name."""

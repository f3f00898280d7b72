"""G. Vilmart, Rigid body dynamics (2013): statements on the algorithms, and formulas as printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from polhode.analysis.checks import changes, measured_order
from polhode.methods import methods
from polhode.numbers import floats
from polhode.physics.body import Body
from polhode.physics.library import gravity
from polhode.physics.problem import Problem
from polhode.run.exact import exact
from polhode.run.solve import solve

from .curves import listed
from .identities import apart
from .results import Outcome, Verdict, Watch, passed, result, zero

HOW = (
    "Identities, invariants and orders in 50 digits on a generic body (a defect below 1e-22 counts as zero). Formulas "
    "marked as printed are computed literally, in doubles, on the body I = (0.6, 0.8, 1.0); the library has "
    "the corrected ones."
)
MOMENTS, START = np.array([0.6, 0.8, 1.0]), np.array([1.8, 0.4, -0.9])

State = tuple[np.ndarray, np.ndarray]
Flow = Callable[[float, State], State]


def _rotated_state(state: State, axis: Sequence[float] | np.ndarray, angle: float) -> State:
    """Rotate y by -angle and Q by +angle about a body axis: a flow that conserves Q y."""
    y, Q = state
    turn = Rotation.from_rotvec(angle * np.asarray(axis)).as_matrix()
    return turn.T @ y, Q @ turn


def _about(j: int, rate: Callable[[np.ndarray], float]) -> Flow:
    """The rotation about axis j at a rate that depends on y."""
    return lambda t, state: _rotated_state(state, np.eye(3)[j], t * rate(state[0]))


def _error(step: Callable[[float, State], State], h: float) -> float:
    """Error of the attitude at t = 1, in the largest entry."""
    state: State = (START, np.eye(3))
    for _ in range(round(1 / h)):
        state = step(h, state)
    truth = exact(Problem(Body(MOMENTS.tolist()), momentum=START), [1.0]).matrix[0]
    return float(np.abs(state[1] - truth).max())


def _three_rotations(h: float, state: State) -> State:
    """R3(h/2) R2(h/2) R1(h) R2(h/2) R1(h/2), as printed; the rightmost acts first."""
    for j, part in ((0, 0.5), (1, 0.5), (0, 1.0), (1, 0.5), (2, 0.5)):
        state = _about(j, lambda y, j=j: y[j] / MOMENTS[j])(part * h, state)  # type: ignore[misc]  # a lambda has no types
    return state


def _algorithm_2(h: float, state: State) -> State:
    """Algorithm 2 with alpha = y1/I1 and beta = 1/I3 - 1/I2, as printed."""
    outer = _about(0, lambda y: y[0] / MOMENTS[0])
    y, Q = outer(h / 2, state)
    whole = Rotation.from_rotvec(h * y / MOMENTS[1]).as_matrix()
    beta = h * (1 / MOMENTS[2] - 1 / MOMENTS[1])
    spin = Rotation.from_rotvec([0, 0, beta]).as_matrix()
    return outer(h / 2, (spin.T @ y, Q @ whole @ spin))


def _printed(where: str, says: str, step: Callable[[float, State], State], right: str) -> Verdict:
    """Verdict on the convergence of a formula as printed."""
    coarse, fine = _error(step, 0.01), _error(step, 0.005)
    return Verdict(
        where, says, f"as printed: error {coarse:.2g} with h = 0.01, {fine:.2g} with h = 0.005; {right}",
        passed(abs(math.log2(coarse / fine) - 2) < 0.1),
    )  # fmt: skip


def _remark_3() -> Verdict:
    """Bodies for which Algorithm 2 is exact."""
    bodies = {"I1 = I2": (1.0, 1.0, 1.5), "I2 = I3": (0.8, 1.2, 1.2), "I1 = I3": (1.0, 1.4, 1.0)}
    errors = {}
    for label, moments in bodies.items():
        problem = Problem(Body(list(moments)), momentum=START)
        run = solve(problem, "symrot", dt=0.1, steps=10, progress=False)
        errors[label] = float(np.abs(run.matrix[-1] - exact(problem, [1.0]).matrix[0]).max())
    return Verdict(
        "Remark 3", "Algorithm 2 is exact for I1 = I2, and also for I1 = I3 or I2 = I3",
        f"error at t = 1, h = 0.1: {listed(list(errors.items()))}", passed(max(errors.values()) < 1e-13),
    )  # fmt: skip


def _brackets() -> list[Verdict]:
    """Statements on the flows of a heavy top."""
    heavy = Problem(Body(MOMENTS.tolist()), gravity(1.0), attitude=(0.8, 0.4, 0.2, -0.4), momentum=START)
    free, step = Problem(heavy.body, attitude=heavy.quaternion, momentum=START), 1e-3
    before, here, after = exact(free, [-step, 0.0, step]).matrix[:, 2, 2]
    second = float((before - 2 * here + after) / step**2)
    Q = Rotation.from_quat(heavy.quaternion, scalar_first=True).as_matrix()
    I1, I2, _ = MOMENTS
    assert heavy.field is not None
    kernel = heavy.field.pair_kernel(floats.number, has_principal_rotation=False)
    system = (tuple(MOMENTS), tuple(1 / MOMENTS), heavy.field.parameters)
    _, found = kernel(0.0, tuple(heavy.quaternion), tuple(START), system)
    printed = (Q[2, 1] * Q[2, 2] / I1, -Q[2, 0] * Q[2, 2] / I2, 0.0)
    off = float(np.abs(np.array(found) - printed).max())
    return [
        Verdict(
            "Nystrom methods", "the bracket {T, {T, U}} vanishes",
            f"it is the second derivative of U along the free motion: {second:.3g} for U = Q33; the one that vanishes "
            "is {U, {U, {U, T}}}, since {U, {U, T}} does not depend on y",
            passed(abs(second) < 1e-6),
        ),
        Verdict(
            "Nystrom methods", "heavy top: the flow of V is y' = (Q32 Q33/I1, -Q31 Q33/I2, 0)",
            f"printed ({_row(printed)}), the torque of V = g . J^-1 g, derived from U: ({_row(found)}); a sign, a "
            "factor 2 and the third component are missing", passed(off < 1e-12),
        ),
    ]  # fmt: skip


def _row(values: Any) -> str:
    return ", ".join(f"{float(x):.4g}" for x in values)


@result("vilmart-text", cite="vilmart2013", where="the text", title="statements on the algorithms")
def text(watch: Watch) -> Outcome:
    """Identities of methods, orders, and formulas as printed."""
    watch("identities in 50 digits")
    order = {name: measured_order(methods[name], "potential") for name in ("nystrom4(jacobi)", "nystrom4(dmv2)")}
    strang = {name: measured_order(methods[name], "potential") for name in ("strang(dmv2)", "strang(jacobi)")}
    kept = changes(methods["rattle"])
    equal = {"free": apart("rattle", "dmv2"), "with a potential": apart("rattle", "strang(dmv2)", "potential")}
    verdicts = [
        zero("RATTLE", "for the free body RATTLE and the DMV algorithm are one", equal),
        zero(
            "RATTLE", "RATTLE conserves Qy, C and H of the free body",
            {"Qy": kept["spatial_momentum"], "C": kept["momentum_norm"], "H": kept["energy"]},
        ),
        Verdict(
            "(16)", "the Strang splitting (h/2 where h_2 is printed) is of second order", listed(list(strang.items())),
            passed(all(abs(x - 2) < 0.1 for x in strang.values())),
        ),
        Verdict(
            "Nystrom methods", "the scheme with V is of order 4",
            f"{listed(list(order.items()))}: it needs a free flow of order 4 or more",
            passed(abs(order["nystrom4(jacobi)"] - 4) < 0.1),
        ),
    ]  # fmt: skip
    watch("formulas as printed")
    verdicts += [
        _printed(
            "three rotation splitting", "R3 R2 R1 R2 R1 with h/2, h/2, h, h/2, h/2 is a method", _three_rotations,
            "the last factor is R3",
        ),
        _printed(
            "Algorithm 2", "alpha = y1/I1, beta = 1/I3 - 1/I2", _algorithm_2,
            "alpha is (1/I1 - 1/I2) y1, beta (1/I3 - 1/I2) y3",
        ),
        _remark_3(), *_brackets(),
    ]  # fmt: skip
    return Outcome(HOW, [], [], verdicts)

"""P. Krysl, explicit integrators from the midpoint rule (2005): Figure 1 and the statements about it."""

from __future__ import annotations

from typing import Any

import mpmath

from polhode.analysis.checks import DIGITS, LARGE_STEP, Setting, changes, measured_order, symplectic_defect
from polhode.methods import methods

from .curves import Errors, listed, named
from .identities import apart, undone
from .results import EXACT, FAILS, HOLDS, IN_PART, Outcome, Verdict, Watch, passed, result, zero

ALL = ("AKW", "SW", "NMB", "LIEMID[I]", "LIEMID[E1]", "LIEMID[E2]", "LIEMID[EA]")
EXPLICIT = ("LIEMID[E1]", "LIEMID[E2]", "LIEMID[EA]")

HOW = (
    "Errors at t = 20 against a reference of 34 digits, spectral norm of the attitude, Euclidean norm of the body "
    "momentum. NMB is a reconstruction (the document gives no formula): Newmark's rule in the body frame with "
    "gamma = 1/2, beta = 0. SW is taken as the implicit algorithm ALGO_C1 of Simo and Wong."
)


OLDER = ("strang(rot321)", "strang(symrot)")
"""Explicit splittings into kicks and exact rotations, in use since the 1990s."""


@result("krysl2005-fig1", cite="krysl2005", where="Figure 1", title="convergence, fast Lagrangian top")
def figure_1(watch: Watch) -> Outcome:
    """Sections 4 and 5."""
    errors = Errors(named("fast_top"), ALL, [0.01 / 2**k for k in range(7)], watch)
    coarse, dt = 0.005, 0.00125
    ranking, momentum = errors.ranking(errors.attitude, dt), errors.ranking(errors.momentum, dt)
    large = errors.ranking(errors.attitude, coarse)
    watch("older splittings")
    splittings = Errors(errors.problem, OLDER, [dt], watch)
    older = splittings.ranking(splittings.attitude, dt)
    halved = errors.attitude("LIEMID[I]", coarse / 2) / errors.attitude("LIEMID[EA]", coarse)
    first_order = [label for label, _ in large[:5] if methods[label].order == 1]
    verdicts = [
        Verdict(
            "section 4", "the alternating method LIEMID[EA] is the strongest performer",
            f"dt = 0.00125, attitude: {listed(ranking)}; momentum: {listed(momentum)}",
            passed(ranking[0][0] == momentum[0][0] == "LIEMID[EA]"),
        ),
        Verdict(
            "section 4", "even the first-order methods perform very well for larger steps",
            f"dt = 0.005, attitude: {listed(large)}; they are conjugate to a symmetric method by half a kick",
            passed(len(first_order) == 2),
        ),
        Verdict(
            "section 5", "numerical evidence suggests that LIEMID[EA] is the best second-order integrator to date",
            f"dt = 0.00125, attitude: LIEMID[EA] {errors.attitude('LIEMID[EA]', dt):.3g}; without implicit solves, "
            f"{listed(older)}. It makes two implicit solves per step: LIEMID[I] with half the step has {halved:.3f} "
            "times its error",
            passed(errors.attitude("LIEMID[EA]", dt) < older[0][1]),
        ),
    ]  # fmt: skip
    return Outcome(
        HOW, [("errors", errors.picture("Fast top, t = 20"))], [errors.table("errors"), splittings.table("older")],
        verdicts,
    )  # fmt: skip


def _torque_evaluations(label: str) -> int:
    """Number of torque evaluations in a step."""
    with mpmath.workdps(DIGITS):
        setting, count = Setting(methods[label], "attitude"), [0]

        def counting(*state: Any) -> Any:
            count[0] += 1
            return setting.torque(*state)

        setting.step(LARGE_STEP, torque=counting)
    return count[0]


@result("krysl2005-text", cite="krysl2005", where="sections 3 and 5", title="statements on the algorithms")
def text(watch: Watch) -> Outcome:
    """Order, adjointness, conservation, symplecticity."""
    watch("50 digits")
    orders = {label: measured_order(methods[label], "attitude") for label in EXPLICIT}
    kept = {label: changes(methods[label])["spatial_momentum"] for label in EXPLICIT}
    defects = {label: symplectic_defect(methods[label], "potential") for label in EXPLICIT}
    asked = {label: _torque_evaluations(label) for label in (*EXPLICIT, "LIEMID[I]")}
    one = {label: apart(label, "LIEMID[I]") for label in EXPLICIT}
    twice = float(apart("LIEMID[EA]", "LIEMID[I]", halves=True))
    same = [label for label, defect in one.items() if defect < EXACT]
    verdicts = [
        Verdict(
            "section 3", "E1 and E2 are first-order, their composition EA second-order", listed(list(orders.items())),
            passed(all(abs(order - methods[label].order) < 0.1 for label, order in orders.items())),
        ),
        zero(
            "section 3", "E1 is the adjoint of E2 (with the impulse of E1 in the frame of the end of the step)",
            {"E1 back after E2": undone("LIEMID[E2]", "LIEMID[E1]", "attitude")},
        ),
        Verdict(
            "section 3", "all reduce to the midpoint Lie algorithm for torque-free motion",
            f"difference in one step: {listed([(k, float(v)) for k, v in one.items()])}; EA is two steps of half the "
            f"size (difference {twice:.1e})",
            HOLDS if len(same) == 3 else IN_PART if same else FAILS,
        ),
        zero("section 5", "the algorithms conserve momentum", kept),
        zero("section 5", "the algorithms are symplectic (on T*SO(3), with a potential)", defects),
        Verdict(
            "section 5", "they are explicit in the evaluation of the forcing",
            f"evaluations of the torque in one step: {listed(list(asked.items()))}",
            passed(all(asked[label] <= methods[label].torque_evals for label in EXPLICIT)),
        ),
    ]  # fmt: skip
    how = (
        "One step on a generic asymmetric body, in 50 digits; a defect below 1e-22 counts as zero. The equation of the "
        "rotation vector is solved in every step: the methods are explicit only in the torque."
    )
    return Outcome(how, [], [], verdicts)

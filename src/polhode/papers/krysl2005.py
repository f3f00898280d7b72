"""P. Krysl, explicit integrators from the midpoint rule (2005): Figure 1 and what the text says about it."""

from __future__ import annotations

from ..analysis.checks import symplectic_defect
from ..methods import methods
from .curves import Errors, listed, named
from .results import HOLDS, IN_PART, Outcome, Verdict, Watch, passed, result

ALL = ("AKW", "SW", "NMB", "LIEMID[I]", "LIEMID[E1]", "LIEMID[E2]", "LIEMID[EA]")
EXPLICIT = ("LIEMID[E1]", "LIEMID[E2]", "LIEMID[EA]")

HOW = (
    "Errors at t = 20 against a reference of 34 digits, spectral norm of the attitude, Euclidean norm of the body "
    "momentum. NMB is a reconstruction (the document gives no formula): Newmark's rule in the body frame with "
    "gamma = 1/2, beta = 0. SW is taken as the implicit algorithm ALGO_C1 of Simo and Wong."
)


@result("krysl2005-fig1", cite="krysl2005", where="Figure 1", title="convergence, fast Lagrangian top")
def figure_1(watch: Watch) -> Outcome:
    """Section 4."""
    errors = Errors(named("fast_top"), ALL, [0.01 / 2**k for k in range(7)], watch)
    coarse, dt = 0.005, 0.00125
    ranking, large = errors.ranking(errors.attitude, dt), errors.ranking(errors.attitude, coarse)
    halved = errors.attitude("LIEMID[I]", coarse / 2) / errors.attitude("LIEMID[EA]", coarse)
    conserved = {label: errors.row(label, dt).momentum_drift for label in EXPLICIT}
    watch("symplectic forms in 50 digits")
    defects = {label: float(symplectic_defect(methods[label], "potential")) for label in EXPLICIT}
    solves = {label: methods[label].solves for label in EXPLICIT}
    first_order = [label for label, _ in large[:5] if methods[label].order == 1]
    verdicts = [
        Verdict(
            "section 4", "the alternating method LIEMID[EA] is the strongest performer",
            f"dt = 0.00125, attitude: {listed(ranking)}", passed(ranking[0][0] == "LIEMID[EA]"),
        ),
        Verdict(
            "section 5", "it is the best second-order integrator to date",
            f"it makes two implicit solves a step: LIEMID[I] with half its step has {halved:.3f} times its error",
            IN_PART if abs(halved - 1) < 0.05 else HOLDS,
        ),
        Verdict(
            "section 4", "even the first-order methods perform very well for larger steps",
            f"dt = 0.005, attitude: {listed(large)}; they are conjugate to a symmetric method by half a kick",
            passed(len(first_order) == 2),
        ),
        Verdict(
            "section 5", "the explicit algorithms conserve momentum",
            f"relative change of the vertical momentum of the top: {listed(list(conserved.items()))}",
            passed(max(conserved.values()) < 1e-12),
        ),
        Verdict(
            "section 5", "the explicit algorithms are symplectic",
            f"change of the symplectic form of T*SO(3) in one step, in 50 digits: {listed(list(defects.items()))}",
            passed(max(defects.values()) < 1e-20),
        ),
        Verdict(
            "section 5", "explicit in the evaluation of the forcing",
            f"the torque is taken at known attitudes; equations solved in a step: {listed(list(solves.items()))}",
            HOLDS,
        ),
    ]  # fmt: skip
    return Outcome(HOW, [("errors", errors.picture("Fast top, t = 20"))], [errors.table("errors")], verdicts)

"""P. Krysl, Dynamically equivalent implicit algorithms (2006): statements of sections 3, 4 and 6 on the algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from polhode.analysis.checks import asymmetry, changes, measured_order, symplectic_defect
from polhode.methods import methods
from polhode.run.solve import solve

from .curves import named
from .identities import apart, unconjugated, undone
from .results import EXACT, Outcome, Verdict, Watch, not_zero, passed, result, zero

FOUR = ("TRAP", "IMID", "TRAPM", "IMIDM")
KINDS = {"free": "free", "attitude": "with a torque"}

HOW = (
    "One step, or a few, on a generic asymmetric body in 50 digits; a defect below 1e-22 counts as zero. Conservation "
    "refers to the free body unless stated otherwise. The midpoint torque is evaluated at t_(n-1) + dt/2; the "
    "document prints t_n + dt/2, which gives order one for a torque that depends on time. cay(X) is "
    "(1 - X/2)^-1 (1 + X/2), which the document does not define."
)


def _drift(quantity: str, *labels: str) -> dict[str, Any]:
    """Change of a quantity over a few free steps."""
    return {label: changes(methods[label])[quantity] for label in labels}


def _bounded() -> Verdict:
    """The long run of IMIDM."""
    sol = solve(named("free_body"), "IMIDM", dt=0.25, steps=100_000, progress=False)
    parts = np.array_split(np.abs(sol.energy / sol.energy[0] - 1), 10)
    first, largest = float(parts[0].max()), float(max(part.max() for part in parts))
    return Verdict(
        "section 3.7", "the energy error of IMIDM oscillates but is bounded for long times",
        f"free body, 100 000 steps of 1/4: at most {first:.4g} in the first tenth, {largest:.4g} in total",
        passed(largest < 1.05 * first),
    )  # fmt: skip


@result("krysl2006-text", cite="krysl2006", where="sections 3, 4, 6", title="statements on the algorithms")
def text(watch: Watch) -> Outcome:
    """Adjoints, conjugacy, conservation, symmetry, symplecticity, and identities of methods."""
    watch("adjoints and conjugates")
    pairs = (("FE", "BE"), ("FEM", "BEM"))
    verdicts = [
        zero(
            "sections 3.2, 3.7", "forward and backward Euler, (11) and (12), and (18) and (19), are mutual adjoints",
            {f"{b} back after {a}, {KINDS[k]}": undone(a, b, k) for a, b in pairs for k in KINDS},
        ),
        zero(
            "sections 3.5, 3.7", "TRAP and IMID, and TRAPM and IMIDM, are conjugate",
            {
                f"{a} and {b}, {KINDS[k]}": unconjugated(a, b, c, k)
                for a, b, c in (("IMID", "TRAP", "FE"), ("IMIDM", "TRAPM", "FEM")) for k in KINDS
            },
        ),
        zero(
            "sections 3.7, 6", "all four are symmetric (self-adjoint)",
            {label: asymmetry(methods[label], "attitude") for label in FOUR},
        ),
    ]  # fmt: skip
    watch("conservation")
    verdicts += [
        not_zero("section 3.5", "TRAP and IMID do not conserve spatial momenta", _drift("spatial_momentum", *FOUR[:2])),
        zero("section 3.5", "IMID conserves the kinetic energy", _drift("energy", "IMID")),
        not_zero("section 3.5", "TRAP does not conserve the energy at the time stations", _drift("energy", "TRAP")),
        zero("sections 3.5, 6", "TRAP conserves the midpoint energy", _drift("energy_midpoint", "TRAP")),
        zero("section 3.6", "TRAPM and IMIDM conserve spatial momenta", _drift("spatial_momentum", *FOUR[2:])),
        not_zero("section 3.7", "TRAPM and IMIDM do not conserve the kinetic energy", _drift("energy", *FOUR[2:])),
        _bounded(),
        zero(
            "section 4", "SWC1 and AKW conserve spatial momentum and energy",
            {f"{word}, {label}": x for word, quantity in (("momentum", "spatial_momentum"), ("energy", "energy"))
             for label, x in _drift(quantity, "SWC1", "AKW").items()},
        ),
        zero("section 4", "AKW conserves the Hamiltonian of the heavy top", _drift("energy_linear_potential", "AKW")),
        zero("section 4", "BBTRAP, where d exp is truncated, conserves energy", _drift("energy", "BBTRAP")),
    ]  # fmt: skip
    watch("symplectic forms")
    imidm, trapm = (float(symplectic_defect(methods[label], "free")) for label in ("IMIDM", "TRAPM"))
    order = measured_order(methods["BBTRAP"], "attitude")
    verdicts += [
        Verdict(
            "section 3.7", "it appears from numerical evidence and an incomplete proof that IMIDM is symplectic",
            f"the symplectic form of T*SO(3) changes by {imidm:.1e} in a step (of TRAPM, left open, by {trapm:.1e}): "
            "the time symmetry keeps the energy error bounded",
            passed(imidm < EXACT),
        ),
        Verdict("section 4", "the truncation keeps the rate of convergence", f"order {order:.2f}", passed(order > 1.9)),
    ]  # fmt: skip
    watch("identities of methods")
    named_so = {
        "IMIDM, midpoint": ("IMIDM", "mkrk(midpoint)"),
        "FEM, Euler": ("FEM", "mkrk(euler)"),
        "BEM, backward Euler": ("BEM", "mkrk(backward_euler)"),
        "BBTRAPWD, trapezoid": ("BBTRAPWD", "mkrk(trapezoid)"),
    }
    verdicts += [
        zero(
            "sections 3.7, 4", "(18), (19), IMIDM and BBTRAPWD are Munthe-Kaas Runge-Kutta methods",
            {label: apart(*pair, "attitude") for label, pair in named_so.items()},
        ),
        not_zero(
            "section 3.7", "TRAPM is not the Munthe-Kaas method of the trapezoidal rule, nor BBTRAP",
            {other: apart("TRAPM", other) for other in ("mkrk(trapezoid)", "BBTRAP")},
        ),
        zero("section 4", "BBTRAP is SWC1 for torque-free motion", {"difference": apart("BBTRAP", "SWC1")}),
    ]  # fmt: skip
    return Outcome(HOW, [], [], verdicts)

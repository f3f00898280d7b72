"""P. Krysl, Dynamically equivalent implicit algorithms (2006): Figures 1 to 5 and the statements about them."""

from __future__ import annotations

import typing

import numpy as np

from polhode.errors import StepError
from polhode.numbers import floats
from polhode.physics.problem import Problem
from polhode.results.trajectory import Trajectory
from polhode.run.exact import exact
from polhode.run.solve import solve

from .curves import Errors, listed, named, over_time
from .panels import stacked
from .results import FAILS, HOLDS, IN_PART, Outcome, Table, Verdict, Watch, passed, result

REFERENCE = ("AKW", "BBTRAP", "SWC1")
PRESENT = ("TRAP", "IMID", "TRAPM", "IMIDM")
ALL = (*REFERENCE, *PRESENT)

HOW = (
    "Errors at t = {end:g} against a reference of 34 digits (the document used {reference} instead): spectral norm of "
    "the attitude, Euclidean norm of the body momentum. Steps {first:g} to {last:g}."
)


def _outcome(errors: Errors, title: str, step: str | None, verdicts: list[Verdict]) -> Outcome:
    """The result; `step` is that of the document's reference, None if the document does not give it."""
    reference = "a run with a small step, which it does not give," if step is None else f"a run with a step of {step}"
    how = HOW.format(end=errors.problem.t_end, reference=reference, first=errors.dts[0], last=errors.dts[-1])
    return Outcome(how, [("errors", errors.picture(title))], [errors.table("errors")], verdicts)


def _second_order(errors: Errors, where: str) -> Verdict:
    orders = {label: errors.order(label) for label in errors.labels}
    fine = all(1.8 < order < 2.2 for order in orders.values())
    return Verdict(where, "all algorithms converge quadratically", listed(list(orders.items())), passed(fine))


@result("krysl2006-fig1", cite="krysl2006", where="Figure 1", title="convergence, torque-free motion")
def figure_1(watch: Watch) -> Outcome:
    """Section 5.1, the free body."""
    errors = Errors(named("free_body"), ALL, [2.0**-k for k in range(1, 9)], watch)
    dt = 2.0**-5
    momentum, attitude = errors.ranking(errors.momentum, dt), errors.ranking(errors.attitude, dt)
    tied = errors.momentum("AKW", dt) / errors.momentum("IMID", dt)
    worse = errors.attitude("AKW", dt) / errors.attitude("IMID", dt)
    shift = errors.momentum("TRAP", dt) / errors.momentum("IMID", dt)
    poor = min(errors.momentum(label, dt) for label in ("BBTRAP", "SWC1")) / errors.momentum("IMID", dt)
    verdicts = [
        _second_order(errors, "section 5.1"),
        Verdict(
            "section 5.1", "IMID is the most accurate in the body-frame momentum", f"dt = 1/32: {listed(momentum)}",
            passed(errors.momentum("IMID", dt) <= (1 + 1e-6) * momentum[0][1]),
        ),
        Verdict(
            "section 5.1", "IMID is the most accurate in the attitude matrix", f"dt = 1/32: {listed(attitude)}",
            passed(attitude[0][0] == "IMID"),
        ),
        Verdict(
            "section 5.1", "AKW matches IMID in the body-frame momentum",
            f"ratio of their errors {tied:.6f}: without torque both are the same map of the momentum",
            passed(abs(tied - 1) < 1e-3),
        ),
        Verdict(
            "section 5.1", "AKW is an order of magnitude less accurate in the attitude",
            f"{worse:.3g} times IMID's error",
            passed(worse > 5),
        ),
        Verdict(
            "section 5.1", "TRAP is slightly less accurate than IMID in the momentum",
            f"{shift:.3g} times IMID's error",
            HOLDS if 1 < shift < 1.5 else IN_PART if 1 < shift < 3 else FAILS,
        ),
        Verdict(
            "section 5.1", "BBTRAP and SWC1 are rather inaccurate in the momentum",
            f"at least {poor:.3g} times IMID's error",
            passed(poor > 2),
        ),
    ]  # fmt: skip
    return _outcome(errors, "Free body, t = 100", "0.001", verdicts)


@result("krysl2006-fig2", cite="krysl2006", where="Figure 2", title="convergence, slow Lagrangian top")
def figure_2(watch: Watch) -> Outcome:
    """Section 5.2, the slow top."""
    errors = Errors(named("slow_top"), ALL, [0.1 / 2**k for k in range(8)], watch)
    dt = 1 / 320
    momentum, attitude = errors.ranking(errors.momentum, dt), errors.ranking(errors.attitude, dt)
    best = {pairs[0][0] for pairs in (momentum, attitude)}
    present = max(errors.attitude(label, dt) for label in ("TRAPM", "IMIDM"))
    verdicts = [
        _second_order(errors, "section 5.2"),
        Verdict(
            "section 5.2", "the absolute accuracy of the present algorithm is outstanding",
            f"dt = 1/320, attitude: {listed(attitude)}; momentum: {listed(momentum)}",
            HOLDS if best <= set(PRESENT) else IN_PART if present < 3 * attitude[0][1] else FAILS,
        ),
    ]  # fmt: skip
    return _outcome(errors, "Slow top, t = 20", "0.0001", verdicts)


@result("krysl2006-fig3", cite="krysl2006", where="Figure 3", title="convergence, fast Lagrangian top")
def figure_3(watch: Watch) -> Outcome:
    """Section 5.3, the fast top."""
    errors = Errors(named("fast_top"), ALL, [0.01 / 2**k for k in range(7)], watch)
    dt = 0.00125
    attitude, momentum = errors.ranking(errors.attitude, dt), errors.ranking(errors.momentum, dt)
    gains = {step: _gain(errors, step) for step in errors.dts}
    ahead = [step for step, gain in gains.items() if gain > 2]
    kinetic, weight, fast, slow = _motions(errors.problem)
    verdicts = [
        Verdict(
            "section 5.3", "the kinetic energy is dominant",
            f"{kinetic:.4g} at the start, {kinetic / weight:.3g} times the potential energy",
            passed(kinetic > 10 * weight),
        ),
        Verdict(
            "section 5.3", "precession and nutation are motions of distinct frequencies",
            f"nutation {fast:.4g}, precession {slow:.4g} radians per unit of time (exact solution)",
            passed(fast > 5 * slow),
        ),
        Verdict(
            "section 5.3", "IMIDM and TRAPM are significantly more accurate than the others",
            f"dt = 0.00125, attitude: {listed(attitude)}; momentum: {listed(momentum)}. Ratio of the best "
            f"of the others to the worse of the two: {listed([(f'{step:g}', gain) for step, gain in gains.items()])} "
            "(step, the smaller of the ratios in attitude and momentum)",
            HOLDS if len(ahead) == len(gains) else IN_PART if len(ahead) > len(gains) / 2 else FAILS,
        ),
    ]  # fmt: skip
    return _outcome(errors, "Fast top, t = 20", None, verdicts)


def _gain(errors: Errors, dt: float) -> float:
    """Smallest error of the other methods over the largest of the pair; the lesser of attitude and momentum."""
    pair = ("TRAPM", "IMIDM")
    others = [label for label in ALL if label not in pair]
    return min(
        min(what(label, dt) for label in others) / max(what(label, dt) for label in pair)
        for what in (errors.attitude, errors.momentum)
    )


def _motions(problem: Problem) -> tuple[float, float, float, float]:
    """Kinetic and potential energy at the start; frequencies of nutation and precession of the exact motion."""
    assert problem.t_end is not None
    t = np.linspace(0.0, problem.t_end, 4001)
    axis = exact(problem, t).matrix[:, :, 2]
    height = axis[:, 2] - axis[:, 2].mean()
    falls = np.flatnonzero((height[:-1] >= 0) & (height[1:] < 0))
    nutation = 2 * np.pi * (len(falls) - 1) / (t[falls[-1]] - t[falls[0]])
    turned = np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    kinetic = float(problem.momentum @ problem.omega) / 2
    return kinetic, abs(problem.energy() - kinetic), nutation, abs(turned[-1] - turned[0]) / t[-1]


STEP, STEPS = 0.5, 40_000
WINDOWS = 16
"""Parts of a run whose means are compared."""
SLOW = 200.0
"""Shortest period of a slow oscillation; the body itself rotates once in about seven units of time."""

WALL = (
    "The normalized Hamiltonian H/H0 over 40 000 steps of 0.5, every tenth state drawn. The torque has the printed "
    "sign: it belongs to U = 1/d - 0.001/d^10, d = 1.1 + R33 (problem soft_wall). The problem coulomb_wall has the "
    "sign described in the text."
)


class Wall:
    """Runs of several methods on the soft wall problem."""

    def __init__(self, labels: tuple[str, ...], watch: Watch) -> None:
        self.runs: dict[str, Trajectory] = {}
        for label in labels:
            watch(label)
            self.runs[label] = solve(named("soft_wall"), label, dt=STEP, steps=STEPS, progress=False)
        self.change = {label: sol.energy / sol.energy[0] - 1 for label, sol in self.runs.items()}
        self.largest = {label: float(np.abs(change).max()) for label, change in self.change.items()}

    def wander(self, label: str) -> float:
        """Spread of the means of parts of the run, relative to the spread within a part."""
        parts = self.change[label][:STEPS].reshape(WINDOWS, -1)
        return float(parts.mean(axis=1).std() / parts.std(axis=1).mean())

    def slow(self, label: str) -> float:
        """Amplitude of the strongest slow oscillation."""
        change = self.change[label][:STEPS]
        lines, rates = np.abs(np.fft.rfft(change - change.mean())), np.fft.rfftfreq(STEPS, STEP)
        return float(2 / STEPS * lines[(rates > 0) & (rates < 1 / SLOW)].max())

    def nearest(self) -> float:
        """The smallest distance d from the wall."""
        return min(1.1 + float(sol.matrix[:, 2, 2].min()) for sol in self.runs.values())

    def turn(self) -> float:
        """The largest rotation within a step, in degrees."""
        overlaps = [np.abs((q[1:] * q[:-1]).sum(axis=1)).min() for q in (s.quaternion for s in self.runs.values())]
        return float(np.degrees(2 * np.arccos(min(*overlaps, 1.0))))

    def outcome(self, span: float, title: str, verdicts: list[Verdict]) -> Outcome:
        """The outcome with picture, data and table."""
        curves = {label: (self.runs[label].t[::10], 1 + change[::10]) for label, change in self.change.items()}
        rows = [
            [label, self.largest[label], *(float(np.abs(part).max()) for part in np.array_split(change, 4)),
             self.wander(label), self.slow(label)]
            for label, change in self.change.items()
        ]  # fmt: skip
        quarters = (f"quarter {i} of the run" for i in (1, 2, 3, 4))
        columns = ("method", "max |H/H0 - 1|", *quarters, "means over spread", "slow amplitude")
        picture = stacked(curves, "time $t$", "$H/H_0$", title, (1 - span, 1 + span))
        tables = [Table("hamiltonian", columns, rows, True), over_time("curves", curves)]
        return Outcome(WALL, [("hamiltonian", picture)], tables, verdicts)


@result(
    "krysl2006-fig4", cite="krysl2006", where="Figure 4", title="Hamiltonian of the reference algorithms, soft wall"
)
def figure_4(watch: Watch) -> Outcome:
    """Section 5.4, AKW, BBTRAP and SWC1."""
    wall = Wall(REFERENCE, watch)
    wander = {label: wall.wander(label) for label in REFERENCE}
    near, pushed = _printed_potential(wall.nearest())
    watch("the other sign")
    verdicts = [
        Verdict(
            "section 5.4", "none of the solutions blows up", listed(list(wall.largest.items())),
            passed(max(wall.largest.values()) < 0.5),
        ),
        Verdict(
            "section 5.4", "the long-term behaviour is irregular",
            f"the means of {WINDOWS} parts of the run spread more than H does within a part: "
            f"{listed(list(wander.items()))} times (the present algorithms: Figure 5)",
            passed(min(wander.values()) > 1),
        ),
        Verdict(
            "section 5.4", "the rotation within a step is well over 30 degrees",
            f"{wall.turn():.1f} degrees at most", passed(wall.turn() > 30),
        ),
        Verdict(
            "section 5.4", "the torque is that of an attractive Coulomb potential and a repulsive soft wall",
            f"the energy of the printed torque changes by {pushed:+.3g} from d = {near:.3f}, the smallest distance "
            f"in the runs, to d = 2.1, the largest: {'a repulsion' if pushed < 0 else 'an attraction'}. With "
            f"the opposite sign: {_other_sign()}",
            passed(pushed > 0),
        ),
    ]  # fmt: skip
    return wall.outcome(0.075, "Soft wall, reference algorithms", verdicts)


def _printed_potential(near: float) -> tuple[float, float]:
    """A distance d from the wall, and the rise of the energy of the printed torque from there to d = 2.1."""
    wall = named("soft_wall")
    assert wall.field is not None
    potential = wall.field.potential_kernel(floats.number)
    heights = [((0, 0, 0), (0, 0, 0), (0, 0, d - 1.1)) for d in (near, 2.1)]
    here, far = (float(potential(R, wall.field.parameters)) for R in heights)
    return near, far - here


def _other_sign() -> str:
    """Number of steps that the methods make with the sign described in the text."""
    made = {}
    for label in ALL:
        try:
            run = solve(named("coulomb_wall"), label, dt=STEP, steps=1000, progress=False)
        except StepError as stopped:
            run = typing.cast(Trajectory, stopped.partial)
        lost = np.flatnonzero(np.abs(run.energy / run.energy[0] - 1) > 1)
        made[label] = int(lost[0]) if lost.size else len(run.t) - 1
    return f"steps until H has doubled or the equations have no solution (of 1000): {listed(list(made.items()))}"


@result("krysl2006-fig5", cite="krysl2006", where="Figure 5", title="Hamiltonian of the present algorithms, soft wall")
def figure_5(watch: Watch) -> Outcome:
    """Section 5.4, TRAP, IMID, TRAPM and IMIDM."""
    wall, others = Wall(PRESENT, watch), Wall(REFERENCE, watch)
    ours, theirs = wall.largest, others.largest
    gain = min(theirs.values()) / max(ours.values())
    wander, slow = ({label: what(label) for label in PRESENT} for what in (wall.wander, wall.slow))
    verdicts = [
        Verdict(
            "section 5.4", "none of the algorithms conserves the Hamiltonian exactly",
            f"max |H/H0 - 1|: {listed(sorted((ours | theirs).items(), key=lambda pair: pair[1]))}",
            passed(min((ours | theirs).values()) > 1e-6),
        ),
        Verdict(
            "section 5.4", "the error is generally much smaller than that of the reference algorithms (scale 1/5)",
            f"at least {gain:.2g} times smaller, at best {max(theirs.values()) / min(ours.values()):.2g} times",
            passed(gain > 2),
        ),
        Verdict(
            "section 5.4", "the solutions are very clean and well behaved",
            f"the means of {WINDOWS} parts of the run spread by a fraction of the spread within a part: "
            f"{listed(list(wander.items()))}",
            passed(max(wander.values()) < 0.1),
        ),
        Verdict(
            "section 5.4", "the trapezoidal rules show a more pronounced periodic pattern of lower frequency",
            f"amplitude of the strongest oscillation of H/H0 slower than {SLOW:g} units of time: "
            f"{listed(list(slow.items()))}",
            passed(slow["TRAP"] > slow["IMID"] and slow["TRAPM"] > slow["IMIDM"]),
        ),
        Verdict(
            "section 5.4", "the trapezoidal rules have a somewhat higher error than the midpoint rules",
            f"TRAP over IMID {ours['TRAP'] / ours['IMID']:.2f}, TRAPM over IMIDM {ours['TRAPM'] / ours['IMIDM']:.2f}",
            passed(ours["TRAP"] > ours["IMID"] and ours["TRAPM"] > ours["IMIDM"]),
        ),
        Verdict(
            "section 5.4", "all present algorithms are superior to the reference algorithms",
            f"largest error {max(ours.values()):.3g} against at least {min(theirs.values()):.3g}",
            passed(max(ours.values()) < min(theirs.values())),
        ),
    ]  # fmt: skip
    return wall.outcome(0.015, "Soft wall, present algorithms", verdicts)

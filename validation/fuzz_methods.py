"""Every method on random problems, in plain Python: every accepted state is a rotation with a finite momentum.

    PYTHONPATH=src python validation/fuzz_methods.py [--seed 1] [--cases 40] [--methods NAME ...]

Bodies are general, nearly symmetric, flat, nearly flat, linear, spherical and needles; rotations are general, about a
principal axis, near one, slow about one axis, or none; fields are none, a potential, and a torque that depends on
time and angular velocity; the rotation per step is 1e-6 to 30 radians. The script reports:

- `no rotation`: the norm of an accepted state is off by more than 1e-12, or the state is not finite;
- `drift`: in a free run of steps below 0.4 radians a declared invariant changes by more than 1e-11;
- `needless failure`: a step below 0.3 radians (and a torque that it resolves) was not solved;
- `mass unit`: the same run in another unit of mass has other attitudes.

Measured (2 cores, Python 3.11; seed 1, 40 cases of each method and kind of field, 55 s): 7560 runs, of which 742 were
rejected because of the body or its field, 6267 finished and 551 failed. Every accepted state is a rotation. One drift,
4e-11 of `dmv2` on a needle with I_3/I_1 = 1e-11. 22 needless failures; the first of every method was examined, and
these are needles with I_3/I_1 from 1e-4 to 1e-11. 24 runs of `ep(...)` and one blow-up of `fe` depended on the
unit of mass. Since `ep` turns the body by a ratio of momenta: one of 680 runs of `ep(buss3)`, `ep(rk4_quat)`,
`ep(imidm)`, `liemid_e1`, `imidm` and `dg2`, with a component of omega of 1e-76, whose square may leave the range of
doubles in other units (that this is the cause is not shown).

With a torque that rotates the body by a radian or more in a step (`Case.resolved` is false) implicit methods fail even
if the body itself rotates slowly, for instance about a principal axis: the branch of solutions from short steps may
end in a fold (`implicit_limits.py`).
"""

from __future__ import annotations

import argparse
import collections
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph
from polhode.kernels.so3 import rotate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from plain import Run, run

COMBINED = (
    "strang(dmv10)", "strang(dmv2)", "nystrom4(jacobi)", "yoshida4(symrot)", "yoshida4(dmv2)", "yoshida4(imidm)",
    "ep(buss3)", "ep(rk4_quat)", "compensated(dmv10)", "compensated(dmv2)", "reversible(imidm)", "processed4(symrot)",
    "blanes_moan6(dmv6)", "taylor(15)", "lietaylor(15)", "strang(rot_auto)",
)  # fmt: skip
BODIES = ("general", "nearly symmetric", "flat", "linear", "spherical", "nearly flat", "needle")
MOTIONS = ("general", "axis", "near axis", "rest", "small component")
ROTATION, CONSERVED = 1e-12, 1e-11
LONG, SHORT = 0.4, 0.3


@ph.potential
def bowl(R, a):
    """A potential with a linear and a quadratic term in R."""
    return a * R[2][2] + a * R[0][1] * R[0][1] / 2


@ph.torque
def mixed(t, R, omega, a, k):
    """A torque of time, attitude and angular velocity."""
    return (a * R[2][1] - k * omega[0], -a * R[2][0] - k * omega[1], a * math.sin(t) * R[1][1] - k * omega[2])


def moments(draw: Any, kind: str) -> np.ndarray:
    """Principal moments of a body of one kind, in any order."""
    a, b = np.sort(draw.uniform(0.2, 1, 2))
    made = {
        "general": lambda: (a, b, draw.uniform(b - a, a + b)),
        "nearly symmetric": lambda: (a, a * (1 + 10.0 ** -draw.integers(3, 17)), draw.uniform(0.1, 1.9) * a),
        "flat": lambda: (a, b, a + b),
        "linear": lambda: (a, a, 0.0),
        "spherical": lambda: (a, a, a),
        "nearly flat": lambda: (a, b, (a + b) * (1 - 10.0 ** -draw.integers(2, 16))),
        "needle": lambda: (a, a * (1 - 1e-13), a * 10.0 ** -draw.integers(2, 12)),
    }[kind]()
    return np.array(made)[draw.permutation(3)]


def velocity(draw: Any, kind: str) -> np.ndarray:
    """Angular velocity of a motion of one kind."""
    w = draw.normal(size=3)
    axis = np.eye(3)[draw.integers(3)]
    return {
        "general": lambda: w,
        "axis": lambda: axis * draw.normal(),
        "near axis": lambda: axis + 10.0 ** -draw.integers(2, 18) * w,
        "rest": lambda: 0 * w,
        "small component": lambda: np.where(axis, 10.0 ** -draw.integers(5, 250), 1) * w,
    }[kind]()  # type: ignore[no-any-return]


class Case:
    """One random problem with the step to be made."""

    def __init__(self, draw: Any, field: str) -> None:
        self.body, self.motion, self.field = draw.choice(BODIES), draw.choice(MOTIONS), field
        self.moments, self.omega = moments(draw, self.body), velocity(draw, self.motion)
        self.omega = np.where(self.moments > 0, self.omega, 0)
        q = draw.normal(size=4)
        self.attitude = q / np.linalg.norm(q)
        self.angle = 10.0 ** draw.uniform(-6, 1.5) if draw.random() < 0.5 else 10.0 ** draw.uniform(-3, -0.3)
        self.dt = self.angle / (np.linalg.norm(self.omega) or 1.0)
        self.steps = int(draw.integers(1, 25))
        self.strength, self.drag = 10.0 ** draw.uniform(-3, 1), 10.0 ** draw.uniform(-4, 0)

    def problem(self, unit: float = 1.0) -> ph.Problem:
        """The problem, in some unit of mass."""
        fields: dict[str, Any] = {
            "free": lambda: None,
            "potential": lambda: bowl(self.strength * unit),
            "velocity": lambda: mixed(self.strength * unit, self.drag * unit),
        }
        body = ph.Body((self.moments * unit).tolist())
        return ph.Problem(body, fields[self.field](), attitude=self.attitude, omega=self.omega.tolist())

    @property
    def resolved(self) -> bool:
        """True if the step is short for the rotation and for the torque about the axis of smallest moment."""
        least = self.moments[self.moments > 0].min()
        pushed = 0 if self.field == "free" else self.strength * self.dt**2 / least + self.drag * self.dt / least
        return bool(self.angle < SHORT and pushed < SHORT)

    def __repr__(self) -> str:
        return (
            f"{self.body}, {self.motion}, {self.field}: moments {self.moments.tolist()}, omega {self.omega.tolist()}, "
            f"attitude {self.attitude.tolist()}, dt {self.dt!r}, steps {self.steps}, strength {self.strength!r}, "
            f"drag {self.drag!r}"
        )


def no_rotation(found: Run) -> bool:
    """True if an accepted state is not a rotation with a finite momentum."""
    if not np.isfinite(found.rows).all():
        return True
    return bool(len(found.rows) and np.abs((found.quaternion**2).sum(1) - 1).max() > ROTATION)


def drift(method: ph.Method, case: Case, found: Run) -> float:
    """Largest relative change of the declared invariants for the free body."""
    first = case.moments * case.omega
    m = np.vstack([first, found.momentum])
    q = np.vstack([case.attitude, found.quaternion])
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.where(case.moments > 0, 1 / case.moments, 0)
    values = {
        "energy": (m**2 * over).sum(1)[:, None],
        "momentum_norm": np.sqrt((m**2).sum(1))[:, None],
        "spatial_momentum": np.array([rotate(tuple(a), tuple(b)) for a, b in zip(q, m, strict=True)]),
    }
    lost = [0.0]
    for word in values.keys() & method.conserves:
        x = values[word]
        size = np.linalg.norm(x[0])
        lost.append(np.abs(x - x[0]).max() / size if size > 0 else 0.0)
    return float(max(lost))


class Fuzz:
    """Counts of findings, with the first case of each kind by method."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.first: dict[tuple[str, str], tuple[int, str]] = {}

    def note(self, what: str, name: str, case: Case, more: str = "") -> None:
        """Count a finding."""
        self.counts[what] += 1
        count, text = self.first.get((what, name), (0, f"{more} {case!r}"))
        self.first[what, name] = count + 1, text

    def examine(self, name: str, case: Case, unit: float) -> None:
        """Run one case."""
        method = ph.methods[name]
        self.counts["tried"] += 1
        try:
            found = run(case.problem(), name, case.dt, case.steps)
        except ph.InputError as refusal:
            self.counts["refused"] += 1
            if "divides by" not in str(refusal) and "a linear body" not in str(refusal):
                self.note("refused otherwise", name, case, str(refusal)[:150])
            return
        self.counts["solved" if found.fine else "failed"] += 1
        if no_rotation(found):
            self.note("no rotation", name, case)
            return
        if case.field == "free" and case.angle < LONG and (lost := drift(method, case, found)) > CONSERVED:
            self.note("drift", name, case, f"{lost:.1e}")
        if not found.fine and case.resolved:
            self.note("needless failure", name, case, f"step {len(found.rows) + 1}, residual {found.residual:.1e},")
        other = run(case.problem(unit), name, case.dt, case.steps)
        same = len(other.rows) == len(found.rows) and np.array_equal(other.quaternion, found.quaternion)
        if not same:
            self.note("mass unit", name, case)

    def report(self) -> None:
        """Print all."""
        for (what, name), (count, text) in sorted(self.first.items()):
            print(f"{what}: {name} ({count}):{text}")
        print(dict(self.counts))


def main() -> None:
    """Run the cases of all methods."""
    parser = argparse.ArgumentParser(description="Every method on random problems.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=40, help="cases of each method and kind of field")
    parser.add_argument("--methods", nargs="*", default=[*(m.name for m in ph.methods.taking("free")), *COMBINED])
    arguments = parser.parse_args()
    draw, fuzz, began = np.random.default_rng(arguments.seed), Fuzz(), time.process_time()
    warnings.simplefilter("ignore")
    for name in arguments.methods:
        fields = ["free", *(kind for kind in ("potential", "velocity") if ph.methods[name].takes(kind))]
        for field in fields:
            for _ in range(arguments.cases):
                fuzz.examine(name, Case(draw, field), 2.0 ** int(draw.integers(-300, 300)))
    fuzz.report()
    print(f"{time.process_time() - began:.0f} s")


if __name__ == "__main__":
    main()

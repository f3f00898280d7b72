"""The safety net of changes: all ways of computing a motion against one another, and all numbers against a record.

    python validation/bits.py ways                              each way against the others, without a record
    python validation/bits.py ways --only "relay | tol,events"  cells whose names contain one of these texts
    python validation/bits.py record results/bits.json          every method, combinators, tolerances, all of the net
    python validation/bits.py compare results/bits.json         exit status 1 if a bit or a sentence differs
    python validation/bits.py compare results/bits.json --only tol,exact

It uses only public names, so it is not affected by moves inside the library. `ways` compares what one process computes
in many ways (`net/ways.py`; beside runs of one motion `net/rooms.py`) and lists every disagreement. Records depend on
the processor and on the versions of numba and LLVM, so both runs must use the same machine and packages. A file holds,
for each run, a digest of all its numbers, the last ones in hexadecimal, and the sentences of its refusal and its
warnings.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

sys.path.insert(0, str(Path(__file__).parents[1]))
from validation.net.check import Cell
from validation.net.ways import net

BODY = ph.Body([1.0, 1.7, 2.3])
TURNED = ph.Body([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 2.5]])
OMEGA = [0.4, -1.1, 0.7]
COMBINED = (
    "strang(jacobi)", "strang(dmv10)", "yoshida4(imidm)", "suzuki4(dg2)", "kahan_li6(strang(symrot_auto))",
    "saba2c(jacobi)",
    "nystrom4(jacobi)", "processed4(dmv4)", "ep(symrot123)", "ep(imidm)", "compensated(dmv6)", "reversible(imidm)",
    "blanes_moan4(rot123)", "mclachlan8(strang(dmv2))", "dmv(16)", "taylor(12)",
)  # fmt: skip
NAMED = ("fast_top", "slow_top", "soft_wall")
Run = Callable[[], Any]


def free() -> ph.Problem:
    """A free body whose axes are its principal axes."""
    return ph.Problem(BODY, omega=OMEGA)


def top() -> ph.Problem:
    """A heavy body whose axes are not its principal axes."""
    return ph.Problem(TURNED, omega=OMEGA, field=ph.fields.gravity(1.3))


def driven() -> ph.Problem:
    """A body with a torque of time, attitude and momentum."""

    @ph.torque
    def push(t: Any, R: Any, omega: Any, a: Any = 0.3) -> Any:
        return (a * ph.math.sin(2 * t) - 0.1 * omega[0], a * R[0][1], -0.2 * omega[2] + a * ph.math.cos(t))

    return ph.Problem(BODY, omega=OMEGA, field=push())


PROBLEMS: dict[str, Callable[[], ph.Problem]] = {"free": free, "top": top, "driven": driven}


def states(sol: Any) -> list[Any]:
    """All numbers of a trajectory."""
    return [sol.t, sol.quaternion, sol.momentum]


def fixed(method: str, problem: str) -> Run:
    """A run of 24 fixed steps."""
    return lambda: states(ph.solve(PROBLEMS[problem](), method, dt=0.05, steps=24))


def to_tolerance(problem: str, tol: float) -> Run:
    """A run to a tolerance, with dense output."""

    def run() -> list[Any]:
        sol = ph.solve(PROBLEMS[problem](), tol=tol, t_end=7.0)
        return [*states(sol), *states(sol.at([0.3, 1.9, 6.5])), sol.error_estimate]

    return run


def batch(method: str | None, **named: Any) -> Run:
    """Eleven bodies at once."""

    def run() -> list[Any]:
        rng = np.random.default_rng(7)
        moments = 1 + rng.random((11, 3))
        momenta = rng.normal(size=(11, 3))
        field = ph.fields.gravity(1.3)
        attitudes = rng.normal(size=(11, 4))
        attitudes /= np.linalg.norm(attitudes, axis=1)[:, None]
        args = [moments, attitudes, momenta]
        result = (
            ph.ensemble(*args, field=field, **named)
            if method is None
            else ph.ensemble(*args, method, field=field, **named)
        )
        return [result.quaternion, result.momentum]

    return run


class _Stop(Exception):
    """Stops a run by its progress."""


def through_file() -> list[Any]:
    """A run into a file, interrupted, resumed, then loaded."""

    def stop(done: float) -> None:
        raise _Stop

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.zarr"
        arguments: dict[str, Any] = {"method": "imidm", "dt": 0.05, "steps": 40, "every": 4, "out": path}
        with contextlib.suppress(_Stop):
            ph.solve(top(), **arguments, progress=stop)
        ph.solve(top(), **arguments, resume=True)
        return states(ph.load(path))


def derivatives() -> list[Any]:
    """Derivatives of an observable at the end of a run."""
    found = ph.gradient(lambda R, momentum: R[0][1] * R[2][2] + momentum[2], top(), "imidm", dt=0.05, steps=24)
    return [found.value, found.inertia, found.momentum, found.attitude]


def stepped() -> list[Any]:
    """Steps one by one, with a held torque."""
    stepper = ph.stepper(TURNED, "imidm", 0.05)
    state: Any = ((1.0, 0.0, 0.0, 0.0), (0.4, -1.1, 0.7))
    for _ in range(10):
        state = stepper.step(state, (0.1, 0.0, -0.2))
    return list(state)


def runs() -> Iterator[tuple[str, Run]]:
    """Every run with its name."""
    for method in (*ph.methods, *COMBINED):
        for problem in PROBLEMS:
            yield f"fixed {method} {problem}", fixed(method, problem)
    for problem in PROBLEMS:
        for tol in (1e-4, 1e-8, 1e-12):
            yield f"tol {problem} {tol}", to_tolerance(problem, tol)
    for method in ("imidm", "jacobi", "dmv10", "dg2"):
        yield (
            f"digits {method}",
            lambda method=method: states(ph.solve(free(), method, dt=0.05, steps=4, digits=40)),
        )
    yield "exact free", lambda: states(ph.exact(free(), [0.0, 1.0, 17.3, 1e4]))
    for name in NAMED:
        yield f"tol {name}", lambda name=name: states(ph.solve(getattr(ph.problems, name)(), tol=1e-9, t_end=3.0))
    for method in (
        "imidm",
        "strang(jacobi)",
        "dmv2",
        "strang(dmv10)",
        "lietaylor(4)",
        "rk4_quat",
        "rattle",
        "ep(imidm)",
    ):
        yield f"batch {method}", batch(method, dt=0.05, steps=24)
    yield "batch tol", batch(None, tol=1e-8, t_end=3.0)
    yield "file", through_file
    yield "gradient", derivatives
    yield "stepper", stepped


def numbers(value: Any) -> str:
    """All numbers of a value as text, exactly."""
    if value is None or isinstance(value, str):
        return repr(value)
    array = np.asarray(value)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    if array.dtype == object:
        return " ".join(str(x) for x in array.ravel())
    return " ".join(float(x).hex() for x in array.ravel())


def digest(texts: list[str]) -> dict[str, str]:
    """Digest and last numbers of a result."""
    whole = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
    return {"digest": whole, "last": texts[-1][-120:] if texts else ""}


def outcome(run: Run) -> dict[str, str]:
    """Digest and last numbers of a run, or its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return digest([numbers(value) for value in run()])
    except (ph.InputError, ph.StepError) as fault:
        return {"error": f"{type(fault).__name__}: {fault}"}


def cell_outcome(cell: Cell) -> dict[str, str]:
    """Digest of the numbers of a cell of the net, and its sentences."""
    said = {"refused": cell.refused, "warned": "; ".join(cell.warned), "found": "; ".join(cell.found)}
    texts = [f"{name}: {numbers(value)}" for name, value in cell.numbers.items()]
    return digest(texts) | {name: sentence for name, sentence in said.items() if sentence}


def all_outcomes(only: str) -> dict[str, dict[str, str]]:
    """All results whose name begins with one of the texts in `only`; those of the net begin with "net"."""
    wanted = tuple(only.split(","))
    results = {name: outcome(run) for name, run in runs() if name.startswith(wanted)}
    cells = net(lambda name: f"net {name}".startswith(wanted))
    return results | {f"net {name}": cell_outcome(cell) for name, cell in cells}


def compare_ways(only: str) -> int:
    """Print every disagreement between ways, and return the exit status."""
    wanted = only.split(",")
    cells = disagreements = refused = 0
    for name, cell in net(lambda name: any(text in name for text in wanted)):
        cells, refused = cells + 1, refused + bool(cell.refused)
        for sentence in cell.found:
            disagreements += 1
            print(f"{name}: {sentence}", flush=True)
    print(f"{cells} ways of running a motion, {refused} of them refused; {disagreements} disagreements")
    return 1 if disagreements else 0


def main() -> int:
    """Record, compare with a record, or compare ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=("ways", "record", "compare"))
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="comma-separated prefixes of names; of ways, parts of names")
    arguments = parser.parse_args()
    if arguments.job == "ways":
        return compare_ways(arguments.only)
    if arguments.file is None:
        parser.error(f"name the file: {arguments.job} results/bits.json")
    results = all_outcomes(arguments.only)
    if arguments.job == "record":
        arguments.file.parent.mkdir(parents=True, exist_ok=True)
        arguments.file.write_text(json.dumps(results, indent=1))
        errors = sum("error" in result or "refused" in result for result in results.values())
        print(f"{len(results)} runs recorded in {arguments.file}, {errors} of them errors")
        return 0
    recorded: dict[str, dict[str, str]] = json.loads(arguments.file.read_text())
    before = {name: r for name, r in recorded.items() if not arguments.only or name in results}
    changed = [name for name in before if results.get(name) != before[name]]
    for name in changed:
        print(f"differs: {name}\n  before {before[name]}\n  now    {results.get(name)}")
    new = len(results.keys() - before.keys())
    print(f"{len(before)} runs compared, {len(changed)} differ" + (f", {new} new" if new else ""))
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())

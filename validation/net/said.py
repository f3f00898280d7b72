"""What is said when a result may be less than was asked for: these words, once."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import polhode as ph

from .cases import CASES, OMEGA, TENSOR
from .check import Cell
from .in_arrays import KINDS

BODY = ph.Body(TENSOR)


def _problem(name: str) -> ph.Problem:
    return CASES[name].problem()


def _run(name: str, **how: Any) -> Callable[[], Any]:
    return lambda: ph.solve(_problem(name), **{"t_end": 2.0, "progress": False} | how)


def _many(name: str, **how: Any) -> Callable[[], Any]:
    return lambda: ph.ensemble(_problem(name), omega=[OMEGA, 1.1 * OMEGA], **{"t_end": 2.0, "progress": False} | how)


def _stepped(name: str) -> Callable[[], Any]:
    def run() -> Any:
        stepper = ph.stepper(BODY, "mkrk(rk4)", 0.05)
        state: Any = ph.State((1.0, 0.0, 0.0, 0.0), (0.4, -1.1, 0.7))
        for _ in range(4):
            state = stepper.step(state, _problem(name).field)
        return state

    return run


def _in_arrays(name: str) -> Callable[[], Any]:
    def run() -> Any:
        stepper, state = ph.batch_stepper(BODY, "mkrk(rk4)", 0.05, field=_problem(name).field), KINDS["free"].start()
        for _ in range(4):
            stepper.step(*state)

    return run


def _slender() -> Any:
    body = ph.Body([1e-6, 1.0, 1.0])
    return ph.solve(ph.Problem(body, omega=[1.0, 2.0, 3.0]), "mkrk(rk4)", dt=2.5e-3, t_end=0.1)


def _unphysical() -> Any:
    return ph.Body([1.0, 1.0, 2.3], physical=False)


def _failing(**how: Any) -> Callable[[], Any]:
    problem = CASES["free"].problem(fails=True)
    return lambda: ph.ensemble(problem, omega=[OMEGA, 1.1 * OMEGA], t_end=2.0, progress=False, **how)


CROSSED, JUMPS = "conditions on the state", "a jump or a kink in time"
SAID: dict[str, tuple[str, Callable[[], Any]]] = {
    "relay, multistep": (CROSSED, _run("relay", method="abm4", dt=0.05)),
    "relay, in arrays": ("has jumps or kinks", _in_arrays("relay")),
    "relay and states, equal steps": (CROSSED, _run("states and relay", method="verner87", dt=0.05)),
    "thruster, multistep": (JUMPS, _run("thruster", method="abm4", dt=0.05)),
    "thruster, in arrays": ("has jumps or kinks", _in_arrays("thruster")),
    "slender body": ("do not follow", _slender),
    "unphysical moments": ("unphysical moments of inertia", _unphysical),
    "bodies that fail, equal steps": ("2 of 2 bodies failed", _failing(method="mkrk(rk4)", dt=0.05)),
    "bodies that fail, step_tol": ("2 of 2 bodies failed", _failing(step_tol=1e-9)),
    "bodies that fail, tol": ("2 of 2 bodies failed", _failing(tol=1e-9)),
}
"""Words of a warning, and a call after which it is given."""


def _said(words: str, call: Callable[[], Any], cell: Cell) -> None:
    """The words are said, once, by every call alike; and a call that is told to raise them does."""
    call()
    cell.says(words)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ph.ResultWarning)
        try:
            call()
        except ph.ResultWarning as told:
            cell.keep("sentence", str(told))
            cell.claim(words in str(told), f"another warning comes first: {told}")
        else:
            cell.found.append("a second call says nothing")


SILENT: dict[str, Callable[[], Any]] = {
    "smooth, dt": _run("smooth", method="mkrk(rk4)", dt=0.05),
    "relay, dt": _run("relay", method="mkrk(rk4)", dt=0.05),
    "relay, step_tol": _run("relay", step_tol=1e-9),
    "thruster, dt": _run("thruster", method="mkrk(rk4)", dt=0.05),
    "thruster, ensemble": _many("thruster", step_tol=1e-9),
    "relay, ensemble to a tolerance": _many("relay", step_tol=1e-9),
    "relay, ensemble": _many("relay", method="imidm", dt=0.05),
    "relay, stepper": _stepped("relay"),
    "smooth, in arrays": _in_arrays("smooth"),
    "states, tol": _run("states", tol=1e-9),
}


def _silent(call: Callable[[], Any], cell: Cell) -> None:
    """Nothing is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    told = [str(one.message) for one in said if issubclass(one.category, ph.ResultWarning)]
    cell.claim(not told, f"said: {told}")


CELLS: dict[str, Callable[[Cell], None]] = {
    **{name: functools.partial(_said, words, call) for name, (words, call) in SAID.items()},
    **{f"silent: {name}": functools.partial(_silent, call) for name, call in SILENT.items()},
}
"""By name."""

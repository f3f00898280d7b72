"""The functions of an emitted file: one step, and where a method needs them, the start and the output of a run.

They are kernels on flat arrays, written as text and translated like all others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.loops import change_of_variables
from ..kernels.state import collapse
from ..kernels.unroll import unrolled_kernel
from ..methods import Method
from ..numbers import floats
from ..numbers.dispatch import NO_FMA
from ..physics.fields.sides import may_jump
from ..physics.problem import Problem
from ..run.integrator import beginning, check_fit, start, state_space, torque_kernel
from ..run.system import System
from .cleaning import cleaned
from .nodes import ARRAY, INT, NUM, Function, Node, Value
from .program import Program, translated

LOW_PARTS = 7
"""Numbers in the low parts of a compensated state."""


@dataclasses.dataclass
class Interface:
    """The functions of an emitted file and the data of its self-test."""

    method: Method
    problem: Problem
    name: str
    functions: list[Function]
    entries: dict[str, Function]
    """The functions for users: step, and perhaps begin and result."""
    memory: int
    inertia: tuple[float, ...]
    inverse: tuple[float, ...]
    parameters: tuple[float, ...]
    q: tuple[float, ...]
    momentum: tuple[float, ...]
    needs_exact_rounding: bool = False

    @property
    def data(self) -> tuple[str, ...]:
        """Names of the arrays that all entries take after dt and t, without those that are empty."""
        return ("inertia", "inverse", *(("params",) if self.parameters else ()))

    @property
    def state(self) -> tuple[str, ...]:
        """Names of the arrays of the state."""
        return ("q", "momentum", *(("memory",) if self.memory else ()))

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the arrays."""
        return {
            "inertia": 3, "inverse": 3, "params": len(self.parameters), "q": 4, "momentum": 3, "memory": self.memory,
            "q_out": 4, "momentum_out": 3,
        }  # fmt: skip


def status(fine: Any) -> int:
    """The result of an entry: 0, or 1 if it failed."""
    return 0 if fine else 1


def _status(fine: Value) -> Value:
    zero, one = Node("const", (), INT, 0), Node("const", (), INT, 1)
    return Node("select", (fine, zero, one), INT) if isinstance(fine, Node) else (zero if fine.value else one)


def check_translatable(method: Method, problem: Problem) -> None:
    """Refuse what cannot be a step of its own in another language."""
    check_fit(method, problem)
    field = problem.field
    if method.noise is not None:
        raise InputError(
            f"{method.name} needs 64-bit integer arithmetic for its random numbers, which is not translated; emit the "
            "method without noise and add the noise there"
        )
    if field is None:
        return
    if field.opaque:
        raise InputError(f"{field.untraced[0].no_formula}, so it has no translation; write it as a formula")
    if field.states:
        raise InputError(f"{field!r} has its own states, which an emitted step does not carry")


def jumps_crossed(problem: Problem) -> str:
    """Return the sentence that emitted steps cross jumps of the field of a problem; empty if it has none."""
    field = problem.field
    if field is None or not may_jump(field):
        return ""
    return (
        f"{field.name} has jumps or kinks (where, abs, comparisons, tables), and an emitted step does not end there, "
        "so that the order is lost in every step that crosses one (ph.solve ends steps there); use a smooth formula "
        "(tanh for a jump), or a small dt"
    )


def interface(
    method: Method, problem: Problem, name: str, epsilon: float = 2.0**-52, has_fma: bool = True
) -> Interface:
    """Translate the entries of a method for a problem; names of functions for users begin with `name`."""
    check_translatable(method, problem)
    number = floats.number
    (q, momentum, *_), (inertia, inverse, given) = start(problem, method, number)
    parameters = tuple(x for x in given if not isinstance(x, np.ndarray))
    memory = LOW_PARTS if method.compensated else method.memory
    made = Interface(
        method, problem, name, [], {}, memory, inertia, inverse, parameters, q, momentum
    )  # fmt: skip
    torque, space = torque_kernel(problem, number, method), state_space(method)
    before, after = method.processors(number)
    program = Program(epsilon, has_fma, {status: _status})
    kernels = {"step": _entry(made, given, change_of_variables(method.build(number), space), torque)}
    if before or memory:
        enter = change_of_variables(before, space)
        kernels["begin"] = _entry(made, given, enter, torque, first=beginning(method))
    if after or method.compensated:
        kernels["result"] = _entry(made, given, change_of_variables(after, space), torque, last=collapse)
    for entry, (kernel, arrays) in kernels.items():
        kinds = (NUM, NUM, *(ARRAY for _ in arrays))
        function = translated(program, kernel, kinds, f"{name}_{entry}")
        for var in function.parameters:
            var.size = made.sizes.get(var.name, 0)
        made.entries[entry] = function
    made.functions = cleaned(program.functions, list(made.entries.values()))
    made.needs_exact_rounding = any(f.source in NO_FMA for f in made.functions)
    return made


def _items(name: str, count: int, first: int = 0) -> str:
    return "(" + "".join(f"{name}[{first + i}], " for i in range(count)) + ")"


def _entry(
    made: Interface, given: tuple[Any, ...], kernel: Callable[..., Any], torque: Callable[..., Any],
    first: Callable[..., Any] | None = None, last: Callable[..., Any] | None = None,
) -> tuple[Callable[..., Any], tuple[str, ...]]:  # fmt: skip
    """A kernel on arrays: read the state, call `kernel`, and write the new state if it is valid.

    `first` makes the state of the method from (q, m); `last` makes (q, m) of its result, which is written elsewhere.
    """
    output = ("q_out", "momentum_out") if last else ("q", "momentum")
    arrays = (*made.data, *made.state, *(output if last else ()))
    rows = {f"rows{i}": x for i, x in enumerate(given) if isinstance(x, np.ndarray)}
    numbers = iter(range(len(given)))
    parameters = "".join(
        f"rows{i}, " if f"rows{i}" in rows else f"params[{next(numbers)}], " for i in range(len(given))
    )
    state = _state(made, first is not None)
    places = [(f"{output[0]}[{i}]", f"new[0][{i}]") for i in range(4)]
    places += [(f"{output[1]}[{i}]", f"new[1][{i}]") for i in range(3)]
    if not last:
        places += [(f"memory[{i}]", item) for i, item in enumerate(_memory_items(made))]
    lines = [
        f"system = ({_items('inertia', 3)}, {_items('inverse', 3)}, ({parameters}))",
        f"y = {'first' if first else ''}({state})",
        "new, residual, fine = kernel(dt, t, y, system, torque)",
        *(["new = last(new)"] if last else []),
        "if fine:",
        *(f"    {place} = {value}" for place, value in places),
    ]
    made_kernel = unrolled_kernel(
        f"dt, t, {', '.join(arrays)}", "status(fine)", *lines,
        kernel=kernel, torque=torque, status=status, first=first, last=last, **rows,
    )  # fmt: skip
    return made_kernel, arrays


def _state(made: Interface, is_first: bool) -> str:
    """Source of the state of the method, read from the arrays."""
    plain = f"{_items('q', 4)}, {_items('momentum', 3)}"
    if is_first or not made.memory:
        return f"({plain})" if is_first else plain
    if made.method.compensated:
        return f"{plain}, {_items('memory', 4)}, {_items('memory', 3, 4)}"
    return f"{plain}, {_items('memory', made.memory)}"


def _memory_items(made: Interface) -> list[str]:
    """Source of the numbers of the memory in a state of the method."""
    if made.method.compensated:
        return [f"new[2][{i}]" for i in range(4)] + [f"new[3][{i}]" for i in range(3)]
    return [f"new[2][{i}]" for i in range(made.memory)]


def reference(made: Interface, dt: float, steps: int) -> tuple[float, ...]:
    """The quaternion and momentum after some steps, by the Python kernels in plain Python."""
    number = floats.number
    method, problem = made.method, made.problem
    advance = System(problem, method).equal_loop()
    y, system = start(problem, method, number)
    rows = np.empty((1, 8))
    last: Any = (steps, np.inf) if method.has_own_time else steps
    _, reached, _, _, fine = advance(dt, problem.t0, 0, steps, steps, last, y, system, rows)
    if not fine:
        raise InputError(
            f"{method.name} fails in step {reached + 1} of the self-test with dt = {dt:g}; choose a smaller dt"
        )
    return tuple(map(float, rows[0, :7]))

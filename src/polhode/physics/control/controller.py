"""Controllers: functions that are called at equal intervals, and whose commands are held in between.

At the sample t_k the function gets the state and a memory, and returns commands and a new memory. Until t_k + period
the body moves under

    Pi' = Pi x omega + T(t, R, omega) + u_k + the torques of the actuators with their commands of t_k.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...numbers import floats
from ...numbers.nested import nested
from ...symbolic.expression import Expr, lift, source, symbol
from ...symbolic.formula import Formula
from ...symbolic.tracing import UntraceableError
from ...symbolic.user_function import one_number
from ..fields.decorators import template_of
from ..fields.field import Field
from ..fields.kernels import formula_kernel
from ..fields.parameters import checked_value, leaves_of, like
from ..fields.sides import whole_of
from ..fields.sums import SumField
from ..fields.template import STATE_ARGUMENTS, FieldTemplate, named_template
from ..fields.trace import of_formula
from ..fields.untraced import shape_of
from ..validate import flag, positive
from .actuators import Actuator

TORQUE, PERIOD, CLOCK = "torque", "period", "clock"
"""Names of the torque that a controller commands directly, of the period, and of the start of a step.

The value of the last one in a field is the time of the first sample; every step replaces it.
"""


@dataclasses.dataclass(frozen=True)
class ControlTemplate(FieldTemplate):
    """The function of a controller with its memory and actuators, as a torque with the commands among its parameters.

    The parameters are those of the function, the period, those of the actuators, the start of a step, and then the
    states: the torque commanded directly, the memory, and the states of the actuators.
    """

    memory: tuple[tuple[str, Any], ...] = ()
    actuators: tuple[tuple[str, Actuator], ...] = ()

    @functools.cached_property
    def own(self) -> list[str]:
        """Names of the function's own parameters."""
        given = {*STATE_ARGUMENTS, *dict(self.memory), *dict(self.actuators), PERIOD}
        return [name for name in self.arguments if name not in given]

    @functools.cached_property
    def initial(self) -> dict[str, Any]:
        """Initial values of all states by name, in order."""
        found: dict[str, Any] = {TORQUE: (0.0, 0.0, 0.0)} | dict(self.memory)
        for owner, actuator in self.actuators:
            found |= {full_name(owner, name): value for name, value in actuator.states.items()}
        return found

    @functools.cached_property
    def constants(self) -> dict[str, Any]:
        """Parameters of the actuators by name."""
        return {
            full_name(owner, name): value
            for owner, actuator in self.actuators
            for name, value in actuator.parameters.items()
        }

    @functools.cached_property
    def parameters(self) -> list[str]:
        """Names of all parameters, in order."""
        return [*self.own, PERIOD, *self.constants, CLOCK, *self.initial]

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The parameters, given by name."""
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in self.parameters])

    @property
    def expected(self) -> str:
        """The required return value, in words."""
        names = [*dict(self.memory), *dict(self.actuators)]
        listed = f"{{{', '.join(f'{name!r}: ...' for name in names)}}}"
        return f"a torque (three numbers) and {listed}" if names else "a torque (three numbers)"

    def __reduce__(self) -> Any:
        """Pickle a formula as data, and a function by its module and name if that name refers to this controller."""
        if isinstance(self.function, Formula):
            return super().__reduce__()
        where = (self.function.__module__, self.function.__qualname__)
        with contextlib.suppress(AttributeError, KeyError):
            if named_template(*where).template is self:
                return _template_named, where
        raise InputError(
            f"{self.user.owner} is no formula with its parameters bound; any other can be pickled only if it is at the "
            "top level of a module, under the name of its function: make it again where it is needed"
        )


def _template_named(module: str, name: str) -> ControlTemplate:
    """Template of the controller with a name in a module."""
    law: ControlLaw = named_template(module, name)
    return law.template


def full_name(owner: str, name: str) -> str:
    """Name of a parameter or state of an actuator; what the controller sees of it has the name of the actuator."""
    return f"{owner}_{name}" if name else owner


class ControlField(Field):
    """The torques of a controller with all parameters bound; the period is one of them."""

    template: ControlTemplate

    def __repr__(self) -> str:
        shown = {name: self.values[name] for name in (*self.template.own, PERIOD)}
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def states(self) -> dict[str, Any]:
        """Initial values of commands, memory and states of the actuators."""
        return {name: self.values[name] for name in self.template.initial}

    @property
    def energy(self) -> None:
        """None: a controller has no potential."""
        return None

    @of_formula
    def graph(self) -> tuple[tuple[Expr, Expr, Expr], Expr | None]:
        """The torque on the body between samples."""
        t, R, omega, values = self._symbols()
        force = [lift(x) for x in values[TORQUE]]
        for owner, actuator in self.template.actuators:
            more = actuator.torque(t, nested(R), nested(omega), self._of(owner, values), values[CLOCK])
            force = [x + y for x, y in zip(force, more, strict=True)]
        return (force[0], force[1], force[2]), None

    @property
    def written(self) -> Any:
        """The torque, in the body frame."""
        return self.graph[0]

    # --- what happens at a sample -------------------------------------------------------------------

    @property
    def sampled_text(self) -> tuple[str, dict[str, Any]]:
        """Source and constants of all numbers of the states after a sample, as a function of t, R, w, p."""
        found = self._sampled
        if isinstance(found, UntraceableError):
            raise found
        return found

    @of_formula
    def _sampled(self) -> tuple[str, dict[str, Any]] | UntraceableError:
        """The same, or the error that says why the function is not a formula: it is traced only once."""
        owner = self.template.user.owner
        if self.template.plain:
            return UntraceableError(f"{owner} is declared plain", "it is declared plain")
        t, R, omega, values = self._symbols()
        try:
            answer = self.template.user.traced(self.arguments(t, R, omega, values), self._in_formula)
        except UntraceableError as fault:
            return UntraceableError(str(fault), fault.why)
        new = self._commanded(answer, omega, values)
        return source("sampled_value", "t, R, w, p", self._unpack(), [lift(x) for x in new])

    def arguments(self, t: Any, R: Any, omega: Any, values: Mapping[str, Any], momentum: Any = None) -> dict[str, Any]:
        """Arguments of the function, by name; vectors and matrices support array arithmetic."""
        return {name: nested(x) for name, x in self._arguments(t, R, omega, values).items()}

    def returned(self, value: Any) -> Any:
        """The torque, and what else the function returned, in order."""
        torque, new = self._split(value, "in its formula")
        return (torque, tuple(new[name] for name in self._named)) if new else torque

    @of_formula
    def later_text(self) -> tuple[str, dict[str, Any]] | None:
        """The same a time s later without a sample, as a function of s and p; None if they do not change."""
        _, _, _, values = self._symbols()
        new: dict[str, Any] = {}
        for owner, actuator in self.template.actuators:
            changes = actuator.later(symbol("s"), self._of(owner, values))
            new |= {full_name(owner, name): value for name, value in changes.items()}
        if not new:
            return None
        outputs = [lift(x) for name in self.template.initial for x in leaves_of(new.get(name, values[name]))]
        return source("later_value", "s, p", self._unpack() | {"s": "s"}, outputs)

    @of_formula
    def breaks_text(self) -> tuple[tuple[str, dict[str, Any]], int] | None:
        """Source and constants of the times until the torque jumps, as a function of p, and their number."""
        _, _, _, values = self._symbols()
        found = [x for owner, actuator in self.template.actuators for x in actuator.breaks(self._of(owner, values))]
        return (source("break_times", "p", self._unpack(), [lift(x) for x in found]), len(found)) if found else None

    def _unpack(self) -> dict[str, str]:
        """Source text of the symbols; as a part of a sum it may have parameters beyond its own number."""
        return self.unpack | {f"p{self.first + i}": f"p[{self.first + i}]" for i in range(len(self.parameters))}

    @of_formula
    def commanded_text(self) -> tuple[str, dict[str, Any]]:
        """Source and constants of all numbers of the states after a sample, as a function of the answer c, w and p."""
        _, _, omega, values = self._symbols()
        count = len(leaves_of(tuple(self._answer_shapes.values())))
        answer = [symbol(f"c{i}") for i in range(count)]
        outputs = [lift(x) for x in self._commanded(answer, omega, values)]
        return source("commanded", "c, w, p", self._unpack() | {f"c{i}": f"c[{i}]" for i in range(count)}, outputs)

    @functools.cached_property
    def _answer_shapes(self) -> dict[str, Any]:
        """Numbers in the shape of each part of an answer, by name: torque, memory, commands of the actuators."""
        commands = {owner: (0.0,) * actuator.commands for owner, actuator in self.template.actuators}
        return {TORQUE: (0.0, 0.0, 0.0), **dict(self.template.memory), **commands}

    @property
    def _named(self) -> list[str]:
        """Names of what an answer has beside the torque, in order."""
        return [name for name in self._answer_shapes if name != TORQUE]

    def _in_formula(self, value: Any) -> list[Any]:
        """All numbers of a traced answer; TypeError for text, which is no formula."""
        answer = self.answered(value, "in its formula")
        for x in answer:
            lift(x)
        return answer

    def answered(self, value: Any, place: str) -> list[Any]:
        """All numbers of the answer, from the value that the function returned: torque, memory, commands."""
        torque, new = self._split(value, place)
        given = {TORQUE: torque, **new}
        parts = [self._shaped(name, given[name], shape, place) for name, shape in self._answer_shapes.items()]
        return [x for part in parts for x in leaves_of(part)]

    def _commanded(self, answer: Sequence[Any], omega: Any, values: Mapping[str, Any]) -> list[Any]:
        """All numbers of the states after a sample with this answer."""
        shapes = self._answer_shapes
        found = dict(zip(shapes, like(tuple(shapes.values()), answer)[0], strict=True))
        for owner, actuator in self.template.actuators:
            held = actuator.held(found.pop(owner), self._of(owner, values), omega, values[PERIOD])
            found |= {full_name(owner, name): x for name, x in held.items()}
        return [x for name in self.template.initial for x in leaves_of(found[name])]

    def _of(self, owner: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters and states of an actuator by their own names."""
        actuator = dict(self.template.actuators)[owner]
        return {name: values[full_name(owner, name)] for name in (*actuator.parameters, *actuator.states)}

    def _split(self, value: Any, place: str) -> tuple[Any, Mapping[str, Any]]:
        """The torque, and what else the function returned, by name."""
        refused, expected = self.template.user.refused, self.template.expected
        names = {*dict(self.template.memory), *dict(self.template.actuators)}
        if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[1], Mapping):
            torque, new = value
        elif isinstance(value, Mapping):
            torque, new = (0.0, 0.0, 0.0), value
        elif isinstance(self.template.function, Formula) and names:  # see `returned`
            torque, new = value[0], dict(zip(self._named, value[1], strict=True))
        else:
            torque, new = value, {}
        if set(new) != names:
            got = ", ".join(map(str, new)) or "no names"
            raise refused(expected, got, place)
        return torque, new

    def _shaped(self, name: str, value: Any, like_this: Any, place: str) -> Any:
        """Nested tuples of numbers in a shape that is known."""
        value = _tuples(value)
        if shape_of(value) != shape_of(like_this):
            wanted = "three numbers" if name == TORQUE else f"{name} in the shape of {like_this!r}"
            raise self.template.user.refused(wanted, repr(value), place)
        return value

    # --- in plain Python ----------------------------------------------------------------------------

    def _arguments(self, t: Any, R: Any, omega: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of the function, by name."""
        state = {"t": t, "R": R, "omega": omega}
        return {name: state[name] if name in state else values[name] for name in self.template.arguments}

    def called(self, t: float, R: Any, omega: Any, values: Mapping[str, Any], place: str) -> Any:
        """The value of the function in plain Python, with vectors in a form that it accepts: arrays if possible."""
        user, arguments = self.template.user, self._arguments(t, R, omega, values)
        fault: Exception | None = None
        for kind in (nested,) if isinstance(user.function, Formula) else self.kinds:
            try:
                value = user.function(**{k: kind(x) if isinstance(x, tuple) else x for k, x in arguments.items()})
            except InputError:
                raise
            except Exception as problem:
                fault = fault or problem
                continue
            self.kinds = (kind,)
            return value
        assert fault is not None
        raise user.raised(fault, place) from fault

    kinds: tuple[Callable[[Any], Any], ...] = (np.array, nested)
    """Forms of vectors and matrices that the function may accept; the first that works is kept."""

    def sampled(self, value: Any, omega: Any, z: Sequence[float], place: str) -> tuple[float, ...]:
        """All numbers of the states after a sample, from the value that the function returned; they must be finite."""
        try:
            answer = list(map(one_number, self.answered(value, place)))
        except (TypeError, ValueError) as fault:
            if isinstance(fault, InputError):
                raise
            raise self.template.user.refused("numbers", repr(value), place) from None
        if not all(x - x == 0.0 for x in answer):
            raise self.template.user.refused("finite numbers", repr(value), place)
        return tuple(self.command(tuple(answer), omega, (*self.parameters[: -len(z)], *z)))

    @property
    def alone(self) -> ControlField:
        """The same with its parameters numbered from 0 on."""
        return self.numbered(0)

    @functools.cached_property
    def command(self) -> Callable[..., Any]:
        """The states after a sample, in floats, as a function of answer, omega and the parameters."""
        return formula_kernel(self.alone.commanded_text, floats.number)

    def with_states(self, z: Any) -> dict[str, Any]:
        """Values of all parameters, with these numbers of the states."""
        shaped, _ = like(tuple(self.template.initial.values()), z)
        return {**self.values, **dict(zip(self.template.initial, shaped, strict=True))}

    def check(self, t: float, R: Any, omega: Any, context: str) -> None:
        """Evaluate the function once in plain Python; raise a clear error if it fails."""
        z = self.parameters[-len(leaves_of(tuple(self.template.initial.values()))) :]
        self.sampled(self.called(t, R, tuple(omega), self.values, context), omega, z, context)


def _tuples(value: Any) -> Any:
    """Arrays and sequences as nested tuples."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return tuple(map(_tuples, value)) if isinstance(value, tuple | list) else value


def control_in(field: Field | None) -> ControlField | None:
    """The controller in a field, with its parameters numbered as in the field; None if there is none."""
    field = whole_of(field)
    if isinstance(field, SumField):
        for part, first in field.template.numbered_parts(0):
            if isinstance(part, ControlField):
                return part.numbered(first)
    return field if isinstance(field, ControlField) else None


# --- what users make --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Controller:
    """A controller with its parameters bound, for the argument `control` of `ph.solve` and `ph.ensemble`."""

    template: ControlTemplate
    values: Mapping[str, Any]
    period: float | None = None

    def __repr__(self) -> str:
        return f"{self.template.function.__name__}({', '.join(f'{k}={v!r}' for k, v in self.values.items())})"

    def __reduce__(self) -> Any:
        """Pickle a controller as its formula and the values of its parameters; one in plain Python by its name."""
        template: FieldTemplate = self.template
        with contextlib.suppress(InputError):
            template = self.field(self.period or 1.0, 0.0).template_as_data()
        return Controller, (template, dict(self.values), self.period)

    def field(self, period: float, t0: float) -> ControlField:
        """Its torques as a field, for one period and the time of the first sample."""
        template = self.template
        states = {name: self.values.get(name, value) for name, value in template.initial.items()}
        own = {name: self.values[name] for name in template.own}
        constants = {name: self.values.get(name, value) for name, value in template.constants.items()}
        return ControlField(template, {**own, PERIOD: period, **constants, CLOCK: t0, **states})


@dataclasses.dataclass(frozen=True)
class ControlLaw:
    """A decorated function; call it to bind its parameters. Initial values of its memory can be given by name too."""

    template: ControlTemplate
    period: float | None = None

    def __call__(self, *args: Any, **named: Any) -> Controller:
        """Bind the parameters, by position or by name, and initial values of the memory by name."""
        template = self.template
        memory = {name: named.pop(name, value) for name, value in template.initial.items() if name != TORQUE}
        whole = inspect.signature(template.function).parameters
        try:
            bound = inspect.Signature([whole[name] for name in template.own]).bind(*args, **named)
        except TypeError as problem:
            takes = ", ".join(template.own) or "none"
            raise InputError(f"{template.user.owner} has the parameters {takes}: {problem}") from None
        bound.apply_defaults()
        values = {name: checked_value(template, name, x) for name, x in (bound.arguments | memory).items()}
        for name, value in memory.items():
            if shape_of(values[name]) != shape_of(template.initial[name]):
                raise InputError(
                    f"{name} of {template.user.owner} must be numbers in the shape of {template.initial[name]!r}; got "
                    f"{value!r}", name,
                )  # fmt: skip
        return Controller(template, values, self.period)


def controller(
    function: Any = None, /, *, period: float | None = None, plain: bool = False, **memory: Any
) -> ControlLaw | Callable[[Callable[..., Any]], ControlLaw]:
    """Make a controller of a function that is called once in each period; its commands are held in between.

    The function takes t, R, omega (any of them), period, its memory by name, and parameters. It returns the torque on
    the body, three numbers in the body frame; with a memory, the torque and a dictionary of the new memory. A keyword
    names a part of the memory with its initial value, a number or an array, or an actuator (`ph.actuators`): then the
    function takes its state by this name and returns its command in the dictionary. If it returns the dictionary
    alone, the actuators make all the torque.

    >>> @ph.controller(period=0.1, integral=[0.0, 0.0, 0.0])
    ... def pid(R, omega, integral, period, gain):
    ...     error = ...
    ...     return -gain * (error + integral) - omega, {"integral": integral + period * error}

    Call the result to bind the parameters. A formula is compiled with the steps. Any other function, one with
    ``plain=True``, a method, and an object that can be called, is called as plain Python, with NumPy arrays.
    """
    flag("plain", plain)
    period = None if period is None else positive(PERIOD, period)
    if function is None:
        return lambda f: controller(f, period=period, plain=plain, **memory)  # type: ignore[return-value]  # as a decorator
    if not isinstance(function, types.FunctionType):
        function, plain = _function_of(function), True
    template_of(function, "controller")
    devices = {name: value for name, value in memory.items() if isinstance(value, Actuator)}
    numbers = {name: value for name, value in memory.items() if name not in devices}
    taken = [name for name in memory if name in (*STATE_ARGUMENTS, TORQUE, PERIOD, CLOCK)]
    if taken:
        raise InputError(f"the memory of a controller must not be named {taken[0]}, which has a meaning of its own")
    made = ControlTemplate(function, "controller", "body", makes=ControlField, plain=plain)
    values = tuple((name, checked_value(made, name, value)) for name, value in numbers.items())
    made = dataclasses.replace(made, memory=values, actuators=tuple(devices.items()))
    missing = [name for name in numbers if name not in made.arguments]
    if missing:
        raise InputError(f"{function.__name__} must take its memory {missing[0]} as an argument")
    doubled = [name for name in made.parameters if made.parameters.count(name) > 1]
    if doubled:
        raise InputError(f"{function.__name__} has two parameters or states of the name {doubled[0]}; rename one")
    return ControlLaw(made, period)


def _function_of(control: Any) -> types.FunctionType:
    """A function with the name and the arguments of a method or of an object that can be called."""
    try:
        signature = inspect.signature(control)
    except (TypeError, ValueError):
        raise InputError(
            f"a controller must be a function of t, R, omega that returns a torque; got {type(control).__name__}"
        ) from None

    def function(**arguments: Any) -> Any:
        return control(**arguments)

    function.__name__ = getattr(control, "__name__", type(control).__name__)
    function.__signature__ = signature  # type: ignore[attr-defined]  # read by inspect
    assert isinstance(function, types.FunctionType)
    return function


@functools.lru_cache(maxsize=64)
def _law_of(function: Any) -> ControlLaw:
    """The controller of a plain function; kept, so that it is traced once."""
    made = controller(function)
    assert isinstance(made, ControlLaw)
    return made


def bound_controller(control: Any) -> Controller:
    """The controller given by a user: bound, or a function or decorated function whose parameters have defaults."""
    if isinstance(control, Controller):
        return control
    if isinstance(control, ControlLaw):
        return control()
    if callable(control) and not isinstance(control, type):
        return _law_of(control)() if isinstance(control, types.FunctionType) else _law_of.__wrapped__(control)()
    raise InputError(
        f"control must be a function of t, R, omega that returns a torque, or made by @ph.controller; got "
        f"{type(control).__name__}", "control",
    )  # fmt: skip

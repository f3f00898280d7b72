"""The intermediate representation between Python kernels and printed source: types, values, expressions, statements.

An expression is pure. Numbers that are known while translating are `Static`; a tuple of values is a Python tuple until
it is stored, then a `Node` of type `Tup`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Type:
    """The type of a stored value; the simple ones are `NUM`, `BOOL`, `INT` and `ARRAY`."""

    name: str


@dataclasses.dataclass(frozen=True)
class Tup(Type):
    """A tuple of stored values; a `Known` item is not stored."""

    items: tuple[Type, ...] = ()

    @property
    def stored(self) -> tuple[int, ...]:
        """Places of the items that are stored."""
        return tuple(i for i, item in enumerate(self.items) if is_stored(item))

    @property
    def shape(self) -> Any:
        """Types of the stored items: what decides the type in the printed language. A single item stands for itself."""
        shapes = tuple(t.shape if isinstance(t, Tup) else t.name for t in (self.items[i] for i in self.stored))
        return shapes[0] if len(shapes) == 1 else shapes


@dataclasses.dataclass(frozen=True)
class Known(Type):
    """A value known while translating, which is not stored."""

    value: Any = None

    @property
    def identity(self) -> tuple[type, Any]:
        """What makes two known values the same: a number's digits and sign, else the object itself."""
        is_number = isinstance(self.value, int | float)
        return type(self.value), repr(self.value) if is_number else id(self.value)

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self.identity == other.identity


NUM, BOOL, INT, ARRAY = Type("number"), Type("bool"), Type("int"), Type("array")


def tup(*items: Type) -> Tup:
    """The type of a tuple."""
    return Tup("tuple", items)


def known(value: Any) -> Known:
    """The type of a known value."""
    return Known("known", value)


def is_stored(kind: Type) -> bool:
    """Whether a value of this type has anything to store."""
    if isinstance(kind, Tup):
        return any(map(is_stored, kind.items))
    return not isinstance(kind, Known)


@dataclasses.dataclass(frozen=True)
class Static:
    """A Python object that is known while translating: a number, a truth value, a function, a module."""

    value: Any


@dataclasses.dataclass(eq=False)
class Var:
    """A variable of the printed function; `size` is the length of a workspace."""

    name: str
    type: Type
    is_parameter: bool = False
    size: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """An expression: an operation, its arguments, its type, and what else it needs (`data`).

    Operations: const, ref (data: the Var), item (data: the place), at (array and index), table (data: the numbers;
    argument: the index), cast (an integer as a number), neg, not, + - * / < <= > >= == != && ||, select (condition,
    yes, no), make (a tuple), call (data: the Function), math (data: the name).
    """

    op: str
    args: tuple[Node, ...]
    type: Type
    data: Any = None


Value = Any
"""A `Static`, a `Node`, or a tuple of values."""


@dataclasses.dataclass(eq=False)
class Statement:
    """Base class of statements."""


@dataclasses.dataclass(eq=False)
class Assign(Statement):
    """Store a value in a variable; `declares` is set where the declaration of the variable stands."""

    var: Var
    value: Node | None
    declares: bool = False


@dataclasses.dataclass(eq=False)
class SetItem(Statement):
    """Store a number in an entry of a workspace."""

    var: Var
    index: Node
    value: Node


@dataclasses.dataclass(eq=False)
class Do(Statement):
    """Call a function for what it writes into a workspace."""

    call: Node


@dataclasses.dataclass(eq=False)
class If(Statement):
    """A branch."""

    condition: Node
    then: list[Statement]
    otherwise: list[Statement]


@dataclasses.dataclass(eq=False)
class Loop(Statement):
    """Count from `first` up to, not including, `end`."""

    var: Var
    first: Node
    end: Node
    body: list[Statement]


@dataclasses.dataclass(eq=False)
class Break(Statement):
    """Leave the innermost loop."""


@dataclasses.dataclass(eq=False)
class Return(Statement):
    """Return a value; it is a node when the function is finished."""

    value: Any


@dataclasses.dataclass(eq=False)
class Function:
    """A kernel specialised for the types of its arguments."""

    source: Any
    name: str
    doc: str
    parameters: list[Var]
    body: list[Statement]
    result: Type

    @property
    def is_pure(self) -> bool:
        """Whether it writes nothing into its arguments."""
        return not any(isinstance(s, SetItem | Do) for s in statements(self.body))


def blocks(statement: Statement) -> tuple[list[Statement], ...]:
    """The blocks within a statement."""
    if isinstance(statement, If):
        return statement.then, statement.otherwise
    return (statement.body,) if isinstance(statement, Loop) else ()


def statements(body: list[Statement]) -> list[Statement]:
    """All statements of a block and of the blocks in it."""
    return [s for statement in body for s in (statement, *(t for b in blocks(statement) for t in statements(b)))]


def expressions(statement: Statement) -> list[Node]:
    """The expressions that a statement itself evaluates."""
    if isinstance(statement, Assign):
        return [] if statement.value is None else [statement.value]
    if isinstance(statement, SetItem):
        return [statement.index, statement.value]
    if isinstance(statement, Do):
        return [statement.call]
    if isinstance(statement, If):
        return [statement.condition]
    if isinstance(statement, Loop):
        return [statement.first, statement.end]
    return [statement.value] if isinstance(statement, Return) and isinstance(statement.value, Node) else []


def change_expressions(statement: Statement, change: Callable[[Node], Node]) -> None:
    """Replace the expressions that a statement itself evaluates."""
    for field in dataclasses.fields(statement):
        value = getattr(statement, field.name)
        if isinstance(value, Node):
            setattr(statement, field.name, change(value))


def parts(node: Node) -> list[Node]:
    """A node and all nodes in it."""
    return [node, *(inner for argument in node.args for inner in parts(argument))]


def const(value: float | int | bool) -> Node:
    """A number or truth value as a node."""
    return Node(
        "const", (), BOOL if isinstance(value, bool) else NUM, value if isinstance(value, bool) else float(value)
    )


def ref(var: Var) -> Node:
    """The value of a variable."""
    return Node("ref", (), var.type, var)

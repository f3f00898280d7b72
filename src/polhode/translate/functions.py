"""Translation of kernels to functions, one for each combination of types of arguments."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from typing import TYPE_CHECKING, Any

from ..numbers import primitives as generic
from .expressions import DynamicIndex, Expressions, is_place, reads
from .nodes import (
    ARRAY,
    INT,
    NUM,
    Assign,
    Break,
    Do,
    Function,
    If,
    Loop,
    Node,
    Return,
    SetItem,
    Statement,
    Static,
    Tup,
    Type,
    Value,
    Var,
    is_stored,
    known,
    ref,
    tup,
)
from .reserved import free_name
from .source import Untranslatable, assigned, counting_parameters, definition, name_of
from .values import (
    converted,
    is_integers,
    is_tuple,
    item,
    joined,
    length,
    lifted,
    of_type,
    stored_type,
    type_of,
)

if TYPE_CHECKING:
    from .program import Program

LONGEST_UNROLLED = 64
"""Passes of a loop that may be written out one after the other."""


class Translation(Expressions):
    """The translation of one kernel for arguments of given types."""

    def __init__(self, program: Program, source: Any, kinds: tuple[Type, ...]) -> None:
        self.program, self.source = program, source
        self.tree = definition(source)
        self.parameters: list[Var] = []
        self.bindings: dict[str, Value] = {}
        self.body: list[Statement] = []
        self.pinned: dict[str, Var] = {}
        """Variables of names that are assigned in the loop or branch around."""
        self.depth = 0
        self.returned: list[Return] = []
        self._names: set[str] = set()
        self._bind(kinds)

    def _bind(self, kinds: tuple[Type, ...]) -> None:
        names = [a.arg for a in self.tree.args.args]
        rest = self.tree.args.vararg
        if rest is not None:
            kinds = (*kinds[: len(names)], tup(*kinds[len(names) :]))
            names.append(rest.arg)
        for name, kind in zip(names, kinds, strict=True):
            var = Var(self._unique(name), kind, is_parameter=True)
            self.parameters.append(var)
            self.bindings[name] = of_type(ref(var) if is_stored(kind) else None, kind)

    def _unique(self, name: str) -> str:
        name = name.lstrip("_") or "unused"
        return free_name(name, self._names, "_" if name[-1].isdigit() else "")

    # --- the whole ----------------------------------------------------------------------------------

    def made(self) -> Function:
        """Translate the kernel."""
        self._block(self.tree.body)
        if not self.returned:
            result: Type = known(None)
        else:
            result = functools.reduce(joined, (type_of(r.value) for r in self.returned))
        for statement in self.returned:
            statement.value = converted(statement.value, result) if is_stored(result) else None
        doc = inspect.getdoc(self.source) or ""
        stored = [v for v in self.parameters if is_stored(v.type)]
        return Function(self.source, "", doc, stored, self.body, result)

    def _block(self, nodes: list[ast.stmt]) -> bool:
        """Translate statements; return whether they end the function or the loop for certain."""
        for node in nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring
            translate = getattr(self, f"_on_{type(node).__name__.lower()}", None)
            if translate is None:
                raise Untranslatable(f"{name_of(self.source)} uses {ast.unparse(node)}, which has no translation")
            if translate(node):
                return True
        return False

    # --- statements ---------------------------------------------------------------------------------

    def _on_return(self, node: ast.Return) -> bool:
        value = Static(None) if node.value is None else self.value(node.value)
        if sum(isinstance(n, ast.Return) for n in ast.walk(self.tree)) > 1:  # they may need another type
            value = self._readable_as(value, stored_type(type_of(value)))
        statement = Return(value)
        self.returned.append(statement)
        self.body.append(statement)
        return True

    def _on_pass(self, node: ast.Pass) -> bool:
        return False

    def _on_break(self, node: ast.Break) -> bool:
        self.body.append(Break())
        return True

    def _on_assign(self, node: ast.Assign) -> bool:
        value = self.value(node.value)
        for target in node.targets:
            self._assign(target, value)
        return False

    def _on_annassign(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self._assign(node.target, self.value(node.value))
        return False

    def _on_augassign(self, node: ast.AugAssign) -> bool:
        operand = ast.copy_location(ast.Name(self._named(node.target), ast.Load()), node)
        self._assign(node.target, self.value(ast.BinOp(operand, node.op, node.value)))
        return False

    def _on_expr(self, node: ast.Expr) -> bool:
        value = self.value(node.value)
        if isinstance(value, Node) and value.op == "call":
            self.body.append(Do(value))
        return False

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._store(target.id, value)
        elif isinstance(target, ast.Subscript):
            place, index = self.value(target.value), self.value(target.slice)
            if not (isinstance(place, Node) and place.type == ARRAY):
                raise Untranslatable(f"{name_of(self.source)} assigns to {ast.unparse(target)}")
            self.body.append(SetItem(place.data, converted(index, INT), converted(value, NUM)))
        elif isinstance(target, ast.Tuple):
            self._unpack(target.elts, value)
        else:
            raise Untranslatable(f"{name_of(self.source)} assigns to {ast.unparse(target)}")

    def _unpack(self, targets: list[ast.expr], value: Value) -> None:
        if not isinstance(value, tuple):
            value = self.kept(value, "_".join(t.id for t in targets if isinstance(t, ast.Name))[:24] or "parts")
        if length(value) != len(targets):
            raise Untranslatable(f"{name_of(self.source)} unpacks {length(value)} values into {len(targets)} names")
        values = [item(value, i) for i in range(len(targets))]
        for i, target in enumerate(targets):
            # a value that reads a variable assigned here, in an earlier item, is stored first
            if isinstance(target, ast.Name) and target.id in self.bindings:
                now = self.bindings[target.id]
                if isinstance(now, Node) and now.op == "ref":
                    for j in range(i + 1, len(targets)):
                        if reads(values[j], now.data):
                            values[j] = self._temporary(values[j], f"{getattr(targets[j], 'id', 'next')}_next")
        for target, one in zip(targets, values, strict=True):
            self._assign(target, one)

    def _temporary(self, value: Value, name: str) -> Value:
        kind = type_of(value)
        if not is_stored(kind):
            return value
        var = Var(self._unique(name), kind)
        self.body.append(Assign(var, converted(value, kind)))
        return ref(var)

    def kept(self, value: Value, name: str) -> Value:
        """The value as one that can be read several times; it may be stored under a name first."""
        return value if is_place(value) or not is_tuple(value) else self._temporary(value, name)

    def _store(self, name: str, value: Value) -> None:
        """Bind a name; numbers that vary are stored in a variable."""
        if name == "_":
            return
        kind = type_of(value)
        if isinstance(value, Node) and value.type == ARRAY:
            self._rebind(name, value)
            return
        if name in self.pinned:
            var = self.pinned[name]
            self.body.append(Assign(var, converted(self._readable_as(value, var.type), var.type)))
            return
        if self.depth:
            kind = stored_type(kind)
        if not is_stored(kind):
            self._rebind(name, value)
            return
        old = self.bindings.get(name)
        if isinstance(old, Node) and old.op == "ref" and old.type == kind and not old.data.is_parameter:
            var = old.data
        else:
            var = Var(self._unique(name), kind)
        self.body.append(Assign(var, converted(self._readable_as(value, kind), kind)))
        self.bindings[name] = ref(var)

    def _rebind(self, name: str, value: Value) -> None:
        """Bind a name to something that is not stored; on some paths only, it must be what it was."""
        if self.depth and name in self.bindings and type_of(self.bindings[name]) != type_of(value):
            raise Untranslatable(f"{name_of(self.source)} gives {name} different meanings on different paths")
        self.bindings[name] = value

    # --- branches and loops -------------------------------------------------------------------------

    def _pin(self, names: list[str]) -> dict[str, Var]:
        """Store the values of names that are assigned on some paths only, and remember their variables."""
        outer = dict(self.pinned)
        for name in names:
            if name not in self.bindings or name in self.pinned:
                continue
            value = self.bindings[name]
            kind = stored_type(type_of(value))
            if not is_stored(kind) or kind == ARRAY:
                continue
            if isinstance(value, Node) and value.op == "ref" and value.type == kind and not value.data.is_parameter:
                var = value.data
            else:
                var = Var(self._unique(name), kind)
                self.body.append(Assign(var, converted(value, kind)))
                self.bindings[name] = ref(var)
            self.pinned[name] = var
        return outer

    def _inner(self, nodes: list[ast.stmt]) -> tuple[list[Statement], bool]:
        outer, self.body = self.body, []
        self.depth += 1
        ends = self._block(nodes)
        self.depth -= 1
        inner, self.body = self.body, outer
        return inner, ends

    def _on_if(self, node: ast.If) -> bool:
        condition = self.value(node.test)
        if isinstance(condition, Static):
            return self._block(node.body if condition.value else node.orelse)
        outer = self._pin(assigned([*node.body, *node.orelse]))
        before = dict(self.bindings)
        then, ends = self._inner(node.body)
        if ends:
            self.bindings = dict(before)
        otherwise, ends_too = self._inner(node.orelse)
        self.pinned = outer
        self.body.append(If(condition, then, otherwise))
        return ends and ends_too

    def _on_for(self, node: ast.For) -> bool:
        iterated = node.iter
        if not (isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "range"):
            raise Untranslatable(
                f"{name_of(self.source)} loops over {ast.unparse(iterated)}; only ranges have a translation"
            )
        if node.orelse or len(iterated.args) > 2 or not isinstance(node.target, ast.Name):
            raise Untranslatable(f"{name_of(self.source)} uses a loop of a kind that has no translation")
        ends = [self.value(x) for x in iterated.args]
        first, end = (Static(0), ends[0]) if len(ends) == 1 else ends
        saved = self._snapshot()
        try:
            self._loop(node, first, end)
        except DynamicIndex:
            if not (isinstance(first, Static) and isinstance(end, Static)):
                raise
            if end.value - first.value > LONGEST_UNROLLED:
                raise
            self._restore(saved)
            self._unrolled(node, range(first.value, end.value))
        return False

    def _snapshot(self) -> Any:
        return len(self.body), dict(self.bindings), dict(self.pinned), len(self.returned), self.depth, self.body

    def _restore(self, saved: Any) -> None:
        count, bindings, pinned, returned, self.depth, self.body = saved
        del self.body[count:]
        del self.returned[returned:]
        self.bindings, self.pinned = dict(bindings), dict(pinned)

    def _named(self, target: ast.expr) -> str:
        """Return the name of the variable that counts, or is added to."""
        if not isinstance(target, ast.Name):
            raise Untranslatable(f"{name_of(self.source)} counts in {ast.unparse(target)}; use a variable")
        return target.id

    def _loop(self, node: ast.For, first: Value, end: Value) -> None:
        name = self._named(node.target)
        outer = self._pin([n for n in assigned(node.body) if n != name])
        var = Var(self._unique("pass" if name == "_" else name), INT)
        if name != "_":
            self.bindings[name] = ref(var)
        body, _ = self._inner(node.body)
        self.pinned = outer
        self.body.append(Loop(var, converted(first, INT), converted(end, INT), body))

    def _unrolled(self, node: ast.For, places: range) -> None:
        if any(isinstance(inner, ast.Break) for inner in ast.walk(node)):
            raise Untranslatable(f"{name_of(self.source)} leaves a loop that must be written out")
        for i in places:
            self.bindings[self._named(node.target)] = Static(i)
            self._block(node.body)

    # --- calls --------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Value:
        """Translate a call: of a primitive, or of a kernel for the types of these arguments."""
        arguments: list[Value] = []
        for part in node.args:
            if isinstance(part, ast.Starred):
                whole = self.kept(self.value(part.value), "parts")
                arguments += [item(whole, i) for i in range(length(whole))]
            else:
                arguments.append(self.value(part))
        callee = self.value(node.func)
        if not isinstance(callee, Static):
            raise Untranslatable(f"{name_of(self.source)} calls {ast.unparse(node.func)}")
        if callee.value is generic.workspace:
            return self._workspace(arguments[1])
        function = callee.value
        if isinstance(function, functools.partial) and not function.keywords:
            arguments = [*(Static(x) for x in function.args), *arguments]
            function = function.func
        function = self.program.chosen(function, arguments)
        if self.program.is_primitive(function):
            twice = {generic.sincos: "angle", generic.finite: "total"}.get(callee.value)
            if twice and not is_place(arguments[0]):
                arguments = [self._temporary(arguments[0], twice)]
            return function(*[self.kept(a, "value") for a in arguments])
        if not isinstance(function, types.FunctionType):
            raise Untranslatable(f"{name_of(self.source)} calls {ast.unparse(node.func)}, which has no translation")
        if node.keywords:
            named = {k.arg: self.value(k.value) for k in node.keywords}
            arguments = [
                *arguments,
                *(named[n] for n in list(inspect.signature(function).parameters)[len(arguments) :]),
            ]
        return self._called(function, arguments, node.func.id if isinstance(node.func, ast.Name) else "")

    def _called(self, function: Any, arguments: list[Value], called: str) -> Value:
        missing = function.__code__.co_argcount - len(arguments)
        if missing > 0:
            arguments = [*arguments, *map(lifted, (function.__defaults__ or ())[-missing:])]
        kinds = self._argument_types(function, arguments)
        made = self.program.function(function, kinds, called)
        ready = [self._readable_as(a, k) for a, k in zip(arguments, kinds, strict=True)]
        passed = tuple(converted(a, k) for a, k in zip(ready, kinds, strict=True) if is_stored(k))
        if not is_stored(made.result):
            if not made.is_pure:
                self.body.append(Do(Node("call", passed, made.result, made)))
            return of_type(None, made.result)
        return Node("call", passed, made.result, made)

    @staticmethod
    def _argument_types(function: Any, arguments: list[Value]) -> tuple[Type, ...]:
        tree = definition(function)
        counts = counting_parameters(tree)
        names = [a.arg for a in tree.args.args] + [""] * len(arguments)
        kinds = []
        for name, value in zip(names, arguments, strict=False):
            keep = is_integers(value) if is_tuple(value) else name in counts
            kinds.append(type_of(value) if keep else _passed(type_of(value)))
        return tuple(kinds)

    def _readable_as(self, value: Value, kind: Type) -> Value:
        """The value, stored first if its items must be read one by one to convert it to a type."""
        if isinstance(kind, Tup) and isinstance(value, tuple) and len(value) == len(kind.items):
            return tuple(self._readable_as(v, k) for v, k in zip(value, kind.items, strict=True))
        if isinstance(value, Node) and isinstance(value.type, Tup) and value.type != kind and not is_place(value):
            return self._temporary(value, "parts")
        return value

    def _workspace(self, count: Value) -> Value:
        if not isinstance(count, Static):
            raise Untranslatable(f"{name_of(self.source)} needs a workspace whose size varies")
        var = Var(self._unique("work"), ARRAY, size=count.value)
        self.body.append(Assign(var, None))
        return ref(var)


def _passed(kind: Type) -> Type:
    """The type of an argument: known numbers are passed, other known objects are part of the function."""
    if isinstance(kind, Tup):
        return tup(*map(_passed, kind.items))
    return stored_type(kind)

"""The registry of methods: look-up by name, alias or expression, and registration."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from .._memo import Memo
from ..errors import InputError
from ..kernels.loops import Step
from .record import CONSERVABLE, ENDS, NEEDS, TOP, Build, Method


def _key(label: str) -> str:
    return re.sub(r"\s+", "", label).lower()


class Known(NamedTuple):
    """A name of a method elsewhere: the name, the method or expression, key in references.bib, description."""

    label: str
    expression: str
    cite: str
    where: str


DEEPEST = 40
"""Largest number of combinators in an expression."""

EXAMPLES = ("8", "rk4", "0.8", "dmv10", "strang(jacobi)", "imidm", "2")
"""Arguments that are tried for the example of a combinator: an order, a tableau, a number, methods."""

BOOKS: list[Methods] = []
"""All books of methods, one for each kind of space."""


class Methods(Mapping[str, Method]):
    """The registry of methods: ``ph.methods["imidm"]``, ``ph.methods["mkrk(rk4)"]``; a mapping from names.

    Iteration, `keys`, `values` and `items` give the registered methods, in order of registration. Look-up also takes
    aliases and expressions, and `get` returns None for what is neither.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # a registry is equal to itself only, whatever it holds

    def __init__(self) -> None:
        self._methods: dict[str, Method] = {}
        self._labels: dict[str, str] = {}
        self._combinators: dict[str, Callable[..., Method]] = {}
        self._expressions: dict[str, str] = {}
        self._families: dict[str, Callable[[str], Method]] = {}
        self._known: list[Known] = []
        self._made = Memo()
        self._own: weakref.WeakSet[Method] = weakref.WeakSet()
        BOOKS.append(self)

    def add(self, method: Method) -> Method:
        """Register a method under its name and aliases, which must be new."""
        self._made.clear()
        for label in (method.name, *method.aliases):
            if self._labels.get(_key(label), method.name) != method.name or label in self._methods:
                raise InputError(
                    f"the label {label!r} names {self._labels[_key(label)]!r} already; choose another one", "name"
                )
            self._labels[_key(label)] = method.name
        self._methods[method.name] = method
        self._own.add(method)
        return method

    def owns(self, method: Method) -> bool:
        """Does the name of a method stand for it in this book: is it registered, or made of an expression."""
        return method in self._own

    def add_label(self, label: str, expression: str, cite: str = "", where: str = "") -> None:
        """Make a label, such as a name in a paper, stand for a method or an expression; `known` lists cited labels."""
        if label in self:
            raise ValueError(f"the label {label!r} is already taken")
        self._made.clear()
        self._expressions[_key(label)] = expression
        if cite:
            self._known.append(Known(label, expression, cite, where))

    @property
    def known(self) -> list[Known]:
        """Names of methods in the literature, with their sources."""
        return list(self._known)

    def add_combinator(self, name: str, make: Callable[..., Method]) -> None:
        """Register a combinator, written ``name(argument, ...)`` in expressions."""
        self._made.clear()
        self._combinators[name] = make

    def add_family(self, prefix: str, make: Callable[[str], Method]) -> None:
        """Make ``prefix`` followed by a whole number a name, even if that member is not registered."""
        self._made.clear()
        self._families[_key(prefix)] = make

    @property
    def combinators(self) -> dict[str, Callable[..., Method]]:
        """Combinators by name."""
        return dict(self._combinators)

    def __getitem__(self, label: str | Method) -> Method:
        if isinstance(label, Method):
            return label
        if not isinstance(label, str):
            raise InputError(f"a method is given by name, expression or Method; got {type(label).__name__}")
        label = self._expressions.get(_key(label), label)
        found = self._labels.get(_key(label))
        if found is not None:
            return self._methods[found]
        made: Method = self._made(label, lambda: self._parsed(label))  # the same object again: so is its compiled code
        if _key(made.name) == _key(label):
            self._own.add(made)
        return made

    def _parsed(self, label: str) -> Method:
        """Build the method of an expression, or of a name made of a family's prefix and a number."""
        if label.count("(") > DEEPEST:
            raise InputError(f"an expression has at most {DEEPEST} combinators; got {label.count('(')}")
        call = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", label)
        if call and call[1].lower() in self._combinators:
            return self._combined(label, call[1].lower(), arguments(call[2]))
        member = re.fullmatch(r"([a-z_]+)(\d+)", _key(label))
        if member and member[1] in self._families:
            return self._families[member[1]](member[2])
        if made := self._example(_key(label)):
            raise InputError(f"{_key(label)!r} is a combinator, which makes methods: write {made}")
        raise InputError(self._unknown(label))

    def _combined(self, label: str, name: str, parts: list[str]) -> Method:
        make = self._combinators[name]
        try:
            inspect.signature(make).bind(*parts)
        except TypeError as problem:
            example = self._example(name)
            raise InputError(f"{label!r} is not a method: {problem}" + f"; write {example}" * bool(example)) from None
        return make(*parts)

    def _unknown(self, label: str) -> str:
        names_of = self._expressions | self._labels
        near = difflib.get_close_matches(_key(label), names_of, n=4, cutoff=0.5)
        names = list(dict.fromkeys(names_of[n] for n in near))
        hint = f"nearest: {', '.join(names)}" if names else "no name is similar"
        return f"unknown method {label!r}; {hint}. `polhode methods` lists all of them"

    def _example(self, name: str) -> str:
        """Return a call of a combinator, or of a family, with an argument that it takes; empty for other names."""
        registered = [m for m in self if m.startswith(f"{name}(")]
        for part in EXAMPLES if name in self._combinators or registered else ():
            if self.get(f"{name}({part})") is not None:
                return f"{name}({part})"
        return registered[0] if registered else ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._methods)

    def __len__(self) -> int:
        return len(self._methods)

    def __contains__(self, label: object) -> bool:
        return isinstance(label, str) and (_key(label) in self._labels or _key(label) in self._expressions)

    def get(self, label: Any, default: Any = None) -> Any:
        """Return the method of a name, alias or expression; the default if there is none."""
        try:
            return self[label]
        except InputError:
            return default

    def taking(self, kind: str) -> list[Method]:
        """Return the methods that take a field of this kind."""
        return [m for m in self.values() if m.takes(kind)]


def arguments(text: str) -> list[str]:
    """Split ``a, f(b, c)`` at the commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    tail = text[start:].strip()
    return [*parts, tail] if tail else parts


methods = Methods()


def in_book(module: str, name: str) -> Method:
    """The method of a name in the book of a module: how methods are pickled."""
    try:
        found: Method = importlib.import_module(module).methods[name]
    except InputError as problem:
        raise InputError(
            f"a pickle holds the method {name!r}, which is not known here; import the module that declares it first"
        ) from problem
    return found


def reduced(method: Method) -> tuple[Any, ...]:
    """A method as its name and the module of the book in which it stands."""
    for book in BOOKS:
        if book.owns(method):
            return in_book, (type(book).__module__, method.name)
    if "cloudpickle" in sys.modules:  # it sends functions themselves
        return object.__reduce_ex__(method, 4)  # type: ignore[return-value]  # a tuple, though typed str too
    raise InputError(
        f"the method {method.name} cannot be pickled: its name in ph.methods does not stand for it; register it in a "
        "module that the other process imports too"
    )


def declare(build: Build, *, register: bool = True, **declared: Any) -> Method:
    """Make a Method from a builder and its declaration, check the declared words, and register it."""
    declared["conserves"] = frozenset(declared.get("conserves", ()))
    declared["torque_at"] = frozenset(declared.get("torque_at", ()))
    unknown = (declared["conserves"] - set(CONSERVABLE)) | (declared["torque_at"] - set(ENDS))
    if unknown or declared["needs"] not in (*NEEDS, TOP):
        raise ValueError(f"{declared['name']}: unknown names in the declaration: {unknown or declared['needs']}")
    declared["doc"] = inspect.cleandoc(declared.get("doc") or build.__doc__ or "")
    method = Method(build=build, **declared)
    return methods.add(method) if register else method


def method(**declared: Any) -> Callable[[Step], Method]:
    """Register the decorated step kernel as a method of that name: ``@method(order=2, ...) def imid(...)``."""

    def enter(step: Step) -> Method:
        declared.setdefault("name", step.__name__)
        declared.setdefault("doc", step.__doc__)
        declared.setdefault("implicit", declared.get("solves", 0) > 0)
        return declare(lambda number: step, **declared)

    return enter

"""The fingerprint of a Python function: a digest of everything that its compiled code can depend on.

That is its byte code, its constants, its defaults, its closure cells and the globals it names, followed recursively
into the functions among them. File names, line numbers, names of local functions, docstrings, memory addresses and
the order of sets and dictionaries are ignored: two processes that build the same function get the
same fingerprint. One object referenced twice counts like two equal objects.

An object whose content cannot be read is an error, so that different functions never share a fingerprint by accident.
A class can define a method `fingerprint` that returns the content of its objects as numbers, strings, functions or
containers of these.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import enum
import functools
import hashlib
import inspect
import os
import struct
import sys
import types
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba.core import types as numba_types
from numba.core.dispatcher import Dispatcher
from numba.extending import _Intrinsic

from ..errors import InputError
from ..numbers.dispatch import NO_FMA, NOINLINE, USER_CODE

PACKAGE = __name__.split(".")[0]

COMPILER = tuple(
    f"{PACKAGE}.{name}"
    for name in (
        "numbers.primitives", "numbers.dispatch", "numbers.double_double", "compile.numba_target",
        "compile.front_end", "compile.inner_functions", "compile.stack", "compile.simd.vector_types",
        "compile.simd.functions", "compile.simd.dual", "compile.simd.workspace", "compile.simd.rows",
        "compile.simd.lanewise", "compile.simd.words", "compile.simd.convolution", "compile.simd.rough",
    )
)  # fmt: skip
"""Modules that tell numba how to compile primitives. They reach compiled code through overloads, which no closure
refers to, so the key of compiled code contains their whole source (`program.environment`)."""

VERSIONED = ("llvmlite", "numba", "numpy")
"""Packages besides the standard library whose objects count by name: the key of compiled code has their versions."""


class UnknownContent(InputError):
    """An object without a fingerprint was reached."""


def fingerprint(root: Any, portable: bool = False) -> str:
    """The digest of a function, or of any other content of compiled code, as 64 hexadecimal digits.

    A portable fingerprint, for files, is the same under any version of Python: functions count by name instead of
    byte code. Numbers in their source then do not count; numbers in closures and globals do.
    """
    return _Reader(portable).digest(root).hex()


class _Code(NamedTuple):
    """Content of a code object, including nested ones."""

    digest: bytes
    constants: tuple[Any, ...]
    names: frozenset[str]
    globals: tuple[str, ...]


@functools.lru_cache(maxsize=4096)
def _read(code: types.CodeType) -> _Code:
    """The parts of a code object; equal code objects are read once.

    Constants count in the order in which instructions load them. A docstring is a constant that no instruction loads.
    """
    places: dict[int, int] = {}
    written: list[tuple[int, int | None]] = []
    used: set[str] = set()
    for i in dis.get_instructions(code):
        if i.opcode in dis.hasconst:
            written.append((i.opcode, places.setdefault(i.arg or 0, len(places))))
        else:
            written.append((i.opcode, i.arg))
        if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            used.add(i.argval)
    names, constants = set(code.co_names), []
    for place in places:
        constant = code.co_consts[place]
        if isinstance(constant, types.CodeType):
            inner = _read(constant)
            constants += [inner.digest, *inner.constants]
            names |= inner.names
            used.update(inner.globals)
        else:
            constants.append(constant)
    rest = (
        code.co_exceptiontable, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
        code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR), code.co_names,
        code.co_varnames, code.co_freevars, code.co_cellvars,
    )  # fmt: skip
    digest = hashlib.blake2b(repr((written, rest)).encode(), digest_size=32).digest()
    return _Code(digest, tuple(constants), frozenset(names), tuple(sorted(used)))


class _Reader:
    """Digests of objects, each computed once.

    A function that is reached again while it is being read (recursion) counts by its distance up the call stack.
    Digests with such references are valid only in their place, so they are not memoised.
    """

    def __init__(self, portable: bool = False) -> None:
        self.portable = portable
        self.known: dict[int, tuple[bytes, Any]] = {}
        self.open: list[int] = []
        self.lowest = sys.maxsize

    def digest(self, x: Any) -> bytes:
        """The digest of an object."""
        plain = _plain(x)
        if plain is not None:
            return _joined(*plain)
        if id(x) in self.known:
            return self.known[id(x)][0]
        if id(x) in self.open:
            place = self.open.index(id(x))
            self.lowest = min(self.lowest, place)
            return _joined("again", str(len(self.open) - place).encode())
        outside, self.lowest = self.lowest, sys.maxsize
        self.open.append(id(x))
        try:
            found = self.content(x)
        finally:
            self.open.pop()
        if self.lowest >= len(self.open):
            self.known[id(x)] = found, x  # keep the object alive, so that its id is not reused
        self.lowest = min(self.lowest, outside)
        return found

    def content(self, x: Any) -> bytes:
        """The digest of an object from its content."""
        for kind, read in _READERS:
            if isinstance(x, kind):
                return read(self, x)
        declared = getattr(type(x), "fingerprint", None)
        if declared is not None:
            return self.all("declared", [_name(type(x)), declared(x)])
        if dataclasses.is_dataclass(x):
            fields = [(f.name, getattr(x, f.name)) for f in dataclasses.fields(x)]
            return self.all("dataclass", [_name(type(x)), *fields])
        raise UnknownContent(
            f"compiled code cannot depend on an object of type {_name(type(x))}, because its changes would not be "
            f"noticed: {x!r:.200}. Use numbers, strings, tuples, arrays or functions, or give the class a method "
            f"`fingerprint` that returns these"
        )

    def all(self, kind: str, parts: Iterable[Any]) -> bytes:
        """The digest of several objects, in order."""
        return _joined(kind, *map(self.digest, parts))

    def sequence(self, x: Any) -> bytes:
        """A tuple or a list; for a named tuple its type counts too."""
        kind = type(x).__name__ if type(x) in (tuple, list) else _name(type(x)) + repr(getattr(x, "_fields", ""))
        return self.all(kind, x)

    def mapping(self, x: Any) -> bytes:
        """A dictionary."""
        return _joined("dict", *sorted(map(self.digest, x.items())))

    def collection(self, x: Any) -> bytes:
        """A set."""
        return _joined("set", *sorted(map(self.digest, x)))

    def array(self, x: np.ndarray) -> bytes:
        """An array: its type, shape, layout and bytes."""
        if x.dtype.hasobject:
            return self.all("objects", [x.shape, x.tolist()])
        layout = x.flags.c_contiguous, x.flags.f_contiguous, x.flags.writeable
        return _joined("array", repr((x.dtype.str, x.dtype.descr, x.shape, layout)).encode(), x.tobytes())

    def used(self, x: Any, names: frozenset[str]) -> bytes:
        """The content of a variable; for a module, its attributes that the code uses."""
        if not isinstance(x, types.ModuleType):
            return self.digest(x)
        if _is_versioned_module(x.__name__):
            return _joined("module", x.__name__.encode())
        found = [name for name in sorted(names) if name in vars(x)]
        return _joined("module", *(part for n in found for part in (n.encode(), self.used(vars(x)[n], names))))

    def function(self, x: types.FunctionType) -> bytes:
        """A Python function."""
        if _is_versioned(x):
            return _joined("name", _name(x).encode())
        code, parts, kind = _read(x.__code__), [], "function"
        for variable, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                parts += [variable.encode(), b"empty"]
            else:
                parts += [variable.encode(), self.used(value, code.names)]
        if x.__module__ in COMPILER:  # its source is in the key; its globals change as number types are registered
            kind = f"primitive {_name(x)}"
        else:
            for name in code.globals:
                parts += [name.encode(), self.named(x, name, code.names)]
        written = _name(x) if self.portable else (code.digest, code.constants)
        rest = (written, x.__defaults__, x.__kwdefaults__, x in NO_FMA, x in NOINLINE, x in USER_CODE)
        return _joined(kind, *map(self.digest, rest), *parts)

    def named(self, function: types.FunctionType, name: str, names: frozenset[str]) -> bytes:
        """The content of a global name of a function."""
        if name in function.__globals__:
            return self.used(function.__globals__[name], names)
        return b"builtin" if hasattr(builtins, name) else b"missing"

    def builtin(self, x: Any) -> bytes:
        """A function written in C, by its name; a method also by its object."""
        owner = getattr(x, "__self__", None)
        if owner is not None and not isinstance(owner, types.ModuleType):
            return self.all("bound", [x.__name__, owner])
        return _joined("name", _name(x).encode())

    def bound(self, x: types.MethodType) -> bytes:
        """A method of an object."""
        return self.all("method", [x.__func__, x.__self__])

    def partial(self, x: Any) -> bytes:
        """A functools.partial."""
        return self.all("partial", [x.func, x.args, x.keywords])

    def wrapped(self, x: Any) -> bytes:
        """A function in a transparent wrapper: a cache, a static method."""
        return self.all("wrapped", [x.__wrapped__])

    def dispatcher(self, x: Any) -> bytes:
        """A function that numba compiles."""
        return self.all("dispatcher", [x.py_func, x.targetoptions])

    def intrinsic(self, x: Any) -> bytes:
        """A function that writes its own machine code."""
        return self.all("intrinsic", [x._defn])

    def type(self, x: type) -> bytes:
        """A class: its name and, if its source is not in the key, its methods and constants."""
        if _is_versioned_module(x.__module__) or x.__module__ in COMPILER:
            return _joined("name", _name(x).encode())
        fields = getattr(x, "_fields", None)
        if issubclass(x, tuple) and fields is not None:
            return self.all("named tuple", [_name(x), fields, getattr(x, "_field_defaults", None)])
        members = {n: m for n, m in vars(x).items() if n not in _OF_EVERY_CLASS}
        members = {n: m.fget if isinstance(m, property) else m for n, m in members.items()}
        return self.all("class", [_name(x), x.__bases__, members])

    def member(self, x: enum.Enum) -> bytes:
        """A member of an enumeration."""
        return self.all("member", [_name(type(x)), x.name, x.value])


_OF_EVERY_CLASS = frozenset(
    (
        *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__slots__"),
        *("__firstlineno__", "__static_attributes__", "__annotate_func__", "__annotations_cache__", "__match_args__"),
        *("__dataclass_fields__", "__dataclass_params__", "__parameters__", "__orig_bases__", "__abstractmethods__"),
        "_abc_impl",
    )
)
"""Attributes of classes that no compiled code depends on."""

_READERS: tuple[tuple[Any, Callable[..., bytes]], ...] = (
    (types.FunctionType, _Reader.function),
    (enum.Enum, _Reader.member),
    ((tuple, list), _Reader.sequence),
    (dict, _Reader.mapping),
    ((set, frozenset), _Reader.collection),
    (np.ndarray, _Reader.array),
    (type, _Reader.type),
    (functools.partial, _Reader.partial),
    ((functools._lru_cache_wrapper, staticmethod, classmethod), _Reader.wrapped),
    ((types.BuiltinFunctionType, types.MethodWrapperType, np.ufunc), _Reader.builtin),
    (types.MethodType, _Reader.bound),
    (Dispatcher, _Reader.dispatcher),
    (_Intrinsic, _Reader.intrinsic),
)


def _plain(x: Any) -> tuple[str, bytes] | None:
    """Type name and bytes of a number, a text or a similar value; None for everything else."""
    kind = type(x)
    if kind is float:
        return "float", struct.pack("<d", x)
    if kind is complex:
        return "complex", struct.pack("<dd", x.real, x.imag)
    if kind is bytes:
        return "bytes", x
    if kind is str:
        return "str", x.encode("utf-8", "surrogatepass")
    if kind in (int, bool, type(None), type(Ellipsis), type(NotImplemented), Fraction, range, slice):
        return kind.__name__, repr(x).encode()
    if isinstance(x, np.generic):
        return "scalar " + x.dtype.str, x.tobytes()
    if isinstance(x, np.dtype):
        return "dtype", repr((x.str, x.descr)).encode()
    if isinstance(x, numba_types.Type):
        return "numba type", f"{_name(kind)} {x.name}".encode()
    return None


def _joined(kind: str, *parts: bytes) -> bytes:
    """The digest of some parts, each after its length."""
    digest = hashlib.blake2b(f"{kind} {len(parts)}".encode(), digest_size=32)
    for part in parts:
        digest.update(struct.pack("<q", len(part)))
        digest.update(part)
    return digest.digest()


def _name(x: Any) -> str:
    """The qualified name of a function or a class."""
    return f"{getattr(x, '__module__', None)}.{getattr(x, '__qualname__', None) or x.__name__}"


@functools.cache
def _is_versioned_module(name: str) -> bool:
    """True for a module of the standard library or of a versioned package; a user's `test.py` is not one."""
    root = name.split(".")[0]
    if root not in sys.stdlib_module_names:
        return root in VERSIONED
    file = getattr(sys.modules.get(root), "__file__", None)
    return file is None or Path(file).is_relative_to(Path(os.__file__).parent)


def _is_versioned(x: Any) -> bool:
    """True if the function is the attribute of that name of a versioned module."""
    if not _is_versioned_module(x.__module__ or ""):
        return False
    found: Any = sys.modules.get(x.__module__)
    for part in x.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is x

"""Programs: functions compiled by numba, each once per machine.

The key of a program depends on its content alone: the fingerprint of the Python function, and the versions and compiler
sources it is compiled with. The key is used in the memo of the process and on disk. Building a function and its
fingerprint takes a few milliseconds. Therefore the memo also stores a shortcut to each program, under the
objects from which the function was built; a shortcut only saves time and never leaves the process.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import sys
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from .._memo import MADE
from .._version import __version__
from . import numba_target
from .clock import counted
from .disk_cache import DiskCache, private_folder
from .fingerprint import COMPILER, fingerprint
from .front_end import quickly
from .notice import FORGOTTEN, KEPT, announced
from .simd import dual
from .stack import aligned


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A function that numba compiles for each new signature, unless the disk cache holds it.

    Attributes
    ----------
    key : digest of everything that the compiled code depends on, except the signature and the processor
    run : the compiled function; call it
    was_kept : True if the disk cache held it when this process first requested it
    """

    key: str
    run: Any
    was_kept: bool

    @property
    def is_warm(self) -> bool:
        """True if it can be called without compiling."""
        return self.was_kept or bool(self.run.signatures)


@functools.cache
def environment() -> str:
    """Digest of the inputs of all programs: versions, options, and the sources of compiler and derivatives."""
    llvmlite = importlib.import_module("llvmlite")
    versions = (__version__, numba.__version__, llvmlite.__version__, np.__version__, sys.version)
    digest = hashlib.sha256(repr(versions).encode())
    for name in COMPILER:
        source = Path(str(importlib.import_module(name).__file__)).read_bytes()
        digest.update(f"\n{name} {len(source)}\n".encode() + source)
    digest.update(fingerprint((numba_target.OPTIONS, numba_target.INNER, dual.RULES)).encode())
    return digest.hexdigest()


def key_of(function: Callable[..., Any]) -> str:
    """The key of the program of a function."""
    return hashlib.sha256(f"{environment()} {fingerprint(function)}".encode()).hexdigest()[:32]


def compiled(function: Callable[..., Any]) -> Program:
    """The program of a function; equal functions share one program."""
    key = key_of(function)
    program: Program = MADE(("program", key), lambda: _made(function, key))
    return program


def program(make: Callable[[], Callable[..., Any]], *shortcut: Hashable) -> Program:
    """The program of the function that `make` builds; built once for each shortcut.

    The shortcut names the program and the objects that it is built from, so that equal shortcuts mean equal programs.
    """
    found: Program = MADE(("shortcut", *shortcut), lambda: counted(lambda: compiled(make()))())
    return found


def entry_point(run: Any, *arguments: Any) -> Callable[..., Any]:
    """The machine code of a compiled function for the types of some arguments, to be called without numba's dispatcher.

    The dispatcher looks at the type of each argument, tuples within tuples included, which takes a microsecond. Here
    the caller must know the types: a number of another type is converted.
    """
    signature = tuple(map(run.typeof_pyval, arguments))
    if signature not in run.overloads:  # `run.compile` prepares the compiler before it looks
        run.compile(signature)
    found: Callable[..., Any] = run.overloads[signature].entry_point
    return found


def _made(function: Callable[..., Any], key: str) -> Program:
    run = numba_target.jitted(function)
    run.compile = counted(aligned(quickly(run.compile)))  # which numba calls for every new signature
    folder = private_folder(environment()[:16])
    builder = run._compiler  # to which `run.compile` turns if it finds nothing on disk
    builder.compile = announced(builder.compile, FORGOTTEN if folder is None else KEPT)
    if folder is None:
        return Program(key, run, False)
    run._cache = DiskCache(folder, key)
    return Program(key, run, run._cache.is_warm)

"""The C++ code on all cores: compiled for this processor when it is first needed."""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from race.crowds import END, Crowd

from . import source

FLAGS = [
    "-O3",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
    "-w",
    "-Wno-psabi",
]
FIRST_STEP = 0.05
PARTS = 4
"""Parts per core, as in `ph.ensemble`: no core waits long for the last one."""

POINTER = ctypes.POINTER(ctypes.c_double)


@functools.cache
def _library() -> ctypes.CDLL:
    folder = Path(tempfile.mkdtemp(prefix="anchors"))
    code, made = folder / "anchors.cpp", folder / "anchors.so"
    code.write_text(source.cpp())
    subprocess.run(["g++", *FLAGS, "-o", made, code, "-lm"], check=True)
    return ctypes.CDLL(str(made))


@functools.cache
def _threads(number: int) -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(number)


def prepared(crowd: Crowd, name: str, cores: int) -> Callable[[float], np.ndarray]:
    """Return a function of the tolerance that runs a crowd of heavy tops and returns the quaternions at the end."""
    run = getattr(_library(), f"run_{name}")
    numbers, long = ctypes.c_double, ctypes.c_long
    run.restype, run.argtypes = long, [long, long, long, POINTER, POINTER, numbers, numbers, numbers, POINTER]
    count = len(crowd)
    start, factors, out = (np.ascontiguousarray(a.T) for a in (*crowd.numbers(), np.empty((count, 7))))
    edges = [count * i // (PARTS * cores) for i in range(PARTS * cores + 1)]

    def call(tolerance: float) -> np.ndarray:
        def part(k: int) -> Any:
            given = _pointer(start), _pointer(factors), tolerance, END, FIRST_STEP, _pointer(out)
            return run(count, edges[k], edges[k + 1], *given)

        list(_threads(cores).map(part, range(PARTS * cores)))
        return out[:4].T

    return call


def _pointer(array: np.ndarray) -> Any:
    return array.ctypes.data_as(POINTER)

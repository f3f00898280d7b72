"""Throughput of independent operations on one core: nanoseconds per operation, scalar and in SIMD lanes."""

from __future__ import annotations

import math
import time
from typing import Any

import numba
import numpy as np

from polhode.compile.simd.vector_types import LANES, load, store

OPERATIONS = {"multiply-add": "# * b + b", "sum": "# + b", "division": "b / #", "square root": "sqrt(#)"}
CHAINS = 12
"""Registers in use: enough to fill two units with a latency of four or five cycles, fewer than the machine has."""

COUNT, REPEATS = 2000, 40


def _chains(width: int) -> int:
    """Number of independent chains of an operation; a number in lanes takes two registers."""
    return CHAINS if width == 1 else CHAINS // 2


def _kernel(operation: str, width: int) -> Any:
    """The compiled chains."""
    names = [f"x{i}" for i in range(_chains(width))]
    lines = ["def run(data):", f"    b = {'load(data, 0)' if width > 1 else 'data[0]'}"]
    lines += [f"    {x} = b + {i}" for i, x in enumerate(names)]
    lines += [f"    for _ in range({COUNT}):", *(f"        {x} = {operation.replace('#', x)}" for x in names)]
    total = " + ".join(names)
    text = "\n".join([*lines, f"    store(data, 0, {total})" if width > 1 else f"    data[0] = {total}", ""])
    space = {"load": load, "store": store, "sqrt": math.sqrt}
    exec(text, space)  # the text contains no user input
    return numba.njit(fastmath={"contract"}, error_model="numpy")(space["run"])


def units() -> list[dict[str, Any]]:
    """Nanoseconds per number of each operation, best of many."""
    rows = []
    for name, operation in OPERATIONS.items():
        runs, best = {width: _kernel(operation, width) for width in (1, LANES)}, {1: np.inf, LANES: np.inf}
        for _ in range(REPEATS + 1):  # the first one compiles
            for width, run in runs.items():
                data = np.full(width, 0.75)
                began = time.perf_counter()
                run(data)
                best[width] = min(best[width], time.perf_counter() - began)
        single, lanes = (1e9 * best[width] / (COUNT * _chains(width) * width) for width in (1, LANES))
        rows.append({"operation": name, "scalar_ns": single, "lanes_ns": lanes, "ratio": single / lanes})
    return rows

"""Peak throughput of the processor: fused multiply-adds in SIMD lanes on all cores."""

from __future__ import annotations

import concurrent.futures
import time
from typing import Any

import numba
import numpy as np

from polhode.compile import threads
from polhode.compile.simd.vector_types import LANES, load, store

CHAINS = 10
"""Number of independent sums: more than the latency of a multiply-add, four or five cycles."""


def _kernel() -> Any:
    names = [f"x{i}" for i in range(CHAINS)]
    lines = ["def run(count, data):", "    a, b = load(data, 0), load(data, LANES)", *(f"    {x} = a" for x in names)]
    lines += ["    for _ in range(count):", *(f"        {x} = {x} * b + a" for x in names)]
    text = "\n".join([*lines, f"    store(data, 2 * LANES, {' + '.join(names)})", ""])
    space = {"load": load, "store": store, "LANES": LANES}
    exec(text, space)  # the text contains no user input
    return numba.njit(nogil=True, fastmath={"contract"}, error_model="numpy")(space["run"])


def peak(seconds: float = 0.1) -> float:
    """Double-precision operations per second of all cores together, best of five."""
    run, count = _kernel(), 100_000
    data = [np.full(3 * LANES, 0.5) for _ in range(threads.cores())]
    run(1, data[0])
    began = time.perf_counter()
    run(count, data[0])
    count = int(count * max(seconds / (time.perf_counter() - began), 1))
    best = np.inf
    with concurrent.futures.ThreadPoolExecutor(len(data)) as pool:
        for _ in range(5):
            began = time.perf_counter()
            for part in [pool.submit(run, count, numbers) for numbers in data]:
                part.result()
            best = min(best, time.perf_counter() - began)
    return 2.0 * CHAINS * LANES * count * len(data) / best

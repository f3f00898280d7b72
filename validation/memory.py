"""Memory growth of a process that serves many different requests, per new field and per new parameter value.

python validation/memory.py functions 60     a new torque function each time, compiled (fixed steps)
python validation/memory.py tol 300          the same function with new parameters, to a tolerance
python validation/memory.py fields 300       a new function with the same formula each time

Measured (2 cores, Python 3.11, numba 0.68, llvmlite 0.50), before and after caches were bounded, and since memory is
released after compiling (compile/release.py):

    tol 900         10.6 kB per call, unbounded               0.0 kB
    fields 180      0.0 kB                                    0.0 kB
    functions       3.3 MB compiled, 0.3 MB read from disk    3.2 MB compiled     0.57 MB compiled while its loop is
                                                              among the 256 kept, 0.30 MB after that; 0.08 MB from disk

Breakdown of the 3.2 MB of a function compiled in the process (method fe, five kernels; malloc_trim releases nothing):

    2.0 MB   pass managers of LLVM, 87 for each program, which llvmlite never frees (`ModulePassManager` inherits the
             empty `_dispose` of `ObjectRef`); freed now. Of a plain numba function they were 0.9 of 1.1 MB.
    0.5 MB   LLVM modules: numba never removes one from its engine; removed now when their library is gone
    0.4 MB   types, numba IR and results of compiling, held by numba's caches of overloads; emptied now
    0.3 MB   remain: 0.13 MB of instrumentation that LLVM's pass builders leave behind (1.5 kB each, in llvmlite's C++),
             less than 0.1 MB of Python objects (kernels registered with numba), the rest probably machine code and its
             symbols, which MCJIT frees only with the engine (not measured separately)
"""

from __future__ import annotations

import gc
import os
import sys
import time

import polhode as ph

BODY = ph.Body([5.0, 4.0, 1.0])


def resident() -> float:
    """Megabytes in memory (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def functions(i: int) -> None:
    """Run with a new torque, for which a loop is compiled."""
    c = 0.1 + i * 1e-3
    torque = ph.torque(eval(f"lambda omega, k: (-k * omega[0] * {c}, -k * omega[1], {c} * omega[2])"))
    ph.solve(ph.Problem(BODY, torque(0.1), omega=[1, 2, 3]), "fe", dt=1e-3, steps=10, progress=False)


def tol(i: int) -> None:
    """Run a built-in field with another parameter; nothing is compiled."""
    field = ph.fields.gravity(20.0 + i * 1e-6)
    problem = ph.Problem(ph.Body([5.0, 5.0, 1.0]), field, omega=[0.1, 0.2, 3.0])
    ph.solve(problem, tol=1e-6, t_end=2.0, progress=False)


def fields(i: int) -> None:
    """Run a new user function with a known formula; nothing is compiled."""
    field = ph.potential(lambda R, mgl: mgl * R[2][2])
    problem = ph.Problem(BODY, field(20.0), omega=[0.1, 0.2, 3.0])
    ph.solve(problem, "imidm", dt=0.01, steps=10, progress=False)


KINDS = {"functions": functions, "tol": tol, "fields": fields}


def main(kind: str, count: int) -> None:
    """Print the memory at six moments, and its growth after the first third."""
    call, began, sizes = KINDS[kind], time.perf_counter(), []
    for i in range(count + 1):
        if i % max(1, count // 6) == 0:
            gc.collect()
            sizes.append((i, resident()))
            print(f"{i:6d} calls  {sizes[-1][1]:8.1f} MB  {time.perf_counter() - began:6.1f} s", flush=True)
        call(i)
    (first, before), (last, after) = sizes[2], sizes[-1]
    print(f"{kind}: {1e3 * (after - before) / (last - first):.1f} kB per call")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

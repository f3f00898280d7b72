"""heyoka, numbalsoda, diffrax and code written by hand, with ensembles on all cores.

All integrate (q, omega) as in `cases.py`.
"""

from __future__ import annotations

import concurrent.futures
import copy
import functools
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .cases import forced_rates, free_rates
from .crowd_clock import Run, Runner
from .crowds import END, Crowd

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
TOLERANCES = tuple(10.0 ** (-k / 3) for k in range(12, 49))
"""Three per decade, from 1e-4."""


def _rates(factors: Any, heavy: bool) -> Callable[..., Any]:
    """The equations of one body as a function of its state."""
    count = 5 if heavy else 3
    rates = forced_rates if heavy else free_rates
    return lambda *state: rates(*state, *(factors[i] for i in range(count)))


def _shares(count: int, parts: int) -> Iterator[tuple[int, int]]:
    edges = np.linspace(0, count, parts + 1).astype(int).tolist()
    return itertools.pairwise(edges)


# --- heyoka -----------------------------------------------------------------------------------------


@functools.cache
def _heyoka_batch(heavy: bool, tolerance: float, width: int) -> list[Any]:
    """The batch integrator with unrolled code; the factors of a body are its parameters; one copy per core."""
    import heyoka as hy

    x = hy.make_vars("a", "b", "c", "d", "u", "v", "w")
    count = 5 if heavy else 3
    motion = list(zip(x, _rates([hy.par[i] for i in range(count)], heavy)(*x), strict=True))
    made = hy.taylor_adaptive_batch(
        motion, np.zeros((7, width)), pars=np.zeros((count, width)), tol=tolerance, compact_mode=False
    )
    return [made, *(copy.deepcopy(made) for _ in range(CORES - 1))]


def _heyoka(width: int, ordered: bool, crowd: Crowd, tolerance: float) -> Run:
    heavy, number = crowd.mgl is not None, len(crowd)
    batches = _heyoka_batch(heavy, tolerance, width)
    start, factors = crowd.numbers()
    order = np.argsort((crowd.omega**2).sum(axis=1)) if ordered else np.arange(number)
    columns = np.append(order, np.repeat(order[-1:], -number % width))
    states, pars = np.ascontiguousarray(start[columns].T), np.ascontiguousarray(factors[columns].T)
    ends = np.empty_like(states)
    threads = concurrent.futures.ThreadPoolExecutor(CORES)

    def work(batch: Any, begin: int, end: int) -> None:
        state, par = batch.state, batch.pars
        for g in range(begin, end):
            those = slice(g * width, (g + 1) * width)
            batch.set_time(0.0)
            state[:], par[:] = states[:, those], pars[:, those]
            batch.propagate_until(END)
            ends[:, those] = state

    def call() -> np.ndarray:
        shares = _shares(len(columns) // width, CORES)
        for part in [threads.submit(work, b, *share) for b, share in zip(batches, shares, strict=True)]:
            part.result()
        found = np.empty((number, 4))
        found[order] = ends[:4, :number].T
        return found

    return Run(call)


def heyoka(crowd: Crowd, quick: bool) -> list[Runner]:
    """Batches of one vector of bodies, and of two."""
    import heyoka as hy

    wide = hy.recommended_simd_size()
    widths = (wide,) if quick else (wide, 2 * wide)
    return [Runner(f"batch of {n}", TOLERANCES, functools.partial(_heyoka, n, False)) for n in widths]


def heyoka_sorted(crowd: Crowd, quick: bool) -> list[Runner]:
    """The same with the bodies sorted by speed beforehand (not timed), so that a batch ends together."""
    import heyoka as hy

    wide = hy.recommended_simd_size()
    return [Runner(f"batch of {wide}, sorted", TOLERANCES, functools.partial(_heyoka, wide, True))]


# --- numbalsoda -------------------------------------------------------------------------------------


@functools.cache
def _numbalsoda_loop(heavy: bool) -> Any:
    import numba
    from numbalsoda import dop853, lsoda_sig

    @numba.cfunc(lsoda_sig)
    def free(t: Any, y: Any, dy: Any, p: Any) -> None:
        r = free_rates(y[0], y[1], y[2], y[3], y[4], y[5], y[6], p[0], p[1], p[2])
        for i in range(7):
            dy[i] = r[i]

    @numba.cfunc(lsoda_sig)
    def forced(t: Any, y: Any, dy: Any, p: Any) -> None:
        r = forced_rates(y[0], y[1], y[2], y[3], y[4], y[5], y[6], p[0], p[1], p[2], p[3], p[4])
        for i in range(7):
            dy[i] = r[i]

    right = forced if heavy else free
    address = right.address

    @numba.njit(parallel=True)
    def run(start: Any, factors: Any, tolerance: Any, when: Any) -> Any:
        ends = np.empty((len(start), 4))
        for i in numba.prange(len(start)):
            states, _ = dop853(address, start[i], when, factors[i], rtol=tolerance, atol=tolerance, mxstep=1_000_000)
            ends[i] = states[-1, :4]
        return ends

    return right, run


def _numbalsoda(crowd: Crowd, tolerance: float) -> Run:
    keep, run = _numbalsoda_loop(crowd.mgl is not None)
    start, factors = crowd.numbers()
    when = np.array([0.0, END])
    return Run(lambda: run(start, factors, tolerance, when) if keep else start)


def numbalsoda(crowd: Crowd, quick: bool) -> list[Runner]:
    """Its DOP853 from compiled code, bodies distributed over the cores by prange."""
    import numbalsoda as _  # noqa: F401 - says whether it is there

    return [Runner("DOP853", TOLERANCES, _numbalsoda)]


# --- diffrax ----------------------------------------------------------------------------------------

STEPS = 100_000


@functools.cache
def _diffrax_program(heavy: bool, solver: str) -> Callable[..., Any]:
    """One program for chunks of bodies: the tolerance is an argument, each body has its own steps (vmap)."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import diffrax as dx
    import jax.numpy as jnp

    term = dx.ODETerm(lambda t, y, p: jnp.stack(_rates(p, heavy)(*(y[i] for i in range(7)))))
    method = getattr(dx, solver)()

    def one(y: Any, p: Any, tolerance: Any) -> Any:
        found = dx.diffeqsolve(
            term, method, 0.0, END, None, y, p, saveat=dx.SaveAt(t1=True), max_steps=STEPS, throw=False,
            stepsize_controller=dx.PIDController(rtol=tolerance, atol=tolerance),
        )  # fmt: skip
        return found.ys[-1, :4]

    program: Callable[..., Any] = jax.jit(jax.vmap(one, in_axes=(0, 0, None)))
    return program


def _diffrax(solver: str, chunk: int, threads: int, crowd: Crowd, tolerance: float) -> Run:
    program = _diffrax_program(crowd.mgl is not None, solver)
    start, factors = crowd.numbers()
    number = len(crowd)
    columns = np.append(np.arange(number), np.full(-number % chunk, number - 1))
    start, factors = start[columns], factors[columns]
    pool = concurrent.futures.ThreadPoolExecutor(threads)

    def work(begin: int) -> np.ndarray:
        those = slice(begin, begin + chunk)
        return np.asarray(program(start[those], factors[those], tolerance))

    def call() -> np.ndarray:
        return np.concatenate(list(pool.map(work, range(0, len(columns), chunk))))[:number]

    return Run(call)


def diffrax(crowd: Crowd, quick: bool, chunk: int = 1024, threads: int = CORES) -> list[Runner]:
    """Tsit5 and Dopri8 with their step control, in chunks; on a CPU one chunk per core at a time."""
    import diffrax as _  # noqa: F401 - says whether it is there

    return [
        Runner(solver, TOLERANCES, functools.partial(_diffrax, solver, chunk, threads))
        for solver in (("Tsit5",) if quick else ("Tsit5", "Dopri8"))
    ]


# --- code written by hand ---------------------------------------------------------------------------


def _by_hand(name: str, crowd: Crowd, tolerance: float) -> Run:
    from anchors import processor

    return Run(functools.partial(processor.prepared(crowd, name, CORES), tolerance))


def by_hand(crowd: Crowd, quick: bool) -> list[Runner]:
    """C++ vectors written for heavy tops (`benchmarks/anchors`), with two pairs."""
    if crowd.mgl is None:
        return []
    settings = tuple(10.0 ** (-k / 6) for k in range(12, 85))
    names = ("vern8",) if quick else ("vern8", "dop853")
    return [Runner(name, settings, functools.partial(_by_hand, name)) for name in names]


RIVALS: dict[str, Callable[..., list[Runner]]] = {
    "heyoka": heyoka, "heyoka, sorted": heyoka_sorted, "diffrax": diffrax, "numbalsoda": numbalsoda,
    "by hand": by_hand,
}  # fmt: skip

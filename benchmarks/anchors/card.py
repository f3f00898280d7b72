"""The CUDA code, compiled by CuPy, and our kernel alone, both with all data in the memory of the GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from race.crowds import END, Crowd, weight

from polhode._memo import MADE
from polhode.compile import cuda as fixed
from polhode.compile import cuda_adaptive
from polhode.compile.batch import layout
from polhode.compile.batch.adaptive_step import BEHIND
from polhode.kernels.loops import COLUMNS
from polhode.run.ensemble import api
from polhode.run.ensemble.inputs import Inputs
from polhode.run.ensemble.lane_steps import lane_steps
from polhode.run.ensemble.start import Start

from . import source
from .processor import FIRST_STEP

THREADS = 128


def prepared(crowd: Crowd, name: str) -> Callable[[float], Any]:
    """Return a function of the tolerance that runs the hand-written code and returns the states on the GPU."""
    import cupy

    kernel, count = _module().get_function(f"run_{name}"), len(crowd)
    start, factors = (cupy.asarray(np.ascontiguousarray(a.T)) for a in crowd.numbers())
    out = cupy.empty((7, count))

    def call(tolerance: float) -> Any:
        given = np.int64(count), start, factors, np.float64(tolerance), np.float64(END), np.float64(FIRST_STEP), out
        kernel((-(-count // THREADS),), (THREADS,), given)
        cupy.cuda.get_current_stream().synchronize()
        return out

    return call


@functools.cache
def _module() -> Any:
    import cupy

    return cupy.RawModule(code=source.cuda(), options=("--std=c++17",))


def quaternions(found: Any) -> np.ndarray:
    """Return the quaternions of an array (columns, bodies) of CuPy or numba, on the host."""
    host = found.get() if hasattr(found, "get") else found.copy_to_host()
    return np.asarray(host).reshape(-1, host.shape[-1])[:4].T


def ours(crowd: Crowd) -> Callable[[float], Any]:
    """Return a function of the tolerance that runs our kernel on data in the memory of the GPU."""
    from numba import cuda

    inputs = Inputs(crowd.moments, crowd.quaternions, Start("momenta", crowd.momenta), weight, {"mgl": crowd.mgl}, 0.0,
                    END)  # fmt: skip
    buffers: dict[str, Any] = {}

    def call(tolerance: float) -> Any:
        key = f"{tolerance:.6g}"
        if key not in buffers:
            buffers.clear()
            buffers[key] = _launcher(api.to_tolerance(inputs, None, tolerance, None, "cuda"), len(crowd))
        launch, rows = buffers[key]
        launch()
        cuda.synchronize()
        return rows

    return call


def _launcher(task: Any, count: int) -> tuple[Callable[[], None], Any]:
    """Return a function that launches the kernel of a task, and the array with its results."""
    from numba import cuda

    given, order = task.given()
    size = layout.sizes(given)
    steps = lane_steps(task.model, task.method, task.tolerance)
    run = MADE(("cuda, adaptive", False, size, *steps.key), lambda: cuda_adaptive.loop(steps.make(), size, False))
    data = np.empty((size.rows, layout.padded(count)))
    layout.lay_out(given, order, count, data)
    sent, rows = cuda.to_device(data), cuda.device_array((1, COLUMNS + BEHIND, layout.padded(count)))
    failed, tickets = cuda.device_array(layout.padded(count), dtype=np.int64), fixed.Tickets()
    times = (task.t0, task.t0 + float(task.batch.dt[0]), float(task.longest[0]))

    def launch() -> None:
        cuda_adaptive.launch(run, times, task.tolerance, steps.angle, 0, count, sent, rows, failed, tickets)

    return launch, rows

"""Emitted CUDA sources on a real NVIDIA GPU: the self-test of every method that has a step, compiled by NVRTC.

    python -m validation.gpu_emit [--only dmv6,akw]

Needs CuPy. The device makes the 100 steps of the self-test, for a free body and for a heavy top where the method takes
one, with `-fmad=false`; the seven numbers are compared with those of the Python kernel, which the text states. The
differences are in units of 2^-52 times the largest number; they are those of sin, cos and the like, which round
differently on a GPU. The exit status is 1 if a step fails or a difference exceeds LIMIT.
"""

from __future__ import annotations

import argparse
import re
import sys

import numpy as np

import polhode as ph

EPSILON = 2.0**-52
LIMIT = 200.0
"""Largest difference: 100 steps, one or two units each where a function rounds differently."""

MARK = "static int compared"
KERNEL = """#endif
extern "C" __global__ void on_device(double *reached, int *failed) { *failed = trial(reached); }
"""


def on_device(text: str) -> tuple[np.ndarray, int]:
    """Return the seven numbers that a device reaches, and the number of the step that failed, or 0."""
    import cupy

    head = text[: text.index(MARK)]
    source = re.sub(r"^#include.*$", "", head, flags=re.MULTILINE) + KERNEL
    module = cupy.RawModule(code=source, options=("-fmad=false", "-DPOLHODE_SELF_TEST", "--std=c++17"))
    reached, failed = cupy.zeros(7), cupy.zeros(1, dtype=np.int32)
    module.get_function("on_device")((1,), (1,), (reached, failed))
    return reached.get(), int(failed.get()[0])


def expected(text: str) -> np.ndarray:
    """Return the numbers of the Python kernel."""
    stated = re.search(r"expected\[7\] = \{([^}]*)\}", text)
    assert stated is not None
    return np.array([float.fromhex(x.strip()) for x in stated[1].split(",")])


def compared(name: str, problem: str) -> float:
    """Print and return the difference of a method; infinite if a step failed."""
    text = ph.emit(name, problem, "cuda")
    reached, failed = on_device(text)
    stated = expected(text)
    gap = np.abs(reached - stated).max() / (EPSILON * np.abs(stated).max())
    found = float(gap) if not failed and np.isfinite(gap) else np.inf
    print(f"{name:28} {problem:10} {found:8.2f}{'' if found <= LIMIT else '  FAILED'}", flush=True)
    return found


def main() -> int:
    """Run all methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="comma-separated methods; default: all with a step")
    names = parser.parse_args().only.split(",")
    chosen = names if any(names) else [m.name for m in ph.methods.values() if m.has_step]
    found = [
        compared(name, problem)
        for name in chosen
        for problem in ("free_body", "heavy_top")[: 1 + ph.methods[name].takes("potential")]
    ]
    equal = sum(gap == 0 for gap in found)
    print(f"{len(found)} sources: {equal} equal to the bit, largest difference {max(found):.2f} units")
    return int(max(found) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())

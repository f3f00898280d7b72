"""Body-steps per second of `ph.ensemble(..., device="cuda")`, fraction of the GPU's peak, agreement with the CPU.

    python benchmarks/gpu.py [--out benchmarks/results/gpu.json] [--bodies 4194304]
    python benchmarks/gpu.py --rivals [--out benchmarks/results/gpu_rivals.json]

Throughput is for whole runs, from host memory to host memory with all transfers, best of three; with few steps per
body the transfers dominate. Operations are counted by `run.cost` in one step of a typical body; elementary
functions are counted separately and not included in the fraction of the peak. The peak is for fused multiply-adds of
the double-precision units at the highest clock. Agreement is the largest difference of attitude and momentum from the
CPU.

With `--rivals`: free bodies and heavy tops to t = 10 against diffrax on the same GPU, at equal accuracy, in less than
six minutes (`pip install "jax[cuda12]" diffrax`); `--cpu` does the same on the processor with few bodies, as a trial.
"""

from __future__ import annotations

import argparse
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph
from polhode.compile.cuda import card
from polhode.run.cost import cost

FREE = ("symrot", "dmv10", "imidm", "rot_auto", "lietaylor(8)", "jacobi", "compensated(dmv10)")
HEAVY = ("strang(symrot)", "strang(dmv10)", "imidm", "lietaylor(8)", "mkrk(rk4)")
TARGETS = {"symrot": 4e10, "dmv10": 4e10, "imidm": 1e10}
"""Target body-steps per second on an H200, free bodies."""

STEPS = (1000, 10_000)
COMPARED = 1024, 1000
"""Bodies and steps of the comparison with the CPU."""

DT = 0.01
UNITS = {(6, 0): 32, (7, 0): 32, (8, 0): 32, (9, 0): 64, (10, 0): 64}
"""Double-precision fused multiply-adds per multiprocessor and cycle, by compute capability; 2 on other GPUs."""


@ph.potential
def weight(R: Any, *, mgl: float) -> Any:
    return mgl * R[2][2]


def bodies(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Moments, momenta and weights of random bodies."""
    rng = np.random.default_rng(1)
    return rng.uniform(1, 1.9, (number, 3)), rng.normal(size=(number, 3)), rng.uniform(0.5, 2, number)


def run(name: str, heavy: bool, number: int, steps: int, device: str) -> ph.Ensemble:
    moments, momenta, mgl = bodies(number)
    field: dict[str, Any] = {"field": weight, "params": {"mgl": mgl}} if heavy else {}
    return ph.ensemble(moments, None, momenta, name, dt=DT, steps=steps, device=device, **field)


def throughput(name: str, heavy: bool, number: int, steps: int) -> float:
    seconds = min(run(name, heavy, number, steps, "cuda").seconds for _ in range(3))
    return number * steps / seconds


def difference(name: str, heavy: bool) -> tuple[float, float]:
    one, other = (run(name, heavy, *COMPARED, device) for device in ("cpu", "cuda"))
    if (one.failed >= 0).any() or (other.failed >= 0).any():
        raise SystemExit(f"{name}: a step failed")
    return float(abs(one.quaternion - other.quaternion).max()), float(abs(one.momentum - other.momentum).max())


def measured(name: str, heavy: bool, number: int, peak: float) -> dict[str, Any]:
    away = difference(name, heavy)
    rates = {steps: throughput(name, heavy, number, steps) for steps in STEPS}
    body = ph.Body([1.2, 1.5, 1.8])
    problem = ph.Problem(body, weight(mgl=1.0) if heavy else None, momentum=[0.6, 0.7, 0.8])
    method, best = ph.methods[name], max(rates.values())
    operations = None if method.compensated else cost(method, problem, DT)  # low parts are not counted there
    print(f"{name:22} {'heavy' if heavy else 'free':6} {best:9.3g}/s  differs by {max(away):.2g}", flush=True)
    return {
        "method": name,
        "bodies": "heavy tops" if heavy else "free",
        "body_steps_per_second": {str(steps): float(f"{rate:.4g}") for steps, rate in rates.items()},
        "target": None if heavy else TARGETS.get(name),
        "flops": operations and operations.flops,
        "functions": operations and operations.function,
        "share_of_peak": operations and round(best * operations.flops / peak, 4),
        "attitude_difference": away[0],
        "momentum_difference": away[1],
    }


def card_peak() -> tuple[str, float]:
    """Name and double-precision peak of the GPU."""
    device = card().get_current_device()
    units = UNITS.get(tuple(device.compute_capability), 2) * device.MULTIPROCESSOR_COUNT
    name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
    return name, 2.0 * units * device.CLOCK_RATE * 1e3


def against_others(on_card: bool, out: Path | None) -> None:
    """Comparison with diffrax."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # our own arrays share the GPU
    from race import crowd_card, peak

    name, most = card_peak() if on_card else ("processor", peak.peak())
    sheet = next((flops for part, flops in crowd_card.DATA_SHEET.items() if part in name), None)
    print(f"{name}, {(sheet or most) / 1e12:.3g} Tflop/s in double precision", flush=True)
    sizes = ("cuda", 1 << 20, 1 << 17, 330.0) if on_card else ("cpu", 4096, 256, 240.0)
    found = {"card": name, "peak_flops": sheet or most, "clock_peak_flops": most, "crowds": {}}
    found["crowds"] = crowd_card.rivals(*sizes, sheet or most)
    packages = ("numba", "numpy", "jax", "diffrax", *(("numba-cuda",) if on_card else ()))
    found["versions"] = {package: version(package) for package in packages}
    if out:
        out.write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--bodies", type=int, default=1 << 22)
    parser.add_argument("--rivals", action="store_true", help="against diffrax on the same GPU")
    parser.add_argument("--cpu", action="store_true", help="with --rivals: on the processor, as a trial")
    arguments = parser.parse_args()
    if arguments.rivals:
        against_others(not arguments.cpu, arguments.out)
        return
    name, peak = card_peak()
    print(f"{name}, double-precision peak {peak / 1e12:.1f} Tflop/s, {arguments.bodies} bodies")
    cases = [(method, False) for method in FREE] + [(method, True) for method in HEAVY]
    runs = [measured(method, heavy, arguments.bodies, peak) for method, heavy in cases]
    found = {
        "card": name,
        "peak_flops": peak,
        "versions": {package: version(package) for package in ("numba", "numba-cuda", "numpy")},
        "bodies": arguments.bodies,
        "dt": DT,
        "compared": {"bodies": COMPARED[0], "steps": COMPARED[1]},
        "runs": runs,
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

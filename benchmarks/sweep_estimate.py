"""How good the time is that `polhode sweep` announces: the time of five sweeps over their estimates, in one run.

    python benchmarks/sweep_estimate.py

The sweeps are short, of many bodies, with many states, with statistics, and in many shards. Wanted: ratios from 1/3
to 3.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from polhode.config import sweep_file
from polhode.methods import EXAMPLE
from polhode.run.ensemble import estimate, shards

HEAD = f"""
[problem]
name = "fast_top"
[run]
method = "{EXAMPLE}"
dt = 0.01
"""

SWEEPS = {
    "the example": (sweep_file.EXAMPLE, None),
    "20000 bodies, 200 steps": (
        HEAD + "steps = 200\n[random]\ncount = 20000\nseed = 1\nmomentum = { isotropic = 5.0 }\n",
        None,
    ),
    "2000 bodies, 201 states of each": (
        HEAD + 'steps = 2000\nevery = 10\n[random]\ncount = 2000\nseed = 1\nattitude = "random"\n',
        None,
    ),
    "500 bodies, 20000 steps, statistics": (
        HEAD
        + 'steps = 20000\nstatistics = ["energy"]\n[random]\ncount = 500\nseed = 1\n'
        + "params.mgl = { normal = [20.0, 1.0] }\n",
        None,
    ),
    "2000 bodies in shards of 100": (
        HEAD + "steps = 2000\n[random]\ncount = 2000\nseed = 1\nmomentum = { isotropic = 5.0 }\n",
        100,
    ),
}


def measured(text: str, unit: int | None) -> tuple[float, float]:
    """The time announced and the time taken."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sweep.toml"
        file.write_text(text, encoding="utf-8")
        sweep = sweep_file.read(file, False)
        announced, began = estimate.seconds_of(sweep.task, unit), time.perf_counter()
        shards.run(sweep.task, Path(folder) / "out.zarr", shard_size=unit, labels=sweep.labels, progress=False)
        return announced, time.perf_counter() - began


if __name__ == "__main__":
    for name, (text, unit) in SWEEPS.items():
        announced, taken = measured(text, unit)
        print(
            f"{name:40s} announced {announced:6.2f} s, taken {taken:6.2f} s, ratio {taken / announced:.2f}", flush=True
        )

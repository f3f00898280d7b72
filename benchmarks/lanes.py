"""Speed-up of SIMD lanes over the scalar loop, on one core, for every registered method in one run.

    python benchmarks/lanes.py [--out benchmarks/lanes.json] [--statistics energy] [METHOD ...]
    NUMBA_CPU_NAME=znver3 NUMBA_CPU_FEATURES=+avx2,+fma python benchmarks/lanes.py --out benchmarks/results/avx2.json
    python benchmarks/lanes.py --page docs/lanes.md

The second line measures code for AVX2 on a machine that has more; the third writes the page from the two files.

The same random bodies, each with its own inertia, attitude, momentum and (if the method takes a potential) weight,
make the same steps twice: one after the other in the compiled loop of `ph.solve`, and by `ph.ensemble` on one core.
Runs are short, the two kinds alternate, and the best of many counts, which removes the load of a shared machine;
the cost of a call without its steps is subtracted.
With `--statistics` the lanes are also timed with that observable evaluated at every step.
"""

from __future__ import annotations

import argparse
import json
import os
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from race.units import units

import polhode as ph
from polhode.analysis.bench import machine
from polhode.compile.simd.vector_types import FEATURES
from polhode.run.cost import cost
from polhode.run.system import engine

TARGETS = {"avx512f": 5.0, "avx2": 3.0}
"""Target speed-up over the scalar loop; other vector widths have no target."""


def vector_units() -> str:
    """The widest vector instructions of the compiled code."""
    return next((name for name in ("avx512f", "avx2", "avx", "neon") if f"+{name}" in FEATURES), "unknown")


BATCH = 32
"""Bodies for the comparison of the scalar loop with SIMD lanes."""

BATCH_DT, BATCH_STEPS, BATCH_REPEATS = 0.01, 500, 80
"""Steps and repetitions. Runs are short and many, so that on a shared machine some are undisturbed; the time of a run
of one step is subtracted."""


@ph.potential
def _weight(R: Any, mgl: float) -> Any:
    return mgl * R[2][2]


def _random_bodies() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Moments, attitudes, momenta and weights of random bodies."""
    rng = np.random.default_rng(1)
    q = rng.normal(size=(BATCH, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    return rng.uniform(1, 1.9, (BATCH, 3)), q, rng.normal(size=(BATCH, 3)), rng.uniform(0.5, 2, BATCH)


def lanes_over_scalar(method: ph.Method, statistics: str | None = None) -> dict[str, Any]:
    """Nanoseconds per body-step in the scalar loop and in lanes, on the cores of this process.

    With `statistics`, also in lanes with the observable evaluated at every step.
    """
    moments, q, m, mgl = _random_bodies()
    heavy = method.takes("potential")
    given: dict[str, Any] = {"field": _weight, "params": {"mgl": mgl}} if heavy else {}
    runs = []
    for i in range(BATCH):
        field = _weight(mgl[i]) if heavy else None
        runs.append(engine(ph.Problem(ph.Body(moments[i]), field, attitude=q[i], momentum=m[i]), method))
    rows = runs[0].buffer(2)

    def one_by_one(steps: int) -> list[float]:
        spent = []
        for run in runs:
            began = time.perf_counter()
            *_, fine = run.advance(BATCH_DT, 0.0, 0, steps, BATCH_STEPS, run.last(steps), run.y, run.system, rows)
            spent.append(time.perf_counter() - began)
            if not fine:
                raise ph.StepError(f"a step of {BATCH_DT:g} failed with {method.name}")
        return spent

    def together(steps: int, watched: str | None = None) -> float:
        return ph.ensemble(moments, q, m, method, dt=BATCH_DT, steps=steps, statistics=watched, **given).seconds

    kinds: dict[str, Callable[[int], Any]] = {"scalar_ns": one_by_one, "lanes_ns": together}
    if statistics:
        kinds[f"lanes_ns_with_{statistics}"] = lambda steps: together(steps, statistics)
    best: dict[tuple[str, int], Any] = {}
    for name, run in kinds.items():
        run(1)  # compiles
        best |= {(name, steps): np.array(np.inf) for steps in (1, BATCH_STEPS)}
    for _ in range(BATCH_REPEATS):  # alternating, so that all see the same machine load
        for name, steps in best:
            best[name, steps] = np.minimum(best[name, steps], kinds[name](steps))
    row: dict[str, Any] = {"method": method.name}
    for name in kinds:
        spent = np.sum(best[name, BATCH_STEPS] - best[name, 1])
        row[name] = float(1e9 * spent / (BATCH * (BATCH_STEPS - 1)))
    return row | {"ratio": row["scalar_ns"] / row["lanes_ns"]}


def measured(name: str, statistics: str | None) -> dict[str, Any]:
    row = lanes_over_scalar(ph.methods[name], statistics)
    mark = "" if row["ratio"] >= TARGETS.get(vector_units(), 0.0) else "  below"
    more = f"   with {statistics} {row[f'lanes_ns_with_{statistics}']:9.1f}" if statistics else ""
    print(f"{name:26} {row['scalar_ns']:9.1f} {row['lanes_ns']:9.1f} {row['ratio']:7.2f}{mark}{more}", flush=True)
    return row


PAGE = """# SIMD speed-up

<!-- written by benchmarks/lanes.py -->

The bodies of an ensemble run in SIMD lanes: a vector register holds the same number of several
bodies, one in each lane, and one instruction acts on all of them. With AVX-512 there are 16 bodies
in a group (two registers for each number), otherwise 8.

The benchmark integrates the same 32 random bodies (heavy tops, or free bodies for methods that take
no field) over 500 steps of 0.01, once one after the other in the compiled scalar loop of `ph.solve`
and once in SIMD lanes, on one core and in one run ({processor}, {dates}). The table gives
nanoseconds per body-step and the speed-up. The library aims at a speed-up of {targets}.

```{{code-block}} console
{commands}
```

{table}

{below}

## Hardware limits

Independent operations on the same core, nanoseconds per number, scalar and in SIMD lanes:

{units}

This processor (Zen 4) executes a 512-bit instruction in two halves on 256-bit units. If the scalar
code keeps the units busy, the speed-up is therefore the ratio in this table. It is larger if scalar
instructions wait for each other's results. Steps with much instruction-level parallelism (the long
sums of products in Taylor series, and the short steps of Moser and Veselov) are closest to the
table.
"""

FILES = (Path("benchmarks/lanes.json"), Path("benchmarks/results/avx2.json"))


def _table(found: list[dict[str, Any]], rows: str, first: str) -> str:
    """A table with the figures of several files side by side."""
    heads = [first, *(f"{part['vectors']} {what}" for part in found for what in ("scalar", "lanes", "ratio"))]
    lines = [f"| {' | '.join(heads)} |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    known = [{row[first]: row for row in part[rows]} for part in found]
    for name in dict.fromkeys(name for part in known for name in part):
        cells = [part.get(name) for part in known]
        words = [f"{c['scalar_ns']:.3g} | {c['lanes_ns']:.3g} | {c['ratio']:.1f}" if c else "| |" for c in cells]
        lines.append(f"| {name} | {' | '.join(words)} |")
    return "\n".join(lines)


def _below(part: dict[str, Any]) -> str:
    """The methods that miss the target, with the time that their products alone would take."""
    rows = [row for row in part["rows"] if row["ratio"] < part["target"]]
    unit = next(row for row in part["units"] if row["operation"] == "multiply-add")
    said = []
    for row in rows:
        products = cost(ph.methods[row["method"]], ph.problems.heavy_top(), 0.01).mul
        alone = [products * unit[kind] for kind in ("scalar_ns", "lanes_ns")]
        said.append(
            f"`{row['method']}` ({row['ratio']:.2f}), whose {products} multiply-adds per step alone take "
            f"{alone[0]:.0f} ns in scalar code and {alone[1]:.0f} ns in lanes, a ratio of {alone[0] / alone[1]:.1f}"
        )
    return f"Below the target of {part['target']:g} with {part['vectors']}: {'; '.join(said) or 'none'}."


def page() -> str:
    """The page of docs/, from the files of figures."""
    found = [json.loads(path.read_text()) for path in FILES]
    commands = [line.strip() for line in (__doc__ or "").splitlines() if "--out" in line or "--page" in line]
    return PAGE.format(
        processor=found[0]["machine"]["processor"],
        dates=" and ".join(dict.fromkeys(part["machine"]["date"] for part in found)),
        targets=" and ".join(f"{part['target']:g} with {part['vectors']}" for part in found),
        commands="\n".join(commands),
        table=_table(found, "rows", "method"),
        below=textwrap.fill(" ".join(_below(part) for part in found), 100),
        units=_table(found, "units", "operation"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", metavar="METHOD")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--statistics", metavar="OBSERVABLE")
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    if arguments.page:
        arguments.page.write_text(page())
        return
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # `ph.ensemble` uses all allowed cores
    print(f"{'method':26} {'scalar':>9} {'lanes':>9}   ratio    (nanoseconds per body-step, {vector_units()})")
    found = {"machine": machine(), "vectors": vector_units(), "target": TARGETS.get(vector_units()), "units": units()}
    rows: list[dict[str, Any]] = []
    for name in arguments.methods or [m.name for m in ph.methods.taking("free")]:
        rows.append(measured(name, arguments.statistics))
        if arguments.out:  # now, so that an interrupted run leaves its results
            arguments.out.write_text(json.dumps(found | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

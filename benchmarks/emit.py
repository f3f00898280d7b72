"""Emitted steps beside ours: nanoseconds per step, and whether the numbers equal those of the Python kernel.

    python benchmarks/emit.py --out benchmarks/emit.json
    python benchmarks/emit.py --page docs/emit.md

The first line compiles and times every registered method, or those named (the others stay in the file), on the heavy
top, or on a free body where a method takes no field. It takes half a minute for each and needs cc, rustc and node. The
second line writes the table of the page. Each step is called from another file, so that no constant of the body is
compiled into it; 100 steps from the start are timed 3000 times, and the best time counts, because machines are shared.
"C, fused" is cc -O3 -march=native -ffp-contract=fast, whose last bits differ; so do those of our own compiled steps.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph
from polhode.analysis.bench import machine
from polhode.kernels.loops import COLUMNS
from polhode.run.system import engine
from polhode.translate.interface import Interface, interface
from polhode.translate.self_test import STEPS, trial

HERE = Path(__file__).parent
FILE = HERE / "emit.json"
BEGIN, END = "<!-- table: benchmarks/emit.py -->\n", "<!-- end of table -->\n"
PLAIN, FUSED = ("-O2", "-std=c99"), ("-O3", "-march=native", "-ffp-contract=fast")
RUNS = 3000


def _values(values: tuple[float, ...]) -> str:
    return ", ".join(map(repr, values)) or "0.0"


def _arguments(made: Interface, entry: str, prefix: str = "") -> str:
    changing = made.state
    names = [*(prefix + n.upper() for n in made.data), *(("&mut " if prefix else "") + n for n in changing)]
    return ", ".join(["DT", "T0 + n * DT" if entry == "step" else "T0", *names])


def c_driver(made: Interface, dt: float) -> str:
    """A program that times the steps of the C file."""
    arrays = ", ".join(["double", "double", *["const double *"] * len(made.data), *["double *"] * len(made.state)])
    begin = f"polhode_begin({_arguments(made, 'begin')});" if "begin" in made.entries else ""
    return f"""#include <stdio.h>
#include <string.h>
#include <time.h>
int polhode_step({arrays});
int polhode_begin({arrays});
double INERTIA[] = {{{_values(made.inertia)}}}, INVERSE[] = {{{_values(made.inverse)}}};
double PARAMS[] = {{{_values(made.parameters)}}};
double DT = {dt!r}, T0 = {made.problem.t0!r};
static double now(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }}
static int once(void) {{
    double q[] = {{{_values(made.q)}}}, momentum[] = {{{_values(made.momentum)}}}, memory[{made.memory + 1}];
    memset(memory, 0, sizeof memory);
    {begin}
    int failed = 0;
    for (int n = 0; n < {STEPS}; n++) failed += polhode_step({_arguments(made, "step")});
    return failed;
}}
int main(void) {{
    double best = 1e9;
    for (int run = 0; run < {RUNS}; run++) {{
        double began = now();
        if (once()) return 1;
        double spent = now() - began;
        if (spent < best) best = spent;
    }}
    printf("%.17g\\n", 1e9 * best / {STEPS});
    return 0;
}}
"""


def rust_driver(made: Interface, dt: float) -> str:
    """A program that times the steps of the Rust file."""
    step = _arguments(made, "step", "&").replace("n *", "f64::from(n) *")
    begin = f"polhode::polhode_begin({_arguments(made, 'begin', '&')});" if "begin" in made.entries else ""
    arrays = {"INERTIA": made.inertia, "INVERSE": made.inverse, "PARAMS": made.parameters}
    data = "\n".join(f"    let {name} = black_box([{', '.join(map(repr, x))}]);" for name, x in arrays.items() if x)
    memory = f"let mut memory = [0.0_f64; {made.memory}];" if made.memory else ""
    return f"""#![allow(non_snake_case, unused_mut)]
#[path = "polhode.rs"]
mod polhode;
use std::hint::black_box;
use std::time::Instant;
fn main() {{
    let mut best = f64::INFINITY;
    let (DT, T0) = black_box(({dt!r}_f64, {made.problem.t0!r}_f64));
{data}
    for _ in 0..{RUNS} {{
        let began = Instant::now();
        let mut q = [{_values(made.q)}];
        let mut momentum = [{_values(made.momentum)}];
        {memory}
        {begin}
        for n in 0..{STEPS} {{
            assert_eq!(polhode::polhode_step({step}), 0);
        }}
        black_box((q, momentum));
        best = best.min(began.elapsed().as_secs_f64());
    }}
    println!("{{:e}}", 1e9 * best / {STEPS}.0);
}}
"""


def javascript_driver(made: Interface, dt: float) -> str:
    """A program that times the steps of the JavaScript file."""
    begin = f"f.polhode_begin({_arguments(made, 'begin')});" if "begin" in made.entries else ""
    return f"""const f = require("./polhode.js");
const INERTIA = [{_values(made.inertia)}], INVERSE = [{_values(made.inverse)}], PARAMS = [{_values(made.parameters)}];
const DT = {dt!r}, T0 = {made.problem.t0!r};
function once() {{
    const q = [{_values(made.q)}], momentum = [{_values(made.momentum)}], memory = new Array({made.memory}).fill(0);
    {begin}
    for (let n = 0; n < {STEPS}; n++) if (f.polhode_step({_arguments(made, "step")}) !== 0) throw n;
}}
let best = Infinity;
for (let run = 0; run < {RUNS}; run++) {{
    const began = performance.now();
    once();
    best = Math.min(best, performance.now() - began);
}}
console.log(1e6 * best / {STEPS});
"""


def _run(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def _state(output: str) -> list[float]:
    return [float(line) for line in output.split("\n")[:7]]


def in_c(method: ph.Method, problem: ph.Problem, made: Interface, dt: float, folder: Path) -> dict[str, Any]:
    """Numbers and times of the C file."""
    (folder / "polhode.c").write_text(ph.emit(method, problem))
    (folder / "driver.c").write_text(c_driver(made, dt))
    _run(folder, "cc", *PLAIN, "-DPOLHODE_SELF_TEST", "polhode.c", "-lm", "-o", "test")
    found: dict[str, Any] = {"state": _state(_run(folder, "./test"))}
    for name, options in (("ns", PLAIN), ("fused_ns", FUSED)):
        _run(folder, "cc", *options, "-c", "polhode.c", "-o", "polhode.o")
        _run(folder, "cc", "-O2", "driver.c", "polhode.o", "-lm", "-o", "timed")
        found[name] = float(_run(folder, "./timed"))
    return found


def in_rust(method: ph.Method, problem: ph.Problem, made: Interface, dt: float, folder: Path) -> dict[str, Any]:
    """Numbers and times of the Rust file."""
    (folder / "polhode.rs").write_text(ph.emit(method, problem, "rust"))
    (folder / "driver.rs").write_text(rust_driver(made, dt))
    _run(folder, "rustc", "-O", "--edition=2021", "--cfg", "polhode_self_test", "polhode.rs", "-o", "test")
    _run(folder, "rustc", "-O", "--edition=2021", "driver.rs", "-o", "timed")
    return {"state": _state(_run(folder, "./test")), "ns": float(_run(folder, "./timed"))}


def in_javascript(method: ph.Method, problem: ph.Problem, made: Interface, dt: float, folder: Path) -> dict[str, Any]:
    """Numbers and times of the JavaScript file."""
    (folder / "polhode.js").write_text(ph.emit(method, problem, "javascript"))
    (folder / "driver.js").write_text(javascript_driver(made, dt))
    state = _state(_run(folder, "node", "polhode.js", "--self-test"))
    return {"state": state, "ns": float(_run(folder, "node", "driver.js"))}


def ours(method: ph.Method, problem: ph.Problem, dt: float) -> float:
    """Nanoseconds of a step of ours, of which a call makes more, because a call from Python takes a microsecond."""
    run, rows, steps = engine(problem, method), np.empty((2, COLUMNS + 1)), 10 * STEPS
    best = math.inf
    for _ in range(RUNS // 3):
        began = time.perf_counter()
        run.advance(dt, problem.t0, 0, steps, steps, run.last(steps), run.y, run.system, rows)
        best = min(best, time.perf_counter() - began)
    return 1e9 * best / steps


LANGUAGES: dict[str, Callable[..., dict[str, Any]]] = {"C": in_c, "Rust": in_rust, "JavaScript": in_javascript}


def row(method: ph.Method) -> dict[str, Any]:
    """All figures of a method."""
    problem = ph.problems.heavy_top() if method.takes("potential") else ph.problems.free_body()
    made = interface(method, problem, "polhode")
    reference = trial(made, None)
    found: dict[str, Any] = {"method": method.name, "problem": problem.name, "dt": reference.dt}
    found["ours_ns"] = ours(method, problem, reference.dt)
    for language, measure in LANGUAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(method, problem, made, reference.dt, Path(folder))
        gaps = [abs(x - y) for x, y in zip(figures.pop("state"), reference.expected, strict=True)]
        found[language] = figures | {"difference": max(gaps)}
    return found


# --- the page ---------------------------------------------------------------------------------------


def _difference(value: float) -> str:
    return "equal" if value == 0 else f"{value:.0e}"


def table(found: dict[str, Any]) -> str:
    """The table of the page."""
    lines = [
        "| method | compiled Python | C | C, fused | Rust | JavaScript | C, Rust | JavaScript |",
        "|---|--:|--:|--:|--:|--:|---|---|",
    ]
    for r in found["rows"]:
        times = [r["ours_ns"], r["C"]["ns"], r["C"]["fused_ns"], r["Rust"]["ns"], r["JavaScript"]["ns"]]
        gap = max(r["C"]["difference"], r["Rust"]["difference"])
        words = [f"`{r['method']}`", *(f"{t:.0f}" for t in times)]
        words += [_difference(gap), _difference(r["JavaScript"]["difference"])]
        lines.append(f"| {' | '.join(words)} |")
    about = found["machine"]
    return "\n".join([*lines, "", f"{about['processor']}, {about['date']}.", ""])


def main() -> None:
    """Measure, or write the table of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", metavar="METHOD")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    if arguments.page:
        before, rest = arguments.page.read_text().split(BEGIN)
        after = rest.split(END)[1]
        arguments.page.write_text(before + BEGIN + "\n" + table(json.loads(FILE.read_text())) + "\n" + END + after)
        return
    chosen = [ph.methods[name] for name in arguments.methods] or [m for m in ph.methods.values() if m.has_step]
    for method in chosen:
        found = row(method)
        print(json.dumps(found), flush=True)
        if arguments.out:
            add(found, arguments.out)


def add(found: dict[str, Any], path: Path) -> None:
    """Enter the figures of a method in the file; those of the others stay."""
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    kept = {r["method"]: r for r in rows} | {found["method"]: found}
    ordered = [kept[name] for name in ph.methods if name in kept]
    path.write_text(json.dumps({"machine": machine(), "rows": ordered}, indent=1) + "\n")


if __name__ == "__main__":
    main()

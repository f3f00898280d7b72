"""The same numbers from every backend, and a compile cache that never returns old ones."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

import polhode as ph
from polhode.compile.simd.vector_types import LANES
from polhode.kernels.loops import stepping
from polhode.numbers import floats
from polhode.run.integrator import start, torque_kernel
from polhode.run.system import engine
from representatives import representatives, slow_unless

ALL = [m.name for m in ph.methods.taking("free")]
STEPS = 40


def plain_path(problem, method, dt):
    """The loop as plain Python on floats."""
    y, system = start(problem, method, floats.number)
    torque = torque_kernel(problem, floats.number, method)
    before, after = method.processors(floats.number)
    advance = stepping(method.build(floats.number), torque, before=before, after=after)
    rows = np.empty((STEPS, 7))
    advance(dt, problem.t0, 0, STEPS, 1, STEPS, y, system, rows)
    return rows


def compiled_path(problem, method, dt):
    run = engine(problem, method)
    rows = run.buffer(STEPS)
    run.advance(dt, problem.t0, 0, STEPS, 1, STEPS, run.y, run.system, rows)
    return rows


def agree(name, problem_name, dt):
    problem, method = ph.problems.get(problem_name), ph.methods[name]
    plain, compiled = plain_path(problem, method, dt), compiled_path(problem, method, dt)
    scale = np.abs(plain).max()
    # the compiler may fuse a product and a sum: one rounding per operation, a few hundred operations a step
    assert np.abs(plain - compiled).max() < 1e-14 * scale * STEPS


@pytest.mark.parametrize("name", slow_unless(representatives(ph.methods.taking("free")), ALL))
def test_compiled_equals_plain_python(name):
    agree(name, "fast_top" if ph.methods[name].takes("potential") else "book", 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("problem", ph.problems.names())
@pytest.mark.parametrize("name", ALL)
def test_compiled_equals_plain_python_on_every_problem(name, problem):
    method, given = ph.methods[name], ph.problems.get(problem)
    if method.takes(given.needs) and (method.flat_bodies or not given.body.is_flat):
        agree(name, problem, 0.01)


@pytest.mark.parametrize("name", ALL)
def test_fifty_digits_and_double_agree(name):
    """Plain Python, floats against mpmath: the double run is the precise one up to round-off."""
    method = ph.methods[name]
    problem = ph.problems.fast_top() if method.takes("potential") else ph.problems.book()
    plain = plain_path(problem, method, 0.01)
    precise = ph.solve(problem, name, dt=0.01, steps=4, digits=30)
    ours = np.concatenate([precise.quaternion, precise.momentum], axis=1)[1:]
    growth = 50 * 4 * 0.01 + 4  # radians turned, plus one rounding per step
    assert np.abs(plain[:4] - ours).max() < 40 * 2.0**-52 * growth * np.abs(ours).max()


def test_digits_are_really_there():
    """A free spherical body turns uniformly: the 40-digit answer is known in closed form."""
    problem = ph.Problem(ph.Body([2.0, 2.0, 2.0]), omega=[0.0, 0.0, 1.0])
    sol = ph.solve(problem, "imid", dt=0.5, steps=4, digits=40)
    with mpmath.workdps(50):
        assert abs(sol.mp.quaternion[-1][0] - mpmath.cos(1)) < mpmath.mpf(10) ** -40
        assert abs(sol.mp.quaternion[-1][3] - mpmath.sin(1)) < mpmath.mpf(10) ** -40


# --- the disk cache ---------------------------------------------------------------------------------

SCRIPT = """
import polhode as ph
for problem, method in (("fast_top", "fem"), ("free_body", "dmv4")):
    sol = ph.solve(ph.problems.get(problem), method, dt=0.1, steps=10)
    print(repr(float(sol.momentum[-1][1])))
"""


def run_copy(tree: Path, cache: Path) -> list[float]:
    environment = os.environ | {"PYTHONPATH": str(tree), "POLHODE_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def test_an_edited_kernel_or_table_never_returns_old_numbers(tmp_path):
    tree, cache = tmp_path / "tree", tmp_path / "cache"
    shutil.copytree(Path(ph.__file__).parent, tree / "polhode")
    before = run_copy(tree, cache)
    files = {p: p.stat().st_mtime_ns for p in cache.rglob("*.nbc")}
    assert files, "nothing was cached"
    assert run_copy(tree, cache) == before
    assert {p: p.stat().st_mtime_ns for p in cache.rglob("*.nbc")} == files, "the second run compiled again"

    table = tree / "polhode" / "methods" / "tables" / "dmv_series.py"  # holds no kernel
    edited(table, "(1, 0, 0, 1): (-1, 3)", "(1, 0, 0, 1): (-1, 2)")
    top, free = run_copy(tree, cache)
    assert top == before[0]
    assert abs(free - before[1]) > 1e-10

    edited(  # not the file the method is in: numba's own key would miss this edit
        tree / "polhode" / "kernels" / "so3.py",
        "    a = scale(2, cross(u, v))\n    return add(along(v, q[0], a), cross(u, a))",
        "    a = scale(-2, cross(u, v))\n    return add(along(v, q[0], a), cross(u, a))",
    )
    assert abs(run_copy(tree, cache)[0] - before[0]) > 1e-3


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


CROWD = """
import numpy as np, polhode as ph
from polhode.compile import program
from polhode.compile.simd import vector_types as lanes
m = np.linspace(0.1, 1, 60).reshape(20, 3)
end = ph.ensemble([1.0, 2.0, 3.0], [1, 0, 0, 0], m, "fem", dt=0.01, steps=10)
runs = {p.run for p in program.MADE.values() if isinstance(p, program.Program)}
hits = sum(sum(run.stats.cache_hits.values()) for run in runs)
print(lanes.LANES, hits, any("zmm" in text for run in runs for text in run.inspect_asm().values()))
print(np.array(end.momentum).tobytes().hex())
"""
"""Bodies in lanes; prints how many, code found in the cache, whether it has 512-bit registers, and the momenta."""

LOOP = """
import numpy as np
from polhode.compile import program
from polhode.compile.simd import vector_types as lanes
from polhode.numbers.primitives import sin

def every(x, out):
    for i in range(0, len(x), lanes.LANES):
        lanes.store(out, i, sin(lanes.load(x, i)))

x, out = np.linspace(0.1, 1, 64), np.empty(64)
run = program.compiled(every).run
run(x, out)
print(lanes.LANES, sum(run.stats.cache_hits.values()), any("zmm" in text for text in run.inspect_asm().values()))
print(out.tobytes().hex())
"""
"""The same of a short loop over lanes, with sines instead of momenta."""

PLAIN = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
"""Code for the least processor of a kind: no AVX, no fused multiply-add."""


def run_lanes(script: str, cache: Path, **more: str) -> tuple[int, int, bool, np.ndarray]:
    environment = os.environ | {"POLHODE_CACHE": str(cache)} | more
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    width, hits, wide, numbers = done.stdout.split()
    return int(width), int(hits), wide == "True", np.frombuffer(bytes.fromhex(numbers))


@pytest.mark.parametrize(
    "script", [pytest.param(LOOP, id="loop"), pytest.param(CROWD, id="ensemble", marks=pytest.mark.slow)]
)
def test_code_for_another_processor_is_not_taken_from_the_cache(script, tmp_path):
    width, hits, _, here = run_lanes(script, tmp_path)
    assert (width, hits) == (LANES, 0)
    width, hits, wide, plain = run_lanes(script, tmp_path, **PLAIN)
    assert (width, hits, wide) == (8, 0, False)
    np.testing.assert_allclose(plain, here, rtol=1e-13)
    for more, expected in (({}, here), (PLAIN, plain)):
        _, hits, _, again = run_lanes(script, tmp_path, **more)
        assert hits == 1  # NumPy checks and converts so few bodies
        assert again.tobytes() == expected.tobytes()


def test_other_fields_and_methods_get_other_keys():
    problem = ph.problems.fast_top()
    one = engine(problem, ph.methods["fem"])
    assert engine(problem, ph.methods["fem"]).advance is one.advance
    assert engine(ph.problems.free_body(), ph.methods["fem"]).advance is not one.advance
    mine = [ph.mkrk(ph.Tableau([[0, 0], [a, 0]], [b, 1 - b], name="mine")) for a, b in ((1, 0.5), (0.5, 0))]
    assert engine(problem, mine[0]).advance is not engine(problem, mine[1]).advance

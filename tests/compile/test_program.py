"""Keys of compiled code: they change with everything the code depends on, and with nothing else."""

import dataclasses
import enum
import functools
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import types
from collections import namedtuple
from fractions import Fraction
from pathlib import Path

import numba
import numpy as np
import pytest

import polhode as ph
from polhode._memo import Memo
from polhode.compile import numba_target, program
from polhode.compile.fingerprint import UnknownContent, fingerprint
from polhode.compile.simd import dual
from polhode.kernels import so3
from polhode.kernels.loops import stepping
from polhode.numbers import floats
from polhode.numbers.dispatch import (
    KERNELS,
    OVERLOADS,
    kernel,
    no_fma,
    noinline,
    overloaded,
    solver,
    with_custom_tangent,
)
from polhode.results.store.checkpoint import coefficients
from polhode.run.integrator import state_space, structure, torque_kernel

PACKAGE = Path(ph.__file__).parent

# --- the fingerprint of a function ------------------------------------------------------------------


def made(text: str, **names: object):
    """The function f that a text defines, with some globals."""
    space = dict(names)
    exec(text, space)
    return space["f"]


def shifted(amount, more=0):
    def f(x):
        return x + amount

    return f


Pair = namedtuple("Pair", "a b")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Weight:
    value: object


class Declared:
    def __init__(self, value):
        self.value = value

    def fingerprint(self):
        return self.value


VALUES = [
    *(0, 1, 0.0, -0.0, 1.0, math.nan, math.inf, True, False, None, 1j, "1", b"1", "", Fraction(1, 3), Fraction(1, 2)),
    *((), (1,), [1], ((1,),), (1, 2), (2, 1), {1}, {1, 2}, frozenset({3}), {"a": 1}, {"a": 2}, {"b": 1}, range(3)),
    *(ph.surd(1, 2, 3), ph.surd(1, 2, 5), Pair(1, 2), Pair(1, 3), Colour.RED, Colour.BLUE, Pair, Colour, int, float),
    *(Weight(1), Weight(1.0), Declared(1), Declared(2), numba.types.float64, numba.types.int64, np.dtype("f8")),
    *(np.array([1.0]), np.array([2.0]), np.array([1.0], dtype=np.float32), np.array([[1.0]]), np.float64(1)),
    *(np.int64(1), math.sin, math.cos, abs, so3.cross, so3.dot),
    *(functools.partial(so3.dot, 1), functools.partial(so3.dot, 2)),
]


def test_values_in_a_closure_are_told_apart():
    keys = [fingerprint(shifted(value)) for value in VALUES]
    assert len(set(keys)) == len(VALUES)
    assert keys == [fingerprint(shifted(value)) for value in VALUES]


SAME = {
    "a comment": "def f(x):\n    # note\n    return x + 1\n",
    "documentation": 'def f(x):\n    "About it."\n    return x + 1\n',
    "a line lower": "\n\n\ndef f(x):\n    return x + 1\n",
    "spaces": "def f( x ):\n    return (x+1)\n",
    "annotations": "def f(x: int) -> int:\n    return x + 1\n",
}
OTHER = {
    "a constant": "def f(x):\n    return x + 2\n",
    "the type of a constant": "def f(x):\n    return x + 1.0\n",
    "a text": "def f(x):\n    return x + 'a'\n",
    "another text": "def f(x):\n    return x + 'b'\n",
    "an operation": "def f(x):\n    return x - 1\n",
    "a global": "def f(x):\n    return x + a\n",
    "another global": "def f(x):\n    return x + b\n",
    "a builtin": "def f(x):\n    return abs(x) + 1\n",
    "a default": "def f(x=1):\n    return x + 1\n",
    "another default": "def f(x=2):\n    return x + 1\n",
    "a keyword": "def f(*, x=1):\n    return x + 1\n",
    "another keyword": "def f(*, x=2):\n    return x + 1\n",
    "nested code": "def f(x):\n    return [i + 1 for i in x]\n",
    "other nested code": "def f(x):\n    return [i + 2 for i in x]\n",
    "a global in nested code": "def f(x):\n    return [(lambda: i + a)() for i in x]\n",
    "another global in nested code": "def f(x):\n    return [(lambda: i + b)() for i in x]\n",
}


def test_what_counts_of_a_function():
    plain = fingerprint(made("def f(x):\n    return x + 1\n"))
    for what, text in SAME.items():
        assert fingerprint(made(text)) == plain, what
    keys = {what: fingerprint(made(text, a=1, b=2)) for what, text in OTHER.items()}
    assert len({plain, *keys.values()}) == 1 + len(OTHER)
    assert fingerprint(made(OTHER["a global"], a=3)) != keys["a global"]
    assert fingerprint(made(OTHER["a global in nested code"], a=3)) != keys["a global in nested code"]
    assert fingerprint(made(OTHER["a global"], a=1, b=5, unused=object())) == keys["a global"]


def test_a_function_behind_others_and_behind_modules_counts():
    inner, other = (made(f"def f(x):\n    return x + {n}\n") for n in (1, 2))
    calls = "def f(x):\n    return g(x)\n"
    through = "def f(x):\n    return m.sub.g(x) + m.constant\n"

    def module(g, constant=1, unused=0):
        sub, top = types.ModuleType("sub"), types.ModuleType("top")
        sub.g, sub.unused, top.sub, top.constant = g, unused, sub, constant
        return top

    for build in (
        lambda g: made(calls, g=g),
        lambda g: made(calls, g=made(calls, g=g)),
        lambda g: made(calls, g=numba.njit(g)),
        lambda g: made(calls, g=functools.lru_cache(g)),
        lambda g: made(through, m=module(g)),
        lambda g: made(calls, g=with_custom_tangent(so3.dot, g)),
        lambda g: made(calls, g=overloaded(so3.dot, g)),
        lambda g: made(calls, g=solver(so3.dot, g, so3.dot)),
        lambda g: made(calls, g={"a": [(g,)]}),
    ):
        assert fingerprint(build(inner)) != fingerprint(build(other))
        assert fingerprint(build(inner)) == fingerprint(build(inner))
    one = fingerprint(made(through, m=module(inner)))
    assert fingerprint(made(through, m=module(inner, constant=2))) != one
    assert fingerprint(made(through, m=module(inner, unused=2))) == one


def test_flags_and_options_count():
    plain, other = (made("def f(x):\n    return x * x + x\n") for _ in range(2))
    assert fingerprint(plain) == fingerprint(other)
    assert len({fingerprint(g(made("def f(x):\n    return x * x + x\n"))) for g in (kernel, no_fma, noinline)}) == 3
    keys = {fingerprint(numba.njit(plain, **options)) for options in ({}, {"fastmath": True}, {"error_model": "numpy"})}
    assert len(keys) == 3


def test_recursion_and_sharing():
    """A function that calls itself has a fingerprint; one object twice is as two equal ones."""
    again = "def f(x):\n    return x if x < 1 else f(x - {})\n"
    assert fingerprint(made(again.format(1))) == fingerprint(made(again.format(1)))
    assert fingerprint(made(again.format(1))) != fingerprint(made(again.format(2)))
    one, two = shifted(1), shifted(1)
    assert fingerprint((one, one)) == fingerprint((one, two))
    assert fingerprint({one: 1}) == fingerprint({two: 1})


def test_an_object_that_cannot_be_read_is_an_error_that_names_it():
    for unknown in (object(), threading.Lock(), iter(()), memoryview(b"")):
        with pytest.raises(UnknownContent, match=type(unknown).__name__):
            fingerprint(shifted(unknown))


# --- the keys of programs ---------------------------------------------------------------------------


def loop_key(method: ph.Method, problem: ph.Problem) -> str:
    """The key of the loop that `ph.solve` compiles."""
    torque = torque_kernel(problem, floats.number, method)
    before, after = method.processors(floats.number)
    return program.key_of(stepping(method.build(floats.number), torque, state_space(method), before, after))


SCHEMES = ("yoshida4(imidm)", "strang(dmv4)", "reversible(imidm)", "yoshida4(dmv6)")


def test_every_method_and_field_has_its_own_key():
    free, top = ph.problems.free_body(), ph.problems.fast_top()
    for problem in (free, top):
        able = [m for m in map(ph.methods.__getitem__, (*ph.methods, *SCHEMES)) if m.takes(problem.needs)]
        keys = [loop_key(m, problem) for m in able]
        same = [
            (a.name, b.name) for (a, x), (b, y) in itertools.combinations(zip(able, keys, strict=True), 2) if x == y
        ]
        assert same == []
    fem = ph.methods["fem"]
    fields = (
        None, ph.fields.gravity(1.0), *(ph.fields.constant_torque([1, 0, 0], frame) for frame in ("body", "space")),
        ph.fields.linear_drag(0.1), ph.fields.gravity(1.0) + ph.fields.linear_drag(0.1),
    )  # fmt: skip
    bodies = ph.Body([1.0, 2.0, 2.5]), ph.Body(np.array([[1.0, 0.1, 0.0], [0.1, 2.0, 0.0], [0.0, 0.0, 2.5]]))
    problems = [ph.Problem(b, f, momentum=[1, 0, 0]) for b in bodies for f in fields]
    keys = [loop_key(fem, p) for p in problems]
    assert len(set(keys)) == len(keys) - 1  # the free body needs no axes
    assert loop_key(fem, ph.Problem(bodies[0], ph.fields.gravity(7.0), momentum=[3, 2, 1])) == keys[1]


def test_a_method_of_the_same_name_with_other_numbers_has_another_key():
    top = ph.problems.fast_top()
    mine = [ph.mkrk(ph.Tableau([[0, 0], [a, 0]], [b, 1 - b], name="mine")) for a, b in ((1, 0.5), (0.5, 0), (0.5, 0))]
    first, second, again = (loop_key(m, top) for m in mine)
    assert first != second == again
    assert coefficients(mine[0]) not in (None, coefficients(mine[1]))
    assert coefficients(mine[1]) == coefficients(mine[2])
    assert coefficients(ph.methods["imidm"]) is None
    assert coefficients(ph.methods["mkrk(rk4)"]) is None
    assert coefficients(dataclasses.replace(ph.methods["fe"], name="be")) is not None


def test_versions_and_options_are_in_every_key(monkeypatch):
    before = program.environment.__wrapped__()
    assert program.environment.__wrapped__() == before == program.environment()
    for owner, name, value in (
        (program, "__version__", "another"), (np, "__version__", "3"), (numba, "__version__", "1"),
        (sys, "version", "4"), (numba_target, "OPTIONS", {}),
        (numba_target, "INNER", numba_target.INNER | {"forceinline": False}),
        (dual, "RULES", dual.RULES | {"sin": dual.RULES["cos"]}),
    ):  # fmt: skip
        with monkeypatch.context() as changed:
            changed.setattr(owner, name, value)
            assert program.environment.__wrapped__() != before, name


def test_neither_other_methods_nor_other_kernels_change_a_key():
    fe, top = ph.methods["fe"], ph.problems.fast_top()
    before, count = loop_key(fe, top), len(KERNELS)
    ph.methods["yoshida4(imidm)"].build(floats.number)
    kernel(made("def f(x):\n    return x\n"))
    assert len(KERNELS) > count
    assert len(OVERLOADS) > 0
    assert loop_key(fe, top) == before


def test_one_program_for_equal_functions_and_for_equal_shortcuts(monkeypatch, tmp_path):
    monkeypatch.setenv("POLHODE_CACHE", str(tmp_path))
    monkeypatch.setattr(program, "MADE", Memo())
    one = program.compiled(shifted(1.5))
    assert program.compiled(shifted(1.5)) is one
    assert program.compiled(shifted(2.5)) is not one
    built = []
    found = [program.program(lambda: built.append(1) or shifted(1.5), "test", 1) for _ in range(3)]
    assert found == [one] * 3
    assert built == [1]
    assert not one.is_warm
    assert one.run(1.0) == 2.5
    assert one.is_warm
    monkeypatch.setattr(program, "MADE", Memo())
    assert program.compiled(shifted(1.5)).was_kept


def test_threads_compile_a_program_once(monkeypatch, tmp_path):
    monkeypatch.setenv("POLHODE_CACHE", str(tmp_path))
    monkeypatch.setattr(program, "MADE", Memo())
    gate, found = threading.Barrier(4), []

    def work():
        gate.wait()
        found.append(program.program(lambda: shifted(3.5), "threads"))
        found[-1].run(1.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert len(found) == 4
    assert sum(found[0].run.stats.cache_misses.values()) == 1


def test_the_structure_of_a_field_is_without_values():
    body = ph.Body([1.0, 2.0, 2.5])
    a, b, c = (ph.Problem(body, ph.fields.gravity(x), momentum=[1, 0, y]) for x, y in ((1, 0), (2, 1), (1, 0)))
    assert structure(a) == structure(b) == structure(c)
    assert structure(a) != structure(ph.Problem(body, momentum=[1, 0, 0]))


# --- edits of the library ---------------------------------------------------------------------------

KEYS = """
import json, sys
import polhode as ph
from polhode.run import step_control
from polhode.compile import program
from polhode.compile.batch import fixed_step, layout
from polhode.numbers import floats
from polhode.run.integrator import beginning, state_space, torque_kernel
from polhode.kernels.loops import adaptive_stepping, stepping

def loop(name, problem):
    method = ph.methods[name]
    torque = torque_kernel(problem, floats.number, method)
    return stepping(method.build(floats.number), torque, state_space(method), *method.processors(floats.number))

def lanes(name, problem):
    method = ph.methods[name]
    torque = torque_kernel(problem, floats.number, method)
    return fixed_step.loop(method.build(floats.number), torque, layout.Sizes(0, 0), False, beginning(method))

top, free = ph.problems.fast_top(), ph.problems.free_body()
made = {name: loop(name, top) for name in ("fe", "imidm", "mkrk(rk4)", "mkrk(gauss2)", "rattle", "yoshida4(imidm)")}
made |= {name: loop(name, free) for name in ("dmv10", "jacobi")}
made |= {"lanes": lanes("fe", free), "exact": sys.modules["polhode.run.exact"]._visit}
steps = [step_control.runge_kutta(top), step_control.taylor(top), step_control.pair(top)]
made |= {step.name: adaptive_stepping(step.make()) for step in steps}
print(json.dumps({name: program.key_of(function) for name, function in made.items()}))
"""
"""Keys, without compiling anything."""

TABLES = {
    "methods/tables/dmv_series.py": ("(1, 0, 0, 1): (-1, 3)", "(1, 0, 0, 1): (-1, 2)"),
    "methods/tables/verner87.py": ('{1: "1/20"}', '{1: "1/21"}'),
    "methods/tables/compositions.py": ('"yoshida4": (', '"yoshida4": ("0.5",) if True else ('),
    "methods/tables/butcher.py": (
        '["1/6", "1/3", "1/3", "1/6"], name="rk4"',
        '["1/6", "1/6", "1/2", "1/6"], name="rk4"',
    ),
    "kernels/elliptic.py": ("SWEEPS = 80", "SWEEPS = 81"),
    "compile/batch/fixed_step.py": ("rows[:] = np.nan", "rows[:] = np.inf"),
}
NOTHING = {
    "kernels/so3.py": ('"""', '"""Note. '),
    "kernels/loops.py": ("import math", "import math  # for infinity"),
    "cli/run.py": ("import typer", "import typer; typer"),
    "analysis/bench.py": ("import time", "import time; time"),
}
EDITS = {
    "tables": (TABLES, {"dmv10", "verner87", "yoshida4(imidm)", "mkrk(rk4)", "jacobi", "exact", "lanes"}),
    "what does not count": (NOTHING, set()),
    "solvers": (
        {"kernels/solvers.py": ("SWEEPS = 200", "SWEEPS = 201")},
        {"imidm", "yoshida4(imidm)", "rattle", "dmv10", "mkrk(gauss2)"},
    ),
    "a kernel": (
        {"kernels/so3.py": ("    a = scale(2, cross(u, v))", "    a = scale(-2, cross(u, v))")},
        {"imidm", "mkrk(dormand_prince)", "mkrk(gauss2)", "mkrk(rk4)", "rattle", "yoshida4(imidm)"},
    ),
    "the compiler": ({"compile/simd/functions.py": ('"""', '"""Note. ')}, None),
}
"""Edits, and the programs whose keys they change; None: all."""


def tree(path: Path, edits: dict[str, tuple[str, str]]) -> Path:
    """A copy of the package with edits."""
    shutil.copytree(PACKAGE, path / "polhode", ignore=shutil.ignore_patterns("__pycache__", "*.js"))
    for name, (old, new) in edits.items():
        file = path / "polhode" / name
        text = file.read_text()
        assert text.count(old) == 1 or old == '"""', (name, old)
        file.write_text(text.replace(old, new, 1))
    return path


def begun(path: Path, script: str = KEYS, **environment: str) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    return subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)


def keys_of(process: subprocess.Popen) -> dict[str, str]:
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(out)


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    """The keys that another process finds."""
    return keys_of(begun(PACKAGE.parent, PYTHONHASHSEED="1"))


def test_other_processes_find_the_same_keys_whatever_they_did_before(keys):
    before = """
import polhode as ph
from polhode.numbers import floats
from polhode.numbers.dispatch import kernel
for name in ("yoshida4(imidm)", "mkrk(gauss3)", "dmv8", "reversible(imidm)"):
    ph.methods[name].build(floats.number)
kernel(lambda x: x)
"""
    assert keys_of(begun(PACKAGE.parent, before + KEYS, PYTHONHASHSEED="2")) == keys
    assert len(set(keys.values())) == len(keys)
    assert loop_key(ph.methods["fe"], ph.problems.fast_top()) == keys["fe"]


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_changes_the_keys_of_what_uses_it(what, keys, tmp_path):
    edits, affected = EDITS[what]
    found = keys_of(begun(tree(tmp_path, edits)))
    assert {name for name in keys if found[name] != keys[name]} == (set(keys) if affected is None else affected)


def test_the_entry_point_of_a_compiled_function_needs_no_compiler(monkeypatch):
    """To ask the compiler takes ten milliseconds, even if it finds the function compiled."""
    run = program.program(lambda: lambda x: 2 * x + 1, "test of an entry point").run
    assert run(0.25) == 1.5
    monkeypatch.setattr(run, "compile", None)
    assert program.entry_point(run, 0.5)(3.0) == 7.0

"""Shortcuts in numba's front end: the LLVM code is the same without them, and nothing stays switched off."""

import functools
import gc
import inspect
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from llvmlite.binding import ffi
from numba import njit
from numba.core import event, ir
from numba.core.compiler import Flags, run_frontend

from polhode.compile import front_end, program

CODE = """
import hashlib, json, re, sys
from polhode.compile import front_end
if not json.loads(sys.argv[1]):
    front_end.install = lambda: None
    front_end.quickly = lambda compiling: compiling
from polhode.compile import numba_target, release
import polhode as ph

top = ph.Problem(ph.Body([1.0, 1.7, 2.3]), omega=[0.4, -1.1, 0.7], field=ph.fields.gravity(1.3))
ph.solve(top, "imidm", dt=0.05, steps=3)
code = [result.library.get_llvm_str() for run in release._programs for result in run.overloads.values()]
text = re.sub(r"_ZN\\w+", "", "".join(code))  # names contain addresses, which differ
scipy = "scipy.linalg" in sys.modules
print(json.dumps({"code": hashlib.sha256(text.encode()).hexdigest(), "count": len(code), "scipy": scipy}))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """What two processes with empty caches compile, without and with the shortcuts."""

    def run(shortcuts):
        places = os.environ | {"POLHODE_CACHE": str(tmp_path_factory.mktemp("cache"))}
        command = [sys.executable, "-c", CODE, json.dumps(shortcuts)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=places)
        return json.loads(done.stdout.splitlines()[-1])

    return run(False), run(True)


def test_the_code_is_the_same(compiled):
    without, with_them = compiled
    assert (with_them["code"], with_them["count"]) == (without["code"], without["count"])
    assert without["count"] > 0


def test_scipy_is_not_imported_for_its_blas(compiled):
    assert [found["scipy"] for found in compiled] == [True, False]


def test_blas_is_found_where_it_is_needed():
    @njit
    def product(a, b):
        return np.dot(a, b)

    front_end.install()
    assert product(np.arange(3.0), np.ones(3)) == 3


@pytest.mark.parametrize("fails", [False, True])
def test_collector_and_events_go_on_after_a_compilation(fails):
    before, seen = list(ffi.lib._lock._cblist), []

    def compiling():
        seen.append((gc.isenabled(), ffi.lib._lock._cblist))
        if fails:
            raise ZeroDivisionError

    try:
        front_end.quickly(compiling)()
    except ZeroDivisionError:
        assert fails
    assert seen == [(False, [])]
    assert gc.isenabled()
    assert ffi.lib._lock._cblist == before
    assert front_end._quick == 0


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        front_end.quickly(lambda: None)()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_functions_of_others_have_their_events():
    with event.install_recorder("numba:run_pass") as passes:
        njit(lambda x: x + 1)(1.0)
    seen = len(passes.buffer)
    with event.install_recorder("numba:run_pass") as ours:
        assert program.compiled(lambda x: x + 2.5).run(1.0) == 3.5
    assert seen > 0
    assert len(ours.buffer) == 0


def test_options_are_compared_by_value():
    one, same, other = Flags(), Flags(), Flags()
    one.nrt = same.nrt = True
    assert (one == same, hash(one) == hash(same), one == other, one == 1) == (True, True, False, False)
    other.nrt = True
    other.error_model = Flags().error_model  # a default that is set is equal to one that is not
    assert one == other


def test_variables_of_a_statement_are_those_that_numba_finds():
    def found(inst, value):
        """As in `numba.core.ir.Inst._rec_list_vars`."""
        if isinstance(value, ir.Var):
            return [value]
        if isinstance(value, ir.Inst):
            return value.list_vars()
        inner = value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else ()
        return [x for part in inner for x in found(inst, part)]

    def mixed(x, *rest, **named):
        total = {"a": x}
        for y in rest:
            total["b"] = max(y, x, *rest)
        return (total, [x, rest], named["k"])

    blocks = run_frontend(mixed).blocks.values()
    statements = [inst for block in blocks for inst in block.body]
    assert len(statements) > 20
    for inst in statements:
        assert inst.list_vars() == found(inst, vars(inst))
        assert front_end._variables(inst, vars(inst)) == found(inst, vars(inst))


def _with_location(context, builder, sig, args, loc=None):
    pass


def _without_location(context, builder, *args):
    for loc in args:
        builder(loc)


@pytest.mark.parametrize(
    "function",
    [_with_location, _without_location, lambda *loc: loc, lambda *, loc: loc, lambda **loc: loc,
     functools.partial(_with_location, 1), functools.wraps(_with_location)(lambda *args: args)],
)  # fmt: skip
def test_parameters_are_those_of_the_signature(function):
    assert front_end._takes_location(function) == ("loc" in inspect.signature(function).parameters)


@pytest.fixture
def unfrozen():
    """No object is frozen; those of the test suite are afterwards."""
    count = gc.get_freeze_count()
    gc.unfreeze()
    yield
    gc.unfreeze()
    if count:
        gc.freeze()


@pytest.mark.usefixtures("unfrozen")
def test_objects_of_a_compilation_count_as_old():
    held, counts = [], []

    def compiling():
        held.extend([] for _ in range(5000))
        counts.append(gc.get_count()[0])

    front_end.quickly(compiling)()
    assert gc.get_count()[0] < 5000 <= counts[0]
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("unfrozen")
def test_frozen_objects_stay_frozen():
    gc.freeze()
    count = gc.get_freeze_count()
    front_end.quickly(lambda: None)()
    assert gc.get_freeze_count() == count > 0

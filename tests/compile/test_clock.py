"""Times of runs do not contain compiling."""

import threading
import time

import numpy as np
import pytest

import polhode as ph
from polhode._memo import Memo
from polhode.compile import lazily, numba_target, program
from polhode.compile.clock import Stopwatch, compile_seconds, counted

SLOW = 0.4
METHOD = "dmv2"


def test_nested_compiling_counts_once():
    def inner():
        time.sleep(0.05)

    @counted
    def outer():
        counted(inner)()
        time.sleep(0.05)

    watch = Stopwatch()
    outer()
    time.sleep(0.05)
    assert watch.compile_seconds >= 0.1
    assert watch.seconds >= 0.05
    before = watch.compile_seconds
    with pytest.raises(ZeroDivisionError):
        counted(lambda: 1 // 0)()
    assert watch.compile_seconds >= before


def test_threads_count_their_own():
    found = []

    def work():
        counted(lambda: time.sleep(0.05))()
        found.append(compile_seconds())

    watch = Stopwatch()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0] >= 0.05
    assert watch.compile_seconds == 0.0


def test_a_program_counts():
    def twice(x):
        return 2 * x + 0.125

    made = program.compiled(twice)
    before = compile_seconds()
    assert made.run(1.0) == 2.125
    first = compile_seconds()
    assert first > before
    made.run(2.0)
    assert compile_seconds() == first


@pytest.fixture
def slow(monkeypatch):
    """Programs take long to compile, or to load."""
    jitted = numba_target.jitted

    def slowly(function):
        run = jitted(function)
        compiling = run.compile

        def compile_late(signature):
            time.sleep(SLOW)
            return compiling(signature)

        run.compile = compile_late
        return run

    monkeypatch.setattr(numba_target, "jitted", slowly)
    monkeypatch.setattr(program, "MADE", Memo())


TOP = ph.Problem(ph.Body([1, 2, 2.5]), momentum=[0.1, 0.2, 1.0])


@pytest.mark.parametrize("out", [None, "run.zarr"])
def test_a_run(slow, out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    began = time.perf_counter()
    first = ph.solve(TOP, METHOD, dt=0.01, steps=50, out=out)
    taken = time.perf_counter() - began
    again = ph.solve(TOP, METHOD, dt=0.01, steps=50)
    assert first.info.compile_seconds >= SLOW
    assert again.info.compile_seconds == 0.0
    assert first.seconds == first.info.seconds
    assert 0 < first.seconds <= taken - SLOW
    if out is not None:
        assert "compile_seconds" not in ph.load(out).to_xarray().attrs


@pytest.mark.parametrize("out", [None, "many.zarr"])
def test_an_ensemble(slow, out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"dt": 0.01, "steps": 50, "progress": False}
    began = time.perf_counter()
    many = ph.ensemble([1, 2, 2.5], None, np.ones((3, 3)), METHOD, **given, out=out)
    taken = time.perf_counter() - began
    assert many.seconds <= taken - SLOW
    if out is None:
        assert many.compile_seconds >= SLOW
        assert ph.ensemble([1, 2, 2.5], None, np.ones((3, 3)), METHOD, **given).compile_seconds == 0.0


def test_the_import_of_the_compiler_counts_as_compiling(monkeypatch):
    def imported(name):
        time.sleep(0.02)
        return program

    monkeypatch.setattr(lazily.importlib, "import_module", imported)
    lazily._compiler.cache_clear()
    before = compile_seconds()
    lazily.program(lambda: lambda x: x, "test of an import")
    assert compile_seconds() - before >= 0.02

"""Programs in vectors: where their vectors are stored, and that references to arrays are not counted in their loops."""

import re

import numba
import numpy as np
import pytest

import polhode as ph
from polhode._memo import Memo
from polhode.compile import program, stack
from polhode.compile.batch import layout

LABEL = re.compile(r'^("[^"]+"|[\w.$-]+):')


@pytest.fixture
def made(monkeypatch):
    """Compile programs anew, without files; return the program that was last asked for under a name."""
    found = Memo()
    monkeypatch.setattr(program, "private_folder", lambda name: None)
    monkeypatch.setattr(program, "MADE", found)
    return lambda name: next(
        entry.value.run for key, entry in reversed(found.entries.items()) if key[:2] == ("shortcut", name)
    )


def doubled(x):
    return 2 * x


def test_the_stack_of_a_program_begins_with_a_cache_line(made):
    run = program.program(lambda: doubled, "doubled").run
    other = numba.njit(doubled)
    for function in (run, other):
        assert function(2.0) == 4.0
    (ours,), (others,) = (function.inspect_llvm().values() for function in (run, other))
    assert (f"alignstack={stack.CACHE_LINE}" in ours) == stack.IS_X86
    assert "alignstack" not in others


def test_vectors_begin_with_cache_lines():
    for shape in ((3, 16), (5,), (2, 3, 7), (9, 1024)):
        array = layout.aligned(shape)
        assert array.shape == shape
        assert array.flags.c_contiguous
        assert array.ctypes.data % stack.CACHE_LINE == 0
        array[:] = 1.5
        assert (array == 1.5).all()


def counting_blocks(run):
    """Blocks of a compiled run, other than its first, in which references are counted."""
    (text,) = run.inspect_llvm().values()
    (body,) = re.findall(r"^define [^\n]*@_ZN7polhode7compile[^\n]*4loop[^\n]*3run.*?^}", text, re.M | re.S)
    here, found, first = "", set(), None
    for line in body.splitlines():
        label = LABEL.match(line)
        if label:
            here = label[1]
            first = first or here
        if "@NRT_incref" in line:
            found.add(here)
    return found - {first}


@pytest.mark.parametrize("counts", [False, True])
def test_steps_of_many_bodies_count_no_references(counts, made, monkeypatch):
    """numba counts them where functions take arrays, unless they borrow them; then the check finds it."""
    if counts:
        monkeypatch.setattr(layout, "borrowing", layout.inner)
    rng = np.random.default_rng(3)
    many = ph.ensemble(
        [1.0, 2.0, 2.5], [1.0, 0.0, 0.0, 0.0], rng.normal(size=(40, 3)), field=ph.problems.heavy_top().field, t_end=1.0,
        step_tol=1e-3, times=[0.5, 1.0],
    )  # fmt: skip
    assert (many.failed < 0).all()
    assert bool(counting_blocks(made("travelling lanes"))) == counts

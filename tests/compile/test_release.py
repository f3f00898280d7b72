"""What compiling leaves behind is given back, and what is still in use goes on working."""

import gc
import weakref

import numpy as np
import pytest
from llvmlite.binding import ffi
from numba.core.registry import cpu_target

import polhode as ph
from polhode._memo import MADE
from polhode.compile import numba_target, release
from polhode.compile.program import Program

BODY = ph.Body([5.0, 4.0, 1.0])


def solved(field, **how):
    problem = ph.Problem(BODY, field(0.1), omega=[1, 2, 3])
    return ph.solve(problem, "fe", progress=False, **({"dt": 1e-3, "steps": 10} | how)).momentum


@pytest.fixture
def fields(tmp_path, monkeypatch):
    """Two torque functions that no cache knows."""
    monkeypatch.setenv("POLHODE_CACHE", str(tmp_path))
    solved(ph.torque(lambda omega, k: (-k * omega[0], 0.51 * omega[1], 0.0)))  # what all programs share is compiled
    return (
        ph.torque(lambda omega, k: (-k * omega[0], 0.52 * omega[1], omega[2])),
        ph.torque(lambda omega, k: (-k * omega[0], 0.53 * omega[1], omega[2])),
    )


def newest():
    """The dispatcher of the program made last."""
    return [made for made in MADE.values() if isinstance(made, Program)][-1].run


def forget(dispatcher):
    """Remove a program from the memo, and what leads to it."""
    for key, entry in list(MADE.entries.items()):
        if getattr(entry.value, "run", None) is dispatcher:
            del MADE.entries[key]


def parts(library):
    """All libraries that a library was linked from."""
    return {part for one in library._linking_libraries for part in (one, *parts(one))}


OWN = ("torque_value", "torque_kernel.<locals>.torque", "fe", "stepping.<locals>.advance")
"""Libraries that depend on the torque; the others are shared by all programs."""


def modules():
    """Number of LLVM's modules of such libraries."""
    return sum(module.name in OWN for module in cpu_target.target_context.codegen()._engine._ee._modules)


@pytest.mark.parametrize(
    ("manager", "freed"),
    [
        ("_module_pass_manager", "LLVMPY_DisposeNewModulePassManger"),
        ("_function_pass_manager", "LLVMPY_DisposeNewFunctionPassManger"),
    ],
)
def test_pass_managers_are_freed(manager, freed, monkeypatch):
    """llvmlite leaves every pass manager behind, two thirds of the memory of a compiled function."""
    count, free = [], getattr(ffi.lib, freed)
    monkeypatch.setitem(ffi.lib._fntab, freed, lambda one: count.append(1) or free(one))
    numba_target.teach()  # the repair comes with the module
    made = getattr(cpu_target.target_context.codegen(), manager)()
    del made
    gc.collect()
    assert count == [1]


def test_a_program_that_is_gone_leaves_no_library_and_no_module(fields):
    release.collect(0)
    before = modules()
    solved(fields[0])
    program = newest()
    (result,) = program.overloads.values()
    libraries = {result.library, *parts(result.library)}
    assert {library.name for library in libraries} >= set(OWN)
    assert modules() == before + 1  # of the program; its kernels have no machine code of their own
    alive = [weakref.ref(x) for x in (program, *(library for library in libraries if library.name in OWN))]
    forget(program)
    del program, result, libraries
    release.collect(0)
    assert [one() for one in alive] == [None] * len(alive)
    assert modules() == before


def test_a_program_in_use_keeps_only_its_own_library_and_gives_the_same_numbers(fields):
    """Also when it must be compiled for other arguments after its parts are gone."""
    expected = solved(fields[0])
    program = newest()
    (result,) = program.overloads.values()
    alive = [weakref.ref(library) for library in parts(result.library) if library.name in OWN]
    del result
    release.collect(0)
    assert len(alive) == len(OWN) - 1
    assert [one() for one in alive] == [None] * len(alive)
    assert np.array_equal(solved(fields[0]), expected)
    program.recompile()
    assert np.array_equal(solved(fields[0]), expected)


def test_kernels_compiled_for_a_field_are_compiled_again_for_another_method(fields):
    solved(fields[1])
    release.collect(0)
    problem = ph.Problem(BODY, fields[1](0.1), omega=[1, 2, 3])
    found, expected = (
        ph.solve(problem, "rk4_quat", dt=1e-3, steps=10, progress=False, digits=digits).momentum
        for digits in (None, 20)
    )
    assert np.allclose(found, np.array(expected, dtype=float), rtol=1e-14, atol=0)


def test_nothing_is_released_while_something_is_compiled(fields, monkeypatch):
    solved(fields[0])
    before = modules()
    monkeypatch.setattr(cpu_target.typing_context.callstack, "_stack", [None])
    release.collect(0)
    assert modules() == before

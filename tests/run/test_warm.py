"""Compiling ahead."""

import sys
import types

import pytest

import polhode as ph
from polhode.compile import notice, program
from polhode.results import progress


@pytest.mark.parametrize("given", [{"tol": 1e-9}, {"step_tol": 1e-9}, {"method": "imidm", "dt": 0.01}])
def test_a_warm_call_compiles_nothing(given):
    top = ph.problems.heavy_top()
    ph.warm(top, **given)
    assert ph.warm(top, **given) < 1e-3
    other = top.starting(omega=[0.1, 2.0, 0.3])
    sol = ph.solve(other, t_end=1.0, **given)
    assert sol.info.compile_seconds < 1e-3
    sol.at([0.5])


def test_both_kinds_of_steps_are_there_whatever_the_tolerance():
    top = ph.problems.heavy_top()
    ph.warm(top, tol=1e-3)
    coarse, fine = (ph.solve(top, tol=tol, t_end=3.0) for tol in (1e-3, 1e-12))
    assert coarse.method != fine.method
    assert coarse.info.compile_seconds + fine.info.compile_seconds < 1e-3


def test_many():
    top = ph.problems.heavy_top()
    ph.warm(top, "imidm", dt=0.01, many=True)
    many = ph.ensemble(top, "imidm", dt=0.01, steps=3, omega=[[0.1, 0.2, 3.0], [0.2, 0.1, 2.0]])
    assert many.compile_seconds < 1e-3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"problem": ph.Body([1.0, 2.0, 3.0])}, "must be a ph.Problem"), ({}, "give a method and dt"),
        ({"method": "nonsense", "dt": 0.1}, "unknown method"), ({"tol": 1e-6, "device": "cuda"}, "also give many=True"),
        ({"tol": 1e-6, "many": "yes"}, "many must be"),
    ],
)  # fmt: skip
def test_bad_input(given, said):
    with pytest.raises(ph.InputError, match=said):
        ph.warm(**{"problem": ph.problems.heavy_top()} | given)


def test_a_notebook_is_told_what_it_waits_for(monkeypatch, capsys):
    """A run of a new formula says that it compiles; in a notebook stderr is no terminal and is read all the same."""
    monkeypatch.setattr(program, "private_folder", lambda name: None)  # nothing is found on disk
    monkeypatch.setattr(notice, "PATIENCE", 0.0)
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    assert progress.Progress(None, "", 1).visible

    @ph.torque
    def unheard(omega, size):
        return -size * omega[0], -0.25 * size * omega[1], -0.125 * size * omega[2] * omega[2]

    ph.solve(ph.Problem(ph.Body([1.0, 2.0, 2.5]), unheard(0.1), omega=[1.0, 0.2, 0.1]), step_tol=1e-3, t_end=0.1)
    assert "compiling enright_verner76 for this field (once in this process) ... " in capsys.readouterr().err

"""Programs that run as plain Python, without a compiler: the same functions on the same numbers.

A kernel is generic in the number type, so what a test says of a formula, a driver, a file or a page of the documents
does not depend on who runs the kernel, and compiling it takes seconds. Lanes, and numbers with tangents in arrays,
exist only in compiled code (`polhode.compile`); those programs are compiled as ever.
"""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from polhode._memo import Memo
from polhode.compile import program
from polhode.run import exact, quick_solve, step_control

FILES: dict[str, frozenset[str]] = {
    "tests/analysis/test_bench.py": frozenset({"test_bench_measures_every_figure_it_prints"}),
    "tests/analysis/test_convergence.py": frozenset(),
    "tests/config/test_problem_file.py": frozenset(),
    "tests/methods/test_mv_explicit.py": frozenset({
        "test_at_the_limit_of_the_step", "test_preprocessing_beyond_its_reach_is_no_solution",
        "test_a_sphere_that_hardly_turns",
    }),
    "tests/methods/test_nose_hoover.py": frozenset(),
    "tests/methods/test_reversible.py": frozenset({"test_a_scheme_with_a_modified_potential_runs_compiled"}),
    "tests/physics/test_start.py": frozenset(),
    "tests/physics/test_torque_by_hand.py": frozenset(),
    "tests/physics/test_varying_body.py": frozenset({"test_problems_are_pickled"}),
    "tests/results/test_data_files.py": frozenset({"test_a_run_that_failed_fails_again"}),
    "tests/run/ensemble/test_jumps.py": frozenset(),
    "tests/run/test_actuators.py": frozenset(),
    "tests/run/test_control.py": frozenset({
        "test_python_and_compiled_agree", "test_new_parameters_and_periods_compile_nothing",
    }),
    "tests/run/test_control_files.py": frozenset(),
    "tests/run/test_cut_steps.py": frozenset(),
    "tests/run/test_digits.py": frozenset(),
    "tests/run/test_failed_steps.py": frozenset({
        "test_undefined_torque_on_the_way_to_a_tolerance", "test_undefined_torque_of_bodies_under_control",
        "test_bodies_at_rest_in_a_drag_with_a_root", "test_series_of_a_root_of_zero",
        "test_series_of_a_root_of_zero_in_other_ways", "test_a_state_between_two_steps_that_does_not_exist",
        "test_an_event_search_names_the_state_that_does_not_exist",
    }),
    "tests/run/test_kept.py": frozenset({"test_files_of_runs_to_a_tolerance_can_be_drawn"}),
    "tests/run/test_located.py": frozenset(),
    "tests/run/test_mercury.py": frozenset(),
    "tests/run/test_noise.py": frozenset(),
    "tests/run/test_pickle.py": frozenset(),
    "tests/run/test_states.py": frozenset({"test_compiled_ahead"}),
    "tests/run/test_ways.py": frozenset(),
    "tests/run/test_stepper.py": frozenset({
        "test_bodies_share_compiled_code", "test_free_flows_compiled", "test_field_that_fails_later",
        "test_new_parameters_are_checked_where_they_matter",
    }),
    "tests/spaces/test_vector.py": frozenset({"test_compiled_equals_plain"}),
    "tests/surface/test_cli_run.py": frozenset(),
}  # fmt: skip
"""Files whose programs for one body run as plain Python in the fast suite and compiled in the whole one, with their
tests that are compiled in both: those about compiled code, those with many steps, and those in which compiled code has
infinity or NaN where Python has an exception."""

_made = Memo()
"""Programs of tests in plain Python; in the memo of the library, other tests would find them."""

_plain_exact = functools.cache(exact._compiled.__wrapped__)


def is_plain(test: pytest.Item) -> bool:
    """True if a test runs as plain Python: in the fast suite, in one of `FILES`."""
    file, fast = test.nodeid.partition("::")[0], test.config.getoption("markexpr") == "not slow"
    return fast and file in FILES and getattr(test, "originalname", test.name) not in FILES[file]


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs for one body run as plain Python until the end of the test."""
    compiled, entry_point = program.compiled, program.entry_point

    def plain(function: Callable[..., Any]) -> program.Program:
        if function.__module__.startswith("polhode.compile."):
            return compiled(function)
        return program.Program("", function, True)

    def called(run: Any, *arguments: Any) -> Any:
        return entry_point(run, *arguments) if hasattr(run, "overloads") else run

    monkeypatch.setattr(program, "compiled", plain)
    monkeypatch.setattr(program, "entry_point", called)
    monkeypatch.setattr(program, "MADE", _made)
    monkeypatch.setattr(step_control, "MADE", _made)  # formulas keep their loops
    monkeypatch.setattr(exact, "_compiled", _plain_exact)  # so does the exact solution
    monkeypatch.setattr(quick_solve, "_recent", None)  # and the last run

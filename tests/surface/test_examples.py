"""Every public function and class has an example in its docstring, which runs and prints what it says."""

import doctest
import inspect
import runpy
import warnings
from pathlib import Path

import pytest

import polhode as ph

OBJECTS = {name: getattr(ph, name) for name in ph.__all__ if name != "jax"}
OBJECTS = {name: x for name, x in OBJECTS.items() if inspect.isfunction(x) or inspect.isclass(x)}
COMPILED = ("StepError", "warm")
"""Examples about compiling, or with numbers at which plain Python raises exceptions."""


@pytest.mark.parametrize("name", OBJECTS)
def test_example_runs(name, request):
    if name not in COMPILED:
        request.getfixturevalue("interpreted")
    found = doctest.DocTestFinder(recurse=False).find(OBJECTS[name], name, globs={"ph": ph})
    assert sum(len(test.examples) for test in found) > 0, f"ph.{name} has no example in its docstring"
    with warnings.catch_warnings():
        for test in found:
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            runner.run(test)
            assert runner.summarize(verbose=False).failed == 0


def test_every_public_name_has_its_place_in_the_reference():
    shelves = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "api.py"))["SHELVES"]
    names = [name for _, _, names in shelves.values() for name in names]
    assert len(names) == len(set(names))
    assert set(names) == set(ph.__all__) - {"__version__"}

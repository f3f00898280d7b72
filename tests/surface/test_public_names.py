"""What a user sees of the package: the names that `dir` shows, and the types that a type checker reads."""

import importlib
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import polhode as ph
from waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_dir_shows_the_public_names_and_only_those():
    assert set(dir(ph)) == {*ph.__all__, *ph.methods.combinators}
    assert len(ph.__all__) == len(set(ph.__all__))
    assert not [name for name in dir(ph) if name.startswith("_") and name != "__version__"]
    for name in set(dir(ph)) - {"jax"}:  # an extra
        assert getattr(ph, name) is not None


def test_no_public_name_means_two_things():
    """A folder or module of the package never hides what the name stands for, whatever is imported later."""
    folder = Path(ph.__file__).parent
    inner = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    for name in inner & set(dir(ph)) - {"jax"}:
        module, value = importlib.import_module(f"polhode.{name}"), getattr(ph, name)
        assert (value is module) != (name in ("methods", *ph.methods.combinators)), name
    assert [name for name in ph.methods.combinators if getattr(ph, name) is not ph.methods.combinators[name]] == []
    assert ph.taylor(8).name == "taylor(8)"
    assert importlib.import_module("polhode.taylor.graph").substituted


MODULES = [name for name in ph.__all__ if isinstance(getattr(ph, name), types.ModuleType)] + ["extend", "problem_file"]


@pytest.mark.parametrize("name", MODULES)
def test_public_modules_show_what_a_user_calls(name):
    """`dir` is `__all__`: no submodule, and nothing that only the library itself uses."""
    module = importlib.import_module(f"polhode.{name}")
    shown = [word for word in dir(module) if not word.startswith("_")]
    assert shown == sorted(module.__all__)
    for word in shown:
        value = getattr(module, word)
        assert not isinstance(value, types.ModuleType) or name == "extend", "a submodule"
        kernel = inspect.isfunction(value) and value.__name__.endswith(("_kernel", "_text"))
        assert not kernel, "what the library compiles"
        described = not callable(value) or bool(inspect.getdoc(value))
        assert described, word


def test_fields_are_the_built_in_ones_and_how_to_make_more():
    makers = {"describe", "get", "keywords", "make", "names", "potential", "states", "torque", "Field", "FieldTemplate"}
    others = {"heat_bath", "magnetic_field", "nose_hoover", "rotor"}  # not made by name, as in problem files
    assert set(ph.fields.__all__) == makers | others | set(ph.fields.names())


def test_every_plot_is_in_the_documentation():
    page = (ROOT / "docs" / "pictures.md").read_text("utf-8")
    missing = [name for name in ph.plots.__all__ if not name.endswith("Plots") and f"ph.plots.{name}" not in page]
    assert not missing


def test_every_name_that_the_documentation_uses_is_shown():
    used = {name for page in PAGES for block in BLOCK.findall(page.read_text("utf-8")) for name in
            re.findall(r"\bph\.([A-Za-z_]\w*)", block)}  # fmt: skip
    assert {"solve", "view"} <= used
    assert used <= set(dir(ph))


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        _ = ph.sovle


def test_readme_passes_the_type_checker_of_a_user(tmp_path):
    """mypy --strict on README's Python, outside the source tree: the package's own types are what counts."""
    code = "\n\n".join(BLOCK.findall((ROOT / "README.md").read_text("utf-8")))
    code += "\nreveal_type(sol.plot)\nreveal_type(sol.view)\nreveal_type(gravity(1.0))\nreveal_type(ph.view)\n"
    (tmp_path / "user.py").write_text(code, "utf-8")
    package = Path(ph.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "user.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE,
        env={"PYTHONPATH": str(package), "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache" / "user"), "PATH": ""},
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert done.returncode == 0, errors or done.stdout + done.stderr
    told = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert len(told) == 4
    assert not [kind for kind in told if kind.startswith("Any")], told
    assert told[0].endswith("TrajectoryPlots")
    assert told[2].endswith("Field")

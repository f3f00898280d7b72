"""The wheel alone, in an empty environment with the packages it requires and no extra: it integrates everything, and
what an extra lacks is one sentence, said before work is lost."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from tools import try_wheel
from tools.documents import blocks

ROOT = Path(__file__).parents[2]
PATIENCE = 300
SENTENCE = re.compile(r"\w.* needs? [\w-]+, which is not installed: pip install 'polhode\[(\w+)\]'")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links to packages need a privilege there")


def required(name, found):
    """Names of a distribution and of all that it requires without extras."""
    if name not in found:
        found.add(name)
        for text in metadata.requires(name) or ():
            if "extra ==" not in text:
                required(re.match(r"[\w.-]+", text)[0].lower(), found)
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def test_both_files_hold_what_they_should(built):
    """The wheel has the package alone; the sdist runs the whole suite, and neither has what was made here."""
    sdist, wheel = built
    source = ROOT / "src"
    kept = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as packed:
        inside = {name for name in packed.namelist() if ".dist-info/" not in name}
        assert packed.testzip() is None
    assert inside == {name for name in kept if "__pycache__" not in name and "egg-info" not in name}
    assert not any("papers" in name or "tests" in name for name in inside)
    with tarfile.open(sdist) as packed:
        names = {one.name.partition("/")[2] for one in packed.getmembers() if one.isfile()}
    assert {"pyproject.toml", "PKG-INFO", "requirements.lock", "Makefile", "tests/conftest.py"} <= names
    assert not [name for name in names - {"PKG-INFO"} if not (ROOT / name).is_file()]
    assert not [name for name in names if "__pycache__" in name or name.startswith((".venv", "results", "build"))]
    try_wheel.check_metadata(wheel)


@pytest.fixture(scope="module")
def python(built, tmp_path_factory):
    """An interpreter that has the wheel, links to the packages it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    place = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    with zipfile.ZipFile(built[1]) as packed:
        packed.extractall(place)
    (described,) = place.glob("polhode-*.dist-info")
    lines = metadata.PathDistribution(described).requires
    names = [re.match(r"[\w.-]+", line)[0].lower() for line in lines if "extra ==" not in line]
    assert sorted(names) == ["llvmlite", "mpmath", "numba", "numpy", "platformdirs", "scipy"]
    found = set()
    for name in names:
        for one in required(name, found):
            distribution = metadata.distribution(one)
            for top in {file.parts[0] for file in distribution.files if file.parts[0] not in ("..", "__pycache__")}:
                if not (place / top).exists():
                    (place / top).symlink_to(distribution.locate_file(top))
    return folder / "bin" / "python"


def answered(python, program, folder, **more):
    """What a program prints, run without the source tree."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {
        "COLUMNS": "200"
    }
    return subprocess.run(
        [python, "-I", *program], cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE, **more
    )


def test_every_module_is_imported_or_names_the_extra(python, tmp_path):
    program = """
        import importlib, json, pkgutil, sys
        import polhode
        from polhode.errors import InputError
        assert polhode.__file__.startswith(sys.prefix), polhode.__file__
        missing = {}
        def look(package):
            for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
                try:
                    found = importlib.import_module(module.name)
                except InputError as fault:
                    missing[module.name] = str(fault)
                except ModuleNotFoundError as fault:
                    missing[module.name] = fault.name
                else:
                    if module.ispkg:
                        look(found)
        look(polhode)
        print(json.dumps(missing))
    """
    done = answered(python, ["-c", textwrap.dedent(program)], tmp_path)
    assert done.returncode == 0, done.stderr
    missing = json.loads(done.stdout)
    assert missing.pop("polhode.config").endswith("pip install 'polhode[app]'")
    assert missing.pop("polhode.problem_file").endswith("pip install 'polhode[app]'")
    assert missing.pop("polhode.cli") == "typer"
    behind = {"polhode.compile.jax_target": "jax", "polhode.viewer.animation": "PIL", "polhode.viewer.painter": "PIL"}
    assert missing == behind


NEEDS = {".plot.": "plot", ".save(": "files", "to_xarray": "files"}
"""What in a block of the first page needs an extra."""


def test_the_blocks_of_the_first_page_run_or_name_the_extra(python, tmp_path):
    texts = [text for _, text in blocks(ROOT / "README.md")]
    expected = [next((extra for sign, extra in NEEDS.items() if sign in text), "") for text in texts]
    assert "" in expected
    (tmp_path / "blocks.json").write_text(json.dumps(texts), "utf-8")
    program = """
        import json, warnings
        space = {"__name__": "__main__"}
        for text in json.load(open("blocks.json")):
            try:
                exec(text, space)
                print("#ran")
            except space["ph"].InputError as fault:
                print(f"#{fault}")
    """
    done = answered(python, ["-c", textwrap.dedent(program)], tmp_path)
    assert done.returncode == 0, done.stderr
    said = [line[1:] for line in done.stdout.splitlines() if line.startswith("#")]
    for text, sentence, extra in zip(texts, said, expected, strict=True):
        assert sentence == "ran" if not extra else SENTENCE.fullmatch(sentence)[1] == extra, text


LACKING = {
    "ph.solve(free, 'imidm', dt=1e-3, steps=10**9, out='run.zarr')": "files",
    "ph.solve(free, 'imidm', dt=1e-3, steps=10**9, out='run.nc')": "files",
    "ph.solve(free, tol=1e-9, t_end=1e9, out='run.zarr')": "files",
    "ph.ensemble(free, momentum=[[1, 2, 3]] * 4, method='imidm', dt=1e-3, steps=10**9, out='run.zarr')": "files",
    "short.save('run.zarr')": "files",
    "short.to_xarray()": "files",
    "short.to_dataframe()": "files",
    "short.plot.polhode()": "plot",
    "short.animate('run.gif')": "plot",
    "ph.plots": "",
    "ph.load('run.zarr')": "files",
    "ph.problem_file": "app",
    "ph.Body.from_mesh('part.stl', mass=1.0)": "mesh",
    "ph.Ephemeris.from_spk('de.bsp', 1.0, target=10, centre=399, times=[0.0, 1.0], epoch='2029-04-13T21:46:00')": "spk",
    "ph.jax.flow(free, 'imidm', dt=0.1, steps=1)": "jax",
    "short.export('run.parquet')": "arrow",
    "short.export('run.csv', euler='ZYX')": "",
    "short.view('run.html')": "",
    "short._repr_html_()": "",
}


def test_what_an_extra_lacks_is_said_before_the_run(python, tmp_path):
    """Within seconds, although the runs would take days, and nothing is left in the folder."""
    for name in ("part.stl", "de.bsp"):
        (tmp_path / name).touch()
    (tmp_path / "run.zarr").mkdir()
    program = f"""
        import importlib, json
        import polhode as ph
        free = ph.Problem(ph.Body([1.0, 2.0, 3.0]), omega=[0.1, 1.0, 0.1])
        short = ph.solve(free, "imidm", dt=0.1, steps=3, progress=True)
        said = []
        for line in {list(LACKING)!r}:
            try:
                if line == "ph.problem_file":
                    importlib.import_module("polhode.problem_file")
                else:
                    eval(line.replace("run.zarr", "new.zarr") if "out=" in line else line)
                said.append("")
            except ph.InputError as fault:
                said.append(str(fault))
        print(json.dumps(said))
    """
    done = answered(python, ["-c", textwrap.dedent(program)], tmp_path)
    assert done.returncode == 0, done.stderr
    for (line, extra), sentence in zip(LACKING.items(), json.loads(done.stdout), strict=True):
        if not extra:
            assert sentence == "", line
        else:
            assert (SENTENCE.fullmatch(sentence) or [sentence, sentence])[1] == extra, (line, sentence)
    assert {path.name for path in tmp_path.iterdir()} == {"part.stl", "de.bsp", "run.zarr", "run.html", "run.csv"}


@pytest.mark.parametrize("command", ["bin/polhode", "-m polhode"])
def test_the_command_line_names_its_extra(python, tmp_path, command):
    if command == "-m polhode":
        done = answered(python, command.split(), tmp_path)
    else:
        program = "import sys, importlib.metadata as m; (e,) = m.entry_points(group='console_scripts', name='polhode')"
        done = answered(python, ["-c", f"{program}; e.load()()"], tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert SENTENCE.fullmatch(done.stderr.strip())[1] == "app"


def test_long_runs_show_their_progress_as_text(python, tmp_path):
    program = """
        import polhode.results.progress as p
        p.PATIENCE = 0.0
        bar = p.Progress(True, "imidm", 200)
        for done in range(0, 201, 50):
            bar.update(done)
        bar.close()
    """
    done = answered(python, ["-c", textwrap.dedent(program)], tmp_path)
    assert done.returncode == 0, done.stderr
    shown = done.stderr.splitlines()
    assert [line.split()[:2] for line in shown if line][-1] == ["imidm", "100%"]

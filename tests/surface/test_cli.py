"""The command line: every command, its exit codes, and one sentence for every bad input."""

import io
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from rich.console import Console
from tools.documents import blocks, command_lines

import polhode as ph
from commands import good, polhode, refused
from polhode import cli
from polhode.analysis import comparison
from polhode.cli.console import sheet
from polhode.methods.ranking import best_first
from polhode.physics import library
from waiting import PATIENCE

METHOD = ph.methods["imidm"]  # many tests share its programs
EXPLICIT = next(m for m in ph.methods.values() if m.order == 2 and not m.implicit and m.takes("velocity"))
README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# --- lists ------------------------------------------------------------------------------------------


def test_methods_lists_every_method():
    output = good("methods")
    assert all(name in output for name in ph.methods)


def test_methods_that_take_a_field():
    listed = [m["name"] for m in json.loads(good("methods", "--takes", "velocity", "--json"))]
    assert listed == [m.name for m in best_first(ph.methods.taking("velocity"), "velocity")]
    assert "one of" in refused("methods", "--takes", "everything")


def test_methods_json_says_what_is_declared():
    for said in json.loads(good("methods", "--json")):
        method = ph.methods[said["name"]]
        assert said["order"] == ("exact" if method.order == math.inf else method.order)
        assert said["symmetric"] == method.symmetric
        assert set(said["conserves"]) == method.conserves
        assert said["citation"] != method.cite, "every citation stands in references.bib"


def test_one_method_in_full():
    output = good("methods", METHOD.name)
    assert METHOD.summary in output
    for word in ("order", "symmetric", "conserves", "torque evaluations", "source"):
        assert word in output
    if METHOD.aliases:
        assert good("methods", METHOD.aliases[0].swapcase()) == output


def test_problems():
    output = good("problems")
    assert all(name in output for name in ph.problems.names())
    assert [p["name"] for p in json.loads(good("problems", "--json"))] == ph.problems.names()


@pytest.mark.parametrize("command", ["methods", "problems", "body", "init", "run", "exact", "compare"])
def test_help_has_examples(command):
    assert re.search(rf"Examples.*polhode {command}", good(command, "--help"), re.DOTALL)


def test_version():
    assert good("--version") == f"polhode {ph.__version__}\n"


# --- run --------------------------------------------------------------------------------------------


def test_run_says_frames_drift_error_and_time():
    output = good("run", "free_body", "--method", METHOD.name, "--dt", "0.5")
    for word in ("scalar first", "body frame", "space frame", "drift", "spectral norm", "per step"):
        assert word in output
    sol = ph.solve(ph.problems.free_body(), METHOD, dt=0.5)
    first = float(re.search(r"quaternion\s+\(\s*(\S+),", output)[1])
    assert first == pytest.approx(sol.quaternion[-1, 0], abs=1e-11)


def test_run_without_a_reference_says_no_error():
    assert "error " not in good("run", "free_body", "-m", METHOD.name, "--dt", "0.5", "--t-end", "3")


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_run_writes_a_trajectory_and_a_picture(suffix):
    run = ("run", "free_body", "-m", METHOD.name, "--dt", "0.5", "--steps", "20", "--every", "5")
    files = ("--out", f"a{suffix}", "--plot", "a.png")
    assert f"a{suffix}" in good(*run, *files)
    assert ph.load(f"a{suffix}").t.tolist() == [0, 2.5, 5, 7.5, 10]
    assert Path("a.png").stat().st_size > 10_000
    assert "exists" in refused(*run, *files[:2])
    assert "exists" in refused(*run, *files[2:])
    good(*run, *files, "--overwrite")


def test_run_in_many_digits():
    output = good("run", "free_body", "-m", METHOD.name, "--dt", "0.5", "--steps", "2", "--digits", "40")
    assert re.search(r"0\.\d{38}", output)


BAD = {
    "unknown method": (("run", "free_body", "-m", METHOD.name + "x", "--dt", "1"), METHOD.name),
    "unknown problem": (("run", "fre_body", "-m", METHOD.name, "--dt", "1"), "free_body"),
    "negative dt": (("run", "free_body", "-m", METHOD.name, "--dt", "-1"), "goes backwards in time"),
    "zero dt": (("run", "free_body", "-m", METHOD.name, "--dt", "0"), "must not be zero"),
    "dt not a number": (("run", "free_body", "-m", METHOD.name, "--dt", "nan"), "finite"),
    "dt does not fit": (("run", "free_body", "-m", METHOD.name, "--dt", "0.3"), "nearest t_end"),
    "no steps": (("run", "free_body", "-m", METHOD.name, "--dt", "1", "--steps", "0"), "at least 1"),
    "every zero": (("run", "free_body", "-m", METHOD.name, "--dt", "1", "--every", "0"), "at least 1"),
    "end and steps": (("run", "free_body", "-m", METHOD.name, "--dt", "1", "--steps", "3", "--t-end", "3"), "not both"),
    "digits": (("run", "free_body", "-m", METHOD.name, "--dt", "1", "--digits", "0"), "digits"),
    "file suffix": (("run", "free_body", "-m", METHOD.name, "--dt", "1", "--out", "a.txt"), ".zarr or .nc"),
    "picture suffix": (("run", "free_body", "-m", METHOD.name, "--dt", "1", "--plot", "a.txt"), ".png"),
    "no such folder": (("run", "free_body", "-m", METHOD.name, "--dt", "1", "--out", "no/a.nc"), "folder"),
    "compare: method": (("compare", "free_body", "--methods", "nonsense(1)"), "unknown method"),
    "compare: problem": (("compare", "nonsense"), "unknown problem"),
    "compare: steps": (("compare", "free_body", "--dt", "1, b"), "numbers"),
    "compare: negative step": (("compare", "free_body", "--dt", "1, -1"), "positive"),
    "compare: no steps": (("compare", "free_body", "--dt", ","), "comma-separated numbers, such as"),
    "compare: no methods": (("compare", "free_body", "--methods", " "), "names separated by commas, such as"),
    "one method": (("methods", "nonsense"), "unknown method"),
}


@pytest.mark.parametrize(("args", "word"), BAD.values(), ids=BAD.keys())
def test_bad_input_gets_one_sentence(args, word):
    assert word in refused(*args)


def test_words_that_are_no_numbers():
    assert polhode("run", "free_body", "-m", METHOD.name, "--dt", "abc").exit_code == 2
    assert polhode("run", "free_body").exit_code == 2
    assert polhode("nonsense").exit_code == 2


def fading_problem():
    """Torque that is no number after t = 1."""

    @ph.torque
    def fading(t):
        return (0.0, 0.0, ph.math.sqrt(1 - t))

    return ph.Problem(ph.Body([1.0, 2.0, 2.5]), fading(), omega=[1.0, 0.5, 0.2], name="fading", t_end=2.0)


def test_a_failed_step_ends_with_one(monkeypatch):
    monkeypatch.setitem(library._MAKERS, "fading", fading_problem)
    result = polhode("run", "fading", "-m", METHOD.name, "--dt", "0.1", "--out", "a.zarr")
    assert result.exit_code == 1
    assert "failed in step" in result.stderr
    assert "a.zarr holds" in result.stderr
    assert 5 < len(ph.load("a.zarr")) < 15


def test_a_failed_step_is_explained_in_full(monkeypatch):
    """All of the reason, and nothing for Python users only; whatever words it contains."""

    def failing(*args, **named):
        raise ph.StepError("it failed; the step is long; try dt = 0.1", states="the states are in .partial")

    monkeypatch.setattr("polhode.run.solve.solve", failing)
    for how in (("--tol", "1e-6"), ("-m", METHOD.name, "--dt", "0.1")):
        result = polhode("run", "free_body", *how)
        assert result.exit_code == 1
        assert result.stderr.splitlines()[-1] == "polhode: it failed; the step is long; try dt = 0.1"


# --- compare ----------------------------------------------------------------------------------------


def test_compare_writes_everything_and_says_where():
    import xarray

    chosen = f"{METHOD.name}, {EXPLICIT.name}"
    args = ("compare", "free_body", "--methods", chosen, "--dt", "0.5, 0.25, 0.125", "--out", "deep/here")
    output = good(*args)
    for word in (METHOD.name, EXPLICIT.name, "ns/step", "deep/here", "Next:"):
        assert word in output
    folder = Path("deep/here")
    assert sorted(p.name for p in folder.iterdir()) == sorted((*cli.FILES, "trajectories"))
    found = json.loads((folder / "results.json").read_text())
    assert len(found["rows"]) == 6
    assert found["measured_order"][METHOD.name] == pytest.approx(2, abs=0.05)
    assert len((folder / "results.csv").read_text().splitlines()) == 7
    with xarray.open_dataset(folder / "trajectories" / f"{METHOD.name}.nc") as data:
        assert data.quaternion.shape == (len(data.t), 4)
        assert float(data.t[-1]) == 100.0
    assert "already holds results" in refused(*args)
    stranger = folder / "mine.txt"
    stranger.write_text("kept")
    good(*args, "--overwrite")
    assert stranger.read_text() == "kept"


def test_what_compare_writes_can_be_opened():
    """By ph.load, view and export; the trajectories of an earlier comparison do not stay."""
    args = ("compare", "free_body", "--dt", "0.5", "--t-end", "2", "--out", "here", "--overwrite", "--methods")
    good(*args, EXPLICIT.name)
    output = good(*args, METHOD.name)
    files = list(Path("here/trajectories").iterdir())
    assert [file.name for file in files] == [f"{METHOD.name}.nc"]
    sol = ph.load(files[0])
    assert (sol.method, sol.t[-1], len(sol)) == (METHOD.name, 2.0, 5)
    assert "steps" in good("export", files[0], "again.zarr")
    for command in re.findall(r"^  polhode (.*)", output, re.MULTILINE):
        good(*shlex.split(command))
    assert Path("free_body.html").stat().st_size > 10_000


def test_a_failed_run_has_no_drift_and_is_not_recommended():
    """The free body turns by 5 rad in a step of 1, which dmv2 cannot solve: it fails in its first step."""
    args = ("compare", "t_handle", "--methods", f"dmv2, {METHOD.name}", "--t-end", "2")
    output = good(*args, "--dt", "1, 0.1, 0.05", "--out", "some")
    found = json.loads(Path("some/results.json").read_text())["rows"]
    failed = [row for row in found if row["failure"]]
    assert [row["method"] for row in failed] == ["dmv2"]
    assert all(failed[0][name] is None for name in ("attitude_error", "energy_drift", "momentum_drift", "seconds"))
    picture = Path("some/error_vs_dt.svg").read_text()
    assert "dmv2 (1 of 3 failed)" in picture
    output = good(*args[:3], "dmv2", *args[4:], "--dt", "1", "--out", "none")
    assert re.search(r"dmv2 +2( +-){4} +failed", output)
    assert ph.load("none/trajectories/dmv2.nc").status == "failed"
    proposed = re.findall(r"^  polhode (.*)", output, re.MULTILINE)
    assert proposed[0] == 'compare t_handle --methods "dmv2" --dt "0.1"'
    good(*shlex.split(proposed[0]), "--t-end", "2")


def test_files_of_methods_have_names_of_their_own():
    names = comparison.file_names(["mkrk(rk4)", "mkrk_rk4", "galpha(0.8)"])
    assert list(names.values()) == ["mkrk_rk4.nc", "mkrk_rk4-2.nc", "galpha_0_8.nc"]


def test_compare_refuses_a_file_as_folder():
    Path("a.txt").write_text("mine")
    assert "is a file" in refused("compare", "free_body", "--out", "a.txt")


# --- the process ------------------------------------------------------------------------------------


LISTENING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell starts its children deaf to Ctrl-C
from polhode.cli import main
main()
"""


def process(*args, **named):
    return subprocess.Popen(
        [sys.executable, "-c", LISTENING, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, **named,
    )  # fmt: skip


def test_process_exit_code_and_no_traceback():
    child = process("run", "free_body", "--method", "nonsense", "--dt", "1")
    out, err = child.communicate(timeout=PATIENCE)
    assert (child.returncode, out) == (2, "")
    assert err.startswith("polhode: unknown method")


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_interrupt_leaves_a_readable_file_and_names_it():
    child = process("run", "free_body", "-m", METHOD.name, "--dt", "1e-7", "--every", "10000", "--out", "long.zarr")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not _has_rows("long.zarr"):
        time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130
    assert "long.zarr holds them" in err
    assert "Traceback" not in err
    sol = ph.load("long.zarr")
    assert sol.status == "interrupted"
    assert len(sol) > 1


def _has_rows(path):
    try:
        return len(ph.load(path)) > 1
    except (ph.InputError, OSError, KeyError, ValueError):
        return False


def test_the_command_line_starts_without_heavy_modules():
    heavy = ("numba", "matplotlib", "xarray", "zarr", "mpmath", "scipy")
    code = f"import sys, polhode.cli; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_readme_commands_exist():
    lines = [line for _, block in blocks(README, "console") for line in command_lines(block)]
    commands = {line.split()[1] for line in lines}
    assert commands
    assert commands <= set(typer.main.get_command(cli.app).commands)


def test_exact(tmp_path):
    output = good("exact", "t_handle", "--t", "5", "--plot", str(tmp_path / "a.png"))
    assert "t_handle at t = 5, exactly" in output
    assert re.search(r"period +10\.53", output)
    assert "degrees per period" in output
    assert (tmp_path / "a.png").exists()
    assert "exists" in refused("exact", "t_handle", "--plot", str(tmp_path / "a.png"))
    assert "fast_top at t = 20, exactly" in good("exact", "fast_top", "--plot", str(tmp_path / "top.png"))
    assert (tmp_path / "top.png").exists()
    assert "there is no exact solution" in refused("exact", "heavy_top")


# --- what a user runs into ------------------------------------------------------------------------------


def test_one_problem_in_full():
    output = good("problems", "fast_top")
    for word in (
        "Lagrangian top",
        "gravity(mgl=20.0)",
        "scalar first (w, x, y, z)",
        "body frame",
        "t end",
        "accurate to",
    ):
        assert word in output
    assert json.loads(good("problems", "fast_top", "--json"))["t_end"] == 20
    assert "unknown problem" in refused("problems", "slowtop")


@pytest.mark.parametrize("columns", [30, 40, 80, 200])
def test_no_column_is_lost_on_a_narrow_screen(columns):
    """What does not fit beside each other stands below each other, complete."""
    rows = [["first", "some words about it, rather long", "3.5e-16"], ["a_very_long_name", "few", "1"]]
    screen = Console(width=columns, file=io.StringIO())
    screen.print(sheet("Things", ("name", "what it is", "good to"), rows, numbers=1))
    output = screen.file.getvalue()
    words = " ".join(output.split())
    for word in ("Things", "first", "3.5e-16", "a_very_long_name", "few", "what it is", "good to", "rather"):
        assert word in words
    assert max(map(len, output.splitlines())) <= columns


@pytest.mark.parametrize(
    "args",
    [
        ("run", "fast_top", "--method", METHOD.name, "--dt", "0.01", "--plot"),
        ("run", "fast_top", "--method", METHOD.name, "--dt", "0.01", "--view"),
        ("exact", "t_handle", "--plot"),
        ("bench", "--methods", METHOD.name, "--out"),
        ("compare", "fast_top", "--methods", METHOD.name, "--out"),
    ],
    ids=lambda args: " ".join((args[0], args[-1])),
)
def test_what_cannot_be_written_is_said_before_the_work(args):
    Path("file").write_text("no folder\n")
    name = {"--plot": "a.png", "--view": "a.html"}.get(args[-1], "a.json")
    Path(name).mkdir()
    if args[0] == "compare":
        assert "file/folder cannot be written: Not a directory" in refused(*args, "file/folder")
    else:
        assert f"{name} cannot be written: Is a directory" in refused(*args, name, "--overwrite")


def test_the_papers_are_recomputed_elsewhere():
    """The old command says by which one, and is not listed."""
    said = refused("reproduce", "vilmart-table1", "--out", "new")
    assert "`python -m validation.papers vilmart-table1 --out new`" in said
    assert "reproduce" not in good("--help")


def test_examples_can_be_pasted_into_a_shell():
    """No method in the help has parentheses that a shell takes for its own."""
    for command in ("run", "compare", "methods", "bench"):
        for line in re.findall(r"polhode [^\n`]*", good(command, "-h").replace("(the same", "# (the same")):
            bare = re.sub(r'"[^"]*"|#.*', "", line)
            assert "(" not in bare, line
    assert "(" not in refused("run", "fast_top").partition("polhode run")[2]


def test_view_of_what_is_no_trajectory():
    assert "must end in .zarr or .nc" in refused("view", ".")
    bodies = [ph.Body([1.0, 2.0, 3.0])] * 2
    many = ph.ensemble(bodies, [[1.0, 0.0, 0.0, 0.0]] * 2, [[1.0, 0.1, 0.1]] * 2, METHOD.name, dt=0.1, steps=3)
    many.save("many.zarr")
    assert "which is shown alone" in refused("view", "many.zarr", "many.zarr")
    assert "holds an ensemble" in refused("export", "many.zarr", "--to", "gif")
    assert "many.html" in good("view", "many.zarr")


def test_errors_of_the_system_are_told_in_words(monkeypatch):
    def full(*args, **named):
        raise OSError(28, "No space left on device", "big.html")

    good("run", "fast_top", "--method", METHOD.name, "--dt", "0.1", "--steps", "3", "--out", "a.nc")
    monkeypatch.setattr("polhode.viewer.view", full)
    result = polhode("view", "a.nc")
    assert result.exit_code == 1
    assert result.stderr == "polhode: big.html cannot be used: No space left on device\n"


def test_a_run_with_a_file_does_not_call_writing_a_step():
    output = good("run", "fast_top", "--method", METHOD.name, "--dt", "0.1", "--steps", "3", "--out", "a.nc")
    assert "including writing" in output
    assert "per step" not in output


@pytest.mark.parametrize("columns", ["40", "120"])
def test_help_on_screens_of_any_width(columns):
    """No name of an option is cut off."""
    output, _ = process("run", "--help", env=os.environ | {"COLUMNS": columns}).communicate()
    for word in ("--allow-code", "--overwrite", "--resume", "Examples", "polhode run fast_top"):
        assert word in output
    assert "[bold]" not in output

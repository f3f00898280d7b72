"""Options of `polhode run` that choose steps, states and the direction of time."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import polhode as ph
from commands import good, polhode, refused
from polhode.config import problem_file
from problem_texts import TOP

pytestmark = pytest.mark.usefixtures("in_a_folder")

STEPS = {"dt": ("-m", "imidm", "--dt", "0.01"), "tol": ("--tol", "1e-6"), "step_tol": ("--step-tol", "1e-6")}

FILE = f"""{TOP}
omega = [0.0, 0.1, 10.0]
[run]
{{run}}
"""


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("steps", STEPS)
def test_states_and_direction(steps, way):
    end = f"{0.5 * way}"
    assert f"to t = {end}" in good("run", "fast_top", *STEPS[steps], "--t-end", end)
    chosen = f"0,{0.123 * way},{0.5 * way}"
    good("run", "fast_top", *STEPS[steps], "--times", chosen, "--out", "times.zarr")
    assert ph.load("times.zarr").t.tolist() == [0.0, 0.123 * way, 0.5 * way]
    good("run", "fast_top", *STEPS[steps], "--samples", "6", "--t-end", end, "--out", "samples.zarr")
    assert np.allclose(ph.load("samples.zarr").t, np.linspace(0, 0.5 * way, 6), rtol=1e-15)
    good("run", "fast_top", *STEPS[steps], "--max-turn", "0.05", "--t-end", end, "--out", "close.zarr")
    close = ph.load("close.zarr")
    assert (close.rotation[:-1].inv() * close.rotation[1:]).magnitude().max() < 0.051


@pytest.mark.parametrize("end", [("--t-end", "0.99"), ("--steps", "33"), ("--t-end", "-0.99"), ("--times", "0.99")])
def test_a_step_need_not_divide_the_time_of_the_problem(end):
    """fast_top ends at t = 20, which is no multiple of 0.03: only the requested end matters."""
    text = good("run", "fast_top", "-m", "imidm", "--dt", "0.03", *end)
    assert f"to t = {-0.99 if '-0.99' in end else 0.99}" in text


def test_euler_angles_are_printed_and_written():
    run = ("fast_top", *STEPS["dt"], "--t-end", "0.5", "--euler", "ZYX")
    wanted = ph.solve(ph.problems.fast_top(), "imidm", dt=0.01, t_end=0.5).euler_deg("ZYX")
    text = good("run", *run, "--csv", "angles.csv")
    (line,) = re.findall(
        r"^euler ZYX +\((.*)\) +degrees, body to space, about axes of the body, intrinsic$", text, re.M
    )
    assert np.allclose(np.array(line.split(","), float), wanted[-1], rtol=1e-11)
    found = np.genfromtxt("angles.csv", delimiter=",", names=True)
    assert np.array_equal(np.transpose([found[f"euler_deg_ZYX_{i}"] for i in (1, 2, 3)]), wanted)
    assert json.loads(good("run", *run, "--json"))["end"]["euler_deg_ZYX"] == wanted[-1].tolist()
    assert "about axes of space, extrinsic" in good("run", *run[:-1], "zxz")
    assert "--euler must be three axes, such as ZYX: upper case" in refused("run", *run[:-1], "ZYx", "--csv", "b.csv")
    exact = ("exact", "fast_top", "--times", "0,0.5", "--euler", "xyz")
    assert "euler_deg_xyz_3" in good(*exact)
    assert len(json.loads(good(*exact, "--json"))["states"][1]["euler_deg_xyz"]) == 3
    assert "--euler must be three axes" in refused(*exact[:-1], "x")


def test_what_is_printed():
    text = good("run", "fast_top", "--step-tol", "1e-9", "--t-end", "1")
    assert "none: each step keeps 1e-09" in text
    assert "and its estimate" not in text
    text = good("run", "fast_top", "--tol", "1e-20", "--digits", "25", "--t-end", "0.05")
    assert "requested 1e-20" in text
    assert "taylor" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tol", "1e-6", "--step-tol", "1e-6"), "not both"),
        (("--tol", "1e-6", "--times", "0,x"), "--times must be numbers separated by commas"),
        (("--tol", "1e-6", "--times", "2,1"), "each after the one before"),
        (("--tol", "1e-6", "--times", "1,2", "--samples", "3"), "give one of times and samples"),
        (("--tol", "1e-6", "--samples", "1"), "samples must be at least 2"),
        (("--tol", "1e-6", "--samples", "0"), "samples must be a whole number"),
        (("--tol", "1e-6", "--max-turn", "-1"), "max_turn must be positive"),
        (("--tol", "1e-25"), "--digits 30"),
        (("-m", "imidm", "--dt", "0.01", "--times", "2,1"), "each after the one before"),
        (("-m", "imidm", "--dt", "-0.01", "--t-end", "1"), "goes backwards in time"),
        (("--max-turn", "0.1"), "give --method and --dt"),
    ],
)
def test_mistakes(options, said):
    result = polhode("run", "fast_top", *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("run", "t"),
    [
        ("step_tol = 1e-6\nt_end = -1.0\nsamples = 3", [0.0, -0.5, -1.0]),
        ("tol = 1e-6\ntimes = [0.25, 1.0]", [0.25, 1.0]),
        ('method = "imidm"\ndt = 0.01\nt_end = -0.02', [0.0, -0.01, -0.02]),
        ('method = "imidm"\ndt = 0.01\nsteps = 4\nsamples = 2', [0.0, 0.04]),
        ("tol = 1e-16\ndigits = 18\nt_end = 0.1\nsamples = 2", [0.0, 0.1]),
    ],
)
def test_problem_files(run, t):
    Path("top.toml").write_text(FILE.format(run=run), "utf-8")
    assert problem_file.load("top.toml").solve().t.tolist() == t
    good("run", "top.toml", "--out", "top.zarr")
    assert len(ph.load("top.zarr")) == len(t) or "imidm" in run


def test_options_replace_those_of_the_file():
    Path("top.toml").write_text(FILE.format(run="tol = 1e-6\nt_end = 1.0\nsamples = 3"), "utf-8")
    for options, count in ((("--samples", "5"), 5), (("--times", "0.5,1"), 2), (("--step-tol", "1e-7"), 3)):
        good("run", "top.toml", *options, "--out", "top.zarr", "--overwrite")
        assert len(ph.load("top.zarr")) == count


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("tol = 1e-6\nstep_tol = 1e-6\nt_end = 1.0", "at most one of tol, step_tol"),
        ("tol = 1e-6\nt_end = 1.0\nevery = 2\nsamples = 3", "at most one of every, times, samples, max_turn"),
        ("tol = 1e-6\nt_end = 1.0\ntimes = [0.5, 2.0]", "times must lie between"),
        ("tol = 1e-6\nt_end = 0.0", "t_end must differ from t0"),
        ("step_tol = 1e-6\nt_end = 1.0\nsamples = 1", "samples must be at least 2"),
    ],
)
def test_mistakes_in_problem_files(run, said):
    Path("top.toml").write_text(FILE.format(run=run), "utf-8")
    result = polhode("run", "top.toml")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())

"""Sweeps from a TOML file, and `polhode sweep`."""

import json

import numpy as np
import pytest
import xarray
from typer.testing import CliRunner

import polhode as ph
from polhode.cli import app
from polhode.config import sweep_file
from problem_texts import TOP

PROBLEM, RUN, GRID = 'name = "fast_top"', 'method = "imidm"\ndt = 0.01\nsteps = 20', "[grid]\nomega.z = [40, 50]"


def written(tmp_path, vary=GRID, problem=PROBLEM, run=RUN):
    path = tmp_path / "sweep.toml"
    path.write_text(f"[problem]\n{problem}\n\n[run]\n{run}\n\n{vary}\n")
    return path


def read(tmp_path, *args, **named):
    return sweep_file.read(written(tmp_path, *args, **named))


def test_a_grid_is_every_combination(tmp_path):
    made = read(tmp_path, "[grid]\nparams.mgl = [10, 20]\nomega.z = {from = 1, to = 100, count = 3, spacing = 'log'}")
    np.testing.assert_allclose(made.labels["params.mgl"], [10, 10, 10, 20, 20, 20])
    np.testing.assert_allclose(made.labels["omega.z"], [1, 10, 100, 1, 10, 100])
    np.testing.assert_allclose(made.task.batch.momentum, [[0, 0, w] for w in made.labels["omega.z"]])  # I3 = 1
    assert made.task.batch.values.ravel().tolist() == made.labels["params.mgl"].tolist()


@pytest.mark.parametrize("run", ["dt = -0.01\nsteps = 20", "dt = 0.01\nt_end = -0.2"])
def test_backwards_in_time(tmp_path, run):
    out = tmp_path / "back.zarr"
    said = command(str(written(tmp_path, run=f'method = "imidm"\n{run}')), "--out", str(out))
    assert said.exit_code == 0, said.output
    back = ph.solve(ph.problems.fast_top(), "imidm", dt=-0.01, steps=20)
    np.testing.assert_allclose(ph.load(out).momentum[-1, 1], back.momentum[-1], rtol=0, atol=1e-12)
    assert ph.load(out).t[-1] == back.t[-1]


def test_a_list_goes_in_parallel_and_may_be_a_csv_file(tmp_path):
    (tmp_path / "starts.csv").write_text("omega.x, omega.z\n0.1, 40\n0.2, 50\n")
    by_file = read(tmp_path, '[list]\ncsv = "starts.csv"')
    by_hand = read(tmp_path, '[list]\n"omega.x" = [0.1, 0.2]\n"omega.z" = [40, 50]')
    assert np.array_equal(by_file.task.batch.momentum, by_hand.task.batch.momentum)
    assert np.array_equal(by_file.task.batch.momentum, [[0.5, 0, 40], [1.0, 0, 50]])


def test_random_numbers_are_those_of_the_seed(tmp_path):
    vary = (
        '[random]\ncount = 4000\nseed = {}\nattitude = "random"\nmomentum = {{isotropic = 5.0}}\n'
        "moments.x = {{uniform = [4.0, 6.0]}}\nparams.mgl = {{loguniform = [1, 100]}}"
    )
    one, again, other = (read(tmp_path, vary.format(seed)) for seed in (1, 1, 2))
    fewer = read(tmp_path, vary.format(1).replace("moments.x = {uniform = [4.0, 6.0]}\n", ""))
    assert list(one.columns) == ["attitude", "momentum", "moments.x", "params.mgl"]
    for key, values in one.columns.items():
        assert np.array_equal(values, again.columns[key])
        assert not np.array_equal(values, other.columns[key])
        assert key == "moments.x" or np.array_equal(values, fewer.columns[key])
    crowd, error = one.task.batch, 4 / np.sqrt(4000)  # four standard deviations of a mean of numbers of size 1
    np.testing.assert_allclose(np.linalg.norm(crowd.momentum, axis=1), 5, rtol=1e-14)
    assert np.abs((crowd.momentum / 5).mean(0)).max() < error
    assert np.abs(crowd.quaternion.mean(0)).max() < error
    assert abs(np.log10(crowd.values).mean() - 1) < error
    assert (crowd.moments[:, 1:] == [5, 1]).all()


def test_omega_is_held_where_it_is_given(tmp_path):
    vary = "[grid]\nmoments.x = [2.0, 2.5]"
    spun = read(tmp_path, vary, "moments = [2.0, 3.0, 4.0]\nomega = [1.0, 1.0, 0.0]")
    assert spun.task.batch.momentum.tolist() == [[2, 3, 0], [2.5, 3, 0]]
    pushed = read(tmp_path, vary, "moments = [2.0, 3.0, 4.0]\nmomentum = [1.0, 1.0, 0.0]")
    assert pushed.task.batch.momentum.tolist() == [[1, 1, 0]]


def test_three_bodies_are_not_a_tensor(tmp_path):
    assert len(read(tmp_path, "[grid]\nmoments.z = [1.0, 1.5, 2.0]").task.batch.moments) == 3
    dipoles = read(tmp_path, "[grid]\nomega.z = [1.0, 1.5, 2.0]", 'name = "dipole_in_field"')
    assert dipoles.task.batch.values.shape == (3, 6)


def test_a_field_of_the_users_own(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import polhode as ph\n\n@ph.torque\ndef drag(omega, k):\n    return tuple(-k * w for w in omega)\n"
    )
    own = 'moments = [2.0, 3.0, 4.0]\nmomentum = [1.0, 1.0, 0.0]\nfield = "mine.py:drag"'
    file = written(tmp_path, "[grid]\nparams.k = [0.1, 0.2]", own, RUN.replace("imidm", "fem"))
    with pytest.raises(ph.InputError, match=r"this runs the Python code in mine\.py:drag; .* --allow-code"):
        sweep_file.read(file)
    made = sweep_file.read(file, allow_code=True)
    assert made.task.batch.field.name == "drag"
    ends = made.task.run()
    assert (np.diff(np.linalg.norm(ends.momentum[-1], axis=1)) < 0).all()


BAD = {
    "method": ({"run": RUN.replace("imidm", "imidn")}, ", line 5: run.method: unknown method 'imidn'; nearest: "),
    "problem": (
        {"problem": 'name = "fast_topp"'},
        ", line 2: problem.name: unknown problem 'fast_topp'; nearest: fast_top",
    ),
    "key": ({"run": RUN + "\nstep = 3"}, ", line 8: run.step: there is no such key here; did you mean steps"),
    "dt": (
        {"run": RUN.replace("0.01", "0")},
        ", line 6: run.dt: dt must not be zero",
    ),
    "no dt": ({"run": 'method = "imidm"\nsteps = 20'}, r"give dt in \[run\]"),
    "both": (
        {"run": RUN + "\nt_end = 3.0"},
        ", line 7: run.steps: give at most one of t_end, steps, orbits; got t_end and",
    ),
    "missing": ({"run": "dt = 0.1"}, "run.method: is missing"),
    "nothing": ({"vary": ""}, r"give exactly one of \[grid\], \[list\], \[random\]"),
    "quantity": ({"vary": "[grid]\nomga.z = [1]"}, "omga cannot vary; did you mean omega"),
    "component": ({"vary": "[grid]\nomega.q = [1]"}, ", line 10: grid.omega.q: must be written omega.x, .y or .z"),
    "number": ({"vary": '[grid]\nomega.z = "a"'}, ", line 10: grid.omega.z: must be a list of numbers; got 'a'"),
    "rows": ({"vary": "[grid]\nomega = [1, 2, 3]"}, ", line 10: grid.omega: must be a list of rows of 3 numbers"),
    "spread": (
        {"vary": "[grid]\nomega.z = {from = 1, to = 2}"},
        ", line 10: grid.omega.z.count: is missing; it is a whole number of at least 1",
    ),
    "log": ({"vary": "[grid]\nomega.z = {from = 0, to = 2, count = 2, spacing = 'log'}"}, "above 0"),
    "lengths": ({"vary": "[list]\nomega.x = [1, 2]\nomega.y = [1]"}, "the same length; got omega.x 2, omega.y 1"),
    "csv": ({"vary": '[list]\ncsv = "none.csv"'}, ", line 10: .*none.csv cannot be read: No such file"),
    "seed": ({"vary": "[random]\ncount = 2\nomega.z = {uniform = [1, 2]}"}, ", line 9: random.seed: is missing"),
    "distribution": ({"vary": "[random]\ncount = 2\nseed = 1\nomega.z = 5"}, "must be a distribution such as"),
    "isotropic": ({"vary": "[random]\ncount = 2\nseed = 1\nomega.z = {isotropic = 1}"}, "isotropic is for a vector"),
    "triangle": ({"vary": "[grid]\nmoments.z = [1.0, 30.0]"}, "body 1: moments of inertia must satisfy the triangle"),
    "twice": ({"vary": "[grid]\nomega.z = [1]\nmomentum.z = [2]"}, "omega and momentum cannot both vary"),
    "dt varies": ({"vary": "[grid]\ndt = [0.1]"}, r"dt varies, so remove it from \[run\]"),
    "free": ({"problem": 'name = "free_body"', "vary": "[grid]\nparams.mgl = [1]"}, "the problem has no field"),
    "parameter": ({"vary": "[grid]\nparams.mg = [1]"}, "gravity has no parameter 'mg'; it has mgl"),
    "field": ({"problem": 'moments = [1, 1, 1]\nfield = "gravty"'}, "unknown field 'gravty'; nearest: gravity"),
    "python": ({"problem": 'moments = [1, 1, 1]\nfield = "no.py:f"'}, "this runs the Python code in no.py:f"),
    "deep": (
        {"problem": "moments = [1.0, 2.0, 2.5]\nomega = [1.0, 2.0]"},
        ", line 3: problem.omega: must be three numbers",
    ),
    "table": ({"vary": "[gridd]\nomega.z = [1]"}, ", line 9: gridd: there is no such table here; did you mean grid"),
    "toml": ({"vary": "[grid"}, "is not TOML: "),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_told_with_its_place(tmp_path, case):
    given, said = BAD[case]
    with pytest.raises(ph.InputError, match=rf"sweep.toml.*{said}"):
        read(tmp_path, **given)


# --- the command ------------------------------------------------------------------------------------


def command(*words):
    return CliRunner().invoke(app, ["sweep", *map(str, words)])


def test_what_failed_is_told(tmp_path):
    """Too fast for the implicit step: how many, which first, in which step and why."""
    file = tmp_path / "fast.toml"
    file.write_text(
        '[problem]\nmoments = [1.0, 1.5, 2.0]\n[run]\nmethod = "dmv2"\ndt = 0.1\nsteps = 20\n'
        "[list]\nmomentum = [[1, 1, 1], [1, 2, 3], [300, 200, 100], [1, 0, 1]]\n"
    )
    done = command(file)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "failed 1 first: body 2, in step 1: its equation was not solved (relative residual" in said


def test_from_an_example_to_a_store(tmp_path):
    folder = tmp_path / ("longer than any line " * 8)  # no table may break the name of a file in two
    folder.mkdir()
    file, out = folder / "tops.toml", folder / "tops.zarr"
    assert command(file, "--init").exit_code == 0
    assert command(file, "--init").exit_code == 2
    file.write_text(file.read_text().replace("count = 41", "count = 4").replace("t_end = 20.0 ", "t_end = 1.0 "))
    dry = command(file, "--dry-run")
    assert dry.exit_code == 0
    assert "2e+03" in dry.output  # 20 bodies, 100 steps
    assert not out.exists()
    earlier, now = (json.loads(command(file, "--dry-run", "--json", size, 8).stdout) for size in ("--unit", "--shard"))
    assert earlier == now | {"seconds": earlier["seconds"]}
    assert now["shard"] == 8
    both = command(file, "--unit", 8, "--shard", 8)
    assert both.exit_code == 2
    assert "give --shard alone" in both.output
    assert "--unit" not in command(file, "--help").output
    first = command(file, "--shard", 8)
    assert first.exit_code == 0, first.output
    for word in ("bodies", "failed", "largest", "body-steps per second"):
        assert word in first.output
    assert str(out) in first.output
    again = command(file)
    assert again.exit_code == 2
    assert "exists; choose another name" in again.output
    assert "Traceback" not in again.output
    (out / "failed" / "c" / "1").unlink()
    more = command(file, "--out", out, "--resume")
    assert more.exit_code == 0
    with xarray.open_zarr(out, chunks=None) as data:
        assert set(data.coords) >= {"params.mgl", "omega.z", "t"}
        chosen = data.where(data["params.mgl"] == 20, drop=True)
        assert chosen.sizes["body"] == 4
        made = sweep_file.read(file)
        assert np.array_equal(data["quaternion"], made.task.run().quaternion)
        assert data.attrs["sweep"] == file.read_text()
    file.write_text(file.read_text().replace("count = 4", "count = 5"))
    other = command(file, "--out", out, "--resume")
    assert other.exit_code == 2
    assert "was begun with number of bodies = 20, and this run has number of bodies = 25" in other.output


def test_bad_files_end_with_two(tmp_path):
    missing = command(tmp_path / "none.toml")
    assert missing.exit_code == 2
    assert "cannot be read: No such file or directory" in missing.output
    assert command(written(tmp_path), "--out", tmp_path / "x.nc").exit_code == 2
    assert command(written(tmp_path, "[grid]\nomega.q = [1]")).exit_code == 2


# --- in the language of problem files ---------------------------------------------------------------

TOPS = f"""{TOP}
rotation_vector = [0.3, 0.0, 0.0]
{{start}}
[run]
method = "imidm"
dt = 0.01
steps = 10
{{grid}}
"""


def sweep_of(tmp_path, grid, start="omega = [0.0, 0.0, 50.0]", **changes):
    text = TOPS.format(grid=grid, start=start)
    for old, new in changes.items():
        text = text.replace(old, new)
    path = tmp_path / "tops.toml"
    path.write_text(text, "utf-8")
    return sweep_file.read(path)


def test_a_problem_file_with_a_grid_is_a_sweep(tmp_path):
    """The same bodies as those of the named problem, which it describes."""
    sweep = sweep_of(tmp_path, "[grid]\nparams.mgl = [10, 20]\nomega.z = [40, 50]\n[output]\nfile = 'here.zarr'")
    assert sweep.number == 4
    assert sweep.file == tmp_path / "here.zarr"
    other = tmp_path / "named.toml"
    other.write_text(
        '[problem]\nname = "fast_top"\n[run]\nmethod = "imidm"\ndt = 0.01\nsteps = 10\n'
        "[grid]\nparams.mgl = [10, 20]\nomega.z = [40, 50]\n"
    )
    mine, named = sweep.task.batch, sweep_file.read(other).task.batch
    compared = [name for name, value in vars(named).items() if isinstance(value, np.ndarray)]
    assert len(compared) >= 4
    for name in compared:
        np.testing.assert_allclose(getattr(mine, name), getattr(named, name), atol=1e-15, err_msg=name)


def test_omega_stays_while_moments_vary(tmp_path):
    sweep = sweep_of(tmp_path, "[list]\nmoments = [[5, 5, 1], [5, 5, 2]]", "omega = [0.0, 1.0, 50.0]")
    base = sweep._momenta(sweep._start(), ph.problems.fast_top(), np.array([[5.0, 5, 1], [5, 5, 2]]))
    np.testing.assert_allclose(base, [[0, 5, 50], [0, 5, 100]])


@pytest.mark.parametrize(
    ("grid", "start", "said"),
    [
        ("", "omega = [0, 0, 1]", "the quantities that vary"),
        ("[grid]\ndt = [0.1]\n[problem]\nname = 'fast_top'", "omega = [0, 0, 1]", "got both"),
        ("[grid]\nomega.z = [1]\n[output]\nplot = 'a.png'", "omega = [0, 0, 1]", "no pictures"),
        ("[random]\ncount = 2\nseed = 1\nattitude = 'random'", "spatial_momentum = [0, 0, 1]", "in the body frame"),
        ("[grid]\nomega.z = [1]", "omeg = [0, 0, 1]", "start.omeg"),
    ],
)
def test_mistakes_in_sweeps_of_problem_files(tmp_path, grid, start, said):
    with pytest.raises(ph.InputError, match=said):
        sweep_of(tmp_path, grid, start)


def test_moments_do_not_vary_under_a_field_of_one_body(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(
        '[problem]\nname = "libration"\n[run]\nmethod = "imidm"\ndt = 0.01\nsteps = 10\n'
        "[list]\nmoments = [[0.6, 0.8, 1.0], [0.5, 0.8, 1.0]]\n"
    )
    with pytest.raises(ph.InputError, match="distant_centre is that of one body"):
        sweep_file.read(path)

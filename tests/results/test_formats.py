"""Results in files for other programs, read by readers that do not know this library."""

from __future__ import annotations

import csv
import json
import struct
import types
import zlib
from pathlib import Path
from typing import Any

import fastparquet
import numpy as np
import pandas
import pyarrow.feather
import pyarrow.parquet
import pytest
import xarray
from scipy.io import loadmat
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

import polhode as ph
from polhode import cli
from polhode.results import angles
from polhode.results.formats import formats, table
from polhode.results.formats.place import placed
from polhode.results.store import trajectory_store
from polhode.results.trajectory import selected

pytestmark = pytest.mark.xdist_group("trajectory")

TOP = ph.problems.fast_top()
COLUMNS = [
    "t", *(f"quaternion_{c}" for c in "wxyz"),
    *(f"{name}_{axis}" for name in ("momentum", "omega", "spatial_momentum") for axis in "xyz"), "energy",
]  # fmt: skip


@ph.torque
def growing(omega: Any, k: Any) -> Any:
    return (k * omega[0] * omega[0] * omega[0], 0.0, 0.0)


@pytest.fixture(scope="module")
def sol() -> ph.Trajectory:
    return ph.solve(TOP, "imidm", dt=0.01, steps=100)


@pytest.fixture(scope="module")
def many() -> ph.Ensemble:
    momenta = np.array(TOP.momentum) * np.linspace(0.9, 1.1, 5)[:, None]
    return ph.ensemble(TOP, "imidm", momentum=momenta, dt=0.01, steps=20, every=5)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def assert_table(found: Any, sol: ph.Trajectory) -> None:
    """The columns hold the doubles of the result to the last bit."""
    for name in ("t", "energy"):
        np.testing.assert_array_equal(found[name], getattr(sol, name))
    for name in ("quaternion", "momentum", "omega", "spatial_momentum"):
        labels = "wxyz" if name == "quaternion" else "xyz"
        np.testing.assert_array_equal(np.stack([found[f"{name}_{c}"] for c in labels], 1), getattr(sol, name))


# --- tables -----------------------------------------------------------------------------------------


def test_a_data_frame_has_one_row_for_each_state(sol: ph.Trajectory) -> None:
    frame = sol.to_dataframe()
    assert list(frame.columns) == COLUMNS
    assert len(frame) == len(sol)
    assert_table(frame, sol)
    assert frame.attrs["method"] == "imidm"
    assert "scalar first" in frame.attrs["conventions"]
    assert frame.attrs["columns"]["momentum_x"]["units"] == "M L^2 T^-1"


def test_a_data_frame_of_an_ensemble_is_sorted_by_body(many: ph.Ensemble) -> None:
    frame = many.to_dataframe()
    assert list(frame.columns) == ["body", *COLUMNS]
    assert len(frame) == len(many) * len(many.t)
    for i, rows in frame.groupby("body"):
        assert_table(rows, many[i])


def test_blocks_of_bodies_are_one_table(many: ph.Ensemble, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = many.to_dataframe()
    monkeypatch.setattr(table, "ROWS", 2 * len(many.t))
    assert len(list(table.blocks_of(many))) == 3
    pandas.testing.assert_frame_equal(many.to_dataframe(), whole)


def test_a_body_that_failed_has_its_good_states_at_their_times() -> None:
    """The last entry of its arrays is its last good state, which belongs to an earlier time."""
    with pytest.warns(ph.ResultWarning, match="do not follow"), pytest.warns(ph.ResultWarning, match="1 of 2 bodies"):
        many = ph.ensemble(
            [1, 2, 2.5], None, np.ones((2, 3)), "mkrk(rk4)", field=growing, params={"k": [0.0, 30.0]}, dt=0.1,
            steps=10, every=3,
        )  # fmt: skip
    assert many.failed[0] < 0 < many.failed[1]
    frame = many.to_dataframe()
    assert np.isfinite(frame.to_numpy()).all()
    one = many[1]
    np.testing.assert_array_equal(frame[frame.body == 1].t, one.t)
    np.testing.assert_array_equal(frame[frame.body == 1].momentum_x, one.momentum[:, 0])


def test_unknown_energies_are_left_out_and_damaged_ones_are_not(many: ph.Ensemble) -> None:
    """The store of a run with a field has no energies and no formula; a copy has them."""
    momenta = many.momentum[0]
    ph.ensemble(TOP, "imidm", momentum=momenta, dt=0.01, steps=20, every=5, out="run.zarr")
    stored = ph.load("run.zarr")
    assert not stored.has_energy
    assert list(stored.to_dataframe().columns) == ["body", *COLUMNS[:-1]]
    many.save("copy.zarr")
    assert list(ph.load("copy.zarr").to_dataframe().columns) == ["body", *COLUMNS]
    damaged = ph.load("copy.zarr")
    for chunk in Path("copy.zarr/energy/c").rglob("*"):
        if chunk.is_file():
            chunk.unlink()
    with pytest.raises(ph.InputError, match=r"copy.zarr is damaged: energy cannot be read"):
        damaged.to_dataframe()


def test_states_of_a_field_have_columns() -> None:
    @ph.states(wheel=[1.0, 2.0], heat=0.0)
    def spinning(R: Any, omega: Any, wheel: Any, heat: Any) -> Any:
        return (0.0, 0.0, 0.0), {"wheel": (-wheel[0], omega[0]), "heat": 1.0}

    problem = ph.Problem(ph.Body([1, 2, 2.5]), omega=[0.1, 0.2, 0.3], field=spinning())
    found = ph.solve(problem, "verner87", dt=0.1, steps=4)
    frame = found.to_dataframe()
    assert list(frame.columns)[-3:] == ["state_wheel_0", "state_wheel_1", "state_heat"]
    np.testing.assert_array_equal(frame.state_wheel_1, found.states["wheel"][:, 1])


def test_csv_by_the_standard_library(sol: ph.Trajectory) -> None:
    sol.export("run.csv")
    with Path("run.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, strict=True)
    assert header == COLUMNS
    assert_table(dict(zip(header, np.array(rows, float).T, strict=True)), sol)


def test_csv_says_units_and_conventions_on_request(sol: ph.Trajectory) -> None:
    sol.export("run.csv", comments=True)
    lines = [line for line in Path("run.csv").read_text("utf-8").splitlines() if line.startswith("#")]
    assert "# momentum_x: angular momentum in the body frame [M L^2 T^-1]" in lines
    assert any("quaternions are scalar first" in line for line in lines)
    assert_table(pandas.read_csv("run.csv", comment="#"), sol)


def test_parquet_by_two_readers(sol: ph.Trajectory) -> None:
    sol.export("run.parquet")
    found = pyarrow.parquet.read_table("run.parquet")
    assert_table({name: found[name].to_numpy() for name in COLUMNS}, sol)
    assert found.schema.field("omega_x").metadata[b"units"] == b"rad T^-1"
    assert json.loads(found.schema.metadata[b"polhode"])["method"] == "imidm"
    with Path("run.parquet").open("rb") as file:
        assert_table(fastparquet.ParquetFile(file).to_pandas(), sol)


def test_arrow_by_feather(sol: ph.Trajectory) -> None:
    sol.export("run.arrow")
    assert_table(pyarrow.feather.read_feather("run.arrow"), sol)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_tables_of_files_are_written_block_by_block(
    sol: ph.Trajectory, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sol.save("run.nc")
    monkeypatch.setattr(trajectory_store, "ROWS_PER_CHUNK", 40)
    stored = ph.load("run.nc")
    assert [len(block["t"]) for block in table.blocks_of(stored)] == [40, 40, 21]
    stored.export(f"run.{suffix}")
    read = {"csv": pandas.read_csv, "parquet": pandas.read_parquet, "arrow": pandas.read_feather}[suffix]
    assert_table(read(f"run.{suffix}"), sol)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_tables_of_ensembles(many: ph.Ensemble, suffix: str) -> None:
    many.export(f"crowd.{suffix}")
    read = {"csv": pandas.read_csv, "parquet": pandas.read_parquet, "arrow": pandas.read_feather}[suffix]
    found = read(f"crowd.{suffix}")
    assert found["body"].dtype == np.int64
    np.testing.assert_allclose(found, many.to_dataframe(), rtol=1e-15)


# --- an index on time -------------------------------------------------------------------------------


def test_time_is_an_index_in_xarray(sol: ph.Trajectory, many: ph.Ensemble) -> None:
    for result, at in ((sol, 0.503), (many, 0.103)):
        data = result.to_xarray()
        near = int(np.abs(result.t - at).argmin())
        np.testing.assert_array_equal(data.sel(t=at, method="nearest")["momentum"], result.momentum[near])
        assert data.sel(t=slice(0.05, 0.15)).sizes["time"] == ((result.t >= 0.05) & (result.t <= 0.15)).sum()


def test_time_is_an_index_in_files_on_request(sol: ph.Trajectory) -> None:
    sol.save("run.nc")
    with xarray.open_dataset("run.nc") as data:
        assert float(data.set_xindex("t").sel(t=0.503, method="nearest")["t"]) == sol.t[50]


def test_times_of_their_own_have_no_index() -> None:
    momenta = np.array(TOP.momentum) * np.linspace(0.9, 1.1, 3)[:, None]
    many = ph.ensemble(TOP, "imidm", momentum=momenta, dt=[0.01, 0.02, 0.03], steps=4)
    assert many.to_xarray()["t"].dims == ("time", "body")
    np.testing.assert_array_equal(many.to_dataframe()["t"], many.t.T.ravel())


# --- MATLAB -----------------------------------------------------------------------------------------


def matrices_of(path: str) -> dict[str, np.ndarray]:
    """The numeric arrays of a MAT file, by the published description of level 5: little endian, column-major."""
    data = Path(path).read_bytes()
    assert data[:19] == b"MATLAB 5.0 MAT-file"
    assert data[124:128] == b"\x00\x01IM"
    found, at = {}, 128
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + 8 + size]
        at += 8 + size
        if kind == 15:  # compressed
            body = zlib.decompress(body)[8:]
        if body[8] == 6:  # class double
            name, values = double_array(body)
            found[name] = values
    return found


def double_array(body: bytes) -> tuple[str, np.ndarray]:
    """Name and values of a matrix element of doubles."""
    parts, at = [], 0
    while at < len(body):
        kind, size = struct.unpack_from("<II", body, at)
        if kind >> 16:  # a small element: size and type share four bytes
            parts.append(body[at + 4 : at + 4 + (kind >> 16)])
            at += 8
        else:
            parts.append(body[at + 8 : at + 8 + size])
            at += 8 + -(-size // 8) * 8
    _, shape, name, numbers = parts
    return name.decode(), np.frombuffer(numbers, "<f8").reshape(np.frombuffer(shape, "<i4"), order="F")


def test_matlab_by_scipy_and_by_the_description_of_the_format(sol: ph.Trajectory) -> None:
    sol.export("run.mat")
    found = loadmat("run.mat", simplify_cells=True)
    by_hand = matrices_of("run.mat")
    for name in ("quaternion", "matrix", "momentum", "omega", "spatial_momentum", "inertia"):
        np.testing.assert_array_equal(found[name], getattr(sol, name))
        np.testing.assert_array_equal(by_hand[name], getattr(sol, name))
    np.testing.assert_array_equal(by_hand["t"], sol.t[:, None])
    assert found["about"]["method"] == "imidm"
    assert "scalar first" in found["about"]["conventions"]
    assert found["units"]["momentum"] == "M L^2 T^-1"


def test_matlab_of_ensembles(many: ph.Ensemble) -> None:
    many.export("crowd.mat")
    found = loadmat("crowd.mat", simplify_cells=True)
    for name in ("quaternion", "momentum", "omega", "energy", "moments", "failed"):
        np.testing.assert_array_equal(found[name], getattr(many, name))


# --- places -----------------------------------------------------------------------------------------


def test_nothing_is_overwritten_silently(sol: ph.Trajectory) -> None:
    Path("run.csv").write_text("mine")
    with pytest.raises(ph.InputError, match=r"^run.csv exists; choose another name or give overwrite=True"):
        sol.export("run.csv")
    assert Path("run.csv").read_text() == "mine"
    sol.export("run.csv", overwrite=True)
    assert len(pandas.read_csv("run.csv")) == len(sol)


def test_no_half_written_file_remains(sol: ph.Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(result: Any, euler: Any) -> Any:
        yield from [table._of_trajectory(result, euler)]
        raise OSError(28, "No space left on device")

    Path("run.csv").write_text("mine")
    monkeypatch.setattr(table, "blocks_of", broken)
    with pytest.raises(ph.InputError, match=r"^run.csv cannot be written: No space left on device"):
        sol.export("run.csv", overwrite=True)
    assert [path.name for path in Path().iterdir()] == ["run.csv"]
    assert Path("run.csv").read_text() == "mine"


def test_files_beside_the_main_one_are_checked_too() -> None:
    Path("a.tsc").write_text("mine")

    def make_both() -> None:
        with placed("a.bc") as place:
            place.file.write_text("new")
            place.beside("a.tsc").write_text("new")

    with pytest.raises(ph.InputError, match=r"^a.tsc exists"):
        make_both()
    assert [path.name for path in Path().iterdir()] == ["a.tsc"]
    assert Path("a.tsc").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("run.xls", {}, "the name of the new file must end in one of .zarr, .nc, .csv, .parquet, .arrow"),
        ("run.csv", {"to": "excel"}, "the format must be one of csv, parquet, arrow"),
        ("run.csv", {"decimals": 3}, "the format csv has no option 'decimals'; its options are comments, euler"),
        ("run.mat", {"decimals": 3}, "the format mat has no option 'decimals'; its options are euler"),
        (
            "run.csv",
            {"euler": "ZZX"},
            "euler must be three axes, such as ZYX: upper case (axes of the body, intrinsic)",
        ),
        ("run.csv", {"euler": 3}, "euler must be three axes"),
        ("run.mat", {"euler": "zxX"}, "euler must be three axes"),
        ("run.nc", {"euler": "ZYX"}, "files of this library, .zarr and .nc, hold the quaternion only"),
        ("run.aem", {"epoch": "2029-04-13T21:46:00", "euler": "ZYX"}, "the format aem has no option 'euler'"),
        ("none/run.csv", {}, "the folder none does not exist; create it first"),
    ],
)
def test_mistakes(sol: ph.Trajectory, name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ph.InputError) as caught:
        sol.export(name, **options)
    assert str(caught.value).startswith(message)
    assert list(Path().iterdir()) == []


def test_own_files_by_suffix_and_others_by_name(sol: ph.Trajectory) -> None:
    assert len(ph.load(sol.export("run.nc"))) == len(sol)
    assert len(pandas.read_csv(sol.export("table.txt", to="csv"))) == len(sol)


def test_a_missing_package_is_named(sol: ph.Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(ph.InputError, match=r"need pyarrow, which is not installed: pip install 'polhode\[arrow\]'"):
        sol.export("run.parquet")
    assert list(Path().iterdir()) == []


def test_a_package_that_lacks_another_is_named(sol: ph.Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(module: str) -> None:
        raise ModuleNotFoundError(f"{module} needs numcodecs", name="numcodecs")

    monkeypatch.setattr("polhode._extras.importlib", types.SimpleNamespace(import_module=lacking))
    with pytest.raises(ph.InputError, match=r"need zarr, which cannot be imported \(.*numcodecs.*polhode\[files\]"):
        sol.save("run.zarr")


def test_every_format_can_be_imported() -> None:
    for one in formats.FORMATS.values():
        assert callable(one.write)


@pytest.mark.parametrize("suffix", [one.suffix for one in formats.FORMATS.values()])
def test_one_state_and_none(sol: ph.Trajectory, suffix: str) -> None:
    """The last state alone is a file in every format; without states, there are only tables and arrays."""
    epoch = {"epoch": "2029-04-13T21:46:00"} if suffix in (".aem", ".bc") else {}
    atom = {"points": [[0, 0, 1.0]], "symbols": "C", "box": 9.0} if suffix in (".xyz", ".gsd") else {}
    sol.last().export(f"one{suffix}", **epoch, **atom)
    assert Path(f"one{suffix}").stat().st_size
    none = ph.Trajectory(selected(sol, slice(0)), sol.info)
    if suffix in (".csv", ".parquet", ".arrow", ".mat"):
        none.export(f"none{suffix}")
    else:
        with pytest.raises(ph.InputError, match="the trajectory has no states"):
            none.export(f"none{suffix}", **epoch, **atom)
    if suffix == ".csv":
        assert Path("none.csv").read_text() == ",".join(COLUMNS) + "\n"


# --- Euler angles -----------------------------------------------------------------------------------


def angles_of(quaternion: np.ndarray, sequence: str) -> np.ndarray:
    return Rotation.from_quat(quaternion, scalar_first=True).as_euler(sequence, degrees=True)


def euler_columns(sequence: str) -> list[str]:
    return [f"euler_deg_{sequence}_{i}" for i in (1, 2, 3)]


@pytest.mark.parametrize("sequence", ["ZYX", "ZXZ", "xyz", "zyz"])
def test_tables_have_the_euler_angles_of_scipy(sol: ph.Trajectory, sequence: str) -> None:
    wanted, names = angles_of(sol.quaternion, sequence), euler_columns(sequence)
    sol.export("run.csv", euler=sequence)
    sol.export("run.parquet", euler=sequence)
    sol.export("run.arrow", euler=sequence)
    found = pandas.read_csv("run.csv"), pandas.read_parquet("run.parquet"), pyarrow.feather.read_feather("run.arrow")
    for one in (*found, sol.to_dataframe(euler=sequence)):
        assert list(one.columns) == [*COLUMNS, *names]
        assert np.array_equal(one[names], wanted)
        back = Rotation.from_euler(sequence, one[names], degrees=True)
        assert np.abs(back.as_matrix() - sol.matrix).max() < 1e-14
    sol.export("run.mat", euler=sequence)
    assert np.array_equal(loadmat("run.mat")[f"euler_deg_{sequence}"], wanted)
    assert loadmat("run.mat", simplify_cells=True)["units"][f"euler_deg_{sequence}"] == "degree"
    assert np.array_equal(sol.to_xarray(euler=sequence)[f"euler_deg_{sequence}"], wanted)


def test_files_say_about_which_axes_the_angles_are(sol: ph.Trajectory) -> None:
    sol.export("run.csv", euler="ZYX", comments=True)
    said = "Euler angle 1 of ZYX, body to space, about axes that turn with the body (intrinsic) [degree]"
    assert f"# euler_deg_ZYX_1: {said}" in Path("run.csv").read_text().splitlines()
    sol.export("run.parquet", euler="xyz")
    about = pyarrow.parquet.read_schema("run.parquet").field("euler_deg_xyz_3").metadata
    assert about[b"long_name"].endswith(b"about axes fixed in space (extrinsic)")
    assert about[b"units"] == b"degree"


def test_ensembles_have_euler_angles(many: ph.Ensemble) -> None:
    wanted = angles_of(many.quaternion.reshape(-1, 4), "ZYX").reshape(*many.quaternion.shape[:2], 3)
    many.export("crowd.csv", euler="ZYX")
    rows = pandas.read_csv("crowd.csv")[euler_columns("ZYX")].to_numpy()
    assert np.array_equal(rows.reshape(5, -1, 3), wanted.transpose(1, 0, 2))
    assert np.array_equal(many.to_xarray(euler="ZYX")["euler_deg_ZYX"], wanted)
    many.export("crowd.mat", euler="ZYX")
    assert np.array_equal(loadmat("crowd.mat")["euler_deg_ZYX"], wanted)


def test_states_that_are_missing_have_no_angles() -> None:
    q = np.array([[1.0, 0, 0, 0], [np.nan] * 4, [0.6, 0.8, 0, 0]])
    found = angles.degrees(q, "ZYX")
    assert np.isnan(found[1]).all()
    assert np.array_equal(found[[0, 2]], angles_of(q[[0, 2]], "ZYX"))


@pytest.mark.filterwarnings("error")
def test_gimbal_lock_gives_angles_of_the_right_attitude() -> None:
    """The third angle is zero there, and SciPy's warning does not reach the user of a table."""
    q = Rotation.from_euler("ZYX", [[20, 90, 30], [0, 0, 0]], degrees=True).as_quat(scalar_first=True)
    found = angles.degrees(q, "ZYX")
    assert found[0, 2] == 0
    turned = Rotation.from_euler("ZYX", found, degrees=True)
    assert (turned * Rotation.from_quat(q, scalar_first=True).inv()).magnitude().max() < 1e-7  # of SciPy, at 90 degrees


# --- the command line -------------------------------------------------------------------------------


def typed(*words: str) -> Any:
    return CliRunner().invoke(cli.app, ["export", *words])


def test_formats_by_command(sol: ph.Trajectory, many: ph.Ensemble) -> None:
    sol.save("run.nc")
    done = typed("run.nc", "table.csv")
    assert done.output == "written       table.csv: imidm, 100 steps, finished\n"
    assert_table(pandas.read_csv("table.csv"), sol)
    assert typed("run.nc", "--to", "parquet").exit_code == 0
    assert_table(pandas.read_parquet("run.parquet"), sol)
    assert typed("run.nc", "angles.csv", "--euler", "ZYX").exit_code == 0
    assert np.array_equal(pandas.read_csv("angles.csv")[euler_columns("ZYX")], sol.euler_deg("ZYX"))
    epoch = ("--option", "epoch=2029-04-13T21:46:00")
    assert typed("run.nc", "run.aem", *epoch, "--option", "omega=true").exit_code == 0
    np.testing.assert_allclose(ph.formats.read_aem("run.aem")[0].omega, sol.omega, rtol=1e-15)
    many.save("crowd.zarr")
    assert typed("crowd.zarr", "one.aem", *epoch, "--body", "3").exit_code == 0
    np.testing.assert_allclose(ph.formats.read_aem("one.aem")[0].quaternion, many[3].quaternion, atol=1e-15)
    lattice = ("--option", "points=[[0, 0, 1.5]]", "--option", "symbols=C", "--option", "box=[9, 9, 9]")
    assert typed("run.nc", "run.xyz", *lattice).exit_code == 0
    assert Path("run.xyz").read_text("ascii").startswith('1\nLattice="9.0 0.0 0.0 ')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run.nc"], "give the name of the new file, or --to with one of csv, parquet"),
        (["run.nc", "a.csv", "--to", "excel"], "the format must be one of csv, parquet"),
        (["run.nc", "a.aem"], "the format aem needs the option epoch"),
        (["run.nc", "a.csv", "--option", "comments"], "--option must be NAME=VALUE; got 'comments'"),
        (["run.nc", "a.csv", "--body", "1"], "--body is for ensembles; the file holds one body"),
        (["run.nc", "a.csv", "--euler", "XXZ"], "euler must be three axes, such as ZYX"),
        (["none.nc", "a.csv"], "there is no file none.nc"),
    ],
)
def test_mistakes_by_command(sol: ph.Trajectory, words: list[str], said: str) -> None:
    sol.save("run.nc")
    done = typed(*words)
    assert done.exit_code == 2
    assert done.output.startswith(f"polhode: {said}")
    assert [path.name for path in Path().iterdir()] == ["run.nc"]


@pytest.mark.parametrize("name", ["a.glb", "a.gif", "a.MP4"])
def test_films_and_scenes_are_written_by_animate(sol: ph.Trajectory, name: str) -> None:
    with pytest.raises(ph.InputError, match=rf"written by animate: sol.animate\('{name}'\)"):
        sol.export(name)

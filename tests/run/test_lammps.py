"""validation/lammps.py: what it writes and reads, and what it says without LAMMPS."""

import numpy as np
import pytest
from validation import lammps
from validation.simulators.water import FS, WATER, Run, lattice

LOG = """
run 0
   Step         TotEng         Temp
         0  -1.0           300
Loop time of 1
run 20 pre no
   Step         TotEng         Temp
         0  -1.0           300
        10  -1.5           301
        20  -1.25          302
Loop time of 2
"""


def test_it_says_that_lammps_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lammps, "lammps_or_none", lambda: None)
    monkeypatch.setattr("sys.argv", ["lammps"])
    lammps.main()
    assert capsys.readouterr().out.strip() == lammps.MISSING


def test_the_last_table_of_a_log_is_read() -> None:
    assert lammps._thermo(LOG).tolist() == [[0, -1.0, 300], [10, -1.5, 301], [20, -1.25, 302]]


def test_atoms_are_written_with_their_velocities(tmp_path) -> None:
    """The momenta of the atoms in the file are those of the molecules."""
    state, box = lattice(8)
    lammps.write_data(tmp_path / "water.data", state, box)
    text = (tmp_path / "water.data").read_text()
    first, second = text.split("Atoms # full")[1].split("Velocities")
    atoms, speeds = (
        np.array([line.split() for line in part.splitlines() if line], dtype=float) for part in (first, second)
    )
    r = atoms[:, 4:].reshape(-1, 3, 3)
    x, _ = WATER.fit(r)
    np.testing.assert_allclose(x, state.x, atol=1e-12)
    momenta = WATER.masses[:, None] * speeds[:, 1:].reshape(-1, 3, 3) / FS
    p, pi = WATER.gather(momenta, state.q)
    np.testing.assert_allclose(p, state.p, atol=1e-11)
    np.testing.assert_allclose(pi, state.pi, atol=1e-11)


def test_a_drift_is_found_within_its_error() -> None:
    """A line of 5 K/ns for each degree of freedom, with noise, over 100 ps."""
    number, rng = 64, np.random.default_rng(1)
    t = np.linspace(0, 100, 1000)
    unit = (6 * number - 3) * 0.0019872067 / 2
    run = Run(t, unit * (5e-3 * t + 0.1 * rng.normal(size=t.shape)), np.zeros((1000, 2)), 0.0)
    drift, error = run.drift(number)
    assert abs(drift - 5) < 4 * error
    assert 0.01 < error < 0.5
    assert run.fluctuation(number) == pytest.approx(0.1, rel=0.1)

"""Ensembles to a tolerance in fields that jump with the state: every body is run by itself, with located jumps."""

import numpy as np
import pytest
from tests.run.test_saltation import relays

import polhode as ph

BODIES = [ph.Body([1.0, 2.0, 2.5]), ph.Body([[1.0, 0.1, 0.2], [0.1, 2.0, 0.0], [0.2, 0.0, 2.4]])]
OMEGA = np.array([[0.3, 1.9, 1.4], [0.2, -1.5, 1.7]])
PARAMS = {"k": np.array([0.3, 0.2]), "width": np.array([0.25, 0.3]), "push": 0.2}


def many(**how):
    return ph.ensemble(
        BODIES, omega=OMEGA, field=relays, params=PARAMS, euler=("ZXZ", [0.3, 0.4, 0.5]), progress=False, **how
    )


def one(i, **how):
    values = {name: float(np.broadcast_to(value, 2)[i]) for name, value in PARAMS.items()}
    problem = ph.Problem(BODIES[i], relays(**values), omega=OMEGA[i], euler=("ZXZ", [0.3, 0.4, 0.5]))
    return ph.solve(problem, **how)


@pytest.mark.parametrize("end", [3.5, -3.0])
@pytest.mark.parametrize("how", [{"tol": 1e-9}, {"step_tol": 1e-9}], ids=["tol", "step_tol"])
def test_every_body_is_that_of_solve(end, how):
    times = [end / 3, 0.7 * end]
    found = many(t_end=end, times=times, **how)
    assert (found.failed == -1).all()
    for i in range(2):
        sol = one(i, t_end=end, **how)
        assert abs(found.momentum[:, i] - sol.at([0.0, *times, end]).momentum).max() < 1e-13
        assert abs(found.quaternion[:, i] - sol.at([0.0, *times, end]).quaternion).max() < 1e-13
        assert abs(found.steps[i] - sol.accepted) <= 1  # the momenta differ by round-off
    if "tol" in how:
        assert (found.error_estimate <= 1e-9).all()


def test_events_statistics_and_longest_steps():
    crossing = ph.event(lambda R: R[0, 0] - 0.25)
    found = many(t_end=3.5, tol=1e-9, times=[1.0, 2.0], statistics="energy", events=[crossing], max_step=0.05)
    assert (found.steps >= 70).all()
    assert abs(found.events[0][0].t - one(0, t_end=3.5, tol=1e-11, events=[crossing]).events[0].t).max() < 1e-8
    energies = one(0, t_end=3.5, tol=1e-11).at([0.0, 1.0, 2.0, 3.5]).energy
    assert found.statistics["energy"].mean[0] == pytest.approx(energies.mean(), abs=1e-8)


def test_a_body_that_fails_is_told():
    @ph.torque
    def ending(t, omega, last):
        return ph.where(omega[0] > 0.2, -0.1, 0.1) * ph.math.sqrt(last - t), 0.0, 0.0

    problem = ph.Problem(BODIES[0], ending(9.0), omega=OMEGA[0])
    with pytest.warns(ph.ResultWarning, match=r"1 of 2 bodies failed.*body 0 in step \d+: a jump holds the motion"):
        found = ph.ensemble(problem, omega=OMEGA, params={"last": [0.5, 9.0]}, step_tol=1e-6, times=[0.7, 1.0])
    assert found.failed[0] > 0
    assert found.failed[1] == -1
    assert np.isnan(found.momentum[1, 0]).all()
    assert np.isfinite(found.momentum[-1]).all()

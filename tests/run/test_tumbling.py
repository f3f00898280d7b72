"""The periods of tumbling bodies: against the exact motion, closed forms, and published asteroids."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph

BODIES = [[1.0, 2.0, 3.0], [0.61, 1.0, 0.965], [3.22, 3.09, 1.0], [1.0, 1.05, 2.0]]


def azimuth(sol, axis):
    """Angle of a body axis about the spatial momentum, whole turns included."""
    L = sol.spatial_momentum[0] / np.linalg.norm(sol.spatial_momentum[0])
    first = np.cross(L, [0.3, 0.5, 0.8])
    first /= np.linalg.norm(first)
    e = sol.matrix[:, :, axis]
    return np.unwrap(np.arctan2(e @ np.cross(L, first), e @ first))


@pytest.mark.parametrize("moments", BODIES)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("mode", ["SAM", "LAM"])
def test_periods_of_the_exact_motion(moments, share, mode):
    low, middle, high = np.sort(1 / np.array(moments))
    twice = low + share * (middle - low) if mode == "SAM" else middle + share * (high - middle)
    found = ph.tumbling(ph.Body(moments), energy=twice * 1.3**2 / 2, momentum=1.3)
    assert found.mode == mode
    problem = ph.Problem(ph.Body(moments), momentum=found.start)
    assert problem.energy() == pytest.approx(found.energy, rel=1e-14)
    assert np.linalg.norm(problem.momentum) == pytest.approx(1.3, rel=1e-14)
    sol = ph.exact(problem, np.linspace(0, found.P_psi, 2001))
    assert np.allclose(sol.momentum[-1], sol.momentum[0], rtol=0, atol=1e-12)
    assert not np.allclose(sol.momentum[1000], sol.momentum[0], rtol=0, atol=0.01)  # nor half of it
    angle = azimuth(sol, int(np.argmin(moments)))
    assert 2 * math.pi * found.P_psi / (angle[-1] - angle[0]) == pytest.approx(found.P_phi, rel=1e-12)


@pytest.mark.parametrize("moments", BODIES)
@pytest.mark.parametrize("mode", ["SAM", "LAM"])
@pytest.mark.parametrize("share", [1e-6, 0.3, 0.9, 1 - 1e-6])
def test_the_motion_follows_from_its_periods(moments, mode, share):
    low, middle, high = np.sort(1 / np.array(moments))
    twice = low + share * (middle - low) if mode == "SAM" else high - share * (high - middle)
    goal = ph.tumbling(ph.Body(moments), energy=twice / 2, momentum=1.0)
    found = ph.tumbling(ph.Body(moments), P_psi=goal.P_psi, P_phi=goal.P_phi, mode=mode)
    assert found.P_phi == pytest.approx(goal.P_phi, rel=1e-12)
    assert found.momentum == pytest.approx(1.0, rel=1e-8)
    assert found.energy == pytest.approx(goal.energy, rel=1e-9)


@pytest.mark.parametrize("moments", [[1.0, 2.0, 2.0], [0.3, 1.0, 1.0]])
def test_a_symmetric_long_body(moments):
    """phi' = L/I, psi' = L cos theta (1/I_3 - 1/I)."""
    along, across = moments[0], moments[1]
    theta, L = 0.7, 1.5
    m = L * np.array([math.cos(theta), math.sin(theta), 0.0])
    energy = (m[0] ** 2 / along + m[1] ** 2 / across) / 2
    found = ph.tumbling(ph.Body(moments), energy=energy, momentum=L)
    assert found.mode == "LAM"
    assert found.P_phi == pytest.approx(2 * math.pi * across / L, rel=1e-13)
    assert found.P_psi == pytest.approx(2 * math.pi / (m[0] * (1 / along - 1 / across)), rel=1e-13)
    again = ph.tumbling(ph.Body(moments), P_psi=found.P_psi, P_phi=found.P_phi)
    assert again.energy == pytest.approx(energy, rel=1e-12)


@pytest.mark.parametrize("moments", [*BODIES, [0.2, 1.0, 1.1], [1.0, 1.9, 2.8]])
def test_the_ratio_of_the_periods_grows_towards_the_separatrix(moments):
    low, middle, high = np.sort(1 / np.array(moments))
    shares = np.linspace(0.01, 0.999, 40)
    for end in (low, high):
        ratios = []
        for share in shares:
            found = ph.tumbling(ph.Body(moments), energy=(end + share * (middle - end)) / 2, momentum=1.0)
            ratios.append(found.P_psi / found.P_phi)
        assert (np.diff(ratios) > 0).all()


@pytest.mark.parametrize("momentum", [2.0, 0.2, 0.7])
def test_the_separatrix_itself(momentum):
    """2 E = L^2/I2: the body ends as a spin about the intermediate axis, and never comes back."""
    motion = ph.tumbling(BODY, energy=momentum**2 / (2 * sorted(BODY.moments)[1]), momentum=momentum)
    assert motion.P_psi == np.inf
    assert motion.P_phi == pytest.approx(2 * np.pi * sorted(BODY.moments)[1] / momentum, rel=1e-15)
    start = motion.start @ BODY.axes / momentum
    assert (start**2 / BODY.moments).sum() == pytest.approx(1 / sorted(BODY.moments)[1], rel=1e-15)


def test_a_body_in_any_axes():
    """The start is in the axes of the body, which need not be the principal ones."""
    tilted = ph.Body([1.0, 2.0, 3.0]).turned(Rotation.from_rotvec([0.3, -0.7, 0.4]))
    found, goal = (ph.tumbling(body, energy=0.35, momentum=1.2) for body in (tilted, ph.Body([1.0, 2.0, 3.0])))
    assert found.P_psi == pytest.approx(goal.P_psi, rel=1e-12)
    assert found.P_phi == pytest.approx(goal.P_phi, rel=1e-12)
    problem = ph.Problem(tilted, momentum=found.start)
    assert problem.energy() == pytest.approx(0.35, rel=1e-13)
    assert np.linalg.norm(found.start) == pytest.approx(1.2, rel=1e-14)


def test_apophis():
    """Periods of Pravec et al., Icarus 233 (2014) 48: 263 h and 27.38 h, SAM, E/E0 = 1.024 with an error of 0.013.

    The moments 0.64 : 0.97 : 1 are those of Lee et al., A&A 661 (2022) L3, who have 264.178 h and 27.38547 h.
    """
    body = ph.Body([0.64, 0.97, 1.0])
    for P_psi, P_phi in ((263.0, 27.38), (264.178, 27.38547)):
        found = ph.tumbling(body, P_psi=P_psi, P_phi=P_phi, mode="SAM")
        assert abs(found.excitation - 1.024) < 0.013


def test_toutatis():
    """5.41 d about the long axis, 7.35 d its mean precession, LAM (Hudson and Ostro, Science 270 (1995) 84).

    With the moments of docs/gallery/toutatis.py no motion in the other mode has these periods.
    """
    body = ph.Body([3.22, 3.09, 1.0])
    found = ph.tumbling(body, P_psi=5.41, P_phi=7.35)
    assert found.mode == "LAM"
    sol = ph.exact(ph.Problem(body, momentum=found.start), np.linspace(0, 7.35 * 200, 20001))
    angle = azimuth(sol, 2)
    assert (angle[-1] - angle[0]) / (2 * math.pi) == pytest.approx(200, abs=0.05)


BODY = ph.Body([1.0, 2.0, 3.0])
MISTAKES = [
    (lambda: ph.tumbling([1, 2, 3], energy=1, momentum=1), "the first argument must be a ph.Body; got list"),
    (lambda: ph.tumbling(ph.Body([2, 2, 2]), energy=1, momentum=1), "three equal moments does not tumble"),
    (lambda: ph.tumbling(BODY, energy=1), "give energy and momentum, or P_psi and P_phi; got energy"),
    (lambda: ph.tumbling(BODY), "got none of them"),
    (lambda: ph.tumbling(BODY, energy=1, momentum=1, P_psi=1), "got energy, momentum, P_psi"),
    (lambda: ph.tumbling(BODY, energy=0.6, momentum=1), "the energy lies between 0.1666666667"),
    (lambda: ph.tumbling(BODY, energy=-1, momentum=1), "energy must be positive; got -1"),
    (lambda: ph.tumbling(BODY, P_psi=math.nan, P_phi=1), "P_psi must be finite; got nan"),
    (lambda: ph.tumbling(BODY, P_psi=30, P_phi=10), "both modes have motions with these periods"),
    (lambda: ph.tumbling(BODY, P_psi=1, P_phi=10), "their ratio is 0.1, and must be at least 1 in the SAM"),
    (lambda: ph.tumbling(BODY, P_psi=1e9, P_phi=1, mode="SAM"), "too close to the separatrix"),
    (lambda: ph.tumbling(BODY, P_psi=9, P_phi=10, mode="XAM"), "mode must be 'SAM' or 'LAM'; got 'XAM'"),
    (lambda: ph.tumbling(BODY, energy=0.2, momentum=1, mode="SAM"), "mode follows from energy and momentum"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_explained(use, words):
    with pytest.raises(ph.InputError) as caught:
        use()
    assert words in str(caught.value)

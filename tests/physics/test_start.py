"""The ways to give the initial state of a problem, and the same quantities of its solution."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph

BODY = ph.Body([[3.0, 0.5, 0.0], [0.5, 2.5, 0.2], [0.0, 0.2, 2.0]])
ANGLES = [0.3, 0.8, -1.1]


def test_spatial_omega_is_the_angular_velocity_in_space():
    turn = Rotation.from_rotvec([0.4, -0.3, 0.9])
    start = ph.Problem(BODY, attitude=turn, spatial_omega=[0.1, 2.0, 0.3])
    np.testing.assert_allclose(start.omega, turn.inv().apply([0.1, 2.0, 0.3]), rtol=1e-14)
    np.testing.assert_allclose(start.spatial_omega, [0.1, 2.0, 0.3], rtol=1e-14)
    np.testing.assert_allclose(start.spatial_momentum, turn.apply(start.momentum), rtol=1e-14)


def test_spatial_omega_of_a_solution_turns_the_body():
    """R' = hat(spatial_omega) R, by central differences."""
    sol = ph.exact(ph.Problem(BODY, omega=[0.1, 2.0, 0.3]), [0.5 - 1e-5, 0.5, 0.5 + 1e-5])
    x, y, z = sol.spatial_omega[1]
    hat = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    np.testing.assert_allclose((sol.matrix[2] - sol.matrix[0]) / 2e-5, hat @ sol.matrix[1], atol=1e-9)
    np.testing.assert_allclose(sol.spatial_omega[1], sol.matrix[1] @ sol.omega[1], rtol=1e-14)


@pytest.mark.parametrize("axes", ["ZXZ", "zxz", "XYZ", "zyx", "YXY"])
def test_euler_angles_go_in_and_come_out(axes):
    expected = Rotation.from_euler(axes, ANGLES)
    start = ph.Problem(BODY, euler=(axes, ANGLES), omega=[1.0, 0.0, 0.0])
    degrees = ph.Problem(BODY, euler_deg=[axes, np.degrees(ANGLES)], omega=[1.0, 0.0, 0.0])
    for found in (start, degrees):
        assert (Rotation.from_quat(found.quaternion, scalar_first=True).inv() * expected).magnitude() < 1e-15
    sol = ph.exact(start, [0.0])
    np.testing.assert_allclose(sol.euler_deg(axes), sol.euler(axes, degrees=True), rtol=0)
    np.testing.assert_allclose(np.radians(sol.euler_deg(axes)), expected.as_euler(axes)[None], atol=1e-14)


def test_capitals_turn_with_the_body():
    """R = R_z(a) R_x(b) R_z(c) for "ZXZ"."""
    turns = [Rotation.from_rotvec(angle * np.eye(3)[i]) for i, angle in zip((2, 0, 2), ANGLES, strict=True)]
    start = ph.Problem(BODY, euler=("ZXZ", ANGLES), omega=[1.0, 0.0, 0.0])
    found = Rotation.from_quat(start.quaternion, scalar_first=True)
    assert (found.inv() * turns[0] * turns[1] * turns[2]).magnitude() < 1e-15


MISTAKES = {
    "no sequence": ({"euler": ANGLES}, r"^euler must be three axes and three angles, .*; got \[0.3, 0.8, -1.1\]$"),
    "mixed": ({"euler": ("ZxZ", ANGLES)}, r"upper case .* or lower case .*; got 'ZxZ'$"),
    "repeated": ({"euler_deg": ("ZZX", ANGLES)}, r"^the sequence of euler_deg .* no two alike in a row; got 'ZZX'$"),
    "unknown": ({"euler": ("abc", ANGLES)}, r"got 'abc'$"),
    "two axes": ({"euler": ("ZX", ANGLES)}, r"got 'ZX'$"),
    "two angles": ({"euler": ("ZXZ", [0.1, 0.2])}, r"^the angles of euler must be three numbers; got shape \(2,\)$"),
    "nan": ({"euler": ("ZXZ", [0.1, 0.2, np.nan])}, r"^the angles of euler must be finite"),
    "two ways": ({"euler": ("ZXZ", ANGLES), "attitude": np.eye(3)},
                 r"^give at most one of attitude, euler, euler_deg; got attitude and euler$"),
    "two motions": ({"spatial_omega": [1, 0, 0]}, r"^give exactly one of omega, momentum, spatial_omega, "
                    r"spatial_momentum; got omega and spatial_omega$"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_what_is_no_start_is_refused(case):
    given, said = MISTAKES[case]
    with pytest.raises(ph.InputError, match=said):
        ph.Problem(BODY, omega=[1.0, 0.0, 0.0], **given)

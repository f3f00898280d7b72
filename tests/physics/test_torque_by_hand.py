"""A torque written down for a potential is compared with the exact one."""

import pytest

import polhode as ph

BODY = ph.Body([0.6, 0.8, 1.0])


def of_gravity(R, mgl):
    return (mgl * R[2][1], -mgl * R[2][0], 0.0)


@ph.potential(torque=of_gravity)
def gravity(R, mgl):
    return mgl * R[2][2]


@ph.torque(frame="space")
def in_space(R, mgl):
    """The same torque in the space frame: mgl e3 x R e3, reversed."""
    return (-mgl * R[1][2], mgl * R[0][2], 0.0)


def start(field):
    return ph.Problem(BODY, field, momentum=[1.8, 0.4, -0.9])


def test_the_right_torque_changes_nothing():
    """It is checked, not used: the run is that of the potential alone, to the last bit."""
    plain = ph.potential(gravity.function)
    in_space_frame = ph.potential(torque=in_space)(gravity.function)
    runs = [ph.solve(start(f(2.0)), "strang(symrot)", dt=0.1, steps=20) for f in (gravity, plain, in_space_frame)]
    assert (runs[0].quaternion == runs[1].quaternion).all()
    assert (runs[0].quaternion == runs[2].quaternion).all()


@pytest.mark.parametrize(
    ("torque", "component"),
    [
        (lambda R, mgl: (-mgl * R[2][1], mgl * R[2][0], 0.0), "[12]"),  # the sign
        (lambda R, mgl: (mgl * R[1][2], -mgl * R[0][2], 0.0), "[12]"),  # the transpose
        (lambda R, mgl: (mgl * R[2][1], -mgl * R[2][0], 1e-12 * mgl), "3"),  # small, and beyond round-off
        (lambda R, mgl: (mgl * R[2][1], -1.0000001 * mgl * R[2][0], 0 * mgl), "2"),
    ],
)
def test_a_wrong_torque_is_an_error_that_says_where_and_how_large(torque, component):
    field = ph.potential(torque=torque)(gravity.function)
    message = rf"is not the torque of the potential gravity: component {component} is .* instead of .*difference"
    with pytest.raises(ph.InputError, match=message):
        start(field(2.0))


def test_a_torque_that_is_wrong_elsewhere_only_is_found():
    """At the start, R = 1, both are zero; the other attitudes tell."""

    @ph.potential(torque=lambda R, mgl: (0.0, 0.0, 0.0 * mgl))
    def hidden(R, mgl):
        return mgl * R[2][2]

    with pytest.raises(ph.InputError, match=r"component \d is 0 instead of .* at the attitude"):
        start(hidden(1.0))


def test_a_torque_right_only_for_rotations_is_right():
    """R3 . R3 = 1 may be used."""

    @ph.potential(torque=lambda R: (R[2][1] * sum(x * x for x in R[2]), -R[2][0], 0.0))
    def field(R):
        return R[2][2]

    start(field())


def test_singular_attitudes_are_left_out():
    def slope(R, a):
        return 1 / (2 * (a + R[2][2]) ** 0.5)

    @ph.potential(torque=lambda R, a: (slope(R, a) * R[2][1], -slope(R, a) * R[2][0], 0.0))
    def root(R, a):
        return (a + R[2][2]) ** 0.5

    start(root(0.1))


@pytest.mark.parametrize("torque", [lambda t, R, mgl: (0.0, 0.0, 0.0), lambda R, k: (0.0, 0.0, k), gravity])
def test_it_is_a_torque_of_attitude_and_the_same_parameters(torque):
    with pytest.raises(
        ph.InputError, match=r"must be a function of R, mgl that returns three numbers; (it takes|got a)"
    ):
        ph.potential(torque=torque)(gravity.function)


def test_its_own_mistakes_are_told():
    field = ph.potential(torque=lambda R, mgl: (0.0, mgl))(gravity.function)
    with pytest.raises(ph.InputError, match="must return three numbers; it returned 2"):
        start(field(1.0))

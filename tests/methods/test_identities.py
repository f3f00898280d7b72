"""What the papers prove about their methods, at round-off of 50 digits: closed forms, adjoints, conjugacies."""

import mpmath
import pytest

import polhode as ph
from polhode.analysis.checks import EXACT, VISIBLE, Setting, distance
from polhode.kernels.so3 import (
    add,
    along,
    cay,
    conj,
    cross,
    dexpinv,
    exp,
    mul,
    negative,
    rotate,
    scale,
    times,
    unrotate,
)
from polhode.numbers.multiprecision import number

H = 2**-3
KINDS = ("free", "potential", "attitude", "velocity")


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(55):
        yield


def stepped(name, kind, h=H, t=None, y=None):
    return Setting(ph.methods[name], kind).step(h, t, y)


def start(kind):
    return Setting(ph.methods["fe"], kind)


def omega(m, s):
    return times(s.system[1], m)


def gyro(m, s):
    return cross(m, omega(m, s))


def torque(s, t, q, m):
    return s.torque(t, q, m, s.system)


# --- closed forms: the printed equations hold for what the compositions compute ---------------------


@pytest.mark.parametrize("kind", KINDS)
def test_trap_is_the_printed_algorithm(kind):
    s, h = start(kind), number(H)
    (q0, m0), (q1, m1) = s.y, stepped("trap", kind)
    rate0 = add(gyro(m0, s), torque(s, s.t, q0, m0))
    rate1 = add(gyro(m1, s), torque(s, s.t + h, q1, m1))
    turned = mul(q0, mul(exp(scale(h / 2, omega(m0, s))), exp(scale(h / 2, omega(m1, s)))))
    assert distance((q1, m1), (turned, along(along(m0, h / 2, rate0), h / 2, rate1))) < EXACT


@pytest.mark.parametrize("kind", KINDS)
def test_imid_is_the_printed_algorithm_at_the_corrected_time(kind):
    s, h = start(kind), number(H)
    (q0, m0), (q1, m1) = s.y, stepped("imid", kind)
    mean = scale(number(1) / 2, add(m0, m1))
    half = mul(q0, exp(scale(h / 2, omega(mean, s))))
    rate = add(gyro(mean, s), torque(s, s.t + h / 2, half, mean))
    assert distance((q1, m1), (mul(q0, exp(scale(h, omega(mean, s)))), along(m0, h, rate))) < EXACT


@pytest.mark.parametrize("kind", KINDS)
def test_trapm_is_the_printed_algorithm(kind):
    s, h = start(kind), number(H)
    (q0, m0), (q1, m1) = s.y, stepped("trapm", kind)
    turn = mul(exp(scale(h / 2, omega(m0, s))), exp(scale(h / 2, omega(m1, s))))
    pushed = unrotate(turn, along(m0, h / 2, torque(s, s.t, q0, m0)))
    ended = along(pushed, h / 2, torque(s, s.t + h, q1, m1))
    assert distance((q1, m1), (mul(q0, turn), ended)) < EXACT


@pytest.mark.parametrize("kind", KINDS)
def test_imidm_is_the_printed_algorithm_at_the_corrected_time(kind):
    s, h = start(kind), number(H)
    (q0, m0), (q1, m1) = s.y, stepped("imidm", kind)
    half_method = Setting(ph.methods["bem"], kind)
    middle = half_method.step(h / 2)[1]
    psi = scale(h, omega(middle, s))
    half = exp(scale(number(1) / 2, psi))
    force = torque(s, s.t + h / 2, mul(q0, half), middle)
    assert distance(((1,), middle), ((1,), along(unrotate(half, m0), h / 2, force))) < EXACT
    ended = along(unrotate(exp(psi), m0), h, unrotate(half, force))
    assert distance((q1, m1), (mul(q0, exp(psi)), ended)) < EXACT


@pytest.mark.parametrize("kind", KINDS)
def test_swc1_is_the_printed_algorithm(kind):
    s, h = start(kind), number(H)
    (q0, m0), (q1, m1) = s.y, stepped("swc1", kind)
    mean = scale(number(1) / 2, add(m0, m1))
    psi = scale(h, omega(mean, s))
    half = exp(scale(number(1) / 2, psi))
    force = torque(s, s.t + h / 2, mul(q0, half), mean)
    ended = along(unrotate(exp(psi), m0), h, unrotate(half, force))
    assert distance((q1, m1), (mul(q0, exp(psi)), ended)) < EXACT


@pytest.mark.parametrize("kind", KINDS)
def test_akw_is_the_printed_algorithm(kind):
    s, h = start(kind), number(H)
    (q0, m0), (q1, m1) = s.y, stepped("akw", kind)
    mean = scale(number(1) / 2, add(m0, m1))
    forces = add(torque(s, s.t, q0, m0), torque(s, s.t + h, q1, m1))
    ended = along(along(m0, h, gyro(mean, s)), h / 2, forces)
    assert distance((q1, m1), (mul(q0, cay(scale(h, omega(mean, s)))), ended)) < EXACT


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["bbtrap", "bbtrapwd"])
def test_bottasso_borri_are_the_printed_algorithms(name, kind):
    s, h = start(kind), number(H)
    (q0, m0), (q1, m1) = s.y, stepped(name, kind)
    turn = mul(conj(q0), q1)
    angle = 2 * mpmath.atan2(mpmath.sqrt(sum(x * x for x in turn[1:])), turn[0])
    psi = scale(angle / mpmath.sqrt(sum(x * x for x in turn[1:])), turn[1:])
    w1 = omega(m1, s) if name == "bbtrap" else dexpinv(negative(psi), omega(m1, s))
    assert distance((psi,), (scale(h / 2, add(omega(m0, s), w1)),)) < EXACT
    ended = along(unrotate(exp(psi), along(m0, h / 2, torque(s, s.t, q0, m0))), h / 2, torque(s, s.t + h, q1, m1))
    assert distance((m1,), (ended,)) < EXACT


def test_nmb_is_newmark_with_beta_0_and_gamma_half():
    s, h = start("attitude"), number(H)
    (q0, m0), (q1, m1) = s.y, stepped("nmb", "attitude")
    a0 = omega(add(gyro(m0, s), torque(s, s.t, q0, m0)), s)
    a1 = omega(add(gyro(m1, s), torque(s, s.t + h, q1, m1)), s)
    psi = along(scale(h, omega(m0, s)), h * h / 2, a0)
    assert distance((q1, omega(m1, s)), (mul(q0, exp(psi)), along(omega(m0, s), h / 2, add(a0, a1)))) < EXACT


# --- identities -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("imidm", "mkrk(midpoint)"),
        ("bbtrapwd", "mkrk(trapezoid)"),
        ("fem", "mkrk(euler)"),
        ("bem", "mkrk(backward_euler)"),
    ],
)
def test_krysl_methods_that_are_munthe_kaas_methods(one, other, kind):
    assert distance(stepped(one, kind), stepped(other, kind)) < EXACT


def test_trapm_is_not_the_munthe_kaas_trapezoid():
    assert distance(stepped("trapm", "free"), stepped("mkrk(trapezoid)", "free")) > VISIBLE


def test_bbtrap_is_simo_wong_when_free_only():
    assert distance(stepped("bbtrap", "free"), stepped("swc1", "free")) < EXACT
    assert distance(stepped("bbtrap", "attitude"), stepped("swc1", "attitude")) > VISIBLE


@pytest.mark.parametrize("name", ["liemid_e1", "liemid_e2"])
def test_explicit_midpoint_lie_is_the_implicit_one_when_free(name):
    assert distance(stepped(name, "free"), stepped("imidm", "free")) < EXACT


def test_alternating_midpoint_lie_is_two_half_steps_when_free():
    s = Setting(ph.methods["imidm"], "free")
    twice = s.step(H / 2, s.t + H / 2, s.step(H / 2))
    assert distance(stepped("liemid_ea", "free"), twice) < EXACT


# --- adjoint pairs and conjugate pairs --------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [("fe", "be", "velocity"), ("fem", "bem", "velocity"), ("liemid_e2", "liemid_e1", "attitude")],
)
def test_adjoint_pairs(one, other, kind):
    """A step forward with one and back with the other is the identity, in both orders."""
    for first, second in ((one, other), (other, one)):
        s = Setting(ph.methods[first], kind)
        back = stepped(second, kind, -number(H), s.t + H, s.step(H))
        assert distance(back, s.y) < EXACT


@pytest.mark.parametrize(("midpoint", "trapezoid", "forward"), [("imid", "trap", "fe"), ("imidm", "trapm", "fem")])
@pytest.mark.parametrize("kind", ["free", "velocity"])
def test_midpoint_and_trapezoid_are_conjugate_by_half_a_forward_step(midpoint, trapezoid, forward, kind):
    """Twenty trapezoidal steps, then half a forward Euler step = half a forward step, then twenty midpoint steps."""
    h = number(2) ** -5
    s = start(kind)
    y, t = s.y, s.t
    z = stepped(forward, kind, h / 2, t, y)
    for _ in range(20):
        y = stepped(trapezoid, kind, h, t, y)
        z = stepped(midpoint, kind, h, t + h / 2, z)
        t = t + h
    assert distance(stepped(forward, kind, h / 2, t, y), z) < EXACT


def test_imr_is_akw_when_free_and_asks_for_no_torque():
    assert distance(stepped("imr", "free"), stepped("akw", "free")) < EXACT


def test_momentum_of_akw_is_that_of_imid_when_free():
    assert distance(stepped("akw", "free")[1:], stepped("imid", "free")[1:]) < EXACT
    assert distance(stepped("akw", "free")[:1], stepped("imid", "free")[:1]) > VISIBLE


# --- what misprints would do ------------------------------------------------------------------------


def test_end_impulse_of_variant_1_is_in_the_end_frame():
    """S1 prints exp(-Psi)(Pi + h T1); the adjoint of variant 2 is exp(-Psi) Pi + h T1."""
    s, h = start("attitude"), number(H)
    q1, m1 = stepped("liemid_e1", "attitude")
    turn = mul(conj(s.y[0]), q1)
    force = torque(s, s.t + h, q1, m1)
    assert distance((m1,), (along(unrotate(turn, s.y[1]), h, force),)) < EXACT
    assert distance((m1,), (unrotate(turn, along(s.y[1], h, force)),)) > VISIBLE


def test_spatial_momentum_grows_by_the_impulse():
    s, h = start("attitude"), number(H)
    q1, m1 = stepped("liemid_e2", "attitude")
    pushed = rotate(s.y[0], along(s.y[1], h, torque(s, s.t, *s.y)))
    assert distance((rotate(q1, m1),), (pushed,)) < EXACT

"""Names of the literature: each is the map that its paper prints, to round-off of 50 digits."""

from collections.abc import Mapping

import mpmath
import pytest
from typer.testing import CliRunner

import polhode as ph
from polhode import cli
from polhode.analysis.checks import Setting, distance
from polhode.kernels.so3 import add, along, exp, matrix, mul, scale, times, unrotate
from polhode.methods import citations
from polhode.numbers.multiprecision import number

H = 2**-3
TINY = mpmath.mpf(10) ** -44


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(55):
        yield


def test_the_registry_is_a_mapping():
    assert isinstance(ph.methods, Mapping)
    assert list(ph.methods) == list(ph.methods.keys()) == [method.name for method in ph.methods.values()]
    assert list(ph.methods.items()) == [(name, ph.methods[name]) for name in ph.methods]
    assert ph.methods.get("strang(dmv10)") is ph.methods["strang(dmv10)"]
    assert ph.methods.get("no such method") is None
    assert ph.methods.get("strang(3)", "imid") == "imid"
    assert ph.methods == ph.methods
    assert len({ph.methods}) == 1


@pytest.mark.parametrize("family", ["lietaylor", "taylor"])
@pytest.mark.parametrize("order", [2, 4, 6, 8, 12])
def test_the_help_of_a_member_names_its_own_order(family, order):
    method = ph.methods[f"{family}({order})"]
    assert f" of order {order}" in method.summary
    assert "(" not in method.summary
    said = CliRunner().invoke(cli.app, ["methods", method.name], env={"COLUMNS": "200"}).output
    assert method.summary.split(":")[0] in said


@pytest.mark.parametrize("known", ph.methods.known, ids=lambda known: known.label)
def test_a_name_stands_for_a_method_with_a_source(known):
    method = ph.methods[known.label]
    assert method.name == ph.methods[known.expression].name
    assert ph.methods[known.label.upper()].name == method.name
    assert citations.entries()[known.cite]["title"]
    assert known.where


def test_the_command_line_lists_them():
    said = CliRunner().invoke(cli.app, ["methods"], env={"COLUMNS": "200"}).output
    assert all(known.label in said for known in ph.methods.known)
    assert "NO_SQUISH: Miller" in CliRunner().invoke(cli.app, ["methods", "no_squish"]).output


def permuted(k, q):
    """The matrices P_k of Miller and others, (2.9): P_k q is q times a unit vector."""
    a, b, c, d = q
    return {1: (-b, a, d, -c), 2: (-c, -d, a, b), 3: (-d, c, -b, a)}[k]


def inner(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def free_rotation(k, h, q, p, inertia):
    """exp(i L_k h): q and p turn together through zeta_k h, zeta_k = p . P_k q/(4 I_k)."""
    angle = h * inner(p, permuted(k, q)) / (4 * inertia[k - 1])
    c, s = mpmath.cos(angle), mpmath.sin(angle)
    return tuple(tuple(c * x + s * z for x, z in zip(vector, permuted(k, vector), strict=True)) for vector in (q, p))


@pytest.mark.parametrize("which", range(3))
def test_no_squish_is_the_printed_algorithm(which):
    """Miller and others (2002): quaternion and conjugate momentum, the rotations 3, 2, 1, 2, 3."""
    s = Setting(ph.methods["NO_SQUISH"], "free", which)
    q, m = s.y
    h = number(H)
    p = scale_four(2, mul(q, (0, *m)))
    for k, part in ((3, h / 2), (2, h / 2), (1, h), (2, h / 2), (3, h / 2)):
        q, p = free_rotation(k, part, q, p, s.system[0])
    end = tuple(inner(p, permuted(k, q)) / 2 for k in (1, 2, 3))
    assert distance(s.step(H), (q, end)) < TINY


def scale_four(factor, p):
    return tuple(factor * x for x in p)


@pytest.mark.parametrize("kind", ["free", "attitude"])
def test_lgvi_solves_the_printed_equations(kind):
    """Lee, Leok and McClamroch (2007): hat(h Pi + h^2/2 M) = F J_d - J_d F^T, with torque M."""
    s, h = Setting(ph.methods["LGVI"], kind), number(H)
    (q0, m0), (q1, m1) = s.y, s.step(H)
    start, end = (s.torque(t, q, m, s.system) for t, q, m in ((s.t, q0, m0), (s.t + h, q1, m1)))
    turn = mul((q0[0], -q0[1], -q0[2], -q0[3]), q1)
    F, half = mpmath.matrix(matrix(turn)), sum(s.system[0]) / 2
    J = mpmath.diag([half - x for x in s.system[0]])
    left = scale(h, along(m0, h / 2, start))
    right = F * J - J * F.T
    assert max(abs(right[2, 1] - left[0]), abs(right[0, 2] - left[1]), abs(right[1, 0] - left[2])) < TINY
    pushed = along(unrotate(turn, along(m0, h / 2, start)), h / 2, end)
    assert distance((pushed,), (m1,)) < TINY


@pytest.mark.parametrize("name", ["Celledoni-Fasso-Safstrom-Zanna", "van Zon-Schofield"])
def test_exact_free_motion_between_half_kicks(name):
    s, h = Setting(ph.methods[name], "attitude"), number(H)
    q, m = s.y
    free = Setting(ph.methods["jacobi"], "free")
    q, m = free.step(H, y=(q, along(m, h / 2, s.torque(s.t, q, m, s.system))))
    assert distance(s.step(H), (q, along(m, h / 2, s.torque(s.t + h, q, m, s.system)))) < TINY


@pytest.mark.parametrize("name", ["Touma-Wisdom", "DLM"])
def test_symmetric_body_and_rotation(name):
    """Half a rotation about axis 1, the exact motion of the symmetric body (I2, I2, I3), half a rotation."""
    s, h = Setting(ph.methods[name], "free"), number(H)
    a, b, c = s.system[0]

    def rotated(y, t):
        angle = t * (1 / a - 1 / b) * y[1][0]
        turn = exp((angle, 0 * angle, 0 * angle))
        return mul(y[0], turn), unrotate(turn, y[1])

    q, m = rotated(s.y, h / 2)
    spin = h * (1 / c - 1 / b) * m[2]
    turn = mul(exp(scale(h / b, m)), exp((0 * spin, 0 * spin, spin)))
    q, m = rotated((mul(q, turn), unrotate(turn, m)), h / 2)
    assert distance(s.step(H), (q, m)) < TINY


@pytest.mark.parametrize("kind", ["free", "velocity"])
def test_simo_wong_solves_the_printed_equations(kind):
    """Simo and Wong (1991), ALGO_C1: the mean angular velocity turns the body, the torque is that of the middle."""
    s, h = Setting(ph.methods["Simo-Wong"], kind), number(H)
    (q0, m0), (q1, m1) = s.y, s.step(H)
    mean = scale(number(1) / 2, add(m0, m1))
    half = exp(scale(h / 2, times(s.system[1], mean)))
    push = s.torque(s.t + h / 2, mul(q0, half), mean, s.system)
    turn = mul(half, half)
    end = unrotate(half, along(unrotate(half, m0), h, push))
    assert distance((q1, m1), (mul(q0, turn), end)) < TINY

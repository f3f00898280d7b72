"""The vector-space family: every declared property measured in 50 digits, both ways, and the user's side.

The problem is nonlinear, non-autonomous, in three dimensions, with a full mass matrix. The force comes from a
potential, because only then is there a symplectic form to keep.
"""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from polhode import InputError, StepError, methods, vector
from polhode.methods.combinators.compose import halves
from polhode.numbers.multiprecision import number
from polhode.vector import motion
from polhode.vector.tuples import Space

DIGITS = 50
EXACT = mpf(10) ** (3 - DIGITS)  # a step is some hundred operations: two digits of round-off, one to spare
VISIBLE = mpf(10) ** -4  # the least that counts as failing; measured failures at H are 9e-4 and larger
H = mpf(1) / 8
T0 = mpf(3) / 10
M = ((2.0, 0.5, -0.25), (0.5, 1.5, 0.125), (-0.25, 0.125, 1.0))
U0, P0 = (0.375, -0.5, 0.75), (0.625, 0.25, -0.875)
BOOK = vector.methods
every_method = pytest.mark.parametrize("name", list(BOOK))


def height(u, t):
    bond = u[0] * u[1] + 0.5 * u[2]
    return -math.cos(u[0] + 0.25 * t) + 0.25 * bond**2 + 0.125 * math.exp(u[2]) * (1 + 0.5 * math.sin(t)) + u[1] ** 4


def pull(u, t):
    """The same force as -d(height)/du, by hand and in mpmath: the reference knows nothing of the library."""
    bond = u[0] * u[1] + u[2] / 2
    return (
        -mpmath.sin(u[0] + t / 4) - bond * u[1] / 2,
        -bond * u[0] / 2 - 4 * u[1] ** 3,
        -bond / 4 - mpmath.exp(u[2]) * (1 + mpmath.sin(t) / 2) / 8,
    )


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(DIGITS):
        yield


def start():
    return tuple(map(mpf, U0)), tuple(map(mpf, P0))


def inverse_mass():
    return tuple(map(tuple, (mpmath.matrix(M) ** -1).tolist()))


def from_potential(t, u, p, system):
    return _FORCE(t, u, p, system)


_FORCE = motion.System(None, height, M, U0, P0, 0.0).force_kernel(number)


def nothing(t, u, p, system):
    return (0, 0, 0)


def constant(t, u, p, system):
    return (mpf(1) / 3, mpf(-2) / 3, mpf(1) / 7)


def step(method, h=H, t=T0, y=None, force=from_potential):
    """One step of a method, or of a method's name, in mpmath."""
    new, residual = BOOK[method].build(Space(number, 3, False))(h, t, y or start(), (inverse_mass(),), force)
    assert residual == 0
    return new


def steps(method, count, h=H, t=T0, y=None):
    y = y or start()
    for n in range(count):
        y = step(method, h, t + n * h, y)
    return y


def flat(y):
    return (*y[0], *y[1])


def distance(a, b):
    return max(abs(x - y) for x, y in zip(flat(a), flat(b), strict=True))


def velocity(p):
    return tuple(mpmath.fdot(row, p) for row in inverse_mass())


def along(a, s, b):
    return tuple(x + s * y for x, y in zip(a, b, strict=True))


# --- the declarations -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference():
    """The exact flow from the start, by mpmath's Taylor series."""
    with mpmath.workdps(DIGITS):
        y0 = flat(start())
        flow = mpmath.odefun(lambda t, y: [*velocity(y[3:]), *pull(y[:3], t)], T0, list(y0))
        return {h: tuple(flow(T0 + h)) for h in (mpf(2) ** -9, mpf(2) ** -10)}


def measured_order(method, reference):
    """Slope of the local error, less one; at these steps it is within 0.02 of a whole number."""
    errors = [max(abs(a - b) for a, b in zip(flat(step(method, h)), y, strict=True)) for h, y in reference.items()]
    slope = float(mpmath.log(errors[0] / errors[1], 2)) - 1
    return round(slope) if abs(slope - round(slope)) < 0.02 else slope


def measured_order_free(method, reference):
    u, p = start()
    gap = distance(step(method, force=nothing), (along(u, H, velocity(p)), p))
    return math.inf if gap < EXACT else 0


def verdict(gap, bound=EXACT):
    """True if the gap is round-off, False if it is visible; nothing in between is an answer."""
    assert gap < bound or gap > VISIBLE, f"neither round-off nor visible: {mpmath.nstr(gap, 3)}"
    return bool(gap < bound)


def measured_symmetry(method, reference):
    return verdict(distance(step(method, -H, T0 + H, step(method)), start()))


def measured_symplecticity(method, reference):
    """Is J^T Omega J = Omega. Central differences with step d are wrong by d^2 = 1e-40, and by epsilon/d = 1e-40."""
    with mpmath.workdps(DIGITS + 10):
        d = mpf(10) ** -20
        base, columns = flat(start()), []
        for i in range(6):
            ends = []
            for sign in (1, -1):
                y = [*base]
                y[i] += sign * d
                ends.append(flat(step(method, y=(tuple(y[:3]), tuple(y[3:])))))
            columns.append([(a - b) / (2 * d) for a, b in zip(*ends, strict=True)])
        gap = max(
            abs(sum(a[k] * b[k + 3] - a[k + 3] * b[k] for k in range(3)) - (j == i + 3) + (i == j + 3))
            for i, a in enumerate(columns)
            for j, b in enumerate(columns)
        )
        return verdict(gap, mpf(10) ** -39)  # ten such terms


def entered(method, h=H):
    """The times at which the force enters, and the number of calls: a push at one time must change the step."""
    asked = []

    def force_pushed_at(when):
        def force(t, u, p, system):
            asked.append(t)
            return (mpf(1) + (t == when), mpf(0), mpf(0))

        return force

    plain = step(method, force=force_pushed_at(None))
    calls = len(asked)
    times = [t for t in dict.fromkeys(asked) if distance(step(method, force=force_pushed_at(t)), plain) > VISIBLE]
    return times, calls


def measured_force_evaluations(method, reference):
    return len(entered(method)[0])


def measured_implicit(method, reference):
    times, calls = entered(method)
    return calls > len(times)


def energy(y, slope=(0, 0, 0)):
    u, p = y
    return mpmath.fdot(p, velocity(p)) / 2 - mpmath.fdot(slope, u)


def measured_conservation(method, reference):
    """All words that hold: without force, and with a constant force for the energy of a linear potential."""
    y0, free, pushed = start(), step(method, force=nothing), step(method, force=constant)
    slope = constant(0, 0, 0, 0)
    middle = step(method.halves[0], H / 2, force=nothing) if method.halves else None
    gaps = {
        "energy": abs(energy(free) - energy(y0)),
        "spatial_momentum": max(map(abs, along(free[1], -1, y0[1]))),
        "momentum_norm": abs(mpmath.norm(free[1]) - mpmath.norm(y0[1])),
        "energy_linear_potential": abs(energy(pushed, slope) - energy(y0, slope)),
    }
    if middle:
        gaps["energy_midpoint"] = abs(energy(middle) - energy(y0))
        gaps["spatial_momentum_midpoint"] = max(map(abs, along(middle[1], -1, y0[1])))
    return frozenset(word for word, gap in gaps.items() if verdict(gap))


CHECKS = {
    "order": measured_order,
    "order_free": measured_order_free,
    "symmetric": measured_symmetry,
    "symplectic": measured_symplecticity,
    "poisson": measured_symplecticity,
    "torque_evals": measured_force_evaluations,
    "implicit": measured_implicit,
    "conserves": measured_conservation,
}
LIES = {"order": lambda x: x + 1, "order_free": lambda x: 2, "torque_evals": lambda x: x + 1,
        "conserves": lambda x: x - {"energy"}}  # fmt: skip


@every_method
@pytest.mark.parametrize("word", CHECKS)
def test_declared_is_measured_and_a_lie_is_seen(name, word, reference):
    method = BOOK[name]
    said, measured = getattr(method, word), CHECKS[word](method, reference)
    assert measured == said
    liar = dataclasses.replace(method, **{word: LIES.get(word, lambda x: not x)(said)})
    assert CHECKS[word](liar, reference) != getattr(liar, word)


@every_method
def test_solves_and_citation(name):
    method = BOOK[name]
    assert method.implicit == (method.solves > 0)
    assert method.cite.startswith("krysl")
    assert method.where
    assert name not in methods or methods[name] is not method  # the book of rotations is another book


def test_the_reference_knows_the_same_force():
    u, p = start()
    gap = max(abs(a - b) for a, b in zip(from_potential(T0, u, p, ()), pull(u, T0), strict=True))
    assert gap < EXACT


# --- adjoints, conjugacy, closed forms --------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"), [("forward_euler", "backward_euler"), ("symplectic_euler", "symplectic_euler_adjoint")]
)
def test_adjoint_pairs(first, second):
    for a, b in ((first, second), (second, first)):
        assert distance(step(b, -H, T0 + H, step(a)), start()) < EXACT
        assert distance(step(a, -H, T0 + H, step(a)), start()) > VISIBLE


def test_trapezoid_and_midpoint_are_conjugate():
    """midpoint = backward(h/2)^-1 o trapezoid o backward(h/2), and the inverse is forward Euler with -h/2."""
    count, half = 20, H / 2
    y = steps("trapezoid", count, t=T0 + half, y=step("backward_euler", half))
    y = step("forward_euler", -half, T0 + count * H + half, y)
    assert distance(y, steps("midpoint", count)) < EXACT
    assert distance(steps("trapezoid", count), steps("midpoint", count)) > VISIBLE


def test_trapezoid_closed_form():
    """Equation (4)."""
    (u, p), (u1, p1) = start(), step("trapezoid")
    force = along(pull(u, T0), 1, pull(u1, T0 + H))
    assert distance((u1, p1), (along(u, H / 2, velocity(along(p, 1, p1))), along(p, H / 2, force))) < EXACT


def test_midpoint_closed_form():
    """Equation (5), with dt instead of the printed dt/2 before M^-1 p_mid."""
    (u, p), (u1, p1) = start(), step("midpoint")
    middle = [tuple(x / 2 for x in along(a, 1, b)) for a, b in ((u, u1), (p, p1))]
    impulse = along(p, H, pull(middle[0], T0 + H / 2))
    assert distance((u1, p1), (along(u, H, velocity(middle[1])), impulse)) < EXACT
    assert distance((u1, p1), (along(u, H / 2, velocity(middle[1])), impulse)) > VISIBLE


def test_verlet_closed_forms():
    """Half a kick, a drift, half a kick; and in configurations alone M (u_2 - 2 u_1 + u_0) = h^2 f_1."""
    u, p = start()
    kicked = along(p, H / 2, pull(u, T0))
    u1 = along(u, H, velocity(kicked))
    assert distance(step("verlet"), (u1, along(kicked, H / 2, pull(u1, T0 + H)))) < EXACT
    u2, _ = steps("verlet", 2)
    second = along(along(u2, -2, u1), 1, u)
    assert max(map(abs, along(second, -(H**2), velocity(pull(u1, T0 + H))))) < EXACT


# --- the user's side --------------------------------------------------------------------------------


def swing(u, t):
    return (-math.sin(u[0]) - 0.5 * (u[0] - u[1]) + 0.1 * math.cos(t), 0.5 * (u[0] - u[1]) - u[1] ** 3)


FULL = ((2.0, 0.5), (0.5, 1.5))


@every_method
def test_floats_agree_with_digits(name, monkeypatch):
    """The same kernels: doubles may differ by the round-off of 50 steps, some 1e-15 each at worst."""
    monkeypatch.setattr(motion, "COMPILED", 0)
    run = {"dt": 0.0625, "steps": 50, "t0": 0.5}
    doubles = vector.solve(swing, FULL, (0.5, -0.25), (0.25, 1.0), name, **run)
    precise = vector.solve(swing, FULL, (0.5, -0.25), (0.25, 1.0), name, digits=30, **run)
    assert np.abs(doubles.u - precise.u).max() < 5e-14
    assert np.abs(doubles.p - precise.p).max() < 5e-14
    assert doubles.t[-1] == 0.5 + 50 * 0.0625
    assert isinstance(precise.mp.u[-1, 0], mpmath.mpf)
    assert precise.mp.p.shape == (51, 2)


@pytest.mark.parametrize("name", ["verlet", "midpoint"])
def test_compiled_equals_plain(name, monkeypatch):
    """The same operations in the same order, but a compiler may fuse a product and a sum: one ulp a step."""
    run = {"dt": 0.0625, "steps": 50, "every": 7}
    fast = vector.solve(swing, FULL, (0.5, -0.25), (0.25, 1.0), name, **run)
    monkeypatch.setattr(motion, "COMPILED", 0)
    plain = vector.solve(swing, FULL, (0.5, -0.25), (0.25, 1.0), name, **run)
    assert np.abs(fast.u - plain.u).max() < 2e-14
    assert np.allclose(fast.t, [*(0.0625 * 7 * k for k in range(8)), 0.0625 * 50], rtol=0, atol=0)


def test_a_potential_gives_force_and_energy():
    """Force from the potential; Verlet's energy error is of second order and does not grow."""

    def bowl(u):
        return 0.5 * u[0] ** 2 + 0.25 * u[0] ** 4 + math.cos(u[1]) * 0.25

    def slope(u):
        return (-u[0] - u[0] ** 3, 0.25 * math.sin(u[1]))

    run = {"dt": 0.02, "t_end": 40.0, "potential": bowl}
    own = vector.solve(None, 2.0, (0.7, 0.3), (0.1, -0.2), "verlet", **run)
    given = vector.solve(slope, (2.0, 2.0), (0.7, 0.3), (0.1, -0.2), "verlet", **run)
    assert np.abs(own.u - given.u).max() < 1e-12  # 2000 steps, each rounded to 1e-16
    assert own.energy is not None
    first, second = np.abs(own.energy - own.energy[0]).reshape(-1)[1:].reshape(2, -1).max(axis=1)
    assert 1e-6 < first < 1e-4  # dt^2 times the scale of the energy, about 0.3
    assert second < 1.5 * first
    assert np.allclose(own.velocity, own.p / 2)
    assert vector.solve(slope, 2.0, (0.7, 0.3), (0.1, -0.2), "verlet", dt=0.02, steps=1).energy is None


def test_backward_euler_takes_stiff_forces_and_large_offsets(monkeypatch):
    """h^2 k/m = 1e6 coupled to 1e2: the solver finds the Jacobian; far from the origin round-off is that of u."""
    monkeypatch.setattr(motion, "COMPILED", 0)

    def stiff(u):
        return (-1e8 * (u[0] - u[1]), 1e8 * (u[0] - u[1]) - 1e4 * u[1], -u[2])

    run = {"dt": 0.1, "steps": 20}
    still = vector.solve(stiff, (1.0, 2.0, 1.0), (1.0, -1.0, 0.5), (0.0, 3.0, 0.0), "be", **run)
    assert np.abs(still.u[-1, :2]).max() < 1e-2

    def far(u):
        return (-4.0 * (u[0] - 1e6),)

    moved = vector.solve(far, 1.0, (1e6 + 1.0,), (0.0,), "midpoint", **run)
    near = vector.solve(lambda u: (-4.0 * u[0],), 1.0, (1.0,), (0.0,), "midpoint", **run)
    assert np.abs(moved.u - 1e6 - near.u).max() < 1e-8  # 20 steps, each rounded to 1e-10


def test_many_dimensions_run_uncompiled():
    n = motion.COMPILED + 2

    def chain(u):
        return tuple(u[i - 1] - 2 * u[i] + u[(i + 1) % n] for i in range(n))

    start_u = np.cos(2 * np.pi * np.arange(n) / n)
    ring = vector.solve(chain, 1.0, start_u, np.zeros(n), "trapezoid", dt=0.01, steps=100)
    frequency = 2 * math.sin(math.pi / n)
    assert np.abs(ring.u[-1] - start_u * math.cos(frequency)).max() < 1e-5  # (dt w)^2/12 times w t


def test_aliases_and_repr():
    assert BOOK["Phi*"] is BOOK["symplectic_euler_adjoint"]
    assert BOOK["leapfrog"] is BOOK["Xi"] is BOOK["verlet"]
    ball = vector.solve(lambda u: (0.0, -9.81), 1.0, (0.0, 0.0), (1.0, 2.0), "verlet", dt=0.125, steps=8)
    assert len(ball) == 9
    assert repr(ball) == "<Motion in 2 dimensions, verlet: 9 states, t = 0 to 1, finished>"
    assert np.allclose(ball.u[-1], (1.0, 2.0 - 9.81 / 2), rtol=0, atol=1e-14)


def test_compositions_are_methods_too(monkeypatch):
    """Two Verlet half steps are one Verlet step of half the size, twice: the same numbers but for round-off."""
    monkeypatch.setattr(motion, "COMPILED", 0)
    twice = halves(BOOK["verlet"], BOOK["verlet"], register=False)
    a = vector.solve(swing, FULL, (0.5, -0.25), (0.25, 1.0), twice, dt=0.125, steps=10)
    b = vector.solve(swing, FULL, (0.5, -0.25), (0.25, 1.0), "verlet", dt=0.0625, steps=20, every=2)
    assert np.abs(a.u - b.u).max() < 1e-15
    nested = halves(twice, twice, register=False)
    assert len(vector.solve(swing, FULL, (0.5, -0.25), (0.25, 1.0), nested, dt=0.25, steps=5)) == 6


def three(u, t):
    return (1.0, 2.0, 3.0)


def broken(u, t):
    return (u[0] / t, 0.0)


def named(u, t):
    return np.array([u[0], u[1]])


def branching(u, t):
    return (1.0, 0.0) if u[0] > 0 else (0.0, 1.0)


GOOD = {"force": swing, "M": FULL, "u0": (0.5, -0.25), "p0": (0.25, 1.0), "method": "verlet", "dt": 0.1, "steps": 5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "verlett"}, "unknown method 'verlett' for a vector space; there are verlet, midpoint"),
        ({"method": methods["imidm"]}, "imidm is a method for rotations"),
        ({"u0": (1.0,)}, "u0 and p0 must have the same length; got 1 and 2"),
        ({"u0": 1.0}, "u0 must be a sequence of numbers; got shape ()"),
        ({"p0": (math.nan, 0.0)}, "p0 must be finite"),
        ({"M": ((1.0, 2.0), (3.0, 4.0))}, "M must be symmetric; entries differ from those of its transpose by up to 1"),
        ({"M": (1.0, -1.0)}, "M must be positive definite; its smallest eigenvalue is -1"),
        ({"M": ((1.0, 2.0), (2.0, 1.0))}, "M must be positive definite; its smallest eigenvalue is -1"),
        ({"M": (1.0, 1.0, 1.0)}, "M must have shape (2, 2) or (2,) to match u0; got (3,)"),
        ({"M": "heavy"}, "M must be a matrix, its diagonal, or one number"),
        ({"force": None}, "give a force or a potential"),
        ({"force": 3}, "the force must be a plain Python function of u, or of u and t; got int"),
        ({"force": lambda u, t, k: u}, "must be a function of u, or of u and t; it takes (u, t, k)"),
        ({"force": three}, "the force three must return 2 numbers; it returned 3 at the start (t = 0)"),
        ({"force": broken}, "the force broken raised ZeroDivisionError at the start (t = 0)"),
        ({"force": named}, "the force named "),
        ({"force": branching}, "use ph.where"),
        ({"force": lambda u: 1.0}, "must return 2 numbers; it returned 1.0"),
        ({"force": lambda u: (math.inf, 0.0)}, "must return finite numbers"),
        ({"potential": lambda u: "high"}, "must return one number"),
        ({"dt": 0.0}, "dt must be positive; got 0"),
        ({"dt": math.inf}, "dt must be finite"),
        ({"steps": 0}, "steps must be a whole number of at least 1; got 0"),
        ({"steps": None}, "give t_end or steps"),
        ({"steps": None, "t_end": 0.25}, "the nearest t_end are 0.2 and 0.3"),
        ({"digits": -3}, "digits must be a whole number"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(change, message):
    given = GOOD | change
    with pytest.raises(InputError) as fault:
        vector.solve(**given)
    assert message in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_failed_step_keeps_what_was_computed(monkeypatch):
    monkeypatch.setattr(motion, "COMPILED", 0)

    def runaway(u):
        return (u[0] ** 3,)

    with pytest.raises(StepError, match=r"midpoint failed in step \d+ .* try dt = 0.05; the \d+ states") as fault:
        vector.solve(runaway, 1.0, (2.0,), (5.0,), "midpoint", dt=0.1, steps=100)
    assert fault.value.partial.status == "failed"
    assert np.isfinite(fault.value.partial.u).all()

    def wall(u, t):
        return (math.sqrt(1 - t),)

    for digits in (None, 20):
        with pytest.raises(StepError, match=r"step 9 .* the force wall raised ValueError at t = 1.125") as fault:
            vector.solve(wall, 1.0, (0.0,), (0.0,), "verlet", dt=0.125, steps=20, digits=digits)
        assert len(fault.value.partial) == 9

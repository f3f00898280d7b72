"""A user's function is read in one way, whatever it is for: the same mistakes get the same sentences."""

import numpy as np
import pytest

import polhode as ph
from polhode import lie, vector

BODY, OMEGA = ph.Body([1.0, 2.0, 2.5]), [1.0, 0.1, 0.2]
FREE = ph.Problem(BODY, omega=OMEGA)
RUN = {"dt": 0.1, "steps": 1}

READERS = {
    "torque": lambda f: ph.Problem(BODY, ph.torque(lambda t: (f(t), 0.0, 0.0))(), omega=OMEGA).field.graph,
    "rate": lambda f: ph.Problem(BODY, ph.momentum_rate(lambda t: (f(t), 0.0, 0.0)), omega=OMEGA).field.graph,
    "event": lambda f: ph.solve(FREE, "fem", events=ph.event(lambda t: f(t)), **RUN),
    "observable": lambda f: ph.gradient(lambda t: f(t), FREE, "fem", **RUN),
    "statistics": lambda f: ph.ensemble([[1.0, 2.0, 2.5]], None, [OMEGA], "fem", statistics=lambda t: f(t), **RUN),
    "force": lambda f: vector.solve(lambda u, t: (f(t),), [1.0], [1.0], [0.0], "verlet", **RUN),
    "velocity": lambda f: lie.solve("SO(3)", lambda t: (f(t), 0.0, 0.0), np.eye(3), "taylor(2)", **RUN),
    "angular velocity": lambda f: ph.kinematics(lambda t: (f(t), 0.0, 0.0), 1.0),
}


def divided(t):
    return 1 / t


def infinite(t):
    return t + 1e308 * 10


def huge(t):
    return 10**400


def branching(t):
    return 1.0 if t > 0 else 0.0


MISTAKES = [
    (divided, r"^the \S+ <lambda> raised ZeroDivisionError at the start \(t = 0\): (float )?division by zero"),
    (infinite, r"^the \S+ <lambda> must return finite numbers; it returned .*inf.* at the start \(t = 0\)$"),
    (huge, r"^the \S+ <lambda> must return .*; it returned .*0000.* at the start \(t = 0\)$"),
    (branching, r"^the \S+ <lambda> cannot be compiled: it branches on a number \(.*\); use ph\.where\(condition"),
]


CASES = [(r, *m) for r in READERS for m in MISTAKES if (r, m[0]) != ("torque", branching)]  # a torque may branch


@pytest.mark.parametrize(("reader", "mistake", "said"), CASES, ids=[f"{r}-{f.__name__}" for r, f, _ in CASES])
def test_a_mistake_gets_the_same_sentence_from_every_reader(reader, mistake, said):
    with pytest.raises(ph.InputError, match=said):
        READERS[reader](mistake)


def test_arguments_may_have_any_name():
    """Parameters are matched by name, so no name may be taken by the reader itself."""

    @ph.torque
    def drag(omega, place, given, hint, function, self):
        return tuple(-place * given * hint * function * self * x for x in omega)

    problem = ph.Problem(BODY, drag(1.0, 1.0, 1.0, 1.0, 0.5), omega=OMEGA)
    assert problem.field.torque_value(0.0, np.eye(3), OMEGA) == pytest.approx([-0.5, -0.05, -0.1])

"""What a method asks of a field: every answer has the declared shape, and no call has two answers."""

import pytest

import polhode as ph
from polhode.analysis.generic_problems import generic
from polhode.errors import InputError
from polhode.methods import queries
from polhode.numbers import floats
from polhode.numbers.primitives import absent
from polhode.physics.queries import answering

QUERIES = (
    queries.Torque(),
    queries.TorqueAndCorrector(),
    queries.TorqueRates(2),
    queries.TorqueGradient(),
    *(queries.MotionSeries(3, of) for of in queries.SERIES),
    queries.DiscreteGradient("torque"),
)
KINDS = ("free", "potential", "velocity")
CASES = [(q, kind) for q in QUERIES for kind in (KINDS[:2] if q == queries.TorqueAndCorrector() else KINDS)]
"""A corrector is that of a potential."""
ABSENT = [q for q in QUERIES if not isinstance(q, queries.MotionSeries | queries.TorqueGradient)]
"""Queries that a free body does not answer."""
EXTRA = {"t1": 0.3, "q1": (0.6, 0.0, 0.8, 0.0), "m1": (0.1, 0.2, 0.3), "h": 0.1}
TILTED = ph.Body([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 2.5]])


def answered(asks, query, problem):
    """The answer to one query of what is asked."""
    (q, m), system = problem.kernel_data(floats.number)
    kernel = answering(asks, problem.field, problem.body.has_principal_rotation, floats.number)
    return kernel(0.25, q, m, system, *(EXTRA.get(name, (0.1, -0.2, 0.3)) for name in query.arguments))


def form(query, answer):
    """The shape of an answer, measured."""
    parts = [answer] if not isinstance(answer[0], tuple) else answer
    assert tuple(parts) == query.split(answer)
    assert query.joined(query.split(answer)) == answer
    return tuple(queries.VECTOR if isinstance(part, tuple) and len(part) == 3 else queries.NUMBER for part in parts)


@pytest.mark.parametrize("body", [None, TILTED], ids=["principal", "tilted"])
@pytest.mark.parametrize(("query", "kind"), CASES)
def test_answers_have_the_declared_shape(query, kind, body):
    problem = generic(kind)
    if body is not None:
        problem = ph.Problem(body, problem.field, momentum=[1.8, 0.4, -0.9], t0=0.25)
    assert form(query, answered(query, query, problem)) == query.shape


@pytest.mark.parametrize("query", ABSENT)
def test_without_a_field_there_is_no_answer(query):
    for part in query.split(answered(query, query, generic("free"))):
        assert absent(part if isinstance(part, tuple) else (part, part, part))


def test_each_call_reaches_its_own_query():
    asks = queries.DiscreteGradient("potential") & queries.TorqueGradient() & queries.TorqueAndCorrector()
    assert [len(query.arguments) for query in asks.parts] == [0, 1, 3]
    problem = generic("potential")
    for query in asks.parts:
        assert answered(asks, query, problem) == answered(query, query, problem)
        assert asks.asked(len(query.arguments)) == query
        assert asks.find(type(query)) == query
    assert asks == queries.TorqueAndCorrector() & asks
    with pytest.raises(LookupError, match="2 more arguments"):
        asks.asked(2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (queries.Torque(), queries.TorqueAndCorrector()),
        (queries.TorqueRates(1), queries.TorqueRates(2)),
        (queries.MotionSeries(3, queries.ROTATION), queries.TorqueGradient()),
        (queries.DiscreteGradient("torque"), queries.Torque() & queries.DiscreteGradient("potential")),
    ],
)
def test_two_answers_to_one_call_are_refused(one, other):
    with pytest.raises(InputError, match=r"cannot ask a field for .* and for .*: both would be the answer to torque\("):
        one & other


def test_combinators_derive_the_query_from_their_parts():
    asks = {name: str(ph.methods[name].asks) for name in (
        "saba2c(jacobi)", "yoshida4(saba2c(jacobi))", "reversible(saba2c(jacobi))", "reversible(jacobi)", "ep(buss3)",
        "ep(lietaylor(3))", "ep(ep(lietaylor(3)))",
    )}  # fmt: skip
    assert asks == {
        "saba2c(jacobi)": "torque and corrector",
        "yoshida4(saba2c(jacobi))": "torque and corrector",
        "reversible(saba2c(jacobi))": "torque and corrector; rate and steepness of the torque",
        "reversible(jacobi)": "torque",
        "ep(buss3)": "torque and 2 derivatives along the motion; discrete gradient (potential)",
        "ep(lietaylor(3))": "Taylor series of the rotation and work of order 3; discrete gradient (potential)",
        "ep(ep(lietaylor(3)))": "Taylor series of the rotation and work of order 3; discrete gradient (potential)",
    }

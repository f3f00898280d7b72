"""Every attribute of a method that says something about its step: every kind of false value is caught.

The table is complete by construction: a new attribute of `Method` fails `test_every_attribute_is_in_the_table` until
it has liars here, or a reason why it says nothing that could be false.
"""

import contextlib
import dataclasses
import functools
import itertools
import math
import operator
import typing
from typing import NamedTuple

import mpmath
import pytest

import polhode as ph
from polhode.analysis import checks
from polhode.errors import InputError
from polhode.kernels.so3 import scale
from polhode.methods import queries
from polhode.methods.record import CONSERVABLE, ENDS, NEEDS, Method
from proofs import checks as proofs

NO_CLAIM = {
    "name": "a label; that it is unique is tested in test_methods.py",
    "aliases": "labels",
    "build": "the step itself, which the other attributes are about",
    "cite": "a source; that references.bib has it is tested in test_references.py",
    "where": "a place in the source",
    "doc": "a description; its formulas are tested in test_formulas.py",
    "family": "the space that the method is for: empty for rotations, which are what is checked here",
}
"""Attributes that say nothing about the mathematics of the step, with the reason."""

SILENT = {
    "flows": "empty: no statement about what the step is made of",
    "halves": "empty: no statement about what the step is made of; only the midpoint quantities are then unknown",
    "estimated": "None: `tol` does not use estimates of this method",
    "sequence": "empty, with no drift: kicks cannot be made outside of the step",
    "symplectic_defect": "None: no formula is known",
}
"""Attributes whose empty value is no statement, so that it cannot be false."""


class Liars(NamedTuple):
    """Methods that lie about an attribute, and the checks that must notice."""

    methods: tuple[str, ...]
    checks: tuple[typing.Callable[..., list[str]], ...]


ASKING = (
    "fem", "saba2c(dmv4)", "buss3", "lietaylor(3)", "ep(lietaylor(3))", "taylor(6)", "dg2", "ep(swc1)", "rot123",
    "reversible(jacobi)", "reversible(strang(rot123))", "baoab(rot123)", "nose_hoover(rot123)",
)  # fmt: skip
"""Methods that ask different things of a field."""

LIARS = {
    "order": Liars(("fem", "baoab(rot123)", "imid", "strang(jacobi)", "rot123", "jacobi"), (checks.check_order,)),
    "order_free": Liars(("fem", "baoab(rot123)", "imid", "jacobi", "strang(jacobi)"), (checks.check_order,)),
    "symmetric": Liars(("fem", "imid", "galpha(1)", "baoab(rot123)"), (checks.check_symmetric,)),
    "symplectic": Liars(("fem", "rot123", "strang(rot123)", "baoab(rot123)"), (checks.check_symplectic,)),
    "poisson": Liars(("fem", "rot123", "baoab(rot123)"), (checks.check_poisson,)),
    "implicit": Liars(("fem", "imid"), (checks.check_cost,)),
    "solves": Liars(("fem", "bem", "imid", "mkrk(gauss2)"), (checks.check_cost,)),
    "torque_evals": Liars(
        ("fem", "imid", "rot123", "strang(rot123)", "obabo(rot123)"), (checks.check_cost, checks.check_needs)
    ),
    "torque_at": Liars(
        ("fem", "bem", "imidm", "strang(rot123)", "reversible(imidm)", "aboba(rot123)"),
        (checks.check_cost, checks.check_needs),
    ),
    "conserves": Liars(("fe", "imid", "trap", "dmv2", "dg2", "liemid_ea", "baoab(dmv4)"), (checks.check_conserves,)),
    "needs": Liars(
        ("fem", "nmb", "strang(rot123)", "saba2c(dmv4)", "rot123", "baoab(rot123)"),
        (checks.check_needs, checks.check_order, checks.check_cost),
    ),
    "asks": Liars(ASKING, (checks.check_asks, checks.check_order, checks.check_extended)),
    "linear_bodies": Liars(("fem", "rot123", "obabo(rot123)", "baoab(dmv4)"), (checks.check_bodies,)),
    "flat_bodies": Liars(("fem", "mv_explicit"), (checks.check_bodies,)),
    "increments": Liars(("fem", "rot123"), (checks.check_increments,)),
    "compensated": Liars(("fem", "imid"), (checks.check_parts,)),
    "memory": Liars(("fem", "abm4", "galpha(1)", "reversible(jacobi)", "baoab(rot123)"), (checks.check_parts,)),
    "base": Liars(
        ("fem", "reversible(jacobi)", "reversible(strang(rot123))"), (checks.check_parts, checks.check_order)
    ),
    "before": Liars(("fem", "abm4", "processed4(dmv4)", "reversible(jacobi)", "baoab(rot123)"), (checks.check_order,)),
    "after": Liars(("fem", "processed4(dmv4)"), (checks.check_order,)),
    "unprocessed": Liars(("fem", "processed4(dmv4)"), (checks.check_parts,)),
    "halves": Liars(("fem", "imid", "liemid_ea"), (checks.check_parts,)),
    "flows": Liars(("fem", "rot123", "strang(rot123)"), (checks.check_flows,)),
    "sequence": Liars(
        ("fem", "strang(rot123)", "saba2c(dmv4)", "processed4(dmv4)", "obabo(rot123)"), (checks.check_parts,)
    ),
    "drift": Liars(
        ("fem", "strang(rot123)", "saba2c(dmv4)", "reversible(strang(rot123))", "baoab(rot123)"), (checks.check_parts,)
    ),
    "noise": Liars(
        ("fem", "baoab(rot123)", "obabo(dmv4)", "bussi(rot123)"),
        (proofs.check_drawn, proofs.check_weak_order, proofs.check_measure),
    ),
    "thermostat": Liars(("fem", "nose_hoover(rot123)"), (checks.check_extended,)),
    "states": Liars(("fem", "nose_hoover(rot123)"), (checks.check_extended,)),
    "estimated": Liars(("fem", "cf4", "verner87"), (checks.check_estimated,)),
    "symplectic_defect": Liars(("rot123", "imidm", "fem"), (checks.check_symplectic_defect,)),
}

WORDS = {"needs": NEEDS}
SETS = {"conserves": CONSERVABLE, "torque_at": ENDS}
NOT_A_LIE = {"compensated": "a run may or may not carry the low parts of a method written by increments"}


# --- false values -----------------------------------------------------------------------------------


def false_values(method, attribute):
    """Values of an attribute, by name, that are false for this method: all kinds that its type allows."""
    said = getattr(method, attribute)
    if attribute in MADE:
        return MADE[attribute](method)
    if attribute in WORDS:
        return {word: word for word in WORDS[attribute] if word != said} | {"unsaid": None}
    if attribute in SETS:
        return {f"{'not ' * (word in said)}{word}": said ^ {word} for word in SETS[attribute]} | {"unsaid": None}
    expected = typing.get_type_hints(Method)[attribute]
    if expected is float:
        other = {"finite": 2} if said == math.inf else {"one more": said + 1, "one less": said - 1, "exact": math.inf}
        return other | {"unsaid": None, "NaN": math.nan}
    if expected is int:
        return {"one more": said + 1, "seven more": said + 7, "unsaid": None} | ({"one less": said - 1} if said else {})
    assert expected in (bool, bool | None), f"no false values are known for {attribute}: {expected}"
    return {"the opposite": not said, "unsaid": None}


def missing_or(method, attribute, **others):
    """No value at all, where there is one, or that of another method."""
    return others | ({"missing": None} if getattr(method, attribute) else {})


QUERIES = {
    queries.Torque: {},
    queries.TorqueAndCorrector: {},
    queries.TorqueRates: {"count": 2},
    queries.TorqueGradient: {},
    queries.MotionSeries: {"order": 3, "of": queries.SERIES},
    queries.DiscreteGradient: {"use": queries.USES},
    queries.HeatBath: {},
    queries.ChainStart: {"links": 3},
}
"""All kinds of queries with their fields: a number to try, or the words that are allowed."""


def variants(query):
    """The query with one of its fields changed."""
    for name, words in QUERIES[type(query)].items():
        said = getattr(query, name)
        others = words if isinstance(words, tuple) else [n for n in (said - 1, said + 1, said + 7) if n > 0]
        yield from (dataclasses.replace(query, **{name: other}) for other in others if other != said)


def false_queries(method):
    """One part left out, changed or replaced by any other query, and any query that can be asked in addition."""
    parts, found = method.asks.parts, []
    others = [
        kind(**dict(zip(fields, values, strict=True)))
        for kind, fields in QUERIES.items()
        for values in itertools.product(*(v if isinstance(v, tuple) else (v,) for v in fields.values()))
    ]
    for place, part in enumerate(parts):
        rest = parts[:place] + parts[place + 1 :]
        found += [rest, *((*rest, other) for other in (*variants(part), *others))]
    found += [(*parts, other) for other in others]
    made = {}
    for given in filter(None, found):
        with contextlib.suppress(InputError):  # two answers to one call cannot be declared
            query = functools.reduce(operator.and_, given)
            made[str(query)] = query
    return {text: query for text, query in made.items() if query != method.asks} | {"unsaid": None}


def false_flows(method):
    other = {"those of another": ph.methods["rot132"].flows}
    return other | ({"without the last": method.flows[:-1], "twice": method.flows * 2} if method.flows else {})


def false_estimates(method):
    """Estimates of the wrong step, of too high or too low an order, too small, undefined."""

    honest = ph.methods["cf4"].estimated

    def changed(change):
        def build(number):
            attempt = honest.build(number)

            def step(h, *rest):
                new, attitude, momentum = attempt(h, *rest)
                return new, change(h) ** 2 * attitude, change(h) ** 2 * momentum

            return step

        return honest._replace(build=build)

    if method.estimated is None:
        return {"those of another": honest}
    return {
        "declared one order higher": honest._replace(order=honest.order + 1),
        "declared one order lower": honest._replace(order=honest.order - 1),
        "too high an order": changed(lambda h: h),
        "too low an order": changed(lambda h: 1 / h),
        "too small": changed(lambda h: h / h / 10**6),
        "undefined": changed(lambda h: mpmath.nan),
    }


def false_sequences(method):
    """Kicks and drifts of another scheme, one too few, too many, in another order, and with other times."""
    other = {"that of another": ph.methods["strang(rot123)" if not method.sequence else "suzuki4(rot123)"].sequence}
    if not method.sequence:
        return other
    first, *rest = method.sequence
    at = next(i for i, part in enumerate(method.sequence) if part.flow == "U")
    changed = method.sequence[at]._replace(modified=method.sequence[at].modified + 1)
    return other | {
        "missing": (),
        "without the last": method.sequence[:-1],
        "twice": method.sequence * 2,
        "its first part last": (*rest, first),
        "too long a time": (first._replace(time=first.time + 1), *rest),
        "another modified potential": (*method.sequence[:at], changed, *method.sequence[at + 1 :]),
    }


def false_noises(method):
    """Another weak order, other invariant measures, another number of vectors, the numbers of another step."""
    honest = method.noise
    if honest is None:
        return {"that of another": ph.methods["baoab(rot123)"].noise}
    lies = {"missing": None, "that of another": ph.methods["baoab(rot132)"].noise}
    for name in ("weak_order", "vectors"):
        said = getattr(honest, name)
        others = {"one more": said + 1, "one less": said - 1, "unsaid": None, "NaN": math.nan}
        lies |= {f"{name}, {kind}": honest._replace(**{name: value}) for kind, value in others.items()}
    for name in ("invariant_measure", "invariant_measure_free"):
        others = {"none": None, "1": 1, "2": 2, "3": 3, "4": 4, "exact": math.inf, "NaN": math.nan}
        lies |= {
            f"{name}, {kind}": honest._replace(**{name: value})
            for kind, value in others.items()
            if value != getattr(honest, name)
        }
    return lies


def false_thermostats(method):
    """Another number of links, other orders of the extended energy, the opposite about the measure."""
    honest = method.thermostat
    if honest is None:
        return {"that of another": ph.methods["nose_hoover(rot123)"].thermostat}
    lies = {"missing": None, "the opposite": honest._replace(extended_measure=not honest.extended_measure)}
    lies["unsaid"] = honest._replace(extended_measure=None)
    for name in ("links", "extended_energy", "extended_energy_free"):
        others = {"one more": getattr(honest, name) + 1, "one less": getattr(honest, name) - 1, "NaN": math.nan}
        lies |= {f"{name}, {kind}": honest._replace(**{name: value}) for kind, value in others.items()}
    return lies


def false_states(method):
    """None, those of another chain, and in another order."""
    other = {"those of another": ph.methods["nose_hoover(rot123,4)"].states}
    return other | ({"missing": (), "backwards": method.states[::-1]} if method.states else {})


def false_formulas(method):
    honest = ph.methods["imidm"].symplectic_defect
    if not method.symplectic_defect:
        return {"that of another": honest}
    return {
        "too large": lambda *given: scale(1 + 1e-12, honest(*given)),
        "of the other sign": lambda *given: scale(-1, honest(*given)),
        "undefined": lambda *given: scale(mpmath.nan, honest(*given)),
        "zero": lambda *given: scale(0, honest(*given)),
    }


MADE = {
    "asks": false_queries,
    "before": lambda m: missing_or(m, "before", another=ph.methods["rot132"].build),
    "after": lambda m: missing_or(m, "after", another=ph.methods["rot132"].build),
    "base": lambda m: missing_or(m, "base", another=ph.methods["strang(rot132)"]),
    "unprocessed": lambda m: missing_or(m, "unprocessed", another=ph.methods["strang(rot123)"]),
    "halves": lambda m: {
        "others": tuple(ph.methods[name] for name in ("fe", "be")),
        "backwards": m.halves[::-1] or (m, m),
    },
    "flows": false_flows,
    "sequence": false_sequences,
    "drift": lambda m: missing_or(m, "drift", another=ph.methods["rot132"]),
    "noise": false_noises,
    "thermostat": false_thermostats,
    "states": false_states,
    "estimated": false_estimates,
    "symplectic_defect": false_formulas,
}
"""False values of the attributes that are methods, steps or formulas."""

LIES = [
    (attribute, name, kind)
    for attribute, liars in LIARS.items()
    for name in liars.methods
    for kind in false_values(ph.methods[name], attribute)
]


# --- the tests --------------------------------------------------------------------------------------


@functools.cache
def honest_faults(name, check):
    return check(ph.methods[name], (0,))


@pytest.mark.parametrize(("attribute", "name", "kind"), LIES)
def test_a_lie_is_caught_and_the_truth_is_not(attribute, name, kind):
    method = ph.methods[name]
    liar = dataclasses.replace(method, **{attribute: false_values(method, attribute)[kind]})
    noticing = (checks.check_complete, *LIARS[attribute].checks)
    assert [fault for check in noticing for fault in honest_faults(name, check)] == []
    assert any(check(liar, (0,)) for check in noticing)


def test_every_query_is_in_the_table():
    assert set(QUERIES) == set(queries.FieldQuery.__subclasses__()) - {queries.Together}
    for kind, fields in QUERIES.items():
        assert [field.name for field in dataclasses.fields(kind)] == list(fields)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (queries.TorqueRates, {"count": 0}),
        (queries.TorqueRates, {"count": None}),
        (queries.MotionSeries, {"order": None, "of": queries.STATE}),
        (queries.MotionSeries, {"order": True, "of": queries.STATE}),
        (queries.MotionSeries, {"order": 3, "of": None}),
        (queries.DiscreteGradient, {"use": ""}),
    ],
)
def test_a_query_that_leaves_a_word_out_cannot_be_made(kind, said):
    with pytest.raises(InputError, match=f"{kind.__name__} must be"):
        kind(**said)


def test_every_attribute_is_in_the_table():
    attributes = {field.name for field in dataclasses.fields(Method)}
    assert set(LIARS) | set(NO_CLAIM) == attributes
    assert not set(LIARS) & set(NO_CLAIM)
    assert set(SILENT) <= set(LIARS)


@pytest.mark.parametrize("attribute", [a for a in LIARS if a not in NOT_A_LIE])
def test_lies_go_both_ways(attribute):
    """Something is claimed that is not so, and something is denied that is so: of each word and each kind of value."""
    honest = [getattr(ph.methods[name], attribute) for name in LIARS[attribute].methods]
    if attribute in SETS:
        for word in SETS[attribute]:
            assert {word in said for said in honest} == {True, False}, word
    elif attribute in WORDS:
        assert set(honest) == set(WORDS[attribute])
    elif attribute in ("order", "order_free"):
        assert {said == math.inf for said in honest} == {True, False}
    elif attribute == "asks":
        assert {type(query) for said in honest for query in said.parts} == set(QUERIES)
    else:
        assert {bool(said) for said in honest} == {True, False}

"""Kick-drift schemes over a free flow, and symmetric compositions of any method.

A kick is the flow of the potential, Pi += c h T(t, R), R fixed; a drift is a free flow. The combinators
take the flow or the method as a name, an expression or a Method, and derive the declaration of what they
make: the scheme's order if the drift is accurate enough, else the drift's.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from ..coefficients import Splitting, compositions, splittings
from ..declare import Method, Step, declare, methods
from ..errors import InputError
from ..exact_numbers import Surd, converted
from ..scalar import kernel
from ..so3 import along

Number = Callable[[Any], Any]


def kick_drift(flow: Step, kicks: Sequence[Any], drifts: Sequence[Any]) -> Step:
    """Step kernel: kick, drift, kick, ..., drift, kick with these fractions of h; the drifts carry the clock."""
    first, later, parts = kicks[0], tuple(kicks[1:]), tuple(drifts)
    clock = tuple(itertools.accumulate(parts))

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m = y
        m = along(m, first * h, torque(t, q, m, system))
        miss = 0 * h
        for i in range(len(parts)):
            (q, m), more = flow(parts[i] * h, t, (q, m), system, torque)
            miss = miss + more
            m = along(m, later[i] * h, torque(t + clock[i] * h, q, m, system))
        return (q, m), miss

    return step


def corrected_kick_drift(flow: Step, kicks: Sequence[Any], drifts: Sequence[Any], modified: Sequence[Any]) -> Step:
    """As `kick_drift`, each kick also by the torque of V over its `modified` part of h^3."""
    first, later, parts = kicks[0], tuple(kicks[1:]), tuple(drifts)
    extra, extras = modified[0], tuple(modified[1:])

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        q, m = y
        h3 = h * h * h
        force, curl = torque(t, q, m, system)
        m = along(along(m, first * h, force), extra * h3, curl)
        miss = 0 * h
        for i in range(len(parts)):
            (q, m), more = flow(parts[i] * h, t, (q, m), system, torque)
            miss = miss + more
            force, curl = torque(t, q, m, system)
            m = along(along(m, later[i] * h, force), extras[i] * h3, curl)
        return (q, m), miss

    return step


def composed(step: Step, weights: Sequence[Any]) -> Step:
    """Step kernel: the given one over w_1 h, then over w_2 h, and so on."""
    parts = tuple(weights)
    starts = (0 * parts[0], *itertools.accumulate(parts))

    @kernel
    def steps(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        miss = 0 * h
        for i in range(len(parts)):
            y, more = step(parts[i] * h, t + starts[i] * h, y, system, torque)
            miss = miss + more
        return y, miss

    return steps


def _flow(name: str, flow: str | Method) -> Method:
    chosen = methods[flow]
    if chosen.needs != "free":
        raise InputError(
            f"{name}() drifts by a free flow, and {chosen.name} integrates torques itself; compose it instead"
        )
    return chosen


def _half(value: Any) -> Any:
    return value / 2 if isinstance(value, Fraction) else Surd(value.rational / 2, value.factor / 2, value.radicand)


def kicked(
    name: str,
    flow: Method,
    kicks: Sequence[Any],
    drifts: Sequence[Any],
    *,
    order: float,
    order_free: float,
    **said: Any,
) -> Method:
    """The kick-drift method over a free flow, its declaration derived from the flow's."""

    def build(number: Number) -> Step:
        exact = [[converted(c, number) for c in part] for part in (kicks, drifts)]
        return kick_drift(flow.build(number), *exact)

    return declare(
        build, register=False, name=f"{name}({flow.name})", order=order, order_free=order_free,
        symmetric=flow.symmetric, symplectic=flow.symplectic, poisson=flow.poisson, implicit=flow.implicit,
        solves=flow.solves * len(drifts), torque_evals=len(drifts) + 1, torque_at_ends=True,
        conserves=flow.conserves, needs="attitude", identity=f"{flow.identity} {kicks} {drifts}",
        linear_bodies=flow.linear_bodies, flat_bodies=flow.flat_bodies, **said,
    )  # fmt: skip


def strang(flow: str | Method) -> Method:
    """Half a kick, a drift, half a kick: the splitting of Strang over any free flow."""
    drift = _flow("strang", flow)
    half = Fraction(1, 2)
    return kicked(
        "strang", drift, (half, half), (Fraction(1),), order=2, order_free=drift.order_free,
        cite="strang1968", where="Vilmart (2013), (16)", doc=f"Strang splitting with the drift {drift.name}.",
    )  # fmt: skip


def composition(
    name: str, weights: Sequence[Any], order: int, cite: str, where: str
) -> Callable[[str | Method], Method]:
    """The combinator of a symmetric composition with these weights.

    Of a symmetric method of order 2 or more it makes one of its own order. Of a free flow it makes the
    composition of its Strang splitting, neighbouring half kicks joined.
    """

    def combine(part: str | Method) -> Method:
        base = methods[part]
        if not base.symmetric or base.order_free < 2:
            raise InputError(f"{name}() composes a symmetric method of order 2 or more; {base.name} is not one")
        doc = f"{name}: symmetric composition of order {order} with {len(weights)} stages of {base.name}."
        if base.needs == "free":
            joined = [_half(weights[0]), *(_half(a + b) for a, b in itertools.pairwise(weights)), _half(weights[-1])]
            return kicked(
                name, base, joined, weights, order=order, order_free=max(order, base.order_free),
                cite=cite, where=where, doc=doc,
            )  # fmt: skip
        return _composed(name, base, weights, order, cite=cite, where=where, doc=doc)

    combine.__name__, combine.__doc__ = name, f"Symmetric composition of order {order}, {len(weights)} stages ({cite})."
    return combine


def _composed(name: str, base: Method, weights: Sequence[Any], order: int, **said: Any) -> Method:
    """A composition of a method that integrates torques itself."""
    n = len(weights)
    shared = n - 1 if base.torque_at_ends else 0

    def build(number: Number) -> Step:
        return composed(base.build(number), [converted(w, number) for w in weights])

    return declare(
        build, register=False, name=f"{name}({base.name})", order=max(order, base.order),
        order_free=max(order, base.order_free), symmetric=True, symplectic=base.symplectic, poisson=base.poisson,
        implicit=base.implicit, solves=n * base.solves, torque_evals=n * base.torque_evals - shared,
        torque_at_ends=base.torque_at_ends,
        conserves=base.conserves - {"energy_midpoint", "spatial_momentum_midpoint"}, needs=base.needs,
        identity=f"{base.identity} {weights}", linear_bodies=base.linear_bodies,
        flat_bodies=base.flat_bodies, **said,
    )  # fmt: skip


def splitting(scheme: Splitting) -> Callable[[str | Method], Method]:
    """The combinator of a splitting into kicks and drifts; it needs a drift at least as accurate as itself."""

    def combine(flow: str | Method) -> Method:
        drift = _flow(scheme.name, flow)
        uses_v = any(v != 0 for v in scheme.modified)
        at_ends = scheme.sequence[0].flow == "U"
        pad = () if at_ends else (Fraction(0),)
        kicks, modified = (*pad, *scheme.kicks, *pad), (*pad, *scheme.modified, *pad)
        order = int(min(scheme.order, drift.order_free))
        limit = "" if order == scheme.order else f" Order {order} only: the drift is of order {drift.order_free}."
        made = kicked(
            scheme.name, drift, kicks, scheme.drifts, order=order, order_free=drift.order_free,
            cite=scheme.cite, where=scheme.where, doc=f"{scheme.name} splitting with the drift {drift.name}.{limit}",
        )  # fmt: skip
        if uses_v:
            made = dataclasses.replace(
                made, build=_corrected_build(drift, kicks, scheme.drifts, modified), needs="potential", corrector=True
            )
        points = sum(k != 0 or v != 0 for k, v in zip(kicks, modified, strict=True))
        return dataclasses.replace(
            made, torque_evals=points, torque_at_ends=at_ends, identity=f"{made.identity} {modified}"
        )

    combine.__name__, combine.__doc__ = (
        scheme.name,
        f"Splitting {scheme.where} of order {scheme.order} ({scheme.cite}).",
    )
    return combine


def _corrected_build(flow: Method, *parts: Sequence[Any]) -> Callable[[Number], Step]:
    def build(number: Number) -> Step:
        exact = [[converted(c, number) for c in part] for part in parts]
        return corrected_kick_drift(flow.build(number), *exact)

    return build


methods.add_combinator("strang", strang)
for _composition in compositions.values():
    methods.add_combinator(
        _composition.name,
        composition(_composition.name, _composition.weights, _composition.order, _composition.cite, _composition.where),
    )
for _splitting in splittings.values():
    methods.add_combinator(_splitting.name, splitting(_splitting))

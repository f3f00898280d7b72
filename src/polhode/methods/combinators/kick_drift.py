"""Kick-drift schemes over a free flow, and symmetric compositions of any method.

A kick is the flow of the potential, Pi += c h T(t, R), R fixed; a drift is a free flow. The combinators
take the flow or the method as a name, an expression or a Method, and derive the declaration of the result.
Its order is that of the scheme if the drift is accurate enough, else that of the drift.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from ...errors import InputError
from ...kernels.loops import Step
from ...kernels.so3 import along, scale
from ...kernels.state import kick
from ...numbers.dispatch import kernel
from ...numbers.exact import Surd, converted
from ...symbolic import latex
from ..flows import scaled
from ..queries import FieldQuery, Torque, TorqueAndCorrector
from ..ranking import fitting, listed
from ..record import ENDS, Build, Flow, Method, Term
from ..registry import declare, methods
from ..tables.compositions import Part, Processed, Splitting, compositions, splittings
from ..tables.compositions import processed as processed_splittings
from .compose import require_fixed_step, whole

Number = Callable[[Any], Any]


def kick_drift(flow: Step, kicks: Sequence[Any], drifts: Sequence[Any], at_start: bool = True) -> Step:
    """Step kernel: alternate kicks and drifts with these fractions of h, a kick first if `at_start`.

    Time advances with the drifts.
    """
    first, later, parts = kicks[0], tuple(kicks[at_start:]), tuple(drifts)
    clock, kicked = tuple(itertools.accumulate(parts)), len(later)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        if at_start:
            y = kick(y, scale(first * h, torque(t, y[0], y[1], system)))
        residual = 0 * h
        for i in range(len(parts)):
            y, more = flow(parts[i] * h, t, y, system, torque)
            residual = residual + more
            if i < kicked:
                y = kick(y, scale(later[i] * h, torque(t + clock[i] * h, y[0], y[1], system)))
        return y, residual

    return step


def corrected_kick_drift(
    flow: Step, kicks: Sequence[Any], drifts: Sequence[Any], modified: Sequence[Any], at_start: bool = True
) -> Step:
    """Step kernel: as `kick_drift`, but each kick also applies the torque of V over its `modified` fraction of h^3."""
    first, later, parts = kicks[0], tuple(kicks[at_start:]), tuple(drifts)
    extra, extras, kicked = modified[0], tuple(modified[at_start:]), len(later)

    @kernel
    def step(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        h3 = h * h * h
        if at_start:
            force, correction_torque = torque(t, y[0], y[1], system)
            y = kick(y, along(scale(first * h, force), extra * h3, correction_torque))
        residual = 0 * h
        for i in range(len(parts)):
            y, more = flow(parts[i] * h, t, y, system, torque)
            residual = residual + more
            if i < kicked:
                force, correction_torque = torque(t, y[0], y[1], system)
                y = kick(y, along(scale(later[i] * h, force), extras[i] * h3, correction_torque))
        return y, residual

    return step


def composed(step: Step, weights: Sequence[Any]) -> Step:
    """Step kernel: `step` over w_1 h, then over w_2 h, and so on."""
    parts = tuple(weights)
    starts = (0 * parts[0], *itertools.accumulate(parts))

    @kernel
    def steps(h: Any, t: Any, y: Any, system: Any, torque: Any) -> Any:
        residual = 0 * h
        for i in range(len(parts)):
            y, more = step(parts[i] * h, t + starts[i] * h, y, system, torque)
            residual = residual + more
        return y, residual

    return steps


def _flow(name: str, flow: str | Method) -> Method:
    chosen = require_fixed_step(methods[flow])
    if chosen.needs != "free":
        raise InputError(
            f"{name}() needs a method for free bodies as its drift, such as {name}(jacobi); {chosen.name} integrates "
            f"torques itself{_alone(chosen)}"
        )
    return chosen


def _alone(method: Method) -> str:
    """Say how a method that integrates torques is written without a splitting."""
    composed = methods.get(f"yoshida4({method.name})")
    higher = "" if composed is None else f", or {composed.name} for order {composed.order}"
    return f": write {method.name}{higher}"


def _half(value: Any) -> Any:
    return value / 2 if isinstance(value, Fraction) else Surd(value.rational / 2, value.factor / 2, value.radicand)


def sequence_build(flow: Method, sequence: Sequence[Part], asks: FieldQuery) -> Build:
    """Return the builder of alternating drifts by this flow and kicks; with a corrector `torque` also returns V's."""
    kicks, drifts = ([part for part in sequence if part.flow == kind] for kind in "UT")
    at_start = sequence[0].flow == "U"

    def build(number: Number) -> Step:
        def exact(values: Iterable[Any]) -> list[Any]:
            return [converted(value, number) for value in values]

        times = exact(kick.time for kick in kicks), exact(drift.time for drift in drifts)
        if asks == Torque():
            return kick_drift(flow.build(number), *times, at_start)
        return corrected_kick_drift(flow.build(number), *times, exact(kick.modified for kick in kicks), at_start)

    return build


def joined(sequence: Iterable[Part]) -> list[Part]:
    """Merge neighbouring drifts, and neighbouring kicks."""
    parts: list[Part] = []
    for part in sequence:
        if parts and parts[-1].flow == part.flow:
            last = parts.pop()
            part = Part(part.flow, last.time + part.time, last.modified + part.modified)
        parts.append(part)
    return parts


def kicked(name: str, flow: Method, sequence: Sequence[Part], summary: str, **declared: Any) -> Method:
    """Build the kick-drift method over a free flow, with its declaration derived from that of the flow."""
    corrector = any(part.modified != 0 for part in sequence)
    asks = TorqueAndCorrector() if corrector else Torque()
    kicks, drifts = (sum(part.flow == kind for part in sequence) for kind in "UT")
    return declare(
        sequence_build(flow, sequence, asks), register=False, name=f"{name}({flow.name})",
        order_free=flow.order_free, implicit=flow.implicit, solves=flow.solves * drifts, torque_evals=kicks,
        torque_at=ENDS if sequence[0].flow == "U" else (), conserves=flow.conserves, asks=asks,
        needs="potential" if corrector else "attitude",
        linear_bodies=flow.linear_bodies, flat_bodies=flow.flat_bodies, increments=flow.increments,
        compensated=flow.compensated, flows=_flows(flow, sequence), sequence=tuple(sequence), drift=flow,
        doc=f"{summary}\n{SEQUENCE.format(flow.name, *_sequence_formula(name, sequence))}{flow.formula}",
        **(_kept_by(flow) | declared),
    )  # fmt: skip


SEQUENCE = r"""
A step is a sequence of kicks and drifts, the first to act on the right:

$$\Phi_h = {1}$$

A kick $\mathrm K$ leaves the attitude and changes the momentum, a drift $\mathrm D(s)$ is the step of {0} over $s$, and
time advances with the drifts. The coefficients are

{2}

The drift:

"""
KICK = r"""$$\mathrm K(b) \colon \quad \Pi \leftarrow \Pi + b\,h\,T(t, R)$$"""
CORRECTED_KICK = r"""$$\mathrm K(b, v) \colon \quad \Pi \leftarrow \Pi + b\,h\,T(R) + v\,h^3\,T_V(R)$$

where $T_V = -\operatorname{rot}(R^{\mathsf T} \partial V/\partial R)$ is the torque of the modified potential
$V = T \cdot I^{-1} T$."""


SHOWN: dict[tuple[str, int], tuple[str, str]] = {}
"""Formulas of sequences, by the name of the scheme and the length: a scheme is used over many flows."""


def _sequence_formula(name: str, sequence: Sequence[Part]) -> tuple[str, str]:
    """Return the formula of a sequence, and its coefficients."""
    key = name, len(sequence)
    if key not in SHOWN:
        SHOWN[key] = _in_turn(sequence), _values(sequence)
    return SHOWN[key]


def _in_turn(sequence: Sequence[Part]) -> str:
    """Formula of the sequence, with its first part on the right, as maps are written."""
    counts = {"U": 0, "T": 0}
    named = []
    corrected = any(part.modified != 0 for part in sequence)
    for part in sequence:
        counts[part.flow] += 1
        n = counts[part.flow]
        modified = f", v_{{{n}}}" if corrected else ""
        named.append(f"\\mathrm K(b_{{{n}}}{modified})" if part.flow == "U" else f"\\mathrm D(a_{{{n}}} h)")
    named.reverse()
    return " \\circ ".join(named if len(named) < 8 else [*named[:3], "\\cdots", *named[-3:]])


def _values(sequence: Sequence[Part]) -> str:
    """Displayed formulas of the kick and the coefficients of a sequence."""
    kicks, drifts = ([part for part in sequence if part.flow == kind] for kind in "UT")
    modified = tuple(kick.modified for kick in kicks)
    lists = [("b", tuple(kick.time for kick in kicks)), ("a", tuple(drift.time for drift in drifts))]
    lists += [("v", modified)] if any(v != 0 for v in modified) else []
    kick = CORRECTED_KICK if any(v != 0 for v in modified) else KICK
    return "\n\n".join([*(latex.numbered(letter, values) for letter, values in lists), kick])


def _flows(flow: Method, sequence: Sequence[Part]) -> tuple[Flow, ...]:
    """Exact flows of kicks and drifts, if those of the drift are known."""
    found: list[Flow] = []
    for part in sequence if flow.flows else ():
        if part.flow == "T":
            found += scaled(flow.flows, part.time)
        else:
            modified = (Term("V", (part.modified,), 3),) if part.modified != 0 else ()
            found.append((Term("U", (part.time,)), *modified))
    return tuple(found)


def _kept_by(flow: Method) -> dict[str, Any]:
    """Properties of a flow that kicks preserve."""
    return {"symmetric": flow.symmetric, "symplectic": flow.symplectic, "poisson": flow.poisson}


def strang(flow: str | Method) -> Method:
    """Half a kick, a drift, half a kick: Strang splitting over any free flow."""
    drift = _flow("strang", flow)
    half = Part("U", Fraction(1, 2))
    return kicked(
        "strang", drift, (half, Part("T", Fraction(1)), half), order=2,
        cite="strang1968", where="Vilmart (2013), (16)", summary=f"Strang splitting with the drift {drift.name}.",
    )  # fmt: skip


def composition(
    name: str, weights: Sequence[Any], order: int, cite: str, where: str
) -> Callable[[str | Method], Method]:
    """Return the combinator of a symmetric composition with these weights.

    It raises a symmetric method of order 2 or more to its own order. For a free flow it composes the Strang
    splitting of that flow, with neighbouring half kicks merged.
    """

    def combine(part: str | Method) -> Method:
        base = require_fixed_step(methods[part])
        if base.memory:
            raise InputError(
                f"{name}() composes steps of different lengths, and {base.name} has memory of its last step; use a "
                "one-step method"
            )
        if not base.symmetric or base.order_free < 2:
            raise InputError(
                f"{name}() composes a symmetric method of order 2 or more, such as {name}(imidm); {base.name} is "
                "not one"
            )
        summary = f"{name}: symmetric composition of order {order} with {len(weights)} stages of {base.name}."
        if base.needs == "free":
            joined = [_half(weights[0]), *(_half(a + b) for a, b in itertools.pairwise(weights)), _half(weights[-1])]
            sequence = [Part("U", joined[0])]
            for weight, kick in zip(weights, joined[1:], strict=True):
                sequence += [Part("T", weight), Part("U", kick)]
            method = kicked(name, base, sequence, summary, order=order, cite=cite, where=where)
            return dataclasses.replace(method, order_free=max(order, base.order_free))
        parts = COMPOSITION % (_stages(weights), latex.numbered("w", weights), base.name)
        doc = f"{summary}\n{parts}{base.formula}"
        return _composed(name, base, weights, order, cite=cite, where=where, doc=doc)

    combine.__name__, combine.__doc__ = name, f"Symmetric composition of order {order}, {len(weights)} stages ({cite})."
    return combine


COMPOSITION = r"""
$$\Phi_h = %s$$

%s

$\Psi_s$ is a step of %s over $s$; time advances with the stages.

"""


def _stages(weights: Sequence[Any]) -> str:
    """Formula of a composition, with its last stage on the left."""
    named = [f"\\Psi_{{w_{{{i}}} h}}" for i in range(len(weights), 0, -1)]
    return " \\circ ".join(named if len(named) < 6 else [*named[:2], "\\cdots", *named[-2:]])


def _composed(name: str, base: Method, weights: Sequence[Any], order: int, **declared: Any) -> Method:
    """Build a composition of a method that integrates torques itself."""
    n = len(weights)
    shared = n - 1 if base.torque_at_ends else 0

    def build(number: Number) -> Step:
        return composed(whole(base)(number), [converted(w, number) for w in weights])

    return declare(
        build, register=False, name=f"{name}({base.name})", order=max(order, base.order),
        order_free=max(order, base.order_free), symmetric=True, symplectic=base.symplectic, poisson=base.poisson,
        implicit=base.implicit, solves=n * base.solves, torque_evals=n * base.torque_evals - shared,
        torque_at=base.torque_at,
        conserves=base.conserves - {"energy_midpoint", "spatial_momentum_midpoint"}, needs=base.needs,
        linear_bodies=base.linear_bodies, flat_bodies=base.flat_bodies,
        increments=base.increments, compensated=base.compensated, asks=base.asks,
        flows=tuple(flow for w in weights for flow in scaled(base.flows, w)), **declared,
    )  # fmt: skip


def _generalised(scheme: Splitting) -> str:
    """Orders in h of the terms of first and second order in a small potential, for a near-integrable scheme."""
    return " (for a small potential {}, {})".format(*scheme.generalised) if scheme.generalised else ""


def splitting(scheme: Splitting) -> Callable[[str | Method], Method]:
    """Return the combinator of a splitting into kicks and drifts; a less accurate drift limits its order."""

    def combine(flow: str | Method) -> Method:
        drift = _flow(scheme.name, flow)
        order, limit = _limited(scheme, drift)
        return kicked(
            scheme.name, drift, scheme.sequence, order=order, cite=scheme.cite, where=scheme.where,
            summary=f"{scheme.name} splitting with the drift {drift.name}.{limit}",
        )  # fmt: skip

    combine.__name__, combine.__doc__ = (
        scheme.name,
        f"Splitting of order {scheme.order}{_generalised(scheme)}: {scheme.where} ({scheme.cite}).",
    )
    return combine


def _limited(scheme: Splitting | Processed, drift: Method) -> tuple[int, str]:
    """Return the order of a scheme over a drift, and a sentence if the drift limits it."""
    order = int(min(scheme.order, drift.order_free))
    return order, "" if order == scheme.order else f" Order {order} only: the drift is of order {drift.order_free}."


PROCESSED = r"""
A run changes variables once, makes all its steps $\Phi_h$ in the new variables, and changes back only for output:

$$y_n = \pi_h \circ \Phi_h^n \circ \pi_h^{-1}\,(y_0)$$

The change of variables $\pi_h$ is itself a sequence of kicks and drifts,

$$\pi_h = %s$$

%s

and $\pi_h^{-1}$ is the same sequence backwards with negative coefficients. The step:

"""


def processed(scheme: Processed) -> Callable[[str | Method], Method]:
    """Return the combinator of a processed splitting: `before`, then many steps of the kernel, then `after`.

    The two changes of variables are exact inverses, because the drift with -h is the inverse of the drift with h. They
    are even in h only up to the order that the scheme needs, so the whole is not symmetric, although its kernel is.
    """

    def combine(flow: str | Method) -> Method:
        drift = _flow(scheme.name, flow)
        if not drift.symmetric:
            raise InputError(
                f"{scheme.name}() undoes its change of variables by drifts over -h, and {drift.name} is not "
                "symmetric; use a symmetric free flow"
            )
        order, limit = _limited(scheme, drift)
        declared: dict[str, Any] = {
            "order": order, "symmetric": False, "cite": scheme.cite, "where": scheme.where,
            "summary": f"{scheme.name}: processed splitting with the drift {drift.name}.{limit}",
        }  # fmt: skip
        repeated = kicked(scheme.name, drift, scheme.kernel.sequence, **declared)
        before, after = (sequence_build(drift, parts, repeated.asks) for parts in (scheme.pre, scheme.post))
        alone = kicked(scheme.name, drift, joined(scheme.sequence), **declared)
        return dataclasses.replace(
            repeated, before=before, after=after, unprocessed=alone, flows=alone.flows,
            doc=f"{repeated.summary}\n" + PROCESSED % _sequence_formula(f"{scheme.name}, post", scheme.post)
            + repeated.formula,
        )  # fmt: skip

    combine.__name__, combine.__doc__ = (
        scheme.name,
        f"Processed splitting of order {scheme.order}: {scheme.where} ({scheme.cite}).",
    )
    return combine


COMPENSATED = r"""
Every number $x$ of the state is carried as a sum $x + \delta$ of a double and its rounding error. A part of
the step that adds $\Delta$ to it gives, with $\oplus$ the rounded sum,

$$\begin{aligned}
s &= x \oplus \Delta, & \delta_1 &= \delta_0 \oplus (x + \Delta - s), \\
x_1 &= s \oplus \delta_1, & \delta_2 &= \delta_1 - (x_1 - s)
\end{aligned}$$

where $x + \Delta - s$, the error of a rounded sum, is exact. The increments are those of a step of %s:

"""


def compensated(part: str | Method) -> Method:
    """The same method with compensated sums, which carry the rounding errors of the state: for very long runs.

    In exact arithmetic nothing changes, so the declaration is that of the part. G. Vilmart, Reducing round-off errors
    in rigid body dynamics (2008).
    """
    base = methods[part]
    if not base.increments:
        able = listed(fitting("free", lambda m: m.increments))
        raise InputError(
            f"compensated() needs steps written as increments of the state, and {base.name} computes new states; "
            f"use {able}, or schemes and compositions of them"
        )
    if base.compensated:
        return base
    return dataclasses.replace(
        base, name=f"compensated({base.name})", aliases=(), compensated=True,
        cite="vilmart2008", where=f"compensated summation; the step: {base.cite}, {base.where}",
        doc=f"{base.name} with compensated sums.\n" + COMPENSATED % base.name + base.formula,
    )  # fmt: skip


methods.add_combinator("compensated", compensated)
methods.add_combinator("strang", strang)
for _composition in compositions.values():
    methods.add_combinator(
        _composition.name,
        composition(_composition.name, _composition.weights, _composition.order, _composition.cite, _composition.where),
    )
for _splitting in splittings.values():
    methods.add_combinator(_splitting.name, splitting(_splitting))
for _processed in processed_splittings.values():
    methods.add_combinator(_processed.name, processed(_processed))

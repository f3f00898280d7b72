"""Taylor steps of a body with a variation of its motion beside it.

The variation (d, e) of `equations.variational_rates` is linear, so its series have the radius of convergence of those
of the motion, and share their coefficients. It is scaled before each step and divided by its length after it.

MEGNO and its mean are integrals of the logarithm of the length L over the step (`fields/variation`). With s the time in
units of the run and weighted(s) = int s dL = s L - int L ds, collocation at the nodes c_i of Lobatto's rule
gives, for a step by h,

    weighted_i = weighted_0 + s_i L_i - h sum_j a_ij L_j,        mean_1 = mean_0 + 2 h sum_i b_i weighted_i/s_i.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..kernels.so3 import rotate, scale, times, unrotate
from ..kernels.unroll import unrolled_kernel
from ..numbers.dispatch import kernel
from ..numbers.primitives import log, sqrt, where
from ..taylor.writer import Series, Writer, series
from .equations import PARAMETERS, attitude_rates, spinning, starts, torque_of, variational_rates
from .fields import Field
from .fields.parameters import leaves_of
from .fields.trace import once_for_formula
from .fields.variation import GROWTH, MEAN, OWN, PREFIX, SIZE, TIME, WEIGHTED, VariationField
from .taylor_steps import BODY, Expanded, body_at_end, body_weights, chosen_body


@once_for_formula
def _series(
    field: Field | None, has_principal_rotation: bool, parameters: int, order: int, writer: type[Writer]
) -> Series:
    """The series of w, q, d and e; `parameters` is the number of those before the principal axes."""
    rates = spinning(torque_of(field, has_principal_rotation)) | attitude_rates()
    rates |= variational_rates(None if field is None else field.graph[0], has_principal_rotation)
    return series(PARAMETERS, starts(parameters), rates, (), order + 1, writer)


# --- with the growth of the variation ---------------------------------------------------------------

Nodes = tuple[Fraction, ...]
"""Nodes of a rule after the start of a step, as parts of it; the last is the end."""


def _nodes(*half: str) -> Nodes:
    """Nodes of a rule from those in the first half of a step."""
    inner = list(map(Fraction, half))
    return (*inner, Fraction(1, 2), *(1 - c for c in reversed(inner)), Fraction(1))


LOW = _nodes("0.1726731646460114281008537718765708222154")
HIGH = _nodes("0.08488805186071653506398389301626743020641", "0.26557560326464289309811405904561683529720")
"""Lobatto's rules of orders 8 and 12: the zeros of P_4'(2 c - 1) and P_6'(2 c - 1), to 40 digits, and the end."""

COARSE = 1e-5
"""Step tolerance from which on the rule of order 8 is used: its error is then smaller than that of the motion."""


@functools.cache
def integrals(nodes: Nodes) -> tuple[tuple[Fraction, ...], ...]:
    """Integrals from the start to each node, as weights of the values at the nodes: Lobatto IIIA.

    The value at the start is zero, and has no weight.
    """
    found = []
    for j, node in enumerate(nodes):
        polynomial, size = [Fraction(0), Fraction(1)], node  # c prod_(i != j) (c - c_i), divided by its value at c_j
        for other in (x for i, x in enumerate(nodes) if i != j):
            shifted = [Fraction(0), *polynomial]
            polynomial = [a - other * b for a, b in zip(shifted, [*polynomial, Fraction(0)], strict=True)]
            size *= node - other
        found.append([sum(a * c ** (k + 1) / (k + 1) for k, a in enumerate(polynomial)) / size for c in nodes])
    return tuple(zip(*found, strict=True))


ERROR = 4
"""Error allowed in a step for a variation of length 1, over that of the attitude.

By measurement on tops the growth is then at least as accurate as the momentum, for tolerances from 1e-3 to 1e-12.
"""


@kernel
def _square(d: Any, e: Any, period: Any) -> Any:
    """The squared length of a variation."""
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + period * period * (e[0] * e[0] + e[1] * e[1] + e[2] * e[2])


@kernel
def _ahead(v: Any, sums: Any, part: Any) -> Any:
    """A variation after a part of the step."""
    d = v[0] + part * sums[0], v[1] + part * sums[1], v[2] + part * sums[2]
    return d, (v[3] + part * sums[3], v[4] + part * sums[4], v[5] + part * sums[5])


def mean_growth(nodes: Nodes) -> Callable[..., Any]:
    """Kernel (L at the nodes, share, weighted, mean, s) -> (weighted, mean) after the step."""
    weights, last = integrals(nodes), len(nodes) - 1
    first = float(2 * (1 - sum(weights[-1])))
    lines = [f"mean = mean + share * where(s > 0, weighted / where(s > 0, s, 1.0), 0.0) * {first!r}"]
    for i, node in enumerate(nodes):
        integral = " + ".join(f"{float(a)!r} * L[{j}]" for j, a in enumerate(weights[i]))
        lines += [f"s{i} = s + {float(node)!r} * share", f"w{i} = weighted + s{i} * L[{i}] - share * ({integral})"]
        lines += [f"mean = mean + share * (w{i} / s{i}) * {2 * float(weights[-1][i])!r}"]
    return unrolled_kernel("L, share, weighted, mean, s", f"(w{last}, mean)", *lines, where=where)


def growing_variation(field: VariationField, has_principal_rotation: bool, nodes: Nodes = HIGH) -> Expanded:
    """A body with a variation of length 1 and its growth: the states of a `VariationField`.

    `nodes` are those of the rule for the integrals of the growth.
    """
    base, count = field.template.base, len(field.parameters)
    assert base is not None
    places = _places(field)
    nu, period, per_span = (places[name] for name in ("frequency", "period", "per_span"))
    into = unrolled_kernel("v, system", *_turned("unrotate", count, has_principal_rotation), unrotate=unrotate)
    out_of = unrolled_kernel("v, system", *_turned("rotate", count, has_principal_rotation), rotate=rotate)
    integrated = mean_growth(nodes)

    @kernel
    def variation(y: Any, system: Any) -> Any:
        z = y[2]
        d, e = into((z[0], z[1], z[2]), system), into(scale(system[2][nu], (z[3], z[4], z[5])), system)
        return d[0], d[1], d[2], e[0], e[1], e[2]

    @kernel
    def start(y: Any, system: Any) -> Any:
        w, v = times(system[1], y[1]), variation(y, system)
        return y[0], (w[0], w[1], w[2], v[0], v[1], v[2], v[3], v[4], v[5])

    @kernel
    def weights(y: Any, system: Any, squares: Any) -> Any:
        a, b, c, turn, _, _, _ = body_weights(y, system, squares)
        angle = turn / (2 * ERROR)
        spin = angle * system[2][period]
        return a, b, c, turn, turn, turn, turn, angle, angle, angle, spin, spin, spin

    def ended(make: Callable[[int], Callable[..., Any]]) -> Callable[..., Any]:
        some = make(BODY)

        @kernel
        def length(v: Any, part: Any, expanded: Any, over: Any) -> Any:
            d, e = _ahead(v, some(expanded, part), part)
            return log(_square(d, e, over)) / 2

        inner = "".join(f"length(v, {float(node)!r} * part, expanded, over), " for node in nodes[:-1])
        lengths = unrolled_kernel("v, part, expanded, over, last", f"({inner}last)", length=length)

        @kernel
        def end(y: Any, sums: Any, part: Any, h: Any, system: Any, expanded: Any) -> Any:
            z, v, over = y[2], variation(y, system), system[2][period]
            q, m = body_at_end(y, sums, part, h, system, expanded)
            d, e = _ahead(v, (sums[7], sums[8], sums[9], sums[10], sums[11], sums[12]), part)
            square = _square(d, e, over)
            growth, scaled = log(square) / 2, 1 / sqrt(square)
            share = h * system[2][per_span]
            weighted, mean = integrated(lengths(v, part, expanded, over, growth), share, z[WEIGHTED], z[MEAN], z[TIME])
            d, e = out_of(scale(scaled, d), system), out_of(scale(scaled * over, e), system)
            following = (
                d[0], d[1], d[2], e[0], e[1], e[2], z[GROWTH] + growth, weighted, mean, z[TIME] + share
            )  # fmt: skip
            return q, m, following

        return end

    return Expanded(
        lambda most, writer: _series(base, has_principal_rotation, count, most, writer),
        start, weights, ended, _chosen(SIZE),
    )  # fmt: skip


def _chosen(size: int) -> Callable[..., Any]:
    """Kernel that selects one of two states (q, m, z), z of `size` numbers."""
    numbers = "".join(f"where(condition, yes[2][{i}], no[2][{i}]), " for i in range(size))
    return unrolled_kernel(
        "condition, yes, no", f"(*body(condition, yes, no), ({numbers}))", body=chosen_body, where=where
    )


def _turned(how: str, count: int, has_principal_rotation: bool) -> tuple[str]:
    """Source of a vector in other axes; `count` is the number of parameters before the axes."""
    own = "".join(f"system[2][{count + i}], " for i in range(4))
    return (f"{how}(({own}), v)" if has_principal_rotation else "v",)


def _places(field: VariationField) -> dict[str, int]:
    """Places of the parameters of a variation among those of the field."""
    base = field.template.base
    assert base is not None
    found, place = {}, field.first + len(base.parameters)
    for name in OWN:
        found[name] = place
        value = field.values[PREFIX + name]
        place += len(leaves_of(value))
    return found

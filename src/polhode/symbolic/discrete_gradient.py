"""Discrete gradients of formulas, by automatic differentiation with difference quotients instead of derivatives.

For a formula U and two points x, y of its inputs the discrete gradient G(x, y) satisfies, to round-off,

    sum_i G_i (y_i - x_i) = U(y) - U(x),    G(x, y) = G(y, x),    G(x, x) = grad U(x).

The backward sweep of `expression.gradient` gives it when the slope of every operation is replaced by its symmetric
difference quotient: for a product the mean of the other factor, for 1/x the number -1/(x y), for sin the number
cos((x + y)/2) sinc((y - x)/2), and so on. No quotient is a difference divided by a difference, so no digits are lost
and no 0/0 occurs if the two points are close or equal.
T. Matsubara, A. Ishikawa, T. Yaguchi, Deep energy-based modeling of discrete-time physics, NeurIPS 2020 (automatic
discrete differentiation); O. Gonzalez, J. Nonlinear Sci. 6 (1996) 449-467 (discrete gradients).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..numbers import primitives
from .expression import COMPARISONS, LOOK_UPS, Expr, Exprs, lift, ordered, summation_of

Slopes = list[tuple[Expr, Expr]]
"""Arguments of a node, each with the difference quotient of the node with respect to it."""


def discrete_gradient(output: Expr, start: Sequence[Expr], end: Sequence[Expr]) -> tuple[list[Expr], Expr]:
    """Discrete gradient of a formula between the symbols `start`, in which it is written, and `end`.

    Returns its components and U(end) - U(start), computed from them.
    """
    output = _without_powers(output)
    nodes = ordered([output])
    ends = _at_end_point(nodes, dict(zip(start, end, strict=True)))
    over: dict[Expr, Expr] = {output: lift(1)}
    for node in reversed(nodes):
        if node not in over or ends[node] is node:
            continue
        for argument, slope in _quotients(node, ends):
            if ends[argument] is not argument:
                over[argument] = over.get(argument, lift(0)) + over[node] * slope
    slopes = [over.get(x, lift(0)) for x in start]
    change = lift(0)
    for slope, x, y in zip(slopes, start, end, strict=True):
        change = change + slope * (y - x)
    return slopes, change


def _without_powers(output: Expr) -> Expr:
    """Rewrite x**y as exp(y log x)."""
    new: dict[Expr, Expr] = {}
    for node in ordered([output]):
        args = [new[a] if isinstance(a, Expr) else a for a in node.args]
        new[node] = (
            primitives.exp(args[1] * primitives.log(args[0])) if node.op == "power" else Expr.make(node.op, *args)
        )
    return new[output]


def _at_end_point(nodes: Sequence[Expr], inputs: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
    """Return every node at the end point; a node that does not depend on the inputs maps to itself.

    An angle atan2 is continued through its jump of 2 pi, by the smallest rotation from its value at the start.
    """
    ends: dict[Expr, Expr] = dict(inputs)
    for node in nodes:
        if node in ends:
            continue
        args = [ends[a] if isinstance(a, Expr) else a for a in node.args]
        if all(a is b for a, b in zip(args, node.args, strict=True)):
            ends[node] = node
        elif node.op == "atan2":
            ends[node] = node + _turn(node, ends)[0]
        else:
            ends[node] = Expr.make(node.op, *args)
    return ends


def _mean(a: Expr, b: Expr) -> Expr:
    return a if a is b else (a + b) / 2


def _guarded(a: Expr, b: Expr, otherwise: Expr) -> Expr:
    """a/b, or `otherwise` if b is zero."""
    zero = Expr.make("eq", b, lift(0))
    return Exprs.where(zero, otherwise, a / Exprs.where(zero, 1, b))


def _over_argument(function: Callable[[Expr], Expr], x: Expr) -> Expr:
    """sin(x)/x, sinh(x)/x or tanh(x)/x; the quotient is accurate everywhere except at zero itself."""
    return _guarded(function(x), x, lift(1.0))


def _turn(node: Expr, ends: Mapping[Expr, Expr]) -> tuple[Expr, Expr]:
    """Change of an angle atan2(y, x), in (-pi, pi], and its quotient by x0 y1 - x1 y0 = mean x dy - mean y dx."""
    y, x = node.args
    area, overlap = x * ends[y] - ends[x] * y, x * ends[x] + y * ends[y]
    turn = primitives.atan2(area, overlap)
    return turn, _guarded(turn, area, 1 / Exprs.where(Expr.make("eq", area, lift(0)), overlap, 1))


def _quotients(node: Expr, ends: Mapping[Expr, Expr]) -> Slopes:
    """Symmetric difference quotients of one operation."""
    op, args = node.op, node.args
    if op in ("symbol", "const", "named", "and", "or", "bracket", *COMPARISONS):
        return []
    x = args[0]
    if op == "item":
        return summation_of(node).quotients(node, ends)
    if op in LOOK_UPS:  # a table entry is constant, unless x passes a knot
        x = x.args[0]
        return [(x, _guarded(ends[node] - node, ends[x] - x, lift(0.0)))]
    if op == "where":
        return _chosen(node, ends)
    if len(args) == 1:
        return [(x, _slope(op, x, ends[x], node, ends[node]))]
    y = args[1]
    if op in ("add", "sub"):
        return [(x, lift(1)), (y, lift(1 if op == "add" else -1))]
    if op == "mul":
        return [(x, _mean(y, ends[y])), (y, _mean(x, ends[x]))]
    if op == "div":
        return [(x, _mean(1 / y, 1 / ends[y])), (y, -(_mean(x, ends[x]) / (y * ends[y])))]
    part = _turn(node, ends)[1]
    return [(x, part * _mean(y, ends[y])), (y, -(part * _mean(x, ends[x])))]  # of atan2(x, y)


def _chosen(node: Expr, ends: Mapping[Expr, Expr]) -> Slopes:
    """Quotients of where(condition, a, b): those of the chosen branch, if it is the same at both ends.

    Otherwise half of each branch, with the smallest change that reproduces the difference of the values.
    """
    condition, a, b = node.args
    first, last = Exprs.where(condition, 1.0, 0.0), Exprs.where(ends[condition], 1.0, 0.0)
    part = _mean(first, last)
    da, db = ends[a] - a, ends[b] - b
    lacking = ends[node] - node - part * da - (1 - part) * db
    share = Exprs.where(Expr.make("eq", first, last), 0.0, _guarded(lacking, da * da + db * db, lift(0.0)))
    return [(a, part + share * da), (b, (1 - part) + share * db)]


def _slope(op: str, x: Expr, y: Expr, fx: Expr, fy: Expr) -> Expr:
    """(f(y) - f(x))/(y - x) for an elementary function of one argument.

    For an inverse function it is the reciprocal of the quotient of the original function between f(x) and f(y).
    """
    sin, cos, sinh, cosh, sqrt = primitives.sin, primitives.cos, primitives.sinh, primitives.cosh, primitives.sqrt
    middle, half = _mean(x, y), (y - x) / 2
    mean_value, half_change = _mean(fx, fy), (fy - fx) / 2
    size = abs(x) + abs(y)
    slopes: dict[str, Callable[[], Expr]] = {
        "abs": lambda: _guarded(x + y, size, lift(1.0)),
        "sqrt": lambda: 1 / (fx + fy),
        "exp": lambda: primitives.exp(middle) * _over_argument(sinh, half),
        "log": lambda: 1 / (sqrt(x) * sqrt(y) * _over_argument(sinh, half_change)),
        "sin": lambda: cos(middle) * _over_argument(sin, half),
        "cos": lambda: -(sin(middle) * _over_argument(sin, half)),
        "tan": lambda: _over_argument(sin, y - x) / (cos(x) * cos(y)),
        "asin": lambda: 1 / (cos(mean_value) * _over_argument(sin, half_change)),
        "acos": lambda: -(1 / (sin(mean_value) * _over_argument(sin, half_change))),
        "atan": lambda: 1 / (sqrt(1 + x * x) * sqrt(1 + y * y) * _over_argument(sin, fy - fx)),
        "sinh": lambda: cosh(middle) * _over_argument(sinh, half),
        "cosh": lambda: sinh(middle) * _over_argument(sinh, half),
        "tanh": lambda: _over_argument(primitives.tanh, y - x) * (1 - fx * fy),
    }
    return slopes[op]()

"""Order conditions of Crouch-Grossman methods, generated for any order.

B. Owren and A. Marthinsen, Runge-Kutta methods adapted to manifolds and based on rigid frames, BIT 39 (1999) 116-142.
The solution and a numerical step are both series over ordered forests, words tau_1 ... tau_m of ordered trees: the
trees represent frozen vector fields, and a product exp(K_1) exp(K_2) ... of operators the flows of K_1, K_2, ...
one after the other. A tree is the tuple of its branches, a forest a tuple of trees, and |.| counts nodes. The
coefficient of the tree tau in the field at a point is the coefficient of the forest B(tau) of its branches in the
point itself. So

    solution  s(tau_1 ... tau_m) = s(tau_1 ... tau_(m-1)) s(B(tau_m)) / |tau_1 ... tau_m|,
    stage i   w_i(tau_1 ... tau_m) = sum over j_1 <= ... <= j_m of prod_k a_(i j_k) w_(j_k)(B(tau_k)) / (repetitions)!,

and the step has order p if the weights b in place of a_i give s for all forests of at most p nodes. Forests of one tree
give the classical conditions; the others come from the order in which the exponentials are multiplied.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from ..methods.tables.butcher import Tableau
from ..numbers.exact import Surd, converted

HIGHEST = 5
"""Highest order that is checked."""

NOTHING = 1e-12
"""Residuals below this count as zero: decimal coefficients have 40 digits or more, doubles leave 1e-15."""

Forest = tuple[Any, ...]


@functools.cache
def forests(nodes: int) -> tuple[Forest, ...]:
    """All ordered forests with this many nodes; their numbers are 1, 1, 2, 5, 14, ..."""
    if nodes == 0:
        return ((),)
    return tuple((tree, *rest) for k in range(1, nodes + 1) for tree in forests(k - 1) for rest in forests(nodes - k))


@functools.cache
def size(forest: Forest) -> int:
    """Number of nodes."""
    return sum(1 + size(tree) for tree in forest)


@functools.cache
def solution(forest: Forest) -> Fraction:
    """Coefficient of the exact solution."""
    return solution(forest[:-1]) * solution(forest[-1]) / size(forest) if forest else Fraction(1)


def product(row: Sequence[Any], fields: Sequence[Sequence[Any]]) -> Any:
    """Coefficient of a word in exp(row_0 K_0) exp(row_1 K_1) ...; fields[k][j] is the one of its k-th tree in K_j.

    In the sweep over j, used[i] is the coefficient of the first i letters in the product of the factors so far.
    """
    letters = len(fields)
    used = [1] + [0] * letters
    for j, a in enumerate(row):
        if a == 0:
            continue
        for end in range(letters, 0, -1):
            term = 1
            for count in range(1, end + 1):
                term = term * a * fields[end - count][j]
                used[end] += used[end - count] * term / math.factorial(count)
    return used[letters]


def weights(tableau: Tableau, number: Any) -> Any:
    """Return the function (row, forest) -> coefficient of the point that a row of weights leads to."""
    rows = [[converted(x, number) for x in row] for row in tableau.a]

    @functools.cache
    def stage(i: int, forest: Forest) -> Any:
        return at(rows[i], forest)

    def at(row: Sequence[Any], forest: Forest) -> Any:
        if not forest:
            return number(1)
        return product(row, [[stage(j, tree) for j in range(len(rows))] for tree in forest])

    return at


def misses(tableau: Tableau, order: int, number: Any = Fraction) -> Iterator[Any]:
    """Residuals of a tableau in the conditions of this order."""
    at, b = weights(tableau, number), [converted(x, number) for x in tableau.b]
    for forest in forests(order):
        yield at(b, forest) - converted(solution(forest), number)


def crouch_grossman_order(tableau: Tableau) -> int:
    """Order of the Crouch-Grossman method of a tableau, explicit or implicit, up to `HIGHEST`."""
    surds = any(isinstance(x, Surd) for row in (*tableau.a, tableau.b) for x in row)
    number = float if surds else Fraction
    order = 0
    while order < HIGHEST and all(abs(x) < NOTHING for x in misses(tableau, order + 1, number)):
        order += 1
    return order

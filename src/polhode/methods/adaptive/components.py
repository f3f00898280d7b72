"""Embedded Runge-Kutta pairs on the numbers of a state, with their error estimates.

In principal axes, with w = I^-1 Pi,

    q' = q (0, w)/2,        Pi_1' = (1/I_3 - 1/I_2) Pi_2 Pi_3 + T_1  and cyclically,

as differential equations for the components (Euler's: Pi' = Pi x w + T). Within the step |q| is 1 only up to the error
of the stages; the equations conserve |q| and are smooth for every q, so the order is that of the tableau. At the end of
the step q is divided by its length. The pairs conserve nothing else: they are for short runs to a tolerance. States of
a field (`physics/fields/states.py`) are further numbers after the seven.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ...kernels.loops import Step
from ...kernels.so3 import dot, norm2, restored
from ...kernels.unroll import unrolled_kernel
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ...numbers.primitives import combined, sqrt, where
from ..record import Estimate, Method
from ..registry import declare
from ..tables.butcher import Tableau


@kernel
def _row_of_body(y: Any) -> Any:
    """Return attitude and momentum as seven numbers."""
    q, m = y
    return q[0], q[1], q[2], q[3], m[0], m[1], m[2]


@kernel
def _further(a: Any, s: Any, b: Any) -> Any:
    """A + s b with rows of seven numbers."""
    return (
        a[0] + s * b[0],
        a[1] + s * b[1],
        a[2] + s * b[2],
        a[3] + s * b[3],
        a[4] + s * b[4],
        a[5] + s * b[5],
        a[6] + s * b[6],
    )


@kernel
def _constants(h: Any, system: Any) -> Any:
    """Factors in `_increments`: h/(2 I) and h (1/I_3 - 1/I_2), cyclically."""
    a, b, c = system[1]
    half = h / 2
    return (half * a, half * b, half * c), (h * (c - b), h * (a - c), h * (b - a))


@kernel
def _increments(h: Any, t: Any, row: Any, constants: Any, system: Any, torque: Any) -> Any:
    """Rates of q and Pi, times h."""
    q0, q1, q2, q3, m0, m1, m2 = row
    return _increments_of(h, row, constants, torque(t, (q0, q1, q2, q3), (m0, m1, m2), system))


@kernel
def _increments_of(h: Any, row: Any, constants: Any, force: Any) -> Any:
    """The same, given the torque."""
    q0, q1, q2, q3, m0, m1, m2 = row
    turn, gyration = constants
    a, b, c = turn[0] * m0, turn[1] * m1, turn[2] * m2
    return (
        -q1 * a - q2 * b - q3 * c,
        q0 * a + q2 * c - q3 * b,
        q0 * b + q3 * a - q1 * c,
        q0 * c + q1 * b - q2 * a,
        h * force[0] + gyration[0] * (m1 * m2),
        h * force[1] + gyration[1] * (m2 * m0),
        h * force[2] + gyration[2] * (m0 * m1),
    )


@kernel
def _state(new: Any) -> Any:
    """Return seven numbers as attitude and momentum, with the quaternion normalised."""
    return restored((new[0], new[1], new[2], new[3])), (new[4], new[5], new[6])


@kernel
def _squares(error: Any) -> Any:
    """Squares of the errors of attitude (an angle) and momentum."""
    momentum_error = (error[4], error[5], error[6])
    return 4 * norm2((error[0], error[1], error[2], error[3])), dot(momentum_error, momentum_error)


class Parts(NamedTuple):
    """Kernels of a step on the numbers of a state, in a row."""

    row: Callable[..., Any]
    """(y) -> the row."""
    further: Callable[..., Any]
    """(a, s, b) -> a + s b."""
    increments: Callable[..., Any]
    """(h, t, row, constants, system, torque) -> the rates, times h."""
    state: Callable[..., Any]
    """(row) -> the state, with the quaternion normalised."""
    squares: Callable[..., Any]
    """(error, row, first increments) -> squares of the errors of attitude and momentum."""


@kernel
def _squares_of_body(error: Any, row: Any, k0: Any) -> Any:
    return _squares(error)


BODY = Parts(_row_of_body, _further, _increments, _state, _squares_of_body)
"""Attitude and momentum."""


@functools.cache
def with_states(groups: tuple[int, ...]) -> Parts:
    """Kernels for states (q, m, z), z in groups of several numbers; the torque (t, q, m, z, system) is (T, z').

    The error of a group is measured by |z| + |h z'|, and counts like an angle.
    """
    count = sum(groups)
    numbers, places = 7 + count, range(count)
    extra = "".join(f"row[{7 + i}], " for i in places)
    increments = unrolled_kernel(
        "h, t, row, constants, system, torque",
        f"(*own, {''.join(f'h * rates[{i}], ' for i in places)})",
        "q, m = (row[0], row[1], row[2], row[3]), (row[4], row[5], row[6])",
        f"force, rates = torque(t, q, m, ({extra}), system)",
        "own = body(h, (*q, *m), constants, force)",
        body=_increments_of,
    )
    lines, first = ["attitude, momentum = squares(error)"], 7
    for size in groups:
        own = range(first, first + size)
        scale, error, change = (" + ".join(f"{x}[{i}] * {x}[{i}]" for i in own) for x in ("row", "error", "k0"))
        lines += [f"scale = sqrt({scale}) + sqrt({change})", f"error2 = {error}"]
        lines += ["part = where(error2 > 0, error2 / where(scale > 0, scale * scale, 1.0), 0.0 * error2)"]
        lines += ["attitude = where(part > attitude, part, attitude)"]
        first += size
    return Parts(
        unrolled_kernel("y", f"(*row((y[0], y[1])), {''.join(f'y[2][{i}], ' for i in places)})", row=_row_of_body),
        unrolled_kernel("a, s, b", f"({''.join(f'a[{i}] + s * b[{i}], ' for i in range(numbers))})"),
        increments,
        unrolled_kernel("row", f"(*state(row), ({extra}))", state=_state),
        unrolled_kernel("error, row, k0", "(attitude, momentum)", *lines, squares=_squares, sqrt=sqrt, where=where),
    )


def _sum(space: dict[str, Any], name: str, weights: Sequence[Any], number: Callable[[Any], Any]) -> str:
    """Source of sum_j weights[j] k_j, where k_-1 (the last weight) is the state y; its weights are put into `space`.

    The newest increment is added last and separately, so that the sum of the others need not wait for it.
    """
    used = [j for j in range(-1, len(weights) - 1) if weights[j] != 0]
    space[f"{name}_old"] = tuple(converted(weights[j], number) for j in used[:-1])
    space[f"{name}_new"] = converted(weights[used[-1]], number)
    rows = "".join("row, " if j < 0 else f"k{j}, " for j in used[:-1])
    return f"further(combined({name}_old, ({rows})), {name}_new, k{used[-1]})"


class Pair(NamedTuple):
    """A tableau whose last stage serves only the embedded weights of one order less, and these weights."""

    tableau: Tableau
    embedded: tuple[Any, ...]

    @property
    def stages(self) -> int:
        """Number of stages, with the last one."""
        return len(self.embedded)

    @property
    def difference(self) -> tuple[Any, ...]:
        """Weights of the error estimate: the embedded weights minus those of the step."""
        return tuple(low - high for low, high in zip(self.embedded, self.tableau.b, strict=True))

    def _written(self, number: Callable[[Any], Any], stages: int, result: str, parts: Parts) -> Step:
        """Kernel (h, t, y, system, torque) of the first `stages` and a result, an expression with {new} and {error}."""
        space: dict[str, Any] = {"combined": combined, "further": parts.further, "increments": parts.increments}
        space |= {"constants": _constants, "as_row": parts.row, "squares": parts.squares, "state": parts.state}
        lines = ["row, fixed = as_row(y), constants(h, system)", "k0 = increments(h, t, row, fixed, system, torque)"]
        one, none, table = Fraction(1), Fraction(0), self.tableau
        for n in range(1, stages):
            space[f"c{n}"] = converted(table.c[n], number)
            state = _sum(space, f"a{n}", (*table.a[n], one), number)
            lines.append(f"k{n} = increments(h, t + c{n} * h, {state}, fixed, system, torque)")
        weights = ("b", table.b), ("e", self.difference)
        step, error = (_sum(space, name, (*x, none), number) for name, x in weights)
        result = result.format(new=f"further(row, 1, {step})", error=error)
        return unrolled_kernel("h, t, y, system, torque", result, *lines, **space)

    def step(self, number: Callable[[Any], Any], parts: Parts = BODY) -> Step:
        """Kernel of the step alone, without the last stage, which serves only the estimates."""
        return self._written(number, self.stages - 1, "(state({new}), 0)", parts)

    def estimated_step(self, number: Callable[[Any], Any], parts: Parts = BODY) -> Step:
        """Kernel (h, t, y, system, torque) -> (y_new, error_attitude^2, error_momentum^2) in one number type.

        The errors are those of the embedded weights: twice the length of a difference of quaternions, and the length of
        a difference of body momenta. The step is explicit, so there is no residual.
        """
        return self._written(number, self.stages, "(state({new}), *squares({error}, row, k0))", parts)


def declare_pair(pair: Pair, safety: Fraction, title: str, coefficients: str, **declared: Any) -> Method:
    """Declare the method of a pair: its name, order and stages are those of the tableau."""
    order, stages = int(pair.tableau.order or 0), pair.stages
    return declare(
        pair.step, name=pair.tableau.name, order=order, order_free=order, symmetric=False, symplectic=False,
        poisson=False, implicit=False, solves=0, torque_evals=stages - 1, torque_at=("start",), conserves=(),
        needs="velocity", estimated=Estimate(pair.estimated_step, order - 1, safety),
        doc=_DOC.format(title=title, last=stages - 1, extra=stages, low=order - 1, coefficients=coefficients),
        **declared,
    )  # fmt: skip


_DOC = r"""{title} on the entries of quaternion and momentum; the quaternion is normalised.

In principal axes attitude and momentum are seven numbers $x = (q, \Pi)$ with the rates

$$F(s, x) = \bigl(\tfrac{{1}}{{2}}\,q\,(0, \omega),\; \Pi \times \omega + T(s, R(q), \omega)\bigr), \qquad
\omega = I^{{-1}} \Pi$$

where $q\,(0, \omega)$ is a product of quaternions. The stages $k = 1, \ldots, {last}$ and the end of the step are

$$\begin{{aligned}}
F_k &= F\Bigl(t + c_k h,\, x_0 + h \sum_{{j < k}} a_{{kj}} F_j\Bigr), \\
(q, \Pi_1) &= x_0 + h \sum_j b_j F_j, \qquad q_1 = q/|q|
\end{{aligned}}$$

Stage {extra} and the weights $\hat b$ of order {low} give the error estimates: with
$(\delta q, \delta \Pi) = h \sum_j (\hat b_j - b_j) F_j$ they are $2\,|\delta q|$ and $|\delta \Pi|$. The
coefficients{coefficients}.
"""

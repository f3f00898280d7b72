"""Embedded Runge-Kutta pairs on the seven numbers of attitude and momentum, with their error estimates.

In principal axes, with w = I^-1 Pi,

    q' = q (0, w)/2,        Pi_1' = (1/I_3 - 1/I_2) Pi_2 Pi_3 + T_1  and cyclically,

as differential equations for the components (Euler's: Pi' = Pi x w + T). Within the step |q| is 1 only up to the error
of the stages; the equations conserve |q| and are smooth for every q, so the order is that of the tableau. At the end of
the step q is divided by its length. The pairs conserve nothing else: they are for short runs to a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ...kernels.loops import Step
from ...kernels.so3 import dot, norm2, restored
from ...kernels.unroll import unrolled_kernel
from ...numbers.dispatch import kernel
from ...numbers.exact import converted
from ...numbers.primitives import combined
from ..record import Estimate, Method
from ..registry import declare
from ..tables.butcher import Tableau


@kernel
def _row(y: Any) -> Any:
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
    turn, gyration = constants
    force = torque(t, (q0, q1, q2, q3), (m0, m1, m2), system)
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

    def _written(self, number: Callable[[Any], Any], stages: int, result: str) -> Step:
        """Kernel (h, t, y, system, torque) of the first `stages` and a result, an expression with {new} and {error}."""
        space: dict[str, Any] = {"combined": combined, "further": _further, "increments": _increments, "state": _state}
        space |= {"constants": _constants, "as_row": _row, "squares": _squares}
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

    def step(self, number: Callable[[Any], Any]) -> Step:
        """Kernel of the step alone, without the last stage, which serves only the estimates."""
        return self._written(number, self.stages - 1, "(state({new}), 0)")

    def estimated_step(self, number: Callable[[Any], Any]) -> Step:
        """Kernel (h, t, y, system, torque) -> (y_new, error_attitude^2, error_momentum^2) in one number type.

        The errors are those of the embedded weights: twice the length of a difference of quaternions, and the length of
        a difference of body momenta. The step is explicit, so there is no residual.
        """
        return self._written(number, self.stages, "(state({new}), *squares({error}))")


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

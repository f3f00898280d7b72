"""The kernels of translation, friction and thermostats for arrays in the memory of an NVIDIA GPU.

One thread per body, on copies of the states in doubles; `committing` writes them back. Sums over all bodies have a
fixed order, so a run can be repeated bit for bit.
"""

from __future__ import annotations

from typing import Any

from ..kernels.so3 import dot, times
from ..numbers.philox import normals
from ..numbers.primitives import finite
from . import cuda as card
from .batch.in_place import Form
from .batch.layout import inner, vector_in
from .batch.translation_noise import matrices_of, relaxed_in_body
from .batch.translation_noise import relaxing as relaxing_one
from .cuda_bodies import kernel, of_body, reading, step_of, writing

cuda: Any = None
"""numba.cuda; a module global, because numba's simulator replaces it by name."""


def _import() -> None:
    global cuda
    cuda = card.card()


def _of_masses(over_mass: bool) -> Any:
    """Compiled function (h, masses, k) -> h, or h/m of body k."""

    def divided(h: float, masses: Any, k: int) -> float:
        return h / masses[min(k, len(masses) - 1)]

    def plain(h: float, masses: Any, k: int) -> float:
        return h

    return inner(divided if over_mass else plain)


def moving(layout: str, over_mass: bool, own_dt: bool) -> Any:
    """A kick or drift of the translation, a kernel: a += h b, or a += h b/m.

    ``run(a, b, masses, h, fraction, number)``, over a fraction of the step h
    """
    _import()
    read3, write3 = reading(3, layout), writing(3, layout)
    dt_of, divided = step_of(own_dt), _of_masses(over_mass)

    def run(a: Any, b: Any, masses: Any, h: Any, fraction: float, number: int) -> None:
        k = cuda.grid(1)
        if k < number:
            dt, x, y = divided(fraction * dt_of(h, k), masses, k), read3(a, 0, k), read3(b, 0, k)
            write3(a, k, (x[0] + dt * y[0], x[1] + dt * y[1], x[2] + dt * y[2]))

    return kernel(run)


def relaxing(layout: str, velocities: bool, own_dt: bool) -> Any:
    """The exact step of friction and noise of the translation, a kernel.

    ``run(p, masses, bath, made, vector, h, fraction, number)``: `bath` has the rows kT, friction, seed, stream and
    first step; `made` is added to the latter, and `vector` numbers the vector of normal numbers of the step
    """
    _import()
    read3, write3, bath_of = reading(3, layout), writing(3, layout), of_body(5)
    dt_of, relaxed = step_of(own_dt), inner(relaxing_one(velocities))

    def run(
        p: Any, masses: Any, bath: Any, made: float, vector: int, h: Any, fraction: float, number: int
    ) -> None:  # fmt: skip
        k = cuda.grid(1)
        if k < number:
            kT, friction, seed, stream, first = bath_of(bath, k)
            mass, dt = masses[min(k, len(masses) - 1)], fraction * dt_of(h, k)
            write3(p, k, relaxed(read3(p, 0, k), dt, mass, kT, friction, seed, stream, first + made, vector))

    return kernel(run)


def relaxing_in_body(form: Form, own_dt: bool) -> Any:
    """The same with friction tensors in the bodies, a kernel.

    ``run(p, q, masses, bath, made, vector, h, fraction, number)``: `bath` has nine rows for the friction
    """
    _import()
    read4, read3, write3, bath_of = (
        reading(4, form.layout),
        reading(3, form.layout),
        writing(3, form.layout),
        of_body(13),
    )
    dt_of, matrices, bath_of, last = step_of(own_dt), inner(matrices_of(form.omega)), of_body(13), form.scalar_last

    def run(
        p: Any, q: Any, masses: Any, bath: Any, made: float, vector: int, h: Any, fraction: float, number: int
    ) -> None:  # fmt: skip
        k = cuda.grid(1)
        if k < number:
            b, a = bath_of(bath, k), read4(q, 0, k)
            if last:
                a = (a[3], a[0], a[1], a[2])
            mean, noise = matrices(fraction * dt_of(h, k), masses[min(k, len(masses) - 1)], b[0], b[1:10])
            xi = normals(b[10], b[11], b[12] + made, vector)
            write3(p, k, relaxed_in_body(read3(p, 0, k), a, mean, noise, xi))

    return kernel(run)


def rescaling(layout: str) -> Any:
    """A kernel that multiplies the vectors of all bodies: ``run(a, factor, number)``."""
    _import()
    read3, write3 = reading(3, layout), writing(3, layout)

    def run(a: Any, factor: float, number: int) -> None:
        k = cuda.grid(1)
        if k < number:
            x, y, z = read3(a, 0, k)
            write3(a, k, (factor * x, factor * y, factor * z))

    return kernel(run)


# --- kinetic energies -------------------------------------------------------------------------------


def rotational(form: Form, turned: bool) -> Any:
    """Partial sums of twice the kinetic energy of the rotation, Pi . omega, a kernel.

    ``run(v, moments, axes, sums, row, parts, number)``: part i of `parts` has the bodies i, i + parts, ... A body whose
    energy is not finite has none.
    """
    _import()
    read3, inertia_of, axes_of, omega = reading(3, form.layout), of_body(6), of_body(4 * turned), form.omega

    def run(v: Any, moments: Any, axes: Any, sums: Any, row: int, parts: int, number: int) -> None:
        i = cuda.grid(1)
        if i < parts:
            total = 0.0
            for k in range(i, number, parts):
                m, w = inertia_of(moments, k), read3(v, 0, k)
                if turned:
                    w = vector_in(axes_of(axes, k), w)
                factor = (m[0], m[1], m[2]) if omega else (m[3], m[4], m[5])
                one = dot(w, times(factor, w))
                total += one if finite(one) else 0.0
            sums[row, i] = total

    return kernel(run)


def translational(form: Form) -> Any:
    """Partial sums of twice the kinetic energy of the translation, p^2/m or m v^2, a kernel.

    ``run(p, masses, sums, row, parts, number)``, as `rotational`
    """
    _import()
    read3, velocities = reading(3, form.layout), form.omega

    def run(p: Any, masses: Any, sums: Any, row: int, parts: int, number: int) -> None:
        i = cuda.grid(1)
        if i < parts:
            total = 0.0
            for k in range(i, number, parts):
                mass, w = masses[min(k, len(masses) - 1)], read3(p, 0, k)
                one = dot(w, w) * (mass if velocities else 1 / mass)
                total += one if finite(one) else 0.0
            sums[row, i] = total

    return kernel(run)


def summing() -> Any:
    """Sums of partial sums, a kernel: ``run(sums, found, rows, parts, number)``, of each row of `number` terms."""
    _import()

    def run(sums: Any, found: Any, rows: int, parts: int, number: int) -> None:
        i = cuda.grid(1)
        if i < parts:
            for row in range(rows):
                total = 0.0
                for k in range(i, number, parts):
                    total += sums[row, k]
                found[row, i] = total

    return kernel(run)


# --- the end of a call ------------------------------------------------------------------------------


def committing(form: Form, moves: bool) -> Any:
    """A kernel that copies the states of all bodies that are finite and did not fail, and flags the others.

    ``run(x, p, q, v, to_x, to_p, to_q, to_v, lost, flags, fault, number)``: `lost` are the bodies that failed in the
    steps of this call; it is cleared for the next. Without translation (`moves`), x and p are not looked at.
    """
    _import()
    read4, read3, write4, write3 = (make(w, form.layout) for make in (reading, writing) for w in (4, 3))

    def run(
        x: Any, p: Any, q: Any, v: Any, to_x: Any, to_p: Any, to_q: Any, to_v: Any, lost: Any, flags: Any, fault: Any,
        number: int,
    ) -> None:  # fmt: skip
        k = cuda.grid(1)
        if k < number:
            a, b = read4(q, 0, k), read3(v, 0, k)
            good = finite(a[0] + a[1] + a[2] + a[3] + b[0] + b[1] + b[2]) and not lost[k]
            lost[k] = False
            if moves:
                c, d = read3(x, 0, k), read3(p, 0, k)
                good = good and finite(c[0] + c[1] + c[2] + d[0] + d[1] + d[2])
                if good:
                    write3(to_x, k, c)
                    write3(to_p, k, d)
            if good:
                write4(to_q, k, a)
                write3(to_v, k, b)
            else:
                flags[k] = True
                fault[0] = 1

    return kernel(run)

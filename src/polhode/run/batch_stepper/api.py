"""`ph.batch_stepper`."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

from ...errors import InputError, ResultWarning
from ...methods import Method
from ...physics.fields import Field
from ...physics.fields.sides import may_jump
from ...physics.fields.thermostat import written_out
from ...physics.validate import word
from ..noise import NOISY
from ..stepper import one_step
from .arrays import SHAPES
from .asked import is_written_out
from .held import check_bodies
from .inertia import bodies_of
from .respa import Respa
from .stepper import BatchStepper
from .thermostats import Acting, Bussi, NoseHoover
from .translation import RigidStepper
from .translation_bath import TranslationBath

VECTORS = ("momentum", "omega")
"""The vectors of a state."""

SCALARS = ("first", "last")
"""Places of the scalar of a quaternion."""


def batch_stepper(
    bodies: Any, method: str | Method | Respa, dt: Any = None, *, field: Any = None,
    params: dict[str, Any] | None = None,
    masses: Any = None, translation_bath: Any = None, translation_params: dict[str, Any] | None = None,
    thermostat: Any = None, vector: str = "momentum", layout: str = "rows", scalar: str = "first",
) -> Any:  # fmt: skip
    """Return a stepper of many bodies for your own loop, which changes your arrays in place.

    ::

        step = ph.batch_stepper(moments, "fem", dt=0.01).step
        for _ in range(1000):
            torque[:] = ...
            step(q, pi, torque, frame="space")

    The states after a step are bit-identical to those of `ph.ensemble`, unless the field jumps: the steps do not end
    there. The state of a body does not depend on the other bodies, their number or their order.

    Parameters
    ----------
    bodies : (N, 3) principal moments, (N, 3, 3) tensors, a list of `ph.Body`, or one of these for all bodies
    method : a name, an expression, or a Method that needs no memory from step to step; or `ph.respa`
    dt : step, one for all bodies or one for each; may be given to each call instead
    field : a torque or potential that acts in addition to the torques given to each call
    params : values of its parameters, one for all bodies or one for each, as for `ph.ensemble`
    masses : one for each body or one for all; the bodies then also move: ``step(x, p, q, pi, force, torque)``
    translation_bath, translation_params : ``ph.fields.heat_bath(...)`` for the translation, whose friction is a force
        per unit velocity, and values of its parameters for each body; for methods with noise, such as
        ``baoab(dmv10)``, which need a heat bath for the rotation in `field`
    thermostat : ``ph.thermostats.bussi(...)`` or ``ph.thermostats.nose_hoover(...)``, which rescales the momenta of
        all bodies together; for methods without noise
    vector : "momentum" or "omega", in the body frame: the second array of a state. With "omega", the translation has
        velocities instead of momenta
    layout : "rows" for arrays (N, 4) and (N, 3), "columns" for (4, N) and (3, N)
    scalar : "first" or "last", the place of the scalar in a quaternion

    Warns
    -----
    ResultWarning : steps cross jumps or kinks of the field, in time or in the state; or they do not follow a slender
        body, as in `ph.solve`, once, looked at in calls 1, 2, 4, 8, ... On a GPU nothing looks: it would have to wait

    Examples
    --------
    >>> import numpy as np
    >>> q, pi = np.tile([1.0, 0.0, 0.0, 0.0], (1000, 1)), np.ones((1000, 3))
    >>> stepper = ph.batch_stepper([1.5, 2.0, 2.5], "fem", dt=0.01)
    >>> _ = stepper.step(q, pi, torque=-0.1 * pi)
    >>> q.shape
    (1000, 4)
    """
    from ...compile.batch.in_place import Form

    for name, value, allowed in (("vector", vector, VECTORS), ("layout", layout, SHAPES), ("scalar", scalar, SCALARS)):
        word(name, value, *allowed)
    multiple = method if isinstance(method, Respa) else None
    chosen = one_step(method.inner if isinstance(method, Respa) else method, counted=True)
    many = bodies_of(bodies, field, params)
    check_bodies(many, chosen, many.field)
    _warn_of_jumps(many.field)
    if chosen.thermostat is not None and many.field is not None:
        bound, values = written_out(many.field, many.values, chosen.thermostat.links)
        many = dataclasses.replace(many, field=bound, values=values)
    form = Form(layout, scalar == "last", vector == "omega")
    acting = _acting(thermostat, chosen, 1 if masses is None else 2)
    if masses is None:
        given = {"translation_bath": translation_bath, "translation_params": translation_params}
        for name in (name for name, value in given.items() if value is not None):
            raise InputError(f"{name} acts on the centres of mass; also give masses", name)
        return BatchStepper(many, chosen, dt, form, thermostat=acting, respa=multiple)
    bath = _bath(translation_bath, translation_params, chosen, many.number, vector == "omega")
    return RigidStepper(BatchStepper(many, chosen, dt, form), masses, bath, acting, multiple)


def _warn_of_jumps(field: Field | None) -> None:
    """Say that steps cross jumps of a field, if it may have some."""
    if field is None or not may_jump(field):
        return
    warnings.warn(
        f"{field.name} has jumps or kinks (where, abs, comparisons, tables), and steps of ph.batch_stepper do not end "
        "there, so that the order is lost at them; use ph.ensemble, or a smooth field", ResultWarning, stacklevel=3,
    )  # fmt: skip


def _acting(thermostat: Any, method: Method, groups: int) -> Acting | None:
    """Return the thermostat at the start of a run."""
    if thermostat is None:
        return None
    if not isinstance(thermostat, Bussi | NoseHoover):
        raise InputError(
            "thermostat must be ph.thermostats.bussi(...) or ph.thermostats.nose_hoover(...); got "
            f"{type(thermostat).__name__}",
            "thermostat",
        )
    if method.noise is not None:
        raise InputError(f"{method.name} has a heat bath; give a method without noise, or no thermostat", "thermostat")
    if method.thermostat is not None:
        raise InputError(
            f"{method.name} already has chains; give a method without chains, or no thermostat", "thermostat"
        )
    return thermostat.begin(groups)


def _bath(
    bath: Any, params: dict[str, Any] | None, method: Method, number: int, velocities: bool
) -> TranslationBath | None:
    """Return the heat bath of the translation."""
    if bath is None:
        if params is not None:
            raise InputError("translation_params go with translation_bath; give both or neither", "translation_params")
        return None
    if method.noise is None:
        raise InputError(
            f"translation_bath needs a method with noise, such as {NOISY!r}; got {method.name}", "translation_bath"
        )
    if not is_written_out(method):  # friction and noise of the translation act where the scheme has those of rotation
        raise InputError(
            f"translation_bath needs Langevin dynamics, such as {NOISY!r}; got {method.name}", "translation_bath"
        )
    return TranslationBath(bath, params, number, velocities)

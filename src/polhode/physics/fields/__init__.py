"""Torques and potentials that act on a body: user-defined (`torque`, `potential`), built-in, and their sums.

Call a built-in field with keywords to get a bound field: ``ph.fields.linear_drag(coefficients=0.1)``.
`names` lists them, `describe` returns the formula of one, `make` makes one by name.
"""

from .actuators import (
    constant_torque,
    gyrostat,
    internal_damping,
    linear_drag,
    pd_control,
    quadratic_drag,
    rotor,
    tabulated,
    tabulated_gyrostat,
    thruster,
    viscous_core,
)
from .decorators import potential, torque
from .field import Field
from .gravity import (
    attitude_spring,
    dipole,
    distant_centre,
    eccentric_gravity_gradient,
    gravity,
    gravity_gradient,
    rotating_dipole,
    soft_wall,
    uniform_gravity,
)
from .heat_bath import heat_bath
from .magnetic import magnetic_field, residual_dipole
from .orbital import orbit_gravity_gradient
from .registry import describe, get, keywords, make, names
from .states import states
from .surface import facet_drag, radiation_pressure
from .template import FieldTemplate
from .thermostat import nose_hoover

__all__ = [
    "Field",
    "FieldTemplate",
    "attitude_spring",
    "constant_torque",
    "describe",
    "dipole",
    "distant_centre",
    "eccentric_gravity_gradient",
    "facet_drag",
    "get",
    "gravity",
    "gravity_gradient",
    "gyrostat",
    "heat_bath",
    "internal_damping",
    "keywords",
    "linear_drag",
    "magnetic_field",
    "make",
    "names",
    "nose_hoover",
    "orbit_gravity_gradient",
    "pd_control",
    "potential",
    "quadratic_drag",
    "radiation_pressure",
    "residual_dipole",
    "rotating_dipole",
    "rotor",
    "soft_wall",
    "states",
    "tabulated",
    "tabulated_gyrostat",
    "thruster",
    "torque",
    "uniform_gravity",
    "viscous_core",
]  # fmt: skip

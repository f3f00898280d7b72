"""What acts on a body: torques and potentials, the user's own (`torque`, `potential`), ready-made, and sums of them."""

from .decorators import potential, template_of, torque
from .field import CHECK_DIGITS, FRAMES, Field, FieldTemplate, unbound
from .kernels import formula_kernel, inverse_tensor, no_pair, no_torque
from .tracing import RUBBER, rebound

__all__ = [
    "CHECK_DIGITS", "FRAMES", "RUBBER", "Field", "FieldTemplate", "formula_kernel", "inverse_tensor", "no_pair",
    "no_torque", "potential", "rebound", "template_of", "torque", "unbound",
]  # fmt: skip

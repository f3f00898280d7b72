"""A flag that stops a long loop of compiled code from another thread: Python handles Ctrl-C between two calls only."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

STEPS = 1024
"""Steps of a group of bodies between two looks at the flag: 10 microseconds to some milliseconds."""


@intrinsic
def is_set(typingctx: Any, flag: Any) -> Any:
    """Whether the first entry of an array of booleans is True now; it is read anew every time."""
    if not (isinstance(flag, types.Array) and flag.dtype == types.boolean):
        raise TypeError(f"an array of booleans is needed; got {flag}")

    def make(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        now = builder.load_atomic(data, "monotonic", 1)  # an ordinary load may be moved out of the loop
        return cgutils.is_true(builder, now)

    return types.boolean(flag), make

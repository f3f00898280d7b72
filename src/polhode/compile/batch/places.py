"""Where the numbers of a body are: in the arrays that describe an ensemble, and in the rows of data of its lanes."""

from __future__ import annotations

STATE, INERTIA, INVERSE, PARAMETERS = 0, 7, 10, 13
"""First rows of `data`: quaternion and momentum, moments, their inverses, parameters; then dt and the steps."""

ATTITUDE, MOMENTUM, MOMENTS, VALUES, AXES, DT, STEPS, COLUMNS_OF_DATA = range(8)
"""Indices into `given`; the last is that of the first column of data."""

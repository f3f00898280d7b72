"""Types of kernel arguments: numbers, and vectors, quaternions and matrices as tuples of them."""

from __future__ import annotations

from typing import Any

Number = Any

Vec3 = tuple[Number, Number, Number]

Quat = tuple[Number, Number, Number, Number]

Rows = tuple[Vec3, Vec3, Vec3]

State = tuple[Quat, Vec3]

"""Names under which methods are known elsewhere, each with its source.

A name is listed if the method is the same map as a method or an expression of this library;
tests/methods/test_names.py verifies it from the printed algorithms if these are explicit.
"""

from __future__ import annotations

from .registry import methods

KNOWN_AS: tuple[tuple[str, str, str, str], ...] = (
    ("NO_SQUISH", "rot321", "miller2002", "the five rotations of the quaternion, axes 3, 2, 1, 2, 3; LAMMPS, HOOMD"),
    ("Miller", "rot321", "miller2002", "the same"),
    ("Touma-Wisdom", "symrot123", "touma1994", "symmetric body and rotation"),
    ("DLM", "symrot123", "dullweber1997", "symmetric body and rotation"),
    ("DLM rotations", "rot123", "dullweber1997", "three rotations, axes 1, 2, 3, 2, 1: the DLM of OpenMD and OpenFOAM"),
    ("LGVI", "strang(dmv2)", "lee2007", "the discrete equations of motion with half the torque at each end"),
    ("Lee-Leok-McClamroch", "strang(dmv2)", "lee2007", "the same"),
    ("Celledoni-Fasso-Safstrom-Zanna", "strang(jacobi)", "celledoni2008", "the exact free motion in a splitting"),
    ("van Zon-Schofield", "strang(jacobi)", "vanzon2007", "the exact free motion in a splitting"),
    ("Simo-Wong", "swc1", "simo1991", "ALGO_C1"),
)
"""Name, method or expression, key in references.bib, description."""

for _name, _expression, _cite, _where in KNOWN_AS:
    methods.add_label(_name, _expression, _cite, _where)

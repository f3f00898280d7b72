"""Names under which methods are known elsewhere, each with the paper that it comes from.

A name stands here if the method is the same map as one of ours or an expression of ours; tests/methods/test_names.py
proves it from the printed algorithms where these are explicit.
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
"""Name, method or expression, key in references.bib, what of it."""

for _name, _expression, _cite, _where in KNOWN_AS:
    methods.add_label(_name, _expression, _cite, _where)

"""Tableaus for Crouch-Grossman methods.

Other tableaus have at most order 2 there: from order 3 on there are conditions beyond the classical ones, the first
of them sum_i b_i^2 c_i + 2 sum_(i<j) b_i c_i b_j = 1/3 (`order_conditions.py`).
"""

from __future__ import annotations

from ..errors import InputError
from ..methods.tables.butcher import Tableau, aliases, tableaus

CG3 = Tableau(
    [[0, 0, 0], ["3/4", 0, 0], ["119/216", "17/108", 0]], ["13/51", "-2/3", "24/17"],
    name="cg3", order=3, symmetric=False,
)  # fmt: skip
"""P. E. Crouch and R. Grossman, J. Nonlinear Sci. 3 (1993) 1-33; Hairer, Lubich and Wanner (2006), section IV.8."""

CG4 = Tableau(
    [
        [0, 0, 0, 0, 0],
        ["0.81772279881248518386438341584772319266074843669653389545443335", 0, 0, 0, 0],
        [
            "0.31998763754764268140960925832903477034408742509755524232484652",
            "0.065986426355602187354603228667333554271458195010592568880095088", 0, 0, 0,
        ],
        [
            "0.92144171944649461260295561444796689455082288716688019494068409",
            "0.49978577767735729863058062244163890330738957993193362281450323",
            "-1.0969984448371582077182668184161094756406697342199188366362327", 0, 0,
        ],
        [
            "0.35523585590233220105415681944712091648052074704682326912319949",
            "0.23909583723073256958529913069514242797477496705348674485085423",
            "1.391856572420324594286736990115349791859952692471505398325936",
            "-1.1092979392113465105841772499262163302471897737274488719332302", 0,
        ],
    ],
    [
        "0.13708315206307553702959477356769353487833414457264715191852599",
        "-0.018369853156402019112610887745429207206190919500424911120083043",
        "0.73978139853707799892914361649066248430277041326345840532778498",
        "-0.19071425655058889669774657703342479752239557983947247973086215",
        "0.33221955910683737985161907472049798554748194150379183360463422",
    ],
    name="cg4", order=4, symmetric=False,
)  # fmt: skip
"""Z. Jackiewicz, A. Marthinsen and B. Owren, Adv. Comput. Math. 13 (2000) 405-415, who print 16 digits.

The other digits are the nearest solution of all 13 independent conditions of order 4 (22 equations over ordered
forests, of rank 13), by Newton's method. Copies of this tableau with a_54 = -1.1092979392113565 have a misprint.
"""

OWN = {tableau.name: tableau for tableau in (CG3, CG4)}


def tableau_named(tableau: str | Tableau) -> Tableau:
    """Return a tableau, given itself or its name."""
    if isinstance(tableau, Tableau):
        return tableau
    name = aliases.get(tableau, tableau) if isinstance(tableau, str) else None
    if name not in OWN | tableaus:
        raise InputError(f"unknown tableau {tableau!r}; the named ones are {', '.join(OWN | tableaus)}")
    return (OWN | tableaus)[name]

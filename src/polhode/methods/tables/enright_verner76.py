"""A Runge-Kutta pair of orders 7 and 6, ten stages, in fractions.

W. H. Enright, The relative efficiency of alternative defect control schemes for high-order continuous Runge-Kutta
formulas, SIAM J. Numer. Anal. 30 (1993) 1419-1445, a pair of Verner's. The fractions are those that the package
OrdinaryDiffEq.jl tabulates under this paper (its tableau EnrightVerner7). Nine stages give order 7; the last one, at
the end of the step like the ninth, serves only the weights of order 6.
"""

from __future__ import annotations

from collections.abc import Mapping

from .butcher import Tableau, filled

_ROWS: tuple[Mapping[int, str], ...] = (
    {},
    {1: "1/18"},
    {2: "1/9"},
    {1: "1/24", 3: "1/8"},
    {1: "44/81", 3: "-56/27", 4: "160/81"},
    {1: "91561/685464", 3: "-12008/28561", 4: "55100/85683", 5: "29925/228488"},
    {1: "-1873585/1317384", 3: "15680/2889", 4: "-4003076/1083375", 5: "-43813/21400", 6: "5751746/2287125"},
    {
        1: "50383360/12679821",
        3: "-39440/2889",
        4: "1258442432/131088375",
        5: "222872/29425",
        6: "-9203268152/1283077125",
        7: "24440/43197",
    },
    {
        1: "-22942833/6327608",
        3: "71784/5947",
        4: "-572980/77311",
        5: "-444645/47576",
        6: "846789710/90281407",
        7: "-240750/707693",
        8: "3972375/14534468",
    },
    {1: "3379947/720328", 3: "-10656/677", 4: "78284/7447", 5: "71865/5416", 6: "-2803372/218671", 7: "963000/886193"},
)

_WEIGHTS: Mapping[int, str] = {
    1: "28781/595840",
    4: "820752/3128125",
    5: "11259/280000",
    6: "188245551/625100000",
    7: "8667/43120",
    8: "286011/2737280",
    9: "5947/140000",
}

_EMBEDDED: Mapping[int, str] = {
    1: "577/10640",
    4: "8088/34375",
    5: "3807/10000",
    6: "-1113879/16150000",
    7: "8667/26180",
    10: "677/10000",
}

ENRIGHT_VERNER = Tableau(
    [filled(row, len(_ROWS)) for row in _ROWS], filled(_WEIGHTS, len(_ROWS)), name="enright_verner76", order=7,
    symmetric=False,
)  # fmt: skip
"""Tableau of the step of order 7."""

EMBEDDED = filled(_EMBEDDED, len(_ROWS))
"""Weights of order 6."""

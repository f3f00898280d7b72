"""The Runge-Kutta pair 7(6) of Enright and Verner on the components of attitude and momentum.

It is for errors of about 1e-3: there heavy tops need 17 % fewer operations than with `verner87`, and fewer than with
the pairs of orders 5(4) and 6(5) of Bogacki and Shampine, Dormand and Prince, Papakostas, Sharp and Smart, Tsitouras,
and Verner. `validation/lane_steps.py` measures its times in lanes.
"""

from __future__ import annotations

from ..tables.enright_verner76 import EMBEDDED, ENRIGHT_VERNER
from .components import Pair, declare_pair
from .verner87 import SAFETY

PAIR = Pair(ENRIGHT_VERNER, EMBEDDED)

enright_verner76 = declare_pair(
    PAIR, SAFETY, "The Runge-Kutta pair 7(6) of Enright and Verner",
    " are in `methods/tables/enright_verner76.py`", cite="enright1993",
    where="the pair of orders 7 and 6 with 10 stages",
)  # fmt: skip

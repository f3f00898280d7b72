"""Write the stored coefficients of the preprocessed discrete Moser-Veselov method: ``python -m tools.derive_dmv``.

They are derived by `dmv_derivation.py`, which runs also use for orders beyond the stored ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polhode.methods.tables.dmv_derivation import derive

LAST = 6
"""Number of stored terms: h^2 ... h^12, for orders up to 14."""


def text(series: Any) -> str:
    """The module that holds the coefficients."""
    lines = [
        '"""Coefficients of the preprocessed discrete Moser-Veselov method; written by tools/derive_dmv.py.',
        "",
        "SERIES[m - 1] = (s, t) for the power h^(2m); each maps the exponents (i, j, k, l) of",
        "e1^i e2^j e3^k H^l C^(m-l) to an exact (numerator, denominator).",
        '"""',
        "",
        "Table = dict[tuple[int, int, int, int], tuple[int, int]]",
        "",
        "SERIES: tuple[tuple[Table, Table], ...] = (",
    ]
    for s, t in series:
        lines.append("    (")
        for table in (s, t):
            entries = ", ".join(f"{x}: {value}" for x, value in table.items())
            lines.append(f"        {{{entries}}},")
        lines.append("    ),")
    return "\n".join([*lines, ")", ""])


if __name__ == "__main__":
    target = Path(__file__).parents[1] / "src" / "polhode" / "methods" / "tables" / "dmv_series.py"
    target.write_text(text(derive(1, LAST)))
    print(f"wrote {target.name}")

"""The figures and tables of the five documents, recomputed, with each statement beside the measurement."""

from __future__ import annotations

import importlib

from . import report
from .results import RESULTS, Outcome, Result, Table, Verdict, get

DOCUMENTS = (
    "krysl2006", "krysl2006_text", "krysl_section2", "krysl2005", "vilmart", "vilmart_text", "vilmart_equations",
    "zanna", "buss", "buss_text", "buss_series", "outside",
)  # fmt: skip
"""Modules with results, in the order of the report; importing one registers its results."""

for _name in DOCUMENTS:
    importlib.import_module(f"{__name__}.{_name}")

__all__ = ["RESULTS", "Outcome", "Result", "Table", "Verdict", "get", "report"]

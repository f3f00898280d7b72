"""The figures and tables of the five documents, recomputed, each statement beside what is measured."""

from __future__ import annotations

from . import krysl2006  # noqa: F401, I001 - importing enters the results, in this order
from . import krysl2005, vilmart, zanna, buss, outside  # noqa: F401
from . import report
from .results import RESULTS, Outcome, Result, Table, Verdict, get

__all__ = ["RESULTS", "Outcome", "Result", "Table", "Verdict", "get", "report"]

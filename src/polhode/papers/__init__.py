"""The figures and tables of the five documents, recomputed, each statement beside what is measured."""

from __future__ import annotations

from . import buss, krysl2005, krysl2006, report, vilmart, zanna  # noqa: F401 - importing enters the results
from .results import RESULTS, Outcome, Result, Table, Verdict, get

__all__ = ["RESULTS", "Outcome", "Result", "Table", "Verdict", "get", "report"]

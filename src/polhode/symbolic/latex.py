r"""Formulas as LaTeX: exact numbers, tables of numbers, and the same formulas as text for a terminal.

A description of a method holds its formulas as LaTeX between dollar signs. The pages typeset them; `plain` writes
``\tfrac{h}{2}\,\omega_0`` as ``h/2 ω_0``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from ..numbers.exact import Surd

DIGITS = 20
"""Decimals shown of a number that is not a short fraction."""


def block(*lines: str) -> str:
    """Display formulas one below the other, aligned at their ``&``."""
    return "$$\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}$$"


def number(value: Any) -> str:
    """Write an exact number: as a short fraction, as a sum with a root, or by its first decimals."""
    if isinstance(value, Surd):
        return _surd(value)
    value = Fraction(value)
    if value.denominator < 10**6:
        return _fraction(value)
    whole, rest = divmod(abs(value), 1)
    return f"{'-' if value < 0 else ''}{whole}.{int(rest * 10**DIGITS):0{DIGITS}d}\\ldots"


def _fraction(value: Fraction) -> str:
    sign, size = "-" if value < 0 else "", abs(value)
    if size.denominator == 1:
        return f"{sign}{size.numerator}"
    return f"{sign}\\tfrac{{{size.numerator}}}{{{size.denominator}}}"


def _surd(value: Surd) -> str:
    """Write rational + factor sqrt(radicand), with the root in the numerator of the factor."""
    size, root = abs(value.factor), f"\\sqrt{{{value.radicand}}}"
    times = "" if size.numerator == 1 else str(size.numerator)
    part = f"{times}{root}" if size.denominator == 1 else f"\\tfrac{{{times}{root}}}{{{size.denominator}}}"
    if value.rational == 0:
        return f"-{part}" if value.factor < 0 else part
    return f"{_fraction(value.rational)} {'-' if value.factor < 0 else '+'} {part}"


def matrix(rows: Iterable[Iterable[Any]]) -> str:
    """Write rows of exact numbers as a matrix."""
    inside = " \\\\ ".join(" & ".join(number(x) for x in row) for row in rows)
    return f"\\begin{{pmatrix}} {inside} \\end{{pmatrix}}"


def numbered(letter: str, values: Iterable[Any]) -> str:
    """Display the values of letter_1, letter_2, ..., two in a line."""
    cells = [f"{letter}_{{{i}}} &= {number(value)}" for i, value in enumerate(values, 1)]
    rows = [cells[i : i + 2] for i in range(0, len(cells), 2)]
    return block(*(" & ".join(row) for row in rows))


# --- as text ----------------------------------------------------------------------------------------

SIGNS = {
    "times": " \u00d7 ", "cdot": "·", "circ": " ∘ ", "pm": "±", "le": " ≤ ", "ge": " ≥ ", "leftarrow": " ← ",
    "oplus": " ⊕ ", "sum": "Σ", "int": "∫", "ldots": "…", "cdots": "…", "nabla": "∇", "partial": "∂", "colon": ": ",
    "lambda": "λ", "Lambda": "Λ", "varphi": "φ", "quad": "   ", "qquad": "      ", ",": " ", " ": " ",
}  # fmt: skip
"""Characters for commands; Greek letters are found by their names."""

SILENT = ("bigl", "bigr", "Bigl", "Bigr", "mathrm", "operatorname", "mathsf")
ACCENTS = {"bar": "\u0304", "tilde": "\u0303", "dot": "\u0307"}
FUNCTIONS = {"widehat": "hat", "sqrt": "sqrt"}


def plain(text: str) -> str:
    """Write the formulas of a description as plain text."""
    parts = re.split(r"(\$\$.*?\$\$|\$[^$]*\$)", text, flags=re.DOTALL)
    return "".join(_spoken(part) if part.startswith("$") else part for part in parts)


def _spoken(formula: str) -> str:
    shown = formula.startswith("$$")
    inside = re.sub(r"\\(begin|end)\{aligned\}", "", formula.strip("$"))
    inside = re.sub(r"\\begin\{pmatrix\}(.*?)\\end\{pmatrix\}", _rows, inside, flags=re.DOTALL)
    lines = [_tidy(_text(line.replace("&", " "))) for line in inside.split("\\\\")]
    return "\n".join(f"    {line}" for line in lines if line) if shown else " ".join(lines)


def _rows(found: re.Match[str]) -> str:
    rows = [", ".join(cell.strip() for cell in row.split("&")) for row in found[1].split("\\\\")]
    return f"({', '.join(f'({row})' for row in rows)})" if len(rows) > 1 else f"({rows[0]})"


def _tidy(line: str) -> str:
    line = re.sub(r"\s+", " ", line).strip()
    line = re.sub(r"\b(exp|adj|rot) \(", r"\1(", re.sub(r" ([,.;:)\]])", r"\1", line))
    return re.sub(r"([(\[]) ", r"\1", line)


def _group(text: str, start: int) -> tuple[str, int]:
    """Return the argument at `start` (a group in braces, a command, or one letter) and the index of its end."""
    while text[start : start + 1] == " ":
        start += 1
    if text[start : start + 1] != "{":
        found = re.match(r"\\[A-Za-z]+|.", text[start:], re.DOTALL)
        return (found[0], start + len(found[0])) if found else ("", start)
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[start + 1 : i], i + 1
    return text[start + 1 :], len(text)


def _enclosed(text: str) -> str:
    """Put a text in parentheses unless it is one word."""
    text = _tidy(text)
    return text if re.fullmatch(r"[^\s+\-/(),]*|sqrt\(\d+\)", text) else f"({text})"


def _text(latex: str) -> str:
    found, i = "", 0
    while i < len(latex):
        if latex[i] == "\\":
            spoken, i = _command(latex, i + 1)
            found += spoken
        elif latex[i] in "_^":
            inside, j = _group(latex, i + 1)
            found, i = found.rstrip() + latex[i] + _enclosed(_text(inside)), j
        elif latex[i] in "{}":
            i += 1
        else:
            found, i = found + latex[i], i + 1
    return found


def _command(latex: str, start: int) -> tuple[str, int]:
    """Return the text of a command with its arguments, and the index of their end."""
    name = re.match(r"[A-Za-z]+|.", latex[start:], re.DOTALL)
    word = name[0] if name else ""
    i = start + len(word)
    if word in ("frac", "tfrac", "dfrac"):
        top, i = _group(latex, i)
        bottom, i = _group(latex, i)
        return f"{_enclosed(_text(top))}/{_enclosed(_text(bottom))} ", i
    if word in FUNCTIONS or word in ACCENTS:
        inside, i = _group(latex, i)
        spoken = _tidy(_text(inside))
        return (f"{FUNCTIONS[word]}({spoken})" if word in FUNCTIONS else spoken + ACCENTS[word]), i
    return SIGNS.get(word, "" if word in SILENT else _letter(word)), i


def _letter(word: str) -> str:
    """Return the Greek letter of this name, or the word itself (exp, cos, ...)."""
    size = "CAPITAL" if word[0].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {word.upper()}")
    except KeyError:
        return f"{word} "

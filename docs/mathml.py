"""Formulas as MathML, made while the pages are built: browsers show it without a script and without a network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import SphinxError

THIN = '<mspace width="0.1667em"></mspace>'
BARE = ' stretchy="false" lspace="0" rspace="0"'
FACTOR = r"(?:</m(?:[in]|sub|sup|subsup|frac|over)>|\)</mo>)"
TIDY = (
    (r"<mo[^>]*>([|/])</mo>", rf"<mo{BARE}>\1</mo>"),  # no room beside the signs of absolute value and division
    ('<mo stretchy="false">ˉ</mo>', "<mo>‾</mo>"),  # a bar as wide as its letter
    # room between a factor and the name of a function, and between this and an argument without parentheses
    (rf"({FACTOR}\s*)((?:<m\w+>\s*)?<mi[^>]*>[a-zA-Z]{{2,}}</mi>)", rf"\1{THIN}\2"),
    (r"(&ApplyFunction;</mo>)(?!\s*<mo)", rf"\1{THIN}"),
    # an accent belongs to the letter, an index to both
    (r"<munderover>\s*(<mi>\w</mi>)\s*(<mi>\w</mi>)\s*(<mo.*?</mo>)\s*</munderover>",
     r"<msub><mover accent='true'>\1\3</mover>\2</msub>"),
)  # fmt: skip
DIGITS = (
    (r"(\\[td]?frac\s*)(\d)\s*(\d)", r"\1{\2}{\3}"),
    (r"([_^]|\\sqrt\s*)(\d)(?=\d)", r"\1{\2}"),
)
"""In TeX an argument without braces is one digit; docutils takes the whole number, so that \\frac32 M is 32 over M."""


def mathml(latex: str, displayed: bool) -> str:
    """A formula, its arguments in braces and its spaces put right."""
    for pattern, better in DIGITS:
        latex = re.sub(pattern, better, latex)
    made = str(tex2mathml(latex, as_block=displayed))
    for pattern, better in TIDY:
        made = re.sub(pattern, better, made)
    return made


def _of(node: Any, displayed: bool) -> str:
    try:
        return mathml(node.astext(), displayed)
    except MathError as problem:
        where = f"{node.source}, line {node.line}"
        raise SphinxError(f"{where}: a formula that docutils does not read: {problem}") from None


def _inline(self: Any, node: Any) -> None:
    self.body.append(_of(node, displayed=False))
    raise nodes.SkipNode


def _displayed(self: Any, node: Any) -> None:
    self.body.append(f'<div class="formula">{_of(node, displayed=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

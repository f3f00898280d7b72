"""Primitives of kernels as expressions of the printed languages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..numbers import double_double
from ..numbers import primitives as generic
from ..numbers.primitives import FUNCTIONS
from .nodes import NUM, Node, Static, Value
from .source import Untranslatable
from .values import arithmetic, comparison, converted, is_number, item, length, negative, select

MATH = (*FUNCTIONS, "abs")
"""Functions that a printer must know."""


def _function(name: str) -> Callable[..., Value]:
    def apply(*arguments: Value) -> Value:
        if all(map(is_number, arguments)):
            known = abs if name == "abs" else getattr(generic, name)
            return Static(known(*(x.value for x in arguments)))
        return Node("math", tuple(converted(x, NUM) for x in arguments), NUM, name)

    return apply


def _sincos(x: Value) -> Value:
    return _function("sin")(x), _function("cos")(x)


def _combined(weights: Value, rows: Value) -> Value:
    totals = []
    for i in range(length(item(rows, 0))):
        total = arithmetic("*", item(weights, 0), item(item(rows, 0), i))
        for j in range(1, length(weights)):
            total = arithmetic("+", total, arithmetic("*", item(weights, j), item(item(rows, j), i)))
        totals.append(total)
    return tuple(totals)


def _absent(force: Value) -> Value:
    first = item(force, 0)
    return Static(isinstance(first, Static) and isinstance(first.value, int))


def _finite(x: Value) -> Value:
    return comparison("==", arithmetic("-", x, x), Static(0))


def _length(x: Value) -> Value:
    if isinstance(x, Static):
        return Static(len(x.value))
    return Static(length(x))


def _of_known(function: Callable[..., Any]) -> Callable[..., Value]:
    def apply(*arguments: Value) -> Value:
        if not all(map(is_number, arguments)):
            raise Untranslatable(f"it uses {function.__name__} of numbers that vary; ph.where has a translation")
        return Static(function(*(x.value for x in arguments)))

    return apply


def _refused(name: str) -> Callable[..., Value]:
    def refuse(*arguments: Value) -> Value:
        raise Untranslatable(f"it uses {name}, which has no translation")

    return refuse


def _same(x: Value) -> Value:
    return x


def _error_of_product(a: Value, b: Value, p: Value) -> Value:
    return Node("math", (converted(a, NUM), converted(b, NUM), converted(negative(p), NUM)), NUM, "fma")


def table(epsilon: float, has_fma: bool) -> dict[Any, Callable[..., Value]]:
    """The translation of each primitive, in an arithmetic with this distance from 1 to the next number."""
    pi = (Static(math.pi), Static(math.sin(math.pi)))
    return {
        **{getattr(generic, name): _function(name) for name in FUNCTIONS},
        **{getattr(math, name): _function(name) for name in FUNCTIONS if name != "power"},
        abs: _function("abs"),
        len: _length,
        min: _of_known(min),
        max: _of_known(max),
        float: _same,
        generic.sincos: _sincos,
        generic.where: select,
        generic.epsilon: lambda x: Static(epsilon),
        generic.finite: _finite,
        generic.all_lanes: _same,
        generic.stop_gradient: _same,
        generic.absent: _absent,
        generic.pi_pair: lambda x: pi,
        generic.combined: _combined,
        generic.to_float32: _same,
        generic.to_float64: _same,
        generic.whole: _refused("random numbers, made by arithmetic of 64-bit integers"),
        generic.bracket: _refused("a search in a table"),
        double_double.product_error: _error_of_product if has_fma else double_double.dekker,
    }

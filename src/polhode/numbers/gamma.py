"""Sums of squares of normal numbers, counted as all random numbers here are (`philox`)."""

from __future__ import annotations

import math

from .philox import MOST_DRAWS, normal_pair, uniforms


def gamma_number(shape: float, seed: float, body: float, step: float, draw: int) -> float:
    """A random number with the gamma distribution of a shape of 1/2 or more.

    A cube of a shifted normal number is accepted with a probability above 0.95, or else the next one is tried; each
    takes two draws. G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, ACM Trans. Math.
    Softw. 26 (2000) 363-372.
    """
    if shape < 1:
        u, _ = uniforms(seed, body, step, draw)
        return gamma_number(shape + 1, seed, body, step, draw + 1) * u ** (1 / shape)
    d = shape - 1 / 3
    for trial in range(draw, MOST_DRAWS - 1, 2):
        x, _ = normal_pair(seed, body, step, trial)
        v = (1 + x / math.sqrt(9 * d)) ** 3
        u, _ = uniforms(seed, body, step, trial + 1)
        if v > 0 and math.log(u) < x * x / 2 + d - d * v + d * math.log(v):
            return d * v
    raise ArithmeticError(f"no gamma number in {MOST_DRAWS} draws")  # with a probability below 1e-100


def sum_of_squares(count: int, seed: float, body: float, step: float, draw: int) -> float:
    """The sum of squares of `count` independent normal numbers."""
    return 2 * gamma_number(count / 2, seed, body, step, draw) if count else 0.0

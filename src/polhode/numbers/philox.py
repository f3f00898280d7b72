"""Random numbers by counting: Philox4x32-10, and normal numbers from it by the transformation of Box and Muller.

The generator is a bijection of a counter of four 32-bit words, chosen by a key of two: it has no state. With

    key = (seed),   counter = (step, draw, body)

a number depends on nothing but these four: neither on other bodies, nor on the device, nor on how a run is divided.
J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC11 (2011).
"""

from __future__ import annotations

from typing import Any

from .dispatch import kernel
from .primitives import as_number, log, pi_pair, sincos, sqrt, whole
from .types import Number, Vec3

WORD = 0xFFFFFFFF
"""The largest word, as a mask."""

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
"""Multipliers of a round (Salmon et al., table 2)."""

WEYL = 0x9E3779B9, 0xBB67AE85
"""Increments of the key between rounds: the golden ratio and sqrt(3) - 1."""

ROUNDS = 10

DRAW = 1 << 24
"""A draw is counted above the 21 high bits of a step below 2^53."""

MOST_DRAWS = 256
"""Number of draws that a step has."""


@kernel
def philox(counter: Any, key: Any) -> Any:
    """Four random words, of four words that count and two words of key.

    A product of two words has 64 bits. The masks after the shifts make the result independent of the sign that
    compiled code gives to the highest one.
    """
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        x, y = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b, c, d = ((y >> 32) & WORD) ^ b ^ k0, y & WORD, ((x >> 32) & WORD) ^ d ^ k1, x & WORD
        k0, k1 = (k0 + WEYL[0]) & WORD, (k1 + WEYL[1]) & WORD
    return a, b, c, d


@kernel
def _between(high: Any, low: Any) -> Number:
    """A number in (0, 1) from 52 of the bits of two words; without rounding, so equal everywhere."""
    return (as_number((high << 20) + (low >> 12)) + 0.5) * 2.0**-52


@kernel
def uniforms(seed: Number, body: Number, step: Number, draw: int) -> tuple[Number, Number]:
    """Two random numbers, uniform in (0, 1).

    seed, body, step : whole numbers from 0 to 2^53 - 1, in the number type of the run
    draw : from 0 to `MOST_DRAWS` - 1, to draw several times in a step
    """
    s, b, n = whole(seed), whole(body), whole(step)
    counter = n & WORD, (n >> 32) + draw * DRAW, b & WORD, b >> 32
    w, x, y, z = philox(counter, (s & WORD, s >> 32))
    zero = 0 * step
    return zero + _between(w, x), zero + _between(y, z)


@kernel
def normal_pair(seed: Number, body: Number, step: Number, draw: int) -> tuple[Number, Number]:
    """Two independent normal numbers of variance 1.

    sqrt(-2 ln u) (cos 2 pi v, sin 2 pi v), u and v uniform. G. E. P. Box and M. E. Muller, A note on the generation of
    random normal deviates, Ann. Math. Stat. 29 (1958) 610-611.
    """
    u, v = uniforms(seed, body, step, draw)
    r = sqrt(-2 * log(u))
    s, c = sincos(2 * pi_pair(v)[0] * v)
    return r * c, r * s


@kernel
def normals(seed: Number, body: Number, step: Number, vector: int) -> Vec3:
    """Three independent normal numbers: vector number `vector` of a step, made of the draws 2 vector, 2 vector + 1."""
    x, y = normal_pair(seed, body, step, 2 * vector)
    z, _ = normal_pair(seed, body, step, 2 * vector + 1)
    return x, y, z

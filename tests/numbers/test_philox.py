"""Random numbers by counting: the published words, the same bits for every number type, and the distribution."""

import math

import numpy as np
import pytest

from polhode.compile.program import compiled
from polhode.compile.simd import vector_types
from polhode.numbers import arrays  # noqa: F401 - registered
from polhode.numbers.multiprecision import number, working
from polhode.numbers.philox import DRAW, MOST_DRAWS, WORD, normals, philox, uniforms

PI = 0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0
KNOWN = [
    ((0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((WORD,) * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (PI, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]
"""Counter and key, and the words of Random123's file kat_vectors, philox4x32 with 10 rounds."""

SEEDS, BODIES, STEPS = (0, 7, 2**53 - 1), (0, 3, 2**33 + 5), (0, 1, 2**32 - 1, 2**32, 2**53 - 1)
PLACES = np.array([(s, b, n) for s in SEEDS for b in BODIES for n in STEPS], dtype=float)


@pytest.mark.parametrize(("given", "words"), KNOWN)
def test_published_words_come_out(given, words):
    assert philox(given[:4], given[4:]) == words
    assert compiled(lambda a, b, c, d, k, m: philox((a, b, c, d), (k, m))).run(*given) == words
    as_arrays = philox(tuple(np.array([x]) for x in given[:4]), given[4:])
    assert tuple(int(x[0]) for x in as_arrays) == words


def in_lanes(draw):
    """The two uniform numbers of all places, computed a vector at a time."""

    def every(places, out):
        for i in range(0, places.shape[1], vector_types.LANES):
            seed, body = vector_types.load(places[0], i), vector_types.load(places[1], i)
            u, v = uniforms(seed, body, vector_types.load(places[2], i), draw)
            vector_types.store(out[0], i, u)
            vector_types.store(out[1], i, v)

    padded = np.ascontiguousarray(np.pad(PLACES.T, ((0, 0), (0, -len(PLACES) % vector_types.LANES)), mode="edge"))
    out = np.empty((2, padded.shape[1]))
    compiled(every).run(padded, out)
    return out[:, : len(PLACES)].T


@pytest.mark.parametrize("draw", [0, 1, MOST_DRAWS - 1])
def test_uniform_numbers_have_the_same_bits_for_every_number_type(draw):
    plain = np.array([uniforms(*place, draw) for place in PLACES.tolist()])
    run = compiled(lambda s, b, n: uniforms(s, b, n, draw)).run
    assert np.array_equal(plain, [run(*place) for place in PLACES.tolist()])
    assert np.array_equal(plain, np.stack(uniforms(*PLACES.T, draw), axis=1))
    assert np.array_equal(plain, in_lanes(draw))
    with working(30):
        precise = [uniforms(*map(number, place), draw) for place in PLACES.tolist()]
        assert np.array_equal(plain, np.array(precise).astype(float))


def test_places_are_told_apart():
    """Seed, body, step and draw, and their high halves, all change the numbers."""
    found = {uniforms(*place, draw) for place in PLACES.tolist() for draw in (0, 1, MOST_DRAWS - 1)}
    assert len(found) == 3 * len(PLACES)


def test_counters_are_words():
    """The highest step and draw fit in a word: nothing overflows into another place."""
    assert (2**53 - 1 >> 32) + (MOST_DRAWS - 1) * DRAW <= WORD


def test_numbers_are_uniform_and_independent():
    """Bins of pairs of neighbouring numbers: chi-squared with 255 degrees of freedom, within 4 sigma."""
    steps = np.arange(20_000.0)
    u, v = uniforms(0 * steps + 5, 0 * steps + 2, steps, 0)
    assert 0 < min(u.min(), v.min()) < max(u.max(), v.max()) < 1
    counts = np.histogram2d(u, v, bins=16, range=((0, 1), (0, 1)))[0]
    expected = len(steps) / counts.size
    chi2 = np.sum((counts - expected) ** 2) / expected
    assert abs(chi2 - (counts.size - 1)) < 4 * math.sqrt(2 * (counts.size - 1))


def test_normal_numbers_have_the_moments_of_a_normal_distribution():
    """Means of x_i, x_i x_j, x_i^3 and x_i^4 within 4 sigma of 0, delta_ij, 0 and 3, for two vectors of a step."""
    steps = np.arange(20_000.0)
    x = np.concatenate([np.stack(normals(0 * steps + 5, 0 * steps, steps, k)) for k in (0, 1)])
    n = len(steps)
    assert np.all(np.abs(x.mean(1)) < 4 / math.sqrt(n))
    spread = np.where(np.eye(6) > 0, math.sqrt(2 / n), math.sqrt(1 / n))
    assert np.all(np.abs(x @ x.T / n - np.eye(6)) < 4 * spread)
    assert np.all(np.abs((x**3).mean(1)) < 4 * math.sqrt(15 / n))
    assert np.all(np.abs((x**4).mean(1) - 3) < 4 * math.sqrt(96 / n))


def test_normal_numbers_agree_between_compiled_and_plain_code():
    run = compiled(lambda s, b, n: normals(s, b, n, 1)).run
    for place in PLACES.tolist():
        assert run(*place) == pytest.approx(normals(*place, 1), rel=1e-14)

"""SPK kernels: a file with known polynomials, written here byte by byte."""

import struct

import numpy as np
import pytest

import polhode as ph

pytest.importorskip("jplephem")

EARTH_MOON, EARTH, ASTEROID, SUN = 3, 399, 20099942, 10
DAY = 86400.0
EPOCH = "2000-01-01T12:00:00"  # J2000, the origin of times in a kernel
MARK = b"FTPSTR:\r:\n:\r\n:\r\x00:\x81:\x10\xce:ENDFTP"
SEGMENTS = {
    (0, EARTH_MOON): [[1e8, 2e6, 3e4], [5e7, -1e6, 2e4], [0.0, 4e5, 1e3]],
    (EARTH_MOON, EARTH): [[4e3, 100.0, 2.0], [-1e3, 50.0, 3.0], [10.0, 5.0, 1.0]],
    (0, ASTEROID): [[1.001e8, 2.1e6, 3.1e4], [5.1e7, -1.1e6, 2.1e4], [1e4, 4.1e5, 1.1e3]],
}
"""(centre, target) -> the Chebyshev coefficients of x, y, z in km, over 20 days around the epoch."""


def write_kernel(path):
    """Type 2 (Chebyshev polynomials of positions), one record of data for each segment."""
    words, summaries = b"", b""
    for (centre, target), coefficients in SEGMENTS.items():
        start = 3 * 128 + len(words) // 8 + 1
        count = len(coefficients[0])
        numbers = [0.0, 10 * DAY, *(x for row in coefficients for x in row), -10 * DAY, 20 * DAY, 2.0 + 3 * count, 1.0]
        words += struct.pack(f"<{len(numbers)}d", *numbers)
        ends = start, start + len(numbers) - 1
        summaries += struct.pack("<2d6i", -10 * DAY, 10 * DAY, target, centre, 1, 2, *ends)
    free = 3 * 128 + len(words) // 8 + 1
    head = struct.pack("<8s2i60s3i8s603s28s297s", b"DAF/SPK ", 2, 6, b" " * 60, 2, 2, free, b"LTL-IEEE", b"", MARK, b"")
    summary = struct.pack("<3d", 0.0, 0.0, float(len(SEGMENTS))) + summaries
    path.write_bytes(head + summary.ljust(1024, b"\0") + b" " * 1024 + words.ljust(1024, b"\0"))
    return path


def state(pair, days):
    """Position and velocity in SI units."""
    x = np.array(days) / 10
    chebyshev = np.polynomial.chebyshev
    rows = SEGMENTS[pair]
    position = np.stack([chebyshev.chebval(x, row) for row in rows], axis=-1) * 1e3
    velocity = np.stack([chebyshev.chebval(x, chebyshev.chebder(row)) for row in rows], axis=-1) * 1e3 / (10 * DAY)
    return position, velocity


def test_the_path_between_two_bodies_of_a_kernel(tmp_path):
    path = write_kernel(tmp_path / "made.bsp")
    days = np.linspace(-3, 4, 15)
    found = ph.Ephemeris.from_spk(path, 3.986e14, target=ASTEROID, centre=EARTH, times=days * DAY, epoch=EPOCH)
    goal, speed = (a - b - c for a, b, c in zip(*(state(pair, days) for pair in
                   ((0, ASTEROID), (0, EARTH_MOON), (EARTH_MOON, EARTH))), strict=True))  # fmt: skip
    assert np.abs(found.position(days * DAY) - goal).max() < 1e-2  # 1e11 m, rounded
    assert np.abs(found.velocity(days * DAY) - speed).max() < 1e-6
    later = ph.Ephemeris.from_spk(
        path, 3.986e14, target=ASTEROID, centre=EARTH, times=days[:-3] * DAY, epoch="2000-01-02T12:00:00"
    )
    assert np.abs(later.position(0.0) - found.position(DAY)).max() < 1e-2


MISTAKES = [
    ({"target": SUN, "centre": EARTH}, "the kernel does not connect 10 with 399; it has the pairs 0 to 3, 3 to 399"),
    ({"times": [0.0, 11 * DAY]}, "the kernel has 20099942 from Julian date 2451535.0 to 2451555.0"),
    ({"times": []}, "times must be a list of finite numbers"),
    ({"epoch": "yesterday"}, "epoch must be a time such as"),
    ({"target": "Apophis"}, "target must be a NAIF number such as 399 (Earth)"),
    ({"path": __file__}, "test_spk.py cannot be read as an SPK kernel"),
]


@pytest.mark.parametrize(("changed", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_explained(tmp_path, changed, words):
    given = {"target": ASTEROID, "centre": EARTH, "times": [0.0, DAY], "epoch": EPOCH, "mu": 1.0} | changed
    given.setdefault("path", write_kernel(tmp_path / "made.bsp"))
    with pytest.raises(ph.InputError) as caught:
        ph.Ephemeris.from_spk(**given)
    assert words in str(caught.value)

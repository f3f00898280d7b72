"""Orbit Ephemeris Messages: files of the form that CCSDS 502.0-B shows, with an orbit that is known."""

import numpy as np
import pytest

import polhode as ph
from polhode import problem_file
from polhode.physics.epochs import epoch_of

EARTH = 3.986004418e14
ORBIT = ph.Orbit(EARTH, 7.0e6, 0.1, inclination=0.9, node=0.4, argument=1.1)
HEADER = """CCSDS_OEM_VERS = 2.0
CREATION_DATE = 2026-11-05T17:22:31
ORIGINATOR = TEST

"""
META = """META_START
OBJECT_NAME = EXAMPLE
OBJECT_ID = 2026-001A
CENTER_NAME = EARTH
REF_FRAME = EME2000
TIME_SYSTEM = {system}
START_TIME = 2026-11-05T23:59:00.000
STOP_TIME = 2026-11-06T00:10:00.000
INTERPOLATION = HERMITE
INTERPOLATION_DEGREE = 7
META_STOP

COMMENT a comment stands anywhere between lines of data
"""
STEP = 30.0


def lines(count=23, days=("2026-11-05", "2026-11-06"), extra=""):
    """Lines of data every 30 s from 23:59:00 on."""
    made = []
    for i in range(count):
        second = 86340 + round(STEP * i)
        day, second = (days[0], second) if second < 86400 else (days[1], second - 86400)
        clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000"
        numbers = [*ORBIT.position(STEP * i) / 1e3, *ORBIT.velocity(STEP * i) / 1e3]
        made.append(" ".join([f"{day}T{clock}", *(repr(float(x)) for x in numbers)]) + extra)
    return "\n".join(made) + "\n"


def written(tmp_path, text):
    path = tmp_path / "orbit.oem"
    path.write_text(text, "utf-8")
    return path


COVARIANCE = "COVARIANCE_START\nEPOCH = 2026-11-05T23:59:00\n3.3e-4\n4.6e-4 6.7e-4\nCOVARIANCE_STOP\n"


@pytest.mark.parametrize("extra", ["", " 0.001 0.002 0.003"])
@pytest.mark.parametrize("system", ["UTC", "TDB"])
def test_a_file_gives_the_orbit_back(tmp_path, system, extra):
    """Between the lines, the cubic Hermite polynomial errs by h^4/384 times the fourth derivative, here 2 cm."""
    path = written(tmp_path, HEADER + META.format(system=system) + lines(extra=extra) + COVARIANCE)
    found = ph.Ephemeris.from_oem(path, EARTH)
    assert (found.start, found.end) == (0.0, 660.0)
    assert found.meta["CENTER_NAME"] == "EARTH"
    assert found.meta["REF_FRAME"] == "EME2000"
    times = np.linspace(0, 660, 200)
    assert np.abs(found.position(times) - ORBIT.position(times)).max() < 0.05
    assert np.abs(found.position(30.0) - ORBIT.position(30.0)).max() < 1e-8
    assert np.abs(found.velocity(30.0) - ORBIT.velocity(30.0)).max() < 1e-11
    later = ph.Ephemeris.from_oem(path, EARTH, epoch="2026-310T00:00:00")  # 6 November
    assert (later.start, later.end) == (-60.0, 600.0)


def test_a_leap_second_counts_in_utc_only(tmp_path):
    text = META + lines(days=("2016-12-31", "2017-01-01"))
    utc = ph.Ephemeris.from_oem(written(tmp_path, HEADER + text.format(system="UTC")), EARTH)
    tai = ph.Ephemeris.from_oem(written(tmp_path, HEADER + text.format(system="TAI")), EARTH)
    assert (utc.end, tai.end) == (661.0, 660.0)
    assert epoch_of("2016-12-31T23:59:60.5")[1] == 86400.5


def test_segments_are_chosen(tmp_path):
    text = HEADER + META.format(system="UTC") + lines(5) + META.format(system="UTC") + lines(9)
    path = written(tmp_path, text)
    assert ph.Ephemeris.from_oem(path, EARTH, segment=1).end == 120
    assert ph.Ephemeris.from_oem(path, EARTH, segment=2).end == 240
    for wrong in (None, 3):
        with pytest.raises(ph.InputError, match="the file has 2 segments; give segment, from 1 on"):
            ph.Ephemeris.from_oem(path, EARTH, segment=wrong)


def test_in_a_problem_file(tmp_path):
    written(tmp_path, HEADER + META.format(system="UTC") + lines())
    path = tmp_path / "problem.toml"
    path.write_text(
        f'[body]\nmoments = [2.0, 3.0, 4.0]\n[field]\nname = "orbit_gravity_gradient"\n'
        f'orbit = {{ oem = "orbit.oem", mu = {EARTH} }}\n[start]\nomega = [0.0, 0.0, 0.001]\n'
        f"[run]\ntol = 1e-6\nt_end = 10.0\n"
    )
    field = problem_file.load(path).problem.field
    goal = ph.fields.orbit_gravity_gradient(ph.Body([2.0, 3.0, 4.0]), ORBIT)
    R = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert field.torque_value(45.0, R, (0, 0, 0)) == pytest.approx(goal.torque_value(45.0, R, (0, 0, 0)), rel=1e-7)


GOOD = HEADER + META.format(system="UTC") + lines(4)
MISTAKES = [
    ("", "has no data"),
    ("<oem></oem>", "is an OEM in XML; export it as text (KVN)"),
    ("hello", "line 1 of orbit.oem: an OEM begins with CCSDS_OEM_VERS = ...; got 'hello'"),
    (HEADER, "orbit.oem has no data"),
    (GOOD.replace("OBJECT_ID = ", "OBJECT_ID "), "a line of metadata is KEYWORD = value"),
    (GOOD + "2026-11-06T00:01:00 1 2 3\n", "a line of data is an epoch, three positions and three velocities"),
    (GOOD + "2026-11-06T00:01:00 1 2 3 4 5 nan\n", "a line of data is an epoch"),
    (GOOD + "2026-13-06T00:01:00 1 2 3 4 5 6\n", "the epoch must be a time such as"),
    (GOOD + "2026-366T00:01:00 1 2 3 4 5 6\n", "the epoch must be a time such as"),
    (GOOD + "2026-11-05T23:00:00 1 2 3 4 5 6\n", "times must increase"),
    (HEADER + META + lines(1), "a segment needs at least 2 lines of data"),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_explained(tmp_path, text, words):
    with pytest.raises(ph.InputError) as caught:
        ph.Ephemeris.from_oem(written(tmp_path, text), EARTH)
    assert words in str(caught.value)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ph.InputError, match=r"missing.oem cannot be read"):
        ph.Ephemeris.from_oem(tmp_path / "missing.oem", EARTH)

"""Attitude Ephemeris Messages: examples and formulas of CCSDS 504.0-B-2 (annexes F and G), and round trips."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polhode as ph
from polhode.physics import epochs

HEADER = "CCSDS_AEM_VERS = {version}\nCREATION_DATE = 2002-11-04T17:22:31\nORIGINATOR = NASA/JPL\n\n"
META = """META_START
COMMENT the example of figure G-4, without the records that it omits
OBJECT_NAME = MARS_GLOBAL_SURVEYOR
OBJECT_ID = 1996-062A
CENTER_NAME = MARS BARYCENTER
REF_FRAME_A = EME2000
REF_FRAME_B = SC_BODY_1
TIME_SYSTEM = UTC
START_TIME = 1996-11-28T21:29:07.2555
STOP_TIME = 1996-11-30T01:28:02.5555
ATTITUDE_TYPE = {kind}
META_STOP

"""
EXAMPLE = """DATA_START
1996-11-28T21:29:07.2555 0.56748 0.03146 0.45689 0.68427
1996-11-28T22:08:03.5555 0.42319 -0.45697 0.23784 0.74533
1996-11-28T22:08:04.5555 -0.84532 0.26974 -0.06532 0.45652
1996-11-30T01:28:02.5555 0.74563 -0.45375 0.36875 0.31964
DATA_STOP
"""


def message(data: str = EXAMPLE, kind: str = "QUATERNION", version: str = "2.0", **changes: str) -> str:
    text = HEADER.format(version=version) + META.format(kind=kind)
    for name, value in changes.items():
        text = re.sub(rf"^{name} = .*\n", "", text, flags=re.MULTILINE)
        text = text.replace("META_STOP", f"{name} = {value}\nMETA_STOP") if value else text
    return text + data


def one_line(numbers: Any) -> str:
    return f"DATA_START\n1996-11-28T21:29:07.2555 {' '.join(map(repr, np.asarray(numbers).tolist()))}\nDATA_STOP\n"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str, **options: Any) -> list[ph.formats.Attitudes]:
    Path("a.aem").write_text(text, "utf-8")
    return ph.formats.read_aem("a.aem", **options)


def frame_matrix(numbers: Any) -> np.ndarray:
    """The matrix M_BA of annex F2.1, of Q1, Q2, Q3, QC."""
    a, b, c, d = numbers
    return np.array([
        [a * a - b * b - c * c + d * d, 2 * (a * b + c * d), 2 * (a * c - b * d)],
        [2 * (a * b - c * d), -a * a + b * b - c * c + d * d, 2 * (b * c + a * d)],
        [2 * (a * c + b * d), 2 * (b * c - a * d), -a * a - b * b + c * c + d * d],
    ])  # fmt: skip


# --- reading ----------------------------------------------------------------------------------------


def test_the_example_of_the_standard() -> None:
    """Figure G-4 has the scalar last; R^T is the matrix of annex F2.1."""
    (found,) = read(message())
    np.testing.assert_allclose(found.t, [0, 2336.3, 2337.3, 100735.3], atol=1e-9)
    np.testing.assert_allclose(found.quaternion[0], [0.68427, 0.56748, 0.03146, 0.45689], atol=1e-5)
    for q, line in zip(found.rotation, EXAMPLE.splitlines()[1:], strict=False):
        np.testing.assert_allclose(q.as_matrix().T, frame_matrix([float(x) for x in line.split()[1:]]), atol=3e-5)
    assert (found.space, found.body, found.system) == ("EME2000", "SC_BODY_1", "UTC")
    assert found.epoch == "1996-11-28T21:29:07.2555"
    assert found.meta["OBJECT_ID"] == "1996-062A"
    assert found.omega is None


def test_a_quarter_turn() -> None:
    """Annex F2.2: the x axis of B is the y axis of A, and the vector (1, 0, 0) of A is (0, -1, 0) in B."""
    (found,) = read(message(one_line([0, 0, 0.5**0.5, 0.5**0.5])))
    R = found.rotation[0].as_matrix()
    np.testing.assert_allclose(R[:, 0], [0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(R.T @ [1, 0, 0], [0, -1, 0], atol=1e-15)


def test_euler_angles() -> None:
    """Annex F3.2: M_BA is the product of three matrices, that of the last rotation first."""
    a, b, c = np.radians(angles := [10.0, 20.0, -50.0])
    last = np.array([[np.cos(c), np.sin(c), 0], [-np.sin(c), np.cos(c), 0], [0, 0, 1]])
    middle = np.array([[np.cos(b), 0, -np.sin(b)], [0, 1, 0], [np.sin(b), 0, np.cos(b)]])
    first = np.array([[1, 0, 0], [0, np.cos(a), np.sin(a)], [0, -np.sin(a), np.cos(a)]])
    (found,) = read(message(one_line(angles), "EULER_ANGLE", EULER_ROT_SEQ="XYZ"))
    np.testing.assert_allclose(found.rotation[0].as_matrix().T, last @ middle @ first, atol=1e-15)


def test_spin() -> None:
    """Annex F5.4: alpha 0, delta 80, angle 45 degrees."""
    (found,) = read(message(one_line([0.0, 80.0, 45.0, 1.0]), "SPIN"))
    np.testing.assert_allclose(np.roll(found.quaternion[0], -1), [0.0805, 0.0334, 0.9204, 0.3812], atol=5e-5)
    np.testing.assert_allclose(found.rotation[0].as_matrix()[:, 2], [0.1736, 0, 0.9848], atol=5e-5)


@pytest.mark.parametrize("order", ["FIRST", "LAST"])
@pytest.mark.parametrize("direction", ["A2B", "B2A"])
def test_version_1_says_order_and_direction(order: str, direction: str) -> None:
    q = np.array([0.5, 0.1, -0.7, (1 - 0.75) ** 0.5])  # scalar first
    sent = q * [1, -1, -1, -1] if direction == "B2A" else q
    data = one_line(sent if order == "FIRST" else np.roll(sent, -1))
    (found,) = read(message(data, version="1.0", QUATERNION_TYPE=order, ATTITUDE_DIR=direction))
    np.testing.assert_allclose(found.quaternion[0], q, atol=1e-15)


@pytest.mark.parametrize("frame", ["SC_BODY_1", "EME2000", "REF_FRAME_B", "REF_FRAME_A"])
@pytest.mark.parametrize("swapped", [False, True])
def test_angular_velocities_and_bodies_on_either_side(frame: str, swapped: bool) -> None:
    """The result is that of the body: from body to space, and with respect to space, in the body frame."""
    q = np.array([0.5, 0.1, -0.7, 0.5])
    omega = np.array([0.1, 0.2, -0.3])
    R = ph.formats.Attitudes(np.zeros(1), q[None], None, "", "", "", "").rotation[0].as_matrix()
    in_body = frame == "SC_BODY_1" or frame == ("REF_FRAME_A" if swapped else "REF_FRAME_B")
    sign = -1 if swapped else 1
    sent = [*sign * q[1:], q[0], *np.degrees(sign * (omega if in_body else R @ omega))]
    names = ("SC_BODY_1", "EME2000") if swapped else ("EME2000", "SC_BODY_1")
    text = message(one_line(sent), "QUATERNION/ANGVEL", REF_FRAME_A=names[0], REF_FRAME_B=names[1], ANGVEL_FRAME=frame)
    (found,) = read(text)
    assert (found.space, found.body) == ("EME2000", "SC_BODY_1")
    np.testing.assert_allclose(found.quaternion[0], q, atol=1e-15)
    np.testing.assert_allclose(found.omega, [omega], atol=1e-15)


def test_segments_share_an_epoch() -> None:
    later = EXAMPLE.replace("1996-11-2", "1996-12-2").replace("1996-11-3", "1996-12-3")
    first, second = read(message() + message(later).partition("\n\n")[2])
    assert second.t[0] - first.t[0] == 30 * 86400
    assert first.epoch == second.epoch
    (moved,) = read(message(), epoch="1996-11-28T21:29:00")
    assert moved.t[0] == pytest.approx(7.2555, abs=1e-9)


GOOD = message()
MISTAKES = [
    ("hello", "line 1 of a.aem: an AEM begins with CCSDS_AEM_VERS = ...; got 'hello'"),
    ("<aem></aem>", "is an AEM in XML; export it as text (KVN)"),
    (message(kind="DIRECTION_COSINES"), "ATTITUDE_TYPE must be one of QUATERNION, QUATERNION/DERIVATIVE"),
    (message(ATTITUDE_TYPE=""), "ATTITUDE_TYPE must be one of QUATERNION"),
    (message(TIME_SYSTEM=""), "a.aem has a segment without TIME_SYSTEM, which says what its numbers mean"),
    (message(version="3.0"), "CCSDS_AEM_VERS of a.aem must be 1 or 2; got '3.0'"),
    (message(version="1.0", ATTITUDE_DIR="A2B"), "QUATERNION_TYPE of a.aem must be one of LAST, FIRST; got None"),
    (message(version="1.0", QUATERNION_TYPE="LAST"), "ATTITUDE_DIR of a.aem must be one of A2B, B2A; got None"),
    (GOOD.replace("0.56748 ", ""), "a line of data of the type QUATERNION is an epoch and 4 numbers"),
    (GOOD.replace("0.56748", "0.66748"), "quaternion 1 of a.aem must have the length 1; it has 1.05995"),
    (GOOD.replace("0.56748", "x"), "a line of data of the type QUATERNION is an epoch and 4 numbers"),
    (GOOD.replace("1996-11-30T01", "1996-11-28T01"), "times must increase; line 4 of the data of a segment of a.aem"),
    (GOOD.replace("22:08:04", "22:08:03"), "times must increase; line 3 of the data"),
    (GOOD.replace("DATA_STOP\n", ""), "the lines of data must end with DATA_STOP"),
    (GOOD.replace("DATA_START\n", ""), "lines of data stand between DATA_START and DATA_STOP"),
    (message("DATA_START\nDATA_STOP\n"), "a segment needs at least 1 line of data; got '0'"),
    (message(kind="EULER_ANGLE", data=one_line([1, 2, 3.0])), "EULER_ROT_SEQ of a.aem must be three axes"),
    (message(kind="EULER_ANGLE", data=one_line([1, 2, 3.0]), version="1.0"), "whose order is not certain"),
    (message(kind="QUATERNION/ANGVEL", data=one_line([0, 0, 0, 1.0, 1, 2, 3])), "ANGVEL_FRAME of a.aem must be one of"),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_explained(text: str, words: str) -> None:
    with pytest.raises(ph.InputError) as caught:
        read(text)
    assert words in str(caught.value)


# --- writing ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sol() -> ph.Trajectory:
    return ph.solve(ph.problems.fast_top(), "imidm", dt=0.01, steps=100)


def strict(path: str) -> tuple[dict[str, str], list[list[str]]]:
    """Metadata and lines of data of an AEM, by the order of table 4-1 to 4-4: anything else fails."""
    text = Path(path).read_text("ascii")
    found = re.fullmatch(
        r"CCSDS_AEM_VERS = 2\.0\n(?:COMMENT .*\n)*CREATION_DATE = (\S+)\nORIGINATOR = \S+\n\n"
        r"META_START\n((?:[A-Z_]+ = .+\n)+)META_STOP\n\nDATA_START\n((?:\S+(?: \S+)+\n)+)DATA_STOP\n", text,
    )  # fmt: skip
    assert found, text[:500]
    assert max(map(len, text.splitlines())) <= 254
    meta = dict(line.split(" = ", 1) for line in found[2].splitlines())
    keywords = [
        "OBJECT_NAME", "OBJECT_ID", "CENTER_NAME", "REF_FRAME_A", "REF_FRAME_B", "TIME_SYSTEM", "START_TIME",
        "STOP_TIME", "ATTITUDE_TYPE", "ANGVEL_FRAME",
    ]  # fmt: skip
    assert list(meta) == [name for name in keywords if name in meta]
    return meta, [line.split() for line in found[3].splitlines()]


def test_the_scalar_is_last_in_the_file(sol: ph.Trajectory) -> None:
    sol.export("run.aem", epoch="2029-04-13T21:46:00", center="EARTH", object_name="TOP")
    meta, lines = strict("run.aem")
    assert meta["REF_FRAME_A"], meta["REF_FRAME_B"] == ("ICRF", "SC_BODY_1")
    assert (meta["START_TIME"], meta["STOP_TIME"]) == ("2029-04-13T21:46:00.000", "2029-04-13T21:46:01.000")
    numbers = np.array([[float(x) for x in line[1:]] for line in lines])
    np.testing.assert_array_equal(numbers[:, 3], sol.quaternion[:, 0])
    np.testing.assert_array_equal(numbers[:, :3], sol.quaternion[:, 1:])
    for row, R in zip(numbers, sol.matrix, strict=True):  # coordinates in space to those in the body
        np.testing.assert_allclose(frame_matrix(row), R.T, atol=1e-15)


def test_a_round_trip(sol: ph.Trajectory) -> None:
    sol.export("run.aem", epoch="2029-04-13T21:46:00.25", omega=True)
    (found,) = ph.formats.read_aem("run.aem")
    np.testing.assert_allclose(found.t, sol.t, atol=2e-11)
    np.testing.assert_allclose(found.quaternion, sol.quaternion, atol=3e-16)
    np.testing.assert_allclose(found.omega, sol.omega, rtol=4e-16)


def test_a_run_backwards_is_written_in_the_order_of_time() -> None:
    back = ph.solve(ph.problems.fast_top(), "imidm", dt=0.01, t_end=-0.1)
    back.export("run.aem", epoch="2029-04-13T00:00:00")
    (found,) = ph.formats.read_aem("run.aem", epoch="2029-04-13T00:00:00")
    np.testing.assert_allclose(found.t, back.t[::-1], atol=2e-11)
    np.testing.assert_allclose(found.quaternion, back.quaternion[::-1], atol=3e-16)
    assert found.t[0] < -0.09


def test_leap_seconds_are_written() -> None:
    start = epochs.epoch_of("2016-12-31T23:59:59")
    times = [0.0, 0.5, 1.0, 1.999999999999, 2.0, 86402.0]
    assert epochs.written(start, times, "UTC") == [
        "2016-12-31T23:59:59.000", "2016-12-31T23:59:59.500", "2016-12-31T23:59:60.000",
        "2016-12-31T23:59:60.999999999999", "2017-01-01T00:00:00.000", "2017-01-02T00:00:00.000",
    ]  # fmt: skip
    assert epochs.written(start, [1.0, -86399.0], "TAI") == ["2017-01-01T00:00:00.000", "2016-12-31T00:00:00.000"]
    for system in ("UTC", "TAI"):
        back = [epochs.epoch_of(text) for text in epochs.written(start, times, system)]
        np.testing.assert_allclose(epochs.seconds_since(start, back, system), times, atol=2e-11)
        far = epochs.written(start, [-4e8, 4e8], system)
        np.testing.assert_array_equal(epochs.seconds_since(start, map(epochs.epoch_of, far), system), [-4e8, 4e8])


def test_times_beyond_the_calendar_are_refused() -> None:
    for far in (-1e12, 1e12, 1e300):
        with pytest.raises(ph.InputError, match="the times reach beyond the calendar, the years 1 to 9999"):
            epochs.written((730000, 0.0), [far], "UTC")


def test_a_mark_of_the_byte_order_is_skipped() -> None:
    assert len(read("\ufeff" + GOOD)[0]) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "the format aem needs the option epoch"),
        ({"epoch": "yesterday"}, "epoch must be a time such as"),
        ({"epoch": "2029-04-13T00:00:00", "system": "MST"}, "system must be one of UTC, TAI"),
        ({"epoch": "2029-04-13T00:00:00", "object_name": "a\nb"}, "object_name must be a line of ASCII text"),
    ],
)
def test_mistakes_in_writing(sol: ph.Trajectory, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ph.InputError) as caught:
        sol.export("run.aem", **options)
    assert words in str(caught.value)
    assert list(Path().iterdir()) == []


def test_times_must_differ(sol: ph.Trajectory) -> None:
    close = ph.Trajectory(
        {"t": np.array([0, 1e-13]), **{name: getattr(sol, name)[:2] for name in ("quaternion", "momentum", "energy")}},
        sol.info,
    )
    with pytest.raises(ph.InputError, match="times must increase by at least 1e-12 s; states 0 and 1 are both at"):
        close.export("run.aem", epoch="2029-04-13T00:00:00")


def test_one_body_of_an_ensemble() -> None:
    many = ph.ensemble(ph.problems.fast_top(), "imidm", momentum=np.ones((2, 3)), dt=0.01, steps=2, every=1)
    with pytest.raises(ph.InputError, match=r"an AEM has the attitudes of one body; export one of them"):
        many.export("run.aem", epoch="2029-04-13T00:00:00")
    many[1].export("run.aem", epoch="2029-04-13T00:00:00")
    assert len(ph.formats.read_aem("run.aem")[0]) == 3

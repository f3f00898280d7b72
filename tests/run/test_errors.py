"""Every message a user can meet, as text; and that bad input changes nothing on disk."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.methods import ranking
from polhode.physics.validate import excess

pytestmark = [pytest.mark.xdist_group("errors"), pytest.mark.usefixtures("in_a_folder")]

INERTIA = "inertia must be three moments or a symmetric 3x3 tensor of numbers"
ATTITUDE = "attitude must be a scipy Rotation, a 3x3 rotation matrix or a unit quaternion with the scalar first"
LINEAR = "a linear body neither rotates about its axis nor has momentum along it"
BODY = ph.Body([1.0, 2.0, 2.5])
FREE = ph.Problem(BODY, omega=[1.0, 0.1, 0.2])
OUT = "run.zarr"
SIDEWAYS = Rotation.from_rotvec([0, math.pi / 2, 0])
FIRST_EIGHT = ranking.listed(ranking.fitting("velocity"))


VALUES_ONLY = ranking.listed(ranking.fitting("attitude", lambda m: m.asks.values_only))


def not_a_formula(name: str, why: str) -> str:
    return (
        "taylor(4) asks a field for Taylor series of the state of order 4, and the torque "
        f"{name} is not a formula ({why}); write it as a formula (ph.where instead of branches), or use a method that "
        f"needs values only: {VALUES_ONLY}"
    )


def problem(field: Any = None, **start: Any) -> ph.Problem:
    return ph.Problem(BODY, field, **(start or {"omega": [1.0, 0.1, 0.2]}))


def solve(field: Any = None, method: Any = "imidm", **options: Any) -> ph.Trajectory:
    options = {"dt": 0.01, "steps": 20, "out": OUT} | options
    return ph.solve(problem(field), method, **options)


TO: dict[str, Any] = {"tol": 1e-6, "t_end": 1.0}


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def refused(call: Callable[[], Any], message: str) -> None:
    """The call raises InputError with exactly this one-line message, and the folder stays as it was."""
    before = snapshot(Path())
    with pytest.raises(ph.InputError) as caught:
        call()
    assert str(caught.value) == message
    assert "\n" not in message
    assert snapshot(Path()) == before


# --- fields with one fault each ---------------------------------------------------------------------


@ph.torque
def two(t):
    return (1, 2)


@ph.torque
def scalar(t):
    return 1.0


@ph.torque
def nothing(t):
    pass


@ph.torque
def raising(t):
    raise KeyError("z")


@ph.torque
def not_finite(t):
    return (math.nan, 0, 0)


@ph.torque
def branching(R):
    if R[0][0] > 0.5:
        return (1, 0, 0)
    return (0, 0, 0)


@ph.torque
def chained(t):
    return (ph.where(0.05 < t < 0.1, 1, 0), 0, 0)


@ph.torque
def with_numpy(t):
    return (np.sin(t), 0, 0)


@ph.torque
def with_array(t):
    return np.array([0.0, 0.0, t])


@ph.torque
def with_gamma(t):
    return (math.gamma(t + 1), 0, 0)


@ph.torque
def with_print(t):
    print(t, end="")
    return (0, 0, 0)


@ph.torque
def with_import(t):
    import math

    return (math.sin(t), 0, 0)


@ph.torque
def with_undefined(t):
    return (undefined_name, 0, 0)  # noqa: F821


@ph.torque
def with_path(t):
    return (OUT, 0, 0) if t > 1 else (0, 0, 0)


@ph.torque
def vectorised(omega):
    return -0.1 * omega + (1.0, 2.0)


@ph.torque
def drag(omega, k, axis=(0, 0, 1)):
    return tuple(-k * a * w for a, w in zip(axis, omega, strict=True))


@ph.potential
def pair(R):
    return (R[0][0], 1)


@ph.potential
def tilt(R):
    return math.acos(R[2][2])


@ph.torque
def no_parameters(t):
    return (0, 0, t)


@ph.torque(frame="space")
def upward():
    return (0, 0, 1)


def with_numpy_inside() -> Any:
    import numpy as local

    return ph.torque(lambda t: (local.cos(t), 0, 0))()


INPUT: dict[str, tuple[Callable[[], Any], str]] = {
    # bodies
    "inertia not symmetric": (
        lambda: ph.Body([[1, 0.25, 0], [0, 1, 0], [0, 0, 1]]),
        "the inertia tensor must be symmetric; entries [0, 1] and [1, 0] differ by 0.25",
    ),
    "inertia negative": (
        lambda: ph.Body([1, -1, 1]),
        "principal moments of inertia must not be negative; got [1.0, -1.0, 1.0]",
    ),
    "inertia indefinite": (
        lambda: ph.Body([[2, 0, 0], [0, 1, 2], [0, 2, 1]]),
        "principal moments of inertia must not be negative; got [-1.0, 2.0, 3.0]",
    ),
    "triangle": (
        lambda: ph.Body([1, 1, 4]),
        "moments of inertia must satisfy the triangle inequality: 4 exceeds the sum of 1 and 1 by 2 (50 %), "
        "which no mass distribution allows; ph.Body(..., physical=False) accepts them for Euler's equations",
    ),
    "one moment": (
        lambda: ph.Body([1, 0, 0]),
        "moments of inertia must satisfy the triangle inequality: 1 exceeds the sum of 0 and 0 by 1 (100 %), "
        "which no mass distribution allows",
    ),
    "inertia nan": (lambda: ph.Body([1, 1, math.nan]), "inertia must be finite; got [1.0, 1.0, nan]"),
    "inertia infinite": (lambda: ph.Body([1, math.inf, 1]), "inertia must be finite; got [1.0, inf, 1.0]"),
    "inertia shape": (lambda: ph.Body([1, 2]), f"{INERTIA}; got shape (2,)"),
    "inertia number": (lambda: ph.Body(5), f"{INERTIA}; got 5"),
    "inertia None": (lambda: ph.Body(None), f"{INERTIA}; got None"),
    "inertia text": (lambda: ph.Body("abc"), f"{INERTIA}; got 'abc'"),
    "inertia complex": (lambda: ph.Body([1j, 1, 1]), f"{INERTIA}; got [1j, 1, 1]"),
    "inertia zero": (
        lambda: ph.Body([0, 0, 0]),
        "the moments of inertia are all zero; a body needs at least two positive moments",
    ),
    "inertia beyond doubles": (
        lambda: ph.Body([1e300, 1e300, 1e300]),
        "the largest moment of inertia must lie between 1e-100 and 1e+100; got 1e+300, so choose another unit",
    ),
    # problems
    "body is a list": (
        lambda: ph.Problem([1, 2, 3], omega=[1, 0, 0]),
        "body must be a ph.Body; got list. Write ph.Body([I1, I2, I3])",
    ),
    "omega and momentum": (
        lambda: problem(omega=[1, 0, 0], momentum=[1, 0, 0]),
        "give exactly one of omega, momentum, spatial_omega, spatial_momentum; got omega and momentum",
    ),
    "no omega": (
        lambda: problem(attitude=None),
        "give exactly one of omega, momentum, spatial_omega, spatial_momentum; got none of them",
    ),
    "omega shape": (lambda: problem(omega=[1, 0]), "omega must be three numbers; got shape (2,)"),
    "omega text": (lambda: problem(omega="fast"), "omega must be three numbers; got 'fast'"),
    "momentum nan": (lambda: problem(momentum=[1, 0, math.nan]), "momentum must be finite; got [1.0, 0.0, nan]"),
    "t0 text": (lambda: problem(omega=[1, 0, 0], t0="now"), "t0 must be a number; got 'now'"),
    "t0 nan": (lambda: problem(omega=[1, 0, 0], t0=math.nan), "t0 must be finite; got nan"),
    "attitude no rotation": (
        lambda: problem(attitude=2 * np.eye(3), omega=[1, 0, 0]),
        "attitude is not a rotation: R^T R must be 1 and differs from it by 3",
    ),
    "attitude reflection": (
        lambda: problem(attitude=np.diag([1, 1, -1]), omega=[1, 0, 0]),
        "attitude is not a rotation but a reflection: its determinant must be 1 and is -1",
    ),
    "quaternion shape": (lambda: problem(attitude=[1, 0, 0], omega=[1, 0, 0]), f"{ATTITUDE}; got shape (3,)"),
    "quaternion norm": (
        lambda: problem(attitude=[1, 1, 0, 0], omega=[1, 0, 0]),
        "attitude must be a unit quaternion (scalar first); its length is 1.4142136, so divide by it",
    ),
    "quaternion zero": (
        lambda: problem(attitude=[0, 0, 0, 0], omega=[1, 0, 0]),
        "attitude must be a unit quaternion (scalar first); its length is 0",
    ),
    "quaternion nan": (
        lambda: problem(attitude=[math.nan, 0, 0, 1], omega=[1, 0, 0]),
        "attitude must be finite; got [nan, 0.0, 0.0, 1.0]",
    ),
    "attitude text": (lambda: problem(attitude="up", omega=[1, 0, 0]), f"{ATTITUDE}; got 'up'"),
    "many rotations": (
        lambda: problem(attitude=Rotation.identity(2), omega=[1, 0, 0]),
        f"{ATTITUDE}; got shape (2, 4)",
    ),
    "linear body, axial momentum": (
        lambda: ph.Problem(ph.Body([2, 2, 0]), momentum=[1, 0, 0.5]),
        f"{LINEAR}; momentum has the component 0.5 there, and it must be 0",
    ),
    "linear body, axial omega": (
        lambda: ph.Problem(ph.Body([2, 2, 0]), omega=[1, 0, 0.5]),
        f"{LINEAR}; omega has the component 0.5 there, and it must be 0",
    ),
    "linear body, axial torque": (
        lambda: ph.Problem(ph.Body([2, 2, 0]), no_parameters(), momentum=[1, 0, 0], t0=3.0),
        "the torque no_parameters has a torque along the axis of a linear body (3 of 3), which cannot turn about it; "
        "the component must be 0",
    ),
    "linear body, axial torque later": (
        lambda: ph.Problem(ph.Body([2, 2, 0]), upward(), attitude=SIDEWAYS, momentum=[1, 0, 0]),
        "the torque upward has a torque along the axis of a linear body (-0.882 of 1), which cannot turn about it; "
        "the component must be 0",
    ),
    # steps and times
    "not a problem": (
        lambda: ph.solve(BODY, "imidm", dt=0.1, steps=1),
        "the first argument must be a ph.Problem; got Body",
    ),
    "dt zero": (lambda: solve(dt=0), "dt must not be zero"),
    "dt against t_end": (
        lambda: solve(dt=-0.1, steps=None, t_end=1),
        "dt = -0.1 goes backwards in time, and t_end = 1 lies after t0 = 0; give dt > 0, or a t_end before t0",
    ),
    "dt nan": (lambda: solve(dt=math.nan), "dt must be finite; got nan"),
    "dt text": (lambda: solve(dt="0.1"), "dt must be a number; got '0.1'"),
    "t_end is t0": (lambda: solve(steps=None, t_end=0), "t_end must differ from t0 = 0; got 0"),
    "t_end not whole": (
        lambda: solve(steps=None, dt=0.1, t_end=1.05),
        "t_end - t0 = 1.05 is not a whole number of steps dt = 0.1 (10.5); the nearest t_end are 1 and 1.1; "
        "to end at this t_end give dt = 0.09545454545",
    ),
    "t_end below dt": (
        lambda: solve(steps=None, dt=0.1, t_end=0.01),
        "t_end - t0 = 0.01 is not a whole number of steps dt = 0.1 (0.1); the nearest t_end are 0.1 and 0.2; "
        "to end at this t_end give dt = 0.01",
    ),
    "t_end missing": (lambda: solve(steps=None), "give t_end or steps: this problem has no end time"),
    "t_end and steps": (lambda: solve(t_end=1.0), "give t_end or steps, not both"),
    "t_end too far": (
        lambda: solve(steps=None, t_end=1e300),
        "t_end = 1e+300 is 1e+302 steps of dt = 0.01 away, and at most 9.01e+15 can be counted; choose a larger dt",
    ),
    "steps zero": (lambda: solve(steps=0), "steps must be a whole number of at least 1; got 0"),
    "steps broken": (lambda: solve(steps=1.5), "steps must be a whole number of at least 1; got 1.5"),
    "steps nan": (lambda: solve(steps=math.nan), "steps must be a whole number of at least 1; got nan"),
    "every zero": (lambda: solve(every=0), "every must be a whole number of at least 1; got 0"),
    "every None": (lambda: solve(every=None), "every must be a whole number of at least 1; got None"),
    "digits zero": (lambda: solve(digits=0), "digits must be a whole number from 1 to 10000; got 0"),
    # names
    "method far off": (
        lambda: solve(method="zzzz"),
        "unknown method 'zzzz'; no name is similar. `polhode methods` lists all of them",
    ),
    "method a number": (lambda: solve(method=3), "a method is given by name, expression or Method; got int"),
    "problem not known": (
        lambda: ph.problems.get("fasttop"),
        "unknown problem 'fasttop'; nearest: fast_top, slow_top, heavy_top. `polhode problems` lists all of them",
    ),
    # fields
    "two numbers": (
        lambda: solve(two()),
        "the torque two must return three numbers; it returned 2 at the start (t = 0)",
    ),
    "one number": (
        lambda: solve(scalar()),
        "the torque scalar must return three numbers; it returned 1.0 at the start (t = 0)",
    ),
    "nothing": (
        lambda: solve(nothing()),
        "the torque nothing must return three numbers; it returned None at the start (t = 0)",
    ),
    "three texts": (
        lambda: solve(ph.torque(lambda omega: ("1", "2", "3"))()),
        "the torque <lambda> must return three numbers; it returned ('1', '2', '3') at the start (t = 0)",
    ),
    "text in plain Python": (
        lambda: solve(ph.torque(lambda omega: "123", plain=True)()),
        "the torque <lambda> must return three numbers; it returned '123' at the start (t = 0)",
    ),
    "a set": (
        lambda: solve(ph.torque(lambda omega: {1.0, 2.0, 3.0})()),
        "the torque <lambda> must return three numbers; it returned {1.0, 2.0, 3.0} at the start (t = 0)",
    ),
    "text in an ensemble": (
        lambda: ph.ensemble([1, 2, 2.5], omega=[0, 1, 0], field=ph.torque(lambda: ("1", "2", "3")), **TO),
        "the torque <lambda> must return three numbers; it returned ('1', '2', '3') at the start (t = 0)",
    ),
    "a set in an ensemble": (
        lambda: ph.ensemble([1, 2, 2.5], omega=[0, 1, 0], field=ph.torque(lambda: {1.0, 2.0, 3.0}), **TO),
        "the torque <lambda> must return three numbers; it returned {1.0, 2.0, 3.0} at the start (t = 0)",
    ),
    "text as an event": (
        lambda: solve(events=ph.event(lambda t: "1.5"), out=None),
        "the event <lambda> must return one number; it returned '1.5' at the start (t = 0)",
    ),
    "text from a controller": (
        lambda: solve(control=lambda omega: ("1", "2", "3"), period=0.1, out=None),
        "the controller <lambda> must return numbers; it returned ('1', '2', '3') at the start (t = 0)",
    ),
    "a set with states": (
        lambda: solve(ph.states(z=0.0)(lambda omega, z: ({1.0, 2.0, 3.0}, {"z": z}))(), "verner87", out=None),
        "the torque <lambda> must return a torque (three numbers) and the rates {'z': ...}; it returned "
        "{1.0, 2.0, 3.0} at the start (t = 0)",
    ),
    "potential of two": (
        lambda: solve(pair()),
        "the potential pair must return one number; it returned (1.0, 1) at the start (t = 0)",
    ),
    "raises": (lambda: solve(raising()), "the torque raising raised KeyError at the start (t = 0): 'z'"),
    "nan at the start": (
        lambda: solve(not_finite()),
        "the torque not_finite must return finite numbers; it returned (nan, 0, 0) at the start (t = 0)",
    ),
    "no slope at the start": (
        lambda: solve(tilt()),
        "the potential tilt must be smooth; its derivative is not finite at the start (t = 0), so write it "
        "without this singularity",
    ),
    "np.sin": (lambda: solve(with_numpy(), "taylor(4)"), not_a_formula("with_numpy", "it calls np.sin")),
    "np.cos in a closure": (
        lambda: solve(with_numpy_inside(), "taylor(4)"), not_a_formula("<lambda>", "it calls local.cos"),
    ),
    "np.array": (lambda: solve(with_array(), "taylor(4)"), not_a_formula("with_array", "it calls np.array")),
    "math.gamma": (lambda: solve(with_gamma(), "taylor(4)"), not_a_formula("with_gamma", "it calls math.gamma")),
    "print": (lambda: solve(with_print(), "taylor(4)"), not_a_formula("with_print", "it calls print")),
    "import inside": (
        lambda: solve(with_import(), "taylor(4)"), not_a_formula("with_import", "it has an 'import math' inside"),
    ),
    "undefined name": (
        lambda: solve(with_undefined()),
        "the torque with_undefined raised NameError at the start (t = 0): name 'undefined_name' is not defined",
    ),
    "text": (lambda: solve(with_path(), "taylor(4)"), not_a_formula("with_path", "it uses OUT")),
    "vector arithmetic": (
        lambda: solve(vectorised()),
        "the torque vectorised raised TypeError at the start (t = 0): "
        "arrays of 3 and of 2 items cannot be combined; R[i, j] and omega[i] are numbers, R and omega arrays",
    ),
    "field not called": (
        lambda: solve(drag),
        "the field drag has no parameters bound; call it: drag(k, axis)",
    ),
    "field a function": (
        lambda: solve(lambda t: (0, 0, 0)),
        "field must be made by @ph.torque or @ph.potential; got function",
    ),
    "parameter missing": (
        lambda: drag(),
        "the torque drag takes the parameters (k, axis): missing a required argument: 'k'",
    ),
    "parameter too many": (
        lambda: no_parameters(3),
        "the torque no_parameters takes no parameters: too many positional arguments",
    ),
    "parameter nan": (
        lambda: drag(math.nan),
        "parameter k of the torque drag must be a finite number or a sequence of them; got nan",
    ),
    "parameter text": (
        lambda: drag(1.0, axis="xyz"),
        "parameter axis of the torque drag must be a finite number or a sequence of them; got 'xyz'",
    ),
    "frame": (lambda: ph.torque(frame="boddy"), "frame must be 'body' or 'space'; got 'boddy'"),
    "decorated number": (lambda: ph.torque(3), "@ph.torque decorates a plain Python function; got int"),
    "potential of t": (
        lambda: ph.potential(lambda t, R: t),
        "a potential is a function of R (and parameters) alone; <lambda> takes t, so make it a @ph.torque",
    ),
    "starred arguments": (
        lambda: ph.torque(lambda *given: given),
        "the torque <lambda> must name its arguments, which are matched by name; got *given",
    ),
    "method cannot take it": (
        lambda: solve(drag(1.0), method="nmb"),
        "nmb takes torques T(t, R) only, and drag(k=1.0, axis=(0.0, 0.0, 1.0)) is a torque that depends on omega; "
        f"methods that take it: {FIRST_EIGHT}",
    ),
    # files
    "suffix": (lambda: solve(out="run.txt"), "a trajectory file must end in .zarr or .nc; got 'run.txt'"),
    "not a path": (lambda: solve(out=3), "a trajectory file must be a path that ends in .zarr or .nc; got 3"),
    "folder": (lambda: solve(out="none/run.zarr"), "the folder none does not exist; create it first"),
    "no such file": (lambda: ph.load("none.zarr"), "there is no file none.zarr"),
    "load suffix": (lambda: ph.load("notes.txt"), "a trajectory file must end in .zarr or .nc; got 'notes.txt'"),
}  # fmt: skip


@pytest.mark.parametrize("case", INPUT)
def test_message(case: str) -> None:
    refused(*INPUT[case])


JUST_ABOVE, JUST_BELOW = 1 + 2**-40, 1 - 2**-40
ORBIT = ph.Orbit(mu=398600.4418, semi_major_axis=7000.0)


def kept(**asked: Any) -> ph.Trajectory:
    return ph.solve(ph.Problem(BODY, omega=[1, 0, 0]), "imidm", dt=0.5, **asked)


CLOSE: dict[str, tuple[Callable[[], Any], str]] = {
    "steps of a run": (lambda: solve(steps=None, dt=1.0, t_end=11353.9999), r"= (\S+) is .* (11353|11354); to"),
    "steps and their number": (lambda: solve(steps=None, dt=1.0, t_end=11353.9999), r"\((\S+)\); .* and (\S+); to"),
    "two orbits": (lambda: solve(steps=None, dt=1.0, t_end=2 * ORBIT.period), r"= (\S+) is .* are (\S+) and (\S+);"),
    "end and start": (
        lambda: ph.solve(problem(omega=[1, 0, 0], t0=1.0), "imidm", dt=-0.1, t_end=JUST_ABOVE),
        r"t_end = (\S+) lies after t0 = (\S+);",
    ),
    "control": (lambda: control(period=0.10000001), r"period = (\S+) is .* dt = (\S+) \("),
    "times of a run": (lambda: kept(t_end=1.0, times=[JUST_ABOVE]), r"t_end = (\S+), .* got \[(\S+)\]"),
    "times of an ensemble": (
        lambda: ph.ensemble([BODY] * 2, None, [[1, 0, 0]] * 2, "imidm", dt=0.5, t_end=2.0, times=[1.0000001, 2.0]),
        r"and (\S+) lies between (\S+) and (\S+) \(",
    ),
    "stops": (
        lambda: ph.solve(ph.problems.heavy_top(), tol=1e-6, t_end=1.0, stops=[JUST_ABOVE]),
        r"t_end = (\S+); got (\S+)",
    ),
    "states between steps": (lambda: kept(t_end=1.0).at(JUST_ABOVE), r"and (\S+), .* got (\S+)"),
    "states of an ensemble": (
        lambda: ph.ensemble([BODY] * 2, None, [[1, 0, 0]] * 2, "imidm", dt=0.5, steps=2, every=1).at(JUST_ABOVE),
        r"and (\S+), .* got (\S+)",
    ),
    "tangents between steps": (
        lambda: kept(t_end=1.0, tangent=True).tangent.at([JUST_ABOVE]).matrix,
        r"and (\S+), .* got (\S+)",
    ),
    "tol": (lambda: ph.solve(ph.problems.heavy_top(), tol=JUST_ABOVE, t_end=1.0), r" and (\S+) in .*; got (\S+)"),
    "tol of an ensemble": (
        lambda: ph.ensemble([BODY] * 2, None, [[1, 0, 0]] * 2, tol=JUST_ABOVE, t_end=1.0), r"to (\S+); got (\S+)",
    ),
    "measurements": (
        lambda: ph.measurements.rates([1.0, JUST_BELOW], np.zeros((2, 3)), sigma=1.0), r"= (\S+) follows (\S+)\. ",
    ),
    "facets": (lambda: ph.Facets((1 + 1e-5) * np.eye(3)[:1], [1.0], np.eye(3)[:1]), r"length (\S+); got .* (\S+)$"),
}  # fmt: skip


def control(period: float) -> ph.Trajectory:
    top = ph.Problem(BODY, omega=[1, 0, 0])
    return ph.solve(top, "imidm", dt=0.1, t_end=1.0, period=period, control=lambda omega: -omega)


@pytest.mark.parametrize("case", CLOSE)
def test_numbers_that_differ_are_printed_with_digits_that_tell_them_apart(case: str) -> None:
    call, numbers = CLOSE[case]
    with pytest.raises(ph.InputError) as caught:
        call()
    found = re.search(numbers, str(caught.value))
    assert found, caught.value
    assert len(set(found.groups())) == len(found.groups()), caught.value


def test_a_missed_tolerance_is_printed_below_the_error() -> None:
    assert excess(1.04e-10, 1e-10) == "1.04e-10"
    assert excess(2e-10, 1e-10) == "2e-10"


def test_unknown_method_names_the_nearest() -> None:
    with pytest.raises(
        ph.InputError, match=r"^unknown method 'imidn'; nearest: .*\bimidm\b.*\. `polhode methods` lists all"
    ):
        solve(method="imidn")
    assert not Path(OUT).exists()


@pytest.mark.parametrize("field", [branching, chained])
def test_branch(field: Any) -> None:
    with pytest.raises(ph.InputError, match=r" is not a formula \(it branches on a number\); .*ph\.where instead of"):
        solve(field(), "taylor(4)")
    assert not Path(OUT).exists()


def test_messages_are_value_errors() -> None:
    assert issubclass(ph.InputError, ValueError)
    assert issubclass(ph.StepError, RuntimeError)


def test_errors_have_attributes_and_survive_pickling() -> None:
    """What a program needs of an error is in attributes; the message is for people only."""
    with pytest.raises(ph.InputError) as caught:
        ph.Body([1.0, 1.0, 3.0])
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert error.key == "inertia"
        assert error.remedy.startswith("ph.Body(..., physical=False)")
        assert str(error).endswith(f"; {error.remedy}")
    failed = pickle.loads(pickle.dumps(ph.StepError("why", states="where")))
    assert (failed.reason, failed.partial, str(failed)) == ("why", None, "why; where")


# --- files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
@pytest.mark.usefixtures("plain_first")
def test_file_exists(suffix: str) -> None:
    path = Path(f"run{suffix}")
    solve(out=path)
    message = f"{path} exists; choose another name or give overwrite=True (--overwrite)"
    refused(lambda: solve(out=path), message)
    refused(lambda: ph.load(path).save(path), message)
    assert len(solve(out=path, steps=5, overwrite=True)) == 6


def test_folder_that_may_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*given: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("polhode.results.store.trajectory_store.ZarrTarget", forbidden)
    refused(solve, "run.zarr cannot be written: Permission denied")


def test_unfinished_netcdf_run_is_not_overwritten() -> None:
    Path("run.nc.partial.zarr").mkdir()
    refused(
        lambda: solve(out="run.nc"),
        "run.nc.partial.zarr holds an unfinished run; load it, choose another name or give overwrite=True "
        "(--overwrite), or continue it with resume=True (--resume)",
    )


def test_not_a_trajectory() -> None:
    Path("notes.nc").write_text("hello")
    Path("empty.zarr").mkdir()
    for name in ("notes.nc", "empty.zarr"):
        with pytest.raises(ph.InputError, match=f"^{name} cannot be read as a trajectory: "):
            ph.load(name)
    import zarr

    zarr.open_group("other.zarr", mode="w").attrs["title"] = "ocean"
    refused(
        lambda: ph.load("other.zarr"),
        "other.zarr is not a polhode trajectory (format None, expected 'polhode trajectory 2')",
    )


def test_damaged_file() -> None:
    solve()
    chunk = next(p for p in Path(OUT, "momentum", "c").rglob("*") if p.is_file())
    chunk.write_bytes(chunk.read_bytes()[:20])
    loaded = ph.load(OUT)
    assert len(loaded.quaternion) == 21
    with pytest.raises(ph.InputError, match=r"^run\.zarr is damaged: momentum cannot be read \("):
        _ = loaded.omega
    root = Path(OUT, "zarr.json")
    root.write_text(root.read_text().replace('"inertia"', '"inertiA"'))
    refused(
        lambda: ph.load(OUT),
        "run.zarr is damaged: zarr.json does not have the digest it was written with; restore it from a copy, or "
        "compute it again with overwrite=True (--overwrite)",
    )

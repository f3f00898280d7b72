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
from polhode.kernels import loops
from polhode.kernels.so3 import exp, matrix, mul
from polhode.numbers import floats
from polhode.results.progress import Progress
from polhode.results.recorder import Memory
from polhode.run.failures import explain
from polhode.run.fixed_step import RunState, solved
from polhode.run.integrator import Engine, torque_kernel
from polhode.run.integrator import start as begun
from polhode.run.step_count import number_of_steps

pytestmark = pytest.mark.xdist_group("errors")

INERTIA = "inertia must be three moments or a symmetric 3x3 tensor of numbers"
ATTITUDE = "attitude must be a scipy Rotation, a 3x3 rotation matrix or a unit quaternion with the scalar first"
LINEAR = "a linear body neither rotates about its axis nor has momentum along it"
BODY = ph.Body([1.0, 2.0, 2.5])
FREE = ph.Problem(BODY, omega=[1.0, 0.1, 0.2])
OUT = "run.zarr"
SIDEWAYS = Rotation.from_rotvec([0, math.pi / 2, 0])
FIRST_EIGHT = ", ".join(m.name for m in ph.methods.taking("velocity")[:8])


VALUES_ONLY = ", ".join([m.name for m in ph.methods.taking("attitude") if m.asks.values_only][:8])


def not_a_formula(name: str, why: str) -> str:
    return (
        "taylor(4) asks a field for Taylor series of the state of order 4, and the torque "
        f"{name} is not a formula ({why}); write it as a formula (ph.where instead of branches), or use a method that "
        f"needs values only: {VALUES_ONLY}, ..."
    )


def problem(field: Any = None, **start: Any) -> ph.Problem:
    return ph.Problem(BODY, field, **(start or {"omega": [1.0, 0.1, 0.2]}))


def solve(field: Any = None, method: Any = "imidm", **options: Any) -> ph.Trajectory:
    options = {"dt": 0.01, "steps": 20, "out": OUT} | options
    return ph.solve(problem(field), method, **options)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


@ph.potential
def spring(R, k):
    return k * (1 - R[2][2]) / 2


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
        "t_end - t0 = 1.05 is not a whole number of steps dt = 0.1 (10.5); the nearest t_end are 1 and 1.1",
    ),
    "t_end below dt": (
        lambda: solve(steps=None, dt=0.1, t_end=0.01),
        "t_end - t0 = 0.01 is not a whole number of steps dt = 0.1 (0.1); the nearest t_end are 0.1 and 0.2",
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
        "the potential tilt must be smooth; its derivative is not finite at the start (t = 0)",
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
        "nmb takes at most a field of kind 'attitude', and drag(k=1.0, axis=(0.0, 0.0, 1.0)) is a torque that depends "
        f"on omega ('velocity'); methods that take it: {FIRST_EIGHT}, ...",
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


# --- steps that fail --------------------------------------------------------------------------------


@ph.torque
def until(t, R, end):
    return (math.sqrt(end - t), 0, R[0][0])


@ph.torque
def overflowing(t, end):
    huge = ph.where(t > end, 1e308, 0.0) * 10
    return (huge - huge, 0, 0)


def failed(call: Callable[[], Any], message: str) -> ph.StepError:
    with pytest.raises(ph.StepError) as caught:
        call()
    assert str(caught.value) == message
    return caught.value


@pytest.mark.parametrize("digits", [None, 20])
def test_field_fails_at_a_step(digits: int | None) -> None:
    said = {"method": "imidm", "dt": 0.01, "steps": 20, "digits": digits}
    error = failed(
        lambda: solve(until(0.1), **said),
        "imidm failed in step 11 (from t = 0.1 with dt = 0.01): the torque until raised ValueError at t = 0.105: "
        "math domain error; its parameters are end = 0.1; the 11 states before it are in .partial",
    )
    good = solve(until(0.1), **said | {"steps": 10, "out": None})
    partial = error.partial
    assert partial is not None
    assert (partial.status, partial.info.steps) == ("failed", 10)
    for name in ("t", "quaternion", "momentum", "energy"):
        np.testing.assert_array_equal(getattr(partial, name), getattr(good, name))
        np.testing.assert_array_equal(getattr(ph.load(OUT), name), getattr(good, name))


def test_field_returns_nan_at_a_step() -> None:
    failed(
        lambda: solve(overflowing(0.1), dt=0.015625, out=None),
        "imidm failed in step 7 (from t = 0.09375 with dt = 0.015625): the torque overflowing must return finite "
        "numbers; it returned (nan, 0, 0) at t = 0.1; the 7 states before it are in .partial",
    )


def test_last_good_state_is_kept() -> None:
    with pytest.raises(ph.StepError) as caught:
        solve(until(0.1), every=4, out=None)
    assert caught.value.partial is not None
    np.testing.assert_allclose(caught.value.partial.t, [0, 0.04, 0.08, 0.1], rtol=1e-15)


@pytest.mark.parametrize("method", [m.name for m in ph.methods.values() if m.implicit])
def test_unsolved_step(method: str) -> None:
    """A hopeless step names method, step, time, dt, residual and a smaller dt; here in plain Python."""
    error = failed_in_python(FREE, method, dt=1e6)
    if error is None:  # it found a root after all
        return
    assert re.fullmatch(
        re.escape(method) + r" failed in step 1 \(from t = 0 with dt = 1e\+06\): its equation was not solved "
        r"\(relative residual (\d\.\de[+-]\d+|infinite)\); the step is long: the body turns by 1e\+06 rad in it; "
        r"try dt = 0\.\d+; the state before it is in \.partial",
        error,
    ), error
    suggested = float(re.findall(r"try dt = ([\d.e+-]+)", error)[0])
    assert python_states(FREE, method, suggested, 1)[1] is None


def test_unsolved_step_with_a_strong_torque() -> None:
    """A slow body with a torque that turns it far in one step: the message says so."""
    attitude = np.array([-0.75, 0.38, -0.08, -0.54])
    field = ph.torque(lambda t, R: (6.85 * R[2][1], -6.85 * R[2][0], 6.85 * ph.math.sin(t)))()
    start = ph.Problem(
        ph.Body([0.91, 1.07, 0.77]), field, attitude=attitude / np.linalg.norm(attitude), momentum=[0.0, -0.01, 0.0]
    )
    error = failed_in_python(start, "trapm", 1.72)
    assert error is not None
    assert re.search(
        r"; the step is long: the body turns by 0\.016 rad in it and its torque turns it by 7\.3 rad more; try dt",
        error,
    ), error


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


def python_ride(start: ph.Problem, method: str, dt: float, steps: int) -> Any:
    """The loop in plain Python: what `ph.solve` compiles."""
    chosen = ph.methods[method]
    y, system = begun(start, chosen, floats.number)
    torque = torque_kernel(start, floats.number, chosen)
    before, after = chosen.processors(floats.number)
    advance = loops.stepping(chosen.build(floats.number), torque, before=before, after=after)
    run = Engine(advance, y, system, float, lambda n: np.empty((n, 7)), True, None, plain=True)
    return RunState(run, start, dt, steps, 1, method=chosen)


def python_states(start: ph.Problem, method: str, dt: float, steps: int) -> tuple[Any, Any]:
    state = python_ride(start, method, dt, steps)
    y, _, _, residual, fine = state.run.advance(
        dt, 0.0, 0, steps, 1, steps, state.run.y, state.run.system, np.empty((steps, 7))
    )
    return y, None if fine else residual


def failed_in_python(start: ph.Problem, method: str, dt: float) -> str | None:
    try:
        solved(
            python_ride(start, method, dt, 1), Memory(lambda t, rows, **_: rows), Progress(False, method, 1), explain
        )
    except ph.StepError as error:
        return str(error)
    return None


def test_unsolved_step_of_a_run() -> None:
    with pytest.raises(ph.StepError) as caught:
        solve(dt=1e6)
    assert re.fullmatch(
        r"imidm failed in step 1 \(from t = 0 with dt = 1e\+06\): its equation was not solved \(relative residual "
        r"\d\.\de-\d+\); the step is long: the body turns by 1e\+06 rad in it; try dt = 0\.\d+; "
        r"the state before it is in \.partial",
        str(caught.value),
    )
    assert caught.value.partial is not None
    assert caught.value.partial.t.tolist() == [0.0]
    assert ph.load(OUT).status == "failed"


# --- what is accepted -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t0", "dt", "t_end"),
    [(0.0, 0.1, 0.3), (0.0, 0.1, 1e6), (5.0, 1 / 3, 1005.0), (-2.0, 1e-3, 0.0), (0.0, 1e-9, 1.0), (1e6, 1e-2, 1e6 + 1)],
)
def test_whole_number_of_steps(t0: float, dt: float, t_end: float) -> None:
    start = problem(omega=[1, 0, 0], t0=t0)
    assert number_of_steps(start, dt, t_end, None) == round((t_end - t0) / dt)


@pytest.mark.parametrize(
    ("t0", "dt", "t_end"), [(0.0, 1 / 3, 1000.5), (7.0, 0.0123456789, 5e4), (-1.0, 1e-7, 3.00000005)]
)
def test_named_end_times_are_accepted(t0: float, dt: float, t_end: float) -> None:
    """Whoever follows the advice of the message succeeds."""
    start = problem(omega=[1, 0, 0], t0=t0)
    with pytest.raises(ph.InputError, match="the nearest t_end are") as caught:
        number_of_steps(start, dt, t_end, None)
    low, high = (float(x) for x in re.findall(r"are (\S+) and (\S+)$", str(caught.value))[0])
    assert low < t_end < high
    counts = [number_of_steps(start, dt, x, None) for x in (low, high)]
    assert counts[1] == counts[0] + 1


def test_too_many_states_for_memory() -> None:
    with pytest.raises(ph.InputError, match=r"^keeping 9e\+14 states needs about .* GB, and this machine has .* GB; "
                                            r"keep fewer with every, or write to a file with out$"):  # fmt: skip
        ph.solve(FREE, "imidm", dt=0.01, steps=9 * 10**14)


def test_single_precision_attitudes_are_made_rotations() -> None:
    R = Rotation.from_rotvec([0.1, -0.7, 0.4])
    for given in (R.as_matrix().astype(np.float32), R.as_quat(scalar_first=True).astype(np.float32)):
        q = problem(attitude=given, omega=[1, 0, 0]).quaternion
        assert abs(math.hypot(*q) - 1) < 4e-16
        np.testing.assert_allclose(q, R.as_quat(scalar_first=True), atol=1e-7)


def test_flat_body() -> None:
    """I3 = I1 + I2 is legal, also when round-off makes it a little more."""
    assert ph.Body([0.1, 0.2, 0.1 + 0.2]).moments.sum() > 0
    sol = ph.solve(ph.Problem(ph.Body([1, 2, 3]), omega=[0.1, 1, 0.2]), "imidm", dt=0.01, steps=100)
    assert sol.drift()["spatial_momentum"] < 1e-13


LINEAR_AXES = Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix()


@pytest.mark.parametrize("method", [m.name for m in ph.methods.taking("free")])
@pytest.mark.parametrize("tensor", [False, True])
def test_linear_body(method: str, tensor: bool) -> None:
    """[I, I, 0] turns about a fixed axis, R0 exp(t omega): exactly, or with its order, or the method refuses."""
    inertia = np.diag([2.0, 2.0, 0.0])
    omega = np.array([0.3, -0.4, 0.0])
    if tensor:
        inertia, omega = LINEAR_AXES @ inertia @ LINEAR_AXES.T, LINEAR_AXES @ omega
    start = ph.Problem(ph.Body(inertia), attitude=Rotation.from_rotvec([1, 2, 3]), omega=omega)
    if not ph.methods[method].linear_bodies:
        with pytest.raises(ph.InputError, match="divides by the zero moment of a linear body"):
            ph.solve(start, method, dt=0.05, steps=20)
        return
    exact = matrix(mul(start.quaternion, exp(tuple(omega))))
    errors = []
    for dt in (0.1, 0.05):
        (q, m, *_), residual = python_states(start, method, dt, round(1 / dt))
        assert residual is None
        q, m = start.user_axes(q, m)
        errors.append(np.linalg.norm(np.array(matrix(q)) - exact, 2))
        np.testing.assert_allclose(m, inertia @ omega, atol=1e-15)
    order = ph.methods[method].order_free
    assert errors[1] < 2e-14 or abs(np.log2(errors[0] / errors[1]) - order) < 0.1


@pytest.mark.usefixtures("plain_first")
def test_linear_body_with_a_field() -> None:
    """A dumbbell on a spring is a spherical pendulum; compared with the equations of its axis, u'' = -|u'|^2 u + ..."""
    from scipy.integrate import solve_ivp

    start = ph.Problem(
        ph.Body([2, 2, 0]), spring(3.0), attitude=Rotation.from_rotvec([0.5, 0.2, 0]), omega=[0.3, -0.4, 0]
    )
    sol = ph.solve(start, "imidm", dt=1e-3, steps=2000, every=2000)
    u0 = sol.matrix[0][:, 2]
    v0 = sol.matrix[0] @ np.cross(sol.omega[0], [0, 0, 1])

    def pendulum(t: float, y: np.ndarray) -> np.ndarray:
        u, v = y[:3], y[3:]
        force = np.array([0, 0, 1.5]) / 2
        return np.concatenate([v, force - (force @ u) * u - (v @ v) * u])

    exact = solve_ivp(pendulum, (0, 2), np.concatenate([u0, v0]), rtol=1e-12, atol=1e-12).y[:3, -1]
    np.testing.assert_allclose(sol.matrix[-1][:, 2], exact, atol=1e-6)
    np.testing.assert_allclose(sol.momentum[:, 2], 0, atol=1e-15)
    assert abs(sol.energy[-1] - sol.energy[0]) < 1e-6


# --- scale ------------------------------------------------------------------------------------------


@ph.torque
def general(t, R, omega, k):
    return (k * R[2][1] - k * omega[0] / 8, k * math.cos(t), -k * R[0][2] * omega[1])


@pytest.mark.parametrize("power", [-46, -10, 10, 66])
@pytest.mark.usefixtures("plain_first")
def test_scale_of_inertia(power: int) -> None:
    """Moments of 1e-14, 1e3 and 7e19 give the same motion, to the last bit where the factor is a power of two."""
    one, other = (
        ph.solve(
            ph.Problem(ph.Body(s * np.array([1, 2, 2.5])), general(0.7 * s), momentum=s * np.array([1, 0.1, 0.2])),
            "imidm", dt=0.05, steps=200,
        )
        for s in (1.0, 2.0**power)
    )  # fmt: skip
    np.testing.assert_array_equal(one.quaternion, other.quaternion)
    np.testing.assert_array_equal(one.momentum * 2.0**power, other.momentum)
    np.testing.assert_array_equal(one.energy * 2.0**power, other.energy)
    assert one.drift() == other.drift()


@pytest.mark.parametrize("power", [-40, 40])
def test_scale_of_time(power: int) -> None:
    """Seconds or picoseconds: the same motion, to the last bit."""
    s = 2.0**power
    one, other = (
        ph.solve(problem(omega=np.array([1, 0.1, 0.2]) / c, t0=0.0), "imidm", dt=0.05 * c, steps=200) for c in (1.0, s)
    )
    np.testing.assert_array_equal(one.quaternion, other.quaternion)
    np.testing.assert_array_equal(one.t * s, other.t)


@pytest.mark.parametrize("scale", [1e-14, 1e3, 1e20])
@pytest.mark.usefixtures("plain_first")
def test_odd_scales(scale: float) -> None:
    one, other = (
        ph.solve(ph.Problem(ph.Body(s * LINEAR_AXES @ np.diag([1, 2, 2.5]) @ LINEAR_AXES.T), omega=[1, 0.1, 0.2]),
                 "imidm", dt=0.05, steps=200)
        for s in (1.0, scale)
    )  # fmt: skip
    np.testing.assert_allclose(one.quaternion, other.quaternion, atol=1e-13)
    size = scale * np.linalg.norm(one.momentum[0])
    np.testing.assert_allclose(one.momentum * scale, other.momentum, rtol=0, atol=1e-13 * size)


def test_needle() -> None:
    """Moments (1, 1, 1e-6): precession with L/I1 and spin about the axis, reached with the order of the method."""
    start = ph.Problem(ph.Body([1.0, 1.0, 1e-6]), omega=[0.3, 0.4, 2.0])
    spin = (1 / 1e-6 - 1) * start.momentum[2]
    exact = (Rotation.from_rotvec(start.spatial_momentum) * Rotation.from_rotvec([0, 0, spin])).as_matrix()
    errors = []
    for steps in (2000, 4000, 8000):
        sol = ph.solve(start, "imidm", dt=1 / steps, steps=steps, every=steps)
        errors.append(np.linalg.norm(sol.matrix[-1] - exact, 2))
        assert sol.drift()["spatial_momentum"] < 1e-12
    assert errors[0] < 0.02
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 4, rtol=0.01)


# --- interruption -----------------------------------------------------------------------------------


def test_interrupt_keeps_what_was_computed() -> None:
    def stop(fraction: float) -> None:
        if fraction > 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        ph.solve(FREE, "imidm", dt=0.01, steps=10_000_000, every=1000, progress=stop)
    partial = caught.value.partial  # type: ignore[attr-defined]
    assert partial.status == "interrupted"
    assert 0.2 * 10_000_000 < partial.info.steps < 10_000_000
    assert len(partial) == partial.info.steps // 1000 + 1


def test_progress_function() -> None:
    fractions: list[float] = []
    ph.solve(FREE, "imidm", dt=0.01, steps=3_000_000, every=100_000, progress=fractions.append)
    assert len(fractions) > 2
    assert all(0 < x <= 1 for x in fractions)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_progress_bar_goes_to_stderr(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar only on request or on a terminal; never on stdout."""
    monkeypatch.setattr("polhode.results.progress.PATIENCE", -1.0)
    ph.solve(FREE, "imidm", dt=0.01, steps=1000)
    assert capfd.readouterr() == ("", "")
    ph.solve(FREE, "imidm", dt=0.01, steps=1000, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "imidm" in err
    assert "100%" in err

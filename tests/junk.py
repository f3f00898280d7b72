"""Calls of every public function that work, and things to put in place of each of their arguments."""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph


class NoFloat:
    """An object that refuses to be a number."""

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __repr__(self) -> str:
        return "NoFloat()"


class NoArray:
    """An object that refuses to be an array."""

    def __array__(self, *given: Any, **named: Any) -> Any:
        raise RuntimeError("no array")


@ph.potential
def gravity(R, mgl):
    return mgl * R[2][2]


@ph.torque
def drag(omega, k):
    return (-k * omega[0], -k * omega[1], -k * omega[2])


CORE: list[Any] = [
    *(None, True, 0, -1, 7.5, float("nan"), float("inf"), 10**400, 1j, "", "x", "1.0", "a\0b.zarr", b"x", [], {}, (1,)),
    *([[1, 2], [3]], [1.0, 2, "x"], np.array([]), np.eye(4), np.ones((2, 4)), np.array(["a", "b", "c"])),
    *(np.array([1, 2, 3], dtype=object), np.array([1 + 1j, 2, 3]), np.array([np.nan, 1, 1]), np.float32(1.5)),
    *(object(), NoFloat(), [NoFloat()] * 3, NoArray(), lambda: 0, lambda *given: 0, int, ph, Ellipsis),
]  # fmt: skip
"""Things that are rarely right, of every kind."""

MORE: list[Any] = [
    *(False, 1, 2, 3, -0.0, 1e308, 1e-320, -float("inf"), 2**53, 2**63, -(2**70), set(), {1, 2, 3}, {"a": 1}, [1]),
    *([1, 2, 3], [[1, 2, 3]] * 3, np.zeros(3), np.ones(4), np.eye(3), np.zeros((0, 3)), np.ones((5, 3)), np.int8(3)),
    *(np.bool_(True), np.array(np.datetime64("2020")), [10**400] * 3, ["1"] * 3, lambda x: x, lambda R: R, range(3)),
    *(lambda omega: 1 / 0, lambda omega: omega, iter([1, 2, 3]), memoryview(b"abc"), NotImplemented),
    ph.InputError("x"),
    *(gravity, gravity(1.0), drag, drag(0.1), ph.methods["imidm"], Path("x.zarr"), Path("/nonexistent/x.zarr")),
    *("imidm", "y.nc", "/proc/x.zarr", "x" * 5000 + ".zarr", "\ud800.zarr", "strang(", "taylor(0)", "taylor(1e9)"),
    *("mkrk()", ")" * 50, "strang(" * 200 + "dmv10" + ")" * 200, "taylor(" + "9" * 5000 + ")", "[bold]"),
    *(decimal.Decimal("1.5"), fractions.Fraction(1, 3), datetime.date(2020, 1, 1), ph.Body([1.0, 2.0, 2.5]), "1/0"),
    *(ph.problems.free_body(), ph.surd("1/2", "1/3", 3), ph.tableaus.tableaus["rk4"], "nan", "inf", "1e999999999"),
]  # fmt: skip
"""More of them; some are right in some places."""

Call = tuple[Callable[..., Any], dict[str, Any]]


def up(t):
    return (t, 0.0, 1.0)


def calls() -> dict[str, Call]:
    """Every public function with arguments that are right and cost little."""
    body, free = ph.Body([1.0, 2.0, 2.5], mass=1.0), ph.problems.free_body()
    sol = ph.solve(free, "imidm", dt=0.1, steps=10, progress=False)
    skew = [[0, 1, 2], [-1, 0, 3], [-2, -3, 0]]
    two = {"bodies": [1.0, 2.0, 2.5], "attitudes": None, "momenta": [[1.0, 0, 0], [0, 1.0, 0]]}
    length = {"dt": 0.1, "steps": 3}
    many = ph.ensemble(**two, method="imidm", **length, every=1)
    found: dict[str, Call] = {
        "Body": (ph.Body, {"inertia": [1.0, 2, 2.5], "mass": 1.0, "centre": [0.0, 0, 0], "pivot": None, "shapes": ()}),
        "Body.from_points": (ph.Body.from_points, {"positions": np.eye(3), "masses": 1.0}),
        "Body.from_mesh": (ph.Body.from_mesh, {"path": "none.stl", "mass": 1.0, "density": None, "unit": "m"}),
        "Body.from_shape": (lambda name, a: ph.Body.from_shape(name, a=a, b=1, c=1, mass=1), {"name": "box", "a": 1.0}),
        "Body.about": (body.about, {"pivot": [0.0, 0, 1.0]}),
        "Body.moved": (body.moved, {"by": [0.0, 0, 1.0]}),
        "Body.scaled": (body.scaled, {"mass": 2.0}),
        "Body.turned": (body.turned, {"rotation": [1.0, 0, 0, 0]}),
        "Problem": (ph.Problem, {"body": body, "field": None, "attitude": None, "omega": [1.0, 0, 0], "momentum": None,
                                 "spatial_momentum": None, "t0": 0.0, "name": "", "t_end": 1.0, "dt": 0.1,
                                 "reference": None}),
        "solve": (ph.solve, {"problem": free, "method": "imidm", **length, "tol": None, "t_end": None, "every": 1,
                             "out": None, "overwrite": False, "resume": False, "digits": None, "progress": False,
                             "events": ()}),
        "solve, tol": (ph.solve, {"problem": free, "method": None, "tol": 1e-8, "t_end": 1.0, "events": (),
                                  "progress": False, "out": None}),
        "exact": (ph.exact, {"problem": free, "t": [1.0, 2.0], "digits": None}),
        "ensemble": (ph.ensemble, {**two, "method": "imidm", "field": None, "params": None, **length, "every": None,
                                   "t0": 0.0, "device": "cpu", "statistics": None, "scheduler": None, "out": None,
                                   "overwrite": False, "resume": False, "unit": None, "progress": False}),
        "ensemble, field": (ph.ensemble, {**two, "method": "imidm", "field": gravity, "params": {"mgl": 1},
                                          **length}),
        "ensemble, problem": (ph.ensemble, {"bodies": free, "method": "imidm", "omega": np.ones((2, 3)), **length,
                                            "attitude": None, "euler": None, "euler_deg": None, "momentum": None,
                                            "spatial_momentum": None, "spatial_omega": None, "body": None,
                                            "events": None, "t_end": None}),
        "ensemble at": (many.at, {"t": [0.1, 0.2]}),
        "ensemble view": (many.view, {"path": "m.html", "bodies": [0], "title": "", "overwrite": True}),
        "ensemble plot": (many.plot.polhode, {"bodies": [0, 1], "ax": None}),
        "ensemble, tol": (ph.ensemble, {**two, "tol": 1e-6, "t_end": 1.0, "t0": 0.0}),
        "propagator": (ph.propagator, {"problem": free, "tol": 1e-8, "step_tol": None}),
        "propagate": (ph.propagator(free, step_tol=1e-8), {"attitude": (1.0, 0, 0, 0), "momentum": (1.0, 0, 0),
                                                           "t_end": 1.0, "omega": None, "t0": 0.0, "params": None}),
        "stepper": (ph.stepper, {"body": body, "method": "imidm", "dt": 0.1}),
        "step": (lambda quaternion, momentum, t, torque, frame: ph.stepper(body, "imidm", 0.1).step(
            ph.State(quaternion, momentum, t), torque, frame=frame),
            {"quaternion": (1.0, 0, 0, 0), "momentum": (1.0, 0, 0), "t": 0.0, "torque": (0.0, 0, 0), "frame": "body"}),
        "step of a junk state": (ph.stepper(body, "imidm", 0.1).step, {"state": ph.State((1.0, 0, 0, 0), (1.0, 0, 0))}),
        "load": (ph.load, {"path": "x.zarr"}),
        "view": (ph.view, {"sols": sol, "path": "v.html", "body": None, "title": "", "overwrite": True}),
        "at": (sol.at, {"t": [0.1, 0.2]}),
        "euler": (sol.euler, {"sequence": "ZXZ", "degrees": False}),
        "save": (sol.save, {"path": "s.zarr", "overwrite": True}),
        "torque": (ph.torque, {"function": lambda omega: (omega[0], 0.0, 0.0), "frame": "body"}),
        "potential": (ph.potential, {"function": lambda R: R[2][2], "torque": None}),
        "event": (ph.event, {"function": lambda R: R[2][2], "direction": 0, "terminal": False}),
        "a parameter": (lambda mgl: ph.Problem(body, gravity(mgl), omega=[1, 0, 0]), {"mgl": 1.0}),
        "period": (ph.period, {"problem": free, "digits": None}),
        "precession_angle": (ph.precession_angle, {"problem": free, "digits": None}),
        "gradient": (ph.gradient, {"fn": lambda omega: omega[0], "problem": free, "method": "imidm", **length,
                                   "t_end": None, "wrt": ("momentum",)}),
        "kinematics": (ph.kinematics, {"omega": up, "t_end": 1.0, "attitude": None, "t0": 0.0, "frame": "body",
                                       "tol": 1e-8, "dt": None, "order": None, "digits": None}),
        "strapdown": (ph.strapdown, {"t": [0.0, 0.5, 1.0], "rates": [[0.1, 0.2, 0.3]] * 3, "increments": None,
                                     "specific_force": None, "velocity_increments": [[0.1, 0.2, 0.3]] * 2,
                                     "attitude": None, "velocity": [0.0, 0.0, 0.0], "gravity": [0.0, 0.0, -9.8],
                                     "samples": 2}),
        "momentum_rate": (ph.momentum_rate, {"L1": up, "L2": None, "L3": None}),
        "modified_energy": (ph.modified_energy, {"problem": free, "sol": sol, "terms": 1, "method": "dmv2"}),
        "methods[]": (lambda name: ph.methods[name], {"name": "imidm"}),
        "Tableau": (ph.Tableau, {"a": [[0, 0], ["2/3", 0]], "b": ["1/4", "3/4"], "c": None, "name": "ralston",
                                 "order": None, "symmetric": None}),
        "mkrk": (ph.mkrk, {"tableau": "rk4", "register": False}),
        "surd": (ph.surd, {"rational": "1/2", "factor": "1/3", "radicand": 3}),
        "vector.solve": (ph.vector.solve, {"force": lambda u: (-u[0],), "M": 1.0, "u0": [1.0], "p0": [0.0],
                                           "method": "verlet", **length, "t_end": None, "t0": 0.0, "every": 1,
                                           "potential": None, "digits": None, "progress": False}),
        "lie.solve": (ph.lie.solve, {"group": "SO(3)", "W": up, "y0": None, "method": "taylor(4)", **length,
                                     "t_end": None, "t0": 0.0, "trivialised": "right", "every": 1, "digits": None,
                                     "progress": False}),
        "lie.magnus": (ph.lie.magnus, {"derivatives": [skew, skew], "h": 0.1, "order": None, "group": None,
                                       "trivialised": "right"}),
        "lie.SO": (ph.lie.SO, {"n": 3}),
        "lie.crouch_grossman": (ph.lie.crouch_grossman, {"tableau": "cg3"}),
        "lie.munthe_kaas": (ph.lie.munthe_kaas, {"tableau": "rk4"}),
        "lie.taylor": (ph.lie.taylor, {"order": 3}),
        "ndim.Body": (ph.ndim.Body, {"J": [1.0, 2.0, 3.0]}),
        "ndim.largest_step": (ph.ndim.largest_step, {"J": [1.0, 2.0, 3.0], "M": skew}),
        "ndim.reference": (ph.ndim.reference, {"J": [1.0, 2.0, 3.0], "M0": skew, "t": 0.01, "X0": None, "t0": 0.0,
                                               "digits": None}),
        "ndim.solve": (ph.ndim.solve, {"J": [1.0, 2.0, 3.0], "M0": skew, "X0": None, "method": "moser_veselov",
                                       "h": 0.01, "steps": 2, "t_end": None, "t0": 0.0, "every": 1,
                                       "progress": False}),
        "problems.get": (ph.problems.get, {"name": "fast_top"}),
        "fields.get": (ph.fields.get, {"name": "gravity"}),
        "fields.make": (ph.fields.make, {"name": "uniform_gravity", "body": body, "g": (0, 0, -1.0)}),
        "fields.constant_torque": (ph.fields.constant_torque, {"torque": (1.0, 0, 0), "frame": "body"}),
        "fields.gravity_gradient": (ph.fields.gravity_gradient, {"body": body, "mu": 1.0, "radius": 2.0, "phase": 0.0}),
        "fields.eccentric_gravity_gradient": (
            ph.fields.eccentric_gravity_gradient,
            {"body": body, "mu": 1.0, "semi_major_axis": 2.0, "eccentricity": 0.1, "mean_anomaly": 0.0}),
        "fields.orbit_gravity_gradient": (
            ph.fields.orbit_gravity_gradient,
            {"body": body, "orbit": ph.Orbit(1.0, 2.0), "third_moments": np.zeros((3, 3, 3))}),
        "Orbit": (ph.Orbit, {"mu": 1.0, "periapsis": 2.0, "eccentricity": 0.1, "periapsis_time": 0.0,
                             "inclination": 0.0, "node": 0.0, "argument": 0.0}),
        "Ephemeris": (ph.Ephemeris, {"mu": 1.0, "times": [0.0, 1.0], "positions": np.ones((2, 3)),
                                     "velocities": np.ones((2, 3))}),
        "tumbling": (ph.tumbling, {"body": body, "P_psi": 30.0, "P_phi": 7.0, "mode": "LAM"}),
        "fields.residual_dipole": (
            ph.fields.residual_dipole,
            {"moment": (1, 0, 0), "orbit": ph.Orbit(1.0, 2.0), "strength": 1.0, "tilt": 0.1, "rate": 0.0,
             "phase": 0.0}),
        "fields.magnetic_field": (ph.fields.magnetic_field, {"orbit": ph.Orbit(1.0, 2.0), "strength": 1.0, "tilt": 0.1,
                                                             "rate": 0.0, "phase": 0.0}),
        "Facets": (ph.Facets, {"normals": np.eye(3), "areas": np.ones(3), "centres": np.eye(3)}),
        "Facets.from_triangles": (ph.Facets.from_triangles, {"vertices": np.eye(3), "faces": [[0, 1, 2]],
                                                             "centre": (0, 0, 0)}),
        "Facets.plate": (ph.Facets.plate, {"centre": (1, 0, 0), "normal": (1, 0, 0), "area": 1.0}),
        "Facets.mean_radiation_torque": (
            ph.Facets.box(1, 2, 3).mean_radiation_torque,
            {"pressure": 1.0, "axis": (0, 0, 1), "obliquity": 0.3, "specular": 0.1, "diffuse": 0.2, "angles": 4}),
        "fields.radiation_pressure": (
            ph.fields.radiation_pressure,
            {"facets": ph.Facets.box(1, 2, 3), "pressure": 1.0, "sun": (1, 0, 0), "specular": 0.1, "diffuse": 0.2}),
        "fields.facet_drag": (
            ph.fields.facet_drag,
            {"facets": ph.Facets.box(1, 2, 3), "density": 1.0, "orbit": ph.Orbit(1.0, 1.0), "radius": 1.0,
             "scale_height": 0.1, "coefficient": 2.0}),
        "fields.internal_damping": (ph.fields.internal_damping, {"body": body, "rate": 0.1}),
        "fields.viscous_core": (ph.fields.viscous_core, {"body": body, "strength": 0.1}),
        "fields.distant_centre": (ph.fields.distant_centre, {"body": body, "strength": 0.1}),
        "fields.pd_control": (ph.fields.pd_control, {"target": [1.0, 0, 0, 0], "stiffness": 1.0, "damping": 0.1}),
        "fields.tabulated": (ph.fields.tabulated, {"times": [0.0, 1.0], "torques": np.ones((2, 3)), "frame": "body",
                                                   "between": "linear", "outside": "zero"}),
        "fields.tabulated_gyrostat": (ph.fields.tabulated_gyrostat, {"times": [0.0, 1.0], "momenta": np.ones((2, 3)),
                                                                     "between": "cubic"}),
        "fields.thruster": (ph.fields.thruster, {"torque": (1.0, 0, 0), "on": [(0.0, 1.0)], "frame": "body"}),
    }  # fmt: skip
    for name, given in {
        "gravity": {"mgl": 1.0}, "linear_drag": {"coefficients": 1.0}, "quadratic_drag": {"coefficients": 1.0},
        "dipole": {"moment": (1, 0, 0), "field": (0, 0, 1)},
        "soft_wall": {"attraction": 1.0, "repulsion": 1.0, "gap": 1.1},
        "rotating_dipole": {"moment": (1, 0, 0), "field": (0, 0, 1), "rate": 1.0},
        "gyrostat": {"momentum": (1, 0, 0), "motor": (0, 0, 0)},
        "attitude_spring": {"target": (1, 0, 0, 0), "stiffness": 1.0},
    }.items():  # fmt: skip
        found[f"fields.{name}"] = (getattr(ph.fields, name), given)
    for name, given in {"box": (1, 2, 3), "cone": (1, 2), "cylinder": (1, 2), "ellipsoid": (1, 2, 3),
                        "t_handle": (1, 0.1, 0.5, 0.1), "torus": (2, 1)}.items():  # fmt: skip
        make = getattr(ph.Body, name)
        sizes = dict(zip("abcd", given, strict=False)) | {"mass": 1.0, "density": None}
        found[f"Body.{name}"] = (
            lambda make=make, mass=None, density=None, **s: make(*s.values(), mass=mass, density=density),
            sizes,
        )
    for name, combinator in ph.methods.combinators.items():
        found[name] = (lambda part, combinator=combinator: combinator(part), {"part": "4"})
    return found


ALLOWED = (ph.InputError, ph.StepError)
"""What a wrong argument may end in."""

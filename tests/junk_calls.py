"""Every public function, with arguments that are right and cost little; all its arguments are named."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph
from junk import gravity

Call = tuple[Callable[..., Any], dict[str, Any]]
Calls = dict[str, Call]

LENGTH: dict[str, Any] = {"dt": 0.1, "steps": 3}
SKEW = [[0, 1, 2], [-1, 0, 3], [-2, -3, 0]]
PART = """<robot name="r"><link name="arm"><inertial><origin xyz="0 0 0.2" rpy="0 0 0.5"/><mass value="2.5"/>
<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
EPOCH = "2029-04-13T21:46:00"

MADE = {
    *(
        "Chaos",
        "ChaosMap",
        "Covariance",
        "Ensemble",
        "Event",
        "FinalState",
        "Fit",
        "Gradient",
        "InputError",
        "Lyapunov",
    ),
    *("Method", "Propagator", "Reference", "Respa", "ResultWarning", "Sites", "StepError", "Surd", "Tangent"),
    *("Trajectory", "Tumbling", "fields.Field", "fields.FieldTemplate", "formats.Attitudes", "lie.Motion"),
    *("ndim.Motion", "plots.EnsemblePlots", "plots.TrajectoryPlots", "thermostats.Bussi", "thermostats.NoseHoover"),
    *("vector.Motion",),
}
"""Classes whose objects the library makes, by other functions."""

INTERNAL = (
    *("Ensemble.energy_of", "Ensemble.last_state", "Ephemeris.seen_from", "Event.", "Facets.reflections"),
    *("InputError.", "Method.", "Orbit.seen_from", "PeriodicBox.check_cutoff", "Problem.check_field"),
    *("Problem.in_field", "Problem.kernel_data", "Problem.potential", "Problem.principal", "Problem.snapshot"),
    *("Problem.user_axes", "ResultWarning.", "State.", "StepError.", "Surd.", "Tableau.", "Tangent.at_end"),
    *("Tangent.growth_rates", "Tangent.within_steps", "VaryingBody.at", "VaryingBody.of", "fields.Field."),
    *("fields.FieldTemplate.", "lie.Group.", "lie.crouch_grossman_order", "ndim.Body.", "tableaus."),
    *("thermostats.Bussi.", "thermostats.NoseHoover."),
)
"""Methods that the library calls, and tables."""

FORMULAS = ("math.", "where", "total", "fields.rotor")
"""Operations inside of formulas, which fail like those of Python's math."""


def public() -> Iterator[tuple[str, list[str]]]:
    """Return the names of all public functions that a user calls, with the names of their arguments."""
    for name in ph.__all__:
        if isinstance(getattr(ph, name), types.ModuleType):
            module = importlib.import_module(f"polhode.{name}")
            for word in module.__all__:
                yield from _callable(f"{name}.{word}", getattr(module, word))
        else:
            yield from _callable(name, getattr(ph, name))


def _callable(name: str, value: Any) -> Iterator[tuple[str, list[str]]]:
    if not callable(value) or any(name.startswith(word) for word in FORMULAS):
        return
    if name not in MADE and not any(name.startswith(word) for word in INTERNAL):
        yield name, _arguments(value)
    for word in dir(value) if inspect.isclass(value) else ():
        method = f"{name}.{word}"
        known = word.startswith("_") or any(method.startswith(prefix) for prefix in INTERNAL)
        if not known and callable(getattr(value, word)):
            yield method, _arguments(getattr(value, word))


def _arguments(function: Any) -> list[str]:
    """Names of the arguments, without `self` and those that only gather others."""
    gathered = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = inspect.signature(function).parameters.values()
    return [p.name for p in named if p.kind not in gathered and p.name != "self"]


def given(name: str, found: Calls) -> set[str]:
    """Return the arguments that calls of a function name; variants have a comma after its name."""
    return {word for label, (_, words) in found.items() if label.partition(",")[0] == name for word in words}


def calls() -> Calls:
    """Every public function with arguments that are right and cost little."""
    body, free = ph.Body([1.0, 2.0, 2.5], mass=1.0), ph.problems.free_body()
    sol = ph.solve(free, "imidm", dt=0.1, steps=10, progress=False)
    many = ph.ensemble([1.0, 2.0, 2.5], None, [[1.0, 0, 0], [0, 1.0, 0]], "imidm", **LENGTH, every=1)
    return (
        of_bodies(body) | of_problems(body, free) | of_fields(body) | of_control(body, free) | of_runs(free)
        | of_ensembles(free) | of_steppers(body, free) | of_methods() | of_results(free, sol, many)
        | of_pictures(body, free, sol, many) | of_estimates(body, free) | of_molecules() | of_other_spaces()
    )  # fmt: skip


def of_bodies(body: ph.Body) -> Calls:
    """Bodies, facets and files of bodies."""
    arm = Path("arm.urdf").resolve()
    arm.write_text(PART)
    facets = ph.Facets.box(1, 2, 3)
    solids = {"box": "abc", "cone": ["radius", "height"], "cylinder": ["radius", "height"], "ellipsoid": "abc",
              "t_handle": ["bar_length", "bar_radius", "stem_length", "stem_radius"], "torus": "Rr"}  # fmt: skip
    size = {"R": 2.0, "bar_radius": 0.1, "stem_length": 0.5, "stem_radius": 0.1}
    made: Calls = {
        f"Body.{name}": (getattr(ph.Body, name), {w: size.get(w, 1.0) for w in words} | {"mass": 1.0, "density": None})
        for name, words in solids.items()
    }
    reflecting = {"specular": 0.1, "diffuse": 0.2}
    return made | {
        "Body": (ph.Body, {"inertia": [1.0, 2, 2.5], "mass": 1.0, "centre": [0.0, 0, 0], "pivot": None, "shapes": (),
                           "physical": True}),
        "Body.about": (body.about, {"pivot": [0.0, 0, 1.0]}),
        "Body.from_mesh": (ph.Body.from_mesh, {"path": "none.stl", "mass": 1.0, "density": None, "unit": "m"}),
        "Body.from_mjcf": (ph.Body.from_mjcf, {"path": "none.xml", "body": None}),
        "Body.from_points": (ph.Body.from_points, {"positions": np.eye(3), "masses": 1.0}),
        "Body.from_sdf": (ph.Body.from_sdf, {"path": "none.sdf", "link": None}),
        "Body.from_shape": (ph.Body.from_shape, {"name": "box", "a": 1.0, "b": 1.0, "c": 1.0, "mass": 1.0}),
        "Body.from_urdf": (ph.Body.from_urdf, {"path": arm, "link": None}),
        "Body.moved": (body.moved, {"by": [0.0, 0, 1.0]}),
        "Body.placed": (body.placed, {"pose": ph.formats.to_rigid_transform(np.ones((1, 3)), [[1.0, 0, 0, 0]])[0]}),
        "Body.scaled": (body.scaled, {"mass": 2.0}),
        "Body.turned": (body.turned, {"rotation": [1.0, 0, 0, 0]}),
        "VaryingBody": (ph.VaryingBody, {"inertia": lambda t: (1.0 + 0 * t, 2.0, 2.5), "times": None,
                                         "between": "cubic", "leaving": None}),
        "VaryingBody, a table": (ph.VaryingBody, {"inertia": [[1.0, 2, 2.5]] * 3, "times": [0.0, 1, 2],
                                                  "between": "linear", "leaving": None}),
        "Facets": (ph.Facets, {"normals": np.eye(3), "areas": np.ones(3), "centres": np.eye(3)}),
        "Facets.box": (ph.Facets.box, {"a": 1.0, "b": 2.0, "c": 3.0, "centre": (0, 0, 0)}),
        "Facets.from_mesh": (ph.Facets.from_mesh, {"path": "none.stl", "unit": "m", "centre": None}),
        "Facets.from_triangles": (ph.Facets.from_triangles, {"vertices": np.eye(3), "faces": [[0, 1, 2]],
                                                             "centre": (0, 0, 0)}),
        "Facets.mean_radiation_torque": (facets.mean_radiation_torque, {
            "pressure": 1.0, "axis": (0, 0, 1), "obliquity": 0.3, **reflecting, "angles": 4}),
        "Facets.plate": (ph.Facets.plate, {"centre": (1, 0, 0), "normal": (1, 0, 0), "area": 1.0}),
        "Facets.radiation_torque": (facets.radiation_torque, {"sun": (1, 0, 0), "pressure": 1.0, **reflecting}),
    }  # fmt: skip


def of_problems(body: ph.Body, free: ph.Problem) -> Calls:
    """Problems, orbits and exact results."""
    orbit = ph.Orbit(1.0, 2.0)
    table = ph.Ephemeris(1.0, [0.0, 1.0, 2.0], np.ones((3, 3)))
    start: dict[str, Any] = dict.fromkeys(
        ("attitude", "euler", "euler_deg", "momentum", "spatial_omega", "spatial_momentum")
    )
    files = {"path": "none.oem", "mu": 1.0, "epoch": None}
    named: Calls = {f"problems.{name}": (getattr(ph.problems, name), {}) for name in ph.problems.names()}
    return named | {
        "Ephemeris": (ph.Ephemeris, {"mu": 1.0, "times": [0.0, 1.0], "positions": np.ones((2, 3)),
                                     "velocities": np.ones((2, 3))}),
        "Ephemeris.from_oem": (ph.Ephemeris.from_oem, files | {"segment": None}),
        "Ephemeris.from_spk": (ph.Ephemeris.from_spk, files | {"target": 1, "centre": 2, "times": [0.0, 1.0],
                                                               "epoch": EPOCH}),
        "Ephemeris.position": (table.position, {"t": 0.5}), "Ephemeris.velocity": (table.velocity, {"t": 0.5}),
        "Orbit": (ph.Orbit, {"mu": 1.0, "periapsis": 2.0, "eccentricity": 0.1, "periapsis_time": 0.0,
                             "inclination": 0.0, "node": 0.0, "argument": 0.0, "semi_major_axis": None}),
        "Orbit.position": (orbit.position, {"t": 0.5}), "Orbit.velocity": (orbit.velocity, {"t": 0.5}),
        "Problem": (ph.Problem, {"body": body, "field": None, "omega": [1.0, 0, 0], **start, "t0": 0.0, "name": "",
                                 "t_end": 1.0, "dt": 0.1, "reference": None}),
        "Problem.energy": (free.energy, {}),
        "Problem.starting": (free.starting, {"omega": [1.0, 0, 0], **start, "t0": 0.0}),
        "State": (ph.State, {"quaternion": (1.0, 0, 0, 0), "momentum": (1.0, 0, 0), "t": 0.0}),
        "event": (ph.event, {"function": lambda R: R[2][2], "direction": 0, "terminal": False}),
        "exact": (ph.exact, {"problem": free, "t": [1.0, 2.0], "digits": None}),
        "momentum_rate": (ph.momentum_rate, {"L1": lambda t: (t, 0.0, 1.0), "L2": None, "L3": None}),
        "period": (ph.period, {"problem": free, "digits": None}),
        "precession_angle": (ph.precession_angle, {"problem": free, "digits": None}),
        "problems.describe": (ph.problems.describe, {"name": "fast_top"}),
        "problems.get": (ph.problems.get, {"name": "fast_top"}), "problems.names": (ph.problems.names, {}),
        "tumbling": (ph.tumbling, {"body": body, "energy": None, "momentum": None, "P_psi": 30.0, "P_phi": 7.0,
                                   "mode": "LAM"}),
        "tumbling, energy": (ph.tumbling, {"body": body, "energy": 1.0, "momentum": 1.6}),
    }  # fmt: skip


def of_fields(body: ph.Body) -> Calls:
    """Fields, and what makes them."""
    orbit, facets, f = ph.Orbit(1.0, 2.0), ph.Facets.box(1, 2, 3), ph.fields
    tilted = {"strength": 1.0, "tilt": 0.1, "rate": 0.0, "phase": 0.0}
    found: Calls = {
        "states": (ph.states, {"frame": "body", "z": 1.0}),
        "states, of a field": (lambda **z: ph.states(**z)(lambda omega, z: ((0.0, 0.0, -z), {"z": -z}))(), {"z": 1.0}),
        "potential": (ph.potential, {"function": lambda R: R[2][2], "torque": None}),
        "torque": (ph.torque, {"function": lambda omega: (omega[0], 0.0, 0.0), "frame": "body", "plain": False}),
        "torque, a parameter": (lambda mgl: ph.Problem(body, gravity(mgl), omega=[1, 0, 0]), {"mgl": 1.0}),
        "fields.attitude_spring": (f.attitude_spring, {"target": (1, 0, 0, 0), "stiffness": 1.0}),
        "fields.constant_torque": (f.constant_torque, {"torque": (1.0, 0, 0), "frame": "body"}),
        "fields.describe": (f.describe, {"name": "gravity"}),
        "fields.dipole": (f.dipole, {"moment": (1, 0, 0), "field": (0, 0, 1)}),
        "fields.distant_centre": (f.distant_centre, {"body": body, "strength": 0.1}),
        "fields.eccentric_gravity_gradient": (f.eccentric_gravity_gradient, {
            "body": body, "mu": 1.0, "semi_major_axis": 2.0, "eccentricity": 0.1, "mean_anomaly": 0.0}),
        "fields.facet_drag": (f.facet_drag, {"facets": facets, "density": 1.0, "velocity": None, "orbit": orbit,
                                             "radius": 1.0, "scale_height": 0.1, "coefficient": 2.0}),
        "fields.get": (f.get, {"name": "gravity"}),
        "fields.gravity": (f.gravity, {"mgl": 1.0}),
        "fields.gravity_gradient": (f.gravity_gradient, {"body": body, "mu": 1.0, "radius": 2.0, "phase": 0.0}),
        "fields.gyrostat": (f.gyrostat, {"momentum": (1, 0, 0), "motor": (0, 0, 0)}),
        "fields.heat_bath": (f.heat_bath, {"friction": 1.0, "kT": 1.0, "seed": 1}),
        "fields.internal_damping": (f.internal_damping, {"body": body, "rate": 0.1}),
        "fields.keywords": (f.keywords, {"name": "gravity"}),
        "fields.linear_drag": (f.linear_drag, {"coefficients": 1.0}),
        "fields.magnetic_field": (f.magnetic_field, {"orbit": orbit, **tilted}),
        "fields.make": (f.make, {"name": "uniform_gravity", "body": body, "g": (0, 0, -1.0)}),
        "fields.names": (f.names, {}),
        "fields.nose_hoover": (f.nose_hoover, {"kT": 1.0, "tau": 1.0}),
        "fields.orbit_gravity_gradient": (f.orbit_gravity_gradient, {"body": body, "orbit": orbit,
                                                                     "third_moments": np.zeros((3, 3, 3))}),
        "fields.pd_control": (f.pd_control, {"target": [1.0, 0, 0, 0], "stiffness": 1.0, "damping": 0.1}),
        "fields.quadratic_drag": (f.quadratic_drag, {"coefficients": 1.0}),
        "fields.radiation_pressure": (f.radiation_pressure, {
            "facets": facets, "pressure": 1.0, "sun": (1, 0, 0), "orbit": None, "distance": None, "specular": 0.1,
            "diffuse": 0.2}),
        "fields.radiation_pressure, orbit": (f.radiation_pressure, {"facets": facets, "pressure": 1.0, "orbit": orbit,
                                                                    "distance": 1.0}),
        "fields.residual_dipole": (f.residual_dipole, {"moment": (1, 0, 0), "orbit": orbit, **tilted}),
        "fields.rotating_dipole": (f.rotating_dipole, {"moment": (1, 0, 0), "field": (0, 0, 1), "rate": 1.0}),
        "fields.soft_wall": (f.soft_wall, {"attraction": 1.0, "repulsion": 1.0, "gap": 1.1}),
        "fields.tabulated": (f.tabulated, {"times": [0.0, 1.0], "torques": np.ones((2, 3)), "frame": "body",
                                           "between": "linear", "outside": "zero"}),
        "fields.tabulated_gyrostat": (f.tabulated_gyrostat, {"times": [0.0, 1.0], "momenta": np.ones((2, 3)),
                                                             "between": "cubic"}),
        "fields.thruster": (f.thruster, {"torque": (1.0, 0, 0), "on": [(0.0, 1.0)], "frame": "body"}),
        "fields.uniform_gravity": (f.uniform_gravity, {"body": ph.Body([1.0, 2, 2.5], mass=1.0, pivot=(0, 0, -1)),
                                                       "g": (0, 0, -1.0)}),
        "fields.viscous_core": (f.viscous_core, {"body": body, "strength": 0.1}),
    }  # fmt: skip
    return found | {f"fields.{name}": found[name] for name in ("potential", "states", "torque")}


def of_control(body: ph.Body, free: ph.Problem) -> Calls:
    """Controllers, actuators, and runs with them."""
    run = {"problem": free, "method": "imidm", "dt": 0.1, "steps": 4, "progress": False}
    wheels = {"axes": np.eye(3), "momenta": 0.0, "max_torque": 1.0, "max_momentum": 1.0, "inertia": 0.1,
              "viscous": 0.0, "coulomb": 0.0}  # fmt: skip
    return {
        "controller": (ph.controller, {"function": lambda omega, h: ((0.0, 0.0, 0.0), {"h": h}), "period": 0.2,
                                       "plain": False, "h": 0.0}),
        "actuators.magnetorquer": (ph.actuators.magnetorquer, {"field": lambda t: (t, 0.0, 1.0), "max_dipole": 1.0}),
        "actuators.thrusters": (ph.actuators.thrusters, {"torques": np.eye(3), "min_pulse": 0.1}),
        "actuators.wheels": (ph.actuators.wheels, wheels),
        "solve, control": (ph.solve, run | {"control": lambda omega: [-0.1 * x for x in omega], "period": 0.2}),
    }  # fmt: skip


def of_runs(free: ph.Problem) -> Calls:
    """Runs of one body, and files."""
    top = ph.problems.fast_top()
    shared: dict[str, Any] = {
        "problem": free, "every": 1, "out": None, "overwrite": False, "resume": False, "digits": None,
        "progress": False, "events": (), "stops": None, "tangent": False, "statistics": None, "times": None,
        "max_step": None, "max_turn": None, "control": None, "period": None,
    }  # fmt: skip
    fixed = {"method": "imidm", **LENGTH, "tol": None, "step_tol": None, "t_end": None}
    return {
        "solve": (ph.solve, shared | fixed),
        "solve, tol": (ph.solve, shared | {"method": None, "tol": 1e-8, "t_end": 1.0}),
        "solve, step_tol": (ph.solve, shared | {"method": None, "step_tol": 1e-8, "t_end": 1.0}),
        "solve, times": (ph.solve, shared | {"method": None, "tol": 1e-8, "times": [0.5, 1.0]}),
        "solve, field": (ph.solve, {"problem": top, "step_tol": 1e-8, "t_end": 0.1, "max_step": 0.1, "max_turn": None,
                                    "stops": [0.05], "progress": False}),
        "solve, statistics": (ph.solve, {"problem": top, "step_tol": 1e-8, "times": [0.05, 0.1],
                                         "statistics": ["energy"]}),
        "chaos": (ph.chaos, {"problem": top, "t_end": 0.1, "step_tol": None, "tol": 1e-6, "frequency": None,
                             "omega": [[0.0, 0, 30.0]]}),
        "chaos_map": (ph.chaos_map, {"problem": top, "x": ("x", [0.5, 1.0]), "y": ("y", [0.1, 0.2]),
                                     "start": lambda x, y: {"omega": np.stack([x, y, 0 * x + 2.0], axis=1)},
                                     "t_end": 0.1, "step_tol": 1e-6}),
        "gradient": (ph.gradient, {"fn": lambda omega: omega[0], "problem": free, "method": "imidm", **LENGTH,
                                   "t_end": None, "wrt": ("momentum",)}),
        "load": (ph.load, {"path": "x.zarr"}),
        "lyapunov": (ph.lyapunov, {"problem": top, "method": "imidm", **LENGTH, "tol": None, "step_tol": None,
                                   "t_end": None}),
        "lyapunov, tol": (ph.lyapunov, {"problem": top, "tol": 1e-6, "t_end": 0.1}),
        "warm": (ph.warm, {"problem": free, "method": "imidm", "dt": 0.1, "tol": None, "step_tol": None, "many": False,
                           "device": "cpu"}),
    }  # fmt: skip


def of_ensembles(free: ph.Problem) -> Calls:
    """Runs of many bodies."""
    two = {"bodies": [1.0, 2.0, 2.5], "attitudes": None, "momenta": [[1.0, 0, 0], [0, 1.0, 0]]}
    start = dict.fromkeys(("attitude", "euler", "euler_deg", "momentum", "spatial_momentum", "spatial_omega", "body"))
    adaptive = {"max_step": None, "t_end": 1.0, "times": None}
    return {
        "ensemble": (ph.ensemble, {**two, "method": "imidm", "field": None, "params": None, **LENGTH, "every": None,
                                   "t0": 0.0, "device": "cpu", "statistics": None, "scheduler": None, "out": None,
                                   "overwrite": False, "resume": False, "unit": None, "progress": False,
                                   "tangent": False, "control": None, "period": None}),
        "ensemble, field": (ph.ensemble, {**two, "method": "imidm", "field": gravity, "params": {"mgl": 1}, **LENGTH}),
        "ensemble, problem": (ph.ensemble, {"bodies": free, "method": "imidm", "omega": np.ones((2, 3)), **LENGTH,
                                            **start, "events": None, "t_end": None}),
        "ensemble, tol": (ph.ensemble, {**two, **adaptive, "tol": 1e-6, "step_tol": None, "t0": 0.0, "every": None,
                                        "events": None, "statistics": None}),
        "ensemble, step_tol": (ph.ensemble, {**two, **adaptive, "step_tol": 1e-6, "times": [0.5, 1.0]}),
        "ensemble, control": (ph.ensemble, {**two, "method": "imidm", "dt": 0.1, "steps": 4, "period": 0.2,
                                            "control": lambda omega: [-0.1 * x for x in omega]}),
    }  # fmt: skip


def of_steppers(body: ph.Body, free: ph.Problem) -> Calls:
    """Steps and flows for loops of a user."""
    shared: dict[str, Any] = {
        "bodies": body, "method": "imidm", "dt": 0.1, "field": None, "params": None, "masses": None,
        "translation_bath": None, "translation_params": None, "thermostat": None, "vector": "momentum",
        "layout": "rows", "scalar": "first",
    }  # fmt: skip
    state = {"q": np.tile([1.0, 0, 0, 0], (2, 1)), "pi": np.ones((2, 3))}
    how = {"torque": None, "slow": None, "frame": "body", "dt": None, "n": 1, "t": 0.0, "in_place": False}
    moved = {"x": np.ones((2, 3)), "p": np.ones((2, 3)), **state, "force": None, **how}
    single = ph.stepper(body, "imidm", 0.1)
    flight = {"attitude": (1.0, 0, 0, 0), "momentum": (1.0, 0, 0), "t_end": 1.0, "omega": None, "t0": 0.0,
              "params": None}  # fmt: skip
    return {
        "batch_stepper": (ph.batch_stepper, shared),
        "batch_stepper, masses": (ph.batch_stepper, shared | {"masses": 1.0}),
        "batch_stepper, replace": (ph.batch_stepper([body] * 2, "fem", 0.1).replace, {"indices": [0], "bodies": body}),
        "batch_stepper, step": (ph.batch_stepper(body, "imidm", 0.1).step, state | how),
        "batch_stepper, thermostat": (ph.batch_stepper(
            body, "dmv4", 0.1, thermostat=ph.thermostats.nose_hoover(kT=1.0, tau=1.0)).step, state | how),
        "batch_stepper, move": (ph.batch_stepper(body, "imidm", 0.1, masses=1.0).step, moved),
        "propagator": (ph.propagator, {"problem": free, "tol": 1e-8, "step_tol": None}),
        "propagator, call": (ph.propagator(free, step_tol=1e-8), flight),
        "respa": (ph.respa, {"outer": "strang(dmv6)", "inner": "strang(dmv6)", "n": 4}),
        "stepper": (ph.stepper, {"body": body, "method": "imidm", "dt": 0.1}),
        "stepper, step": (single.step, {"state": ph.State((1.0, 0, 0, 0), (1.0, 0, 0)), "torque": None,
                                        "frame": "body"}),
        "stepper, parts": (lambda quaternion, momentum, t: single.step((quaternion, momentum, t)),
                           {"quaternion": (1.0, 0, 0, 0), "momentum": (1.0, 0, 0), "t": 0.0}),
        "thermostats.bussi": (ph.thermostats.bussi, {"kT": 1.0, "tau": 1.0, "seed": 0, "degrees": None}),
        "thermostats.nose_hoover": (ph.thermostats.nose_hoover, {"kT": 1.0, "tau": 1.0, "chain": 3, "degrees": None}),
        "emit": (ph.emit, {"method": "fem", "problem": free, "to": "c", "name": "polhode", "dt": None,
                           "strict": False}),
        "jax.flow": (ph.jax.flow, {"problem": free, "method": "fem", **LENGTH, "every": None}),
    }  # fmt: skip


def of_methods() -> Calls:
    """Methods, tableaus and combinators."""
    tableau = {"a": [[0, 0], ["2/3", 0]], "b": ["1/4", "3/4"], "c": None, "name": "ralston", "order": None,
               "symmetric": None}  # fmt: skip
    numbers = {"dmv": "4", "lietaylor": "4", "taylor": "4", "galpha": "0.8", "brownian": "2"}
    found: Calls = {
        name: (lambda part, make=make: make(part), {"part": numbers.get(name, "dmv10")})
        for name, make in ph.methods.combinators.items()
    }
    return found | {
        "Tableau": (ph.Tableau, tableau),
        "methods[]": (lambda name: ph.methods[name], {"name": "imidm"}),
        "mkrk": (ph.mkrk, {"tableau": "rk4", "register": False}),
        "surd": (ph.surd, {"rational": "1/2", "factor": "1/3", "radicand": 3}),
    }


def of_results(free: ph.Problem, sol: Any, many: Any) -> Calls:
    """What trajectories and ensembles do, and files of other programs."""
    tangent: Any = ph.solve(free, tol=1e-8, t_end=1.0, tangent=True, progress=False).tangent
    export = {"path": "x.csv", "to": None, "overwrite": True}
    ck = {"path": "x.bc", "overwrite": True, "epoch": EPOCH}
    kernels = sol.export(**ck).resolve()
    aem = sol.export("x.aem", epoch=EPOCH, overwrite=True).resolve()
    nothing: Calls = {f"Trajectory.{word}": (getattr(sol, word), {}) for word in (
        "changes", "drift", "last", "mrp", "parts")}  # fmt: skip
    nothing |= {f"Ensemble.{word}": (getattr(many, word), {}) for word in (
        "changes", "drift", "worst_drift")}  # fmt: skip
    nothing |= {
        f"{type(result).__name__}.{word}": (getattr(result, word), {"euler": "ZYX"})
        for result in (sol, many) for word in ("to_dataframe", "to_xarray")
    }  # fmt: skip
    return nothing | {
        "Ensemble.at": (many.at, {"t": [0.1, 0.2]}),
        "Ensemble.export": (many.export, export),
        "Ensemble.export, xyz": (many.export, {"path": "m.xyz", "points": np.eye(3), "symbols": ["O", "H", "H"],
                                               "centres": np.zeros((2, 3)), "box": None, "overwrite": True}),
        "Ensemble.save": (many.save, {"path": "m.zarr", "overwrite": True}),
        "Ensemble.view": (many.view, {"path": "m.html", "bodies": [0], "together": False, "colour": None,
                                      "positions": None, "title": "", "overwrite": True}),
        "Ensemble.view, together": (many.view, {"path": "m.html", "bodies": [0, 1], "together": True,
                                                "colour": "energy", "positions": None, "overwrite": True}),
        "Tangent.at": (tangent.at, {"t": [0.5]}),
        "Tangent.covariance": (tangent.covariance, {"initial": np.eye(6), "inertia": None, "params": None}),
        "Trajectory.at": (sol.at, {"t": [0.1, 0.2]}),
        "Trajectory.euler": (sol.euler, {"sequence": "ZXZ", "degrees": False}),
        "Trajectory.euler_deg": (sol.euler_deg, {"sequence": "ZXZ"}),
        "Trajectory.export": (sol.export, export | {"comments": False}),
        "Trajectory.export, aem": (sol.export, {"path": "y.aem", "epoch": EPOCH, "system": "UTC", "omega": True,
                                                "overwrite": True, "object_name": "A", "space": "ICRF"}),
        "Trajectory.export, ck": (sol.export, ck | {"path": "y.bc", "spacecraft": -999}),
        "Trajectory.export, vtk": (sol.export, {"path": "y.pvd", "centres": None, "overwrite": True}),
        "Trajectory.save": (sol.save, {"path": "s.zarr", "overwrite": True}),
        "Trajectory.view": (sol.view, {"path": "v.html", "body": None, "title": "", "overwrite": True}),
        "formats.from_rigid_transform": (ph.formats.from_rigid_transform, {
            "pose": ph.formats.to_rigid_transform(np.ones((2, 3)), [[1.0, 0, 0, 0]] * 2)}),
        "formats.read_aem": (ph.formats.read_aem, {"path": aem, "epoch": EPOCH}),
        "formats.read_ck": (ph.formats.read_ck, {"kernels": (kernels, kernels.with_suffix(".tsc")),
                                                 "instrument": -999000, "times": [0.5],
                                                 "epoch": EPOCH, "space": "J2000"}),
        "formats.to_rigid_transform": (ph.formats.to_rigid_transform, {"x": np.ones((2, 3)),
                                                                       "q": [[1.0, 0, 0, 0]] * 2}),
    }  # fmt: skip


def of_pictures(body: ph.Body, free: ph.Problem, sol: Any, many: Any) -> Calls:
    """Pictures, pages and animations."""
    from polhode.analysis.convergence import convergence

    rows = convergence(free, ["imidm"], [0.1], t_end=1.0)
    p, page = ph.plots, {"title": "", "overwrite": True}
    fig = sol.plot.energy()
    animation = {"path": "a.gif", "speed": None, "seconds": 0.2, "fps": 5, "size": (64, 64), "body": None,
                 "overwrite": True}  # fmt: skip
    found: Calls = {f"plots.TrajectoryPlots.{word}": (getattr(sol.plot, word), {"ax": None}) for word in (
        "drift", "energy", "herpolhode", "momentum", "omega")}  # fmt: skip
    found |= {f"plots.EnsemblePlots.{word}": (getattr(many.plot, word), {"bodies": [0, 1], "ax": None}) for word in (
        "energy",)}  # fmt: skip
    return found | {
        "animate": (ph.animate, {"sols": sol, **animation}), "Trajectory.animate": (sol.animate, animation),
        "plots.TrajectoryPlots.polhode": (sol.plot.polhode, {"ax": None, "on": "ellipsoid"}),
        "plots.EnsemblePlots.polhode": (many.plot.polhode, {"bodies": [0, 1], "ax": None, "on": "ellipsoid"}),
        "plots.EnsemblePlots.attitude": (many.plot.attitude, {"bodies": [0, 1], "axis": "z", "ax": None}),
        "plots.EnsemblePlots.drift": (many.plot.drift, {"ax": None}),
        "plots.TrajectoryPlots.attitude": (sol.plot.attitude, {"axes": "z", "ax": None}),
        "plots.TrajectoryPlots.overview": (sol.plot.overview, {}),
        "plots.comparison_plot": (p.comparison_plot, {"rows": rows, "sols": [sol], "title": ""}),
        "plots.convergence_plot": (p.convergence_plot, {"rows": rows, "ax": None, "title": ""}),
        "plots.cycle_plot": (p.cycle_plot, {"body": body, "axes": None}),
        "plots.drift_plot": (p.drift_plot, {"sols": [sol], "ax": None}),
        "plots.flip_plot": (p.flip_plot, {"problem": free, "ax": None, "periods": 1.0}),
        "plots.growth_plot": (p.growth_plot, {"curves": {"a": ([1, 2], [0.1, 0.2])}, "ax": None, "title": ""}),
        "plots.herpolhode_plot": (p.herpolhode_plot, {"problem": free, "ax": None, "periods": 1.0}),
        "plots.poincare": (p.poincare, {"problems": ph.problems.fast_top(), "section": lambda R: R[0][0],
                                        "axes": (lambda R: R[2][2], lambda omega: omega[2]), "t_end": 0.1,
                                        "step_tol": 1e-6, "method": None, "dt": None, "ax": None, "progress": None,
                                        "tol": None}),
        "plots.poinsot_plot": (p.poinsot_plot, {"problem": free}),
        "plots.polhode_family": (p.polhode_family, {"body": body, "ax": None, "count": 2}),
        "plots.save": (lambda fig, path: p.save(fig, path), {"fig": fig[0], "path": "f.png"}),
        "plots.work_precision_plot": (p.work_precision_plot, {"rows": rows, "ax": None, "title": ""}),
        "view": (ph.view, {"sols": sol, "path": "v.html", "body": None, **page}),
        "view_live": (ph.view_live, {"path": "l.html", "kind": "top", "method": None, "t_end": 20.0, **page,
                                     "spin": 30.0, "I1": 5.0}),
        "view_many": (ph.view_many, {"t": many.t, "quaternion": many.quaternion, "path": "w.html", "body": body,
                                     "positions": None, "colour": None, "statistic": "", "box": None, **page}),
    }  # fmt: skip


def of_estimates(body: ph.Body, free: ph.Problem) -> Calls:
    """Measurements, and what is found from them."""
    t = np.linspace(0.0, 1.0, 5)
    seen = ph.solve(free, tol=1e-10, times=t, progress=False)
    rates = ph.measurements.rates(t, seen.omega, sigma=1e-3)
    shared: dict[str, Any] = {
        "problem": free, "data": rates, "free": ["omega"], "priors": None, "loss": "linear", "loss_scale": 1.0,
        "arcs": 1, "starts": 1, "spread": None, "seed": 0, "step_tol": 1e-8, "most": 20,
    }  # fmt: skip
    found = ph.fit(**shared)
    sol = ph.solve(free, "dmv2", dt=0.1, steps=10, progress=False)
    return {
        "fit": (ph.fit, shared),
        "fit, priors": (ph.fit, shared | {"priors": {"omega": (free.omega, 0.1)}, "starts": 2,
                                          "spread": {"omega": 0.1}}),
        "fit, value of a prior": (lambda value, sigma: ph.fit(**shared | {"priors": {"omega": (value, sigma)}}),
                                  {"value": free.omega, "sigma": 0.1}),
        "fit, a spread": (lambda omega: ph.fit(**shared | {"starts": 2, "spread": {"omega": omega}}), {"omega": 0.1}),
        "fit, rates": (lambda omega, sigma: ph.fit(free, ph.measurements.rates(t, omega, sigma=sigma), ["omega"]),
                       {"omega": seen.omega, "sigma": 1e-3}),
        "Fit.plot": (found.plot, {"ax": None}),
        "Lyapunov.plot": (ph.lyapunov(ph.problems.fast_top(), "imidm", **LENGTH).plot, {"ax": None}),
        "ChaosMap.plot": (ph.chaos_map(ph.problems.fast_top(), ("x", [0.5, 1.0]), ("y", [0.1]), lambda x, y: {
            "omega": np.stack([x, y, 0 * x + 2.0], axis=1)}, t_end=0.1).plot, {"indicator": "megno", "ax": None}),
        "measurements.attitudes": (ph.measurements.attitudes, {"t": t, "quaternion": seen.quaternion, "sigma": 1e-3}),
        "measurements.directions": (ph.measurements.directions, {"t": t, "seen": np.eye(3)[[0] * 5], "known": (0, 0, 1),
                                                                 "sigma": 1e-3}),
        "measurements.rates": (ph.measurements.rates, {"t": t, "omega": seen.omega, "sigma": 1e-3, "bias": False}),
        "measurements.values": (ph.measurements.values, {"t": t, "fn": lambda R: R[2][2], "measured": np.ones(5),
                                                         "sigma": 1e-3}),
        "modified_energy": (ph.modified_energy, {"problem": free, "sol": sol, "terms": 1, "method": "dmv2"}),
    }  # fmt: skip


def of_molecules() -> Calls:
    """Molecules made of sites."""
    masses, arms = [16.0, 1.0, 1.0], [[0, 0, 0], [0.8, 0.6, 0], [-0.8, 0.6, 0]]
    water, box = ph.sites(masses, arms), ph.PeriodicBox(12.0)
    x, q = np.ones((2, 3)), np.tile([1.0, 0, 0, 0], (2, 1))
    r = water.positions(x, q)
    return {
        "PeriodicBox": (ph.PeriodicBox, {"lengths": [12.0, 12.0, 12.0]}),
        "PeriodicBox.minimum_image": (box.minimum_image, {"d": x, "out": None}),
        "PeriodicBox.wrap": (box.wrap, {"x": x, "out": None}),
        "Sites.fit": (water.fit, {"positions": r, "box": None, "tolerance": None}),
        "Sites.frames": (water.frames, {"path": "w.xyz", "symbols": ["O", "H", "H"], "box": box, "overwrite": True}),
        "Sites.gather": (water.gather, {"forces": r, "q": q, "frame": "body", "out": None}),
        "Sites.positions": (water.positions, {"x": x, "q": q, "out": None}),
        "Sites.velocities": (water.velocities, {"velocity": x, "q": q, "omega": x}),
        "sites": (ph.sites, {"masses": masses, "positions": arms, "kinds": None}),
    }


def of_other_spaces() -> Calls:
    """Vector spaces, Lie groups, bodies in n dimensions, and attitudes from rates."""

    def up(t: Any) -> Any:
        return (t, 0.0, 1.0)

    basis = [np.array(SKEW, dtype=float)]
    span = {**LENGTH, "t_end": None, "t0": 0.0, "every": 1, "digits": None, "progress": False}
    moments = {"J": [1.0, 2.0, 3.0]}
    h = {"h": 0.01, "steps": 2, "t_end": None, "t0": 0.0, "every": 1, "digits": None, "progress": False}
    return {
        "kinematics": (ph.kinematics, {"omega": up, "t_end": 1.0, "attitude": None, "t0": 0.0, "frame": "body",
                                       "tol": 1e-8, "dt": None, "order": None, "digits": None}),
        "strapdown": (ph.strapdown, {"t": [0.0, 0.5, 1.0], "rates": [[0.1, 0.2, 0.3]] * 3, "increments": None,
                                     "specific_force": None, "velocity_increments": [[0.1, 0.2, 0.3]] * 2,
                                     "attitude": None, "velocity": [0.0, 0.0, 0.0], "gravity": [0.0, 0.0, -9.8],
                                     "samples": 2}),
        "lie.Group": (ph.lie.Group, {"name": "one", "basis": basis, "exp": None, "defect": None, "tidied": None,
                                     "bracket": None}),
        "lie.SO": (ph.lie.SO, {"n": 3}),
        "lie.crouch_grossman": (ph.lie.crouch_grossman, {"tableau": "cg3"}),
        "lie.magnus": (ph.lie.magnus, {"derivatives": [SKEW, SKEW], "h": 0.1, "order": None, "group": None,
                                       "trivialised": "right"}),
        "lie.Motion.defect": (ph.lie.solve("SO(3)", up, **LENGTH).defect, {}),
        "lie.munthe_kaas": (ph.lie.munthe_kaas, {"tableau": "rk4"}),
        "lie.solve": (ph.lie.solve, {"group": "SO(3)", "W": up, "y0": None, "method": "taylor(4)", **span,
                                     "trivialised": "right"}),
        "lie.taylor": (ph.lie.taylor, {"order": 3}),
        "ndim.Body": (ph.ndim.Body, moments),
        "ndim.Motion.drift": (ph.ndim.solve([1.0, 2, 3], SKEW, h=0.01, steps=2).drift, {}),
        "ndim.Motion.invariants": (ph.ndim.solve([1.0, 2, 3], SKEW, h=0.01, steps=2).invariants, {}),
        "ndim.largest_step": (ph.ndim.largest_step, {**moments, "M": SKEW}),
        "ndim.reference": (ph.ndim.reference, {**moments, "M0": SKEW, "t": 0.01, "X0": None, "t0": 0.0,
                                               "digits": None}),
        "ndim.solve": (ph.ndim.solve, {**moments, "M0": SKEW, "X0": None, "method": "moser_veselov", **h,
                                       "potential": None}),
        "ndim.strang": (ph.ndim.strang, {"method": "moser_veselov"}),
        "ndim.yoshida4": (ph.ndim.yoshida4, {"method": "moser_veselov"}),
        "vector.solve": (ph.vector.solve, {"force": lambda u: (-u[0],), "M": 1.0, "u0": [1.0], "p0": [0.0],
                                           "method": "verlet", **span, "potential": None}),
    }  # fmt: skip

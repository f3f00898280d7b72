"""The motions of the net: one for each kind of field, body and controller, in any units of time and of inertia."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

TENSOR = np.array([[2.1, -0.4, 0.1], [-0.4, 1.5, 0.3], [0.1, 0.3, 1.2]])
ATTITUDE = ("XYZ", [0.5, 1.0, -0.7])
OMEGA = np.array([0.4, -1.1, 0.7])
END, STEP = 2.0, 0.05
FAILS = 1.33
"""The time at which the torque of a failing motion ceases to be a number."""


@dataclasses.dataclass(frozen=True)
class Units:
    """The user's units of time and of moments of inertia, in those of the numbers above."""

    time: float = 1.0
    inertia: float = 1.0

    @property
    def momentum(self) -> float:
        """Factor of angular momenta."""
        return self.inertia / self.time

    @property
    def torque(self) -> float:
        """Factor of torques and energies."""
        return self.momentum / self.time


ONE = Units()
Fields = Callable[[Units], Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """A motion.

    Attributes
    ----------
    field : the field in given units; None for a free body
    method : a method for equal steps
    control : the controller and its period in given units, as arguments of a run
    traits : words for what limits the ways that it can be run in: see `ways`
    body : the body in given units
    """

    name: str
    field: Fields | None
    method: str = "mkrk(rk4)"
    control: Callable[[Units], dict[str, Any]] | None = None
    traits: frozenset[str] = frozenset()
    body: Callable[[Units], Any] = lambda units: ph.Body(TENSOR * units.inertia)

    def problem(self, units: Units = ONE, fails: bool = False) -> ph.Problem:
        """The problem; with `fails`, a torque is added that ceases to be a number at the time `FAILS`."""
        field = None if self.field is None else self.field(units)
        if fails:
            field = failing(units) if field is None else field + failing(units)
        return ph.Problem(self.body(units), field, euler=ATTITUDE, omega=OMEGA / units.time)


# --- fields -----------------------------------------------------------------------------------------


@ph.torque
def push(t: Any, R: Any, omega: Any, a: Any, rate: Any) -> Any:
    """A torque of time, attitude and angular velocity."""
    x, y, z = (w / rate for w in omega)
    s = t * rate
    return a * (ph.math.sin(2 * s) - 0.4 * x), a * (R[0][1] - 0.1 * y), a * (ph.math.cos(s) - 0.6 * z)


@ph.torque(plain=True)
def plain_push(t: Any, R: Any, omega: Any, a: Any, rate: Any) -> Any:
    """The same in plain Python."""
    x, y, z = (w / rate for w in omega)
    s = t * rate
    return a * (np.sin(2 * s) - 0.4 * x), a * (R[0][1] - 0.1 * y), a * (np.cos(s) - 0.6 * z)


@ph.torque
def broken(t: Any, a: Any, limit: Any) -> Any:
    """A torque that is no number from t = limit on."""
    return a * ph.math.sqrt(1 - t / limit), 0.0, 0.0


def failing(units: Units) -> Any:
    """See `FAILS`."""
    return broken(0.1 * units.torque, FAILS * units.time)


@ph.torque
def relay(R: Any, a: Any, level: Any) -> Any:
    """A torque that changes its sign where the attitude passes a level."""
    return a * ph.where(R[0][1] > level, 1.0, -1.0), 0.0, a * abs(R[1][2])


@ph.torque
def switched(t: Any, a: Any, on: Any) -> Any:
    """A torque that begins at a time."""
    return 0.0, a * ph.where(t > on, 1.0, 0.0), 0.1 * a


@ph.states(wheel=0.5)
def driven(t: Any, omega: Any, wheel: Any, a: Any, momentum: Any, rate: Any) -> Any:
    """A wheel about the third axis; its momentum is given in a unit, and driven by a motor."""
    motor = a * ph.math.sin(t * rate) - 0.05 * a * wheel
    h = wheel * momentum
    return ph.math.cross((0.0, 0.0, h), omega) - (0.0, 0.0, motor), {"wheel": motor / momentum}


@ph.states(wheel=0.5)
def switched_wheel(t: Any, R: Any, omega: Any, wheel: Any, a: Any, momentum: Any, level: Any) -> Any:
    """A wheel whose motor follows a relay on the attitude, with friction."""
    motor = a * (ph.where(R[0][1] > level, 1.0, -1.0) - wheel)
    h = wheel * momentum
    return ph.math.cross((0.0, 0.0, h), omega) - (0.0, 0.0, motor), {"wheel": motor / momentum}


def gravity(units: Units) -> Any:
    """A potential."""
    return ph.fields.gravity(1.3 * units.torque)


def dipole(units: Units) -> Any:
    """Another potential."""
    return ph.fields.dipole(moment=[0.0, 0.3, 0.4], field=[0.0, 0.0, 1.5 * units.torque])


def smooth(units: Units) -> Any:
    """See `push`."""
    return push(0.5 * units.torque, 1 / units.time)


def thruster(units: Units) -> Any:
    """Burns that begin and end within steps."""
    on = np.array([[0.337, 0.713], [0.8, 0.91], [1.5, 1.717]]) * units.time
    return ph.fields.thruster(np.array([0.3, -0.2, 0.25]) * units.torque, on=on.tolist())


def table(units: Units) -> Any:
    """A table of torques that jumps between 0.62 and 0.6201."""
    times = np.array([0.0, 0.62, 0.6201, 1.333, 3.0])
    torques = np.array([[0.1, 0, 0], [0.3, 0.1, 0], [-0.3, 0.2, 0.1], [0, 0.1, -0.2], [0.1, 0, 0]])
    return ph.fields.tabulated(times=(times * units.time).tolist(), torques=(torques * units.torque).tolist())


def unfolding(units: Units) -> Any:
    """A body whose booms unfold."""
    inertia, time = units.inertia, units.time

    def tensor(t: Any) -> Any:
        s = 1 / (1 + ph.math.exp(5 - 4 * t / time))
        x, y, z = inertia * (2 + 2 * s), inertia * (3 + s), inertia * (4 - s)
        return (x, 0.1 * s * inertia, 0.0), (0.1 * s * inertia, y, 0.2 * inertia), (0.0, 0.2 * inertia, z)

    return ph.VaryingBody(tensor)


# --- controllers ------------------------------------------------------------------------------------


def pd(R: Any, omega: Any, stiffness: Any, damping: Any) -> Any:
    """A law that is a formula."""
    e = (R[2, 1] - R[1, 2]) / 2, (R[0, 2] - R[2, 0]) / 2, (R[1, 0] - R[0, 1]) / 2
    return [-stiffness * e[i] - damping * omega[i] for i in range(3)]


def formula(units: Units) -> dict[str, Any]:
    """See `pd`."""
    law: Any = ph.controller(pd)
    return {"control": law(1.0 * units.torque, 2.0 * units.momentum), "period": 0.1 * units.time}


def python(units: Units) -> dict[str, Any]:
    """The same, clipped by NumPy."""

    def clipped(R: Any, omega: Any) -> Any:
        return np.clip(pd(R, omega, units.torque, 2.0 * units.momentum), -0.3 * units.torque, 0.3 * units.torque)

    return {"control": clipped, "period": 0.1 * units.time}


def pulses(units: Units) -> dict[str, Any]:
    """Thrusters that fire in every period for a part of a step."""
    directions = 2.0 * units.torque * np.vstack([np.eye(3), -np.eye(3)])

    @ph.controller(jets=ph.actuators.thrusters(directions))
    def firing(R: Any, omega: Any, rate: Any, time: Any) -> Any:
        on = [-0.04 * time * omega[i] / rate for i in range(3)]
        return {"jets": [*on, -on[0], -on[1], -on[2]]}

    return {"control": firing(1 / units.time, units.time), "period": 0.1 * units.time}


def shortest(units: Units) -> dict[str, Any]:
    """Pulses of a five-thousandth of their period."""
    directions = 100.0 * units.torque * np.eye(3)

    @ph.controller(jets=ph.actuators.thrusters(directions))
    def firing(time: Any) -> Any:
        return {"jets": [1e-4 * time, 5e-5 * time, 2e-5 * time]}

    return {"control": firing(units.time), "period": 0.5 * units.time}


# --- the list ---------------------------------------------------------------------------------------

STATES, NOISE, CHAIN, CONTROL, PYTHON, JUMPS, FREE = (
    "states", "noise", "chain", "control", "python", "jumps in the state", "free",
)  # fmt: skip
"""Words for what limits the ways in which a motion can be run."""

DRIFT = "symrot_auto"


def bath(units: Units) -> Any:
    """A potential and a heat bath."""
    return gravity(units) + ph.fields.heat_bath(kT=0.5 * units.torque, friction=0.3 * units.momentum, seed=1)


def chain(units: Units, state: Any = None) -> Any:
    """A potential and a thermostat, whose chain may start from a state."""
    first = {} if state is None else {"chain": state}
    return gravity(units) + ph.fields.nose_hoover(kT=0.5 * units.torque, tau=0.3 * units.time, **first)


def wheel(units: Units) -> Any:
    """See `driven`."""
    return driven(0.3 * units.torque, units.momentum, 1 / units.time)


def wheel_relay(units: Units) -> Any:
    """See `switched_wheel`."""
    return switched_wheel(0.3 * units.torque, units.momentum, 0.2)


def switching(units: Units) -> Any:
    """See `relay`."""
    return relay(0.5 * units.torque, 0.2)


def _case(name: str, field: Fields | None, *traits: str, **more: Any) -> Case:
    return Case(name, field, traits=frozenset(traits), **more)


LIST = (
    _case("free", None, FREE, method="dmv6"),
    _case("smooth", smooth),
    _case("potential", gravity, method=f"strang({DRIFT})"),
    _case("two potentials", lambda u: gravity(u) + dipole(u), method=f"strang({DRIFT})"),
    _case("potential and torque", lambda u: gravity(u) + smooth(u)),
    _case("relay", switching, JUMPS),
    _case("switch in time", lambda u: switched(0.5 * u.torque, 0.777 * u.time)),
    _case("table", table),
    _case("thruster", thruster),
    _case("states", wheel, STATES, method="verner87"),
    _case("states and relay", wheel_relay, STATES, JUMPS, method="verner87"),
    _case("varying body", smooth, STATES, method="verner87", body=unfolding),
    _case("heat bath", bath, NOISE, method=f"baoab({DRIFT})"),
    _case("chain", chain, CHAIN, method=f"nose_hoover(strang({DRIFT}))"),
    _case("plain torque", lambda u: plain_push(0.5 * u.torque, 1 / u.time), PYTHON),
    _case("controller", gravity, CONTROL, control=formula),
    _case("controller in Python", gravity, CONTROL, PYTHON, control=python),
    _case("pulses", gravity, CONTROL, control=pulses),
    _case("shortest pulses", gravity, CONTROL, control=shortest),
    _case("controller and relay", switching, CONTROL, JUMPS, control=formula),
    _case("controller and thruster", thruster, CONTROL, control=formula),
)
CASES = {case.name: case for case in LIST}
"""All motions, by name."""

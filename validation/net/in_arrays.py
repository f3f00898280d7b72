"""Many bodies in the arrays of the caller: however they are cut, laid out and grouped, they move the same."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import polhode as ph

from .check import Cell
from .runs import ROUND_OFF

RNG = np.random.default_rng(31)
NUMBER, STEP, STEPS = 11, 0.0625, 6
MOMENTS = RNG.uniform(1.0, 1.9, (NUMBER, 3))
MASSES = RNG.uniform(1.0, 2.0, NUMBER)
X, P, PI, FORCE, TORQUE = RNG.normal(size=(5, NUMBER, 3))
Q = np.eye(4)[np.arange(NUMBER) % 4]
BATH = ph.fields.heat_bath(kT=1.5, friction=((1.0, 0.2, 0.0), (0.2, 2.0, 0.1), (0.0, 0.1, 0.5)), seed=3)
LINEAR = ph.fields.heat_bath(kT=0.7, friction=2.0, seed=3)
CHAINS = ph.thermostats.nose_hoover(kT=1.3, tau=0.5)
RESCALING = ph.thermostats.bussi(kT=1.3, tau=0.5, seed=4)


@ph.torque
def held(T: Any) -> Any:
    """The torque that the caller gives."""
    return T


@ph.potential
def weight(R: Any, mgl: Any) -> Any:
    """A potential of each body."""
    return mgl * R[2][2]


MGL = RNG.uniform(0.5, 2.0, NUMBER)


def _up(q: np.ndarray) -> np.ndarray:
    """The vertical in the body frame, R^T e3."""
    w, x, y, z = q.T
    return np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1)


E3 = np.array([0.0, 0.0, 1.0])


def fast(t: Any, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forces and torques of the potential x^2/2 + (1 + x_3) R33 of every body."""
    return -x - _up(q)[:, 2:] * E3, -(1 + x[:, 2:]) * np.cross(E3, _up(q))


def slow(t: Any, x: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weaker ones, of the potential x^2/10 - R33/5."""
    return -0.2 * x, 0.2 * np.cross(E3, _up(q))


def twisting(t: Any, q: np.ndarray) -> np.ndarray:
    """The torques of the potential mgl R33."""
    torque: np.ndarray = -MGL[: len(q), None] * np.cross(E3, _up(q))
    return torque


def twisting_slowly(t: Any, q: np.ndarray) -> np.ndarray:
    """The torques of the potential R33/5."""
    torque: np.ndarray = -0.2 * np.cross(E3, _up(q))
    return torque


@dataclasses.dataclass(frozen=True)
class Kind:
    """How bodies are stepped.

    Attributes
    ----------
    method : a name or a scheme
    form : the arguments of `ph.batch_stepper` beside bodies and step
    moves : whether the centres of mass move too
    acting : what each call is given: torques, forces
    as_ensemble : the arguments of an ensemble that makes the same steps; None if there is none
    """

    method: Any
    form: dict[str, Any] = dataclasses.field(default_factory=dict)
    moves: bool = False
    acting: tuple[Any, ...] = ()
    also: dict[str, Any] = dataclasses.field(default_factory=dict)
    as_ensemble: dict[str, Any] | None = None

    def stepper(self, **more: Any) -> Any:
        """A new stepper."""
        form = self.form | ({"masses": MASSES} if self.moves else {}) | more
        return ph.batch_stepper(form.pop("bodies", MOMENTS), self.method, form.pop("dt", STEP), **form)

    def start(self) -> tuple[np.ndarray, ...]:
        """New arrays with the first states."""
        state = (X, P, Q, PI) if self.moves else (Q, PI)
        return tuple(a.copy() for a in state)

    def step(self, stepper: Any, state: Any, n: int = 1, **more: Any) -> Any:
        """Make steps."""
        return stepper.step(*state, *self.acting, n=n, **self.also | more)

    @functools.cached_property
    def base(self) -> Any:
        """The states after all steps in one call."""
        state = self.start()
        self.step(self.stepper(), state, STEPS)
        return state


HELD = {"field": held((0.0, 0.0, 0.0)), "params": {"T": TORQUE}}
WEIGHT = {"field": weight, "params": {"mgl": MGL}}
SCHEME = "strang(dmv6)"
KINDS = {
    "free": Kind("dmv6", as_ensemble={}),
    "held torques": Kind("fem", acting=(TORQUE,), as_ensemble=HELD),
    "field": Kind("fem", WEIGHT, as_ensemble=WEIGHT),
    "torques from a function": Kind(SCHEME, acting=(twisting,)),
    "heat bath": Kind("baoab(rot123)", {"field": BATH}, as_ensemble={"field": BATH}),
    "rescaling": Kind("strang(rot123)", {"thermostat": RESCALING}, acting=(TORQUE,)),
    "chains": Kind("strang(rot123)", {"thermostat": CHAINS}, acting=(TORQUE,)),
    "several steps": Kind(ph.respa(SCHEME, SCHEME, 3), acting=(twisting,), also={"slow": twisting_slowly}),
    "moving": Kind(SCHEME, moves=True, acting=(fast,)),
    "moving, held": Kind("fem", moves=True, acting=(FORCE, TORQUE)),
    "moving, heat bath": Kind(
        "baoab(rot123)", {"field": BATH, "translation_bath": LINEAR}, moves=True, acting=(FORCE, TORQUE)
    ),
    "moving, rescaling": Kind("strang(rot123)", {"thermostat": RESCALING}, moves=True, acting=(fast,)),
    "moving, chains": Kind("strang(rot123)", {"thermostat": CHAINS}, moves=True, acting=(fast,)),
    "moving, several steps": Kind(
        ph.respa(SCHEME, SCHEME, 3), moves=True, acting=(fast,), also={"slow": slow}
    ),
}  # fmt: skip
"""All of them, by name."""


def _same(cell: Cell, what: str, now: Any, before: Any) -> None:
    for k, (a, b) in enumerate(zip(now, before, strict=True)):
        cell.same(f"{what}: array {k}", a, b)


def _close(cell: Cell, what: str, now: Any, before: Any, allowed: float = ROUND_OFF) -> None:
    for k, (a, b) in enumerate(zip(now, before, strict=True)):
        cell.close(f"{what}: array {k}", a, b, allowed)


def cut(kind: Kind, cell: Cell) -> None:
    """Steps in one call, one by one, by a pickled stepper and by a new one that continues have the same bits."""
    compared = _parabola if kind is KINDS["moving, held"] else _same
    one, state = kind.stepper(), kind.start()
    for _ in range(STEPS):
        kind.step(one, state)
    compared(cell, "one by one", state, kind.base)
    first, state = kind.stepper(), kind.start()
    kind.step(first, state, 2)
    kept, new = pickle.loads(pickle.dumps(first)), kind.stepper()
    if "thermostat" in kind.form:
        new.thermostat.state = first.thermostat.state
    elif "field" in kind.form and kind.form["field"] is BATH:
        new.steps_made = first.steps_made
    for name, later in (("the same", first), ("pickled", kept), ("new", new)):
        copy = tuple(a.copy() for a in state)
        kind.step(later, copy, STEPS - 2)
        compared(cell, f"continued, {name}", copy, kind.base)


def _parabola(cell: Cell, what: str, now: Any, before: Any) -> None:
    """A held force moves a centre by one parabola for all steps of a call."""
    _close(cell, f"{what}, centres", now[:2], before[:2])
    _same(cell, f"{what}, rotation", now[2:], before[2:])


def again(kind: Kind, cell: Cell) -> None:
    """A second stepper has the bits of the first; so have new arrays, and those of the caller are left alone."""
    state = kind.start()
    kind.step(kind.stepper(), state, STEPS)
    _same(cell, "again", state, kind.base)
    given = kind.start()
    found = kind.step(kind.stepper(), given, STEPS, in_place=False)
    _same(cell, "new arrays", found, kind.base)
    _same(cell, "given arrays", given, kind.start())


def ensemble(kind: Kind, cell: Cell) -> None:
    """The states are those of an ensemble."""
    assert kind.as_ensemble is not None
    many = ph.ensemble(MOMENTS, Q, PI, kind.method, dt=STEP, steps=STEPS, **kind.as_ensemble)
    _same(cell, "ensemble", kind.base, (many.quaternion[-1], many.momentum[-1]))


def alone(kind: Kind, cell: Cell) -> None:
    """A body depends neither on the others nor on their number."""
    for number in (1, 5):
        form = {"params": {"mgl": MGL[:number]}} if kind.form is WEIGHT else {}
        if kind.moves:
            form["masses"] = MASSES[:number]
        acting = tuple(a if callable(a) else a[:number] for a in kind.acting)
        few = dataclasses.replace(kind, acting=acting)
        state = tuple(a[:number].copy() for a in kind.start())
        few.step(few.stepper(bodies=MOMENTS[:number], **form), state, STEPS)
        _same(cell, f"{number} alone", state, [a[:number] for a in kind.base])


def own_steps(kind: Kind, cell: Cell) -> None:
    """Steps of each body are those of a stepper with its step; equal ones are those of one step for all."""
    dt = np.linspace(0.03, 0.06, NUMBER)
    each = kind.start()
    kind.step(kind.stepper(dt=dt), each, STEPS)
    for k in (0, NUMBER - 1):
        state = kind.start()
        kind.step(kind.stepper(dt=float(dt[k])), state, STEPS)
        _same(cell, f"step of body {k}", [a[k] for a in each], [a[k] for a in state])
    state = kind.start()
    kind.step(kind.stepper(), state, STEPS, dt=np.full(NUMBER, STEP))
    _same(cell, "equal steps", state, kind.base)


def backwards(kind: Kind, cell: Cell) -> None:
    """A symmetric method goes back to the start."""
    stepper, state = kind.stepper(), kind.start()
    kind.step(stepper, state, STEPS)
    kind.step(stepper, state, STEPS, dt=-STEP)
    _close(cell, "back", state, kind.start(), 1e-11)


RANDOM = frozenset({"heat bath", "moving, heat bath", "rescaling", "moving, rescaling"})
TOGETHER = frozenset({"rescaling", "chains", "moving, rescaling", "moving, chains"})
"""Kinds whose thermostat rescales all bodies by one factor."""

# --- forms of the arrays ----------------------------------------------------------------------------

HERE = KINDS["held torques"]


def columns(cell: Cell) -> None:
    """In columns, with the scalar last, and both: the same bits."""
    for layout in ("rows", "columns"):
        for scalar in ("first", "last"):
            q, pi = HERE.start()
            q = q[:, [1, 2, 3, 0]] if scalar == "last" else q
            q, pi, torque = (a if layout == "rows" else a.T for a in (q, pi, TORQUE))
            state = np.ascontiguousarray(q), np.ascontiguousarray(pi)
            made = HERE.stepper(layout=layout, scalar=scalar)
            made.step(*state, np.ascontiguousarray(torque), n=STEPS)
            q, pi = (a if layout == "rows" else a.T for a in state)
            _same(cell, f"{layout}, {scalar}", (q[:, [3, 0, 1, 2]] if scalar == "last" else q, pi), HERE.base)


def velocities(cell: Cell) -> None:
    """Angular velocities, and velocities of the centres, are those of the momenta."""
    q, omega = Q.copy(), PI / MOMENTS
    HERE.stepper(vector="omega").step(q, omega, TORQUE, n=STEPS)
    _close(cell, "angular velocities", (q, omega * MOMENTS), HERE.base, 1e-13)
    kind = KINDS["moving, held"]
    x, v, q, omega = X.copy(), P / MASSES[:, None], Q.copy(), PI / MOMENTS
    kind.stepper(vector="omega").step(x, v, q, omega, FORCE, TORQUE, n=STEPS)
    _close(cell, "velocities", (x, v * MASSES[:, None], q, omega * MOMENTS), kind.base, 1e-13)


def singles(cell: Cell) -> None:
    """Arrays in single precision have doubles inside: one rounding at the end of a call."""
    state = tuple(a.astype(np.float32) for a in HERE.start())
    start = state[0].astype(float), state[1].astype(float)
    HERE.stepper().step(*state, TORQUE.astype(np.float32), n=STEPS)
    HERE.stepper().step(*start, TORQUE.astype(np.float32).astype(float), n=STEPS)
    cell.claim(all(a.dtype == np.float32 for a in state), "arrays are no longer in single precision")
    _close(cell, "singles", state, start, 1e-7)


def arrays_of_jax(cell: Cell) -> None:
    """Arrays of JAX come back as such, with the same bits, and the given ones are left alone."""
    import jax

    for name in ("held torques", "moving, held", "heat bath"):
        kind = KINDS[name]
        with jax.enable_x64(True):
            state = tuple(jax.numpy.asarray(a) for a in kind.start())
            acting = tuple(jax.numpy.asarray(a) for a in kind.acting)
            found = dataclasses.replace(kind, acting=acting).step(kind.stepper(), state, STEPS)
            cell.claim(all(isinstance(a, jax.Array) for a in found), f"{name}: the result is no array of JAX")
            _same(cell, f"JAX, {name}", [np.asarray(a) for a in found], kind.base)
            _same(cell, f"JAX, given, {name}", [np.asarray(a) for a in state], kind.start())


class Lent:
    """An array of a library that shares its memory by DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **more: Any) -> Any:
        """The memory."""
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self) -> Any:
        """Where it is."""
        return self.array.__dlpack_device__()


def lent_memory(cell: Cell) -> None:
    """Arrays that are lent by DLPack are changed in place, to the same bits."""
    for name in ("held torques", "moving, held"):
        kind = KINDS[name]
        state = kind.start()
        acting = tuple(Lent(a) for a in kind.acting)
        found = dataclasses.replace(kind, acting=acting).step(kind.stepper(), tuple(map(Lent, state)), STEPS)
        cell.claim(isinstance(found[0], Lent), f"{name}: the arrays come back as {type(found[0]).__name__}")
        _same(cell, f"lent, {name}", state, kind.base)


def frames(cell: Cell) -> None:
    """A torque in space, from an array or a function, is that in the body, turned."""
    spatial = ph.ensemble(
        MOMENTS, Q, PI, "fem", dt=STEP, steps=1, field=held_in_space((0.0, 0.0, 0.0)), params={"T": TORQUE}
    )
    q, pi = HERE.start()
    HERE.stepper().step(q, pi, TORQUE, frame="space")
    _same(cell, "held in space", (q, pi), (spatial.quaternion[-1], spatial.momentum[-1]))
    kind = KINDS["torques from a function"]
    state = kind.start()

    def in_space(t: Any, q: np.ndarray) -> np.ndarray:
        from scipy.spatial.transform import Rotation

        turned: np.ndarray = Rotation.from_quat(q, scalar_first=True).apply(twisting(t, q))
        return turned

    kind.stepper().step(*state, in_space, n=STEPS, frame="space")
    _close(cell, "function in space", state, kind.base, 1e-13)


@ph.torque(frame="space")
def held_in_space(T: Any) -> Any:
    """The same in the space frame."""
    return T


def functions_and_fields(cell: Cell) -> None:
    """Torques from a function are those of a field with the same potential."""
    kind, state = KINDS["torques from a function"], (Q.copy(), PI.copy())
    ph.batch_stepper(MOMENTS, SCHEME, STEP, **WEIGHT).step(*state, n=STEPS)
    _close(cell, "field", state, kind.base, 1e-13)
    both = kind.stepper(field=weight(1.0))
    cell.refuses("takes torques as arrays", lambda: both.step(*kind.start(), twisting))


def held_for_each_step(cell: Cell) -> None:
    """Torques for each of the steps are those of single calls; forces are refused."""
    torques = RNG.normal(size=(STEPS, NUMBER, 3))
    together, apart, one = HERE.start(), HERE.start(), HERE.stepper()
    HERE.stepper().step(*together, torques, n=STEPS)
    for torque in torques:
        one.step(*apart, torque)
    _same(cell, "torques", together, apart)
    kind = KINDS["moving, held"]
    cell.refuses("force must have the shape", lambda: kind.stepper().step(*kind.start(), torques, TORQUE, n=STEPS))


def tensors(cell: Cell) -> None:
    """Bodies as tensors, as a list and one for all."""
    turns = np.linalg.qr(RNG.normal(size=(NUMBER, 3, 3)))[0]
    given = turns * MOMENTS[:, None, :] @ turns.swapaxes(1, 2)
    ends = []
    for bodies in (given, [ph.Body(tensor) for tensor in given]):
        state = HERE.start()
        HERE.stepper(bodies=bodies).step(*state, TORQUE, n=STEPS)
        ends.append(state)
    _same(cell, "list of bodies", ends[1], ends[0])
    ends = []
    for bodies in (ph.Body(MOMENTS[0]), np.tile(MOMENTS[0], (NUMBER, 1)), MOMENTS[0]):
        state = HERE.start()
        HERE.stepper(bodies=bodies).step(*state, TORQUE, n=STEPS)
        ends.append(state)
    for one in ends[1:]:
        _same(cell, "one body for all", one, ends[0])


def units(cell: Cell) -> None:
    """In other units of time and of inertia, free bodies and those with torques have the same bits."""
    for a, b in ((40, 0), (0, -40), (-30, 20)):
        time, inertia = 2.0**a, 2.0**b
        q, pi = Q.copy(), PI * inertia / time
        stepper = ph.batch_stepper(MOMENTS * inertia, "fem", STEP * time)
        stepper.step(q, pi, TORQUE * inertia / time**2, n=STEPS)
        _same(cell, f"time 2^{a}, inertia 2^{b}", (q, pi * time / inertia), HERE.base)


def replaced(cell: Cell) -> None:
    """Replaced bodies move as bodies of a new stepper."""
    stepper, others = HERE.stepper(), 1.2 * MOMENTS
    stepper.step(*HERE.start(), TORQUE)
    stepper.replace([1, 4], others[[1, 4]])
    bodies = MOMENTS.copy()
    bodies[[1, 4]] = others[[1, 4]]
    one, other = HERE.start(), HERE.start()
    HERE.step(stepper, one, STEPS)
    HERE.step(HERE.stepper(bodies=bodies), other, STEPS)
    _same(cell, "replaced", one, other)


def failed(cell: Cell) -> None:
    """A torque that is no number stops its body alone, which is said once and left as it was."""
    torque = TORQUE.copy()
    torque[2] = np.nan
    stepper, state = HERE.stepper(), HERE.start()
    stepper.step(*state, torque, n=STEPS)
    cell.same("failed", stepper.failed, np.array([2]))
    others = [k for k in range(NUMBER) if k != 2]
    _same(cell, "others", [a[others] for a in state], [a[others] for a in HERE.base])
    _same(cell, "the body", [a[2] for a in state], [a[2] for a in HERE.start()])
    cell.says("1 of 11 bodies failed: 2")


CHECKS: dict[str, Callable[[Kind, Cell], None]] = {
    "however cut": cut, "again": again, "ensemble": ensemble, "alone": alone, "own steps": own_steps,
    "backwards": backwards,
}  # fmt: skip


def _fits(name: str, check: str) -> bool:
    kind = KINDS[name]
    return not (
        (check == "ensemble" and kind.as_ensemble is None)
        or (check == "alone" and name in TOGETHER)
        or (check == "own steps" and name in TOGETHER | {"moving, heat bath", "heat bath"})
        or (check == "backwards" and name in RANDOM | {"held torques", "field", "moving, held", "free"})
    )


CELLS: dict[str, Callable[[Cell], None]] = {
    **{
        f"{name}, {what}": functools.partial(check, kind)
        for name, kind in KINDS.items() for what, check in CHECKS.items() if _fits(name, what)
    },
    "columns": columns, "velocities": velocities, "singles": singles, "arrays of JAX": arrays_of_jax,
    "lent memory": lent_memory, "frames": frames, "functions and fields": functions_and_fields,
    "torques for each step": held_for_each_step, "forms of bodies": tensors, "units": units, "replaced": replaced,
    "failed": failed,
}  # fmt: skip
"""By name."""

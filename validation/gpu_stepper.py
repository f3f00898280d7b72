"""The stepper of many bodies in arrays on a real NVIDIA GPU against the processor, for every library that is installed.

    python validation/gpu_stepper.py [--library torch] [--bodies 10000] [--only cases] [--out results.json]

Every case makes the same calls with NumPy arrays and with arrays of CuPy, PyTorch and JAX. Both round at every
operation, and only the placement of fused multiply-adds and the last bits of elementary functions differ, so the
largest difference must be below `LIMIT` units in the last place for each step and each unit of the states. On streams
that are not the default one, and repeated, the bits must be the same. At the end come temperatures of long runs in a
heat bath, in standard deviations, and speeds. The exit status is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polhode as ph

LIBRARIES = ("torch", "cupy", "jax")
LIMIT = 16
"""Largest difference for each step, in units in the last place of 1 + the largest number of the states."""

SIGMA = 4.0
"""Largest deviation of a temperature, in standard deviations."""

DT, KT, CALLS = 0.02, 1.3, 3
FRICTION = ((1.0, 0.2, 0.0), (0.2, 2.0, 0.1), (0.0, 0.1, 0.5))
BATH = ph.fields.heat_bath(kT=KT, friction=FRICTION, seed=3)
CHAIN = ph.fields.nose_hoover(kT=KT, tau=0.5, chain=[[0.1, -0.2, 0.3], [1.0, -0.5, 0.2]])
TIMES = np.linspace(0.0, 1.0, 80)
TABLE = ph.fields.tabulated(times=TIMES, torques=np.stack([np.sin(k * TIMES) for k in (1, 2, 3)], axis=1))


@ph.torque
def pressure(R, sun, normals, areas):
    """Light on facets, as a sum over rows."""
    s = R.T @ sun

    def facet(normal, area):
        return ph.math.cross(normal, -area * max(ph.math.dot(normal, s), 0.0) * s)

    return ph.total(facet, normals, areas)


NORMALS = np.random.default_rng(8).normal(size=(70, 3))
FACETS = pressure(sun=[0.6, 0.0, 0.8], normals=NORMALS, areas=np.linspace(0.01, 0.02, 70))

# --- libraries ----------------------------------------------------------------------------------------


class Library:
    """An array library: its namespace, and how arrays go to the GPU and back."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.xp = importlib.import_module("jax.numpy" if name == "jax" else name)
        if name == "jax":
            importlib.import_module("jax").config.update("jax_enable_x64", True)

    def on_card(self, array: np.ndarray) -> Any:
        """Return an array of this library, on the GPU."""
        if self.name == "torch":
            return self.xp.tensor(array, device="cuda")
        return self.xp.asarray(array) if self.name != "numpy" else array.copy()

    def on_host(self, array: Any) -> np.ndarray:
        """Return a copy of an array in the memory of the processor."""
        if self.name == "torch":
            return np.asarray(array.cpu())
        return np.asarray(array.get() if self.name == "cupy" else array)

    def synchronize(self) -> None:
        """Wait for the GPU."""
        if self.name in LIBRARIES:
            importlib.import_module("numba.cuda").synchronize()

    @contextlib.contextmanager
    def other_stream(self) -> Iterator[None]:
        """Another stream than the default one, if the library has streams."""
        if self.name == "torch":
            with self.xp.cuda.stream(self.xp.cuda.Stream()):
                yield
        elif self.name == "cupy":
            with self.xp.cuda.Stream(non_blocking=True):
                yield
        else:
            yield


def installed() -> list[str]:
    """Return the names of the libraries that can be imported."""
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is not None]


# --- cases --------------------------------------------------------------------------------------------


def tensors(number: int) -> np.ndarray:
    """Tensors of inertia of different bodies."""
    rng = np.random.default_rng(4)
    axes = np.linalg.qr(rng.normal(size=(number, 3, 3)))[0]
    return np.einsum("nij,nj,nkj->nik", axes, rng.uniform(1, 1.9, (number, 3)), axes)


def start(number: int, dtype: Any = float, columns: bool = False) -> list[np.ndarray]:
    """Positions, momenta, attitudes, angular momenta, forces and torques."""
    rng = np.random.default_rng(3)
    x, p, v, force = rng.normal(size=(4, number, 3))
    q, torque = rng.normal(size=(number, 4)), rng.normal(size=(2, number, 3))
    q /= np.linalg.norm(q, axis=1)[:, None]
    found = (a.swapaxes(-1, -2) if columns else a for a in (x, p, q, v, force, torque))
    return [np.ascontiguousarray(array, dtype=dtype) for array in found]


def turning(xp: Any) -> Callable[..., Any]:
    """A torque that depends on time and attitude."""
    return lambda t, q: xp.stack([q[:, 1] * q[:, 0], t - q[:, 2] * q[:, 3], 0 * t + q[:, 3]], 1)


def springs(xp: Any) -> Callable[..., Any]:
    """A force and a torque that depend on time, position and attitude."""

    def both(t: float, x: Any, q: Any) -> tuple[Any, Any]:
        return -x * (1 + q[:, :1]), xp.stack([q[:, 1] * x[:, 0], t - q[:, 2] * q[:, 3], 0 * t + q[:, 3]], 1)

    return both


def slow(xp: Any) -> Callable[..., Any]:
    """Weak forces and torques."""
    return lambda t, x, q: (0.5 * t - 0.1 * x, xp.stack([0.2 * q[:, 1], 0.1 * q[:, 2], 0 * q[:, 3]], 1))


def cases(number: int) -> dict[str, tuple[Any, Any, dict[str, Any], dict[str, Any]]]:
    """Method, bodies, arguments of the stepper and of the calls; a function of `xp` makes the user's function."""
    many, one = tensors(number), (1.0, 1.5, 2.0)
    columns = {"layout": "columns", "scalar": "last", "vector": "omega"}
    bath, masses = {"field": BATH}, {"masses": np.linspace(1.0, 2.0, number)}
    baths = masses | bath | {"translation_bath": ph.fields.heat_bath(kT=KT, friction=0.7, seed=5)}
    turned = ph.fields.heat_bath(kT=KT, friction=[0.5, 1.0, 2.0], seed=5)
    chains, rescaled = ph.thermostats.nose_hoover(kT=KT, tau=0.5), ph.thermostats.bussi(kT=KT, tau=0.5, seed=4)
    strang, baoab, both = "strang(dmv4)", "baoab(rot123)", {"force": springs, "n": 2, "t": 0.3}
    held, parts = {"force": "force", "torque": 0}, {"torque": ..., "n": 2}
    return {
        "held torques": ("fem", one, {}, {"torque": 0, "frame": "space"}),
        "noise": (baoab, one, bath, {"torque": 0, "n": 3}),
        "noise, tensors, each sub-step": ("obabo(dmv4)", many, columns | bath, parts),
        "noise, function": (baoab, one, bath, {"torque": turning, "n": 2, "t": 0.3}),
        "velocity rescaling": ("bussi(rot123)", one, bath, {"torque": 0, "n": 2}),
        "chain of each body": ("nose_hoover(rot123)", one, {"field": CHAIN}, {"torque": 0, "n": 2}),
        "chain of each body, each sub-step": ("nose_hoover(dmv4)", many, columns | {"field": CHAIN}, parts),
        "brownian": ("brownian(2)", one, bath, {"n": 2}),
        "table": (strang, one, {"field": TABLE}, {"n": 2, "t": 0.4}),
        "sum over rows": (strang, one, {"field": FACETS}, {"n": 2}),
        "translation, held": (strang, many, masses, held | {"n": 3}),
        "translation, own steps": (strang, many, masses, held | {"n": 3, "dt": np.linspace(0.01, 0.03, number)}),
        "translation, function": ("yoshida4(dmv4)", many, masses, both | {"frame": "space"}),
        "translation, singles": (strang, many, masses | {"dtype": np.float32}, both),
        "translation, not in place": (strang, many, masses, both | {"in_place": False}),
        "translation, noise held": (baoab, one, baths, held | {"n": 3}),
        "translation, noise, function": (baoab, one, baths, both),
        "translation, turning friction": (baoab, one, baths | {"translation_bath": turned}, both),
        "fast and slow torques": (ph.respa(strang, strang, 2), many, {}, {"torque": turning, "slow": turning, "n": 2}),
        "fast and slow": (ph.respa(strang, strang, 2), many, masses, {"force": springs, "slow": slow, "n": 2}),
        "chains": (strang, many, masses | {"thermostat": chains}, both),
        "chains of velocities": (strang, many, masses | {"thermostat": chains, "vector": "omega"}, both),
        "rescaling": (strang, many, masses | {"thermostat": rescaled}, held | {"n": 2}),
        "rescaled rotation": (strang, many, {"thermostat": rescaled}, {"torque": turning, "n": 2}),
    }


def run(case: tuple[Any, Any, dict[str, Any], dict[str, Any]], number: int, library: Library) -> list[np.ndarray]:
    """The states after some calls, and the numbers of the thermostat."""
    method, bodies, made, given = case
    warnings.filterwarnings("ignore", message=".* has jumps or kinks", category=ph.ResultWarning)  # a table has kinks
    made, given = dict(made), dict(given)
    dtype = made.pop("dtype", float)
    *states, force, torque = start(number, dtype, made.get("layout") == "columns")
    states = [library.on_card(a) for a in (states if "masses" in made else states[2:])]
    for name in ("force", "slow", "torque"):
        if callable(given.get(name)):
            given[name] = given[name](library.xp)
    if given.get("force") == "force":
        given["force"] = library.on_card(force)
    if "torque" in given and not callable(given["torque"]):
        chosen = torque if given["torque"] is ... else np.ascontiguousarray(torque[given["torque"]])
        given["torque"] = library.on_card(chosen)
    stepper = ph.batch_stepper(bodies, method, DT, **made)
    for _ in range(CALLS):
        states = stepper.step(*states, **given)
    assert len(stepper.failed) == 0
    counts = [] if stepper.thermostat is None else [stepper.thermostat.state.ravel()]
    if "field" in made and made["field"] is CHAIN:
        counts.append(stepper.chains)
    return [*(library.on_host(a) for a in states), *counts]


def difference(found: list[np.ndarray], expected: list[np.ndarray], steps: int) -> float:
    """Largest difference for each step, in units in the last place of 1 + the largest number."""
    eps = np.finfo(expected[0].dtype).eps
    return max(
        float(np.abs(a - b).max() / (eps * (1 + np.abs(b).max())) / steps) for a, b in zip(found, expected, strict=True)
    )


def check_cases(number: int, libraries: list[Library]) -> Iterator[tuple[str, bool]]:
    """Compare all cases with the processor; then repeat them on another stream."""
    host = Library("numpy")
    for name, case in cases(number).items():
        expected, steps = run(case, number, host), CALLS * case[3].get("n", 1)
        for library in libraries:
            found = run(case, number, library)
            size = difference(found, expected, steps)
            with library.other_stream():
                again = run(case, number, library)
            same = all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))
            fine = size <= LIMIT and same
            yield f"{name}, {library.name}: {size:.2f} ulp a step{'' if same else ', NOT REPEATED'}", fine


# --- molecules and ensembles --------------------------------------------------------------------------


def check_sites(number: int, libraries: list[Library]) -> Iterator[tuple[str, bool]]:
    """Positions of sites, and forces and torques."""
    water = ph.sites([15.9994, 1.008, 1.008], [[0, 0, 0], [0.8165, 0.5774, 0], [-0.8165, 0.5774, 0]])
    x, _, q, *_ = start(number)
    f = np.random.default_rng(5).normal(size=(number, 3, 3))
    expected = [water.positions(x, q), *water.gather(f, q), *water.gather(f, q, frame="space")]
    for library in libraries:
        a, b, c = map(library.on_card, (x, q, f))
        found = [water.positions(a, b), *water.gather(c, b), *water.gather(c, b, frame="space")]
        assert all(type(array) is type(a) for array in found)
        size = difference([library.on_host(array) for array in found], expected, 1)
        yield f"sites, {library.name}: {size:.2f} ulp", size <= LIMIT


def check_ensembles(number: int) -> Iterator[tuple[str, bool]]:
    """Ensembles with noise and with chains, with `device="cuda"`."""
    _, _, q, v, *_ = start(number)
    moments = np.random.default_rng(6).uniform(1, 1.9, (number, 3))
    for method, field in {
        "baoab(rot123)": BATH, "obabo(dmv4)": BATH, "brownian(2)": BATH, "nose_hoover(rot123)": CHAIN
    }.items():  # fmt: skip
        one, two = (
            ph.ensemble(moments, q, v, method, dt=DT, steps=10, every=5, field=field, device=device)
            for device in ("cuda", "cpu")
        )
        found, expected = ([many.quaternion, many.momentum, *many.states.values()] for many in (one, two))
        size = difference(found, expected, 10)
        yield f"ensemble, {method}: {size:.2f} ulp a step", size <= LIMIT


# --- faults -------------------------------------------------------------------------------------------


def check_faults(libraries: list[Library]) -> Iterator[tuple[str, bool]]:
    """A body with a position that is not finite keeps its state, and the others move."""
    for library in libraries:
        given = start(100)[:4]
        given[0][17, 1] = np.nan
        states = [library.on_card(a) for a in given]
        stepper = ph.batch_stepper((1.0, 1.5, 2.0), "strang(dmv4)", DT, masses=1.0)
        states = stepper.step(*states, springs(library.xp))
        failed, moved = stepper.failed.tolist(), [library.on_host(a) for a in states]
        kept = all(np.array_equal(a[17], b[17], equal_nan=True) for a, b in zip(moved, given, strict=True))
        others = bool((np.delete(moved[2], 17, 0) != np.delete(given[2], 17, 0)).any(axis=1).all())
        yield f"faults, {library.name}: failed {failed}", failed == [17] and kept and others


# --- temperatures and speeds --------------------------------------------------------------------------


def check_temperatures(library: Library, number: int = 200_000) -> Iterator[tuple[str, bool]]:
    """Temperatures of translation and rotation from rest, after ten times the time of relaxation."""
    moments, mass = (1.0, 1.5, 2.0), 2.0
    baths = {"field": BATH, "translation_bath": ph.fields.heat_bath(kT=KT, friction=2.0, seed=5)}
    stepper = ph.batch_stepper(moments, "baoab(dmv10)", 0.1, masses=mass, **baths)
    x, p, q, v = (library.on_card(np.zeros((number, width))) for width in (3, 3, 4, 3))
    q[:, 0] = 1.0
    stepper.step(x, p, q, v, n=400)
    sigma = KT * math.sqrt(2 / (3 * number))
    for name, energy in (
        ("translation", library.on_host(p) ** 2 / mass),
        ("rotation", library.on_host(v) ** 2 / moments),
    ):
        score = (float(energy.mean()) - KT) / sigma
        yield f"temperature of the {name}: {score:+.2f} sigma", abs(score) <= SIGMA


def speeds(library: Library, number: int = 1_000_000, seconds: float = 1.0) -> dict[str, float]:
    """Body-steps per second of single calls."""
    moments, found = (1.0, 1.5, 2.0), {}
    baths = {"field": BATH, "translation_bath": ph.fields.heat_bath(kT=KT, friction=2.0, seed=5)}
    chains = ph.thermostats.nose_hoover(kT=KT, tau=0.5)
    xp = library.xp
    for name, made, given in (
        ("rotation, baoab", {"field": BATH}, {}),
        ("rotation, baoab, function", {"field": BATH}, {"torque": turning(xp)}),
        ("translation, baoab, function", {"masses": 2.0} | baths, {"force": springs(xp)}),
        ("translation, strang, function", {"masses": 2.0}, {"force": springs(xp)}),
        ("translation, strang, chains, function", {"masses": 2.0, "thermostat": chains}, {"force": springs(xp)}),
    ):
        method = "baoab(dmv10)" if "baoab" in name else "strang(dmv10)"
        stepper = ph.batch_stepper(moments, method, DT, **made)
        states = [library.on_card(a) for a in start(number)[:4]]
        states = states if "masses" in made else states[2:]
        stepper.step(*states, **given)
        library.synchronize()
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            for _ in range(10):
                stepper.step(*states, **given)
            library.synchronize()
            count += 10
        found[name] = count * number / (time.perf_counter() - begin)
        print(f"{name}: {found[name]:.2e} body-steps/s with {number} bodies, {library.name}", flush=True)
    return found


def main() -> None:
    """Make all checks, then the timings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", action="append", choices=LIBRARIES, help="default: all that are installed")
    parser.add_argument("--bodies", type=int, default=10_000)
    parser.add_argument("--only", choices=("cases", "others"), help="the cases of the stepper, or all other checks")
    parser.add_argument("--out", type=Path, help="file for the results")
    given = parser.parse_args()
    libraries = [Library(name) for name in given.library or installed()]
    if not libraries:
        sys.exit("install one of torch, cupy and jax")
    lines, bad = [], 0
    changing = [library for library in libraries if library.name != "jax"]  # arrays of JAX cannot be changed
    others = [
        check_sites(given.bodies, libraries),
        check_faults(libraries),
        check_ensembles(given.bodies),
        *(check_temperatures(library) for library in changing[:1]),
    ]
    checks = {"cases": [check_cases(given.bodies, libraries)], "others": others}
    chosen = checks[given.only] if given.only else [*checks["cases"], *others]
    for line, fine in (found for check in chosen for found in check):
        bad += not fine
        lines.append(f"{'ok  ' if fine else 'BAD '} {line}")
        print(lines[-1], flush=True)
    speed = speeds(changing[0]) if changing and given.only != "cases" else {}
    if given.out:
        given.out.write_text(json.dumps({"checks": lines, "body_steps_per_second": speed}, indent=1) + "\n", "utf-8")
    print(f"{len(lines) - bad} checks are fine, {bad} failed")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()

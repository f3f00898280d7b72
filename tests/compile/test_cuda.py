"""The run of many bodies on a card, by numba's simulator of one: the same code, not compiled, against the CPU."""

import sys
from pathlib import Path

import numpy as np
import pytest

import polhode as ph
from polhode.compile import cuda, cuda_adaptive, cuda_direct, page_locked
from polhode.run.ensemble import api, task
from polhode.run.ensemble.lane_steps import adaptive_method
from simulated_card import computed

N, STEPS, EVERY, CHUNK = 5, 7, 3, 2
EPS = np.finfo(float).eps


@ph.potential
def weight(R, *, mgl):
    return mgl * R[2][2]


@ph.torque
def pressure(R, sun, normals, areas):
    s = R.T @ sun

    def facet(normal, area):
        return ph.math.cross(normal, -area * ph.math.dot(normal, s) ** 2 * s)

    return ph.total(facet, normals, areas)


ROWS = np.random.default_rng(8).normal(size=(6, 4))
FACETS = pressure(sun=[0.6, 0.0, 0.8], normals=ROWS[:, :3], areas=0.1 * ROWS[:, 3] ** 2)
TIMES_OF_TABLE = np.linspace(0.0, 3.0, 80)
TABLE = ph.fields.tabulated(times=TIMES_OF_TABLE, torques=np.sin(np.outer(TIMES_OF_TABLE, [1, 2, 3])))


def crowd():
    rng = np.random.default_rng(5)
    q = rng.normal(size=(N, 4))
    return rng.uniform(1, 1.9, (N, 3)), q / np.linalg.norm(q, axis=1)[:, None], rng.normal(size=(N, 3))


BATH = ph.fields.heat_bath(kT=1.5, friction=((1.0, 0.2, 0.0), (0.2, 2.0, 0.1), (0.0, 0.1, 0.5)), seed=3)
THERMOSTAT = ph.fields.nose_hoover(kT=1.0, tau=0.4)
FIELD = {"field": weight, "params": {"mgl": np.linspace(0.5, 2, N)}}
CONICS = {
    "field": ph.fields.orbit_gravity_gradient(ph.Body([1.0, 1.2, 1.5]), ph.Orbit(2.0, 1.5, node=0.4)),
    "params": {"eccentricity": np.linspace(0, 2, N), "inertia": crowd()[0]},
}
"""Circle, ellipse, parabola and hyperbolas."""

STATISTICS = {"statistics": ["energy", "spatial_momentum"]}
CASES = {
    "statistics": ("symrot_auto", {"dt": 0.05} | STATISTICS),
    "explicit": ("symrot_auto", {"dt": 0.05}),
    "own steps": ("dmv4", {"dt": np.linspace(0.02, 0.06, N)}),
    "implicit": ("imidm", {"dt": 0.05} | FIELD),
    "kicks": ("strang(dmv4)", {"dt": 0.05, "t0": 1.5} | FIELD),
    "noise": ("baoab(rot123)", {"dt": 0.05, "field": BATH}),
    "chain": ("nose_hoover(rot123)", {"dt": 0.05, "field": THERMOSTAT, "params": {"kT": np.linspace(0.5, 2, N)}}),
    "table": ("strang(dmv4)", {"dt": 0.05, "field": TABLE}),
    "series": ("lietaylor(4)", {"dt": 0.05} | FIELD),
}
SLOW = {
    "low parts": ("compensated(strang(dmv4))", {"dt": 0.05} | FIELD),
    "sum over rows": ("strang(dmv4)", {"dt": 0.05, "field": FACETS}),
    "own times": ("reversible(strang(dmv4))", {"dt": 0.05} | FIELD),
    "orbits": ("fem", {"dt": 0.05} | CONICS),
    "processed": ("processed4(dmv10)", {"dt": 0.05} | FIELD),
}
"""Methods of every kind of state and loop; the processor's code for the first ones other tests need too."""

EVERY_CASE = CASES | SLOW


def run(case, device):
    method, given = EVERY_CASE[case]
    return ph.ensemble(*crowd(), method, steps=STEPS, every=EVERY, device=device, **given)


def runaway(device):
    """One body that turns far too fast for the implicit step, among others."""
    moments, q, m = crowd()
    m[3] *= 100
    return ph.ensemble(moments, q, m, "dmv2", dt=0.1, steps=STEPS, every=EVERY, device=device, **STATISTICS)


ADAPTIVE = {"tol": 1e-5, "step_tol": 1e-3, "fine": 1e-8, "back": 1e-7, "rows": 1e-6}
"""Tolerances with which the two pairs, and several runs of a body, are needed; the last runs backwards in time."""

TIMES = {"fine": [0.3, 0.31, 2.0], "back": [-1.0, -3.0]}


def adapted(case, device):
    name, field = "tol" if case == "tol" else "step_tol", {"field": FACETS} if case == "rows" else FIELD
    return ph.ensemble(*crowd(), times=TIMES.get(case, [2.0]), device=device, **{name: ADAPTIVE[case]}, **field)


@ph.torque(frame="body")
def growing(omega, *, k):
    """A torque with which the speed about the first axis becomes infinite: w' = k w^2 for a unit moment."""
    return k * omega[0] ** 2, 0.0 * omega[1], 0.0 * omega[2]


def lost(device):
    """One body that cannot reach the end."""
    k = np.array([0.01, 0.5, 0.02, 0.0, 0.1])
    return ph.ensemble([1, 1, 1], None, [1.0, 0, 0], field=growing, params={"k": k}, step_tol=1e-6,
                       times=[1.0, 3.0, 4.0], device=device)  # fmt: skip


def write_adapted(found):
    """Runs to a tolerance, with fewer threads than bodies of a chunk: a thread takes the next body."""
    cuda.THREADS = 1
    for case in (*ADAPTIVE, "lost"):
        many = lost("cuda") if case == "lost" else adapted(case, "cuda")
        found |= {f"{case}: {name}": getattr(many, name) for name in ("quaternion", "momentum", "failed", "steps")}
        found |= {f"{case}: method": many.method, f"{case}: error": np.array(many.error_estimate, dtype=float)}


DIRECT = ("explicit", "own steps", "implicit", "table", "statistics", "fine", "step_tol")
"""Runs that are repeated as if their results lay in page-locked memory: several rows, steps of each body, tables."""

LOCKED = {"all": lambda array: True, "results": lambda array: array.ndim != 2}
"""Arrays that are taken for page-locked ones; the others are staged."""


def write_direct(found):
    """Whether a card that copies results by itself finds the same, in chunks smaller than the crowd."""
    sent, send, locked = [], cuda_direct.Chunk.send, page_locked.is_locked
    cuda_direct.Chunk.send = lambda chunk, *given: (sent.append(given[-2]), send(chunk, *given))
    for case in DIRECT:
        go = adapted if case in ADAPTIVE else run
        many = go(case, "cuda")
        for name, rule in LOCKED.items():
            sent.clear()
            page_locked.is_locked = rule
            again = go(case, "cuda")
            page_locked.is_locked = locked
            found[f"direct, {case}, {name}"] = np.array([sent == [0, 2, 4], same_bits(many, again)])
    cuda_direct.Chunk.send = send


def same_bits(one, other):
    parts = [(getattr(one, name), getattr(other, name)) for name in ("t", "quaternion", "momentum", "failed")]
    parts += [(one.statistics[name].mean, other.statistics[name].mean) for name in one.statistics]
    if one.steps is not None:
        parts.append((one.steps, other.steps))
    return all(np.array_equal(a, b, equal_nan=True) for a, b in parts)


def write_all(path):
    """Everything the card (its simulator) computes, in chunks smaller than the crowd."""
    cuda.CHUNK = CHUNK
    found = {}
    write_adapted(found)
    cuda.THREADS = 128
    for case in (*EVERY_CASE, "runaway"):
        many = runaway("cuda") if case == "runaway" else run(case, "cuda")
        for name in ("t", "quaternion", "momentum", "failed"):
            found[f"{case}: {name}"] = getattr(many, name)
        found |= {f"{case}: {name}": values for name, values in many.states.items()}
        for name, one in many.statistics.items():
            found |= {f"{case}: {name}.{part}": value for part, value in vars(one).items()}
    cuda.CHUNK, cuda.SMALL_CHUNK = 2 * CHUNK, 1
    write_direct(found)
    np.savez(path, **found)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return computed(__file__, tmp_path_factory.mktemp("cuda") / "simulated.npz")


def assert_same(many, simulated, case):
    """Both round at every operation: some tens of them a step, each of half an EPS."""
    near = {"rtol": 0, "atol": 16 * STEPS * EPS * (1 + np.nanmax(np.abs(many.momentum)))}
    for name in ("t", "quaternion", "momentum"):
        np.testing.assert_allclose(simulated[f"{case}: {name}"], getattr(many, name), **near)
    for name, values in many.states.items():
        np.testing.assert_allclose(simulated[f"{case}: {name}"], values, **near)
    np.testing.assert_array_equal(simulated[f"{case}: failed"], many.failed)
    for name, one in many.statistics.items():
        for part, value in vars(one).items():
            np.testing.assert_allclose(simulated[f"{case}: {name}.{part}"], value, **near)


@pytest.mark.parametrize("case", [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)])
def test_the_card_computes_what_the_processor_does(simulated, case):
    many = run(case, "cpu")
    assert (many.failed == -1).all()
    assert_same(many, simulated, case)


def test_a_failed_body_is_marked_and_the_others_go_on(simulated):
    with pytest.warns(ph.ResultWarning, match="1 of .* bodies failed .* body 3 in step 1: its equation was not solved"):
        many = runaway("cpu")
    assert np.array_equal(np.flatnonzero(many.failed >= 0), [3])
    assert_same(many, simulated, "runaway")
    assert np.isfinite(simulated["runaway: quaternion"][-1]).all()


@pytest.mark.parametrize("name", LOCKED)
@pytest.mark.parametrize("case", DIRECT)
def test_results_that_the_card_copies_by_itself_are_the_same(simulated, case, name):
    used, same = simulated[f"direct, {case}, {name}"]
    assert used
    assert same


@pytest.mark.parametrize("case", ADAPTIVE)
def test_to_a_tolerance_every_thread_has_its_own_steps(simulated, case, monkeypatch):
    for module in (api, task):
        monkeypatch.setattr(module, "adaptive_method", lambda field, tol, *_, **__: adaptive_method(field, tol, "cuda"))
    many = adapted(case, "cpu")
    assert simulated[f"{case}: method"] == many.method
    np.testing.assert_array_equal(simulated[f"{case}: failed"], -1)
    assert len(set(many.steps.tolist())) > 1
    assert np.abs(simulated[f"{case}: steps"] - many.steps).max() <= 1  # rough factors differ between lanes and threads
    for name in ("quaternion", "momentum"):
        near = np.abs(simulated[f"{case}: {name}"] - getattr(many, name)).max()
        assert near < 10 * ADAPTIVE[case]
    if case == "tol":
        assert (simulated["tol: error"] <= ADAPTIVE["tol"]).all()


def test_a_thread_whose_body_cannot_go_on_takes_the_next(simulated):
    k = np.array([0.01, 0.02, 0.0, 0.1])
    failed = simulated["lost: failed"]
    assert failed[1] > 3
    assert (failed[[0, 2, 3, 4]] == -1).all()
    np.testing.assert_allclose(simulated["lost: momentum"][-1, [0, 2, 3, 4], 0], 1 / (1 - 4 * k), rtol=1e-4)
    assert np.isnan(simulated["lost: momentum"][:, 1, 0]).tolist() == [False, True, False]
    assert np.isfinite(simulated["lost: momentum"][:, [0, 2, 3, 4]]).all()
    np.testing.assert_allclose(simulated["lost: momentum"][0, :, 0], 1 / (1 - np.insert(k, 1, 0.5)), rtol=1e-4)


def test_an_unknown_device_is_refused():
    with pytest.raises(ph.InputError, match="device must be one of 'cpu', 'cuda'"):
        ph.ensemble(*crowd(), tol=1e-6, t_end=1.0, device="gpu")
    for word in ("gpu", None, ["cuda"]):
        with pytest.raises(ph.InputError, match="device must be one of 'cpu', 'cuda'"):
            ph.ensemble(*crowd(), "symrot", dt=0.1, steps=1, device=word)


def test_a_missing_card_is_named(monkeypatch):
    class Without:
        @staticmethod
        def is_available():
            return False

        @staticmethod
        def cuda_error():
            return "\nno driver.\nset a variable"

    monkeypatch.setattr(cuda, "_imported", Without)
    monkeypatch.setattr(cuda, "cuda", None)
    with pytest.raises(ph.InputError, match=r"needs an NVIDIA GPU, its driver and numba-cuda .* no driver\. Without"):
        ph.ensemble(*crowd(), "symrot", dt=0.1, steps=1, device="cuda")


def test_a_missing_package_is_named(monkeypatch):
    def nothing():
        raise ImportError("No module named 'numba.cuda'")

    monkeypatch.setattr(cuda, "_imported", nothing)
    with pytest.raises(ph.InputError, match=r"needs numba-cuda, .* pip install 'polhode\[cuda\]'"):
        ph.ensemble(*crowd(), "symrot", dt=0.1, steps=1, device="cuda")


def test_chunks_fit_the_card_and_the_page_locked_memory():
    assert cuda.chunk_size(22, 10**12) == cuda.CHUNK
    for numbers, free in ((22, 10**6), (10**4, 10**12), (10**6, 10**9)):
        chunk = cuda.chunk_size(numbers, free)
        assert chunk >= 1
        assert 2 * 8 * numbers * chunk <= free
        assert 8 * numbers * chunk <= cuda.STAGED
    assert cuda.chunk_size(10**9, 10**6) == 1


def test_buffers_are_kept_for_the_next_run(monkeypatch):
    """For the same shape the same buffers; while a run has them, another makes its own; large ones are not kept."""

    class Card:
        @staticmethod
        def current_context():
            return type("Context", (), {"get_memory_info": staticmethod(lambda: (1 << 30, 1 << 30))})

    class Slot:
        made, waited = 0, 0

        @property
        def stream(self):
            return self

        def synchronize(self):
            Slot.waited += 1

        def __init__(self, *shape):
            Slot.made += 1

        def send(self, launch, given, order, found, first, number):
            launch(first)

        def fetch(self, *given):
            pass

    for name, value in {"card": lambda: None, "cuda": Card, "_Slot": Slot, "_SPARE": {}, "CHUNK": 4}.items():
        monkeypatch.setattr(cuda, name, value)

    def go(number, launch=lambda first: None):
        given = [np.empty((number, width)) for width in (4, 3, 3, 1, 0, 1, 1)]
        found = np.empty((2, number, 4)), np.empty((2, number, 3)), np.empty((1, number, 2)), np.empty(number)
        cuda.run_in_chunks(launch, given, np.empty(0, dtype=int), 9, found)
        return Slot.made

    assert [go(10), go(10), go(11)] == [2, 2, 2]  # two chunks of four in flight
    assert [go(4), go(4), go(10)] == [3, 3, 5]  # one chunk, then two of the same size
    assert go(10, lambda first: go(10) if first == 0 else None) == 7
    monkeypatch.setattr(cuda, "SPARED", 0)
    assert [go(4), go(4)] == [8, 9]
    with pytest.raises(ZeroDivisionError):
        go(10, lambda first: 1 / (first - 4))
    assert Slot.waited == 2, "no copy into the results is under way when the error is raised"


@pytest.mark.parametrize(
    ("registers", "shape"), [(210, (256, 132)), (168, (128, 3 * 132)), (40, (256, 6 * 132)), (255, (256, 132))]
)
def test_blocks_hold_as_many_threads_as_there_are_registers_for(registers, shape, monkeypatch):
    class Kernel:
        overloads = ()

        @staticmethod
        def get_regs_per_thread():
            return {"types": registers}

    device = type("Device", (), {"MULTIPROCESSOR_COUNT": 132})
    monkeypatch.setattr(cuda_adaptive, "cuda", type("Card", (), {"get_current_device": staticmethod(lambda: device)}))
    assert cuda_adaptive.resident(Kernel) == shape


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))

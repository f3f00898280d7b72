"""Ensembles that are stopped: Ctrl-C, SIGTERM and SIGKILL, in memory and in files; what was computed is not lost."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import polhode as ph
from examples import growing
from polhode.compile import threads
from polhode.compile.simd.vector_types import LANES
from polhode.results.store import ensemble_store
from polhode.run.control import controlled, read
from polhode.run.ensemble import shard_checkpoint
from polhode.run.ensemble.api import prepared
from polhode.run.ensemble.run import Course
from waiting import PATIENCE, started

N = LANES + 3
RNG = np.random.default_rng(8)
MOMENTS, MOMENTA = RNG.uniform(1, 1.9, (N, 3)), RNG.normal(size=(N, 3))
BURNS = ph.fields.thruster([0.1, -0.2, 0.1], on=[[0.133, 1.7], [4.0, 6.05]])


@ph.controller(seen=[0.0, 0.0, 0.0], wheels=ph.actuators.wheels(max_torque=0.1))
def damping(omega, seen, wheels, gain=0.1):
    """A controller with a memory and wheels."""
    return {"wheels": [gain * (omega[i] + seen[i]) for i in range(3)], "seen": omega}


CASES = {
    "states": ("dmv4", {"every": 7}),
    "statistics": ("dmv4", {"every": 3, "statistics": ["energy", "spatial_momentum"]}),
    "memory": ("abm4", {"every": 50}),
    "low parts": ("compensated(dmv4)", {"dt": RNG.uniform(0.01, 0.02, N)}),
    "a failed body": (
        "mkrk(euler)",
        {"every": 9, "field": growing, "params": {"k": np.where(np.arange(N) == 5, 60.0, 0)}},
    ),
    "closed loops": ("fem", {"every": 7, "field": controlled(BURNS, *read(damping, 0.1), 0.0)}),
}


class After(threading.Event):
    """Is set when it has been asked a number of times."""

    def __init__(self, number):
        super().__init__()
        self.left = number

    def is_set(self):
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("case", CASES)
def test_a_unit_goes_on_from_any_slice_to_the_same_bits(tmp_path, monkeypatch, case):
    """Stopped after every few slices, its checkpoint read back each time."""
    method, more = CASES[case]
    task = prepared(MOMENTS, None, MOMENTA, method, **({"dt": 0.02, "steps": 400} | more))
    whole = task.run()
    assert (whole.failed >= 0).any() == (case == "a failed body")
    monkeypatch.setattr(shard_checkpoint, "WORTHWHILE", 0.0)
    monkeypatch.setattr(threads, "SLICE", 0.0)  # one step a slice after the first
    monkeypatch.setattr("polhode.compile.batch.fixed_step.QUOTA", 53)
    stops = 0
    while True:
        try:
            part = shard_checkpoint.run(task, tmp_path, 0, After(2))
            break
        except shard_checkpoint.Stopped:
            stops += 1
    assert stops > 10
    for name in ("t", "quaternion", "momentum", "failed"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))
    for name, values in whole.states.items():
        np.testing.assert_array_equal(part.states[name], values)
    for name, one in whole.statistics.items():
        for part_name, value in vars(one).items():
            np.testing.assert_array_equal(getattr(part.statistics[name], part_name), value)


def test_a_checkpoint_that_is_damaged_or_of_something_else_is_not_used(tmp_path):
    task = prepared(MOMENTS, None, MOMENTA, "dmv4", dt=0.02, steps=400)
    file, arrays = shard_checkpoint.file_of(tmp_path, 3), Course(task).arrays
    for array in arrays.values():
        array[...] = 0
    shard_checkpoint.save(file, 3, arrays)
    assert shard_checkpoint.read(file, 3) is not None
    assert shard_checkpoint.read(file, 4) is None
    data = file.read_bytes()
    for place in (len(data) // 3, len(data) // 2, len(data) - 30):
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        kept = shard_checkpoint.read(file, 3)
        assert kept is None or all(np.array_equal(kept[name], arrays[name]) for name in arrays)
        file.write_bytes(data[:place])
        assert shard_checkpoint.read(file, 3) is None
    file.write_bytes(b"")
    assert shard_checkpoint.read(file, 3) is None


# --- processes --------------------------------------------------------------------------------------

STEPS = 1_000_000
HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""A background shell starts its children deaf to Ctrl-C; these hear it."""

RUN = f"""
    {HEARING}
    import os
    import sys
    import numpy as np
    import polhode as ph
    from polhode.run.ensemble import shard_checkpoint
    shard_checkpoint.SECONDS = 0.05
    if "killed" in sys.argv:
        usual, shard_checkpoint.SECONDS = shard_checkpoint.save, 0.0
        shard_checkpoint.save = lambda *given: (usual(*given), os.kill(os.getpid(), signal.SIGKILL))
    rng = np.random.default_rng(8)
    moments, momenta = rng.uniform(1, 1.9, ({N}, 3)), rng.normal(size=({N}, 3))
    given = dict(dt=0.01, statistics=["energy", "spatial_momentum"], every=1000, progress=False)
    ph.ensemble(moments, None, momenta, "dmv4", steps=2, **given)  # compiled: what follows is the loop
    print("go", flush=True)
    try:
        ph.ensemble(moments, None, momenta, "dmv4", steps=int(sys.argv[1]), **given,
                    **(dict(out=sys.argv[2]) if len(sys.argv) > 2 else dict()))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def run_of(*arguments):
    command = [sys.executable, "-c", textwrap.dedent(RUN), *map(str, arguments)]
    return started(command, stdout=subprocess.PIPE)


def wait_for(condition, process):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def checkpoints(path):
    return list((path / shard_checkpoint.FOLDER).glob("*.npz"))


def resumed(path, **more):
    given = {"dt": 0.01, "steps": STEPS, "statistics": ["energy", "spatial_momentum"], "every": 1000}
    return ph.ensemble(
        MOMENTS, None, MOMENTA, "dmv4", **given, **more, **({"out": path, "resume": True} if path else {})
    )


def test_killed_within_a_unit_little_is_lost_and_the_bits_are_the_same(tmp_path, monkeypatch):
    path = tmp_path / "long.zarr"
    with run_of(STEPS, path, "killed") as run:  # by itself, after its first checkpoint
        assert run.wait(PATIENCE) == -signal.SIGKILL
    assert checkpoints(path)
    assert (ph.load(path).failed == -2).all()
    places, usual = [], shard_checkpoint.read

    def read(*given):
        arrays = usual(*given)
        places.extend([] if arrays is None else [arrays["place"].tolist()])
        return arrays

    monkeypatch.setattr(shard_checkpoint, "read", read)
    many, whole = resumed(path), resumed(None)
    assert any(steps > 0 for _, _, steps in places)  # it did not begin anew
    np.testing.assert_array_equal(many.quaternion, whole.quaternion)
    np.testing.assert_array_equal(many.momentum, whole.momentum)
    for name, value in vars(whole.statistics["energy"]).items():
        np.testing.assert_array_equal(getattr(many.statistics["energy"], name), value)
    assert not (path / shard_checkpoint.FOLDER).exists()


@pytest.mark.parametrize("where", ["memory", "file"])
def test_ctrl_c_stops_long_loops(tmp_path, where):
    """A run of hours for every vector of bodies; without slices only its end would end it."""
    path = tmp_path / "long.zarr"
    with run_of(10**12, *([path] if where == "file" else [])) as run:
        assert run.stdout.readline() == "go\n"
        wait_for(lambda: checkpoints(path), run) if where == "file" else time.sleep(1.0)
        run.send_signal(signal.SIGINT)
        assert run.communicate(timeout=PATIENCE)[0] == "interrupted\n"
        assert run.returncode == 0


CALLS = ["step", "step_of_many", "thermostat", "gradient", "statistics"]
LONG_CALLS = f"""
    {HEARING}
    import os
    import threading
    import numpy as np
    import polhode as ph

    def stepper(method, n, thermostat=None):
        many = ph.batch_stepper([1.5, 2.0, 2.5], method=method, dt=0.01, thermostat=thermostat)
        q, m = np.tile([1.0, 0, 0, 0], (n, 1)), np.ones((n, 3))
        def go(steps):
            try:
                many.step(q, m, n=steps)
            except KeyboardInterrupt:
                assert (q == [1, 0, 0, 0]).all() and (m == 1).all()  # as before the call
                raise
        many.step(q.copy(), m.copy(), n=2**17 if thermostat is None else 1)  # compiled
        return go

    def end(t, R, omega):
        return omega[0]

    top = ph.problems.fast_top()
    calls = dict(
        step=stepper("dmv4", 1), step_of_many=stepper("imidm", 1001),
        thermostat=stepper("dmv4", 1, ph.thermostats.nose_hoover(kT=1.0, tau=1.0)),
        gradient=lambda steps: ph.gradient(end, top, "imidm", dt=1e-6, steps=min(steps, 10**10)),
        statistics=lambda steps: ph.solve(
            top, "imidm", dt=1e-6, steps=min(steps, 10**10), every=10**10, statistics="energy", progress=False
        ),
    )
    for name, call in calls.items():
        if name not in ("step", "step_of_many", "thermostat"):
            call(10)  # compiled
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            call(10**12)
        except KeyboardInterrupt:
            print(name, flush=True)
"""


def test_ctrl_c_stops_every_long_call():
    """Each would take hours in one call of compiled code."""
    with started([sys.executable, "-c", textwrap.dedent(LONG_CALLS)], stdout=subprocess.PIPE) as run:
        assert run.communicate(timeout=PATIENCE)[0].split() == CALLS


@pytest.fixture
def hears_ctrl_c():
    """A process that a shell has started in the background ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_work_in_other_threads_is_told_to_stop():
    ended = []

    def work(begin, end, stop):
        while begin < end and not stop[0]:
            time.sleep(0.001)
        ended.append((begin, end))
        return end - begin

    for steps in (10, threads.FEW):
        assert sum(threads.elsewhere(lambda begin, end, stop: end - begin, steps, 1001)) == 1001
    threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(KeyboardInterrupt):
        threads.elsewhere(work, threads.FEW, 3, 2)
    assert ended[0] == (0, 0)
    assert set(ended[1:]) <= {(0, 1), (1, 3)}


SWEEP = """
[problem]
name = "free_body"
[run]
method = "dmv4"
dt = 1e-4
steps = 100000000000
[grid]
momentum.z = [0.1, 0.2, 0.3]
"""


def test_sigterm_ends_a_command_like_ctrl_c(tmp_path):
    (tmp_path / "s.toml").write_text(SWEEP)
    command = [sys.executable, "-m", "polhode", "sweep", "s.toml"]
    with started(command, cwd=tmp_path, stderr=subprocess.PIPE) as run:
        wait_for(lambda: (tmp_path / "s.zarr").exists(), run)
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=PATIENCE)[1]
    assert run.returncode == 130
    assert "interrupted; s.zarr lacks 1 shards: use --resume to continue" in said
    assert "Traceback" not in said
    assert ensemble_store.missing(tmp_path / "s.zarr") == [0]


IMPORTING = """
    import importlib.abc, os, runpy, signal, sys
    class Presser(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name == {module!r}:
                os.kill(os.getpid(), signal.SIGINT)
    sys.meta_path.insert(0, Presser())
    sys.argv = ["polhode", "methods"]
    from polhode.cli import main
    main()
"""


@pytest.mark.parametrize("module", ["numpy", "polhode.run.solve", "polhode.cli", "polhode.cli.sweep"])
def test_ctrl_c_while_modules_are_imported_ends_a_command_quietly(module):
    script = textwrap.dedent(IMPORTING.format(module=module))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_library_leaves_signals_alone():
    script = f"{HEARING}; import polhode; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, "
    script += "signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "True True\n"

"""Wrong arguments everywhere: each must raise a one-line InputError (or StepError), or be accepted.

python validation/fuzz_inputs.py api [FUNCTION ...]     all things of tests/junk.py in all calls of tests/junk_calls.py
python validation/fuzz_inputs.py mesh [COUNT]           STL, OBJ and PLY files with bytes changed, lost and added
python validation/fuzz_inputs.py toml [COUNT]           problem and sweep files with values, keys and characters changed
python validation/fuzz_inputs.py cli [COUNT]            command lines of random words

Measured (2 cores, Python 3.11):

    api     99,944 attempts in 295 calls: about 91,500 rejected, 8,400 accepted, 20 errors of the user's own functions,
            20 late (ends of 2^53 and later of runs in many steps, and 2^53 steps: as asked for; a signal ended each),
            and before their repair 7 raw errors of two kinds and 10 loops without end (`ndim.reference`)
    mesh    311 files: 274 rejected, 37 accepted, no raw error
    toml    1,000 files: 978 rejected, 22 accepted, no raw error
    cli     120 command lines: one raw error (a link to itself), since repaired
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

SECONDS = 10
"""Seconds after which a call counts as late."""

PATIENCE = 120
"""Seconds after which a call that cannot be stopped counts as hanging."""

MEMORY = 6 * 2**30
"""Bytes that the process of the calls may use."""


class Late(BaseException):
    """A call took too long."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise `Late` in a call that takes too long."""

    def late(*_: Any) -> None:
        raise Late

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 1)  # repeatedly: one signal during a C callback has no effect
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Tally:
    """Counts outcomes, and prints each kind of raw error once."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.seen: set[tuple[str, ...]] = set()
        self.slow: list[tuple[float, str]] = []

    def attempt(self, label: str, call: Callable[[], Any]) -> None:
        """Call and count the outcome."""
        import polhode as ph

        began = time.perf_counter()
        try:
            with limited():
                call()
            outcome = "accepted"
        except (ph.InputError, ph.StepError) as refusal:
            outcome = "refused"
            text = str(refusal)
            if not text or "\n" in text or len(text) > 2000:
                outcome = "refused, badly said"
                self.once((outcome, label.split(" = ")[0]), repr(text)[:200])
        except Late:
            outcome = "late"
            self.once((outcome, label), "")
        except BaseException as fault:
            outcome = "RAW"
            frames = traceback.extract_tb(fault.__traceback__)
            if frames[-1].filename.endswith("junk.py"):  # raised by a user's function
                self.counts["the user's own error"] += 1
                return
            ours = next((f for f in reversed(frames) if f"{os.sep}polhode{os.sep}" in f.filename), frames[-1])
            place = f"{Path(ours.filename).name}:{ours.lineno}"
            kind = (type(fault).__name__, place)
            self.once((outcome, label.split(" = ")[0], *kind), f"{label} | {' '.join(str(fault).split())[:120]}")
        self.counts[outcome] += 1
        spent = time.perf_counter() - began
        if spent > 5:
            self.slow.append((spent, label))

    def once(self, key: tuple[str, ...], said: str) -> None:
        """Print a message only for the first of its kind."""
        if key not in self.seen:
            self.seen.add(key)
            print(*key, "|", said.encode("ascii", "backslashreplace").decode(), flush=True)

    def end(self) -> None:
        """Print the counts."""
        print(dict(self.counts))
        for spent, label in sorted(self.slow, reverse=True)[:8]:
            print(f"slow: {spent:.0f} s {label}")


def attempts(names: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every function with every thing in place of every argument; variants have a comma after the name."""
    import junk
    import junk_calls

    for name, (function, given) in junk_calls.calls().items():
        if names and not {name, name.partition(",")[0]} & set(names):
            continue
        for argument in given:
            for thing in junk.CORE + junk.MORE:
                said = f"{name} {argument} = {repr(thing)[:60]}".replace("\n", " ")
                yield said, lambda: function(**given | {argument: thing})  # noqa: B023


def api(*names: str) -> None:
    """Every argument of every public function, in a process with little memory; one that hangs is replaced."""
    total: collections.Counter[str] = collections.Counter()
    done = 0
    while done >= 0:
        done = _with_a_child(names, done, total)
    print(dict(total))


def _with_a_child(names: tuple[str, ...], first: int, total: collections.Counter[str]) -> int:
    """Make the attempts from `first` in a child process; return where the next one has to begin, or -1."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _attempt_all(names, first, os.fdopen(writing, "w", buffering=1, encoding="utf-8", errors="replace"))
        os._exit(0)
    os.close(writing)
    lines = os.fdopen(reading, "rb", buffering=0)  # `select` does not see lines in a buffer
    last, label = first - 1, "the first call"
    while True:
        if not select.select([lines], [], [], PATIENCE if last >= first else 100 * PATIENCE)[0]:
            print("HANG", label, flush=True)
            total["hang"] += 1
            os.kill(child, signal.SIGKILL)
            break
        line = lines.readline().decode("utf-8", "replace")
        if not line:
            break
        kind, _, said = line.rstrip("\n").partition(" ")
        if kind == "TRY":
            last, label = last + 1, said
        else:
            total[kind] += int(said)
    _, status = os.waitpid(child, 0)
    if not status:
        return -1
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        print("CRASH", os.WTERMSIG(status), label, flush=True)
        total["crash"] += 1
    return last + 1


def _attempt_all(names: tuple[str, ...], first: int, out: Any) -> None:
    """Make the attempts from `first`; say which one comes next, and the counts as they grow."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    tally = Tally()
    for k, (label, call) in enumerate(attempts(names)):
        if k >= first:
            out.write(f"TRY {label}\n")
            tally.attempt(label, call)
            for outcome, count in tally.counts.items():
                out.write(f"{outcome.replace(' ', '_')} {count}\n")
            tally.counts.clear()


# --- meshes -----------------------------------------------------------------------------------------

PLY = (
    b"ply\nformat ascii 1.0\nelement vertex %d\nproperty float x\nproperty float y\nproperty float z\n"
    b"element face 1\nproperty list uchar int vertex_indices\nend_header\n"
)
CORNERS = b"v 0 0 0\nv 1 0 0\nv 0 1 0\n"
BAD_MESHES = {
    "claims 2^32 triangles.stl": b"x" * 80 + b"\xff" * 4 + b"\0" * 50,
    "claims 10^12 corners.ply": PLY % 10**12 + b"0 0 0\n",
    "index out of range.ply": PLY % 3 + b"0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n",
    "negative index.ply": PLY % 3 + b"0 0 0\n1 0 0\n0 1 0\n3 0 1 -7\n",
    "two numbers.obj": b"v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n",
    "index out of range.obj": CORNERS + b"f 1 2 1000000000000000\n",
    "negative index.obj": CORNERS + b"f -1 -2 -9\n",
    "not a number.obj": b"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
    "empty.stl": b"",
    "empty.ply": b"",
    "empty.obj": b"",
}
"""Files with one known fault each."""


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A file with some bytes changed, lost or added."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        place, kind = chance.randrange(len(found)), chance.random()
        if kind < 0.6:
            found[place] = chance.randrange(256)
        elif kind < 0.8:
            del found[place:]
        else:
            found[place:place] = chance.randbytes(chance.randrange(1, 30))
        if not found:
            break
    return bytes(found)


def mesh(count: str = "200") -> None:
    """Damaged mesh files."""
    import trimesh

    import polhode as ph

    box, tally, chance = trimesh.creation.box((1, 2, 3)), Tally(), random.Random(4)
    seeds = {"stl": [box.export(file_type=kind) for kind in ("stl", "stl_ascii")],
             "obj": [box.export(file_type="obj")],
             "ply": [box.export(file_type="ply", encoding=kind) for kind in ("binary", "ascii")]}  # fmt: skip
    for name, data in BAD_MESHES.items():
        Path(name).write_bytes(data)
        tally.attempt(f"mesh = {name}", lambda: ph.Body.from_mesh(name, mass=1.0))  # noqa: B023
    for suffix, texts in seeds.items():
        for text in texts:
            data = text.encode() if isinstance(text, str) else text
            for k in range(int(count)):
                file = Path(f"damaged.{suffix}")
                file.write_bytes(damaged(data, chance))
                tally.attempt(f"mesh {suffix} = number {k}", lambda: ph.Body.from_mesh(file, mass=1.0))  # noqa: B023
    tally.end()


# --- problem and sweep files ------------------------------------------------------------------------

PROBLEMS = (
    """[body]
shape = "cylinder"
dimensions = { radius = 0.05, height = 0.02 }
mass = 0.2
pivot = [0.0, 0.0, -0.04]
[[field]]
name = "uniform_gravity"
g = [0.0, 0.0, -9.80665]
[[field]]
name = "linear_drag"
coefficients = 1.0e-6
[start]
rotation_vector = [0.3, 0.0, 0.0]
omega = [0.0, 0.0, 200.0]
[run]
tol = 1e-8
t_end = 0.2
[output]
file = "top.zarr"
""",
    """[body]
moments = [1.0, 2.0, 2.5]
[field]
name = "gravity"
mgl = 2.0
[start]
euler = [0.1, 0.2, 0.3]
sequence = "ZXZ"
degrees = true
momentum = [0.0, 0.1, 5.0]
t0 = 1.0
[run]
method = "imidm"
dt = 0.01
steps = 100
every = 3
digits = 20
""",
)
SWEEPS = (
    """[problem]
name = "fast_top"
[run]
method = "imidm"
dt = 0.01
t_end = 0.2
every = 10
[grid]
params.mgl = [10, 15]
omega.z = { from = 10, to = 50, count = 3 }
""",
    """[problem]
moments = [1.0, 2.0, 2.5]
field = "gravity"
params = { mgl = 2.0 }
attitude = [1.0, 0.0, 0.0, 0.0]
[run]
method = "imidm"
steps = 10
dt = 0.01
statistics = ["energy"]
[random]
count = 10
seed = 1
momentum = { isotropic = 5.0 }
params.mgl = { normal = [20.0, 1.0] }
""",
)
VALUES = (
    *("0", "-1", "1e308", "1e-320", "1e400", "inf", "nan", "true", '""', '"x"', '"../x.zarr"', r'"\u0000"', "[]"),
    *("[1,2,3]", "[[1,2],[3]]", "{}", "{a=1}", "1979-05-27", "07:32:00", "9" * 400, "[nan,1,2]", "[1e200,1e200,1e200]"),
    *('["a","b"]', "[true,false,true]", '"imidm"', '"taylor(41)"', '"mkrk("', '"(((((((((("', "[0.0,0.0,0.0]", "2**3"),
)  # fmt: skip
KEYS = ("body", "start", "run", "output", "field", "problem", "grid", "list", "random", "mass", "density", "mesh",
        "points", "moments.x", "attitude", "dt", "t_end", "params.x", "device", "unit", "name", "csv",
        "count", "seed")  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    """A file with some values, keys, lines or characters changed."""
    lines = text.splitlines()
    for _ in range(chance.randint(1, 3)):
        k, kind = chance.randrange(len(lines)), chance.random()
        if "=" in lines[k] and kind < 0.7:
            lines[k] = f"{lines[k].split('=')[0]}= {chance.choice(VALUES)}"
        elif kind < 0.8 and len(lines) > 1:
            del lines[k]
        elif kind < 0.87:
            lines.insert(chance.randrange(len(lines) + 1), lines[k])
        elif kind < 0.94:
            lines.insert(chance.randrange(len(lines) + 1), f"{chance.choice(KEYS)} = {chance.choice(VALUES)}")
        elif lines[k]:
            place = chance.randrange(len(lines[k]))
            lines[k] = lines[k][:place] + chr(chance.randrange(32, 400)) + lines[k][place + 1 :]
    return "\n".join(lines)


def toml(count: str = "2000") -> None:
    """Problem and sweep files with mistakes."""
    from polhode import problem_file
    from polhode.config import sweep_file

    tally, chance, file = Tally(), random.Random(1), Path("x.toml")
    readers = [(text, problem_file.load) for text in PROBLEMS] + [(text, sweep_file.read) for text in SWEEPS]
    for k in range(int(count)):
        text, reader = chance.choice(readers)
        file.write_text(mutated(text, chance), encoding="utf-8")
        tally.attempt(f"{reader.__module__} = number {k}", lambda: reader(file))  # noqa: B023
    tally.end()


# --- command lines ----------------------------------------------------------------------------------

FILES = ("ok.zarr", "ok.nc", "crowd.zarr", "p.toml", "binary.toml", "empty.toml", "folder.zarr", "file.zarr", "file.nc",
         "loop.zarr", "dangling.zarr", "none.zarr", "new.zarr", "new.nc", "new.html", "new.png", "/proc/x.zarr",
         "/dev/null", "", ".", "a/b.zarr", "x" * 300 + ".zarr", "/etc/passwd", "new.txt")  # fmt: skip
NUMBERS = ("0", "1", "-1", "0.1", "nan", "inf", "1e400", "abc", "", "1_0", "3", "1e308", "9" * 30, "0.05")
METHODS = ("imidm", "dmv10", "xyz", "strang(", "taylor(99)", "", ",", "jacobi", "(", "[bold]x[/bold]")
PROBLEM_NAMES = ("fast_top", "free_body", "nope", "", "[red]", *FILES[:12])
WHOLE = ("0", "5", "10", "-3", "abc", "9" * 30)
COMMANDS: dict[str, tuple[list[tuple[str, ...]], dict[str, tuple[str, ...]]]] = {
    "run": ([PROBLEM_NAMES], {"--method": METHODS, "--dt": NUMBERS, "--tol": NUMBERS, "--t-end": NUMBERS,
                              "--steps": WHOLE, "--every": NUMBERS, "--out": FILES, "--overwrite": (), "--resume": (),
                              "--digits": WHOLE,
                              "--plot": FILES, "--view": FILES}),
    "exact": ([PROBLEM_NAMES], {"--t-end": NUMBERS, "--plot": FILES, "--out": FILES, "--overwrite": ()}),
    "body": ([("box", "sphere", "nope", *FILES[:6]), NUMBERS, NUMBERS, NUMBERS],
             {"--density": NUMBERS, "--mass": NUMBERS}),
    "export": ([FILES, FILES], {"--overwrite": ()}),
    "view": ([FILES], {"--out": FILES, "--overwrite": (), "--title": ("<script>", "", "x")}),
    "sweep": ([FILES], {"--out": FILES, "--resume": (), "--overwrite": (), "--unit": WHOLE, "--dry-run": ()}),
    "methods": ([METHODS], {"--json": ()}), "problems": ([PROBLEM_NAMES], {"--json": ()}),
    "init": ([FILES], {"--schema": (), "--overwrite": ()}), "nonsense": ([FILES], {}),
}  # fmt: skip


def cli(count: str = "300") -> None:
    """Random command lines; anything but an exit with one of our codes and a message is a raw error."""
    from typer.testing import CliRunner

    import polhode as ph
    from polhode.cli import app

    ph.solve(ph.problems.free_body(), "imidm", dt=0.1, steps=20, out="ok.zarr", progress=False)
    ph.load("ok.zarr").save("ok.nc")
    ph.ensemble([1.5, 2, 2.5], None, [[1.0, 0, 0]] * 3, "dmv10", dt=0.1, steps=3, out="crowd.zarr", progress=False)
    Path("p.toml").write_text(PROBLEMS[1])
    Path("binary.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("empty.toml", "file.zarr", "file.nc"):
        Path(name).touch()
    Path("folder.zarr").mkdir()
    Path("loop.zarr").symlink_to("loop.zarr")
    Path("dangling.zarr").symlink_to("/nonexistent/y.zarr")
    tally, chance, runner = Tally(), random.Random(1), CliRunner()

    def invoke(words: list[str]) -> None:
        ended = runner.invoke(app, words)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        if ended.exit_code not in (0, 1, 2, 130) or (ended.exit_code and not ended.output.strip()):
            raise RuntimeError(f"exit code {ended.exit_code}, output {ended.output!r}")

    for _ in range(int(count)):
        command = chance.choice(list(COMMANDS))
        places, options = COMMANDS[command]
        words = [command, *(chance.choice(place) for place in places if chance.random() < 0.93)]
        for option in chance.sample(list(options), min(len(options), chance.randrange(5))):
            words += [option, *([chance.choice(options[option])] if options[option] else [])]
        if command == "run" and chance.random() < 0.6:
            words += ["--method", "imidm", "--dt", "0.1", "--steps", "10"]
        tally.attempt(f"{command} = {[word[:40] for word in words]}", lambda: invoke(words))  # noqa: B023
    tally.end()


MODES = {"api": api, "mesh": mesh, "toml": toml, "cli": cli}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        MODES[sys.argv[1]](*sys.argv[2:])

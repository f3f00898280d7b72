"""The cache of compiled code: whatever is wrong with it costs a slower start and one warning, never a result."""

import os
import pickle
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import platformdirs
import pytest
from numba.core.registry import cpu_target
from typer.testing import CliRunner

from polhode.cli import app
from polhode.compile import disk_cache, program
from polhode.errors import CacheWarning


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no warning given yet."""
    monkeypatch.setenv("POLHODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_cache, "_warned", set())
    return tmp_path / "cache"


def shifted(amount):
    """x + amount, compiled or from the cache: the value at 1, and how often the cache was hit."""
    run = made(lambda x: x + amount)
    value = run(1.0)
    return value, sum(run.stats.cache_hits.values())


def made(function):
    """What a process that begins would compile or find on disk."""
    return program._made(function, program.key_of(function)).run


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def test_code_is_kept_and_found_again(cache):
    assert shifted(1.0) == (2.0, 0)
    assert shifted(1.0) == (2.0, 1)
    (entry,) = entries(cache)
    assert entry.stat().st_mode & 0o077 == 0
    assert not [p for p in cache.rglob("*") if p.suffix == ".tmp"]


def flipped(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 1 << position % 8
    return bytes(changed)


DAMAGES = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: 2 * len(data) // 3],
    "longer": lambda data: data + b"\0",
    "noise": lambda data: os.urandom(5000),
    "a pickle": lambda data: pickle.dumps({"a": 1}),
    **{f"bit {k}/16": lambda data, k=k: flipped(data, (len(data) - 1) * k // 16) for k in range(17)},
}


def test_a_damaged_entry_is_compiled_again_with_one_warning(cache, monkeypatch):
    shifted(1.0)
    (entry,) = entries(cache)
    good = entry.read_bytes()
    for name, damage in DAMAGES.items():
        monkeypatch.setattr(disk_cache, "_warned", set())
        entry.write_bytes(damage(good))
        with pytest.warns(CacheWarning, match="digest") as said:
            assert shifted(1.0) == (2.0, 0), name
        assert len(said) == 1
        assert shifted(1.0) == (2.0, 1), f"{name}: the entry was not replaced"


def grown(entry):
    os.truncate(entry, disk_cache.LARGEST + 1)  # sparse: it takes no place on the disk


def a_pipe(entry):
    entry.unlink()
    os.mkfifo(entry)


def a_folder(entry):
    entry.unlink()
    entry.mkdir()


@pytest.mark.parametrize("become", [grown, a_pipe, a_folder])
def test_only_ordinary_files_of_an_ordinary_size_are_read(cache, become):
    """A pipe would make every later process wait for ever, and a file that grew would fill the memory."""
    shifted(1.0)
    (entry,) = entries(cache)
    become(entry)
    with pytest.warns(CacheWarning) as said:
        assert shifted(1.0) == (2.0, 0)
    assert "is not used, it is no ordinary file" in str(said[0].message) or "268435457 bytes" in str(said[0].message)
    if become is not a_folder:  # which is not removed
        assert shifted(1.0) == (2.0, 1), "the entry was not replaced"


def test_an_interrupt_while_machine_code_is_handed_over_is_not_lost(cache, monkeypatch):
    """A callback of ctypes drops it, and numba has nothing to store."""
    engine, dropped = cpu_target.target_context.codegen()._engine._ee, []

    def pressed(module, code):
        raise KeyboardInterrupt

    with monkeypatch.context() as now:
        now.setattr(engine, "_object_cache_notify", pressed)
        now.setattr(sys, "unraisablehook", lambda lost: dropped.append(lost.exc_type))
        with pytest.raises(KeyboardInterrupt, match="while code was compiled"):
            shifted(1.0)
    assert dropped[0] is KeyboardInterrupt
    assert not entries(cache)
    assert shifted(1.0) == (2.0, 0)


def test_an_interrupt_while_machine_code_is_loaded_is_not_lost(cache, monkeypatch):
    """A callback of ctypes drops it, and LLVM has no code, or that of another program with the same names."""
    engine, dropped = cpu_target.target_context.codegen()._engine._ee, []

    def pressed(module):
        raise KeyboardInterrupt

    assert shifted(1.0) == (2.0, 0)
    with monkeypatch.context() as now:
        now.setattr(engine, "_object_cache_getbuffer", pressed)
        now.setattr(sys, "unraisablehook", lambda lost: dropped.append(lost.exc_type))
        with pytest.raises(KeyboardInterrupt, match="while compiled code was loaded"):
            shifted(1.0)
    assert dropped == [KeyboardInterrupt]
    assert shifted(1.0) == (2.0, 1)


def test_many_damaged_entries_are_one_warning(cache):
    for amount in (1.0, 2.0, 3.0):
        shifted(amount)
    for entry in entries(cache):
        entry.write_bytes(b"")
    with pytest.warns(CacheWarning) as said:
        assert [shifted(amount)[0] for amount in (1.0, 2.0, 3.0)] == [2.0, 3.0, 4.0]
    assert len(said) == 1


def test_an_entry_under_the_name_of_another_is_refused(cache):
    shifted(1.0)
    (one,) = entries(cache)
    shifted(2.0)
    (two,) = set(entries(cache)) - {one}
    shutil.copyfile(two, one)
    with pytest.warns(CacheWarning, match="digest"):
        assert shifted(1.0) == (2.0, 0)


class Planted:
    """Unpickling one leaves a trace."""

    def __reduce__(self):
        return Path.touch, (Path(os.environ["POLHODE_CACHE"], "trace"),)


def test_no_pickle_of_somebody_else_is_read(cache):
    shifted(1.0)
    (entry,) = entries(cache)
    entry.write_bytes(pickle.dumps(Planted()))
    for name in (
        f"{entry.stem.split('-')[0]}.nbi",
        f"{entry.stem.split('-')[0]}.1.nbc",
    ):  # the names numba's cache reads
        (entry.parent / name).write_bytes(pickle.dumps(Planted()))
    with pytest.warns(CacheWarning):
        assert shifted(1.0) == (2.0, 0)
    assert not (cache / "trace").exists()


def test_a_file_that_is_not_private_is_refused(cache):
    shifted(1.0)
    (entry,) = entries(cache)
    entry.chmod(0o666)
    with pytest.warns(CacheWarning, match="writable by others"):
        assert shifted(1.0) == (2.0, 0)


def test_a_link_is_not_followed(cache, tmp_path):
    shifted(1.0)
    (entry,) = entries(cache)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(CacheWarning):
        assert shifted(1.0) == (2.0, 0)


@pytest.mark.parametrize("depth", [0, 1], ids=["the folder", "a folder in it"])
def test_a_folder_that_others_can_write_is_refused(cache, depth):
    shifted(1.0)
    (entry,) = entries(cache)
    (entry.parent if depth else cache).chmod(0o777)
    with pytest.warns(CacheWarning, match="writable by others") as said:
        assert [shifted(1.0), shifted(1.0)] == [(2.0, 0)] * 2
    assert len(said) == 1


def test_a_folder_of_another_user_is_refused(cache, monkeypatch):
    shifted(1.0)
    monkeypatch.setattr(os, "geteuid", lambda: 1 + os.getuid())
    with pytest.warns(CacheWarning, match="belongs to another user"):
        assert shifted(1.0) == (2.0, 0)


def test_a_full_disk_is_no_obstacle(cache):
    """No file may grow: the write of an entry fails after its file was made."""
    shifted(1.0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        with pytest.warns(CacheWarning, match="cannot be used") as said:
            assert [shifted(2.0), shifted(3.0)] == [(3.0, 0), (4.0, 0)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(said) == 1
    assert len(entries(cache)) == 1
    assert not [p for p in cache.rglob("*") if p.suffix == ".tmp"]


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/polhode", "x" * 300])
def test_a_place_that_cannot_be_written_is_no_obstacle(cache, tmp_path, monkeypatch, place):
    (tmp_path / "file").write_text("a file where a folder should be")
    monkeypatch.setenv("POLHODE_CACHE", str(tmp_path / place))
    with pytest.warns(CacheWarning, match="cannot be used"):
        assert shifted(1.0) == (2.0, 0)


def test_a_folder_that_vanishes_is_no_obstacle(cache):
    function = made(lambda x: x + 1.0)
    shutil.rmtree(cache)
    with pytest.warns(CacheWarning, match="cannot be used"):
        assert function(1.0) == 2.0


def test_writers_and_readers_of_one_entry_do_not_meet(tmp_path):
    """Whole entries or none, whatever the order."""
    path, contents = tmp_path / "entry.nbc", [bytes([k]) * 100_000 for k in range(3)]
    seen, running = [], threading.Event()

    def write(content):
        for _ in range(50):
            disk_cache.write_verified(path, content)

    def read():
        while not running.is_set():
            seen.append(disk_cache.read_verified(path))

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    reader = threading.Thread(target=read)
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    running.set()
    reader.join()
    assert set(seen) <= {None, *contents}
    assert len(set(seen)) > 1
    assert None not in seen[seen.index(next(filter(None, seen))) :]


# --- the size limit ---------------------------------------------------------------------------------


def filled(cache: Path, *sizes: int) -> list[Path]:
    """Entries of some sizes, each used later than the one before."""
    folder = disk_cache.private_folder("0" * 16)
    assert folder is not None
    assert folder.parent == cache
    paths = [folder / f"{i:032x}-{i:032x}.nbc" for i in range(len(sizes))]
    for i, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        path.write_bytes(b"x" * size)
        os.utime(path, (1000 + i, 1000 + i))
    return paths


def test_the_entries_not_used_for_longest_make_room(cache):
    a, b, c, d = filled(cache, 100, 100, 100, 100)
    disk_cache._mark_used(a)
    assert disk_cache.trim(cache, 250) == 2
    assert [p.exists() for p in (a, b, c, d)] == [True, False, False, True]
    assert disk_cache.trim(cache, 250) == 0


def test_only_entries_are_removed(cache):
    (entry,) = filled(cache, 100)
    mine = [cache / "notes.txt", cache / "numba.nbc", entry.parent / "numba.nbc", cache / "other" / entry.name]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    abandoned = entry.parent / ".abc.tmp"
    abandoned.write_text("half of an entry")
    assert disk_cache.clear(cache) == 1
    assert not entry.exists()
    assert not abandoned.exists()
    assert all(path.read_text() == "mine" for path in mine)
    assert disk_cache.clear(cache) == 0
    assert disk_cache.clear(cache / "nowhere") == 0


def test_what_is_written_keeps_the_limit_and_what_is_read_counts_as_used(cache, monkeypatch):
    shifted(1.0)
    (first,) = entries(cache)
    size = first.stat().st_size
    old = filled(cache, size)[0]
    os.utime(first, (500, 500))
    assert shifted(1.0) == (2.0, 1)
    assert first.stat().st_mtime == 500
    monkeypatch.setenv("POLHODE_CACHE_SIZE", str(5 * size // 2))
    shifted(2.0)
    assert first.exists()
    assert not old.exists()
    monkeypatch.setenv("POLHODE_CACHE_SIZE", "0")
    shifted(3.0)
    assert entries(cache) == []


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("", 1 << 30),
        ("0", 0),
        ("1000", 1000),
        ("500M", 500 << 20),
        ("2G", 2 << 30),
        ("1.5 gib", 3 << 29),
        ("7kB", 7168),
    ],
)
def test_the_limit_as_it_is_said(cache, monkeypatch, said, size):
    monkeypatch.setenv("POLHODE_CACHE_SIZE", said)
    assert disk_cache.size_limit() == size


def test_a_limit_that_is_no_size_is_said_once(cache, monkeypatch):
    monkeypatch.setenv("POLHODE_CACHE_SIZE", "much")
    with pytest.warns(CacheWarning, match="such as 500M") as told:
        assert disk_cache.size_limit() == disk_cache.size_limit() == 1 << 30
    assert len(told) == 1


def test_the_folder_is_that_of_the_platform(monkeypatch):
    monkeypatch.delenv("POLHODE_CACHE", raising=False)
    assert disk_cache.cache_folder() == platformdirs.user_cache_path("polhode", appauthor=False)


# --- the command ------------------------------------------------------------------------------------


def told(*words: str) -> list[str]:
    done = CliRunner().invoke(app, ["cache", *words])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_the_command_shows_and_clears_the_cache(cache, monkeypatch):
    monkeypatch.setenv("POLHODE_CACHE_SIZE", "500M")
    assert told() == [f"folder        {cache}", "content       0 compiled functions, 0 bytes",
                      "limit         500.0 MiB ($POLHODE_CACHE_SIZE)"]  # fmt: skip
    filled(cache, 1000, 2000)
    assert told()[1] == "content       2 compiled functions, 2.9 KiB"
    assert told("clear") == [f"folder        {cache}", "removed       2 compiled functions, 2.9 KiB"]
    assert told()[1] == "content       0 compiled functions, 0 bytes"
    assert CliRunner().invoke(app, ["cache", "burn"]).exit_code == 2


SUMS = """
import sys
import numpy as np
import polhode as ph

@ph.torque
def first(R, rows):
    return ph.total(lambda n: (n[0] * R[2][0], 0.1 * n[1], 0.2 * n[2]), rows)

@ph.torque
def second(R, rows):
    return ph.total(lambda n: (0.3 * n[0], 0.5 * n[1] * R[2][0], n[2] * n[0]), rows)

rows = np.linspace(-1, 1, 9).reshape(3, 3)
for field in map(globals().get, sys.argv[1:]):
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), field(rows), omega=[0.1, 0.2, 0.3])
    print(ph.solve(problem, "fem", dt=0.1, steps=5).momentum[-1].tolist())
"""


def test_code_of_two_processes_is_not_mixed_up(tmp_path):
    """The sums are called, not inlined, and both processes give them the same number."""
    environment = os.environ | {"POLHODE_CACHE": str(tmp_path / "cache")}

    def printed(*names):
        command = [sys.executable, "-c", SUMS, *names]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    first, second = printed("first"), printed("second")
    assert printed("first", "second") == first + second
    assert printed("second", "first") == second + first

"""The cache of compiled code: whatever is wrong with it costs a slower start and one warning, never a result."""

import os
import pickle
import resource
import shutil
import threading
from pathlib import Path

import pytest

import polhode as ph
from polhode.backends import cpu, disk_cache
from polhode.errors import CacheWarning


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no warning given yet."""
    monkeypatch.setenv("POLHODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_cache, "_warned", set())
    return tmp_path / "cache"


def shifted(amount):
    """x + amount, compiled or from the cache: the value at 1, and how often the cache was hit."""
    function, _ = cpu.compiled(lambda x: x + amount, f"test shift {amount}")
    value = function(1.0)
    return value, sum(function.stats.cache_hits.values())


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
    with pytest.warns(CacheWarning, match="others can write"):
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
    with pytest.warns(CacheWarning, match="can be written by others") as said:
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
    function, _ = cpu.compiled(lambda x: x + 1.0, "test vanishing")
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


def test_every_source_that_can_influence_code_is_in_the_key(tmp_path, monkeypatch):
    """Coefficient tables hold no kernels; an edit of one must still change the key."""
    tree = tmp_path / "polhode"
    shutil.copytree(Path(ph.__file__).parent, tree, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cpu, "__file__", str(tree / "backends" / "cpu.py"))
    key = cpu.library_hash.__wrapped__
    before = key()
    for path in sorted(tree.rglob("*.py")):
        text = path.read_bytes()
        path.write_bytes(text + b"#")
        changed = key() != before
        path.write_bytes(text)
        assert changed == (path.relative_to(tree).parts[0] not in cpu.SURFACE), path
    monkeypatch.setattr(cpu, "__version__", "another")
    assert key() != before

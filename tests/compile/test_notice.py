"""While code compiles for longer than a second, one line on stderr says so."""

import io
import threading
import time
import types

import pytest

import polhode as ph
from polhode._memo import Memo
from polhode.compile import clock, notice, numba_target, program
from polhode.run.ensemble import shard_checkpoint
from polhode.run.ensemble.task import Task

STEP = 0.03
"""Seconds; five stand for the second of patience."""


class Screen(io.StringIO):
    """A terminal, or a file."""

    def __init__(self, terminal=True):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal

    def rows(self):
        """What is left on the screen: a carriage return leads to the begin of a row, where later text covers it."""
        rows = []
        for line in self.getvalue().split("\n"):
            row = ""
            for part in line.split("\r"):
                row = part + row[len(part) :]
            rows.append(row.rstrip())
        return rows


@pytest.fixture
def screen(monkeypatch):
    """A terminal, and little patience."""
    made = Screen()
    monkeypatch.setattr(notice, "sys", types.SimpleNamespace(stderr=made, modules={}))
    monkeypatch.setattr(notice, "PATIENCE", 5 * STEP)
    monkeypatch.setattr(notice, "TICK", STEP)
    monkeypatch.setattr(notice, "LINE", notice.Line())
    return made


@pytest.fixture
def notebook(screen):
    """A notebook: stderr is no terminal, but is shown."""
    screen.terminal = False
    notice.sys.modules["ipykernel"] = types.ModuleType("ipykernel")
    return screen


def compiling(steps, fate=notice.KEPT):
    """Stand for a program that takes some time to compile."""
    notice.announced(lambda: time.sleep(steps * STEP), fate)()


def test_a_terminal_is_told_and_cleared(screen):
    with notice.about("imidm for this field"):
        compiling(8)
    assert "compiling imidm for this field (once; kept in the cache) ... 0 s" in screen.getvalue()
    assert screen.getvalue().count("\r") > 3  # it goes on counting
    assert screen.rows() == [""]


def test_little_compiling_is_not_told(screen):
    compiling(2)
    time.sleep(6 * STEP)
    assert screen.getvalue() == ""


def test_programs_in_a_row_share_the_line(screen):
    for name in ("one", "two", "three", "four"):
        with notice.about(name):
            compiling(3)
    shown = screen.getvalue()
    assert "compiling one" not in shown
    assert "compiling two" in shown
    assert "compiling four" in shown
    assert "\n" not in shown
    assert screen.rows() == [""]


def test_programs_with_pauses_are_not_added_up(screen, monkeypatch):
    monkeypatch.setattr(notice, "PAUSE", STEP / 2)
    for _ in range(3):
        compiling(3)
        time.sleep(STEP)
    assert screen.getvalue() == ""


def test_a_notebook_gets_a_complete_line(notebook):
    with notice.about("imidm for this field"):
        compiling(8, notice.FORGOTTEN)
    (line, rest) = notebook.getvalue().split("\n")
    assert line.startswith("compiling imidm for this field (once in this process) ... ")
    assert line.endswith(" s")
    assert rest == ""
    assert "\r" not in line


def test_a_notebook_gets_no_line_for_each_small_program(notebook):
    compiling(8)
    for _ in range(2):
        compiling(1)
    assert notebook.getvalue().count("\n") == 1


def test_a_file_gets_nothing(screen):
    screen.terminal = False
    compiling(8)
    assert screen.getvalue() == ""


def test_a_progress_bar_is_not_written_over(screen):
    """A live display of rich hands on whole rows only, which it prints above itself."""
    screen.rich_proxied_file = screen
    compiling(8)
    assert "\r" not in screen.getvalue()
    assert screen.getvalue().endswith(" s\n")


def test_a_long_line_stays_on_its_row(screen, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    with notice.about(100 * "x"):
        compiling(8)
    assert max(len(part) for part in screen.getvalue().split("\r")) == 29


def test_an_exception_clears_the_line(screen):
    def interrupted():
        time.sleep(8 * STEP)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        notice.announced(interrupted, notice.KEPT)()
    assert "compiling" in screen.getvalue()
    assert screen.rows() == [""]


def test_parts_of_a_program_are_not_told(screen):
    """A program within a program belongs to it."""
    inner = notice.announced(lambda: time.sleep(6 * STEP), notice.KEPT)
    with notice.about("outer"):
        notice.announced(lambda: (inner(), time.sleep(4 * STEP)), notice.KEPT)()
    parts = {part.strip() for part in screen.getvalue().split("\r")} - {""}
    assert parts == {"compiling outer (once; kept in the cache) ... 0 s"}


def test_threads_compile_at_once(screen):
    threads = [threading.Thread(target=compiling, args=(8,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert notice.LINE.depth == 0
    assert "compiling" in screen.getvalue()
    assert screen.rows() == [""]


def test_a_worker_of_another_process_is_silent(screen):
    notice.sys.modules["multiprocessing.process"] = types.SimpleNamespace(parent_process=object)
    compiling(8)
    assert screen.getvalue() == ""


@pytest.mark.parametrize(("outer", "inner", "told"), [
    (None, False, False), (None, True, True), (True, False, True), (False, True, False),
])  # fmt: skip
def test_the_outermost_wish_decides(screen, outer, inner, told):
    with notice.about("outer", outer), notice.about("inner", inner):
        compiling(8)
    assert ("compiling inner" in screen.getvalue()) == told


def test_a_closed_stderr_stops_nothing(screen):
    screen.close()
    compiling(8)
    notice.sys.stderr = None
    compiling(8)


@pytest.mark.parametrize("odd", [types.SimpleNamespace(write=len, flush=list), io.TextIOWrapper(io.BytesIO())])
def test_no_terminal_is_what_cannot_say_so(screen, odd):
    """What a program with windows puts in the place of stderr, and a stream that is closed."""
    if isinstance(odd, io.TextIOWrapper):
        odd.close()
    notice.sys.stderr = odd
    assert not notice.has_reader()
    with notice.about("imidm", True):
        compiling(8)


def test_an_interrupt_before_anything_is_told_ends_the_line(screen, monkeypatch):
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as here:
        here.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compiling(1)
    time.sleep(8 * STEP)
    assert (notice.LINE.depth, screen.getvalue()) == (0, "")
    compiling(8)
    assert "compiling" in screen.getvalue()


class Card:
    """numba-cuda, with kernels that take long to compile."""

    @staticmethod
    def jit(function):
        return types.SimpleNamespace(compile=lambda signature: time.sleep(8 * STEP))


def test_a_gpu_kernel(screen):
    with notice.about("dmv10 for this field"):
        clock.jitted(Card, None).compile(())
    assert "compiling dmv10 for this field (once in this process)" in screen.getvalue()


# --- runs ------------------------------------------------------------------------------------------


@pytest.fixture
def slow(screen, monkeypatch):
    """Programs take long to compile, and none is on disk."""
    jitted = numba_target.jitted

    def slowly(function):
        run = jitted(function)
        made = run._compiler.compile

        def late(arguments, result):
            time.sleep(8 * STEP)
            return made(arguments, result)

        run._compiler.compile = late
        return run

    monkeypatch.setattr(numba_target, "jitted", slowly)
    monkeypatch.setattr(program, "MADE", Memo())
    monkeypatch.setattr(program, "private_folder", lambda name: None)
    return screen


FREE = ph.Problem(ph.Body([1.0, 2.0, 2.5]), momentum=[0.1, 0.2, 1.0])


def test_a_run_and_its_repetition(slow):
    ph.solve(FREE, "dmv2", dt=0.01, steps=3)
    assert "compiling dmv2 for a free body (once in this process)" in slow.getvalue()
    slow.truncate(0)
    ph.solve(FREE, "dmv2", dt=0.01, steps=3)
    assert "compiling" not in slow.getvalue()


def test_a_run_without_progress(slow):
    ph.solve(FREE, "dmv2", dt=0.01, steps=3, progress=False)
    assert slow.getvalue() == ""


@pytest.mark.parametrize("out", [None, "many.zarr"])
@pytest.mark.parametrize("progress", [None, False])
def test_an_ensemble_names_what_it_compiles(screen, monkeypatch, in_a_folder, out, progress):
    seen, run = [], Task.run

    def watched(task, *given):
        seen.append(notice._subject.get())
        return run(task, *given)

    monkeypatch.setattr(Task, "run", watched)
    monkeypatch.setattr(shard_checkpoint, "run", lambda task, *given: watched(task))
    ph.ensemble([1, 2, 2.5], None, [[1.0, 0, 0]], "dmv2", dt=0.01, steps=2, out=out, progress=progress)
    assert [subject.what for subject in seen] == ["dmv2 for a free body"]
    assert bool(seen[0].shown) == (progress is None)


def test_ahead(slow):
    """The runs within are silent, but this call is there to compile."""
    ph.warm(FREE, "dmv2", dt=0.01)
    assert "compiling dmv2 for a free body" in slow.getvalue()


def test_code_from_the_disk_is_not_compiled(screen, monkeypatch, tmp_path):
    """Loading it is not announced, however long it takes."""
    monkeypatch.setenv("POLHODE_CACHE", str(tmp_path))
    monkeypatch.setattr(program, "MADE", Memo())
    ph.solve(FREE, "dmv2", dt=0.01, steps=3)
    screen.truncate(0)
    monkeypatch.setattr(program, "MADE", Memo())
    began = []
    monkeypatch.setattr(notice.LINE, "begin", lambda *given: began.append(given))
    load = program.DiskCache.load_overload

    def late(cache, *given):
        time.sleep(8 * STEP)
        return load(cache, *given)

    monkeypatch.setattr(program.DiskCache, "load_overload", late)
    ph.solve(FREE, "dmv2", dt=0.01, steps=3)
    assert began == []
    assert screen.getvalue() == ""

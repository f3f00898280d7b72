"""Shared helpers of the commands: the app, error handling, tables, number formats, progress bars."""

from __future__ import annotations

import functools
import json
import math
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from ..compile import notice
from ..compile.clock import Stopwatch
from ..errors import InputError, StepError
from ..methods import EXAMPLE as EXAMPLE
from ..methods import Method
from ..methods import methods as registry
from ..methods.registry import arguments
from ..results.plain_data import plain

if TYPE_CHECKING:
    from rich.console import Console

Given = ParamSpec("Given")
Result = TypeVar("Result")

FRAMED = shutil.get_terminal_size().columns >= 60
"""Smallest screen width for framed help; on a narrower screen it would cut off option names."""

app = typer.Typer(
    help="Integrate the rotation of rigid bodies.",
    epilog="Start with: polhode compare fast_top",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if FRAMED else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ACCURATE = next(m.name for m in registry.values() if m.order >= 4 and not m.implicit and m.takes("attitude"))
"""The methods used in the examples of the help texts."""

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130
PIPE_WIDTH = 160
"""Width of a table written to a file or a pipe."""


def console(stderr: bool = False) -> Console:
    """A console on stdout or stderr; wide if it is not a terminal."""
    from rich.console import Console

    screen = Console(stderr=stderr, highlight=False)
    return screen if screen.is_terminal else Console(stderr=stderr, highlight=False, width=PIPE_WIDTH)


def stop(message: object, code: int) -> typer.Exit:
    """Print a message to stderr; raise the result to end the program with this code."""
    typer.echo(f"polhode: {message}", err=True)
    return typer.Exit(code)


def guarded(command: Callable[Given, Result]) -> Callable[Given, Result]:
    """Report user errors with a message and an exit code instead of a traceback."""

    @functools.wraps(command)
    def run(*args: Given.args, **named: Given.kwargs) -> Result:
        try:
            with plain_warnings():
                return command(*args, **named)
        except InputError as problem:
            raise stop(problem, BAD_INPUT) from None
        except StepError as problem:
            raise stop(problem.reason, FAILED) from None
        except BrokenPipeError:
            raise
        except OSError as problem:
            prefix = f"{problem.filename} cannot be used: " if problem.filename else ""
            raise stop(f"{prefix}{problem.strerror or problem}", FAILED) from None
        except KeyboardInterrupt:
            raise stop("interrupted", INTERRUPTED) from None

    return run


def examples(*lines: str) -> str:
    """The epilog of a help text."""
    if not FRAMED:
        return "\n\n".join(("Examples:", *lines))
    return "[bold]Examples[/bold]\n\n" + "\n\n".join(line.replace("[", r"\[") for line in lines)


NARROWEST = 14
"""Smallest width of a text column; on a narrower screen a table is shown as a list."""


class Sheet:
    """A table; the last `numbers` columns are right-aligned, the first never wraps. If it does not fit, a list."""

    def __init__(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> None:
        self.title, self.columns, self.rows = title, columns, rows
        self.right = [i >= len(columns) - numbers for i in range(len(columns))]
        self.rigid = [i == 0 or right for i, right in enumerate(self.right)]

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """The table, or the list."""
        if self.width() <= options.max_width:
            yield self.table()
        else:
            yield from self.items()

    def width(self) -> int:
        """Screen width that the table needs."""
        cells = zip(self.columns, *self.rows, strict=True)
        needs = [max(len(line) for cell in column for line in cell.split("\n")) for column in cells]
        return sum(1 + (n if rigid else min(n, NARROWEST)) for n, rigid in zip(needs, self.rigid, strict=True)) + 1

    def table(self) -> Any:
        """The table, with one or more lines per row."""
        from rich import box
        from rich.table import Table

        table = Table(
            title=self.title or None,
            box=box.SIMPLE_HEAD,
            title_justify="left",
            title_style="bold",
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for name, right, rigid in zip(self.columns, self.right, self.rigid, strict=True):
            table.add_column(name, justify="right" if right else "left", no_wrap=rigid, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def items(self) -> Iterator[Any]:
        """The rows as a list, one value per line."""
        from rich.padding import Padding
        from rich.text import Text

        if self.title:
            yield Text(self.title, style="bold")
        for row in self.rows:
            yield Text(row[0], style="bold")
            for name, value in zip(self.columns[1:], row[1:], strict=True):
                yield Padding(Text(f"{' '.join(name.split())}: {value or '-'}", overflow="fold"), (0, 0, 0, 2))


def sheet(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> Sheet:
    """A table for the console; the last `numbers` columns are right-aligned."""
    return Sheet(title, columns, rows, numbers)


def print_lines(title: str, rows: Sequence[Sequence[str]]) -> None:
    """Print a list with one line for each row; what does not fit in the last column ends in three dots."""
    width = console().width
    sizes = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    typer.secho(title, bold=True)
    for row in rows:
        line = "  " + "".join(f"{cell:<{size}}  " for cell, size in zip(row, sizes, strict=False)) + row[-1]
        typer.echo(line if len(line) <= width else line[: width - 3] + "...")


def small(value: float) -> str:
    """Format an error or drift."""
    return "-" if math.isnan(value) else f"{value:.1e}"


def count(number: int, what: str) -> str:
    """A number of things: 1 method, 2 methods."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


DURATIONS = (
    (1e-6, 1e9, "ns"),
    (1e-3, 1e6, "\N{MICRO SIGN}s"),
    (1.0, 1e3, "ms"),
    (120.0, 1.0, "s"),
    (7200.0, 1 / 60, "min"),
)
"""Units of time, each with the seconds below which it is used and its number in a second."""


def duration(seconds: float) -> str:
    """A time as a person would write it: 340 microseconds with their sign, 2.5 ms, 12 s, 3.5 min."""
    for limit, number, unit in DURATIONS:
        if seconds * number < 999.5 and seconds < limit:
            return f"{seconds * number:.3g} {unit}"
    return f"{seconds / 3600:.3g} h"


AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


def print_json(value: Any) -> None:
    """Print as JSON; arrays become lists, and numbers that JSON does not have become null."""
    typer.echo(json.dumps(plain(value), indent=1, ensure_ascii=False))


def vector(values: Any, digits: int = 12) -> str:
    """Components in parentheses."""
    return "(" + ", ".join(f"{float(x): .{digits}g}" for x in values) + ")"


def draw_figure(make: Callable[[Any], Any], *paths: Path) -> None:
    """Make a figure without a display and write it."""
    import matplotlib

    matplotlib.use("Agg")
    from .. import plots

    plots.save(make(plots)[0], *paths)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as messages of the program, without the source line."""
    usual = warnings.formatwarning
    warnings.formatwarning = lambda message, *args, **named: f"polhode: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = usual


@contextmanager
def watched(title: str) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar with a time estimate on stderr; on a pipe, one line at the end."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeElapsedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), TextColumn("{task.description}"), console=console(stderr=True)
    ) as bar:
        task = bar.add_task("", total=None)
        with notice.shown(False):  # the bar says what the command does
            yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def numbers(option: str, text: str) -> list[float]:
    """The numbers of an option, separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} must be numbers separated by commas, such as 0,0.5,2; got {text!r}") from None


def named_methods(text: str) -> list[Method]:
    """The methods of a comma-separated list."""
    chosen = list(dict.fromkeys(registry[m] for m in arguments(text)))
    if not chosen:
        raise InputError(f'--methods must be names separated by commas, such as "imidm, akw"; got {text!r}')
    return chosen


NOTICED = 0.1
"""Seconds of compiling, or of loading compiled code, that are worth a word."""


def compiling(watch: Stopwatch) -> str:
    """What to add to a time that does not contain compiling."""
    return f"; compiling {duration(watch.compile_seconds)}" if watch.compile_seconds > NOTICED else ""

"""``polhode emit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..physics import library
from ..physics.problem import Problem
from .console import EXAMPLE, app, examples, guarded

EMIT_HELP = examples(
    f"polhode emit {EXAMPLE} > polhode.c",
    f"polhode emit {EXAMPLE} --problem fast_top --to rust --out top.rs --name top",
    "polhode emit jacobi --to javascript --out polhode.js && node polhode.js --self-test",
    "polhode init && polhode emit akw --problem problem.toml",
)


@app.command("emit", epilog=EMIT_HELP)
@guarded
def emit_command(
    method: Annotated[str, typer.Argument(help="Method name, alias or expression; see `polhode methods`.")],
    problem: Annotated[
        str | None,
        typer.Option("--problem", "-p", help="A named problem or a problem file (.toml); default: a free body."),
    ] = None,
    to: Annotated[str, typer.Option(help="The language: c, c++, cuda, rust, javascript, wgsl.")] = "c",
    name: Annotated[str, typer.Option(help="Prefix of the functions.")] = "polhode",
    dt: Annotated[
        float | None, typer.Option(help="Step of the self-test (default: a rotation by 0.05 radians).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of stdout.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a field with jumps or kinks, which emitted steps cross.")
    ] = False,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Allow a problem file to run the Python files it names.")
    ] = False,
) -> None:
    """Print one step of a method as source code in another language, without dependencies and with a self-test."""
    from ..translate.api import emit

    if out is not None:
        _check_new(out, overwrite)
    text = emit(method, None if problem is None else _problem(problem, allow_code), to, name=name, dt=dt, strict=strict)
    if out is None:
        typer.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8")
    typer.echo(f"written       {out}   {len(text.splitlines())} lines; its first lines say how to test it")


def _problem(name: str, allow_code: bool) -> Problem:
    if not (name.endswith(".toml") or Path(name).is_file()):
        return library.get(name)
    from ..config import problem_file

    return problem_file.load(name, allow_code=allow_code).problem


def _check_new(out: Path, overwrite: bool) -> None:
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists; choose another name or use --overwrite")
    if not out.parent.is_dir():
        raise InputError(f"the folder {out.parent} does not exist; create it first")

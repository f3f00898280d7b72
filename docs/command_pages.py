"""The page of all commands and options, from the parsers of the command line."""

from __future__ import annotations

from typing import Any

import typer

from polhode import cli

HEAD = """# Command reference

This page lists every command with its arguments and options, as `polhode COMMAND --help` prints them.
[Command line](cli.md) is an introduction.
"""


def page() -> str:
    """Every command with its arguments, options and examples."""
    group: Any = typer.main.get_command(cli.app)
    parts = [HEAD, *(_command(name, command) for name, command in group.commands.items() if not command.hidden)]
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join(["polhode", name, *(_placeholder(p) for p in arguments), *(["[options]"] if options else [])])
    rows = [(_placeholder(p), p.help or "") for p in arguments]
    rows += [(", ".join(f"`{word}`" for word in (*p.opts, *p.secondary_opts)), p.help or "") for p in options]
    lines = [f"## {name}", (command.help or "").strip(), f"`{usage}`"]
    if rows:
        table = [
            "| argument or option | meaning |",
            "|---|---|",
            *(f"| {left} | {_cell(right)} |" for left, right in rows),
        ]
        lines.append("\n".join(table))
    lines.append("\n".join(["```text", *examples(command), "```"]))
    return "\n\n".join(lines)


def _placeholder(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")


def examples(command: Any) -> list[str]:
    """The examples of a help text, one on each line."""
    lines = (command.epilog or "").replace(r"\[", "[").split("\n")
    return [line.strip() for line in lines if line.strip().startswith("polhode")]

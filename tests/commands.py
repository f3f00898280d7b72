"""Commands as a user gives them."""

from pathlib import Path

from typer.testing import CliRunner

from polhode import cli


def polhode(*args):
    result = CliRunner().invoke(cli.app, [str(a) for a in args], prog_name="polhode")
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def refused(*args):
    """The one sentence said about bad input; nothing is written."""
    before = sorted(Path().rglob("*"))
    result = polhode(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert sorted(Path().rglob("*")) == before
    assert result.stderr.count("\n") == 1
    return result.stderr


def good(*args):
    result = polhode(*args)
    assert result.exit_code == 0, result.output
    return result.stdout

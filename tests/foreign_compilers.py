"""Compilers and interpreters of the languages that `ph.emit` writes, as far as this machine has them."""

import shutil
import subprocess

import pytest

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-DPOLHODE_SELF_TEST")
COMMANDS = {
    "c": ("cc", "-std=c99", *STRICT, "{source}", "-o", "{program}", "-lm"),
    "c++": ("c++", "-std=c++17", "-ffp-contract=off", *STRICT, "{source}", "-o", "{program}", "-lm"),
    "rust": (
        "rustc", "--edition=2021", "-D", "warnings", "--cfg", "polhode_self_test", "{source}", "-o", "{program}",
    ),
    "javascript": ("node", "{source}", "--self-test"),
}  # fmt: skip
SUFFIXES = {"c": "c", "c++": "cpp", "rust": "rs", "javascript": "js"}


def needed(program):
    """Skip the test if a program is not there."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed on this machine")


def self_test(text, language, folder):
    """Compile a text without warnings and run its self-test; return the seven numbers that it prints."""
    command = COMMANDS[language]
    needed(command[0])
    source, program = folder / f"polhode.{SUFFIXES[language]}", folder / "polhode.exe"
    source.write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [word.format(source=source, program=program) for word in command], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    if "{program}" in command:
        ran = subprocess.run([program], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    *numbers, last = ran.stdout.split("\n")[:8]
    assert last.startswith("largest difference from the Python kernel")
    return tuple(map(float, numbers))


def in_javascript(text, script, folder):
    """What a script prints that uses the functions of an emitted text, as `f`."""
    needed("node")
    (folder / "polhode.js").write_text(text, encoding="utf-8")
    script = f'const f = require("{folder}/polhode.js");\n{script}'
    ran = subprocess.run(["node", "-e", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()

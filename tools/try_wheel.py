"""Build wheel and sdist, install each with the extra app into an empty environment, and run README's code there.

``python -m tools.try_wheel`` (`make wheel`) leaves the two files in dist/ and works in build/wheel/. Nothing of the
source tree is on the path of these runs: Python is started isolated, in a folder of its own. Both share one cache of
compiled code, empty at the start, so the second installation also shows that the cache is found again.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from tools.documents import ROOT, blocks, command_lines

DIST = ROOT / "dist"
WORK = ROOT / "build" / "wheel"
README = ROOT / "README.md"
OPTIONAL = ("dask", "distributed", "gsd", "jax", "jaxlib", "jplephem", "pyarrow", "spiceypy")
"""Packages of other extras, which some modules import."""

INSTALLED = f"""
import importlib, pkgutil, sys, polhode
assert polhode.__file__.startswith(sys.prefix), polhode.__file__
for module in pkgutil.walk_packages(polhode.__path__, "polhode."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as missing:
        if missing.name.partition(".")[0] not in {OPTIONAL}:
            raise
"""
"""The installed package answers, not the source tree, and no module of it needs the source tree."""


def build() -> list[Path]:
    """Build sdist and wheel into dist/, of this version only; the wheel is built from the sdist."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(ROOT)], check=True)
    return sorted(DIST.iterdir())


def check_metadata(file: Path) -> None:
    """The description of a wheel has no link that needs the repository around it."""
    with zipfile.ZipFile(file) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        found = email.message_from_bytes(wheel.read(name))
    assert found["Description-Content-Type"] == "text/markdown", found["Description-Content-Type"]
    links = re.findall(r"\]\(([^)\s]+)\)", str(found.get_payload()))
    relative = [link for link in links if not link.startswith("https://")]
    assert links, "the description has no links"
    assert not relative, relative


def empty_environment(folder: Path) -> Path:
    """Make a virtual environment with pip alone; return the folder of its commands."""
    venv.create(folder, with_pip=True, clear=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def surroundings(commands: Path, cache: Path) -> dict[str, str]:
    """Variables of a user's shell: the environment's commands first, nothing about this tree, plots into files."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "POLHODE"))}
    path = f"{commands}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "PATH": path, "POLHODE_CACHE": str(cache), "MPLBACKEND": "Agg"}


def run_readme(commands: Path, folder: Path, variables: dict[str, str]) -> None:
    """Run README's Python as one program and then its command lines, as typed; they need no other file."""
    folder.mkdir()
    program = folder / "readme.py"
    program.write_text("\n".join(text.lstrip("\n") for _, text in blocks(README)), "utf-8")
    subprocess.run([commands / "python", "-I", program.name], cwd=folder, env=variables, check=True)
    for _, block in blocks(README, "console"):
        for line in command_lines(block.lstrip("\n")):
            print(f"$ {line}", flush=True)
            subprocess.run(line, cwd=folder, env=variables, shell=True, check=True, stdout=subprocess.DEVNULL)


def try_file(file: Path) -> None:
    """Install one file into an empty environment and use it there."""
    place = WORK / ("wheel" if file.suffix == ".whl" else "sdist")
    commands = empty_environment(place / "env")
    variables = surroundings(commands, WORK / "cache")
    print(f"installing    {file.name}", flush=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{file}[app]"]
    subprocess.run([commands / "python", *install], cwd=WORK, env=variables, check=True)
    subprocess.run([commands / "python", "-I", "-c", INSTALLED], cwd=place, env=variables, check=True)
    run_readme(commands, place / "reader", variables)


def main() -> None:
    """Build both files and try each; the first failure ends the program with its status."""
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "cache").mkdir(parents=True, mode=0o700)
    files = build()
    check_metadata(next(file for file in files if file.suffix == ".whl"))
    for file in files:
        try_file(file)
    print("tried         " + ", ".join(file.name for file in files))


if __name__ == "__main__":
    main()

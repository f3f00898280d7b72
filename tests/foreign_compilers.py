"""Compilers and interpreters of the languages that `ph.emit` writes, as far as this machine has them."""

import functools
import re
import shutil
import subprocess

import pytest

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-DPOLHODE_SELF_TEST")
COMMANDS = {
    "cuda": ("nvcc", "-fmad=false", "-DPOLHODE_SELF_TEST", "{source}", "-o", "{program}"),
    "c": ("cc", "-std=c99", *STRICT, "{source}", "-o", "{program}", "-lm"),
    "c++": ("c++", "-std=c++17", "-ffp-contract=off", *STRICT, "{source}", "-o", "{program}", "-lm"),
    "rust": (
        "rustc", "--edition=2021", "-D", "warnings", "--cfg", "polhode_self_test", "{source}", "-o", "{program}",
    ),
    "javascript": ("node", "{source}", "--self-test"),
}  # fmt: skip
SUFFIXES = {"cuda": "cu", "c": "c", "c++": "cpp", "rust": "rs", "javascript": "js"}


@functools.cache
def _works(program):
    """Whether a program is there and can say its version; rustup leaves a `rustc` that needs a toolchain."""
    return (
        shutil.which(program) is not None and not subprocess.run([program, "--version"], capture_output=True).returncode
    )


def needed(program):
    """Skip the test if a program is not there."""
    if not _works(program):
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
    *numbers, last = ran.stdout.split("\n")[:8]  # a device prints its own after those of the host
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


def _numbers(text, name):
    """Numbers in the comment at the end of a WGSL text: at the start, and at the end if it states them."""
    return [[float(x) for x in line.split(", ")] for line in re.findall(rf"^// {name} = (.*)$", text, re.MULTILINE)]


MAIN = """
@group(0) @binding(0) var<storage, read_write> reached: array<f32, 8>;
@compute @workgroup_size(1) fn main() {{
{arrays}
  var failed: i32 = 0;
  for (var n: i32 = 0; n < 100; n++) {{ failed += polhode_step({dt}, {t0} + f32(n) * {dt}, {arguments}); }}
  for (var i: i32 = 0; i < 4; i++) {{ reached[i] = q[i]; }}
  for (var i: i32 = 0; i < 3; i++) {{ reached[4 + i] = momentum[i]; }}
  reached[7] = f32(failed);
}}
"""


def on_webgpu(text):
    """Make the steps that the end of a WGSL text states; return failures, the numbers reached and those stated."""
    compute = pytest.importorskip("wgpu.utils.compute", reason="wgpu is not installed on this machine")
    found = {name: _numbers(text, name) for name in ("inertia", "inverse", "params", "q", "momentum")}
    given = {name: values[0] for name, values in found.items() if values}
    arrays = [f"  var {n} = array<f32, {len(x)}>({', '.join(map(repr, x))});" for n, x in given.items()]
    main = MAIN.format(
        arrays="\n".join(arrays), arguments=", ".join(f"&{name}" for name in given),
        dt=re.search(r"dt = (\S+) from", text)[1], t0=re.search(r"From t = (\S+),", text)[1],
    )  # fmt: skip
    *reached, failed = compute.compute_with_buffers({}, {0: (8, "f")}, text + main, n=1)[0].tolist()
    return failed, reached, [*found["q"][1], *found["momentum"][1]]

"""The translation of single constructs of Python, run in JavaScript and compared with Python."""

import json
import subprocess

import pytest

from foreign_compilers import needed
from polhode.kernels.unroll import unrolled_kernel
from polhode.numbers.primitives import all_lanes, sincos, where, workspace
from polhode.translate.cleaning import cleaned
from polhode.translate.nodes import NUM
from polhode.translate.printers.javascript import JavaScript
from polhode.translate.program import Program, translated
from polhode.translate.source import Untranslatable

INPUTS = ((0.3, 1.7), (-2.5, 0.4), (7.0, -7.0))


def exchanged(a, b):
    """Both names change at once."""
    a, b = b, a - b
    a, b = a * b, a + b
    return a * 2 + b


def counted(a, b):
    """A number known at first varies in a loop; another is defined there and read later."""
    sign, total = -1, 0
    for k in range(1, 40):
        term = a / (k * k)
        total = total + sign * term
        if all_lanes(abs(term) < 1e-3 * abs(a)):
            break
        sign = -sign
    return total + term * b


def early(a, b):
    """Returns differ in what is known of them."""
    if a > b:
        return a, 0
    if a < -2:
        low = b
    else:
        low = a * b
        a = 3
    return low, a


def pairs_of(a, b):
    """A call that returns known parts, unpacked and passed on."""
    x, y = early(a, b)
    (s, c), rest = sincos(x), (y, *early(b, a))
    return s + c * rest[1] + rest[0] * rest[2]


def series(a, b):
    """A workspace, written by another kernel, with loops that count."""
    work = workspace(a, 12)
    powers(work, a, 6)
    total = 0 * a
    for k in range(6):
        total = total + work[k] * b
        for j in range(k, 6):
            total = total - work[j] / (k + j + 1)
    return total


def powers(work, a, count, first=1):
    work[0] = first + 0 * a
    for k in range(1, count):
        work[k] = work[k - 1] * a


def written_out(a, b):
    """A loop over the places of a tuple."""
    v, total = (a, b, a * b), 0
    for i in range(3):
        total = total + v[i] * (i + 1) * (2, 3, 5)[i]
    return where((total > 0) & (a < b) | (b == a), total, -total) / 3


from_text = unrolled_kernel("a, b", "(a + b) / 7 - c", "c = a * b", "a = c")

KERNELS = [exchanged, counted, early, pairs_of, series, written_out, from_text]


def leaves(value):
    """The numbers in nested tuples or objects, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    return [x for part in value for x in leaves(part)] if isinstance(value, list | tuple) else [float(value)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_constructs_compute_what_python_computes(kernel):
    needed("node")
    program = Program(2.0**-52, False, {})
    entry = translated(program, kernel, (NUM, NUM), "entry")
    printer = JavaScript()
    text = "\n".join(line for f in cleaned(program.functions, [entry]) for line in printer.function(f))
    calls = "\n".join(f"console.log(JSON.stringify(entry({a}, {b})));" for a, b in INPUTS)
    ran = subprocess.run(["node", "-e", f"{text}\n{calls}"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for line, inputs in zip(ran.stdout.splitlines(), INPUTS, strict=True):
        assert leaves(json.loads(line)) == pytest.approx(leaves(kernel(*inputs)), rel=4e-16, abs=1e-300)


def while_loop(a, b):
    while a < b:
        a = a + 1
    return a


def unknown_call(a, b):
    return json.dumps(a)


def meanings(a, b):
    if a > b:
        chosen = exchanged
        a = a + 1
    else:
        chosen = counted
    return chosen(a, b)


def loop_with_else(a, b):
    for _ in range(3):
        a = a + b
    else:
        a = 2 * a
    return a


def shapes(a, b):
    if a > b:
        return a
    return a, b


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (while_loop, "while_loop uses while a < b"),
        (unknown_call, "uses .*|calls .*"),
        (shapes, "different shapes"),
        (meanings, "gives chosen different meanings on different paths"),
        (loop_with_else, "a loop of a kind that has no translation"),
        (lambda a, b: a, "not written as a function"),
    ],
)
def test_what_has_no_translation_is_named(kernel, reason):
    with pytest.raises(Untranslatable, match=reason):
        translated(Program(2.0**-52, False, {}), kernel, (NUM, NUM), "entry")

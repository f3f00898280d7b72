"""The equations of a page, computed as they are printed, make the step that the kernel makes.

A small reader takes the displayed LaTeX of a description: every ``symbol = expression`` is an assignment, and all of
them are swept over until nothing changes, which also solves the implicit ones (the step is short). Nothing of the
library's steps is used on this side: matrices are NumPy's, the exponential is SciPy's.
"""

import math
import re

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import bernoulli

import polhode as ph
from polhode.kernels.so3 import matrix
from polhode.methods.queries import TorqueRates

INERTIA = np.array([0.6, 0.8, 1.0])
START = np.array([0.8, 0.4, 0.2, -0.4])
MOMENTUM = np.array([1.8, 0.4, -0.9])
H, TIME = 0.05, 0.3
SWEEPS = 40


def hat(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def cay(a):
    return np.linalg.solve(np.eye(3) - hat(a) / 2, np.eye(3) + hat(a) / 2)


def dexp_inverse(a):
    terms = enumerate(bernoulli(20))
    return sum(b / math.factorial(k) * np.linalg.matrix_power(hat(a), k) for k, b in terms)


def torque(t, R, omega):
    """Generic: of time, attitude and angular velocity, in the body frame."""
    return np.array([
        math.sin(R[2, 1] + t) - 0.3 * omega[0], 0.2 * t * omega[1] - R[2, 0] * R[1, 1], 0.5 * R[0, 2] + 0.1 * omega[2],
    ])  # fmt: skip


def torque_without_velocity(t, R, omega):
    return torque(t, R, np.zeros(3))


def no_torque(t, R, omega):
    return np.zeros(3)


FIELDS = {"velocity": torque, "attitude": torque_without_velocity, "free": no_torque}
DERIVATIVES = {name: np.array(value) for name, value in (
    ("L'", (0.3, -0.2, 0.5)), ("L''", (-0.7, 0.4, 0.2)), ("L'''", (0.1, 0.9, -0.3)), ("L''''", (0.6, -0.5, 0.8)),
)}  # fmt: skip
"""What the methods of Buss are given: the derivatives of the momentum in space, seen from the body at the start."""

# --- reading ----------------------------------------------------------------------------------------

SILENT = re.compile(r"\\,|\\(?:quad|[bB]igl|[bB]igr)(?![a-zA-Z])|\s+")
TOKEN = re.compile(r"\\[a-zA-Z]+|\d+|[a-zA-Z]|.")
ACCENTED = re.compile(r"\\bar\s*(\\?[a-zA-Z]+)")


def equations(latex):
    """The pairs (left, right) of what is displayed."""
    found = []
    for shown in re.findall(r"\$\$(.*?)\$\$", latex, re.DOTALL):
        inside = re.sub(r"\\(begin|end)\{aligned\}", "", shown).replace("&=", "=")
        for part in re.split(r"\\\\|&|\\qquad", inside):
            left, equals, right = part.strip().rstrip(",").partition("=")
            if equals:
                found.append((key(left), right))
    return found


def key(symbol):
    """One spelling for a symbol."""
    symbol = ACCENTED.sub(lambda m: f"{m[1].strip(chr(92))}bar", SILENT.sub(" ", symbol))
    return re.sub(r"[\s{}\\]", "", symbol)


class Reader:
    """Recursive descent over a formula: sums of vector products of products."""

    def __init__(self, latex, values, field):
        text = ACCENTED.sub(r"\\bar{\1}", latex)
        self.tokens = [t for t in TOKEN.findall(SILENT.sub(" ", text)) if t != " "]
        self.values, self.field = values, field

    def peek(self):
        return self.tokens[0] if self.tokens else ""

    def take(self, expected=None):
        token = self.tokens.pop(0)
        assert expected in (None, token), f"expected {expected}, found {token}"
        return token

    def group(self):
        """What stands in braces, as tokens."""
        self.take("{")
        found, depth = [], 1
        while depth:
            token = self.take()
            depth += {"{": 1, "}": -1}.get(token, 0)
            found.append(token)
        return found[:-1]

    def sum(self):
        total = self.vector_product() if self.peek() != "-" else 0
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            total = total + sign * self.vector_product()
        return total

    def vector_product(self):
        value = self.product()
        while self.peek() == r"\times":
            self.take()
            value = np.cross(value, self.product())
        return value

    def product(self):
        value = self.factor()
        while self.peek() and self.peek() not in ("+", "-", r"\times", ")", ","):
            more = self.factor()
            value = value * more if np.ndim(value) == 0 or np.ndim(more) == 0 else value @ more
        return value

    def bracketed(self):
        self.take("(")
        value = self.sum()
        self.take(")")
        return value

    def factor(self):
        token = self.peek()
        if token == "(":
            return self.bracketed()
        if token.isdigit():
            return float(self.take())
        if token == r"\tfrac":
            self.take()
            top, bottom = (self.inner(self.group()) for _ in range(2))
            return top / bottom
        if token == r"\exp":
            self.take()
            return expm(hat(self.bracketed()))
        if token == r"\operatorname":
            self.take()
            return self.function("".join(self.group()))
        return self.symbol()

    def inner(self, tokens):
        return Reader("".join(f"{t} " for t in tokens), self.values, self.field).sum()

    def function(self, name):
        if name == "cay":
            return cay(self.bracketed())
        assert name == "dexp", name
        self.take("_")
        argument = self.inner(self.group())
        self.take("^")
        assert "".join(self.group()) == "-1"
        return dexp_inverse(argument)

    def symbol(self):
        name = self.take().strip("\\")
        if name == "bar":
            name = "".join(self.group()).strip("\\") + "bar"
        while self.peek() == "'":
            name += self.take()
        if self.peek() == "_":
            self.take()
            name += "_" + ("".join(self.group()) if self.peek() == "{" else self.take())
        if name == "T" and self.peek() == "(":
            return self.torque()
        if self.peek() != "^":
            return np.diag(INERTIA) if name == "I" else self.values[name]
        self.take()
        power = "".join(self.group()) if self.peek() == "{" else self.take()
        return np.diag(1 / INERTIA) if name == "I" else self.values[name] ** int(power)

    def torque(self):
        self.take("(")
        arguments = [self.sum()]
        while self.peek() == ",":
            self.take()
            arguments.append(self.sum())
        self.take(")")
        return self.field(*arguments, *([np.zeros(3)] if len(arguments) == 2 else []))


# --- comparing --------------------------------------------------------------------------------------


def printed_step(method, field):
    """Attitude and momentum after a step of the printed equations."""
    R = np.array(matrix(tuple(START)))
    values = {"R_0": R, "Pi_0": MOMENTUM, "h": H, "t": TIME, "R_1": R, "Pi_1": MOMENTUM} | DERIVATIVES
    values |= {"L": MOMENTUM, "w": MOMENTUM / INERTIA}
    lines = equations(method.formula)
    for name in (left.removeprefix("I") for left, _ in lines):
        values.setdefault(name, R if name.startswith("R") else 0 * MOMENTUM)
    for _ in range(SWEEPS):
        for i in "01":
            values[f"omega_{i}"] = values[f"Pi_{i}"] / INERTIA
            values[f"T_{i}"] = field(TIME + int(i) * H, values[f"R_{i}"], values[f"omega_{i}"])
        for left, right in lines:
            value = Reader(right, values, field).sum()
            if left.startswith("I"):  # an equation for I psi
                left, value = left[1:], value / INERTIA
            values[left] = value
    return values["R_1"], values["Pi_1"]


def kernel_step(method, field):
    """The same of the kernel."""

    def of_state(t, q, m, system):
        rates = method.asks.find(TorqueRates)
        if rates or method.name.startswith("buss"):
            given = tuple(tuple(v) for v in DERIVATIVES.values())
            return given[: rates.count + 1] if rates else given[0]
        return tuple(field(t, np.array(matrix(q)), np.array(m) / INERTIA))

    system = (tuple(INERTIA), tuple(1 / INERTIA), ())
    (q, m), _ = method.build(float)(H, TIME, (tuple(START), tuple(MOMENTUM)), system, of_state)
    return np.array(matrix(q)), np.array(m)


READABLE = [
    method
    for method in ph.methods.values()
    if re.search(r"R_1 &?=", method.formula)
    and not re.search(r"\\sum|\\frac|pmatrix|\\mathsf|q_1|\\mathrm", method.formula)
]
"""Methods whose equations give the end of the step by sums and products of what was named before."""


def test_most_families_of_the_papers_are_read():
    papers = {method.cite for method in READABLE}
    assert {
        "krysl2006",
        "krysl2005",
        "krysl2005newmark",
        "simo1991",
        "austin1993",
        "bottasso1998",
        "buss2011",
    } <= papers
    assert len(READABLE) >= 23


@pytest.mark.parametrize("method", READABLE, ids=lambda method: method.name)
def test_the_printed_equations_make_the_step(method):
    field = FIELDS[method.needs]
    said, done = printed_step(method, field), kernel_step(method, field)
    for one, other in zip(said, done, strict=True):
        assert np.abs(one - other).max() < 1e-14  # round-off of numbers of size 2


def test_a_wrong_formula_is_noticed():
    method = ph.methods["swc1"]
    wrong = method.doc.replace(r"h \exp(-\tfrac{1}{2}\psi)", r"h \exp(-\psi)")
    assert wrong != method.doc

    class Misprinted:
        formula = wrong

    said = printed_step(Misprinted, torque)
    assert np.abs(said[1] - kernel_step(method, torque)[1]).max() > 1e-4

"""Coefficients of compositions and splittings to 60 decimals, from their order conditions.

Run as ``python -m tools.derive_coefficients`` this prints the part of `polhode.methods.tables.compositions` between
its two marks; with ``--write`` it puts it there.

**The conditions.** A product of exponentials in a free associative algebra is group-like, so it is determined by its
coefficients on Lyndon words (they generate the shuffle algebra freely; Reutenauer 1993), and these are independent.
It must agree with exp of the sum of the generators through the weight `order`. Words are in time order: the flow
on the left acts first.

*Compositions.* A symmetric method is exp(h Y1 + h^3 Y3 + h^5 Y5 + ...) with Y1 the field itself; a stage of weight w
multiplies Y_k by w^k. Letters are the numbers 1, 3, 5, ...; the target is exp(Y1). A palindrome has no terms of
even weight in its logarithm, so Lyndon words of odd weight suffice: 1, 1, 2, 4, 8 in weights 1, 3, 5, 7, 9.

*Splittings.* Letters T and U, target exp(T + U). In mechanics T is quadratic in the momenta and U does not depend on
them, so r = [U,[U,[U,T]]] = 0 and conditions are needed only modulo the ideal of r. The words with one T and more than
two U drop out. In weight 5 there is one more element of the ideal, [T, r], with coefficients -1 on TTUUU and 3 on
TUTUU; it does not change 3 (TTUUU) + (TUTUU). The rest are Lyndon words: 2, 2, 4 conditions in weights 1, 3, 5. Since
only this relation is used, they hold for every kinetic energy quadratic in the momenta, including the rigid body.

*Modified potentials.* V = {U,{U,T}} has the field [U,[U,T]]; a kick exp(b U + v [U,[U,T]]) is expanded in words.

*Processed methods* P^-1 K P with a palindrome K. P = exp(X) needs only even brackets: X = x1 [T,U] of weight 2, and
x2 [T,[T,[T,U]]] + x3 [U,[T,[T,U]]] of weight 4. The kernel must be P exp(T + U) P^-1. The three numbers (the twist)
are unknowns besides its times, so they satisfy three of the 2 + 4 conditions for order 6. A product of flows that is
exp(X) through weight 5 (2, 1, 2, 2, 4 conditions) is then the processor.

Solutions are refined from printed or rough digits by Newton's method. If there are fewer conditions than unknowns,
the steps have least length, so that the printed scheme changes only in its last digits.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any

import mpmath
from mpmath import mpf

DECIMALS = 60
WORKING = 130
LONGEST = 7
Word = tuple[Any, ...]
Factor = Callable[[Word], Any]
Series = dict[Word, Any]
Part = tuple[str, Any, Any]
Conditions = Callable[[Sequence[Any]], list[Any]]


# --- words ------------------------------------------------------------------------------------------


def weight(word: Word) -> int:
    """Power of h: a number counts as itself, a letter as one."""
    return sum(letter if isinstance(letter, int) else 1 for letter in word)


def is_lyndon(word: Word) -> bool:
    """True if the word is smaller than all its proper right factors."""
    return all(word < word[i:] for i in range(1, len(word)))


@cache
def lyndon_words(letters: Word, n: int) -> tuple[Word, ...]:
    """Lyndon words of weight n in these letters."""
    return tuple(word for word in _words(letters, n) if is_lyndon(word))


def _words(letters: Word, n: int) -> list[Word]:
    if n == 0:
        return [()]
    return [(a, *rest) for a in letters if weight((a,)) <= n for rest in _words(letters, n - weight((a,)))]


def odd_letters(n: int) -> Word:
    """The generators Y1, Y3, ... up to Y_n."""
    return tuple(range(1, n + 1, 2))


def coefficients(words: Iterable[Word], factors: Iterable[Factor]) -> dict[Word, Any]:
    """Coefficients of the words in a product of series with constant term one."""
    wanted = tuple(words)
    prefixes = sorted({word[:i] for word in wanted for i in range(1, len(word) + 1)}, key=len, reverse=True)
    value: dict[Word, Any] = dict.fromkeys(prefixes, mpf(0)) | {(): mpf(1)}
    for factor in factors:
        for word in prefixes:
            for cut in range(len(word)):
                more = factor(word[cut:])
                if more:
                    value[word] += value[word[:cut]] * more
    return {word: value[word] for word in wanted}


def target(word: Word) -> Any:
    """Coefficient of a word in exp(Y1), and in exp(T + U)."""
    return mpf(0) if any(isinstance(a, int) and a > 1 for a in word) else 1 / mpmath.factorial(len(word))


# --- factors ----------------------------------------------------------------------------------------


def stage(w: Any) -> Factor:
    """The factor exp(w Y1 + w^3 Y3 + ...)."""
    powers = [mpf(1)]
    for _ in range(16):
        powers.append(powers[-1] * w)
    return lambda word: powers[weight(word)] / _FACTORIALS[len(word)]


def flow(letter: str, time: Any, modified: Any = 0) -> Factor:
    """The factor exp(time X), with `modified` times [U,[U,T]] added to the exponent of a kick."""
    if modified:
        series = _kick(time, modified)
        return lambda word: series.get(word, 0)
    return lambda word: time ** len(word) / _FACTORIALS[len(word)] if set(word) == {letter} else 0


def _kick(b: Any, v: Any) -> Series:
    modified = bracket(_U, bracket(_U, _T))
    return exponential({("U",): b} | {word: v * value for word, value in modified.items() if value})


def twisted(twist: Sequence[Any], sign: int = 1) -> Factor:
    """The factor exp of the three even brackets [T,U], [T,[T,[T,U]]], [U,[T,[T,U]]] with coefficients."""
    basis = bracket(_T, _U), bracket(_T, bracket(_T, bracket(_T, _U))), bracket(_U, bracket(_T, bracket(_T, _U)))
    exponent: Series = {}
    for value, element in zip(twist, basis, strict=True):
        for word, number in element.items():
            exponent[word] = exponent.get(word, mpf(0)) + sign * value * number
    series = exponential(exponent)
    return lambda word: series.get(word, 0)


def times(p: Series, q: Series) -> Series:
    """The product, through words of length `LONGEST`."""
    out: Series = {}
    for (x, a), (y, b) in itertools.product(p.items(), q.items()):
        if len(x) + len(y) <= LONGEST:
            out[x + y] = out.get(x + y, mpf(0)) + a * b
    return out


def bracket(p: Series, q: Series) -> Series:
    """The commutator pq - qp."""
    out = times(p, q)
    for word, value in times(q, p).items():
        out[word] = out.get(word, mpf(0)) - value
    return out


def exponential(p: Series) -> Series:
    """The series 1 + p + p^2/2 + ... of an element without constant term."""
    power: Series = {(): mpf(1)}
    total = dict(power)
    for k in range(1, LONGEST + 1):
        power = {word: value / k for word, value in times(power, p).items()}
        for word, value in power.items():
            total[word] = total.get(word, mpf(0)) + value
    return total


_T: Series = {("T",): mpf(1)}
_U: Series = {("U",): mpf(1)}
_FACTORIALS = [int(mpmath.factorial(k)) for k in range(16)]


# --- order conditions -------------------------------------------------------------------------------


def composition_residuals(weights: Sequence[Any], n: int) -> list[Any]:
    """Conditions of odd weight n of a palindromic composition of a symmetric method."""
    words = lyndon_words(odd_letters(n), n)
    found = coefficients(words, [stage(w) for w in weights])
    return [found[word] - target(word) for word in words]


def splitting_residuals(sequence: Iterable[Part], n: int) -> list[Any]:
    """Conditions of weight n <= 5 of a splitting, modulo [U,[U,[U,T]]].

    For n = 5 the logarithm must have no terms of weight 4; a palindrome has none.
    """
    return differences([flow(*part) for part in sequence], [target], n)


def differences(product: Sequence[Factor], wanted: Sequence[Factor], n: int) -> list[Any]:
    """Differences of two products on a basis of weight n modulo [U,[U,[U,T]]]."""
    assert n <= 5
    words = [w for w in lyndon_words(("T", "U"), n) if not (w.count("T") == 1 and w.count("U") > 2)]
    found, due = coefficients(words, product), coefficients(words, wanted)
    left = {word: found[word] - due[word] for word in words}
    if n == 5:
        left[_TTUUU] = 3 * left[_TTUUU] + left.pop(_TUTUU)
    return list(left.values())


_TTUUU, _TUTUU = tuple("TTUUU"), tuple("TUTUU")


def linear_residuals(sequence: Iterable[Part], n: int) -> list[Any]:
    """The condition of weight n that is linear in U: the kicks as a quadrature of degree n - 1."""
    word = ("T",) * (n - 1) + ("U",)
    return [coefficients([word], [flow(*part) for part in sequence])[word] - target(word)]


def kernel_residuals(sequence: Iterable[Part], twist: Sequence[Any]) -> list[Any]:
    """Conditions under which a palindrome K is P exp(T + U) P^-1 through weight 6, P = `twisted`."""
    factors = [flow(*part) for part in sequence]
    wanted = [twisted(twist), target, twisted(twist, -1)]
    return [x for n in (1, 3, 5) for x in differences(factors, wanted, n)]


def palindrome(half: Sequence[Any]) -> list[Any]:
    """All stages, from the stages up to the centre."""
    return [*half, *reversed(half[:-1])]


def alternating(first: str, durations: Sequence[Any]) -> list[Part]:
    """Alternating flows, beginning with `first`."""
    both = ("T", "U") if first == "T" else ("U", "T")
    return [(letter, time, 0) for letter, time in zip(itertools.cycle(both), durations, strict=False)]


def composition_conditions(order: int) -> Conditions:
    """All conditions of a composition, as a function of the stages up to the centre."""
    return lambda half: [x for n in range(1, order, 2) for x in composition_residuals(palindrome(half), n)]


def splitting_conditions(first: str, order: int) -> Conditions:
    """All conditions of a symmetric splitting, as a function of the times up to the centre."""

    def conditions(half: Sequence[Any]) -> list[Any]:
        sequence = alternating(first, palindrome(half))
        return [x for n in range(1, order, 2) for x in splitting_residuals(sequence, n)]

    return conditions


# --- solving ----------------------------------------------------------------------------------------


def solved(conditions: Conditions, start: Sequence[Any], tolerance: float = 1e-70, limit: int = 60) -> list[Any]:
    """The nearby zero: Newton steps of least Euclidean length."""
    x = [mpf(value) for value in start]
    for _ in range(limit):
        residual = conditions(x)
        if max(abs(r) for r in residual) < tolerance:
            return x
        slopes = jacobian(conditions, x, residual)
        move = slopes.T * mpmath.lu_solve(slopes * slopes.T, mpmath.matrix(residual))
        x = [value - step for value, step in zip(x, move, strict=True)]
    raise ArithmeticError("Newton's method did not converge: the starting values are not near a solution")


def jacobian(conditions: Conditions, x: Sequence[Any], at: Sequence[Any]) -> Any:
    """Jacobian by differences with a step of half the working digits."""
    step = mpf(10) ** (-mpmath.mp.dps // 2)
    columns = []
    for j in range(len(x)):
        moved = conditions([value + step * (i == j) for i, value in enumerate(x)])
        columns.append([(after - before) / step for after, before in zip(moved, at, strict=True)])
    return mpmath.matrix(columns).T


# --- the schemes ------------------------------------------------------------------------------------

COMPOSITIONS: dict[str, tuple[int, tuple[str, ...]]] = {
    "yoshida6": (6, ("0.784513610477560", "0.235573213359357", "-1.17767998417887", "1.31518632068391")),
    "yoshida8": (8, ("0.914844246229740", "0.253693336566229", "-1.44485223686048", "-0.158240635368243",
                     "1.93813913762276", "-1.96061023297549", "0.102799849391985", "1.70845307078699")),
    "kahan_li6": (6, ("0.39216144400731413927925056", "0.33259913678935943859974864",
                      "-0.70624617255763935980996482", "0.08221359629355080023149045",
                      "0.79854399093482996339895035")),
    "kahan_li8": (8, ("0.13020248308889008087881763", "0.56116298177510838456196441",
                      "-0.38947496264484728640807860", "0.15884190655515560089621075",
                      "-0.39590389413323757733623154", "0.18453964097831570709183254",
                      "0.25837438768632204729397911", "0.29501172360931029887096624",
                      "-0.60550853383003451169892108")),
    "mclachlan8": (8, ("0.7416703643506129", "-0.4091008258000315", "0.1907547102962383", "-0.5738624711160822",
                       "0.2990641813036559", "0.3346249182452981", "0.3152930923967665", "-0.7968879393529163")),
    "sofroniou_spaletta10": (10, (
        "0.07879572252168641926390768", "0.31309610341510852776481247", "0.02791838323507806610952027",
        "-0.22959284159390709415121340", "0.13096206107716486317465686", "-0.26973340565451071434460973",
        "0.07497334315589143566613711", "0.11199342399981020488957508", "0.36613344954622675119314812",
        "-0.39910563013603589787862981", "0.10308739852747107731580277", "0.41143087395589023782070412",
        "-0.00486636058313526176219566", "-0.39203335370863990644808194", "0.05194250296244964703718290",
        "0.05066509075992449633587434", "0.04967437063972987905456880", "0.04931773575959453791768001")),
}  # fmt: skip
"""Printed digits (order, stages up to the centre), from the sources named in `polhode.methods.tables.compositions`."""

SPLITTINGS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "blanes_moan4": ("U", 4, ("0.0829844064174052", "0.245298957184271", "0.396309801498368", "0.604872665711080",
                              "-0.0390563049223486", "-0.350171622895351", "0.1195241940131508")),
    "blanes_moan6": ("U", 6, ("0.0414649985182624", "0.123229775946271", "0.198128671918067", "0.290553797799558",
                              "-0.0400061921041533", "-0.127049212625417", "0.0752539843015807", "-0.246331761062075",
                              "-0.0115113874206879", "0.357208872795928", "0.2366699247869311", "0.2047770542914701")),
    "blanes_moan6a": ("T", 6, ("0.0378593198406116", "0.09171915262446165", "0.102635633102435", "0.183983170005006",
                               "-0.0258678882665587", "-0.05653436583288827", "0.314241403071447",
                               "0.004914688774712854", "-0.130144459517415", "0.143761127168358", "0.106417700369543",
                               "0.328567693746804", "-0.00879424312851058", "-0.19641146648645423",
                               "0.2073050690568954")),
}  # fmt: skip
"""Printed digits (first flow, order, times up to the centre)."""

KERNEL6 = ("0.2379", "0.5683", "-0.0082", "-0.0190", "0.0001", "-0.0014")
"""Rough b1, a1, v1 and twist of the kernel of order 6 with 3 kicks and one V per step; without the V of the inner kicks
the solution is isolated.
"""

PROCESSOR4 = ("-0.1528", "0.1041", "0.2473", "-0.2725", "-0.0944", "0.1684")
PROCESSOR6 = ("0.168395", "0.020705", "0.187423", "0.106011", "-0.144765", "-0.322894", "-0.151852", "0.259916",
              "-0.415381", "0.096969", "0.159016", "-0.330272", "0.197165", "0.169565")  # fmt: skip
"""Rough times of processors that begin with a kick: the shortest found from random starting points.

The kernel exp(T/2) exp(U - V/24) exp(T/2) is exp(T + U - [T + U, [T, U]]/24 + ...), so it is conjugate to a method of
order 4 by exp([T, U]/24).
"""

FIRST_MARK, LAST_MARK = "# begin: written by tools/derive_coefficients.py", "# end of the written part"


def exact_decimals(value: Any) -> Fraction:
    """A number rounded to the stored decimals."""
    return Fraction(int(mpmath.nint(value * mpf(10) ** DECIMALS)), 10**DECIMALS)


def printed(value: Fraction) -> str:
    """A multiple of the last stored decimal as a string."""
    digits = str(abs(int(value * 10**DECIMALS))).rjust(DECIMALS + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-DECIMALS]}.{digits[-DECIMALS:]}"


def composed(half: Sequence[Any]) -> list[Fraction]:
    """Stages up to the centre; the central one makes the sum exactly one."""
    outer = [exact_decimals(value) for value in half[:-1]]
    return [*outer, 1 - 2 * sum(outer, Fraction(0))]


def split(half: Sequence[Any]) -> list[Fraction]:
    """Times up to the centre; the last two make drifts and kicks sum to one exactly."""
    outer = [exact_decimals(value) for value in half[:-2]]
    beside, centre = sum(outer[-2::-2], Fraction(0)), sum(outer[::-2], Fraction(0))
    return [*outer, Fraction(1, 2) - beside, 1 - 2 * centre]


def processed(times: Sequence[Any]) -> list[Fraction]:
    """Times of a processor; the last two make drifts and kicks sum to zero exactly."""
    outer = [exact_decimals(value) for value in times[:-2]]
    return [*outer, -sum(outer[-2::-2], Fraction(0)), -sum(outer[::-2], Fraction(0))]


def gauss_node_roots() -> list[Any]:
    """Drifts of SABA_4: differences of the four Gauss nodes on (0, 1), to the centre."""
    inner, outer = (mpmath.sqrt(mpf(3) / 7 + sign * mpf(2) / 7 * mpmath.sqrt(mpf(6) / 5)) / 2 for sign in (-1, 1))
    return [mpf(1) / 2 - outer, outer - inner, 2 * inner]


def corrector(sequence: Iterable[Part]) -> Any:
    """Minus the coefficient of [U,[U,T]] in the logarithm of a symmetric splitting, from the word TUU."""
    word = ("T", "U", "U")
    return target(word) - coefficients([word], [flow(*part) for part in sequence])[word]


def digits() -> dict[str, tuple[str, ...]]:
    """Every stored number, by scheme."""
    with mpmath.workdps(WORKING):
        table: dict[str, list[Fraction]] = {"yoshida4": composed([1 / (2 - mpmath.cbrt(2)), 0])}
        for order in (4, 6, 8):
            table[f"suzuki{order}"] = [exact_decimals(1 / (4 - mpf(4) ** (mpf(1) / (order - 1))))]
        for name, (order, start) in COMPOSITIONS.items():
            table[name] = composed(solved(composition_conditions(order), start))
        for name, (first, order, start) in SPLITTINGS.items():
            table[name] = split(solved(splitting_conditions(first, order), start))
        drifts = gauss_node_roots()
        table["saba4"] = composed(drifts)
        kicks = [mpf(1) / 4 - mpmath.sqrt(30) / 72, mpf(1) / 4 + mpmath.sqrt(30) / 72]
        half = [drifts[0], kicks[0], drifts[1], kicks[1], drifts[2]]
        table["saba4_corrector"] = [exact_decimals(corrector(alternating("T", palindrome(half))))]
        twist = [mpf(1) / 24, mpf(0), mpf(0)]
        table["processed4"] = processed(solved(processor_conditions("U", twist, 3), PROCESSOR4))
        b1, a1, v1, *twist = solved(kernel6_conditions, KERNEL6)
        table["processed6_kernel"] = split([b1, a1, 0, 0])
        table["processed6_modified"] = [exact_decimals(v1)]
        table["processed6_twist"] = [exact_decimals(value) for value in twist]
        table["processed6"] = processed(solved(processor_conditions("U", twist, 5), PROCESSOR6))
    return {name: tuple(printed(value) for value in values) for name, values in table.items()}


def processor_conditions(first: str, twist: Sequence[Any], longest: int) -> Conditions:
    """Conditions under which a product is `twisted` through a weight, at most 5, as a function of its times."""
    wanted = [twisted(twist)]

    def conditions(durations: Sequence[Any]) -> list[Any]:
        factors = [flow(*part) for part in alternating(first, durations)]
        return [x for n in range(1, longest + 1) for x in differences(factors, wanted, n)]

    return conditions


def kernel6(b1: Any, a1: Any, v1: Any) -> list[Part]:
    """Alternating kicks b1, 1/2 - b1 and drifts a1, 1 - 2 a1; V with the outer kicks."""
    b2, a2 = mpf(1) / 2 - b1, 1 - 2 * a1
    return palindrome([("U", b1, v1), ("T", a1, 0), ("U", b2, 0), ("T", a2, 0)])


def kernel6_conditions(x: Sequence[Any]) -> list[Any]:
    """Conditions of weights 3 and 5, as a function of b1, a1, v1 and the twist."""
    return kernel_residuals(kernel6(*x[:3]), x[3:])[2:]


def text() -> str:
    """The part of the module between its marks."""
    lines = [FIRST_MARK, "DIGITS: dict[str, tuple[str, ...]] = {"]
    for name, values in digits().items():
        if len(values) == 1:
            lines.append(f'    "{name}": ("{values[0]}",),')
        else:
            lines += [f'    "{name}": (', *(f'        "{value}",' for value in values), "    ),"]
    return "\n".join([*lines, "}", LAST_MARK])


def rewritten(module: str) -> str:
    """The source of the module with newly derived digits."""
    return re.sub(f"{re.escape(FIRST_MARK)}.*?{re.escape(LAST_MARK)}", lambda _: text(), module, flags=re.DOTALL)


def main(arguments: Sequence[str]) -> None:
    """Print the digits, or write them."""
    if "--write" not in arguments:
        print(text())
        return
    path = resources.files("polhode.methods.tables").joinpath("compositions.py")
    with resources.as_file(path) as file:
        file.write_text(rewritten(file.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])

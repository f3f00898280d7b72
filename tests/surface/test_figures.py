"""Figures in the pages are measured again, or compared with the files that their programs wrote."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from tests.run import test_cut_steps, test_saltation
from tools.documents import blocks

import polhode as ph

ROOT = Path(__file__).resolve().parents[2]
DOCS, BENCHMARKS = ROOT / "docs", ROOT / "benchmarks"
EPS = 2**-52

pytestmark = pytest.mark.xdist_group("figures")


def rows(page, first):
    """The table of a page whose head begins with these words: its rows as lists of words, without the head."""
    lines = (DOCS / f"{page}.md").read_text("utf-8").splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(f"| {first}"))
    body = lines[start : next(k for k in range(start, len(lines) + 1) if not lines[k : k + 1] or lines[k][:1] != "|")]
    return [[word.strip() for word in line.strip("|").split("|")] for line in (body[0], *body[2:])]


def page_space(page, until):
    """What the Python blocks of a page define, up to the one that contains some text."""
    space = {"__name__": "__main__"}
    for _, block in blocks(DOCS / f"{page}.md", "python"):
        exec(compile(block, page, "exec"), space)
        if until in block:
            return space
    raise AssertionError(f"{page} has no block with {until!r}")


def agree(measured, printed, round_off=30 * EPS):
    """Whether an error is the printed one, to rounding and to what other processors change."""
    return abs(math.log(max(measured, round_off) / max(float(printed), round_off))) < math.log(1.3)


def error(sol, exact):
    """The larger of the attitude error, an angle, and the relative error of the momentum at the end."""
    ends = sol.quaternion[-1], exact.quaternion[-1]
    angle = 2 * min(np.linalg.norm(ends[0] - ends[1]), np.linalg.norm(ends[0] + ends[1]))
    length = np.linalg.norm(exact.momentum[-1])
    return max(angle, np.linalg.norm(sol.momentum[-1] - exact.momentum[-1]) / length)


def test_seven_changes_of_a_relay():
    """docs/tolerance.md, against fixed steps of one length that end at the changes."""
    (_, *tols), errors, steps, others = rows("tolerance", "tol, seven changes")
    problem = page_space("tolerance", "def dead_band")["braked"]
    exact = ph.solve(problem, "verner87", dt=0.01, steps=2000)
    for tol, off, count, other in zip(tols, errors[1:], steps[1:], others[1:], strict=True):
        sol = ph.solve(problem, t_end=20.0, tol=float(tol))
        assert agree(error(sol, exact), off), (tol, error(sol, exact))
        number, _, method = count.partition(" ")
        assert abs(sol.accepted - int(number)) <= 1
        assert sol.method == (method[2:-2] or "verner87")
        crossing = ph.solve(problem, "mkrk(dormand_prince)", t_end=20.0, tol=float(tol))
        assert crossing.accepted == pytest.approx(int(other), rel=0.05)


RELAYS, BURNS = rows("tolerance", "relays of"), rows("tolerance", "burns from")


@pytest.mark.parametrize("row", RELAYS[1:4], ids=lambda row: row[0])
def test_equal_steps_across_relays(row):
    problem = test_saltation.relayed()
    exact = ph.solve(problem, tol=1e-13, t_end=3.5)
    for head, off in zip(RELAYS[0][1:-1], row[1:-1], strict=True):
        steps = int(head.split()[0])
        sol = ph.solve(problem, row[0].strip("`"), dt=3.5 / steps, steps=steps)
        assert agree(test_cut_steps.distance(sol, exact), off), steps


@pytest.mark.parametrize("row", BURNS[1:], ids=lambda row: row[0])
def test_equal_steps_across_burns(row):
    problem = test_cut_steps.problem()
    exact = ph.solve(problem, tol=1e-13, t_end=3.5)
    for head, off in zip(BURNS[0][1:-2], row[1:-2], strict=True):
        steps = int(head.split()[0])
        sol = ph.solve(problem, row[0].strip("`"), dt=3.5 / steps, steps=steps)
        assert agree(test_cut_steps.distance(sol, exact), off), steps


def test_chaos_indicators_of_random_tops():
    """docs/chaos.md: 400 heavy tops for each of ten seeds, against steps of a smaller tolerance."""
    text = " ".join((DOCS / "chaos.md").read_text("utf-8").split())
    said = re.search(
        r"relative error is (\S+) for `megno` and (\S+) for `mean_megno`, and the largest is (\S+)\. ", text
    )
    top, off = ph.problems.heavy_top(), {"megno": [], "mean_megno": []}
    for seed in range(10):
        starts = {"omega": np.random.default_rng(seed).normal(size=(400, 3)), "t_end": 20.0}
        found, exact = ph.chaos(top, step_tol=1e-9, **starts), ph.chaos(top, step_tol=1e-13, **starts)
        for name, errors in off.items():
            errors.append(abs(getattr(found, name)[-1] / getattr(exact, name)[-1] - 1))
    for printed, errors in zip(said.groups()[:2], off.values(), strict=True):
        assert float(printed) == pytest.approx(np.median(errors), rel=0.1)
    assert 1 / 3 < max(np.max(errors) for errors in off.values()) / float(said[3]) < 3


def test_coning():
    """docs/lie.md: the errors of the series and of samples of gyros."""
    space = page_space("lie", "counted.at")
    coning, exact, off = space["coning"], space["exact"], space["error"]
    start = exact(np.float64(0))
    orders, errors = rows("lie", "order, dt")
    for order, printed in zip(orders[1:], errors[1:], strict=True):
        assert agree(off(ph.kinematics(coning, 1.0, attitude=start, dt=0.05, order=int(order))), printed)
    tols, errors, steps = rows("lie", "tol, ten turns")
    for tol, printed, count in zip(tols[1:], errors[1:], steps[1:], strict=True):
        sol = ph.kinematics(coning, 10.0, attitude=start, tol=float(tol))
        assert agree(off(sol), printed)
        assert f"{sol.accepted} steps of order {count.split(', ')[1]}" in repr(sol)
        assert sol.accepted == int(count.split(",")[0])
    head, by_rates, by_angles = rows("lie", "samples, 100")
    for samples, one, two in zip(head[1:], by_rates[1:], by_angles[1:], strict=True):
        how = {"attitude": start, "samples": int(samples)}
        assert agree(off(ph.strapdown(space["t"], rates=space["rates"], **how)), one)
        assert agree(off(ph.strapdown(space["t"], increments=np.diff(space["angles"], axis=0), **how)), two)


def test_lengths_of_emitted_files():
    """docs/emit.md names the shortest file, a usual one and the longest."""
    text = " ".join((DOCS / "emit.md").read_text("utf-8").split())
    said = re.findall(r"about (\d+) lines of C for `([^`]+)`", text)
    assert len(said) == 3
    for count, name in said:
        method = ph.methods[name]
        problem = ph.problems.heavy_top() if method.takes("potential") else ph.problems.free_body()
        assert len(ph.emit(method, problem).splitlines()) == pytest.approx(int(count), rel=0.05), name


def test_times_of_emitted_steps_are_those_of_the_file():
    """docs/emit.md: the table that benchmarks/emit.py writes."""
    found = json.loads((BENCHMARKS / "emit.json").read_text("utf-8"))
    table = {row[0].strip("`"): row[1:] for row in rows("emit", "method")[1:]}
    assert list(table) == [row["method"] for row in found["rows"]]
    for row in found["rows"]:
        times = [row["ours_ns"], row["C"]["ns"], row["C"]["fused_ns"], row["Rust"]["ns"], row["JavaScript"]["ns"]]
        assert table[row["method"]][:5] == [f"{t:.0f}" for t in times], row["method"]


def test_times_in_lanes_are_those_of_the_file():
    """docs/lanes.md: the columns that benchmarks/lanes.json has."""
    found = json.loads((BENCHMARKS / "lanes.json").read_text("utf-8"))
    table = {row[0]: row[1:4] for row in rows("lanes", "method")[1:]}
    assert set(table) == {row["method"] for row in found["rows"]}
    for row in found["rows"]:
        expected = [f"{row['scalar_ns']:.3g}", f"{row['lanes_ns']:.3g}", f"{row['ratio']:.1f}"]
        assert table[row["method"]] == expected, row["method"]


WORDS = {"energy": "energy", "spatial momentum": "spatial_momentum", "vertical momentum": "spatial_momentum",
         "length of the momentum": "momentum_norm"}  # fmt: skip


def test_errors_of_long_runs_are_those_of_the_file():
    """docs/long_runs.md: the table of benchmarks/long_run.json."""
    found = json.loads((BENCHMARKS / "long_run.json").read_text("utf-8"))["rows"]
    rms = {(row["problem"], row["method"]): row["rms"] for row in found}
    for problem, method, _, quantity, plain, _, compensated, _ in rows("long_runs", "problem")[1:]:
        key, name = problem.strip("`"), method.strip("`")
        for printed, wanted in ((plain, name), (compensated, f"compensated({name})")):
            assert f"{rms[key, wanted][WORDS[quantity]][-1]:.1e}" == printed

"""Krysl's two papers: the figures and statements about their examples, as measured in high precision, reproduced.

An error is that of the end state against the 34-digit reference: the attitude in the spectral norm, the body
momentum in the Euclidean one. A printed figure is matched to half a unit of its last digit.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import polhode as ph
from polhode.results.observables import attitude_error

ON_ONE, ON_TWO = (pytest.mark.xdist_group(f"papers {n}") for n in (1, 2))
"""Tests that share compiled methods run in one process; two groups of about equal length."""


@functools.cache
def errors(problem_name: str, method: str, dt: float) -> tuple[float, float]:
    """Error of the attitude and of the momentum at the problem's end time."""
    problem = ph.problems.get(problem_name)
    reference = problem.reference
    assert reference is not None
    run = ph.solve(problem, method, dt=dt, every=10**9)
    truth = Rotation.from_quat(reference.quaternion, scalar_first=True).as_matrix()
    return attitude_error(run.matrix[-1], truth), float(np.linalg.norm(run.momentum[-1] - reference.momentum))


def attitude(problem_name: str, method: str, dt: float) -> float:
    return errors(problem_name, method, dt)[0]


def momentum(problem_name: str, method: str, dt: float) -> float:
    return errors(problem_name, method, dt)[1]


def rounds_to(value: float, printed: str) -> bool:
    """Does the value agree with a printed figure to half a unit of its last digit."""
    mantissa, _, exponent = printed.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(value - float(printed)) <= unit / 2


def ranked(found: dict[str, float]) -> list[str]:
    return sorted(found, key=lambda name: found[name])


# --- section 5.1, Figure 1: free body, t = 100 --------------------------------------------------------

FREE_DT = 1 / 32


@ON_TWO
@pytest.mark.parametrize(("method", "printed"), [("trap", "3.21e-4"), ("imid", "3.53e-4"), ("nmb", "9.1e-5")])
@pytest.mark.usefixtures("plain_first")
def test_free_body_attitude(method: str, printed: str) -> None:
    assert rounds_to(attitude("free_body", method, FREE_DT), printed)


@ON_TWO
def test_free_body_momentum_and_ratios() -> None:
    """IMID and AKW tie in the momentum, TRAP has 2.05 times their error; AKW's attitude is 21 times worse."""
    imid, akw, trap = (errors("free_body", name, FREE_DT) for name in ("imid", "akw", "trap"))
    assert rounds_to(trap[1] / imid[1], "2.05")
    assert rounds_to(akw[0] / imid[0], "21")
    assert abs(akw[1] - imid[1]) <= 3200 * 2.0**-52  # the same map of the momentum: one rounding a step, all one way


@ON_TWO
def test_free_body_momentum_maps_of_imid_and_akw_are_one_map() -> None:
    runs = [
        ph.solve(ph.problems.free_body(), name, dt=0.25, steps=8, digits=40).mp.momentum for name in ("imid", "akw")
    ]
    assert max(abs(x - y) for x, y in zip(runs[0][-1], runs[1][-1], strict=True)) <= 1e-36  # equations solved to 1e-38


@ON_TWO
@pytest.mark.parametrize("dt", [1 / 16, 1 / 32, 1 / 64])
def test_trap_turns_ten_per_cent_better_than_imid_at_every_step_size(dt: float) -> None:
    """So "IMID most accurate in both" is not so; the ratio of the leading errors does not depend on dt."""
    assert abs(attitude("free_body", "trap", dt) / attitude("free_body", "imid", dt) - 0.910) <= 0.0005


@ON_TWO
def test_imid_keeps_the_length_of_the_momentum_and_the_energy() -> None:
    drift = ph.solve(ph.problems.free_body(), "imid", dt=FREE_DT).drift()
    assert max(drift["momentum_norm"], drift["energy"]) <= 3200 * 2.0**-52  # one rounding a step, all one way
    assert drift["spatial_momentum"] > 1e-5  # which IMID does not keep


# --- section 5.2, Figure 2: slow top, t = 20 ----------------------------------------------------------

SLOW_DT = 1 / 320
SEVEN = ("trap", "imid", "trapm", "imidm", "swc1", "bbtrap", "akw")


@ON_TWO
@pytest.mark.parametrize(
    ("method", "printed"), [("swc1", "3.6e-4"), ("trapm", "7.0e-4"), ("imidm", "7.2e-4"), ("imid", "1.08e-3")]
)
def test_slow_top_momentum(method: str, printed: str) -> None:
    assert rounds_to(momentum("slow_top", method, SLOW_DT), printed)


@ON_TWO
@pytest.mark.parametrize(
    ("method", "printed"),
    [
        ("trap", "5.9e-4"), ("imid", "5.9e-4"), ("swc1", "7.0e-4"), ("trapm", "9.5e-4"), ("imidm", "9.5e-4"),
        ("bbtrap", "1.4e-3"), ("akw", "2.4e-3"),
    ],
)  # fmt: skip
def test_slow_top_attitude(method: str, printed: str) -> None:
    assert rounds_to(attitude("slow_top", method, SLOW_DT), printed)


@ON_TWO
def test_slow_top_best_of_the_seven_in_the_momentum() -> None:
    assert ranked({name: momentum("slow_top", name, SLOW_DT) for name in SEVEN})[:3] == ["swc1", "trapm", "imidm"]


# --- section 5.3, Figure 3, and Figure 1 of the other paper: fast top, t = 20 -------------------------

FAST_DT = 0.00125


@ON_TWO
@pytest.mark.parametrize(
    ("method", "printed"),
    [
        ("trapm", "2.07e-4"), ("imidm", "2.08e-4"), ("bbtrap", "1.24e-3"), ("imid", "4.2e-3"), ("trap", "4.2e-3"),
        ("akw", "0.32"), ("liemid_ea", "5.2e-5"), ("liemid_e2", "1.2e-4"), ("LIEMID[I]", "2.1e-4"),
        ("liemid_e1", "3.2e-4"), ("SW", "1.2e-3"), ("nmb", "3.15e-3"),
    ],
)  # fmt: skip
def test_fast_top_attitude(method: str, printed: str) -> None:
    """NMB is 3.14996e-3 (in 34 digits too); elsewhere it is given as 3.2e-3, which is 3.15e-3 rounded again."""
    assert rounds_to(attitude("fast_top", method, FAST_DT), printed)


@ON_TWO
def test_fast_top_rankings() -> None:
    """The momentum-conserving pair leads the seven, and LIEMID[EA] the explicit paper's list."""
    seven = ranked({name: attitude("fast_top", name, FAST_DT) for name in SEVEN})
    assert set(seven[:2]) == {"trapm", "imidm"}
    assert seven[-1] == "akw"
    second = ("liemid_ea", "liemid_e2", "imidm", "liemid_e1", "swc1", "nmb", "akw")
    assert ranked({name: attitude("fast_top", name, FAST_DT) for name in second}) == list(second)


@ON_TWO
def test_fast_top_rivals_agree_with_each_other() -> None:
    """BBTRAP and SWC1 stand as one figure, 1.24e-3 (they are 1.239e-3 and 1.246e-3), and so do IMID and TRAP."""
    for a, b in (("bbtrap", "swc1"), ("imid", "trap"), ("trapm", "imidm")):
        assert abs(attitude("fast_top", a, FAST_DT) / attitude("fast_top", b, FAST_DT) - 1) <= 0.01
    assert abs(attitude("fast_top", "swc1", FAST_DT) / 1.24e-3 - 1) <= 0.01


@ON_TWO
@pytest.mark.parametrize(
    ("method", "printed"), [("swc1", "6e-3"), ("bbtrap", "6e-3"), ("trapm", "1.3e-2"), ("imidm", "1.3e-2")]
)
def test_fast_top_with_a_long_step(method: str, printed: str) -> None:
    """At dt = 0.01 alone the rivals happen to be better."""
    assert rounds_to(attitude("fast_top", method, 0.01), printed)


@ON_TWO
def test_bbtrapwd_ties_with_trapm_at_small_steps() -> None:
    """7 % apart at 0.00125, then closer by the step's square, as methods of equal leading error must be."""
    gaps = [
        attitude("fast_top", "bbtrapwd", dt) / attitude("fast_top", "trapm", dt) - 1 for dt in (FAST_DT, FAST_DT / 4)
    ]
    assert 0.05 < gaps[0] < 0.08
    assert 0 < gaps[1] < gaps[0] / 8


@ON_TWO
def test_liemid_ea_is_liemid_i_with_half_the_step() -> None:
    """Two implicit solves a step buy nothing: equal errors within 0.3 % at equal cost."""
    ea, half = attitude("fast_top", "liemid_ea", 0.005), attitude("fast_top", "imidm", 0.0025)
    assert rounds_to(ea, "8.33e-4")
    assert rounds_to(half, "8.35e-4")
    assert abs(ea / half - 1) <= 0.003


@ON_TWO
@pytest.mark.parametrize(
    ("problem", "dt", "slack"),
    [("soft_wall", 1 / 256, 0.01), ("slow_top", 1 / 5120, 0.05), ("fast_top", 1 / 12800, 0.05)],
)
@pytest.mark.parametrize("method", ["liemid_e1", "liemid_e2"])
def test_e1_and_e2_are_of_first_order_in_the_momentum(method: str, problem: str, dt: float, slack: float) -> None:
    """Both look like second order while dt is long; the first-order part, half a kick, is what remains."""
    order = math.log(momentum(problem, method, dt) / momentum(problem, method, dt / 4)) / math.log(4)
    assert abs(order - 1) <= slack  # the second-order part is below slack of the whole at these steps


# --- section 5.4, Figures 4 and 5: soft wall, dt = 0.5, 40000 steps -----------------------------------


def hamiltonian_errors(method: str, starts: int) -> np.ndarray:
    """Largest |H - H0|/H0 in per cent from the start and from some that differ in the last digits (1e-14)."""
    named, found = ph.problems.soft_wall(), []
    nudges = np.random.default_rng(2006).standard_normal((starts, 3)) * 1e-14
    for nudge in [np.zeros(3), *nudges]:
        problem = ph.Problem(named.body, named.field, spatial_momentum=[2.0, 2.0, 2.0] * (1 + nudge))
        energy = ph.solve(problem, method, dt=0.5, steps=40000).energy
        found.append(100 * np.abs(energy / energy[0] - 1).max())
    return np.array(found)


@ON_ONE
def test_hamiltonians_of_the_two_walls() -> None:
    assert abs(ph.problems.soft_wall().energy() - 2.5873) <= 5e-5
    assert rounds_to(ph.problems.coulomb_wall().energy(), "1.635")


@ON_ONE
@pytest.mark.parametrize(
    ("method", "printed"),
    [("trap", "0.91"), ("imid", "0.69"), ("trapm", "1.23"), ("imidm", "0.52"), ("bbtrapwd", "45")],
)
def test_figure_5_stationary_hamiltonians(method: str, printed: str) -> None:
    """Regular orbits: the printed digits, whatever the last digits of the start."""
    found = hamiltonian_errors(method, 3)
    assert [rounds_to(x, printed) for x in found] == [True] * 4


@ON_ONE
def test_bbtrapwd_drifts_and_the_symmetric_ones_do_not() -> None:
    """A drift grows from quarter to quarter; a stationary error has the same maximum in all."""
    for method, drifts in (("bbtrapwd", True), ("trap", False), ("imid", False), ("trapm", False), ("imidm", False)):
        energy = ph.solve(ph.problems.soft_wall(), method, dt=0.5, steps=40000).energy
        quarters = [np.abs(part / energy[0] - 1).max() for part in np.array_split(energy, 4)]
        assert bool(max(quarters) / min(quarters) > 1.1) is drifts, method


@ON_ONE
@pytest.mark.parametrize(
    ("method", "printed"),
    [("akw", 3.8), ("bbtrap", 4.6), ("swc1", 5.2), ("nmb", 4.5), ("liemid_ea", 5.0)],
)
def test_figure_4_irregular_hamiltonians(method: str, printed: float) -> None:
    """Chaotic orbits: the maximum is a matter of the last digit, and the figure is one sample among ours.

    What holds of all runs is the factor of about five between these methods and the stationary ones.
    """
    found = hamiltonian_errors(method, 25)
    assert found.min() * 0.8 <= printed <= found.max() * 1.25  # 25 samples leave a fifth of the tails open
    assert found.max() / found.min() > 1.2  # not a property of the method: no digit of it could be reproduced
    assert (
        3 <= np.median(found) / 0.84 <= 10
    )  # five, within a factor of two; 0.84 per cent is the mean of TRAP, IMID, TRAPM and IMIDM


@ON_ONE
@pytest.mark.parametrize("method", SEVEN)
def test_no_method_survives_the_wall_of_the_text(method: str) -> None:
    """With the sign the text describes and dt = 0.5, within tens of steps: no solution, or H wrong by 300 %."""
    try:
        run: Any = ph.solve(ph.problems.coulomb_wall(), method, dt=0.5, steps=90)
        failed = False
    except ph.StepError as problem:
        run, failed = problem.partial, True
    assert failed or np.abs(run.energy / run.energy[0] - 1).max() > 3

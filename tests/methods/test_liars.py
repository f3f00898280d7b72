"""Each checker must reject a false declaration, in either direction."""

import dataclasses
import threading

import mpmath
import pytest

import polhode as ph
from polhode.analysis import checks
from polhode.analysis.defect_formula import defect_formula_error
from polhode.numbers.dispatch import solve_listener
from proofs import checks as proofs

HONEST = ph.methods["imid"]


LIES = {
    "explicit": ("imid", checks.check_cost, {"implicit": False, "solves": 0}),
    "a free flow": ("imid", checks.check_needs, {"needs": "free", "torque_evals": 0, "torque_at": frozenset()}),
    "linear bodies it divides by": ("mv_explicit_free", checks.check_bodies, {"linear_bodies": True}),
    "potentials only": ("liemid_ea", checks.check_needs, {"needs": "potential"}),
}
"""What is left for this file: lies about two attributes at once, and some that few methods can tell.

tests/methods/test_every_lie.py has all others."""


@pytest.mark.parametrize("lie", LIES)
def test_checker_rejects(lie):
    name, check, said = LIES[lie]
    assert check(ph.methods[name], (0,)) == []
    assert check(dataclasses.replace(ph.methods[name], **said), (0,)) != []


def test_nothing_declared_is_rejected():
    """A method that promises nothing has no honest declaration: all of it can be measured."""
    empty = dict.fromkeys(("order", "order_free", "symmetric", "symplectic", "poisson", "implicit", "solves", "needs"))
    assert len(checks.check(dataclasses.replace(HONEST, **empty))) >= len(empty)


def test_noise_is_not_passed_over():
    """The checks of the package refuse a method with noise, which they do not measure; the proofs say what is false."""
    with pytest.raises(ph.InputError, match=r"baoab\(rot123\) has noise, which `proofs.checks.check` measures"):
        checks.check(ph.methods["baoab(rot123)"])
    with pytest.raises(ph.InputError, match="has noise"):
        checks.check(ph.methods["brownian(1)"])
    honest = ph.methods["baoab(rot123)"]
    lie = dataclasses.replace(honest, noise=honest.noise._replace(vectors=honest.noise.vectors + 1))
    assert any("declared to draw" in fault for fault in proofs.check_drawn(lie))


@pytest.mark.parametrize("declared", [True, False, None])
def test_a_defect_that_is_no_number_agrees_with_nothing(declared):
    assert checks._exactness("symmetric", declared, mpmath.nan) != []


@pytest.mark.parametrize("place", range(3))
def test_a_defect_that_is_no_number_is_the_largest(place):
    defects = [mpmath.mpf(1), mpmath.mpf(2)]
    defects.insert(place, mpmath.nan)
    assert mpmath.isnan(checks.largest(defects))


def leaning(h, t, y, system, torque):
    """An implicit step that takes a torque and depends on the space frame: it has none of the properties."""
    (q, m), residual = ph.methods["be"].build(None)(h, t, y, system, torque)
    return (q, (m[0] + h * q[0], m[1], m[2])), residual


def demanding(h, t, y, system, torque):
    return torque(t, y[0], y[1], system, "more than is given")


def forgetting(h, t, y, system, torque):
    """A step of body and chain that forgets the energy of the chain."""
    (q, m, memory), residual = ph.methods["nose_hoover(rot123)"].build(h.__class__)(h, t, y, system, torque)
    return (q, m, (0 * memory[0], *memory[1:])), residual


def resting(h, t, y, system, torque):
    """A step that does nothing."""
    return y, 0 * h


FAULTY = {
    checks.check_order: ("rot123", leaning),
    checks.check_symmetric: ("symrot123", leaning),
    checks.check_symplectic: ("rot123", leaning),
    checks.check_poisson: ("rot123", leaning),
    checks.check_conserves: ("rot123", leaning),
    checks.check_cost: ("rot123", leaning),
    checks.check_needs: ("rot123", leaning),
    checks.check_in_splitting: ("rot123", leaning),
    checks.check_frame: ("rot123", leaning),
    checks.check_increments: ("rot123", leaning),
    checks.check_flows: ("rot123", leaning),
    checks.check_symplectic_defect: ("imidm", leaning),
    checks.check_asks: ("fem", demanding),
    checks.check_parts: ("imidm", leaning),
    checks.check_estimated: ("cf4", leaning),
    proofs.check_drawn: ("baoab(rot123)", resting),
    proofs.check_weak_order: ("baoab(rot123)", resting),
    proofs.check_measure: ("baoab(rot123)", resting),
    checks.check_extended: ("nose_hoover(rot123)", forgetting),
}
"""For each check an honest method, and a step without what it declares."""


@pytest.mark.parametrize("check", [c for c in proofs.CHECKS if c not in (checks.check_complete, checks.check_bodies)])
def test_a_fault_on_the_last_start_alone_is_noticed(check):
    """Three starts at least: with the first two the step is honest. (Bodies are checked on starts of their own.)"""
    name, faulty = FAULTY[check]
    honest = ph.methods[name]

    def switched(build):
        def built(*given):
            step = build(*given)

            def switching(h, t, y, system, torque):
                last = abs(system[0][0] - checks.STARTS[-1]["inertia"][0]) < 1e-9
                return (faulty if last else step)(h, t, y, system, torque)

            return switching

        return built

    noise = honest.noise and honest.noise._replace(driven=switched(honest.noise.driven))
    changed = dataclasses.replace(honest, build=switched(honest.build), noise=noise)
    assert len(checks.STARTS) >= 3
    assert check(changed, checks.ALL_STARTS[:-1]) == []
    assert check(changed) != []


def test_the_axis_of_the_middle_moment_is_another_one_in_each_start():
    order = [sorted(range(3), key=start["inertia"].__getitem__) for start in checks.STARTS]
    assert sorted(axes[1] for axes in order) == [0, 1, 2]


def test_solves_of_another_thread_are_not_counted():
    with mpmath.workdps(checks.DIGITS):
        setting, guesses = checks.Setting(HONEST, "free"), []
        with solve_listener(guesses.append):
            thread = threading.Thread(target=setting.step, args=(checks.LARGE_STEP,))
            thread.start()
            thread.join()
            assert guesses == []
            setting.step(checks.LARGE_STEP)
        assert len(guesses) == HONEST.solves
        setting.step(checks.LARGE_STEP)
        assert len(guesses) == HONEST.solves


def test_a_free_flow_that_asks_for_a_torque_is_rejected():
    """The kernel of `akw` declared a free flow: what `imr` once was."""
    free = {"needs": "free", "torque_evals": 0, "torque_at": frozenset(), "name": "greedy"}
    free["conserves"] = ph.methods["imr"].conserves
    greedy = dataclasses.replace(ph.methods["akw"], **free)
    assert any("asks for a torque" in fault for fault in checks.check_needs(greedy))
    assert any("measured 0.00" in fault for fault in checks.check_in_splitting(greedy))


def test_a_symplectic_map_denied_is_rejected():
    """A splitting into rotations about the axes is symplectic: the checker sees that, and rejects the denial."""
    method = dataclasses.replace(HONEST, build=lambda number: axis_rotations, symplectic=True, poisson=True)
    assert checks.check_symplectic(method) == []
    assert checks.check_poisson(method) == []
    assert checks.check_symplectic(dataclasses.replace(method, symplectic=False)) != []
    assert checks.check_poisson(dataclasses.replace(method, poisson=False)) != []


def axis_rotations(h, t, y, system, torque):
    """Kick, then the exact flows of m_i^2/(2 I_i) one after the other (not symmetric, symplectic)."""
    from polhode.kernels.so3 import along, exp, mul, unrotate

    q, m = y
    m = along(m, h, torque(t, q, m, system))
    for i in range(3):
        turn = exp(tuple(h * system[1][i] * m[i] if j == i else 0 * m[i] for j in range(3)))
        q, m = mul(q, turn), unrotate(turn, m)
    return (q, m), 0


def test_a_method_that_depends_on_the_space_frame_is_rejected():
    def leaning(h, t, y, system, torque):
        q, m = y
        return (q, (m[0] + h * q[0], m[1], m[2])), 0

    assert checks.check_frame(HONEST) == []
    assert checks.check_frame(dataclasses.replace(HONEST, build=lambda number: leaning)) != []


def test_increments_that_are_differences_of_new_states_are_rejected():
    from polhode.kernels.so3 import sub
    from polhode.kernels.state import incremented_compensated

    def careless(h, t, y, system, torque):
        (q, m), residual = ph.methods["fem"].build(None)(h, t, y[:2], system, torque)
        if len(y) == 2:
            return (q, m), residual
        return incremented_compensated(y, tuple(a - b for a, b in zip(q, y[0], strict=True)), sub(m, y[1])), residual

    claim = dataclasses.replace(ph.methods["fem"], build=lambda number: careless, increments=True)
    assert checks.check_increments(claim) != []


def test_a_conserved_quantity_the_method_cannot_have_is_rejected():
    plain = ph.methods["swc1"]
    claim = dataclasses.replace(plain, conserves=plain.conserves | {"energy_midpoint"})
    assert any("cannot be conserved" in fault for fault in checks.check_conserves(claim))


def test_methods_that_are_the_same_free_map_share_the_formula():
    """Munthe-Kaas with the midpoint tableau, and the alternating explicit midpoint Lie by the sum over its halves."""
    formula = ph.methods["imidm"].symplectic_defect
    for name in ("mkrk(midpoint)", "liemid_e1", "liemid_e2"):
        assert checks.check_symplectic_defect(dataclasses.replace(ph.methods[name], symplectic_defect=formula)) == []
    alternating = ph.methods["liemid_ea"]
    assert alternating.symplectic_defect is None
    error, size = defect_formula_error(alternating)
    assert error < 1e-25
    assert size > 1e-6

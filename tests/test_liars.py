"""Each checker must reject a false declaration, in either direction."""

import dataclasses

import mpmath
import pytest

import polhode as ph
from polhode.analysis import checks
from polhode.analysis.defect_formula import defect_formula_error

HONEST = ph.methods["imid"]


def lying(**said):
    return dataclasses.replace(HONEST, **said)


LIES = {
    "order too high": (checks.check_order, {"order": 3}),
    "order too low": (checks.check_order, {"order": 1}),
    "free order too high": (checks.check_order, {"order_free": 3}),
    "free order too low": (checks.check_order, {"order_free": 1}),
    "symmetric denied": (checks.check_symmetric, {"symmetric": False}),
    "symplectic claimed": (checks.check_symplectic, {"symplectic": True}),
    "poisson claimed": (checks.check_poisson, {"poisson": True}),
    "conserves nothing": (checks.check_conserves, {"conserves": frozenset()}),
    "conserves spatial momentum": (
        checks.check_conserves,
        {"conserves": HONEST.conserves | {"spatial_momentum"}},
    ),
    "conserves energy at the midpoint": (
        checks.check_conserves,
        {"conserves": HONEST.conserves | {"energy_midpoint"}},
    ),
    "conserves the heavy top's energy": (
        checks.check_conserves,
        {"conserves": HONEST.conserves | {"energy_linear_potential"}},
    ),
    "conserves the energy in any potential": (
        checks.check_conserves,
        {"conserves": HONEST.conserves | {"energy_potential"}},
    ),
    "explicit": (checks.check_cost, {"implicit": False, "solves": 0}),
    "too few torques": (checks.check_cost, {"torque_evals": 0}),
    "too many torques": (checks.check_cost, {"torque_evals": 2}),
    "torque at the start": (checks.check_cost, {"torque_at": frozenset({"start"})}),
    "written by increments": (checks.check_increments, {"increments": True}),
    "seven solves": (checks.check_cost, {"solves": 7}),
    "no order": (checks.check_order, {"order": None}),
    "no free order": (checks.check_order, {"order_free": None}),
    "implicit left open": (checks.check_cost, {"implicit": None}),
    "symmetric left open": (checks.check_symmetric, {"symmetric": None}),
    "symplectic left open": (checks.check_symplectic, {"symplectic": None}),
    "poisson left open": (checks.check_poisson, {"poisson": None}),
    "only torques of the attitude": (checks.check_needs, {"needs": "attitude"}),
    "only potentials": (checks.check_needs, {"needs": "potential"}),
    "only the free body": (checks.check_needs, {"needs": "free", "torque_evals": 0}),
    "no linear bodies": (checks.check_bodies, {"linear_bodies": False}),
    "no flat bodies": (checks.check_bodies, {"flat_bodies": False}),
}


@pytest.mark.parametrize("lie", LIES)
def test_checker_rejects(lie):
    check, said = LIES[lie]
    assert check(HONEST) == []
    assert check(lying(**said)) != []


CLAIMS = {
    "linear bodies": ("rot123", checks.check_bodies, {"linear_bodies": True}),
    "linear bodies it divides by": ("mv_explicit_free", checks.check_bodies, {"linear_bodies": True}),
    "flat bodies": ("mv_explicit", checks.check_bodies, {"flat_bodies": True}),
    "torques of omega": ("nmb", checks.check_order, {"needs": "velocity"}),
    "potentials only": ("liemid_ea", checks.check_needs, {"needs": "potential"}),
    "three solves for a block of two stages": ("mkrk(gauss2)", checks.check_cost, {"solves": 3}),
    "one solve for a block of two stages": ("mkrk(gauss2)", checks.check_cost, {"solves": 1}),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_checker_rejects_what_another_method_claims(claim):
    name, check, said = CLAIMS[claim]
    assert check(ph.methods[name], (0,)) == []
    assert check(dataclasses.replace(ph.methods[name], **said), (0,)) != []


def test_nothing_declared_is_rejected():
    """A method that promises nothing has no honest declaration: all of it can be measured."""
    empty = dict.fromkeys(("order", "order_free", "symmetric", "symplectic", "poisson", "implicit"))
    assert len(checks.check(lying(**empty))) >= len(empty)


@pytest.mark.parametrize("declared", [True, False, None])
def test_a_defect_that_is_no_number_agrees_with_nothing(declared):
    assert checks._exactness("symmetric", declared, mpmath.nan) != []


@pytest.mark.parametrize("place", range(3))
def test_a_defect_that_is_no_number_is_the_largest(place):
    defects = [mpmath.mpf(1), mpmath.mpf(2)]
    defects.insert(place, mpmath.nan)
    assert mpmath.isnan(checks.largest(defects))


def only_on_the_first_start(honest, faulty):
    """A step that is faulty unless the body is that of the first generic start."""

    def step(h, t, y, system, torque):
        first = abs(system[0][0] - checks.STARTS[0]["inertia"][0]) < 1e-9
        return (honest if first else faulty)(h, t, y, system, torque)

    return lambda number: step


@pytest.mark.parametrize(
    "check",
    [checks.check_symplectic, checks.check_poisson, checks.check_conserves, checks.check_frame, checks.check_cost],
)
def test_a_property_of_one_start_only_is_rejected(check):
    rotations, euler = ph.methods["rot123"], ph.methods["be"].build(None)

    def leaning(h, t, y, system, torque):
        (q, m), miss = euler(h, t, y, system, torque)
        return (q, (m[0] + h * q[0], m[1], m[2])), miss

    build = only_on_the_first_start(rotations.build(None), leaning)
    assert check(rotations) == []
    assert check(dataclasses.replace(rotations, build=build)) != []


def test_a_free_flow_that_asks_for_a_torque_is_rejected():
    """The kernel of `akw` declared a free flow: what `imr` once was."""
    free = {"needs": "free", "torque_evals": 0, "torque_at": frozenset(), "name": "greedy"}
    free["conserves"] = ph.methods["imr"].conserves
    greedy = dataclasses.replace(ph.methods["akw"], **free)
    assert any("asks for a torque" in fault for fault in checks.check_needs(greedy))
    assert any("measured 0.00" in fault for fault in checks.check_in_splitting(greedy))


def test_symmetry_claim_is_rejected():
    euler = ph.methods["fem"]
    assert checks.check_symmetric(dataclasses.replace(euler, symmetric=True)) != []


def test_a_symplectic_map_denied_is_rejected():
    """A splitting into rotations about the axes is symplectic: the checker sees that, and rejects the denial."""
    method = dataclasses.replace(HONEST, build=lambda number: axis_rotations, symplectic=True, poisson=True)
    assert checks.check_symplectic(method) == []
    assert checks.check_poisson(method) == []
    assert checks.check_symplectic(dataclasses.replace(method, symplectic=False)) != []
    assert checks.check_poisson(dataclasses.replace(method, poisson=False)) != []


def axis_rotations(h, t, y, system, torque):
    """Kick, then the exact flows of m_i^2/(2 I_i) one after the other (not symmetric, symplectic)."""
    from polhode.so3 import along, exp, mul, unrotate

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


def test_increments_denied_are_rejected():
    splitting = ph.methods["rot123"]
    assert checks.check_increments(splitting) == []
    assert checks.check_increments(dataclasses.replace(splitting, increments=False)) != []


def test_increments_that_are_differences_of_new_states_are_rejected():
    from polhode.carry import grown
    from polhode.so3 import sub

    def careless(h, t, y, system, torque):
        (q, m), miss = ph.methods["fem"].build(None)(h, t, y[:2], system, torque)
        if len(y) == 2:
            return (q, m), miss
        return grown(y, tuple(a - b for a, b in zip(q, y[0], strict=True)), sub(m, y[1])), miss

    claim = dataclasses.replace(ph.methods["fem"], build=lambda number: careless, increments=True)
    assert checks.check_increments(claim) != []


def test_a_conserved_quantity_the_method_cannot_have_is_rejected():
    plain = ph.methods["swc1"]
    claim = dataclasses.replace(plain, conserves=plain.conserves | {"energy_midpoint"})
    assert any("cannot be conserved" in fault for fault in checks.check_conserves(claim))


def test_a_wrong_formula_for_the_symplectic_defect_is_rejected():
    from polhode.so3 import scale

    honest = ph.methods["imidm"]
    assert checks.check_symplectic_defect(honest) == []
    doubled = dataclasses.replace(
        honest, symplectic_defect=lambda h, psi, system: scale(1 + 1e-12, honest.symplectic_defect(h, psi, system))
    )
    assert any("off by" in fault for fault in checks.check_symplectic_defect(doubled))
    splitting = dataclasses.replace(ph.methods["rot123"], symplectic_defect=honest.symplectic_defect)
    assert checks.check_symplectic_defect(splitting) != []


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

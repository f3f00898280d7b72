"""The mutations of `mutations.py`: a wrong digit, sign or index in one place, and the tests that must notice it.

Each is (name, file below src/polhode, text that occurs once, text in its place, tests, expression for pytest's -k).
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One change of the source, and the tests that have to fail with it."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    chosen: str


ORDER, FORMULAS, DECLARED = "test_order_conditions.py", "test_formulas.py", "test_declarations.py"

MUTATIONS = [
    Mutation(*row)
    for row in (
        # tableaus
        ("gauss3-late-digit", "methods/tables/butcher.py", '["5/36", surd("2/9", "-1/15", 15)',
         '["0.13888888888888888889", surd("2/9", "-1/15", 15)', ORDER, "gauss3"),
        ("rk4-stage", "methods/tables/butcher.py", '[0, "1/2", 0, 0], [0, 0, 1, 0]]', '["1/4", "1/4", 0, 0], [0, 0, 1, 0]]', ORDER,
         "rk4"),
        ("dormand-prince", "methods/tables/butcher.py", '"-212/729"', '"-213/729"', ORDER, "dormand_prince"),
        ("radau-node", "methods/tables/butcher.py", '[surd("37/225", "169/1800", 6)', '[surd("37/225", "168/1800", 6)', ORDER,
         "radau2a3"),
        ("gauss-rule-weight", "methods/tables/butcher.py", "1 / ((1 - x * x) * slope * slope)", "1 / ((1 + x * x) * slope * slope)",
         "test_energy_preserving.py", "gauss_rules"),
        ("verner-coefficient", "methods/tables/verner87.py", "116281/1024000", "116282/1024000", "test_verner.py",
         "order_condition"),
        # Krysl and his rivals
        ("fem-torque-frame", "methods/families/krysl2006.py", "unrotate(turn, along(m, h, torque(t, q, m, system)))), 0",
         "along(unrotate(turn, m), h, torque(t, q, m, system))), 0", FORMULAS, "fem"),
        ("be-torque-time", "methods/families/krysl2006.py", "torque(t + h, q, x, system))), m)", "torque(t, q, x, system))), m)",
         FORMULAS, "be"),
        ("e1-torque-time", "methods/families/krysl2005.py", "(q, along(m, h, torque(t + h, q, m, system)))",
         "(q, along(m, h, torque(t, q, m, system)))", FORMULAS, "liemid_e1"),
        ("nmb-predictor", "methods/families/krysl2005.py", "exp(rotation_increment(h, along(m, h / 2, rate), system))",
         "exp(rotation_increment(h, m, system))", FORMULAS, "nmb"),
        ("akw-weights", "methods/families/comparators.py", "-h / 4, pair)", "-h / 2, pair)", FORMULAS, "akw"),
        ("swc1-half-turn", "methods/families/comparators.py", "unrotate(half, along(unrotate(half, m), h, force))",
         "along(unrotate(half, unrotate(half, m)), h, force)", FORMULAS, "swc1"),
        ("bbtrapwd-velocity", "methods/families/comparators.py", "scale(2 / h, psi)", "scale(1 / h, psi)", FORMULAS, "bbtrapwd"),
        ("matrix-to-quaternion", "methods/mechanics.py", "c[1] - b[2]", "b[2] - c[1]", "test_rattle.py",
         "turn_is_that"),
        # Buss and Adams
        ("buss-commutator", "methods/families/buss.py", "h * h / 12, cross(a, w)", "h * h / 24, cross(a, w)", FORMULAS,
         "buss2plus"),
        ("buss-third-derivative", "methods/families/buss.py", "cross(a, along(g1, 2, f0))", "cross(a, along(g1, 1, f0))",
         FORMULAS,
         "buss4"),
        ("rk4-quaternion-weights", "methods/families/buss.py", "h / 3, p3), h / 6, p4)", "h / 6, p3), h / 3, p4)", DECLARED,
         "declares and rk4_quat"),
        ("adams-predictor", "methods/families/adams.py", "R = (55, -59, 37, -9)", "R = (55, -59, 36, -9)", ORDER, "adams"),
        ("adams-memory", "methods/families/adams.py", "(*after(p, a), *after(p, b), *after(p, c))",
         "(*after(p, a), *after(p, b), *after(p, b))", "test_memory.py", "adams_remembers"),
        ("munthe-kaas-node", "methods/families/munthe_kaas.py", "slopes(t + node * h, scale(h, total(k))",
         "slopes(t, scale(h, total(k))", DECLARED, "declares and kutta3"),
        # splittings and Moser-Veselov
        ("rot-late-digit", "methods/families/splitting.py", "y = c(y, h * inverse[inner] * y[1][inner])",
         "y = c(y, h * inverse[inner] * y[1][inner] * (1 + h / 10**20))", ORDER, "splittings_are and three_rotations"),
        ("symrot-rate", "methods/families/splitting.py", "h * (inverse[s] - inverse[e])", "h * (inverse[s] + inverse[e])", ORDER,
         "splittings_are and symrot"),
        ("excess-low-part", "methods/families/splitting.py", "((square - 2 * d) + d * d) + rest",
         "((square - 2 * d) + d * d) - rest",
         "test_compensated.py", "excess_of"),
        ("dmv-numerator", "methods/families/dmv.py", "linear = ((g[1] + g[2]) * v[0]", "linear = ((g[1] - g[2]) * v[0]",
         "test_splitting.py", "dmv_solves"),
        ("dmv-gain", "methods/families/dmv.py", "k = 2 / unit", "k = 1 / unit", "test_splitting.py", "dmv_solves"),
        ("dmv-table-1", "methods/tables/dmv_series.py", "(0, 3, 0, 0): (17, 2520)", "(0, 3, 0, 0): (18, 2520)",
         "test_splitting.py",
         "derived_again"),
        ("dmv10-series", "methods/tables/dmv_series.py", "(0, 4, 0, 0): (31, 22680)", "(0, 4, 0, 0): (32, 22680)", DECLARED,
         "declares and dmv10"),
        ("dmv-quartic", "kernels/quartic.py", "return r * (e[2] * r - e[1] * k)", "return r * (e[2] * r + e[1] * k)",
         "test_splitting.py", "dmv_solves"),
        ("mv-explicit-cubic", "methods/families/zanna.py", "cardano = big + p /", "cardano = big - p /",
         "test_mv_explicit.py", "cubic"),
        ("mv-explicit-adjugate", "methods/families/zanna.py", "shift, turn = m * m - v * v, 2 * m * v",
         "shift, turn = m * m + v * v, 2 * m * v", "test_mv_explicit.py", "all_are_the_discrete"),
        ("rattle-half-traces", "methods/families/rattle.py", "(b - a + c) / 2", "(b + a + c) / 2", "test_rattle.py",
         "printed_equations"),
        ("rattle-equation", "methods/families/rattle.py", "-dot(v, e), e), v), cross(v, e))", "-dot(v, e), e), v), cross(e, v))",
         "test_rattle.py", "printed or strang_with"),
        # solvers and derivatives
        ("root-slopes", "kernels/solvers.py", "return sub(x, sub(f, stop_gradient(f)))", "return add(x, sub(f, stop_gradient(f)))",
         "test_gradient.py",
         "against_fifty_digits and imidm"),
        ("dual-quotient", "numbers/dual.py", "-(value * d / c))", "-(value * d))", "test_duals.py", "arithmetic"),
        ("unit-differentiated", "kernels/so3.py", "excess = norm2(stop_gradient(q)) - 1", "excess = norm2(q) - 1", "test_gradient.py",
         "jump and imidm"),
        # energy preservation
        ("ep-direction", "methods/combinators/polhode_projection.py", "k = (y * u[2] - z * u[1]", "k = (y * u[2] + z * u[1]",
         "test_energy_preserving.py", "both_integrals"),
        ("ep-least-turn", "methods/combinators/polhode_projection.py", "2 * square + dot(change, m)", "square + dot(change, m)",
         "test_energy_preserving.py", "it_is_what_it_declares and buss"),
        ("ep-hermite", "methods/combinators/energy_projection.py", "w1[2])), h / 16", "w1[2])), h / 8", "test_energy_preserving.py",
         "energy_advances"),
        # schemes and compositions
        ("yoshida4-late-digit", "methods/tables/compositions.py", "217144828328706", "217144828328707", "test_coefficients.py",
         "composition_conditions and yoshida4 or stored_strings_are"),
        ("suzuki-weights", "methods/tables/compositions.py", "(s, s, 1 - 4 * s, s, s)", "(s, 1 - 4 * s, s, s, s)",
         "test_coefficients.py",
         "composition_is_consistent"),
        ("nystrom-modified", "methods/tables/compositions.py", '("1/6", "1/2", "2/3"), (0, 0, "-1/72"))',
         '("1/6", "1/2", "2/3"), (0, 0, "-1/71"))', "test_coefficients.py", "splitting_conditions and nystrom4"),
        ("saba-corrector", "methods/tables/compositions.py", 'surd("-1/12", "13/648", 15)', 'surd("-1/12", "13/649", 15)',
         "test_coefficients.py", "near_integrable"),
        ("processed-inverse", "methods/tables/compositions.py",
         "Part(part.flow, -part.time, -part.modified) for part in reversed(self.post)",
         "Part(part.flow, -part.time, -part.modified) for part in self.post", "test_coefficients.py",
         "processor_is_undone"),
        ("halves-order", "methods/combinators/compose.py", '"solves": first.solves + second.solves,', '"solves": first.solves,', DECLARED,
         "declares and liemid_ea"),
        ("reversible-density", "methods/combinators/reversible.py", "memory = (time, low, half + h / 2 * growth",
         "memory = (time, low, half + h * growth", "test_reversible.py", "it_is_what_it_declares"),
        # rotations and elliptic functions
        ("cot-tail", "kernels/so3.py", "x2 * 3617", "x2 * 3618", ORDER, "series_near_zero"),
        ("dexp-coefficient", "kernels/so3.py", "s * s / 2, va)", "s * s / 4, va)", "test_so3.py", "dexp"),
        ("quaternion-product", "kernels/so3.py", "p[0] * q[2] - p[1] * q[3]", "p[0] * q[2] + p[1] * q[3]", "test_so3.py",
         "quaternion_product"),
        ("nearly-unit", "kernels/so3.py", "1, 1 - excess / 2)", "1, 1 - excess)", "test_so3.py", "nearly_unit"),
        ("carlson-rj-tail", "kernels/elliptic.py", "675675", "675676", ORDER, "r_j"),
        ("carlson-rf-tail", "kernels/elliptic.py", "15015 * e2", "15014 * e2", ORDER, "r_f"),
        ("carlson-rc1", "kernels/elliptic.py", "e * (255255 -", "e * (255254 -", "test_elliptic.py", "carlson and rj"),
        ("nome-series", "kernels/elliptic.py", "x4 * (150 +", "x4 * (151 +", "test_elliptic.py", "jacobi_in_many_digits"),
        ("quarter-period", "kernels/elliptic.py", "(d * d / 4)", "(d * d / 2)", "test_elliptic.py", "quarter_period"),
        ("jacobi-third-kind", "methods/families/jacobi.py", "third = 1 / (3 + 3 * n)", "third = 1 / (3 + 2 * n)",
         "test_exact.py",
         "forty_digits"),
        ("lagrange-waves", "methods/exact/lagrange_top.py", "a * c - b * s, b * c + a * s", "a * c - b * s, b * c - a * s",
         "test_lagrange_top.py", "forty_digits"),
        ("lagrange-roots", "methods/exact/lagrange_constants.py", "total * total / 4 - product",
         "total * total / 4 + product",
         "test_lagrange_top.py", "forty_digits"),
        # physics
        ("pull-sign", "physics/fields/formulas.py", "return -dot(force, apply(R, arm))", "return dot(force, apply(R, arm))",
         "test_ready_fields.py", "dipoles"),
        ("gravity-gradient", "physics/fields/formulas.py", "scale(3 * strength", "scale(2 * strength", "test_ready_fields.py",
         "gravity_gradient_is"),
        ("kepler-orbit", "physics/fields/gravity.py", "sqrt(1 - eccentricity * eccentricity)", "sqrt(1 - eccentricity)",
         "test_ready_fields.py", "eccentric_orbit"),
        ("kepler-equation", "physics/fields/formulas.py", "d * d * c / 6)", "d * d * c / 3)", "test_ready_fields.py",
         "keplers_equation"),
        ("soft-wall", "physics/fields/gravity.py", "repulsion / d**10", "repulsion / d**9", "test_ready_fields.py",
         "soft_wall"),
        ("cone-moments", "physics/shapes.py", "3 * height * height / 80", "3 * height * height / 60", "test_bodies.py",
         "solids_against"),
        ("parallel-axes", "physics/body.py", "mass * np.outer(arm, arm)", "2 * mass * np.outer(arm, arm)", "test_bodies.py",
         "parallel_axes"),
        ("quadratic-drag", "physics/fields/actuators.py", "-coefficients[i] * speed * omega[i]", "-coefficients[i] * omega[i]",
         "test_ready_fields.py", "drag_slows"),
        # other spaces
        ("vector-adjoint", "vector/family.py", "(u, along(p, h, force(t + h, u, p, system)))",
         "(u, along(p, h, force(t, u, p, system)))", "test_vector.py", "adjoint_pairs"),
        ("vector-broyden", "vector/family.py", "root(guess, unit(h), norm(y[0]), (h, t + h, y)",
         "root(guess, unit(h), norm(y[0]), (h, t, y)", "test_vector.py", "adjoint_pairs"),
        ("lie-recursion", "lie/magnus.py", "number(1) / (n + 1), total", "number(1) / (n + 2), total", "test_lie.py",
         "talks_coefficients"),
        ("lie-bernoulli", "lie/magnus.py", "math.comb(k + 1, j)", "math.comb(k, j)", "test_lie.py",
         "bernoulli_numbers"),
        ("ndim-increment", "ndim/family.py", "(2 / h) * differences", "(4 / h) * differences", "test_ndim.py",
         "euler_arnold"),
        ("ndim-triple-jump", "ndim/family.py", "number(2) ** (number(1) / 3)", "number(2) ** (number(1) / 5)",
         "test_ndim.py", "test_order and yoshida4"),
        # references, control, records
        ("taylor-convolution", "taylor/interpreter.py", "jx.append(k * x[k])", "jx.append((k + 1) * x[k])",
         "test_taylor.py",
         "every_function"),
        ("controller", "methods/adaptive/controller.py", "(2 + s) * (1 + s) / 12", "(2 + s) * (1 + s) / 6", "test_verner.py",
         "the_controller"),
        ("controller-accepts", "methods/adaptive/controller.py", "fine = z <= edge", "fine = z <= 16 * edge", "test_verner.py",
         "the_controller"),
        ("compensated-length", "kernels/state.py", "return ((s - 1) + rest) / 2 +", "return ((s - 1) + rest) +",
         "test_compensated.py",
         "tidying"),
        ("herpolhode-ring", "run/poinsot.py", "twice * middle < square", "twice * middle > square", "test_poinsot.py",
         "ring"),
        ("store-units", "results/store/file_format.py", '"rad T^-1"', '"deg T^-1"', "test_trajectory.py", "units_fit"),
        ("drift-of-norm", "results/observables.py", "axis=-1), length - first[2]",
         "axis=-1), length - length[-1]", "test_trajectory.py", "drift"),
        ("log-spacing", "config/sampling.py", "np.geomspace(self.begin", "np.linspace(self.begin", "test_sweep.py", "grid"),
    )
]  # fmt: skip

"""Emitted steps compile without warnings and compute the numbers of the Python kernels."""

import math
import re

import numpy as np
import pytest

import polhode as ph
from foreign_compilers import in_javascript, on_webgpu, self_test
from polhode.kernels.loops import stepping
from polhode.numbers import floats
from polhode.run.integrator import start, state_space, torque_kernel

EPSILON = 2.0**-52
STEPS = 100
NAMES = [m.name for m in ph.methods.values() if m.has_step]
FAST = ("symrot123", "dmv4", "akw", "abm4", "jacobi", "lietaylor(4)", "mkrk(gauss2)")
"""One of each way in which kernels are written: explicit, a quartic, Newton, a memory, series, coefficients."""
COMPOSED = (
    "strang(dmv10)",
    "compensated(dmv4)",
    "processed4(jacobi)",
    "reversible(imidm)",
    "ep(buss3)",
    "yoshida4(trap)",
)


@ph.torque(frame="body")
def drag_and_push(t, omega, k, push):
    return (-k * omega[0] + push * ph.math.sin(t), -k * omega[1], ph.where(omega[2] > 0, -k, k))


crossing = pytest.mark.filterwarnings("ignore::polhode.errors.ResultWarning")
"""For tests with the field above, which has a jump: it holds a condition, which is translated too."""


def problems_for(method):
    """A free body, and a body with the most general field that the method takes."""
    top = ph.problems.heavy_top()
    fields = {"potential": top.field, "attitude": top.field, "velocity": top.field + drag_and_push(0.1, 0.3)}
    yield ph.problems.free_body()
    if method.needs in fields:
        yield ph.Problem(top.body, fields[method.needs], omega=[0.3, -0.8, 1.2], t0=0.25)


def step_in(text):
    """The step of the self-test."""
    return float(re.search(r"\bdt = ([-+.e\d]+)|= \([^,]+, ([-+.e\d]+)_f64\)", text)[1] or 0)


def in_python(method, problem, dt):
    """Quaternion and momentum after the steps of the self-test, by the kernels on Python's own numbers."""
    number = floats.number
    before, after = method.processors(number)
    advance = stepping(method.build(number), torque_kernel(problem, number, method), state_space(method), before, after)
    y, system = start(problem, method, number)
    rows = np.empty((1, 8))
    last = (STEPS, math.inf) if method.has_own_time else STEPS
    assert advance(dt, problem.t0, 0, STEPS, STEPS, last, y, system, rows)[4]
    return tuple(rows[0, :7])


def slow_unless(fast, names):
    return [pytest.param(name, marks=() if name in fast else pytest.mark.slow) for name in names]


@crossing
@pytest.mark.parametrize("name", slow_unless(FAST, [*NAMES, *COMPOSED]))
def test_c_equals_the_python_kernel_to_the_bit(name, tmp_path):
    method = ph.methods[name]
    for problem in problems_for(method):
        text = ph.emit(method, problem)
        assert self_test(text, "c", tmp_path) == in_python(method, problem, step_in(text))


@crossing
@pytest.mark.parametrize("name", slow_unless(("akw",), [*NAMES, *COMPOSED]))
@pytest.mark.parametrize("language", ["c++", "rust"])
def test_other_compiled_languages_do_too(name, language, tmp_path):
    method = ph.methods[name]
    for problem in problems_for(method):
        dt = step_in(ph.emit(method, problem))
        assert self_test(ph.emit(method, problem, language), language, tmp_path) == in_python(method, problem, dt)


@crossing
@pytest.mark.parametrize("name", slow_unless(("abm4", "jacobi"), [*NAMES, *COMPOSED]))
def test_javascript_differs_by_the_rounding_of_its_functions_only(name, tmp_path):
    method = ph.methods[name]
    for problem in problems_for(method):
        text = ph.emit(method, problem, "javascript")
        expected = in_python(method, problem, step_in(text))
        gap = np.abs(np.subtract(self_test(text, "javascript", tmp_path), expected)).max()
        assert gap <= 2 * STEPS * EPSILON * max(1, *map(abs, expected))


@crossing
@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
def test_cuda_on_the_host_equals_the_python_kernel_to_the_bit(name, tmp_path):
    method = ph.methods[name]
    for problem in problems_for(method):
        dt = step_in(ph.emit(method, problem))
        assert self_test(ph.emit(method, problem, "cuda"), "cuda", tmp_path) == in_python(method, problem, dt)


ON_WEBGPU = [name for name in NAMES if not ph.methods[name].memory and name != "jacobi"]


@pytest.mark.parametrize("name", slow_unless(("akw",), ON_WEBGPU))
def test_wgsl_agrees_to_single_precision(name):
    method = ph.methods[name]
    for problem in ("free_body", "heavy_top")[: 1 + method.takes("potential")]:
        failed, reached, stated = on_webgpu(ph.emit(method, problem, "wgsl"))
        assert failed == 0
        assert np.abs(np.subtract(reached, stated)).max() <= 100 * 2.0**-23 * max(1, *map(abs, stated))


@pytest.mark.parametrize("name", ["jacobi", "compensated(dmv4)"])
def test_wgsl_refuses_methods_that_need_exact_rounding(name):
    with pytest.raises(ph.InputError, match="to the bit, which WGSL does not guarantee"):
        ph.emit(name, to="wgsl")


def test_a_method_without_a_step_is_refused():
    for method in ph.methods.values():
        if not method.has_step:
            with pytest.raises(ph.InputError, match="an exact motion without steps"):
                ph.emit(method, "fast_top")


def test_the_self_test_notices_another_result(tmp_path):
    text = ph.emit("rot123")
    wrong = text.replace("0x1.", "0x1.8", 1)
    assert wrong != text
    with pytest.raises(AssertionError):
        self_test(wrong, "c", tmp_path)


def test_a_step_that_fails_says_so_and_leaves_the_state(tmp_path):
    script = """
    const q = [1, 0, 0, 0], m = [1, 2, 3];
    console.log(f.polhode_step(1e3, 0, [1, 2, 3], [1, 1/2, 1/3], q, m), ...q, ...m);
    console.log(f.polhode_step(0.01, 0, [1, 2, 3], [1, 1/2, 1/3], q, [NaN, 0, 0]), ...q);
    """
    words = in_javascript(ph.emit("imid", to="javascript"), script, tmp_path)
    assert words == ["1", "1", "0", "0", "0", "1", "2", "3", "1", "1", "0", "0", "0"]


def test_parameters_are_arguments(tmp_path):
    body, field = ph.problems.heavy_top().body, ph.fields.gravity
    made, other = (ph.Problem(body, field(x), omega=[0.3, -0.8, 1.2]) for x in (1.0, 7.0))
    script = """
    const q = [1, 0, 0, 0], m = [0.3*0.6, -0.8*0.8, 1.2];
    for (let n = 0; n < 100; n++) f.top_step(0.02, n*0.02, [0.6, 0.8, 1], [1/0.6, 1/0.8, 1], [7], q, m);
    console.log(...q, ...m);
    """
    words = in_javascript(ph.emit("akw", made, "javascript", name="top"), script, tmp_path)
    assert tuple(map(float, words)) == in_python(ph.methods["akw"], other, 0.02)


@pytest.mark.parametrize("method", ["akw", "taylor(6)"])
def test_bodies_with_other_axes_and_rows_of_data(method, tmp_path):
    tensor = ph.Body([[2.0, 0.3, 0.1], [0.3, 3.0, 0.2], [0.1, 0.2, 4.0]])
    problem = ph.Problem(tensor, ph.fields.gravity(2.0), omega=[0.3, -0.8, 1.2])
    text = ph.emit(method, problem)
    assert "principal axes" in text
    assert self_test(text, "c", tmp_path) == in_python(ph.methods[method], problem, step_in(text))


@ph.potential
def two_charges(R, charges, heights):
    return ph.total(lambda c, z: c * R[2][2] * z, charges, heights)


def test_sums_over_rows_are_loops_over_constant_arrays(tmp_path):
    rows = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.7, -1.0])
    problem = ph.Problem(ph.Body([1, 2, 2.5]), two_charges(*rows), omega=[0.3, -0.8, 1.2])
    text = ph.emit("akw", problem)
    assert "table_1[3] = {1.0, -2.0, 0.5}" in text
    assert self_test(text, "c", tmp_path) == in_python(ph.methods["akw"], problem, step_in(text))


def test_loops_stay_loops_and_the_comment_states_the_declaration():
    text = ph.emit("akw", "fast_top")
    assert "for (int pass" in text
    assert len(text.splitlines()) < 500
    for part in (
        "Declared: order 2, symmetric, implicit",
        "with a potential linear in R: energy",
        "Krysl",
        "scalar first",
        "gravity(mgl=20.0)",
        "20.0",
        "-ffp-contract",
    ):
        assert part in text


def test_a_field_alone_takes_the_body_of_the_example():
    assert "gravity(mgl=3.0)" in ph.emit("imidm", ph.fields.gravity(3.0))


# --- jumps ----------------------------------------------------------------------------------------


@ph.torque(frame="body")
def switched(t, k):
    return k * ph.where(t < 1.03, 1.0, 0.0), 0.0, 0.0


@ph.torque(frame="body")
def relay(omega, k):
    return ph.where(omega[0] > 0.5, -k, k), 0.0, 0.0


JUMPING = {
    "condition on t": switched(0.3),
    "table": ph.fields.tabulated([0.0, 1.03, 2.0], [[0.0, 0, 0], [0.3, 0, 0], [0.0, 0, 0]]),
    "thruster": ph.fields.thruster(torque=[0.3, -0.2, 0.25], on=[[0.51, 1.03]]),
    "relay": relay(0.2),
    "in a sum": ph.fields.gravity(1.0) + relay(0.2),
}


@pytest.mark.parametrize("to", ["c", "c++", "cuda", "rust", "javascript", "wgsl"])
@pytest.mark.parametrize("name", JUMPING)
def test_steps_that_cross_jumps_are_told_in_the_file_and_refused_if_strict(name, to):
    """In the lines of the comment, in every language; `ph.solve` ends its steps there."""
    problem = ph.Problem(ph.Body([1.0, 1.4, 1.9]), JUMPING[name], omega=[0.3, 1.1, 0.7])
    with pytest.warns(ph.ResultWarning, match="an emitted step does not end there, so that the order is lost"):
        text = ph.emit("mkrk(rk4)", problem, to)
    comment = text[: text.index("polhode_step(")]
    assert f"Note: {JUMPING[name].name} has jumps or kinks" in comment
    with pytest.raises(ph.InputError, match="an emitted step does not end there"):
        ph.emit("mkrk(rk4)", problem, to, strict=True)


def test_smooth_fields_are_emitted_if_strict():
    assert ph.emit("akw", "fast_top", strict=True) == ph.emit("akw", "fast_top")
    assert "Note: " not in ph.emit("akw", "fast_top")
    with pytest.raises(ph.InputError, match="strict must be True or False; got 1"):
        ph.emit("akw", "fast_top", strict=1)


# --- refusals ---------------------------------------------------------------------------------------


@ph.torque(frame="body")
def jump(t, omega):
    return (1.0 if t > 1 else 0.0, 0.0, 0.0)


def test_what_cannot_be_emitted_is_refused_in_one_sentence():
    body = ph.Body([1, 2, 2.5])
    with pytest.raises(ph.InputError, match="no translation; write it as a formula"):
        ph.emit("akw", ph.Problem(body, jump(), omega=[1, 0, 0]))
    with pytest.raises(ph.InputError, match="integrates free bodies only"):
        ph.emit("dmv4", "fast_top")
    with pytest.raises(ph.InputError, match="random numbers"):
        ph.emit("baoab(jacobi)", ph.Problem(body, ph.fields.heat_bath(kT=1.0, friction=0.1), omega=[1, 0, 0]))
    with pytest.raises(ph.InputError, match=r"to must be one of c, c\+\+, .*; got 'fortran'"):
        ph.emit("akw", to="fortran")
    with pytest.raises(ph.InputError, match="dt must be"):
        ph.emit("akw", dt=math.nan)
    with pytest.raises(ph.InputError, match="name must be an identifier"):
        ph.emit("akw", name="my step")
    with pytest.raises(ph.InputError, match="must be a Problem, the name of one, or a field; got 3"):
        ph.emit("akw", 3)
    with pytest.raises(ph.InputError, match="fails in step 1 of the self-test with dt = 1000"):
        ph.emit("imid", dt=1000.0)

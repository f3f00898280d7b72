"""Lists of methods begin with the best for the case."""

import pytest

import polhode as ph
from polhode.methods import NEEDS
from polhode.methods.ranking import SPLITTINGS, best_first, fitting, listed


@pytest.mark.parametrize("kind", NEEDS)
def test_the_order_is_not_that_of_registration(kind):
    found = fitting(kind)
    assert set(ph.methods.taking(kind)) <= set(found)
    assert [m.name for m in found if m.name not in SPLITTINGS] != [m.name for m in ph.methods.taking(kind)]
    assert best_first(reversed(found), kind) == found


def test_the_exact_solution_of_a_free_body_is_first():
    assert fitting("free")[0].name == "jacobi"
    assert fitting("free")[1].conserves >= {"energy", "spatial_momentum"}


@pytest.mark.parametrize("kind", ["potential", "attitude"])
def test_splittings_are_first_where_there_is_a_torque_of_the_attitude(kind):
    assert fitting(kind)[0].name == "strang(jacobi)"
    assert all(m.symmetric for m in fitting(kind)[:3])


def test_any_torque_begins_with_what_a_tolerance_chooses():
    first = fitting("velocity")[0]
    sol = ph.solve(ph.Problem(ph.Body([1.0, 2.0, 2.5]), DAMPING(0.1), omega=[1.0, 0.2, 0.1]), tol=1e-9, t_end=0.1)
    assert ph.methods[sol.method].estimated is not None or sol.method.startswith("taylor")
    assert first.estimated is not None
    assert first.order == max(m.order for m in ph.methods.taking("velocity"))


@ph.torque
def DAMPING(omega, rate):
    return tuple(-rate * w for w in omega)


def test_multistep_methods_are_last():
    memories = [m.memory > 0 or m.has_own_time for m in fitting("velocity")]
    assert memories == sorted(memories)


def test_a_long_list_is_cut_off():
    assert listed(fitting("velocity")).endswith(", ...")
    assert listed(fitting("velocity")[:2]) == ", ".join(m.name for m in fitting("velocity")[:2])


def test_a_free_flow_under_a_torque_is_told_to_be_split():
    with pytest.raises(ph.InputError, match=r"dmv10 integrates free bodies only, .*; write strang\(dmv10\), "):
        ph.solve(ph.problems.heavy_top(), "dmv10", dt=0.01, steps=1)


def test_under_friction_it_cannot_be_split():
    damped = ph.Problem(ph.Body([1.0, 2.0, 2.5]), DAMPING(0.1), omega=[1.0, 0.2, 0.1])
    with pytest.raises(ph.InputError, match="depends on omega; methods that take it: verner87, "):
        ph.solve(damped, "dmv10", dt=0.01, steps=1)


@pytest.mark.parametrize("name", [name for name in ph.methods.combinators if name not in ph.methods])
def test_a_combinator_is_no_method_and_says_what_to_write(name):
    with pytest.raises(ph.InputError, match=f"'{name}' is a combinator, which makes methods: write ") as refused:
        ph.methods[name]
    assert ph.methods[str(refused.value).rpartition("write ")[2]].order


@pytest.mark.parametrize("kind", [None, "free", "velocity"])
def test_the_command_line_lists_the_best_first(kind, capsys):
    from polhode.cli.methods import methods_command

    methods_command(kind="explicit", takes=kind)
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    shown = [ph.methods[name] for name in names if name in ph.methods]
    assert len(shown) > 5
    assert shown == best_first(shown, kind or "free")

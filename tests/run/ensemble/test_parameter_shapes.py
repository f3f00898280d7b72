"""Parameters of the fields of an ensemble: one value for all bodies, or one for each."""

import itertools

import numpy as np
import pytest

import polhode as ph
from polhode.physics.fields.parameters import MOST_PARAMETERS
from polhode.run.ensemble import batch
from polhode.run.ensemble.batch import from_arrays
from polhode.run.ensemble.start import Start


@ph.torque
def mixed(omega, weight, push, turn):
    """A number, three numbers and a matrix: what is given must have just these shapes."""
    a, b, c = push
    (x, _, _), (_, y, _), (_, _, z) = turn
    return weight * a * x, weight * b * y, weight * c * z


@ph.torque
def with_default(omega, push=(1.0, 2.0, 3.0)):
    return push[0], push[1], push[2]


@ph.torque
def loose(omega, push):
    """Takes a number and three numbers alike."""
    return (push, push, push) if isinstance(push, float) else tuple(push)


SHAPES = {"weight": (), "push": (3,), "turn": (3, 3)}
OTHERS = [(2,), (4,), (6,), (2, 3), (3, 2), (4, 3), (2, 2, 3), (3, 3, 3), (2, 3, 3), (4, 3, 3), (1, 1, 3), (0, 3)]


def made(number, field, params):
    """The parameters of every body, as the loops get them."""
    momenta = np.tile([0.1, 0.2, 0.3], (number, 1))
    crowd = from_arrays([1.0, 2.0, 2.5], None, Start("momenta", momenta), field, params, 0.1)
    return crowd.number, np.broadcast_to(crowd.values, (crowd.number, crowd.values.shape[1]))


def wanted(number, params):
    """The same by the documented rule; None where there is none."""
    each = {}
    for name, value in params.items():
        array = np.array(value)
        if array.shape == SHAPES[name]:
            each[name] = array[None]
        elif array.ndim and array.shape[1:] == SHAPES[name] and len(array):
            each[name] = array
        else:
            return None
    lengths = {len(array) for array in each.values()} | {number}
    if len(lengths - {1}) > 1:
        return None
    number = max(lengths)
    columns = [
        np.broadcast_to(each[name].reshape(len(each[name]), -1), (number, np.prod(SHAPES[name], dtype=int)))
        for name in SHAPES
    ]
    return number, np.concatenate(columns, axis=1)


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("number", range(1, 6))
def test_any_shapes_work_as_documented_or_are_refused(number, bound):
    """Every combination of the right shapes, and many wrong ones, of a bound field and of an unbound one."""
    rng = np.random.default_rng([number, bound])
    field = mixed(1.0, (1.0, 1.0, 1.0), np.eye(3)) if bound else mixed
    ways = [[shape, (1, *shape), (number, *shape), (3, *shape)] for shape in SHAPES.values()]
    tried = list(itertools.product(*ways))
    for _ in range(150):
        tried.append(
            tuple(shapes[i] if (i := rng.integers(6)) < 4 else OTHERS[rng.integers(len(OTHERS))] for shapes in ways)
        )
    worked = 0
    for shapes in tried:
        params = {name: rng.uniform(1, 2, shape) for name, shape in zip(SHAPES, shapes, strict=True)}
        expected = wanted(number, params)
        try:
            found = made(number, field, params)
        except ph.InputError:
            assert expected is None, (number, shapes)
            continue
        assert expected is not None, (number, shapes)
        assert found[0] == expected[0]
        np.testing.assert_array_equal(found[1], expected[1])
        worked += 1
    assert 20 < worked < len(tried)


@pytest.mark.parametrize("number", range(1, 6))
def test_one_vector_for_all_and_one_for_each(number):
    """Of an unbound field, a bound one and one with a default; for N = 1 and N = 3 too."""
    field = ph.fields.constant_torque(torque=[0, 0, 0.0])
    one, each = np.array([0.1, 0.2, 0.3]), np.arange(3.0 * number).reshape(number, 3)
    for kind, name in ((field.template, "torque"), (field, "torque"), (with_default, "push")):
        assert np.array_equal(made(number, kind, {name: one})[1], np.tile(one, (number, 1)))
        assert np.array_equal(made(number, kind, {name: each})[1], each)
        with pytest.raises(ph.InputError):
            made(number, kind, {name: [0.1, 0.2]})


@ph.torque
def many_numbers(omega, a, b, c, d, e, f, g, h, i, j, push):
    x, y, z = push
    return a * x + b + c, d * y + e + f + g, h * z + i + j


@pytest.mark.parametrize("number", [1, 3, 5])
@pytest.mark.parametrize("bodies", [1, 5])
def test_many_parameters_with_a_value_for_each_body(bodies, number):
    """Of an unbound field as of a bound one: ten numbers, and three numbers that are the same for all bodies."""
    number = max(number, bodies)
    given = {name: np.linspace(k, k + 1, number) for k, name in enumerate("abcdefghij")} | {"push": [0.1, 0.2, 0.3]}
    bound = many_numbers(**dict.fromkeys("abcdefghij", 1.0), push=(1.0, 1.0, 1.0))
    found, expected = made(bodies, many_numbers, given), made(bodies, bound, given)
    assert found[0] == expected[0] == number
    assert np.array_equal(found[1], expected[1])
    with pytest.raises(ph.InputError):
        made(bodies, many_numbers, given | {"c": np.ones((number, 2))})


@ph.torque
def ten_loose(omega, a, b, c, d, e, f, g, h, i, push):
    return (push, push, push) if isinstance(push, float) else tuple(push)


def test_of_many_parameters_too_the_ambiguous_one_is_named():
    given = dict.fromkeys("abcdefghi", np.ones(3)) | {"push": np.ones(3)}
    with pytest.raises(
        ph.InputError, match=r"parameter \w+ of shape \(3,\) could be one value for all .*bind the field"
    ):
        made(3, ten_loose, given)


def test_the_rule_is_told():
    with pytest.raises(
        ph.InputError, match=r"push must be one value for all bodies, \(3,\), or one for each, \(N, 3\); got"
    ):
        made(4, with_default, {"push": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(
        ph.InputError, match=r"push of shape \(3,\) could be one value for all .*field=loose\(push=...\)"
    ):
        made(3, loose, {"push": [1.0, 2.0, 3.0]})
    assert made(3, loose(1.0), {"push": [1.0, 2.0, 3.0]})[1].shape == (3, 1)
    assert made(3, loose((1.0, 1.0, 1.0)), {"push": [1.0, 2.0, 3.0]})[1].shape == (3, 3)


def test_a_long_array_is_not_made_a_list_to_be_refused(monkeypatch):
    """It could be one value for all bodies only if a field took so many parameters: that is known from its size."""
    listed = []
    bound = batch._bound
    monkeypatch.setattr(batch, "_bound", lambda template, values: listed.append(values) or bound(template, values))
    weights = np.linspace(1.0, 2.0, MOST_PARAMETERS + 1)
    number, values = made(len(weights), mixed, {"weight": weights, "push": [1.0, 2.0, 3.0], "turn": np.eye(3)})
    assert number == len(weights)
    np.testing.assert_array_equal(values[:, 0], weights)
    assert [values["weight"] for values in listed] == [1.0]


def test_too_many_parameters_are_refused_with_their_number():
    with pytest.raises(ph.InputError, match=rf"at most {MOST_PARAMETERS} numbers; loose has {MOST_PARAMETERS + 1};"):
        made(1, loose, {"push": np.ones((1, MOST_PARAMETERS + 1))})


@ph.potential
def weight(R, mgl):
    return mgl * R[2][2]


def test_a_wrong_number_of_values_is_named():
    with pytest.raises(ph.InputError, match=r"mgl of shape \(3,\) has no row for each of 17 bodies"):
        ph.ensemble(
            np.ones((17, 3)), None, np.ones((17, 3)), field=weight, params={"mgl": np.ones(3)}, tol=1e-6, t_end=1.0
        )


def test_no_bodies_are_refused_with_parameters_too():
    with pytest.raises(ph.InputError, match=r"got shape \(0, 3\)"):
        ph.ensemble(
            np.ones((0, 3)), None, np.ones((0, 3)), field=weight, params={"mgl": np.ones(0)}, tol=1e-6, t_end=1.0
        )

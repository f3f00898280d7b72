"""Events are stored in files and read back."""

import json

import pytest

import polhode as ph
from polhode.results.store import integrity

TOP = ph.problems.heavy_top()
LEVEL, NEVER = ph.event(lambda R: R[2][2] - 0.9), ph.event(lambda t: t - 100.0)
RUNS = {"tol": {"tol": 1e-8}, "fixed": {"method": "imidm", "dt": 0.01}}


def same(a, b):
    return all((getattr(a, name) == getattr(b, name)).all() for name in ("t", "quaternion", "momentum", "energy"))


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
@pytest.mark.parametrize("run", RUNS)
def test_read_back(tmp_path, run, suffix):
    given = {"t_end": 3.0, "events": [LEVEL, NEVER], "out": tmp_path / f"run{suffix}", **RUNS[run]}
    sol = ph.solve(TOP, **given)
    back, again = ph.load(given["out"]), ph.solve(TOP, **given, resume=True)
    copy = ph.load(back.save(tmp_path / f"copy{suffix}"))
    assert len(sol.events[0]) > 0
    for one in (back, again, copy):
        assert [len(x) for x in one.events] == [len(sol.events[0]), 0]
        assert same(one.events[0], sol.events[0])
        assert one.events[0].matrix.shape == (len(sol.events[0]), 3, 3)


def test_other_events_are_another_run(tmp_path):
    path = tmp_path / "run.zarr"
    ph.solve(TOP, tol=1e-6, t_end=1.0, events=[LEVEL], out=path)
    for other in ([NEVER], [ph.event(lambda R: R[2][2] - 0.8)], [LEVEL, NEVER], []):
        with pytest.raises(ph.InputError, match="was begun with"):
            ph.solve(TOP, tol=1e-6, t_end=1.0, events=other, out=path, resume=True)


@pytest.mark.parametrize("text", ["{", "[1]", '[{"t": [0.0]}]', '[{"t": ["x"], "quaternion": [], "momentum": []}]'])
def test_damage(tmp_path, text):
    path = tmp_path / "run.zarr"
    ph.solve(TOP, tol=1e-6, t_end=1.0, events=[LEVEL], out=path)
    attrs = json.loads((path / "zarr.json").read_bytes())["attributes"]
    integrity.replace_attributes(path, attrs | {"events": text})
    with pytest.raises(ph.InputError, match="is damaged"):
        ph.load(path)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_file_without_states_is_not_damaged(tmp_path, suffix):
    """A run that ends before the first of the times asked for keeps nothing."""

    @ph.event(terminal=True)
    def low(R):
        return R[2][2] - 0.3

    top, path = ph.problems.heavy_top(), tmp_path / f"none{suffix}"
    sol = ph.solve(top, tol=1e-6, times=[1.0, 2.0], events=[low], out=path)
    loaded = ph.load(path)
    assert loaded.t.shape == sol.t.shape == (0,)
    assert loaded.quaternion.shape == (0, 4)
    with pytest.raises(ph.InputError, match="no states"):
        sol.drift()

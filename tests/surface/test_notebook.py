"""What a notebook shows: well-formed tables with the facts, a picture where there is something to draw."""

import base64
import math
import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import polhode as ph
from polhode.viewer import notebook
from waiting import PATIENCE

METHOD = ph.methods["imidm"]  # many tests share its programs


def read(thing):
    """The facts of the table, and the bytes of the picture."""
    page = ET.fromstring(f"<div>{thing._repr_html_()}</div>")
    rows = [[cell.text for cell in row] for row in page.iter("tr")]
    pictures = [base64.b64decode(image.get("src").partition(",")[2]) for image in page.iter("img")]
    return {"title": rows[0][0], **{row[0]: row[1] for row in rows[1:]}}, pictures


def test_a_trajectory_shows_how_it_was_made_and_its_path():
    sol, figures = ph.solve(ph.problems.free_body(), METHOD, dt=0.5), plt.get_fignums()
    facts, pictures = read(sol)
    assert facts["title"] == "Trajectory"
    assert (facts["problem"], facts["method"], facts["step"]) == ("free_body", METHOD.name, "dt = 0.5")
    assert (facts["states"], facts["time"], facts["status"]) == ("201", "0 to 100", "finished")
    for name, size in sol.drift().items():
        assert float(facts[f"drift of {name.replace('_', ' ')}"]) == pytest.approx(size, rel=0.06)
    (picture,) = pictures
    assert picture.startswith(b"\x89PNG")
    assert plt.get_fignums() == figures  # none is left open


@pytest.mark.usefixtures("plain_first")
def test_a_run_to_a_tolerance_and_its_events():
    def upright(R):
        return R[2][2] + 2

    sol = ph.solve(ph.problems.heavy_top(), tol=1e-8, events=[ph.event(upright)])
    facts, pictures = read(sol)
    assert (facts["step"], facts["error, estimated"]) == ("tol = 1e-08", f"{sol.error_estimate:.1e}")
    assert len(pictures) == 1
    assert len(sol.events[0]) == 0
    facts, pictures = read(sol.events[0])
    assert (facts["states"], facts["time"], pictures) == ("0", "-", [])
    assert "drift of energy" not in facts
    with pytest.raises(ph.InputError, match="no states"):
        _ = sol.events[0].plot


@ph.torque
def blow_up(t):
    return 1 / (4 - t), 0.0, 0.0


def test_a_failed_run_shows_what_there_is():
    problem = ph.Problem(ph.Body([1.0, 2.0, 3.0]), blow_up(), omega=[0.1, 3.0, 0.2], name="<b>& co")
    with pytest.raises(ph.StepError) as failed:
        ph.solve(problem, METHOD, dt=0.25, t_end=8.0)
    facts, pictures = read(failed.value.partial)
    assert (facts["problem"], facts["status"]) == ("<b>& co", "failed")
    assert len(pictures) == 1


def test_states_that_are_not_finite_are_not_drawn():
    sol = ph.solve(ph.problems.free_body(), METHOD, dt=0.5, steps=3)
    data = {name: np.full_like(getattr(sol, name), math.nan) for name in ("t", "quaternion", "momentum", "energy")}
    facts, pictures = read(ph.Trajectory(data, sol.info))
    assert facts["drift of energy"] == "nan"
    assert pictures == []


def test_a_long_trajectory_is_thinned_for_its_picture():
    sol = ph.solve(ph.problems.free_body(), METHOD, dt=0.01, steps=5 * notebook.DRAWN)
    kept = notebook.thinned_indices(sol.quaternion, sol.momentum, notebook.DRAWN)
    assert (len(kept), kept[0], kept[-1]) == (notebook.DRAWN, 0, len(sol) - 1)
    assert len(sol._repr_html_()) < 200_000


def test_an_ensemble_shows_its_size_and_what_failed():
    t, q, m = np.array([0.0, 1.0]), np.zeros((2, 12, 4)), np.zeros((2, 12, 3))
    failed = np.array([-1, 7, 3] + 9 * [1])
    facts, _ = read(ph.Ensemble(t, q, m, np.ones((12, 3)), failed, "some", 0.5))
    assert (facts["bodies"], facts["states of each"], facts["time"], facts["method"]) == ("12", "2", "0 to 1", "some")
    assert facts["failed"].startswith("11 (body 1 in step 7, 2 in step 3, 3 in step 1")
    assert facts["failed"].endswith(", ...)")
    facts, _ = read(ph.Ensemble(t, q, m, np.ones((12, 3)), np.full(12, -1), "some", 0.5))
    assert facts["failed"] == "none"


@pytest.mark.parametrize("method", ph.methods.values(), ids=lambda method: method.name)
def test_a_method_shows_its_declaration(method):
    facts, _ = read(method)
    assert facts["title"] == f"Method {method.name}"
    assert facts["needs"] == method.needs
    assert set(facts["conserves"].split(", ")) - {"-"} == method.conserves


def test_nothing_is_imported_before_it_is_shown():
    code = "import polhode, sys; print({'matplotlib', 'polhode.plots', 'polhode.viewer.notebook'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert said.stdout.strip() == "set()"

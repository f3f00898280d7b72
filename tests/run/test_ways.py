"""The same motion in every way that can compute it: the ways agree, or say that they do not.

Nothing is recorded: each way is compared with another one in this process. `validation/net` has the motions and the
ways, `python validation/bits.py ways` runs all of them.
"""

import time
import warnings

import numpy as np
import pytest
from validation.net import check
from validation.net.cases import CASES
from validation.net.rooms import NAMED, QUICK
from validation.net.ways import HOWS, WAYS, net

import polhode as ph

SEEN = (
    "again", "every", "times", "max turn", "events", "terminal", "statistics", "statistics to an event", "resumed",
    "restarted", "pickled", "progress", "memory", "stops",
)  # fmt: skip
"""Ways of one body that the fast suite tries, in plain Python."""


def disagreements(case, how, ways):
    return [
        f"{name}: {sentence}"
        for name, cell in net(lambda name: name.startswith(f"{case} | {how} | "), {way: WAYS[way] for way in ways})
        for sentence in cell.found
    ]


@pytest.mark.parametrize("how", ["dt", "tol"])
@pytest.mark.parametrize("case", CASES)
def test_ways_of_one_body_agree(case, how):
    assert not disagreements(case, how, SEEN)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("case", CASES)
def test_all_ways_agree(case, how):
    assert not disagreements(case, how, WAYS)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in NAMED])
def test_functions_agree(name):
    cell = check.filled(lambda way, cell: way(cell), NAMED[name])
    assert not (cell.found)
    assert not (cell.refused)


# --- the net itself ---------------------------------------------------------------------------------


def _cell(way):
    return check.filled(lambda run, cell: way(cell), None)


def _raises(error):
    raise error


PLANTED = {
    "a bit": lambda cell: cell.same("x", np.array([1.0, np.nextafter(2.0, 3.0)]), np.array([1.0, 2.0])),
    "a shape": lambda cell: cell.same("x", np.zeros(2), np.zeros(3)),
    "more than is allowed": lambda cell: cell.close("x", [1.0, 2.0], [1.0, 2.1], 1e-3),
    "NaN": lambda cell: cell.close("x", [np.nan], [1.0], 1e-3),
    "a claim": lambda cell: cell.claim(False, "it does not hold"),
    "an error from inside": lambda cell: _raises(KeyError("x")),
    "a special InputError": lambda cell: _raises(type("HiddenError", (ph.InputError,), {})("no")),
    "a failed step": lambda cell: _raises(ph.StepError("step 3 failed")),
    "a warning from inside": lambda cell: warnings.warn("overflow", RuntimeWarning, stacklevel=1),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_disagreement_is_found(what):
    assert len(_cell(PLANTED[what]).found) == 1


def test_agreement_and_refusal_are_none():
    assert not _cell(lambda cell: cell.same("x", np.array([1.0, np.nan]), np.array([1.0, np.nan]))).found
    assert not _cell(lambda cell: cell.close("x", [1.0, 2.0], [1.0, 2.0 + 1e-9], 1e-8)).found
    refused = _cell(lambda cell: _raises(ph.InputError("give dt")))
    assert (refused.refused, refused.found) == ("give dt", [])
    warned = _cell(lambda cell: warnings.warn("the field jumps", ph.ResultWarning, stacklevel=1))
    assert (warned.warned, warned.found) == (["the field jumps"], [])


def test_a_way_without_end_is_found(monkeypatch):
    monkeypatch.setattr(check, "PATIENCE", 0.05)
    assert _cell(lambda cell: time.sleep(2.0)).found == ["no end after 0.05 s"]


def test_a_warning_admits_what_it_tells_of():
    def crossing(cell):
        warnings.warn(f"F has {check.CROSSED}, and steps cross them", ph.ResultWarning, stacklevel=1)
        cell.close("x", [1.0], [2.0], 1e-3)
        cell.claim(False, "no .partial")

    cell = _cell(crossing)
    assert cell.found == ["no .partial"]
    assert len(cell.admitted) == 1

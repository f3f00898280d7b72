"""Interrupted runs, and what a run reports on its way."""

from __future__ import annotations

import numpy as np
import pytest

import polhode as ph

pytestmark = pytest.mark.xdist_group("errors")

FREE = ph.Problem(ph.Body([1.0, 2.0, 2.5]), omega=[1.0, 0.1, 0.2])


def test_interrupt_keeps_what_was_computed() -> None:
    def stop(fraction: float) -> None:
        if fraction > 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        ph.solve(FREE, "imidm", dt=0.01, steps=10_000_000, every=1000, progress=stop)
    partial = caught.value.partial  # type: ignore[attr-defined]
    assert partial.status == "interrupted"
    assert 0.2 * 10_000_000 < partial.info.steps < 10_000_000
    assert len(partial) == partial.info.steps // 1000 + 1


def test_an_interrupt_does_not_wait_for_the_conversion_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a hundred million states that would be half a minute."""

    def stop(fraction: float) -> None:
        if fraction > 0.2:
            raise KeyboardInterrupt

    heavy = ph.problems.heavy_top()
    whole = ph.solve(heavy, "imidm", dt=0.01, steps=1000)
    with monkeypatch.context() as here:
        here.setattr("polhode.results.convert.primary", lambda *given: pytest.fail("it waits"))
        with pytest.raises(KeyboardInterrupt) as caught:
            ph.solve(heavy, "imidm", dt=0.01, steps=1000, progress=stop)
    partial = caught.value.partial  # type: ignore[attr-defined]
    assert 200 < len(partial) < 1000
    for name in ("t", "quaternion", "momentum", "energy"):
        np.testing.assert_array_equal(getattr(partial, name), getattr(whole, name)[: len(partial)])
    np.testing.assert_array_equal(partial.last().quaternion, partial.quaternion[-1:])


def test_progress_function() -> None:
    fractions: list[float] = []
    ph.solve(FREE, "imidm", dt=0.01, steps=3_000_000, every=100_000, progress=fractions.append)
    assert len(fractions) > 2
    assert all(0 < x <= 1 for x in fractions)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_progress_bar_goes_to_stderr(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar only on request or on a terminal; never on stdout."""
    monkeypatch.setattr("polhode.results.progress.PATIENCE", -1.0)
    ph.solve(FREE, "imidm", dt=0.01, steps=1000)
    assert capfd.readouterr() == ("", "")
    ph.solve(FREE, "imidm", dt=0.01, steps=1000, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "imidm" in err
    assert "100%" in err

"""Ensembles on an NVIDIA GPU: `ph.ensemble(..., device="cuda")` and diffrax on the same GPU, to the same accuracy.

Ratios are of what lies on the card before and after, for both; those of our whole calls, from host memory to host
memory with all checks of what is given, stand beside them.
"""

from __future__ import annotations

import dataclasses
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from polhode._memo import MADE
from polhode.compile.batch import layout

from . import crowd_ours, crowd_rivals
from .crowd_clock import Runner, timed
from .crowds import QUANTILE, TARGETS, Crowd, free_bodies, heavy_tops

DATA_SHEET = {"H200": 34e12, "H100": 34e12, "A100": 9.7e12}
"""Double-precision operations per second without tensor cores, from NVIDIA's data sheets of these GPUs."""

METHODS = ("processed6(dmv10)", "taylor(8)", "taylor(12)", "taylor(16)")
FREE_GOAL = 100.0


def _row(crowd: Crowd, runner: Runner, setting: float, least: int) -> dict[str, Any]:
    """Bodies per second of whole calls, and the errors of the sample."""
    run = runner.run(crowd, setting)
    seconds, q = timed(run.call, least, 3.0)
    errors = crowd.errors(q)
    return {
        "method": runner.label, "setting": setting, "bodies": len(crowd), "bodies_per_second": len(crowd) / seconds,
        "error": float(np.quantile(errors, QUANTILE, method="higher")), "median": float(np.median(errors)),
    }  # fmt: skip


def climbed(crowd: Crowd, runner: Runner, settings: tuple[float, ...], until: float) -> dict[str, Any]:
    """Run settings from coarse to fine until the smallest error is reached or time is up; failures are kept as text."""
    found: dict[str, Any] = {"compile_seconds": None, "rows": []}
    try:
        began = time.perf_counter()
        runner.run(crowd, settings[0]).call()
        found["compile_seconds"] = time.perf_counter() - began
        for setting in settings:
            if time.perf_counter() > until:
                found["stopped"] = "no time left"
                break
            row = _row(crowd, runner, setting, 2)
            found["rows"].append(row)
            print(
                f"    {runner.label:18s} {setting:8.2g}  {row['error']:.1e}  {row['bodies_per_second']:.3g}/s",
                flush=True,
            )
            if row["error"] <= min(TARGETS):
                break
    except Exception:  # whatever fails in one tool, the others continue
        found["failed"] = traceback.format_exc()[-1500:]
        print(f"    {runner.label} failed: {found['failed'][-300:]}", flush=True)
    return found


def on_card(crowd: Crowd, name: str, setting: float) -> float:
    """Bodies per second with all data on the GPU before and after, as for diffrax; includes launches and waiting."""
    from numba import cuda

    task, counts = crowd_ours.prepared(crowd, name, setting)
    kernel = next(entry.value for key, entry in reversed(MADE.entries.items()) if key[0] == "cuda")
    given, order = dataclasses.replace(task, count=int(counts.max()), counts=counts).given()
    width = len(crowd)
    data = np.empty((layout.sizes(given).rows, layout.padded(width)))
    layout.lay_out(given, order, width, data)
    arrays = cuda.to_device(data), cuda.device_array((1, 7, width)), cuda.device_array(width, dtype=np.int64)

    def launched() -> None:
        kernel[-(-width // 128), 128](0.0, int(counts.max()), width, *arrays)
        cuda.synchronize()

    launched()
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        launched()
        seconds.append(time.perf_counter() - began)
    return len(crowd) / min(seconds)


def fastest(tools: dict[str, Any], target: float) -> dict[str, Any] | None:
    """The fastest run that reaches a target."""
    able = [row for tool in tools.values() for row in tool["rows"] if row["error"] <= target]
    return max(able, key=lambda row: row.get("on_card", row["bodies_per_second"]), default=None)


def _ours(crowd: Crowd, device: str, small: int, until: float) -> dict[str, Any]:
    runners = crowd_ours.runners(crowd, device)
    found = {}
    for runner in runners:
        if crowd.mgl is not None and runner.label not in METHODS:
            continue
        tried = climbed(crowd.first(small), runner, runner.settings[::2], until)
        large = {}
        for target in TARGETS:  # the whole ensemble with the coarsest sufficient setting
            row = next((row for row in tried["rows"] if row["error"] <= target), None)
            if row is not None and row["setting"] not in large and time.perf_counter() < until:
                run = runner.run(crowd, row["setting"])
                large[row["setting"]] = _row(crowd, runner, row["setting"], 3)
                large[row["setting"]]["flops"] = run.flops() if run.flops else None
                if device == "cuda":
                    large[row["setting"]]["on_card"] = on_card(crowd, runner.label, row["setting"])
        tried["rows"] = list(large.values()) or tried["rows"]
        found[runner.label] = tried
    return found


def _diffrax(crowd: Crowd, chunk: int, until: float) -> dict[str, Any]:
    found = {}
    for runner in crowd_rivals.diffrax(crowd, False, chunk, 1):
        found[runner.label] = climbed(crowd.first(chunk), runner, runner.settings[1::3], until)
    return found


def rivals(device: str, number: int, chunk: int, seconds: float, peak: float) -> dict[str, Any]:
    """Both tools on free bodies and tops within a time limit in seconds; the ratios of their throughputs."""
    began, found = time.perf_counter(), {}
    makers: tuple[Callable[[int], Crowd], ...] = (free_bodies, heavy_tops)
    for k, make in enumerate(makers):
        crowd = make(max(number, chunk))
        print(f"{crowd.name}: {number} bodies, diffrax in chunks of {chunk}", flush=True)
        ends = began + seconds * np.array([0.15, 0.4, 0.75, 1.0])[2 * k : 2 * k + 2]
        tools = {"polhode": _ours(crowd.first(number), device, min(number, 1 << 16), ends[0])}
        tools["diffrax"] = _diffrax(crowd, chunk, ends[1])
        table = []
        for target in TARGETS:
            ours, theirs = (fastest(tools[name], target) for name in ("polhode", "diffrax"))
            line: dict[str, Any] = {"error": target, "polhode": ours, "diffrax": theirs}
            if ours and ours.get("flops"):
                line["share_of_peak"] = ours["flops"] * ours.get("on_card", ours["bodies_per_second"]) / peak
            if ours and theirs:
                line["ratio"] = ours.get("on_card", ours["bodies_per_second"]) / theirs["bodies_per_second"]
                line["ratio_of_whole_calls"] = ours["bodies_per_second"] / theirs["bodies_per_second"]
            table.append(line)
            said = [
                f"{row['method']} {row.get('on_card', row['bodies_per_second']):.3g}/s" if row else "-"
                for row in (ours, theirs)
            ]
            by = f"{line['ratio']:.0f} times (target: {FREE_GOAL:.0f})" if "ratio" in line else "no ratio"
            share = f", {100 * line['share_of_peak']:.1f} % of peak" if "share_of_peak" in line else ""
            print(f"  {crowd.name} {target:.0e}: polhode {said[0]}, diffrax {said[1]}: {by}{share}", flush=True)
        found[crowd.name] = {"table": table, "tools": tools}
    return found

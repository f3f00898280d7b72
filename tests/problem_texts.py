"""Parts of problem files that several tests write."""

from __future__ import annotations

TOP = """
[body]
moments = [5.0, 5.0, 1.0]
[field]
name = "gravity"
mgl = 20.0
[start]
"""
"""A heavy top without its start, which follows."""

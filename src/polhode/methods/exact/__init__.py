"""Exact flows: the free body as a series, the Lagrange top."""

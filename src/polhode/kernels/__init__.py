"""Rotations, special functions, solvers, states and the loops over steps: pure functions on tuples of numbers."""

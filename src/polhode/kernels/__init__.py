"""Rotations, special functions, solvers, states and the loop over steps: pure functions on tuples of numbers."""

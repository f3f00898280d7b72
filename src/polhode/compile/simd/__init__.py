"""Vectors of doubles as a number type for numba."""

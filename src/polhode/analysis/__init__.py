"""Measurements: properties of methods, errors, costs, reference solutions."""

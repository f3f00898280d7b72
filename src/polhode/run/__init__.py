"""Runs: fixed steps, runs to a tolerance, exact solutions, steppers, gradients."""

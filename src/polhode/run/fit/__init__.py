"""Estimation of initial states, inertia and parameters from measurements."""

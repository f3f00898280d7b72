"""A generic body in N dimensions, for the tests of that space."""

import numpy as np

from polhode import ndim


def setup(n, seed=3):
    """A generic body, momentum and attitude; the angular velocity has spectral norm 1."""
    random = np.random.default_rng(seed)
    body = ndim.Body(random.uniform(0.5, 2, n))
    omega = random.normal(size=(n, n))
    omega -= omega.T
    X, R = np.linalg.qr(random.normal(size=(n, n)))
    return body, body.momentum(omega / np.linalg.norm(omega, 2)), X * np.sign(np.diag(R))

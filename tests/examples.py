"""Examples that several tests use."""

from scipy.spatial.transform import Rotation

import polhode as ph

TILTED = ph.Body.box(1, 2, 3, mass=6).turned(Rotation.from_rotvec([0.3, -0.7, 0.4])).about([0.1, 0.2, -0.4])

KEYWORDS = {
    "gravity": {"mgl": 2.0},
    "uniform_gravity": {"g": [0.3, 0.2, -2.0]},
    "dipole": {"moment": [0.3, -0.2, 0.5], "field": [0.4, 0.1, 0.9]},
    "rotating_dipole": {"moment": [0.3, -0.2, 0.5], "field": [0.4, 0.1, 0.9], "rate": 0.7},
    "soft_wall": {"attraction": 1.0, "repulsion": 0.001},
    "distant_centre": {"strength": 0.3},
    "gravity_gradient": {"mu": 2.0, "radius": 1.5, "phase": 0.2},
    "eccentric_gravity_gradient": {"mu": 2.0, "semi_major_axis": 1.5, "eccentricity": 0.4, "mean_anomaly": 0.3},
    "attitude_spring": {"target": [0.6, 0.0, 0.8, 0.0], "stiffness": 2.0},
    "linear_drag": {"coefficients": 0.2},
    "quadratic_drag": {"coefficients": [0.1, 0.2, 0.3]},
    "internal_damping": {"rate": 0.05},
    "viscous_core": {"strength": 0.05},
    "constant_torque": {"torque": [0.1, 0.2, -0.3], "frame": "space"},
    "thruster": {"torque": [0.3, 0.2, 0.1], "on": [[-1.0, 0.25], [0.5, 5.0]]},
    "tabulated": {"times": [-1, 0.25, 5], "torques": [[0, 0, 0], [0.3, 0.2, 0.1], [0, 0, 1]], "between": "cubic"},
    "gyrostat": {"momentum": [0.5, -0.3, 1.0], "motor": [0.1, 0.0, -0.2]},
    "tabulated_gyrostat": {"times": [-1, 0.25, 5], "momenta": [[0, 0, 0], [0.3, 0.2, 0.1], [0, 0, 1]]},
    "pd_control": {"target": [0.6, 0.0, 0.8, 0.0], "stiffness": 2.0, "damping": 0.3},
    "orbit_gravity_gradient": {"orbit": {"mu": 2.0, "periapsis": 0.9, "eccentricity": 1.3, "node": 0.4}},
    "residual_dipole": {"moment": [0.3, -0.2, 0.5], "orbit": {"mu": 2.0, "periapsis": 0.9, "eccentricity": 0.3},
                        "strength": 0.7, "tilt": 0.4, "rate": 0.6, "phase": 0.2},
    "radiation_pressure": {"facets": {"box": [1.0, 2.0, 3.0], "centre": [0.1, -0.2, 0.3]}, "pressure": 0.1,
                           "sun": [0.6, 0.3, -0.7], "specular": 0.3, "diffuse": 0.2},
    "facet_drag": {"facets": {"box": [1.0, 2.0, 3.0], "centre": [0.1, -0.2, 0.3]}, "density": 0.1,
                   "velocity": [0.6, 0.3, -0.7]},
}  # fmt: skip

SUMS = ("radiation_pressure", "facet_drag")
"""Fields that sum over rows of data: they have no Taylor series, and their arrays are those of all bodies."""


@ph.torque
def growing(omega, k):
    """A torque with which explicit steps blow up after some of them."""
    return (k * omega[0] ** 3, 0.0 * omega[1], 0.0 * omega[2])

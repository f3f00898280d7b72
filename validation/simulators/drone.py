"""Drones that hold their attitude with a controller sampled at 250 Hz, between samples of which the torque is held.

The controller reads a gyro with noise and the attitude, and asks for the torque -k I (2 e + d omega), with e the vector
part of the attitude error. Rotors answer with torques that are limited. Every drone has its own inertia, which the
controller knows to 5 %.

    python -m validation.simulators.drone
"""

from __future__ import annotations

import argparse

import numpy as np

import polhode as ph

MOMENTS = np.array([0.012, 0.013, 0.022])
SAMPLE, SUB_STEPS = 0.004, 4
STIFFNESS, DAMPING, LARGEST, GYRO_NOISE = 60.0, 0.2, 0.4, 0.01


def control(q: np.ndarray, gyro: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return the torques that turn the drones to the attitude 1 and stop them there, limited."""
    error = 2 * np.sign(q[:, :1]) * q[:, 1:]
    return np.clip(-STIFFNESS * moments * (error + DAMPING * gyro), -LARGEST, LARGEST)


def flown(number: int, seconds: float, method: str = "fem", seed: int = 9) -> np.ndarray:
    """Return the angle of each drone from the attitude it should hold, in radians, at every sample."""
    rng = np.random.default_rng(seed)
    moments = MOMENTS * rng.uniform(0.95, 1.05, (number, 3))
    q = rng.normal(size=(number, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    pi = rng.normal(size=(number, 3)) * 3.0 * moments
    stepper = ph.batch_stepper(moments, method, SAMPLE / SUB_STEPS)
    angles = []
    for _ in range(round(seconds / SAMPLE)):
        gyro = pi / moments + GYRO_NOISE * rng.normal(size=pi.shape)
        stepper.step(q, pi, control(q, gyro, MOMENTS), n=SUB_STEPS)
        angles.append(2 * np.arctan2(np.linalg.norm(q[:, 1:], axis=1), np.abs(q[:, 0])))
    return np.array(angles)


def main() -> None:
    """Print how far the drones are from their attitude after a while."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    angles = np.degrees(flown(given.number, given.seconds))
    print(
        f"{given.number} drones: {angles[0].mean():.1f} degrees from their attitude at the start; after "
        f"{given.seconds:g} s {angles[-1].mean():.3f} in the mean, {angles[-1].max():.3f} at most"
    )


if __name__ == "__main__":
    main()

"""Sampled-data control: controllers, and the actuators that they command."""

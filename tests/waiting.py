"""How long tests wait for other processes."""

PATIENCE = 300
"""Seconds after which a process that does not answer counts as hung: far more than a busy machine needs."""

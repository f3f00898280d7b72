"""Loops over many bodies."""

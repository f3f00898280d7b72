"""Loops over batches of bodies."""

"""Embedded pairs with an error estimate, and their step-size control."""

"""Pairs with an error estimate, and the control of their steps."""

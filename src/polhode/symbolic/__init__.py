"""Formulas as graphs: traced from a user's function, differentiated, written as source or as LaTeX."""

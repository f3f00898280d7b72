"""Formulas as graphs: traced from a user function, differentiated, written as source or as LaTeX."""

"""Taylor series of the solution of a differential equation, from the graph of its right-hand side."""

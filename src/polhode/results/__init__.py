"""Results of runs, and how they are recorded."""

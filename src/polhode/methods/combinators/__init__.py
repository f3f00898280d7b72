"""Methods made of methods."""

"""Kernels as source text of other languages: read from their Python source, specialised, cleaned and printed."""

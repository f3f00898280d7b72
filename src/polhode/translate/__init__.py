"""Kernels as source code in other languages: read from their Python source, specialised, cleaned and printed."""

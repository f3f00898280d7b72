"""Families of methods, one file each, with their papers."""

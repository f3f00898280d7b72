"""Printers of translated functions, one for each language."""

"""One family of methods a file, with its paper."""

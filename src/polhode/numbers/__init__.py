"""Number types, and what a kernel may do with a number of any of them."""

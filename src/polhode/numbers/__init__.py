"""Number types and the operations that kernels may use on all of them."""

"""Compilation of kernels: for one body, for batches in SIMD lanes, for GPUs, for JAX."""

"""How kernels become compiled code: for one body, for batches in SIMD lanes, for GPUs, for JAX."""

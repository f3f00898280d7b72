"""Trajectories and ensembles in files: Zarr and NetCDF, checksums, locks, checkpoints."""

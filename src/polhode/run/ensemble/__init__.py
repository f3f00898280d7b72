"""Ensembles: batches, shards, clusters."""

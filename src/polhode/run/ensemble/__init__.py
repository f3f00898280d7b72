"""Many bodies at once: batches, shards, clusters."""

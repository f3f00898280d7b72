"""What a run returns, and how it is recorded."""

"""How a kernel becomes a runnable loop."""

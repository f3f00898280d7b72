"""Shared set-up: one compile cache for the whole session, emptied never, keyed by content."""

import matplotlib

matplotlib.use("Agg")

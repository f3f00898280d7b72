"""Shared set-up. Compiled code is kept in the ordinary cache folder, so that a second run compiles next to nothing."""

import matplotlib

matplotlib.use("Agg")

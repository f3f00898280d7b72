"""Shared set-up. Compiled code is kept in the ordinary cache folder, so that a second run compiles next to nothing."""

import hypothesis
import matplotlib

matplotlib.use("Agg")

# The same examples every time, and no clock: a test depends neither on the load of the machine nor on earlier runs.
# `--hypothesis-profile random` (the nightly run) looks for new ones.
hypothesis.settings.register_profile("same", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("random", deadline=None, print_blob=True)
hypothesis.settings.load_profile("same")

"""Bodies, the fields that act on them, problems, and observers of the motion."""

"""Parts of the tolerance race: the cases, the contenders, the clock, the report."""

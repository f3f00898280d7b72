"""Parts of the comparison benchmarks: cases and ensembles, contenders, timing, reports."""

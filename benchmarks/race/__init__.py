"""Parts of the races: the cases and crowds, the contenders, the clocks, the reports."""

"""Results in the formats of other programs; `formats` is the table of them."""

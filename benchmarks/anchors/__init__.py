"""Hand-written codes for one ensemble, heavy tops, against which `ph.ensemble` is measured."""

"""Functions of the state that a run evaluates: events, observables, statistics."""

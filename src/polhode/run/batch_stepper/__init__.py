"""A stepper of many bodies over the arrays of another program."""

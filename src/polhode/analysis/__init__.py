"""What can be measured: properties, errors, costs, reference solutions."""

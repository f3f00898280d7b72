"""Coefficients: Butcher tableaus, compositions, series."""

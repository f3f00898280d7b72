"""Combinators: functions that build methods from methods."""

"""Limits of values: evaluated groups and their tally come in, and lower and upper limits go out."""

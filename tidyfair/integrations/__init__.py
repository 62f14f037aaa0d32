"""Metrics in the form in which other libraries want them."""

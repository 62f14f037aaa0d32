"""Adapters of metrics for other libraries."""

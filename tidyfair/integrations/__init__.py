"""Adapters of metrics for other libraries, each a module of its own, which reads that library only."""

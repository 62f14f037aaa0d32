"""The catalogue of metrics."""

"""Values over time: monitors that may be looked at at any time, and comparisons of periods."""

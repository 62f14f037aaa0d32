"""Tests, gates, power, drift and comparisons of models: metrics come in, and answers about them go out."""

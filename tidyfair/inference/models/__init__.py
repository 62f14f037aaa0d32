"""Comparisons of models, on the same rows, over folds, and along a frontier."""

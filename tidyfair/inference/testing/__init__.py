"""Tests of differences between groups, and the sizes of samples that they need."""

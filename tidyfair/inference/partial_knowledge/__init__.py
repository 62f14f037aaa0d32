"""Estimates and bounds for few rows, for people whose group is only probable, and for missing truths."""

# pyright: reportUnusedImport=false
from tidyfair.inference.partial_knowledge.small_groups import worst_groups

"""What can be said of few rows, of people whose group is only probable, and of truth that is missing."""

# pyright: reportUnusedImport=false
from tidyfair.inference.partial_knowledge.small_groups import worst_groups

"""Comparisons of models, on the same rows, over folds, and along a frontier."""

# pyright: reportUnusedImport=false
from tidyfair.inference.models.frontier import influences_of
from tidyfair.inference.models.model_comparison import (
    COMPARISON_CALL, ModelComparison, PairedModels, REFUSED_OF_MODELS, compare_models, paired_with_each,
)  # fmt: skip

"""Comparisons of models, on the same rows and over folds."""

# pyright: reportUnusedImport=false
from tidyfair.inference.models.many_models import influences_of
from tidyfair.inference.models.model_choice import gains, is_on_frontier, with_verdicts
from tidyfair.inference.models.model_comparison import (
    COMPARISON_CALL, ModelComparison, PairedModels, REFUSED_OF_MODELS, compare_models, paired_with_each,
)  # fmt: skip

"""The column names of results, which are reserved."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from tidyfair.errors import ColumnError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tidyfair.specs.columns import Column

__all__: list[str] = []

RESERVED = frozenset({
    # the subject of a row
    ".metric", ".by", ".group", ".other", ".level", ".estimator", ".threshold", ".top_k", ".top_fraction",
    ".eval_time", ".quantile_level",
    ".period", ".before", ".look", ".subgroup", ".depth", ".error", ".to", ".moved", ".bin", ".truth", ".predicted",
    ".model_one", ".model_other",
    # values
    ".estimate", ".overall", ".rest", ".one", ".raw", ".mean", ".quantile", ".difference", ".change", ".probability",
    ".estimate_other", ".estimate_before", ".crude", ".adjusted", ".violation", ".smallest", ".mean_score",
    ".event_rate", ".lift", ".percent_tested", ".percent_found", ".missing_if_positive", ".missing_if_negative",
    ".additive", ".estimate_reference", ".reference", ".scale", ".disparity",
    ".ratio", ".ratio_lower", ".ratio_upper", ".odds_ratio", ".odds_ratio_lower", ".odds_ratio_upper",
    ".epsilon", ".compared_with", ".becomes", ".lowest", ".highest",
    # how sure they are
    ".lower", ".upper", ".lower_bound", ".upper_bound", ".disparity_lower_bound", ".disparity_upper_bound",
    ".disparity_lower", ".disparity_upper", ".std_error", ".method", ".replicates_lost", ".error_bound", ".e_value",
    ".expected",
    ".expected_lower", ".expected_upper", ".hypothesis", ".p_value", ".p_adjusted", ".p_homogeneity", ".p_worst",
    ".p_equal_odds",
    ".adjustment", ".power", ".confidence", ".limit", ".verdict",
    ".test", ".deviations", ".flip_flop", ".spread",
    # how many rows they are of
    ".n", ".n_other", ".n_events", ".n_expected", ".denominator", ".effective_n", ".rows", ".groups", ".strata",
    ".share", ".weight", ".vpc", ".interaction_share", ".searched", ".not_searched", ".min_n", ".shortfall",
    ".numerator", ".numerator_reference", ".denominator_reference", ".unknown",
    # what explains them
    ".status", ".pattern", ".worst", ".group_min", ".group_max", ".base_metric", ".metrics_left_out",
    ".groups_left_out", ".note",
})  # fmt: skip
"""Names of the columns of results, of metrics as of tests, gates, curves and comparisons."""


def refuse_reserved(role: str, columns: Iterable[Column]) -> None:
    """Refuse keys whose names are reserved for columns of results."""
    for column in columns:
        if column.name in RESERVED:
            msg = f"`{role}`: {column.name!r} is a reserved column of results; rename your column."
            raise ColumnError(msg)


def key_columns(results: pl.DataFrame) -> list[str]:
    """The columns of outer groups in results, which come before all others."""
    return list(takewhile(lambda name: name not in RESERVED, results.columns))

"""Individual fairness: similar treatment of similar people."""

from __future__ import annotations

from collections.abc import Iterable

from tidyfair.calling import Metric
from tidyfair.errors import ArgumentError, Status
from tidyfair.metrics.define import defined, distinct_columns
from tidyfair.specs import ColumnLike, are_columns, makes_metric, text, whole
from tidyfair.specs.formulas import Expr, Neighborhood, Number, Rate, Statistic

__all__ = ["consistency"]


def other_labels(estimate: Expr) -> Expr:
    """Share of the neighbors of a row that have another label."""
    return estimate


def consistent(other_labels: Number, selected: Number, unselected: Number) -> Rate:
    """Mean share of the nearest neighbors of a row, itself among them, that have the same label."""
    count = selected + unselected
    return count - other_labels, count


@makes_metric('["age", "income"]')
def consistency(features: Iterable[ColumnLike], *, n_neighbors: int = 5, name: str = "consistency") -> Metric:
    """Make a metric of consistency: 1 if similar people always get the same label, less where neighbors differ.

    It is the mean, over rows, of the share of the `n_neighbors` nearest rows by `features` (including the row itself)
    that have the same predicted label; rows at equal distance share the remaining ranks, so the order of rows does not
    matter. Neighbours are searched within each outer group. Null if it has fewer rows. There is no interval, because a
    row is a neighbor of several others, which then vary together.

    Args:
        features: Columns of numbers. Distances are Euclidean, so bring the columns to a common scale first.
        n_neighbors: The number of neighbors.
        name: The name in `.metric`.

    Raises:
        ArgumentError: If `features` or `n_neighbors` is invalid.
        ColumnError: At the call, for features that are not numeric or have missing values.

    Zemel et al. (2013), Learning fair representations. For the consistency of true labels, give their column as the
    estimate.

    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [20, 21, 60, 61], "hired": [1, 1, 1, 0]})
    >>> consistency(["age"], n_neighbors=2)(people, estimate="hired")[".estimate"][0]
    0.75
    """
    if not are_columns(features):
        msg = f"consistency() takes a list of features, such as `consistency([{features!r}])`."
        raise ArgumentError(msg)
    text("name", name)
    columns = distinct_columns(features, "features", "consistency() needs a list of distinct features")
    nearest = whole("n_neighbors", n_neighbors, 1, of="consistency()")
    term = Statistic(other_labels, neighborhood=Neighborhood(columns, nearest))
    settings = {"undefined": Status.TOO_FEW_ROWS}
    return defined(consistent, "class", "maximize", (0, 1), settings, name=name, terms={"other_labels": term})

"""Labels of several annotators: their majority, their shares, and how far they agree.

A row of the metrics is a label that an annotator gave to an item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl

from tidyfair.calling import Metric
from tidyfair.errors import ArgumentError, ColumnError, Status, WeightError, in_short, listed
from tidyfair.metrics.define import defined, distinct_columns
from tidyfair.specs import (
    Column,
    ColumnLike,
    are_columns,
    is_list,
    makes_metric,
    names_of,
    plain,
    refuse_unknown_settings,
    text,
)
from tidyfair.specs.formulas import Expr, Lists, Number, Statistic
from tidyfair.tallies import ListedRows

__all__ = ["fleiss_kap", "krippendorff_alpha", "majority_label", "soft_label"]


_WITHOUT_SINGLE = '`data.filter(pl.col("label").count().over("item") > 1)`'
"""A way to leave out items with a single label."""


# Columns made of the labels of several annotators


@refuse_unknown_settings
def majority_label(labels: ColumnLike | Iterable[ColumnLike], *, item: ColumnLike | None = None) -> pl.Expr:
    """The label that most annotators gave, as a column; null where two labels are given most often, or none is.

    Args:
        labels: Columns with a label by each annotator; or one column of labels, of rows for each item and annotator.
        item: Of such rows, the column that is the same in all rows of an item; rows where it is null get no label.

    Raises:
        ArgumentError: If a single column is given without `item`, or several with it.

    >>> votes = pl.DataFrame({"ann": ["a", "a"], "bo": ["b", "b"], "cy": ["b", None]})
    >>> votes.select(majority_label(["ann", "bo", "cy"])).to_series().to_list()
    ['b', None]
    """
    columns, items = _columns_of_labels("majority_label()", labels, item)
    name = f"majority of {', '.join(names_of(columns))}"
    if items is None:
        return _most_frequent([column.expr for column in columns]).alias(name)
    modes = _without_nan(columns[0].expr).drop_nulls().mode()
    label = pl.when(modes.len() == 1).then(modes.first())
    return _value_of_item(label, items).alias(name)


def _most_frequent(votes: Sequence[pl.Expr]) -> pl.Expr:
    """The most frequent vote of a row; null where several are. It reads each row alone, so that engines can use it."""
    counts = pl.concat_list(
        pl.when(~_is_nan(vote)).then(pl.sum_horizontal(vote == other for other in votes)).otherwise(0) for vote in votes
    )
    most = counts.list.max()
    # the label has the highest counts, as many as these say; if the next count is no lower, another label has it too
    next_count = counts.list.sort(descending=True).list.get(most, null_on_oob=True).fill_null(0)
    return pl.when(next_count < most).then(pl.concat_list(votes).list.get(counts.list.arg_max()))


@refuse_unknown_settings
def soft_label(
    labels: ColumnLike | Iterable[ColumnLike], pos_label: object, *, item: ColumnLike | None = None
) -> pl.Expr:
    """The share of annotators who gave a label, as a column; null where no label is given.

    Use it as the truth of metrics of numbers: `mse` of scores is then the Brier score with soft labels.

    Args:
        labels: As for `majority_label`.
        pos_label: The label that is counted.
        item: As for `majority_label`.

    Raises:
        ArgumentError: As for `majority_label`; or if `pos_label` is no label.

    >>> votes = pl.DataFrame({"ann": ["a", "a"], "bo": ["b", "b"], "cy": ["b", None]})
    >>> votes.select(soft_label(["ann", "bo", "cy"], "a").round(2)).to_series().to_list()
    [0.33, 0.5]
    """
    columns, items = _columns_of_labels("soft_label()", labels, item)
    name = f"share of {pos_label} in {', '.join(names_of(columns))}"
    label = _literal(pos_label)
    is_label = [(_without_nan(column.expr) == label).cast(pl.Float64) for column in columns]
    share = pl.mean_horizontal(is_label) if items is None else _value_of_item(is_label[0].mean(), items)
    return share.alias(name)


def _literal(label: object) -> pl.Expr:
    """A label as an expression."""
    is_missing = label is None or (isinstance(label, float) and math.isnan(label))
    if not is_missing and not is_list(label):
        with suppress(TypeError):
            return pl.lit(plain(label))
    msg = f'soft_label(): `pos_label` is the label that is counted, such as "yes" or 1, not {in_short(label)}.'
    raise ArgumentError(msg)


def _value_of_item(value: pl.Expr, item: Column) -> pl.Expr:
    """A value of all rows of an item; null in rows without one."""
    items = _without_nan(item.expr)
    return pl.when(items.is_not_null()).then(value.over(items))


def _without_nan(values: pl.Expr) -> pl.Expr:
    """Values of any dtype, null where they are NaN."""
    return pl.when(~_is_nan(values)).then(values)


def _is_nan(values: pl.Expr) -> pl.Expr:
    # by their hash, because `is_nan` refuses text, and the dtype is not known here
    hashes = [pl.lit(math.nan, dtype=dtype).hash() for dtype in (pl.Float32, pl.Float64)]
    return pl.any_horizontal(values.hash() == nan for nan in hashes)


def _columns_of_labels(caller: str, labels: object, item: object) -> tuple[tuple[Column, ...], Column | None]:
    """The columns of labels, and that of items where there is a row for each label."""
    several = are_columns(labels)
    columns = tuple(Column.of(label, "labels") for label in labels) if several else (Column.of(labels, "labels"),)
    if len(columns) < 2 and item is None:
        msg = (
            f'{caller} takes the columns of several annotators, such as `["ann", "bo"]`; or one column of labels with '
            "the column of items: `item=`."
        )
        raise ArgumentError(msg)
    if several and item is not None:
        msg = f"{caller} takes several columns of labels, or one with `item`, not both."
        raise ArgumentError(msg)
    return columns, None if item is None else Column.of(item, "item")


# Agreement


def agreeing_shares(lists: ListedRows) -> np.ndarray[Any, Any]:
    """The share of the other labels of an item that are equal to a label."""
    label, item = lists.columns["label"], lists.list_of_row
    code = item * (int(label.max()) + 1) + label
    _, group, count = np.unique(code, return_inverse=True, return_counts=True)
    return (count[group] - 1) / (lists.to_rows(lists.sizes) - 1)


def shares_of_equal_numbers(lists: ListedRows) -> np.ndarray[Any, Any]:
    """The shares of items that all have the same number of labels, two or more."""
    for group in np.unique(lists.group):
        sizes = np.unique(lists.sizes[lists.group == group])
        if len(sizes) > 1 or sizes[0] < 2:
            way_out = "take krippendorff_alpha" if sizes[0] > 1 else f"leave out items with fewer, by {_WITHOUT_SINGLE}"
            msg = (
                f"fleiss_kap() needs the same number of labels for each item, two or more, but items have "
                f"{listed(sizes.tolist())}; {way_out}."
            )
            raise ColumnError(msg)
    return agreeing_shares(lists)


def shares_of_unequal_numbers(lists: ListedRows) -> np.ndarray[Any, Any]:
    """The shares of items that have two labels or more."""
    if lists.weighted:
        msg = "krippendorff_alpha() counts labels alike; leave out `case_weights`."
        raise WeightError(msg)
    if (lists.sizes < 2).any():
        alone = int((lists.sizes < 2).sum())
        msg = (
            f"krippendorff_alpha(): {alone} of {len(lists.sizes)} items {'has' if alone == 1 else 'have'} a single "
            f"label, which agrees with no other; leave these out, by {_WITHOUT_SINGLE}."
        )
        raise ColumnError(msg)
    return agreeing_shares(lists)


def label_column(estimate: Expr) -> Expr:
    """A quantity that depends on the labels of an item."""
    return estimate


def kappa_of_fleiss(agreeing: Number, selected: Number) -> Number:
    """Agreement beyond what chance would give with the observed shares of labels, drawn with replacement."""
    total = selected.sum(axis=-1)
    by_chance = ((selected / total[..., None]) ** 2).sum(axis=-1)
    return np.where(by_chance < 1, (agreeing[..., 0] / total - by_chance) / (1 - by_chance), np.nan)


def alpha_of_krippendorff(agreeing: Number, selected: Number) -> Number:
    """Agreement beyond what chance would give with the observed labels, drawn without replacement."""
    total = selected.sum(axis=-1)
    by_chance = (selected * (selected - 1)).sum(axis=-1) / (total * (total - 1))
    return np.where(by_chance < 1, (agreeing[..., 0] / total - by_chance) / (1 - by_chance), np.nan)


@makes_metric('"item"')
def fleiss_kap(item: ColumnLike | Iterable[ColumnLike], *, name: str = "fleiss_kap") -> Metric:
    """Make a metric of the agreement of annotators beyond chance: Fleiss's kappa, for as many labels of each item.

    Rows are labels by an annotator of an item, the label is the `estimate`, and no truth is read. 1 is perfect
    agreement, 0 that of chance. Groups that are compared must be those of whole items; for the agreement among the
    annotators of each group, add the column of the group to `item`. Null where all labels are the same.

    Args:
        item: The column, or columns, whose values are the same in all rows of an item.
        name: The name in `.metric`.

    Raises:
        ArgumentError: If an argument is invalid; or at the call, for an interval without `cluster`, or a `pos_label`
            among more than two labels.
        ColumnError: At the call, for items with different numbers of labels, or that a group divides.

    Fleiss (1971), Measuring nominal scale agreement among many raters.

    >>> votes = pl.DataFrame({"item": [1, 1, 2, 2, 3, 3], "label": ["a", "a", "b", "b", "a", "b"]})
    >>> fleiss_kap("item")(votes, estimate="label", pos_label="a")[".estimate"].round(3)[0]
    0.333
    """
    return _agreement("fleiss_kap()", kappa_of_fleiss, shares_of_equal_numbers, item, name)


@makes_metric('"item"')
def krippendorff_alpha(item: ColumnLike | Iterable[ColumnLike], *, name: str = "krippendorff_alpha") -> Metric:
    """Make a metric of the agreement of annotators beyond chance: Krippendorff's alpha for nominal labels.

    As `fleiss_kap`, but items may have different numbers of labels, and it allows for few of them.

    Args:
        item: The column, or columns, whose values are the same in all rows of an item.
        name: The name in `.metric`.

    Raises:
        ArgumentError: As for `fleiss_kap`.
        ColumnError: At the call, for items with a single label, or that a group divides.

    Krippendorff (2004), Content analysis.

    >>> votes = pl.DataFrame({"item": [1, 1, 2, 2, 3, 3], "label": ["a", "a", "b", "b", "a", "b"]})
    >>> krippendorff_alpha("item")(votes, estimate="label", pos_label="a")[".estimate"].round(3)[0]
    0.444
    """
    return _agreement("krippendorff_alpha()", alpha_of_krippendorff, shares_of_unequal_numbers, item, name)


def _agreement(
    caller: str, formula: Callable[..., Number], quantity: Callable[..., Any], item: object, name: str
) -> Metric:
    """A metric of agreement within items."""
    wanted = f'{caller} needs the column of items, such as "item", or several'
    columns = distinct_columns(item, "item", wanted)
    lists = Lists(caller.removesuffix("()"), columns, quantity, undivided=True, role="item")
    terms = {"agreeing": Statistic(label_column, alias="agreeing", lists=lists)}
    settings = {"over_levels": True, "undefined": Status.CONSTANT}
    ends = (-math.inf, 1) if quantity is shares_of_unequal_numbers else (-1, 1)
    return defined(formula, "class", "maximize", ends, settings, name=text("name", name), terms=terms)

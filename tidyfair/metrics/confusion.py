"""Confusion tables as tidy frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, overload

import polars as pl

from tidyfair.calling import metric_set
from tidyfair.errors import ArgumentError, ColumnError, LabelError, Status, listed, nearest
from tidyfair.evaluation import Labels, check_label, read_labels
from tidyfair.metrics.classification import (
    accuracy,
    bal_accuracy,
    detection_prevalence,
    f_meas,
    instances,
    j_index,
    kap,
    mcc,
    npv,
    ppv,
    precision,
    recall,
    sens,
    spec,
)
from tidyfair.specs import ColumnLike, CountOptions, Frame, Options, refuse_unknown_keywords
from tidyfair.tallies import ESTIMATE, TRUTH, PolarsFrame, Tally, from_arrays, open_frame

__all__ = ["conf_mat", "conf_mat_summary"]

conf_mat_summary = metric_set(
    accuracy, kap, sens, spec, ppv, npv, mcc, j_index, bal_accuracy, detection_prevalence, precision, recall, f_meas
)
"""The metrics that yardstick's `summary()` of a table has, in its order, as one set that is called like any other.

`get_metrics("class")` has all of labels.
"""


@overload
def conf_mat(
    data: PolarsFrame,
    truth: ColumnLike,
    estimate: ColumnLike | None = None,
    *,
    pos_label: object = None,
    labels: Sequence[object] | None = None,
    suppress_below: int | None = None,
    **counting: Unpack[CountOptions],
) -> pl.DataFrame: ...
@overload
def conf_mat(
    data: object,
    truth: ColumnLike,
    estimate: ColumnLike | None = None,
    *,
    pos_label: object = None,
    labels: Sequence[object] | None = None,
    suppress_below: int | None = None,
    **counting: Unpack[CountOptions],
) -> Frame: ...
@refuse_unknown_keywords
def conf_mat(
    data: object,
    truth: ColumnLike,
    estimate: ColumnLike | None = None,
    *,
    pos_label: object = None,
    labels: Sequence[object] | None = None,
    suppress_below: int | None = None,
    **counting: Unpack[CountOptions],
) -> Frame:
    """Count rows by true and predicted label, for each outer group.

    Args:
        data: A frame, grouped or not, as a metric takes it.
        truth: Column of the true labels.
        estimate: Column of the predicted labels; or `probs` with `threshold`.
        pos_label: The label that a threshold selects; not needed for tables of labels.
        labels: All labels in order, if the data do not declare them.
        suppress_below: Tables with a count from 1 to below this number have none, and with them others that would give
            it away; `.status` says which are `suppressed`.
        counting: `group_by`, `case_weights`, `probs` and `threshold`, as in a call of a metric;
            a list of thresholds adds `.threshold`.

    Returns:
        A frame of the caller's kind: the outer keys, `.truth`, `.predicted`, `.n` rows and, with case weights,
        `.weight`. All pairs of labels are listed in level order, even if they do not occur; rows without a label are
        not counted.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"truth": [1, 0, 1], "guess": [1, 1, 1]})
    >>> conf_mat(seen, "truth", "guess").rows()
    [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 2)]
    """
    if counting.get("judged") is not None:
        msg = "`judged`: conf_mat counts rows by the labels of people; leave `judged` out."
        raise ArgumentError(msg)
    tally = instances.tally(data, truth, estimate, suppress_below=suppress_below, **counting)
    cut = tally.cut
    for role, column in (("truth", tally.truth), ("estimate", tally.estimate or tally.cut)):
        if column is None:
            msg = f"conf_mat needs true and predicted labels; `{role}=` is missing."
            raise ColumnError(msg)
    of_table = _labels_of_table(tally, labels, pos_label)
    tally = tally.on_sides().at_each_cut()
    outer = tally.names([key.column for key in tally.outer])
    counts = {"n": ".n", "w": ".weight"} if tally.weights else {"n": ".n"}
    cells = of_table.encode(tally).group_by(*outer, TRUTH, ESTIMATE).agg(pl.col(*counts).sum())
    levels = pl.DataFrame({TRUTH: range(len(of_table.values))}, schema={TRUTH: pl.Int32})
    every = levels.join(levels.rename({TRUTH: ESTIMATE}), how="cross")
    if outer:
        every = cells.select(outer).unique().join(every, how="cross")
    table = every.join(cells, on=[*outer, TRUTH, ESTIMATE], how="left", nulls_equal=True)
    table = table.sort(*outer, TRUTH, ESTIMATE, nulls_last=True).with_columns(pl.col(*counts).fill_null(0))
    shown = [key.column.name for key in tally.outer]
    if cut and cut.several:
        # the last outer key is the cut
        shown[-1] = f".{cut.option}"
    columns = {name: table[key] for name, key in zip(shown, outer, strict=True)}
    values = from_arrays({"labels": list(of_table.values)})["labels"]
    columns[".truth"] = values[table[TRUTH]]
    columns[".predicted"] = values[table[ESTIMATE]]
    for count, name in counts.items():
        columns[name] = table[count]
    if tally.suppression is not None:
        keys = [table[name] for name, key in zip(outer, tally.outer, strict=True) if key.role == "outer"]
        is_hidden = tally.suppression.is_hidden(keys, len(table), None, is_outer=bool(keys))
        columns |= {name: columns[name].set(is_hidden, None) for name in counts.values()}
        status = pl.when(is_hidden).then(pl.lit(Status.SUPPRESSED.value)).otherwise(pl.lit(Status.OK.value))
        columns[".status"] = pl.select(status).to_series()
    result = pl.DataFrame(columns)
    return open_frame(data, counting.get("group_by")).restore(result)


def _labels_of_table(tally: Tally, labels: Sequence[object] | None, pos_label: object) -> Labels:
    """The labels of a table, without an event unless a threshold selects one."""
    if tally.cut is None:
        of_table = read_labels(tally, Options(labels=labels, estimator="macro"))
    else:
        of_table = read_labels(tally, Options(labels=labels, pos_label=pos_label))
    check_label(pos_label)
    if pos_label is not None and pos_label not in of_table.values:
        hint = nearest(pos_label, of_table.values)
        msg = f"`pos_label`: {pos_label!r} is not among the labels {listed(of_table.values)}.{hint}"
        raise LabelError(msg)
    return of_table

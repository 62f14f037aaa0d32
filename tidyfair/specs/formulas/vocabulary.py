"""The words of formulas: what metrics of each kind read, and the statistics that their parameters name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

Expr: TypeAlias = pl.Expr
Number: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
"""A statistic of groups (and labels), as an array; formulas run on plain floats as well."""
Rate: TypeAlias = "tuple[Number, Number]"
"""Numerator and denominator; a denominator of zero makes the value null."""
ExprRate: TypeAlias = tuple[pl.Expr, pl.Expr]
"""Numerator and denominator of a formula over rows."""
Sums: TypeAlias = "Mapping[str, Number]"
"""Statistics by name."""
Kind: TypeAlias = Literal["class", "prob", "numeric", "survival", "interval"]
Counts: TypeAlias = Literal["instances", "positives", "smaller_class"]
Given: TypeAlias = Literal["nothing", "truth", "estimate"]

CONTENT = {
    "class": "labels", "prob": "labels and scores", "numeric": "numbers", "survival": "survival times",
    "interval": "intervals",
}  # fmt: skip
"""The columns that metrics of each kind read."""
SEVERAL_COLUMNS = frozenset({"survival", "interval"})
"""The kinds of metrics whose truth or predictions are no single column."""
WEIGHTS = ("sample_weight", "case_weights", "weight", "weights")
"""The arguments by which functions of arrays take weights."""
OVERALL, THE_REST = "overall_", "rest_"
"""Prefixes of a statistic of all groups together, and of all other groups."""
ROWS, SQUARES = "_rows", "_squares"
"""Suffixes of a statistic counted in rows, and in squared case weights; without one, in case weights."""

BOTH, SCORED = frozenset({"truth", "estimate"}), frozenset({"truth", "probs"})
_TRUTH, _ESTIMATE, NO_COLUMNS = frozenset({"truth"}), frozenset({"estimate"}), frozenset[str]()
STATISTICS: dict[str, frozenset[str]] = {
    "tp": BOTH, "fp": BOTH, "fn": BOTH, "tn": BOTH, "absolute_steps": BOTH, "squared_steps": BOTH,
    "positives": _TRUTH, "negatives": _TRUTH, "selected": _ESTIMATE, "unselected": _ESTIMATE,
    "instances": NO_COLUMNS, "rank": NO_COLUMNS, "label_count": NO_COLUMNS, "row_weight": NO_COLUMNS,
    "count": NO_COLUMNS,
}  # fmt: skip
"""The statistics of one label against the rest, and the columns without which a row does not count in them."""

STEPS = ("absolute_steps", "squared_steps")
"""The distance of truth and estimate in an order of labels, for weighted kappa."""
ORDER_STATISTICS = {*STEPS, "rank"}

SUMS: dict[Kind, dict[str, frozenset[str]]] = {
    "class": STATISTICS,
    "prob": {"positives": SCORED, "negatives": SCORED, "instances": NO_COLUMNS, "rank": NO_COLUMNS},
    "numeric": {
        "instances": NO_COLUMNS, "weight_squares": NO_COLUMNS,
        "truth_mean": _TRUTH, "truth_variation": _TRUTH, "truth_minimum": _TRUTH, "truth_maximum": _TRUTH,
        "estimate_mean": _ESTIMATE, "estimate_variation": _ESTIMATE, "covariation": BOTH,
    },
    "survival": {"instances": NO_COLUMNS},
    "interval": {"instances": NO_COLUMNS},
}  # fmt: skip
"""The statistics of a group that are sums, and so merge. A metric's own statistics come on top."""

ROW_COLUMNS: dict[Kind, dict[str, frozenset[str]]] = {
    "class": {},
    "prob": dict.fromkeys(
        ["score", "hits", "false_alarms", "hit_squares", "false_alarm_squares", "percentile"], SCORED
    ),
    "numeric": {"truth": _TRUTH, "estimate": _ESTIMATE, "weight": NO_COLUMNS, "weighted": NO_COLUMNS},
    "survival": {},
    "interval": {},
}
"""The columns of formulas over rows. Scores come as their distinct values, falling, with the weight of the rows with
the event (`hits`) and without it (`false_alarms`), the sums of squared weights, and the `percentile` of the score: the
share of its outer group at or below it. Numbers come row by row, as they stand in the data."""

ROLES: dict[str, frozenset[str]] = {
    "truth": _TRUTH, "estimate": _ESTIMATE, "score": frozenset({"probs"}),
    "time": _TRUTH, "event": _TRUTH, "event_weight": _TRUTH, "censoring_weight": _TRUTH,
    "survival": frozenset({"probs"}), "eval_time": NO_COLUMNS,
    "lower": _ESTIMATE, "upper": _ESTIMATE, "level": NO_COLUMNS, "quantile": _ESTIMATE, "quantile_level": NO_COLUMNS,
}  # fmt: skip
"""The parameters of quantities of a row, and of functions of rows of survival times, by the column of the call."""
AT_POINTS = frozenset({"survival", "censoring_weight", "eval_time", "quantile", "quantile_level"})
"""Those that differ between evaluation times, or levels of quantiles."""
OF_INTERVAL = frozenset({"lower", "upper", "level"})
"""Those of a prediction interval."""
OF_CENSORING = frozenset({"event_weight", "censoring_weight"})
"""The censoring weights of a row: just before its event, and at an evaluation time."""

WHEN_COMPLETE = {
    "positives": ("tp", "fn"), "negatives": ("fp", "tn"), "selected": ("tp", "fp"), "unselected": ("fn", "tn"),
}  # fmt: skip
"""Margins as sums of cells, for formulas that read both truth and estimate, and so need rows with both."""

OTHER_SIDE = {
    "tp": "tn", "tn": "tp", "fp": "fn", "fn": "fp",
    "positives": "negatives", "negatives": "positives", "selected": "unselected", "unselected": "selected",
}  # fmt: skip
"""The statistics of the event when the rest is the event."""


def unprefixed(name: str) -> str:
    """A statistic without the prefix of other groups."""
    return name.removeprefix(OVERALL if name.startswith(OVERALL) else THE_REST)

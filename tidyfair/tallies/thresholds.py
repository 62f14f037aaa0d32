"""Decisions from scores: thresholds, one or many, for all rows or by group, and selection of the best-scored rows."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, cast, overload

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, advice, in_short, listed
from tidyfair.specs import (
    CUT_OPTIONS,
    Column,
    ColumnLike,
    OperatingPoint,
    is_list,
    names_of,
    refuse_unknown_settings,
    value_at,
)
from tidyfair.tallies.arrays import ARRAY, from_arrays
from tidyfair.tallies.censoring import checked_weights
from tidyfair.tallies.key_encoding import Levels
from tidyfair.tallies.source import FREQUENCY, WEIGHT, open_frame

__all__ = ["sigmoid"]

TRUTH, SCORE, ESTIMATE = "truth", "s0", "estimate"
_CUT = "cut"
_MOST_CUTS = 2**15
_BUCKETS = 2**12
_MOST_ROWS = 2.0**62
_SLACK = 1e-9
"""Tolerance for a share of rows to count as a whole number of rows."""
_ROUNDED = 1e-6
"""Tolerance for probabilities outside 0 to 1, for sums of 32-bit numbers."""


@dataclass(frozen=True)
class Cut:
    """The rule that turns scores into labels: scores at or above the threshold are selected."""

    option: Literal["threshold", "top_k", "top_fraction"]
    values: tuple[float, ...] = ()
    several: bool = False
    """True if results have separate rows for each value."""
    by: tuple[Column, ...] = ()
    groups: tuple[tuple[tuple[object, ...], float], ...] = ()
    """The threshold of each group of `by`, in place of `values`."""
    point: OperatingPoint | None = None
    """The choice of a threshold from the rows that are counted, in place of both."""
    is_of_sample: bool = False
    """True if thresholds were chosen on another sample, whatever the scale of its scores."""

    @classmethod
    def of(cls, options: Mapping[str, object], roles: Collection[str]) -> Cut | None:
        """Read `threshold`, `top_k` and `top_fraction` from the options of a call with columns in some roles."""
        rules: dict[str, object] = {}
        for rule in CUT_OPTIONS:
            if options.get(rule) is not None:
                rules[rule] = options[rule]
        if not rules:
            return None
        if len(rules) > 1:
            msg = f"`{'` and `'.join(rules)}` are alternatives; give only one of them."
            raise ArgumentError(msg)
        ((rule, value),) = rules.items()
        if "estimate" in roles:
            msg = f"`estimate` and `{rule}` are alternatives: give predicted labels, or scores with `{rule}`."
            raise ArgumentError(msg)
        if "probs" not in roles:
            msg = f"`{rule}` needs a column of scores; add `probs=`."
            raise ArgumentError(msg)
        if rule == "threshold" and isinstance(value, OperatingPoint):
            return cls("threshold", by=value.by, point=value)
        if rule == "threshold" and isinstance(value, Mapping):
            return _by_group(cast("Mapping[Any, Any]", value))
        if is_list(value):
            return cls(cast("Any", rule), _several_numbers(rule, list(value)), several=True)
        return cls(cast("Any", rule), (_number(rule, value),))

    @property
    def is_of_probabilities(self) -> bool:
        """True if its thresholds lie between 0 and 1, and not only at these ends, like thresholds of probabilities."""
        if self.option != "threshold" or self.point is not None or self.is_of_sample:
            return False
        values = [value for _, value in self.groups] or self.values
        within = min(values) >= 0 and max(values) <= 1
        return within and not {0.0, 1.0}.issuperset(values)

    def check_scores(self, low: float | None, high: float | None, column: str, role: str = "probs") -> None:
        """Refuse scores that are not probabilities, such as logits, if its thresholds are for probabilities."""
        if low is None or high is None or -_ROUNDED <= low <= high <= 1 + _ROUNDED:
            return
        convert = advice("Convert logits with `probs=sigmoid(…)`", "Convert logits to probabilities in the file")
        labels = f" If the threshold is right, make the labels yourself: {self._labels_in_code(column)}."
        msg = (
            f"`{role}`: {column!r} holds values from {low:g} to {high:g}, but {self!r} is a threshold for "
            f"probabilities. {convert}, or give a threshold on the scale of the scores.{advice(labels, '')}"
        )
        raise ColumnError(msg)

    def _labels_in_code(self, column: str) -> str:
        """The code that makes labels of scores, for messages."""
        if column.startswith(ARRAY):
            return f"`{column.removeprefix(ARRAY)} >= {self.values[0] if self.values else '…'}`"
        score = f"pl.col({json.dumps(column, ensure_ascii=False)})"
        if self.groups:
            return f'`({score} >= pl.col("threshold")).alias("selected")`, with the threshold of each group in a column'
        each = " for the first, and so on" if self.several else ""
        return f'`({score} >= {self.values[0]}).alias("selected")`{each}'

    @property
    def ascending(self) -> list[int]:
        """Rank of each value by ascending score threshold: those that select many rows come first."""
        sign = 1 if self.option == "threshold" else -1
        order = sorted(range(len(self.values)), key=lambda index: sign * self.values[index])
        ranks = [0] * len(order)
        for rank, index in enumerate(order):
            ranks[index] = rank
        return ranks

    @property
    def codes(self) -> Levels | None:
        """All possible estimates of a list: the number of thresholds at or below the score."""
        return Levels(pl.UInt16(), 0, len(self.values) + 1) if self.several else None

    @staticmethod
    def reached(score: Any, threshold: Any, *, api: Any = pl) -> Any:
        """True where a score is at or above a threshold, both as 64-bit floats, whatever the scores are stored as."""
        return score.cast(api.Float64) >= threshold

    def decide(self, frame: pl.LazyFrame, outer: list[str], groups: list[str], names: Sequence[str]) -> pl.LazyFrame:
        """Add an `estimate` from the scores; `outer` and `groups` are columns of the frame."""
        score = pl.col(SCORE)
        if self.point is not None:
            return self._at_point(frame, self.point, [*outer, *groups])
        if self.groups:
            return self._by_groups(frame, groups, names)
        if self.option != "threshold":
            return self._best(frame, outer)
        if not self.several:
            return frame.with_columns(self.reached(score, self.values[0]).alias(ESTIMATE))
        search = partial(_search, cuts=sorted(self.values))
        codes = score.cast(pl.Float64).map_batches(search, return_dtype=pl.UInt16, is_elementwise=True)
        return frame.with_columns(codes.alias(ESTIMATE))

    def chosen_on(self, point: OperatingPoint, truth: Column, score: Column, weight: Column | None) -> Cut:
        """The thresholds that an operating point has on another sample, which has the columns of the call."""
        wanted = {TRUTH: ("truth", truth), SCORE: ("probs", score)}
        wanted |= {f"t{index}": ("threshold", column) for index, column in enumerate(self.by)}
        wanted |= {WEIGHT: ("case_weights", weight)} if weight is not None else {}
        keys = [f"t{index}" for index in range(len(self.by))]
        rows = open_frame(point.on).read(wanted)
        if weight is not None:
            rows = rows.with_columns(checked_weights(rows[WEIGHT], weight.name))
        chosen = _chosen(rows, point, keys)
        if not keys:
            return Cut("threshold", (chosen["threshold"][0],), is_of_sample=True)
        groups = tuple((row[:-2], row[-2]) for row in chosen.rows())
        return Cut("threshold", by=self.by, groups=groups, is_of_sample=True)

    def _at_point(self, frame: pl.LazyFrame, point: OperatingPoint, keys: list[str]) -> pl.LazyFrame:
        """Select the rows at or above the threshold of their outer group, and group, that is chosen from these rows."""
        rows = frame.collect()
        chosen = _chosen(rows, point, keys).select(*keys, pl.col("threshold").alias(_CUT)).lazy()
        on: dict[str, Any] = {"on": keys, "how": "left", "nulls_equal": True} if keys else {"how": "cross"}
        with_cuts = rows.lazy().join(chosen, **on)
        return with_cuts.with_columns(self.reached(pl.col(SCORE), pl.col(_CUT)).alias(ESTIMATE)).drop(_CUT)

    def _by_groups(self, frame: pl.LazyFrame, groups: list[str], names: Sequence[str]) -> pl.LazyFrame:
        """Select the rows whose score reaches the threshold of their group."""
        present = frame.select(groups).unique(maintain_order=True).collect()
        threshold_of_group = dict(self.groups)
        thresholds: list[float] = []
        without: list[object] = []
        for key in present.rows():
            if key in threshold_of_group:
                thresholds.append(threshold_of_group[key])
            else:
                shown = key[0] if len(key) == 1 else key
                without.append(shown)
        if without:
            msg = (
                f"`threshold`: the groups {listed(without)} of {':'.join(names)} have no threshold; every group needs "
                "one."
            )
            raise ArgumentError(msg)
        cuts = present.with_columns(pl.Series(_CUT, thresholds, dtype=pl.Float64))
        with_cuts = frame.join(cuts.lazy(), on=groups, how="left", nulls_equal=True)
        return with_cuts.with_columns(self.reached(pl.col(SCORE), pl.col(_CUT)).alias(ESTIMATE)).drop(_CUT)

    def _best(self, frame: pl.LazyFrame, outer: list[str]) -> pl.LazyFrame:
        """Select the best-scored rows of each outer group."""
        weighted = self.option == "top_fraction" and WEIGHT in frame.collect_schema().names()
        cuts: dict[str, pl.Expr] = {}
        for index, value in enumerate(self.values):
            cuts[f"{_CUT} {index}"] = self._lowest_selected(value, weighted=weighted)
        if outer:
            cuts_of_groups = frame.group_by(outer).agg(**cuts).collect()
            with_cuts = frame.join(cuts_of_groups.lazy(), on=outer, how="left", nulls_equal=True)
        else:
            cuts_of_all = frame.select(**cuts).collect()
            with_cuts = frame.with_columns(**cuts_of_all.row(0, named=True))
        reached = [self.reached(pl.col(SCORE), pl.col(name)) for name in cuts]
        estimate = pl.sum_horizontal(reached).cast(pl.UInt16) if self.several else reached[0]
        decided = pl.when(pl.col(SCORE).is_not_null()).then(estimate).alias(ESTIMATE)
        return with_cuts.with_columns(decided).drop(list(cuts))

    def _lowest_selected(self, value: float, *, weighted: bool) -> pl.Expr:
        """The lowest selected score; infinity if no row is selected."""
        scored_rows = pl.col(SCORE).count()
        if weighted:
            size = _rows_within_weight(value)
        elif self.option == "top_k":
            size = pl.lit(min(value, _MOST_ROWS))
        else:
            size = (scored_rows * value + _SLACK).floor()
        size = pl.min_horizontal(size.cast(pl.Int64), scored_rows.cast(pl.Int64))
        falling = pl.col(SCORE).drop_nulls().sort(descending=True)
        # nobody is selected by a cut that no score reaches
        last = pl.when(size > 0).then(value_at(falling, pl.max_horizontal(size - 1, 0)))
        return last.cast(pl.Float64).fill_null(math.inf)

    def remarks(self, table: pl.DataFrame, *, weighed: bool) -> list[str]:
        """Sentences on outer groups where the number or weight of selected rows differs from the request.

        `table` has one row for each outer group and value: `group` (its text), `value`, `selected` and `all`.
        """
        tie = "rows are tied at the threshold and equal scores get the same decision, so"
        remarks: list[str] = []
        for group, value, selected, every in table.select("group", "value", "selected", "all").rows():
            request = f"{self.option}={value:g}{group} asks for"
            if weighed:
                if selected > value * every * (1 + _SLACK):
                    remarks.append(f"{request} {value:.3g} of the weight: {tie} {selected / every:.3g} is selected")
                continue
            wanted = int(value) if self.option == "top_k" else math.floor(value * every + _SLACK)
            if selected > wanted:
                remarks.append(f"{request} {wanted} rows: {tie} {selected} are selected")
            elif selected < wanted:
                remarks.append(f"{request} {wanted} rows, but only {selected} rows have a score")
        return remarks

    def __repr__(self) -> str:
        if self.point is not None:
            return f"{self.option}={self.point!r}"
        if self.groups:
            names = names_of(self.by)
            if len(names) > 1:
                return f"{self.option}={ {tuple(names): dict(self.groups)} }"
            return f"{self.option}={ {names[0]: {key: value for (key,), value in self.groups}} }"
        return f"{self.option}={list(self.values) if self.several else self.values[0]}"


def _chosen(rows: pl.DataFrame, point: OperatingPoint, keys: list[str]) -> pl.DataFrame:
    """The thresholds of an operating point in groups of counted rows."""
    weight = next((name for name in (WEIGHT, FREQUENCY) if name in rows.columns), None)
    weights = pl.lit(1.0) if weight is None else pl.col(weight).cast(pl.Float64)
    names = [pl.col(TRUTH).alias("truth"), pl.col(SCORE).alias("score"), weights.alias("weight")]
    return point.thresholds(rows.select(*keys, *names), keys)


def _rows_within_weight(share: float) -> pl.Expr:
    """Number of best-scored rows whose total weight is at most a share of all."""
    scored = pl.col(SCORE).is_not_null()
    # of equal scores the lightest first, so that the order of rows means nothing
    weight, score = pl.col(WEIGHT).filter(scored), pl.col(SCORE).filter(scored)
    falling = weight.sort_by(score, weight, descending=[True, False]).cast(pl.Float64)
    return (falling.cum_sum() / falling.sum() <= share + _SLACK).sum()


def _is_number(value: Real) -> bool:
    """Check whether it converts to a float other than NaN."""
    try:
        return not math.isnan(value)
    except OverflowError:
        return False


def _number(rule: str, value: object) -> float:
    """Check one threshold, number or share."""
    is_number = not isinstance(value, bool) and isinstance(value, Real) and _is_number(value)
    if rule == "threshold" and not is_number:
        kinds = "a number, a list of numbers, a mapping by group or an `operating_point(…)`"
        msg = f"`threshold` is {kinds}, not {in_short(value)}."
        raise ArgumentError(msg)
    if rule == "top_k" and not (is_number and isinstance(value, Integral) and int(value) >= 1):
        msg = f"`top_k` is a number of rows, 1 or more, not {in_short(value)}."
        raise ArgumentError(msg)
    if rule == "top_fraction" and not (is_number and 0 < cast("float", value) <= 1):
        msg = f"`top_fraction` is a share between 0 and 1, not {in_short(value)}."
        raise ArgumentError(msg)
    return float(cast("float", value))


def _several_numbers(rule: str, values: list[object]) -> tuple[float, ...]:
    """Check a list of distinct thresholds, numbers or shares."""
    numbers = tuple(_number(rule, value) for value in values)
    if len(numbers) > _MOST_CUTS:
        msg = f"`{rule}` accepts at most {_MOST_CUTS} values, not {len(numbers)}."
        raise ArgumentError(msg)
    if not numbers or len(set(numbers)) < len(numbers):
        msg = f"`{rule}` must not repeat a value: {listed(values)}."
        raise ArgumentError(msg)
    return numbers


def _by_group(mapping: Mapping[Any, Any]) -> Cut:
    """Read thresholds by group, `{columns: {group: threshold}}`."""
    shape = 'such as `threshold={"sex": {"female": 0.4, "male": 0.5}}`'
    if len(mapping) != 1 or not isinstance(next(iter(mapping.values())), Mapping):
        msg = f"`threshold` by group maps a column to the threshold of each group, {shape}."
        raise ArgumentError(msg)
    ((names, thresholds),) = mapping.items()
    columns = tuple(Column.of(name, "threshold") for name in _as_tuple(names))
    groups: list[tuple[tuple[object, ...], float]] = []
    for group, threshold in thresholds.items():
        # NaN is null among keys
        key = tuple(None if isinstance(value, float) and math.isnan(value) else value for value in _as_tuple(group))
        groups.append((key, _number("threshold", threshold)))
    lengths = {len(key) for key, _ in groups}
    if lengths != {len(columns)}:
        msg = f"`threshold` by group: each group needs one value for each of {listed(names_of(columns))}, {shape}."
        raise ArgumentError(msg)
    return Cut("threshold", by=columns, groups=tuple(groups))


def _as_tuple(value: object) -> tuple[object, ...]:
    """One name or value, or a tuple of them, as a tuple."""
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)


def _search(scores: pl.Series, cuts: list[float]) -> pl.Series:
    """The number of ascending cuts at or below each score.

    The range of the cuts is split into buckets so small that few hold two cuts: then one look-up and one comparison
    give the number, ten times faster than a search.
    """
    known = scores.is_not_null() if scores.null_count() else None
    values = scores.fill_null(-math.inf).to_numpy() if known is not None else scores.to_numpy()
    edges = np.array(cuts)
    low, high = float(edges[0]), float(edges[-1])
    scale = _BUCKETS / (high - low) if high > low else math.inf

    def bucket(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        # each step keeps the order of numbers, so that those in lower buckets are lower
        scaled = numbers - low
        scaled *= scale
        scaled += 1
        np.clip(scaled, 0, _BUCKETS + 1, out=scaled)
        return scaled.astype(np.intp)

    buckets = bucket(edges) if 0 < scale < math.inf else edges
    if len(np.unique(buckets)) < len(cuts) or buckets is edges:
        codes = np.searchsorted(edges, values, side="right").astype(np.uint16)
    else:
        base = np.searchsorted(buckets, np.arange(_BUCKETS + 2), side="left").astype(np.uint16)
        edge = np.full(_BUCKETS + 2, math.inf)
        edge[buckets] = edges
        bucket_of_value = bucket(values)
        codes = base.take(bucket_of_value, mode="clip")
        codes += values >= edge.take(bucket_of_value, mode="clip")
    numbers = pl.Series(codes)
    return numbers if known is None else pl.select(pl.when(known).then(numbers)).to_series()


@overload
def sigmoid(column: ColumnLike) -> pl.Expr: ...
@overload
def sigmoid(column: object) -> Any: ...
@refuse_unknown_settings
def sigmoid(column: Any) -> Any:
    """Convert logits to probabilities for `probs=`: a column, given by name or expression, or an array.

    >>> pl.DataFrame({"logit": [0.0]}).select(sigmoid("logit")).item()
    0.5
    >>> sigmoid([0.0]).item()
    0.5
    """
    if not isinstance(column, str | pl.Expr):
        logits = from_arrays({"logits": column})
        if not (logits["logits"].dtype.is_numeric() or logits["logits"].dtype == pl.Null):
            msg = f"sigmoid() takes numbers, not {logits['logits'].dtype}."
            raise ColumnError(msg)
        return logits.select(sigmoid("logits")).to_series().to_numpy()
    logit = Column.of(column, "column")
    return (1 / (1 + (-logit.expr.cast(pl.Float64)).exp())).alias(f"sigmoid of {logit.name}")

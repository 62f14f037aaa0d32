"""From scores to decisions: thresholds, one or many, the same for all or by group, and the best-scored k or share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, listed
from tidyfair.specs.arguments import is_list
from tidyfair.specs.columns import Column
from tidyfair.tallies.key_encoding import Levels
from tidyfair.tallies.source import WEIGHT, from_arrays

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tidyfair.specs.columns import ColumnLike

__all__ = ["sigmoid"]

SCORE, ESTIMATE = "s0", "estimate"
_CUT = "cut"
_WAYS = ("threshold", "top_k", "top_fraction")
_MOST_CUTS = 2**15
_BUCKETS = 2**12
_MOST_ROWS = 2.0**62
_SLACK = 1e-9
"""A share of rows this close to a whole number of them is that number."""
_ROUNDED = 1e-6
"""A probability may be that far outside of 0 to 1, as sums of 32-bit numbers are."""


@dataclass(frozen=True)
class Cut:
    """How labels are made of scores: at or above a cut is selected."""

    way: Literal["threshold", "top_k", "top_fraction"]
    values: tuple[float, ...] = ()
    several: bool = False
    """Whether each value gets rows of its own in the results."""
    by: tuple[Column, ...] = ()
    groups: tuple[tuple[tuple[object, ...], float], ...] = ()
    """The threshold of each group of `by`, in place of `values`."""

    @classmethod
    def of(cls, given: Mapping[str, object], roles: Collection[str]) -> Cut | None:
        """Read `threshold`, `top_k` and `top_fraction` of a call with the given columns."""
        asked = {way: given[way] for way in _WAYS if given.get(way) is not None}
        if not asked:
            return None
        if len(asked) > 1:
            msg = f"`{'` and `'.join(asked)}` are different ways to make labels of scores; give one of them."
            raise ArgumentError(msg)
        ((way, value),) = asked.items()
        if "estimate" in roles:
            msg = f"`estimate` and `{way}` both say what is predicted: give the labels or the scores, not both."
            raise ArgumentError(msg)
        if "probs" not in roles:
            msg = f"`{way}` needs the column of scores: `probs=`."
            raise ArgumentError(msg)
        if way == "threshold" and isinstance(value, Mapping):
            return _by_group(cast("Mapping[Any, Any]", value))
        several = is_list(value)
        values: list[object] = list(value) if is_list(value) else [value]
        checked = tuple(_number(way, each) for each in values)
        if len(checked) > _MOST_CUTS:
            msg = f"`{way}` lists at most {_MOST_CUTS} values, not {len(checked)}."
            raise ArgumentError(msg)
        if not checked or len(set(checked)) < len(checked):
            msg = f"`{way}` lists each value once, not {listed(values)}."
            raise ArgumentError(msg)
        return cls(cast("Any", way), checked, several)

    @property
    def is_of_probabilities(self) -> bool:
        """Whether its thresholds lie between 0 and 1, as those of probabilities do."""
        values = [value for _, value in self.groups] or self.values
        within = all(0 <= value <= 1 for value in values)
        return self.way == "threshold" and within and any(0 < value < 1 for value in values)

    def check_scores(self, low: float | None, high: float | None, column: str, role: str = "probs") -> None:
        """Refuse scores that are no probabilities, such as logits, where its thresholds are those of probabilities."""
        if low is None or high is None or -_ROUNDED <= low <= high <= 1 + _ROUNDED:
            return
        msg = (
            f"`{role}`: {column!r} holds values from {low:g} to {high:g}, but {self!r} lies between 0 and 1, as for "
            "probabilities. Make these of logits by `probs=sigmoid(…)`, or bring the threshold to the scale of the "
            'scores; if it is meant as it is, make the labels: `(pl.col("score") >= 0.5).alias("selected")`.'
        )
        raise ColumnError(msg)

    @property
    def ascending(self) -> list[int]:
        """For each value, its place when cuts are in ascending order of score: many selected come first."""
        sign = 1 if self.way == "threshold" else -1
        order = sorted(range(len(self.values)), key=lambda place: sign * self.values[place])
        places = dict(zip(order, range(len(order)), strict=True))
        return [places[place] for place in range(len(order))]

    @property
    def codes(self) -> Levels | None:
        """All estimates that a list makes: how many cuts are at or below the score."""
        return Levels(pl.UInt16(), 0, len(self.values) + 1) if self.several else None

    def decide(self, frame: pl.LazyFrame, outer: list[str], groups: list[str], names: Sequence[str]) -> pl.LazyFrame:
        """The frame with an `estimate` made of its scores; `outer` and `groups` are columns of it."""
        score = pl.col(SCORE)
        if self.groups:
            return self._by_groups(frame, groups, names)
        if self.way != "threshold":
            return self._best(frame, outer)
        if not self.several:
            return frame.with_columns((score >= self.values[0]).alias(ESTIMATE))
        search = partial(_search, cuts=sorted(self.values))
        codes = score.cast(pl.Float64).map_batches(search, return_dtype=pl.UInt16, is_elementwise=True)
        return frame.with_columns(codes.alias(ESTIMATE))

    def _by_groups(self, frame: pl.LazyFrame, groups: list[str], names: Sequence[str]) -> pl.LazyFrame:
        seen = frame.select(groups).unique(maintain_order=True).collect()
        known = {tuple(key): value for key, value in self.groups}
        without = [key for key in seen.rows() if key not in known]
        if without:
            shown = [key[0] if len(key) == 1 else key for key in without]
            msg = f"`threshold`: there is none for {listed(shown)} of {':'.join(names)}; every group needs one."
            raise ArgumentError(msg)
        cuts = seen.with_columns(pl.Series(_CUT, [known[key] for key in seen.rows()], dtype=pl.Float64))
        placed = frame.join(cuts.lazy(), on=groups, how="left", nulls_equal=True)
        return placed.with_columns((pl.col(SCORE) >= pl.col(_CUT)).alias(ESTIMATE)).drop(_CUT)

    def _best(self, frame: pl.LazyFrame, outer: list[str]) -> pl.LazyFrame:
        weighted = self.way == "top_fraction" and WEIGHT in frame.collect_schema().names()
        score = pl.col(SCORE).drop_nulls().sort(descending=True)
        cuts: list[pl.Expr] = []
        for place, value in enumerate(self.values):
            if weighted:
                known = pl.col(SCORE).is_not_null()
                # of equal scores the lightest first, so that the order of rows means nothing
                weight, falling = pl.col(WEIGHT).filter(known), pl.col(SCORE).filter(known)
                order = weight.sort_by(falling, weight, descending=[True, False])
                reached = order.cast(pl.Float64).cum_sum() / order.cast(pl.Float64).sum() <= value + _SLACK
                size = reached.sum()
            else:
                size = (
                    pl.lit(min(value, _MOST_ROWS))
                    if self.way == "top_k"
                    else (pl.col(SCORE).count() * value + _SLACK).floor()
                )
            size = pl.min_horizontal(size.cast(pl.Int64), pl.col(SCORE).count().cast(pl.Int64))
            # nobody is selected by a cut that no score reaches
            cut = pl.when(size > 0).then(score.get(pl.max_horizontal(size - 1, 0), null_on_oob=True))
            cuts.append(cut.cast(pl.Float64).fill_null(math.inf).alias(f"{_CUT} {place}"))
        if outer:
            found = frame.group_by(outer).agg(cuts).collect()
            placed = frame.join(found.lazy(), on=outer, how="left", nulls_equal=True)
        else:
            found = frame.select(cuts).collect()
            placed = frame.with_columns(pl.lit(each.item(), pl.Float64).alias(each.name) for each in found)
        reached = [pl.col(SCORE) >= pl.col(f"{_CUT} {place}") for place in range(len(self.values))]
        known = pl.col(SCORE).is_not_null()
        estimate = pl.sum_horizontal(reached).cast(pl.UInt16) if self.several else reached[0]
        return placed.with_columns(pl.when(known).then(estimate).alias(ESTIMATE)).drop(
            [each.meta.output_name() for each in cuts]
        )

    def remarks(self, table: pl.DataFrame, *, weighed: bool) -> list[str]:
        """Where another number of rows than asked is selected, or more than the share of weights asked for.

        `table` has one row for each outer group and value: `group` (its text), `value`, `selected` and `all`.
        """
        said: list[str] = []
        for group, value, selected, every in table.select("group", "value", "selected", "all").rows():
            asked = f"{self.way}={value:g}{group} asks for"
            tie = "rows tie at the cut, and equal scores are decided alike, so"
            if weighed:
                if selected > value * every * (1 + _SLACK):
                    said.append(f"{asked} {value:.3g} of the weight: {tie} {selected / every:.3g} is selected")
                continue
            wanted = int(value) if self.way == "top_k" else math.floor(value * every + _SLACK)
            if selected > wanted:
                said.append(f"{asked} {wanted} rows: {tie} {selected} are selected")
            elif selected < wanted:
                said.append(f"{asked} {wanted} rows: there are only {selected} rows with a score")
        return said

    def __repr__(self) -> str:
        return (
            f"{self.way}={dict(self.groups) if self.groups else list(self.values) if self.several else self.values[0]}"
        )


def _is_number(value: Real) -> bool:
    """Whether a float can hold it, and it is not NaN."""
    try:
        return not math.isnan(value)
    except OverflowError:
        return False


def _number(way: str, value: object) -> float:
    number = not isinstance(value, bool) and isinstance(value, Real) and _is_number(value)
    if way == "threshold" and not number:
        msg = f"`threshold` is a number, a list of numbers or a mapping by group, not {value!r}."
        raise ArgumentError(msg)
    if way == "top_k" and not (number and isinstance(value, Integral) and int(value) >= 1):
        msg = f"`top_k` is a number of rows, 1 or more, not {value!r}."
        raise ArgumentError(msg)
    if way == "top_fraction" and not (number and 0 < cast("float", value) <= 1):
        msg = f"`top_fraction` is a share between 0 and 1, not {value!r}."
        raise ArgumentError(msg)
    return float(cast("float", value))


def _by_group(mapping: Mapping[Any, Any]) -> Cut:
    shape = 'such as `threshold={"sex": {"female": 0.4, "male": 0.5}}`'
    if len(mapping) != 1 or not isinstance(next(iter(mapping.values())), Mapping):
        msg = f"`threshold` by group names the column and the threshold of each of its groups, {shape}."
        raise ArgumentError(msg)
    ((names, groups),) = mapping.items()
    named = cast("tuple[object, ...]", names if isinstance(names, tuple) else (names,))
    columns = tuple(Column.of(name, "threshold") for name in named)
    keys = [
        # in frames NaN is null, and so it is here
        tuple(
            None if isinstance(part, float) and math.isnan(part) else part
            for part in (cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key,))
        )
        for key in groups
    ]
    chosen = tuple(zip(keys, (_number("threshold", value) for value in groups.values()), strict=True))
    if any(len(key) != len(columns) for key, _ in chosen) or not chosen:
        msg = f"`threshold` by group needs one value for each of {listed(column.name for column in columns)}, {shape}."
        raise ArgumentError(msg)
    return Cut("threshold", by=columns, groups=chosen)


def _search(scores: pl.Series, cuts: list[float]) -> pl.Series:
    """How many of the ascending cuts are at or below each score.

    The range of the cuts is split into buckets so small that hardly any holds two cuts: then one look-up and one
    comparison find the place, ten times faster than a search.
    """
    import numpy as np

    known = scores.is_not_null() if scores.null_count() else None
    values = scores.fill_null(-math.inf).to_numpy() if known is not None else scores.to_numpy()
    edges = np.array(cuts)
    low, high = float(edges[0]), float(edges[-1])
    scale = _BUCKETS / (high - low) if high > low else math.inf

    def bucket(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        # each step keeps the order of numbers, so that those in lower buckets are lower
        place = numbers - low
        place *= scale
        place += 1
        np.clip(place, 0, _BUCKETS + 1, out=place)
        return place.astype(np.intp)

    buckets = bucket(edges) if 0 < scale < math.inf else edges
    if len(np.unique(buckets)) < len(cuts) or buckets is edges:
        codes = np.searchsorted(edges, values, side="right").astype(np.uint16)
    else:
        base = np.searchsorted(buckets, np.arange(_BUCKETS + 2), side="left").astype(np.uint16)
        edge = np.full(_BUCKETS + 2, math.inf)
        edge[buckets] = edges
        place = bucket(values)
        codes = base.take(place, mode="clip")
        codes += values >= edge.take(place, mode="clip")
    found = pl.Series(codes)
    return found if known is None else pl.select(pl.when(known).then(found)).to_series()


@overload
def sigmoid(column: ColumnLike) -> pl.Expr: ...
@overload
def sigmoid(column: object) -> Any: ...
def sigmoid(column: Any) -> Any:
    """Logits as probabilities, to be given as `probs=`: a column by its name or expression, or an array.

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

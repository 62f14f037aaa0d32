"""Tallies: counts by keys and labels, which merge by key."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, WeightError, listed
from tidyfair.specs import (
    AT_POINT,
    ROLE,
    SIDE,
    TIME_AT_POINT,
    WEIGHT_AT_POINT,
    Booleans,
    By,
    Column,
    Design,
    Forecast,
    Integers,
    Privileged,
    is_at_quantiles,
    levels_of,
    side_by_side,
    stacked,
)
from tidyfair.tallies.moments import SCORE, Needs, centred, extremes, is_of_replicate, merged, point_of, score_columns
from tidyfair.tallies.source import SQUARED, WEIGHT
from tidyfair.tallies.suppression import Suppression, TableKey, counts_by_labels, numbered, suppression_of
from tidyfair.tallies.threads import check_threads
from tidyfair.tallies.thresholds import ESTIMATE, Cut

__all__ = ["Tally"]

HIDDEN = "hidden"
"""Sum of the suppressed cells of a group, so that nothing is computed from the remaining cells."""
BLOCKS = 400
"""Number of random parts of the rows, enough to estimate a standard error to 4%."""
BLOCK = "\0block"
"""Key of random parts of the rows, to estimate the variance of sums."""
TRUTH = "truth"
LABELS = (TRUTH, ESTIMATE)
GOLD, OWN = "\0gold", "\0own"
"""Keys of the label by people, where the truth is that of a judge, and of the estimate of one of two models."""
ROW = "\0row"
"""Key of the row number, for designs that sample single rows."""
THRESHOLD = "\0threshold"
"""The column of the value of a list of cuts, among the keys."""
LabelSource: TypeAlias = Literal["people", "judge", "judge of all"]
SOURCES: tuple[LabelSource, ...] = get_args(LabelSource)
"""The sources of the labels of a judged tally: people, the judge on the rows they labeled, the judge on all."""
_OUTER = ("outer", "threshold")
"""The roles of keys of outer groups."""
_MEASURES = ("w", "w2", WEIGHT, SQUARED)
_MOST_WHOLE = 2**63
_FEW_CELLS = 1_000
_LEAST = 1e-75


@dataclass(frozen=True)
class Key:
    """A column that the tally is counted by, and its role."""

    column: Column
    role: Literal["outer", "by", "side", "threshold", "cluster", "judged"]


def key_names(keys: Sequence[Key], *roles: str) -> list[str]:
    """The names in `cells` of all keys, or of those in some roles."""
    return [f"k{index}" for index, key in enumerate(keys) if not roles or key.role in roles]


@dataclass(frozen=True)
class Judge:
    """The labels of a judge, or its scores of the event, for all rows, of which people labeled some."""

    column: Column
    probability: Column | None
    """The probability with which a row was drawn to be labeled; None if it is the same in a group."""

    @property
    def columns(self) -> list[Column]:
        """The columns that rows are counted by."""
        return [self.column] if self.probability is None else [self.column, self.probability]


@dataclass(frozen=True)
class Scores:
    """The columns of scores: one, or one per label."""

    columns: tuple[Column, ...]
    labels: tuple[Any, ...] | None = None
    """The labels that a mapping gave them."""
    several: bool = False
    bins: int | None = None
    """Number of bins of scores that replace the rows for ranking metrics."""
    binned_for: str | None = None
    """The engine that has so many distinct scores that bins were chosen for it."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of rows by keys and labels with accompanying sums: everything that metrics need from the data.

    `cells` has one row per combination that occurs: the keys as `k0`, `k1`, …, then `truth` and `estimate` (null where
    missing or not given; for numbers, only whether they are present), `n` rows and, with case weights, their
    sum `w` and the sum of their squares `w2`, and the sums that probability and regression metrics need. `rows` are
    kept for metrics that depend on their order, or counts of rows by bins of their scores. Tallies of two halves of the
    data add up to the tally of the whole.
    """

    cells: pl.DataFrame
    keys: tuple[Key, ...]
    truth: Column | None
    estimate: Column | None
    cut: Cut | None = None
    weights: Column | None = None
    scores: Scores | None = None
    needs: Needs = field(default_factory=Needs)
    rows: pl.DataFrame | None = None
    sides: Privileged | None = None
    """Conditions whose two sides are outer groups too."""
    declared: Mapping[str, list[Any]] = field(default_factory=dict[str, "list[Any]"])
    """The ordered levels of numeric columns of labels, which dtypes cannot store."""
    design: Design | None = None
    """The survey design of the rows."""
    forecast: Forecast | None = None
    """The columns of survival times, of an interval or of quantiles."""
    judge: Judge | None = None
    is_at_points: bool = False
    """True if sums and rows are those at the points of predictions."""
    suppression: Suppression | None = None
    """The groups whose small counts are not shown."""
    margins: Mapping[str, Tally] = field(default_factory=dict[str, "Tally"])
    """The tallies of each feature alone, where no tally of all together is known; this one is of all rows then."""

    def of_feature(self, by: By | None) -> Tally:
        """The tally that has the groups of a feature: this one, or that of the feature alone."""
        return self.margins.get(by.text, self) if by is not None else self

    @property
    def role_of_weights(self) -> str:
        """The argument that names the weights, for messages."""
        return "case_weights" if self.design is None else ROLE

    @property
    def outer(self) -> tuple[Key, ...]:
        """The keys of the outer grouping."""
        return tuple(key for key in self.keys if key.role in _OUTER)

    @property
    def given(self) -> set[str]:
        """The columns of rows that a metric can read: `truth`, `estimate` (made of scores, too) and `probs`."""
        columns = {"truth": self.truth, "estimate": self.estimate or self.cut, "probs": self.scores}
        given: set[str] = {role for role, column in columns.items() if column is not None}
        return given | self.forecast.given if self.forecast is not None else given

    @property
    def clusters(self) -> tuple[Key, ...]:
        """The keys of clusters, whose rows are resampled together."""
        return tuple(key for key in self.keys if key.role == "cluster")

    @property
    def cluster_names(self) -> list[str]:
        """The names in `cells` of the keys of the user's own clusters."""
        return self.names([key.column for key in self.clusters if key.column.name != BLOCK])

    @property
    def binned(self) -> bool:
        """True where `rows` are counts of rows by bins of their scores."""
        return self.scores is not None and self.scores.bins is not None

    @property
    def scored(self) -> list[str]:
        """The internal names of the scores that are read other than by a threshold."""
        return score_columns(len(self.scores.columns)) if self.scores is not None and self.needs.scores else []

    @cached_property
    def seen(self) -> dict[str, list[Any]]:
        """The labels that occur in truth and in estimate."""
        seen: dict[str, list[Any]] = {}
        are_many = self.cells.height > _FEW_CELLS
        for name in LABELS:
            column, dtype = self.cells.get_column(name), self.kinds[name]
            if name == TRUTH and self.judge is not None and not self.has_scores_of_judge:
                dtype = self._labels_of_judge.dtype
                column = column.cast(dtype).append(self._labels_of_judge)
            # categories are in their own order, not in that of their texts
            if are_many or isinstance(dtype, pl.Enum | pl.Categorical):
                seen[name] = column.drop_nulls().unique().sort().to_list()
            else:
                # of few cells Python takes less time than a query
                seen[name] = sorted({*column.to_list()} - {None})
        return seen

    def levels(self, name: str) -> list[Any]:
        """The levels of `truth` or `estimate` in their order, where they are declared."""
        return self.declared.get(name) or levels_of(self.kinds[name])

    def names(self, columns: Sequence[Column]) -> list[str]:
        """The names in `cells` of the given columns."""
        names: list[str] = []
        for column in columns:
            if (name := self._name_of_column.get(column)) is None:
                msg = f"The tally was not counted by {column.name!r}; count again with the metrics to be computed."
                raise ColumnError(msg)
            names.append(name)
        return names

    @cached_property
    def _name_of_column(self) -> dict[Column, str]:
        """The names in `cells` of the columns that it is counted by."""
        return {key.column: f"k{index}" for index, key in enumerate(self.keys)}

    def keys_of_cells(self, columns: Sequence[Column]) -> pl.DataFrame:
        """The values of some keys in each cell."""
        return side_by_side([self.cells.get_column(name) for name in self.names(columns)])

    @property
    def row_count(self) -> int:
        """The number of rows that were counted."""
        return int(self.cells["n"].sum())

    @property
    def outer_columns(self) -> list[Column]:
        """The columns of the outer grouping."""
        return [key.column for key in self.outer]

    @property
    def outer_names(self) -> list[str]:
        """The names in `cells` of the keys of the outer grouping."""
        return key_names(self.keys, *_OUTER)

    @property
    def has_missing_predictions(self) -> bool:
        """True if some rows have no estimate or score; of predictions at points, if some may have none."""
        has_missing_scores = SCORE in self.kinds and self.cells[SCORE].null_count() > 0
        return self.forecast is not None or has_missing_scores or self.cells.get_column(ESTIMATE).null_count() > 0

    @cached_property
    def has_scores_of_judge(self) -> bool:
        """True if the judge gives numbers between 0 and 1: probabilities of the event, instead of labels."""
        if self.judge is None:
            return False
        judged = self.keys_of_cells([self.judge.column]).to_series()
        return judged.dtype.is_float() and bool(judged.is_between(0, 1).all())

    @property
    def lacks_labels_of_judge(self) -> bool:
        """True if some rows have no label by people, and none of them one by the judge."""
        of_judge = (
            self.keys_of_cells([cast("Judge", self.judge).column]).to_series().filter(self.cells[TRUTH].is_null())
        )
        return len(of_judge) > 0 and of_judge.count() == 0

    @cached_property
    def _labels_of_judge(self) -> pl.Series:
        """The labels of the judge in the dtype of those of people."""
        column = cast("Judge", self.judge).column
        judged = self.keys_of_cells([column]).to_series().alias(TRUTH)
        dtype = self.kinds[TRUTH]
        is_alike = alike(judged.dtype, dtype)
        labels = judged.cast(dtype, strict=False) if is_alike and dtype != pl.Null else judged
        # one label of people, as in a small batch, does not say which labels there are
        known = self.cells[TRUTH].drop_nulls().unique()
        is_strange = is_alike and len(known) > 1 and labels.count() > 0 and not labels.is_in(known.implode()).any()
        if not is_alike or is_strange or not labels.cast(judged.dtype).eq_missing(judged).all():
            msg = (
                f"`judged`: the column {column.name!r} ({judged.dtype}) holds other labels than the truth ({dtype}); "
                "use the same labels, or scores of the event between 0 and 1."
            )
            raise ColumnError(msg)
        return labels

    def _probabilities(self, column: Column) -> pl.Series:
        """The probabilities with which rows were drawn to be labeled, 1 for rows that were not."""
        drawn = self.keys_of_cells([column]).to_series().set(self.cells[TRUTH].is_null(), 1)
        is_share = drawn.is_between(0, 1, closed="right") if drawn.dtype.is_numeric() else drawn.is_null()
        if not is_share.all(ignore_nulls=False):
            msg = f"`label_probability`: {column.name!r} must be above 0 and at most 1 in rows with a label."
            raise ColumnError(msg)
        return drawn

    def with_rivals(self, rival: Column) -> tuple[Tally, Tally]:
        """Two tallies with the same cells: with the estimate, and with a rival of it, a key, as the estimate."""
        keys = [replace(key, role="judged") if key.column == rival else key for key in self.keys]
        own, (name,) = f"k{len(keys)}", self.names([rival])
        cells = self.cells.select(*key_names(keys), pl.col(ESTIMATE).alias(own), pl.exclude(key_names(keys)))
        tally = replace(self, cells=cells, keys=(*keys, Key(Column(OWN), "judged")))
        return tally, replace(tally, cells=cells.with_columns(pl.col(name).alias(ESTIMATE)))

    def labelled_by(self, source: LabelSource, event: object, other: object) -> Tally:
        """The tally with the labels of people as the truth, or of the judge: for the rows that people labeled, or all.

        Rows without such a label have none. The label of people becomes the last key, so that the cells of all three
        are the same; a score of the judge divides them into the event and another label.
        """
        judge, gold, weights = cast("Judge", self.judge), self.cells[TRUTH], self.weights
        drawn = None if judge.probability is None else self._probabilities(judge.probability)
        is_labelled, is_divided = gold.is_not_null(), self.has_scores_of_judge and source != "people"
        cells = self.cells.with_columns(gold.alias(f"k{len(self.keys)}"))
        if source != "people":
            judged = self.keys_of_cells([judge.column]).to_series() if is_divided else self._labels_of_judge
            cells = cells.with_columns(judged.set(~is_labelled & (source == "judge"), None).alias(TRUTH))
        if weights is None and (drawn is not None or is_divided):
            weights, count = judge.column, pl.col("n").cast(pl.Float64)
            cells = cells.with_columns(count.alias("w"), count.alias("w2"))
        if drawn is not None and source != "judge of all":
            cells = cells.with_columns(pl.col("w") / drawn, pl.col("w2") / drawn**2)
        if is_divided:
            sides: list[pl.DataFrame] = []
            for label, share in ((event, pl.col(TRUTH)), (other, 1 - pl.col(TRUTH))):
                side = pl.when(pl.col(TRUTH).is_not_null()).then(pl.lit(label, gold.dtype)).alias(TRUTH)
                factor = pl.coalesce(share, 1.0)
                sides.append(cells.with_columns(side, pl.col("w") * factor, pl.col("w2") * factor**2))
            cells = pl.concat(sides)
        keys = (*self.keys, Key(Column(GOLD), "judged"))
        cells = cells.select(*key_names(keys), pl.exclude(key_names(keys)))
        return replace(self, cells=cells, keys=keys, weights=weights, judge=None)

    @property
    def by_people(self) -> Tally:
        """The tally with the labels of people alone, counted without those of a judge."""
        tally = self.labelled_by("people", None, None)
        keys = tuple(key for key in self.keys if key.role != "judged")
        kept = [pl.col(name).alias(f"k{index}") for index, name in enumerate(tally.names([key.column for key in keys]))]
        sums = [name for name in ("n", *_MEASURES) if name in tally.cells.columns]
        return replace(tally, cells=tally.cells.group_by(*kept, *LABELS).agg(pl.col(sums).sum()), keys=keys)

    def suppressed(self, bys: Iterable[By], below: int) -> Tally:
        """The tally with the groups that are not shown, of all rows and of features, by outer group and in all."""
        sided = self.on_sides()
        keys = key_names(sided.keys)
        names = [name for name, key in zip(keys, sided.keys, strict=True) if key.role != "cluster"]
        labels = [name for name in sided.counted_by if name not in keys]
        features = {by.text: by for by in bys}
        examples, counts = counts_by_labels(sided.cells, names, labels)
        sided = replace(sided, cells=sided.cells[examples])
        every = pl.int_range(len(examples), eager=True)
        tables: dict[TableKey, tuple[pl.Series, Sequence[pl.Series]]] = {}
        for is_outer in {False, bool(sided.outer_names)}:
            outer = sided.cells.select(key_names(sided.keys, "outer")).get_columns() if is_outer else []
            tables[is_outer, None] = every, outer
            for by in features.values():
                read = sided.keys_of_cells(by.columns)
                by.refuse_partly_unknown("`suppress_below`", read)
                cells, groups = by.rows_by_group(read)
                tables[is_outer, by.text] = cells, [*(key[cells] for key in outer), *groups.get_columns()]
        return replace(self, suppression=suppression_of(tables, counts, tuple(features.values()), below))

    def margin(self, by: By | None) -> Tally:
        """The tally of a feature alone, or of all rows; groups that are suppressed have one cell of no rows."""
        shown = set(self.names(by.columns)) if by is not None else set[str]()
        without = [name for name in key_names(self.keys, "by") if name not in shown]
        nothing = [pl.lit(None, self.kinds[name]).alias(name) for name in without]
        rows = None if self.rows is None else self.rows.with_columns(nothing)
        margin = add_up([replace(self, cells=self.cells.with_columns(nothing), rows=rows, suppression=None)])
        if self.suppression is None:
            return margin
        is_outer, keys = margin._table_keys(by)  # noqa: SLF001 - of the same class
        is_hidden = self.suppression.is_hidden(keys, len(margin.cells), by and by.text, is_outer=is_outer)
        kept = {*key_names(self.keys, "outer"), *shown}
        hidden = margin.cells.filter(is_hidden).with_columns(
            pl.lit(None if name in self.counted_by else 0, dtype).alias(name)
            for name, dtype in margin.kinds.items()
            if name not in kept
        )
        return replace(margin, cells=pl.concat([margin.cells.filter(~is_hidden), hidden.unique()]))

    def suppressed_as_counted(self, by: By | None) -> Tally:
        """A margin that marks its groups without rows as suppressed; unchanged where nothing is suppressed."""
        if self.suppression is None:
            return self
        hidden = replace(self, cells=self.cells.filter(pl.col("n") == 0))
        is_outer, keys = hidden._table_keys(by)  # noqa: SLF001 - of the same class
        table = {(is_outer, by and by.text): numbered(keys, len(hidden.cells))}
        return replace(self, suppression=Suppression(self.suppression.below, (), table))

    def _table_keys(self, by: By | None) -> tuple[bool, list[pl.Series]]:
        """Whether there are outer groups, and the keys of these and of the groups of a feature, of each cell."""
        outer = self.cells.select(key_names(self.keys, "outer")).get_columns()
        groups = [] if by is None else by.groups(self.keys_of_cells(by.columns)).get_columns()
        return bool(outer), [*outer, *groups]

    def hidden_groups(self, by: By | None, example: Integers) -> Booleans | None:
        """The mask of the groups of a feature that are suppressed, each with a cell as an example; None without any."""
        if self.suppression is None:
            return None
        is_outer, cells = bool(key_names(self.keys, "outer")), self.cells[pl.Series(example, dtype=pl.UInt32)]
        keys = cells.select(key_names(self.keys, "outer")).get_columns()
        if by is not None:
            groups = cells.select(self.names(by.keys))
            keys += (by.groups(groups) if by.sides else groups).get_columns()
        hidden = self.suppression.is_hidden(keys, len(cells), by.text if by else None, is_outer=is_outer)
        return hidden.to_numpy()

    def check_all_rows_are_shown(self) -> None:
        """Refuse to show nothing, not even the counts of all rows together."""
        if self.suppression is not None and self.suppression.is_hidden([], 1, None).any():
            msg = (
                "`suppress_below`: a count of all rows is small, such as that of a label or of rows without a "
                "prediction, so that nothing can be shown; filter these rows first, or lower `suppress_below`."
            )
            raise ArgumentError(msg)

    def in_few_parts(self) -> Tally:
        """The tally with random parts put together, unless these are few; replicates draw parts."""
        part = self.names([key.column for key in self.clusters if key.column.name == BLOCK])
        return replace(self, cells=self.cells.with_columns(pl.col(part) % BLOCKS)) if part else self

    def on_sides(self) -> Tally:
        """The tally with the side of a row as an additional outer key."""
        sides = self.sides
        if sides is None:
            return self
        names = self.names(sides.columns)
        sides.check(self.cells[names])
        old_keys = key_names(self.keys)
        new_key = f"k{len(self.keys)}"

        def with_side(frame: pl.DataFrame) -> pl.DataFrame:
            side = sides.side(frame[names]).alias(new_key)
            return frame.select(*old_keys, side, pl.exclude(old_keys))

        rows = None if self.rows is None else with_side(self.rows)
        keys = (*self.keys, Key(Column(SIDE), "outer"))
        return replace(self, cells=with_side(self.cells), keys=keys, rows=rows, sides=None)

    def at_threshold(self, threshold: float) -> Tally:
        """The tally at one of the thresholds that are a key."""
        names = [name for name, key in zip(key_names(self.keys), self.keys, strict=True) if key.role == "threshold"]
        return replace(self, cells=self.cells.filter(pl.col(names) == threshold))

    def at_each_cut(self) -> Tally:
        """The tally with the threshold as an additional key; the estimate states whether the score reaches it.

        Of predictions at points these are the additional key.
        """
        if self.forecast is not None:
            return self.at_each_point()
        if self.cut is None or not self.cut.several or any(key.role == "threshold" for key in self.keys):
            return self
        by = [*key_names(self.keys), TRUTH]
        sums = [name for name in self.cells.columns if name in {"n", "w", "w2"} or is_of_replicate(name)]
        cells = self.cells.group_by(*by, ESTIMATE).agg(pl.col(sums).sum()).filter(pl.col("n") > 0)
        decided = _decided_at(self.cut, cells.filter(pl.col(ESTIMATE).is_not_null()), by, sums)
        missing = cells.filter(pl.col(ESTIMATE).is_null()).with_columns(pl.lit(None, pl.Boolean).alias(ESTIMATE))
        missing = missing.join(pl.DataFrame({THRESHOLD: self.cut.values}), how="cross")
        parts = [decided, missing.select(decided.columns)]
        if HIDDEN in self.cells.columns:
            # partly suppressed cells are unknown at every threshold
            hidden = self.cells.filter(pl.col(HIDDEN) > 0).group_by(by).agg(pl.col(HIDDEN).sum())
            sides, values = pl.DataFrame({ESTIMATE: [False, True]}), pl.DataFrame({THRESHOLD: self.cut.values})
            parts.append(hidden.join(sides, how="cross").join(values, how="cross"))
            sums.append(HIDDEN)
        every = pl.concat(parts, how="diagonal_relaxed").rename({THRESHOLD: f"k{len(self.keys)}"})
        every = every.with_columns(pl.col(sums).fill_null(0))
        keys = (*self.keys, Key(Column(THRESHOLD), "threshold"))
        cells = every.select(*key_names(keys), *LABELS, *sums)
        return replace(self, cells=cells, keys=keys, needs=Needs(), rows=None)

    def at_each_point(self) -> Tally:
        """The tally with the evaluation time, or the level of a quantile, as an additional key if there are several."""
        forecast = self.forecast
        if forecast is None or not forecast.points or self.is_at_points:
            return self
        cells: list[pl.DataFrame] = []
        rows: list[pl.DataFrame] = []
        for index, point in enumerate(forecast.points):
            of_point = [column for column in self.cells if point_of(column.name)[1] in (None, index)]
            sums = pl.DataFrame([column.alias(point_of(column.name)[0]) for column in of_point])
            cells.append(_with_presence(sums, forecast, pl.col(presence_key(forecast)).str.slice(index, 1) == "1"))
            if self.rows is not None:
                columns = {AT_POINT: pl.col(forecast.names[index]), TIME_AT_POINT: pl.lit(point, pl.Float64)}
                if (weight := forecast.weight_names[index]) in self.rows.columns:
                    columns[WEIGHT_AT_POINT] = pl.col(weight)
                kept = self.rows.with_columns(**columns)
                rows.append(kept.drop(*forecast.names, *forecast.weight_names, strict=False))
        if len(cells) == 1:
            return replace(self, cells=cells[0], rows=rows[0] if rows else None, is_at_points=True)
        keys = (*self.keys, Key(Column(THRESHOLD), "threshold"))
        values = [pl.lit(point, pl.Float64).alias(f"k{len(self.keys)}") for point in forecast.points]
        every = pl.concat(part.with_columns(value) for part, value in zip(cells, values, strict=True))
        every = every.select(*key_names(keys), pl.exclude(key_names(keys)))
        rows = [part.with_columns(value) for part, value in zip(rows, values, strict=False)]
        return replace(self, cells=every, keys=keys, rows=pl.concat(rows) if rows else None, is_at_points=True)

    def over_points(self) -> Tally:
        """The tally with the averages of sums over evaluation times, or levels of quantiles."""
        if self.forecast is None:
            return self
        of_last = tuple(term.column for term in self.needs.terms if term.at_last_point)
        parts: dict[str, list[pl.Expr]] = {}
        for name in self.cells.columns:
            column, point = point_of(name)
            if point is not None and column.startswith(of_last):
                parts[column] = [pl.col(name)]
            elif point is not None:
                parts.setdefault(column, []).append(pl.col(name) * self.forecast.coefficients[point])
        averages = {column: pl.sum_horizontal(terms, ignore_nulls=False) for column, terms in parts.items()}
        of_points = [name for name in self.cells.columns if point_of(name)[1] is not None]
        cells = self.cells.with_columns(**averages).drop(of_points)
        if not self.forecast.points:
            return replace(self, cells=cells)
        has_all = ~pl.col(presence_key(self.forecast)).str.contains("0")
        return replace(self, cells=_with_presence(cells, self.forecast, has_all), rows=self._rows_over_points())

    def _rows_over_points(self) -> pl.DataFrame | None:
        """The kept rows with arrays of their predictions, and of their censoring weights, at all evaluation times."""
        forecast = self.forecast
        if self.rows is None or forecast is None:
            return self.rows
        columns = {AT_POINT: pl.concat_arr(forecast.names)}
        columns[TIME_AT_POINT] = pl.concat_arr([pl.lit(point, pl.Float64) for point in forecast.points])
        if forecast.weight_names[0] in self.rows.columns:
            columns[WEIGHT_AT_POINT] = pl.concat_arr(forecast.weight_names)
        return self.rows.with_columns(**columns)

    def remarks(self) -> list[str]:
        """Sentences on outer groups where more or less than the requested rows are selected."""
        if self.cut is None or self.cut.option == "threshold" or HIDDEN in self.cells.columns:
            return []
        tally = self.at_each_cut()
        by = tally.outer_names
        weighed = self.cut.option == "top_fraction" and self.weights is not None
        measure = "w" if weighed else "n"
        # where there are several values, they are the last key
        value = pl.col(by[-1]) if self.cut.several else pl.lit(self.cut.values[0])
        scored = tally.cells.filter(pl.col(ESTIMATE).is_not_null()).with_columns(value.alias("value"))
        selected = pl.col(measure).filter(pl.col(ESTIMATE)).sum().alias("selected")
        totals = scored.group_by(*by, "value").agg(selected, pl.col(measure).sum().alias("all"))
        table = totals.sort(by, nulls_last=True)
        names = [key.column.name for key in tally.outer if key.role == "outer"]
        groups: list[str] = []
        for row in table.rows():
            keys = [f"{name}={value!r}" for name, value in zip(names, row, strict=False)]
            groups.append(f" ({', '.join(keys)})" if keys else "")
        table = table.with_columns(pl.Series("group", groups, dtype=pl.String))
        return self.cut.remarks(table, weighed=weighed)

    def __radd__(self, other: object) -> Tally:
        """Add to the 0 that `sum()` starts with."""
        return self if other == 0 else NotImplemented

    def __add__(self, other: Tally) -> Tally:
        """Merge by key, never by position."""
        return add_up([self, other]) if isinstance(other, Tally) else NotImplemented  # pyright: ignore[reportUnnecessaryIsInstance] - user input

    @cached_property
    def kinds(self) -> dict[str, pl.DataType]:
        """The dtypes of its columns, cached because they are slow to compute for many levels."""
        return dict(zip(self.cells.columns, self.cells.dtypes, strict=True))

    @property
    def counted_by(self) -> list[str]:
        """The columns that cells are counted by."""
        return self.cells.columns[: self.cells.columns.index("n")]

    @property
    def definition(self) -> tuple[object, ...]:
        """The settings of the count; only tallies with the same settings add up."""
        return (
            self.keys, self.truth, self.estimate, self.cut, self.weights, self.scores, self.needs, self.sides,
            self.design, self.forecast, self.judge, self.suppression,
        )  # fmt: skip

    @property
    def names_of_labels(self) -> dict[str, str]:
        """The user's names of the columns that cells are counted by."""
        names = {f"k{index}": key.column.name for index, key in enumerate(self.keys)}
        for label, column in ((TRUTH, self.truth), (ESTIMATE, self.estimate)):
            if column is not None:
                names[label] = column.name
        return names

    def check_fits(self, other: Tally) -> None:
        """Refuse another tally that cannot be added to this one."""
        if other.definition != self.definition:
            msg = "Only tallies of the same columns, keys, weights, threshold and metrics can be added."
            raise ArgumentError(msg)
        reason = self._reads_all_rows
        if reason is not None:
            msg = f"{reason}, so tallies of parts cannot be added; count all rows at once."
            raise ArgumentError(msg)
        self.check_kinds(other)

    @property
    def _reads_all_rows(self) -> str | None:
        """The reason why all rows have to be counted at once; None if there is none."""
        cut, forecast = self.cut, self.forecast
        at_quantiles = [key.column.name for key in self.keys if is_at_quantiles(key.column)]
        reasons = {
            f"`{cut.option if cut else ''}` ranks all rows together": cut and cut.option != "threshold",
            "The threshold is chosen from all rows (unless `operating_point(…, on=…)` has another sample)":
                cut and cut.point,
            f"{listed(at_quantiles)} has the quantiles of each part (unless `quantile_groups(…, on=…)` fixes them)":
                at_quantiles,
            "Lists may have rows in both parts": any(term.lists for term in self.needs.compared),
            "Nearest neighbours are searched among all rows": self.needs.compared,
            "Some metrics, such as mase, depend on the order of rows": self.needs.order,
            "Censoring weights are estimated from all rows together (unless "
            "`survival.outcome(…, censoring=censoring_distribution(…))` gives them)":
                forecast and forecast.censoring is None and self.needs.censored,
            "Rows of a design without clusters are numbered": any(key.column.name == ROW for key in self.keys),
        }  # fmt: skip
        return next((reason for reason, applies in reasons.items() if applies), None)

    def check_kinds(self, other: Tally) -> None:
        """Refuse another tally whose keys or labels are of another kind."""
        for name, shown in self.names_of_labels.items():
            own_kind, other_kind = self.kinds[name], other.kinds[name]
            # labels match by value; of keys, true is no number
            is_truth = [kind == pl.Boolean for kind in (own_kind, other_kind) if kind != pl.Null]
            if not alike(own_kind, other_kind) or (name not in LABELS and len({*is_truth}) > 1):
                msg = (
                    f"The column {shown!r} is {own_kind} in one part and {other_kind} in another; cast it to one type."
                )
                raise ArgumentError(msg)
            if name not in self.declared or name not in other.declared:
                continue
            own_levels, other_levels = self.declared[name], other.declared[name]
            if own_levels != other_levels:
                ends = f"{listed(own_levels)} in one part and {listed(other_levels)} in another"
                msg = f"The levels of the column {shown!r} are {ends}; declare the same levels."
                raise ArgumentError(msg)

    def check_contents(self, like: Tally) -> None:
        """Refuse cells read from a file that no count can produce; `like` is a tally of the expected kind."""
        like.check_kinds(self)
        self._check_columns(self.cells, like.cells.schema)
        if self.rows is not None and like.rows is not None:
            self._check_columns(self.rows, like.rows.schema)
        for least, most in extremes(self.cells.columns):
            low, high = self.cells[least], self.cells[most]
            if not (low.eq_missing(high) | (low < high).fill_null(value=False)).all() or low.is_nan().any():
                msg = f"some values of the column {least!r} are above those of {most!r}, or missing."
                raise ArgumentError(msg)
        if self.cells[self.counted_by].is_duplicated().any():
            msg = "a combination of keys and labels occurs twice."
            raise ArgumentError(msg)
        check_totals(self)

    def _check_columns(self, frame: pl.DataFrame, kinds: pl.Schema) -> None:
        """Refuse columns of other dtypes than those of a count, counts below 0, and labels that are not whole.

        The dtypes of keys and labels, which depend on the data, have been checked before.
        """
        for column in frame:
            name, kind = column.name, column.dtype
            is_count = name in {"n", HIDDEN}
            is_measure = name in _MEASURES
            if is_count:
                accepted = [pl.Int64()]
            elif is_measure:
                accepted = [pl.Int64(), pl.Float64()]
            elif name in self.names_of_labels:
                accepted = [kind]
            else:
                accepted = [kinds[name]]
            if kind not in accepted:
                msg = f"the column {name!r} is {kind}, not {accepted[0]}."
                raise ArgumentError(msg)
            if (is_count or is_measure) and (column.null_count() or not (column.is_finite() & (column >= 0)).all()):
                msg = f"some counts or weights in the column {name!r} are negative or missing."
                raise ArgumentError(msg)
            if name in LABELS and name not in self.declared and kind.is_float() and (column != column.round()).any():
                msg = f"some labels in the column {name!r} are fractional numbers."
                raise ArgumentError(msg)


def _with_presence(cells: pl.DataFrame, forecast: Forecast, present: pl.Expr) -> pl.DataFrame:
    """The cells with a key that is true where rows have predictions, and null where they have none."""
    return cells.with_columns(pl.when(present).then(statement=True).alias(presence_key(forecast)))


def presence_key(forecast: Forecast) -> str:
    """The key of cells that tells by 1 and 0 at which points their rows have predictions."""
    return SCORE if forecast.role == "probs" else ESTIMATE


def _decided_at(cut: Cut, cells: pl.DataFrame, by: list[str], sums: list[str]) -> pl.DataFrame:
    """The sums below and above each threshold, from cells whose estimate counts the thresholds reached."""
    distinct = cells.select(by).unique(maintain_order=True)
    numbered = distinct.with_row_index("row")
    with_rows = cells.join(numbered, on=by, how="left", nulls_equal=True, maintain_order="left")
    values, height = cut.values, len(distinct)
    code = with_rows["row"].to_numpy().astype(np.int64) * (len(values) + 1) + cells[ESTIMATE].to_numpy()
    ascending = np.array(cut.ascending)
    columns: list[pl.Series] = []
    for name in sums:
        table = np.zeros(height * (len(values) + 1), dtype=cells[name].to_numpy().dtype)
        table[code] = cells[name].to_numpy()
        table = table.reshape(height, len(values) + 1)
        # both sides are summed, because subtracting floats would leave dust where there is nothing
        below = table.cumsum(axis=1)[:, ascending]
        above = table[:, ::-1].cumsum(axis=1)[:, ::-1][:, ascending + 1]
        columns.append(pl.Series(name, np.concatenate([below.T.ravel(), above.T.ravel()])))
    is_above = np.repeat([False, True], height * len(values))
    threshold = np.tile(np.repeat(np.array(values), height), 2)
    columns += [pl.Series(ESTIMATE, is_above), pl.Series(THRESHOLD, threshold)]
    keys = distinct[np.tile(np.arange(height), 2 * len(values))]
    return keys.hstack(columns).filter(pl.col("n") > 0)


def alike(one: pl.DataType, other: pl.DataType) -> bool:
    """Check whether values of two dtypes are of one kind: numbers and truth values, text, or times of one sort."""
    if isinstance(one, pl.Enum) and isinstance(other, pl.Enum):
        return one == other
    return _kind_of(one) == _kind_of(other) or pl.Null in (one, other)


def _kind_of(dtype: pl.DataType) -> object:
    """The kind of the values of a dtype; only values of the same kind can be equal."""
    if dtype.is_numeric() or dtype == pl.Boolean:
        return "number"
    return "text" if isinstance(dtype, pl.String | pl.Categorical | pl.Enum) else dtype


def check_tally(value: object) -> None:
    """Refuse anything but a tally."""
    if not isinstance(value, Tally):
        msg = "`compute` needs the result of `tally`; to count and compute in one step, call the metric itself."
        raise ArgumentError(msg)


def add_up(tallies: Sequence[Tally], *, checked: bool = False) -> Tally:
    """Merge tallies of parts of the data by key, never by position, into a tally of the whole.

    `checked` tallies are known to fit.
    """
    check_threads(os.getpid())
    first, *others = tallies
    if not checked:
        for other in others:
            first.check_fits(other)
    declared: dict[str, list[Any]] = {}
    for tally in reversed(tallies):
        declared |= tally.declared
    kept = [tally.rows for tally in tallies if tally.rows is not None]
    # the keys of rows have been checked in the cells
    rows = stacked(kept, {}) if kept else None
    if rows is not None and first.binned:
        rows = rows.group_by(pl.exclude(WEIGHT, SQUARED)).agg(pl.col(WEIGHT, SQUARED).sum())
    total = replace(first, cells=_merged_cells(tallies), rows=rows, declared=declared)
    check_totals(total)
    hidden = total.suppression
    return total if hidden is None else total.suppressed(hidden.bys, hidden.below)


def _merged_cells(tallies: Sequence[Tally]) -> pl.DataFrame:
    """The cells of all, added up where their keys and labels are the same."""
    first, by = tallies[0], tallies[0].counted_by
    parts = [tally.cells for tally in tallies]
    if any(HIDDEN in part.columns for part in parts):
        nothing = pl.lit(0, pl.Int64).alias(HIDDEN)
        parts = [part if HIDDEN in part.columns else part.with_columns(nothing) for part in parts]
    # values of one dtype do not change
    changing: dict[str, str] = {}
    for name, shown in first.names_of_labels.items():
        if any(tally.kinds[name] != first.kinds[name] for tally in tallies):
            changing[name] = shown
    every = stacked(parts, changing)
    merging = [merge(pl.col(name)) for name, merge in merged(every.columns).items() if name not in by]
    if not by:
        return centred(every).select(merging)
    return centred(every, by).group_by(by).agg(merging)


def check_totals(tally: Tally) -> None:
    """Refuse more rows, or more weight, than 64 bits can count."""
    if tally.cells["n"].cast(pl.Float64).sum() >= _MOST_WHOLE:
        msg = "The tally counts more rows than 64 bits can hold."
        raise ArgumentError(msg)
    if tally.weights is not None:
        check_total(tally.cells, tally.weights)


def check_total(cells: pl.DataFrame, weights: Column) -> None:
    """Refuse weights whose sums overflow 64 bits, or overflow floats in formulas that multiply four of them."""
    rows, total, squares = cells.select(pl.col("n", "w", "w2").cast(pl.Float64).sum()).row(0)
    # no sum of so many weights is larger, by the inequality of Cauchy and Schwarz
    wraps = cells.schema["w"].is_integer() and math.sqrt(rows * squares) >= _MOST_WHOLE
    if wraps or (total != 0 and not _LEAST < total < 1 / _LEAST):
        raise WeightError.unsummable(weights.name)

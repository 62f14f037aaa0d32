"""The pass over the data: one `group_by` that makes a tally."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import ColumnError, WeightError, listed
from tidyfair.specs.columns import Column, blaming_expressions, check_features, names_of, roots_of
from tidyfair.specs.forecasts import EVENT, Forecast, is_point
from tidyfair.specs.groups import SIDE, Privileged
from tidyfair.specs.survey_designs import ROLE, Design
from tidyfair.tallies.censoring import with_censoring_weights
from tidyfair.tallies.key_encoding import Levels, whole_levels
from tidyfair.tallies.listed_rows import quantity_in_lists
from tidyfair.tallies.moments import (
    ACTUAL,
    KNOWN_REPLICATES,
    MEASURE,
    PREDICTED,
    SCORE,
    Needs,
    digits_lost,
    ends_of,
    is_weight_column,
    moments,
    of_replicate,
    own_centres,
    quantities,
    replicated,
    score_columns,
    summed,
    weight_columns,
    weights_of_replicates,
)
from tidyfair.tallies.neighbors import other_labels
from tidyfair.tallies.pushdown import distinct_rows, number_of_distinct_rows, pushed_bins, pushed_down
from tidyfair.tallies.row_counts import Engine, binned, count_in_memory, engine_for, grouped
from tidyfair.tallies.source import (
    FREQUENCY,
    MANY_ROWS,
    WEIGHT,
    Source,
    check_transfer,
    engine_errors,
    in_memory,
    whole_frequencies,
)
from tidyfair.tallies.tally import (
    BLOCK,
    BLOCKS,
    LABELS,
    ROW,
    TRUTH,
    Key,
    Scores,
    Tally,
    check_total,
    key_names,
    presence_key,
)
from tidyfair.tallies.thresholds import ESTIMATE, Cut

_Wanted: TypeAlias = "dict[str, tuple[str, Column]]"
"""The columns that are read, `{internal name: (role, column)}`."""
_SAMPLE = 1_000
_MOST_REPEATED, _MOST_COUNTED = 5 * 10**7, 2**62
_EXACT = 2.0**53
"""Floats represent all whole numbers below this exactly."""
_SMALLEST, _LARGEST = 1e-100, 1e100
"""Squares of numbers between these limits can be weighted and summed."""
_AUTOMATIC_BINS = 2**12
_FEW_ROWS = 20_000
"""At most so many rows are parts of their own, where the tally is not kept."""


def count(
    source: Source,
    keys: tuple[Key, ...],
    *,
    truth: Column | None,
    estimate: Column | None,
    scores: Scores | None = None,
    cut: Cut | None = None,
    weights: Column | None = None,
    frequencies: Column | None = None,
    needs: Needs = Needs(),  # noqa: B008 - frozen
    blocks: int | None = None,
    single_rows: bool = False,
    design: Design | None = None,
    forecast: Forecast | None = None,
    metrics: Sequence[str] = (),
    many: Literal["bin", "warn", "transfer"] = "warn",
) -> Tally:
    """Count the rows of a frame in one pass; with a cut the labels are made from the score.

    With `blocks`, a seed, rows are assigned to random parts, which are an additional key; with `single_rows` each row
    is a part unless there are very many. With `frequencies` each row
    stands for that many equal rows. With a `design` in which rows are drawn one by one their number is one more key,
    where counts do not show how much sums vary.

    If another engine has very `many` distinct rows that have to be read, their scores are counted in bins where they
    can be; or they are transferred, with a warning or without. Messages name the `metrics`.
    """
    declared = source.levels_of_numbers({TRUTH: truth, ESTIMATE: estimate})
    empty = Tally(
        pl.DataFrame(), keys, truth, estimate, cut, weights, scores, needs, sides=source.sides, declared=declared,
        design=design, forecast=forecast,
    )  # fmt: skip
    order = _Order(empty, frequencies, blocks, single_rows, tuple(metrics), many)
    if source.is_elsewhere:
        with engine_errors(source.frame):
            return _elsewhere(source, order)
    source = source if source.kind == "polars" else source.here(order.every)
    if order.of_labels_only and (cells := _labels_in_memory(source, order)) is not None:
        return replace(empty, cells=_arranged(cells, keys))
    return _here(source, order)


@dataclass(frozen=True, eq=False)
class _Order:
    """The specification of one pass over the rows: the columns to be read, and the tally to be made."""

    tally: Tally
    """The tally to be made, without cells."""
    frequencies: Column | None
    blocks: int | None
    single_rows: bool
    metrics: tuple[str, ...]
    """The names of the metrics, for messages."""
    many: Literal["bin", "warn", "transfer"]
    """The way to treat very many distinct rows of another engine."""

    @cached_property
    def wanted(self) -> _Wanted:
        """The columns to count or sum."""
        tally, needs = self.tally, self.tally.needs
        wanted: _Wanted = {}
        for index, key in enumerate(tally.keys):
            role = key.role if key.role in {"by", "cluster"} else "group_by"
            if role == "cluster" and tally.design is not None:
                role = ROLE
            wanted[f"k{index}"] = (role, key.column)
        optional = [
            (ACTUAL if needs.numbers else TRUTH, "truth", tally.truth),
            (PREDICTED if needs.numbers else ESTIMATE, "estimate", tally.estimate),
            (WEIGHT, tally.role_of_weights, tally.weights),
            (FREQUENCY, "frequency_weights", self.frequencies),
        ]
        for name, role, column in optional:
            if column is not None:
                wanted[name] = (role, column)
        if tally.scores is not None and (needs.scores or tally.cut is not None):
            wanted |= _numbered("s", "probs", tally.scores.columns)
        if tally.forecast is not None:
            wanted |= tally.forecast.wanted
        wanted |= _numbered("v", ROLE, self.replicates)
        roles = {column: term.role_of(column) for term in needs.compared for column in term.compared_by}
        for index, column in enumerate(self.features):
            wanted[f"f{index}"] = (roles[column], column)
        return wanted

    @cached_property
    def groups(self) -> _Wanted:
        """The columns whose groups have thresholds of their own."""
        cut = self.tally.cut
        columns = cut.by if cut else ()
        return _numbered("t", "threshold", columns)

    @property
    def every(self) -> _Wanted:
        """All columns that are read."""
        return self.wanted | self.groups

    @cached_property
    def features(self) -> list[Column]:
        """The columns that rows are compared by, in distances or lists."""
        columns: dict[Column, None] = {}
        for term in self.tally.needs.compared:
            columns |= dict.fromkeys(term.compared_by)
        return list(columns)

    @property
    def replicates(self) -> tuple[Column, ...]:
        """The columns of replicate weights."""
        return () if self.tally.design is None else self.tally.design.replicates

    @property
    def numbers_rows(self) -> bool:
        """True if the row number is an additional key, because single rows were sampled and are summed."""
        tally = self.tally
        has_sums = tally.needs.numbers or tally.needs.scores
        return tally.design is not None and tally.design.samples_rows and has_sums

    @property
    def read_scores(self) -> Scores | None:
        """The scores that are read other than by a threshold."""
        return self.tally.scores if self.tally.needs.scores else None

    @property
    def bins(self) -> int | None:
        """Number of bins of the scores, or None."""
        return self.tally.scores.bins if self.tally.scores else None

    @property
    def labels(self) -> dict[str, Column]:
        """The columns of labels whose values must look like labels."""
        tally = self.tally
        labels: dict[str, Column] = {}
        if tally.needs.numbers:
            return labels
        for name, column in ((TRUTH, tally.truth), (ESTIMATE, tally.estimate)):
            if column is not None and name not in tally.declared:
                labels[name] = column
        return labels

    @property
    def of_labels_only(self) -> bool:
        """True where only rows are counted, by keys and labels, and nothing is summed."""
        tally = self.tally
        unweighted = tally.weights is None and self.frequencies is None
        return unweighted and tally.cut is None and self.blocks is None and not tally.needs.anything

    @property
    def repeats_rows(self) -> bool:
        """True where a row with a frequency is repeated: sums of equal rows are products, ranks are not."""
        tally = self.tally
        looks_at_rows = bool(tally.needs.rows or tally.needs.compared or self.bins)
        ranked = tally.cut is not None and tally.cut.option != "threshold"
        counts_apart = self.blocks is not None or self.numbers_rows
        return counts_apart or looks_at_rows or tally.weights is not None or ranked


def _numbered(prefix: str, role: str, columns: Iterable[Column]) -> _Wanted:
    """Columns in one role, under a prefix and their number."""
    return {f"{prefix}{index}": (role, column) for index, column in enumerate(columns)}


def _labels_in_memory(source: Source, order: _Order) -> pl.DataFrame | None:
    """Counts of labels straight from columns in memory; None where the columns, or checks of them, need a query."""
    in_memory = source.columns_in_memory(order.wanted) if order.wanted else None
    if in_memory is None:
        return None
    columns, schema = in_memory
    return count_in_memory(columns, schema, "n")


def _here(source: Source, order: _Order) -> Tally:
    """Count a polars frame by queries."""
    tally, wanted = order.tally, order.wanted
    engine = engine_for(source.rows)
    frame = source.select(order.every)
    exact = _exact(frame, wanted)
    frame = _as_numbers(frame, wanted, decided=tally.cut is not None and not tally.needs.scores)
    frame = _weighable(frame, tally, order.frequencies, engine, repeat=order.repeats_rows)
    frame = _with_replicates(frame, order)
    frame = _with_censoring(frame, order)
    frame = _decided(frame, order, engine)
    known = _known_labels(frame, order, engine)
    if order.blocks is not None:
        with blaming_expressions(wanted):
            frame = _in_blocks(frame.collect(engine=engine), order).lazy()
        tally = replace(tally, keys=(*tally.keys, Key(Column(BLOCK), "cluster")))
    if order.numbers_rows:
        frame = frame.with_row_index(f"k{len(tally.keys)}")
        tally = replace(tally, keys=(*tally.keys, Key(Column(ROW), "cluster")))
    frame, rows = _with_rows(frame, order, tally.keys, engine)
    cells = None
    if order.bins and tally.scores is not None:
        rows, cells = _bins(frame, order, tally.keys, source.rows)
    if cells is None:
        cells = _cells(frame, wanted, tally.needs, order.read_scores, known, source.rows, tally.forecast)
    return _finished(replace(tally, rows=rows), cells, wanted, exact)


def _with_censoring(frame: pl.LazyFrame, order: _Order) -> pl.LazyFrame:
    """Check survival times and add the censoring weights of their rows."""
    tally = order.tally
    forecast = tally.forecast
    if forecast is None or not forecast.is_survival or tally.truth is None:
        return frame
    with blaming_expressions(order.wanted):
        rows = with_censoring_weights(
            frame, forecast, tally.truth, key_names(tally.keys, "outer"), weighted=tally.needs.censoring,
            by_row=tally.needs.event_censoring,
        )  # fmt: skip
    return rows.lazy()


def _decided(frame: pl.LazyFrame, order: _Order, engine: Engine) -> pl.LazyFrame:
    """Add the labels that a threshold derives from scores."""
    tally, cut = order.tally, order.tally.cut
    if cut is None:
        return frame
    outer = key_names(tally.keys, "outer")
    with blaming_expressions(order.wanted):
        _check_scores(frame, cut, tally.scores, engine)
        decided = cut.decide(frame, outer, list(order.groups), names_of(cut.by))
    return decided.drop(list(order.groups))


def _with_rows(
    frame: pl.LazyFrame, order: _Order, keys: tuple[Key, ...], engine: Engine
) -> tuple[pl.LazyFrame, pl.DataFrame | None]:
    """The frame, read once if single rows are needed; and its rows, if the tally keeps them."""
    needs = order.tally.needs
    kept = needs.rows and not order.bins
    if not (needs.compared or kept):
        return frame, None
    with blaming_expressions(order.wanted):
        rows = frame.collect(engine=engine)
    rows = _compared(rows, needs, order.features, keys, order.tally.sides)
    return rows.lazy(), rows if needs.rows else None


def _bins(
    frame: pl.LazyFrame, order: _Order, keys: tuple[Key, ...], rows: int | None
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Rows counted by bins of their scores and, if nothing else is to be counted, the cells."""
    scores, needs = order.tally.scores, order.tally.needs
    names = score_columns(len(scores.columns)) if scores else []
    own = [*key_names(keys), TRUTH] if order.tally.truth is not None else key_names(keys)
    with blaming_expressions(order.wanted):
        counts, cells = binned(frame, own, names, order.bins or 0, rows)
        if cells is None or needs.terms or {*frame.collect_schema()} != {*own, *names}:
            return counts, None
        ends = frame.select(pl.lit(value=True).alias(SCORE), *summed(quantities(needs, len(names), weighted=False)))
        return counts, cells.join(ends.collect(engine=engine_for(rows)), how="cross")


def _elsewhere(source: Source, order: _Order) -> Tally:
    """Count with another engine or, if sums are not enough, count its distinct rows.

    Columns are checked as those of any frame are, on a polars frame without rows.
    """
    tally, needs, cut = order.tally, order.tally.needs, order.tally.cut
    if needs.order:
        msg = (
            f"Some metrics, such as mase, depend on the order of rows, which {source.engine} does not keep; pass the "
            f"rows in their order as a frame in memory: `{in_memory(source.frame)}`."
        )
        raise ColumnError(msg)
    for role, column in order.every.values():
        column.check(source.columns, role)
    roots = roots_of(order.every)
    source = source.with_levels(roots)
    no_rows = source.emptied(roots).select(order.every)
    exact = _exact(no_rows, order.wanted)
    no_rows = _as_numbers(no_rows, order.wanted, decided=cut is not None and not needs.scores)
    _weighable(no_rows, tally, None, "in-memory", repeat=False)
    _with_replicates(no_rows, order)
    return _counted_there(source, order, exact) or _of_distinct_rows(source, order, exact)


def _counted_there(source: Source, order: _Order, exact: frozenset[str]) -> Tally | None:
    """The tally counted by another engine; None if it needs rows."""
    tally, needs = order.tally, order.tally.needs
    if order.blocks is not None or order.numbers_rows or tally.forecast is not None:
        return None
    scores = len(order.read_scores.columns) if order.read_scores else 0
    sums_needed = replace(needs, rows=False) if order.bins else needs
    cells = pushed_down(source, order.every, sums_needed, tally.cut, scores, tally.declared)
    if cells is None or (tally.scores and tally.scores.binned_for and not _are_shares(cells, scores)):
        return None
    rows = pushed_bins(source, order.wanted, order.bins) if order.bins else None
    return _finished(replace(tally, rows=rows), cells, order.wanted, exact)


def _are_shares(cells: pl.DataFrame, scores: int) -> bool:
    """Check whether all scores lie between 0 and 1, as those that are counted in bins must."""
    ends = [end for name in score_columns(scores) for end in ends_of(name)]
    return bool(cells.select(pl.all_horizontal(pl.col(ends).is_between(0, 1).all())).item())


def _of_distinct_rows(source: Source, order: _Order, exact: frozenset[str]) -> Tally:
    """The tally of the distinct rows of another engine or, if these are very many, of bins of their scores."""
    most = None if order.many == "transfer" else MANY_ROWS
    transferred = distinct_rows(source, order.every, most)
    if transferred is not None:
        rows, often = transferred
        return _here(rows, replace(order, frequencies=often))
    if order.many == "bin" and order.tally.scores is not None:
        scores = replace(order.tally.scores, bins=_AUTOMATIC_BINS, binned_for=source.engine)
        in_bins = _counted_there(source, replace(order, tally=replace(order.tally, scores=scores)), exact)
        if in_bins is not None:
            return in_bins
    _warn_of_transfer(source, order)
    return _of_distinct_rows(source, replace(order, many="transfer"), exact)


def _warn_of_transfer(source: Source, order: _Order) -> None:
    """Warn that many rows are transferred, and refuse too many."""
    number = number_of_distinct_rows(source, order.every)
    purpose = "intervals of " if order.blocks is not None else ""
    purpose += ", ".join(order.metrics) or "this"
    rows = f"distinct rows of the columns {listed(roots_of(order.every))} for {purpose}"
    check_transfer(source.frame, number, rows, "Count a sample of the rows or round the numbers")


def _finished(tally: Tally, cells: pl.DataFrame, wanted: _Wanted, exact: frozenset[str]) -> Tally:
    """Check the cells and put them into the tally."""
    if tally.weights is not None:
        _check_weights(cells, tally.weights, tally.role_of_weights)
        cells = cells.drop("least", "known")
        cells = _checked_replicates(cells, tally)
    cells = _arranged(cells, tally.keys)
    _check_numbers(cells, wanted, exact)
    return replace(tally, cells=_within_bins(cells, tally.scores))


def recounted(tally: Tally, rows: pl.DataFrame, keys: tuple[Key, ...]) -> Tally:
    """A tally of other rows than the kept ones, with the same columns except the keys."""
    scores = tally.scores if tally.needs.scores else None
    cells = _cells(rows.lazy(), {}, tally.needs, scores, _made_by(tally.cut), len(rows), tally.forecast)
    cells = _arranged(cells.drop("least", "known", strict=False), keys)
    return replace(tally, cells=cells, keys=keys, rows=rows)


def _made_by(cut: Cut | None) -> dict[str, Levels]:
    """The levels of the estimates at a list of thresholds."""
    return {ESTIMATE: cut.codes} if cut is not None and cut.codes is not None else {}


def _arranged(cells: pl.DataFrame, keys: tuple[Key, ...]) -> pl.DataFrame:
    """The cells with keys and labels first; absent labels are null."""
    for name in LABELS:
        if name not in cells.columns:
            cells = cells.with_columns(pl.lit(None).alias(name))
    first = [*key_names(keys), *LABELS]
    if SCORE in cells.columns:
        first.append(SCORE)
    order = list(dict.fromkeys([*first, *cells.columns]))
    # by their names, which is no query
    return cells if order == cells.columns else cells[order]


def _cells(
    frame: pl.LazyFrame,
    wanted: _Wanted,
    needs: Needs,
    scores: Scores | None,
    known: dict[str, Levels],
    rows: int | None,
    forecast: Forecast | None = None,
) -> pl.DataFrame:
    """One row for each combination of keys and labels, with everything that is summed.

    `known` are the possible labels, `rows` is the number of rows in memory.
    """
    columns = frame.collect_schema().names()
    scored = len(scores.columns) if scores is not None else 0
    frame = _with_presence(frame, columns, needs, scored, forecast)
    sums = _counts(columns)
    replicates = sum(map(is_weight_column, columns))
    # there are frequencies only where there are no weights
    measure = None
    if WEIGHT in columns:
        measure = WEIGHT
    elif FREQUENCY in columns:
        measure = FREQUENCY
    weighted = measure is not None
    if needs.anything:
        sums += summed(quantities(needs, scored, weighted=weighted, forecast=forecast))
        sums += summed(replicated(quantities(needs, scored, weighted=False, forecast=forecast), replicates))
        if measure is not None:
            frame = frame.with_columns(pl.col(measure).cast(pl.Float64).alias(MEASURE))
        columns = frame.collect_schema().names()
    if replicates:
        sums += summed(weights_of_replicates(replicates))
        has_all = pl.all_horizontal(pl.col(weight_columns(replicates)).is_not_null())
        sums.append(has_all.sum().cast(pl.Int64).alias(KNOWN_REPLICATES))
    summed_columns = {WEIGHT, FREQUENCY, MEASURE, ACTUAL, PREDICTED, *score_columns(len(columns))}
    summed_columns |= {*weight_columns(replicates)}
    summed_columns |= forecast.row_columns if forecast is not None else set()
    for term in needs.compared:
        summed_columns.add(term.column)
    by = [name for name in columns if name not in summed_columns]
    with blaming_expressions(wanted):
        if needs.moments:
            return _with_moments(frame, by, sums, known, rows, weighted=weighted, replicates=replicates)
        return grouped(frame, by, sums, known, rows)


def _counts(columns: list[str]) -> list[pl.Expr]:
    """Number of rows of a cell, and their weights."""
    counts = pl.col(FREQUENCY).sum() if FREQUENCY in columns else pl.len()
    sums = [counts.cast(pl.Int64).alias("n")]
    if WEIGHT in columns:
        sums += [pl.col(WEIGHT).sum().alias("w"), pl.col(WEIGHT).cast(pl.Float64).pow(2).sum().alias("w2")]
        sums += [pl.col(WEIGHT).min().alias("least"), pl.col(WEIGHT).count().alias("known")]
    return sums


def _with_presence(
    frame: pl.LazyFrame, columns: list[str], needs: Needs, scored: int, forecast: Forecast | None
) -> pl.LazyFrame:
    """Add keys that are true where scores and numbers are present, and null where they are missing, as labels are."""
    added: dict[str, pl.Expr] = {}
    if scored:
        is_scored = pl.all_horizontal(pl.col(score_columns(scored)).is_not_null())
        added[SCORE] = pl.when(is_scored).then(statement=True)
    if needs.numbers:
        for key, number in ((TRUTH, ACTUAL), (ESTIMATE, PREDICTED)):
            if number in columns:
                added[key] = pl.when(pl.col(number).is_not_null()).then(statement=True)
            else:
                added[number] = pl.lit(None, pl.Float64)
    if forecast is not None and forecast.points:
        # each point has rows of its own
        present = [pl.when(pl.col(name).is_null()).then(pl.lit("0")).otherwise(pl.lit("1")) for name in forecast.names]
        added[presence_key(forecast)] = pl.concat_str(present)
    return frame.with_columns(**added) if added else frame


def _with_moments(
    frame: pl.LazyFrame, by: list[str], sums: list[pl.Expr], known: dict[str, Levels], rows: int | None, *,
    weighted: bool, replicates: int,
) -> pl.DataFrame:  # fmt: skip
    """The cells with sums about a centre: that of some rows or, where groups lie far apart, the mean of each."""
    sample = frame.select(ACTUAL, PREDICTED).head(_SAMPLE).collect().median()
    truth, estimate = map(pl.lit, sample.fill_null(0.0).row(0))
    about_sample = summed(moments(truth, estimate, weighted=weighted))
    about_sample += summed(replicated(moments(truth, estimate, weighted=False), replicates))
    cells = grouped(frame, by, [*sums, *about_sample], known, rows)
    cells = cells.with_columns(truth_centre=truth, estimate_centre=estimate)
    if not digits_lost(cells):
        return cells
    own = own_centres(cells, by)
    if by:
        frame = frame.join(own.lazy(), on=by, how="left", nulls_equal=True)
    else:
        frame = frame.with_columns(**own.row(0, named=True))
    truth, estimate = pl.col("truth_centre"), pl.col("estimate_centre")
    about_means = summed(moments(truth, estimate, weighted=weighted))
    about_means += summed(replicated(moments(truth, estimate, weighted=False), replicates))
    return grouped(frame, by, [*sums, *about_means, truth.first(), estimate.first()], known, rows)


def _in_blocks(rows: pl.DataFrame, order: _Order) -> pl.DataFrame:
    """Assign the rows of each outer group to random blocks, whatever their order: equal rows may be swapped.

    They are in the order of their numbers first, so that the other metrics and groups of a call hardly matter.
    """
    keys = key_names(order.tally.keys)
    numbers = [name for name in rows.columns if name not in {*keys, *LABELS, WEIGHT, FREQUENCY}]
    others = [name for name in rows.columns if name not in {*keys, *numbers}]
    rows = rows.sort([*numbers, *others, *keys], nulls_last=True)
    count = _FEW_ROWS if order.single_rows and len(rows) <= _FEW_ROWS else BLOCKS
    outer = key_names(order.tally.keys, "outer")
    place, size = pl.int_range(pl.len()), pl.len()
    if outer:
        place, size = place.over(outer), size.over(outer)
    places = rows.select(place.alias("place"), size.alias("size"))
    position, sizes, blocks = places["place"].to_numpy(), places["size"].to_numpy(), np.zeros(len(rows))
    for own in np.unique(sizes).tolist():
        shuffled = np.random.default_rng(order.blocks).permutation(own) % count
        blocks[sizes == own] = shuffled[position[sizes == own]]
    blocks = blocks.astype(np.int16)
    return rows.with_columns(pl.Series(f"k{len(keys)}", blocks))


def _compared(
    rows: pl.DataFrame, needs: Needs, features: list[Column], keys: tuple[Key, ...], sides: Privileged | None
) -> pl.DataFrame:
    """Add the quantities for which a row is compared with others of its outer group."""
    if not needs.compared:
        return rows
    names = {f"f{index}": column.name for index, column in enumerate(features)}
    of_distances = {
        f"f{features.index(column)}" for term in needs.compared if term.neighborhood for column in term.compared_by
    }
    check_features(rows, {name: names[name] for name in names if name in of_distances}, "distances need")
    with_sides = rows
    together = key_names(keys, "outer")
    if sides is not None:
        conditions = key_names(keys, "side")
        with_sides = rows.with_columns(sides.side(rows[conditions]).alias(SIDE))
        together.append(SIDE)
    for term in needs.compared:
        columns = [f"f{features.index(column)}" for column in term.compared_by]
        if term.neighborhood is not None:
            value = other_labels(with_sides, columns, ESTIMATE, together, term.neighborhood.n_neighbors)
        else:
            undivided_by = [key.column for key in keys if (term, key.column) in needs.undivided]
            groups = dict(zip(_names_of_keys(keys, undivided_by), names_of(undivided_by), strict=True))
            value = quantity_in_lists(with_sides, term, columns, together, groups, numbers=needs.numbers)
        rows = rows.with_columns(value.alias(term.column))
    return rows.drop(names)


def _names_of_keys(keys: tuple[Key, ...], columns: Iterable[Column]) -> list[str]:
    """The internal names of the keys of some columns."""
    names = {key.column: f"k{index}" for index, key in enumerate(keys)}
    return [names[column] for column in columns]


def _as_numbers(frame: pl.LazyFrame, wanted: _Wanted, *, decided: bool) -> pl.LazyFrame:
    """Cast scores and numbers to floats, and refuse columns of other values."""
    schema = frame.collect_schema()
    names = _names_of_numbers(wanted)
    for name in names:
        role, column = wanted[name]
        if not (schema[name].is_numeric() or schema[name] == pl.Null):
            why = "regression metrics read numbers"
            if EVENT in wanted:
                why = "predicted times and risks are numbers"
            elif is_point(name):
                why = "quantiles and the ends of intervals are numbers"
            if EVENT in wanted and name == ACTUAL:
                why = "survival times are numbers, such as `pl.col(…).dt.total_days()` of a duration"
            if role == "probs":
                why = "a threshold needs numbers" if decided else "scores are numbers"
            msg = f"`{role}`: the column {column.name!r} is {schema[name]}; {why}."
            raise ColumnError(msg)
    return frame.with_columns(pl.col(names).cast(pl.Float64)) if names else frame


def _exact(frame: pl.LazyFrame, wanted: _Wanted) -> frozenset[str]:
    """The integer or decimal columns of scores and numbers, which floats may not represent exactly."""
    schema = frame.collect_schema()
    exact: set[str] = set()
    for name in _names_of_numbers(wanted):
        if schema[name].is_integer() or schema[name].is_decimal():
            exact.add(name)
    return frozenset(exact)


def _names_of_numbers(wanted: _Wanted) -> list[str]:
    """The columns of scores, and of truth and estimate where these are numbers."""
    numbers: list[str] = []
    for name, (role, _) in wanted.items():
        if name in {ACTUAL, PREDICTED} or role == "probs" or is_point(name):
            numbers.append(name)
    return numbers


def _check_numbers(cells: pl.DataFrame, wanted: _Wanted, exact: frozenset[str]) -> None:
    """Refuse numbers that floats cannot represent exactly or square."""
    sizes: dict[str, float] = {}
    for name, (role, column) in wanted.items():
        ends = list(ends_of(name))
        # an infinite survival time is one that half of the survival curve does not reach
        if ends[0] not in cells.columns or (name == PREDICTED and EVENT in wanted):
            continue
        size = cells.select(pl.max_horizontal(pl.col(ends).abs().max())).item()
        if size is None:
            continue
        if name in {ACTUAL, PREDICTED}:
            sizes[name] = size
        check_size(size, role, column, is_exact=name in exact)
    largest = max(sizes.values(), default=0.0)
    if 0 < largest < _SMALLEST:
        role, column = wanted[max(sizes, key=sizes.__getitem__)]
        msg = (
            f"`{role}`: all numbers in the column {column.name!r} are {largest:.2g} or smaller, so their squares are "
            "rounded to zero; multiply truth and estimate by the same factor."
        )
        raise ColumnError(msg)


def check_size(size: float, role: str, column: Column, *, is_exact: bool) -> None:
    """Refuse a column by the absolute value of its largest number."""
    subject = f"`{role}`: the column {column.name!r} holds"
    if math.isinf(size):
        msg = f"{subject} infinite values; metrics need finite numbers."
        raise ColumnError(msg)
    if size > _LARGEST:
        msg = (
            f"{subject} numbers as large as {size:.2g}, whose squares cannot be summed; divide all numbers by the "
            "same factor."
        )
        raise ColumnError(msg)
    if is_exact and size >= _EXACT:
        changed = "truth and estimate" if role in {"truth", "estimate"} else "it"
        msg = (
            f"{subject} numbers as large as {size:.2g}, but floats are not exact for whole numbers from 2**53 on; "
            f"subtract the same number from all of {changed}, or cast the column to Float64 if its last digits do not "
            "matter."
        )
        raise ColumnError(msg)


def _within_bins(cells: pl.DataFrame, scores: Scores | None) -> pl.DataFrame:
    """Refuse scores outside the bins, and drop the extremes of binned scores."""
    if scores is None or scores.bins is None:
        return cells
    extremes: list[str] = []
    for index, column in enumerate(scores.columns):
        least, most = ends_of(f"s{index}")
        extremes += [least, most]
        low, high = cells.select(pl.col(least).min(), pl.col(most).max()).row(0)
        if low is not None and (low < 0 or high > 1):
            msg = (
                f"`score_bins` needs scores between 0 and 1, but {column.name!r} holds values from {low:g} to "
                f"{high:g}; rescale them, for example with `sigmoid(…)`."
            )
            raise ColumnError(msg)
    # the extremes of a cell of one row are its score
    return cells.drop(extremes)


def _known_labels(frame: pl.LazyFrame, order: _Order, engine: Engine) -> dict[str, Levels]:
    """The possible labels, as far as known before counting; numbers that are not whole are refused."""
    schema, known = frame.collect_schema(), _made_by(order.tally.cut)
    floats = [name for name in order.labels if schema[name].is_float() or schema[name].is_decimal()]
    if not floats:
        return known
    label = pl.col(floats)
    broken = (label != label.round(0)).any().name.prefix("broken ")
    query = frame.select(broken, label.min().name.prefix("least "), label.max().name.prefix("most "))
    summary = query.collect(engine=engine).row(0, named=True)
    for name in floats:
        if summary[f"broken {name}"]:
            raise ColumnError.continuous(name, order.labels[name].name)
        levels = whole_levels(schema[name], summary[f"least {name}"], summary[f"most {name}"])
        if levels is not None:
            known[name] = levels
    return known


def _check_scores(frame: pl.LazyFrame, cut: Cut, scores: Scores | None, engine: Engine) -> None:
    """Refuse scores on another scale than the thresholds, before the thresholds are applied."""
    if cut.is_of_probabilities and scores is not None:
        score = pl.col("s0")
        low, high = frame.select(score.min().alias("low"), score.max().alias("high")).collect(engine=engine).row(0)
        cut.check_scores(low, high, scores.columns[0].name)


def _weighable(
    frame: pl.LazyFrame, tally: Tally, frequencies: Column | None, engine: Engine, *, repeat: bool
) -> pl.LazyFrame:
    """Check weights and frequencies and make them numbers; `repeat` rows by their frequencies."""
    weights = tally.weights
    if weights is not None:
        dtype = frame.collect_schema()[WEIGHT]
        if not (dtype.is_numeric() or dtype == pl.Boolean):
            msg = f"`{tally.role_of_weights}`: the column {weights.name!r} is {dtype}; weights must be numbers."
            raise WeightError(msg)
        is_whole = dtype.is_integer() or dtype == pl.Boolean
        number = pl.Int64 if is_whole else pl.Float64
        frame = frame.with_columns(pl.col(WEIGHT).cast(number, strict=False))
    if frequencies is None:
        return frame
    values = frame.select(FREQUENCY).collect(engine=engine)[FREQUENCY]
    most = _MOST_REPEATED if repeat else _MOST_COUNTED
    often = whole_frequencies(values, frequencies, most)
    if not repeat:
        return frame.with_columns(pl.col(FREQUENCY).cast(pl.Int64)).filter(pl.col(FREQUENCY) > 0)
    rows = frame.drop(FREQUENCY).collect(engine=engine)
    return rows[np.repeat(np.arange(len(rows)), often.to_numpy())].lazy()


def _with_replicates(frame: pl.LazyFrame, order: _Order) -> pl.LazyFrame:
    """Make replicate weights numbers, and refuse columns of other values."""
    schema = frame.collect_schema()
    names = weight_columns(len(order.replicates))
    for name, column in zip(names, order.replicates, strict=True):
        if not schema[name].is_numeric():
            msg = f"`{ROLE}`: the replicate {column.name!r} is {schema[name]}; weights must be numbers."
            raise WeightError(msg)
    return frame.with_columns(pl.col(names).cast(pl.Float64)) if names else frame


def _checked_replicates(cells: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """The cells without the counts of replicate weights, which are refused where some are missing or not finite."""
    if tally.design is None or not tally.design.replicates:
        return cells
    fault = "missing" if (cells[KNOWN_REPLICATES] != cells["n"]).any() else None
    for number, column in enumerate(tally.design.replicates):
        if not cells[of_replicate("w", number)].is_finite().all():
            fault = f"NaN or infinite, as in {column.name!r}"
            break
    if fault is not None:
        msg = f"`{ROLE}`: some replicate weights are {fault}; fill or filter these rows first."
        raise WeightError(msg)
    return cells.drop(KNOWN_REPLICATES)


def _check_weights(cells: pl.DataFrame, weights: Column, role: str) -> None:
    """Refuse weights that are missing, negative or not finite, or that add up to too much."""
    faults = {
        "missing": (cells["known"] != cells["n"]).any(),
        "NaN or infinite": not cells["w"].is_finite().all(),
        "negative": (cells["least"] < 0).any(),
    }
    for fault, is_present in faults.items():
        if is_present:
            msg = (
                f"`{role}`: some values of {weights.name!r} are {fault}; weights must be finite and not negative. "
                "Fill or filter these rows first."
            )
            raise WeightError(msg)
    check_total(cells, weights)

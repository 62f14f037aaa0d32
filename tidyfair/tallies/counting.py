"""The pass over the data: one `group_by` makes a tally."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ColumnError, WeightError
from tidyfair.specs.columns import Column, blaming_expressions, check_features
from tidyfair.specs.groups import SIDE
from tidyfair.tallies.key_encoding import binned, engine_for, grouped
from tidyfair.tallies.moments import (
    ACTUAL,
    MEASURE,
    PREDICTED,
    SCORE,
    Needs,
    digits_lost,
    ends_of,
    moments,
    own_centres,
    quantities,
    summed,
)
from tidyfair.tallies.neighbors import other_labels
from tidyfair.tallies.pushdown import distinct_rows, pushed_bins, pushed_down
from tidyfair.tallies.source import FREQUENCY, WEIGHT, whole_frequencies
from tidyfair.tallies.tally import BLOCK, LABELS, TRUTH, Key, Scores, Tally, check_total
from tidyfair.tallies.thresholds import ESTIMATE

if TYPE_CHECKING:
    from polars._typing import EngineType

    from tidyfair.specs.groups import Privileged
    from tidyfair.tallies.source import Source
    from tidyfair.tallies.thresholds import Cut

__all__: list[str] = []

_SAMPLE = 1_000
_MOST_REPEATED, _MOST_COUNTED = 5 * 10**7, 2**62
_EXACT = 2.0**53
"""Below this each whole number has a float of its own."""
_SMALLEST, _LARGEST = 1e-100, 1e100
"""Squares of what lies between can be weighed and summed."""
_NO_ORDER = "Some metric, such as mase, reads rows in their order, which rows of another engine do not have."
_BLOCKS = 400
"""Parts of the rows; a standard error from so many is known to 4 %."""


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
) -> Tally:
    """Count the rows of a frame in one pass; with a cut the labels are made from the score.

    With `blocks`, a seed, rows are put into random parts that are one more key. With `frequencies` a row counts as
    often as it says.
    """
    wanted = _wanted(keys, truth, estimate, weights, needs)
    wanted |= {FREQUENCY: ("frequency_weights", frequencies)} if frequencies is not None else {}
    reads_scores = scores is not None and (needs.scores or cut is not None)
    if scores is not None and reads_scores:
        wanted |= {f"s{place}": ("probs", column) for place, column in enumerate(scores.columns)}
    groups = {f"t{index}": ("threshold", column) for index, column in enumerate(cut.by if cut else ())}
    features = _features(needs)
    wanted |= {f"f{index}": ("features", column) for index, column in enumerate(features)}
    read = scores if reads_scores and needs.scores else None
    declared = source.levels_of_numbers({TRUTH: truth, ESTIMATE: estimate})
    tally = Tally(
        pl.DataFrame(), keys, truth, estimate, cut, weights, scores, needs, sides=source.sides, declared=declared
    )
    if source.is_elsewhere:
        found = _elsewhere(source, wanted, groups, tally, plain=blocks is None)
        if isinstance(found, Tally):
            return found
        given: dict[str, Any] = {"truth": truth, "estimate": estimate, "scores": scores, "cut": cut, "weights": weights}
        rows = count(found[0], keys, **given, frequencies=found[1], needs=needs, blocks=blocks)
        return replace(rows, declared=declared)
    engine = engine_for(source.rows)
    frame = source.select(wanted | groups)
    exact = _exact(frame, wanted)
    frame = _as_numbers(frame, wanted, decided=cut is not None and not needs.scores)
    # sums of equal rows are products; what looks at rows must see them all
    counted = blocks is None and not (needs.rows or needs.compared or (scores and scores.bins))
    counted = counted and weights is None and (cut is None or cut.way == "threshold")
    frame = _weighable(frame, weights, frequencies, engine, repeat=not counted)
    if cut is not None:
        outer = [f"k{index}" for index, key in enumerate(keys) if key.role == "outer"]
        with blaming_expressions(wanted):
            _check_scores(frame, cut, scores, engine)
            frame = cut.decide(frame, outer, list(groups), [column.name for column in cut.by]).drop(list(groups))
    if not needs.numbers:
        named = {TRUTH: truth, ESTIMATE: estimate}
        _refuse_continuous(frame, {name: each for name, each in named.items() if name not in declared}, engine)
    if blocks is not None:
        with blaming_expressions(wanted):
            frame = _in_blocks(frame.collect(engine=engine), f"k{len(keys)}", blocks).lazy()
        keys = (*keys, Key(Column(BLOCK), "cluster"))
    bins, rows = scores.bins if scores else None, None
    if needs.compared or (needs.rows and not bins):
        # read once, counted from memory
        with blaming_expressions(wanted):
            rows = frame.collect(engine=engine)
        rows = _compared(rows, needs, features, keys, source.sides)
        frame = rows.lazy()
        rows = rows if needs.rows else None
    if bins and scores is not None:
        own = [*(f"k{index}" for index in range(len(keys))), TRUTH]
        with blaming_expressions(wanted):
            rows = binned(frame, own, [f"s{place}" for place in range(len(scores.columns))], bins, source.rows)
    cells = _cells(frame, wanted, needs, read, cut, source.rows)
    return _finished(replace(tally, keys=keys, rows=rows), cells, wanted, exact)


def _elsewhere(
    source: Source, wanted: dict[str, tuple[str, Column]], groups: dict[str, tuple[str, Column]], tally: Tally, *,
    plain: bool,
) -> Tally | tuple[Source, Column]:  # fmt: skip
    """What another engine has counted or, where that is not enough, its distinct rows and how often each is.

    What is wrong with columns is found as it is found of any frame, on one without rows.
    """
    needs, cut, every = tally.needs, tally.cut, wanted | groups
    if needs.order:
        raise ColumnError(_NO_ORDER)
    for role, column in every.values():
        column.check(source.columns, role)
    roots = {root for _, column in every.values() for root in column.roots}
    source = source.with_levels(roots)
    nobody = source.emptied(roots).select(every)
    exact = _exact(nobody, wanted)
    nobody = _as_numbers(nobody, wanted, decided=cut is not None and not needs.scores)
    _weighable(nobody, tally.weights, None, "in-memory", repeat=False)
    scores = len(tally.scores.columns) if tally.scores and needs.scores else 0
    bins = tally.scores.bins if tally.scores else None
    summed_up = replace(needs, rows=False) if bins else needs
    cells = pushed_down(source, every, summed_up, cut, scores, tally.declared) if plain else None
    if cells is None:
        return distinct_rows(source, every)
    rows = pushed_bins(source, wanted, bins) if bins else None
    return _finished(replace(tally, rows=rows), cells, wanted, exact)


def _finished(tally: Tally, cells: pl.DataFrame, wanted: dict[str, tuple[str, Column]], exact: frozenset[str]) -> Tally:
    """The tally with its cells, which are checked."""
    if tally.weights is not None:
        _check_weights(cells, tally.weights)
        cells = cells.drop("least", "known")
    cells = _arranged(cells, tally.keys)
    _check_numbers(cells, wanted, exact)
    return replace(tally, cells=_within_bins(cells, tally.scores))


def recounted(tally: Tally, rows: pl.DataFrame, keys: tuple[Key, ...]) -> Tally:
    """A tally of other rows than those that it has kept, with the same columns but for their keys."""
    scores = tally.scores if tally.needs.scores else None
    cells = _cells(rows.lazy(), {}, tally.needs, scores, tally.cut, len(rows))
    cells = _arranged(cells.drop("least", "known", strict=False), keys)
    return replace(tally, cells=cells, keys=keys, rows=rows)


def _arranged(cells: pl.DataFrame, keys: tuple[Key, ...]) -> pl.DataFrame:
    """The cells with keys and labels first, there or not."""
    if missing := [name for name in LABELS if name not in cells.columns]:
        cells = cells.with_columns(pl.lit(None).alias(name) for name in missing)
    order = [*(f"k{index}" for index in range(len(keys))), *LABELS]
    order += [SCORE] if SCORE in cells.columns else []
    # by their names, which is no query
    return cells[[*order, *(name for name in cells.columns if name not in order)]]


def _wanted(
    keys: tuple[Key, ...], truth: Column | None, estimate: Column | None, weights: Column | None, needs: Needs
) -> dict[str, tuple[str, Column]]:
    """The columns that are read, under names of ours, and what the user calls their role."""
    said = {"by": "by", "cluster": "cluster"}
    wanted = {f"k{index}": (said.get(key.role, "group_by"), key.column) for index, key in enumerate(keys)}
    numbers = {TRUTH: ACTUAL, ESTIMATE: PREDICTED} if needs.numbers else {TRUTH: TRUTH, ESTIMATE: ESTIMATE}
    named = {numbers[TRUTH]: truth, numbers[ESTIMATE]: estimate, WEIGHT: weights}
    roles = {ACTUAL: TRUTH, PREDICTED: ESTIMATE, WEIGHT: "case_weights"}
    return wanted | {name: (roles.get(name, name), column) for name, column in named.items() if column is not None}


def _features(needs: Needs) -> list[Column]:
    """The columns that say which rows are alike."""
    pools = [term.neighborhood for term in needs.compared if term.neighborhood]
    return list(dict.fromkeys(column for pool in pools for column in pool.features))


def _cells(
    frame: pl.LazyFrame,
    wanted: dict[str, tuple[str, Column]],
    needs: Needs,
    scores: Scores | None,
    cut: Cut | None,
    rows: int | None,
) -> pl.DataFrame:
    """One row for each combination of keys and labels, with everything that is summed.

    `rows` is how many there are, where they are in memory.
    """
    columns = frame.collect_schema().names()
    counts = pl.col(FREQUENCY).sum() if FREQUENCY in columns else pl.len()
    sums = [counts.cast(pl.Int64).alias("n")]
    if WEIGHT in columns:
        sums += [pl.col(WEIGHT).sum().alias("w"), pl.col(WEIGHT).cast(pl.Float64).pow(2).sum().alias("w2")]
        sums += [pl.col(WEIGHT).min().alias("least"), pl.col(WEIGHT).count().alias("known")]
    scored = len(scores.columns) if scores is not None else 0
    if scored:
        # what is there is a key, as missing labels are
        there = pl.all_horizontal(pl.col(f"s{place}").is_not_null() for place in range(scored))
        frame = frame.with_columns(pl.when(there).then(statement=True).alias(SCORE))
    numbers = {name: number for name, number in ((TRUTH, ACTUAL), (ESTIMATE, PREDICTED)) if number in columns}
    if needs.numbers:
        missing = [name for name in (ACTUAL, PREDICTED) if name not in columns]
        frame = frame.with_columns(
            *(pl.lit(None, pl.Float64).alias(name) for name in missing),
            *(
                pl.when(pl.col(number).is_not_null()).then(statement=True).alias(name)
                for name, number in numbers.items()
            ),
        )
    # there are frequencies only where there are no weights
    measure = next((name for name in (WEIGHT, FREQUENCY) if name in columns), None)
    weighted = measure is not None
    if needs.anything:
        sums += summed(quantities(needs, scored, weighted=weighted))
        frame = frame.with_columns(pl.col(measure).cast(pl.Float64).alias(MEASURE)) if measure else frame
    values = {WEIGHT, FREQUENCY, MEASURE, ACTUAL, PREDICTED, *(f"s{place}" for place in range(len(columns)))}
    values |= {term.column for term in needs.compared}
    names = frame.collect_schema().names() if needs.anything else columns
    by = [name for name in names if name not in values]
    known = {ESTIMATE: codes} if cut and (codes := cut.codes) is not None else {}
    with blaming_expressions(wanted):
        if not needs.moments:
            return grouped(frame, by, sums, known, rows)
        sample = frame.select(ACTUAL, PREDICTED).head(_SAMPLE).collect().median()
        centres = [pl.lit(each.fill_null(0.0).item()) for each in sample]
        named = [centre.alias(name) for name, centre in zip(("truth_centre", "estimate_centre"), centres, strict=True)]
        centred = [*sums, *summed(moments(*centres, weighted=weighted))]
        cells = grouped(frame, by, centred, known, rows).with_columns(named)
        if not digits_lost(cells):
            return cells
        # the groups lie far apart: each is summed about its own means
        placed = own_centres(cells, by)
        frame = (
            frame.join(placed.lazy(), on=by, how="left", nulls_equal=True)
            if by
            else frame.with_columns(pl.lit(each.item()).alias(each.name) for each in placed)
        )
        again = summed(moments(pl.col("truth_centre"), pl.col("estimate_centre"), weighted=weighted))
        centred = [*sums, *again, pl.col("truth_centre", "estimate_centre").first()]
        return grouped(frame, by, centred, known, rows)


def _in_blocks(rows: pl.DataFrame, name: str, seed: int) -> pl.DataFrame:
    """The rows with a random block for each, whatever their order: equal rows may change places."""
    import numpy as np

    rows = rows.sort(pl.all(), nulls_last=True)
    blocks = np.random.default_rng(seed).permutation(len(rows)) % _BLOCKS
    return rows.with_columns(pl.Series(name, blocks.astype(np.int16)))


def _compared(
    rows: pl.DataFrame, needs: Needs, features: list[Column], keys: tuple[Key, ...], sides: Privileged | None
) -> pl.DataFrame:
    """The rows with the quantities for which each is compared with others of its outer group."""
    if not needs.compared:
        return rows
    names = {f"f{index}": column.name for index, column in enumerate(features)}
    check_features(rows, names, "distances need")
    placed, together = rows, [f"k{index}" for index, key in enumerate(keys) if key.role == "outer"]
    if sides is not None:
        own = [f"k{index}" for index, key in enumerate(keys) if key.role == "side"]
        placed, together = rows.with_columns(sides.side(rows[own]).alias(SIDE)), [*together, SIDE]
    for term in needs.compared:
        pool = term.neighborhood
        if pool is not None:
            near = [f"f{features.index(column)}" for column in pool.features]
            found = other_labels(placed, near, ESTIMATE, together, pool.n_neighbors)
            rows = rows.with_columns(found.alias(term.column))
    return rows.drop(names)


def _as_numbers(frame: pl.LazyFrame, wanted: dict[str, tuple[str, Column]], *, decided: bool) -> pl.LazyFrame:
    """The frame with scores and numbers as floats; what is none is refused."""
    schema = frame.collect_schema()
    names = [name for name, (role, _) in wanted.items() if name in {ACTUAL, PREDICTED} or role == "probs"]
    for name in names:
        role, column = wanted[name]
        if not (schema[name].is_numeric() or schema[name] == pl.Null):
            needed = {"probs": "a threshold needs numbers" if decided else "scores are numbers"}
            why = needed.get(role, "regression metrics read numbers")
            msg = f"`{role}`: the column {column.name!r} is {schema[name]}; {why}."
            raise ColumnError(msg)
    return frame.with_columns(pl.col(name).cast(pl.Float64) for name in names) if names else frame


def _exact(frame: pl.LazyFrame, wanted: dict[str, tuple[str, Column]]) -> frozenset[str]:
    """The columns of scores and numbers that are integers or decimals, some of which no float is equal to."""
    schema = frame.collect_schema()
    names = (name for name, (role, _) in wanted.items() if name in {ACTUAL, PREDICTED} or role == "probs")
    return frozenset(name for name in names if schema[name].is_integer() or schema[name].is_decimal())


def _check_numbers(cells: pl.DataFrame, wanted: dict[str, tuple[str, Column]], exact: frozenset[str]) -> None:
    """Refuse numbers that floats cannot hold, tell from others, or square."""
    sizes: dict[str, float] = {}
    for name, (role, column) in wanted.items():
        ends = list(ends_of(name))
        if ends[0] not in cells.columns:
            continue
        size = cells.select(pl.max_horizontal(pl.col(ends).abs().max())).item()
        if size is None:
            continue
        sizes[name], about = size, f"`{role}`: the column {column.name!r} holds"
        if math.isinf(size):
            msg = f"{about} infinite values; metrics need finite numbers."
            raise ColumnError(msg)
        if size > _LARGEST:
            msg = f"{about} numbers as large as {size:.2g}, whose squares cannot be summed; divide all by one number."
            raise ColumnError(msg)
        if name in exact and size >= _EXACT:
            also = "it" if role == "probs" else "truth and estimate"
            msg = (
                f"{about} numbers as large as {size:.2g}, and floats do not tell whole numbers of 2**53 or more from "
                f"each other; subtract one number from all of {also}, or cast the column to Float64 if its last digits "
                "do not matter."
            )
            raise ColumnError(msg)
    largest = max((size for name, size in sizes.items() if name in {ACTUAL, PREDICTED}), default=0.0)
    if 0 < largest < _SMALLEST:
        role, column = wanted[next(name for name, size in sizes.items() if size == largest)]
        msg = (
            f"`{role}`: no number of the column {column.name!r} is larger than {largest:.2g}, and squares of such "
            "numbers are zero; multiply truth and estimate by one number."
        )
        raise ColumnError(msg)


def _within_bins(cells: pl.DataFrame, scores: Scores | None) -> pl.DataFrame:
    """The cells without the extremes of scores that are counted in bins; scores beyond the ends of bins are refused."""
    if scores is None or scores.bins is None:
        return cells
    for place, column in enumerate(scores.columns):
        low, high = cells.select(pl.col(f"least s{place}").min(), pl.col(f"most s{place}").max()).row(0)
        if low is not None and (low < 0 or high > 1):
            msg = (
                f"`score_bins` are bins between 0 and 1, but {column.name!r} holds values from {low:g} to {high:g}; "
                "bring them there in the same order, as `sigmoid(…)` does."
            )
            raise ColumnError(msg)
    # the extremes of a cell of one row are its score
    return cells.drop(f"{end} s{place}" for end in ("least", "most") for place in range(len(scores.columns)))


def _refuse_continuous(frame: pl.LazyFrame, named: dict[str, Column | None], engine: EngineType) -> None:
    """Numbers that are not whole are no labels; found before they are counted one by one."""
    schema = frame.collect_schema()
    floats = [name for name in named if name in schema and (schema[name].is_float() or schema[name].is_decimal())]
    if not floats:
        return
    broken = (pl.col(floats) != pl.col(floats).round(0)).any()
    found = frame.select(broken).collect(engine=engine)
    for name in floats:
        column = named[name]
        if column is not None and found[name][0]:
            raise ColumnError.continuous(name, column.name)


def _check_scores(frame: pl.LazyFrame, cut: Cut, scores: Scores | None, engine: EngineType) -> None:
    """Refuse scores that are on another scale than the thresholds, before they are cut."""
    if cut.is_of_probabilities and scores is not None:
        score = pl.col("s0")
        low, high = frame.select(score.min().alias("low"), score.max().alias("high")).collect(engine=engine).row(0)
        cut.check_scores(low, high, scores.columns[0].name)


def _weighable(
    frame: pl.LazyFrame, weights: Column | None, frequencies: Column | None, engine: EngineType, *, repeat: bool
) -> pl.LazyFrame:
    """The frame with weights as numbers, and with how often each row counts, or each row as often as it does."""
    if weights is not None:
        dtype = frame.collect_schema()[WEIGHT]
        if not (dtype.is_numeric() or dtype == pl.Boolean):
            msg = f"`case_weights`: the column {weights.name!r} is {dtype}; weights are numbers."
            raise WeightError(msg)
        whole = dtype.is_integer() or dtype == pl.Boolean
        frame = frame.with_columns(pl.col(WEIGHT).cast(pl.Int64 if whole else pl.Float64, strict=False))
    if frequencies is None:
        return frame
    given = frame.select(FREQUENCY).collect(engine=engine)[FREQUENCY]
    often = whole_frequencies(given, frequencies, _MOST_REPEATED if repeat else _MOST_COUNTED)
    if not repeat:
        return frame.with_columns(pl.col(FREQUENCY).cast(pl.Int64)).filter(pl.col(FREQUENCY) > 0)
    import numpy as np

    rows = frame.drop(FREQUENCY).collect(engine=engine)
    return rows[np.repeat(np.arange(len(rows)), often.to_numpy())].lazy()


def _check_weights(cells: pl.DataFrame, weights: Column) -> None:
    found = {
        "missing": (cells["known"] != cells["n"]).any(),
        "NaN or infinite": not cells["w"].is_finite().all(),
        "negative": (cells["least"] < 0).any(),
    }
    for what, there in found.items():
        if there:
            msg = (
                f"`case_weights`: some values of {weights.name!r} are {what}; "
                "weights are finite numbers of zero or more: fill or filter these rows first."
            )
            raise WeightError(msg)
    check_total(cells, weights)

"""Counting where the rows are: a database, a cluster or files make one aggregation, and only its cells travel.

What needs more than sums travels as distinct rows, each with how often it is there; it is then counted as any frame is.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ColumnError, WeightError
from tidyfair.specs.columns import Column
from tidyfair.tallies.moments import ACTUAL, MEASURE, PREDICTED, SCORE, digits_lost, moments, quantities
from tidyfair.tallies.source import FREQUENCY, SQUARED, WEIGHT, collected, whole_frequencies
from tidyfair.tallies.tally import TRUTH
from tidyfair.tallies.thresholds import ESTIMATE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tidyfair.tallies.moments import Needs, Quantity
    from tidyfair.tallies.source import Source
    from tidyfair.tallies.thresholds import Cut

__all__: list[str] = []

_LOWEST, _HIGHEST = "lowest score", "highest score"
"""The ends of the scores of a cell, where it is to be seen whether they are probabilities."""
_OFTEN = "how often it is there"
_ODD = "odd "
"""Before the name of a sum: how many of its values are no numbers."""
_MOST = 2.0**62


def pushed_down(
    source: Source,
    wanted: Mapping[str, tuple[str, Column]],
    needs: Needs,
    cut: Cut | None,
    scores: int,
    declared: Collection[str],
) -> pl.DataFrame | None:
    """The cells of a frame, worked out by its own engine in one query; None if sums of columns are not enough.

    `scores` is how many columns of scores are read other than by a cut, `declared` are labels whatever they look like.
    """
    import narwhals.stable.v2 as nw

    if not _are_sums(wanted, needs, cut):
        return None
    frame, schema = _typed(source, wanted)
    _refuse_continuous(frame, {name: each for name, each in wanted.items() if name not in declared}, schema)
    frame = _decided(frame, cut)
    frame = _with_presence(frame, schema, needs, scores)
    weighted = WEIGHT in schema
    if weighted:
        frame = frame.with_columns(nw.col(WEIGHT).cast(nw.Float64).alias(MEASURE))
    by = [name for name in frame.collect_schema().names() if not _is_value(name)]
    try:
        found = quantities(needs, scores, weighted=weighted, api=nw) if needs.anything else []
    except (AttributeError, TypeError):
        return None  # some quantity is a function of polars itself
    centres = _centres(frame, weighted=weighted) if needs.moments else {}
    if centres:
        found += moments(*map(nw.lit, centres.values()), weighted=weighted, api=nw)
    cells = _weighed(frame, by, [*_counts(cut, weighted=weighted), *found], wanted.get(WEIGHT))
    if cut is not None:
        cells = _of_cut(cells, cut, wanted["s0"][1])
    cells = cells.with_columns(pl.lit(value).alias(name) for name, value in centres.items())
    # groups that lie far apart are summed about their own means, here
    return None if centres and digits_lost(cells) else cells


def _are_sums(wanted: Mapping[str, tuple[str, Column]], needs: Needs, cut: Cut | None) -> bool:
    """Whether all that is needed are sums over rows of columns that are there."""
    named = all(isinstance(column.source, str) for _, column in wanted.values())
    cut_plainly = cut is None or (cut.way == "threshold" and not cut.groups)
    return named and cut_plainly and not (needs.rows or needs.compared or FREQUENCY in wanted)


def _with_presence(frame: Any, schema: Any, needs: Needs, scores: int) -> Any:
    """The frame with keys that say which scores and numbers are there."""
    import narwhals.stable.v2 as nw

    there: dict[str, list[str]] = {SCORE: [f"s{place}" for place in range(scores)]} if scores else {}
    if needs.numbers:
        there |= {name: [number] for name, number in ((TRUTH, ACTUAL), (ESTIMATE, PREDICTED)) if number in schema}
    for name, columns in there.items():
        known = nw.all_horizontal(*(~nw.col(column).is_null() for column in columns), ignore_nulls=False)
        frame = frame.with_columns(nw.when(known).then(nw.lit(value=True)).alias(name))
    return frame


def _centres(frame: Any, *, weighted: bool) -> dict[str, float]:
    """The means of truth and estimate, about which they are summed."""
    import narwhals.stable.v2 as nw

    counts_for = ~nw.col(ACTUAL).is_null() & ~nw.col(PREDICTED).is_null()
    counts_for = counts_for & (nw.col(MEASURE) > 0) if weighted else counts_for
    middle = frame.filter(counts_for).select(nw.col(ACTUAL).mean(), nw.col(PREDICTED).mean())
    middle = collected(middle).fill_null(0.0)
    return dict(zip(("truth_centre", "estimate_centre"), middle.row(0), strict=True))


def _decided(frame: Any, cut: Cut | None) -> Any:
    """The frame with an `estimate` made of its scores, if there is a cut."""
    if cut is None:
        return frame
    import narwhals.stable.v2 as nw

    score = nw.col("s0")
    reached = [(score >= value).cast(nw.Int64) for value in sorted(cut.values)]
    estimate = sum(reached[1:], start=reached[0]) if cut.several else score >= cut.values[0]
    return frame.with_columns(nw.when(~score.is_null()).then(estimate).alias(ESTIMATE))


def _counts(cut: Cut | None, *, weighted: bool) -> list[Quantity]:
    """How many rows a cell has, their weights, and the ends of their scores where a cut is of probabilities."""
    import narwhals.stable.v2 as nw

    counts: list[Quantity] = [("n", "len", None)]
    if cut is not None and cut.is_of_probabilities:
        counts += [(_LOWEST, "min", nw.col("s0")), (_HIGHEST, "max", nw.col("s0"))]
    if weighted:
        weight = nw.col(WEIGHT)
        counts += [("w", "sum", weight), ("w2", "sum", nw.col(MEASURE) * nw.col(MEASURE))]
        counts += [("least", "min", weight), ("known", "count", weight)]
    return counts


def _of_cut(cells: pl.DataFrame, cut: Cut, column: Column) -> pl.DataFrame:
    """The cells of a cut, whose scores must be on the scale of its thresholds."""
    if cut.is_of_probabilities:
        low, high = cells.select(pl.col(_LOWEST).min(), pl.col(_HIGHEST).max()).row(0)
        cut.check_scores(low, high, column.name)
        cells = cells.drop(_LOWEST, _HIGHEST)
    return cells.with_columns(pl.col(ESTIMATE).cast(pl.UInt16)) if cut.several else cells


def pushed_bins(source: Source, wanted: Mapping[str, tuple[str, Column]], bins: int) -> pl.DataFrame:
    """The weight of the rows, or their number, for each combination of keys, truth and bins of scores, in one query."""
    import narwhals.stable.v2 as nw

    wanted = {name: each for name, each in wanted.items() if name != ESTIMATE}
    frame, schema = _typed(source, wanted)
    scores = [name for name in wanted if _is_score(name)]
    # numbers of bins are rounded down, which a cast is not everywhere
    numbers = [(nw.col(name) * bins).clip(0, bins - 1).floor().cast(nw.Int64) for name in scores]
    frame = frame.filter(*(~nw.col(name).is_null() for name in scores)).with_columns(*numbers)
    by = [name for name in wanted if name != WEIGHT]
    if WEIGHT in schema:
        measure = nw.col(WEIGHT).cast(nw.Float64)
        sums: list[Quantity] = [(WEIGHT, "sum", nw.col(WEIGHT)), (SQUARED, "sum", measure * measure)]
        found = _aggregated(frame, by, sums)
    else:
        # a row counts once, and once squared
        found = _aggregated(frame, by, [(WEIGHT, "len", None)]).with_columns(pl.col(WEIGHT).alias(SQUARED))
    return found.cast(dict.fromkeys(scores, pl.UInt16))


def distinct_rows(source: Source, wanted: Mapping[str, tuple[str, Column]]) -> tuple[Source, Column]:
    """The distinct rows of what is wanted, as a polars frame, and the column that says how often each counts."""
    for role, column in wanted.values():
        if not isinstance(column.source, str) and not _is_row_by_row(column.source):
            msg = f"`{role}`: {column.source} may read other rows too, which do not come here; make it a column first."
            raise ColumnError(msg)
    roots = list(dict.fromkeys(root for _, column in wanted.values() for root in column.roots))
    often = _OFTEN
    while often in roots:
        often += "_"
    named = {f"r{place}": root for place, root in enumerate(roots)}
    rows = _aggregated(source.named(named), list(named), [(often, "len", None)])
    rows = rows.rename(named)
    if FREQUENCY in wanted:
        frequencies = wanted[FREQUENCY][1]
        given = rows.select(frequencies.expr).to_series()
        rows = rows.with_columns(whole_frequencies(given, frequencies, _MOST, rows[often]).alias(often))
    return replace(source, frame=rows, kind="polars"), Column(often)


def _is_row_by_row(expr: pl.Expr) -> bool:
    """Whether the value of a row is worked out from that row alone, in every part of an expression."""
    try:
        return expr.meta.is_row_separable() and all(map(_is_row_by_row, expr.meta.pop()))
    except pl.exceptions.PolarsError:
        return False  # a Python function in it, which cannot be looked into


def _typed(source: Source, wanted: Mapping[str, tuple[str, Column]]) -> tuple[Any, Any]:
    """The wanted columns under names of ours, numbers as floats and NaN as null; and their dtypes."""
    import narwhals.stable.v2 as nw

    frame = source.named({name: column.name for name, (_, column) in wanted.items()})
    schema = frame.collect_schema()
    numbers = [name for name in wanted if _is_value(name)]
    whole = {name for name in numbers if _is_whole(schema[name])}
    if numbers:
        kinds: dict[str, Any] = dict.fromkeys(numbers, nw.Float64)
        kinds |= {WEIGHT: nw.Int64} if WEIGHT in whole else {}
        frame = frame.with_columns(*(nw.col(name).cast(kind) for name, kind in kinds.items()))
    floats = [name for name in wanted if name in numbers or schema[name].is_float()]
    frame = _without_nan(frame, [name for name in floats if name not in {*whole, WEIGHT}])
    return frame, frame.collect_schema()


def _without_nan(frame: Any, floats: Sequence[str]) -> Any:
    """The frame with null in place of NaN."""
    import narwhals.stable.v2 as nw

    known = [nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name) for name in floats]
    return frame.with_columns(*known) if known else frame


def _is_whole(dtype: Any) -> bool:
    """Whether 64 bits hold all whole numbers of a dtype."""
    import narwhals.stable.v2 as nw

    too_wide = (nw.UInt64, nw.Int128, nw.UInt128)
    return (dtype.is_integer() and dtype not in too_wide) or dtype == nw.Boolean


_VALUES = {WEIGHT, MEASURE, ACTUAL, PREDICTED}


def _is_value(name: str) -> bool:
    """Whether a column holds numbers to be summed, and no key."""
    return name in _VALUES or _is_score(name)


def _is_score(name: str) -> bool:
    return name[0] == "s" and name[1:].isdigit()


def _weighed(
    frame: Any, by: Sequence[str], wanted: Sequence[Quantity], weights: tuple[str, Column] | None
) -> pl.DataFrame:  # fmt: skip
    """The same as `_aggregated`; whole weights that add up to more than the engine can hold are refused."""
    import narwhals.stable.v2 as nw

    try:
        return _aggregated(frame, by, wanted)
    except Exception as error:
        if weights is None or not frame.collect_schema()[WEIGHT].is_integer():
            raise
        total = collected(frame.select(nw.col(WEIGHT).cast(nw.Float64).abs().sum())).item()
        if total is None or total < _MOST:
            raise
        raise WeightError.unsummable(weights[1].name) from error


def _aggregated(frame: Any, by: Sequence[str], wanted: Sequence[Quantity]) -> pl.DataFrame:
    """One query: the quantities of rows as columns, then plain aggregates of these by the keys."""
    import narwhals.stable.v2 as nw

    columns = {f"q{place}": value for place, (_, _, value) in enumerate(wanted) if value is not None}
    made = [
        (nw.len() if value is None else getattr(nw.col(f"q{place}"), how)()).alias(name)
        for place, (name, how, value) in enumerate(wanted)
    ]
    odd = _odd(frame, wanted) if frame.implementation.is_dask() else {}
    columns |= {_ODD + name: value for name, value in odd.items()}
    made += [nw.col(_ODD + name).sum() for name in odd]
    frame = frame.select(*by, *(value.alias(name) for name, value in columns.items()))
    schema = frame.collect_schema()
    cells = collected(frame.group_by(*by).agg(*made) if by else frame.select(*made))
    levels = {name: pl.Enum(dtype.categories) for name in by if isinstance(dtype := schema[name], nw.Enum)}
    cells = cells.cast({**levels, **_kinds_of_sums(cells, wanted, schema)}).with_columns(
        pl.when(pl.col(_ODD + name) > 0).then(math.nan).otherwise(pl.col(name)).alias(name) for name in odd
    )
    return cells.drop(_ODD + name for name in odd)


def _odd(frame: Any, wanted: Sequence[Quantity]) -> dict[str, Any]:
    """For sums, where their values are no numbers, which those of Dask pass over as they do over what is missing."""
    import narwhals.stable.v2 as nw

    sums = {name: value for name, how, value in wanted if how == "sum" and name not in {"w", "w2"}}
    if not sums:
        return {}
    numbers = [name for name in frame.columns if _is_value(name)]
    there = nw.all_horizontal(*(~nw.col(name).is_null() for name in numbers), ignore_nulls=False)
    return {name: (value.is_nan() & there).cast(nw.Float64) for name, value in sums.items()}


def _kinds_of_sums(cells: pl.DataFrame, wanted: Sequence[Quantity], schema: Any) -> dict[str, Any]:
    """The dtypes of quantities: counts, and sums of whole weights, are whole as long as 64 bits hold them."""
    whole = {name for name, how, _ in wanted if how in {"len", "count"}}
    # whole weights are summed exactly
    whole |= {
        name for place, (name, _, value) in enumerate(wanted)
        if name in {"w", "least", WEIGHT} and value is not None and schema[f"q{place}"].is_integer()
    }  # fmt: skip
    kinds: dict[str, Any] = {name: pl.Int64 if name in whole else pl.Float64 for name, _, _ in wanted}
    for name in whole:
        if cells.schema[name] != pl.Int64 and (cells[name].cast(pl.Float64).abs() >= _MOST).any():
            kinds[name] = pl.Float64  # beyond what is summed exactly
    return kinds


def _refuse_continuous(frame: Any, wanted: Mapping[str, tuple[str, Column]], schema: Any) -> None:
    """Numbers that are not whole are no labels; found before they are counted one by one."""
    import narwhals.stable.v2 as nw

    floats = [
        name for name in (TRUTH, ESTIMATE)
        if name in wanted and (schema[name].is_float() or schema[name].is_decimal())
    ]  # fmt: skip
    if not floats:
        return
    # what is missing is no number, and not equal to itself in some engines
    broken = frame.select(
        *(((nw.col(name) != nw.col(name).round(0)) & ~nw.col(name).is_null()).any().alias(name) for name in floats)
    )
    for name, there in collected(broken).row(0, named=True).items():
        if there:
            raise ColumnError.continuous(name, wanted[name][1].name)

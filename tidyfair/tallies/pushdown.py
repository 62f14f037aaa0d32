"""Counting in the engine of the data: a database, a cluster or a file scan aggregates, and only cells are transferred.

A call that needs more than sums gets the distinct rows with their frequencies, which are then counted like any frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, WeightError
from tidyfair.specs import Bins, Column, is_row_separable, roots_of
from tidyfair.tallies.count_plan import CountPlan
from tidyfair.tallies.moments import (
    ACTUAL,
    KNOWN_REPLICATES,
    MEASURE,
    PREDICTED,
    SCORE,
    Quantity,
    cumulated,
    digits_lost,
    is_weight_column,
    moments,
    quantities,
    replicated,
    weight_columns,
    weights_of_replicates,
)
from tidyfair.tallies.source import (
    FREQUENCY,
    SQUARED,
    WEIGHT,
    Source,
    collected,
    is_score,
    is_sqlite,
    is_value,
    whole_frequencies,
    with_one_zero,
)
from tidyfair.tallies.tally import TRUTH, Tally
from tidyfair.tallies.thresholds import ESTIMATE, Cut

_LOWEST, _HIGHEST = "lowest score", "highest score"
"""Columns of the extremes of scores, to check that they are probabilities."""
_OFTEN = "how often it is there"
"""Column of the frequency of a distinct row."""
_ODD = "odd "
"""Prefix of a sum: the number of its values that are NaN."""
_MOST = 2.0**62


def pushed_down(source: Source, plan: CountPlan) -> pl.DataFrame | None:
    """Count a frame into cells by one query of its own engine; None if sums of columns are not enough."""
    import narwhals.stable.v2 as nw

    if not _are_sums_enough(plan):
        return None
    wanted, tally = plan.columns, plan.tally
    needs, cut = tally.needs, tally.cut
    frame, schema = _typed(source, wanted)
    _refuse_continuous(frame, plan, schema)
    frame = _with_presence(_decided(frame, cut), schema, tally)
    weighted = WEIGHT in schema
    if weighted:
        frame = frame.with_columns(nw.col(WEIGHT).cast(nw.Float64).alias(MEASURE))
    by = [name for name in frame.collect_schema().names() if not is_value(name)]
    sums: list[Quantity] = []
    of_rows: list[Quantity] = []
    if needs.anything:
        try:
            sums += quantities(needs, tally.scored, tally.forecast, weighted=weighted, api=nw)
            of_rows += quantities(needs, tally.scored, tally.forecast, weighted=False, api=nw)
        except (ArgumentError, AttributeError, TypeError):
            return None  # some quantity is a function of polars itself, or fails there too
    centres = _centres(frame, weighted=weighted) if needs.moments else {}
    if centres:
        sums += moments(*map(nw.lit, centres.values()), weighted=weighted, api=nw)
        of_rows += moments(*map(nw.lit, centres.values()), weighted=False, api=nw)
    if replicates := sum(map(is_weight_column, wanted)):
        sums += weights_of_replicates(replicates, api=nw) + replicated(of_rows, replicates, api=nw)
        known = nw.when(_all_present(weight_columns(replicates))).then(nw.lit(1))
        sums.append((KNOWN_REPLICATES, "count", known))
    cells = _weighed(frame, by, [*_counts(cut, weighted=weighted), *sums], wanted.get(WEIGHT))
    if cut is not None:
        cells = _of_cut(cells, cut, wanted["s0"][1])
    cells = cells.with_columns(**centres)
    # groups that lie far apart are summed about their own means, here
    return None if centres and digits_lost(cells) else _with_names_of_bins(cells, wanted)


def _are_sums_enough(plan: CountPlan) -> bool:
    """Check whether sums of columns, as they stand in the data, give all that a plan counts."""
    tally, cut = plan.tally, plan.tally.cut
    if (tally.needs.rows and not tally.binned) or tally.needs.compared or FREQUENCY in plan.columns:
        return False
    is_simple_cut = cut is None or (cut.option == "threshold" and not (cut.groups or cut.point))
    return is_simple_cut and all(isinstance(column.source, str | Bins) for _, column in plan.columns.values())


def _with_presence(frame: Any, schema: Any, tally: Tally) -> Any:
    """Add keys that are true where scores and numbers are present."""
    import narwhals.stable.v2 as nw

    columns_of_key: dict[str, list[str]] = {}
    if tally.scored:
        columns_of_key[SCORE] = tally.scored
    for key, number in ((TRUTH, ACTUAL), (ESTIMATE, PREDICTED)):
        if tally.needs.numbers and number in schema:
            columns_of_key[key] = [number]
    for key, columns in columns_of_key.items():
        present = _all_present(columns)
        frame = frame.with_columns(nw.when(present).then(nw.lit(value=True)).alias(key))
    return frame


def _all_present(columns: Sequence[str]) -> Any:
    """Check whether a row has a value in each of some columns."""
    import narwhals.stable.v2 as nw

    present = [~nw.col(name).is_null() for name in columns]
    return cumulated(lambda one, other: one & other, present)[-1]


def _centres(frame: Any, *, weighted: bool) -> dict[str, float]:
    """The means of truth and estimate, as the centers of their sums."""
    import narwhals.stable.v2 as nw

    counts = _all_present([ACTUAL, PREDICTED])
    if weighted:
        counts &= nw.col(MEASURE) > 0
    rows = frame.filter(counts)
    means = collected(rows.select(nw.col(ACTUAL).mean(), nw.col(PREDICTED).mean())).fill_null(0.0)
    truth, estimate = means.row(0)
    return {"truth_centre": truth, "estimate_centre": estimate}


def _decided(frame: Any, cut: Cut | None) -> Any:
    """Add an `estimate` made of the scores, if there is a cut."""
    if cut is None:
        return frame
    import narwhals.stable.v2 as nw

    score = nw.col("s0")
    estimate = _reached(score, sorted(cut.values)) if cut.several else cut.reached(score, cut.values[0], api=nw)
    return frame.with_columns(nw.when(~score.is_null()).then(estimate).alias(ESTIMATE))


def _reached(score: Any, cuts: Sequence[float], before: int = 0) -> Any:
    """The number of ascending cuts at or below a score, by binary search; `before` of them are known to be.

    A sum of comparisons would be as deep as they are many, and engines limit how deep an expression is.
    """
    import narwhals.stable.v2 as nw

    if not cuts:
        return nw.lit(before)
    half = len(cuts) // 2
    above = _reached(score, cuts[half + 1 :], before + half + 1)
    return nw.when(Cut.reached(score, cuts[half], api=nw)).then(above).otherwise(_reached(score, cuts[:half], before))


def _counts(cut: Cut | None, *, weighted: bool) -> list[Quantity]:
    """Number of rows of a cell, their weights, and the extremes of their scores if a cut is of probabilities."""
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
    """Check that scores are on the scale of the thresholds, and set the dtype of the labels."""
    if cut.is_of_probabilities:
        low, high = cells.select(pl.col(_LOWEST).min(), pl.col(_HIGHEST).max()).row(0)
        cut.check_scores(low, high, column.name)
        cells = cells.drop(_LOWEST, _HIGHEST)
    return cells.with_columns(pl.col(ESTIMATE).cast(pl.UInt16)) if cut.several else cells


def pushed_bins(source: Source, wanted: Mapping[str, tuple[str, Column]], count: int) -> pl.DataFrame:
    """Count rows, or sum their weights, by keys, truth and bins of scores, in one query."""
    import narwhals.stable.v2 as nw

    wanted = dict(wanted)
    wanted.pop(ESTIMATE, None)
    frame, schema = _typed(source, wanted)
    scores = [name for name in wanted if is_score(name)]
    # numbers of bins are rounded down, which a cast is not everywhere
    numbers = (nw.col(*scores) * count).clip(0, count - 1).floor().cast(nw.Int64)
    frame = frame.filter(_all_present(scores)).with_columns(numbers)
    by = [name for name in wanted if name != WEIGHT]
    if WEIGHT in schema:
        measure = nw.col(WEIGHT).cast(nw.Float64)
        sums: list[Quantity] = [(WEIGHT, "sum", nw.col(WEIGHT)), (SQUARED, "sum", measure * measure)]
        bins_of_rows = _aggregated(frame, by, sums)
    else:
        # a row counts once, and once squared
        bins_of_rows = _aggregated(frame, by, [(WEIGHT, "len", None)]).with_columns(pl.col(WEIGHT).alias(SQUARED))
    return _with_names_of_bins(bins_of_rows.cast(dict.fromkeys(scores, pl.UInt16)), wanted)


def distinct_rows(
    source: Source, wanted: Mapping[str, tuple[str, Column]], most: int | None
) -> tuple[Source, Column] | None:
    """The distinct rows of the wanted columns, as a polars frame, and the column of their frequencies.

    None if there are more than `most`.
    """
    for role, column in wanted.values():
        if not _is_row_by_row(column.expr):
            msg = (
                f"`{role}`: {column.source} may depend on other rows, which are not transferred; make it a column "
                "first."
            )
            raise ColumnError(msg)
    roots = roots_of(wanted)
    often = _OFTEN
    while often in roots:
        often += "_"
    named = _numbered(roots)
    frame = source.named(named)
    _refuse_fractions(frame, frame.collect_schema(), named)
    frame = _with_floats(frame, named, wanted)
    # one row more than there may be shows that there are more, without a query of its own
    shown = None if most is None else most + 1
    rows = _aggregated(frame, list(named), [(often, "len", None)], shown)
    if most is not None and len(rows) > most:
        return None
    rows = rows.rename(named)
    if FREQUENCY in wanted:
        frequencies = wanted[FREQUENCY][1]
        values = rows.select(frequencies.expr).to_series()
        rows = rows.with_columns(whole_frequencies(values, frequencies, _MOST, rows[often]).alias(often))
    return replace(source, frame=rows, kind="polars"), Column(often)


def _with_floats(frame: Any, named: Mapping[str, str], wanted: Mapping[str, tuple[str, Column]]) -> Any:
    """Cast decimals that are scores or numbers, which Ibis cannot read where their precision is unlimited."""
    import narwhals.stable.v2 as nw

    keys: set[str] = set()
    for name, (_, column) in wanted.items():
        if not is_value(name):
            keys |= set(column.roots)
    schema = frame.collect_schema()
    decimals = [name for name, root in named.items() if schema[name].is_decimal() and root not in keys]
    return frame.with_columns(nw.col(*decimals).cast(nw.Float64)) if decimals else frame


def number_of_distinct_rows(source: Source, wanted: Mapping[str, tuple[str, Column]]) -> int:
    """The number of distinct rows of the wanted columns, counted by the engine."""
    import narwhals.stable.v2 as nw

    named = _numbered(roots_of(wanted))
    distinct = source.named(named).group_by(*named).agg(nw.len().alias("n"))
    return collected(distinct.select(nw.len().alias("rows"))).item()


def _numbered(roots: Sequence[str]) -> dict[str, str]:
    """Internal names for columns of the user's frame."""
    return {f"r{index}": root for index, root in enumerate(roots)}


def _is_row_by_row(expr: pl.Expr) -> bool:
    """Check whether the value of a row depends on that row alone, in every part of an expression."""
    # polars cannot look into Python functions
    return is_row_separable(expr, unknown=False) and all(map(_is_row_by_row, expr.meta.pop()))


def _typed(source: Source, wanted: Mapping[str, tuple[str, Column]]) -> tuple[Any, Any]:
    """The wanted columns under internal names, numbers as floats and NaN as null; and their dtypes."""
    import narwhals.stable.v2 as nw

    frame = source.named({name: column.roots[0] for name, (_, column) in wanted.items()})
    schema = frame.collect_schema()
    casts: list[Any] = []
    may_be_nan: list[str] = []
    for name in wanted:
        is_whole, is_number = _is_whole(schema[name]), is_value(name)
        if is_number:
            # whole weights are summed exactly
            dtype = nw.Int64 if name == WEIGHT and is_whole else nw.Float64
            number = nw.col(name)
            if schema[name] == nw.Boolean:
                # a cast, which PostgreSQL does not know, would be the same
                number = nw.when(number).then(nw.lit(1)).otherwise(nw.when(~number).then(nw.lit(0)))
            casts.append(number.cast(dtype).alias(name))
        # NaN among weights is an error later on
        if name != WEIGHT and not is_whole and (is_number or schema[name].is_float()):
            may_be_nan.append(name)
    if casts:
        frame = frame.with_columns(*casts)
    _refuse_fractions(frame, schema, {name: column.name for name, (_, column) in wanted.items()})
    frame = _without_nan(frame, may_be_nan)
    for name, bins in _bins_of(wanted).items():
        number = nw.col(name)
        numbered = nw.when(~number.is_null()).then(_reached(number, bins.edges or ()))
        frame = frame.with_columns(numbered.alias(name))
    return frame, frame.collect_schema()


def _bins_of(wanted: Mapping[str, tuple[str, Column]]) -> dict[str, Bins]:
    """The wanted columns that are bins of another."""
    return {name: column.source for name, (_, column) in wanted.items() if isinstance(column.source, Bins)}


def _with_names_of_bins(cells: pl.DataFrame, wanted: Mapping[str, tuple[str, Column]]) -> pl.DataFrame:
    """Cells with the groups of bins in place of their numbers."""
    groups: list[pl.Series] = []
    for name, bins in _bins_of(wanted).items():
        labels = pl.Series(name, bins.labels, pl.Enum(bins.labels))
        groups.append(labels.gather(cells[name].cast(pl.UInt32)))
    return cells.with_columns(groups)


def _refuse_fractions(frame: Any, schema: Any, names: Mapping[str, str]) -> None:
    """Refuse columns of whole numbers with fractions in them, which SQLite takes and Ibis cuts off.

    Args:
        frame: The columns under internal names.
        schema: Their dtypes in the user's table.
        names: The user's names of columns.
    """
    import narwhals.stable.v2 as nw

    whole = [name for name in names if schema[name].is_integer()]
    if not whole or not is_sqlite(frame):
        return
    numbers = {name: nw.col(name).cast(nw.Float64) for name in whole}
    fractions = [(number != number.round(0)).any().alias(name) for name, number in numbers.items()]
    for name, has_fractions in collected(frame.select(*fractions)).row(0, named=True).items():
        if has_fractions:
            msg = (
                f"The column {names[name]!r} is one of whole numbers, but SQLite has fractions in it; cast it to REAL "
                "in the query, or round it."
            )
            raise ColumnError(msg)


def _without_nan(frame: Any, floats: Sequence[str]) -> Any:
    """Put null in place of NaN.

    NaN is above infinity in some databases, and not comparable in others. Its sign, which counts in DataFusion, is
    taken off. Databases without NaN, such as SQLite, have no function that asks for it.
    """
    import narwhals.stable.v2 as nw

    numbers: list[Any] = []
    for name in floats:
        number = nw.col(name)
        numbers.append(nw.when(number.abs() <= math.inf).then(number).alias(name))
    return frame.with_columns(*numbers) if numbers else frame


def _is_whole(dtype: Any) -> bool:
    """Check whether a dtype holds whole numbers of at most 64 bits."""
    import narwhals.stable.v2 as nw

    too_wide = (nw.UInt64, nw.Int128, nw.UInt128)
    return (dtype.is_integer() and dtype not in too_wide) or dtype == nw.Boolean


def _weighed(
    frame: Any, by: Sequence[str], wanted: Sequence[Quantity], weights: tuple[str, Column] | None
) -> pl.DataFrame:  # fmt: skip
    """Aggregate, and refuse whole weights whose sum overflows."""
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


def _aggregated(frame: Any, by: Sequence[str], wanted: Sequence[Quantity], most: int | None = None) -> pl.DataFrame:
    """Reduce quantities of rows by keys in one query: the quantities as columns, then plain aggregates of these.

    At most `most` of the cells are transferred.
    """
    import narwhals.stable.v2 as nw

    columns, aggregates = _aggregates(wanted)
    nans = _nans(frame, wanted) if frame.implementation.is_dask() else {}
    for name, is_nan in nans.items():
        columns[_ODD + name] = is_nan
        aggregates.append(nw.col(_ODD + name).sum())
    frame = frame.select(*by, **columns)
    schema = frame.collect_schema()
    floats = [name for name in by if schema[name].is_float()]
    if floats and frame.implementation.is_dask():
        frame = frame.with_columns(nw.col(*floats) + 0.0)  # it confuses 0.0 and -0.0
    query = frame.group_by(*by).agg(*aggregates) if by else frame.select(*aggregates)
    cells = collected(query if most is None else query.head(most))
    cells = cells.rename({f"a{index}": name for index, (name, _, _) in enumerate(wanted)})
    dtypes = _dtypes_of_sums(cells, wanted, schema)
    for name in by:
        if isinstance(schema[name], nw.Enum):
            dtypes[name] = pl.Enum(schema[name].categories)
    cells = cells.cast(pl.Schema(dtypes)).with_columns(with_one_zero(pl.col(name)).alias(name) for name in floats)
    for name in nans:
        total = pl.when(pl.col(_ODD + name) > 0).then(math.nan).otherwise(pl.col(name))
        cells = cells.with_columns(total.alias(name)).drop(_ODD + name)
    return cells


def _aggregates(wanted: Sequence[Quantity]) -> tuple[dict[str, Any], list[Any]]:
    """The quantities as columns `q0`, `q1`, … and their aggregates `a0`, `a1`, …: some databases demand plain names."""
    import narwhals.stable.v2 as nw

    columns: dict[str, Any] = {}
    aggregates: list[Any] = []
    for index, (_, reduction, value) in enumerate(wanted):
        if value is None:
            aggregates.append(nw.len().alias(f"a{index}"))
        else:
            columns[f"q{index}"] = value
            aggregates.append(getattr(nw.col(f"q{index}"), reduction)().alias(f"a{index}"))
    return columns, aggregates


def _nans(frame: Any, wanted: Sequence[Quantity]) -> dict[str, Any]:
    """For each sum 1 where its value is NaN and nothing is missing: Dask skips NaN as it skips missing values."""
    import narwhals.stable.v2 as nw

    columns = [name for name in frame.columns if is_value(name)]
    nans: dict[str, Any] = {}
    for name, reduction, value in wanted:
        if reduction == "sum" and name not in {"w", "w2"}:
            is_nan = value.is_nan() & _all_present(columns)
            nans[name] = is_nan.cast(nw.Float64)
    return nans


def _dtypes_of_sums(cells: pl.DataFrame, wanted: Sequence[Quantity], schema: Any) -> dict[str, Any]:
    """The dtypes of quantities: counts, and sums of whole weights, are whole as long as 64 bits hold them."""
    dtypes: dict[str, Any] = {}
    for index, (name, reduction, value) in enumerate(wanted):
        is_count = reduction in {"len", "count"}
        # whole weights are summed exactly
        is_weight = name in {"w", "least", WEIGHT} and value is not None
        is_whole = is_count or (is_weight and schema[f"q{index}"].is_integer())
        fits = is_whole and (cells.schema[name] == pl.Int64 or (cells[name].cast(pl.Float64).abs() < _MOST).all())
        dtypes[name] = pl.Int64 if fits else pl.Float64
    return dtypes


def _refuse_continuous(frame: Any, plan: CountPlan, schema: Any) -> None:
    """Refuse labels that are not whole numbers, before they are counted one by one."""
    import narwhals.stable.v2 as nw

    broken: list[Any] = []
    for name in (TRUTH, ESTIMATE):
        is_label = name in plan.columns and name not in plan.tally.declared
        if is_label and (schema[name].is_float() or schema[name].is_decimal()):
            # decimals of unlimited precision cannot be rounded in PostgreSQL
            label = nw.col(name).cast(nw.Float64)
            # what is missing is no number, and not equal to itself in some engines
            is_broken = (label != label.round(0)) & ~label.is_null()
            broken.append(is_broken.any().alias(name))
    if not broken:
        return
    for name, has_broken in collected(frame.select(*broken)).row(0, named=True).items():
        if has_broken:
            raise ColumnError.continuous(name, plan.columns[name][1].name)

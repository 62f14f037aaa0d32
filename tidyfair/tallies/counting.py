"""The pass over the data: one `group_by` that makes a tally."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from tidyfair.errors import ColumnError, EngineError, WeightError, listed
from tidyfair.specs import EVENT, ROLE, Column, blaming_expressions, is_point, names_of, roots_of, telling
from tidyfair.tallies.censoring import with_censoring_weights
from tidyfair.tallies.compared_rows import with_comparisons
from tidyfair.tallies.count_plan import CountPlan
from tidyfair.tallies.key_encoding import Levels, whole_levels
from tidyfair.tallies.moments import (
    ACTUAL,
    KNOWN_REPLICATES,
    MEASURE,
    PREDICTED,
    SCORE,
    digits_lost,
    ends_of,
    moments,
    of_replicate,
    own_centres,
    quantities,
    replicated,
    summed,
    weight_columns,
    weights_of_replicates,
)
from tidyfair.tallies.number_groups import columns_with_edges
from tidyfair.tallies.pushdown import distinct_rows, number_of_distinct_rows, pushed_bins, pushed_down
from tidyfair.tallies.row_counts import ROWS, Engine, binned, count_in_memory, engine_for, grouped
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

_SAMPLE = 1_000
_MOST_REPEATED, _MOST_COUNTED = 5 * 10**7, 2**62
_EXACT = 2.0**53
"""Floats represent all whole numbers below this exactly."""
_SMALLEST, _LARGEST = 1e-100, 1e100
"""Squares of numbers between these limits can be weighted and summed."""
_AUTOMATIC_BINS = 2**12
_DECIMALS = 3
"""Scores of a judge are read to so many decimals."""
_FEW_ROWS = 20_000
"""At most so many rows are parts of their own, where the tally is not kept."""


@telling("counted the rows")
def count(source: Source, plan: CountPlan) -> Tally:
    """Count the rows of a frame in one pass."""
    if source.is_elsewhere:
        try:
            with engine_errors(source.frame):
                return _elsewhere(source, _with_declared(source, plan))
        except EngineError as error:
            error.metrics = plan.metrics
            raise
    if source.kind != "polars" or plan.tally.scores is not None:
        plan = _with_declared(source, plan)
        source = source if source.kind == "polars" else source.here(plan.columns)
    # labels are counted straight from columns in memory, unless these, or checks of them, need a query before
    labels = source.columns_in_memory(plan.columns) if plan.is_of_labels and plan.columns else None
    cells = None if labels is None else count_in_memory(*labels)
    return _here(source, plan) if cells is None else replace(plan.tally, cells=_arranged(cells, plan.tally.keys))


def _with_declared(source: Source, plan: CountPlan) -> CountPlan:
    """The plan with the levels that numeric columns declare; scores must exist even where nothing reads them."""
    tally = plan.tally
    for column in tally.scores.columns if tally.scores is not None else ():
        column.check(source.columns, "probs")
    declared = source.levels_of_numbers({TRUTH: tally.truth, ESTIMATE: tally.estimate})
    return replace(plan, tally=replace(tally, declared=declared)) if declared else plan


def _here(source: Source, plan: CountPlan) -> Tally:
    """Count a polars frame by queries, with the steps that the plan has."""
    tally, needs, cut = plan.tally, plan.tally.needs, plan.tally.cut
    engine = engine_for(source.rows)
    frame = source.select(plan.columns)
    known: dict[str, Levels] = {}
    rows = cells = None
    with blaming_expressions(plan.columns):
        frame, exact = _as_numbers(frame, plan)
        if plan.frequencies is not None:
            frame = _with_frequencies(frame, plan, plan.frequencies, engine)
        if tally.forecast is not None and tally.forecast.is_survival and tally.truth is not None:
            outer = key_names(tally.keys, "outer")
            frame = with_censoring_weights(
                frame, tally.forecast, tally.truth, outer, weighted=needs.censoring, by_row=needs.event_censoring
            ).lazy()
        if cut is not None:
            frame = _decided(frame, tally, cut, engine)
            known = _made_by(cut)
        if not needs.numbers:
            known |= _known_labels(frame, tally, engine)
        if plan.parts is not None:
            frame = _in_parts(frame.collect(engine=engine), plan, plan.parts).lazy()
            tally = replace(tally, keys=(*tally.keys, Key(Column(BLOCK), "cluster")))
        if plan.numbers_rows:
            frame = frame.with_row_index(f"k{len(tally.keys)}")
            tally = replace(tally, keys=(*tally.keys, Key(Column(ROW), "cluster")))
        if needs.compared or (needs.rows and not tally.binned):
            # read once, as the tally keeps rows, or compares them
            kept = with_comparisons(frame.collect(engine=engine), tally, [*plan.features])
            frame, rows = kept.lazy(), kept if needs.rows else None
        if tally.binned:
            rows, cells = _bins(frame, tally, source.rows)
        if cells is None:
            cells = _cells(frame, tally, known, source.rows)
    return _finished(replace(tally, rows=rows), cells, plan, exact)


def _decided(frame: pl.LazyFrame, tally: Tally, cut: Cut, engine: Engine) -> pl.LazyFrame:
    """Add the labels that a threshold derives from scores, which must be on its scale."""
    if cut.is_of_probabilities and tally.scores is not None:
        score = pl.col("s0")
        low, high = frame.select(score.min().alias("low"), score.max().alias("high")).collect(engine=engine).row(0)
        cut.check_scores(low, high, tally.scores.columns[0].name)
    groups = [f"t{index}" for index in range(len(cut.by))]
    decided = cut.decide(frame, key_names(tally.keys, "outer"), groups, names_of(cut.by))
    return decided if cut.point is not None else decided.drop(groups)


def _bins(frame: pl.LazyFrame, tally: Tally, rows: int | None) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Rows counted by bins of their scores and, if nothing else is to be counted, the cells."""
    scores, needs = tally.scores, tally.needs
    if scores is None or scores.bins is None:
        return pl.DataFrame(), None
    names = tally.scored
    own = [*key_names(tally.keys), TRUTH] if tally.truth is not None else key_names(tally.keys)
    counts, cells = binned(frame, own, names, scores.bins, rows)
    if cells is None or needs.terms or {*frame.collect_schema()} != {*own, *names}:
        return counts, None
    ends = frame.select(
        pl.lit(value=True).alias(SCORE), *summed(quantities(needs, tally.scored, tally.forecast, weighted=False))
    )
    return counts, cells.join(ends.collect(engine=engine_for(rows)), how="cross")


def _elsewhere(source: Source, plan: CountPlan) -> Tally:
    """Count with another engine or, if sums are not enough, count its distinct rows.

    Columns are checked as those of any frame are, on a polars frame without rows.
    """
    if plan.tally.needs.order:
        msg = (
            f"Some metrics, such as mase, depend on the order of rows, which {source.engine} does not keep; pass the "
            f"rows in their order as a frame in memory: `{in_memory(source.frame)}`."
        )
        raise ColumnError(msg)
    for role, column in plan.columns.values():
        column.check(source.columns, role)
    roots = roots_of(plan.columns)
    source = source.with_levels(roots)
    no_rows = source.emptied(roots).select(plan.columns)
    _, exact = _as_numbers(no_rows, plan)
    plan = replace(plan, edges=columns_with_edges(source, [column for _, column in plan.columns.values()]))
    return _counted_there(source, plan, exact) or _tally_of_distinct_rows(source, plan, exact)


def _counted_there(source: Source, plan: CountPlan, exact: frozenset[str]) -> Tally | None:
    """The tally counted by another engine; None if it needs rows."""
    tally = plan.tally
    if plan.parts is not None or plan.numbers_rows or tally.forecast is not None or tally.judge is not None:
        return None
    cells, rows, scores = pushed_down(source, plan), None, tally.scores
    if cells is None:
        return None
    if scores is not None and scores.binned_for:
        # those that are counted in bins must lie between 0 and 1
        ends = [end for name in plan.tally.scored for end in ends_of(name)]
        if not cells.select(pl.all_horizontal(pl.col(ends).is_between(0, 1).all())).item():
            return None
    if scores is not None and scores.bins is not None:
        rows = pushed_bins(source, plan.columns, scores.bins)
    return _finished(replace(tally, rows=rows), cells, plan, exact)


def _tally_of_distinct_rows(source: Source, plan: CountPlan, exact: frozenset[str]) -> Tally:
    """The tally of the distinct rows of another engine or, if these are very many, of bins of their scores."""
    most = None if plan.many == "transfer" else MANY_ROWS
    transferred = distinct_rows(source, plan.columns, most)
    if transferred is not None:
        rows, often = transferred
        return _here(rows, replace(plan, frequencies=often))
    if plan.many == "bin" and plan.tally.scores is not None:
        scores = replace(plan.tally.scores, bins=_AUTOMATIC_BINS, binned_for=source.engine)
        in_bins = _counted_there(source, replace(plan, tally=replace(plan.tally, scores=scores)), exact)
        if in_bins is not None:
            return in_bins
    purpose = "intervals of " if plan.parts is not None else ""
    purpose += ", ".join(plan.metrics)
    shown = f"distinct rows of the columns {listed(roots_of(plan.columns))} for {purpose}"
    number = number_of_distinct_rows(source, plan.columns)
    check_transfer(source.frame, number, shown, "Count a sample of the rows or round the numbers")
    return _tally_of_distinct_rows(source, replace(plan, many="transfer"), exact)


def _finished(tally: Tally, cells: pl.DataFrame, plan: CountPlan, exact: frozenset[str]) -> Tally:
    """Check the cells and put them into the tally."""
    if tally.weights is not None:
        _check_weights(cells, tally.weights, tally.role_of_weights)
        cells = cells.drop("least", "known")
    if tally.design is not None and tally.design.replicates:
        cells = _checked_replicates(cells, tally.design.replicates)
    cells = _arranged(cells, tally.keys)
    if plan.numbers:
        _check_numbers(cells, plan, exact)
    return replace(tally, cells=_within_bins(cells, tally.scores) if tally.binned else cells)


def recounted(tally: Tally, rows: pl.DataFrame, keys: tuple[Key, ...]) -> Tally:
    """A tally of other rows than the kept ones, with the same columns except the keys."""
    cells = _cells(rows.lazy(), tally, _made_by(tally.cut), len(rows))
    cells = _arranged(cells.drop("least", "known", strict=False), keys)
    return replace(tally, cells=cells, keys=keys, rows=rows)


def _made_by(cut: Cut | None) -> dict[str, Levels]:
    """The levels of the estimates at a list of thresholds."""
    return {ESTIMATE: cut.codes} if cut is not None and cut.codes is not None else {}


def _arranged(cells: pl.DataFrame, keys: tuple[Key, ...]) -> pl.DataFrame:
    """The cells with keys and labels first; absent labels are null."""
    columns = cells.columns
    if absent := [pl.lit(None).alias(name) for name in LABELS if name not in columns]:
        cells = cells.with_columns(absent)
        columns = cells.columns
    first = [*key_names(keys), *LABELS]
    if SCORE in columns:
        first.append(SCORE)
    order = list(dict.fromkeys([*first, *columns]))
    # by their names, which is no query
    return cells if order == columns else cells[order]


def _cells(frame: pl.LazyFrame, tally: Tally, known: dict[str, Levels], rows: int | None) -> pl.DataFrame:
    """One row for each combination of keys and labels, with everything that is summed.

    `known` are the possible labels, `rows` is the number of rows in memory.
    """
    needs = tally.needs
    columns = frame.collect_schema().names()
    replicates = len(tally.design.replicates) if tally.design is not None else 0
    sums = [pl.col(FREQUENCY).sum().cast(pl.Int64).alias("n") if FREQUENCY in columns else ROWS]
    # there are frequencies only where there are no weights
    measure = FREQUENCY if FREQUENCY in columns else None
    if WEIGHT in columns:
        measure, weight = WEIGHT, pl.col(WEIGHT)
        sums += [weight.sum().alias("w"), weight.cast(pl.Float64).pow(2).sum().alias("w2")]
        sums += [weight.min().alias("least"), weight.count().alias("known")]
    weighted = measure is not None
    if needs.anything:
        frame = _with_presence(frame, columns, tally)
        sums += summed(quantities(needs, tally.scored, tally.forecast, weighted=weighted))
        sums += summed(replicated(quantities(needs, tally.scored, tally.forecast, weighted=False), replicates))
        if measure is not None:
            frame = frame.with_columns(pl.col(measure).cast(pl.Float64).alias(MEASURE))
        columns = frame.collect_schema().names()
    if replicates:
        sums += summed(weights_of_replicates(replicates))
        has_all = pl.all_horizontal(pl.col(weight_columns(replicates)).is_not_null())
        sums.append(has_all.sum().cast(pl.Int64).alias(KNOWN_REPLICATES))
    by = [name for name in columns if name in {TRUTH, ESTIMATE, SCORE} or (name[0] == "k" and name[1:].isdigit())]
    if needs.moments:
        return _with_moments(frame, by, sums, known, rows, weighted=weighted, replicates=replicates)
    return grouped(frame, by, sums, known, rows)


def _with_presence(frame: pl.LazyFrame, columns: list[str], tally: Tally) -> pl.LazyFrame:
    """Add keys that are true where scores and numbers are present, and null where they are missing, as labels are."""
    added: dict[str, pl.Expr] = {}
    needs, forecast = tally.needs, tally.forecast
    if tally.scored:
        is_scored = pl.all_horizontal(pl.col(tally.scored).is_not_null())
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
    """The cells with sums about a center: that of some rows or, where groups lie far apart, the mean of each."""
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


def _in_parts(rows: pl.DataFrame, plan: CountPlan, seed: int) -> pl.DataFrame:
    """Assign the rows of each outer group to random parts, whatever their order: equal rows may be swapped.

    They are in the order of their numbers first, so that the other metrics and groups of a call hardly matter.
    """
    keys = key_names(plan.tally.keys)
    numbers = [name for name in rows.columns if name not in {*keys, *LABELS, WEIGHT, FREQUENCY}]
    others = [name for name in rows.columns if name not in {*keys, *numbers}]
    rows = rows.sort([*numbers, *others, *keys], nulls_last=True)
    count = _FEW_ROWS if plan.has_single_rows and len(rows) <= _FEW_ROWS else BLOCKS
    outer = key_names(plan.tally.keys, "outer")
    place, size = pl.int_range(pl.len()), pl.len()
    if outer:
        place, size = place.over(outer), size.over(outer)
    places = rows.select(place.alias("place"), size.alias("size"))
    position, sizes, blocks = places["place"].to_numpy(), places["size"].to_numpy(), np.zeros(len(rows))
    for own in np.unique(sizes).tolist():
        shuffled = np.random.default_rng(seed).permutation(own) % count
        blocks[sizes == own] = shuffled[position[sizes == own]]
    blocks = blocks.astype(np.int16)
    return rows.with_columns(pl.Series(f"k{len(keys)}", blocks))


def _as_numbers(frame: pl.LazyFrame, plan: CountPlan) -> tuple[pl.LazyFrame, frozenset[str]]:
    """Cast scores, numbers and weights, and refuse columns of other values.

    Beside the frame the columns of integers and decimals, which floats may not represent exactly.
    """
    tally = plan.tally
    schema = frame.collect_schema()
    casts: list[pl.Expr] = []
    exact: set[str] = set()
    for name in plan.numbers:
        role, column = plan.columns[name]
        dtype = schema[name]
        if not (dtype.is_numeric() or dtype == pl.Null):
            msg = f"`{role}`: the column {column.name!r} is {dtype}; {_why_numbers(name, role, plan)}."
            raise ColumnError(msg)
        if dtype.is_integer() or dtype.is_decimal():
            exact.add(name)
        casts.append(pl.col(name).cast(pl.Float64))
    casts += _weights_as_numbers(tally, schema)
    if tally.judge is not None:
        judged, *probability = tally.names(tally.judge.columns)
        casts += [pl.col(judged).round(_DECIMALS)] if schema[judged].is_float() else []
        # only the labels of people were drawn
        casts += [pl.when(pl.col(TRUTH).is_not_null()).then(pl.col(name)).alias(name) for name in probability]
    return frame.with_columns(casts) if casts else frame, frozenset(exact)


def _weights_as_numbers(tally: Tally, schema: pl.Schema) -> list[pl.Expr]:
    """The casts of weights, and of replicate weights, which must be numbers."""
    casts: list[pl.Expr] = []
    if tally.weights is not None:
        dtype = schema[WEIGHT]
        if not (dtype.is_numeric() or dtype == pl.Boolean):
            msg = f"`{tally.role_of_weights}`: the column {tally.weights.name!r} is {dtype}; weights must be numbers."
            raise WeightError(msg)
        is_whole = dtype.is_integer() or dtype == pl.Boolean
        casts.append(pl.col(WEIGHT).cast(pl.Int64 if is_whole else pl.Float64, strict=False))
    for number, column in enumerate(tally.design.replicates if tally.design is not None else ()):
        name = f"v{number}"
        if not schema[name].is_numeric():
            msg = f"`{ROLE}`: the replicate {column.name!r} is {schema[name]}; weights must be numbers."
            raise WeightError(msg)
        casts.append(pl.col(name).cast(pl.Float64))
    return casts


def _why_numbers(name: str, role: str, plan: CountPlan) -> str:
    """The reason why a column must hold numbers, for messages."""
    if role == "probs":
        is_only_decided = plan.tally.cut is not None and not plan.tally.needs.scores
        return "a threshold needs numbers" if is_only_decided else "scores are numbers"
    if EVENT in plan.columns:
        times = "survival times are numbers, such as `pl.col(…).dt.total_days()` of a duration"
        return times if name == ACTUAL else "predicted times and risks are numbers"
    return "quantiles and the ends of intervals are numbers" if is_point(name) else "regression metrics read numbers"


def _with_frequencies(frame: pl.LazyFrame, plan: CountPlan, frequencies: Column, engine: Engine) -> pl.LazyFrame:
    """The frame with whole numbers as frequencies, or with each row as often as its frequency says.

    Sums of equal rows are products, but ranks are not, nor what looks at rows one by one.
    """
    tally = plan.tally
    looks_at_rows = bool(tally.needs.rows or tally.needs.compared or tally.binned)
    is_ranked = tally.cut is not None and tally.cut.option != "threshold"
    has_parts = plan.parts is not None or plan.numbers_rows
    repeat = looks_at_rows or is_ranked or has_parts or tally.weights is not None
    values = frame.select(FREQUENCY).collect(engine=engine)[FREQUENCY]
    often = whole_frequencies(values, frequencies, _MOST_REPEATED if repeat else _MOST_COUNTED)
    if not repeat:
        return frame.with_columns(pl.col(FREQUENCY).cast(pl.Int64)).filter(pl.col(FREQUENCY) > 0)
    rows = frame.drop(FREQUENCY).collect(engine=engine)
    return rows[np.repeat(np.arange(len(rows)), often.to_numpy())].lazy()


def _check_numbers(cells: pl.DataFrame, plan: CountPlan, exact: frozenset[str]) -> None:
    """Refuse numbers that floats cannot represent exactly or square."""
    sizes: dict[str, float] = {}
    for name in plan.numbers:
        role, column = plan.columns[name]
        ends = list(ends_of(name))
        # an infinite survival time is one that half of the survival curve does not reach
        if ends[0] not in cells.columns or (name == PREDICTED and EVENT in plan.columns):
            continue
        size = cells.select(pl.max_horizontal(pl.col(ends).abs().max())).item()
        if size is None:
            continue
        if name in {ACTUAL, PREDICTED}:
            sizes[name] = size
        check_size(size, role, column, is_exact=name in exact)
    largest = max(sizes.values(), default=0.0)
    if 0 < largest < _SMALLEST:
        role, column = plan.columns[max(sizes, key=sizes.__getitem__)]
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
    extremes: list[str] = []
    for index, column in enumerate(scores.columns if scores is not None else ()):
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


def _known_labels(frame: pl.LazyFrame, tally: Tally, engine: Engine) -> dict[str, Levels]:
    """The possible labels in columns of fractional types, whose numbers must be whole."""
    schema = frame.collect_schema()
    columns: dict[str, Column] = {}
    for name, column in ((TRUTH, tally.truth), (ESTIMATE, tally.estimate)):
        is_fractional = name in schema and (schema[name].is_float() or schema[name].is_decimal())
        if column is not None and is_fractional and name not in tally.declared:
            columns[name] = column
    if not columns:
        return {}
    label = pl.col(list(columns))
    broken = (label != label.round(0)).any().name.prefix("broken ")
    query = frame.select(broken, label.min().name.prefix("least "), label.max().name.prefix("most "))
    summary = query.collect(engine=engine).row(0, named=True)
    known: dict[str, Levels] = {}
    for name, column in columns.items():
        if summary[f"broken {name}"]:
            raise ColumnError.continuous(name, column.name)
        levels = whole_levels(schema[name], summary[f"least {name}"], summary[f"most {name}"])
        if levels is not None:
            known[name] = levels
    return known


def _checked_replicates(cells: pl.DataFrame, replicates: Sequence[Column]) -> pl.DataFrame:
    """The cells without the counts of replicate weights, which are refused where some are missing or not finite."""
    fault = "missing" if (cells[KNOWN_REPLICATES] != cells["n"]).any() else None
    for number, column in enumerate(replicates):
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

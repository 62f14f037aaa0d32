"""Intervals from replicates of a tally: quantiles and standard errors of values."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, ClusterWarning, UndefinedWarning, warn
from tidyfair.evaluation.evaluated import evaluate_specs, labels_with_scores
from tidyfair.evaluation.group_cells import group_cell_of_rows
from tidyfair.evaluation.results import LOST, tidy_groups, tidy_results
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.intervals.proportions import student
from tidyfair.intervals.resampling import generator, redrawn, redrawn_clusters, redrawn_rows
from tidyfair.specs.result_columns import GROUP_KEYS
from tidyfair.tallies.tally import BLOCK, ESTIMATE, HIDDEN, LABELS, THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.specs.metric_specs import MetricSpec
    from tidyfair.specs.options import Options
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

INTERVAL = (".lower", ".upper", ".std_error", ".method", LOST)
_KNOWN = "\0known"
_LEAST, _MOST = "\0least", "\0most"
ALIKE = "alike"
"""The column that is true where all replicates have the same value."""
_FEW_DRAWS = 100
"""Enough to see that values vary: so many draws of eight rows that differ are the same once in 10^40."""
ROUNDED = 1e-12
"""The relative difference of sums of the same floats in another order is smaller."""
_MANY_LOST = 0.05
_FEW_CLUSTERS = 30


def by_replicates(
    tally: Tally, specs: Sequence[MetricSpec], options: Options, tidy: Callable[[Evaluated], pl.DataFrame]
) -> pl.DataFrame:
    """The quantiles of replicates by the keys of a tidy table."""
    _check_drawn(tally, specs, options)
    summary = interval_of(pl.col(".estimate"), tally, options.conf_level)
    tables: list[pl.DataFrame] = []
    messages: list[str] = []
    for method, times, values, keys in replicates_of(tally, specs, options, tidy):
        complete = values.filter(pl.col(_KNOWN) == pl.col(_KNOWN).max().over(keys))
        lost = times - pl.len().cast(pl.Int64)
        columns = [*summary, pl.lit(method).alias(".method"), lost.alias(LOST)]
        table = complete.group_by(keys).agg(columns)
        messages += _messages_of_lost(table, times)
        tables.append(table)
    if messages and options.on_undefined == "warn":
        warn("; ".join(messages) + '. (on_undefined="ignore" silences this.)', UndefinedWarning)
    intervals = _once(tables)
    return _without_false_ends(intervals, specs) if options.interval in {"auto", "bayes"} else intervals


def alike(tally: Tally, specs: Sequence[MetricSpec], options: Options) -> pl.DataFrame:
    """A table with `ALIKE` for each group: whether a few replicates of it have the same value."""
    few = replace(options, times=min(options.times or _FEW_DRAWS, _FEW_DRAWS))

    def ends(evaluated: Evaluated) -> pl.DataFrame:
        """The least and the most of some replicates, which take much less memory than all values."""
        values = tidy_groups(evaluated).drop_nulls(".estimate")
        value = pl.col(".estimate")
        return values.group_by(group_keys(tally, values)).agg(
            value.min().alias(_LEAST), value.max().alias(_MOST), value.first()
        )

    least, most = pl.col(_LEAST).min(), pl.col(_MOST).max()
    # infinity minus itself is not a number
    same = (least == most) | (most - least <= ROUNDED * pl.max_horizontal(least.abs(), most.abs()))
    tables = [
        extremes.group_by(keys).agg(same.alias(ALIKE))
        for _, _, extremes, keys in replicates_of(tally, specs, few, ends)
    ]
    return _once(tables)


def _once(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of tables without duplicates, where the same groups were drawn by several designs."""
    rows = pl.concat(tables, how="diagonal_relaxed")
    keys = [name for name in rows.columns if name not in {*INTERVAL, ALIKE}]
    return rows.unique(keys, keep="first", maintain_order=True)


def interval_of(value: pl.Expr, tally: Tally, level: float) -> list[pl.Expr]:
    """The quantiles and the standard error of replicates of a tally, widened for few clusters."""
    tail, factor = (1 - level) / 2, 1.0
    clusters = _clusters(tally)
    if clusters is not None:
        # wider, as the interval of Student's t is (Hesterberg, 2015)
        factor = math.sqrt(clusters / max(1, clusters - 1))
        tail = math.erfc(factor * student(level, max(1, clusters - 1)) / math.sqrt(2)) / 2
    warn_of_few_clusters(tally)
    return [
        value.quantile(tail, "linear").alias(".lower"), value.quantile(1 - tail, "linear").alias(".upper"),
        (value.std() * factor).alias(".std_error"),
    ]  # fmt: skip


def warn_of_few_clusters(tally: Tally) -> None:
    """Warn of intervals from few clusters."""
    clusters = _clusters(tally)
    if clusters is not None and 0 < clusters < _FEW_CLUSTERS:
        msg = f"There are {clusters} clusters; intervals from fewer than {_FEW_CLUSTERS} are not to be relied on."
        warn(msg, ClusterWarning)


def replicates_of(
    tally: Tally, specs: Sequence[MetricSpec], options: Options, tidy: Callable[[Evaluated], pl.DataFrame]
) -> Iterator[tuple[str, int, pl.DataFrame, list[str]]]:
    """The methods of drawing, the numbers of replicates, their tidy tables, and the key columns of these.

    Specs with the same groups share their replicates.
    """
    clustered = bool(tally.clusters)
    _check_drawn(tally, specs, options)
    interval: Any = "bayes" if options.interval == "bayes" else "bootstrap"
    method = "cluster bootstrap" if _clusters(tally) is not None else "dirichlet" if interval == "bayes" else interval
    quiet = quietly(options)
    by_design: dict[tuple[object, bool, bool], list[MetricSpec]] = {}
    for spec in specs:
        by_design.setdefault((spec.by, is_stratified(spec), _of_rows(spec)), []).append(spec)
    for (_, stratified, of_rows), own in by_design.items():
        by = own[0].by
        random = generator(options.seed, f"replicates {stratified}")
        columns = by.columns if by else ()
        # a prior of one group says nothing about another
        fixed = columns if stratified or interval == "bayes" else ()
        times = options.replicates_of_rows if of_rows else options.replicates
        sized: Any = {"times": times, "random": random}
        if of_rows:
            drawn = redrawn_rows(tally, columns, strata=fixed, **sized)
        elif clustered:
            drawn = redrawn_clusters(tally, columns, **sized)
        else:
            possible = _possible(tally, options) if interval == "bayes" else None
            drawn = redrawn(tally, columns, strata=fixed, method=interval, possible=possible, **sized)
        parts = [
            _counted(evaluated, tidy(evaluated)).drop_nulls(".estimate")
            for tally_drawn in drawn
            for evaluated in evaluate_specs(tally_drawn, own, quiet)
        ]
        table = pl.concat(parts, how="diagonal_relaxed")
        yield method, times, table, group_keys(tally, table)


def quietly(options: Options) -> Options:
    """The options for replicates: without intervals and warnings of their own."""
    return replace(options, interval=None, on_undefined="ignore")


def group_keys(tally: Tally, table: pl.DataFrame) -> list[str]:
    """The key columns of a tidy table of replicates, without the number of the replicate."""
    outer = [key.column.name for key in tally.outer if key.role == "outer"]
    return [*outer, *(name for name in GROUP_KEYS if name in table.columns)]


def _possible(tally: Tally, options: Options) -> pl.DataFrame:
    """All pairs of true and predicted label that are possible or occur."""
    return pl.concat([label_pairs(tally, options), tally.cells.select(LABELS)], how="vertical_relaxed").unique()


def label_pairs(tally: Tally, options: Options) -> pl.DataFrame:
    """All possible pairs of true and predicted label."""
    labels = labels_with_scores(
        tally, labels=options.labels, pos_label=options.pos_label, estimator=options.estimator,
        allow_unseen=True,
    )  # fmt: skip
    sides: list[pl.DataFrame] = []
    for name in LABELS:
        column = tally.cells[name]
        distinct = column.drop_nulls().unique()
        if name == ESTIMATE and tally.cut is not None:
            values = pl.Series([False, True]) if column.dtype == pl.Boolean else distinct
        else:
            values = pl.Series(list(labels.values)).cast(column.dtype) if len(distinct) else column.clear(1)
        sides.append(pl.DataFrame({name: values}))
    return sides[0].join(sides[1], how="cross")


def results_of(evaluated: Evaluated) -> pl.DataFrame:
    """The results of replicates, without explanations."""
    return tidy_results(evaluated, undefined_is_null=False, explain=False)


def _counted(evaluated: Evaluated, table: pl.DataFrame) -> pl.DataFrame:
    """A tidy table of replicates with the number of groups that have a value in each."""
    if ".group" in table.columns:
        return table.with_columns(pl.lit(1, pl.UInt32).alias(_KNOWN))
    import numpy as np

    values, outers = evaluated.values, len(evaluated.group_cells.outer_keys)
    result = values.array("spec").astype(np.int64) * outers + values.array("outer")
    has_value = ~np.isnan(values.array("estimate"))
    counts = np.bincount(result[has_value], minlength=len(table))
    # results without rows have no number of groups
    has_rows = np.bincount(result, minlength=len(table)) > 0
    return table.with_columns(pl.Series(_KNOWN, np.where(has_rows, counts, np.nan), nan_to_null=True))


def _messages_of_lost(intervals: pl.DataFrame, times: int) -> list[str]:
    """Messages about intervals from replicates of which many have no value for some group."""
    with_many_lost = intervals.filter(pl.col(LOST) > _MANY_LOST * times).sort(LOST, descending=True)
    return [
        f"{name}{f' by {by}' if by else ''}: in {lost} of {times} replicates a group has no value, and the interval is "
        "of the others"
        for name, by, lost in with_many_lost.unique([".metric", ".by"], keep="first", maintain_order=True)
        .select(".metric", ".by", LOST).rows()
    ]  # fmt: skip


def _without_false_ends(intervals: pl.DataFrame, specs: Sequence[MetricSpec]) -> pl.DataFrame:
    """Intervals without the end at which groups are equal: chance alone moves distances away from there.

    Replicates add chance once more, so that this end would exclude equality even where it is true.
    """
    if ".group" in intervals.columns:
        return intervals
    ends = {".lower": pl.lit(value=False), ".upper": pl.lit(value=False)}
    for spec in specs:
        if spec.by and spec.aggregate and spec.aggregate.is_distance:
            applies = (pl.col(".metric") == spec.name) & (pl.col(".by") == spec.by.text)
            end = ".upper" if spec.aggregate.direction == "maximize" else ".lower"
            ends[end] = ends[end] | applies
    methods = {end: pl.col(".method") + text for end, text in ((".lower", ", upper end"), (".upper", ", lower end"))}
    return intervals.with_columns(
        *(pl.when(~false).then(end).alias(end) for end, false in ends.items()),
        pl.when(ends[".lower"]).then(methods[".lower"]).when(ends[".upper"]).then(methods[".upper"])
        .otherwise(".method").alias(".method"),
    )  # fmt: skip


def _check_drawn(tally: Tally, specs: Sequence[MetricSpec], options: Options) -> None:
    """Refuse specs that have no replicates."""
    for spec in specs:
        of_rows = _of_rows(spec)
        prior_of = "rows" if of_rows else "clusters" if tally.clusters else "weights" if tally.weights else None
        reasons = {
            "groups of which are suppressed": HIDDEN in tally.cells.columns,
            "which reads rows in the order in which they stand": tally.needs.order and of_rows,
            "of which only bins of scores were counted": tally.binned and of_rows,
            "which compares each row with its neighbours, so that rows and clusters do not vary independently":
                any(formula.reads_neighbors for _, formula in spec.formulas),
            "of which the tally does not say how it varies: count with `parts=0`, or call the metric itself":
                not is_of_labels(spec) and not of_rows and not tally.clusters,
            f"whose {prior_of} have no prior": options.interval == "bayes" and prior_of,
            "which is about how many rows groups have": options.interval == "bayes"
                and not any(formula.reads for _, formula in spec.formulas),
        }  # fmt: skip
        for reason in [reason for reason, applies in reasons.items() if applies]:
            msg = f"There is no interval of {spec.name}, {reason}; leave `interval=` out, or ask for the others alone."
            raise ArgumentError(msg)


def with_lone(tally: Tally, evaluated: Evaluated) -> pl.DataFrame:
    """The rows of values, and whether they are `lone`: of one row or cluster, so that all replicates are the same."""
    group_cells, conditions = evaluated.group_cells, [pl.lit(value=False)]
    tally = tally.at_each_cut() if THRESHOLD in group_cells.outer_keys.columns else tally.over_points()
    for number, spec in enumerate(evaluated.specs):
        of_rows, (first, _) = _of_rows(spec), group_cells.spans[spec.by]
        drawn = tally.names([key.column for key in tally.clusters if not of_rows or key.column.name != BLOCK])
        for name, formula in spec.formulas:
            lone = pl.col("n") == 1
            if drawn:
                group_cell = group_cell_of_rows(tally, group_cells, spec.by).cast(pl.Int32) + first
                cells = tally.cells.with_columns(group_cell).drop_nulls(
                    [role for role in LABELS if role in formula.reads]
                )
                clusters = cells.group_by(GROUP_CELL).agg(pl.struct(drawn).n_unique().alias("clusters"))
                lone |= pl.col(GROUP_CELL).is_in(clusters.filter(clusters=1)[GROUP_CELL].implode())
            # how many rows there are is no value of theirs
            if formula.reads:
                conditions.append(lone & (pl.col("spec") == number) & (pl.col("name") == name))
    return evaluated.rows.with_columns(pl.any_horizontal(conditions).fill_null(value=False).alias("lone"))


def lone_results(tally: Tally, evaluated: Evaluated) -> pl.Series:
    """A mask of the results with a lone value, or with fewer groups than their comparison needs."""
    groups = with_lone(tally, evaluated).filter(pl.col("estimate").is_not_null()).group_by("spec", "outer")
    counted = groups.agg(pl.col("lone").any(), pl.col(GROUP_CELL).n_unique().alias("groups"))
    by_result = {(number, outer): (lone, count) for number, outer, lone, count in counted.rows()}
    is_lone = list[bool]()
    for number, spec in enumerate(evaluated.specs):
        needed = spec.aggregate.groups_needed if spec.aggregate else 1
        of_outer = (by_result.get((number, outer), (True, 0)) for outer in range(len(evaluated.group_cells.outer_keys)))
        is_lone += [lone or count < needed for lone, count in of_outer]
    return pl.Series(is_lone, dtype=pl.Boolean)


def _clusters(tally: Tally) -> int | None:
    """The number of the user's own clusters; None without any."""
    names = tally.names([key.column for key in tally.clusters if key.column.name != BLOCK])
    return tally.cells.select(names).n_unique() if names else None


def _of_rows(spec: MetricSpec) -> bool:
    """Check whether replicates need the rows, because counts and sums are not enough."""
    return any(formula.input != "sums" and formula.kind != "class" for _, formula in spec.formulas)


def is_of_labels(spec: MetricSpec) -> bool:
    """Check whether counts of labels are enough for a spec."""
    return all(formula.kind == "class" and not formula.all_terms for _, formula in spec.formulas)


def is_stratified(spec: MetricSpec) -> bool:
    """Check whether replicates keep the sizes of groups: not where these are part of a metric."""
    aggregate = spec.aggregate
    shares = aggregate is not None and (aggregate.contexts or aggregate.reads_weight)
    return spec.by is not None and not shares and not any(formula.compares for _, formula in spec.formulas)

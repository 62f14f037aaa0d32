"""What replicates of a tally say of values: their quantiles and errors, and how often they are on one side."""

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
from tidyfair.tallies.tally import BLOCK, ESTIMATE, HIDDEN, LABELS, THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.specs.metric_specs import MetricSpec
    from tidyfair.specs.options import Options
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

INTERVAL = (".lower", ".upper", ".std_error", ".method", LOST)
_KEYS = (".metric", ".by", ".group", ".level", ".threshold", ".top_k", ".top_fraction")
_KNOWN = "\0known"
_LEAST, _MOST = "\0least", "\0most"
ALIKE = "alike"
"""The column that says whether the values of replicates are all the same."""
_FEW_DRAWS = 100
"""Enough to see that values vary: so many draws of eight rows that are not all alike differ but for once in 10^40."""
ROUNDED = 1e-12
"""Sums of the same floats in another order differ by less, relative to their size."""
_MANY_LOST = 0.05
_FEW_CLUSTERS = 30


def by_replicates(
    tally: Tally, specs: Sequence[MetricSpec], options: Options, tidy: Callable[[Evaluated], pl.DataFrame]
) -> pl.DataFrame:
    """The quantiles of replicates by what the rows of a tidy table are about."""
    _check_drawn(tally, specs, options)
    summary = interval_of(pl.col(".estimate"), tally, options.conf_level)
    tables: list[pl.DataFrame] = []
    for method, every, keys in replicates_of(tally, specs, options, tidy):
        complete = every.filter(pl.col(_KNOWN) == pl.col(_KNOWN).max().over(keys))
        lost = options.times - pl.len().cast(pl.Int64)
        told = [*summary, pl.lit(method).alias(".method"), lost.alias(LOST)]
        tables.append(complete.group_by(keys).agg(told))
    found = _once(tables)
    if options.on_undefined == "warn":
        _tell_lost(found, options.times)
    return _without_false_ends(found, specs) if options.interval in {"auto", "bayes"} else found


def alike(tally: Tally, specs: Sequence[MetricSpec], options: Options) -> pl.DataFrame:
    """Whether a few replicates of each group have the same value, by what its row is about."""
    few = replace(options, times=min(options.times, _FEW_DRAWS))

    def ends(evaluated: Evaluated) -> pl.DataFrame:
        """The least and the most of some replicates: of many groups, these take much less memory than the values."""
        values = tidy_groups(evaluated).drop_nulls(".estimate")
        value = pl.col(".estimate")
        return values.group_by(group_keys(tally, values)).agg(
            value.min().alias(_LEAST), value.max().alias(_MOST), value.first()
        )

    least, most = pl.col(_LEAST).min(), pl.col(_MOST).max()
    # infinity less itself is no number
    same = (least == most) | (most - least <= ROUNDED * pl.max_horizontal(least.abs(), most.abs()))
    tables = [every.group_by(keys).agg(same.alias(ALIKE)) for _, every, keys in replicates_of(tally, specs, few, ends)]
    return _once(tables)


def _once(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of tables, once where the same groups were drawn in several ways."""
    every = pl.concat(tables, how="diagonal_relaxed")
    keys = [name for name in every.columns if name not in {*INTERVAL, ALIKE}]
    return every.unique(keys, keep="first", maintain_order=True)


def interval_of(value: pl.Expr, tally: Tally, level: float) -> list[pl.Expr]:
    """The quantiles and the standard error of replicates of a tally; few clusters say little of how much they vary."""
    tail, more = (1 - level) / 2, 1.0
    if (count := _clusters(tally)) is not None:
        # wider, as the interval of Student's t is (Hesterberg, 2015)
        more = math.sqrt(count / max(1, count - 1))
        tail = math.erfc(more * student(level, max(1, count - 1)) / math.sqrt(2)) / 2
        if 0 < count < _FEW_CLUSTERS:
            msg = f"There are {count} clusters; intervals from fewer than {_FEW_CLUSTERS} are not to be relied on."
            warn(msg, ClusterWarning)
    return [
        value.quantile(tail, "linear").alias(".lower"), value.quantile(1 - tail, "linear").alias(".upper"),
        (value.std() * more).alias(".std_error"),
    ]  # fmt: skip


def replicates_of(
    tally: Tally, specs: Sequence[MetricSpec], options: Options, tidy: Callable[[Evaluated], pl.DataFrame]
) -> Iterator[tuple[str, pl.DataFrame, list[str]]]:
    """How replicates were drawn, their tidy table, and the columns that say what a row is about.

    Those of the same groups come together.
    """
    clustered = bool(tally.clusters)
    _check_drawn(tally, specs, options)
    way: Any = "bayes" if options.interval == "bayes" else "bootstrap"
    method = "cluster bootstrap" if _clusters(tally) is not None else "dirichlet" if way == "bayes" else way
    quiet = quietly(options)
    together: dict[tuple[object, bool, bool], list[MetricSpec]] = {}
    for spec in specs:
        together.setdefault((spec.by, is_stratified(spec), _of_rows(spec)), []).append(spec)
    for (_, stratified, of_rows), mine in together.items():
        by = mine[0].by
        random = generator(options.seed, f"{by and by.text} {stratified}")
        columns = by.columns if by else ()
        # what is believed of one group says nothing of another
        fixed = columns if stratified or way == "bayes" else ()
        sized: Any = {"times": options.times, "random": random}
        if of_rows:
            drawn = redrawn_rows(tally, columns, strata=fixed, **sized)
        elif clustered:
            drawn = redrawn_clusters(tally, columns, **sized)
        else:
            possible = _possible(tally, options) if way == "bayes" else None
            drawn = redrawn(tally, columns, strata=fixed, way=way, possible=possible, **sized)
        parts = [
            _counted(evaluated, tidy(evaluated)).drop_nulls(".estimate")
            for each in drawn
            for evaluated in evaluate_specs(each, mine, quiet)
        ]
        every = pl.concat(parts, how="diagonal_relaxed")
        yield method, every, group_keys(tally, every)


def quietly(options: Options) -> Options:
    """How replicates are read: without intervals and remarks of their own."""
    return replace(options, interval=None, on_undefined="ignore")


def group_keys(tally: Tally, table: pl.DataFrame) -> list[str]:
    """The columns of a tidy table that say what a row is about, whichever replicate it is of."""
    outer = [key.column.name for key in tally.outer if key.role == "outer"]
    return [*outer, *(name for name in _KEYS if name in table.columns)]


def _possible(tally: Tally, options: Options) -> pl.DataFrame:
    """The pairs of true and predicted label that there can be, and those that there are."""
    return pl.concat([label_pairs(tally, options), tally.cells.select(LABELS)], how="vertical_relaxed").unique()


def label_pairs(tally: Tally, options: Options) -> pl.DataFrame:
    """All pairs of true and predicted label, whether somebody has them or not."""
    labels = labels_with_scores(
        tally, labels=options.labels, pos_label=options.pos_label, estimator=options.estimator,
        allow_unseen=True,
    )  # fmt: skip
    sides: list[pl.DataFrame] = []
    for name in LABELS:
        column = tally.cells[name]
        known = column.drop_nulls().unique()
        if name == ESTIMATE and tally.cut is not None:
            values = pl.Series([False, True]) if column.dtype == pl.Boolean else known
        else:
            values = pl.Series(list(labels.values)).cast(column.dtype) if len(known) else column.clear(1)
        sides.append(pl.DataFrame({name: values}))
    return sides[0].join(sides[1], how="cross")


def results_of(evaluated: Evaluated) -> pl.DataFrame:
    """The results of replicates, without what explains them."""
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
    # what has no row has no number of groups
    there = np.bincount(result, minlength=len(table)) > 0
    return table.with_columns(pl.Series(_KNOWN, np.where(there, counts, np.nan), nan_to_null=True))


def _tell_lost(found: pl.DataFrame, times: int) -> None:
    """Say which intervals are of replicates many of which have no value for some group."""
    many = found.filter(pl.col(LOST) > _MANY_LOST * times).sort(LOST, descending=True)
    said = [
        f"{name}{f' by {by}' if by else ''}: in {lost} of {times} replicates a group has no value, and the interval is "
        "of the others"
        for name, by, lost in many.unique([".metric", ".by"], keep="first", maintain_order=True)
        .select(".metric", ".by", LOST).rows()
    ]  # fmt: skip
    if said:
        warn("; ".join(said) + '. (on_undefined="ignore" silences this.)', UndefinedWarning)


def _without_false_ends(found: pl.DataFrame, specs: Sequence[MetricSpec]) -> pl.DataFrame:
    """Intervals without the end at which groups are equal: chance alone moves distances away from there.

    Replicates have chance twice, so that this end would leave out equality even where it is true.
    """
    if ".group" in found.columns:
        return found
    ends = {".lower": pl.lit(value=False), ".upper": pl.lit(value=False)}
    for spec in specs:
        if spec.by and spec.aggregate and spec.aggregate.is_distance:
            is_it = (pl.col(".metric") == spec.name) & (pl.col(".by") == spec.by.text)
            end = ".upper" if spec.aggregate.direction == "maximize" else ".lower"
            ends[end] = ends[end] | is_it
    other = {end: pl.col(".method") + text for end, text in ((".lower", ", upper end"), (".upper", ", lower end"))}
    return found.with_columns(
        *(pl.when(~false).then(end).alias(end) for end, false in ends.items()),
        pl.when(ends[".lower"]).then(other[".lower"]).when(ends[".upper"]).then(other[".upper"])
        .otherwise(".method").alias(".method"),
    )  # fmt: skip


def _check_drawn(tally: Tally, specs: Sequence[MetricSpec], options: Options) -> None:
    """Refuse what has no replicates."""
    for spec in specs:
        of_rows = _of_rows(spec)
        prior_of = "rows" if of_rows else "clusters" if tally.clusters else "weights" if tally.weights else None
        reasons = {
            "groups of which are suppressed": HIDDEN in tally.cells.columns,
            "which reads rows in the order in which they stand": tally.needs.order and of_rows,
            "of which only bins of scores were counted": tally.binned and of_rows,
            "of which the tally does not say how it varies: count with `parts=0`, or call the metric itself":
                not is_of_labels(spec) and not of_rows and not tally.clusters,
            f"whose {prior_of} have no prior": options.interval == "bayes" and prior_of,
            "which is about how many rows groups have": options.interval == "bayes"
                and not any(formula.reads for _, formula in spec.formulas),
        }  # fmt: skip
        for why in (why for why, there in reasons.items() if there):
            msg = f"There is no interval of {spec.name}, {why}; leave `interval=` out, or ask for the others alone."
            raise ArgumentError(msg)


def with_lone(tally: Tally, evaluated: Evaluated) -> pl.DataFrame:
    """The rows of values, and whether each is `lone`: of one row or cluster, and so the same in all replicates."""
    group_cells, found = evaluated.group_cells, [pl.lit(value=False)]
    tally = tally.at_each_cut() if THRESHOLD in group_cells.outer_keys.columns else tally
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
                found.append(lone & (pl.col("spec") == number) & (pl.col("name") == name))
    return evaluated.rows.with_columns(pl.any_horizontal(found).fill_null(value=False).alias("lone"))


def lone_results(tally: Tally, evaluated: Evaluated) -> pl.Series:
    """Whether such a value is part of each result, or fewer groups are compared than there must be."""
    groups = with_lone(tally, evaluated).filter(pl.col("estimate").is_not_null()).group_by("spec", "outer")
    counted = groups.agg(pl.col("lone").any(), pl.col(GROUP_CELL).n_unique().alias("groups"))
    told = {(number, outer): (lone, count) for number, outer, lone, count in counted.rows()}
    found = list[bool]()
    for number, spec in enumerate(evaluated.specs):
        needed = spec.aggregate.groups_needed if spec.aggregate else 1
        each = (told.get((number, outer), (True, 0)) for outer in range(len(evaluated.group_cells.outer_keys)))
        found += [lone or count < needed for lone, count in each]
    return pl.Series(found, dtype=pl.Boolean)


def _clusters(tally: Tally) -> int | None:
    """How many clusters of the user's own there are; None without any."""
    names = tally.names([key.column for key in tally.clusters if key.column.name != BLOCK])
    return tally.cells.select(names).n_unique() if names else None


def _of_rows(spec: MetricSpec) -> bool:
    """Whether replicates need the rows: counts and sums are not enough."""
    return any(formula.way != "sums" and formula.kind != "class" for _, formula in spec.formulas)


def is_of_labels(spec: MetricSpec) -> bool:
    """Whether counts of labels are enough for it."""
    return all(formula.kind == "class" and not formula.all_terms for _, formula in spec.formulas)


def is_stratified(spec: MetricSpec) -> bool:
    """Whether the sizes of groups are fixed: not where it matters how large they are."""
    aggregate = spec.aggregate
    shares = aggregate is not None and (aggregate.contexts or aggregate.reads_weight)
    return spec.by is not None and not shares and not any(formula.compares for _, formula in spec.formulas)

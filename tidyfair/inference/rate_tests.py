"""Base of the tests of rates: counting rows by group and stratum, and permuting group labels.

Group labels are permuted among the rows of the denominator of a rate. The cost depends on groups, not rows: the
numerators of the groups are a multivariate hypergeometric draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, Run, metric_set
from tidyfair.errors import ArgumentError, in_short
from tidyfair.evaluation import GROUP_CELL, LEVEL, Evaluated, Replicates
from tidyfair.inference.on_data import CalledOnTallies, GroupwiseOnData
from tidyfair.inference.result_frames import Content, frame_of_outer_groups, outer_keys_of
from tidyfair.intervals import adjusted, generator, in_progress, share_of
from tidyfair.specs import (
    ALL_GROUPS,
    CONTEXTS,
    MULTICLASS,
    ONE_LABEL,
    Aggregate,
    Array,
    By,
    Column,
    Options,
    are_columns,
    difference,
    flag,
    names_of,
    one_of,
)
from tidyfair.tallies import HIDDEN, Source, Tally

Family: TypeAlias = Literal["metric", "by", "all"]
ADJUSTMENTS = ("holm", "bh", "by", "none")
FAMILIES: tuple[Family, ...] = get_args(Family)
_OUTER, _ROW = "\0outer", "\0row"
_MOST_VALUES = 2**16
"""The most values of groups that are compared at once, so that they stay in the cache."""
REFUSED: dict[str, str] = dict.fromkeys(("interval", "explain", "on_undefined", "score_bins", "parts", "keep_rows"), "")
"""The options of metrics that no test accepts, and why."""
REFUSED_OF_RATES: dict[str, str] = REFUSED | dict.fromkeys(
    ("case_weights", "cluster"), ": it counts rows; use `disparity_test` or intervals"
)
"""The options of metrics that tests of rates do not accept, and why."""


@dataclass(frozen=True, eq=False)
class Case:
    """A metric, the tally that was counted for it, and the options of reading it."""

    metric: GroupwiseMetric
    tally: Tally
    options: Options
    by_strata: GroupwiseMetric | None = None
    """The metric by groups and strata, where there are strata."""

    @cached_property
    def evaluated(self) -> Evaluated:
        """The values of the groups."""
        return self.metric.run.evaluate(self.tally, self.options)[0]

    @cached_property
    def crossed(self) -> Evaluated | None:
        """The values of the groups in each stratum."""
        if self.by_strata is None:
            return None
        return self.by_strata.run.evaluate(self.tally, self.options, are_features=False)[0]


@dataclass(frozen=True, eq=False)
class CountedRate:
    """A rate in an outer group, and its counts by stratum and group."""

    case: Case
    numerator: Array
    denominator: Array
    name: str
    among: frozenset[str]
    holds: frozenset[str]
    group_cells: Array
    """The group cells of the groups."""
    random: np.random.Generator
    """The random numbers of the outer group: the same for all, so that they do not depend on names."""

    @property
    def group_numerator(self) -> Array:
        """The numerator of each group, all strata together."""
        return self.numerator.sum(axis=0)

    @property
    def group_denominator(self) -> Array:
        """The denominator of each group, all strata together."""
        return self.denominator.sum(axis=0)

    @property
    def texts(self) -> pl.Series:
        """The names of the groups."""
        return self.case.evaluated.group_cells.text[self.group_cells]


def with_adjusted_p_values(table: pl.DataFrame, keys: list[str], method: str) -> pl.DataFrame:
    """The table with its p-values adjusted for the number of those with the same keys, after them."""
    values = table[".p_value"].cast(pl.Float64).alias(".p_adjusted")
    tested = table.select(*keys, values).with_row_index(_ROW).drop_nulls(".p_adjusted")
    for family in tested.partition_by(keys) if keys else [tested]:
        values = values.scatter(family[_ROW], adjusted(family[".p_adjusted"].to_numpy(), method))
    return table.clone().insert_column(table.columns.index(".p_value") + 1, values)


@dataclass(frozen=True, repr=False)
class AdjustedTest(GroupwiseOnData, CalledOnTallies):
    """Groupwise metrics whose tests are adjusted for their number, as a callable on dataframes."""

    refused: ClassVar[Mapping[str, str]] = REFUSED
    adjustments: ClassVar[tuple[str, ...]] = ADJUSTMENTS
    without: ClassVar[str] = ".p_adjusted"
    within: tuple[Column, ...] = ()
    """The columns of strata; most tests have none."""
    adjust: str = "none"
    family: str = "all"
    mid_p: bool = False

    def __post_init__(self) -> None:
        """Refuse settings that do not exist."""
        one_of("adjust", self.adjust, self.adjustments)
        one_of("family", self.family, FAMILIES)
        flag("mid_p", self.mid_p)

    def _check_call(self, keywords: Mapping[str, Any]) -> None:
        super()._check_call(keywords)
        distinct = {(metric.name, metric.by) for metric in self.metrics}
        if len(distinct) == len(self.metrics):
            # errors about metrics that do not go together show their own names
            metric_set(*self.metrics)


@dataclass(frozen=True, repr=False)
class RateTest(AdjustedTest):
    """Tests of rates by their counts, in which group labels are shuffled within strata, if there are any."""

    refused: ClassVar[Mapping[str, str]] = REFUSED_OF_RATES

    @property
    def _run(self) -> Run:
        """The run of all metrics that are counted, under names that no two share."""
        return metric_set(*numbered(self.metrics), *self._strata).run

    def _check_source(self, source: Source) -> None:
        for column in self.within:
            column.check(source.columns, "within")
            if column in source.outer:
                msg = (
                    f"`within`: the data are already grouped by {column.name!r}, and each group is tested separately; "
                    "leave it out of `within`."
                )
                raise ArgumentError(msg)

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The tests of all metrics, with p-values adjusted for their number."""
        check_tested(tally)
        tables: list[pl.DataFrame] = []
        for index, metric in enumerate(in_progress(self.metrics, "testing")):
            by_strata = self._strata[index] if self.within else None
            tables += self._tables(Case(metric, tally, options, by_strata))
        table = self._together(tables)
        if ".p_value" not in table.columns:
            return table
        table = with_adjusted_p_values(table, [] if self.family == "all" else [f".{self.family}"], self.adjust)
        return table.with_columns(pl.lit(f"{self.adjust} over {self.family}").alias(".adjustment"))

    def _together(self, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The tests of all metrics as one table."""
        return pl.concat(tables, how="diagonal_relaxed")

    @cached_property
    def _strata(self) -> tuple[GroupwiseMetric, ...]:
        """The metrics by groups and strata, from whose values the rows are counted; none without strata."""
        crossed: list[GroupwiseMetric] = []
        for metric in self.metrics if self.within else ():
            metric.by.refuse_memberships(f"{metric.name} `within` strata", overlapping=True)
            if metric.by.sides:
                msg = f"{metric.name}: `within` cannot be combined with privileged(…); compare the groups of columns."
                raise ArgumentError(msg)
            by = By((*metric.by.columns, *self.within), policy=ALL_GROUPS, memberships=metric.by.memberships)
            names = names_of(by.columns)
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                msg = (
                    f"{metric.name}: {twice[0]!r} is given more than once; use it as a feature or in `within`, not "
                    "both."
                )
                raise ArgumentError(msg)
            metrics = (*metric.metrics, *metric.less)
            crossed.append(replace(metric, by=by, aggregate=difference(), less=(), metrics=metrics))
        return numbered(crossed, "\0crossed ")

    def _tables(self, case: Case) -> Iterator[pl.DataFrame]:
        """The tests of a metric, one or more tables with the keys of the outer groups first."""
        outers = range(len(case.evaluated.group_cells.outer_keys))
        tested = ((outer, self._content(rate)) for outer in outers for rate in rate_counts(case, outer))
        yield frame_of_outer_groups(outer_keys_of(case.evaluated), self._schema, tested)

    def _content(self, rate: CountedRate) -> Content:
        """The tests of a rate in an outer group, where each outer group is tested on its own."""
        # tests that need all outer groups have `_tables` of their own in place of this
        raise NotImplementedError


def check_tested(tally: Tally) -> None:
    """Refuse tallies of several selections, and those without small counts."""
    if tally.cut is not None and tally.cut.several:
        msg = (
            f"Tests do not accept a list of values for {tally.cut.option}; give one value. To compare two selections, "
            "use `compare_models` with two columns of labels."
        )
        raise ArgumentError(msg)
    if HIDDEN in tally.cells.columns:
        msg = "Suppressed groups cannot be tested; test the data, or a tally of all cells."
        raise ArgumentError(msg)


def rate_counts(case: Case, outer: int) -> list[CountedRate]:
    """The counts of the groups of an outer group, for each rate, from its values by group, or group and stratum."""
    (spec,) = case.evaluated.specs
    is_counted = (pl.col("outer") == outer) & pl.col("rate").is_not_null() & ~pl.col("excluded")
    rows_of_rates = (case.crossed or case.evaluated).rows.filter(is_counted)
    counts, random = list[CountedRate](), generator(case.options.seed, "rates")
    for name, formula in spec.formulas:
        share, rows = share_of(formula), rows_of_rates.filter(name=name)
        if share is None:
            msg = (
                f"{case.metric.name} does not compare rates, and {name} has no exact test. Use `disparity_test` to "
                'test whether groups are equal, or `interval="auto"` for the size of the difference.'
            )
            raise ArgumentError(msg)
        if not reads_one_label(rows):
            msg = (
                f"{case.metric.name} uses several labels in {name}; select one with `pos_label=`, or use intervals, "
                '`interval="auto"`.'
            )
            raise ArgumentError(msg)
        denominators = rows["counted_rows"].to_numpy().astype(np.int64)
        numerators = np.round(rows["rate"].to_numpy() * denominators).astype(np.int64)
        if case.crossed is None:
            row_cells, stratum = rows[GROUP_CELL].to_numpy(), np.zeros(len(rows), dtype=np.int64)
        else:
            row_cells, stratum = _cells_and_strata(case.metric, case.evaluated, case.crossed, rows)
        # strata have no unknown groups of their own
        known = ~case.evaluated.group_cells.excluded[row_cells]
        row_cells, stratum, numerators, denominators = (
            column[known] for column in (row_cells, stratum, numerators, denominators)
        )
        group_cells, group = np.unique(row_cells, return_inverse=True)
        shape = (int(stratum.max(initial=-1)) + 1, len(group_cells))
        numerator, denominator = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        np.add.at(numerator, (stratum, group), numerators)
        np.add.at(denominator, (stratum, group), denominators)
        compared = denominator.sum(axis=0) >= case.metric.least_rows(int(denominator.sum()))
        tables = numerator[:, compared], denominator[:, compared]
        counts.append(CountedRate(case, *tables, name, share.among, share.holds, group_cells[compared], random))
    return counts


def drawn_together(counts: Sequence[CountedRate], draw: Callable[[CountedRate], Array]) -> list[Array]:
    """The drawn numerators of each rate; rates of the same rows are drawn together."""
    first_of_rows: dict[frozenset[str], int] = {}
    drawn: list[Array] = []
    for index, count in enumerate(counts):
        first = first_of_rows.setdefault(count.among, index)
        if first == index or counts[first].holds not in (count.holds, count.among - count.holds):
            drawn.append(draw(count))
        elif counts[first].holds == count.holds:
            drawn.append(drawn[first])
        else:
            drawn.append(count.group_denominator - drawn[first])
    return drawn


def compared_draws(
    evaluated: Evaluated, outer: int, counts: Sequence[CountedRate], drawn: Sequence[Array]
) -> tuple[Array, Array]:
    """The aggregate of each draw of the rates of an outer group, and last of the observed values; and its severity.

    The compared groups, their reference and their weights stay the observed ones.
    """
    base, times = evaluated.values, len(drawn[0])
    rows = np.flatnonzero(base["outer"] == outer)
    names, cells = evaluated.rows["name"].to_numpy()[rows], base[GROUP_CELL][rows]
    columns = [name for name in ("estimate", *CONTEXTS) if name in base]
    tables: dict[str, Array] = {name: np.tile(base[name][rows], (times + 1, 1)) for name in columns}
    for count, numerators in zip(counts, drawn, strict=True):
        index = np.flatnonzero((names == count.name) & np.isin(cells, count.group_cells))
        group = np.searchsorted(count.group_cells, cells[index])
        denominator, total = count.group_denominator, numerators.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = {
                "estimate": numerators[:, group] / denominator[group],
                "overall": total / denominator.sum(),
                "rest": (total - numerators[:, group]) / (denominator.sum() - denominator[group]),
            }
        # groups that are left out stay so
        values["estimate"][:, np.isnan(tables["estimate"][-1, index])] = np.nan
        for name, table in tables.items():
            table[:-1, index] = values[name]
    results, step = np.empty(times + 1), max(1, _MOST_VALUES // max(1, len(rows)))
    for first in range(0, times + 1, step):
        part = slice(first, first + step)
        replicates = Replicates(evaluated, rows, {name: table[part] for name, table in tables.items()})
        results[part] = replicates.results[:, outer]
    return results, cast("Aggregate", evaluated.specs[0].aggregate).severity(results)


def numbered(metrics: Sequence[GroupwiseMetric], prefix: str = "\0") -> tuple[GroupwiseMetric, ...]:
    """The metrics under names that no two share: their own, which messages show, where these differ."""
    if prefix == "\0" and len({metric.name for metric in metrics}) == len(metrics):
        return tuple(metrics)
    return tuple(replace(metric, name=f"{prefix}{index}") for index, metric in enumerate(metrics))


def reads_one_label(rows: pl.DataFrame) -> bool:
    """Check whether values are of one label, or of all of them at once."""
    of_one = set(rows["estimator"]) <= {*ONE_LABEL, MULTICLASS.name}
    return of_one and rows[LEVEL].n_unique() <= 1


def _cells_and_strata(
    metric: GroupwiseMetric, evaluated: Evaluated, crossed: Evaluated, rows: pl.DataFrame
) -> tuple[Array, Array]:
    """The group cell of the metric itself, and the stratum, of rows of the metric by groups and strata."""
    first, size = evaluated.group_cells.spans[metric.by]
    group_cells = evaluated.group_cells.keys[metric.by].with_columns(
        pl.Series(_OUTER, evaluated.group_cells.outer[first : first + size], dtype=pl.Int32),
        pl.int_range(first, first + size).alias(GROUP_CELL),
    )
    # the keys of rows are those of the groups, and then those of the strata
    (crossed_by,) = crossed.group_cells.keys
    first_crossed, _ = crossed.group_cells.spans[crossed_by]
    keys = crossed.group_cells.keys[crossed_by][rows[GROUP_CELL] - first_crossed]
    features = len(metric.by.keys)
    names = dict(zip(keys.columns[:features], group_cells.columns[:features], strict=True))
    groups = keys[:, :features].rename(names).with_columns(rows["outer"].alias(_OUTER))
    numbered = groups.join(group_cells, on=groups.columns, how="left", nulls_equal=True, maintain_order="left")
    strata = keys[:, features:].select(pl.struct(pl.all()).rank("dense")).to_series()
    return numbered[GROUP_CELL].to_numpy(), strata.cast(pl.Int64).to_numpy() - 1


def groupwise(given: tuple[object, ...], name: str, *, takes_data: bool = False) -> tuple[GroupwiseMetric, ...]:
    """The groupwise metrics in a function's arguments, including members of sets, or an error.

    `takes_data` if the function takes the data in the same call.
    """
    members: list[object] = []
    for argument in given:
        members += argument if isinstance(argument, MetricSet) else [argument]
    for member in members:
        if isinstance(member, GroupwiseFactory):
            msg = f'{member.name} compares the groups of a column: did you mean `{member.name}("col")`?'
            raise ArgumentError(msg)
        if isinstance(member, Metric):
            msg = f'{name}() takes comparisons of groups: write `{member.name}.difference("column")`.'
            raise ArgumentError(msg)
        if not isinstance(member, GroupwiseMetric):
            example = 'accuracy.difference("column")'
            call = f"{name}({example}, data, …)" if takes_data else f"{name}({example})(data, …)"
            msg = f"{name}() takes comparisons of groups, and then data, as in `{call}`, not {in_short(member)}."
            raise ArgumentError(msg)
    if not members:
        msg = f'{name}() needs a comparison of groups, such as `demographic_parity("sex")`.'
        raise ArgumentError(msg)
    return tuple(cast("list[GroupwiseMetric]", members))


def columns_of(given: Any, role: str = "within") -> tuple[Column, ...]:
    """The columns of an argument: none, one or several."""
    if given is None:
        return ()
    columns: list[object] = list(given) if are_columns(given) else [given]
    return tuple(Column.of(column, role) for column in columns)

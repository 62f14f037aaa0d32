"""What tests of rates have in common: how rows are counted by group and stratum, and shuffled.

Whoever is in which group is shuffled among the rows that a rate is about. That costs groups, not rows: how many rows of
a group then have what is counted is a multivariate hypergeometric draw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation.group_cells import UNGROUPED
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL, ONE_LABEL
from tidyfair.intervals.analytic import share_of
from tidyfair.intervals.proportions import adjusted
from tidyfair.intervals.resampling import MOST_SHUFFLED, generator
from tidyfair.metric_sets import GroupwiseFactory, GroupwiseMetric, MetricSet, metric_set
from tidyfair.specs.columns import Column, are_columns
from tidyfair.specs.contrasts import difference
from tidyfair.specs.groups import By
from tidyfair.specs.options import ReadOptions, refuse
from tidyfair.tallies.source import open_frame
from tidyfair.tallies.tally import HIDDEN, check_tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    import numpy as np

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.options import Options
    from tidyfair.tallies.tally import Tally

    Array: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

Family: TypeAlias = Literal["metric", "by", "all"]
ADJUSTMENTS = ("holm", "bh", "by", "none")
FAMILIES = ("metric", "by", "all")
_OUTER = "\0outer"
SAME = 1e-9
"""Statistics that differ by less are ties: the same counts, worked out in another order."""
NOT_TAKEN = {
    **dict.fromkeys(("interval", "explain", "on_undefined", "score_bins", "parts", "keep_rows"), " of its own"),
    **dict.fromkeys(("times", "seed", "conf_level"), " in the call; give it to the test itself"),
}
"""What a call of the metrics takes, and a test does not, and why."""
_OF_ROWS = dict.fromkeys(("case_weights", "cluster"), ": it counts rows; `disparity_test` and intervals do")


@dataclass(frozen=True, eq=False)
class RateCounts:
    """In how many rows of each group a rate holds, of how many that it is about; by stratum where there are strata."""

    numerator: Array
    denominator: Array

    @property
    def of_groups(self) -> RateCounts:
        """All strata together."""
        return RateCounts(self.numerator.sum(axis=0), self.denominator.sum(axis=0))


@dataclass(frozen=True, eq=False)
class CountedRate(RateCounts):
    """A rate, and its counts by stratum and group."""

    name: str
    among: frozenset[str]
    holds: frozenset[str]
    group_cells: Array
    """The group cells of the groups."""

    def shuffled(self, times: int, random: np.random.Generator) -> Array:
        """The numerator of each group with group labels shuffled within strata, `times` over."""
        import numpy as np

        if self.denominator.sum() >= MOST_SHUFFLED:
            msg = f"Fewer than {MOST_SHUFFLED} rows can be shuffled; test a part of them."
            raise ArgumentError(msg)
        drawn = np.zeros((times, self.denominator.shape[1]), dtype=np.int64)
        for denominator, numerator in zip(self.denominator, self.numerator, strict=True):
            if denominator.sum():
                drawn += random.multivariate_hypergeometric(
                    denominator, int(numerator.sum()), times, method="marginals"
                )
        return drawn


@dataclass(frozen=True, eq=False)
class Case:
    """A metric, what was counted for it, and how that is read."""

    metric: GroupwiseMetric
    tally: Tally
    options: Options
    by_strata: GroupwiseMetric | None
    """The metric by groups and strata, where there are strata."""

    @cached_property
    def evaluated(self) -> Evaluated:
        """The values of the groups."""
        return self.metric.run.evaluate(self.tally, self.options)[0]

    @cached_property
    def crossed(self) -> Evaluated | None:
        """The values of the groups in each stratum."""
        return self.by_strata.run.evaluate(self.tally, self.options)[0] if self.by_strata else None

    @property
    def outer_keys(self) -> pl.DataFrame:
        """The keys of the outer groups; without columns where the data are not grouped."""
        return self.evaluated.group_cells.outer_keys.drop(UNGROUPED, strict=False)

    def generator(self, seed: int, outer: int) -> np.random.Generator:
        """The random numbers of an outer group."""
        keys, metric = self.outer_keys, self.metric
        return generator(seed, f"{metric.name} {metric.by.text} {keys.row(outer) if keys.width else ''}")


@dataclass(frozen=True)
class RateTest(ABC):
    """Groupwise metrics, and the strata within which their groups are shuffled, as a callable on dataframes."""

    not_taken: ClassVar[dict[str, str]] = NOT_TAKEN | _OF_ROWS
    metrics: tuple[GroupwiseMetric, ...]
    within: tuple[Column, ...]
    times: int
    seed: int
    adjust: str
    family: Family
    mid_p: bool = False
    conf_level: float = 0.95

    def __call__(
        self, data: Any, truth: ColumnLike | None = None, estimate: ColumnLike | None = None, **keywords: Any
    ) -> Any:
        """Test on a dataframe; it takes what a metric takes, with one threshold at most."""
        if len({(metric.name, metric.by) for metric in self.metrics}) == len(self.metrics):
            metric_set(*self.metrics)  # what does not go together is told by its own name
        refuse("This", keywords, self.not_taken)
        run = self._all.run
        options = run.options(keywords, truth=truth, estimate=estimate)
        source = open_frame(data, options.group_by)
        for column in self.within:
            column.check(source.columns, "within")
            if column in source.outer:
                msg = f"`within`: the data are grouped by {column.name!r} already, each group of which is tested alone."
                raise ArgumentError(msg)
        tally = run.count(source, replace(options, keep_rows=self._reads_rows(options)))
        return source.restore(self._results(tally, options))

    def compute(self, tally: Tally, **reading: Unpack[ReadOptions]) -> pl.DataFrame:
        """Test on a tally that holds what the metrics count, and the strata: what a call gives on data."""
        refuse("This", reading, self.not_taken)
        return self._results(tally, self._all.run.options(reading, ReadOptions))

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The tests of all metrics, with p-values adjusted for their number."""
        check_tally(tally)
        if tally.cut is not None and tally.cut.several:
            msg = f"A test is about one selection, not a list of them: give one {tally.cut.way}."
            raise ArgumentError(msg)
        if HIDDEN in tally.cells.columns:
            msg = "There is no test of groups that are suppressed: test the data, or a tally of all cells."
            raise ArgumentError(msg)
        options = replace(options, on_undefined="ignore")
        tables: list[pl.DataFrame] = []
        for index, metric in enumerate(self.metrics):
            by_strata = self._strata[index] if self.within else None
            tables += self._tables(Case(metric, tally, options, by_strata))
        return self._adjusted(pl.concat(tables, how="diagonal_relaxed"))

    @cached_property
    def _strata(self) -> tuple[GroupwiseMetric, ...]:
        """The metrics by groups and strata, where there are strata."""
        return self._named([self._crossed(metric) for metric in self.metrics], "\0crossed ") if self.within else ()

    @property
    def _all(self) -> MetricSet:
        """All metrics that are counted, under names that no two share."""
        return metric_set(*self._named(self.metrics), *self._strata)

    def _reads_rows(self, options: Options) -> bool:
        """Whether counts are not enough for it."""
        del options
        return False

    @staticmethod
    def _named(metrics: Sequence[GroupwiseMetric], before: str = "\0") -> tuple[GroupwiseMetric, ...]:
        """The metrics under names that no two share."""
        return tuple(replace(metric, name=f"{before}{place}") for place, metric in enumerate(metrics))

    def _crossed(self, metric: GroupwiseMetric) -> GroupwiseMetric:
        """The metric by groups and strata, from which is seen how many rows there are."""
        if metric.by.sides:
            msg = f"{metric.name}: `within` goes with columns, not with privileged(…)."
            raise ArgumentError(msg)
        by = By((*metric.by.columns, *self.within))
        names = [column.name for column in by.columns]
        if twice := [name for name in names if names.count(name) > 1]:
            msg = f"{metric.name}: {twice[0]!r} is a feature or a stratum, and that once."
            raise ArgumentError(msg)
        return replace(metric, by=by, aggregate=difference(), min_n=0, less=(), metrics=(*metric.metrics, *metric.less))

    @abstractmethod
    def _tables(self, case: Case) -> Iterator[pl.DataFrame]:
        """The tests of a metric, one or more tables with the keys of the outer groups first."""

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table with p-values adjusted for all tests of a family."""
        about = {"metric": [".metric"], "by": [".by"], "all": list[str]()}[self.family]
        families = pl.Series([0]).new_from_index(0, len(table))
        if about and len(table):
            families = table.select(pl.struct(about).rank("dense")).to_series()
        found: list[float | None] = [None] * len(table)
        p_values = table[".p_value"].cast(pl.Float64)
        for family in families.unique():
            mine = ((families == family) & p_values.is_not_null()).arg_true()
            for place, value in zip(mine, adjusted(p_values.gather(mine).to_numpy(), self.adjust), strict=True):
                found[place] = float(value)
        after = table.columns.index(".p_value") + 1
        made = pl.Series(".p_adjusted", found, dtype=pl.Float64)
        table = pl.DataFrame([*table[:, :after].get_columns(), made, *table[:, after:].get_columns()])
        return table.with_columns(pl.lit(f"{self.adjust} over {self.family}").alias(".adjustment"))

    @staticmethod
    def _counts(case: Case, outer: int) -> list[CountedRate]:
        """What is counted of the groups of an outer group by each rate."""
        import numpy as np

        metric, evaluated, crossed = case.metric, case.evaluated, case.crossed
        (spec,) = evaluated.specs
        source = crossed or evaluated
        rows = source.rows.filter((pl.col("outer") == outer) & pl.col("rate").is_not_null() & ~pl.col("excluded"))
        found = list[CountedRate]()
        for name, formula in spec.formulas:
            share, mine = share_of(formula), rows.filter(name=name)
            if share is None or not reads_one_label(formula, mine):
                several = f"{metric.name} reads several labels in {name}; read one, `pos_label=`."
                none = f"{metric.name} is no comparison of rates: of {name} there is no exact test."
                msg = f'{none if share is None else several} Or take intervals, `interval="auto"`.'
                raise ArgumentError(msg)
            size = mine["about"].to_numpy().astype(np.int64)
            hits = np.round(mine["rate"].to_numpy() * size).astype(np.int64)
            group_cell, stratum = mine[GROUP_CELL].to_numpy(), np.zeros(len(mine), dtype=np.int64)
            if crossed is not None:
                group_cell, stratum = _places(metric, evaluated, crossed, mine)
            group_cells, of_group = np.unique(group_cell, return_inverse=True)
            counted = np.zeros((2, int(stratum.max(initial=-1)) + 1, len(group_cells)), dtype=np.int64)
            np.add.at(counted[0], (stratum, of_group), size)
            np.add.at(counted[1], (stratum, of_group), hits)
            denominator, numerator = counted
            found.append(CountedRate(numerator, denominator, name, share.among, share.holds, group_cells))
        return found


@dataclass(frozen=True, eq=False)
class OuterGroup:
    """What is known of an outer group: the values of its groups, and what is counted of each rate."""

    metric: GroupwiseMetric
    rows: pl.DataFrame
    evaluated: Evaluated
    counts: list[CountedRate]
    random: np.random.Generator

    @property
    def texts(self) -> pl.Series:
        """How the groups of all group cells are called."""
        return self.evaluated.group_cells.text


@dataclass(frozen=True)
class OuterGroupTest(RateTest):
    """A test within each outer group on its own."""

    def _tables(self, case: Case) -> Iterator[pl.DataFrame]:
        metric, evaluated, keys = case.metric, case.evaluated, case.outer_keys
        counts = [self._counts(case, outer) for outer in range(len(evaluated.group_cells.outer_keys))]
        for outer, mine in enumerate(counts):
            rows, random = evaluated.rows.filter(pl.col("outer") == outer), case.generator(self.seed, outer)
            table = self._tested(OuterGroup(metric, rows, evaluated, mine, random))
            yield keys[outer : outer + 1].join(table, how="cross") if keys.width else table
        if not counts:
            nobody = OuterGroup(metric, evaluated.rows, evaluated, [], generator(self.seed, ""))
            yield keys.join(self._tested(nobody), how="cross").clear()

    @abstractmethod
    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        """What is found in an outer group."""


def reads_one_label(formula: Formula, rows: pl.DataFrame) -> bool:
    """Whether values of a formula are about one label, or all of them at once."""
    of_one = set(rows["estimator"]) <= set(ONE_LABEL) or formula.over_levels
    return of_one and rows[LEVEL].n_unique() <= 1


def _places(
    metric: GroupwiseMetric, evaluated: Evaluated, crossed: Evaluated, rows: pl.DataFrame
) -> tuple[Array, Array]:
    """The group cell of the metric itself, and the stratum, of rows of the metric by groups and strata."""
    width, (other,) = len(metric.by.columns), crossed.group_cells.keys
    first, size = evaluated.group_cells.spans[metric.by]
    own = evaluated.group_cells.keys[metric.by].with_columns(
        pl.Series(_OUTER, evaluated.group_cells.outer[first : first + size], dtype=pl.Int32),
        pl.int_range(first, first + size).alias(GROUP_CELL),
    )
    keys = crossed.group_cells.keys[other][rows[GROUP_CELL] - crossed.group_cells.spans[other][0]]
    named = dict(zip(keys.columns[:width], own.columns[:width], strict=True))
    groups = keys[:, :width].rename(named).with_columns(rows["outer"].alias(_OUTER))
    group_cell = groups.join(own, on=groups.columns, how="left", nulls_equal=True, maintain_order="left")[GROUP_CELL]
    stratum = keys[:, width:].select(pl.struct(pl.all()).rank("dense")).to_series().cast(pl.Int64) - 1
    return group_cell.to_numpy(), stratum.to_numpy()


@dataclass(frozen=True, eq=False)
class RateTable(RateCounts):
    """A rate of the groups of an outer group."""

    metric: str
    by: str
    groups: list[str]


@dataclass(frozen=True)
class _Rates(OuterGroupTest):
    """The rates of groups, of which something is made."""

    make: Callable[[RateTable], pl.DataFrame] | None = None
    schema: tuple[tuple[str, Any], ...] = ()

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        tables = [
            self.make(
                RateTable(
                    count.of_groups.numerator, count.of_groups.denominator, count.name, part.metric.by.text,
                    part.texts.gather(count.group_cells).to_list(),
                )
            )
            for count in part.counts
            if self.make is not None and len(count.group_cells)
        ]  # fmt: skip
        return pl.concat([pl.DataFrame(schema=dict(self.schema)), *tables])

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        return table


def rate_table(
    metric: GroupwiseMetric, make: Callable[[RateTable], pl.DataFrame], schema: Mapping[str, Any], data: Any,
    truth: ColumnLike | None, estimate: ColumnLike | None, options: Mapping[str, Any],
) -> Any:  # fmt: skip
    """What is made of the rates of groups, for every rate and outer group."""
    rates = _Rates(groupwise((metric,), "This"), (), 1, 0, "none", "all", make=make, schema=tuple(schema.items()))
    return rates(data, truth, estimate, **options)


def groupwise(given: tuple[object, ...], name: str) -> tuple[GroupwiseMetric, ...]:
    def members() -> Iterator[object]:
        for each in given:
            yield from each if isinstance(each, MetricSet) else [each]

    found = list(members())
    for each in found:
        if isinstance(each, GroupwiseFactory):
            msg = f'{each.name} compares the groups of a column: did you mean `{each.name}("col")`?'
            raise ArgumentError(msg)
        if not isinstance(each, GroupwiseMetric):
            msg = f"{name}() takes comparisons of groups, not {each!r}."
            raise ArgumentError(msg)
    if not found:
        msg = f'{name}() needs a comparison of groups, such as `demographic_parity("sex")`.'
        raise ArgumentError(msg)
    return tuple(cast("list[GroupwiseMetric]", found))


def columns_of(given: Any) -> tuple[Column, ...]:
    if given is None:
        return ()
    columns: list[object] = list(given) if are_columns(given) else [given]
    return tuple(Column.of(each, "within") for each in columns)

"""Tests of equality: how far apart groups would be by chance alone, and how often as far as they are.

Whoever is in which group is shuffled among the rows that a metric is about. That costs groups, not rows: how many rows
of a group then have what is counted is a multivariate hypergeometric draw.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from tidyfair.aggregates import UserAggregate
from tidyfair.columns import Column
from tidyfair.comparisons import compare
from tidyfair.contrasts import difference
from tidyfair.errors import ArgumentError
from tidyfair.evaluations import DEFAULTS
from tidyfair.frames import open_frame
from tidyfair.groups import By
from tidyfair.intervals import Quantities, share_of
from tidyfair.metric_sets import GroupwiseFactory, GroupwiseMetric, MetricSet, metric_set
from tidyfair.proportions import adjusted, apart, cochran_mantel_haenszel, fisher, homogeneity, mantel_haenszel
from tidyfair.readings import LEVEL, ONE_LABEL, UNIT
from tidyfair.units import UNGROUPED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.columns import ColumnLike
    from tidyfair.evaluations import Evaluated, Reading

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = [
    "DisparityTest",
    "PairwiseTest",
    "PeriodTest",
    "StratifiedTest",
    "WorstGroups",
    "compare_periods",
    "disparity_test",
    "pairwise",
    "stratified",
    "worst_groups",
]

Family = Literal["metric", "by", "all"]
_ADJUSTMENTS = ("holm", "bh", "by", "none")
_FAMILIES = ("metric", "by", "all")
_OUTER = "\0outer"
_NOT_TAKEN = (
    "interval",
    "explain",
    "on_undefined",
    "case_weights",
    "score_bins",
    "cluster",
    "times",
    "seed",
    "conf_level",
)
_MOST_TIMES = 10**7
_SAME = 1e-9
"""Statistics that differ by less are ties: the same counts, worked out in another order."""
_CENTRAL = (0.025, 0.975)
_TESTED = {
    ".metric": pl.String, ".by": pl.String, ".hypothesis": pl.String, ".estimate": pl.Float64, ".expected": pl.Float64,
    ".expected_lower": pl.Float64, ".expected_upper": pl.Float64, ".p_value": pl.Float64, ".n": pl.Int64,
    ".method": pl.String,
}  # fmt: skip
_PAIRS = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".other": pl.String, ".estimate": pl.Float64,
    ".estimate_other": pl.Float64, ".difference": pl.Float64, ".lower": pl.Float64, ".upper": pl.Float64,
    ".p_value": pl.Float64, ".p_adjusted": pl.Float64, ".n": pl.Int64, ".n_other": pl.Int64,
}  # fmt: skip


_STRATIFIED = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".other": pl.String, ".strata": pl.Int64,
    ".crude": pl.Float64, ".adjusted": pl.Float64, ".lower": pl.Float64, ".upper": pl.Float64, ".std_error": pl.Float64,
    ".p_value": pl.Float64, ".p_adjusted": pl.Float64, ".p_homogeneity": pl.Float64, ".pattern": pl.String,
    ".n": pl.Int64, ".n_other": pl.Int64,
}  # fmt: skip
_CHANGED = {
    ".metric": pl.String, ".by": pl.String, ".estimate_before": pl.Float64, ".estimate": pl.Float64,
    ".change": pl.Float64, ".expected": pl.Float64, ".expected_lower": pl.Float64, ".expected_upper": pl.Float64,
    ".p_value": pl.Float64,
}  # fmt: skip
_WORST = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".estimate": pl.Float64, ".lower": pl.Float64,
    ".upper": pl.Float64, ".p_worst": pl.Float64, ".n": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Counts:
    """How many rows of each group a rate is about, and in how many of them it holds, in each stratum."""

    name: str
    among: frozenset[str]
    holds: frozenset[str]
    units: Array
    """The units of the groups."""
    rows: Array
    """By stratum and group."""
    hits: Array

    def shuffled(self, times: int, random: np.random.Generator) -> Array:
        """The hits of each group with group labels shuffled within strata, `times` over."""
        import numpy as np

        drawn = np.zeros((times, self.rows.shape[1]), dtype=np.int64)
        for rows, hits in zip(self.rows, self.hits, strict=True):
            if rows.sum():
                drawn += random.multivariate_hypergeometric(rows, int(hits.sum()), times, method="marginals")
        return drawn


@dataclass(frozen=True)
class _Test:
    """Groupwise metrics, and the strata within which their groups are shuffled, as a callable on dataframes."""

    metrics: tuple[GroupwiseMetric, ...]
    within: tuple[Column, ...]
    times: int
    seed: int
    adjust: str
    family: Family
    mid_p: bool = False
    conf_level: float = 0.95

    def __call__(
        self, data: Any, truth: ColumnLike | None = None, estimate: ColumnLike | None = None, **options: Any
    ) -> Any:
        """Test on a dataframe; it takes what a metric takes, without weights and with one threshold at most."""
        given = metric_set(*self._named(self.metrics))
        for name in _NOT_TAKEN:
            if name in options:
                own = " in the call; give it to the test itself" if name in {"times", "seed", "conf_level"} else ""
                msg = f"A test takes no `{name}`{own}: it counts rows."
                raise ArgumentError(msg)
        given.check_options(options)
        counting = {name: options[name] for name in options if name not in DEFAULTS}
        reading: Reading = cast("Any", {**DEFAULTS, **{name: options[name] for name in options if name in DEFAULTS}})
        reading["on_undefined"] = "ignore"
        source = open_frame(data, options.get("group_by"))
        if not isinstance(counting.get("group_by"), str | None) and source.outer:
            counting["group_by"] = [column.source for column in source.outer] + ([source.sides] if source.sides else [])
        crossed = self._named([self._crossed(metric) for metric in self.metrics], "\0crossed ") if self.within else ()
        tally = metric_set(given, *crossed).tally(data, truth, estimate, **counting)
        if tally.cut is not None and tally.cut.several:
            msg = f"A test is about one selection, not a list of them: give one {tally.cut.way}."
            raise ArgumentError(msg)
        tables = [
            table
            for place, metric in enumerate(self.metrics)
            for table in self._tables(
                metric, metric.evaluate(tally, reading)[0],
                crossed[place].evaluate(tally, reading)[0] if crossed else None,
            )
        ]  # fmt: skip
        return source.restore(self._adjusted(pl.concat(tables, how="diagonal_relaxed")))

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

    def _tables(
        self, metric: GroupwiseMetric, evaluated: Evaluated, crossed: Evaluated | None
    ) -> Iterator[pl.DataFrame]:
        """The tests of a metric, one or more rows for each outer group."""
        keys = evaluated.units.outer_keys.drop(UNGROUPED, strict=False)
        counts = [self._counts(metric, evaluated, crossed, outer) for outer in range(len(evaluated.units.outer_keys))]
        for outer, mine in enumerate(counts):
            rows = evaluated.rows.filter(pl.col("outer") == outer)
            texts = evaluated.units.text
            own = zlib.crc32(f"{metric.name} {metric.by.text} {keys.row(outer) if keys.width else ''}".encode())
            table = self._tested(metric, rows, texts, mine, own)
            yield keys[outer : outer + 1].join(table, how="cross") if keys.width else table
        if not counts:
            yield keys.join(self._tested(metric, evaluated.rows, evaluated.units.text, [], 0), how="cross").clear()

    def _tested(
        self, metric: GroupwiseMetric, rows: pl.DataFrame, texts: pl.Series, counts: list[_Counts], own: int
    ) -> pl.DataFrame:
        raise NotImplementedError

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

    def _counts(
        self, metric: GroupwiseMetric, evaluated: Evaluated, crossed: Evaluated | None, outer: int
    ) -> list[_Counts]:
        """What is counted of the groups of an outer group by each rate."""
        import numpy as np

        (request,) = evaluated.requests
        source = crossed or evaluated
        rows = source.rows.filter((pl.col("outer") == outer) & pl.col("rate").is_not_null() & ~pl.col("apart"))
        found = list[_Counts]()
        for name, formula in request.formulas:
            share, mine = share_of(formula), rows.filter(name=name)
            read = set(mine["estimator"]) <= set(ONE_LABEL) or formula.over_levels
            if share is None or not read or mine[LEVEL].n_unique() > 1:
                several = f"{metric.name} reads several labels in {name}; read one, `pos_label=`."
                none = f"{metric.name} is no comparison of rates: of {name} there is no exact test."
                msg = f'{none if share is None else several} Or take intervals, `interval="auto"`.'
                raise ArgumentError(msg)
            size = mine["about"].to_numpy().astype(np.int64)
            hits = np.round(mine["rate"].to_numpy() * size).astype(np.int64)
            unit, stratum = mine[UNIT].to_numpy(), np.zeros(len(mine), dtype=np.int64)
            if crossed is not None:
                unit, stratum = _places(metric, evaluated, crossed, mine)
            units, of_group = np.unique(unit, return_inverse=True)
            counted = np.zeros((2, int(stratum.max(initial=-1)) + 1, len(units)), dtype=np.int64)
            np.add.at(counted[0], (stratum, of_group), size)
            np.add.at(counted[1], (stratum, of_group), hits)
            found.append(_Counts(name, share.among, share.holds, units, *counted))
        return found


def _places(
    metric: GroupwiseMetric, evaluated: Evaluated, crossed: Evaluated, rows: pl.DataFrame
) -> tuple[Array, Array]:
    """The unit of the metric itself, and the stratum, of rows of the metric by groups and strata."""
    (request,), (other,) = evaluated.requests, crossed.requests
    if request.by is None or other.by is None:
        raise AssertionError
    width = len(metric.by.columns)
    first, size = evaluated.units.spans[request.by]
    own = evaluated.units.keys[request.by].with_columns(
        evaluated.units.outer[first : first + size].alias(_OUTER), pl.int_range(first, first + size).alias(UNIT)
    )
    keys = crossed.units.keys[other.by][rows[UNIT] - crossed.units.spans[other.by][0]]
    named = dict(zip(keys.columns[:width], own.columns[:width], strict=True))
    groups = keys[:, :width].rename(named).with_columns(rows["outer"].alias(_OUTER))
    unit = groups.join(own, on=groups.columns, how="left", nulls_equal=True, maintain_order="left")[UNIT]
    stratum = keys[:, width:].select(pl.struct(pl.all()).rank("dense")).to_series().cast(pl.Int64) - 1
    return unit.to_numpy(), stratum.to_numpy()


class DisparityTest(_Test):
    """Tests whether groups are equal, by shuffling them; made by `disparity_test`."""

    def _tested(
        self, metric: GroupwiseMetric, rows: pl.DataFrame, texts: pl.Series, counts: list[_Counts], own: int
    ) -> pl.DataFrame:
        import numpy as np

        del texts
        names = list(dict.fromkeys(each.name for each in (*metric.metrics, *metric.less)))
        text = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} the same in all groups of {metric.by.text}"
        text += f" within {', '.join(column.name for column in self.within)}" if self.within else ""
        found = dict.fromkeys(_TESTED) | {".metric": metric.name, ".by": metric.by.text, ".hypothesis": text}
        if len(counts) and len(rows):
            values = _compared(
                metric, rows, counts, _drawn(metric, counts, self.times, np.random.default_rng([self.seed, own]))
            )
            observed = values["value"][-1]
            if observed is not None:
                shuffled = values[:-1].drop_nulls("value")
                bad, worse = shuffled["severity"].to_numpy(), values["severity"][-1]
                with np.errstate(invalid="ignore"):
                    alike = (bad == worse) | (np.abs(bad - worse) <= _SAME)
                more, same = int(((bad > worse) & ~alike).sum()), int(alike.sum())
                p_value = (more + same / 2) / len(bad) if self.mid_p else (more + same + 1) / (len(bad) + 1)
                low, high = (shuffled["value"].quantile(end, "linear") for end in _CENTRAL)
                about = {count.among: int(count.rows.sum()) for count in counts}
                found |= {
                    ".estimate": observed, ".expected": shuffled["value"].mean(), ".expected_lower": low,
                    ".expected_upper": high, ".p_value": p_value, ".n": sum(about.values()),
                    ".method": "permutation, mid-p" if self.mid_p else "permutation",
                }  # fmt: skip
        return pl.DataFrame([found], schema=_TESTED)


def _drawn(metric: GroupwiseMetric, counts: Sequence[_Counts], times: int, random: np.random.Generator) -> list[Any]:
    """The shuffled hits of each rate; rates of the same rows are shuffled together."""
    found: list[Any] = []
    for place, count in enumerate(counts):
        same = [at for at in range(place) if counts[at].among & count.among]
        other = counts[same[0]] if same else None
        if other is None:
            found.append(count.shuffled(times, random))
        elif other.among == count.among and other.holds == count.holds:
            found.append(found[same[0]])
        elif other.among == count.among and other.holds == count.among - count.holds:
            found.append(count.rows.sum(axis=0) - found[same[0]])
        else:
            both = f"{count.name} and {other.name}"
            msg = f"{metric.name}: {both} are about some of the same rows, which no shuffling keeps apart."
            raise ArgumentError(msg)
    return found


def _compared(
    metric: GroupwiseMetric, rows: pl.DataFrame, counts: Sequence[_Counts], drawn: Sequence[Array]
) -> pl.DataFrame:
    """The aggregate of each draw, and last of what was found: `value`, and its `severity`.

    All but the values stay what they were found: which groups are compared, with whom, and how much they weigh.
    """
    import numpy as np

    aggregate, times = metric.bound, len(drawn[0])
    parts = [rows.with_columns(pl.lit(times, pl.Int32).alias("outer"))]
    for count, hits in zip(counts, drawn, strict=True):
        mine = rows.filter((pl.col("name") == count.name) & pl.col(UNIT).is_in(count.units))
        at = np.searchsorted(count.units, mine[UNIT].to_numpy())
        size, total = count.rows.sum(axis=0), count.hits.sum()
        every = size.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = {
                "estimate": hits[:, at] / size[at],
                "overall": np.broadcast_to(total / every, (times, len(at))),
                "rest": (total - hits[:, at]) / (every - size[at]),
            }
        tiled = mine[np.tile(np.arange(len(at)), times)].with_columns(
            pl.Series("outer", np.repeat(np.arange(times, dtype=np.int32), len(at)))
        )
        # groups that are left out stay so
        tiled = tiled.with_columns(
            pl.when(pl.col("estimate").is_not_null()).then(pl.Series(shares["estimate"].ravel())).alias("estimate"),
            *(
                pl.Series(name, shares[name].ravel()).fill_nan(None)
                for name in ("overall", "rest") if name in rows.columns
            ),
        )  # fmt: skip
        others = rows.filter((pl.col("name") == count.name) & ~pl.col(UNIT).is_in(count.units))
        fixed = others[np.tile(np.arange(len(others)), times)].with_columns(
            pl.Series("outer", np.repeat(np.arange(times, dtype=np.int32), len(others)))
        )
        parts += [tiled, fixed]
    every_draw = pl.concat(parts, how="vertical_relaxed").with_columns(pl.lit(0, pl.Int32).alias("request"))
    two_sided = [0] if metric.by.sides else []
    found = compare(every_draw, {0: aggregate}, two_sided=two_sided, undefined_is_null=False, tidy=_no_tidy)
    return found.sort("outer").select("value", aggregate.severity(pl.col("value")).alias("severity"))


def _no_tidy(request: int, rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    return f"request {request}", rows


class PairwiseTest(_Test):
    """Tests each pair of groups; made by `pairwise`."""

    def _tested(
        self, metric: GroupwiseMetric, rows: pl.DataFrame, texts: pl.Series, counts: list[_Counts], own: int
    ) -> pl.DataFrame:
        import numpy as np

        del rows
        if len(metric.metrics) > 1 or metric.less:
            msg = f"{metric.name} compares several rates; take pairs of one, such as equal_opportunity."
            raise ArgumentError(msg)
        schema = {name: dtype for name, dtype in _PAIRS.items() if name != ".p_adjusted" or self.adjust == "max_t"}
        tables = [pl.DataFrame(schema=schema)]
        for count in counts:
            if len(count.units) < len(("one", "other")):
                continue
            size, hits, names = count.rows.sum(axis=0), count.hits.sum(axis=0), texts.gather(count.units)
            shares = Quantities.of_counts(hits, size)
            low, high = shares.limits(NormalDist().inv_cdf((1 + self.conf_level) / 2))
            one, other = np.triu_indices(len(size), 1)
            value = shares.value
            ends = apart(value[one], (low[one], high[one]), value[other], (low[other], high[other]))
            tested = [
                fisher(int(hits[first]), int(size[first]), int(hits[second]), int(size[second]))
                for first, second in zip(one, other, strict=True)
            ]
            table = {
                ".metric": [count.name] * len(one), ".by": [metric.by.text] * len(one), ".group": names.gather(one),
                ".other": names.gather(other), ".estimate": value[one], ".estimate_other": value[other],
                ".difference": value[one] - value[other], ".lower": ends[0], ".upper": ends[1], ".p_value": tested,
                ".n": size[one], ".n_other": size[other],
            }  # fmt: skip
            if self.adjust == "max_t":
                share = hits.sum() / size.sum()
                distance = _distances(value[None, :], size, share)[0]
                drawn = count.shuffled(self.times, np.random.default_rng([self.seed, own])) / size
                largest = _distances(drawn, size, share).max(axis=1, initial=0.0)
                reached = (largest[:, None] >= distance - _SAME).sum(axis=0)
                table[".p_adjusted"] = (1 + reached) / (1 + self.times)
            tables.append(pl.DataFrame({name: table[name] for name in schema}, schema=schema))
        return pl.concat(tables)

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        if self.adjust != "max_t":
            return super()._adjusted(table)
        return table.with_columns(pl.lit("max_t over the pairs of each comparison").alias(".adjustment"))


@dataclass(frozen=True)
class PeriodTest(_Test):
    """Tests whether a disparity has changed; made by `compare_periods`."""

    period: str = "period"

    def _tables(
        self, metric: GroupwiseMetric, evaluated: Evaluated, crossed: Evaluated | None
    ) -> Iterator[pl.DataFrame]:
        import numpy as np

        keys = evaluated.units.outer_keys
        if self.period not in keys.columns:
            msg = f"compare_periods() needs the periods as outer groups: `group_by={self.period!r}`."
            raise ArgumentError(msg)
        rest = keys.drop(self.period)
        runs = (
            keys.with_row_index(_OUTER).partition_by(rest.columns, maintain_order=True)
            if rest.width
            else [keys.with_row_index(_OUTER)]
        )
        empty = pl.DataFrame([dict.fromkeys(_CHANGED)], schema=_CHANGED).clear()
        yield (
            keys.clear()
            .rename({self.period: ".period"})
            .with_columns(keys[self.period].clear().alias(".before"))
            .join(empty, how="cross")
        )
        for run in runs:
            for first, second in itertools.pairwise(run[_OUTER].to_list()):
                own = zlib.crc32(f"{metric.name} {metric.by.text} {keys.row(first)} {keys.row(second)}".encode())
                random = np.random.default_rng([self.seed, own])
                both = [self._counts(metric, evaluated, crossed, outer) for outer in (first, second)]
                drawn = [
                    _between(one, other, evaluated.units.text, self.times, random)
                    for one, other in zip(*both, strict=True)
                ]
                values = [
                    _compared(
                        metric, evaluated.rows.filter(pl.col("outer") == outer), mine, [each[side] for each in drawn]
                    )["value"]
                    for side, (outer, mine) in enumerate(zip((first, second), both, strict=True))
                ]
                table = pl.DataFrame([self._changed(metric, *values)], schema=_CHANGED)
                about = keys[second : second + 1].rename({self.period: ".period"})
                yield about.with_columns(keys[self.period][first : first + 1].alias(".before")).join(table, how="cross")

    def _changed(self, metric: GroupwiseMetric, before: pl.Series, after: pl.Series) -> dict[str, Any]:
        """How much a disparity changes, and by chance alone; what was found comes last."""
        change = after - before
        shuffled, found = change[:-1].drop_nulls(), change[-1]
        about = dict.fromkeys(_CHANGED) | {
            ".metric": metric.name, ".by": metric.by.text, ".estimate_before": before[-1], ".estimate": after[-1],
        }  # fmt: skip
        if found is None or not len(shuffled):
            return about
        low, high = (shuffled.quantile(end, "linear") for end in _CENTRAL)
        expected = float(str(shuffled.mean()))
        away = (shuffled - expected).abs()
        reached = int((away >= abs(found - expected) - _SAME).sum())
        return about | {
            ".change": found, ".expected": expected, ".expected_lower": low, ".expected_upper": high,
            ".p_value": (reached + 1) / (len(shuffled) + 1),
        }  # fmt: skip


def _between(
    one: _Counts, other: _Counts, texts: pl.Series, times: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """The hits of each group in both periods, its rows shuffled between them."""
    import numpy as np

    first, second = ((each.rows.sum(axis=0), each.hits.sum(axis=0)) for each in (one, other))
    drawn = [np.tile(hits, (times, 1)) for _, hits in (first, second)]
    places = {texts[int(unit)]: place for place, unit in enumerate(other.units)}
    for place, unit in enumerate(one.units):
        match = places.get(texts[int(unit)])
        if match is not None:
            total, rows = first[1][place] + second[1][match], first[0][place] + second[0][match]
            moved = random.hypergeometric(total, rows - total, first[0][place], times)
            drawn[0][:, place], drawn[1][:, match] = moved, total - moved
    return drawn[0], drawn[1]


class WorstGroups(_Test):
    """How sure it is which group is the worst; made by `worst_groups`."""

    def _tested(
        self, metric: GroupwiseMetric, rows: pl.DataFrame, texts: pl.Series, counts: list[_Counts], own: int
    ) -> pl.DataFrame:
        import numpy as np

        del rows
        random, tables = np.random.default_rng([self.seed, own]), [pl.DataFrame(schema=_WORST)]
        for count, base in zip(counts, (*metric.metrics, *metric.less), strict=False):
            size, hits = count.rows.sum(axis=0), count.hits.sum(axis=0)
            each = self.conf_level ** (1 / max(1, len(size)))
            shares = Quantities.of_counts(hits, size)
            low, high = shares.limits(NormalDist().inv_cdf((1 + each) / 2))
            drawn = random.beta(hits + 0.5, size - hits + 0.5, (self.times, len(size)))
            worst = (drawn.argmin if base.direction == "maximize" else drawn.argmax)(axis=1)
            table = {
                ".metric": [count.name] * len(size), ".by": [metric.by.text] * len(size),
                ".group": texts.gather(count.units), ".estimate": shares.value, ".lower": low, ".upper": high,
                ".p_worst": np.bincount(worst, minlength=len(size)) / self.times, ".n": size,
            }  # fmt: skip
            tables.append(pl.DataFrame(table, schema=_WORST))
        return pl.concat(tables)

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        return table


class StratifiedTest(_Test):
    """Compares groups within strata; made by `stratified`."""

    def _tested(
        self, metric: GroupwiseMetric, rows: pl.DataFrame, texts: pl.Series, counts: list[_Counts], own: int
    ) -> pl.DataFrame:
        del own
        if len(metric.metrics) > 1 or metric.less:
            msg = f"{metric.name} compares several rates; take one of one, such as equal_opportunity."
            raise ArgumentError(msg)
        schema = {name: dtype for name, dtype in _STRATIFIED.items() if name != ".p_adjusted"}
        found = list[dict[str, Any]]()
        for count in counts:
            size, hits = count.rows.sum(axis=0), count.hits.sum(axis=0)
            named = rows.filter((pl.col("name") == count.name) & pl.col("is_reference"))[UNIT]
            at = [place for place, unit in enumerate(count.units.tolist()) if unit in set(named)]
            reference = at[0] if at else int(size.argmax())
            for group in range(len(size)):
                if group != reference:
                    both = (count.rows[:, [group, reference]] > 0).all(axis=1)
                    tables = [
                        each[both][:, place].astype(float)
                        for place in (group, reference)
                        for each in (count.hits, count.rows)
                    ]
                    crude = float(hits[group] / size[group] - hits[reference] / size[reference])
                    about = {
                        ".metric": count.name, ".by": metric.by.text, ".group": texts[int(count.units[group])],
                        ".other": texts[int(count.units[reference])], ".strata": int(both.sum()),
                        ".crude": crude,
                        ".n": int(size[group]), ".n_other": int(size[reference]),
                    }  # fmt: skip
                    found.append(about | _within_strata(crude, tables, self.conf_level))
        return pl.DataFrame(found, schema=schema)


def _within_strata(crude: float, tables: list[Any], level: float) -> dict[str, Any]:
    """What is known of a difference within strata: `hits` and `rows` of a group, and of the other one."""
    if not len(tables[0]):
        return {".pattern": "no common stratum"}
    found, error = mantel_haenszel(*tables)
    z, vary = NormalDist().inv_cdf((1 + level) / 2), homogeneity(*tables)
    distance = tables[0] / tables[1] - tables[2] / tables[3]
    turned = bool((distance > 0).all() and crude < 0) or bool((distance < 0).all() and crude > 0)
    return {
        ".adjusted": found, ".lower": found - z * error, ".upper": found + z * error, ".std_error": error,
        ".p_value": cochran_mantel_haenszel(*tables), ".p_homogeneity": vary,
        ".pattern": "simpson" if turned else "heterogeneous" if vary < 1 - level else "alike",
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class RateTable:
    """A rate of the groups of an outer group."""

    metric: str
    by: str
    groups: list[str]
    rows: Array
    hits: Array


@dataclass(frozen=True)
class _Rates(_Test):
    """The rates of groups, of which something is made."""

    make: Callable[[RateTable], pl.DataFrame] | None = None
    schema: tuple[tuple[str, Any], ...] = ()

    def _tested(
        self, metric: GroupwiseMetric, rows: pl.DataFrame, texts: pl.Series, counts: list[_Counts], own: int
    ) -> pl.DataFrame:
        del rows, own
        tables = [
            self.make(
                RateTable(
                    count.name, metric.by.text, texts.gather(count.units).to_list(), count.rows.sum(axis=0),
                    count.hits.sum(axis=0),
                )
            )
            for count in counts
            if self.make is not None and len(count.units)
        ]  # fmt: skip
        return pl.concat([pl.DataFrame(schema=dict(self.schema)), *tables])

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        return table


def rate_table(
    metric: GroupwiseMetric, make: Callable[[RateTable], pl.DataFrame], schema: Mapping[str, Any], data: Any,
    truth: ColumnLike | None, estimate: ColumnLike | None, options: Mapping[str, Any],
) -> Any:  # fmt: skip
    """What is made of the rates of groups, for every rate and outer group."""
    rates = _Rates(_groupwise((metric,), "This"), (), 1, 0, "none", "all", make=make, schema=tuple(schema.items()))
    return rates(data, truth, estimate, **options)


def _distances(shares: Array, rows: Array, share: float) -> Array:
    """How far the shares of each pair are apart, in standard errors under equality."""
    import numpy as np

    one, other = np.triu_indices(len(rows), 1)
    error = np.sqrt(share * (1 - share) * (1 / rows[one] + 1 / rows[other]))
    return np.abs(shares[:, one] - shares[:, other]) / np.maximum(error, _SAME)


def disparity_test(
    *metrics: GroupwiseMetric | MetricSet,
    within: ColumnLike | Iterable[ColumnLike] | None = None,
    times: int = 10_000,
    seed: int = 0,
    mid_p: bool = False,
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
) -> DisparityTest:
    """Test whether groups are equal, by shuffling who is in which group.

    A metric is tested among the rows that it is about: demographic parity among all, equal opportunity among those with
    the event, predictive parity among those selected, equalized odds among each. Exact but for the number of draws.

    Args:
        metrics: Groupwise metrics of rates.
        within: Columns within whose groups everybody is shuffled, so that these cannot be what makes groups differ.
        times: How many draws there are.
        seed: Of the draws; the same seed gives the same answer.
        mid_p: Whether draws that are equal to what was found count half.
        adjust: How p-values of several tests are adjusted: `"holm"`, `"bh"` (Benjamini and Hochberg), `"by"` (Benjamini
            and Yekutieli) or `"none"`.
        family: Which tests are adjusted together: `"all"`, those of one `"metric"`, or of one `"by"`.

    Returns:
        A callable that takes what a metric takes, and gives one row for each metric and outer group: `.hypothesis`,
        `.estimate`, what is `.expected` by chance if groups are equal and the range of 95 % of it (`.expected_lower`,
        `.expected_upper`), `.p_value`, `.p_adjusted`, `.n` rows and the `.method`. Null where there is no disparity.

    Raises:
        ArgumentError: For metrics that compare no rates, or rates of overlapping rows.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> disparity_test(demographic_parity("sex"))(people, estimate="hired").select(".estimate", ".n").row(0)
    (1.0, 6)
    """
    return DisparityTest(
        _groupwise(metrics, "disparity_test"), _columns(within), _whole("times", 1, times), _whole("seed", 0, seed),
        _one_of("adjust", adjust, _ADJUSTMENTS), cast("Any", _one_of("family", family, _FAMILIES)),
        _flag("mid_p", mid_p),
    )  # fmt: skip


def pairwise(
    *metrics: GroupwiseMetric | MetricSet,
    adjust: Literal["holm", "max_t", "bh", "by", "none"] = "holm",
    family: Family = "all",
    conf_level: float = 0.95,
    times: int = 10_000,
    seed: int = 0,
) -> PairwiseTest:
    """Compare each pair of groups: how far apart two rates are, an interval, and Fisher's exact test.

    Args:
        metrics: Groupwise metrics of one rate each, such as `equal_opportunity`.
        adjust: How p-values are adjusted: `"holm"`, `"bh"`, `"by"`, `"none"`, or `"max_t"`, by the largest distance of
            any pair of a comparison when its groups are shuffled.
        family: Which pairs are adjusted together: `"all"`, those of one `"metric"`, or of one `"by"`.
        conf_level: Of each interval (Newcombe's), which is not adjusted.
        times: How many draws there are for `"max_t"`.
        seed: Of the draws.

    Returns:
        A callable that takes what a metric takes, and gives one row for each pair and outer group: `.group`, `.other`,
        both values, `.difference`, `.lower`, `.upper`, `.p_value`, `.p_adjusted`, and the rows of both.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> found = pairwise(demographic_parity("sex"))(people, estimate="hired")
    >>> found.select(".group", ".other", pl.col(".p_value").round(6)).row(0)
    ('f', 'm', 0.1)
    """
    return PairwiseTest(
        _groupwise(metrics, "pairwise"), (), _whole("times", 1, times), _whole("seed", 0, seed),
        _one_of("adjust", adjust, (*_ADJUSTMENTS, "max_t")), cast("Any", _one_of("family", family, _FAMILIES)),
        conf_level=_level(conf_level),
    )  # fmt: skip


def stratified(
    *metrics: GroupwiseMetric | MetricSet,
    within: ColumnLike | Iterable[ColumnLike],
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
    conf_level: float = 0.95,
) -> StratifiedTest:
    """Compare groups within strata: what is left of a difference between like and like.

    Each group is compared with the reference of the metric, `difference(to="a group")`, or else with the largest one.

    Args:
        metrics: Groupwise metrics of one rate each.
        within: The columns whose groups are the strata.
        adjust: How p-values are adjusted, as for `pairwise`.
        family: Which comparisons are adjusted together.
        conf_level: Of the intervals, and of the test whether strata differ.

    Returns:
        A callable that takes what a metric takes, and gives one row for each group and outer group: the `.crude`
        difference, the `.adjusted` one (Mantel and Haenszel's) with `.lower`, `.upper` and `.std_error`, `.p_value`
        (Cochran, Mantel and Haenszel's) and `.p_homogeneity`, and the `.pattern`: `simpson` where all strata have the
        other sign than the crude difference, `heterogeneous` where strata differ so that one number for all of them
        says little, else `alike`. Strata without one of the two groups do not count. It needs scipy.

    >>> from tidyfair import demographic_parity
    >>> rows = [(g, d, p) for g, d, hits, size in (
    ...     ("a", "x", 18, 20), ("b", "x", 72, 90), ("a", "y", 27, 90), ("b", "y", 4, 20)
    ... ) for p in [1] * hits + [0] * (size - hits)]
    >>> people = pl.DataFrame(rows, schema=["g", "dept", "hired"], orient="row")
    >>> found = stratified(demographic_parity("g"), within="dept")(people, estimate="hired")
    >>> found.select(".group", ".other", pl.col(".crude", ".adjusted").round(2), ".pattern").row(0)
    ('b', 'a', 0.28, -0.1, 'simpson')
    """
    columns = _columns(within)
    if not columns:
        msg = "stratified() compares within strata: `within=` names their columns."
        raise ArgumentError(msg)
    return StratifiedTest(
        _groupwise(metrics, "stratified"), columns, 1, 0, _one_of("adjust", adjust, _ADJUSTMENTS),
        cast("Any", _one_of("family", family, _FAMILIES)), conf_level=_level(conf_level),
    )  # fmt: skip


def compare_periods(
    *metrics: GroupwiseMetric | MetricSet,
    period: str,
    times: int = 10_000,
    seed: int = 0,
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
) -> PeriodTest:
    """Test whether disparities change from one period to the next, by shuffling the rows of each group between them.

    Ranges of different numbers of rows are not comparable: that of the smaller period is larger by chance. So a change
    is compared with what it would be if nothing but the number of rows changed.

    Args:
        metrics: Groupwise metrics of rates.
        period: The column of periods, in their order, which is also given as `group_by=` in the call.
        times: How many draws there are.
        seed: Of the draws.
        adjust: How p-values are adjusted, as for `disparity_test`.
        family: Which tests are adjusted together.

    Returns:
        A callable that takes what a metric takes, and gives one row for each metric and period but the first: `.before`
        (the period before), both values, their `.change`, what is `.expected` if nothing changes and the range of 95 %
        of it, `.p_value` and `.p_adjusted`.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"month": [1] * 4 + [2] * 4, "hired": [1, 0] * 4, "sex": list("ffmm") * 2})
    >>> test = compare_periods(demographic_parity("sex"), period="month")
    >>> test(people, estimate="hired", group_by="month").select(".before", ".period", ".change").row(0)
    (1, 2, 0.0)
    """
    if not isinstance(period, str) or not period:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"compare_periods(): `period` is the name of a column, not {period!r}."
        raise ArgumentError(msg)
    return PeriodTest(
        _groupwise(metrics, "compare_periods"), (), _whole("times", 1, times), _whole("seed", 0, seed),
        _one_of("adjust", adjust, _ADJUSTMENTS), cast("Any", _one_of("family", family, _FAMILIES)), period=period,
    )  # fmt: skip


def worst_groups(
    *metrics: GroupwiseMetric | MetricSet, conf_level: float = 0.95, times: int = 10_000, seed: int = 0
) -> WorstGroups:
    """Ask how sure it is which group is the worst: of equal groups some group looks it by chance.

    Args:
        metrics: Groupwise metrics of rates.
        conf_level: How often the intervals hold what is true of all groups at once.
        times: How many draws there are.
        seed: Of the draws.

    Returns:
        A callable that takes what a metric takes, and gives one row for each rate and group: `.estimate`, `.lower` and
        `.upper` (Wilson's, simultaneous), and `.p_worst`, the probability that no other group is worse, given
        independent Jeffreys priors of the groups.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> worst_groups(demographic_parity("sex"))(people, estimate="hired").select(".group", ".estimate").rows()
    [('f', 1.0), ('m', 0.0)]
    """
    return WorstGroups(
        _groupwise(metrics, "worst_groups"), (), _whole("times", 1, times), _whole("seed", 0, seed), "none", "all",
        conf_level=_level(conf_level),
    )  # fmt: skip


def _level(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, float) or not 0 < value < 1:
        msg = f"`conf_level` is a share between 0 and 1, not {value!r}."
        raise ArgumentError(msg)
    return value


def _groupwise(given: tuple[object, ...], name: str) -> tuple[GroupwiseMetric, ...]:
    def members() -> Iterator[object]:
        for each in given:
            yield from each if isinstance(each, MetricSet) else [each]

    found = list(members())
    for each in found:
        if isinstance(each, GroupwiseFactory):
            msg = f'{each.name} compares the groups of a column: did you mean `{each.name}("col")`?'
            raise ArgumentError(msg)
        if not isinstance(each, GroupwiseMetric) or isinstance(each.bound, UserAggregate):
            msg = f"{name}() takes comparisons of groups, with an aggregate of the library, not {each!r}."
            raise ArgumentError(msg)
    if not found:
        msg = f'{name}() needs a comparison of groups, such as `demographic_parity("sex")`.'
        raise ArgumentError(msg)
    return tuple(cast("list[GroupwiseMetric]", found))


def _columns(given: Any) -> tuple[Column, ...]:
    if given is None:
        return ()
    several = isinstance(given, Iterable) and not isinstance(given, str | pl.Expr)
    columns: list[object] = list(cast("Iterable[object]", given)) if several else [given]
    return tuple(Column.of(each, "within") for each in columns)


def _whole(name: str, least: int, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= _MOST_TIMES:
        msg = f"`{name}` is a whole number, {least} to {_MOST_TIMES}, not {value!r}."
        raise ArgumentError(msg)
    return int(value)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        msg = f"`{name}` is True or False, not {value!r}."
        raise ArgumentError(msg)
    return value


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ArgumentError.unknown(name, value, known)
    return value

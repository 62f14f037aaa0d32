"""Tests of equality: how far apart groups would be by chance alone, and how often as far as they are.

Whoever is in which group is shuffled among the rows that a metric is about. That costs groups, not rows: how many rows
of a group then have what is counted is a multivariate hypergeometric draw.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from tidyfair.aggregates import UserAggregate
from tidyfair.columns import Column
from tidyfair.comparisons import PART, compare
from tidyfair.errors import ArgumentError
from tidyfair.evaluations import DEFAULTS
from tidyfair.frames import open_frame
from tidyfair.groups import By
from tidyfair.intervals import Quantities, share_of
from tidyfair.metric_sets import GroupwiseFactory, GroupwiseMetric, MetricSet, metric_set
from tidyfair.proportions import adjusted, apart, fisher
from tidyfair.readings import LEVEL, UNIT
from tidyfair.units import UNGROUPED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.columns import ColumnLike
    from tidyfair.evaluations import Evaluated, Reading

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["DisparityTest", "PairwiseTest", "WorstGroups", "disparity_test", "pairwise", "worst_groups"]

Family = Literal["metric", "by", "all"]
_ADJUSTMENTS = ("holm", "bh", "by", "none")
_FAMILIES = ("metric", "by", "all")
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


_WORST = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".estimate": pl.Float64, ".lower": pl.Float64,
    ".upper": pl.Float64, ".p_worst": pl.Float64, ".n": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Counts:
    """How many rows of each group a rate is about, and in how many of them it holds, in each stratum."""

    name: str
    metric: int
    level: int
    among: frozenset[str]
    holds: frozenset[str]
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
        for name in ("interval", "explain", "on_undefined", "case_weights", "score_bins"):
            if options.get(name) is not None:
                msg = f"A test takes no `{name}`: it counts rows."
                raise ArgumentError(msg)
        counting = {name: options[name] for name in options if name not in DEFAULTS}
        reading: Reading = cast("Any", {**DEFAULTS, **{name: options[name] for name in options if name in DEFAULTS}})
        reading["on_undefined"] = "ignore"
        counted = [replace(metric, by=self._by(metric)) for metric in self.metrics]
        tally = metric_set(*(replace(each, name=f"{place}") for place, each in enumerate(counted))).tally(
            data, truth, estimate, **counting
        )
        if tally.cut is not None and tally.cut.several:
            msg = f"A test is about one selection, not a list of them: give one {tally.cut.way}."
            raise ArgumentError(msg)
        tables = [
            self._table(metric, each.evaluate(tally, reading)[0])
            for metric, each in zip(self.metrics, counted, strict=True)
        ]
        found = self._adjusted(pl.concat(tables, how="diagonal_relaxed"))
        return open_frame(data, options.get("group_by")).restore(found)

    def _by(self, metric: GroupwiseMetric) -> By:
        if not self.within:
            return metric.by
        if metric.by.sides:
            msg = f"{metric.name}: `within` goes with columns, not with privileged(…)."
            raise ArgumentError(msg)
        return By((*metric.by.columns, *self.within))

    def _table(self, metric: GroupwiseMetric, evaluated: Evaluated) -> pl.DataFrame:
        """The tests of a metric, one or more rows for each outer group."""
        found = list[pl.DataFrame]()
        for outer in range(len(evaluated.units.outer_keys)):
            texts, counts = self._counts(metric, evaluated, outer)
            own = zlib.crc32(f"{metric.name} {metric.by.text} {outer}".encode())
            rows = self._tested(metric, texts, counts, own)
            keys = {key.name: key[outer] for key in evaluated.units.outer_keys if key.name != UNGROUPED}
            found.append(rows.select(*(pl.lit(value).alias(name) for name, value in keys.items()), pl.all()))
        return pl.concat(found)

    def _tested(self, metric: GroupwiseMetric, texts: pl.Series, counts: list[_Counts], own: int) -> pl.DataFrame:
        raise NotImplementedError

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table with p-values adjusted for all tests of a family, where the tests have not done so themselves."""
        if ".p_adjusted" not in table.columns:
            about = {"metric": [".metric"], "by": [".by"], "all": list[str]()}[self.family]
            families = pl.Series([0]).new_from_index(0, len(table))
            if about:
                families = table.select(pl.struct(about).rank("dense")).to_series()
            found: list[float | None] = [None] * len(table)
            p_values = table[".p_value"]
            for family in families.unique():
                mine = ((families == family) & p_values.is_not_null()).arg_true()
                for place, value in zip(mine, adjusted(p_values.gather(mine).to_numpy(), self.adjust), strict=True):
                    found[place] = float(value)
            after = table.columns.index(".p_value") + 1
            made = pl.Series(".p_adjusted", found, dtype=pl.Float64)
            table = pl.DataFrame([*table[:, :after].get_columns(), made, *table[:, after:].get_columns()])
        return table.with_columns(pl.lit(f"{self.adjust} over {self.family}").alias(".adjustment"))

    def _counts(self, metric: GroupwiseMetric, evaluated: Evaluated, outer: int) -> tuple[pl.Series, list[_Counts]]:
        """The groups of an outer group as results show them, and what is counted of them by each rate."""
        import numpy as np

        rows = evaluated.rows.filter((pl.col("outer") == outer) & pl.col("estimate").is_not_null() & ~pl.col("apart"))
        (request,) = evaluated.requests
        by = request.by
        if by is None:
            return pl.Series([], dtype=pl.String), []
        first = evaluated.units.spans[by][0]
        keys = evaluated.units.keys[by][rows[UNIT] - first]
        width = len(metric.by.columns)
        if metric.by.sides:
            texts, strata = rows["text"], pl.Series([0]).new_from_index(0, len(rows))
        else:
            parts = [key.cast(pl.String).fill_null("null") for key in keys[:, :width]]
            texts = pl.select(pl.concat_str(parts, separator=":")).to_series()
            strata = pl.Series([0]).new_from_index(0, len(rows))
            if self.within:
                strata = keys[:, width:].select(pl.struct(pl.all()).rank("dense")).to_series().cast(pl.Int64) - 1
        groups = texts.unique(maintain_order=True)
        place = {text: index for index, text in enumerate(groups)}
        found = list[_Counts]()
        for number, (name, formula) in enumerate(request.formulas):
            share = share_of(formula)
            if share is None:
                msg = (
                    f"{metric.name} is no comparison of rates: of {name} there is no exact test. Take intervals, "
                    '`interval="auto"`.'
                )
                raise ArgumentError(msg)
            mine = (rows["name"] == name).to_numpy()
            for level in np.unique(rows[LEVEL].to_numpy()[mine]):
                taken = np.flatnonzero(mine & (rows[LEVEL].to_numpy() == level))
                size = rows["denominator"].to_numpy()[taken].astype(np.int64)
                hits = np.round(rows["estimate"].to_numpy()[taken] * size).astype(np.int64)
                of_group = np.array([place[text] for text in texts.gather(taken)], dtype=np.int64)
                of_stratum = strata.gather(taken).to_numpy()
                counted = np.zeros((2, len(strata.unique()), len(groups)), dtype=np.int64)
                np.add.at(counted[0], (of_stratum, of_group), size)
                np.add.at(counted[1], (of_stratum, of_group), hits)
                found.append(_Counts(name, number, int(level), share.among, share.holds, *counted))
        return groups, found


class DisparityTest(_Test):
    """Tests whether groups are equal, by shuffling them; made by `disparity_test`."""

    def _tested(self, metric: GroupwiseMetric, texts: pl.Series, counts: list[_Counts], own: int) -> pl.DataFrame:
        import numpy as np

        random = np.random.default_rng([self.seed, own])
        drawn = _drawn(metric, counts, self.times, random)
        hits = [np.vstack([each, count.hits.sum(axis=0)]) for each, count in zip(drawn, counts, strict=True)]
        values = _compared(metric, texts, counts, hits)
        names = list(dict.fromkeys(count.name for count in counts))
        text = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} the same in all groups of {metric.by.text}"
        text += f" within {', '.join(column.name for column in self.within)}" if self.within else ""
        found = dict.fromkeys(_TESTED) | {".metric": metric.name, ".by": metric.by.text, ".hypothesis": text}
        observed = values["value"][-1] if len(values) else None
        if observed is not None:
            shuffled = values[:-1].drop_nulls("value")
            bad, worse = shuffled["severity"].to_numpy(), values["severity"][-1]
            more, same = int((bad > worse + _SAME).sum()), int((np.abs(bad - worse) <= _SAME).sum())
            p_value = (more + 0.5 * same) / len(bad) if self.mid_p else (more + same + 1) / (len(bad) + 1)
            low, high = (shuffled["value"].quantile(end, "linear") for end in _CENTRAL)
            found |= {
                ".estimate": observed, ".expected": shuffled["value"].mean(), ".expected_lower": low,
                ".expected_upper": high, ".p_value": p_value, ".n": sum(int(count.rows.sum()) for count in counts),
                ".method": "permutation, mid-p" if self.mid_p else "permutation",
            }  # fmt: skip
        return pl.DataFrame([found], schema=_TESTED)


def _drawn(metric: GroupwiseMetric, counts: Sequence[_Counts], times: int, random: np.random.Generator) -> list[Any]:
    """The shuffled hits of each rate; rates of the same rows are shuffled together."""
    found: list[Any] = []
    for place, count in enumerate(counts):
        same = [at for at in range(place) if counts[at].among & count.among and counts[at].level == count.level]
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
    metric: GroupwiseMetric, texts: pl.Series, counts: Sequence[_Counts], hits: Sequence[Array]
) -> pl.DataFrame:
    """The aggregate of each draw: `value`, and its `severity`."""
    import numpy as np

    if not counts:
        return pl.DataFrame(schema={"value": pl.Float64, "severity": pl.Float64})
    aggregate, parts = metric.bound, list[pl.DataFrame]()
    for count, mine in zip(counts, hits, strict=True):
        rows = count.rows.sum(axis=0)
        there = np.flatnonzero(rows)
        times, size = len(mine), len(there)
        total, every = mine.sum(axis=1, keepdims=True), rows.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = {
                "estimate": mine[:, there] / rows[there],
                "overall": np.broadcast_to(total / every, (times, size)),
                "rest": (total - mine[:, there]) / (every - rows[there]),
            }
        text = texts.gather(there)
        chosen = np.array([aggregate.reference in {name, (name,)} for name in text], dtype=bool)
        weight = np.tile(rows[there], times)
        about = {"request": 0, PART: 0, LEVEL: count.level, "metric": count.metric}
        parts.append(
            pl.DataFrame(
                {
                    "outer": np.repeat(np.arange(times, dtype=np.int32), size), UNIT: np.tile(there, times),
                    "text": text.gather(np.tile(np.arange(size), times)), "n": weight, "mass": weight.astype(float),
                    "size": weight.astype(float), "is_reference": np.tile(chosen, times),
                    **{name: each.ravel() for name, each in shares.items()},
                }
            ).with_columns(
                pl.lit("ok").alias("status"), pl.col("rest").fill_nan(None),
                *(pl.lit(value, pl.Int32).alias(name) for name, value in about.items()),
            )
        )  # fmt: skip
    every = compare(
        pl.concat(parts),
        {0: aggregate},
        two_sided=[0] if metric.by.sides else [],
        undefined_is_null=False,
        tidy=_no_tidy,
    )
    return every.sort("outer").select("value", aggregate.severity(pl.col("value")).alias("severity"))


def _no_tidy(request: int, rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    return f"request {request}", rows


class PairwiseTest(_Test):
    """Tests each pair of groups; made by `pairwise`."""

    def _tested(self, metric: GroupwiseMetric, texts: pl.Series, counts: list[_Counts], own: int) -> pl.DataFrame:
        import numpy as np

        if len({count.name for count in counts}) > 1:
            msg = f"{metric.name} compares several rates; take pairs of one, such as equal_opportunity."
            raise ArgumentError(msg)
        tables = [pl.DataFrame(schema=_PAIRS)]
        for count in counts:
            rows, hits = count.rows.sum(axis=0), count.hits.sum(axis=0)
            shares = Quantities.of_counts(hits, rows)
            low, high = shares.limits(NormalDist().inv_cdf((1 + self.conf_level) / 2))
            one, other = np.triu_indices(len(rows), 1)
            value = shares.value
            ends = apart(value[one], (low[one], high[one]), value[other], (low[other], high[other]))
            tested = [
                fisher(int(hits[first]), int(rows[first]), int(hits[second]), int(rows[second]))
                for first, second in zip(one, other, strict=True)
            ]
            table = {
                ".group": texts.gather(one), ".other": texts.gather(other), ".estimate": value[one],
                ".estimate_other": value[other], ".difference": value[one] - value[other], ".lower": ends[0],
                ".upper": ends[1], ".p_value": tested, ".n": rows[one], ".n_other": rows[other],
            }  # fmt: skip
            if self.adjust == "max_t":
                distance = _distances(value[None, :], rows, hits.sum() / rows.sum())[0]
                random = np.random.default_rng([self.seed, own])
                drawn = _distances(count.shuffled(self.times, random) / rows, rows, hits.sum() / rows.sum())
                largest = drawn.max(axis=1, initial=0.0)
                reached = (largest[:, None] >= distance - _SAME).sum(axis=0)
                table[".p_adjusted"] = (1 + reached) / (1 + self.times)
            named = pl.DataFrame(table).select(
                pl.lit(count.name).alias(".metric"), pl.lit(metric.by.text).alias(".by"), pl.all()
            )
            tables.append(named.select(name for name in _PAIRS if name in named.columns))
        return pl.concat(tables[1:] or tables)


class WorstGroups(_Test):
    """How sure it is which group is the worst; made by `worst_groups`."""

    def _tested(self, metric: GroupwiseMetric, texts: pl.Series, counts: list[_Counts], own: int) -> pl.DataFrame:
        import numpy as np

        random, tables = np.random.default_rng([self.seed, own]), [pl.DataFrame(schema=_WORST)]
        for count in counts:
            rows, hits = count.rows.sum(axis=0), count.hits.sum(axis=0)
            base = metric.metrics[count.metric]
            each = self.conf_level ** (1 / max(1, len(rows)))
            shares = Quantities.of_counts(hits, rows)
            low, high = shares.limits(NormalDist().inv_cdf((1 + each) / 2))
            drawn = random.beta(hits + 0.5, rows - hits + 0.5, (self.times, len(rows)))
            worst = (drawn.argmin if base.direction == "maximize" else drawn.argmax)(axis=1)
            table = {
                ".group": texts, ".estimate": shares.value, ".lower": low, ".upper": high,
                ".p_worst": np.bincount(worst, minlength=len(rows)) / self.times, ".n": rows,
            }  # fmt: skip
            named = [pl.lit(count.name).alias(".metric"), pl.lit(metric.by.text).alias(".by")]
            tables.append(pl.DataFrame(table).select(*named, pl.all()))
        return pl.concat(tables[1:] or tables)

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        return table


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
        _one_of("adjust", adjust, _ADJUSTMENTS), cast("Any", _one_of("family", family, _FAMILIES)), mid_p,
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
            any pair when groups are shuffled.
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
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        msg = f"`{name}` is a whole number, {least} or more, not {value!r}."
        raise ArgumentError(msg)
    return int(value)


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ArgumentError.unknown(name, value, known)
    return value

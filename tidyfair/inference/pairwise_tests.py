"""Tests of single groups: all pairs, comparisons with a reference within strata, and the worst group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.inference.contingency import chi_squared, equal_odds, fisher, likelihood_ratio
from tidyfair.inference.pooling import check_pooling, pooled
from tidyfair.inference.rate_tests import (
    ADJUSTMENTS,
    FAMILIES,
    CountedRate,
    Family,
    OuterGroup,
    OuterGroupTest,
    RateCounts,
    columns_of,
    groupwise,
)
from tidyfair.intervals.proportions import (
    cochran_mantel_haenszel,
    difference_limits,
    homogeneity,
    mantel_haenszel,
    mantel_haenszel_limits,
    mantel_haenszel_odds_ratio,
    mantel_haenszel_ratio,
    z_value,
)
from tidyfair.intervals.quantities import Shares
from tidyfair.specs.aggregates import CONTEXTS
from tidyfair.specs.arguments import flag, how_often, one_of, proper_share, whole
from tidyfair.specs.contrasts import Contrast
from tidyfair.specs.options import refuse_unknown_keywords
from tidyfair.specs.result_columns import key_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.inference.pooling import Pooling
    from tidyfair.metric_sets import GroupwiseMetric, MetricSet
    from tidyfair.specs.columns import ColumnLike

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["PairwiseTest", "StratifiedTest", "WorstGroups", "pairwise", "stratified", "worst_groups"]

_DEVIATIONS = "\0deviations"
"""The standard errors that limits are from their difference."""
_PAIRS = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".other": pl.String, ".estimate": pl.Float64,
    ".estimate_other": pl.Float64, ".difference": pl.Float64, ".lower": pl.Float64, ".upper": pl.Float64,
    ".method": pl.String, ".p_value": pl.Float64, ".p_adjusted": pl.Float64, ".n": pl.Int64, ".n_other": pl.Int64,
    _DEVIATIONS: pl.Float64,
}  # fmt: skip
_TESTS = {"chi_squared": chi_squared, "g": likelihood_ratio}
"""The tests of two groups, but Fisher's."""
_MANY_GROUPS = 100
"""Of more groups than these, all pairs that are left are taken to be equal."""
_STRATIFIED = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".other": pl.String, ".strata": pl.Int64,
    ".crude": pl.Float64, ".adjusted": pl.Float64, ".lower": pl.Float64, ".upper": pl.Float64, ".std_error": pl.Float64,
    ".p_value": pl.Float64, ".p_adjusted": pl.Float64, ".p_homogeneity": pl.Float64,
    ".p_equal_odds": pl.Float64, ".pattern": pl.String,
    ".ratio": pl.Float64, ".ratio_lower": pl.Float64, ".ratio_upper": pl.Float64,
    ".odds_ratio": pl.Float64, ".odds_ratio_lower": pl.Float64, ".odds_ratio_upper": pl.Float64,
    ".n": pl.Int64, ".n_other": pl.Int64,
}  # fmt: skip
_WORST = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".estimate": pl.Float64, ".lower": pl.Float64,
    ".upper": pl.Float64, ".worst": pl.String, ".p_worst": pl.Float64, ".n": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class PairwiseTest(OuterGroupTest):
    """Tests each pair of groups; made by `pairwise`."""

    subject: ClassVar[str] = "pairwise()"
    test: str = "fisher"

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        _check_single_rate(self.subject, part.metric)
        schema = dict(_PAIRS)
        if self.adjust != "max_t":
            del schema[".p_adjusted"]
        tables = [self._pairs(part, count) for count in part.counts if len(count.group_cells) > 1]
        return pl.concat([pl.DataFrame(schema=schema), *(table.select(list(schema)) for table in tables)])

    def _pairs(self, part: OuterGroup, count: CountedRate) -> pl.DataFrame:
        """The tests of all pairs of groups of a rate."""
        import numpy as np

        denominator, numerator = count.of_groups.denominator, count.of_groups.numerator
        names = part.texts.gather(count.group_cells)
        method = f"{self.test}, mid-p" if self.mid_p else self.test
        value = numerator / denominator
        one, other = np.triu_indices(len(denominator), 1)
        test = _TESTS.get(self.test) or partial(fisher, mid_p=self.mid_p)
        counts = np.column_stack([numerator[one], denominator[one], numerator[other], denominator[other]])
        p_values = np.array([test(*row) for row in counts.tolist()])
        columns: dict[str, Any] = {
            ".metric": [count.name] * len(one), ".by": [part.metric.by.text] * len(one), ".group": names.gather(one),
            ".other": names.gather(other), ".estimate": value[one], ".estimate_other": value[other],
            ".difference": value[one] - value[other], ".lower": None, ".upper": None,
            ".method": [method] * len(one), ".p_value": p_values, ".p_adjusted": None,
            ".n": denominator[one], ".n_other": denominator[other], _DEVIATIONS: None,
        }  # fmt: skip
        if self.adjust == "max_t":
            largest = _LargestDistance(denominator, (one, other), self.times, part.random)
            columns[".p_adjusted"] = largest.adjusted(p_values)
            columns[_DEVIATIONS] = largest.quantile(self.conf_level)
        return pl.DataFrame(columns, schema=_PAIRS)

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        if self.adjust == "max_t":
            table = table.with_columns(pl.lit("max_t over the pairs of each comparison").alias(".adjustment"))
        else:
            table = super()._adjusted(table)
            table = self._closed(table) if self.adjust == "holm" and len(table) else table
            table = table.with_columns(self._deviations(table).alias(_DEVIATIONS))
        return self._with_limits(table)

    def _deviations(self, table: pl.DataFrame) -> pl.Series:
        """The standard errors to both sides of a difference that hold it at the level of a family of differences.

        For all at once by Bonferroni's inequality, where p-values bound any false rejection; where they bound the share
        of false ones, for as large a share of those rejected (Benjamini and Yekutieli, 2005).
        """
        families, error = self._families(table), 1 - self.conf_level
        is_rejected = table[".p_adjusted"] < error
        counted = pl.DataFrame({"family": families, "rejected": is_rejected})
        pairs, rejected = counted.select(
            pl.len().over("family").alias("pairs"), pl.col("rejected").sum().clip(1).over("family")
        ).get_columns()
        if self.adjust == "none":
            share = error + 0 * pairs
        elif self.adjust == "holm":
            share = error / pairs
        else:
            share = error * rejected / pairs
        if self.adjust == "by":
            share /= pairs.map_elements(_harmonic, return_dtype=pl.Float64)
        distinct = {one: z_value(1 - one) for one in share.unique()}
        return share.replace_strict(distinct, return_dtype=pl.Float64)

    def _with_limits(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table with limits of differences that exclude 0 where the adjusted p-value rejects it, and only there.

        Of a difference that is rejected, the side is known (Strassburger and Bretz, 2008), so that limits on the other
        side, which may be those of a test that is less strict, end right beside 0.
        """
        import numpy as np

        deviations = table[_DEVIATIONS].to_numpy()
        lower, upper = np.full((2, len(table)), np.nan)
        columns = (".estimate", ".n", ".estimate_other", ".n_other")
        value, rows, other, other_rows = (table[name].to_numpy().astype(float) for name in columns)
        for z in np.unique(deviations).tolist():
            at = deviations == z
            limits, of_other = Shares(value[at], rows[at]).limits(z), Shares(other[at], other_rows[at]).limits(z)
            lower[at], upper[at] = difference_limits(value[at], limits, other[at], of_other)
        difference = value - other
        is_rejected = table[".p_adjusted"].to_numpy() < 1 - self.conf_level
        nearest = np.nextafter(0, difference)
        lower = np.where(is_rejected & (difference > 0), np.maximum(lower, nearest), lower)
        upper = np.where(is_rejected & (difference < 0), np.minimum(upper, nearest), upper)
        lower = np.where(is_rejected, lower, np.minimum(lower, 0))
        upper = np.where(is_rejected, upper, np.maximum(upper, 0))
        limits = (pl.Series(".lower", lower), pl.Series(".upper", upper))
        return table.with_columns(limits).drop(_DEVIATIONS)

    def _closed(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table with p-values adjusted by Holm, for as many pairs as can be equal (Shaffer, 1986)."""
        import numpy as np

        p_values, families = table[".p_value"].to_numpy(), self._families(table)
        comparisons = table.select(pl.struct(*key_columns(table), ".metric", ".by").rank("dense")).to_series()
        closed = np.empty(len(table))
        for family in families.unique():
            index = (families == family).arg_true().to_numpy()
            pairs = comparisons[index].value_counts()["count"].to_list()
            rising = index[np.argsort(p_values[index], kind="stable")]
            factors = _most_equal([_groups_of(count) for count in pairs])
            closed[rising] = np.maximum.accumulate(p_values[rising] * factors).clip(0, 1)
        return table.with_columns(
            pl.Series(".p_adjusted", closed), pl.lit(f"closed holm over {self.family}").alias(".adjustment")
        )


def _groups_of(pairs: int) -> int:
    """The number of groups that have so many pairs."""
    return (1 + math.isqrt(1 + 8 * pairs)) // 2


def _most_equal(groups: Sequence[int]) -> Array:
    """The most pairs that may be equal while no pair is known to differ, then while one is, two are and so on.

    Equality is transitive: if one of three pairs of three groups differs, only one of the others can be equal.
    """
    import numpy as np

    possible = np.ones(1, dtype=bool)
    for size in groups:
        possible = np.convolve(possible, _numbers_of_equal_pairs(size)) > 0
    # a possible number of equal pairs, or else the next smaller one
    largest = np.maximum.accumulate(np.where(possible, np.arange(len(possible)), 0))
    return largest[:0:-1]


@lru_cache(maxsize=256)
def _numbers_of_equal_pairs(groups: int) -> Array:
    """A mask of the numbers of pairs that can be equal, from 0 to all."""
    import numpy as np

    pairs = groups * (groups - 1) // 2
    possible = np.ones(pairs + 1, dtype=bool)
    if groups > _MANY_GROUPS:
        return possible
    possible[:-1] = False
    for size in range(1, groups):
        of_equal = size * (size - 1) // 2
        rest = _numbers_of_equal_pairs(groups - size)
        possible[of_equal : of_equal + len(rest)] |= rest
    return possible


def _check_single_rate(function: str, metric: GroupwiseMetric) -> None:
    """Refuse metrics that compare several rates."""
    if len(metric.metrics) > 1 or metric.less:
        msg = f"{metric.name} compares several rates; {function} needs a metric of one, such as equal_opportunity."
        raise ArgumentError(msg)


def _harmonic(count: int) -> float:
    """The sum of 1, 1/2, 1/3 and so on."""
    return sum(1 / number for number in range(1, count + 1))


class _LargestDistance:
    """The largest distance of any pair of groups by chance, in standard errors (Westfall and Young, 1993).

    The distance of two equal groups in standard errors of their own is nearly normal, and its correlation with that of
    any other two equal groups follows from the numbers of rows alone. So it is drawn without knowing which groups are
    equal and what their rates are, which shuffling all groups together does not allow.
    """

    def __init__(self, rows: Array, pairs: tuple[Array, Array], times: int, random: np.random.Generator) -> None:
        import numpy as np

        self._rows, self._pairs = rows, pairs
        self._drawn = random.standard_normal((times, len(rows))) / np.sqrt(rows)

    def adjusted(self, p_values: Array) -> Array:
        """The p-values of the pairs, adjusted step-down."""
        import numpy as np

        normal, times = NormalDist(), len(self._drawn)
        largest, adjusted = np.zeros(times), np.empty(len(p_values))
        most_equal = _most_equal([len(self._rows)])[::-1]
        falling = np.argsort(-p_values, kind="stable")
        for pair, at_most in zip(falling, most_equal, strict=True):
            p_value = float(p_values[pair])
            tail = p_value / 2  # zero for the smallest floats
            np.maximum(largest, self._distance(pair), out=largest)
            distance = -normal.inv_cdf(tail) if tail else math.inf
            reached = (1 + (largest >= distance).sum()) / (1 + times)
            # the probability for any pair is that of this one at least, and at most the sum of those that can be equal
            adjusted[pair] = min(max(reached, p_value), at_most * p_value, 1)
        rising = falling[::-1]
        adjusted[rising] = np.maximum.accumulate(adjusted[rising])
        return adjusted

    def quantile(self, level: float) -> float:
        """The distance that no pair exceeds at some level, which is Bonferroni's at most."""
        import numpy as np

        largest, pairs = np.zeros(len(self._drawn)), len(self._pairs[0])
        for pair in range(pairs):
            np.maximum(largest, self._distance(pair), out=largest)
        rank = math.ceil(level * (len(largest) + 1))
        most = z_value(1 - (1 - level) / pairs)
        return most if rank > len(largest) else min(float(np.sort(largest)[rank - 1]), most)

    def _distance(self, pair: int) -> Array:
        """The distance of a pair in each draw."""
        import numpy as np

        one, other = self._pairs[0][pair], self._pairs[1][pair]
        error = math.sqrt(1 / self._rows[one] + 1 / self._rows[other])
        return np.abs(self._drawn[:, one] - self._drawn[:, other]) / error


class StratifiedTest(OuterGroupTest):
    """Compares groups within strata; made by `stratified`."""

    subject: ClassVar[str] = "stratified()"

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        _check_single_rate(self.subject, part.metric)
        schema = {name: dtype for name, dtype in _STRATIFIED.items() if name != ".p_adjusted"}
        rows: list[dict[str, Any]] = []
        for count in part.counts:
            if not len(count.group_cells):
                continue
            reference = _reference(part, count)
            groups = [group for group in range(len(count.group_cells)) if group != reference]
            rows += [self._compared(part, count, group, reference) for group in groups]
        return pl.DataFrame(rows, schema=schema)

    def _compared(self, part: OuterGroup, count: CountedRate, group: int, reference: int) -> dict[str, Any]:
        """The crude and the stratified difference of a group from the reference."""
        denominator, numerator = count.of_groups.denominator, count.of_groups.numerator
        crude = float(numerator[group] / denominator[group] - numerator[reference] / denominator[reference])
        is_common = (count.denominator[:, [group, reference]] > 0).all(axis=1)
        strata = RateCounts(count.numerator[is_common].astype(float), count.denominator[is_common].astype(float))
        row = {
            ".metric": count.name, ".by": part.metric.by.text, ".group": part.texts[int(count.group_cells[group])],
            ".other": part.texts[int(count.group_cells[reference])], ".strata": int(is_common.sum()), ".crude": crude,
            ".n": int(denominator[group]), ".n_other": int(denominator[reference]),
        }  # fmt: skip
        return row | _within_strata(crude, strata, group, reference, self.conf_level)


def _reference(part: OuterGroup, count: CountedRate) -> int:
    """The index of the reference of the metric among the groups of a rate, or else of the largest group."""
    is_reference = (pl.col("name") == count.name) & pl.col("is_reference")
    references = set(part.rows.filter(is_reference)[GROUP_CELL])
    for index, group_cell in enumerate(count.group_cells.tolist()):
        if group_cell in references:
            return index
    metric, aggregate = part.metric, part.metric.aggregate
    if references:
        limits = {"min_n": metric.min_n, "min_share": metric.min_share}
        given = " or ".join(f"`{name}={value}`" for name, value in limits.items() if value)
        msg = (
            f"{metric.name}: the reference {part.texts[references.pop()]!r} is below {given or 'one row'} of the rows "
            f"that {count.name} counts; take another reference, or leave smaller groups in."
        )
        raise ArgumentError(msg)
    if isinstance(aggregate, Contrast) and aggregate.to in CONTEXTS:
        msg = (
            f"{metric.name}: stratified() compares groups with one of them, not with `to={str(aggregate.to)!r}`; "
            "name a group, or leave `to` out for the largest one."
        )
        raise ArgumentError(msg)
    return int(count.of_groups.denominator.argmax())


def _within_strata(crude: float, strata: RateCounts, group: int, reference: int, level: float) -> dict[str, Any]:
    """The difference of a group from the reference within their common strata."""
    if not len(strata.denominator):
        return {".pattern": "no common stratum"}
    hits, rows = strata.numerator[:, group], strata.denominator[:, group]
    other_hits, other_rows = strata.numerator[:, reference], strata.denominator[:, reference]
    tables = (hits, rows, other_hits, other_rows)
    adjusted, error = mantel_haenszel(*tables)
    (lower,), (upper,) = mantel_haenszel_limits(*tables, z_value(level))
    p_homogeneity, p_equal_odds = homogeneity(*tables), equal_odds(*tables)
    ratio, odds_ratio = (
        [None if math.isnan(end) else end for end in relative(*tables, z_value(level))]
        for relative in (mantel_haenszel_ratio, mantel_haenszel_odds_ratio)
    )
    differences = hits / rows - other_hits / other_rows
    is_reversed = bool((differences > 0).all() and crude < 0) or bool((differences < 0).all() and crude > 0)
    pattern = "alike"
    if is_reversed:
        pattern = "simpson"
    elif p_homogeneity < 1 - level:
        pattern = "heterogeneous"
    return {
        ".adjusted": adjusted, ".lower": lower, ".upper": upper, ".std_error": error or None,
        ".p_value": cochran_mantel_haenszel(*tables), ".p_homogeneity": p_homogeneity,
        ".p_equal_odds": None if math.isnan(p_equal_odds) else p_equal_odds, ".pattern": pattern,
        **dict(zip((".ratio", ".ratio_lower", ".ratio_upper"), ratio, strict=True)),
        **dict(zip((".odds_ratio", ".odds_ratio_lower", ".odds_ratio_upper"), odds_ratio, strict=True)),
    }  # fmt: skip


@dataclass(frozen=True, repr=False)
class WorstGroups(OuterGroupTest):
    """Ranks groups by the probability of being the worst; made by `worst_groups`."""

    subject: ClassVar[str] = "worst_groups()"
    pooling: Pooling | None = None
    """The model of the rates of all groups, if there is one."""

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        import numpy as np

        metric = part.metric
        tables = [pl.DataFrame(schema=_WORST)]
        for count, base in zip(part.counts, (*metric.metrics, *metric.less), strict=False):
            denominator = count.of_groups.denominator
            groups = len(denominator)
            if not groups:
                continue
            value, (low, high), drawn = self._rates(part, count)
            if base.direction == "maximize":
                end, worst = "lowest", drawn.argmin(axis=1)
            else:
                end, worst = "highest", drawn.argmax(axis=1)
            table = {
                ".metric": [count.name] * groups, ".by": [metric.by.text] * groups,
                ".group": part.texts.gather(count.group_cells), ".estimate": value, ".lower": low, ".upper": high,
                ".worst": [end] * groups, ".p_worst": np.bincount(worst, minlength=groups) / self.times,
                ".n": denominator,
            }  # fmt: skip
            tables.append(pl.DataFrame(table, schema=_WORST))
        return pl.concat(tables)

    def _rates(self, part: OuterGroup, count: CountedRate) -> tuple[Array, tuple[Array, Array], Array]:
        """The rates of the groups, limits that hold for all of them at once, and draws; a row is a draw."""
        if self.pooling:
            rates = pooled(part, count, self.pooling)
            drawn = rates.draws(self.times, part.random)
            return rates.estimate, rates.simultaneous_limits(self.conf_level, drawn), drawn
        denominator, numerator = count.of_groups.denominator, count.of_groups.numerator
        raw, groups = Shares.of_counts(numerator, denominator), len(denominator)
        drawn = part.random.beta(numerator + 0.5, denominator - numerator + 0.5, (self.times, groups))
        return raw.value, raw.limits(z_value(self.conf_level ** (1 / groups))), drawn

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        return table


@refuse_unknown_keywords
def pairwise(
    *metrics: GroupwiseMetric | MetricSet,
    test: Literal["fisher", "chi_squared", "g"] = "fisher",
    mid_p: bool = False,
    adjust: Literal["holm", "max_t", "bh", "by", "none"] = "holm",
    family: Family = "all",
    conf_level: float = 0.95,
    times: int = 10_000,
    seed: int = 0,
) -> PairwiseTest:
    """Compare each pair of groups: the difference of their rates, its interval, and a test.

    Args:
        metrics: Groupwise metrics of one rate each, such as `equal_opportunity`.
        test: Of two groups: Fisher's, which is exact, Pearson's `"chi_squared"` without correction, or `"g"`, the ratio
            of likelihoods, which both take many rows.
        mid_p: Count tables that are as likely as the observed one half, in Fisher's test. It finds more and is nearly
            exact: a test of 5 % rejects 4.2 % of pairs of equal groups of 50 rows, averaged over rates (the exact one
            2.6 %), and 5.7 % at most; of 8 and 200 rows 6.3 % at most.
        adjust: The adjustment of p-values: `"holm"`, for as many pairs as can still be equal (Shaffer, 1986), `"bh"`,
            `"by"`, `"none"`, or `"max_t"`, step-down by the largest distance of any pair of a comparison in standard
            errors of the pair (Westfall and Young, 1993). It is never above Holm's within a comparison, and it, too,
            holds for the pairs that are equal where others are not.
        family: The pairs that are adjusted together: `"all"`, those of one `"metric"`, or of one `"by"`.
        conf_level: Confidence level of the intervals, together as the p-values are adjusted, and 1 less the p-value
            below which groups are told apart.
        times: Number of draws for `"max_t"`.
        seed: Seed of the draws.

    Returns:
        A callable that takes what a metric takes, and gives one row for each pair and outer group: `.group`, `.other`,
        both values, `.difference`, `.lower`, `.upper`, `.method` (the test), `.p_value`, `.p_adjusted`, and the rows of
        both. Limits are Newcombe's, at a level at which they hold for all pairs together, without steps: by
        Bonferroni's inequality for `"holm"`, by the quantile of the largest distance for `"max_t"`; with `"bh"` and
        `"by"` so that of the pairs that are told apart the share outside of their limits is expected to be small
        (Benjamini and Yekutieli, 2005); with `"none"` each alone. They agree with `.p_adjusted`: where it is below
        1 - `conf_level` they exclude 0, if need be by ending at the smallest number beside it, and else they include
        it.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> result = pairwise(demographic_parity("sex"))(people, estimate="hired")
    >>> result.select(".group", ".other", pl.col(".p_value").round(6)).row(0)
    ('f', 'm', 0.1)
    """
    if flag("mid_p", mid_p) and test != "fisher":
        msg = f'pairwise(): `mid_p` is for `test="fisher"`, whose p-values have ties, not for {test!r}.'
        raise ArgumentError(msg)
    return PairwiseTest(
        groupwise(metrics, "pairwise"), (), how_often(times), whole("seed", seed, 0),
        one_of("adjust", adjust, (*ADJUSTMENTS, "max_t")), cast("Any", one_of("family", family, FAMILIES)),
        mid_p=mid_p, conf_level=proper_share("conf_level", conf_level), test=one_of("test", test, ("fisher", *_TESTS)),
    )  # fmt: skip


@refuse_unknown_keywords
def stratified(
    *metrics: GroupwiseMetric | MetricSet,
    within: ColumnLike | Iterable[ColumnLike],
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
    conf_level: float = 0.95,
) -> StratifiedTest:
    """Compare groups within strata: the difference that remains between like and like.

    Each group is compared with the reference of the metric, `difference(to="a group")`, or else with the largest one.

    Args:
        metrics: Groupwise metrics of one rate each.
        within: The columns whose groups are the strata.
        adjust: The adjustment of p-values, as for `pairwise`.
        family: The comparisons that are adjusted together.
        conf_level: Confidence level of the intervals, and of the test of homogeneity.

    Returns:
        A callable that takes what a metric takes, and gives one row for each group and outer group: the `.crude`
        difference, the `.adjusted` one (Mantel and Haenszel's) with `.lower` and `.upper` (Miettinen and Nurminen's, by
        the same weights) and `.std_error` (Sato's; null where all rates are 0 or 1, of which it knows nothing),
        `.p_value` (Cochran, Mantel and Haenszel's), `.p_homogeneity` of the differences (Cochran's Q), and
        `.p_equal_odds`, of the odds ratios (Breslow and Day's, with Tarone's correction; null where no odds ratio is
        common to strata).
        `.pattern` is `simpson` where all strata have the other sign than the crude difference, `heterogeneous` where
        differences vary so that one number for all of them says little, else `alike`. `.ratio` and `.odds_ratio` are
        Mantel and Haenszel's ratio of rates (group over reference) and common odds ratio, each with limits; null where
        one side has no hits, or nothing else. Strata without one of the two groups do not count. It needs scipy.

    >>> from tidyfair import demographic_parity
    >>> rows = [(g, d, p) for g, d, hits, size in (
    ...     ("a", "x", 18, 20), ("b", "x", 72, 90), ("a", "y", 27, 90), ("b", "y", 4, 20)
    ... ) for p in [1] * hits + [0] * (size - hits)]
    >>> people = pl.DataFrame(rows, schema=["g", "dept", "hired"], orient="row")
    >>> result = stratified(demographic_parity("g"), within="dept")(people, estimate="hired")
    >>> result.select(".group", ".other", pl.col(".crude", ".adjusted").round(2), ".pattern").row(0)
    ('b', 'a', 0.28, -0.1, 'simpson')
    """
    columns = columns_of(within)
    if not columns:
        msg = "stratified() compares within strata: `within=` names their columns."
        raise ArgumentError(msg)
    return StratifiedTest(
        groupwise(metrics, "stratified"), columns, 1, 0, one_of("adjust", adjust, ADJUSTMENTS),
        cast("Any", one_of("family", family, FAMILIES)), conf_level=proper_share("conf_level", conf_level),
    )  # fmt: skip


@refuse_unknown_keywords
def worst_groups(
    *metrics: GroupwiseMetric | MetricSet, conf_level: float = 0.95, pooling: Pooling | None = None,
    times: int = 10_000, seed: int = 0,
) -> WorstGroups:  # fmt: skip
    """Estimate how probably each group is the worst: of equal groups some group looks it by chance.

    Args:
        metrics: Groupwise metrics of rates.
        conf_level: Simultaneous confidence level of the intervals of all groups.
        pooling: `"beta_binomial"` or `"additive"`, for rates that borrow strength from those of other groups, as
            `shrunken_rates` has them; None for groups on their own.
        times: Number of draws.
        seed: Seed of the draws.

    Returns:
        A callable that takes what a metric takes, and gives one row for each rate and group: `.estimate`, `.lower` and
        `.upper` (Wilson's, simultaneous), `.worst`, whether the `lowest` or the `highest` is the worst, and `.p_worst`,
        the probability that no other group is worse, given independent Jeffreys priors of the groups. With `pooling`
        the estimates, the limits (credible, simultaneous) and the probabilities are those of the model.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> worst_groups(demographic_parity("sex"))(people, estimate="hired").select(".group", ".estimate").rows()
    [('f', 1.0), ('m', 0.0)]
    """
    members = groupwise(metrics, "worst_groups")
    if pooling is not None:
        check_pooling("worst_groups", pooling, members)
    return WorstGroups(
        members, (), how_often(times), whole("seed", seed, 0), "none", "all",
        conf_level=proper_share("conf_level", conf_level), pooling=pooling,
    )  # fmt: skip

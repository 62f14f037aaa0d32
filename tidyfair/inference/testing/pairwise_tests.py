"""Tests of single groups: all pairs, and comparisons with a reference within strata."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, MetricSet, Run, metric_set
from tidyfair.errors import ArgumentError, Status
from tidyfair.evaluation import GROUP_CELL, Evaluated
from tidyfair.inference.contingency import Standard, Strata, chi_squared, fisher, likelihood_ratio
from tidyfair.inference.gates import GroupsCompared
from tidyfair.inference.on_data import accepting
from tidyfair.inference.rate_tests import (
    ADJUSTMENTS,
    REFUSED,
    REFUSED_OF_RATES,
    AdjustedTest,
    CountedRate,
    Family,
    RateTest,
    check_tested,
    columns_of,
    groupwise,
    numbered,
)
from tidyfair.inference.result_frames import Content, frame_of, schema_of
from tidyfair.intervals import (
    EQUALITY,
    SCALES,
    ComparedGroups,
    Scale,
    Shares,
    adjusted,
    check_positive,
    check_scale,
    compare_values,
    families,
    generator,
    in_progress,
    method_of,
    p_values,
    scale_of,
    share_of,
    z_value,
)
from tidyfair.specs import (
    CONTEXTS,
    CUTS,
    Array,
    ColumnLike,
    Contrast,
    JudgedCallOptions,
    Options,
    difference,
    key_columns,
    one_of,
    opened,
    refuse_unknown_keywords,
)
from tidyfair.specs.result_kinds import PAIRS, STRATA, ResultKind
from tidyfair.tallies import Tally

__all__ = ["PairwiseTest", "StratifiedTest", "pairwise", "stratified"]

_PAIRS = schema_of(PAIRS, without=".metric .by .limit .verdict") | schema_of(".adjustment")
_TESTS = {"chi_squared": chi_squared, "g": likelihood_ratio}
"""The tests of two groups by their counts, but Fisher's."""
_USUAL_LEVEL = 0.95
_MOST_PAIRS, _MOST_DRAWN = 5_000_000, 10_000_000_000
"""The most pairs, which take about half a minute, and draws of the distances of pairs, which take a minute or two."""
_BLOCK = 2**18
"""The pairs that are worked out at once."""
_MANY_GROUPS = 100
"""With more groups, all remaining pairs are assumed to be equal."""


@dataclass(frozen=True, eq=False)
class _Comparison:
    """A metric in the groups of an outer group, for one label, of which each pair is compared."""

    metric: GroupwiseMetric
    evaluated: Evaluated
    family: ComparedGroups
    scale: Scale

    @property
    def pairs(self) -> tuple[Array, Array]:
        """The indices of the groups of all pairs."""
        one, other = np.triu_indices(len(self.family.rows), 1)
        return one, other

    @property
    def counts_rows(self) -> bool:
        """True if values are shares of rows that count alike, and are independent."""
        quantities = self.family.estimates
        rows_count_alike = isinstance(quantities, Shares) and quantities.weighted is None
        return rows_count_alike and quantities.influences is None and quantities.sampling != "judged"

    def rows_of_values(self) -> Array:
        """The rows that values are of: of rates those that count."""
        formulas = dict(self.evaluated.specs[self.family.spec].formulas)
        is_rate = share_of(formulas[self.family.rows["name"][0]]) is not None
        column = "counted_rows" if is_rate else "n"
        return self.family.rows[column].to_numpy()

    def p_values(self, test: str, *, mid_p: bool) -> Array:
        """The p-values of all pairs, by their counts or by their intervals; nan where there is none."""
        one, other = self.pairs
        if test == "interval" or not self.counts_rows:
            quantities = self.family.estimates
            blocks = [p_values(quantities, one[part], other[part], self.scale) for part in _blocks(len(one))]
            return np.concatenate(blocks)
        from scipy.special import chdtrc

        return chdtrc(1, self.statistics(test)) if test in _TESTS else fisher(*self.counts, mid_p=mid_p)

    @property
    def counts(self) -> tuple[Array, Array, Array, Array]:
        """The hits and rows of both groups of all pairs."""
        (one, other), rows = self.pairs, self.rows_of_values()
        hits = np.round(self.family.estimates.value * rows).astype(np.int64)
        return hits[one], rows[one], hits[other], rows[other]

    def statistics(self, test: str) -> Array:
        """The chi-squared statistics of all pairs, of one degree of freedom; nan of tests that have none."""
        has_statistic = test in _TESTS and self.counts_rows
        return _TESTS[test](*self.counts) if has_statistic else np.full(len(self.pairs[0]), np.nan)

    def covariance(self) -> Array:
        """The covariances of the values of groups by chance, if all are equal; those of rates but for a factor."""
        quantities = self.family.estimates
        if self.counts_rows:
            return np.diag(1 / self.rows_of_values())
        scale = "ratio" if self.scale == "ratio" else "difference"
        error = np.nan_to_num(quantities.errors_of_limits(z_value(_USUAL_LEVEL), scale))
        covariance = np.diag(error**2)
        if quantities.influences is not None:
            one, other = self.pairs
            shared = quantities.correlation_of(one, other) * error[one] * error[other]
            covariance[one, other] = covariance[other, one] = np.nan_to_num(shared)
        return covariance

    def limits(self, z: float) -> tuple[Array, Array]:
        """The limits of all pairs, so many standard errors from their comparison; nan where these are."""
        one, other = self.pairs
        lower, upper = np.full((2, len(one)), np.nan)
        if not math.isnan(z):
            for part in _blocks(len(one)):
                limits = self.family.estimates.compared(one[part], other[part], z, self.scale)
                lower[part], upper[part] = limits
        return lower, upper


def _blocks(pairs: int) -> Iterator[slice]:
    """The pairs that are worked out at once, until all are."""
    for start in range(0, pairs, _BLOCK):
        yield slice(start, start + _BLOCK)


@dataclass(frozen=True, repr=False)
class PairwiseTest(AdjustedTest, GroupsCompared):
    """Tests each pair of groups; made by `pairwise`."""

    subject: ClassVar[str] = "pairwise()"
    adjustments: ClassVar[tuple[str, ...]] = (*ADJUSTMENTS, "max_t")
    follows: ClassVar[frozenset[str]] = frozenset({"points"})
    accepted: ClassVar[type[Any]] = accepting(" ".join([*JudgedCallOptions.__annotations__, "design"]))
    refused: ClassVar[Mapping[str, str]] = {name: why for name, why in REFUSED.items() if name != "on_undefined"}
    kind: ClassVar[ResultKind] = PAIRS
    test: str = "fisher"

    @property
    def _run(self) -> Run:
        """The run of the metrics whose groups are compared, whatever they make of all of them."""
        compared = [replace(metric, aggregate=difference()) for metric in self.metrics]
        return metric_set(*numbered(compared)).run

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The pairs of all metrics, with p-values adjusted for their number and limits that agree with these."""
        check_tested(tally)
        options = replace(options, interval="auto")
        evaluated = self._run.evaluate(tally, options)
        comparisons = self._comparisons(evaluated, options)
        found_p_values = [comparison.p_values(self.test, mid_p=self.mid_p) for comparison in comparisons]
        # the pairs that are adjusted together
        together: dict[object, list[int]] = {}
        for number, comparison in enumerate(comparisons):
            name, by = comparison.family.rows["name"][0], comparison.metric.by.text
            key = number if self.adjust == "max_t" else {"all": None, "metric": name, "by": by}[self.family]
            together.setdefault(key, []).append(number)
        nothing = evaluated[0].rows.clear()
        empty = pl.DataFrame(evaluated[0].key_columns(nothing)).drop(".estimator").hstack(pl.DataFrame(schema=_PAIRS))
        tables = [empty] * (1 + len(comparisons))
        for numbers in together.values():
            joint = np.concatenate([found_p_values[number] for number in numbers])
            family = [comparisons[number] for number in numbers]
            adjusted_values, z = self._adjusted_in_family(family, joint, options)
            ends = np.cumsum([len(found_p_values[number]) for number in numbers])
            for number, adjusted_of_pairs in zip(numbers, np.split(adjusted_values, ends[:-1]), strict=True):
                tested = found_p_values[number], adjusted_of_pairs
                tables[1 + number] = self._table(comparisons[number], *tested, z, options.conf_level)
        table = pl.concat(tables, how="vertical_relaxed")
        cuts = [name for name in CUTS if name in table.columns]
        return table.select(*key_columns(table), ".metric", ".by", *cuts, *_PAIRS)

    def _comparisons(self, evaluated: Sequence[Evaluated], options: Options) -> list[_Comparison]:
        """The metrics and outer groups, label by label and time by time, that have groups to be compared."""
        comparisons: list[list[_Comparison]] = [[] for _ in self.metrics]
        numbers = {spec.name: number for number, spec in enumerate(self._run.specs)}
        for part in evaluated:
            # metrics at several times are evaluated apart from the others
            numbers_of_specs = [numbers[spec.name] for spec in part.specs]
            for number in numbers_of_specs:
                metric = self.metrics[number]
                if metric.aggregate.reference is not None:
                    # each group is compared with all others, but a reference is still one of them
                    part.group_cells.find(metric.by, metric.aggregate.reference, metric.name)
            for family in families(part, options):
                number = numbers_of_specs[family.spec]
                if len(family.rows) > 1:
                    scale = cast("Scale", self.scales[number])
                    check_positive(family, scale)
                    comparison = _Comparison(self.metrics[number], part, family, scale)
                    comparisons[number].append(comparison)
        in_order = [comparison for comparisons_of_metric in comparisons for comparison in comparisons_of_metric]
        self._check_pairs(in_order, options)
        return in_order

    def _check_pairs(self, comparisons: Sequence[_Comparison], options: Options) -> None:
        """Refuse more pairs of groups than are compared in a few minutes."""
        most, way_out = _MOST_PAIRS, ""
        if self.adjust == "max_t":
            most, way_out = min(most, _MOST_DRAWN // options.replicates), ', take `adjust="holm"` or fewer `times`'
        pairs = sum(math.comb(len(comparison.family.rows), 2) for comparison in comparisons)
        if pairs <= most:
            return
        largest = max(comparisons, key=lambda comparison: len(comparison.family.rows))
        msg = (
            f"pairwise() has {pairs:,} pairs to compare, with up to {len(largest.family.rows):,} groups of "
            f"{largest.metric.by.text!r}; the limit is {most:,}. Pool rare groups with `lump_rare`, leave out small "
            f"ones with `min_n=`{way_out}, or compare each group with one reference, by `compare_groups`."
        )
        raise ArgumentError(msg)

    def _adjusted_in_family(
        self, comparisons: Sequence[_Comparison], p_values: Array, options: Options
    ) -> tuple[Array, float]:
        """The adjusted p-values of a family of pairs, and the standard errors from disparities to their limits.

        For all at once by Bonferroni's inequality, where p-values bound any false rejection; where they bound the share
        of false ones, for as large a share of those rejected (Benjamini and Yekutieli, 2005).
        """
        is_tested, error = ~np.isnan(p_values), 1 - options.conf_level
        tested, adjusted_values, share = p_values[is_tested], np.full(len(p_values), np.nan), error
        number = max(1, len(tested))
        if self.adjust == "max_t":
            if not len(tested):
                return adjusted_values, math.nan
            one, other = (groups[is_tested] for groups in comparisons[0].pairs)
            adjusted_values[is_tested], z = _adjusted_by_largest(
                comparisons[0].covariance(), (one, other), tested, options
            )
            return adjusted_values, z
        if self.adjust == "holm":
            # for as many pairs as can be equal (Shaffer, 1986)
            factors = _most_equal([len(comparison.family.rows) for comparison in comparisons], len(tested))
            rising = np.flatnonzero(is_tested)[np.argsort(tested)]
            adjusted_values[rising] = np.maximum.accumulate(p_values[rising] * factors).clip(0, 1)
            share = error / number
        else:
            adjusted_values[is_tested] = adjusted(tested, self.adjust)
        if self.adjust in {"bh", "by"}:
            share = error * max(1, int((adjusted_values < error).sum())) / number
        if self.adjust == "by":
            share /= float((1 / np.arange(1, number + 1)).sum())
        return adjusted_values, z_value(1 - share)

    def _table(
        self, comparison: _Comparison, p_values: Array, adjusted_values: Array, z: float, level: float
    ) -> pl.DataFrame:
        """The pairs of a comparison, with limits that exclude equality where the p-value rejects it, and only there.

        Of a disparity that is rejected, the side is known (Strassburger and Bretz, 2008). A limit that lies on the
        other side, because it is that of a test that rejects less, ends at equality, which it does not include.
        """
        rows, value, size = comparison.family.rows, comparison.family.estimates.value, comparison.rows_of_values()
        one, other = comparison.pairs
        disparity, equality = compare_values(value[one], value[other], comparison.scale), EQUALITY[comparison.scale]
        lower, upper = comparison.limits(z)
        is_rejected = adjusted_values < 1 - level
        lower_is_open = is_rejected & (disparity > equality) & (lower <= equality)
        upper_is_open = is_rejected & (disparity < equality) & (upper >= equality)
        lower = np.where(lower_is_open, equality, np.where(is_rejected, lower, np.minimum(lower, equality)))
        upper = np.where(upper_is_open, equality, np.where(is_rejected, upper, np.maximum(upper, equality)))
        method = method_of(comparison.family.estimates, comparison.scale)
        test = self.test if comparison.counts_rows else "interval"
        statistic = comparison.statistics(self.test)
        error = comparison.family.estimates.error_compared(one, other, comparison.scale)
        adjustment = {"max_t": "max_t over the pairs of each comparison", "holm": f"closed holm over {self.family}"}
        # all pairs have the same keys
        keys = pl.DataFrame(comparison.evaluated.key_columns(rows[:1])).with_columns(rows["name"][:1].alias(".metric"))
        columns: dict[str, Any] = {
            ".group": rows["text"][one], ".other": rows["text"][other],
            ".level": comparison.evaluated.level_text(rows["level"][:1].to_numpy()).item(),
            ".estimator": keys[".estimator"].item(),
            ".n": size[one], ".n_other": size[other], ".estimate": value[one], ".estimate_other": value[other],
            ".scale": comparison.scale, ".disparity": disparity, ".lower": lower, ".upper": upper,
            ".std_error": error, ".method": method, ".statistic": statistic,
            ".df": np.where(np.isnan(statistic), np.nan, 1),
            ".p_value": p_values, ".p_adjusted": adjusted_values, ".test": "mid_p" if self.mid_p else test,
            ".adjustment": adjustment.get(self.adjust, f"{self.adjust} over {self.family}"), ".status": str(Status.OK),
        }  # fmt: skip
        table = frame_of(columns, _PAIRS)
        is_undefined, is_open = pl.col(".disparity").is_null(), pl.Series(lower_is_open | upper_is_open)
        method_shown = pl.when(is_open).then(pl.lit(opened(method, equality))).otherwise(".method")
        table = table.with_columns(
            pl.when(pl.col(".lower").is_not_null()).then(method_shown).alias(".method"),
            pl.when(is_undefined).then(pl.lit(str(Status.ZERO_DENOMINATOR))).otherwise(".status").alias(".status"),
        )
        return pl.DataFrame([*(key.new_from_index(0, len(one)) for key in keys.drop(".estimator")), *table])


def _adjusted_by_largest(
    covariance: Array,
    pairs: tuple[Array, Array],
    p_values: Array,
    options: Options,
) -> tuple[Array, float]:
    """P-values adjusted step-down by the largest distance of any pair, and the distance none exceeds at a level.

    The distance of two equal groups in standard errors of their own is nearly normal, and its correlation with that of
    any other two equal groups follows from the errors of the groups alone, which for rates are those of their numbers
    of rows. So it is drawn without knowing which groups are equal and what their values are, which shuffling all groups
    together does not allow (Westfall and Young, 1993).
    """
    times = options.replicates
    drawn = generator(options.seed, "distances of pairs").standard_normal((times, len(covariance)))
    variance = np.diagonal(covariance)
    if (covariance == np.diag(variance)).all():
        drawn = drawn * np.sqrt(variance)
    else:
        values, vectors = np.linalg.eigh(covariance)
        drawn = drawn @ (vectors * np.sqrt(np.maximum(values, 0))).T
    # the draws of a group are beside each other in memory
    drawn = np.ascontiguousarray(drawn.T)
    normal, largest, adjusted_values = NormalDist(), np.zeros(times), np.empty(len(p_values))
    at_most = _most_equal([len(covariance)], len(p_values))[::-1]
    falling = np.argsort(-p_values, kind="stable")
    for pair, equal in in_progress(zip(falling, at_most, strict=True), "drawing pairs", len(falling)):
        p_value, one, other = float(p_values[pair]), pairs[0][pair], pairs[1][pair]
        error = math.sqrt(variance[one] + variance[other] - 2 * covariance[one, other])
        np.maximum(largest, np.abs(drawn[one] - drawn[other]) / error, out=largest)
        tail = p_value / 2  # zero for the smallest floats
        distance = -normal.inv_cdf(tail) if tail else math.inf
        reached = (1 + (largest >= distance).sum()) / (1 + times)
        # the probability for any pair is that of this one at least, and at most the sum of those that can be equal
        adjusted_values[pair] = min(max(reached, p_value), equal * p_value, 1)
    rising = falling[::-1]
    adjusted_values[rising] = np.maximum.accumulate(adjusted_values[rising])
    # Bonferroni's distance at most
    rank, most = math.ceil(options.conf_level * (times + 1)), z_value(1 - (1 - options.conf_level) / len(p_values))
    return adjusted_values, most if rank > times else min(float(np.sort(largest)[rank - 1]), most)


def _most_equal(groups: Sequence[int], tested: int) -> Array:
    """The most tested pairs that may be equal while none is known to differ, then while one is, two are and so on.

    Equality is transitive: if one of three pairs of three groups differs, only one of the others can be equal.
    """
    remaining = np.arange(tested, 0, -1)
    if max(groups, default=0) > _MANY_GROUPS:
        return remaining
    possible = 1
    for size in groups:
        shifts = _numbers_of_equal_pairs(size)
        before, possible = possible, 0
        for shift in range(shifts.bit_length()):
            possible |= before << shift if shifts >> shift & 1 else 0
    bits = np.frombuffer(possible.to_bytes(possible.bit_length() // 8 + 1, "little"), np.uint8)
    is_possible = np.unpackbits(bits, bitorder="little")[: possible.bit_length()]
    # a possible number of equal pairs, or else the next smaller one
    largest = np.maximum.accumulate(np.where(is_possible, np.arange(len(is_possible)), 0))
    return np.minimum(largest[:0:-1][:tested], remaining)


@lru_cache(maxsize=256)
def _numbers_of_equal_pairs(groups: int) -> int:
    """The numbers of pairs that can be equal, from 0 to all, as the bits of a number."""
    possible = 1 << groups * (groups - 1) // 2
    for size in range(1, groups):
        possible |= _numbers_of_equal_pairs(groups - size) << size * (size - 1) // 2
    return possible


def check_single(function: str, metric: GroupwiseMetric) -> None:
    """Refuse metrics that compare several values, and those that compare groups already."""
    if len(metric.metrics) > 1 or metric.less:
        msg = f"{metric.name} compares several rates; {function} needs a metric of one, such as equal_opportunity."
        raise ArgumentError(msg)
    for base in metric.metrics:
        if base.definition.compares:
            msg = (
                f"{base.name} compares each group with others already, so that {function} has no pairs to compare; its "
                "values are those of `by_group`."
            )
            raise ArgumentError(msg)


@dataclass(frozen=True, repr=False)
class StratifiedTest(RateTest):
    """Compares groups within strata; made by `stratified`."""

    subject: ClassVar[str] = "stratified()"
    kind: ClassVar[ResultKind] = STRATA
    refused: ClassVar[Mapping[str, str]] = REFUSED_OF_RATES | dict.fromkeys(("times", "seed"), ": it draws nothing")
    without: ClassVar[str] = (
        ".p_adjusted .marginal_effect .marginal_effect_within .marginal_effect_lower .marginal_effect_upper"
    )
    standard: Standard | None = None

    def _content(self, rate: CountedRate) -> Content:
        check_single(self.subject, rate.case.metric)
        texts, rows = rate.texts.to_list(), list[dict[str, Any]]()
        reference = _reference(rate) if texts else 0
        for group, text in enumerate(texts):
            if group != reference:
                names = {".metric": rate.name, ".by": rate.case.metric.by.text, ".group": text}
                rows.append(names | {".other": texts[reference]} | self._compared(rate, group, reference))
        return rows

    def _compared(self, count: CountedRate, group: int, reference: int) -> dict[str, Any]:
        """The crude difference of a group from the reference, and that within their common strata."""
        denominator, numerator, level = count.group_denominator, count.group_numerator, count.case.options.conf_level
        crude = float(numerator[group] / denominator[group] - numerator[reference] / denominator[reference])
        is_common = (count.denominator[:, [group, reference]] > 0).all(axis=1)
        row: dict[str, Any] = {
            ".strata": int(is_common.sum()), ".crude": crude,
            ".n": int(denominator[group]), ".n_other": int(denominator[reference]),
        }  # fmt: skip
        if not is_common.any():
            return row | {".pattern": "no common stratum"}
        hits, other_hits = count.numerator[is_common][:, [group, reference]].T.astype(float)
        rows, other_rows = count.denominator[is_common][:, [group, reference]].T.astype(float)
        strata = Strata(hits, rows, other_hits, other_rows, self.standard)
        row |= strata.columns(level)
        differences = strata.differences
        pattern = "alike"
        if ((differences > 0).all() and crude < 0) or ((differences < 0).all() and crude > 0):
            pattern = "simpson"
        elif row[".p_homogeneity"] < 1 - level:
            pattern = "heterogeneous"
        return row | {".pattern": pattern}


def _reference(count: CountedRate) -> int:
    """The index of the reference of the metric among the groups of a rate, or else of the largest group."""
    evaluated, metric = count.case.evaluated, count.case.metric
    is_reference = (pl.col("name") == count.name) & pl.col("is_reference")
    is_of_outer = pl.col("outer") == int(evaluated.group_cells.outer[count.group_cells[0]])
    references = set(evaluated.rows.filter(is_reference, is_of_outer)[GROUP_CELL])
    for index, group_cell in enumerate(count.group_cells.tolist()):
        if group_cell in references:
            return index
    aggregate = metric.aggregate
    if references:
        stated, text = metric.policy.stated, evaluated.group_cells.text[references.pop()]
        minima = " or ".join(f"`{name}={stated[name]}`" for name in ("min_n", "min_share") if name in stated)
        msg = (
            f"{metric.name}: the reference {text!r} is below {minima or 'one row'} of the rows "
            f"that {count.name} counts; take another reference, or leave smaller groups in."
        )
        raise ArgumentError(msg)
    if isinstance(aggregate, Contrast) and aggregate.to in CONTEXTS:
        msg = (
            f"{metric.name}: stratified() compares groups with one of them, not with `to={str(aggregate.to)!r}`; "
            "name a group, or leave `to` out for the largest one."
        )
        raise ArgumentError(msg)
    return int(count.group_denominator.argmax())


@refuse_unknown_keywords
def pairwise(
    *metrics: GroupwiseMetric | MetricSet,
    scale: Scale | None = None,
    test: Literal["fisher", "chi_squared", "g", "interval"] = "fisher",
    mid_p: bool = False,
    adjust: Literal["holm", "max_t", "bh", "by", "none"] = "holm",
    family: Family = "all",
) -> PairwiseTest:
    """Compare each pair of groups: the difference or the ratio of their values, its interval, and a test.

    Args:
        metrics: Groupwise metrics of one value each, such as `equal_opportunity` or `mae.difference("sex")`. Those
            that divide, such as `selection_rate.ratio("race")`, give ratios, and all others differences.
        scale: `"difference"`, `"ratio"` or, of rates, `"odds_ratio"`, in place of that of the metrics.
        test: Of two rates, by their counts: Fisher's, which is exact, Pearson's `"chi_squared"` without correction, or
            `"g"`, the ratio of likelihoods, which both take many rows. `"interval"` is the level at which the interval
            of the pair alone just holds equality; it is the test of everything else (means, areas, rates with weights
            or clusters, groups that share people), whatever is asked for.
        mid_p: Count tables that are as likely as the observed one half, in Fisher's test. It finds more and is nearly
            exact: a test of 5% rejects 4.2% of pairs of equal groups of 50 rows, averaged over rates (the exact one
            2.6%), and 5.7% at most; of 8 and 200 rows 6.3% at most.
        adjust: The adjustment of p-values: `"holm"`, for as many pairs as can still be equal (Shaffer, 1986), `"bh"`,
            `"by"`, `"none"`, or `"max_t"`, step-down by the largest distance of any pair of a comparison in standard
            errors of the pair (Westfall and Young, 1993). It is never above Holm's within a comparison, and it, too,
            holds for the pairs that are equal where others are not.
        family: The pairs that are adjusted together: `"all"`, those of one `"metric"`, or of one `"by"`.

    Returns:
        A callable that takes what a metric takes: `conf_level=`, the level of the intervals, together as the p-values
        are adjusted, and 1 less the p-value below which groups are told apart; `times=` and `seed=` of the draws for
        `"max_t"`, and of replicates for values whose interval has no closed form. It gives one row for each pair,
        label, evaluation time or quantile level, and outer group: `.group`, `.other`, the rows of both (`.n`,
        `.n_other`: of rates those that count), both values, `.scale` (`difference`, group minus other, `ratio`, group
        over other, or `odds_ratio`), `.disparity` with `.lower`, `.upper`, `.std_error` (null where limits do not rest
        on one) and `.method`, `.statistic` and `.df` of the tests that have them, `.p_value`, `.p_adjusted`, `.test`,
        `.adjustment` and `.status`. Limits are those of `compare_groups` (Newcombe's for differences of rates,
        Miettinen and Nurminen's for ratios), at a level at which they hold for all pairs together, without steps: by
        Bonferroni's inequality for `"holm"`, by the quantile of the largest distance for `"max_t"`; with `"bh"` and
        `"by"` so that of the pairs that are told apart the share outside of their limits is expected to be small
        (Benjamini and Yekutieli, 2005); with `"none"` each alone. They agree with `.p_adjusted`: where it is below 1 -
        `conf_level` they exclude equality, and else they include it. A pair may be told apart though its limits by
        themselves would include equality: they then end at equality, which is excluded, and `.method` says `open at 0`
        (of ratios `open at 1`).

    Raises:
        ArgumentError: For metrics of several values, those that compare groups already, ratios of values below 0, odds
            ratios of what is no rate, and more than 5,000,000 pairs.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> result = pairwise(demographic_parity("sex"))(people, estimate="hired")
    >>> result.select(".group", ".other", ".disparity", pl.col(".p_value").round(6)).row(0)
    ('f', 'm', 1.0, 0.1)
    """
    if mid_p is True and test != "fisher":
        msg = f'pairwise(): `mid_p` is for `test="fisher"`, whose p-values have ties, not for {test!r}.'
        raise ArgumentError(msg)
    members = groupwise(metrics, "pairwise")
    scales: list[Scale] = []
    for metric in members:
        check_single("pairwise()", metric)
        scale_of_metric = scale_of(metric.aggregate) if scale is None else cast("Scale", one_of("scale", scale, SCALES))
        base = metric.metrics[0]
        check_scale(base.name, base.definition, base.range, scale_of_metric)
        scales.append(scale_of_metric)
    one_of("test", test, ("fisher", *_TESTS, "interval"))
    return PairwiseTest(members, tuple(scales), adjust=adjust, family=family, mid_p=mid_p, test=test)


@refuse_unknown_keywords
def stratified(
    *metrics: GroupwiseMetric | MetricSet,
    within: ColumnLike | Iterable[ColumnLike],
    standard: Standard | None = None,
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
) -> StratifiedTest:
    """Compare groups within strata: the difference that remains between like and like.

    Each group is compared with the reference of the metric, `difference(to="a group")`, or else with the largest one.

    Args:
        metrics: Groupwise metrics of one rate each.
        within: The columns whose groups are the strata.
        standard: Whose strata both rates are standardized to: those of the `"reference"`, as if the group had them; of
            the `"group"`; or of `"both"`. By default Mantel and Haenszel's weights, by which differences are most
            precise.
        adjust: The adjustment of p-values, as for `pairwise`.
        family: The comparisons that are adjusted together.

    Returns:
        A callable that takes what a metric takes (`conf_level=` is the level of the intervals, and of the test of
        homogeneity), and gives one row for each group and outer group: the `.crude`
        difference, the rates of both standardized to the same strata (`.estimate`, `.estimate_other`), the `.adjusted`
        difference of these (by default Mantel and Haenszel's) with `.lower` and `.upper` (Miettinen and Nurminen's, by
        the same weights) and `.std_error` (by default Sato's; null where all rates are 0 or 1, of which it knows
        nothing), `.p_value` (by default Cochran, Mantel and Haenszel's), `.p_homogeneity` of the differences (Cochran's
        Q), and `.p_equal_odds`, of the odds ratios (Breslow and Day's, with Tarone's correction; null where no odds
        ratio is common to strata), each with the `.statistic…` and its degrees of freedom `.df…`.
        `.pattern` is `simpson` where all strata have the other sign than the crude difference, `heterogeneous` where
        differences vary so that one number for all of them says little, else `alike`. `.ratio` is that of both rates
        (group over reference) and `.odds_ratio` Mantel and Haenszel's common odds ratio, each with limits; null where
        one side has no hits, or nothing else. Strata without one of the two groups do not count.

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
    if standard is not None:
        one_of("standard", standard, get_args(Standard))
    return StratifiedTest(groupwise(metrics, "stratified"), columns, adjust, family, standard=standard)

"""Tests of single groups: all pairs, comparisons with a reference within strata, and the worst group."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, Status
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.inference.all_pairs import Distances, groups_of, harmonic, most_equal
from tidyfair.inference.comparison_gates import GroupsCompared
from tidyfair.inference.contingency import chi_squared, equal_odds, fisher, likelihood_ratio
from tidyfair.inference.pooling import check_pooling, pooled
from tidyfair.inference.rate_tests import (
    ADJUSTMENTS,
    FAMILIES,
    REFUSED,
    AdjustedTest,
    CountedRate,
    OuterGroup,
    OuterGroupTest,
    RateCounts,
    check_tested,
    columns_of,
    groupwise,
    numbered,
)
from tidyfair.intervals.estimates import Shares
from tidyfair.intervals.limits import families
from tidyfair.intervals.pairs import (
    EQUALITY,
    SCALES,
    check_positive,
    check_scale,
    compare_values,
    method_of,
    p_values,
    pair_limits,
    scale_of,
)
from tidyfair.intervals.proportions import (
    cochran_mantel_haenszel,
    homogeneity,
    mantel_haenszel,
    mantel_haenszel_limits,
    mantel_haenszel_odds_ratio,
    mantel_haenszel_ratio,
    z_value,
)
from tidyfair.intervals.resampling import generator
from tidyfair.intervals.shares import share_of
from tidyfair.metric_sets import metric_set
from tidyfair.specs.aggregates import CONTEXTS
from tidyfair.specs.arguments import flag, how_often, one_of, proper_share, whole
from tidyfair.specs.contrasts import Contrast, difference
from tidyfair.specs.options import CallOptions, ReadOptions, refuse_unknown_keywords, show_keywords
from tidyfair.specs.result_columns import CUTS, key_columns, opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Self, TypeAlias, Unpack

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.inference.pooling import Pooling
    from tidyfair.inference.rate_tests import Family as Adjusted
    from tidyfair.intervals.pairs import ComparedGroups, Scale
    from tidyfair.metric_sets import GroupwiseMetric, MetricSet
    from tidyfair.runner import Run
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.forecasts import Prediction, TruthLike
    from tidyfair.specs.options import Options
    from tidyfair.tallies.tally import Tally

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["PairwiseTest", "StratifiedTest", "WorstGroups", "pairwise", "stratified", "worst_groups"]

_COMPARISON = "\0comparison"
"""The number of the comparison that a pair is of."""
_DEVIATIONS = "\0deviations"
"""The standard errors that limits are from their comparison."""
_PAIRS = {
    ".group": pl.String, ".other": pl.String, ".level": pl.String, ".estimator": pl.String, ".n": pl.Int64,
    ".n_other": pl.Int64, ".estimate": pl.Float64, ".estimate_other": pl.Float64, ".scale": pl.String,
    ".disparity": pl.Float64, ".lower": pl.Float64, ".upper": pl.Float64, ".method": pl.String,
    ".p_value": pl.Float64, ".p_adjusted": pl.Float64, ".test": pl.String, ".status": pl.String,
    _COMPARISON: pl.Int64, _DEVIATIONS: pl.Float64,
}  # fmt: skip
_TESTS = {"chi_squared": chi_squared, "g": likelihood_ratio}
"""The tests of two groups by their counts, but Fisher's."""
_USUAL_LEVEL = 0.95
_MOST_PAIRS, _MOST_DRAWN = 5_000_000, 10_000_000_000
"""The most pairs, which take about ten seconds, and draws of the distances of pairs, which take a minute or two."""
_BLOCK = 2**18
"""The pairs that are worked out at once."""
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
        return isinstance(quantities, Shares) and quantities.weighted is None

    def rows_of_values(self) -> Array:
        """The rows that values are of: of rates those that count."""
        formulas = dict(self.evaluated.specs[self.family.spec].formulas)
        is_rate = share_of(formulas[self.family.rows["name"][0]]) is not None
        column = "counted_rows" if is_rate else "n"
        return self.family.rows[column].to_numpy()

    def p_values(self, test: str, *, mid_p: bool) -> Array:
        """The p-values of all pairs, by their counts or by their intervals; nan where there is none."""
        one, other = self.pairs
        if test == "interval":
            blocks = [slice(start, start + _BLOCK) for start in range(0, len(one), _BLOCK)]
            quantities = self.family.estimates
            return np.concatenate([p_values(quantities, one[part], other[part], self.scale) for part in blocks])
        rows = self.rows_of_values()
        hits = np.round(self.family.estimates.value * rows).astype(np.int64)
        of_counts = _TESTS.get(test) or partial(fisher, mid_p=mid_p)
        return of_counts(hits[one], rows[one], hits[other], rows[other])

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

    def limits(self, one: Array, other: Array, z: float) -> tuple[Array, Array]:
        """The limits of some pairs, so many standard errors from their comparison."""
        return pair_limits(self.family.estimates, one, other, z, self.scale)

    def table(self, number: int, test: str, *, mid_p: bool) -> pl.DataFrame:
        """The pairs, with their p-values; limits depend on how these are adjusted."""
        rows, value, size = self.family.rows, self.family.estimates.value, self.rows_of_values()
        if not self.counts_rows:
            test = "interval"
        one, other = self.pairs
        disparity = compare_values(value[one], value[other], self.scale)
        # all pairs have the same keys
        keys = pl.DataFrame(self.evaluated.key_columns(rows[:1])).with_columns(rows["name"][:1].alias(".metric"))
        columns: dict[str, Any] = {
            ".group": rows["text"][one], ".other": rows["text"][other],
            ".level": self.evaluated.level_text(rows[:1]).item(), ".estimator": keys[".estimator"].item(),
            ".n": size[one], ".n_other": size[other], ".estimate": value[one], ".estimate_other": value[other],
            ".scale": self.scale, ".disparity": disparity, ".lower": None, ".upper": None,
            ".method": method_of(self.family.estimates, self.scale),
            ".p_value": self.p_values(test, mid_p=mid_p), ".p_adjusted": None, ".test": "mid_p" if mid_p else test,
            ".status": str(Status.OK), _COMPARISON: number, _DEVIATIONS: None,
        }  # fmt: skip
        table = pl.DataFrame(columns, schema=_PAIRS, nan_to_null=True)
        is_undefined = pl.col(".disparity").is_null()
        status = pl.when(is_undefined).then(pl.lit(str(Status.ZERO_DENOMINATOR))).otherwise(".status")
        of_pairs = [key.new_from_index(0, len(one)) for key in keys.drop(".estimator")]
        return pl.DataFrame([*of_pairs, *table.with_columns(status.alias(".status"))])


@dataclass(frozen=True, repr=False)
class PairwiseTest(AdjustedTest, GroupsCompared):
    """Tests each pair of groups; made by `pairwise`."""

    subject: ClassVar[str] = "pairwise()"
    follows_points: ClassVar[bool] = True
    findings: ClassVar[tuple[str, ...]] = (".disparity", ".lower", ".upper", ".p_adjusted")
    refused: ClassVar[Mapping[str, str]] = REFUSED
    test: str = "fisher"
    scales: tuple[Scale, ...] = ()
    """The scale of each metric."""

    @property
    def scales_of_metrics(self) -> tuple[str, ...]:
        """The scale on which each metric is compared."""
        return self.scales

    def at_level(self, level: float) -> Self:
        """The same comparison at another confidence level, without adjustment."""
        return replace(self, conf_level=level, adjust="none")

    @show_keywords(CallOptions, without=REFUSED)
    def __call__(
        self, data: object, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Compare each pair of groups of a dataframe; it takes what a metric takes, with one threshold at most.

        At several evaluation times or levels of quantiles, pairs are compared at each of them.
        """
        return self._on_data(data, truth, estimate, options)

    @show_keywords(ReadOptions, without=REFUSED)
    def compute(self, tally: Tally, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Compare each pair of groups of a tally that holds what the metrics count: what a call gives on data."""
        return self._on_tally(tally, options)

    @property
    def _run(self) -> Run:
        """The run of the metrics whose groups are compared, whatever they make of all of them."""
        compared = [replace(metric, aggregate=difference()) for metric in self.metrics]
        return metric_set(*numbered(compared)).run

    def _counting_options(self, options: Options) -> Options:
        # intervals need to see how much sums vary from part to part
        return options.in_parts(self.seed) if options.cluster is None else options

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The pairs of all metrics, with p-values adjusted for their number and limits that agree with these."""
        check_tested(tally)
        options = replace(
            options, interval="auto", conf_level=self.conf_level, times=self.times, seed=self.seed
        )  # fmt: skip
        evaluated = self._run.evaluate(tally, options)
        comparisons = self._comparisons(evaluated, options)
        nothing = evaluated[0].rows.clear()
        empty = pl.DataFrame(evaluated[0].key_columns(nothing)).drop(".estimator").hstack(pl.DataFrame(schema=_PAIRS))
        tables = [
            comparison.table(number, self.test, mid_p=self.mid_p) for number, comparison in enumerate(comparisons)
        ]
        table = pl.concat([empty, *tables], how="vertical_relaxed")
        return self._with_limits(self._adjusted_for(table, comparisons), comparisons)

    def _comparisons(self, evaluated: Sequence[Evaluated], options: Options) -> list[_Comparison]:
        """The metrics and outer groups, label by label and time by time, that have groups to be compared."""
        comparisons: list[list[_Comparison]] = [[] for _ in self.metrics]
        numbers = {spec.name: number for number, spec in enumerate(self._run.specs)}
        for part in evaluated:
            # metrics at several times are evaluated apart from the others
            of_specs = [numbers[spec.name] for spec in part.specs]
            for number in of_specs:
                _check_reference(part, self.metrics[number])
            for family in families(part, options):
                number = of_specs[family.spec]
                if len(family.rows) > 1:
                    check_positive(family, self.scales[number])
                    comparison = _Comparison(self.metrics[number], part, family, self.scales[number])
                    comparisons[number].append(comparison)
        in_order = [comparison for of_metric in comparisons for comparison in of_metric]
        self._check_pairs(in_order)
        return in_order

    def _check_pairs(self, comparisons: Sequence[_Comparison]) -> None:
        """Refuse more pairs of groups than are compared in a few minutes."""
        most, way_out = _MOST_PAIRS, ""
        if self.adjust == "max_t":
            most, way_out = min(most, _MOST_DRAWN // self.times), ', take `adjust="holm"` or fewer `times`'
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

    def _adjusted_for(self, table: pl.DataFrame, comparisons: Sequence[_Comparison]) -> pl.DataFrame:
        """The table with adjusted p-values, and the standard errors that limits are from their comparison."""
        if self.adjust == "max_t":
            return self._by_largest_distance(table, comparisons)
        families = self._families(table).cast(pl.Int64).to_numpy()
        table = self._closed(table, families) if self.adjust == "holm" else self._adjusted(table.drop(".p_adjusted"))
        return table.with_columns(pl.Series(_DEVIATIONS, self._deviations(table, families)))

    def _by_largest_distance(self, table: pl.DataFrame, comparisons: Sequence[_Comparison]) -> pl.DataFrame:
        """The table with p-values adjusted within each comparison."""
        p_values = table[".p_value"].to_numpy()
        adjusted, deviations = np.full((2, len(table)), np.nan)
        for comparison, pairs in self._pairs_of(comparisons):
            is_tested = ~np.isnan(p_values[pairs])
            if not is_tested.any():
                continue
            own = np.flatnonzero(is_tested) + pairs.start
            random = generator(self.seed, "distances of pairs")
            one, other = comparison.pairs
            distances = Distances(comparison.covariance(), (one[is_tested], other[is_tested]), self.times, random)
            adjusted[own], largest = distances.adjusted(p_values[own])
            deviations[own] = distances.quantile(largest, self.conf_level)
        columns = (pl.Series(".p_adjusted", adjusted, nan_to_null=True), pl.Series(_DEVIATIONS, deviations))
        words = pl.lit("max_t over the pairs of each comparison").alias(".adjustment")
        return table.with_columns(*columns, words)

    def _deviations(self, table: pl.DataFrame, families: Array) -> Array:
        """The standard errors to both sides of a disparity that hold it at the level of a family of disparities.

        For all at once by Bonferroni's inequality, where p-values bound any false rejection; where they bound the share
        of false ones, for as large a share of those rejected (Benjamini and Yekutieli, 2005).
        """
        error = 1 - self.conf_level
        count = int(families.max(initial=-1)) + 1
        is_rejected = table[".p_adjusted"].to_numpy() < error
        tested = np.bincount(families[table[".p_value"].is_not_null().to_numpy()], minlength=count).clip(1)
        rejected = np.bincount(families[is_rejected], minlength=count).clip(1)
        if self.adjust == "none":
            share = np.full(count, error)
        elif self.adjust == "holm":
            share = error / tested
        else:
            share = error * rejected / tested
        if self.adjust == "by":
            share /= [harmonic(pairs) for pairs in tested.tolist()]
        return np.array([z_value(1 - one) for one in share.tolist()])[families]

    def _with_limits(self, table: pl.DataFrame, comparisons: Sequence[_Comparison]) -> pl.DataFrame:
        """The table with limits that exclude equality where the adjusted p-value rejects it, and only there.

        Of a disparity that is rejected, the side is known (Strassburger and Bretz, 2008). A limit that lies on the
        other side, because it is that of a test that rejects less, ends at equality, which it does not include.
        """
        deviations = table[_DEVIATIONS].to_numpy()
        lower, upper, equality = np.full((3, len(table)), np.nan)
        for comparison, pairs in self._pairs_of(comparisons):
            equality[pairs] = EQUALITY[comparison.scale]
            one, other = comparison.pairs
            # all pairs of a comparison that are tested are in the same family
            is_tested = ~np.isnan(deviations[pairs])
            if is_tested.any():
                z = float(deviations[pairs][is_tested][0])
                for start in range(0, len(one), _BLOCK):
                    block = slice(pairs.start + start, min(pairs.start + start + _BLOCK, pairs.stop))
                    part = slice(start, start + _BLOCK)
                    lower[block], upper[block] = comparison.limits(one[part], other[part], z)
        disparity = table[".disparity"].to_numpy()
        is_rejected = table[".p_adjusted"].to_numpy() < 1 - self.conf_level
        lower_is_open = is_rejected & (disparity > equality) & (lower <= equality)
        upper_is_open = is_rejected & (disparity < equality) & (upper >= equality)
        lower = np.where(lower_is_open, equality, np.where(is_rejected, lower, np.minimum(lower, equality)))
        upper = np.where(upper_is_open, equality, np.where(is_rejected, upper, np.maximum(upper, equality)))
        limits = (pl.Series(".lower", lower, nan_to_null=True), pl.Series(".upper", upper, nan_to_null=True))
        table = table.with_columns(limits)
        open_at = {scale: opened("", end) for scale, end in EQUALITY.items()}
        is_open = pl.lit(pl.Series(lower_is_open | upper_is_open))
        method = pl.col(".method") + pl.when(is_open).then(pl.col(".scale").replace(open_at)).otherwise(pl.lit(""))
        table = table.with_columns(pl.when(pl.col(".lower").is_not_null()).then(method).alias(".method"))
        shown = [name for name in _PAIRS if not name.startswith("\0")]
        shown.insert(shown.index(".test") + 1, ".adjustment")
        cuts = [name for name in CUTS if name in table.columns]
        return table.select(*key_columns(table), ".metric", ".by", *cuts, *shown)

    def _closed(self, table: pl.DataFrame, families: Array) -> pl.DataFrame:
        """The table with p-values adjusted by Holm, for as many pairs as can be equal (Shaffer, 1986)."""
        p_values, number = table[".p_value"].to_numpy(), table[_COMPARISON].to_numpy()
        closed = np.full(len(table), np.nan)
        for family in np.unique(families).tolist():
            index = np.flatnonzero(families == family)
            pairs = np.bincount(number[index])
            tested = index[~np.isnan(p_values[index])]
            rising = tested[np.argsort(p_values[tested])]
            factors = most_equal([groups_of(count) for count in pairs[pairs > 0].tolist()], len(tested))
            closed[rising] = np.maximum.accumulate(p_values[rising] * factors).clip(0, 1)
        return table.with_columns(
            pl.Series(".p_adjusted", closed, nan_to_null=True),
            pl.lit(f"closed holm over {self.family}").alias(".adjustment"),
        )

    @staticmethod
    def _pairs_of(comparisons: Sequence[_Comparison]) -> Iterator[tuple[_Comparison, slice]]:
        """The comparisons, and where their pairs are in the table of all of them."""
        start = 0
        for comparison in comparisons:
            stop = start + math.comb(len(comparison.family.rows), 2)
            yield comparison, slice(start, stop)
            start = stop


def _check_reference(evaluated: Evaluated, metric: GroupwiseMetric) -> None:
    """Refuse a reference that is no group, though each group is compared with all others."""
    reference = metric.aggregate.reference
    if reference is not None:
        evaluated.group_cells.find(metric.by, reference, metric.name)


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


class StratifiedTest(OuterGroupTest):
    """Compares groups within strata; made by `stratified`."""

    subject: ClassVar[str] = "stratified()"
    findings: ClassVar[tuple[str, ...]] = (".adjusted", ".lower", ".upper", ".p_adjusted")

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        check_single(self.subject, part.metric)
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
        stated = metric.policy.stated
        given = " or ".join(f"`{name}={stated[name]}`" for name in ("min_n", "min_share") if name in stated)
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
    findings: ClassVar[tuple[str, ...]] = (".lower", ".upper", ".worst", ".p_worst")
    pooling: Pooling | None = "beta_binomial"
    """The model of the rates of all groups, if there is one."""

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
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
    scale: Scale | None = None,
    test: Literal["fisher", "chi_squared", "g", "interval"] = "fisher",
    mid_p: bool = False,
    adjust: Literal["holm", "max_t", "bh", "by", "none"] = "holm",
    family: Adjusted = "all",
    conf_level: float = 0.95,
    times: int = 10_000,
    seed: int = 0,
) -> PairwiseTest:
    """Compare each pair of groups: the difference or the ratio of their values, its interval, and a test.

    Args:
        metrics: Groupwise metrics of one value each, such as `equal_opportunity` or `mae.difference("sex")`. Those
            that divide, such as `selection_rate.ratio("race")`, give ratios, and all others differences.
        scale: `"difference"`, `"ratio"` or, of rates, `"odds_ratio"`, in place of that of the metrics.
        test: Of two rates, by their counts: Fisher's, which is exact, Pearson's `"chi_squared"` without correction, or
            `"g"`, the ratio of likelihoods, which both take many rows. `"interval"` is the level at which the interval
            of the pair alone just holds equality; it is the test of everything else (means, areas, rates with weights
            or clusters), whatever is asked for.
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
        times: Number of draws for `"max_t"`, and of replicates for values whose interval has no closed form.
        seed: Seed of the draws.

    Returns:
        A callable that takes what a metric takes, and gives one row for each pair, label, evaluation time or quantile
        level, and outer group: `.group`, `.other`, the rows of both (`.n`, `.n_other`: of rates those that count), both
        values, `.scale` (`difference`, group less other, `ratio`, group over other, or `odds_ratio`), `.disparity` with
        `.lower`, `.upper` and `.method`, `.p_value`, `.p_adjusted`, `.test`, `.adjustment` and `.status`. Limits are
        those of `compare_groups` (Newcombe's for differences of rates, Miettinen and Nurminen's for ratios), at a level
        at which they hold for
        all pairs together, without steps: by Bonferroni's inequality for `"holm"`, by the quantile of the largest
        distance for `"max_t"`; with `"bh"` and `"by"` so that of the pairs that are told apart the share outside of
        their limits is expected to be small (Benjamini and Yekutieli, 2005); with `"none"` each alone. They agree with
        `.p_adjusted`: where it is below 1 - `conf_level` they exclude equality, and else they include it. A pair may be
        told apart though its limits by themselves would include equality: they then end at equality, which is excluded,
        and `.method` says `open at 0` (of ratios `open at 1`).

    Raises:
        ArgumentError: For metrics of several values, those that compare groups already, ratios of values below 0, odds
            ratios of what is no rate, and more than 5,000,000 pairs.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> result = pairwise(demographic_parity("sex"))(people, estimate="hired")
    >>> result.select(".group", ".other", ".disparity", pl.col(".p_value").round(6)).row(0)
    ('f', 'm', 1.0, 0.1)
    """
    if flag("mid_p", mid_p) and test != "fisher":
        msg = f'pairwise(): `mid_p` is for `test="fisher"`, whose p-values have ties, not for {test!r}.'
        raise ArgumentError(msg)
    members = groupwise(metrics, "pairwise")
    scales: list[Scale] = []
    for metric in members:
        check_single("pairwise()", metric)
        own = scale_of(metric.aggregate) if scale is None else cast("Scale", one_of("scale", scale, SCALES))
        base = metric.metrics[0]
        check_scale(base.name, base.definition, base.range, own)
        scales.append(own)
    return PairwiseTest(
        members, (), how_often(times), whole("seed", seed, 0),
        one_of("adjust", adjust, (*ADJUSTMENTS, "max_t")), cast("Any", one_of("family", family, FAMILIES)),
        mid_p=mid_p, conf_level=proper_share("conf_level", conf_level),
        test=one_of("test", test, ("fisher", *_TESTS, "interval")),
        scales=tuple(scales),
    )  # fmt: skip


@refuse_unknown_keywords
def stratified(
    *metrics: GroupwiseMetric | MetricSet,
    within: ColumnLike | Iterable[ColumnLike],
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Adjusted = "all",
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
    return StratifiedTest(
        groupwise(metrics, "stratified"), columns, 1, 0, one_of("adjust", adjust, ADJUSTMENTS),
        cast("Any", one_of("family", family, FAMILIES)), conf_level=proper_share("conf_level", conf_level),
    )  # fmt: skip


@refuse_unknown_keywords
def worst_groups(
    *metrics: GroupwiseMetric | MetricSet, conf_level: float = 0.95, pooling: Pooling | None = "beta_binomial",
    times: int = 10_000, seed: int = 0,
) -> WorstGroups:  # fmt: skip
    """Estimate how probably each group is the worst: of equal groups some group looks it by chance.

    Small groups look the worst most often, so that rates borrow strength from those of other groups (partial pooling).

    Args:
        metrics: Groupwise metrics of rates.
        conf_level: Simultaneous level of the intervals of all groups.
        pooling: The model of the rates of all groups, as of `shrunken_rates`: `"beta_binomial"` or, for groups of
            several features, `"additive"`; None for groups on their own, with independent Jeffreys priors, by which the
            group with the worst observed rate is too sure of being the worst where groups are small.
        times: Number of draws.
        seed: Seed of the draws.

    Returns:
        A callable that takes what a metric takes, and gives one row for each rate and group: the `.estimate`, `.lower`
        and `.upper` (credible, of all groups at once), `.worst`, whether the `lowest` or the `highest` is the worst,
        `.p_worst`, the probability that no other group is worse, and `.n` rows. Without pooling, estimates are the
        observed rates, and limits Wilson's, of all groups at once.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> alone = worst_groups(demographic_parity("sex"), pooling=None)
    >>> alone(people, estimate="hired").select(".group", ".estimate").rows()
    [('f', 1.0), ('m', 0.0)]
    """
    members = groupwise(metrics, "worst_groups")
    if pooling is not None:
        check_pooling("worst_groups", pooling, members)
    return WorstGroups(
        members, (), how_often(times), whole("seed", seed, 0), "none", "all",
        conf_level=proper_share("conf_level", conf_level), pooling=pooling,
    )  # fmt: skip

"""Groups one by one: every two of them, each with a reference within strata, and which one is the worst."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.inference.rate_tests import (
    ADJUSTMENTS,
    FAMILIES,
    Family,
    OuterGroup,
    OuterGroupTest,
    columns_of,
    groupwise,
)
from tidyfair.intervals.analytic import Quantities
from tidyfair.intervals.proportions import (
    chi_squared,
    cochran_mantel_haenszel,
    difference_limits,
    fisher,
    homogeneity,
    likelihood_ratio,
    mantel_haenszel,
    z_value,
)
from tidyfair.specs.arguments import how_often, one_of, proper_share, whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    import numpy as np

    from tidyfair.metric_sets import GroupwiseMetric, MetricSet
    from tidyfair.specs.columns import ColumnLike

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["PairwiseTest", "StratifiedTest", "WorstGroups", "pairwise", "stratified", "worst_groups"]

_PAIRS = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".other": pl.String, ".estimate": pl.Float64,
    ".estimate_other": pl.Float64, ".difference": pl.Float64, ".lower": pl.Float64, ".upper": pl.Float64,
    ".method": pl.String, ".p_value": pl.Float64, ".p_adjusted": pl.Float64, ".n": pl.Int64, ".n_other": pl.Int64,
}  # fmt: skip
_TESTS = {"fisher": fisher, "chi_squared": chi_squared, "g": likelihood_ratio}
_STRATIFIED = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".other": pl.String, ".strata": pl.Int64,
    ".crude": pl.Float64, ".adjusted": pl.Float64, ".lower": pl.Float64, ".upper": pl.Float64, ".std_error": pl.Float64,
    ".p_value": pl.Float64, ".p_adjusted": pl.Float64, ".p_homogeneity": pl.Float64, ".pattern": pl.String,
    ".n": pl.Int64, ".n_other": pl.Int64,
}  # fmt: skip
_WORST = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".estimate": pl.Float64, ".lower": pl.Float64,
    ".upper": pl.Float64, ".worst": pl.String, ".p_worst": pl.Float64, ".n": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True)
class PairwiseTest(OuterGroupTest):
    """Tests each pair of groups; made by `pairwise`."""

    subject: ClassVar[str] = "pairwise()"
    test: str = "fisher"

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        import numpy as np

        metric = part.metric
        if len(metric.metrics) > 1 or metric.less:
            msg = f"{metric.name} compares several rates; take pairs of one, such as equal_opportunity."
            raise ArgumentError(msg)
        schema = {name: dtype for name, dtype in _PAIRS.items() if name != ".p_adjusted" or self.adjust == "max_t"}
        tables = [pl.DataFrame(schema=schema)]
        for count in part.counts:
            if len(count.group_cells) < 2:
                continue
            size, hits, names = (
                count.of_groups.denominator,
                count.of_groups.numerator,
                part.texts.gather(count.group_cells),
            )
            shares = Quantities.of_counts(hits, size)
            low, high = shares.limits(z_value(self.conf_level))
            one, other = np.triu_indices(len(size), 1)
            value = shares.value
            ends = difference_limits(value[one], (low[one], high[one]), value[other], (low[other], high[other]))
            tested = [
                _TESTS[self.test](int(hits[first]), int(size[first]), int(hits[second]), int(size[second]))
                for first, second in zip(one, other, strict=True)
            ]
            table = {
                ".metric": [count.name] * len(one), ".by": [metric.by.text] * len(one), ".group": names.gather(one),
                ".other": names.gather(other), ".estimate": value[one], ".estimate_other": value[other],
                ".difference": value[one] - value[other], ".lower": ends[0], ".upper": ends[1],
                ".method": [self.test] * len(one), ".p_value": tested,
                ".n": size[one], ".n_other": size[other],
            }  # fmt: skip
            if self.adjust == "max_t":
                table[".p_adjusted"] = _by_largest(np.array(tested), size, (one, other), self.times, part.random)
            tables.append(pl.DataFrame({name: table[name] for name in schema}, schema=schema))
        return pl.concat(tables)

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        if self.adjust != "max_t":
            return super()._adjusted(table)
        return table.with_columns(pl.lit("max_t over the pairs of each comparison").alias(".adjustment"))


def _by_largest(
    p_values: Array, rows: Array, pairs: tuple[Array, Array], times: int, random: np.random.Generator
) -> Array:
    """P-values of pairs of groups, adjusted step-down by the largest distance of any pair (Westfall and Young, 1993).

    The distance of two equal groups in standard errors of their own is nearly normal, and its correlation with that of
    any other two equal groups follows from the numbers of rows alone. So it is drawn without knowing which groups are
    equal and what their rates are, which shuffling all groups together does not allow.
    """
    import numpy as np

    normal = NormalDist()
    drawn = random.standard_normal((times, len(rows))) / np.sqrt(rows)
    largest, found = np.zeros(times), np.empty(len(p_values))
    falling = np.argsort(-p_values, kind="stable")
    for remaining, pair in enumerate(falling, start=1):
        one, other, p_value = pairs[0][pair], pairs[1][pair], float(p_values[pair])
        tail = p_value / 2  # zero for the smallest floats
        error = math.sqrt(1 / rows[one] + 1 / rows[other])
        np.maximum(largest, np.abs(drawn[:, one] - drawn[:, other]) / error, out=largest)
        distance = -normal.inv_cdf(tail) if tail else math.inf
        reached = (1 + (largest >= distance).sum()) / (1 + times)
        # that any of them is so far is as probable as that this pair is, or more, and at most the sum over all
        found[pair] = min(max(reached, p_value), remaining * p_value, 1)
    rising = falling[::-1]
    found[rising] = np.maximum.accumulate(found[rising])
    return found


class StratifiedTest(OuterGroupTest):
    """Compares groups within strata; made by `stratified`."""

    subject: ClassVar[str] = "stratified()"

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        metric, rows, texts = part.metric, part.rows, part.texts
        if len(metric.metrics) > 1 or metric.less:
            msg = f"{metric.name} compares several rates; take one of one, such as equal_opportunity."
            raise ArgumentError(msg)
        schema = {name: dtype for name, dtype in _STRATIFIED.items() if name != ".p_adjusted"}
        found = list[dict[str, Any]]()
        for count in part.counts:
            size, hits = count.of_groups.denominator, count.of_groups.numerator
            named = rows.filter((pl.col("name") == count.name) & pl.col("is_reference"))[GROUP_CELL]
            at = [place for place, group_cell in enumerate(count.group_cells.tolist()) if group_cell in set(named)]
            reference = at[0] if at else int(size.argmax())
            for group in range(len(size)):
                if group != reference:
                    both = (count.denominator[:, [group, reference]] > 0).all(axis=1)
                    tables = [
                        each[both][:, place].astype(float)
                        for place in (group, reference)
                        for each in (count.numerator, count.denominator)
                    ]
                    crude = float(hits[group] / size[group] - hits[reference] / size[reference])
                    about = {
                        ".metric": count.name, ".by": metric.by.text, ".group": texts[int(count.group_cells[group])],
                        ".other": texts[int(count.group_cells[reference])], ".strata": int(both.sum()),
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
    z, vary = z_value(level), homogeneity(*tables)
    distance = tables[0] / tables[1] - tables[2] / tables[3]
    turned = bool((distance > 0).all() and crude < 0) or bool((distance < 0).all() and crude > 0)
    return {
        ".adjusted": found, ".lower": found - z * error, ".upper": found + z * error, ".std_error": error,
        ".p_value": cochran_mantel_haenszel(*tables), ".p_homogeneity": vary,
        ".pattern": "simpson" if turned else "heterogeneous" if vary < 1 - level else "alike",
    }  # fmt: skip


class WorstGroups(OuterGroupTest):
    """Ranks groups by the probability of being the worst; made by `worst_groups`."""

    subject: ClassVar[str] = "worst_groups()"

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        import numpy as np

        metric, random = part.metric, part.random
        tables = [pl.DataFrame(schema=_WORST)]
        for count, base in zip(part.counts, (*metric.metrics, *metric.less), strict=False):
            size, hits = count.of_groups.denominator, count.of_groups.numerator
            each = self.conf_level ** (1 / max(1, len(size)))
            shares = Quantities.of_counts(hits, size)
            low, high = shares.limits(z_value(each))
            drawn = random.beta(hits + 0.5, size - hits + 0.5, (self.times, len(size)))
            if not len(size):
                continue  # none has a value
            end = "lowest" if base.direction == "maximize" else "highest"
            worst = (drawn.argmin if end == "lowest" else drawn.argmax)(axis=1)
            table = {
                ".metric": [count.name] * len(size), ".by": [metric.by.text] * len(size),
                ".group": part.texts.gather(count.group_cells),
                ".estimate": shares.value, ".lower": low, ".upper": high,
                ".worst": [end] * len(size),
                ".p_worst": np.bincount(worst, minlength=len(size)) / self.times, ".n": size,
            }  # fmt: skip
            tables.append(pl.DataFrame(table, schema=_WORST))
        return pl.concat(tables)

    def _adjusted(self, table: pl.DataFrame) -> pl.DataFrame:
        return table


def pairwise(
    *metrics: GroupwiseMetric | MetricSet,
    test: Literal["fisher", "chi_squared", "g"] = "fisher",
    adjust: Literal["holm", "max_t", "bh", "by", "none"] = "holm",
    family: Family = "all",
    conf_level: float = 0.95,
    times: int = 10_000,
    seed: int = 0,
) -> PairwiseTest:
    """Compare each pair of groups: how far apart two rates are, an interval, and a test.

    Args:
        metrics: Groupwise metrics of one rate each, such as `equal_opportunity`.
        test: Of two groups: Fisher's, which is exact, Pearson's `"chi_squared"` without correction, or `"g"`, the ratio
            of likelihoods, which both take many rows.
        adjust: How p-values are adjusted: `"holm"`, `"bh"`, `"by"`, `"none"`, or `"max_t"`, step-down by the largest
            distance of any pair of a comparison in standard errors of the pair (Westfall and Young, 1993). It is never
            above Holm's within a comparison, and it, too, holds for the pairs that are equal where others are not.
        family: Which pairs are adjusted together: `"all"`, those of one `"metric"`, or of one `"by"`.
        conf_level: Of each interval (Newcombe's), which is not adjusted.
        times: How many draws there are for `"max_t"`.
        seed: Of the draws.

    Returns:
        A callable that takes what a metric takes, and gives one row for each pair and outer group: `.group`, `.other`,
        both values, `.difference`, `.lower`, `.upper`, `.method` (the test), `.p_value`, `.p_adjusted`, and the rows of
        both.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> found = pairwise(demographic_parity("sex"))(people, estimate="hired")
    >>> found.select(".group", ".other", pl.col(".p_value").round(6)).row(0)
    ('f', 'm', 0.1)
    """
    return PairwiseTest(
        groupwise(metrics, "pairwise"), (), how_often(times), whole("seed", seed, 0),
        one_of("adjust", adjust, (*ADJUSTMENTS, "max_t")), cast("Any", one_of("family", family, FAMILIES)),
        conf_level=proper_share("conf_level", conf_level), test=one_of("test", test, tuple(_TESTS)),
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
    columns = columns_of(within)
    if not columns:
        msg = "stratified() compares within strata: `within=` names their columns."
        raise ArgumentError(msg)
    return StratifiedTest(
        groupwise(metrics, "stratified"), columns, 1, 0, one_of("adjust", adjust, ADJUSTMENTS),
        cast("Any", one_of("family", family, FAMILIES)), conf_level=proper_share("conf_level", conf_level),
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
        `.upper` (Wilson's, simultaneous), `.worst`, whether the `lowest` or the `highest` is the worst, and `.p_worst`,
        the probability that no other group is worse, given independent Jeffreys priors of the groups.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> worst_groups(demographic_parity("sex"))(people, estimate="hired").select(".group", ".estimate").rows()
    [('f', 1.0), ('m', 0.0)]
    """
    return WorstGroups(
        groupwise(metrics, "worst_groups"), (), how_often(times), whole("seed", seed, 0), "none", "all",
        conf_level=proper_share("conf_level", conf_level),
    )  # fmt: skip

"""Permutation tests of the equality of groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, MetricSet
from tidyfair.errors import ArgumentError
from tidyfair.evaluation import Evaluated, tidy_results
from tidyfair.inference.rate_tests import REFUSED, Case, Family, RateTest, columns_of, groupwise, reads_one_label
from tidyfair.inference.result_frames import frame_of_outer_groups, outer_keys_of
from tidyfair.inference.testing.permutation import Permutations, permuted_labels, permuted_rows
from tidyfair.inference.testing.studentized import Families, joint_distances, slack
from tidyfair.intervals import Share, generator, is_of_labels, odds_of, share_of
from tidyfair.specs import Array, ColumnLike, Options, flag, formulas_of, names_of, refuse_unknown_keywords
from tidyfair.specs.result_kinds import TESTS, ResultKind

__all__ = ["DisparityTest", "disparity_test"]


@dataclass(frozen=True, repr=False)
class DisparityTest(RateTest):
    """A permutation test of equal groups; made by `disparity_test`.

    The statistic is the sum of squares of the distances of groups in standard errors, or the largest one, whichever is
    less likely. For rates the test is exact; for other metrics it is asymptotically valid even if groups differ in
    other ways (Chung and Romano, 2013).
    """

    subject: ClassVar[str] = "disparity_test()"
    kind: ClassVar[ResultKind] = TESTS
    refused: ClassVar[Mapping[str, str]] = REFUSED
    studentized: bool = True
    """True where rates are tested by the distance of groups in standard errors, and not by the disparity itself."""

    def _counting_options(self, options: Options) -> Options:
        weighted = options.case_weights is not None or options.cluster is not None
        reads_rows = weighted or not all(map(is_of_labels, self.metrics))
        return replace(options, keep_rows=reads_rows)

    def _tables(self, case: Case) -> Iterator[pl.DataFrame]:
        if not any(formula.reads for formula in formulas_of(case.metric)):
            msg = (
                f"{case.metric.name} depends only on the size of groups, which permutation does not change; test "
                "another metric."
            )
            raise ArgumentError(msg)
        yield frame_of_outer_groups(outer_keys_of(case.evaluated), self._schema, enumerate(self._rows(case)))

    def _rows(self, case: Case) -> Iterator[dict[str, Any]]:
        """The row of each outer group."""
        evaluated, metric, formulas = case.evaluated, case.metric, formulas_of(case.metric)
        observed = tidy_results(evaluated, undefined_is_null=False)
        rates, odds = _rates_of_equal_rows(case), _odds_of_equal_rows(case)
        compares = any(formula.compares or formula.beyond for formula in formulas)
        is_distance = self.studentized if rates else not (odds or compares)
        method = "studentized permutation" if is_distance else "permutation"
        if is_distance and not rates:
            method += ", asymptotic"
        families, rows = Families(case, are_rates=bool(rates)), observed[".n"].to_list()
        if rates:
            rows = [_rows_of_rates(evaluated, rates, outer) for outer in range(len(rows))]
        values: list[Array] = []
        severities: list[Array] = []
        has_value = observed[".estimate"].is_not_null().any()
        for permutations in self._permutations(case, rates or odds, families, varied=is_distance) if has_value else ():
            values.append(permutations.results)
            severities.append(
                families.distances(permutations) if is_distance else metric.aggregate.severity(values[-1])
            )
        if not values:
            yield from (self._row(case) for _ in rows)
            return
        for outer, size in enumerate(rows):
            # one outer group after the other, since all together may be many
            value, severity = (np.concatenate([part[:, outer] for part in parts]) for parts in (values, severities))
            yield self._row(case, value, severity, size, method, is_distance=is_distance)

    def _permutations(
        self, case: Case, shares: Sequence[Share], families: Families, *, varied: bool
    ) -> Iterator[Permutations]:
        """The permutations of the cells of some shares, or of all rows, and last the observed data."""
        tally, metric, options = case.tally, case.metric, case.options
        reads_rows = bool(tally.clusters) or tally.weights is not None or not is_of_labels(metric)
        # fewer where each of them takes time
        one_by_one = reads_rows or metric.aggregate.calls_python
        options_of_draws: dict[str, Any] = {
            "times": options.replicates_of_rows if one_by_one else options.replicates,
            "random": generator(options.seed, "groups"), "varied": varied and not families.have_variance,
            "with_variances": varied and families.have_variance and not families.are_rates,
        }  # fmt: skip
        if reads_rows:
            return permuted_rows(case, self.within, **options_of_draws)
        blocks = list(dict.fromkeys(share.among for share in shares))
        return permuted_labels(case, self.within, blocks, **options_of_draws)

    def _row(
        self, case: Case, values: Array | None = None, severity: Array | None = None, rows: int = 0,
        method: str = "", *, is_distance: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """The row of a test, from the value and the severity, or the distances, of each draw; the last is observed."""
        metric = case.metric
        names = list(dict.fromkeys(base.name for base in (*metric.metrics, *metric.less)))
        verb = "is" if len(names) == 1 else "are"
        hypothesis = f"{' and '.join(names)} {verb} the same in all groups of {metric.by.text}"
        if self.within:
            hypothesis += f" within {', '.join(names_of(self.within))}"
        row: dict[str, Any] = {".metric": metric.name, ".by": metric.by.text, ".hypothesis": hypothesis}
        if values is None or severity is None or np.isnan(values[-1]):
            return row
        has_value = ~np.isnan(values)
        values, severity = values[has_value], severity[has_value]
        row |= {".estimate": float(values[-1]), ".n": rows, ".method": f"{method}, mid-p" if self.mid_p else method}
        if is_distance:
            severity = joint_distances(severity)
            # without any distance there is no scale of distances
            if severity[-1]:
                values = on_scale(values[-1], severity, metric.aggregate.equality, metric.range)
        return row | by_chance(values, severity, case.options.conf_level, mid_p=self.mid_p)


def by_chance(values: Array, severity: Array, level: float, *, mid_p: bool = False) -> dict[str, float]:
    """The values expected by chance: the mean of draws, the range of those that are not significant, and the p-value.

    The last draw is the observed one, which lies outside of the range if its p-value is below 1 - `level`, and only
    then.
    """
    rising, same = np.sort(severity), slack(severity)
    # the share of draws, itself among them, that are as severe as each draw
    below, up_to = np.searchsorted(rising, severity - same), np.searchsorted(rising, severity + same, "right")
    worse, ties = len(severity) - up_to, up_to - below
    p_values = (worse + ties / 2 if mid_p else worse + ties) / len(severity)
    # 1 - 0.95 is a little more than 0.05
    likely = values[p_values >= round(1 - level, 12)]
    with np.errstate(invalid="ignore"):
        return {
            ".expected": float(values[:-1].mean()), ".expected_lower": float(likely.min()),
            ".expected_upper": float(likely.max()), ".p_value": float(p_values[-1]),
        }  # fmt: skip


def on_scale(observed: float, severity: Array, centre: float | None, ends: tuple[float, float]) -> Array:
    """Draws of a distance in standard errors on the scale of the observed value, which is the last of them.

    A draw of half the observed distance is half as far from the center, on both sides if values lie on both. Without a
    center, or a finite value, there is no such scale.
    """
    if centre is None or not np.isfinite(observed):
        return np.full(len(severity), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = (observed - centre) * np.where(severity == severity[-1], 1, severity / severity[-1])
    sides = [centre + away, centre - away] if ends[0] < centre < ends[1] else [centre + away]
    return np.clip(np.stack(sides, axis=1), *ends)


def _rates_of_equal_rows(case: Case) -> list[Share]:
    """The shares that a metric compares, of equal rows and without overlapping denominators; none of other metrics."""
    if case.tally.weights is not None or case.tally.clusters:
        return []
    (spec,) = case.evaluated.specs
    shares: list[Share] = []
    for name, formula in spec.formulas:
        share = share_of(formula)
        if share is None or not reads_one_label(case.evaluated.rows.filter(name=name)):
            return []
        shares.append(share)
    for one, other in itertools.combinations(shares, 2):
        # a permutation is exact for two rates of disjoint rows, or of the same rows and one count
        same_count = one.among == other.among and one.holds in (other.holds, other.misses)
        if not (same_count or one.among.isdisjoint(other.among)):
            return []
    return shares


def _odds_of_equal_rows(case: Case) -> list[Share]:
    """The share whose odds a metric is, such as that of one kind of errors; none of other metrics."""
    shares = set(map(odds_of, formulas_of(case.evaluated.specs[0])))
    share = shares.pop() if len(shares) == 1 else None
    is_of_rows = case.evaluated.labels.event is None or case.tally.weights is not None or bool(case.tally.clusters)
    return [] if share is None or is_of_rows else [share]


def _rows_of_rates(evaluated: Evaluated, rates: Sequence[Share], outer: int) -> int:
    """The rows of the denominators of rates in an outer group; rates of the same rows share theirs."""
    values = evaluated.values
    is_counted = (values["outer"] == outer) & ~np.isnan(values["estimate"])
    rows: dict[frozenset[str], int] = {}
    for number, share in enumerate(rates):
        of_rate = is_counted & (values["requested"] == number)
        rows.setdefault(share.among, int(values["denominator"][of_rate].sum()))
    return sum(rows.values())


@refuse_unknown_keywords
def disparity_test(
    *metrics: GroupwiseMetric | MetricSet,
    within: ColumnLike | Iterable[ColumnLike] | None = None,
    mid_p: bool = False,
    studentized: bool = True,
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
) -> DisparityTest:
    """Test whether groups are equal, by permuting group labels.

    A rate is tested among the rows of its denominator: demographic parity among all rows, equal opportunity among those
    with the event, predictive parity among those selected, equalized odds among both. The test is exact up to the
    number of draws.

    Groups are compared in standard errors, so a rare group does not mask the others. The statistic is the sum of
    squares of their distances, which for rates is Pearson's chi-squared, and finds many groups that differ a little; or
    the largest distance of any group from all others (or from the reference), which finds one that differs. The less
    likely one counts, and the same permutations show how often it is as unlikely (Tippett's combination; Pesarin and
    Salmaso, 2010). The largest distance must be three times less likely to count as much.

    Other metrics than rates, and all metrics with `case_weights` or `cluster`, are tested by permuting all rows or
    whole clusters (Chung and Romano, 2013): exact if groups have identical distributions, and asymptotically valid
    otherwise. The cost depends on the number of cells for metrics of labels, else on the number of rows. Odds are
    tested by the disparity itself.

    Args:
        metrics: Groupwise metrics.
        within: Columns of strata: labels are permuted only within strata, which removes differences between strata.
        mid_p: Count draws that equal the observed disparity half.
        studentized: Compare groups in standard errors. `False` tests rates by the disparity itself, which a rare group
            makes large by chance, so that differences of other groups are masked.
        adjust: The adjustment of p-values of several tests: `"holm"`, `"bh"` (Benjamini and Hochberg), `"by"`
            (Benjamini and Yekutieli) or `"none"`.
        family: The tests that are adjusted together: `"all"`, those of one `"metric"`, or of one `"by"`.

    Returns:
        A callable with the arguments of a metric, `times=` draws (by default 10,000 for counts, and 1,000 for rows and
        for a user's function) and their `seed=` among them. It returns one row for each metric and outer group:
        `.hypothesis`, `.estimate`, the mean `.expected` for equal groups and the range of what is not significant at
        1 - `conf_level` (`.expected_lower`, `.expected_upper`; 5% by default), `.p_value`, `.p_adjusted`, the number
        `.n` of rows and the `.method`.
        Distances in standard errors are shown on the scale of the disparity: a draw that is as likely as half of the
        observed distances as half of the disparity. So the estimate is outside of the range if its p-value is below
        that, and only then. Values are null without a disparity, and the range where the disparity has no value for
        equal groups, as a group minimum.

    Raises:
        ArgumentError: For metrics of the size of groups, for clusters shared by several groups, and for a user's
            aggregate without a known direction.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> disparity_test(demographic_parity("sex"))(people, estimate="hired").select(".estimate", ".n").row(0)
    (1.0, 6)
    """
    members = groupwise(metrics, "disparity_test")
    for metric in members:
        if metric.aggregate.direction_is_unknown:
            msg = (
                f"disparity_test(): the direction of {metric.name} is unknown; create its aggregate with "
                "`new_aggregate(…, equal=…)`."
            )
            raise ArgumentError(msg)
    return DisparityTest(
        members, columns_of(within), adjust, family, mid_p, studentized=flag("studentized", studentized)
    )  # fmt: skip

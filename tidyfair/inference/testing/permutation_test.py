"""Permutation tests of the equality of groups."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, MetricSet
from tidyfair.errors import ArgumentError
from tidyfair.evaluation import GROUP_CELL, Evaluated, Replicates, tidy_results
from tidyfair.inference.rate_tests import (
    REFUSED,
    Case,
    CountedRate,
    Family,
    OuterGroup,
    OuterGroupTest,
    columns_of,
    groupwise,
    reads_one_label,
)
from tidyfair.inference.result_frames import Content, Schema, frame_of_outer_groups, outer_keys_of, schema_of
from tidyfair.inference.testing.permutation import shuffled_cells, shuffled_rows
from tidyfair.inference.testing.studentized import Families, all_distances, joint_distances, rate_distances, slack
from tidyfair.intervals import Share, generator, in_progress, is_of_labels, share_of
from tidyfair.specs import (
    CONTEXTS,
    Aggregate,
    Array,
    ColumnLike,
    Options,
    flag,
    formulas_of,
    names_of,
    refuse_unknown_keywords,
)
from tidyfair.specs.result_kinds import TESTS, ResultKind

__all__ = ["DisparityTest", "disparity_test"]

_MOST_DRAWN = 2_000_000
"""The most counts that are drawn at once, so that memory does not grow with the groups."""
_MOST_VALUES = 2**16
"""The most values of groups that are compared at once, so that they stay in the cache."""
_TESTED = schema_of(".metric .by .hypothesis .n .estimate .expected .expected_lower .expected_upper .p_value .method")


@dataclass(frozen=True, repr=False)
class DisparityTest(OuterGroupTest):
    """A permutation test of equal groups; made by `disparity_test`.

    The statistic is the sum of squares of the distances of groups in standard errors, or the largest one, whichever is
    less likely. For rates the test is exact; for other metrics it is asymptotically valid even if groups differ in
    other ways (Chung and Romano, 2013).
    """

    subject: ClassVar[str] = "disparity_test()"
    kind: ClassVar[ResultKind] = TESTS
    refused: ClassVar[Mapping[str, str]] = REFUSED
    _schema: ClassVar[Schema] = _TESTED
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
        return super()._tables(case) if _is_exact(case) else self._shuffled(case)

    def _tested(self, outer_group: OuterGroup) -> Iterator[Content]:
        rows, counts = outer_group.rows, outer_group.counts
        if rows.is_empty():
            yield self._row(outer_group.case)
            return
        times = _number_of_draws(outer_group.case)
        step = max(1, _MOST_DRAWN // max(1, len(counts[0].group_cells)))
        values: list[Array] = []
        severities: list[Array] = []
        # draws are taken in blocks, of which no counts are kept
        for first in in_progress(range(0, times, step), "shuffling"):
            draws = min(step, times - first)
            drawn = drawn_together(counts, lambda count, draws=draws: count.shuffled(draws, outer_group.random))
            value, severity = compared_draws(outer_group.case.evaluated, outer_group.outer, counts, drawn)
            severity = _distances(rows, counts, drawn) if self.studentized else severity
            # the observed values come last in every block, and are kept once
            kept = slice(None if first + draws == times else -1)
            values.append(value[kept])
            severities.append(severity[kept])
        method = "studentized permutation" if self.studentized else "permutation"
        # rates of the same rows share their denominator
        denominators = {count.among: int(count.denominator.sum()) for count in counts}
        drawn_values, size = (np.concatenate(values), np.concatenate(severities)), sum(denominators.values())
        yield self._row(outer_group.case, *drawn_values, size, method, is_distance=self.studentized)

    def _shuffled(self, case: Case) -> Iterator[pl.DataFrame]:
        """The tests of a metric that is no rate of equal rows: groups are shuffled, and all is evaluated again."""
        observed = tidy_results(case.evaluated, undefined_is_null=False)
        testable = observed[".estimate"].is_not_null()
        families = Families(case)
        draws = list(self._draws(case, families)) if testable.any() else []
        method = "permutation" if families.is_exact else "studentized permutation, asymptotic"
        rows = [self._row(case) for _ in range(len(observed))]
        for outer in range(len(observed)):
            if testable[outer]:
                values, severity = (np.concatenate([drawn[kind][outer] for drawn in draws]) for kind in (0, 1))
                is_distance = not families.is_exact
                size = observed[".n"][outer]
                rows[outer] = self._row(case, values, severity, size, method, is_distance=is_distance)
        yield frame_of_outer_groups(outer_keys_of(case.evaluated), self._schema, enumerate(rows))

    def _draws(self, case: Case, families: Families) -> Iterator[tuple[list[Array], list[Array]]]:
        """The disparities of outer groups in some draws, and their severities, until all draws are made."""
        metric, tally, options = case.metric, case.tally.on_sides(), case.options
        reads_rows = bool(tally.clusters) or tally.weights is not None or not is_of_labels(metric)
        # formulas with a variance need no variants of the draws
        varied = not (families.is_exact or families.has_variance)
        if not varied:
            options = replace(options, interval="auto")
        shuffling: dict[str, Any] = {
            "times": _number_of_draws(case, reads_rows=reads_rows),
            "random": generator(options.seed, "shuffled groups"), "varied": varied,
        }  # fmt: skip
        if reads_rows:
            draws = shuffled_rows(tally, metric.by, self.within, reads_sums=families.reads_sums, **shuffling)
        else:
            draws = shuffled_cells(tally, metric.by, self.within, among=families.among, **shuffling)
        # the observed data decide which groups are left out
        run = metric.with_policy(metric.policy.with_all_sizes()).run
        for drawn in draws:
            yield families.statistics_of_draws(run.evaluate(drawn, options)[0])

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


def _number_of_draws(case: Case, *, reads_rows: bool = False) -> int:
    """The number of shuffles; unless given, fewer where each of them takes time."""
    one_by_one = reads_rows or case.metric.aggregate.calls_python
    return case.options.replicates_of_rows if one_by_one else case.options.replicates


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


def _is_exact(case: Case) -> bool:
    """Check whether a metric compares rates of equal rows, without overlapping denominators."""
    if case.tally.weights is not None or case.tally.clusters:
        return False
    (spec,) = case.evaluated.specs
    rows = (case.crossed or case.evaluated).rows
    shares: list[Share] = []
    for name, formula in spec.formulas:
        share = share_of(formula)
        if share is None or not reads_one_label(rows.filter(name=name)):
            return False
        shares.append(share)
    for one, other in itertools.combinations(shares, 2):
        # a permutation is exact for two rates of disjoint rows, or of the same rows and one count
        same_count = one.among == other.among and one.holds in (other.holds, other.misses)
        if not (same_count or one.among.isdisjoint(other.among)):
            return False
    return True


def _distances(rows: pl.DataFrame, counts: Sequence[CountedRate], drawn: Sequence[Array]) -> Array:
    """The distances of groups of each draw, in standard errors under equality; the observed ones come last."""
    distances = np.zeros((len(drawn[0]) + 1, 2))
    for count, numerators in zip(counts, drawn, strict=True):
        compared = rows.filter((pl.col("name") == count.name) & pl.col("estimate").is_not_null())
        reference = compared.filter("is_reference")[GROUP_CELL].unique().to_list()
        kept = np.flatnonzero(np.isin(count.group_cells, compared[GROUP_CELL].to_numpy()))
        references = np.flatnonzero(np.isin(count.group_cells[kept], reference)).tolist()
        denominator, observed = count.group_denominator[kept], count.group_numerator
        share = float(observed.sum() / max(1, count.denominator.sum()))
        hits = np.concatenate([numerators, observed[None]])[:, kept]
        step = max(1, _MOST_VALUES // max(1, len(kept)))
        for first in range(0, len(hits), step):
            part = slice(first, first + step)
            distances_of_rate = rate_distances(hits[part], denominator, share, references)
            distances[part] = all_distances(distances[part], distances_of_rate)
    return distances


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
    rows = np.flatnonzero(base.array("outer") == outer)
    names, cells = evaluated.rows["name"].to_numpy()[rows], base.array(GROUP_CELL)[rows]
    columns = [name for name in ("estimate", *CONTEXTS) if name in base]
    tables: dict[str, Array] = {name: np.tile(base.array(name)[rows], (times + 1, 1)) for name in columns}
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
        contexts = {name: table[part] for name, table in tables.items() if name != "estimate"}
        replicates = Replicates.of_values(evaluated, rows, tables["estimate"][part], contexts)
        results[part] = replicates.results[:, outer]
    return results, cast("Aggregate", evaluated.specs[0].aggregate).severity(results)


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

"""Tests of equality: how far apart groups would be by chance alone, and how often as far as they are."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation.disparities import compare
from tidyfair.evaluation.results import frames_of, tidy_results
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.evaluation.value_rows import ValueRows
from tidyfair.inference.permutation import shuffled_cells, shuffled_rows
from tidyfair.inference.rate_tests import (
    ADJUSTMENTS,
    FAMILIES,
    REFUSED,
    SAME,
    CountedRate,
    Family,
    OuterGroup,
    OuterGroupTest,
    columns_of,
    groupwise,
    reads_one_label,
)
from tidyfair.inference.studentized import Families, farthest
from tidyfair.intervals.analytic import Share, share_of
from tidyfair.intervals.bootstrap import is_of_labels
from tidyfair.intervals.resampling import generator
from tidyfair.specs.aggregates import CONTEXTS, UserAggregate
from tidyfair.specs.arguments import flag, how_often, one_of, whole
from tidyfair.specs.options import CallOptions, show_keywords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias, Unpack

    import numpy as np

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.inference.rate_tests import Case
    from tidyfair.metric_sets import GroupwiseMetric, MetricSet
    from tidyfair.specs.aggregates import Aggregate
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.groups import By
    from tidyfair.specs.options import Options

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["DisparityTest", "disparity_test"]

CENTRAL = (0.025, 0.975)
_MANY, _FEWER = 10_000, 1_000
"""Shuffles where counts are shuffled, and where rows are."""
_MOST_VALUES = 2**16
"""Values of groups that are compared at once, so that draws take memory for these only, and stay in the cache."""
_TESTED = {
    ".metric": pl.String, ".by": pl.String, ".hypothesis": pl.String, ".estimate": pl.Float64, ".expected": pl.Float64,
    ".expected_lower": pl.Float64, ".expected_upper": pl.Float64, ".p_value": pl.Float64, ".n": pl.Int64,
    ".method": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class DisparityTest(OuterGroupTest):
    """Tests whether groups are equal, by shuffling them; made by `disparity_test`.

    Rates are tested exactly, on what each of them counts. Anything else is tested by how far groups are apart in
    standard errors, which is right for many rows even if groups differ in other ways (Chung and Romano, 2013).
    """

    subject: ClassVar[str] = "disparity_test()"
    refused: ClassVar[Mapping[str, str]] = REFUSED
    draws: int | None = None
    """The number of shuffles, where it was given."""
    studentized: bool = False
    """Whether rates too are tested by the distance of groups in standard errors."""

    @show_keywords(CallOptions, without=REFUSED)
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Test on a dataframe; it takes what a metric takes, with one threshold at most."""
        return self._on_data(data, truth, estimate, options)

    def _counting_options(self, options: Options) -> Options:
        weighted = options.case_weights is not None or options.cluster is not None
        reads_rows = weighted or not all(map(is_of_labels, self.metrics))
        return replace(options, keep_rows=reads_rows)

    def _tables(self, case: Case) -> Iterator[pl.DataFrame]:
        if not any(formula.reads for _, formula in case.metric.formulas):
            msg = f"{case.metric.name} is about how many rows groups have, which shuffling does not change."
            raise ArgumentError(msg)
        return super()._tables(case) if _is_exact(case) else self._shuffled(case)

    def _tested(self, part: OuterGroup) -> pl.DataFrame:
        metric, rows, counts = part.metric, part.rows, part.counts
        if not len(counts) or rows.is_empty():
            return self._row(metric)
        drawn = _drawn(counts, self._draws_of(metric), part.random)
        values = compared_draws(part.evaluated, rows, counts, drawn)
        bad, method = values["severity"].to_numpy(), "permutation"
        if self.studentized:
            bad, method = _farthest(rows, counts, drawn), "studentized permutation"
        about = {count.among: int(count.denominator.sum()) for count in counts}
        return self._row(metric, values["value"], bad, sum(about.values()), method)

    def _shuffled(self, case: Case) -> Iterator[pl.DataFrame]:
        """The tests of what is not one rate of equal rows: groups shuffled, and everything worked out anew."""
        import numpy as np

        metric, keys = case.metric, case.outer_keys
        observed = tidy_results(case.evaluated, undefined_is_null=False)
        testable = observed[".estimate"].is_not_null()
        known = Families.of(case)
        parts = self._of_shuffles(case, known) if testable.any() else []
        method = "permutation" if known.is_exact else "studentized permutation, asymptotic"
        for outer in range(len(observed)):
            row = self._row(metric)
            if testable[outer]:
                values, bad = (np.concatenate([part[side][outer] for part in parts]) for side in (0, 1))
                row = self._row(metric, pl.Series(values).fill_nan(None), bad, observed[".n"][outer], method)
            yield keys[outer : outer + 1].join(row, how="cross") if keys.width else row
        if observed.is_empty():
            yield keys.join(self._row(metric), how="cross").clear()

    def _of_shuffles(self, case: Case, known: Families) -> list[tuple[list[Array], list[Array]]]:
        """The disparities of outer groups in each draw, and how bad they are, some draws after the other."""
        metric, tally, options = case.metric, case.tally.on_sides(), case.options
        of_rows = bool(tally.clusters) or tally.weights is not None or not is_of_labels(metric)
        # where formulas say how sure values are, nothing needs to be varied to see it
        varied = not (known.is_exact or known.has_variance(case.evaluated))
        if not varied:
            options = replace(options, interval="auto")
        times = self._draws_of(metric, of_rows=of_rows)
        random = generator(self.seed, f"{metric.name} {metric.by.text}")
        if of_rows:
            draws = shuffled_rows(
                tally, metric.by, self.within, times=times, random=random, varied=varied, of_sums=known.of_sums
            )
        else:
            draws = shuffled_cells(
                tally, metric.by, self.within, times=times, random=random, varied=varied, among=known.among
            )
        # which groups are left out is decided by what was found
        every_group = replace(metric, min_n=0)
        return [known.of_draws(every_group.run.evaluate(drawn, options)[0]) for drawn in draws]

    def _draws_of(self, metric: GroupwiseMetric, *, of_rows: bool = False) -> int:
        """How many shuffles there are, fewer unless it is said where each of them takes time."""
        bound = metric.aggregate
        one_by_one = of_rows or (isinstance(bound, UserAggregate) and not isinstance(bound.function, pl.Expr))
        return self.draws or (_FEWER if one_by_one else _MANY)

    def _row(
        self, metric: GroupwiseMetric, values: pl.Series | None = None, bad: Array | None = None, rows: int = 0,
        method: str = "",
    ) -> pl.DataFrame:  # fmt: skip
        """The row of a test; the last of the values, and of how bad they are, is what was found."""
        import numpy as np

        names = list(dict.fromkeys(each.name for each in (*metric.metrics, *metric.less)))
        text = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} the same in all groups of {metric.by.text}"
        text += f" within {', '.join(column.name for column in self.within)}" if self.within else ""
        found = dict.fromkeys(_TESTED) | {".metric": metric.name, ".by": metric.by.text, ".hypothesis": text}
        if values is not None and bad is not None and values[-1] is not None:
            there = values[:-1].is_not_null()
            shuffled, others, worse = values[:-1].filter(there), bad[:-1][there.to_numpy()], bad[-1]
            with np.errstate(divide="ignore", invalid="ignore"):
                alike = (others == worse) | (np.abs(others / worse - 1) <= SAME) | (np.abs(others - worse) <= SAME)
            more, same = int(((others > worse) & ~alike).sum()), int(alike.sum())
            low, high = (shuffled.quantile(end, "linear") for end in CENTRAL)
            # what was found is one of the ways to shuffle
            reached = more + (same + 1) / 2 if self.mid_p else more + same + 1
            p_value = reached / (len(others) + 1)
            found |= {
                ".estimate": values[-1], ".expected": shuffled.mean(), ".expected_lower": low,
                ".expected_upper": high, ".p_value": p_value, ".n": rows,
                ".method": f"{method}, mid-p" if self.mid_p else method,
            }  # fmt: skip
        return pl.DataFrame([found], schema=_TESTED)


def _is_exact(case: Case) -> bool:
    """Whether it compares rates of rows that count the same, and none of some of the rows of another."""
    (spec,) = case.evaluated.specs
    rows, shares = (case.crossed or case.evaluated).rows, list[Share]()
    for name, formula in spec.formulas:
        share = share_of(formula)
        if share is None or not reads_one_label(formula, rows.filter(name=name)):
            return False
        shares.append(share)
    apart = all(
        one.among.isdisjoint(other.among) or (one.among == other.among and one.holds in (other.holds, other.misses))
        for one, other in itertools.combinations(shares, 2)
    )
    return apart and case.tally.weights is None and not case.tally.clusters


def _farthest(rows: pl.DataFrame, counts: Sequence[CountedRate], drawn: Sequence[Array]) -> Array:
    """How far the farthest groups of each draw are apart, in standard errors under equality; last of what was found."""
    import numpy as np

    largest = np.zeros(len(drawn[0]) + 1)
    for count, hits in zip(counts, drawn, strict=True):
        mine = rows.filter(name=count.name)
        compared = mine.filter(pl.col("estimate").is_not_null())
        reference = compared.filter("is_reference")[GROUP_CELL].unique().to_list()
        kept = np.flatnonzero(np.isin(count.group_cells, compared[GROUP_CELL].to_numpy()))
        size, found = count.of_groups.denominator, count.of_groups.numerator
        # nobody is far from nobody
        with np.errstate(divide="ignore", invalid="ignore"):
            every, share = np.concatenate([hits, found[None]])[:, kept] / size[kept], found.sum() / size.sum()
        variance = share * (1 - share) / size[None, kept]
        places = np.flatnonzero(np.isin(count.group_cells[kept], reference)).tolist()
        np.fmax(largest, farthest(every, variance, places), out=largest)
    return largest


def _drawn(counts: Sequence[CountedRate], times: int, random: np.random.Generator) -> list[Any]:
    """The shuffled hits of each rate; rates of the same rows are shuffled together."""
    found: list[Any] = []
    for place, count in enumerate(counts):
        same = next((at for at in range(place) if counts[at].among == count.among), None)
        if same is None:
            found.append(count.shuffled(times, random))
        else:
            alike = counts[same].holds == count.holds
            found.append(found[same] if alike else count.of_groups.denominator - found[same])
    return found


def compared_draws(
    evaluated: Evaluated, rows: pl.DataFrame, counts: Sequence[CountedRate], drawn: Sequence[Array]
) -> pl.DataFrame:
    """The aggregate of each draw, and last of what was found: `value`, and its `severity`.

    All but the values stay what they were found: which groups are compared, with whom, and how much they weigh.
    """
    import numpy as np

    (spec,), times = evaluated.specs, len(drawn[0])
    by, aggregate = cast("By", spec.by), cast("Aggregate", spec.aggregate)
    two_sided, tidy = [0] if by.sides else [], frames_of(evaluated)

    def compared(draws: pl.DataFrame) -> pl.Series:
        (result,) = compare(
            ValueRows.of(draws), {0: aggregate}, two_sided=two_sided, undefined_is_null=False, tidy=tidy
        )
        return pl.Series(result.value, nan_to_null=True)

    observed = rows.with_columns(pl.lit(0, pl.Int32).alias("spec"), pl.lit(0, pl.Int32).alias("outer"))
    step = max(1, _MOST_VALUES // max(1, len(rows)))
    slices = ([hits[first : first + step] for hits in drawn] for first in range(0, times, step))
    values = pl.concat([*(compared(_as_drawn(observed, counts, hits)) for hits in slices), compared(observed)])
    severity = aggregate.severity(values.fill_null(np.nan).to_numpy())
    return pl.DataFrame({"value": values, "severity": pl.Series(severity, nan_to_null=True)})


def _as_drawn(rows: pl.DataFrame, counts: Sequence[CountedRate], drawn: Sequence[Array]) -> pl.DataFrame:
    """The rows of values once for each draw, which is their outer group, with what the draw makes of the values."""
    import numpy as np

    draws = len(drawn[0])
    contexts = [name for name in CONTEXTS if name in rows.columns]
    tables = {name: np.tile(rows[name].to_numpy(), (draws, 1)) for name in ("estimate", *contexts)}
    for count, hits in zip(counts, drawn, strict=True):
        at = np.flatnonzero(
            (rows["name"] == count.name).to_numpy() & np.isin(rows[GROUP_CELL].to_numpy(), count.group_cells)
        )
        group = np.searchsorted(count.group_cells, rows[GROUP_CELL].to_numpy()[at])
        size, total = count.of_groups.denominator, count.numerator.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = {
                "estimate": hits[:, group] / size[group],
                "overall": total / size.sum(),
                "rest": (total - hits[:, group]) / (size.sum() - size[group]),
            }
        # groups that are left out stay so
        shares["estimate"][:, np.isnan(tables["estimate"][0, at])] = np.nan
        for name, table in tables.items():
            table[:, at] = shares[name]
    repeated = rows[np.tile(np.arange(len(rows)), draws)]
    return repeated.with_columns(
        pl.Series("outer", np.repeat(np.arange(draws, dtype=np.int32), len(rows))),
        *(pl.Series(name, table.ravel(), nan_to_null=True) for name, table in tables.items()),
    )


def disparity_test(
    *metrics: GroupwiseMetric | MetricSet,
    within: ColumnLike | Iterable[ColumnLike] | None = None,
    times: int | None = None,
    seed: int = 0,
    mid_p: bool = False,
    studentized: bool = False,
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
) -> DisparityTest:
    """Test whether groups are equal, by shuffling who is in which group.

    A rate is tested among the rows that it is about: demographic parity among all, equal opportunity among those with
    the event, predictive parity among those selected, equalized odds among each. Exact but for the number of draws.

    Anything else, and with `case_weights` or `cluster`, is tested by the largest distance of two groups in standard
    errors, among shuffles of all rows or of whole clusters (Chung and Romano, 2013): exact where groups are alike in
    everything, and right for many rows where they are not. It costs cells for metrics of labels, else rows.

    Args:
        metrics: Groupwise metrics.
        within: Columns within whose groups everybody is shuffled, so that these cannot be what makes groups differ.
        times: How many draws there are; 10,000 of counts, 1,000 of rows and where a function of one's own is asked for
            each draw, unless said otherwise.
        seed: Of the draws; the same seed gives the same answer.
        mid_p: Whether draws that are equal to what was found count half.
        studentized: Whether rates too are tested by how many standard errors groups are apart, and not by the disparity
            itself, which a rare group makes large by chance. It is as exact, and what everything else is tested by.
        adjust: How p-values of several tests are adjusted: `"holm"`, `"bh"` (Benjamini and Hochberg), `"by"` (Benjamini
            and Yekutieli) or `"none"`.
        family: Which tests are adjusted together: `"all"`, those of one `"metric"`, or of one `"by"`.

    Returns:
        A callable that takes what a metric takes, and gives one row for each metric and outer group: `.hypothesis`,
        `.estimate`, what is `.expected` by chance if groups are equal and the range of 95 % of it (`.expected_lower`,
        `.expected_upper`), `.p_value`, `.p_adjusted`, `.n` rows and the `.method`. Null where there is no disparity.

    Raises:
        ArgumentError: For metrics of how many rows there are, for clusters that several groups share, and for an
            aggregate of one's own of which nobody knows where it should go.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> disparity_test(demographic_parity("sex"))(people, estimate="hired").select(".estimate", ".n").row(0)
    (1.0, 6)
    """
    given = groupwise(metrics, "disparity_test")
    for each in given:
        if isinstance(each.aggregate, UserAggregate) and each.aggregate.good is None:
            msg = (
                f"disparity_test(): is more of {each.name} worse? Nobody knows of an aggregate of your own; make it by "
                "`new_aggregate(…, equal=…)`."
            )
            raise ArgumentError(msg)
    return DisparityTest(
        given, columns_of(within), how_often(_MANY if times is None else times),
        whole("seed", seed, 0), one_of("adjust", adjust, ADJUSTMENTS),
        cast("Any", one_of("family", family, FAMILIES)), flag("mid_p", mid_p), draws=times,
        studentized=flag("studentized", studentized),
    )  # fmt: skip

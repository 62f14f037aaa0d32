"""Tests of equality: how far apart groups would be by chance alone, and how often as far as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from tidyfair.comparisons import compare
from tidyfair.errors import ArgumentError
from tidyfair.rate_tests import (
    ADJUSTMENTS,
    FAMILIES,
    Counts,
    Family,
    OuterGroupTest,
    columns_of,
    flag,
    groupwise,
    one_of,
    whole,
)
from tidyfair.readings import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.columns import ColumnLike
    from tidyfair.metric_sets import GroupwiseMetric, MetricSet

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["DisparityTest", "disparity_test"]

SAME = 1e-9
"""Statistics that differ by less are ties: the same counts, worked out in another order."""
CENTRAL = (0.025, 0.975)
_TESTED = {
    ".metric": pl.String, ".by": pl.String, ".hypothesis": pl.String, ".estimate": pl.Float64, ".expected": pl.Float64,
    ".expected_lower": pl.Float64, ".expected_upper": pl.Float64, ".p_value": pl.Float64, ".n": pl.Int64,
    ".method": pl.String,
}  # fmt: skip


class DisparityTest(OuterGroupTest):
    """Tests whether groups are equal, by shuffling them; made by `disparity_test`."""

    def _tested(
        self,
        metric: GroupwiseMetric,
        rows: pl.DataFrame,
        texts: pl.Series,
        counts: list[Counts],
        random: np.random.Generator,
    ) -> pl.DataFrame:
        import numpy as np

        del texts
        names = list(dict.fromkeys(each.name for each in (*metric.metrics, *metric.less)))
        text = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} the same in all groups of {metric.by.text}"
        text += f" within {', '.join(column.name for column in self.within)}" if self.within else ""
        found = dict.fromkeys(_TESTED) | {".metric": metric.name, ".by": metric.by.text, ".hypothesis": text}
        if len(counts) and len(rows):
            values = compared_draws(metric, rows, counts, _drawn(metric, counts, self.times, random))
            observed = values["value"][-1]
            if observed is not None:
                shuffled = values[:-1].drop_nulls("value")
                bad, worse = shuffled["severity"].to_numpy(), values["severity"][-1]
                with np.errstate(invalid="ignore"):
                    alike = (bad == worse) | (np.abs(bad - worse) <= SAME)
                more, same = int(((bad > worse) & ~alike).sum()), int(alike.sum())
                p_value = (more + same / 2) / len(bad) if self.mid_p else (more + same + 1) / (len(bad) + 1)
                low, high = (shuffled["value"].quantile(end, "linear") for end in CENTRAL)
                about = {count.among: int(count.rows.sum()) for count in counts}
                found |= {
                    ".estimate": observed, ".expected": shuffled["value"].mean(), ".expected_lower": low,
                    ".expected_upper": high, ".p_value": p_value, ".n": sum(about.values()),
                    ".method": "permutation, mid-p" if self.mid_p else "permutation",
                }  # fmt: skip
        return pl.DataFrame([found], schema=_TESTED)


def _drawn(metric: GroupwiseMetric, counts: Sequence[Counts], times: int, random: np.random.Generator) -> list[Any]:
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


def compared_draws(
    metric: GroupwiseMetric, rows: pl.DataFrame, counts: Sequence[Counts], drawn: Sequence[Array]
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
        groupwise(metrics, "disparity_test"), columns_of(within), whole("times", 1, times), whole("seed", 0, seed),
        one_of("adjust", adjust, ADJUSTMENTS), cast("Any", one_of("family", family, FAMILIES)),
        flag("mid_p", mid_p),
    )  # fmt: skip

"""Groups of few rows: put together with a trail, or drawn to the others for display; and rows without a truth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation.group_cells import text_of
from tidyfair.inference.rate_tests import REFUSED_OF_RATES, RateTable, rate_table
from tidyfair.intervals.analytic import Quantities
from tidyfair.intervals.proportions import adjusted, difference_limits, fisher, z_value
from tidyfair.specs.arguments import is_value, text, whole
from tidyfair.specs.columns import Column
from tidyfair.specs.options import CallOptions, show_keywords
from tidyfair.specs.result_columns import refuse_reserved
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from typing import Unpack

    import numpy as np

    from tidyfair.metric_sets import GroupwiseMetric
    from tidyfair.specs.columns import ColumnLike

__all__ = ["lump_rare", "missing_truth", "shrunken_rates"]

_CONCENTRATIONS = 400
_LEVEL = 0.95
_SHRUNKEN = {
    ".metric": pl.String, ".by": pl.String, ".group": pl.String, ".estimator": pl.String, ".estimate": pl.Float64,
    ".raw": pl.Float64, ".weight": pl.Float64, ".n": pl.Int64,
}  # fmt: skip


def lump_rare(data: Any, column: str, min_n: int, *, other: str = "other", name: str | None = None) -> Any:
    """Put groups of fewer rows than `min_n` together, in a column beside the one they come from.

    Both columns stay, so that it can be seen who is in `other`; missing values stay missing.

    Args:
        data: A polars, pandas or pyarrow frame.
        column: The column of groups.
        min_n: The fewest rows of a group of its own.
        other: What the groups that are put together are called.
        name: What the new column is called, `<column>_lumped` unless given.

    Raises:
        ColumnError, ArgumentError: If there is a group of that name, or a column of the new one.

    >>> people = pl.DataFrame({"race": list("aaab")})
    >>> lump_rare(people, "race", 2)["race_lumped"].to_list()
    ['a', 'a', 'a', 'other']
    """
    min_n = whole("min_n", min_n, 1, of="lump_rare()")
    source = open_frame(data)
    frame, made = source.to_polars(), f"{column}_lumped" if name is None else text("name", name)
    text("other", other)
    Column.of(text("column", column), "column").check(frame.columns, "column")
    if made in frame.columns:
        msg = f"lump_rare(): there is a column {made!r} already; give another one, `name=`."
        raise ColumnError(msg)
    kind = frame.schema[column]
    if kind.is_nested() or isinstance(kind, pl.Object | pl.Binary):
        msg = f"lump_rare(): the column {column!r} is {kind}; groups are one plain value a row."
        raise ColumnError(msg)
    texts = text_of(frame[column])
    rare = frame.select((pl.len().over(column) < min_n) & pl.col(column).is_not_null()).to_series()
    if (texts.filter(~rare) == other).any():
        msg = f"lump_rare(): {other!r} is a group of its own; give those that are put together another name, `other=`."
        raise ArgumentError(msg)
    lumped = pl.select(pl.when(rare).then(pl.lit(other)).otherwise(texts)).to_series().alias(made)
    return source.restore(frame.with_columns(lumped))


@show_keywords(CallOptions, without=REFUSED_OF_RATES)
def shrunken_rates(
    metric: GroupwiseMetric, data: Any, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
    **options: Unpack[CallOptions],
) -> Any:  # fmt: skip
    """Draw the rates of groups to that of all, the more so the fewer rows they have: to be shown, not to be compared.

    Groups are taken to come from one beta distribution, whose mean is the rate of all rows and whose width is the
    likeliest one (an empirical Bayes estimate; Efron and Morris, 1975). A range of such rates is too small, so they
    feed no disparity and no gate.

    Returns:
        One row for each rate, group and outer group: the `.estimate`, `.estimator` `beta_binomial`, the `.raw` rate,
        the `.weight` that it has, and `.n` rows.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 0] * 50 + [1], "sex": ["f"] * 50 + ["m"] * 50 + ["x"]})
    >>> shown = shrunken_rates(demographic_parity("sex"), people, estimate="hired")
    >>> shown.select(".group", pl.col(".estimate").round(2), ".raw").rows()[-1]
    ('x', 0.5, 1.0)
    """

    def shrunken(table: RateTable) -> pl.DataFrame:
        import numpy as np

        rows, hits = table.denominator, table.numerator
        middle = hits.sum() / rows.sum()
        strength = _concentration(hits, rows, middle)
        weight = np.zeros(len(rows)) if math.isinf(strength) else rows / (rows + strength)
        return pl.DataFrame(
            {
                ".metric": [table.metric] * len(rows), ".by": [table.by] * len(rows), ".group": table.groups,
                ".estimator": ["beta_binomial"] * len(rows), ".estimate": weight * hits / rows + (1 - weight) * middle,
                ".raw": hits / rows, ".weight": weight, ".n": rows,
            },
            schema=_SHRUNKEN,
        )  # fmt: skip

    return rate_table(metric, shrunken, _SHRUNKEN, data, truth, estimate, options)


def _concentration(hits: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], middle: float) -> float:
    """How narrow the beta distribution of the rates of groups is; infinite if they vary no more than by chance."""
    import numpy as np

    if middle in (0, 1) or len(rows) < 2:
        return math.inf
    strengths = np.geomspace(0.05, 1e6, _CONCENTRATIONS)
    log_gamma = np.vectorize(math.lgamma)

    def likelihood(strength: float) -> float:
        a, b = strength * middle, strength * (1 - middle)
        of_groups = log_gamma(hits + a) + log_gamma(rows - hits + b) - log_gamma(rows + a + b)
        return float(of_groups.sum() + len(rows) * (math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)))

    values = [likelihood(float(each)) for each in strengths]
    best = int(np.argmax(values))
    return math.inf if best == len(values) - 1 else float(strengths[best])


def missing_truth(
    data: Any, truth: ColumnLike, estimate: ColumnLike, *, by: ColumnLike | None = None, positive: object = 1
) -> Any:
    """Ask whether the truth is missing more often where the estimate is negative (selective labels).

    Who is not selected is often not followed up: rates among rows with a truth are then about somebody else (Lakkaraju
    et al., 2017).

    Args:
        data: A polars, pandas or pyarrow frame.
        truth: Column of the truth, null where it is not known.
        estimate: Column of the predictions.
        by: The groups.
        positive: The label that selects.

    Returns:
        One row for each group: the shares without a truth where the estimate is positive and negative, their
        `.difference` with `.lower` and `.upper` (Newcombe's), `.p_value` (Fisher's) and `.p_adjusted` (Holm's).

    >>> people = pl.DataFrame({"paid": [1, 0, None, None], "lent": [1, 1, 0, 0]})
    >>> missing_truth(people, "paid", "lent").select(".missing_if_positive", ".missing_if_negative").row(0)
    (0.0, 1.0)
    """
    import numpy as np

    source = open_frame(data)
    named = {"truth": Column.of(truth, "truth"), "estimate": Column.of(estimate, "estimate")}
    named |= {"group": Column.of(by, "by")} if by is not None else {}
    refuse_reserved("by", [named["group"]] if by is not None else [])
    rows = source.read({name: (name, column) for name, column in named.items()})
    known = rows["estimate"].unique().to_list()
    if not is_value(positive) or positive not in known:
        msg = f"`positive`: {positive!r} is not among the predictions; name the label that selects."
        raise ArgumentError(msg)
    keys = ["group"] if by is not None else []
    missing, chosen = pl.col("truth").is_null(), pl.col("estimate") == pl.lit(positive)
    counted = {"hits": missing & chosen, "rows": chosen, "other hits": missing & ~chosen, "other rows": ~chosen}
    sums = [each.sum().cast(pl.Int64).alias(name) for name, each in counted.items()]
    known = rows.drop_nulls("estimate")
    table = known.group_by(keys).agg(sums).sort(keys, nulls_last=True) if keys else known.select(sums)
    table = table.filter((pl.col("rows") > 0) & (pl.col("other rows") > 0))
    hits, size, other_hits, other_size = (table[name].to_numpy() for name in counted)
    sides = [Quantities.of_counts(each, of.astype(float)) for each, of in ((hits, size), (other_hits, other_size))]
    z = z_value(_LEVEL)
    ends = difference_limits(sides[1].value, sides[1].limits(z), sides[0].value, sides[0].limits(z))
    tested = np.array(
        [fisher(*map(int, row)) for row in table.select("other hits", "other rows", "hits", "rows").rows()]
    )
    made = pl.DataFrame(
        {
            ".missing_if_positive": sides[0].value, ".missing_if_negative": sides[1].value,
            ".difference": sides[1].value - sides[0].value, ".lower": ends[0], ".upper": ends[1], ".p_value": tested,
            ".p_adjusted": adjusted(tested, "holm"), ".n": size + other_size,
        }
    )  # fmt: skip
    about = table.select(pl.col(each).alias(named["group"].name) for each in keys)
    return source.restore(pl.DataFrame([*about.get_columns(), *made.get_columns()]))

"""Small groups: lumped, or with shrunken rates for display; and rows without a truth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation.group_cells import text_of
from tidyfair.inference.rate_tests import REFUSED_OF_RATES, RateTable, rate_table
from tidyfair.intervals.proportions import adjusted, difference_limits, fisher, z_value
from tidyfair.intervals.quantities import Shares
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
_MISSING = ("missing", "size", "other missing", "other size")
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
        other: Name of the groups that are put together.
        name: Name of the new column, `<column>_lumped` unless given.

    Raises:
        ColumnError, ArgumentError: If there is a group of that name, or a column of the new one.

    >>> people = pl.DataFrame({"race": list("aaab")})
    >>> lump_rare(people, "race", 2)["race_lumped"].to_list()
    ['a', 'a', 'a', 'other']
    """
    min_n = whole("min_n", min_n, 1, of="lump_rare()")
    source = open_frame(data)
    frame, lumped = source.to_polars(), f"{column}_lumped" if name is None else text("name", name)
    text("other", other)
    Column.of(text("column", column), "column").check(frame.columns, "column")
    if lumped in frame.columns:
        msg = f"lump_rare(): there is a column {lumped!r} already; give another one, `name=`."
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
    values = pl.select(pl.when(rare).then(pl.lit(other)).otherwise(texts)).to_series()
    return source.restore(frame.with_columns(values.alias(lumped)))


@show_keywords(CallOptions, without=REFUSED_OF_RATES)
def shrunken_rates(
    metric: GroupwiseMetric, data: Any, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
    **options: Unpack[CallOptions],
) -> Any:  # fmt: skip
    """Shrink the rates of groups to the overall rate, the more so the fewer rows they have: for display.

    The rates come from one beta distribution, whose mean is the overall rate and whose width is the likeliest one (an
    empirical Bayes estimate; Efron and Morris, 1975). A range of such rates is too small, so they
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
    return rate_table(metric, _shrunken, _SHRUNKEN, data, truth, estimate, options)


def _shrunken(table: RateTable) -> pl.DataFrame:
    """The shrunken rates of the groups of an outer group."""
    import numpy as np

    rows, hits, groups = table.denominator, table.numerator, len(table.groups)
    overall = hits.sum() / rows.sum()
    concentration = _concentration(hits, rows, overall)
    weight = np.zeros(groups) if math.isinf(concentration) else rows / (rows + concentration)
    return pl.DataFrame(
        {
            ".metric": [table.metric] * groups, ".by": [table.by] * groups, ".group": table.groups,
            ".estimator": ["beta_binomial"] * groups, ".estimate": weight * hits / rows + (1 - weight) * overall,
            ".raw": hits / rows, ".weight": weight, ".n": rows,
        },
        schema=_SHRUNKEN,
    )  # fmt: skip


def _concentration(hits: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], middle: float) -> float:
    """The concentration of the beta distribution of rates; infinite if they vary no more than by chance."""
    import numpy as np

    if middle in (0, 1) or len(rows) < 2:
        return math.inf
    strengths = np.geomspace(0.05, 1e6, _CONCENTRATIONS)
    log_gamma = np.vectorize(math.lgamma)

    def likelihood(strength: float) -> float:
        a, b = strength * middle, strength * (1 - middle)
        of_groups = log_gamma(hits + a) + log_gamma(rows - hits + b) - log_gamma(rows + a + b)
        return float(of_groups.sum() + len(rows) * (math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)))

    values = [likelihood(float(strength)) for strength in strengths]
    best = int(np.argmax(values))
    return math.inf if best == len(values) - 1 else float(strengths[best])


def missing_truth(
    data: Any, truth: ColumnLike, estimate: ColumnLike, *, by: ColumnLike | None = None, positive: object = 1
) -> Any:
    """Test whether the truth is missing more often where the estimate is negative (selective labels).

    People who are not selected are often not followed up: rates among rows with a truth then describe another
    population (Lakkaraju et al., 2017).

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
    columns = {"truth": Column.of(truth, "truth"), "estimate": Column.of(estimate, "estimate")}
    keys: list[str] = []
    if by is not None:
        columns["group"] = Column.of(by, "by")
        keys = ["group"]
    refuse_reserved("by", [columns[key] for key in keys])
    rows = source.read({name: (name, column) for name, column in columns.items()})
    if not is_value(positive) or positive not in rows["estimate"].unique().to_list():
        msg = f"`positive`: {positive!r} is not among the predictions; name the label that selects."
        raise ArgumentError(msg)
    table = _missing_counts(rows, keys, positive)
    missing, size, other_missing, other_size = (table[name].to_numpy() for name in _MISSING)
    if_positive = Shares.of_counts(missing, size.astype(float))
    if_negative = Shares.of_counts(other_missing, other_size.astype(float))
    z = z_value(_LEVEL)
    lower, upper = difference_limits(if_negative.value, if_negative.limits(z), if_positive.value, if_positive.limits(z))
    counts = np.column_stack([other_missing, other_size, missing, size])
    p_values = np.array([fisher(*row) for row in counts.tolist()])
    result = pl.DataFrame(
        {
            ".missing_if_positive": if_positive.value, ".missing_if_negative": if_negative.value,
            ".difference": if_negative.value - if_positive.value, ".lower": lower, ".upper": upper,
            ".p_value": p_values, ".p_adjusted": adjusted(p_values, "holm"), ".n": size + other_size,
        }
    )  # fmt: skip
    groups = table.select(pl.col(key).alias(columns[key].name) for key in keys)
    return source.restore(pl.DataFrame([*groups.get_columns(), *result.get_columns()]))


def _missing_counts(rows: pl.DataFrame, keys: list[str], positive: object) -> pl.DataFrame:
    """The rows, and those without a truth, among positive and other predictions of each group that has both."""
    is_missing, is_positive = pl.col("truth").is_null(), pl.col("estimate") == pl.lit(positive)
    masks = (is_missing & is_positive, is_positive, is_missing & ~is_positive, ~is_positive)
    sums = [mask.sum().cast(pl.Int64).alias(name) for name, mask in zip(_MISSING, masks, strict=True)]
    predicted = rows.drop_nulls("estimate")
    table = predicted.group_by(keys).agg(sums).sort(keys, nulls_last=True) if keys else predicted.select(sums)
    return table.filter((pl.col("size") > 0) & (pl.col("other size") > 0))

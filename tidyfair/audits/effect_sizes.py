"""Effect sizes of numbers and scores: differences of means in standard deviations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, Status, listed, nearest
from tidyfair.intervals.proportions import z_value
from tidyfair.specs.arguments import number, one_of, proper_share, whole
from tidyfair.specs.columns import Column
from tidyfair.specs.groups import By, Unknown
from tidyfair.specs.options import refuse_unknown_keywords
from tidyfair.specs.result_columns import refuse_reserved
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.groups import Treatment
    from tidyfair.specs.options import OuterGroups

__all__ = ["standardized_differences"]

Spread = Literal["pooled", "reference", "all"]
_SPREADS = ("pooled", "reference", "all")
_LEAST = 2
"""Rows without which there is no standard deviation."""


@refuse_unknown_keywords
def standardized_differences(
    data: object,
    values: ColumnLike,
    *,
    by: ColumnLike | tuple[ColumnLike, ...] | list[ColumnLike | tuple[ColumnLike, ...]],
    to: object,
    spread: Spread = "pooled",
    corrected: bool = False,
    group_by: OuterGroups | None = None,
    unknown: Treatment = "apart",
    unknown_values: Iterable[object] | None = None,
    min_n: int = 0,
    min_share: float = 0.0,
    conf_level: float = 0.95,
) -> Any:
    """Compare the means of numbers or scores between groups, in standard deviations (Cohen's d and its kin).

    Args:
        data: The rows, as metrics take them.
        values: The column of numbers; rows without one do not count.
        by: The feature, or a list of them; a tuple is a crossing.
        to: The group that others are compared with, or a mapping of features to groups, `{"race": "White"}`.
        spread: The standard deviation: `"pooled"` of the two groups (Cohen's d), `"reference"` (Glass's delta), or
            `"all"` rows, those of unknown groups too.
        corrected: Correct the bias of small samples, as Hedges does.
        group_by: Outer groups, each of which is looked at on its own.
        unknown: What becomes of rows whose group is missing or unknown, as `compare_groups` has it.
        unknown_values: The values that mean unknown beside null.
        min_n: Groups of fewer rows are listed, but not compared.
        min_share: The same for groups with a smaller share of the rows.
        conf_level: Confidence level of the intervals, which are those of Hedges & Olkin (1985) for large samples.

    Returns:
        A row for each group: outer keys, `.by`, `.group`, `.n`, `.share`, `.mean`, `.reference`, `.spread`,
        `.disparity` (group less reference) with `.lower`, `.upper`, and `.status`.

    Raises:
        ColumnError: For a column that holds no numbers.
        ArgumentError: For a reference that does not occur.

    >>> people = pl.DataFrame({"score": [1.0, 2, 3, 3, 4, 5], "group": list("aaabbb")})
    >>> standardized_differences(people, "score", by="group", to="b").select(".group", ".disparity").rows()
    [('a', -2.0), ('b', 0.0)]
    """
    one_of("spread", spread, _SPREADS)
    z = z_value(proper_share("conf_level", conf_level))
    whole("min_n", min_n, 0)
    number("min_share", min_share, 0, 1)
    source = open_frame(data, group_by)
    if source.sides:
        msg = "standardized_differences(): `group_by` takes columns, and no privileged(…)."
        raise ArgumentError(msg)
    column = Column.of(values, "values")
    treatment = Unknown.of(unknown, unknown_values, "standardized_differences()")
    features = cast("list[Any]", by if isinstance(by, list) else [by])
    bys = [By.of(feature if isinstance(feature, tuple) else (feature,), "by", treatment) for feature in features]
    wanted = {"value": ("values", column)}
    outer: list[str] = []
    refuse_reserved("group_by", source.outer)
    for index, key in enumerate(source.outer):
        wanted[f"outer {index}"] = ("group_by", key)
        outer.append(f"outer {index}")
    for number_of_by, feature in enumerate(bys):
        for part, key in enumerate(feature.columns):
            wanted[f"by {number_of_by} {part}"] = ("by", key)
    rows = source.read(wanted)
    if not rows["value"].dtype.is_numeric():
        msg = f"`values`: the column {column.name!r} holds no numbers, which standardized_differences() compares."
        raise ColumnError(msg)
    rows = rows.with_columns(pl.col("value").cast(pl.Float64)).drop_nulls("value")
    rows = rows.sort(outer, nulls_last=True, maintain_order=True) if outer else rows
    parts: list[pl.DataFrame] = []
    for number_of_by, feature in enumerate(bys):
        keys = [f"by {number_of_by} {part}" for part in range(len(feature.columns))]
        reference = to.get(feature.text) if isinstance(to, Mapping) else to
        for _, own in rows.group_by(outer, maintain_order=True) if outer else [((), rows)]:
            groups = _groups(own, keys, feature).filter((pl.col(".n") > 0) & ((unknown != "drop") | ~pl.col("unknown")))
            status = _statuses(groups, min_n, min_share)
            compared = _compared(
                groups, status, reference, feature.text, own["value"].std(), spread, z, corrected=corrected
            )
            parts.append(own.select(outer).head(1).join(compared, how="cross") if outer else compared)
    if not parts:
        msg = "standardized_differences(): there are no rows with a value."
        raise ArgumentError(msg)
    names = {name: key.name for name, key in zip(outer, source.outer, strict=True)}
    return source.restore(pl.concat(parts).rename(names))


def _groups(rows: pl.DataFrame, keys: Sequence[str], by: By) -> pl.DataFrame:
    """The size, mean and variance of each group."""
    value = pl.col("value")
    groups = rows.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias(".n"), value.mean().alias(".mean"), value.var().alias("variance")
    )
    groups = groups.sort(keys, nulls_last=True)
    texts = [":".join("null" if part is None else str(part) for part in key) for key in groups.select(keys).rows()]
    mask = by.unknown.mask(groups.select(keys)) if by.unknown else pl.Series([False]).new_from_index(0, len(groups))
    total = groups[".n"].sum()
    return groups.select(
        pl.Series(".group", texts, dtype=pl.String), ".n", (pl.col(".n") / total).alias(".share"), ".mean", "variance",
        mask.alias("unknown"),
    )  # fmt: skip


def _statuses(groups: pl.DataFrame, min_n: int, min_share: float) -> list[str]:
    """The reasons why groups are not compared."""
    statuses: list[str] = []
    for size, share, unknown in groups.select(".n", ".share", "unknown").rows():
        status = Status.OK
        if unknown:
            status = Status.UNKNOWN
        elif size < min_n:
            status = Status.BELOW_MIN_N
        elif share < min_share:
            status = Status.BELOW_MIN_SHARE
        statuses.append(status.value)
    return statuses


def _compared(
    groups: pl.DataFrame, statuses: list[str], reference: object, by: str, overall: Any, spread: Spread, z: float,
    *, corrected: bool,
) -> pl.DataFrame:  # fmt: skip
    """The groups of a feature compared with one of them."""
    name = ":".join(map(str, reference)) if isinstance(reference, tuple) else str(reference)
    texts = groups[".group"].to_list()
    if reference is None or name not in texts:
        msg = (
            f"standardized_differences(): `to` names no group of {by!r}, but {reference!r}.{nearest(name, texts)} "
            f"The groups: {listed(texts)}."
        )
        raise ArgumentError(msg)
    position = texts.index(name)
    is_compared = statuses[position] == Status.OK.value
    _, other_n, _, other_mean, other_variance, _ = groups.row(position)
    numbers: list[tuple[float | None, ...]] = []
    for index, (_, size, _, mean, variance, _) in enumerate(groups.rows()):
        if index == position and is_compared:
            numbers.append((None, 0.0, None, None))
        elif not is_compared or statuses[index] != Status.OK.value:
            statuses[index] = Status.NO_REFERENCE.value if statuses[index] == Status.OK.value else statuses[index]
            numbers.append((None, None, None, None))
        else:
            deviation = _deviation(size, variance, other_n, other_variance, overall, spread)
            limits = _standardized(mean - other_mean, deviation, size, other_n, spread, z, corrected=corrected)
            if limits[0] is None:
                statuses[index] = Status.ZERO_DENOMINATOR.value
            numbers.append((deviation, *limits))
    columns = list(zip(*numbers, strict=True))
    shown = dict(zip((".spread", ".disparity", ".lower", ".upper"), columns, strict=True))
    return groups.drop("variance", "unknown").with_columns(
        pl.lit(name).alias(".reference"),
        *(pl.Series(column, values, dtype=pl.Float64) for column, values in shown.items()),
        pl.Series(".status", statuses, dtype=pl.String),
    ).insert_column(0, pl.Series(".by", [by]).new_from_index(0, len(groups)))  # fmt: skip


def _deviation(
    size: int, variance: float | None, other_n: int, other_variance: float | None, overall: float | None, spread: Spread
) -> float | None:
    """The standard deviation that a difference is measured in; None where there is none."""
    if spread == "all":
        return overall
    if spread == "reference":
        return None if other_variance is None else math.sqrt(other_variance)
    if size + other_n <= _LEAST:
        return None
    together = (size - 1) * (variance or 0.0) + (other_n - 1) * (other_variance or 0.0)
    return math.sqrt(together / (size + other_n - 2))


def _standardized(
    difference: float, deviation: float | None, size: int, other_n: int, spread: Spread, z: float, *, corrected: bool
) -> tuple[float | None, float | None, float | None]:
    """A standardized difference with its limits; None where there is no deviation."""
    freedom = other_n - 1 if spread == "reference" else size + other_n - 2
    if not deviation or freedom < 1:
        return None, None, None
    factor = 1 - 3 / (4 * freedom - 1) if corrected else 1.0
    value = factor * difference / deviation
    of_deviation = 2 * freedom if spread == "reference" else 2 * (size + other_n)
    error = factor * math.sqrt((size + other_n) / (size * other_n) + (difference / deviation) ** 2 / of_deviation)
    return value, value - z * error, value + z * error

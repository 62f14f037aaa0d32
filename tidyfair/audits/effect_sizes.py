"""Effect sizes of numbers and scores: differences of means in standard deviations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, Status, listed, nearest
from tidyfair.intervals.proportions import z_value
from tidyfair.specs.arguments import flag, number, one_of, proper_share, whole
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
    from tidyfair.tallies.source import Source

__all__ = ["standardized_differences"]

Spread: TypeAlias = Literal["pooled", "reference", "all"]
_SPREADS = ("pooled", "reference", "all")
_NUMBERS = (".spread", ".disparity", ".lower", ".upper")
_Numbers: TypeAlias = tuple[float | None, float | None, float | None, float | None]
_NO_NUMBERS: _Numbers = (None, None, None, None)


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
    flag("corrected", corrected)
    settings = _Settings(
        spread, corrected, z_value(proper_share("conf_level", conf_level)), whole("min_n", min_n, 0),
        number("min_share", min_share, 0, 1),
    )  # fmt: skip
    source = open_frame(data, group_by)
    if source.sides:
        msg = "standardized_differences(): `group_by` takes columns, and no privileged(…)."
        raise ArgumentError(msg)
    refuse_reserved("group_by", source.outer)
    treatment = Unknown.of(unknown, unknown_values, "standardized_differences()")
    bys = _features(by, treatment)
    rows = _read(source, Column.of(values, "values"), bys)
    outer = {f"outer {index}": key.name for index, key in enumerate(source.outer)}
    parts: list[pl.DataFrame] = []
    for index, feature in enumerate(bys):
        keys = [f"by {index} {part}" for part in range(len(feature.columns))]
        reference = _reference(rows, keys, feature, to)
        for own in rows.partition_by(list(outer), maintain_order=True) if outer else [rows]:
            compared = settings.compared(own, keys, feature, reference)
            parts.append(own.select(list(outer)).head(1).join(compared, how="cross") if outer else compared)
    return source.restore(pl.concat(parts).rename(outer))


def _features(by: Any, unknown: Unknown | None) -> list[By]:
    """The features whose groups are compared."""
    features = cast("list[Any]", by if isinstance(by, list) else [by])
    bys: list[By] = []
    for feature in features:
        columns = cast("tuple[Any, ...]", feature if isinstance(feature, tuple) else (feature,))
        bys.append(By.of(columns, "by", unknown))
    return bys


def _read(source: Source, values: Column, bys: Sequence[By]) -> pl.DataFrame:
    """The rows with a value: `value`, and the columns of outer groups and of features by their numbers."""
    wanted = {"value": ("values", values)}
    outer = [f"outer {index}" for index in range(len(source.outer))]
    wanted |= {name: ("group_by", key) for name, key in zip(outer, source.outer, strict=True)}
    for index, by in enumerate(bys):
        wanted |= {f"by {index} {part}": ("by", key) for part, key in enumerate(by.columns)}
    rows = source.read(wanted)
    if not rows["value"].dtype.is_numeric():
        msg = f"`values`: the column {values.name!r} holds no numbers, which standardized_differences() compares."
        raise ColumnError(msg)
    rows = rows.with_columns(pl.col("value").cast(pl.Float64)).drop_nulls("value")
    if rows.is_empty():
        msg = "standardized_differences(): there are no rows with a value."
        raise ArgumentError(msg)
    if rows["value"].is_infinite().any():
        msg = f"`values`: the column {values.name!r} holds infinite numbers, which have no mean."
        raise ColumnError(msg)
    return rows.sort(outer, nulls_last=True, maintain_order=True) if outer else rows


def _reference(rows: pl.DataFrame, keys: Sequence[str], by: By, to: Any) -> str:
    """The text of the group that those of a feature are compared with, which must occur."""
    named: Any = cast("Any", to).get(by.text) if isinstance(to, Mapping) else to
    parts = cast("tuple[Any, ...]", named if isinstance(named, tuple) else (named,))
    text = ":".join(map(str, parts))
    texts = _texts(rows.select(keys).unique().sort(keys, nulls_last=True))
    if named is None or text not in texts:
        msg = (
            f"standardized_differences(): `to` names no group of {by.text!r}, but {named!r}.{nearest(text, texts)} "
            f"The groups: {listed(texts)}."
        )
        raise ArgumentError(msg)
    return text


def _texts(keys: pl.DataFrame) -> list[str]:
    """Groups as results show them."""
    return [":".join("null" if part is None else str(part) for part in key) for key in keys.rows()]


@dataclass(frozen=True)
class _Settings:
    """The settings of a comparison of means."""

    spread: Spread
    corrected: bool
    z: float
    min_n: int
    min_share: float

    def compared(self, rows: pl.DataFrame, keys: Sequence[str], by: By, reference: str) -> pl.DataFrame:
        """The groups of a feature compared with one of them."""
        value = pl.col("value")
        summed = (pl.len().cast(pl.Int64).alias(".n"), value.mean().alias(".mean"), value.var().alias("variance"))
        groups = rows.group_by(keys).agg(summed).sort(keys, nulls_last=True)
        groups = groups.with_columns(
            (pl.col(".n") / pl.col(".n").sum()).alias(".share"),
            pl.Series(".group", _texts(groups.select(keys)), dtype=pl.String),
        )
        statuses = self._statuses(groups, keys, by)
        others = groups.filter((pl.col(".group") == reference) & (pl.Series(statuses) == Status.OK.value)).to_dicts()
        overall = cast("float | None", rows["value"].std())
        numbers: list[_Numbers] = []
        for index, group in enumerate(groups.to_dicts()):
            if statuses[index] != Status.OK.value:
                numbers.append(_NO_NUMBERS)
            elif not others:
                statuses[index] = Status.NO_REFERENCE.value
                numbers.append(_NO_NUMBERS)
            elif group[".group"] == reference:
                numbers.append((None, 0.0, None, None))
            else:
                numbers.append(self._standardized(group, others[0], overall))
                if numbers[-1] == _NO_NUMBERS:
                    statuses[index] = Status.ZERO_DENOMINATOR.value
        shown = pl.DataFrame(numbers, schema=dict.fromkeys(_NUMBERS, pl.Float64), orient="row")
        table = groups.select(pl.lit(by.text).alias(".by"), ".group", ".n", ".share", ".mean")
        table = table.with_columns(pl.lit(reference).alias(".reference"), *shown, pl.Series(".status", statuses))
        is_listed = by.unknown is None or by.unknown.is_listed
        return table if is_listed else table.filter(pl.col(".status") != Status.UNKNOWN.value)

    def _statuses(self, groups: pl.DataFrame, keys: Sequence[str], by: By) -> list[str]:
        """The reasons why groups are not compared."""
        none = pl.Series([False]).new_from_index(0, len(groups))
        unknown = by.unknown.mask(groups.select(keys)) if by.unknown else none
        status = pl.when(unknown).then(pl.lit(Status.UNKNOWN.value))
        status = status.when(pl.col(".n") < self.min_n).then(pl.lit(Status.BELOW_MIN_N.value))
        status = status.when(pl.col(".share") < self.min_share).then(pl.lit(Status.BELOW_MIN_SHARE.value))
        return groups.select(status.otherwise(pl.lit(Status.OK.value)).alias("status"))["status"].to_list()

    def _standardized(self, group: Mapping[str, Any], other: Mapping[str, Any], overall: float | None) -> _Numbers:
        """The deviation of two groups, and their standardized difference with its limits."""
        size, other_size = group[".n"], other[".n"]
        freedom = other_size - 1 if self.spread == "reference" else size + other_size - 2
        deviation = self._deviation(group, other, overall) if freedom > int(self.corrected) else None
        if not deviation:
            return _NO_NUMBERS
        factor = 1 - 3 / (4 * freedom - 1) if self.corrected else 1.0
        difference = (group[".mean"] - other[".mean"]) / deviation
        of_deviation = 2 * freedom if self.spread == "reference" else 2 * (size + other_size)
        error = factor * math.sqrt(1 / size + 1 / other_size + difference**2 / of_deviation)
        value = factor * difference
        return deviation, value, value - self.z * error, value + self.z * error

    def _deviation(self, group: Mapping[str, Any], other: Mapping[str, Any], overall: float | None) -> float | None:
        """The standard deviation that a difference is measured in."""
        if self.spread == "all":
            return overall
        if self.spread == "reference":
            return math.sqrt(other["variance"])
        freedom = group[".n"] - 1, other[".n"] - 1
        # one row has no variance, and no weight
        squares = freedom[0] * (group["variance"] or 0.0) + freedom[1] * (other["variance"] or 0.0)
        return math.sqrt(squares / sum(freedom))

"""Effect sizes of numbers and scores: differences of means in standard deviations, and ratios of quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import polars as pl

from tidyfair.calling import metric_set
from tidyfair.errors import ArgumentError, ColumnError, Status
from tidyfair.evaluation import UNGROUPED, GroupCells, rows_of
from tidyfair.inference.result_frames import with_outer_key
from tidyfair.inference.testing import with_adjusted_p_values
from tidyfair.intervals import student_limits, z_value
from tidyfair.metrics.regression import mean_prediction
from tidyfair.specs import (
    By,
    Column,
    ColumnLike,
    FeatureLike,
    Frame,
    Options,
    OuterGroups,
    Policy,
    Treatment,
    flag,
    one_of,
    proper_share,
    refuse_unknown_keywords,
)
from tidyfair.specs.result_kinds import QUANTILES, STANDARDIZED, ResultKind, with_level
from tidyfair.tallies import open_frame

__all__ = ["quantile_ratios", "standardized_differences"]

Spread: TypeAlias = Literal["pooled", "reference", "all"]
Adjustment: TypeAlias = Literal["holm", "bh", "by", "none"]
SPREADS = ("pooled", "reference", "all")
_SURE = 1 - 1e-12
"""The largest probability that has a finite number of standard errors."""
_Numbers: TypeAlias = dict[str, float | None]
_BY_VALUE = ("highest", "lowest", "majority")
"""References that are the group with such a value, or the largest group, of each outer group."""
_ADJUSTMENTS = ("holm", "bh", "by", "none")
_IN_WORDS = '"highest" or "lowest" (the group with that value), or "majority" (the largest group)'
_NUMBERS = (".spread", ".gap", ".disparity", ".lower", ".upper", ".std_error", ".p_value")
"""The columns of a comparison, of which each kind of result has some."""


@dataclass(frozen=True)
class Sample:
    """Numbers of a group: how many, their mean, and the sum of their squared distances from it.

    With weights, they are the effective number of rows (Kish, 1965), and as many squared distances as these.
    """

    size: float
    mean: float
    squares: float

    @classmethod
    def of(cls, rows: pl.DataFrame) -> Sample:
        """The size, mean and squares of rows with their weights."""
        counted = rows.filter(pl.col("weight") > 0)
        if counted.is_empty():
            return cls(0.0, math.nan, 0.0)
        value, weight = (counted[name].to_numpy() for name in ("value", "weight"))
        # constant numbers have no variance at all, not one of rounding errors
        is_constant = bool((value == value[0]).all())
        mean = float(value[0]) if is_constant else float(np.average(value, weights=weight))
        squares, square = float(weight @ (value - mean) ** 2), float(weight @ weight)
        return cls.weighted(mean, squares, float(weight.sum()), square)

    @classmethod
    def weighted(cls, mean: float, squares: float, weight: float, square: float) -> Sample:
        """The same from sums of squared distances, of weights, and of squared weights."""
        size = weight**2 / square if square else 0.0
        return cls(size, mean, squares * (size / weight) if weight else 0.0)

    @property
    def deviation(self) -> float | None:
        """The standard deviation; nothing of a single number."""
        return math.sqrt(self.squares / (self.size - 1)) if self.size > 1 else None


@dataclass(frozen=True)
class Standardization:
    """The standard deviation that differences of means are measured in, and whether its bias is corrected."""

    spread: Spread
    corrected: bool

    def compared(
        self, group: Sample, other: Sample, correlation: float, overall: float | None, z: float
    ) -> dict[str, float | None]:
        """The deviation, and the standardized difference with limits at z standard errors (Hedges & Olkin, 1985).

        Nothing without a deviation; `overall` is that of all rows. The means of groups that share rows have a
        `correlation`, and a deviation of both counts these rows twice.
        """
        freedom = other.size - 1 if self.spread == "reference" else group.size + other.size - 2
        if freedom <= int(self.corrected) or not (group.size and other.size):
            return {}
        deviation = overall
        if self.spread == "reference":
            deviation = other.deviation
        elif self.spread == "pooled":
            deviation = math.sqrt((group.squares + other.squares) / freedom)
        if not deviation:
            return {}
        factor = 1 - 3 / (4 * freedom - 1) if self.corrected else 1.0
        difference = (group.mean - other.mean) / deviation
        shared, sizes = 2 * correlation * math.sqrt(group.size * other.size), group.size + other.size
        of_deviation = 1 / (2 * freedom) if self.spread == "reference" else (1 + shared / sizes) / (2 * sizes)
        of_means = 1 / group.size + 1 / other.size - shared / (group.size * other.size)
        value, error = factor * difference, factor * math.sqrt(max(of_means + difference**2 * of_deviation, 0.0))
        if not error:
            # the same rows
            return {".spread": deviation, ".disparity": value}
        return {
            ".spread": deviation, ".disparity": value, ".lower": value - z * error, ".upper": value + z * error,
            ".std_error": error, ".p_value": two_sided(value, error),
        }  # fmt: skip


def welch(group: Sample, other: Sample, correlation: float, z: float) -> dict[str, float | None]:
    """The difference of means with Student's limits for unequal variances, and its test (Welch, 1947)."""
    from scipy.special import stdtr

    difference = group.mean - other.mean
    if min(group.size, other.size) <= 1 or not group.squares + other.squares:
        return {".disparity": difference}
    variances = [sample.squares / (sample.size - 1) / sample.size for sample in (group, other)]
    error = math.sqrt(max(sum(variances) - 2 * correlation * math.sqrt(variances[0] * variances[1]), 0.0))
    if not error:
        return {".disparity": difference}
    freedom = error**4 / (variances[0] ** 2 / (group.size - 1) + variances[1] ** 2 / (other.size - 1))
    half = float(student_limits(z, np.array([freedom]))[0]) * error
    return {
        ".disparity": difference, ".lower": difference - half, ".upper": difference + half, ".std_error": error,
        ".statistic": difference / error, ".df": freedom,
        ".p_value": 2 * float(stdtr(freedom, -abs(difference) / error)),
    }  # fmt: skip


@refuse_unknown_keywords
def standardized_differences(
    data: object,
    values: ColumnLike,
    *,
    by: FeatureLike | list[FeatureLike],
    to: object,
    spread: Spread = "pooled",
    corrected: bool = False,
    group_by: OuterGroups | None = None,
    case_weights: ColumnLike | None = None,
    unknown: Treatment = "apart",
    unknown_values: Iterable[object] | None = None,
    min_n: int = 0,
    min_share: float = 0.0,
    conf_level: float = 0.95,
    adjust: Adjustment = "holm",
) -> Frame:
    """Compare the means of numbers or scores between groups, in standard deviations (Cohen's d and its kin).

    Args:
        data: The rows, as metrics take them.
        values: The column of numbers; rows without one do not count.
        by: The feature, or a list of them; a tuple is a crossing. Limits of `memberships(…)` know whom groups share.
        to: The group that others are compared with; `"highest"` or `"lowest"`, the group with that mean; or
            `"majority"`, the largest group. A mapping gives each feature its own, `{"race": "White"}`.
        spread: The standard deviation: `"pooled"` of the two groups (Cohen's d), `"reference"` (Glass's delta), or
            `"all"` rows, those of unknown groups too.
        corrected: Correct the bias of small samples, as Hedges does.
        group_by: Outer groups, each of which is looked at on its own.
        case_weights: Column of weights, with which means and standard deviations are computed; limits count the
            effective number of rows (Kish, 1965).
        unknown: What becomes of rows whose group is missing or unknown, as `compare_groups` has it.
        unknown_values: The values that mean unknown beside null.
        min_n: Groups of fewer rows are listed, but not compared.
        min_share: The same for groups with a smaller share of the rows.
        conf_level: Confidence level of the intervals, which are those of Hedges & Olkin (1985) for large samples.
        adjust: The adjustment of p-values for their number, `"holm"`, `"bh"`, `"by"` or `"none"`.

    Returns:
        A row for each group: outer keys, `.by`, `.group`, `.n`, `.share`, `.mean`, `.reference`, `.spread`,
        `.disparity` (group minus reference) with `.lower`, `.upper` and `.std_error`, the `.p_value` that agrees with
        these limits, `.p_adjusted`, and `.status`.

    Raises:
        ColumnError: For a column that holds no numbers.
        AggregateError: For a reference that does not occur.

    >>> people = pl.DataFrame({"score": [1.0, 2, 3, 3, 4, 5], "group": list("aaabbb")})
    >>> standardized_differences(people, "score", by="group", to="b").select(".group", ".disparity").rows()
    [('a', -2.0), ('b', 0.0)]
    """
    one_of("spread", spread, SPREADS)
    standardization = Standardization(spread, flag("corrected", corrected))
    z = z_value(proper_share("conf_level", conf_level))

    def compare(every: pl.DataFrame, group: pl.DataFrame, other: pl.DataFrame) -> _Numbers:
        samples = Sample.of(group), Sample.of(other)
        influences = [pl.col("weight") * (pl.col("value") - sample.mean) for sample in samples]
        correlation = _correlation((group, other), influences)
        overall = Sample.of(every).deviation if spread == "all" else None
        return standardization.compared(*samples, correlation, overall, z)

    comparison = _Comparison(
        "standardized_differences", STANDARDIZED, ".mean",
        ((pl.col("value") * pl.col("weight")).sum() / pl.col("weight").sum()).fill_nan(None), {".disparity": 0.0},
        compare, Policy.of("standardized_differences()", min_n, min_share, unknown, unknown_values),
        one_of("adjust", adjust, _ADJUSTMENTS), conf_level, weights=Column.if_given(case_weights, "case_weights"),
    )  # fmt: skip
    return comparison.table(data, values, by, to, group_by)


@refuse_unknown_keywords
def quantile_ratios(
    data: object,
    values: ColumnLike,
    *,
    by: FeatureLike | list[FeatureLike],
    to: object,
    quantile: float = 0.5,
    group_by: OuterGroups | None = None,
    unknown: Treatment = "apart",
    unknown_values: Iterable[object] | None = None,
    min_n: int = 0,
    min_share: float = 0.0,
    conf_level: float = 0.95,
    adjust: Adjustment = "holm",
) -> Frame:
    """Compare the medians, or another quantile, of positive numbers between groups by their ratios.

    Args:
        data: The rows, as metrics take them.
        values: The column of numbers above 0, such as pay; rows without one do not count.
        by: The feature, or a list of them; a tuple is a crossing. Limits of `memberships(…)` know whom groups share.
        to: The group that others are compared with; `"highest"` or `"lowest"`, the group with that quantile; or
            `"majority"`, the largest group. A mapping gives each feature its own, `{"race": "White"}`.
        quantile: The share of the numbers that lie below; 0.5 is the median.
        group_by: Outer groups, each of which is looked at on its own.
        unknown: What becomes of rows whose group is missing or unknown, as `compare_groups` has it.
        unknown_values: The values that mean unknown beside null.
        min_n: Groups of fewer rows are listed, but not compared.
        min_share: The same for groups with a smaller share of the rows.
        conf_level: Confidence level of the intervals, which are those of Price & Bonett (2002): of logarithms, whose
            errors follow from the ranks that hold the quantile with a known probability.
        adjust: The adjustment of p-values for their number, `"holm"`, `"bh"`, `"by"` or `"none"`.

    Returns:
        A row for each group: outer keys, `.by`, `.group`, `.n`, `.share`, `.quantile` (interpolated between two
        numbers), `.reference`, `.disparity` (group over reference) with `.lower` and `.upper`, the `.p_value` that
        agrees with these limits, `.p_adjusted`, and `.status`. Limits and p-values are null where a group has too few
        rows to hold the quantile between two of them. A reference chosen by its value looks more extreme than it is.

    Raises:
        ColumnError: For a column that holds no numbers, or some that are not above 0.
        AggregateError: For a reference that does not occur.

    >>> people = pl.DataFrame({"pay": [10.0, 20, 30, 20, 40, 60], "group": list("aaabbb")})
    >>> quantile_ratios(people, "pay", by="group", to="b").select(".group", ".quantile", ".disparity").rows()
    [('a', 20.0, 0.5), ('b', 40.0, 1.0)]
    """
    share = proper_share("quantile", quantile)
    z = z_value(proper_share("conf_level", conf_level))

    def compare(_: pl.DataFrame, group: pl.DataFrame, other: pl.DataFrame) -> _Numbers:
        both = group["value"], other["value"]
        values = [cast("float", numbers.quantile(share, "linear")) for numbers in both]
        ratio = values[0] / values[1]
        errors = [_error_of_logarithm(numbers, share) for numbers in both]
        influences = [share - (pl.col("value") <= value).cast(pl.Float64) for value in values]
        shared = 2 * _correlation((group, other), influences) * errors[0] * errors[1]
        error = math.sqrt(max(errors[0] ** 2 + errors[1] ** 2 - shared, 0.0))
        # numbers that have not been seen to vary say nothing about how far they do
        if not error > 0:
            return {".disparity": ratio}
        ends = {".lower": ratio * math.exp(-z * error), ".upper": ratio * math.exp(z * error)}
        return {".disparity": ratio, **ends, ".p_value": two_sided(math.log(ratio), error)}

    comparison = _Comparison(
        "quantile_ratios", QUANTILES, ".quantile", pl.col("value").quantile(share, "linear"), {".disparity": 1.0},
        compare, Policy.of("quantile_ratios()", min_n, min_share, unknown, unknown_values),
        one_of("adjust", adjust, _ADJUSTMENTS), conf_level, is_relative=True,
    )  # fmt: skip
    return comparison.table(data, values, by, to, group_by)


def relative_gaps(
    kind: ResultKind, data: pl.DataFrame, values: Any, *, by: list[Any], to: object, value: pl.Expr,
    group_by: list[Any], policy: Policy,
) -> pl.DataFrame:  # fmt: skip
    """The gap of each group: 1 minus its value divided by that of the reference."""

    def compare(_: pl.DataFrame, group: pl.DataFrame, other: pl.DataFrame) -> _Numbers:
        own, reference = (rows.select(value).item() for rows in (group, other))
        return {".gap": 1 - own / reference} if reference else {}

    comparison = _Comparison("audit", kind, ".estimate", value, {".gap": 0.0}, compare, policy, None, 0.95)
    return comparison.table(data, values, by, to, group_by or None)


def _correlation(groups: Sequence[pl.DataFrame], influences: Sequence[pl.Expr]) -> float:
    """The correlation of the values of two groups by chance, from the influences of the rows that they share."""
    one, other = (group.select("row", own.alias("own")) for group, own in zip(groups, influences, strict=True))
    shared, variances = one.join(other, on="row"), [rows["own"].dot(rows["own"]) or 0.0 for rows in (one, other)]
    covariance = shared["own"].dot(shared["own_right"]) or 0.0
    return covariance / math.sqrt(variances[0] * variances[1]) if covariance else 0.0


def _error_of_logarithm(values: pl.Series, share: float) -> float:
    """The standard error of the logarithm of a quantile, from two of the numbers (Price & Bonett, 2002).

    They are two standard errors of a rank from that of the quantile, and hold it with a probability that the binomial
    distribution gives; nan where it is too small.
    """
    from scipy.special import betainc

    size = len(values)
    middle, reach = (size + 1) * share, 2 * math.sqrt(size * share * (1 - share))
    first, last = max(round(middle - reach), 1), min(round(middle + reach), size)
    ordered = values.sort()
    # the quantile lies between the two numbers if so many are below it
    held = float(betainc(first, size - first + 1, share) - betainc(last, size - last + 1, share))
    if first >= last or held <= 0:
        return math.nan
    deviations = 2 * NormalDist().inv_cdf((1 + min(held, _SURE)) / 2)
    return (math.log(ordered[last - 1]) - math.log(ordered[first - 1])) / deviations


def columns_of_features(by: Any) -> list[tuple[Any, ...]]:
    """The columns of each feature: of one, or of a list of them."""
    features = cast("list[Any]", by if isinstance(by, list) else [by])
    return [feature if isinstance(feature, tuple) else (feature,) for feature in features]


def groups_by_feature(to: Mapping[Any, object]) -> dict[object, object]:
    """The groups of a mapping from features to groups, by the texts of features, whose columns may be a tuple."""
    return {":".join(map(str, cast("Any", key))) if isinstance(key, tuple) else key: to[key] for key in to}


def two_sided(distance: float, error: float) -> float:
    """The two-sided p-value of a normal number."""
    return math.erfc(abs(distance) / error / math.sqrt(2))


@dataclass(frozen=True)
class _Comparison:
    """A number of each group, and how that of a group is compared with that of another."""

    function: str
    kind: ResultKind
    name: str
    """The column of the number."""
    value: pl.Expr
    """The number, as an expression over the values of a group."""
    equality: _Numbers
    """The comparison of a group with itself."""
    compare: Callable[[pl.DataFrame, pl.DataFrame, pl.DataFrame], _Numbers]
    """The comparison of two groups, by all rows, and those of both; nothing where there is none."""
    policy: Policy
    adjust: str | None
    """The adjustment of p-values; None for comparisons that have none."""
    conf_level: float
    is_relative: bool = False
    """True if it divides, so that values are above 0."""
    weights: Column | None = None

    def table(self, data: object, values: ColumnLike, by: Any, to: Any, group_by: OuterGroups | None) -> Any:
        """A row for each group of each feature, in a frame of the caller's kind."""
        source = open_frame(data, group_by)
        features = self._features(by)
        if source.sides:
            msg = f"{self.function}(): `group_by` takes columns, not privileged(…)."
            raise ArgumentError(msg)
        parts: list[pl.DataFrame] = []
        numbers = with_numbers(self.function, data, values, features, group_by, self.weights)
        for feature, (cells, rows) in numbers.items():
            if self.is_relative and (rows["value"] <= 0).any():
                msg = (
                    f"`values`: a ratio compares numbers above 0, and {Column.of(values, 'values').name!r} holds "
                    f"{rows['value'].min()}; take differences of means, `standardized_differences(…)`."
                )
                raise ColumnError(msg)
            reference = self._reference(cells, to, feature)
            keys = cells.outer_keys.drop(UNGROUPED, strict=False)
            for (outer,), own in rows.group_by("outer", maintain_order=True):
                compared = self._compared(own, feature, cells.text, reference)
                parts.append(with_outer_key(keys, cast("int", outer), compared))
        table = pl.concat(parts)
        if self.adjust is not None:
            table = with_adjusted_p_values(table, [], self.adjust)
        return source.restore(with_level(self.kind.frame(table), self.conf_level))

    def _features(self, by: Any) -> list[By]:
        """The features whose groups are compared."""
        given = columns_of_features(by)
        if not given or not all(given):
            msg = f'{self.function}() compares the groups of a feature: `by="column"`, or a list of features.'
            raise ArgumentError(msg)
        features = [By.of(columns, self.function, self.policy) for columns in given]
        for feature in features:
            if feature.sides:
                msg = f"{self.function}(): `by` takes columns, not privileged(…)."
                raise ArgumentError(msg)
            if features.count(feature) > 1:
                msg = f"{self.function}(): `by` names {feature.text!r} twice."
                raise ArgumentError(msg)
        return features

    def _reference(self, cells: GroupCells, to: Any, by: By) -> str | list[int]:
        """The rule by which the reference is chosen, or the group cells of a named group."""
        named = groups_by_feature(cast("Mapping[Any, object]", to)).get(by.text) if isinstance(to, Mapping) else to
        if named in _BY_VALUE:
            return cast("str", named)
        if named is None:
            msg = f"{self.function}(): `to` has no reference for {by.text!r}; write `to={{{by.text!r}: …}}`."
            raise ArgumentError(msg)
        return cells.find(by, named, f"{self.function}()", _IN_WORDS)

    def _reference_among(
        self, groups: pl.DataFrame, compared: list[int], reference: str | list[int]
    ) -> tuple[int | None, int | None]:
        """The index of the group that others are compared with, if there is one that may be, and its group cell."""
        if not isinstance(reference, str):
            return next((group for group in compared if groups["cell"][group] in reference), None), reference[0]
        if not compared:
            return None, None
        values = groups[".n" if reference == "majority" else self.name].gather(compared)
        index = compared[(values.arg_min() if reference == "lowest" else values.arg_max()) or 0]
        return index, groups["cell"][index]

    def _compared(self, rows: pl.DataFrame, by: By, texts: pl.Series, reference: str | list[int]) -> pl.DataFrame:
        """The groups of a feature compared with one of them, or with none where that may not be compared."""
        every, of_group = rows.unique("row", maintain_order=True), pl.struct("row", "value", "weight").alias("rows")
        counted = (pl.len().cast(pl.Int64).alias(".n"), self.value.alias(self.name), of_group)
        groups = rows.group_by("cell", "status").agg(counted).sort("cell")
        groups = groups.with_columns((pl.col(".n") / len(every)).alias(".share"))
        status = pl.when(pl.col("status").is_not_null()).then("status")
        status = status.when(pl.col(".n") < by.policy.min_n).then(pl.lit(Status.BELOW_MIN_N.value))
        status = status.when(pl.col(".share") < by.policy.min_share).then(pl.lit(Status.BELOW_MIN_SHARE.value))
        statuses = groups.select(status.otherwise(pl.lit(Status.OK.value))).to_series().to_list()
        compared = [group for group, name in enumerate(statuses) if name == Status.OK.value]
        index, cell = self._reference_among(groups, compared, reference)
        text = None if cell is None else texts[cell]
        numbers: list[_Numbers] = [{} for _ in statuses]
        for group in compared:
            if index is None:
                statuses[group] = Status.NO_REFERENCE.value
            elif group == index:
                numbers[group] = self.equality
            else:
                numbers[group] = self.compare(every, *(groups["rows"][one].struct.unnest() for one in (group, index)))
                statuses[group] = Status.OK.value if numbers[group] else Status.ZERO_DENOMINATOR.value
        names = [name for name in self.kind.columns if name in _NUMBERS]
        table = groups.select(
            pl.lit(by.text).alias(".by"), texts[groups["cell"]].alias(".group"), ".n", ".share", self.name,
            pl.lit(text, dtype=pl.String).alias(".reference"),
            *(pl.Series(name, [row.get(name) for row in numbers], dtype=pl.Float64) for name in names),
            pl.Series(".status", statuses, dtype=pl.String),
        )  # fmt: skip
        return table.filter(pl.col(".status") != Status.UNKNOWN.value) if by.policy.unknown == "drop" else table


def with_numbers(
    function: str, data: object, values: ColumnLike | Column, features: Iterable[By], group_by: Any,
    weights: Column | None = None,
) -> dict[By, tuple[GroupCells, pl.DataFrame]]:  # fmt: skip
    """The group cells of features, and the rows with a value, each once for each of its groups.

    They have an `outer` group and a `cell`, whose `status` says why it is not compared, a `row`, `value` and `weight`.
    """
    # any metric of numbers counts the rows with a value
    metrics = metric_set(*(replace(mean_prediction.difference("by"), name=function, by=by) for by in features))
    options: dict[str, Any] = {} if weights is None else {"case_weights": weights}
    estimate: Any = Column.of(values, "values")
    try:
        tally = metrics.tally(data, estimate=estimate, group_by=group_by, keep_rows=True, **options)
    except ColumnError as error:
        # the caller has named them `values`
        raise ColumnError(str(error).replace("`estimate`", "`values`", 1)) from error
    found: dict[By, tuple[GroupCells, pl.DataFrame]] = {}
    for evaluated in metrics.run.evaluate(tally, Options(on_undefined="ignore")):
        cells = evaluated.group_cells
        status = pl.when(pl.Series(cells.unknown)).then(pl.lit(Status.UNKNOWN.value))
        status = status.when(pl.Series(cells.excluded)).then(pl.lit(Status.LEFT_OUT.value))
        statuses = pl.select(status).to_series()
        for by, (first, _) in cells.spans.items():
            kept = rows_of(evaluated.evaluator.tally, evaluated.labels, cells, by, frozenset({"estimate"}))
            value, *weight = kept.frame.get_columns()
            cell = kept.group_cell + first
            row = np.arange(len(value)) if kept.clusters is None else kept.clusters.to_series()
            columns: dict[str, Any] = {"row": row, "value": value, "weight": weight[0] if weight else 1.0}
            columns |= {"outer": cells.outer[cell], "cell": cell, "status": statuses[cell]}
            found[cast("By", by)] = cells, pl.DataFrame(columns).sort("outer", maintain_order=True)
    if all(rows.is_empty() for _, rows in found.values()):
        msg = f"{function}(): there are no rows with a value."
        raise ArgumentError(msg)
    return {by: found[by] for by in features}

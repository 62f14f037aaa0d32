"""Searches for unfair subgroups: all conjunctions of features, and halves of their space; certificates; calibration.

A certificate is an upper bound on how much worse any subgroup is than all others, simultaneous for all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar, Unpack

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric, MetricSet, Run, metric_set
from tidyfair.errors import ArgumentError, Status, in_short
from tidyfair.evaluation import GROUP_CELL, OUTSIDE, Evaluated, texts_of
from tidyfair.inference.on_data import AUDITED, RateOnData, accepting
from tidyfair.inference.rate_tests import with_adjusted_p_values
from tidyfair.inference.result_frames import Content, frame_of, outer_keys_of, schema_of
from tidyfair.intervals import (
    brownian_range_quantile,
    brownian_range_tail,
    check_shuffled,
    clopper_pearson,
    generator,
    in_progress,
    placed,
)  # fmt: skip
from tidyfair.metrics.probability import (
    calibration_in_the_large,
    cumulative_calibration_error,
    cumulative_calibration_error_if_calibrated,
    mean_score,
)  # fmt: skip
from tidyfair.specs import (
    Array,
    CallOptions,
    Column,
    ColumnLike,
    Memberships,
    Options,
    Policy,
    Treatment,
    are_columns,
    check_features,
    proper_share,
    refuse_unknown_keywords,
    show_keywords,
    whole,
)
from tidyfair.specs.formulas import SumFormula
from tidyfair.specs.result_kinds import CERTIFICATE, HALVES, MISCALIBRATION, SUBGROUPS, ResultKind
from tidyfair.tallies import Source, Tally

__all__ = [
    "LinearSubgroup", "MulticalibrationTest", "SubgroupCertificate", "SubgroupSearch", "certify_subgroups",
    "linear_subgroup", "multicalibration_test", "subgroup_search",
]  # fmt: skip

_SAME = 1e-9
"""Statistics that differ by less, relative to their size, are ties: the same counts in another order."""
_DUST = 1e-12
"""Fitted rates that are nearer to the overall rate are on neither side."""
_TIMES = 2_000
"""The usual number of permutations of a search."""
_MOST_NUMBERS = 2**20
"""The most numbers in one step, so that they stay in the cache."""
_FEW_ROWS = 16
"""The most rows for each combination at which it is faster to draw rows than counts of combinations."""
_SPLITS = 24
"""Steps in which the error is split between a subgroup and the rest; more make limits narrower by less than 1%."""
_RATES = "fall_out, miss_rate, selection_rate or accuracy; {} is not a share of rows"
_RATES_OR_CALIBRATION = "fall_out, miss_rate or accuracy, or calibration_in_the_large of scores, not {}"
"""What searches and certificates take, with the name of a metric that is nothing of the kind."""
_TEXT, _TESTS = "\0text", "\0tests"
_MEAN_RANGE = math.sqrt(8 / math.pi)
"""The mean range of a Brownian motion."""
_ROUNDED = 1e-12
"""An error of rounding, where scores of 0 and 1 leave nothing to chance."""
_SLOPE_DIGITS, _CENTER_DIGITS = 4, 10
"""Significant digits in the text of a linear subgroup."""
_LIMITS = schema_of(SUBGROUPS, without=".rest .share .p_value .p_adjusted")
_CERTIFIED = accepting(f"{AUDITED} conf_level")


@dataclass(frozen=True)
class _Combinations:
    """The combinations of features that occur in an outer group, and the counts of their rows."""

    numerator: Array
    denominator: Array
    keys: pl.DataFrame
    rows: Array
    """All rows, those outside the denominator included."""
    texts: Mapping[str, pl.DataFrame]
    """The values of each feature, and their texts in results, which are those of all outer groups."""
    outer: tuple[Any, ...]
    """The key of the outer group."""
    scores: Array | None = None
    """The sums of scores, where these are compared with the numerators."""


@dataclass(frozen=True, repr=False)
class SubgroupAudit(RateOnData):
    """A rate, and the features whose combinations are searched in each outer group, as a callable on dataframes.

    Options: `probs`, one `threshold`, `group_by`, `pos_label` and `labels`, as for a metric; no weights.
    """

    subject: ClassVar[str] = "A search"
    accepted: ClassVar[type[Any]] = accepting(AUDITED)
    features: tuple[Column, ...]

    def _audit(self, combinations: _Combinations, options: Options) -> Content:
        """The results of an outer group."""
        # each search has its own; this class is never made
        raise NotImplementedError

    @property
    def _features(self) -> Iterable[Column]:
        return self.features

    def _check_source(self, source: Source) -> None:
        for column in self.features:
            column.check(source.columns, "features")

    def _tables(self, evaluated: Evaluated, options: Options) -> Iterable[Content]:
        return (self._audit(combinations, options) for combinations in self._combinations(evaluated))

    def _combinations(self, evaluated: Evaluated) -> list[_Combinations]:
        """The combinations of features in each outer group."""
        rows, keys = evaluated.rows.sort(GROUP_CELL), self._keys(evaluated)
        denominator = rows["denominator"].fill_null(0).to_numpy().astype(float)
        numerator = rows["estimate"].fill_null(0.0).to_numpy() * denominator
        if self.metric.kind == "class":
            numerator = numerator.round()
        size = rows["rows"].to_numpy().astype(float)
        texts = {name: keys.select(name, texts_of(keys.select(name)).alias(_TEXT)).unique() for name in keys.columns}
        combinations: list[_Combinations] = []
        for outer, key in enumerate(outer_keys_of(evaluated).rows() or [()]):
            index = (rows["outer"] == outer).to_numpy().nonzero()[0]
            counts = numerator[index], denominator[index], keys[index], size[index]
            combinations.append(_Combinations(*counts, texts, key))
        return combinations


@dataclass(frozen=True, repr=False)
class SubgroupSearch(SubgroupAudit):
    """A search through all conjunctions of features, as a callable on dataframes; made by `subgroup_search`.

    Returns a frame of the caller's kind, sorted within each outer group by the distance of a subgroup's rate from that
    of all other rows in standard errors (not by `.difference`); ties keep the order of the features, and subgroups that
    are not searched come last. Columns: the outer keys, `.metric`, `.subgroup`, `.depth` (number of features),
    `.estimate`, `.rest` (the rate of all other rows), `.difference`, `.n` rows, `.denominator`, `.share` of all rows,
    `.p_value`, `.p_adjusted` and `.status`.
    """

    kind: ClassVar[ResultKind] = SUBGROUPS
    accepted: ClassVar[type[Any]] = accepting(f"{AUDITED} times seed")
    without: ClassVar[str] = ".compared_with .upper"
    depth: int
    policy: Policy

    def _audit(self, combinations: _Combinations, options: Options) -> pl.DataFrame:
        conjunctions = _Conjunctions(combinations, self.depth, self.policy)
        searched = conjunctions.status == Status.OK
        denominator = np.where(searched, conjunctions.denominator, 0)
        statistic = _standardised(
            conjunctions.numerator, conjunctions.denominator, conjunctions.total, conjunctions.total_numerator
        )
        p_value, p_adjusted = _p_values_of_search(combinations, conjunctions, denominator, statistic, options)
        rate, rest = conjunctions.rates()
        table = conjunctions.table(self.metric, self._schema, {
            ".estimate": rate, ".rest": rest, ".difference": rate - rest,
            ".share": conjunctions.rows / max(combinations.rows.sum(), 1),
            ".p_value": np.where(searched, p_value, np.nan), ".p_adjusted": np.where(searched, p_adjusted, np.nan),
        })  # fmt: skip
        in_order = np.lexsort((np.arange(len(searched)), -statistic, ~searched))
        return conjunctions.listed(table[in_order])


def _p_values_of_search(
    combinations: _Combinations,
    conjunctions: _Conjunctions,
    denominator: Array,
    statistic: Array,
    options: Options,
) -> tuple[Array, Array]:
    """The p-values of each subgroup alone, and among all that are searched, from outcomes that are permuted."""
    # an outer group has its own numbers, whatever others there are
    random, times = generator(options.seed, repr([combinations.outer])), options.times or _TIMES
    rows, events = combinations.denominator.sum(), combinations.numerator.sum()
    needed = statistic * (1 - _SAME)
    reached, largest = np.ones(len(denominator)), np.ones(len(denominator))
    # the numbers of a draw in all tables
    numbers = sum(map(len, conjunctions.combinations.values()))
    step = max(1, _MOST_NUMBERS // max(numbers, 1))
    check_shuffled(int(rows))
    # both methods draw from the same distribution; one costs rows, the other combinations
    method = "count" if rows <= _FEW_ROWS * len(combinations.denominator) else "marginals"
    for start in in_progress(range(0, times, step), "shuffling"):
        size = min(step, times - start)
        drawn = random.multivariate_hypergeometric(
            combinations.denominator.astype(np.int64), round(events), size=size, method=method
        )
        # a subgroup that is not searched has a denominator of 0, and so a statistic of 0
        hits = conjunctions.sums(drawn)
        statistics = _standardised(hits, denominator, conjunctions.total, conjunctions.totals(hits))
        reached += (statistics >= needed).sum(axis=0)
        largest += size - np.searchsorted(np.sort(statistics.max(axis=1, initial=0)), needed)
    return reached / (times + 1), largest / (times + 1)


@dataclass(frozen=True, repr=False)
class LinearSubgroup(SubgroupAudit):
    """A search through halves of the space of features, as a callable on dataframes; made by `linear_subgroup`.

    Returns a frame of the caller's kind with two rows for each outer group, the one with the lower fitted rate first:
    the outer keys, `.metric`, `.subgroup` (the condition), `.estimate`, `.overall` (the rate of all rows),
    `.violation` (their distance times `.share`), `.denominator` (rows of the half in the denominator of the rate),
    `.share` (of these among all rows) and `.status`.
    """

    kind: ClassVar[ResultKind] = HALVES

    def _audit(self, combinations: _Combinations, options: Options) -> Content:  # noqa: ARG002 - none is needed
        names = combinations.keys.columns
        check_features(combinations.keys, {name: name for name in names}, "a linear threshold needs")
        counted = combinations.denominator > 0
        denominator, numerator = combinations.denominator[counted], combinations.numerator[counted]
        if not len(denominator):
            empty = {".metric": self.metric.name, ".denominator": 0, ".share": 0.0, ".status": Status.ZERO_DENOMINATOR}
            return [empty, empty]
        overall = numerator.sum() / denominator.sum()
        points = combinations.keys.select(pl.all().cast(pl.Float64)).to_numpy()[counted]
        slopes, middle = _linear_fit(points, denominator, numerator)
        fitted = ((points - middle) * slopes).sum(axis=1)
        terms = [
            f"{slope:.{_SLOPE_DIGITS}g} ({name} - {center:.{_CENTER_DIGITS}g})"
            for name, slope, center in zip(names, slopes, middle, strict=True)
        ]
        fit = " + ".join(terms).replace("+ -", "- ").replace("- -", "+ ")
        rows: list[dict[str, object]] = []
        for sign, relation in ((-1, "<"), (1, ">")):
            inside = sign * fitted > _DUST
            size = denominator[inside].sum()
            share = size / combinations.rows.sum()
            row: dict[str, object] = {
                ".metric": self.metric.name, ".overall": overall, ".violation": 0.0, ".denominator": int(size),
                ".share": share, ".status": Status.NOBODY,
            }  # fmt: skip
            if size:
                rate = numerator[inside].sum() / size
                violation = abs(rate - overall) * share
                row |= {".subgroup": f"{fit} {relation} 0", ".estimate": rate, ".violation": violation}
                row[".status"] = Status.OK
            rows.append(row)
        return rows


def _linear_fit(points: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
    """The weighted least squares fit of the rate: its slopes, and a point at which it is the overall rate."""
    # scaled to 0 to 1 and centered, so that no direction is lost to rounding
    low, width = points.min(axis=0), np.ptp(points, axis=0)
    width = np.where(width > 0, width, np.inf)
    scaled = (points - low) / width
    middle = np.average(scaled, axis=0, weights=denominator)
    root = np.sqrt(denominator)[:, None]
    residual = (numerator / denominator - numerator.sum() / denominator.sum())[:, None]
    fit: Any = np.linalg.lstsq
    slopes, *_ = fit((scaled - middle) * root, residual * root, rcond=None)
    return slopes[:, 0] / width, low + middle * np.where(np.isfinite(width), width, 0)


@dataclass(frozen=True)
class SubgroupCertificate(SubgroupAudit):
    """A bound for all conjunctions of features, as a callable on dataframes; made by `certify_subgroups`.

    Returns a frame of the caller's kind with one row for each outer group. Columns: the outer keys, `.metric`, the
    certified `.epsilon`, the `.subgroup` that determines it, whose `.estimate` is compared with `.compared_with` (the
    rate of all others, or its own mean score), their `.difference` in the unfavorable direction, the `.denominator` of
    the subgroup, the numbers of conjunctions `.searched` and `.not_searched` (fewer than `.min_n` rows in the
    denominator, or unknown people), the `.conf_level`, and `.status`. If no conjunction is searched, `.epsilon` is
    null, and `.status` gives the reason.
    """

    kind: ClassVar[ResultKind] = CERTIFICATE
    accepted: ClassVar[type[Any]] = _CERTIFIED
    depth: int
    policy: Policy

    @show_keywords(_CERTIFIED)
    def by_subgroup(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Return simultaneous limits for all conjunctions; the largest `.upper` is the certified bound.

        Returns:
            One row for each conjunction, those with the largest `.upper` first and those not searched last.
        """
        every_limit = _LimitsOfAll(self.metric, self.features, self.depth, self.policy)
        return every_limit(data, truth, estimate, **options)

    @property
    def _counted(self) -> Metric | MetricSet:
        is_rate = self.metric.kind == "class"
        return self.metric if is_rate else metric_set(calibration_in_the_large, mean_score)

    def _combinations(self, evaluated: Evaluated) -> list[_Combinations]:
        combinations_of = super()._combinations
        if self.metric.kind == "class":
            return combinations_of(evaluated)
        excess, scores = (
            combinations_of(evaluated.with_rows(evaluated.rows.filter(pl.col("metric") == number))) for number in (0, 1)
        )
        return [
            replace(total, numerator=(total.numerator - above.numerator).round(), scores=total.numerator)
            for above, total in zip(excess, scores, strict=True)
        ]

    def _audit(self, combinations: _Combinations, options: Options) -> Content:
        limits = self._limits(combinations, options)
        searched = limits.filter(pl.col(".status") == Status.OK.value)
        shared = {
            ".searched": len(searched),
            ".not_searched": int((limits[".status"].is_in(OUTSIDE) | (limits[".denominator"] == 0)).sum()),
            ".min_n": self.policy.min_n, ".conf_level": options.conf_level,
        }  # fmt: skip
        if searched.is_empty():
            found_reasons = set(limits[".status"])
            # of several reasons, the one that concerns most rows
            reasons = (
                Status.BELOW_MIN_N, Status.BELOW_MIN_SHARE, Status.NO_OTHER_GROUP, Status.ZERO_DENOMINATOR,
                Status.UNKNOWN,
            )  # fmt: skip
            reason = next((reason for reason in reasons if reason in found_reasons), Status.NO_GROUPS)
            return shared | {".metric": self.metric.name, ".status": reason}
        return searched.rename({".upper": ".epsilon"}).row(0, named=True) | shared

    def _limits(self, combinations: _Combinations, options: Options) -> pl.DataFrame:
        """The upper limits of all conjunctions that are searched, the largest first."""
        conjunctions = _Conjunctions(combinations, self.depth, self.policy)
        searched = conjunctions.status == Status.OK
        error = (1 - options.conf_level) / max(int(searched.sum()), 1)
        rate, other = conjunctions.rates()
        # the sign of a difference toward the bad side
        badness = 1 if self.metric.direction == "minimize" else -1
        upper = np.full(len(searched), math.nan)
        hits, size = conjunctions.numerator[searched], conjunctions.denominator[searched]
        if combinations.scores is not None:
            differences = np.abs(rate - other)
            # events whose probabilities differ from row to row are no more spread than those of one probability with
            # the same mean, beyond one event from it (Hoeffding, 1956): exact limits hold if they are one event away
            lowest, highest = clopper_pearson(hits / size, size, error / 2)
            highest = np.maximum(highest, np.minimum(hits + 1, size) / size)
            lowest = np.minimum(lowest, np.maximum(hits - 1, 0) / size)
            upper[searched] = np.maximum(highest - other[searched], other[searched] - lowest)
        else:
            differences = badness * (rate - other)
            other_hits = conjunctions.total_numerator[searched] - hits
            other_size = conjunctions.total[searched] - size
            if badness < 0:
                hits, other_hits = size - hits, other_size - other_hits
            upper[searched] = _excess(hits, size, other_hits, other_size, error)
        table = conjunctions.table(self.metric, _LIMITS, {
            ".estimate": rate, ".compared_with": other, ".difference": np.where(searched, differences, math.nan),
            ".upper": upper,
        })  # fmt: skip
        return conjunctions.listed(table.sort(".upper", descending=True, nulls_last=True, maintain_order=True))


@dataclass(frozen=True)
class _LimitsOfAll(SubgroupCertificate):
    """The limits of all conjunctions."""

    kind: ClassVar[ResultKind] = SUBGROUPS
    without: ClassVar[str] = ".rest .share .p_value .p_adjusted"

    def _audit(self, combinations: _Combinations, options: Options) -> pl.DataFrame:
        return self._limits(combinations, options)


@dataclass(frozen=True, repr=False)
class MulticalibrationTest(SubgroupAudit):
    """A test of calibration in subgroups, as a callable on dataframes; made by `multicalibration_test`."""

    subject: ClassVar[str] = "multicalibration_test()"
    kind: ClassVar[ResultKind] = MISCALIBRATION
    follows: ClassVar[frozenset[str]] = frozenset({"unknown"})
    accepted: ClassVar[type[Any]] = accepting(
        "probs group_by case_weights frequency_weights pos_label labels conf_level"
    )
    depth: int
    policy: Policy
    power: float

    @cached_property
    def _errors(self) -> MetricSet:
        """The error of all rows and of each subgroup, and that by chance."""
        metrics = (self.metric, cumulative_calibration_error_if_calibrated)
        sizes = range(1, min(self.depth, len(self.features)) + 1)
        subsets = [columns for size in sizes for columns in itertools.combinations(self.features, size)]
        members: list[Metric | GroupwiseMetric] = [*metrics]
        for columns, metric in itertools.product(subsets, metrics):
            members.append(metric.difference(*(column.source for column in columns)).with_policy(self.policy))
        return metric_set(*members)

    @property
    def _run(self) -> Run:
        return self._errors.run

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        groups = self._run.groups_of(tally, options).drop(".level", ".estimator", ".denominator")
        is_error = pl.col(".metric") == self.metric.name
        by_chance = groups.filter(~is_error)[".estimate"].alias(".std_error") / _MEAN_RANGE
        table = groups.filter(is_error).with_columns(by_chance)
        if self.policy.unknown == "drop":
            table = table.filter(pl.col(".status") != Status.UNKNOWN.value)
        error, deviation = pl.col(".estimate"), pl.col(".std_error")
        # of scores of 0 and 1 any error is more than chance
        certain = pl.when(error > _ROUNDED).then(math.inf).otherwise(0.0)
        statistic = pl.when(deviation > 0).then(error / deviation).otherwise(certain)
        table = table.with_columns(pl.when(error.is_not_null()).then(statistic).alias(".statistic"))
        p_values = pl.Series(".p_value", brownian_range_tail(table[".statistic"].to_numpy()))
        table = table.with_columns(p_values.fill_nan(None))
        keys = table.columns[: table.columns.index(".metric")]
        table = with_adjusted_p_values(table, keys, "holm")
        tests = pl.col(".p_value").count()
        table = table.with_columns((tests.over(keys) if keys else tests).alias(_TESTS))
        needed = {count: self._needed(count, options.conf_level) for count in table[_TESTS].unique()}
        detectable = pl.col(_TESTS).replace_strict(needed, return_dtype=pl.Float64) * deviation
        order = [*(False for _ in keys), True]
        table = table.sort(*keys, ".statistic", descending=order, nulls_last=True, maintain_order=True)
        return table.with_columns(detectable.alias(".detectable")).drop(_TESTS)

    def _needed(self, tests: int, level: float) -> float:
        """The error, in standard deviations, that one of so many tests detects with the power, wherever it is.

        Over the range of scores in which the error is, the cumulated difference has this mean, and at most the standard
        deviation of all of them; the statistic is at least as large.
        """
        return brownian_range_quantile((1 - level) / max(tests, 1)) + NormalDist().inv_cdf(self.power)


class _Conjunctions:
    """All conjunctions of up to some number of features, and the sums over their rows.

    Tables of fewer and fewer features are summed from each other, so that many conjunctions cost little more than a
    few passes over the combinations of all features.
    """

    def __init__(self, every: _Combinations, depth: int, policy: Policy) -> None:
        """Make the tables of up to `depth` features, and sum the rows of all combinations in them."""
        features = tuple(every.keys.columns)
        self.every, self.policy = every, policy
        self.combinations = {features: every.keys}
        """The values of features that occur together, in order and null last."""
        self.finer: dict[tuple[str, ...], tuple[tuple[str, ...], Array]] = {}
        """For each table the features of a finer one, before it, and the combination that each of the finer is in."""
        waiting = [features]
        # the features are split into `depth` + 1 parts, of which one is left out at a time: any `depth` features are
        # still together in one of these tables; then the same with each of them, from the finer one
        for finer in waiting:
            parts = min(depth + 1, len(finer))
            for omitted in range(parts if parts > 1 else 0):
                coarser = tuple(name for index, name in enumerate(finer) if index % parts != omitted)
                if coarser not in self.combinations:
                    number, self.combinations[coarser] = placed(self.combinations[finer], coarser)
                    self.finer[coarser] = finer, number
                    waiting.append(coarser)
        depths = range(1, min(depth, len(features)) + 1)
        self.subsets = [names for size in depths for names in itertools.combinations(features, size)]
        """The features that conjunctions name, one by one and then pair by pair."""
        self.sizes = [len(self.combinations[names]) for names in self.subsets]
        unknown = [policy.is_unknown(self.combinations[names]).to_numpy() for names in self.subsets]
        self.is_unknown: Array = np.concatenate(unknown)
        """A mask of the conjunctions that name an unknown value."""
        counts = self.sums(np.stack([every.rows, every.denominator, every.numerator]))
        self.rows, self.denominator, self.numerator = counts
        self.all_rows, self.total, self.total_numerator = self.totals(counts)

    def sums(self, values: Array) -> Array:
        """Sums over the rows of each conjunction; `values` has a row for each draw."""
        draws = len(values)
        tables = {tuple(self.every.keys.columns): values}
        for names, (finer, number) in self.finer.items():
            size = len(self.combinations[names])
            index = number + size * np.arange(draws)[:, None]
            sums = np.bincount(index.ravel(), weights=tables[finer].ravel(), minlength=draws * size)
            tables[names] = sums.reshape(draws, size)
        return np.concatenate([tables[names] for names in self.subsets], axis=1)

    def totals(self, sums: Array) -> Array:
        """The sums over all known people for each conjunction: those of all conjunctions of the same features."""
        if not sums.shape[-1]:
            return sums
        known = np.where(self.is_unknown, 0, sums)
        return np.repeat(np.add.reduceat(known, np.cumsum([0, *self.sizes[:-1]]), axis=-1), self.sizes, axis=-1)

    @cached_property
    def status(self) -> Array:
        """The reasons why conjunctions are not searched.

        Without a rest there is no comparison, but of the events of all people with their scores.
        """
        is_all = (self.denominator >= self.total) & (self.every.scores is None)
        return np.select(
            [
                self.is_unknown, self.denominator == 0, self.denominator < self.policy.min_n,
                self.rows < self.policy.min_share * self.all_rows, is_all,
            ],
            [
                Status.UNKNOWN, Status.ZERO_DENOMINATOR, Status.BELOW_MIN_N, Status.BELOW_MIN_SHARE,
                Status.NO_OTHER_GROUP,
            ],
            Status.OK,
        )  # fmt: skip

    def rates(self) -> tuple[Array, Array]:
        """The rate of each conjunction, and what it is compared with: that of all others, or its own mean score."""
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = self.numerator / self.denominator
            if self.every.scores is not None:
                (scores,) = self.sums(self.every.scores[None, :])
                return rate, scores / self.denominator
            return rate, (self.total_numerator - self.numerator) / (self.total - self.denominator)

    def table(self, metric: Metric, schema: Mapping[str, Any], columns: Mapping[str, Array]) -> pl.DataFrame:
        """A table of all conjunctions with these columns."""
        texts: list[str] = []
        for names in self.subsets:
            conditions: list[list[str]] = []
            for name in names:
                named = self.combinations[names].join(
                    self.every.texts[name], on=name, how="left", nulls_equal=True, maintain_order="left"
                )
                conditions.append([f"{name}={text}" for text in named[_TEXT]])
            texts += map(" & ".join, zip(*conditions, strict=True))
        counts = {
            ".metric": metric.name, ".subgroup": texts,
            ".depth": np.repeat([len(names) for names in self.subsets], self.sizes),
            ".n": self.rows.astype(int), ".denominator": self.denominator.astype(int),
            ".status": self.status.astype(str),
        }  # fmt: skip
        return frame_of({**counts, **columns}, schema)

    def listed(self, table: pl.DataFrame) -> pl.DataFrame:
        """The subgroups that results show: those of unknown people unless they are dropped, without a comparison."""
        is_unknown = pl.col(".status") == Status.UNKNOWN.value
        others = [name for name in (".rest", ".compared_with", ".difference") if name in table.columns]
        table = table.with_columns(pl.when(~is_unknown).then(name).alias(name) for name in others)
        return table.filter(~is_unknown) if self.policy.unknown == "drop" else table


def _standardised(numerator: Array, denominator: Array, total: Array, total_numerator: Array) -> Array:
    """The distance of numerators from their expectation under the overall rate, in standard deviations."""
    rate = total_numerator / np.maximum(total, 1)
    variance = denominator * rate * (1 - rate) * (total - denominator) / np.maximum(total - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variance > 0, np.abs(numerator - denominator * rate) / np.sqrt(variance), 0.0)


def _excess(hits: Array, rows: Array, other_hits: Array, other_rows: Array, error: float) -> Array:
    """An upper limit of the difference of two shares that is too small with at most the error, exactly.

    The p-values of both exact tests are independent and no smaller than uniform ones, so that minus the logarithm of
    their product is no larger than a gamma variable of shape 2 (Fisher's combination). The limit is the largest
    difference of two shares that this test does not reject, worked out on a grid whose steps are counted twice.
    """
    from scipy.special import gammainccinv

    log_product = float(gammainccinv(2, error))
    splits = np.linspace(0, log_product, _SPLITS + 1)
    # the share of the rest, if its test uses no more than what the subgroup leaves at the start of a step
    lowest, _ = clopper_pearson(other_hits / other_rows, other_rows, np.exp(splits[:-1, None] - log_product))
    _, highest = clopper_pearson(hits / rows, rows, np.exp(-splits[1:, None]))
    return (highest - lowest).max(axis=0)


def checked_rate(name: str, metric: object, kinds: tuple[str, ...], takes: str = _RATES) -> Metric:
    """A rate, or an error."""
    if not isinstance(metric, Metric):
        msg = f"{name}() takes a metric, such as fall_out, not {in_short(metric)}."
        raise ArgumentError(msg)
    formula = metric.definition
    compares = formula.compares or any(term.compares_rows for term in formula.all_terms)
    is_share = isinstance(formula, SumFormula) and formula.is_share_of_rows
    is_rate_of_rows = is_share and metric.range == (0, 1) and not compares
    if metric.kind not in kinds or not is_rate_of_rows:
        msg = f"{name}() takes a rate of labels, such as {takes.format(metric.name)}."
        raise ArgumentError(msg)
    return metric


def _features_of(name: str, features: object, *, after: str = "") -> tuple[Column, ...]:
    """The features that make up subgroups, or an error; `after` are the arguments before them."""
    if not are_columns(features):
        example = f'`{name}({after}["sex", "race"])`'
        msg = f"{name}() takes a list of features, such as {example}, not {in_short(features)}."
        raise ArgumentError(msg)
    given: list[Any] = []
    for feature in features:
        if isinstance(feature, Memberships) and feature.combined != "any":
            msg = (
                f"{name}(): `features` reads the columns of memberships as true or false, so leave out "
                f"`combined={feature.combined!r}`; subgroups of depth 2 are its combinations."
            )
            raise ArgumentError(msg)
        # a column of true and false for each group is a feature
        given += feature.given if isinstance(feature, Memberships) and feature.has_columns else [feature]
    columns = tuple(Column.of(feature, "features") for feature in given)
    if not columns:
        msg = f"{name}() needs the features that define subgroups; `features` is empty."
        raise ArgumentError(msg)
    return columns


@refuse_unknown_keywords
def subgroup_search(
    metric: Metric, features: Iterable[ColumnLike | Memberships], *, depth: int = 2, min_n: int = 1,
    min_share: float = 0.0, unknown: Treatment = "apart", unknown_values: Iterable[object] | None = None,
) -> SubgroupSearch:  # fmt: skip
    """Search all conjunctions of up to `depth` features for subgroups whose rate differs from that of all other rows.

    The search is exact, from one count of all combinations. With many subgroups, some look extreme by chance:
    `.p_value` compares a subgroup with itself under permutation of the outcomes in the denominator, `.p_adjusted` with
    the most extreme of all subgroups searched (max-T; Westfall & Young, 1993). Report the adjusted value. Rows are
    sorted by the distance of a subgroup from all other rows in standard errors.

    Args:
        metric: A rate, such as `fall_out` or `selection_rate`.
        features: Columns; each value may be part of a conjunction.
        depth: Largest number of features in a conjunction.
        min_n: Smallest number of rows in the denominator; smaller subgroups are listed but not searched.
        min_share: Smallest share of the rows, likewise.
        unknown: People with a missing or unknown value of a feature are listed `"apart"`, neither searched nor among
            the others; or they are not listed either, `"drop"`; or are a `"group"` like all others.
        unknown_values: The values that mean unknown beside null; by default texts such as "Unknown".

    Returns:
        A callable with the arguments of a metric, `times=` permutations (2,000 by default) and their `seed=` among
        them; the same seed gives the same values for any order of rows.

    >>> from tidyfair import fall_out
    >>> from tidyfair.datasets import lending
    >>> search = subgroup_search(fall_out, ["sex", "race"])
    >>> result = search(lending(), "repaid", "approved", pos_label="yes")
    >>> result.select(".subgroup", ".denominator", ".p_adjusted").row(0)
    ('race=White', 1417, 0.0004997501249375312)
    """
    rate = checked_rate("subgroup_search", metric, ("class",))
    columns = _features_of("subgroup_search", features, after=f"{rate.name}, ")
    policy = Policy.of("subgroup_search()", whole("min_n", min_n, 1), min_share, unknown, unknown_values)
    return SubgroupSearch(rate, columns, whole("depth", depth, 1), policy)


@refuse_unknown_keywords
def linear_subgroup(metric: Metric, features: Iterable[ColumnLike]) -> LinearSubgroup:
    """Audit for an unfair subgroup defined by a linear threshold of features (Kearns et al., 2018).

    The rate is fitted by least squares on the features, and the rows with fitted rates below and above the overall rate
    are compared with it. This is the heuristic of that paper, not the exact search, which is as hard as learning: the
    larger `.violation` is a lower bound of the worst one. For p-values use `subgroup_search`.

    Args:
        metric: A rate of labels or scores; the paper uses `fall_out` and `miss_rate`.
        features: Columns of numbers.

    Kearns et al. (2018), Preventing fairness gerrymandering.

    >>> import polars as pl
    >>> from tidyfair import selection_rate
    >>> seen = pl.DataFrame({"age": [20, 30, 40, 50], "hired": [1, 1, 0, 0]})
    >>> linear_subgroup(selection_rate, ["age"])(seen, estimate="hired")[".violation"].to_list()
    [0.25, 0.25]
    """
    rate = checked_rate("linear_subgroup", metric, ("class", "prob"))
    return LinearSubgroup(rate, _features_of("linear_subgroup", features, after=f"{rate.name}, "))


@refuse_unknown_keywords
def certify_subgroups(
    metric: Metric, features: Iterable[ColumnLike | Memberships], *, depth: int = 2, min_n: int = 30,
    min_share: float = 0.0, unknown: Treatment = "apart", unknown_values: Iterable[object] | None = None,
) -> SubgroupCertificate:  # fmt: skip
    """Certify that no conjunction of features is worse than all other rows by more than some epsilon.

    Epsilon is the smallest bound that holds, with the given confidence, simultaneously for all conjunctions of up to
    `depth` features with at least `min_n` rows. Worse means higher for metrics that should be small, such as
    `error_rate`, and lower for metrics that should be large, such as `sens`. For scores, with
    `calibration_in_the_large`, it is the distance of the share of events from the mean score in either direction: no
    subgroup is miscalibrated by more (compare the bias scan of Zhang and Neill, 2016).

    Limits are exact (Clopper and Pearson; two of them combined by Fisher's method), with a Bonferroni correction for
    the conjunctions searched, valid for any overlap. Rows must be independent.

    Args:
        metric: A rate of labels, such as `fall_out`, or `calibration_in_the_large`.
        features: Columns; each value, null included, may be part of a conjunction.
        depth: Largest number of features in a conjunction.
        min_n: Smallest number of rows in the denominator; smaller subgroups are not certified.
        min_share: Smallest share of the rows, likewise.
        unknown: Treatment of people with a missing or unknown value of a feature, as for `subgroup_search`.
        unknown_values: The values that mean unknown beside null; by default texts such as "Unknown".

    Returns:
        A callable with the arguments of a metric; `conf_level=` is the confidence level of the certificate.

    >>> from tidyfair import error_rate
    >>> from tidyfair.datasets import lending
    >>> certificate = certify_subgroups(error_rate, ["sex", "age_band"], min_n=100)
    >>> certified = certificate(lending(), "repaid", "approved", pos_label="yes")
    >>> certified.select(pl.col(".epsilon").round(2), ".subgroup", ".searched").row(0)
    (0.11, 'sex=female & age_band=60+', 14)
    """
    is_calibration = isinstance(metric, Metric) and metric.definition == calibration_in_the_large.definition  # pyright: ignore[reportUnnecessaryIsInstance] - user input
    rate = metric if is_calibration else checked_rate("certify_subgroups", metric, ("class",), _RATES_OR_CALIBRATION)
    columns = _features_of("certify_subgroups", features, after=f"{rate.name}, ")
    policy = Policy.of("certify_subgroups()", whole("min_n", min_n, 1), min_share, unknown, unknown_values)
    return SubgroupCertificate(rate, columns, whole("depth", depth, 1), policy)


@refuse_unknown_keywords
def multicalibration_test(
    features: Iterable[ColumnLike | Memberships], *, depth: int = 2, min_n: int = 30, min_share: float = 0.0,
    unknown: Treatment = "apart", unknown_values: Iterable[object] | None = None, power: float = 0.8,
) -> MulticalibrationTest:  # fmt: skip
    """Test whether scores are calibrated in all rows, in each group, and in all conjunctions of up to `depth` features.

    The statistic is Kuiper's: the largest distance of the number of events from the sum of scores over all ranges of
    scores, in standard deviations. It needs no bins; if scores are calibrated it is the range of a Brownian motion,
    and less where there are few distinct scores, so that tests err on the safe side (Arrieta-Ibarra et al., 2022). The
    largest statistic of all subgroups is a test of multicalibration (Hébert-Johnson et al., 2018), whose p-value is the
    smallest `.p_adjusted`: by Holm, for any overlap. Rows must be independent.

    Args:
        features: Columns; each value may be part of a conjunction.
        depth: Largest number of features in a conjunction; with 1, groups alone.
        min_n: Smallest number of rows; smaller subgroups are listed but not tested.
        min_share: Smallest share of the rows, likewise.
        unknown: Treatment of people with a missing or unknown value of a feature, as for metrics.
        unknown_values: The values that mean unknown beside null; by default texts such as "Unknown".
        power: The probability with which an error of `.detectable` is detected, at least.

    Returns:
        A callable with the arguments of a metric of scores (`probs`, `group_by`, weights, `pos_label`, `labels`), and
        `conf_level=`, 1 minus the probability of any false alarm, for which `.detectable` is computed. It returns a row
        for all rows (null `.by`) and for each subgroup, those with the largest `.statistic` first: outer keys,
        `.metric`, `.by`, the features, `.group`, `.estimate` (the error per row), `.std_error` (the standard deviation
        of events minus scores, if these are calibrated), `.statistic` (their quotient), `.p_value`, `.p_adjusted` (for
        all of an outer group), `.detectable`, `.n` and `.status`.

    >>> from tidyfair.datasets import lending
    >>> test = multicalibration_test(["sex", "race"])
    >>> tested = test(lending(), "repaid", probs="score", pos_label="yes")
    >>> tested.select(".by", ".group", pl.col(".estimate", ".statistic").round(3)).row(0)
    ('sex', 'female', 0.071, 9.568)
    """
    columns = _features_of("multicalibration_test", features)
    policy = Policy.of("multicalibration_test()", whole("min_n", min_n, 1), min_share, unknown, unknown_values)
    depth = whole("depth", depth, 1)
    return MulticalibrationTest(cumulative_calibration_error, columns, depth, policy, proper_share("power", power))

"""Searches for unfair subgroups: all conjunctions of features, and halves of their space."""

from __future__ import annotations

import itertools
import zlib
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, overload

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, Status, in_short
from tidyfair.evaluation.group_cells import UNGROUPED, texts_of
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.inference.on_data import CalledOnData
from tidyfair.inference.rate_tests import RateCounts
from tidyfair.intervals.progress import in_progress
from tidyfair.intervals.resampling import check_shuffled, placed
from tidyfair.metric_sets import Metric
from tidyfair.metrics.fairness import new_groupwise_metric
from tidyfair.specs.arguments import how_often, whole
from tidyfair.specs.columns import Column, are_columns, check_features
from tidyfair.specs.contrasts import difference
from tidyfair.specs.groups import ALL_GROUPS, Policy
from tidyfair.specs.options import refuse_unknown_keywords, show_keywords

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias, Unpack

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.metric_sets import GroupwiseMetric
    from tidyfair.runner import Run
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.groups import By, Privileged, Treatment
    from tidyfair.specs.options import Options, OptionsOf, Threshold
    from tidyfair.tallies.source import PolarsFrame, Source
    from tidyfair.tallies.tally import Tally

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__ = ["LinearSubgroup", "SubgroupSearch", "linear_subgroup", "subgroup_search"]

_SAME = 1e-9
"""Statistics that differ by less, relative to their size, are ties: the same counts in another order."""
_DUST = 1e-12
"""Fitted rates that are nearer to the overall rate are on neither side."""
_MOST_NUMBERS = 2**20
"""The most numbers in one step, so that they stay in the cache."""
_FEW_ROWS = 16
"""The most rows for each combination at which it is faster to draw rows than counts of combinations."""
_TEXT = "\0text"
_SLOPE_DIGITS, _CENTER_DIGITS = 4, 10
"""Significant digits in the text of a linear subgroup."""
_SEARCHED = {
    ".metric": pl.String, ".subgroup": pl.String, ".depth": pl.Int64, ".estimate": pl.Float64, ".rest": pl.Float64,
    ".difference": pl.Float64, ".n": pl.Int64, ".denominator": pl.Int64, ".share": pl.Float64,
    ".p_value": pl.Float64, ".p_adjusted": pl.Float64, ".status": pl.String,
}  # fmt: skip
_SPLIT = {
    ".metric": pl.String, ".subgroup": pl.String, ".estimate": pl.Float64, ".overall": pl.Float64,
    ".violation": pl.Float64, ".denominator": pl.Int64, ".share": pl.Float64, ".status": pl.String,
}  # fmt: skip


class AuditOptions(TypedDict, total=False):
    """The options of a call that an audit takes."""

    probs: ColumnLike | None
    threshold: Threshold | None
    group_by: ColumnLike | Privileged | Iterable[ColumnLike | Privileged] | None
    pos_label: object
    labels: Sequence[object] | None


@dataclass(frozen=True)
class Combinations(RateCounts):
    """The combinations of features that occur in an outer group, and the counts of their rows."""

    keys: pl.DataFrame
    rows: Floats
    """All rows, those outside the denominator included."""
    texts: Mapping[str, pl.DataFrame]
    """The values of each feature, and their texts in results."""


@dataclass(frozen=True, repr=False)
class SubgroupAudit(CalledOnData):
    """A rate, and the features whose combinations are searched, as a callable on dataframes."""

    subject: ClassVar[str] = "An audit"
    _schema: ClassVar[Mapping[str, Any]]
    """The columns of results beside the keys of outer groups."""
    metric: Metric
    features: tuple[Column, ...]

    @overload
    def __call__(
        self, data: PolarsFrame, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[AuditOptions],
    ) -> pl.DataFrame: ...  # fmt: skip
    @overload
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[AuditOptions],
    ) -> Any: ...  # fmt: skip
    @show_keywords(AuditOptions)
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[AuditOptions],
    ) -> Any:  # fmt: skip
        """Audit every outer group.

        Options: `probs`, one `threshold`, `group_by`, `pos_label` and `labels`, as for a metric; no weights.
        """
        return self._on_data(data, truth, estimate, options)

    @abstractmethod
    def _audit(self, combinations: Combinations, key: pl.DataFrame) -> pl.DataFrame:
        """The results of the outer group of a key."""

    @property
    def _compared(self) -> GroupwiseMetric:
        """The rate by all features together, from which combinations are counted."""
        factory = new_groupwise_metric(self.metric, self.metric.name, difference())
        return factory(*(column.source for column in self.features)).with_policy(ALL_GROUPS)

    @property
    def _run(self) -> Run:
        return self._compared.run

    def _options(
        self, run: Run, keywords: Mapping[str, Any], accepted: OptionsOf, *, truth: Any = None, estimate: Any = None
    ) -> Options:
        for name in keywords:
            if name not in AuditOptions.__annotations__:
                known = ["data", "truth", "estimate", *AuditOptions.__annotations__]
                raise ArgumentError.unknown_keyword("argument", name, known)
        options = super()._options(run, keywords, accepted, truth=truth, estimate=estimate)
        return replace(options, estimator="binary", on_undefined="ignore")

    def _check_source(self, source: Source) -> None:
        for column in self.features:
            column.check(source.columns, "features")

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        if tally.cut is not None and tally.cut.several:
            msg = f"A search does not accept a list of values for {tally.cut.option}; give one value."
            raise ArgumentError(msg)
        compared = self._compared
        (evaluated,) = compared.run.evaluate(tally, options, are_features=False)
        outer_keys = evaluated.group_cells.outer_keys.drop(UNGROUPED, strict=False)
        combinations = self._combinations(evaluated, compared.by)
        if not outer_keys.width:
            return self._audit(combinations[0], outer_keys)
        if not combinations:
            # the columns of a result follow from the call, not from the data
            return pl.concat([outer_keys, pl.DataFrame(schema=self._schema)], how="horizontal")
        tables: list[pl.DataFrame] = []
        for outer, of_outer in enumerate(combinations):
            key = outer_keys[outer]
            table = self._audit(of_outer, key)
            tables.append(pl.concat([key[[0] * len(table)], table], how="horizontal"))
        return pl.concat(tables)

    def _combinations(self, evaluated: Evaluated, by: By) -> list[Combinations]:
        """The combinations of features in each outer group."""
        group_cells, rows = evaluated.group_cells, evaluated.rows.sort(GROUP_CELL)
        keys = group_cells.keys[by]
        keys = keys.rename(dict(zip(keys.columns, [column.name for column in by.columns], strict=True)))
        denominator = rows["denominator"].fill_null(0).to_numpy().astype(float)
        numerator = rows["estimate"].fill_null(0.0).to_numpy() * denominator
        if self.metric.kind == "class":
            numerator = numerator.round()
        size = rows["rows"].to_numpy().astype(float)
        texts = {name: keys.select(name, texts_of(keys.select(name)).alias(_TEXT)).unique() for name in keys.columns}
        combinations: list[Combinations] = []
        for outer in range(len(group_cells.outer_keys)):
            index = (rows["outer"] == outer).to_numpy().nonzero()[0]
            combinations.append(Combinations(numerator[index], denominator[index], keys[index], size[index], texts))
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

    _schema: ClassVar[Mapping[str, Any]] = _SEARCHED
    depth: int
    policy: Policy
    times: int
    seed: int

    def _audit(self, combinations: Combinations, key: pl.DataFrame) -> pl.DataFrame:
        conjunctions = Conjunctions.of(combinations, self.depth, self.policy)
        counts = np.stack([combinations.rows, combinations.denominator, combinations.numerator])
        sums = conjunctions.sums(counts)
        rows, denominator, numerator = sums
        _, total, total_numerator = conjunctions.totals(sums)
        status = conjunctions.statuses(sums)
        searched = status == Status.OK
        statistic = _standardised(numerator, denominator, total, total_numerator)
        p_value, p_adjusted = self._p_values(
            combinations, conjunctions, np.where(searched, denominator, 0), total, statistic, key
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = numerator / denominator
            rest = (total_numerator - numerator) / (total - denominator)
        columns = {
            ".metric": [self.metric.name] * len(rows), ".subgroup": conjunctions.texts,
            ".depth": conjunctions.depths, ".estimate": rate, ".rest": rest, ".difference": rate - rest,
            ".n": rows.astype(int), ".denominator": denominator.astype(int),
            ".share": rows / max(combinations.rows.sum(), 1),
            ".p_value": np.where(searched, p_value, np.nan), ".p_adjusted": np.where(searched, p_adjusted, np.nan),
            ".status": status.astype(str),
        }  # fmt: skip
        table = pl.DataFrame(columns, schema=_SEARCHED).with_columns(pl.col(pl.Float64).fill_nan(None))
        table = table[np.lexsort((np.arange(len(rows)), -statistic, ~searched))]
        return listed_subgroups(table, self.policy)

    def _p_values(
        self, combinations: Combinations, conjunctions: Conjunctions, denominator: Floats, total: Floats,
        statistic: Floats, key: pl.DataFrame,
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """The p-values of each subgroup alone, and among all that are searched, from outcomes that are permuted."""
        # an outer group has its own numbers, whatever others there are
        random = np.random.default_rng([self.seed, zlib.crc32(repr(key.rows()).encode())])
        rows, events = combinations.denominator.sum(), combinations.numerator.sum()
        needed = statistic * (1 - _SAME)
        reached, largest = np.ones(len(denominator)), np.ones(len(denominator))
        step = max(1, _MOST_NUMBERS // max(conjunctions.numbers, 1))
        check_shuffled(int(rows))
        # both methods draw from the same distribution; one costs rows, the other combinations
        method = "count" if rows <= _FEW_ROWS * len(combinations.denominator) else "marginals"
        for start in in_progress(range(0, self.times, step), "shuffling"):
            size = min(step, self.times - start)
            drawn = random.multivariate_hypergeometric(
                combinations.denominator.astype(np.int64), round(events), size=size, method=method
            )
            # a subgroup that is not searched has a denominator of 0, and so a statistic of 0
            hits = conjunctions.sums(drawn)
            statistics = _standardised(hits, denominator, total, conjunctions.totals(hits))
            reached += (statistics >= needed).sum(axis=0)
            largest += size - np.searchsorted(np.sort(statistics.max(axis=1, initial=0)), needed)
        return reached / (self.times + 1), largest / (self.times + 1)


@dataclass(frozen=True, repr=False)
class LinearSubgroup(SubgroupAudit):
    """A search through halves of the space of features, as a callable on dataframes; made by `linear_subgroup`.

    Returns a frame of the caller's kind with two rows for each outer group, the one with the lower fitted rate first:
    the outer keys, `.metric`, `.subgroup` (the condition), `.estimate`, `.overall` (the rate of all rows),
    `.violation` (their distance times `.share`), `.denominator` (rows of the half in the denominator of the rate),
    `.share` (of these among all rows) and `.status`.
    """

    _schema: ClassVar[Mapping[str, Any]] = _SPLIT

    def _audit(self, combinations: Combinations, key: pl.DataFrame) -> pl.DataFrame:
        del key
        names = combinations.keys.columns
        check_features(combinations.keys, {name: name for name in names}, "a linear threshold needs")
        counted = combinations.denominator > 0
        denominator, numerator = combinations.denominator[counted], combinations.numerator[counted]
        if not len(denominator):
            empty = {".metric": self.metric.name, ".denominator": 0, ".share": 0.0, ".status": Status.ZERO_DENOMINATOR}
            return pl.DataFrame([empty, empty], schema=_SPLIT)
        overall = numerator.sum() / denominator.sum()
        points = combinations.keys.select(pl.all().cast(pl.Float64)).to_numpy()[counted]
        slopes, middle = _slopes(points, denominator, numerator)
        fitted = ((points - middle) * slopes).sum(axis=1)
        rows: list[dict[str, object]] = []
        for sign, relation in ((-1, "<"), (1, ">")):
            inside = sign * fitted > _DUST
            size = denominator[inside].sum()
            share = size / combinations.rows.sum()
            row: dict[str, object] = {".metric": self.metric.name, ".overall": overall, ".share": share}
            if size:
                rate = numerator[inside].sum() / size
                row |= {
                    ".subgroup": _condition(slopes, middle, names, relation), ".estimate": rate,
                    ".violation": abs(rate - overall) * share, ".denominator": int(size), ".status": Status.OK,
                }  # fmt: skip
            else:
                row |= {".violation": 0.0, ".denominator": 0, ".status": Status.NOBODY}
            rows.append(row)
        return pl.DataFrame(rows, schema=_SPLIT)


def _slopes(points: Floats, denominator: Floats, numerator: Floats) -> tuple[Floats, Floats]:
    """The weighted least squares fit of the rate: its slopes, and a point at which it is the overall rate."""
    # scaled to 0 to 1 and centred, so that no direction is lost to rounding
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
class _Margin:
    """Sums of a finer table over the features that it has more."""

    finer: tuple[str, ...]
    """The features of the finer table."""
    index: Floats
    """The index of the combination that a combination of the finer table is part of."""
    size: int
    """The number of combinations."""

    def sums(self, finer: Floats) -> Floats:
        """The sums of the numbers of the finer table, which has a row for each draw."""
        draws = len(finer)
        index = self.index + self.size * np.arange(draws)[:, None]
        sums = np.bincount(index.ravel(), weights=finer.ravel(), minlength=draws * self.size)
        return sums.reshape(draws, self.size)


@dataclass(frozen=True)
class Conjunctions:
    """All conjunctions of up to some number of features, and the plan of the sums over their rows.

    Tables of fewer and fewer features are summed from each other, so that many conjunctions cost little more than a
    few passes over the combinations of all features.
    """

    features: tuple[str, ...]
    subsets: list[tuple[str, ...]]
    """The features that conjunctions name, one by one and then pair by pair."""
    combinations: dict[tuple[str, ...], pl.DataFrame]
    """The values of features that occur together, in order and null last."""
    margins: dict[tuple[str, ...], _Margin]
    """The sums for some features; a table comes after the finer one."""
    texts_of_values: Mapping[str, pl.DataFrame]
    """The values of each feature, and their texts in results."""
    policy: Policy

    @classmethod
    def of(cls, every: Combinations, depth: int, policy: Policy) -> Conjunctions:
        """Plan the sums over the combinations of all features."""
        features = tuple(every.keys.columns)
        combinations, margins = {features: every.keys}, dict[tuple[str, ...], _Margin]()
        waiting = [features]
        for finer in waiting:
            for coarser in _narrower(finer, depth):
                if coarser not in combinations:
                    index, combinations[coarser] = placed(combinations[finer], coarser)
                    margins[coarser] = _Margin(finer, index, len(combinations[coarser]))
                    waiting.append(coarser)
        sizes = range(1, min(depth, len(features)) + 1)
        subsets = [names for size in sizes for names in itertools.combinations(features, size)]
        return cls(features, subsets, combinations, margins, every.texts, policy)

    def sums(self, values: Floats) -> Floats:
        """Sums over the rows of each conjunction; `values` has a row for each draw."""
        tables = {self.features: values}
        for names, margin in self.margins.items():
            tables[names] = margin.sums(tables[margin.finer])
        return np.concatenate([tables[names] for names in self.subsets], axis=1)

    def totals(self, sums: Floats) -> Floats:
        """The sums over all known people for each conjunction: those of all conjunctions of the same features."""
        if not sums.shape[-1]:
            return sums
        sizes = [len(self.combinations[names]) for names in self.subsets]
        known = np.where(self.is_unknown, 0, sums)
        return np.repeat(np.add.reduceat(known, np.cumsum([0, *sizes[:-1]]), axis=-1), sizes, axis=-1)

    def statuses(self, sums: Floats, *, searches_all: bool = False) -> Floats:
        """The reasons why conjunctions are not searched, from their rows and denominators, the first two sums.

        Without a rest there is no comparison, unless all people are searched like any subgroup.
        """
        rows, denominator = sums[:2]
        all_rows, total = self.totals(sums)[:2]
        return np.select(
            [
                self.is_unknown, denominator == 0, denominator < self.policy.min_n,
                rows < self.policy.min_share * all_rows, (denominator >= total) & (not searches_all),
            ],
            [
                Status.UNKNOWN, Status.ZERO_DENOMINATOR, Status.BELOW_MIN_N, Status.BELOW_MIN_SHARE,
                Status.NO_OTHER_GROUP,
            ],
            Status.OK,
        )  # fmt: skip

    @cached_property
    def is_unknown(self) -> Floats:
        """A mask of the conjunctions that name an unknown value."""
        masks = [self.policy.is_unknown(self.combinations[names]).to_numpy() for names in self.subsets]
        return np.concatenate(masks)

    @property
    def numbers(self) -> int:
        """The count of numbers of a draw in all tables."""
        return sum(map(len, self.combinations.values()))

    @property
    def texts(self) -> list[str]:
        """The conjunctions as text."""
        texts: list[str] = []
        for names in self.subsets:
            conditions: list[list[str]] = []
            for name in names:
                values = self.combinations[names].select(name)
                named = values.join(
                    self.texts_of_values[name], on=name, how="left", nulls_equal=True, maintain_order="left"
                )
                conditions.append([f"{name}={text}" for text in named[_TEXT]])
            texts += map(" & ".join, zip(*conditions, strict=True))
        return texts

    @property
    def depths(self) -> list[int]:
        """The number of features of each conjunction."""
        return [len(names) for names in self.subsets for _ in range(len(self.combinations[names]))]


def listed_subgroups(table: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The subgroups that results show: those of unknown people unless they are dropped, without a comparison."""
    is_unknown = pl.col(".status") == Status.UNKNOWN.value
    others = [name for name in (".rest", ".compared_with", ".difference") if name in table.columns]
    table = table.with_columns(pl.when(~is_unknown).then(name).alias(name) for name in others)
    return table.filter(~is_unknown) if policy.unknown == "drop" else table


def _narrower(features: tuple[str, ...], depth: int) -> list[tuple[str, ...]]:
    """The features without one of `depth` + 1 parts of them; any `depth` of them are together in one of the results."""
    parts = min(depth + 1, len(features))
    if parts == 1:
        return []
    narrower: list[tuple[str, ...]] = []
    for omitted in range(parts):
        kept = [name for index, name in enumerate(features) if index % parts != omitted]
        narrower.append(tuple(kept))
    return narrower


def _condition(slopes: Floats, middle: Floats, names: Sequence[str], relation: str) -> str:
    """The text of the half of the space in which the fitted rate is below or above the overall rate."""
    terms = [
        f"{slope:.{_SLOPE_DIGITS}g} ({name} - {center:.{_CENTER_DIGITS}g})"
        for name, slope, center in zip(names, slopes, middle, strict=True)
    ]
    return f"{' + '.join(terms)} {relation} 0".replace("+ -", "- ").replace("- -", "+ ")


def _standardised(numerator: Floats, denominator: Floats, total: Floats, total_numerator: Floats) -> Floats:
    """The distance of numerators from their expectation under the overall rate, in standard deviations."""
    rate = total_numerator / np.maximum(total, 1)
    variance = denominator * rate * (1 - rate) * (total - denominator) / np.maximum(total - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variance > 0, np.abs(numerator - denominator * rate) / np.sqrt(variance), 0.0)


def _checked(name: str, metric: object, features: object, kinds: tuple[str, ...]) -> tuple[Metric, tuple[Column, ...]]:
    """A rate and its features, or an error."""
    rate = checked_rate(name, metric, kinds)
    return rate, features_of(name, rate, features)


def checked_rate(name: str, metric: object, kinds: tuple[str, ...]) -> Metric:
    """A rate, or an error."""
    if not isinstance(metric, Metric):
        msg = f"{name}() takes a metric, such as fall_out, not {in_short(metric)}."
        raise ArgumentError(msg)
    if metric.kind not in kinds or not is_rate_of_rows(metric):
        msg = (
            f"{name}() takes a rate of labels, such as fall_out, miss_rate, selection_rate or accuracy; {metric.name} "
            "is not a share of rows."
        )
        raise ArgumentError(msg)
    return metric


def features_of(name: str, metric: Metric, features: object) -> tuple[Column, ...]:
    """The features that make up subgroups, or an error."""
    if not are_columns(features):
        example = f'`{name}({metric.name}, ["sex", "race"])`'
        msg = f"{name}() takes a list of features, such as {example}, not {in_short(features)}."
        raise ArgumentError(msg)
    columns = tuple(Column.of(feature, "features") for feature in features)
    if not columns:
        msg = f"{name}() needs the features that define subgroups; `features` is empty."
        raise ArgumentError(msg)
    return columns


def is_rate_of_rows(metric: Metric) -> bool:
    """Check whether a metric is a share of rows that follows from sums."""
    formula = metric.definition
    counted = formula.input == "sums" and not any(term.compares_rows for term in formula.all_terms)
    return counted and formula.is_share_of_rows and metric.range == (0, 1) and not formula.compares


@refuse_unknown_keywords
def subgroup_search(
    metric: Metric, features: Iterable[ColumnLike], *, depth: int = 2, min_n: int = 1, min_share: float = 0.0,
    unknown: Treatment = "apart", unknown_values: Iterable[object] | None = None, times: int = 2_000, seed: int = 0,
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
        times: Number of permutations.
        seed: Random seed; the same seed gives the same values for any order of rows.

    >>> from tidyfair import fall_out
    >>> from tidyfair.datasets import lending
    >>> search = subgroup_search(fall_out, ["sex", "race"])
    >>> result = search(lending(), "repaid", "approved", pos_label="yes")
    >>> result.select(".subgroup", ".denominator", ".p_adjusted").row(0)
    ('race=White', 1417, 0.0004997501249375312)
    """
    rate, columns = _checked("subgroup_search", metric, features, ("class",))
    policy = Policy.of("subgroup_search()", whole("min_n", min_n, 1), min_share, unknown, unknown_values)
    return SubgroupSearch(rate, columns, whole("depth", depth, 1), policy, how_often(times), whole("seed", seed, 0))


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
    return LinearSubgroup(*_checked("linear_subgroup", metric, features, ("class", "prob")))

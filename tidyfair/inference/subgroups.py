"""Audits that look for the groups themselves: all conjunctions of features, and halves of their space."""

from __future__ import annotations

import itertools
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, overload

import polars as pl

from tidyfair.errors import ArgumentError, Status
from tidyfair.evaluation.group_cells import UNGROUPED
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.inference.rate_tests import RateCounts
from tidyfair.intervals.resampling import placed
from tidyfair.metric_sets import Metric
from tidyfair.metrics.fairness import new_groupwise_metric
from tidyfair.specs.arguments import how_often, whole
from tidyfair.specs.columns import Column, are_columns, check_features
from tidyfair.specs.contrasts import difference
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias, Unpack

    import numpy as np

    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.groups import Privileged
    from tidyfair.specs.options import Threshold
    from tidyfair.tallies.source import PolarsFrame, Source

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__ = ["LinearSubgroup", "SubgroupSearch", "linear_subgroup", "subgroup_search"]

_SAME = 1e-9
"""Statistics that differ by less, relative to their size, are ties: the same counts in another order."""
_DUST = 1e-12
"""Fitted rates that are nearer to that of all are on neither side."""
_MOST_NUMBERS = 2**20
"""Numbers that are worked through at once, so that they stay in the cache."""
_FEW_ROWS = 16
"""Rows for each combination up to which it is faster to draw rows than to draw how many each combination gets."""
_DIGITS, _PLACES = 4, 10
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
    """What an audit takes beside the data, the truth and the estimate, as a metric takes it."""

    probs: ColumnLike | None
    threshold: Threshold | None
    group_by: ColumnLike | Privileged | Iterable[ColumnLike | Privileged] | None
    pos_label: object
    labels: Sequence[object] | None


@dataclass(frozen=True)
class _Combinations(RateCounts):
    """The combinations of features that occur in an outer group, and what is known of each."""

    keys: pl.DataFrame
    rows: Floats
    """All rows, those that the rate is not about included."""


@dataclass(frozen=True)
class _Audit(ABC):
    """A rate, and the features whose combinations are looked at, as a callable on dataframes."""

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
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[AuditOptions],
    ) -> Any:  # fmt: skip
        """Audit every outer group.

        It takes `probs`, one `threshold`, `group_by`, `pos_label` and `labels`, as a metric does, and no weights.
        """
        source = open_frame(data, options.get("group_by"))
        return source.restore(pl.concat(self._parts(source, truth, estimate, options)))

    @abstractmethod
    def _audit(self, there: _Combinations, key: pl.DataFrame) -> pl.DataFrame:
        """What is found in the outer group of some key."""

    def _parts(
        self, source: Source, truth: ColumnLike | None, estimate: ColumnLike | None, keywords: AuditOptions
    ) -> Iterator[pl.DataFrame]:
        """What is found in each outer group, beside its keys."""
        for name in keywords:
            if name not in AuditOptions.__annotations__:
                known = ["data", "truth", "estimate", *AuditOptions.__annotations__]
                raise ArgumentError.unknown("argument", name, known)
        for column in self.features:
            column.check(source.columns, "features")
        features = [column.source for column in self.features]
        compared = new_groupwise_metric(self.metric, self.metric.name, difference())(*features)
        options = compared.run.options(keywords, truth=truth, estimate=estimate)
        options = replace(options, estimator="binary", on_undefined="ignore")
        tally = compared.run.count(source, options)
        if tally.cut is not None and tally.cut.several:
            msg = f"An audit looks at one selection, not at a list of them: give one {tally.cut.way}."
            raise ArgumentError(msg)
        (evaluated,) = compared.run.evaluate(tally, options)
        group_cells, rows = evaluated.group_cells, evaluated.rows.sort(GROUP_CELL)
        outer = group_cells.outer_keys.drop(UNGROUPED, strict=False)
        names = [column.name for column in compared.by.columns]
        keys = group_cells.keys[compared.by].rename(
            dict(zip(group_cells.keys[compared.by].columns, names, strict=True))
        )
        about = rows["denominator"].fill_null(0).to_numpy().astype(float)
        met = rows["estimate"].fill_null(0.0).to_numpy() * about
        met = met.round() if self.metric.kind == "class" else met
        if outer.width and outer.is_empty():
            nothing = self._audit(_Combinations(met, about, keys, about), outer).clear()
            yield pl.concat([outer, nothing], how="horizontal")
        for place in range(len(group_cells.outer_keys)):
            mine = (rows["outer"] == place).to_numpy().nonzero()[0]
            size = rows["rows"].to_numpy()[mine].astype(float)
            key = outer[place] if outer.width else outer
            part = self._audit(_Combinations(met[mine], about[mine], keys[mine], size), key)
            yield pl.concat([key[[0] * len(part)], part], how="horizontal") if outer.width else part


@dataclass(frozen=True)
class SubgroupSearch(_Audit):
    """A search through all conjunctions of features, as a callable on dataframes; made by `subgroup_search`.

    It gives a frame of the caller's kind, and of each outer group the most striking subgroup first, which is the one
    whose rate is the most standard errors from that of everybody else (not the one with the largest `.difference`);
    ties keep the order of the features, and what is not searched comes last. Columns: the outer keys, `.metric`,
    `.subgroup`, `.depth` (how many features it names), `.estimate`, `.rest` (the rate of everybody else),
    `.difference`, `.n` rows, `.denominator`, `.share` of all rows, `.p_value`, `.p_adjusted` and `.status`.
    """

    depth: int
    min_n: int
    times: int
    seed: int

    def _audit(self, there: _Combinations, key: pl.DataFrame) -> pl.DataFrame:
        import numpy as np

        conjunctions = _Conjunctions.of(there.keys, self.depth)
        rows, about, met = conjunctions.sums(np.stack([there.rows, there.denominator, there.numerator]))
        total, held = there.denominator.sum(), there.numerator.sum()
        searched = (about >= self.min_n) & (about < total)
        statistic = _standardised(met, about, total, held)
        p_value, p_adjusted = self._by_chance(there, conjunctions, np.where(searched, about, 0), statistic, key)
        with np.errstate(invalid="ignore", divide="ignore"):
            rate, rest = met / about, (held - met) / (total - about)
        status = np.select(
            [about == 0, about < self.min_n, about >= total],
            [Status.ZERO_DENOMINATOR, Status.BELOW_MIN_N, Status.NO_OTHER_GROUP],
            Status.OK,
        )
        columns = {
            ".metric": [self.metric.name] * len(met), ".subgroup": conjunctions.texts,
            ".depth": conjunctions.depths, ".estimate": rate,
            ".rest": rest, ".difference": rate - rest, ".n": rows.astype(int), ".denominator": about.astype(int),
            ".share": rows / max(there.rows.sum(), 1),
            ".p_value": np.where(searched, p_value, np.nan), ".p_adjusted": np.where(searched, p_adjusted, np.nan),
            ".status": status.astype(str),
        }  # fmt: skip
        table = pl.DataFrame(columns, schema=_SEARCHED).with_columns(pl.col(pl.Float64).fill_nan(None))
        return table[np.lexsort((np.arange(len(met)), -statistic, ~searched))]

    def _by_chance(
        self, there: _Combinations, conjunctions: _Conjunctions, about: Floats, statistic: Floats, key: pl.DataFrame
    ) -> tuple[Floats, Floats]:
        """How often outcomes dealt out again are as striking, for the same subgroup and for any that is searched."""
        import numpy as np

        # an outer group has its own numbers, whatever others there are
        random = np.random.default_rng([self.seed, zlib.crc32(repr(key.rows()).encode())])
        total, held, needed = there.denominator.sum(), there.numerator.sum(), statistic * (1 - _SAME)
        reached, largest = np.ones(len(about)), np.ones(len(about))
        step = max(1, _MOST_NUMBERS // max(conjunctions.numbers, 1))
        # both draw the same; one costs rows, the other combinations
        method = "count" if total <= _FEW_ROWS * len(there.denominator) else "marginals"
        for start in range(0, self.times, step):
            size = min(step, self.times - start)
            drawn = random.multivariate_hypergeometric(
                there.denominator.astype(np.int64), round(held), size=size, method=method
            )
            # of what is not searched nothing is expected, and so nothing is striking
            striking = _standardised(conjunctions.sums(drawn), about, total, held)
            reached += (striking >= needed).sum(axis=0)
            largest += size - np.searchsorted(np.sort(striking.max(axis=1, initial=0)), needed)
        return reached / (self.times + 1), largest / (self.times + 1)


@dataclass(frozen=True)
class LinearSubgroup(_Audit):
    """A search through halves of the space of features, as a callable on dataframes; made by `linear_subgroup`.

    It gives a frame of the caller's kind with two rows for each outer group, those with the lower rate first: the outer
    keys, `.metric`, `.subgroup` (the condition), `.estimate`, `.overall` (the rate of all), `.violation` (their
    distance times `.share`), `.denominator` (rows of the half that the rate is about), `.share` (these, of all rows)
    and `.status`.
    """

    def _audit(self, there: _Combinations, key: pl.DataFrame) -> pl.DataFrame:

        del key

        check_features(there.keys, {name: name for name in there.keys.columns}, "a linear threshold needs")
        known = there.denominator > 0
        about, met = there.denominator[known], there.numerator[known]
        if not len(about):
            nobody = {".metric": self.metric.name, ".denominator": 0, ".share": 0.0, ".status": Status.ZERO_DENOMINATOR}
            return pl.DataFrame([nobody, nobody], schema=_SPLIT)
        overall = met.sum() / about.sum()
        points = there.keys.select(pl.all().cast(pl.Float64)).to_numpy()[known]
        slopes, middle = _slopes(points, about, met)
        fitted = ((points - middle) * slopes).sum(axis=1)
        rows: list[dict[str, object]] = []
        for sign, relation in ((-1, "<"), (1, ">")):
            inside = sign * fitted > _DUST
            size, held = about[inside].sum(), met[inside].sum()
            rate, share = held / size if size else None, size / there.rows.sum()
            rows.append(
                {
                    ".metric": self.metric.name,
                    ".subgroup": _condition(slopes, middle, there.keys.columns, relation) if size else None,
                    ".estimate": rate, ".overall": overall,
                    ".violation": abs(rate - overall) * share if rate is not None else 0.0,
                    ".denominator": int(size), ".share": share, ".status": Status.OK if size else Status.NOBODY,
                }
            )  # fmt: skip
        return pl.DataFrame(rows, schema=_SPLIT)


def _slopes(points: Floats, about: Floats, met: Floats) -> tuple[Floats, Floats]:
    """The rate as a linear function of features, by weighted least squares: its slopes, and where it is that of all."""
    import numpy as np

    # between 0 and 1 and about their means, so that no direction is lost to rounding
    low, width = points.min(axis=0), np.ptp(points, axis=0)
    width = np.where(width > 0, width, np.inf)
    inside = (points - low) / width
    middle = np.average(inside, axis=0, weights=about)
    root = np.sqrt(about)[:, None]
    away = (met / about - met.sum() / about.sum())[:, None]
    fit: Any = np.linalg.lstsq
    slopes, *_ = fit((inside - middle) * root, away * root, rcond=None)
    return slopes[:, 0] / width, low + middle * np.where(np.isfinite(width), width, 0)


@dataclass(frozen=True)
class _Margin:
    """How numbers of the combinations of some features are summed from those of a finer table."""

    finer: tuple[str, ...]
    """The features of the finer table."""
    index: Floats
    """The combination that each one of the finer table is part of."""
    size: int
    """The number of combinations."""

    def sums(self, finer: Floats) -> Floats:
        """The sums of the numbers of the finer table, which has a row for each draw."""
        import numpy as np

        draws = len(finer)
        index = self.index + self.size * np.arange(draws)[:, None]
        sums = np.bincount(index.ravel(), weights=finer.ravel(), minlength=draws * self.size)
        return sums.reshape(draws, self.size)


@dataclass(frozen=True)
class _Conjunctions:
    """All conjunctions of up to some number of features, and how numbers are summed over the rows of each.

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

    @classmethod
    def of(cls, keys: pl.DataFrame, depth: int) -> _Conjunctions:
        """Plan the sums over `keys`, the combinations of all features."""
        features = tuple(keys.columns)
        combinations, margins = {features: keys}, dict[tuple[str, ...], _Margin]()
        waiting = [features]
        for finer in waiting:
            for coarser in _narrower(finer, depth):
                if coarser not in combinations:
                    index, combinations[coarser] = placed(combinations[finer], coarser)
                    margins[coarser] = _Margin(finer, index, len(combinations[coarser]))
                    waiting.append(coarser)
        sizes = range(1, min(depth, len(features)) + 1)
        subsets = [names for size in sizes for names in itertools.combinations(features, size)]
        return cls(features, subsets, combinations, margins)

    def sums(self, values: Floats) -> Floats:
        """Sums over the rows of each conjunction; `values` has a row for each draw."""
        import numpy as np

        tables = {self.features: values}
        for names, margin in self.margins.items():
            tables[names] = margin.sums(tables[margin.finer])
        return np.concatenate([tables[names] for names in self.subsets], axis=1)

    @property
    def numbers(self) -> int:
        """How many numbers a draw has in all tables."""
        return sum(map(len, self.combinations.values()))

    @property
    def texts(self) -> list[str]:
        """Each conjunction in words."""
        rows = (row for names in self.subsets for row in self.combinations[names].to_dicts())
        return [" & ".join(f"{name}={_text(value)}" for name, value in row.items()) for row in rows]

    @property
    def depths(self) -> list[int]:
        """How many features each conjunction names."""
        return [len(names) for names in self.subsets for _ in range(len(self.combinations[names]))]


def _narrower(features: tuple[str, ...], depth: int) -> list[tuple[str, ...]]:
    """The features without one of `depth` + 1 parts of them; any `depth` of them are together in one of the results."""
    parts = min(depth + 1, len(features))
    if parts == 1:
        return []
    return [tuple(name for at, name in enumerate(features) if at % parts != part) for part in range(parts)]


def _text(value: object) -> str:
    return "null" if value is None else str(value)


def _condition(slopes: Floats, middle: Floats, names: Sequence[str], relation: str) -> str:
    """The half of the space in which the fitted rate is below or above that of all, in words."""
    terms = [
        f"{slope:.{_DIGITS}g} ({name} - {place:.{_PLACES}g})"
        for name, slope, place in zip(names, slopes, middle, strict=True)
    ]
    return f"{' + '.join(terms)} {relation} 0".replace("+ -", "- ").replace("- -", "+ ")


def _standardised(met: Floats, about: Floats, total: float, held: float) -> Floats:
    """How many standard deviations counts are from what they would be if the rate were drawn for all together."""
    import numpy as np

    share = held / total if total else 0.0
    variance = about * share * (1 - share) * (total - about) / max(total - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variance > 0, np.abs(met - about * share) / np.sqrt(variance), 0.0)


def _checked(name: str, metric: object, features: object, kinds: tuple[str, ...]) -> tuple[Metric, tuple[Column, ...]]:
    """A rate and its features, or an error."""
    if not isinstance(metric, Metric):
        msg = f"{name}() takes a metric, such as fall_out, not {metric!r}."
        raise ArgumentError(msg)
    formula = metric.definition
    counted = (
        metric.kind in kinds and formula.way == "sums" and not any(term.neighborhood for term in formula.all_terms)
    )
    if not counted or not formula.is_share_of_rows or metric.range != (0, 1) or formula.compares:
        msg = (
            f"{name}() takes a rate of labels, such as fall_out, miss_rate, selection_rate or accuracy; {metric.name} "
            "is no share of rows."
        )
        raise ArgumentError(msg)
    if not are_columns(features):
        msg = f'{name}() takes a list of features, such as `{name}({metric.name}, ["sex", "race"])`, not {features!r}.'
        raise ArgumentError(msg)
    columns = tuple(Column.of(feature, "features") for feature in features)
    if not columns:
        msg = f"{name}() needs the features that make up subgroups."
        raise ArgumentError(msg)
    return metric, columns


def subgroup_search(
    metric: Metric, features: Iterable[ColumnLike], *, depth: int = 2, min_n: int = 1, times: int = 2_000, seed: int = 0
) -> SubgroupSearch:
    """Search all conjunctions of up to `depth` features for those whose rate is not that of everybody else.

    Exact, from one count of all combinations. Who looks at many subgroups finds a striking one by chance: `.p_value`
    compares a subgroup with itself when the outcomes of the rows that the rate is about are dealt out again,
    `.p_adjusted` with the most striking of all subgroups searched (max-T; Westfall & Young, 1993). The adjusted value
    is the one to read. Rows come by how many standard errors a subgroup is from everybody else.

    Args:
        metric: A rate, such as `fall_out` or `selection_rate`.
        features: Columns; each value, null included, may be part of a conjunction.
        depth: How many features a conjunction names at most.
        min_n: Subgroups with fewer rows in the denominator are not searched, and say so.
        times: How many times outcomes are dealt out again.
        seed: Where random numbers start; the same seed gives the same values, whatever the order of rows.

    >>> from tidyfair import fall_out
    >>> from tidyfair.datasets import lending
    >>> search = subgroup_search(fall_out, ["sex", "race"])
    >>> found = search(lending(), "repaid", "approved", pos_label="yes")
    >>> found.select(".subgroup", ".denominator", ".p_adjusted").row(0)
    ('race=White', 1417, 0.0004997501249375312)
    """
    rate, columns = _checked("subgroup_search", metric, features, ("class",))
    numbers = {"depth": 1, "min_n": 1, "times": 1, "seed": 0}
    given = {"depth": depth, "min_n": min_n, "times": how_often(times), "seed": seed}
    return SubgroupSearch(rate, columns, **{name: whole(name, given[name], least) for name, least in numbers.items()})


def linear_subgroup(metric: Metric, features: Iterable[ColumnLike]) -> LinearSubgroup:
    """Audit for an unfair subgroup defined by a linear threshold of features (Kearns et al., 2018).

    The rate is fitted by least squares on the features, and the rows fitted below and above the rate of all are
    compared with it. This is the heuristic of that paper, not the exact search, which is as hard as learning: the
    larger `.violation` is a lower bound of the worst one. It has no p-value: that of `subgroup_search` is adjusted.

    Args:
        metric: A rate, also of scores; `fall_out` and `miss_rate` are those of the paper.
        features: Columns of numbers.

    Kearns et al. (2018), Preventing fairness gerrymandering.

    >>> import polars as pl
    >>> from tidyfair import selection_rate
    >>> seen = pl.DataFrame({"age": [20, 30, 40, 50], "hired": [1, 1, 0, 0]})
    >>> linear_subgroup(selection_rate, ["age"])(seen, estimate="hired")[".violation"].to_list()
    [0.25, 0.25]
    """
    return LinearSubgroup(*_checked("linear_subgroup", metric, features, ("class", "prob")))

"""Populations that are known, samples of them, and calls on many samples at once."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import scipy.special
import scipy.stats
from tables import LEVEL, Limits, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Array: TypeAlias = np.ndarray[Any, Any]

CELLS = pl.DataFrame({"truth": [1, 1, 0, 0], "estimate": [1, 0, 1, 0]})
TIMES = 500
"""Draws of an interval, where the library draws."""
ROWS_AT_ONCE = 400_000
_MANY = 6
"""More values than these are not listed."""


def with_runs(data: pl.DataFrame, runs: int) -> pl.DataFrame:
    """Data of runs that follow one another, with their numbers."""
    return data.with_columns(run=np.repeat(np.arange(runs), len(data) // runs))


def of_runs(metrics: Any, data: pl.DataFrame, *columns: Any, **options: Any) -> pl.DataFrame:
    """The results of all runs with their intervals, from one call."""
    usual = {"interval": "auto", "conf_level": LEVEL, "times": TIMES, "on_undefined": "ignore"}
    return metrics(data, *columns, group_by="run", **usual | options)


def true_values(metrics: Any, data: pl.DataFrame, *columns: str, **options: Any) -> dict[str, float]:
    """The values of metrics in a population, whose rows have `share` as their weight."""
    values = metrics(data, *columns, case_weights="share", on_undefined="ignore", **options)
    return dict(values.select(".metric", ".estimate").rows())


def in_parts(runs: int, rows: int) -> Iterator[int]:
    """Numbers of runs that are simulated at once, so that they fit into memory."""
    most = max(1, ROWS_AT_ONCE // rows)
    for start in range(0, runs, most):
        yield min(most, runs - start)


def add_metrics(table: Table, setting: str, result: pl.DataFrame, truths: dict[str, float], runs: int) -> None:
    """A row of the table for each metric of a set."""
    for metric, truth in truths.items():
        limits = Limits.of(result.filter(pl.col(".metric") == metric), runs)
        table.add(f"{metric} | {setting}", *limits.shares(truth))


@dataclass(frozen=True)
class Setting:
    """Groups of some sizes, with the rates that they have in truth."""

    rates: tuple[float, ...]
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        return f"{counted(self.rates)} | {counted(self.sizes)}"

    def hits(self, runs: int, random: np.random.Generator) -> Array:
        return random.binomial(self.sizes, self.rates, (runs, len(self.sizes)))

    def decisions(self, hits: Array) -> pl.DataFrame:
        """How many people of each group are hired, and how many are not, in each run."""
        rows = np.stack([hits, self.sizes - hits], axis=-1)
        groups = np.repeat(np.arange(len(self.sizes)), 2)
        decisions = pl.DataFrame({"group": groups, "hired": np.tile([1, 0], len(self.sizes))})
        return with_runs(pl.concat([decisions] * len(hits)), len(hits)).with_columns(rows=rows.ravel())

    def population(self) -> pl.DataFrame:
        """The decisions on groups with the rates that they have in truth."""
        hits = np.array(self.rates) * self.sizes
        return self.decisions(hits[None]).rename({"rows": "share"})

    @property
    def difference(self) -> float:
        return max(self.rates) - min(self.rates)

    @property
    def ratio(self) -> float:
        return min(self.rates) / max(self.rates)


def counted(values: tuple[float, ...]) -> str:
    """Values as text, equal neighbours by their number; of many different ones the ends."""
    counts = [(value, len(list(equal))) for value, equal in itertools.groupby(values)]
    if len(counts) > _MANY:
        return f"{len(values)} of {min(values):,.4g} to {max(values):,.4g}"
    return ", ".join(f"{value:,g}" if count == 1 else f"{count} of {value:,g}" for value, count in counts)


def even(rates: tuple[float, ...], total: int) -> Setting:
    return Setting(rates, (total // len(rates),) * len(rates))


def with_rare(rates: tuple[float, ...], total: int, rare: int) -> Setting:
    """The last group is rare, the others share what is left."""
    others = len(rates) - 1
    return Setting(rates, ((total - rare) // others,) * others + (rare,))


@dataclass(frozen=True)
class Classifier:
    """The share of events, and the shares of events and of others that are classified rightly."""

    base: float
    sens: float
    spec: float

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of the four cells, in the order of `CELLS`."""
        events, others = self.base, 1 - self.base
        return events * self.sens, events * (1 - self.sens), others * (1 - self.spec), others * self.spec

    def counted(self, rows: int, runs: int, random: np.random.Generator) -> pl.DataFrame:
        """How many rows fall into each cell, in each run."""
        counts = random.multinomial(rows, self.shares, runs)
        return with_runs(pl.concat([CELLS] * runs), runs).with_columns(rows=counts.ravel())

    def __str__(self) -> str:
        return f"{self.base:g}, {self.sens:g}, {self.spec:g}"


@dataclass(frozen=True)
class Errors:
    """Errors of numbers, of mean 0 and standard deviation 1."""

    name: str
    drawn: Callable[[np.random.Generator, int], Array]
    mean_size: float
    """The mean of the errors without their signs."""


_HEAVY = 5
"""Degrees of freedom of Student's t, which then has a fourth moment."""
_SCALE = ((_HEAVY - 2) / _HEAVY) ** 0.5
ERRORS = (
    Errors("normal", lambda random, size: random.standard_normal(size), (2 / np.pi) ** 0.5),
    Errors(
        "heavy (t with 5 degrees)", lambda random, size: _SCALE * random.standard_t(_HEAVY, size),
        _SCALE * float(scipy.stats.t(_HEAVY).expect(abs)),
    ),
    Errors("skewed (exponential)", lambda random, size: random.standard_exponential(size) - 1, 2 / np.e),
)  # fmt: skip


@dataclass(frozen=True)
class Risks:
    """Risks with a Beta distribution, and scores whose logits are too high by a number."""

    name: str
    one: float
    other: float
    shift: float = 0.0

    def score(self, risk: Array) -> Array:
        logit = np.log(risk / (1 - risk)) + self.shift
        return 1 / (1 + np.exp(-logit))

    def drawn(self, rows: int, random: np.random.Generator) -> pl.DataFrame:
        risk = random.beta(self.one, self.other, rows).clip(1e-9, 1 - 1e-9)
        return pl.DataFrame({"truth": random.random(rows) < risk, "score": self.score(risk)})

    def population(self) -> pl.DataFrame:
        """Equally likely risks, with and without the event, and the share of each."""
        many = 200_000
        risk = scipy.stats.beta(self.one, self.other).ppf((np.arange(many) + 0.5) / many).clip(1e-9, 1 - 1e-9)
        score = self.score(risk)
        return pl.DataFrame(
            {
                "truth": np.repeat([True, False], many),
                "score": np.concatenate([score, score]),
                "share": np.concatenate([risk, 1 - risk]),
            }
        )


RISKS = (
    Risks("calibrated", 2, 3), Risks("calibrated, few events", 1, 9), Risks("calibrated, sure", 0.5, 0.5),
    Risks("too high", 2, 3, shift=0.5),
)  # fmt: skip


def scored(area: float, events: int, others: int, random: np.random.Generator, runs: int) -> pl.DataFrame:
    """Normal scores with this area under the curve; of an area of 1, those with the event are all higher."""
    event = np.tile(np.arange(events + others) < events, runs)
    if area == 1:
        score = random.random(len(event)) + event
    else:
        score = random.standard_normal(len(event)) + event * NormalDist().inv_cdf(area) * 2**0.5
    return with_runs(pl.DataFrame({"truth": event, "score": score}), runs)


def grouped(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Samples of several groups in one frame, with the number of each group."""
    return pl.concat(part.with_columns(group=pl.lit(group)) for group, part in enumerate(parts))


def classified(classifiers: tuple[Classifier, ...], sizes: tuple[int, ...]) -> pl.DataFrame:
    """The cells of groups with the shares that they have in truth."""
    pairs = zip(classifiers, sizes, strict=True)
    return grouped([CELLS.with_columns(share=rows * pl.Series(classifier.shares)) for classifier, rows in pairs])


@dataclass(frozen=True)
class Clusters:
    """Clusters that share their luck: their rates have a Beta distribution with this intraclass correlation."""

    count: int
    rows: int
    """The rows of each group in each cluster."""
    correlation: float

    def __str__(self) -> str:
        return f"{self.count} of {self.rows} | {self.correlation:g}"

    def luck(self, runs: int, random: np.random.Generator) -> Array:
        """A normal number for each cluster, which all of its groups share."""
        return random.standard_normal((runs, self.count))

    def rates(self, rate: float, luck: Array) -> Array:
        """The rates of clusters, which are this one on average."""
        total = (1 - self.correlation) / self.correlation
        return scipy.special.betaincinv(rate * total, (1 - rate) * total, scipy.special.ndtr(luck))

    def labelled(self, counts: Array, cells: pl.DataFrame) -> pl.DataFrame:
        """Counts by run, cluster and cell; the runs have the same clusters."""
        runs = len(counts)
        cluster = np.repeat(np.arange(self.count), len(cells))
        rows = pl.concat([cells] * self.count).with_columns(cluster=cluster)
        return with_runs(pl.concat([rows] * runs), runs).with_columns(rows=counts.ravel())

    def decisions(self, rates: tuple[float, ...], runs: int, random: np.random.Generator) -> pl.DataFrame:
        """How many of each group are hired in each cluster."""
        luck, parts = self.luck(runs, random), list[pl.DataFrame]()
        for rate in rates:
            hits = random.binomial(self.rows, self.rates(rate, luck))
            counts = np.stack([hits, self.rows - hits], axis=-1)
            parts.append(self.labelled(counts, pl.DataFrame({"hired": [1, 0]})))
        return grouped(parts)

    def classified(self, classifiers: tuple[Classifier, ...], runs: int, random: np.random.Generator) -> pl.DataFrame:
        """How many of each group fall into each cell in each cluster, some of which are easier than others."""
        luck, parts = self.luck(runs, random), list[pl.DataFrame]()
        for classifier in classifiers:
            events = random.binomial(self.rows, classifier.base, luck.shape)
            hits = random.binomial(events, self.rates(classifier.sens, luck))
            rest = random.binomial(self.rows - events, self.rates(classifier.spec, luck))
            counts = np.stack([hits, events - hits, self.rows - events - rest, rest], axis=-1)
            parts.append(self.labelled(counts, CELLS))
        return grouped(parts)

    def errors(self, scales: tuple[float, ...], runs: int, random: np.random.Generator) -> pl.DataFrame:
        """Normal errors of groups with these standard deviations, a part of which all rows of a cluster share."""
        luck, parts = self.luck(runs, random), list[pl.DataFrame]()
        for scale in scales:
            own = random.standard_normal((*luck.shape, self.rows))
            error = self.correlation**0.5 * luck[:, :, None] + (1 - self.correlation) ** 0.5 * own
            cluster = np.tile(np.repeat(np.arange(self.count), self.rows), runs)
            rows = pl.DataFrame({"truth": (scale * error).ravel(), "estimate": 0.0, "cluster": cluster})
            parts.append(with_runs(rows, runs))
        return grouped(parts)

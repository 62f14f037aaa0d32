"""Values of one group: rates, scores of classes, errors of numbers and of probabilities, areas."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import scipy.stats
from tables import INTERVAL, LEVEL, Limits, Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Array: TypeAlias = np.ndarray[Any, Any]

CELLS = pl.DataFrame({"truth": [1, 1, 0, 0], "estimate": [1, 0, 1, 0]})
TIMES = 500
"""Draws of an interval, where the library draws."""
ROWS_AT_ONCE = 400_000
_OF_CLASSES = (tdf.f_meas, tdf.bal_accuracy, tdf.mcc, tdf.kap, tdf.j_index, tdf.precision, tdf.sens)
_OF_NUMBERS = (tdf.rmse, tdf.mae, tdf.rsq, tdf.ccc)
_OF_SCORES = (tdf.brier_class, tdf.mn_log_loss, tdf.calibration_in_the_large, tdf.calibration_ratio)


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


def with_runs(data: pl.DataFrame, runs: int) -> pl.DataFrame:
    """Data of runs that follow one another, with their numbers."""
    return data.with_columns(run=np.repeat(np.arange(runs), len(data) // runs))


def of_runs(metrics: Any, data: pl.DataFrame, *columns: str, **options: Any) -> pl.DataFrame:
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


def of_classes(runs: int, random: np.random.Generator) -> Table:
    table = Table(
        "Values of classes", "metric | events, sens and spec | rows", INTERVAL,
        "`truth below` is the share of intervals that lie above the truth.",
    )  # fmt: skip
    metrics = tdf.metric_set(*_OF_CLASSES)
    classifiers = (
        Classifier(0.5, 0.8, 0.8), Classifier(0.3, 0.6, 0.95), Classifier(0.1, 0.9, 0.9), Classifier(0.5, 0.97, 0.97),
    )  # fmt: skip
    for classifier in classifiers:
        population = CELLS.with_columns(share=pl.Series(classifier.shares))
        truths = true_values(metrics, population, "truth", "estimate")
        for rows in (3, 6, 10, 15, 40, 300):
            data = classifier.counted(rows, runs, random)
            result = of_runs(metrics, data, "truth", "estimate", frequency_weights="rows")
            add_metrics(table, f"{classifier} | {rows}", result, truths, runs)
    return table.close()


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


def of_numbers(runs: int, random: np.random.Generator) -> Table:
    table = Table("Values of numbers", "metric | errors | rows", INTERVAL)
    metrics, spread = tdf.metric_set(*_OF_NUMBERS), 0.75
    for errors in ERRORS:
        # the estimate has variance 1, and the truth is the estimate and an error
        total = 1 + spread**2
        truths = {"rmse": spread, "mae": spread * errors.mean_size, "rsq": 1 / total, "ccc": 2 / (1 + total)}
        for rows in (6, 15, 40, 300):
            parts = list[pl.DataFrame]()
            for part in in_parts(runs, rows):
                estimate = random.standard_normal(part * rows)
                truth = estimate + spread * errors.drawn(random, part * rows)
                data = with_runs(pl.DataFrame({"truth": truth, "estimate": estimate}), part)
                parts.append(of_runs(metrics, data, "truth", "estimate"))
            add_metrics(table, f"{errors.name} | {rows}", pl.concat(parts), truths, runs)
    return table.close()


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


def of_scores(runs: int, random: np.random.Generator) -> Table:
    table = Table("Values of scores", "metric | risks | rows", INTERVAL)
    metrics = tdf.metric_set(*_OF_SCORES)
    for risks in RISKS:
        truths = true_values(metrics, risks.population(), "truth", probs="score")
        for rows in (6, 15, 40, 300):
            parts = list[pl.DataFrame]()
            for part in in_parts(runs, rows):
                data = with_runs(risks.drawn(part * rows, random), part)
                parts.append(of_runs(metrics, data, "truth", probs="score"))
            add_metrics(table, f"{risks.name} | {rows}", pl.concat(parts), truths, runs)
    return table.close()


def scored(area: float, events: int, others: int, random: np.random.Generator, runs: int) -> pl.DataFrame:
    """Normal scores with this area under the curve; of an area of 1, those with the event are all higher."""
    event = np.tile(np.arange(events + others) < events, runs)
    if area == 1:
        score = random.random(len(event)) + event
    else:
        score = random.standard_normal(len(event)) + event * NormalDist().inv_cdf(area) * 2**0.5
    return with_runs(pl.DataFrame({"truth": event, "score": score}), runs)


def of_areas(runs: int, random: np.random.Generator) -> Table:
    table = Table("Areas of one group", "metric | area | with the event | without", INTERVAL)
    for area in (0.75, 0.9, 0.97, 0.99, 1):
        for events, others in ((5, 5), (15, 85), (10, 30), (50, 150)):
            parts = [
                of_runs(tdf.roc_auc, scored(area, events, others, random, part), "truth", probs="score")
                for part in in_parts(runs, events + others)
            ]
            add_metrics(table, f"{area:g} | {events} | {others}", pl.concat(parts), {"roc_auc": area}, runs)
    return table.close()

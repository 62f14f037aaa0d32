"""Gates: how often they are wrong where the truth is the limit, and what they say of fair models."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from samples import (
    RISKS,
    Classifier,
    Clusters,
    Risks,
    Setting,
    classified,
    counted,
    even,
    grouped,
    in_parts,
    of_runs,
    scored,
    true_values,
    with_rare,
    with_runs,
)
from tables import LEVEL, Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BOTH_SIDES = 2 * LEVEL - 1
"""The level of intervals whose ends are each as sure as a gate."""
_COUNTS: dict[str, Any] = {"frequency_weights": "rows"}
_SCORES = (("probs", "score"),)
_GOOD, _WORSE = Classifier(0.5, 0.9, 0.9), Classifier(0.5, 0.8, 0.85)


def verdicts(result: pl.DataFrame, **limit: Any) -> tuple[float, float]:
    """The shares of runs that pass and that fail."""
    judged = tdf.check(result, **limit)[".verdict"]
    return float((judged == "pass").mean()), float((judged == "fail").mean())


def _judged(
    metrics: Any, data: pl.DataFrame, *columns: str, conf_level: float = _BOTH_SIDES, **options: Any
) -> pl.DataFrame:
    """Results to be judged; where the limit is equality itself, a gate has the limits of a two-sided interval."""
    return of_runs(metrics, data, *columns, conf_level=conf_level, explain=True, **options)


def of_rates(runs: int, random: np.random.Generator) -> Table:
    """The truth is the limit, so that a gate is wrong whenever it does not lack evidence."""
    columns = ("below= passes, %", "below= fails, %", "above= passes, %", "above= fails, %")
    table = Table("Gates of rates, the truth being the limit", "groups | rates | rows", columns)
    several: list[tuple[float, ...]] = [
        (0.4, 0.5), (0.05, 0.1), (0.5,) * 5 + (0.4,), (0.5,) * 3 + (0.4,) * 3, (0.4, 0.32), (0.5,) * 19 + (0.4,),
    ]  # fmt: skip
    settings = [even(rates, total) for rates in several for total in (200, 1_000, 10_000)]
    settings += [with_rare((0.5,) * 5 + (0.4,), 1_000, rare) for rare in (6, 20, 60)]
    settings += [Setting((0.5,) * 19 + (0.4,), (300,) * 20), Setting((0.97, 0.97, 0.9), (400, 400, 8))]
    settings += [Setting((0.05, 0.001, 0.001), (30,) * 3), Setting((0.03, *(0.001,) * 3), (60,) * 4)]
    for setting in settings:
        data, shares = setting.decisions(setting.hits(runs, random)), list[float]()
        limits: list[tuple[Any, dict[str, float]]] = [
            (tdf.difference(), {"below": setting.difference}), (tdf.ratio(), {"above": setting.ratio}),
        ]  # fmt: skip
        for aggregate, limit in limits:
            metric = tdf.demographic_parity("group", aggregate=aggregate)
            shares += verdicts(_judged(metric, data, estimate="hired", **_COUNTS), **limit)
        table.add(f"{len(setting.sizes)} groups | {setting}", *shares)
    return table.close()


def of_fair_rates(runs: int, random: np.random.Generator) -> Table:
    """Equal groups, which should pass; the limits are 0.1 and four fifths."""
    columns = ("0.1 passes, %", "0.1 fails, %", "four fifths pass, %", "four fifths fail, %")
    table = Table("Gates of equal rates", "groups | rates | rows", columns)
    sizes: list[tuple[int, ...]] = [(rows,) * groups for groups in (2, 5, 20) for rows in (100, 300, 1_000)]
    sizes += [(400, 400, 8), (300,) * 19 + (8,)]
    for rate, rows in itertools.product((0.3, 0.7, 0.97), sizes):
        setting = Setting((rate,) * len(rows), rows)
        data = setting.decisions(setting.hits(runs, random))
        difference, ratio = (
            _judged(metric("group"), data, estimate="hired", **_COUNTS)
            for metric in (tdf.demographic_parity, tdf.demographic_parity_ratio)
        )
        shares = verdicts(difference, below=0.1) + verdicts(ratio, above=0.8)
        table.add(f"{len(rows)} groups | {setting}", *shares)
    return table.close()


@dataclass(frozen=True)
class Case:
    """A gap of a metric between groups: how its data are drawn, how it is called, and its truth."""

    metric: tdf.types.Metric
    setting: str
    rows: int
    drawn: Callable[[int, np.random.Generator], pl.DataFrame]
    """The data of so many runs."""
    truth: float
    columns: tuple[str, ...] = ("truth", "estimate")
    options: tuple[tuple[str, str], ...] = ()

    def result(self, runs: int, random: np.random.Generator, *levels: float) -> list[pl.DataFrame]:
        """The results of the same data with intervals of some levels."""
        gap = _gap(self.metric)
        options: dict[str, Any] = dict(self.options)
        parts = [self.drawn(part, random) for part in in_parts(runs, self.rows)]
        return [
            pl.concat(_judged(gap, part, *self.columns, conf_level=level, **options) for part in parts)
            for level in levels
        ]


def _gap(metric: tdf.types.Metric) -> tdf.types.GroupwiseMetric:
    return tdf.new_groupwise_metric(metric, "gap", tdf.difference())("group")


def _sizes(*, rare: bool) -> Iterator[tuple[int, ...]]:
    yield from ((100, 100), (500, 500), (300,) * 5, (300,) * 20)
    if rare:
        yield from ((400, 400, 20), (400, 400, 8))


def _of_classes(*, fair: bool) -> Iterator[Case]:
    metrics = (tdf.accuracy, tdf.f_meas, tdf.bal_accuracy, tdf.mcc)
    for metric, sizes in itertools.product(metrics, _sizes(rare=True)):
        classifiers = (_GOOD,) * (len(sizes) - 1) + (_GOOD if fair else _WORSE,)
        truths = true_values(_gap(metric), classified(classifiers, sizes), "truth", "estimate")
        drawn = partial(_labels, classifiers, sizes)
        yield Case(metric, counted(sizes), 4 * len(sizes), drawn, truths["gap"], options=tuple(_COUNTS.items()))


def _labels(
    classifiers: tuple[Classifier, ...], sizes: tuple[int, ...], runs: int, random: np.random.Generator
) -> pl.DataFrame:
    pairs = zip(classifiers, sizes, strict=True)
    return grouped([classifier.counted(rows, runs, random) for classifier, rows in pairs])


def _of_clusters(*, fair: bool) -> Iterator[Case]:
    classifiers = (_GOOD, _GOOD if fair else _WORSE)
    options = (*_COUNTS.items(), ("cluster", "cluster"))
    for metric, count in itertools.product((tdf.accuracy, tdf.f_meas), (10, 30, 200)):
        truths = true_values(_gap(metric), classified(classifiers, (1, 1)), "truth", "estimate")
        drawn = partial(Clusters(count, 10, 0.1).classified, classifiers)
        # replicates of clusters take memory
        yield Case(metric, f"2 in {count} clusters", 40 * count, drawn, truths["gap"], options=options)


def _of_numbers(*, fair: bool) -> Iterator[Case]:
    for sizes in _sizes(rare=True):
        scales = (1.0,) * (len(sizes) - 1) + (1.0 if fair else 1.25,)
        yield Case(tdf.rmse, counted(sizes), sum(sizes), partial(_numbers, scales, sizes), scales[-1] - 1)


def _numbers(scales: tuple[float, ...], sizes: tuple[int, ...], runs: int, random: np.random.Generator) -> pl.DataFrame:
    frames = [
        pl.DataFrame({"truth": scale * random.standard_normal(runs * rows), "estimate": 0.0})
        for scale, rows in zip(scales, sizes, strict=True)
    ]
    return grouped([with_runs(frame, runs) for frame in frames])


def _of_scores(*, fair: bool) -> Iterator[Case]:
    calibrated, _, sure, _ = RISKS
    for sizes in _sizes(rare=True):
        risks = (calibrated,) * (len(sizes) - 1) + (calibrated if fair else sure,)
        populations = grouped([risks[0].population(), risks[-1].population()])
        truth = true_values(_gap(tdf.brier_class), populations, "truth", probs="score")["gap"]
        drawn = partial(_scores, risks, sizes)
        yield Case(tdf.brier_class, counted(sizes), sum(sizes), drawn, truth, ("truth",), _SCORES)


def _scores(risks: tuple[Risks, ...], sizes: tuple[int, ...], runs: int, random: np.random.Generator) -> pl.DataFrame:
    frames = [of_group.drawn(runs * rows, random) for of_group, rows in zip(risks, sizes, strict=True)]
    return grouped([with_runs(frame, runs) for frame in frames])


def _of_areas(*, fair: bool) -> Iterator[Case]:
    for sizes in _sizes(rare=False):
        areas = (0.8,) * (len(sizes) - 1) + (0.8 if fair else 0.7,)
        drawn = partial(_scored, areas, sizes)
        yield Case(tdf.roc_auc, counted(sizes), sum(sizes), drawn, areas[0] - areas[-1], ("truth",), _SCORES)


def _scored(areas: tuple[float, ...], sizes: tuple[int, ...], runs: int, random: np.random.Generator) -> pl.DataFrame:
    pairs = zip(areas, sizes, strict=True)
    return grouped([scored(area, rows // 4, rows - rows // 4, random, runs) for area, rows in pairs])


_KINDS = (_of_classes, _of_clusters, _of_numbers, _of_scores, _of_areas)


def _fewer(runs: int, case: Case) -> int:
    """A quarter of the runs of many rows."""
    return runs if case.rows < 1_000 else max(1, runs // 4)


def of_metrics(runs: int, random: np.random.Generator) -> Table:
    """The truth is the limit."""
    table = Table("Gates of other metrics, the truth being the limit", "metric | rows", ("passes, %", "fails, %"))
    for kind in _KINDS:
        for case in kind(fair=False):
            (result,) = case.result(_fewer(runs, case), random, _BOTH_SIDES)
            table.add(f"{case.metric.name} | {case.setting}", *verdicts(result, below=case.truth))
    return table.close()


def of_fair_metrics(runs: int, random: np.random.Generator) -> Table:
    """Groups that are equal in what is compared; 0.1 should pass, and 0 fails where any difference is sure."""
    columns = ("0.1 passes, %", "0.1 fails, %", "0 fails, %")
    table = Table("Gates of other metrics, of equal groups", "metric | rows", columns)
    for kind in _KINDS:
        for case in kind(fair=True):
            result, two_sided = case.result(_fewer(runs, case), random, _BOTH_SIDES, LEVEL)
            passed, failed = verdicts(result, below=0.1)
            table.add(f"{case.metric.name} | {case.setting}", passed, failed, verdicts(two_sided, below=0.0)[1])
    return table.close()


_NEAR: dict[str, dict[str, float]] = {"difference": {"below": 0.05}, "ratio": {"above": 0.8}}
_EQUAL: dict[str, dict[str, float]] = {"difference": {"below": 0.0}, "ratio": {"above": 1.0}}
"""Limits of equal groups: some tolerance, and none."""


def with_small_group(runs: int, random: np.random.Generator) -> Table:
    """Equal groups, one of them so small that it may be all right by luck, which makes ratios of shares infinite."""
    columns = ("fails, %", "fails at equality, %", "all right, %", "fails if all right, %")
    note = "The limits are 0.05 of differences and 0.8 of ratios, and those of equality."
    table = Table("Gates of equal groups, one of them small", "comparison | sens and spec | rows", columns, note)
    differences = (
        tdf.accuracy, tdf.sens, tdf.f_meas, tdf.bal_accuracy, tdf.mcc, tdf.positive_likelihood_ratio,
        tdf.diagnostic_odds_ratio,
    )  # fmt: skip
    ratios = (tdf.accuracy, tdf.f_meas, tdf.false_positive_rate, tdf.error_rate, tdf.positive_likelihood_ratio)
    compared = [(metric, tdf.difference()) for metric in differences] + [(metric, tdf.ratio()) for metric in ratios]
    gaps = {
        f"{aggregate.kind} of {metric.name}": (
            aggregate.kind, tdf.new_groupwise_metric(metric, f"{aggregate.kind} of {metric.name}", aggregate)("group"),
        )
        for metric, aggregate in compared
    }  # fmt: skip
    together = tdf.metric_set(*(gap for _, gap in gaps.values()))
    for right, small in itertools.product((0.8, 0.9, 0.97), (4, 8, 20)):
        classifier, sizes = Classifier(0.5, right, right), (small, 400, 400)
        data = grouped([classifier.counted(rows, runs, random) for rows in sizes])
        wrong = pl.col("rows").filter((pl.col("group") == 0) & (pl.col("truth") != pl.col("estimate"))).sum()
        lucky = data.group_by("run").agg(wrong.alias("wrong")).sort("run")["wrong"] == 0
        result, at_equality = (
            _judged(together, data, "truth", "estimate", conf_level=level, **_COUNTS) for level in (_BOTH_SIDES, LEVEL)
        )
        for name, (kind, _) in gaps.items():
            of_gap = result.filter(pl.col(".metric") == name).sort("run")
            of_lucky = of_gap.filter(lucky)
            _, failed = verdicts(of_gap, **_NEAR[kind])
            _, failed_at_equality = verdicts(at_equality.filter(pl.col(".metric") == name), **_EQUAL[kind])
            failed_by_luck = verdicts(of_lucky, **_NEAR[kind])[1] if len(of_lucky) else np.nan
            shares = failed, failed_at_equality, float(lucky.to_numpy().mean()), failed_by_luck
            table.add(f"{name} | {right:g} | {counted(sizes)}", *shares)
    return table.close()


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "gates_of_rates": of_rates, "gates_of_fair_rates": of_fair_rates, "gates": of_metrics,
    "fair_gates": of_fair_metrics, "small_group": with_small_group,
}  # fmt: skip

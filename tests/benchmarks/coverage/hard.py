"""Settings that are hard: scores near perfect, wide or skewed errors, few events, groups of very unequal sizes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from samples import Classifier, Setting, add_metrics, classified, grouped, of_runs, true_values, with_runs
from tables import INTERVAL, Limits, Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable

    from samples import Array

_COUNTS: dict[str, Any] = {"frequency_weights": "rows"}
_MANY = 2_000_000
"""The rows of a sample that stands for the population."""
_GAP = tdf.difference(to=0, signed=True)


def of_values(runs: int, random: np.random.Generator) -> Table:
    table = Table("Hard settings of values", "metric | setting | rows", INTERVAL)
    for measure in (_areas, _labels, _numbers, _skewed, _calibration):
        measure(table, runs, random)
    return table.close()


def of_gaps(runs: int, random: np.random.Generator) -> Table:
    table = Table("Hard settings of gaps", "metric | setting | rows", INTERVAL)
    for measure in (_gaps, _own_aggregates, _areas_beside_rests):
        measure(table, runs, random)
    return table.close()


def at_once(runs: int, random: np.random.Generator) -> Table:
    table = Table(
        "Limits of all groups at once", "metric | groups | rows of each", ("all are covered, %", "mean width")
    )
    classifier = Classifier(0.5, 0.8, 0.8)
    for (groups, rows), metric in itertools.product(
        ((6, 20), (6, 50), (20, 20), (20, 50)), (tdf.sens, tdf.bal_accuracy, tdf.f_meas)
    ):
        data = grouped([classifier.counted(rows, runs, random) for _ in range(groups)])
        parity = metric.difference("group")
        limits = parity.by_group(
            data,
            "truth",
            "estimate",
            group_by="run",
            interval="auto",
            simultaneous=True,
            on_undefined="ignore",
            **_COUNTS,
        )
        truth = true_values(metric, classified((classifier,), (1,)), "truth", "estimate")[metric.name]
        holds = limits.with_columns(holds=pl.lit(truth).is_between(".lower", ".upper").fill_null(value=True))
        share = holds.group_by("run").agg(pl.col("holds").all())["holds"].mean()
        width = (limits[".upper"] - limits[".lower"]).mean()
        table.add(f"{metric.name} | {groups} | {rows}", float(share), float(width))  # pyright: ignore[reportArgumentType] - means of numbers
    return table.close()


def _areas(table: Table, runs: int, random: np.random.Generator) -> None:
    """Exponential scores, also where a tenth of the events is scored as the others are."""
    for area, share, events, others in (
        (0.97, 0.0, 20, 180), (0.97, 0.0, 15, 85), (0.97, 0.1, 15, 85), (0.97, 0.1, 30, 170), (0.97, 0.1, 60, 140),
    ):  # fmt: skip
        data = _exponential(area, share, events, others, runs, random)
        truths = {"roc_auc": area * (1 - share) + share / 2}
        setting = "exponential scores" + (f", {share:.0%} of events unpredictable" if share else "")
        result = of_runs(tdf.roc_auc, data, "truth", probs="score")
        add_metrics(table, f"{setting} | {events} and {others}", result, truths, runs)
    for events, others in ((20, 180), (40, 360)):
        many = _exponential(0.9, 0.0, _MANY // 10, _MANY - _MANY // 10, 1, random)
        truths = true_values(tdf.pr_auc, many.with_columns(share=1.0), "truth", probs="score")
        data = _exponential(0.9, 0.0, events, others, runs, random)
        result = of_runs(tdf.pr_auc, data, "truth", probs="score")
        add_metrics(table, f"exponential scores | {events} and {others}", result, truths, runs)


def _exponential(
    area: float, share: float, events: int, others: int, runs: int, random: np.random.Generator
) -> pl.DataFrame:
    """Exponential scores with this area, and a share of the events scored as the others are."""
    is_event = np.tile(np.arange(events + others) < events, runs)
    is_predictable = is_event & (random.random(len(is_event)) >= share)
    score = random.standard_exponential(len(is_event)) * np.where(is_predictable, area / (1 - area), 1.0)
    return with_runs(pl.DataFrame({"truth": is_event, "score": score}), runs)


def _labels(table: Table, runs: int, random: np.random.Generator) -> None:
    """Classifiers that are nearly perfect."""
    metrics = tdf.metric_set(tdf.kap, tdf.mcc)
    for classifier, rows in ((Classifier(0.3, 0.98, 0.99), 100), (Classifier(0.1, 0.99, 0.99), 300)):
        truths = true_values(metrics, classified((classifier,), (1,)), "truth", "estimate")
        result = of_runs(metrics, classifier.counted(rows, runs, random), "truth", "estimate", **_COUNTS)
        add_metrics(table, f"{classifier} | {rows}", result, truths, runs)


def _wide(random: np.random.Generator, size: int) -> Array:
    """Normal errors, a twentieth of which is five times as wide."""
    return random.standard_normal(size) * np.where(random.random(size) < 0.05, 5.0, 1.0)


def _lognormal(random: np.random.Generator, size: int) -> Array:
    return random.lognormal(size=size)


_HARD_ERRORS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "errors 5% wide": _wide, "errors lognormal": _lognormal,
}  # fmt: skip


def _errors(drawn: Callable[[np.random.Generator, int], Array], rows: int, random: np.random.Generator) -> pl.DataFrame:
    return pl.DataFrame({"truth": drawn(random, rows), "estimate": 0.0})


def _numbers(table: Table, runs: int, random: np.random.Generator) -> None:
    metrics = tdf.metric_set(tdf.rmse, tdf.mae)
    for name, drawn in _HARD_ERRORS.items():
        truths = true_values(metrics, _errors(drawn, _MANY, random).with_columns(share=1.0), "truth", "estimate")
        for rows in (40, 200):
            data = with_runs(_errors(drawn, runs * rows, random), runs)
            add_metrics(table, f"{name} | {rows}", of_runs(metrics, data, "truth", "estimate"), truths, runs)


def _skewed(table: Table, runs: int, random: np.random.Generator) -> None:
    """Predictions with a lognormal distribution, and normal errors."""
    metrics = tdf.metric_set(tdf.rsq, tdf.ccc)

    def predicted(rows: int) -> pl.DataFrame:
        estimate = random.lognormal(size=rows)
        return pl.DataFrame({"truth": estimate + random.standard_normal(rows), "estimate": estimate})

    truths = true_values(metrics, predicted(_MANY).with_columns(share=1.0), "truth", "estimate")
    for rows in (40, 200):
        data = with_runs(predicted(runs * rows), runs)
        add_metrics(table, f"predictions lognormal | {rows}", of_runs(metrics, data, "truth", "estimate"), truths, runs)


def _gaps(table: Table, runs: int, random: np.random.Generator) -> None:
    """Gaps of two groups of the same population, and of two small groups with rates near 0 and 1."""
    for sizes in ((200, 20), (100, 100)):
        for name, drawn in _HARD_ERRORS.items():
            data = grouped([with_runs(_errors(drawn, runs * rows, random), runs) for rows in sizes])
            for metric in (tdf.rmse, tdf.mae):
                gap = tdf.new_groupwise_metric(metric, f"{metric.name} gap", _GAP)("group")
                result = of_runs(gap, data, "truth", "estimate")
                add_metrics(table, f"{name} | {sizes[0]} and {sizes[1]}", result, {gap.name: 0.0}, runs)
        data = grouped([with_runs(_intervals(runs * rows, random), runs) for rows in sizes])
        gap = tdf.new_groupwise_metric(tdf.prediction_intervals.score, "interval_score gap", _GAP)("group")
        result = of_runs(gap, data, "truth", tdf.prediction_intervals.interval("low", "high", level=0.9))
        add_metrics(table, f"normal intervals | {sizes[0]} and {sizes[1]}", result, {gap.name: 0.0}, runs)
    setting = Setting((0.02, 0.98), (20, 20))
    data = setting.decisions(setting.hits(runs, random))
    result = of_runs(tdf.demographic_parity("group", aggregate=_GAP), data, estimate="hired", **_COUNTS)
    add_metrics(table, str(setting), result, {"demographic_parity": 0.96}, runs)


def _intervals(rows: int, random: np.random.Generator) -> pl.DataFrame:
    """Normal truths, and intervals that hold nine tenths of them."""
    end = 1.6449
    return pl.DataFrame({"truth": random.standard_normal(rows), "low": -end, "high": end})


def _calibration(table: Table, runs: int, random: np.random.Generator) -> None:
    """Scores that are risks, and scores that are too far from one half."""
    metrics = tdf.metric_set(tdf.calibration.error, tdf.calibration.error_debiased)

    def scored(rows: int, slope: float) -> pl.DataFrame:
        score = random.random(rows)
        return pl.DataFrame({"truth": random.random(rows) < 0.5 + slope * (score - 0.5), "score": score})

    for name, slope in (("calibrated", 1.0), ("too far from one half", 0.7)):
        # in bins of equal width, the mean of the scores is far from that of the risks by (1 - slope) |score - 0.5|
        truth = (1 - slope) * float(np.abs(np.arange(0.05, 1, 0.1) - 0.5).mean())
        for rows in (200, 2_000):
            result = of_runs(metrics, with_runs(scored(runs * rows, slope), runs), "truth", probs="score")
            truths = {metric.name: truth for metric in metrics.metrics}
            add_metrics(table, f"{name} | {rows:,}", result, truths, runs)


def _own_aggregates(table: Table, runs: int, random: np.random.Generator) -> None:
    """Distances of one's own; a quarter of the runs."""
    fewer = max(1, runs // 4)
    value = pl.col(".estimate")
    aggregates = {
        "largest less smallest": tdf.new_aggregate(value.max() - value.min(), equal=0),
        "mean distance": tdf.new_aggregate((value - value.mean()).abs().mean(), equal=0),
    }
    for rates in ((0.4, 0.4, 0.4), (0.3, 0.4, 0.5), (0.4, 0.4, 0.6)):
        setting = Setting(rates, (200, 200, 200))
        data = setting.decisions(setting.hits(fewer, random))
        for name, aggregate in aggregates.items():
            metric = tdf.demographic_parity("group", aggregate=aggregate)
            (truth,) = true_values(metric, setting.population(), estimate="hired").values()
            limits = Limits.of(of_runs(metric, data, estimate="hired", **_COUNTS), fewer)
            table.add(f"{name} | {setting}", *limits.shares(truth))


def _areas_beside_rests(table: Table, runs: int, random: np.random.Generator) -> None:
    """Areas of four groups, of which the smallest or the largest has scores that tell less; a quarter of the runs."""
    fewer, sizes, metric = max(1, runs // 4), (300, 200, 60, 40), tdf.roc_auc.difference("group", to="rest")
    for setting, shifts in (("the smallest tells less", (1, 1, 1, 0.3)), ("the largest tells less", (0.3, 1, 1, 1))):
        data, many = (
            grouped([_shifted(times * rows, shift, times, random) for rows, shift in zip(sizes, shifts, strict=True)])
            for times in (fewer, _MANY // sum(sizes))
        )
        (truth,) = true_values(metric, many.with_columns(share=1.0), "truth", probs="score").values()
        limits = Limits.of(of_runs(metric, data, "truth", probs="score"), fewer)
        table.add(f"roc_auc to the rest | {setting} | {', '.join(map(str, sizes))}", *limits.shares(truth))


def _shifted(rows: int, shift: float, runs: int, random: np.random.Generator) -> pl.DataFrame:
    """Normal scores that are higher for events, which are two in five."""
    truth = random.random(rows) < 0.4
    score = random.standard_normal(rows) + shift * truth
    return with_runs(pl.DataFrame({"truth": truth, "score": score}), runs)


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "hard": of_values, "hard_gaps": of_gaps, "at_once": at_once,
}  # fmt: skip

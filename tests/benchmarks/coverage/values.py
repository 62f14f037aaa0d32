"""Values of one group: rates, scores of classes, errors of numbers and of probabilities, areas."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from samples import (
    CELLS,
    ERRORS,
    RISKS,
    Classifier,
    Setting,
    add_metrics,
    in_parts,
    of_runs,
    scored,
    true_values,
    with_runs,
)
from tables import INTERVAL, Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable

_OF_CLASSES = (
    tdf.f_meas, tdf.bal_accuracy, tdf.mcc, tdf.kap, tdf.j_index, tdf.precision, tdf.sens,
    tdf.positive_likelihood_ratio, tdf.diagnostic_odds_ratio,
)  # fmt: skip
_OF_NUMBERS = (tdf.rmse, tdf.mae, tdf.rsq, tdf.ccc)
_OF_SURVIVAL = (tdf.survival.brier, tdf.survival.calibration_in_the_large, tdf.survival.calibration_ratio)
_OF_SCORES = (tdf.brier_class, tdf.mn_log_loss, tdf.calibration.in_the_large, tdf.calibration.ratio)


def of_rates(runs: int, random: np.random.Generator) -> Table:
    table = Table("Rates", "metric | rate | rows", INTERVAL)
    for rate, rows in itertools.product((0.02, 0.05, 0.2, 0.4, 0.7), (3, 6, 10, 20, 60, 200, 1_000, 10_000)):
        setting = Setting((rate,), (rows,))
        data = setting.decisions(setting.hits(runs, random))
        result = of_runs(tdf.selection_rate, data, estimate="hired", frequency_weights="rows")
        add_metrics(table, f"{rate:g} | {rows:,}", result, {"selection_rate": rate}, runs)
    return table.close()


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


def of_survival(runs: int, random: np.random.Generator) -> Table:
    """Calibrated probabilities to survive a year of three, with a part of people censored within each year."""
    table = Table("Values of survival", "metric | events in a year | censored in a year | rows", INTERVAL)
    metrics = tdf.metric_set(*_OF_SURVIVAL)
    for share, censored, rows in itertools.product((0.02, 0.05, 0.2), (0.0, 0.3), (20, 50, 150)):
        risks = -np.log(1 - share) * np.linspace(0.5, 1.5, 1_001)
        truths = dict(zip((metric.name for metric in _OF_SURVIVAL), (0.0, 0.0, 1.0), strict=True))
        truths["brier_survival"] = float((np.exp(-risks) * (1 - np.exp(-risks))).mean())
        parts = list[pl.DataFrame]()
        for part in in_parts(runs, rows):
            hazard = random.choice(risks, part * rows)
            event = random.exponential(1 / hazard)
            leaves = (
                random.exponential(size=part * rows) / -np.log(1 - censored) if censored else np.full(len(event), 3)
            )
            end = np.minimum(leaves, 3)
            people = pl.DataFrame({"time": np.minimum(event, end), "event": event <= end, "survival": np.exp(-hazard)})
            data = with_runs(people.with_row_index("person"), part)
            probs = {1: "survival"}
            parts.append(of_runs(metrics, data, tdf.survival.outcome("time", "event"), probs=probs, cluster="person"))
        add_metrics(table, f"{share:g} | {censored:g} | {rows}", pl.concat(parts), truths, runs)
    return table.close()


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


def of_fits(runs: int, random: np.random.Generator) -> Table:
    """Calibration lines, which are fitted; with lognormal weights, too."""
    table = Table("Calibration lines", "metric | risks | standard deviation of the log weights | rows", INTERVAL)
    metrics = tdf.metric_set(tdf.calibration.slope, tdf.calibration.intercept)
    for spread, risks, rows in itertools.product((0.0, 0.5, 1.0, 1.5), RISKS, (15, 40, 100, 300)):
        # the logit of the risk is that of the score, less its shift
        truths = {"calibration_slope": 1.0, "calibration_intercept": -risks.shift}
        data = with_runs(risks.drawn(runs * rows, random), runs)
        weights = pl.Series("weight", np.exp(spread * random.standard_normal(runs * rows)))
        options = {"case_weights": "weight"} if spread else {}
        result = of_runs(metrics, data.with_columns(weights), "truth", probs="score", **options)
        add_metrics(table, f"{risks.name} | {spread:g} | {rows:,}", result, truths, runs)
    return table.close()


def of_ranked(runs: int, random: np.random.Generator) -> Table:
    """What has replicates of its rows; a fifth of the runs."""
    table = Table("What reads rows", "metric | population | rows", INTERVAL)
    fewer, many = max(1, runs // 5), 2_000_000
    for risks, rows in itertools.product(RISKS, (50, 200, 1_000)):
        (truth,) = true_values(
            tdf.pr_auc, risks.drawn(many, random).with_columns(share=1.0), "truth", probs="score"
        ).values()
        data = with_runs(risks.drawn(fewer * rows, random), fewer)
        result = of_runs(tdf.pr_auc, data, "truth", probs="score")
        add_metrics(table, f"{risks.name} | {rows:,}", result, {"pr_auc": truth}, fewer)
    for errors, rows in itertools.product(ERRORS, (50, 200, 1_000)):
        truth = float(np.median(np.abs(errors.drawn(random, many))))
        numbers = pl.DataFrame({"truth": errors.drawn(random, fewer * rows), "estimate": 0.0})
        result = of_runs(tdf.median_absolute_error, with_runs(numbers, fewer), "truth", "estimate")
        add_metrics(table, f"{errors.name} | {rows:,}", result, {"median_absolute_error": truth}, fewer)
    return table.close()


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "rates": of_rates, "classes": of_classes, "numbers": of_numbers, "scores": of_scores, "survival": of_survival,
    "single_areas": of_areas, "fits": of_fits, "ranked": of_ranked,
}  # fmt: skip

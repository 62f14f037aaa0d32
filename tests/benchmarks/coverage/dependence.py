"""Rows that do not count alike: clusters that share their luck, heavy weights, and strata."""

from __future__ import annotations

import itertools
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import rivals
import scipy.special
from groups import BESIDE, beside
from samples import Classifier, Clusters, Setting, add_metrics, classified, grouped, of_runs, true_values, with_runs
from tables import INTERVAL, LEVEL, Limits, Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable

    from rivals import Ends

    Array: TypeAlias = np.ndarray[Any, Any]

_SIGNED = tdf.difference(to=0, signed=True)
_RATES = (0.3, 0.45)
_GOOD, _WORSE = Classifier(0.5, 0.85, 0.85), Classifier(0.5, 0.7, 0.8)
_IN_CLUSTERS = {"cluster": "cluster", "frequency_weights": "rows"}


def _with_gaps(metric: tdf.types.Metric) -> tdf.types.MetricSet:
    """A metric of all rows, its signed difference between two groups, and its range."""
    of_pair, gap = f"{metric.name}, signed", f"{metric.name}, range"
    return tdf.metric_set(
        metric,
        tdf.new_groupwise_metric(metric, of_pair, _SIGNED)("group"),
        tdf.new_groupwise_metric(metric, gap, tdf.difference())("group"),
    )


def clusters(runs: int, random: np.random.Generator) -> Table:
    """Clusters that hold both groups, as hospitals do; rivals are Student's intervals of the clusters."""
    table = Table("Clusters that groups share", "metric | clusters of rows | correlation", BESIDE)
    sizes = itertools.product((10, 30, 200), (0.1, 0.3))
    for sampled in (Clusters(count, 10, correlation) for count, correlation in sizes):
        rates = _with_gaps(tdf.selection_rate)
        data = sampled.decisions(_RATES, runs, random)
        population = Setting(_RATES, (1, 1)).population()
        result = of_runs(rates, data, estimate="hired", **_IN_CLUSTERS)
        truths = true_values(rates, population, estimate="hired")
        by_cluster = _rates_of_clusters(data, runs, sampled)
        of_rivals = {
            "selection_rate": rivals.student(by_cluster.mean(axis=0)),
            "selection_rate, signed": rivals.student(by_cluster[1] - by_cluster[0]),
        }
        _add_beside(table, str(sampled), result, truths, of_rivals, runs)

        scores = _with_gaps(tdf.f_meas)
        data = sampled.classified((_GOOD, _WORSE), runs, random)
        result = of_runs(scores, data, "truth", "estimate", **_IN_CLUSTERS)
        truths = true_values(scores, classified((_GOOD, _WORSE), (1, 1)), "truth", "estimate")
        _add_beside(table, str(sampled), result, truths, {}, runs)

        fewer = max(1, runs // 4)
        numbers, scales = _with_gaps(tdf.rmse), (1.0, 1.25)
        result = of_runs(numbers, sampled.errors(scales, fewer, random), "truth", "estimate", cluster="cluster")
        overall = float(np.mean(np.square(scales)) ** 0.5)
        truths = {"rmse": overall, "rmse, signed": 0.25, "rmse, range": 0.25}
        _add_beside(table, str(sampled), result, truths, {}, fewer)
    return table.close()


def _rates_of_clusters(data: pl.DataFrame, runs: int, sampled: Clusters) -> Array:
    """The rates of clusters: arrays of groups by runs by clusters."""
    hits = data.filter(hired=1).sort("group", "run", "cluster")["rows"].to_numpy()
    return hits.reshape(-1, runs, sampled.count) / sampled.rows


def _add_beside(
    table: Table, setting: str, result: pl.DataFrame, truths: dict[str, float], of_rivals: dict[str, Ends], runs: int
) -> None:
    for metric, truth in truths.items():
        limits = Limits.of(result.filter(pl.col(".metric") == metric), runs)
        table.add(f"{metric} | {setting}", *beside(limits, truth, of_rivals.get(metric)))


def nested(runs: int, random: np.random.Generator) -> Table:
    """Clusters of one group each, as the visits of patients are; the rival is Welch's interval of the clusters."""
    table = Table("Clusters within groups", "metric | clusters of rows | correlation", BESIDE)
    for count, correlation in itertools.product((5, 15, 100), (0.1, 0.3)):
        sampled = Clusters(count, 10, correlation)
        parts = [sampled.decisions((rate,), runs, random) for rate in _RATES]
        data = grouped([part.drop("group") for part in parts])
        # the clusters of the second group are others
        data = data.with_columns(cluster=pl.col("cluster") + count * pl.col("group"))
        metrics = _with_gaps(tdf.selection_rate)
        result = of_runs(metrics, data, estimate="hired", **_IN_CLUSTERS)
        truths = true_values(metrics, Setting(_RATES, (1, 1)).population(), estimate="hired")
        (first,), (second,) = (_rates_of_clusters(part, runs, sampled) for part in parts)
        of_rivals = {"selection_rate, signed": rivals.welch(second, first)}
        _add_beside(table, f"2 times {sampled}", result, truths, of_rivals, runs)
    return table.close()


_EVENTS = 0.3


def clustered_areas(runs: int, random: np.random.Generator) -> Table:
    """Areas of scores that clusters shift, of two groups in each cluster; the second has scores that tell less."""
    table = Table("Areas of clusters", "metric | areas | clusters of rows | correlation", INTERVAL)
    metrics = _with_gaps(tdf.roc_auc)
    sizes = ((10, 10), (30, 10), (200, 10), (30, 3), (100, 2))
    for areas, (count, rows), correlation in itertools.product(((0.8, 0.7), (0.97, 0.9)), sizes, (0.1, 0.3)):
        sampled = Clusters(count, rows, correlation)
        luck, parts = sampled.luck(runs, random), list[pl.DataFrame]()
        distances = [NormalDist().inv_cdf(area) * 2**0.5 for area in areas]
        for distance in distances:
            event = random.random((runs, count, rows)) < _EVENTS
            own = random.standard_normal((runs, count, rows))
            score = correlation**0.5 * luck[:, :, None] + (1 - correlation) ** 0.5 * own + distance * event
            cluster = np.tile(np.repeat(np.arange(count), rows), runs)
            parts.append(
                with_runs(pl.DataFrame({"truth": event.ravel(), "score": score.ravel(), "cluster": cluster}), runs)
            )
        pairs = itertools.product(distances, [0.0, 0.0])
        overall = float(np.mean([NormalDist().cdf(distance / 2**0.5) for distance, _ in pairs]))
        gap = areas[1] - areas[0]
        truths = {"roc_auc": overall, "roc_auc, signed": gap, "roc_auc, range": abs(gap)}
        result = of_runs(metrics, grouped(parts), "truth", probs="score", cluster="cluster")
        add_metrics(table, f"{areas[0]:g}, {areas[1]:g} | {sampled}", result, truths, runs)
    return table.close()


_QUADRATURE = 2_001


def weights(runs: int, random: np.random.Generator) -> Table:
    """Lognormal weights, which outcomes depend on or not."""
    table = Table("Heavy weights", "metric | standard deviation of the logarithm | outcome | rows of a group", INTERVAL)
    for spread, slope, rows in itertools.product((0.5, 1.0, 1.5), (0.0, 0.5), (6, 25, 100, 500)):
        of_class, of_number = _with_gaps(tdf.selection_rate), _with_gaps(tdf.rmse)
        fewer = runs if rows < 500 else max(1, runs // 4)
        parts, truths = list[pl.DataFrame](), list[float]()
        for rate in _RATES:
            intercept = float(scipy.special.logit(rate))
            logarithm = spread * random.standard_normal(fewer * rows)
            hired = random.random(fewer * rows) < scipy.special.expit(intercept + slope * logarithm)
            error = random.standard_normal(fewer * rows) * (1.0 if rate == _RATES[0] else 1.25)
            frame = pl.DataFrame({"weight": np.exp(logarithm), "hired": hired, "truth": error, "estimate": 0.0})
            parts.append(with_runs(frame, fewer))
            # weights move a normal logarithm by its variance
            points = np.linspace(-8, 8, _QUADRATURE)
            density = np.exp(-(points**2) / 2)
            chances = scipy.special.expit(intercept + slope * (spread * points + spread**2))
            truths.append(float((chances * density).sum() / density.sum()))
        data = grouped(parts)
        setting = f"{spread:g} | {'depends on weights' if slope else 'does not'} | {rows}"
        result = of_runs(of_class, data, estimate="hired", case_weights="weight")
        gap = truths[1] - truths[0]
        of_rates = {
            "selection_rate": sum(truths) / 2, "selection_rate, signed": gap, "selection_rate, range": gap,
        }  # fmt: skip
        add_metrics(table, setting, result, of_rates, fewer)
        if not slope:
            result = of_runs(of_number, data, "truth", "estimate", case_weights="weight")
            overall = float(np.mean([1.0, 1.25**2]) ** 0.5)
            of_errors = {"rmse": overall, "rmse, signed": 0.25, "rmse, range": 0.25}
            add_metrics(table, setting, result, of_errors, fewer)
    return table.close()


def _others(base: Array, kind: str) -> Array:
    """The rates of the second group in each stratum, beside those of the first."""
    signs = np.where(np.arange(len(base)) % 2, 1, -1)
    return {
        "none": base,
        "0.1": base + 0.1,
        "odds of 1.6": scipy.special.expit(scipy.special.logit(base) + np.log(1.6)),
        "0.15 and -0.15 in turn": base + 0.15 * signs,
    }[kind]


def strata(runs: int, random: np.random.Generator) -> Table:
    """The adjusted difference of `stratified`, its test, and its test of homogeneity."""
    columns = ("covers, %", "mean width", "rejects, %", "equal differences rejected, %", "equal odds rejected, %")
    table = Table("Strata", "difference | strata | rows of a group in each", columns)
    fewer = max(1, runs // 4)
    kinds = ("none", "0.1", "odds of 1.6", "0.15 and -0.15 in turn")
    for kind, (count, rows) in itertools.product(kinds, ((6, 20), (6, 100), (20, 20), (50, 6))):
        base = np.linspace(0.2, 0.7, count)
        rates = (base, _others(base, kind))
        # strata of equal sizes weigh the same
        truth = float((rates[1] - rates[0]).mean())
        data = grouped([_in_strata(random.binomial(rows, rate, (fewer, count)), rows) for rate in rates])
        metric = tdf.demographic_parity("group", aggregate=tdf.difference(to=0))
        test = tdf.inference.stratified(metric, within="stratum", adjust="none")
        result = test(data, estimate="hired", frequency_weights="rows", group_by="run", conf_level=LEVEL)
        limits = Limits(result[".lower"].to_numpy(), result[".upper"].to_numpy(), 0.0)
        rejected = [
            float((result[name] <= 1 - LEVEL).fill_null(value=False).mean())
            for name in (".p_value", ".p_homogeneity", ".p_equal_odds")
        ]
        table.add(f"{kind} | {count} | {rows}", limits.covers(truth), limits.width(), *rejected)
    return table.close()


def _in_strata(hits: Array, rows: int) -> pl.DataFrame:
    """Decisions on one group by run and stratum."""
    runs, count = hits.shape
    stratum = np.repeat(np.arange(count), 2)
    cells = pl.DataFrame({"stratum": stratum, "hired": np.tile([1, 0], count)})
    counts = np.stack([hits, rows - hits], axis=-1).ravel()
    return with_runs(pl.concat([cells] * runs), runs).with_columns(rows=counts)


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "clusters": clusters, "nested_clusters": nested, "clustered_areas": clustered_areas, "weights": weights,
    "strata": strata,
}  # fmt: skip

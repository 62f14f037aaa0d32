"""Differences and ratios of groups: pairs, ranges, and distances to the whole, to the rest and to a group."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import rivals
from rivals import Ends
from samples import (
    ERRORS,
    RISKS,
    TIMES,
    Classifier,
    Setting,
    add_metrics,
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
from tables import INTERVAL, LEVEL, Limits, Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Array: TypeAlias = np.ndarray[Any, Any]

BESIDE = (*INTERVAL, "rival holds, %", "rival's width", "times as wide")
"""The columns of `beside`."""
_MANY_ROWS = 1_000
_COUNTS = {"estimate": "hired", "frequency_weights": "rows"}
_SIGNED_DIFFERENCE, _SIGNED_RATIO = tdf.difference(to=0, signed=True), tdf.ratio(to=0, signed=True)


def beside(limits: Limits, truth: float, rival: Ends | None) -> tuple[float, ...]:
    """The shares of the library's intervals, and those of a rival on the same data."""
    shares = limits.shares(truth)
    if rival is None:
        return (*shares, np.nan, np.nan, np.nan)
    other = Limits(*rival, missing=0.0)
    return (*shares, other.covers(truth), other.width(), limits.width() / other.width())


def pairs(runs: int, random: np.random.Generator) -> Table:
    """Pairs with a sign; the rivals are Newcombe's and Miettinen and Nurminen's, and widths of ratios are medians."""
    table = Table("Pairs of rates, with a sign", "comparison | rates | rows", BESIDE)
    equal, unequal = [(rate, rate) for rate in (0.05, 0.2, 0.4, 0.7)], [(0.05, 0.1), (0.2, 0.3), (0.4, 0.5), (0.7, 0.5)]
    compared: list[tuple[Any, Callable[..., Ends]]] = [
        (_SIGNED_DIFFERENCE, rivals.newcombe), (_SIGNED_RATIO, rivals.miettinen_nurminen),
    ]  # fmt: skip
    for rates in (*equal, *unequal):
        settings = [even(rates, total) for total in (20, 60, 200, 1_000, 10_000)]
        settings += [with_rare(rates, 1_000, rare) for rare in (6, 20, 60)]
        for setting in settings:
            hits = setting.hits(runs, random)
            data, sizes = setting.decisions(hits), np.array(setting.sizes)
            for aggregate, rival in compared:
                metric = tdf.demographic_parity("group", aggregate=aggregate)
                (truth,) = true_values(metric, setting.population(), estimate="hired").values()
                limits = Limits.of(of_runs(metric, data, **_COUNTS), runs)
                ends = rival(hits[:, 1], sizes[1], hits[:, 0], sizes[0])
                shares = beside(limits, truth, ends)
                if aggregate == _SIGNED_RATIO:
                    shares = _with_medians(shares, limits, ends)
                table.add(f"{aggregate.kind} | {setting}", *shares)
    return table.close()


def _with_medians(shares: tuple[float, ...], limits: Limits, rival: Ends) -> tuple[float, ...]:
    """Shares with medians of widths, of which some are infinite."""
    ours, other = float(np.median(limits.upper - limits.lower)), float(np.median(rival[1] - rival[0]))
    times = ours / other if np.isfinite([ours, other]).all() else np.nan
    return (*shares[:4], ours, shares[5], other, times)


def _many_groups() -> Iterator[Setting]:
    """Two, five, 20 and 60 groups of equal and unequal sizes, with equal rates and others."""
    shuffled = np.random.default_rng(0)
    sizes: list[tuple[int, ...]] = [
        (30,) * 2, (300,) * 2, (20, 500), (100,) * 5, (20, 50, 100, 300, 500),
        (30,) * 20, (300,) * 20, tuple(np.geomspace(20, 1_000, 20).astype(int).tolist()),
        (30,) * 60, (300,) * 60, tuple(np.geomspace(20, 1_000, 60).astype(int).tolist()),
    ]  # fmt: skip
    for of_groups in sizes:
        groups = len(of_groups)
        spread = shuffled.permutation(np.linspace(0.2, 0.5, groups)).round(4).tolist()
        yield Setting((0.3,) * groups, of_groups)
        yield Setting((0.1,) * groups, of_groups)
        yield Setting(tuple(spread), of_groups)
        yield Setting((0.3,) * (groups - 1) + (0.45,), of_groups)


def _pairs_compared(reference: str, groups: int) -> Ends:
    """The pairs of groups that a distance is the largest of."""
    if reference == "range":
        chosen = list(itertools.combinations(range(groups), 2))
    else:
        chosen = [(group, 0) for group in range(1, groups)]
    one, other = np.array(chosen).T
    return one, other


def of_rates(runs: int, random: np.random.Generator, kind: str, reference: object) -> Table:
    """Distances of many groups; the rival is the largest of Newcombe's limits of the pairs, after Bonferroni."""
    aggregate = tdf.difference(to=reference) if kind == "difference" else tdf.ratio(to=reference)
    metric = tdf.demographic_parity("group", aggregate=aggregate)
    table = Table(f"Rates of many groups, {aggregate!r}", "groups | rates | rows", BESIDE)
    for setting in _many_groups():
        (truth,) = true_values(metric, setting.population(), estimate="hired").values()
        fewer = _fewer(runs, 100 * len(setting.sizes))
        hits = setting.hits(fewer, random)
        parts = np.split(hits, np.cumsum(list(in_parts(fewer, 10 * len(setting.sizes))))[:-1])
        results = [of_runs(metric, setting.decisions(part), **_COUNTS) for part in parts]
        rival = None
        if kind == "difference" and reference in {"range", 0}:
            compared = _pairs_compared("range" if reference == "range" else "group", len(setting.sizes))
            ends = [rivals.largest_of_pairs(part, np.array(setting.sizes), compared) for part in parts]
            rival = np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])
        shares = beside(Limits.of(pl.concat(results), fewer), truth, rival)
        table.add(f"{len(setting.sizes)} groups | {setting}", *shares)
    return table.close()


def _rate_table(kind: str, reference: object) -> Callable[[int, np.random.Generator], Table]:
    return lambda runs, random: of_rates(runs, random, kind, reference)


def _comparisons(metrics: tuple[tdf.types.Metric, ...], groups: int) -> list[tdf.types.GroupwiseMetric]:
    """The range of groups, and of two the signed difference too."""
    compared = [
        tdf.new_groupwise_metric(metric, f"{metric.name} of {groups} groups", tdf.difference())("group")
        for metric in metrics
    ]
    if groups == 2:
        for metric in metrics:
            name = f"{metric.name} of a pair, signed"
            compared.append(tdf.new_groupwise_metric(metric, name, _SIGNED_DIFFERENCE)("group"))
    return compared


def of_classes(runs: int, random: np.random.Generator) -> Table:
    table = Table(
        "Gaps of scores of classes", "metric | events, sens and spec | rows", INTERVAL,
    )  # fmt: skip
    good, worse, rare = Classifier(0.5, 0.85, 0.85), Classifier(0.5, 0.7, 0.8), Classifier(0.2, 0.85, 0.85)
    cases: list[tuple[tuple[Classifier, ...], tuple[int, ...]]] = [
        ((first, last), sizes)
        for first, last in ((good, good), (good, worse), (good, rare))
        for sizes in ((15, 15), (40, 40), (300, 300), (15, 500))
    ]
    cases += [((good,) * 4 + (last,), sizes) for last in (good, worse) for sizes in ((40,) * 5, (300,) * 4 + (15,))]
    cases += [((good,) * 19 + (last,), (300,) * 20) for last in (good, worse)]
    for classifiers, sizes in cases:
        metrics = tdf.metric_set(*_comparisons((tdf.f_meas, tdf.bal_accuracy, tdf.mcc), len(sizes)))
        truths = true_values(metrics, classified(classifiers, sizes), "truth", "estimate")
        pairs_of = zip(classifiers, sizes, strict=True)
        data = grouped([classifier.counted(rows, runs, random) for classifier, rows in pairs_of])
        result = of_runs(metrics, data, "truth", "estimate", frequency_weights="rows")
        add_metrics(table, f"{_named(classifiers)} | {counted(sizes)}", result, truths, runs)
    return table.close()


def _named(values: tuple[Any, ...]) -> str:
    if len(set(values)) == 1:
        return f"{values[0]} in all"
    return f"{values[0]}; the last {values[-1]}"


def of_means(runs: int, random: np.random.Generator) -> Table:
    """Gaps of errors; the rival of means in pairs is Welch's interval."""
    table = Table("Gaps of errors", "metric | errors | rows", BESIDE)
    for errors, scale, sizes in itertools.product(
        ERRORS, (1.0, 1.5), ((15, 15), (40, 40), (300, 300), (15, 300), (40,) * 5, (300,) * 20)
    ):
        scales = (1.0,) * (len(sizes) - 1) + (scale,)
        metrics = tdf.metric_set(*_comparisons((tdf.rmse, tdf.mae), len(sizes)))
        gap = scale - 1
        truths = {metric.name: gap if "rmse" in metric.name else gap * errors.mean_size for metric in metrics}
        results, rival = list[pl.DataFrame](), list[Ends]()
        for part in in_parts(_fewer(runs, sum(sizes)), sum(sizes)):
            values = [
                size * errors.drawn(random, part * rows).reshape(part, rows)
                for size, rows in zip(scales, sizes, strict=True)
            ]
            results.append(
                of_runs(metrics, _in_groups({"truth": values}).with_columns(estimate=0.0), "truth", "estimate")
            )
            if len(sizes) == 2:
                rival.append(rivals.welch(np.abs(values[1]), np.abs(values[0])))
        setting = f"{errors.name}, {counted(scales)} | {counted(sizes)}"
        _add_beside(table, setting, pl.concat(results), truths, {"mae of a pair, signed": rival})
    return table.close()


def of_scores(runs: int, random: np.random.Generator) -> Table:
    """Gaps of Brier scores; the rival in pairs is Welch's interval."""
    table = Table("Gaps of Brier scores", "metric | risks | rows", BESIDE)
    calibrated, rare, sure, high = RISKS
    for last, sizes in itertools.product(
        (calibrated, rare, sure, high), ((15, 15), (40, 40), (300, 300), (15, 300), (40,) * 5, (300,) * 20)
    ):
        risks = (calibrated,) * (len(sizes) - 1) + (last,)
        metrics = tdf.metric_set(*_comparisons((tdf.brier_class, tdf.calibration.in_the_large), len(sizes)))
        population = pl.concat(
            of_group.population().with_columns(pl.col("share") * rows, group=pl.lit(group))
            for group, (of_group, rows) in enumerate(zip((risks[0], risks[-1]), (sizes[0], sizes[-1]), strict=True))
        )
        truths = true_values(metrics, population, "truth", probs="score")
        results, rival = list[pl.DataFrame](), list[Ends]()
        for part in in_parts(_fewer(runs, sum(sizes)), sum(sizes)):
            drawn = [of_group.drawn(part * rows, random) for of_group, rows in zip(risks, sizes, strict=True)]
            values = {
                name: [frame[name].to_numpy().reshape(part, rows) for frame, rows in zip(drawn, sizes, strict=True)]
                for name in ("truth", "score")
            }
            results.append(of_runs(metrics, _in_groups(values), "truth", probs="score"))
            if len(sizes) == 2:
                first, second = (
                    (score - truth) ** 2 for truth, score in zip(values["truth"], values["score"], strict=True)
                )
                rival.append(rivals.welch(second, first))
        setting = f"{_named(tuple(of_group.name for of_group in risks))} | {counted(sizes)}"
        _add_beside(table, setting, pl.concat(results), truths, {"brier_class of a pair, signed": rival})
    return table.close()


def _fewer(runs: int, rows: int) -> int:
    """A quarter of the runs of many rows."""
    return runs if rows < _MANY_ROWS else max(1, runs // 4)


def _in_groups(values: dict[str, list[Array]]) -> pl.DataFrame:
    """The rows of all groups; of each group there is an array of runs by rows."""
    first = next(iter(values.values()))
    sizes, runs = [array.shape[1] for array in first], len(first[0])
    columns = {name: np.concatenate(arrays, axis=1).ravel() for name, arrays in values.items()}
    group = np.tile(np.repeat(np.arange(len(sizes)), sizes), runs)
    return with_runs(pl.DataFrame({"group": group, **columns}), runs)


def _add_beside(
    table: Table, setting: str, result: pl.DataFrame, truths: dict[str, float], of_rivals: dict[str, list[Ends]]
) -> None:
    """A row for each metric, beside the rival that it has."""
    runs = result["run"].len() // len(truths)
    for metric, truth in truths.items():
        limits = Limits.of(result.filter(pl.col(".metric") == metric), runs)
        ends = of_rivals.get(metric)
        rival = (np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])) if ends else None
        table.add(f"{metric} | {setting}", *beside(limits, truth, rival))


def of_areas(runs: int, random: np.random.Generator) -> Table:
    """Gaps and signed differences of areas."""
    table = Table("Gaps of areas", "metric | areas | with and without the event", INTERVAL)
    sizes = ((5, 50), (8, 8), (15, 85), (50, 50), (200, 300))
    cases = [(areas, size) for areas in ((0.75, 0.75), (0.7, 0.85), (0.97, 0.97)) for size in sizes]
    cases += [((0.75,) * 5, size) for size in ((8, 8), (50, 50))]
    cases += [((0.75,) * 20, (50, 50)), ((0.75,) * 19 + (0.9,), (50, 50))]
    for areas, (events, others) in cases:
        metrics = tdf.metric_set(*_comparisons((tdf.roc_auc,), len(areas)))
        gap = max(areas) - min(areas)
        truths = {metric.name: areas[1] - areas[0] if "signed" in metric.name else gap for metric in metrics}
        rows = (events + others) * len(areas)
        results = [
            of_runs(metrics, _scored_groups(areas, events, others, random, part), "truth", probs="score")
            for part in in_parts(runs, rows)
        ]
        add_metrics(table, f"{counted(areas)} | {events} and {others}", pl.concat(results), truths, runs)
    return table.close()


def _scored_groups(
    areas: tuple[float, ...], events: int, others: int, random: np.random.Generator, runs: int
) -> pl.DataFrame:
    return grouped([scored(area, events, others, random, runs) for area in areas])


def spreads(runs: int, random: np.random.Generator) -> Table:
    """Standard deviations of rates, and a range as an aggregate of one's own."""
    table = Table("Spreads of rates", "aggregate | rates | rows", INTERVAL)
    value = pl.col(".estimate")
    own = tdf.new_aggregate(value.max() - value.min(), "range of one's own", equal=0)
    equal, unequal = (0.4,) * 6, (0.5,) * 5 + (0.4,)
    settings = [
        even(equal, 200), even(equal, 1_000), with_rare(equal, 1_000, 20), even(unequal, 1_000),
        with_rare(unequal, 1_000, 20),
    ]  # fmt: skip
    for aggregate, setting in itertools.product((tdf.aggregates.standard_deviation(), own), settings):
        metric = tdf.demographic_parity("group", aggregate=aggregate)
        (truth,) = true_values(metric, setting.population(), estimate="hired").values()
        fewer = max(1, runs // 4)
        data = setting.decisions(setting.hits(fewer, random))
        limits = Limits.of(of_runs(metric, data, **_COUNTS), fewer)
        table.add(f"{aggregate!r} | {setting}", *limits.shares(truth))
    return table.close()


def bootstrap_of_ranges(runs: int, random: np.random.Generator) -> Table:
    """Percentile intervals of ranges, which other libraries offer; they are here to compare with."""
    table = Table("Percentile bootstrap of ranges", "comparison | rates | rows", ("truth within, %", "mean width"))
    fewer, tails = max(1, runs // 4), ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    equal = [even((rate,) * groups, total) for groups in (2, 6) for rate in (0.05, 0.4) for total in (200, 1_000)]
    unequal = [even(rates, 1_000) for rates in ((0.4, 0.5), (0.4,) * 5 + (0.5,), (0.2, 0.3, 0.4, 0.5, 0.6, 0.7))]
    for setting in (*equal, *unequal):
        sizes, hits = np.array(setting.sizes), setting.hits(fewer, random)
        shares = random.binomial(sizes, hits / sizes, (TIMES, *hits.shape)) / sizes
        largest, smallest = shares.max(axis=2), shares.min(axis=2)
        ratios = np.divide(smallest, largest, out=np.ones_like(smallest), where=largest > 0)
        truths = {"difference": (largest - smallest, setting.difference), "ratio": (ratios, setting.ratio)}
        for name, (values, truth) in truths.items():
            low, high = np.quantile(values, tails, axis=0)
            limits = Limits(low, high, missing=0.0)
            table.add(f"{name} | {setting}", limits.covers(truth), limits.width())
    return table.close()


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "pairs": pairs,
    "range": _rate_table("difference", "range"),
    "range_ratio": _rate_table("ratio", "range"),
    "to_group": _rate_table("difference", 0),
    "to_group_ratio": _rate_table("ratio", 0),
    "to_overall": _rate_table("difference", "overall"),
    "to_rest": _rate_table("difference", "rest"),
    "gaps_of_classes": of_classes,
    "gaps_of_errors": of_means,
    "gaps_of_scores": of_scores,
    "gaps_of_areas": of_areas,
    "spreads": spreads,
    "bootstrap_of_ranges": bootstrap_of_ranges,
}

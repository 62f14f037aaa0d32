"""Tests of equality: how often they reject what is true, and how often they find what is not."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import rivals
from samples import Classifier, Setting, counted, even, grouped, of_runs, scored, with_runs
from tables import LEVEL, Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable

    Array: TypeAlias = np.ndarray[Any, Any]

SHUFFLES = 399
_ERROR, _ROUNDING = 1 - LEVEL, 1e-9
_RARE = (490, 490, 20)


def rejected(p_values: Array | pl.Series) -> float:
    """The share of tests that reject, of those that have a p-value."""
    known = np.array(p_values, dtype=float)
    known = known[~np.isnan(known)]
    return float((known <= _ERROR + _ROUNDING).mean()) if len(known) else np.nan


def _rows(setting: Setting, hits: Array) -> pl.DataFrame:
    """The people of all runs, a row for each."""
    counts = setting.decisions(hits).filter(pl.col("rows") > 0)
    return counts.select(pl.exclude("rows").repeat_by("rows").list.explode())


def _settings() -> list[tuple[str, Setting]]:
    equal = [
        even((0.05, 0.05), 200), even((0.4, 0.4), 200), even((0.05,) * 6, 200), even((0.4,) * 6, 1_000),
        Setting((0.4,) * 3, _RARE), Setting((0.1,) * 3, _RARE), Setting((0.02,) * 3, _RARE),
        Setting((0.4,) * 6, (198,) * 5 + (6,)), Setting((0.4,) * 20, (50,) * 20),
    ]  # fmt: skip
    different = [
        even((0.05, 0.15), 200), even((0.4, 0.6), 200), even((0.4,) * 5 + (0.55,), 1_000),
        Setting((0.4, 0.5, 0.45), _RARE), Setting((0.1, 0.17, 0.1), _RARE), Setting((0.4, 0.4, 0.7), _RARE),
        Setting((0.02, 0.06, 0.02), _RARE), Setting((0.4, 0.5, 0.4, 0.5, 0.45), (400, 300, 200, 80, 20)),
        Setting((0.02, 0.05, 0.02, 0.02, 0.02), (400, 400, 100, 80, 20)),
        Setting((0.4, 0.42, 0.45, 0.48, 0.5), (200,) * 5), Setting((0.4,) * 19 + (0.65,), (50,) * 20),
        Setting((0.4,) * 10 + (0.5,) * 10, (100,) * 20), Setting((0.02,) * 10 + (0.05,) * 10, (100,) * 20),
        Setting((0.4, 0.47) * 10, tuple(range(20, 420, 20))), Setting((0.4, 0.47) * 25, (100,) * 50),
    ]  # fmt: skip
    return [("equal", setting) for setting in equal] + [("different", setting) for setting in different]


def of_rates(runs: int, random: np.random.Generator) -> Table:
    """`disparity_test` of rates beside the chi-squared test."""
    columns = ("rejects, %", "with mid-p, %", "studentized=False, %", "chi-squared, %")
    table = Table("Tests of rates", "groups | rates | rows", columns)
    fewer = max(1, runs // 4)
    asked: list[dict[str, Any]] = [{}, {"mid_p": True}, {"studentized": False}]
    for name, setting in _settings():
        hits = setting.hits(fewer, random)
        data, shares = _rows(setting, hits), list[float]()
        for options in asked:
            test = tdf.inference.disparity_test(tdf.demographic_parity("group"), adjust="none", **options)
            shares.append(rejected(test(data, estimate="hired", group_by="run", times=SHUFFLES)[".p_value"]))
        shares.append(rejected(rivals.chi_squared(hits, np.array(setting.sizes))))
        table.add(f"{name} | {setting}", *shares)
    return table.close()


def of_metrics(runs: int, random: np.random.Generator) -> Table:
    """`disparity_test` of what is no rate: groups are equal in what is tested, or differ."""
    table = Table("Tests of other metrics", "groups | metric | rows", ("rejects, %",))
    fewer, sizes = max(1, runs // 3), ((50, 50), (150, 450), (490, 490, 20))
    good, worse, rare = Classifier(0.5, 0.8, 0.8), Classifier(0.5, 0.65, 0.7), Classifier(0.2, 0.8, 0.8)
    of_classes = [("equal", good, good), ("different", good, worse)]
    of_bases = [*of_classes, ("equal but for base rates", good, rare)]
    cases = [(tdf.f_meas, *groups) for groups in of_classes] + [(tdf.bal_accuracy, *groups) for groups in of_bases]
    for (metric, name, first, second), rows in itertools.product(cases, sizes):
        classifiers = [first] + [second] * (len(rows) - 1)
        counts = grouped(
            [classifier.counted(size, fewer, random) for classifier, size in zip(classifiers, rows, strict=True)]
        )
        data = counts.select(pl.exclude("rows").repeat_by("rows").list.explode())
        result = _test_of(metric)(data, "truth", "estimate", group_by="run")
        table.add(f"{name} | {metric.name} | {counted(rows)}", rejected(result[".p_value"]))
    for (name, first, second), rows in itertools.product(
        (("equal", good, good), ("different", good, worse)), sizes[:2]
    ):
        parts = [of_group.counted(size, fewer, random) for of_group, size in zip((first, second), rows, strict=True)]
        data = grouped(parts).select(pl.exclude("rows").repeat_by("rows").list.explode())
        data = data.with_columns(weight=random.lognormal(0, 0.5, len(data)))
        result = _test_of(tdf.sens)(data, "truth", "estimate", group_by="run", case_weights="weight")
        table.add(f"{name} | sens, with weights | {counted(rows)}", rejected(result[".p_value"]))
    for (name, first, second), rows in itertools.product((("equal", 0.8, 0.8), ("different", 0.8, 0.65)), sizes[:2]):
        areas = (first,) + (second,) * (len(rows) - 1)
        data = grouped(
            [scored(area, size // 2, size // 2, random, fewer) for area, size in zip(areas, rows, strict=True)]
        )
        result = _test_of(tdf.roc_auc)(data, "truth", probs="score", group_by="run")
        table.add(f"{name} | roc_auc | {counted(rows)}", rejected(result[".p_value"]))
    for (name, scale), rows in itertools.product((("equal", 1.0), ("different", 1.4)), sizes):
        scales = (1.0,) + (scale,) * (len(rows) - 1)
        frames = [
            pl.DataFrame({"truth": spread * random.standard_normal(fewer * size), "estimate": 0.0})
            for spread, size in zip(scales, rows, strict=True)
        ]
        data = grouped([with_runs(frame, fewer) for frame in frames])
        result = _test_of(tdf.rmse)(data, "truth", "estimate", group_by="run")
        table.add(f"{name} | rmse | {counted(rows)}", rejected(result[".p_value"]))
    return table.close()


def _test_of(metric: tdf.types.Metric) -> Callable[..., pl.DataFrame]:
    gap = tdf.new_groupwise_metric(metric, "gap", tdf.difference())("group")
    return partial(tdf.inference.disparity_test(gap, adjust="none"), times=SHUFFLES)


def pairs(runs: int, random: np.random.Generator) -> Table:
    """How often `pairwise` calls any pair of equal groups unequal, and what share of the others it finds."""
    asked: dict[str, dict[str, Any]] = {
        "holm": {"adjust": "holm"}, "holm, mid-p": {"adjust": "holm", "mid_p": True},
        "max_t": {"adjust": "max_t"}, "max_t, mid-p": {"adjust": "max_t", "mid_p": True},
    }  # fmt: skip
    columns = [f"{name} {what}, %" for name in asked for what in ("calls equals unequal", "finds")]
    table = Table("Pairs of many groups", "groups | rates | rows", tuple(columns))
    settings = [
        even((0.4,) * 6, 600),
        even((0.4,) * 3 + (0.1,) * 3, 600),
        even((0.4,) * 5 + (0.6,), 600),
        even((0.4, 0.4, 0.55), 450),
        Setting((0.3,) * 4, (10, 20, 500, 1_000)),
        Setting((0.5, 0.5, 0.02, 0.02), (10, 20, 500, 1_000)),
        Setting((0.05, 0.05, 0.5, 0.5), (10, 20, 500, 1_000)),
        Setting((0.5,) * 3 + (0.02,), (50, 50, 50, 2_000)),
        Setting((0.5,) * 5 + (0.01,), (20, 20, 20, 20, 20, 5_000)),
    ]
    fewer = max(1, runs // 4)
    for setting in settings:
        data, shares = _rows(setting, setting.hits(fewer, random)), list[float]()
        # one call for each run, because Holm's family is that of a call
        parts = data.partition_by("run", include_key=False)
        for options in asked.values():
            test = tdf.inference.pairwise(tdf.demographic_parity("group"), **options)
            outcomes = [_outcome(test(part, estimate="hired", labels=[0, 1], times=1_000), setting) for part in parts]
            shares += np.mean(outcomes, axis=0).tolist()
        name = "equal" if setting.difference == 0 else "some different"
        table.add(f"{name} | {setting}", *shares)
    return table.close()


def _outcome(result: pl.DataFrame, setting: Setting) -> tuple[float, float]:
    """Check whether any pair of equal groups is called unequal; and the share of the other pairs that is found."""
    groups = [result[name].cast(pl.Int64).to_numpy() for name in (".group", ".other")]
    rates = np.array(setting.rates)
    are_equal = rates[groups[0]] == rates[groups[1]]
    differ = (result[".p_adjusted"] <= _ERROR).to_numpy()
    finds = float(differ[~are_equal].mean()) if (~are_equal).any() else np.nan
    return float(differ[are_equal].any()), finds


def of_models(runs: int, random: np.random.Generator) -> Table:
    """McNemar's test of `compare_models`, mid-p and exact, of so many rows that change."""
    table = Table("McNemar's tests", "models | rows that change | better by the other", ("mid-p, %", "exact, %"))
    for changed, gained in itertools.product((5, 10, 16, 20, 50, 100), (0.5, 0.75)):
        gains = random.binomial(changed, gained, runs)
        counts = np.stack([gains, changed - gains, np.full(runs, 100)], axis=-1)
        cells = pl.DataFrame({"truth": [1, 1, 0], "one": [0, 1, 0], "other": [1, 0, 0]})
        data = with_runs(pl.concat([cells] * runs), runs).with_columns(rows=counts.ravel())
        shares: list[float] = []
        for mid_p in (True, False):
            compare = tdf.compare_models(tdf.accuracy, mid_p=mid_p)
            result = compare(
                data, "truth", one="one", other="other", frequency_weights="rows", group_by="run", times=100,
            )  # fmt: skip
            shares.append(rejected(result[".p_value"]))
        name = "equal" if gained == 0.5 else "different"
        table.add(f"{name} | {changed} | {gained:g}", *shares)
    return table.close()


def of_periods(runs: int, random: np.random.Generator) -> Table:
    """`compare_periods`, of nothing changed, of a gap that appears, and of a gap that changes its sign."""
    table = Table("Tests of two periods", "change | rates before | rates after | rows", ("rejects, %",))
    changes: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
        ("none", (0.4, 0.4), (0.4, 0.4)), ("none", (0.3, 0.5), (0.3, 0.5)), ("appears", (0.4, 0.4), (0.3, 0.5)),
        ("changes its sign", (0.3, 0.5), (0.5, 0.3)), ("none", (0.4,) * 5, (0.4,) * 5),
    ]  # fmt: skip
    fewer = max(1, runs // 4)
    test = tdf.inference.compare_periods(tdf.demographic_parity("group"), period="period", adjust="none")
    for (name, before, after), rows in itertools.product(changes, (50, 250)):
        samples = [Setting(rates, (rows,) * len(rates)) for rates in (before, after)]
        data = pl.concat(
            _rows(setting, setting.hits(fewer, random)).with_columns(period=pl.lit(period))
            for period, setting in enumerate(samples)
        )
        result = test(data, estimate="hired", group_by=["run", "period"], times=SHUFFLES)
        table.add(f"{name} | {counted(before)} | {counted(after)} | {rows}", rejected(result[".p_value"]))
    return table.close()


def of_plans(runs: int, random: np.random.Generator) -> Table:
    """Whether the rows that `rows_needed` asks for find four differences of five."""
    table = Table("Rows that are needed", "test | difference from a rate | rows of a group", ("finds, %",))
    fewer = max(1, runs // 4)
    for (difference, rate), mid_p in itertools.product(((0.1, 0.7), (0.2, 0.4), (0.05, 0.1)), (False, True)):
        rows = tdf.inference.rows_needed(difference, rate, mid_p=mid_p)
        other = rate - difference if rate > 0.5 else rate + difference
        setting = Setting((rate, other), (rows, rows))
        test = tdf.inference.disparity_test(tdf.demographic_parity("group"), mid_p=mid_p, adjust="none")
        result = test(_rows(setting, setting.hits(fewer, random)), estimate="hired", group_by="run", times=SHUFFLES)
        name = "mid-p" if mid_p else "exact"
        table.add(f"{name} | {difference:g} from {rate:g} | {rows}", rejected(result[".p_value"]))
    for difference, rate in ((0.0, 0.7), (0.05, 0.7), (0.2, 0.7), (0.0, 0.2)):
        rows = tdf.inference.rows_needed(difference, rate, below=0.1)
        other = rate - difference if rate > 0.5 else rate + difference
        setting = Setting((rate, other), (rows, rows))
        result = of_runs(
            tdf.demographic_parity("group"), setting.decisions(setting.hits(fewer, random)), estimate="hired",
            frequency_weights="rows", conf_level=2 * LEVEL - 1, explain=True,
        )  # fmt: skip
        verdict = "pass" if difference < 0.1 else "fail"
        given = float((tdf.check(result, below=0.1)[".verdict"] == verdict).mean())
        table.add(f"gate at 0.1: {verdict} | {difference:g} from {rate:g} | {rows}", given)
    return table.close()


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "tests_of_rates": of_rates, "tests_of_metrics": of_metrics, "pairs_of_many": pairs, "tests_of_models": of_models,
    "tests_of_periods": of_periods, "plans": of_plans,
}  # fmt: skip

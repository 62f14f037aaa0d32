"""How often intervals hold what is true, and how often tests and gates are wrong.

`python tests/benchmarks/coverage.py`. Decisions are drawn from rates that are known, so that everything can be checked
against the truth. Options: `--runs` (in each cell; what is slow takes a part of them), `--seed`, `--only` (some of the
tables).
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

import tidyfair as tf
from tidyfair.intervals.analytic import compared
from tidyfair.intervals.proportions import difference_limits, score_ratio, wilson
from tidyfair.intervals.quantities import Shares

if TYPE_CHECKING:
    from collections.abc import Callable

    Array: TypeAlias = np.ndarray[Any, Any]

LEVEL, CONFIDENCE = 0.95, 0.95
LOW, HIGH = 0.93, 0.97
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
RATES = (0.05, 0.2, 0.4, 0.7)
TOTALS = (200, 1_000, 10_000)
RARE = (6, 20, 60)
TIMES = 500
"""Draws of an interval of a range, and of a bootstrap."""
SHUFFLES = 199
THRESHOLD = 0.4
CHUNK = 1_000
DIFFERENCE, RATIO = (
    each.resolved(sides=False, negative=None, direction="maximize") for each in (tf.difference(), tf.ratio())
)


@dataclass(frozen=True)
class Setting:
    """Groups of some sizes, with the rates that they have in truth."""

    rates: tuple[float, ...]
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        return f"{_counted(self.rates)} | {_counted(self.sizes)}"

    def hits(self, runs: int, random: np.random.Generator) -> Array:
        return random.binomial(self.sizes, self.rates, (runs, len(self.sizes)))

    @property
    def difference(self) -> float:
        return max(self.rates) - min(self.rates)

    @property
    def ratio(self) -> float:
        return min(self.rates) / max(self.rates)


def _counted(values: tuple[float, ...]) -> str:
    counts = Counter(values).items()
    return ", ".join(f"{value:,}" if count == 1 else f"{count} of {value:,}" for value, count in counts)


def even(rates: tuple[float, ...], total: int) -> Setting:
    return Setting(rates, (total // len(rates),) * len(rates))


def with_rare(rates: tuple[float, ...], total: int, rare: int) -> Setting:
    """The last group is rare, the others share what is left."""
    others = len(rates) - 1
    return Setting(rates, ((total - rare) // others,) * others + (rare,))


class Table:
    """A Markdown table that is printed while it grows; names of shares end in %."""

    def __init__(self, title: str, about: str, columns: tuple[str, ...]) -> None:
        self.title, self.columns, self.rows = title, columns, list[tuple[float, ...]]()
        self.blanks = about.count("|")
        print(f"\n## {title}\n\n| {about} | {' | '.join(columns)} |\n|{'---|' * (self.blanks + 1 + len(columns))}")

    def add(self, setting: object, *values: float) -> None:
        self.rows.append(values)
        self._print(str(setting), values)

    def close(self) -> Table:
        for name, of in (("average", np.mean), ("smallest", np.min), ("largest", np.max)):
            columns = zip(*self.rows, strict=True)
            self._print(f"**{name}**" + " |" * self.blanks, [float(of(values)) for values in columns])
        return self

    def _print(self, setting: str, values: Any) -> None:
        texts = [
            f"{100 * value:.1f}" if name.endswith("%") else f"{value:.3f}"
            for name, value in zip(self.columns, values, strict=True)
        ]
        print(f"| {setting} | {' | '.join(texts)} |", flush=True)

    def summary(self) -> list[str]:
        """A line for each column of coverages: how many cells, the average, the smallest, the largest."""
        lines = list[str]()
        for name, values in zip(self.columns, zip(*self.rows, strict=True), strict=True):
            if not name.endswith("%"):
                continue
            below, above = (sum(each) for each in ([v < LOW for v in values], [v > HIGH for v in values]))
            shares = " | ".join(f"{100 * each:.1f}" for each in (np.mean(values), min(values), max(values)))
            missed = f"{below} | {above}" if "cover" in name else " |"
            lines.append(f"| {self.title}: {name.removesuffix(', %')} | {len(values)} | {shares} | {missed} |")
        return lines


def covered(low: Array, high: Array, truth: float) -> float:
    return float(((low <= truth + 1e-12) & (truth - 1e-12 <= high)).mean())


def rates(runs: int, random: np.random.Generator) -> Table:
    table = Table("Rates", "rate | rows", ("wilson covers, %", "mean width"))
    for rate in RATES:
        for rows in (*RARE, *TOTALS):
            setting = Setting((rate,), (rows,))
            low, high = wilson(setting.hits(runs, random)[:, 0] / rows, np.array(rows), Z)
            table.add(setting, covered(low, high, rate), float((high - low).mean()))
    return table.close()


def pairs(runs: int, random: np.random.Generator) -> Table:
    columns = ("newcombe covers, %", "mean width", "miettinen_nurminen covers, %", "median width")
    table = Table("Pairs, with a sign", "rates | rows", columns)
    unequal = ((0.05, 0.1), (0.2, 0.3), (0.4, 0.5), (0.7, 0.5))
    for both in (*((rate, rate) for rate in RATES), *unequal):
        for setting in (*(even(both, total) for total in TOTALS), *(with_rare(both, 1_000, rare) for rare in RARE)):
            one, other = (setting.hits(runs, random) / setting.sizes).T
            rows, other_rows = (np.full(runs, float(size)) for size in setting.sizes)
            low, high = difference_limits(one, wilson(one, rows, Z), other, wilson(other, other_rows, Z))
            least, most = score_ratio(one, rows, other, other_rows, Z)
            table.add(
                setting, covered(low, high, both[0] - both[1]), float((high - low).mean()),
                covered(least, most, both[0] / both[1]), float(np.median(most - least)),
            )  # fmt: skip
    return table.close()


def ranges_of(setting: Setting, hits: Array, level: float, random: np.random.Generator, aggregate: Any) -> Array:
    """The interval of the range in each run, as a call with `interval="auto"` has it."""
    found = list[tuple[float, float]]()
    for each in hits:
        family = Shares.of_counts(each, np.array(setting.sizes))
        made = compared([family], [None], aggregate, level, times=TIMES, random=random)
        found.append((made.lower, made.upper) if made else (np.nan, np.nan))
    return np.array(found).T


def bootstrapped(setting: Setting, hits: Array, random: np.random.Generator) -> tuple[Array, Array]:
    """Percentile intervals of differences and ratios: groups resampled in their sizes, the range taken of each draw."""
    tails, sizes, found = [(1 - LEVEL) / 2, (1 + LEVEL) / 2], np.array(setting.sizes), list[Any]()
    for start in range(0, len(hits), CHUNK):
        mine = hits[start : start + CHUNK]
        shares = random.binomial(sizes, mine / sizes, (TIMES, *mine.shape)) / sizes
        largest, smallest = shares.max(axis=2), shares.min(axis=2)
        ratios = np.divide(smallest, largest, out=np.ones_like(smallest), where=largest > 0)  # 0/0 is no difference
        found.append([np.quantile(each, tails, axis=0) for each in (largest - smallest, ratios)])
    return np.concatenate([each[0] for each in found], axis=1), np.concatenate([each[1] for each in found], axis=1)


def ranges(title: str, settings: list[Setting], runs: int, random: np.random.Generator) -> Table:
    columns = (
        "difference covers, %", "mean width", "ratio covers, %", "mean width of it",
        "bootstrap covers the difference, %", "its mean width", "bootstrap covers the ratio, %",
    )  # fmt: skip
    table = Table(title, "rates | rows", columns)
    for setting in settings:
        hits = setting.hits(runs, random)
        low, high = ranges_of(setting, hits, LEVEL, random, DIFFERENCE)
        least, most = ranges_of(setting, hits, LEVEL, random, RATIO)
        differences, ratios = bootstrapped(setting, hits[: max(1, runs // 4)], random.spawn(1)[0])
        table.add(
            setting, covered(low, high, setting.difference), float((high - low).mean()),
            covered(least, most, setting.ratio), float((most - least).mean()),
            covered(differences[0], differences[1], setting.difference), float(np.ptp(differences, axis=0).mean()),
            covered(ratios[0], ratios[1], setting.ratio),
        )  # fmt: skip
    return table.close()


def ranges_of_equals(runs: int, random: np.random.Generator) -> Table:
    settings = [even((rate,) * groups, total) for groups in (2, 6) for rate in RATES for total in TOTALS]
    settings += [with_rare((rate,) * 6, 1_000, rare) for rate in (0.05, 0.4) for rare in RARE]
    return ranges("Ranges of equal groups (truth 0, ratio 1)", settings, runs, random)


def ranges_of_unequals(runs: int, random: np.random.Generator) -> Table:
    settings = [even((one, other), total) for one, other in ((0.05, 0.1), (0.4, 0.5)) for total in TOTALS]
    six = ((0.4,) * 5 + (0.5,), (0.4,) * 3 + (0.5,) * 3, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7), (0.05,) * 5 + (0.1,))
    settings += [even(each, total) for each in six for total in TOTALS]
    settings += [with_rare((0.4,) * 5 + (last,), 1_000, rare) for last in (0.2, 0.5) for rare in RARE]
    return ranges("Ranges of unequal groups", settings, runs, random)


def scored(areas: tuple[float, ...], events: int, others: int, runs: int, random: np.random.Generator) -> pl.DataFrame:
    """Normal scores of groups that have so many rows with and without the event, in each run."""
    rows, groups = events + others, len(areas)
    event = np.tile(np.arange(rows) < events, groups * runs)
    group = np.tile(np.repeat(np.arange(groups), rows), runs)
    apart_by = np.array([NormalDist().inv_cdf(area) * 2**0.5 for area in areas])
    score = random.standard_normal(len(event)) + apart_by[group] * event
    run = np.repeat(np.arange(runs), rows * groups)
    return pl.DataFrame({"run": run, "group": group, "event": event, "score": score})


def areas(runs: int, random: np.random.Generator) -> Table:
    table = Table("AUC gaps", "areas | with and without the event", ("auc_parity covers, %", "mean width"))
    parity = tf.auc_parity("group")
    sizes = ((40, 60), (200, 300), (100, 300), (50, 50), (15, 15), (8, 8), (5, 50))
    settings = [(each, size) for each in ((0.76, 0.76), (0.7, 0.85), (0.95, 0.95)) for size in sizes]
    settings += [((0.76,) * 6, size) for size in ((50, 50), (8, 8))]
    fewer = max(1, runs // 2)
    for each, size in settings:
        data = scored(each, *size, fewer, random)
        found = parity(data, "event", probs="score", group_by="run", interval="auto", times=TIMES)
        low, high = (found[name].to_numpy() for name in (".lower", ".upper"))
        name = f"{_counted(each)} | {size[0]} and {size[1]}"
        table.add(name, covered(low, high, max(each) - min(each)), float((high - low).mean()))
    return table.close()


def hired(setting: Setting, runs: int, random: np.random.Generator) -> pl.DataFrame:
    """The rows of each run."""
    group = np.tile(np.repeat(np.arange(len(setting.sizes)), setting.sizes), runs)
    chosen = random.random(len(group)) < np.array(setting.rates)[group]
    run = np.repeat(np.arange(runs), sum(setting.sizes))
    return pl.DataFrame({"run": run, "group": group, "hired": chosen})


def judged(rows: int, runs: int, random: np.random.Generator) -> pl.DataFrame:
    """Probabilities that are right, and what happened, of two groups in each run."""
    group = np.tile(np.repeat([0, 1], [rows - rows // 3, rows // 3]), runs)
    score = random.beta(2, 3, len(group))
    truth = random.random(len(group)) < score
    run = np.repeat(np.arange(runs), rows)
    return pl.DataFrame({"run": run, "group": group, "truth": truth, "score": score, "estimate": score > THRESHOLD})


def replicates(runs: int, random: np.random.Generator) -> Table:
    table = Table("What the library leaves to the bootstrap", "metric | rows", ("bootstrap covers, %", "mean width"))
    labels, scores = {"estimate": "estimate"}, {"probs": "score"}
    asked: list[tuple[Any, dict[str, Any]]] = [
        (tf.f_meas, labels), (tf.mcc, labels), (tf.brier_class, scores), (tf.pr_auc, scores),
        (tf.new_groupwise_metric(tf.f_meas, "gap of f_meas", tf.difference(to=0, signed=True))("group"), labels),
        (tf.new_groupwise_metric(tf.brier_class, "gap of brier", tf.difference(to=0, signed=True))("group"), scores),
    ]  # fmt: skip
    many, fewer = judged(2_000_000, 1, random), max(1, runs // 10)
    for metric, call in asked:
        truth = metric(many, "truth", **call)[".estimate"].item()
        for rows in (200, 1_000):
            data = judged(rows, fewer, random)
            # one call for each run, because parts of the rows are drawn within a call
            each = data.partition_by("run", include_key=False)
            found = pl.concat(metric(part, "truth", interval="auto", times=TIMES, **call) for part in each)
            low, high = (found[name].to_numpy() for name in (".lower", ".upper"))
            table.add(f"{metric.name} | {rows:,}", covered(low, high, truth), float((high - low).mean()))
    return table.close()


def spreads(runs: int, random: np.random.Generator) -> Table:
    table = Table(
        "Distances that are no matter of pairs", "aggregate | rates | rows", ("simultaneous covers, %", "mean width")
    )
    value, fewer = pl.col(".estimate"), max(1, runs // 10)
    own = tf.new_aggregate(value.max() - value.min(), "range of one's own", equal=0)
    equal, unequal = (0.4,) * 6, (0.5,) * 5 + (0.4,)
    settings = [
        even(equal, 200),
        even(equal, 1_000),
        with_rare(equal, 1_000, 20),
        even(unequal, 1_000),
        with_rare(unequal, 1_000, 20),
    ]
    for aggregate in (tf.difference(to="overall"), tf.standard_deviation(), own):
        for setting in settings:
            metric = tf.demographic_parity("group", aggregate=aggregate)
            data = hired(setting, fewer, random)
            found = metric(data, estimate="hired", group_by="run", interval="auto", times=TIMES, on_undefined="ignore")
            low, high = (found[name].to_numpy() for name in (".lower", ".upper"))
            rates, sizes = np.array(setting.rates), np.array(setting.sizes)
            truth = {
                "difference": np.abs(rates - rates @ sizes / sizes.sum()).max(), "standard_deviation": rates.std(),
            }.get(aggregate.kind, np.ptp(rates))  # fmt: skip
            table.add(f"{aggregate!r} | {setting}", covered(low, high, float(truth)), float((high - low).mean()))
    return table.close()


def tests(runs: int, random: np.random.Generator) -> Table:
    table = Table("Tests of equality", "rates | rows", ("permutation rejects, %", "mid-p rejects, %"))
    settings = [even((rate,) * groups, total) for groups in (2, 6) for rate, total in ((0.05, 200), (0.4, 200))]
    settings += [even((0.4,) * 6, 1_000), with_rare((0.4,) * 6, 1_000, 6)]
    fewer = max(1, runs // 4)
    for setting in settings:
        data, rejected = hired(setting, fewer, random), list[float]()
        for mid_p in (False, True):
            test = tf.inference.disparity_test(
                tf.demographic_parity("group"), times=SHUFFLES, mid_p=mid_p, adjust="none"
            )
            p_values = test(data, estimate="hired", group_by="run")[".p_value"].drop_nulls().to_numpy()
            rejected.append(float((p_values <= 1 - LEVEL).mean()))
        table.add(setting, *rejected)
    return table.close()


def power_of_tests(runs: int, random: np.random.Generator) -> Table:
    from scipy.stats import chi2_contingency  # noqa: PLC0415 - only here

    columns = ("the test, %", "studentized=False, %", "chi-squared, %")
    table = Table("Tests find groups that differ, or reject equal ones", "rates | rows", columns)
    settings = [
        Setting((0.4, 0.4, 0.4), (490, 490, 20)), Setting((0.02, 0.02, 0.02), (490, 490, 20)),
        Setting((0.4, 0.5, 0.45), (490, 490, 20)), Setting((0.4, 0.52, 0.4), (700, 280, 20)),
        Setting((0.02, 0.06, 0.02), (490, 490, 20)), Setting((0.4, 0.5, 0.4, 0.5, 0.45), (400, 300, 200, 80, 20)),
        Setting((0.4, 0.4, 0.75), (490, 490, 20)), Setting((0.4, 0.4, 0.4, 0.7), (940, 20, 20, 20)),
        Setting((0.4, 0.42, 0.45, 0.48, 0.5), (200,) * 5),
        Setting((0.02, 0.05, 0.02, 0.02, 0.02), (400, 400, 100, 80, 20)),
    ]  # fmt: skip
    fewer, parity = max(1, runs // 5), tf.demographic_parity("group")
    for setting in settings:
        data = hired(setting, fewer, random)
        found = list[float]()
        for by_errors in (True, False):
            test = tf.inference.disparity_test(parity, times=SHUFFLES, studentized=by_errors, adjust="none")
            p_values = test(data, estimate="hired", group_by="run")[".p_value"].drop_nulls().to_numpy()
            found.append(float((p_values <= 1 - LEVEL).mean()))
        counts = data.group_by("run", "group").agg(pl.col("hired").sum().alias("hits"), pl.len())
        theirs = [
            float(chi2_contingency([part["hits"], part["len"] - part["hits"]], correction=False)[1])  # pyright: ignore[reportArgumentType] - a tuple
            for part in counts.partition_by("run")
        ]
        found.append(float((np.array(theirs) <= 1 - LEVEL).mean()))
        table.add(setting, *found)
    return table.close()


def pairs_of_many(runs: int, random: np.random.Generator) -> Table:
    columns = ("holm, %", "holm, mid-p, %", "max_t, %", "max_t, mid-p, %")
    table = Table("Some pair of equal groups is told apart, all pairs being tested", "rates | rows", columns)
    settings = [
        even((0.4,) * 6, 600),
        even((0.4,) * 3 + (0.1,) * 3, 600),
        Setting((0.3,) * 4, (10, 20, 500, 1_000)),
        Setting((0.5, 0.5, 0.02, 0.02), (10, 20, 500, 1_000)),
        Setting((0.05, 0.05, 0.5, 0.5), (10, 20, 500, 1_000)),
        Setting((0.5,) * 3 + (0.02,), (50, 50, 50, 2_000)),
        Setting((0.5,) * 5 + (0.01,), (20, 20, 20, 20, 20, 5_000)),
    ]
    asked: list[dict[str, Any]] = [
        {"adjust": adjust, "mid_p": mid_p} for adjust in ("holm", "max_t") for mid_p in (False, True)
    ]  # fmt: skip
    fewer = max(1, runs // 4)
    for setting in settings:
        data, wrong = hired(setting, fewer, random), list[float]()
        for options in asked:
            test = tf.pairwise(tf.demographic_parity("group"), times=TIMES, **options)
            # one call for each run, because Holm's family is that of a call
            parts = data.partition_by("run", include_key=False)
            found = [test(part, estimate="hired", labels=[False, True]) for part in parts]
            wrong.append(sum(_tells_equals_apart(each, setting.rates) for each in found) / fewer)
        table.add(setting, *wrong)
    return table.close()


def _tells_equals_apart(found: pl.DataFrame, rates: tuple[float, ...]) -> bool:
    told_apart = found.filter(pl.col(".p_adjusted") <= 1 - LEVEL).select(".group", ".other").rows()
    return any(rates[int(one)] == rates[int(other)] for one, other in told_apart)


def told(sizes: tuple[int, ...], base: tuple[float, ...], runs: int, random: np.random.Generator) -> pl.DataFrame:
    """Groups with base rates of their own, in all of which 70 % of those with and without the event are told."""
    group = np.tile(np.repeat(np.arange(len(sizes)), sizes), runs)
    truth = random.random(len(group)) < np.array(base)[group]
    right = random.random(len(group)) < 0.7
    run = np.repeat(np.arange(runs), sum(sizes))
    weight = random.choice([1.0, 2.0, 5.0], len(group))
    score = random.standard_normal(len(group)) + truth
    return pl.DataFrame(
        {"run": run, "group": group, "truth": truth, "estimate": truth == right, "weight": weight, "score": score}
    )


def studentized(runs: int, random: np.random.Generator) -> Table:
    title = "Studentized tests of groups that are equal in what is tested"
    table = Table(title, "metric | base rates | rows", ("permutation rejects, %",))
    labels: dict[str, Any] = {"estimate": "estimate"}
    cases: list[tuple[tf.Metric, dict[str, Any]]] = [
        (tf.f_meas, labels), (tf.bal_accuracy, labels), (tf.roc_auc, {"probs": "score"}),
        (tf.sens, {**labels, "case_weights": "weight"}),
    ]  # fmt: skip
    for metric, call in cases:
        gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("group")
        test = tf.inference.disparity_test(gap, times=SHUFFLES, adjust="none")
        # what depends on base rates is equal only where these are
        bases = [(0.5, 0.5)] if metric == tf.f_meas else [(0.5, 0.5), (0.5, 0.2)]
        for base in bases:
            for sizes in ((50, 50), (150, 450)):
                fewer = max(1, runs // (4 if call == labels else 10))
                found = test(told(sizes, base, fewer, random), "truth", group_by="run", **call)
                p_values = found[".p_value"].drop_nulls().to_numpy()
                weighted = ", with weights" if "case_weights" in call else ""
                setting = f"{metric.name}{weighted} | {_counted(base)} | {_counted(sizes)}"
                table.add(setting, float((p_values <= 1 - LEVEL).mean()))
    return table.close()


def gates(runs: int, random: np.random.Generator) -> Table:
    columns = ("below= passes, %", "below= fails, %", "above= passes, %", "above= fails, %")
    table = Table("Gates, the truth being the limit", "rates | rows", columns)
    some = ((0.4, 0.5), (0.05, 0.1), (0.5,) * 5 + (0.4,), (0.5,) * 3 + (0.4,) * 3)
    settings = [even(each, total) for each in some for total in TOTALS]
    settings += [with_rare((0.5,) * 5 + (0.4,), 1_000, rare) for rare in RARE]
    for setting in settings:
        hits, found = setting.hits(runs, random), list[float]()
        limits: Any = ({"below": setting.difference}, {"above": setting.ratio})
        for limit, aggregate in zip(limits, (DIFFERENCE, RATIO), strict=True):
            low, high = ranges_of(setting, hits, 2 * CONFIDENCE - 1, random, aggregate)
            judged = tf.check(pl.DataFrame({".estimate": (low + high) / 2, ".lower": low, ".upper": high}), **limit)
            found += [float((judged[".verdict"] == verdict).mean()) for verdict in ("pass", "fail")]
        table.add(setting, *found)
    return table.close()


def rare_gates(runs: int, random: np.random.Generator) -> Table:
    """Gates of groups that are equal in what is compared, of which one is so rare that it may be all right by luck."""
    metrics = (tf.f_meas, tf.bal_accuracy, tf.mcc)
    columns = tuple(f"{metric.name} fails above {limit}, %" for metric in metrics for limit in (0, 0.05))
    table = Table(
        "Gates of equal groups, one of them rare", "right and wrong, with and without the event | rows", columns
    )
    for shares in ((0.4, 0.1, 0.1, 0.4), (0.45, 0.05, 0.05, 0.45)):
        for sizes in ((4, 400, 400), (8, 400, 400), (20, 400, 400), (8, 8, 8), (150, 400, 400)):
            people = confused(shares, sizes, max(1, runs // 10), random)
            found = list[float]()
            for metric in metrics:
                gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("group")
                result = gap(
                    people, "truth", "estimate", frequency_weights="rows", group_by="run", interval="auto",
                    conf_level=2 * CONFIDENCE - 1, times=TIMES, on_undefined="ignore",
                )  # fmt: skip
                lower = result[".lower"].fill_null(0.0).to_numpy()
                found += [float((lower > limit).mean()) for limit in (0, 0.05)]
            table.add(f"{', '.join(map(str, shares))} | {', '.join(map(str, sizes))}", *found)
    return table.close()


def confused(shares: tuple[float, ...], sizes: tuple[int, ...], runs: int, random: np.random.Generator) -> pl.DataFrame:
    """How many rows of groups fall into each cell of truth and estimate: hits, misses, false alarms, and the rest."""
    cells = pl.DataFrame({"truth": [1, 1, 0, 0], "estimate": [1, 0, 1, 0]})
    parts = list[pl.DataFrame]()
    for group, size in enumerate(sizes):
        drawn = random.multinomial(size, shares, runs)
        about = pl.DataFrame({"run": np.repeat(np.arange(runs), len(shares)), "group": [str(group)] * drawn.size})
        parts.append(about.hstack(pl.concat([cells] * runs)).with_columns(rows=drawn.ravel()))
    return pl.concat(parts)


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "rates": rates, "pairs": pairs, "equals": ranges_of_equals, "unequals": ranges_of_unequals, "areas": areas,
    "replicates": replicates, "tests": tests, "power_of_tests": power_of_tests, "pairs_of_many": pairs_of_many,
    "studentized": studentized, "gates": gates, "spreads": spreads,
    "rare": rare_gates,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=list(TABLES), default=list(TABLES))
    options = parser.parse_args()
    print(f"numpy {np.__version__}, polars {pl.__version__}, seed {options.seed}, intervals of {LEVEL:.0%}")
    print(f"{options.runs:,} runs in each cell; half of them for areas, a tenth for what the library leaves to the")
    print("bootstrap and for tests by rows, a quarter for tests by counts and for the bootstrap of ranges,")
    print("which is here to compare with")
    start, made = time.perf_counter(), list[Table]()
    for place, (name, measure) in enumerate(TABLES.items()):
        if name in options.only:
            made.append(measure(options.runs, np.random.default_rng([options.seed, place])))
    print("\n## All\n\nCells outside of 93 to 97 % are counted of coverages.\n")
    print("| | cells | average, % | smallest | largest | below 93 % | above 97 % |\n|---|---|---|---|---|---|---|")
    print("\n".join(line for table in made for line in table.summary()))
    print(f"\n{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main()

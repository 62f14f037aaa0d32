"""How often monitors are ever wrong in 1,000 looks, how wide their intervals are, and when they give a verdict."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from tables import LEVEL, Table

from tidyfair.inference.monitoring.confidence_sequences import DIFFERENCE, Pair, Totals
from tidyfair.intervals.proportions import difference_limits, wilson

if TYPE_CHECKING:
    from collections.abc import Callable

    Array: TypeAlias = np.ndarray[Any, Any]

ERROR = 1 - LEVEL
Z = NormalDist().inv_cdf(1 - ERROR / 2)
ROWS = (100, 1_000, 10_000, 100_000, 1_000_000)
LOOKS = 1_000
SIDES = 2
CHUNK = 100
"""Streams that are drawn at once."""


def one_rate(rate: float, rows: int) -> Callable[[int, int, np.random.Generator], tuple[Array, ...]]:
    """Streams of a rate, with so many rows in each batch."""

    def drawn(streams: int, looks: int, random: np.random.Generator) -> tuple[Array, ...]:
        total = random.binomial(rows, rate, (streams, looks)).cumsum(axis=1).astype(float)
        counted = np.broadcast_to(np.arange(1, looks + 1) * float(rows), total.shape)
        return total, counted, np.full(total.shape, rate)

    return drawn


def drifting(low: float, high: float, rows: int) -> Callable[[int, int, np.random.Generator], tuple[Array, ...]]:
    """Streams of a rate that swings ten times; the truth is the mean of the rates so far."""

    def drawn(streams: int, looks: int, random: np.random.Generator) -> tuple[Array, ...]:
        number = np.arange(1, looks + 1)
        rate = low + (high - low) * (1 + np.sin(20 * np.pi * number / looks)) / 2
        total = random.binomial(rows, rate, (streams, looks)).cumsum(axis=1).astype(float)
        counted = np.broadcast_to(number * float(rows), total.shape)
        return total, counted, np.broadcast_to(rate.cumsum() / number, total.shape)

    return drawn


def squared_errors(rows: int) -> Callable[[int, int, np.random.Generator], tuple[Array, ...]]:
    """Streams of squared errors of calibrated scores that are spread evenly, the mean of which is 1/6."""

    def drawn(streams: int, looks: int, random: np.random.Generator) -> tuple[Array, ...]:
        score = random.random((streams, looks, rows))
        values = ((random.random(score.shape) < score) - score) ** 2
        total = values.sum(axis=2).cumsum(axis=1)
        counted = np.broadcast_to(np.arange(1, looks + 1) * float(rows), total.shape)
        return total, counted, np.full(total.shape, 1 / 6)

    return drawn


def ever_wrong(total: Array, counted: Array, truth: Array) -> tuple[Array, Array, Array]:
    """Whether the confidence sequence, or the interval of Wilson, is ever wrong, and the latter at the last look."""
    totals, threshold = Totals(total, counted), math.log(SIDES / ERROR)
    too_high = totals.log_e_value(truth) >= threshold
    too_low = totals.reversed.log_e_value(1 - truth) >= threshold
    low, high = wilson(total / counted, counted, Z)
    missed: Any = np.logical_or(low > truth, high < truth)
    wrong: Any = np.logical_or(too_high, too_low)
    return wrong.any(axis=1), missed.any(axis=1), missed[:, -1]


def groups_ever_wrong(rates: Array, batch: Array, first: Array, *, declared: bool, looks: int, random: Any) -> Array:
    """Whether any limit of the difference of any two groups is ever wrong, in `CHUNK` streams.

    `first` is the look from which a group occurs.
    """
    number = np.arange(looks)[None, :, None]
    rows = np.broadcast_to(np.where(number >= first, batch, 0), (CHUNK, looks, len(rates)))
    total, counted = (values.cumsum(axis=1).astype(float) for values in (random.binomial(rows, rates), rows))
    groups = (counted > 0).sum(axis=2)
    spent = 1.0 if declared else 1 / (groups + 1)
    k = len(rates) if declared else groups
    threshold = np.log(np.maximum(k * (k - 1), 1) / (ERROR * spent)) * np.ones(counted.shape[:2])
    wrong = np.zeros(CHUNK, dtype=bool)
    for one in range(len(rates)):
        for other in range(len(rates)):
            if one == other:
                continue
            pair = Pair(*(Totals(total[:, :, group], counted[:, :, group]) for group in (one, other)))
            # on the line of the true difference it is at most the e-value at both true rates
            at_truth = pair.one.log_e_value(np.full(threshold.shape, rates[one]))
            at_truth = at_truth + pair.other.reversed.log_e_value(np.full(threshold.shape, 1 - rates[other]))
            stream, look = np.nonzero(at_truth >= threshold)
            some = Pair(
                *(Totals(group.total[stream, look], group.rows[stream, look]) for group in (pair.one, pair.other))
            )
            reached = some.log_e_value(DIFFERENCE, rates[one] - rates[other]) >= threshold[stream, look]
            wrong[stream[reached]] = True
    return wrong


def beta_binomial_width(rows: float, rate: float) -> float:
    """Width of the confidence sequence of the beta-binomial mixture with Jeffreys' prior (Robbins, 1970)."""
    total = rows * rate
    constant = _log_beta(total + 0.5, rows - total + 0.5) - _log_beta(0.5, 0.5)

    def is_excluded(mean: float) -> bool:
        return constant - total * math.log(mean) - (rows - total) * math.log1p(-mean) >= math.log(1 / ERROR)

    def end(outside: float, inside: float) -> float:
        for _ in range(60):
            middle = (outside + inside) / 2
            outside, inside = (middle, inside) if is_excluded(middle) else (outside, middle)
        return inside

    return end(1 - 1e-15, rate) - end(1e-15, rate)


def _log_beta(one: float, other: float) -> float:
    return math.lgamma(one) + math.lgamma(other) - math.lgamma(one + other)


def _chunks(runs: int) -> range:
    """The parts in which streams are drawn: at least one."""
    return range(max(1, runs // CHUNK))


def _shares(parts: list[tuple[Array, ...]]) -> list[float]:
    """The shares of streams of which each of several events is true."""
    return [float(np.concatenate(part).mean()) for part in zip(*parts, strict=True)]


def errors(runs: int, random: np.random.Generator) -> Table:
    """How often a rate or a mean is ever outside of its interval; a run is a stream."""
    columns = ("monitor ever wrong, %", "wilson ever wrong, %", "wilson wrong at the last look, %")
    table = Table("Monitors of one value, in 1,000 looks", "stream", columns)
    settings = {
        "rate of 0.01, 100 rows a batch": one_rate(0.01, 100),
        "rate of 0.1, 10 rows a batch": one_rate(0.1, 10),
        "rate of 0.1, 1,000 rows a batch": one_rate(0.1, 1_000),
        "rate of 0.5, 1 row a batch": one_rate(0.5, 1),
        "rate of 0.5, 100 rows a batch": one_rate(0.5, 100),
        "rate that swings from 0.05 to 0.3, 100 rows a batch": drifting(0.05, 0.3, 100),
        "squared errors, 20 rows a batch": squared_errors(20),
    }
    for name, drawn in settings.items():
        table.add(name, *_shares([ever_wrong(*drawn(CHUNK, LOOKS, random)) for _ in _chunks(runs)]))
    return table.close()


def errors_of_groups(runs: int, random: np.random.Generator) -> Table:
    """How often the difference of any two groups is ever outside of its interval."""
    columns = ("ever wrong with groups=, %", "ever wrong without, %")
    table = Table("Monitors of differences of groups, in 1,000 looks", "groups", columns)
    settings = {
        "two groups of 50 rows a batch, rates of 0.3": ([0.3, 0.3], [50, 50], [0, 0]),
        "two groups of 90 and 10 rows, 0.1 and 0.2": ([0.1, 0.2], [90, 10], [0, 0]),
        "five groups of 40 to 2 rows, rates of 0.3": ([0.3] * 5, [40, 30, 20, 8, 2], [0] * 5),
        "the same, three of them from look 10, 100 and 500 on": ([0.3] * 5, [40, 30, 20, 8, 2], [0, 0, 10, 100, 500]),
    }
    for name, numbers in settings.items():
        rates, batch, first = map(np.array, numbers)
        shares: list[float] = []
        for declared in (True, False):
            parts = [
                (groups_ever_wrong(rates, batch, first, declared=declared, looks=LOOKS, random=random),)
                for _ in _chunks(runs)
            ]
            shares += _shares(parts)
        table.add(name, *shares)
    return table.close()


def widths(runs: int, random: np.random.Generator) -> Table:
    """Widths beside those of one look, and of a mixture of Beta distributions; nothing is drawn."""
    del runs, random
    columns = ("width", "beta-binomial mixture", "one look", "times as wide")
    table = Table("Widths of monitors", "value | rows of a group", columns, "One look is Wilson's or Newcombe's.")
    threshold = np.array([math.log(SIDES / ERROR)])
    for rate in (0.01, 0.1, 0.5):
        for rows in ROWS:
            totals = Totals(np.array([rate * rows]), np.array([float(rows)]))
            width = float((1 - totals.reversed.lower_limit(threshold) - totals.lower_limit(threshold))[0])
            low, high = wilson(np.array([rate]), np.array([float(rows)]), Z)
            once = float((high - low)[0])
            table.add(f"rate of {rate:g} | {rows:,}", width, beta_binomial_width(rows, rate), once, width / once)
    for one, other in ((0.1, 0.1), (0.3, 0.3), (0.3, 0.2)):
        for rows in ROWS:
            size = np.array([float(rows)])
            sums = [Totals(np.array([rate * rows]), size) for rate in (one, other)]
            limits = [Pair(*pair).lower_limit(DIFFERENCE, threshold)[0] for pair in (sums, sums[::-1])]
            means = [np.array([rate]) for rate in (one, other)]
            (low,), (high,) = difference_limits(
                means[0], wilson(means[0], size, Z), means[1], wilson(means[1], size, Z)
            )
            width, once = float(-limits[0] - limits[1]), float(high - low)
            table.add(f"difference of {one:g} and {other:g}, groups=2 | {rows:,}", width, np.nan, once, width / once)
    return table.close()


def delays(runs: int, random: np.random.Generator) -> Table:
    """The rows until streams have a verdict on the limit 0.1."""
    columns = ("rows for half of the streams", "rows for 90% of them", "rows for half, by one look")
    table = Table("Rows until a monitor knows", "rate beside a limit of 0.1", columns)
    batch, threshold = 50, math.log(SIDES / ERROR)
    for rate in (0.05, 0.08, 0.12, 0.15, 0.2):
        total, counted, _ = one_rate(rate, batch)(max(CHUNK, runs), LOOKS, random)
        totals = Totals(total, counted)
        if rate > 0.1:
            result = totals.log_e_value(np.full(total.shape, 0.1)) >= threshold
        else:
            result = totals.reversed.log_e_value(np.full(total.shape, 0.9)) >= threshold
        when = np.where(result.any(axis=1), result.argmax(axis=1) + 1, np.inf) * batch
        low, high = wilson(total / counted, counted, Z)
        once = ((low > 0.1) if rate > 0.1 else (high < 0.1)).mean(axis=0) >= 1 / 2
        half, most = np.quantile(when, [0.5, 0.9], method="higher")
        table.add(f"{rate:g}", half, most, float(once.argmax() + 1) * batch)
    return table.close()


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "monitors": errors, "monitors_of_groups": errors_of_groups, "widths_of_monitors": widths, "delays": delays,
}  # fmt: skip

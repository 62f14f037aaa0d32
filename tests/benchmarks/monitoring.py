"""How often monitors are ever wrong in 1,000 looks, how wide their intervals are, and when they give a verdict.

`python tests/benchmarks/monitoring.py`. Rows are drawn from rates that are known. Options: `--streams` (of each
setting), `--looks`, `--seed`.
"""

from __future__ import annotations

import argparse
import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidyfair.inference.confidence_sequences import Pair, Totals
from tidyfair.intervals.proportions import difference_limits, wilson

if TYPE_CHECKING:
    from collections.abc import Callable

    Array: TypeAlias = np.ndarray[Any, Any]

ERROR = 0.05
Z = NormalDist().inv_cdf(1 - ERROR / 2)
ROWS = (100, 1_000, 10_000, 100_000, 1_000_000)
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
            reached = some.log_e_value_of_difference(rates[one] - rates[other]) >= threshold[stream, look]
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


def table(title: str, columns: tuple[str, ...]) -> None:
    print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def percent(mask: Array) -> str:
    return f"{100 * mask.mean():.1f}"


def errors(streams: int, looks: int, random: np.random.Generator) -> None:
    table(
        f"Ever wrong in {looks:,} looks, % of {streams:,} streams",
        ("of", "monitor", "wilson, each look", "wilson, last look"),
    )
    settings = {
        "a rate of 0.01, 100 rows a batch": one_rate(0.01, 100),
        "a rate of 0.1, 10 rows a batch": one_rate(0.1, 10),
        "a rate of 0.1, 1,000 rows a batch": one_rate(0.1, 1_000),
        "a rate of 0.5, 1 row a batch": one_rate(0.5, 1),
        "a rate of 0.5, 100 rows a batch": one_rate(0.5, 100),
        "a rate that swings from 0.05 to 0.3, 100 rows a batch": drifting(0.05, 0.3, 100),
        "squared errors, 20 rows a batch": squared_errors(20),
    }
    for name, drawn in settings.items():
        parts = [ever_wrong(*drawn(CHUNK, looks, random)) for _ in range(streams // CHUNK)]
        row(name, *(percent(np.concatenate(part)) for part in zip(*parts, strict=True)))


def errors_of_groups(streams: int, looks: int, random: np.random.Generator) -> None:
    table(
        f"Any difference of groups ever wrong in {looks:,} looks, % of {streams:,} streams",
        ("of", "`groups=`", "without"),
    )
    settings = {
        "two groups of 50 rows a batch, rates of 0.3": ([0.3, 0.3], [50, 50], [0, 0]),
        "two groups of 90 and 10 rows, 0.1 and 0.2": ([0.1, 0.2], [90, 10], [0, 0]),
        "five groups of 40 to 2 rows, rates of 0.3": ([0.3] * 5, [40, 30, 20, 8, 2], [0] * 5),
        "the same, three of them from look 10, 100 and 500 on": ([0.3] * 5, [40, 30, 20, 8, 2], [0, 0, 10, 100, 500]),
    }
    for name, numbers in settings.items():
        rates, batch, first = map(np.array, numbers)
        shares = [
            percent(
                np.concatenate(
                    [
                        groups_ever_wrong(rates, batch, first, declared=declared, looks=looks, random=random)
                        for _ in range(streams // CHUNK)
                    ]
                )
            )
            for declared in (True, False)
        ]
        row(name, *shares)


def widths() -> None:
    table("Width of the interval of a rate", ("rate", "rows", "monitor", "beta-binomial mixture", "wilson, one look"))
    for rate in (0.01, 0.1, 0.5):
        for rows in ROWS:
            totals = Totals(np.array([rate * rows]), np.array([float(rows)]))
            threshold = np.array([math.log(SIDES / ERROR)])
            width = 1 - totals.reversed.lower_limit(threshold) - totals.lower_limit(threshold)
            low, high = wilson(np.array([rate]), np.array([float(rows)]), Z)
            row(
                rate, f"{rows:,}", f"{width[0]:.4f}", f"{beta_binomial_width(rows, rate):.4f}", f"{(high - low)[0]:.4f}"
            )


def widths_of_differences() -> None:
    table(
        "Width of the interval of a difference of two groups",
        ("rates", "rows of each", "monitor, groups=2", "newcombe, one look"),
    )
    for one, other in ((0.1, 0.1), (0.3, 0.3), (0.3, 0.2)):
        for rows in ROWS:
            size = np.array([float(rows)])
            sums = [Totals(np.array([rate * rows]), size) for rate in (one, other)]
            threshold = np.array([math.log(SIDES / ERROR)])
            limits = [Pair(*pair).lower_limit_of_difference(threshold)[0] for pair in (sums, sums[::-1])]
            means = [np.array([rate]) for rate in (one, other)]
            (low,), (high,) = difference_limits(
                means[0], wilson(means[0], size, Z), means[1], wilson(means[1], size, Z)
            )
            row(f"{one}, {other}", f"{rows:,}", f"{-limits[0] - limits[1]:.4f}", f"{high - low:.4f}")


def delays(streams: int, looks: int, random: np.random.Generator) -> None:
    table(
        "Rows until half, and 90 %, of streams have a verdict on the limit 0.1",
        ("rate", "half", "90 %", "half by one look"),
    )
    batch, threshold = 50, math.log(SIDES / ERROR)
    for rate in (0.05, 0.08, 0.12, 0.15, 0.2):
        total, counted, _ = one_rate(rate, batch)(streams, looks, random)
        totals = Totals(total, counted)
        if rate > 0.1:
            found = totals.log_e_value(np.full(total.shape, 0.1)) >= threshold
        else:
            found = totals.reversed.log_e_value(np.full(total.shape, 0.9)) >= threshold
        when = np.where(found.any(axis=1), found.argmax(axis=1) + 1, np.inf) * batch
        low, high = wilson(total / counted, counted, Z)
        once = ((low > 0.1) if rate > 0.1 else (high < 0.1)).mean(axis=0) >= 1 / 2
        half, most = np.quantile(when, [0.5, 0.9], method="higher")
        row(rate, f"{half:,.0f}", f"{most:,.0f}", f"{(once.argmax() + 1) * batch:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--looks", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    errors(options.streams, options.looks, random)
    errors_of_groups(options.streams, options.looks, random)
    widths()
    widths_of_differences()
    delays(options.streams, options.looks, random)


if __name__ == "__main__":
    main()

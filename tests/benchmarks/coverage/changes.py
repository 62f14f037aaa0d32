"""How often a search of periods finds a change that is none, or one that there is, and at the right time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
from equality import SHUFFLES, rejected
from tables import LEVEL, Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable

    Array: TypeAlias = np.ndarray[Any, Any]

_PARITY = tdf.demographic_parity("group")
_SEEDS = 20
_CALL: dict[str, Any] = {"estimate": "hired", "pos_label": 1, "frequency_weights": "rows"}


@dataclass(frozen=True)
class _Stream:
    """The mean number of rows and the rate of each group in each period: periods by groups."""

    rows: Array
    rates: Array

    @classmethod
    def even(cls, periods: int, rows: tuple[float, ...], rates: tuple[float, ...]) -> _Stream:
        """Periods that are all alike."""
        return cls(np.tile(rows, (periods, 1)).astype(float), np.tile(rates, (periods, 1)).astype(float))

    def changed(self, first: int, group: int, rate: float, last: int | None = None) -> _Stream:
        """The same with another rate of a group from a period on, or up to another one."""
        rates = self.rates.copy()
        rates[first:last, group] = rate
        return _Stream(self.rows, rates)

    def drawn(self, runs: int, random: np.random.Generator) -> pl.DataFrame:
        """The rows of all runs, whose numbers vary by chance."""
        rows = random.poisson(self.rows, (runs, *self.rows.shape))
        hits = random.binomial(rows, self.rates)
        run, period, group = (index.ravel() for index in np.indices(rows.shape))
        keys = pl.DataFrame({"run": run, "period": period, "group": group})
        counts = {1: hits, 0: rows - hits}
        parts = [keys.with_columns(hired=pl.lit(label), rows=pl.Series(n.ravel())) for label, n in counts.items()]
        return pl.concat(parts).filter(pl.col("rows") > 0)


def _search(data: pl.DataFrame, **options: Any) -> pl.DataFrame:
    """The searches of all runs, a part of them with each seed: critical values of one seed are wrong together."""
    results: list[pl.DataFrame] = []
    for seed in range(_SEEDS):
        test = tdf.inference.compare_periods(_PARITY, period="period", search="change", adjust="none", **options)
        results.append(
            test(
                data.filter(pl.col("run") % _SEEDS == seed),
                group_by=["run", "period"],
                **_CALL,
                times=SHUFFLES,
                seed=seed,
            )
        )
    return pl.concat(results)


def _any_rejected(p_values: pl.DataFrame) -> float:
    """The share of runs in which the smallest p-value is significant, adjusted for their number."""
    by_run = p_values.group_by("run").agg(pl.col(".p_value").min() * pl.col(".p_value").count())
    return rejected(by_run[".p_value"])


def by_chance(runs: int, random: np.random.Generator) -> Table:
    """Searches where no rate changes, or all change alike."""
    columns = ("a group is found, %", "the disparity is found, %", "anything is found, %")
    table = Table("Searches for changes where there are none", "periods | groups and rows | rates", columns)
    settings: list[tuple[str, _Stream]] = [
        ("40 | 75 and 225 | 0.5", _Stream.even(40, (75, 225), (0.5, 0.5))),
        ("40 | 75 and 225 | 0.3 and 0.5", _Stream.even(40, (75, 225), (0.3, 0.5))),
        ("40 | 75 and 225 | 0.01", _Stream.even(40, (75, 225), (0.01, 0.01))),
        ("150 | 5 and 5 | 0.3", _Stream.even(150, (5, 5), (0.3, 0.3))),
        ("60 | 1 and 20 | 0.1", _Stream.even(60, (1, 20), (0.1, 0.1))),
        ("26 | 8 of 20 | 0.2", _Stream.even(26, (20,) * 8, (0.2,) * 8)),
        ("12 | 4 of 100, one of 5 | 0.4", _Stream.even(12, (100,) * 4 + (5,), (0.4,) * 5)),
    ]
    fewer = max(1, runs // 2)
    for name, stream in settings:
        result = _search(stream.drawn(fewer, random))
        of_groups, of_disparity = (result.filter(pl.col(".group").is_null() == is_null) for is_null in (False, True))
        shares = _any_rejected(of_groups), rejected(of_disparity[".p_value"]), _any_rejected(result)
        table.add(name, *shares)
    together: list[tuple[str, float, float]] = [("0.3 to 0.5 halfway", 0.3, 0.5), ("0.05 to 0.2 halfway", 0.05, 0.2)]
    for name, before, after in together:
        stream = _Stream.even(40, (75, 225), (before, before)).changed(20, 0, after).changed(20, 1, after)
        result = _search(stream.drawn(fewer, random)).filter(pl.col(".group").is_null())
        table.add(f"40 | 75 and 225 | both {name}", np.nan, rejected(result[".p_value"]), np.nan)
    return table.close()


def found(runs: int, random: np.random.Generator) -> Table:
    """Searches, and comparisons of neighbouring periods, where the rate of one group changes."""
    columns = (
        "group found, %", "disparity found, %", "neighbours find it, %", "time is covered, %", "change is covered, %",
        "periods that it may be",
    )  # fmt: skip
    table = Table("Searches for a change of one group", "periods | rows | change | window", columns)
    even = _Stream.even(40, (75, 225), (0.5, 0.5))
    settings: list[tuple[str, _Stream, int, float, int | None]] = [
        ("40 | 75 and 225 | 0.5 to 0.35 from 24 on | ", even.changed(24, 0, 0.35), 24, -0.15, None),
        ("40 | 75 and 225 | 0.5 to 0.42 from 24 on | ", even.changed(24, 0, 0.42), 24, -0.08, None),
        ("40 | 75 and 225 | 0.5 to 0.35 from 37 on | ", even.changed(37, 0, 0.35), 37, -0.15, None),
        (
            "40 | 4 and 225 | 0.5 to 0.2 from 20 on | ",
            _Stream.even(40, (4, 225), (0.5, 0.5)).changed(20, 0, 0.2), 20, -0.3, None,
        ),
        (
            "40 | 75 and 225 | 0.02 to 0.05 from 20 on | ",
            _Stream.even(40, (75, 225), (0.02, 0.02)).changed(20, 0, 0.05), 20, 0.03, None,
        ),
        ("40 | 75 and 225 | 0.5 to 0.35 from 15 to 19 | ", even.changed(15, 0, 0.35, 20), 15, np.nan, None),
        ("40 | 75 and 225 | 0.5 to 0.35 from 15 to 19 | 5", even.changed(15, 0, 0.35, 20), 15, np.nan, 5),
    ]  # fmt: skip
    fewer = max(1, runs // 8)
    # p-values that can be significant after adjustment for 39 pairs of periods
    neighbours = tdf.inference.compare_periods(_PARITY, period="period", adjust="none")
    for name, stream, first, change, window in settings:
        data = stream.drawn(fewer, random)
        result = _search(data, window=window)
        group, disparity = result.filter(pl.col(".group") == "0"), result.filter(pl.col(".group").is_null())
        known = group.filter(pl.col(".p_value") < 1 - LEVEL)
        covered = change_covered = of_neighbours = np.nan
        if not np.isnan(change):
            some = data.filter(pl.col("run") < fewer // 3)
            of_neighbours = _any_rejected(neighbours(some, group_by=["run", "period"], **_CALL, times=5 * SHUFFLES))
            covered = known.select(pl.lit(first).is_between(".period_lower", ".period_upper")).to_series().mean()
            change_covered = group.select(pl.lit(change).is_between(".lower", ".upper")).to_series().mean()
        width = known.select(pl.col(".period_upper") - pl.col(".period_lower") + 1).to_series().median()
        numbers = (covered, change_covered, width)
        shares = rejected(group[".p_value"]), rejected(disparity[".p_value"]), of_neighbours
        table.add(name, *shares, *(np.nan if number is None else float(number) for number in numbers))  # pyright: ignore[reportArgumentType] - numbers
    return table.close()


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "changes_by_chance": by_chance,
    "changes_found": found,
}

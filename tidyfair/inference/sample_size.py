"""Power of an audit: the smallest difference that a test detects, and the rows that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.inference.rate_tests import SAME
from tidyfair.inference.studentized import rate_distances
from tidyfair.intervals.resampling import MOST_SHUFFLED
from tidyfair.specs.arguments import flag, how_often, number, proper_share, whole
from tidyfair.specs.result_columns import RESERVED
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["rows_needed", "smallest_difference"]

_HALVINGS = 14
_MOST_GROUPS = 10_000
_MOST_ROWS = 10**7
_TOTALS = 150
"""The most numbers of hits that have a test of their own."""
_FEWEST, _TIMES = 200, 25
"""Shuffles of a test: at least, and more for each draw that is tested by it."""
_SHOWN = {
    ".groups": pl.Int64, ".smallest": pl.String, ".rows": pl.Int64, ".share": pl.Float64, ".difference": pl.Float64,
    ".power": pl.Float64, ".confidence": pl.Float64,
}  # fmt: skip


def smallest_difference(
    groups: Any, share: float | None = None, *, power: float = 0.8, confidence: float = 0.95, mid_p: bool = False,
    times: int = 4_000, seed: int = 0,
) -> pl.DataFrame:  # fmt: skip
    """Give the smallest difference of the smallest group from the others that `disparity_test` detects, by simulation.

    The rate of the smallest group is moved away from that of all others, to the side where there is more room, until
    the test detects it with the power. It is for planning, before any disparity is observed.

    Args:
        groups: The denominators of the rate by the names of the groups; or a result of `by_group`, whose
            `.denominator` is read.
        share: The rate of the other groups; of a result it is that of all rows.
        power: Probability that the difference is detected.
        confidence: 1 - significance level.
        mid_p: Plan for `disparity_test(…, mid_p=True)`, which takes about as many rows as the formula for two large
            groups says; the exact test takes more.
        times: Number of draws.
        seed: Seed of the draws.

    Returns:
        One row (for each metric, feature and outer group of a result): the number of `.groups`, the `.smallest` one and
        its `.rows`, the `.share`, and the `.difference`; null where none is large enough.

    >>> smallest_difference({"a": 800, "b": 200}, 0.5).select(".smallest", pl.col(".difference").round(2)).row(0)
    ('b', 0.11)
    """
    import numpy as np

    study = _study("smallest_difference", power, confidence, times, seed, mid_p=mid_p)
    if isinstance(groups, Mapping):
        sizes = cast("Mapping[object, Any]", groups)
        if share is None:
            msg = "smallest_difference() needs the rate of the groups, `share=`, beside how many rows there are."
            raise ArgumentError(msg)
        rows = [whole(str(name), size, 1) for name, size in sizes.items()]
        return pl.DataFrame([_smallest(study, list(map(str, sizes)), rows, share)], schema=_SHOWN)
    frame = open_frame(groups).to_polars()
    if missing := [name for name in (".metric", ".by", ".group", ".denominator") if name not in frame.columns]:
        msg = f"What is given is neither rows by group nor a result of `by_group`: it has no column {missing[0]!r}."
        raise ColumnError(msg)
    keys = [name for name in frame.columns if name not in RESERVED]
    keys += [name for name in (".metric", ".by", ".level") if name in frame.columns]
    valued = frame.filter(pl.col(".estimate").is_not_null() & pl.col(".by").is_not_null())
    tables = [pl.DataFrame(schema=frame.select(keys).schema | _SHOWN)]
    for _, part in valued.group_by(keys, maintain_order=True):
        rate = share
        if rate is None:
            rate = float(np.average(part[".estimate"].to_numpy(), weights=part[".denominator"].to_numpy()))
        smallest = _smallest(study, part[".group"].to_list(), part[".denominator"].to_list(), rate)
        tables.append(part[:1].select(keys).join(pl.DataFrame([smallest], schema=_SHOWN), how="cross"))
    return pl.concat(tables)


def rows_needed(
    difference: float, share: float, *, groups: int = 2, power: float = 0.8, confidence: float = 0.95,
    mid_p: bool = False, times: int = 4_000, seed: int = 0,
) -> int:  # fmt: skip
    """Give the rows in the denominator of a rate that each group needs for `disparity_test` to detect a difference.

    Args:
        difference: Distance of one group from all others, which have one rate, on the side where there is more room.
        share: The rate of the others.
        groups: Number of groups of equal size.
        power: Probability that the difference is detected.
        confidence: 1 - significance level.
        mid_p: Plan for `disparity_test(…, mid_p=True)`, as for `smallest_difference`.
        times: Number of draws.
        seed: Seed of the draws.

    >>> 380 < rows_needed(0.1, 0.5) < 430
    True
    """
    study = _study("rows_needed", power, confidence, times, seed, mid_p=mid_p)
    share, difference = proper_share("share", share), proper_share("difference", difference)
    groups = whole("groups", groups, 2, _MOST_GROUPS)
    if not 0 <= _moved(share, difference) <= 1:
        msg = f"No rate is {difference:g} from {share:g}."
        raise ArgumentError(msg)
    too_few, enough = 1, 2
    while enough < _MOST_ROWS and not study.detects(difference, [enough] * groups, share):
        too_few, enough = enough, enough * 2
    if not study.detects(difference, [enough] * groups, share):
        msg = f"More than {_MOST_ROWS:,} rows a group would be needed to find a difference of {difference:g}."
        raise ArgumentError(msg)
    while enough - too_few > max(1, enough // 200):
        middle = (too_few + enough) // 2
        if study.detects(difference, [middle] * groups, share):
            enough = middle
        else:
            too_few = middle
    return enough


@dataclass(frozen=True)
class _Study:
    """A test by simulation, and the power that it is to have."""

    power: float
    confidence: float
    mid_p: bool
    times: int
    seed: int

    def detects(self, difference: float, rows: Sequence[int], share: float) -> bool:
        """Tell whether the test detects that difference of the smallest group from all others with the power."""
        import numpy as np

        random, size = np.random.default_rng(self.seed), np.array(rows)
        rates = np.full(len(rows), share)
        rates[size.argmin()] = np.clip(_moved(share, difference), 0, 1)
        hits = random.binomial(size, rates, (self.times, len(rows)))
        distances, totals = _distances(hits, size), hits.sum(axis=1)
        # shuffled groups keep the number of hits; where it takes many values, those close by share a test
        step = 1 + int(np.ptp(totals)) // _TOTALS
        rejected = 0
        for part in np.unique(totals // step):
            is_of_part = totals // step == part
            tested = distances[is_of_part]
            total = int(np.median(totals[is_of_part]))
            shuffled = _shuffled(size, total, _FEWEST + _TIMES * len(tested), random)
            by_chance = np.sort(_distances(shuffled, size))
            farther = len(by_chance) - np.searchsorted(by_chance, tested + SAME)
            as_far = len(by_chance) - np.searchsorted(by_chance, tested - SAME)
            reached = (as_far + farther) / 2 if self.mid_p else as_far
            rejected += int((reached <= (1 - self.confidence) * len(by_chance)).sum())
        return rejected >= self.power * self.times


def _study(name: str, power: Any, confidence: Any, times: Any, seed: Any, *, mid_p: Any) -> _Study:
    """The checked study of a function's arguments."""
    return _Study(
        proper_share("power", power), proper_share("confidence", confidence), flag("mid_p", mid_p), how_often(times),
        whole("seed", seed, 0, of=f"{name}()"),
    )  # fmt: skip


def _smallest(study: _Study, names: Sequence[str], rows: Sequence[int], share: float) -> dict[str, Any]:
    """The row of the smallest difference of some groups."""
    row: dict[str, Any] = {
        ".groups": len(rows), ".share": share, ".power": study.power, ".confidence": study.confidence
    }  # fmt: skip
    if rows:
        row[".rows"] = min(rows)
        row[".smallest"] = names[rows.index(min(rows))]
    share = number("share", share, 0, 1)
    too_small, enough = 0.0, max(share, 1 - share)
    if len(rows) < 2 or not study.detects(enough, rows, share):
        return row
    for _ in range(_HALVINGS):
        middle = (too_small + enough) / 2
        if study.detects(middle, rows, share):
            enough = middle
        else:
            too_small = middle
    return row | {".difference": enough}


def _distances(hits: Array, rows: Array) -> Array:
    """The largest distance of two groups in each draw, in standard errors, as `disparity_test` has it."""
    return rate_distances(hits, rows, hits.sum(axis=1) / rows.sum(), [])


def _shuffled(rows: Array, total: int, times: int, random: np.random.Generator) -> Array:
    """The hits of each group in each draw, with groups shuffled; `total` is their sum."""
    if rows.sum() < MOST_SHUFFLED:
        return random.multivariate_hypergeometric(rows, total, times, method="marginals")
    # of so many rows, groups are nearly independent
    return random.binomial(rows, total / rows.sum(), (times, len(rows)))


def _moved(share: float, difference: float) -> float:
    """The rate at a distance from another, on the side where there is more room."""
    return share - difference if share >= 1 / 2 else share + difference

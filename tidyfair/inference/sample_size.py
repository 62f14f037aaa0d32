"""Before an audit: how large a disparity so many rows can show, and how many rows it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.inference.rate_tests import SAME
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
"""Numbers of hits, at most, each of which has a test of its own."""
_FEWEST, _TIMES = 200, 25
"""Shuffles of a test: so many, and so many more for each draw that is tested by it."""
_SHOWN = {
    ".groups": pl.Int64, ".smallest": pl.String, ".rows": pl.Int64, ".share": pl.Float64, ".difference": pl.Float64,
    ".power": pl.Float64, ".confidence": pl.Float64,
}  # fmt: skip


def smallest_difference(
    groups: Any, share: float | None = None, *, power: float = 0.8, confidence: float = 0.95, mid_p: bool = False,
    times: int = 4_000, seed: int = 0,
) -> pl.DataFrame:  # fmt: skip
    """Say how far the smallest group must be from the others for `disparity_test` to find it, by simulation.

    One group, the smallest, is moved away from all others, which have one rate, until the test of the range of all
    rates finds it often enough. It is about what an audit can find, and takes no disparity that was found. The rate is
    moved to the side where there is more room.

    Args:
        groups: The rows that a rate is about in each group, by the names of the groups; or what `by_group` gave, whose
            `.denominator` is meant.
        share: The rate of the other groups; of a result it is that of all rows.
        power: How often the disparity is to be found.
        confidence: How often equal groups are to be left alone: one less the level of the test.
        mid_p: Plan for `disparity_test(…, mid_p=True)`, which takes about as many rows as the formula for two large
            groups says; the exact test takes more.
        times: How many draws there are.
        seed: Of the draws.

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
    about = [name for name in frame.columns if name not in RESERVED]
    about += [name for name in (".metric", ".by", ".level") if name in frame.columns]
    valued = frame.filter(pl.col(".estimate").is_not_null() & pl.col(".by").is_not_null())
    tables = [pl.DataFrame(schema=frame.select(about).schema | _SHOWN)]
    for key, part in valued.group_by(about, maintain_order=True):
        rows = part[".denominator"].to_list()
        pooled = float(np.average(part[".estimate"].to_numpy(), weights=part[".denominator"].to_numpy()))
        smallest = _smallest(study, part[".group"].to_list(), rows, pooled if share is None else share)
        named = [pl.lit(value, frame.schema[name]).alias(name) for name, value in zip(about, key, strict=True)]
        tables.append(pl.DataFrame([smallest], schema=_SHOWN).select(*named, pl.all()))
    return pl.concat(tables)


def rows_needed(
    difference: float, share: float, *, groups: int = 2, power: float = 0.8, confidence: float = 0.95,
    mid_p: bool = False, times: int = 4_000, seed: int = 0,
) -> int:  # fmt: skip
    """Say how many rows that a rate is about each group needs, so that `disparity_test` finds a difference.

    Args:
        difference: How far one group is from all others, which have one rate, on the side where there is more room.
        share: The rate of the others.
        groups: How many groups of equal size there are.
        power: How often the disparity is to be found.
        confidence: How often equal groups are to be left alone: one less the level of the test.
        mid_p: Plan for `disparity_test(…, mid_p=True)`, as for `smallest_difference`.
        times: How many draws there are.
        seed: Of the draws.

    >>> 380 < rows_needed(0.1, 0.5) < 430
    True
    """
    study = _study("rows_needed", power, confidence, times, seed, mid_p=mid_p)
    middle, apart = proper_share("share", share), proper_share("difference", difference)
    groups = whole("groups", groups, 2, _MOST_GROUPS)
    if not 0 <= _moved(middle, apart) <= 1:
        msg = f"No rate is {apart:g} from {middle:g}."
        raise ArgumentError(msg)
    fewest, enough = 1, 2
    while enough < _MOST_ROWS and not study.finds(apart, [enough] * groups, middle):
        fewest, enough = enough, enough * 2
    if not study.finds(apart, [enough] * groups, middle):
        msg = f"More than {_MOST_ROWS:,} rows a group would be needed to find a difference of {apart:g}."
        raise ArgumentError(msg)
    while enough - fewest > max(1, enough // 200):
        between = (fewest + enough) // 2
        found = study.finds(apart, [between] * groups, middle)
        fewest, enough = (fewest, between) if found else (between, enough)
    return enough


@dataclass(frozen=True)
class _Study:
    """How often a difference is to be found, and by which test."""

    power: float
    confidence: float
    mid_p: bool
    times: int
    seed: int

    def finds(self, difference: float, rows: Sequence[int], share: float) -> bool:
        """Compare how often the test finds that the smallest group is so far from all others with what is asked."""
        import numpy as np

        random, size = np.random.default_rng(self.seed), np.array(rows)
        rates = np.full(len(rows), share)
        rates[size.argmin()] = np.clip(_moved(share, difference), 0, 1)
        hits = random.binomial(size, rates, (self.times, len(rows)))
        ranges, totals = _ranges(hits, size), hits.sum(axis=1)
        # shuffled groups keep the number of hits; where it takes many values, those close by share a test
        step = 1 + int(np.ptp(totals)) // _TOTALS
        found = 0
        for part in np.unique(totals // step):
            tested = ranges[totals // step == part]
            total = int(np.median(totals[totals // step == part]))
            by_chance = np.sort(_ranges(_shuffled(size, total, _FEWEST + _TIMES * len(tested), random), size))
            farther = len(by_chance) - np.searchsorted(by_chance, tested + SAME)
            as_far = len(by_chance) - np.searchsorted(by_chance, tested - SAME)
            reached = (as_far + farther) / 2 if self.mid_p else as_far
            found += int((reached <= (1 - self.confidence) * len(by_chance)).sum())
        return found >= self.power * self.times


def _study(name: str, power: Any, confidence: Any, times: Any, seed: Any, *, mid_p: Any) -> _Study:
    """What is to be found, checked."""
    return _Study(
        proper_share("power", power), proper_share("confidence", confidence), flag("mid_p", mid_p), how_often(times),
        whole("seed", seed, 0, of=f"{name}()"),
    )  # fmt: skip


def _smallest(study: _Study, names: Sequence[str], rows: Sequence[int], share: float) -> dict[str, Any]:
    """The smallest difference of some groups, beside what it is about."""
    smallest = min(range(len(rows)), key=lambda place: rows[place]) if rows else None
    found: dict[str, Any] = {
        ".groups": len(rows), ".smallest": None if smallest is None else names[smallest],
        ".rows": None if smallest is None else rows[smallest], ".share": share,
        ".difference": None, ".power": study.power, ".confidence": study.confidence,
    }  # fmt: skip
    middle = number("share", share, 0, 1)
    least, most = 0.0, max(middle, 1 - middle)
    if len(rows) > 1 and study.finds(most, rows, middle):
        for _ in range(_HALVINGS):
            between = (least + most) / 2
            least, most = (least, between) if study.finds(between, rows, middle) else (between, most)
        found[".difference"] = most
    return found


def _ranges(hits: Array, rows: Array) -> Array:
    """The range of the rates of groups in each draw."""
    shares = hits / rows
    return shares.max(axis=1) - shares.min(axis=1)


def _shuffled(rows: Array, total: int, times: int, random: np.random.Generator) -> Array:
    """The hits of each group, so many in all, with groups shuffled."""
    if rows.sum() < MOST_SHUFFLED:
        return random.multivariate_hypergeometric(rows, total, times, method="marginals")
    # of so many rows each group as good as has its own
    return random.binomial(rows, total / rows.sum(), (times, len(rows)))


def _moved(share: float, difference: float) -> float:
    """A rate that is so far away, on the side where there is more room."""
    return share - difference if share >= 1 / 2 else share + difference

"""Before an audit: how large a disparity so many rows can show, and how many rows it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.arguments import number, proper_share, whole
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.frames import open_frame
from tidyfair.requests import RESERVED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["rows_needed", "smallest_difference"]

_HALVINGS = 14
_MOST_ROWS = 10**7
_SHOWN = {
    ".groups": pl.Int64, ".smallest": pl.String, ".rows": pl.Int64, ".share": pl.Float64, ".difference": pl.Float64,
    ".power": pl.Float64, ".confidence": pl.Float64,
}  # fmt: skip


def smallest_difference(
    groups: Any, share: float | None = None, *, power: float = 0.8, confidence: float = 0.95, times: int = 4_000,
    seed: int = 0,
) -> pl.DataFrame:  # fmt: skip
    """Say how far the smallest group must be from the others for a range of rates to show it, by simulation.

    The range of groups that are equal is drawn to find what it exceeds rarely; then one group, the smallest, is moved
    away from all others, which have one rate, until the range exceeds that often enough. It is about what an audit can
    find, and takes no disparity that was found.

    Args:
        groups: The rows that a rate is about in each group, by the names of the groups; or what `by_group` gave, whose
            `.denominator` is meant.
        share: The rate of the other groups; of a result it is that of all rows.
        power: How often the disparity is to be found.
        confidence: How often equal groups are to be left alone.
        times: How many draws there are.
        seed: Of the draws.

    Returns:
        One row (for each metric, feature and outer group of a result): the number of `.groups`, the `.smallest` one and
        its `.rows`, the `.share`, and the `.difference`; null where none is large enough.

    >>> smallest_difference({"a": 800, "b": 200}, 0.5).select(".smallest", pl.col(".difference").round(2)).row(0)
    ('b', 0.11)
    """
    import numpy as np

    shares = {"power": proper_share("power", power), "confidence": proper_share("confidence", confidence)}
    if isinstance(groups, Mapping):
        sizes = cast("Mapping[object, Any]", groups)
        if share is None:
            msg = "smallest_difference() needs the rate of the groups, `share=`, beside how many rows there are."
            raise ArgumentError(msg)
        rows = [whole(str(name), size, 1) for name, size in sizes.items()]
        return pl.DataFrame([_found(list(map(str, sizes)), rows, share, shares, times, seed)], schema=_SHOWN)
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
        mine = _found(part[".group"].to_list(), rows, pooled if share is None else share, shares, times, seed)
        named = [pl.lit(value, frame.schema[name]).alias(name) for name, value in zip(about, key, strict=True)]
        tables.append(pl.DataFrame([mine], schema=_SHOWN).select(*named, pl.all()))
    return pl.concat(tables)


def rows_needed(
    difference: float, share: float, *, groups: int = 2, power: float = 0.8, confidence: float = 0.95,
    times: int = 4_000, seed: int = 0,
) -> int:  # fmt: skip
    """Say how many rows that a rate is about each group needs, so that a range of rates shows a difference.

    Args:
        difference: How far one group is from all others, which have one rate.
        share: The rate of the others.
        groups: How many groups of equal size there are.
        power: How often the disparity is to be found.
        confidence: How often equal groups are to be left alone.
        times: How many draws there are.
        seed: Of the draws.

    >>> 350 < rows_needed(0.1, 0.5) < 450
    True
    """
    shares = {"power": proper_share("power", power), "confidence": proper_share("confidence", confidence)}
    middle, apart = proper_share("share", share), proper_share("difference", difference)
    groups = whole("groups", groups, len(("one", "other")))
    if not 0 <= _moved(middle, apart) <= 1:
        msg = f"No rate is {apart:g} from {middle:g}."
        raise ArgumentError(msg)
    fewest, enough = 1, 2
    while enough < _MOST_ROWS and _found_often([enough] * groups, middle, apart, shares, times, seed) < power:
        fewest, enough = enough, enough * 2
    if _found_often([enough] * groups, middle, apart, shares, times, seed) < power:
        msg = f"More than {_MOST_ROWS:,} rows a group would be needed to find a difference of {apart:g}."
        raise ArgumentError(msg)
    while enough - fewest > max(1, enough // 200):
        between = (fewest + enough) // 2
        found = _found_often([between] * groups, middle, apart, shares, times, seed) >= power
        fewest, enough = (fewest, between) if found else (between, enough)
    return enough


def _found(
    names: Sequence[str], rows: Sequence[int], share: float, shares: Mapping[str, float], times: int, seed: int
) -> dict[str, Any]:
    """The smallest difference of some groups, beside what it is about."""
    smallest = min(range(len(rows)), key=lambda place: rows[place]) if rows else None
    found: dict[str, Any] = {
        ".groups": len(rows), ".smallest": None if smallest is None else names[smallest],
        ".rows": None if smallest is None else rows[smallest], ".share": share,
        ".difference": None, ".power": shares["power"], ".confidence": shares["confidence"],
    }  # fmt: skip
    middle = number("share", share, 0, 1)
    least, most = 0.0, max(middle, 1 - middle)
    if len(rows) > 1 and _found_often(rows, middle, most, shares, times, seed) >= shares["power"]:
        for _ in range(_HALVINGS):
            between = (least + most) / 2
            often = _found_often(rows, middle, between, shares, times, seed) >= shares["power"]
            least, most = (least, between) if often else (between, most)
        found[".difference"] = most
    return found


def _found_often(
    rows: Sequence[int], share: float, difference: float, shares: Mapping[str, float], times: int, seed: int
) -> float:
    """How often the range exceeds what it rarely exceeds between equal groups, if the smallest group differs."""
    import numpy as np

    random, size = np.random.default_rng(seed), np.array(rows)
    moved = np.full(len(rows), share)
    moved[size.argmin()] = np.clip(_moved(share, difference), 0, 1)

    def ranges(rates: Array) -> Array:
        drawn = random.binomial(size, rates, (times, len(rows))) / size
        return drawn.max(axis=1) - drawn.min(axis=1)

    usual = np.quantile(ranges(np.full(len(rows), share)), shares["confidence"])
    return float((ranges(moved) > usual).mean())


def _moved(share: float, difference: float) -> float:
    """A rate that is so far away, on the side where there is more room."""
    return share - difference if share >= 1 / 2 else share + difference

"""Power of an audit: the smallest difference that a test detects, and the rows that a test or a gate needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation import JUDGED
from tidyfair.inference.gates import FAIL, PASS, Side, check, limited
from tidyfair.inference.result_frames import frame_of, no_rows, schema_of
from tidyfair.inference.testing.studentized import joint_ranks, rate_distances
from tidyfair.intervals import MOST_SHUFFLED, in_progress, z_value
from tidyfair.metrics.fairness import demographic_parity, demographic_parity_ratio
from tidyfair.specs import (
    GROUP_KEYS,
    Array,
    Frame,
    flag,
    how_often,
    key_columns,
    number,
    proper_share,
    refuse_unknown_settings,
    whole,
)
from tidyfair.specs.result_kinds import GROUPS, SMALLEST
from tidyfair.tallies import open_frame

__all__ = ["labels_needed", "rows_needed", "smallest_difference"]

_HALVINGS = 14
_MOST_GROUPS = 10_000
_MOST_ROWS = 10**7
_TOTALS, _DRAWS_OF_TOTAL = 100, 20
"""The most numbers of hits that get a test of their own, and the draws for each further test."""
_FEWEST = 200
"""The fewest shuffles of a test."""
_LEAST_MORE, _MOST_MORE, _NUMBERS = 5, 25, 250
"""Further shuffles for each draw that is tested: the fewest, the most, and the numbers that these may fill."""
_PILOT, _SURE = 0.1, 5.0
"""The share of draws tried first, and the standard errors from the power at which these settle the matter."""
_LEAST_CONFIDENCE = 0.5
_JUDGED = 12
"""Draws that a gate judges in each of two rounds: over all draws, and over those where its verdicts change."""
_DRAWS_OF_GATE = 1_000
"""Draws of each interval that a gate reads; the errors of so many cancel out."""
_SHOWN = schema_of(SMALLEST, without=".metric .by .level") | schema_of(".conf_level")


@refuse_unknown_settings
def smallest_difference(
    groups: Any, share: float | None = None, *, power: float = 0.8, conf_level: float = 0.95, mid_p: bool = False,
    times: int = 4_000, seed: int = 0,
) -> pl.DataFrame:  # fmt: skip
    """Simulate the smallest difference of the smallest group from the others that `disparity_test` detects.

    The rate of the smallest group is moved away from the common rate of the others, toward the farther end of its
    range, until the test detects it with the given power. Use it for planning, before any disparity is observed.

    Args:
        groups: Mapping from groups to the denominators of their rates; or a result of `by_group`, whose `.denominator`
            is used.
        share: The rate of the other groups; for a result, by default the rate of all rows.
        power: Probability that the difference is detected.
        conf_level: 1 - significance level.
        mid_p: Plan for `disparity_test(…, mid_p=True)`, which needs about as many rows as the formula for two large
            groups; the exact test needs more.
        times: Number of draws.
        seed: Seed of the draws.

    Returns:
        One row (for each metric, feature and outer group of a result): the number of `.groups`, the `.smallest` one and
        its `.rows`, the `.share`, and the `.difference`, null if no difference is detected.

    >>> smallest_difference({"a": 800, "b": 200}, 0.5).select(".smallest", pl.col(".difference").round(2)).row(0)
    ('b', 0.11)
    """
    study = _study("smallest_difference", power, conf_level, times, seed, mid_p=mid_p)
    if isinstance(groups, Mapping):
        sizes = cast("Mapping[object, Any]", groups)
        if share is None:
            msg = "smallest_difference() needs the rate of the groups as `share=`, in addition to their rows."
            raise ArgumentError(msg)
        rows = [whole(str(name), size, 1) for name, size in sizes.items()]
        smallest = _smallest(study, list(map(str, sizes)), rows, share)
        return SMALLEST.frame(frame_of(smallest, _SHOWN))
    frame = open_frame(groups).to_polars()
    if missing := [name for name in (".metric", ".by", ".group", ".denominator") if name not in frame.columns]:
        msg = (
            "smallest_difference() takes a mapping from groups to rows, or a result of `by_group`; the column "
            f"{missing[0]!r} is missing."
        )
        raise ColumnError(msg)
    keys = key_columns(frame)
    keys += [name for name in GROUP_KEYS if name in frame.columns and name != ".group"]
    valued = frame.filter(pl.col(".estimate").is_not_null() & pl.col(".by").is_not_null())
    tables = [no_rows(frame.select(keys), _SHOWN)]
    for _, part in valued.group_by(keys, maintain_order=True):
        rate = share
        if rate is None:
            rate = float(np.average(part[".estimate"].to_numpy(), weights=part[".denominator"].to_numpy()))
        smallest = _smallest(study, part[".group"].to_list(), part[".denominator"].to_list(), rate)
        tables.append(part[:1].select(keys).join(frame_of(smallest, _SHOWN), how="cross"))
    return SMALLEST.frame(pl.concat(tables))


@refuse_unknown_settings
def rows_needed(
    difference: float, share: float, *, groups: int = 2, below: float | None = None, above: float | None = None,
    power: float = 0.8, conf_level: float = 0.95, mid_p: bool = False, times: int = 4_000, seed: int = 0,
) -> int:  # fmt: skip
    """Simulate the rows in the denominator that each group needs for a test or a gate with the given power.

    Without a limit, `disparity_test` must detect the difference. With `below=` (for differences) or `above=` (for
    ratios), the gate of `check` must give the right verdict: pass for a difference within the limit, such as 0 for a
    fair model (a test of equivalence), or fail for a difference beyond it (a test of excess).

    Args:
        difference: Difference of one group from all others, which have a common rate, toward the farther end of the
            range.
        share: The rate of the others.
        groups: Number of groups of equal size.
        below: The limit of the difference, of a gate.
        above: The limit of the ratio of the smallest rate to the largest, of a gate.
        power: Probability that the difference is detected, or that the gate gives the verdict.
        conf_level: 1 - significance level; for a gate, the confidence level of its verdicts.
        mid_p: Plan for `disparity_test(…, mid_p=True)`, as for `smallest_difference`.
        times: Number of draws.
        seed: Seed of the draws.

    >>> 380 < rows_needed(0.1, 0.5) < 430
    True
    >>> 400 < rows_needed(0, 0.5, below=0.1) < 460
    True
    """
    study = _study("rows_needed", power, conf_level, times, seed, mid_p=mid_p)
    share = proper_share("share", share)
    groups = whole("groups", groups, 2, _MOST_GROUPS)
    has_limit = below is not None or above is not None
    if has_limit and mid_p:
        msg = "rows_needed() accepts `mid_p` only for a test; leave it out with `below=` or `above=`."
        raise ArgumentError(msg)
    difference = number("difference", difference, 0, 1) if has_limit else proper_share("difference", difference)
    rates = share, _moved(share, difference)
    if not 0 <= rates[1] <= 1:
        msg = (
            f"`difference`: no rate between 0 and 1 differs from {share:g} by {difference:g}; give a smaller "
            "difference."
        )
        raise ArgumentError(msg)
    if has_limit:
        gate = _GateStudy.of(study, rates, groups, below, above)
        return _fewest_rows(gate.is_sure, f"for the gate to {gate.verdict}", gate.first_guess, 50)
    goal = f"to detect a difference of {difference:g}"
    return _fewest_rows(lambda rows: study.detects(difference, [rows] * groups, share), goal, 2, 200)


@refuse_unknown_settings
def labels_needed(groups: object, width: float) -> Frame:
    """The labels of people that each group needs for intervals of a given width, beside those of a judge.

    The values of people and judge keep their correlation, and the variance by people falls with the number of labels.

    Args:
        groups: The result of `by_group(…, judged=…, interval="auto")`, with intervals of the wanted level, in any kind
            of frame.
        width: The distance of the limits.

    Returns:
        The groups with `.labels_needed`, those that there are included; null where labels for all rows are too few.

    >>> from tidyfair import accuracy
    >>> rows = {"gold": [1, 0, 1, 0, None, None], "judge": [1, 1, 1, 0, 1, 0], "guess": [1, 1, 0, 0, 1, 0]}
    >>> people = pl.concat([pl.DataFrame(rows)] * 20)
    >>> values = accuracy.by_group(people, "gold", "guess", judged="judge", interval="auto")
    >>> values.select(".n", pl.col(".upper") - pl.col(".lower") < 0.2).row(0)
    (80, True)
    >>> labels_needed(values, 0.18)[".labels_needed"].item() > 80
    True
    """
    source = open_frame(groups)
    values = source.to_polars()
    missing = [name for name in (*JUDGED, ".lower", ".upper", ".n", ".denominator") if name not in values.columns]
    if missing:
        msg = f'`groups` lacks {missing[0]!r}: give the result of `by_group(…, judged=…, interval="auto")`.'
        raise ColumnError(msg)
    squared_width = number("width", width, 0, math.inf) ** 2
    ratio, share = pl.col(".denominator") / pl.col(".labels_worth"), pl.col(".labelled_share")
    # the judge explains a part of the variance by people, as far as there are more rows than labels
    explained, alone = (1 - ratio) / (1 - share), (pl.col(".upper") - pl.col(".lower")) ** 2 / ratio
    factor = alone * (1 - explained) / (squared_width - alone * explained * share)
    needed = pl.when((factor > 0) & (factor <= 1 / share)).then((pl.col(".n") * factor).ceil().cast(pl.Int64))
    return source.restore(GROUPS.frame(values.with_columns(needed.alias(".labels_needed"))))


def _fewest_rows(is_enough: Callable[[int], bool], goal: str, guess: int, precision: int) -> int:
    """The fewest rows that are enough, up to a `precision`-th of them."""
    too_few, enough = guess // 2, guess
    while too_few > 1 and is_enough(too_few):
        too_few, enough = too_few // 2, too_few
    while enough < _MOST_ROWS and not is_enough(enough):
        too_few, enough = enough, enough * 2
    if enough >= _MOST_ROWS and not is_enough(enough):
        msg = f"More than {_MOST_ROWS:,} rows per group would be needed {goal}."
        raise ArgumentError(msg)
    while enough - too_few > max(1, enough // precision):
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if is_enough(middle) else (middle, enough)
    return enough


@dataclass(frozen=True)
class _Study:
    """A test by simulation, and the power that it is to have."""

    power: float
    conf_level: float
    mid_p: bool
    times: int
    seed: int

    def detects(self, difference: float, rows: Sequence[int], share: float) -> bool:
        """Check whether the test detects that difference of the smallest group from all others with the given power."""
        few = math.ceil(self.times * _PILOT)
        detected = self.share_detected(difference, rows, share, few)
        # far from the power that is needed, few draws tell
        if abs(detected - self.power) > _SURE * math.sqrt(self.power * (1 - self.power) / few):
            return detected > self.power
        return self.share_detected(difference, rows, share, self.times) >= self.power

    def share_detected(self, difference: float, rows: Sequence[int], share: float, draws: int) -> float:
        """The share of so many draws in which the test detects that difference."""
        random, size = np.random.default_rng(self.seed), np.array(rows)
        rates = np.full(len(rows), share)
        rates[size.argmin()] = np.clip(_moved(share, difference), 0, 1)
        hits = random.binomial(size, rates, (draws, len(rows)))

        def distances_of(hits: Array) -> Array:
            """The distances of groups in each draw, in standard errors, as `disparity_test` has them."""
            return rate_distances(hits, size, hits.sum(axis=1) / size.sum(), [])

        distances, totals = distances_of(hits), hits.sum(axis=1)
        # shuffled groups keep the number of hits; where it takes many values, those close by share a test
        step = 1 + int(np.ptp(totals)) // min(_TOTALS, 1 + draws // _DRAWS_OF_TOTAL)
        more = min(max(_NUMBERS // len(rows), _LEAST_MORE), _MOST_MORE)
        rejected = 0
        for part in in_progress(np.unique(totals // step).tolist(), "simulating"):
            is_of_part = totals // step == part
            tested = distances[is_of_part]
            total = int(np.median(totals[is_of_part]))
            times = _FEWEST + more * len(tested)
            if size.sum() < MOST_SHUFFLED:
                shuffled = random.multivariate_hypergeometric(size, total, times, method="marginals")
            else:
                # of so many rows, groups are nearly independent
                shuffled = random.binomial(size, total / size.sum(), (times, len(size)))
            by_chance = distances_of(shuffled)
            ranks, by_chance_ranks = joint_ranks(tested, by_chance), np.sort(joint_ranks(by_chance, by_chance))
            farther = np.searchsorted(by_chance_ranks, ranks)
            as_far = np.searchsorted(by_chance_ranks, ranks, "right") - farther
            reached = farther + (as_far / 2 if self.mid_p else as_far)
            rejected += int((reached <= (1 - self.conf_level) * len(by_chance)).sum())
        return rejected / draws


@dataclass(frozen=True)
class _GateStudy:
    """A gate by simulation, and the verdict that it is to give with the power."""

    study: _Study
    rates: tuple[float, float]
    """The rate of all groups but one, and that of the one."""
    groups: int
    side: Side
    limit: float
    verdict: str

    @classmethod
    def of(
        cls, study: _Study, rates: tuple[float, float], groups: int, below: float | None, above: float | None
    ) -> _GateStudy:
        """The study of the verdict that is right for the rates."""
        side, limit = limited("rows_needed", below, above)
        number(side, limit, 0, 1)
        proper_share("conf_level", study.conf_level, _LEAST_CONFIDENCE)
        distance = max(rates) - min(rates) if side == "below" else min(rates) / max(rates)
        if math.isclose(distance, limit):
            msg = (
                f"The disparity of the groups, {distance:g}, equals the limit `{side}={limit:g}`, so no number of "
                "rows gives a verdict; give another difference or limit."
            )
            raise ArgumentError(msg)
        verdict = PASS if (distance < limit) == (side == "below") else FAIL
        return cls(study, rates, groups, side, limit, verdict)

    @property
    def first_guess(self) -> int:
        """The rows that two large groups need."""
        share, other = self.rates
        distance, limit, scale = abs(share - other), self.limit, 1.0
        if self.side == "above":
            scale = max(self.rates)
            distance, limit = 1 - min(self.rates) / scale, 1 - self.limit
        deviations = z_value(2 * self.study.conf_level - 1) + z_value(abs(2 * self.study.power - 1))
        rows = (deviations / (scale * (limit - distance))) ** 2 * (share * (1 - share) + other * (1 - other))
        return int(min(max(rows, 4), _MOST_ROWS))

    def is_sure(self, rows: int) -> bool:
        """Check whether the gate gives the verdict with the given power.

        Verdicts hardly depend on more than the disparity of a draw, so that the gate judges a few draws in the order of
        their disparities, and then a few of those between its last sure verdict and its first other one.
        """
        times = self.study.times
        rates = np.full(self.groups, self.rates[0])
        rates[0] = self.rates[1]
        hits = np.random.default_rng(self.study.seed).binomial(rows, rates, (times, self.groups))
        # the range of the hits of groups, or the ratio of the fewest to the most
        least, most = hits.min(axis=1), hits.max(axis=1)
        disparities = most - least if self.side == "below" else least / np.maximum(most, 1)
        order = np.argsort(disparities, kind="stable")
        if (self.verdict == PASS) != (self.side == "below"):
            order = order[::-1]
        # draws for which the verdict is likeliest come first
        ranks = _spread(0, times)
        given = self._gives(hits[order[ranks]], rows).tolist()
        surely = [*given, False].index(False)
        possibly = len(given) - [*given[::-1], True].index(True)
        start = int(ranks[surely - 1]) + 1 if surely else 0
        stop = int(ranks[possibly]) if possibly < len(given) else times
        needed = self.study.power * times
        if not start < needed <= stop:
            return start >= needed
        between = self._gives(hits[order[_spread(start, stop)]], rows)
        return bool(start + between.mean() * (stop - start) >= needed)

    def _gives(self, hits: Array, rows: int) -> Array:
        """A mask of the draws of which the gate gives the verdict, each judged alone."""
        data = pl.DataFrame(
            {
                "draw": np.repeat(np.arange(len(hits)), 2 * self.groups),
                "group": np.tile(np.repeat(np.arange(self.groups), 2), len(hits)),
                "hit": np.tile([True, False], len(hits) * self.groups),
                "rows": np.stack([hits, rows - hits], axis=-1).ravel(),
            }
        )
        parity = demographic_parity("group") if self.side == "below" else demographic_parity_ratio("group")
        results = parity(
            data, estimate="hit", group_by="draw", frequency_weights="rows", interval="auto", explain=True,
            conf_level=2 * self.study.conf_level - 1, times=_DRAWS_OF_GATE, on_undefined="ignore",
        )  # fmt: skip
        limit: dict[str, Any] = {self.side: self.limit}
        judged = check(results, **limit)
        return (judged.sort("draw")[".verdict"] == self.verdict).to_numpy()


def _spread(start: int, stop: int) -> Array:
    """Some of the numbers from `start` to `stop`, evenly spread."""
    count = min(_JUDGED, stop - start)
    return (start + (np.arange(count) + 0.5) * (stop - start) / count).astype(int)


def _study(name: str, power: Any, conf_level: Any, times: Any, seed: Any, *, mid_p: Any) -> _Study:
    """The checked study of a function's arguments."""
    return _Study(
        proper_share("power", power), proper_share("conf_level", conf_level), flag("mid_p", mid_p), how_often(times),
        whole("seed", seed, 0, of=f"{name}()"),
    )  # fmt: skip


def _smallest(study: _Study, names: Sequence[str], rows: Sequence[int], share: float) -> dict[str, Any]:
    """The row of the smallest difference of some groups."""
    row: dict[str, Any] = {
        ".groups": len(rows), ".share": share, ".power": study.power, ".conf_level": study.conf_level
    }  # fmt: skip
    if rows:
        row |= {".rows": min(rows), ".smallest": names[rows.index(min(rows))]}
    share = number("share", share, 0, 1)
    too_small, enough = 0.0, max(share, 1 - share)
    if len(rows) < 2 or not study.detects(enough, rows, share):
        return row
    for _ in in_progress(range(_HALVINGS), "searching"):
        middle = (too_small + enough) / 2
        too_small, enough = (too_small, middle) if study.detects(middle, rows, share) else (middle, enough)
    return row | {".difference": enough}


def _moved(share: float, difference: float) -> float:
    """The rate at a distance from another, toward the farther end of the range."""
    return share - difference if share >= 1 / 2 else share + difference

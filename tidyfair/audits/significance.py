"""The disparities of an audit that are significant: one policy for pages and for the command line.

A disparity of rates is tested by permutation, all others by their interval, and both are adjusted by Holm's method for
the number of disparities in the audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tidyfair.calling.metric_sets import GroupwiseMetric, metric_set
from tidyfair.errors import Status, without_notices
from tidyfair.inference.testing.permutation_test import disparity_test
from tidyfair.intervals.proportions import adjusted
from tidyfair.specs.groups import By
from tidyfair.specs.result_columns import CUTS, RowKey, key_columns, keys_of
from tidyfair.tallies.tally import Tally

_LEVEL = 0.95
_OF_TESTS = {"pos_label", "labels", "na_rm"}
"""The options that tests take; they decide the others for themselves."""
_MOST_DRAWS, _FEWEST_DRAWS, _DRAWN = 10_000, 1_000, 500_000
"""Draws of tests, and how many counts of groups are drawn altogether."""
_SMALL = "\0small"
"""The internal column of the reason why a small group is left out."""
_UNTESTED = {"frequency_weights", "cluster", "score_bins", "keep_rows"}
"""Options with which rows are not exchangeable, so that there is no exact test."""


@dataclass(frozen=True)
class Significance:
    """The disparities that are judged, and those that are significant."""

    error: float
    """The probability of any significant disparity where groups are equal."""
    tested: pl.DataFrame | None
    """The tests of the disparities of rates, with p-values that are adjusted for all that are judged."""
    outcomes: Mapping[RowKey, bool]
    """True for each judged disparity that is significant, by the key of its row."""
    draws: int = 0
    """The draws of each test; none where there are no exact tests."""

    @property
    def number(self) -> int:
        """The number of significant disparities."""
        return sum(self.outcomes.values())

    @classmethod
    def of(
        cls,
        parities: Sequence[GroupwiseMetric],
        tally: Tally,
        reading: Mapping[str, Any],
        counting: Iterable[str],
        results: pl.DataFrame,
        groups: pl.DataFrame,
    ) -> Significance:
        """Judge disparities by their tests and intervals; none where no intervals are asked for.

        Args:
            parities: The disparities.
            tally: The counts of one set of predictions.
            reading: The options by which the counts are read.
            counting: The names of the options by which rows were counted.
            results: The disparities with their intervals; a single group has none.
            groups: The values of groups.
        """
        error = 1 - reading.get("conf_level", _LEVEL)
        if reading["interval"] is None:
            return cls(error, None, {})
        compared = results.filter(pl.col(".by").is_not_null() & pl.col(".estimate").is_not_null())
        tested, draws = None, 0
        # rows count alike and have two labels
        is_plain = set(results[".estimator"]) == {"binary"} and tally.weights is None and not tally.needs.numbers
        if is_plain and _UNTESTED.isdisjoint(counting):
            # as usual, or fewer where there are many groups, each of which is drawn
            most = groups.group_by(".metric", ".by").len()["len"].max()
            draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _DRAWN // int(str(most or 1))))
            with without_notices():
                tested = _tested(parities, tally, reading, draws, set(compared.select(".metric", ".by").rows()))
        p_values = {} if tested is None else _by_key(tested, ".p_value")
        untested: dict[RowKey, GroupwiseMetric] = {}
        named = list(zip(keys_of(compared), compared.select(".metric", ".by", ".lower", ".upper").rows(), strict=True))
        for parity in parities:
            for key, (name, by, *ends) in named:
                is_bounded = parity.aggregate.equality is not None and ends != [None, None]
                if (name, by) == (parity.name, parity.by.text) and is_bounded and key not in p_values:
                    untested[key] = parity
        outcomes = dict.fromkeys(untested, False)
        if tested is not None:
            tested = _adjusted(tested, len(untested))
            outcomes |= {key: p_value < error for key, p_value in _by_key(tested, ".p_adjusted").items()}
        # what is not clear by itself is not clear at a stricter level either
        undecided: dict[RowKey, GroupwiseMetric] = _clear(compared, untested)
        while undecided:
            remaining = sum(not is_significant for is_significant in outcomes.values())
            at_level = compared
            if remaining > 1:
                options: dict[str, Any] = {**reading, "conf_level": 1 - error / remaining, "on_undefined": "ignore"}
                # a disparity at several times is computed once for all of them
                at_level = metric_set(*dict.fromkeys(undecided.values())).compute(tally, **options)
            clear = _clear(at_level, undecided)
            if not clear:
                break
            outcomes |= dict.fromkeys(clear, True)
            undecided = {key: parity for key, parity in undecided.items() if key not in clear}
        return cls(error, tested, outcomes, draws)


def options_of_tests(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The options of reading that tests take."""
    return {name: value for name, value in reading.items() if name in _OF_TESTS}


def compared_groups(by: By, results: pl.DataFrame, groups: pl.DataFrame) -> list[str]:
    """The groups of a feature that any of its disparities is taken over."""
    is_known = (pl.col(".by") == by.text) & (pl.col(".status") != Status.UNKNOWN.value)
    names = groups.filter(is_known)[".group"].unique(maintain_order=True).to_list()
    if by.sides:
        names = [name for name in names if name not in {"neither", "unknown"}]
    # those that are left out of some disparities are compared in the others
    by_disparity = [set(names) for names in results.filter(pl.col(".by") == by.text)[".groups_left_out"].drop_nulls()]
    always_left_out = set[str].intersection(*by_disparity) if by_disparity else set[str]()
    return [name for name in names if name not in always_left_out]


def without_single_groups(
    results: pl.DataFrame, groups: pl.DataFrame, parities: Iterable[GroupwiseMetric]
) -> pl.DataFrame:
    """Results in which the disparity of a single group is undefined, and not that of equal groups."""
    is_single = pl.lit(value=False)
    for parity in parities:
        # the lowest value of a single group is its value
        if parity.aggregate.equality is not None and len(compared_groups(parity.by, results, groups)) == 1:
            is_single |= (pl.col(".metric") == parity.name) & (pl.col(".by") == parity.by.text)
    is_single &= pl.col(".estimate").is_not_null()
    status = pl.when(is_single).then(pl.lit(Status.TOO_FEW_GROUPS.value)).otherwise(".status").alias(".status")
    hidden = (".estimate", ".group_min", ".group_max", ".base_metric", ".level")
    ends = [pl.when(~is_single).then(name).alias(name) for name in hidden if name in results.columns]
    return results.with_columns(status, *ends)


def with_small_groups(groups: pl.DataFrame, results: pl.DataFrame) -> pl.DataFrame:
    """Values of groups, whose status says where a disparity leaves the group out because too few rows count."""
    keys = [*key_columns(groups), ".by", *(name for name in CUTS if name in groups.columns)]
    of_group = [".group", ".metric", ".level"]
    entries = results.drop_nulls(".by").select(*keys, ".left_out").explode(".left_out")
    fields = [pl.col(".left_out").struct.field(name[1:]).alias(name) for name in of_group]
    small = entries.select(*keys, *fields, pl.col(".left_out").struct.field("status").alias(_SMALL))
    small = small.filter(pl.col(_SMALL).is_in([Status.BELOW_MIN_N.value, Status.BELOW_MIN_SHARE.value]))
    small = small.unique([*keys, *of_group])
    marked = groups.join(small, on=[*keys, *of_group], how="left", nulls_equal=True, maintain_order="left")
    status = pl.when(pl.col(".status") == Status.OK.value).then(pl.coalesce(_SMALL, ".status")).otherwise(".status")
    return marked.with_columns(status.alias(".status")).drop(_SMALL)


def _tested(
    parities: Sequence[GroupwiseMetric],
    tally: Tally,
    reading: Mapping[str, Any],
    draws: int,
    compared: AbstractSet[tuple[str, str]],
) -> pl.DataFrame | None:
    """The permutation tests of disparities, for metrics where they are exact."""
    rates: list[GroupwiseMetric] = []
    for parity in parities:
        aggregate = parity.aggregate
        has_test = parity.kind == "class" and aggregate.equality is not None and not aggregate.direction_is_unknown
        if has_test and (parity.name, parity.by.text) in compared:
            rates.append(parity)
    if not rates:
        return None
    return disparity_test(*rates, times=draws, adjust="none").compute(tally, **options_of_tests(reading))


def _by_key(tested: pl.DataFrame, column: str) -> dict[RowKey, float]:
    """The values of a column of tests, where there are any, by disparity."""
    known = tested.drop_nulls(column)
    return dict(zip(keys_of(known), known[column], strict=True))


def _adjusted(tested: pl.DataFrame, others: int) -> pl.DataFrame:
    """The tests with p-values adjusted for their number and that of others, which come last."""
    p_values = tested[".p_value"].drop_nulls().to_numpy()
    holm = adjusted(np.concatenate([p_values, np.ones(others)]), "holm")[: len(p_values)]
    column = pl.Series(".p_adjusted", [None], dtype=pl.Float64).new_from_index(0, len(tested))
    return tested.with_columns(column.scatter(tested[".p_value"].is_not_null().arg_true(), holm))


def _clear(results: pl.DataFrame, disparities: Mapping[RowKey, GroupwiseMetric]) -> dict[RowKey, GroupwiseMetric]:
    """Those of some disparities whose interval leaves out equality, at each time or quantile level."""
    ends = dict(zip(keys_of(results), results.select(".lower", ".upper").rows(), strict=True))
    clear: dict[RowKey, GroupwiseMetric] = {}
    for key, disparity in disparities.items():
        equality = disparity.aggregate.equality
        lower, upper = ends.get(key, (None, None))
        if equality is None:
            continue
        if (lower is not None and lower > equality) or (upper is not None and upper < equality):
            clear[key] = disparity
    return clear

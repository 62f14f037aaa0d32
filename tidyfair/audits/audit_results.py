"""The results of an audit, and what they say of groups: one policy for pages and the command line.

Groups differ, they are alike within a margin, or there are too few rows to tell. A disparity of rates is tested by
permutation, all others by their interval, and both are adjusted by Holm's method for the number of disparities in the
audit. Groups are alike where the whole interval of their disparity is within the margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set as AbstractSet
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import polars as pl

from tidyfair.audits.evidence_files import Arguments, StoredCounts, write_evidence_of
from tidyfair.audits.usual_metrics import UsualMetrics
from tidyfair.calling import GroupwiseMetric, Metric, metric_set
from tidyfair.errors import Status, without_notices
from tidyfair.inference.gates import Gate
from tidyfair.inference.testing import disparity_test
from tidyfair.intervals import adjusted, share_of
from tidyfair.specs import (
    CUTS,
    SELECTIONS,
    By,
    Contrast,
    Options,
    Policy,
    ReadOptions,
    RowKey,
    key_columns,
    key_of,
    keys_of,
    number,
    with_event,
)
from tidyfair.tallies import Tally

Answer: TypeAlias = Literal["differ", "too few rows to tell", "not shown to differ", "alike"]
"""Answers to whether groups differ, the one that matters most first.

Without a margin nothing is alike, and what is not shown to differ stays open.
"""
ALIKE_WITHIN = 0.05
"""The margin of audits unless told otherwise: shares of groups that are five points apart, or less, count as alike."""
_TEST_OPTIONS = {"pos_label", "labels", "na_rm"}
"""The options that tests take; they decide the others for themselves."""
_MOST_DRAWS, _FEWEST_DRAWS, _DRAWN = 10_000, 1_000, 500_000
"""The most and the fewest draws of a test, and the counts of groups that all of them may have together."""
_SMALL = "\0small"
"""The internal column of the reason why a small group is left out."""
_UNTESTED = {"frequency_weights", "cluster", "score_bins", "keep_rows"}
"""Options with which rows are not exchangeable, so that there is no exact test."""


@dataclass(frozen=True)
class AuditResults:
    """The results of an audit, which pages, the command line and MLflow show."""

    metrics: UsualMetrics
    tally: Tally
    reading: Mapping[str, Any]
    """The options by which the tally is read."""
    counting: Mapping[str, Any]
    """The options by which rows were counted."""
    simultaneous: bool = False
    """True if the intervals of groups hold for all groups at once."""
    margin: float | None = None
    """The margin within which groups count as alike, in the unit of the metric; None for the default of shares."""

    @classmethod
    def of(
        cls, metrics: UsualMetrics, data: Any, truth: Any, estimate: Any, options: Mapping[str, Any],
        gate: Gate | None = None, *, margin: float | None = None, counts: StoredCounts | None = None,
    ) -> AuditResults:  # fmt: skip
        """Count the rows that metrics and a gate read, with the options of a call; of evidence, its `counts`."""
        reading: dict[str, Any] = {"interval": "auto", "on_undefined": "ignore"}
        counting: dict[str, Any] = {}
        for name, value in options.items():
            step = reading if name in ReadOptions.__annotations__ else counting
            step[name] = value
        if "threshold" in counting:
            counting["threshold"] = with_event(counting["threshold"], reading.get("pos_label"))
        if "cluster" not in counting:
            # intervals need to see how much sums vary from part to part
            counting["parts"] = reading.get("seed", 0)
        if margin is not None:
            shares = any(all(map(is_percent, parity.metrics)) for parity in metrics.parities)
            margin = number("margin", margin, 0, 1 if shares else math.inf, inside=True)
        every = metrics.everything(*(gate.metrics if gate else ()))
        counted = every.tally(data, truth, estimate, **counting)
        counted.check_all_rows_are_shown()
        if counts is not None:
            counted = counts.tally(counted, every)
        return cls(metrics, counted, reading, counting, margin=margin)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.tally.row_count

    @cached_property
    def options(self) -> Options:
        """The options by which the tally is read."""
        return Options(**self.reading)

    @cached_property
    def policy(self) -> Policy:
        """The groups that are compared."""
        return self.metrics.bys[0].policy

    @property
    def level(self) -> float | None:
        """The confidence level of intervals; None where none are asked for."""
        return self.options.conf_level if self.options.interval else None

    @cached_property
    def results(self) -> pl.DataFrame:
        """Metrics of all rows and disparities, with their intervals."""
        return _at_all_cuts(self._own_results)

    @cached_property
    def groups(self) -> pl.DataFrame:
        """Values of groups, with their intervals; unknown groups are compared with none, and have none."""
        return _at_all_cuts(self._own_groups)

    @cached_property
    def groups_with_unknown(self) -> pl.DataFrame:
        """Values of groups, with those of unknown groups."""
        return _at_all_cuts(self.metrics.with_values_of_unknown(self._own_groups, self.tally, **self._reading_groups))

    @cached_property
    def compared_results(self) -> pl.DataFrame:
        """The results, in which the disparity of a single group is undefined, and not that of equal groups."""
        is_single = pl.lit(value=False)
        for parity in self.metrics.parities:
            # the lowest value of a single group is its value
            if parity.aggregate.equality is not None and len(self.compared_groups(parity.by)) == 1:
                is_single |= (pl.col(".metric") == parity.name) & (pl.col(".by") == parity.by.text)
        is_single &= pl.col(".estimate").is_not_null()
        status = pl.when(is_single).then(pl.lit(Status.TOO_FEW_GROUPS.value)).otherwise(".status").alias(".status")
        hidden = (".estimate", ".group_min", ".group_max", ".base_metric", ".level")
        ends = [pl.when(~is_single).then(name).alias(name) for name in hidden if name in self.results.columns]
        return self.results.with_columns(status, *ends)

    def compared_groups(self, by: By) -> list[str]:
        """The groups of a feature that any of its disparities is taken over."""
        is_known = (pl.col(".by") == by.text) & (pl.col(".status") != Status.UNKNOWN.value)
        names = self.groups.filter(is_known)[".group"].unique(maintain_order=True).to_list()
        if by.sides:
            names = [name for name in names if name not in {"neither", "unknown"}]
        # those that are left out of some disparities are compared in the others
        lists = self.results.filter(pl.col(".by") == by.text)[".groups_left_out"].drop_nulls()
        left_out = [set[str](groups) for groups in lists]
        always_left_out = set[str].intersection(*left_out) if left_out else set[str]()
        return [name for name in names if name not in always_left_out]

    @cached_property
    def significance(self) -> Significance:
        """The significant disparities."""
        return Significance.of(self)

    def alike_within(self, parity: GroupwiseMetric) -> tuple[float, float] | None:
        """The values of a disparity that count as alike; None where no margin says so."""
        margin = self.margin
        if margin is None and all(map(is_percent, parity.metrics)):
            margin = ALIKE_WITHIN
        aggregate = parity.aggregate
        return aggregate.alike_within(margin) if margin is not None and isinstance(aggregate, Contrast) else None

    @property
    def margin_in_words(self) -> str:
        """The margin within which groups count as alike, with its source."""
        origin = "the default margin" if self.margin is None else "the margin of this audit"
        if any(all(map(is_percent, parity.metrics)) for parity in self.metrics.parities):
            margin = ALIKE_WITHIN if self.margin is None else self.margin
            return f"shares up to {margin * 100:g} points apart, {origin}"
        return "no margin is set" if self.margin is None else f"values up to {self.margin:,g} apart, {origin}"

    @cached_property
    def parity_of(self) -> dict[tuple[str, str], GroupwiseMetric]:
        """The disparities by their name and feature."""
        return {(parity.name, parity.by.text): parity for parity in self.metrics.parities}

    @cached_property
    def answers(self) -> dict[RowKey, Answer]:
        """The answer on each judged disparity (groups differ, are alike, or it is open), by the key of its row."""
        differ, answers = self.significance.outcomes, dict[RowKey, Answer]()
        for row in self.compared_results.iter_rows(named=True):
            key = key_of(row)
            if key not in differ:
                continue
            # an open end is beyond every margin
            lower, upper = (math.inf if row[end] is None else row[end] for end in (".lower", ".upper"))
            within = self.alike_within(self.parity_of[row[".metric"], row[".by"]])
            if within and within[0] <= lower and upper <= within[1] and lower < math.inf:
                answers[key] = "alike"
            else:
                unsure: Answer = "too few rows to tell" if within else "not shown to differ"
                answers[key] = "differ" if differ[key] else unsure
        return answers

    @property
    def draws_of_tests(self) -> int:
        """The number of draws of each test, fewer where there are many groups; 0 where no test is exact."""
        # rows count alike and have two labels
        is_plain = (
            self.tally.weights is None
            and self.tally.suppression is None
            and not self.tally.needs.numbers
            and _UNTESTED.isdisjoint(self.counting)
        )
        is_plain &= self.tally.cut is None or self.tally.cut.point is None
        if not is_plain or set(self.compared_results[".estimator"]) != {"binary"}:
            return 0
        most = self.groups.group_by(".metric", ".by").len()["len"].max()
        return max(_FEWEST_DRAWS, min(_MOST_DRAWS, _DRAWN // int(str(most or 1))))

    @property
    def reading_of_tests(self) -> dict[str, Any]:
        """The options of reading that tests take."""
        return {name: value for name, value in self.reading.items() if name in _TEST_OPTIONS}

    def verdicts(self, gate: Gate) -> pl.DataFrame:
        """The verdicts of a gate, which decides on its intervals itself."""
        reading = {name: value for name, value in self.reading.items() if name not in {"interval", "conf_level"}}
        return gate.compute(self.tally, **reading)

    def save_evidence(
        self, path: str | Path, data: Any, call: Arguments, gate: Gate | None = None, *, rows: bool = False
    ) -> None:
        """Write the results, and what they rest on, into a file that `verify_evidence` verifies.

        `call` has the arguments besides the data, and `rows` says whether values of rows may be written.
        """
        features = [by.features for by in self.metrics.bys if by.policy == self.policy]
        arguments = {
            "by": features,
            "groups": self.policy.stated,
            "metrics": self.metrics.results,
            "gate": settings_of_gate(gate),
        }
        write_evidence_of(path, {**arguments, **call}, data, results_of_metrics, keeps_rows=rows)

    @property
    def _reading_groups(self) -> dict[str, Any]:
        return {**self.reading, "simultaneous": True} if self.simultaneous else {**self.reading}

    @cached_property
    def _own_results(self) -> pl.DataFrame:
        return self.metrics.results.compute(self.tally, explain=True, **self.reading)

    @cached_property
    def _own_groups(self) -> pl.DataFrame:
        return with_small_groups(
            self.metrics.groups.compute_by_group(self.tally, **self._reading_groups), self._own_results
        )


def _at_all_cuts(values: pl.DataFrame) -> pl.DataFrame:
    """Values in which those that depend on no decision, such as areas, are repeated at each cut."""
    cut = next((name for name in SELECTIONS if name in values.columns), None)
    if cut is None:
        return values
    cuts = values[cut].unique().drop_nulls().sort()
    lists = pl.when(pl.col(cut).is_null()).then(pl.lit(cuts).implode()).otherwise(pl.concat_list(cut))
    return values.with_columns(lists.alias(cut)).explode(cut)


def settings_of_gate(gate: Gate | None) -> dict[str, Any] | None:
    """The settings of a gate, which may have several limits, for evidence."""
    return None if gate is None else {setting.name: getattr(gate, setting.name) for setting in fields(gate)}


def results_of_metrics(arguments: Arguments, data: Any, counts: StoredCounts) -> dict[str, pl.DataFrame]:
    """The results of metrics, the values of their groups, and the verdicts of a gate, for evidence."""
    call: dict[str, Any] = dict(arguments)
    metrics = call.pop("metrics", None)
    by, settings = call.pop("by", None), dict[str, Any](call.pop("gate", None) or {})
    judged = settings.pop("metrics", None)
    gate = None if judged is None else Gate(metric_set(judged), **settings)
    policy = Policy.of("evidence", **call.pop("groups", {}))
    shown = metric_set(cast("Any", metrics or judged))
    usual = UsualMetrics.of(by, "labels", metrics=shown, policy=policy) if by else UsualMetrics(shown, shown)
    truth, estimate = call.pop("truth", None), call.pop("estimate", None)
    audit = AuditResults.of(usual, data, truth, estimate, call, gate, counts=counts)
    results = {} if metrics is None else {"results": audit.results, "groups": audit.groups}
    return results if gate is None else {**results, "verdicts": audit.verdicts(gate)}


@dataclass(frozen=True)
class Significance:
    """The disparities that are judged, and those that are significant."""

    error: float
    """The probability of any significant disparity where groups are equal."""
    tested: pl.DataFrame | None
    """The tests of the disparities of rates, with p-values that are adjusted for all that are judged."""
    outcomes: Mapping[RowKey, bool]
    """True for each judged disparity that is significant, by the key of its row."""

    @classmethod
    def of(cls, audit: AuditResults) -> Significance:
        """Judge the disparities of an audit by their tests and intervals; none where no intervals are asked for."""
        error = 1 - audit.options.conf_level
        if audit.level is None:
            return cls(error, None, {})
        compared = audit.compared_results.filter(pl.col(".by").is_not_null() & pl.col(".estimate").is_not_null())
        tested = _tested(audit, set(compared.select(".metric", ".by").rows()))
        p_values = {} if tested is None else _by_key(tested, ".p_value")
        untested: dict[RowKey, GroupwiseMetric] = {}
        for key, row in zip(keys_of(compared), compared.iter_rows(named=True), strict=True):
            parity = audit.parity_of[row[".metric"], row[".by"]]
            is_bounded = parity.aggregate.equality is not None and (row[".lower"], row[".upper"]) != (None, None)
            if is_bounded and key not in p_values:
                untested[key] = parity
        outcomes = dict.fromkeys(untested, False)
        if tested is not None:
            # those without a test come last
            p_tested = tested[".p_value"].drop_nulls().to_numpy()
            holm = adjusted(np.concatenate([p_tested, np.ones(len(untested))]), "holm")[: len(p_tested)]
            column = pl.Series(".p_adjusted", [None], dtype=pl.Float64).new_from_index(0, len(tested))
            tested = tested.with_columns(column.scatter(tested[".p_value"].is_not_null().arg_true(), holm))
            outcomes |= {key: p_value < error for key, p_value in _by_key(tested, ".p_adjusted").items()}
        # what is not clear by itself is not clear at a stricter level either
        undecided: dict[RowKey, GroupwiseMetric] = _clear(compared, untested)
        clear = undecided
        while undecided and clear:
            remaining = sum(not is_significant for is_significant in outcomes.values())
            at_level = compared
            if remaining > 1:
                options: dict[str, Any] = {**audit.reading, "conf_level": 1 - error / remaining}
                # a disparity at several times is computed once for all of them
                at_level = metric_set(*dict.fromkeys(undecided.values())).compute(audit.tally, **options)
            clear = _clear(at_level, undecided)
            outcomes |= dict.fromkeys(clear, True)
            undecided = {key: parity for key, parity in undecided.items() if key not in clear}
        return cls(error, tested, outcomes)


def is_percent(metric: Metric) -> bool:
    """Check for values in percent: shares of rows, what is best at 1 and worst at 0, and scores less shares."""
    rulers = {("class", (0, 1), "maximize"), ("prob", (0, 1), "maximize"), ("prob", (-1, 1), "zero")}
    return (metric.kind, metric.range, metric.better) in rulers or share_of(metric.definition) is not None


def with_small_groups(groups: pl.DataFrame, results: pl.DataFrame) -> pl.DataFrame:
    """Values of groups, whose status says where a disparity leaves the group out because too few rows count."""
    keys = [*key_columns(groups), ".by", *(name for name in CUTS if name in groups.columns)]
    group_names = [".group", ".metric", ".level"]
    entries = results.drop_nulls(".by").select(*keys, ".left_out").explode(".left_out")
    fields = [pl.col(".left_out").struct.field(name[1:]).alias(name) for name in group_names]
    small = entries.select(*keys, *fields, pl.col(".left_out").struct.field("status").alias(_SMALL))
    small = small.filter(pl.col(_SMALL).is_in([Status.BELOW_MIN_N.value, Status.BELOW_MIN_SHARE.value]))
    small = small.unique([*keys, *group_names])
    marked = groups.join(small, on=[*keys, *group_names], how="left", nulls_equal=True, maintain_order="left")
    status = pl.when(pl.col(".status") == Status.OK.value).then(pl.coalesce(_SMALL, ".status")).otherwise(".status")
    return marked.with_columns(status.alias(".status")).drop(_SMALL)


def _tested(audit: AuditResults, compared: AbstractSet[tuple[str, str]]) -> pl.DataFrame | None:
    """The permutation tests of disparities, for metrics where they are exact."""
    rates: list[GroupwiseMetric] = []
    for name, parity in audit.parity_of.items():
        aggregate = parity.aggregate
        has_test = parity.kind == "class" and aggregate.equality is not None and not aggregate.direction_is_unknown
        if has_test and name in compared:
            rates.append(parity)
    if not rates or not audit.draws_of_tests:
        return None
    with without_notices():
        test = disparity_test(*rates, adjust="none")
        return test.compute(audit.tally, times=audit.draws_of_tests, **audit.reading_of_tests)


def _by_key(tested: pl.DataFrame, column: str) -> dict[RowKey, float]:
    """The values of a column of tests, where there are any, by disparity."""
    known = tested.drop_nulls(column)
    return dict(zip(keys_of(known), known[column], strict=True))


def _clear(results: pl.DataFrame, disparities: Mapping[RowKey, GroupwiseMetric]) -> dict[RowKey, GroupwiseMetric]:
    """Those of some disparities whose interval leaves out equality, at each time or quantile level."""
    ends = dict(zip(keys_of(results), results.select(".lower", ".upper").rows(), strict=True))
    clear: dict[RowKey, GroupwiseMetric] = {}
    for key, disparity in disparities.items():
        equality, (lower, upper) = disparity.aggregate.equality or 0.0, ends.get(key, (None, None))
        if (lower is not None and lower > equality) or (upper is not None and upper < equality):
            clear[key] = disparity
    return clear

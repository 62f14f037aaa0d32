"""Groups known as probabilities: the weighted estimator, and sharp bounds of the rates of groups and their disparities.

A proxy, such as surname and address, gives the probability of each group for rows with the same value, and the data
give the frequency of an outcome among these rows. Their group membership is unknown: within a value any number of
outcomes from `max(0, members + outcomes - rows)` to `min(members, outcomes)` may be those of members (Fréchet and
Hoeffding). Values are filled independently of each other, so that sums over them attain both ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import polars as pl

from tidyfair.calling import Metric
from tidyfair.errors import ArgumentError, ColumnError, ProxyWarning, Status, in_short, listed, warn
from tidyfair.evaluation import CELLS, Evaluated, KeyCodes, LabelCounts, slice_of
from tidyfair.inference.on_data import AUDITED, RateOnData, accepting
from tidyfair.inference.rate_tests import columns_of
from tidyfair.inference.result_frames import Content
from tidyfair.inference.testing import checked_rate
from tidyfair.intervals import Share, difference_limits, in_progress, share_of, wilson, z_value
from tidyfair.specs import (
    Array,
    Column,
    ColumnLike,
    Options,
    names_of,
    one_of,
    refuse_unknown_keywords,
    share_of_percent,
    text,
)
from tidyfair.specs.result_kinds import BOUNDS, ResultKind
from tidyfair.tallies import Source, Tally

__all__ = ["ProbabilisticGroups", "probabilistic_groups"]

_REFERENCES = ("rest", "overall", "majority")
_ROUNDED = 1e-6
"""The largest distance from 1 of the sum of the probabilities of a row."""
_FEW_ROWS = 10
"""With fewer rows for each value of the proxy, outcome rates are very uncertain."""
_HIT, _MISS, _OTHER = range(3)
"""The kinds of rows: in the numerator; only in the denominator; in neither."""
_UNSURE = 1.5
"""Standard errors within which the order of two shares is uncertain."""


@dataclass(frozen=True, repr=False)
class ProbabilisticGroups(RateOnData):
    """A rate of groups that are known as probabilities, as a callable on dataframes; see `probabilistic_groups`.

    It estimates and bounds the rates of groups and their disparities. Options: `probs`, one `threshold`, `group_by`,
    `case_weights`, `frequency_weights`, `pos_label`, `labels` and `conf_level`, as for a metric. Rows without a label
    that the metric reads are left out.

    Returns:
        One row for each group and outer group: the expected number of rows `.n_expected` (the sum of its
        probabilities); `.estimate`, with rows weighted by their probabilities; `.lower_bound` and `.upper_bound`, the
        smallest and the largest rate compatible with the data; `.lower` and `.upper`, limits that cover both bounds
        with `conf_level`. Then the same for the `.disparity`, the rate of the group minus that of the `.reference`;
        null for the reference itself. `.status` gives the reason for nulls.

    Warns:
        ProxyWarning: Always, because the weighted estimator has a bias that such data cannot reveal.
    """

    subject: ClassVar[str] = "probabilistic_groups()"
    kind: ClassVar[ResultKind] = BOUNDS
    accepted: ClassVar[type[Any]] = accepting(f"{AUDITED} case_weights frequency_weights conf_level")
    without: ClassVar[str] = ".limit .verdict"
    groups: tuple[str, ...]
    probabilities: tuple[Column, ...]
    """The column of each group."""
    to: str
    proxy: tuple[Column, ...]

    @property
    def _features(self) -> Iterable[Column]:
        return dict.fromkeys((*self.proxy, *self.probabilities))

    def _check_source(self, source: Source) -> None:
        for role, columns in (("groups", self.probabilities), ("proxy", self.proxy)):
            for column in columns:
                column.check(source.columns, role)
                if column in source.outer:
                    msg = f"`{role}`: the data are grouped by {column.name!r}; group by another column."
                    raise ColumnError(msg)

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        self._check_probabilities(tally)
        return super()._results(tally, options)

    def _tables(self, evaluated: Evaluated, options: Options) -> Iterable[Content]:
        outers, z = self._outcomes(evaluated), z_value(options.conf_level)
        self._warn(outers)
        return (self._table(outcomes, z) for outcomes in in_progress(outers, "bounding rates"))

    def _check_probabilities(self, tally: Tally) -> None:
        """Refuse columns that are not the probabilities of mutually exclusive and exhaustive groups."""
        names = tally.names(self.probabilities)
        for column, values in zip(self.probabilities, tally.cells.select(names), strict=True):
            name = column.name
            if not (values.dtype.is_numeric() or isinstance(values.dtype, pl.Boolean | pl.Null)):
                msg = (
                    f"`groups`: the column {name!r} is {values.dtype}, not numeric; give columns of probabilities. For "
                    "known groups use a groupwise metric."
                )
                raise ColumnError(msg)
            if values.null_count():
                msg = (
                    f"`groups`: some values of {name!r} are missing. Leave these rows out, or fill in the shares of "
                    "the groups among all rows with `.fill_null(…)`."
                )
                raise ColumnError(msg)
            low, high = _ends(values.cast(pl.Float64).to_numpy())
            if low < 0 or high > 1:
                hint = "; divide percent by 100" if low >= 0 and share_of_percent(high) else ""
                msg = (
                    f"`groups`: {name!r} holds values from {low:g} to {high:g}, but probabilities must lie between 0 "
                    f"and 1{hint}."
                )
                raise ColumnError(msg)
        total = pl.sum_horizontal(pl.col(names).cast(pl.Float64))
        low, high = _ends(tally.cells.select(total).to_series().to_numpy())
        if max(1 - low, high - 1) > _ROUNDED:
            msg = (
                f"`groups`: the row sums of {listed(names_of(self.probabilities))} range from {low:.6g} to "
                f"{high:.6g}, but must be 1. Add the missing groups, for example as one group for all others, or "
                "divide by the sum, as in `(pl.col(…) / pl.sum_horizontal(…)).alias(…)`."
            )
            raise ColumnError(msg)

    def _outcomes(self, evaluated: Evaluated) -> list[_Outcomes]:
        """The outcomes in each outer group."""
        by, group_cells = self._compared.by, evaluated.group_cells
        index, cells = group_cells.indices[by], evaluated.evaluator.cells
        event = evaluated.labels.event
        levels = [0 if event is None else event]  # without labels there are no rows that count
        counts = LabelCounts(cells.truth, cells.estimate, index.of_cell, len(index), levels, cells.complete)
        kinds = self._kinds_of_cells()
        measures = np.zeros((3, 3, len(index)))
        for measure, name in zip(measures, ("n", "w", "w2"), strict=True):
            for cell, (counts_of_event,) in counts.of(cells.measure(name)).items():
                if cell in kinds:
                    measure[kinds[cell]] += counts_of_event
        keys = self._keys(evaluated)
        members = keys.select(pl.col(names_of(self.probabilities)).cast(pl.Float64)).to_numpy()
        outer = group_cells.outer[slice_of(group_cells, by)]
        outers: list[_Outcomes] = []
        for number in range(len(group_cells.outer_keys)):
            known = np.flatnonzero((outer == number) & (measures[0].sum(axis=0) > 0))
            value = KeyCodes(keys[known]).index(names_of(self.proxy)).of_cell if self.proxy else np.arange(len(known))
            values = int(value.max(initial=-1)) + 1
            by_value = [[np.bincount(value, kind, values) for kind in measure[:, known]] for measure in measures]
            outers.append(_Outcomes(members[known], value, *measures[:2, :, known], *map(np.array, by_value)))
        return outers

    def _kinds_of_cells(self) -> dict[str, int]:
        """The kind of the rows in each cell of a table of labels; none of rows without a label that the rate reads."""
        share, reads = cast("Share", share_of(self.metric.definition)), self.metric.definition.reads
        kinds: dict[str, int] = {}
        for name, (truth, estimate) in CELLS.items():
            if not (("truth" in reads and truth is None) or ("estimate" in reads and estimate is None)):
                missed = _MISS if name in share.among else _OTHER
                kinds[name] = _HIT if name in share.holds else missed
        return kinds

    def _warn(self, outers: Sequence[_Outcomes]) -> None:
        """Warn of the bias of the weighted estimator and, with few rows for each value of the proxy, of the bounds."""
        message = (
            f"`.estimate` weights rows by {listed(names_of(self.probabilities))}, which is unbiased only if members "
            "and non-members of a group with the same probabilities have equal outcome rates. Its bias is the "
            "covariance of outcome and membership among such rows, which these data cannot reveal (Chen et al., "
            "2019, Fairness under unawareness). Report `.lower_bound` and `.upper_bound`, which hold in any case."
        )
        rows = sum(outcomes.rows.sum() for outcomes in outers)
        values = sum(len(outcomes.total) for outcomes in outers)
        if rows < _FEW_ROWS * values:
            of = listed(names_of(self.proxy)) if self.proxy else "the probabilities"
            message += (
                f" The {rows:.0f} rows have {values} values of {of}, so few rows share a value, and the bounds are "
                "too narrow (`.lower` and `.upper` allow for this). Give coarser columns as `proxy=`."
            )
        warn(message, ProxyWarning)

    def _table(self, outcomes: _Outcomes, z: float) -> list[dict[str, Any]]:
        """The row of each group."""
        expected = outcomes.known_rows.sum(axis=0) @ outcomes.probabilities
        members, everybody = outcomes.probabilities.T, np.ones(len(outcomes.value))
        rates = {group: outcomes.rate(shares) for group, shares in zip(self.groups, members, strict=True)}
        reference = self.groups[int(expected.argmax())] if self.to == "majority" else self.to
        others = [rates.get(reference)] * len(members)
        if reference == "overall":
            others = [outcomes.rate(everybody)] * len(members)
        elif reference == "rest":
            others = [outcomes.rate(everybody - shares) for shares in members]
        rows: list[dict[str, Any]] = []
        groups = list(zip(rates.items(), others, expected, strict=True))
        for (group, rate), other, size in in_progress(groups, "bounding rates"):
            row: dict[str, Any] = {
                ".metric": self.metric.name, ".group": group, ".n_expected": size, ".reference": reference,
                ".status": Status.ZERO_DENOMINATOR,
            }  # fmt: skip
            if not math.isnan(rate.estimate):
                lowest, highest = rate.lowest, rate.highest
                row |= {
                    ".estimate": rate.estimate, ".lower_bound": lowest.bound, ".upper_bound": highest.bound,
                    ".lower": max(0.0, min(lowest.bound, float(lowest.limits(z)[0]))),
                    ".upper": min(1.0, max(highest.bound, float(highest.limits(z)[1]))),
                    ".status": Status.OK,
                }  # fmt: skip
                if other is not None and group != reference:
                    row |= rate.less(other, z)
            rows.append(row)
        return rows


def _ends(probabilities: Array) -> tuple[float, float]:
    """The least and the largest probability; 1 without rows."""
    numbers = probabilities if len(probabilities) else np.ones(1)
    return float(numbers.min()), float(numbers.max())


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """The rows of an outer group, counted by what is known of them: the proxy, or more than that."""

    probabilities: Array
    """The probabilities of groups: an array of what is known by groups."""
    value: Array
    """The value of the proxy."""
    known_rows: Array
    """Numbers of rows: kinds by what is known."""
    known_weights: Array
    rows: Array
    """Numbers of rows: kinds by values of the proxy."""
    weights: Array
    squares: Array
    """The sums of squared weights, as `weights` has those of weights."""

    @cached_property
    def total(self) -> Array:
        """The weight of all rows at each value."""
        return self.weights.sum(axis=0)

    def rate(self, members: Array) -> _Rate:
        """The rate of a group, whose probabilities are given."""
        hits, misses, _ = self.known_weights @ members
        size = np.bincount(self.value, self.known_weights.sum(axis=0) * members, len(self.total))
        estimate = hits / (hits + misses) if hits + misses > 0 else math.nan
        # the lowest rate leaves the highest rate of misses
        lowest = self.highest(size, hit=_MISS, miss=_HIT).complement()
        return _Rate(estimate, lowest, self.highest(size))

    @cached_property
    def share_of_others(self) -> Array:
        """The share of each kind among the rows other than one of a kind: kinds by kinds of that row by values."""
        row = _divided(self.weights, self.rows)
        # the row is missing among those of its kind
        others = self.weights[:, None] - row * np.eye(len(row))[:, :, None]
        known = (self.rows.sum(axis=0) > 1) & (self.total > row)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(known, others / (self.total - row), np.nan)

    def highest(self, members: Array, hit: int = _HIT, miss: int = _MISS) -> _End:
        """The highest rate that a group may have, with the most hits and the fewest misses.

        Both are possible at once: members fill the hits first, and the misses last.

        Args:
            members: The weight of the group's members at each value.
            hit: The kind of rows in the numerator.
            miss: The kind of rows that are in the denominator only.
        """
        most_hits = np.minimum(members, self.weights[hit]).sum()
        fewest_misses = np.maximum(members + self.weights[miss] - self.total, 0).sum()
        bound = math.nan
        if most_hits > 0:
            bound = most_hits / (most_hits + fewest_misses)
        elif np.minimum(members, self.weights[miss]).sum() > 0:
            bound = 0.0
        share = _divided(members, self.total).clip(0, 1)
        hits, misses = self._judged_by_others(share, hit, miss)
        size = (self.weights * (hits + misses)).sum()
        if not size > 0:
            # nothing speaks against the highest rate that there is
            return _End(bound, 1.0, np.zeros(hits.shape), self.squares, 1.0)
        center = (self.weights * hits).sum() / size
        influence = ((1 - center) * hits - center * misses) / size
        effective_rows = size**2 / (self.squares * (hits + misses) ** 2).sum()
        return _End(bound, float(center), influence, self.squares, float(effective_rows))

    def _judged_by_others(self, share: Array, hit: int, miss: int) -> tuple[Array, Array]:
        """Count a row of each kind and value for the most hits, and for the fewest misses, of a group with some share.

        A row counts as a member's hit by its share if members are fewer than hits, else by its outcome. The decision is
        based on the other rows of the value, with a mixture of both if these are inconclusive. A decision based on all
        rows would favor the smaller term by chance and make bounds too narrow; these are conservative. A value with a
        single row gives no information: its outcome may be that of a member or not.
        """
        is_hit, is_miss = (np.arange(len(self.weights))[:, None] == kind for kind in (hit, miss))
        error = np.sqrt(share * (1 - share) / np.maximum(self.rows.sum(axis=0) - 1, 1))

        def judged_fewer(other_share: Array) -> Array:
            """The degree of certainty that members are fewer than some of the other rows: 1 if certain."""
            distance = other_share - share
            with np.errstate(divide="ignore", invalid="ignore"):
                degree = (0.5 + distance / (2 * _UNSURE * error)).clip(0, 1)
            # of no other rows there is no share
            return np.where(np.isnan(distance), 1.0, np.where(error > 0, degree, distance >= 0))

        fewer_than_hits = judged_fewer(self.share_of_others[hit])
        fewer_than_others = judged_fewer(1 - self.share_of_others[miss])
        hits = fewer_than_hits * share + (1 - fewer_than_hits) * is_hit
        misses = (1 - fewer_than_others) * (share - 1 + is_miss)
        return hits, misses


def _divided(numerator: Array, denominator: Array) -> Array:
    """Quotients, 0 where the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, 0.0)


@dataclass(frozen=True, eq=False)
class _End:
    """The lowest or the highest rate that a group may have, and how sure it is."""

    bound: float
    """The rate of the observed rows."""
    center: float
    """The rate of the population from which the rows are sampled."""
    influence: Array
    """The contribution of a row of each kind and value to the center."""
    squares: Array
    """The sums of squared weights of these rows."""
    effective_rows: float

    def complement(self) -> _End:
        """The same end of the share of the others."""
        return replace(self, bound=1 - self.bound, center=1 - self.center, influence=-self.influence)

    @cached_property
    def variance(self) -> float:
        """The sampling variance of the center."""
        return float((self.squares * self.influence**2).sum())

    def limits(self, z: float) -> tuple[Array, Array]:
        """Wilson's limits of the center, with the rows that its variance is worth, and no narrower than normal ones.

        Ends are not shares of rows, so they may vary more than Wilson's limits allow for a share near 0 or 1.
        """
        share = min(max(self.center, 0.0), 1.0)
        is_varying = self.variance > 0 and 0 < share < 1
        rows = share * (1 - share) / self.variance if is_varying else self.effective_rows
        lower, upper = wilson(np.array(share), np.array(rows), z)
        reach = z * math.sqrt(self.variance)
        return np.fmin(lower, self.center - reach), np.fmax(upper, self.center + reach)

    def less(self, other: _End, z: float) -> tuple[float, float, float]:
        """The difference from the end of another group, and its limits; both ends share rows."""
        bound, variances, correlation = self.bound - other.bound, self.variance * other.variance, 0.0
        if variances > 0:
            correlation = float((self.squares * self.influence * other.influence).sum()) / math.sqrt(variances)
        one, another = np.array(self.center), np.array(other.center)
        limits = difference_limits(one, self.limits(z), another, other.limits(z), np.array(correlation))
        lower, upper = np.clip(limits, -1, 1)
        return bound, min(lower, bound), max(upper, bound)


@dataclass(frozen=True, eq=False)
class _Rate:
    """The rate of a group: its estimate, and the ends between which it lies."""

    estimate: float
    lowest: _End
    highest: _End

    def less(self, other: _Rate, z: float) -> dict[str, Any]:
        """The columns of the difference from the rate of another group.

        Opposite ends for two groups are possible simultaneously: one group fills first what the other fills last.
        """
        if math.isnan(other.estimate):
            return {".status": Status.NO_REFERENCE}
        low, lower, _ = self.lowest.less(other.highest, z)
        high, _, upper = self.highest.less(other.lowest, z)
        return {
            ".disparity": self.estimate - other.estimate, ".disparity_lower_bound": low,
            ".disparity_upper_bound": high, ".disparity_lower": lower, ".disparity_upper": upper,
        }  # fmt: skip


@refuse_unknown_keywords
def probabilistic_groups(
    metric: Metric, groups: Mapping[str, ColumnLike], *, to: str = "rest", proxy: Iterable[ColumnLike] | ColumnLike = ()
) -> ProbabilisticGroups:
    """Estimate and bound the rates of groups that are known only as probabilities, such as those of BISG.

    If race is not recorded, it is often predicted from surname and address. This gives the expected number of members,
    but not which outcomes are theirs, so a rate is only known up to a range (partial identification; Kallus, Mao and
    Zhou, 2022). The bounds are sharp: some assignment of members to rows comes arbitrarily close to each of them. The
    same holds for disparities, because opposite ends for a group and the reference are possible simultaneously. The
    bounds are valid if the probabilities equal the shares of groups among all people with the same value of the proxy.

    The proxy is the information from which the probabilities were derived. The more it predicts the outcome, the
    narrower the bounds, but each value needs many rows, because its outcome rate is estimated from them. `.lower` and
    `.upper` allow for this sampling error, but not for errors in the probabilities.

    Args:
        metric: A rate of labels, such as `selection_rate` or `sens`.
        groups: Mapping from groups to columns of their probabilities, which add up to 1 in each row.
        to: The reference of disparities: a group, `"rest"` (all others), `"overall"` (all rows) or `"majority"` (the
            group with the most expected rows).
        proxy: The columns from which the probabilities were derived; by default the probabilities themselves. If
            probabilities differ within a value of the proxy, their mean is used.

    >>> import warnings
    >>> from tidyfair.errors import ProxyWarning
    >>> from tidyfair import selection_rate
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0, 0, 1], "p": [0.75] * 4 + [0.25] * 4}).with_columns(
    ...     (1 - pl.col("p")).alias("q")
    ... )
    >>> rates = probabilistic_groups(selection_rate, {"a": "p", "b": "q"})
    >>> with warnings.catch_warnings(action="ignore", category=ProxyWarning):
    ...     table = rates(people, estimate="hired")
    >>> table.select(".group", ".n_expected", ".estimate", ".lower_bound", ".upper_bound").row(0)
    ('a', 4.0, 0.625, 0.5, 1.0)
    """
    name = "probabilistic_groups"
    rate = checked_rate(name, metric, ("class",))
    if share_of(rate.definition) is None:
        msg = f"{name}() takes a rate that is a share of rows, such as selection_rate or sens, not {rate.name}."
        raise ArgumentError(msg)
    if not isinstance(groups, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        example = '`{"White": "p_white", "Black": "p_black", …}`'
        msg = f"`groups` must map groups to columns of probabilities, such as {example}, not {in_short(groups)}."
        raise ArgumentError(msg)
    named = {text("groups", group): Column.of(column, "groups") for group, column in groups.items()}
    if len(named) < 2:
        msg = (
            f"`groups` must have two or more groups, not only {listed(named)}; add the complement as a group for all "
            "others."
        )
        raise ArgumentError(msg)
    names = names_of(named.values())
    twice = sorted({column for column in names if names.count(column) > 1})
    if twice:
        msg = f"`groups`: {listed(twice)} is used for several groups; each group needs a separate column."
        raise ArgumentError(msg)
    for group in named:
        if group in _REFERENCES:
            msg = f"`groups`: {group!r} is reserved for the reference `to={group!r}`; give the group another name."
            raise ArgumentError(msg)
    one_of("to", to, [*named, *_REFERENCES])
    columns = tuple(dict.fromkeys(columns_of(proxy, "proxy")))
    return ProbabilisticGroups(rate, tuple(named), tuple(named.values()), to, columns)

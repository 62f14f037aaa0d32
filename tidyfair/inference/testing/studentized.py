"""Statistics of permutation tests: the severity of a disparity, or the distance of groups in standard errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from tidyfair.evaluation import CELLS, GROUP_CELL, LEVEL, Evaluated, tidy_results
from tidyfair.inference.rate_tests import Case
from tidyfair.inference.result_frames import outer_keys_of
from tidyfair.inference.testing.permutation import VARIANT
from tidyfair.intervals import DRAW, odds_of, share_of
from tidyfair.specs import ONE_LABEL, Array, formulas_of
from tidyfair.tallies import LABELS

_RARER = 3
"""The factor by which the largest distance must be rarer than the sum of squares to count as much.

So three quarters of false rejections are left to the sum of squares, which loses 2 to 4 points of power beside the
chi-squared test where 20 to 200 groups differ a little, and the largest distance finds a single group of 20 that
differs in 68% of samples instead of 55%.
"""
_LEAST_VARIANCE = 1e-12
"""The least variance of a group, relative to the largest one."""
_NO_VARIANCE = 1e-300
"""The least variance where no group has one: the weights that are its inverses can still be summed."""
_ROUNDED = 1e-12
"""Distances from a mean that are smaller, relative to the mean, are rounding errors."""
_SAME = 1e-9
"""Statistics that differ by less are ties: the same counts, computed in another order."""
_NUMBER = "\0number"
_OUTER = "\0outer"
"""The number of an outer group, the draw being part of its key."""


class Families:
    """The families of values whose groups are compared, one for each metric, label and outer group."""

    def __init__(self, case: Case) -> None:
        evaluated, formulas = case.evaluated, formulas_of(case.metric)
        self.by, self.outer_keys, self.aggregate = case.metric.by, outer_keys_of(case.evaluated), case.metric.aggregate
        self.among = _odds_among(case)
        """The labels, true and predicted, of the rows that are shuffled, if not of all."""
        compares = any(formula.compares or formula.beyond for formula in formulas)
        self.is_exact = compares or self.among is not None
        """True where the disparity itself is tested: of odds, and of values that compare a group with others."""
        self.reads_sums = not any(formula.is_of_rows for formula in formulas)
        """True where all formulas read sums only, so that parts of the rows are left out of these."""
        are_independent = not case.tally.clusters and set(evaluated.rows["estimator"]) <= set(ONE_LABEL)
        self.has_variance = are_independent and all(formula.spreads or share_of(formula) for formula in formulas)
        """True where all formulas give the variance of their values."""
        self.groups = evaluated.group_cells.keys[self.by].unique(maintain_order=True)
        """The keys of the groups."""
        rows = self._numbered(evaluated).filter(pl.col("estimate").is_not_null())
        if self.aggregate.compares_with_majority:
            largest = pl.col("size") == pl.col("size").max().over("outer", "name", LEVEL)
            rows = rows.with_columns(is_reference=largest)
        self.observed = rows.select("outer", "name", LEVEL, "group", "is_reference")
        """The groups that have a value, and whether they are the reference."""

    def _numbered(self, evaluated: Evaluated) -> pl.DataFrame:
        """The values with the number of their group."""
        # draws compare all groups that the observed data compare, whatever their policy says of sizes
        by = next(by for by in evaluated.group_cells.keys if by.columns == self.by.columns)
        first, keys = evaluated.group_cells.spans[by][0], evaluated.group_cells.keys[by]
        # tallies of other keys name them otherwise
        groups = self.groups.rename(dict(zip(self.groups.columns, keys.columns, strict=True)))
        numbered = groups.with_row_index(_NUMBER)
        joined = keys.join(numbered, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")
        numbers = joined[_NUMBER].cast(pl.Int64).alias("group")
        return evaluated.rows.with_columns(numbers[evaluated.rows[GROUP_CELL] - first])

    def statistics_of_draws(self, evaluated: Evaluated) -> tuple[list[Array], list[Array]]:
        """The disparity of each draw, and its severity, for each outer group.

        The outer groups of draws have the numbers of the draw and of its variant as keys too, so that an outer group of
        the data is many of theirs.
        """
        drawn_keys = evaluated.group_cells.outer_keys
        draw, variant = drawn_keys[DRAW].to_numpy(), drawn_keys[VARIANT].to_numpy()
        draw = draw - draw.min()
        names, observed_outer = self.outer_keys.columns, np.zeros(len(drawn_keys), dtype=np.int64)
        if names:
            numbers = self.outer_keys.with_row_index(_OUTER)
            joined = drawn_keys.select(names).join(
                numbers, on=names, how="left", nulls_equal=True, maintain_order="left"
            )  # fmt: skip
            observed_outer = joined[_OUTER].cast(pl.Int64).to_numpy()
        rows = self._numbered(evaluated).drop("is_reference").rename({"outer": _OUTER})
        drawn_outer = rows[_OUTER].to_numpy()
        rows = rows.with_columns(
            pl.Series("outer", observed_outer[drawn_outer]),
            pl.Series(DRAW, draw[drawn_outer]),
            pl.Series(VARIANT, variant[drawn_outer]),
        )
        # groups that are left out stay so
        rows = rows.join(self.observed, on=["outer", "name", LEVEL, "group"], how="inner", maintain_order="left")
        as_drawn = rows.filter(pl.col(VARIANT) == 0).drop("outer", DRAW, VARIANT).rename({_OUTER: "outer"})
        disparities = tidy_results(evaluated.with_rows(as_drawn), undefined_is_null=False)[".estimate"]
        shape = (int(draw.max()) + 1, int(variant.max()) + 1, len(self.groups))
        values: list[Array] = []
        severities: list[Array] = []
        for outer in range(len(self.outer_keys) if names else 1):
            disparities_of_outer = disparities.filter(pl.Series((observed_outer == outer) & (variant == 0)))
            value = disparities_of_outer.cast(pl.Float64).fill_null(np.nan).to_numpy()
            values.append(value)
            if self.is_exact:
                severities.append(self.aggregate.severity(value))
            else:
                severities.append(self._distances(rows.filter(outer=outer), shape))
        return values, severities

    @staticmethod
    def _distances(rows: pl.DataFrame, shape: tuple[int, int, int]) -> Array:
        """The distances of groups in all families, for each draw of an outer group."""
        in_all = np.zeros((shape[0], 2))
        for _, family in rows.group_by("name", LEVEL, maintain_order=True):
            table = np.full(shape, np.nan)
            draw, variant = family[DRAW].to_numpy(), family[VARIANT].to_numpy()
            group, estimate = family["group"].to_numpy(), family["estimate"].to_numpy()
            table[draw, variant, group] = estimate
            value, spread = table[:, 0], np.nansum((table[:, 1:] - table[:, :1]) ** 2, axis=1)
            if "variance" in family.columns and family["variance"].is_not_null().any():
                spread[draw, group] = family["variance"].to_numpy()
            elif "effective" in family.columns:
                # a rate with weights; half a row more, so that 0 and 1 of few rows have a variance
                size = family["effective"].to_numpy()
                middle = (estimate * size + 0.5) / (size + 1)
                spread[draw, group] = middle * (1 - middle) / size
            reference = family.filter("is_reference")["group"].unique().to_list()
            in_all = all_distances(in_all, distances(value, spread, reference))
        return in_all


def _odds_among(case: Case) -> pl.DataFrame | None:
    """The labels of the rows of a metric of odds, such as the errors; None for any other metric."""
    labels, tally = case.evaluated.labels, case.tally
    shares = set(map(odds_of, formulas_of(case.evaluated.specs[0])))
    share = shares.pop() if len(shares) == 1 else None
    if share is None or labels.event is None or tally.weights is not None or tally.clusters:
        return None
    cells = {CELLS[name] for name in share.among}
    # null labels stay null
    is_event = labels.encode(tally).select(pl.col(LABELS) == labels.event)
    is_among = [cell in cells for cell in is_event.rows()]
    return tally.cells.filter(pl.Series(is_among, dtype=pl.Boolean)).select(LABELS).unique()


def rate_distances(hits: Array, rows: Array, share: Array | float, reference: Sequence[int]) -> Array:
    """The distances of groups' rates in each draw, if `share` is the rate of all groups; as those of values."""
    # an empty group has no distance to others
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.reshape(share * (1 - share), (-1, 1)) / rows
        return distances(hits / rows, variance, reference)


def distances(value: Array, variance: Array, reference: Sequence[int]) -> Array:
    """The distances of groups in each draw, in standard errors, in all and the largest one: draws by two columns.

    Of each group from all others together; the root of the sum of squares is that of the Wald statistic of equality,
    which for rates is Pearson's chi-squared. With a reference, of each group from it. The variance of a group may be
    one number for all draws. A group without a value has no distance.
    """
    if reference:
        with np.errstate(divide="ignore", invalid="ignore"):
            from_each = [(value - value[:, [one]]) ** 2 / (variance + variance[:, [one]]) for one in reference]
        squares = np.concatenate(from_each, axis=1)
        squares = np.where(np.isnan(squares), 0.0, squares)
        return np.sqrt(np.stack([squares.sum(axis=1), squares.max(axis=1, initial=0)], axis=1))
    has_value = np.isfinite(value) & np.isfinite(variance)
    known = np.where(has_value, variance, 0.0)
    # values that do not vary are nearly certain
    least = np.maximum(_LEAST_VARIANCE * known.max(axis=1, keepdims=True, initial=0), _NO_VARIANCE)
    weight = has_value / np.maximum(known, least)
    value = np.where(has_value, value, 0.0)
    total = weight.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = (weight * value).sum(axis=1, keepdims=True) / total
        away = value - mean
        # the mean of equal values is rounded
        squares = weight * np.where(np.abs(away) <= _ROUNDED * np.abs(mean), 0.0, away) ** 2
        from_others = np.where(weight < total, squares * total / (total - weight), 0.0)
    return np.sqrt(np.stack([squares.sum(axis=1), from_others.max(axis=1, initial=0)], axis=1))


def all_distances(one: Array, other: Array) -> Array:
    """The distances of two families of groups taken together."""
    return np.stack([np.hypot(one[:, 0], other[:, 0]), np.fmax(one[:, 1], other[:, 1])], axis=1)


def joint_ranks(tested: Array, by_chance: Array) -> Array:
    """The rank of distances among those by chance: the smaller of the two, of which the largest one's counts more.

    Either distance finds what the other does not: the sum of squares many small ones, the largest a single one. So the
    less likely one counts (Tippett's combination; Pesarin and Salmaso, 2010), and draws by chance show how often it is
    as unlikely.
    """
    ranks: list[Array] = []
    for column in (0, 1):
        distance, rising = tested[:, column], np.sort(by_chance[:, column])
        ranks.append(len(rising) - np.searchsorted(rising, distance - slack(distance)))
    return np.minimum(ranks[0], _RARER * ranks[1])


def slack(values: Array) -> Array:
    """The distance up to which other values are ties: differences of small numbers are small, too."""
    size = np.abs(np.where(np.isfinite(values), values, 0))
    return _SAME * np.maximum(min(1, size.max(initial=0)), size)


def joint_distances(drawn: Array) -> Array:
    """The part of the observed distances, the last ones, that is as unlikely as those of each draw."""
    in_all, largest = drawn[-1]
    if not in_all:
        return drawn[:, 0]
    ranks, falling = joint_ranks(drawn, drawn), np.sort(drawn, axis=0)[::-1]
    as_unlikely = falling[ranks - 1, 0], falling[-(-ranks // _RARER) - 1, 1]
    ratios: list[Array] = []
    for distance, observed in zip(as_unlikely, (in_all, largest), strict=True):
        # infinite distances are equal, too
        with np.errstate(invalid="ignore"):
            ratios.append(np.where(distance == observed, 1.0, distance / observed))
    return np.minimum(*ratios)


def farthest(value: Array, variance: Array, reference: list[int]) -> Array:
    """The largest distance of two groups of each draw, or of one from the reference, in standard errors.

    The variance of a group may be one number for all draws.
    """
    # groups are compared one by one, so that the draws of each lie together
    value, variance, largest = np.asfortranarray(value), np.asfortranarray(variance), np.zeros(len(value))
    for one in reference or range(value.shape[1]):
        others = slice(0 if reference else one + 1, None)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.abs(value[:, others] - value[:, [one]]) / np.sqrt(variance[:, others] + variance[:, [one]])
        if distance.shape[1]:
            np.fmax(largest, np.fmax.reduce(distance, axis=1), out=largest)
    return largest

"""What shuffled groups are compared by: how bad a disparity is, or how far groups are apart in standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.evaluation.results import tidy_results
from tidyfair.evaluation.statistics import CELLS, GROUP_CELL, LEVEL, ONE_LABEL
from tidyfair.inference.permutation import VARIANT
from tidyfair.intervals.analytic import odds_of, share_of
from tidyfair.intervals.resampling import DRAW
from tidyfair.tallies.tally import LABELS

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.inference.rate_tests import Case
    from tidyfair.specs.groups import By
    from tidyfair.specs.metric_specs import MetricSpec

    Array: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

_PLACE = "\0place"


@dataclass(frozen=True, eq=False)
class Families:
    """The values whose groups are compared: of each metric and label, and of which groups in each outer group."""

    spec: MetricSpec
    by: By
    outer_keys: pl.DataFrame
    clustered: bool
    among: pl.DataFrame | None
    """The labels, true and predicted, of the rows that are shuffled, if not of all."""
    groups: pl.DataFrame
    """The keys of the groups."""
    there: pl.DataFrame
    """The groups that have a value: `outer`, `name`, `level` and `group`, and whether they are the reference."""

    @classmethod
    def of(cls, case: Case) -> Families:
        evaluated, by = case.evaluated, case.metric.by
        groups = _renamed(evaluated.group_cells.keys[by]).unique(maintain_order=True)
        (spec,) = evaluated.specs
        known = cls(spec, by, case.outer_keys, bool(case.tally.clusters), _odds_among(case), groups, pl.DataFrame())
        rows = known.numbered(evaluated).filter(pl.col("estimate").is_not_null())
        if spec.aggregate is not None and spec.aggregate.compares_with_majority:
            largest = pl.col("size") == pl.col("size").max().over("outer", "name", LEVEL)
            rows = rows.with_columns(is_reference=largest)
        return replace(known, there=rows.select("outer", "name", LEVEL, "group", "is_reference"))

    @property
    def is_exact(self) -> bool:
        """Whether the disparity itself is tested: of odds, and of values that compare a group with the others."""
        compared = any(formula.compares or formula.beyond for _, formula in self.spec.formulas)
        return compared or self.among is not None

    @property
    def of_sums(self) -> bool:
        """Whether sums are all that is read, so that parts of the rows are left out of these."""
        return all(formula.way == "sums" for _, formula in self.spec.formulas)

    def has_variance(self, evaluated: Evaluated) -> bool:
        """Whether formulas say themselves how sure values are, of rows that know nothing of each other."""
        said = all(formula.deviations or share_of(formula) for _, formula in self.spec.formulas)
        return said and set(evaluated.rows["estimator"]) <= set(ONE_LABEL) and not self.clustered

    def numbered(self, evaluated: Evaluated) -> pl.DataFrame:
        """The values with the number of their group."""
        first, keys = evaluated.group_cells.spans[self.by][0], _renamed(evaluated.group_cells.keys[self.by])
        numbers = keys.join(
            self.groups.with_row_index("group"), on=keys.columns, how="left", nulls_equal=True, maintain_order="left"
        )["group"].cast(pl.Int64)
        return evaluated.rows.with_columns(numbers[evaluated.rows[GROUP_CELL] - first])

    def of_draws(self, evaluated: Evaluated) -> tuple[list[Array], list[Array]]:
        """For each outer group the disparity of each draw, and how bad it is."""
        import numpy as np

        aggregate = self.spec.aggregate
        of_outer = evaluated.group_cells.outer_keys
        place = self._places(of_outer)
        draw, variant = (of_outer[name].to_numpy() for name in (DRAW, VARIANT))
        draw = draw - draw.min()
        rows = self.numbered(evaluated).drop("is_reference").with_columns(pl.col("outer").alias(_PLACE))
        rows = rows.with_columns(pl.Series("outer", place[rows["outer"].to_numpy()]))
        # groups that are left out stay so
        rows = rows.join(self.there, on=["outer", "name", LEVEL, "group"], how="inner", maintain_order="left")
        at = rows[_PLACE].to_numpy()
        as_drawn = rows.drop("outer").rename({_PLACE: "outer"}).filter(pl.Series(variant[at] == 0))
        disparities = tidy_results(evaluated.with_rows(as_drawn), undefined_is_null=False)[".estimate"]
        rows = rows.with_columns(pl.Series(DRAW, draw[at]), pl.Series(VARIANT, variant[at]))
        values: list[Array] = []
        bad: list[Array] = []
        for outer in range(len(self.outer_keys) if self.outer_keys.width else 1):
            value = disparities.filter(pl.Series((place == outer) & (variant == 0)))
            values.append(value.to_numpy().astype(float))
            if self.is_exact and aggregate is not None:
                bad.append(aggregate.severity(value.cast(pl.Float64).fill_null(np.nan).to_numpy()))
            else:
                shape = (int(draw.max()) + 1, int(variant.max()) + 1, len(self.groups))
                bad.append(self._distances(rows.filter(outer=outer), shape))
        return values, bad

    def _places(self, of_outer: pl.DataFrame) -> Array:
        """The place of the outer group that each outer group of draws is one of."""
        import numpy as np

        names = self.outer_keys.columns
        if not names:
            return np.zeros(len(of_outer), dtype=np.int64)
        numbers = self.outer_keys.with_row_index(_PLACE)
        found = of_outer.select(names).join(numbers, on=names, how="left", nulls_equal=True, maintain_order="left")
        return found[_PLACE].cast(pl.Int64).to_numpy()

    @staticmethod
    def _distances(rows: pl.DataFrame, shape: tuple[int, int, int]) -> Array:
        """The largest distance of groups in any family, for each draw of an outer group."""
        import numpy as np

        largest = np.zeros(shape[0])
        for _, family in rows.group_by("name", LEVEL, maintain_order=True):
            table = np.full(shape, np.nan)
            draw, variant, group = (family[name].to_numpy() for name in (DRAW, VARIANT, "group"))
            table[draw, variant, group] = family["estimate"].to_numpy()
            value, spread = table[:, 0], np.nansum((table[:, 1:] - table[:, :1]) ** 2, axis=1)
            if "variance" in family.columns:
                spread[draw, group] = family["variance"].to_numpy()
            elif "effective" in family.columns:
                # of a share with weights; none and all of few rows are not sure either
                share, size = (family[name].to_numpy() for name in ("estimate", "effective"))
                middle = (share * size + 0.5) / (size + 1)
                spread[draw, group] = middle * (1 - middle) / size
            reference = family.filter("is_reference")["group"].unique().to_list()
            np.fmax(largest, farthest(value, spread, reference), out=largest)
        return largest


def _odds_among(case: Case) -> pl.DataFrame | None:
    """The labels of rows among which a metric is about odds, such as the errors; None if it is about something else."""
    labels, tally = case.evaluated.labels, case.tally
    shares = {odds_of(formula) for _, formula in case.evaluated.specs[0].formulas}
    (share,) = shares if len(shares) == 1 else (None,)
    if share is None or labels.event is None or tally.weights is not None or tally.clusters:
        return None
    names = {CELLS[name] for name in share.among}
    codes = labels.encode(tally)
    there = [
        (None if truth is None else truth == labels.event, None if guess is None else guess == labels.event) in names
        for truth, guess in codes.select(LABELS).rows()
    ]
    return tally.cells.filter(pl.Series(there, dtype=pl.Boolean)).select(LABELS).unique()


def _renamed(keys: pl.DataFrame) -> pl.DataFrame:
    """Keys of groups under names by their place, which tallies of other keys have too."""
    return keys.rename({name: f"g{place}" for place, name in enumerate(keys.columns)})


def farthest(value: Array, variance: Array, reference: list[int]) -> Array:
    """How far the farthest two groups of each draw are apart, or one from the reference, in standard errors.

    The variance of each group may be one for all draws.
    """
    import numpy as np

    # groups are compared one by one, so that the draws of each lie together
    value, variance, largest = np.asfortranarray(value), np.asfortranarray(variance), np.zeros(len(value))
    for one in reference or range(value.shape[1]):
        others = slice(0 if reference else one + 1, None)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.abs(value[:, others] - value[:, [one]]) / np.sqrt(variance[:, others] + variance[:, [one]])
        if distance.shape[1]:
            np.fmax(largest, np.fmax.reduce(distance, axis=1), out=largest)
    return largest

"""From values to tidy frames: results, the values of groups, and what a reader should be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.disparities import compare
from tidyfair.evaluation.group_cells import UNGROUPED
from tidyfair.evaluation.states import DEFINED, NO_LEVEL, PART, VALUED
from tidyfair.evaluation.statistics import ERROR, GROUP_CELL, LEVEL
from tidyfair.evaluation.value_rows import STATE
from tidyfair.specs.segments import NO_ROW
from tidyfair.tallies.tally import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidyfair.evaluation.disparities import Tidy
    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.specs.metric_specs import MetricSpec
    from tidyfair.specs.segments import Array, Floats, Integers

__all__: list[str] = []

_SHOWN = 10
_NAMES = pl.List(pl.String)
_STATUSES = [status.value for status in Status]


def tidy_results(evaluated: Evaluated, *, undefined_is_null: bool, explain: bool = True) -> pl.DataFrame:
    """One row for each spec and outer group; unless asked to `explain`, without what tells of the groups."""
    results = _Results.of(evaluated)
    results.add_ordinary_metrics()
    results.add_disparities(undefined_is_null=undefined_is_null)
    return results.frame(explain=explain)


@dataclass(frozen=True, eq=False)
class _Results:
    """Results as arrays with one entry for each spec and outer group, in this order."""

    evaluated: Evaluated
    spec: Integers
    outer: Integers
    value: Floats
    state: Array
    n: Integers
    level: Integers
    low: Integers
    """The row of the group with the lower value, or `NO_ROW`."""
    high: Integers
    metric: Integers
    """A row of the metric that carries a disparity, or `NO_ROW`."""
    error: Floats
    metrics_left_out: list[list[str]]

    @classmethod
    def of(cls, evaluated: Evaluated) -> _Results:
        """Without rows there is no group to compare, but there is an answer."""
        import numpy as np

        specs, outers = len(evaluated.specs), len(evaluated.group_cells.outer_keys)
        size = specs * outers
        return cls(
            evaluated=evaluated,
            spec=np.repeat(np.arange(specs), outers),
            outer=np.tile(np.arange(outers), specs),
            value=np.full(size, np.nan),
            state=np.full(size, Status.NO_GROUPS.value, dtype=object),
            n=np.zeros(size, dtype=np.int64),
            level=np.full(size, NO_LEVEL),
            low=np.full(size, NO_ROW),
            high=np.full(size, NO_ROW),
            metric=np.full(size, NO_ROW),
            error=np.full(size, np.nan),
            metrics_left_out=[[] for _ in range(size)],
        )

    def _index(self, spec: Integers, outer: Integers) -> Integers:
        """Where the results of specs in outer groups stand."""
        return spec.astype("int64") * len(self.evaluated.group_cells.outer_keys) + outer

    def add_ordinary_metrics(self) -> None:
        """Put the values of what is not compared."""
        import numpy as np

        values = self.evaluated.values
        ordinary = [number for number, spec in enumerate(self.evaluated.specs) if spec.aggregate is None]
        spec = values.array("spec")
        chosen = np.flatnonzero(np.isin(spec, ordinary))
        index = self._index(spec[chosen], values.array("outer")[chosen])
        self.value[index] = values.array("estimate")[chosen]
        self.n[index] = np.nan_to_num(values.array("n")[chosen])
        self.state[index] = Status.OK.value
        if (values.array(STATE)[chosen] != Status.OK.code).any():
            self.state[index] = values.array("status")[chosen]
        if ERROR in values:
            self.error[index] = values.array(ERROR)[chosen]

    def add_disparities(self, *, undefined_is_null: bool) -> None:
        """Put the numbers that groups are compared by."""
        import numpy as np

        evaluated = self.evaluated
        aggregates = {
            number: spec.aggregate for number, spec in enumerate(evaluated.specs) if spec.aggregate is not None
        }
        two_sided = [number for number, spec in enumerate(evaluated.specs) if spec.by and spec.by.sides]
        tidy, texts = frames_of(evaluated), np.array(_STATUSES, dtype=object)
        for part in compare(
            evaluated.values, aggregates, two_sided=two_sided, undefined_is_null=undefined_is_null, tidy=tidy
        ):
            index = self._index(part.spec, part.outer)
            self.value[index], self.n[index], self.level[index] = part.value, part.n, part.level
            self.low[index], self.high[index], self.metric[index] = part.low, part.high, part.metric
            self.state[index] = texts[part.states]
            for number, names in part.left_out.items():
                self.metrics_left_out[index[number]] = names
        if ERROR in evaluated.values:
            factors = {number: aggregate.error_factor for number, aggregate in aggregates.items()}
            bounds = _error_bounds(evaluated.rows.lazy().filter(pl.col("spec").is_in(list(aggregates))), factors)
            found = bounds.collect(engine="in-memory")
            self.error[self._index(found["spec"].to_numpy(), found["outer"].to_numpy())] = found[ERROR].to_numpy()

    def frame(self, *, explain: bool) -> pl.DataFrame:
        """The tidy frame."""
        evaluated = self.evaluated
        about = pl.DataFrame({"spec": self.spec, "outer": self.outer, LEVEL: self.level})
        nothing = pl.Series([[]], dtype=_NAMES).new_from_index(0, len(self.value))
        columns = {
            **evaluated.about(about),
            ".estimate": pl.Series(self.value, nan_to_null=True),
            **self._error_bound(),
            ".n": self.n,
            ".status": pl.Series(self.state, dtype=pl.String),
        }
        if explain:
            columns |= self._groups()
            columns[".level"] = evaluated.level_text(about)
            columns[".base_metric"] = self._base_metric()
        left_out = any(self.metrics_left_out)
        columns[".metrics_left_out"] = pl.Series(self.metrics_left_out, dtype=_NAMES) if left_out else nothing
        if explain:
            columns[".groups_left_out"] = self._groups_left_out(nothing)
        return pl.DataFrame(columns)

    def _groups(self) -> dict[str, pl.Series]:
        """The groups that carry a disparity."""
        texts = self.evaluated.rows["text"]
        return {".group_min": _texts(texts, self.low), ".group_max": _texts(texts, self.high)}

    def _base_metric(self) -> pl.Series:
        """The metric that carries a disparity of several."""
        import numpy as np

        several = np.array([spec.several for spec in self.evaluated.specs], dtype=bool)
        return _texts(self.evaluated.rows["name"], np.where(several[self.spec], self.metric, NO_ROW))

    def _error_bound(self) -> dict[str, pl.Series]:
        """The column that shows how far off values can be, where scores were counted in bins."""
        if ERROR not in self.evaluated.values:
            return {}
        bound = pl.Series(self.error, nan_to_null=True)
        return {".error_bound": bound.set(pl.Series(self.value, nan_to_null=True).is_null(), None)}

    def _groups_left_out(self, nothing: pl.Series) -> pl.Series:
        """The groups that a disparity was not taken over."""
        if (self.evaluated.values.array(STATE) == Status.OK.code).all():
            return nothing
        rows = self.evaluated.rows
        compared = [number for number, spec in enumerate(self.evaluated.specs) if spec.aggregate is not None]
        excluded = rows.filter(pl.col("spec").is_in(compared) & ~pl.col("status").is_in(VALUED))
        texts = pl.col("text").sort_by(GROUP_CELL).unique(maintain_order=True)
        by_result = excluded.group_by("spec", "outer").agg(texts)
        names: list[list[str]] = [[] for _ in self.value]
        index = self._index(by_result["spec"].to_numpy(), by_result["outer"].to_numpy())
        for number, groups in zip(index.tolist(), by_result["text"].to_list(), strict=True):
            names[number] = groups
        return pl.Series(names, dtype=_NAMES)


def _texts(texts: pl.Series, rows: Integers) -> pl.Series:
    """The texts of rows, null where there is `NO_ROW`."""
    missing = rows == NO_ROW
    if missing.all():
        return pl.Series(texts.name, [None], dtype=pl.String).new_from_index(0, len(rows))
    chosen = texts[rows.clip(0)]
    return chosen.set(pl.Series(missing), None) if missing.any() else chosen


def _error_bound(rows: pl.DataFrame, value: str) -> dict[str, pl.Series]:
    """The column that shows how far off values can be, of those that there are."""
    return {".error_bound": rows[ERROR].set(rows[value].is_null(), None)} if ERROR in rows.columns else {}


def _error_bounds(groups: pl.LazyFrame, factors: Mapping[int, float | None]) -> pl.LazyFrame:
    """How far off comparisons can be, by how far off the values of the groups can be."""
    factor = pl.col("spec").replace_strict(factors, return_dtype=pl.Float64)
    valued = groups.filter(pl.col("estimate").is_not_null())
    largest = pl.col(ERROR).max()
    # what is made of exact values is exact, whatever it is
    bound = pl.when(largest == 0).then(0.0).otherwise(largest * factor.first()).alias(ERROR)
    parts = valued.group_by("spec", "outer", PART).agg(bound)
    # what is subtracted is off by as much on top
    return parts.group_by("spec", "outer").agg(pl.when(pl.col(ERROR).is_not_null().all()).then(pl.col(ERROR).sum()))


LOST = ".replicates_lost"
"""The column of how many replicates had no value for some group."""
EXPLANATION = (
    ".n", ".status", ".group_min", ".group_max", ".level", ".base_metric", ".metrics_left_out",
    ".groups_left_out", LOST,
)  # fmt: skip
"""The columns of results that are shown when asked for."""


def tidy_groups(evaluated: Evaluated) -> pl.DataFrame:
    """The values that disparities are made of, each once, and those of ordinary metrics."""
    rows = evaluated.rows.unique(["name", "estimator", "min_n", GROUP_CELL, LEVEL], keep="first", maintain_order=True)
    about = evaluated.about(rows) | {".metric": rows["name"]}
    estimator, threshold = about.pop(".estimator"), evaluated.threshold(rows)
    about = {name: column for name, column in about.items() if name not in threshold}
    return pl.DataFrame(
        {
            **about, ".group": rows["text"], ".level": evaluated.level_text(rows), ".estimator": estimator, **threshold,
            ".estimate": rows["estimate"], **_error_bound(rows, "estimate"),
            ".n": rows["n"], ".denominator": rows["denominator"],
            **({".effective_n": rows["effective"]} if "effective" in rows.columns else {}), ".status": rows["status"],
        }
    )  # fmt: skip


def frames_of(evaluated: Evaluated) -> Tidy:
    """What a user's aggregate is called, and sees, of each spec."""

    def tidy(number: int, rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
        return evaluated.specs[number].name, _tidy_group_frame(evaluated, evaluated.specs[number], rows)

    return tidy


def _tidy_group_frame(evaluated: Evaluated, spec: MetricSpec, rows: pl.DataFrame) -> pl.DataFrame:
    """What a user's aggregate sees: one row for each group and metric, its keys under their own names."""
    ours = {
        ".group": rows["text"], ".metric": rows["name"], ".estimator": rows["estimator"], ".estimate": rows["estimate"],
        ".n": rows["n"], ".denominator": rows["denominator"],
        ".overall": rows["overall"] if "overall" in rows.columns else None,
    }  # fmt: skip
    by = spec.by
    if by is None or by.sides:
        return pl.DataFrame(ours)
    place = rows[GROUP_CELL] - evaluated.group_cells.spans[by][0]
    keys = evaluated.group_cells.keys[by]
    return pl.DataFrame({column.name: key[place] for column, key in zip(by.columns, keys, strict=True)} | ours)


def complaints(evaluated: Evaluated, results: pl.DataFrame) -> list[str]:
    """What a reader should be told once: which metric has no value, and where."""
    said: list[str] = []
    if (evaluated.values.array(STATE) != Status.OK.code).any():
        states = evaluated.rows["status"]
        reasons = {
            status: _sentence(status)
            for status in states.unique(maintain_order=True)
            if status not in DEFINED or status == Status.LEVELS_LEFT_OUT
        }
        said += _places(evaluated, reasons)
    said += _silent(evaluated, results)
    said += _without_metrics(results)
    if (results[".status"] == Status.ZERO_DENOMINATOR).any():
        ratios = results.filter(pl.col(".by").is_not_null() & (pl.col(".status") == Status.ZERO_DENOMINATOR))
        pairs = ratios.select(".metric", ".by").unique(maintain_order=True).rows()
        said += [f"{name} by {by} is 0/0" for name, by in pairs]
    return said


def _sentence(status: str) -> str:
    """The predicate of a message about a metric with some status."""
    if status == Status.LEVELS_LEFT_OUT:
        return "is an average without the labels that have no value"
    return f"has no value ({Status.text_of(status)})"


def _silent(evaluated: Evaluated, results: pl.DataFrame) -> list[str]:
    """Sides that have nobody to be compared with in an outer group, where no value of a group says so."""
    two_sided = [(each.name, each.by.text) for each in evaluated.specs if each.by and each.by.sides]
    if not two_sided:
        return []
    lacking = results.filter(pl.col(".status").is_in([Status.TOO_FEW_GROUPS, Status.NO_REFERENCE]))
    outer = [name for name in results.columns if not name.startswith(".")]
    said: list[str] = []
    for (name, by), part in lacking.group_by(".metric", ".by", maintain_order=True):
        if (name, by) in two_sided:
            places = [", ".join(f"{key}={value!r}" for key, value in row.items()) for row in part[outer].to_dicts()]
            more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
            where = f" in {', '.join(f'({place})' for place in places[:_SHOWN])}{more}" if outer else ""
            said.append(f"{name} has no value on one of the sides of {by}{where}")
    return said


def _without_metrics(results: pl.DataFrame) -> list[str]:
    """Metrics that cannot be compared, where the worst of the others is taken."""
    partly = results.filter(pl.col(".metrics_left_out").list.len() > 0)
    if partly.is_empty():
        return []
    pairs = partly.explode(".metrics_left_out").group_by(".metric", ".by", maintain_order=True)
    messages: list[str] = []
    for (name, by), rows in pairs:
        metrics = ", ".join(rows[".metrics_left_out"].unique(maintain_order=True))
        messages.append(f"{name} by {by} is the worst of the other metrics, because {metrics} cannot be compared")
    return messages


def _places(evaluated: Evaluated, reasons: dict[str, str]) -> list[str]:
    """Which metrics are in one of the states, and in which groups."""
    rows = evaluated.rows.filter(pl.col("status").is_in(list(reasons)))
    said: list[str] = []
    by = evaluated.about(rows)[".by"]
    for (name, text, status), part in rows.with_columns(by).group_by("name", ".by", "status", maintain_order=True):
        places = part.unique(GROUP_CELL, maintain_order=True)
        shown = [
            " ".join(filter(None, [f"{text} {group!r}" if text else "", _outer_text(evaluated, outer)]))
            for group, outer in places.head(_SHOWN).select("text", "outer").rows()
        ]
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        said.append(f"{name} {reasons[str(status)]}{' in ' if any(shown) else ''}{', '.join(shown)}{more}")
    return said


def _outer_text(evaluated: Evaluated, place: int) -> str:
    row = evaluated.group_cells.outer_keys.row(place, named=True)
    cut = (evaluated.cut or "").removeprefix(".")
    named = {cut if name == THRESHOLD else name: value for name, value in row.items() if name != UNGROUPED}
    keys = ", ".join(f"{name}={value!r}" for name, value in named.items())
    return f"({keys})" if keys else ""

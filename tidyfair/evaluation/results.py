"""From values to tidy frames: results, the values of groups, and messages about undefined values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.disparities import Tidy, compare
from tidyfair.evaluation.evaluated import Evaluated
from tidyfair.evaluation.group_cells import UNGROUPED
from tidyfair.evaluation.states import DEFINED, NO_LEVEL, OUTSIDE, PART, TEXTS, VALUED
from tidyfair.evaluation.statistics import ERROR, GROUP_CELL, LEVEL
from tidyfair.evaluation.value_rows import STATE
from tidyfair.specs.columns import names_of
from tidyfair.specs.result_columns import key_columns
from tidyfair.specs.segments import NO_ROW, Array, Integers
from tidyfair.tallies.tally import THRESHOLD

VALUE = ["name", "estimator", "min_n", "min_share", GROUP_CELL, LEVEL]
"""The columns that identify the value of a group, for all specs that need it."""
_SHOWN = 10
_NAMES = pl.List(pl.String)
_TEXTS_OF_ENTRY = dict.fromkeys(["group", "metric", "level", "status"], pl.String)
_LEFT_OUT = pl.List(pl.Struct({**_TEXTS_OF_ENTRY, "denominator": pl.Float64}))
"""The metrics that groups were left out of."""


def tidy_results(evaluated: Evaluated, *, undefined_is_null: bool, explain: bool = True) -> pl.DataFrame:
    """One row for each spec and outer group; with `explain`, the columns about groups, too."""
    results = _Results(evaluated)
    results.add_ordinary_metrics()
    results.add_disparities(undefined_is_null=undefined_is_null)
    return results.frame(explain=explain)


class _Results:
    """Results as arrays with one entry for each spec and outer group, in this order."""

    def __init__(self, evaluated: Evaluated) -> None:
        specs, outers = len(evaluated.specs), len(evaluated.group_cells.outer_keys)
        size = specs * outers
        self.evaluated = evaluated
        self.spec, self.outer = np.repeat(np.arange(specs), outers), np.tile(np.arange(outers), specs)
        self.value, self.error = np.full((2, size), np.nan)
        # without rows there is no group to compare, but there is a result
        self.status: Array = np.full(size, Status.NO_GROUPS.value, dtype=object)
        self.n = np.zeros(size, dtype=np.int64)
        self.level = np.full(size, NO_LEVEL)
        # the rows of the groups with the lower and the higher value, and of the metric that carries a disparity
        self.low, self.high, self.metric = np.full((3, size), NO_ROW)
        # the names of the metrics that are left out, of results that have some
        self.metrics_left_out: dict[int, list[str]] = {}

    def _index(self, spec: Integers, outer: Integers) -> Integers:
        """The indices of the results of specs in outer groups."""
        return spec.astype("int64") * len(self.evaluated.group_cells.outer_keys) + outer

    def add_ordinary_metrics(self) -> None:
        """Set the values of specs that compare no groups."""
        values = self.evaluated.values
        spec = values.array("spec")
        chosen = np.flatnonzero(np.isin(spec, list(self.evaluated.aggregates), invert=True))
        index = self._index(spec[chosen], values.array("outer")[chosen])
        self.value[index] = values.array("estimate")[chosen]
        self.n[index] = np.nan_to_num(values.array("n")[chosen])
        self.status[index] = Status.OK.value
        if (values.array(STATE)[chosen] != Status.OK.code).any():
            self.status[index] = values.array("status")[chosen]
        if ERROR in values:
            self.error[index] = values.array(ERROR)[chosen]

    def add_disparities(self, *, undefined_is_null: bool) -> None:
        """Set the disparities between groups."""
        evaluated = self.evaluated
        compared = compare(
            evaluated.values,
            evaluated.aggregates,
            two_sided=[number for number, spec in enumerate(evaluated.specs) if spec.by and spec.by.sides],
            undefined_is_null=undefined_is_null,
            tidy=frames_of(evaluated),
        )
        statuses = np.array(TEXTS, dtype=object)
        for disparities in compared:
            index = self._index(disparities.spec, disparities.outer)
            self.status[index] = statuses[disparities.status_codes]
            for name in ("value", "n", "level", "low", "high", "metric"):
                getattr(self, name)[index] = getattr(disparities, name)
            for number, names in disparities.left_out.items():
                self.metrics_left_out[int(index[number])] = names
        if ERROR in evaluated.values:
            self._add_error_bounds()

    def _add_error_bounds(self) -> None:
        """Set how far off disparities can be, where scores were counted in bins."""
        factors = {number: aggregate.error_factor for number, aggregate in self.evaluated.aggregates.items()}
        factor = pl.col("spec").replace_strict(factors, return_dtype=pl.Float64)
        is_compared = pl.col("spec").is_in(list(factors)) & pl.col("estimate").is_not_null()
        largest = pl.col(ERROR).max()
        # a disparity of exact values is exact, even if the aggregate has no factor
        bound = pl.when(largest == 0).then(0.0).otherwise(largest * factor.first()).alias(ERROR)
        parts = self.evaluated.rows.lazy().filter(is_compared).group_by("spec", "outer", PART).agg(bound)
        # the errors of a disparity and of the one that is subtracted from it add up
        total = pl.when(pl.col(ERROR).is_not_null().all()).then(pl.col(ERROR).sum())
        bounds = parts.group_by("spec", "outer").agg(total).collect(engine="in-memory")
        index = self._index(bounds["spec"].to_numpy(), bounds["outer"].to_numpy())
        self.error[index] = bounds[ERROR].to_numpy()

    def frame(self, *, explain: bool) -> pl.DataFrame:
        """The tidy frame."""
        evaluated = self.evaluated
        keys = pl.DataFrame({"spec": self.spec, "outer": self.outer, LEVEL: self.level})
        no_names = pl.Series([[]], dtype=_NAMES).new_from_index(0, len(self.value))
        estimate = pl.Series(self.value, nan_to_null=True)
        columns = evaluated.key_columns(keys) | {".estimate": estimate}
        if ERROR in evaluated.values:
            # how far off values can be, where scores were counted in bins
            columns[".error_bound"] = pl.Series(self.error, nan_to_null=True).set(estimate.is_null(), None)
        columns |= {".n": pl.Series(self.n), ".status": pl.Series(self.status, dtype=pl.String)}
        if explain:
            texts = evaluated.rows["text"]
            columns |= {".group_min": _texts(texts, self.low), ".group_max": _texts(texts, self.high)}
            columns[".level"] = evaluated.level_text(keys)
            # the metric that carries a disparity of several
            several = np.array([spec.several for spec in evaluated.specs], dtype=bool)
            carrier = np.where(several[self.spec], self.metric, NO_ROW)
            columns[".base_metric"] = _texts(evaluated.rows["name"], carrier)
        columns[".metrics_left_out"] = no_names
        if self.metrics_left_out:
            names = [self.metrics_left_out.get(index, []) for index in range(len(self.value))]
            columns[".metrics_left_out"] = pl.Series(names, dtype=_NAMES)
        if explain:
            # no disparity is about unknown groups
            is_left_out = ~pl.col("status").is_in([*VALUED, Status.UNKNOWN.value])
            columns[".groups_left_out"] = self._groups_with(is_left_out, no_names)
            columns[".groups_outside"] = self._groups_with(pl.col("status").is_in(OUTSIDE), no_names)
            columns[".left_out"] = self._left_out()
        return pl.DataFrame(columns)

    def _groups_with(self, is_named: pl.Expr, no_names: pl.Series) -> pl.Series:
        """The names of the groups of each disparity whose values have some statuses."""
        if (self.evaluated.values.array(STATE) == Status.OK.code).all():
            return no_names
        rows, compared = self.evaluated.rows, list(self.evaluated.aggregates)
        excluded = rows.filter(pl.col("spec").is_in(compared) & is_named)
        texts = pl.col("text").sort_by(GROUP_CELL).unique(maintain_order=True)
        by_result = excluded.group_by("spec", "outer").agg(texts)
        names: list[list[str]] = [[] for _ in self.value]
        index = self._index(by_result["spec"].to_numpy(), by_result["outer"].to_numpy())
        for number, groups in zip(index.tolist(), by_result["text"].to_list(), strict=True):
            names[number] = groups
        return pl.Series(names, dtype=_NAMES)

    def _left_out(self) -> pl.Series:
        """The metrics that each group was left out of, unknown groups too, with the reason and the rows that count."""
        if (self.evaluated.values.array(STATE) == Status.OK.code).all():
            return pl.Series([[]], dtype=_LEFT_OUT).new_from_index(0, len(self.value))
        is_left_out = pl.col("spec").is_in(list(self.evaluated.aggregates)) & ~pl.col("status").is_in(VALUED)
        rows = self.evaluated.rows.filter(is_left_out).sort(GROUP_CELL, maintain_order=True)
        entries = rows.select(
            "spec", "outer", "status", pl.col("denominator").cast(pl.Float64), group="text", metric="name",
            level=self.evaluated.level_text(rows),
        ).unique(maintain_order=True)  # fmt: skip
        keys, fields = ["spec", "outer"], ["group", "metric", "level", "status", "denominator"]
        by_result = entries.group_by(keys, maintain_order=True).agg(pl.struct(fields))
        every = pl.DataFrame({"spec": self.spec, "outer": self.outer}).cast(by_result.select(keys).schema)
        return every.join(by_result, on=keys, how="left", maintain_order="left").to_series(2).fill_null([])


def _texts(texts: pl.Series, rows: Integers) -> pl.Series:
    """The texts of rows, null where there is `NO_ROW`."""
    missing = rows == NO_ROW
    if missing.all():
        return pl.Series(texts.name, [None], dtype=pl.String).new_from_index(0, len(rows))
    chosen = texts[rows.clip(0)]
    return chosen.set(pl.Series(missing), None) if missing.any() else chosen


LOST = ".replicates_lost"
"""The column with the number of replicates without a value for some group."""
EXPLANATION = (
    ".n", ".status", ".group_min", ".group_max", ".level", ".base_metric", ".metrics_left_out",
    ".groups_left_out", ".groups_outside", ".left_out", LOST,
)  # fmt: skip
"""The columns of results that are shown when asked for."""


def tidy_groups(evaluated: Evaluated) -> pl.DataFrame:
    """The values that disparities are computed from, without duplicates, and those of ordinary metrics."""
    rows = evaluated.rows.unique(VALUE, keep="first", maintain_order=True)
    columns = evaluated.key_columns(rows) | {".metric": rows["name"]}
    # these come after the group
    last = {name: columns.pop(name) for name in (".estimator", *evaluated.threshold(rows))}
    columns |= {".group": rows["text"], ".level": evaluated.level_text(rows), **last}
    columns[".estimate"] = rows["estimate"]
    if ERROR in rows.columns:
        columns[".error_bound"] = rows[ERROR].set(rows["estimate"].is_null(), None)
    columns |= {".n": rows["n"], ".denominator": rows["denominator"]}
    if "effective" in rows.columns:
        columns[".effective_n"] = rows["effective"]
    return pl.DataFrame(columns | {".status": rows["status"]})


def with_features(groups: pl.DataFrame, evaluated: Evaluated) -> pl.DataFrame:
    """The values of groups as `tidy_groups` has them, and after `.by` the features that rows are about."""
    rows = evaluated.rows.unique(VALUE, keep="first", maintain_order=True)
    after = groups.columns.index(".by") + 1
    features = evaluated.group_cells.features_of(rows[GROUP_CELL])
    return groups[:, :after].hstack(features).hstack(groups[:, after:])


def frames_of(evaluated: Evaluated) -> Tidy:
    """A function from a spec and its rows to the name of the spec and the frame for a user's aggregate."""

    def tidy(number: int, rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
        """One row for each group and metric, with its keys under their own names."""
        columns = {
            ".group": rows["text"], ".metric": rows["name"], ".estimator": rows["estimator"],
            ".estimate": rows["estimate"], ".n": rows["n"], ".denominator": rows["denominator"],
            ".overall": rows["overall"] if "overall" in rows.columns else None,
        }  # fmt: skip
        spec = evaluated.specs[number]
        if spec.by is not None and not spec.by.sides:
            first, _ = evaluated.group_cells.spans[spec.by]
            keys = evaluated.group_cells.keys[spec.by][rows[GROUP_CELL] - first]
            columns = dict(zip(names_of(spec.by.columns), keys, strict=True)) | columns
        return spec.name, pl.DataFrame(columns)

    return tidy


def complaints(evaluated: Evaluated, results: pl.DataFrame) -> list[str]:
    """Messages for one warning: the metrics without a value, and their groups."""
    messages: list[str] = []
    if (evaluated.values.array(STATE) != Status.OK.code).any():
        messages += _undefined_groups(evaluated)
    messages += _sides_without_value(evaluated, results)
    partly = results.filter(pl.col(".metrics_left_out").list.len() > 0)
    if not partly.is_empty():
        pairs = partly.explode(".metrics_left_out").group_by(".metric", ".by", maintain_order=True)
        for (name, by), rows in pairs:
            metrics = ", ".join(rows[".metrics_left_out"].unique(maintain_order=True))
            messages.append(f"{name} by {by} is the worst of the other metrics, because {metrics} cannot be compared")
    undefined = results[".status"] == Status.ZERO_DENOMINATOR.value
    if undefined.any():
        disparities = results.filter(undefined & results[".by"].is_not_null())
        pairs = disparities.select(".metric", ".by").unique(maintain_order=True).rows()
        messages += [f"{name} by {by} is 0/0" for name, by in pairs]
    return messages


def _sides_without_value(evaluated: Evaluated, results: pl.DataFrame) -> list[str]:
    """Messages about disparities of two sides of which one has no group in an outer group."""
    two_sided = [(spec.name, spec.by.text) for spec in evaluated.specs if spec.by and spec.by.sides]
    if not two_sided:
        return []
    lacking = results.filter(pl.col(".status").is_in([Status.TOO_FEW_GROUPS.value, Status.NO_REFERENCE.value]))
    outer = key_columns(results)
    messages: list[str] = []
    for (name, by), rows in lacking.group_by(".metric", ".by", maintain_order=True):
        if (name, by) not in two_sided:
            continue
        outer_groups = [_keys_text(keys) for keys in rows[outer].head(_SHOWN).to_dicts()]
        where = f" in {_listed(outer_groups, len(rows))}" if outer else ""
        messages.append(f"{name} has no value on one of the sides of {by}{where}")
    return messages


def _keys_text(keys: Mapping[str, object]) -> str:
    """The keys of an outer group as a text."""
    texts = [f"{name}={value!r}" for name, value in keys.items()]
    return f"({', '.join(texts)})"


def _listed(texts: list[str], count: int) -> str:
    """The first of a number of texts, and how many more there are."""
    more = f" and {count - len(texts)} more" if count > len(texts) else ""
    return ", ".join(texts) + more


def _undefined_groups(evaluated: Evaluated) -> list[str]:
    """Messages about metrics without a value, and about averages without some labels, with their groups."""
    statuses = evaluated.rows["status"].unique(maintain_order=True)
    shown = [status for status in statuses if status not in DEFINED or status == Status.LEVELS_LEFT_OUT]
    rows = evaluated.rows.filter(pl.col("status").is_in(shown))
    by_text = evaluated.key_columns(rows)[".by"]
    messages: list[str] = []
    for (name, by, status), group in rows.with_columns(by_text).group_by("name", ".by", "status", maintain_order=True):
        cells = group.unique(GROUP_CELL, maintain_order=True)
        first = cells.head(_SHOWN).select("text", "outer").rows()
        texts = [_group_cell_text(evaluated, by, text, outer) for text, outer in first]
        where = f" in {_listed(texts, len(cells))}" if any(texts) else ""
        predicate = f"has no value ({Status.text_of(str(status))})"
        if status == Status.LEVELS_LEFT_OUT.value:
            predicate = "is an average without the labels that have no value"
        messages.append(f"{name} {predicate}{where}")
    return messages


def _group_cell_text(evaluated: Evaluated, by: object, group: str, outer: int) -> str:
    """A group and its outer group as a text, empty where all rows are together."""
    keys: dict[str, object] = {}
    for name, value in evaluated.group_cells.outer_keys.row(outer, named=True).items():
        if name != UNGROUPED:
            shown = (evaluated.cut or "").removeprefix(".") if name == THRESHOLD else name
            keys[shown] = value
    texts = [f"{by} {group!r}"] if by else []
    if keys:
        texts.append(_keys_text(keys))
    return " ".join(texts)

"""From values to tidy frames: results, the values of groups, and messages about undefined values."""

from __future__ import annotations

import numpy as np
import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.disparities import Disparities, Tidy, compare
from tidyfair.evaluation.evaluated import Evaluated
from tidyfair.evaluation.group_cells import UNGROUPED
from tidyfair.evaluation.judged import JUDGED
from tidyfair.evaluation.statistics import ERROR, GROUP_CELL, LEVEL
from tidyfair.evaluation.value_rows import LAST_DEFINED, NO_LEVEL, OUTSIDE, PART, STATE, TEXTS, VALUED
from tidyfair.specs import NO_ROW, Array, By, Integers
from tidyfair.tallies import THRESHOLD

VALUE = ["name", "estimator", "min_n", "min_share", GROUP_CELL, LEVEL]
"""The columns that identify the value of a group, for all specs that need it."""
_SHOWN = 10
_NAMES = pl.List(pl.String)
_TEXTS_OF_ENTRY = dict.fromkeys(["group", "metric", "level", "status"], pl.String)
_LEFT_OUT = pl.List(pl.Struct({**_TEXTS_OF_ENTRY, "denominator": pl.Float64}))
"""The metrics that groups were left out of."""


def tidy_results(evaluated: Evaluated, *, undefined_is_null: bool, explain: bool = True) -> pl.DataFrame:
    """One row for each spec and outer group; with `explain`, the columns about groups, too."""
    return Results(evaluated, undefined_is_null=undefined_is_null).frame(explain=explain)


class Results:
    """Results with one entry for each spec and outer group, in this order; other columns are made on demand."""

    def __init__(self, evaluated: Evaluated, *, undefined_is_null: bool) -> None:
        values, plan = evaluated.values, evaluated.plan
        self.evaluated = evaluated
        self._outers = evaluated.group_cells.outer_keys.height
        self.value = np.full(len(plan.specs) * self._outers, np.nan)
        self.error = np.full(len(self.value), np.nan) if ERROR in values else None
        # the rows of the values of ordinary metrics, and the indices of their results
        self._rows = self._index = np.zeros(0, dtype=np.int64)
        # disparities, and the indices of their results
        self._compared: list[tuple[Integers, Disparities]] = []
        # the names of the metrics that are left out, of results that have some
        self.metrics_left_out: dict[int, list[str]] = {}
        if len(plan.aggregates) < len(plan.specs):
            self._add_ordinary_metrics()
        if plan.aggregates:
            self._add_disparities(undefined_is_null=undefined_is_null)
        if plan.aggregates and self.error is not None:
            self._add_error_bounds(self.error)

    def _index_of(self, spec: Integers, outer: Integers) -> Integers:
        """The indices of the results of specs in outer groups."""
        return spec.astype(np.int64) * self._outers + outer

    def _add_ordinary_metrics(self) -> None:
        """Set the values of specs that compare no groups."""
        values = self.evaluated.values
        is_ordinary = np.ones(len(self.evaluated.plan.specs), dtype=bool)
        is_ordinary[[*self.evaluated.plan.aggregates]] = False
        (rows,) = is_ordinary[values["spec"]].nonzero()
        self._rows, self._index = rows, self._index_of(values["spec"][rows], values["outer"][rows])
        self.value[self._index] = values["estimate"][rows]
        if self.error is not None:
            self.error[self._index] = values[ERROR][rows]

    def _add_disparities(self, *, undefined_is_null: bool) -> None:
        """Set the disparities between groups."""
        evaluated, plan = self.evaluated, self.evaluated.plan
        for disparities in compare(
            evaluated.values, plan.aggregates, two_sided=plan.two_sided, undefined_is_null=undefined_is_null,
            tidy=frames_of(evaluated),
        ):  # fmt: skip
            index = self._index_of(disparities.spec, disparities.outer)
            self.value[index] = disparities.value
            self._compared.append((index, disparities))
            for number, names in disparities.left_out.items():
                self.metrics_left_out[int(index[number])] = names

    def _add_error_bounds(self, error: Array) -> None:
        """Set how far off disparities can be, where scores were counted in bins."""
        factors = {number: aggregate.error_factor for number, aggregate in self.evaluated.plan.aggregates.items()}
        factor = pl.col("spec").replace_strict(factors, return_dtype=pl.Float64)
        is_compared = pl.col("spec").is_in(list(factors)) & pl.col("estimate").is_not_null()
        largest = pl.col(ERROR).max()
        # a disparity of exact values is exact, even if the aggregate has no factor
        bound = pl.when(largest == 0).then(0.0).otherwise(largest * factor.first()).alias(ERROR)
        parts = self.evaluated.rows.lazy().filter(is_compared).group_by("spec", "outer", PART).agg(bound)
        # the errors of a disparity and of the one that is subtracted from it add up
        total = pl.when(pl.col(ERROR).is_not_null().all()).then(pl.col(ERROR).sum())
        bounds = parts.group_by("spec", "outer").agg(total).collect(engine="in-memory")
        error[self._index_of(bounds["spec"].to_numpy(), bounds["outer"].to_numpy())] = bounds[ERROR].to_numpy()

    def frame(self, *, explain: bool) -> pl.DataFrame:
        """The tidy frame."""
        evaluated = self.evaluated
        estimate = pl.Series(".estimate", self.value, nan_to_null=True)
        columns = [estimate]
        if self.error is not None:
            # how far off values can be, where scores were counted in bins
            columns.append(pl.Series(".error_bound", self.error, nan_to_null=True).set(estimate.is_null(), None))
        if explain:
            columns += self._explanation()
        # ungrouped data have one result for each spec
        if not evaluated.group_cells.is_grouped and evaluated.cut is None:
            return evaluated.plan.names.hstack(columns)
        return evaluated.keys_of_results(*self._keys).hstack(columns)

    @property
    def _keys(self) -> tuple[Integers, Integers]:
        """The spec and the outer group of each result."""
        return np.divmod(np.arange(len(self.value), dtype=np.uint32), np.uint32(self._outers))

    def _disparity_column(self, name: str, missing: int) -> Array:
        """A column of disparities, with another value for ordinary metrics and where there are no groups."""
        column = np.full(len(self.value), missing)
        for index, disparities in self._compared:
            column[index] = getattr(disparities, name)
        return column

    def _explanation(self) -> list[pl.Series]:
        """The columns about groups."""
        evaluated = self.evaluated
        texts, no_names = evaluated.rows["text"], pl.Series([[]], dtype=_NAMES).new_from_index(0, len(self.value))
        # the metric that carries a disparity of several
        several = np.array([spec.several for spec in evaluated.plan.specs], dtype=bool)
        carrier = np.where(several[self._keys[0]], self._disparity_column("metric", NO_ROW), NO_ROW)
        # without rows there is no group to compare, but there is a result
        status = np.array(TEXTS, dtype=object)[self._disparity_column("status_codes", Status.NO_GROUPS.code)]
        status[self._index] = evaluated.values["status"][self._rows]
        n = self._disparity_column("n", 0)
        rows_in_groups = evaluated.group_cells.rows_in_groups
        if rows_in_groups is not None:
            # rows of several groups count once
            n = np.minimum(n, rows_in_groups[self._keys[1]])
        rows, is_suppressed = evaluated.values["n"][self._rows], np.zeros(len(n), dtype=bool)
        n[self._index], is_suppressed[self._index] = np.nan_to_num(rows), np.isnan(rows)
        metrics_left_out = no_names
        if self.metrics_left_out:
            names = [self.metrics_left_out.get(index, []) for index in range(len(self.value))]
            metrics_left_out = pl.Series(names, dtype=_NAMES)
        # no disparity is about unknown groups
        is_left_out = ~pl.col("status").is_in([*VALUED, Status.UNKNOWN.value])
        columns = {
            ".n": pl.Series(n).set(pl.Series(is_suppressed), None),
            ".status": pl.Series(status, dtype=pl.String),
            ".group_min": _texts(texts, self._disparity_column("low", NO_ROW)),
            ".group_max": _texts(texts, self._disparity_column("high", NO_ROW)),
            ".level": evaluated.level_text(self._disparity_column("level", NO_LEVEL)),
            ".base_metric": _texts(evaluated.rows["name"], carrier),
            ".metrics_left_out": metrics_left_out,
            ".groups_left_out": self._groups_with(is_left_out, no_names),
            ".groups_outside": self._groups_with(pl.col("status").is_in(OUTSIDE), no_names),
            ".left_out": self._left_out(),
        }
        return [column.alias(name) for name, column in columns.items()]

    def _groups_with(self, is_named: pl.Expr, no_names: pl.Series) -> pl.Series:
        """The names of the groups of each disparity whose values have some statuses."""
        if (self.evaluated.values[STATE] == Status.OK.code).all():
            return no_names
        rows, compared = self.evaluated.rows, list(self.evaluated.plan.aggregates)
        excluded = rows.filter(pl.col("spec").is_in(compared) & is_named)
        texts = pl.col("text").sort_by(GROUP_CELL).unique(maintain_order=True)
        by_result = excluded.group_by("spec", "outer").agg(texts)
        names: list[list[str]] = [[] for _ in self.value]
        index = self._index_of(by_result["spec"].to_numpy(), by_result["outer"].to_numpy())
        for number, groups in zip(index.tolist(), by_result["text"].to_list(), strict=True):
            names[number] = groups
        return pl.Series(names, dtype=_NAMES)

    def _left_out(self) -> pl.Series:
        """The metrics that each group was left out of, unknown groups too, with the reason and the rows that count."""
        if (self.evaluated.values[STATE] == Status.OK.code).all():
            return pl.Series([[]], dtype=_LEFT_OUT).new_from_index(0, len(self.value))
        is_left_out = pl.col("spec").is_in(list(self.evaluated.plan.aggregates)) & ~pl.col("status").is_in(VALUED)
        rows = self.evaluated.rows.filter(is_left_out).sort(GROUP_CELL, maintain_order=True)
        entries = rows.select(
            "spec", "outer", "status", pl.col("denominator").cast(pl.Float64), group="text", metric="name",
            level=self.evaluated.level_text(rows[LEVEL].to_numpy()),
        ).unique(maintain_order=True)  # fmt: skip
        keys, fields = ["spec", "outer"], ["group", "metric", "level", "status", "denominator"]
        by_result = entries.group_by(keys, maintain_order=True).agg(pl.struct(fields))
        every = pl.DataFrame(dict(zip(keys, self._keys, strict=True))).cast(by_result.select(keys).schema)
        return every.join(by_result, on=keys, how="left", maintain_order="left").to_series(2).fill_null([])

    def complaints(self) -> list[str]:
        """Messages for one warning: the metrics without a value, and their groups."""
        messages: list[str] = []
        if (self.evaluated.values[STATE] != Status.OK.code).any():
            messages += _undefined_groups(self.evaluated)
        if self.evaluated.plan.two_sided:
            messages += self._sides_without_value()
        left_out: dict[int, dict[str, None]] = {}
        for index in sorted(self.metrics_left_out):
            left_out.setdefault(index // self._outers, {}).update(dict.fromkeys(self.metrics_left_out[index]))
        for number, names in left_out.items():
            subject, metrics = self._subject(number), ", ".join(names)
            messages.append(f"{subject} is the worst of the other metrics, because {metrics} cannot be compared")
        undefined: set[int] = set()
        for _, disparities in self._compared:
            undefined.update(disparities.spec[disparities.status_codes == Status.ZERO_DENOMINATOR.code].tolist())
        for number in sorted(undefined):
            messages.append(f"{self._subject(number)} is 0/0")
        return messages

    def _subject(self, number: int) -> str:
        """The name of a disparity and of the feature that it is by."""
        spec = self.evaluated.plan.specs[number]
        return f"{spec.name} by {spec.by.text if spec.by else None}"

    def _sides_without_value(self) -> list[str]:
        """Messages about disparities of two sides of which one has no group in an outer group."""
        codes = self._disparity_column("status_codes", Status.OK.code)
        codes = codes.reshape(len(self.evaluated.plan.specs), self._outers)
        lacking = np.isin(codes, [Status.TOO_FEW_GROUPS.code, Status.NO_REFERENCE.code])
        messages: list[str] = []
        for number in self.evaluated.plan.two_sided:
            spec, outers = self.evaluated.plan.specs[number], np.flatnonzero(lacking[number]).tolist()
            if outers:
                texts = [_outer_text(self.evaluated, outer) for outer in outers[:_SHOWN]]
                where = f" in {_listed(texts, len(outers))}" if any(texts) else ""
                sides = spec.by.text if spec.by else None
                messages.append(f"{spec.name} has no value on one of the sides of {sides}{where}")
        return messages


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
    last = {name: columns.pop(name) for name in (".estimator", evaluated.cut) if name}
    columns |= {".group": rows["text"], ".level": evaluated.level_text(rows[LEVEL].to_numpy()), **last}
    columns[".estimate"] = rows["estimate"]
    if ERROR in rows.columns:
        columns[".error_bound"] = rows[ERROR].set(rows["estimate"].is_null(), None)
    columns |= {".n": rows["n"], ".denominator": rows["denominator"]}
    if "effective" in rows.columns:
        columns[".effective_n"] = rows["effective"]
    if evaluated.evaluator.tally.judge is not None:
        # without metrics that read the truth, there are none
        unknown = pl.Series([None], dtype=pl.Float64).new_from_index(0, len(rows))
        columns |= {name: rows[name] if name in rows.columns else unknown for name in JUDGED}
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
        spec = evaluated.plan.specs[number]
        if spec.by is not None and not spec.by.sides:
            first, _ = evaluated.group_cells.spans[spec.by]
            keys = evaluated.group_cells.keys[spec.by][rows[GROUP_CELL] - first]
            columns = dict(zip(spec.by.names, keys, strict=True)) | columns
        return spec.name, pl.DataFrame(columns)

    return tidy


def _listed(texts: list[str], count: int) -> str:
    """The first of a number of texts, and how many more there are."""
    more = f" and {count - len(texts)} more" if count > len(texts) else ""
    return ", ".join(texts) + more


def _undefined_groups(evaluated: Evaluated) -> list[str]:
    """Messages about metrics without a value, and about averages without some labels, with their groups."""
    values = evaluated.values
    state = values[STATE]
    (rows,) = ((state > LAST_DEFINED) | (state == Status.LEVELS_LEFT_OUT.code)).nonzero()
    names: list[str] = values["name"][rows].tolist()
    specs: list[int] = values["spec"][rows].tolist()
    statuses: list[str] = values["status"][rows].tolist()
    cells: list[int] = values[GROUP_CELL][rows].tolist()
    bys = [spec.by for spec in evaluated.plan.specs]
    texts_of_bys = [by.text if by else None for by in bys]
    undefined: dict[tuple[str, str | None, str], tuple[By | None, dict[int, None]]] = {}
    for name, spec, status, cell in zip(names, specs, statuses, cells, strict=True):
        subject = (name, texts_of_bys[spec], status)
        if subject not in undefined:
            undefined[subject] = bys[spec], {}
        undefined[subject][1][cell] = None
    messages: list[str] = []
    for (name, _, status), (by, group_cells) in undefined.items():
        texts = _group_cell_texts(evaluated, by, [*group_cells][:_SHOWN])
        where = f" in {_listed(texts, len(group_cells))}" if any(texts) else ""
        predicate = f"has no value ({Status.text_of(status)})"
        if status == Status.LEVELS_LEFT_OUT.value:
            predicate = "is an average without the labels that have no value"
        messages.append(f"{name} {predicate}{where}")
    return messages


def _group_cell_texts(evaluated: Evaluated, by: By | None, group_cells: list[int]) -> list[str]:
    """Groups of a `by` and their outer groups as texts, empty where all rows are together."""
    outers = [_outer_text(evaluated, outer) for outer in evaluated.group_cells.outer[group_cells].tolist()]
    if by is None:
        return outers
    groups, (first, _) = evaluated.group_cells.texts(by), evaluated.group_cells.spans[by]
    shown = groups[pl.Series([cell - first for cell in group_cells], dtype=pl.UInt32)].to_list()
    return [f"{by.text} {group!r} {outer}".rstrip() for group, outer in zip(shown, outers, strict=True)]


def _outer_text(evaluated: Evaluated, outer: int) -> str:
    """The keys of an outer group as a text, empty for ungrouped data."""
    texts: list[str] = []
    for name, value in evaluated.group_cells.outer_keys.row(outer, named=True).items():
        if name != UNGROUPED:
            shown = (evaluated.cut or "").removeprefix(".") if name == THRESHOLD else name
            texts.append(f"{shown}={value!r}")
    return f"({', '.join(texts)})" if texts else ""

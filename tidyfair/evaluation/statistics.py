"""Sums over the rows of group cells, and the statistics that formulas read, as arrays of group cells by labels.

A group cell is a group of a `by` within an outer group; it is known by its index in a list of all of them. Sums merge:
what is known of several group cells together is worked out from their sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tidyfair.evaluation.label_counts import LabelCounts
from tidyfair.specs.formulas import HAND_TILL, ROWS, SQUARES, WHEN_COMPLETE, Given, Kind
from tidyfair.specs.segments import Segments
from tidyfair.tallies.moments import ACTUAL, PREDICTED, REST, SCORE, UP_TO, is_centre, is_end, is_least, recentred
from tidyfair.tallies.tally import ESTIMATE, HIDDEN, TRUTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tidyfair.evaluation.group_index import GroupIndex
    from tidyfair.evaluation.labels import Labels
    from tidyfair.specs.formulas import Formula, Statistic
    from tidyfair.specs.segments import Array, Booleans, Integers
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

GROUP_CELL, LEVEL = "group_cell", "level"
"""The columns that say which group cell and which label a value is about."""
ONE_LABEL = ("binary", "one_vs_rest", "standard")
"""Estimators that read one label against the rest, or no label."""
ERROR = "error"
"""The column of how far off a value can be where scores were counted in bins."""
_SMALLEST_COUNT = 2
"""A label is read against at least one other."""

CELLS = {
    "tp": (True, True), "fn": (True, False), "fp": (False, True), "tn": (False, False),
    "positive_only": (True, None), "negative_only": (False, None),
    "selected_only": (None, True), "unselected_only": (None, False), "blank": (None, None),
}  # fmt: skip
"""Truth and estimate in the cells of a table of one label against the rest, with those where one is missing."""

_MARGINS = {
    "positives": ("tp", "fn", "positive_only"), "negatives": ("fp", "tn", "negative_only"),
    "selected": ("tp", "fp", "selected_only"), "unselected": ("fn", "tn", "unselected_only"),
    "instances": tuple(CELLS),
}  # fmt: skip

_USED = {
    frozenset({"truth", "estimate"}): ("tp", "fn", "fp", "tn"),
    frozenset({"truth"}): ("positives", "negatives"),
    frozenset({"estimate"}): ("selected", "unselected"),
    frozenset[str](): ("instances",),
}
"""The statistics whose rows are the rows that a formula uses, by the columns that it reads."""
_STEPS = ("absolute_steps", "squared_steps")
_BOTH = frozenset({"truth", "estimate"})


@dataclass(frozen=True)
class Table:
    """Which rows of a group count, and what is known of them: formulas with the same needs share a table."""

    kind: Kind
    reads: frozenset[str] = frozenset()
    """The columns that must be there in a row for it to count; those of labels differ by statistic."""
    sides: bool = False
    """Whether one label is read from both sides, for formulas over all labels."""
    pairs: bool = False
    """Whether labels are read against each other label instead of the rest."""
    given: Given | None = None
    """Whether it holds distributions over all labels, and of what."""

    @classmethod
    def of(cls, formula: Formula, estimator: str) -> Table:
        """The table that a formula reads."""
        if formula.kind == "class":
            return cls("class", formula.reads, given=formula.given) if formula.given else cls("class")
        sides = formula.kind == "prob" and formula.over_levels and estimator in ONE_LABEL
        return cls(formula.kind, formula.reads, sides, estimator == HAND_TILL)


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a tally as arrays, with labels as their index, -1 where they are missing."""

    tally: Tally
    labels: Labels

    @property
    def frame(self) -> pl.DataFrame:
        """The cells with all that is summed."""
        return self.tally.cells

    @cached_property
    def truth(self) -> Integers:
        """The index of the true label."""
        return self.labels.index(self.tally, TRUTH)

    @cached_property
    def estimate(self) -> Integers:
        """The index of the predicted label."""
        return self.labels.index(self.tally, ESTIMATE)

    @cached_property
    def complete(self) -> bool:
        """Whether all rows have a truth and an estimate."""
        return bool((self.truth >= 0).all() and (self.estimate >= 0).all())

    @property
    def weighted(self) -> bool:
        """Whether rows have case weights."""
        return "w" in self.frame.columns

    def measure(self, name: Literal["n", "w", "w2"]) -> Array:
        """The number of rows of each cell, their weight, or that squared; without weights, their number."""
        return self.frame[name if self.weighted else "n"].to_numpy()

    def have(self, reads: frozenset[str]) -> Booleans:
        """Whether the rows of each cell have what is read."""
        import numpy as np

        columns = {"truth": "truth", "estimate": "estimate", "probs": SCORE}
        there = [self.frame[columns[role]].is_not_null().to_numpy() for role in reads]
        return np.logical_and.reduce(there) if there else np.ones(len(self.frame), dtype=bool)


@dataclass(frozen=True, eq=False)
class LabelReading:
    """How labels and scores of cells are read."""

    levels: Sequence[int]
    """The labels that are read one by one against the rest."""
    labels: int
    """How many labels there are."""
    scores: Mapping[int, str]
    """The name of the score of each level."""
    steps: bool
    """Whether it counts how many labels truth and estimate are excluded."""
    squares: bool
    """Whether squared weights are summed."""


def sums_of(
    table: Table, terms: frozenset[Statistic], cells: Cells, index: GroupIndex, reading: LabelReading
) -> dict[str, Array]:
    """The sums of a table over the cells of each group cell: arrays of group cells by labels, by name."""
    if table.given is not None:
        return _distributions(table.given, cells, index, reading.labels)
    if table.kind == "class":
        return _label_sums(terms, cells, index, reading)
    if table.kind == "prob":
        return _score_sums(table, terms, cells, index, reading)
    return _number_sums(table, cells, index)


def _label_sums(
    terms: frozenset[Statistic], cells: Cells, index: GroupIndex, reading: LabelReading
) -> dict[str, Array]:
    """The table of each label against the rest, counted in rows and in weights."""
    counts = LabelCounts(cells.truth, cells.estimate, index.of_cell, len(index), reading.levels, cells.complete)
    measures: dict[str, Literal["n", "w", "w2"]] = {ROWS: "n"}
    measures |= {"": "w"} if cells.weighted else {}
    measures |= {SQUARES: "w2"} if reading.squares else {}
    sums: dict[str, Array] = {}
    for suffix, measure in measures.items():
        values = cells.frame[measure].to_numpy()
        own = counts.of(values)
        if reading.steps and suffix != SQUARES:
            own |= counts.steps(values)
        sums |= {name + suffix: by_level.T for name, by_level in own.items()}
    for name in sorted(term.column for term in terms):
        sums[name] = counts.of_all(cells.frame[name].to_numpy(), counts.estimate >= 0).T
    if HIDDEN in cells.frame.columns:
        sums[HIDDEN] = counts.of_all(cells.frame[HIDDEN].to_numpy(), counts.group >= 0).T
    return sums


def _distributions(given: Given, cells: Cells, index: GroupIndex, labels: int) -> dict[str, Array]:
    """The weight and the rows of each label of one side, for each label of the other one that is given."""
    import numpy as np

    counted = cells.truth if given == "estimate" else cells.estimate
    conditions = {"truth": cells.truth, "estimate": cells.estimate}.get(given, np.zeros_like(counted))
    height = 1 if given == "nothing" else labels
    both = (counted >= 0) & (conditions >= 0)
    code = (index.of_cell * height + conditions) * labels + counted
    shape = (len(index), height, labels)

    def summed(measure: Array) -> Array:
        return np.bincount(code[both], measure[both], len(index) * height * labels).reshape(shape)

    sums = {"count": summed(cells.measure("w")), "count" + ROWS: summed(cells.measure("n"))}
    sums |= {"size": _of_cells(cells.measure("w"), index), "rows": _of_cells(cells.measure("n"), index)}
    if HIDDEN in cells.frame.columns:
        sums[HIDDEN] = _of_cells(cells.frame[HIDDEN].to_numpy(), index)
    return sums


def _of_cells(measure: Array, index: GroupIndex, chosen: Booleans | None = None) -> Array:
    """The sum over the cells of each group cell, as one column."""
    import numpy as np

    if chosen is not None:
        return np.bincount(index.of_cell[chosen], measure[chosen], len(index))[:, None]
    return np.bincount(index.of_cell, measure, len(index))[:, None]


def _score_sums(
    table: Table, terms: frozenset[Statistic], cells: Cells, index: GroupIndex, reading: LabelReading
) -> dict[str, Array]:
    """The sums of the score of each level; with sides, those of what is left to any other label before them."""
    import numpy as np

    there = cells.have(table.reads)
    columns: dict[str, list[Array]] = {}
    sides = (REST, "") if table.sides else ("",)
    for level in reading.levels:
        for side in sides:
            events = (cells.truth != level) if side else (cells.truth == level)
            sums = _counts_of_events(cells, index, events & there, there)
            for term in terms:
                values = _of_score(term, cells, events, level, side, reading, cumulative=not table.sides)
                sums[term.column] = _of_cells(values, index, there)
            for name, values in sums.items():
                columns.setdefault(name, []).append(values)
    shape = (len(index), len(reading.levels), *([len(sides)] if table.sides else []))
    return {name: np.concatenate(values, axis=1).reshape(shape) for name, values in columns.items()}


def _counts_of_events(cells: Cells, index: GroupIndex, events: Booleans, there: Booleans) -> dict[str, Array]:
    """The rows with and without the event, counted in rows and in weights; and all rows."""
    sums: dict[str, Array] = {}
    for suffix, measure in ((ROWS, cells.measure("n")), ("", cells.measure("w"))):
        sums["positives" + suffix] = _of_cells(measure, index, events)
        sums["negatives" + suffix] = _of_cells(measure, index, there & ~events)
        sums["instances" + suffix] = _of_cells(measure, index, there)
    sums["rows"] = _of_cells(cells.measure("n"), index)
    sums["size"] = _of_cells(cells.measure("w"), index)
    return sums


def _of_score(
    term: Statistic, cells: Cells, events: Booleans, level: int, side: str, reading: LabelReading, *, cumulative: bool
) -> Array:
    """The quantity of each cell, which was summed as if the event had happened, and as if it had not."""
    import numpy as np

    score = side + reading.scores[level]
    if term.cumulative and cumulative:
        score = UP_TO + reading.scores[level]
        events = (cells.truth >= 0) & (cells.truth <= level)
    with_event, without = (cells.frame[f"{term.column} {score} {truth}"].to_numpy() for truth in (1, 0))
    return np.where(events, with_event, without)


def _number_sums(table: Table, cells: Cells, index: GroupIndex) -> dict[str, Array]:
    """The sums of numbers over the cells that have what the table reads."""
    import numpy as np

    there = cells.have(table.reads)
    sums = {"rows": _of_cells(cells.measure("n"), index), "size": _of_cells(cells.measure("w"), index)}
    sums["instances"] = _of_cells(cells.measure("w"), index, there)
    sums["instances" + ROWS] = _of_cells(cells.measure("n"), index, there)
    sums["weight_squares"] = _of_cells(cells.measure("w2"), index, there)
    columns = cells.frame.columns
    names = [name for name in columns[columns.index("n") + 1 :] if name not in {"w", "w2"}]
    values = {name: cells.frame[name].to_numpy() for name in names}
    order = np.argsort(index.of_cell, kind="stable")
    if "product" in values:
        segments = Segments.of(index.of_cell[order])
        complete = cells.have(_BOTH)[order]
        moved = recentred(
            {name: each[order] for name, each in values.items()}, cells.measure("w")[order], complete, segments
        )
        for name in moved:
            values[name] = np.empty(len(order))
            values[name][order] = moved[name]
    for name, each in values.items():
        sums[name] = _merged(name, each, index, there)
    return sums


def _merged(name: str, values: Array, index: GroupIndex, chosen: Booleans) -> Array:
    """The values of the cells of each group cell as one: their sum, their end, or the centre that they share."""
    import numpy as np

    group = index.of_cell[chosen]
    if is_centre(name):
        of_group = np.full(len(index), np.nan)
        of_group[group] = values[chosen]
        return of_group[:, None]
    if is_end(name):
        of_group = np.full(len(index), np.nan)
        (np.fmin if is_least(name) else np.fmax).at(of_group, group, values[chosen])
        return of_group[:, None]
    return _of_cells(values, index, chosen)


# What is known of several group cells together


def pooled(
    sums: Mapping[str, Array], segments: Segments, left_out: Booleans, what: Literal["overall", "rest"]
) -> dict[str, Array]:
    """The sums of all groups of a run together beside each of them, or of all its other groups.

    Groups that are `left_out` are in nobody's pool.
    """
    import numpy as np

    if "product" in sums:
        columns = {name: values[:, 0] for name, values in sums.items()}
        everything = np.ones(len(left_out), dtype=bool)
        moved = recentred(columns, columns["instances"], everything, segments)
        sums = {**sums, **{name: values[:, None] for name, values in moved.items()}}
    pool = _of_all if what == "overall" else _of_others
    return {
        name: values if is_centre(name) else pool(name, values, segments, left_out) for name, values in sums.items()
    }


def _of_all(name: str, values: Array, segments: Segments, left_out: Booleans) -> Array:
    """One number for all groups of a run, beside each of them."""
    import numpy as np

    counting = _blanked(name, values, left_out)
    merge = np.add if not is_end(name) else np.fmin if is_least(name) else np.fmax
    return np.repeat(merge.reduceat(counting, segments.starts, axis=0), segments.sizes, axis=0)


def _of_others(name: str, values: Array, segments: Segments, left_out: Booleans) -> Array:
    """One number for all other groups of a run, from what comes before and after each of them.

    Subtracting floats from their sum would leave dust where there is nothing.
    """
    import numpy as np

    counting = _blanked(name, values, left_out)
    if not is_end(name):
        before, after = segments.before(counting, np.add, 0), segments.after(counting, np.add, 0)
        return before + after
    merge = np.fmin if is_least(name) else np.fmax
    before, after = segments.before(counting, merge, np.nan), segments.after(counting, merge, np.nan)
    return merge(before, after)


def _blanked(name: str, values: Array, left_out: Booleans) -> Array:
    """The values without those of groups that are left out."""
    if not left_out.any():
        return values
    blanked = values.astype(float) if is_end(name) else values.copy()
    blanked[left_out] = float("nan") if is_end(name) else 0
    return blanked


# The statistics that formulas read


@dataclass(frozen=True, eq=False)
class Statistics:
    """What formulas read of each group cell and label, and how many rows stand behind it."""

    kind: Kind
    given: Given | None
    weights: Mapping[str, Array]
    """Statistics in case weights: arrays of group cells by labels, by name."""
    rows: Mapping[str, Array]
    """The same counted in rows."""
    size: Array
    """The weight of all rows of a group cell."""
    all_rows: Array
    squares: Mapping[str, Array] | None = None
    """The same in squared case weights."""
    hidden: Array | None = None
    """How many cells of a group are left out on purpose."""
    beside: Mapping[str, Statistics] = field(default_factory=dict[str, "Statistics"])
    """What is known of all groups together, or of all other groups, by the prefix of its statistics."""

    def read(
        self, reads: frozenset[str], measure: Literal["weights", "rows", "squares"] = "weights"
    ) -> dict[str, Array]:
        """The statistics of formulas that read some columns, and so leave out rows without one of these."""
        known: dict[str, Array] = dict(getattr(self, measure))
        if self.kind == "class" and reads == _BOTH:
            known |= {
                margin: known[one] + known[other] for margin, (one, other) in WHEN_COMPLETE.items() if one in known
            }
        for prefix, others in self.beside.items():
            known |= {prefix + name: values for name, values in others.read(reads, measure).items()}
        return known

    def used(self, reads: frozenset[str]) -> Array:
        """The number of rows that formulas use which read some columns."""
        return self._among(self.rows, reads)

    def weight(self, reads: frozenset[str]) -> Array:
        """The weight of these rows."""
        return self._among(self.weights, reads)

    def _among(self, known: Mapping[str, Array], reads: frozenset[str]) -> Array:
        names = _USED[reads] if self.kind == "class" and self.given is None else ("instances",)
        first, *others = (known[name] for name in names)
        return sum(others, start=first)

    def true(self, reads: frozenset[str]) -> Array:
        """The weight of each label, which is how much it counts in a weighted average."""
        if self.given is not None:
            return self.weights["instances"]
        if self.kind == "numeric":
            return self.weights["instances"] * 0 + 1
        if self.kind == "class" and "estimate" in reads:
            return self.weights["tp"] + self.weights["fn"]
        return self.weights["positives"]


def statistics_of(table: Table, sums: Mapping[str, Array]) -> Statistics:
    """The statistics of a table, worked out from its sums."""
    if table.given is not None:
        return _of_distributions(table.given, sums)
    if table.kind == "class":
        return _of_labels(sums)
    return _of_scores(sums) if table.kind == "prob" else _of_numbers(sums)


def _of_distributions(given: Given, sums: Mapping[str, Array]) -> Statistics:
    of_label, all_rows = sums["count" + ROWS].sum(axis=-1), sums["rows"]
    # those that lack something, beside those of the label that is given
    incomplete = all_rows - of_label.sum(axis=-1, keepdims=True)
    weights = {"count": sums["count"], "instances": sums["count"].sum(axis=-1)}
    rows = {"instances": of_label}
    return Statistics("class", given, weights, rows, sums["size"], of_label + incomplete, hidden=sums.get(HIDDEN))


def _of_labels(sums: Mapping[str, Array]) -> Statistics:
    import numpy as np

    counted = {name + suffix for name in (*CELLS, *_STEPS) for suffix in ("", ROWS, SQUARES)}
    terms = {name: values for name, values in sums.items() if name not in {*counted, HIDDEN}}
    rows = _with_margins(sums, ROWS)
    weights = _with_margins(sums, "") if "tp" in sums else rows
    squares = _with_margins(sums, SQUARES) if "tp" + SQUARES in sums else None
    levels = rows["tp"].shape[1]
    # steps are counted only where a formula reads them
    known = dict.fromkeys(_STEPS, np.full(rows["tp"].shape, np.nan)) | terms
    known |= {"rank": np.arange(float(levels)), "label_count": np.full(levels, float(max(levels, _SMALLEST_COUNT)))}
    of_rows = known | rows
    return Statistics(
        "class", None, of_rows if weights is rows else known | weights, of_rows, weights["instances"],
        rows["instances"], None if squares is None else known | squares, sums.get(HIDDEN),
    )  # fmt: skip


def _with_margins(sums: Mapping[str, Array], suffix: str) -> dict[str, Array]:
    """The cells of the table of each label and their margins, as floats: products of large counts overflow integers."""
    names = [name for name in (*CELLS, *_STEPS) if name + suffix in sums]
    known = {name: sums[name + suffix].astype(float) for name in names}
    for margin, parts in _MARGINS.items():
        first, *others = (known[name] for name in parts if name in known)
        known[margin] = sum(others, start=first)
    return known


def _of_scores(sums: Mapping[str, Array]) -> Statistics:
    import numpy as np

    counted = ("positives", "negatives", "instances")
    others = {name for name in sums if name not in {*counted, "rows", "size"} and not name.endswith(ROWS)}
    weights = {name: sums[name] for name in (*counted, *others)}
    levels = sums["instances"].shape[-1]
    # sums of scores are no numbers of rows
    unknown = dict.fromkeys(others, np.full(sums["instances"].shape, np.nan))
    rows = unknown | {name: sums[name + ROWS] for name in counted}
    rank = {"rank": np.arange(float(levels))}
    return Statistics(
        "prob", None, weights | rank, rows | {"rank": np.full(levels, np.nan)}, sums["size"], sums["rows"]
    )


def _of_numbers(sums: Mapping[str, Array]) -> Statistics:
    import numpy as np

    weights = dict(sums)
    weight = sums["instances"]
    least, most = (f"{end} {ACTUAL}" for end in ("least", "most"))
    weights |= {"truth_minimum": sums[least], "truth_maximum": sums[most]}
    if "product" in sums:
        with np.errstate(all="ignore"):
            weights |= _moments(sums, weight)
    unknown = np.full(weight.shape, np.nan)
    rows = dict.fromkeys(weights, unknown) | {"instances": sums["instances" + ROWS]}
    return Statistics("numeric", None, weights, rows, sums["size"], sums["rows"], hidden=sums.get(HIDDEN))


def _moments(sums: Mapping[str, Array], weight: Array) -> dict[str, Array]:
    """Means, variation and covariation from sums about a centre."""
    import numpy as np

    known: dict[str, Array] = {}
    moved: dict[str, Array] = {}
    constant: dict[str, Booleans] = {}
    for name, number in (("truth", ACTUAL), ("estimate", PREDICTED)):
        moved[name] = sums[f"{name}_shift"] / weight
        constant[name] = sums[f"least {number}"] == sums[f"most {number}"]
        variation = (sums[f"{name}_square"] - moved[name] * sums[f"{name}_shift"]).clip(0)
        known[f"{name}_mean"] = sums[f"{name}_centre"] + moved[name]
        # what is constant has no spread at all, not one of rounding errors
        known[f"{name}_variation"] = np.where(constant[name], 0.0, variation)
    product = sums["product"] - moved["truth"] * sums["estimate_shift"]
    known["covariation"] = np.where(constant["truth"] | constant["estimate"], 0.0, product)
    return known

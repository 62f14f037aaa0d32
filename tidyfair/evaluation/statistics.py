"""From counts to values: events, formulas and averages over labels, one row for each unit and metric.

A unit is a group of a `by` within an outer group; it is known by its place in a list of all units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Literal

import polars as pl

from tidyfair.evaluation.group_index import GroupIndex
from tidyfair.evaluation.label_counts import LabelCounts
from tidyfair.specs.aggregates import SUPPRESSED
from tidyfair.specs.formulas import HAND_TILL, ROWS, SQUARES, STATISTICS, Given, Kind, ranked, two_sides
from tidyfair.tallies.moments import ACTUAL, PREDICTED, REST, SCORE, UP_TO, centred, is_sum, merged, running
from tidyfair.tallies.tally import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tidyfair.specs.formulas import Formula, Statistic
    from tidyfair.specs.segments import Array, Integers

__all__: list[str] = []

UNIT, LEVEL = "unit", "level"
ONE_LABEL = ("binary", "one_vs_rest", "standard")
"""Estimators that read one label against the rest, or no label."""
ERROR = "error"
"""The column of how far off a value can be where scores were counted in bins."""

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

_OF_LABELS = ("rank", "label_count", "count")
"""Statistics that are about the labels of the call, or stand in a table of their own."""
PLACE = "place"
"""The label that a row of a distribution is about."""

_USED = {
    frozenset({"truth", "estimate"}): ("tp", "fn", "fp", "tn"),
    frozenset({"truth"}): ("positives", "negatives"),
    frozenset({"estimate"}): ("selected", "unselected"),
    frozenset[str](): ("instances",),
}
"""The statistics whose rows are the rows that a formula uses, by the columns that it reads."""

_VALUES = [
    UNIT, LEVEL, "metric", "estimate", "n", "denominator", "mass", "size", "rows", "weight",
    "levels_left_out", "reason",
]  # fmt: skip


@cache
def _statistics(*, weighted: bool, steps: bool, complete: bool, squares: bool) -> tuple[list[pl.Expr], list[pl.Expr]]:
    """Margins from cells; then everything as floats, and the rows that formulas use."""
    there = [name for name, sides in CELLS.items() if not complete or None not in sides]
    margins = [
        pl.sum_horizontal(name + suffix for name in parts if name in there).alias(margin + suffix)
        for suffix in [ROWS, *([""] if weighted else []), *([SQUARES] if squares else [])]
        for margin, parts in _MARGINS.items()
    ]
    names = [name for name in STATISTICS if name not in _OF_LABELS and (steps or not name.endswith("_steps"))]
    # floats, because products of large counts overflow integers
    floats = [pl.col(name if weighted else name + ROWS).cast(pl.Float64).alias(name) for name in names]
    used = [pl.sum_horizontal(name + ROWS for name in parts).alias(_used(reads)) for reads, parts in _USED.items()]
    instances = "instances" if weighted else "instances" + ROWS
    totals = [pl.col(instances).cast(pl.Float64).alias("size"), pl.col("instances" + ROWS).alias("rows")]
    return margins, floats + used + totals


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


def count_cells(
    counted: Sequence[tuple[pl.DataFrame, Sequence[str]]],
    levels: Sequence[int],
    tables: Mapping[Table, frozenset[Statistic]],
    scores: Mapping[int, str],
    *,
    steps: bool,
    squares: bool,
    all_levels: Sequence[int],
) -> Iterator[tuple[pl.DataFrame, dict[Table, pl.DataFrame]]]:
    """Of some cells and their keys: the distinct keys in order, which are units, and what each table knows of them.

    `counted` are the same cells with several keys: these, `truth` and `estimate` as places among the labels, `n` rows
    and, with weights, `w`, and the sums that the tables need; `scores` names the score of each level. A table has one
    row for each level and unit; units are numbered through. `all_levels` are the places of all labels, whichever of
    them are read one by one.
    """
    cells, every_key = counted[0][0], frozenset(key for _, keys in counted for key in keys)
    weighted = "w" in cells.columns
    complete = not (cells["truth"].null_count() or cells["estimate"].null_count())
    sums: dict[Table, list[pl.Expr]] = {}
    for table, terms in tables.items():
        if table.kind == "prob":
            sums[table] = [
                each
                for side in ([REST, ""] if table.sides else [""])
                for level in levels
                for each in _score_sums(table, terms, level, side, scores, weighted=weighted)
            ]
        elif table.kind == "numeric":
            sums[table] = _number_sums(table, cells, every_key)
    names = {table: [each.meta.output_name().rpartition(" ")[0] for each in mine] for table, mine in sums.items()}
    wanted = [each.alias(f"sum {place}") for place, each in enumerate(chain(*sums.values()))]
    indices = [GroupIndex.of(cells, keys) for cells, keys in counted]
    placed = [
        cells.with_columns(pl.Series(UNIT, index.of_cell)) for (cells, _), index in zip(counted, indices, strict=True)
    ]
    plans = [centred(cells, [UNIT]).lazy().group_by(UNIT).agg(wanted).sort(UNIT) for cells in placed] if wanted else []
    sums_of_units = pl.collect_all(plans, engine="in-memory") if wanted else [pl.DataFrame() for _ in placed]
    first = 0
    for cells, index, wide in zip(placed, indices, sums_of_units, strict=True):
        units = pl.int_range(first, first + len(index.keys), dtype=pl.Int32, eager=True).alias(UNIT)
        found: dict[Table, pl.DataFrame] = {}
        start = 1
        for table, terms in tables.items():
            if table.given is not None:
                found[table] = _distributions(cells, units, table, all_levels)
            elif table.kind == "class":
                counts = LabelCounts(
                    _label_index(cells["truth"]),
                    _label_index(cells["estimate"]),
                    index.of_cell,
                    len(units),
                    levels,
                    complete,
                )
                found[table] = _label_table(counts, cells, units, terms, steps=steps, squares=squares)
            else:
                stop = start + len(names[table])
                found[table], start = _by_level(wide[:, start:stop], names[table], units, table, levels), stop
        yield index.keys, found
        first += len(units)


def _label_index(labels: pl.Series) -> Integers:
    """Labels as their index; -1 where they are missing."""
    import numpy as np

    return (labels.fill_null(-1) if labels.null_count() else labels).to_numpy().astype(np.int64)


def _label_table(
    counts: LabelCounts,
    cells: pl.DataFrame,
    units: pl.Series,
    terms: frozenset[Statistic],
    *,
    steps: bool,
    squares: bool,
) -> pl.DataFrame:
    """The table of each label against the rest: one row for each level and unit."""
    measures = {ROWS: "n"} | ({"": "w"} if "w" in cells.columns else {}) | ({SQUARES: "w2"} if squares else {})
    columns: dict[str, Array] = {}
    for suffix, measure in measures.items():
        values = cells[measure].to_numpy()
        columns |= {name + suffix: sums for name, sums in counts.of(values).items()}
        if steps and suffix != SQUARES:
            columns |= {name + suffix: sums for name, sums in counts.steps(values).items()}
    for name in sorted(term.column for term in terms):
        columns[name] = counts.of_all(cells[name].to_numpy(), counts.estimate >= 0)
    if HIDDEN in cells.columns:
        columns[HIDDEN] = counts.of_all(cells[HIDDEN].to_numpy(), counts.group >= 0)
    level = spread(counts.levels, len(units)).alias(LEVEL)
    flat = [pl.Series(name, sums.ravel()) for name, sums in columns.items()]
    return pl.DataFrame([repeat(units, len(counts.levels)), level, *flat])


def _by_level(
    wide: pl.DataFrame, names: list[str], units: pl.Series, table: Table, levels: Sequence[int]
) -> pl.DataFrame:
    """The sums of units for each level, which stand side by side, one below the other."""
    sides = 2 if table.sides else 1
    mine = levels if table.kind != "numeric" else [0]
    each = len(names) // (len(mine) * sides)
    parts = [wide[:, place : place + each] for place in range(0, len(names), each)]
    for part in parts:
        part.columns = names[:each]
    level = repeat(spread(mine, len(wide)), sides).alias(LEVEL)
    long = pl.concat(parts).insert_column(0, level).insert_column(0, repeat(units, len(parts)))
    side = spread(range(sides), len(level) // sides).cast(pl.Float64).alias("rank")
    return long.insert_column(2, side) if table.sides else long


def _distributions(placed: pl.DataFrame, numbers: pl.Series, table: Table, levels: Sequence[int]) -> pl.DataFrame:
    """The `count` of each label in each unit, for each label of the other side where one is given."""
    given = {"truth": "truth", "estimate": "estimate"}.get(str(table.given))
    place = "truth" if given == "estimate" else "estimate"
    level = pl.col(given) if given else pl.lit(None, pl.Int32)
    first = int(numbers[0]) if len(numbers) else 0
    placed = placed.with_columns((pl.col(UNIT) + first).cast(pl.Int32))
    weight = pl.col("w" if "w" in placed.columns else "n").sum().cast(pl.Float64)
    hidden = [pl.col(HIDDEN).sum()] if HIDDEN in placed.columns else []
    sizes = placed.group_by(UNIT).agg(weight.alias("size"), pl.col("n").sum().alias("rows"), *hidden)
    counted = placed.select(
        UNIT, level.alias(LEVEL), pl.col(place).alias(PLACE), *placed.columns[placed.columns.index("n") : -1]
    )
    counted = counted.group_by(UNIT, LEVEL, PLACE).agg(weight.alias("count"), pl.col("n").sum().alias("count_rows"))
    places = pl.DataFrame({PLACE: levels}, schema={PLACE: pl.Int32})
    given_levels = pl.DataFrame({LEVEL: levels if given else [None]}, schema={LEVEL: pl.Int32})
    every = numbers.to_frame().join(given_levels, how="cross", maintain_order="left_right")
    every = every.join(places, how="cross", maintain_order="left_right")
    found = every.join(counted, on=[UNIT, LEVEL, PLACE], how="left", nulls_equal=True, maintain_order="left")
    found = found.with_columns(pl.col("count", "count_rows").fill_null(0))
    return found.join(sizes, on=UNIT, how="left", maintain_order="left")


_PRESENT = {"truth": "truth", "estimate": "estimate", "probs": SCORE}
"""The column of cells that says whether a row has what a formula reads."""


def _measures(*, weighted: bool) -> dict[str, str]:
    return {ROWS: "n", "": "w" if weighted else "n"}


def _there(table: Table) -> pl.Expr:
    return pl.all_horizontal(
        pl.lit(value=True), *(pl.col(_PRESENT[role]).is_not_null() for role in sorted(table.reads))
    )


def _score_sums(
    table: Table, terms: frozenset[Statistic], level: int, side: str, scores: Mapping[int, str], *, weighted: bool
) -> list[pl.Expr]:
    """What is known of the scores of a level, or of what is left to anything else."""
    there = _there(table)
    true = (pl.col("truth") != level) if side else (pl.col("truth") == level)
    sums = [
        pl.col(measure)
        .filter(there & condition)
        .sum()
        .cast(pl.Int64 if suffix else pl.Float64)
        .alias(f"{name}{suffix} {side}{level}")
        for suffix, measure in _measures(weighted=weighted).items()
        for name, condition in (("positives", true), ("negatives", ~true), ("instances", pl.lit(value=True)))
    ]
    sums += [
        pl.col("n").sum().alias(f"rows {side}{level}"),
        pl.col("w" if weighted else "n").sum().cast(pl.Float64).alias(f"size {side}{level}"),
    ]
    for term in sorted(terms, key=lambda term: term.column):
        name, cumulative = scores[level], term.cumulative and not table.sides
        score = REST + name if side else UP_TO + name if cumulative else name
        value = (
            pl.when(pl.col("truth") <= level if cumulative else true)
            .then(pl.col(f"{term.column} {score} 1"))
            .otherwise(pl.col(f"{term.column} {score} 0"))
        )
        sums.append(value.filter(there).sum().alias(f"{term.column} {side}{level}"))
    return sums


def _number_sums(table: Table, cells: pl.DataFrame, keys: Collection[str]) -> list[pl.Expr]:
    """The sums of numbers over the cells that have what the table reads."""
    counts = {"rows": pl.col("n").sum(), "size": pl.col("w" if "w" in cells.columns else "n").sum().cast(pl.Float64)}
    names = [name for name in cells.columns[cells.columns.index("n") :] if name not in {"w", "w2", *keys}]
    weighted = "w" in cells.columns
    there = _there(table)
    weight = {
        "w": pl.col("w" if weighted else "n").cast(pl.Float64),
        "w2": pl.col("w2" if weighted else "n").cast(pl.Float64),
    }
    sums = [each.alias(f"{name} 0") for name, each in counts.items()]
    sums += [weight[name].filter(there).sum().alias(f"{name} 0") for name in ("w", "w2")]
    sums += [merge(pl.col(name).filter(there)).alias(f"{name} 0") for name, merge in merged(names).items()]
    return sums


def derived(table: Table, known: pl.DataFrame) -> pl.DataFrame:
    """What formulas read, worked out from sums that merge; `known` is what is known of each unit and level."""
    if table.given is not None:
        together, counted = [UNIT, LEVEL], pl.col("count_rows").sum()
        return known.with_columns(
            counted.over(together).alias(_used(table.reads)),
            pl.col("count").sum().over(together).alias("instances"),
            # those that lack something, beside those of the label that is given
            (counted.over(together) + pl.col("rows") - counted.over(UNIT)).alias("rows"),
        )
    if table.kind == "class":
        return add_statistics(known)
    used = pl.col("instances_rows" if table.kind == "prob" else "n").alias(_used(table.reads))
    if table.kind == "prob":
        return known.with_columns(used, pl.col("positives").alias("true"))
    weight = pl.col("w")
    columns = {
        "instances": weight, "instances_rows": pl.col("n"), "weight_squares": pl.col("w2"), "true": pl.lit(1.0),
        "truth_minimum": pl.col(f"least {ACTUAL}"), "truth_maximum": pl.col(f"most {ACTUAL}"),
    }  # fmt: skip
    if "product" in known.columns:
        moved, constant = dict[str, pl.Expr](), dict[str, pl.Expr]()
        for name, number in (("truth", ACTUAL), ("estimate", PREDICTED)):
            moved[name] = pl.col(f"{name}_shift") / weight
            constant[name] = pl.col(f"least {number}") == pl.col(f"most {number}")
            spread_out = (pl.col(f"{name}_square") - moved[name] * pl.col(f"{name}_shift")).clip(0)
            columns[f"{name}_mean"] = pl.col(f"{name}_centre") + moved[name]
            # what is constant has no spread at all, not one of rounding errors
            columns[f"{name}_variation"] = pl.when(constant[name]).then(0.0).otherwise(spread_out)
        product = pl.col("product") - moved["truth"] * pl.col("estimate_shift")
        columns["covariation"] = pl.when(constant["truth"] | constant["estimate"]).then(0.0).otherwise(product)
    return known.with_columns(used, **columns)


def add_statistics(cells: pl.DataFrame) -> pl.DataFrame:
    """The statistics of formulas beside the cells they are made of.

    Statistics carry their name; counted in rows, their name and `ROWS`.
    """
    there = {name: name + ROWS in cells.columns for name in ("absolute_steps", "blank")}
    margins, rest = _statistics(
        weighted="tp" in cells.columns,
        steps=there["absolute_steps"],
        complete=not there["blank"],
        squares="tp" + SQUARES in cells.columns,
    )
    # one label is read against another one
    label_count = pl.max_horizontal(pl.col(LEVEL).n_unique(), 2).cast(pl.Float64)
    plan = cells.lazy().with_columns(margins).with_columns(*rest, label_count.alias("label_count"))
    return plan.collect(engine="in-memory")


def repeat(values: pl.Series, times: int) -> pl.Series:
    """All values, several times over."""
    return pl.concat([values] * times) if times > 1 else values


def spread(values: Iterable[int], length: int | list[int]) -> pl.Series:
    """Each value as often as `length` says, for all or for each."""
    import numpy as np

    return pl.Series(np.repeat(np.array([*values], dtype=np.int32), length))


def pool(
    table: pl.DataFrame, parts: list[pl.Series], apart: pl.Series, what: Literal["overall", "rest"]
) -> pl.DataFrame:
    """The same rows with what is known of all groups together, or of all other groups.

    Rows are together whose `parts` and level are equal; rows `apart` are in nobody's pool.
    """
    placed = table.with_columns(
        apart.alias("apart"), *(part.alias(f"part {index}") for index, part in enumerate(parts))
    )
    by = [name for name in (LEVEL, "rank", PLACE) if name in table.columns]
    by += [f"part {index}" for index in range(len(parts))]
    names = [name for name in table.columns if name not in {UNIT, *by}]
    placed = centred(placed, by).with_columns(
        pl.when("apart").then(0 if is_sum(name) else None).otherwise(name).alias(name) for name in names
    )
    if what == "overall":
        pooled = [merge(pl.col(name)).alias(name) for name, merge in merged(names).items()]
    else:
        # sums of what comes before and after: subtracting floats would leave dust where there is nothing
        pooled = [running(name) for name in names]
    return placed.with_columns(each.over(by) for each in pooled).select(table.columns)


def evaluate(table: pl.DataFrame, formulas: Mapping[int, Formula], estimator: str) -> dict[int, pl.DataFrame]:
    """The values of formulas, a block for each.

    A block has one row for each unit or, where labels are read one by one, for each row of the table, in its order.
    Columns: `unit`, `level`, `metric` (the key of the formula), `estimate`, `denominator` and `n` (rows), `mass` (their
    weight), `size` (that of all rows), `rows`, `weight` (of the label) and `levels_left_out`.
    """
    given = {key: formula for key, formula in formulas.items() if formula.given is not None}
    if given:
        return _parted(_values(table, given, [UNIT, LEVEL], summed=True), given)
    own = {key: formula for key, formula in formulas.items() if formula.over_levels}
    labelled = {key: formula for key, formula in formulas.items() if not formula.over_levels}
    found: dict[int, pl.DataFrame] = {}
    if own and estimator in ONE_LABEL:
        sides = table if "rank" in table.columns else two_sides(table)
        found |= _parted(_values(sides, own, [UNIT, LEVEL], summed=True), own)
    elif own:
        found |= _parted(_values(ranked(table, pl.col(LEVEL)), own, [UNIT], summed=True), own)
    if labelled and estimator == "micro":
        same = {"size", "rows", "label_count", HIDDEN}
        used = [name for name in table.columns if name.startswith(_used(frozenset())) or name in same]
        pooled = table.group_by(UNIT, maintain_order=True).agg(pl.exclude(LEVEL, *used).sum(), pl.col(used).first())
        found |= _parted(_values(pooled, labelled, [UNIT]), labelled)
    elif labelled:
        values = _values(table, labelled, [UNIT, LEVEL])
        values = values if estimator in ONE_LABEL else _average(values, labelled, estimator)
        found |= _parted(values, labelled)
    return found


def _parted(values: pl.DataFrame, formulas: Mapping[int, Formula]) -> dict[int, pl.DataFrame]:
    """The values of each formula, which come one after the other."""
    height = len(values) // len(formulas)
    return {key: values.slice(place * height, height) for place, key in enumerate(formulas)}


def _used(reads: frozenset[str]) -> str:
    return "used by " + " and ".join(sorted(reads))


@cache
def _common(kind: Kind, reads: frozenset[str], given: Given | None) -> dict[str, tuple[str, pl.Expr]]:
    """What formulas have in common that read the same: where it stands, and what it is."""
    of_class, used = kind == "class" and given is None, _used(reads)
    # how often a label is true among the rows that the formula reads
    of_both = of_class and "estimate" in reads
    true = pl.col("tp") + pl.col("fn") if of_both else pl.col("positives" if of_class else "true")
    return {
        "n": (used, pl.col(used)),
        "mass": (f"mass {used}", pl.sum_horizontal(_USED[reads] if of_class else ["instances"])),
        "weight": (f"weight {of_both}", true if given is None else pl.col("instances")),
    }


def _values(
    table: pl.DataFrame, formulas: Mapping[int, Formula], keys: list[str], *, summed: bool = False
) -> pl.DataFrame:
    """One row for each key and formula; `summed` where the formulas sum over the rows of a key themselves."""

    def one(expr: pl.Expr) -> pl.Expr:
        return expr.first() if summed else expr

    wanted = {"size": one(pl.col("size")), "rows": one(pl.col("rows"))}
    # what several formulas have in common is worked out once
    places: dict[str, list[str]] = {name: [] for name in ("estimate", "n", "denominator", "mass", "weight")}
    for key, formula in formulas.items():
        common = _common(formula.kind, formula.reads, formula.given)
        found = {name: place for name, (place, _) in common.items()} | {"estimate": f"estimate {key}"}
        wanted |= {place: one(expr) for place, expr in common.values() if place not in wanted}
        wanted[found["estimate"]] = formula.value
        rate = formula.denominator
        found["denominator"] = found["n"] if rate is None else f"denominator {key}"
        wanted |= {} if rate is None else {found["denominator"]: rate}
        for name, place in found.items():
            places[name].append(place)
        if formula.way == "arrays":
            given = pl.col(formula.column + " reason")
            given = given.drop_nulls().first() if summed else given
            wanted[f"reason {key}"] = pl.coalesce(given, pl.lit(formula.undefined))
    effective: dict[int, str] = {}
    if "tp" + SQUARES in table.columns:
        effective = {key: f"effective {key}" for key, formula in formulas.items() if formula.effective is not None}
        wanted |= {effective[key]: formulas[key].effective for key in effective}
    suppressed = HIDDEN in table.columns
    for key, formula in formulas.items() if suppressed else ():
        # what is left out of other groups is missing in what is read of them
        hidden = one(pl.sum_horizontal(HIDDEN, *(prefix + HIDDEN for prefix in formula.beyond))) > 0
        wanted[f"{HIDDEN} {key}"] = hidden
        wanted[f"estimate {key}"] = pl.when(~hidden).then(wanted[f"estimate {key}"])
    plan = table.lazy()
    plan = plan.group_by(keys, maintain_order=True).agg(**wanted) if summed else plan.select(*keys, **wanted)
    # as a plan, in which what formulas share is worked out once
    wide = plan.collect(engine="in-memory")
    height, many = len(wide), len(formulas)
    long = {name: repeat(wide[name], many) for name in (*keys, "size", "rows")}
    long |= {} if LEVEL in keys else {LEVEL: pl.Series([None], dtype=pl.Int32).new_from_index(0, height * many)}
    long |= {name: pl.concat([wide[place] for place in each]) for name, each in places.items()}
    long["estimate"] = pl.Series(long["estimate"].to_numpy(), nan_to_null=True)
    long |= {"metric": spread(formulas, height), "levels_left_out": pl.Series([False]).new_from_index(0, height * many)}
    long["reason"] = pl.concat(
        wide[f"reason {key}"] if formula.way == "arrays" else pl.Series([formula.undefined]).new_from_index(0, height)
        for key, formula in formulas.items()
    )
    if suppressed:
        hidden = pl.concat([wide[f"{HIDDEN} {key}"] for key in formulas])
        long["reason"] = pl.select(pl.when(hidden).then(pl.lit(SUPPRESSED)).otherwise(long["reason"])).to_series()
    if effective:
        none = pl.Series([None], dtype=pl.Float64).new_from_index(0, height)
        long["effective"] = pl.concat(wide[effective[key]] if key in effective else none for key in formulas)
    return pl.DataFrame({name: long[name] for name in [*_VALUES, *(["effective"] if effective else [])]})


def _average(values: pl.DataFrame, formulas: Mapping[int, Formula], estimator: str) -> pl.DataFrame:
    """The mean over labels, each counting the same or as often as it is true.

    Labels without a value are left out where the formula says so; else the mean has none, unless they weigh nothing.
    """
    weight = pl.col("weight") if estimator == "macro_weighted" else pl.lit(1.0)
    known = pl.col("estimate").is_not_null()
    lenient = [key for key, formula in formulas.items() if formula.undefined_levels == "drop" or estimator == HAND_TILL]
    drops = pl.col("metric").is_in(lenient)
    counted = known & (weight > 0)
    complete = (known | (weight == 0)).all() | drops.first()
    mean = (pl.col("estimate") * weight).filter(counted).sum() / (weight * counted).sum()
    averaged = values.group_by("metric", UNIT, maintain_order=True).agg(
        pl.lit(None, pl.Int32).alias(LEVEL),
        pl.when(complete).then(mean).fill_nan(None).alias("estimate"),
        pl.col("n", "mass", "size", "rows", "weight").first(),
        pl.col("n").first().alias("denominator"),
        (~(known | (weight == 0))).any().alias("levels_left_out"),
        # where every label has a value, none of them weighs anything
        pl.coalesce(pl.col("reason").filter(~known).first(), pl.lit("zero_denominator")).alias("reason"),
    )
    return averaged.select(_VALUES)

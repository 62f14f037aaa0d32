"""Everything that was asked for, evaluated for every outer group and every `by` at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, LabelError, listed
from tidyfair.evaluation.array_metrics import class_values, row_values
from tidyfair.evaluation.disparities import NO_LEVEL, PART
from tidyfair.evaluation.group_cells import UNGROUPED, cells_of, count_units, rows_of
from tidyfair.evaluation.labels import NUMBERS, read_labels
from tidyfair.evaluation.ranked_rows import Level, Whose
from tidyfair.evaluation.statistics import ERROR, LEVEL, ONE_LABEL, UNIT, Table, derived, evaluate, pool, spread
from tidyfair.specs.aggregates import CONTEXTS, SUPPRESSED
from tidyfair.specs.arguments import one_of
from tidyfair.specs.formulas import OVERALL
from tidyfair.specs.options import ALL_LABELS, ON_UNDEFINED
from tidyfair.tallies.tally import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tidyfair.evaluation.group_cells import Units
    from tidyfair.evaluation.labels import Labels
    from tidyfair.specs.aggregates import Context
    from tidyfair.specs.formulas import Formula, Statistic
    from tidyfair.specs.groups import By
    from tidyfair.specs.options import Reading, Request
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

UNSEEN = "unseen_event"
"""Why nothing has a value where the event that was asked for does not occur."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluated:
    """The values of all requests for each group: what tables, disparities and warnings are made from."""

    rows: pl.DataFrame
    """One row for each request, metric, unit and, where labels are read one by one, level."""
    requests: tuple[Request, ...]
    units: Units
    labels: Labels
    estimator: str | None
    cut: str | None = None
    """What the column of a list of cuts is called."""

    def about(self, rows: pl.DataFrame) -> dict[str, pl.Series]:
        """The columns that say what a row is about: outer keys, then `.metric`, `.by` and `.estimator`."""
        texts = {
            ".metric": [request.name for request in self.requests],
            ".by": [request.by.text if request.by else None for request in self.requests],
            ".estimator": [self._shown_estimator(request) for request in self.requests],
        }
        hidden = {UNGROUPED, THRESHOLD}
        keys = {key.name: key[rows["outer"]] for key in self.units.outer_keys if key.name not in hidden}
        named = {name: pl.Series(name, each, pl.String)[rows["request"]] for name, each in texts.items()}
        return keys | named | self.threshold(rows)

    def threshold(self, rows: pl.DataFrame) -> dict[str, pl.Series]:
        """The value of a list of cuts that each row is about, if there is one."""
        if self.cut is None:
            return {}
        if THRESHOLD not in self.units.outer_keys.columns:
            values = pl.Series([None], dtype=pl.Float64).new_from_index(0, len(rows))
        else:
            values = self.units.outer_keys[THRESHOLD][rows["outer"]]
        return {self.cut: values.cast(pl.Int64) if self.cut == ".top_k" else values}

    def level_text(self, rows: pl.DataFrame) -> pl.Series:
        """The label that a row is about, null for all of them."""
        texts = pl.Series(".level", map(str, self.labels.values), dtype=pl.String)
        # what is below zero is no label
        return texts.gather(rows[LEVEL].cast(pl.UInt32, strict=False))

    def estimator_of(self, request: Request) -> str:
        """How labels are read by the first metric of a request."""
        return request.estimator(request.formulas[0][1], self.estimator, one_event=self.labels.event is not None)

    def _shown_estimator(self, request: Request) -> str:
        first, estimator = request.formulas[0][1], self.estimator_of(request)
        return ALL_LABELS if first.over_levels and estimator not in ONE_LABEL else estimator


def evaluate_requests(tally: Tally, requests: Sequence[Request], reading: Reading) -> list[Evaluated]:
    """Work out every metric of every group, in a number of queries that does not depend on the number of groups.

    With a list of cuts, class metrics are read at each of them, and the others once. Of an event that does not occur
    all values are null.
    """
    one_of("on_undefined", reading["on_undefined"], ON_UNDEFINED)
    labels = NUMBERS
    if not tally.needs.numbers:
        labels = labels_with_scores(
            tally,
            labels=reading["labels"],
            pos_label=reading["pos_label"],
            estimator=reading["estimator"],
            any_event=all(formula.given is not None for request in requests for _, formula in request.formulas),
            allow_unseen=True,
        )
    if tally.cut is None or not tally.cut.several:
        return [_evaluate(tally, tuple(requests), labels, reading)]
    cut = f".{tally.cut.way}"
    for request in requests:
        if len({formula.kind for _, formula in request.formulas}) > 1:
            msg = f"{request.name} compares metrics of labels and of scores, so it takes one {tally.cut.way} at a time."
            raise ArgumentError(msg)
    of_labels = tuple(request for request in requests if request.kind == "class")
    others = tuple(request for request in requests if request.kind != "class")
    found = [_evaluate(tally.at_each_cut(), of_labels, labels, reading, cut)] if of_labels else []
    return [*found, _evaluate(tally, others, labels, reading, cut)] if others else found


def labels_with_scores(
    tally: Tally,
    *,
    labels: Sequence[object] | None,
    pos_label: object,
    estimator: str | None,
    any_event: bool = False,
    allow_unseen: bool = False,
) -> Labels:
    """The labels of a call; where nothing else declares them, those that a mapping gives scores to."""
    mapped = tally.scores.labels if tally.scores else None
    if mapped is not None and (without := [label for label in tally.seen["truth"] if label not in mapped]):
        there = f"there is no column for {listed(without)}, only for {listed(mapped)}"
        msg = f"`probs`: {there}; give one for each label."
        raise ColumnError(msg)
    if labels is not None or mapped is None or tally.levels("truth"):
        return read_labels(
            tally, labels=labels, pos_label=pos_label, estimator=estimator, any_event=any_event,
            allow_unseen=allow_unseen,
        )  # fmt: skip
    found = read_labels(tally, labels=mapped, pos_label=pos_label, estimator=estimator)
    # a mapping says which labels there are, not that they are in order
    return replace(found, in_order=not any(isinstance(value, str) for value in found.values))


def _evaluate(
    tally: Tally, requests: tuple[Request, ...], labels: Labels, reading: Reading, cut: str | None = None
) -> Evaluated:
    asked = reading["estimator"]
    formulas = list(dict.fromkeys(formula for request in requests for _, formula in request.formulas))
    stepping = [name for request in requests for name, formula in request.formulas if formula.counts_steps]
    steps = bool(stepping) and labels.event is None
    ordered = [name for request in requests for name, formula in request.formulas if formula.reads_label_order]
    pair = len(labels.values) <= len(("one", "other"))
    if not labels.in_order and (steps or (ordered and not pair)):
        what = "how many levels truth and estimate are apart" if steps else "in steps from label to label"
        msg = (
            f"{(stepping if steps else ordered)[0]} counts {what}, but {listed(labels.values)} have no "
            "order: list them in order as `labels=[…]`, or make the columns Enums."
        )
        raise LabelError(msg)
    together: dict[tuple[str, bool | None, Table], list[tuple[Request, Formula]]] = {}
    for request in requests:
        for _, formula in request.formulas:
            estimator = request.estimator(formula, asked, one_event=labels.event is not None)
            key = (estimator, _apart(request, formula), Table.of(formula, estimator))
            together.setdefault(key, []).append((request, formula))
    tables: dict[Table, frozenset[Statistic]] = {}
    for (_, _, table), pairs in together.items():
        tables[table] = tables.get(table, frozenset()).union(*(formula.all_terms for _, formula in pairs))
    in_order = [
        name
        for request in requests
        for name, formula in request.formulas
        if any(term.cumulative for term in formula.all_terms)
    ]
    if in_order:
        _check_order(tally, labels, in_order[0])
    # what is not grouped comes first, so that it and the rest are two runs of units
    bys = sorted(dict.fromkeys(request.by for request in requests), key=lambda by: by is not None)
    scores = scores_of_levels(tally, labels) if any(table.kind == "prob" for table in tables) else {}
    sure = reading["interval"] is not None
    squares = sure and tally.weights is not None
    units, known = count_units(tally, labels, bys, tables, scores, steps=steps, squares=squares)
    ungrouped = units.spans[None][1] if None in units.spans else 0
    blocks: dict[tuple[str, bool | None, Formula], pl.DataFrame] = {}
    for (estimator, grouped, table), mine in together.items():
        border = ungrouped * _height(table, labels)
        run = slice(border if grouped else 0, border if grouped is False else None)
        work = _Work(tally, labels, units, scores, table, [by for by in bys if grouped in (None, by is not None)])
        for formula, block in _blocks(work, known[table][run], mine, formulas, estimator, sure=sure).items():
            blocks[estimator, grouped, formula] = block
    pieces: list[pl.DataFrame] = []
    described: list[tuple[int, int, str, str, int]] = []
    for number, request in enumerate(requests):
        first, size = units.spans[request.by]
        for place, (name, formula) in enumerate(request.formulas):
            part = int(place >= len(request.formulas) - request.less)
            estimator = request.estimator(formula, asked, one_event=labels.event is not None)
            grouped = _apart(request, formula)
            tall = len(labels.levels) if estimator in ONE_LABEL and formula.kind != "numeric" else 1
            tall = len(labels.values) if formula.given in {"truth", "estimate"} else tall
            start = first - ungrouped if grouped else first
            pieces.append(blocks[estimator, grouped, formula].slice(start * tall, size * tall))
            described.append((number, part, name, estimator, request.min_n))
    rows = pl.concat(pieces, how="diagonal" if len({tuple(piece.columns) for piece in pieces}) > 1 else "vertical")
    piece = spread(range(len(pieces)), [len(each) for each in pieces])
    schema = {"request": pl.Int32, PART: pl.Int8, "name": pl.String, "estimator": pl.String, "min_n": pl.Int64}
    about = zip(schema.items(), zip(*described, strict=True), strict=True)
    rows = rows.hstack([pl.Series(name, values, dtype)[piece] for (name, dtype), values in about])
    marked = _mark(rows, units, requests, na_rm=reading["na_rm"], unseen=labels.unseen)
    return Evaluated(marked, requests, units, labels, asked, cut)


def _apart(request: Request, formula: Formula) -> bool | None:
    """Whether it is worked out with those that compare groups, or with the others; None where all are one query."""
    return None if formula.way == "sums" else request.by is not None


def _height(table: Table, labels: Labels) -> int:
    """How many rows a table has for each unit."""
    if table.given is not None:
        return len(labels.values) ** (1 if table.given == "nothing" else 2)
    return 1 if table.kind == "numeric" else len(labels.levels) * (2 if table.sides else 1)


def scores_of_levels(tally: Tally, labels: Labels) -> dict[int, str]:
    """The name of the score of each label that is read."""
    scores = tally.scores
    if scores is None:
        return {}
    if not scores.several:
        if labels.event is None:
            msg = (
                f"`probs`: {scores.columns[0].name!r} is one column of scores, and the labels {listed(labels.values)} "
                "are read all together; give a column for each label, as `probs={label: column}`."
            )
            raise ColumnError(msg)
        return {labels.event: "0"}
    if len(scores.columns) != len(labels.values):
        msg = (
            f"`probs`: {len(scores.columns)} columns of scores for the {len(labels.values)} labels "
            f"{listed(labels.values)}; give one for each, as `probs={{label: column}}`."
        )
        raise ColumnError(msg)
    names = [column.name for column in scores.columns]
    texts = [str(value) for value in labels.values]
    if scores.labels is not None:
        if unknown := [value for value in scores.labels if value not in labels.values]:
            msg = f"`probs`: {listed(unknown)} is none of the labels {listed(labels.values)}."
            raise ColumnError(msg)
        places = [scores.labels.index(value) for value in labels.values]
    else:
        meant = [
            next((place for place, text in enumerate(texts) if name in (text, f".pred_{text}")), None) for name in names
        ]
        known = [place for place in meant if place is not None]
        if len(set(known)) == len(names) and not labels.in_order:
            # labels have no order that columns could be in, but columns have their names
            return {level: str(known.index(level)) for level in labels.levels}
        if (len(known) < len(names) and not labels.in_order) or (len(known) == len(names) and known != sorted(known)):
            pairs = ", ".join(f"{value!r}: …" for value in labels.values)
            msg = (
                f"`probs`: the columns {listed(names)} are not clearly in the order of the labels "
                f"{listed(labels.values)}; write `probs={{{pairs}}}`."
            )
            raise ColumnError(msg)
        places = list(range(len(names)))
    return {level: str(places[level]) for level in labels.levels}


def _check_order(tally: Tally, labels: Labels, name: str) -> None:
    """Statistics up to a label need labels, and their columns, in one order."""
    given = tally.scores.labels if tally.scores else None
    if labels.event is None and (not labels.in_order or (given is not None and list(given) != list(labels.values))):
        msg = (
            f"{name} reads labels in order, but {listed(labels.values)} have none that the columns of `probs` share: "
            "list labels and columns in order, `labels=[…]` and `probs=[…]`."
        )
        raise LabelError(msg)


@dataclass(frozen=True, eq=False, repr=False)
class _Work:
    """What is needed to work out the formulas of a table that are not over sums."""

    tally: Tally
    labels: Labels
    units: Units
    scores: Mapping[int, str]
    table: Table
    bys: list[By | None]

    def values(self, formulas: Collection[Formula], whose: Whose) -> pl.DataFrame | None:
        """Their values in the rows of the table, in columns named by the formulas."""
        formulas = [formula for formula in dict.fromkeys(formulas) if formula.way != "sums"]
        if not formulas:
            return None
        found = [self._of(by, formulas, whose) for by in self.bys]
        return pl.concat(found)

    def _of(self, by: By | None, formulas: list[Formula], whose: Whose) -> pl.DataFrame:
        labels, table = self.labels, self.table
        if table.kind == "class":
            cells = cells_of(self.tally, labels, self.units, by)
            all_labels = labels.values if labels.event is None else None
            return class_values(cells, formulas, labels.levels, all_labels, whose, self.units.spans[by][1])
        rows = rows_of(self.tally, labels, self.units, by, table.reads)
        levels = [Level(0, "")]
        if table.kind == "prob":
            levels = [Level(level, self.scores[level], both_sides=table.sides) for level in labels.levels]
        values = row_values(rows, formulas, levels, whose, pairs=table.pairs)
        return pl.concat([values] * 2) if table.sides else values


def _blocks(
    work: _Work,
    known: pl.DataFrame,
    pairs: list[tuple[Request, Formula]],
    formulas: list[Formula],
    estimator: str,
    *,
    sure: bool,
) -> dict[Formula, pl.DataFrame]:
    """The values of some formulas over one table, beside those of the contexts that their aggregates ask for."""
    units, table = work.units, work.table
    wanted = {formulas.index(formula): formula for _, formula in pairs}

    def pooled(what: Context) -> pl.DataFrame:
        unit = known[UNIT]
        sizes = enumerate(size for _, size in units.spans.values())
        by = pl.concat([pl.Series([place], dtype=pl.Int32).new_from_index(0, size) for place, size in sizes])
        return pool(known, [units.outer[unit], by[unit]], units.apart[unit], what)

    beside = _beside(wanted, binned=work.tally.binned, sure=sure)

    def values(known: pl.DataFrame, whose: Whose, mine: Mapping[int, Formula]) -> dict[int, pl.DataFrame]:
        there = derived(table, known)
        for prefix in {prefix for formula in mine.values() for prefix in formula.beyond}:
            others = derived(table, pooled("overall" if prefix == OVERALL else "rest"))
            there = there.hstack([column.alias(prefix + column.name) for column in others])
        of_rows = work.values(mine.values(), whose)
        return evaluate(there if of_rows is None else there.hstack(of_rows), mine, estimator)

    found = values(known, "own", wanted | {place: each for place, (_, _, each) in beside.items()})
    for place, (key, name, _) in beside.items():
        found[key] = found[key].with_columns(found.pop(place)["estimate"].alias(name))
    if work.tally.binned:
        # what is not worked out from bins is exact
        exact = pl.lit(0.0).alias(ERROR)
        found = {key: each if ERROR in each.columns else each.with_columns(exact) for key, each in found.items()}
    for context in CONTEXTS:
        # what compares a group with the others has no value for all of them
        asking = [formula for request, formula in pairs if request.aggregate and context in request.aggregate.contexts]
        apart = {key: formula for key, formula in wanted.items() if formula in asking and not formula.compares}
        if apart:
            for key, block in values(pooled(context), context, apart).items():
                found[key] = found[key].hstack([block["estimate"].alias(context)])
    return {wanted[key]: block for key, block in found.items()}


def _beside(wanted: Mapping[int, Formula], *, binned: bool, sure: bool) -> dict[int, tuple[int, str, Formula]]:
    """Formulas of how sure others are: what they are about, the column of their values, and the formula."""
    found: dict[int, tuple[int, str, Formula]] = {}
    for key, formula in wanted.items():
        about = {ERROR: formula.bound} if binned and formula.way == "rows" else {}
        about |= formula.spreads if sure else {}
        found |= {-1 - len(found) - place: (key, name, each) for place, (name, each) in enumerate(about.items())}
    return found


def _mark(rows: pl.DataFrame, units: Units, requests: Sequence[Request], *, na_rm: bool, unseen: bool) -> pl.DataFrame:
    """The state of each value; groups that are not compared taken out, those others are compared with marked."""
    every = _same(UNSEEN, unseen, pl.Boolean(), len(rows))
    # of an event that does not occur nothing is known, because it may be a slip
    estimate = _without(rows["estimate"], every)
    unit, count, denominator = (rows[name] for name in (UNIT, "n", "denominator"))
    apart, suppressed, none = units.apart[unit], rows["reason"] == SUPPRESSED, estimate.is_null()
    incomplete, few = (rows["rows"] > count) & (not na_rm), denominator < rows["min_n"]
    # of those that are met the last one counts
    states = {
        "levels_left_out": rows["levels_left_out"], "infinite": estimate.is_infinite(), "reason": none,
        "zero_denominator": none & (count == 0), "below_min_n": few, SUPPRESSED: suppressed,
        "missing_values": incomplete, UNSEEN: every, "left_out": apart,
    }  # fmt: skip
    status = _same("status", "ok", pl.String(), len(rows))
    for state, met in states.items():
        if met.any():
            said = rows[state] if state == "reason" else _same("status", state, pl.String(), len(rows))
            status = said.zip_with(met, status)
    references = [
        (number, place, True)
        for number, request in enumerate(requests)
        if request.by is not None and request.aggregate is not None and request.aggregate.reference is not None
        for place in units.find(request.by, request.aggregate.reference, request.name)
    ]
    is_reference = _same("is_reference", value=False, dtype=pl.Boolean(), length=len(rows))
    if references:
        schema = {"request": pl.Int32, UNIT: pl.Int32, "is_reference": pl.Boolean}
        chosen = pl.DataFrame(references, schema=schema, orient="row")
        keys = ["request", UNIT]
        found = rows[keys].join(chosen, on=keys, how="left", maintain_order="left")
        is_reference = found["is_reference"].fill_null(value=False)
    by_label = (rows["estimator"] == "one_vs_rest") | (rows["estimator"] == ALL_LABELS)
    all_labels = _same(LEVEL, NO_LEVEL, pl.Int32(), len(rows))
    marked = [
        units.outer[unit].alias("outer"),
        units.text[unit].alias("text"),
        apart.alias("apart"),
        status.alias("status"),
        _without(estimate, suppressed).alias("rate"),
        denominator.alias("about"),
        _without(estimate, few | suppressed | incomplete | apart),
        _without(rows["size"], apart),
        # what is left of a group says nothing about it
        _without(count, suppressed),
        _without(denominator, suppressed),
        is_reference,
        rows[LEVEL].zip_with(by_label & rows[LEVEL].is_not_null(), all_labels),
    ]
    named = {each.name for each in marked}
    return rows[[name for name in rows.columns if name not in named]].hstack(marked)


def _same(name: str, value: object, dtype: pl.DataType, length: int) -> pl.Series:
    """A column of one value."""
    return pl.Series(name, [value], dtype).new_from_index(0, length)


def _without(column: pl.Series, lost: pl.Series) -> pl.Series:
    """A column with nothing where it is lost."""
    return column.set(lost, None) if lost.any() else column

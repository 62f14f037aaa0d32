"""Sensitivity of a gate: the share of wrong truths, missing truths or wrong groups that would change its verdict.

Errors move rows from cell to cell: a wrong truth moves a row from `tp` to `fp`, a missing one from the rows selected
without a truth to either, a wrong group moves it to the same cell of another group. So only the counts of cells by
group are needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import polars as pl

from tidyfair.calling import Evaluable, GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, Run, metric_set
from tidyfair.errors import ArgumentError, in_short
from tidyfair.evaluation import CELLS, Evaluated, LabelCounts, evaluate_specs
from tidyfair.inference.gates import Gate, Side, gate_of
from tidyfair.inference.models import influences_of
from tidyfair.inference.on_data import CalledOnTallies, refuse_several_cuts
from tidyfair.inference.result_frames import frame_of, no_rows, outer_keys_of, schema_of, with_outer_key
from tidyfair.intervals import in_progress, is_of_cells, values_of_tables
from tidyfair.specs import (
    Array,
    By,
    Column,
    Contrast,
    Options,
    difference,
    formulas_of,
    names_of,
    number,
    refuse_unknown_keywords,
)
from tidyfair.specs.result_kinds import SENSITIVITY, ResultKind
from tidyfair.tallies import HIDDEN, Tally, open_frame

__all__ = ["VerdictSensitivity", "verdict_sensitivity"]

WRONG_TRUTH, MISSING_TRUTH, WRONG_GROUP = "wrong truth", "missing truth", "wrong group"
_REFUSED = {
    **dict.fromkeys(("interval", "conf_level", "explain"), ": it judges as the gate does"),
    **dict.fromkeys(
        ("case_weights", "cluster", "score_bins", "parts", "keep_rows", "estimator"), ": it counts independent rows"
    ),
}
_NAMES = tuple(CELLS)
_MOVES = {
    WRONG_TRUTH: (("tp", "fp"), ("fp", "tp"), ("fn", "tn"), ("tn", "fn")),
    MISSING_TRUTH: (
        ("selected_only", "tp"), ("selected_only", "fp"), ("unselected_only", "fn"), ("unselected_only", "tn"),
    ),
    WRONG_GROUP: tuple((name, name) for name in _NAMES),
}  # fmt: skip
"""The cells that rows with an error may leave and enter; of the wrong group, those of another group."""
_FILLED = (("tp", "fp", "selected_only"), ("fn", "tn", "unselected_only"))
"""The cells that rows without a truth may belong to, by their estimate."""
_SCENARIO, _ROWS = "\0scenario", "\0rows"
_TRUTH, _ESTIMATE = "\0truth", "\0estimate"
_COLUMNS: dict[str, Any] = {
    "truth": Column(_TRUTH), "estimate": Column(_ESTIMATE), "frequency_weights": Column(_ROWS),
    "group_by": Column(_SCENARIO),
}  # fmt: skip
"""The columns of scenarios by their roles."""
_MOST_GROUPS = 30
_MOST_SCENARIOS, _FEWEST_STEPS, _MOST_STEPS = 40_000, 4, 32
_MOST_IN_ORDER = 3
"""The most kinds of moves of which all orders are tried."""
_PRECISION = 200
"""Rows are counted up to this part of them."""
_NO_EFFECT = 1e-12
"""Moves that add less to a value, and less relative to the most that one adds, add nothing but rounding errors."""
_MANY_ROWS = 1e8
"""Moves in larger groups are compared in a group of so many rows, where what a row adds is no rounding error."""
_SHOWN = schema_of(SENSITIVITY)


@dataclass(frozen=True)
class VerdictSensitivity(CalledOnTallies):
    """A gate whose verdicts are tried by errors of the data, as a callable on dataframes; see `verdict_sensitivity`.

    It takes the arguments of a metric of labels, with at most one threshold.

    Returns:
        For each disparity and outer group one row for each kind of `.error` and each `.group` in which it happens:
        the smallest `.share` of the `.n` rows (`.rows` of them) that, in the worst case, changes the `.verdict` into
        the one in `.becomes`, if these rows are `.moved` from cell to cell, or `.to` another group; null if even all
        rows do not change it. For missing truths, `.lowest` and `.highest` are the smallest and the largest `.estimate`
        over all possible truths; the row without a group covers all groups, and has only these. They are null for
        aggregates other than ranges, and if a group may be without a value. A disparity without a truth, such as
        demographic parity, has rows for wrong groups only; without groups there are no rows.
    """

    subject: ClassVar[str] = "verdict_sensitivity()"
    kind: ClassVar[ResultKind] = SENSITIVITY
    _in_words: ClassVar[tuple[str, ...]] = ("gate",)
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    gate: Gate
    missing_difference: float = 1.0
    """The largest difference of the shares of events among rows without and with a truth."""

    @property
    def _run(self) -> Run:
        return self.gate.metrics.run

    def _listed(self) -> Iterable[Any]:
        return self.gate.metrics

    def _fixed(self) -> dict[str, Any]:
        return super()._fixed() | dict(self.gate.options)

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        refuse_several_cuts(self.subject, tally)
        if HIDDEN in tally.cells.columns or tally.weights is not None:
            msg = "verdict_sensitivity() counts rows, so it does not accept tallies with weights or suppressed cells."
            raise ArgumentError(msg)
        self._run.check_occurs(tally, options)
        if self._run.evaluate(tally, options)[0].labels.event is None:
            msg = "verdict_sensitivity() compares one label with the rest; give it as `pos_label=`."
            raise ArgumentError(msg)
        judged: list[tuple[Any, tuple[Side, float], Evaluated]] = []
        for metric, limit in zip(self.gate.metrics.metrics, self.gate.limits, strict=True):
            by = cast("GroupwiseMetric", metric).by
            by.refuse_memberships(self.subject)
            # the groups of two sides are those of the columns, too
            plain: Any = replace(metric, by=By(by.columns, policy=by.policy), aggregate=difference())
            (evaluated,) = evaluate_specs(tally, [plain], options)
            judged.append((metric, limit, evaluated))
        keys = outer_keys_of(judged[0][-1])
        tables = [no_rows(keys, _SHOWN)]
        outers = range((len(keys) or 1) if tally.row_count else 0)
        for outer, (metric, limit, evaluated) in itertools.product(outers, judged):
            study = _Study.of(metric, limit, self.gate.conf_level, evaluated, outer)
            table = replace(study, missing_difference=self.missing_difference).table()
            tables.append(with_outer_key(keys, outer, table))
        return pl.concat(tables)


@dataclass(frozen=True)
class _Line:
    """An error of one kind in one group that grows row by row: moves that are made one after the other."""

    error: str
    group: int
    to: int | None
    moves: tuple[tuple[int, int], ...]
    """Cells that rows leave and enter."""

    def applied(self, cells: Array, rows: int) -> Array:
        """The cells after so many rows have been moved."""
        moved, target = cells.copy(), self.group if self.to is None else self.to
        for source, entered in self.moves:
            count = min(rows, moved[self.group, source])
            moved[self.group, source] -= count
            moved[target, entered] += count
            rows -= count
        return moved

    def in_words(self, rows: int, cells: Array) -> str:
        """The moves that are made."""
        texts: list[str] = []
        for source, entered in self.moves:
            if rows > 0:
                texts.append(_NAMES[source] if source == entered else f"{_NAMES[source]} to {_NAMES[entered]}")
            rows -= int(cells[self.group, source])
        return ", ".join(texts)


@dataclass(eq=False)
class _Turn:
    """The first change of the verdict along a line, and the rows between which it lies."""

    line: _Line
    low: int
    """Rows that do not turn it."""
    high: int
    """Rows that turn it."""
    becomes: str
    """The verdict with `high` rows."""

    @property
    def subject(self) -> tuple[str, int]:
        """The kind of error, and the group in which it happens."""
        return self.line.error, self.line.group

    @property
    def is_found(self) -> bool:
        """True where the rows are as near as they are counted."""
        return self.high - self.low <= max(1, self.high // _PRECISION)


@dataclass(frozen=True, eq=False)
class _Study:
    """A disparity of one outer group, its limit, and the cells of its groups."""

    metric: GroupwiseMetric
    gate: Gate
    cells: Array
    """Groups by cells."""
    unknown: Array
    """The cells of people whose group is unknown, in which no errors are tried."""
    keys: pl.DataFrame
    """The values of the feature in each group, unknown ones last."""
    texts: list[str]
    """The groups as results show them."""
    missing_difference: float = 1.0

    @classmethod
    def of(cls, metric: Any, limit: tuple[Any, float], conf_level: float, evaluated: Evaluated, outer: int) -> _Study:
        """Count the cells of the groups of an outer group."""
        ((by, (first, size)),) = evaluated.group_cells.spans.items()
        span, names = slice(first, first + size), names_of(metric.by.columns)
        index, cells = evaluated.group_cells.indices[by], evaluated.evaluator.cells
        levels = [cast("int", evaluated.labels.event)]
        counts = LabelCounts(cells.truth, cells.estimate, index.of_cell, size, levels, cells.complete)
        by_name = counts.of(cells.measure("n"))
        counted = np.stack([by_name[name][0] if name in by_name else np.zeros(size) for name in _NAMES], axis=1)
        is_own, is_unknown = evaluated.group_cells.outer[span] == outer, evaluated.group_cells.unknown[span]
        known, unknown = np.flatnonzero(is_own & ~is_unknown), np.flatnonzero(is_own & is_unknown)
        if len(known) > _MOST_GROUPS:
            msg = (
                f"verdict_sensitivity() accepts at most {_MOST_GROUPS} groups, but {metric.name} has {len(known)}; "
                "pool small groups first."
            )
            raise ArgumentError(msg)
        # the groups of scenarios are columns, whatever they were in the data, and decisions have been made
        pairs = zip(metric.metrics, evaluated.plan.requested, strict=False)
        metrics = tuple(replace(part, definition=requested.formula) for part, requested in pairs)
        plain = replace(metric, metrics=metrics, by=replace(metric.by, columns=tuple(map(Column, names))))
        gate, keys = Gate(metric_set(plain), (limit,), conf_level), index.keys_named(names)
        counted = counted.astype(np.int64)
        return cls(
            plain, gate, counted[known], counted[unknown], keys[np.concatenate([known, unknown])],
            evaluated.group_cells.text[first + known].to_list(),
        )  # fmt: skip

    @property
    def errors(self) -> tuple[str, ...]:
        """The kinds of errors that may change the disparity."""
        reads_truth = any("truth" in formula.reads for formula in formulas_of(self.metric))
        return (WRONG_TRUTH, MISSING_TRUTH, WRONG_GROUP) if reads_truth else (WRONG_GROUP,)

    def judged(self, scenarios: Sequence[Array]) -> pl.DataFrame:
        """The verdicts on some scenarios, in their order."""
        stacked = np.stack([np.concatenate([cells, self.unknown]) for cells in scenarios])
        scenario, group, cell = (stacked > 0).nonzero()
        pairs = list(CELLS.values())
        data = self.keys[group].with_columns(
            pl.Series(_SCENARIO, scenario),
            pl.Series(_TRUTH, [pairs[index][0] for index in cell], dtype=pl.Boolean),
            pl.Series(_ESTIMATE, [pairs[index][1] for index in cell], dtype=pl.Boolean),
            pl.Series(_ROWS, stacked[scenario, group, cell]),
        )
        options = Options(
            **_COLUMNS, labels=[False, True], pos_label=True, on_undefined="ignore", explain=True, interval="auto"
        )
        tally = self.gate.metrics.run.count(open_frame(data, options.group_by), options)
        return self.gate.judged(tally, options).sort(_SCENARIO)

    # Kinds of errors

    def lines(self) -> Iterator[_Line]:
        """All errors that are tried, in the order in which moves have most effect, and in others."""
        scale = np.maximum(self.cells.sum(axis=1) / _MANY_ROWS, 1)
        groups = range(len(self.cells))
        for formula, sign in itertools.product(formulas_of(self.metric), (1, -1)):
            effect = sign * np.nan_to_num(influences_of(formula, self.cells / scale[:, None]))
            for group, error in itertools.product(groups, self.errors):
                if error != WRONG_GROUP:
                    moves = [(_NAMES.index(source), _NAMES.index(entered)) for source, entered in _MOVES[error]]
                    gains = {move: float(effect[group, move[1]] - effect[group, move[0]]) for move in moves}
                    yield from self._ordered(error, group, None, gains)
            for group, other in itertools.permutations(groups, 2):
                # a row of a scaled group stands for `scale` rows, and the other group changes the other way
                rows = min(scale[group], scale[other])
                changes = effect[group] * (rows / scale[group]) + effect[other] * (rows / scale[other])
                gains = {(cell, cell): float(change) for cell, change in enumerate(changes)}
                yield from self._ordered(WRONG_GROUP, group, other, gains)

    def _ordered(
        self, error: str, group: int, to: int | None, gains: Mapping[tuple[int, int], float]
    ) -> Iterator[_Line]:
        """Lines of the moves that have an effect, in several orders."""
        least = _NO_EFFECT * max(1, *map(abs, gains.values()))
        useful = [move for move, gain in gains.items() if gain > least and self.cells[group, move[0]] > 0]
        useful.sort(key=lambda move: -gains[move])
        orders = [tuple(useful), tuple(useful[::-1])]
        if len(useful) <= _MOST_IN_ORDER:
            orders = list(itertools.permutations(useful))
        for moves in dict.fromkeys(orders):
            if moves:
                yield _Line(error, group, to, moves)

    # Turning the verdict

    def table(self) -> pl.DataFrame:
        """One row for each kind of error and group, with the fewest rows that turn the verdict."""
        now = self.judged([self.cells]).row(0, named=True)
        fewest = self._fewest_rows(now[".verdict"]) if now[".estimate"] is not None else {}
        common = {name: now[name] for name in (".metric", ".by", ".estimate", ".limit", ".verdict")}
        table: list[dict[str, Any]] = []
        for error in self.errors:
            sources = [name in dict(_MOVES[error]) for name in _NAMES]
            exposed = self.cells[:, sources].sum(axis=1).tolist()
            for group, text in enumerate(self.texts):
                row = common | {".error": error, ".group": text, ".n": exposed[group]}
                if error == MISSING_TRUTH:
                    row |= self._bounds(group)
                if (error, group) in fewest:
                    turn = fewest[error, group]
                    line, rows = turn.line, turn.high
                    row |= {
                        ".to": None if line.to is None else self.texts[line.to], ".becomes": turn.becomes,
                        ".share": rows / exposed[group], ".rows": rows, ".moved": line.in_words(rows, self.cells),
                    }  # fmt: skip
                table.append(row)
            if error == MISSING_TRUTH:
                table.append(common | {".error": error, ".n": sum(exposed)} | self._bounds(None))
        return frame_of(table, _SHOWN)

    def _fewest_rows(self, verdict: str) -> dict[tuple[str, int], _Turn]:
        """For each kind of error and group the line on which fewest rows turn the verdict; all are halved together."""
        turns, fewest = self._turns(list(dict.fromkeys(self.lines())), verdict), dict[tuple[str, int], _Turn]()
        for _ in in_progress(itertools.count(), "searching"):
            for turn in turns:
                fewest[turn.subject] = min(fewest.get(turn.subject, turn), turn, key=lambda turn: turn.high)
            # lines that cannot do with fewer rows need no search
            waiting = [turn for turn in turns if not turn.is_found and turn.low < fewest[turn.subject].high]
            if not waiting:
                return fewest
            middles = [(turn.low + turn.high) // 2 for turn in waiting]
            scenarios = [turn.line.applied(self.cells, rows) for turn, rows in zip(waiting, middles, strict=True)]
            for turn, rows, seen in zip(waiting, middles, self.judged(scenarios)[".verdict"], strict=True):
                if seen == verdict:
                    turn.low = rows
                else:
                    turn.high, turn.becomes = rows, seen
        return fewest

    def _turns(self, lines: Sequence[_Line], verdict: str) -> list[_Turn]:
        """The first change of the verdict along each line that has one, by steps up to all rows that can be moved."""
        steps = max(_FEWEST_STEPS, min(_MOST_STEPS, _MOST_SCENARIOS // max(1, len(lines))))
        most = [int(self.cells[line.group, [*dict(line.moves)]].sum()) for line in lines]
        sizes = [np.unique(np.linspace(0, rows, steps + 1).astype(int)).tolist() for rows in most]
        along = [(line, *ends) for line, rows in zip(lines, sizes, strict=True) for ends in itertools.pairwise(rows)]
        turns: dict[_Line, _Turn] = {}
        scenarios = [line.applied(self.cells, high) for line, _, high in along]
        seen: list[str | None] = self.judged(scenarios)[".verdict"].to_list() if along else []
        for (line, low, high), becomes in zip(along, seen, strict=True):
            if becomes not in (verdict, None):
                turns.setdefault(line, _Turn(line, low, high, becomes))
        return list(turns.values())

    # Bounds of what is missing

    def _bounds(self, group: int | None) -> dict[str, float | None]:
        """The least and the most that the disparity may be, for missing truths of one group or of all."""
        unknown: dict[str, float | None] = {".lowest": None, ".highest": None}
        aggregate = self.metric.aggregate
        is_range = isinstance(aggregate, Contrast) and aggregate.to == "range"
        is_known = is_range and aggregate.kind in {"difference", "ratio"} and not self.metric.less
        if not is_known or (len(self.metric.formulas) > 1 and aggregate.across != "worst"):
            return unknown
        chosen = np.ones(len(self.cells), dtype=bool) if group is None else np.arange(len(self.cells)) == group
        pairs: list[tuple[float, float]] = []
        for formula in formulas_of(self.metric):
            # a rate is at its ends where as many, or as few, missing truths as may be are events
            filled: list[Array] = []
            for signs in itertools.product((1, -1), repeat=2):
                cells = self.cells.astype(float)
                for columns, sign in zip(_FILLED, signs, strict=True):
                    event, other, missing = (_NAMES.index(name) for name in columns)
                    rows = np.where(chosen, cells[:, missing], 0.0)
                    events = rows * self._shares_of_events(event, other, sign)
                    cells[:, [event, other, missing]] += np.stack([events, rows - events, -rows], axis=1)
                filled.append(cells)
            values, rows = values_of_tables(formula, np.stack(filled))
            compared = rows >= max(self.metric.policy.min_n, 1)
            usable = compared.all(axis=0)
            if (compared.any(axis=0) != usable).any() or usable.sum() < 2:
                return unknown
            values = values[:, usable]
            pairs.append(_range_bounds(values.min(axis=0), values.max(axis=0), ratio=aggregate.kind == "ratio"))
        # the worst of several metrics counts
        worst = min if aggregate.kind == "ratio" else max
        lowest, highest = (worst(ends) for ends in zip(*pairs, strict=True))
        return {".lowest": lowest, ".highest": highest}

    def _shares_of_events(self, event: int, other: int, sign: int) -> Array:
        """The largest, or the smallest, share of events among rows without a truth, in each group."""
        known = self.cells[:, [event, other]].astype(float)
        # where no truth is known, as of people who were refused, that of the others of the group stands for it
        every = self.cells[:, [_NAMES.index(name) for name in ("tp", "fn", "fp", "tn")]].reshape(-1, 2, 2).sum(axis=2)
        known = np.where(known.sum(axis=1, keepdims=True) > 0, known, every)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = known[:, 0] / known.sum(axis=1)
        return np.nan_to_num(share + sign * self.missing_difference, nan=(1 + sign) / 2).clip(0, 1)


def _range_bounds(low: Array, high: Array, *, ratio: bool) -> tuple[float, float]:
    """The ends of the range of values, each of which is anywhere between two ends of its own (Manski, 1989)."""
    if ratio:
        with np.errstate(divide="ignore", invalid="ignore"):
            quotients = low[:, None] / high
        np.fill_diagonal(quotients, 1)
        nearest = min(1.0, float(high.min() / low.max())) if low.max() > 0 else 1.0
        return float(quotients.min()), nearest
    gaps = high[:, None] - low
    np.fill_diagonal(gaps, 0)
    return max(0.0, float(low.max() - high.min())), max(0.0, float(gaps.max()))


@refuse_unknown_keywords
def verdict_sensitivity(
    given: Gate | Metric | GroupwiseMetric | MetricSet, *, below: float | None = None, above: float | None = None,
    conf_level: float | None = None, missing_difference: float = 1.0,
) -> VerdictSensitivity:  # fmt: skip
    """Compute the share of erroneous data that would change the verdict of a gate.

    Three kinds of errors are tried in each group: wrong truths, missing truths (which may have been anything), and
    members that belong to another group. The result is the smallest share that changes the verdict in the worst case;
    random errors would have to be much more frequent. For missing truths the result includes worst-case bounds of the
    disparity (Manski, 1989).

    Several orders of emptying cells are tried, and the best is followed; for rates this finds the smallest number of
    rows up to half a percent. Verdicts are judged one by one, without Holm's adjustment.

    Args:
        given: A gate of `check` or `four_fifths`, or disparities with a limit; only for metrics of labels.
        below: The limit of differences, unless a gate is given.
        above: The limit of ratios.
        conf_level: Confidence level of verdicts, 0.95 by default.
        missing_difference: The largest difference, for the bounds of the disparity, between the share of events among
            the rows of a group and estimate that have a truth and among those that have none; where all lack it, as
            those who were refused, from the share in the whole group. With 1 they may be anything.

    >>> from tidyfair import check, equal_opportunity
    >>> from tidyfair.datasets import lending
    >>> gate = check(equal_opportunity("sex"), below=0.1)
    >>> tried = verdict_sensitivity(gate)(lending(), "repaid", "approved", pos_label="yes")
    >>> tried.select(".error", ".group", ".verdict", ".becomes", pl.col(".share").round(3)).row(0)
    ('wrong truth', 'female', 'pass', 'not enough evidence', 0.046)
    """
    if isinstance(given, Gate):
        if (below, above, conf_level) != (None, None, None):
            msg = (
                "verdict_sensitivity() uses the limit and the confidence level of the gate; leave out `below=`, "
                "`above=` and `conf_level=`."
            )
            raise ArgumentError(msg)
        gate = given
    elif isinstance(given, Evaluable | GroupwiseFactory):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        gate = gate_of("verdict_sensitivity", given, below, above, conf_level)
    else:
        msg = (
            "verdict_sensitivity() takes a gate, or disparities with a limit, such as "
            f'`verdict_sensitivity(equal_opportunity("sex"), below=0.1)`, not {in_short(given)}.'
        )
        raise ArgumentError(msg)
    for metric in gate.metrics.metrics:
        if not isinstance(metric, GroupwiseMetric):
            msg = (
                f"verdict_sensitivity() needs disparities, such as equal_opportunity(…); {metric.name} does not "
                "compare groups."
            )
            raise ArgumentError(msg)
        for name, formula in metric.formulas:
            if not is_of_cells(formula):
                msg = f"verdict_sensitivity() takes metrics computed from counts of labels, not {name}."
                raise ArgumentError(msg)
    return VerdictSensitivity(gate, number("missing_difference", missing_difference, 0, 1))

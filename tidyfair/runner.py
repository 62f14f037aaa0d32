"""A question to data: its columns and counts sorted out, rows counted, the tally read, a tidy frame given back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import polars as pl

from tidyfair.errors import (
    ArgumentError,
    ColumnError,
    ConstantWarning,
    SelectionWarning,
    UndefinedError,
    UndefinedWarning,
    WeightError,
    listed,
    warn,
)
from tidyfair.evaluation.evaluated import evaluate_requests, labels_with_scores
from tidyfair.evaluation.results import EXPLANATION, LOST, complaints, tidy_groups, tidy_results
from tidyfair.intervals.dispatch import check_reading, group_intervals, result_intervals
from tidyfair.specs.arguments import flag, whole
from tidyfair.specs.columns import Column, are_columns, telling
from tidyfair.specs.formulas import Statistic, unprefixed
from tidyfair.specs.options import DEFAULTS, CallOptions, CountOptions, ReadOptions, refuse_reserved
from tidyfair.tallies.arrays import frame_of_arrays
from tidyfair.tallies.counting import count
from tidyfair.tallies.moments import Needs
from tidyfair.tallies.plans import counted_together
from tidyfair.tallies.source import open_frame
from tidyfair.tallies.tally import Key, Scores, Tally, check_tally
from tidyfair.tallies.thresholds import Cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.groups import Privileged
    from tidyfair.specs.options import Accepted, Reading, Request
    from tidyfair.tallies.source import Source

__all__: list[str] = []

_Counted: TypeAlias = "tuple[Tally, Sequence[Request]]"
"""A tally, and what it answers."""
_MOST_BINS = 2**16
_SHOWN = 10
_ROUNDED = 0.01
_NO_SCORES = "`probs`: the mapping from labels to columns is empty."
_FROM_SCORES = "scores as `probs=` with `threshold=`"


@dataclass(frozen=True, eq=False)
class Question:
    """Some metrics that are asked together; what a call does, and what tests and intervals ask step by step."""

    requests: tuple[Request, ...]

    def answer(self, data: object, truth: object, estimate: object, options: CallOptions) -> Any:
        """A tidy frame of the caller's kind."""
        source, counted, reading = self._counted_for(data, truth, estimate, options)
        return source.restore(self._report(counted, reading, explain=options.get("explain", False)))

    def by_group(self, data: object, truth: object, estimate: object, options: CallOptions) -> Any:
        """The values of the groups, as a tidy frame of the caller's kind."""
        source, counted, reading = self._counted_for(data, truth, estimate, options)
        return source.restore(self._groups(counted, reading))

    def _counted_for(
        self, data: object, truth: object, estimate: object, options: CallOptions
    ) -> tuple[Source, list[_Counted], Reading]:
        counting, reading = self._sorted_out(options)
        source = open_frame(data, options.get("group_by"))
        return source, self._counted(source, truth, estimate, self._in_parts(counting, reading)), reading

    def tally(self, data: object, truth: object, estimate: object, options: CountOptions) -> Tally:
        """What is counted of the rows."""
        counting, _ = self._sorted_out(cast("CallOptions", options), CountOptions)
        source = open_frame(data, options.get("group_by"))
        return self._count(source, truth, estimate, counting, self.requests)

    def compute(self, tally: Tally, options: ReadOptions, *, explain: bool) -> pl.DataFrame:
        """What a tally says."""
        _, reading = self._sorted_out(cast("CallOptions", options), ReadOptions)
        flag("explain", explain)
        return self._report([(tally, self.requests)], reading, explain=explain)

    def compute_by_group(self, tally: Tally, options: ReadOptions) -> pl.DataFrame:
        """What a tally says of groups."""
        _, reading = self._sorted_out(cast("CallOptions", options), ReadOptions)
        return self._groups([(tally, self.requests)], reading)

    # worked out once, so that many small calls stay cheap
    @cached_property
    def _formulas(self) -> list[tuple[str, Formula]]:
        """What it is worked out from, by name."""
        return [each for request in self.requests for each in request.formulas]

    def framed(
        self, roles: Mapping[str, object], by: Mapping[str, object] | None, group_by: Mapping[str, object] | None,
        ignore_index: object,
    ) -> tuple[pl.DataFrame, dict[str, Any]]:  # fmt: skip
        """Arrays as a frame, and which of its columns is what."""
        return frame_of_arrays(roles, by, group_by, ignore_index)

    def check_options(self, options: Mapping[str, Any], accepted: Accepted) -> None:
        """Refuse options that no call knows, or that belong to another step."""
        self._sorted_out(cast("CallOptions", options), accepted)

    def _sorted_out(self, options: CallOptions, accepted: Accepted = CallOptions) -> tuple[CountOptions, Reading]:
        """Options for counting and for reading; what is not accepted here is an error that says where it belongs."""
        given = cast("dict[str, Any]", options)
        known = accepted.__annotations__
        for name in (each for each in given if each not in known):
            owners = [
                (request, metric)
                for request in self.requests
                for metric, formula in request.formulas
                if name in dict(formula.options)
            ]
            if owners:
                request, owner = owners[0]
                way_out = f'fix it with `metric_tweak({owner}, "a name", {name}=…)`'
                if request.by is not None:
                    way_out = f"give it with the feature, `{request.name}({request.by!r}, {name}=…)`"
                msg = f"{name!r} is an option of a metric; {way_out}."
                raise ArgumentError(msg)
            if name in CallOptions.__annotations__:
                step = (
                    "counting: give it to `tally`"
                    if name in CountOptions.__annotations__
                    else "reading: give it to `compute`"
                )
                msg = f"{name!r} belongs to {step}."
                raise ArgumentError(msg)
            raise ArgumentError.unknown("argument", name, ["data", "truth", "estimate", *known])
        counting = {name: given[name] for name in CountOptions.__annotations__ if name in given}
        reading = {name: given.get(name, default) for name, default in DEFAULTS.items()}
        for name in ("na_rm", "explain", "keep_rows"):
            flag(name, reading.get(name, given.get(name, False)))
        found = cast("Reading", reading)
        check_reading(found)
        found.update(times=int(found["times"]), seed=int(found["seed"]))
        return cast("CountOptions", counting), found

    def _columns(
        self, truth: object, estimate: object, options: CountOptions
    ) -> tuple[dict[str, Column], Scores | None, Cut | None]:
        """What the arguments of a call name: columns, scores and how these are cut."""
        weights = options.get("case_weights")
        given = {"truth": truth, "estimate": estimate, "case_weights": weights}
        columns = {name: Column.of(value, name) for name, value in given.items() if value is not None}
        scores = _scores(options.get("probs"))
        if (bins := options.get("score_bins")) is not None:
            scores = self._in_bins(scores, bins)
        roles = {*columns, *(["probs"] if scores else [])}
        return columns, scores, Cut.of(cast("Mapping[str, object]", options), roles)

    def check_counted(self, tally: Tally, truth: object, estimate: object, options: CountOptions) -> None:
        """Refuse a tally that was counted for other columns or metrics than these."""
        columns, scores, cut = self._columns(truth, estimate, options)
        own = (columns.get("truth"), columns.get("estimate"), cut, columns.get("case_weights"), scores, self._needs)
        theirs = (tally.truth, tally.estimate, tally.cut, tally.weights, tally.scores, tally.needs)
        what = ("truth", "estimate", "threshold", "case_weights", "probs and score_bins", "metrics")
        if other := [name for name, mine, given in zip(what, own, theirs, strict=True) if mine != given]:
            msg = f"The tally was counted for other {listed(other)} than these."
            raise ArgumentError(msg)

    def _in_parts(self, options: CountOptions, reading: Reading) -> CountOptions:
        """The options with random parts of the rows, where intervals need to see how much sums vary."""
        wanted = reading["interval"] in {"auto", "bootstrap"} and options.get("cluster") is None
        return {"parts": reading["seed"], **options} if wanted else options

    @telling("counted the rows")
    def _counted(self, source: Source, truth: object, estimate: object, options: CountOptions) -> list[_Counted]:
        """The tallies that answer what is asked, and what each of them answers."""
        bys = [request.by for request in self.requests]
        sums = not (self._needs.rows or self._needs.compared or options.get("keep_rows"))
        # the checks of the columns come with the counting
        there = {root for by in bys if by for column in by.columns for root in column.roots} <= set(source.columns)
        passes = counted_together(source, bys) if sums and there else [bys]
        asked = [tuple(each for each in self.requests if each.by in together) for together in passes]
        return [(self._count(source, truth, estimate, options, mine), mine) for mine in asked]

    @telling("counted the rows")
    def _count(
        self, source: Source, truth: object, estimate: object, options: CountOptions, requests: Sequence[Request]
    ) -> Tally:
        columns, scores, cut = self._columns(truth, estimate, options)
        given = {*columns}
        if scores is not None:
            given.add("probs")
            for column in scores.columns:
                column.check(source.columns, "probs")
        if cut is not None:
            given.add("estimate")
            self._check_cut(cut, scores, source)
        self._check_roles(given)
        self._check_numbers(options, cut)
        _check_parts(options)
        frequency = options.get("frequency_weights")
        return count(
            source,
            self._keys(source, requests, options.get("cluster")),
            truth=columns.get("truth"),
            estimate=columns.get("estimate"),
            scores=scores,
            cut=cut,
            weights=columns.get("case_weights"),
            frequencies=None if frequency is None else Column.of(frequency, "frequency_weights"),
            needs=replace(self._needs, rows=True) if options.get("keep_rows") else self._needs,
            blocks=options.get("parts") if self._sums_vary else None,
        )

    def _check_cut(self, cut: Cut, scores: Scores | None, source: Source) -> None:
        """Refuse a cut of scores that these metrics, or the outer groups, cannot have."""
        if scores is not None and scores.several:
            msg = f"`{cut.way}` cuts one column of scores, that of the event; give `probs=` one column."
            raise ArgumentError(msg)
        if cut.several and self._needs.compared:
            of_one = self._needs.compared[0]
            name = next(name for name, formula in self._formulas if of_one in formula.all_terms)
            msg = f"{name} is about one selection, not a list of them: give one {cut.way}."
            raise ArgumentError(msg)
        if cut.way != "threshold" and source.sides is not None:
            msg = f"`{cut.way}` ranks rows within outer groups, and sides are made later; group by a column instead."
            raise ArgumentError(msg)

    def _in_bins(self, scores: Scores | None, bins: object) -> Scores:
        """The scores to be counted in bins, if that is enough for all metrics."""
        number_of = whole("score_bins", bins, 2, _MOST_BINS)
        of_order = [(name, each) for name, each in self._formulas if each.kind == "prob" and each.way != "sums"]
        if scores is None or not of_order:
            msg = (
                "`score_bins` is for metrics of the order of scores, such as roc_auc, with `probs=`; "
                "leave it out where there is none."
            )
            raise ArgumentError(msg)
        for name, formula in of_order:
            if formula.error_of_bins is None:
                msg = f"{name} needs the scores themselves: call it without `score_bins`."
                raise ArgumentError(msg)
        return replace(scores, bins=number_of)

    @property
    def _sums_vary(self) -> bool:
        """Whether it is not seen from counts how much its sums vary."""
        return any(formula.kind != "class" and formula.way == "sums" for _, formula in self._formulas)

    @cached_property
    def _needs(self) -> Needs:
        """What its formulas read beside counts of labels."""
        formulas = [formula for _, formula in self._formulas]
        scored = [formula for formula in formulas if formula.kind == "prob"]
        statistics = frozenset[str]().union(*(formula.statistics for formula in formulas))
        return Needs(
            terms=frozenset[Statistic]().union(*(formula.all_terms for formula in formulas)),
            numbers=any(formula.kind == "numeric" for formula in formulas),
            scores=bool(scored),
            sides=any(formula.over_levels and formula.way == "sums" for formula in scored),
            moments=any(
                unprefixed(name).startswith(("truth_mean", "truth_var", "estimate_", "covar")) for name in statistics
            ),
            rows=any(formula.way != "sums" and formula.kind != "class" for formula in formulas),
            order=any(formula.reads_row_order for formula in formulas),
        )

    def _check_probabilities(self, tally: Tally) -> None:
        """Refuse scores that are no probabilities where a metric needs them to be."""
        asking = [name for name, formula in self._formulas if formula.probabilities]
        # bins lie between 0 and 1
        scores = tally.scores if asking and not tally.binned else None
        for place, column in enumerate(scores.columns if scores else ()):
            ends = tally.cells.select(pl.col(f"least s{place}").min(), pl.col(f"most s{place}").max())
            low, high = ends.row(0)
            if low is not None and (low < 0 or high > 1):
                msg = (
                    f"`probs`: {column.name!r} holds values from {low:g} to {high:g}, but {asking[0]} needs "
                    "probabilities, between 0 and 1. Make these of logits by `probs=sigmoid(…)`, or take metrics of "
                    "their order, such as roc_auc."
                )
                raise ColumnError(msg)

    def _check_totals(self, tally: Tally) -> None:
        """Refuse probabilities of all labels that do not add up to 1."""
        asking = [name for name, formula in self._formulas if formula.probabilities]
        if asking and "least total" in tally.cells.columns:
            low, high = tally.cells.select(pl.col("least total").min(), pl.col("most total").max()).row(0)
            if low is not None and not 1 - _ROUNDED <= low <= high <= 1 + _ROUNDED:
                msg = (
                    f"`probs`: the columns add up to {low:.3g} to {high:.3g} in a row, but {asking[0]} needs the "
                    "probabilities of all labels, which add up to 1."
                )
                raise ColumnError(msg)

    def _check_numbers(self, options: Mapping[str, object], cut: Cut | None) -> None:
        """Refuse what means nothing for numbers, and weights that a formula would not see."""
        formulas = [each for each in self._formulas if each[1].kind == "numeric"]
        if formulas and cut is not None:
            msg = f"`{cut.way}` makes labels of scores, but {formulas[0][0]} reads numbers."
            raise ArgumentError(msg)
        for name, formula in formulas:
            if options.get("case_weights") is not None and formula.way == "rows" and "weight" not in formula.statistics:
                msg = f"{name} takes no weights; leave out `case_weights=`, or give its function a parameter `weight`."
                raise ArgumentError(msg)

    def _check_roles(self, there: set[str]) -> None:
        for name, formula in self._formulas:
            for role in sorted(formula.reads - there):
                what = {"truth": "true labels", "probs": "scores"}.get(role, "predicted labels")
                way_out = f"`{role}=`"
                if formula.kind == "numeric":
                    what = f"{'true' if role == 'truth' else 'predicted'} numbers"
                elif role == "estimate":
                    made = "`threshold=` to make labels of `probs`" if "probs" in there else _FROM_SCORES
                    way_out += f", or {made}"
                msg = f"{name} needs the column of {what}: {way_out}."
                raise ColumnError(msg)

    @staticmethod
    def _keys(source: Source, requests: Sequence[Request], cluster: object) -> tuple[Key, ...]:
        """The columns that rows are counted by; one that has two roles is counted by once."""
        refuse_reserved("group_by", source.outer)
        roles: dict[Column, Key] = {column: Key(column, "outer") for column in source.outer}
        for column in source.sides.columns if source.sides else ():
            roles.setdefault(column, Key(column, "side"))
        for request in requests:
            _check_features(request, source.outer)
            for column in request.by.columns if request.by else ():
                roles.setdefault(column, Key(column, "by"))
        if cluster is not None:
            column = Column.of(cluster, "cluster")
            if column in roles:
                msg = f"`cluster`: {column.name!r} is a group already, which cannot be what varies."
                raise ColumnError(msg)
            roles[column] = Key(column, "cluster")
        return tuple(roles.values())

    def evaluate(
        self, tally: Tally, reading: Reading, requests: Sequence[Request] | None = None, *, allow_unseen: bool = False
    ) -> list[Evaluated]:
        """The values of all groups, or what some requests ask, after the checks that need the whole of the data."""
        check_tally(tally)
        check_weights(tally)
        if tally.needs.numbers and (asked := [name for name in ("pos_label", "labels", "estimator") if reading[name]]):
            msg = f"`{asked[0]}` is about labels, but {self.requests[0].name} reads numbers."
            raise ArgumentError(msg)
        given = {"truth": tally.truth, "estimate": tally.estimate or tally.cut, "probs": tally.scores}
        self._check_roles({role for role, what in given.items() if what is not None})
        self._check_probabilities(tally)
        self._check_totals(tally)
        if not tally.needs.covers(self._needs):
            msg = "The tally was not counted for all of these metrics; count again with what is to be computed."
            raise ArgumentError(msg)
        asked = self.requests if requests is None else requests
        if not allow_unseen:
            self.check_occurs(tally, reading)
        return evaluate_requests(tally.on_sides(), asked, reading)

    def check_occurs(self, tally: Tally, reading: Mapping[str, Any]) -> None:
        """Refuse an event, or a value of a condition, that does not occur and may be a slip."""
        check_tally(tally)
        if reading.get("pos_label") is not None and not tally.needs.numbers:
            pos_label, estimator = reading["pos_label"], reading.get("estimator")
            labels_with_scores(tally, labels=reading.get("labels"), pos_label=pos_label, estimator=estimator)
        for sides, keys in _sides(tally, self.requests):
            if unseen := sides.unseen(keys):
                raise ArgumentError(unseen[0])

    def _groups(self, counted: Sequence[_Counted], reading: Reading) -> pl.DataFrame:
        found = [
            self._sure(tally, each, tidy_groups(each), reading).drop(LOST, strict=False)
            for tally, requests in counted
            for each in self.evaluate(tally, reading, requests, allow_unseen=True)
        ]
        return pl.concat(found, how="diagonal_relaxed") if len(found) > 1 else found[0]

    @staticmethod
    def _sure(tally: Tally, evaluated: Evaluated, table: pl.DataFrame, reading: Reading) -> pl.DataFrame:
        """A table with the intervals that are asked for."""
        if reading["interval"] is None:
            return table
        add = group_intervals if ".group" in table.columns else result_intervals
        return add(tally.on_sides(), evaluated, table, reading)

    def _report(self, counted: Sequence[_Counted], reading: Reading, *, explain: bool) -> pl.DataFrame:
        """The results as a frame, after telling the reader what has no value."""
        on_undefined = reading["on_undefined"]
        # intervals read who is left out
        explained = explain or reading["interval"] is not None
        parts: list[pl.DataFrame] = []
        messages: list[str] = []
        constant: list[str] = []
        for tally, requests in counted:
            for evaluated in self.evaluate(tally, reading, requests, allow_unseen=True):
                part = tidy_results(evaluated, undefined_is_null=on_undefined == "null", explain=explained)
                parts.append(self._sure(tally, evaluated, part, reading))
                if on_undefined in {"warn", "raise"}:
                    messages += complaints(evaluated, part)
                    messages += [remark for remark in _remarks(tally, evaluated) if remark not in messages]
                constant += _constant(evaluated)
        if messages and on_undefined == "raise":
            raise UndefinedError("; ".join(messages) + ".")
        _warn_of_selections(counted[0][0])
        if on_undefined == "warn":
            _warn_of_values(messages, constant)
        results = self._as_asked(parts)
        return results[[name for name in results.columns if explain or name not in EXPLANATION]]

    def _as_asked(self, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The parts of a result as one, metrics in the order in which they were asked."""
        if len(parts) == 1:
            return parts[0]
        order = {
            (request.name, request.by.text if request.by else None): index
            for index, request in enumerate(self.requests)
        }
        results = pl.concat(parts, how="vertical_relaxed")
        indices = [order[pair] for pair in results.select(".metric", ".by").rows()]
        return results[pl.Series(indices, dtype=pl.Int64).arg_sort()]


def _check_features(request: Request, outer: Sequence[Column]) -> None:
    """Refuse to compare what is no value of a group, or groups of which each outer group holds one."""
    if request.by is None and any(formula.given in {"truth", "estimate"} for _, formula in request.formulas):
        msg = f"{request.name} is that of groups: compare them, as by `separation(…)` or `new_groupwise_metric`."
        raise ArgumentError(msg)
    for column in request.by.columns if request.by else ():
        if column in outer:
            msg = (
                f"{request.name}: the data are grouped by {column.name!r}, so that each part holds a single group of "
                "it; group by another column, or compare another one."
            )
            raise ColumnError(msg)


def _warn_of_selections(tally: Tally) -> None:
    """Tell the reader of selections that are not quite what was asked for."""
    remarks = tally.remarks()
    if remarks:
        more = [f"and {len(remarks) - _SHOWN} more"] if len(remarks) > _SHOWN else []
        warn("; ".join([*remarks[:_SHOWN], *more]) + ".", SelectionWarning)


def _warn_of_values(messages: Sequence[str], constant: Sequence[str]) -> None:
    """Tell the reader which metrics have no value, and which cannot vary."""
    silence = '(on_undefined="ignore" silences this.)'
    if constant:
        names = ", ".join(dict.fromkeys(constant))
        warn(
            f"{names} cannot vary: this average over labels is the same whatever the data, because the shares of all "
            "labels add up. Read one label, `pos_label=`, or of disparities each, "
            f'`estimator="one_vs_rest"`. {silence}',
            ConstantWarning,
        )
    if messages:
        warn(f"{'; '.join(messages)}. {silence}", UndefinedWarning)


def _sides(tally: Tally, requests: Sequence[Request]) -> list[tuple[Privileged, pl.DataFrame]]:
    """The conditions that pool rows into sides, each with the keys that it is about."""
    every = [*(request.by.sides for request in requests if request.by), tally.sides]
    return [(each, tally.cells[tally.names(each.columns)]) for each in dict.fromkeys(every) if each is not None]


def _constant(evaluated: Evaluated) -> list[str]:
    """The names of the metrics that cannot vary, because an average over labels is the same whatever the data."""
    if evaluated.labels.event is not None:
        return []
    return [request.name for request in evaluated.requests if evaluated.estimator_of(request) in request.constant]


def _remarks(tally: Tally, evaluated: Evaluated) -> list[str]:
    """The labels and sides that are missing from the data, so that there is no value."""
    said = list(evaluated.labels.remarks)
    for sides, keys in _sides(tally, evaluated.requests):
        # an outer group that does not occur has no row, and nothing is missing
        said += sides.unseen(keys) if sides == tally.sides else sides.remarks(keys)
    return [sentence.removesuffix(".") for sentence in said]


def _check_parts(options: CountOptions) -> None:
    """Refuse parts that are no seed, or beside clusters, which vary instead."""
    parts = options.get("parts")
    if parts is not None:
        whole("parts", parts, 0)
    if parts is not None and options.get("cluster") is not None:
        msg = "`parts` and `cluster` both say what varies; give one of them."
        raise ArgumentError(msg)


def check_weights(tally: Tally) -> None:
    """Refuse weights that are all zero."""
    if tally.weights is not None and tally.cells["n"].sum() and not tally.cells["w"].sum():
        msg = f"`case_weights`: all values of {tally.weights.name!r} are zero."
        raise WeightError(msg)


def _scores(probs: object) -> Scores | None:
    """The columns of scores as they were given: one, a list in the order of the labels, or a mapping from labels."""
    if probs is None:
        return None
    if isinstance(probs, Mapping):
        mapping = cast("Mapping[Any, object]", probs)
        columns = tuple(Column.of(value, "probs") for value in mapping.values())
        if not columns:
            raise ColumnError(_NO_SCORES)
        return Scores(columns, tuple(mapping), several=True)
    if are_columns(probs):
        columns = tuple(Column.of(value, "probs") for value in probs)
        names = [column.name for column in columns]
        if len(columns) < len(("one", "other")) or len(set(names)) < len(names):
            msg = f"`probs` lists one column for each label, not {listed(names)}; one column stands without brackets."
            raise ColumnError(msg)
        return Scores(columns, several=True)
    return Scores((Column.of(probs, "probs"),))

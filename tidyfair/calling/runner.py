"""The steps of a call: count the rows, evaluate the counts, add intervals, make a tidy frame of the caller's kind."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import polars as pl

from tidyfair.errors import (
    ArgumentError,
    ConstantWarning,
    DirectionWarning,
    EngineWarning,
    MissingPredictionsWarning,
    SelectionWarning,
    UndefinedError,
    UndefinedWarning,
    UnknownGroupWarning,
    listed,
    warn,
)
from tidyfair.evaluation import (
    EXPLANATION,
    LOST,
    Evaluated,
    EvaluationPlans,
    Results,
    evaluate_specs,
    missing_in_words,
    read_labels,
    texts_of,
    tidy_groups,
    with_features,
)
from tidyfair.specs import (
    ELSEWHERE,
    OPTIONS,
    RESERVED,
    By,
    CallOptions,
    Column,
    MetricSpec,
    Options,
    Privileged,
    key_columns,
    named_formulas,
    names_of,
    unknown_keyword,
)
from tidyfair.specs.result_kinds import USUAL_LEVEL, with_level
from tidyfair.tallies import (
    CountPlan,
    Needs,
    OuterGroups,
    Source,
    Tally,
    check_readable,
    check_sizes,
    check_tally,
    check_threads,
    count,
    open_frame,
)

_Counted: TypeAlias = "tuple[Tally, Sequence[MetricSpec]]"
"""A tally, and the metrics that are read from it."""
_SILENCE = '(on_undefined="ignore" silences this.)'
_OUTER = "outer groups"
_SHOWN = 10
_MOST_KEPT = 16
_PLAIN = frozenset({str, int, float, bool, type(None)})
"""The types of keywords that are compared to those of the calls before."""
_HALF, _REVERSED = 0.5, 0.45
"""The concordance of a random order, and the one below which an order may be the reverse of the right one."""
_COVERAGE = frozenset({"selected", "unselected", "instances"})
"""The statistics of the share of rows that have a prediction."""


@dataclass(frozen=True, eq=False)
class Run:
    """Metrics that are evaluated together: whole calls, and the steps of a call for tests and intervals."""

    specs: tuple[MetricSpec, ...]

    @cached_property
    def needs(self) -> Needs:
        """The statistics that formulas read besides counts of labels."""
        return Needs.of(self.specs)

    @cached_property
    def _asked(self) -> dict[tuple[object, ...], Options]:
        """The options of the last calls, by their keywords."""
        return {}

    # Calls

    def results(self, data: object, options: Options) -> Any:
        """A tidy frame of the caller's kind."""
        source = open_frame(data, _outer_groups(options))
        results = self._results(self._counted(source, options), options)
        if options.interval is not None and options.conf_level != USUAL_LEVEL:
            results = with_level(results, options.conf_level)
        return source.restore(results)

    def groups(self, data: object, options: Options) -> Any:
        """The values of the groups, as a tidy frame of the caller's kind."""
        source = open_frame(data, _outer_groups(options))
        groups = self._groups(self._counted(source, options), options)
        if options.interval is not None and options.conf_level != USUAL_LEVEL:
            groups = with_level(groups, options.conf_level)
        return source.restore(groups)

    def results_of(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The results computed from a tally."""
        return self._results([(tally, self.specs)], options)

    def groups_of(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The values of the groups computed from a tally."""
        return self._groups([(tally, self.specs)], options)

    # Options

    def options(
        self, keywords: Mapping[str, Any], accepted: type[Any] = CallOptions, *, truth: Any = None, estimate: Any = None
    ) -> Options:
        """The options of a call, or of one of its steps, checked; and kept for the next call with the same ones."""
        check_threads(os.getpid())
        values: tuple[object, ...] = (truth, estimate, *keywords.values())
        kinds = tuple(map(type, values))
        asked = (accepted, *keywords, *values, *kinds)
        is_plain = _PLAIN.issuperset(kinds)
        if is_plain and (known := self._asked.get(asked)) is not None:
            return known
        for name in keywords:
            if name not in accepted.__annotations__:
                raise self.unknown_option(name, accepted.__annotations__)
        options = Options(truth=truth, estimate=estimate, **keywords)
        if is_plain:
            _keep(self._asked, asked, options)
        return options

    def unknown_option(self, name: str, accepted: Iterable[str]) -> ArgumentError:
        """The error for an option that does not exist, or that belongs to another step."""
        option = OPTIONS.get(name)
        for spec in self.specs:
            for metric, formula in spec.formulas:
                if name in dict(formula.options):
                    way_out = f'set it with `metric_tweak({metric}, "a name", {name}=…)`'
                    if spec.by is not None and _made_by(spec) == spec.name:
                        way_out = f"give it with the feature, `{spec.name}({spec.by!r}, {name}=…)`"
                    return ArgumentError(f"{name!r} is an option of a metric; {way_out}.")
            if spec.by is not None and option is not None and option.step == "comparison":
                way_out = f"`{_made_by(spec)}({spec.by!r}, {name}=…)`"
                return ArgumentError(f"{name!r} is an option of a comparison; give it with the feature, {way_out}.")
            if spec.by is None and name in ("to", "signed"):
                way_out = f'`{spec.name}.difference("column", {name}=…)`'
                return ArgumentError(
                    f"{name!r} is an option of a comparison, and {spec.name} makes none: write {way_out}."
                )
        if option is not None and option.step in ELSEWHERE:
            return ArgumentError(f"{name!r} {ELSEWHERE[option.step]}.")
        return unknown_keyword("argument", name, ["data", "truth", "estimate", *accepted])

    # Counting

    def check_independence(self, options: Options) -> None:
        """Refuse intervals and tests that would treat the rows of a list as independent of each other."""
        if options.cluster is not None or options.design is not None:
            return
        for term in self.needs.compared:
            if term.lists is not None:
                name = next(name for name, formula in named_formulas(self.specs) if term in formula.terms_of_lists)
                msg = (
                    f"{name}: the rows of a list depend on each other, so intervals and tests need to know which "
                    f"belong together: add `cluster={listed(names_of(term.compared_by[:1]))}`, or the column of users "
                    "who have several lists."
                )
                raise ArgumentError(msg)

    def tally(self, data: object, options: Options) -> Tally:
        """The counts of all metrics together."""
        return self.count(open_frame(data, _outer_groups(options)), options)

    def count(self, source: Source, options: Options) -> Tally:
        """The counts of all metrics together, for an opened frame."""
        return self.suppressed(count(source, self._plan(options, source.outer, source.sides)), options)

    def suppressed(self, tally: Tally, options: Options) -> Tally:
        """The tally without the small counts of groups that a call suppresses, and those that give these away."""
        if options.suppress_below is None:
            return tally
        bys = [spec.by for spec in self.specs if spec.by is not None]
        return tally.suppressed(bys, options.suppress_below)

    def _counted(self, source: Source, options: Options) -> list[_Counted]:
        """The tallies of a call, with the metrics that are read from them."""
        if options.interval is not None:
            self.check_independence(options)
        has_parts = options.cluster is not None or options.parts is not None or options.design is not None
        if options.interval not in {None, "bayes", "exact"} and not has_parts:
            # intervals need to see how much sums vary from part to part
            options = options.in_own_parts
        plan = self._plan(options, source.outer, source.sides, is_kept=False)
        # what is suppressed depends on all tables together
        passes = plan.passes(source) if plan.may_have_passes and options.suppress_below is None else [plan]
        counted: list[_Counted] = [(count(source, part), part.specs) for part in passes]
        if options.suppress_below is None:
            return counted
        return [(self.suppressed(tally, options), specs) for tally, specs in counted]

    def _plan(
        self, options: Options, outer: tuple[Column, ...] = (), sides: Privileged | None = None, *, is_kept: bool = True
    ) -> CountPlan:
        """The plan of a count, made once for all calls with these options."""
        made_for = (self, outer, sides, is_kept)
        plan = options.plans.get(made_for)
        if plan is None:
            plan = CountPlan.of(self.specs, self.needs, options, outer, sides, is_kept=is_kept)
            _keep(options.plans, made_for, plan)
        return plan

    def check_counted(self, tally: Tally, options: Options) -> None:
        """Refuse a tally that was counted for other columns or metrics than these."""
        plan = self._plan(options)
        pairs = {
            "truth": (plan.tally.truth, tally.truth),
            "estimate": (plan.tally.estimate, tally.estimate),
            "threshold": (plan.tally.cut, tally.cut),
            "case_weights": (plan.tally.weights, tally.weights),
            "probs and score_bins": (plan.tally.scores, tally.scores),
            "survival times, intervals or quantiles": (plan.tally.forecast, tally.forecast),
            "metrics": (plan.tally.needs, tally.needs),
        }
        other = [name for name, (wanted, counted) in pairs.items() if wanted != counted]
        if other:
            msg = f"The tally was counted with different {listed(other)}; use the same settings, or count again."
            raise ArgumentError(msg)

    # Evaluating

    def evaluate(
        self, tally: Tally, options: Options, specs: Sequence[MetricSpec] | None = None, *, allow_unseen: bool = False,
        are_features: bool = True,
    ) -> list[Evaluated]:  # fmt: skip
        """The values of all groups, of some metrics or all, after the checks that need the whole of the data.

        `are_features` is whether the groups are those of features that a user compares, which are refused if they are
        single rows; combinations of strata, or of what a search reads, may be.
        """
        specs = self.specs if specs is None else specs
        check_readable(tally, self.specs, self.needs, options)
        if are_features:
            check_sizes(tally, specs)
        if not allow_unseen:
            self.check_occurs(tally, options)
        tally = tally if tally.sides is None else tally.on_sides()
        return evaluate_specs(tally, specs, options, self._plans if specs is self.specs else None)

    @cached_property
    def _plans(self) -> EvaluationPlans:
        """The plans of evaluations of all metrics."""
        return EvaluationPlans(self.specs)

    def check_occurs(self, tally: Tally, options: Options) -> None:
        """Refuse an event, or a value of a condition, that does not occur and may be misspelt."""
        check_tally(tally)
        if options.pos_label is not None and not tally.needs.numbers:
            read_labels(tally, options)
        for sides, keys in _sides(tally, self.specs):
            if unseen := sides.unseen(keys):
                raise ArgumentError(unseen[0])

    def warn_of_unknown_groups(
        self, tallies: Sequence[Tally], *, may_ignore: bool = True, may_compare: bool = True
    ) -> None:
        """Say how many people of unknown groups are counted and not compared, and which values they have.

        `may_ignore` is whether the call has the option `on_undefined`, and `may_compare` whether `unknown` is one.
        """
        messages: dict[str, None] = {}
        for tally in tallies:
            for spec in self.specs:
                if spec.by is not None and spec.policy.unknown == "apart":
                    messages |= dict.fromkeys(_unknown_rows(tally, spec.by))
        if messages:
            sentence = f"{'; '.join(messages)}: these rows are counted, and their groups not compared."
            if may_compare:
                sentence += ' `unknown="group"` compares them, and `unknown="drop"` leaves them out without notice.'
            warn(sentence + may_ignore * f" {_SILENCE}", UnknownGroupWarning)

    def warn_of_missing_predictions(self, tallies: Sequence[Tally], *, may_ignore: bool = True) -> None:
        """Say how many predictions are missing, and of which groups; `may_ignore` as for unknown groups."""
        messages: dict[str, dict[str, None]] = {}
        if any(formula.statistics >= _COVERAGE for _, formula in named_formulas(self.specs)):
            # the share that has predictions stands beside the metrics
            return
        for tally in tallies:
            if not tally.has_missing_predictions:
                continue
            columns = {key.column for key in tally.keys}
            specs = [spec for spec in self.specs if spec.by is not None and columns.issuperset(spec.by.columns)]
            reads = frozenset[str]().union(*(formula.reads for _, formula in named_formulas(specs)))
            bys = [by for by in dict.fromkeys(spec.by for spec in specs) if by is not None]
            if (words := missing_in_words(tally, bys, reads)) is not None:
                head, shares = words
                messages.setdefault(head, {}).update(dict.fromkeys(shares))
        if messages:
            sentences = [": ".join(filter(None, [head, "; ".join(shares)])) for head, shares in messages.items()]
            warn(
                f"{'. '.join(sentences)}. Rows without a prediction are left out of what reads it; to compare how "
                "often groups have one, put `abstention.coverage` beside the metric." + may_ignore * f" {_SILENCE}",
                MissingPredictionsWarning,
            )

    # Frames

    def _groups(self, counted: Sequence[_Counted], options: Options) -> pl.DataFrame:
        """The values of groups as a frame."""
        if options.simultaneous and all(spec.by is None for spec in self.specs):
            name = self.specs[0].name
            msg = (
                f"`simultaneous` is about the groups that a metric compares, and {name} compares none: write "
                f'`{name}.difference("column").by_group(…)`; groups of `group_by` are apart.'
            )
            raise ArgumentError(msg)
        parts = [
            _part_of_groups(tally, evaluated, options)
            for tally, specs in counted
            for evaluated in self.evaluate(tally, options, specs, allow_unseen=True)
        ]
        tallies = [tally for tally, _ in counted]
        if options.on_undefined == "warn" and options.na_rm:
            self.warn_of_missing_predictions(tallies)
        parts = _without_bounds(tallies, parts)
        groups = _together(parts, [(name, spec.by) for spec in self.specs for name, _ in spec.formulas])
        return _with_features_in_place(groups, [spec.by for spec in self.specs if spec.by is not None])

    def refuse_undefined(self, tally: Tally, options: Options) -> None:
        """Raise an error if some value of a tally is undefined."""
        messages: list[str] = []
        for evaluated in self.evaluate(tally, options):
            messages += _part_of_results(tally, evaluated, options)[1]
        if messages:
            raise UndefinedError("; ".join(dict.fromkeys(messages)) + ".")

    def _results(self, counted: Sequence[_Counted], options: Options) -> pl.DataFrame:
        """The results as a frame, after warnings of values that are undefined."""
        parts: list[pl.DataFrame] = []
        messages: list[str] = []
        constant: list[str] = []
        tallies: list[Tally] = []
        has_unknown = has_missing = False
        for tally, specs in counted:
            tallies.append(tally)
            has_missing |= options.na_rm and tally.has_missing_predictions
            for evaluated in self.evaluate(tally, options, specs, allow_unseen=True):
                part, sentences = _part_of_results(tally, evaluated, options)
                parts.append(part)
                messages += [sentence for sentence in sentences if sentence not in messages]
                has_unknown |= bool(evaluated.group_cells.unknown.any())
                constant += _constant(evaluated) if evaluated.labels.event is None else []
        if tallies[0].scores is not None:
            parts = _without_bounds(tallies, parts)
        if messages and options.on_undefined == "raise":
            raise UndefinedError("; ".join(messages) + ".")
        if tallies[0].cut is not None:
            _warn_of_selections(tallies[0])
        if options.on_undefined == "warn":
            if has_unknown:
                self.warn_of_unknown_groups(tallies)
            if has_missing:
                self.warn_of_missing_predictions(tallies)
            if messages or constant:
                _warn_of_values(messages, constant)
        return _together(parts, [(spec.name, spec.by) for spec in self.specs])


def _part_of_groups(tally: Tally, evaluated: Evaluated, options: Options) -> pl.DataFrame:
    """The values of the groups of some metrics."""
    if options.on_undefined == "warn" and tally.forecast is not None:
        _warn_of_direction(tally, evaluated, options)
    part = tidy_groups(evaluated)
    if options.interval is not None:
        from tidyfair.intervals import group_intervals  # noqa: PLC0415 - where they are asked for

        part = group_intervals(evaluated, part, options)
    return with_features(part.drop(LOST, strict=False), evaluated)


def _part_of_results(tally: Tally, evaluated: Evaluated, options: Options) -> tuple[pl.DataFrame, list[str]]:
    """The results of some metrics, and what has to be said about values that are undefined."""
    results = Results(evaluated, undefined_is_null=options.on_undefined == "null")
    frame = results.frame(explain=options.explain)
    if options.interval is not None:
        from tidyfair.intervals import result_intervals  # noqa: PLC0415 - where they are asked for

        frame = result_intervals(evaluated, frame, options, results.metrics_left_out)
        frame = frame if options.explain else frame.drop(EXPLANATION, strict=False)
    if options.on_undefined == "warn" and tally.forecast is not None:
        _warn_of_direction(tally, evaluated, options)
    if options.on_undefined not in {"warn", "raise"}:
        return frame, []
    sentences = results.complaints()
    if evaluated.labels.unseen or evaluated.plan.two_sided or tally.sides is not None:
        sentences += _remarks(tally, evaluated)
    return frame, sentences


def _outer_groups(options: Options) -> OuterGroups | None:
    """The outer groups that a call names, which are read once."""
    if options.group_by is not None and _OUTER not in options.plans:
        options.plans[_OUTER] = OuterGroups.of(options.group_by)
    return options.plans.get(_OUTER)


def _keep(kept: dict[tuple[object, ...], Any], key: tuple[object, ...], value: object) -> None:
    """Keep a value for the next call; all others are dropped if they are many."""
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = value


def _unknown_rows(tally: Tally, by: By) -> list[str]:
    """The rows of unknown groups in words; nothing if there are none, or the tally has no such keys."""
    if not {*by.columns} <= {key.column for key in tally.keys}:
        return []
    keys = tally.keys_of_cells(by.columns)
    groups = by.groups(keys)
    is_unknown = by.is_unknown(groups)
    rows, total = int(tally.cells["n"].filter(is_unknown).sum()), tally.row_count
    if not rows:
        return []
    # the values of a condition, which its sides do not show
    groups = (keys if by.sides else groups).filter(is_unknown).unique()
    groups = groups.sort(groups.columns, nulls_last=True)
    is_missing = groups.select(pl.all_horizontal(pl.all().is_null())).to_series()
    values = [listed(texts_of(groups.filter(~is_missing)))] if not is_missing.all() else []
    values += ["missing"] if is_missing.any() else []
    number = f"{rows:,} of {total:,}"
    if (suppression := tally.suppression) is not None:
        # a total that is hidden would give unknown people away
        number = "some" if suppression.is_hidden([], 1, None).any() else f"some of {total:,}"
    return [f"{by.text} is unknown in {number} rows ({', '.join(values)})"]


def _together(parts: Sequence[pl.DataFrame], metrics: Sequence[tuple[str, By | None]]) -> pl.DataFrame:
    """The results of all passes as one frame, in the order of the metrics and their features, and of outer groups."""
    if len(parts) == 1:
        return parts[0]
    frame = pl.concat(parts, how="diagonal_relaxed")
    order: dict[tuple[str, str | None], int] = {}
    for name, by in metrics:
        order.setdefault((name, by.text if by else None), len(order))
    pairs = frame.select(".metric", ".by").rows()
    places = [pl.Series([order[pair] for pair in pairs], dtype=pl.Int64)]
    parts_of_pair = Counter(pair for part in parts for pair in set(part.select(".metric", ".by").rows()))
    outer = key_columns(frame)
    if outer and max(parts_of_pair.values(), default=1) > 1:
        # thresholds stand within outer groups, also where a metric has a part for each of them
        rows = frame.select(outer).with_row_index("\0row").select(pl.col("\0row").min().over(outer)).to_series()
        is_divided = pl.Series([parts_of_pair[pair] > 1 for pair in pairs], dtype=pl.Boolean)
        places.append(rows.set(~is_divided, 0))
    return frame.sort(places, maintain_order=True)


def _with_features_in_place(groups: pl.DataFrame, bys: Iterable[By]) -> pl.DataFrame:
    """The values of groups with the columns of features after `.by`."""
    features = dict.fromkeys(name for by in bys if not by.sides for name in by.names if name not in RESERVED)
    names = [name for name in groups.columns if name not in features]
    after = names.index(".by") + 1
    return groups.select(*names[:after], *features, *names[after:])


def _made_by(spec: MetricSpec) -> str:
    """The expression that creates a groupwise metric: the name of a factory, or the comparison of a metric."""
    metric, _ = spec.formulas[0]
    method = spec.name.removeprefix(f"{metric}_")
    is_comparison = method in {"difference", "ratio", "group_minimum", "group_maximum"}
    return f"{metric}.{method}" if is_comparison else spec.name


def _without_bounds(tallies: Sequence[Tally], parts: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Warn of bins of scores that nobody asked for, and drop the column of error bounds, which the call does not give.

    Columns follow from the call alone, so that results can be concatenated.
    """
    binned = [tally.scores for tally in tallies if tally.scores is not None and tally.scores.binned_for]
    if not binned:
        return parts
    bounds = [part[".error_bound"].max() for part in parts if ".error_bound" in part.columns]
    known = [bound for bound in bounds if isinstance(bound, float)]
    off = f"off by {max(known):.2g} at most" if known else "off by an unknown amount"
    names = listed(column.name for column in binned[0].columns)
    warn(
        f"`probs`: {binned[0].binned_for} has so many distinct scores in {names} that they were counted in "
        f"{binned[0].bins:,} bins; values are {off}. Give `score_bins={binned[0].bins}` to see the bound of each "
        'value, or `score_bins="exact"` to transfer the scores.',
        EngineWarning,
    )
    return [part.drop(".error_bound", strict=False) for part in parts]


def _warn_of_selections(tally: Tally) -> None:
    """Warn of selections that differ from the requested number."""
    remarks = tally.remarks()
    if remarks:
        more = [f"and {len(remarks) - _SHOWN} more"] if len(remarks) > _SHOWN else []
        warn("; ".join([*remarks[:_SHOWN], *more]) + ".", SelectionWarning)


def _warn_of_values(messages: Sequence[str], constant: Sequence[str]) -> None:
    """Warn of metrics without a value, and of those that cannot vary."""
    if constant:
        names = ", ".join(dict.fromkeys(constant))
        warn(
            f"{names} cannot vary: this average over labels does not depend on the data, because the shares of all "
            "labels add up to 1. Select one label with `pos_label=` or, for disparities, compare each with "
            f'`estimator="one_vs_rest"`. {_SILENCE}',
            ConstantWarning,
        )
    if messages:
        warn(f"{'; '.join(messages)}. {_SILENCE}", UndefinedWarning)


def _warn_of_direction(tally: Tally, evaluated: Evaluated, options: Options) -> None:
    """Warn of predictions whose order is clearly the reverse of that of survival times, as that of risks is."""
    numbers: list[int] = []
    for index, spec in enumerate(evaluated.specs):
        # the order of predictions, which may be times or risks
        if spec.kind == "survival" and all("risk" in dict(formula.options) for _, formula in spec.formulas):
            numbers.append(index)
    if not numbers:
        return
    # concordances above one half, which are the rule, cost nothing more
    values = evaluated.rows.filter(pl.col("spec").is_in(numbers))["estimate"]
    if (values.min() or 0.0) >= _REVERSED:  # pyright: ignore[reportOperatorIssue] - a column of numbers
        return
    by_name = {metric.name: metric for number in numbers for metric in evaluated.specs[number].of_all_rows}
    asked = replace(options, interval="auto", conf_level=0.95, on_undefined="ignore", explain=False, simultaneous=False)
    overall = Run(tuple(by_name.values())).results_of(tally, asked)
    reversed_order = overall.filter((pl.col(".estimate") < _REVERSED) & (pl.col(".upper") < _HALF))
    for name, value in reversed_order.unique(".metric", keep="first", maintain_order=True)[
        [".metric", ".estimate"]
    ].iter_rows():
        ((_, formula),) = by_name[name].formulas
        if dict(formula.options)["risk"]:
            meaning, way_out = "risks, of which larger ones die sooner", "if these are times, leave out `risk=True`"
        else:
            meaning = "predicted times, of which larger ones survive longer"
            way_out = (
                "if these are risks, such as the hazards of a Cox model, use "
                f'`metric_tweak({formula.function.__name__}, "c_index", risk=True)`, and compare groups by its '
                '`.difference("column")`'
            )
        warn(
            f"{name} is {value:.2f} over all rows, clearly below 0.5: it reads `estimate` as {meaning}; {way_out}. "
            f"{_SILENCE}",
            DirectionWarning,
        )


def _sides(tally: Tally, specs: Sequence[MetricSpec]) -> list[tuple[Privileged, pl.DataFrame]]:
    """The conditions that pool rows into sides, with the keys that they read."""
    conditions: dict[Privileged, Tally] = {}
    for spec in specs:
        if spec.by is not None and spec.by.sides is not None:
            conditions[spec.by.sides] = tally.of_feature(spec.by)
    if tally.sides is not None:
        conditions[tally.sides] = tally
    return [(sides, counted.keys_of_cells(sides.columns)) for sides, counted in conditions.items()]


def _constant(evaluated: Evaluated) -> list[str]:
    """The names of the metrics that cannot vary, because an average over labels does not depend on the data."""
    estimators = evaluated.plan.names[".estimator"].to_list()
    pairs = zip(evaluated.specs, estimators, strict=True)
    return [spec.name for spec, estimator in pairs if estimator in spec.constant_averages]


def _remarks(tally: Tally, evaluated: Evaluated) -> list[str]:
    """The labels and sides that are missing from the data, so that there is no value."""
    sentences = list(evaluated.labels.remarks)
    for sides, keys in _sides(tally, evaluated.specs):
        # outer groups that do not occur have no row, so that nothing is missing
        sentences += sides.unseen(keys) if sides == tally.sides else sides.remarks(keys)
    return [sentence.removesuffix(".") for sentence in sentences]

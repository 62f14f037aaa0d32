"""The plan of a count: the columns that are read, by their roles, and what is counted and summed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, TidyfairError, in_short, listed
from tidyfair.specs import (
    CUT_OPTIONS,
    DISTRIBUTION_BY_LABEL,
    EXACT_SCORES,
    ROLE,
    By,
    Column,
    Forecast,
    MetricSpec,
    OperatingPoint,
    Options,
    PredictionInterval,
    Privileged,
    Survival,
    are_columns,
    is_at_quantiles,
    is_point,
    named_formulas,
    refuse_reserved,
    roots_of,
    with_event,
)
from tidyfair.specs.formulas import CONTENT, OF_CENSORING, OF_INTERVAL, Formula, RowExpression, RowSums
from tidyfair.tallies.moments import ACTUAL, PREDICTED, Needs
from tidyfair.tallies.source import FREQUENCY, WEIGHT, Source
from tidyfair.tallies.tally import TRUTH, Judge, Key, Scores, Tally
from tidyfair.tallies.tally_checks import check_given
from tidyfair.tallies.thresholds import ESTIMATE, Cut

Wanted: TypeAlias = "dict[str, tuple[str, Column]]"
"""The columns that are read, `{internal name: (role, column)}`."""
_Formulas: TypeAlias = "Sequence[tuple[str, Formula]]"
_SAMPLE = 20_000
_MANY = 0.5
"""With nearly as many cells as rows, counting by all features together saves nothing and takes as much memory."""


@dataclass(frozen=True, eq=False)
class CountPlan:
    """One pass over the rows: the columns to be read, and the tally to be made."""

    specs: tuple[MetricSpec, ...]
    """The metrics that are read from this pass."""
    tally: Tally
    """The tally to be made, without cells: it has the columns by their roles, and the keys."""
    outer: tuple[Column, ...]
    metrics: tuple[str, ...]
    """The names of all metrics of the call, for messages."""
    frequencies: Column | None
    cluster: Column | None
    parts: int | None
    """The seed of random parts of the rows, which are one more key; None if it is not needed."""
    has_single_rows: bool
    """True if each row is a part unless there are very many."""
    many: Literal["bin", "warn", "transfer"]
    """The way to treat very many distinct rows of another engine: count their scores in bins where they can be, or
    transfer them, with a warning or without."""
    edges: Mapping[Column, Column] = field(default_factory=dict[Column, Column])
    """The columns that are read in place of bins whose edges another engine has computed."""

    @classmethod
    def of(
        cls, specs: tuple[MetricSpec, ...], needs: Needs, options: Options, outer: tuple[Column, ...] = (),
        sides: Privileged | None = None, *, is_kept: bool = True,
    ) -> CountPlan:  # fmt: skip
        """The plan of a call, if the metrics can use its columns.

        Args:
            specs: The metrics.
            needs: The quantities that they read.
            options: The options of the call.
            outer: The columns of the outer groups.
            sides: The conditions whose two sides are outer groups too.
            is_kept: Whether the tally is kept, not only read once.
        """
        formulas = named_formulas(specs)
        truth, estimate, probs, forecast = _with_forecast(formulas, options)
        if forecast is not None:
            _check_forecast(forecast, formulas, sides)
        scores = None if probs is None else _scores(probs)
        if isinstance(options.score_bins, int):
            scores = _in_bins(formulas, scores, options.score_bins)
        cut = _cut(formulas, needs, options, scores, sides)
        design, case_weights = options.design, Column.if_given(options.case_weights, "case_weights")
        weights = case_weights if design is None else design.weights
        cluster = Column.if_given(options.cluster, "cluster")
        # counts determine how much rates vary
        parts = options.parts if any(isinstance(formula, RowSums) for _, formula in formulas) else None
        needs = _needs_of_rows(needs, formulas, options, cut, has_units=parts is not None or cluster is not None)
        tally = Tally(
            pl.DataFrame(), (), Column.if_given(truth, "truth"), Column.if_given(estimate, "estimate"), cut, weights,
            scores, needs, sides=sides, design=design, forecast=forecast, judge=_judge(formulas, options),
        )  # fmt: skip
        check_given(formulas, tally.given)
        if weights is not None:
            _refuse_weights(formulas)
        plan = cls(
            specs, tally, outer, tuple(dict.fromkeys(spec.name for spec in specs)),
            Column.if_given(options.frequency_weights, "frequency_weights"), cluster, parts, options.has_single_rows,
            _way_with_many_rows(formulas, options, is_kept=is_kept),
        )  # fmt: skip
        return plan.for_metrics(specs)

    def for_metrics(self, specs: tuple[MetricSpec, ...]) -> CountPlan:
        """The plan with the keys that some metrics need, without duplicates."""
        refuse_reserved("group_by", self.outer)
        for spec in specs:
            _check_groups(spec, self.outer)
        keys = self._keys(specs)
        if self.frequencies is not None and (unfixed := [column for column in keys if is_at_quantiles(column)]):
            msg = (
                f"`frequency_weights`: the quantiles of {unfixed[0].name!r} would be those of rows as they stand; give "
                "edges, `bins(column, [edge, …])`, or the frame whose quantiles they are, `quantile_groups(…, on=…)`."
            )
            raise ArgumentError(msg)
        return replace(self, specs=specs, tally=replace(self.tally, keys=tuple(keys.values())))

    def _keys(self, specs: tuple[MetricSpec, ...]) -> dict[Column, Key]:
        """The keys by their columns: those of groups, and beside them clusters and the labels of a judge."""
        sides, design, judge = self.tally.sides, self.tally.design, self.tally.judge
        keys = {column: Key(column, "outer") for column in self.outer}
        for column in sides.columns if sides is not None else ():
            keys.setdefault(column, Key(column, "side"))
        for column in (column for spec in specs if spec.by is not None for column in spec.by.columns):
            keys.setdefault(column, Key(column, "by"))
        beside = [] if self.cluster is None else [Key(self.cluster, "cluster")]
        beside += [] if judge is None else [Key(column, "judged") for column in judge.columns]
        for key in beside:
            if key.column in keys:
                what = "clusters" if key.role == "cluster" else "labels of a judge"
                msg = f"`{key.role}`: {key.column.name!r} already defines groups, and groups cannot serve as {what}."
                raise ColumnError(msg)
            keys[key.column] = key
        # a stratum may be a group as well
        for column in design.keys if design is not None else ():
            keys.setdefault(column, Key(column, "cluster"))
        return keys

    # What is read

    @cached_property
    def columns(self) -> Wanted:
        """The columns that are read."""
        tally, needs = self.tally, self.tally.needs
        roles_of_keys = {"by": "by", "judged": "judged", "cluster": "cluster" if tally.design is None else ROLE}
        columns = {
            f"k{index}": (roles_of_keys.get(key.role, "group_by"), key.column) for index, key in enumerate(tally.keys)
        }
        probability = tally.judge.probability if tally.judge is not None else None
        if probability is not None:
            columns |= dict.fromkeys(tally.names([probability]), ("label_probability", probability))
        numbers = needs.numbers
        optional = {
            ACTUAL if numbers else TRUTH: ("truth", tally.truth),
            PREDICTED if numbers else ESTIMATE: ("estimate", tally.estimate),
            WEIGHT: (tally.role_of_weights, tally.weights),
            FREQUENCY: ("frequency_weights", self.frequencies),
        }
        columns |= {name: (role, column) for name, (role, column) in optional.items() if column is not None}
        if tally.scores is not None and (needs.scores or tally.cut is not None):
            columns |= _numbered("s", "probs", tally.scores.columns)
        if tally.forecast is not None:
            columns |= tally.forecast.wanted
        if tally.design is not None:
            columns |= _numbered("v", ROLE, tally.design.replicates)
        columns |= {f"f{index}": (self.features[column], column) for index, column in enumerate(self.features)}
        if tally.cut is not None:
            columns |= _numbered("t", "threshold", tally.cut.by)
        return {name: (role, self.edges.get(column, column)) for name, (role, column) in columns.items()}

    @cached_property
    def features(self) -> dict[Column, str]:
        """The columns that rows are compared by, in distances or lists, with their roles."""
        return {column: term.role_of(column) for term in self.tally.needs.compared for column in term.compared_by}

    @cached_property
    def numbers(self) -> list[str]:
        """The columns of scores, and of truth and estimate where these are numbers."""
        names: list[str] = []
        for name, (role, _) in self.columns.items():
            if name in {ACTUAL, PREDICTED} or role == "probs" or is_point(name):
                names.append(name)
        return names

    @cached_property
    def is_of_labels(self) -> bool:
        """True where only rows are counted, by keys and labels, and nothing is summed."""
        is_weighted = self.tally.weights is not None or self.frequencies is not None
        is_summed = self.tally.needs.anything or self.parts is not None or self.tally.judge is not None
        return self.tally.cut is None and not is_weighted and not is_summed

    @cached_property
    def numbers_rows(self) -> bool:
        """True if the row number is an additional key, because single rows were sampled and are summed."""
        design, needs = self.tally.design, self.tally.needs
        return design is not None and design.samples_rows and (needs.numbers or needs.scores)

    # What is read in one pass

    def passes(self, source: Source) -> list[CountPlan]:
        """The plans of all passes: one for all features, or one each for features with many values.

        That is decided by a sample of rows. Sets of features that are part of a larger set are counted with it.
        """
        if not self.may_have_passes or not _are_many(
            source, list(dict.fromkeys(column for by in self._bys_apart for column in by.columns))
        ):
            return [self]
        together: dict[By, list[MetricSpec]] = {by: [] for by in self._bys_apart}
        for spec in self.specs:
            own = set(spec.by.columns) if spec.by is not None else set[Column]()
            together[next(by for by in together if own <= set(by.columns))].append(spec)
        return [self.for_metrics(tuple(specs)) for specs in together.values()]

    @cached_property
    def may_have_passes(self) -> bool:
        """True if there may be several passes; rows are kept once."""
        needs = self.tally.needs
        return bool(self._bys_apart) and not (needs.rows or needs.compared)

    @cached_property
    def _bys_apart(self) -> list[By]:
        """The sets of features that are not part of a larger set, if there are several."""
        bys = dict.fromkeys(spec.by for spec in self.specs if spec.by is not None)
        columns = {by: frozenset(by.columns) for by in bys}
        largest: dict[frozenset[Column], By] = {}
        for by, own in columns.items():
            if not any(own < other for other in columns.values()):
                largest[own] = by
        return list(largest.values()) if len(largest) > 1 else []


def _refuse_weights(formulas: _Formulas) -> None:
    """Refuse weights for functions of rows that do not read them."""
    for name, formula in formulas:
        ignores_weights = isinstance(formula, RowExpression) and "weight" not in formula.statistics
        if ignores_weights and not formula.has_labels:
            msg = (
                f"{name} does not accept weights; leave out `case_weights=`, or add a parameter `weight` to its "
                "function."
            )
            raise ArgumentError(msg)


def _needs_of_rows(
    needs: Needs, formulas: _Formulas, options: Options, cut: Cut | None, *, has_units: bool
) -> Needs:  # fmt: skip
    """The quantities that are read, with what shows how values vary between units, or at a threshold that is chosen."""
    if has_units:
        outcomes = [formula.terms_of_outcomes for _, formula in formulas if isinstance(formula, RowSums)]
        needs = replace(needs, terms=needs.terms.union(*outcomes))
    if options.keep_rows or (cut is not None and cut.point is not None):
        needs = replace(needs, rows=True)
    return needs


def _way_with_many_rows(
    formulas: _Formulas, options: Options, *, is_kept: bool
) -> Literal["bin", "warn", "transfer"]:  # fmt: skip
    """The way to treat very many distinct rows of another engine: scores that give values alone may be binned."""
    if options.score_bins == EXACT_SCORES:
        return "transfer"
    has_other_uses = is_kept or options.keep_rows or options.interval is not None or options.design is not None
    ranking = [formula for _, formula in formulas if formula.is_of_rows]
    fit_bins = bool(ranking) and all(formula.error_of_bins is not None for formula in ranking)
    return "bin" if fit_bins and not has_other_uses else "warn"


def _check_groups(spec: MetricSpec, outer: Sequence[Column]) -> None:
    """Refuse groups that the data are grouped by, and a metric without groups that is defined for groups only."""
    if spec.by is not None:
        refuse_outer(spec.name, spec.by, outer)
    elif any(formula.only_average is DISTRIBUTION_BY_LABEL for _, formula in spec.formulas):
        msg = (
            f"{spec.name} is defined for groups only; compare groups, for example with `separation(…)` or "
            "`new_groupwise_metric`."
        )
        raise ArgumentError(msg)


def refuse_outer(name: str, by: By, outer: Sequence[Column]) -> None:
    """Refuse groups that the data are grouped by."""
    for column in by.columns:
        if column in outer:
            msg = (
                f"{name}: the data are grouped by {column.name!r}, so each part has only one group to compare; group "
                "by another column, or compare another one."
            )
            raise ColumnError(msg)


def _numbered(prefix: str, role: str, columns: Iterable[Column]) -> Wanted:
    """Columns in one role, under a prefix and their number."""
    return {f"{prefix}{index}": (role, column) for index, column in enumerate(columns)}


def _with_forecast(formulas: _Formulas, options: Options) -> tuple[object, object, object, Forecast | None]:
    """Truth, estimate and scores as one column at most each, and the columns of survival times or intervals."""
    name, formula = formulas[0]
    truth: object = options.truth
    estimate: object = options.estimate
    if formula.kind == "survival" and not isinstance(truth, Survival):
        shown = "" if truth is None else f", not {in_short(truth)}"
        msg = f'{name} reads survival times: write `truth=survival.outcome("time", "event")`{shown}.'
        raise ColumnError(msg)
    if formula.kind != "survival" and isinstance(truth, Survival):
        msg = f"{name} reads {CONTENT[formula.kind]}, not survival times: give a column as `truth=`."
        raise ColumnError(msg)
    if formula.kind == "interval":
        forecast = None if estimate is None else Forecast.of_estimate(estimate)
        return truth, None, options.probs, forecast
    if isinstance(estimate, PredictionInterval | Mapping):
        msg = f"`estimate`: {name} reads one column of predictions, not an interval or quantiles."
        raise ColumnError(msg)
    if isinstance(truth, Survival):
        return truth.column_of_time, estimate, None, Forecast.of_survival(truth, options.probs)
    return truth, estimate, options.probs, None


def _scores(probs: object) -> Scores:
    """The columns of scores: one, a list in the order of the labels, or a mapping from labels."""
    if isinstance(probs, Mapping):
        mapping = cast("Mapping[Any, object]", probs)
        columns = tuple(Column.of(value, "probs") for value in mapping.values())
        if not columns:
            msg = "`probs`: the mapping from labels to columns is empty."
            raise ColumnError(msg)
        return Scores(columns, tuple(mapping), several=True)
    if not are_columns(probs):
        return Scores((Column.of(probs, "probs"),))
    columns = tuple(Column.of(value, "probs") for value in probs)
    names = [column.name for column in columns]
    if len(columns) < 2 or len(set(names)) < len(names):
        msg = (
            f"`probs` must list one column for each label, not {listed(names)}; give a single column without brackets."
        )
        raise ColumnError(msg)
    return Scores(columns, several=True)


def _at_operating_point(cut: Cut, point: OperatingPoint, options: Options, scores: Scores | None) -> Cut:
    """The rule of an operating point: the thresholds of another sample, or a choice from the rows of the call."""
    truth = Column.if_given(options.truth, "truth")
    if truth is None or scores is None:
        msg = f"`threshold`: {point!r} compares scores with the truth; add `truth=`."
        raise ColumnError(msg)
    point = with_event(point, options.pos_label)
    if point.on is not None:
        return cut.chosen_on(point, truth, scores.columns[0], Column.if_given(options.case_weights, "case_weights"))
    for name in ("design", "score_bins"):
        if getattr(options, name) is not None:
            msg = f"`{name}` does not support {point!r}: choose the threshold on another sample, with `on=`."
            raise ArgumentError(msg)
    return replace(cut, point=point)


def _in_bins(formulas: _Formulas, scores: Scores | None, bins: int) -> Scores:
    """The scores to count in bins, if bins are enough for all metrics."""
    ranking = [(name, formula) for name, formula in formulas if formula.kind == "prob" and formula.needs_rows]
    if scores is None or not ranking:
        msg = "`score_bins` needs a ranking metric, such as roc_auc, and `probs=`; leave it out for other metrics."
        raise ArgumentError(msg)
    for name, formula in ranking:
        if formula.error_of_bins is None:
            msg = f"{name} cannot be computed from binned scores; leave out `score_bins`."
            raise ArgumentError(msg)
    return replace(scores, bins=bins)


def _cut(
    formulas: _Formulas, needs: Needs, options: Options, scores: Scores | None, sides: Privileged | None
) -> Cut | None:
    """The threshold or selection of a call, if these metrics and the outer groups can use it."""
    rules = {rule: getattr(options, rule) for rule in CUT_OPTIONS if getattr(options, rule) is not None}
    for rule in rules:
        for name, formula in formulas:
            if not formula.has_labels:
                msg = f"`{rule}` turns scores into labels, but {name} reads {CONTENT[formula.kind]}; leave it out."
                raise ArgumentError(msg)
    given = {"estimate": options.estimate, "probs": scores}
    cut = Cut.of(rules, {role for role, value in given.items() if value is not None})
    if cut is None:
        return None
    if scores is not None and scores.several:
        msg = f"`{cut.option}` needs a single column of scores, for the event; give one column as `probs=`."
        raise ArgumentError(msg)
    if cut.point is not None:
        cut = _at_operating_point(cut, cut.point, options, scores)
    _check_cut(cut, formulas, needs, sides)
    return cut


def _check_cut(cut: Cut, formulas: _Formulas, needs: Needs, sides: Privileged | None) -> None:
    """Refuse several cuts for what compares rows, and a selection within sides, which are known only later."""
    if cut.several and needs.compared:
        of_one = needs.compared[0]
        name = next(name for name, formula in formulas if of_one in formula.all_terms)
        msg = f"{name} does not accept a list of values for {cut.option}; give one value."
        raise ArgumentError(msg)
    if (cut.option != "threshold" or cut.point is not None) and sides is not None:
        msg = f"`{cut.option}` cannot be combined with `group_by=privileged(…)`; group by a column instead."
        raise ArgumentError(msg)


def _judge(formulas: _Formulas, options: Options) -> Judge | None:
    """The judge of a call, if its metrics can use labels of both."""
    if options.judged is None:
        return None
    for name, formula in formulas:
        is_counted = formula.kind == "class" and (formula.variation == "counts" or "truth" not in formula.reads)
        if not is_counted or formula.compares:
            msg = (
                f"`judged`: {name} is not computed from counts of labels in a group, so that it cannot be estimated "
                "from labels of people and of a judge together; leave `judged` out, and it reads those of people."
            )
            raise ArgumentError(msg)
    column, probability = Column.of(options.judged, "judged"), options.label_probability
    return Judge(column, Column.if_given(probability, "label_probability"))


def _check_forecast(forecast: Forecast, formulas: _Formulas, sides: Privileged | None) -> None:
    """Refuse predictions at points that some metric cannot use."""
    for name, formula in formulas:
        if formula.columns_of_rows & OF_INTERVAL and forecast.level is None:
            way_out = '`estimate=prediction_intervals.interval("q05", "q95", level=0.9)`'
            msg = f"{name} reads an interval, not quantiles: name its two columns, as in {way_out}."
            raise ColumnError(msg)
        if formula.reads_points and not formula.at_points and forecast.is_survival and len(forecast.points) == 1:
            msg = f"{name} is an integral over time: give survival probabilities at two or more times as `probs=`."
            raise ColumnError(msg)
        if formula.columns_of_rows & OF_CENSORING and sides is not None and forecast.censoring is None:
            msg = (
                f"{name} estimates the censoring distribution in each outer group, and the sides of "
                "`group_by=privileged(…)` are known only later; give `survival.outcome(…, censoring=…)`, or group by "
                "columns."
            )
            raise ArgumentError(msg)


def _are_many(source: Source, columns: Sequence[Column]) -> bool:
    """Check whether most of some rows differ in the columns."""
    if source.rows is not None and source.rows < _SAMPLE:
        return False
    wanted = _numbered("k", "by", dict.fromkeys((*source.outer, *columns)))
    try:
        if not {*roots_of(wanted)} <= {*source.columns}:
            return False
        if source.is_elsewhere:
            # the engine counts, so that no rows leave it
            rows, distinct = source.distinct_in_sample(roots_of(wanted), _SAMPLE)
            return rows == _SAMPLE and distinct > _MANY * _SAMPLE
        sample = source.some_rows(wanted, _SAMPLE)
    except (TidyfairError, pl.exceptions.PolarsError):
        return False  # the counting says what is wrong
    if math.prod(map(_levels, sample.dtypes)) < _MANY * _SAMPLE:
        return False
    return len(sample) == _SAMPLE and sample.n_unique() > _MANY * _SAMPLE


def _levels(dtype: pl.DataType) -> float:
    """Largest possible number of values of a dtype; infinity if unlimited."""
    if isinstance(dtype, pl.Enum):
        return len(dtype.categories) + 1
    return 3 if dtype == pl.Boolean else math.inf

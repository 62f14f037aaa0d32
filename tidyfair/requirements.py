"""Requirements of metrics on the columns and counts of a call, and the errors for what is missing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, WeightError, in_short, listed
from tidyfair.specs.arguments import whole
from tidyfair.specs.columns import Column, are_columns, names_of
from tidyfair.specs.forecasts import Forecast, PredictionInterval, Survival
from tidyfair.specs.formulas import OF_CENSORING, OF_INTERVAL, Formula, Statistic, unprefixed
from tidyfair.specs.groups import By
from tidyfair.specs.metric_specs import MetricSpec
from tidyfair.specs.options import Options
from tidyfair.tallies.moments import Needs, step
from tidyfair.tallies.source import Source
from tidyfair.tallies.survey_checks import check_design
from tidyfair.tallies.tally import Scores, Tally, check_tally
from tidyfair.tallies.thresholds import ESTIMATE, RULES, Cut

_MOST_BINS = 2**16
_ROUNDED = 0.01
_MOST_SINGLE = 1_000
"""More groups of one row than this, if they are half of all groups, are those of a measurement or of an identifier."""
_EXACT = "exact"
"""In place of a number of bins: the scores themselves, from any engine."""
_NO_SCORES = "`probs`: the mapping from labels to columns is empty."
_FROM_SCORES = "scores as `probs=` with `threshold=`"
CONTENT = {
    "class": "labels", "prob": "labels and scores", "numeric": "numbers", "survival": "survival times",
    "interval": "intervals",
}  # fmt: skip
"""The columns that metrics of each kind read."""
SEVERAL_COLUMNS = frozenset({"survival", "interval"})
"""The kinds of metrics whose truth or predictions are no single column."""
_OF_LABELS = ("pos_label", "labels", "estimator")
"""The options for labels."""
_OF_MOMENTS = ("truth_mean", "truth_var", "estimate_", "covar")
"""Prefixes of the names of statistics computed from moments."""


@dataclass(frozen=True)
class Roles:
    """The columns of a call by their roles."""

    truth: Column | None
    estimate: Column | None
    weights: Column | None
    frequencies: Column | None
    cluster: Column | None
    scores: Scores | None
    cut: Cut | None
    forecast: Forecast | None = None

    @property
    def given(self) -> set[str]:
        """The roles that have a column."""
        columns = {
            "truth": self.truth,
            "estimate": self.estimate or self.cut,
            "case_weights": self.weights,
            "probs": self.scores,
        }
        given = {role for role, column in columns.items() if column is not None}
        return given | self.forecast.given if self.forecast is not None else given


@dataclass(frozen=True, eq=False)
class Requirements:
    """The requirements of some metrics, computed once."""

    specs: tuple[MetricSpec, ...]

    @cached_property
    def formulas(self) -> list[tuple[str, Formula]]:
        """The formulas of all metrics by their names."""
        return [named for spec in self.specs for named in spec.formulas]

    @cached_property
    def needs(self) -> Needs:
        """The statistics that formulas read besides counts of labels."""
        formulas = [formula for _, formula in self.formulas]
        scored = [formula for formula in formulas if formula.kind == "prob"]
        terms: set[Statistic] = set()
        statistics: set[str] = set()
        for formula in formulas:
            terms.update(formula.all_terms)
            statistics.update(formula.statistics)
        of_rows = frozenset[str]().union(*(formula.columns_of_rows for _, formula in self.formulas))
        return Needs(
            terms=frozenset(terms),
            numbers=any(not formula.of_labels for formula in formulas),
            scores=bool(scored),
            sides=any(formula.over_levels and formula.input == "sums" for formula in scored),
            moments=any(unprefixed(name).startswith(_OF_MOMENTS) for name in statistics),
            rows=any(formula.input != "sums" and formula.kind != "class" for formula in formulas),
            order=any(formula.reads_row_order for formula in formulas),
            undivided=self._undivided,
            censoring="censoring_weight" in of_rows,
            event_censoring="event_weight" in of_rows,
        )

    @property
    def _undivided(self) -> frozenset[tuple[Statistic, Column]]:
        """The quantities of lists with the features that must not divide a list."""
        pairs: set[tuple[Statistic, Column]] = set()
        for spec in self.specs:
            for term in _terms_of_lists(formula for _, formula in spec.formulas):
                if spec.by is not None and term.lists is not None and term.lists.undivided:
                    pairs.update((term, column) for column in spec.by.columns)
        return frozenset(pairs)

    @cached_property
    def needs_of_intervals(self) -> Needs:
        """The same, and the statistics that only intervals read."""
        outcomes = (formula.terms_of_outcomes for _, formula in self.formulas)
        return replace(self.needs, terms=self.needs.terms.union(*outcomes))

    @cached_property
    def sums_vary(self) -> bool:
        """True if counts do not determine the variance of the sums of formulas."""
        return any(formula.kind != "class" and formula.input == "sums" for _, formula in self.formulas)

    def roles(self, options: Options) -> Roles:
        """The columns given by options, if the metrics can use them."""
        columns: dict[str, Column | None] = {}
        given: set[str] = set()
        self._check_rules(options)
        options, forecast = self._with_forecast(options)
        for role in ("truth", "estimate", "case_weights", "frequency_weights", "cluster"):
            name = getattr(options, role)
            columns[role] = None
            if name is not None:
                columns[role] = Column.of(name, role)
                given.add(role)
        scores = _scores(options.probs)
        bins: object = options.score_bins
        if bins is not None and not (isinstance(bins, str) and bins == _EXACT):
            scores = self._in_bins(scores, bins)
        if scores is not None:
            given.add("probs")
        return Roles(
            truth=columns["truth"],
            estimate=columns["estimate"],
            weights=columns["case_weights"] if options.design is None else options.design.weights,
            frequencies=columns["frequency_weights"],
            cluster=columns["cluster"],
            scores=scores,
            cut=Cut.of(vars(options), given),
            forecast=forecast,
        )

    @property
    def fit_bins(self) -> bool:
        """True if bins of scores are enough for all metrics that read scores one by one."""
        ranking = [formula for _, formula in self.formulas if formula.input != "sums"]
        return bool(ranking) and all(formula.error_of_bins is not None for formula in ranking)

    def _check_rules(self, options: Options) -> None:
        """Refuse a threshold or selection for metrics that read no labels."""
        for name, formula in self.formulas:
            for rule in RULES:
                if not formula.of_labels and getattr(options, rule) is not None:
                    content = CONTENT[formula.kind]
                    msg = f"`{rule}` turns scores into labels, but {name} reads {content}; leave it out."
                    raise ArgumentError(msg)

    def _with_forecast(self, options: Options) -> tuple[Options, Forecast | None]:
        """The options with one column of truth and of estimates at most, and the other columns of these."""
        name, formula = self.formulas[0]
        truth: object = options.truth
        estimate: object = options.estimate
        if formula.kind == "survival":
            if not isinstance(truth, Survival):
                shown = "" if truth is None else f", not {in_short(truth)}"
                msg = f'{name} reads survival times: write `truth=survival("time", "event")`{shown}.'
                raise ColumnError(msg)
            _refuse_several(name, estimate)
            forecast = Forecast.of_survival(truth, options.probs)
            return replace(options, truth=truth.column_of_time.source, probs=None), forecast
        if isinstance(truth, Survival):
            msg = f"{name} reads {CONTENT[formula.kind]}, not survival times: give a column as `truth=`."
            raise ColumnError(msg)
        if formula.kind == "interval":
            if estimate is None:
                return options, None
            forecast = Forecast.of_estimate(estimate)
            return replace(options, estimate=None), forecast
        _refuse_several(name, estimate)
        return options, None

    def _in_bins(self, scores: Scores | None, bins: object) -> Scores:
        """The scores to count in bins, if bins are enough for all metrics."""
        number = whole("score_bins", bins, 2, _MOST_BINS)
        ranking = [(name, formula) for name, formula in self.formulas if _reads_order_of_scores(formula)]
        if scores is None or not ranking:
            msg = "`score_bins` needs a ranking metric, such as roc_auc, and `probs=`; leave it out for other metrics."
            raise ArgumentError(msg)
        for name, formula in ranking:
            if formula.error_of_bins is None:
                msg = f"{name} cannot be computed from binned scores; leave out `score_bins`."
                raise ArgumentError(msg)
        return replace(scores, bins=number)

    # Before rows are counted

    def check_roles(self, roles: Roles, source: Source) -> None:
        """Refuse columns that these metrics, or the outer groups, cannot use."""
        if roles.scores is not None:
            for column in roles.scores.columns:
                column.check(source.columns, "probs")
        if roles.cut is not None:
            self._check_cut(roles.cut, roles.scores, source)
        if roles.forecast is not None:
            self._check_forecast(roles.forecast, source)
        self._check_given(roles.given)
        self._check_numbers(roles)

    def _check_forecast(self, forecast: Forecast, source: Source) -> None:
        """Refuse predictions at points that some metric cannot use."""
        for role, column in forecast.wanted.values():
            column.check(source.columns, role)
        for name, formula in self.formulas:
            if formula.columns_of_rows & OF_INTERVAL and forecast.level is None:
                way_out = '`estimate=prediction_interval("q05", "q95", level=0.9)`'
                msg = f"{name} reads an interval, not quantiles: name its two columns, as in {way_out}."
                raise ColumnError(msg)
            if formula.over_points and forecast.is_survival and len(forecast.points) == 1:
                msg = f"{name} is an integral over time: give survival probabilities at two or more times as `probs=`."
                raise ColumnError(msg)
            if formula.columns_of_rows & OF_CENSORING and source.sides is not None and forecast.censoring is None:
                msg = (
                    f"{name} estimates the censoring distribution in each outer group, and the sides of "
                    "`group_by=privileged(…)` are known only later; give `survival(…, censoring=…)`, or group by "
                    "columns."
                )
                raise ArgumentError(msg)

    def _check_cut(self, cut: Cut, scores: Scores | None, source: Source) -> None:
        """Refuse a threshold or selection that these metrics, or the outer groups, cannot use."""
        if scores is not None and scores.several:
            msg = f"`{cut.option}` needs a single column of scores, for the event; give one column as `probs=`."
            raise ArgumentError(msg)
        if cut.several and self.needs.compared:
            of_one = self.needs.compared[0]
            name = next(name for name, formula in self.formulas if of_one in formula.all_terms)
            msg = f"{name} does not accept a list of values for {cut.option}; give one value."
            raise ArgumentError(msg)
        if cut.option != "threshold" and source.sides is not None:
            msg = f"`{cut.option}` cannot be combined with `group_by=privileged(…)`; group by a column instead."
            raise ArgumentError(msg)

    def _check_given(self, given: AbstractSet[str]) -> None:
        """Refuse a call without the columns that a metric reads."""
        for name, formula in self.formulas:
            for role in sorted(formula.reads - given):
                raise ColumnError(_missing(name, formula, role, given))

    def _check_numbers(self, roles: Roles) -> None:
        """Refuse weights that a formula would ignore."""
        for name, formula in self.formulas:
            if formula.of_labels:
                continue
            if roles.weights is not None and formula.input == "rows" and "weight" not in formula.statistics:
                msg = (
                    f"{name} does not accept weights; leave out `case_weights=`, or add a parameter `weight` to its "
                    "function."
                )
                raise ArgumentError(msg)

    def check_independence(self, options: Options) -> None:
        """Refuse to treat the rows of a list as independent of each other."""
        if options.cluster is not None or options.design is not None:
            return
        for name, formula in self.formulas:
            for term in _terms_of_lists([formula]):
                columns = listed(names_of(term.compared_by[:1]))
                msg = (
                    f"{name}: the rows of a list depend on each other, so intervals and tests need to know which "
                    f"belong together: add `cluster={columns}`, or the column of users who have several lists."
                )
                raise ArgumentError(msg)

    # Before a tally is read

    def check_counted(self, tally: Tally, options: Options) -> None:
        """Refuse a tally that was counted for other columns or metrics than these."""
        roles = self.roles(options)
        pairs = {
            "truth": (roles.truth, tally.truth),
            "estimate": (roles.estimate, tally.estimate),
            "threshold": (roles.cut, tally.cut),
            "case_weights": (roles.weights, tally.weights),
            "probs and score_bins": (roles.scores, tally.scores),
            "survival times, intervals or quantiles": (roles.forecast, tally.forecast),
            "metrics": (self.needs, tally.needs),
        }
        other = [name for name, (wanted, counted) in pairs.items() if wanted != counted]
        if other:
            msg = f"The tally was counted with different {listed(other)}; use the same settings, or count again."
            raise ArgumentError(msg)

    def check_tally(self, tally: Tally, options: Options) -> None:
        """Refuse a tally without the statistics that the metrics read, or with invalid values."""
        check_tally(tally)
        check_weights(tally)
        check_design(tally)
        if tally.needs.numbers:
            for name in _OF_LABELS:
                if getattr(options, name):
                    content = CONTENT[self.formulas[0][1].kind]
                    msg = f"`{name}` applies to labels, but {self.specs[0].name} reads {content}; leave it out."
                    raise ArgumentError(msg)
        self._check_given(tally.given)
        self._check_probabilities(tally)
        self._check_agreement(tally, options)
        _check_predictions(tally)
        if not tally.needs.covers(self.needs):
            msg = "The tally was not counted for all of these metrics; count again with the metrics to be computed."
            raise ArgumentError(msg)

    def _check_agreement(self, tally: Tally, options: Options) -> None:
        """Refuse one label of many for metrics that compare labels row by row."""
        if options.pos_label is None:
            return
        for name, formula in self.formulas:
            is_of_labels = formula.kind == "class" and bool(_terms_of_lists([formula]))
            if is_of_labels and tally.cells[ESTIMATE].drop_nulls().n_unique() > 2:
                msg = (
                    f"{name} is about all labels; leave out `pos_label`, or make the event a column of its own, "
                    f'such as `(pl.col("label") == {options.pos_label!r}).alias("event")`.'
                )
                raise ArgumentError(msg)

    def _check_probabilities(self, tally: Tally) -> None:
        """Refuse scores other than probabilities if a metric needs probabilities."""
        of_probabilities = [name for name, formula in self.formulas if formula.probabilities]
        if not of_probabilities:
            return
        # bins lie between 0 and 1
        if tally.scores is not None and not tally.binned:
            for index, column in enumerate(tally.scores.columns):
                low, high = _ends(tally, f"s{index}")
                if low is not None and (low < 0 or high > 1):
                    msg = (
                        f"`probs`: {column.name!r} holds values from {low:g} to {high:g}, but {of_probabilities[0]} "
                        "needs probabilities between 0 and 1. Convert logits with `probs=sigmoid(…)`, or use ranking "
                        "metrics, such as roc_auc."
                    )
                    raise ColumnError(msg)
        if "least total" in tally.cells.columns:
            low, high = _ends(tally, "total")
            if low is not None and not 1 - _ROUNDED <= low <= high <= 1 + _ROUNDED:
                msg = (
                    f"`probs`: the row sums of the columns range from {low:.3g} to {high:.3g}, but "
                    f"{of_probabilities[0]} needs probabilities of all labels, which add up to 1."
                )
                raise ColumnError(msg)


def _terms_of_lists(formulas: Iterable[Formula]) -> list[Statistic]:
    """The quantities of rows that depend on the other rows of a list."""
    terms = frozenset[Statistic]().union(*(formula.all_terms for formula in formulas))
    return sorted((term for term in terms if term.lists), key=lambda term: term.column)


def _check_predictions(tally: Tally) -> None:
    """Refuse survival probabilities outside 0 to 1, and predictions whose columns are swapped."""
    forecast = tally.forecast
    if forecast is None:
        return
    _check_order(tally, forecast)
    for name, column in zip(forecast.names, forecast.columns, strict=True):
        if not forecast.is_survival:
            continue
        low, high = _ends(tally, name)
        if low is not None and (low < 0 or high > 1):
            msg = (
                f"`probs`: {column.name!r} holds values from {low:g} to {high:g}, but survival probabilities lie "
                "between 0 and 1."
            )
            raise ColumnError(msg)


def _check_order(tally: Tally, forecast: Forecast) -> None:
    """Refuse intervals whose ends are swapped, and predictions that are in the wrong order in all rows."""
    predictions = zip(forecast.points, [column.name for column in forecast.columns], strict=True)
    for index, ((start, before), (end, after)) in enumerate(itertools.pairwise(predictions)):
        least, most = _ends(tally, step(index))
        if least is None:
            continue
        if forecast.level is not None:
            if least < 0:
                msg = (
                    f"`estimate`: {before!r} is above {after!r} in some rows; the lower end of an interval comes first."
                )
                raise ColumnError(msg)
        elif forecast.is_survival:
            if least > 0:
                msg = (
                    f"`probs`: {after!r} at {end:g} is above {before!r} at {start:g} in all rows, but survival does "
                    "not rise with time; the columns may be swapped."
                )
                raise ColumnError(msg)
        elif most < 0:
            msg = (
                f"`estimate`: {after!r} at {end:g} is below {before!r} at {start:g} in all rows, but quantiles rise "
                "with their level; the columns may be swapped."
            )
            raise ColumnError(msg)


def _refuse_several(name: str, estimate: object) -> None:
    """Refuse an interval, or quantiles, as the estimate of a metric that reads one column."""
    if isinstance(estimate, PredictionInterval | Mapping):
        msg = f"`estimate`: {name} reads one column of predictions, not an interval or quantiles."
        raise ColumnError(msg)


def _reads_order_of_scores(formula: Formula) -> bool:
    return formula.kind == "prob" and formula.input != "sums"


def _missing(name: str, formula: Formula, role: str, given: AbstractSet[str]) -> str:
    """The message for a metric without a column that it reads."""
    content = {"truth": "true labels", "probs": "scores"}.get(role, "predicted labels")
    way_out = f"`{role}=`"
    if formula.kind == "survival" and role == "probs":
        return f'{name} needs survival probabilities by evaluation time: `probs={{365: "survival_at_365"}}`.'
    if formula.kind == "interval" and role == "estimate":
        return f'{name} needs an interval: `estimate=prediction_interval("lower", "upper", level=0.9)`, or quantiles.'
    if formula.kind == "survival" and role == "estimate":
        return f"{name} needs the column of predicted times, or of risks: `estimate=`."
    if not formula.of_labels:
        content = f"{'true' if role == 'truth' else 'predicted'} numbers"
    elif role == "estimate":
        from_scores = "`threshold=` to turn `probs` into labels" if "probs" in given else _FROM_SCORES
        way_out += f", or {from_scores}"
    return f"{name} needs the column of {content}: {way_out}."


def _ends(tally: Tally, quantity: str) -> tuple[Any, Any]:
    """The smallest and the largest value of a quantity in all rows of a tally."""
    return tally.cells.select(pl.col(f"least {quantity}").min(), pl.col(f"most {quantity}").max()).row(0)


def check_weights(tally: Tally) -> None:
    """Refuse weights that are all zero."""
    if tally.weights is not None and tally.cells["n"].sum() and not tally.cells["w"].sum():
        msg = f"`{tally.role_of_weights}`: all values of {tally.weights.name!r} are zero."
        raise WeightError(msg)


def check_features(spec: MetricSpec, outer: Sequence[Column]) -> None:
    """Refuse a metric without the groups it needs, and groups that the data are already grouped by."""
    if spec.by is None:
        if any(formula.given in {"truth", "estimate"} for _, formula in spec.formulas):
            msg = (
                f"{spec.name} is defined for groups only; compare groups, for example with `separation(…)` or "
                "`new_groupwise_metric`."
            )
            raise ArgumentError(msg)
        return
    refuse_outer(spec.name, spec.by, outer)


def refuse_outer(name: str, by: By, outer: Sequence[Column]) -> None:
    """Refuse groups that the data are grouped by."""
    for column in by.columns:
        if column in outer:
            msg = (
                f"{name}: the data are grouped by {column.name!r}, so each part has only one group to compare; group "
                "by another column, or compare another one."
            )
            raise ColumnError(msg)


def check_sizes(tally: Tally, bys: Iterable[By]) -> None:
    """Refuse features that make a group of almost every row, unless `min_n` or `min_share` leaves groups to compare."""
    # a group of one row is a cell of one row
    if (tally.cells["n"] == 1).sum() <= _MOST_SINGLE:
        return
    for by in bys:
        if by.sides:
            continue
        keys = tally.cells[tally.names(by.columns)]
        sizes = keys.with_columns(tally.cells["n"]).group_by(keys.columns).agg(pl.col("n").sum())["n"]
        single = int((sizes == 1).sum())
        smallest = max(by.policy.min_n, by.policy.min_share * int(sizes.sum()))
        has_large = smallest > 1 and len(sizes.filter(sizes >= smallest)) > 1
        if single > _MOST_SINGLE and 2 * single >= len(sizes) and not has_large:
            way_out = _way_to_fewer_groups(by, keys)
            if len(sizes) > single + 1:
                way_out += ", or leave out small groups with `min_n=`"
            msg = (
                f"`by`: {by.text!r} makes {len(sizes):,} groups, {single:,} of them of one row. {way_out}. An "
                "identifier is no feature: leave it out, or give it as `group_by=` or `cluster=`."
            )
            raise ColumnError(msg)


def _way_to_fewer_groups(by: By, keys: pl.DataFrame) -> str:
    """The words on how to pool the values of the feature that has the most."""
    index = max(range(keys.width), key=lambda number: keys[:, number].n_unique())
    name, values = by.columns[index].name, keys[:, index].drop_nulls()
    if keys.width > 1 and values.n_unique() <= _MOST_SINGLE:
        return "Cross fewer features"
    if not values.dtype.is_numeric():
        return f"Pool rare values of {name!r} with `lump_rare`"
    finite = values.filter(values.is_finite())
    low, high = cast("tuple[float, float]", (finite.min(), finite.max()))
    width = 10 ** math.floor(math.log10(high - low))
    return f"Put numbers into bands, `(pl.col({name!r}) // {width:_}).alias({f'{name}_band'!r})`"


def check_parts(options: Options) -> None:
    """Refuse parts without a seed, or together with clusters."""
    if options.parts is None:
        return
    whole("parts", options.parts, 0)
    if options.cluster is not None:
        msg = "`parts` and `cluster` are alternatives; give only one of them."
        raise ArgumentError(msg)


def _scores(probs: object) -> Scores | None:
    """The columns of scores: one, a list in the order of the labels, or a mapping from labels."""
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
        if len(columns) < 2 or len(set(names)) < len(names):
            msg = (
                f"`probs` must list one column for each label, not {listed(names)}; give a single column without "
                "brackets."
            )
            raise ColumnError(msg)
        return Scores(columns, several=True)
    return Scores((Column.of(probs, "probs"),))

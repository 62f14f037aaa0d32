"""Checks of tallies before they are read: of weights, scores, predictions, groups and the design of a survey."""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Set as AbstractSet
from typing import Any

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, WeightError, advice, listed
from tidyfair.specs import ROLE, By, Column, Forecast, MetricSpec, Options, SurveyDesign, named_formulas
from tidyfair.specs.formulas import CONTENT, Formula
from tidyfair.tallies.moments import Needs, step
from tidyfair.tallies.tally import Scores, Tally
from tidyfair.tallies.thresholds import ESTIMATE

SHOWN = 5
"""The most strata or clusters that a message names."""
_FROM_SCORES = ", or scores as `probs=` with `threshold=`"
_ROUNDED = 0.01
_MOST_SINGLE = 1_000
"""More groups of one row than this, if they are half of all groups, are those of a measurement or of an identifier."""
_MOST_FRACTIONS = 100
"""More numbers than this with fractions among them are a measurement, not codes of groups."""


def check_readable(tally: Tally, specs: Sequence[MetricSpec], needs: Needs, options: Options) -> None:
    """Refuse a tally without the statistics that metrics read, their `needs`, or with invalid values."""
    if tally.needs is not needs:
        _check_counted(tally, specs, needs)
    if tally.weights is not None:
        check_weights(tally)
    if isinstance(tally.design, SurveyDesign):
        _check_design(tally, tally.design)
    if tally.needs.numbers:
        for option in ("pos_label", "labels", "estimator"):
            if getattr(options, option):
                content = CONTENT[specs[0].kind]
                msg = f"`{option}` applies to labels, but {specs[0].name} reads {content}; leave it out."
                raise ArgumentError(msg)
    if tally.scores is not None:
        _check_probabilities(tally, tally.scores, named_formulas(specs))
    if options.pos_label is not None:
        _check_agreement(tally, named_formulas(specs), options.pos_label)
    if tally.forecast is not None:
        _check_predictions(tally, tally.forecast)


def _check_counted(tally: Tally, specs: Sequence[MetricSpec], needs: Needs) -> None:
    """Refuse a tally of another call that was not counted for the metrics."""
    check_given(named_formulas(specs), tally.given)
    if not tally.needs.covers(needs):
        msg = "The tally was not counted for all of these metrics; count again with the metrics to be computed."
        raise ArgumentError(msg)


def check_given(formulas: Sequence[tuple[str, Formula]], given: AbstractSet[str]) -> None:
    """Refuse a call without the columns that a metric reads."""
    for name, formula in formulas:
        if missing := formula.reads - given:
            raise ColumnError(_missing(name, formula, min(missing), given))


def _missing(name: str, formula: Formula, role: str, given: AbstractSet[str]) -> str:
    """The message for a metric without a column that it reads."""
    content = {"truth": "true labels", "probs": "scores"}.get(role, "predicted labels")
    way_out = f"`{role}=`"
    if formula.kind == "survival" and role == "probs":
        return f'{name} needs survival probabilities by evaluation time: `probs={{365: "survival_at_365"}}`.'
    if formula.kind == "interval" and role == "estimate":
        way_out = '`estimate=prediction_intervals.interval("lower", "upper", level=0.9)`, or quantiles'
        return f"{name} needs an interval: {way_out}."
    if formula.kind == "survival" and role == "estimate":
        return f"{name} needs the column of predicted times, or of risks: `estimate=`."
    if not formula.has_labels:
        content = f"{'true' if role == 'truth' else 'predicted'} numbers"
    elif role == "estimate":
        has_scores = "probs" in given
        way_out += ", or `threshold=` to turn `probs` into labels" if has_scores else _FROM_SCORES
    return f"{name} needs the column of {content}: {way_out}."


def check_weights(tally: Tally) -> None:
    """Refuse weights that are all zero."""
    if tally.weights is not None and tally.row_count and not tally.cells["w"].sum():
        msg = f"`{tally.role_of_weights}`: all values of {tally.weights.name!r} are zero."
        raise WeightError(msg)


def _check_probabilities(tally: Tally, scores: Scores, formulas: Sequence[tuple[str, Formula]]) -> None:
    """Refuse scores other than probabilities if a metric needs probabilities."""
    metric = next((name for name, formula in formulas if formula.probabilities), None)
    if metric is None:
        return
    # bins lie between 0 and 1
    way_out = "Convert logits with `probs=sigmoid(…)`, or use ranking metrics, such as roc_auc."
    for index, column in enumerate(scores.columns if scores.bins is None else ()):
        _check_share(tally, f"s{index}", column, f"{metric} needs probabilities between 0 and 1. {way_out}")
    if "least total" in tally.cells.columns:
        low, high = _ends(tally, "total")
        if low is not None and not 1 - _ROUNDED <= low <= high <= 1 + _ROUNDED:
            msg = (
                f"`probs`: the row sums of the columns range from {low:.3g} to {high:.3g}, but {metric} needs "
                "probabilities of all labels, which add up to 1."
            )
            raise ColumnError(msg)


def _check_agreement(tally: Tally, formulas: Sequence[tuple[str, Formula]], pos_label: object) -> None:
    """Refuse one label of many for metrics that compare labels row by row."""
    for name, formula in formulas:
        is_of_labels = formula.kind == "class" and bool(formula.terms_of_lists)
        if is_of_labels and tally.cells[ESTIMATE].drop_nulls().n_unique() > 2:
            msg = (
                f"{name} is about all labels; leave out `pos_label`, or make the event a column of its own, "
                f'such as `(pl.col("label") == {pos_label!r}).alias("event")`.'
            )
            raise ArgumentError(msg)


def _check_predictions(tally: Tally, forecast: Forecast) -> None:
    """Refuse survival probabilities outside 0 to 1, and predictions whose columns are swapped."""
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
    for name, column in zip(forecast.names, forecast.columns, strict=True) if forecast.is_survival else ():
        _check_share(tally, name, column, "survival probabilities lie between 0 and 1.")


def _check_share(tally: Tally, quantity: str, column: Column, needed: str) -> None:
    """Refuse scores outside 0 to 1, with what is needed in words."""
    low, high = _ends(tally, quantity)
    if low is not None and (low < 0 or high > 1):
        msg = f"`probs`: {column.name!r} holds values from {low:g} to {high:g}, but {needed}"
        raise ColumnError(msg)


def _ends(tally: Tally, quantity: str) -> tuple[Any, Any]:
    """The smallest and the largest value of a quantity in all rows of a tally."""
    return tally.cells.select(pl.col(f"least {quantity}").min(), pl.col(f"most {quantity}").max()).row(0)


def check_sizes(tally: Tally, specs: Sequence[MetricSpec]) -> None:
    """Refuse features that make a group of almost every row, or of every measured number.

    `min_n` or `min_share` may leave groups to compare.
    """
    if tally.cells.height <= _MOST_FRACTIONS:
        return
    # a group of one row is a cell of one row
    may_be_single = len(tally.cells) > _MOST_SINGLE and (tally.cells["n"] == 1).sum() > _MOST_SINGLE
    for by in dict.fromkeys(spec.by for spec in specs):
        if by is None or by.sides or by.memberships is not None or not (may_be_single or _is_measured(tally, by)):
            continue
        keys = tally.keys_of_cells(by.columns)
        sizes = keys.with_columns(tally.cells["n"]).group_by(keys.columns).agg(pl.col("n").sum())["n"]
        single = int((sizes == 1).sum())
        smallest = max(by.policy.min_n, by.policy.min_share * int(sizes.sum()))
        has_large = smallest > 1 and len(sizes.filter(sizes >= smallest)) > 1
        if has_large:
            continue
        if _is_measured(tally, by) or (single > _MOST_SINGLE and 2 * single >= len(sizes)):
            way_out = _way_to_fewer_groups(by, keys)
            if len(sizes) > single + 1:
                way_out += ", or leave out small groups with `min_n=`"
            of_one_row = f", {single:,} of them of one row" if single else ""
            msg = (
                f"`by`: {by.text!r} makes {len(sizes):,} groups{of_one_row}. {way_out}. An identifier is no feature: "
                "leave it out, or give it as `group_by=` or `cluster=`."
            )
            raise ColumnError(msg)


def _is_measured(tally: Tally, by: By) -> bool:
    """Check whether a feature has so many numbers with fractions that they are a measurement."""
    for key in tally.keys_of_cells(by.columns):
        if key.dtype.is_float() and key.n_unique() > _MOST_FRACTIONS:
            finite = key.filter(key.is_finite())
            if (finite != finite.round()).any():
                return True
    return False


def _way_to_fewer_groups(by: By, keys: pl.DataFrame) -> str:
    """The words on how to pool the values of the feature that has the most."""
    index = max(range(keys.width), key=lambda number: keys[:, number].n_unique())
    name, values = by.columns[index].name, keys[:, index].drop_nulls()
    if keys.width > 1 and values.n_unique() <= _MOST_SINGLE and not values.dtype.is_float():
        return "Cross fewer features"
    if not values.dtype.is_numeric():
        return advice(
            f"Pool rare values of {name!r} with `lump_rare`", f"Put rare values of {name!r} together in the file"
        )
    edges = f"`bins({name!r}, [edge, …])`, at quantiles with `quantile_groups({name!r}, 5)`"
    curve = f", or see the metric over it with `inference.feature_curve(metric, {name!r})`"
    return advice(f"Put numbers into bins with {edges}{curve}", "Put numbers into bins in the file")


def _check_design(tally: Tally, design: SurveyDesign) -> None:
    """Refuse strata, clusters and populations that are missing, or contradict each other."""
    for column, name in zip(design.keys, tally.names(design.keys), strict=True):
        if tally.cells[name].null_count():
            msg = f"`{ROLE}`: some values of {column.name!r} are missing; fill or filter these rows first."
            raise ColumnError(msg)
    if design.clusters is not None and design.strata and not design.nested:
        _check_nested(tally, design.strata, design.clusters)
    if design.fpc is not None:
        _check_populations(tally, design, design.fpc)


def _check_nested(tally: Tally, strata: Sequence[Column], clusters: Column) -> None:
    """Refuse clusters of one number in several strata, which may be one cluster or several."""
    (cluster,) = tally.names([clusters])
    own = list(dict.fromkeys([cluster, *tally.names(strata)]))
    pairs = tally.cells.select(own).unique(maintain_order=True)
    repeated = pairs.filter(pairs[cluster].is_duplicated())[cluster].unique().sort()
    if len(repeated):
        msg = (
            f"`{ROLE}`: the clusters {listed(repeated, shown=SHOWN)} of {clusters.name!r} are in several strata. If "
            "cluster numbers start again in each stratum, write `surveys.design(…, nested=True)`; otherwise correct "
            "the data."
        )
        raise ColumnError(msg)


def _check_populations(tally: Tally, design: SurveyDesign, fpc: Column) -> None:
    """Refuse finite populations that are no numbers, or differ within a stratum."""
    (name,) = tally.names([fpc])
    column = tally.cells[name]
    if not column.dtype.is_numeric():
        msg = f"`{ROLE}`: the population {fpc.name!r} is {column.dtype}; it is a number of PSUs, or a share."
        raise ColumnError(msg)
    if not (column.is_finite() & (column > 0)).all():
        msg = (
            f"`{ROLE}`: some values of the population {fpc.name!r} are not above 0; it is a number of PSUs, or a share."
        )
        raise ColumnError(msg)
    strata = tally.names(design.strata)
    distinct = tally.cells.select(list(dict.fromkeys([*strata, name]))).unique().sort(*strata, name)
    several = distinct.select(strata).is_duplicated() if strata else distinct[name].is_null() | (len(distinct) > 1)
    if several.any():
        stratum = f" in the stratum {in_words(distinct.select(strata).filter(several).row(0))}" if strata else ""
        msg = f"`{ROLE}`: the population {fpc.name!r} has several values{stratum}; it is one number for each stratum."
        raise ColumnError(msg)


def in_words(values: tuple[Any, ...]) -> str:
    """A stratum as part of a sentence."""
    return repr(values[0]) if len(values) == 1 else repr(values)

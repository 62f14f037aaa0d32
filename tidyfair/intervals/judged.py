"""Errors of values from labels of people for some rows and of a judge for all (prediction-powered inference).

Estimates are those of the labels of people alone, moved to the values of both, as if people had labelled more rows: so
many more that variances are as small as those of both. Their small samples are thus treated as in all other calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tidyfair.evaluation import JudgedEvaluator, JudgedValues, RequestedFormula
from tidyfair.intervals.estimates import Influences, JudgedShares, MadeOfShares, Scale, Smooth
from tidyfair.intervals.jackknife import by_jackknife
from tidyfair.intervals.shares import Share, SumOfShares
from tidyfair.specs import By, Context, Floats


@np.errstate(divide="ignore", invalid="ignore")
def rates_by_judge(evaluator: JudgedEvaluator, requested: RequestedFormula, by: By | None) -> JudgedShares:
    """The values of a rate in the groups of a feature, by groups and labels."""
    return _shares(evaluator.judged(requested, by))


def _shares(both: JudgedValues) -> JudgedShares:
    """The values of a rate."""
    variance = both.segments.sum(both.of_people**2)
    # the rows that the labels of people alone are of; all that count where these agree
    rows = np.where(variance > 0, both.people * (1 - both.people) / variance, both.denominator) / both.ratio
    error = np.sqrt(both.segments.sum(both.influence**2))
    return JudgedShares(both.value.ravel(), rows.ravel(), known_error=error.ravel())


@np.errstate(divide="ignore", invalid="ignore")
def by_judge(
    evaluator: JudgedEvaluator, requested: RequestedFormula, by: By | None, scale: Scale,
    made_of: Share | SumOfShares | None,
) -> Smooth:  # fmt: skip
    """The values of other formulas, which may be made of shares, in the groups of a feature, by groups and labels."""
    both = evaluator.judged(requested, by)
    people = by_jackknife(evaluator.sources[0], requested, by, scale)
    shift, ratio = (both.value - both.people).ravel(), both.ratio.ravel()
    error = people.error * np.sqrt(ratio)
    values = Smooth.about(people.below[0] + shift, error, people.freedom, scale, sampling="judged")
    values = replace(values, value=both.value.ravel())
    if evaluator.tally.cluster_names and by is not None:
        in_errors = both.influence / np.sqrt(both.segments.to_rows(both.segments.sum(both.influence**2)))
        return replace(values, influences=Influences.of_units(in_errors, both.group, both.unit, len(both.value)))
    return values if made_of is None else MadeOfShares.of(people, made_of).moved(values, shift, ratio)


@np.errstate(divide="ignore", invalid="ignore")
def beside_context(
    evaluator: JudgedEvaluator, requested: RequestedFormula, by: By, context: Context, scale: Scale, *, is_rate: bool
) -> JudgedShares | Smooth:
    """The values of a formula in the groups of a feature, then those of what each is compared with."""
    both = [evaluator.judged(requested, by), evaluator.judged(requested, by, context)]

    def joined(numbers: Iterable[Floats]) -> Floats:
        return np.concatenate([own.ravel() for own in numbers])

    value = joined(own.value for own in both)
    if is_rate:
        shares = list(map(_shares, both))
        rows, error = (joined(getattr(own, name) for own in shares) for name in ("rows", "known_error"))
        values: JudgedShares | Smooth = JudgedShares(value, rows, known_error=error)
    else:
        error = joined(np.sqrt(own.variance) for own in both)
        freedom = np.fmax(joined(own.denominator for own in both) - 1, 1)
        values = Smooth.about(value, error, freedom, scale, sampling="judged")
    if context == "rest" and not evaluator.tally.cluster_names:
        # no row is in a group and in the rest
        return values
    errors = [own.segments.to_rows(np.sqrt(own.segments.sum(own.influence**2))) for own in both]
    in_errors = np.concatenate([own.influence / error for own, error in zip(both, errors, strict=True)])
    groups = len(both[0].value)
    group, unit = np.append(both[0].group, both[1].group + groups), np.append(both[0].unit, both[1].unit)
    return replace(values, influences=Influences.of_units(in_errors, group, unit, 2 * groups))

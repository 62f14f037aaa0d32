"""Errors of values from labels of people for some rows and of a judge for all (prediction-powered inference).

Estimates are those of the labels of people alone, moved to the values of both, as if people had labeled more rows: so
many more that variances are as small as those of both. Their small samples are thus treated as in all other calls.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidyfair.evaluation import JudgedEvaluator, RequestedFormula
from tidyfair.intervals.estimates import Influences, JudgedShares, MadeOfShares, Scale, Smooth
from tidyfair.intervals.jackknife import by_jackknife
from tidyfair.intervals.shares import Share, SumOfShares
from tidyfair.specs import By


@np.errstate(divide="ignore", invalid="ignore")
def rates_by_judge(evaluator: JudgedEvaluator, requested: RequestedFormula, by: By | None) -> JudgedShares:
    """The values of a rate in the groups of a feature, by groups and labels."""
    both = evaluator.judged(requested, by)
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
    if both.cluster is not None and by is not None:
        in_errors = both.influence / np.sqrt(both.segments.to_rows(both.segments.sum(both.influence**2)))
        return replace(values, influences=Influences.of_units(in_errors, both.group, both.cluster, len(both.value)))
    return values if made_of is None else MadeOfShares.of(people, made_of).moved(values, shift, ratio)

"""Standard errors of values from labels of people for some rows and of a judge for all (prediction-powered inference).

A rate has the limits of a share of as many rows as people would have to label for a value that varies as little, so
that its intervals, and those of comparisons, are those of rates. Other values have limits by Student's t.
"""

from __future__ import annotations

import numpy as np

from tidyfair.evaluation import JudgedEvaluator, RequestedFormula
from tidyfair.intervals.estimates import Influences, JudgedShares, Scale, Smooth, known_errors
from tidyfair.specs import By


@np.errstate(divide="ignore", invalid="ignore")
def by_judge(
    evaluator: JudgedEvaluator, requested: RequestedFormula, by: By | None, scale: Scale, *, is_rate: bool
) -> JudgedShares | Smooth:
    """The values of a formula in the groups of a feature, by groups and labels."""
    both = evaluator.powered(requested, by)
    labelled = both.labelled[:, None]
    if is_rate:
        people, error = both.people, np.sqrt(both.variance)
        # the rows that the labels of people alone are of; all that count where they agree
        rows = np.where(both.variance_of_people > 0, people * (1 - people) / both.variance_of_people, both.rows)
        return JudgedShares(both.value.ravel(), (rows / both.ratio).ravel(), known_error=error.ravel())
    error = np.sqrt(both.ratio * both.variance_of_people * labelled / (labelled - 1))
    error = known_errors(error, both.value)
    values = Smooth.about(both.value, error, labelled - 1, scale, sampling="judged")
    if both.cluster is None or by is None:
        return values
    in_errors = both.influence / error[both.group]
    influences = Influences.of_units(in_errors, both.group, both.cluster, len(both.value))
    return Smooth.about(both.value, error, labelled - 1, scale, sampling="judged", influences=influences)

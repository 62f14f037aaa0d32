"""How far labels depend on groups: independence, separation and sufficiency, for any number of labels.

`count` is the weight of a label among the labels of a group, `overall_count` that among all groups together.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.metrics.define import class_metric
from tidyfair.specs.formulas import Expr  # noqa: TC001 - part of what a reader of a formula sees

__all__ = ["distance_given_estimate", "distance_given_truth", "distance_to_all"]

_Distance: TypeAlias = Literal["kl", "total_variation", "jensen_shannon", "wasserstein"]


_IN_STEPS = ("distance", "wasserstein")


def _divergence(own: Expr, other: Expr) -> Expr:
    """Kullback-Leibler divergence in nats; what never happens in the first counts nothing."""
    return pl.when(own > 0).then(own * (own / other).log()).otherwise(0.0).sum()


def _distance(count: Expr, overall_count: Expr, distance: str) -> Expr:
    """The distance of two distributions, null where one of them is of nobody."""
    own, all_groups = count / count.sum(), overall_count / overall_count.sum()
    middle = (own + all_groups) / 2
    distances = {
        "kl": _divergence(own, all_groups),
        "total_variation": (own - all_groups).abs().sum() / 2,
        "jensen_shannon": (_divergence(own, middle) + _divergence(all_groups, middle)) / 2,
        # of the places of labels, each one step from the next
        "wasserstein": (own.cum_sum() - all_groups.cum_sum()).abs().sum(),
    }
    if distance not in distances:
        raise ArgumentError.unknown("distance", distance, distances)
    return pl.when(count.sum() > 0).then(distances[distance].clip(0))


@class_metric(direction="minimize", range=(0, math.inf), given="nothing", ordered_with=_IN_STEPS)
def distance_to_all(count: Expr, overall_count: Expr, *, distance: _Distance = "kl") -> Expr:
    """How far the predictions of a group are from those of all: 0 for all groups is independence.

    `distance` is `"kl"` (Kullback-Leibler, in nats), `"total_variation"` (0 to 1, for labels without an order),
    `"jensen_shannon"` (0 to ln 2) or `"wasserstein"` (in steps between labels, whose order counts). Null without
    predictions. The mean of `"kl"` over groups, as large as they are, is the mutual information of prediction and
    group, and 2 n times that is G, the statistic of the likelihood-ratio test.

    >>> distance_to_all.formula(count=[2, 0], overall_count=[2, 2])
    0.6931471805599453
    """
    return _distance(count, overall_count, distance)


@class_metric(direction="minimize", range=(0, math.inf), given="truth", ordered_with=_IN_STEPS)
def distance_given_truth(count: Expr, overall_count: Expr, *, distance: _Distance = "kl") -> Expr:
    """How far the predictions of a group are from those of all among the rows of a true label.

    0 for all groups and true labels is separation (equalized odds). `distance` is that of `distance_to_all`; null for a
    true label that a group does not have.

    >>> distance_given_truth.formula(count=[2, 0], overall_count=[2, 2])
    0.6931471805599453
    """
    return _distance(count, overall_count, distance)


@class_metric(direction="minimize", range=(0, math.inf), given="estimate", ordered_with=_IN_STEPS)
def distance_given_estimate(count: Expr, overall_count: Expr, *, distance: _Distance = "kl") -> Expr:
    """How far the true labels of a group are from those of all among the rows of a predicted label.

    0 for all groups and predictions is sufficiency (predictive parity for each label). `distance` is that of
    `distance_to_all`; null for a label that a group is never given.

    >>> distance_given_estimate.formula(count=[2, 0], overall_count=[2, 2])
    0.6931471805599453
    """
    return _distance(count, overall_count, distance)

"""Dependence of labels on groups: independence, separation and sufficiency, for any number of labels.

`count` is the weight of a label among the labels of a group, `overall_count` that among all groups together.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from tidyfair.errors import ArgumentError
from tidyfair.metrics.define import class_metric
from tidyfair.specs.formulas import Number

__all__ = ["distance_given_estimate", "distance_given_truth", "distance_to_all"]

_Distance: TypeAlias = Literal["kl", "total_variation", "jensen_shannon", "wasserstein"]


_IN_STEPS = ("distance", "wasserstein")


def _divergence(own: Number, other: Number) -> Number:
    """Kullback-Leibler divergence in nats; labels with share 0 in the first distribution contribute 0."""
    return np.where(own > 0, own * np.log(own / other), 0.0).sum(axis=-1)


def _jensen_shannon(own: Number, other: Number) -> Number:
    """The mean divergence of two distributions from their mixture."""
    middle = (own + other) / 2
    return (_divergence(own, middle) + _divergence(other, middle)) / 2


def _total_variation(own: Number, other: Number) -> Number:
    """Half the sum of the differences of shares."""
    return np.abs(own - other).sum(axis=-1) / 2


def _wasserstein(own: Number, other: Number) -> Number:
    """The mean distance that labels must move, with a step of 1 between neighbours."""
    return np.abs(own.cumsum(axis=-1) - other.cumsum(axis=-1)).sum(axis=-1)


_DISTANCES = {
    "kl": _divergence,
    "total_variation": _total_variation,
    "jensen_shannon": _jensen_shannon,
    "wasserstein": _wasserstein,
}


def _distance(count: Number, overall_count: Number, distance: str) -> Number:
    """The distance of two distributions, null where one of them is empty."""
    if distance not in _DISTANCES:
        raise ArgumentError.not_one_of("distance", distance, _DISTANCES)
    total, total_of_all = count.sum(axis=-1, keepdims=True), overall_count.sum(axis=-1, keepdims=True)
    value = _DISTANCES[distance](count / total, overall_count / total_of_all)
    return np.where(total[..., 0] > 0, value.clip(0), np.nan)


@class_metric(direction="minimize", range=(0, math.inf), given="nothing", ordered_with=_IN_STEPS)
def distance_to_all(count: Number, overall_count: Number, *, distance: _Distance = "kl") -> Number:
    """Distance of the predictions of a group from those of all: 0 for all groups is independence.

    `distance` is `"kl"` (Kullback-Leibler, in nats), `"total_variation"` (0 to 1, for labels without an order),
    `"jensen_shannon"` (0 to ln 2) or `"wasserstein"` (in steps between labels, whose order counts). Null without
    predictions. The mean of `"kl"` over groups, weighted by their size, is the mutual information of prediction and
    group, and 2 n times that is G, the statistic of the likelihood-ratio test.

    >>> distance_to_all.formula(count=[2, 0], overall_count=[2, 2])
    0.6931471805599453
    """
    return _distance(count, overall_count, distance)


@class_metric(direction="minimize", range=(0, math.inf), given="truth", ordered_with=_IN_STEPS)
def distance_given_truth(count: Number, overall_count: Number, *, distance: _Distance = "kl") -> Number:
    """Distance of the predictions of a group from those of all among the rows of a true label.

    0 for all groups and true labels is separation (equalized odds). `distance` as in `distance_to_all`; null for a
    true label that a group does not have.

    >>> distance_given_truth.formula(count=[2, 0], overall_count=[2, 2])
    0.6931471805599453
    """
    return _distance(count, overall_count, distance)


@class_metric(direction="minimize", range=(0, math.inf), given="estimate", ordered_with=_IN_STEPS)
def distance_given_estimate(count: Number, overall_count: Number, *, distance: _Distance = "kl") -> Number:
    """Distance of the true labels of a group from those of all among the rows of a predicted label.

    0 for all groups and predictions is sufficiency (predictive parity for each label). `distance` is that of
    `distance_to_all`; null for a label that is never predicted for a group.

    >>> distance_given_estimate.formula(count=[2, 0], overall_count=[2, 2])
    0.6931471805599453
    """
    return _distance(count, overall_count, distance)

"""Distances between a group and the others: of their scores, and areas between their ROC curves.

A metric is a function of two samples, those of a group and of the others, each with `truth` (whether a row has the
event), `score` and `weight` (or None). It is null where there is no other group.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tidyfair.errors import Status, Undefined
from tidyfair.metrics.define import prob_metric
from tidyfair.specs.formulas import Sample

Floats: TypeAlias = np.ndarray[Any, Any]

__all__ = [
    "area_between_roc_curves",
    "area_between_roc_curves_debiased",
    "area_between_roc_curves_if_equal",
    "background_negative_auc",
    "background_positive_auc",
    "score_distance",
    "score_distance_debiased",
    "score_distance_if_equal",
    "score_transport",
    "score_transport_debiased",
    "score_transport_if_equal",
]

_FEW_VALUES = 200
_DRAWS = 4_000
_CHORDS = 8
_MEAN_OF_KOLMOGOROV = math.sqrt(math.pi / 2) * math.log(2)
_MEAN_OF_ABSOLUTE = math.sqrt(2 / math.pi)


def _weights(sample: Sample) -> Floats:
    """The weights of the rows of a sample, 1 if it has none."""
    return np.ones(len(sample.score)) if sample.weight is None else sample.weight


def _size(weight: Floats) -> float:
    """The effective number of rows (Kish, 1965)."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def _shares(one: Sample, other: Sample) -> tuple[Floats, Floats, Floats, Floats]:
    """The distinct scores, and the shares of each sample, and of both together, at or below them."""
    values, index = np.unique(np.concatenate([one.score, other.score]), return_inverse=True)
    first = np.bincount(index[: len(one.score)], _weights(one), len(values))
    second = np.bincount(index[len(one.score) :], _weights(other), len(values))
    both = np.cumsum(first + second)
    return values, np.cumsum(first) / first.sum(), np.cumsum(second) / second.sum(), both / both[-1]


def _harmonic(one: Sample, other: Sample) -> float:
    """The size of a single sample with the sampling variance of the difference of the two."""
    sizes = [_size(_weights(sample)) for sample in (one, other)]
    return sizes[0] * sizes[1] / (sizes[0] + sizes[1])


def _distance_within_bins(one: Sample, other: Sample) -> float:
    """The increase of the distance if all scores of one sample come first in a bin, or those of the other."""
    _, first, second, _ = _shares(one, other)
    first_before, second_before = first - np.diff(first, prepend=0.0), second - np.diff(second, prepend=0.0)
    farthest = np.maximum(np.abs(first - second_before), np.abs(first_before - second))
    return float(farthest.max() - np.abs(first - second).max())


@prob_metric(
    direction="minimize", probabilities=False, against="rest", truth=False, error_of_bins=_distance_within_bins
)
def score_distance(one: Sample, other: Sample) -> float:
    """Largest distance between the distribution functions of scores (Kolmogorov, 1933; Smirnov, 1948).

    >>> score_distance.formula(one=[0.25, 0.5], other=[0.5, 0.75])
    0.5
    """
    _, first, second, _ = _shares(one, other)
    return float(np.abs(first - second).max())


@prob_metric(direction="minimize", probabilities=False, against="rest", truth=False)
def score_distance_if_equal(one: Sample, other: Sample) -> float:
    """The distance expected by chance if the scores of the group and the rest had the same distribution.

    The mean of Kolmogorov's distribution, corrected for small samples (Stephens, 1970); with few distinct scores, that
    of a Brownian bridge at these, from draws that are always the same.

    >>> score_distance_if_equal.formula(one=[0.5] * 4, other=[0.5] * 4)
    0.0
    """
    *_, both = _shares(one, other)
    root = math.sqrt(_harmonic(one, other))
    if len(both) > _FEW_VALUES:
        return min(1.0, _MEAN_OF_KOLMOGOROV / (root + 0.12 + 0.11 / root))
    steps = np.sqrt(np.diff(both, prepend=0.0).clip(0))
    walk = np.cumsum(np.random.default_rng(0).standard_normal((_DRAWS, len(both))) * steps, axis=1)
    bridge = walk - both * walk[:, -1:]
    return min(1.0, float(np.abs(bridge).max(axis=1).mean()) / root)


@prob_metric(direction="minimize", probabilities=False, range=(-1, 1), against="rest", truth=False)
def score_distance_debiased(one: Sample, other: Sample) -> float:
    """The distance minus its expectation for equal distributions; about 0 or below is no evidence of a difference.

    >>> score_distance_debiased.formula(one=[0.5] * 4, other=[0.5] * 4)
    0.0
    """
    return _distance(score_distance, one, other) - _distance(score_distance_if_equal, one, other)


def _transport_within_bins(one: Sample, other: Sample) -> float:
    """The largest error in bins: the scores of both samples lie up to half a width from the middle of their bins."""
    return sum((sample.width or 0.0) / 2 for sample in (one, other))


@prob_metric(
    direction="minimize", probabilities=False, range=(0, math.inf), against="rest", truth=False,
    error_of_bins=_transport_within_bins,
)  # fmt: skip
def score_transport(one: Sample, other: Sample) -> float:
    """Wasserstein distance: mean shift of scores that makes their distribution that of the rest (Vaserstein, 1969).

    >>> score_transport.formula(one=[0.25, 0.5], other=[0.5, 0.75])
    0.25
    """
    values, first, second, _ = _shares(one, other)
    return float((np.abs(first - second)[:-1] * np.diff(values)).sum())


@prob_metric(direction="minimize", probabilities=False, range=(0, math.inf), against="rest", truth=False)
def score_transport_if_equal(one: Sample, other: Sample) -> float:
    """The Wasserstein distance expected by chance if the group and the rest had the same distribution.

    By the normal approximation at each score: √(2/π) of the standard error of the difference of the shares below it.

    >>> score_transport_if_equal.formula(one=[0.5] * 4, other=[0.5] * 4)
    0.0
    """
    values, _, _, both = _shares(one, other)
    error = np.sqrt((both * (1 - both)).clip(0) / _harmonic(one, other))
    return float(_MEAN_OF_ABSOLUTE * (error[:-1] * np.diff(values)).sum())


@prob_metric(direction="minimize", probabilities=False, range=(-math.inf, math.inf), against="rest", truth=False)
def score_transport_debiased(one: Sample, other: Sample) -> float:
    """The Wasserstein distance minus its expectation for equal distributions; about 0 or below is no evidence.

    >>> score_transport_debiased.formula(one=[0.5] * 4, other=[0.5] * 4)
    0.0
    """
    return _distance(score_transport, one, other) - _distance(score_transport_if_equal, one, other)


def _distance(metric: Any, one: Sample, other: Sample) -> float:
    """The value of another metric for the same samples."""
    return metric.definition.function(one, other)


def _split(sample: Sample) -> tuple[Sample, Sample]:
    """The rows of a sample with the event, and those without."""
    return _part(sample, event=True), _part(sample, event=False)


def _part(sample: Sample, *, event: bool) -> Sample:
    """The rows of a sample with the event, or those without."""
    taken = np.flatnonzero(sample.truth.astype(bool) == event)
    if not len(taken):
        raise Undefined(Status.ONE_CLASS)
    weight = None if sample.weight is None else sample.weight[taken]
    return replace(sample, truth=sample.truth[taken], score=sample.score[taken], weight=weight)


def _roc(sample: Sample) -> tuple[Floats, Floats]:
    """The corners of a ROC curve, as false alarms and hits, from (0, 0) to (1, 1)."""
    hits, false_alarms = _split(sample)
    _, below, below_without, _ = _shares(hits, false_alarms)
    # selected are those at or above a score, so all but those below the next
    corners = [
        np.concatenate([[0.0], 1 - np.concatenate([[0.0], share[:-1]])[::-1]]) for share in (below_without, below)
    ]
    return corners[0], corners[1]


def _heights(alarms: Floats, hits: Floats, at: Floats, *, right: bool) -> Floats:
    """The height of a ROC curve at some rates of false alarms, just right or left of them."""
    distinct, first = np.unique(alarms, return_index=True)
    last = np.append(first[1:], len(alarms)) - 1
    low, high = hits[first], hits[last]
    after = np.searchsorted(distinct, at, side="right" if right else "left").clip(1, len(distinct) - 1)
    start, end = after - 1, after
    part = (at - distinct[start]) / (distinct[end] - distinct[start])
    return high[start] + (low[end] - high[start]) * part.clip(0, 1)


def _areas_within_bins(one: Sample, other: Sample) -> float:
    """The largest error of the area in bins: each curve may run along two sides of the rectangle of a bin."""
    return _half_of_ties(*_split(one)) + _half_of_ties(*_split(other))


def _half_of_ties(hits: Sample, false_alarms: Sample) -> float:
    """Half the share of pairs of one of each sample that have the same score."""
    _, first, second, _ = _shares(hits, false_alarms)
    return float((np.diff(first, prepend=0.0) * np.diff(second, prepend=0.0)).sum()) / 2


@prob_metric(direction="minimize", probabilities=False, against="pairs", error_of_bins=_areas_within_bins)
def area_between_roc_curves(one: Sample, other: Sample) -> float:
    """ABROCA (Gardner et al., 2019): area between the ROC curves of two groups, exact where they cross.

    Null where a group has one class only.

    >>> better = {"truth": [1, 0, 1, 0], "score": [0.8, 0.2, 0.7, 0.1]}
    >>> worse = {"truth": [1, 0, 1, 0], "score": [0.8, 0.9, 0.7, 0.1]}
    >>> area_between_roc_curves.formula(one=better, other=worse)
    0.5
    """
    curves = [_roc(one), _roc(other)]
    at = np.unique(np.concatenate([curves[0][0], curves[1][0]]))
    (first, second), (first_end, second_end) = (
        [_heights(*curve, at[:-1] if right else at[1:], right=right) for curve in curves] for right in (True, False)
    )
    start, end = first - second, first_end - second_end
    size = np.abs(start) + np.abs(end)
    crossing = start * end < 0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(crossing, (start**2 + end**2) / (2 * size), size / 2)
    return float((mean * np.diff(at)).sum())


@prob_metric(direction="minimize", probabilities=False, against="pairs")
def area_between_roc_curves_if_equal(one: Sample, other: Sample) -> float:
    """The area expected by chance if scores, given the truth, had the same distribution in both groups.

    By the normal approximation along the ROC curve of both together: √(2/π) of the standard error of the distance
    between the curves across it. Null where a group has one class only.

    >>> sample = {"truth": [1, 0], "score": [0.8, 0.2]}
    >>> area_between_roc_curves_if_equal.formula(one=sample, other=sample)
    0.0
    """
    truth, score = np.concatenate([one.truth, other.truth]), np.concatenate([one.score, other.score])
    alarms, hits = _roc(replace(one, truth=truth, score=score, weight=np.concatenate([_weights(one), _weights(other)])))
    # chords of equal length along the curve: single steps go straight up or across, which is not its direction
    length: Floats = np.concatenate([[0.0], np.cumsum(np.diff(alarms) + np.diff(hits))])
    at: Floats = np.linspace(0, float(length[-1]), _CHORDS + 1)
    middle = (at[1:] + at[:-1]) / 2
    (ones, zeros), (other_ones, other_zeros) = _split(one), _split(other)
    up = _variance(hits, length, middle) / _harmonic(ones, other_ones)
    along = _variance(alarms, length, middle) / _harmonic(zeros, other_zeros)
    across = up * np.diff(np.interp(at, length, alarms)) ** 2 + along * np.diff(np.interp(at, length, hits)) ** 2
    return float(_MEAN_OF_ABSOLUTE * np.sqrt(across).sum())


def _variance(share: Floats, length: Floats, at: Floats) -> Floats:
    """The variance of a share along a curve, for a sample of one; between corners (ties) it is that of the line."""
    end = np.searchsorted(length, at, side="left").clip(1, len(length) - 1)
    low, high = share[end - 1].clip(0, 1), share[end].clip(0, 1)
    part = (at - length[end - 1]) / (length[end] - length[end - 1])
    return (1 - part) ** 2 * low * (1 - low) + part**2 * high * (1 - high) + 2 * part * (1 - part) * low * (1 - high)


@prob_metric(direction="minimize", probabilities=False, range=(-1, 1), against="pairs")
def area_between_roc_curves_debiased(one: Sample, other: Sample) -> float:
    """The area minus its expectation for equal curves; about 0 or below is no evidence of a difference.

    >>> sample = {"truth": [1, 0], "score": [0.8, 0.2]}
    >>> area_between_roc_curves_debiased.formula(one=sample, other=sample)
    0.0
    """
    return _distance(area_between_roc_curves, one, other) - _distance(area_between_roc_curves_if_equal, one, other)


def _auc(hits: Sample, false_alarms: Sample) -> float:
    """Share of pairs in which the first scores higher, ties counting half."""
    order = np.argsort(false_alarms.score, kind="stable")
    score = false_alarms.score[order]
    total = np.concatenate([[0.0], np.cumsum(_weights(false_alarms)[order])])
    below, upto = (total[np.searchsorted(score, hits.score, side=side)] for side in ("left", "right"))
    weight = _weights(hits)
    return float((weight * (below + upto)).sum() / 2 / (weight.sum() * total[-1]))


def _background_positive_ties(one: Sample, other: Sample) -> float:
    """The largest error in bins: half of the pairs in the same bin."""
    return _half_of_ties(_part(other, event=True), _part(one, event=False))


def _background_negative_ties(one: Sample, other: Sample) -> float:
    """The largest error in bins: half of the pairs in the same bin."""
    return _half_of_ties(_part(one, event=True), _part(other, event=False))


@prob_metric(probabilities=False, against="rest", error_of_bins=_background_positive_ties)
def background_positive_auc(one: Sample, other: Sample) -> float:
    """BPSN AUC (Borkan et al., 2019): how well events in the rest are ranked above non-events in the group.

    Null where there are none of either.

    >>> group, rest = {"truth": [0, 0], "score": [0.4, 0.6]}, {"truth": [1], "score": [0.5]}
    >>> background_positive_auc.formula(one=group, other=rest)
    0.5
    """
    return _auc(_part(other, event=True), _part(one, event=False))


@prob_metric(probabilities=False, against="rest", error_of_bins=_background_negative_ties)
def background_negative_auc(one: Sample, other: Sample) -> float:
    """BNSP AUC (Borkan et al., 2019): how well events in the group are ranked above non-events in the rest.

    Null where there are none of either.

    >>> group, rest = {"truth": [1], "score": [0.5]}, {"truth": [0, 0], "score": [0.4, 0.6]}
    >>> background_negative_auc.formula(one=group, other=rest)
    0.5
    """
    return _auc(_part(one, event=True), _part(other, event=False))

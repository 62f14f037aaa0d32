"""Partial pooling: rates of groups that borrow strength from each other, the more so the fewer rows they have.

There are two models. Either the rates come from one beta distribution; or their logits are sums of an effect of each
feature and of an interaction, and the interactions come from one normal distribution (MAIHDA; Evans et al., 2018). A
few groups do not show well how far rates vary, so draws are averaged over it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric
from tidyfair.errors import ArgumentError
from tidyfair.inference.rate_tests import CountedRate
from tidyfair.specs import Array, one_of

Pooling: TypeAlias = Literal["beta_binomial", "additive"]

_SPREADS = 48
"""The number of spreads that are tried at once, over their whole range."""
_LEAST, _MOST = 0.05, 1e4
"""The least concentration, and the largest one for each row of the largest group; beyond it rates are nearly equal."""
_STEPS, _LONGEST, _SHORTEST = 60, 2.0, 1e-9
"""Newton's method: the most steps, and the longest and the shortest step on the scale of logits."""
_NEGLIGIBLE = 1e-4
"""Spreads of a smaller probability, relative to the most probable one, are left out."""
_MAIN_EFFECT, _INTERCEPT = 1.0, 10.0
"""The standard deviations of the priors of main effects and of the intercept, as logits."""
_INTERACTION, _MOST_INTERACTION = 1.0, 4.0
"""The standard deviation of interactions: the scale of its half-normal prior, and the largest value tried."""
_NODES = 12
"""The nodes of the quadrature of means of rates."""
_LOGISTIC = math.pi**2 / 3
"""The variance of the logistic distribution, which is that of single rows on the scale of logits."""
_EDGE = 1e-12
"""Means of rates stay so far from 0 and 1."""
_MOST_COUNTED = 1e9
"""The most rows of a group that likelihoods use; of more, their logarithms are too large to compare spreads."""


@dataclass(frozen=True, eq=False)
class PooledRates(ABC):
    """The rates of groups under a model, from the rows of each group (at least one) and those of them that count."""

    hits: Array
    rows: Array

    @cached_property
    def _counted(self) -> tuple[Array, Array]:
        """The hits and rows that likelihoods use; a very large group counts as fewer rows with the same rate."""
        share = np.minimum(1, _MOST_COUNTED / self.rows)
        return self.hits * share, self.rows * share

    @cached_property
    @abstractmethod
    def estimate(self) -> Array:
        """The rates."""

    @abstractmethod
    def draws(self, times: int, random: np.random.Generator) -> Array:
        """Draws of the rates from their posterior distribution; each row is a draw."""

    def limits(self, level: float, drawn: Array) -> tuple[Array, Array]:
        """The limits of each rate, from draws; the estimate is always between them."""
        lower, upper = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return np.minimum(lower, self.estimate), np.maximum(upper, self.estimate)

    def simultaneous_limits(self, level: float, drawn: Array) -> tuple[Array, Array]:
        """Limits that hold for all rates at once, from draws (Besag et al., 1995)."""
        times, ordered = len(drawn), np.sort(drawn, axis=0)
        rank = np.argsort(np.argsort(drawn, axis=0), axis=0)
        # how near the end of its column the farthest rate of a draw is
        inside = np.minimum(rank, times - 1 - rank).min(axis=1)
        tail = int(np.sort(inside)[math.floor((1 - level) * times)])
        return np.minimum(ordered[tail], self.estimate), np.maximum(ordered[times - 1 - tail], self.estimate)


class _Profile(NamedTuple):
    """The best mean for each concentration, as a logit, with its curvature, and the logarithm of the likelihood."""

    logit: Array
    curvature: Array
    likelihood: Array
    slope: Array
    """The derivative of the logarithm of the likelihood by that of the concentration."""


@dataclass(frozen=True, eq=False)
class BetaBinomial(PooledRates):
    """Rates that come from one beta distribution, whose mean and concentration are the likeliest ones."""

    @cached_property
    def fit(self) -> tuple[float, float]:
        """The mean and the concentration; the latter is infinite where rates vary no more than by chance."""
        overall = float(self.hits.sum() / self.rows.sum())
        # groups of one row do not show how far rates vary
        if overall in (0, 1) or len(self.rows) < 2 or self.rows.max() < 2:
            return overall, math.inf
        strengths = np.geomspace(_LEAST, _MOST * float(self._counted[1].max()), _SPREADS)
        is_rising = self._profile(strengths, prior=0.0).slope > 0
        # the likelihood of groups of very different size may have several peaks, the last of them at the end or beyond
        turns = np.flatnonzero(np.append(True, is_rising[:-1]) & ~is_rising)
        peaks = [self._peak(strengths[max(turn - 1, 0)], strengths[turn]) for turn in turns.tolist()]
        profile = self._profile(np.append(peaks, strengths[-1:][is_rising[-1:]]), prior=0.0)
        best = int(profile.likelihood.argmax())
        if best == len(peaks):
            return overall, self._far_peak()
        return float(share_of_logit(profile.logit[best])), peaks[best]

    def _far_peak(self) -> float:
        """The concentration of a peak where rates are nearly equal, by derivatives by its inverse where they are."""
        hits, rows = self._counted
        counts, sign = np.stack([hits, rows - hits, rows]), np.array([1, 1, -1])
        share = counts.sum(axis=1) / rows.sum()
        # the sums of all whole numbers below each count, and of their squares
        numbers, squares = counts * (counts - 1) / 2, counts * (counts - 1) * (2 * counts - 1) / 6
        slope, bend = (sign / share) @ numbers.sum(axis=1), (sign / share**2) @ squares.sum(axis=1)
        return float(bend / slope) if slope > 0 else math.inf

    def _peak(self, low: float, high: float) -> float:
        """The concentration between two numbers from which the likelihood does not rise further."""
        from scipy import optimize

        def slope(logarithm: float) -> float:
            return float(self._profile(np.exp([logarithm]), prior=0.0).slope[0])

        first, last = math.log(low), math.log(high)
        # next to a peak, rounding may have turned the sign
        if slope(first) <= 0:
            return low
        return math.exp(cast("Any", optimize).brentq(slope, first, last)) if slope(last) < 0 else high

    @cached_property
    def weight(self) -> Array:
        """The weight of the rate of each group itself, the rest being that of the mean."""
        return self.rows / (self.rows + self.fit[1])

    @cached_property
    def estimate(self) -> Array:
        """The rates, which are weighted means of that of the group and that of all."""
        return self.weight * self.hits / self.rows + (1 - self.weight) * self.fit[0]

    def draws(self, times: int, random: np.random.Generator) -> Array:
        """Draws of the rates, averaged over the mean and the concentration.

        A priori the mean is uniform, and so is the standard deviation of rates, relative to the largest one possible.
        """
        spreads = _probable(lambda spreads: self._posterior(spreads)[1], 1.0)
        profile, density = self._posterior(spreads)
        chosen = random.choice(len(spreads), times, p=_probabilities(density))
        error = random.standard_normal(times) / np.sqrt(profile.curvature[chosen])
        mean: Array = share_of_logit(profile.logit[chosen] + error)[:, None].clip(_EDGE, 1 - _EDGE)
        strength: Array = _concentrations(spreads[chosen])[:, None]
        return random.beta(self.hits + strength * mean, self.rows - self.hits + strength * (1 - mean))

    def _posterior(self, spreads: Array) -> tuple[_Profile, Array]:
        """The most probable mean for each relative standard deviation, and the logarithm of its probability."""
        profile = self._profile(_concentrations(spreads), prior=1.0)
        return profile, profile.likelihood - np.log(profile.curvature) / 2

    def _profile(self, strengths: Array, *, prior: float) -> _Profile:
        """The best mean for each concentration; with a `prior` of 1 the most probable logit if means are uniform."""
        strength = strengths[:, None]
        counted, rows = self._counted
        hits, misses = counted[None], (rows - counted)[None]
        curvature = np.ones_like(strengths)
        logit = np.full(len(strengths), math.log((hits.sum() + 0.5) / (misses.sum() + 0.5)))
        for _ in range(_STEPS):
            mean = share_of_logit(logit)
            a, b = strength * mean[:, None], strength * (1 - mean)[:, None]
            slope = strengths * (_slopes(hits, a) - _slopes(misses, b)).sum(axis=1)
            bend = strengths**2 * (_curvatures(hits, a) + _curvatures(misses, b)).sum(axis=1)
            spread = mean * (1 - mean)
            gradient = slope * spread + prior * (1 - 2 * mean)
            curvature = bend * spread**2 + 2 * prior * spread
            step = (gradient / curvature).clip(-_LONGEST, _LONGEST)
            logit = logit + step
            if np.abs(step).max() < _SHORTEST:
                break
        mean = share_of_logit(logit)
        a, b = strength * mean[:, None], strength * (1 - mean)[:, None]
        likelihood = (
            _log_rising_factorials(hits, a)
            + _log_rising_factorials(misses, b)
            - _log_rising_factorials(hits + misses, strength)
        ).sum(axis=1)
        slopes = a * _slopes(hits, a) + b * _slopes(misses, b) - strength * _slopes(hits + misses, strength)
        return _Profile(logit, curvature, likelihood + prior * np.log(mean * (1 - mean)), slopes.sum(axis=1))


class _Logits(NamedTuple):
    """The normal distribution of the logits of cells for each spread of interactions."""

    main: Array
    """The mean logit of each cell without its interaction."""
    mean: Array
    information: Array
    """The inverse of the covariance of the main effects."""
    damping: Array
    """The share of the main effects that interactions do not take back."""
    given_effects: Array
    """The variance of the logit of each cell, given the main effects."""
    variance: Array
    """The variance of the logit of each cell."""
    density: Array
    """The logarithm of the probability of the data and the spread."""


@dataclass(frozen=True, eq=False)
class Additive(PooledRates):
    """Rates of crossed groups, whose logits are a sum of an effect of each feature and an interaction."""

    levels: Sequence[Array]
    """The number of the level that each group has, for each feature."""

    @cached_property
    def _design(self) -> tuple[Array, Array]:
        """The indicators of the levels after a constant, and the inverse of the variance of each effect's prior."""
        columns = [np.ones((len(self.rows), 1))]
        columns += [(codes[:, None] == np.unique(codes)).astype(float) for codes in self.levels]
        indicators = np.concatenate(columns, axis=1)
        precision = np.full(indicators.shape[1], _MAIN_EFFECT**-2)
        precision[0] = _INTERCEPT**-2
        return indicators, precision

    @cached_property
    def _spreads(self) -> Array:
        """Standard deviations of interactions that are probable."""
        return _probable(lambda spreads: self._logits_of(spreads).density, _MOST_INTERACTION)

    @cached_property
    def _logits(self) -> _Logits:
        return self._logits_of(self._spreads)

    @cached_property
    def _probability(self) -> Array:
        """The probability of each spread."""
        return _probabilities(self._logits.density)

    def _logits_of(self, spreads: Array) -> _Logits:
        """The most probable effects for each standard deviation of interactions, by Newton's method."""
        (hits, rows), (indicators, precision) = self._counted, self._design
        variance = (spreads**2)[:, None]
        effects: Array = np.zeros((len(spreads), len(precision)))
        effects[:, 0] = math.log((hits.sum() + 0.5) / (rows.sum() - hits.sum() + 0.5))
        interactions: Array = np.zeros((len(spreads), len(rows)))
        for _ in range(_STEPS):
            rate = share_of_logit(effects @ indicators.T + interactions)
            weight, residual = rows * rate * (1 - rate), hits - rows * rate
            damping = 1 / (1 + weight * variance)
            to_zero = damping * (variance * residual - interactions)
            gradient = (residual - weight * to_zero) @ indicators - precision * effects
            information = self._information(weight * damping)
            step: Array = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
            moved = cast("Array", step @ indicators.T)
            interaction_step = to_zero - (1 - damping) * moved
            longest = cast("Array", np.abs(moved + interaction_step)).max(axis=1, keepdims=True)
            shorter = np.minimum(1, _LONGEST / np.maximum(longest, _SHORTEST))
            effects += shorter * step
            interactions += shorter * interaction_step
            if longest.max() < _SHORTEST:
                break
        logit = effects @ indicators.T + interactions
        rate = share_of_logit(logit)
        weight = rows * rate * (1 - rate)
        damping = 1 / (1 + weight * variance)
        information = self._information(weight * damping)
        # log(1 + e^x) without overflow
        likelihood = (hits * logit - rows * np.logaddexp(0, logit)).sum(axis=1)
        priors = (effects**2 * precision).sum(axis=1) + (variance * (hits - rows * rate) ** 2).sum(axis=1)
        determinants = np.linalg.slogdet(information)[1] - np.log(damping).sum(axis=1)
        density = likelihood - priors / 2 - determinants / 2 - (spreads / _INTERACTION) ** 2 / 2
        covariance = np.linalg.inv(information)
        logit_variance = damping * variance + damping**2 * (indicators @ covariance * indicators).sum(axis=2)
        # the distribution is skewed, so that its mean is not its mode; to first order, as if rows pulled it there
        pull = -weight * (1 - 2 * rate) * logit_variance / 2
        shift = ((pull * damping) @ indicators)[:, None, :] @ covariance
        main = effects @ indicators.T + shift[:, 0] @ indicators.T
        logit = logit + damping * (shift[:, 0] @ indicators.T + variance * pull)
        return _Logits(main, logit, information, damping, damping * variance, logit_variance, density)

    def _information(self, weight: Array) -> Array:
        """The inverse of the covariance of the main effects, for each spread."""
        indicators, precision = self._design
        return np.stack([(indicators.T * row) @ indicators for row in weight]) + np.diag(precision)

    @cached_property
    def estimate(self) -> Array:
        """The means of the posterior distributions of the rates."""
        logits = self._logits
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        rates = share_of_logit(logits.mean[:, :, None] + np.sqrt(logits.variance)[:, :, None] * nodes)
        return self._probability @ (rates @ (weights / weights.sum()))

    @cached_property
    def additive(self) -> Array:
        """The rates if there were no interactions: of the main effects alone."""
        return self._probability @ share_of_logit(self._logits.main)

    @cached_property
    def interaction_variance(self) -> float:
        """The median of the posterior distribution of the variance of interactions, as logits."""
        below = np.cumsum(self._probability) - self._probability / 2
        return float(np.interp(0.5, below, self._spreads)) ** 2

    @cached_property
    def variance_shares(self) -> tuple[float, float]:
        """The share of the variance of logits between groups (VPC), and what main effects leave of it (1 - PCV)."""
        between = Additive(self.hits, self.rows, ()).interaction_variance
        return between / (between + _LOGISTIC), min(self.interaction_variance, between) / between

    def draws(self, times: int, random: np.random.Generator) -> Array:
        """Draws of the rates, averaged over the spread of interactions."""
        logits, (indicators, _) = self._logits, self._design
        draws_of_spread = random.multinomial(times, self._probability)
        rates_drawn: list[Array] = []
        for number in np.flatnonzero(draws_of_spread).tolist():
            size = int(draws_of_spread[number])
            factor = cast("Array", np.linalg.cholesky(logits.information[number]))
            effects = np.linalg.solve(factor.T, random.standard_normal((len(factor), size)))
            moved = (indicators @ effects).T * logits.damping[number]
            interactions_drawn = random.standard_normal((size, len(self.rows))) * logits.given_effects[number] ** 0.5
            rates_drawn.append(share_of_logit(logits.mean[number] + moved + interactions_drawn))
        return np.concatenate(rates_drawn)


def check_pooling(function: str, pooling: object, metrics: Iterable[GroupwiseMetric]) -> None:
    """Refuse an unknown model, and the additive one for groups that are not crossed."""
    one_of("pooling", pooling, get_args(Pooling))
    for metric in metrics:
        if pooling == "additive" and (metric.by.sides or len(metric.by.keys) < 2):
            msg = (
                f'{function}(): `pooling="additive"` needs several features, but {metric.name} has only '
                f'{metric.by.text}; add features, as in `{metric.name}("sex", "race")`, or use '
                '`pooling="beta_binomial"`.'
            )
            raise ArgumentError(msg)


def pooled(rate: CountedRate, pooling: Pooling) -> PooledRates:
    """A rate of the groups of an outer group under a model."""
    hits, rows, case = rate.group_numerator.astype(float), rate.group_denominator.astype(float), rate.case
    if pooling == "beta_binomial":
        return BetaBinomial(hits, rows)
    first, _ = case.evaluated.group_cells.spans[case.metric.by]
    keys = case.evaluated.group_cells.keys[case.metric.by][rate.group_cells - first]
    # a missing value is a level too
    levels = [keys.select(pl.struct(name).rank("dense")).to_series().to_numpy() for name in keys.columns]
    return Additive(hits, rows, levels)


def _probable(density_of: Callable[[Array], Array], most: float) -> Array:
    """Numbers from 0 to the largest one, evenly over those that are probable."""
    edges = np.linspace(0, most, _SPREADS + 1)
    density = density_of((edges[1:] + edges[:-1]) / 2)
    kept = np.flatnonzero(density > density.max() + math.log(_NEGLIGIBLE))
    edges = np.linspace(edges[kept[0]], edges[kept[-1] + 1], _SPREADS + 1)
    return (edges[1:] + edges[:-1]) / 2


def _probabilities(density: Array) -> Array:
    """Probabilities from their logarithms, up to a constant."""
    probability = np.exp(density - density.max())
    return probability / probability.sum()


def _concentrations(spreads: Array) -> Array:
    """The concentrations of beta distributions of a standard deviation, relative to the largest one possible."""
    return 1 / spreads**2 - 1


def share_of_logit(logit: Array) -> Array:
    """The share with a given logit."""
    return 1 / (1 + np.exp(-np.clip(logit, -700, 700)))


# Differences of the gamma function: Γ(x + n) / Γ(x) is x (x + 1) … (x + n - 1)


def _log_rising_factorials(counts: Array, start: Array) -> Array:
    """The logarithm of the product of so many numbers that rise by 1 from a start."""
    from scipy.special import gammaln

    return gammaln(start + counts) - gammaln(start)


def _slopes(counts: Array, start: Array) -> Array:
    """The derivative of `_log_rising_factorials` by its start."""
    from scipy.special import psi

    return psi(start + counts) - psi(start)


def _curvatures(counts: Array, start: Array) -> Array:
    """The second derivative of `_log_rising_factorials` by its start, with the sign changed."""
    from scipy import special

    # the trigamma function
    zeta = cast("Any", special).zeta
    return zeta(2, start) - zeta(2, start + counts)

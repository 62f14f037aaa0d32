"""Scales on which values are more nearly normal: logits between two ends, logarithms above or below one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidyfair.specs.formulas import Formula, RowSums
from tidyfair.specs.segments import Booleans, Floats


@dataclass(frozen=True)
class Scale:
    """The scale of values in a range; that of a correlation, from -1 to 1, is twice Fisher's z."""

    low: float
    high: float

    @classmethod
    def of(cls, formula: Formula, ends: tuple[float, float]) -> Scale:
        """The scale of the values of a formula."""
        if not isinstance(formula, RowSums):
            return cls(*ends)
        return SquaredCorrelation(0.0, 1.0) if formula.squared_correlation else cls(*(formula.range_of_limits or ends))

    def holds(self, values: Floats) -> Booleans:
        """The values strictly inside of the range, as a mask."""
        return (values > self.low) & (values < self.high)

    def transform(self, values: Floats) -> Floats:
        """The values on the scale; not finite at the ends of the range."""
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.log(values - self.low) if math.isfinite(self.low) else np.zeros_like(values)
            below = np.log(self.high - values) if math.isfinite(self.high) else np.zeros_like(values)
        return values if self._is_identity else above - below

    def slope(self, values: Floats) -> Floats:
        """The change on the scale for a change of the values."""
        if self._is_identity:
            return np.ones_like(values)
        with np.errstate(divide="ignore", invalid="ignore"):
            above = 1 / (values - self.low) if math.isfinite(self.low) else 0.0
            below = 1 / (self.high - values) if math.isfinite(self.high) else 0.0
        return np.zeros_like(values) + above + below

    def inverse(self, numbers: Floats) -> Floats:
        """The values of numbers on the scale."""
        if self._is_identity:
            return numbers
        with np.errstate(over="ignore"):
            if math.isinf(self.high):
                return self.low + np.exp(numbers)
            if math.isinf(self.low):
                return self.high - np.exp(-numbers)
            return self.low + (self.high - self.low) / (1 + np.exp(-numbers))

    @property
    def _is_identity(self) -> bool:
        return math.isinf(self.low) and math.isinf(self.high)


@dataclass(frozen=True)
class SquaredCorrelation(Scale):
    """The scale of the correlation, Fisher's z, because a square near 0 has no normal distribution."""

    def transform(self, values: Floats) -> Floats:
        """Fisher's z of the root."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.arctanh(np.sqrt(values))

    def slope(self, values: Floats) -> Floats:
        """The change of Fisher's z for a change of the square."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1 / (2 * np.sqrt(values) * (1 - values))

    def inverse(self, numbers: Floats) -> Floats:
        """The squares of correlations; 0 where their sign is not known."""
        return np.tanh(np.maximum(numbers, 0)) ** 2

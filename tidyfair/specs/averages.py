"""Averages over labels: how the values of one label against the rest become the value of a metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidyfair.specs.segments import Array, Booleans

# the objects below are all that there are, and keys of many mappings, so that they compare by identity


@dataclass(frozen=True, eq=False)
class Average:
    """A way from labels to values: each label by itself, or all together by a formula that reads all of them."""

    name: str
    """What `.estimator` shows and, where it may be asked for, `estimator=` takes."""
    by_label: bool = False
    """True if each label that is read has a value of its own."""
    shows_label: bool = False
    """True if results say which label a value is of."""
    of_pairs: bool = False
    """True if labels are read against each other label instead of the rest."""


@dataclass(frozen=True, eq=False)
class MeanOfLabels(Average):
    """The mean of the values of labels."""

    by_frequency: bool = False
    """True if labels count by how frequent they are."""

    def means(self, values: Array, frequency: Array, *, drop: bool) -> tuple[Array, Booleans]:
        """The means of group cells, nan where undefined, and a mask of those for which a label has no value.

        Such labels are left out with `drop`; else their mean is undefined, unless they have no weight.
        """
        weight = frequency if self.by_frequency else np.ones(values.shape)
        defined = ~np.isnan(values)
        counted = defined & (weight > 0)
        incomplete = ~(defined | (weight == 0)).all(axis=1)
        with np.errstate(invalid="ignore"):
            total = np.where(counted, values * weight, 0.0).sum(axis=1)
            mean = total / np.where(counted, weight, 0.0).sum(axis=1)
        # pairs of labels that do not both occur never count
        return (mean if drop or self.of_pairs else np.where(incomplete, np.nan, mean)), incomplete


BINARY = Average("binary", by_label=True)
"""The event against the rest."""
ONE_VS_REST = Average("one_vs_rest", by_label=True, shows_label=True)
"""Each label against the rest."""
STANDARD = Average("standard", by_label=True)
"""Metrics of numbers, which have no labels."""
MULTICLASS = Average("multiclass")
"""The form for all labels that a formula has itself."""
DISTRIBUTION = Average("multiclass", by_label=True)
"""The distribution of the labels of all rows."""
DISTRIBUTION_BY_LABEL = Average("multiclass", by_label=True, shows_label=True)
"""The distribution of the labels on one side for each label on the other."""
MACRO = MeanOfLabels("macro")
MACRO_WEIGHTED = MeanOfLabels("macro_weighted", by_frequency=True)
MICRO = Average("micro")
"""The value from the sums over all labels."""
HAND_TILL = MeanOfLabels("hand_till", of_pairs=True)
"""The mean over pairs of labels (Hand and Till, 2001)."""

AVERAGES = {average.name: average for average in (BINARY, MACRO, MACRO_WEIGHTED, MICRO, HAND_TILL, ONE_VS_REST)}
"""The averages that `estimator=` may name."""
OVER_LABELS = (MACRO.name, MACRO_WEIGHTED.name, MICRO.name)
"""The names of the averages over all labels, which any metric of one label has."""
ONE_LABEL = (BINARY.name, ONE_VS_REST.name, STANDARD.name)
"""The names of the averages of one label against the rest, or of no labels."""

"""The comparisons between groups that metrics, fairness metrics and sets of metrics have as methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar, Unpack

from tidyfair.specs import (
    Aggregate,
    FeatureLike,
    GroupOptions,
    difference,
    group_maximum,
    group_minimum,
    ratio,
    refuse_unknown_keywords,
    show_keywords,
)

Compared = TypeVar("Compared")
COMPARISONS: dict[str, Callable[[], Aggregate]] = {
    "difference": difference, "ratio": ratio,
    "group_minimum": group_minimum, "group_maximum": group_maximum,
}  # fmt: skip
"""The methods by name, each with its aggregate."""


class Comparable(Generic[Compared]):
    """Something whose values can be compared between groups: `Compared` is what a comparison gives."""

    @abstractmethod
    def comparison_by(
        self, method: str, by: tuple[FeatureLike, ...], name: str | None, groups: GroupOptions,
        aggregate: Aggregate,
    ) -> Compared:  # fmt: skip
        """The comparison of a method by an aggregate."""

    @refuse_unknown_keywords
    @show_keywords(GroupOptions)
    def difference(
        self, *by: FeatureLike, to: object = None, signed: bool | None = None, name: str | None = None,
        **groups: Unpack[GroupOptions],
    ) -> Compared:  # fmt: skip
        """Compare groups by the difference of their values.

        A fairness metric compares its own metrics anew, and a set each of its metrics.

        Args:
            by: Columns (several, also as a tuple, make intersections), or one `privileged(…)`.
            to: The reference: `"range"` (the largest minus the smallest value), `"overall"`, `"rest"`, `"majority"` or
                a group. By default the range for columns, and the privileged side for `privileged(…)`.
            signed: Whether differences from a reference keep their sign.
            name: The name in `.metric`; by default the name of the metric with `_difference`. A set has none.
            groups: Options that select the groups to compare, as for a factory: `min_n`, `min_share`, `unknown` and
                `unknown_values`.

        >>> from tidyfair import accuracy, demographic_parity, metric_set, sens
        >>> accuracy.difference("sex")
        <groupwise metric accuracy_difference('sex'): difference(to='range') of accuracy, minimize>
        >>> demographic_parity.difference("sex", to="overall")
        <groupwise metric demographic_parity_difference('sex'): difference(to='overall') of selection_rate, minimize>
        >>> metric_set(accuracy, sens).difference("sex")
        <metric set of
          <groupwise metric accuracy_difference('sex'): difference(to='range') of accuracy, minimize>
          <groupwise metric sens_difference('sex'): difference(to='range') of sens, minimize>
        >
        """
        return self.comparison_by("difference", by, name, groups, difference(to, signed=signed))

    @refuse_unknown_keywords
    @show_keywords(GroupOptions)
    def ratio(
        self, *by: FeatureLike, to: object = None, signed: bool | None = None, name: str | None = None,
        **groups: Unpack[GroupOptions],
    ) -> Compared:  # fmt: skip
        """Compare groups by the ratio of their values; arguments are those of `difference`.

        >>> from tidyfair import roc_auc
        >>> roc_auc.ratio("race", to="White")
        <groupwise metric roc_auc_ratio('race'): ratio(to='White') of roc_auc, maximize>
        """
        return self.comparison_by("ratio", by, name, groups, ratio(to, signed=signed))

    @refuse_unknown_keywords
    @show_keywords(GroupOptions)
    def group_minimum(self, *by: FeatureLike, name: str | None = None, **groups: Unpack[GroupOptions]) -> Compared:
        """The smallest value of a group; arguments are those of `difference`.

        >>> from tidyfair import sens
        >>> sens.group_minimum("race", "sex")
        <groupwise metric sens_group_minimum('race', 'sex'): group_minimum() of sens, maximize>
        """
        return self.comparison_by("group_minimum", by, name, groups, group_minimum())

    @refuse_unknown_keywords
    @show_keywords(GroupOptions)
    def group_maximum(self, *by: FeatureLike, name: str | None = None, **groups: Unpack[GroupOptions]) -> Compared:
        """The largest value of a group; arguments are those of `difference`.

        >>> from tidyfair import error_rate
        >>> error_rate.group_maximum("race")
        <groupwise metric error_rate_group_maximum('race'): group_maximum() of error_rate, minimize>
        """
        return self.comparison_by("group_maximum", by, name, groups, group_maximum())

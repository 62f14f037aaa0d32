"""Small groups: lumping, shrunken rates and the probability of being the worst; and a test of missing truths."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, MetricSet
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation import text_of
from tidyfair.inference.contingency import fisher
from tidyfair.inference.partial_knowledge.pooling import (
    Additive,
    BetaBinomial,
    Pooling,
    check_pooling,
    pooled,
)
from tidyfair.inference.rate_tests import REFUSED_OF_RATES, CountedRate, RateTest, groupwise
from tidyfair.inference.result_frames import Content
from tidyfair.intervals import Shares, adjusted, difference_limits, z_value
from tidyfair.specs import (
    CallOptions,
    Column,
    ColumnLike,
    Frame,
    Options,
    is_value,
    refuse_reserved,
    refuse_unknown_keywords,
    show_keywords,
    text,
    whole,
)
from tidyfair.specs.result_kinds import MISSING_TRUTH, SHRUNKEN, WORST, ResultKind
from tidyfair.tallies import Tally, open_frame

__all__ = ["WorstGroups", "lump_rare", "missing_truth", "shrunken_rates", "worst_groups"]

_MISSING = ("missing", "size", "other missing", "other size")
_LEVEL = 0.95
"""The options of a call that are those of draws from a model."""


@refuse_unknown_keywords
def lump_rare(data: Any, column: str, min_n: int, *, other: str = "other", name: str | None = None) -> Frame:
    """Pool groups of fewer than `min_n` rows, in a new column.

    The original column is kept, to show who is in `other`; missing values stay missing.

    Args:
        data: A polars, pandas or pyarrow frame; the rows of any other are transferred, and come back in polars.
        column: The column of groups.
        min_n: Smallest number of rows of a group that is kept.
        other: Name of the pooled group.
        name: Name of the new column, by default `<column>_lumped`.

    Raises:
        ColumnError, ArgumentError: If a group is already called `other`, or a column has the new name.

    >>> people = pl.DataFrame({"race": list("aaab")})
    >>> lump_rare(people, "race", 2)["race_lumped"].to_list()
    ['a', 'a', 'a', 'other']
    """
    min_n = whole("min_n", min_n, 1, of="lump_rare()")
    source = open_frame(data)
    frame, lumped = source.to_polars(), f"{column}_lumped" if name is None else text("name", name)
    text("other", other)
    groups = Column.of(text("column", column), "column")
    groups.check(frame.columns, "column")
    if lumped in frame.columns:
        msg = f"lump_rare(): the column {lumped!r} already exists; give another name with `name=`."
        raise ColumnError(msg)
    rows = open_frame(frame).read({"group": ("column", groups)})
    texts = text_of(rows["group"])
    rare = rows.select((pl.len().over("group") < min_n) & pl.col("group").is_not_null()).to_series()
    if (texts.filter(~rare) == other).any():
        msg = f"lump_rare(): a group is already called {other!r}; give the pooled group another name with `other=`."
        raise ArgumentError(msg)
    values = pl.select(pl.when(rare).then(pl.lit(other)).otherwise(texts)).to_series()
    return source.restore(frame.with_columns(values.alias(lumped)))


@refuse_unknown_keywords
@show_keywords(CallOptions, without=REFUSED_OF_RATES)
def shrunken_rates(
    metric: GroupwiseMetric, data: Any, truth: ColumnLike | None = None, estimate: ColumnLike | None = None, *,
    pooling: Pooling = "beta_binomial", **options: Unpack[CallOptions],
) -> Frame:  # fmt: skip
    """Shrink the rates of groups toward a common model, the more so the fewer rows they have (partial pooling).

    With `"beta_binomial"` the rates come from one beta distribution, whose mean and width are estimated by maximum
    likelihood (empirical Bayes; Efron and Morris, 1975). With `"additive"`, for groups of several features, the logit
    of a rate is a sum of an effect of each feature and an interaction, which is shrunk to zero (MAIHDA; Evans et al.,
    2018), so small groups borrow strength from groups that share one of their features.

    The range of shrunken rates is too small, so do not use them for disparities or gates. `worst_groups` and
    `probability` take the same `pooling=`.

    Args:
        metric: A groupwise metric of rates.
        data: A frame, as for a metric.
        truth: Column of the truth, if the metric reads it.
        estimate: Column of the predictions.
        pooling: `"beta_binomial"` or `"additive"`.
        **options: The options of a metric; `conf_level=` is the level of the limits, and `times=` and `seed=` are the
            number and seed of the draws.

    Returns:
        One row for each rate, group and outer group: the `.estimate`, `.estimator` (the `pooling`), `.lower` and
        `.upper` (credible limits, which allow for the unknown variance of rates), the `.raw` rate and `.n` rows. With
        `"beta_binomial"` also the `.weight` of the raw rate, and the `.mean` of the beta distribution and its
        `.precision`, the rows that the mean counts for (alpha + beta; infinite where rates vary no more than by
        chance): the weight is n / (n + precision); with `"additive"` the `.additive` rate from the main effects without
        an interaction, `.vpc`, the share of the variance of logits that lies between groups, and `.interaction_share`,
        the share of the variance between groups that main effects do not explain.

    Raises:
        ArgumentError: For `"additive"` with a single feature, or with `privileged(…)`.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 0] * 50 + [1], "sex": ["f"] * 50 + ["m"] * 50 + ["x"]})
    >>> shown = shrunken_rates(demographic_parity("sex"), people, estimate="hired")
    >>> shown.select(".group", pl.col(".estimate").round(2), ".raw").rows()[-1]
    ('x', 0.5, 1.0)
    """
    members = groupwise((metric,), "shrunken_rates", takes_data=True)
    check_pooling("shrunken_rates", pooling, members)
    return _ShrunkenRates(members, pooling=pooling)(data, truth, estimate, **options)


@dataclass(frozen=True, repr=False)
class _TableOfRates(RateTest):
    """A table of the rates of groups, which may be those of a model of all of them."""

    pooling: Pooling | None = "beta_binomial"
    """The model of the rates of all groups, if there is one."""

    def _content(self, rate: CountedRate) -> Content:
        names = {".metric": rate.name, ".by": rate.case.metric.by.text, ".group": rate.texts}
        return names | self._columns(rate) if len(rate.group_cells) else []

    @abstractmethod
    def _columns(self, rate: CountedRate) -> dict[str, Any]:
        """The columns of a rate of an outer group, beside the names of the rate and the groups."""


@dataclass(frozen=True, repr=False)
class _ShrunkenRates(_TableOfRates):
    """The rates of groups under a model of all of them."""

    subject: ClassVar[str] = "shrunken_rates()"
    kind: ClassVar[ResultKind] = SHRUNKEN
    pooling: Pooling = "beta_binomial"

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        columns_of_other_model = (
            [".weight", ".mean", ".precision"]
            if self.pooling == "additive"
            else [".additive", ".vpc", ".interaction_share"]
        )
        return super()._results(tally, options).drop(columns_of_other_model)

    def _columns(self, rate: CountedRate) -> dict[str, Any]:
        rates, rows, options = pooled(rate, self.pooling), rate.group_denominator, rate.case.options
        lower, upper = rates.limits(options.conf_level, rates.draws(options.replicates, rate.random))
        columns: dict[str, Any] = {
            ".estimator": self.pooling, ".estimate": rates.estimate, ".lower": lower, ".upper": upper,
            ".raw": rate.group_numerator / rows, ".n": rows,
        }  # fmt: skip
        if isinstance(rates, BetaBinomial):
            columns[".weight"] = rates.weight
            columns[".mean"], columns[".precision"] = rates.fit
        if isinstance(rates, Additive):
            columns[".additive"] = rates.additive
            columns[".vpc"], columns[".interaction_share"] = rates.variance_shares
        return columns


class WorstGroups(_TableOfRates):
    """Ranks groups by the probability of being the worst; made by `worst_groups`."""

    subject: ClassVar[str] = "worst_groups()"
    kind: ClassVar[ResultKind] = WORST

    def _columns(self, rate: CountedRate) -> dict[str, Any]:
        rows, hits, metric, options = rate.group_denominator, rate.group_numerator, rate.case.metric, rate.case.options
        times, random = options.replicates, rate.random
        if self.pooling:
            rates = pooled(rate, self.pooling)
            drawn, estimate = rates.draws(times, random), rates.estimate
            lower, upper = rates.simultaneous_limits(options.conf_level, drawn)
        else:
            raw = Shares.of_counts(hits, rows)
            drawn, estimate = random.beta(hits + 0.5, rows - hits + 0.5, (times, len(rows))), raw.value
            lower, upper = raw.limits(z_value(options.conf_level ** (1 / len(rows))))
        directions = {base.name: base.direction for base in (*metric.metrics, *metric.less)}
        is_lowest = directions[rate.name] == "maximize"
        worst = drawn.argmin(axis=1) if is_lowest else drawn.argmax(axis=1)
        return {
            ".estimate": estimate, ".lower": lower, ".upper": upper, ".worst": "lowest" if is_lowest else "highest",
            ".p_worst": np.bincount(worst, minlength=len(rows)) / times, ".n": rows,
        }  # fmt: skip


@refuse_unknown_keywords
def worst_groups(*metrics: GroupwiseMetric | MetricSet, pooling: Pooling | None = "beta_binomial") -> WorstGroups:
    """Estimate how probably each group is the worst: of equal groups some group looks it by chance.

    Small groups look the worst most often, so that rates borrow strength from those of other groups (partial pooling).

    Args:
        metrics: Groupwise metrics of rates.
        pooling: The model of the rates of all groups, as of `shrunken_rates`: `"beta_binomial"` or, for groups of
            several features, `"additive"`; None for groups on their own, with independent Jeffreys priors, by which the
            group with the worst observed rate is too sure of being the worst where groups are small.

    Returns:
        A callable that takes what a metric takes, `conf_level=`, the simultaneous level of the intervals of all groups,
        and `times=` draws (10,000 by default) with their `seed=` among them. It gives one row for each rate and group:
        the `.estimate`, `.lower` and `.upper` (credible, of all groups at once), `.worst`, whether the `lowest` or the
        `highest` is the worst, `.p_worst`, the probability that no other group is worse, and `.n` rows. Without
        pooling, estimates are the observed rates, and limits Wilson's, of all groups at once.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 0, 0], "sex": list("fffmmm")})
    >>> alone = worst_groups(demographic_parity("sex"), pooling=None)
    >>> alone(people, estimate="hired").select(".group", ".estimate").rows()
    [('f', 1.0), ('m', 0.0)]
    """
    members = groupwise(metrics, "worst_groups")
    if pooling is not None:
        check_pooling("worst_groups", pooling, members)
    return WorstGroups(members, pooling=pooling)


@refuse_unknown_keywords
def missing_truth(
    data: Any, truth: ColumnLike, estimate: ColumnLike, *, by: ColumnLike | None = None, positive: object = 1
) -> Frame:
    """Test whether the truth is missing more often where the estimate is negative (selective labels).

    People who are not selected are often not followed up: rates among rows with a truth then describe another
    population (Lakkaraju et al., 2017).

    Args:
        data: A polars, pandas or pyarrow frame.
        truth: Column of the truth, null where unknown.
        estimate: Column of the predictions.
        by: The groups.
        positive: The label of selected rows.

    Returns:
        One row for each group: the shares without a truth where the estimate is positive and negative, their
        `.difference` with `.lower` and `.upper` (Newcombe's), `.p_value` (Fisher's) and `.p_adjusted` (Holm's).

    >>> people = pl.DataFrame({"paid": [1, 0, None, None], "lent": [1, 1, 0, 0]})
    >>> missing_truth(people, "paid", "lent").select(".missing_if_positive", ".missing_if_negative").row(0)
    (0.0, 1.0)
    """
    source = open_frame(data)
    columns = {"truth": Column.of(truth, "truth"), "estimate": Column.of(estimate, "estimate")}
    keys: list[str] = []
    if by is not None:
        columns["group"] = Column.of(by, "by")
        keys = ["group"]
    refuse_reserved("by", [columns[key] for key in keys])
    rows = source.read({name: (name, column) for name, column in columns.items()})
    if not is_value(positive) or positive not in rows["estimate"].unique().to_list():
        msg = f"`positive`: {positive!r} is not among the predictions; give the label of selected rows."
        raise ArgumentError(msg)
    is_missing, is_positive = pl.col("truth").is_null(), pl.col("estimate") == pl.lit(positive)
    masks = (is_missing & is_positive, is_positive, is_missing & ~is_positive, ~is_positive)
    sums = [mask.sum().cast(pl.Int64).alias(name) for name, mask in zip(_MISSING, masks, strict=True)]
    predicted = rows.drop_nulls("estimate")
    table = predicted.group_by(keys).agg(sums).sort(keys, nulls_last=True) if keys else predicted.select(sums)
    # groups with both positive and other predictions
    table = table.filter((pl.col("size") > 0) & (pl.col("other size") > 0))
    missing, size, other_missing, other_size = (table[name].to_numpy() for name in _MISSING)
    if_positive = Shares.of_counts(missing, size.astype(float))
    if_negative = Shares.of_counts(other_missing, other_size.astype(float))
    z = z_value(_LEVEL)
    lower, upper = difference_limits(if_negative.value, if_negative.limits(z), if_positive.value, if_positive.limits(z))
    p_values = fisher(other_missing, other_size, missing, size)
    result = pl.DataFrame(
        {
            ".missing_if_positive": if_positive.value, ".missing_if_negative": if_negative.value,
            ".difference": if_negative.value - if_positive.value, ".lower": lower, ".upper": upper,
            ".p_value": p_values, ".p_adjusted": adjusted(p_values, "holm"), ".n": size + other_size,
        }
    )  # fmt: skip
    groups = table.select(pl.col(key).alias(columns[key].name) for key in keys)
    return source.restore(MISSING_TRUTH.frame(pl.DataFrame([*groups.get_columns(), *result.get_columns()])))

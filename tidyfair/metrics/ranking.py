"""Rankings: position bias, exposure of groups, and the quality and composition of ranked lists.

A row is an item in a list, such as an answer to a query; its estimate is the score that the list is sorted by, and its
truth the relevance. Items with equal scores share their positions: each gets the mean of what these positions give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from tidyfair.calling import Metric
from tidyfair.errors import ArgumentError, ColumnError, in_short, listed
from tidyfair.metrics.define import class_metric, defined, distinct_columns
from tidyfair.metrics.fairness import new_groupwise_metric
from tidyfair.specs import (
    Column,
    ColumnLike,
    Direction,
    group_maximum,
    group_minimum,
    makes_metric,
    number,
    one_of,
    proper_share,
    text,
    whole,
)
from tidyfair.specs.formulas import Expr, Lists, Number, Rate, Statistic
from tidyfair.tallies import ListedRows

Array: TypeAlias = np.ndarray[Any, Any]

__all__ = [
    "attention_gap", "dcg", "exposure", "exposure_per_relevance", "max_skew", "min_skew", "ndcg", "ndkl", "rnd", "skew",
]  # fmt: skip

Discount: TypeAlias = Literal["log2", "geometric", "reciprocal"]
_DISCOUNTS = ("log2", "geometric", "reciprocal")
_GEYIK = "Geyik et al. (2019), Fairness-aware ranking in search and recommendation systems"
_GAINS = ("linear", "exponential")
Target: TypeAlias = "tuple[tuple[object, float], ...] | None"
"""The wanted shares of groups; None for their shares of the list."""


# Quantities of an item in its list


def discounts(lists: ListedRows, *, discount: Discount, patience: float, k: int | None) -> Array:
    """The attention that each item gets by its position: 1 at the top, 0 below position `k`."""
    position = lists.position
    match discount:
        case "log2":
            attention = 1 / np.log2(1 + position)
        case "geometric":
            attention = patience ** (position - 1.0)
        case "reciprocal":
            attention = 1 / position
    return attention if k is None else np.where(position <= k, attention, 0.0)


def attention_of(lists: ListedRows, **settings: Any) -> Array:
    """The attention that each item gets; items with equal scores get the mean of theirs."""
    return lists.mean_of_ties(discounts(lists, **settings))


def relevance_of(lists: ListedRows) -> Array:
    """The relevance of each item, which is not negative."""
    relevance = lists.columns["truth"]
    if relevance.min() < 0:
        msg = f"`truth`: relevance is 0 or more, but the smallest value is {relevance.min():g}."
        raise ColumnError(msg)
    return relevance


def attention_gap_of(lists: ListedRows, **settings: Any) -> Array:
    """An item's share of the attention of its list, minus its share of the relevance; 0 in lists without relevance."""
    attention, relevance = attention_of(lists, **settings), relevance_of(lists)
    total = lists.to_rows(lists.total(relevance))
    share = attention / lists.to_rows(lists.total(attention))
    return np.where(total > 0, share - relevance / np.where(total > 0, total, 1), 0.0)


def attention_beside_target(lists: ListedRows, *, target: Target, **settings: Any) -> Array:
    """An item's share of the attention of its list, less an even part of the wanted share of its group in the list."""
    attention = attention_of(lists, **settings)
    wanted = list_shares(lists)
    if target is not None:
        ((codes, groups),) = lists.others
        is_group = codes == np.arange(len(groups))[:, None]
        shares = np.array(wanted_shares("attention_gap", target, groups)) @ is_group
        size = np.sum([lists.to_rows(lists.total(own.astype(float))) * own for own in is_group], axis=0)
        wanted = shares / size
        # shares of the groups that a list has
        wanted = wanted / lists.to_rows(lists.total(wanted))
    return attention / lists.to_rows(lists.total(attention)) - wanted


def wanted_shares(function: str, target: Target, groups: Sequence[object]) -> list[float]:
    """The wanted share of each group."""
    shares = dict(target or ())
    for group in groups:
        if group not in shares:
            msg = f"{function}(): `target` has no share for the group {group!r}; it has {listed(list(shares))}."
            raise ArgumentError(msg)
    return [shares[group] for group in groups]


def relevant_lists_of(lists: ListedRows) -> Array:
    """An item's share of one list; 0 in lists without relevance."""
    return np.where(lists.to_rows(lists.total(relevance_of(lists))) > 0, 1 / lists.to_rows(lists.sizes), 0.0)


def exponential_gains(lists: ListedRows, relevance: Array) -> Array:
    """2 to the power of the relevance, less 1; over 2 to the power of the largest of the list, so that all are finite.

    Gains are only compared within a list, where the divisor drops out.
    """
    largest = lists.to_rows(np.maximum.reduceat(relevance, lists.starts))
    return 2.0 ** (relevance - largest) - 2.0**-largest


def gain_shares(lists: ListedRows, *, gain: str, **settings: Any) -> Array:
    """An item's share of the discounted gain of the ideal order of its list; 0 in lists without relevance."""
    relevance = relevance_of(lists)
    gains = relevance if gain == "linear" else exponential_gains(lists, relevance)
    ideal_order = np.lexsort((-gains, lists.list_of_row))
    ideal = lists.to_rows(lists.total(gains[ideal_order] * discounts(lists, **settings)))
    return np.where(ideal > 0, gains * attention_of(lists, **settings) / np.where(ideal > 0, ideal, 1), 0.0)


def discounted_gains(lists: ListedRows, *, gain: str, **settings: Any) -> Array:
    """The discounted gain of an item."""
    relevance = relevance_of(lists)
    return (relevance if gain == "linear" else 2.0**relevance - 1) * attention_of(lists, **settings)


def divergences(lists: ListedRows, *, k: int | None, target: Target) -> Array:
    """An item's part of the discounted divergence of all tops of its list from the wanted shares of groups."""
    ((codes, groups),) = lists.others
    position = lists.position
    weight = discounts(lists, discount="log2", patience=0.0, k=k)
    shares = None if target is None else wanted_shares("ndkl", target, groups)
    divergence = np.zeros(len(position))
    for code in range(len(groups)):
        is_group = codes == code
        share = lists.expected_count(is_group) / position
        wanted = lists.to_rows(lists.total(is_group.astype(float)) / lists.sizes)
        if shares is not None:
            wanted = np.full(len(position), shares[code])
        divergence += np.where(share > 0, share * np.log(share / wanted), 0.0)
    return weight * divergence / lists.to_rows(lists.total(weight))


def list_shares(lists: ListedRows) -> Array:
    """An item's share of one list."""
    return 1 / lists.to_rows(lists.sizes)


def distances_from_share(lists: ListedRows, *, step: int) -> tuple[Array, Array]:
    """The discounted distance of the protected share of every top of `step` items from that of its list.

    For each list; and the larger one of the two orders that have all protected items first, or last.
    """
    ((codes, values),) = lists.others
    if any(not isinstance(value, bool) for value in values if value is not None):
        msg = (
            f"rnd(): `protected` is a Boolean column, but it has the values {listed(values)}; write, for example, "
            f'`(pl.col("group") == {values[0]!r}).alias("protected")`.'
        )
        raise ColumnError(msg)
    is_protected = np.isin(codes, [code for code, value in enumerate(values) if value is True])
    position, size = lists.position, lists.to_rows(lists.sizes)
    protected = lists.to_rows(lists.total(is_protected.astype(float)))
    weight = np.where(position % step == 0, 1 / np.log2(np.maximum(position, 2)), 0.0)

    def distance(count: Array) -> Array:
        return lists.total(weight * np.abs(count / position - protected / size))

    first = distance(np.minimum(position, protected))
    last = distance(np.maximum(0, position - (size - protected)))
    return distance(lists.expected_count(is_protected)), np.maximum(first, last)


def normalized_distances(lists: ListedRows, *, step: int) -> Array:
    """An item's part of the normalized distance of its list; 0 where it cannot vary."""
    observed, largest = distances_from_share(lists, step=step)
    value = np.where(largest > 0, observed / np.where(largest > 0, largest, 1), 0.0)
    return lists.to_rows(value / lists.sizes)


def lists_that_vary(lists: ListedRows, *, step: int) -> Array:
    """An item's share of one list; 0 in lists whose order cannot change the distance."""
    _, largest = distances_from_share(lists, step=step)
    return lists.to_rows(np.where(largest > 0, 1 / lists.sizes, 0.0))


# The columns in which a row must have a value to count


def score_column(estimate: Expr) -> Expr:
    """A quantity that depends on the scores of a list."""
    return estimate


def score_and_relevance(truth: Expr, estimate: Expr) -> Expr:
    """A quantity that depends on the scores and the relevance of a list."""
    return truth + estimate


# Formulas


def mean_exposure(attention: Number, instances: Number) -> Rate:
    """Mean attention of an item."""
    return attention, instances


def attention_per_relevance(attention: Number, relevance: Number) -> Rate:
    """Attention of all items over their relevance."""
    return attention, relevance


def mean_gap(attention_gap: Number, overall_relevant_lists: Number) -> Rate:
    """Mean over lists of the share of attention minus the share of relevance."""
    return attention_gap, overall_relevant_lists


def mean_gap_to_target(attention_gap: Number, overall_lists: Number) -> Rate:
    """Mean over lists of the share of attention minus the wanted share."""
    return attention_gap, overall_lists


def mean_discounted_gain(discounted_gain: Number, lists: Number) -> Rate:
    """Mean over lists of the discounted gain."""
    return discounted_gain, lists


def mean_gain(gain_share: Number, relevant_lists: Number) -> Rate:
    """Mean over lists of the discounted gain over that of the ideal order."""
    return gain_share, relevant_lists


def mean_divergence(divergence: Number, lists: Number) -> Rate:
    """Mean over lists of the discounted divergence of their tops."""
    return divergence, lists


def mean_distance(distance: Number, lists: Number) -> Rate:
    """Mean over lists of the normalized distance of their tops."""
    return distance, lists


# Metrics


@makes_metric('"query"')
def exposure(
    lists: ColumnLike | Iterable[ColumnLike], *, discount: Discount = "log2", patience: float = 0.5,
    k: int | None = None, name: str = "exposure",
) -> Metric:  # fmt: skip
    """Make a metric of exposure: the mean attention that an item gets by its position in its list.

    Attention is 1 at the top and falls by the `discount`: 1 / log2(1 + position), `patience` to the power of
    (position - 1), or 1 / position. Items with equal scores get the mean over their positions, so the order of rows
    does not matter. Its ratio between groups is demographic parity of exposure (Singh and Joachims, 2018). It reads the
    score as `estimate`, and no truth; to rank by ascending ranks, give them with a minus. Null without rows.

    Args:
        lists: The column, or columns, whose values are the same in all rows of a list.
        discount: `"log2"` (as in DCG), `"geometric"` (rank-biased precision) or `"reciprocal"`.
        patience: The probability of going on to the next position, for `"geometric"`.
        k: The last position that gets attention; by default all do.
        name: The name in `.metric`.

    Raises:
        ArgumentError: If an argument is invalid; or at the call, for an interval without `cluster`.
        ColumnError: At the call, if a list has no name.

    >>> import polars as pl
    >>> found = pl.DataFrame({"query": [1, 1, 1], "score": [3, 2, 1], "group": ["a", "b", "b"]})
    >>> exposure("query", discount="reciprocal").ratio("group")(found, estimate="score")[".estimate"].round(3)[0]
    0.417
    """
    settings = _settings("exposure()", discount, patience, k)
    quantities = {"attention": _Quantity(attention_of, settings)}
    return _metric(
        "exposure", lists, name, mean_exposure, "maximize", (0, 1), reads=score_column, quantities=quantities
    )


@makes_metric('"query"')
def exposure_per_relevance(
    lists: ColumnLike | Iterable[ColumnLike], *, discount: Discount = "log2", patience: float = 0.5,
    k: int | None = None, name: str = "exposure_per_relevance",
) -> Metric:  # fmt: skip
    """Make a metric of the attention that items get for their relevance: the sum of the one over that of the other.

    Its ratio between groups is the disparate treatment ratio (Singh and Joachims, 2018): 1 where groups get attention
    in proportion to their relevance. Reads the relevance as `truth` and the score as `estimate`; arguments are those of
    `exposure`. Null without relevant items.

    Raises:
        ArgumentError: As for `exposure`.
        ColumnError: At the call, for negative relevance or a list without a name.

    >>> import polars as pl
    >>> found = pl.DataFrame({"query": [1, 1], "score": [2, 1], "relevance": [1, 1], "group": ["a", "b"]})
    >>> treatment = exposure_per_relevance("query", discount="reciprocal").ratio("group")
    >>> treatment(found, "relevance", "score")[".estimate"][0]
    0.5
    """
    settings = _settings("exposure_per_relevance()", discount, patience, k)
    quantities = {"attention": _Quantity(attention_of, settings), "relevance": _Quantity(relevance_of)}
    return _metric(
        "exposure_per_relevance", lists, name, attention_per_relevance, "maximize", (0, math.inf),
        reads=score_and_relevance, quantities=quantities,
    )  # fmt: skip


@makes_metric('"query"')
def attention_gap(
    lists: ColumnLike | Iterable[ColumnLike], *,
    target: Literal["relevance", "items"] | Mapping[Any, float] = "relevance", by: ColumnLike | None = None,
    discount: Discount = "log2", patience: float = 0.5, k: int | None = None, name: str = "attention_gap",
) -> Metric:  # fmt: skip
    """Make a metric of the share of attention minus the share of relevance, or another target, as a mean over lists.

    Both are shares of a list, so that lists count alike. Of a group it is what the group gets too much (above 0) or too
    little; by item, the sum of absolute values is the unfairness of Biega et al. (2018) per list, equity of amortized
    attention. Lists without relevant items are left out. Reads the relevance as `truth` and the score as `estimate`. Of
    all items together it is 0. Null without relevant items.

    Args:
        lists: As for `exposure`, as are the arguments that are not named here.
        target: `"relevance"`; `"items"`, for the same attention to all items of a list; or the wanted share of each
            group of the column `by`, which its items in a list have evenly, and groups that the list lacks leave to the
            others (Sapiezynski et al., 2019). The last two read no truth, and leave no list out.
        by: The column of the groups of a target.
        discount: As for `exposure`.
        patience: As for `exposure`.
        k: As for `exposure`.
        name: The name in `.metric`.

    Raises:
        ArgumentError: As for `exposure`; and for a target of groups without `by`, or one that lacks a group.
        ColumnError: At the call, for negative relevance or a list without a name.

    >>> import polars as pl
    >>> found = pl.DataFrame({"query": [1, 1], "score": [2, 1], "relevance": [1, 1], "item": ["a", "b"]})
    >>> gaps = attention_gap("query", discount="reciprocal").difference("item").by_group(found, "relevance", "score")
    >>> gaps[".estimate"].round(3).to_list()
    [0.167, -0.167]
    """
    settings = _settings("attention_gap()", discount, patience, k)
    has_groups = isinstance(target, Mapping)
    if has_groups != (by is not None):
        msg = 'attention_gap(): a target of groups needs their column, as `by="group", target={"a": 0.5, "b": 0.5}`.'
        raise ArgumentError(msg)
    if has_groups or one_of("target", target, ("relevance", "items")) == "items":
        groups = () if by is None else (("by", Column.of(by, "by")),)
        settings["target"] = _target("attention_gap", cast("Any", target)) if has_groups else None
        quantities = {
            "attention_gap": _Quantity(attention_beside_target, settings, groups), "lists": _Quantity(list_shares),
        }  # fmt: skip
        return _metric(
            "attention_gap", lists, name, mean_gap_to_target, "zero", (-1, 1), reads=score_column, quantities=quantities
        )
    quantities = {
        "attention_gap": _Quantity(attention_gap_of, settings), "relevant_lists": _Quantity(relevant_lists_of),
    }  # fmt: skip
    return _metric(
        "attention_gap", lists, name, mean_gap, "zero", (-1, 1), reads=score_and_relevance, quantities=quantities
    )


@makes_metric('"query"')
def ndcg(
    lists: ColumnLike | Iterable[ColumnLike], *, k: int | None = None,
    gain: Literal["linear", "exponential"] = "linear", discount: Discount = "log2", patience: float = 0.5,
    name: str = "ndcg",
) -> Metric:  # fmt: skip
    """Make a metric of nDCG: the discounted gain of each list over that of its ideal order, as a mean over lists.

    Items with equal scores get the mean discount of their positions (McSherry and Najork, 2008), as in scikit-learn.
    Lists without relevant items have no ideal order and are left out (scikit-learn counts them as 0). Reads the
    relevance as `truth` and the score as `estimate`. Groups that are compared must be those of whole lists, such as
    users; for nDCG of the items of each group, ranked among themselves, add the column of the group to `lists`. A case
    weight is that of a list. Null without relevant items.

    Args:
        lists: The column, or columns, whose values are the same in all rows of a list.
        k: The last position that counts; by default all do.
        gain: `"linear"`, the relevance, or `"exponential"`, 2 to the power of the relevance, less 1.
        discount: As for `exposure`.
        patience: As for `exposure`.
        name: The name in `.metric`.

    Raises:
        ArgumentError: If an argument is invalid; or at the call, for an interval without `cluster`.
        ColumnError: At the call, for negative relevance, a list without a name, or one that a group divides.

    Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques.

    >>> import polars as pl
    >>> found = pl.DataFrame({"query": [1, 1, 2, 2], "score": [2, 1, 2, 1], "relevance": [1, 0, 0, 1]})
    >>> ndcg("query")(found, "relevance", "score")[".estimate"].round(3)[0]
    0.815
    """
    settings = {**_settings("ndcg()", discount, patience, k), "gain": one_of("gain", gain, _GAINS)}
    quantities = {"gain_share": _Quantity(gain_shares, settings), "relevant_lists": _Quantity(relevant_lists_of)}
    return _metric(
        "ndcg", lists, name, mean_gain, "maximize", (0, 1), reads=score_and_relevance, quantities=quantities,
        undivided=True,
    )  # fmt: skip


@makes_metric('"query"')
def dcg(
    lists: ColumnLike | Iterable[ColumnLike], *, k: int | None = None,
    gain: Literal["linear", "exponential"] = "linear", discount: Discount = "log2", patience: float = 0.5,
    name: str = "dcg",
) -> Metric:  # fmt: skip
    """Make a metric of DCG: the discounted gain of each list, which `ndcg` divides by that of its ideal order; a mean.

    Lists without relevant items count with 0. Arguments, and what is read, are those of `ndcg`. Null without rows.

    Raises:
        ArgumentError: As for `ndcg`.
        ColumnError: As for `ndcg`.

    >>> import polars as pl
    >>> found = pl.DataFrame({"query": [1, 1, 2, 2], "score": [2, 1, 2, 1], "relevance": [3, 0, 0, 1]})
    >>> dcg("query")(found, "relevance", "score")[".estimate"].round(3)[0]
    1.815
    """
    settings = {**_settings("dcg()", discount, patience, k), "gain": one_of("gain", gain, _GAINS)}
    quantities = {"discounted_gain": _Quantity(discounted_gains, settings), "lists": _Quantity(list_shares)}
    return _metric(
        "dcg", lists, name, mean_discounted_gain, "maximize", (0, math.inf), reads=score_and_relevance,
        quantities=quantities, undivided=True,
    )  # fmt: skip


@makes_metric('"query", "group"')
def ndkl(
    lists: ColumnLike | Iterable[ColumnLike], by: ColumnLike, *, k: int | None = None,
    target: Mapping[Any, float] | None = None, name: str = "ndkl",
) -> Metric:  # fmt: skip
    """Make a metric of NDKL: how far the groups at the top of a list are from the wanted shares, as a mean over lists.

    For each position, the Kullback-Leibler divergence (natural logarithm) of the shares of groups down to it from the
    wanted shares, weighted with 1 / log2(1 + position); 0 where all are as wanted, which short tops cannot be. Items
    with equal scores count at each of their positions with the expected number of each group. Reads the score as
    `estimate`, and no truth. Infinite where a group is wanted nowhere and there. Null without rows.

    Args:
        lists: The column, or columns, whose values are the same in all rows of a list.
        by: The column of groups.
        k: The last position; by default the end of the list.
        target: The wanted share of each group; by default its share of the list.
        name: The name in `.metric`.

    Raises:
        ArgumentError: If an argument is invalid, or `target` lacks a group.
        ColumnError: At the call, for a list without a name, or one that a compared group divides.

    Geyik, Ambler and Kenthapadi (2019), Fairness-aware ranking in search and recommendation systems.

    >>> import polars as pl
    >>> found = pl.DataFrame({"query": [1, 1], "score": [2, 1], "group": ["a", "b"]})
    >>> ndkl("query", by="group")(found, estimate="score")[".estimate"].round(3)[0]
    0.425
    """
    settings = {"k": _last_position("ndkl()", k), "target": _target("ndkl", target)}
    groups = (("by", Column.of(by, "by")),)
    quantities = {"divergence": _Quantity(divergences, settings, groups), "lists": _Quantity(list_shares)}
    return _metric(
        "ndkl", lists, name, mean_divergence, "minimize", (0, math.inf), reads=score_column, quantities=quantities,
        undivided=True,
    )  # fmt: skip


@makes_metric('"query"')
def rnd(
    lists: ColumnLike | Iterable[ColumnLike], protected: ColumnLike, *, step: int = 10, name: str = "rnd"
) -> Metric:  # fmt: skip
    """Make a metric of rND: how far the protected share at the top of a list is from that of all, as a mean over lists.

    The distances of the tops of 10, 20, 30 … items (by `step`) are weighted with 1 / log2(length), and their sum is
    divided by that of the worse of two orders: all protected items first, or last. Items with equal scores count with
    the expected number of protected ones. Reads the score as `estimate`, and no truth. Lists in which nothing can
    differ, shorter than a step or without both kinds of items, are left out. Null without others.

    Args:
        lists: The column, or columns, whose values are the same in all rows of a list.
        protected: A Boolean column, such as `(pl.col("sex") == "female").alias("female")`; null is not protected.
        step: The number of items from one length to the next.
        name: The name in `.metric`.

    Raises:
        ArgumentError: If an argument is invalid.
        ColumnError: At the call, for groups that are not Boolean, a list without a name, or one that a group divides.

    Yang and Stoyanovich (2017), Measuring fairness in ranked outputs.

    >>> import polars as pl
    >>> found = pl.DataFrame({"query": [1] * 4, "score": [4, 3, 2, 1], "of_group": [False, True, False, True]})
    >>> rnd("query", "of_group", step=2)(found, estimate="score")[".estimate"][0]
    0.0
    """
    settings = {"step": whole("step", step, 1, of="rnd()")}
    items = (("protected", Column.of(protected, "protected")),)
    quantities = {
        "distance": _Quantity(normalized_distances, settings, items),
        "lists": _Quantity(lists_that_vary, settings, items),
    }
    return _metric(
        "rnd", lists, name, mean_distance, "minimize", (0, 1), reads=score_column, quantities=quantities, undivided=True
    )


# Tops of lists, from labels


@class_metric(direction="zero", range=(-math.inf, math.inf), undefined_levels="null")
def skew(selected: Number, unselected: Number, overall_selected: Number, overall_unselected: Number) -> Number:
    """Logarithm of a group's share of those selected over its share of all, which is skew@k if the top k are selected.

    Above 0 the group is at the top more often than elsewhere. Negative infinity for a group of which nobody is
    selected; null where nobody is. Geyik, Ambler and Kenthapadi (2019), Fairness-aware ranking in search and
    recommendation systems.

    >>> skew.formula(selected=1, unselected=3, overall_selected=4, overall_unselected=4)
    -0.6931471805599453
    """
    rate, overall_rate = selected / (selected + unselected), overall_selected / (overall_selected + overall_unselected)
    return np.log(rate / overall_rate)


min_skew = new_groupwise_metric(skew, "min_skew", group_minimum(), direction="zero", source=_GEYIK)
max_skew = new_groupwise_metric(skew, "max_skew", group_maximum(), direction="zero", source=_GEYIK)


# Arguments


class _Quantity(NamedTuple):
    """A quantity of an item in its list."""

    function: Callable[..., Array]
    """The quantity of each row, as a function of lists and its settings."""
    settings: Mapping[str, object] = MappingProxyType({})
    others: tuple[tuple[str, Column], ...] = ()
    """More columns that it reads, with the arguments that name them."""


def _metric(
    function: str,
    lists: object,
    name: str,
    formula: Callable[..., Rate],
    direction: Direction,
    ends: tuple[float, float],
    *,
    reads: Callable[..., Expr],
    quantities: Mapping[str, _Quantity],
    undivided: bool = False,
) -> Metric:
    """A metric of a formula of quantities of items in their lists, which `function` makes.

    `reads` is a function of the columns in which a row must have a value to count.
    """
    columns = distinct_columns(lists, "lists", f'{function}() needs the column of lists, such as "query", or several')
    terms: dict[str, Statistic] = {}
    for alias, quantity in quantities.items():
        own = Lists(function, columns, quantity.function, quantity.others, undivided)
        terms[alias] = Statistic(reads, options=tuple(quantity.settings.items()), alias=alias, lists=own)
    return defined(formula, "numeric", direction, ends, {}, name=text("name", name), terms=terms)


def _settings(caller: str, discount: str, patience: float, k: int | None) -> dict[str, object]:
    """The checked discount of positions."""
    one_of("discount", discount, _DISCOUNTS)
    return {
        "discount": discount,
        "patience": proper_share("patience", patience),
        "k": _last_position(caller, k),
    }


def _last_position(caller: str, k: object) -> int | None:
    return None if k is None else whole("k", k, 1, of=caller)


def _target(function: str, target: Mapping[Any, float] | None) -> Target:
    """The wanted shares of groups, which add up to 1."""
    if target is None:
        return None
    if not isinstance(cast("object", target), Mapping):
        msg = f'{function}(): `target` maps groups to shares, such as `{{"a": 0.5, "b": 0.5}}`, not {in_short(target)}.'
        raise ArgumentError(msg)
    shares = tuple((group, number(f"target of {in_short(group)}", share, 0, 1)) for group, share in target.items())
    total = math.fsum(share for _, share in shares)
    if not math.isclose(total, 1, abs_tol=1e-9):
        msg = f"{function}(): the shares in `target` add up to {total:g}, not 1."
        raise ArgumentError(msg)
    return shares

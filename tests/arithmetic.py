"""The definitions of class metrics in plain arithmetic: slow and obvious, and without the library.

Exact fractions (floats where there are logarithms or roots), one label and one group at a time, over lists of rows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# One label against the rest

Number: TypeAlias = Fraction | float
Value: TypeAlias = Number | None
Side: TypeAlias = Literal["truth", "estimate"]


class Row(TypedDict):
    truth: str | None
    estimate: str | None
    group: str | None
    outer: int | None
    weight: float


class Table(NamedTuple):
    tp: Fraction
    fp: Fraction
    fn: Fraction
    tn: Fraction


def rate(numerator: Fraction, denominator: Fraction) -> Fraction | None:
    return None if denominator == 0 else numerator / denominator


def quotient(numerator: Fraction, denominator: Fraction) -> Value:
    if denominator == 0:
        return math.inf if numerator > 0 else None
    return numerator / denominator


def of(function: Callable[[Fraction, Fraction], Value], one: Fraction | None, other: Fraction | None) -> Value:
    return None if one is None or other is None else function(one, other)


def sens(t: Table) -> Fraction | None:
    return rate(t.tp, t.tp + t.fn)


def spec(t: Table) -> Fraction | None:
    return rate(t.tn, t.tn + t.fp)


def fall_out(t: Table) -> Fraction | None:
    return rate(t.fp, t.tn + t.fp)


def miss_rate(t: Table) -> Fraction | None:
    return rate(t.fn, t.tp + t.fn)


def right_when_selected(t: Table) -> Fraction | None:
    return rate(t.tp, t.tp + t.fp)


def right_when_unselected(t: Table) -> Fraction | None:
    return rate(t.tn, t.tn + t.fn)


def f_measure(t: Table, beta: int) -> Value:
    if sens(t) is None or right_when_selected(t) is None:
        return None
    return (1 + beta**2) * t.tp / ((1 + beta**2) * t.tp + beta**2 * t.fn + t.fp)


def bayes(likelihood: Fraction, other_likelihood: Fraction, prior: Fraction) -> Value:
    return rate(likelihood * prior, likelihood * prior + other_likelihood * (1 - prior))


def symmetric_extremal_dependence(hits: Fraction, false_alarms: Fraction) -> float:
    h, f = (min(max(float(item), 1e-9), 1 - 1e-9) for item in (hits, false_alarms))
    log = math.log
    return (log(f) - log(h) + log(1 - h) - log(1 - f)) / (log(f) + log(h) + log(1 - h) + log(1 - f))


def smoothed(count: Fraction, other: Fraction, share: Fraction, concentration: int = 1) -> Value:
    """The share of a count after so many more rows, of which it has some share."""
    return rate(count + concentration * share, count + other + concentration) if count + other else None


# Inequality of benefits

People: TypeAlias = "Sequence[tuple[Number, Fraction]]"
"""What people get, and how many get it."""


def people(t: Table) -> People:
    """Nobody gets more than who is selected without being a positive, and nobody less than who is not but is."""
    return [(0, t.fn), (1, t.tp + t.tn), (2, t.fp)]


def mean(these: People) -> Number | None:
    return average([item for item, _ in these], [count for _, count in these], drop=True)


def entropy(alpha: float, these: People) -> Value:
    """The mean over people of what a generalized entropy makes of their benefit as a multiple of the mean."""
    middle, there = mean(these), [(benefit, count) for benefit, count in these if count > 0]
    if not middle:
        return None
    if alpha <= 0 and any(benefit == 0 for benefit, _ in there):
        return math.inf

    def term(multiple: Number) -> Number:
        if alpha == 0:
            return -math.log(multiple)
        if alpha == 1:
            return multiple * math.log(multiple) if multiple else 0
        return (multiple**alpha - 1) / (alpha * (alpha - 1))

    return mean([(term(benefit / middle), count) for benefit, count in there])


def variation(these: People) -> Value:
    middle = mean(these)
    variance = mean([((benefit - middle) ** 2, count) for benefit, count in these]) if middle else None
    return None if variance is None or not middle else math.sqrt(variance) / middle


def squared_inequality_within(own: Table, everybody: Table) -> Value:
    """The index of a group, as often as its mean squared is that of all; nothing where nobody in it has anything."""
    middle, of_all = mean(people(own)), mean(people(everybody))
    if middle is None or not of_all:
        return None
    return (entropy(2, people(own)) or 0) * (middle / of_all) ** 2


QUARTER = Fraction(1, 4)

ONE_LABEL: dict[str, Callable[[Table], Value]] = {
    "sens": sens,
    "spec": spec,
    "fall_out": fall_out,
    "miss_rate": miss_rate,
    "precision": right_when_selected,
    "negative_predictive_value": right_when_unselected,
    "false_discovery_rate": lambda t: rate(t.fp, t.tp + t.fp),
    "false_omission_rate": lambda t: rate(t.fn, t.fn + t.tn),
    "detection_prevalence": lambda t: rate(t.tp + t.fp, t.tp + t.fp + t.fn + t.tn),
    "base_rate": lambda t: rate(t.tp + t.fn, t.tp + t.fp + t.fn + t.tn),
    "threat_score": lambda t: rate(t.tp, t.tp + t.fp + t.fn),
    "bal_accuracy": lambda t: of(lambda a, b: (a + b) / 2, sens(t), spec(t)),
    "j_index": lambda t: of(lambda a, b: a + b - 1, sens(t), spec(t)),
    "markedness": lambda t: of(lambda a, b: a + b - 1, right_when_selected(t), right_when_unselected(t)),
    # at the prevalence of the data, Bayes' rule counts the same rows
    "ppv": lambda t: None if None in (sens(t), spec(t)) else right_when_selected(t),
    "npv": lambda t: None if None in (sens(t), spec(t)) else right_when_unselected(t),
    "ppv_at_0.25": lambda t: of(lambda a, b: bayes(a, 1 - b, QUARTER), sens(t), spec(t)),
    "npv_at_0.25": lambda t: of(lambda a, b: bayes(b, 1 - a, 1 - QUARTER), sens(t), spec(t)),
    "f_meas": lambda t: f_measure(t, 1),
    "net_benefit": lambda t: rate(t.tp - t.fp, t.tp + t.fp + t.fn + t.tn),
    "net_benefit_of_treating_all": lambda t: rate(t.tp + t.fn - t.fp - t.tn, t.tp + t.fp + t.fn + t.tn),
    "net_benefit_of_untreated": lambda t: rate(t.tn - t.fn, t.tp + t.fp + t.fn + t.tn),
    "net_benefit_at_prevalence": lambda t: (
        None if None in (sens(t), spec(t)) else rate(t.tp - t.fp, t.tp + t.fp + t.fn + t.tn)
    ),
    "standardized_net_benefit": lambda t: rate(t.tp - t.fp, t.tp + t.fn),
    "f2": lambda t: f_measure(t, 2),
    "roc_dist": lambda t: of(lambda a, b: math.hypot(1 - a, 1 - b), sens(t), spec(t)),
    "sedi": lambda t: of(symmetric_extremal_dependence, sens(t), fall_out(t)),
    "lift": lambda t: rate(t.tp * (t.tp + t.fp + t.fn + t.tn), (t.tp + t.fp) * (t.tp + t.fn)),
    "positive_likelihood_ratio": lambda t: of(quotient, sens(t), fall_out(t)),
    "negative_likelihood_ratio": lambda t: of(quotient, miss_rate(t), spec(t)),
    "diagnostic_odds_ratio": lambda t: quotient(t.tp * t.tn, t.fp * t.fn),
    "false_negatives_per_false_positive": lambda t: rate(t.fn, t.fp),
    "average_odds": lambda t: of(lambda a, b: (a + b) / 2, fall_out(t), sens(t)),
    "average_predictive_value": lambda t: of(lambda a, b: (a + b) / 2, right_when_selected(t), rate(t.fn, t.fn + t.tn)),
    "mean_benefit": lambda t: mean(people(t)),
    "generalized_entropy_index": lambda t: entropy(2, people(t)),
    "entropy_of_half": lambda t: entropy(0.5, people(t)),
    "entropy_of_less_than_nothing": lambda t: entropy(-0.5, people(t)),
    "theil_index": lambda t: entropy(1, people(t)),
    "mean_log_deviation": lambda t: entropy(0, people(t)),
    "benefit_variation": lambda t: variation(people(t)),
    "true_positive_share": lambda t: rate(t.tp, sum(t, Fraction())),
    "false_positive_share": lambda t: rate(t.fp, sum(t, Fraction())),
    "false_negative_share": lambda t: rate(t.fn, sum(t, Fraction())),
    "true_negative_share": lambda t: rate(t.tn, sum(t, Fraction())),
    "positives": lambda t: t.tp + t.fn,
    "negatives": lambda t: t.fp + t.tn,
    "predicted_positives": lambda t: t.tp + t.fp,
    "predicted_negatives": lambda t: t.fn + t.tn,
    "true_positives": lambda t: t.tp,
    "false_positives": lambda t: t.fp,
    "false_negatives": lambda t: t.fn,
    "true_negatives": lambda t: t.tn,
}

SMOOTHED: dict[str, Callable[[Table, Fraction], Value]] = {
    "smoothed_selection_rate": lambda t, share: smoothed(t.tp + t.fp, t.fn + t.tn, share),
    "smoothed_rejection_rate": lambda t, share: smoothed(t.fn + t.tn, t.tp + t.fp, 1 - share),
    "smoothed_base_rate": lambda t, share: smoothed(t.tp + t.fn, t.fp + t.tn, share),
    "smoothed_negative_rate": lambda t, share: smoothed(t.fp + t.tn, t.tp + t.fn, 1 - share),
    "base_rate_smoothed_by_3": lambda t, share: smoothed(t.tp + t.fn, t.fp + t.tn, share, 3),
}
"""Of a label, counted in effective rows, and its share of the rows that smooth."""

BESIDE_ALL: dict[str, Callable[[Table, Table], Value]] = {
    "demographic_disparity": lambda own, everybody: of(
        lambda a, b: a - b,
        rate(own.fn + own.tn, everybody.fn + everybody.tn),
        rate(own.tp + own.fp, everybody.tp + everybody.fp) if sum(own) else None,
    ),
    "skew": lambda own, everybody: of(
        lambda a, b: math.log(a / b) if a else -math.inf,
        rate(own.tp + own.fp, sum(own, Fraction())),
        rate(everybody.tp + everybody.fp, sum(everybody, Fraction())) or None,
    ),
    "inequality_within": squared_inequality_within,
}
"""Of a group, and of all groups together."""


# Forms of their own for many labels; rows are truth, columns are estimate

Matrix: TypeAlias = list[list[Fraction]]


def diagonal(m: Matrix) -> Fraction:
    return sum((row[i] for i, row in enumerate(m)), Fraction())


def total(m: Matrix) -> Fraction:
    return sum(margins(m), Fraction())


def margins(lines: Iterable[Sequence[Fraction]]) -> list[Fraction]:
    return [sum(line, Fraction()) for line in lines]


def correlation(m: Matrix) -> Value:
    s, truth, estimate = total(m), margins(m), margins(zip(*m, strict=True))
    covariance = diagonal(m) * s - sum(t * e for t, e in zip(truth, estimate, strict=True))
    variances = [s**2 - sum(item**2 for item in margin) for margin in (truth, estimate)]
    return None if 0 in variances else covariance / math.sqrt(variances[0] * variances[1])


def kappa(m: Matrix, disagreement: Callable[[int, int], int]) -> Value:
    truth, estimate = margins(m), margins(zip(*m, strict=True))
    pairs = [(i, j) for i in range(len(m)) for j in range(len(m))]
    observed = sum((disagreement(i, j) * m[i][j] for i, j in pairs), Fraction())
    chance = rate(sum((disagreement(i, j) * truth[i] * estimate[j] for i, j in pairs), Fraction()), total(m))
    return None if not chance else 1 - observed / chance


ALL_LABELS: dict[str, Callable[[Matrix], Value]] = {
    "accuracy": lambda m: rate(diagonal(m), total(m)),
    "error_rate": lambda m: rate(total(m) - diagonal(m), total(m)),
    "mcc": correlation,
    "kap": lambda m: kappa(m, lambda i, j: int(i != j)),
    "kap_linear": lambda m: kappa(m, lambda i, j: abs(i - j)),
    "kap_quadratic": lambda m: kappa(m, lambda i, j: (i - j) ** 2),
}


def divergence(own: Sequence[Row], others: Sequence[Row], kind_of: Callable[[Row], object]) -> Value:
    """Of the kinds of some rows from those of others (Kullback-Leibler)."""

    def share(rows: Sequence[Row], kind: object) -> Fraction:
        return weigh(row for row in rows if kind_of(row) == kind) / weigh(rows)

    if not weigh(own) or not weigh(others):
        return None
    shares = [(share(own, kind), share(others, kind)) for kind in {kind_of(row) for row in own}]
    return sum(math.log(p / q) * p if q else math.inf for p, q in shares if p)


class Group(NamedTuple):
    own: Sequence[Row]
    everybody: Sequence[Row]
    rest: Sequence[Row]


def alone(rows: Sequence[Row]) -> Group:
    """Rows that nothing else is beside."""
    return Group(rows, rows, [])


def truth_beside_rest(group: Group, event: str | None) -> Value:
    """Label by label or, of an event, whether it happened."""
    own, rest = (used("divergence_from_rest", rows) for rows in (group.own, group.rest))
    return divergence(own, rest, lambda row: row["truth"] if event is None else row["truth"] == event)


OF_ROWS: dict[str, Callable[[Group, str | None], Value]] = {
    "instances": lambda group, _: weigh(group.own),
    "coverage": lambda group, _: rate(weigh(r for r in group.own if r["estimate"] is not None), weigh(group.own)),
    "share_of_rows": lambda group, _: rate(weigh(group.own), weigh(group.everybody)),
    "divergence_from_rest": truth_beside_rest,
}
"""Of all labels at once or, where there is one, of the event."""

DISTANCES: dict[str, tuple[Side, Side | None]] = {
    "distance_to_all": ("estimate", None),
    "distance_given_truth": ("estimate", "truth"),
    "distance_given_estimate": ("truth", "estimate"),
}
"""The labels of which side are those of a group and of all, and that of which side is given, if one is."""


def distance(name: str, group: Group, label: str) -> Value:
    """Between all labels of the groups, whatever is asked, in all rows or those with the label that is given."""
    side, given = DISTANCES[name]
    own, everybody = (
        [row for row in used(name, rows) if given is None or row[given] == label]
        for rows in (group.own, group.everybody)
    )
    return divergence(own, everybody, lambda row: row[side])


BESIDE_OTHERS = {*BESIDE_ALL, *DISTANCES, "share_of_rows", "divergence_from_rest"}

SYNONYMS = {
    "sensitivity": "sens", "true_positive_rate": "sens", "recall": "sens",
    "specificity": "spec", "true_negative_rate": "spec",
    "false_positive_rate": "fall_out", "false_negative_rate": "miss_rate",
    "positive_predictive_value": "precision",
    "selection_rate": "detection_prevalence", "prevalence": "base_rate",
    "interventions_avoided": "net_benefit_of_untreated",
}  # fmt: skip

READS: dict[str, tuple[Side, ...]] = {
    **dict.fromkeys(("base_rate", "positives", "negatives", "divergence_from_rest"), ("truth",)),
    **dict.fromkeys(("smoothed_base_rate", "smoothed_negative_rate", "base_rate_smoothed_by_3"), ("truth",)),
    **dict.fromkeys(("detection_prevalence", "predicted_positives", "predicted_negatives"), ("estimate",)),
    **dict.fromkeys(
        ("smoothed_selection_rate", "smoothed_rejection_rate", "demographic_disparity", "skew"), ("estimate",)
    ),
    "coverage": ("estimate",),
    "distance_to_all": ("estimate",),
    **dict.fromkeys(("instances", "share_of_rows"), ()),
}
"""What must be known of a row for it to count; both truth and estimate where nothing is said."""

NULL_LEVELS = {
    "ppv", "npv", "ppv_at_0.25", "npv_at_0.25", "bal_accuracy", "detection_prevalence", "base_rate", "threat_score",
    "lift", "positive_likelihood_ratio", "negative_likelihood_ratio", "diagnostic_odds_ratio",
    "false_negatives_per_false_positive", "generalized_entropy_index", "entropy_of_half",
    "entropy_of_less_than_nothing", "theil_index", "mean_log_deviation", "benefit_variation", "inequality_within",
    "skew", *SMOOTHED,
}  # fmt: skip
"""Averages that are null where a label has no value; the others leave the label out."""


def weigh(rows: Iterable[Row]) -> Fraction:
    return sum((Fraction(row["weight"]) for row in rows), Fraction())


def effective_rows(table: Table, rows: Sequence[Row]) -> Table:
    """A table of weights as one of so many rows of equal weight as tell as much (Kish)."""
    squares = sum((Fraction(row["weight"]) ** 2 for row in rows), Fraction())
    return Table(*(cell * weigh(rows) / squares for cell in table)) if squares else table


def used(name: str, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if all(row[column] is not None for column in READS.get(name, ("truth", "estimate")))]


def one_label(name: str, rows: Sequence[Row], label: str) -> Table:
    def cell(*, truth: bool, estimate: bool) -> Fraction:
        return weigh(
            r for r in used(name, rows) if ((r["truth"] == label), (r["estimate"] == label)) == (truth, estimate)
        )

    return Table(
        cell(truth=True, estimate=True),
        cell(truth=False, estimate=True),
        cell(truth=True, estimate=False),
        cell(truth=False, estimate=False),
    )


def value(  # noqa: PLR0911 - a table of cases
    name: str, group: Group, labels: Sequence[str], estimator: str, label_count: int
) -> Value:
    """A metric of some rows; with the estimator `binary`, `labels` is the event alone, or the label that is given."""
    name = SYNONYMS.get(name, name)
    rows = group.own
    if name in DISTANCES:
        return distance(name, group, labels[0])
    if name == "coverage" and estimator == "macro_weighted" and not used("accuracy", rows):
        # no row with both labels says how much each of them weighs
        return None
    if name in OF_ROWS:
        return OF_ROWS[name](group, labels[0] if estimator == "binary" else None)
    if name in ALL_LABELS and estimator == "binary":
        t = one_label(name, rows, labels[0])
        return ALL_LABELS[name]([[t.tp, t.fn], [t.fp, t.tn]])
    if name in ALL_LABELS:
        cells = [[[r for r in rows if (r["truth"], r["estimate"]) == (t, e)] for e in labels] for t in labels]
        return ALL_LABELS[name]([[weigh(cell) for cell in row] for row in cells])

    def of_tables(own: Table, everybody: Table) -> Value:
        if name in SMOOTHED:
            return SMOOTHED[name](effective_rows(own, used(name, rows)), Fraction(1, label_count))
        return BESIDE_ALL[name](own, everybody) if name in BESIDE_ALL else ONE_LABEL[name](own)

    beside = group.everybody if name in BESIDE_ALL else []
    tables, of_all = ([one_label(name, some, label) for label in labels] for some in (rows, beside))
    if estimator in {"binary", "micro"}:
        pooled = (Table(*(sum(cells, Fraction()) for cells in zip(*some, strict=True))) for some in (tables, of_all))
        return of_tables(*pooled)
    even = estimator == "macro"
    weights = [Fraction(1) if even else weigh(r for r in used(name, rows) if r["truth"] == item) for item in labels]
    values = [of_tables(*both) for both in zip(tables, of_all, strict=True)]
    return average(values, weights, drop=name not in NULL_LEVELS)


def average(values: Sequence[Value], weights: Sequence[Fraction], *, drop: bool) -> Value:
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if weight > 0]
    known = [(value, weight) for value, weight in pairs if value is not None]
    if not known or (len(known) < len(pairs) and not drop):
        return None
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known)


# Groups compared

_OF_TRUTH = "differential_fairness of the truth"
DEFINITIONS: dict[str, tuple[str, ...]] = {
    "demographic_parity": ("difference", "detection_prevalence"),
    "demographic_parity_ratio": ("ratio", "detection_prevalence"),
    "statistical_parity_difference": ("difference", "detection_prevalence"),
    "disparate_impact": ("ratio", "detection_prevalence"),
    "equal_opportunity": ("difference", "sens"),
    "equal_opportunity_ratio": ("ratio", "sens"),
    "equalized_odds": ("difference", "sens", "spec"),
    "equalized_odds_ratio": ("ratio", "sens", "fall_out"),
    "predictive_parity": ("difference", "precision"),
    "predictive_equality": ("difference", "fall_out"),
    "overall_accuracy_equality": ("difference", "accuracy"),
    "treatment_equality": ("ratio", "false_negatives_per_false_positive"),
    "conditional_use_accuracy_equality": ("difference", "precision", "negative_predictive_value"),
    "average_odds_difference": ("difference_from_all", "average_odds"),
    "average_predictive_value_difference": ("difference_from_all", "average_predictive_value"),
    "average_abs_odds_difference": ("mean_difference", "fall_out", "sens"),
    "differential_fairness": ("log_ratio", "smoothed_selection_rate", "smoothed_rejection_rate"),
    "bias_amplification": ("less", "differential_fairness", _OF_TRUTH),
    "conditional_demographic_disparity": ("signed_mean", "demographic_disparity"),
    "kl_divergence": ("group_maximum", "divergence_from_rest"),
    "class_imbalance": ("difference", "share_of_rows"),
    "min_skew": ("group_minimum", "skew"),
    "max_skew": ("group_maximum", "skew"),
    "independence": ("group_maximum", "distance_to_all"),
    "separation": ("group_maximum", "distance_given_truth"),
    "sufficiency": ("group_maximum", "distance_given_estimate"),
    "mutual_information": ("mean", "distance_to_all"),
    "between_group_generalized_entropy_index": ("entropy", "mean_benefit"),
    "between_group_theil_index": ("theil", "mean_benefit"),
    "between_group_coefficient_of_variation": ("variation", "mean_benefit"),
    "within_group_generalized_entropy_index": ("mean", "inequality_within"),
}
"""What a name of the field means; the others say it themselves, as in `spec_group_minimum`."""

AGGREGATES = ("difference", "ratio", "group_minimum", "group_maximum")


def meaning(name: str) -> tuple[str, ...]:
    if name == _OF_TRUTH:
        return ("log_ratio", "smoothed_base_rate", "smoothed_negative_rate")
    split = [(item, name.removesuffix(f"_{item}")) for item in AGGREGATES if name.endswith(f"_{item}")]
    return DEFINITIONS.get(name) or split[0]


def made_of(name: str) -> list[str]:
    """The metrics that are compared."""
    aggregate, *names = meaning(name)
    return [item for name in names for item in made_of(name)] if aggregate == "less" else names


OF_PEOPLE: dict[str, Callable[[People], Value]] = {
    "mean": mean,
    "signed_mean": mean,
    "entropy": lambda these: entropy(2, these),
    "theil": lambda these: entropy(1, these),
    "variation": variation,
}
"""Aggregates in which a group counts as much as the rows that its value is about weigh."""


OF_ENDS: dict[str, Callable[[Number, Number], Value]] = {
    "group_minimum": lambda low, _: low,
    "group_maximum": lambda _, high: high,
    "difference": lambda low, high: high - low,
    "mean_difference": lambda low, high: high - low,
    "ratio": lambda low, high: None if high == 0 else low / high,
    "log_ratio": lambda low, high: math.log(high / low),
}
"""Aggregates of the smallest and the largest value."""


def compared(aggregate: str, values: Sequence[Value], weights: Sequence[Fraction], of_all: Value) -> Value:
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    known = [value for value, _ in pairs]
    one_will_do = aggregate in {"group_minimum", "group_maximum", "mean", "signed_mean"}
    if not known or (len(known) < 2 and not one_will_do and len(values) > 1):
        return None
    if len(values) == 1 and not one_will_do:
        return 1 if aggregate == "ratio" else 0
    if aggregate in OF_PEOPLE:
        return OF_PEOPLE[aggregate](pairs)
    if aggregate == "difference_from_all":
        return None if of_all is None else max(abs(item - of_all) for item in known)
    return OF_ENDS[aggregate](min(known), max(known))


def combined(aggregate: str, numbers: Sequence[Number]) -> Number:
    """One number for several metrics or labels: the worst, unless it is the mean."""
    if aggregate == "mean_difference":
        return sum(numbers) / len(numbers)
    if aggregate == "signed_mean":
        return max(numbers, key=abs)
    return min(numbers) if aggregate in {"ratio", "group_minimum"} else max(numbers)


def disparity(
    name: str, rows: Sequence[Row], labels: Sequence[str], estimator: str, label_count: int, *, undefined_is_null: bool
) -> Value:
    # people of unknown group are compared with nobody, and are no part of all or of the rest
    rows = [row for row in rows if row["group"] is not None]
    aggregate, *names = meaning(name)
    if aggregate == "less":
        more, less = (
            disparity(item, rows, labels, estimator, label_count, undefined_is_null=undefined_is_null) for item in names
        )
        return None if more is None or less is None else more - less
    groups = [
        Group([row for row in rows if row["group"] == group], rows, [row for row in rows if row["group"] != group])
        for group in {row["group"] for row in rows}
    ]
    one_by_one = estimator == "one_vs_rest" or any(item in DISTANCES and DISTANCES[item][1] for item in names)
    readings = [([label], "binary") for label in labels] if one_by_one else [(labels, estimator)]
    per_label: list[Value] = []
    for some, read_as in readings:
        values = {item: [value(item, group, some, read_as, label_count) for group in groups] for item in names}
        weights = {item: [weigh(used(item, group.own)) for group in groups] for item in names}
        from_all = aggregate == "difference_from_all"
        of_all = [value(item, alone(rows), some, read_as, label_count) if from_all else None for item in names]
        numbers = [
            compared(aggregate, values[item], weights[item], beside) for item, beside in zip(names, of_all, strict=True)
        ]
        known = [number for number in numbers if number is not None]
        undefined = undefined_is_null and any(None in item for item in values.values())
        # a mean needs all metrics, the worst is that of the metrics that can be compared
        all_needed = aggregate == "mean_difference" or undefined_is_null
        enough = len(known) == len(names) if all_needed else bool(known)
        per_label.append(combined(aggregate, known) if enough and not undefined else None)
    known = [number for number in per_label if number is not None]
    return combined(aggregate, known) if known and (len(known) == len(per_label) or not undefined_is_null) else None

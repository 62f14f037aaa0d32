"""Every number that AIF360 computed on our data, by the calls on the page "Coming from AIF360".

Where we differ by design, AIF360's number follows from our values by one of `RULES`, which `references/deviations.md`
explains.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import check_every, deviations, records, reference_data, script
from public_names import public

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable

page = script("coming_from/aif360.py")

CODES = {"alpha": 0, "beta": 1, "gamma": 2, "rare": 3}
UNWEIGHTED = ("generalized_entropy", "theil", "coefficient_of_variation", "consistency", "rich_subgroup")
"""What reads no weights in AIF360; we are asked without."""
OUT_OF_SCOPE = {
    "sklearn.mdss_bias_score": "a score of one given subset; `subgroup_search` looks for subsets",
}
EVERY = records("aif360")
RECORDS = [record for record in EVERY if record["function"] not in OUT_OF_SCOPE and "case" not in record["params"]]
BY_ID = {record["id"]: record for record in RECORDS}


@cache
def data(name: str) -> pl.DataFrame:
    return reference_data(name).with_columns(race_code=pl.col("race").replace_strict(CODES, return_dtype=pl.Int64))


@dataclass(frozen=True)
class Call:
    """One call of ours: everything but the metrics."""

    data: str
    truth: str
    estimate: str | None
    weights: str | None
    sides: tf.types.Privileged | None = None


@dataclass(frozen=True)
class Question:
    """A record in our words."""

    call: Call
    metric: Any
    side: bool | None = None


def sides_of(params: dict[str, Any]) -> tf.types.Privileged | None:
    if params.get("privileged_groups"):
        return tf.privileged(*params["privileged_groups"], unprivileged=params["unprivileged_groups"])
    if params.get("priv_group") is None:
        return None
    return tf.privileged(dict(zip(listed(params["prot_attr"]), listed(params["priv_group"]), strict=True)))


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def groups_of(params: dict[str, Any], name: str) -> list[dict[str, Any]]:
    keys = listed(params["prot_attr"])
    return data(name).select(keys).unique().sort(keys).to_dicts()


def ask(record: dict[str, Any]) -> Question:
    params, (kind, _, function) = record["params"], record["function"].partition(".")
    truth, estimate = params.get("y_true", "y_true"), params.get("y_pred", "y_pred") or params.get("y_true", "y_true")
    if kind == "BinaryLabelDatasetMetric":
        truth = estimate = params["labels"]
    elif "consistency" in function:
        estimate = params.get("y", "y_true")
    if function == "kl_divergence":
        truth = estimate
    if function == "smoothed_empirical_differential_fairness":
        estimate = None
    sides, scored = sides_of(params), params.get("predictions") == "tuple(score)"
    rates = {
        ("FP", False): tf.fall_out, ("FP", True): tf.calibration.balance_for_negative_class,
        ("FN", False): tf.miss_rate, ("FN", True): tf.counts.generalized_false_negative_rate,
    }  # fmt: skip
    attributes = params.get("protected_attribute_names") or listed(params.get("prot_attr"))
    named = params.get("metric_fun") or params.get("func")
    metric = getattr(tf, named.removeprefix("sklearn.metrics.").removesuffix("_score"), None) if named else None
    given: dict[str, Any] = {
        "sides": sides, "attributes": attributes, "alpha": params.get("alpha"),
        "concentration": params.get("concentration"), "n_neighbors": params.get("n_neighbors"),
        "features": params.get("features") or params.get("X"), "rate": rates.get((params.get("fairness_def"), scored)),
        "metric": metric, "by": [sides] if sides else attributes,
        "groups": groups_of(params, record["data"]) if function == "one_vs_rest" else None,
    }  # fmt: skip
    row = page.ROWS[kind][function]
    metric = row(**{name: given[name] for name in inspect.signature(row).parameters})
    weighted = not any(part in function for part in UNWEIGHTED)
    weights = params.get("instance_weights") or params.get("sample_weight")
    side = params.get("privileged")
    call = Call(record["data"], truth, estimate, weights if weighted else None, sides if side is not None else None)
    return Question(call, metric, side)


@cache
def questions() -> dict[str, Question]:
    """All records in our words, by their number."""
    return {record["id"]: ask(record) for record in RECORDS}


@cache
def together() -> dict[Call, list[Any]]:
    """The metrics that are asked of the same call."""
    metrics: dict[Call, list[Any]] = {}
    for question in questions().values():
        if isinstance(question.metric, (tf.types.Metric, tf.types.GroupwiseMetric, tf.types.MetricSet)):
            asked = metrics.setdefault(question.call, [])
            members = list(question.metric) if isinstance(question.metric, tf.types.MetricSet) else [question.metric]
            asked += [member for member in members if member not in asked]
    return metrics


@cache
def answers(call: Call) -> pl.DataFrame:
    """The numbers of all metrics that are asked of one call, in one pass; `.metric` is the place of each."""
    metrics = [replace(member, name=str(index)) for index, member in enumerate(together()[call])]
    return tf.metric_set(*metrics)(
        data(call.data), call.truth, call.estimate, probs="score", case_weights=call.weights, group_by=call.sides,
        on_undefined="ignore", explain=True,
    )  # fmt: skip


def value(call: Call, metric: Any, *, side: bool | None = None) -> float | None:
    rows = answers(call).filter(pl.col(".metric") == str(together()[call].index(metric)))
    if side is not None:
        rows = rows.filter(side="privileged" if side else "unprivileged")
    return rows[".estimate"].item()


def ours(record: dict[str, Any]) -> Any:
    """Our answer in the shape of AIF360's."""
    question, theirs = questions()[record["id"]], record["value"]
    call, metric = question.call, question.metric
    if isinstance(metric, tf.inference.LinearSubgroup):
        scored: Any = {"probs": "score"} if metric.metric.kind == "prob" else {"estimate": call.estimate}
        result = metric(data(call.data), call.truth, **scored)
        return result[".violation"].max()
    if record["function"] == "sklearn.intersection":
        result = metric.by_group(
            data(call.data), call.truth, call.estimate, case_weights=call.weights, on_undefined="ignore"
        )
        return dict(result.select(".group", ".estimate").rows())
    if isinstance(metric, tf.types.MetricSet):
        values = [value(call, member, side=question.side) for member in metric]
        if isinstance(theirs, dict):
            return dict(zip(theirs, values, strict=True))
        groups = groups_of(record["params"], record["data"])
        return {":".join(map(str, group.values())): item for group, item in zip(groups, values, strict=True)}
    return value(call, metric, side=question.side)


def number(theirs: Any) -> float | None:
    result = float(theirs)
    return None if math.isnan(result) else result


def theirs_of(record: dict[str, Any]) -> Any:
    theirs = record["value"]
    if isinstance(theirs, dict):
        return {name: number(item) for name, item in theirs.items()}
    if isinstance(theirs, list):
        return {":".join(map(str, listed(item["group"]))): number(item["value"]) for item in theirs}
    return number(theirs)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if one is None or other is None:
        return one is other
    return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


# AIF360's rules, applied to our values


def by_side(record: dict[str, Any], *metrics: tf.types.Metric) -> dict[str, list[tuple[float | None, int]]]:
    """The values of both sides, and the rows they are about, as unprivileged, privileged, neither."""
    call = questions()[record["id"]].call
    sides, keys = sides_of(record["params"]), record["params"].get("protected_attribute_names")
    every_group = any(part in record["function"] for part in ("all_groups", "smoothed", "amplification"))
    by = [sides] if sides and not every_group else keys or listed(record["params"]["prot_attr"])
    together = tf.new_groupwise_metric(tf.metric_set(*metrics), "together", tf.difference())(*by)
    rows = together.by_group(
        data(call.data), call.truth, call.estimate, probs="score", case_weights=call.weights, on_undefined="ignore"
    )
    order = pl.col(".group").cast(pl.Enum(["unprivileged", "privileged", "neither"]), strict=False)
    result: dict[str, list[tuple[float | None, int]]] = {}
    for name, value, size in rows.sort(order).select(".metric", ".estimate", ".n").rows():
        result.setdefault(name, []).append((value, size))
    return result


def between(record: dict[str, Any]) -> float:
    """Its index between groups: rows on neither side have no benefit, and alpha 0 is divided by the mean once more."""
    (sides,) = by_side(record, tf.inequality.mean_benefit).values()
    size = sum(count for _, count in sides)
    mean = sum((value or 0) * count for value, count in sides) / size
    shares = [((value or 0) / mean, count / size) for value, count in sides]
    function = record["function"]
    variation = "coefficient" in function
    alpha = record["params"].get("alpha", 1 if "theil" in function else 2)
    if alpha == 0:
        return math.inf if any(u == 0 for u, _ in shares) else -sum(math.log(u) * share for u, share in shares) / mean
    if alpha == 1:
        return sum(u * math.log(u) * share for u, share in shares if u)
    index = sum((u**alpha - 1) * share for u, share in shares) / (alpha * (alpha - 1))
    return math.sqrt(2 * index) if variation else index


def zero_for_undefined(record: dict[str, Any]) -> Any:
    """Its rates, of which some are 0 where they have no denominator, and what it makes of them."""
    function, mine = record["function"].partition(".")[2], ours(record)
    if isinstance(mine, dict):
        return mine | {name: 0.0 for name in ("PPV", "NPV", "FDR", "FOR", "ACC") if mine[name] is None}
    if record["params"].get("privileged") is not None:
        return 0.0
    named = {"average_predictive_value_difference": ("precision", "false_omission_rate")}.get(function)
    named = named or (record["params"].get("metric_fun") or function.rpartition("_")[0],)
    sides = by_side(record, *(public(name) for name in named)).values()
    pairs = [(item[0][0] or 0.0, item[1][0] or 0.0) for item in sides]
    if function.endswith("ratio"):
        return pairs[0][0] / pairs[0][1]
    return sum(one - other for one, other in pairs) / len(pairs)


def smoothed_by_its_own(record: dict[str, Any]) -> float:
    """Its smoothed shares, which read weights as numbers of rows.

    The `sklearn` functions spread the concentration over the labels that a group has, one or two.
    """
    function, call = record["function"], questions()[record["id"]].call
    concentration = record["params"].get("concentration", 1)

    def smoothed(yes: float, no: float) -> float:
        labels = (yes > 0) + (no > 0) if function.startswith("sklearn.") else 2
        return (yes + concentration / labels) / (yes + no + concentration)

    def distance(positives: tf.types.Metric, negatives: tf.types.Metric) -> float:
        counts = by_side(record, positives, negatives)
        pairs = [[value or 0.0 for value, _ in counts[metric.name]] for metric in (positives, negatives)]
        shares = [smoothed(yes, no) for yes, no in zip(*pairs, strict=True)]
        return max(log_range(shares), log_range([1 - share for share in shares]))

    truths, predictions = (
        (tf.counts.positives, tf.counts.negatives),
        (tf.counts.predicted_positives, tf.counts.predicted_negatives),
    )
    if function.endswith("_rate"):
        counted = truths if "base_rate" in function else predictions
        frame = data(call.data), call.truth, call.estimate
        yes, no = (metric(*frame, case_weights=call.weights)[".estimate"].item() for metric in counted)
        return smoothed(yes, no)
    if call.estimate is None or call.estimate == call.truth:
        return distance(*truths)
    return distance(*predictions) - (distance(*truths) if "amplification" in function else 0.0)


def log_range(shares: list[float]) -> float:
    return math.inf if min(shares) <= 0 < max(shares) else math.log(max(shares)) - math.log(min(shares))


RULES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "between": between,
    "smoothed_by_labels_seen": smoothed_by_its_own,
    "smoothed_by_weight": smoothed_by_its_own,
    "zero_for_undefined": zero_for_undefined,
}


@cache
def deviation(identifier: str) -> str | None:
    """The rule by which AIF360 has another number in a record."""
    record = BY_ID[identifier]
    function, mine = record["function"], ours(record)
    if same(mine, theirs_of(record)):
        return None
    if "between" in function:
        return "between"
    if "smoothed" in function or "amplification" in function:
        return "smoothed_by_weight" if questions()[record["id"]].call.weights else "smoothed_by_labels_seen"
    return "zero_for_undefined"


@pytest.mark.parametrize("function", sorted({record["function"] for record in RECORDS}))
def test_records_are_reproduced(function: str) -> None:
    check_every({record["id"]: record for record in RECORDS if record["function"] == function}, check_record)


def check_record(record: dict[str, Any]) -> None:
    rule, theirs = deviation(record["id"]), theirs_of(record)
    if rule is not None:
        assert same(RULES[rule](record), theirs)


def test_deviations_match_the_table() -> None:
    result = Counter(rule for record in RECORDS if (rule := deviation(record["id"])))
    assert result == deviations("aif360")


def test_infinite_values_have_status_infinite() -> None:
    endless = [item for item in RECORDS if deviation(item["id"]) is None and theirs_of(item) in (math.inf, -math.inf)]
    for record in endless:
        question = questions()[record["id"]]
        row = answers(question.call).filter(pl.col(".metric") == str(together()[question.call].index(question.metric)))
        assert row[".status"].to_list() == ["infinite"], record["id"]
    assert Counter(record["function"].partition(".")[2] for record in endless) == {
        "generalized_entropy_index": 20,
        "generalized_entropy_error": 3,
        "smoothed_empirical_differential_fairness": 13,
        "differential_fairness_bias_amplification": 6,
    }


@pytest.mark.parametrize(
    "index",
    [tf.inequality.theil_index, tf.inequality.between_group_theil_index("sex"), tf.inequality.consistency(["x1"])],
)
def test_inequality_indices_use_weights(index: Any) -> None:
    frame = data("a400_weighted")
    plain, weighted = (index(frame, "y_true", "y_pred", case_weights=item)[".estimate"][0] for item in (None, "weight"))
    assert abs(plain - weighted) > 1e-6


def test_invalid_sides_raise_or_warn() -> None:
    frame = data("a400_weighted")

    def of(**sides: Any) -> Any:
        return tf.disparate_impact(tf.privileged({"sex": 1}, **sides))(frame, "y_true", "y_pred")

    with pytest.raises(tf.errors.ArgumentError, match="on both sides"):
        of(unprivileged={"sex": 1})
    with pytest.warns(tf.errors.UndefinedWarning, match="never 7"):
        assert of(unprivileged={"sex": 7})[".estimate"].item() is None  # AIF360: nan
    with pytest.raises(tf.errors.ArgumentError, match="`concentration`"):
        tf.differential_fairness("sex", concentration=-1)(frame, "y_true", "y_pred")
    with pytest.raises(tf.errors.AggregateError, match="has no sign"):
        tf.average_odds_difference("sex")
    cases = [record["params"]["case"] for record in EVERY if "case" in record["params"]]
    assert len(cases) == 10  # the rest is about AIF360's own classes and arguments


def test_every_function_has_a_row_on_the_page() -> None:
    functions = {record["function"] for record in EVERY} - {"ClassificationMetric.__init__", *OUT_OF_SCOPE}
    assert functions == {f"{kind}.{name}" for kind, rows in page.ROWS.items() for name in rows}

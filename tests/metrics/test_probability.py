"""Metrics of scores equal scikit-learn, scipy or plain arithmetic by group, with ties, weights and missing values."""

from __future__ import annotations

import itertools
import math
import re
import time
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import polars as pl
import pytest
from conftest import as_polars, examples
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from plain_limits import wilson
from public_names import public
from scipy import stats
from sklearn import linear_model, metrics

import tidyfair as tf
from tidyfair.metrics import inequality
from tidyfair.metrics.other_names import places

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LAW = settings(
    deadline=None,
    max_examples=examples(10),
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)


# Data


class Part(NamedTuple):
    """What counts of a group: rows with truth, score and a weight above zero."""

    y: list[int]
    p: list[float]
    w: list[float]


@dataclass(frozen=True)
class Case:
    rows: list[dict[str, Any]]
    weighted: bool

    @property
    def frame(self) -> pl.DataFrame:
        schema = {"truth": pl.Int64, "score": pl.Float64, "group": pl.String, "outer": pl.Int64, "weight": pl.Float64}
        return pl.DataFrame(self.rows, schema=schema)

    @property
    def counting(self) -> dict[str, Any]:
        return {"probs": "score", **({"case_weights": "weight"} if self.weighted else {})}

    def part(self, *groups: str, needs: tuple[str, ...] = ("truth", "score")) -> Part:
        kept = [
            (row["truth"], row["score"], row["weight"] if self.weighted else 1.0)
            for row in self.rows
            if row["group"] in groups and all(row[name] is not None for name in needs)
        ]
        kept = [row for row in kept if row[2] > 0]
        return Part(*(list(column) for column in zip(*kept, strict=True))) if kept else Part([], [], [])

    @property
    def groups(self) -> list[str]:
        return sorted({row["group"] for row in self.rows})


COARSE = st.integers(0, 10).map(lambda k: k / 10)
FREE = st.floats(0, 1).map(lambda p: p + 0.0)
INNER = st.one_of(st.integers(1, 9).map(lambda k: k / 10), st.floats(0.001, 0.999))


@st.composite
def cases(draw: st.DrawFn, *, scores: st.SearchStrategy[float] | None = None, most: int = 40, least: int = 1) -> Case:
    score = draw(st.sampled_from([COARSE, FREE])) if scores is None else scores
    gaps = [st.none()] if draw(st.booleans()) else []
    weighted = draw(st.booleans())
    row = st.fixed_dictionaries(
        {
            "truth": st.one_of(st.integers(0, 1), *gaps),
            "score": st.one_of(score, *gaps),
            "group": st.sampled_from("abc"),
            "outer": st.sampled_from([1, 2]),
            "weight": st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.0, 2.0, 3.0]),
        }
    )
    rows = draw(st.lists(row, min_size=least, max_size=most))
    if weighted and not any(row["weight"] for row in rows):
        weighted = False  # weights that are all zero are an error
    return Case(rows, weighted)


# Values of groups


def close(result: float | None, expected: float | None, tolerance: float = 1e-9) -> bool:
    if result is None or expected is None:
        return result is expected
    return math.isclose(result, expected, rel_tol=tolerance, abs_tol=1e-12)


Values = dict[str, tuple[float | None, str]]


def values(results: pl.DataFrame, key: str) -> Values:
    pairs = zip(results[".estimate"], results[".status"], strict=True)
    return dict(zip(results[key].to_list(), pairs, strict=True))


def compared_and_parted(metric: tf.types.Metric, case: Case) -> Values:
    """The values of the groups of a disparity, which are those of the same groups as parts of the data."""
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("group")
    compared = values(gap.by_group(case.frame, "truth", **case.counting), ".group")
    parted = values(metric.by_group(case.frame, "truth", group_by="group", **case.counting), "group")
    assert list(compared) == list(parted) == case.groups
    for group, (value, status) in compared.items():
        assert close(value, parted[group][0])
        assert status == parted[group][1]
    return compared


def assert_equals(metric: tf.types.Metric, case: Case, reference: Callable[[Part], float | None], status: str) -> None:
    for group, (value, state) in compared_and_parted(metric, case).items():
        expected = reference(case.part(group))
        assert close(value, expected), (group, value, expected)
        assert state == (status if expected is None else "infinite" if math.isinf(expected) else "ok") or (
            # without any row there is nothing to say but that
            state == "zero_denominator" and not Case(case.rows, weighted=False).part(group).y
        )


def mean(values: Sequence[float], weights: Sequence[float]) -> float | None:
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights) if sum(weights) else None


def both_classes(part: Part) -> bool:
    return set(part.y) == {0, 1}


# References


def roc_auc(part: Part) -> float | None:
    return metrics.roc_auc_score(part.y, part.p, sample_weight=part.w) if both_classes(part) else None


def average_precision(part: Part) -> float | None:
    return metrics.average_precision_score(part.y, part.p, sample_weight=part.w) if 1 in part.y else None


def pr_auc(part: Part) -> float | None:
    if 1 not in part.y:
        return None
    rows = list(zip(*part, strict=True))
    events = sum(w for y, _, w in rows if y)
    area, recall, precision = 0.0, 0.0, 1.0
    for cut in sorted({*part.p}, reverse=True):
        hits = sum(w for y, p, w in rows if y and p >= cut)
        now = hits / events, hits / sum(w for _, p, w in rows if p >= cut)
        area += (now[0] - recall) * (now[1] + precision) / 2
        recall, precision = now
    return area


def log_loss(part: Part) -> float | None:
    return metrics.log_loss(part.y, part.p, sample_weight=part.w, labels=[0, 1]) if part.y else None


def brier(part: Part) -> float | None:
    if not part.y:
        return None
    return metrics.brier_score_loss(part.y, part.p, sample_weight=part.w, labels=[0, 1], pos_label=1)


AGAINST_SKLEARN: dict[str, tuple[tf.types.Metric, Callable[[Part], float | None], str]] = {
    "roc_auc": (tf.roc_auc, roc_auc, "one_class"),
    "average_precision": (tf.average_precision, average_precision, "no_events"),
    "pr_auc": (tf.pr_auc, pr_auc, "no_events"),
    "mn_log_loss": (tf.mn_log_loss, log_loss, "zero_denominator"),
    "brier_class": (tf.brier_class, brier, "zero_denominator"),
    "gain_capture": (
        tf.gain_capture,
        lambda part: None if (auc := roc_auc(part)) is None else 2 * auc - 1,
        "one_class",
    ),
}


@pytest.mark.parametrize("name", AGAINST_SKLEARN)
@LAW
@given(case=cases())
def test_group_values_equal_scikit_learn(name: str, case: Case) -> None:
    assert_equals(AGAINST_SKLEARN[name][0], case, *AGAINST_SKLEARN[name][1:])


ONE_CLASS = pl.DataFrame(
    {
        "truth": [1, 0, 1, 1, 1, 0, 0, None],
        "score": [0.9, 0.4, 0.4, 0.3, 0.5, 0.2, 0.6, 0.7],
        "group": ["both", "both", "both", "events", "events", "none", "none", "none"],
    }
)


@pytest.mark.parametrize(
    ("metric", "status", "without"),
    [
        (tf.roc_auc, "one_class", ["events", "none"]),
        (tf.gain_capture, "one_class", ["events", "none"]),
        (tf.average_precision, "no_events", ["none"]),
        (tf.pr_auc, "no_events", ["none"]),
        (tf.calibration.balance_for_positive_class, "zero_denominator", ["none"]),
        (tf.calibration.balance_for_negative_class, "zero_denominator", ["events"]),
    ],
    ids=lambda item: item.name if isinstance(item, tf.types.Metric) else None,
)
def test_one_class_group_is_null_and_named_in_the_warning(
    metric: tf.types.Metric, status: str, without: list[str]
) -> None:
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("group")
    result = values(gap.by_group(ONE_CLASS, "truth", probs="score"), ".group")
    assert {group for group, (value, _) in result.items() if value is None} == {*without}
    assert {result[group][1] for group in without} == {status}
    reason = status.replace("_", " ")
    for call, text in ((gap, "group {!r}"), (metric, "(group={!r})")):
        outer: dict[str, Any] = {} if call is gap else {"group_by": "group"}
        with pytest.warns(tf.errors.UndefinedWarning) as caught:
            results = call(ONE_CLASS, "truth", probs="score", **outer)
        assert len(caught) == 1
        message = str(caught[0].message)
        assert message.startswith(f"{metric.name} has no value ({reason})")
        assert all((text.format(group) in message) == (group in without) for group in ("both", "events", "none"))
        assert results[".estimate"].null_count() == (len(without) if outer else int(len(without) > 1))


# More than two labels


LABELS = ["low", "mid", "high"]
PROBS = {label: f"p_{label}" for label in LABELS}


class Many(NamedTuple):
    truth: np.ndarray[Any, Any]
    probs: np.ndarray[Any, Any]
    weight: np.ndarray[Any, Any]


@st.composite
def many(draw: st.DrawFn) -> tuple[pl.DataFrame, bool]:
    """Rows of three labels and their probabilities; every label is true somewhere in the only complete group."""
    weighted = draw(st.booleans())
    parts = st.tuples(*[st.integers(0, 4)] * 3).filter(any)
    row = st.fixed_dictionaries(
        {
            "truth": st.sampled_from([*LABELS, None]),
            "parts": parts,
            "weight": st.sampled_from([0.0, 0.5, 1.0, 3.0] if weighted else [1.0]),
            "group": st.sampled_from("ab"),
        }
    )
    rows: list[dict[str, Any]] = draw(st.lists(cast("Any", row), max_size=25))
    rows += [{"truth": label, "parts": draw(parts), "weight": 1.0, "group": "a"} for label in LABELS]
    columns = {
        column: [row["parts"][index] / sum(row["parts"]) for row in rows] for index, column in enumerate(PROBS.values())
    }
    plain = {name: [row[name] for row in rows] for name in ("truth", "weight", "group")}
    return pl.DataFrame(plain | columns), weighted


def many_parts(data: pl.DataFrame) -> dict[str, Many]:
    kept = data.filter(pl.col("truth").is_not_null(), pl.col("weight") > 0)
    return {
        str(group): Many(
            np.array([LABELS.index(item) for item in part["truth"]]),
            part.select(PROBS.values()).to_numpy(),
            part["weight"].to_numpy(),
        )
        for (group,), part in kept.group_by("group")
    }


def assert_many(
    metric: tf.types.Metric,
    drawn: tuple[pl.DataFrame, bool],
    reference: Callable[[Many], float],
    *,
    complete: bool = False,
    **options: Any,
) -> None:
    data, weighted = drawn
    counting: dict[str, Any] = {
        "probs": PROBS,
        "labels": LABELS,
        **({"case_weights": "weight"} if weighted else {}),
        **options,
    }
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("group")
    compared = values(gap.by_group(data, "truth", **counting), ".group")
    parted = values(metric.by_group(data, "truth", group_by="group", **counting), "group")
    for group, part in many_parts(data).items():
        if complete and len({*part.truth}) < len(LABELS):
            continue
        for result in (compared, parted):
            assert close(result[group][0], reference(part)), group
            assert result[group][1] == "ok"


def hand_till(part: Many) -> float:
    """The mean over pairs of labels, both ways; scikit-learn has it without weights only."""
    areas: list[float] = []
    for one, other in itertools.permutations(range(3), 2):
        kept = np.isin(part.truth, [one, other])
        areas.append(
            metrics.roc_auc_score(part.truth[kept] == one, part.probs[kept, one], sample_weight=part.weight[kept])
        )
    return sum(areas) / len(areas)


@LAW
@given(many())
def test_multiclass_roc_auc_equals_hand_till(drawn: tuple[pl.DataFrame, bool]) -> None:
    def sklearn(part: Many) -> float:
        return metrics.roc_auc_score(part.truth, part.probs, multi_class="ovo", average="macro")

    assert_many(tf.roc_auc, drawn, hand_till, complete=True)
    assert_many(tf.roc_auc, drawn, hand_till, complete=True, estimator="hand_till")
    equal = drawn[0].filter(pl.col("weight") > 0).with_columns(weight=1.0)
    assert_many(tf.roc_auc, (equal, False), sklearn, complete=True)


@pytest.mark.parametrize(("estimator", "average"), [("macro", "macro"), ("macro_weighted", "weighted")])
@LAW
@given(drawn=many())
def test_one_vs_rest_roc_auc_equals_scikit_learn(
    estimator: str, average: str, drawn: tuple[pl.DataFrame, bool]
) -> None:
    def sklearn(part: Many) -> float:
        return metrics.roc_auc_score(
            part.truth, part.probs, multi_class="ovr", average=average, sample_weight=part.weight
        )

    assert_many(tf.roc_auc, drawn, sklearn, complete=True, estimator=estimator)
    own = tf.roc_aunu if estimator == "macro" else tf.roc_aunp
    assert_many(own, drawn, sklearn, complete=True)


def one_hot(part: Many) -> np.ndarray[Any, Any]:
    return np.eye(3)[part.truth]


@LAW
@given(many())
def test_multiclass_probability_metrics_equal_formulas(drawn: tuple[pl.DataFrame, bool]) -> None:
    def average(rows: np.ndarray[Any, Any], part: Many) -> float:
        return float((rows * part.weight).sum() / part.weight.sum())

    def halved(part: Many) -> float:
        return average(((part.probs - one_hot(part)) ** 2).sum(axis=1) / 2, part)

    def ranked(part: Many) -> float:
        gaps = np.cumsum(part.probs, axis=1)[:, :2] - np.cumsum(one_hot(part), axis=1)[:, :2]
        return average((gaps**2).sum(axis=1) / 2, part)

    assert_many(
        tf.mn_log_loss,
        drawn,
        lambda part: metrics.log_loss(part.truth, part.probs, sample_weight=part.weight, labels=range(3)),
    )
    assert_many(tf.brier_class, drawn, halved)
    assert_many(tf.ranked_prob_score, drawn, ranked)
    assert_many(tf.classification_cost, drawn, lambda part: average(1 - (part.probs * one_hot(part)).sum(axis=1), part))


# Calibration on average


def sums(part: Part) -> tuple[float, float, float, float, float]:
    rows = list(zip(*part, strict=True))
    positives, negatives = (sum(w for y, _, w in rows if y == side) for side in (1, 0))
    ones, zeros = (sum(w * p for y, p, w in rows if y == side) for side in (1, 0))
    return positives, negatives, ones, zeros, positives + negatives


def quotient(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


ARITHMETIC: dict[str, Callable[[float, float, float, float, float], float | None]] = {
    "balance_for_positive_class": lambda pos, _neg, ones, _zeros, _n: quotient(ones, pos),
    "generalized_false_negative_rate": lambda pos, _neg, ones, _zeros, _n: quotient(pos - ones, pos),
    "balance_for_negative_class": lambda _pos, neg, _ones, zeros, _n: quotient(zeros, neg),
    "generalized_true_negative_rate": lambda _pos, neg, _ones, zeros, _n: quotient(neg - zeros, neg),
    "generalized_true_positives": lambda _pos, _neg, ones, _zeros, _n: ones,
    "generalized_false_positives": lambda _pos, _neg, _ones, zeros, _n: zeros,
    "generalized_false_negatives": lambda pos, _neg, ones, _zeros, _n: pos - ones,
    "generalized_true_negatives": lambda _pos, neg, _ones, zeros, _n: neg - zeros,
    "calibration_in_the_large": lambda pos, _neg, ones, zeros, n: quotient(ones + zeros - pos, n),
    "calibration_ratio": lambda pos, _neg, ones, zeros, _n: quotient(pos, ones + zeros),
}


def test_calibration_in_the_large_and_residual_bias_have_one_sign() -> None:
    data = pl.DataFrame({"y": [1, 0, 0, 0], "p": [0.9, 0.5, 0.4, 0.2]})
    too_high = tf.calibration.in_the_large(data, "y", probs="p")[".estimate"].item()
    assert too_high == pytest.approx(0.25)
    numbers = tf.residual_bias(data.cast(pl.Float64), "y", "p")[".estimate"].item()
    assert numbers == pytest.approx(too_high)


@pytest.mark.parametrize("name", ARITHMETIC)
@LAW
@given(case=cases())
def test_score_metrics_equal_plain_arithmetic(name: str, case: Case) -> None:
    assert_equals(public(name), case, lambda part: ARITHMETIC[name](*sums(part)), "zero_denominator")


@LAW
@given(cases())
def test_mean_score_needs_no_truth(case: Case) -> None:
    result = tf.mean_score.by_group(case.frame, group_by="group", **case.counting, pos_label=1)
    without = Case([{**row, "truth": 1} for row in case.rows], case.weighted)
    for group, (value, _) in values(result, "group").items():
        part = without.part(group)
        assert close(value, mean(part.p, part.w))


@LAW
@given(cases(), st.sampled_from([None, {(1, 0): 5.0, (0, 1): 0.5}, {(1, 1): -0.25, (0, 1): 2.0}]))
def test_classification_cost_equals_plain_arithmetic(case: Case, costs: dict[tuple[int, int], float] | None) -> None:
    table = {(1, 0): 1.0, (0, 1): 1.0} if costs is None else costs

    def expected(part: Part) -> float | None:
        values = [
            p * table.get((y, 1), 0.0) + (1 - p) * table.get((y, 0), 0.0) for y, p in zip(part.y, part.p, strict=True)
        ]
        return mean(values, part.w)

    metric = tf.metric_tweak(tf.classification_cost, "cost", costs=costs)
    assert_equals(metric, case, expected, "zero_denominator")


# Calibration in bins


TWENTIETHS = st.integers(0, 20).map(lambda k: k / 20)


def in_bins(part: Part, bins: int, share: Callable[[Fraction], Fraction], *, upper: bool) -> dict[int, Part]:
    """The rows of each bin; a share on an edge belongs to the bin above it, or with `upper` to that which it ends."""
    result: dict[int, Part] = {}
    for y, p, w in zip(*part, strict=True):
        reach = share(Fraction(round(p * 20), 20)) * bins
        index = math.ceil(reach) - 1 if upper else math.floor(reach)
        mine = result.setdefault(min(max(index, 0), bins - 1), Part([], [], []))
        mine.y.append(y)
        mine.p.append(p)
        mine.w.append(w)
    return result


def share_at_or_below(part: Part) -> Callable[[Fraction], Fraction]:
    weights = [(Fraction(round(p * 20), 20), Fraction(round(w * 10), 10)) for p, w in zip(part.p, part.w, strict=True)]
    return lambda score: sum((w for p, w in weights if p <= score), Fraction(0)) / sum(w for _, w in weights)


def share_of_range(part: Part) -> Callable[[Fraction], Fraction]:
    scores = [Fraction(round(p * 20), 20) for p in part.p]
    low, wide = min(scores), max(scores) - min(scores)
    return lambda score: (score - low) / wide if wide else Fraction(0)


def binned_error(bins: dict[int, Part]) -> float | None:
    total = sum(sum(part.w) for part in bins.values())
    gaps = [abs(sum(w * (y - p) for y, p, w in zip(*part, strict=True))) for part in bins.values()]
    return sum(gaps) / total if total else None


@pytest.mark.parametrize("binning", ["width", "count"])
@pytest.mark.parametrize("edges", ["common", "own"])
@LAW
@given(case=cases(scores=TWENTIETHS), bins=st.sampled_from([1, 3, 5, 10, 20]))
def test_expected_calibration_error_equals_plain_arithmetic(binning: str, edges: str, case: Case, bins: int) -> None:
    metric = tf.metric_tweak(tf.calibration.error, "error", bins=bins, binning=binning, edges=edges)
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("group")
    everybody = case.part(*case.groups)
    compared = values(gap.by_group(case.frame, "truth", **case.counting), ".group")
    parted = values(metric.by_group(case.frame, "truth", group_by="group", **case.counting), "group")
    for group in case.groups:
        part = case.part(group)
        for result, whose in ((compared, everybody), (parted, part)):
            seen = whose if edges == "common" else part
            share: Callable[[Fraction], Fraction] = lambda score: score  # noqa: E731 - one of three
            if part.y and binning == "count":
                share = share_at_or_below(seen)
            elif part.y and edges == "own":
                share = share_of_range(seen)
            expected = binned_error(in_bins(part, bins, share, upper=binning == "count"))
            assert close(result[group][0], expected), (group, result[group], expected)


@LAW
@given(cases(scores=TWENTIETHS), st.sampled_from([1, 4, 10]), st.sampled_from(["width", "count"]))
def test_calibration_curve_equals_plain_arithmetic(case: Case, bins: int, binning: Any) -> None:
    curve = tf.calibration.curve(case.frame, "truth", group_by="group", bins=bins, binning=binning, **case.counting)
    expected: list[tuple[Any, ...]] = []
    for group in case.groups:
        part = case.part(group)
        share = share_at_or_below(part) if binning == "count" else lambda score: score
        for index, mine in sorted(in_bins(part, bins, share, upper=binning == "count").items()):
            rate = cast("float", mean([*map(float, mine.y)], mine.w))
            weight = [sum(mine.w)] if case.weighted else []
            limits = (math.nan, math.nan) if case.weighted else wilson(rate * len(mine.y), len(mine.y))
            expected.append((group, index + 1, mean(mine.p, mine.w), rate, *limits, len(mine.y), *weight))
    columns = ["group", ".bin", ".mean_score", ".event_rate", ".lower", ".upper", ".n"]
    assert curve.columns == ([*columns, ".weight"] if case.weighted else columns)
    assert curve.schema[".n"] == pl.Int64
    assert [row[:2] for row in curve.rows()] == [row[:2] for row in expected]
    numbers = curve.fill_null(math.nan).rows()
    for result, wanted in zip(numbers, expected, strict=True):
        assert result[2:] == pytest.approx(wanted[2:], rel=1e-9, abs=1e-12, nan_ok=True)


# Calibration as a line


def logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)


def why_no_line(part: Part) -> str | None:
    if not part.y:
        return "zero_denominator"
    if any(p in (0.0, 1.0) for p in part.p):
        return "scores_of_0_or_1"
    if not both_classes(part):
        return "one_class"
    if len({*part.p}) == 1:
        return "constant"
    ones, zeros = ([p for y, p in zip(part.y, part.p, strict=True) if y == side] for side in (1, 0))
    return "separation" if min(ones) >= max(zeros) or max(ones) <= min(zeros) else None


@LAW
@given(cases(scores=st.one_of(INNER, INNER, st.sampled_from([0.0, 1.0])), most=60, least=10))
def test_status_of_undefined_calibration_slope_gives_the_reason(case: Case) -> None:
    for metric in (tf.calibration.slope, tf.calibration.intercept):
        for group, (value, status) in compared_and_parted(metric, case).items():
            reason = why_no_line(case.part(group))
            assert (value is None) == (reason is not None)
            assert status == (reason or "ok")


@pytest.mark.parametrize("reason", ["scores_of_0_or_1", "one_class", "constant", "separation"])
def test_reasons_for_undefined_calibration_slope(reason: str) -> None:
    y, p = {
        "scores_of_0_or_1": ([1, 0, 1, 0], [1.0, 0.5, 0.2, 0.3]),
        "one_class": ([1, 1, 1], [0.2, 0.5, 0.9]),
        "constant": ([1, 0, 1], [0.5, 0.5, 0.5]),
        "separation": ([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.9]),
    }[reason]
    data = pl.DataFrame({"truth": y, "score": p})
    with pytest.warns(tf.errors.UndefinedWarning, match=reason.replace("_", " ")):
        result = tf.calibration.slope(data, "truth", probs="score", explain=True)
    assert result.select(".estimate", ".status").row(0) == (None, reason)


@LAW
@given(cases(scores=INNER, most=60, least=20))
def test_calibration_slope_and_intercept_equal_logistic_regression(case: Case) -> None:
    slopes = compared_and_parted(tf.calibration.slope, case)
    intercepts = compared_and_parted(tf.calibration.intercept, case)
    for group in case.groups:
        part = case.part(group)
        if why_no_line(part):
            continue
        slope, intercept = slopes[group][0], intercepts[group][0]
        assert slope is not None
        assert intercept is not None
        x, y, w = np.array([logit(p) for p in part.p]), np.array(part.y), np.array(part.w)
        # at the maximum of the likelihood residuals go with nothing
        left = w * (y - 1 / (1 + np.exp(-(intercept + slope * x))))
        assert abs(left.sum()) < 1e-7 * w.sum()
        assert abs((left * (x - x.mean())).sum()) < 1e-7 * (w * abs(x - x.mean())).sum()
        fitted: Any = linear_model.LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it grumbles where it cannot improve any more
            fitted.fit(x[:, None], y, sample_weight=w)
        if fitted.n_iter_[0] < 10_000 and abs(slope) < 50:
            assert slope == pytest.approx(fitted.coef_[0, 0], rel=1e-5, abs=1e-6)
            assert intercept == pytest.approx(fitted.intercept_[0], rel=1e-5, abs=1e-6)


@LAW
@given(cases(scores=INNER))
def test_intercept_with_unit_slope_balances_the_mean(case: Case) -> None:
    given_slope = tf.metric_tweak(tf.calibration.intercept, "given_slope", slope="one")
    for group, (value, _) in compared_and_parted(given_slope, case).items():
        part = case.part(group)
        if not both_classes(part):
            assert value is None
            continue
        assert value is not None
        shifted = [1 / (1 + math.exp(-(logit(p) + value))) for p in part.p]
        assert mean(shifted, part.w) == pytest.approx(mean([*map(float, part.y)], part.w), abs=1e-9)


# Curves


def curve_of(curve: tf.types.Curve, case: Case, group: str) -> pl.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.errors.UndefinedWarning)  # of groups of one class
        result = curve(case.frame, "truth", group_by="group", **case.counting)
    return result.filter(group=group).drop("group")


def columns(result: pl.DataFrame) -> list[list[float]]:
    return [result[name].to_list() for name in result.columns]


@LAW
@given(cases())
def test_roc_curve_equals_scikit_learn(case: Case) -> None:
    for group in case.groups:
        part = case.part(group)
        if not both_classes(part):
            continue
        result = curve_of(tf.roc_curve, case, group)
        assert result.columns == [".threshold", "specificity", "sensitivity"]
        assert result.row(0) == pytest.approx((-math.inf, 0, 1))
        threshold, specificity, sensitivity = columns(result[1:].reverse())
        fpr, tpr, cuts = metrics.roc_curve(part.y, part.p, sample_weight=part.w, drop_intermediate=False)
        assert threshold == list(cuts)
        assert specificity == pytest.approx(list(1 - fpr), rel=1e-9, abs=1e-12)
        assert sensitivity == pytest.approx(list(tpr), rel=1e-9, abs=1e-12)


@LAW
@given(cases())
def test_pr_curve_equals_scikit_learn(case: Case) -> None:
    for group in case.groups:
        part = case.part(group)
        if 1 not in part.y:
            continue
        result = curve_of(tf.pr_curve, case, group)
        precision, recall, cuts = metrics.precision_recall_curve(part.y, part.p, sample_weight=part.w)
        threshold, found_recall, found_precision = columns(result)
        assert threshold == [math.inf, *cuts[::-1]]
        assert found_recall == pytest.approx(list(recall[::-1]), rel=1e-9, abs=1e-12)
        assert found_precision == pytest.approx(list(precision[::-1]), rel=1e-9, abs=1e-12)


@LAW
@given(cases())
def test_gain_and_lift_curves_equal_plain_arithmetic(case: Case) -> None:
    for group in case.groups:
        rows = list(zip(*(part := case.part(group)), strict=True))
        if 1 not in part.y:
            continue
        every, events = sum(part.w), sum(w for y, _, w in rows if y)
        gain, lift = (curve_of(curve, case, group) for curve in (tf.gain_curve, tf.lift_curve))
        cuts = [math.inf, *sorted({*part.p}, reverse=True)]
        assert gain[".threshold"].to_list() == lift[".threshold"].to_list() == cuts
        for cut, one, other in zip(cuts, gain.rows(named=True), lift.rows(named=True), strict=True):
            tested = sum(w for _, p, w in rows if p >= cut)
            result = sum(w for y, p, w in rows if y and p >= cut)
            wanted = (tested, result, 100 * tested / every, 100 * result / events)
            names = (".n", ".n_events", ".percent_tested", ".percent_found")
            assert [one[name] for name in names] == pytest.approx(wanted, rel=1e-9, abs=1e-12)
            assert [other[name] for name in names[:3]] == pytest.approx(wanted[:3], rel=1e-9, abs=1e-12)
            lifted = (result / tested) / (events / every) if tested else None
            assert close(other[".lift"], lifted)


def test_curve_of_one_class_is_null_and_warns() -> None:
    with pytest.warns(tf.errors.UndefinedWarning, match="roc_curve of group='events'; group='none' has one class only"):
        result = tf.roc_curve(ONE_CLASS, "truth", probs="score", group_by="group")
    for group, lacking in (("events", "specificity"), ("none", "sensitivity")):
        curve = result.filter(group=group)
        assert curve[lacking].is_null().all()
        assert not curve.drop(lacking).null_count().pipe(lambda nulls: any(nulls.row(0)))


def test_curve_of_one_class_respects_on_undefined() -> None:
    with pytest.raises(tf.errors.UndefinedError, match="has one class only"):
        tf.roc_curve(ONE_CLASS, "truth", probs="score", group_by="group", on_undefined="raise")
    quiet = tf.roc_curve(ONE_CLASS, "truth", probs="score", group_by="group", on_undefined="ignore")
    assert quiet["group"].n_unique() == 3


@LAW
@given(cases(), st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=5, unique=True))
def test_curves_at_given_thresholds(case: Case, thresholds: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.errors.UndefinedWarning)
        result = tf.roc_curve(case.frame, "truth", group_by="group", thresholds=thresholds, **case.counting)
    for group in case.groups:
        rows = list(zip(*(part := case.part(group)), strict=True))
        if not both_classes(part):
            continue
        curve = result.filter(group=group)
        inside = curve.filter(pl.col(".threshold").is_in(thresholds))
        assert inside[".threshold"].to_list() == sorted(thresholds)
        positives, negatives, *_ = sums(part)
        for cut, specificity, sensitivity in inside.drop("group").rows():
            assert close(specificity, sum(w for y, p, w in rows if not y and p < cut) / negatives)
            assert close(sensitivity, sum(w for y, p, w in rows if y and p >= cut) / positives)


# A group against the others


def others(case: Case, group: str, needs: tuple[str, ...] = ("truth", "score")) -> Part:
    return case.part(*(item for item in case.groups if item != group), needs=needs)


def between(factory: tf.types.GroupwiseFactory, case: Case) -> Values:
    return values(factory("group").by_group(case.frame, "truth", **case.counting), ".group")


@LAW
@given(cases())
def test_score_distances_equal_scipy(case: Case) -> None:
    distances, transports = (
        between(tf.distributions.kolmogorov_smirnov, case),
        between(tf.distributions.wasserstein_distance, case),
    )
    for group in case.groups:
        # they read no truth, and so need none
        one, other = case.part(group, needs=("score",)), others(case, group, needs=("score",))
        if not one.p or not other.p:
            assert distances[group][0] is transports[group][0] is None
            continue
        below = [
            [
                sum(w for p, w in zip(part.p, part.w, strict=True) if p <= cut) / sum(part.w)
                for cut in (*one.p, *other.p)
            ]
            for part in (one, other)
        ]
        farthest = max(abs(a - b) for a, b in zip(*below, strict=True))
        assert close(distances[group][0], farthest)
        assert close(transports[group][0], float(stats.wasserstein_distance(one.p, other.p, one.w, other.w)))


def area_between(one: Part, other: Part) -> float:
    """By summing up the distances on a fine grid, within which both curves are straight."""
    curves = [metrics.roc_curve(p.y, p.p, sample_weight=p.w, drop_intermediate=False)[:2] for p in (one, other)]
    ends = np.unique(np.concatenate([curve[0] for curve in curves]))
    total = 0.0
    for start, end in itertools.pairwise(ends):
        inside = start + (end - start) * (np.arange(2000) + 0.5) / 2000
        heights = [np.interp(inside, *curve) for curve in curves]
        total += float(np.abs(heights[0] - heights[1]).mean() * (end - start))
    return total


@settings(LAW, max_examples=examples(15))
@given(cases(least=8))
def test_abroca_equals_area_between_roc_curves(case: Case) -> None:
    result = between(tf.abroca, case)
    valued = [group for group in case.groups if both_classes(case.part(group))]
    areas = {pair: area_between(case.part(pair[0]), case.part(pair[1])) for pair in itertools.combinations(valued, 2)}
    for group in case.groups:
        mine = [area for pair, area in areas.items() if group in pair]
        assert (result[group][0] is None) == (not mine)
        assert result[group][0] == (pytest.approx(max(mine), abs=1e-5) if mine else None)
    number = tf.abroca("group")(case.frame, "truth", on_undefined="ignore", **case.counting)[".estimate"].item()
    if areas:
        assert number == pytest.approx(max(areas.values()), abs=1e-5)


@pytest.mark.parametrize(
    ("one", "other", "area"),
    [
        ([0.9, 0.1], [0.1, 0.9], 1.0),  # perfect and reversed
        ([0.9, 0.1], [0.5, 0.5], 0.5),  # perfect and the diagonal
        ([0.5, 0.5], [0.5, 0.5], 0.0),
    ],
)
def test_abroca_on_plain_numbers(one: list[float], other: list[float], area: float) -> None:
    data = pl.DataFrame({"truth": [1, 0, 1, 0], "score": one + other, "group": [*"aabb"]})
    assert tf.abroca("group")(data, "truth", probs="score")[".estimate"].item() == area


def test_abroca_of_crossing_curves_on_plain_numbers() -> None:
    # one is half way up at once, and stays there; the other is the diagonal
    data = pl.DataFrame(
        {"truth": [1, 0, 1, 1, 0], "score": [0.9, 0.5, 0.1, 0.5, 0.5], "group": [*"aaabb"]},
    )
    assert tf.abroca("group")(data, "truth", probs="score")[".estimate"].item() == 0.25


@LAW
@given(cases())
def test_bnsp_and_bpsn_auc_equal_plain_arithmetic(case: Case) -> None:
    result = {1: between(tf.distributions.bnsp_auc, case), 0: between(tf.distributions.bpsn_auc, case)}
    for group in case.groups:
        inside, outside = case.part(group), others(case, group)
        for side, results in result.items():
            rows = [row for row in zip(*inside, strict=True) if row[0] == side]
            rows += [row for row in zip(*outside, strict=True) if row[0] != side]
            mixed = Part(*(list(column) for column in zip(*rows, strict=True))) if rows else Part([], [], [])
            # a group without any row has nothing to be compared
            expected = roc_auc(mixed) if both_classes(mixed) else None
            assert close(results[group][0], expected), (group, side)


# Values expected by chance


SIMULATIONS, SIZE = 300, 60


def simulated(kind: str) -> pl.DataFrame:
    """Data sets of two groups that do not differ, and whose scores are calibrated."""
    random = np.random.default_rng(20)
    rows = SIMULATIONS * 2 * SIZE
    score = random.beta(1.5, 1.5, rows)
    if kind == "coarse":
        score = np.round(score, 1)
    weight = random.exponential(1.0, rows) + 0.1 if kind == "weighted" else np.ones(rows)
    return pl.DataFrame(
        {
            "data": np.repeat(np.arange(SIMULATIONS), 2 * SIZE),
            "group": np.tile(np.repeat(["a", "b"], SIZE), SIMULATIONS),
            "truth": (random.random(rows) < score).astype(int),
            "score": score,
            "weight": weight,
        }
    )


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["free", "coarse", "weighted"])
@pytest.mark.parametrize("name", ["kolmogorov_smirnov", "wasserstein_distance", "abroca"])
def test_if_equal_metrics_match_simulation(name: str, kind: str) -> None:
    data = simulated(kind)
    plain, if_equal = public(name)("group"), public(f"{name}_if_equal")("group")
    options: dict[str, Any] = {"probs": "score", "group_by": "data"}
    if kind == "weighted":
        options["case_weights"] = "weight"
    seen = plain(data, "truth", **options)[".estimate"].mean()
    # what is expected hardly differs between data sets
    expected = if_equal(data.filter(pl.col("data") < 30), "truth", **options)[".estimate"].mean()
    assert expected == pytest.approx(seen, rel=0.1)


@pytest.mark.parametrize("kind", ["free", "coarse", "weighted"])
@pytest.mark.parametrize("binning", ["width", "count"])
def test_if_calibrated_metrics_match_simulation(binning: str, kind: str) -> None:
    data = simulated(kind)
    options: dict[str, Any] = {"probs": "score", "group_by": ["data", "group"]}
    if kind == "weighted":
        options["case_weights"] = "weight"
    plain, expected = (
        tf.metric_tweak(metric, metric.name + binning, binning=binning)(data, "truth", **options)[".estimate"].mean()
        for metric in (tf.calibration.error, tf.calibration.error_if_calibrated)
    )
    assert expected == pytest.approx(plain, rel=0.1)


@settings(LAW, max_examples=examples(15))
@given(cases(least=8))
def test_debiased_equals_plain_minus_expected(case: Case) -> None:
    for name in ("kolmogorov_smirnov", "wasserstein_distance"):
        plain, if_equal, debiased = (between(public(name + suffix), case) for suffix in ("", "_if_equal", "_debiased"))
        for group, (value, _) in debiased.items():
            one, other = plain[group][0], if_equal[group][0]
            assert close(value, None if one is None or other is None else one - other)
    # a group's area is that of its farthest pair, and the farthest of the debiased pairs may be another one
    two = Case([row for row in case.rows if row["group"] != "c"], case.weighted)
    if two.part(*"ab").y:
        plain, if_equal, debiased = (between(public("abroca" + item), two) for item in ("", "_if_equal", "_debiased"))
        for group, (value, _) in debiased.items():
            one, other = plain[group][0], if_equal[group][0]
            assert close(value, None if one is None or other is None else one - other)
    both = tf.metric_set(
        tf.calibration.error,
        tf.calibration.error_if_calibrated,
        tf.calibration.error_debiased,
    )
    result = both(case.frame, "truth", group_by="group", on_undefined="ignore", **case.counting)
    for group in case.groups:
        one, chance, rest = result.filter(group=group)[".estimate"].to_list()
        assert close(rest, None if one is None or chance is None else one - chance)


def test_every_score_metric_has_a_test_here_or_beside() -> None:
    files = (Path(__file__), Path(__file__).with_name("test_calibration_without_bins.py"))
    text = "\n".join(file.read_text("utf-8") for file in files)
    # that of models that abstain is in `test_abstention.py`
    elsewhere = {*inequality.__all__, "risk_coverage_auc"}
    here = [metric.name for metric in tf.get_metrics("prob") if metric.name not in elsewhere]
    assert [name for name in here if not re.search(rf"\b({name}|{places()[name]})\b", text)] == []


# Statistics of one's own

OF_A_ROW: dict[str, tuple[Callable[[Any, Any], Any], Callable[[float, float], float]]] = {
    "the truth alone": (lambda truth, score: truth, lambda truth, score: truth),  # noqa: ARG005 - on purpose
    "its complement": (lambda truth, score: 1 - truth, lambda truth, score: 1 - truth),  # noqa: ARG005 - named by what they read
    "both": (lambda truth, score: (score - (1 - truth)).abs(), lambda truth, score: abs(score - (1 - truth))),
    "a case": (
        lambda truth, score: pl.when(score > 0.5).then(1 - truth).otherwise(truth),
        lambda truth, score: 1 - truth if score > 0.5 else truth,
    ),
}


@pytest.mark.parametrize("name", OF_A_ROW)
def test_own_statistics_are_summed_over_rows(
    name: str, loans: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]
) -> None:
    of_row, by_hand = OF_A_ROW[name]
    metric = tf.new_prob_metric(lambda own, instances: (own, instances), "own", statistics={"own": of_row})
    data = engine(loans)
    calls: list[dict[str, Any]] = [{}, {"case_weights": "weight"}]
    for weights in calls:
        result = as_polars(metric(data, "truth", probs="score", group_by="sex", **weights))
        for sex, value in result.select("sex", ".estimate").rows():
            rows = loans.filter(sex=sex)
            values = [by_hand(truth, score) for truth, score in rows.select("truth", "score").rows()]
            assert value == pytest.approx(np.average(values, weights=rows["weight"] if weights else None))


# One label of several, and sets


THREE = pl.DataFrame(
    {
        "sky": ["sun", "rain", "snow", "sun", "rain", "snow"], "city": list("aabbab"),
        "sun": [0.7, 0.2, 0.1, 0.5, 0.3, 0.2], "rain": [0.2, 0.6, 0.2, 0.3, 0.5, 0.2],
        "snow": [0.1, 0.2, 0.7, 0.2, 0.2, 0.6],
    }
)  # fmt: skip
SKY = {"sun": "sun", "rain": "rain", "snow": "snow"}


@pytest.mark.parametrize("metric", [tf.classification_cost, tf.brier_class, tf.mn_log_loss, tf.roc_auc], ids=repr)
def test_pos_label_of_several_is_read_against_the_rest(metric: tf.types.Metric) -> None:
    for label in SKY:
        alone = metric(THREE, "sky", probs=label, pos_label=label)
        assert metric(THREE, "sky", probs=SKY, pos_label=label).equals(alone)


def largest_score_is_wrong(truth: Any, score: Any, *, labels: Any) -> float:
    """A metric of one's own over all labels: how often the largest score is not that of the true label."""
    return float(np.mean([labels[index] != label for index, label in zip(score.argmax(axis=1), truth, strict=True)]))


OWN = tf.new_prob_metric(largest_score_is_wrong, "largest_score_is_wrong", direction="minimize", over_levels=True)
OF_ALL_LABELS = [
    tf.classification_cost, OWN, tf.brier_class, tf.mn_log_loss, tf.roc_auc, tf.roc_aunp, tf.roc_aunu, tf.pr_auc,
]  # fmt: skip
PERFECT = pl.DataFrame(
    {"y": ["b", "a", "c", "a"], "b": [1.0, 0, 0, 0], "a": [0.0, 1, 0, 1], "c": [0.0, 0, 1, 0]}
)  # fmt: skip


@pytest.mark.parametrize("order", [["b", "a", "c"], ["a", "b", "c"], ["c", "b", "a"]], ids="".join)
def test_cost_of_perfect_scores_is_0_for_any_column_order(order: list[str]) -> None:
    mapping = {label: label for label in order}
    as_enum = PERFECT.with_columns(pl.col("y").cast(pl.Enum(["c", "a", "b"])))
    for metric in (tf.classification_cost, OWN):
        assert metric(PERFECT, "y", probs=order)[".estimate"].to_list() == [0]
        assert metric(PERFECT, "y", probs=mapping)[".estimate"].to_list() == [0]
        assert metric(PERFECT, "y", probs=mapping, labels=["b", "c", "a"])[".estimate"].to_list() == [0]
        assert metric(as_enum, "y", probs=mapping)[".estimate"].to_list() == [0]


@pytest.mark.parametrize("metric", OF_ALL_LABELS, ids=repr)
def test_score_column_order_does_not_matter(metric: tf.types.Metric) -> None:
    expected = metric(THREE, "sky", probs=SKY)[".estimate"].item()
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("city")
    between = gap(THREE, "sky", probs=SKY, on_undefined="ignore")[".estimate"].item()
    for labels in itertools.permutations(SKY):
        mapping = {label: label for label in labels}
        assert metric(THREE, "sky", probs=mapping)[".estimate"].item() == pytest.approx(expected)
        assert metric(THREE, "sky", probs=[*labels])[".estimate"].item() == pytest.approx(expected)
        listed = metric(THREE, "sky", probs=mapping, labels=sorted(labels))
        assert listed[".estimate"].item() == pytest.approx(expected)
        compared = gap(THREE, "sky", probs=mapping, on_undefined="ignore")[".estimate"].item()
        assert compared == pytest.approx(between)


@pytest.mark.parametrize("metric", [tf.classification_cost, tf.brier_class], ids=repr)
def test_one_vs_rest_disparity_reports_the_worst_label(metric: tf.types.Metric) -> None:
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("city")
    worst = gap(THREE, "sky", probs=SKY, estimator="one_vs_rest", explain=True)
    values = {label: gap(THREE, "sky", probs=label, pos_label=label)[".estimate"].item() for label in SKY}
    assert worst[".estimate"].item() == pytest.approx(max(values.values()))
    assert values[worst[".level"].item()] == pytest.approx(max(values.values()))


def test_disparities_that_average_to_zero_use_one_vs_rest() -> None:
    # probabilities add up to 1, so that their average over labels is the same whatever they are
    bad = THREE.with_columns(
        pl.when(city="a").then(value).otherwise(label).alias(label)
        for label, value in (("sun", 0.98), ("rain", 0.01), ("snow", 0.01))
    )
    result = tf.metric_set(tf.calibration.parity("city"), tf.mean_score.difference("city"))(bad, "sky", probs=SKY)
    assert result[".estimator"].to_list() == ["one_vs_rest"] * 2
    assert min(result[".estimate"].to_list()) > 0.5


@pytest.mark.parametrize("to", ["overall", "rest"])
@pytest.mark.parametrize("metric", [tf.rmse, tf.rsq, tf.median_absolute_error], ids=repr)
def test_two_sides_compared_with_overall_or_rest(metric: tf.types.Metric, to: str) -> None:
    frame = pl.DataFrame(
        {"t": [1.0, 2, 4, 3, 7, 6, 9], "e": [1.0, 3, 2, 5, 6, 8, 9], "g": ["x", "x", "x", "z", "z", "z", "q"]}
    )
    sides = tf.privileged({"g": "x"}, unprivileged={"g": "z"})
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference(to=to))(sides)

    def alone(*groups: str) -> float:
        return metric(frame.filter(pl.col("g").is_in(groups)), "t", "e")[".estimate"].item()

    others = {"overall": (("x", "z"), ("x", "z")), "rest": (("z",), ("x",))}[to]
    distances = [abs(alone(side) - alone(*other)) for side, other in zip(("x", "z"), others, strict=True)]
    assert gap(frame, "t", "e")[".estimate"].item() == pytest.approx(max(distances))


def test_between_group_metric_beside_comparison_with_overall(loans: pl.DataFrame) -> None:
    gap = tf.new_groupwise_metric(tf.roc_auc, "gap", tf.difference(to="overall"))("sex")
    both = tf.metric_set(gap, tf.abroca("sex"))(loans, "truth", probs="score")
    assert both[".estimate"].to_list() == [
        item(loans, "truth", probs="score")[".estimate"].item() for item in (gap, tf.abroca("sex"))
    ]
    least = tf.abroca("sex", aggregate=pl.col(".estimate").min())(loans, "truth", probs="score")
    assert least[".estimate"].item() == both[".estimate"][1]


def test_time_per_outer_group_does_not_grow() -> None:
    random, few, many, size = np.random.default_rng(5), 400, 8_000, 60
    rows = many * size
    data = pl.DataFrame(
        {
            "fold": np.repeat(np.arange(many), size), "sex": np.tile([*"fm"], rows // 2),
            "truth": random.integers(0, 2, rows), "score": random.random(rows),
        }
    )  # fmt: skip
    gap = tf.distributions.kolmogorov_smirnov("sex")

    def seconds(folds: int) -> float:
        part = data.head(folds * size)
        start = time.process_time()
        gap(part, "truth", probs="score", group_by="fold", on_undefined="ignore")
        return time.process_time() - start

    seconds(few)
    # where all rows are scanned for each fold it takes five times as long
    assert seconds(many) / many < 2.5 * seconds(few) / few


def test_pairwise_distances_name_both_groups() -> None:
    data = simulated("free").filter(pl.col("data") == 0)
    for metric in (
        tf.abroca("group"),
        tf.distributions.abroca_if_equal("group"),
        tf.distributions.abroca_debiased("group"),
    ):
        result = metric(data, "truth", probs="score", explain=True)
        assert {result[".group_min"].item(), result[".group_max"].item()} == set(data["group"])


def test_auc_denominator_is_the_smaller_class(loans: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]) -> None:
    groups = tf.auc_parity("race").by_group(engine(loans), "truth", probs="score", on_undefined="ignore")
    smaller = dict(as_polars(groups).select(".group", ".denominator").rows())
    expected = loans.group_by("race").agg(pl.min_horizontal(pl.col("truth").sum(), (1 - pl.col("truth")).sum()))
    assert smaller == dict(expected.rows())

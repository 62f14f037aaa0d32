"""Thresholds chosen from the data equal those of a search by hand, and intervals know that they were chosen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from polars.testing import assert_frame_equal

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

QUIET: dict[str, Any] = {"on_undefined": "ignore"}
RATES: dict[str, Callable[[float, float, float, float], tuple[float, float]]] = {
    "fall_out": lambda _, fp, __, negatives: (fp, negatives),
    "spec": lambda _, fp, __, negatives: (negatives - fp, negatives),
    "sens": lambda tp, _, positives, __: (tp, positives),
    "precision": lambda tp, fp, _, __: (tp, tp + fp),
    "npv": lambda tp, fp, positives, negatives: (negatives - fp, positives - tp + negatives - fp),
    "selection_rate": lambda tp, fp, positives, negatives: (tp + fp, positives + negatives),
}
"""Numerator and denominator from the selected events and others, and from all of both."""
LIMITS = [
    ("fall_out", "at_most", 0.2), ("spec", "at_least", 0.7), ("sens", "at_least", 0.8), ("precision", "at_least", 0.7),
    ("npv", "at_least", 0.6), ("selection_rate", "at_most", 0.3), ("fall_out", "at_least", 0.5),
]  # fmt: skip
ANEURYSMS = {
    0.03: (1, 0), 0.04: (0, 5), 0.05: (0, 3), 0.06: (0, 2), 0.07: (3, 6), 0.08: (1, 6), 0.09: (2, 6), 0.1: (2, 7),
    0.11: (1, 4), 0.12: (1, 0), 0.13: (2, 3), 0.14: (1, 4), 0.15: (0, 4), 0.16: (1, 3), 0.17: (0, 2), 0.18: (0, 1),
    0.19: (0, 2), 0.22: (1, 0), 0.23: (1, 0), 0.24: (0, 1), 0.25: (1, 0), 0.26: (1, 0), 0.27: (1, 0), 0.28: (0, 1),
    0.3: (1, 0), 0.32: (1, 1), 0.33: (1, 1), 0.34: (0, 1), 0.35: (1, 0), 0.38: (0, 1), 0.41: (1, 0), 0.43: (0, 1),
    0.44: (2, 0), 0.45: (0, 1), 0.46: (0, 1), 0.47: (0, 2), 0.48: (1, 1), 0.49: (1, 0), 0.5: (0, 2), 0.52: (1, 0),
    0.56: (1, 0), 0.58: (1, 0), 0.7: (1, 0), 0.71: (2, 0), 0.74: (1, 0), 0.77: (1, 0), 0.82: (1, 0), 0.86: (1, 0),
    0.96: (1, 0), 2.07: (1, 0),
}  # fmt: skip
"""The ROC curve of S100B in pROC's example (Robin et al., 2011): poor and good outcomes at each value."""


def aneurysms() -> pl.DataFrame:
    rows = [(score, event) for score, counts in ANEURYSMS.items() for event in (1, 0) for _ in range(counts[1 - event])]
    return pl.DataFrame(rows, ["s100b", "poor"], orient="row")


def scored(seed: int, rows: int = 60) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, rows)
    # some scores are tied, some are missing, and so are some truths
    score = np.round(1 / (1 + np.exp(-(random.normal(size=rows) + 1.2 * truth - 0.6))), 1 if seed % 2 else 6)
    frame = pl.DataFrame({
        "y": truth, "p": score, "g": random.choice(["a", "b"], rows), "fold": random.integers(0, 2, rows),
        "w": random.integers(0, 4, rows),
    })  # fmt: skip
    gap = pl.int_range(pl.len()) % 19 == 7
    return frame.with_columns(p=pl.when(~gap).then("p"), y=pl.when(pl.int_range(pl.len()) % 23 != 3).then("y"))


def by_hand(rows: pl.DataFrame, metric: str, side: str, limit: float, weight: str | None = None) -> float:
    """The threshold, by a loop over all of them."""
    known = rows.drop_nulls(["y", "p"])
    table = [
        (p, y, w) for p, y, w in zip(known["p"], known["y"], known[weight] if weight else [1] * len(known), strict=True)
    ]
    positives, negatives = (float(sum(w for _, y, w in table if y == event)) for event in (1, 0))
    within: list[tuple[float, float, float]] = []
    for threshold in [*sorted({p for p, _, _ in table}), math.inf]:
        tp, fp = (float(sum(w for p, y, w in table if p >= threshold and y == event)) for event in (1, 0))
        numerator, denominator = RATES[metric](tp, fp, positives, negatives)
        if denominator and (numerator / denominator - limit) * (1 if side == "at_most" else -1) <= 1e-12:
            within.append((threshold, tp, tp + fp))
    is_for_many = (metric in {"sens", "npv", "fall_out", "selection_rate"}) == (side == "at_most")
    if not is_for_many:
        return max(threshold for threshold, *_ in within)
    if metric == "selection_rate":
        return min(threshold for threshold, *_ in within)
    most = max(tp for _, tp, _ in within)
    return max(threshold for threshold, tp, _ in within if tp == most)


@pytest.mark.parametrize(("metric", "side", "limit"), LIMITS)
@pytest.mark.parametrize("seed", range(6))
def test_thresholds_are_those_of_a_search(metric: str, side: str, limit: float, seed: int) -> None:
    rows = scored(seed)
    options_of_limit: dict[str, Any] = {side: limit}
    point = tf.operating_point(getattr(tf, metric), **options_of_limit)
    expected = by_hand(rows, metric, side, limit)
    found = point.thresholds_on(rows, "y", probs="p")
    assert found[".threshold"].item() == pytest.approx(expected)
    every = tf.metric_set(tf.sens, tf.spec, tf.precision, tf.selection_rate)
    options: dict[str, Any] = {"truth": "y", "probs": "p", **QUIET}
    assert_frame_equal(every(rows, threshold=point, **options), every(rows, threshold=expected, **options))
    weighed = point.thresholds_on(rows, "y", probs="p", case_weights="w")
    assert weighed[".threshold"].item() == pytest.approx(by_hand(rows, metric, side, limit, "w"))


def test_groups_and_outer_groups_have_thresholds_of_their_own() -> None:
    rows = scored(4, 300)
    point = tf.operating_point(tf.fall_out, at_most=0.15, by="g")
    found = point.thresholds_on(rows, "y", probs="p", group_by="fold")
    options: dict[str, Any] = {"truth": "y", "probs": "p", **QUIET}
    sens = tf.sens.difference("g").by_group(rows, threshold=point, group_by="fold", **options)
    assert len(found) == 4
    for fold, group, _, threshold, value in found.rows():
        own = rows.filter(fold=fold, g=group)
        assert threshold == by_hand(own, "fall_out", "at_most", 0.15)
        assert value == tf.fall_out(own, threshold=threshold, **options)[".estimate"].item()
        of_group = sens.filter(pl.col("fold") == fold, pl.col(".group") == group)[".estimate"].item()
        assert of_group == tf.sens(own, threshold=threshold, **options)[".estimate"].item()


def test_thresholds_of_another_sample_are_fixed() -> None:
    rows, others = scored(1, 200), scored(3, 200).with_columns(p=pl.col("p") * 4 - 2)
    shifted = rows.with_columns(p=pl.col("p") * 4 - 2)
    options: dict[str, Any] = {"truth": "y", "probs": "p", "interval": "auto", **QUIET}
    for by in (None, "g"):
        point = tf.operating_point(tf.sens, at_least=0.8, by=by, on=others)
        at = tf.operating_point(tf.sens, at_least=0.8, by=by).thresholds_on(others, "y", probs="p")
        fixed: Any = {"g": dict(at.select("g", ".threshold").rows())} if by else at[".threshold"].item()
        decided = shifted.with_columns(
            e=pl.col("p") >= (pl.col("g").replace_strict(fixed["g"]) if by else fixed), y=pl.col("y") == 1
        )
        expected = tf.spec(decided, "y", "e", interval="auto", **QUIET)
        assert_frame_equal(tf.spec(shifted, threshold=point, **options), expected)
    # a fixed one is accepted by tests, too
    tf.inference.disparity_test(tf.equal_opportunity("g"))(shifted, "y", probs="p", threshold=point, times=20)


def test_every_engine_chooses_the_same(engine: Callable[[pl.DataFrame], Any]) -> None:
    rows = scored(2, 100)
    point = tf.operating_point(tf.fall_out, at_most=0.2, by="g")
    options: dict[str, Any] = {"truth": "y", "probs": "p", "threshold": point, **QUIET}
    assert_frame_equal(as_polars(tf.sens(engine(rows), **options)), tf.sens(rows, **options))


def test_published_examples_of_torchmetrics() -> None:
    # of the documentation of recall_at_fixed_precision, sensitivity_at_specificity and specificity_at_sensitivity
    one = pl.DataFrame({"p": [0.0, 0.5, 0.7, 0.8], "y": [0, 1, 1, 0]})
    other = pl.DataFrame({"p": [0.0, 0.5, 0.4, 0.1], "y": [0, 1, 1, 1]})
    for rows, metric, point, value, threshold in (
        (one, tf.recall, tf.operating_point(tf.precision, at_least=0.5), 1.0, 0.5),
        (other, tf.sens, tf.operating_point(tf.spec, at_least=0.5), 1.0, 0.1),
        (other, tf.spec, tf.operating_point(tf.sens, at_least=0.5), 1.0, 0.4),
    ):
        assert metric(rows, "y", probs="p", threshold=point)[".estimate"].item() == value
        assert point.thresholds_on(rows, "y", probs="p")[".threshold"].item() == threshold


def test_published_curve_of_proc() -> None:
    rows = aneurysms()
    assert (len(rows), rows["poor"].sum()) == (113, 41)
    # the best threshold is 0.205 there, between 0.19 and 0.22, with these coordinates
    point = tf.operating_point(tf.spec, at_least=0.8)
    both = tf.metric_set(tf.spec, tf.sens)(rows, "poor", probs="s100b", threshold=point)
    assert both[".estimate"].round(7).to_list() == [0.8055556, 0.6341463]
    assert point.thresholds_on(rows, "poor", probs="s100b")[".threshold"].item() == 0.22
    # the area there is 0.7314
    assert tf.roc_auc(rows, "poor", probs="s100b")[".estimate"].item() == pytest.approx(0.7313686)


def limits_by_hand(score: NDArray[Any], event: NDArray[Any], limit: float, times: int) -> tuple[float, float]:
    """Percentiles of the sensitivity at a fall-out of rows that are drawn with replacement."""
    random = np.random.default_rng(8)
    drawn: list[float] = []
    for _ in range(times):
        index = random.integers(0, len(score), len(score))
        negatives = np.sort(score[index][event[index] == 0])[::-1]
        positives = score[index][event[index] == 1]
        allowed = int(np.floor(limit * len(negatives) + 1e-9))
        # nobody at or below the first score that is one too many
        drawn.append(float((positives > negatives[allowed]).mean()))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def test_intervals_are_those_of_a_bootstrap_that_chooses_anew() -> None:
    random = np.random.default_rng(2)
    event = random.integers(0, 2, 300)
    score = 1 / (1 + np.exp(-random.normal(size=300) - 1.5 * event))
    rows = pl.DataFrame({"y": event, "p": score})
    point = tf.operating_point(tf.fall_out, at_most=0.1)
    result = tf.sens(rows, "y", probs="p", threshold=point, interval="auto", times=4_000)
    assert result[".method"].item() == "bootstrap"
    low, high = limits_by_hand(score, event, 0.1, 4_000)
    assert result.select(".lower", ".upper").row(0) == pytest.approx((low, high), abs=0.012)
    # which is wider than if the threshold were known
    (threshold,) = point.thresholds_on(rows, "y", probs="p")[".threshold"]
    known = tf.sens(rows, "y", probs="p", threshold=threshold, interval="auto")
    width, known_width = (frame[".upper"].item() - frame[".lower"].item() for frame in (result, known))
    assert width > 1.3 * known_width


def test_scores_of_the_same_call_keep_their_intervals() -> None:
    rows = scored(2, 200)
    both = tf.metric_set(tf.sens, tf.roc_auc, tf.base_rate)
    point = tf.operating_point(tf.fall_out, at_most=0.2)
    result = both(rows, "y", probs="p", threshold=point, interval="auto", times=100, **QUIET)
    assert result[".method"].to_list() == ["bootstrap", "delong", "wilson"]


def test_what_cannot_follow_a_chosen_threshold_is_refused() -> None:
    rows, point = scored(2, 200), tf.operating_point(tf.fall_out, at_most=0.2)
    call: dict[str, Any] = {"truth": "y", "probs": "p", "threshold": point}
    fixed = "needs a fixed threshold: choose it on another sample"
    for verb in (
        tf.inference.disparity_test(tf.equal_opportunity("g")),
        tf.compare_groups(tf.sens, by="g"),
        tf.inference.worst_groups(tf.equal_opportunity("g")),
        tf.inference.monitor(tf.equal_opportunity("g"), below=0.2),
    ):
        with pytest.raises(tf.errors.ArgumentError, match=fixed):
            verb(rows, **call)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"interval": "bayes"}, "whose threshold, chosen from the data, has no prior"),
        ({"interval": "analytic"}, "sens"),
        ({"design": tf.surveys.design(weights="w")}, "`design` does not support operating_point"),
        ({"group_by": tf.privileged(g="a")}, "cannot be combined with `group_by=privileged"),
    ]
    for options, message in refused:
        with pytest.raises(tf.errors.ArgumentError, match=message):
            tf.sens(rows, **call, **options)
    tallies = [tf.sens.tally(part, **call) for part in (rows.head(100), rows.tail(100))]
    with pytest.raises(tf.errors.ArgumentError, match="The threshold is chosen from all rows"):
        _ = tallies[0] + tallies[1]
    seen = tf.Accumulator(tf.sens, "y", probs=call["probs"], threshold=call["threshold"]).update(rows.head(100))
    assert seen.compute()[".estimate"].item() == tf.sens(rows.head(100), **call)[".estimate"].item()
    with pytest.raises(tf.errors.ArgumentError, match="The threshold is chosen from all rows"):
        seen.update(rows.tail(100))


def test_bad_limits_are_refused() -> None:
    rows = scored(2)
    anything: Any = tf.roc_auc
    for make, message in (
        (lambda: tf.operating_point(tf.accuracy, at_least=0.8), "accuracy does not rise or fall with the threshold"),
        (lambda: tf.operating_point(anything, at_least=0.8), "roc_auc does not rise or fall"),
        (lambda: tf.operating_point(tf.sens), "takes one limit, `at_most=` or `at_least=`"),
        (lambda: tf.operating_point(tf.sens, at_most=0.1, at_least=0.2), "takes one limit"),
        (lambda: tf.operating_point(tf.sens, at_least=90), "`at_least` is a number from 0 to 1"),
    ):
        with pytest.raises(tf.errors.ArgumentError, match=message):
            make()
    never = tf.operating_point(tf.precision, at_least=1.0)
    wrong = rows.with_columns(y=pl.when(pl.col("p") == pl.col("p").max()).then(0).otherwise("y"))
    with pytest.raises(tf.errors.ArgumentError, match=r"is out of reach, where precision is 0\.\d+ at the nearest"):
        tf.sens(wrong, "y", probs="p", threshold=never)
    with pytest.raises(tf.errors.LabelError, match="needs to know which of 'no', 'yes' is the event"):
        tf.sens(
            rows.with_columns(y=pl.col("y").replace_strict({1: "yes", 0: "no"})), "y", probs="p",
            threshold=tf.operating_point(tf.sens, at_least=0.5),
        )  # fmt: skip


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("metric", "point", "true"),
    [
        (tf.sens, tf.operating_point(tf.fall_out, at_most=0.1), 0.586),
        (tf.spec, tf.operating_point(tf.sens, at_least=0.9), 0.586),
    ],
    ids=["sensitivity", "specificity"],
)
def test_intervals_hold_the_operating_point_of_the_population(metric: Any, point: Any, true: float) -> None:
    # normal scores 1.5 apart: the sensitivity at a fall-out of 0.1 is that of a normal value above 1.2816 - 1.5
    held, known = 0, 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        event = random.random(400) < 0.4
        rows = pl.DataFrame({"y": event, "p": 1 / (1 + np.exp(-random.normal(size=400) - 1.5 * event))})
        for threshold in (point, point.thresholds_on(rows, "y", probs="p")[".threshold"].item()):
            result = metric(rows, "y", probs="p", threshold=threshold, interval="auto", times=400)
            low, high = result.select(".lower", ".upper").row(0)
            if threshold is point:
                held += low <= true <= high
            else:
                known += low <= true <= high
    assert 0.92 <= held / 200 <= 0.98
    assert known / 200 < 0.85


def test_groups_that_overlap_and_columns_of_another_kind_are_refused() -> None:
    seen = pl.DataFrame({"y": [0, 0, 1, 1], "p": [0.1, 0.4, 0.3, 0.9], "t": ["a"] * 4, "w": [-1.0] * 4})
    with pytest.raises(tf.errors.ArgumentError, match=r"operating_point\(\): each row is in one group"):
        tf.operating_point(tf.fall_out, at_most=0.1, by=tf.memberships("a", "b"))
    point = tf.operating_point(tf.fall_out, at_most=0.1)
    with pytest.raises(tf.errors.ColumnError, match="takes scores, which are numbers"):
        point.thresholds_on(seen, "y", probs="t")
    with pytest.raises(tf.errors.WeightError, match="some values of 'w' are missing, negative"):
        point.thresholds_on(seen, "y", probs="p", case_weights="w")
    elsewhere = tf.operating_point(tf.fall_out, at_most=0.1, on=seen)
    with pytest.raises(tf.errors.WeightError, match="some values of 'w' are missing, negative"):
        tf.sens(seen.with_columns(w=1.0), "y", probs="p", threshold=elsewhere, case_weights="w")


def test_thresholds_of_infinite_scores_and_other_labels_are_refused() -> None:
    seen = pl.DataFrame(
        {"y": [0, 0, 1, 1], "p": [0.1, math.inf, 0.3, 0.9], "q": [0.1, 0.4, 0.3, 0.9], "g": list("aabb")}
    )
    point = tf.operating_point(tf.selection_rate, at_most=0.5, by="g")
    with pytest.raises(tf.errors.ColumnError, match="takes finite scores"):
        tf.sens(seen, "y", probs="p", threshold=point)
    with pytest.raises(tf.errors.LabelError, match="has the `pos_label` 'yes', and the truth is Int64"):
        point.thresholds_on(seen, "y", probs="q", pos_label="yes")
    assert point.thresholds_on(seen, "y", probs="q", group_by="g").rows() == [
        ("a", "selection_rate", 0.4, 0.5),
        ("b", "selection_rate", 0.9, 0.5),
    ]

"""Changes between two models from labels of people and of a judge: influences of rows, simulation."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from judged_data import ANSWERS, WITH_AND_WITHOUT, simulated

import tidyfair as tf


def test_changes_of_models_equal_those_of_influences_of_rows() -> None:
    row = tf.compare_models(tf.accuracy)(ANSWERS, "gold", one="guess", other="other", judged="labels").row(
        0, named=True
    )
    gold, judge, one, other = (ANSWERS[name].to_numpy().astype(float) for name in ("gold", "labels", "guess", "other"))
    people = ~np.isnan(gold)
    gain, gain_by_judge = ((truth == other).astype(float) - (truth == one) for truth in (gold, judge))
    share, labelled, rows = people.mean(), people.sum(), len(gold)
    of_people = np.where(people, (gain - gain[people].mean()) / labelled, 0)
    of_labelled = np.where(people, (gain_by_judge - gain_by_judge[people].mean()) / labelled, 0)
    of_error = (of_labelled - (gain_by_judge - gain_by_judge.mean()) / rows) / (1 - share)
    weight = (of_people @ of_error) / (of_error @ of_error)
    error = (gain_by_judge[people].mean() - gain_by_judge.mean()) / (1 - share)
    assert row[".change"] == pytest.approx(gain[people].mean() - weight * error, abs=1e-9)
    assert row[".other"] - row[".one"] == pytest.approx(row[".change"], abs=1e-12)
    # one more row, for what has not been seen
    exact = math.sqrt(((of_people - weight * of_error) ** 2).sum())
    assert exact < row[".std_error"] < 1.1 * exact
    assert row[".upper"] - row[".lower"] == pytest.approx(2 * 1.959963984540054 * row[".std_error"])
    p_value = math.erfc(abs(row[".change"]) / row[".std_error"] / math.sqrt(2))
    assert row[".p_value"] == pytest.approx(p_value, abs=1e-12)


def test_changes_of_models_in_groups_gates_and_clusters() -> None:
    compare = tf.compare_models(tf.accuracy, tf.f_meas, tf.selection_rate)
    call: dict[str, Any] = {"one": "guess", "other": "other", "judged": "labels"}
    together = compare(ANSWERS, "gold", **call, group_by="group")
    alone = compare(ANSWERS.filter(pl.col("group")), "gold", **call)
    own = together.filter(pl.col("group")).select(".one", ".other", ".change", ".lower", ".std_error")
    assert own.to_numpy() == pytest.approx(alone.select(own.columns).to_numpy())
    clustered = compare(ANSWERS.with_row_index("id"), "gold", **call, cluster="id")
    rows = compare(ANSWERS, "gold", **call)
    assert clustered[".change"].to_list() == pytest.approx(rows[".change"].to_list(), abs=1e-9)
    assert clustered[".std_error"].to_list() == pytest.approx(rows[".std_error"].to_list(), rel=0.02)
    selected = ANSWERS["other"].mean() - ANSWERS["guess"].mean()  # pyright: ignore[reportOptionalOperand, reportOperatorIssue] - means of numbers
    assert rows[".change"][2] == pytest.approx(selected)
    gate = tf.check(tf.compare_models(tf.accuracy), above=-0.2)(ANSWERS, "gold", **call)
    assert gate[".verdict"].item() == "pass"


def test_changes_of_disparities_are_those_of_the_groups() -> None:
    call: dict[str, Any] = {"one": "guess", "other": "other", "judged": "labels"}
    names = (".one", ".other", ".change", ".std_error")
    groups = tf.compare_models(tf.accuracy)(ANSWERS, "gold", **call, group_by="group").select("group", *names)
    (_, *first), (_, *second) = groups.rows()
    signed = tf.accuracy.difference("group", to="false", signed=True)
    row = tf.compare_models(signed)(ANSWERS, "gold", **call).select(*names).row(0)
    # values are of the same weights of the judge, which suit the changes of groups
    assert row[:3] == pytest.approx([two - one for one, two in zip(first[:3], second[:3], strict=True)], abs=1e-9)
    assert row[3] == pytest.approx(math.hypot(first[3], second[3]), rel=0.06)
    # metrics of several features in one call are those of single calls
    several = tf.compare_models(signed, tf.accuracy)(ANSWERS, "gold", **call)
    assert several.select(*names).row(0) == pytest.approx(row, abs=1e-12)
    # without a sign, and to the rest, of two groups it is the same but for the sign of either value
    for plain in (tf.accuracy.difference("group"), tf.accuracy.difference("group", to="rest")):
        unsigned = tf.compare_models(plain)(ANSWERS, "gold", **call).select(*names).row(0)
        assert unsigned[:2] == pytest.approx([abs(row[0]), abs(row[1])], abs=1e-9)
        assert unsigned[2] == pytest.approx(abs(row[1]) - abs(row[0]), abs=1e-9)
    # limits are those by people alone, nearer by as much as the error is smaller; in clusters they are normal
    rows = ANSWERS.with_row_index("id")
    for metric in (signed, tf.equalized_odds("group"), tf.accuracy.ratio("group", to="overall")):
        compare, columns = tf.compare_models(metric), (*names, ".lower", ".upper")
        kinds: tuple[dict[str, Any], ...] = ({}, {"cluster": "id"}, {"judged": None})
        own, clustered, alone = (compare(rows, "gold", **call | more).select(columns).row(0) for more in kinds)
        assert clustered[:3] == pytest.approx(own[:3], abs=1e-9)
        assert clustered[5] - clustered[4] == pytest.approx(2 * 1.959963984540054 * clustered[3])
        assert own[3] <= alone[3]
        for limit in (4, 5):
            distance = (own[limit] - own[2]) / (alone[limit] - alone[2])
            assert distance == pytest.approx(own[3] / alone[3])


@pytest.mark.simulation
@pytest.mark.parametrize(("judge", "better"), [(0.6, 0.12), (0.9, 0.12), (0.99, 0.12), (0.9, 0.5)])
def test_intervals_of_changes_of_models_cover(judge: float, better: float) -> None:
    data = simulated(5, 1_000, 100, 1_000, judge, 0.4)
    is_better = pl.Series(np.random.default_rng(6).random(len(data)) < better)
    data = data.with_columns(other=pl.when(is_better).then("truth").otherwise("guess"))
    signed: dict[str, Any] = {"to": "0", "signed": True}
    compare = tf.compare_models(tf.accuracy, tf.f_meas, tf.accuracy.difference("group", **signed))
    call: dict[str, Any] = {"one": "guess", "other": "other"}
    true = compare(data, "truth", **call).select(".metric", pl.col(".change").alias("true"))
    both, alone = (compare(data, "gold", **call, group_by="draw", **own) for own in WITH_AND_WITHOUT)
    covers, width = pl.col("true").is_between(".lower", ".upper").mean(), (pl.col(".upper") - pl.col(".lower")).mean()
    by_metric = [
        own.join(true, on=".metric").group_by(".metric", maintain_order=True).agg(covers, width.alias("width"))
        for own in (both, alone)
    ]
    for (metric, coverage, own), (_, of_people, most) in zip(by_metric[0].rows(), by_metric[1].rows(), strict=True):
        # few rows change, and intervals of people alone are wide then
        assert 0.925 < coverage <= max(0.975, of_people + 0.02), metric
        assert own < 1.02 * most, metric

"""Values from labels of people for few rows and of a judge for all: ppi_py, arithmetic on rows, simulation."""

import math
import warnings
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from judged_data import ANSWERS, WITH_AND_WITHOUT, simulated

import tidyfair as tf
from tidyfair.errors import ArgumentError, ColumnError, LabelError, UndefinedWarning

PPI_PY = {
    ("prevalence", "labels", False): (0.4120228163037409, 0.33176483001074014, 0.4922808025967416),
    ("accuracy", "labels", False): (0.7268996019460416, 0.651638189858027, 0.8021610140340563),
    ("prevalence", "scores", False): (0.416057761732852, 0.3545014102165502, 0.47761411324915387),
    ("accuracy", "scores", False): (0.7300842358604093, 0.6724134469869396, 0.7877550247338789),
    ("prevalence", "labels", True): (0.40735659128516266, 0.3098030423736011, 0.5049101401967242),
    ("accuracy", "labels", True): (0.6627081908017067, 0.5661366755600548, 0.7592797060433587),
    ("prevalence", "scores", True): (0.38197544642857145, 0.3130854495571733, 0.4508654432999696),
    ("accuracy", "scores", True): (0.7122209821428571, 0.6470915303451236, 0.7773504339405907),
}
"""`ppi_mean_pointestimate` and the limits of `ppi_mean_ci` (95 %) of ppi_python 0.2.3, on the rows of `answers`."""
BOTH: dict[str, Any] = {"judged": "labels", "interval": "auto"}

COUNTED: tuple[dict[str, Any], ...] = ({}, {"cluster": "person"})


GROUPS = tf.metric_set(tf.prevalence.difference("group"), tf.accuracy.difference("group"))


def values(metric: Any, data: pl.DataFrame = ANSWERS, **options: Any) -> pl.DataFrame:
    """The values of groups."""
    return metric.by_group(data, "gold", "guess", **BOTH | options)


@pytest.mark.parametrize("judge", ["labels", "scores"])
def test_values_and_errors_equal_those_of_ppi_py(judge: str) -> None:
    rows = values(GROUPS, judged=judge).select(".metric", "group", ".estimate", ".std_error", ".judge_weight").rows()
    assert len(rows) == 4
    for metric, group, estimate, error, weight in rows:
        expected, lower, upper = PPI_PY[metric, judge, group]
        expected_error = (upper - lower) / 2 / 1.959963984540054
        if judge == "scores":
            # both have the power 1
            assert weight == 1
            assert estimate == pytest.approx(expected, abs=1e-12)
            assert error == pytest.approx(expected_error, rel=1e-3)
        else:
            # ppi_py takes the variance of the judge from all rows, not from each part
            assert estimate == pytest.approx(expected, abs=0.2 * error)
            assert error == pytest.approx(expected_error, rel=0.005)


def test_differences_are_those_of_the_values_of_groups_and_their_errors() -> None:
    difference = tf.accuracy.difference("group", to="false", signed=True)
    result = difference(ANSWERS, "gold", "guess", **BOTH).row(0, named=True)
    groups = values(difference)
    assert result[".method"] == "prediction_powered"
    assert result[".estimate"] == pytest.approx(groups[".estimate"][1] - groups[".estimate"][0], abs=1e-12)
    assert result[".std_error"] == pytest.approx(math.hypot(*groups[".std_error"]), rel=1e-9)
    # Newcombe's limits, of those of the groups
    (value, low, high), (other, other_low, other_high) = groups.select(".estimate", ".lower", ".upper").rows()
    assert result[".lower"] == pytest.approx(other - value - math.hypot(other - other_low, high - value), abs=1e-9)
    assert result[".upper"] == pytest.approx(other - value + math.hypot(other_high - other, value - low), abs=1e-9)


def by_rows(influence: Any, value: Any, data: pl.DataFrame) -> tuple[float, float, float]:
    """The value, its error and the weight of the judge, from the rows of one group one by one."""
    gold, judge, guess = (data[name].to_numpy().astype(float) for name in ("gold", "labels", "guess"))
    people = ~np.isnan(gold)
    share = people.mean()

    def part(truth: Any, rows: Any) -> tuple[float, Any]:
        own, of_rows = value(truth[rows], guess[rows]), np.zeros(len(truth))
        of_rows[rows] = influence(truth[rows], guess[rows], own)
        return own, of_rows

    (ours, of_people), (labelled, of_labelled), (all_rows, of_all) = (
        part(gold, people),
        part(judge, people),
        part(judge, np.ones(len(gold), dtype=bool)),
    )
    error, of_error = (labelled - all_rows) / (1 - share), (of_labelled - of_all) / (1 - share)
    weight = float(np.clip((of_people @ of_error) / (of_error @ of_error), 0, 1))
    return ours - weight * error, float(np.sqrt(((of_people - weight * of_error) ** 2).sum())), weight


@pytest.mark.parametrize("name", ["sens", "precision", "f_meas"])
def test_values_equal_those_of_influences_of_rows(name: str) -> None:
    def counts(truth: Any, guess: Any) -> tuple[Any, Any]:
        hits = truth * guess
        of = {"sens": truth, "precision": guess, "f_meas": (truth + guess) / 2}[name]
        return hits, of

    def value(truth: Any, guess: Any) -> float:
        hits, of = counts(truth, guess)
        return float(hits.sum() / of.sum())

    def influence(truth: Any, guess: Any, own: float) -> Any:
        hits, of = counts(truth, guess)
        return (hits - own * of) / of.sum()

    metric = getattr(tf, name)
    for row in values(metric.difference("group")).iter_rows(named=True):
        data = ANSWERS.filter(pl.col("group") == row["group"])
        expected, error, weight = by_rows(influence, value, data)
        assert row[".estimate"] == pytest.approx(expected, abs=1e-9)
        assert row[".judge_weight"] == pytest.approx(weight, abs=1e-8)
        if name != "f_meas":
            assert row[".std_error"] == pytest.approx(error, rel=1e-8)
        assert row[".lower"] < expected < row[".upper"]


@pytest.mark.parametrize("name", ["accuracy", "f_meas", "mcc", "bal_accuracy", "kap", "npv", "j_index", "spec"])
def test_columns_of_groups_are_what_values_are_made_of(name: str) -> None:
    metric = getattr(tf, name).difference("group")
    groups = values(metric)
    known = ANSWERS.drop_nulls("gold")
    made_of = {
        ".people": metric.by_group(known, "gold", "guess"),
        ".judge_labelled": metric.by_group(known, "labels", "guess"),
        ".judge": metric.by_group(ANSWERS, "labels", "guess"),
    }
    for column, own in made_of.items():
        assert groups[column].to_list() == pytest.approx(own[".estimate"].to_list(), abs=1e-12)
    assert groups[".n"].to_list() == made_of[".people"][".n"].to_list()
    shares = ANSWERS.group_by("group").agg(pl.col("gold").is_not_null().mean()).sort("group")["gold"].to_list()
    assert groups[".labelled_share"].to_list() == pytest.approx(shares)
    error = (pl.col(".judge_labelled") - pl.col(".judge")) / (1 - pl.col(".labelled_share"))
    expected = groups.select(pl.col(".people") - pl.col(".judge_weight") * error).to_series().to_list()
    assert groups[".estimate"].to_list() == pytest.approx(expected, abs=1e-12)
    assert (groups[".labels_worth"] >= groups[".denominator"] * 0.999).all()


@pytest.mark.parametrize("estimator", ["macro", "micro", "macro_weighted"])
def test_several_labels(estimator: Any) -> None:
    i = np.arange(400)
    rows = pl.DataFrame(
        {
            "truth": np.array(["a", "b", "c"])[i * 7 % 10 % 3],
            "labels": np.array(["a", "b", "c"])[(i * 7 % 10 + (i % 8 == 0)) % 3],
            "guess": np.array(["a", "b", "c"])[(i * 7 % 10 + (i % 5 == 0)) % 3],
        }
    ).with_columns(pl.when(pl.Series(i * 11 % 23 < 6)).then("truth").alias("gold"))
    row = values(tf.sens, rows, estimator=estimator).row(0, named=True)
    known = rows.drop_nulls("gold")
    for column, data, truth in (
        (".people", known, "gold"),
        (".judge_labelled", known, "labels"),
        (".judge", rows, "labels"),
    ):
        expected = tf.sens(data, truth, "guess", estimator=estimator)[".estimate"].item()
        assert row[column] == pytest.approx(expected)
    assert 0 < row[".judge_weight"] < 1
    assert row[".lower"] < row[".estimate"] < row[".upper"]


def test_scores_of_0_and_1_are_labels_and_labels_need_no_numbers() -> None:
    expected = values(GROUPS)
    assert values(GROUPS, ANSWERS.with_columns(pl.col("labels").cast(pl.Float64))).equals(expected)
    texts = ANSWERS.with_columns(pl.col("gold", "labels", "guess").replace_strict({1: "yes", 0: "no"}))
    assert values(GROUPS, texts, pos_label="yes").drop(".level").equals(expected.drop(".level"))
    # 0 and 1 as scores, which are not the labels
    scores = texts.with_columns(ANSWERS["labels"].cast(pl.Float64))
    numbers = values(GROUPS, scores, pos_label="yes").select(pl.col(pl.Float64)).to_numpy()
    assert numbers == pytest.approx(expected.select(pl.col(pl.Float64)).to_numpy())
    with pytest.raises(LabelError, match=r"holds scores of one event among .*: give it as `pos_label=`"):
        tf.accuracy(
            pl.DataFrame({"gold": ["a", "b", "c"], "labels": [0.1, 0.2, 0.3], "guess": ["a", "b", "b"]}),
            "gold",
            "guess",
            judged="labels",
        )


def test_labels_for_all_rows_are_those_of_people_alone() -> None:
    whole = ANSWERS.with_columns(gold="truth")
    for metric in (GROUPS, tf.f_meas.difference("group"), tf.mcc):
        both, alone = values(metric, whole), metric.by_group(whole, "gold", "guess", interval="auto")
        shared = [".estimate", ".lower", ".upper", ".std_error", ".n", ".denominator", ".status"]
        for name in shared[:-1]:
            assert both[name].to_list() == pytest.approx(alone[name].to_list(), abs=1e-9), name
        assert both[".judge_weight"].to_list() == [0] * len(both)


def test_a_judge_that_knows_nothing_has_no_weight_and_one_without_labels_is_not_asked() -> None:
    constant = values(tf.sens, ANSWERS.with_columns(labels=pl.lit(0)))
    assert constant.select(".judge_weight", ".judge", ".status").row(0) == (0, None, "ok")
    assert constant[".estimate"].item() == tf.sens(ANSWERS, "gold", "guess")[".estimate"].item()
    is_asked = pl.col("gold").is_not_null() | pl.col("group")
    silent = values(tf.accuracy.difference("group"), ANSWERS.with_columns(pl.when(is_asked).then("labels")))
    assert silent.select(".estimate", ".judge_weight").row(0) == (silent[".people"][0], 0)
    assert silent[".judge_weight"][1] > 0


def test_metrics_that_read_no_truth_are_of_all_rows() -> None:
    parity = tf.demographic_parity("group")
    both, alone = (parity(ANSWERS, "gold", "guess", interval="auto", **own) for own in WITH_AND_WITHOUT)
    assert both.equals(alone)
    columns = values(parity)
    assert columns[".judge_weight"].null_count() == 2
    assert columns[".n"].sum() == 600


def test_rogan_and_gladen_is_the_value_with_another_weight() -> None:
    row = values(tf.prevalence).row(0, named=True)
    judge = tf.metric_set(tf.sens, tf.spec)(ANSWERS, "gold", "labels")[".estimate"].to_list()
    corrected = row[".people"] - (row[".judge_labelled"] - row[".judge"]) / (sum(judge) - 1)
    apparent = ANSWERS["labels"].mean()
    assert isinstance(apparent, float)
    assert corrected == pytest.approx((apparent + judge[1] - 1) / (sum(judge) - 1), abs=1e-12)
    assert row[".estimate"] == pytest.approx(corrected, abs=row[".std_error"])


# Labels by design, weights, clusters


def drawn_by_stratum(seed: int, times: int = 1) -> pl.DataFrame:
    """Rows of two strata, of which people label one third of one and a twelfth of the other."""
    random = np.random.default_rng(seed)
    rows = 400 * times
    stratum = np.arange(rows) % 2
    truth = random.random(rows) < np.where(stratum == 0, 0.7, 0.3)
    judge = np.where(random.random(rows) < 0.85, truth, ~truth)
    guess = np.where(random.random(rows) < np.where(stratum == 0, 0.9, 0.6), truth, ~truth)
    probability = np.where(stratum == 0, 1 / 3, 1 / 12)
    gold = pl.Series(random.random(rows) < probability)
    return pl.DataFrame(
        {
            "draw": np.arange(rows) // 400,
            "stratum": stratum,
            "truth": truth,
            "labels": judge,
            "guess": guess,
            "p": probability,
        }
    ).with_columns(pl.when(gold).then("truth").alias("gold"))


def test_labels_by_design_are_weighted_by_their_probability() -> None:
    data = drawn_by_stratum(0)
    row = values(tf.accuracy, data, label_probability="p").row(0, named=True)
    known = data.drop_nulls("gold")
    weights = 1 / known["p"].to_numpy()
    right, by_judge = ((known[truth] == known["guess"]).to_numpy() for truth in ("gold", "labels"))
    assert row[".people"] == pytest.approx(np.average(right, weights=weights))
    assert row[".judge_labelled"] == pytest.approx(np.average(by_judge, weights=weights))
    assert row[".judge"] == pytest.approx((data["labels"] == data["guess"]).mean())
    # the same probability for all changes nothing
    equal = values(tf.accuracy, data.with_columns(p=0.2), label_probability="p")
    with pytest.raises(ColumnError, match="`label_probability`: there is no column 'q'"):
        values(tf.accuracy, data, label_probability="q")
    plain = values(tf.accuracy, data)
    for name in (".estimate", ".std_error", ".lower", ".upper"):
        assert equal[name].item() == pytest.approx(plain[name].item(), rel=1e-9)
    for wrong in (0.0, 1.5, None):
        with pytest.raises(ColumnError, match="`label_probability`: 'p' must be above 0 and at most 1"):
            values(tf.accuracy, data.with_columns(p=pl.lit(wrong, pl.Float64)), label_probability="p")


def test_weights_do_not_depend_on_their_scale_and_equal_ones_change_nothing() -> None:
    one, ten, none = (
        values(GROUPS, ANSWERS.with_columns(w=float(w)), case_weights="w") if w else values(GROUPS) for w in (1, 10, 0)
    )
    for name in (".estimate", ".std_error", ".judge_weight", ".lower"):
        assert one[name].to_list() == pytest.approx(none[name].to_list(), rel=1e-9)
        assert ten[name].to_list() == pytest.approx(one[name].to_list(), rel=1e-9)


def test_rows_that_are_repeated_in_clusters_say_no_more_than_once() -> None:
    data = ANSWERS.with_row_index("person")
    twice = pl.concat([data, data])
    for metric in (tf.accuracy.difference("group"), tf.f_meas.difference("group")):
        once, double = (values(metric, rows, cluster="person") for rows in (data, twice))
        for name in (".estimate", ".std_error", ".lower", ".upper"):
            assert double[name].to_list() == pytest.approx(once[name].to_list(), rel=0.02), name
        rows = values(metric, data)
        assert once[".estimate"].to_list() == pytest.approx(rows[".estimate"].to_list(), abs=1e-9)
        # small samples of clusters have other corrections
        assert once[".std_error"].to_list() == pytest.approx(rows[".std_error"].to_list(), rel=0.06)


def test_groups_that_share_clusters_are_correlated() -> None:
    # each person is in both groups with the same answers: their difference does not vary
    data = ANSWERS.with_row_index("person").with_columns(group=pl.lit("a"))
    both = pl.concat([data, data.with_columns(group=pl.lit("b"))])
    difference = tf.accuracy.difference("group", to="a", signed=True)
    apart, together = (difference(both, "gold", "guess", **BOTH, **own)[".std_error"].item() for own in COUNTED)
    assert together < 0.01 * apart


# Calls


def test_tallies_add_up_and_outer_groups_are_apart() -> None:
    metrics = tf.metric_set(GROUPS, tf.f_meas)
    parts = [metrics.tally(part, "gold", "guess", judged="labels") for part in (ANSWERS[:200], ANSWERS[200:])]
    whole = metrics(ANSWERS, "gold", "guess", **BOTH)
    total = metrics.compute(parts[0] + parts[1], interval="auto")
    assert total.select(pl.col(pl.Float64)).to_numpy() == pytest.approx(whole.select(pl.col(pl.Float64)).to_numpy())
    folds = pl.concat([ANSWERS[:300].with_columns(fold=1), ANSWERS[300:].with_columns(fold=2)])
    in_folds = metrics(folds.group_by("fold"), "gold", "guess", **BOTH)
    alone = metrics(ANSWERS[300:], "gold", "guess", **BOTH)
    own = in_folds.filter(pl.col("fold") == 2).select(pl.col(pl.Float64))
    assert own.to_numpy() == pytest.approx(alone.select(pl.col(pl.Float64)).to_numpy())


def test_engines(engine: Any) -> None:
    result = pl.DataFrame(tf.accuracy.difference("group")(engine(ANSWERS), "gold", "guess", judged="scores"))
    expected = tf.accuracy.difference("group")(ANSWERS, "gold", "guess", judged="scores")
    assert result[".estimate"].item() == pytest.approx(expected[".estimate"].item())


def test_thresholds_have_the_values_of_their_labels() -> None:
    scored = ANSWERS.with_columns(pl.Series("score", np.arange(600) * 37 % 100 / 100))
    both = tf.accuracy(scored, "gold", probs="score", threshold=[0.3, 0.6], **BOTH)
    for threshold, estimate, lower in both.select(".threshold", ".estimate", ".lower").rows():
        alone = tf.accuracy(scored, "gold", (pl.col("score") >= threshold).cast(pl.Int64).alias("at"), **BOTH)
        assert alone.select(".estimate", ".lower").row(0) == pytest.approx((estimate, lower))


def test_groups_with_fewer_than_two_labels_have_no_value() -> None:
    is_first = (pl.col("gold").is_not_null().cum_sum().over("group") == 1) | pl.col("group")
    few = ANSWERS.with_columns(pl.when(is_first).then("gold").alias("gold"))
    with pytest.warns(UndefinedWarning, match=r"too few labels"):
        result = tf.accuracy.difference("group")(few, "gold", "guess", **BOTH)
    assert result[".estimate"].item() is None
    groups = values(tf.accuracy.difference("group"), few, on_undefined="ignore")
    assert groups.select(".estimate", ".n", ".status").row(0) == (None, 1, "too_few_labels")
    assert groups[".estimate"][1] is not None


def test_data_without_labels_or_rows_have_no_values() -> None:
    difference = tf.accuracy.difference("group", to="rest")
    for gold in (pl.lit(None), pl.lit(None, pl.Int64)):
        result = difference(ANSWERS.with_columns(gold=gold), "gold", "guess", **BOTH, on_undefined="ignore")
        assert result[".estimate"].item() is None
        groups = values(difference, ANSWERS.with_columns(gold=gold), on_undefined="ignore")
        assert groups[".status"].to_list() == ["zero_denominator"] * 2
    assert difference(ANSWERS.head(0), "gold", "guess", **BOTH)[".estimate"].item() is None
    # a group without labels is no part of the rest
    data = three_regions()
    unknown = data.with_columns(pl.when(pl.col("region") != "z").then("gold").alias("gold"))
    without = data.filter(pl.col("region") != "z")
    for metric in (tf.accuracy, tf.f_meas):
        compare = tf.compare_groups(metric.difference("region"), to="rest")
        rows = compare(unknown, "gold", "guess", judged="labels")
        expected = compare(without, "gold", "guess", judged="labels")
        columns = ["region", ".estimate", ".estimate_reference", ".lower", ".upper", ".p_value"]
        assert rows.head(2).select(columns).rows() == expected.select(columns).rows()


def test_more_than_two_groups_and_minima() -> None:
    data = ANSWERS.with_columns(pl.Series("region", np.array(["x", "y", "z"])[np.arange(600) % 3]))
    spread = tf.accuracy.difference("region")(data, "gold", "guess", **BOTH).row(0, named=True)
    groups = values(tf.accuracy.difference("region"), data)
    estimates = groups[".estimate"].to_list()
    assert spread[".method"] == "prediction_powered, pairwise"
    assert spread[".estimate"] == pytest.approx(max(estimates) - min(estimates))
    assert spread[".lower"] <= spread[".estimate"] <= spread[".upper"]
    least = tf.accuracy.group_minimum("region")(data, "gold", "guess", **BOTH).row(0, named=True)
    assert least[".estimate"] == pytest.approx(min(estimates))
    alone = tf.accuracy.difference("region")(data, "gold", "guess", interval="auto").row(0, named=True)
    assert spread[".upper"] - spread[".lower"] < alone[".upper"] - alone[".lower"]


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        (tf.accuracy, {"interval": "bootstrap"}, "`interval='bootstrap'` does not support `judged`"),
        (tf.accuracy, {"na_rm": False}, "leave `na_rm=False` out"),
        (tf.accuracy, {"suppress_below": 5}, "`judged` and `suppress_below` cannot be combined"),
        (tf.accuracy, {"truth": None}, "`judged` needs `truth`"),
        (tf.accuracy, {"judged": None, "label_probability": "scores"}, "`label_probability` needs `judged`"),
        (tf.accuracy, {"design": tf.surveys.design(weights="scores")}, "`design` and `judged` cannot be combined"),
        (tf.roc_auc, {"estimate": None, "probs": "scores"}, "roc_auc is not computed from counts of labels in a group"),
        (
            tf.accuracy.difference("group", to="rest", signed=True),
            {"interval": "auto"},
            "There is no interval of accuracy_difference from labels of people and of a judge together",
        ),
        (tf.accuracy.difference("labels"), {}, "`judged`: 'labels' already defines groups"),
        (tf.accuracy, {"judged": pl.col("labels").cast(pl.String).alias("text")}, "holds other labels than the truth"),
        (tf.accuracy, {"judged": (pl.col("labels") + 0.5).alias("high")}, "holds other labels than the truth"),
        (tf.accuracy, {"judged": (pl.col("labels") + 5).alias("five")}, "holds other labels than the truth"),
        (tf.accuracy, {"judged": "gold"}, "'gold' has no value in any row without a label by people"),
        (
            tf.accuracy,
            {"judged": pl.col("labels").replace([0, 1], None).alias("none")},
            "'none' has no value in any",
        ),
    ],
)
def test_what_cannot_use_labels_of_both_is_refused(metric: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ArgumentError, ColumnError), match=message.replace("(", r"\(")):
        metric(ANSWERS, **{"truth": "gold", "estimate": "guess", "judged": "labels", **options})


def test_counts_and_tests_refuse_labels_of_both(tmp_path: Any) -> None:
    @tf.class_metric()
    def hits(tp: Any) -> Any:
        """Number of true positives."""
        return tp

    with pytest.raises(ArgumentError, match="hits depends on the number of rows"):
        hits(ANSWERS, "gold", "guess", judged="labels")
    with pytest.raises(ArgumentError, match="conf_mat counts rows by the labels of people"):
        cast("Any", tf.conf_mat)(ANSWERS, "gold", "guess", judged="labels")
    difference = tf.accuracy.difference("group")
    test = tf.inference.disparity_test(difference)
    with pytest.raises(ArgumentError, match=r"'judged' is an option of values, .* shuffles or counts rows"):
        test(ANSWERS, "gold", "guess", judged="labels")
    tally = difference.tally(ANSWERS, "gold", "guess", judged="labels")
    with pytest.raises(ArgumentError, match=r"does not use the labels of a judge, .* compare by influences"):
        test.compute(tally)
    with pytest.raises(ArgumentError, match="`interval='bootstrap'` does not support `judged`"):
        difference.compute(tally, interval="bootstrap")
    with pytest.raises(ArgumentError, match="`suppress_below`: values by labels of people and a judge need all cells"):
        tf.save_state(tally, tmp_path / "tally.parquet", suppress_below=5)


def test_saved_states_and_batches_have_the_values_of_all_rows(tmp_path: Any) -> None:
    metrics = tf.metric_set(tf.accuracy, tf.f_meas.difference("group"))
    whole = metrics(ANSWERS, "gold", "guess", **BOTH)
    tally = metrics.tally(ANSWERS, "gold", "guess", judged="labels")
    tf.save_state(tally, tmp_path / "tally.parquet")
    empty = metrics.tally(ANSWERS.head(0), "gold", "guess", judged="labels")
    assert metrics.compute(tf.load_state(tmp_path / "tally.parquet", empty), interval="auto").equals(whole)
    with pytest.raises(ArgumentError, match="was counted with different keys"):
        tf.load_state(tmp_path / "tally.parquet", metrics.tally(ANSWERS.head(0), "gold", "guess", judged="scores"))
    batches = tf.Accumulator(metrics, "gold", "guess", judged="labels")
    for rows in (ANSWERS[:200], ANSWERS[200:]):
        batches.update(rows)
    in_batches = batches.compute(interval="auto").select(pl.col(pl.Float64)).to_numpy()
    assert in_batches == pytest.approx(whole.select(pl.col(pl.Float64)).to_numpy())


# Gates and comparisons


def test_gates_and_comparisons_of_groups_judge_the_values_of_both() -> None:
    difference = tf.accuracy.difference("group")
    value = difference(ANSWERS, "gold", "guess", **BOTH, conf_level=0.9).row(0, named=True)
    verdict = tf.check(difference, below=value[".upper"] + 0.001)(ANSWERS, "gold", "guess", judged="labels")
    assert verdict.select(".estimate", ".upper", ".verdict").row(0) == (value[".estimate"], value[".upper"], "pass")
    stricter = tf.check(difference, below=value[".upper"] - 0.001)(ANSWERS, "gold", "guess", judged="labels")
    assert stricter[".verdict"].item() == "not enough evidence"
    compare = tf.compare_groups(tf.accuracy.difference("group"), to="false")
    row = compare(ANSWERS, "gold", "guess", judged="labels").filter(pl.col("group")).row(0, named=True)
    signed = tf.accuracy.difference("group", to="false", signed=True)(ANSWERS, "gold", "guess", **BOTH)
    shown = (row[".disparity"], row[".lower"], row[".upper"])
    assert shown == pytest.approx(signed.select(".estimate", ".lower", ".upper").row(0))
    assert (row[".test"], row[".p_value"] > 0.05) == ("interval", row[".lower"] < 0 < row[".upper"])
    gate = tf.check(compare, below=0.3)(ANSWERS, "gold", "guess", judged="labels")
    assert gate[".verdict"].to_list().count("pass") == 1


def three_regions() -> pl.DataFrame:
    """Rows of three regions that were labelled at different rates."""
    number = np.arange(600)
    is_labelled = np.array([number % 3 == 0, number % 7 < 3, number % 11 < 2]).T[number, number % 3]
    region = pl.Series("region", np.array(["x", "y", "z"])[number % 3])
    return ANSWERS.with_columns(region, gold=pl.when(pl.Series(is_labelled)).then("truth"))


@pytest.mark.parametrize("context", ["rest", "overall"])
def test_labels_in_the_rest_stand_for_the_rows_of_their_group(context: Any) -> None:
    data = three_regions()
    rows = tf.compare_groups(tf.accuracy.difference("region"), to=context)(data, "gold", "guess", judged="labels")
    right = {name: (data[name] == data["guess"]).cast(pl.Float64).to_numpy() for name in ("gold", "labels")}
    people, region = data["gold"].is_not_null().to_numpy(), data["region"].to_numpy()
    hits, judged = np.where(people, np.nan_to_num(right["gold"]), 0.0), right["labels"]
    for row in rows.iter_rows(named=True):
        pool = (region != row["region"]) if context == "rest" else np.ones(len(data), dtype=bool)
        size, of_people, of_labelled = pool.sum(), np.zeros(len(data)), np.zeros(len(data))
        values = [0.0, 0.0]
        for one in np.unique(region[pool]):
            group = pool & (region == one)
            known = group & people
            for index, (numbers, added) in enumerate(((hits, of_people), (judged, of_labelled))):
                mean = numbers[known].mean()
                values[index] += mean * group.sum() / size
                # a stratum of its size, and the mean of its labels
                added[known] += (numbers[known] - mean) * group.sum() / size / known.sum()
                added[group] += mean / size
        for index, added in enumerate((of_people, of_labelled)):
            added[pool] -= values[index] / size
        of_all = np.where(pool, judged - judged[pool].mean(), 0.0) / size
        share = (people & pool).sum() / size
        error, of_error = (values[1] - judged[pool].mean()) / (1 - share), (of_labelled - of_all) / (1 - share)
        weight = np.clip((of_people @ of_error) / (of_error @ of_error), 0, 1)
        assert row[".estimate_reference"] == pytest.approx(values[0] - weight * error, abs=1e-9)
        of_rest = of_people - weight * of_error
        if context == "rest":
            group = data.filter(pl.col("region") == row["region"])
            own = tf.accuracy(group, "gold", "guess", **BOTH)[".std_error"].item()
            assert row[".std_error"] == pytest.approx(math.hypot(own, math.sqrt(of_rest @ of_rest)), rel=1e-6)
    # a disparity is that of the farthest group
    for metric in (tf.accuracy, tf.f_meas):
        table = tf.compare_groups(metric.difference("region"), to=context)(data, "gold", "guess", judged="labels")
        farthest = tf.accuracy.difference if metric is tf.accuracy else tf.f_meas.difference
        result = farthest("region", to=context)(data, "gold", "guess", **BOTH).row(0, named=True)
        assert result[".estimate"] == pytest.approx(table[".disparity"].abs().max(), abs=1e-12)
        assert result[".method"] == "prediction_powered, pairwise"
        assert result[".lower"] <= result[".estimate"] <= result[".upper"]


def test_labels_with_known_probabilities_need_no_other_weights_in_the_rest() -> None:
    data = drawn_by_stratum(0, times=3)
    call: dict[str, Any] = {"judged": "labels", "label_probability": "p"}
    rest = tf.compare_groups(tf.accuracy.difference("stratum"), to="rest")(data, "gold", "guess", **call)
    first, second = rest[".estimate"].to_list()
    # the rest of two groups is the other one
    assert rest[".estimate_reference"].to_list() == pytest.approx([second, first], abs=1e-12)


def test_pairs_of_groups_are_tested_by_their_intervals() -> None:
    difference = tf.accuracy.difference("region")
    data = three_regions()
    pairs = tf.inference.pairwise(difference)(data, "gold", "guess", judged="labels")
    groups = values(difference, data).rows_by_key("region", named=True, unique=True)
    for row in pairs.iter_rows(named=True):
        one, other = groups[row[".group"]], groups[row[".other"]]
        assert row[".disparity"] == pytest.approx(one[".estimate"] - other[".estimate"], abs=1e-12)
        assert row[".std_error"] == pytest.approx(math.hypot(one[".std_error"], other[".std_error"]))
        assert (row[".test"], row[".method"], row[".statistic"]) == ("interval", "prediction_powered", None)
        normal = math.erfc(abs(row[".disparity"]) / row[".std_error"] / math.sqrt(2))
        assert row[".p_value"] == pytest.approx(normal, abs=0.05)
    tally = difference.tally(data, "gold", "guess", judged="labels")
    assert tf.inference.pairwise(difference).compute(tally).equals(pairs)


def test_more_labels_make_intervals_as_narrow_as_said() -> None:
    random = np.random.default_rng(7)
    truth = random.random(20_000) < 0.4
    data = pl.DataFrame(
        {
            "truth": truth,
            "labels": np.where(random.random(20_000) < 0.9, truth, ~truth),
            "guess": np.where(random.random(20_000) < 0.75, truth, ~truth),
        }
    )

    def labelled(count: int) -> pl.DataFrame:
        return data.with_columns(pl.when(pl.int_range(pl.len()) < count).then("truth").alias("gold"))

    now = values(tf.accuracy, labelled(400))
    for width in (0.06, 0.04):
        needed = tf.inference.labels_needed(now, width)[".labels_needed"].item()
        then = values(tf.accuracy, labelled(needed))
        assert then.select(pl.col(".upper") - pl.col(".lower")).item() == pytest.approx(width, rel=0.05)
    # not even all rows are enough
    assert tf.inference.labels_needed(now, 0.001)[".labels_needed"].item() is None
    with pytest.raises(ColumnError, match=r"`groups` lacks '\.people'"):
        tf.inference.labels_needed(tf.accuracy.by_group(data, "truth", "guess", interval="auto"), 0.1)


# Simulations


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("labels", "rows", "judge", "share"),
    [
        (60, 600, 0.9, 0.4),
        (40, 800, 0.85, 0.45),
        (100, 1_000, 0.9, 0.2),
        (100, 1_000, 0.5, 0.4),
        (300, 1_000, 0.9, 0.4),
    ],
)
def test_intervals_of_both_cover_and_are_not_wider_than_those_of_people(
    labels: int, rows: int, judge: float, share: float
) -> None:
    signed: dict[str, Any] = {"to": "0", "signed": True}
    metrics = tf.metric_set(
        tf.accuracy,
        tf.sens,
        tf.precision,
        tf.f_meas,
        tf.mcc,
        tf.bal_accuracy,
        tf.accuracy.difference("group", **signed),
        tf.accuracy.ratio("group", **signed),
        tf.f_meas.difference("group", **signed),
    )
    data = simulated(1, 3_000, labels, rows, judge, share)
    true = simulated(2, 1, 0, 4_000_000, judge, share)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = metrics(true, "truth", "guess").select(".metric", pl.col(".estimate").alias("true"))
        both, alone = (
            metrics(data, "gold", "guess", group_by="draw", interval="auto", **own) for own in WITH_AND_WITHOUT
        )
    covers = pl.col("true").is_between(".lower", ".upper").mean()
    width = (pl.col(".upper") - pl.col(".lower")).mean()
    summary = [
        own.join(expected, on=".metric").group_by(".metric", maintain_order=True).agg(covers, width.alias("width"))
        for own in (both, alone)
    ]
    for (metric, coverage, own), (_, _, of_people) in zip(summary[0].rows(), summary[1].rows(), strict=True):
        assert 0.925 < coverage < 0.975, metric
        assert own < 1.02 * of_people, metric


@pytest.mark.simulation
def test_intervals_of_labels_by_design_cover() -> None:
    data = drawn_by_stratum(3, times=3_000)
    true = drawn_by_stratum(4, times=5_000)
    expected = tf.metric_set(tf.accuracy, tf.f_meas)(true, "truth", "guess")[".estimate"].to_list()
    for metric, value in zip((tf.accuracy, tf.f_meas), expected, strict=True):
        options: dict[str, Any] = {"group_by": "draw", "judged": "labels", "interval": "auto"}
        result = metric(data, "gold", "guess", **options, label_probability="p")
        assert 0.93 < result.select(pl.lit(value).is_between(".lower", ".upper").mean()).item() < 0.97
        # without the probabilities people label other rows than those of the question
        biased = metric(data, "gold", "guess", **options)
        assert biased.select(pl.lit(value).is_between(".lower", ".upper").mean()).item() < 0.9


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("judge", "rates", "context"),
    [(0.9, (1, 1, 1), "rest"), (0.9, (0.5, 1, 2), "overall"), (0.6, (1, 1, 1), "rest")],
)
def test_intervals_beside_the_rest_cover(judge: float, rates: tuple[float, ...], context: str) -> None:
    data, true = [three_groups(seed, times, judge, rates) for seed, times in ((7, 250), (8, 500))]
    for metric in (tf.accuracy, tf.f_meas):
        compare = tf.compare_groups(metric.difference("region"), to=context)
        expected = compare(true, "truth", "guess").select("region", pl.col(".disparity").alias("true"))
        rows, alone = (compare(data, "gold", "guess", group_by="draw", **own) for own in WITH_AND_WITHOUT)
        covers = rows.join(expected, on="region").select(pl.col("true").is_between(".lower", ".upper").mean())
        assert 0.925 < covers.item() < 0.975
        width = (pl.col(".upper") - pl.col(".lower")).mean()
        assert rows.select(width).item() < 1.02 * alone.select(width).item()


def three_groups(seed: int, times: int, judge: float, rates: tuple[float, ...]) -> pl.DataFrame:
    """Draws of 800 rows of three regions, which people labelled at some rates, about 150 in all."""
    random = np.random.default_rng(seed)
    size = 800 * times
    region = random.choice(3, size, p=[0.5, 0.3, 0.2])
    truth = random.random(size) < 0.4 + 0.1 * region
    guess = np.where(random.random(size) < 0.8 - 0.04 * region, truth, ~truth)
    rows = {"draw": np.repeat(np.arange(times), 800), "region": region, "truth": truth, "guess": guess}
    labels = np.where(random.random(size) < judge, truth, ~truth)
    is_labelled = random.random(size) < 150 / 800 * np.array(rates)[region]
    return pl.DataFrame(rows | {"labels": labels}).with_columns(
        pl.when(pl.Series(is_labelled)).then("truth").alias("gold")
    )

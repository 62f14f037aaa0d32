"""Comparisons of two models on the same rows, and the probability that a group is the worst."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, gamma, norm, t as student_t
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

import tidyfair as tf
from tidyfair import inference
from tidyfair.datasets import lending

LOANS = lending(1200).select(
    "sex", "race", "fold", "weight", "score", y=pl.col("repaid") == "yes", one=pl.col("approved") == "yes",
    other=pl.col("score") > 0.55,
)  # fmt: skip
FAIR = tf.metric_set(
    tf.accuracy, tf.sens, tf.spec, tf.precision, tf.mcc, tf.demographic_parity("race"), tf.equalized_odds("sex")
)
CALL: dict[str, Any] = {"truth": "y", "one": "one", "other": "other", "times": 300}


def test_values_of_both_models_equal_separate_calls() -> None:
    kinds: list[dict[str, Any]] = [{}, {"group_by": "fold"}, {"case_weights": "weight"}]
    for options in kinds:
        call: dict[str, Any] = {**CALL, **options}
        result = tf.compare_models(FAIR)(LOANS, **call)
        for name in ("one", "other"):
            values = FAIR(LOANS, "y", name, **options, on_undefined="ignore")
            assert result[f".{name}"].to_list() == pytest.approx(values[".estimate"].to_list())
        assert result[".change"].equals((result[".other"] - result[".one"]).rename(".change"))
        assert (result[".lower"] <= result[".upper"]).all()


def cells_of_both(data: pl.DataFrame) -> Any:
    """The rows by truth, first and second prediction."""
    rows = np.zeros((2, 2, 2))
    for truth, one, other in data.select("y", "one", "other").rows():
        rows[int(truth), int(one), int(other)] += 1
    return rows


def mcc_of(counts: Any) -> float:
    """Matthews' correlation of counts by truth and prediction."""
    (tn, fp), (fn, tp) = counts
    return (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))


def change_of_mcc(rows: Any) -> float:
    return mcc_of(rows.sum(axis=1)) - mcc_of(rows.sum(axis=2))


def test_change_of_labels_has_limits_by_leaving_out_rows() -> None:
    part = LOANS.head(300)
    result = tf.compare_models(tf.mcc)(part, "y", one="one", other="other")
    rows = cells_of_both(part) + 0.5
    centre, influences, size = change_of_mcc(rows), [], rows.sum()
    for cell in np.ndindex(2, 2, 2):
        left = min(1.0, rows[cell] / 2)
        without = rows.copy()
        without[cell] -= left
        influences.append((centre - change_of_mcc(without)) / left * (1 - left / size))
    weight, influence = rows.ravel(), np.array(influences)
    variance = (weight * influence**2).sum() - (weight * influence).sum() ** 2 / size
    error = math.sqrt(variance * size / (size - 1))
    assert result[".std_error"].item() == pytest.approx(error, rel=1e-9)
    half = student_t.ppf(0.975, 299) * error
    assert result.select(".lower", ".upper").row(0) == pytest.approx((centre - half, centre + half), rel=1e-5)


def test_error_of_change_is_that_of_rows_drawn_again() -> None:
    result = tf.compare_models(tf.mcc)(LOANS, "y", one="one", other="other")
    rows = cells_of_both(LOANS)
    drawn = np.random.default_rng(2).multinomial(1200, rows.ravel() / 1200, 20_000).reshape(-1, 2, 2, 2)
    assert result[".std_error"].item() == pytest.approx(np.std([*map(change_of_mcc, drawn)]), rel=0.05)


def test_few_changed_rows_leave_room_for_true_change_of_f1() -> None:
    # of 100 rows 2 change on average, four of five times for the better
    shares = np.array([0.392, 0.392, 0.008, 0.002, 0.098, 0.098, 0.002, 0.008])
    cells = pl.DataFrame(
        {"y": [1, 0, 1, 0, 1, 0, 1, 0], "one": [1, 0, 0, 0, 0, 1, 1, 1], "other": [1, 0, 1, 1, 0, 1, 0, 0]}
    )
    shares /= shares.sum()
    runs = 400
    rows = np.random.default_rng(8).multinomial(100, shares, runs)
    data = pl.concat([cells] * runs).with_columns(run=np.repeat(np.arange(runs), 8), rows=rows.ravel())
    result = tf.compare_models(tf.f_meas)(
        data, "y", one="one", other="other", group_by="run", frequency_weights="rows", times=200
    )
    truths = [
        tf.f_meas(cells.with_columns(share=shares), "y", name, case_weights="share")[".estimate"].item()
        for name in ("one", "other")
    ]
    holds = result.select(pl.lit(truths[1] - truths[0]).is_between(".lower", ".upper"))
    assert holds.to_series().mean() >= 0.93


def test_changes_of_disparities_are_of_the_groups_that_have_a_value() -> None:
    # nobody of the third group has the event, so that it has no sensitivity
    groups = pl.DataFrame({"g": ["a"] * 80 + ["b"] * 60 + ["c"] * 20})
    random = np.random.default_rng(3)
    data = groups.with_columns(
        y=pl.Series(random.random(160) < 0.5) & (pl.col("g") != "c"), one=pl.Series(random.random(160) < 0.6),
        other=pl.Series(random.random(160) < 0.7),
    )  # fmt: skip
    compare = tf.compare_models(tf.sens.difference("g"), tf.f_meas.ratio("g"))
    call: dict[str, Any] = {"truth": "y", "one": "one", "other": "other", "on_undefined": "ignore"}
    columns = [".change", ".lower", ".upper", ".std_error"]
    result, known = compare(data, **call), compare(data.filter(pl.col("g") != "c"), **call)
    assert np.array(result.select(columns)) == pytest.approx(np.array(known.select(columns)), rel=1e-9)


def test_bootstrap_of_sums_of_numbers_draws_rows_again() -> None:
    rows = LOANS.head(200).with_columns(second=pl.col("score") ** 2)
    gap = tf.new_aggregate(pl.col(".estimate").max() - pl.col(".estimate").min(), "gap", equal=0, direction="minimize")
    metric = tf.new_groupwise_metric(tf.mae, "gap of mae", gap)("sex")
    result = tf.compare_models(metric)(rows, "weight", one="score", other="second", times=2_000)
    truth, sex = rows["weight"].to_numpy(), rows["sex"].to_numpy() == "female"
    away = np.stack([np.abs(truth - rows[name].to_numpy()) for name in ("score", "second")])
    random = np.random.default_rng(1)
    of_groups = [away[:, own][:, random.integers(0, own.sum(), (2_000, own.sum()))].mean(axis=2) for own in (sex, ~sex)]
    gaps = np.abs(of_groups[0] - of_groups[1])
    assert result[".std_error"].item() == pytest.approx((gaps[1] - gaps[0]).std(), rel=0.06)


def test_model_compared_with_itself_may_change() -> None:
    result = tf.compare_models(FAIR)(LOANS.with_columns(again="one"), "y", one="one", other="again", times=100)
    assert result[".change"].unique().to_list() == [0.0]
    # that no row changes among these does not say that none ever would
    assert (result[".lower"] < 0).all()
    assert (result[".upper"] > 0).all()
    assert result[".p_value"].drop_nulls().unique().to_list() == [1.0]


def test_undefined_values_follow_on_undefined_in_every_comparison() -> None:
    people = pl.DataFrame({
        "g": ["a"] * 4 + ["b"] * 4 + ["c"] * 4, "y": [0] * 4 + [1, 1, 0, 1] * 2, "p": [1, 0] * 6, "q": [1, 1, 0] * 4
    })  # fmt: skip
    comparisons: dict[str, Any] = {
        "groups": (tf.compare_groups(tf.sens, by="g"), {"estimate": "p"}),
        "pairs": (tf.inference.pairwise(tf.equal_opportunity("g")), {"estimate": "p"}),
        "models": (tf.compare_models(tf.equal_opportunity("g")), {"one": "p", "other": "q"}),
    }
    for compare, call in comparisons.values():
        with pytest.raises(tf.errors.UndefinedError, match=r"sens has no value .* in g 'a'"):
            compare(people, "y", **call, on_undefined="raise")
        assert len(compare(people, "y", **call, on_undefined="null")) == len(compare(people, "y", **call))
    models, call = comparisons["models"]
    assert models(people, "y", **call)[".change"].item() is not None
    nothing = models(people, "y", **call, on_undefined="null").row(0, named=True)
    assert [nothing[name] for name in (".one", ".other", ".change", ".lower", ".p_value")] == [None] * 5


def test_discordant_counts_are_those_of_mcnemars_table() -> None:
    people = pl.DataFrame({"y": [1] * 10, "p": [1] * 6 + [0] * 4, "q": [1] * 4 + [0] * 5 + [1]})
    result = tf.compare_models(tf.accuracy, tf.sens)(people, "y", one="p", other="q", pos_label=1, labels=[0, 1])
    assert result.select(".n", ".only_one", ".only_other").rows() == [(10, 2, 1)] * 2


def test_p_values_equal_mcnemar() -> None:
    fair = tf.metric_set(*FAIR.metrics[:6])
    result = tf.compare_models(fair, mid_p=False)(LOANS, **CALL, group_by="sex")
    right = [(pl.col(name) == pl.col("y")).alias(name) for name in ("one", "other")]
    kept = {"accuracy": pl.lit(value=True), "sens": pl.col("y"), "spec": ~pl.col("y")}
    for sex in ("female", "male"):
        for metric, among in kept.items():
            rows = LOANS.filter(among & (pl.col("sex") == sex)).select(right)
            table = [[rows.filter(one=a, other=b).height for b in (True, False)] for a in (True, False)]
            expected: Any = mcnemar(table, exact=True)
            mine = result.filter((pl.col("sex") == sex) & (pl.col(".metric") == metric))
            assert mine[".p_value"].item() == pytest.approx(expected.pvalue, rel=1e-9)
    others = result.filter(pl.col(".metric").is_in(["precision", "mcc", "demographic_parity"]))
    assert others[".p_value"].is_null().all()


@pytest.mark.parametrize("truth", [None, "y", "part"])
def test_selection_rate_p_value_is_a_sign_test(truth: str | None) -> None:
    data = LOANS.with_columns(part=pl.when(pl.int_range(pl.len()) % 3 > 0).then("y"))
    rates = tf.metric_set(tf.selection_rate, tf.detection_prevalence)
    result = tf.compare_models(rates, mid_p=False)(data, truth, one="one", other="other", times=20, group_by="sex")
    for sex in ("female", "male"):
        mine = data.filter(sex=sex)
        one, other = (
            mine.filter(mine[name] & ~mine[against]).height for name, against in (("one", "other"), ("other", "one"))
        )
        fewer = sum(math.comb(one + other, count) for count in range(min(one, other) + 1))
        expected = min(1, 2 * fewer / 2 ** (one + other))
        assert result.filter(sex=sex)[".p_value"].to_list() == pytest.approx([expected] * 2, rel=1e-9)
    fixed = tf.metric_set(tf.base_rate, tf.precision)
    assert tf.compare_models(fixed)(data, "y", one="one", other="other", times=20)[".p_value"].is_null().all()


def test_same_seed_gives_same_result() -> None:
    result = tf.compare_models(FAIR)(LOANS, **CALL)
    shuffled = LOANS.sample(fraction=1, shuffle=True, seed=1)
    assert tf.compare_models(FAIR)(shuffled, **CALL).equals(result)
    assert tf.compare_models(tf.mcc)(LOANS, **CALL).equals(result.filter(pl.col(".metric") == "mcc"))
    assert tf.compare_models(FAIR)(LOANS.to_pandas(), **CALL)[".change"].tolist() == result[".change"].to_list()


def test_bad_comparisons_raise() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="cannot compare labels and scores in one call"):
        tf.compare_models(tf.roc_auc, tf.sens)
    with pytest.raises(
        tf.errors.ArgumentError, match="does not accept `probs`: give the predictions as `one=` and `other=`"
    ):
        tf.compare_models(tf.sens)(LOANS, "y", one="one", other="other", probs="score")
    cuts: list[dict[str, Any]] = [{"threshold": 0.5}, {"top_k": 3}, {"top_fraction": 0.5}]
    for cut in cuts:
        expected = (
            rf'does not accept `{next(iter(cut))}`: make labels of scores, such as `one=\(pl\.col\("score"\) >= 0\.4\)'
        )
        with pytest.raises(tf.errors.ArgumentError, match=expected):
            tf.compare_models(tf.sens)(LOANS, "y", one="score", other="score", **cut)
    with pytest.raises(tf.errors.ColumnError, match="no column 'another'"):
        tf.compare_models(tf.sens)(LOANS, "y", one="one", other="another")


# Scores, numbers and clusters

SCORES = LOANS.with_columns(second=pl.col("score") * 0.7 + pl.Series(np.random.default_rng(5).random(len(LOANS))) * 0.3)


def places(truth: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of each of one class in the other: what DeLong's variance is of."""
    wins = (score[truth][:, None] > score[~truth]) + (score[truth][:, None] == score[~truth]) / 2
    return wins.mean(axis=1), wins.mean(axis=0)


def test_paired_auc_error_equals_delong() -> None:
    truth = SCORES["y"].to_numpy()
    both = [places(truth, SCORES[name].to_numpy()) for name in ("score", "second")]
    # DeLong et al. (1988): the variance of the difference of the places, in each class
    differences = [other - one for one, other in zip(*both, strict=True)]
    error = math.sqrt(sum(item.var(ddof=1) / len(item) for item in differences))
    result = tf.compare_models(tf.roc_auc)(SCORES, "y", one="score", other="second", times=1_000).row(0, named=True)
    assert result[".change"] == pytest.approx(differences[0].mean())
    assert result[".std_error"] == pytest.approx(error, rel=0.005)
    assert result[".lower"] < result[".change"] < result[".upper"]
    apart = [sum(item.var(ddof=1) / len(item) for item in sides) for sides in both]
    assert error < 0.8 * math.sqrt(sum(apart))
    # the p-value is that of the test of DeLong et al.
    z = abs(differences[0].mean()) / error
    assert norm.isf(result[".p_value"] / 2) == pytest.approx(z, rel=0.02)
    assert (result[".n"], result[".only_one"]) == (len(SCORES), None)


def test_auc_parity_of_two_models() -> None:
    test = tf.compare_models(tf.auc_parity("sex"))
    result = test(SCORES, "y", one="score", other="second", times=50, group_by="fold")
    for name, side in ((".one", "score"), (".other", "second")):
        expected = tf.auc_parity("sex")(SCORES, "y", probs=side, group_by="fold")[".estimate"]
        assert result[name].to_list() == pytest.approx(expected.to_list())
    mixed = SCORES.sample(fraction=1.0, shuffle=True, seed=4)
    assert test(mixed, "y", one="score", other="second", times=50, group_by="fold").equals(result)


def test_paired_mae_error_equals_plain_arithmetic() -> None:
    data = SCORES.with_columns(target=pl.col("weight"))
    result = tf.compare_models(tf.mae)(data, "target", one="score", other="second", times=1_000).row(0, named=True)
    away = [(data["target"] - data[name]).abs().to_numpy() for name in ("score", "second")]
    change = away[1] - away[0]
    assert result[".change"] == pytest.approx(change.mean())
    assert result[".std_error"] == pytest.approx(change.std() / math.sqrt(len(change)), rel=0.005)


def test_clusters_are_drawn_together() -> None:
    people = LOANS.head(600).with_row_index("person")
    copies = pl.concat([people] * 4)
    call: dict[str, Any] = {"truth": "y", "one": "one", "other": "other", "times": 1_000}
    alone = tf.compare_models(tf.accuracy)(people, **call)
    together = tf.compare_models(tf.accuracy)(copies, **call, cluster="person")
    assert together[".change"].item() == pytest.approx(alone[".change"].item())
    assert together[".std_error"].item() == pytest.approx(alone[".std_error"].item(), rel=0.1)
    assert together[".p_value"].item() is None


def test_sides_in_group_by_are_compared() -> None:
    sides = tf.privileged(race="White")
    calls: tuple[tuple[tf.types.Metric, dict[str, Any]], ...] = (
        (tf.accuracy, CALL),
        (tf.roc_auc, {"truth": "y", "one": "score", "other": "second", "times": 20}),
    )
    for metrics, call in calls:
        result = tf.compare_models(metrics)(SCORES, **call, group_by=sides)
        assert result["side"].to_list()[:2] == ["privileged", "unprivileged"]


def test_rows_lacking_a_prediction_are_dropped_for_both_models() -> None:
    lacking = SCORES.with_columns(second=pl.when(pl.col("y") & (pl.col("score") < 0.4)).then(None).otherwise("score"))
    change = tf.compare_models(tf.roc_auc)(lacking, "y", one="score", other="second", times=50)
    # scores that have not been seen to change do not say how far they may
    assert change.select(".change", ".lower", ".upper").row(0) == (0.0, None, None)
    labels = lacking.with_columns(other=pl.col("second") > 0.5, one=pl.col("score") > 0.5)
    change = tf.compare_models(tf.accuracy)(labels, "y", one="one", other="other", times=50)
    assert change.select(".change", ".p_value").row(0) == (0.0, 1.0)
    # Bonett and Price: one row more of either change
    rows = len(labels.drop_nulls("other")) + 2
    assert change[".upper"].item() == pytest.approx(NormalDist().inv_cdf(0.975) * math.sqrt(2 / rows / rows))
    kept = labels.drop_nulls("other")
    assert change[".one"].item() == tf.accuracy(kept, "y", "one")[".estimate"].item()


def test_single_row_group_has_change_without_interval() -> None:
    rows = pl.DataFrame(
        {"y": [1, 0] * 10 + [1], "one": [1, 0, 0, 1] * 5 + [0], "other": [1] * 21, "g": ["a"] * 20 + ["b"]}
    )
    compare = tf.compare_models(tf.accuracy, tf.accuracy.difference("g"))
    result = compare(rows, "y", one="one", other="other", times=200, on_undefined="ignore")
    assert result[".change"].null_count() == 0
    assert result.select(pl.col(".lower", ".upper", ".std_error").is_null()).rows() == [(False,) * 3, (True,) * 3]


def test_few_clusters_of_two_models_warn() -> None:
    people = pl.DataFrame({"person": list(range(6)) * 2, "y": [1, 0, 1] * 4, "one": [1, 0] * 6, "other": [0, 1, 1] * 4})
    with pytest.warns(tf.errors.ClusterWarning, match="There are 6 clusters"):
        tf.compare_models(tf.accuracy)(people, "y", one="one", other="other", cluster="person", times=100)


def test_bad_second_prediction_raises() -> None:
    compare: Any = tf.compare_models(tf.demographic_parity("sex"))
    with pytest.raises(tf.errors.ColumnError, match="`other`: the data are grouped by 'sex'"):
        compare(LOANS, "y", one="one", other="sex")
    with pytest.raises(tf.errors.ColumnError, match="`other`: there is no column 'nowhere'"):
        compare(LOANS, "y", one="one", other="nowhere")
    with pytest.raises(
        tf.errors.ArgumentError, match="does not accept `estimate`: give the predictions as `one=` and `other=`"
    ):
        compare(LOANS, "y", one="one", other="other", estimate="one")
    scores: Any = tf.compare_models(tf.roc_auc)
    with pytest.raises(tf.errors.ColumnError, match="`one` has 1 columns of scores and `other` 2"):
        scores(SCORES, "y", one="score", other=["score", "second"])
    empty = scores(
        SCORES.clear(), "y", one="score", other="second", cluster="fold", labels=[False, True], pos_label=True
    )
    assert empty[".change"].item() is None


# The worst group


def test_worst_groups_equals_wilson_and_grid() -> None:
    result = inference.worst_groups(tf.equal_opportunity("race"), pooling=None)(LOANS, "y", "one", times=40_000)
    positives = LOANS.filter("y").group_by("race", maintain_order=True).agg(pl.col("one").sum(), pl.len())
    counts = {race: (hits, rows) for race, hits, rows in positives.rows()}
    level = 0.95 ** (1 / len(counts))
    grid = (np.arange(4000) + 0.5) / 4000
    for row in result.to_dicts():
        hits, rows = counts[row[".group"]]
        lower, upper = proportion_confint(hits, rows, alpha=1 - level, method="wilson")
        # of three hits or misses or less Poisson's distribution gives the end, if it is farther
        ends = [
            gamma.ppf(1 - level, few) / rows if 0 < few <= min(3, rows / 2) else np.inf for few in (hits, rows - hits)
        ]
        assert (row[".lower"], row[".upper"]) == pytest.approx((min(lower, ends[0]), max(upper, 1 - ends[1])))
        # the chance that all others are above, summed over where the group may be
        density: Any = np.array(beta.pdf(grid, hits + 0.5, rows - hits + 0.5))
        for race, (other, others) in counts.items():
            if race != row[".group"]:
                density = density * np.array(beta.sf(grid, other + 0.5, others - other + 0.5))
        assert row[".p_worst"] == pytest.approx(float(density.mean()), abs=0.01)
    assert result[".p_worst"].sum() == pytest.approx(1)


def test_worst_group_is_the_highest_when_minimized() -> None:
    people = pl.DataFrame(
        {"y": [0] * 200, "p": [1] * 80 + [0] * 20 + [1] * 20 + [0] * 80, "g": ["a"] * 100 + ["b"] * 100}
    )
    gap = tf.new_groupwise_metric(tf.fall_out, "gap", tf.difference())("g")
    result = inference.worst_groups(gap)(people, "y", "p", pos_label=1)
    assert result.filter(pl.col(".group") == "a")[".p_worst"].item() > 0.99


def test_equal_groups_have_no_certain_worst() -> None:
    random, seen = np.random.default_rng(4), []
    for _ in range(30):
        people = pl.DataFrame({"g": np.repeat(np.arange(6), 33), "p": random.random(198) < 0.7})
        seen.append(
            inference.worst_groups(tf.demographic_parity("g"))(people, estimate="p", times=500)[".p_worst"].max()
        )
    assert np.mean(seen) < 0.75


def test_comparison_names_the_columns_and_ends_with_its_findings() -> None:
    people = pl.DataFrame({"y": [1, 0] * 20, "a": [1, 0, 0, 0] * 10, "b": [1, 0, 1, 1] * 10, "s": [0.1, 0.4] * 20})
    result = tf.compare_models(tf.accuracy)(people, "y", one="a", other=pl.col("b").alias("new"))
    assert result.columns[:4] == [".metric", ".by", ".one", ".other"]
    assert result.columns[-4:] == [".change", ".lower", ".upper", ".p_value"]
    assert result.select(".model_one", ".model_other").row(0) == ("a", "new")
    scores: Any = [pl.col("s").alias("p"), (1 - pl.col("s")).alias("q")]
    unnamed = tf.compare_models(tf.roc_auc)(people, "y", one=scores, other=scores)
    assert unnamed.select(".model_one", ".model_other").row(0) == (None, None)

"""Intervals by the design of a survey, against the formulas of textbooks in plain numpy; `test_svy.py` has svy's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidyfair.specs.survey_designs import Design

ROWS, REPLICATES = 500, 20
COLUMNS = [f"r{number}" for number in range(REPLICATES)]


def people() -> pl.DataFrame:
    """People in 5 strata of 4 to 8 clusters; nobody of the group `far` lives outside of two strata."""
    random = np.random.default_rng(5)
    stratum = random.integers(0, 5, ROWS)
    number = random.integers(0, np.array([4, 5, 6, 7, 8])[stratum])
    psu = 10 * stratum + number
    of_psu = random.normal(0, 0.7, 60)[psu]
    group = np.where((stratum < 2) & (random.random(ROWS) < 0.4), "far", random.choice(["a", "b"], ROWS))
    truth = random.random(ROWS) < 0.4
    weight = random.uniform(1, 6, ROWS)
    factors = random.exponential(1, (REPLICATES, 60))
    return pl.DataFrame(
        {
            "stratum": stratum, "number": number, "psu": psu, "group": group, "truth": truth, "weight": weight,
            "estimate": random.random(ROWS) < stats.norm.cdf(of_psu), "score": random.random(ROWS),
            "y": random.normal(50, 8, ROWS), "p": random.normal(50, 8, ROWS) + 3 * of_psu,
            **{name: weight * factors[index, psu] for index, name in enumerate(COLUMNS)},
        }
    )  # fmt: skip


PEOPLE = people()
ARRAYS: dict[str, Any] = {name: PEOPLE[name].to_numpy() for name in PEOPLE.columns}
LINEARISED = tf.surveys.design(weights="weight", strata="stratum", clusters="psu")
OF_ROWS = tf.surveys.design(weights="weight", strata="stratum")
REPEATED = tf.surveys.replicate_weights(weights="weight", replicates=COLUMNS, method="successive_difference")


def linearised_ratio(numerator: np.ndarray, denominator: np.ndarray) -> tuple[float, np.ndarray]:
    """A ratio of totals, and the linearised values of rows, times their weights."""
    weight = ARRAYS["weight"]
    total = (weight * denominator).sum()
    ratio = (weight * numerator).sum() / total
    return float(ratio), weight * (numerator - ratio * denominator) / total


def error_of(values: np.ndarray, units: np.ndarray, strata: np.ndarray) -> float:
    """The standard error of a sum over units that were drawn from strata with replacement."""
    variance = 0.0
    for stratum in np.unique(strata):
        drawn = np.unique(units[strata == stratum])
        sums = np.array([values[units == unit].sum() for unit in drawn])
        variance += len(drawn) / (len(drawn) - 1) * ((sums - sums.mean()) ** 2).sum()
    return math.sqrt(variance)


def row(result: pl.DataFrame) -> dict[str, Any]:
    return result.row(0, named=True)


# Linearisation


TRUE, SELECTED = ARRAYS["truth"], ARRAYS["estimate"]
ONES = np.ones(ROWS)
ERRORS = np.abs(ARRAYS["y"] - ARRAYS["p"])
VALUES: dict[str, tuple[Callable[..., pl.DataFrame], np.ndarray, np.ndarray]] = {
    "a rate": (lambda **own: tf.sens(PEOPLE, "truth", "estimate", **own), TRUE & SELECTED, TRUE * 1.0),
    "a function of counts": (
        lambda **own: tf.f_meas(PEOPLE, "truth", "estimate", **own), 2.0 * (TRUE & SELECTED), TRUE * 1.0 + SELECTED,
    ),
    "a mean of numbers": (lambda **own: tf.mean_prediction(PEOPLE, "y", "p", **own), ARRAYS["p"], ONES),
    "a mean of errors": (lambda **own: tf.mae(PEOPLE, "y", "p", **own), ERRORS, ONES),
    "a mean of scores": (
        lambda **own: tf.brier_class(PEOPLE, "truth", probs="score", **own), (ARRAYS["score"] - TRUE) ** 2, ONES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_errors_by_strata_and_clusters_are_those_of_the_textbook(name: str) -> None:
    call, numerator, denominator = VALUES[name]
    result = row(call(design=LINEARISED, interval="auto"))
    ratio, values = linearised_ratio(numerator, denominator)
    assert result[".estimate"] == pytest.approx(ratio)
    assert result[".std_error"] == pytest.approx(error_of(values, ARRAYS["psu"], ARRAYS["stratum"]), rel=1e-7)
    assert result[".method"] == "survey_linearized"


@pytest.mark.parametrize("name", VALUES)
def test_rows_that_are_drawn_one_by_one_are_their_own_clusters(name: str) -> None:
    call, numerator, denominator = VALUES[name]
    result = row(call(design=OF_ROWS, interval="auto"))
    _, values = linearised_ratio(numerator, denominator)
    assert result[".std_error"] == pytest.approx(error_of(values, np.arange(ROWS), ARRAYS["stratum"]), rel=1e-7)


@pytest.mark.parametrize("design", [LINEARISED, OF_ROWS, REPEATED])
@pytest.mark.parametrize("name", ["a rate", "a function of counts", "a mean of numbers"])
def test_design_effect_is_the_variance_over_that_of_rows_drawn_one_by_one(name: str, design: Any) -> None:
    call, numerator, denominator = VALUES[name]
    result = row(call(design=design, interval="auto"))
    weight = ARRAYS["weight"]
    values = linearised_ratio(numerator, denominator)[1] / weight * weight.sum()
    of_population = (weight * values**2).sum() / weight.sum()
    expected = result[".std_error"] ** 2 / (of_population / (ROWS - 1))
    assert result[".design_effect"] == pytest.approx(expected, rel=1e-6)


def test_degrees_of_freedom_are_shown() -> None:
    result = tf.selection_rate.difference("group").by_group(
        PEOPLE, estimate="estimate", design=LINEARISED, interval="auto"
    )
    for group, freedom in result.select(".group", ".df").rows():
        own = PEOPLE.filter(pl.col("group") == group)
        assert freedom == own["psu"].n_unique() - own["stratum"].n_unique()
    assert ".df" not in tf.accuracy(PEOPLE, "truth", "estimate", interval="auto").columns
    of_areas = row(tf.roc_auc(PEOPLE, "truth", probs="score", design=LINEARISED, interval="auto"))
    assert of_areas[".design_effect"] is None
    assert of_areas[".df"] is not None


def test_totals_and_ratios_of_means_are_those_of_the_textbook() -> None:
    total = row(tf.surveys.total(PEOPLE, estimate="p", design=LINEARISED, interval="auto"))
    values = ARRAYS["weight"] * ARRAYS["p"]
    assert total[".estimate"] == pytest.approx(values.sum())
    assert total[".std_error"] == pytest.approx(error_of(values, ARRAYS["psu"], ARRAYS["stratum"]), rel=1e-7)
    ratio = row(tf.surveys.ratio_of_means(PEOPLE, "y", "p", design=LINEARISED, interval="auto"))
    expected, values = linearised_ratio(ARRAYS["p"], ARRAYS["y"])
    assert ratio[".estimate"] == pytest.approx(expected)
    assert ratio[".std_error"] == pytest.approx(error_of(values, ARRAYS["psu"], ARRAYS["stratum"]), rel=1e-7)
    selected = row(
        tf.counts.predicted_positives(PEOPLE, estimate="estimate", pos_label=True, design=OF_ROWS, interval="auto")
    )
    values = ARRAYS["weight"] * ARRAYS["estimate"]
    assert selected[".std_error"] == pytest.approx(error_of(values, np.arange(ROWS), ARRAYS["stratum"]), rel=1e-7)
    # a total of rows drawn one by one has N^2 S^2 / n
    share, weight = values.sum() / ARRAYS["weight"].sum(), ARRAYS["weight"].sum()
    simple = weight**2 * share * (1 - share) / (ROWS - 1)
    assert selected[".design_effect"] == pytest.approx(selected[".std_error"] ** 2 / simple, rel=1e-6)


def test_clusters_without_a_row_of_a_group_count_as_zeros() -> None:
    result = tf.selection_rate.difference("group").by_group(
        PEOPLE, estimate="estimate", design=LINEARISED, interval="auto"
    )
    far = row(result.filter(pl.col(".group") == "far"))
    own = ARRAYS["group"] == "far"
    ratio, values = linearised_ratio(own & SELECTED, own * 1.0)
    error = error_of(values, ARRAYS["psu"], ARRAYS["stratum"])
    assert (far[".estimate"], far[".std_error"]) == (pytest.approx(ratio), pytest.approx(error, rel=1e-7))
    # degrees of freedom are those of the clusters that the group is in; limits are on the scale of logits
    freedom = len(np.unique(ARRAYS["psu"][own])) - len(np.unique(ARRAYS["stratum"][own]))
    half = stats.t.ppf(0.975, freedom) * error / (ratio * (1 - ratio))
    logits = math.log(ratio / (1 - ratio)) + np.array([-half, half])
    assert [far[".lower"], far[".upper"]] == pytest.approx((1 / (1 + np.exp(-logits))).tolist(), rel=1e-6)


def test_difference_of_groups_that_share_clusters_has_their_covariance() -> None:
    two = PEOPLE.with_columns(group=pl.when(pl.col("group") == "far").then(pl.lit("b")).otherwise("group"))
    is_a = (two["group"] == "a").to_numpy()
    (one, of_one), (other, of_other) = (linearised_ratio(own & SELECTED, own * 1.0) for own in (~is_a, is_a))
    design = (ARRAYS["psu"], ARRAYS["stratum"])
    call: dict[str, Any] = {"estimate": "estimate", "design": LINEARISED, "interval": "auto"}
    difference = row(tf.selection_rate.difference("group", to="a", signed=True)(two, **call))
    error = error_of(of_one - of_other, *design)
    half = stats.t.ppf(0.975, 30 - 5) * error
    assert difference[".std_error"] == pytest.approx(error, rel=1e-7)
    assert [difference[".lower"], difference[".upper"]] == pytest.approx(
        [one - other - half, one - other + half], rel=1e-6
    )
    ratio = row(tf.selection_rate.ratio("group", to="a", signed=True)(two, **call))
    relative = error_of(of_one / one - of_other / other, *design)
    half = stats.t.ppf(0.975, 30 - 5) * relative
    assert ratio[".std_error"] == pytest.approx(one / other * relative, rel=1e-7)
    assert math.log(ratio[".upper"] / ratio[".estimate"]) == pytest.approx(half, rel=1e-6)
    unsigned = row(tf.selection_rate.ratio("group")(two, **call))
    shown = min(one / other, other / one)
    assert unsigned[".std_error"] == pytest.approx(shown * relative, rel=1e-7)


def area(weight: np.ndarray, chosen: np.ndarray) -> tuple[float, np.ndarray]:
    """The area under the ROC curve of some rows by all pairs, and the linearised values of rows by their weights."""
    score, event, other = ARRAYS["score"], chosen & TRUE, chosen & ~TRUE
    beats = (score[:, None] > score[None, :]) + 0.5 * (score[:, None] == score[None, :])
    events, others = weight[event].sum(), weight[other].sum()
    value = float(weight[event] @ beats[np.ix_(event, other)] @ weight[other]) / events / others
    of_events = (beats[:, other] @ weight[other] / others - value) / events
    of_others = (beats[event].T @ weight[event] / events - value) / others
    return value, weight * (event * of_events + other * of_others)


@pytest.mark.parametrize("design", [LINEARISED, OF_ROWS], ids=["clusters", "rows"])
def test_area_under_the_curve_has_a_linearised_error(design: Any) -> None:
    units = ARRAYS["psu"] if design is LINEARISED else np.arange(ROWS)
    result = row(tf.roc_auc(PEOPLE, "truth", probs="score", design=design, interval="auto"))
    value, linearised = area(ARRAYS["weight"], np.ones(ROWS, dtype=bool))
    assert result[".estimate"] == pytest.approx(value)
    assert result[".std_error"] == pytest.approx(error_of(linearised, units, ARRAYS["stratum"]))
    assert result[".method"] == "survey_linearized"
    groups = tf.roc_auc.difference("group").by_group(PEOPLE, "truth", probs="score", design=design, interval="auto")
    of_groups = {group: area(ARRAYS["weight"], ARRAYS["group"] == group) for group in groups[".group"]}
    for group, estimate, error in groups.select(".group", ".estimate", ".std_error").rows():
        value, linearised = of_groups[group]
        assert estimate == pytest.approx(value)
        assert error == pytest.approx(error_of(linearised, units, ARRAYS["stratum"]))
    pair = tf.roc_auc.difference("group", to="b", signed=True)
    two = PEOPLE.with_columns(pl.when(pl.col("group") != "far").then("group").alias("group"))
    compared = row(pair(two.drop_nulls("group"), "truth", probs="score", interval="auto", design=design))
    assert compared[".estimate"] == pytest.approx(of_groups["a"][0] - of_groups["b"][0])
    if design is OF_ROWS:
        # rows of two groups have nothing in common but their strata
        assert compared[".std_error"] == pytest.approx(
            math.hypot(*(groups.filter(pl.col(".group") == name)[".std_error"].item() for name in "ab")), rel=0.02
        )


def test_linearised_error_of_an_area_is_near_those_of_replicates_and_of_delong() -> None:
    result = row(tf.roc_auc(PEOPLE, "truth", probs="score", design=LINEARISED, interval="auto"))
    everybody, variance = np.ones(ROWS, dtype=bool), 0.0
    for stratum in np.unique(ARRAYS["stratum"]):
        drawn = np.unique(ARRAYS["psu"][ARRAYS["stratum"] == stratum])
        for left_out in drawn:
            others = np.where(ARRAYS["stratum"] == stratum, len(drawn) / (len(drawn) - 1), 1.0)
            weight = ARRAYS["weight"] * np.where(ARRAYS["psu"] == left_out, 0.0, others)
            distance = area(weight, everybody)[0] - result[".estimate"]
            variance += (len(drawn) - 1) / len(drawn) * distance**2
    assert result[".std_error"] == pytest.approx(math.sqrt(variance), rel=0.02)
    alike = PEOPLE.with_columns(weight=pl.lit(2.0))
    simple = row(tf.roc_auc(alike, "truth", probs="score", interval="auto", design=tf.surveys.design(weights="weight")))
    delong = row(tf.roc_auc(PEOPLE, "truth", probs="score", interval="analytic"))
    assert (simple[".estimate"], delong[".method"]) == (pytest.approx(delong[".estimate"]), "delong")
    assert simple[".std_error"] == pytest.approx(delong[".std_error"], rel=0.005)


def test_finite_population_takes_its_share_off_the_variance() -> None:
    drawn = PEOPLE.group_by("stratum").agg(drawn=pl.col("psu").n_unique())
    data = PEOPLE.join(drawn, on="stratum").with_columns(population=4 * pl.col("drawn"), share=pl.lit(0.25))
    without = row(tf.sens(data, "truth", "estimate", design=LINEARISED, interval="auto"))[".std_error"]
    for fpc in ("population", "share"):
        design = tf.surveys.design(weights="weight", strata="stratum", clusters="psu", fpc=fpc)
        result = row(tf.sens(data, "truth", "estimate", design=design, interval="auto"))
        assert result[".std_error"] == pytest.approx(math.sqrt(0.75) * without)


TWO_MODELS = PEOPLE.with_columns(
    other=pl.col("score") > 0.45, second=pl.col("score") + 0.2 * pl.col("truth"), sex=pl.col("group") == "b"
)


def without_each(weight: np.ndarray, strata: np.ndarray, units: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """The stratified jackknife: the factor and the weights of each replicate, by hand."""
    replicates: list[tuple[float, np.ndarray]] = []
    for stratum in np.unique(strata):
        drawn = np.unique(units[strata == stratum])
        for unit in drawn:
            more = np.where(strata == stratum, len(drawn) / (len(drawn) - 1), 1.0)
            replicates.append(((len(drawn) - 1) / len(drawn), weight * np.where(units == unit, 0.0, more)))
    return replicates


def test_change_of_a_rate_between_models_follows_the_design() -> None:
    for design, units in ((LINEARISED, ARRAYS["psu"]), (OF_ROWS, np.arange(ROWS))):
        result = row(tf.compare_models(tf.accuracy)(TWO_MODELS, "truth", one="estimate", other="other", design=design))
        truth = ARRAYS["truth"]
        hits = (TWO_MODELS["other"].to_numpy() == truth) * 1.0 - (ARRAYS["estimate"] == truth)
        change, values = linearised_ratio(hits, ONES)
        assert result[".change"] == pytest.approx(change)
        error = error_of(values, units, ARRAYS["stratum"])
        # single rows are left out in random parts
        assert result[".std_error"] == pytest.approx(error, rel=2e-3 if units is ARRAYS["psu"] else 0.05)
        if units is ARRAYS["psu"]:
            freedom = len(np.unique(units)) - 5
            assert result[".p_value"] == pytest.approx(2 * stats.t.sf(abs(change) / error, freedom), rel=0.02)
            assert result[".upper"] - change == pytest.approx(stats.t.ppf(0.975, freedom) * error, rel=2e-3)


def test_changes_of_areas_and_disparities_are_near_those_of_the_stratified_jackknife() -> None:
    truth, weight = ARRAYS["truth"], ARRAYS["weight"]
    sex, scores = TWO_MODELS["sex"].to_numpy(), [TWO_MODELS[name].to_numpy() for name in ("score", "second")]
    guesses = [ARRAYS["estimate"], TWO_MODELS["other"].to_numpy()]

    def area(score: np.ndarray, weight: np.ndarray) -> float:
        above = (score[truth][:, None] > score[~truth]) + (score[truth][:, None] == score[~truth]) / 2
        return float(weight[truth] @ above @ weight[~truth] / weight[truth].sum() / weight[~truth].sum())

    def gap(guess: np.ndarray, weight: np.ndarray) -> float:
        rates = [np.average(guess[own], weights=weight[own]) for own in (sex, ~sex)]
        return float(abs(rates[0] - rates[1]))

    def error(value: Any, models: Any) -> float:
        of_data = value(models[1], weight) - value(models[0], weight)
        replicates = without_each(weight, ARRAYS["stratum"], ARRAYS["psu"])
        return math.sqrt(
            sum(factor * (value(models[1], own) - value(models[0], own) - of_data) ** 2 for factor, own in replicates)
        )

    areas = row(tf.compare_models(tf.roc_auc)(TWO_MODELS, "truth", one="score", other="second", design=LINEARISED))
    assert areas[".std_error"] == pytest.approx(error(area, scores), rel=0.03)
    compared = tf.compare_models(tf.demographic_parity("sex"))
    gaps = row(compared(TWO_MODELS, one="estimate", other="other", design=LINEARISED))
    assert gaps[".std_error"] == pytest.approx(error(gap, guesses), rel=0.03)


def test_models_by_designs_without_an_interval_are_refused() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="not replicates"):
        tf.compare_models(tf.accuracy)(TWO_MODELS, "truth", one="estimate", other="other", design=REPEATED)
    with pytest.raises(tf.errors.ArgumentError, match="median_absolute_error have no interval"):
        tf.compare_models(tf.median_absolute_error)(PEOPLE, "y", one="p", other="score", design=LINEARISED)


def test_pairs_of_groups_follow_the_design() -> None:
    call: dict[str, Any] = {"estimate": "estimate", "design": LINEARISED}
    pairs = tf.inference.pairwise(tf.demographic_parity("group"), adjust="none")(PEOPLE, **call)
    one = tf.compare_groups(tf.selection_rate, by="group", to="b", adjust="none")(PEOPLE, **call)
    for group in ("a", "far"):
        pair = pairs.filter((pl.col(".group") == min(group, "b")) & (pl.col(".other") == max(group, "b")))
        found, expected = row(pair), row(one.filter(pl.col(".group") == group))
        assert found[".test"] == "interval"
        for name in (".p_value", ".std_error"):
            assert found[name] == pytest.approx(expected[name])
    tally = tf.demographic_parity("group").tally(PEOPLE, **call)
    again = tf.inference.pairwise(tf.demographic_parity("group"), adjust="none").compute(tally)
    assert_frame_equal(again, pairs)


def test_single_cluster_of_a_stratum_is_an_error_unless_there_is_a_rule() -> None:
    alone = PEOPLE.with_columns(
        stratum=pl.when((pl.col("stratum") == 3) & (pl.col("number") == 1)).then(7).otherwise("stratum")
    )
    call: dict[str, Any] = {"truth": "truth", "estimate": "estimate", "interval": "auto"}
    with pytest.raises(tf.errors.ArgumentError, match=r"single PSU is in the stratum 7 of 'stratum'.*lonely"):
        tf.sens(alone, design=LINEARISED, **call)
    _, values = linearised_ratio(TRUE & SELECTED, TRUE * 1.0)
    is_lonely = (alone["stratum"] == 7).to_numpy()
    others = error_of(values[~is_lonely], ARRAYS["psu"][~is_lonely], alone["stratum"].to_numpy()[~is_lonely])
    expected = {"certainty": others, "adjust": math.hypot(others, values[is_lonely].sum())}
    for lonely, error in expected.items():
        design = tf.surveys.design(weights="weight", strata="stratum", clusters="psu", lonely=lonely)  # pyright: ignore[reportArgumentType] - one of its values
        assert row(tf.sens(alone, design=design, **call))[".std_error"] == pytest.approx(error, rel=1e-7)


def test_stratum_may_be_the_compared_feature_and_strata_may_be_several_columns() -> None:
    by_stratum = tf.selection_rate.difference("stratum").by_group(
        PEOPLE, estimate="estimate", design=LINEARISED, interval="auto"
    )
    of_columns = tf.surveys.design(weights="weight", strata=["stratum", "group"])
    first = row(by_stratum)
    own = ARRAYS["stratum"] == 0
    _, values = linearised_ratio(own & SELECTED, own * 1.0)
    assert first[".std_error"] == pytest.approx(error_of(values, ARRAYS["psu"], ARRAYS["stratum"]), rel=1e-7)
    result = row(tf.sens(PEOPLE, "truth", "estimate", design=of_columns, interval="auto"))
    _, values = linearised_ratio(TRUE & SELECTED, TRUE * 1.0)
    strata = np.char.add(ARRAYS["stratum"].astype(str), ARRAYS["group"].astype(str))
    assert result[".std_error"] == pytest.approx(error_of(values, np.arange(ROWS), strata), rel=1e-7)


def test_several_thresholds_count_each_row_once() -> None:
    one = row(tf.selection_rate(PEOPLE, probs="score", threshold=0.3, design=OF_ROWS, interval="auto"))
    for design in (OF_ROWS, LINEARISED, REPEATED):
        call: dict[str, Any] = {"probs": "score", "design": design, "interval": "auto"}
        one = row(tf.selection_rate(PEOPLE, threshold=0.3, **call))
        several = tf.selection_rate(PEOPLE, threshold=[0.3, 0.6], **call)
        assert row(several)[".std_error"] == pytest.approx(one[".std_error"], rel=1e-9)


# Replicate weights


def test_errors_by_replicates_are_those_of_the_values_with_their_weights() -> None:
    def errors(value: Callable[[np.ndarray], float], scale: float, centre: str = "estimate") -> float:
        own, values = value(ARRAYS["weight"]), np.array([value(ARRAYS[name]) for name in COLUMNS])
        middle = own if centre == "estimate" else values.mean()
        return math.sqrt(scale * ((values - middle) ** 2).sum())

    def rate(weight: np.ndarray) -> float:
        return float(weight[TRUE & SELECTED].sum() / weight[TRUE].sum())

    def mean(weight: np.ndarray) -> float:
        return float((weight * ERRORS).sum() / weight.sum())

    def squared_correlation(weight: np.ndarray) -> float:
        covariance = np.cov(ARRAYS["y"], ARRAYS["p"], aweights=weight)
        return float(covariance[0, 1] ** 2 / (covariance[0, 0] * covariance[1, 1]))

    own: dict[str, Any] = {"weights": "weight", "replicates": COLUMNS}
    designs: list[tuple[Design, float, str]] = [
        (tf.surveys.replicate_weights(**own, method="brr"), 1 / 20, "estimate"),
        (tf.surveys.replicate_weights(**own, method="fay", fay=0.5), 1 / (20 * 0.25), "estimate"),
        (tf.surveys.replicate_weights(**own, method="jackknife"), 19 / 20, "estimate"),
        (tf.surveys.replicate_weights(**own, method="jackknife", rscales=[0.75] * 20), 0.75, "estimate"),
        (tf.surveys.replicate_weights(**own, method="bootstrap"), 1 / 20, "estimate"),
        (tf.surveys.replicate_weights(**own, method="bootstrap", centre="mean"), 1 / 19, "mean"),
        (tf.surveys.replicate_weights(**own, method="brr", scale=2, centre="mean"), 2, "mean"),
        (REPEATED, 4 / 20, "estimate"),
    ]
    for design, scale, centre in designs:
        call: dict[str, Any] = {"design": design, "interval": "auto"}
        result = row(tf.sens(PEOPLE, "truth", "estimate", **call))
        assert result[".std_error"] == pytest.approx(errors(rate, scale, centre))
        assert result[".method"] == "survey_replicates"
        numbers = tf.metric_set(tf.mae, tf.rsq)(PEOPLE, "y", "p", **call)[".std_error"].to_list()
        assert numbers == pytest.approx([errors(mean, scale, centre), errors(squared_correlation, scale, centre)])


def test_errors_of_areas_by_replicates_are_those_of_the_areas_with_their_weights() -> None:
    def error(value: Callable[[np.ndarray], float]) -> float:
        own = value(ARRAYS["weight"])
        return math.sqrt(4 / 20 * sum((value(ARRAYS[name]) - own) ** 2 for name in COLUMNS))

    def precision(weight: np.ndarray) -> float:
        order = np.argsort(-ARRAYS["score"])
        hits, selected = np.cumsum((weight * TRUE)[order]), np.cumsum(weight[order])
        return float((((weight * TRUE)[order]) * hits / selected).sum() / hits[-1])

    def median(weight: np.ndarray) -> float:
        off = np.abs(ARRAYS["p"] - ARRAYS["y"])
        order = np.argsort(off)
        return float(off[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)])

    call: dict[str, Any] = {"probs": "score", "design": REPEATED, "interval": "auto"}
    both = tf.metric_set(tf.roc_auc, tf.average_precision)(PEOPLE, "truth", **call)
    everybody = np.ones(ROWS, dtype=bool)
    assert both[".std_error"].to_list() == pytest.approx([error(lambda w: area(w, everybody)[0]), error(precision)])
    assert set(both[".method"]) == {"survey_replicates"}
    off = row(tf.median_absolute_error(PEOPLE, "y", "p", design=REPEATED, interval="auto"))
    assert off[".std_error"] == pytest.approx(error(median))
    groups = tf.roc_auc.difference("group").by_group(PEOPLE, "truth", **call)
    for group, own_error in groups.select(".group", ".std_error").rows():
        own = ARRAYS["group"] == group
        assert own_error == pytest.approx(error(lambda w, own=own: area(w, own)[0]))
    sides = tf.privileged(group="a")
    gap = row(tf.roc_auc.difference(sides)(PEOPLE, "truth", **call))
    is_a = ARRAYS["group"] == "a"
    expected = error(lambda w: area(w, ~is_a)[0] - area(w, is_a)[0])
    assert gap[".std_error"] == pytest.approx(expected)
    half = stats.t.ppf(0.975, REPLICATES - 1) * expected
    assert [gap[".lower"], gap[".upper"]] == pytest.approx([gap[".estimate"] - half, gap[".estimate"] + half])


def test_areas_count_negative_weights_of_replicates() -> None:
    data = PEOPLE.with_columns(r0=pl.when(pl.int_range(pl.len()) < 40).then(-1.0).otherwise(pl.col("r0")))
    data = data.with_columns(r0=pl.when(pl.int_range(pl.len()) == 50).then(0.0).otherwise("r0"))
    result = row(tf.roc_auc(data, "truth", probs="score", design=REPEATED, interval="auto"))
    everybody = np.ones(ROWS, dtype=bool)
    weights = [data[name].to_numpy() for name in COLUMNS]
    squares = sum((area(weight, everybody)[0] - result[".estimate"]) ** 2 for weight in weights)
    assert result[".std_error"] == pytest.approx(math.sqrt(4 / 20 * squares))


def test_difference_by_replicates_is_that_of_the_replicates() -> None:
    def difference(weight: np.ndarray) -> float:
        is_a, is_b = ARRAYS["group"] == "a", ARRAYS["group"] == "b"
        rates = [weight[own & SELECTED].sum() / weight[own].sum() for own in (is_b, is_a)]
        return float(rates[0] - rates[1])

    own = difference(ARRAYS["weight"])
    error = math.sqrt(4 / 20 * sum((difference(ARRAYS[name]) - own) ** 2 for name in COLUMNS))
    table = tf.compare_groups(tf.selection_rate, by="group", to="a")(PEOPLE, estimate="estimate", design=REPEATED)
    result = row(table.filter(pl.col(".group") == "b"))
    half = stats.t.ppf(0.975, REPLICATES - 1) * error
    assert result[".disparity"] == pytest.approx(own)
    assert [result[".lower"], result[".upper"]] == pytest.approx([own - half, own + half])
    assert result[".p_value"] == pytest.approx(2 * stats.t.sf(abs(own) / error, REPLICATES - 1), rel=1e-5)
    assert result[".method"] == "survey_replicates"


def test_degrees_of_freedom_of_replicates_can_be_given() -> None:
    few = tf.surveys.replicate_weights(weights="weight", replicates=COLUMNS, method="brr", degrees_of_freedom=5)
    many = tf.surveys.replicate_weights(weights="weight", replicates=COLUMNS, method="brr")
    results = [row(tf.mean_prediction(PEOPLE, "y", "p", design=own, interval="auto")) for own in (few, many)]
    halves = [(own[".upper"] - own[".lower"]) / 2 / own[".std_error"] for own in results]
    assert halves == pytest.approx([stats.t.ppf(0.975, 5), stats.t.ppf(0.975, 19)], rel=1e-6)


def test_group_that_has_no_weight_in_a_replicate_has_no_interval() -> None:
    data = PEOPLE.with_columns(r3=pl.when(pl.col("group") == "far").then(0.0).otherwise("r3"))
    result = tf.selection_rate.difference("group").by_group(data, estimate="estimate", design=REPEATED, interval="auto")
    known = dict(result.select(".group", pl.col(".std_error").is_not_null()).rows())
    assert known == {"a": True, "b": True, "far": False}
    assert result[".estimate"].null_count() == 0


# Data of any kind


@pytest.mark.parametrize("design", [LINEARISED, OF_ROWS, REPEATED])
def test_engines_agree_on_errors_of_surveys(design: Design) -> None:
    def errors(data: Any) -> list[float]:
        call: dict[str, Any] = {"design": design, "interval": "auto"}
        rates = tf.selection_rate.difference("group").by_group(data, estimate="estimate", **call)
        numbers = tf.metric_set(tf.mae, tf.rsq)(data, "y", "p", **call)
        return [error for table in (rates, numbers) for error in pl.DataFrame(table)[".std_error"].to_list()]

    expected = errors(PEOPLE)
    relation = duckdb.from_arrow(PEOPLE.to_arrow())
    for data in (PEOPLE.to_pandas(), PEOPLE.lazy(), PEOPLE.to_arrow(), relation):
        assert errors(data) == pytest.approx(expected, rel=1e-8)


def test_tallies_of_parts_of_a_survey_add_up() -> None:
    for design in (LINEARISED, REPEATED):
        for metric, columns in ((tf.sens, ("truth", "estimate")), (tf.rsq, ("y", "p"))):
            # far from the other half: sums are about another centre
            halves = [PEOPLE[:200], PEOPLE[200:].with_columns(pl.col("y", "p") + 30)]
            parts = [metric.tally(half, *columns, design=design) for half in halves]
            merged = row(metric.compute(parts[0] + parts[1], interval="auto"))
            whole = row(metric(pl.concat(halves), *columns, design=design, interval="auto"))
            assert merged[".std_error"] == pytest.approx(whole[".std_error"], rel=1e-6)
    numbered = [tf.mae.tally(half, "y", "p", design=OF_ROWS) for half in (PEOPLE[:200], PEOPLE[200:])]
    with pytest.raises(tf.errors.ArgumentError, match="Rows of a design without clusters are numbered"):
        _ = numbered[0] + numbered[1]


def test_order_of_rows_and_scale_of_weights_do_not_matter() -> None:
    shuffled = PEOPLE.sample(fraction=1.0, shuffle=True, seed=1).with_columns(pl.col("weight", *COLUMNS) * 1e3)
    for design in (LINEARISED, OF_ROWS, REPEATED):
        call: dict[str, Any] = {"estimate": "estimate", "design": design}
        tables = [tf.compare_groups(tf.selection_rate, by="group")(data, **call) for data in (PEOPLE, shuffled)]
        for name in (".lower", ".upper", ".p_value"):
            assert tables[0][name].drop_nulls().to_list() == pytest.approx(
                tables[1][name].drop_nulls().to_list(), rel=1e-7
            )


def test_columns_of_a_design_may_have_any_name() -> None:
    named = PEOPLE.rename({"weight": "w2", "stratum": "truth ", "psu": "k0", "r0": "v1", "r1": "measure", "r2": "n"})
    designs = {
        "w2": tf.surveys.design(weights="w2", strata="truth ", clusters="k0"),
        "v1": tf.surveys.replicate_weights(
            weights="w2", replicates=["v1", "measure", "n", *COLUMNS[3:]], method="successive_difference"
        ),
    }
    for design, own in zip(designs.values(), (LINEARISED, REPEATED), strict=True):
        for data in (named, duckdb.from_arrow(named.to_arrow())):
            result = tf.mae(data, "y", "p", design=design, interval="auto")
            expected = row(tf.mae(PEOPLE, "y", "p", design=own, interval="auto"))
            assert row(pl.DataFrame(result))[".std_error"] == pytest.approx(expected[".std_error"])


def test_range_of_groups_and_smallest_value_have_intervals() -> None:
    for design, method in ((LINEARISED, "survey_linearized"), (REPEATED, "survey_replicates")):
        call: dict[str, Any] = {"estimate": "estimate", "design": design, "interval": "auto"}
        parity = row(tf.demographic_parity("group")(PEOPLE, **call))
        assert parity[".method"] == f"{method}, pairwise"
        assert 0 <= parity[".lower"] <= parity[".estimate"] <= parity[".upper"] <= 1
        least = row(tf.selection_rate.group_minimum("group")(PEOPLE, **call))
        assert 0 <= least[".lower"] <= least[".estimate"] <= least[".upper"]


CONSTANT = PEOPLE.with_columns(estimate=pl.col("estimate") | (pl.col("group") == "far"))


@pytest.mark.parametrize("design", [LINEARISED, REPEATED], ids=["linearised", "replicates"])
@pytest.mark.parametrize("scale", ["difference", "ratio", "odds_ratio"])
@pytest.mark.parametrize("to", ["far", "a"])
def test_comparison_with_a_rate_that_does_not_vary_has_neither_limits_nor_p_value(
    design: Any, scale: Any, to: str
) -> None:
    table = tf.compare_groups(tf.selection_rate, by="group", scale=scale, to=to)
    compared = table(CONSTANT, estimate="estimate", design=design)
    unknown = compared.filter((pl.col(".group") == "far") | (pl.col(".reference") == "far"))
    assert len(unknown)
    assert unknown.select(".lower", ".upper", ".method", ".p_value", ".p_adjusted").null_count().row(0) == (
        (len(unknown),) * 5
    )
    known = compared.filter(pl.col(".reference") == "a", pl.col(".group") == "b")
    assert known.select(".lower", ".upper", ".p_value").null_count().row(0) == (0, 0, 0)


@pytest.mark.parametrize("design", [LINEARISED, REPEATED], ids=["linearised", "replicates"])
def test_smallest_and_largest_value_have_the_end_that_groups_which_vary_give(design: Any) -> None:
    call: dict[str, Any] = {"estimate": "estimate", "design": design, "interval": "auto"}
    # limits that hold for three groups at once
    each = tf.selection_rate.difference("group").by_group(CONSTANT, **call).drop_nulls(".std_error")
    beyond = (1 - 0.95 ** (1 / 3)) / 2
    highest, lowest = list[float](), list[float]()
    for group, rate, error in each.select(".group", ".estimate", ".std_error").rows():
        own = PEOPLE.filter(group=group)
        freedom = REPLICATES - 1 if design is REPEATED else own["psu"].n_unique() - own["stratum"].n_unique()
        half = float(stats.t.isf(beyond, freedom)) * error
        highest.append(rate + half)
        lowest.append(rate - half)
    least = row(tf.selection_rate.group_minimum("group")(CONSTANT, **call))
    assert (least[".lower"], least[".method"]) == (None, "simultaneous, upper end")
    assert least[".upper"] == pytest.approx(min(highest))
    most = row(tf.selection_rate.group_maximum("group")(CONSTANT, **call))
    assert (most[".estimate"], most[".upper"], most[".method"]) == (1.0, None, "simultaneous, lower end")
    assert most[".lower"] == pytest.approx(max(lowest))


def test_design_without_an_interval_weighs_rows() -> None:
    weighted = tf.sens(PEOPLE, "truth", "estimate", case_weights="weight")[".estimate"].item()
    for design in (LINEARISED, OF_ROWS, REPEATED):
        assert tf.sens(PEOPLE, "truth", "estimate", design=design)[".estimate"].item() == pytest.approx(weighted)


def test_values_without_rows_have_no_interval() -> None:
    for design in (LINEARISED, OF_ROWS, REPEATED):
        negative = PEOPLE.with_columns(truth=pl.lit(value=False))
        with pytest.warns(tf.errors.UndefinedWarning):
            empty = row(tf.mae(PEOPLE.head(0), "y", "p", design=design, interval="auto"))
        assert (empty[".estimate"], empty[".lower"]) == (None, None)
        with pytest.warns(tf.errors.UndefinedWarning):
            undefined = row(tf.sens(negative, "truth", "estimate", design=design, interval="auto"))
        assert (undefined[".estimate"], undefined[".std_error"]) == (None, None)


# What is refused


def changed(**columns: pl.Expr) -> pl.DataFrame:
    return PEOPLE.with_columns(**columns)


def where_first(name: str, value: Any) -> pl.Expr:
    """A column with another value in the first row."""
    return pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(name)


BAD_DATA: dict[str, tuple[pl.DataFrame, Any, str]] = {
    "missing weight": (changed(weight=where_first("weight", None)), LINEARISED, "'weight' are missing"),
    "negative weight": (changed(weight=where_first("weight", -1.0)), REPEATED, "'weight' are negative"),
    "infinite weight": (changed(weight=where_first("weight", math.inf)), OF_ROWS, "'weight' are NaN or infinite"),
    "weights of zero": (changed(weight=pl.lit(0.0)), LINEARISED, "all values of 'weight' are zero"),
    "text as weight": (changed(weight=pl.col("group")), LINEARISED, "weights must be numbers"),
    "missing stratum": (changed(stratum=where_first("stratum", None)), LINEARISED, "'stratum' are missing"),
    "missing cluster": (changed(psu=where_first("psu", None)), LINEARISED, "'psu' are missing"),
    "cluster in two strata": (
        PEOPLE,
        tf.surveys.design(strata="stratum", clusters="number"),
        r"clusters 0, 1.*several strata.*nested=True",
    ),
    "no such stratum": (PEOPLE, tf.surveys.design(strata="strata"), "there is no column 'strata'.*'stratum'"),
    "no such replicate": (
        PEOPLE,
        tf.surveys.replicate_weights(weights="weight", replicates=["r0", "r77"], method="brr"),
        "no column 'r77'",
    ),
    "missing replicate": (changed(r4=where_first("r4", None)), REPEATED, "replicate weights are missing"),
    "infinite replicate": (changed(r4=where_first("r4", math.inf)), REPEATED, "infinite, as in 'r4'"),
    "text as replicate": (changed(r4=pl.col("group")), REPEATED, "the replicate 'r4' is String"),
    "single cluster": (changed(psu=pl.lit(1)), tf.surveys.design(clusters="psu"), "the sample is a single PSU"),
    "population of text": (PEOPLE, tf.surveys.design(strata="stratum", fpc="group"), "'group' is String"),
    "population of several sizes": (
        PEOPLE,
        tf.surveys.design(strata="stratum", fpc="weight"),
        "several values in the stratum 0",
    ),
    "population below the sample": (
        changed(size=pl.lit(3)),
        tf.surveys.design(clusters="psu", fpc="size"),
        "has 3 PSUs by 'size', but 30",
    ),
    "population below 0": (
        changed(size=pl.lit(-3)),
        tf.surveys.design(clusters="psu", fpc="size"),
        "'size' are not above 0",
    ),
    "no design": (PEOPLE, "weight", r"surveys\.design\(weights="),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_of_a_survey_give_no_number(name: str) -> None:
    data, design, message = BAD_DATA[name]
    for frame in (data, duckdb.from_arrow(data.to_arrow())):
        with pytest.raises(tf.errors.TidyfairError, match=message):
            tf.selection_rate(frame, estimate="estimate", design=design, interval="auto")


REPEATED_BADLY: dict[str, tuple[dict[str, Any], str]] = {
    "no replicate": ({"replicates": []}, "two replicates or more, not 0"),
    "one text": ({"replicates": "r0"}, "must be a list of columns"),
    "repeated column": ({"replicates": ["r0", "r0"]}, "has 'r0' twice"),
    "weights among them": ({"replicates": ["r0", "weight"]}, "has 'weight' twice"),
    "unknown method": ({"method": "sdr"}, "must be 'brr', 'fay'"),
    "Fay without a coefficient": ({"method": "fay"}, "fay=0.5"),
    "Fay with 1": ({"method": "fay", "fay": 1}, "less than 1"),
    "coefficient of another method": ({"fay": 0.5}, 'belongs to `method="fay"`'),
    "factors of others": ({"rscales": [1.0]}, "1 factors for 2 replicates"),
    "factors of 0": ({"rscales": [0, 0]}, "all `rscales` are 0"),
    "scale of 0": ({"scale": 0}, "`scale`"),
    "unknown centre": ({"centre": "median"}, "must be 'estimate'"),
    "no freedom": ({"degrees_of_freedom": 0}, "degrees_of_freedom"),
}


def replicated(**changed: Any) -> Any:
    given: dict[str, Any] = {"weights": "weight", "replicates": ["r0", "r1"], "method": "brr"}
    return tf.surveys.replicate_weights(**given | changed)


@pytest.mark.parametrize("name", REPEATED_BADLY)
def test_replicate_weights_that_mean_nothing_are_refused(name: str) -> None:
    wrong, message = REPEATED_BADLY[name]
    with pytest.raises(tf.errors.TidyfairError, match=message):
        replicated(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "needs a column"),
        ({"strata": []}, "needs a column"),
        ({"strata": "psu", "clusters": "psu"}, "has 'psu' twice"),
        ({"strata": "stratum", "nested": True}, "clusters within strata"),
        ({"strata": "stratum", "lonely": "remove"}, "must be 'error'"),
        ({"strata": "stratum", "nested": 1}, "`nested` is True or False"),
    ],
)
def test_designs_that_mean_nothing_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(tf.errors.TidyfairError, match=message):
        tf.surveys.design(**wrong)


@pytest.mark.parametrize("name", ["case_weights", "cluster", "frequency_weights"])
def test_design_is_refused_beside_options_that_say_the_same(name: str) -> None:
    other: dict[str, Any] = {name: "psu"}
    with pytest.raises(tf.errors.ArgumentError, match=f"`design` and `{name}` cannot be combined"):
        tf.sens(PEOPLE, "truth", "estimate", design=LINEARISED, **other)


def test_intervals_that_know_no_design_are_refused() -> None:
    call: dict[str, Any] = {"estimate": "estimate", "design": LINEARISED}
    tally = tf.selection_rate.tally(PEOPLE, **call)
    for interval in ("bootstrap", "exact", "bayes"):
        with pytest.raises(tf.errors.ArgumentError, match="does not support `design`"):
            tf.selection_rate(PEOPLE, interval=interval, **call)
        with pytest.raises(tf.errors.ArgumentError, match="does not support `design`"):
            tf.selection_rate.compute(tally, interval=interval)  # pyright: ignore[reportArgumentType] - refused
    mean = tf.new_prob_metric(lambda one, two, weights: np.average(one + two, weights=weights), "weighted mean")
    with pytest.raises(tf.errors.ArgumentError, match="no interval of weighted mean for a survey design"):
        mean(PEOPLE, "truth", probs="score", design=REPEATED, interval="auto")
    with pytest.raises(tf.errors.ArgumentError, match="no interval of pr_auc for a survey design"):
        tf.pr_auc(PEOPLE, "truth", probs="score", design=LINEARISED, interval="auto")
    for metric in (
        tf.selection_rate.difference("group", to="rest"), tf.selection_rate.difference("group", to="a", signed=True),
    ):  # fmt: skip
        with pytest.raises(tf.errors.ArgumentError, match="`compare_groups` compares each group with a reference"):
            metric(PEOPLE, interval="auto", **call)


def test_tests_and_gates_that_know_no_design_are_refused() -> None:
    gate = tf.check(tf.demographic_parity("group"), below=0.1)
    with pytest.raises(
        tf.errors.ArgumentError,
        match="'design' is an option of values, disparities, and comparisons of groups or models",
    ):
        gate(PEOPLE, estimate="estimate", design=LINEARISED)  # pyright: ignore[reportCallIssue] - refused
    tally = tf.demographic_parity("group").tally(PEOPLE, estimate="estimate", design=LINEARISED)
    with pytest.raises(tf.errors.ArgumentError, match="does not support survey designs"):
        gate.compute(tally)
    with pytest.raises(tf.errors.ArgumentError, match="does not support survey designs yet"):
        tf.save_state(tally, "never written.parquet")

"""The table of methods: each row is reached, named intervals equal other libraries, and outer groups stand alone."""

from __future__ import annotations

import math
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.optimize
import scipy.special
from lending_rates import ends
from plain_limits import jeffreys
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import tidyfair as tf
from tidyfair.intervals.methods import METHODS, Case, choose
from tidyfair.specs.option_table import INTERVALS

VALUES = (
    "rate", "function_of_rate", "sum_of_rates", "area", "ranked", "calibration_error", "fit", "smooth", "resampled",
)  # fmt: skip
COMPARED = ("alone", "difference", "ratio", "odds_ratio", "range", "many", "rest", "extreme", "distance", "other")
SAMPLINGS = ("rows", "shared", "strata", "replicate_weights", "judged")
CASES = [Case(*words) for words in product(VALUES, COMPARED, SAMPLINGS)]


def people(rows: int = 240, groups: int = 4) -> pl.DataFrame:
    """Labels, scores and numbers of groups in hospitals, some of them in strata of a survey."""
    random = np.random.default_rng(1)
    group = np.arange(rows) % groups
    truth = random.random(rows) < 0.5
    score = np.clip(0.25 + 0.4 * truth + 0.05 * group + random.normal(0, 0.2, rows), 0.01, 0.99)
    return pl.DataFrame(
        {
            "t": truth.astype(int), "e": (score > 0.5).astype(int), "s": score, "g": group, "pair": group % 2,
            "y": random.normal(5, 1, rows), "p": random.normal(5, 1, rows), "w": random.lognormal(0, 0.5, rows),
            "c": np.arange(rows) // 4, "stratum": np.arange(rows) // 60,
        }
    )  # fmt: skip


PEOPLE = people()
LABELS, SCORES, NUMBERS = (
    {"truth": "t", "estimate": "e"},
    {"truth": "t", "probs": "s"},
    {"truth": "y", "estimate": "p"},
)

# Rows of the table


def test_every_row_is_taken_in_some_case() -> None:
    for method in METHODS:
        intervals = (method.name, *method.interval.split())
        assert any(choose(case, interval) is method for case in CASES for interval in intervals), method


def test_intervals_are_rows_or_ways_to_choose_one() -> None:
    names = {method.name for method in METHODS}
    assert {*INTERVALS} <= names | {"auto", "analytic", "exact", "bayes"}
    # results by the design of a survey, and from a prior, are asked for by another word
    of_words = {name for name in names if name.startswith(("survey", "prediction_powered"))} | {"dirichlet"}
    assert names - of_words <= {*INTERVALS}
    words = {
        word
        for method in METHODS
        for column in (method.value, method.compared, method.sampling)
        for word in column.split()
    }
    assert words == {*VALUES, *COMPARED, *SAMPLINGS} - {"other"}


OVERLAPPING = tf.memberships((pl.col("g") < 3).alias("one"), (pl.col("g") > 0).alias("other"))
JUDGED = {"truth": pl.when(pl.col("stratum") < 2).then("t").alias("gold"), "estimate": "e", "judged": "t"}
SURVEY = tf.surveys.design(weights="w", strata="stratum", clusters="c")
REACHED: list[tuple[Any, dict[str, Any], str]] = [
    (tf.sens, LABELS, "wilson"),
    (tf.sens, LABELS | {"interval": "exact"}, "clopper_pearson"),
    (tf.f_meas, LABELS, "wilson"),
    (tf.j_index, LABELS, "mover"),
    (tf.mcc, LABELS, "jackknife"),
    (tf.sens, LABELS | {"interval": "jackknife"}, "jackknife"),
    (tf.mae, NUMBERS, "jackknife"),
    (tf.roc_auc, SCORES, "delong"),
    (tf.average_precision, SCORES, "influence"),
    (tf.calibration.error, SCORES, "folded_normal"),
    (tf.calibration.slope, SCORES, "information"),
    (tf.sens, LABELS | {"design": SURVEY}, "survey_linearized"),
    (tf.sens.difference("pair"), LABELS, "newcombe"),
    (tf.sens.ratio("pair"), LABELS, "miettinen_nurminen"),
    (tf.mcc.difference("pair"), LABELS, "mover"),
    (tf.sens.difference("pair"), LABELS | {"design": SURVEY}, "survey_linearized"),
    (tf.sens.difference("g"), LABELS | {"design": SURVEY}, "survey_linearized, pairwise"),
    (tf.sens.difference("g"), LABELS, "pairwise"),
    (tf.sens.difference(OVERLAPPING), LABELS, "mover"),
    (tf.sens, JUDGED, "prediction_powered"),
    (tf.sens.difference("pair"), JUDGED, "prediction_powered"),
    (tf.sens.difference("g"), JUDGED, "prediction_powered, pairwise"),
    (tf.sens.difference("g", to="rest"), LABELS, "pairwise"),
    (tf.sens.difference("c"), LABELS | {"on_undefined": "ignore"}, "pairwise"),
    (tf.selection_rate.difference(pl.col("y").rank("dense").alias("code")), {"estimate": "e"}, "simultaneous"),
    (tf.equal_opportunity("g", aggregate=tf.aggregates.standard_deviation()), LABELS, "test_inversion"),
    (tf.median_absolute_error.difference("pair"), NUMBERS | {"times": 50}, "bootstrap"),
    (tf.median_absolute_error, NUMBERS | {"times": 50}, "bootstrap"),
    (tf.sens, LABELS | {"interval": "bootstrap", "times": 50}, "bootstrap"),
    (tf.sens, LABELS | {"interval": "bayes", "times": 50}, "dirichlet"),
]


@pytest.mark.parametrize("number", range(len(REACHED)))
def test_calls_reach_their_row(number: int) -> None:
    metric, options, expected = REACHED[number]
    result = metric(PEOPLE, **{"interval": "auto", **options})
    assert result[".method"].item() == expected


def test_closed_forms_and_the_recommended_ones_are_the_same_but_for_draws() -> None:
    for case in CASES:
        by_default, closed = (choose(case, interval) for interval in ("auto", "analytic"))
        if closed is not None and case.value != "resampled":
            assert by_default is closed


# Named intervals

RATES = [((3, 20), (9, 25)), ((1, 40), (28, 42)), ((40, 100), (41, 90)), ((17, 18), (2, 9))]


def of_two(one: tuple[int, int], other: tuple[int, int]) -> pl.DataFrame:
    sides = {"one": one, "other": other}
    return pl.concat(
        pl.DataFrame({"e": [1] * hits + [0] * (rows - hits), "g": group}) for group, (hits, rows) in sides.items()
    )


OF_ONE = {"wilson": "wilson", "clopper_pearson": "beta", "agresti_coull": "agresti_coull", "wald": "normal"}


@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.parametrize(("hits", "rows"), [(0, 9), (1, 20), (3, 12), (30, 100), (9, 9)])
def test_named_intervals_of_a_rate_equal_statsmodels(name: Any, hits: int, rows: int) -> None:
    data = pl.DataFrame({"e": [1] * hits + [0] * (rows - hits)})
    result = tf.selection_rate(data, estimate="e", labels=[0, 1], pos_label=1, interval=name, conf_level=0.9)
    expected = proportion_confint(hits, rows, alpha=0.1, method=OF_ONE[name])
    assert ends(result) == pytest.approx(expected, abs=1e-12)
    assert result[".method"].item() == name


def test_jeffreys_interval_is_of_a_beta_distribution() -> None:
    for hits, rows in ((0, 9), (1, 20), (30, 100), (9, 9)):
        data = pl.DataFrame({"e": [1] * hits + [0] * (rows - hits)})
        result = tf.selection_rate(data, estimate="e", labels=[0, 1], pos_label=1, interval="jeffreys")
        assert ends(result) == pytest.approx(jeffreys(hits, rows))


OF_TWO = {
    ("difference", "newcombe"): "newcomb", ("difference", "agresti_caffo"): "agresti-caffo",
    ("difference", "wald"): "wald",
    ("ratio", "miettinen_nurminen"): "score", ("ratio", "katz"): "log",
}  # fmt: skip


@pytest.mark.parametrize(("compared", "name"), OF_TWO)
@pytest.mark.parametrize(("one", "other"), RATES)
def test_named_intervals_of_two_rates_equal_statsmodels(
    compared: str, name: str, one: tuple[int, int], other: tuple[int, int]
) -> None:
    metric = getattr(tf.selection_rate, compared)("g", to="other", signed=True)
    result = metric(of_two(one, other), estimate="e", interval=name)
    compare = "diff" if compared == "difference" else "ratio"
    expected = confint_proportions_2indep(*one, *other, method=OF_TWO[compared, name], compare=compare)
    if compared == "difference":
        expected = np.clip(expected, -1, 1)
    # the ends of scores are searched for; those of differences are inverted below
    assert ends(result) == pytest.approx(expected, rel=1e-6 if name == "miettinen_nurminen" else 1e-9)
    assert result[".method"].item() == name


def score(one: tuple[int, int], other: tuple[int, int], apart: float) -> float:
    """The statistic of rates that are so far apart, at the likeliest such rates (Miettinen and Nurminen, 1985)."""

    def loss(second: float) -> float:
        shares = ((one, second + apart), (other, second))
        return -sum(
            float(scipy.special.xlogy(hits, share) + scipy.special.xlogy(rows - hits, 1 - share))
            for (hits, rows), share in shares
        )

    bounds = (max(0.0, -apart), min(1.0, 1 - apart))
    found: Any = scipy.optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-12})
    second, total = float(found.x), one[1] + other[1]
    variance = (second + apart) * (1 - second - apart) / one[1] + second * (1 - second) / other[1]
    return (one[0] / one[1] - other[0] / other[1] - apart) / math.sqrt(variance * total / (total - 1))


@pytest.mark.parametrize(("one", "other"), RATES)
def test_miettinen_nurminen_interval_of_a_difference_inverts_its_score(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    metric = tf.selection_rate.difference("g", to="other", signed=True)
    result = metric(of_two(one, other), estimate="e", interval="miettinen_nurminen")
    z = NormalDist().inv_cdf(0.975)
    assert [score(one, other, end) for end in ends(result)] == pytest.approx([z, -z], rel=1e-5)


def test_agresti_caffo_adds_a_hit_and_a_miss_to_each_group() -> None:
    (one, rows), (other, others) = (1, 20), (17, 18)
    first, second = (one + 1) / (rows + 2), (other + 1) / (others + 2)
    half = NormalDist().inv_cdf(0.95) * math.sqrt(
        first * (1 - first) / (rows + 2) + second * (1 - second) / (others + 2)
    )  # fmt: skip
    metric = tf.selection_rate.difference("g", to="other", signed=True)
    result = metric(of_two((one, rows), (other, others)), estimate="e", interval="agresti_caffo", conf_level=0.9)
    assert ends(result) == pytest.approx((max(first - second - half, -1), first - second + half))


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (tf.f_meas, lambda tp, fn, fp, tn: 2 * tp / (2 * tp + fn + fp) + 0 * tn),
        (tf.bal_accuracy, lambda tp, fn, fp, tn: (tp / (tp + fn) + tn / (tn + fp)) / 2),
    ],
)
def test_jackknife_of_functions_of_rates_leaves_out_one_row_at_a_time(metric: Any, value: Any) -> None:
    table = {"tp": 41, "fn": 12, "fp": 19, "tn": 33}
    truth = np.repeat([1, 1, 0, 0], [*table.values()])
    estimate = np.repeat([1, 0, 1, 0], [*table.values()])
    counts = np.array([*table.values()]) + 0.25
    centre, rows = value(*counts), counts.sum()
    lost = np.array([centre - value(*(counts - cell)) for cell in np.eye(4)])
    variance = (counts @ lost**2 - (counts @ lost) ** 2 / rows) * rows / (rows - 1)
    logit = math.log(centre / (1 - centre))
    away = scipy.special.stdtrit(rows - 2, 0.975) * math.sqrt(variance) / (centre * (1 - centre))
    expected = scipy.special.expit([logit - away, logit + away]).tolist()
    frame = pl.DataFrame({"t": truth, "e": estimate})
    assert ends(metric(frame, "t", "e", interval="jackknife")) == pytest.approx(expected, rel=1e-9)


def test_pure_wilson_is_narrower_than_the_recommended_limits_of_few_hits_alone() -> None:
    few, many = (pl.DataFrame({"e": [1] * hits + [0] * (40 - hits)}) for hits in (2, 15))
    for data, is_narrower in ((few, True), (many, False)):
        pure, recommended = (ends(tf.selection_rate(data, estimate="e", interval=name)) for name in ("wilson", "auto"))  # pyright: ignore[reportArgumentType] - names
        assert (pure[0] > recommended[0]) == is_narrower
        assert pure[1] == recommended[1]


@pytest.mark.parametrize(
    ("metric", "options", "expected"),
    [
        (tf.mcc, LABELS | {"interval": "wilson"}, ["auto", "jackknife", "bootstrap"]),
        (tf.sens, LABELS | {"interval": "katz"}, ["wilson", "clopper_pearson", "jeffreys", "agresti_coull", "wald"]),
        (tf.roc_auc, SCORES | {"interval": "wilson"}, ["auto", "delong", "bootstrap"]),
        (tf.sens.difference("pair"), LABELS | {"interval": "katz"}, ["newcombe", "agresti_caffo", "wald", "mover"]),
        (tf.sens.ratio("pair"), LABELS | {"interval": "wald"}, ["miettinen_nurminen", "katz", "mover"]),
        (tf.sens.difference("g"), LABELS | {"interval": "newcombe"}, ["auto", "pairwise", "bootstrap"]),
    ],
)
def test_refusals_name_those_that_apply(metric: Any, options: dict[str, Any], expected: list[str]) -> None:
    with pytest.raises(tf.errors.ArgumentError) as caught:
        metric(PEOPLE, **options)
    assert f"`interval={options['interval']!r}` is no interval of" in str(caught.value)
    assert str(caught.value).startswith(metric.name)
    ways = str(caught.value).split("; take ")[1]
    assert all(f"'{name}'" in ways for name in expected)
    assert f"'{options['interval']}'" not in ways
    for way in expected:
        if "bayes" not in way:
            assert len(metric(PEOPLE, **options | {"interval": way, "times": 50})) == 1


# Outer groups by themselves


def folds() -> pl.DataFrame:
    """Outer groups that differ in their groups and sizes, each with clusters of its own."""
    parts = [people(rows, groups) for rows, groups in ((90, 2), (300, 5), (160, 4))]
    return pl.concat([part.with_columns(fold=pl.lit(fold)) for fold, part in enumerate(parts)])


SPREAD, HIGHEST = tf.aggregates.standard_deviation(), tf.equalized_odds("g", aggregate=tf.group_maximum())
ALONE: dict[str, tuple[Any, dict[str, str]]] = {
    "labels": (tf.metric_set(tf.sens, tf.f_meas, tf.j_index, tf.mcc, tf.kap), LABELS),
    "areas": (tf.metric_set(tf.roc_auc, tf.auc_parity("g"), tf.brier_class, tf.brier_class.difference("g")), SCORES),
    "numbers": (tf.metric_set(tf.mae, tf.rmse, tf.rsq, tf.rmse.difference("g"), tf.mae.ratio("g")), NUMBERS),
    "ranges": (tf.metric_set(tf.equalized_odds("g"), tf.sens.ratio("g"), tf.mcc.difference("g")), LABELS),
    "references": (tf.metric_set(tf.sens.difference("g", to="0"), tf.kap.difference("g", to="majority")), LABELS),
    "rests": (tf.metric_set(tf.sens.difference("g", to="rest"), tf.sens.ratio("g", to="overall")), LABELS),
    "extremes": (tf.metric_set(tf.sens.group_minimum("g"), HIGHEST), LABELS),
    "spreads": (tf.equal_opportunity("g", aggregate=SPREAD), LABELS),
    "means": (tf.equal_opportunity("g", aggregate=tf.aggregates.group_mean()), LABELS),
    "rows": (tf.metric_set(tf.median_absolute_error, tf.median_absolute_error.difference("g")), NUMBERS),
}  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {
    "auto": {}, "weights": {"case_weights": "w"}, "clusters": {"cluster": "c"},
    "weights and clusters": {"case_weights": "w", "cluster": "c"}, "bootstrap": {"interval": "bootstrap"},
    "weighted bootstrap": {"interval": "bootstrap", "case_weights": "w"},
    "cluster bootstrap": {"interval": "bootstrap", "cluster": "c"},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::tidyfair.errors.ClusterWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALONE)
def test_limits_of_an_outer_group_do_not_depend_on_the_others(name: str, way: str) -> None:
    metric, columns = ALONE[name]
    data = folds().with_columns(pl.col("g").cast(pl.String))
    options: dict[str, Any] = {"interval": "auto", "times": 60, "on_undefined": "ignore", **columns, **WAYS[way]}
    together = metric(data, group_by="fold", **options)
    # the one in the middle, between one with fewer groups and one with others
    alone, within = metric(data.filter(fold=1), **options), together.filter(fold=1)
    for column in (".estimate", ".lower", ".upper", ".std_error"):
        assert within[column].is_null().equals(alone[column].is_null())
        expected = alone[column].drop_nulls().to_list()
        assert within[column].drop_nulls().to_list() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert within[".method"].equals(alone[".method"])


@pytest.mark.parametrize("way", ["bootstrap", "weighted bootstrap"])
def test_replicates_that_are_drawn_in_parts_are_those_that_are_drawn_at_once(way: str) -> None:
    data, parity = folds(), tf.demographic_parity("g", aggregate=tf.aggregates.group_mean())
    options: dict[str, Any] = {"estimate": "e", "times": 12_000, **WAYS[way]}
    # of all outer groups more counts are drawn than at once
    many = pl.concat([data.with_columns(pl.col("fold") + 3 * number) for number in range(3)])
    together = parity(many, group_by="fold", **options)
    for fold in range(3):
        alone = parity(data.filter(fold=fold), **options)
        assert ends(together.filter(fold=fold)) == pytest.approx(ends(alone), rel=1e-12)

"""The intervals of calls: rates and two sides by counts by hand, weights, options, and several groups at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import scipy.stats
from conftest import as_polars
from inline_snapshot import snapshot
from lending_rates import CALL, LOANS, SCORED, counts, ends
from plain_limits import limits_of_difference
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("metric", [tf.sens, tf.spec, tf.precision, tf.accuracy, tf.detection_prevalence])
def test_rate_has_wilson_interval(metric: tf.types.Metric) -> None:
    ((hits, rows),) = counts(metric).values()
    result = metric(LOANS, **CALL, interval="auto")
    assert result.columns[-4:] == [".lower", ".upper", ".std_error", ".method"]
    assert ends(result) == pytest.approx(proportion_confint(hits, rows, method="wilson"))
    assert result[".method"].item() == "wilson"
    share = hits / rows
    assert result[".std_error"].item() == pytest.approx(math.sqrt(share * (1 - share) / rows))
    exact = metric(LOANS, **CALL, interval="exact", conf_level=0.9)
    assert ends(exact) == pytest.approx(proportion_confint(hits, rows, alpha=0.1, method="beta"))


def test_group_values_have_wilson_intervals() -> None:
    groups = tf.equalized_odds("race").by_group(LOANS, **CALL, interval="auto")
    for metric in (tf.sens, tf.spec):
        for race, (hits, rows) in counts(metric, "race").items():
            mine = groups.filter((pl.col(".metric") == metric.name) & (pl.col(".group") == race))
            assert ends(mine) == pytest.approx(proportion_confint(hits, rows, method="wilson"))


def test_two_sides_have_newcombe_and_miettinen_nurminen_intervals() -> None:
    groups = counts(tf.sens, "sex")
    one, other = groups["female"], groups["male"]
    difference = tf.equal_opportunity(tf.privileged(sex="male"))(LOANS, **CALL, interval="auto")
    expected = confint_proportions_2indep(*one, *other, method="newcomb", compare="diff")
    assert ends(difference) == pytest.approx(expected)
    ratio = tf.equal_opportunity_ratio(tf.privileged(sex="male"))(LOANS, **CALL, interval="auto")
    assert ends(ratio) == pytest.approx(confint_proportions_2indep(*one, *other, method="score", compare="ratio"))
    assert difference[".method"].item() == "newcombe"
    assert ratio[".method"].item() == "miettinen_nurminen"


def two_rates(one: tuple[int, int], other: tuple[int, int]) -> pl.DataFrame:
    """Decisions of a small group and of a large one: how many are selected, of how many."""
    sides = {"small": one, "large": other}
    return pl.concat(
        pl.DataFrame({"e": [1] * hits + [0] * (rows - hits), "g": group}) for group, (hits, rows) in sides.items()
    )


@pytest.mark.parametrize(
    ("one", "other"), [((2, 6), (28, 100)), ((0, 8), (30, 60)), ((5, 5), (40, 80)), ((300, 900), (410, 1000))]
)
def test_signed_difference_of_two_rates_has_newcombe_interval_for_any_reference(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    data = two_rates(one, other)
    expected, turned = limits_of_difference(one, other), limits_of_difference(other, one)
    parity, privileged = tf.demographic_parity, tf.privileged(g="large")
    ways = {
        "a group": (parity("g", aggregate=tf.difference(to="large", signed=True)), expected),
        "the majority": (parity("g", aggregate=tf.difference(to="majority", signed=True)), expected),
        "the privileged side": (parity(privileged, aggregate=tf.difference(signed=True)), expected),
        "the other side": (parity(privileged, aggregate=tf.difference(to="unprivileged", signed=True)), turned),
    }
    for metric, (lower, upper) in ways.values():
        result = metric(data, estimate="e", interval="auto")
        assert result[".method"].item() == "newcombe"
        assert ends(result) == pytest.approx((lower, upper))
        assert metric(data, estimate="e", interval="analytic").equals(result)


def test_signed_ratio_and_log_ratio_have_miettinen_nurminen_interval() -> None:
    data = two_rates((2, 6), (28, 100))
    expected = confint_proportions_2indep(2, 6, 28, 100, method="score", compare="ratio")
    ratio = tf.demographic_parity("g", aggregate=tf.ratio(to="large", signed=True))(data, estimate="e", interval="auto")
    logarithm = tf.demographic_parity("g", aggregate=tf.aggregates.log_ratio(to="large", signed=True))
    result = logarithm(data, estimate="e", interval="auto")
    assert set(ratio[".method"]) == set(result[".method"]) == {"miettinen_nurminen"}
    assert ends(ratio) == pytest.approx(expected)
    assert ends(result) == pytest.approx(tuple(map(math.log, expected)))


def test_newcombe_interval_needs_a_single_pair_in_the_outer_group() -> None:
    two = two_rates((2, 6), (28, 100)).with_columns(fold=1)
    third = pl.DataFrame({"e": [1, 0] * 20, "g": "third", "fold": 2}, schema=two.schema)
    data = pl.concat([two, two.with_columns(fold=2), third])
    metric = tf.demographic_parity("g", aggregate=tf.difference(to="large", signed=True))
    result = metric(data, estimate="e", group_by="fold", interval="auto", times=400)
    assert result[".method"].to_list() == ["newcombe", "bootstrap"]
    assert ends(result) == pytest.approx(limits_of_difference((2, 6), (28, 100)))
    with pytest.raises(tf.errors.ArgumentError, match="there is no interval in closed form"):
        metric(data, estimate="e", group_by="fold", interval="analytic")


def test_signed_difference_across_rates_may_cross_zero() -> None:
    data = two_rates((20, 60), (28, 100)).with_columns(t=pl.int_range(pl.len()) % 2)
    metric = tf.equalized_odds(tf.privileged(g="large"), aggregate=tf.difference(signed=True))
    result = metric(data, "t", "e", interval="auto", times=400).row(0, named=True)
    assert result[".lower"] < 0 < result[".upper"]
    assert result[".lower"] <= result[".estimate"] <= result[".upper"]


def test_unsigned_interval_is_folded_at_equality() -> None:
    signed = ends(tf.equal_opportunity(tf.privileged(sex="male"))(LOANS, **CALL, interval="auto"))
    unsigned = ends(tf.equal_opportunity("sex")(LOANS, **CALL, interval="auto"))
    crosses = signed[0] < 0 < signed[1]
    assert unsigned == pytest.approx((0.0 if crosses else min(map(abs, signed)), max(map(abs, signed))))
    ratio = ends(tf.equal_opportunity_ratio("sex")(LOANS, **CALL, interval="auto"))
    assert 0 < ratio[0] < ratio[1] <= 1


# Weights


SMOOTHED = tf.metric_set(
    tf.counts.smoothed_base_rate, tf.differential_fairness("race"), tf.distributions.bias_amplification("sex")
)
FAIR = tf.metric_set(tf.sens, tf.accuracy, tf.demographic_parity("race"), tf.roc_auc, tf.auc_parity("sex"), SMOOTHED)


@pytest.mark.parametrize("factor", [100, 1 / 5_000])
@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
def test_intervals_do_not_depend_on_weight_scale(interval: Any, factor: float) -> None:
    call: dict[str, Any] = {**CALL, "case_weights": "weight", "interval": interval, "times": 200}
    fair = FAIR if interval == "auto" else SMOOTHED
    call |= {"probs": "score"} if interval == "auto" else {}
    once = fair(LOANS, **call)
    again = fair(LOANS.with_columns(pl.col("weight") * factor), **call)
    for name in (".estimate", ".lower", ".upper", ".std_error"):
        assert again[name].is_null().equals(once[name].is_null())
        assert again[name].drop_nulls().to_list() == pytest.approx(once[name].drop_nulls().to_list(), rel=1e-9)


def test_weighted_rate_has_the_error_of_a_weighted_mean() -> None:
    rows = LOANS.filter(pl.col("repaid") == "yes")
    hit, weight = (rows["approved"] == "yes").cast(pl.Float64).to_numpy(), rows["weight"].to_numpy()
    share = (weight * hit).sum() / weight.sum()
    error = math.sqrt((weight**2 * (hit - share) ** 2).sum()) / weight.sum()
    result = tf.sens(LOANS, **CALL, case_weights="weight", interval="auto")
    assert result[".std_error"].item() == pytest.approx(error)
    even = weight.sum() ** 2 / (weight**2).sum()
    freedom = [scipy.stats.t(rows - 1).ppf(0.975) for rows in (len(rows), even)]
    # Korn and Graubard (1998), with the fewer of two effective numbers of rows
    size = min(share * (1 - share) / error**2, even) * (freedom[0] / freedom[1]) ** 2
    assert ends(result) == pytest.approx(proportion_confint(share * size, size, method="wilson"))


def test_effective_n_of_groups() -> None:
    parity = tf.demographic_parity("sex")
    groups = parity.by_group(LOANS, **CALL, case_weights="weight", interval="auto")
    for sex, effective, error, share in groups.select(".group", ".effective_n", ".std_error", ".estimate").rows():
        mine = LOANS.filter(sex=sex)
        weight, guess = mine["weight"].to_numpy(), (mine["approved"] == "yes").to_numpy()
        linear = ((weight * (guess - share)) ** 2).sum() / weight.sum() ** 2
        assert effective == pytest.approx(share * (1 - share) / linear)
        # about what Kish (1965) has, who does not look at who is selected
        assert effective == pytest.approx(weight.sum() ** 2 / (weight**2).sum(), rel=0.05)
        assert error == pytest.approx(math.sqrt(share * (1 - share) / effective))
    assert ".effective_n" not in parity.by_group(LOANS, **CALL, interval="auto").columns
    assert ".effective_n" not in tf.selection_rate.by_group(LOANS, **CALL, case_weights="weight").columns


@pytest.mark.parametrize("at", [0.2, 0.5, 0.9])
def test_effective_n_of_a_rate_that_is_no_share_is_that_of_its_weights(at: float) -> None:
    both = tf.metric_set(tf.metric_tweak(tf.net_benefit, "benefit", at=at), tf.accuracy)
    groups = both.difference("sex").by_group(LOANS, **CALL, case_weights="weight", interval="auto")
    kish = {
        sex: weight.sum() ** 2 / (weight**2).sum()
        for (sex,), part in LOANS.group_by("sex")
        for weight in [part["weight"].to_numpy()]
    }
    for sex, effective in groups.filter(pl.col(".metric") == "benefit").select(".group", ".effective_n").rows():
        assert effective == pytest.approx(kish[sex])
    shares = groups.filter(pl.col(".metric") == "accuracy")
    alone = tf.accuracy.difference("sex").by_group(LOANS, **CALL, case_weights="weight", interval="auto")
    assert shares[".effective_n"].equals(alone[".effective_n"])


def test_intervals_with_unit_weights_equal_unweighted() -> None:
    call: dict[str, Any] = {**CALL, "probs": "score", "interval": "auto", "times": 200}
    plain = FAIR(LOANS, **call)
    weighted = FAIR(LOANS.with_columns(one=pl.lit(1.0)), **call, case_weights="one")
    for name in (".estimate", ".lower", ".upper"):
        assert weighted[name].is_null().equals(plain[name].is_null())
        assert weighted[name].drop_nulls().to_list() == pytest.approx(plain[name].drop_nulls().to_list(), rel=1e-9)


@pytest.mark.parametrize("one", [1.0, 1 / 5_000])
def test_intervals_of_clusters_with_equal_weights_equal_unweighted(one: float) -> None:
    call: dict[str, Any] = {**CALL, "cluster": "person", "interval": "auto", "times": 200}
    people = LOANS.with_columns(person=pl.int_range(pl.len()) // 5, one=one)
    plain, weighted = SMOOTHED(people, **call), SMOOTHED(people, **call, case_weights="one")
    for name in (".lower", ".upper"):
        assert weighted[name].is_null().equals(plain[name].is_null())
        assert weighted[name].drop_nulls().to_list() == pytest.approx(plain[name].drop_nulls().to_list(), rel=1e-6)


# Calls


def test_intervals_by_outer_group_threshold_and_label() -> None:
    by_fold = tf.demographic_parity("sex")(LOANS, **CALL, group_by="fold", interval="auto")
    one = tf.demographic_parity("sex")(LOANS.filter(pl.col("fold") == 3), **CALL, interval="auto")
    assert ends(by_fold.filter(pl.col("fold") == 3)) == pytest.approx(ends(one))
    cut = tf.sens(LOANS, **SCORED, threshold=[0.3, 0.6], interval="auto")
    for row, threshold in enumerate((0.3, 0.6)):
        assert ends(cut, row) == ends(tf.sens(LOANS, **SCORED, threshold=threshold, interval="auto"))
    letters = pl.DataFrame(
        {"y": list("abc") * 30, "p": list("abcacbabc") * 10, "g": list("uvw") * 10 + list("vwu") * 20}
    )
    fair = tf.metric_set(tf.accuracy, tf.sens, tf.demographic_parity("g"))
    many = fair(letters, "y", "p", interval="auto", times=200)
    assert many[".method"].to_list() == ["wilson", "jackknife", "pairwise"]
    assert (many[".lower"] <= many[".estimate"]).all()
    assert (many[".upper"] >= many[".estimate"]).all()


def test_intervals_on_every_engine(engine: Callable[[pl.DataFrame], Any]) -> None:
    result = as_polars(tf.sens(engine(LOANS), **CALL, interval="auto"))
    assert ends(result) == ends(tf.sens(LOANS, **CALL, interval="auto"))


def test_undefined_value_has_null_interval() -> None:
    frame = pl.DataFrame({"y": [0, 0, 1, 1], "p": [0, 1, 1, 1], "g": list("aabb")})
    groups = tf.equal_opportunity("g").by_group(frame, "y", "p", interval="auto")
    assert groups.select(".lower", ".upper", ".method").row(0) == (None, None, None)
    assert groups[".lower"][1] is not None
    result = tf.equal_opportunity("g")(frame, "y", "p", interval="auto", on_undefined="ignore")
    assert result.select(".estimate", ".lower", ".method").row(0) == (None, None, None)
    one = tf.demographic_parity("g")(frame.head(2), estimate="p", interval="auto")
    assert one.select(".estimate", ".lower").row(0) == (0.0, None)


@pytest.mark.parametrize(
    ("metric", "options", "expected"),
    [
        (
            tf.sens,
            {"interval": "wilsons"},
            snapshot(
                "`interval=` must be 'auto', 'analytic', 'bootstrap', 'bayes', 'exact', 'wilson', 'clopper_pearson', 'jeffreys', 'agresti_coull', 'wald', 'newcombe', 'agresti_caffo', 'miettinen_nurminen', 'katz', 'mover', 'delong', 'influence', 'folded_normal', 'jackknife', 'information', 'pairwise', 'simultaneous', 'test_inversion' or 'prediction_powered', not 'wilsons'. Did you mean 'wilson'?"
            ),
        ),
        (
            tf.sens,
            {"interval": "auto", "conf_level": 95},
            snapshot("`conf_level` is a number between 0 and 1, not 95; 95 percent is 0.95."),
        ),
        (
            tf.sens,
            {"interval": "auto", "times": 0},
            snapshot("`times` is a whole number, 20 to 10000000, not 0."),
        ),
        (tf.sens, {"interval": "auto", "seed": -1}, snapshot("`seed` is a whole number, 0 or more, not -1.")),
        (
            tf.mcc,
            {"interval": "exact"},
            snapshot('\'mcc\': there is no exact interval; take `interval="auto"` or "bootstrap".'),
        ),
        (
            tf.average_precision,
            {"interval": "bayes", "probs": "score"},
            snapshot(
                "There is no interval of average_precision, whose rows have no prior; leave `interval=` out, or ask for the others alone."
            ),
        ),
        (
            tf.average_precision,
            {"interval": "auto", "probs": "score", "score_bins": 64},
            snapshot(
                "There is no interval of average_precision, of which only bins of scores were counted; leave `interval=` out, or ask for the others alone."
            ),
        ),
        (
            tf.average_precision,
            {"interval": "bootstrap", "probs": "score", "times": 10**6},
            snapshot(
                "1000000 draws of 3000 rows take too long; a few hundred tell a standard error to a few percent, `times=400`."
            ),
        ),
        (
            tf.mase,
            {"truth": "score", "estimate": "weight", "pos_label": None, "interval": "auto"},
            snapshot(
                "There is no interval of mase, which reads rows in the order in which they stand; leave `interval=` out, or ask for the others alone."
            ),
        ),
    ],
)
def test_bad_interval_options_raise(metric: Any, options: dict[str, Any], expected: str) -> None:
    call = {**CALL, **options}
    if "probs" in options:
        del call["estimate"]
    with pytest.raises(tf.errors.TidyfairError) as caught:
        metric(LOANS, **call)
    assert str(caught.value) == expected


BOTH = tf.metric_set(tf.demographic_parity("race"), tf.equal_opportunity("sex"), tf.mcc.difference("race"), tf.accuracy)


def test_simultaneous_intervals_of_groups_have_sidaks_level() -> None:
    together = BOTH.by_group(LOANS, **CALL, interval="auto", simultaneous=True)
    for count, by in ((5, "race"), (2, "sex"), (1, None)):
        level = 0.95 ** (1 / count)
        alone = BOTH.by_group(LOANS, **CALL, interval="auto", conf_level=level).drop(".conf_level", strict=False)
        assert together.columns == alone.columns
        one, other = (table.filter(pl.col(".by").eq_missing(pl.lit(by))) for table in (together, alone))
        assert one.drop(".method").equals(other.drop(".method"))
        suffix = "" if by is None else ", simultaneous"
        assert one[".method"].to_list() == [f"{method}{suffix}" for method in other[".method"]]
    hits, rows = counts(tf.detection_prevalence, "race")["Asian"]
    asian = together.filter(pl.col(".metric") == "selection_rate", pl.col(".group") == "Asian")
    assert ends(asian) == pytest.approx(proportion_confint(hits, rows, alpha=1 - 0.95**0.2, method="wilson"))


def test_simultaneous_intervals_count_the_groups_of_each_outer_group() -> None:
    data = LOANS.filter((pl.col("sex") == "male") | (pl.col("race") != "Native"))
    parity = tf.demographic_parity("race")
    together = parity.by_group(data, **CALL, interval="auto", simultaneous=True, group_by="sex")
    for sex, count in (("male", 5), ("female", 4)):
        part = data.filter(pl.col("sex") == sex)
        alone = parity.by_group(part, **CALL, interval="auto", conf_level=0.95 ** (1 / count))
        of_sex = together.filter(pl.col("sex") == sex)
        assert of_sex.select(".lower", ".upper").equals(alone.select(".lower", ".upper"))


@pytest.mark.parametrize("interval", ["bootstrap", "bayes"])
def test_simultaneous_intervals_by_replicates_take_their_quantiles_further_out(interval: Any) -> None:
    parity, call = tf.demographic_parity("race"), {**CALL, "interval": interval}
    together = parity.by_group(LOANS, **call, simultaneous=True, times=1000)
    alone = parity.by_group(LOANS, **call, conf_level=0.95**0.2, times=1000)
    assert together.select(".lower", ".upper").equals(alone.select(".lower", ".upper"))
    with pytest.raises(
        tf.errors.ArgumentError, match=r"`times=500` replicates do not show .* of 5 groups.* take `times=784`"
    ):
        parity.by_group(LOANS, **call, simultaneous=True, times=500)


def test_simultaneous_intervals_of_tallies_and_accumulators() -> None:
    parity = tf.demographic_parity("race")
    expected = parity.by_group(LOANS, **CALL, interval="auto", simultaneous=True)
    given: dict[str, Any] = {"interval": "auto", "pos_label": CALL["pos_label"], "simultaneous": True}
    counting = {name: value for name, value in CALL.items() if name != "pos_label"}
    read: Any = parity.compute_by_group(parity.tally(LOANS, **counting), **given)
    assert read.equals(expected)


def test_simultaneous_is_for_intervals_of_groups() -> None:
    parity, asked = tf.demographic_parity("race"), {"simultaneous": True}
    untyped: Any = asked
    with pytest.raises(
        tf.errors.ArgumentError, match="'simultaneous' applies to the values of groups; give it to `by_group`"
    ):
        parity(LOANS, **CALL, interval="auto", **untyped)
    with pytest.raises(tf.errors.ArgumentError, match=r'`simultaneous` needs intervals: add `interval="auto"`'):
        parity.by_group(LOANS, **CALL, **untyped)


def test_simultaneous_intervals_hold_for_all_groups_at_once() -> None:
    runs, random = 400, np.random.default_rng(21)
    rates, rows = np.array([0.1, 0.3, 0.5, 0.6, 0.9]), np.array([40, 200, 25, 60, 100])
    hits = random.binomial(rows, rates, (runs, 5))
    counted = pl.DataFrame({
        "run": np.repeat(np.arange(runs), 10), "g": np.tile(np.repeat(np.arange(5), 2), runs),
        "e": np.tile([1, 0], 5 * runs), "n": np.stack([hits, rows - hits], axis=-1).ravel(),
    })  # fmt: skip
    call: dict[str, Any] = {"estimate": "e", "frequency_weights": "n", "group_by": "run", "interval": "auto"}
    shares = dict[bool, Any]()
    for simultaneous in (False, True):
        values = tf.demographic_parity("g").by_group(counted, **call, simultaneous=simultaneous)
        truth = values[".group"].replace_strict(dict(zip("01234", rates.tolist(), strict=True)))
        held = truth.is_between(values[".lower"], values[".upper"])
        of_runs = pl.DataFrame([values["run"], held.alias("held")]).group_by("run").agg(pl.col("held").all())
        shares[simultaneous] = of_runs["held"].sum() / runs
    assert shares[False] < 0.85
    assert shares[True] == pytest.approx(0.95, abs=0.03)


def test_label_that_one_group_lacks_does_not_take_the_limits_of_the_others() -> None:
    rows = [("a", "a", 60), ("a", "b", 20), ("b", "b", 50), ("b", "a", 10)]
    other = [("a", "a", 50), ("a", "b", 30), ("b", "b", 55), ("b", "a", 15)]
    cells = [(*row, "one") for row in rows] + [(*row, "two") for row in other]
    common = pl.DataFrame(cells, ["t", "e", "rows", "g"], orient="row")
    rare = pl.DataFrame([("c", "c", 2, "two")], ["t", "e", "rows", "g"], orient="row")
    metric = tf.sens.difference("g")
    options: dict[str, Any] = {"estimator": "one_vs_rest", "frequency_weights": "rows", "on_undefined": "ignore"}
    expected = metric(common, "t", "e", **options, labels=["a", "b", "c"], interval="auto")
    result = metric(pl.concat([common, rare]), "t", "e", **options, interval="auto")
    columns = (".estimate", ".lower", ".upper")
    assert expected[".upper"].item() is not None
    assert result.select(columns).row(0) == pytest.approx(expected.select(columns).row(0))

"""Audits of credit, against the counts and numbers that the documentation of solas-ai prints, and plain arithmetic."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidyfair as tdf

# favorable and all, of the notebook on a sample of HMDA data; groups and references are of three features
COUNTS = {
    "race": {"Black": (141, 340), "White": (1854, 3623), "Asian": (243, 327), "Native": (9, 20)},
    "ethnicity": {"Hispanic": (167, 508), "Non-Hispanic": (2072, 3808)},
    "sex": {"Female": (414, 1034), "Male": (808, 1622)},
}
TO = {"race": "White", "ethnicity": "Non-Hispanic", "sex": "Male"}
PRINTED_RATIOS = {"Black": 0.810399, "Asian": 1.452169, "Native": 0.879369, "Hispanic": 0.604171, "Female": 0.803747}
PRINTED_ODDS = {"Black": 0.676058, "Asian": 2.760229, "Native": 0.780671, "Hispanic": 0.410319, "Female": 0.672700}
RELATIVE = {"Black": 1.199, "Asian": 0.526, "Native": 1.126, "Hispanic": 1.472, "Female": 1.195}
SEGMENTS = {
    "White": [(333, 1279), (632, 1195), (889, 1149)], "Black": [(33, 151), (56, 117), (52, 72)],
    "Asian": [(22, 69), (67, 89), (154, 169)], "Native": [(3, 9), (4, 6), (2, 5)],
}  # fmt: skip
# Mantel and Haenszel's difference, the p-value without a correction, Breslow and Day's with Tarone's
WITHIN = {
    "Black": (-0.046837, 0.070800, 0.976447),
    "Asian": (0.144233, 1.94e-08, 0.060714),
    "Native": (-0.019394, 0.848759, 0.107109),
}


def counted(groups: dict[str, tuple[int, int]], feature: str, **others: Any) -> pl.DataFrame:
    parts = []
    for group, (favorable, every) in groups.items():
        outcome = [1] * favorable + [0] * (every - favorable)
        parts.append(pl.DataFrame({feature: [group] * every, "favorable": outcome, **others}))
    return pl.concat(parts)


@pytest.fixture(scope="module")
def impact() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for feature, groups in COUNTS.items():
        data = counted(groups, feature)
        filed = tdf.audit("lending_adverse_impact", data, estimate="favorable", by=feature, to={feature: TO[feature]})
        rows |= {row[".group"]: row for row in filed.tables["adverse_impact"].to_dicts()}
    return rows


def test_adverse_impact_ratios_are_those_that_solas_ai_prints(impact: dict[str, dict[str, Any]]) -> None:
    assert {group: impact[group][".disparity"] for group in PRINTED_RATIOS} == pytest.approx(PRINTED_RATIOS, abs=5e-7)
    assert {group: impact[group][".odds_ratio"] for group in PRINTED_ODDS} == pytest.approx(PRINTED_ODDS, abs=5e-7)
    assert {group: impact[group][".relative_rate"] for group in RELATIVE} == pytest.approx(RELATIVE, abs=5e-4)
    assert impact["Black"][".marginal_effect"] == pytest.approx(0.097025, abs=5e-7)
    assert impact["Hispanic"][".shortfall"] == pytest.approx(109.412, abs=5e-4)
    assert impact["Native"][".p_value"] == pytest.approx(0.65705, abs=5e-6)


def test_differences_within_segments_equal_those_of_statsmodels() -> None:
    filed = tdf.audit(
        "lending_adverse_impact", segmented(), estimate="favorable", by="race", to="White", within="income"
    )
    rows = {row[".group"]: row for row in filed.tables["segments"].to_dicts()}
    for group, (difference, p_value, p_equal_odds) in WITHIN.items():
        assert rows[group][".adjusted"] == pytest.approx(difference, abs=5e-7)
        assert rows[group][".p_value"] == pytest.approx(p_value, rel=5e-3)
        assert rows[group][".p_equal_odds"] == pytest.approx(p_equal_odds, abs=5e-6)


def greenland_robins(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> tuple[float, float, float]:
    """Mantel and Haenszel's ratio of rates over strata, with the limits of Greenland and Robins (1985)."""
    numerator = denominator = variance = 0.0
    for (hits, rows), (other_hits, other_rows) in zip(one, other, strict=True):
        every = rows + other_rows
        numerator += hits * other_rows / every
        denominator += other_hits * rows / every
        variance += (rows * other_rows * (hits + other_hits) - hits * other_hits * every) / every**2
    ratio = numerator / denominator
    distance = 1.959963984540054 * math.sqrt(variance / (numerator * denominator))
    return ratio, ratio * math.exp(-distance), ratio * math.exp(distance)


def segmented() -> pl.DataFrame:
    parts = []
    for segment in range(3):
        of_segment = {group: counts[segment] for group, counts in SEGMENTS.items()}
        parts.append(counted(of_segment, "race", income=segment))
    return pl.concat(parts)


def test_segments_have_the_adverse_impact_ratio_of_like_with_like_and_tests_of_homogeneity() -> None:
    filed = tdf.audit(
        "lending_adverse_impact", segmented(), estimate="favorable", by="race", to="White", within="income"
    )
    published = {row["Group"]: row for row in filed.published("segments").to_dicts()}
    rows = {row[".group"]: row for row in filed.tables["segments"].to_dicts()}
    for group in WITHIN:
        ratio, lower, upper = greenland_robins(SEGMENTS[group], SEGMENTS["White"])
        own = rows[group]
        assert (own[".ratio"], own[".ratio_lower"], own[".ratio_upper"]) == pytest.approx((ratio, lower, upper))
        assert published[group]["AIR within segments"] == pytest.approx(ratio, abs=5e-4)
        assert published[group]["AIR from"] == pytest.approx(lower, abs=5e-4)
        assert published[group]["AIR to"] == pytest.approx(upper, abs=5e-4)
        # Cochran's Q of the differences, weighted by their inverse variances, half a row more of each kind
        differences, weights = [], []
        for (hits, size), (other_hits, other_size) in zip(SEGMENTS[group], SEGMENTS["White"], strict=True):
            differences.append(hits / size - other_hits / other_size)
            rate, other = (hits + 0.5) / (size + 1), (other_hits + 0.5) / (other_size + 1)
            weights.append(1 / (rate * (1 - rate) / size + other * (1 - other) / other_size))
        centre = sum(d * w for d, w in zip(differences, weights, strict=True)) / sum(weights)
        q = sum(w * (d - centre) ** 2 for d, w in zip(differences, weights, strict=True))
        # of two degrees of freedom, the tail of chi-squared is an exponential
        assert own[".p_homogeneity"] == pytest.approx(math.exp(-q / 2))
        assert published[group]["p (homogeneity)"] == pytest.approx(math.exp(-q / 2), rel=5e-3)


def test_differences_have_the_same_sign_in_all_tables_of_an_audit() -> None:
    filed = tdf.audit(
        "lending_adverse_impact", segmented(), estimate="favorable", by="race", to="White", within="income"
    )
    of_all = dict(filed.published().select("Group", "Difference (points)").rows())
    columns = ("Group", "Difference (points)", "Within segments (points)", "from", "to")
    for group, crude, within, lower, upper in filed.published("segments").select(columns).rows():
        assert crude == of_all[group]
        assert within == pytest.approx(-100 * WITHIN[group][0], abs=5e-3)
        assert lower < within < upper


def test_ratios_of_single_shares_are_those_of_the_selected_best_scores() -> None:
    """Counted by hand: the k best of all rows, k the share of the rows, and the rates of both sexes among them."""
    loans = tdf.datasets.lending(2_000)
    filed = tdf.audit("lending_adverse_impact", loans, probs="score", by="sex", to="male", top_fraction=[0.1, 0.5])
    published = filed.published().filter(Group="female")
    for share in (0.1, 0.5):
        best = loans.sort("score", descending=True).head(int(share * len(loans)))
        rates = {sex: len(best.filter(sex=sex)) / len(loans.filter(sex=sex)) for sex in ("female", "male")}
        shown = published.filter(pl.col("Best share") == share)["AIR"].item()
        assert shown == pytest.approx(rates["female"] / rates["male"], abs=5e-4)


def test_adverse_impact_at_shares_of_the_best_scores_is_that_of_each_share() -> None:
    loans = tdf.datasets.lending(2_000)
    call: dict[str, Any] = {"probs": "score", "by": "sex", "to": "male"}
    shares = tdf.audit("lending_adverse_impact", loans, **call, top_fraction=[0.1, 0.5]).tables["adverse_impact"]
    for share in (0.1, 0.5):
        one = tdf.audit("lending_adverse_impact", loans, **call, top_fraction=share).tables["adverse_impact"]
        of_list = shares.filter(pl.col(".top_fraction") == share)
        assert of_list[".disparity"].to_list() == one[".disparity"].to_list()


VALUES = {"a": [1.0, 2.0, 4.0, 7.0], "b": [3.0, 5.0, 6.0, 9.0, 12.0], "?": [20.0, 30.0]}


def people() -> pl.DataFrame:
    rows = [(None if group == "?" else group, value) for group, values in VALUES.items() for value in values]
    return pl.DataFrame(rows, schema=["group", "score"], orient="row")


@pytest.mark.parametrize("spread", ["pooled", "reference", "all"])
@pytest.mark.parametrize("corrected", [False, True])
def test_standardized_difference_equals_plain_arithmetic(spread: Any, *, corrected: bool) -> None:
    """Hedges & Olkin (1985); the deviation of all rows has those of unknown groups in it."""
    a, b = VALUES["a"], VALUES["b"]
    together = ((len(a) - 1) * statistics.variance(a) + (len(b) - 1) * statistics.variance(b)) / (len(a) + len(b) - 2)
    deviations = {
        "pooled": math.sqrt(together), "reference": statistics.stdev(b),
        "all": statistics.stdev([value for values in VALUES.values() for value in values]),
    }  # fmt: skip
    freedom = len(b) - 1 if spread == "reference" else len(a) + len(b) - 2
    factor = 1 - 3 / (4 * freedom - 1) if corrected else 1
    d = (statistics.mean(a) - statistics.mean(b)) / deviations[spread]
    of_deviation = 2 * freedom if spread == "reference" else 2 * (len(a) + len(b))
    error = factor * math.sqrt(1 / len(a) + 1 / len(b) + d**2 / of_deviation)
    table = tdf.audits.standardized_differences(
        people(), "score", by="group", to="b", spread=spread, corrected=corrected
    )
    row = table.row(by_predicate=pl.col(".group") == "a", named=True)
    assert row[".disparity"] == pytest.approx(factor * d)
    assert row[".upper"] - row[".lower"] == pytest.approx(2 * 1.959963984540054 * error)
    assert dict(table.select(".group", ".status").rows()) == {"a": "ok", "b": "ok", "null": "unknown"}


def test_residuals_are_the_truth_less_the_score() -> None:
    loans = tdf.datasets.lending(1_000)
    filed = tdf.audit("lending_adverse_impact", loans, "repaid", probs="score", pos_label="yes", by="sex", to="male")
    residuals = loans.select("sex", ((pl.col("repaid") == "yes").cast(pl.Float64) - pl.col("score")).alias("missed"))
    expected = tdf.audits.standardized_differences(residuals, "missed", by="sex", to="male", spread="all")
    assert filed.tables["residuals"][".disparity"].to_list() == expected[".disparity"].to_list()


def smd_of_residuals(event: Any, truth: pl.Series, **options: Any) -> None:
    """The residuals of an audit are those of a truth of 1 for one of the labels, and 0 for all others."""
    loans = tdf.datasets.lending(len(truth)).with_columns(truth.alias("truth"))
    call: dict[str, Any] = {"probs": "score", "by": "sex", "to": "male", **options}
    filed = tdf.audit("lending_adverse_impact", loans, "truth", **call)
    ones = [None if value is None else float(value == event) for value in truth]
    residuals = loans.select("sex", (pl.Series(ones) - pl.col("score")).alias("missed"))
    expected = tdf.audits.standardized_differences(residuals, "missed", by="sex", to="male", spread="all")
    for column in (".n", ".mean", ".disparity"):
        assert filed.tables["residuals"][column].to_list() == pytest.approx(expected[column].to_list())


@pytest.mark.parametrize(
    ("labels", "event", "options"),
    [
        ([1, 2], 2, {"pos_label": 2}),
        ([1, 2], 1, {"pos_label": 1}),
        ([0, 1], 1, {}),
        ([-1, 1], 1, {}),
        ([0, 1], 0, {"pos_label": 0}),
        ([True, False], True, {}),
        ([True, False], True, {"pos_label": 1}),
        ([0.0, 1.0], 1.0, {"pos_label": True}),
        (["bad", "good"], "good", {"pos_label": "good"}),
        (["bad", "fair", "good"], "bad", {"pos_label": "bad"}),
        ([1, None], 1, {}),
    ],
)
def test_residuals_read_labels_as_metrics_do(labels: list[Any], event: object, options: dict[str, Any]) -> None:
    smd_of_residuals(event, pl.Series([labels[row * row % len(labels)] for row in range(600)]), **options)


def test_residuals_of_a_measured_truth_are_those_of_its_numbers() -> None:
    loans = tdf.datasets.lending(400).with_columns((pl.col("score") ** 2 * 3.5).alias("loss"))
    filed = tdf.audit("lending_adverse_impact", loans, "loss", probs="score", by="sex", to="male")
    missed = loans.select("sex", (pl.col("loss") - pl.col("score")).alias("missed"))
    expected = tdf.audits.standardized_differences(missed, "missed", by="sex", to="male", spread="all")
    assert filed.tables["residuals"][".disparity"].to_list() == pytest.approx(expected[".disparity"].to_list())


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([1, 2], {}, "Which label of 'truth' is the event"),
        ([1, 2], {"pos_label": "2"}, "'2' is not among the labels 1, 2"),
        (["bad", "good"], {}, "Which label of 'truth' is the event"),
        (["bad", "good"], {"pos_label": "Good"}, "'Good' is not among the labels"),
        (["bad", "good"], {"pos_label": "fine"}, "'fine' is not among the labels"),
        ([0, 1, 2], {}, "Which label of 'truth' is the event"),
    ],
)
def test_residuals_refuse_labels_in_doubt(labels: list[Any], options: dict[str, Any], message: str) -> None:
    loans = tdf.datasets.lending(60).with_columns(pl.Series("truth", labels * (60 // len(labels))))
    with pytest.raises(tdf.errors.LabelError, match=message):
        tdf.audit("lending_adverse_impact", loans, "truth", probs="score", by="sex", to="male", **options)


def test_residuals_of_labels_need_probabilities() -> None:
    loans = tdf.datasets.lending(60).with_columns((pl.col("score") * 850).alias("points"))
    call: dict[str, Any] = {"by": "sex", "to": "male", "probs": "points"}
    with pytest.raises(tdf.errors.ColumnError, match=r"'points' holds values from .* leave `truth` out"):
        tdf.audit("lending_adverse_impact", loans, "repaid", pos_label="yes", **call)
    assert "residuals" not in tdf.audit("lending_adverse_impact", loans, **call).tables


def test_standardized_differences_do_not_depend_on_scale_order_or_other_rows_of_outer_groups() -> None:
    loans = tdf.datasets.lending(1_000)
    call: dict[str, Any] = {"by": ["sex", "race"], "to": {"sex": "male", "race": "White"}}
    plain = tdf.audits.standardized_differences(loans, "score", **call)
    moved = tdf.audits.standardized_differences(loans.reverse(), (pl.col("score") * 8 + 100).alias("moved"), **call)
    assert moved[".disparity"].to_list() == pytest.approx(plain[".disparity"].to_list())
    grouped = tdf.audits.standardized_differences(loans, "score", **call, group_by="fold")
    alone = tdf.audits.standardized_differences(loans.filter(fold=3), "score", **call)
    assert grouped.filter(fold=3)[".disparity"].to_list() == pytest.approx(alone[".disparity"].to_list(), nan_ok=True)


@pytest.mark.parametrize("spread", ["pooled", "reference", "all"])
@pytest.mark.parametrize("scores", [(1.0, 1.0), (0.1, 0.1), (0.1, 0.3), (1e9 + 0.1, 1e9)])
def test_groups_without_a_deviation_have_no_standardized_difference(scores: tuple[float, float], spread: Any) -> None:
    one, other = scores
    constant = pl.DataFrame({"score": [one] * 7 + [other] * 11, "group": ["a"] * 7 + ["b"] * 11})
    table = tdf.audits.standardized_differences(constant, "score", by="group", to="b", spread=spread)
    columns = (".spread", ".disparity", ".lower", ".upper", ".p_value", ".status")
    if one == other or spread != "all":
        assert table.select(columns).row(0) == (None, None, None, None, None, "zero_denominator")
    else:
        # eighteen rows with two values
        deviation = abs(one - other) * math.sqrt(7 * 11 / 18 / 17)
        assert table.select(".spread", ".status").row(0) == (pytest.approx(deviation), "ok")
    metric = tdf.mean_score if one < 1 else tdf.mean_prediction
    role: dict[str, Any] = {"probs" if one < 1 else "estimate": "score"}
    compared = tdf.compare_groups(metric, by="group", to="b", scale="standardized", spread=spread)
    result = compared(constant, **role, explain=True)
    assert result[".status"].to_list() == table[".status"].to_list()
    # it compares the means of groups as its results hold them, which are floats
    rounded = 1e-9 + math.ulp(max(scores)) / max(abs(one - other), 0.1)
    for given, wanted in zip(result[".disparity"], table[".disparity"], strict=True):
        assert given == (None if wanted is None else pytest.approx(wanted, rel=rounded))


def test_table_of_constant_scores_has_no_standardized_differences() -> None:
    loans = tdf.datasets.lending(1_000).with_columns(score=pl.lit(0.3))
    audited = tdf.audit("lending_adverse_impact", loans, estimate="approved", probs="score", by="race",
                        to={"race": "White"}, pos_label="yes")  # fmt: skip
    statuses = dict(audited.tables["scores"].select(".group", ".status").rows())
    assert statuses.pop("White") == "ok"
    assert set(statuses.values()) == {"zero_denominator"}


def test_quantiles_of_constant_groups_have_a_ratio_without_limits() -> None:
    constant = pl.DataFrame({"pay": [10.0] * 40 + [20.0] * 40, "group": ["a"] * 40 + ["b"] * 40})
    table = tdf.audits.quantile_ratios(constant, "pay", by="group", to="b")
    assert table.select(".disparity", ".lower", ".upper", ".p_value").row(0) == (0.5, None, None, None)


def alike() -> pl.DataFrame:
    """Groups of which some read alike: one is missing, and another one is called null."""
    return pl.DataFrame({
        "score": [1.0, 2, 3, 5, 6, 9, 2, 4, 9], "group": ["null"] * 3 + [None] * 3 + ["b"] * 3,
        "one": ["x:y"] * 3 + ["x"] * 3 + ["b"] * 3, "other": ["z"] * 3 + ["y:z"] * 3 + ["c"] * 3,
    })  # fmt: skip


@pytest.mark.parametrize("compare", [tdf.audits.standardized_differences, tdf.audits.quantile_ratios])
def test_groups_that_read_alike_are_told_from_each_other_by_their_values(compare: Any) -> None:
    crossed = compare(alike(), "score", by=("one", "other"), to=("x", "y:z"), unknown="group")
    renamed = alike().with_columns(pl.col("one").replace({"x:y": "first", "x": "second"}))
    expected = compare(renamed, "score", by=("one", "other"), to=("second", "y:z"), unknown="group")
    values = dict(expected.select(".group", ".disparity").rows())
    assert sorted(crossed[".group"]) == ['"x":"y:z"', '"x:y":"z"', "b:c"]
    assert sorted(crossed[".disparity"]) == sorted(values.values())
    with pytest.raises(tdf.errors.AggregateError, match="`to='x:y:z'` is not a group"):
        compare(alike(), "score", by=("one", "other"), to="x:y:z")
    missing = compare(alike(), "score", by="group", to="null", unknown="group")
    filled = alike().with_columns(pl.col("group").fill_null("missing"))
    expected = compare(filled, "score", by="group", to="null", unknown="group")
    values = dict(expected.select(".group", ".disparity").rows())
    assert missing[".group"].to_list() == ["b", '"null"', "null"]
    assert missing[".disparity"].to_list() == [values["b"], values["null"], values["missing"]]


@pytest.mark.parametrize("compare", [tdf.audits.standardized_differences, tdf.audits.quantile_ratios])
def test_features_of_effect_sizes_are_checked(compare: Any) -> None:
    loans = tdf.datasets.lending(100)
    for nothing in ([], (), [()]):
        with pytest.raises(
            tdf.errors.ArgumentError, match=f'{compare.__name__}\\(\\) compares the groups of a feature: `by="col'
        ):
            compare(loans, "score", by=nothing, to="male")
    with pytest.raises(tdf.errors.ColumnError, match="the data are grouped by 'sex', so each part has only one group"):
        compare(loans, "score", by="sex", to="male", group_by="sex")
    with pytest.raises(tdf.errors.ColumnError, match="the data are grouped by 'sex'"):
        compare(loans.group_by("sex"), "score", by=["race", ("sex", "race")], to="White")
    with pytest.raises(tdf.errors.ArgumentError, match="`by` names 'sex' twice"):
        compare(loans, "score", by=["sex", "sex"], to="male")
    with pytest.raises(tdf.errors.ArgumentError, match="`by` takes columns, not privileged"):
        compare(loans, "score", by=tdf.privileged(sex="male"), to="privileged")


def price_and_bonett(one: list[float], other: list[float], z: float) -> tuple[float, float]:
    """The limits of a ratio of medians, as `ci.ratio.median2` of R's statpsych has them."""
    errors: list[float] = []
    for values in (one, other):
        size = len(values)
        below = max(round((size + 1) / 2 - math.sqrt(size)), 1)
        tail = sum(math.comb(size, count) for count in range(below)) / 2**size
        ordered = sorted(values)
        width = math.log(ordered[size - below]) - math.log(ordered[below - 1])
        errors.append(width / (2 * statistics.NormalDist().inv_cdf(1 - tail)))
    ratio, error = statistics.median(one) / statistics.median(other), math.hypot(*errors)
    return ratio * math.exp(-z * error), ratio * math.exp(z * error)


def test_ratios_of_medians_have_the_limits_of_price_and_bonett() -> None:
    pay = {
        "one": [32.0, 39, 26, 35, 43, 27, 40, 37, 34, 29, 49, 42, 40],
        "other": [36.0, 44, 47, 42, 49, 39, 46, 31, 33, 48],
    }
    data = pl.concat(pl.DataFrame({"pay": values, "group": group}) for group, values in pay.items())
    row = tdf.audits.quantile_ratios(data, "pay", by="group", to="other").row(0, named=True)
    assert (row[".group"], row[".quantile"]) == ("one", 37)
    assert row[".disparity"] == pytest.approx(37 / 43)
    low, high = price_and_bonett(pay["one"], pay["other"], 1.959963984540054)
    assert (row[".lower"], row[".upper"]) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.simulation
@pytest.mark.parametrize(("quantile", "rows"), [(0.5, (12, 25)), (0.5, (80, 200)), (0.25, (40, 60)), (0.9, (100, 60))])
def test_limits_of_ratios_of_quantiles_hold_the_true_ratio(quantile: float, rows: tuple[int, int]) -> None:
    runs, random = 400, np.random.default_rng(4)
    parts = [random.lognormal(mean, 0.6, (runs, size)) for mean, size in zip((0.3, 0.0), rows, strict=True)]
    data = pl.concat(
        pl.DataFrame({"run": np.repeat(np.arange(runs), part.shape[1]), "pay": part.ravel(), "group": group})
        for group, part in zip("ab", parts, strict=True)
    )
    table = tdf.audits.quantile_ratios(data, "pay", by="group", to="b", quantile=quantile, group_by="run")
    held = table.filter(pl.col(".group") == "a").select(pl.lit(math.exp(0.3)).is_between(".lower", ".upper"))
    share = held.to_series().mean()
    assert 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs) <= share <= 0.99


def test_quantiles_of_too_few_rows_have_no_limits() -> None:
    few = pl.DataFrame({"pay": [1.0, 2.0, 3.0, 4.0], "group": ["a", "b", "b", "b"]})
    row = tdf.audits.quantile_ratios(few, "pay", by="group", to="b").row(0, named=True)
    assert (row[".disparity"], row[".lower"], row[".upper"], row[".status"]) == (1 / 3, None, None, "ok")
    with pytest.raises(
        tdf.errors.ColumnError, match=r"holds -1\.0; take differences of means, `standardized_differences"
    ):
        tdf.audits.quantile_ratios(few.with_columns(pl.col("pay") - 2), "pay", by="group", to="b")


LOANS = tdf.datasets.lending(1_000)
COMPARISONS: dict[str, tuple[Any, float, Any]] = {
    "ratios": (tdf.audits.quantile_ratios, 1.0, math.log),
    "differences": (tdf.audits.standardized_differences, 0.0, float),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_p_values_of_effect_sizes_agree_with_their_limits(name: str) -> None:
    compare, equality, scale = COMPARISONS[name]
    table = compare(LOANS, "score", by="race", to="White", min_n=10)
    tested = table.filter(pl.col(".lower").is_not_null())
    assert len(tested) >= 3
    for row in tested.rows(named=True):
        error = (scale(row[".upper"]) - scale(row[".lower"])) / 2 / 1.959963984540054
        normal = statistics.NormalDist()
        assert row[".p_value"] == pytest.approx(2 * normal.cdf(-abs(scale(row[".disparity"])) / error), rel=1e-6)
        # an interval at this level just reaches equality
        at_level = compare(LOANS, "score", by="race", to="White", min_n=10, conf_level=1 - row[".p_value"])
        ends = at_level.filter(pl.col(".group") == row[".group"]).select(".lower", ".upper").row(0)
        assert min(abs(end - equality) for end in ends) < 1e-6
    assert table.filter(pl.col(".group") == "White").select(".p_value", ".p_adjusted").row(0) == (None, None)


@pytest.mark.parametrize("name", COMPARISONS)
def test_p_values_of_effect_sizes_are_adjusted_for_all_comparisons(name: str) -> None:
    compare, _, _ = COMPARISONS[name]
    call: dict[str, Any] = {"by": ["race", "sex"], "to": {"race": "White", "sex": "male"}}
    table = compare(LOANS, "score", **call).drop_nulls(".p_value").sort(".p_value")
    plain, count, largest = table[".p_value"].to_list(), len(table), 0.0
    holm: list[float] = []
    for rank, p_value in enumerate(plain):
        largest = max(largest, min(1.0, (count - rank) * p_value))
        holm.append(largest)
    assert table[".p_adjusted"].to_list() == pytest.approx(holm)
    unadjusted = compare(LOANS, "score", **call, adjust="none").drop_nulls(".p_value")
    assert unadjusted[".p_adjusted"].equals(unadjusted[".p_value"].alias(".p_adjusted"))


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("to", ["highest", "lowest", "majority"])
def test_reference_of_effect_sizes_may_be_chosen_by_its_value(name: str, to: str) -> None:
    compare, _, _ = COMPARISONS[name]
    column = ".quantile" if name == "ratios" else ".mean"
    table = compare(LOANS, "score", by="race", to=to, min_n=30, group_by="fold")
    for (fold,), groups in table.group_by("fold"):
        own = groups.filter(pl.col(".status") != "below_min_n")
        values = own.sort(".n" if to == "majority" else column)
        chosen = values[".group"][0 if to == "lowest" else -1]
        assert set(groups[".reference"]) == {chosen}
        named = compare(LOANS.filter(pl.col("fold") == fold), "score", by="race", to=chosen, min_n=30)
        assert groups[".disparity"].to_list() == pytest.approx(named[".disparity"].to_list(), nan_ok=True)
    none = compare(LOANS, "score", by="race", to=to, min_n=2_000)
    assert set(none[".reference"]) == {None}


def test_standardized_differences_refuse_what_they_cannot_compare() -> None:
    with pytest.raises(tdf.errors.AggregateError, match="`to='c'` is not a group"):
        tdf.audits.standardized_differences(people(), "score", by="group", to="c")
    with pytest.raises(tdf.errors.ColumnError, match=r"`values`: the column 'group' is String; .* numbers"):
        tdf.audits.standardized_differences(people(), "group", by="score", to="c")
    with pytest.raises(tdf.errors.ArgumentError, match="no rows with a value"):
        tdf.audits.standardized_differences(people().clear(), "score", by="group", to="b", group_by="score")


def test_credit_audit_needs_a_reference_and_gives_means_weights() -> None:
    loans = tdf.datasets.lending(200)
    with pytest.raises(tdf.errors.ArgumentError, match="compares each group with one that you name"):
        tdf.audit("lending_adverse_impact", loans, estimate="approved", pos_label="yes", by="sex")
    call: dict[str, Any] = {"by": "sex", "to": "male", "case_weights": "weight"}
    filed = tdf.audit("lending_adverse_impact", loans, probs="score", **call)
    expected = tdf.audits.standardized_differences(loans, "score", **call, spread="all")
    assert filed.tables["scores"][".disparity"].to_list() == expected[".disparity"].to_list()
    with pytest.raises(tdf.errors.ArgumentError, match="does not accept `cluster`"):
        tdf.audit("lending_adverse_impact", loans, probs="score", by="sex", to="male", cluster="race")


@pytest.mark.parametrize("cuts", [{"top_fraction": [0.2, 0.5]}, {"threshold": [0.4, 0.6]}, {"top_k": [50, 100]}])
def test_segments_have_rows_for_each_of_several_cuts(cuts: dict[str, Any]) -> None:
    loans = tdf.datasets.lending(400)
    call: dict[str, Any] = {"probs": "score", "pos_label": "yes", "by": "sex", "to": "male", "within": "age_band"}
    ((option, values),) = cuts.items()
    together = tdf.audit("lending_adverse_impact", loans, "repaid", **call, **cuts).tables["segments"]
    assert together[f".{option}"].to_list() == values
    for value in values:
        one: dict[str, Any] = {option: value}
        alone = tdf.audit("lending_adverse_impact", loans, "repaid", **call, **one).tables["segments"]
        assert together.filter(pl.col(f".{option}") == value).drop(f".{option}").equals(alone)

"""Audits of models that predict, against the tests of dcurves, scikit-learn, statsmodels and counts."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tdf

# of dcurves' df_binary and its cancerpredmarker: rows, events, and the true and false positives at 0.10 and 0.20
DECISIONS = {
    "low": (394, 23, (12, 34), (10, 18)),
    "intermediate": (335, 69, (62, 151), (52, 72)),
    "high": (21, 13, (13, 8), (13, 8)),
}
NET_BENEFIT = {
    ("low", 0.1): (0.020869, 0.357488), ("low", 0.2): (0.013959, 0.239130),
    ("intermediate", 0.1): (0.134992, 0.655395), ("intermediate", 0.2): (0.101493, 0.492754),
    ("high", 0.1): (0.576720, 0.931624), ("high", 0.2): (0.523810, 0.846154),
    ("all rows", 0.1): (0.087407, 0.624339), ("all rows", 0.2): (0.067333, 0.480952),
}  # fmt: skip


def decisions() -> pl.DataFrame:
    """Rows whose risks are between the thresholds as those of the data are."""
    rows: list[tuple[str, int, float]] = []
    for group, (size, events, (tp, fp), (high_tp, high_fp)) in DECISIONS.items():
        for event, every, above, far_above in ((1, events, tp, high_tp), (0, size - events, fp, high_fp)):
            rows += [(group, event, 0.3)] * far_above + [(group, event, 0.15)] * (above - far_above)
            rows += [(group, event, 0.05)] * (every - above)
    return pl.DataFrame(rows, schema=["risk_group", "cancer", "risk"], orient="row")


def test_net_benefit_by_group_is_that_of_the_counts_of_dcurves() -> None:
    filed = tdf.audit("clinical_tripod_ai", decisions(), "cancer", probs="risk", threshold=[0.1, 0.2], by="risk_group")
    table = filed.tables["net_benefit"].with_columns(pl.col(".group").fill_null("all rows"))
    for (group, threshold), (raw, standardized) in NET_BENEFIT.items():
        rows = table.filter((pl.col(".group") == group) & (pl.col(".threshold") == threshold))
        values = dict(rows.select(".metric", ".estimate").rows())
        assert values["net_benefit"] == pytest.approx(raw, abs=5e-7)
        assert values["standardized_net_benefit"] == pytest.approx(standardized, abs=5e-7)
        low, high = rows.filter(pl.col(".metric") == "net_benefit").select(".lower", ".upper").row(0)
        assert low <= raw <= high


def test_net_benefit_is_that_of_the_tests_of_dcurves() -> None:
    """At 0.25 there are 72 true and 72 false positives of 750 rows with 105 events; published as 0.0640000."""
    at_25 = tdf.metric_tweak(tdf.net_benefit, "at_25", at=0.25)
    assert at_25.formula(tp=72, fp=72, fn=33, tn=573) == pytest.approx(0.064)
    everybody = tdf.metric_tweak(tdf.net_benefit, "everybody", at=0.25)
    assert everybody.formula(tp=105, fp=645, fn=0, tn=0) == pytest.approx(-0.1466667, abs=5e-8)
    standardized = tdf.metric_tweak(tdf.decision_curves.standardized_net_benefit, "standardized_25", at=0.25)
    assert standardized.formula(tp=72, fp=72, positives=105) == pytest.approx(0.457143, abs=5e-7)
    with pytest.raises(tdf.errors.ArgumentError, match="`at`"):
        tdf.metric_tweak(tdf.net_benefit, "always", at=1).formula(tp=1, fp=1, fn=1, tn=1)


def test_performance_by_group_equals_other_libraries() -> None:
    linear_model = pytest.importorskip("statsmodels.api")
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    loans = tdf.datasets.lending(800)
    filed = tdf.audit("clinical_tripod_ai", loans, "repaid", probs="score", pos_label="yes", by="sex")
    table = filed.tables["performance"]
    for sex in ("female", "male"):
        own = loans.filter(sex=sex)
        truth, risk = (own["repaid"] == "yes").cast(pl.Int8).to_numpy(), own["score"].to_numpy()
        logit = np.log(risk / (1 - risk))
        binomial: Any = linear_model.families.Binomial()
        slope = linear_model.GLM(truth, linear_model.add_constant(logit), family=binomial).fit().params[1]
        intercept = linear_model.GLM(truth, np.ones(len(truth)), family=binomial, offset=logit).fit().params[0]
        values = dict(table.filter(pl.col(".group") == sex).select(".metric", ".estimate").rows())
        assert values["roc_auc"] == pytest.approx(sklearn_metrics.roc_auc_score(truth, risk))
        assert values["brier_class"] == pytest.approx(np.mean((truth - risk) ** 2))
        assert values["calibration_ratio"] == pytest.approx(truth.sum() / risk.sum())
        assert values["calibration_slope"] == pytest.approx(slope, rel=1e-5)
        assert values["calibration_intercept_given_slope"] == pytest.approx(intercept, rel=1e-4, abs=1e-6)


def test_data_of_groups_are_counted_with_what_is_missing() -> None:
    data = pl.DataFrame({"sex": ["f", "f", "f", "m", "m", None], "outcome": [1, 0, None, 1, 1, 0]})
    filed = tdf.audit("eu_ai_act_data", data, "outcome", by="sex")
    rows = filed.tables["data"].filter(pl.col(".group") == "f")
    values = dict(rows.select(".metric", ".estimate").rows())
    assert values == pytest.approx({"share_of_rows": 0.5, "share_without_truth": 1 / 3, "base_rate": 0.5})
    assert filed.tables["unknown"].rows() == [("sex", 6, 1)]
    of_unknown = filed.published().select("Group", "Rows", "Share without truth").row(3)
    assert of_unknown[:2] == ("null", 1)
    assert of_unknown[2].startswith("0.000 (")


def test_model_card_has_the_values_of_by_group_for_features_and_their_crossing() -> None:
    loans = tdf.datasets.lending(1_000)
    call: dict[str, Any] = {"pos_label": "yes"}
    filed = tdf.audit("model_card", loans, "repaid", "approved", by=["sex", "race"], **call)
    table = filed.tables["performance"]
    assert table[".by"].unique(maintain_order=True).to_list() == [None, "sex", "race", "sex:race"]
    expected = tdf.sens.difference("sex", "race").by_group(loans, "repaid", "approved", interval="auto", **call)
    own = table.filter((pl.col(".by") == "sex:race") & (pl.col(".metric") == "sens"))
    assert own[".estimate"].to_list() == expected[".estimate"].to_list()
    assert own[".lower"].to_list() == expected[".lower"].to_list()


def test_net_benefits_of_others_are_by_hand() -> None:
    """30 true and 20 false positives, 10 missed and 40 rightly left, at a risk of one fifth: odds of 1 to 4."""
    people = pl.DataFrame({"y": [1] * 40 + [0] * 60, "p": [1] * 30 + [0] * 10 + [1] * 20 + [0] * 40})

    def at_20(metric: tdf.types.Metric, **options: Any) -> float:
        return tdf.metric_tweak(metric, "at 20", at=0.2, **options)(people, "y", "p")[".estimate"].item()

    curves = tdf.decision_curves
    model, everybody = at_20(tdf.net_benefit), at_20(curves.net_benefit_of_treating_all)
    assert (model, everybody) == pytest.approx((0.3 - 0.2 / 4, 0.4 - 0.6 / 4))
    # net intervention avoided of dcurves: the gain over treating all, over the odds
    assert at_20(curves.interventions_avoided) == pytest.approx((model - everybody) / 0.25)
    assert at_20(curves.net_benefit_of_untreated) == pytest.approx(0.4 - 0.1 * 4)
    assert at_20(curves.net_benefit_at_prevalence) == pytest.approx(model)
    rare = at_20(curves.net_benefit_at_prevalence, prevalence=0.1)
    assert rare == pytest.approx(0.1 * 0.75 - 0.9 / 3 / 4)


def test_net_benefit_refuses_thresholds_by_group() -> None:
    with pytest.raises(tdf.errors.ArgumentError, match="needs a number between 0 and 1, or a list of these"):
        tdf.audit(
            "clinical_tripod_ai", decisions(), "cancer", probs="risk", by="risk_group",
            threshold={"risk_group": {"low": 0.1, "intermediate": 0.2, "high": 0.2}},
        )  # fmt: skip


def by_arithmetic(truth: list[int], risk: list[float], at: float) -> tuple[float, float, float]:
    """Net benefit of a model, of treating all, and the first as a share of the largest, of Vickers & Elkin (2006)."""
    true = sum(1 for event, value in zip(truth, risk, strict=True) if event and value >= at)
    false = sum(1 for event, value in zip(truth, risk, strict=True) if not event and value >= at)
    rows, events = len(truth), sum(truth)
    odds = at / (1 - at)
    model = true / rows - false / rows * odds
    return model, events / rows - (rows - events) / rows * odds, model / (events / rows)


def test_decision_curves_by_group_equal_plain_arithmetic_at_every_threshold() -> None:
    loans = tdf.datasets.lending(500)
    risks = [step / 10 for step in range(1, 10)]
    filed = tdf.audit(
        "clinical_tripod_ai", loans, "repaid", probs="score", pos_label="yes", by=["sex", "race"], threshold=risks
    )
    curve = filed.tables["net_benefit"]
    assert curve[".threshold"].unique(maintain_order=True).to_list() == risks
    for risk in risks:
        at_risk = curve.filter(pl.col(".threshold") == risk)
        for feature in ("sex", "race"):
            for group in loans[feature].cast(pl.String).unique():
                own = loans.filter(pl.col(feature) == group)
                truth = (own["repaid"] == "yes").cast(pl.Int64).to_list()
                model, everybody, standardized = by_arithmetic(truth, own["score"].to_list(), risk)
                rows = at_risk.filter((pl.col(".by") == feature) & (pl.col(".group") == group))
                values = dict(rows.select(".metric", ".estimate").rows())
                assert values["net_benefit"] == pytest.approx(model)
                assert values["net_benefit_of_treating_all"] == pytest.approx(everybody)
                assert values["standardized_net_benefit"] == pytest.approx(standardized)
                for low, value, high in rows.select(".lower", ".estimate", ".upper").rows():
                    assert low <= value <= high


def test_published_decision_curve_has_treating_all_beside_the_model() -> None:
    """The counts of dcurves: of 750 rows 105 have the event."""
    filed = tdf.audit("clinical_tripod_ai", decisions(), "cancer", probs="risk", threshold=[0.1, 0.2], by="risk_group")
    published = filed.published("net_benefit").filter(Group="all rows")
    shown = [text.split(" ")[0] for text in published["Net benefit of treating all"]]
    for text, risk in zip(shown, (0.1, 0.2), strict=True):
        assert float(text) == pytest.approx(105 / 750 - 645 / 750 * risk / (1 - risk), abs=5e-5)


def test_treating_all_counts_the_rows_that_the_model_counts() -> None:
    data = decisions().with_columns(risk=pl.when(pl.int_range(750) % 7 == 0).then(None).otherwise("risk"))
    filed = tdf.audit("clinical_tripod_ai", data, "cancer", probs="risk", threshold=0.1, by="risk_group")
    table = filed.tables["net_benefit"].filter(pl.col(".group") == "low")
    assert table[".denominator"].to_list()[:2] == [table[".denominator"][0]] * 2
    own = data.drop_nulls("risk").filter(risk_group="low")
    _, everybody, _ = by_arithmetic(own["cancer"].to_list(), own["risk"].to_list(), 0.1)
    values = dict(table.select(".metric", ".estimate").rows())
    assert values["net_benefit_of_treating_all"] == pytest.approx(everybody)


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        ([], r"`threshold` must not repeat a value: nothing"),
        ([0.1, 0.1], r"`threshold` must not repeat a value"),
        ([0.1, 0.0], r"`threshold`: .* between 0 and 1, .* not `threshold=\[0.1, 0.0\]`"),
        (1.0, r"`threshold`: .* between 0 and 1, .* not `threshold=1.0`"),
        (1.5, r"`threshold`: .* between 0 and 1, .* not `threshold=1.5`"),
        ([0.1, None], r"`threshold` is a number"),
        ("0.1", r"`threshold` is a number"),
    ],
)
def test_thresholds_of_net_benefit_are_checked(threshold: Any, message: str) -> None:
    with pytest.raises(tdf.errors.ArgumentError, match=message):
        tdf.audit("clinical_tripod_ai", decisions(), "cancer", probs="risk", by="risk_group", threshold=threshold)


# of KeyMetricType in version 0.2 of the schema of the Coalition for Health AI
KEY_METRIC = ["MetricGoal", "Results", "Interpretation", "TestType", "TestingDataDescription"]


def test_applied_model_card_of_chai_has_the_values_of_all_rows_and_of_groups() -> None:
    loans = tdf.datasets.lending(1_000)
    call: dict[str, Any] = {"pos_label": "yes", "conf_level": 0.9}
    card = tdf.audit("model_card", loans, "repaid", "approved", probs="score", by=["sex", "race"], **call).chai()
    assert json.loads(json.dumps(card)) == card
    assert card["AppliedModelCard"]["@xmlns"] == "https://mc.chai.org/v0.2/schema.xsd"
    metrics = card["AppliedModelCard"]["KeyMetrics"]
    assert list(metrics) == ["UsefulnessUsabilityEfficacy", "FairnessEquity"]
    for section in metrics.values():
        assert list(section) == [field for field in KEY_METRIC if field in section]
        assert set(section["Results"]) == {"MetricResult"}
        assert all(list(item) == ["Label", "ValueJson"] for item in section["Results"]["MetricResult"])
    of_all = {item["Label"]: json.loads(item["ValueJson"]) for item in first_results(metrics)}
    expected = tdf.metric_set(tdf.sens, tdf.roc_auc)(
        loans, "repaid", "approved", probs="score", interval="auto", **call
    ).to_dicts()
    for label, row in zip(("Sensitivity", "AUC"), expected, strict=True):
        value = of_all[label]
        assert (value["kind"], value["level"]) == ("estimate_ci", 90)
        assert value["estimate"] == pytest.approx(row[".estimate"])
        assert [value["lower"], value["upper"]] == pytest.approx([row[".lower"], row[".upper"]])
    groups = {item["Label"] for item in metrics["FairnessEquity"]["Results"]["MetricResult"]}
    assert {"Sensitivity, sex: female", "AUC, race: Black", "Precision, sex:race: female:White"} <= groups
    described = metrics["FairnessEquity"]["TestingDataDescription"]
    women = len(loans.filter(sex="female"))
    assert f"{women:,} rows, sex: female" in described
    assert "No row is of an unknown group." in described


def first_results(metrics: dict[str, Any]) -> list[dict[str, str]]:
    results: list[dict[str, str]] = metrics["UsefulnessUsabilityEfficacy"]["Results"]["MetricResult"]
    return results


def test_applied_model_card_leaves_out_undefined_values_and_names_thresholds() -> None:
    data = pl.DataFrame({"y": [1, 1, 0, 0, 1, 1], "p": [0.9, 0.8, 0.3, 0.2, 0.7, 0.6], "g": list("aaaabb")})
    card = tdf.audit("clinical_tripod_ai", data, "y", probs="p", by="g", threshold=[0.25, 0.5]).chai()
    results = card["AppliedModelCard"]["KeyMetrics"]["FairnessEquity"]["Results"]["MetricResult"]
    labels = [item["Label"] for item in results]
    assert "AUC, g: a" in labels
    assert "AUC, g: b" not in labels
    assert "Net benefit, g: b, Threshold: 0.25" in labels
    assert len(set(labels)) == len(labels)


def test_audits_without_values_of_groups_have_no_applied_model_card() -> None:
    filed = tdf.audit("nyc_ll144", tdf.datasets.lending(100), estimate="approved", pos_label="yes", by="sex")
    with pytest.raises(tdf.errors.ArgumentError, match=r'take `audit\("model_card", …\)\.chai'):
        filed.chai()


@pytest.mark.parametrize("metric", [tdf.net_benefit, tdf.decision_curves.standardized_net_benefit], ids=repr)
def test_net_benefit_refuses_thresholds_other_than_its_risk(metric: tdf.types.Metric) -> None:
    seen = pl.DataFrame({"event": [1, 0, 1, 0], "risk": [0.9, 0.6, 0.4, 0.1]})
    at_half = tdf.metric_tweak(metric, "at_half", at=0.5)
    for threshold in (0.1, [0.5, 0.7]):
        with pytest.raises(tdf.errors.ArgumentError, match=r"needs that threshold and no other; leave `at` out"):
            at_half(seen, "event", probs="risk", threshold=threshold)
    assert at_half(seen, "event", probs="risk", threshold=0.5)[".estimate"].item() == 0
    for threshold in ({"event": {0: 0.1, 1: 0.2}}, 1.0, [0.5, 0.0], tdf.operating_point(tdf.sens, at_least=0.5)):
        with pytest.raises(tdf.errors.ArgumentError, match="needs a number between 0 and 1, or a list of these"):
            metric(seen, "event", probs="risk", threshold=threshold)


def test_an_option_of_a_user_that_is_called_at_is_the_users() -> None:
    @tdf.class_metric(direction="maximize")
    def credit(tp: Any, positives: Any, *, at: float | None = None) -> Any:
        """Share of events found, times an option."""
        return tp * (1 if at is None else 100 * at), positives

    seen = pl.DataFrame({"y": [1, 0, 1, 1], "p": [0.9, 0.2, 0.4, 0.7]})
    assert credit(seen, "y", probs="p", threshold=0.5)[".estimate"].item() == pytest.approx(2 / 3)


def test_without_rows_net_benefits_have_their_rows() -> None:
    nobody = pl.DataFrame(schema={"y": pl.Int64, "p": pl.Float64, "g": pl.String})
    filed = tdf.audit("clinical_tripod_ai", nobody, "y", probs="p", by="g", threshold=0.3)
    assert filed.tables["net_benefit"].select(".threshold", ".estimate").unique().rows() == [(0.3, None)]


def test_a_decision_curve_is_one_call() -> None:
    loans, risks = tdf.datasets.lending(800), [0.2, 0.5, 0.8]
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
    curves = tdf.metric_set(
        tdf.net_benefit, tdf.decision_curves.net_benefit_of_treating_all, tdf.accuracy, tdf.roc_auc,
        tdf.net_benefit.difference("sex"),
    )  # fmt: skip
    seen = curves(loans, threshold=risks, group_by="fold", interval="auto", **call)
    assert seen[".metric"].to_list()[:3] == ["net_benefit"] * 3
    assert seen["fold", ".threshold"].rows()[:4] == [(1, 0.2), (1, 0.5), (1, 0.8), (2, 0.2)]
    for risk in risks:
        model = tdf.metric_tweak(tdf.net_benefit, "net_benefit", at=risk)
        alone = tdf.metric_set(model, model.difference("sex"))
        expected = alone(loans, threshold=risk, group_by="fold", interval="auto", **call)
        found = seen.filter(pl.col(".threshold") == risk).filter(pl.col(".metric").is_in(expected[".metric"].implode()))
        assert_frame_equal(found.drop(".threshold"), expected)
    events, scores = [label == "yes" for label in loans["repaid"]], loans["score"].to_list()
    whole = curves(loans, threshold=risks, **call)
    for risk in risks:
        model, everybody, _ = by_arithmetic(events, scores, risk)
        values = dict(whole.filter(pl.col(".threshold") == risk).select(".metric", ".estimate").rows())
        assert values["net_benefit"] == pytest.approx(model)
        assert values["net_benefit_of_treating_all"] == pytest.approx(everybody)
    groups = tdf.net_benefit.difference("sex").by_group(loans, threshold=risks, **call)
    for sex, risk, value in groups.drop_nulls(".by").select("sex", ".threshold", ".estimate").rows():
        rows = loans.filter(sex=sex)
        model, _, _ = by_arithmetic([label == "yes" for label in rows["repaid"]], rows["score"].to_list(), risk)
        assert value == pytest.approx(model)
    mixed = tdf.metric_set(tdf.accuracy, tdf.net_benefit)(loans, threshold=[0.8, 0.2], **call)
    assert mixed[".threshold"].to_list() == [0.2, 0.8] * 2
    assert tdf.threshold_curve(tdf.net_benefit)(loans, **call)[".threshold"].to_list()[::98] == [0.01, 0.99]
    tally = curves.tally(loans, "repaid", probs="score", threshold=risks)
    assert_frame_equal(curves.compute(tally, pos_label="yes"), whole)


# Several labels

STAGES = ("sick", "unclear", "well")


def stages(size: int) -> pl.DataFrame:
    """Rows of three labels, with a risk of the first and scores of all."""
    random = np.random.default_rng(1)
    risk = random.uniform(0.05, 0.95, size)
    others = np.where(random.random(size) < 0.3, "unclear", "well")
    truth = np.where(random.random(size) < risk, "sick", others)
    scores = {"sick": risk, "unclear": (1 - risk) * 0.3, "well": (1 - risk) * 0.7}
    return pl.DataFrame({"stage": truth, **scores, "ward": random.choice(list("abc"), size)})


@pytest.mark.parametrize("probs", ["sick", {label: label for label in STAGES}], ids=["one", "several"])
def test_several_labels_need_an_event_and_are_refused_at_once(probs: Any) -> None:
    data = stages(2_000)
    start = time.process_time()
    with pytest.raises(tdf.errors.LabelError) as caught:
        tdf.audit("clinical_tripod_ai", data, "stage", probs=probs, by="ward")
    # averages over labels would draw each calibration thousands of times
    assert time.process_time() - start < 10
    assert str(caught.value) == (
        "audit(): clinical_tripod_ai is about one event, and the labels of 'stage' are 'sick', 'unclear', 'well': name "
        "the event, as in `pos_label='well'`; all others count as its absence."
    )
    with pytest.raises(tdf.errors.LabelError, match="is about one event"):
        tdf.audit("clinical_tripod_ai", data, "stage", probs=probs, by="ward", estimator="macro")


@pytest.mark.parametrize("probs", ["sick", {label: label for label in STAGES}], ids=["one", "several"])
def test_an_event_of_several_labels_is_read_against_the_rest(probs: Any) -> None:
    data = stages(2_000)
    options: dict[str, Any] = {"by": "ward"}
    if isinstance(probs, str):
        options["threshold"] = [0.2, 0.5]
    start = time.process_time()
    several = tdf.audit("clinical_tripod_ai", data, "stage", probs=probs, pos_label="sick", **options)
    assert time.process_time() - start < 60
    event = data.with_columns(pl.col("stage") == "sick")
    alone = tdf.audit("clinical_tripod_ai", event, "stage", probs="sick", **options)
    for name in ("performance", *(["net_benefit"] if "threshold" in options else [])):
        both = (filed.tables[name].drop(".level", strict=False) for filed in (several, alone))
        assert_frame_equal(*both)
    values = several.tables["performance"].filter(pl.col(".by").is_null())
    expected = pytest.importorskip("sklearn.metrics").roc_auc_score(event["stage"], data["sick"])
    assert dict(values.select(".metric", ".estimate").rows())["roc_auc"] == pytest.approx(expected)
    assert values[".estimate"].null_count() == 0


def test_every_undefined_value_of_a_group_has_its_reason_in_the_note() -> None:
    random = np.random.default_rng(0)
    data = pl.DataFrame({
        "y": [*random.integers(0, 2, 60), *[0] * 30, *[None] * 3],
        "p": random.random(93),
        "g": ["a"] * 60 + ["none"] * 30 + ["blank"] * 3,
    })  # fmt: skip
    filed = tdf.audit("clinical_tripod_ai", data, "y", probs="p", by="g", threshold=0.3)
    for table in (filed.tables["performance"], filed.tables["net_benefit"]):
        undefined = table.filter(pl.col(".estimate").is_null())
        assert len(undefined)
        assert undefined[".note"].str.starts_with("undefined (").all()
        assert set(table.filter(pl.col(".estimate").is_not_null())[".note"]) == {""}
    notes = dict(filed.published("performance").select("Group", "Note").rows())
    assert notes["a"] == ""
    assert notes["none"] == "AUC, Calibration intercept, slope 1, Calibration slope: undefined (one class)"
    assert notes["blank"] == "undefined (zero denominator)"
    assert dict(filed.published("net_benefit").select("Group", "Note").rows())["none"] == (
        "Standardized net benefit: undefined (zero denominator)"
    )
    # groups that do not count say so once
    few = tdf.audit("clinical_tripod_ai", data, "y", probs="p", by="g", min_n=40).published("performance")
    assert dict(few.select("Group", "Note").rows())["none"].endswith("few rows: not shown")

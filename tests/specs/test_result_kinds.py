"""Every result is of one kind, which its columns tell."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidyfair as tf
from tidyfair import inference
from tidyfair.datasets import lending
from tidyfair.specs import result_kinds as kinds
from tidyfair.specs.result_columns import RESERVED
from tidyfair.specs.result_kinds import KINDS, ResultKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

LOANS = lending(1_000)
DECIDED: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
SCORED: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
SELECTED: dict[str, Any] = {"estimate": "approved", "pos_label": "yes"}
QUIET: dict[str, Any] = {**DECIDED, "on_undefined": "ignore"}
OTHER = (pl.col("score") > 0.4).replace_strict({True: "yes", False: "no"}, return_dtype=pl.String).alias("other")
MODELS: dict[str, Any] = {"truth": "repaid", "one": "approved", "other": OTHER, "pos_label": "yes", "times": 40}
PROMPTS = pl.DataFrame({
    "prompt": [item for item in range(20) for _ in range(3)], "name": ["Anna", "Ben", "Cem"] * 20,
    "invited": [(item + name) % (2 + name) == 0 for item in range(20) for name in range(3)],
})  # fmt: skip
PARITY = tf.demographic_parity("race")
FAIR = tf.metric_set(tf.accuracy, PARITY, tf.equalized_odds("sex"))
PAIRED = inference.paired_groups(tf.selection_rate, by="name", pair="prompt")
TO_WHITE: dict[str, Any] = {"by": "race", "to": "White"}
IN_FOLDS: dict[str, Any] = {**DECIDED, "group_by": "fold"}


PAID: dict[str, Any] = {
    "estimate": "weight", "complementary": (pl.col("weight") / 2).alias("half"), "within": "age_band",
    "to": {"race": "White"},
}  # fmt: skip


def audited(name: str, table: str, **options: Any) -> Any:
    return tf.audit(name, LOANS, **options, by="race").tables[table]


def bounds() -> Any:
    people = LOANS.with_columns(a=pl.col("score").round(1), b=1 - pl.col("score").round(1))
    with pytest.warns(tf.errors.ProxyWarning):
        return inference.probabilistic_groups(tf.selection_rate, {"a": "a", "b": "b"})(people, **SELECTED)


RESULTS: dict[str, tuple[ResultKind, Callable[[], Any]]] = {
    "metrics": (kinds.METRICS, lambda: FAIR(LOANS, **QUIET)),
    "metrics with options": (
        kinds.METRICS, lambda: FAIR(LOANS, **QUIET, group_by="fold", interval="auto", explain=True)
    ),
    "thresholds": (kinds.METRICS, lambda: tf.threshold_curve(tf.sens, [0.2, 0.5])(LOANS, **SCORED)),
    "summary of a confusion matrix": (kinds.METRICS, lambda: tf.conf_mat_summary(LOANS, **DECIDED)),
    "groups": (kinds.GROUPS, lambda: FAIR.by_group(LOANS, **QUIET)),
    "groups with options": (
        kinds.GROUPS, lambda: FAIR.by_group(LOANS, **QUIET, group_by="fold", interval="auto", case_weights="weight")
    ),
    "performance": (kinds.GROUPS, lambda: audited("model_card", "performance", **DECIDED)),
    "check": (kinds.VERDICTS, lambda: tf.check(PARITY, below=0.1)(LOANS, **QUIET, times=40)),
    "four_fifths": (kinds.VERDICTS, lambda: tf.four_fifths("race")(LOANS, **SELECTED)),
    "check of pairs": (kinds.PAIRS, lambda: tf.check(tf.inference.pairwise(PARITY), below=0.1)(LOANS, **DECIDED)),
    "check of comparisons": (
        kinds.COMPARISONS, lambda: tf.check(tf.compare_groups(tf.sens, by="race"), below=0.1)(LOANS, **DECIDED)
    ),
    "check of models": (kinds.MODELS, lambda: tf.check(tf.compare_models(PARITY), below=0.1)(LOANS, **MODELS)),
    "compare_models": (kinds.MODELS, lambda: tf.compare_models(FAIR)(LOANS, **MODELS)),
    "compare_groups": (kinds.COMPARISONS, lambda: tf.compare_groups(tf.sens, by="race")(LOANS, **DECIDED)),
    "compare_groups explained": (
        kinds.COMPARISONS, lambda: tf.compare_groups(tf.sens, by=["sex", "race"])(LOANS, **IN_FOLDS, explain=True)
    ),
    "adverse impact of credit": (
        kinds.COMPARISONS,
        lambda: audited("lending_adverse_impact", "adverse_impact", **DECIDED, to={"race": "White"}),
    ),
    "adverse impact of employment": (
        kinds.FOUR_FIFTHS, lambda: audited("eeoc_uniform_guidelines", "adverse_impact", **DECIDED)
    ),
    "policy": (kinds.REQUIREMENTS, lambda: tf.audits.AuditPolicy(features=("sex",))(LOANS, **DECIDED)),
    "unknown rows": (kinds.UNKNOWN_ROWS, lambda: audited("eeoc_uniform_guidelines", "unknown", **DECIDED)),
    "standardized_differences": (
        kinds.STANDARDIZED, lambda: tf.audits.standardized_differences(LOANS, "score", **TO_WHITE, group_by="fold")
    ),
    "quantile_ratios": (kinds.QUANTILES, lambda: tf.audits.quantile_ratios(LOANS, "weight", **TO_WHITE)),
    "pairwise": (kinds.PAIRS, lambda: tf.inference.pairwise(PARITY)(LOANS, **IN_FOLDS)),
    "paired_groups": (kinds.PAIRED, lambda: PAIRED(PROMPTS, estimate="invited")),
    "cochrans_q": (kinds.COCHRANS_Q, lambda: PAIRED.cochrans_q(PROMPTS, estimate="invited")),
    "stratified": (kinds.STRATA, lambda: inference.stratified(PARITY, within="age_band")(LOANS, **DECIDED)),
    "segments": (
        kinds.STRATA,
        lambda: audited("lending_adverse_impact", "segments", **DECIDED, to={"race": "White"}, within="age_band"),
    ),
    "worst_groups": (kinds.WORST, lambda: inference.worst_groups(PARITY)(LOANS, **DECIDED, times=50)),
    "shrunken_rates": (kinds.SHRUNKEN, lambda: inference.shrunken_rates(PARITY, LOANS, **DECIDED, times=50)),
    "additive rates": (
        kinds.SHRUNKEN,
        lambda: inference.shrunken_rates(
            tf.demographic_parity("race", "sex"), LOANS, **DECIDED, pooling="additive", times=50
        ),
    ),
    "probabilistic_groups": (kinds.BOUNDS, bounds),
    "disparity_test": (kinds.TESTS, lambda: inference.disparity_test(PARITY)(LOANS, **IN_FOLDS, times=20)),
    "probability": (kinds.PROBABILITIES, lambda: inference.probability(PARITY, below=0.1)(LOANS, **DECIDED)),
    "subgroup_search": (
        kinds.SUBGROUPS,
        lambda: inference.subgroup_search(tf.selection_rate, ["sex", "race"])(LOANS, **DECIDED, times=20),
    ),
    "certify_subgroups": (
        kinds.CERTIFICATE,
        lambda: inference.certify_subgroups(tf.selection_rate, ["sex", "race"])(LOANS, **DECIDED),
    ),
    "limits of subgroups": (
        kinds.SUBGROUPS,
        lambda: inference.certify_subgroups(tf.selection_rate, ["sex", "race"]).by_subgroup(LOANS, **DECIDED),
    ),
    "multicalibration_test": (
        kinds.MISCALIBRATION, lambda: inference.multicalibration_test(["sex", "race"])(LOANS, **SCORED, group_by="fold")
    ),
    "gaps of pay": (kinds.PAY_GAPS, lambda: audited("eu_pay_transparency", "categories", **PAID)),
    "gaps of basic pay": (kinds.PAY_GAPS, lambda: audited("eu_pay_transparency", "categories_basic", **PAID)),
    "bands of pay": (kinds.PAY_BANDS, lambda: audited("eu_pay_transparency", "quartile_bands", **PAID)),
    "linear_subgroup": (
        kinds.HALVES, lambda: inference.linear_subgroup(tf.selection_rate, ["score", "weight"])(LOANS, **DECIDED)
    ),
    "verdict_sensitivity": (
        kinds.SENSITIVITY, lambda: inference.verdict_sensitivity(PARITY, below=0.1)(LOANS, **DECIDED)
    ),
    "missing_truth": (
        kinds.MISSING_TRUTH, lambda: inference.missing_truth(LOANS, "repaid", "approved", by="sex", positive="yes")
    ),
    "smallest_difference": (
        kinds.SMALLEST, lambda: inference.smallest_difference({"a": 800, "b": 200}, 0.5, times=50)
    ),
    "smallest_difference of groups": (
        kinds.SMALLEST, lambda: inference.smallest_difference(PARITY.by_group(LOANS, **IN_FOLDS), times=20)
    ),
    "compare_models at once": (
        kinds.MODELS,
        lambda: tf.compare_models(tf.accuracy, PARITY, adjust="max_t")(
            LOANS.with_columns(OTHER), "repaid", one="approved", others=["other"], pos_label="yes"
        ),
    ),
    "summarize": (kinds.SUMMARIES, lambda: inference.summarize(FAIR(LOANS, **QUIET, group_by="fold"))),
    "summarize groups": (
        kinds.SUMMARIES, lambda: inference.summarize(PARITY.by_group(LOANS, **IN_FOLDS))
    ),
    "compare_resamples": (
        kinds.RESAMPLES,
        lambda: inference.compare_resamples(PARITY.by_group(LOANS, **IN_FOLDS), PARITY.by_group(LOANS, **IN_FOLDS)),
    ),
    "monitor": (kinds.LOOK, lambda: inference.monitor(PARITY, below=0.1)(LOANS, **DECIDED)),
    "monitor by period": (
        kinds.LOOKS, lambda: inference.monitor(PARITY, below=0.1, period="fold")(LOANS, **IN_FOLDS)
    ),
    "groups of a monitor": (
        kinds.GROUPS_OF_LOOKS,
        lambda: inference.monitor(PARITY, below=0.1, period="fold").by_group(LOANS, **IN_FOLDS),
    ),
    "compare_periods": (
        kinds.PERIODS, lambda: inference.compare_periods(PARITY, period="fold")(LOANS, **IN_FOLDS, times=20)
    ),
    "compare_periods, searched": (
        kinds.CHANGES,
        lambda: inference.compare_periods(PARITY, period="fold", search="change")(LOANS, **IN_FOLDS, times=20),
    ),
    "decompose": (
        kinds.COMPONENTS,
        lambda: inference.decompose(tf.selection_rate, between="sex", by="race")(
            LOANS, estimate="approved", pos_label="yes"
        ),
    ),
    "compare_models, several": (
        kinds.MODELS,
        lambda: tf.compare_models(tf.accuracy, margin=0.1)(
            LOANS, "repaid", one="approved", others={"other": pl.col("approved").alias("other")}, pos_label="yes"
        ),
    ),
    "roc_curve": (kinds.ROC_CURVE, lambda: tf.roc_curve(LOANS, **SCORED, group_by="race")),
    "pr_curve": (kinds.PR_CURVE, lambda: tf.pr_curve(LOANS, **SCORED)),
    "gain_curve": (kinds.GAIN_CURVE, lambda: tf.gain_curve(LOANS, **SCORED)),
    "lift_curve": (kinds.LIFT_CURVE, lambda: tf.lift_curve(LOANS, **SCORED)),
    "calibration_curve": (
        kinds.CALIBRATION_CURVE, lambda: tf.calibration.curve(LOANS, **SCORED, case_weights="weight")
    ),
    "isotonic calibration_curve": (
        kinds.CALIBRATION_CURVE, lambda: tf.calibration.curve(LOANS, **SCORED, binning="isotonic", group_by="race")
    ),
    "cumulative_calibration_curve": (
        kinds.CUMULATIVE_CURVE, lambda: tf.calibration.cumulative_curve(LOANS, **SCORED, group_by="race")
    ),
    "kaplan_meier": (
        kinds.SURVIVAL_CURVE,
        lambda: tf.survival.kaplan_meier(
            LOANS.with_columns(paid=pl.col("repaid") == "yes"), tf.survival.outcome("score", "paid"), group_by="race"
        ),
    ),
    "risk_coverage_curve": (
        kinds.RISK_COVERAGE_CURVE, lambda: tf.abstention.risk_coverage_curve(LOANS, **SCORED, group_by="race")
    ),
    "feature_curve": (
        kinds.FEATURE_CURVE, lambda: inference.feature_curve(tf.sens, "score", at=[0.4, 0.6])(LOANS, **DECIDED)
    ),
    "conf_mat": (kinds.CONFUSION, lambda: tf.conf_mat(LOANS, "repaid", "approved", group_by="sex")),
    "confusion matrices of thresholds": (
        kinds.CONFUSION, lambda: tf.conf_mat(LOANS, **SCORED, threshold=[0.2, 0.5], case_weights="weight")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_results_have_the_columns_of_their_kind_in_order(name: str) -> None:
    kind, make = RESULTS[name]
    result = make()
    assert [other for other in KINDS if other.describes(frozenset(result.columns))] == [kind]
    assert kind.frame(result).columns == result.columns


def test_every_kind_has_a_result() -> None:
    assert {kind for kind, _ in RESULTS.values()} == set(KINDS)


def test_no_columns_are_those_of_two_kinds() -> None:
    for one, other in combinations(KINDS, 2):
        assert not (one.known_by.issubset(other.columns) and other.known_by.issubset(one.columns)), (one, other)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_columns_of_kinds_have_a_meaning_and_a_place(kind: ResultKind) -> None:
    assert kind.known_by.issubset(kind.columns)
    assert len(set(kind.columns)) == len(kind.columns)
    assert {name for name in kind.columns if name.startswith(".")} <= RESERVED


def test_stored_results_keep_their_kind_when_they_are_judged() -> None:
    values = tf.check(FAIR(LOANS, **QUIET, interval="auto", explain=True), below=0.1)
    assert kind_of(values) is kinds.VERDICTS
    pairs = tf.check(tf.inference.pairwise(PARITY)(LOANS, **DECIDED), below=0.1, outside="state")
    assert kind_of(pairs) is kinds.PAIRS
    models = tf.check(tf.compare_models(PARITY)(LOANS, **MODELS), below=0.1, outside="state")
    assert kind_of(models) is kinds.MODELS


def test_columns_of_the_user_change_no_kind() -> None:
    result = FAIR.by_group(LOANS, **QUIET)
    assert kind_of(result.with_columns(pl.lit(1).alias("mine"), pl.lit(2).alias(".mine"))) is kinds.GROUPS
    assert kind_of(result.select(".estimate", ".group", ".by", ".metric")) is kinds.GROUPS
    assert kind_of(LOANS) is None
    # a key of the user may have the name of a column of curves
    keyed = tf.accuracy(
        LOANS.rename({"fold": "sensitivity", "sex": "specificity"}), **DECIDED, group_by=["sensitivity"]
    )
    assert kind_of(keyed) is kinds.METRICS


def test_columns_of_another_kind_are_named_by_the_error() -> None:
    result = FAIR.by_group(LOANS, **QUIET).with_columns(pl.lit(1.0).alias(".share"), pl.lit(1.0).alias("mine"))
    with pytest.raises(tf.errors.ArgumentError, match=r"Drop '\.share' to draw: values of groups\.$"):
        tf.autoplot(result)
    assert tf.autoplot(result.drop(".share")).to_dict()["concat"]


def test_order_leaves_features_behind_the_column_before() -> None:
    table = pl.DataFrame(schema=["fold", ".estimate", ".metric", ".by", "sex", ".group"])
    assert kinds.GROUPS.frame(table).columns == ["fold", ".metric", ".by", "sex", ".group", ".estimate"]

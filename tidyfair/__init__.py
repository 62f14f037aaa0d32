"""Tidy metric sets and fairness metrics on dataframes.

How good is a model, for whom, how much do groups differ, and how certain is that? Metrics of labels, scores,
numbers, survival times and prediction intervals, their comparisons between groups, and sets of them are all called in
the same way, on a polars, pandas or pyarrow frame (or one of DuckDB, Spark, Dask, Ibis), and return a tidy frame with a
row for each metric.

>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> fair = tdf.metric_set(tdf.accuracy, tdf.demographic_parity("sex"), tdf.sens.difference("race"))
>>> fair(lending(), "repaid", "approved", pos_label="yes").select(".metric", ".by", ".estimate").row(0)
('accuracy', None, 0.6926)

Where to look:
    help(tdf.accuracy): the meaning of a metric, and its call with all keywords, which are the same for every metric.
    tdf.catalogue(): all metrics as a frame, with their range, formula, aliases and names in other libraries.
    tdf.accuracy.difference("sex"), .ratio("sex"), .group_minimum("sex"): any metric compared between groups.
    fair.by_group(data, …): the values of the groups. fair(data, …, interval="auto"): confidence intervals.
    tdf.check, tdf.assert_fair, tdf.pairwise, tdf.compare_models, and all of tdf.inference: verdicts and tests.
    tdf.autoplot, tdf.as_table, tdf.report: plots, tables and reports. `tidyfair audit --help`: the command line.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidyfair import datasets as datasets
    from tidyfair import inference as inference
    from tidyfair.audits.credit import *
    from tidyfair.audits.effect_sizes import *
    from tidyfair.audits.filing import *
    from tidyfair.audits.named_audits import *
    from tidyfair.audits.published import *
    from tidyfair.audits.reference_tables import *
    from tidyfair.calling.metric_sets import *
    from tidyfair.calling.streaming import *
    from tidyfair.errors import *
    from tidyfair.inference.gates.checks import UnfairError as UnfairError
    from tidyfair.inference.gates.checks import assert_fair as assert_fair
    from tidyfair.inference.gates.checks import check as check
    from tidyfair.inference.gates.checks import four_fifths as four_fifths
    from tidyfair.inference.models.model_comparison import compare_models as compare_models
    from tidyfair.inference.testing.pairwise_tests import pairwise as pairwise
    from tidyfair.integrations.scorers import *
    from tidyfair.metrics.annotators import *
    from tidyfair.metrics.catalog import *
    from tidyfair.metrics.classification import *
    from tidyfair.metrics.confusion import *
    from tidyfair.metrics.curves import *
    from tidyfair.metrics.defaults import *
    from tidyfair.metrics.define import *
    from tidyfair.metrics.dependence import *
    from tidyfair.metrics.fairness import *
    from tidyfair.metrics.individual import *
    from tidyfair.metrics.inequality import *
    from tidyfair.metrics.prediction_intervals import *
    from tidyfair.metrics.probability import *
    from tidyfair.metrics.ranking import *
    from tidyfair.metrics.regression import *
    from tidyfair.metrics.survival import *
    from tidyfair.reports.page import *
    from tidyfair.reports.plots import *
    from tidyfair.reports.tables import *
    from tidyfair.specs.aggregates import *
    from tidyfair.specs.contrasts import *
    from tidyfair.specs.forecasts import *
    from tidyfair.specs.formulas.rows import *
    from tidyfair.specs.formulas.statistics import *
    from tidyfair.specs.groups import *
    from tidyfair.specs.spreads import *
    from tidyfair.specs.survey_designs import *
    from tidyfair.tallies.censoring import *
    from tidyfair.tallies.tally import *
    from tidyfair.tallies.thresholds import *

    __all__: list[str]
    __version__: str

# Every public name, by the module that defines it, which is read when the name is first asked for: so
# `import tidyfair` costs nothing but this list.
_NAMES = {
    "audits.credit": "SegmentedTable StandardizedTable",
    "audits.effect_sizes": "quantile_ratios standardized_differences",
    "audits.filing": "audit FiledAudit NAMED_AUDITS",
    "audits.named_audits": "ComparisonTable NamedAudit ValuesTable",
    "audits.published": "PublishedColumn",
    "audits.reference_tables": "compare_groups GroupComparison",
    "errors": """
        AggregateError ArgumentError ClusterWarning ColumnError ConstantWarning DirectionWarning EngineError
        EngineWarning EvidenceWarning ForkError LabelError MissingPredictionsWarning ProxyWarning SelectionWarning
        TidyfairError Undefined UndefinedError UndefinedWarning UnknownGroupWarning WeightError
    """,
    "calling.metric_sets": "GroupwiseFactory GroupwiseMetric Metric metric_set metric_tweak MetricSet",
    "calling.streaming": "Accumulator load_state save_state",
    "inference.gates.checks": "assert_fair check four_fifths UnfairError",
    "inference.models.model_comparison": "compare_models",
    "inference.testing.pairwise_tests": "pairwise",
    "integrations.scorers": """
        correlation_score CorrelationScorer equal_opportunity_score FairnessScorer make_scorer p_percent_score
        subset_score SubsetScorer
    """,
    "metrics.annotators": "fleiss_kap krippendorff_alpha majority_label soft_label",
    "metrics.catalog": "catalogue get_metrics",
    "metrics.classification": """
        accuracy average_odds average_predictive_value bal_accuracy base_rate demographic_disparity
        detection_prevalence diagnostic_odds_ratio divergence_from_rest error_rate f_meas fall_out
        false_discovery_rate false_negative_rate false_negative_share false_negatives
        false_negatives_per_false_positive false_omission_rate false_positive_rate false_positive_share
        false_positives instances j_index kap lift markedness mcc miss_rate negative_likelihood_ratio
        negative_predictive_value negatives net_benefit npv positive_likelihood_ratio positive_predictive_value
        positives ppv precision predicted_negatives predicted_positives prevalence recall roc_dist sedi selection_rate
        sens sensitivity share_of_rows smoothed_base_rate smoothed_negative_rate smoothed_rejection_rate
        smoothed_selection_rate spec specificity standardized_net_benefit threat_score true_negative_rate
        true_negative_share true_negatives true_positive_rate true_positive_share true_positives
    """,
    "metrics.confusion": "conf_mat conf_mat_summary",
    "metrics.curves": """
        calibration_curve Curve gain_curve lift_curve pr_curve roc_curve threshold_curve ThresholdCurve
    """,
    "metrics.defaults": "default_metrics",
    "metrics.define": "class_metric new_class_metric new_numeric_metric new_prob_metric numeric_metric prob_metric",
    "metrics.dependence": "distance_given_estimate distance_given_truth distance_to_all",
    "metrics.fairness": """
        abroca abroca_debiased abroca_if_equal auc_parity average_abs_odds_difference average_odds_difference
        average_predictive_value_difference between_group_coefficient_of_variation
        between_group_generalized_entropy_index between_group_theil_index bias_amplification bnsp_auc bpsn_auc
        calibration_error_parity calibration_parity class_imbalance concordance_parity
        conditional_demographic_disparity conditional_use_accuracy_equality demographic_parity
        demographic_parity_ratio differential_fairness disparate_impact equal_opportunity
        equal_opportunity_ratio equalized_coverage equalized_odds equalized_odds_ratio explained_by_groups
        generalized_equalized_odds_difference independence kl_divergence kolmogorov_smirnov
        kolmogorov_smirnov_debiased kolmogorov_smirnov_if_equal mutual_information negative_class_balance
        new_between_group_metric new_groupwise_metric overall_accuracy_equality positive_class_balance
        predictive_equality predictive_parity separation statistical_parity_difference sufficiency
        survival_calibration_parity treatment_equality wasserstein_distance wasserstein_distance_debiased
        wasserstein_distance_if_equal within_group_generalized_entropy_index
    """,
    "metrics.individual": "consistency",
    "metrics.inequality": """
        benefit_variation generalized_entropy_index inequality_within mean_benefit mean_log_deviation theil_index
    """,
    "metrics.prediction_intervals": """
        interval_coverage interval_coverage_error interval_misses_above interval_misses_below interval_score
        interval_width quantile_coverage_error quantile_loss weighted_interval_score winkler_score
    """,
    "metrics.probability": """
        average_precision balance_for_negative_class balance_for_positive_class brier_class
        calibration_in_the_large calibration_intercept calibration_ratio calibration_slope classification_cost
        expected_calibration_error expected_calibration_error_debiased
        expected_calibration_error_if_calibrated gain_capture generalized_false_negative_rate
        generalized_false_negatives generalized_false_positives generalized_true_negative_rate
        generalized_true_negatives generalized_true_positives mean_score mn_log_loss pr_auc ranked_prob_score
        roc_auc roc_aunp roc_aunu
    """,
    "metrics.ranking": "attention_gap exposure exposure_per_relevance max_skew min_skew ndcg ndkl rnd skew",
    "metrics.regression": """
        ccc gini_coef huber_loss huber_loss_pseudo iic mae mape mase mean_prediction mean_truth
        median_absolute_error mpe msd mse pinball_loss poisson_log_loss residual_bias rmse rmse_relative rpd
        rpiq rsq rsq_trad smape squared_shift
    """,
    "metrics.survival": """
        brier_survival brier_survival_integrated calibration_in_the_large_survival calibration_ratio_survival
        concordance_survival concordance_survival_uno roc_auc_survival
    """,
    "reports.page": "Report report",
    "reports.plots": "autoplot",
    "reports.tables": "as_table",
    "specs.aggregates": "Aggregate new_aggregate",
    "specs.contrasts": "difference log_ratio ratio",
    "specs.forecasts": "CensoringDistribution prediction_interval PredictionInterval survival Survival",
    "specs.formulas.rows": "Sample",
    "specs.formulas.statistics": "statistic",
    "specs.groups": "Privileged privileged",
    "specs.survey_designs": "replicate_weights ReplicateWeights survey_design SurveyDesign",
    "specs.spreads": """
        coefficient_of_variation generalized_entropy group_maximum group_mean group_minimum
        mean_absolute_deviation standard_deviation
    """,
    "tallies.censoring": "censoring_distribution",
    "tallies.tally": "Tally",
    "tallies.thresholds": "sigmoid",
}
_OF_METRICS = (
    "metrics.classification", "metrics.probability", "metrics.regression", "metrics.inequality", "metrics.dependence",
    "metrics.survival", "metrics.prediction_intervals",
)  # fmt: skip
"""The modules of metrics, whose comparisons can be imported by name."""
_NAMESPACES = ("datasets", "inference")
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:
    __all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - names of the list above


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - as short as can be

    if name in _MODULE_OF:
        value = getattr(import_module(f"tidyfair.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _NAMESPACES:
        return import_module(f"tidyfair.{name}")
    if name == "__version__":
        # as installed; looked up when asked for, because that reads a file
        return import_module("importlib.metadata").version("tidyfair")
    other_names = import_module("tidyfair.metrics.other_names")
    way_out = ""
    if name in import_module("tidyfair.inference").__all__:
        way_out = f": write tidyfair.inference.{name}"
    elif not name.startswith("_"):
        metrics = {name for module in _OF_METRICS for name in _NAMES[module].split()}
        way_out = other_names.way_out(name, metrics, set(_MODULE_OF) - metrics)
    raise other_names.missing(__name__, name, way_out)


def __dir__() -> list[str]:
    return [*sorted(_MODULE_OF), *_NAMESPACES]

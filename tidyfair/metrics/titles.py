"""Titles of metrics: the names that people read, beside the names in code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidyfair.specs import cut_of_row

_TITLES = {
    "abroca": "Area between the ROC curves of groups (ABROCA)",
    "abroca_debiased": "Area between the ROC curves of groups (ABROCA), less what chance adds",
    "abroca_if_equal": "Area between the ROC curves of equal groups (ABROCA by chance)",
    "attention_gap": "Share of attention minus share of relevance",
    "auc_parity": "AUC parity (difference in the area under the ROC curve)",
    "average_abs_odds_difference": "Average absolute odds difference",
    "average_odds_difference": "Average odds difference",
    "average_predictive_value_difference": "Average predictive value difference",
    "generalized_equalized_odds_difference": "Generalized equalized odds difference",
    "average_odds": "Average odds (mean of true and false positive rate)",
    "average_precision": "Average precision",
    "bal_accuracy": "Balanced accuracy",
    "base_rate": "Base rate (prevalence)",
    "bnsp_auc": "Background negative, subgroup positive AUC (BNSP)",
    "bpsn_auc": "Background positive, subgroup negative AUC (BPSN)",
    "brier_class": "Brier score",
    "brier_survival": "Brier score of survival at a time",
    "brier_survival_integrated": "Integrated Brier score of survival",
    "calibration_in_the_large": "Calibration in the large (mean score minus event rate)",
    "calibration_in_the_large_survival": "Calibration in the large of survival at a time",
    "calibration_ratio_survival": "Calibration ratio of survival at a time (observed over expected events)",
    "ccc": "Concordance correlation coefficient",
    "concordance_parity": "Concordance parity (difference in concordance)",
    "concordance_survival": "Concordance (Harrell's C)",
    "concordance_survival_uno": "Concordance without censoring (Uno's C)",
    "demographic_parity": "Demographic parity (difference in selection rates)",
    "demographic_parity_ratio": "Demographic parity ratio (ratio of selection rates)",
    "detection_prevalence": "Selection rate",
    "disparate_impact": "Disparate impact (ratio of selection rates)",
    "equal_opportunity": "Equal opportunity (difference in sensitivity)",
    "equal_opportunity_ratio": "Equal opportunity ratio (ratio of sensitivities)",
    "equalized_coverage": "Equalized coverage (difference in coverage of prediction intervals)",
    "equalized_odds": "Equalized odds (difference in sensitivity or specificity)",
    "equalized_odds_ratio": "Equalized odds ratio (ratio of sensitivities or specificities)",
    "exposure": "Exposure (mean attention by position)",
    "exposure_per_relevance": "Exposure for relevance",
    "f_meas": "F measure (F1 score)",
    "fall_out": "False positive rate (fall-out)",
    "false_positive_rate": "False positive rate",
    "fleiss_kap": "Fleiss's kappa",
    "gini_coef": "Gini coefficient",
    "huber_loss": "Huber loss",
    "huber_loss_pseudo": "Pseudo-Huber loss",
    "interval_coverage": "Coverage of prediction intervals",
    "interval_coverage_error": "Coverage error of prediction intervals",
    "interval_misses_above": "Share of truths above their prediction interval",
    "interval_misses_below": "Share of truths below their prediction interval",
    "interval_score": "Interval score (Winkler)",
    "interval_width": "Width of prediction intervals",
    "iic": "Index of ideality of correlation",
    "instances": "Number of rows",
    "j_index": "Youden's J (informedness)",
    "kap": "Cohen's kappa",
    "kl_divergence": "Kullback-Leibler divergence",
    "kolmogorov_smirnov": "Kolmogorov-Smirnov distance",
    "kolmogorov_smirnov_debiased": "Kolmogorov-Smirnov distance, less what chance adds",
    "kolmogorov_smirnov_if_equal": "Kolmogorov-Smirnov distance of equal groups",
    "krippendorff_alpha": "Krippendorff's alpha",
    "mae": "Mean absolute error",
    "mape": "Mean absolute percentage error",
    "mase": "Mean absolute scaled error",
    "max_skew": "Largest skew (logarithm of the ratio of shares)",
    "mcc": "Matthews correlation coefficient",
    "min_skew": "Least skew (logarithm of the ratio of shares)",
    "miss_rate": "False negative rate (miss rate)",
    "mn_log_loss": "Log loss (cross-entropy)",
    "mpe": "Mean percentage error",
    "msd": "Mean signed deviation",
    "mse": "Mean squared error",
    "skew": "Skew (logarithm of the ratio of shares)",
    "ndcg": "nDCG (normalized discounted cumulative gain)",
    "ndkl": "Normalized discounted divergence of the groups at the top (NDKL)",
    "npv": "Negative predictive value at a given prevalence",
    "ppv": "Positive predictive value at a given prevalence",
    "pr_auc": "Area under the precision-recall curve",
    "precision": "Precision (positive predictive value)",
    "predictive_equality": "Predictive equality (difference in false positive rates)",
    "predictive_parity": "Predictive parity (difference in precision)",
    "overall_accuracy_equality": "Overall accuracy equality (difference in accuracy)",
    "poisson_log_loss": "Poisson log loss",
    "ranked_prob_score": "Ranked probability score",
    "quantile_coverage_error": "Coverage error of quantiles",
    "quantile_loss": "Quantile loss (pinball)",
    "recall": "Recall (sensitivity)",
    "residual_bias": "Mean error (predicted minus actual)",
    "rmse": "Root mean squared error",
    "rmse_relative": "Relative root mean squared error",
    "rnd": "Normalized discounted difference of the protected share (rND)",
    "roc_auc": "Area under the ROC curve (AUC)",
    "roc_auc_survival": "Area under the ROC curve at a time",
    "roc_auc_survival_mean": "Mean area under the ROC curve over times",
    "roc_aunp": "Area under the ROC curve, each label against the rest, by prevalence",
    "roc_aunu": "Area under the ROC curve, each label against the rest, unweighted",
    "roc_dist": "Distance from the ideal ROC point",
    "rpd": "Ratio of performance to deviation",
    "rpiq": "Ratio of performance to interquartile range",
    "rsq": "R squared (squared correlation)",
    "rsq_trad": "R squared (coefficient of determination)",
    "sedi": "Symmetric extremal dependence index",
    "sens": "Sensitivity (true positive rate)",
    "sensitivity": "Sensitivity (true positive rate)",
    "smape": "Symmetric mean absolute percentage error",
    "spec": "Specificity (true negative rate)",
    "specificity": "Specificity (true negative rate)",
    "statistical_parity_difference": "Statistical parity difference",
    "theil_index": "Theil index",
    "between_group_theil_index": "Theil index between groups",
    "threat_score": "Threat score (Jaccard index)",
    "treatment_equality": "Treatment equality (false negatives per false positive)",
    "wasserstein_distance": "Wasserstein distance",
    "wasserstein_distance_debiased": "Wasserstein distance, less what chance adds",
    "wasserstein_distance_if_equal": "Wasserstein distance of equal groups",
    "winkler_score": "Interval score (Winkler)",
    "within_group_generalized_entropy_index": "Generalized entropy index within groups",
    "between_group_generalized_entropy_index": "Generalized entropy index between groups",
    "between_group_coefficient_of_variation": "Coefficient of variation between groups",
}
"""Names that are more than their words: abbreviations, and what a name of the field stands for."""
_COMPARED = {
    "difference": "Difference in {}", "ratio": "Ratio of {}", "group_minimum": "Lowest {} of a group",
    "group_maximum": "Highest {} of a group",
}  # fmt: skip
"""The titles of the comparisons that every metric has, by the end of their names."""
_AT_A_TIME = " at a time"
"""The words of titles for the time that a row may name."""
_AT = {
    ".threshold": "at threshold {:.15g}", ".top_k": "with {:.15g} selected",
    ".top_fraction": "with a share of {:.15g} selected", ".eval_time": "at time {:.15g}",
    ".quantile_level": "at quantile level {:.15g}",
}  # fmt: skip
"""The words for a cut or a point."""
_NAMES_OF_PEOPLE = re.compile(
    r"(Brier|Cohen|Fleiss|Gini|Huber|Kolmogorov|Krippendorff|Kullback|Matthews|Poisson|Theil|Wasserstein|Winkler|"
    r"Youden)"
)


def title_of(name: str) -> str:
    """The name of a metric that people read.

    >>> title_of("sens"), title_of("false_discovery_rate"), title_of("mae_difference")
    ('Sensitivity (true positive rate)', 'False discovery rate', 'Difference in mean absolute error')
    """
    if name in _TITLES:
        return _TITLES[name]
    for way, words in _COMPARED.items():
        base = name.removesuffix(f"_{way}")
        if base != name:
            return words.format(in_prose(base))
    return capitalized(name.replace("_", " "))


def short_title(name: str) -> str:
    """The name of a metric that people read, without what is in brackets.

    >>> short_title("sens")
    'Sensitivity'
    """
    return title_of(name).partition(" (")[0]


def at_cut(title: str, row: Mapping[str, Any]) -> str:
    """A title with the threshold, the evaluation time or the quantile level that a row of results is about.

    >>> at_cut("Brier score of survival at a time", {".eval_time": 10.0}), at_cut("Sensitivity", {".threshold": 0.5})
    ('Brier score of survival at time 10', 'Sensitivity at threshold 0.5')
    """
    words = cut_in_words(row)
    if words and _AT_A_TIME in title:
        return title.replace(_AT_A_TIME, f" {words}", 1)
    return f"{title} {words}" if words else title


def cut_in_words(row: Mapping[str, Any]) -> str:
    """The threshold, the evaluation time or the quantile level that a row of results is about; empty without one.

    >>> cut_in_words({".quantile_level": 0.1})
    'at quantile level 0.1'
    """
    return " ".join(_AT[name].format(value) for name, value in cut_of_row(row).items())


def capitalized(text: str) -> str:
    """A text that starts with a capital letter; the others stay as they are."""
    return text[:1].upper() + text[1:]


def in_prose(name: str) -> str:
    """The name of a metric within a sentence: without what is in brackets.

    >>> in_prose("sens"), in_prose("roc_auc"), in_prose("brier_class")
    ('sensitivity', 'area under the ROC curve', 'Brier score')
    """
    title = short_title(name)
    first_word = title.partition(" ")[0]
    keeps_capital = len(first_word) == 1 or first_word != first_word.capitalize()
    if keeps_capital or _NAMES_OF_PEOPLE.match(title):
        return title
    return title[:1].lower() + title[1:]

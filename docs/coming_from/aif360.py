"""What AIF360's methods are called here: each row is code, shown on its page and run on AIF360's own numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import polars as pl

import tidyfair as tdf

TITLE = "Coming from AIF360"
INTRODUCTION = """\
AIF360 wraps data in classes of its own and gives one number at a time. Here the data stay in your frame, and as many
metrics as you like are one call. A metric is called with the columns; the number is in `.estimate`:

```python
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> sides = tdf.privileged({"sex": "male", "race": "White"}, unprivileged=[{"sex": "female", "race": "Black"}])
>>> fair = tdf.metric_set(tdf.disparate_impact(sides), tdf.average_odds_difference(sides), tdf.inequality.theil_index)
>>> fair(loans, "repaid", "approved", pos_label="yes")[".estimate"].round(4).to_list()
[0.8021, -0.1205, 0.2111]

```

In the rows below `sides` is such a `tdf.privileged(privileged_groups, unprivileged=unprivileged_groups)`. `attributes`
are the names of the protected attributes, `features` those of other columns of numbers, `metric` and `rate` are metrics,
`alpha`, `concentration` and `n_neighbors` what AIF360 calls so; `pl` is polars. `case_weights=` are its instance
weights, `group_by="fold"` gives one row per fold, and a column instead of `sides` compares any number of groups: the
difference is then the largest of all pairs. What the metrics mean stands under [labels](../metrics/labels.md),
[scores](../metrics/scores.md), [fairness](../metrics/fairness.md), [inequality](../metrics/inequality.md) and
[individuals](../metrics/individuals.md).

- **One side, or all rows.** With `privileged=True` and `False` give `group_by=sides`, and the result has a row for each
  side (and one for rows on neither, if there are any), `group_by=["fold", sides]` for each side of each fold; without
  it the metric is that of all rows.
- **Signs.** A difference is unprivileged minus privileged, a ratio unprivileged over privileged.
- **A signed average of 0 is not equality of odds.** In `average_odds_difference` a higher false positive rate makes up
  for a lower true positive rate. Look at `average_abs_odds_difference` or `equalized_odds_difference`. Of more than two
  groups a signed difference needs a reference, `aggregate=tdf.difference(to="…", signed=True)`.
- **No value is no number.** A rate without denominator is null, and so is what is made of it; AIF360 gives 0 for some
  of these and NaN for others. What is divided by 0 is infinite, and `explain=True` says so.
- **Weights** count wherever rows do; AIF360 leaves them out of inequality, consistency and subgroups.
- **Rows on neither side** are left out; AIF360 keeps them in between-group indices, with a benefit of 0.
- **Slips.** A condition with a value that never occurs, a side without rows and rows on both sides are errors."""

ROWS = {
    "ClassificationMetric": {
        "num_instances": lambda: tdf.counts.instances,
        "num_positives": lambda: tdf.counts.positives,
        "num_negatives": lambda: tdf.counts.negatives,
        "num_pred_positives": lambda: tdf.counts.predicted_positives,
        "num_pred_negatives": lambda: tdf.counts.predicted_negatives,
        "num_true_positives": lambda: tdf.counts.true_positives,
        "num_false_positives": lambda: tdf.counts.false_positives,
        "num_true_negatives": lambda: tdf.counts.true_negatives,
        "num_false_negatives": lambda: tdf.counts.false_negatives,
        "power": lambda: tdf.counts.true_positives,
        "num_generalized_true_positives": lambda: tdf.counts.generalized_true_positives,
        "num_generalized_false_positives": lambda: tdf.counts.generalized_false_positives,
        "num_generalized_true_negatives": lambda: tdf.counts.generalized_true_negatives,
        "num_generalized_false_negatives": lambda: tdf.counts.generalized_false_negatives,
        "binary_confusion_matrix": lambda: tdf.metric_set(
            tdf.counts.true_positives, tdf.counts.false_positives, tdf.counts.true_negatives, tdf.counts.false_negatives
        ),
        "generalized_binary_confusion_matrix": lambda: tdf.metric_set(
            tdf.counts.generalized_true_positives,
            tdf.counts.generalized_false_positives,
            tdf.counts.generalized_true_negatives,
            tdf.counts.generalized_false_negatives,
        ),
        "accuracy": lambda: tdf.accuracy,
        "error_rate": lambda: tdf.error_rate,
        "true_positive_rate": lambda: tdf.true_positive_rate,
        "true_negative_rate": lambda: tdf.true_negative_rate,
        "false_positive_rate": lambda: tdf.false_positive_rate,
        "false_negative_rate": lambda: tdf.false_negative_rate,
        "positive_predictive_value": lambda: tdf.positive_predictive_value,
        "negative_predictive_value": lambda: tdf.negative_predictive_value,
        "false_discovery_rate": lambda: tdf.false_discovery_rate,
        "false_omission_rate": lambda: tdf.false_omission_rate,
        "precision": lambda: tdf.precision,
        "recall": lambda: tdf.recall,
        "sensitivity": lambda: tdf.sensitivity,
        "specificity": lambda: tdf.specificity,
        "selection_rate": lambda: tdf.selection_rate,
        "base_rate": lambda: tdf.base_rate,
        "generalized_true_positive_rate": lambda: tdf.calibration.balance_for_positive_class,
        "generalized_true_negative_rate": lambda: tdf.counts.generalized_true_negative_rate,
        "generalized_false_positive_rate": lambda: tdf.calibration.balance_for_negative_class,
        "generalized_false_negative_rate": lambda: tdf.counts.generalized_false_negative_rate,
        "performance_measures": lambda: tdf.metric_set(
            tdf.true_positive_rate,
            tdf.true_negative_rate,
            tdf.false_positive_rate,
            tdf.false_negative_rate,
            tdf.calibration.balance_for_positive_class,
            tdf.counts.generalized_true_negative_rate,
            tdf.calibration.balance_for_negative_class,
            tdf.counts.generalized_false_negative_rate,
            tdf.positive_predictive_value,
            tdf.negative_predictive_value,
            tdf.false_discovery_rate,
            tdf.false_omission_rate,
            tdf.accuracy,
        ),
        "difference": lambda metric, sides: tdf.new_groupwise_metric(metric, "gap", tdf.difference())(sides),
        "ratio": lambda metric, sides: tdf.new_groupwise_metric(metric, "gap", tdf.ratio())(sides),
        "statistical_parity_difference": lambda sides: tdf.statistical_parity_difference(sides),
        "mean_difference": lambda sides: tdf.statistical_parity_difference(sides),
        "disparate_impact": lambda sides: tdf.disparate_impact(sides),
        "equal_opportunity_difference": lambda sides: tdf.equal_opportunity(sides),
        "average_odds_difference": lambda sides: tdf.average_odds_difference(sides),
        "average_abs_odds_difference": lambda sides: tdf.average_abs_odds_difference(sides),
        "equalized_odds_difference": lambda sides: tdf.equalized_odds(sides),
        "generalized_equalized_odds_difference": lambda sides: tdf.counts.generalized_equalized_odds_difference(sides),
        "average_predictive_value_difference": lambda sides: tdf.counts.average_predictive_value_difference(sides),
        "true_positive_rate_difference": lambda sides: tdf.true_positive_rate.difference(sides),
        "false_positive_rate_difference": lambda sides: tdf.false_positive_rate.difference(sides),
        "false_negative_rate_difference": lambda sides: tdf.false_negative_rate.difference(sides),
        "false_omission_rate_difference": lambda sides: tdf.false_omission_rate.difference(sides),
        "false_discovery_rate_difference": lambda sides: tdf.false_discovery_rate.difference(sides),
        "error_rate_difference": lambda sides: tdf.error_rate.difference(sides),
        "false_positive_rate_ratio": lambda sides: tdf.false_positive_rate.ratio(sides),
        "false_negative_rate_ratio": lambda sides: tdf.false_negative_rate.ratio(sides),
        "false_omission_rate_ratio": lambda sides: tdf.false_omission_rate.ratio(sides),
        "false_discovery_rate_ratio": lambda sides: tdf.false_discovery_rate.ratio(sides),
        "error_rate_ratio": lambda sides: tdf.error_rate.ratio(sides),
        "generalized_entropy_index": lambda alpha: tdf.metric_tweak(
            tdf.inequality.generalized_entropy_index, "index", alpha=alpha
        ),
        "theil_index": lambda: tdf.inequality.theil_index,
        "coefficient_of_variation": lambda: tdf.inequality.benefit_variation,
        "between_group_generalized_entropy_index": lambda sides, alpha: (
            tdf.inequality.between_group_generalized_entropy_index(sides, alpha=alpha)
        ),
        "between_group_theil_index": lambda sides: tdf.inequality.between_group_theil_index(sides),
        "between_group_coefficient_of_variation": lambda sides: tdf.inequality.between_group_coefficient_of_variation(
            sides
        ),
        "between_all_groups_generalized_entropy_index": lambda attributes, alpha: (
            tdf.inequality.between_group_generalized_entropy_index(*attributes, alpha=alpha)
        ),
        "between_all_groups_theil_index": lambda attributes: tdf.inequality.between_group_theil_index(*attributes),
        "between_all_groups_coefficient_of_variation": lambda attributes: (
            tdf.inequality.between_group_coefficient_of_variation(*attributes)
        ),
        # of the true labels, although there are predictions: leave `estimate` out
        "smoothed_empirical_differential_fairness": lambda attributes, concentration: tdf.differential_fairness(
            *attributes, concentration=concentration
        ),
        "differential_fairness_bias_amplification": lambda attributes, concentration: (
            tdf.distributions.bias_amplification(*attributes, concentration=concentration)
        ),
        # of the true labels: give their column as `estimate`
        "consistency": lambda features, n_neighbors: tdf.inequality.consistency(features, n_neighbors=n_neighbors),
        # the larger `.violation`; attributes as numbers; "FN" is `tdf.miss_rate`, scores `tdf.calibration.balance_for_negative_class`
        "rich_subgroup": lambda attributes, rate: tdf.inference.linear_subgroup(rate, attributes),
    },
    "BinaryLabelDatasetMetric": {
        "base_rate": lambda: tdf.base_rate,
        "disparate_impact": lambda sides: tdf.base_rate.ratio(sides),
        "statistical_parity_difference": lambda sides: tdf.base_rate.difference(sides),
        "mean_difference": lambda sides: tdf.base_rate.difference(sides),
        "smoothed_empirical_differential_fairness": lambda attributes, concentration: tdf.differential_fairness(
            *attributes, concentration=concentration
        ),
        # give the column of labels as `estimate`
        "consistency": lambda features, n_neighbors: tdf.inequality.consistency(features, n_neighbors=n_neighbors),
    },
    # without `y_pred` it means the true labels: give their column as `estimate` too
    "sklearn": {
        "selection_rate": lambda: tdf.selection_rate,
        "base_rate": lambda: tdf.base_rate,
        "smoothed_selection_rate": lambda: tdf.counts.smoothed_selection_rate,
        "smoothed_base_rate": lambda: tdf.counts.smoothed_base_rate,
        "sensitivity_score": lambda: tdf.sensitivity,
        "specificity_score": lambda: tdf.specificity,
        "false_positive_rate_error": lambda: tdf.false_positive_rate,
        "false_negative_rate_error": lambda: tdf.false_negative_rate,
        "false_omission_rate_error": lambda: tdf.false_omission_rate,
        "generalized_fpr": lambda: tdf.calibration.balance_for_negative_class,
        "generalized_fnr": lambda: tdf.counts.generalized_false_negative_rate,
        "difference": lambda metric, sides: tdf.new_groupwise_metric(metric, "gap", tdf.difference())(sides),
        "ratio": lambda metric, sides: tdf.new_groupwise_metric(metric, "gap", tdf.ratio())(sides),
        "statistical_parity_difference": lambda sides: tdf.statistical_parity_difference(sides),
        "mean_difference": lambda sides: tdf.statistical_parity_difference(sides),
        "disparate_impact_ratio": lambda sides: tdf.disparate_impact(sides),
        "equal_opportunity_difference": lambda sides: tdf.equal_opportunity(sides),
        "average_odds_difference": lambda sides: tdf.average_odds_difference(sides),
        "average_odds_error": lambda sides: tdf.average_abs_odds_difference(sides),
        "average_predictive_value_difference": lambda sides: tdf.counts.average_predictive_value_difference(sides),
        "class_imbalance": lambda sides: tdf.counts.class_imbalance(sides),
        # of predictions: give their column as the truth
        "kl_divergence": lambda sides: tdf.distributions.kl_divergence(
            sides, aggregate=pl.col(".estimate").filter(pl.col(".group") == "privileged").first()
        ),
        "conditional_demographic_disparity": lambda attributes: tdf.conditional_demographic_disparity(*attributes),
        "smoothed_edf": lambda attributes, concentration: tdf.differential_fairness(
            *attributes, concentration=concentration
        ),
        "df_bias_amplification": lambda attributes, concentration: tdf.distributions.bias_amplification(
            *attributes, concentration=concentration
        ),
        "generalized_entropy_error": lambda alpha: tdf.metric_tweak(
            tdf.inequality.generalized_entropy_index, "index", alpha=alpha
        ),
        # with `sides`, or with `*attributes` for all groups
        "between_group_generalized_entropy_error": lambda by, alpha: (
            tdf.inequality.between_group_generalized_entropy_index(*by, alpha=alpha)
        ),
        "consistency_score": lambda features, n_neighbors: tdf.inequality.consistency(
            features, n_neighbors=n_neighbors
        ),
        # the values of the groups: `.by_group(…)` instead of a call
        "intersection": lambda metric, attributes: tdf.new_groupwise_metric(metric, "gap", tdf.difference())(
            *attributes
        ),
        "one_vs_rest": lambda groups: tdf.metric_set(
            *(tdf.statistical_parity_difference(tdf.privileged(group)) for group in groups)
        ),
    },
}

"""What AIF360's methods are called here: each row is code, shown on its page and run on AIF360's own numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import polars as pl

import tidyfair as tf

TITLE = "Coming from AIF360"
INTRODUCTION = """\
AIF360 wraps data in classes of its own and gives one number at a time. Here the data stay in your frame, and as many
metrics as you like are one call. A metric is called with the columns; the number is in `.estimate`:

```python
>>> import tidyfair as tf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> sides = tf.privileged({"sex": "male", "race": "White"}, unprivileged=[{"sex": "female", "race": "Black"}])
>>> fair = tf.metric_set(tf.disparate_impact(sides), tf.average_odds_difference(sides), tf.theil_index)
>>> fair(loans, "repaid", "approved", pos_label="yes")[".estimate"].round(4).to_list()
[0.8021, -0.1205, 0.2111]

```

In the rows below `sides` is such a `tf.privileged(privileged_groups, unprivileged=unprivileged_groups)`. `attributes`
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
  groups a signed difference needs a reference, `aggregate=tf.difference(to="…", signed=True)`.
- **No value is no number.** A rate without denominator is null, and so is what is made of it; AIF360 gives 0 for some
  of these and NaN for others. What is divided by 0 is infinite, and `explain=True` says so.
- **Weights** count wherever rows do; AIF360 leaves them out of inequality, consistency and subgroups.
- **Rows on neither side** are left out; AIF360 keeps them in between-group indices, with a benefit of 0.
- **Slips.** A condition with a value that never occurs, a side without rows and rows on both sides are errors."""

ROWS = {
    "ClassificationMetric": {
        "num_instances": lambda: tf.instances,
        "num_positives": lambda: tf.positives,
        "num_negatives": lambda: tf.negatives,
        "num_pred_positives": lambda: tf.predicted_positives,
        "num_pred_negatives": lambda: tf.predicted_negatives,
        "num_true_positives": lambda: tf.true_positives,
        "num_false_positives": lambda: tf.false_positives,
        "num_true_negatives": lambda: tf.true_negatives,
        "num_false_negatives": lambda: tf.false_negatives,
        "power": lambda: tf.power,
        "num_generalized_true_positives": lambda: tf.generalized_true_positives,
        "num_generalized_false_positives": lambda: tf.generalized_false_positives,
        "num_generalized_true_negatives": lambda: tf.generalized_true_negatives,
        "num_generalized_false_negatives": lambda: tf.generalized_false_negatives,
        "binary_confusion_matrix": lambda: tf.metric_set(
            tf.true_positives, tf.false_positives, tf.true_negatives, tf.false_negatives
        ),
        "generalized_binary_confusion_matrix": lambda: tf.metric_set(
            tf.generalized_true_positives,
            tf.generalized_false_positives,
            tf.generalized_true_negatives,
            tf.generalized_false_negatives,
        ),
        "accuracy": lambda: tf.accuracy,
        "error_rate": lambda: tf.error_rate,
        "true_positive_rate": lambda: tf.true_positive_rate,
        "true_negative_rate": lambda: tf.true_negative_rate,
        "false_positive_rate": lambda: tf.false_positive_rate,
        "false_negative_rate": lambda: tf.false_negative_rate,
        "positive_predictive_value": lambda: tf.positive_predictive_value,
        "negative_predictive_value": lambda: tf.negative_predictive_value,
        "false_discovery_rate": lambda: tf.false_discovery_rate,
        "false_omission_rate": lambda: tf.false_omission_rate,
        "precision": lambda: tf.precision,
        "recall": lambda: tf.recall,
        "sensitivity": lambda: tf.sensitivity,
        "specificity": lambda: tf.specificity,
        "selection_rate": lambda: tf.selection_rate,
        "base_rate": lambda: tf.base_rate,
        "generalized_true_positive_rate": lambda: tf.generalized_true_positive_rate,
        "generalized_true_negative_rate": lambda: tf.generalized_true_negative_rate,
        "generalized_false_positive_rate": lambda: tf.generalized_false_positive_rate,
        "generalized_false_negative_rate": lambda: tf.generalized_false_negative_rate,
        "performance_measures": lambda: tf.metric_set(
            tf.true_positive_rate,
            tf.true_negative_rate,
            tf.false_positive_rate,
            tf.false_negative_rate,
            tf.generalized_true_positive_rate,
            tf.generalized_true_negative_rate,
            tf.generalized_false_positive_rate,
            tf.generalized_false_negative_rate,
            tf.positive_predictive_value,
            tf.negative_predictive_value,
            tf.false_discovery_rate,
            tf.false_omission_rate,
            tf.accuracy,
        ),
        "difference": lambda metric, sides: tf.new_groupwise_metric(metric, "gap", tf.difference())(sides),
        "ratio": lambda metric, sides: tf.new_groupwise_metric(metric, "gap", tf.ratio())(sides),
        "statistical_parity_difference": lambda sides: tf.statistical_parity_difference(sides),
        "mean_difference": lambda sides: tf.mean_difference(sides),
        "disparate_impact": lambda sides: tf.disparate_impact(sides),
        "equal_opportunity_difference": lambda sides: tf.equal_opportunity_difference(sides),
        "average_odds_difference": lambda sides: tf.average_odds_difference(sides),
        "average_abs_odds_difference": lambda sides: tf.average_abs_odds_difference(sides),
        "equalized_odds_difference": lambda sides: tf.equalized_odds_difference(sides),
        "generalized_equalized_odds_difference": lambda sides: tf.generalized_equalized_odds_difference(sides),
        "average_predictive_value_difference": lambda sides: tf.average_predictive_value_difference(sides),
        "true_positive_rate_difference": lambda sides: tf.true_positive_rate_difference(sides),
        "false_positive_rate_difference": lambda sides: tf.false_positive_rate_difference(sides),
        "false_negative_rate_difference": lambda sides: tf.false_negative_rate_difference(sides),
        "false_omission_rate_difference": lambda sides: tf.false_omission_rate_difference(sides),
        "false_discovery_rate_difference": lambda sides: tf.false_discovery_rate_difference(sides),
        "error_rate_difference": lambda sides: tf.error_rate_difference(sides),
        "false_positive_rate_ratio": lambda sides: tf.false_positive_rate_ratio(sides),
        "false_negative_rate_ratio": lambda sides: tf.false_negative_rate_ratio(sides),
        "false_omission_rate_ratio": lambda sides: tf.false_omission_rate_ratio(sides),
        "false_discovery_rate_ratio": lambda sides: tf.false_discovery_rate_ratio(sides),
        "error_rate_ratio": lambda sides: tf.error_rate_ratio(sides),
        "generalized_entropy_index": lambda alpha: tf.metric_tweak(tf.generalized_entropy_index, "index", alpha=alpha),
        "theil_index": lambda: tf.theil_index,
        "coefficient_of_variation": lambda: tf.benefit_variation,
        "between_group_generalized_entropy_index": lambda sides, alpha: tf.between_group_generalized_entropy_index(
            sides, alpha=alpha
        ),
        "between_group_theil_index": lambda sides: tf.between_group_theil_index(sides),
        "between_group_coefficient_of_variation": lambda sides: tf.between_group_coefficient_of_variation(sides),
        "between_all_groups_generalized_entropy_index": lambda attributes, alpha: (
            tf.between_group_generalized_entropy_index(*attributes, alpha=alpha)
        ),
        "between_all_groups_theil_index": lambda attributes: tf.between_group_theil_index(*attributes),
        "between_all_groups_coefficient_of_variation": lambda attributes: tf.between_group_coefficient_of_variation(
            *attributes
        ),
        # of the true labels, although there are predictions
        "smoothed_empirical_differential_fairness": lambda attributes, concentration: (
            tf.differential_fairness_of_labels(*attributes, concentration=concentration)
        ),
        "differential_fairness_bias_amplification": lambda attributes, concentration: tf.bias_amplification(
            *attributes, concentration=concentration
        ),
        # of the true labels: give their column as `estimate`
        "consistency": lambda features, n_neighbors: tf.consistency(features, n_neighbors=n_neighbors),
        # the larger `.violation`; attributes as numbers; "FN" is `tf.miss_rate`, scores `tf.generalized_false_positive_rate`
        "rich_subgroup": lambda attributes, rate: tf.linear_subgroup(rate, attributes),
    },
    "BinaryLabelDatasetMetric": {
        "base_rate": lambda: tf.base_rate,
        "disparate_impact": lambda sides: tf.base_rate_ratio(sides),
        "statistical_parity_difference": lambda sides: tf.base_rate_difference(sides),
        "mean_difference": lambda sides: tf.base_rate_difference(sides),
        "smoothed_empirical_differential_fairness": lambda attributes, concentration: (
            tf.differential_fairness_of_labels(*attributes, concentration=concentration)
        ),
        # give the column of labels as `estimate`
        "consistency": lambda features, n_neighbors: tf.consistency(features, n_neighbors=n_neighbors),
    },
    # without `y_pred` it means the true labels: give their column as `estimate` too
    "sklearn": {
        "selection_rate": lambda: tf.selection_rate,
        "base_rate": lambda: tf.base_rate,
        "smoothed_selection_rate": lambda: tf.smoothed_selection_rate,
        "smoothed_base_rate": lambda: tf.smoothed_base_rate,
        "sensitivity_score": lambda: tf.sensitivity,
        "specificity_score": lambda: tf.specificity,
        "false_positive_rate_error": lambda: tf.false_positive_rate,
        "false_negative_rate_error": lambda: tf.false_negative_rate,
        "false_omission_rate_error": lambda: tf.false_omission_rate,
        "generalized_fpr": lambda: tf.generalized_false_positive_rate,
        "generalized_fnr": lambda: tf.generalized_false_negative_rate,
        "difference": lambda metric, sides: tf.new_groupwise_metric(metric, "gap", tf.difference())(sides),
        "ratio": lambda metric, sides: tf.new_groupwise_metric(metric, "gap", tf.ratio())(sides),
        "statistical_parity_difference": lambda sides: tf.statistical_parity_difference(sides),
        "mean_difference": lambda sides: tf.mean_difference(sides),
        "disparate_impact_ratio": lambda sides: tf.disparate_impact(sides),
        "equal_opportunity_difference": lambda sides: tf.equal_opportunity_difference(sides),
        "average_odds_difference": lambda sides: tf.average_odds_difference(sides),
        "average_odds_error": lambda sides: tf.average_abs_odds_difference(sides),
        "average_predictive_value_difference": lambda sides: tf.average_predictive_value_difference(sides),
        "class_imbalance": lambda sides: tf.class_imbalance(sides),
        # of predictions: give their column as the truth
        "kl_divergence": lambda sides: tf.kl_divergence(
            sides, aggregate=pl.col(".estimate").filter(pl.col(".group") == "privileged").first()
        ),
        "conditional_demographic_disparity": lambda attributes: tf.conditional_demographic_disparity(*attributes),
        "smoothed_edf": lambda attributes, concentration: tf.differential_fairness(
            *attributes, concentration=concentration
        ),
        "df_bias_amplification": lambda attributes, concentration: tf.bias_amplification(
            *attributes, concentration=concentration
        ),
        "generalized_entropy_error": lambda alpha: tf.metric_tweak(tf.generalized_entropy_index, "index", alpha=alpha),
        # with `sides`, or with `*attributes` for all groups
        "between_group_generalized_entropy_error": lambda by, alpha: tf.between_group_generalized_entropy_index(
            *by, alpha=alpha
        ),
        "consistency_score": lambda features, n_neighbors: tf.consistency(features, n_neighbors=n_neighbors),
        # the values of the groups: `.by_group(…)` instead of a call
        "intersection": lambda metric, attributes: tf.new_groupwise_metric(metric, "gap", tf.difference())(*attributes),
        "one_vs_rest": lambda groups: tf.metric_set(
            *(tf.statistical_parity_difference(tf.privileged(group)) for group in groups)
        ),
    },
}

"""What holisticai's metrics are called here: each row is code, shown on its page and run on holisticai's own numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tdf

TITLE = "Coming from holisticai"
INTRODUCTION = """\
holisticai takes two masks, `group_a` and `group_b`. Here a column says which group a row is in, and any number of groups
are compared; two sides are `tdf.privileged(…)`, with `group_a` the unprivileged one:

```python
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> sides = tdf.privileged({"sex": "male"}, unprivileged={"sex": "female"})
>>> fair = tdf.metric_set(tdf.statistical_parity_difference(sides), tdf.disparate_impact(sides))
>>> fair(loans, estimate="approved", pos_label="yes")[".estimate"].round(4).to_list()
[0.0111, 1.0209]

```

In the rows below `sides` is such a `tdf.privileged(…)`, `by` a column, and `alpha`, `features` and `n_neighbors` are what
holisticai calls so.

- **Quantiles.** Functions that take `q` look at the rows with the largest predictions: `top_fraction=0.2` of a call
  selects them, and a list of fractions gives a row for each.
- **A rate without denominator** is null; holisticai takes 0 for it.
- **`abroca`** is the area between two ROC curves here; the function of that name in holisticai is the difference of the
  two areas, `tdf.roc_auc.difference(sides)`.
- **`accuracy_matrix`, `precision_matrix` and `recall_matrix`** compute the threat score, sensitivity and precision.
- **`coefficient_of_variation`** is larger by the square root of two there.
- **`avg_score_ratio`** of scores is `tdf.mean_score.ratio(sides)`, with `probs=`; of other numbers, which may be
  negative, it is `scale="ratio"` of `tdf.compare_groups`.
- **Several labels** are compared one by one, `estimator="one_vs_rest"`.
- **Tests.** `z_test_diff` and `z_test_ratio` are the p-values and standard errors of `tdf.compare_groups`, and
  `cohen_d` and `zscore_diff` of scores are `tdf.audits.standardized_differences`."""

ROWS = {
    "Labels": {
        "statistical_parity": lambda sides: tdf.statistical_parity_difference(sides),
        "disparate_impact": lambda sides: tdf.disparate_impact(sides),
        "four_fifths": lambda sides: tdf.selection_rate.ratio(sides, signed=False),
        "equal_opportunity_diff": lambda sides: tdf.equal_opportunity(sides),
        "false_positive_rate_diff": lambda sides: tdf.false_positive_rate.difference(sides),
        "false_negative_rate_diff": lambda sides: tdf.false_negative_rate.difference(sides),
        "true_negative_rate_diff": lambda sides: tdf.true_negative_rate.difference(sides),
        "average_odds_diff": lambda sides: tdf.average_odds_difference(sides),
        "accuracy_diff": lambda sides: tdf.accuracy.difference(sides),
        "abroca": lambda sides: tdf.roc_auc.difference(sides),
    },
    "Numbers": {
        "avg_score_diff": lambda sides: tdf.mean_prediction.difference(sides),
        "rmse_ratio": lambda sides: tdf.rmse.ratio(sides),
        "mae_ratio": lambda sides: tdf.mae.ratio(sides),
    },
    "Individuals": {
        "theil_index": lambda: tdf.inequality.theil_index,
        "coefficient_of_variation": lambda: tdf.inequality.benefit_variation,
        "generalized_entropy_index": lambda alpha: tdf.metric_tweak(
            tdf.inequality.generalized_entropy_index, "entropy", alpha=alpha
        ),
        "consistency_score": lambda features, n_neighbors: tdf.inequality.consistency(
            features, n_neighbors=n_neighbors
        ),
    },
    # Values of each group and label, by `metric.difference(by).by_group(…, estimator="one_vs_rest")`
    "Matrices of several labels": {
        "frequency_matrix": lambda: tdf.selection_rate,
        "accuracy_matrix": lambda: tdf.threat_score,
        "precision_matrix": lambda: tdf.sens,
        "recall_matrix": lambda: tdf.precision,
    },
}

"""What aequitas' tables are called here: each row is code, shown on its page and run on aequitas' own numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tdf

TITLE = "Coming from aequitas"
INTRODUCTION = """\
aequitas has three steps: a crosstab by group, disparities to a reference group, and verdicts. Here each of them is a
metric set, called on your frame; columns keep their names, and labels may be of any type:

```python
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> rates = tdf.metric_set(tdf.selection_rate, tdf.fall_out, tdf.miss_rate)
>>> disparities = tdf.compare_groups(rates, by=["sex", "race"], to="majority", scale="ratio")
>>> table = disparities(loans, "repaid", "approved", pos_label="yes")
>>> table.filter(table["race"] == "Black").select(".metric", ".reference", ".disparity").head(1).rows()
[('selection_rate', 'White', 0.7502008626385109)]
>>> gate = tdf.check(rates.ratio("race", to="majority", signed=False), above=0.8)
>>> gate(loans, "repaid", "approved", pos_label="yes")[".verdict"].to_list()
['not enough evidence', 'fail', 'fail']

```

In the rows below `metric` is a metric or a set, `by` a feature or a list of features, `group` a group, and `tau` the
fairness threshold.

- **Score thresholds**: `threshold=0.5` for values, `top_k=100` for `rank_abs` and `top_fraction=0.25` for `rank_pct`.
  Several at once are a list.
- **Statistical parity** of aequitas, the disparity of `ppr`, is that of `predicted_positives`; its impact parity is
  what others call statistical or demographic parity.
- **Models**: `model_id` is an outer group, `group_by="model_id"`.
- **A rate without denominator** is null, with the reason in `.status`. A disparity whose reference is 0 is infinite;
  aequitas writes 10.
- **Verdicts have three answers.** `check` says `pass` or `fail` where the confidence interval lies on one side of the
  limit, and `not enough evidence` otherwise. The verdict of aequitas is the comparison of `.disparity` with the limits.
- **Significance** is `.p_value` and `.p_adjusted` of `compare_groups`; equal variances are not assumed."""

ROWS = {
    "Group.get_crosstabs": {
        "ppr": lambda: tdf.new_class_metric(lambda selected, overall_selected: (selected, overall_selected), "ppr"),
        "pprev": lambda: tdf.selection_rate,
        "precision": lambda: tdf.precision,
        "fdr": lambda: tdf.false_discovery_rate,
        "for": lambda: tdf.false_omission_rate,
        "fpr": lambda: tdf.fall_out,
        "fnr": lambda: tdf.miss_rate,
        "tpr": lambda: tdf.sens,
        "tnr": lambda: tdf.spec,
        "npv": lambda: tdf.negative_predictive_value,
        "accuracy": lambda: tdf.accuracy,
        "prev": lambda: tdf.base_rate,
        "pp": lambda: tdf.counts.predicted_positives,
        "pn": lambda: tdf.counts.predicted_negatives,
        "fp": lambda: tdf.counts.false_positives,
        "fn": lambda: tdf.counts.false_negatives,
        "tn": lambda: tdf.counts.true_negatives,
        "tp": lambda: tdf.counts.true_positives,
        "group_label_pos": lambda: tdf.counts.positives,
        "group_label_neg": lambda: tdf.counts.negatives,
        "group_size": lambda: tdf.counts.instances,
    },
    "Bias": {
        "get_disparity_predefined_groups": lambda metric, by, group: tdf.compare_groups(
            metric, by=by, to=group, scale="ratio"
        ),
        "get_disparity_major_group": lambda metric, by: tdf.compare_groups(metric, by=by, to="majority", scale="ratio"),
        # `group` is `.group_min` of `metric.difference(by)`, called with `explain=True`
        "get_disparity_min_metric": lambda metric, by, group: tdf.compare_groups(
            metric, by=by, to=group, scale="ratio"
        ),
    },
    "Fairness": {
        # filter the result by `.disparity`
        "get_group_value_fairness": lambda metric, by, group: tdf.compare_groups(
            metric, by=by, to=group, scale="ratio"
        ),
        # an unsigned ratio, min(q, 1/q), so that one limit serves both sides
        "get_group_attribute_fairness": lambda metric, by, group, tau: tdf.check(
            metric.ratio(by, to=group, signed=False), above=tau
        ),
    },
}

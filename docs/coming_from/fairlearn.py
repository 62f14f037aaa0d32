"""What fairlearn's metrics are called here: each row is code, shown on its page and run on fairlearn's numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tdf

TITLE = "Coming from fairlearn"
INTRODUCTION = """\
A `MetricFrame` is a call here: what it holds in attributes comes as rows of one tidy frame, for any number of metrics,
features and folds. `by_group` has a row for each group, and `.difference()`, `.ratio()`, `.group_minimum()` and
`.group_maximum()` of a set have a row for each metric:

```python
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> rates = tdf.metric_set(tdf.selection_rate, tdf.recall)
>>> gaps = rates.difference("sex")
>>> gaps(loans, "repaid", "approved", pos_label="yes", explain=True).select(".metric", ".estimate", ".group_min").rows()
[('selection_rate_difference', 0.011094593013980969, 'male'), ('recall_difference', 0.01644200909131821, 'female')]
>>> gaps.by_group(loans, "repaid", "approved", pos_label="yes").select(".metric", "sex", ".n").rows()
[('selection_rate', 'female', 2517), ('selection_rate', 'male', 2483), ('recall', 'female', 2517), ('recall', 'male', 2483)]

```

In the rows below `metric` is a metric or a metric set. `by` are the sensitive features; `to` and `across`
are `None` and `"worst"` unless said otherwise: `method="to_overall"` is `to="overall"`, `agg="mean"` is
`across="mean"`. Control features are outer groups, `group_by=`. The count of rows is `.n` of `by_group`.

- **A rate without denominator** is null and left out, with a warning that names the group; fairlearn takes 0 for it, and
  a group without positives then drives the difference.
- **Combinations that do not occur** have no rows; fairlearn has NaN for them.
- **Missing sensitive features** are counted apart, and the other groups are compared; fairlearn refuses them.
  `unknown="group"` makes them a group of their own.
- **Derived functions**, such as `false_positive_rate_difference` and `accuracy_score_group_min`, are
  `tdf.fall_out.difference(*by)` and `tdf.accuracy.group_minimum(*by)`.
- **Text labels** need `pos_label=`; numbers that are no labels are refused instead of compared with 1.
- **Metrics of rankings**, such as `tdf.rankings.exposure("query")`, rank within each group if they are called with `group_by=`:
  their values by group are those of `metric.difference(*by).by_group`.
- **Weights**, `sample_params={"sample_weight": w}`, are a column of the frame, `case_weights="w"`, for all metrics of the
  call.
- **Intervals**, `n_boot=` and `ci_quantiles=[0.025, 0.975]`, are `interval="auto", conf_level=0.95`: closed forms or the
  jackknife where there are any, and for disparities too. `interval="bootstrap", times=1000` draws rows again.
- **Names of metrics**, the keys of `metrics={"acc": accuracy_score}`, are those of the metrics; another one is
  `tdf.accuracy.alias("acc")`, and of a metric that compares groups `name="gap"`.
- **Functions of scikit-learn** have names here: `accuracy_score` is `tdf.accuracy`, and
  [names in other libraries](../metrics/names.md) lists the others. Any other function of two arrays becomes a metric
  with `tdf.new_class_metric`, `tdf.new_prob_metric` or `tdf.new_numeric_metric`
  ([how](../how-to/own-metric.md#from-any-function-of-two-arrays)).
- **Mitigation** (`ThresholdOptimizer`, `ExponentiatedGradient` …) is not part of tidyfair: keep fairlearn for it, and
  measure its predictions here. [A threshold for each group](../how-to/call.md#set-a-threshold-also-one-for-each-group) is applied, but not chosen."""

ROWS = {
    "MetricFrame": {
        "overall": lambda metric: metric,
        # called with `group_by=by`: a row for each group; not for rankings, see above
        "by_group": lambda metric: metric,
        "difference": lambda metric, by, to: metric.difference(*by, to=to),
        "ratio": lambda metric, by, to: metric.ratio(*by, to=to),
        "group_min": lambda metric, by: metric.group_minimum(*by),
        "group_max": lambda metric, by: metric.group_maximum(*by),
    },
    "functions": {
        "demographic_parity_difference": lambda by, to, across: tdf.demographic_parity(
            *by, aggregate=tdf.difference(to=to, across=across)
        ),
        "demographic_parity_ratio": lambda by, to, across: tdf.demographic_parity_ratio(
            *by, aggregate=tdf.ratio(to=to, across=across)
        ),
        "equal_opportunity_difference": lambda by, to, across: tdf.equal_opportunity(
            *by, aggregate=tdf.difference(to=to, across=across)
        ),
        "equal_opportunity_ratio": lambda by, to, across: tdf.equal_opportunity_ratio(
            *by, aggregate=tdf.ratio(to=to, across=across)
        ),
        "equalized_odds_difference": lambda by, to, across: tdf.equalized_odds(
            *by, aggregate=tdf.difference(to=to, across=across)
        ),
        "equalized_odds_ratio": lambda by, to, across: tdf.equalized_odds_ratio(
            *by, aggregate=tdf.ratio(to=to, across=across)
        ),
    },
}

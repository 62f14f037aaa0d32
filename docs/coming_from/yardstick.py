"""What yardstick's metrics are called here: each row is code, shown on its page and run on yardstick's numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tdf

TITLE = "Coming from yardstick"
INTRODUCTION = """\
tidyfair is in yardstick's style: metrics are functions of frames, `metric_set()` combines them, `new_groupwise_metric()`
makes fairness metrics, grouped frames give a row for each group, and results have `.metric`, `.estimator`, `.estimate`.
The metrics keep yardstick's names:

```python
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> fair = tdf.metric_set(tdf.accuracy, tdf.kap, tdf.demographic_parity("sex"), tdf.equal_opportunity("race"))
>>> fair(loans.group_by("fold"), "repaid", "approved", pos_label="yes").columns
['fold', '.metric', '.by', '.estimator', '.estimate']

```

In the rows below `by` is the column that groups are compared by.

- **The event** is `pos_label=`, never the first level: where labels do not say it themselves, the call raises.
- **A group without a value** is left out of a disparity, with a warning that names it; `on_undefined="null"` is
  yardstick's rule, which makes the disparity missing.
- **More than two labels**: `estimator=` says `"macro"`, `"macro_weighted"` or `"micro"`, as there. Demographic parity
  compares label by label unless asked otherwise, because its macro average is the same in every group.
- **Several columns** make intersections, `tdf.equal_opportunity("sex", "race")`; differences may be between groups, to the
  whole, to the rest or to one group, and ratios beside them.
- **Options** are fixed by `metric_tweak(f_meas, "f2", beta=2)`, as there. Weights of the Brier score are proportional."""

ROWS = {
    "Metrics of labels": {
        "accuracy": lambda: tdf.accuracy,
        "bal_accuracy": lambda: tdf.bal_accuracy,
        "detection_prevalence": lambda: tdf.detection_prevalence,
        "f_meas": lambda: tdf.f_meas,
        "fall_out": lambda: tdf.fall_out,
        "j_index": lambda: tdf.j_index,
        "kap": lambda: tdf.kap,
        "markedness": lambda: tdf.markedness,
        "mcc": lambda: tdf.mcc,
        "miss_rate": lambda: tdf.miss_rate,
        "npv": lambda: tdf.npv,
        "ppv": lambda: tdf.ppv,
        "precision": lambda: tdf.precision,
        "recall": lambda: tdf.recall,
        "roc_dist": lambda: tdf.roc_dist,
        "sedi": lambda: tdf.sedi,
        "sens": lambda: tdf.sens,
        "spec": lambda: tdf.spec,
    },
    "Metrics of scores": {
        "average_precision": lambda: tdf.average_precision,
        "brier_class": lambda: tdf.brier_class,
        "classification_cost": lambda costs: tdf.metric_tweak(tdf.classification_cost, "cost", costs=costs),
        "gain_capture": lambda: tdf.gain_capture,
        "mn_log_loss": lambda: tdf.mn_log_loss,
        "pr_auc": lambda: tdf.pr_auc,
        "ranked_prob_score": lambda: tdf.ranked_prob_score,
        "roc_auc": lambda: tdf.roc_auc,
        "roc_aunp": lambda: tdf.roc_aunp,
        "roc_aunu": lambda: tdf.roc_aunu,
    },
    "Metrics of numbers": {
        "ccc": lambda: tdf.ccc,
        "gini_coef": lambda: tdf.gini_coef,
        "huber_loss": lambda: tdf.huber_loss,
        "huber_loss_pseudo": lambda: tdf.huber_loss_pseudo,
        "iic": lambda: tdf.iic,
        "mae": lambda: tdf.mae,
        "mape": lambda: tdf.mape,
        "mase": lambda: tdf.mase,
        "mpe": lambda: tdf.mpe,
        "msd": lambda: tdf.msd,
        "mse": lambda: tdf.mse,
        "poisson_log_loss": lambda: tdf.poisson_log_loss,
        "rmse": lambda: tdf.rmse,
        "rmse_relative": lambda: tdf.rmse_relative,
        "rpd": lambda: tdf.rpd,
        "rpiq": lambda: tdf.rpiq,
        "rsq": lambda: tdf.rsq,
        "rsq_trad": lambda: tdf.rsq_trad,
        "smape": lambda: tdf.smape,
    },
    # the truth is `tdf.survival.outcome("time", "event")`; `probs={365: "survival_at_365"}` are the survival probabilities
    "Metrics of survival": {
        "brier_survival": lambda: tdf.survival.brier,
        "brier_survival_integrated": lambda: tdf.survival.brier_integrated,
        "concordance_survival": lambda: tdf.survival.concordance,
        "roc_auc_survival": lambda: tdf.survival.roc_auc,
        # parsnip's censoring weights, from the training data
        ".censoring_weights_graf": lambda train, time, event: tdf.survival.outcome(
            time, event, censoring=tdf.survival.censoring_distribution(train, tdf.survival.outcome(time, event))
        ),
    },
    # the estimate is a mapping from levels to columns, `{0.1: "q10", 0.5: "q50", 0.9: "q90"}`
    "Metrics of quantiles": {
        "weighted_interval_score": lambda: tdf.prediction_intervals.weighted_interval_score,
    },
    "Fairness": {
        "accuracy_difference": lambda by: tdf.accuracy.difference(by),
        "brier_difference": lambda by: tdf.new_groupwise_metric(tdf.brier_class, "brier_difference", tdf.difference())(
            by
        ),
        "demographic_parity": lambda by: tdf.demographic_parity(by),
        "demographic_parity_ratio": lambda by: tdf.new_groupwise_metric(
            tdf.detection_prevalence, "demographic_parity_ratio", tdf.ratio()
        )(by),
        "equal_opportunity": lambda by: tdf.equal_opportunity(by),
        "equalized_odds": lambda by: tdf.equalized_odds(by),
        "fpr_difference": lambda by: tdf.new_groupwise_metric(tdf.fall_out, "fpr_difference", tdf.difference())(by),
        "rmse_difference": lambda by: tdf.new_groupwise_metric(tdf.rmse, "rmse_difference", tdf.difference())(by),
        "roc_auc_difference": lambda by: tdf.new_groupwise_metric(tdf.roc_auc, "roc_auc_difference", tdf.difference())(
            by
        ),
    },
    # `data` is a frame, `truth`, `estimate` and `probs` are names of columns
    "Around metrics": {
        "metrics": lambda data, truth, estimate: tdf.default_metrics(data, truth, estimate),
        # with vectors in place of a frame
        "accuracy_vec": lambda truth, estimate: tdf.accuracy.arrays(truth, estimate),
        "conf_mat": lambda data, truth, estimate: tdf.conf_mat(data, truth, estimate),
        # the metrics that yardstick computes from a confusion matrix
        "summary.conf_mat": lambda data, truth, estimate: tdf.metric_set(
            tdf.accuracy,
            tdf.kap,
            tdf.sens,
            tdf.spec,
            tdf.ppv,
            tdf.npv,
            tdf.mcc,
            tdf.j_index,
            tdf.bal_accuracy,
            tdf.detection_prevalence,
            tdf.precision,
            tdf.recall,
            tdf.f_meas,
        )(data, truth, estimate),
        "roc_curve": lambda data, truth, probs: tdf.roc_curve(data, truth, probs=probs),
        "pr_curve": lambda data, truth, probs: tdf.pr_curve(data, truth, probs=probs),
        "gain_curve": lambda data, truth, probs: tdf.gain_curve(data, truth, probs=probs),
        "lift_curve": lambda data, truth, probs: tdf.lift_curve(data, truth, probs=probs),
        # also of the results of metrics, of groups, and of tests
        "autoplot": lambda result: tdf.autoplot(result),
        "metric_tweak": lambda metric, name, options: tdf.metric_tweak(metric, name, **options),
        "new_class_metric": lambda function, name: tdf.new_class_metric(function, name),
        "new_prob_metric": lambda function, name: tdf.new_prob_metric(function, name),
        "new_numeric_metric": lambda function, name: tdf.new_numeric_metric(function, name),
        "new_groupwise_metric": lambda metric, name, aggregate: tdf.new_groupwise_metric(metric, name, aggregate),
    },
}

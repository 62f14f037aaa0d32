"""What yardstick's metrics are called here: each row is code, shown on its page and run on yardstick's numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tf

TITLE = "Coming from yardstick"
INTRODUCTION = """\
tidyfair is in yardstick's style: metrics are functions of frames, `metric_set()` combines them, `new_groupwise_metric()`
makes fairness metrics, grouped frames give a row for each group, and results have `.metric`, `.estimator`, `.estimate`.
The metrics keep yardstick's names:

```python
>>> import tidyfair as tf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> fair = tf.metric_set(tf.accuracy, tf.kap, tf.demographic_parity("sex"), tf.equal_opportunity("race"))
>>> fair(loans.group_by("fold"), "repaid", "approved", pos_label="yes").columns
['fold', '.metric', '.by', '.estimator', '.estimate']

```

In the rows below `by` is the column that groups are compared by.

- **The event** is `pos_label=`, never the first level: where labels do not say it themselves, the call raises.
- **A group without a value** is left out of a disparity, with a warning that names it; `on_undefined="null"` is
  yardstick's rule, which makes the disparity missing.
- **More than two labels**: `estimator=` says `"macro"`, `"macro_weighted"` or `"micro"`, as there. Demographic parity
  compares label by label unless asked otherwise, because its macro average is the same in every group.
- **Several columns** make intersections, `tf.equal_opportunity("sex", "race")`; differences may be between groups, to the
  whole, to the rest or to one group, and ratios beside them.
- **Options** are fixed by `metric_tweak(f_meas, "f2", beta=2)`, as there. Weights of the Brier score are proportional."""

ROWS = {
    "Metrics of labels": {
        "accuracy": lambda: tf.accuracy,
        "bal_accuracy": lambda: tf.bal_accuracy,
        "detection_prevalence": lambda: tf.detection_prevalence,
        "f_meas": lambda: tf.f_meas,
        "fall_out": lambda: tf.fall_out,
        "j_index": lambda: tf.j_index,
        "kap": lambda: tf.kap,
        "markedness": lambda: tf.markedness,
        "mcc": lambda: tf.mcc,
        "miss_rate": lambda: tf.miss_rate,
        "npv": lambda: tf.npv,
        "ppv": lambda: tf.ppv,
        "precision": lambda: tf.precision,
        "recall": lambda: tf.recall,
        "roc_dist": lambda: tf.roc_dist,
        "sedi": lambda: tf.sedi,
        "sens": lambda: tf.sens,
        "spec": lambda: tf.spec,
    },
    "Metrics of scores": {
        "average_precision": lambda: tf.average_precision,
        "brier_class": lambda: tf.brier_class,
        "gain_capture": lambda: tf.gain_capture,
        "mn_log_loss": lambda: tf.mn_log_loss,
        "pr_auc": lambda: tf.pr_auc,
        "roc_auc": lambda: tf.roc_auc,
    },
    "Metrics of numbers": {
        "ccc": lambda: tf.ccc,
        "gini_coef": lambda: tf.gini_coef,
        "huber_loss": lambda: tf.huber_loss,
        "huber_loss_pseudo": lambda: tf.huber_loss_pseudo,
        "iic": lambda: tf.iic,
        "mae": lambda: tf.mae,
        "mape": lambda: tf.mape,
        "mpe": lambda: tf.mpe,
        "msd": lambda: tf.msd,
        "mse": lambda: tf.mse,
        "rmse": lambda: tf.rmse,
        "rmse_relative": lambda: tf.rmse_relative,
        "rpd": lambda: tf.rpd,
        "rpiq": lambda: tf.rpiq,
        "rsq": lambda: tf.rsq,
        "rsq_trad": lambda: tf.rsq_trad,
        "smape": lambda: tf.smape,
    },
    "Fairness": {
        "accuracy_difference": lambda by: tf.accuracy_difference(by),
        "brier_difference": lambda by: tf.new_groupwise_metric(tf.brier_class, "brier_difference", tf.difference())(by),
        "demographic_parity": lambda by: tf.demographic_parity(by),
        "demographic_parity_ratio": lambda by: tf.new_groupwise_metric(
            tf.detection_prevalence, "demographic_parity_ratio", tf.ratio()
        )(by),
        "equal_opportunity": lambda by: tf.equal_opportunity(by),
        "equalized_odds": lambda by: tf.equalized_odds(by),
        "fpr_difference": lambda by: tf.new_groupwise_metric(tf.fall_out, "fpr_difference", tf.difference())(by),
        "rmse_difference": lambda by: tf.new_groupwise_metric(tf.rmse, "rmse_difference", tf.difference())(by),
        "roc_auc_difference": lambda by: tf.new_groupwise_metric(tf.roc_auc, "roc_auc_difference", tf.difference())(by),
    },
}

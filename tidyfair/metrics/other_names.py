"""Names that other libraries have for the metrics here, and the way from such a name to ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidyfair.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Collection

__all__: list[str] = []

OTHER_NAMES = {
    "MetricFrame": "metric_set",
    "accuracy_score": "accuracy",
    "auc_roc": "roc_auc",
    "average_precision_score": "average_precision",
    "balanced_accuracy": "bal_accuracy",
    "balanced_accuracy_score": "bal_accuracy",
    "brier_score": "brier_class",
    "brier_score_loss": "brier_class",
    "cohen_kappa": "kap",
    "cohen_kappa_score": "kap",
    "concordance_correlation": "ccc",
    "confusion_matrix": "conf_mat",
    "consistency_score": "consistency",
    "critical_success_index": "threat_score",
    "demographic_parity_difference": "demographic_parity",
    "ece": "expected_calibration_error",
    "equal_opportunity_difference": "equal_opportunity",
    "equalized_odds_difference": "equalized_odds",
    "f1": "f_meas",
    "f1_score": "f_meas",
    "generalized_false_positive_rate": "balance_for_negative_class",
    "generalized_true_positive_rate": "balance_for_positive_class",
    "hit_rate": "sens",
    "informedness": "j_index",
    "log_loss": "mn_log_loss",
    "matthews_corrcoef": "mcc",
    "mean_absolute_error": "mae",
    "mean_absolute_percentage_error": "mape",
    "mean_difference": "statistical_parity_difference",
    "mean_pinball_loss": "pinball_loss",
    "mean_squared_error": "mse",
    "num_false_negatives": "false_negatives",
    "num_false_positives": "false_positives",
    "num_instances": "instances",
    "num_true_negatives": "true_negatives",
    "num_true_positives": "true_positives",
    "power": "true_positives",
    "precision_score": "precision",
    "r2_score": "rsq_trad",
    "recall_score": "recall",
    "roc_auc_score": "roc_auc",
    "root_mean_squared_error": "rmse",
    "smoothed_empirical_differential_fairness": "differential_fairness",
    "youden_index": "j_index",
    "zero_one_loss": "error_rate",
}
"""Our name of what other libraries call otherwise."""
_COMPARED = re.compile(r"(?P<metric>\w+)_(?P<way>difference|ratio|group_minimum|group_maximum|group_min|group_max)")
_WAYS = {"group_min": "group_minimum", "group_max": "group_maximum"}


def expression_for(name: str, known: Collection[str]) -> str | None:
    """The expression to write for a name that is not among the `known` ones; None where there is none.

    >>> expression_for("accuracy_score_difference", {"accuracy"})
    'accuracy.difference("column")'
    """
    ours = OTHER_NAMES.get(name, name)
    if ours in known:
        return ours
    compared = _COMPARED.fullmatch(name)
    if compared is None:
        return None
    metric = OTHER_NAMES.get(compared["metric"], compared["metric"])
    way = _WAYS.get(compared["way"], compared["way"])
    return f'{metric}.{way}("column")' if metric in known else None


def way_out(name: str, known: Collection[str]) -> str:
    """The end of a message about a name that is not at the top of the library: the one to write."""
    expression = expression_for(name, known)
    return f": write {expression}" if expression else f".{nearest(name, known)}"

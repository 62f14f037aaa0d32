"""Names of metrics in other libraries, and their equivalents here."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Never

from tidyfair.errors import nearest

OTHER_NAMES = {
    "acc": "accuracy",
    "accuracy_score": "accuracy",
    "adverse_impact_ratio": "disparate_impact",
    "auc": "roc_auc",
    "AUC": "roc_auc",
    "auc_roc": "roc_auc",
    "auroc": "roc_auc",
    "average_precision_score": "average_precision",
    "balanced_accuracy": "bal_accuracy",
    "balanced_accuracy_score": "bal_accuracy",
    "brier_score": "brier_class",
    "brier_score_loss": "brier_class",
    "cohen_kappa": "kap",
    "cumulative_dynamic_auc": "roc_auc_survival",
    "cohen_kappa_score": "kap",
    "c_index": "concordance_survival",
    "concordance_correlation": "ccc",
    "concordance_index": "concordance_survival",
    "concordance_index_censored": "concordance_survival",
    "concordance_index_ipcw": "concordance_survival_uno",
    "confusion_matrix": "conf_mat",
    "consistency_score": "consistency",
    "count": "instances",
    "critical_success_index": "threat_score",
    "demographic_parity_difference": "demographic_parity",
    "ece": "expected_calibration_error",
    "equal_opportunity_difference": "equal_opportunity",
    "equalized_odds_difference": "equalized_odds",
    "f1": "f_meas",
    "f1_score": "f_meas",
    "fbeta_score": "f_meas",
    "fdr": "false_discovery_rate",
    "fleiss_kappa": "fleiss_kap",
    "fnr": "false_negative_rate",
    "fpr": "false_positive_rate",
    "generalized_false_positive_rate": "balance_for_negative_class",
    "generalized_true_positive_rate": "balance_for_positive_class",
    "group_max": "group_maximum",
    "group_min": "group_minimum",
    "hamming_loss": "error_rate",
    "hit_rate": "sens",
    "informedness": "j_index",
    "integrated_brier_score": "brier_survival_integrated",
    "jaccard_score": "threat_score",
    "kuiper_calibration_error": "cumulative_calibration_error",
    "log_loss": "mn_log_loss",
    "make_derived_metric": "new_groupwise_metric",
    "matthews_corrcoef": "mcc",
    "mean_absolute_error": "mae",
    "model_frontier": "compare_models",
    "mean_absolute_percentage_error": "mape",
    "mean_difference": "statistical_parity_difference",
    "mean_pinball_loss": "pinball_loss",
    "mean_squared_error": "mse",
    "MetricFrame": "metric_set",
    "ndcg_score": "ndcg",
    "num_false_negatives": "false_negatives",
    "num_false_positives": "false_positives",
    "num_instances": "instances",
    "num_true_negatives": "true_negatives",
    "num_true_positives": "true_positives",
    "permutation_test": "disparity_test",
    "power": "true_positives",
    "precision_recall_curve": "pr_curve",
    "precision_score": "precision",
    "r2": "rsq_trad",
    "r2_score": "rsq_trad",
    "recall_score": "recall",
    "roc_auc_score": "roc_auc",
    "root_mean_squared_error": "rmse",
    "smoothed_empirical_differential_fairness": "differential_fairness",
    "tnr": "true_negative_rate",
    "tpr": "true_positive_rate",
    "worst_group": "worst_groups",
    "youden_index": "j_index",
    "zero_one_loss": "error_rate",
}
"""The names of other libraries, with ours."""
_COMPARED = re.compile(
    r"(?P<metric>\w+)_(?P<way>difference|diff|ratio|group_minimum|group_maximum|group_min|group_max)"
)
_NAME = re.compile(r"\w+")
_WAYS = {"diff": "difference", "group_min": "group_minimum", "group_max": "group_maximum"}


def expression_for(name: str, metrics: Collection[str], others: Collection[str] = ()) -> str | None:
    """The expression to write for a name of another library, or None.

    `metrics` have their own comparisons; `others` are all other names, such as those of fairness metrics.

    >>> expression_for("accuracy_score_difference", {"accuracy"})
    'accuracy.difference("column")'
    >>> expression_for("predictive_parity_ratio", {"precision"}, {"predictive_parity"})
    'predictive_parity("column", aggregate=ratio())'
    """
    ours = OTHER_NAMES.get(name, name)
    if ours in metrics or ours in others:
        return ours
    compared = _COMPARED.fullmatch(name.replace(".", "_"))
    if compared is None:
        return None
    base = OTHER_NAMES.get(compared["metric"], compared["metric"])
    way = _WAYS.get(compared["way"], compared["way"])
    if base in metrics:
        return f'{base}.{way}("column")'
    # a fairness metric, which compares groups already
    return f'{base}("column", aggregate={way}())' if base in others and base.islower() else None


@cache
def places() -> dict[str, str]:
    """Where the public names are, below `tidyfair`; those that are shorter in their family by the longer name.

    >>> places()["accuracy"], places()["concordance_survival"]
    ('accuracy', 'survival.concordance')
    """
    top = import_module("tidyfair")
    found = {name: name for name in (*top.__all__, *vars(top)["_MODULE_OF_ALIAS"])}
    for family in vars(top)["_FAMILIES"]:
        module = import_module(f"tidyfair.{family}")
        for name in dir(module):
            if not name[0].isalpha():  # a private name, or one that pytest adds
                continue
            value = getattr(module, name)
            found.setdefault(getattr(value, "name", None) or getattr(value, "__name__", name), f"{family}.{name}")
    return found


def way_out(name: str) -> str:
    """The end of a message about a name that does not exist in Python: the name to write instead."""
    catalog = import_module("tidyfair.metrics.catalog")
    known = places()
    in_families = {place.rpartition(".")[2]: place for place in known.values()} | known
    if name in in_families:
        return f": write tidyfair.{in_families[name]}"
    expression = expression_for(name, catalog.names_of_metrics(), known)
    if expression is None:
        return f".{nearest(name, known)}"
    return f": write {_NAME.sub(lambda match: known[match[0]], expression, count=1)}"


def missing(package: str, name: str, way_out: str) -> AttributeError | ImportError:
    """The error for a name that a package does not have, to be raised by its `__getattr__`.

    `from package import name` shows the text of an `ImportError` only: an `AttributeError` becomes one of its own.
    """
    own = inspect.currentframe()
    asking = own.f_back.f_back if own and own.f_back else None
    is_import = asking is not None and asking.f_code.co_name == "_handle_fromlist"
    if is_import and find_spec(f"{package}.{name}") is None:
        return ImportError(f"cannot import name {name!r} from {package!r}{way_out}", name=package)
    return AttributeError(f"module {package!r} has no attribute {name!r}{way_out}")


def suggestions(package: str) -> Any:
    """The `__getattr__` of a family of names: the error for one that it does not have, with what to write."""

    def refuse(name: str) -> Never:
        near = nearest(name, dir(sys.modules[package]))
        raise missing(package, name, "" if name.startswith("_") else f".{near}" if near else way_out(name))

    return refuse

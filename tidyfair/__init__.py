"""Tidy metric sets and fairness metrics on dataframes.

How good is a model, for whom, how much do groups differ, and how certain is that? Metrics of labels, scores,
numbers, survival times and prediction intervals, their comparisons between groups, and sets of them are all called in
the same way, on a polars, pandas or pyarrow frame (or one of DuckDB, Spark, Dask, Ibis), and return a tidy frame with a
row for each metric.

>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> fair = tdf.metric_set(tdf.accuracy, tdf.demographic_parity("sex"), tdf.sens.difference("race"))
>>> fair(lending(), "repaid", "approved", pos_label="yes").select(".metric", ".by", ".estimate").row(0)
('accuracy', None, 0.6926)

help(tdf.accuracy) has the meaning of a metric, and its call with all keywords, which are the same for every metric;
fair.by_group(data, …) gives the values of groups, and fair(data, …, interval="auto") confidence intervals;
tdf.accuracy.difference("sex"), .ratio, .group_minimum and .group_maximum compare any metric between groups;
tdf.catalogue() lists all metrics with their range, formula, aliases and names in other libraries.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidyfair import (
        abstention as abstention, aggregates as aggregates, annotators as annotators, audits as audits,
        calibration as calibration, counts as counts, datasets as datasets, decision_curves as decision_curves,
        distributions as distributions, errors as errors, inequality as inequality, inference as inference,
        prediction_intervals as prediction_intervals, rankings as rankings, scorers as scorers, surveys as surveys,
        survival as survival, types as types,
    )  # fmt: skip
    from tidyfair.audits.filing import audit as audit
    from tidyfair.audits.reference_tables import compare_groups as compare_groups
    from tidyfair.calling.metric_sets import metric_set as metric_set, metric_tweak as metric_tweak
    from tidyfair.calling.streaming import (
        Accumulator as Accumulator, load_state as load_state, save_state as save_state,
    )  # fmt: skip
    from tidyfair.inference.gates.checks import assert_fair as assert_fair, check as check, four_fifths as four_fifths
    from tidyfair.inference.models.model_comparison import compare_models as compare_models
    from tidyfair.metrics.catalog import catalogue as catalogue, get_metrics as get_metrics
    from tidyfair.metrics.classification import (
        accuracy as accuracy, bal_accuracy as bal_accuracy, base_rate as base_rate,
        detection_prevalence as detection_prevalence, diagnostic_odds_ratio as diagnostic_odds_ratio,
        error_rate as error_rate, f_meas as f_meas, fall_out as fall_out, false_discovery_rate as false_discovery_rate,
        false_negative_rate as false_negative_rate, false_omission_rate as false_omission_rate,
        false_positive_rate as false_positive_rate, j_index as j_index, kap as kap, lift as lift,
        markedness as markedness, mcc as mcc, miss_rate as miss_rate,
        negative_likelihood_ratio as negative_likelihood_ratio, negative_predictive_value as negative_predictive_value,
        net_benefit as net_benefit, npv as npv, positive_likelihood_ratio as positive_likelihood_ratio,
        positive_predictive_value as positive_predictive_value, ppv as ppv, precision as precision,
        prevalence as prevalence, recall as recall, roc_dist as roc_dist, sedi as sedi,
        selection_rate as selection_rate, sens as sens, sensitivity as sensitivity, spec as spec,
        specificity as specificity, threat_score as threat_score,
        true_negative_rate as true_negative_rate, true_positive_rate as true_positive_rate,
    )  # fmt: skip
    from tidyfair.metrics.confusion import conf_mat as conf_mat, conf_mat_summary as conf_mat_summary
    from tidyfair.metrics.curves import (
        gain_curve as gain_curve, lift_curve as lift_curve, pr_curve as pr_curve, roc_curve as roc_curve,
        threshold_curve as threshold_curve,
    )  # fmt: skip
    from tidyfair.metrics.defaults import default_metrics as default_metrics
    from tidyfair.metrics.define import (
        class_metric as class_metric, new_class_metric as new_class_metric, new_numeric_metric as new_numeric_metric,
        new_prob_metric as new_prob_metric, numeric_metric as numeric_metric, prob_metric as prob_metric,
    )  # fmt: skip
    from tidyfair.metrics.fairness import (
        abroca as abroca, auc_parity as auc_parity, average_abs_odds_difference as average_abs_odds_difference,
        average_odds_difference as average_odds_difference,
        conditional_demographic_disparity as conditional_demographic_disparity,
        conditional_use_accuracy_equality as conditional_use_accuracy_equality,
        demographic_parity as demographic_parity, demographic_parity_ratio as demographic_parity_ratio,
        differential_fairness as differential_fairness, disparate_impact as disparate_impact,
        equal_opportunity as equal_opportunity, equal_opportunity_ratio as equal_opportunity_ratio,
        equalized_odds as equalized_odds, equalized_odds_ratio as equalized_odds_ratio, independence as independence,
        new_groupwise_metric as new_groupwise_metric, overall_accuracy_equality as overall_accuracy_equality,
        predictive_equality as predictive_equality, predictive_parity as predictive_parity, separation as separation,
        statistical_parity_difference as statistical_parity_difference, sufficiency as sufficiency,
        treatment_equality as treatment_equality,
    )  # fmt: skip
    from tidyfair.metrics.operating_points import operating_point as operating_point
    from tidyfair.metrics.probability import (
        average_precision as average_precision, brier_class as brier_class, classification_cost as classification_cost,
        gain_capture as gain_capture, mean_score as mean_score, mn_log_loss as mn_log_loss, pr_auc as pr_auc,
        ranked_prob_score as ranked_prob_score, roc_auc as roc_auc, roc_aunp as roc_aunp, roc_aunu as roc_aunu,
    )  # fmt: skip
    from tidyfair.metrics.regression import (
        ccc as ccc, gini_coef as gini_coef, huber_loss as huber_loss, huber_loss_pseudo as huber_loss_pseudo,
        iic as iic, mae as mae, mape as mape, mase as mase, mean_prediction as mean_prediction,
        mean_truth as mean_truth, median_absolute_error as median_absolute_error, mpe as mpe, msd as msd, mse as mse,
        poisson_log_loss as poisson_log_loss, residual_bias as residual_bias, rmse as rmse,
        rmse_relative as rmse_relative, rpd as rpd, rpiq as rpiq, rsq as rsq, rsq_trad as rsq_trad, smape as smape,
    )  # fmt: skip
    from tidyfair.reports.page import report as report
    from tidyfair.reports.plots import autoplot as autoplot
    from tidyfair.reports.journal_tables import as_table as as_table
    from tidyfair.reports.tables import plain_names as plain_names
    from tidyfair.specs.aggregates import new_aggregate as new_aggregate
    from tidyfair.specs.contrasts import difference as difference, ratio as ratio
    from tidyfair.specs.formulas.statistics import statistic as statistic
    from tidyfair.specs.groups import privileged as privileged
    from tidyfair.specs.memberships import memberships as memberships
    from tidyfair.specs.numeric_bins import bins as bins
    from tidyfair.specs.spreads import group_maximum as group_maximum, group_minimum as group_minimum
    from tidyfair.tallies.number_groups import quantile_groups as quantile_groups

    __all__: list[str]
    __version__: str

# Every name at the top, by what it is for and by the module that defines it, which is read when the name is first asked
# for: so `import tidyfair` costs nothing but this table.
_TASKS: dict[str, dict[str, str]] = {
    "Metrics of labels": {
        "metrics.classification": """
            accuracy bal_accuracy base_rate diagnostic_odds_ratio error_rate f_meas false_discovery_rate
            false_negative_rate false_omission_rate false_positive_rate j_index kap lift markedness mcc
            negative_likelihood_ratio net_benefit npv positive_likelihood_ratio ppv precision roc_dist sedi
            selection_rate sens spec threat_score
        """,
    },
    "Metrics of scores": {
        "metrics.probability": """
            average_precision brier_class classification_cost gain_capture mean_score mn_log_loss pr_auc
            ranked_prob_score roc_auc roc_aunp roc_aunu
        """,
    },
    "Metrics of numbers": {
        "metrics.regression": """
            ccc gini_coef huber_loss huber_loss_pseudo iic mae mape mase mean_prediction mean_truth
            median_absolute_error mpe msd mse poisson_log_loss residual_bias rmse rmse_relative rpd rpiq rsq rsq_trad
            smape
        """,
    },
    "Fairness metrics": {
        "metrics.fairness": """
            abroca auc_parity average_abs_odds_difference average_odds_difference conditional_demographic_disparity
            conditional_use_accuracy_equality demographic_parity differential_fairness disparate_impact
            equal_opportunity equalized_odds independence overall_accuracy_equality predictive_equality
            predictive_parity separation sufficiency treatment_equality
        """,
    },
    "Sets, comparisons and metrics of your own": {
        "calling.metric_sets": "metric_set metric_tweak",
        "metrics.catalog": "catalogue get_metrics",
        "metrics.defaults": "default_metrics",
        "metrics.define": "class_metric new_class_metric new_numeric_metric new_prob_metric numeric_metric prob_metric",
        "metrics.fairness": "new_groupwise_metric",
        "specs.aggregates": "new_aggregate",
        "specs.contrasts": "difference ratio",
        "specs.formulas.statistics": "statistic",
        "specs.groups": "privileged",
        "specs.memberships": "memberships",
        "specs.numeric_bins": "bins",
        "specs.spreads": "group_maximum group_minimum",
        "tallies.number_groups": "quantile_groups",
    },
    "Verdicts and comparisons": {
        "audits.reference_tables": "compare_groups",
        "inference.gates.checks": "assert_fair check four_fifths",
        "inference.models.model_comparison": "compare_models",
    },
    "Curves, pictures, tables, reports, audits": {
        "audits.filing": "audit",
        "metrics.confusion": "conf_mat conf_mat_summary",
        "metrics.curves": "gain_curve lift_curve pr_curve roc_curve threshold_curve",
        "metrics.operating_points": "operating_point",
        "reports.page": "report",
        "reports.plots": "autoplot",
        "reports.journal_tables": "as_table",
        "reports.tables": "plain_names",
    },
    "Rows that come in parts": {"calling.streaming": "Accumulator load_state save_state"},
}
_ALIASES = {
    "metrics.classification": """
        detection_prevalence fall_out miss_rate negative_predictive_value positive_predictive_value prevalence recall
        sensitivity specificity true_negative_rate true_positive_rate
    """,
    "metrics.fairness": """
        demographic_parity_ratio equal_opportunity_ratio equalized_odds_ratio statistical_parity_difference
    """,
}
"""Other names of metrics above, or of their comparisons, which work and are not listed."""
_FAMILIES = (
    "abstention", "aggregates", "annotators", "audits", "calibration", "counts", "datasets", "decision_curves",
    "distributions", "errors", "inequality", "inference", "prediction_intervals", "rankings", "scorers", "surveys",
    "survival", "types",
)  # fmt: skip
"""The modules of names that belong together, and are written with them: `tidyfair.rankings.ndcg`."""


def _module_of_names(*tables: dict[str, str]) -> dict[str, str]:
    return {name: module for table in tables for module, names in table.items() for name in names.split()}


_MODULE_OF = _module_of_names(*_TASKS.values())
_MODULE_OF_ALIAS = _module_of_names(_ALIASES)

if not TYPE_CHECKING:
    __all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - names of the table above


def _listed() -> str:
    """The names by what they are for, as `help(tidyfair)` shows them."""
    lines: list[str] = []
    for task, table in _TASKS.items():
        lines.append(f"{task}:")
        for names in table.values():
            lines += [f"    {line.strip()}" for line in names.strip().splitlines()]
    return "\n".join([*lines, "Families of names, each with its own help:", f"    {' '.join(_FAMILIES)}"])


__doc__ = f"{__doc__}\n{_listed()}\n"


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - as short as can be

    if module := _MODULE_OF.get(name) or _MODULE_OF_ALIAS.get(name):
        value = getattr(import_module(f"tidyfair.{module}"), name)
        globals()[name] = value
        return value
    if name in _FAMILIES:
        return import_module(f"tidyfair.{name}")
    if name == "__version__":
        # as installed; looked up when asked for, because that reads a file
        return import_module("importlib.metadata").version("tidyfair")
    other_names = import_module("tidyfair.metrics.other_names")
    way_out = "" if name.startswith("_") else other_names.way_out(name)
    raise other_names.missing(__name__, name, way_out)


def __dir__() -> list[str]:
    import sys  # noqa: PLC0415 - as short as can be

    # `help(tidyfair)` would print the documentation of every name, 18,000 lines: its own text lists them
    caller = sys._getframe(1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - there is no other way
    while caller.f_back is not None and caller.f_globals["__name__"] == "inspect":
        caller = caller.f_back
    return [] if caller.f_globals["__name__"] == "pydoc" else [*sorted(_MODULE_OF), *_FAMILIES]

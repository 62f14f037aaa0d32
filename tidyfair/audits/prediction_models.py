"""Audits of models that predict: clinical prediction (TRIPOD+AI), data under the EU AI Act, and model cards."""

from __future__ import annotations

from tidyfair.audits import law
from tidyfair.audits.named_audits import NOTE, NamedAudit, ValuesTable
from tidyfair.audits.published import PublishedColumn
from tidyfair.calling import Metric, metric_tweak
from tidyfair.metrics.classification import (
    accuracy,
    base_rate,
    net_benefit,
    net_benefit_of_treating_all,
    precision,
    selection_rate,
    sens,
    share_of_rows,
    spec,
    standardized_net_benefit,
)
from tidyfair.metrics.define import class_metric
from tidyfair.metrics.probability import (
    brier_class,
    calibration_intercept,
    calibration_ratio,
    calibration_slope,
    roc_auc,
)
from tidyfair.specs.formulas import Number, Rate

_CALIBRATION_IN_LOGITS = metric_tweak(calibration_intercept, "calibration_intercept_given_slope", slope="one")
_DIGITS = {"net_benefit": 4, "net_benefit_of_treating_all": 4}
"""The decimals of metrics that have other than three."""


def _values_table(
    name: str, heading: str, needs: tuple[str, ...], *metrics: tuple[Metric, str], crossed: bool = False,
) -> ValuesTable:  # fmt: skip
    """A table of metrics under their headings, between the rows of a group and its notes."""
    values = [
        PublishedColumn(column=metric.name, heading=title, digits=_DIGITS.get(metric.name, 3))
        for metric, title in metrics
    ]
    rows, notes = PublishedColumn(column=".n", heading="Rows"), PublishedColumn(column=NOTE, heading="Note")
    return ValuesTable(
        name=name, heading=heading, needs=needs, metrics=tuple(metric for metric, _ in metrics), crossed=crossed,
        columns=(rows, *values, notes),
    )  # fmt: skip


clinical_tripod_ai = NamedAudit(
    name="clinical_tripod_ai",
    title="Performance of a clinical prediction model in subgroups, TRIPOD+AI",
    version="TRIPOD+AI statement of 2024-04-16, checklist of 2024-01-11",
    source="BMJ 2024;385:e078378, items 12e, 20b, 21 and 23a",
    one_event=True,
    purpose="discrimination, calibration, overall error and net benefit of risks, by subgroup, with intervals",
    is_not=(
        "a test of fairness: the statement guides reporting, and prescribes no measure, threshold or table",
        "evidence that patients benefit; net benefit assumes one threshold, and so one trade-off, for all groups",
        "a judgment of bias in the study, or advice on care",
    ),
    readings=(
        "The calibration intercept is in logits, with the slope held at 1; O:E is observed over expected.",
        "Net benefit depends on how frequent events are; compare groups by standardized net benefit.",
        "A model is useful at a threshold if its net benefit exceeds that of treating all, and that of none (0).",
    ),
    tables=(
        _values_table(
            "performance",
            "Discrimination, calibration and overall error",
            ("truth", "probs"),
            (base_rate, "Event rate"),
            (roc_auc, "AUC"),
            (_CALIBRATION_IN_LOGITS, "Calibration intercept, slope 1"),
            (calibration_slope, "Calibration slope"),
            (calibration_ratio, "O:E"),
            (brier_class, "Brier score"),
        ),
        _values_table(
            "net_benefit",
            "Net benefit",
            ("truth", "probs", "threshold"),
            (net_benefit, "Net benefit"),
            (net_benefit_of_treating_all, "Net benefit of treating all"),
            (standardized_net_benefit, "Standardized net benefit"),
        ),
    ),
)


@class_metric(direction="minimize")
def share_without_truth(positives: Number, negatives: Number, instances: Number) -> Rate:
    """Share of rows whose truth is missing."""
    return instances - positives - negatives, instances


_LABELS = (
    (base_rate, "Base rate"),
    (selection_rate, "Selection rate"),
    (accuracy, "Accuracy"),
    (sens, "Sensitivity"),
    (spec, "Specificity"),
    (precision, "Precision"),
)

eu_ai_act_data = NamedAudit(
    name="eu_ai_act_data",
    title="Groups in data sets, for the examination of data under the EU AI Act",
    version=law.EU_AI_ACT.version,
    source=law.EU_AI_ACT.source,
    unknown="group",
    purpose="rows and share of events of each group and crossing, unknown ones included, and performance",
    is_not=(
        "a conformity assessment: no table satisfies an article, and no article prescribes a metric or a threshold",
        "an examination of how the data came about, or of all gaps in them",
        "legal advice",
    ),
    tables=(
        _values_table(
            "data",
            "Rows and events",
            ("truth",),
            (share_of_rows, "Share of rows"),
            (share_without_truth, "Share without truth"),
            (base_rate, "Share of events"),
            crossed=True,
        ),
        _values_table("performance", "Performance in each group", ("truth", "estimate"), *_LABELS, crossed=True),
    ),
)

model_card = NamedAudit(
    name="model_card",
    title="Quantitative analyses of a model card",
    version="Model Cards for Model Reporting, FAT* 2019",
    source="Mitchell et al. (2019), section 4.7; arXiv 1810.03993",
    purpose="the usual rates with intervals, by each feature (unitary results) and by all together (intersectional)",
    is_not=(
        "a complete card: intended use, factors, data, ethics and caveats are for people to write",
        "a judgment that the model is fair, or fit for a use",
    ),
    tables=(
        _values_table("performance", "Quantitative analyses", ("truth", "estimate"), *_LABELS, crossed=True),
        _values_table(
            "scores",
            "Quantitative analyses of scores",
            ("truth", "probs"),
            (roc_auc, "AUC"),
            (calibration_ratio, "Observed : expected"),
            (brier_class, "Brier score"),
            crossed=True,
        ),
    ),
)

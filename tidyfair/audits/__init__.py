"""Audits: usual metrics, and tables of groups against a reference; data come in, and what has to be filed goes out."""

# pyright: reportUnusedImport=false
from tidyfair.audits.audit_results import Answer, AuditResults, Significance, is_percent
from tidyfair.audits.credit import SegmentedTable, StandardizedTable
from tidyfair.audits.filing import FiledAudit, NAMED_AUDITS, audit, facts_of_audit
from tidyfair.audits.named_audits import ComparisonTable, NamedAudit, ValuesTable
from tidyfair.audits.published import PublishedColumn, html_page, save_document
from tidyfair.audits.reference_tables import GroupComparison
from tidyfair.audits.usual_metrics import Feature, LEAST_ROWS, Predictions, UsualMetrics, differences, kind_of

from tidyfair.audits.effect_sizes import (
    quantile_ratios as quantile_ratios, standardized_differences as standardized_differences,
)  # fmt: skip

__all__ = ["NAMED_AUDITS", "quantile_ratios", "standardized_differences"]


def __dir__() -> list[str]:
    return __all__

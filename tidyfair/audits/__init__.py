"""Audits: usual metrics, and tables of groups against a reference; data come in, and what has to be filed goes out."""

# pyright: reportUnusedImport=false
from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.audits.audit_results import Answer, AuditResults, Significance, is_percent
from tidyfair.audits.call_code import call_of
from tidyfair.audits.credit import SegmentedTable, StandardizedTable
from tidyfair.audits.filing import FiledAudit, NAMED_AUDITS, audit, facts_of_audit
from tidyfair.audits.named_audits import ComparisonTable, NamedAudit, ValuesTable
from tidyfair.audits.published import PublishedColumn, html_page, save_document
from tidyfair.audits.reference_tables import GroupComparison
from tidyfair.audits.usual_metrics import Feature, LEAST_ROWS, Predictions, UsualMetrics, differences, kind_of

from tidyfair.audits.effect_sizes import (
    quantile_ratios as quantile_ratios, standardized_differences as standardized_differences,
)  # fmt: skip
from tidyfair.audits.evidence import verify_evidence as verify_evidence, write_evidence as write_evidence
from tidyfair.audits.policies import AuditPolicy as AuditPolicy, read_policy as read_policy

__all__ = [
    "NAMED_AUDITS", "AuditPolicy", "quantile_ratios", "read_policy", "standardized_differences", "verify_evidence",
    "write_evidence",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


__getattr__ = _suggestions(__name__)

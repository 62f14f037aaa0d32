"""Pictures, tables and pages: results come in, and what people look at goes out."""

# pyright: reportUnusedImport=false
from tidyfair.reports.findings import finding_on, group_in_words, percent, quoted_group
from tidyfair.reports.page import Report, need_packages, page_of, page_of_models, report
from tidyfair.reports.sections import missing_of
from tidyfair.reports.tables import (
    ALL_ROWS, NOTHING, Note, groups_side_by_side, has_dropped_rows, left_out_in_words, one_below_the_other, reason,
    rounded, worded,
)  # fmt: skip
from tidyfair.reports.verdicts import headline, value_and_limit

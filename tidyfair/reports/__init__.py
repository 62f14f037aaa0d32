"""Pictures, tables and pages: results come in, and what people look at goes out."""

# pyright: reportUnusedImport=false
from tidyfair.reports.blocks import Table
from tidyfair.reports.findings import (
    feature_in_words, finding_on, group_in_words, names_of_groups, percent, remarks_on, units_of, units_of_names,
)  # fmt: skip
from tidyfair.reports.page import Report, findings_of_models, need_packages, page_of, page_of_models, report
from tidyfair.reports.sections import missing_of
from tidyfair.reports.tables import (
    NOTHING, Note, Units, groups_side_by_side, in_unit, left_out_in_words, one_below_the_other,
    reason, remarks_on_all_rows, units_of_changes, worded,
)  # fmt: skip
from tidyfair.reports.verdicts import headline, value_and_limit, with_intervals_of

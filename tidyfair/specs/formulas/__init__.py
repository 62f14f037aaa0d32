"""Formulas of metrics: functions whose parameters are what they need, of six types.

Over sums: `LabelSums` of counts of labels, `LabelDistributions` of all labels of a group, `RowSums` of quantities of
rows. Over rows: `RowExpression` of polars, `RowArrays` of numpy, `GroupPairs` of the rows of two groups. All of them
answer the same questions (`Formula`).
"""

# pyright: reportUnusedImport=false
from tidyfair.specs.formulas.formula import *
from tidyfair.specs.formulas.reading import *
from tidyfair.specs.formulas.rows import GroupPairs, RowArrays, RowExpression, Sample
from tidyfair.specs.formulas.statistics import (
    BOTH, CONTENT, Counts, Expr, ExprRate, Given, Kind, Lists, Neighborhood, Number, OF_CENSORING, OF_INTERVAL,
    OVERALL, ROWS, ROW_COLUMNS, Rate, SEVERAL_COLUMNS, SQUARES, STEPS, SUMS, Statistic, THE_REST, WEIGHTS,
    WHEN_COMPLETE, name_of, statistic, unprefixed,
)  # fmt: skip
from tidyfair.specs.formulas.sums import *

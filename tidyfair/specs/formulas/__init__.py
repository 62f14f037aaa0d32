"""Formulas of metrics: functions whose parameters are what they need, of six types.

Over sums: `LabelSums` of counts of labels, `LabelDistributions` of all labels of a group, `RowSums` of quantities of
rows. Over rows: `RowExpression` of polars, `RowArrays` of numpy, `GroupPairs` of the rows of two groups. All of them
answer the same questions (`Formula`).
"""

from tidyfair.specs.formulas.formula import *
from tidyfair.specs.formulas.reading import *
from tidyfair.specs.formulas.rows import GroupPairs as GroupPairs
from tidyfair.specs.formulas.rows import RowArrays as RowArrays
from tidyfair.specs.formulas.rows import RowExpression as RowExpression
from tidyfair.specs.formulas.rows import Sample as Sample
from tidyfair.specs.formulas.statistics import BOTH as BOTH
from tidyfair.specs.formulas.statistics import CONTENT as CONTENT
from tidyfair.specs.formulas.statistics import OF_CENSORING as OF_CENSORING
from tidyfair.specs.formulas.statistics import OF_INTERVAL as OF_INTERVAL
from tidyfair.specs.formulas.statistics import OVERALL as OVERALL
from tidyfair.specs.formulas.statistics import ROW_COLUMNS as ROW_COLUMNS
from tidyfair.specs.formulas.statistics import ROWS as ROWS
from tidyfair.specs.formulas.statistics import SEVERAL_COLUMNS as SEVERAL_COLUMNS
from tidyfair.specs.formulas.statistics import SQUARES as SQUARES
from tidyfair.specs.formulas.statistics import STEPS as STEPS
from tidyfair.specs.formulas.statistics import SUMS as SUMS
from tidyfair.specs.formulas.statistics import THE_REST as THE_REST
from tidyfair.specs.formulas.statistics import WEIGHTS as WEIGHTS
from tidyfair.specs.formulas.statistics import WHEN_COMPLETE as WHEN_COMPLETE
from tidyfair.specs.formulas.statistics import Counts as Counts
from tidyfair.specs.formulas.statistics import Expr as Expr
from tidyfair.specs.formulas.statistics import ExprRate as ExprRate
from tidyfair.specs.formulas.statistics import Given as Given
from tidyfair.specs.formulas.statistics import Kind as Kind
from tidyfair.specs.formulas.statistics import Lists as Lists
from tidyfair.specs.formulas.statistics import Neighborhood as Neighborhood
from tidyfair.specs.formulas.statistics import Number as Number
from tidyfair.specs.formulas.statistics import Rate as Rate
from tidyfair.specs.formulas.statistics import Statistic as Statistic
from tidyfair.specs.formulas.statistics import name_of as name_of
from tidyfair.specs.formulas.statistics import statistic as statistic
from tidyfair.specs.formulas.statistics import unprefixed as unprefixed
from tidyfair.specs.formulas.sums import *

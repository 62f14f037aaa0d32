"""Formulas of metrics: functions whose parameters are what they need, of six types.

Over sums: `LabelSums` of counts of labels, `LabelDistributions` of all labels of a group, `RowSums` of quantities of
rows. Over rows: `RowExpression` of polars, `RowArrays` of numpy, `GroupPairs` of the rows of two groups. All of them
answer the same questions (`Formula`).
"""

from tidyfair.specs.formulas.formula import Formula as Formula
from tidyfair.specs.formulas.formula import Influence as Influence
from tidyfair.specs.formulas.formula import Table as Table
from tidyfair.specs.formulas.formula import arithmetic_of as arithmetic_of
from tidyfair.specs.formulas.reading import formula_of as formula_of
from tidyfair.specs.formulas.rows import GroupPairs as GroupPairs
from tidyfair.specs.formulas.rows import RowArrays as RowArrays
from tidyfair.specs.formulas.rows import RowExpression as RowExpression
from tidyfair.specs.formulas.rows import Sample as Sample
from tidyfair.specs.formulas.statistics import Lists as Lists
from tidyfair.specs.formulas.statistics import Neighborhood as Neighborhood
from tidyfair.specs.formulas.statistics import Statistic as Statistic
from tidyfair.specs.formulas.statistics import name_of as name_of
from tidyfair.specs.formulas.statistics import statistic as statistic
from tidyfair.specs.formulas.sums import LabelDistributions as LabelDistributions
from tidyfair.specs.formulas.sums import LabelSums as LabelSums
from tidyfair.specs.formulas.sums import RowSums as RowSums
from tidyfair.specs.formulas.sums import SumFormula as SumFormula
from tidyfair.specs.formulas.vocabulary import *

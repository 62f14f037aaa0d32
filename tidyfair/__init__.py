"""Tidy metric sets and fairness metrics on dataframes."""

from tidyfair import datasets as datasets
from tidyfair.aggregates import *
from tidyfair.catalogue import *
from tidyfair.changes import *
from tidyfair.contrasts import *
from tidyfair.cuts import *
from tidyfair.defaults import *
from tidyfair.definitions import *
from tidyfair.errors import *
from tidyfair.fairness import *
from tidyfair.formulas import *
from tidyfair.functions import *
from tidyfair.gates import *
from tidyfair.groups import *
from tidyfair.hypotheses import *
from tidyfair.metric_sets import *
from tidyfair.metrics.classification import *
from tidyfair.metrics.curves import *
from tidyfair.metrics.dependence import *
from tidyfair.metrics.individual import *
from tidyfair.metrics.inequality import *
from tidyfair.metrics.probability import *
from tidyfair.metrics.regression import *
from tidyfair.pairs import *
from tidyfair.periods import *
from tidyfair.posteriors import *
from tidyfair.resamples import *
from tidyfair.scorers import *
from tidyfair.sizes import *
from tidyfair.small_groups import *
from tidyfair.spreads import *
from tidyfair.streaming import *
from tidyfair.subgroups import *
from tidyfair.tables import *
from tidyfair.tallies import *

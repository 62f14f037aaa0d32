"""Rankings: how groups fare in lists, such as the results of a search."""

from tidyfair.metrics.ranking import *

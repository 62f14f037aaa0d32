"""Rankings: how groups fare in lists, such as the results of a search."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.metrics.ranking import *

__getattr__ = _suggestions(__name__)

"""Labels by several people: their agreement, and the label that they give together."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.metrics.annotators import *

__getattr__ = _suggestions(__name__)

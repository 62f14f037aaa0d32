"""Labels by several people: their agreement, and the label that they give together."""

from tidyfair.metrics.annotators import *

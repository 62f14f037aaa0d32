"""The catalogue of metrics."""

# pyright: reportUnusedImport=false
from tidyfair.metrics.other_names import OTHER_NAMES, expression_for, places
from tidyfair.metrics.titles import at_cut, capitalized, cut_in_words, in_prose, short_title, title_of

"""Counting of rows: `source` opens a user's frame, and a tally holds its counts and sums."""

# pyright: reportUnusedImport=false
from tidyfair.tallies.arrays import ARRAY, frame_of_arrays, from_arrays
from tidyfair.tallies.censoring import censoring_distribution, checked_weights, kaplan_meier
from tidyfair.tallies.compared_rows import ListedRows
from tidyfair.tallies.count_plan import CountPlan, refuse_outer
from tidyfair.tallies.counting import check_size, count, recounted
from tidyfair.tallies.files import check_outputs, find_fault, save, scan, write
from tidyfair.tallies.members import SHARED_ROW, Copies, Members
from tidyfair.tallies.moments import (
    ACTUAL, EXTREMES, Needs, PREDICTED, REST, SCORE, UP_TO, centred, ends_of, is_of_replicate, merged, of_replicate,
    recentred, reduction_of, running, score_columns, weight_columns,
)  # fmt: skip
from tidyfair.tallies.number_groups import quantile_groups
from tidyfair.tallies.source import OuterGroups, PolarsFrame, SQUARED, Source, WEIGHT, open_frame
from tidyfair.tallies.suppression import Suppression, counts_by_labels, hidden_groups, index_of_rows
from tidyfair.tallies.tally import (
    BLOCK, HIDDEN, Key, LABELS, ROW, SOURCES, THRESHOLD, TRUTH, Tally, add_up, alike, check_tally, key_names,
    presence_key,
)  # fmt: skip
from tidyfair.tallies.tally_checks import SHOWN, check_readable, check_sizes, check_weights, in_words
from tidyfair.tallies.threads import MOST_PARTED, Parted, check_threads
from tidyfair.tallies.thresholds import Cut, ESTIMATE, sigmoid

"""Limits of values: evaluated groups and their tally come in, and lower and upper limits go out."""

# pyright: reportUnusedImport=false
from tidyfair.intervals.comparisons import (
    ComparedGroups, EQUALITY, SCALES, Scale, check_positive, check_scale, compare_values, p_values, scale_of,
)  # fmt: skip
from tidyfair.intervals.critical_values import brownian_range_quantile, brownian_range_tail
from tidyfair.intervals.draws import (
    Draws, Summary, clusters_of, shared_draws, is_stratified, replicates_of, warn_of_few_clusters,
)  # fmt: skip
from tidyfair.intervals.estimates import Estimates, Shares
from tidyfair.intervals.limits import families, group_intervals, of_all_outer_groups, result_intervals
from tidyfair.intervals.methods import method_of
from tidyfair.intervals.progress import in_progress
from tidyfair.intervals.proportions import (
    Limits, adjusted, clopper_pearson, correction, difference_limits, newcombe, root, shares_apart, squared, student,
    student_limits, wilson, z_value,
)  # fmt: skip
from tidyfair.intervals.resampling import (
    DRAW, DrawnCells, DrawnUnits, MOST_CELLS, MOST_ROWS, MOST_SHUFFLED, Units, check_shuffled, drawn_labels,
    drawn_units, generator, in_order, is_of_labels, kept_keys, label_pairs, placed, runs_of_replicates, with_pairs,
    without_parts, without_rows_of_cells,
)  # fmt: skip
from tidyfair.intervals.shares import Share, is_mean, is_of_cells, odds_of, share_of, values_of_tables
from tidyfair.intervals.survey import without_psus
from tidyfair.intervals.uncertainty import Uncertainty

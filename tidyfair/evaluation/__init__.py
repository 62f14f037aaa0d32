"""Evaluation of a tally: values of groups, disparities and tidy frames."""

# pyright: reportUnusedImport=false
from tidyfair.evaluation.array_metrics import SurvivalSample, influences_of, rows_with_weight
from tidyfair.evaluation.disparities import compare
from tidyfair.evaluation.evaluated import (
    Evaluated, EvaluationPlans, evaluate_specs, evaluated_apart, scores_of_levels,
)  # fmt: skip
from tidyfair.evaluation.evaluator import Evaluator, RequestedFormula, values_of
from tidyfair.evaluation.group_cells import (
    GroupCells, UNGROUPED, group_cell_of_frame, group_cell_of_kept_rows, named_groups, number_group_cells, rows_of,
    slice_of, text_of, texts_of,
)  # fmt: skip
from tidyfair.evaluation.group_index import GroupIndex, KeyCodes
from tidyfair.evaluation.judged import FEWEST_LABELS, JUDGED, JudgedEvaluator, JudgedValues, derivatives
from tidyfair.evaluation.judged_changes import changes_by_judge
from tidyfair.evaluation.labels import Labels, check_label, read_labels
from tidyfair.evaluation.missing_predictions import lacks_prediction, missing_by_group, missing_in_words
from tidyfair.evaluation.ranked_rows import Level, Rows, sorted_scores, weight_shares
from tidyfair.evaluation.replicates import RepeatedCells, ReplicatedGroups, Replicates, UnitsOfOneFeature
from tidyfair.evaluation.results import (
    EXPLANATION, LOST, Results, VALUE, frames_of, tidy_groups, tidy_results, with_features,
)  # fmt: skip
from tidyfair.evaluation.statistics import CELLS, Cells, GROUP_CELL, LEVEL, LabelCounts, pooled, statistics_of, sums_of
from tidyfair.evaluation.value_rows import NO_LEVEL, OUTSIDE, ValueRows

"""Specifications of metrics, groups and options, independent of data: checked arguments as frozen values."""

# pyright: reportUnusedImport=false
from tidyfair.specs.aggregates import (
    Aggregate, Better, CONTEXTS, Context, DIRECTIONS, Direction, GroupValues, NOT_ASKED, UserAggregate, as_aggregate,
)  # fmt: skip
from tidyfair.specs.arguments import (
    flag, how_often, is_list, is_value, number, one_of, plain, proper_share, share_of_percent, string, text, whole,
)  # fmt: skip
from tidyfair.specs.averages import (
    AVERAGES, Average, BINARY, DISTRIBUTION_BY_LABEL, MACRO, MICRO, MULTICLASS, MeanOfLabels,
    ONE_LABEL, ONE_VS_REST, OVER_LABELS,
)  # fmt: skip
from tidyfair.specs.columns import (
    Column, ColumnLike, EXACT, Frame, are_columns, are_told_apart, blaming_expressions, check_features, is_at_quantiles,
    kind_of, levels_of, names_of, roots_of, side_by_side, stacked, telling,
)  # fmt: skip
from tidyfair.specs.contrasts import Contrast, Difference, REFERENCES_IN_WORDS, Ratio, difference, log_ratio, ratio
from tidyfair.specs.entropies import check_alpha, entropy_index, entropy_within, powered
from tidyfair.specs.forecasts import (
    AT_POINT, CensoringDistribution, EVENT, EVENT_WEIGHT, Forecast, Prediction, PredictionInterval, Survival,
    TIME_AT_POINT, TruthLike, WEIGHT_AT_POINT, is_point, prediction_interval, survival,
)  # fmt: skip
from tidyfair.specs.groups import ALL_GROUPS, By, FeatureLike, Policy, Privileged, SIDE, Treatment, privileged
from tidyfair.specs.memberships import ListColumn, Memberships, NO_GROUP, Patterns, memberships
from tidyfair.specs.metric_specs import MetricSpec, average_of, compared_columns, formulas_of, named_formulas
from tidyfair.specs.numeric_bins import Bins, bins, quantile_bins
from tidyfair.specs.operating_points import OperatingPoint, with_event
from tidyfair.specs.option_table import (
    ELSEWHERE, EXACT_SCORES, Estimator, Flag, OF_CALLS, OPTIONS, Option, hint, refuse_unknown, unknown_keyword,
)  # fmt: skip
from tidyfair.specs.options import (
    CallOptions, ComputeOptions, CountOptions, GroupCallOptions, GroupOptions, GroupReadOptions, JudgedCallOptions,
    Options, OuterGroups, REPLICATES, ReadOptions, SurveyCallOptions, SurveyCountOptions, Threshold, refuse,
    refuse_unknown_keywords, show_keywords,
)  # fmt: skip
from tidyfair.specs.polars_versions import (
    columns_of, from_physical, gives_a_value_per_row, in_batches, is_beyond_numpy, is_row_separable, largest_integer,
    number_of_rows, spread, value_at,
)  # fmt: skip
from tidyfair.specs.result_columns import (
    CUTS, CUT_OPTIONS, GROUP_KEYS, POINTS, RESERVED, RESULT_KEYS, RowKey, SELECTIONS, crossed_text, cut_as_settings,
    cut_of_row, key_columns, key_of, keys_of, open_ends, opened, refuse_reserved,
)  # fmt: skip
from tidyfair.specs.segments import Array, Booleans, Floats, Integers, NO_ROW, Segments, taken
from tidyfair.specs.signatures import makes_metric, refuse_unknown_settings
from tidyfair.specs.spreads import (
    Extreme, FarthestPair, GroupMaximum, GroupMinimum, coefficient_of_variation, generalized_entropy, group_maximum,
    group_mean, group_minimum, mean_absolute_deviation, standard_deviation,
)  # fmt: skip
from tidyfair.specs.survey_designs import Design, ROLE, ReplicateWeights, SurveyDesign, replicate_weights, survey_design

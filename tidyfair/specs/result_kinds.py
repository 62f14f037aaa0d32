"""The kinds of results: the columns of each in their order, and those by which it is known."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tidyfair.specs.result_columns import CUTS, RESERVED

_CUTS = " ".join(CUTS)
_INTERVAL = ".lower .upper .std_error .df .design_effect .method .replicates_lost"
_EXPLAINED = (
    ".n .status .group_min .group_max .level .base_metric .metrics_left_out .groups_left_out .groups_outside .left_out"
)
_JUDGED = ".limit .verdict"
USUAL_LEVEL = 0.95


@dataclass(frozen=True)
class ResultKind:
    """A kind of result, which its columns tell.

    The columns that options of a call add can be missing. Other columns are the user's: keys of outer groups stand
    first, features after `.by`.
    """

    title: str
    """What the rows are, in words."""
    known_by: frozenset[str]
    """The columns without which a result is of another kind, or of none."""
    columns: tuple[str, ...]
    """All columns of the library that a result may have, in their order."""
    limits: str = "CI"
    """What `.lower` and `.upper` are, as tables and pictures write it behind the level."""
    has_periods: bool = False
    """True if the last outer key is the period that a row is about."""

    def frame(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table with its columns in the order of the kind; features of the user stay behind the column before."""
        places = {name: place for place, name in enumerate(self.columns)}
        # outer keys are before all others
        place = -1
        ordered: list[tuple[int, int, str]] = []
        for number, name in enumerate(table.columns):
            place = places.get(name, place)
            ordered.append((place, number, name))
        return table.select([name for *_, name in sorted(ordered)])

    def describes(self, columns: frozenset[str]) -> bool:
        """True for the columns of a result of the kind, which may be fewer than a call gives."""
        return self.known_by <= columns and not self.odd(columns)

    def odd(self, columns: frozenset[str]) -> frozenset[str]:
        """The columns that only results of other kinds have."""
        return (columns & RESERVED).difference(self.columns)


def _kind(title: str, known_by: str, columns: str, limits: str = "CI", *, has_periods: bool = False) -> ResultKind:
    """A kind whose columns are written with spaces between them."""
    with_level = columns if ".conf_level" in columns else f"{columns} .conf_level"
    return ResultKind(title, frozenset(known_by.split()), tuple(with_level.split()), limits, has_periods)


def with_level(results: pl.DataFrame, conf_level: float) -> pl.DataFrame:
    """Results with the level of their limits, where it is not the usual one of 95%."""
    if conf_level == USUAL_LEVEL or not any(name.endswith(("lower", "upper")) for name in results.columns):
        return results
    return results.with_columns(pl.lit(conf_level).alias(".conf_level"))


def level_of(results: pl.DataFrame) -> float:
    """The level of the limits of results."""
    if ".conf_level" not in results.columns or not results[".conf_level"].count():
        return USUAL_LEVEL
    return float(results[".conf_level"].drop_nulls()[0])


METRICS = _kind(
    "Values of metrics and disparities", ".metric .by .estimate",
    f".metric .by .estimator {_CUTS} .estimate .error_bound {_INTERVAL} {_EXPLAINED}",
)  # fmt: skip
VERDICTS = _kind(
    "Verdicts of a gate on metrics and disparities", ".metric .by .estimate .verdict",
    f".metric .by .estimator {_CUTS} .estimate .error_bound .std_error .method .replicates_lost {_EXPLAINED} "
    f".unknown .unknown_share .with_unknown .lower .upper {_JUDGED}", "one-sided limits",
)  # fmt: skip
GROUPS = _kind(
    "Values of groups", ".metric .by .group .estimate",
    f".metric .by .group .level .estimator {_CUTS} .estimate .error_bound {_INTERVAL} .n .denominator .effective_n "
    ".people .judge_labelled .judge .judge_weight .labels_worth .labelled_share .labels_needed .status .note",
)  # fmt: skip
SHRUNKEN = _kind(
    "Rates of groups that learn from each other", ".metric .by .group .estimate .raw",
    ".metric .by .group .estimator .estimate .lower .upper .raw .n .weight .mean .precision .additive .vpc "
    ".interaction_share",
    "credible interval",
)  # fmt: skip
WORST = _kind(
    "Groups by the probability of being the worst", ".metric .by .group .estimate .worst",
    ".metric .by .group .estimate .n .lower .upper .worst .p_worst", "simultaneous CI",
)  # fmt: skip
BOUNDS = _kind(
    "Rates of groups known by probability", ".metric .group .lower_bound .upper_bound",
    ".metric .group .n_expected .estimate .lower_bound .upper_bound .lower .upper .reference .disparity "
    ".disparity_lower_bound .disparity_upper_bound .disparity_lower .disparity_upper .status " + _JUDGED,
)  # fmt: skip
COMPARISONS = _kind(
    "Groups compared with a reference", ".metric .group .reference .disparity",
    f".metric .by .group .level .estimator {_CUTS} .n .share .estimate .estimate_lower .estimate_upper "
    ".reference .estimate_reference .scale .std_error .method .statistic .df .p_value .test .status .numerator "
    ".denominator .numerator_reference .denominator_reference .shortfall .shortfall_four_fifths .deviations "
    ".flip_flop .spread .disparity .lower .upper .p_adjusted .note .marginal_effect .odds_ratio .relative_rate "
    + _JUDGED,
)  # fmt: skip
FOUR_FIFTHS = _kind(
    "Groups compared by the four-fifths rule", ".metric .group .reference .disparity .below_four_fifths",
    f"{' '.join(COMPARISONS.columns[:-3])} .below_four_fifths .shortfall_pooled .flips .within_one .p_fisher "
    f".p_mid_p {_JUDGED}",
)  # fmt: skip
STANDARDIZED = _kind(
    "Standardized differences of means", ".group .mean .reference .disparity",
    ".by .group .n .share .mean .reference .spread .std_error .disparity .lower .upper .p_value .p_adjusted .status "
    ".note",
)  # fmt: skip
QUANTILES = _kind(
    "Ratios of quantiles", ".group .quantile .reference .disparity",
    ".by .group .n .share .quantile .reference .disparity .lower .upper .p_value .p_adjusted .status .note",
)  # fmt: skip
PAIRS = _kind(
    "Groups compared pair by pair", ".metric .group .other .scale .disparity",
    f".metric .by {_CUTS} .group .other .level .estimator .n .n_other .estimate .estimate_other .scale "
    ".std_error .method .statistic .df .p_value .test .adjustment .status .disparity .lower .upper .p_adjusted "
    + _JUDGED,
)  # fmt: skip
PAIRED = _kind(
    "Groups compared on the same items", ".metric .group .other .disparity .pairs",
    ".metric .by .group .other .estimator .estimate .estimate_other .disparity .lower .upper .std_error .flip_rate "
    ".pairs .unmatched .p_value .p_adjusted " + _JUDGED,
)  # fmt: skip
COCHRANS_Q = _kind(
    "Tests of equal rates in all groups of the same items", ".metric .statistic .df .pairs",
    ".metric .by .statistic .df .p_value .pairs .unmatched",
)  # fmt: skip
STRATA = _kind(
    "Groups compared within strata", ".metric .group .other .crude .adjusted",
    f".metric .by .group .other {_CUTS} .strata .crude .estimate .estimate_other .std_error .statistic .df "
    ".p_value .statistic_homogeneity .df_homogeneity .p_homogeneity .statistic_equal_odds .df_equal_odds .p_equal_odds "
    ".pattern .ratio .ratio_lower .ratio_upper .odds_ratio .odds_ratio_lower .odds_ratio_upper .n .n_other .adjustment "
    ".adjusted .lower .upper .p_adjusted .marginal_effect .marginal_effect_within .marginal_effect_lower "
    ".marginal_effect_upper .note",
)  # fmt: skip
TESTS = _kind(
    "Permutation tests of disparities", ".metric .by .estimate .p_value .expected_lower .expected_upper",
    ".metric .by .hypothesis .n .expected_lower .expected_upper .method .adjustment .estimate .expected .p_value "
    ".p_adjusted",
)  # fmt: skip
PROBABILITIES = _kind(
    "Posterior probabilities that limits are kept", ".metric .by .probability",
    ".metric .by .estimator .estimate .limit .probability",
)  # fmt: skip
SUBGROUPS = _kind(
    "Subgroups by their difference from the rest", ".metric .subgroup .difference",
    ".metric .subgroup .depth .estimate .rest .compared_with .difference .upper .n .denominator .share .p_value "
    ".p_adjusted .status",
)  # fmt: skip
CERTIFICATE = _kind(
    "The most by which any subgroup differs", ".metric .epsilon .subgroup .difference",
    ".metric .epsilon .subgroup .estimate .compared_with .difference .denominator .searched .not_searched .min_n "
    ".conf_level .status",
)  # fmt: skip
MISCALIBRATION = _kind(
    "Tests of calibration in subgroups", ".metric .by .group .estimate .statistic .detectable",
    ".metric .by .group .estimate .std_error .statistic .p_value .p_adjusted .detectable .n .status",
)  # fmt: skip
HALVES = _kind(
    "The half of the rows that differs most", ".metric .subgroup .overall .violation",
    ".metric .subgroup .estimate .overall .violation .denominator .share .status",
)  # fmt: skip
SENSITIVITY = _kind(
    "Errors in the data that turn a verdict", ".metric .by .error .group .becomes .share",
    ".metric .by .error .group .to .estimate .limit .verdict .becomes .share .rows .n .moved .lowest .highest",
)  # fmt: skip
MISSING_TRUTH = _kind(
    "Missing truths by the estimate", ".missing_if_positive .missing_if_negative .difference",
    ".missing_if_positive .missing_if_negative .difference .lower .upper .p_value .p_adjusted .n",
)  # fmt: skip
SMALLEST = _kind(
    "Differences that data of this size show", ".smallest .rows .difference",
    f".metric .by .level {_CUTS} .groups .smallest .rows .share .difference .power .conf_level",
)  # fmt: skip
MODELS = _kind(
    "Two models on the same rows", ".metric .by .one .other .change",
    f".metric .by .one .one_lower .one_upper .other .other_lower .other_upper .estimator {_CUTS} .n .n_missing "
    ".only_one .only_other .std_error .groups_left_out .groups_outside .left_out .unknown .unknown_share .with_unknown "
    f".model_one .model_other .change .lower .upper .p_value .p_adjusted .margin {_JUDGED} .on_frontier",
)  # fmt: skip
RESAMPLES = _kind(
    "Mean differences of two models over resamples", ".metric .by .difference .n .std_error",
    f".metric .by .group .level .estimator {_CUTS} .difference .n .std_error",
)  # fmt: skip
SUMMARIES = _kind(
    "Means over resamples", ".metric .by .mean .n .std_error",
    f".metric .by .group .level .estimator {_CUTS} .mean .n .std_error",
)  # fmt: skip
LOOK = _kind(
    "Verdicts of a monitor on all rows so far", ".metric .by .estimate .verdict .e_value",
    ".metric .by .n .estimate .lower .upper .limit .e_value .verdict .groups_left_out", "confidence sequence",
)  # fmt: skip
LOOKS = _kind(
    "Verdicts of a monitor, period by period", ".metric .by .estimate .look .verdict",
    ".metric .by .look .since .n .estimate .lower .upper .limit .e_value .verdict .groups_left_out",
    "confidence sequence", has_periods=True,
)  # fmt: skip
GROUPS_OF_LOOKS = _kind(
    "Values of groups of a monitor, period by period", ".metric .by .group .estimate .look",
    ".metric .by .group .look .since .n .estimate .lower .upper", "confidence sequence", has_periods=True,
)  # fmt: skip
PERIODS = _kind(
    "Changes from one period to the next", ".metric .by .before .change .expected_lower",
    ".before .metric .by .expected .expected_lower .expected_upper .p_value .adjustment .estimate_before "
    ".estimate .change .p_adjusted", has_periods=True,
)  # fmt: skip
CHANGES = _kind(
    "The period at which values change", ".metric .group .period .period_lower .change",
    ".metric .by .group .n .change .lower .upper .p_value .adjustment .period_lower .period_upper .period "
    ".estimate_before .estimate .p_adjusted",
)  # fmt: skip
COMPONENTS = _kind(
    "The components of a difference of two groups", ".metric .group .other .component .estimate",
    ".metric .by .group .other .n .n_other .method .std_error .component .estimate .lower .upper",
)  # fmt: skip
ROC_CURVE = _kind(
    "Sensitivity and specificity at each threshold", "specificity sensitivity",
    ".level .threshold specificity sensitivity",
)  # fmt: skip
PR_CURVE = _kind(
    "Precision and recall at each threshold", ".threshold recall precision",
    ".level .threshold recall precision",
)  # fmt: skip
GAIN_CURVE = _kind(
    "Events found among the highest scores", ".percent_tested .percent_found",
    ".level .threshold .n .n_events .percent_tested .percent_found",
)  # fmt: skip
LIFT_CURVE = _kind(
    "Lift of the highest scores", ".percent_tested .lift",
    ".level .threshold .n .n_events .percent_tested .lift",
)  # fmt: skip
CALIBRATION_CURVE = _kind(
    "Mean scores and rates of events in bins", ".mean_score .event_rate",
    ".level .bin .mean_score .event_rate .lower .upper .n .weight .lowest_score .highest_score",
)  # fmt: skip
CUMULATIVE_CURVE = _kind(
    "Events minus scores, cumulated", ".share .cumulative_error .std_error",
    ".level .score .share .cumulative_error .std_error",
)  # fmt: skip
SURVIVAL_CURVE = _kind(
    "The probability to survive each time", ".eval_time .n_at_risk .n_events .estimate",
    ".eval_time .n_at_risk .n_events .estimate .lower .upper .std_error",
)  # fmt: skip
RISK_COVERAGE_CURVE = _kind(
    "Risk of those decided about, over coverage", ".coverage .risk",
    ".level .threshold .coverage .risk .overall_coverage",
)  # fmt: skip
FEATURE_CURVE = _kind(
    "A metric over a continuous feature", ".metric .by .at .estimate",
    ".metric .by .at .estimate .lower .upper .std_error .effective_n",
)  # fmt: skip
CONFUSION = _kind(
    "Rows by true and predicted label", ".truth .predicted .n",
    f"{_CUTS} .truth .predicted .n .weight",
)  # fmt: skip
PAY_GAPS = _kind(
    "Gaps of pay", ".group .estimate .reference .gap",
    ".by .group .n .share .estimate .reference .gap .is_large_gap .status .note",
)  # fmt: skip
PAY_BANDS = _kind("Groups in bands of pay", ".by .group .bin .n .estimate", ".by .group .bin .n .estimate")
UNKNOWN_ROWS = _kind("Rows of unknown groups", ".by .n .unknown", ".by .n .unknown")
REQUIREMENTS = _kind(
    "Requirements of a policy", ".requirement .verdict",
    ".by .metric .level .requirement .estimate .lower .upper .limit .verdict .reason",
)  # fmt: skip
KINDS = (
    METRICS, VERDICTS, GROUPS, SHRUNKEN, WORST, BOUNDS, COMPARISONS, FOUR_FIFTHS, STANDARDIZED, QUANTILES, PAIRS,
    PAIRED, COCHRANS_Q, STRATA, TESTS, PROBABILITIES, SUBGROUPS, CERTIFICATE, HALVES, SENSITIVITY, MISSING_TRUTH,
    SMALLEST, MODELS, RESAMPLES, SUMMARIES, LOOK, LOOKS, GROUPS_OF_LOOKS, PERIODS, CHANGES,
    COMPONENTS, ROC_CURVE, PR_CURVE, GAIN_CURVE, LIFT_CURVE, CALIBRATION_CURVE, CUMULATIVE_CURVE, MISCALIBRATION,
    RISK_COVERAGE_CURVE, FEATURE_CURVE, SURVIVAL_CURVE, CONFUSION, PAY_GAPS, PAY_BANDS, UNKNOWN_ROWS, REQUIREMENTS,
)  # fmt: skip
"""All kinds of results. No columns are those of two kinds."""


def kind_of(frame: pl.DataFrame) -> ResultKind | None:
    """The kind of a result, by its columns; None for other frames.

    >>> kind_of(pl.DataFrame(schema=[".metric", ".by", ".estimate"])) == METRICS
    True
    """
    columns = frozenset(frame.columns)
    return next((kind for kind in KINDS if kind.describes(columns)), None)

"""The columns of results: what they hold, and their names, which are reserved."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any, TypeAlias

import polars as pl

from tidyfair.errors import ColumnError
from tidyfair.specs.columns import Column

RowKey: TypeAlias = tuple[str | float | None, ...]

CUT_OPTIONS = ("threshold", "top_k", "top_fraction")
"""The options that make decisions of scores."""
SELECTIONS = tuple(f".{option}" for option in CUT_OPTIONS)
"""Columns that say by which of several rules decisions are made."""
POINTS = (".eval_time", ".quantile_level")
"""Columns that say which of several points predictions are for."""
CUTS = (*SELECTIONS, *POINTS)
"""Columns that say at which of several cuts or points a value is."""
RESULT_KEYS = (".metric", ".by", *CUTS)
"""Columns that identify a row of results, besides outer groups; the label there is part of the answer."""
GROUP_KEYS = (".metric", ".by", ".group", ".level", *CUTS)
"""Columns that identify a value of a group, besides outer groups."""

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "The subject of a row": {
        ".metric": "the metric or disparity",
        ".by": "the feature whose groups are compared, several joined by `:`; null for a metric of all rows",
        ".group": "the group; parts of a crossing are joined by `:`",
        ".other": "the group, or the second of two values, that is compared with the first",
        ".level": "the label that a value is about, where there are more than two",
        ".estimator": "the kind of average: `binary`, `macro`, `macro_weighted`, `micro`, `one_vs_rest`, `standard` …",
        ".threshold": "the threshold, if you gave a list",
        ".top_k": "the number of rows selected, if you gave a list",
        ".top_fraction": "the share of rows selected, if you gave a list",
        ".eval_time": "the evaluation time of a survival metric",
        ".quantile_level": "the level of the quantile",
        ".model_one": "the column that `compare_models` got as `one=`",
        ".model_other": "the column that it got as `other=`",
        ".period": "the first period with other values",
        ".before": "the period before it",
        ".period_lower": "the first period from which on the change may be",
        ".period_upper": "the last one",
        ".look": "the number of the look at the data, from 1",
        ".since": "the first period of the rows that the look is about",
        ".component": "the part of a difference: the composition of a feature, `rates`, or `total`",
        ".subgroup": "the condition of a subgroup",
        ".depth": "the number of features in that condition",
        ".error": "the kind of error in the data that is assumed",
        ".to": "the group to which rows are moved",
        ".moved": "the cells of the confusion matrix between which rows are moved",
        ".at": "the value of the feature that a curve is drawn over",
        ".bin": "the number of the bin, from 1",
        ".truth": "the true label",
        ".predicted": "the predicted label",
        ".requirement": "what a policy requires: a `feature`, `rows`, a `value`, a `limit`; or a part of evidence",
    },
    "Values": {
        ".estimate": "the value; null if undefined, with the reason in `.status`",
        ".overall": "the value of all rows",
        ".rest": "the value of the rows outside the group",
        ".one": "the value of the first model",
        ".one_lower": "the lower limit of the value of the first model",
        ".one_upper": "its upper limit",
        ".other_lower": "the lower limit of the value of the other model",
        ".other_upper": "its upper limit",
        ".people": "the value by the labels of people alone",
        ".judge_labelled": "the value by the labels of the judge, of the rows that people labeled",
        ".judge": "the value by the labels of the judge, of all rows",
        ".judge_weight": "the weight of the judge in the value, from 0 to 1",
        ".raw": "the rate of the group by itself, before it learns from the others",
        ".mean": "the mean over resamples, of the scores of a group, or of the distribution of rates",
        ".quantile": "the quantile of the group",
        ".difference": "the difference, in the direction that the function documents",
        ".change": "the second value minus the first",
        ".probability": "the posterior probability that the limit is kept",
        ".estimate_other": "the value of the other group",
        ".estimate_before": "the value in the period before, or in all periods before a change",
        ".estimate_reference": "the value of the reference group",
        ".crude": "the difference of all rows together",
        ".adjusted": "the difference within strata",
        ".violation": "the distance from the rate of all, times the share of the rows",
        ".smallest": "the smallest group",
        ".mean_score": "the mean score of the bin",
        ".event_rate": "the share of events in the bin",
        ".lowest_score": "the lowest score of the bin",
        ".highest_score": "the highest score of the bin",
        ".score": "the score up to which rows are counted",
        ".cumulative_error": "the number of events minus the sum of scores up to a score, per row",
        ".on_frontier": (
            "of a disparity, true if no model is better in it or in the first metric of all rows, and as good in the "
            "other"
        ),
        ".coverage": "the share of the rows that a model decides about",
        ".risk": "the share of errors among these",
        ".overall_coverage": "the same share of all outer groups together",
        ".lift": "the share of events among those selected, relative to all rows",
        ".percent_tested": "the percentage of rows selected",
        ".percent_found": "the percentage of events among them",
        ".missing_if_positive": "the share without a truth among rows with a positive estimate",
        ".missing_if_negative": "the same among rows with a negative estimate",
        ".additive": "the rate if features had no interaction",
        ".reference": "the group that others are compared with",
        ".scale": "`difference`, `ratio`, `odds_ratio` or `standardized`",
        ".disparity": "the comparison of a group with the other or the reference, on that scale",
        ".flip_rate": "the share of pairs whose labels differ",
        ".statistic": "the statistic of the test",
        ".df": "its degrees of freedom",
        ".statistic_homogeneity": "the statistic of the test of equal differences in all strata (Cochran's Q)",
        ".df_homogeneity": "its degrees of freedom",
        ".statistic_equal_odds": "the statistic of the test of equal odds ratios in all strata",
        ".df_equal_odds": "its degrees of freedom",
        ".relative_rate": "the rate of those not selected, over that of the reference",
        ".marginal_effect": "the rate of the reference minus that of the group",
        ".marginal_effect_lower": "its lower limit within segments",
        ".marginal_effect_upper": "its upper limit within segments",
        ".marginal_effect_within": "the same difference within segments",
        ".below_four_fifths": "true if the ratio is below four fifths",
        ".ratio": "the ratio within strata",
        ".ratio_lower": "its lower limit",
        ".ratio_upper": "its upper limit",
        ".odds_ratio": "the odds ratio",
        ".odds_ratio_lower": "its lower limit",
        ".odds_ratio_upper": "its upper limit",
        ".epsilon": "the most by which any subgroup can be worse than the others",
        ".compared_with": "the value of the rows that a subgroup is compared with",
        ".becomes": "the verdict after the errors",
        ".gap": "how much less the group has than the reference, as a share of what that has",
        ".is_large_gap": "true if the gap is at least 5 percent in either direction",
        ".lowest": "the smallest value over all possible missing truths",
        ".highest": "the largest value over all possible missing truths",
    },
    "How sure they are": {
        ".lower": "the lower limit of the confidence interval",
        ".upper": "the upper limit of the confidence interval",
        ".lower_bound": "the smallest value that agrees with the data",
        ".upper_bound": "the largest value that agrees with the data",
        ".disparity_lower_bound": "the smallest disparity that agrees with the data",
        ".disparity_upper_bound": "the largest disparity that agrees with the data",
        ".disparity_lower": "the lower limit of the disparity",
        ".disparity_upper": "the upper limit of the disparity",
        ".std_error": "the standard error",
        ".method": "the method of the interval",
        ".replicates_lost": "replicates without a value for some group",
        ".error_bound": "how far off a value from scores in bins can be",
        ".e_value": "the evidence, so far, that the limit is exceeded",
        ".expected": "the mean of the disparity, or of its change, by chance",
        ".expected_lower": "the lower end of the range of what is not significant at 5%",
        ".expected_upper": "the upper end of the range of what is not significant at 5%",
        ".hypothesis": "the hypothesis that is tested",
        ".p_value": "the p-value of the row alone",
        ".p_adjusted": "the p-value adjusted for all rows of the call",
        ".p_homogeneity": "the p-value of equal differences in all strata",
        ".p_worst": "the probability that the group is the worst",
        ".p_equal_odds": "the p-value of equal odds ratios in all strata",
        ".p_fisher": "the p-value of Fisher's exact test",
        ".p_mid_p": "its mid-p-value",
        ".adjustment": "the method by which p-values are adjusted",
        ".power": "the planned power",
        ".detectable": "the smallest error that a test of so many rows detects with the planned power",
        ".conf_level": "the confidence level; a result whose limits have the usual one, 0.95, need not have it",
        ".estimate_lower": "the lower limit of the value of the group",
        ".estimate_upper": "its upper limit",
        ".limit": "the limit of a gate",
        ".verdict": (
            "`pass`, `fail` or `not enough evidence`; of a monitor `within`, `above the limit`, `below the limit` "
            "or `undecided`; of `compare_models` `better`, `worse`, `equivalent`, `not worse`, `different` or "
            "`not shown`"
        ),
        ".margin": "the change up to which two models are as good as each other",
        ".with_unknown": "the verdict with unknown groups compared, too, where the known ones pass",
        ".test": "the test of the p-value",
        ".deviations": "the difference of two rates in standard deviations",
        ".flip_flop": "the disparity if one selection moved from the reference to the group",
        ".spread": "the standard deviation by which standardized differences are divided",
        ".flips": "true if moving one selection from the reference reverses the difference",
        ".within_one": "true if moving one selection brings the ratio to four fifths",
    },
    "How many rows they are of": {
        ".n": "the rows of the group, or of all groups that are compared",
        ".only_one": "the rows that only the first model has right, or selects",
        ".only_other": "the rows that only the other one has right, or selects",
        ".n_other": "the rows of the other group",
        ".n_events": "the rows with the event",
        ".n_at_risk": "the rows without an event, and not censored, just before a time",
        ".n_missing": "the rows with a truth that lack the prediction of the model",
        ".n_expected": "the expected rows of a group that is known by probability",
        ".denominator": (
            "the rows, or their weight, that the value is a share of: for sensitivity, those with the event; `.n` "
            "for metrics that are no rates"
        ),
        ".design_effect": (
            "the variance of a value of labels over that of as many rows drawn one by one, by the design of a survey"
        ),
        ".effective_n": "the effective sample size of weighted rows",
        ".labels_worth": "the labels of people alone that would say as much as those of people and a judge",
        ".labelled_share": "the share of the rows of the group that people labeled",
        ".labels_needed": "the labels of people that a group needs for intervals of a given width",
        ".rows": "the number of rows that the row is about",
        ".groups": "the number of groups",
        ".strata": "the number of strata",
        ".share": "the share of the rows",
        ".weight": "the weight of the rows",
        ".precision": "the rows that the mean of the distribution of rates counts for (alpha + beta)",
        ".vpc": "the share of the variance of logits that lies between groups",
        ".interaction_share": "the part of it that main effects do not explain",
        ".searched": "the conjunctions that were searched",
        ".not_searched": "those that have too few rows",
        ".min_n": "the least rows of a subgroup that is searched",
        ".shortfall": (
            "the further selections with which the group has the rate of the reference; negative if it has more"
        ),
        ".shortfall_four_fifths": "the further selections with which it has four fifths of that rate",
        ".numerator": "the rows that count, such as those selected",
        ".numerator_reference": "the same of the reference",
        ".denominator_reference": "the denominator of the reference",
        ".unknown": "the rows whose group is unknown",
        ".unknown_share": "their share of all rows",
        ".pairs": "the number of pairs",
        ".unmatched": "the pairs that lack one of the groups, or its prediction",
        ".shortfall_pooled": "the further selections with which the group has the rate of both groups together",
    },
    "What explains them": {
        ".reason": "why a requirement does not hold, or what differs",
        ".status": "`ok`, or [why there is no value](../how-to/undefined-values.md)",
        ".pattern": "how strata agree: `simpson`, `heterogeneous` …",
        ".worst": "the bad side: `lowest` or `highest`",
        ".group_min": "the group with the lowest value",
        ".group_max": "the group with the highest value",
        ".base_metric": "which of several metrics carries the disparity",
        ".metrics_left_out": "metrics that could not be compared",
        ".groups_left_out": "groups that the disparity was not taken over",
        ".groups_outside": "groups that are unknown, or smaller than `min_n` or `min_share`, and so not compared",
        ".left_out": (
            "the metrics that each of these, or an unknown group, was left out of: `group`, `metric`, `level`, "
            "`status` and `denominator`"
        ),
        ".note": "a remark for readers of a published table",
    },
}
"""The columns of results, of metrics as of tests, gates, curves and comparisons, and what they hold, by sections."""
RESERVED = frozenset(name for section in COLUMNS.values() for name in section)
"""Their names, which no key of a caller may have."""


def refuse_reserved(role: str, columns: Iterable[Column]) -> None:
    """Refuse keys whose names are reserved for columns of results."""
    for column in columns:
        if column.name in RESERVED:
            msg = f"`{role}`: {column.name!r} is a reserved column of results; rename your column."
            raise ColumnError(msg)


def key_of(row: Mapping[str, Any]) -> RowKey:
    """The key of a row of results without outer groups; of columns that it does not have, null."""
    return tuple(row.get(name) for name in RESULT_KEYS)


def keys_of(results: pl.DataFrame) -> list[RowKey]:
    """The keys of all rows of results without outer groups."""
    names = [name for name in RESULT_KEYS if name in results.columns]
    return [key_of(row) for row in results.select(names).iter_rows(named=True)]


def cut_of_row(row: Mapping[str, Any]) -> dict[str, float]:
    """The cut or point that a row is about, by its column; empty where there is none."""
    return {name: row[name] for name in CUTS if row.get(name) is not None}


def cut_as_settings(row: Mapping[str, Any]) -> list[str]:
    """The cut or point that a row is about as settings, such as `eval_time=10`."""
    return [f"{name.removeprefix('.')}={value:.15g}" for name, value in cut_of_row(row).items()]


def crossed_text(name: str) -> pl.Expr:
    """The groups of a column as people write them, where their features have no columns."""
    text, colons = pl.col(name).cast(pl.String), pl.col(".by").cast(pl.String).str.count_matches(":")
    is_crossed = colons == text.str.count_matches(":")
    return pl.when(is_crossed).then(text.str.replace_all(":", ", ", literal=True)).otherwise(text)


def key_columns(results: pl.DataFrame) -> list[str]:
    """The columns of outer groups in results, which come before all others."""
    return list(takewhile(lambda name: name not in RESERVED, results.columns))


_OPEN = ", open at "


def opened(method: str, end: float) -> str:
    """The name of the method of an interval that does not include one of its ends."""
    return f"{method}{_OPEN}{end:g}"


def open_ends(results: pl.DataFrame) -> tuple[list[bool], list[bool]]:
    """The lower and the upper ends that are not included in their intervals, as masks of the rows of results."""
    if ".method" not in results.columns:
        return [False] * len(results), [False] * len(results)
    ends = [float((method or "").partition(_OPEN)[2] or "nan") for method in results[".method"]]
    lower, upper = (results[name].to_list() for name in (".lower", ".upper"))
    return list(map(operator.eq, lower, ends)), list(map(operator.eq, upper, ends))

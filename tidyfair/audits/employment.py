"""Audits of selections for jobs: New York City's Local Law 144, and the Uniform Guidelines of the EEOC."""

from __future__ import annotations

import polars as pl

from tidyfair.audits import law
from tidyfair.audits.named_audits import NOTE, ComparisonTable, NamedAudit
from tidyfair.audits.published import PublishedColumn
from tidyfair.inference.testing import fisher
from tidyfair.metrics.classification import selection_rate

_APPLICANTS = PublishedColumn(column=".n", heading="Applicants")
_SELECTED = PublishedColumn(column=".numerator", heading="Selected")
_RATE = PublishedColumn(column=".estimate", heading="Selection rate (%)", digits=1, percent=True)
_RATIO = PublishedColumn(column=".disparity", heading="Impact ratio", digits=3)
_NOTE = PublishedColumn(column=NOTE, heading="Note")

nyc_ll144 = NamedAudit(
    name="nyc_ll144",
    title="Bias audit of automated employment decision tools, New York City",
    version=law.NYC_LL144.version,
    source=law.NYC_LL144.source,
    purpose=(
        "selection rates (or scoring rates: shares of scores above the median) and impact ratios by sex, by race or "
        "ethnicity, and by both"
    ),
    is_not=(
        "a finding of discrimination, or of its absence: the rule sets no limit such as 0.8, and no test to be passed",
        "the whole audit: the rule also asks for an independent auditor, notices, dates and the source of the data",
        "legal advice",
    ),
    readings=(
        "The median is that of all rows, including those of unknown groups. A score equal to it is not above it.",
        "Each category is compared with the one that has the highest rate by the same feature: sex, race, or both.",
        (
            "The auditor may leave categories of less than 2 percent of the rows out of the ratios (min_share=0.02). "
            "Their counts and rates are still listed, and nothing is compared with them."
        ),
    ),
    complete_rows=True,
    tables=(
        ComparisonTable(
            name="selections",
            heading="Selection rates and impact ratios",
            needs=("estimate",),
            metric=selection_rate,
            crossed=True,
            columns=(_APPLICANTS, _SELECTED, _RATE, _RATIO, _NOTE),
        ),
        ComparisonTable(
            name="scores",
            heading="Scoring rates and impact ratios",
            needs=("probs",),
            metric=selection_rate.alias("scoring_rate"),
            cut="median",
            crossed=True,
            columns=(
                _APPLICANTS,
                PublishedColumn(column=".numerator", heading="Above the median"),
                PublishedColumn(column=".estimate", heading="Scoring rate (%)", digits=1, percent=True),
                _RATIO,
                _NOTE,
            ),
        ),
    ),
)


def adverse_impact(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the four-fifths rule in whole numbers, exact tests, the pooled shortfall, and what one selection changes."""
    hits, rows = pl.col(".numerator"), pl.col(".denominator")
    other_hits, other_rows = pl.col(".numerator_reference"), pl.col(".denominator_reference")
    below = (5 * hits * other_rows < 4 * other_hits * rows).fill_null(pl.col(".disparity") < _FOUR_FIFTHS)
    # two rates of zero have no ratio
    is_below = pl.when(pl.col(".disparity").is_not_null()).then(below)
    pooled = (hits + other_hits) / (rows + other_rows)
    can_move = (hits < rows) & (other_hits > 0)
    flips = can_move & ((hits + 1) * other_rows > (other_hits - 1) * rows)
    is_compared = is_below.is_not_null() & (pl.col(".group") != pl.col(".reference"))
    within_one = can_move & (5 * (hits + 1) * other_rows >= 4 * (other_hits - 1) * rows)
    return frame.with_columns(
        is_below.alias(".below_four_fifths"),
        (rows * pooled - hits).alias(".shortfall_pooled"),
        # weighted rows have no counts, and no selection that could move
        pl.when(is_below.is_not_null() & flips.is_not_null()).then(is_below & flips).alias(".flips"),
        pl.when(is_below.is_not_null() & within_one.is_not_null()).then(is_below & within_one).alias(".within_one"),
        _exact(frame, mid_p=False).alias(".p_fisher"),
        _exact(frame, mid_p=True).alias(".p_mid_p"),
        pl.when(is_compared & hits.is_not_null() & other_hits.is_null())
        .then(pl.lit("shares people with the group that it is compared with: no exact tests"))
        .otherwise(NOTE)
        .alias(NOTE),
    )


_FOUR_FIFTHS = 0.8
_TABLE = (".numerator", ".denominator", ".numerator_reference", ".denominator_reference")


def _exact(frame: pl.DataFrame, *, mid_p: bool) -> pl.Series:
    """The p-values of Fisher's exact test, where there is a reference."""
    tables = frame.select(_TABLE).cast(pl.Int64)
    is_known = tables.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    p_values = fisher(*(column.to_numpy() for column in tables.filter(is_known)), mid_p=mid_p)
    return pl.Series([None], dtype=pl.Float64).new_from_index(0, len(tables)).scatter(is_known.arg_true(), p_values)


eeoc_uniform_guidelines = NamedAudit(
    name="eeoc_uniform_guidelines",
    title="Adverse impact by the Uniform Guidelines on Employee Selection Procedures, United States",
    version=law.UNIFORM_GUIDELINES.version,
    source=law.UNIFORM_GUIDELINES.source,
    purpose=(
        "the selection rate of each group compared with the highest rate, by the four-fifths rule, in standard "
        "deviations and by exact tests, with shortfalls and the effect of moving a single selection"
    ),
    is_not=(
        "a legal finding: four fifths is a rule of thumb, and the guidelines prescribe no test",
        "a check for age discrimination: the guidelines do not cover age",
        "legal advice",
    ),
    readings=(
        "A ratio is compared with four fifths in whole numbers, so that exactly 0.8 is not below.",
        "Groups are compared within one feature, such as sex or race; combinations only where `by` asks for them.",
        (
            "Shortfall: the further selections with which a group would have the rate of the highest group, rounded "
            "up; or, pooled, the rate of both groups together."
        ),
        (
            "One more selected: one selection moves from the highest group to this group. The difference would flip if "
            "this gives this group the higher rate."
        ),
        law.UNIFORM_GUIDELINES.footnote,
    ),
    tables=(
        ComparisonTable(
            name="adverse_impact",
            heading="Selection rates and adverse impact",
            needs=("estimate",),
            metric=selection_rate,
            test="z",
            derived=(adverse_impact,),
            columns=(
                _APPLICANTS,
                _SELECTED,
                _RATE,
                PublishedColumn(column=".reference", heading="Compared with"),
                _RATIO,
                PublishedColumn(column=".below_four_fifths", heading="Below 4/5"),
                PublishedColumn(column=".deviations", heading="Standard deviations", digits=2),
                PublishedColumn(column=".p_fisher", heading="p (Fisher)", significant=3),
                PublishedColumn(column=".p_mid_p", heading="p (mid-p)", significant=3),
                PublishedColumn(column=".shortfall", heading="Shortfall", digits=0, rounding="up"),
                PublishedColumn(column=".shortfall_pooled", heading="Shortfall (pooled)", digits=1),
                PublishedColumn(column=".flips", heading="Would flip if one more were selected"),
                PublishedColumn(column=".within_one", heading="Would reach 4/5 if one more were selected"),
                _NOTE,
            ),
        ),
    ),
)

"""Audits of decisions on credit: adverse impact ratios, standardized mean differences, and segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import polars as pl

from tidyfair.audits import law
from tidyfair.audits.effect_sizes import Spread, standardized_differences
from tidyfair.audits.named_audits import (
    NOTE,
    AuditCall,
    AuditTable,
    ComparisonTable,
    NamedAudit,
    note,
    read_feature,
)
from tidyfair.audits.published import PublishedColumn
from tidyfair.calling import Metric
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation import read_labels
from tidyfair.inference.testing import stratified
from tidyfair.metrics.classification import base_rate, selection_rate
from tidyfair.specs import CUT_OPTIONS, Column, Options, is_list
from tidyfair.tallies import TRUTH, Cut, Source, open_frame

__all__ = ["SegmentedTable", "StandardizedTable"]

_RESIDUAL = "\0residual"
_NOTE = PublishedColumn(column=NOTE, heading="Note")


def reference_of(call: AuditCall, feature: tuple[Any, ...]) -> object:
    """The reference group of a feature, which the caller has to name."""
    name = read_feature(feature).text
    to: Any = call.to
    reference: object = cast("Mapping[str, object]", to).get(name) if isinstance(to, Mapping) else to
    if reference is None:
        msg = f'audit(): name the group of {name!r} that others are compared with, as `to={{"{name}": "…"}}`.'
        raise ArgumentError(msg)
    return reference


@dataclass(frozen=True, kw_only=True)
class StandardizedTable(AuditTable):
    """A table of standardized mean differences of scores, or of residuals: the truth minus the score.

    Args:
        name: The name of the table in `.tables`.
        heading: The heading of the published table.
        needs: The arguments without which there is no such table: `("probs",)`, or `("truth", "probs")`.
        of_residuals: Compare the truth minus the score, in place of the score.
        spread: The standard deviation, as `audits.standardized_differences` has it.
        columns: The columns as they are published.
    """

    takes_reference: ClassVar[bool] = True
    of_residuals: bool = False
    spread: Spread = "all"

    def frame(self, call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
        """The tidy frame."""
        call.refuse_weights(self.name, "probs", "case_weights")
        source = open_frame(call.data, call.counting.get("group_by"))
        values: Any
        data, values, group_by = call.data, call.counting["probs"], call.counting.get("group_by")
        if self.of_residuals:
            data, values, group_by = _with_residuals(source, call), Column(_RESIDUAL), source.group_by or None
        if call.counts is not None:
            columns = [values if isinstance(values, str) else values.name]
            columns += [call.counting["case_weights"]] if call.counting.get("case_weights") is not None else []
            data, group_by = call.rows(open_frame(data).to_polars(), *columns), source.group_by or None
        read = open_frame(data).read({"value": ("probs", Column.of(values, "probs"))})["value"]
        if len(read) == read.null_count():
            names = [Column.of(call.counting["probs"], "probs").name]
            names += [Column.of(call.truth, "truth").name] if self.of_residuals else []
            msg = f"audit(): the table {self.name!r} has no row with {' and '.join(map(repr, names))}."
            raise ArgumentError(msg)
        to = {read_feature(feature).text: reference_of(call, feature) for feature in call.features}
        result = standardized_differences(
            data, values, by=list(call.features), to=to, spread=self.spread, group_by=group_by,
            case_weights=call.counting.get("case_weights"),
            **audit.group_options, conf_level=call.reading.get("conf_level", 0.95),
        )  # fmt: skip
        return open_frame(result).to_polars().with_columns(note())

    def specification(self) -> str:
        """The table in words."""
        of = "residuals (truth minus score)" if self.of_residuals else "scores"
        return f"standardized mean differences of {of} to a group that the caller names; spread: {self.spread}"


def _with_residuals(source: Source, call: AuditCall) -> pl.DataFrame:
    """The rows with the truth less the score: 1 less the score for the event, its negative for other labels."""
    truth, score = Column.of(call.truth, "truth"), Column.of(call.counting["probs"], "probs")
    rows = source.to_polars()
    read = open_frame(rows).read({"truth": ("truth", truth), "score": ("probs", score)})
    actual, scores = read["truth"], read["score"]
    if not scores.dtype.is_numeric():
        msg = f"`probs`: the column {score.name!r} holds no numbers, which residuals are made of."
        raise ColumnError(msg)
    # fractions that no option calls labels are measured
    are_labels = not actual.dtype.is_float() or bool({"labels", "pos_label"} & call.reading.keys())
    if are_labels or not (actual != actual.round()).any():
        low, high = cast("Any", scores.min()), cast("Any", scores.max())
        if low is not None and not (low >= 0 and high <= 1):
            msg = (
                f"`probs`: {score.name!r} holds values from {low:g} to {high:g}, and residuals of labels need "
                "probabilities, between 0 and 1. Without residuals the scores are compared all the same: leave `truth` "
                "out."
            )
            raise ColumnError(msg)
        actual = _is_event(rows, actual, truth, call)
    return rows.with_columns((actual.cast(pl.Float64) - scores).alias(_RESIDUAL))


def _is_event(rows: pl.DataFrame, actual: pl.Series, truth: Column, call: AuditCall) -> pl.Series:
    """A mask of the rows whose truth is the event, null where it is missing."""
    tally = base_rate.tally(rows, truth.source)
    given = call.reading.get
    labels = read_labels(tally, Options(labels=given("labels"), pos_label=given("pos_label"), estimator="binary"))
    event = labels.values[labels.event or 0]
    # Python compares labels by value, True with 1 and 1.0, and polars by dtype
    same = [value for value in tally.seen[TRUTH] if value == event]
    return actual.is_in(pl.Series(same, dtype=actual.dtype).implode())


@dataclass(frozen=True, kw_only=True)
class SegmentedTable(AuditTable):
    """A table of differences and ratios within segments, as `inference.stratified` has them.

    Args:
        name: The name of the table in `.tables`.
        heading: The heading of the published table.
        needs: The arguments without which there is no such table: `("estimate", "within")`.
        metric: The rate that is compared.
        columns: The columns as they are published.
    """

    takes_reference: ClassVar[bool] = True
    metric: Metric

    def frame(self, call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
        """The tidy frame."""
        call.refuse_weights(self.name, "within")
        groups = audit.group_options
        compared = [self.metric.difference(*by, to=reference_of(call, by), **groups) for by in call.features]
        reading = {name: value for name, value in call.reading.items() if name not in {"times", "seed"}}
        test = stratified(*compared, within=call.within, adjust="none")
        by_segment = [self.metric.difference(*by, *_listed(call.within)) for by in call.features]
        option = next((option for option in CUT_OPTIONS if is_list(call.counting.get(option))), None)
        cuts = [None]
        if option is not None:
            cuts = call.counting[option]
            Cut.of({option: cuts}, {"probs"})
        frames: list[pl.DataFrame] = []
        for cut in cuts:
            counting = call.counting if option is None else {**call.counting, option: cut}
            frame = test.compute(replace(call, counting=counting).tally([*compared, *by_segment]), **reading)
            if option is not None:
                frame = frame.insert_column(frame.columns.index(".strata"), pl.lit(cut).alias(f".{option}"))
            frames.append(frame)
        # reference less group as in the whole, above 0 where differences are adverse
        return pl.concat(frames, how="vertical_relaxed").with_columns(
            (-pl.col(".crude")).alias(".marginal_effect"),
            (-pl.col(".adjusted")).alias(".marginal_effect_within"),
            (-pl.col(".upper")).alias(".marginal_effect_lower"),
            (-pl.col(".lower")).alias(".marginal_effect_upper"),
        )

    def specification(self) -> str:
        """The table in words."""
        return (
            f"{self.metric.name} by group within segments, Mantel and Haenszel's difference from a group that is named "
            "and ratio to it, with tests of no difference and of segments that are alike"
        )


def _listed(columns: Any) -> list[Any]:
    return list(columns) if is_list(columns) else [columns]


def adverse_impact_of_credit(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the difference, the odds ratio, and the ratio of the rates of those who are refused."""
    rate, other = pl.col(".estimate"), pl.col(".estimate_reference")
    is_compared = pl.col(".disparity").is_not_null()
    odds = rate / (1 - rate) / (other / (1 - other))
    columns = {".marginal_effect": other - rate, ".odds_ratio": odds, ".relative_rate": (1 - rate) / (1 - other)}
    return frame.with_columns(
        pl.when(is_compared & value.is_finite()).then(value).alias(name) for name, value in columns.items()
    )


_SMD = (
    PublishedColumn(column=".n", heading="Rows"),
    PublishedColumn(column=".mean", heading="Mean", digits=3),
    PublishedColumn(column=".reference", heading="Compared with"),
    PublishedColumn(column=".disparity", heading="SMD x 100", digits=1, percent=True),
    PublishedColumn(column=".lower", heading="from", digits=1, percent=True),
    PublishedColumn(column=".upper", heading="to", digits=1, percent=True),
    _NOTE,
)

lending_adverse_impact = NamedAudit(
    name="lending_adverse_impact",
    title="Adverse impact of decisions on credit, as practiced in fair lending in the United States",
    version=f"practice as of {law.CHECKED}; {law.REGULATION_B.version}",
    source="the documentation of solas-ai 0.6 (adverse impact ratio, SMD, segments); no regulation names these numbers",
    purpose=(
        "adverse impact ratios to groups that the caller names, differences in points, odds ratios, standardized mean "
        "differences of scores and residuals, and differences and ratios within segments"
    ),
    is_not=(
        "a pass-or-fail rule: limits such as an AIR of 0.8 or an SMD of 30 are conventions, and none is applied here",
        "an analysis of business necessity, or of less discriminatory alternatives",
        "corrected for errors in groups that were guessed from names and addresses",
        "legal advice",
    ),
    readings=(
        "Differences are the rate of the reference minus that of the group; above 0 they are adverse to the group.",
        (
            "Shortfall: the further favorable decisions with which a group would have the rate of the reference. If it "
            "is negative, the group has that many more than it would have at that rate."
        ),
        "Standardized mean differences are group minus reference, in standard deviations of all rows.",
        "With top_fraction, ratios are given for each share of the best scores.",
        "Within segments, similar applicants are compared: by the ratio and the difference of Mantel and Haenszel.",
    ),
    tables=(
        ComparisonTable(
            name="adverse_impact",
            heading="Adverse impact ratios",
            needs=("estimate",),
            metric=selection_rate,
            to=None,
            test="fisher",
            derived=(adverse_impact_of_credit,),
            columns=(
                PublishedColumn(column=".n", heading="Rows"),
                PublishedColumn(column=".numerator", heading="Favorable"),
                PublishedColumn(column=".estimate", heading="Favorable (%)", digits=2, percent=True),
                PublishedColumn(column=".reference", heading="Compared with"),
                PublishedColumn(column=".marginal_effect", heading="Difference (points)", digits=2, percent=True),
                PublishedColumn(column=".disparity", heading="AIR", digits=3),
                PublishedColumn(column=".lower", heading="from", digits=3),
                PublishedColumn(column=".upper", heading="to", digits=3),
                PublishedColumn(column=".odds_ratio", heading="Odds ratio", digits=3),
                PublishedColumn(column=".p_value", heading="p (Fisher)", significant=3),
                PublishedColumn(column=".shortfall", heading="Shortfall", digits=1),
                _NOTE,
            ),
        ),
        SegmentedTable(
            name="segments",
            heading="Within segments",
            needs=("estimate", "within"),
            metric=selection_rate,
            columns=(
                PublishedColumn(column=".other", heading="Compared with"),
                PublishedColumn(column=".strata", heading="Segments"),
                PublishedColumn(column=".marginal_effect", heading="Difference (points)", digits=2, percent=True),
                PublishedColumn(
                    column=".marginal_effect_within", heading="Within segments (points)", digits=2, percent=True
                ),
                PublishedColumn(column=".marginal_effect_lower", heading="from", digits=2, percent=True),
                PublishedColumn(column=".marginal_effect_upper", heading="to", digits=2, percent=True),
                PublishedColumn(column=".ratio", heading="AIR within segments", digits=3),
                PublishedColumn(column=".ratio_lower", heading="AIR from", digits=3),
                PublishedColumn(column=".ratio_upper", heading="AIR to", digits=3),
                PublishedColumn(column=".p_value", heading="p (CMH)", significant=3),
                PublishedColumn(column=".p_homogeneity", heading="p (homogeneity)", significant=3),
                PublishedColumn(column=".p_equal_odds", heading="p (Breslow-Day)", significant=3),
            ),
        ),
        StandardizedTable(name="scores", heading="Scores", needs=("probs",), columns=_SMD),
        StandardizedTable(
            name="residuals", heading="Residuals", needs=("truth", "probs"), of_residuals=True, columns=_SMD
        ),
    ),
)

"""An audit as a document: headline, verdicts, disparities, metrics of all rows, groups, and outer groups in a row."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.cli.audited import MANY_GROUPS
from tidyfair.cli.outputs import Document, Part, in_words, with_cuts_in_words
from tidyfair.errors import Status
from tidyfair.evaluation.group_cells import texts_of
from tidyfair.metric_sets import Metric
from tidyfair.reports.findings import group_in_words, percent
from tidyfair.reports.tables import (
    ALL_ROWS,
    groups_side_by_side,
    has_dropped_rows,
    left_out_in_words,
    one_below_the_other,
    rounded,
)
from tidyfair.specs.options import Options
from tidyfair.specs.result_columns import RESULT_KEYS, key_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidyfair.cli.audited import Audited
    from tidyfair.reports.tables import Note
    from tidyfair.specs.groups import By

_NAME = "\0name"
_EVERYBODY = "all rows"


def document_of(audited: Audited, *, verdicts_only: bool = False) -> Document:
    """The audit as a document."""
    verdicts = audited.verdicts
    headline = [] if verdicts is None else [verdicts.sentence()]
    parts = [] if verdicts is None else [verdicts.part(is_full=audited.options.full)]
    remarks: list[str] = []
    if not verdicts_only:
        parts += [*_results_parts(audited), *(_group_part(audited, by) for by in audited.metrics.bys)]
        if not audited.has_several_cuts:
            headline += [f"{finding.lead} {finding.text}" for finding in audited.findings]
        if audited.level is not None:
            remarks.append(f"Intervals in parentheses are {percent(audited.level)} confidence intervals.")
        if not audited.has_several_cuts and audited.significance.outcomes:
            error = percent(audited.significance.error)
            remarks.append(f"Significant: at the {error} level, adjusted for the number of disparities (Holm).")
    compared = audited.inputs.policy.in_words if audited.metrics.bys else ""
    return Document(_title(audited), tuple(headline), tuple(parts), tuple(remarks), compared)


def _title(audited: Audited) -> str:
    """Facts about the audit."""
    inputs = audited.inputs
    event = audited.metrics.event(audited.tally, Options(**inputs.reading))
    facts = {
        "truth": inputs.truth, "predictions": inputs.estimate, "scores": inputs.counting.get("probs"), "event": event
    }  # fmt: skip
    given = [f"{fact} {value!r}" for fact, value in facts.items() if value is not None]
    return f"Audit of {inputs.name}: {audited.rows:,} rows, {', '.join(given)}"


def _results_parts(audited: Audited) -> list[Part]:
    """The tables of disparities, and of metrics of all rows where there are outer groups."""
    together = with_cuts_in_words(audited.compared_results)
    if not audited.outer:
        return [_disparity_part(by, together) for by in audited.metrics.bys]
    results, outer = with_cuts_in_words(audited.numbers.results), ", ".join(audited.outer)
    if audited.options.full:
        metrics = in_words(_of_metrics(results.filter(pl.col(".by").is_null())))
        of_all_rows = Part(f"Metrics by {outer}", metrics, (), "metric" if "metric" in metrics.columns else "")
        return [of_all_rows, *(_disparity_part(by, results, f" by {outer}") for by in audited.metrics.bys)]
    parts: list[Part] = []
    for by in (None, *(by.text for by in audited.metrics.bys)):
        of_feature = pl.col(".by").eq_missing(pl.lit(by))
        pooled_rows, outer_rows = together.filter(of_feature), results.filter(of_feature)
        table = _of_metrics(pooled_rows).rename({".estimate": ".pooled"}, strict=False)
        compact = in_words(_over_outer_groups(outer_rows, table.drop(".by", strict=False)))
        title = f"Metrics over {outer}" if by is None else f"Disparities of {by} over {outer}"
        notes = notes_on_left_out(compact, pooled_rows, audited.metrics.bys, outer_rows)
        parts.append(Part(title, compact, tuple(notes), "metric"))
    remark = f"Pooled: all rows together. Lowest and highest: of a {outer}, which is in parentheses."
    hint = f"`--full` shows each {outer}; `--output` and `--output-groups` write them."
    parts[-1] = replace(parts[-1], remarks=(remark, hint))
    return parts


def _of_metrics(results: pl.DataFrame) -> pl.DataFrame:
    """Metrics with their values and intervals."""
    hidden = {".n", ".method", ".status", ".group_min", ".group_max", ".base_metric", ".metrics_left_out"}
    return one_below_the_other(results.drop(*hidden, strict=False))


def _over_outer_groups(results: pl.DataFrame, together: pl.DataFrame) -> pl.DataFrame:
    """A row for each metric: the value of all rows, then the mean, lowest and highest value of outer groups.

    Args:
        results: Results of outer groups.
        together: The same results of all rows, as a table of texts; its rows are in the order of the metrics.
    """
    keys = [name for name in (*RESULT_KEYS, ".level") if name in together.columns]
    names = texts_of(results.select(key_columns(results)), ", ").alias(_NAME)
    value, ends = pl.col(".estimate").fill_nan(None), ("lowest", "highest")
    summary = results.with_columns(names).filter(value.is_not_null()).group_by(keys, maintain_order=True).agg(
        value.mean().alias("mean"), value.min().alias("lowest"), value.max().alias("highest"),
        pl.col(_NAME).sort_by(".estimate").first().alias("name of lowest"),
        pl.col(_NAME).sort_by(".estimate").last().alias("name of highest"),
    )  # fmt: skip
    texts = summary.with_columns(rounded(summary[name]) for name in ("mean", *ends))
    named = [pl.format("{} ({})", end, f"name of {end}").alias(end) for end in ends]
    texts = texts.select(*keys, "mean", *named)
    return together.join(texts, on=keys, how="left", nulls_equal=True, maintain_order="left")


def _disparity_part(by: By, results: pl.DataFrame, by_outer: str = "") -> Part:
    """The table of the disparities of a feature."""
    of_feature = results.filter(pl.col(".by") == by.text)
    disparities = _with_sides(by, of_feature.drop(".by", ".n", ".method", strict=False), [".group_min", ".group_max"])
    table = one_below_the_other(disparities)
    if ".base_metric" in table.columns:
        # the metric that is the worst of several stands beside the name of the disparity
        base = pl.col(".base_metric")
        named = pl.when(base != "").then(pl.format("{} ({})", ".metric", base)).otherwise(".metric")
        table = table.with_columns(named.alias(".metric")).drop(".base_metric")
    table = in_words(table)
    notes = notes_on_left_out(table, of_feature, [by])
    up_to = "metric" if "metric" in table.columns else ""
    return Part(f"Disparities of {by.text}{by_outer}", table, tuple(notes), up_to)


def notes_on_left_out(
    table: pl.DataFrame, results: pl.DataFrame, bys: Iterable[By], outer: pl.DataFrame | None = None
) -> list[Note]:
    """The groups that disparities leave out, as notes on the names of the disparities.

    Args:
        table: The disparities as they are shown.
        results: The same disparities, in the same order.
        bys: Their features.
        outer: Those of outer groups, if `results` are of all of them together.
    """
    # an outer key of the user may be called so, too
    *_, name = (name for name in table.columns if name.strip() == "metric")
    words = {by.text: partial(group_in_words, by) for by in bys}
    outer = results.clear() if outer is None else outer
    keys = [key for key in RESULT_KEYS if key in outer.columns]
    notes: list[Note] = []
    for row, result in enumerate(results.iter_slices(1)):
        in_words_of_feature = words.get(result[".by"].item(), str)
        texts = [_left_out_of(result, in_words_of_feature)]
        each = outer.join(result, on=keys, how="semi", nulls_equal=True)
        without = each.filter(pl.col(".left_out").list.len() > 0)
        if len(without):
            of_outer = f"by {', '.join(key_columns(outer))}, in {len(without)} of {len(each)}: "
            texts.append(of_outer + _left_out_of(without, in_words_of_feature))
        if text := "; ".join(filter(None, texts)):
            notes.append((name, row, f"left out: {text}"))
    return notes


def _left_out_of(results: pl.DataFrame, group: Callable[[str], str]) -> str:
    """The groups that any row of results leaves out."""
    return left_out_in_words(results[".left_out"].explode().drop_nulls().to_list(), group)


def _group_part(audited: Audited, by: By) -> Part:
    """The table of the groups of a feature, below the values of all rows."""
    is_full, min_n = audited.options.full, audited.inputs.policy.min_n
    groups = with_cuts_in_words((audited.numbers if is_full else audited.together).groups)
    overall = _without_constants(groups.filter(pl.col(".by").is_null()), audited.metrics.groups)
    of_feature = _with_sides(by, groups.filter(pl.col(".by") == by.text), [".group"])
    shown, hint = of_feature, []
    sizes = of_feature.group_by(".group", maintain_order=True).agg(pl.col(".n").max())
    if len(sizes) > MANY_GROUPS and not is_full:
        largest = sizes.sort(".n", descending=True, maintain_order=True).head(MANY_GROUPS)[".group"]
        shown = of_feature.filter(pl.col(".group").is_in(largest.to_list()))
        number = f"The {MANY_GROUPS} largest of {len(sizes):,} groups"
        hint = [f"{number}; `--full` shows all, and `--output-groups` writes them."]
    table, notes = groups_side_by_side(pl.concat([overall, shown], how="vertical_relaxed"), None, min_n)
    is_hidden = (shown[".n"] < min_n).any()
    remarks = [f"-: hidden, fewer than {min_n} rows."] if is_hidden else []
    if is_hidden or (of_feature[".status"] == Status.UNKNOWN.value).any() or has_dropped_rows(overall, of_feature):
        remarks.append(ALL_ROWS)
    is_overall = pl.col(".by") == _EVERYBODY
    table = table.with_columns(pl.when(is_overall).then(pl.lit(_EVERYBODY)).otherwise(".group").alias(".group"))
    return Part(f"Groups of {by.text}", in_words(table.drop(".by")), tuple(notes), "rows", (*remarks, *hint))


def _with_sides(by: By, results: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Results with the two sides of a feature in words, if it has any."""
    if by.sides is None:
        return results
    words = {side: group_in_words(by, side) for side in ("privileged", "unprivileged", "neither")}
    return results.with_columns(pl.col(columns).replace(words))


def _without_constants(overall: pl.DataFrame, metrics: Iterable[object]) -> pl.DataFrame:
    """The values of all rows without averages over labels that are the same whatever the data."""
    constant = pl.lit(value=False)
    for metric in metrics:
        if isinstance(metric, Metric) and metric.constant_averages:
            is_average = pl.col(".estimator").is_in(metric.constant_averages)
            constant |= (pl.col(".metric") == metric.name) & is_average
    hidden = [name for name in (".estimate", ".lower", ".upper", ".status") if name in overall.columns]
    return overall.with_columns(pl.when(~constant).then(name).alias(name) for name in hidden)

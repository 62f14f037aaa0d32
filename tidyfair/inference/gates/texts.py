"""Texts of `assert_fair`: the outcome, the table of verdicts, what a pass takes, and the groups behind it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric, MetricSet
from tidyfair.errors import listed
from tidyfair.escapes import renamed, visible, visible_texts
from tidyfair.evaluation import OUTSIDE
from tidyfair.inference.gates.verdicts import PASS
from tidyfair.inference.unknown_groups import UNKNOWN_ROWS, UNKNOWN_SHARE, WITH_UNKNOWN
from tidyfair.specs import CUTS, cut_as_settings, key_columns

_EXPLAINED = 5
"""The most disparities whose groups are shown."""
_GROUPS = 12
"""The most groups that are shown of a disparity; of more, the lowest and the highest."""


_COMPARED = (
    ".group", ".one", ".other", ".reference", ".model_one", ".model_other", ".level", ".estimate", ".change",
    ".disparity", ".lower", ".upper", ".limit", ".group_min", ".group_max",
)  # fmt: skip
"""The columns of verdicts that tables show, where there is anything in them."""


def table_of(verdicts: pl.DataFrame) -> str:
    """The text of a table of verdicts."""
    shown = [name for name in _COMPARED if name in verdicts.columns and verdicts[name].null_count() < len(verdicts)]
    named = [".metrics_left_out", ".groups_left_out", ".groups_outside"]
    shown += [name for name in named if name in verdicts.columns and verdicts[name].list.len().sum()]
    if UNKNOWN_ROWS in verdicts.columns and verdicts[UNKNOWN_ROWS].sum():
        shown += [UNKNOWN_ROWS, UNKNOWN_SHARE]
        shown += [WITH_UNKNOWN] if verdicts[WITH_UNKNOWN].null_count() < len(verdicts) else []
    return _as_text(verdicts.select(*key_columns(verdicts), ".metric", ".by", *_cuts(verdicts), *shown, ".verdict"))


def outcome_of(failed: int, unsure: int, total: int) -> str:
    """The start of a sentence on the limits that are not met, and on those without enough evidence."""
    if total == 1:
        return "The limit is not met" if failed else "There is not enough evidence that the limit is met"
    sentences: list[str] = []
    if failed:
        sentences.append(f"{failed} of {total} limits {'is' if failed == 1 else 'are'} not met")
    if unsure:
        share_of_limits = f"{unsure} of {total} limits" if not failed else f"{unsure}"
        sentences.append(f"there is not enough evidence that {share_of_limits} {'is' if unsure == 1 else 'are'} met")
    text = ", and ".join(sentences)
    return text[0].upper() + text[1:]


def way_out(unsure: pl.DataFrame) -> str:
    """The reasons for a lack of evidence, and the ways out that leave the limit as it is."""
    groups: list[str] = []
    if ".groups_left_out" in unsure.columns:
        for names in unsure[".groups_left_out"].to_list():
            groups += names or []
    elif ".status" in unsure.columns:
        groups += unsure.filter(pl.col(".status").is_in(OUTSIDE))[".group"].to_list()
    sentences: list[str] = []
    if groups:
        sentences.append(
            f"Groups that are left out hold a pass back: {listed(dict.fromkeys(groups))}. Join these with others "
            "(`lump_rare`), lower `min_n=`, or state that a pass is not about groups that are small or unknown "
            '(`outside="state"`).'
        )
    if UNKNOWN_ROWS in unsure.columns:
        for by, rows, share in unsure.drop_nulls(WITH_UNKNOWN).select(".by", UNKNOWN_ROWS, UNKNOWN_SHARE).rows():
            sentences.append(
                f"The known groups of {visible(by)} pass, but {unknown_in_words(rows, share)} could turn the verdict: "
                'compared as groups of their own, they do not pass. `unknown="group"` shows that comparison, and '
                '`outside="state"` states that a pass is not about them.'
            )
    return " ".join(sentences or ["More rows make intervals narrower."])


def outside_of(row: Mapping[str, Any]) -> list[str]:
    """The groups that a pass is not about; none if it also holds with them."""
    if row[".verdict"] != PASS or row.get(WITH_UNKNOWN) == PASS:
        return []
    return row.get(".groups_outside") or []


def unknown_in_words(rows: int | None, share: float | None) -> str:
    """The number of rows of unknown groups, and their share of all rows; neither where small counts are suppressed."""
    if rows is None or share is None:
        return "rows of unknown groups"
    return f"{rows:,} {'row' if rows == 1 else 'rows'} of unknown groups ({share_in_words(share)})"


def share_in_words(share: float) -> str:
    """A share in percent, with three digits."""
    return f"{100 * share:.3g}%"


def groups_behind(metrics: MetricSet, failed: pl.DataFrame, groups: pl.DataFrame, side: str) -> Iterator[str]:
    """A paragraph on each disparity that fails: what a pass takes, and the values of its groups with their rows."""
    by_name = {(metric.name, metric.by.text if metric.by else None): metric for metric in metrics}
    outer = key_columns(failed)
    shared = [*outer, *_cuts(failed)]
    for number, row in enumerate(failed.head(_EXPLAINED).iter_rows(named=True)):
        metric = by_name[row[".metric"], row[".by"]]
        name = f"{row['.metric']} of {row['.by']}" if row[".by"] else row[".metric"]
        settings = [f"{key}={row[key]}" for key in outer if row[key] is not None] + cut_as_settings(row)
        name += "".join(f", {setting}" for setting in settings)
        text = f"{visible(name)} {_what_passes(metric, row, side)}"
        if isinstance(metric, GroupwiseMetric):
            same = groups
            if shared:
                this = failed.slice(number, 1).select(shared)
                same = groups.join(this, on=shared, how="semi", nulls_equal=True, maintain_order="left")
            text += f"\n{_as_text(_groups_of(metric, row, same))}"
        yield text
    if len(failed) > _EXPLAINED:
        yield f"The groups of {len(failed) - _EXPLAINED} more are not shown."


def _what_passes(metric: Metric | GroupwiseMetric, row: dict[str, Any], side: str) -> str:
    """The condition of a pass, and the distance of these rows from it."""
    limit, lower, upper = row[".limit"], row[".lower"], row[".upper"]
    bound = "upper" if side == "below" else "lower"
    subject = f"`.{bound}`"
    if _bound_of_each(row) == f".{bound}":
        subject += " of every group"
    text = f"passes if {subject} is {side} {limit:g}"
    if groups := row[".groups_left_out"]:
        verb = "is" if len(groups) == 1 else "are"
        return f"{text} and no group is left out; here {listed(groups)} {verb}."
    if row.get(WITH_UNKNOWN) is not None:
        rows = unknown_in_words(row[UNKNOWN_ROWS], row[UNKNOWN_SHARE])
        return f"{text}, with unknown groups compared too; here there are {rows}."
    if lower is None or upper is None:
        return f"{text}; here it is undefined."
    if side == "below":
        both_signs = max(upper, -lower)
        shown = _rounded_up(both_signs if metric.direction == "zero" else upper)
    else:
        shown = -_rounded_up(-lower)
        if metric.direction == "one" and upper > 1:
            shown = min(shown, -_rounded_up(-1 / upper))
    if not (math.isfinite(shown) and 0 < shown <= max(map(abs, metric.range))):
        return f"{text}; these rows show nothing of the kind."
    return f"{text}; these rows show no more than that it is {side} {shown:.3g}."


def _rounded_up(value: float) -> float:
    """The next larger number of three digits or fewer."""
    if value == 0 or not math.isfinite(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return (math.floor(value / unit) + 1) * unit


def _bound_of_each(row: dict[str, Any]) -> str | None:
    """The bound that holds for each group by itself, because it is a claim about all of them; None if there is none."""
    method = row[".method"] or ""
    return next((f".{end}" for end in ("lower", "upper") if method.endswith(f"{end} end of each group")), None)


def _groups_of(metric: GroupwiseMetric, row: dict[str, Any], groups: pl.DataFrame) -> pl.DataFrame:
    """The groups that a disparity compares, the lowest first, and the bounds that each is judged by."""
    compared = [row[".base_metric"]] if row[".base_metric"] else [base.name for base in metric.metrics]
    groups = groups.filter(pl.col(".by") == row[".by"], pl.col(".metric").is_in(compared))
    if row[".level"] is not None:
        groups = groups.filter(pl.col(".level").eq_missing(pl.lit(row[".level"], groups.schema[".level"])))
    bound = _bound_of_each(row)
    groups = groups.sort(".metric", bound or ".estimate", maintain_order=True, nulls_last=True)
    if len(groups) > _GROUPS:
        groups = pl.concat([groups.head(_GROUPS // 2), groups.tail(_GROUPS // 2)])
    columns = [".metric", ".group", ".estimate", *([bound] if bound else []), ".denominator", ".n"]
    if (groups[".status"] != "ok").any():
        columns.append(".status")
    return groups.select(columns)


def _cuts(verdicts: pl.DataFrame) -> list[str]:
    return [name for name in CUTS if name in verdicts.columns]


def _as_text(frame: pl.DataFrame) -> str:
    """A frame with all of its rows and columns, and visible names."""
    table = visible_texts(frame)
    table.columns = renamed(table.columns)
    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, fmt_str_lengths=200, tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
    ):  # fmt: skip
        return str(table)

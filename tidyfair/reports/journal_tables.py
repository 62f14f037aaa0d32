"""Tables of results as journals print them, made by great_tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import polars as pl

from tidyfair.errors import ArgumentError, Status
from tidyfair.escapes import as_html, visible, visible_texts
from tidyfair.evaluation import texts_of
from tidyfair.metrics import capitalized, in_prose
from tidyfair.reports.plots import (
    CUT_TITLES,
    ENDS,
    GROUP,
    OUTER,
    PAIR,
    PANEL,
    VALUE,
    PlotInput,
    by_words,
    has_intervals,
    listed_names,
    listed_titles,
)
from tidyfair.reports.tables import (
    EVERYBODY,
    NOTHING,
    WITH_INTERVAL,
    column_as_text,
    groups_side_by_side,
    left_out_in_words,
    reason_in_note,
    remarks_on_all_rows,
    worded,
)
from tidyfair.specs import crossed_text, refuse_unknown_settings, string, whole
from tidyfair.specs.result_kinds import CHANGES, COMPONENTS, GROUPS, UNKNOWN_ROWS, kind_of
from tidyfair.tallies import open_frame

__all__ = ["as_table"]

_EVERYBODY, _GROUP = "All rows", "group"
_SUBJECTS = (".error", ".component", ".truth", ".predicted", ".bin", ".smallest", ".subgroup")
"""Columns that name what a row is about, beside metrics, groups, models and periods."""
_IN_NAMES = {
    *_SUBJECTS, ".metric", ".by", ".level", ".group", ".other", ".reference", ".scale", ".before", ".period",
    ".period_lower", ".period_upper", ".model_one", ".model_other",
    ".base_metric", ".metrics_left_out", *CUT_TITLES,
}  # fmt: skip
"""Columns that are the names of rows or in headings."""
_IN_NOTES = {
    ".estimator", ".method", ".test", ".adjustment", ".hypothesis", ".status", ".note", ".conf_level", ".left_out",
    ".groups_left_out", ".groups_outside", ".unknown_share", ".with_unknown", ".replicates_lost",
    ".estimate_reference", ".worst", ".numerator_reference", ".denominator_reference", ".spread", ".flip_flop",
    ".shortfall_pooled",
}  # fmt: skip
"""Columns that are notes, or left out."""
_HEADINGS = {
    ".n": "n", ".n_other": "n, other group", ".estimate_other": "Other group", ".p_value": "P", ".crude": "All rows",
    ".p_adjusted": "P, adjusted", ".p_homogeneity": "P, equal differences", ".p_equal_odds": "P, equal odds ratios",
    ".adjusted": "Within strata", ".raw": "Group alone", ".n_expected": "Expected rows", ".estimate_before": "Before",
    ".lower_bound": "Possible values", ".disparity_lower_bound": "Possible differences", ".min_n": "Least n",
    ".n_missing": "Missing predictions", ".e_value": "e-value", ".epsilon": "Largest possible difference",
    ".below_four_fifths": "Below 4/5", ".flips": "Would flip if one more were selected",
    ".within_one": "4/5 if one more were selected",
}  # fmt: skip
_BETWEEN = ", "
_MINUS = "\N{MINUS SIGN}"
_MISSING = r"(^|, )null\b"
_MARKS = "*\N{DAGGER}\N{DOUBLE DAGGER}\N{SECTION SIGN}\N{PILCROW SIGN}"
"""The marks of footnotes, in their order; then they are doubled."""


@refuse_unknown_settings
def as_table(result: Any, *, title: str | None = None, worst: Any = None, min_n: int = 0) -> Any:
    """A table of a result as a journal prints it, made by great_tables.

    Values of groups, as `by_group` gives them, have a row for each group and a column for each metric; other results a
    row for each of theirs. What all rows share, such as the metric, is the caption, and what many share, such as a
    feature, heads them. A value and the ends of its interval are one cell, whose heading has the level; footnotes say
    why a value is undefined and who is left out.

    Args:
        result: The result of a metric, `by_group`, `compare_groups`, a test, a gate …
        title: The heading.
        worst: The result of `worst_groups` for the same groups: those that are worse than all rows, however the
            intervals of all groups at once are read, are marked.
        min_n: Values of fewer rows are not shown. What is hidden can still be worked out where totals are known.

    Returns:
        A `GT` of great_tables: `.write_raw_html("table.html")`, which Word opens too, or `.as_latex()`.

    Raises:
        ArgumentError: For a frame without rows, or without the columns of a result; and without great_tables.

    >>> from tidyfair import compare_groups, selection_rate
    >>> from tidyfair.datasets import lending
    >>> compared = compare_groups(selection_rate, by="race", to="White", scale="ratio")
    >>> table = as_table(compared(lending(), estimate="approved", pos_label="yes"))
    >>> "Selection rate by race, compared with White" in table.as_raw_html()
    True
    """
    frame = open_frame(result).to_polars()
    kind = kind_of(frame)
    if frame.is_empty() or kind is None:
        msg = "as_table() takes a result of tidyfair that has rows."
        raise ArgumentError(msg)
    whole("min_n", min_n, 0, of="as_table")
    if title is not None:
        string("title", title)
    plot = PlotInput.of(kind, frame)
    if kind is GROUPS and {".n", ".status"} <= set(frame.columns):
        return _table_of_groups(plot, frame, worst, min_n).published(title)
    return _table(plot).published(title)


@dataclass(frozen=True)
class _Name:
    """A part of what rows are about, such as the feature, and its text in each row."""

    heading: str
    texts: pl.Series
    prefix: str = ", "
    """What stands before the text in captions, behind those of other names."""

    @property
    def is_shared(self) -> bool:
        """True if all rows have the same text, or none, as all rows together have no feature."""
        return self.texts.drop_nulls().n_unique() <= 1

    @property
    def captions(self) -> pl.Series:
        """The texts as captions have them, which begin one."""
        return (self.prefix + self.texts).fill_null("")

    @property
    def shared(self) -> str:
        """The text that all rows share, as the caption has it."""
        return self.prefix + self.texts.drop_nulls()[0]


@dataclass(frozen=True)
class _Column:
    """A column of cells."""

    heading: str
    texts: pl.Series
    is_number: bool = True


@dataclass(frozen=True)
class _Table:
    """A table as it is printed."""

    names: Sequence[_Name]
    """What rows are about, from the most general part to the row itself."""
    columns: Sequence[_Column]
    notes: Sequence[tuple[int, int, str]]
    """The number of a column, from 1, or 0 for the name of the row; the row; and the note on that cell."""
    caption: str = ""
    remarks: Sequence[str] = ()

    def published(self, title: str | None) -> Any:
        """The table of great_tables."""
        try:
            gt: Any = import_module("great_tables")
        except ModuleNotFoundError as error:
            msg = f"Tables are made by great_tables: pip install 'tidyfair[report]' ({error})."
            raise ArgumentError(msg) from error
        *heads, stub = [name for name in self.names if not name.is_shared] or self.names[-1:]
        shared = "".join(name.shared for name in self.names if name.is_shared and name is not stub)
        caption = self.caption or shared.strip(_BETWEEN)
        table, notes = self._cells(heads, stub)
        published = gt.GT(table, rowname_col="cells 0", groupname_col="heads" if heads else None)
        labels = {f"cells {place}": _label(gt, column.heading) for place, column in enumerate(self.columns, 1)}
        published = published.cols_label(labels).tab_stubhead(_label(gt, capitalized(stub.heading)))
        published = published.opt_align_table_header("left")
        for place, column in enumerate(self.columns, 1):
            published = published.cols_align("right" if column.is_number else "left", columns=f"cells {place}")
        for remark in (*notes, *self.remarks):
            published = published.tab_source_note(visible(remark))
        lines = [visible(text) for text in (title, capitalized(caption)) if text]
        return published.tab_header(*lines) if lines else published

    def _cells(self, heads: Sequence[_Name], stub: _Name) -> tuple[pl.DataFrame, list[str]]:
        """The names of rows and the texts of columns with the marks of notes, and the notes with theirs."""
        columns = [stub.texts.fill_null(_EVERYBODY), *(column.texts for column in self.columns)]
        texts, marks = [column.fill_null(NOTHING).to_list() for column in columns], dict[str, str]()
        for column, row, note in self.notes:
            repeats, place = divmod(len(marks), len(_MARKS))
            texts[column][row] += marks.setdefault(note, _MARKS[place] * (repeats + 1))
        notes = [f"{mark} {capitalized(note)}." for note, mark in marks.items()]
        # names of columns that no text of the user can be
        named = {f"cells {place}": column for place, column in enumerate(texts)}
        table = visible_texts(pl.DataFrame(named, dict.fromkeys(named, pl.String)))
        if stub.heading == _GROUP:
            known = table["cells 0"].str.replace_all(_MISSING, "${1}unknown")
            table = table.with_columns(pl.Series("cells 0", map(capitalized, known), dtype=pl.String))
        if heads:
            joined = pl.select(pl.concat_str([name.captions for name in heads])).to_series()
            above = [capitalized(visible(text.strip(_BETWEEN))) or None for text in joined]
            table = table.with_columns(pl.Series("heads", above, dtype=pl.String))
        return table, notes


def _label(gt: Any, text: str) -> Any:
    """A heading; great_tables takes braces in plain text for units, and then escapes nothing of it."""
    return gt.html(as_html(text).replace("{", "&#123;").replace("}", "&#125;")) if "{" in text else visible(text)


def _names(plot: PlotInput) -> list[_Name]:
    """What rows are about, from the most general part to the row itself."""
    frame = plot.frame

    def name(heading: str, expr: pl.Expr, prefix: str = ", ") -> _Name:
        return _Name(heading, frame.select(expr.cast(pl.String)).to_series(), prefix)

    names: list[_Name] = []
    if plot.outer:
        outer = " and ".join(plot.outer)
        names.append(name(outer, pl.col(OUTER), ", " if plot.outer == ["fold"] else f", {outer} "))
    has_groups = frame[".group"].count() > 0
    by = pl.col(".by").cast(pl.String).str.replace_all(":", " and ", literal=True)
    if frame[".metric"].count():
        base = pl.format(" ({})", pl.col(".base_metric").map_elements(in_prose, return_dtype=pl.String)).fill_null("")
        names.append(name("metric", pl.col(VALUE) if has_groups else pl.col(PANEL) + base))
    if frame[".by"].count() and (has_groups or not frame[".metric"].count()):
        names.append(name("feature", by, " by "))
    if plot.cut:
        names.append(name(CUT_TITLES[plot.cut], pl.col(plot.cut), f" at {CUT_TITLES[plot.cut]} "))
    if frame[".period"].count():
        names.append(_Name(plot.period or "period", _periods(frame, is_found=plot.kind is CHANGES)))
    if has_groups:
        group = pl.col(PAIR if frame[".other"].count() else GROUP)
        everybody = pl.when(pl.col(".by").is_null()).then(pl.lit(_EVERYBODY)).otherwise(pl.lit("All groups"))
        names.append(name(_GROUP, group.fill_null(everybody)))
    if frame[".model_other"].n_unique() > 1:
        names.append(name("model", pl.col(".model_other")))
    conditions = pl.col(".subgroup").cast(pl.String).str.replace_all(" & ", ", ", literal=True)
    subjects = frame.with_columns(conditions)
    names += [_Name(worded(one), subjects[one].cast(pl.String)) for one in _SUBJECTS if frame[one].count()]
    return names or [name("row", pl.int_range(1, pl.len() + 1))]


def _periods(frame: pl.DataFrame, *, is_found: bool) -> pl.Series:
    """The period of each row, from the one before, or, if a search has found it, with the range in which it may be."""
    period, before, lower, upper = (
        texts_of(frame.select(name)) for name in (".period", ".before", ".period_lower", ".period_upper")
    )
    if frame[".before"].count():
        return before + " to " + period
    if is_found:
        is_known = frame[".period_lower"].is_not_null()
        return ("from " + period + " on (" + lower + " to " + upper + ")").set(~is_known, "no change beyond chance")
    return period


def _table(plot: PlotInput) -> _Table:
    """The table of a result, with a row for each of its rows."""
    names, caption = _names(plot), ""
    if plot.reference:
        shared = "".join(name.shared for name in names[:-1] if name.is_shared)
        caption = f"{shared.strip(_BETWEEN)}, compared with {plot.reference}"
    notes = [(0, row, note) for row, values in enumerate(plot.frame.to_dicts()) if (note := _note_on_row(values))]
    adjustments = plot.frame[".adjustment"].drop_nulls().unique(maintain_order=True)
    remarks = [f"P, adjusted: {text.replace('holm', 'Holm')} tests." for text in adjustments if "none" not in text]
    unknown = plot.frame.filter(pl.col(".unknown") > 0, pl.col(".unknown_share").is_not_null())
    unknown = unknown.unique(".by", keep="first", maintain_order=True)
    for by, rows, share in unknown.select(".by", ".unknown", ".unknown_share").rows():
        remarks.append(f"{rows:,} rows ({share:.1%}) are of unknown {by_words(by)} and not compared.")
    return _Table(names, list(_columns(plot)), notes, caption, remarks)


def _note_on_row(values: Mapping[str, Any]) -> str:
    """Why a row has no value, or who is left out of it."""
    if values[".note"]:
        return values[".note"]
    if values[".left_out"]:
        return f"left out: {left_out_in_words(values['.left_out'], metric=in_prose)}"
    status = values[".status"]
    if status in {None, Status.OK}:
        return ""
    return reason_in_note(status)


def _columns(plot: PlotInput) -> Iterator[_Column]:
    """The columns of cells, values together with their limits."""
    frame = plot.frame
    value = next((one for one in WITH_INTERVAL if frame[one].count() and f"{one}_lower" not in plot.kind.columns), None)
    # beside an interval an error says nothing more, and the share of the rows stands beside their number
    has_shares = frame[".n"].count() > 0 and not {".reference", ".subgroup"}.isdisjoint(plot.kind.columns)
    needless = {
        ".std_error": frame[".lower"].count() > 0, ".share": has_shares, ".unknown": plot.kind is not UNKNOWN_ROWS
    }  # fmt: skip
    hidden = _IN_NOTES.union(name for name, is_needless in needless.items() if is_needless)
    for name in sorted(plot.kind.columns, key=_is_last):
        if name in hidden or not _is_shown(frame[name]):
            continue
        limits = ENDS if name == value else (f"{name}_lower", f"{name}_upper")
        heading, texts = _heading(plot, name) + _level(plot, name, limits), _texts(frame, name, limits)
        if name == value:
            texts = texts.set((frame[".group"] == frame[".reference"]).fill_null(value=False), "Reference")
        if name == ".n" and has_shares and frame[".share"].count():
            heading, shares = "n (%)", [None if share is None else f"{share:.1%}" for share in frame[".share"]]
            texts = pl.select(pl.format("{} ({})", texts, pl.Series(shares, dtype=pl.String))).to_series()
        yield _Column(heading, texts, is_number=frame.schema[name].is_numeric())


def _is_shown(column: pl.Series) -> bool:
    """True for columns with values that are neither the names of rows nor the ends of intervals."""
    is_name = column.name in _IN_NAMES and not column.dtype.is_float()
    return column.count() > 0 and not is_name and not column.name.endswith(("lower", "upper", "upper_bound"))


def _texts(frame: pl.DataFrame, name: str, limits: tuple[str, str]) -> pl.Series:
    """The texts of a column: counts, bounds, p-values, names, and values with their limits."""
    column = frame[name]
    if column.dtype.is_integer() or name == ".n_expected":
        return pl.Series([None if count is None else f"{count:,.0f}" for count in column], dtype=pl.String)
    texts = column_as_text(frame, name, limits=limits)
    if name.endswith("lower_bound"):
        upper = column_as_text(frame, name.replace("lower", "upper"))
        texts = pl.select(pl.format("{} to {}", texts, upper)).to_series()
    if column.dtype.is_float():
        return texts.str.replace_all("-", _MINUS, literal=True)
    return frame.with_columns(texts.alias(name)).select(crossed_text(name)).to_series()


def _is_last(name: str) -> int:
    """The order of columns beside that of their kind: rows, values, p-values, verdicts."""
    if name in {".n", ".n_other", ".n_expected", ".strata"}:
        return -1
    return 2 if name in {".limit", ".margin", ".verdict", ".becomes"} else int(name.startswith(".p_"))


def _heading(plot: PlotInput, name: str) -> str:
    """The heading of a column."""
    frame, titles = plot.frame, list(plot.titles.values())
    model = {".one": ".model_one", ".other": ".model_other"}.get(name, "")
    if model:
        named = frame[model].drop_nulls().unique()
        return named[0] if len(named) == 1 else "Other model"
    if name == ".disparity" and plot.scale:
        return plot.scale
    if name == ".estimate" and plot.kind is COMPONENTS:
        return "Difference"
    if name == ".estimate" and frame[".group"].count() and len(titles) == 1:
        return titles[0]
    return _HEADINGS.get(name, capitalized(worded(name)))


def _level(plot: PlotInput, name: str, limits: tuple[str, str]) -> str:
    """The end of the heading of a column: its kind of limits and their level; empty without limits."""
    if not set(limits) <= set(plot.frame.columns) or not any(plot.frame[end].count() for end in limits):
        return ""
    return f" ({plot.limits.replace(plot.kind.limits, 'range') if name == '.expected' else plot.limits})"


def _table_of_groups(plot: PlotInput, result: pl.DataFrame, worst: Any, min_n: int) -> _Table:
    """The table of values of groups, with a row for each group and a column for each metric."""
    wide, notes = groups_side_by_side(result, worst, min_n)
    is_overall = (pl.col(".by") == EVERYBODY) & (pl.col(".group") == "all")
    wide = wide.with_columns(pl.when(~is_overall).then(name).alias(name) for name in (".by", ".group"))
    titles = plot.titles
    limits = f" ({plot.limits})" if has_intervals(plot.frame) else ""
    shown = wide.columns[-len(titles) :]
    counts = pl.Series([None if count is None else f"{count:,}" for count in wide[".n"]], dtype=pl.String)
    columns = [_Column("n", counts)]
    columns += [_Column(f"{title}{limits}", wide[name]) for name, title in zip(shown, titles.values(), strict=True)]
    of_groups = result.filter(pl.col(".by").is_not_null())
    remarks = remarks_on_all_rows(result.filter(pl.col(".by").is_null()), of_groups, min_n)
    features = listed_names(map(by_words, of_groups[".by"].unique(maintain_order=True)))
    caption = f"{listed_titles(titles.values())} by {features}" if features else ""
    rows = PlotInput.of(plot.kind, wide.drop(shown))
    numbered = [(shown.index(name) + 2, row, note) for name, row, note in notes]
    return _Table(_names(rows), columns, numbered, caption, [*filter(None, remarks)])

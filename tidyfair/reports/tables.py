"""Tables of results that can be published, and blocks of reports: tables, figures and code, as HTML and Markdown."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from tidyfair.errors import ArgumentError, Status
from tidyfair.escapes import as_html, as_text, markdown_row, visible, visible_texts
from tidyfair.specs.arguments import string, whole
from tidyfair.specs.result_columns import key_columns
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["as_table"]

_DIGITS = 3
_INTERVAL = re.compile(r"\((-?[\d.,]+) to (-?[\d.,]+)\)")
_NAMES_IN_SVG = re.compile(r'(id="|="url\(#)((?:gradient|clip)_?\d+)')
NOTHING = "\N{EN DASH}"
_EVERYBODY = "all rows"
_KEYS = (".by", ".group", ".level", ".threshold", ".top_k", ".top_fraction")
_SHOWN, _COUNTED, _NTH, _ROW = "\0shown", "\0counted", "\0nth", "\0row"
"""Internal columns, whose names no column of the user has."""
_LABELS = {
    ".metric": "metric", ".by": "by", ".group": "group", ".level": "label", ".base_metric": "of",
    ".estimator": "estimator", ".estimate": "value", ".n": "rows", ".status": "reason undefined",
    ".group_min": "lowest", ".group_max": "highest", ".limit": "limit", ".verdict": "verdict", ".p_value": "p",
    ".p_adjusted": "p, adjusted", ".threshold": "threshold", ".denominator": "rows that count",
    ".expected": "expected", ".difference": "difference", ".method": "method", ".std_error": "standard error",
    ".p_worst": "probability of being the worst",
}  # fmt: skip
"""Columns of results in words; others lose their dot."""
_OF_GROUPS = {".group", ".metric", ".estimate", ".n", ".status"}
"""Columns by which a result of `by_group` is known, if it has no disparities: rankings of groups have no status."""
_WITH_INTERVAL = (".disparity", ".adjusted", ".change", ".difference", ".estimate")
"""Columns of values, the first of which in a result is what its interval is about."""
_HIDDEN = {".estimator", ".lower", ".upper", ".groups_left_out", ".replicates_lost"}
"""Columns that are not shown."""
_BLANK = {".base_metric", ".status", ".metrics_left_out"}
"""Columns in which a missing value is left blank."""


def as_table(result: Any, *, title: str | None = None, worst: Any = None, min_n: int = 0) -> Any:
    """A table of a result that can be published, made by great_tables.

    Values of groups, as `by_group` gives them, have a row for each group and a column for each metric; other results a
    row for each of theirs. Values and the ends of their intervals are put together; what has no value has a footnote
    that says why.

    Args:
        result: The result of a metric, `by_group`, a test, a gate …
        title: The heading.
        worst: The result of `worst_groups` for the same groups: those that are worse than all rows, however the
            intervals of all groups at once are read, are marked.
        min_n: Values of fewer rows are not shown. What is hidden can still be worked out where totals are known.

    Returns:
        A `GT` of great_tables.

    Raises:
        ArgumentError: For a frame without rows, or without the columns of a result; and without great_tables.

    >>> from tidyfair import demographic_parity
    >>> from tidyfair.datasets import lending
    >>> groups = demographic_parity("race").by_group(lending(), estimate="approved", pos_label="yes")
    >>> "Hispanic" in as_table(groups).as_raw_html()
    True
    """
    frame = open_frame(result).to_polars()
    if frame.is_empty() or key_columns(frame) == frame.columns:
        msg = "as_table() takes a result of tidyfair that has rows."
        raise ArgumentError(msg)
    whole("min_n", min_n, 0, of="as_table")
    if title is not None:
        string("title", title)
    if set(frame.columns) >= _OF_GROUPS and ".disparity" not in frame.columns:
        table, notes = groups_side_by_side(frame, worst, min_n)
        return _published(table, notes, title, remark=too_few(min_n))
    return _published(one_below_the_other(frame), [], title)


def too_few(min_n: int) -> str:
    """The remark on values that are not shown."""
    return f"{NOTHING}: of fewer than {min_n} rows, and not shown" if min_n > 0 else ""


_Note: TypeAlias = tuple[str, int, str]
"""A column, a row, and the note on that cell."""


def groups_side_by_side(frame: pl.DataFrame, worst: Any, min_n: int) -> tuple[pl.DataFrame, list[_Note]]:
    """A row for each group, a column for each metric, and the notes on cells."""
    outer = key_columns(frame)
    keys = outer + [name for name in _KEYS if name in frame.columns]
    if ".level" in keys and frame[".level"].null_count() == len(frame):
        keys.remove(".level")
    metrics = frame[".metric"].unique(maintain_order=True).to_list()
    # an outer column may have the name of a metric
    columns: dict[str, str] = {}
    for metric in metrics:
        columns[metric] = f"{metric} " if metric in outer else metric
    enough = pl.when(pl.col(".n") >= min_n)
    frame = frame.with_columns(enough.then(_with_interval(frame)).alias(_SHOWN), enough.then(".n").alias(_COUNTED))
    # different groups can have the same text
    frame = frame.with_columns(pl.int_range(pl.len()).over(*keys, ".metric").alias(_NTH))
    cells = [_cell(metric).alias(column) for metric, column in columns.items()]
    wide = frame.group_by(*keys, _NTH, maintain_order=True).agg(pl.col(_COUNTED).max().alias(".n"), *cells)
    index = wide.select(*keys, _NTH).with_row_index(_ROW)
    indexed = frame.join(index, on=[*keys, _NTH], how="left", nulls_equal=True, maintain_order="left")
    notes = _undefined(indexed, columns, min_n)
    if worst is not None:
        worse = _worse(open_frame(worst).to_polars(), frame, outer)
        marked = worse.join(index, on=[*outer, ".by", ".group"], how="inner", nulls_equal=True)
        for metric, row in marked.select(".metric", _ROW).rows():
            if metric in columns:
                notes.append((columns[metric], row, "worse than all rows together, however many groups are looked at"))
    wide = wide.with_columns(pl.col(".by").fill_null(_EVERYBODY), pl.col(".group").fill_null("all"))
    return wide.drop(_NTH), notes


def _undefined(frame: pl.DataFrame, columns: Mapping[str, str], min_n: int) -> list[_Note]:
    """The reasons why shown cells have no value."""
    if ".status" not in frame.columns:
        return []
    notes: list[_Note] = []
    for metric, row, status, size in frame.select(".metric", _ROW, ".status", ".n").rows():
        if status not in {Status.OK, None} and size >= min_n:
            notes.append((columns[metric], row, Status.text_of(status)))
    return notes


def _cell(name: str) -> pl.Expr:
    """The value of a metric: null where it is undefined, empty where the group has no row of the metric."""
    values = pl.col(_SHOWN).filter(pl.col(".metric") == name)
    return pl.when(values.len() > 0).then(values.first()).otherwise(pl.lit(""))


def _worse(worst: pl.DataFrame, frame: pl.DataFrame, outer: list[str]) -> pl.DataFrame:
    """The groups whose simultaneous interval leaves out the value of all rows, on its bad side."""
    if not {*outer, ".metric", ".by", ".group", ".lower", ".upper", ".worst"} <= set(worst.columns):
        msg = "`worst` is what `worst_groups(…)` has given for the same groups."
        raise ArgumentError(msg)
    if not frame[".by"].has_nulls():
        msg = (
            "`worst` marks groups that are worse than all rows, which the result does not hold: add the metric itself."
        )
        raise ArgumentError(msg)
    overall = frame.filter(pl.col(".by").is_null()).select(*outer, ".metric", pl.col(".estimate").alias("overall"))
    groups = worst.drop_nulls(".by").join(overall, on=[*outer, ".metric"], how="inner", nulls_equal=True)
    below, above = pl.col(".upper") < pl.col("overall"), pl.col(".lower") > pl.col("overall")
    return groups.filter(pl.when(pl.col(".worst") == "lowest").then(below).otherwise(above))


def one_below_the_other(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of a result as texts, with one column for a value and its interval."""
    if ".status" in frame.columns:
        # a value that is defined needs no reason
        frame = frame.with_columns(pl.when(pl.col(".status") != Status.OK).then(".status").alias(".status"))
    # beside an interval an error says nothing more
    hidden = _HIDDEN | {".std_error"} if ".lower" in frame.columns else _HIDDEN
    columns: list[pl.Series] = []
    for column in frame:
        if column.name in hidden:
            continue
        text = _as_texts(frame, column)
        if text.null_count() == len(text):
            continue
        if column.name in _BLANK:
            # a single metric has no base metric, and nothing is left out of most
            text = text.fill_null("")
        columns.append(text)
    return pl.DataFrame(columns)


def _as_texts(frame: pl.DataFrame, column: pl.Series) -> pl.Series:
    """A column of a result as it is shown."""
    values = [name for name in _WITH_INTERVAL if name in frame.columns]
    # the first of several is what the interval is about
    if column.name in values[:1]:
        return _with_interval(frame, column.name)
    if column.dtype == pl.List:
        texts = column.cast(pl.List(pl.String)).list.join(", ")
        return texts.set(texts == "", None)
    if not column.dtype.is_float():
        return column
    return as_p_value(column) if column.name.startswith(".p_") else rounded(column)


def _with_interval(frame: pl.DataFrame, value: str = ".estimate") -> pl.Series:
    """Values with their intervals, if there are any, as text."""
    texts = rounded(frame[value])
    if not {".lower", ".upper"} <= set(frame.columns):
        return texts
    lower, upper = rounded(frame[".lower"]), rounded(frame[".upper"])
    return pl.Series(value, map(_between, texts, lower, upper), dtype=pl.String)


def _between(text: str | None, low: str | None, high: str | None) -> str | None:
    """A value with its interval, which may have one end only."""
    if text is None or (low is None and high is None):
        return text
    if low is None:
        return f"{text} (up to {high})"
    if high is None:
        return f"{text} (from {low})"
    return f"{text} ({low} to {high})"


def rounded(numbers: pl.Series) -> pl.Series:
    """Numbers as text, with three decimals."""
    # z: what is rounded to 0 has no sign
    texts: list[str | None] = []
    for number in numbers:
        text = None if number is None else f"{number:z,.{_DIGITS}f}"
        texts.append(text)
    return pl.Series(numbers.name, texts, dtype=pl.String)


def as_p_value(numbers: pl.Series) -> pl.Series:
    """P-values as text; a very small one is not 0."""
    small = 10**-_DIGITS
    return rounded(numbers).set((numbers < small).fill_null(value=False), f"< {small}")


def _published(
    table: pl.DataFrame, notes: Sequence[_Note], title: str | None, *, remark: str = "", name: str | None = None
) -> Any:
    """The table of great_tables."""
    gt = _great_tables()
    table = visible_texts(table)
    several = {".by", ".group"} <= set(table.columns) and table[".by"].n_unique() > 1
    labels = {column: _label(gt, column) for column in table.columns}
    if several:
        # the features head the rows of their groups
        del labels[".by"]
        published = gt.GT(table, groupname_col=".by", id=name)
    else:
        published = gt.GT(table, id=name)
    published = published.cols_label(labels)
    integers = [column for column, dtype in table.schema.items() if dtype.is_integer()]
    if integers:
        published = published.fmt_integer(columns=integers)
    published = published.sub_missing(missing_text=NOTHING)
    for column, row, note in notes:
        published = published.tab_footnote(visible(note), locations=gt.loc.body(columns=column, rows=[row]))
    if remark:
        published = published.tab_source_note(visible(remark))
    return published.tab_header(visible(title)) if title else published


def _label(gt: Any, name: str) -> Any:
    """The head of a column; great_tables takes braces in plain text for units, and then escapes nothing of it."""
    return gt.html(as_html(_worded(name)).replace("{", "&#123;").replace("}", "&#125;"))


@dataclass(frozen=True)
class Section:
    """A heading, and the blocks below it: texts, tables, figures and code."""

    heading: str
    blocks: tuple[Any, ...]

    def html(self, index: int) -> str:
        """As a section of a page."""
        parts: list[str] = []
        for number, block in enumerate(self.blocks):
            if isinstance(block, str):
                parts.append(f"<p>{as_html(block)}</p>")
            else:
                parts.append(block.html(f"part-{index}-{number}"))
        body = "\n".join(parts)
        return f"<section>\n<h2>{as_html(self.heading)}</h2>\n{body}\n</section>\n"

    def markdown(self) -> str:
        """As a section of a Markdown file."""
        parts = [f"## {as_text(self.heading)}\n\n"]
        for block in self.blocks:
            text = as_text(block) if isinstance(block, str) else block.markdown()
            if text:
                parts.append(f"{text}\n\n")
        return "".join(parts)


@dataclass(frozen=True)
class Table:
    """A table of texts, with notes on its cells and a remark below it."""

    table: pl.DataFrame
    notes: tuple[_Note, ...] = ()
    remark: str = ""

    def html(self, name: str) -> str:
        """As great_tables writes it."""
        # an interval stays on a line
        unbroken = pl.col(pl.String).str.replace_all(_INTERVAL.pattern, "(${1}\u00a0to\u00a0${2})")
        published = _published(self.table.with_columns(unbroken), self.notes, None, remark=self.remark, name=name)
        return f'<div class="table">{published.as_raw_html()}</div>'

    def markdown(self) -> str:
        """As a Markdown table, with its notes and its remark below."""
        marks: dict[str, int] = {}
        marked: dict[tuple[str, int], str] = {}
        for column, row, text in self.notes:
            number = marks.setdefault(text, len(marks) + 1)
            marked[column, row] = f" [{number}]"
        names = self.table.columns
        lines = [markdown_row(list(map(_worded, names))), markdown_row(["---"] * len(names))]
        for row, values in enumerate(self.table.rows()):
            cells: list[str] = []
            for name, value in zip(names, values, strict=True):
                text = NOTHING if value is None else str(value)
                cells.append(text + marked.get((name, row), ""))
            lines.append(markdown_row(cells))
        below = [f"[{number}] {text}" for text, number in marks.items()]
        if self.remark:
            below.append(self.remark)
        return "\n\n".join(["\n".join(lines), *map(as_text, below)])


@dataclass(frozen=True)
class Figure:
    """A chart, and a table of the same for files without images."""

    chart: Any
    instead: Table | None = None

    def html(self, name: str) -> str:
        """As an image that is part of the page, with a description in words."""
        image = StringIO()
        self.chart.save(image, format="svg")
        svg = _with_stable_names(image.getvalue())
        source = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
        return f'<figure id="{name}"><img src="{source}" alt="{as_html(self.chart.description)}"></figure>'

    def markdown(self) -> str:
        """As its table, or nothing."""
        return self.instead.markdown() if self.instead else ""


def _with_stable_names(svg: str) -> str:
    """An SVG whose ids do not depend on the images that were drawn before it."""
    names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        name = names.setdefault(match[2], f"part_{len(names)}")
        return match[1] + name

    return _NAMES_IN_SVG.sub(renamed, svg)


@dataclass(frozen=True)
class Code:
    """Lines of code."""

    text: str

    def html(self, name: str) -> str:
        """As preformatted text."""
        return f'<pre id="{name}"><code>{escape(visible(self.text, lines=True))}</code></pre>'

    def markdown(self) -> str:
        """As an indented block."""
        lines = visible(self.text, lines=True).split("\n")
        return "\n".join(map("    {}".format, lines))


def _worded(name: str) -> str:
    """A column of results in words."""
    return _LABELS.get(name, name.removeprefix(".").replace("_", " "))


def need_packages() -> None:
    """Say what to install, before anything is counted."""
    try:
        for name in ("great_tables", "altair", "vl_convert"):
            import_module(name)
    except ModuleNotFoundError as error:
        packages = "great_tables, altair and vl-convert-python"
        msg = f"Reports are made by {packages}: pip install 'tidyfair[report]' ({error})."
        raise ArgumentError(msg) from error


def _great_tables() -> Any:
    """The package that makes tables, or an error that says what to install."""
    try:
        import great_tables  # noqa: PLC0415 - only where tables are made
    except ModuleNotFoundError as error:
        msg = f"Tables are made by great_tables: pip install 'tidyfair[report]' ({error})."
        raise ArgumentError(msg) from error
    return great_tables

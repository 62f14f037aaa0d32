"""Parts of a report: tables of results that can be published, pictures and code, as HTML and as Markdown."""

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
from tidyfair.escapes import visible, visible_texts
from tidyfair.specs.arguments import string, whole
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
"""Columns of ours, which no column of the user is called."""
_LABELS = {
    ".metric": "metric", ".by": "by", ".group": "group", ".level": "label", ".base_metric": "of",
    ".estimator": "estimator", ".estimate": "value", ".n": "rows", ".status": "why there is none",
    ".group_min": "lowest", ".group_max": "highest", ".limit": "limit", ".verdict": "verdict", ".p_value": "p",
    ".p_adjusted": "p, adjusted", ".threshold": "threshold", ".denominator": "rows that count",
    ".expected": "expected", ".difference": "difference", ".method": "method",
}  # fmt: skip
"""Columns of results in words; others lose their dot."""


def as_table(result: Any, *, title: str | None = None, worst: Any = None, min_n: int = 0) -> Any:
    """A table of a result that can be published, made by great_tables.

    Values of groups, as `by_group` gives them, have a row for each group and a column for each metric; other results a
    row for each of theirs. Values and the ends of their intervals are put together; what has no value has a footnote
    that says why.

    Args:
        result: What a metric, `by_group`, a test, a gate … has given.
        title: The heading.
        worst: What `worst_groups` has given for the same groups: those that are worse than all rows, however the
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
    if frame.is_empty() or not any(name.startswith(".") for name in frame.columns):
        msg = "as_table() takes a result of tidyfair that has rows."
        raise ArgumentError(msg)
    whole("min_n", min_n, 0, of="as_table")
    if title is not None:
        string("title", title)
    grouped = {".group", ".metric", ".estimate", ".n"} <= set(frame.columns)
    wide, notes = groups_side_by_side(frame, worst, min_n) if grouped else (one_below_the_other(frame), list[_Note]())
    return _published(wide, notes, title, remark=too_few(min_n) if grouped else "")


def too_few(min_n: int) -> str:
    """The remark on values that are not shown."""
    return f"{NOTHING}: of fewer than {min_n} rows, and not shown" if min_n > 0 else ""


_Note: TypeAlias = tuple[str, int, str]
"""A column, a row, and what is said of them."""


def groups_side_by_side(frame: pl.DataFrame, worst: Any, min_n: int) -> tuple[pl.DataFrame, list[_Note]]:
    """A row for each group, a column for each metric, and the notes on cells."""
    outer = [name for name in frame.columns if not name.startswith(".")]
    keys = [*outer, *(name for name in _KEYS if name in frame.columns)]
    if ".level" in keys and frame[".level"].null_count() == len(frame):
        keys.remove(".level")
    metrics = frame[".metric"].unique(maintain_order=True).to_list()
    # a column of the user may be called as a metric is
    columns = {metric: f"{metric} " if metric in outer else metric for metric in metrics}
    enough = pl.when(pl.col(".n") >= min_n)
    frame = frame.with_columns(enough.then(_valued(frame)).alias(_SHOWN), enough.then(".n").alias(_COUNTED))
    # groups that read alike are not one
    frame = frame.with_columns(pl.int_range(pl.len()).over(*keys, ".metric").alias(_NTH))
    wide = frame.group_by(*keys, _NTH, maintain_order=True).agg(
        pl.col(_COUNTED).max().alias(".n"),
        *(_cell(metric).alias(column) for metric, column in columns.items()),
    )
    index = wide.select(*keys, _NTH).with_row_index(_ROW)
    about = frame.join(index, on=[*keys, _NTH], how="left", nulls_equal=True, maintain_order="left")
    notes = _undefined(about, columns, min_n)
    if worst is not None:
        worse = _worse(open_frame(worst).to_polars(), frame, outer)
        marked = worse.join(index, on=[*outer, ".by", ".group"], how="inner", nulls_equal=True)
        for metric, row in marked.select(".metric", _ROW).rows():
            if metric in columns:
                notes.append((columns[metric], row, "worse than all rows together, however many groups are looked at"))
    wide = wide.with_columns(pl.col(".by").fill_null(_EVERYBODY), pl.col(".group").fill_null("all"))
    return wide.drop(_NTH), notes


def _undefined(frame: pl.DataFrame, columns: Mapping[str, str], min_n: int) -> list[_Note]:
    """Why cells that are shown have no value."""
    if ".status" not in frame.columns:
        return []
    notes: list[_Note] = []
    for metric, row, status, size in frame.select(".metric", _ROW, ".status", ".n").rows():
        if status not in {Status.OK, None} and size >= min_n:
            notes.append((columns[metric], row, Status.text_of(status)))
    return notes


def _cell(name: str) -> pl.Expr:
    """The value of a metric, null where there is none, and empty where nobody asked for it."""
    values = pl.col(_SHOWN).filter(pl.col(".metric") == name)
    return pl.when(values.len() > 0).then(values.first()).otherwise(pl.lit(""))


def _worse(worst: pl.DataFrame, frame: pl.DataFrame, outer: list[str]) -> pl.DataFrame:
    """The groups whose interval, of all groups at once, leaves out the value of all rows, on its bad side."""
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
    """The rows of a result, with a column for a value and its interval."""
    hidden = {".estimator", ".std_error", ".lower", ".upper", ".groups_left_out", ".replicates_lost"}
    if ".status" in frame.columns:
        # what is as it should be needs no reason
        frame = frame.with_columns(pl.when(pl.col(".status") != Status.OK).then(".status").alias(".status"))
    shown = list[pl.Series]()
    for column in frame:
        if column.name == ".estimate" or (column.name == ".difference" and ".lower" in frame.columns):
            shown.append(_valued(frame, column.name))
        elif column.dtype == pl.List:
            texts = column.cast(pl.List(pl.String)).list.join(", ")
            shown.append(texts.set(texts == "", None))
        else:
            written = as_p_value if column.name.startswith(".p_") else rounded
            shown.append(written(column) if column.dtype.is_float() else column)
    said = [column for column in shown if column.name not in hidden and column.null_count() < len(column)]
    # of a single metric, and of what is as it should be, there is nothing to say
    blank = {".base_metric", ".status", ".metrics_left_out"}
    return pl.DataFrame([column.fill_null("") if column.name in blank else column for column in said])


def _valued(frame: pl.DataFrame, value: str = ".estimate") -> pl.Series:
    """A value and its interval, where there is one, in as many digits as are read."""
    texts = rounded(frame[value])
    if not {".lower", ".upper"} <= set(frame.columns):
        return texts
    value_low_high = (texts, rounded(frame[".lower"]), rounded(frame[".upper"]))
    return pl.Series(value, map(_between, *value_low_high), dtype=pl.String)


def _between(text: str | None, low: str | None, high: str | None) -> str | None:
    """A value with the ends of its interval that there are."""
    if text is None or (low is None and high is None):
        return text
    if low is None or high is None:
        return f"{text} (up to {high})" if low is None else f"{text} (from {low})"
    return f"{text} ({low} to {high})"


def rounded(numbers: pl.Series) -> pl.Series:
    """Numbers in as many digits as are read, as text."""
    # what is rounded to nothing has no sign
    texts = [None if each is None else f"{each:z,.{_DIGITS}f}" for each in numbers]
    return pl.Series(numbers.name, texts, dtype=pl.String)


def as_p_value(numbers: pl.Series) -> pl.Series:
    """P-values as they are written: what is very small is not 0."""
    small = 10**-_DIGITS
    return rounded(numbers).set((numbers < small).fill_null(value=False), f"< {small}")


def _published(
    table: pl.DataFrame, notes: Sequence[_Note], title: str | None, *, remark: str = "", name: str | None = None
) -> Any:
    """The table of great_tables."""
    gt = _great_tables()
    table = visible_texts(table)
    features = table[".by"].n_unique() > 1 if ".by" in table.columns and ".group" in table.columns else False
    made = gt.GT(table, groupname_col=".by", id=name) if features else gt.GT(table, id=name)
    made = made.cols_label({name: _label(gt, name) for name in table.columns if name != ".by" or not features})
    numbers = [name for name, dtype in table.schema.items() if dtype.is_integer()]
    made = made.fmt_integer(columns=numbers) if numbers else made
    made = made.sub_missing(missing_text=NOTHING)
    for column, row, note in notes:
        made = made.tab_footnote(visible(note), locations=gt.loc.body(columns=column, rows=[row]))
    made = made.tab_source_note(visible(remark)) if remark else made
    return made.tab_header(visible(title)) if title else made


def _label(gt: Any, name: str) -> Any:
    """The head of a column; great_tables takes braces in plain text for units, and then escapes nothing of it."""
    return gt.html(as_html(_worded(name)).replace("{", "&#123;").replace("}", "&#125;"))


@dataclass(frozen=True)
class Part:
    """A heading, and what stands below it: words, tables and pictures."""

    heading: str
    blocks: tuple[Any, ...]

    def html(self, place: int) -> str:
        """As a section of a page."""
        written = [
            f"<p>{as_html(block)}</p>" if isinstance(block, str) else block.html(f"part-{place}-{number}")
            for number, block in enumerate(self.blocks)
        ]
        return f"<section>\n<h2>{as_html(self.heading)}</h2>\n{chr(10).join(written)}\n</section>\n"

    def markdown(self) -> str:
        """As a section of a Markdown file."""
        written = [as_text(block) if isinstance(block, str) else block.markdown() for block in self.blocks]
        return f"## {as_text(self.heading)}\n\n" + "".join(f"{each}\n\n" for each in written if each)


@dataclass(frozen=True)
class Shown:
    """A table of texts, and what is said of its cells."""

    table: pl.DataFrame
    notes: tuple[_Note, ...] = ()
    remark: str = ""

    def html(self, name: str) -> str:
        """As great_tables writes it."""
        # an interval stays on a line
        unbroken = pl.col(pl.String).str.replace_all(_INTERVAL.pattern, "(${1}\u00a0to\u00a0${2})")
        made = _published(self.table.with_columns(unbroken), self.notes, None, remark=self.remark, name=name)
        return f'<div class="table">{made.as_raw_html()}</div>'

    def markdown(self) -> str:
        """As a Markdown table, with what is said of its cells below."""
        marks = {text: str(number + 1) for number, text in enumerate(dict.fromkeys(text for _, _, text in self.notes))}
        marked = {(column, row): f" [{marks[text]}]" for column, row, text in self.notes}
        names = self.table.columns
        lines = [[_worded(name) for name in names], ["---"] * len(names)]
        for row, values in enumerate(self.table.rows()):
            texts = [NOTHING if value is None else str(value) for value in values]
            lines.append([text + marked.get((name, row), "") for name, text in zip(names, texts, strict=True)])
        written = "\n".join(f"| {' | '.join(map(as_text, line))} |" for line in lines)
        notes = [*(f"[{number}] {text}" for text, number in marks.items()), *([self.remark] if self.remark else [])]
        return written + "".join(f"\n\n{as_text(note)}" for note in notes)


@dataclass(frozen=True)
class Drawn:
    """A picture, and a table of the same where there are no pictures."""

    chart: Any
    instead: Shown | None = None

    @property
    def told(self) -> str:
        """What it shows, in words."""
        return self.chart.description

    def html(self, name: str) -> str:
        """As an image that is part of the page, with its words beside it."""
        image = StringIO()
        self.chart.save(image, format="svg")
        # names within a picture are counted on from those drawn before, and so would differ each time
        known = dict[str, str]()
        svg = _NAMES_IN_SVG.sub(
            lambda found: found[1] + known.setdefault(found[2], f"part_{len(known)}"), image.getvalue()
        )
        source = f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
        return f'<figure id="{name}"><img src="{source}" alt="{as_html(self.told)}"></figure>'

    def markdown(self) -> str:
        """As its table, or nothing."""
        return self.instead.markdown() if self.instead else ""


@dataclass(frozen=True)
class Code:
    """Lines of code."""

    text: str

    def html(self, name: str) -> str:
        """As it stands."""
        return f'<pre id="{name}"><code>{escape(visible(self.text, lines=True))}</code></pre>'

    def markdown(self) -> str:
        """As it stands."""
        return "\n".join(f"    {line}" for line in visible(self.text, lines=True).split("\n"))


def _worded(name: str) -> str:
    return _LABELS.get(name, name.removeprefix(".").replace("_", " "))


def as_html(text: str) -> str:
    """A text that means nothing in HTML but itself."""
    return escape(visible(text))


def as_text(text: str) -> str:
    """A text that means nothing in Markdown or HTML but itself."""
    marked = re.sub(r"([\\`*_~|\[\]#{}$@^]|:(?=//)|(?<=www)\.)", r"\\\1", visible(text))
    return escape(marked, quote=False)


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
    try:
        import great_tables  # noqa: PLC0415 - only where tables are made
    except ModuleNotFoundError as error:
        msg = f"Tables are made by great_tables: pip install 'tidyfair[report]' ({error})."
        raise ArgumentError(msg) from error
    return great_tables

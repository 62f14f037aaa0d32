"""Tables of results that can be published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, Status
from tidyfair.escapes import as_html, visible, visible_texts
from tidyfair.specs import GROUP_KEYS, RESERVED, Frame, key_columns, open_ends, refuse_unknown_settings, string, whole
from tidyfair.specs.result_kinds import GROUPS, kind_of
from tidyfair.tallies import open_frame

if TYPE_CHECKING:
    from great_tables import GT

__all__ = ["as_table", "plain_names"]

_DIGITS = 3
_HUNDRED, _THOUSAND = 100, 1_000
"""Numbers from which on there is one decimal, and none."""
NOTHING = "\N{EN DASH}"
WORSE = "significantly worse than all rows together, adjusted for the number of groups"
ALL_ROWS = "All rows include the rows of groups that are unknown or hidden."
_EVERYBODY = "all rows"
_REASONS: dict[str, str] = {
    Status.ZERO_DENOMINATOR: "no row of the group counts for this metric",
    Status.ONE_CLASS: "all rows of the group have the same label",
    Status.NO_EVENTS: "no row of the group has the event",
    Status.TOO_FEW_GROUPS: "there are fewer than two groups to compare",
    Status.UNSEEN_EVENT: "the event does not occur",
    Status.UNKNOWN: "the group is unknown and therefore not compared",
    Status.UNDEFINED_GROUP: "a group has no value",
    Status.BELOW_MIN_N: "too few rows",
    Status.BELOW_MIN_SHARE: "too small a share of the rows",
    Status.NO_COMPARABLE_PAIRS: "no row of the group outlives another one that has the event",
    Status.ALL_CENSORED: "all rows of the group are censored before the time",
    Status.CONSTANT: "all values of the group are the same",
}
"""Reasons why a value is undefined, as a reader needs them."""
_UNKNOWN = "unknown"
_MOST_LEFT_OUT = 6
"""The most groups that are named as left out of a disparity."""
_SHOWN, _COUNTED, _NTH, _ROW = "\0shown", "\0counted", "\0nth", "\0row"
"""Internal columns, whose names no column of the user has."""
_LABELS = {
    ".metric": "metric", ".by": "by", ".group": "group", ".level": "label", ".base_metric": "of",
    ".estimator": "estimator", ".estimate": "value", ".n": "rows", ".status": "reason undefined",
    ".group_min": "lowest", ".group_max": "highest", ".limit": "limit", ".verdict": "verdict", ".p_value": "p",
    ".p_adjusted": "p, adjusted", ".threshold": "threshold", ".denominator": "rows that count",
    ".expected": "expected", ".difference": "difference", ".method": "method", ".std_error": "standard error",
    ".p_worst": "probability of being the worst", ".eval_time": "time", ".quantile_level": "quantile level",
}  # fmt: skip
"""Columns of results in words; others lose their dot."""
_WITH_INTERVAL = (".disparity", ".adjusted", ".change", ".difference", ".estimate")
"""Columns of values, the first of which in a result is what its interval is about."""
_HIDDEN = {".estimator", ".lower", ".upper", ".groups_left_out", ".groups_outside", ".left_out", ".replicates_lost"}
"""Columns that are not shown."""
_BLANK = {".base_metric", ".status", ".metrics_left_out"}
"""Columns in which a missing value is left blank."""


@refuse_unknown_settings
def as_table(result: Any, *, title: str | None = None, worst: Any = None, min_n: int = 0) -> GT:
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
    if kind_of(frame) is GROUPS and {".n", ".status"} <= set(frame.columns):
        table, notes = groups_side_by_side(frame, worst, min_n)
        return _published(table, notes, title, remark=too_few(min_n))
    return _published(one_below_the_other(frame), [], title)


def too_few(min_n: int) -> str:
    """The remark on values that are not shown."""
    return f"{NOTHING}: hidden, fewer than {min_n} rows." if min_n > 0 else ""


def has_dropped_rows(overall: pl.DataFrame, groups: pl.DataFrame) -> bool:
    """Check whether there are rows of groups that are not listed, by the first metric of all rows."""
    if overall.is_empty():
        return False
    metric, rows = overall.select(".metric", ".n").row(0)
    return groups.filter(pl.col(".metric") == metric)[".n"].sum() < rows


def reason(status: str) -> str:
    """The words for a reason why there is no value."""
    return _REASONS.get(status) or Status.text_of(status)


def left_out_in_words(
    entries: Iterable[Mapping[str, Any]] | None,
    group: Callable[[str], str] = str,
    metric: Callable[[str], str] = str,
) -> str:
    """The groups of `.left_out` with their metrics and the reason, such as `student (sens: too few rows)`.

    Args:
        entries: The list of a row of results.
        group: The words for the name of a group.
        metric: The words for the name of a metric.
    """
    metrics_of_reason: dict[str, dict[Any, dict[str, None]]] = {}
    for entry in entries or ():
        of_group = metrics_of_reason.setdefault(group(entry["group"]), {})
        label = "" if entry["level"] is None else f" of label {entry['level']}"
        # how few rows a group has may be what a page hides
        of_group.setdefault(entry["status"], {})[f"{metric(entry['metric'])}{label}"] = None
    texts: list[str] = []
    for name, of_group in metrics_of_reason.items():
        whys = [
            _UNKNOWN if status == Status.UNKNOWN else f"{', '.join(metrics)}: {reason(status)}"
            for status, metrics in of_group.items()
        ]
        texts.append(f"{name} ({'; '.join(whys)})")
    more = [f"and {len(texts) - _MOST_LEFT_OUT} more groups"] if len(texts) > _MOST_LEFT_OUT else []
    return "; ".join([*texts[:_MOST_LEFT_OUT], *more])


Note: TypeAlias = tuple[str, int, str]
"""A column, a row, and the note on that cell."""


def groups_side_by_side(frame: pl.DataFrame, worst: Any, min_n: int) -> tuple[pl.DataFrame, list[Note]]:
    """A row for each group, a column for each metric, and the notes on cells."""
    outer = key_columns(frame)
    keys = outer + [name for name in GROUP_KEYS if name in frame.columns and name != ".metric"]
    if ".level" in keys and frame[".level"].null_count() == len(frame):
        keys.remove(".level")
    metrics = frame[".metric"].unique(maintain_order=True).to_list()
    # an outer column may have the name of a metric
    columns: dict[str, str] = {}
    for metric in metrics:
        columns[metric] = f"{metric} " if metric in outer else metric
    enough = pl.when(pl.col(".n") >= min_n)
    frame = frame.with_columns(enough.then(with_interval(frame)).alias(_SHOWN), enough.then(".n").alias(_COUNTED))
    # different groups can have the same text
    frame = frame.with_columns(pl.int_range(pl.len()).over(*keys, ".metric").alias(_NTH))
    cells = [pl.col(_COUNTED).max().alias(".n")]
    for metric, column in columns.items():
        values = pl.col(_SHOWN).filter(pl.col(".metric") == metric)
        # null where the value is undefined, empty where the group has no row of the metric
        cells.append(pl.when(values.len() > 0).then(values.first()).otherwise(pl.lit("")).alias(column))
    wide = frame.group_by(*keys, _NTH, maintain_order=True).agg(cells)
    index = wide.select(*keys, _NTH).with_row_index(_ROW)
    notes: list[Note] = []
    if ".status" in frame.columns:
        indexed = frame.join(index, on=[*keys, _NTH], how="left", nulls_equal=True, maintain_order="left")
        for metric, row, status, size in indexed.select(".metric", _ROW, ".status", ".n").rows():
            if status not in {Status.OK, None} and size >= min_n:
                is_small = status in {Status.BELOW_MIN_N, Status.BELOW_MIN_SHARE}
                notes.append((columns[metric], row, f"not compared: {reason(status)}" if is_small else reason(status)))
    if worst is not None:
        worse = _worse(open_frame(worst).to_polars(), frame, outer)
        marked = worse.join(index, on=[*outer, ".by", ".group"], how="inner", nulls_equal=True)
        for metric, row in marked.select(".metric", _ROW).rows():
            if metric in columns:
                notes.append((columns[metric], row, WORSE))
    wide = wide.with_columns(pl.col(".by").fill_null(_EVERYBODY), pl.col(".group").fill_null("all"))
    return wide.drop(_NTH), notes


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
    # the first of several values is what the interval is about
    value = next((name for name in _WITH_INTERVAL if name in frame.columns), None)
    columns: list[pl.Series] = []
    for column in frame.drop(hidden, strict=False):
        text = column
        if column.name == value:
            text = with_interval(frame, column.name)
        elif column.dtype == pl.List:
            text = column.cast(pl.List(pl.String)).list.join(", ")
            text = text.set(text == "", None)
        elif column.dtype.is_float():
            text = as_p_value(column) if column.name.startswith(".p_") else rounded(column)
        if text.null_count() == len(text):
            continue
        # a single metric has no base metric, and nothing is left out of most
        columns.append(text.fill_null("") if column.name in _BLANK else text)
    return pl.DataFrame(columns)


def with_interval(frame: pl.DataFrame, value: str = ".estimate") -> pl.Series:
    """Values with their intervals, if there are any, as text."""
    texts = rounded(frame[value])
    if not {".lower", ".upper"} <= set(frame.columns):
        return texts
    texts_with_intervals: list[str | None] = []
    ends = zip(texts, rounded(frame[".lower"]), rounded(frame[".upper"]), *open_ends(frame), strict=True)
    for text, lower, upper, is_above, is_below in ends:
        # an end that is not included has a sign
        interval = ends_in_words(f"> {lower}" if is_above else lower, f"< {upper}" if is_below else upper)
        texts_with_intervals.append(f"{text} ({interval})" if text is not None and interval else text)
    return pl.Series(value, texts_with_intervals, dtype=pl.String)


def ends_in_words(low: str | None, high: str | None) -> str:
    """An interval, which may have one end only; empty without any."""
    if low is None:
        return "" if high is None else f"up to {high}"
    return f"from {low}" if high is None else f"{low} to {high}"


def rounded(numbers: pl.Series) -> pl.Series:
    """Numbers as text, with three decimals, or fewer where they are large."""
    texts = [None if number is None else number_in_digits(number) for number in numbers]
    return pl.Series(numbers.name, texts, dtype=pl.String)


def number_in_digits(number: float) -> str:
    """A number as text, with three decimals, or fewer where it is large."""
    size = abs(number)
    digits = 0 if size >= _THOUSAND else 1 if size >= _HUNDRED else _DIGITS
    # z: what is rounded to 0 has no sign
    return f"{number:z,.{digits}f}"


def as_p_value(numbers: pl.Series) -> pl.Series:
    """P-values as text; a very small one is not 0."""
    small = 10**-_DIGITS
    return rounded(numbers).set((numbers < small).fill_null(value=False), f"< {small}")


def _published(table: pl.DataFrame, notes: Sequence[Note], title: str | None, *, remark: str = "") -> Any:
    """The table of great_tables."""
    try:
        gt: Any = import_module("great_tables")
    except ModuleNotFoundError as error:
        msg = f"Tables are made by great_tables: pip install 'tidyfair[report]' ({error})."
        raise ArgumentError(msg) from error
    table = visible_texts(table)
    labels: dict[str, Any] = {}
    for column in table.columns:
        # great_tables takes braces in plain text for units, and then escapes nothing of it
        labels[column] = gt.html(as_html(worded(column)).replace("{", "&#123;").replace("}", "&#125;"))
    published = gt.GT(table)
    if {".by", ".group"} <= set(table.columns) and table[".by"].n_unique() > 1:
        # the features head the rows of their groups
        del labels[".by"]
        published = gt.GT(table, groupname_col=".by")
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


def worded(name: str) -> str:
    """A column of results in words."""
    return _LABELS.get(name, name.removeprefix(".").replace("_", " "))


@refuse_unknown_settings
def plain_names(result: Any) -> Frame:
    """A result as databases and spreadsheets take it: names of columns without dots, and lists as text.

    `.metric` becomes `metric`, `.estimate` `estimate` and so on; `.by`, `.group`, `.to` and `.limit`, which are
    words of SQL, become `feature`, `group_name`, `to_group` and `limit_value`. Your own columns keep their names.

    Args:
        result: The result of a metric, `by_group`, a test, a gate …, a polars, pandas or pyarrow frame.

    Returns:
        A frame of the same kind.

    Raises:
        ColumnError: If a column of yours has the name that a column of the result would get.

    >>> from tidyfair import sens
    >>> from tidyfair.datasets import lending
    >>> plain_names(sens(lending(), "repaid", "approved", pos_label="yes", group_by="sex")).columns
    ['sex', 'metric', 'feature', 'estimator', 'estimate']
    """
    source = open_frame(result)
    frame = source.to_polars()
    plain = {name: _WORDS_OF_SQL.get(name, name.removeprefix(".")) for name in frame.columns if name in RESERVED}
    if taken := [name for name in plain if plain[name] in frame.columns]:
        name = taken[0]
        msg = f"plain_names(): {name!r} would be named like your column {plain[name]!r}; rename that column."
        raise ColumnError(msg)
    texts = [_lists_as_text(column) for column in frame if isinstance(column.dtype, pl.List)]
    return source.restore(frame.with_columns(texts).rename(plain))


_WORDS_OF_SQL = {".by": "feature", ".group": "group_name", ".to": "to_group", ".limit": "limit_value"}
"""Other names for columns whose plain names are words of SQL."""


def _lists_as_text(column: pl.Series) -> pl.Series:
    """The names of each list, or its groups with their metrics and reasons, one after the other; null if empty."""
    is_of_groups = column.dtype == pl.List(pl.Struct)
    texts: list[str | None] = []
    for entries in column.to_list():
        names = left_out_in_words(entries) if is_of_groups and entries else ", ".join(map(str, entries or ()))
        texts.append(names or None)
    return pl.Series(column.name, texts, dtype=pl.String)

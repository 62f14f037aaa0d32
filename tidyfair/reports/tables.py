"""Results as texts in tables, for pages, terminals and databases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, Status
from tidyfair.specs import GROUP_KEYS, RESERVED, Frame, key_columns, open_ends, refuse_unknown_settings
from tidyfair.tallies import open_frame

__all__ = ["plain_names"]

_DIGITS = 3
_HUNDRED, _THOUSAND = 100, 1_000
"""Numbers from which on there is one decimal, and none."""
Units: TypeAlias = Mapping[str, str]
"""The unit of each metric that has one: `%` of shares, `points` of their differences."""
NO_UNITS: Units = MappingProxyType({})
Note: TypeAlias = tuple[str, int, str]
"""A column, a row, and the note on that cell."""
NOTHING = "\N{EN DASH}"
WORSE = "significantly worse than all rows together, adjusted for the number of groups"
EVERYBODY = "all rows"
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
    Status.SUPPRESSED: "suppressed, as a small count or what would give one away",
    Status.CONSTANT: "all values of the group are the same",
}
"""Reasons why a value is undefined, as a reader needs them."""
_TOO_SMALL = {Status.BELOW_MIN_N, Status.BELOW_MIN_SHARE}
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
WITH_INTERVAL = (".disparity", ".adjusted", ".change", ".difference", ".estimate")
"""Columns of values; the interval of a result is that of the first of these that it has."""
_OF_MODELS = (".one", ".other")
"""The values of two models; of pairs, `.other` is a group."""
_HIDDEN = {
    ".estimator", ".lower", ".upper", ".one_lower", ".one_upper", ".other_lower", ".other_upper", ".groups_left_out",
    ".groups_outside", ".left_out", ".replicates_lost",
}  # fmt: skip
"""Columns that are not shown."""
_BLANK = {".base_metric", ".status", ".metrics_left_out"}
"""Columns in which a missing value is left blank."""


def too_few(min_n: int) -> str:
    """The remark on values that are not shown."""
    return f"{NOTHING}: hidden, fewer than {min_n} rows." if min_n > 0 else ""


def remarks_on_all_rows(overall: pl.DataFrame, groups: pl.DataFrame, min_n: int) -> list[str]:
    """What is hidden in a table of groups, and whose rows the values of all rows include beside those compared."""
    hidden = bool((groups[".n"] < min_n).any())
    unknown = bool((groups[".status"] == Status.UNKNOWN.value).any())
    if not overall.is_empty():
        metric, rows = overall.select(".metric", ".n").row(0)
        # groups that are dropped have no rows here
        unknown |= groups.filter(pl.col(".metric") == metric)[".n"].sum() < rows
    names = ["hidden"] * hidden + ["unknown"] * unknown
    remarks = [too_few(min_n)] if hidden else []
    if names and not overall.is_empty():
        remarks.append(f"All rows include the rows of {' and '.join(names)} groups.")
    return remarks


def reason(status: str) -> str:
    """The words for a reason why there is no value."""
    return _REASONS.get(status) or Status.text_of(status)


def reason_in_note(status: str) -> str:
    """The same on a value that may be shown, and is not compared where its group is small."""
    return f"not compared: {reason(status)}" if status in _TOO_SMALL else reason(status)


def left_out_in_words(
    entries: Iterable[Mapping[str, Any]] | None,
    group: Callable[[str], str] = str,
    metric: Callable[[str], str] = str,
    most: int | None = _MOST_LEFT_OUT,
) -> str:
    """The groups of `.left_out` with their metrics and the reason, such as `student (sens: too few rows)`.

    Args:
        entries: The list of a row of results.
        group: The words for the name of a group.
        metric: The words for the name of a metric.
        most: The most groups that are named; None for all.
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
        # who is called unknown needs no reason
        is_said = whys == [_UNKNOWN] and _UNKNOWN in name.lower()
        texts.append(name if is_said else f"{name} ({'; '.join(whys)})")
    more = [f"and {len(texts) - most} more groups"] if most is not None and len(texts) > most else []
    return "; ".join([*texts[:most], *more])


def groups_side_by_side(
    frame: pl.DataFrame, worst: Any, min_n: int, units: Units = NO_UNITS
) -> tuple[pl.DataFrame, list[Note]]:
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
    frame = frame.with_columns(
        enough.then(with_interval(frame, units=units)).alias(_SHOWN), enough.then(".n").alias(_COUNTED)
    )
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
        noted = frame.filter(pl.col(".status") != Status.OK, (pl.col(".n") >= min_n).fill_null(value=True))
        noted = noted.join(index, on=[*keys, _NTH], how="left", nulls_equal=True, maintain_order="left")
        rows = noted.select(".metric", _ROW, ".status").rows()
        notes += [(columns[metric], row, reason_in_note(status)) for metric, row, status in rows]
    if worst is not None:
        worse = worse_groups(open_frame(worst).to_polars(), frame, outer)
        marked = worse.join(index, on=[*outer, ".by", ".group"], how="inner", nulls_equal=True)
        for metric, row in marked.select(".metric", _ROW).rows():
            if metric in columns:
                notes.append((columns[metric], row, WORSE))
    wide = wide.with_columns(pl.col(".by").fill_null(EVERYBODY), pl.col(".group").fill_null("all"))
    return wide.drop(_NTH), notes


def worse_groups(worst: pl.DataFrame, frame: pl.DataFrame, outer: Sequence[str] = ()) -> pl.DataFrame:
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


def units_of_changes(units: Units) -> Units:
    """The unit of the changes of each metric that has one."""
    return dict.fromkeys(units, "points")


def one_below_the_other(frame: pl.DataFrame, units: Units = NO_UNITS) -> pl.DataFrame:
    """The rows of a result as texts, with one column for a value and its interval."""
    if ".status" in frame.columns:
        # a value that is defined needs no reason
        frame = frame.with_columns(pl.when(pl.col(".status") != Status.OK).then(".status").alias(".status"))
    # beside an interval an error says nothing more
    hidden = _HIDDEN | {".std_error"} if ".lower" in frame.columns else _HIDDEN
    # the first of several values is what the interval is about
    value = next((name for name in WITH_INTERVAL if name in frame.columns), None)
    of_changes = units_of_changes(units)
    units_of_columns = {
        **dict.fromkeys(_OF_MODELS, units), ".margin": of_changes, value: of_changes if value == ".change" else units
    }  # fmt: skip
    columns: list[pl.Series] = []
    for name in frame.drop(hidden, strict=False).columns:
        limits = (f"{name}_lower", f"{name}_upper") if name in _OF_MODELS else (".lower", ".upper")
        is_limited = name in {value, *_OF_MODELS}
        text = column_as_text(frame, name, units_of_columns.get(name, NO_UNITS), limits if is_limited else None)
        if text.null_count() < len(text):
            # a single metric has no base metric, and nothing is left out of most
            columns.append(text.fill_null("") if name in _BLANK else text)
    return pl.DataFrame(columns)


def column_as_text(
    frame: pl.DataFrame, name: str, units: Units = NO_UNITS, limits: tuple[str, str] | None = None
) -> pl.Series:  # fmt: skip
    """A column of a result as texts, of values with the ends of their interval; whole numbers and texts as they are."""
    column = frame[name]
    if column.dtype == pl.Boolean:
        return column.replace_strict({True: "yes", False: "no"}, return_dtype=pl.String)
    if column.dtype == pl.List:
        return _lists_as_text(column)
    if not column.dtype.is_float():
        return column
    return as_p_value(column) if name.startswith(".p_") else with_interval(frame, name, units, limits)


def with_interval(
    frame: pl.DataFrame, value: str = ".estimate", units: Units = NO_UNITS,
    limits: tuple[str, str] | None = (".lower", ".upper"),
) -> pl.Series:  # fmt: skip
    """Values with their intervals, if there are any, as text."""
    units_of_rows = [units.get(name, "") for name in frame[".metric"]] if units else [""] * len(frame)
    ends = [frame[name] for name in limits] if limits and set(limits) <= set(frame.columns) else []
    masks = open_ends(frame) if ends and limits == (".lower", ".upper") else ()
    rows = zip(frame[value], units_of_rows, *ends, *masks, strict=True)
    return pl.Series(value, [value_in_words(*row) for row in rows], dtype=pl.String)


def value_in_words(
    value: float | None, unit: str, low: float | None = None, high: float | None = None,
    is_above: bool = False, is_below: bool = False,  # noqa: FBT001, FBT002 - rows of columns
) -> str | None:  # fmt: skip
    """A value in its unit with its interval, if there is any, whose ends have a sign where they are not included."""
    if value is None:
        return None
    lower, upper = (None if end is None else in_unit(end, unit, is_end=True) for end in (low, high))
    interval = ends_in_words(f"> {lower}" if is_above else lower, f"< {upper}" if is_below else upper)
    return f"{in_unit(value, unit)} ({interval})" if interval else in_unit(value, unit)


def interval_in_words(low: float | None, high: float | None, unit: str) -> str:
    """An interval in the unit of its value, which does not stand beside each end; empty without any end."""
    return ends_in_words(*(None if end is None else in_unit(end, unit, is_end=True) for end in (low, high)))


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


def in_unit(number: float, unit: str, *, is_end: bool = False) -> str:
    """A number in its unit, which the end of an interval leaves to its value: `57.3%`, `15.2 points`, `0.152`."""
    if unit not in {"%", "points"}:
        return number_in_digits(number) + (f" {unit}" if unit and not is_end else "")
    return f"{number * 100:z,.1f}" + ("" if is_end else unit if unit == "%" else f" {unit}")


def as_p_value(numbers: pl.Series) -> pl.Series:
    """P-values as text; a very small one is not 0."""
    small = 10**-_DIGITS
    return rounded(numbers).set((numbers < small).fill_null(value=False), f"< {small}")


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
        A frame of the same kind; of polars where it is lazy or in a database.

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
        words = left_out_in_words(entries, most=None) if is_of_groups else ", ".join(map(str, entries or ()))
        texts.append(words or None)
    return pl.Series(column.name, texts, dtype=pl.String)

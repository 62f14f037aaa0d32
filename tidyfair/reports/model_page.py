"""The page of a comparison of models: what changes, in words, pictures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from tidyfair.metrics import in_prose, short_title
from tidyfair.reports.blocks import Content, Facts, Figure, Section, Table
from tidyfair.reports.findings import quoted_group, units_of_names
from tidyfair.reports.plots import PlotInput, by_words, direction_of
from tidyfair.reports.reproduction import how_to_repeat
from tidyfair.reports.tables import Note, one_below_the_other
from tidyfair.specs import key_columns
from tidyfair.specs.result_kinds import MODELS

NamedTable = tuple[str, pl.DataFrame, Sequence[Note], Sequence[str]]
"""A heading, a table with a column `metric`, the notes on its cells, and remarks below it."""
_DETAILS = (
    ".estimator", ".n", ".std_error", ".model_one", ".groups_left_out", ".groups_outside", ".left_out", ".unknown",
    ".unknown_share", ".with_unknown",
)  # fmt: skip


def contents_of_models(
    result: pl.DataFrame,
    *,
    facts: Mapping[str, str | None],
    code: str = "",
    sentences: Sequence[str] = (),
    tables: Iterable[NamedTable] = (),
) -> tuple[tuple[Content, ...], tuple[Section, ...]]:
    """The opening and the sections of the page of a comparison of named models.

    Args:
        result: The changes from one model to others, as `compare_models` has them.
        facts: What was compared, by whom and when.
        code: The code, or the command line, that makes the page again.
        sentences: What is said before the changes, such as verdicts.
        tables: The tables in place of that of the result.
    """
    plot = PlotInput.of(MODELS, result)
    known = {"Compared with": plot.frame[".model_one"][0], "Intervals": plot.limits, **facts}
    opening: list[Content] = [Facts(tuple((name, text) for name, text in known.items() if text))]
    opening += [*sentences, *findings_of_models(result)]
    if not plot.outer:
        opening.append(Figure(result, "Changes", units=units_of_names(result[".metric"].unique())))
        if result[".by"].has_nulls() and result[".by"].count():
            opening.append(Figure(result, "Performance and disparities", {"kind": "frontier"}))
    models = {str(name) for name in (*result[".model_one"].unique(), *result[".model_other"].unique())}
    sections: list[Section] = []
    for heading, table, notes, remarks in tables or [("Changes", _changes(result), (), ())]:
        heads = {name: (name, "") for name in table.columns if name in models}
        named = [pl.col(name).fill_null("all rows") for name in (".by", "by") if name in table.columns]
        if "metric" in table.columns:
            named.append(pl.col("metric").map_elements(short_title, pl.String))
        shown = Table(table.with_columns(named), tuple(notes), " ".join(remarks), heads=heads)
        sections.append(Section(heading, (shown,)))
    return tuple(opening), (*sections, *([how_to_repeat(code)] if code else ()))


def _changes(result: pl.DataFrame) -> pl.DataFrame:
    """The changes as texts, with a column of the other models."""
    shown = one_below_the_other(result.drop(_DETAILS, strict=False), units_of_names(result[".metric"].unique()))
    one = result[".model_one"].unique().to_list()
    names = {".one": one[0] if len(one) == 1 else "first model", ".other": "other model", ".model_other": "model"}
    renamed = shown.rename({**names, ".metric": "metric"}, strict=False)
    first = [name for name in ("metric", ".by", "model") if name in renamed.columns]
    return renamed.select(*key_columns(result), *first, pl.exclude(*key_columns(result), *first))


def findings_of_models(changes: pl.DataFrame) -> list[str]:
    """A sentence for each other model on the metrics in which it is better or worse, or differs; of groups too."""
    sentences: list[str] = []
    for part in changes.partition_by(".model_other", maintain_order=True):
        names: dict[str, dict[str, None]] = {"better": {}, "worse": {}, "different": {}, "equivalent": {}}
        for row in part.iter_rows(named=True):
            by, group = row[".by"], row.get(".group")
            name = in_prose(row[".metric"])
            if group is not None:
                name += f" for {quoted_group(by.split(':'), group)}"
            elif by is not None:
                name += f" by {by_words(by)}"
            names.setdefault(row.get(".verdict") or _verdict(row), {})[name] = None
        others = sum(map(len, (of for word, of in names.items() if word not in _SHOWN)))
        clauses = [f"{word} in {', '.join(names[word])}" for word in _SHOWN if names[word]]
        clauses += [f"nothing is shown for {others} of {len(part)} values"] if others else []
        sentences.append(f"{part['.model_other'][0] or 'The other model'}: {'; '.join(clauses)}.")
    return sentences


_SHOWN = ("better", "worse", "different", "equivalent")


def _verdict(row: Mapping[str, object]) -> str:
    """What the limits of a change show, without a margin."""
    lower, upper = row[".lower"], row[".upper"]
    if not isinstance(lower, float) or not isinstance(upper, float) or lower <= 0 <= upper:
        return "not shown"
    direction = direction_of(str(row[".metric"]))
    if direction not in {"maximize", "minimize"}:
        return "different"
    return "better" if (lower > 0) == (direction == "maximize") else "worse"

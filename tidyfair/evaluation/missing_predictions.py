"""Rows without a prediction, which metrics leave out, and their share in each group."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import polars as pl

from tidyfair.errors import listed
from tidyfair.evaluation.group_cells import texts_of
from tidyfair.specs import By, Column, names_of
from tidyfair.tallies import ESTIMATE, SCORE, Tally, presence_key

_MOST_SHOWN = 4
_ROLES = frozenset({"estimate", "probs"})


def lacks_prediction(tally: Tally, reads: Collection[str] = _ROLES) -> pl.Series:
    """The mask of the cells of a tally whose rows lack a prediction, in one of the roles that are read."""
    lacks = pl.Series([False]).new_from_index(0, len(tally.cells))
    if "estimate" in reads and (tally.estimate is not None or tally.cut is not None):
        lacks |= tally.cells[ESTIMATE].is_null()
    if "probs" in reads and SCORE in tally.cells.columns and tally.scores is not None:
        lacks |= tally.cells[SCORE].is_null()
    if tally.forecast is not None and tally.forecast.columns and tally.forecast.role in reads:
        lacks |= tally.over_points().cells[presence_key(tally.forecast)].is_null()
    return lacks


def missing_by_group(tally: Tally, by: By, lacks: pl.Series) -> pl.DataFrame:
    """The rows of each group, and how many of them lack a prediction: `group`, `rows`, `missing`, in order.

    Both are null in groups that are suppressed.
    """
    cell, groups = by.rows_by_group(tally.keys_of_cells(by.columns))
    keys, rows = groups.columns, tally.cells["n"]
    counted = groups.with_columns(rows[cell].alias("rows"), (rows * lacks.cast(rows.dtype))[cell].alias("missing"))
    groups = counted.group_by(keys).agg(pl.col("rows", "missing").sum()).filter(pl.col("rows") > 0)
    groups = groups.sort(keys, nulls_last=True)
    if tally.suppression is not None:
        is_shown = ~tally.suppression.is_hidden(groups[keys].get_columns(), len(groups), by.text)
        groups = groups.with_columns(pl.when(is_shown).then(pl.col("rows", "missing")))
    return groups.select(texts_of(groups[keys]).alias("group"), "rows", "missing")


def missing_in_words(tally: Tally, bys: Iterable[By], reads: Collection[str] = _ROLES) -> tuple[str, list[str]] | None:
    """The number of missing predictions, and their shares in the groups of each feature; None without any."""
    lacks = lacks_prediction(tally, reads)
    missing = int(tally.cells["n"].filter(lacks).sum())
    if not missing:
        return None
    columns: list[Column] = []
    if tally.estimate is not None and "estimate" in reads:
        columns.append(tally.estimate)
    if tally.scores is not None and ("probs" in reads or tally.cut is not None):
        columns += tally.scores.columns
    if tally.forecast is not None:
        columns += tally.forecast.columns
    names = listed(names_of(columns), shown=2)
    is_small = tally.suppression is not None and missing < tally.suppression.below
    number = "some" if is_small else f"{missing:,}"
    head = f"predictions ({names}) are missing in {number} of {tally.row_count:,} rows"
    shares = [_shares_in_words(by, missing_by_group(tally, by, lacks)) for by in bys]
    return head, [text for text in shares if text]


def _shares_in_words(by: By, groups: pl.DataFrame) -> str:
    """The groups with the largest shares and the one with the smallest; nothing if all have the same."""
    shares = (
        groups.drop_nulls("rows")
        .select("group", share=pl.col("missing") / pl.col("rows"))
        .sort("share", descending=True, maintain_order=True)
    )
    if shares["share"].n_unique() < 2:
        return ""
    few = shares
    if len(shares) > _MOST_SHOWN:
        few = pl.concat([shares.head(_MOST_SHOWN - 1), shares.tail(1)])
    texts = [f"{share:.1%} of {_in_words(by, group)}" for group, share in few.rows()]
    if len(few) < len(shares):
        texts.insert(-1, "…")
    return ", ".join(texts)


def _in_words(by: By, group: str) -> str:
    """A group inside a sentence, such as `race = "Black"`."""
    if by.sides is not None:
        return f"{group} ({by.text})"
    names, values = [by.text], [group]
    if group.count(":") == len(by.columns) - 1:
        names, values = names_of(by.columns), group.split(":")
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} unknown" if value == "null" else f'{name} = "{value}"' for name, value in pairs)

"""Results of several outer groups, such as folds: all of them together, and a row for each metric."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.evaluation.group_cells import texts_of
from tidyfair.reports.tables import rounded
from tidyfair.specs.result_columns import RESULT_KEYS, SELECTIONS, key_columns

if TYPE_CHECKING:
    from tidyfair.tallies.tally import Tally

_NAME = "\0name"


def pooled(tally: Tally) -> Tally:
    """The tally of the same rows without outer groups."""
    keys = [replace(key, role="by") if key.role == "outer" else key for key in tally.keys]
    return replace(tally, keys=tuple(keys))


def with_cuts_in_words(results: pl.DataFrame) -> pl.DataFrame:
    """Results whose thresholds, numbers and shares of rows are texts with all their digits."""
    cuts = [name for name in SELECTIONS if name in results.columns]
    texts = [pl.Series(name, [f"{cut:g}" for cut in results[name]], dtype=pl.String) for name in cuts]
    return results.with_columns(texts)


def over_outer_groups(results: pl.DataFrame, together: pl.DataFrame) -> pl.DataFrame:
    """A row for each metric: the value of all rows, then the mean, lowest and highest value of outer groups.

    Args:
        results: Results of outer groups.
        together: The same results of all rows, as a table of texts; its rows are in the order of the metrics.
    """
    outer = key_columns(results)
    keys = [name for name in (*RESULT_KEYS, ".level") if name in together.columns]
    names = texts_of(results.select(outer), ", ")
    value = pl.col(".estimate").fill_nan(None)
    known = results.with_columns(names.alias(_NAME)).filter(value.is_not_null())
    summary = known.group_by(keys, maintain_order=True).agg(
        value.mean().alias(".mean"),
        value.min().alias("low"), pl.col(_NAME).sort_by(".estimate").first().alias("name of low"),
        value.max().alias("high"), pl.col(_NAME).sort_by(".estimate").last().alias("name of high"),
    )  # fmt: skip
    texts = summary.select(
        *keys,
        rounded(summary[".mean"]).alias("mean"),
        _with_name(summary, "low").alias("lowest"),
        _with_name(summary, "high").alias("highest"),
    )
    return together.join(texts, on=keys, how="left", nulls_equal=True, maintain_order="left")


def _with_name(summary: pl.DataFrame, end: str) -> pl.Series:
    """The values of an end, each with the outer group that has it."""
    texts: list[str] = []
    for value, name in zip(rounded(summary[end]), summary[f"name of {end}"], strict=True):
        texts.append(f"{value} ({name})")
    return pl.Series(end, texts, dtype=pl.String)

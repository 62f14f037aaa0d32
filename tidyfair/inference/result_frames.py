"""Frames of results: the types of their columns, undefined numbers as nulls, and the keys of outer groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from tidyfair.evaluation import UNGROUPED, Evaluated
from tidyfair.specs import CUTS
from tidyfair.specs.result_kinds import ResultKind

Schema: TypeAlias = Mapping[str, Any]
Content: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | pl.DataFrame
"""The columns of a frame, of which numbers and texts are the same in all rows; or its rows; or itself."""

_TEXTS = """
    .adjustment .becomes .by .component .error .estimator .group .hypothesis .level .method .metric
    .moved .other .pattern .reference .scale .smallest .status .subgroup .test .to .verdict
    .worst
"""
_COUNTS = ".denominator .depth .groups .min_n .n .n_missing .n_other .not_searched .rows .searched .strata"
_TYPES = {
    **dict.fromkeys(_TEXTS.split(), pl.String), **dict.fromkeys(_COUNTS.split(), pl.Int64),
    ".groups_left_out": pl.List(pl.String), ".on_frontier": pl.Boolean,
}  # fmt: skip
"""The types of columns that are no numbers with decimals."""
_ADDED = frozenset({".adjustment", ".note", *CUTS})
"""The columns that are added to results of a verb by what all verbs share, or by some calls only."""


def schema_of(columns: str | ResultKind, *, without: str = "") -> dict[str, Any]:
    """The types of columns of results, by their names: a name has the same type in all results.

    Those of a kind are all that it has but what is added later, and some `without` which a result is.
    """
    if isinstance(columns, ResultKind):
        # the level of limits is last where it is added
        left_out = _ADDED | {*without.split()} | ({".conf_level"} & {columns.columns[-1]})
        columns = " ".join(name for name in columns.columns if name not in left_out)
    return {name: _TYPES.get(name, pl.Float64) for name in columns.split()}


def frame_of(content: Content, schema: Schema) -> pl.DataFrame:
    """A frame of columns or of rows, in which undefined numbers, and columns that are not given, are null."""
    if isinstance(content, pl.DataFrame):
        return content
    if isinstance(content, Mapping):
        content = {name: content.get(name) for name in schema}
    return pl.DataFrame(content, schema=schema).with_columns(pl.col(pl.Float64).fill_nan(None))


def outer_keys_of(evaluated: Evaluated) -> pl.DataFrame:
    """The keys of the outer groups; without columns where the data are not grouped."""
    return evaluated.group_cells.outer_keys.drop(UNGROUPED, strict=False)


def no_rows(keys: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """A result without rows: the columns of a result follow from the call, not from the data."""
    return pl.concat([keys.clear(), pl.DataFrame(schema=schema)], how="horizontal")


def frame_of_outer_groups(keys: pl.DataFrame, schema: Schema, contents: Iterable[tuple[int, Content]]) -> pl.DataFrame:
    """The results of outer groups, each with its number, one below the other and with the keys of the groups."""
    tables = [no_rows(keys, schema)]
    for outer, content in contents:
        tables.append(with_outer_key(keys, outer, frame_of(content, schema)))
    return pl.concat(tables)


def with_outer_key(keys: pl.DataFrame, outer: int, table: pl.DataFrame) -> pl.DataFrame:
    """The table of an outer group with its key, if the data are grouped."""
    return keys[outer : outer + 1].join(table, how="cross") if keys.width else table

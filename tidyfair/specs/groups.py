"""Sensitive features: columns whose values are the groups, or conditions that pool rows into two sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, differs_in_case, listed, nearest
from tidyfair.escapes import visible
from tidyfair.specs.arguments import is_list, is_unicode, is_value
from tidyfair.specs.columns import Column, kind_of, levels_of

if TYPE_CHECKING:
    from tidyfair.specs.columns import ColumnLike

__all__ = ["Privileged", "privileged"]

SIDE = "side"
"""The column of outer groups that are the two sides of a condition."""
SIDES = pl.Enum(["privileged", "unprivileged", "neither"])

_Condition = tuple[tuple[str, tuple[object, ...]], ...]
"""Column and admitted values, all of which must hold."""


@dataclass(frozen=True)
class Privileged:
    """A `by` of two sides: rows that meet one of the conditions, and the others; made by `privileged`."""

    conditions: tuple[_Condition, ...]
    unprivileged: tuple[_Condition, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that the conditions read, each once."""
        every = (*self.conditions, *self.unprivileged)
        return tuple(Column(name) for name in dict.fromkeys(name for condition in every for name, _ in condition))

    @property
    def text(self) -> str:
        """The condition as results show it in `.by`."""
        sides = [_any_text(self.conditions), *([_any_text(self.unprivileged)] if self.unprivileged else [])]
        return " vs ".join(sides)

    def check(self, keys: pl.DataFrame) -> None:
        """Refuse, over all keys of the data, values that cannot occur, and rows on both sides."""
        keys = self._named(keys)
        for name, value in self._values((*self.conditions, *self.unprivileged)):
            seen, declared = keys[name].unique().drop_nulls().to_list(), levels_of(keys.schema[name])
            of_other_kind = seen and kind_of(value) not in map(kind_of, seen)
            impossible = value not in declared if declared else of_other_kind or differs_in_case(value, seen)
            # Python equality, so that True = 1 = 1.0 as for labels
            if value not in seen and impossible:
                raise ArgumentError(self._never(name, value, declared or seen))
        if (self._meets(self.conditions, keys) & self._meets(self.unprivileged, keys)).any():
            msg = f"{self}: some rows are on both sides; make the conditions exclude each other."
            raise ArgumentError(msg)

    def unseen(self, keys: pl.DataFrame) -> list[str]:
        """The values, over all keys of the data, that may be slips: they neither occur nor are declared by a dtype."""
        if keys.is_empty():
            return []
        keys = self._named(keys)
        way_out = " If it is right, make the column an Enum of all its values"
        way_out += "." if self.unprivileged else ", or name the others: `unprivileged=`."
        return [
            self._never(name, value, keys[name].unique().drop_nulls().to_list()) + way_out
            for name, value in self._unseen((*self.conditions, *self.unprivileged), keys)
        ]

    def remarks(self, keys: pl.DataFrame) -> list[str]:
        """The reasons, over all keys of the data, why there is nobody to be compared."""
        if keys.is_empty():
            return []
        if unseen := self.unseen(keys):
            return unseen
        there = self.side(keys).unique().to_list()
        lacking = [side for side in ("privileged", "unprivileged") if side not in there]
        return [f"{self}: nobody is {side}, because {self._reason(side)}." for side in lacking]

    def _reason(self, side: str) -> str:
        """The reason why a side has no rows, although every value occurs or is declared."""
        conditions = self.conditions if side == "privileged" else self.unprivileged
        if not conditions:
            return "there is nobody else"
        several = sum(map(len, conditions)) > 1
        return "its values never occur together" if several else "its values never occur"

    def side(self, keys: pl.DataFrame) -> pl.Series:
        """The side of each row of keys, which are those of `columns` in order, under any name.

        Rows with a null in a condition column, or on neither side, are `neither`. Where a value of the privileged never
        occurs, it may be a slip, and it is not known who everybody else is.
        """
        keys = self._named(keys)
        chosen = self._meets(self.conditions, keys)
        everybody_else = chosen & ~chosen if self._unseen(self.conditions, keys) else ~chosen
        other = self._meets(self.unprivileged, keys) if self.unprivileged else everybody_else
        known = keys.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
        return pl.select(
            pl.when(known & chosen).then(pl.lit("privileged"))
            .when(known & other).then(pl.lit("unprivileged"))
            .otherwise(pl.lit("neither")).cast(SIDES)
        ).to_series()  # fmt: skip

    @staticmethod
    def _values(conditions: tuple[_Condition, ...]) -> list[tuple[str, object]]:
        """The columns of conditions, each with every value that is admitted."""
        return [(name, value) for condition in conditions for name, values in condition for value in values]

    def _unseen(self, conditions: tuple[_Condition, ...], keys: pl.DataFrame) -> list[tuple[str, object]]:
        """The values of conditions that neither occur nor are declared by the dtype of their column."""
        known = {
            name: {*keys[name].unique().drop_nulls().to_list(), *levels_of(keys.schema[name])} for name in keys.columns
        }
        return [(name, value) for name, value in self._values(conditions) if value not in known[name]]

    def _never(self, name: str, value: object, known: list[Any]) -> str:
        return f"{self}: {name!r} is never {value!r}.{nearest(value, known)} Its values: {listed(sorted(known))}."

    def _named(self, keys: pl.DataFrame) -> pl.DataFrame:
        return keys.rename(dict(zip(keys.columns, (column.name for column in self.columns), strict=True)))

    def _meets(self, conditions: tuple[_Condition, ...], keys: pl.DataFrame) -> pl.Series:
        met = pl.Series([False]).new_from_index(0, len(keys))
        for condition in conditions:
            all_of = ~pl.Series([False]).new_from_index(0, len(keys))
            for name, values in condition:
                seen = keys[name].unique().drop_nulls().to_list()
                all_of &= keys[name].is_in([value for value in seen if value in values]).fill_null(value=False)
            met |= all_of
        return met

    def __repr__(self) -> str:
        return visible(f"privileged({self.text})")


def privileged(
    *conditions: Mapping[str, object] | Iterable[Mapping[str, object]],
    unprivileged: Mapping[str, object] | Iterable[Mapping[str, object]] | None = None,
    **values: object,
) -> Privileged:
    """A `by` that pools rows into `privileged` and `unprivileged`, for metrics that compare two sides.

    Args:
        conditions: Mappings `{column: value}` (or a list of values), or lists of these; a row is privileged when all
            conditions of one of them hold.
        unprivileged: The same for the other side; everybody else where it is left out.
        values: One condition written as keywords.

    Rows with a null in a condition column, or on neither side, are left out and counted as the group `neither`.
    A column that is not there is an error when the metric is called, as are a value that cannot occur (it is no level
    of the column's dtype, of another kind than its values, or in other letters) and rows on both sides. A side without
    rows makes the comparison null, with a warning. So does a value of the privileged that does not occur where the
    dtype does not declare it, because it may be a slip, and everybody else is then nobody who is known: make the column
    an Enum of all its values, or name the other side, `unprivileged=`. Gates, tests, searches and reports refuse both.
    It may also be the outer grouping of a call, `group_by=privileged(…)`, whose column is `side`.

    >>> privileged(sex="male", race=["white", "asian"])
    privileged(sex=male & race=asian|white)
    """
    every = [each for given in (*conditions, *([values] if values else [])) for each in _listed(given)]
    if not every:
        msg = 'privileged() needs a condition, such as privileged(sex="male") or privileged({"sex": "male"}).'
        raise ArgumentError(msg)
    others = [] if unprivileged is None else _listed(unprivileged)
    if unprivileged is not None and not others:
        msg = "privileged(): `unprivileged=` needs a condition; leave it out for everybody else."
        raise ArgumentError(msg)
    return Privileged(tuple(map(_condition, every)), tuple(map(_condition, others)))


def _listed(given: object) -> list[Any]:
    """One condition, or several."""
    return list(given) if is_list(given) and not isinstance(given, Mapping) else [given]


def _condition(mapping: Mapping[str, object]) -> _Condition:
    def admitted(value: object) -> tuple[object, ...]:
        if is_list(value):
            return tuple(sorted(value, key=repr))
        return (value,)

    if not isinstance(mapping, Mapping) or not mapping:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f'A condition is a mapping like {{"sex": "male"}}, not {mapping!r}.'
        raise ArgumentError(msg)
    condition = tuple((name, admitted(value)) for name, value in mapping.items())
    for name, values in condition:
        if not isinstance(name, str) or not values or not all(map(is_value, values)):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = f"A condition names a column and the values that it admits, not {name!r}: {values!r}."
            raise ArgumentError(msg)
        for each in (name, *values):
            if isinstance(each, str) and not is_unicode(each):
                msg = f"A condition cannot hold {each!r}, in which there is half a character."
                raise ArgumentError(msg)
    return condition


def _any_text(conditions: tuple[_Condition, ...]) -> str:
    return " or ".join(
        " & ".join(f"{name}={'|'.join(map(str, values))}" for name, values in condition) for condition in conditions
    )


@dataclass(frozen=True)
class By:
    """What a groupwise metric compares: one or more columns, or the two sides of a condition."""

    columns: tuple[Column, ...]
    sides: Privileged | None = None

    @classmethod
    def of(cls, features: tuple[object, ...], name: str) -> By:
        """Read what a factory was called with."""
        if not features:
            msg = f'{name}() needs the sensitive feature: {name}("column").'
            raise ArgumentError(msg)
        for feature in features:
            if isinstance(feature, Privileged):
                if len(features) > 1:
                    msg = f"{name}: privileged(…) stands alone; add the other columns as conditions of it."
                    raise ArgumentError(msg)
                return cls(feature.columns, feature)
        columns = tuple(Column.of(feature, "by") for feature in features)
        if len({column.name for column in columns}) < len(columns):
            msg = f"{name}: two columns of the same name."
            raise ArgumentError(msg)
        return cls(columns)

    @property
    def text(self) -> str:
        """What results show in `.by`."""
        return self.sides.text if self.sides else ":".join(column.name for column in self.columns)

    @property
    def features(self) -> tuple[ColumnLike | Privileged, ...]:
        """What a factory is called with to compare the same."""
        return (self.sides,) if self.sides else tuple(column.source for column in self.columns)

    def __repr__(self) -> str:
        return repr(self.sides) if self.sides else ", ".join(map(repr, self.columns))

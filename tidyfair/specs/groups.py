"""Sensitive features: columns whose values define groups, or conditions that pool rows into two sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from tidyfair.errors import ArgumentError, differs_in_case, in_short, listed, nearest
from tidyfair.escapes import visible
from tidyfair.specs.arguments import is_list, is_unicode, is_value
from tidyfair.specs.columns import Column, kind_of, levels_of
from tidyfair.specs.signatures import refuse_unknown_settings

if TYPE_CHECKING:
    from tidyfair.specs.columns import ColumnLike

__all__ = ["Privileged", "privileged"]

WORDS_FOR_UNKNOWN = (
    "", "?", "declined", "decline to answer", "decline to self-identify", "decline to state", "declined to answer",
    "missing", "n/a", "nan", "not available", "not disclosed", "not known", "not provided", "not reported",
    "not specified", "not stated", "null", "prefer not to answer", "prefer not to disclose", "prefer not to say",
    "refused", "unavailable", "undisclosed", "unknown", "unspecified",
)  # fmt: skip
"""Default texts of unknown groups, in lower case."""
Treatment: TypeAlias = Literal["group", "apart", "drop"]
"""Ways to treat rows whose group is unknown."""


SIDE = "side"
"""The column of outer groups that are the two sides of a condition."""
SIDES = pl.Enum(["privileged", "unprivileged", "neither"])

_Condition = tuple[tuple[str, tuple[object, ...]], ...]
"""Column and admitted values, all of which must hold."""


@dataclass(frozen=True)
class Privileged:
    """A `by` with two sides, rows that meet one of the conditions and all others; made by `privileged`."""

    conditions: tuple[_Condition, ...]
    unprivileged: tuple[_Condition, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The distinct columns that the conditions read."""
        names: dict[str, None] = {}
        for condition in (*self.conditions, *self.unprivileged):
            names |= dict.fromkeys(name for name, _ in condition)
        return tuple(map(Column, names))

    @property
    def text(self) -> str:
        """The condition as results show it in `.by`."""
        sides = [self.conditions, self.unprivileged] if self.unprivileged else [self.conditions]
        return " vs ".join(map(_any_text, sides))

    def check(self, keys: pl.DataFrame) -> None:
        """Refuse, over all keys of the data, values that cannot occur, and rows on both sides."""
        keys = self._named(keys)
        for name, value in self._values((*self.conditions, *self.unprivileged)):
            present, declared = keys[name].unique().drop_nulls().to_list(), levels_of(keys.schema[name])
            # Python equality, so that True = 1 = 1.0 as for labels
            if value not in present and _is_impossible(value, present, declared):
                raise ArgumentError(self._never(name, value, declared or present))
        if (self._meets(self.conditions, keys) & self._meets(self.unprivileged, keys)).any():
            msg = f"{self}: some rows are on both sides; make the conditions mutually exclusive."
            raise ArgumentError(msg)

    def unseen(self, keys: pl.DataFrame) -> list[str]:
        """The values that may be misspelt: over all keys of the data they neither occur nor are declared by a dtype."""
        if keys.is_empty():
            return []
        keys = self._named(keys)
        way_out = " If the value is correct, make the column an Enum of all its values"
        way_out += "." if self.unprivileged else ", or specify the other side with `unprivileged=`."
        messages: list[str] = []
        for name, value in self._unseen((*self.conditions, *self.unprivileged), keys):
            present = keys[name].unique().drop_nulls().to_list()
            messages.append(self._never(name, value, present) + way_out)
        return messages

    def remarks(self, keys: pl.DataFrame) -> list[str]:
        """The reasons, over all keys of the data, why a side has no rows."""
        if keys.is_empty():
            return []
        if unseen := self.unseen(keys):
            return unseen
        present = self.side(keys).unique().to_list()
        lacking = [side for side in ("privileged", "unprivileged") if side not in present]
        return [f"{self}: no rows are {side}, because {self._reason(side)}." for side in lacking]

    def _reason(self, side: str) -> str:
        """The reason why a side has no rows, although every value occurs or is declared."""
        conditions = self.conditions if side == "privileged" else self.unprivileged
        if not conditions:
            return "all rows are on the other side"
        several = sum(map(len, conditions)) > 1
        return "its values never occur together" if several else "its values never occur"

    def side(self, keys: pl.DataFrame) -> pl.Series:
        """The side of each row of keys, which are those of `columns` in order, under any name.

        Rows with a null in a condition column, or on neither side, are `neither`. A privileged value that never occurs
        may be misspelt, and the other side is then unknown.
        """
        keys = self._named(keys)
        privileged = self._meets(self.conditions, keys)
        if self.unprivileged:
            unprivileged = self._meets(self.unprivileged, keys)
        elif self._unseen(self.conditions, keys):
            unprivileged = pl.Series([False]).new_from_index(0, len(keys))
        else:
            unprivileged = ~privileged
        complete = keys.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
        side = pl.when(complete & privileged).then(pl.lit("privileged"))
        side = side.when(complete & unprivileged).then(pl.lit("unprivileged"))
        return pl.select(side.otherwise(pl.lit("neither")).cast(SIDES)).to_series()

    @staticmethod
    def _values(conditions: tuple[_Condition, ...]) -> list[tuple[str, object]]:
        """The pairs of a column and a value that conditions admit."""
        pairs: list[tuple[str, object]] = []
        for condition in conditions:
            for name, values in condition:
                pairs += [(name, value) for value in values]
        return pairs

    def _unseen(self, conditions: tuple[_Condition, ...], keys: pl.DataFrame) -> list[tuple[str, object]]:
        """The values of conditions that neither occur nor are declared by the dtype of their column."""
        known = {column.name: {*column.unique().drop_nulls(), *levels_of(column.dtype)} for column in keys}
        return [(name, value) for name, value in self._values(conditions) if value not in known[name]]

    def _never(self, name: str, value: object, known: list[Any]) -> str:
        return f"{self}: {name!r} is never {value!r}.{nearest(value, known)} Its values: {listed(sorted(known))}."

    def _named(self, keys: pl.DataFrame) -> pl.DataFrame:
        return keys.rename(dict(zip(keys.columns, (column.name for column in self.columns), strict=True)))

    def _meets(self, conditions: tuple[_Condition, ...], keys: pl.DataFrame) -> pl.Series:
        """Mask of the rows that meet one of the conditions."""
        meets_one = pl.Series([False]).new_from_index(0, len(keys))
        for condition in conditions:
            meets_all = ~pl.Series([False]).new_from_index(0, len(keys))
            for name, values in condition:
                present = keys[name].unique().drop_nulls().to_list()
                admitted = [value for value in present if value in values]
                meets_all &= keys[name].is_in(admitted).fill_null(value=False)
            meets_one |= meets_all
        return meets_one

    def __repr__(self) -> str:
        return visible(f"privileged({self.text})")


def _is_impossible(value: object, present: list[Any], declared: list[Any]) -> bool:
    """Check whether a missing value cannot belong to the column, by its levels, its type or upper and lower case."""
    if declared:
        return value not in declared
    is_of_other_kind = bool(present) and kind_of(value) not in map(kind_of, present)
    return is_of_other_kind or differs_in_case(value, present)


@refuse_unknown_settings
def privileged(
    *conditions: Mapping[str, object] | Iterable[Mapping[str, object]],
    unprivileged: Mapping[str, object] | Iterable[Mapping[str, object]] | None = None,
    **values: object,
) -> Privileged:
    """A `by` that pools rows into `privileged` and `unprivileged`, for metrics that compare two sides.

    Args:
        conditions: Mappings `{column: value}` (or a list of values), or lists of these; a row is privileged when all
            conditions of one of them hold.
        unprivileged: The same for the other side; by default all other rows.
        values: One condition written as keywords.

    Rows with a null in a condition column, or on neither side, are left out and counted as the group `neither`.
    When the metric is called, a missing column is an error, as are a value that cannot occur (not a level of the
    column's dtype, of another type than its values, or different from one only by upper and lower case) and rows on
    both sides. A side without rows makes the comparison null, with a warning. So does a privileged value that does not
    occur and that the dtype does not declare: it may be misspelt, and the other side is then unknown. Make the column
    an Enum of all its values, or specify the other side with `unprivileged=`. Gates, tests, searches and reports refuse
    both. It may also be the outer grouping of a call, `group_by=privileged(…)`, whose column is `side`.

    >>> privileged(sex="male", race=["white", "asian"])
    privileged(sex=male & race=asian|white)
    """
    chosen: list[Any] = []
    for argument in conditions:
        chosen += _listed(argument)
    if values:
        chosen.append(values)
    if not chosen:
        msg = 'privileged() needs a condition, such as privileged(sex="male") or privileged({"sex": "male"}).'
        raise ArgumentError(msg)
    others = [] if unprivileged is None else _listed(unprivileged)
    if unprivileged is not None and not others:
        msg = "privileged(): `unprivileged=` needs a condition; leave it out to compare with all other rows."
        raise ArgumentError(msg)
    return Privileged(tuple(map(_condition, chosen)), tuple(map(_condition, others)))


def _listed(conditions: object) -> list[Any]:
    """One condition, or several, as a list."""
    if isinstance(conditions, Mapping) or not is_list(conditions):
        return [conditions]
    return list(conditions)


def _condition(mapping: Mapping[str, object]) -> _Condition:
    def admitted(value: object) -> tuple[object, ...]:
        if is_list(value):
            return tuple(sorted(value, key=repr))
        return (value,)

    if not isinstance(mapping, Mapping) or not mapping:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f'A condition is a mapping like {{"sex": "male"}}, not {in_short(mapping)}.'
        raise ArgumentError(msg)
    condition = tuple((name, admitted(value)) for name, value in mapping.items())
    for name, values in condition:
        if not isinstance(name, str) or not values or not all(map(is_value, values)):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = f"A condition maps a column to its values, not {in_short(name)} to {values!r}."
            raise ArgumentError(msg)
        for part in (name, *values):
            if isinstance(part, str) and not is_unicode(part):
                msg = f"A condition cannot contain {part!r}, which has a lone surrogate."
                raise ArgumentError(msg)
    return condition


def _any_text(conditions: tuple[_Condition, ...]) -> str:
    return " or ".join(map(_text_of, conditions))


def _text_of(condition: _Condition) -> str:
    return " & ".join(f"{name}={'|'.join(map(str, values))}" for name, values in condition)


@dataclass(frozen=True)
class Unknown:
    """The values of unknown groups, which are never compared; null is always one of them."""

    values: tuple[object, ...] | None = None
    """None for the default, `WORDS_FOR_UNKNOWN`."""
    is_listed: bool = True
    """True if values of unknown groups are shown."""

    @classmethod
    def of(cls, treatment: object, values: object, name: str) -> Unknown | None:
        """Read the options of a factory; None if unknown groups are treated like all others."""
        if treatment not in ("group", "apart", "drop"):
            raise ArgumentError.not_one_of("unknown", treatment, ["group", "apart", "drop"])
        if values is not None and not is_list(values):
            msg = f"{name}: `unknown_values` is a list of values, not {in_short(values)}."
            raise ArgumentError(msg)
        listed_values = None if values is None else tuple(values)
        if listed_values is not None and not all(map(is_value, listed_values)):
            msg = f"{name}: `unknown_values` lists values of the feature, not {in_short(values)}."
            raise ArgumentError(msg)
        if treatment == "group":
            if values is not None:
                msg = f'{name}: `unknown_values` needs `unknown=`, such as `unknown="apart"`.'
                raise ArgumentError(msg)
            return None
        return cls(listed_values, treatment == "apart")

    def mask(self, keys: pl.DataFrame) -> pl.Series:
        """The rows with any unknown key."""
        unknown = pl.Series([False]).new_from_index(0, len(keys))
        for key in keys:
            unknown |= key.is_null() | key.is_in(self._of(key))
        return unknown

    def _of(self, key: pl.Series) -> list[object]:
        """The values of a key that mean unknown."""
        present = key.unique().drop_nulls().to_list()
        if self.values is not None:
            return [value for value in present if value in self.values]
        return [value for value in present if isinstance(value, str) and value.strip().lower() in WORDS_FOR_UNKNOWN]

    def __repr__(self) -> str:
        treatment = "apart" if self.is_listed else "drop"
        values = "" if self.values is None else f", unknown_values={list(self.values)!r}"
        return f"unknown={treatment!r}{values}"


@dataclass(frozen=True)
class By:
    """The groups that a groupwise metric compares: one or more columns, or the two sides of a condition."""

    columns: tuple[Column, ...]
    sides: Privileged | None = None
    unknown: Unknown | None = None
    """The unknown groups, which are not compared; None if all groups are compared."""

    @classmethod
    def of(cls, features: tuple[object, ...], name: str, unknown: Unknown | None = None) -> By:
        """Read the features that a factory was called with."""
        if not features:
            msg = f'{name}() needs the sensitive feature: {name}("column").'
            raise ArgumentError(msg)
        for feature in features:
            if isinstance(feature, Privileged):
                if len(features) > 1:
                    msg = (
                        f"{name}: privileged(…) cannot be combined with columns; add them as conditions to "
                        "privileged(…)."
                    )
                    raise ArgumentError(msg)
                if unknown is not None:
                    msg = (
                        f"{name}: `unknown` cannot be combined with privileged(…), which already leaves out rows with "
                        "a null in a condition or on neither side."
                    )
                    raise ArgumentError(msg)
                return cls(feature.columns, feature)
        columns = tuple(Column.of(feature, "by") for feature in features)
        if len({column.name for column in columns}) < len(columns):
            msg = f"{name}: two columns have the same name; remove or rename one."
            raise ArgumentError(msg)
        return cls(columns, unknown=unknown)

    @property
    def text(self) -> str:
        """The text in the `.by` column of results."""
        return self.sides.text if self.sides else ":".join(column.name for column in self.columns)

    @property
    def features(self) -> tuple[ColumnLike | Privileged, ...]:
        """The arguments of a factory to compare the same groups."""
        return (self.sides,) if self.sides else tuple(column.source for column in self.columns)

    def __repr__(self) -> str:
        if self.sides:
            return repr(self.sides)
        return ", ".join([*map(repr, self.columns), *([repr(self.unknown)] if self.unknown else [])])

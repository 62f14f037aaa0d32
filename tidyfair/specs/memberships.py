"""Features of which a person may have several values at once, so that groups overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, in_short
from tidyfair.escapes import visible
from tidyfair.specs.columns import Column, ColumnLike, names_of
from tidyfair.specs.segments import Array
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = ["memberships"]

Combined: TypeAlias = Literal["any", "alone", "each"]
"""The groups that people of several values are in: each of these, one of their own, or that of their combination."""
NO_GROUP = "none"
"""The people who are known to be in none of the groups. They are counted, and compared as part of all others only."""
SEVERAL = "two or more"
_AND = " & "
_BETWEEN = "\x1f"
"""Separates the values of a list, which is counted as a text."""


@dataclass(frozen=True)
class Memberships:
    """A feature whose groups may overlap, made by `memberships`; rows are counted by the values of its columns."""

    given: tuple[Column, ...]
    """A column of yes and no for each group, or one column of lists or texts."""
    name: str
    separator: str | None
    """What separates the values of a text."""
    combined: Combined

    @property
    def are_lists(self) -> bool:
        """True if each row has a list of groups."""
        return self.separator is None and len(self.given) == 1

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that rows are counted by; lists are counted as texts."""
        if not self.are_lists:
            return self.given
        (column,) = self.given
        texts = column.expr.cast(pl.List(pl.String)).list.join(_BETWEEN)
        return (Column(texts.alias(f"{column.name} as text")),)

    def patterns(self, keys: pl.DataFrame) -> Patterns:
        """The groups of each row of keys, which are those of `columns` in order, under any name."""
        if self.separator is None and not self.are_lists:
            groups = names_of(self.given)
            answers = [self._answers(column, name) for column, name in zip(keys, groups, strict=True)]
            stated = np.stack([answer.fill_null(value=False).to_numpy() for answer in answers], axis=1)
            unknown = np.stack([answer.is_null().to_numpy() for answer in answers], axis=1)
        else:
            texts = self._texts(keys.to_series())
            groups = sorted({value for values in texts for value in values or ()})
            stated = np.array([[group in (values or ()) for group in groups] for values in texts], dtype=bool)
            stated = stated.reshape(len(texts), len(groups))
            unknown = np.repeat([[values is None] for values in texts], len(groups), axis=1).reshape(stated.shape)
        return Patterns(groups, stated, unknown).combined(self.combined)

    @staticmethod
    def _answers(column: pl.Series, name: str) -> pl.Series:
        """A column of yes and no as truth values."""
        is_number = column.dtype.is_numeric() and column.drop_nulls().cast(pl.Float64).is_in([0.0, 1.0]).all()
        if not isinstance(column.dtype, pl.Boolean | pl.Null) and not is_number:
            msg = (
                f"memberships(): the column {name!r} is {column.dtype}; a membership is true or false (or 1 or 0). "
                f'Give an expression, such as `(pl.col({name!r}) >= 0.5).alias("…")`, or `separator=` for one column '
                "of texts with several values each."
            )
            raise ColumnError(msg)
        return column.cast(pl.Boolean)

    def _texts(self, column: pl.Series) -> list[list[str] | None]:
        """The distinct values in each text, without blanks around them."""
        if not isinstance(column.dtype, pl.String | pl.Null | pl.Categorical | pl.Enum):
            msg = f"memberships(): `separator=` splits texts, and the column {self.name!r} is {column.dtype}."
            raise ColumnError(msg)
        texts: list[list[str] | None] = []
        given: list[str | None] = column.cast(pl.String).to_list()
        for text in given:
            values = [value for part in (text or "").split(self.separator or _BETWEEN) if (value := part.strip())]
            # an empty list is known to be empty, and an empty text says nothing
            is_known = values or (text is not None and self.are_lists)
            texts.append(values if is_known else None)
        return texts

    def __repr__(self) -> str:
        parts = list(map(repr, self.given)) + [f"{name}={value!r}" for name, value in self.settings.items()]
        return visible(f"memberships({', '.join(parts)})")

    @property
    def settings(self) -> dict[str, str]:
        """The keywords that differ from the default."""
        settings = {"separator": self.separator, "combined": self.combined, "name": self.name}
        default = {"separator": None, "combined": "any", "name": _joined(self.given)}
        return {name: value for name, value in settings.items() if value is not None and value != default[name]}


@dataclass(frozen=True, eq=False)
class Patterns:
    """The groups that rows of keys are in: arrays of rows by groups."""

    groups: list[str]
    stated: Array
    unknown: Array
    """Mask of what is not known."""

    @property
    def without_group(self) -> Array:
        """Mask of the rows that are known to be in no group."""
        return (self.stated | self.unknown).sum(axis=1) == 0

    @property
    def is_known(self) -> Array:
        """Mask of the rows of which a group is known, or that they are in none."""
        return (self.stated.sum(axis=1) > 0) | self.without_group

    @property
    def texts(self) -> pl.Series:
        """The groups of each row in one text; null where none is known."""
        joined: list[str | None] = []
        for stated, is_none in zip(self.stated.tolist(), self.without_group.tolist(), strict=True):
            own = [group for group, is_in in zip(self.groups, stated, strict=True) if is_in]
            joined.append(_AND.join(own) or (NO_GROUP if is_none else None))
        return pl.Series(joined, dtype=pl.String)

    def combined(self, combined: Combined) -> Patterns:
        """The groups of people who are alone in them, or of each combination, which do not overlap."""
        if combined == "any":
            return self
        # whoever may be in one more group is in no combination that is known
        is_complete: Array = self.unknown.sum(axis=1) == 0
        several = self.stated.sum(axis=1) > 1
        stated: Array
        if combined == "alone":
            stated = np.column_stack([self.stated & ~several[:, None], several])
            groups = [*self.groups, SEVERAL]
        else:
            texts = self.texts.to_list()
            groups = list(dict.fromkeys(text for text in texts if text not in (None, NO_GROUP)))
            groups.sort(key=lambda text: (text.count(_AND), text))
            stated = np.array([[text == group for group in groups] for text in texts], dtype=bool)
            stated = stated.reshape(len(texts), len(groups))
        stated &= is_complete[:, None]
        return Patterns(groups, stated, np.broadcast_to(~is_complete[:, None], stated.shape))


@refuse_unknown_settings
def memberships(
    *columns: ColumnLike, separator: str | None = None, combined: Combined = "any", name: str | None = None
) -> Memberships:
    """A `by` of groups that people may be in several of at once: a question with several answers, tags, skills.

    Args:
        columns: A column of true and false (or 1 and 0) for each group, which has its name; or one column of lists, or
            of texts with a `separator`.
        separator: What separates the values of a text, such as `";"`.
        combined: `"any"`: people count in each of their groups. `"alone"`: in a group are those who are in no other,
            and all others are one group, `two or more`. `"each"`: each combination is a group of its own, such as
            `black & white`.
        name: The name of the feature in results, by default that of the column, or of all columns joined by `|`.

    A call counts the combinations that occur, once, and adds them up; so a row counts in each of its groups, and in all
    rows together once. Differences between groups that share people vary less than those of strangers: intervals and
    tests know which rows two groups share. All others (`to="rest"`) are the people outside of a group. Rows that are in
    no group are listed as the group `none` and are not compared, but belong to all rows and to all others; rows of
    which it is not known are an unknown group. Of people with a null, those who are in some group are in that one, and
    are neither members of nor outside the groups that are not known.

    >>> memberships("white", "black", "asian")
    memberships('white', 'black', 'asian')
    >>> memberships("race", separator=";", combined="alone")
    memberships('race', separator=';', combined='alone')
    """
    if combined not in get_args(Combined):
        raise ArgumentError.not_one_of("combined", combined, get_args(Combined))
    if separator is not None and (not isinstance(separator, str) or not separator):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f'memberships(): `separator` is a text such as ";", not {in_short(separator)}.'
        raise ArgumentError(msg)
    of_columns = tuple(Column.of(column, "by") for column in columns)
    names = names_of(of_columns)
    if not names or (separator is not None and len(names) > 1):
        msg = (
            "memberships() takes a column of true and false for each group, or one column of lists, or of texts with "
            "a `separator=`."
        )
        raise ArgumentError(msg)
    if len(set(names)) < len(names) or NO_GROUP in names:
        msg = f"memberships(): two groups have the same name, or one is called {NO_GROUP!r}; rename the columns."
        raise ArgumentError(msg)
    return Memberships(of_columns, _joined(of_columns) if name is None else name, separator, combined)


def _joined(columns: Iterable[Column]) -> str:
    """The name of a feature of some columns."""
    return "|".join(names_of(columns))

"""Features of which a person may have several values at once, so that groups overlap."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, in_short, listed
from tidyfair.escapes import visible
from tidyfair.specs.arguments import text
from tidyfair.specs.columns import Column, ColumnLike, names_of
from tidyfair.specs.segments import Array, Integers
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = ["memberships"]

Combined: TypeAlias = Literal["any", "alone", "each"]
"""The groups that people of several values are in: each of these, one of their own, or that of their combination."""
NO_GROUP = "none"
"""The people who are known to be in none of the groups. They are counted, and compared as part of all others only."""
SEVERAL = "two or more"
_AND = " & "
_BETWEEN = "\x1f"
"""Separates the values of a list, which is counted as a text of them and of their number."""
_NOT_KNOWN = ""
"""A value of a list or a text that says nothing."""


@dataclass(frozen=True, eq=False)
class ListColumn(Column):
    """A column of lists, as texts of their values."""

    lists: Column

    def check_dtype(self, frame: pl.LazyFrame) -> None:
        """Refuse what holds no lists of plain values."""
        (dtype,) = frame.select(self.lists.expr).collect_schema().dtypes()
        inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else pl.Boolean()
        if not cast("pl.DataType", inner).is_nested() and inner != pl.Boolean:
            return
        name = self.lists.name
        msg = (
            f"memberships(): one column alone holds lists of groups, or texts with a `separator=`, and {name!r} is "
            f"{dtype}. Name several columns of true and false; or write `by={name!r}` for the groups that its values "
            "are."
        )
        raise ColumnError(msg)


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
    def has_columns(self) -> bool:
        """True if each group has a column of yes and no."""
        return self.separator is None and not self.are_lists

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that rows are counted by; lists are counted as texts."""
        if not self.are_lists:
            return self.given
        (column,) = self.given
        values = column.expr.cast(pl.List(pl.String)).list
        text = pl.concat_str(values.join(_BETWEEN), values.len(), separator=_BETWEEN)
        return (ListColumn(text.alias(f"{column.name} as text"), column),)

    def patterns(self, keys: pl.DataFrame) -> Patterns:
        """The groups of each row of keys, which are those of `columns` in order, under any name."""
        if self.has_columns:
            groups = names_of(self.given)
            answers = [self._answers(column, name) for column, name in zip(keys, groups, strict=True)]
            stated = np.stack([answer.fill_null(value=False).to_numpy() for answer in answers], axis=1)
            unknown = np.stack([answer.is_null().to_numpy() for answer in answers], axis=1)
            without_group: Array = (stated | unknown).sum(axis=1) == 0
        else:
            values = self._values_by_row(keys.to_series())
            groups = sorted({*itertools.chain(*values)} - {_NOT_KNOWN, NO_GROUP})
            stated = np.array([[group in own for group in groups] for own in values], dtype=bool)
            stated = stated.reshape(len(values), len(groups))
            unknown = np.array([[_NOT_KNOWN in own] for own in values], dtype=bool).reshape(-1, 1) & ~stated
            without_group = np.array([own <= {NO_GROUP} for own in values], dtype=bool)
        return Patterns(groups, stated, unknown, without_group).combined(self.combined)

    @staticmethod
    def _answers(column: pl.Series, name: str) -> pl.Series:
        """A column of yes and no as truth values."""
        is_number = column.dtype.is_numeric()
        is_answer = is_number and column.drop_nulls().cast(pl.Float64).is_in([0.0, 1.0]).all()
        if not isinstance(column.dtype, pl.Boolean | pl.Null) and not is_answer and column.null_count() < len(column):
            condition = ">= 0.5" if is_number else '== "yes"'
            msg = (
                f"memberships(): the column {name!r} is {column.dtype}; a membership is true or false (or 1 or 0). "
                f'Give an expression, such as `(pl.col({name!r}) {condition}).alias("…")`, or `separator=` for one '
                "column of texts with several values each."
            )
            raise ColumnError(msg)
        return column.cast(pl.Boolean)

    def _values_by_row(self, column: pl.Series) -> list[set[str]]:
        """The values in the texts or lists of a column."""
        if not isinstance(column.dtype, pl.String | pl.Null | pl.Categorical | pl.Enum):
            msg = (
                f"memberships(): `separator=` splits texts, and {self.given[0].name!r} is {column.dtype}; leave it "
                "out for columns of true and false, or for one of lists."
            )
            raise ColumnError(msg)
        return [self._values_in_text(text) for text in column.cast(pl.String)]

    def _values_in_text(self, text: str | None) -> set[str]:
        """The values in a text or a list, without blanks around them; an empty one says that not all are known."""
        values = [value for part in (text or "").split(self.separator or _BETWEEN) if (value := part.strip())]
        if not values or not self.are_lists:
            # an empty text says nothing
            return {*values} or {_NOT_KNOWN}
        number = int(values.pop())
        if len(values) > number:
            msg = (
                f"memberships(): a value in the lists of {self.given[0].name!r} has the character U+001F, which "
                "separates values; replace it."
            )
            raise ColumnError(msg)
        return {*values, _NOT_KNOWN} if len(values) < number else {*values}

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
    without_group: Array
    """Mask of the rows that are known to be in no group."""

    @property
    def is_known(self) -> Array:
        """Mask of the rows of which a group is known, or that they are in none."""
        return self.stated.any(axis=1) | self.without_group

    @property
    def rows_by_group(self) -> tuple[Integers, pl.Series]:
        """The rows of each group, then those in no group and those of an unknown one, and these groups."""
        row, group = self.stated.nonzero()
        nobody, unknown = (mask.nonzero()[0] for mask in (self.without_group, ~self.is_known))
        names = [*self.groups, NO_GROUP]
        number = np.concatenate([group, np.full(len(nobody), len(names) - 1), np.full(len(unknown), len(names))])
        groups = pl.Series([*names, None], dtype=pl.Enum(names))
        return np.concatenate([row, nobody, unknown]), groups[pl.Series(number, dtype=pl.UInt32)]

    @property
    def texts(self) -> pl.Series:
        """The groups of each row in one text; null where none is known."""
        joined: list[str | None] = []
        groups_of_text: dict[str, list[str]] = {}
        for stated, is_none in zip(self.stated.tolist(), self.without_group.tolist(), strict=True):
            own = [group for group, is_in in zip(self.groups, stated, strict=True) if is_in]
            text = _AND.join(own)
            if groups_of_text.setdefault(text, own) != own:
                msg = f"memberships(): {listed(own)} and {listed(groups_of_text[text])} are both {text!r}; rename one."
                raise ColumnError(msg)
            joined.append(text or (NO_GROUP if is_none else None))
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
            if SEVERAL in self.groups:
                msg = f'memberships(): `combined="alone"` makes a group {SEVERAL!r}, and one has this name; rename it.'
                raise ColumnError(msg)
            stated = np.column_stack([self.stated & ~several[:, None], several])
            groups = [*self.groups, SEVERAL]
        else:
            texts = self.texts.to_list()
            groups = list(dict.fromkeys(text for text in texts if text not in (None, NO_GROUP)))
            groups.sort(key=lambda text: (text.count(_AND), text))
            stated = np.array([[text == group for group in groups] for text in texts], dtype=bool)
            stated = stated.reshape(len(texts), len(groups))
        stated &= is_complete[:, None]
        unknown = np.broadcast_to(~is_complete[:, None], stated.shape)
        return Patterns(groups, stated, unknown, self.without_group)


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
    are neither members of nor outside the groups that are not known; they belong to all others of the groups that they
    are known to be outside of (unless `unknown="drop"` and no group is known). In texts and lists the value `none` is
    no group; a null in a list says that its person may be in further groups, and an empty text, unlike an empty list,
    says nothing.

    Raises:
        ArgumentError: If two groups have the same name, or `separator` is given with several columns.
        ColumnError: When rows are read, if a single column holds neither lists nor, with a `separator`, texts, or one
            of several columns is not true or false; if a group is called like one that `combined` makes.

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
    feature = _joined(of_columns) if name is None else text("name", name)
    return Memberships(of_columns, feature, separator, combined)


def _joined(columns: Iterable[Column]) -> str:
    """The name of a feature of some columns."""
    return "|".join(names_of(columns))

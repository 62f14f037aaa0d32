"""Sensitive features: columns whose values define groups, or conditions that pool rows into two sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from typing import Any, Literal, TypeAlias, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, advice, differs_in_case, in_short, listed, nearest
from tidyfair.escapes import visible
from tidyfair.specs.arguments import is_list, is_unicode, is_value, number, whole
from tidyfair.specs.columns import Column, ColumnLike, kind_of, levels_of, names_of
from tidyfair.specs.memberships import NO_GROUP, Memberships
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = ["Privileged", "privileged"]

WORDS_FOR_UNKNOWN = (
    "", "?", "declined", "decline to answer", "decline to self-identify", "decline to state", "declined to answer",
    "missing", "n/a", "nan", "not available", "not disclosed", "not known", "not provided", "not reported",
    "not specified", "not stated", "null", "prefer not to answer", "prefer not to disclose", "prefer not to say",
    "refused", "unavailable", "undisclosed", "unknown", "unspecified",
)  # fmt: skip
"""Default texts of unknown groups, in lower case."""
FeatureLike: TypeAlias = "ColumnLike | Memberships | tuple[ColumnLike | Memberships, ...] | Privileged"
"""A feature as factories take it: a column, groups that overlap, a crossing of several, or two sides."""
Treatment: TypeAlias = Literal["group", "apart", "drop"]
"""Ways to treat rows whose group is unknown."""
_FEW_VALUES = 1_000
"""Up to this many values Python is faster than a query."""

_NOBODY = pl.Series([False])

SIDE = "side"
"""The column of outer groups that are the two sides of a condition."""
SIDES = pl.Enum(["privileged", "unprivileged", "neither", "unknown"])

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
        sides: list[str] = []
        for conditions in (self.conditions, self.unprivileged):
            texts: list[str] = []
            for condition in conditions:
                texts.append(" & ".join(f"{name}={'|'.join(map(str, values))}" for name, values in condition))
            sides.append(" or ".join(texts))
        return " vs ".join(filter(None, sides))

    def check(self, keys: pl.DataFrame) -> None:
        """Refuse, over all keys of the data, values that cannot occur, and rows on both sides."""
        keys = self._named(keys)
        for name, value in self._values((*self.conditions, *self.unprivileged)):
            present, declared = keys[name].unique().drop_nulls().to_list(), levels_of(keys.schema[name])
            # Python equality, so that True = 1 = 1.0 as for labels
            is_impossible = value not in present and value not in declared
            if not declared:
                # by the type of the column's values, or by upper and lower case
                is_of_other_kind = bool(present) and kind_of(value) not in map(kind_of, present)
                is_impossible &= is_of_other_kind or differs_in_case(value, present)
            if is_impossible:
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
        way_out = advice(way_out, "")
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
        sentences: list[str] = []
        for side in lacking:
            conditions = self.conditions if side == "privileged" else self.unprivileged
            reason = "its values never occur" if conditions else "all rows are on the other side"
            if sum(map(len, conditions)) > 1:
                reason += " together"
            sentences.append(f"{self}: no rows are {side}, because {reason}.")
        return sentences

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
        if name.startswith("\0"):
            raise ColumnError.internal(name, "privileged")
        for part in (name, *values):
            if isinstance(part, str) and not is_unicode(part):
                msg = f"A condition cannot contain {part!r}, which has a lone surrogate."
                raise ArgumentError(msg)
    return condition


@dataclass(frozen=True)
class Policy:
    """The groups that are compared: those of known people, and large enough. All verbs have this one default."""

    min_n: int = 0
    """The fewest rows in the denominator of a group."""
    min_share: float = 0.0
    """The smallest share of a group in all rows."""
    unknown: Treatment = "apart"
    """The treatment of rows whose group is missing or unknown."""
    unknown_values: tuple[object, ...] | None = None
    """The values that mean unknown, beside null; None for texts such as "Unknown" (`WORDS_FOR_UNKNOWN`)."""

    @classmethod
    def of(
        cls, name: str, min_n: object = 0, min_share: object = 0.0, unknown: object = "apart",
        unknown_values: object = None,
    ) -> Policy:  # fmt: skip
        """Check the keywords of a function."""
        if unknown not in ("group", "apart", "drop"):
            raise ArgumentError.not_one_of("unknown", unknown, ["group", "apart", "drop"])
        if unknown_values is not None and (not is_list(unknown_values) or not all(map(is_value, unknown_values))):
            msg = f"{name}: `unknown_values` is a list of values of the feature, not {in_short(unknown_values)}."
            raise ArgumentError(msg)
        if unknown == "group" and unknown_values is not None:
            msg = f'{name}: `unknown_values` needs `unknown="apart"` or `unknown="drop"`.'
            raise ArgumentError(msg)
        values = None if unknown_values is None else tuple(unknown_values)
        return cls(whole("min_n", min_n, 0, of=name), number("min_share", min_share, 0, 1), unknown, values)

    def beside(self, other: Policy) -> Policy:
        """This policy with the larger minima of both, and the other's unknown groups unless those are the default."""
        stated = self if (other.unknown, other.unknown_values) == (Policy.unknown, None) else other
        return replace(stated, min_n=max(self.min_n, other.min_n), min_share=max(self.min_share, other.min_share))

    def with_unknown(self) -> Policy:
        """The same policy with unknown groups compared like all others."""
        return replace(self, unknown="group", unknown_values=None)

    def with_all_sizes(self) -> Policy:
        """The same policy without minima."""
        return replace(self, min_n=0, min_share=0.0)

    def is_unknown(self, keys: Iterable[pl.Series]) -> pl.Series:
        """The mask of the rows that have an unknown key, one or more columns, and are not compared because of it."""
        return reduce(pl.Series.__or__, map(self._unknown_in, keys))

    def _unknown_in(self, key: pl.Series) -> pl.Series:
        """The same for one key."""
        unknown: list[object] = []
        if self.unknown != "group":
            values = key.to_list() if key.len() <= _FEW_VALUES else key.unique().to_list()
            unknown = list(filter(self._means_unknown, {*values}))
        if not unknown:
            return _NOBODY.new_from_index(0, key.len())
        return key.is_null() | key.is_in([value for value in unknown if value is not None])

    def _means_unknown(self, value: object) -> bool:
        """Check whether a value of a feature means that it is not known."""
        if value is None:
            return True
        if self.unknown_values is not None:
            return value in self.unknown_values
        return isinstance(value, str) and value.strip().lower() in WORDS_FOR_UNKNOWN

    @property
    def in_words(self) -> str:
        """The groups that are compared, such as `groups of 30 rows or more; unknown groups are counted apart`."""
        sizes = [f"{self.min_n} rows"] if self.min_n > 1 else []
        sizes += [f"{100 * self.min_share:g} % of all rows"] if self.min_share else []
        groups = f"groups of {' and '.join(sizes)} or more" if sizes else "groups of any size"
        unknown = {"apart": "are counted apart", "drop": "are left out", "group": "are compared too"}
        return f"{groups}; unknown groups {unknown[self.unknown]}"

    @property
    def stated(self) -> dict[str, Any]:
        """The keywords that differ from the default."""
        given: dict[str, Any] = {option.name: getattr(self, option.name) for option in fields(self)}
        if self.unknown_values is not None:
            given["unknown_values"] = list(self.unknown_values)
        return {name: value for name, value in given.items() if value != getattr(Policy, name)}


ALL_GROUPS = Policy(unknown="group")
"""The policy of comparisons of groups that the library makes itself, such as a group and the rest."""


@dataclass(frozen=True)
class By:
    """The groups that a groupwise metric compares: one or more columns, or the two sides of a condition."""

    columns: tuple[Column, ...]
    """The columns that are read; those of groups that overlap come first."""
    sides: Privileged | None = None
    policy: Policy = field(default_factory=Policy)
    memberships: Memberships | None = None
    """The groups that overlap, alone or crossed with columns."""

    @classmethod
    def of(cls, features: tuple[object, ...], name: str, policy: Policy) -> By:
        """Read the features that a factory was called with."""
        if not features:
            msg = f'{name}() needs the sensitive feature: {name}("column").'
            raise ArgumentError(msg)
        if len(features) == 1 and isinstance(features[0], tuple):
            # a tuple crosses features wherever features are named
            return cls.of(cast("tuple[object, ...]", features[0]), name, policy)
        if len(features) == 1 and isinstance(features[0], list):
            msg = (
                f"{name}: a list is one feature after the other, and a comparison is of one feature. Compare each, and "
                "put the comparisons into a `metric_set`; or cross the features: write them without brackets."
            )
            raise ColumnError(msg)
        for feature in features:
            if isinstance(feature, Privileged):
                if len(features) > 1:
                    msg = (
                        f"{name}: privileged(…) cannot be combined with columns; add them as conditions to "
                        "privileged(…)."
                    )
                    raise ArgumentError(msg)
                return cls(feature.columns, feature, policy)
        overlapping = [feature for feature in features if isinstance(feature, Memberships)]
        if len(overlapping) > 1:
            msg = f"{name}: cross overlapping groups with columns only; name all groups in one memberships(…)."
            raise ArgumentError(msg)
        memberships = overlapping[0] if overlapping else None
        columns = tuple(Column.of(feature, "by") for feature in features if feature is not memberships)
        if memberships is not None:
            columns = (*memberships.columns, *columns)
        by = cls(columns, policy=policy, memberships=memberships)
        if len(set(by.names)) < len(by.names) or len(set(columns)) < len(columns):
            msg = f"{name}: two columns have the same name; remove or rename one."
            raise ArgumentError(msg)
        return by

    def refuse_memberships(self, subject: str, *, overlapping: bool = False) -> None:
        """Refuse groups of memberships where each row is in one group, or only those that are `overlapping`."""
        if self.memberships is None or (overlapping and self.memberships.combined != "any"):
            return
        way_out = ', or say `combined="alone"` or `combined="each"`' if overlapping else ""
        msg = (
            f"{subject}: each row is in one group, and in `{self.memberships!r}` it may be in several. Compute one "
            "column, of the combinations of groups or of one group and all others, and compare by that"
            f"{way_out}."
        )
        raise ArgumentError(msg)

    def refuse_partly_unknown(self, subject: str, keys: pl.DataFrame) -> None:
        """Refuse people of whom some memberships are known and others are not, by the keys of `columns`."""
        if self.memberships is None:
            return
        unknown = self.memberships.patterns(keys[:, : len(self.memberships.columns)]).unknown
        if (unknown.any(axis=1) & ~unknown.all(axis=1)).any():
            msg = (
                f"{subject}: for some people it is known whether they are in one group of {self.memberships.name!r}, "
                "and not for another, so the rows outside of a group would give their number away. Fill these values, "
                'or say `combined="each"`.'
            )
            raise ArgumentError(msg)

    @property
    def keys(self) -> tuple[Column, ...]:
        """The columns whose values are the groups: those that are read, or the groups that overlap and the others."""
        if self.memberships is None:
            return self.columns
        return (Column(f"\0{self.memberships.name}"), *self.columns[len(self.memberships.columns) :])

    @property
    def names(self) -> list[str]:
        """The names of `keys` in results."""
        return [name.removeprefix("\0") for name in names_of(self.keys)]

    @cached_property
    def text(self) -> str:
        """The text in the `.by` column of results."""
        return self.sides.text if self.sides else ":".join(self.names)

    @property
    def features(self) -> tuple[ColumnLike | Memberships | Privileged, ...]:
        """The arguments of a factory to compare the same groups."""
        if self.sides:
            return (self.sides,)
        columns = [column.source for column in self.keys]
        return tuple(columns) if self.memberships is None else (self.memberships, *columns[1:])

    def groups(self, keys: pl.DataFrame) -> pl.DataFrame:
        """The keys of the group of each row of keys: the columns or, of two sides, the side.

        Of groups that overlap it is the combination of groups that a row is in.
        """
        if self.memberships is not None:
            read = len(self.memberships.columns)
            combination = self.memberships.patterns(keys[:, :read]).texts.alias(self.memberships.name)
            return pl.DataFrame([combination, *keys[:, read:]])
        if self.sides is None:
            return keys
        side = self.sides.side(keys)
        # a value that a condition names is known, whatever it says
        named = ["privileged", "unprivileged"] if self.sides.unprivileged else ["privileged"]
        is_unknown = self.policy.is_unknown(keys) & ~side.is_in(named)
        return pl.select(pl.when(is_unknown).then(pl.lit("unknown", SIDES)).otherwise(side).alias(SIDE))

    def rows_by_group(self, keys: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
        """The rows of keys, each as often as it is in a group, and the keys of these groups."""
        if self.memberships is None:
            return pl.int_range(len(keys), eager=True), self.groups(keys)
        read = len(self.memberships.columns)
        rows, group = self.memberships.patterns(keys[:, :read]).rows_by_group
        row = pl.Series(rows)
        return row, pl.DataFrame([group.alias(self.memberships.name), *keys[row, read:]])

    def is_unknown(self, keys: pl.DataFrame) -> pl.Series:
        """The mask of the rows of `groups` whose group is unknown."""
        return keys.to_series() == "unknown" if self.sides else self.policy.is_unknown(keys)

    def is_compared(self, keys: pl.DataFrame) -> pl.Series:
        """The mask of the rows of `groups` that may be compared: known people and, of two sides, those on one."""
        if self.sides:
            return keys.to_series().is_in(["privileged", "unprivileged"])
        is_known = ~self.policy.is_unknown(keys)
        if self.memberships is None:
            return is_known
        return is_known & keys.to_series(0).ne_missing(pl.Series([NO_GROUP]))

    def __repr__(self) -> str:
        features = [repr(self.sides)] if self.sides else list(map(repr, self.keys))
        if self.memberships is not None:
            features[0] = repr(self.memberships)
        settings = [f"{name}={value!r}" for name, value in self.policy.stated.items()]
        return ", ".join(features + settings)

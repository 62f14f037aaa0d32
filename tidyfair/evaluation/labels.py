"""The labels of a call: their values, their order and the event, from the data and the arguments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl

from tidyfair.errors import (
    ArgumentError,
    ColumnError,
    LabelError,
    advice,
    differs_in_case,
    in_short,
    listed,
    nearest,
    with_article,
)
from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.specs import (
    AVERAGES,
    BINARY,
    DISTRIBUTION_BY_LABEL,
    ONE_VS_REST,
    Average,
    Integers,
    Options,
    are_told_apart,
    is_list,
    is_value,
    kind_of,
    one_of,
)
from tidyfair.tallies import ARRAY, ESTIMATE, LABELS, TRUTH, Tally

_FEW_CELLS = 1_000
"""Up to this many cells Python is faster than a query."""
_PAIRS = ((0, 1), (-1, 1))
"""The usual numbers for two classes; if both pairs fit, the first one is used."""
_MOST_LABELS = 1_000
"""More different numbers than this count as a measurement, unless `labels=` lists them."""


@dataclass(frozen=True)
class Labels:
    """The labels of a call in level order, and the event, if one label is read against the rest."""

    values: tuple[Any, ...]
    event: int | None
    """The index of the positive label; None if all labels are read."""
    in_order: bool = True
    """True if their order means something: listed, declared by the dtype, or numbers."""
    unseen: bool = False
    """True if `pos_label` neither occurs nor is declared, so that it may be misspelt."""

    @property
    def remarks(self) -> list[str]:
        """The message on an event that does not occur."""
        if not self.unseen or self.event is None:
            return []
        event = self.values[self.event]
        others = [value for value in self.values if value != event]
        hint = nearest(event, others).strip()
        way_out = "if it is a label, list all of them as `labels=`"
        if hint:
            way_out += f" ({hint})"
        return [f"`pos_label={event!r}` does not occur among the labels {listed(others)} of these data; {way_out}"]

    @property
    def levels(self) -> list[int]:
        """The indices of the labels that are read against the rest."""
        return list(range(len(self.values))) if self.event is None else [self.event]

    def levels_of(self, average: Average) -> Sequence[int]:
        """The indices of the labels that the values of a formula are of: of a distribution, all of them."""
        return range(len(self.values)) if average is DISTRIBUTION_BY_LABEL else self.levels

    def encode(self, tally: Tally) -> pl.DataFrame:
        """The cells with `truth` and `estimate` as indices in `values`; null stays null."""
        if tally.needs.numbers:
            return tally.cells
        encoded = [pl.Series(side, self.index(tally, side), dtype=pl.Int32) for side in LABELS]
        return tally.cells.with_columns(side.set(side < 0, None) for side in encoded)

    def index(self, tally: Tally, side: str) -> Integers:
        """The index of the label of each cell of a tally on one side; -1 where it is missing."""
        column, index_of = tally.cells.get_column(side), self._indices(tally)[side]
        if tally.cells.height <= _FEW_CELLS:
            return np.array(list(map(index_of.get, column.to_list(), itertools.repeat(-1))), dtype=np.int64)
        distinct = KeyCodes(column.to_frame()).index([side])
        indices = [index_of.get(value, -1) for value in distinct.keys[side].to_list()]
        return np.array(indices, dtype=np.int64)[distinct.of_cell]

    def _indices(self, tally: Tally) -> dict[str, dict[Any, int]]:
        """The index of each label of the truth and of the estimate."""
        index_of = {value: index for index, value in enumerate(self.values)}
        if tally.cut is None or self.event is None:
            return {TRUTH: index_of, ESTIMATE: index_of}
        # rows at or above the threshold have the event, rows below any other label
        other = 1 if self.event == 0 else 0
        return {TRUTH: index_of, ESTIMATE: {True: self.event, False: other}}


NUMBERS = Labels((), 0)
"""Stands for labels if truth and estimate are numbers."""


class _LabelColumn(NamedTuple):
    """A column of labels."""

    side: str
    """`truth` or `estimate`."""
    name: str
    """The user's name of the column."""
    dtype: pl.DataType
    seen: list[Any]
    """The labels that occur in it."""
    levels: list[Any]
    """The labels that it declares, if any."""

    @classmethod
    def of(cls, tally: Tally) -> list[_LabelColumn]:
        """The columns of a tally; estimates from a threshold have none."""
        columns = {TRUTH: tally.truth, ESTIMATE: tally.estimate if tally.cut is None else None}
        return [
            cls(side, column.name, tally.kinds[side], tally.seen[side], tally.levels(side))
            for side, column in columns.items()
            if column is not None
        ]


def read_labels(tally: Tally, options: Options, *, any_event: bool = False, allow_unseen: bool = False) -> Labels:
    """Determine the labels of a call and the event; raise, and show what to write, if either is in doubt.

    If not declared otherwise, labels are the keys of a mapping of scores. With `any_event` either of two labels may be
    the event, because nothing depends on it. With `allow_unseen` the event may be a label that does not occur, as in a
    fold without one of many labels; the caller then returns no value.
    """
    labels, pos_label, estimator = options.labels, options.pos_label, options.estimator
    if estimator is not None:
        one_of("estimator", estimator, tuple(AVERAGES))
    columns = _LabelColumn.of(tally)
    _check_told_apart(columns)
    mapped = _labels_of_scores(tally)
    # a mapping says which labels there are, not that they are in order
    is_mapped = mapped is not None and labels is None
    labels = mapped if is_mapped else labels
    if pos_label is not None:
        check_label(pos_label)
    values = _seen_labels(tally, columns, pos_label) if labels is None else _listed_labels(columns, labels)
    # by the user, or by the dtype of a column
    are_declared = labels is not None or any(column.levels for column in columns)
    in_order = (are_declared and not is_mapped) or _have_order(values)
    if not values:
        # without any label every value is undefined, and nothing is in doubt
        values = [False, True] if pos_label is None else [cast("Any", pos_label)]
    unseen = pos_label is not None and pos_label not in values
    if unseen:
        _refuse_slip(pos_label, values, declared=are_declared, allow_unseen=allow_unseen)
        # a lone label and an event beside it are a pair
        unseen = len(values) > 1
        values = sorted([*values, cast("Any", pos_label)])
    if _reads_all_labels(tally, values, pos_label, estimator):
        return Labels(tuple(values), None, in_order)
    event = _event(tally, values, any_event=any_event and not is_mapped) if pos_label is None else pos_label
    return Labels(tuple(values), values.index(cast("Any", event)), in_order, unseen)


def _labels_of_scores(tally: Tally) -> Sequence[object] | None:
    """The labels that a mapping of scores names; None without a mapping, or if the truth declares its own."""
    mapped = tally.scores.labels if tally.scores is not None else None
    if mapped is None:
        return None
    without = [label for label in tally.seen[TRUTH] if label not in mapped]
    if without:
        msg = f"`probs` has columns for {listed(mapped)} but not for {listed(without)}; give one for each label."
        raise ColumnError(msg)
    return None if tally.levels(TRUTH) else mapped


def _have_order(values: Sequence[object]) -> bool:
    """Check whether values have a meaningful order, as numbers do and texts do not."""
    return not any(isinstance(value, str) for value in values)


def _reads_all_labels(tally: Tally, values: list[Any], pos_label: object, estimator: str | None) -> bool:
    """Check whether all labels are read, and refuse arguments that contradict each other."""
    many = len(values) > 2
    average = None if estimator is None else AVERAGES[estimator]
    all_labels = average is not None and (not average.by_label or (many and average is ONE_VS_REST))
    if all_labels and pos_label is not None:
        msg = f"`pos_label` selects one label but estimator={estimator!r} uses all of them; give one of the two."
        raise ArgumentError(msg)
    if many and tally.cut is not None and pos_label is None:
        msg = f"A threshold selects one label against the rest: give `pos_label=`, one of {listed(values)}."
        raise LabelError(msg)
    if all_labels and tally.cut is not None:
        msg = (
            f"A threshold selects one label against the rest, but estimator={estimator!r} uses all labels; leave one "
            "of the two out."
        )
        raise ArgumentError(msg)
    return all_labels or (many and pos_label is None and average is not BINARY)


def _refuse_slip(pos_label: object, values: list[Any], *, declared: bool, allow_unseen: bool) -> None:
    """Refuse an event that is not among the labels, unless labels may be absent."""
    is_of_other_kind = len(set(map(kind_of, (*values, pos_label)))) > 1
    is_slip = declared or is_of_other_kind or differs_in_case(pos_label, values)
    if not is_slip and (allow_unseen or len(values) == 1):
        return
    hint = nearest(pos_label, values)
    if not (declared or is_of_other_kind or hint):
        hint = " If it is a label that does not occur, list all of them as `labels=`."
    msg = f"`pos_label`: {pos_label!r} is not among the labels {listed(values)}.{hint}"
    raise LabelError(msg)


def check_label(pos_label: object) -> None:
    """Refuse values that cannot be labels."""
    if not is_value(pos_label):
        msg = f"`pos_label` must be one label, not {with_article(type(pos_label).__name__)}."
        raise LabelError(msg)


def _check_told_apart(columns: Sequence[_LabelColumn]) -> None:
    """Refuse whole numbers on one side that floats on the other side cannot represent exactly."""
    if len({isinstance(column.seen[0], float) for column in columns if column.seen}) < 2:
        return
    labels = [pl.Series(column.seen, dtype=column.dtype) for column in columns]
    if not are_told_apart(labels):
        shown = " and ".join(f"{column.name!r} ({column.dtype})" for column in columns)
        msg = f"{shown} hold labels that floats cannot represent exactly; cast both to one type that is not a float."
        raise LabelError(msg)


def _event(tally: Tally, values: list[Any], *, any_event: bool) -> Any:
    """The event, if the labels determine it."""
    if _are_usual_pair(values):
        return 1
    if any_event and len(values) <= 2:
        return values[-1]
    column = tally.truth or tally.estimate
    name = column.name if column else "the data"
    choices = "`pos_label=` one of them"
    if len(values) <= 2:
        choices = " or ".join(map("`pos_label={!r}`".format, reversed(values)))
    msg = f"Which label of {name!r} is the event? The labels are {listed(values)}: write {choices}."
    raise LabelError(msg)


def _are_usual_pair(values: Sequence[Any]) -> bool:
    """Check whether the labels are one of the usual pairs of numbers."""
    return set(values) in map(set, _PAIRS)


def _listed_labels(columns: Sequence[_LabelColumn], labels: Sequence[object]) -> list[Any]:
    """The labels that the user lists, which must hold all that occur."""
    listing = cast("object", labels)
    values = list(listing) if is_list(listing) else []
    if not values or not all(map(is_value, values)) or len(set(values)) < len(values):
        msg = f"`labels` must list distinct labels, not {in_short(labels)}."
        raise LabelError(msg)
    for column in columns:
        unlisted = [value for value in column.seen if value not in values]
        if unlisted:
            strays = _strays([*values, *column.seen])
            way_out = f"{_cleaning(columns, strays)}, or list every label" if strays else "list every label"
            msg = f"`labels`: the column {column.name!r} also holds {listed(unlisted)}; {way_out}."
            raise LabelError(msg)
    return values


def _seen_labels(tally: Tally, columns: Sequence[_LabelColumn], pos_label: object) -> list[Any]:
    """The labels that dtypes declare, else those that occur in truth or estimate."""
    levels = [column.levels for column in columns if column.levels]
    distinct = set[Any]().union(*[column.seen for column in columns])
    if distinct == {*_PAIRS[0]} and not levels:
        # nothing is in doubt
        return sorted(distinct)
    holds = "; ".join(f"{column.name!r} holds {listed(column.seen)}" for column in columns)
    values = sorted(distinct, key=lambda value: (kind_of(value), value))
    if len(set(map(kind_of, values))) > 1:
        msg = f"Truth and estimate hold different kinds of labels: {holds}. {_way_to_one_kind(columns)}"
        raise LabelError(msg)
    if levels:
        return _declared_labels(levels, values)
    _refuse_strays(columns, values, holds)
    _refuse_measurement(columns, values)
    _refuse_marker(tally, columns, values)
    if len(values) == 1:
        for pair in _PAIRS:
            if values[0] in pair and pos_label in (None, *pair):
                return list(pair)
    if not _belong_together(columns, values, pos_label):
        msg = (
            f"Truth and estimate have no label in common: {holds}. If they belong together, list all of them as "
            "`labels=`."
        )
        raise LabelError(msg)
    return values


def _way_to_one_kind(columns: Sequence[_LabelColumn]) -> str:
    """The sentence on how to convert labels of two kinds: compare a text with a label to get a Boolean."""
    for column in columns:
        name, texts = column.name, [value for value in column.seen if isinstance(value, str)]
        words = [text for text in texts if not _is_number(text)]
        if len(words) == 1 < len(texts):
            null = f"read it as null: `pl.col({name!r}).replace({words[0]!r}, None).cast(pl.Int64)`"
            way_out = advice(null, "leave it empty")
            return f"{name!r} is text because of {words[0]!r}. If that means missing, {way_out}."
        if texts and not name.startswith(ARRAY):
            label = f"{name} is {texts[-1]}"
            code = f"`(pl.col({name!r}) == {texts[-1]!r}).alias({label!r})`"
            on_files = "Write the labels of both in the same way."
            return advice(f"Convert one of them, for example with {code}.", on_files)
    return "Cast one of them."


def _is_number(text: str) -> bool:
    """Check whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _declared_labels(levels: list[list[Any]], values: list[Any]) -> list[Any]:
    """The levels that the dtypes of truth and estimate declare, which must hold all values."""
    declared = max(levels, key=len)
    every = itertools.chain(values, *levels)
    unknown = [value for value in every if value not in declared]
    if unknown:
        msg = (
            f"Truth and estimate have different levels: {listed(unknown)} is not among {listed(declared)}. If all of "
            "them are labels, list them as `labels=`."
        )
        raise LabelError(msg)
    return declared


def _refuse_strays(columns: Sequence[_LabelColumn], values: list[Any], holds: str) -> None:
    """Refuse labels that nothing but case and blanks tells apart, unless the user or a dtype lists them."""
    strays = _strays(values)
    if strays:
        alike = "; ".join(map(listed, strays))
        msg = (
            f"Labels differ only by case or blanks: {alike} ({holds}). If they are the same label, "
            f"{_cleaning(columns, strays)}. If they are different labels, list all of them: `labels={values!r}`."
        )
        raise LabelError(msg)


def _strays(values: Sequence[object]) -> list[list[str]]:
    """The texts that are the same up to case and blanks, together."""
    alike: dict[str, list[str]] = {}
    for value in dict.fromkeys(values):
        if isinstance(value, str):
            alike.setdefault(" ".join(value.split()).lower(), []).append(value)
    return [texts for texts in alike.values() if len(texts) > 1]


def _cleaning(columns: Sequence[_LabelColumn], strays: Sequence[Sequence[str]]) -> str:
    """The words on how to make one label of each of the strays."""
    steps = ""
    if any(column.name.startswith(ARRAY) for column in columns):
        return "write it in one way"
    different = set(itertools.chain(*strays))
    if any(text != text.strip() for text in different):
        steps += ".str.strip_chars()"
    if any(text.strip() != " ".join(text.split()) for text in different):
        steps += r'.str.replace_all(r"\s+", " ")'
    if any(len({" ".join(text.split()) for text in texts}) > 1 for texts in strays):
        steps += ".str.to_lowercase()"
    if any(column.dtype != pl.String for column in columns):
        steps = f".cast(pl.String){steps}"
    code = f"`data.with_columns(pl.col({listed(column.name for column in columns)}){steps})`"
    return advice(f"make it one: {code}", "write it in one way in the file")


def _refuse_measurement(columns: Sequence[_LabelColumn], values: list[Any]) -> None:
    """Refuse columns with so many different numbers that they look like a measurement."""
    if len(values) <= _MOST_LABELS or isinstance(values[0], str):
        return
    column = max(columns, key=lambda column: len(column.seen))
    msg = (
        f"`{column.side}`: the column {column.name!r} holds {len(column.seen)} different numbers, like a measurement, "
        "but class metrics read labels. If these are labels, list them as `labels=`."
    )
    raise LabelError(msg)


def _belong_together(columns: Sequence[_LabelColumn], values: list[Any], pos_label: object) -> bool:
    """Check whether truth and estimate hold labels of one kind: they share a label, or form a usual pair."""
    seen = [column.seen for column in columns if column.seen]
    if len(seen) < len(LABELS) or not set(seen[0]).isdisjoint(seen[1]):
        return True
    if len(values) > 2:
        return False
    # an event among two labels shows that they belong together
    return pos_label in values or _are_usual_pair(values)


def _refuse_marker(tally: Tally, columns: Sequence[_LabelColumn], values: list[Any]) -> None:
    """Refuse a negative number in the truth that is never predicted: it usually marks rows without a truth."""
    seen = {column.side: column.seen for column in columns}
    negative = [value for value in seen.get(TRUTH, []) if isinstance(value, Real) and value < 0]
    if len(negative) != 1:
        return
    marker = negative[0]
    others = [value for value in values if value not in negative]
    predicted = seen.get(ESTIMATE)
    if predicted is None:
        # one column of scores stands for two labels
        of_two = tally.scores is not None and not tally.scores.several and set(others) <= {0, 1}
        predicted = others if of_two else []
    if not predicted or marker in predicted or min(others) < 0 or others == [-marker]:
        return
    column = columns[0].name
    rows = tally.cells.filter(pl.col(TRUTH) == marker)["n"].sum()
    msg = (
        f"`truth`: the column {column!r} holds {marker!r} in {rows} rows, but only {listed(others)} are ever "
        f"predicted. If {marker!r} marks rows without a truth, leave these out: `ignore_index={marker!r}` in "
        f"`.arrays`, or `data.filter(pl.col({column!r}) != {marker!r})`. If it is a label, write `labels={values!r}`."
    )
    raise LabelError(msg)

"""Data in batches: accumulators of tallies, and tallies as files."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Self, Unpack, cast

import numpy as np
import polars as pl

from tidyfair.calling.calls import Evaluable
from tidyfair.calling.metric_sets import GroupwiseFactory
from tidyfair.errors import ArgumentError, in_short, listed
from tidyfair.specs import (
    GroupReadOptions,
    Options,
    Prediction,
    ReadOptions,
    SurveyCountOptions,
    TruthLike,
    compared_columns,
    refuse_unknown_settings,
    whole,
)
from tidyfair.tallies import (
    HIDDEN,
    LABELS,
    Tally,
    add_up,
    check_threads,
    counts_by_labels,
    frame_of_arrays,
    hidden_groups,
    index_of_rows,
    save,
)

__all__ = ["Accumulator", "load_state", "save_state"]

_FORMAT = "tidyfair tally"
_VERSION = 2
_KEY = "tidyfair"
_SEAL = b"tidyfair sha256:"
_SEALED = len(_SEAL) + hashlib.sha256().digest_size
_LAST = 8
"""Bytes at the end of a parquet file: the length of its footer, and its magic number."""
_MOST_PENDING = 64
_IS_ROW, _ONE = "\0row", "\0one"


class Accumulator:
    """Metrics over batches of data, with `update` for each batch and `compute` at any time.

    Args:
        metrics: A metric, a groupwise metric or a set.
        truth: Column of the truth in every batch; leave out for batches of arrays.
        estimate: Column of the predictions.
        counting: Options of counting, as in a call: `probs`, `threshold`, `group_by`, `case_weights`.

    Groups are merged by their values: one may be absent from a batch, or new in a later one. Metrics of labels keep
    only counts; ranking metrics keep scores. Threads may share one accumulator; processes need one each, to be merged.
    Start processes with `spawn`: a process forked after polars has run cannot count (`ForkError`).

    >>> import polars as pl
    >>> from tidyfair import selection_rate
    >>> seen = Accumulator(selection_rate, estimate="guess")
    >>> for batch in ([1, 0], [1, 1]):
    ...     _ = seen.update(pl.DataFrame({"guess": batch}))
    >>> seen.compute()[".estimate"].item()
    0.75
    """

    def __init__(
        self,
        metrics: Evaluable,
        truth: TruthLike | None = None,
        estimate: Prediction | None = None,
        **counting: Unpack[SurveyCountOptions],
    ) -> None:
        if not isinstance(metrics, Evaluable):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            way_out = ""
            if isinstance(metrics, GroupwiseFactory):
                way_out = f'; give the feature, `{metrics.name}("column")`'
            msg = (
                f"An accumulator takes a metric, a groupwise metric or a metric set, not {in_short(metrics)}{way_out}."
            )
            raise ArgumentError(msg)
        self.metrics = metrics
        self._asked = metrics.run.options(counting, SurveyCountOptions, truth=truth, estimate=estimate)
        # batches are counted as they are, and what is read of all of them is suppressed
        self._options = replace(self._asked, suppress_below=None)
        self._pending = list[Tally]()
        self._lock = Lock()

    @property
    def state(self) -> Tally:
        """The tally of everything so far."""
        counted = self._counted()
        if counted is None:
            msg = "Nothing has been counted; update the accumulator with a batch first."
            raise ArgumentError(msg)
        check_threads(os.getpid())
        return self.metrics.reading(counted.given).run.suppressed(counted, self._asked)

    def update(
        self,
        batch: Any = None,
        estimate: object = None,
        *,
        truth: object = None,
        probs: object = None,
        case_weights: object = None,
        frequency_weights: object = None,
        by: Mapping[str, object] | None = None,
        group_by: Mapping[str, object] | None = None,
        ignore_index: object = None,
    ) -> Self:
        """Count a batch: a frame, as in a call of the metric, or arrays and tensors, as in its `arrays`.

        Arrays need an accumulator without column names. All batches need the same arguments as the first, such as
        scores or weights.

        Args:
            batch: A frame; or the truth, as an array.
            estimate: Predictions.
            truth: The truth, if it is not the first argument.
            probs: Scores of the event, or a mapping from labels to the scores of each.
            case_weights: Case weights.
            frequency_weights: Number of equal rows that a row stands for.
            by: The sensitive features, keyed by their names in the metrics.
            group_by: Outer groups by name.
            ignore_index: Rows whose truth is this value are left out.

        >>> from tidyfair import demographic_parity
        >>> seen = Accumulator(demographic_parity("sex"))
        >>> _ = seen.update([1, -1, 0], [1, 1, 0], by={"sex": ["f", "f", "m"]}, ignore_index=-1)
        >>> seen.compute()[".estimate"].item()
        1.0
        """
        given = {
            "truth": truth,
            "estimate": estimate,
            "probs": probs,
            "case_weights": case_weights,
            "frequency_weights": frequency_weights,
        }
        is_frame = all(value is None for value in (*given.values(), by, group_by, ignore_index))
        if is_frame:
            self._count(batch, self._options)
            return self
        self._check_arrays(batch, truth)
        given["truth"] = batch if truth is None else truth
        frame, columns = frame_of_arrays(given, by, group_by, ignore_index, compared_columns(self.metrics.specs))
        self._count(frame, replace(self._options, **columns))
        return self

    def _count(self, batch: object, options: Options) -> None:
        """Count a batch with the variants of the metrics for the given columns."""
        check_threads(os.getpid())
        self._add(self.metrics.reading(options.given).run.tally(batch, options))

    def merge(self, other: Accumulator | Tally) -> Self:
        """Add the counts of another accumulator or of a tally, which is not changed."""
        check_threads(os.getpid())
        if not isinstance(other, Accumulator | Tally):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = f"An accumulator can be merged with another accumulator or a tally, not with {in_short(other)}."
            raise ArgumentError(msg)
        if other is self:
            msg = "An accumulator cannot be merged with itself: every row would count twice."
            raise ArgumentError(msg)
        counted = other if isinstance(other, Tally) else other._counted()  # noqa: SLF001 - of the same class
        if counted is not None:
            self._add(counted)
        return self

    def compute(self, **reading: Unpack[ReadOptions]) -> pl.DataFrame:
        """The metrics of everything so far, as from `compute` of the metrics."""
        return self.metrics.compute(self.state, **reading)

    def compute_by_group(self, **reading: Unpack[GroupReadOptions]) -> pl.DataFrame:
        """The values of the groups so far."""
        return self.metrics.compute_by_group(self.state, **reading)

    def reset(self) -> Self:
        """Discard all counts."""
        with self._lock:
            self._pending = []
        return self

    @property
    def _columns(self) -> dict[str, object]:
        """The columns named at creation, by argument."""
        columns: dict[str, object] = {}
        for role in ("truth", "estimate", "probs", "group_by", "case_weights", "frequency_weights"):
            column = getattr(self._options, role)
            if column is not None:
                columns[role] = column
        return columns

    def _check_arrays(self, batch: object, truth: object) -> None:
        """Refuse arrays together with a frame, or if columns were named."""
        if hasattr(type(batch), "columns"):
            msg = (
                "update(): a frame must be the only argument; filter rows beforehand, and name columns when creating "
                "the accumulator."
            )
            raise ArgumentError(msg)
        if batch is not None and truth is not None:
            msg = "update(): the truth is given twice, first and as `truth=`."
            raise ArgumentError(msg)
        for role, column in self._columns.items():
            msg = (
                f"update(): this accumulator was created for frames, with `{role}={column!r}`; for arrays create one "
                "without columns, `Accumulator(metrics)`."
            )
            raise ArgumentError(msg)

    def _counted(self) -> Tally | None:
        """The tally of everything so far, if there is anything."""
        with self._lock:
            self._add_up()
            return self._pending[0] if self._pending else None

    def _add(self, tally: Tally) -> None:
        options, tally = self._options, replace(tally, suppression=None)
        if not self._columns:
            # the first batch decides which columns, or arrays, there are
            options = replace(options, **_columns_of(tally))
        self.metrics.reading(options.given).run.check_counted(tally, options)
        with self._lock:
            if self._pending:
                first = self._pending[0]
                first.check_fits(tally)
                if any(first.kinds[name] != tally.kinds[name] for name in first.counted_by):
                    # added at once, so that keys that do not fit raise here and leave the others as they are
                    self._pending = [add_up([*self._pending, tally], checked=True)]
                    return
            self._pending.append(tally)
            if len(self._pending) >= _MOST_PENDING:
                self._add_up()

    def _add_up(self) -> None:
        """Add up the pending tallies; the caller holds the lock."""
        if len(self._pending) > 1:
            self._pending = [add_up(self._pending, checked=True)]

    def __getstate__(self) -> dict[str, Any]:
        # a lock does not travel, and a copy goes on with a list of its own
        with self._lock:
            return {**self.__dict__, "_pending": list(self._pending), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

    def __repr__(self) -> str:
        counted = self._counted()
        rows = counted.row_count if counted else 0
        return f"<accumulator of {rows:,} rows for {self.metrics!r}>"


def _columns_of(tally: Tally) -> dict[str, Any]:
    """The arguments that name the columns of a tally."""
    arguments: dict[str, Any] = {}
    for role, column in (("truth", tally.truth), ("estimate", tally.estimate), ("case_weights", tally.weights)):
        arguments[role] = None if column is None else column.source
    scores = tally.scores
    if scores is not None:
        columns = [column.source for column in scores.columns]
        if scores.labels is not None:
            arguments["probs"] = dict(zip(scores.labels, columns, strict=True))
        else:
            arguments["probs"] = columns if scores.several else columns[0]
    return arguments


@refuse_unknown_settings
def save_state(tally: Tally, path: str | Path, *, suppress_below: int | None = None) -> None:
    """Write a tally to a parquet file, with a version, the definition of the count, and a digest.

    For metrics of labels it holds counts and no rows; for ranking metrics, the scores or their bins.

    Args:
        tally: The result of `tally`, or the `state` of an accumulator.
        path: Name of the file, without wildcards. An existing file is replaced once the new one is complete.
        suppress_below: Counts below this number of rows can identify people. A group with such a count is left out as a
            whole, together with other groups, so that no small count follows from totals over any of the columns.
            Values that need a suppressed group are null with the reason `suppressed`, also in tallies that it is added
            to. No protection against files of a part and of the whole. Left out, that of the tally.

    Raises:
        ArgumentError: If the tally cannot be described in a file (expressions with Python functions) or cannot be
            suppressed, or if the file cannot be written.
    """
    check_threads(os.getpid())
    if not isinstance(tally, Tally):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"save_state() takes the result of `tally` or the `state` of an accumulator, not {in_short(tally)}."
        raise ArgumentError(msg)
    if tally.design is not None:
        msg = "save_state() does not support survey designs yet; save a tally without `design=`."
        raise ArgumentError(msg)
    if suppress_below is None and tally.suppression is not None:
        suppress_below = tally.suppression.below
    if suppress_below is not None:
        tally = _suppressed(tally, suppress_below)
    parts = [tally.cells.with_columns(pl.lit(value=False).alias(_IS_ROW))]
    if tally.rows is not None:
        parts.append(tally.rows.with_columns(pl.lit(value=True).alias(_IS_ROW)))
    parquet = io.BytesIO()
    description = json.dumps(_described(tally))
    pl.concat(parts, how="diagonal_relaxed").write_parquet(parquet, metadata={_KEY: description})
    content = sealed(parquet.getvalue())
    try:
        save(lambda file: file.write_bytes(content), Path(path))
    except (OSError, TypeError, ValueError) as error:
        msg = f"The state cannot be written to {str(path)!r}: {error}"
        raise ArgumentError(msg) from error


def _suppressed(tally: Tally, fewest: int) -> Tally:
    """The tally without groups that have small counts, and without groups from which these could be derived."""
    whole("suppress_below", fewest, 1)
    if tally.judge is not None:
        msg = (
            "`suppress_below`: values by labels of people and a judge need all cells, and a state without some has "
            "none; save it whole, or count without `judged=`."
        )
        raise ArgumentError(msg)
    if tally.needs.anything:
        msg = (
            "Only counts of labels can be suppressed, but this tally holds sums or rows of scores or numbers. Count "
            "metrics of labels in a separate set, and save that."
        )
        raise ArgumentError(msg)
    keys = [name for name in tally.counted_by if name not in LABELS]
    pairs = tally.cells.select(LABELS).unique(maintain_order=True)
    examples, counts = counts_by_labels(tally.cells, keys, LABELS)
    groups = tally.cells[examples].select(pl.lit(0).alias(_ONE), *keys)
    # totals over any of the keys may be known to others
    margins = [some for number in range(len(keys)) for some in itertools.combinations(keys, number)]
    known = [index_of_rows(groups.select(_ONE, *some)) for some in margins]
    before: Any = None
    if HIDDEN in tally.cells.columns:
        hidden_keys = tally.cells.filter(pl.col(HIDDEN) > 0).select(keys)
        before = groups.select(pl.struct(keys).is_in(hidden_keys.to_struct().implode())).to_series().to_numpy()
    (hidden,) = hidden_groups(counts, [np.arange(len(groups))], fewest, known=known, hidden=before)
    # every group has all pairs of labels, so that missing pairs reveal nothing
    cells = groups.with_columns(pl.Series(HIDDEN, hidden)).join(pairs, how="cross", maintain_order="left_right")
    counted = tally.cells.drop(HIDDEN, strict=False)
    cells = cells.join(counted, on=[*keys, *LABELS], how="left", nulls_equal=True, maintain_order="left")
    sums = [name for name in counted.columns if name not in {*keys, *LABELS}]
    kept = [pl.when(~pl.col(HIDDEN)).then(name).otherwise(0).alias(name) for name in sums]
    cells = cells.select(*keys, *LABELS, *kept, pl.col(HIDDEN).cast(pl.Int64))
    return replace(tally, cells=cells.filter((pl.col("n") > 0) | (pl.col(HIDDEN) > 0)))


@refuse_unknown_settings
def load_state(path: str | Path, like: Tally) -> Tally:
    """Read a tally that `save_state` wrote.

    Args:
        path: The file.
        like: A tally of the same metrics and columns on any rows, such as `metrics.tally(frame.head(0), …)`. It defines
            the expected count, because a file cannot hold formulas.

    Raises:
        ArgumentError: If the file was not written by `save_state`, is damaged, or has another definition of the count.
            The digest detects damage, not forgery: load only files from trusted sources.
    """
    check_threads(os.getpid())
    if not isinstance(like, Tally):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = (
            "load_state() needs a tally of the same metrics, such as `metrics.tally(frame.head(0), …)`, not "
            f"{in_short(like)}."
        )
        raise ArgumentError(msg)
    shown = repr(str(path))
    with _reading(shown):
        parquet = _unsealed(Path(path).read_bytes())
    if parquet is None:
        msg = f"{shown} was not written by `save_state`, or is damaged."
        raise ArgumentError(msg)
    with _reading(shown):
        text = pl.read_parquet_metadata(io.BytesIO(parquet)).get(_KEY)
        content: object = json.loads(text) if text else {}
    description = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    if description.get("format") != _FORMAT:
        msg = f"{shown} was not written by `save_state`."
        raise ArgumentError(msg)
    if description.get("version") != _VERSION:
        msg = f"{shown} has version {description.get('version')!r}; this release reads version {_VERSION}."
        raise ArgumentError(msg)
    for name, value in _described(like).items():
        if description.get(name) != value:
            msg = f"{shown} was counted with different {name}: {description.get(name)!r}, not {in_short(value)}."
            raise ArgumentError(msg)
    with _reading(shown):
        loaded = _loaded(pl.read_parquet(io.BytesIO(parquet)), like)
        loaded.check_contents(like)
    shown = like.suppression
    return loaded if shown is None else loaded.suppressed(shown.bys, shown.below)


def _loaded(frame: pl.DataFrame, like: Tally) -> Tally:
    """A tally from the rows of a file, with the columns of the tally that it is like."""
    cells = [name for name in like.cells.columns if name != HIDDEN]
    if HIDDEN in frame.columns:
        cells.append(HIDDEN)
    rows = [] if like.rows is None else like.rows.columns
    if set(frame.columns) != {*cells, *rows, _IS_ROW} or frame.schema[_IS_ROW] != pl.Boolean:
        msg = f"its columns are {listed(frame.columns)}, not {listed(dict.fromkeys([*cells, *rows]))}."
        raise ArgumentError(msg)
    is_row = frame[_IS_ROW]
    if is_row.null_count() or (like.rows is None and is_row.any()):
        msg = "it holds rows, which are not expected."
        raise ArgumentError(msg)
    kept = None if like.rows is None else frame.filter(is_row).select(rows)
    return replace(like, cells=frame.filter(~is_row).select(cells), rows=kept)


def sealed(parquet: bytes) -> bytes:
    """A parquet file with a digest before its footer, where other parquet readers ignore it.

    A damaged file can crash the process that parses it, so the digest is checked first. It detects damage, not forgery.
    """
    footer = _footer(parquet)
    return parquet[:footer] + _SEAL + hashlib.sha256(parquet).digest() + parquet[footer:]


def _unsealed(content: bytes) -> bytes | None:
    """The parquet file without its digest; None without a digest, or with that of another file."""
    footer = _footer(content)
    seal = max(0, footer - _SEALED)
    parquet = content[:seal] + content[footer:]
    return parquet if content[seal:footer] == _SEAL + hashlib.sha256(parquet).digest() else None


def _footer(content: bytes) -> int:
    """The position of the footer of a parquet file."""
    return max(0, len(content) - _LAST - int.from_bytes(content[-_LAST:-4], "little"))


@contextmanager
def _reading(path: str) -> Generator[None]:
    """Report any error as an error of the file, which may hold anything."""
    try:
        yield
    except (Exception, pl.exceptions.PanicException) as error:
        msg = f"{path} cannot be read as a state: {error}"
        raise ArgumentError(msg) from error


def _described(tally: Tally) -> dict[str, Any]:
    """The columns and statistics of a tally, as text that is the same in every process."""
    for term in tally.needs.terms:
        if term.alias and term.fingerprint is None:
            msg = f"The statistic {term.name!r} calls a Python function, which a file cannot identify."
            raise ArgumentError(msg)
    cut, scores, forecast = tally.cut, tally.scores, tally.forecast
    columns = {"truth": tally.truth, "estimate": tally.estimate, "weights": tally.weights}
    texts = {name: column.identity if column else None for name, column in columns.items()}
    if scores is not None:
        scores = ([column.identity for column in scores.columns], scores.labels, scores.bins)
    if cut is not None:
        cut = (cut.option, cut.values, cut.several, [column.identity for column in cut.by], cut.groups)
        cut = cut if tally.cut is None or tally.cut.point is None else (*cut, repr(tally.cut.point))
    if forecast is not None:
        texts["forecast"] = forecast.identity
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "keys": [[key.role, key.column.identity] for key in tally.keys],
        **texts,
        "scores": repr(scores),
        "cuts": repr(cut),
        "sides": repr(tally.sides),
        "sums": sorted(term.column for term in tally.needs.terms),
        "needs": tally.needs.flags,
    }

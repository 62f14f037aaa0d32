"""Data that come in parts: tallies that grow batch by batch, and that travel as files."""

from __future__ import annotations

import json
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.tallies import HIDDEN, LABELS, Tally, add_up

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self, Unpack

    from tidyfair.calls import CountOptions, Evaluable, ReadOptions
    from tidyfair.columns import ColumnLike
    from tidyfair.formulas import Statistic

__all__ = ["Accumulator", "load_state", "save_state"]

_FORMAT = "tidyfair tally"
_VERSION = 1
_KEY = "tidyfair"
_MOST_PENDING = 64
_IS_ROW, _OUT = "\0row", "\0out"


class Accumulator:
    """Metrics over batches: update it with frames, compute when asked.

    Args:
        metrics: A metric, a groupwise metric or a set.
        truth: Column of the truth in every batch.
        estimate: Column of the predictions.
        counting: What decides the counting, as in a call: `probs`, `threshold`, `group_by`, `case_weights`.

    Groups are merged by their values: one may be absent from a batch, or new in a later one. Of metrics of labels only
    counts are kept; those of the order of scores keep scores. Accumulators of workers merge.

    >>> import polars as pl
    >>> from tidyfair import selection_rate
    >>> seen = Accumulator(selection_rate, estimate="guess")
    >>> for batch in ([1, 0], [1, 1]):
    ...     _ = seen.update(pl.DataFrame({"guess": batch}))
    >>> seen.compute()[".estimate"].item()
    0.75
    """

    def __init__(
        self, metrics: Evaluable, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **counting: Unpack[CountOptions],
    ) -> None:  # fmt: skip
        self.metrics = metrics
        self._columns: tuple[ColumnLike | None, ColumnLike | None] = (truth, estimate)
        self._counting = counting
        self._pending = list[Tally]()

    @property
    def states(self) -> list[Tally]:
        """The one tally of everything so far; none before the first batch."""
        if len(self._pending) > 1:
            self._pending = [add_up(self._pending)]
        return list(self._pending)

    @property
    def state(self) -> Tally:
        """The tally of everything so far."""
        if not self._pending:
            msg = "Nothing has been counted; update the accumulator with a batch first."
            raise ArgumentError(msg)
        return self.states[0]

    def update(self, batch: Any) -> Self:
        """Count a batch, a frame as a metric takes it."""
        self._add(self.metrics.tally(batch, *self._columns, **self._counting))
        return self

    def merge(self, other: Accumulator | Tally) -> Self:
        """Add what another accumulator, or a tally, has counted."""
        if not isinstance(other, Accumulator | Tally):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = f"An accumulator merges with another one, or with a tally, not with {other!r}."
            raise ArgumentError(msg)
        for tally in [other] if isinstance(other, Tally) else other.states:
            self._add(tally)
        return self

    def compute(self, **reading: Unpack[ReadOptions]) -> pl.DataFrame:
        """The metrics of everything so far, as `compute` of the metrics gives them."""
        return self.metrics.compute(self.state, **reading)

    def compute_by_group(self, **reading: Unpack[ReadOptions]) -> pl.DataFrame:
        """The values of the groups so far."""
        return self.metrics.compute_by_group(self.state, **reading)

    def reset(self) -> Self:
        """Forget everything."""
        self._pending = []
        return self

    def _add(self, tally: Tally) -> None:
        if self._pending and tally.definition != self._pending[0].definition:
            add_up([self._pending[0], tally])  # says what does not fit
        self._pending.append(tally)
        if len(self._pending) >= _MOST_PENDING:
            self._pending = [add_up(self._pending)]

    def __repr__(self) -> str:
        rows = self.state.cells["n"].sum() if self._pending else 0
        return f"<accumulator of {rows:,} rows for {self.metrics!r}>"


def save_state(tally: Tally, path: str | Path, *, suppress_below: int = 0) -> None:
    """Write a tally to a parquet file, with a version and what it was counted for.

    Of metrics of labels it holds counts, no rows; of metrics of the order of scores, the scores.

    Args:
        tally: What was counted.
        path: The file, which is overwritten.
        suppress_below: Counts of fewer rows are left out, because they can identify people, and with them so many
            others that no sum over a group, or over groups, gives them away. What touches them has no value afterwards:
            null with the reason `suppressed`, also in tallies that they are added to.
    """
    tally = _suppressed(tally, suppress_below) if suppress_below else tally
    names = _sum_names(tally)
    parts = {"cells": tally.cells} | ({"rows": tally.rows} if tally.rows is not None else {})
    layout = {name: [names.get(each, each) for each in part.columns] for name, part in parts.items()}
    marked = [part.with_columns(pl.lit(name == "rows").alias(_IS_ROW)) for name, part in parts.items()]
    frame = pl.concat(marked, how="diagonal_relaxed").rename(names, strict=False)
    frame.write_parquet(path, metadata={_KEY: json.dumps(_described(tally) | {"columns": layout})})


def _suppressed(tally: Tally, fewest: int) -> Tally:
    """The tally without small cells, and without what gives them away."""
    if isinstance(fewest, bool) or not isinstance(fewest, Integral) or fewest < 1:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"`suppress_below` is a number of rows, not {fewest!r}."
        raise ArgumentError(msg)
    if tally.needs.anything:
        msg = "Only counts of labels can be suppressed; this tally holds sums or rows of scores or numbers."
        raise ArgumentError(msg)
    names = tally.counted_by
    keys = [name for name in names if name not in LABELS]
    # a margin is what may be known in sum: a group over its labels, and labels over the groups of one key
    margins = [keys, *([name for name in names if name != key] for key in keys)]
    known = [HIDDEN] if HIDDEN in tally.cells.columns else []
    cells = tally.cells.sort(names).with_columns(
        ((pl.col("n") < fewest) | (pl.sum_horizontal(known) > 0 if known else pl.lit(value=False))).alias(_OUT)
    )
    alone = True
    while alone:
        before = cells[_OUT].sum()
        for margin in margins:
            # the only one left out of a margin is what is left of its sum, so the next smallest goes too
            rank = pl.when(~pl.col(_OUT)).then("n").rank("ordinal")
            lonely = pl.col(_OUT).sum() == 1
            also = (lonely.over(margin) & (rank.over(margin) == 1)) if margin else lonely & (rank == 1)
            cells = cells.with_columns((pl.col(_OUT) | also.fill_null(value=False)).alias(_OUT))
        alone = cells[_OUT].sum() > before
    sums = [name for name in cells.columns if name not in {*names, _OUT, HIDDEN}]
    kept = [pl.when(~pl.col(_OUT)).then(name).otherwise(0).alias(name) for name in sums]
    return replace(tally, cells=cells.select(*names, *kept, pl.col(_OUT).cast(pl.Int64).alias(HIDDEN)))


def load_state(path: str | Path, like: Tally) -> Tally:
    """Read a tally that `save_state` wrote.

    Args:
        path: The file.
        like: A tally of the same metrics and columns, of any rows: `metrics.tally(frame.head(0), …)`. It says what the
            file must have been counted for, because a file cannot hold formulas.

    Raises:
        ArgumentError: If the file is none of ours, is broken, or was counted for something else.
    """
    try:
        described = _read(pl.read_parquet_metadata(path).get(_KEY))
        frame = pl.read_parquet(path)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        msg = f"{str(path)!r} cannot be read as a state: {error}"
        raise ArgumentError(msg) from error
    if described.get("format") != _FORMAT:
        msg = f"{str(path)!r} is no state: `save_state` writes them."
        raise ArgumentError(msg)
    if described.get("version") != _VERSION:
        msg = f"{str(path)!r} is of version {described.get('version')!r}; this release reads version {_VERSION}."
        raise ArgumentError(msg)
    for name, value in _described(like).items():
        if described.get(name) != value:
            msg = f"{str(path)!r} was counted for other {name}: {described.get(name)!r}, not {value!r}."
            raise ArgumentError(msg)
    back = {shown: name for name, shown in _sum_names(like).items()}
    frame = frame.rename(back, strict=False)
    layout = {part: [back.get(str(name), str(name)) for name in names] for part, names in described["columns"].items()}
    cells = frame.filter(~pl.col(_IS_ROW)).select(layout["cells"])
    rows = frame.filter(pl.col(_IS_ROW)).select(layout["rows"]) if "rows" in layout else None
    return replace(like, cells=cells, rows=rows)


def _read(written: str | None) -> dict[str, Any]:
    found: object = json.loads(written) if written else {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _sum_names(tally: Tally) -> dict[str, str]:
    """The columns of sums by what they are called in a file, which does not depend on the process."""
    terms = sorted(tally.needs.terms, key=_term_text)
    found: dict[str, str] = {}
    for place, term in enumerate(terms):
        for name in tally.cells.columns:
            if name == term.column or name.startswith(term.column + " "):
                found[name] = f"sum {place}{name.removeprefix(term.column)}"
    return found


def _term_text(term: Statistic) -> str:
    options = ", ".join(f"{name}={value!r}" for name, value in term.options)
    return f"{term.name}({options}){term.neighborhood or ''}"


def _described(tally: Tally) -> dict[str, Any]:
    """What a tally was counted for, in words that are the same in every process."""
    needs = tally.needs
    flags = [name for name in ("numbers", "scores", "sides", "moments", "rows") if getattr(needs, name)]
    return {
        "format": _FORMAT, "version": _VERSION,
        "keys": [[key.role, repr(key.column)] for key in tally.keys],
        "truth": repr(tally.truth), "estimate": repr(tally.estimate), "weights": repr(tally.weights),
        "scores": repr(tally.scores), "cuts": repr(tally.cut), "sides": repr(tally.sides),
        "sums": sorted(map(_term_text, needs.terms)), "needs": flags,
    }  # fmt: skip

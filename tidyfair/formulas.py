"""A metric's formula: a function whose parameters are the statistics it needs, evaluated as polars expressions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from tidyfair.errors import ArgumentError, listed, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Self

__all__: list[str] = []

Expr: TypeAlias = pl.Expr
Rate: TypeAlias = tuple[pl.Expr, pl.Expr]
"""Numerator and denominator; a denominator of zero makes the value null."""

ROWS = "_rows"
"""Suffix of a statistic counted in rows; without it, in case weights."""

_BOTH, _TRUTH, _ESTIMATE = frozenset({"truth", "estimate"}), frozenset({"truth"}), frozenset({"estimate"})
STATISTICS: dict[str, frozenset[str]] = {
    "tp": _BOTH, "fp": _BOTH, "fn": _BOTH, "tn": _BOTH, "absolute_steps": _BOTH, "squared_steps": _BOTH,
    "positives": _TRUTH, "negatives": _TRUTH, "selected": _ESTIMATE, "unselected": _ESTIMATE,
    "instances": frozenset(), "rank": frozenset(),
}  # fmt: skip
_OF_ORDER = {"absolute_steps", "squared_steps", "rank"}
"""Statistics of labels in an order, for weighted kappa."""
"""The statistics of one label against the rest, and the columns without which a row does not count in them."""

_WHEN_COMPLETE = {"positives": "tp fn", "negatives": "fp tn", "selected": "tp fp", "unselected": "fn tn"}
"""What the margins are in a formula that reads both truth and estimate, and so leaves out rows without one of them."""

_OTHER_SIDE = {
    "tp": "tn", "tn": "tp", "fp": "fn", "fn": "fp",
    "positives": "negatives", "negatives": "positives", "selected": "unselected", "unselected": "selected",
}  # fmt: skip
"""What a statistic of the event is called when the rest is the event."""


@dataclass(frozen=True)
class Formula:
    """A function of statistics, with its options fixed."""

    function: Callable[..., Expr | Rate]
    over_levels: bool = False
    """Whether it sums over the rows of all labels itself, instead of being evaluated label by label."""
    undefined_levels: Literal["drop", "null"] = "drop"
    """Whether an average over labels leaves out labels without a value, or has none itself."""
    parts: tuple[tuple[str, Formula], ...] = field(default=(), repr=False)
    """Parameters that are other metrics."""
    options: tuple[tuple[str, object], ...] = ()

    @classmethod
    def of(
        cls,
        function: Callable[..., Expr | Rate],
        known: Mapping[str, Formula],
        *,
        over_levels: bool,
        undefined_levels: Literal["drop", "null"],
    ) -> Self:
        """Read the parameters of a function: statistics, metrics among `known`, and keyword-only options."""
        parameters = inspect.signature(function).parameters.values()
        needs = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
        if unknown := [name for name in needs if name not in STATISTICS and name not in known]:
            msg = (
                f"{function.__name__}(): the parameter {unknown[0]!r} is no statistic, and its module knows no metric "
                f"of that name; import it there.{nearest(unknown[0], [*STATISTICS, *known])} "
                f"Statistics: {listed(name for name in STATISTICS if name not in _OF_ORDER)}."
            )
            raise ArgumentError(msg)
        parts = tuple((name, known[name]) for name in needs if name not in STATISTICS)
        options = tuple((each.name, each.default) for each in parameters if each.kind is each.KEYWORD_ONLY)
        return cls(function, over_levels, undefined_levels, parts, options)

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The names of its parameters but for the options: statistics and other metrics."""
        options = dict(self.options)
        return tuple(name for name in inspect.signature(self.function).parameters if name not in options)

    @cached_property
    def statistics(self) -> frozenset[str]:
        """The names of every statistic it needs, those of its parts included."""
        parts = dict(self.parts)
        own = frozenset(name for name in self.needs if name not in parts)
        return own.union(*(part.statistics for part in parts.values()))

    @cached_property
    def reads(self) -> frozenset[str]:
        """Which of `truth` and `estimate` must be there in a row for it to count."""
        return frozenset[str]().union(*(STATISTICS[name] for name in self.statistics))

    def with_options(self, name: str, options: Mapping[str, object]) -> Self:
        """The same formula with other options."""
        known = dict(self.options)
        for option in options:
            if option not in known:
                kind = f"option of {name}"
                raise ArgumentError.unknown(kind, option, known)
        return replace(self, options=tuple({**known, **options}.items()))

    def express(self, suffix: Literal["", "_rows"] = "", given: Collection[str] = ()) -> tuple[Expr, Expr | None]:
        """Value and, for a rate, denominator, as expressions over columns named after the statistics.

        Statistics and parts in `given` are read from columns of their name instead of being worked out.
        """
        complete = _WHEN_COMPLETE if self.reads == _BOTH else {}

        def express(formula: Formula) -> tuple[Expr, Expr | None]:
            parts = dict(formula.parts)

            def value(name: str) -> Expr:
                if name in parts and name not in given:
                    return express(parts[name])[0]
                if name in complete and name not in given:
                    return pl.sum_horizontal(pl.col(cell + suffix) for cell in complete[name].split())
                return pl.col(name + suffix)

            arguments: dict[str, Any] = {name: value(name) for name in formula.needs}
            result: object = formula.function(**arguments, **dict[str, Any](formula.options))
            match result:
                case pl.Expr():
                    return result, None
                case (pl.Expr() as numerator, pl.Expr() as denominator):
                    return pl.when(denominator != 0).then(numerator / denominator), denominator
                case _:
                    msg = (
                        f"{formula.function.__name__}() must return an expression of its parameters, or numerator and "
                        f"denominator, not {result!r}."
                    )
                    raise ArgumentError(msg)

        return express(self)

    @cached_property
    def counts_steps(self) -> bool:
        """Whether it reads how many levels apart truth and estimate are, with its options."""
        return not {"absolute_steps", "squared_steps"}.isdisjoint(self.value.meta.root_names())

    @cached_property
    def value(self) -> Expr:
        """The value over columns of statistics in case weights; null where undefined."""
        return self.express()[0].cast(pl.Float64).fill_nan(None)

    @cached_property
    def denominator(self) -> Expr | None:
        """The denominator of a rate, in rows."""
        return self.express(ROWS)[1]

    def on(self, numbers: Mapping[str, Any]) -> float | None:
        """The value on plain numbers, named after statistics or parts; null where it is undefined."""
        frame = pl.DataFrame(dict(numbers), strict=False).with_columns(pl.all().cast(pl.Float64))
        one_label = self.over_levels and len(frame) == 1
        frame = two_sides(frame) if one_label else ranked(frame, pl.int_range(pl.len()))
        parts = dict(self.parts)
        missing = [name for name in self.needs if name not in frame.columns and name not in parts]
        missing += sorted(
            name for part in parts if part not in frame.columns for name in parts[part].statistics - {*frame.columns}
        )
        if missing:
            msg = f"{self.function.__name__} needs the number {missing[0]!r}."
            raise ArgumentError(msg)
        values = frame.select(self.express(given=frame.columns)[0].fill_nan(None)).to_series()
        if len(values) != 1:
            msg = f"{self.function.__name__} takes one number for each statistic: it is worked out label by label."
            raise ArgumentError(msg)
        return values.item()


def two_sides(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of one label against the rest, and below them the same counts seen from the rest."""
    names = {name + suffix: other + suffix for suffix in ("", ROWS) for name, other in _OTHER_SIDE.items()}
    other = {name: names[name] if names.get(name) in frame.columns else name for name in frame.columns}
    both = {name: pl.concat([frame[name], frame[other[name]]]) for name in frame.columns}
    for suffix, dtype in (("", pl.Float64), (ROWS, pl.Int64)):
        sides = [pl.Series([rank], dtype=dtype).new_from_index(0, len(frame)) for rank in (0, 1)]
        both["rank" + suffix] = pl.concat(sides)
        if "fn" + suffix in both:
            # of two labels, the wrong one is one step away
            both["absolute_steps" + suffix] = both["squared_steps" + suffix] = both["fn" + suffix]
    return pl.DataFrame(both)


def ranked(frame: pl.DataFrame, place: pl.Expr) -> pl.DataFrame:
    """The rows with the place of their label among the labels."""
    return frame.with_columns(place.cast(pl.Float64).alias("rank"), place.cast(pl.Int64).alias("rank" + ROWS))

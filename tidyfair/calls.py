"""The one call: options sorted out, rows counted, the tally read, a tidy frame given back."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast, overload

from tidyfair.errors import ArgumentError, ColumnError, UndefinedError, UndefinedWarning, WeightError
from tidyfair.frames import Column, open_frame
from tidyfair.results import EXPLANATION, RESERVED, complaints, evaluate_requests, tidy_groups, tidy_results
from tidyfair.tallies import Key, Tally, count

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Unpack

    import polars as pl

    from tidyfair.frames import ColumnLike, PolarsFrame, Source
    from tidyfair.results import Evaluated, Reading, Request

__all__: list[str] = []


class CountOptions(TypedDict, total=False):
    """What decides how rows are counted; the call says what each means."""

    probs: ColumnLike | None
    group_by: ColumnLike | Iterable[ColumnLike] | None
    case_weights: ColumnLike | None
    threshold: float | None


class ReadOptions(TypedDict, total=False):
    """What decides how counts are read; the call says what each means."""

    pos_label: object
    labels: Sequence[object] | None
    estimator: Literal["binary", "macro", "macro_weighted", "micro", "one_vs_rest"] | None
    na_rm: bool
    on_undefined: Literal["warn", "ignore", "null", "raise"]


class CallOptions(CountOptions, ReadOptions, total=False):
    """Everything but the data, the truth and the estimate; the call says what each means."""

    explain: bool


_FROM_SCORES = "scores as `probs=` with `threshold=`"
_DEFAULTS: Reading = {"pos_label": None, "labels": None, "estimator": None, "na_rm": True, "on_undefined": "warn"}


class Evaluable(ABC):
    """What can be called on a dataframe: a metric, a groupwise metric or a set of them."""

    @property
    @abstractmethod
    def requests(self) -> tuple[Request, ...]:
        """What it asks of a tally, in the order in which it reports."""

    @overload
    def __call__(
        self, data: PolarsFrame, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> pl.DataFrame: ...  # fmt: skip
    @overload
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any: ...  # fmt: skip
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Evaluate on a dataframe.

        Args:
            data: A polars, pandas or pyarrow frame, grouped or not.
            truth: Column of the true labels.
            estimate: Column of the predicted labels.
            options: All that follows, each by its name.
            group_by: Columns whose groups (folds, models, months) each get rows of their own.
            case_weights: Column of weights, finite numbers of zero or more.
            probs: Column of scores, from which `threshold` makes labels in place of `estimate`.
            threshold: Scores at or above it select the event.
            pos_label: The label that is the event; needed unless labels are Boolean, 0/1 or -1/1.
            labels: All labels in order, where the data do not say.
            estimator: How more than two labels are read: "macro" (the default), "macro_weighted" or "micro" averages,
                or "one_vs_rest", which compares groups label by label; "binary" insists on one label against the rest.
            na_rm: Whether rows without a truth or estimate are left out (True), or make the metric null.
            on_undefined: Whether groups without a value are left out with a warning ("warn") or silently ("ignore"),
                make disparities null ("null"), or raise ("raise").
            explain: Whether to add `.n`, `.status`, `.group_min`, `.group_max`, `.level` and `.groups_left_out`.

        Returns:
            A tidy frame of the caller's kind with one row for each metric and outer group: the outer keys, `.metric`,
            `.by`, `.estimator`, `.estimate` (null where undefined), and what `explain` adds.

        Raises:
            TidyfairError: For anything that cannot be read without guessing.
        """
        counting, reading = self._sorted_out(options)
        source = open_frame(data, options.get("group_by"))
        tally = self._count(source, truth, estimate, counting)
        return source.restore(self._report(tally, reading, explain=options.get("explain", False)))

    @overload
    def by_group(
        self, data: PolarsFrame, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> pl.DataFrame: ...  # fmt: skip
    @overload
    def by_group(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any: ...  # fmt: skip
    def by_group(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """The values of the groups that disparities are made of; takes what a call takes.

        Columns: outer keys, `.metric`, `.by` and `.group` (null for ordinary metrics), `.level` (with more than two
        labels), `.estimator`, `.estimate`, `.n` and `.denominator` in rows, and `.status`, which says why a value is
        null (`zero_denominator`, `missing_values`, `below_min_n`, `left_out`), or `ok`, `infinite`, `levels_left_out`.
        """
        counting, reading = self._sorted_out(options)
        source = open_frame(data, options.get("group_by"))
        tally = self._count(source, truth, estimate, counting)
        return source.restore(tidy_groups(self._evaluate(tally, reading)))

    def tally(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CountOptions],
    ) -> Tally:  # fmt: skip
        """Count the rows, and leave the reading for `compute`; tallies of parts of the data add up to the whole's."""
        counting, _ = self._sorted_out(cast("CallOptions", options), CountOptions)
        return self._count(open_frame(data, options.get("group_by")), truth, estimate, counting)

    def compute(self, tally: Tally, *, explain: bool = False, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Read a tally: `f.compute(f.tally(data, …), …)` is `f(data, …)`."""
        _, reading = self._sorted_out(cast("CallOptions", options), ReadOptions)
        return self._report(tally, reading, explain=explain)

    def compute_by_group(self, tally: Tally, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Read the values of the groups from a tally, as `by_group` does from data."""
        _, reading = self._sorted_out(cast("CallOptions", options), ReadOptions)
        return tidy_groups(self._evaluate(tally, reading))

    def _sorted_out(
        self, options: CallOptions, accepted: type[CallOptions | CountOptions | ReadOptions] = CallOptions
    ) -> tuple[CountOptions, Reading]:
        """Options for counting and for reading; what is not accepted here is an error that says where it belongs."""
        given = cast("dict[str, Any]", options)
        known = accepted.__annotations__
        for name in (each for each in given if each not in known):
            formulas = [each for request in self.requests for each in request.formulas]
            owner = next((metric for metric, formula in formulas if name in dict(formula.options)), None)
            if owner:
                way_out = f'fix it with `metric_tweak({owner}, "a name", {name}=…)`'
                msg = f"{name!r} is an option of a metric; {way_out}."
                raise ArgumentError(msg)
            if name in CallOptions.__annotations__:
                step = (
                    "counting: give it to `tally`"
                    if name in CountOptions.__annotations__
                    else "reading: give it to `compute`"
                )
                msg = f"{name!r} belongs to {step}."
                raise ArgumentError(msg)
            raise ArgumentError.unknown("argument", name, ["data", "truth", "estimate", *known])
        counting = {name: given[name] for name in CountOptions.__annotations__ if name in given}
        reading = {name: given.get(name, default) for name, default in _DEFAULTS.items()}
        if not isinstance(reading["na_rm"], bool):
            msg = f"`na_rm` is True or False, not {reading['na_rm']!r}."
            raise ArgumentError(msg)
        return cast("CountOptions", counting), cast("Reading", reading)

    def _count(self, source: Source, truth: object, estimate: object, options: CountOptions) -> Tally:
        scores, weights = options.get("probs"), options.get("case_weights")
        given = {"truth": truth, "estimate": estimate, "probs": scores, "case_weights": weights}
        columns = {name: Column.of(value, name) for name, value in given.items() if value is not None}
        threshold = options.get("threshold")
        _check_threshold(threshold, columns)
        if "probs" in columns:
            columns["probs"].check(source.columns, "probs")
        self._check_roles({*columns, *({"estimate"} if threshold is not None else ())})
        return count(
            source,
            self._keys(source.outer),
            truth=columns.get("truth"),
            estimate=columns.get("estimate"),
            score=None if threshold is None else columns.get("probs"),
            threshold=None if threshold is None else float(threshold),
            weights=columns.get("case_weights"),
        )

    def _check_roles(self, there: set[str]) -> None:
        for name, formula in (each for request in self.requests for each in request.formulas):
            for role in sorted(formula.reads - there):
                what = "true labels: `truth=`"
                if role == "estimate":
                    made = "`threshold=` to make labels of `probs`" if "probs" in there else _FROM_SCORES
                    what = f"predicted labels: `estimate=`, or {made}"
                msg = f"{name} needs the column of {what}."
                raise ColumnError(msg)

    def _keys(self, outer: tuple[Column, ...]) -> tuple[Key, ...]:
        keys = dict.fromkeys(Key(column, "outer") for column in outer)
        for column in outer:
            if column.name in RESERVED:
                msg = f"`group_by`: results have a column {column.name!r} of their own; rename yours first."
                raise ColumnError(msg)
        for request in self.requests:
            features = request.by.columns if request.by else ()
            if both := [column.name for column in features if column in outer]:
                msg = (
                    f"{request.name}: the data are grouped by {both[0]!r}, so that each part holds a single group of "
                    "it; group by another column, or compare another one."
                )
                raise ColumnError(msg)
            keys |= dict.fromkeys(Key(column, "by") for column in features)
        return tuple(keys)

    def _evaluate(self, tally: Tally, reading: Reading) -> Evaluated:
        """The values of all groups, after the checks that need the whole of the data."""
        if not isinstance(tally, Tally):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = "What is computed is what `tally` has counted; to count and compute at once, call the metric itself."
            raise ArgumentError(msg)
        if tally.weights is not None and tally.cells["n"].sum() and not tally.cells["w"].sum():
            msg = f"`case_weights`: all values of {tally.weights.name!r} are zero."
            raise WeightError(msg)
        given = {"truth": tally.truth, "estimate": tally.estimate if tally.threshold is None else tally.threshold}
        self._check_roles({role for role, what in given.items() if what is not None})
        return evaluate_requests(tally, self.requests, reading)

    def _report(self, tally: Tally, reading: Reading, *, explain: bool) -> pl.DataFrame:
        on_undefined = reading["on_undefined"]
        evaluated = self._evaluate(tally, reading)
        results = tidy_results(evaluated, undefined_is_null=on_undefined == "null")
        said = complaints(evaluated, results) if on_undefined in {"warn", "raise"} else []
        if said and on_undefined == "raise":
            raise UndefinedError("; ".join(said) + ".")
        if said:
            # the caller of __call__ or compute
            warnings.warn("; ".join(said) + '. (on_undefined="ignore" silences this.)', UndefinedWarning, stacklevel=3)
        if explain:
            return results
        shown = ".groups_left_out" if results[".groups_left_out"].list.len().sum() else None
        return results.drop(name for name in EXPLANATION if name != shown)


def _check_threshold(threshold: object, columns: Collection[str]) -> None:
    """Scores and a threshold come together, in place of predicted labels."""
    number = not isinstance(threshold, bool) and isinstance(threshold, Real) and not math.isnan(threshold)
    if threshold is not None and not number:
        msg = f"`threshold` is one number, not {threshold!r}."
        raise ArgumentError(msg)
    if threshold is not None and "estimate" in columns:
        msg = "`estimate` and `threshold` both say what is predicted: give the labels or the scores, not both."
        raise ArgumentError(msg)
    if threshold is not None and "probs" not in columns:
        msg = f"`threshold={threshold}` needs the column of scores: `probs=`."
        raise ArgumentError(msg)

"""Errors and warnings; their messages say what to write instead."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Self

from tidyfair.escapes import visible

__all__ = [
    "AggregateError",
    "ArgumentError",
    "ClusterWarning",
    "ColumnError",
    "ConstantWarning",
    "DirectionWarning",
    "EngineError",
    "EngineWarning",
    "EvidenceWarning",
    "ForkError",
    "LabelError",
    "MissingPredictionsWarning",
    "ProxyWarning",
    "SelectionWarning",
    "TidyfairError",
    "Undefined",
    "UndefinedError",
    "UndefinedWarning",
    "UnknownGroupWarning",
    "WeightError",
]

_SHOWN, _FEW = 10, 4
_LONGEST = 200
"""The most characters that a message shows of a value."""
_BETWEEN = ("tidyfair.", "polars.", "pandas.")
"""Modules between a warning and the line that caused it; `pipe` is a method of frames."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn with the location of the line that called the library."""
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_back and frame.f_globals.get("__name__", "").startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    warnings.warn(visible(message, lines=True), category, stacklevel=level)


def listed(values: Iterable[object], *, shown: int = _SHOWN) -> str:
    """Values as a short readable list, truncated after `shown`."""
    texts = [repr(value) for value in values]
    more = f", … ({len(texts)} in all)" if len(texts) > shown else ""
    return (", ".join(texts[:shown]) + more) or "nothing"


def with_article(noun: str) -> str:
    """A noun such as the name of a type, with its indefinite article."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def is_frame(value: object) -> bool:
    """True for data: an object with columns that is not of this library."""
    own = type(value)
    return not own.__module__.startswith("tidyfair.") and hasattr(own, "columns")


def in_short(value: object) -> str:
    """A value for messages: its representation, or its type if that is long or has rows."""
    own = type(value)
    module = own.__module__.partition(".")[0]
    has_rows = is_frame(value) or (module != "tidyfair" and bool(getattr(value, "shape", ())))
    # the representation of a frame may run a query
    representation = "" if has_rows else repr(value)
    if has_rows or "\n" in representation or len(representation) > _LONGEST:
        name = own.__qualname__
        return f"a {name}" if module == "builtins" else f"a {module}.{name}"
    return representation


def nearest(name: object, known: Iterable[object]) -> str:
    """The sentence that suggests the nearest spelling, or an empty text."""
    from difflib import get_close_matches  # noqa: PLC0415 - only when something is already wrong

    by_text = {str(value).casefold(): value for value in known}
    close = get_close_matches(str(name).casefold(), list(by_text), n=1, cutoff=0.6)
    return f" Did you mean {by_text[close[0]]!r}?" if close else ""


def differs_in_case(name: object, known: Iterable[object]) -> bool:
    """True if a text is known up to upper and lower case, and blanks around it."""
    if not isinstance(name, str):
        return False
    return name.strip().casefold() in {value.strip().casefold() for value in known if isinstance(value, str)}


_OF_FILES: ContextVar[bool] = ContextVar("of_files", default=False)
"""True while messages are for the command line, whose users have files and no Python code."""


@contextmanager
def advice_on_files() -> Generator[None, None, None]:
    """Let messages give the advice that holds for files, in place of Python code."""
    token = _OF_FILES.set(True)
    try:
        yield
    finally:
        _OF_FILES.reset(token)


def advice(in_python: str, on_files: str) -> str:
    """The way out of an error: code in Python, or a change of the file on the command line."""
    return on_files if _OF_FILES.get() else in_python


class Status(StrEnum):
    """Reason why a value is undefined or not compared, shown in `.status`; users' functions may give others."""

    _value_: str
    code: int
    """The index of the member, which stands for it in arrays."""
    text: str
    """The words that messages and reports show."""

    # there is a number
    OK = "ok"
    INFINITE = "infinite"
    LEVELS_LEFT_OUT = "levels_left_out"
    METRICS_LEFT_OUT = "metrics_left_out"
    # there may be a number, which is not compared
    LEFT_OUT = "left_out"
    UNKNOWN = "unknown"
    MISSING_VALUES = "missing_values"
    BELOW_MIN_N = "below_min_n"
    BELOW_MIN_SHARE = "below_min_share"
    # the value of a group is undefined
    SUPPRESSED = "suppressed"
    ZERO_DENOMINATOR = "zero_denominator"
    UNSEEN_EVENT = "unseen_event"
    ONE_CLASS = "one_class"
    NO_EVENTS = "no_events"
    NO_COMPARABLE_PAIRS = "no_comparable_pairs"
    ALL_CENSORED = "all_censored", "all censored before"
    CONSTANT = "constant"
    SEPARATION = "separation"
    SCORES_OF_0_OR_1 = "scores_of_0_or_1"
    NEGATIVE_TRUTH = "negative_truth"
    NO_POSITIVE_BENEFITS = "no_positive_benefits"
    TOO_FEW_ROWS = "too_few_rows"
    TOO_FEW_LABELS = "too_few_labels"
    NO_OTHER_GROUP = "no_other_group"
    NO_VALUE = "no_value"
    NOBODY = "nobody"
    # a disparity is undefined
    NO_GROUPS = "no_groups"
    TOO_FEW_GROUPS = "too_few_groups"
    NO_REFERENCE = "no_reference"
    UNDEFINED_GROUP = "undefined_group"
    INFINITE_LESS_INFINITE = "infinite_less_infinite"

    def __new__(cls, value: str, text: str = "") -> Self:
        """Number the members in their order; their words are those of the value, unless others are given."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.code = len(cls.__members__)
        member.text = text or value.replace("_", " ")
        return member

    def __repr__(self) -> str:
        """The value, so that signatures show the text that a user writes."""
        return repr(self.value)

    @classmethod
    def text_of(cls, status: str) -> str:
        """The words for a status, which may be the free text of a user's `Undefined`."""
        try:
            return cls(status).text
        except ValueError:
            # the message of an error is shown as it is
            return status if ":" in status else status.replace("_", " ")


class TidyfairError(ValueError):
    """Base of all errors of the library; invisible characters of names are escaped in its message."""

    def __init__(self, *message: object) -> None:
        super().__init__(*(visible(part, lines=True) if isinstance(part, str) else part for part in message))


class ArgumentError(TidyfairError):
    """An invalid argument; the message says which one and what to write instead."""

    @classmethod
    def unknown(cls, kind: str, name: object, known: Iterable[object]) -> Self:
        """A choice or a name that does not exist."""
        known = list(known)
        if not known:
            return cls(f"Unknown {kind} {in_short(name)}. It takes none by name.")
        return cls(f"Unknown {kind} {in_short(name)}.{nearest(name, known)} Known: {listed(known, shown=30)}.")

    @classmethod
    def not_one_of(cls, argument: str, given: object, known: Iterable[object]) -> Self:
        """A value of an argument that takes one of a few."""
        known = list(known)
        *others, last = map(repr, known)
        choice = f"{', '.join(others)} or {last}" if others else last
        return cls(f"`{argument}=` must be {choice}, not {in_short(given)}.{nearest(given, known)}")


class ColumnError(TidyfairError):
    """A column that is missing, duplicated or of the wrong type."""

    @classmethod
    def missing(cls, name: object, role: str, columns: Iterable[object]) -> Self:
        """A column that the data does not have."""
        columns = list(columns)
        parts = name.split(":") if isinstance(name, str) else []
        if role == "by" and len(parts) > 1 and {*columns}.issuperset(parts):
            msg = f"`{role}`: there is no column {name!r}; crossed columns are a tuple, {tuple(parts)!r}."
            return cls(msg)
        return cls(f"`{role}`: there is no column {name!r}.{nearest(name, columns)} Columns: {listed(columns)}.")

    @classmethod
    def internal(cls, name: str, role: str) -> Self:
        """A column whose name begins as those do that the library itself adds."""
        return cls(
            f"`{role}`: the name {name!r} begins with the character NUL, as internal names do; rename the column."
        )

    @classmethod
    def continuous(cls, role: str, name: object) -> Self:
        """A column of labels that holds fractional numbers."""
        way_out = "give the column of labels"
        if role == "estimate":
            way_out = "give the predicted labels, or the scores as `probs=` with `threshold=`"
        problem = f"the column {name!r} holds fractional numbers, but class metrics read labels"
        return cls(f"`{role}`: {problem}; {way_out}.")


class EngineError(TidyfairError):
    """A query that a database or a cluster could not run; the engine's own error is the cause."""

    metrics: tuple[str, ...] = ()
    """The metrics that the query was for, where they are known."""

    def __init__(self, engine: str, problem: object, way_out: str) -> None:
        # the start of the message of another library, as one line without a full stop
        text = " ".join(str(problem).split()) or type(problem).__name__
        start = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        super().__init__(engine, start.rstrip("."), way_out)

    def __str__(self) -> str:
        """The message."""
        engine, problem, way_out = self.args
        more = [f"{len(self.metrics) - _FEW} more"] if len(self.metrics) > _FEW else []
        purpose = f" for {', '.join([*self.metrics[:_FEW], *more])}" if self.metrics else ""
        return f"{engine} could not run the query{purpose}: {problem}. {way_out}"


class LabelError(TidyfairError):
    """Ambiguous or inconsistent labels of truth and estimate."""


class WeightError(TidyfairError):
    """Case weights that are negative, infinite, missing or all zero."""

    @classmethod
    def unsummable(cls, name: object) -> Self:
        """Weights whose sums, or products of these, exceed the range of numbers."""
        return cls(f"`case_weights`: the values of {name!r} are too large or too small to be summed; rescale them.")


class AggregateError(TidyfairError):
    """An aggregate that does not fit its metric or did not return one number."""


class ForkError(TidyfairError):
    """The process was forked after polars had run and lacks its threads (detected on Linux only)."""


class UndefinedError(TidyfairError):
    """A metric has no value, with `on_undefined="raise"`."""


class ClusterWarning(UserWarning):
    """There are too few clusters to estimate their variation."""


class ConstantWarning(UserWarning):
    """A metric is an average over labels that does not depend on the data."""


class DirectionWarning(UserWarning):
    """Predictions seem to be read in the wrong direction: risks as predicted times, or the reverse."""


class EngineWarning(UserWarning):
    """Scores in a database or a cluster were counted in bins, or many of its rows were transferred."""


class EvidenceWarning(UserWarning):
    """`assert_fair` did not raise although the data are inconclusive about a disparity."""


class MissingPredictionsWarning(UserWarning):
    """Rows without a prediction are left out of a comparison of groups; the message says how many of each group."""


class ProxyWarning(UserWarning):
    """Groups are known only as probabilities, so the weighted estimate of their rates is biased."""


class SelectionWarning(UserWarning):
    """`top_k` or `top_fraction` selected a different number of rows than requested, because of ties or too few rows."""


class UndefinedWarning(UserWarning):
    """A metric has no value in some groups; the message names the metric and the groups."""


class UnknownGroupWarning(UserWarning):
    """People whose group is missing or unknown are counted and not compared; the message says how many they are."""


class Undefined(Exception):  # noqa: N818 - it is an answer, not a mistake
    """To be raised by a function of arrays without a value for a group; its text is shown as the status."""


@contextmanager
def without_notices() -> Generator[None, None, None]:
    """Silence what is said about the rows of a call, for steps of an analysis that shows it itself."""
    with warnings.catch_warnings():
        for category in (MissingPredictionsWarning, UnknownGroupWarning):
            warnings.simplefilter("ignore", category)
        yield


@contextmanager
def failures_of(owner: str, advice: str, kind: type[TidyfairError] = ArgumentError) -> Generator[None, None, None]:
    """Turn an exception of a user's function into an error that names its owner, with the exception as its cause.

    Args:
        owner: The metric, statistic or aggregate that the function belongs to.
        advice: What to write instead, as sentences.
        kind: The class of the error.
    """
    try:
        yield
    except (TidyfairError, Undefined, MemoryError):
        raise
    except Exception as error:
        # polars adds its plan, and columns that are not the user's
        first_line = str(error).partition("\n")[0].partition("; valid columns")[0]
        reason = f"{type(error).__name__}: {first_line}".rstrip(".: ")
        msg = f"{owner} failed with {reason}. {advice}".rstrip()
        raise kind(msg) from error


def __dir__() -> list[str]:
    return __all__

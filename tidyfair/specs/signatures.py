"""Calls that do not fit the parameters of a function, and the errors that say what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

from tidyfair.errors import ArgumentError, is_frame
from tidyfair.specs.option_table import hint, unknown_keyword

_SHOWN = 6
"""The most keywords that a message lists."""

Function = TypeVar("Function", bound="Callable[..., Any]")


def refuse_unknown_settings(function: Function) -> Function:
    """Make a function that has nothing to do with data explain a call that does not fit its parameters."""
    return explaining(function, returns_callable=False, of_calls=())


def makes_metric(example: str) -> Callable[[Function], Function]:
    """Make a function that makes a metric explain a call with data, which belong to the metric.

    Args:
        example: Its arguments as a user may write them.
    """

    def decorated(function: Function) -> Function:
        call = _Parameters.of(function, returns_callable=True, of_calls=())
        name = function.__name__

        @wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            of_calls = [keyword for keyword in ("data", "truth", "estimate", "probs") if keyword in keywords]
            if of_calls or any(map(is_frame, args)):
                msg = f"{name}() makes a metric, which then takes the data: write `{name}({example})(data, …)`."
                raise ArgumentError(msg)
            call.check(args, keywords)
            return function(*args, **keywords)

        return cast("Function", checked)

    return decorated


def explaining(function: Function, *, returns_callable: bool, of_calls: tuple[str, ...]) -> Function:
    """The function, with errors for calls that do not fit its parameters.

    Args:
        function: A function or method.
        returns_callable: Whether it returns an object that takes the data, unless it takes them itself.
        of_calls: The keywords of calls on data.
    """
    # one that is explained already has the parameters of what it wraps
    call = _Parameters.of(inspect.unwrap(function), returns_callable=returns_callable, of_calls=of_calls)

    @wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        call.of_object(args).check(args, keywords)
        return function(*args, **keywords)

    return cast("Function", checked)


_OF_UNCERTAINTY = frozenset({"times", "seed", "conf_level"})


def _taken_by_returned(function: Callable[..., Any], of_calls: tuple[str, ...]) -> tuple[str, ...]:
    """The keywords of calls on data that the object which the function returns knows; all if its class is unknown."""
    returned = function.__globals__.get(str(function.__annotations__.get("return")))
    if not inspect.isclass(returned) or "__call__" not in dir(returned):
        return of_calls
    taken = inspect.signature(returned.__call__).parameters
    if any(item.kind is inspect.Parameter.VAR_KEYWORD for item in taken.values()):
        return of_calls
    # columns belong to the data, and what it refuses with a reason is for it to refuse
    unknown = _OF_UNCERTAINTY - taken.keys() - set(getattr(returned, "refused", ()))
    return tuple(name for name in of_calls if name not in unknown)


@dataclass(frozen=True)
class _Parameters:
    """The parameters of a function, against which its calls are checked."""

    name: str
    positional: tuple[str, ...]
    """Those that are taken by position, without `self`."""
    known: tuple[str, ...]
    """Those that are taken by keyword, too, and the options of the call that keywords are passed on to."""
    required: tuple[str, ...]
    required_keywords: tuple[str, ...]
    is_method: bool
    is_call: bool
    """True if it is what is run when an object is called."""
    takes_any_number: bool
    """True if any number of arguments is taken by position."""
    passes_on: bool
    """True if keywords are passed on to a call."""
    returns_callable: bool
    """True if it returns an object that takes the data."""
    of_calls: tuple[str, ...]
    """The keywords of calls on data."""

    @classmethod
    def of(cls, function: Callable[..., Any], *, returns_callable: bool, of_calls: tuple[str, ...]) -> _Parameters:
        """The parameters of a function."""
        parameters = inspect.signature(function).parameters.values()
        code = function.__code__
        variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        known = [item.name for item in parameters if item.kind not in variadic and item.name != "self"]
        passes_on = bool(code.co_flags & inspect.CO_VARKEYWORDS)
        if passes_on and any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters):
            known += of_calls
        elif returns_callable:
            of_calls = _taken_by_returned(function, of_calls)
        # the signature may say more than the function: it shows the keywords that are passed on
        by_position = code.co_varnames[: code.co_argcount]
        by_keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        is_method = by_position[:1] == ("self",)
        without_default = by_position[: len(by_position) - len(function.__defaults__ or ())]
        return cls(
            name=function.__qualname__.rpartition(".")[2],
            positional=by_position[is_method:],
            known=tuple(known),
            required=without_default[is_method:],
            required_keywords=tuple(name for name in by_keyword if name not in (function.__kwdefaults__ or {})),
            is_method=is_method,
            is_call=function.__name__ == "__call__",
            takes_any_number=bool(code.co_flags & inspect.CO_VARARGS),
            passes_on=passes_on,
            returns_callable=returns_callable and "data" not in known,
            of_calls=of_calls,
        )

    def of_object(self, args: tuple[Any, ...]) -> _Parameters:
        """The same under the name of the object that is called, or that of its class."""
        if not self.is_call or not args:
            return self
        called = args[0]
        return replace(self, name=getattr(called, "name", "") or type(called).__name__)

    def check(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        """Refuse arguments that the function does not take, and a call without those that it needs."""
        given = args[self.is_method :]
        if not (self.positional or self.takes_any_number) and inspect.isfunction(next(iter(given), None)):
            msg = f"{self.name}() makes a decorator: write `@{self.name}()`, with parentheses, above the function."
            raise ArgumentError(msg)
        if not self.takes_any_number and len(given) > len(self.positional):
            raise ArgumentError(self._too_many())
        # the first one may be a stored result, which is a frame
        if self.returns_callable and any(map(is_frame, given[1:])):
            raise ArgumentError(self._data_too_early("data"))
        for name in keywords:
            if name not in self.known:
                self._check_unknown(name)
        missing = [name for name in self.required[len(given) :] if name not in keywords]
        missing += [name for name in self.required_keywords if name not in keywords]
        if missing:
            raise ArgumentError(self._missing(missing))

    def _check_unknown(self, name: str) -> None:
        """Refuse a keyword that is none of the function, unless it may be one of what keywords are passed on to."""
        # options of metrics, which are passed on, may have any name
        has_counterpart = bool(hint(name, self.known))
        if self.passes_on and not (self.of_calls and has_counterpart):
            return
        is_of_calls = name in {"data", "truth", "estimate", "design", *self.of_calls}
        if self.returns_callable and is_of_calls and not has_counterpart:
            raise ArgumentError(self._data_too_early(f"`{name}`"))
        kind = f"argument of {self.name}()"
        raise unknown_keyword(kind, name, self.known)

    def _data_too_early(self, given: str) -> str:
        """The message for data in the call that returns what takes them."""
        return f"{self.name}() takes no {given}; pass it to the object that it returns: `{self.name}(…)(data, …)`."

    def _missing(self, names: Sequence[str]) -> str:
        """The message for arguments without a default that are missing."""
        written = [*self.required, *(f"{name}=…" for name in self.required_keywords)]
        if self.takes_any_number:
            written.insert(0, "…")
        call, needed = ", ".join(written), ", ".join(f"`{name}`" for name in names)
        # an object without a name has that of its class, which is not what the user writes
        if self.is_call and self.name[:1].isupper():
            return f"This {self.name} needs {needed}: call it with `({call})`."
        sentence = f"{self.name}() needs {needed}: write `{self.name}({call})`."
        return f"{sentence} The data go into the same call." if "data" in names else sentence

    def _too_many(self) -> str:
        """The message for too many positional arguments."""
        first = ", ".join(f"`{name}`" for name in self.positional)
        others = [f"`{name}=`" for name in self.known if name not in self.positional]
        others[_SHOWN:] = ["…"] if len(others) > _SHOWN else []
        accepted = [f"{first} by position"] if first else []
        if others:
            accepted.append(f"{', '.join(others)} by keyword")
        elif self.passes_on:
            accepted.append("arguments by keyword")
        msg = f"{self.name}() takes {' and '.join(accepted) or 'no arguments'}."
        if not self.returns_callable:
            return msg
        return f"{msg} Pass the data to the object that it returns: `{self.name}(…)(data, …)`."

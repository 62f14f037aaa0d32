"""Columns given by name, or by an expression that makes one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Number
from typing import Any, TypeAlias, TypeGuard

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, TidyfairError, with_article
from tidyfair.escapes import visible
from tidyfair.specs.arguments import is_list, is_unicode
from tidyfair.specs.numeric_bins import Bins
from tidyfair.specs.polars_versions import columns_of, gives_a_value_per_row

_PYTHON = b"PLPY"
"""Prefix of a Python function in serialized expressions of polars."""
_ASKS_FOR_NAN = re.compile(r"""col\("[^"]*"\)\.is_(not_)?nan\(\)""")
"""A column, but not what is computed from columns, that is asked for NaN."""
EXACT = 2**53
"""Below this, 64-bit floats represent all whole numbers exactly."""
_EXACT = {"Float16": 2**11, "Float32": 2**24}
"""The same for smaller floats, by name: older versions of polars lack the first."""
ColumnLike: TypeAlias = "str | pl.Expr | Bins"
Frame: TypeAlias = Any
"""A frame of the kind of the data: polars for polars, lazy frames and databases, else pandas or pyarrow."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column named by the user, or an expression or bins that make one; equal when they mean the same."""

    source: str | pl.Expr | Bins

    @classmethod
    def of(cls, source: object, role: str) -> Column:
        """Accept a name or a polars expression for one column, refuse anything else."""
        if isinstance(source, Column):
            return source  # of the library itself
        if isinstance(source, str):
            if not is_unicode(source):
                msg = (
                    f"`{role}`: the name {source!r} contains a lone surrogate, which cannot be encoded; rename the "
                    "column."
                )
                raise ColumnError(msg)
            column = cls(source)
        elif isinstance(source, Bins):
            return cls(source)
        elif not isinstance(source, pl.Expr):
            kind = f"{type(source).__module__.partition('.')[0]}.{type(source).__name__}"
            shown = kind.removeprefix("builtins.")
            way_out = _way_to_column(source, role)
            msg = f"`{role}` takes a column name or a polars expression, not {with_article(shown)}.{way_out}"
            raise ColumnError(msg)
        elif source.meta.has_multiple_outputs():
            msg = f"`{role}`: {source} may select several columns; list them one by one."
            raise ColumnError(msg)
        else:
            # `pl.col("sex")` is the column itself
            column = cls(source.meta.output_name() if source.meta.is_column() else source)
        for name in (column.name, *column.roots):
            # it could be mistaken for an internal one
            if name.startswith("\0"):
                raise ColumnError.internal(name, role)
        return column

    @classmethod
    def if_given(cls, source: object, role: str) -> Column | None:
        """The same for an argument that may be left out."""
        return None if source is None else cls.of(source, role)

    @property
    def name(self) -> str:
        """The name in results."""
        if isinstance(self.source, Bins):
            return self.source.name
        return self.source if isinstance(self.source, str) else self.source.meta.output_name()

    @property
    def expr(self) -> pl.Expr:
        """The column as an expression over the user's frame."""
        if isinstance(self.source, Bins):
            return self.source.expr
        return pl.col(self.source) if isinstance(self.source, str) else self.source

    @property
    def roots(self) -> list[str]:
        """The columns of the user's frame that it is made of."""
        if isinstance(self.source, Bins):
            return [self.source.column]
        return [self.source] if isinstance(self.source, str) else columns_of(self.source)

    @property
    def identity(self) -> str:
        """Text that identifies it, the same in every process.

        Raises:
            ArgumentError: If the expression calls a Python function, which cannot be identified.
        """
        if not isinstance(self.source, pl.Expr):
            of_bins = f" {self.name!r} {self.source.labels}" if isinstance(self.source, Bins) else ""
            return f"{self.source!r}{of_bins}"
        digest = fingerprint(self.source)
        if digest is None:
            msg = f"{self.source} calls a Python function, which cannot be identified; compute it as a column first."
            raise ArgumentError(msg)
        return f"{self.source} #{digest}"

    def check(self, columns: Sequence[str], role: str) -> None:
        """Refuse a missing column, and an expression that hides a column or does not give one value a row."""
        for root in self.roots:
            if root not in columns:
                raise ColumnError.missing(root, role, columns)
        if isinstance(self.source, str):
            return
        if self.name in columns:
            rename = '`name="…"`' if isinstance(self.source, Bins) else '`.alias("…")`'
            kind = "" if isinstance(self.source, Bins) else "the expression "
            msg = (
                f"`{role}`: {kind}{self.source} has the same name as the column {self.name!r}; give it another name "
                f"with {rename}."
            )
            raise ColumnError(msg)
        if isinstance(self.source, Bins):
            return
        # polars cannot look into Python functions
        if not gives_a_value_per_row(self.source, unknown=True):
            msg = f"`{role}`: the expression {self.source} does not give one value for each row."
            raise ColumnError(msg)
        if _ASKS_FOR_NAN.search(str(self.source)):
            msg = (
                f"`{role}`: the expression {self.source} asks for NaN, but NaN in a column is null here, on every "
                "engine; write `.is_null()`, `.is_not_null()` or `.fill_null(…)`."
            )
            raise ColumnError(msg)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Column):
            return NotImplemented
        if isinstance(self.source, pl.Expr) and isinstance(other.source, pl.Expr):
            return self.source.meta.eq(other.source)
        return type(self.source) is type(other.source) and bool(self.source == other.source)

    def __hash__(self) -> int:
        # not the serialized form, which expressions that hold a Python function do not have
        return hash(tuple(self.roots) if isinstance(self.source, pl.Expr) else self.source)

    def __repr__(self) -> str:
        return repr(self.source) if isinstance(self.source, str) else visible(str(self.source))


def side_by_side(columns: Sequence[pl.Series]) -> pl.DataFrame:
    """A frame of one column or more with different names, in a fifth of the steps of `pl.DataFrame`."""
    first, *others = columns
    return first.to_frame().hstack(others)


def names_of(columns: Iterable[Column]) -> list[str]:
    """The names of columns in results."""
    return [column.name for column in columns]


def _way_to_column(source: object, role: str) -> str:
    """The sentence on what to write instead of a value that is not a column."""
    if type(source) in (list, tuple):
        several_models = " Compare two models with `compare_models`, or several as rows with `group_by=`."
        return several_models if role in {"truth", "estimate"} else " Write several columns one by one."
    if type(source).__module__.startswith("narwhals"):
        return " Make it a column first: pass `nw.from_native(data).with_columns(…)` as the data."
    if type(source).__name__ == "Memberships":
        return " A row may be in several of its groups: name the column of one group, or one of their combinations."
    if hasattr(source, "__array__") and role == "by":
        return " Add it to the data as a column and give its name, or pass arrays to `.arrays(…)`."
    if hasattr(source, "__array__") or isinstance(source, float):
        return " Give the name of the column, or pass arrays to `.arrays(…)`."
    return ""


def is_at_quantiles(column: Column) -> bool:
    """Check for bins whose edges are the quantiles of all rows that are read."""
    return isinstance(column.source, Bins) and column.source.edges is None


def roots_of(wanted: Mapping[str, tuple[str, Column]]) -> list[str]:
    """The distinct columns of the user's frame of which some columns, `{name: (role, column)}`, are made."""
    roots: dict[str, None] = {}
    for _, column in wanted.values():
        roots |= dict.fromkeys(column.roots)
    return list(roots)


def are_columns(value: object) -> TypeGuard[Iterable[object]]:
    """Check whether it is a list of columns; series, frames and mappings are not."""
    if isinstance(value, Mapping) or hasattr(value, "columns") or type(value).__name__ == "Series":
        return False
    return is_list(value)


def fingerprint(expr: pl.Expr) -> str | None:
    """Digest of an expression, the same in every process; None with a Python function."""
    serialized = expr.meta.serialize()
    # not of its text, which does not show the arguments of functions
    return None if _PYTHON in serialized else hashlib.sha256(serialized).hexdigest()[:16]


def levels_of(dtype: pl.DataType) -> list[Any]:
    """The values that a dtype declares, or none."""
    if isinstance(dtype, pl.Enum):
        return dtype.categories.to_list()
    return [False, True] if isinstance(dtype, pl.Boolean) else []


def kind_of(value: object) -> str:
    """The kind of a value; values of two kinds are never equal."""
    return "number" if isinstance(value, Number) else type(value).__name__


def check_features(frame: pl.DataFrame, names: Mapping[str, str], needed_by: str) -> None:
    """Refuse columns that cannot serve as coordinates.

    Args:
        frame: The rows.
        names: The user's column names, keyed by the names in the frame.
        needed_by: Subject of the error, such as "distances need".
    """
    for name, column in names.items():
        dtype = frame.schema[name]
        if not (dtype.is_numeric() or dtype == pl.Boolean):
            msg = f"`features`: the column {column!r} is {dtype}; {needed_by} numbers. Encode the column first."
            raise ColumnError(msg)
        if not frame[name].cast(pl.Float64).is_finite().fill_null(value=False).all():
            msg = (
                f"`features`: some values of {column!r} are missing or not finite, but {needed_by} finite numbers; "
                "fill or filter these rows first."
            )
            raise ColumnError(msg)


def stacked(parts: Sequence[pl.DataFrame], shown: Mapping[str, str]) -> pl.DataFrame:
    """Stack frames, whose columns must keep their values.

    Args:
        parts: The frames.
        shown: Columns named in errors, under the user's names.

    Raises:
        ColumnError: If no dtype holds the values of all parts.
    """
    try:
        every = pl.concat(parts, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        msg = f"The columns of the parts have different types: {error}"
        raise ColumnError(msg) from error
    for name, column in shown.items():
        values = [part[name] for part in parts]
        lost = every[name].null_count() > sum(part.null_count() for part in values)
        if lost or not are_told_apart(values):
            kinds = " and ".join(dict.fromkeys(str(part.dtype) for part in values))
            msg = (
                f"The column {column!r} is {kinds} in different parts, and {every.schema[name]} cannot represent all "
                "values exactly; cast the column to one type before counting."
            )
            raise ColumnError(msg)
    return every


def are_told_apart(several: Sequence[pl.Series]) -> bool:
    """Check whether floats of some columns can represent all values of the others."""
    floats = [values for values in several if values.dtype.is_float()]
    others = [values for values in several if values.dtype.is_integer() or values.dtype.is_decimal()]
    if not floats or not others:
        return True
    for values in (*floats, *others):
        as_floats = values.cast(pl.Float64)
        if (as_floats.abs() >= _EXACT.get(str(values.dtype), EXACT)).any():
            return False
        if values.dtype.is_decimal() and (as_floats.cast(values.dtype, strict=False) != values).any():
            return False
    return True


@contextmanager
def blaming_expressions(wanted: Mapping[str, tuple[str, Column]]) -> Generator[None]:
    """Raise errors of a query as errors of the user's expressions in it; without expressions, unchanged."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        expressions = [f"`{role}`: {column}" for role, column in wanted.values() if not isinstance(column.source, str)]
        if not expressions:
            raise
        msg = f"An expression failed on the data ({'; '.join(expressions)}): {error}"
        raise ColumnError(msg) from error


@contextmanager
def telling(step: str) -> Generator[None]:
    """Add a note with the current step to errors raised by an engine or a file."""
    prefix = "while tidyfair"
    try:
        yield
    except TidyfairError:
        raise  # it says so itself
    except Exception as error:
        if not any(note.startswith(prefix) for note in getattr(error, "__notes__", ())):
            error.add_note(f"{prefix} {step}")
        raise

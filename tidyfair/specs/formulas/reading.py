"""The formula that a function is, from its parameters: statistics, metrics, and keyword-only options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from tidyfair.errors import ArgumentError, listed, nearest
from tidyfair.specs.formulas.formula import Formula, frozen_options
from tidyfair.specs.formulas.rows import RowExpression
from tidyfair.specs.formulas.statistics import ORDER_STATISTICS, ROW_COLUMNS, SUMS, Kind, Statistic, name_of, unprefixed
from tidyfair.specs.formulas.sums import LabelDistributions, LabelSums, RowSums, SumFormula


def formula_of(
    function: Callable[..., Any],
    kind: Kind,
    known: Mapping[str, Formula],
    terms: Mapping[str, Statistic],
    settings: Mapping[str, Any],
) -> LabelSums | RowSums | RowExpression:
    """The formula that a function writes: its parameters are statistics, metrics among `known`, or among `terms`.

    Of the `settings` it takes those of its type.
    """
    parameters = inspect.signature(function).parameters.values()
    needs = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    options = {parameter.name: parameter.default for parameter in parameters if parameter.name not in needs}
    parts = _parts_of(function, kind, needs, known, terms)
    _check_prefixes(function, {name: parts.get(name) for name in needs})
    _check_counts(function, needs, parts, given=settings.get("given"))
    own: dict[str, Any] = {"options": frozen_options(options), "parts": tuple(parts.items())}
    # a formula of others that sum over labels themselves is not evaluated label by label
    own["over_levels"] = settings.get("over_levels", False) or any(part.over_levels for part in parts.values())
    type_of_formula: type[LabelSums | RowSums | RowExpression] = RowExpression
    if not _is_over_rows(function, kind, needs, parts):
        summed = [name for name in needs if unprefixed(name) in terms]
        own["terms"] = tuple((name, terms[unprefixed(name)].with_options(options)) for name in summed)
        type_of_formula = RowSums if kind != "class" else LabelDistributions if settings.get("given") else LabelSums
    return type_of_formula(function, kind, **settings_of(type_of_formula, settings) | own)


def settings_of(type_of_formula: type[Formula], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a type of formula has, out of all that were given."""
    names = {item.name for item in fields(type_of_formula)} - {"function", "kind", "options", "metric"}
    return {name: value for name, value in settings.items() if name in names}


def _parts_of(
    function: object, kind: Kind, needs: Sequence[str], known: Mapping[str, Formula], terms: Mapping[str, Statistic]
) -> dict[str, Formula]:
    """The metrics that parameters name; other names must be those of statistics."""
    parts: dict[str, Formula] = {}
    sums, rows = {*SUMS[kind], *terms}, ROW_COLUMNS[kind]
    for name in needs:
        base = unprefixed(name)
        if base in sums:
            continue
        if base in known and known[base].kind == kind and isinstance(known[base], SumFormula | RowExpression):
            parts[name] = known[base]
        elif name not in rows:
            vocabulary = [word for word in (*SUMS[kind], *terms, *rows) if word not in ORDER_STATISTICS]
            msg = (
                f"{name_of(function)}(): the parameter {name!r} is neither a statistic nor a metric in its module; "
                f"import the metric there.{nearest(name, [*vocabulary, *known])} Statistics: "
                f"{listed(vocabulary, shown=30)}."
            )
            raise ArgumentError(msg)
    return parts


def _is_over_rows(function: object, kind: Kind, needs: Sequence[str], parts: Mapping[str, Formula]) -> bool:
    """True if all parameters of a formula are of rows, instead of sums."""
    of_rows = {parts[name].is_of_rows if name in parts else name in ROW_COLUMNS[kind] for name in needs}
    if len(of_rows) > 1:
        msg = f"{name_of(function)}(): a formula reads sums or rows, not both: {listed(needs)}."
        raise ArgumentError(msg)
    return of_rows == {True}


def _check_counts(function: object, needs: Sequence[str], parts: Mapping[str, Formula], *, given: object) -> None:
    """Refuse the `count` of each label together with other statistics, or in a formula without `given=`."""
    bases = set(map(unprefixed, needs))
    has_distributions = any(isinstance(part, LabelDistributions) for part in parts.values())
    misread = bases != {"count"} if given else "count" in bases
    if has_distributions or misread:
        msg = (
            f"{name_of(function)}(): `count` can only be read by a formula with `given=`, which reads nothing else "
            "and is not part of another formula."
        )
        raise ArgumentError(msg)


def _check_prefixes(function: object, needs: Mapping[str, Formula | None]) -> None:
    """Refuse prefixes of statistics that are not sums, which other groups do not have."""
    for name, part in needs.items():
        if name == unprefixed(name):
            continue
        statistics = {unprefixed(name)} if part is None else part.statistics
        if (part is not None and part.is_of_rows) or not ORDER_STATISTICS.isdisjoint(statistics):
            msg = f"{name_of(function)}(): {name!r} is not available: only sums over rows can be read for other groups."
            raise ArgumentError(msg)

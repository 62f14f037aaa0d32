"""Required policies as data: what an audit must hold, where what is missing fails as much as what is exceeded."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack, cast

import polars as pl

from tidyfair.audits.evidence_files import Arguments, StoredCounts
from tidyfair.calling import GroupwiseMetric, Metric, metric_set
from tidyfair.errors import ArgumentError, Status, in_short, listed, nearest
from tidyfair.inference.gates import FAIL, PASS, Gate, UnfairError, check
from tidyfair.metrics import expression_for
from tidyfair.metrics.catalog import comparison_named, factories, metric_named, names_of_metrics
from tidyfair.specs import ColumnLike, Options, ReadOptions, SurveyCallOptions
from tidyfair.specs.result_kinds import REQUIREMENTS
from tidyfair.tallies import Tally, open_frame

__all__ = ["AuditPolicy", "read_policy"]

_KINDS: Mapping[str, tuple[type[Any], str]] = {
    "features": (list, 'a list of columns, such as ["sex", "race"]'),
    "crossings": (list, 'a list of crossed columns, such as ["sex:race"]'),
    "metrics": (list, 'a list of metrics, such as ["sens", "spec"]'),
    "limits": (dict, "a table of limits, such as equalized_odds = 0.1"),
    "least_n": (int, "a whole number of rows"),
    "conf_level": (float, "a number between 0.5 and 1"),
}
"""The keys of a policy, and what they hold."""
Member = Metric | GroupwiseMetric


@dataclass(frozen=True)
class AuditPolicy:
    """What an audit must hold, as a callable on dataframes that returns a verdict on each requirement.

    Args:
        features: The features that must be compared, crossings among them, such as `"sex:race"`.
        metrics: Metrics that must have a value in each group.
        limits: The loosest limit of metrics, and of disparities by each feature: the largest of those that should be
            small, and the smallest of those that should be large.
        least_n: The rows that each group must have.
        conf_level: The confidence level of verdicts on limits. Failures are adjusted (Holm) by feature.

    Returns:
        A row for each requirement: `.by`, `.metric`, `.level`, `.requirement` (`feature`, `rows`, `value` or `limit`),
        `.estimate` (the rows, or the value, of the group where it is smallest), `.lower`, `.upper`, `.limit`,
        `.verdict` and `.reason`.

    >>> from tidyfair.datasets import lending
    >>> policy = AuditPolicy(features=("sex", "age"), limits={"demographic_parity": 0.1})
    >>> verdicts = policy(lending(), estimate="approved", pos_label="yes")
    >>> verdicts.select(".by", ".requirement", ".verdict", ".reason").rows()[-1]
    ('age', 'feature', 'fail', 'the data have no columns age')
    """

    features: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    least_n: int = 1
    conf_level: float = 0.95

    def __post_init__(self) -> None:
        """Refuse metrics that do not exist, and limits that they cannot reach."""
        for name in ("features", "metrics"):
            # files have lists
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in self.metrics:
            if metric_named(name) is None:
                raise _unknown("metrics", "metric", name, ())
        for name, limit in self.limits.items():
            if metric_named(name) is None and comparison_named(name) is None:
                raise _unknown("limits", "metric or disparity", name, [factory.name for factory in factories()])
            try:
                self._gate_of(name, limit, "feature", _ROLES)
            except ArgumentError as error:
                text = re.sub(r"`(above|below)=([^`]*)`", rf"`{name} = \2`", str(error).removeprefix("check(): "))
                msg = f"`limits`: {text}"
                raise ArgumentError(msg) from error

    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[SurveyCallOptions],
    ) -> pl.DataFrame:  # fmt: skip
        """Judge predictions; takes the arguments of a metric. What the data or the call lack fails."""
        return self.verdicts(*self.counted(data, truth, estimate, **options))

    def assert_holds(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[SurveyCallOptions],
    ) -> None:  # fmt: skip
        """Raise `UnfairError` unless every requirement passes, for tests."""
        verdicts = self(data, truth, estimate, **options)
        failed = verdicts.filter(pl.col(".verdict") != PASS)
        if not failed.is_empty():
            with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, fmt_str_lengths=200):
                msg = f"{len(failed)} of {len(verdicts)} requirements do not hold:\n{failed}"
            raise UnfairError(msg)

    def counted(
        self, data: object, truth: Any = None, estimate: Any = None, *, counts: StoredCounts | None = None,
        **options: Unpack[SurveyCallOptions],
    ) -> tuple[Tally, dict[str, Any]]:  # fmt: skip
        """The tally of all that can be judged, of evidence if its counts are given, and the options of reading it."""
        reading = {name: value for name, value in options.items() if name in ReadOptions.__annotations__}
        counting: dict[str, Any] = {name: value for name, value in options.items() if name not in reading}
        given = frozenset(Options(truth=truth, estimate=estimate, **options).given)
        members = self._members(open_frame(data).columns, given)
        counting.setdefault("parts", None if "cluster" in counting else 0)
        tally = metric_set(*members).tally(data, truth, estimate, **counting)
        if tally.outer or tally.sides or (tally.cut is not None and tally.cut.several):
            msg = "A policy is held against one set of predictions: leave `group_by` out, and give one threshold."
            raise ArgumentError(msg)
        return tally if counts is None else counts.tally(tally, members), reading

    def _members(self, columns: Sequence[str], given: frozenset[str]) -> list[Member]:
        """The metrics that are counted for all rows and for the features that data with some columns have."""
        present = [by for by in self.features if set(by.split(":")) <= set(columns)]
        members: dict[tuple[str, str | None], Member] = {}
        for by in (None, *present):
            gate = self._gate(by, given)
            for member in (*self._values(by, given), *(gate.metrics if gate is not None else ())):
                members[member.name, by] = member
        return [*members.values()]

    def verdicts(self, tally: Tally, reading: Mapping[str, Any]) -> pl.DataFrame:
        """The verdicts on what a tally holds of all rows, and of each feature."""
        schema = {name: pl.Float64 if name in _NUMBERS else pl.String for name in REQUIREMENTS.columns}
        rows = [row for by in (None, *self.features) for row in self._judged(tally, by, reading)]
        return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)

    def values(self, tally: Tally, by: str | None, reading: Mapping[str, Any]) -> pl.DataFrame | None:
        """The values of the groups of a feature, or of all rows; None if the tally lacks the columns of the feature."""
        if by is not None and not set(by.split(":")) <= {key.column.name for key in tally.keys}:
            return None
        members = metric_set(*self._values(by, frozenset(tally.given)))
        options: dict[str, Any] = {"on_undefined": "ignore", **reading}
        return members.compute_by_group(tally, **options)

    def _judged(self, tally: Tally, by: str | None, reading: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The requirements on a feature, or on all rows."""
        values = self.values(tally, by, reading)
        if values is None:
            yield _row(by, None, "feature", f"the data have no columns {by}")
            return
        values = values.filter(pl.col(".status") != Status.UNKNOWN.value)
        if by is not None:
            is_enough = not values[".n"].has_nulls() and (values[".n"] >= self.least_n).all()
            reason = "" if is_enough else "some group has fewer rows, or is suppressed"
            yield _row(by, None, "rows", reason) | {".estimate": values[".n"].min(), ".limit": float(self.least_n)}
        for name in self.metrics:
            own = values.filter(pl.col(".metric") == name)
            lacking = own.filter(pl.col(".estimate").is_null())
            texts = lacking.select(pl.format("{} ({})", pl.col(".group").fill_null("all rows"), ".status")).to_series()
            reason = f"no value in {listed(texts)}" if len(texts) else ""
            yield _row(by, name, "value", reason if len(own) else _MISSING) | {".estimate": own[".estimate"].min()}
        gate = self._gate(by, frozenset(tally.given))
        read = {name: value for name, value in reading.items() if name not in {"interval", "conf_level"}}
        judged = [] if gate is None else gate.compute(tally, on_undefined="ignore", **read).to_dicts()
        for name in self._limits(by):
            missing = _row(by, name, "limit", _MISSING) | {".limit": float(self.limits[name])}
            rows = [missing | row | {".reason": None} for row in judged if row[".metric"] == name]
            yield from rows or [missing]

    def _values(self, by: str | None, given: frozenset[str]) -> list[Member]:
        """The metrics that must have values, of all rows or of the groups of a feature, with one that counts rows."""
        metrics = [cast("Metric", metric_named(name)) for name in (*self.metrics, "instances")]
        able = [metric for metric in metrics if _reads(metric) <= given]
        return [*able] if by is None else [metric.difference(*by.split(":")) for metric in able]

    def _limits(self, by: str | None) -> list[str]:
        """The names of the limits of all rows, or of disparities."""
        return [name for name in self.limits if (comparison_named(name) is None) == (by is None)]

    def _gate(self, by: str | None, given: frozenset[str]) -> Gate | None:
        """The limits of all rows, or of the disparities of a feature, that can be judged."""
        able = [self._gate_of(name, self.limits[name], by, given) for name in self._limits(by)]
        gates = [gate for gate in able if gate is not None]
        if not gates:
            return None
        limits = tuple(limit for gate in gates for limit in gate.limits)
        return Gate(metric_set(*(gate.metrics for gate in gates)), limits, self.conf_level)

    def _gate_of(self, name: str, limit: float, by: str | None, given: frozenset[str]) -> Gate | None:
        """The limit of a metric, or of a disparity by a feature, that can be judged."""
        factory: Any = comparison_named(name)
        judged: Any = metric_named(name) if factory is None else factory(*(by or "").split(":"))
        judged = judged.reading(given)
        side = "below" if judged.direction in {"minimize", "zero"} else "above"
        bound: dict[str, Any] = {side: limit}
        return check(judged, **bound, conf_level=self.conf_level) if _reads(judged) <= given else None


_ROLES = frozenset({"truth", "estimate", "probs"})
_NUMBERS = (".estimate", ".lower", ".upper", ".limit")
_MISSING = "missing: the call lacks columns that it reads"


def _reads(metric: Member) -> frozenset[str]:
    """The roles of columns that a metric reads."""
    return frozenset(role for spec in metric.specs for _, formula in spec.formulas for role in formula.reads)


def _unknown(key: str, kind: str, name: str, others: Sequence[str]) -> ArgumentError:
    """The error for a name that does not exist, with the name to write instead."""
    known = [*names_of_metrics(), *others]
    ours = expression_for(name, names_of_metrics(), others) or name
    way_out = f" Here it is {ours!r}." if ours != name and ours in known else nearest(name, known)
    return ArgumentError(f"`{key}`: there is no {kind} {name!r}.{way_out}")


def _row(by: str | None, metric: str | None, requirement: str, reason: str) -> dict[str, Any]:
    """The verdict on a requirement, which fails if there is a reason."""
    return {
        ".by": by, ".metric": metric, ".requirement": requirement, ".verdict": FAIL if reason else PASS,
        ".reason": reason or None,
    }  # fmt: skip


def results_of_policy(arguments: Arguments, data: Any, counts: StoredCounts) -> dict[str, pl.DataFrame]:
    """The values of groups and the verdicts of a policy, for evidence."""
    call: dict[str, Any] = {name: value for name, value in arguments.items() if name != "policy"}
    policy = AuditPolicy(**arguments["policy"])
    tally, reading = policy.counted(data, counts=counts, **call)
    tally.check_all_rows_are_shown()
    values = [policy.values(tally, by, reading) for by in (None, *policy.features)]
    groups = pl.concat([frame for frame in values if frame is not None], how="diagonal")
    return {"groups": groups, "verdicts": policy.verdicts(tally, reading)}


def read_policy(path: str | Path) -> AuditPolicy:
    """Read a policy from a TOML file, whose keys are those of `AuditPolicy`, with `crossings` beside `features`.

    Raises:
        ArgumentError: For a file that is no TOML, and for unknown keys and values, with the line.
    """
    try:
        text = Path(path).read_text("utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        msg = f"{str(path)!r} cannot be read: {error.strerror}."
        raise ArgumentError(msg) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f"{str(path)!r} is not a policy: {error}."
        raise ArgumentError(msg) from error
    for key, value in content.items():
        problem = _problem_with(key, value)
        if problem:
            msg = f"{str(path)!r}, line {_line_of(text, key)}: {problem}"
            raise ArgumentError(msg)
    content["features"] = [*content.get("features", []), *content.pop("crossings", [])]
    try:
        return AuditPolicy(**content)
    except ArgumentError as error:
        names = [*content.get("metrics", []), *content.get("limits", {})]
        line = next((_line_of(text, name) for name in names if name in str(error)), None)
        msg = f"{str(path)!r}{f', line {line}' if line else ''}: {error}"
        raise ArgumentError(msg) from error


def _problem_with(key: str, value: Any) -> str:
    """The problem of a key of a policy or of its value, in words; empty if there is none."""
    kind, words = _KINDS.get(key, (object, ""))
    if not words:
        return f"unknown key {key!r}.{nearest(key, _KINDS)} The keys: {', '.join(_KINDS)}."
    is_right = isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)
    items = cast("list[object]", value if kind is list and is_right else [])
    is_right &= all(isinstance(item, str) for item in items)
    return "" if is_right else f"{key!r} takes {words}, not {in_short(value)}."


def _line_of(text: str, word: str) -> int:
    """The line of a file in which a key, or a name in a list, stands first."""
    found = re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1

"""Audits as data: what a rule or a field asks for, as a frozen object that prints, compares and is replaced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self, cast

import polars as pl

from tidyfair.audits.evidence_files import StoredCounts
from tidyfair.audits.published import PublishedColumn, PublishedTable
from tidyfair.audits.reference_tables import GroupComparison, compare_groups
from tidyfair.calling import GroupwiseMetric, Metric, metric_set
from tidyfair.errors import ArgumentError, ColumnError, LabelError, Status, listed
from tidyfair.escapes import display
from tidyfair.evaluation import read_labels
from tidyfair.intervals import Scale
from tidyfair.metrics.classification import instances
from tidyfair.specs import CUT_OPTIONS, By, Column, Options, Policy, Treatment, crossed_text, key_columns, names_of
from tidyfair.specs.result_kinds import UNKNOWN_ROWS
from tidyfair.tallies import Source, Suppression, Tally, open_frame

__all__ = ["ComparisonTable", "NamedAudit", "ValuesTable"]

NOTE = ".note"
_HEADINGS = {
    ".by": "By", ".group": "Group", ".level": "Label", ".threshold": "Threshold", ".top_k": "Best rows",
    ".top_fraction": "Best share", ".bin": "Band",
}  # fmt: skip
"""The headings of columns that say what a row is about."""
_ABOVE_MEDIAN = "\0above the median"
_ARGUMENTS = ("truth", "estimate", "probs", "threshold", "within", "complementary")
"""The arguments that tables may need."""
_UNHEEDED = ("case_weights", "frequency_weights", "cluster")
"""The options that only some tables heed."""
_EXCLUDED = {
    Status.UNKNOWN.value: "unknown",
    Status.BELOW_MIN_N.value: "few rows",
    Status.BELOW_MIN_SHARE.value: "small share",
    Status.SUPPRESSED.value: "suppressed",
    Status.LEFT_OUT.value: "in no group",
}
"""The reasons why a group does not count, in words."""


@dataclass(frozen=True, kw_only=True)
class AuditCall:
    """The arguments of an audit: rows, columns, features, reference and options."""

    data: Any
    truth: Any = None
    estimate: Any = None
    features: tuple[tuple[Any, ...], ...]
    to: object = None
    within: Any = None
    complementary: Any = None
    counting: Mapping[str, Any]
    reading: Mapping[str, Any]
    suppression: Suppression | None = None
    """The groups that no table shows, because of small counts."""
    counts: StoredCounts | None = None
    """The tallies of evidence, where the audit is written as such or read from it."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the call without the data, whose groups are an option."""
        source = open_frame(self.data, self.counting.get("group_by"))
        names = ("truth", "estimate", "to", "within", "complementary", "reading")
        counting = {**self.counting, "group_by": source.group_by or None}
        return {
            "features": self.features, **{name: getattr(self, name) for name in names},
            "counting": {name: value for name, value in counting.items() if value is not None},
        }  # fmt: skip

    def tally(
        self, metrics: Sequence[Metric | GroupwiseMetric], *, without: Collection[str] = (),
        complete: NamedAudit | None = None,
    ) -> Tally:  # fmt: skip
        """The tally of some metrics, counted without some of the options, and of the `complete` rows of an audit."""
        counting: dict[str, Any] = {name: value for name, value in self.counting.items() if name not in without}
        if counting.get("cluster") is None:
            # intervals need to see how much sums vary from part to part
            counting["parts"] = 0
        tally = metric_set(*metrics).tally(self.data, self.truth, self.estimate, **counting)
        if complete is not None:
            bys = [metric.by for metric in metrics if isinstance(metric, GroupwiseMetric)]
            tally = complete.with_complete_rows(tally, bys)
        tally = replace(tally, suppression=self.suppression)
        return tally if self.counts is None else self.counts.tally(tally, metrics)

    def rows(self, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Rows that a table reads one by one: with evidence only some columns, and those of groups."""
        if self.counts is None:
            return frame
        names = [name for feature in map(read_feature, self.features) for name in names_of(feature.columns)]
        outer = open_frame(self.data, self.counting.get("group_by")).outer
        return self.counts.rows(frame, [*columns, *names, *names_of(outer)])

    def suppressing(self, tables: Iterable[AuditTable], audit: NamedAudit, below: int) -> AuditCall:
        """The same call without small counts and what gives them away in any of its tables."""
        for table in tables:
            if not table.is_of_counts:
                msg = (
                    f"audit(): `suppress_below` hides counts, and the table {table.name!r} has other numbers, which it "
                    "cannot protect; leave the option out, and join groups of few rows before."
                )
                raise ArgumentError(msg)
        members = [instances.difference(*by, **audit.group_options) for by in crossings(self.features)]
        tally = replace(self, counts=None).tally(members, complete=audit)
        tally = tally.suppressed([member.by for member in members], below)
        tally.check_all_rows_are_shown()
        return replace(self, suppression=tally.suppression)

    @property
    def given(self) -> set[str]:
        """The arguments that tables may need: `truth`, `estimate` (made of scores, too), `probs` and others."""
        given = {role for role in ("truth", "estimate", "within", "complementary") if getattr(self, role) is not None}
        given |= {role for role in ("probs", "threshold") if self.counting.get(role) is not None}
        is_cut = any(self.counting.get(cut) is not None for cut in CUT_OPTIONS)
        return given | ({"estimate"} if "probs" in given and is_cut else set())

    def refuse_weights(self, table: str, argument: str, *heeded: str) -> None:
        """Refuse weights and clusters, which a table made of an argument ignores."""
        for option in _UNHEEDED:
            if option not in heeded and self.counting.get(option) is not None:
                msg = f"audit(): the table {table!r} does not accept `{option}`; leave out `{option}` or `{argument}`."
                raise ArgumentError(msg)

    def above_median(self) -> AuditCall:
        """The same call, of decisions that select the scores above the median of all rows."""
        source = open_frame(self.data, self.counting.get("group_by"))
        if source.sides:
            msg = "audit(): medians need columns in `group_by`, and privileged(…) is not a column; name columns."
            raise ArgumentError(msg)
        for name in ("case_weights", "frequency_weights"):
            if self.counting.get(name) is not None:
                msg = f"audit(): the median of scores does not accept `{name}`; repeat the rows, or filter them."
                raise ArgumentError(msg)
        counting = {name: value for name, value in self.counting.items() if name not in {"probs", *CUT_OPTIONS}}
        counting["group_by"] = source.group_by or None
        reading = {name: value for name, value in self.reading.items() if name not in {"labels", "estimator"}}
        reading["pos_label"] = True
        data, estimate = self._decided(source), Column(_ABOVE_MEDIAN)
        return replace(self, truth=None, data=data, estimate=estimate, counting=counting, reading=reading)

    def _decided(self, source: Source) -> pl.DataFrame:
        """The rows with a mask of the scores above the median of their outer group."""
        score = Column.of(self.counting["probs"], "probs")
        others = [("group_by", column) for column in source.outer]
        others += [("by", column) for by in map(read_feature, self.features) for column in by.columns]
        if self.counting.get("cluster") is not None:
            others.append(("cluster", Column.of(self.counting["cluster"], "cluster")))
        wanted = {f"other {index}": column for index, column in enumerate(others)}
        frame = source.here({"score": ("probs", score), **wanted}).frame.lazy()
        if not frame.select(score.expr).collect_schema().dtypes()[0].is_numeric():
            msg = f"`probs`: the column {score.name!r} holds no numbers, so that there is no median of them."
            raise ColumnError(msg)
        value = score.expr.fill_nan(None)
        median = value.median()
        if source.outer:
            median = median.over([column.expr for column in source.outer])
        return frame.with_columns((value > median).alias(_ABOVE_MEDIAN)).collect()


@dataclass(frozen=True, kw_only=True)
class AuditTable(ABC):
    """A table of an audit."""

    takes_reference: ClassVar[bool] = False
    """True if the caller names the group that others are compared with."""
    is_of_counts: ClassVar[bool] = False
    """True if what it shows of groups are counts by labels, and nothing of suppressed groups."""
    name: str
    """Its name among the tables of the result."""
    heading: str
    needs: tuple[str, ...]
    """The arguments without which there is no such table: `truth`, `estimate`, `probs`, `threshold`, `within`."""
    columns: tuple[PublishedColumn, ...]
    """The columns as they are published."""

    def __post_init__(self) -> None:
        """Check what a table is made of."""
        if not isinstance(self.needs, tuple):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = f'The table {self.name!r}: `needs` lists arguments, as in `needs=("truth",)`, not {self.needs!r}.'
            raise ArgumentError(msg)
        for argument in self.needs:
            if argument not in _ARGUMENTS:
                kind = f"argument that the table {self.name!r} needs:"
                raise ArgumentError.unknown(kind, argument, _ARGUMENTS)
        if not self.columns:
            msg = f"The table {self.name!r}: `columns` lists at least one PublishedColumn(…)."
            raise ArgumentError(msg)

    @abstractmethod
    def frame(self, call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
        """The tidy frame."""

    @abstractmethod
    def specification(self) -> str:
        """The table in words."""

    def published(self, frame: pl.DataFrame) -> PublishedTable:
        """A tidy frame of this table as it is published."""
        return PublishedTable.of(self.heading, with_readable_groups(frame), keys_of(frame), self.columns)


@dataclass(frozen=True, kw_only=True)
class ComparisonTable(AuditTable):
    """A table of groups that are compared with a reference, as `compare_groups` has it.

    Args:
        name: The name of the table in `.tables`.
        heading: The heading of the published table.
        needs: The columns without which there is no such table: `"truth"`, `"estimate"`, `"probs"`.
        metric: The metric whose groups are compared.
        to: The reference, as `compare_groups` takes it; None where the caller must name it.
        scale: `"difference"`, `"ratio"` or `"odds_ratio"`.
        test: The test of `.p_value`.
        cut: `"median"` for scores of which those above the median of all rows are selections.
        crossed: Whether the crossing of all features has a part of the table.
        derived: Functions that add columns to the tidy frame, which has the counts of `explain=True`.
        columns: The columns as they are published.
    """

    metric: Metric
    to: object = "highest"
    scale: Scale = "ratio"
    test: Literal["interval", "fisher", "mid_p", "z"] = "interval"
    cut: Literal["median"] | None = None
    crossed: bool = False
    derived: tuple[Callable[[pl.DataFrame], pl.DataFrame], ...] = ()

    @property
    def takes_reference(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride] - some are fixed
        """True if the caller names the group that others are compared with."""
        return self.to is None

    @property
    def is_of_counts(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride] - some are of scores
        """True unless labels are made of the scores of all rows."""
        return self.cut is None

    def frame(self, call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
        """The tidy frame."""
        features = crossings(call.features) if self.crossed else call.features
        reference = self.to if self.to is not None else call.to
        if reference is None:
            msg = (
                f"audit(): {audit.name} compares each group with one that you name, as "
                '`to={"race": "White", "sex": "male"}`.'
            )
            raise ArgumentError(msg)
        compared = compare_groups(
            self.metric, by=list(features), to=reference, scale=self.scale, test=self.test, adjust="none",
            **audit.group_options,
        )  # fmt: skip
        comparison = cast("GroupComparison", compared)
        if self.cut == "median":
            call = call.above_median()
        tally = call.tally(comparison.metrics, complete=audit)
        frame = comparison.compute(tally, explain=True, **call.reading)
        if audit.complete_rows:
            # the rows of a feature alone would not be those that it has unknown
            frame = frame.filter(pl.col(".status") != Status.UNKNOWN.value)
        # of rows that do not count alike there is no such test, and a column that is headed by it is empty
        is_asked = pl.col(".test") == self.test
        frame = frame.with_columns(pl.when(is_asked).then(".p_value").alias(".p_value"), note())
        for derive in self.derived:
            frame = derive(frame)
        return frame

    def specification(self) -> str:
        """The table in words."""
        rows = "scores above the median of all rows" if self.cut == "median" else "rows"
        reference = "a group that the caller names" if self.to is None else f'the reference "{self.to}"'
        crossed = ", also of the crossing of all features" if self.crossed else ""
        test = "" if self.test == "interval" else f", test: {self.test}"
        derived = "".join(f"; with {function.__name__}" for function in self.derived)
        return f"{self.metric.name} of {rows}, by group{crossed}; {self.scale} to {reference}{test}{derived}"


@dataclass(frozen=True, kw_only=True)
class ValuesTable(AuditTable):
    """A table of the values of groups, as `by_group` has them, with a column for each metric when it is published.

    Args:
        name: The name of the table in `.tables`.
        heading: The heading of the published table.
        needs: The arguments without which there is no such table: `"truth"`, `"estimate"`, `"probs"`, `"threshold"`.
        metrics: The metrics.
        crossed: Whether the crossing of all features has a part of the table.
        columns: The columns as they are published: of metrics, or of the columns `.n` and `.note`.
    """

    is_of_counts: ClassVar[bool] = True
    metrics: tuple[Metric, ...]
    crossed: bool = False

    def __post_init__(self) -> None:
        """Check that columns are those of the metrics."""
        super().__post_init__()
        known = [*(metric.name for metric in self.metrics), ".n", NOTE]
        for column in self.columns:
            if column.column not in known:
                kind = f"column of the table {self.name!r}:"
                raise ArgumentError.unknown(kind, column.column, known)

    def frame(self, call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
        """The tidy frame."""
        features = crossings(call.features) if self.crossed else call.features
        groups = audit.group_options
        comparisons = [metric.difference(*by, **groups) for metric in self.metrics for by in features]
        members: list[Any] = [*self.metrics, *comparisons]
        metrics_of_groups = metric_set(*members)
        is_of_decisions = not {"estimate", "threshold"}.isdisjoint(self.needs)
        tally = call.tally(members, without=() if is_of_decisions else CUT_OPTIONS)
        options = Options(**call.reading)
        if audit.one_event and options.pos_label is None and tally.truth is not None:
            labels = read_labels(tally, options)
            if labels.event is None:
                msg = (
                    f"audit(): {audit.name} is about one event, and the labels of {tally.truth.name!r} are "
                    f"{listed(labels.values)}: name the event, as in `pos_label={labels.values[-1]!r}`; all others "
                    "count as its absence."
                )
                raise LabelError(msg)
        metrics_of_groups.run.check_occurs(tally, options)
        frame = metrics_of_groups.compute_by_group(tally, **call.reading, interval="auto", on_undefined="ignore")
        if "threshold" in self.needs:
            if ".threshold" not in frame.columns:
                threshold = pl.lit(call.counting["threshold"], pl.Float64)
                frame = frame.insert_column(frame.columns.index(".estimate"), threshold.alias(".threshold"))
            frame = frame.sort(".threshold", maintain_order=True)
        statuses = frame[".status"].unique().to_list()
        reasons = {status: f"undefined ({Status.text_of(status)})" for status in statuses}
        undefined = pl.col(".status").replace_strict(reasons, default="", return_dtype=pl.String)
        excluded = note("not shown")
        is_undefined = pl.col(".estimate").is_null() & (excluded == "")
        return frame.with_columns(pl.when(is_undefined).then(undefined).otherwise(excluded).alias(NOTE))

    def published(self, frame: pl.DataFrame) -> PublishedTable:
        """A tidy frame of this table as it is published: a row for each group, and its metrics side by side."""
        frame = with_readable_groups(frame)
        shown = keys_of(frame)
        features = frame.columns[frame.columns.index(".by") + 1 : frame.columns.index(".group")]
        names = [*(name for name, _ in shown), *features]
        # features may have the name of a metric, or of any other column
        keys = [pl.col(name).alias(f"key {index}") for index, name in enumerate(names)]
        headings_of_metrics = {column.column: column.heading for column in self.columns}
        cells: list[pl.Expr] = []
        for index, column in enumerate(self.columns):
            if column.column == ".n":
                cell = pl.col(".n").max()
            elif column.column == NOTE:
                # a group that does not count has the same note for all metrics
                cell = (
                    pl.struct(".metric", NOTE).implode().map_elements(partial(_notes, headings_of_metrics), pl.String)
                )
            else:
                texts = pl.struct(".estimate", ".lower", ".upper").map_elements(column.interval, pl.String)
                cell = texts.filter(pl.col(".metric") == column.column).first()
            cells.append(cell.alias(f"cell {index}"))
        named = frame.with_columns(pl.col(".by").fill_null(""), pl.col(".group").fill_null("all rows"))
        wide = named.group_by(keys, maintain_order=True).agg(cells)
        headings = [(f"key {index}", heading) for index, (_, heading) in enumerate(shown)]
        as_texts = [replace(column, column=f"cell {index}", digits=None) for index, column in enumerate(self.columns)]
        numbers = [column.column for column, own in zip(as_texts, self.columns, strict=True) if own.column != NOTE]
        return PublishedTable.of(self.heading, wide, headings, tuple(as_texts), texts_of_numbers=numbers)

    def specification(self) -> str:
        """The table in words."""
        names = ", ".join(metric.name for metric in self.metrics)
        crossed = ", also of the crossing of all features" if self.crossed else ""
        at_threshold = ", at each threshold" if "threshold" in self.needs else ""
        return f"{names}, of all rows and by group{crossed}{at_threshold}, with intervals"


@dataclass(frozen=True, kw_only=True)
class NamedAudit:
    """An audit as data: the tables that a rule or a field asks for, and which groups count; `audit` computes it.

    It prints as a specification, equal ones are equal, and `dataclasses.replace` makes another.

    Args:
        name: The name, by which `audit` knows those of the library.
        title: What it is called.
        version: The version of the rule, with dates.
        source: Where the rule is written.
        purpose: What it is.
        is_not: What it is not.
        readings: How points that the rule leaves open are read.
        tables: The tables.
        unknown: What becomes of rows whose group is missing or unknown, as `compare_groups` has it.
        unknown_values: The values that mean unknown beside null.
        complete_rows: Leave rows that are unknown in any feature out of every table.
        min_n: The least rows of a group that is compared.
        min_share: The least share of the rows of a group that is compared.
        one_event: Whether its values are about one event, which the call names if there are several labels.

    >>> from dataclasses import replace
    >>> from tidyfair.audits import NAMED_AUDITS
    >>> ours = replace(NAMED_AUDITS["nyc_ll144"], name="ours", min_share=0.02)
    >>> ours == NAMED_AUDITS["nyc_ll144"]
    False
    """

    name: str
    title: str
    version: str
    source: str
    purpose: str
    is_not: tuple[str, ...]
    readings: tuple[str, ...] = ()
    tables: tuple[AuditTable, ...]
    unknown: Treatment = "apart"
    unknown_values: tuple[object, ...] | None = None
    complete_rows: bool = False
    min_n: int = 0
    min_share: float = 0.0
    one_event: bool = False

    def __str__(self) -> str:
        """The specification."""
        lines = [f"{self.name}: {self.title}", f"version: {self.version}", f"source: {self.source}"]
        lines += [f"It is: {self.purpose}", *(f"It is not: {text}" for text in self.is_not)]
        lines += [f"Read as: {text}" for text in self.readings]
        if self.one_event:
            lines.append("Labels: one is the event, and all others are its absence")
        lines.append(f"Groups: {self.policy}")
        for table in self.tables:
            needs = listed(table.needs)
            lines.append(f'Table "{table.name}", "{table.heading}" (needs {needs}): {table.specification()}')
            lines += [f"  column {column}" for column in table.columns]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns: dict[str, list[str]] = {
            "table": [table.name for table in self.tables],
            "heading": [table.heading for table in self.tables],
            "needs": [", ".join(table.needs) for table in self.tables],
            "specification": [table.specification() for table in self.tables],
        }
        remark = f"{self.title}. Version: {self.version}. It is: {self.purpose}. Groups: {self.policy}."
        call = f'audit("{self.name}", data, …)'
        return display("audit", columns, name=self.name, remark=remark, call=call)

    @property
    def group_options(self) -> dict[str, Any]:
        """The keywords that say which groups are compared."""
        return {option.name: getattr(self, option.name) for option in fields(Policy)}

    @property
    def policy(self) -> str:
        """The treatment of unknown and small groups, in a sentence."""
        treatments = {
            "apart": "rows of unknown groups are counted but not compared",
            "drop": "rows of unknown groups are not listed",
            "group": "unknown is treated as a group like any other",
        }
        parts = [treatments[self.unknown]]
        if self.complete_rows and self.unknown != "group":
            counted = "counted but " if self.unknown == "apart" else ""
            parts = [f"rows that are unknown in any feature are {counted}left out of all tables"]
        if self.unknown_values is not None:
            parts.append(f"missing values and {listed(self.unknown_values)} count as unknown")
        if self.min_n:
            parts.append(f"groups of fewer than {self.min_n} rows are listed but not compared")
        if self.min_share:
            share = f"{100 * self.min_share:g} percent"
            parts.append(f"groups of less than {share} of the rows are listed but not compared")
        return "; ".join(parts)

    def with_complete_rows(self, tally: Tally, bys: Sequence[By]) -> Tally:
        """The tally in which rows unknown in any feature are unknown in all, if that is how the audit counts."""
        if not self.complete_rows:
            return tally
        names = tally.names(list(dict.fromkeys(column for by in bys for column in by.columns)))
        are_unknown = pl.DataFrame({by.text: by.is_unknown(by.groups(tally.keys_of_cells(by.columns))) for by in bys})
        is_known = ~are_unknown.select(pl.any_horizontal(pl.all())).to_series()
        known = tally.cells.with_columns(pl.when(is_known).then(name).alias(name) for name in names)
        return replace(tally, cells=known)

    def tables_of(self, call: AuditCall) -> list[AuditTable]:
        """The tables that can be made of the columns of a call."""
        if not self.tables:
            msg = f"audit(): {self.name} has no tables."
            raise ArgumentError(msg)
        if call.to is not None and not any(table.takes_reference for table in self.tables):
            msg = f"audit(): {self.name} has a fixed reference and does not accept `to`."
            raise ArgumentError(msg)
        for argument, meaning in (("within", "segments"), ("complementary", "components of pay")):
            if getattr(call, argument) is not None and not any(argument in table.needs for table in self.tables):
                msg = f"audit(): {self.name} has no {meaning} and does not accept `{argument}`."
                raise ArgumentError(msg)
        able = [table for table in self.tables if set(table.needs) <= call.given]
        if not able:
            ways = [" with ".join(f"`{role}`" for role in table.needs) for table in self.tables]
            ways = " or ".join(dict.fromkeys(ways))
            msg = f"audit(): {self.name} needs {ways}, and the call has {listed(sorted(call.given))}."
            raise ArgumentError(msg)
        return able

    def with_groups(self, **groups: Any) -> Self:
        """The same with another policy on groups; None leaves it as it is."""
        changed = {name: value for name, value in groups.items() if value is not None}
        audit = replace(self, **changed)
        Policy.of("audit()", **audit.group_options)
        return audit if audit.unknown_values is None else replace(audit, unknown_values=tuple(audit.unknown_values))


def with_readable_groups(frame: pl.DataFrame) -> pl.DataFrame:
    """A tidy frame whose crossings, and their groups, are as people write them, such as `Female, White`."""
    groups = [crossed_text(name).alias(name) for name in (".group", ".reference") if name in frame.columns]
    return frame.with_columns(*groups, pl.col(".by").str.replace_all(":", ", ", literal=True))


def keys_of(frame: pl.DataFrame) -> list[tuple[str, str]]:
    """The columns that say what each row of a tidy frame is about, and their headings."""
    used = {name for name in frame.columns if name in {".by", ".group"} or frame[name].null_count() < len(frame)}
    headings = [(name, heading) for name, heading in _HEADINGS.items() if name in used]
    return [*((name, name) for name in key_columns(frame)), *headings]


def _notes(headings: Mapping[str, str], notes: Iterable[Mapping[str, str]]) -> str:
    """The notes on the values of a group as one text, in which each reason names its metrics."""
    metrics_of_note: dict[str, list[str]] = {}
    for row in notes:
        metrics_of_note.setdefault(row[NOTE], []).append(headings.get(row[".metric"], row[".metric"]))
    if len(metrics_of_note) == 1:
        # a group that does not count has the same note for all metrics
        return next(iter(metrics_of_note))
    return "; ".join(f"{', '.join(metrics)}: {text}" for text, metrics in metrics_of_note.items() if text)


def note(consequence: str = "not compared") -> pl.Expr:
    """The remark on groups that do not count."""
    texts = {status: f"{reason}: {consequence}" for status, reason in _EXCLUDED.items()}
    return pl.col(".status").replace_strict(texts, default="", return_dtype=pl.String).alias(NOTE)


def read_feature(feature: tuple[Any, ...]) -> By:
    """A feature from its columns, with the usual policy on groups."""
    return By.of(feature, "audit", Policy())


def crossings(features: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
    """Features, and the crossing of all their columns."""
    columns: dict[str, Any] = {}
    for by in map(read_feature, features):
        columns |= zip(by.names, by.features, strict=True)
    is_there = any(len(feature) == len(columns) for feature in features)
    return features if is_there else (*features, tuple(columns.values()))


def unknown_rows(call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
    """The rows of each outer group, and how many of them are of unknown groups, by feature and of any feature."""
    every = [instances.difference(*by, unknown_values=audit.unknown_values) for by in crossings(call.features)]
    members = [instances, *every]
    others = call.counting.keys() - {"group_by"}
    groups = metric_set(*members).compute_by_group(
        replace(call, truth=None, estimate=None).tally(members, without=others), on_undefined="ignore"
    )
    outer, is_unknown = key_columns(groups), pl.col(".status") == Status.UNKNOWN.value
    # people may be in several groups
    rows = pl.col(".n").filter(pl.col(".by").is_null()).sum().over(pl.lit(0), *outer)
    unknown = pl.col(".n").first(), pl.col(".unknown").sum()
    groups = groups.with_columns(rows, pl.when(is_unknown).then(".n").alias(".unknown")).drop_nulls(".by")
    counts = UNKNOWN_ROWS.frame(groups.group_by(*outer, ".by", maintain_order=True).agg(unknown))
    if call.suppression is not None:
        # how many rows are of unknown groups may be a small count
        counts = counts.with_columns(pl.lit(None, pl.Int64).alias(name) for name in (".n", ".unknown"))
    return counts

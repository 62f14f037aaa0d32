"""Results to be shared: tables of results, and an audit as one page that opens anywhere.

It needs great_tables, altair and vl-convert-python: `pip install 'tidyfair[report]'`.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.arguments import whole
from tidyfair.audits import Audit, kind_of
from tidyfair.defaults import threshold_curve
from tidyfair.errors import ArgumentError, ColumnError, listed
from tidyfair.exhibits import (
    Code,
    Drawn,
    Part,
    Shown,
    as_p_value,
    as_text,
    groups_side_by_side,
    one_below_the_other,
    rounded,
    too_few,
)
from tidyfair.fairness import demographic_parity, equal_opportunity
from tidyfair.frames import open_frame
from tidyfair.gates import Gate
from tidyfair.hypotheses import disparity_test
from tidyfair.intervals import share_of
from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.metrics.curves import calibration_curve
from tidyfair.pairs import worst_groups
from tidyfair.plots import autoplot
from tidyfair.requests import ReadOptions
from tidyfair.sums import SCORE
from tidyfair.tallies import ESTIMATE, TRUTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidyfair.audits import Feature
    from tidyfair.columns import ColumnLike
    from tidyfair.tallies import Tally

__all__ = ["Report", "report"]

_OF_TESTS = {"truth", "estimate", "probs", "threshold", "top_k", "top_fraction", "pos_label", "labels", "na_rm"}
"""What tests take; of the rest of a call they decide for themselves."""
_UNTESTED = {"frequency_weights", "cluster", "score_bins", "keep_rows"}
"""With these rows are not each as good as another."""


@dataclass(frozen=True)
class Report:
    """An audit to be read by others: words, tables and pictures, as one file; made by `report`."""

    title: str
    parts: tuple[Part, ...]

    def html(self) -> str:
        """One page that needs nothing else: no scripts, no network."""
        body = "".join(part.html(place) for place, part in enumerate(self.parts))
        title = escape(self.title)
        return (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
            f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n"
            "</html>\n"
        )

    def markdown(self) -> str:
        """The same words and tables in Markdown, for a model card; pictures are told in words."""
        return f"# {as_text(self.title)}\n\n" + "".join(part.markdown() for part in self.parts)

    def save(self, file: str | Path) -> Path:
        """Write a page, or Markdown where the file is called so.

        Raises:
            ArgumentError: For a file that ends neither in .html nor in .md.
        """
        path = Path(file)
        writers = {".html": self.html, ".md": self.markdown}
        if path.suffix not in writers:
            kind = "kind of report"
            raise ArgumentError.unknown(kind, path.suffix, writers)
        path.write_text(writers[path.suffix](), "utf-8")
        return path

    def _repr_html_(self) -> str:
        # in a frame of its own, so that its style is not that of the notebook
        style = "width: 100%; height: 40rem; border: 1px solid #ccc"
        return f'<iframe srcdoc="{escape(self.html())}" title="{escape(self.title)}" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"<report {self.title!r}: {', '.join(part.heading for part in self.parts)}>"


def report(
    data: Any,
    truth: ColumnLike | None = None,
    estimate: ColumnLike | None = None,
    *,
    by: Feature | list[Feature],
    metrics: Metric | GroupwiseMetric | MetricSet | None = None,
    gate: Gate | None = None,
    title: str = "Audit of predictions",
    min_n: int = 0,
    **options: Any,
) -> Report:
    """Audit predictions, and write down what was found for others to read.

    Args:
        data: A frame, as metrics take it; it is not grouped.
        truth: Column of the true labels, or numbers.
        estimate: Column of the predictions.
        by: The feature that is compared, or a list of them: columns, tuples of columns whose combinations are the
            groups, or `privileged(…)`.
        metrics: Metrics and disparities in place of the usual ones, which are of labels and scores; numbers need them.
        gate: What `check` has made: its verdicts are part of the report.
        title: The heading.
        min_n: Values of groups of fewer rows are not shown, and disparities not taken over them. What is hidden can
            still be worked out where totals are known.
        options: What a call of metrics takes: `probs`, `threshold`, `pos_label`, `case_weights` …

    Returns:
        A `Report`: `.html()`, `.markdown()`, `.save("audit.html")`.

    Raises:
        TidyfairError: Where metrics would; for `group_by=`, a list of cuts, or no rows; and without the packages of
            `tidyfair[report]`.

    >>> from tidyfair.datasets import lending
    >>> found = report(lending(), "repaid", "approved", by=["sex", "race"], pos_label="yes")
    >>> "Hispanic" in found.markdown()
    True
    """
    options = {name: value for name, value in options.items() if value is not None}
    whole("min_n", min_n, 0, of="report")
    source = open_frame(data, options.get("group_by"))
    if source.group_by:
        msg = "report() is about one set of predictions: give it the frame without groups, or a part of it."
        raise ArgumentError(msg)
    given = None if metrics is None else metric_set(metrics)
    kind = "labels" if given else kind_of(source, truth, estimate, options)
    audit = Audit.of(by if isinstance(by, list) else [by], kind, metrics=given, min_n=min_n)
    own = {"interval": "auto", "on_undefined": "ignore"}
    reading: Any = own | {name: value for name, value in options.items() if name in ReadOptions.__annotations__}
    counting: Any = {name: value for name, value in options.items() if name not in ReadOptions.__annotations__}
    parts: Any = {"parts": reading.get("seed", 0)} if counting.get("cluster") is None else {}
    tally = audit.everything.tally(data, truth, estimate, **parts, **counting)
    if tally.cut is not None and tally.cut.several:
        msg = f"report() is about one set of decisions: give one {tally.cut.way}, not a list."
        raise ArgumentError(msg)
    if not tally.cells["n"].sum():
        msg = "report() has nothing to tell: there are no rows."
        raise ArgumentError(msg)
    results = audit.results.compute(tally, explain=True, **reading)
    groups = audit.groups.compute_by_group(tally, **reading)
    asked: dict[str, Any] = {"truth": truth, "estimate": estimate, **options}
    tested = worst = None
    if _is_plain(tally, results) and not _UNTESTED & set(options):
        of_tests = {name: value for name, value in asked.items() if name in _OF_TESTS}
        tested, worst = _tested(audit, data, of_tests), _worst(audit, data, of_tests)
    of_gate = {name: value for name, value in asked.items() if name not in {"interval", "conf_level"}}
    verdicts = gate and open_frame(gate(data, **of_gate | {"on_undefined": "ignore"})).to_polars()
    call = {"by": by, "metrics": metrics, "gate": gate, "min_n": min_n or None, **options}
    sections = [
        Part("The question", _question(audit, tally, reading)),
        Part("The data", _of_data(tally, groups, min_n)),
        Part("Each group", _of_groups(groups, worst, min_n)),
        Part("Disparities", _of_disparities(results, tested, verdicts)),
        *_of_scores(audit, tally, data, asked, min_n),
        Part("What was left out", _left_out(results, groups, min_n)),
        Part("Definitions", (_definitions(audit),)),
        again(_call(truth, estimate, call)),
    ]
    return Report(title, tuple(sections))


def _question(audit: Audit, tally: Tally, reading: Mapping[str, Any]) -> tuple[Any, ...]:
    """What was asked, in words."""
    given = {"predictions": tally.estimate, "scores": tally.scores.columns[0] if tally.scores else None}
    what = " and ".join(f"the {kind} {column.name!r}" for kind, column in given.items() if column is not None)
    about = f" of {tally.truth.name!r}" if tally.truth else ""
    features = ", ".join(audit.features)
    said = [f"How good are {what}{about}, for whom, and how far apart are the groups of {features}?"]
    if reading.get("pos_label") is not None:
        said.append(f"The event is {reading['pos_label']!r}.")
    if tally.cut is not None:
        at = "" if tally.cut.groups else f" {tally.cut.values[0]:g}"
        said.append(f"Decisions are made of the scores by {tally.cut.way.replace('_', ' ')}{at}.")
    if tally.weights is not None:
        said.append(f"Rows are weighted by {tally.weights.name!r}.")
    level = reading.get("conf_level", 0.95)
    said.append(f"Intervals hold what is true {level:.0%} of the time; those of disparities are of differences.")
    return (" ".join(said),)


def _of_data(tally: Tally, groups: pl.DataFrame, min_n: int) -> tuple[Any, ...]:
    """How many rows there are, what is missing, and who they are about."""
    cells, rows = tally.cells, int(tally.cells["n"].sum())
    named = {TRUTH: tally.truth, ESTIMATE: tally.estimate}
    missing = [
        {"column": column.name, "read as": role, "missing": int(cells.filter(pl.col(role).is_null())["n"].sum())}
        for role, column in named.items() if column is not None
    ]  # fmt: skip
    if tally.scores is not None and SCORE in cells.columns:
        unknown = int(cells.filter(pl.col(SCORE).is_null())["n"].sum())
        missing += [{"column": each.name, "read as": "scores", "missing": unknown} for each in tally.scores.columns]
    said = f"There are {rows:,} rows."
    if tally.weights is not None:
        total, squares = float(cells["w"].sum()), float(cells["w2"].sum())
        said += f" Their weights add up to {total:,.4g}, and tell as much as {total**2 / squares:,.0f} equal ones."
    sizes = groups.filter(pl.col(".by").is_not_null()).group_by(".by", ".group", maintain_order=True)
    share = (pl.col("rows") / rows * 100).round(1).cast(pl.String) + " %"
    enough = pl.when(pl.col(".n").max() >= min_n).then(pl.col(".n").max())
    people = sizes.agg(enough.alias("rows")).with_columns(share.alias("share"))
    columns = [Shown(pl.DataFrame(missing))] if missing else []
    return said, *columns, Shown(people, (), too_few(min_n))


def _of_groups(groups: pl.DataFrame, worst: pl.DataFrame | None, min_n: int) -> tuple[Any, ...]:
    """The values of groups, as a table and as pictures of each feature."""
    table, notes = groups_side_by_side(groups, worst, min_n)
    blocks: list[Any] = [Shown(table, tuple(notes), too_few(min_n))]
    everyone = groups.filter(pl.col(".by").is_null())
    for by in groups[".by"].drop_nulls().unique(maintain_order=True):
        own = groups.filter((pl.col(".by") == by) & (pl.col(".n") >= min_n))
        if not own.is_empty():
            blocks.append(_picture(pl.concat([everyone, own]), f"Each group of {by}"))
    return tuple(blocks)


def _picture(result: pl.DataFrame, title: str, beside: pl.DataFrame | None = None) -> Drawn | str:
    """A result as it is drawn, or why it is not."""
    try:
        return Drawn(autoplot(result, beside=beside, title=title))
    except ArgumentError as error:
        if "pip install" in str(error):
            raise
        return f"{title} is not drawn: {error}"


def _of_disparities(
    results: pl.DataFrame, tested: pl.DataFrame | None, verdicts: pl.DataFrame | None
) -> tuple[Any, ...]:
    """How far groups are apart, how sure that is, and what was judged."""
    apart = results.filter(pl.col(".by").is_not_null())
    if apart.is_empty():
        return ("None was asked for.",)
    shown = one_below_the_other(apart.drop(".n", ".method", ".status"))
    blocks: list[Any] = [Shown(shown)]
    if tested is not None:
        pair = [".metric", ".by"]
        ends = [rounded(tested[f".expected_{end}"]) for end in ("lower", "upper")]
        p_values = {".p_value": "p", ".p_adjusted": "p, adjusted"}
        expected = tested.select(
            *pair,
            pl.format("{} to {}", *ends).alias("expected"),
            *(as_p_value(tested[name]).alias(shown_as) for name, shown_as in p_values.items()),
        )
        blocks = [Shown(shown.join(expected, on=pair, how="left", maintain_order="left"))]
        blocks.append(
            "Expected is what groups that are equal show 95 % of the time; a disparity within it may be chance."
        )
    blocks.append(_picture(apart, "Disparities", tested))
    if verdicts is not None:
        known = tested if tested is not None and set(verdicts[".metric"]) & set(tested[".metric"]) else None
        blocks.append("Verdicts, by limits that are wrong on one side as often as the gate allows:")
        blocks += [Shown(one_below_the_other(verdicts)), _picture(verdicts, "Verdicts", known)]
    return tuple(blocks)


def _of_scores(audit: Audit, tally: Tally, data: Any, asked: dict[str, Any], min_n: int) -> list[Part]:
    """How values change with the threshold, and whether scores mean the same for all."""
    scores = tally.scores
    if scores is None or scores.several or asked["truth"] is None:
        return []
    named = {name: asked[name] for name in ("truth", "probs", "pos_label", "labels", "case_weights") if name in asked}
    if "frequency_weights" in asked:
        # values are the same, and curves show nothing else
        named["case_weights"] = asked["frequency_weights"]
    blocks = list[Any]()
    for by in dict.fromkeys(each.by for each in audit.parities):
        features: Any = list(by.features)
        parities = metric_set(*(factory(*features) for factory in (demographic_parity, equal_opportunity)))
        curves = threshold_curve(parities).by_group(data, **named, on_undefined="ignore")
        blocks.append(_picture(_enough(curves, min_n), f"Thresholds, by {by.text}"))
        if by.sides:
            continue  # a curve is of the groups of columns
        try:
            calibrated = open_frame(calibration_curve(data, **named, group_by=features)).to_polars()
        except ColumnError as error:
            blocks.append(f"Calibration, by {by.text}, is not drawn: {error}")
            continue
        blocks.append(_picture(_enough(calibrated, min_n), f"Calibration, by {by.text}"))
    return [Part("Thresholds and calibration", tuple(blocks))]


def _enough(frame: pl.DataFrame, min_n: int) -> pl.DataFrame:
    return frame.filter(pl.col(".n") >= min_n)


def _left_out(results: pl.DataFrame, groups: pl.DataFrame, min_n: int) -> tuple[Any, ...]:
    """Which values there are not, and why."""
    keys = [".metric", ".by", ".group", ".n", ".denominator", ".status"]
    without = _enough(groups.filter(pl.col(".status") != "ok").select(keys), min_n)
    left = pl.col(".groups_left_out")
    apart = results.filter(left.list.len() > 0).select(".metric", ".by", left.alias("groups left out"))
    blocks = list[Any]()
    if not without.is_empty():
        blocks += ["Values of groups that are not defined:", Shown(one_below_the_other(without))]
    if not apart.is_empty():
        blocks += ["Groups that a disparity is not taken over:", Shown(one_below_the_other(apart))]
    return tuple(blocks) or ("Nothing: every group has every value.",)


def _definitions(audit: Audit) -> Shown:
    """What each number means, where it should go, and between what it lies."""
    rows = [(each.name, _meaning(each)) for each in audit.results]
    ends = [f"{low:g} to {high:g}" for low, high in (each.range for each in audit.results)]
    wishes = {"maximize": "high", "minimize": "low", "zero": "near 0", "one": "near 1"}
    # how many are selected, or have the event, is neither good nor bad
    better = [
        wishes[each.direction] if isinstance(each, GroupwiseMetric) or len(each.definition.reads) > 1 else None
        for each in audit.results
    ]
    table = pl.DataFrame(rows, schema=["name", "meaning"], orient="row")
    return Shown(table.with_columns(range=pl.Series(ends), better=pl.Series(better, dtype=pl.String)))


def _meaning(metric: Metric | GroupwiseMetric) -> str:
    if isinstance(metric, GroupwiseMetric):
        return f"{metric.bound!r} of {listed(each.name for each in metric.metrics)}, by {metric.by.text}"
    return inspect.cleandoc(metric.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def again(code: str) -> Part:
    """The call, and the versions that it ran with."""
    used = ", ".join(f"{name} {version(name)}" for name in ("tidyfair", "polars", "narwhals", "numpy"))
    return Part("How to do this again", (Code(code), f"Made with {used}, on Python {python_version()}."))


def _call(truth: object, estimate: object, call: Mapping[str, Any]) -> str:
    """The call as it was made."""
    # what has no words in Python stands for itself
    named = "".join(
        f", {name}={name if isinstance(value, Metric | GroupwiseMetric | MetricSet | Gate) else repr(value)}"
        for name, value in call.items() if value is not None
    )  # fmt: skip
    return f"import tidyfair\n\ntidyfair.report(data, {truth!r}, {estimate!r}{named})"


def _is_plain(tally: Tally, results: pl.DataFrame) -> bool:
    """Whether rows count alike and have two labels, so that rates can be tested exactly."""
    return set(results[".estimator"]) == {"binary"} and tally.weights is None and not tally.needs.numbers


def _tested(audit: Audit, data: Any, asked: Mapping[str, Any]) -> pl.DataFrame | None:
    """What groups that are equal show, where that is worked out exactly."""
    rates = [each for each in audit.parities if each.kind == "class"]
    return open_frame(disparity_test(*rates)(data, **asked)).to_polars() if rates else None


def _worst(audit: Audit, data: Any, asked: Mapping[str, Any]) -> pl.DataFrame | None:
    """How sure it is which groups are the worst, by the rates that have a good side."""
    of_errors = frozenset({"truth", "estimate"})
    judged = [
        each for each in audit.groups
        if isinstance(each, GroupwiseMetric) and all(
            share_of(metric.definition) and metric.definition.reads == of_errors for metric in each.metrics
        )
    ]  # fmt: skip
    known = {metric.name for metric in audit.results if isinstance(metric, Metric)}
    judged = [each for each in judged if {metric.name for metric in each.metrics} <= known]
    return open_frame(worst_groups(*judged)(data, **asked)).to_polars() if judged else None


_STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #222; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.8rem; line-height: 1.2; }
h2 { font-size: 1.3rem; margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
.table { overflow-x: auto; margin: 1rem 0; }
figure { margin: 1.5rem 0; }
img { max-width: 100%; height: auto; }
pre { overflow-x: auto; background: #f4f4f4; padding: 0.8rem; }
@media print { section { break-inside: avoid; } }
"""

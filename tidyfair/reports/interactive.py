"""The part of a report that a reader can work: rates of groups and their differences at a threshold of their choice.

It carries values of groups, never rows, and opens without a network: the libraries that draw are part of the page, and
its policy lets a browser run nothing else. What depends on data is JSON; the scripts are the same in every report.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import polars as pl

from tidyfair.audits import AuditResults, differences
from tidyfair.calling import Metric, metric_set
from tidyfair.errors import Status
from tidyfair.escapes import visible
from tidyfair.intervals import share_of
from tidyfair.metrics import title_of
from tidyfair.metrics.classification import precision, selection_rate, sens, spec
from tidyfair.reports.blocks import Content, prose
from tidyfair.reports.findings import feature_in_words, group_in_words, names_of_groups, percent
from tidyfair.reports.sections import thresholds_of
from tidyfair.reports.theme import text_of_file
from tidyfair.specs import By
from tidyfair.tallies import open_frame

_INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
"""Thresholds that JSON has no numbers for, as scripts read them."""
_DIGITS = 4
_ALL_ROWS = "all rows"
_NAME, _NTH = "\0name", "\0nth"
"""Internal columns."""
_VALUE_OPTIONS = (
    "truth", "probs", "pos_label", "labels", "case_weights", "frequency_weights", "cluster", "na_rm", "conf_level",
)  # fmt: skip
"""The options of a report that values at thresholds depend on."""
_MOST_GROUPS = 40
"""The most groups of a feature that are shown; the largest ones."""


@dataclass(frozen=True)
class Explorer:
    """Values of groups, by feature, metric and threshold, with controls to look through them."""

    note: str
    """A sentence on what is shown, and what is left out."""
    data: dict[str, Any]
    """Names of features, groups and metrics, thresholds, and values by their numbers among these, in columns."""

    def html(self, name: str) -> str:
        """The controls, the places of the charts, the data and the scripts."""
        # a closing tag in a name would end the script
        data = json.dumps(self.data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        return (
            f"<h2>Explore the groups</h2>\n<p>{prose(self.note)}</p>\n"
            f'<div class="explorer" id="{name}">\n<form class="controls" aria-label="Choose what is shown"></form>\n'
            '<div class="charts" role="figure" aria-live="polite"></div>\n'
            "<noscript><p>This part needs JavaScript. It runs on your machine only.</p></noscript>\n</div>\n"
            f'<script type="application/json" class="explorer-data">{data}</script>\n'
            + "".join(f"<script>{script}</script>\n" for script in scripts())
        )

    def markdown(self) -> str:
        """Nothing: Markdown files have no controls."""
        return ""


@cache
def scripts() -> tuple[str, str]:
    """The libraries that draw charts, and the script that ties controls to them."""
    import vl_convert  # noqa: PLC0415 - only where such reports are made

    # all of it, without a snippet
    bundle = str(cast("Any", vl_convert).javascript_bundle())
    return bundle.replace("</script", "<\\/script"), text_of_file("explorer.js")


def script_policy() -> str:
    """The part of a content security policy that lets these scripts run, and no others."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts()]
    return "script-src " + " ".join(f"'sha256-{digest}'" for digest in digests)


def explorer_of(
    audit: AuditResults, groups: pl.DataFrame, data: Any, call: Mapping[str, Any], first: By
) -> list[Content]:
    """The explorer of an audit: at each threshold where there are scores, else of the labels as they are.

    It opens with the feature `first`.
    """
    metrics = [metric for metric in audit.metrics.groups if isinstance(metric, Metric)]
    # of scores alone, those that thresholds would have
    rates = list(filter(_is_rate_of_predictions, metrics)) or [selection_rate, sens, spec, precision]
    start, min_n = call.get("threshold"), audit.policy.min_n
    note = f"Groups of fewer than {min_n} rows are not shown." if min_n else ""
    tally, features = audit.tally, audit.metrics.bys
    compared = metric_set(*rates, *differences(rates, features))
    if tally.scores is not None and not tally.scores.several:
        own = {float(start)} if isinstance(start, int | float) else set[float]()
        options = _options_at_thresholds(audit, call, own)
        groups = open_frame(compared.by_group(data, **options)).to_polars()
        gaps = open_frame(compared(data, **options)).to_polars()
        note = f"Rows whose score is at or above the threshold are selected. {note}"
        if not own:
            about = "scores" if tally.estimate is None else "decisions as they were made"
            note += f" The rest of this report is about the {about}, not about one threshold."
    elif all(rate in metrics for rate in rates):
        gaps = compared.compute(tally, **audit.reading)
    else:
        return []
    if audit.level is not None:
        note += f" Lines show {percent(audit.level)} confidence intervals."
    values = groups.filter(pl.col(".metric").is_in([rate.name for rate in rates]))
    bys = [first, *(by for by in features if by != first)]
    made = explorer(values, bys, min_n=min_n, start=start, note=note, gaps=gaps)
    return [] if made is None else [made]


def _options_at_thresholds(audit: AuditResults, call: Mapping[str, Any], own: set[float]) -> dict[str, Any]:
    """The options of values at thresholds, those of the call among them."""
    options = {name: call[name] for name in _VALUE_OPTIONS if name in call}
    interval = "auto" if audit.level is not None else None
    thresholds = sorted({*thresholds_of(audit.tally), *own})
    return {**options, "threshold": thresholds, "interval": interval, "on_undefined": "ignore"}


def _is_rate_of_predictions(metric: Metric) -> bool:
    """True for shares of rows that depend on the predictions."""
    return metric.definition.reads != frozenset({"truth"}) and share_of(metric.definition) is not None


def explorer(
    values: pl.DataFrame, bys: Sequence[By], *, min_n: int, start: object = None, note: str = "",
    gaps: pl.DataFrame | None = None,
) -> Explorer | None:  # fmt: skip
    """The explorer of values of groups, as `by_group` gives them; None where there is nothing to show.

    Groups of fewer rows than `min_n` are left out of the data too. `start` is the threshold that is shown first, `note`
    a paragraph above the controls, and `gaps` the differences between the highest and the lowest group of metrics.
    """
    shown = values.filter(pl.col(".by").is_null() | (pl.col(".n") >= min_n))
    shown = _completed(shown)
    gaps = shown.clear() if gaps is None else _completed(gaps)
    metrics = shown[".metric"].unique(maintain_order=True).to_list()
    thresholds = shown[".threshold"].drop_nulls().unique().sort().to_list()
    overall = shown.filter(pl.col(".by").is_null()).with_columns(pl.lit(None, pl.String).alias(_NAME))
    features: list[str] = []
    groups: list[list[str]] = []
    parts: list[pl.DataFrame] = []
    gap_parts: list[pl.DataFrame] = []
    apart: list[list[int]] = []
    for by in bys:
        feature_values = shown.filter(pl.col(".by") == by.text)
        if feature_values.is_empty():
            continue
        if feature_values[".group"].n_unique() > _MOST_GROUPS:
            note += f" Of {feature_in_words(by)}, the {_MOST_GROUPS} largest groups are shown."
        largest = _largest(feature_values)
        texts = largest[_NAME].unique(maintain_order=True).to_list()
        parts.append(_numbered(pl.concat([overall, largest]), len(features), texts, metrics, thresholds))
        gaps_of_feature = gaps.filter((pl.col(".by") == by.text) & pl.col(".metric").is_in(metrics))
        gap_parts.append(gaps_of_feature.select(_numbers(len(features), metrics, thresholds)))
        features.append(visible(feature_in_words(by)))
        names = names_of_groups(by, feature_values)
        unknown = set(largest.filter(pl.col(".status") == Status.UNKNOWN.value)[_NAME])
        apart.append([number for number, text in enumerate(texts, 1) if text in unknown])
        groups.append([_ALL_ROWS, *(visible(names.get(text) or group_in_words(by, text)) for text in texts)])
    if not features:
        return None
    wanted = start if isinstance(start, int | float) else 0.5
    # thresholds may be infinite, as what is wanted
    distances = [0.0 if threshold == wanted else abs(threshold - wanted) for threshold in thresholds]
    data = {
        "features": features,
        "metrics": [visible(title_of(metric).partition(" (")[0]) for metric in metrics],
        "groups": groups,
        "apart": apart,
        "thresholds": [_INFINITE.get(at, at) for at in thresholds],
        "start": distances.index(min(distances)) if distances else 0,
        "values": pl.concat(parts).to_dict(as_series=False),
        "gaps": pl.concat(gap_parts).to_dict(as_series=False),
    }
    return Explorer(note.strip(), data)


def _largest(feature_values: pl.DataFrame) -> pl.DataFrame:
    """The largest groups of a feature, in their order, with texts that no two groups share."""
    nth = pl.int_range(pl.len()).over(".metric", ".group", ".threshold")
    name = pl.when(pl.col(_NTH) > 0).then(pl.format("{} [{}]", ".group", pl.col(_NTH) + 1)).otherwise(".group")
    named = feature_values.with_columns(nth.alias(_NTH)).with_columns(name.alias(_NAME)).drop(_NTH)
    sizes = named.group_by(_NAME).agg(pl.col(".n").max())
    largest = sizes.sort(".n", descending=True).head(_MOST_GROUPS)[_NAME]
    return named.filter(pl.col(_NAME).is_in(largest.implode()))


def _numbered(
    values: pl.DataFrame, feature: int, groups: list[str], metrics: list[str], thresholds: list[float]
) -> pl.DataFrame:
    """Values with the numbers of their feature, group, metric and threshold; all rows together are group 0."""
    number, *others = _numbers(feature, metrics, thresholds)
    group = _number_among([None, *groups], _NAME).alias("group")
    return values.select(number, group, *others, pl.col(".denominator").alias("out_of"), pl.col(".n").alias("rows"))


def _numbers(feature: int, metrics: list[str], thresholds: list[float]) -> list[pl.Expr]:
    """The numbers of a feature, a metric and a threshold, and a value with its limits."""
    values = [pl.col(f".{name}").round(_DIGITS).alias(name) for name in ("estimate", "lower", "upper")]
    return [
        pl.lit(feature).alias("feature"),
        _number_among(metrics, ".metric").alias("metric"),
        _number_among(thresholds or [None], ".threshold").alias("threshold"),
        *values,
    ]


def _completed(values: pl.DataFrame) -> pl.DataFrame:
    """Values with columns of thresholds and limits, which are null where they have none."""
    missing = [name for name in (".threshold", ".lower", ".upper") if name not in values.columns]
    return values.with_columns(pl.lit(None, pl.Float64).alias(name) for name in missing)


def _number_among(known: Sequence[object], column: str) -> pl.Expr:
    """The numbers of the values of a column in a list."""
    return pl.col(column).replace_strict(known, range(len(known)), return_dtype=pl.Int64)

"""The part of a report that a reader can work: rates of groups and their differences at a threshold of their choice.

It carries values of groups, never rows, and opens without a network: the libraries that draw are part of the page, and
its policy lets a browser run nothing else. What depends on data is JSON; the scripts are the same in every report.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.escapes import visible

if TYPE_CHECKING:
    from collections.abc import Callable

__all__: list[str] = []

_DIGITS = 4
_ALL_ROWS = "all rows"
_MOST_GROUPS = 40
"""The most groups of a feature that are shown; the largest ones."""


@dataclass(frozen=True)
class Explorer:
    """Values of groups, by feature, metric and threshold, with controls to look through them."""

    data: dict[str, Any]
    """Names of features, groups and metrics, thresholds, and rows of places among these with values."""

    def html(self, name: str) -> str:
        """The controls, the places of the charts, the data and the scripts."""
        # a closing tag in a name would end the script
        data = json.dumps(self.data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        return (
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

    bundle: str = vl_convert.javascript_bundle()  # pyright: ignore[reportCallIssue] - all of it, without a snippet
    return bundle.replace("</script", "<\\/script"), _text_of("explorer.js")


def script_policy() -> str:
    """The part of a content security policy that lets these scripts run, and no others."""
    hashes: list[str] = []
    for script in scripts():
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        hashes.append(f"'sha256-{digest}'")
    return f"script-src {' '.join(hashes)}"


def explorer(
    values: pl.DataFrame, *, min_n: int, start: float | None = None, title_of: Callable[[str], str] | None = None
) -> Explorer | None:
    """The explorer of values of groups, as `by_group` gives them; None where there is nothing to show.

    Args:
        values: Values with `.metric`, `.by`, `.group`, `.estimate`, `.lower`, `.upper`, `.n` and `.denominator`, at
            each `.threshold` where there are several. Rows without `.by` are of all rows.
        min_n: Groups of fewer rows are left out of the data too.
        start: The threshold that is shown first.
        title_of: The name of a metric for readers.
    """
    shown = values.filter(pl.col(".by").is_null() | (pl.col(".n") >= min_n))
    if ".threshold" not in shown.columns:
        shown = shown.with_columns(pl.lit(None, pl.Float64).alias(".threshold"))
    features = shown[".by"].drop_nulls().unique(maintain_order=True).to_list()
    metrics = shown[".metric"].unique(maintain_order=True).to_list()
    thresholds = shown[".threshold"].drop_nulls().unique().sort().to_list()
    if not features or not metrics:
        return None
    groups: list[list[str]] = []
    rows: list[list[Any]] = []
    for number, feature in enumerate(features):
        of_feature = _largest(shown.filter(pl.col(".by") == feature))
        texts = of_feature["group"].unique(maintain_order=True).to_list()
        groups.append([_ALL_ROWS, *map(visible, texts)])
        both = pl.concat(
            [shown.filter(pl.col(".by").is_null()).with_columns(group=pl.lit(None, pl.String)), of_feature]
        )
        rows += _rows(both, number, texts, metrics, thresholds)
    nearest = 0
    if thresholds:
        wanted = 0.5 if start is None else start
        nearest = min(range(len(thresholds)), key=lambda index: abs(thresholds[index] - wanted))
    data = {
        "features": [visible(feature.replace(":", " and ")) for feature in features],
        "metrics": [title_of(metric) if title_of else metric for metric in metrics],
        "groups": groups,
        "thresholds": thresholds,
        "start": nearest,
        "rows": rows,
    }
    return Explorer(data)


def _largest(of_feature: pl.DataFrame) -> pl.DataFrame:
    """The largest groups of a feature, in their order, with texts that no two groups share."""
    of_feature = of_feature.with_columns(
        pl.int_range(pl.len()).over(".metric", ".group", ".threshold").alias("nth"),
    ).with_columns(
        pl.when(pl.col("nth") > 0)
        .then(pl.format("{} [{}]", ".group", pl.col("nth") + 1))
        .otherwise(".group")
        .alias("group")
    )
    sizes = of_feature.group_by("group").agg(pl.col(".n").max())
    kept = sizes.sort(".n", descending=True).head(_MOST_GROUPS)["group"]
    return of_feature.filter(pl.col("group").is_in(kept.implode())).drop("nth")


def _rows(
    values: pl.DataFrame, feature: int, groups: list[str], metrics: list[str], thresholds: list[float]
) -> list[list[Any]]:
    """Places of feature, group, metric and threshold, then the value, its ends, the rows and those that count."""
    place_of_group = {text: number for number, text in enumerate(groups, start=1)}
    place_of_metric = {metric: number for number, metric in enumerate(metrics)}
    place_of_threshold = {threshold: number for number, threshold in enumerate(thresholds)}
    rows: list[list[Any]] = []
    columns = ["group", ".metric", ".threshold", ".estimate", ".lower", ".upper", ".n", ".denominator"]
    for group, metric, threshold, value, lower, upper, n, denominator in values.select(columns).rows():
        ends = [None if number is None else round(number, _DIGITS) for number in (value, lower, upper)]
        place = place_of_group.get(group, 0)
        rows.append(
            [feature, place, place_of_metric[metric], place_of_threshold.get(threshold, 0), *ends, n, denominator]
        )
    return rows


def style() -> str:
    """Styles of the controls, beside those of the page, which defines the colours."""
    return _text_of("explorer.css")


def _text_of(name: str) -> str:
    """The text of a file beside this module."""
    return files("tidyfair.reports").joinpath(name).read_text("utf-8")

"""The pictures of the pages: `python docs/pictures.py` draws them again, for light and dark pages, and for phones.

It needs altair and vl-convert-python. Those of the gallery are made by the code of its page, and follow the page.
A file whose name ends in `-narrow` is what phones show in place of the other: `assets/examples.js` has the width.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import tidyfair as tdf
from tidyfair.datasets import lending
from tidyfair.reports.svg import themed_svg
from tidyfair.reports.theme import DARK, variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GALLERY = Path(__file__).parent / "pages" / "gallery"
_CODE_OR_PICTURE = re.compile(
    r"^```pycon\n(.*?)^```|^!\[[^\]]*\]\(gallery/([\w-]+)\.svg#only-light\)", re.MULTILINE | re.DOTALL
)
FOLDER = Path(__file__).parent / "pages" / "pictures"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
WIDTHS = {"": 620, "-narrow": 290}
"""The widths of panels by the end of the name of a file."""
GALLERY_WIDTHS = {"": 720, "-narrow": 350}
"""Those of whole pictures of the gallery, whose code has the first one."""
THEMES = {
    "": {"ink": "#1b1f24", "muted": "#667080", "rule": "#dfe3e8"},
    "-dark": {"ink": "#e8eaed", "muted": "#9aa4b2", "rule": "#343a42"},
}
"""The colors of text and lines by the end of the name of a file."""


def ranges_by_chance(width: int) -> Any:
    """Ranges of six equal groups of 100 rows with a rate of 0.4."""
    import altair as alt  # noqa: PLC0415 - only where pictures are drawn

    hits = np.random.default_rng(1).binomial(100, 0.4, (100_000, 6))
    found = pl.Series("range", np.ptp(hits, axis=1) / 100).value_counts(normalize=True, name="share").sort("range")
    bars = alt.Chart(found.with_columns(large=pl.col("range") > 0.1)).mark_bar(size=width / 52).encode(
        x=alt.X("range:Q", title="largest rate minus smallest rate", scale=alt.Scale(domain=[0, 0.35])),
        y=alt.Y("share:Q", title="share of fair models", axis=alt.Axis(format="%")),
        color=alt.Color("large:N", scale=alt.Scale(domain=[False, True], range=[GREY, ORANGE]), legend=None),
    )  # fmt: skip
    title = "Two of three fair models look more than 0.1 unfair"
    return bars.properties(width=width, height=200, title=_lines(title, width))


def disparities_beside_chance(width: int) -> Any:
    """Disparities of the lending data: as they are, how sure that is, and what equal groups would show."""
    import altair as alt  # noqa: PLC0415 - only where pictures are drawn

    loans, call = lending(), {"estimate": "approved", "pos_label": "yes"}
    asked = {
        "race": tdf.demographic_parity("race"),
        "race, n ≥ 100": tdf.demographic_parity("race", min_n=100),
        "sex": tdf.demographic_parity("sex"),
    }
    rows: list[dict[str, Any]] = []
    for name, metric in asked.items():
        sure = metric(loans, **call, interval="auto", on_undefined="ignore").row(0, named=True)
        tested = tdf.inference.disparity_test(metric)(loans, **call).row(0, named=True)
        rows.append(
            {
                "compared": name, "estimate": sure[".estimate"], "lower": sure[".lower"], "upper": sure[".upper"],
                "from": tested[".expected_lower"], "to": tested[".expected_upper"],
            }
        )  # fmt: skip
    table = pl.DataFrame(rows)
    labels = 160 if width == WIDTHS[""] else 100
    about = alt.Y(
        "compared:N",
        title=None,
        sort=list(asked),
        axis=alt.Axis(minExtent=64, labelExpr="split(datum.label, ', ')"),
    )
    chance = alt.Chart(table).mark_bar(color=GREY, opacity=0.4, height=22).encode(
        x=alt.X(
            "from:Q", title="difference of selection rates", scale=alt.Scale(domain=[0, 0.25]),
            axis=alt.Axis(tickCount=max(3, width // 120)),
        ),
        x2="to:Q", y=about,
    )  # fmt: skip
    sure_of = alt.Chart(table).mark_rule(color=BLUE, size=3).encode(x="lower:Q", x2="upper:Q", y=about)
    found = alt.Chart(table).mark_point(color=BLUE, filled=True, size=90).encode(x="estimate:Q", y=about)
    title = {
        "text": _lines("95% intervals (blue) beside what equal groups show (gray)", width),
        "subtitle": _lines("Outside the gray, groups differ by more than chance", width),
    }
    return (chance + sure_of + found).properties(width=width - labels, height=150, title=title)


def worst_of_equals(width: int) -> Any:
    """What the lowest of six equal groups shows, by their number of rows."""
    import altair as alt  # noqa: PLC0415 - only where pictures are drawn

    random, sizes = np.random.default_rng(1), [10, 20, 33, 60, 100, 200, 400, 1000]
    lowest = [float((random.binomial(size, 0.7, (20_000, 6)).min(axis=1) / size).mean()) for size in sizes]
    table = pl.DataFrame({"rows": sizes, "rate": lowest})
    line = alt.Chart(table).mark_line(color=ORANGE, point=alt.OverlayMarkDef(color=ORANGE)).encode(
        x=alt.X("rows:Q", scale=alt.Scale(type="log"), title="rows of each group"),
        y=alt.Y("rate:Q", scale=alt.Scale(domain=[0.4, 0.75]), title="rate of the lowest of six"),
    )  # fmt: skip
    truth = (
        alt.Chart(pl.DataFrame({"rate": [0.7]}))
        .mark_rule(color=GREY, strokeDash=[4, 4])
        .encode(y=alt.Y("rate:Q", scale=alt.Scale(domain=[0.4, 0.75])))
    )
    title = "All have a rate of 0.7; the worst-looking one shows less"
    return (truth + line).properties(width=width, height=200, title=_lines(title, width))


def few_labels(width: int) -> Any:
    """Intervals of an accuracy by labels of people alone, and with those of a judge, by the number of labels."""
    import altair as alt  # noqa: PLC0415 - only where pictures are drawn

    random, size = np.random.default_rng(3), 4_000
    toxic = random.random(size) < 0.4
    rows = pl.DataFrame({
        "judge": np.where(random.random(size) < 0.9, toxic, ~toxic),
        "flagged": np.where(random.random(size) < 0.8, toxic, ~toxic),
    })  # fmt: skip
    sources: dict[str, dict[str, Any]] = {"people alone": {}, "people and judge": {"judged": "judge"}}
    parts: list[pl.DataFrame] = []
    for labels in (50, 100, 200, 400, 800):
        gold = pl.when(pl.int_range(pl.len()) < labels).then(pl.Series(toxic)).alias("gold")
        for name, options in sources.items():
            result = tdf.accuracy(rows.with_columns(gold), "gold", "flagged", interval="auto", **options)
            limits = result.select(lower=".lower", upper=".upper", value=".estimate")
            parts.append(limits.with_columns(labels=pl.lit(labels), source=pl.lit(name)))
    table, colours = pl.concat(parts), alt.Scale(domain=[*sources], range=[GREY, BLUE])
    labels = alt.X("labels:O", title="labels by people, of 4,000 rows", axis=alt.Axis(labelAngle=0))
    offset, color = alt.XOffset("source:N", sort=[*sources]), alt.Color("source:N", scale=colours, title=None)
    color = color.legend(orient="top")
    rules = alt.Chart(table).mark_rule(size=3).encode(
        x=labels, xOffset=offset, color=color, y2="upper:Q",
        y=alt.Y("lower:Q", title="accuracy, with its 95% interval", scale=alt.Scale(zero=False)),
    )  # fmt: skip
    points = (
        alt.Chart(table).mark_point(filled=True, size=50).encode(x=labels, xOffset=offset, color=color, y="value:Q")
    )
    return (rules + points).properties(width=width, height=220, title=_lines("A judge makes labels go further", width))


def _lines(title: str, width: int) -> list[str]:
    """A title in lines that fit above a panel."""
    return wrap(title, int(width / 10.5))


PICTURES: dict[str, Callable[[int], Any]] = {
    "ranges_by_chance": ranges_by_chance, "disparities_beside_chance": disparities_beside_chance,
    "worst_of_equals": worst_of_equals, "few_labels": few_labels,
}  # fmt: skip


def themed(chart: Any, ink: str, muted: str, rule: str) -> Any:
    """A chart without a background, in the colors of a page."""
    titles = {
        "titleColor": ink,
        "titleFontWeight": "normal",
        "labelColor": muted,
        "labelFontSize": 12,
        "titleFontSize": 12,
    }
    # fonts of readers may be larger than those that letters are measured with here
    space = {"left": 2, "right": 8, "top": 4, "bottom": 8}
    return chart.configure(
        background="transparent", font="system-ui, sans-serif", padding=space
    ).configure_axis(
        **titles, labelOverlap=True, gridColor=rule, domainColor=rule, tickColor=rule
    ).configure_title(
        color=ink, subtitleColor=muted, anchor="start", fontSize=15, fontWeight=600, subtitleFontSize=13, offset=12
    ).configure_legend(labelColor=ink, labelFontSize=12).configure_view(stroke=None)  # fmt: skip


def svg_of_two_themes(chart: Any) -> str:
    """An SVG file that is light, or dark where its address ends in `#only-dark`."""
    start, _, rest = themed_svg(chart, "only-dark").partition(">")
    return f'{start} id="only-dark"><style>#only-dark:target {{ {variables(DARK)} }}</style>{rest}'


def gallery(end: str = "") -> Iterator[tuple[str, Any]]:
    """The names of the pictures of the gallery, and the charts that the code above them makes, at one of the widths."""
    names: dict[str, Any] = {}
    page = GALLERY.with_suffix(".md").read_text("utf-8")
    page = page.replace(f"width={GALLERY_WIDTHS['']}", f"width={GALLERY_WIDTHS[end]}")
    for match in _CODE_OR_PICTURE.finditer(page):
        code, picture = match.groups()
        if picture:
            yield picture, names.pop("chart")
        else:
            exec(re.sub(r"^(>>>|\.\.\.) ?", "", code, flags=re.MULTILINE), names)  # noqa: S102 - the code of the page


def example_report(*, interactive: bool) -> tdf.types.Report:
    """The report of the lending data that pages link to, static or interactive."""
    parity = tdf.metric_set(tdf.demographic_parity("sex"), tdf.demographic_parity("race"))
    return tdf.report(
        lending(), "repaid", "approved", by=["sex", "race", ("sex", "race")], pos_label="yes",
        gate=tdf.check(parity, below=0.1), title="Audit of decisions on loans", model="Example model",
        dataset="5,000 simulated loans", date="2026", interactive=interactive,
    )  # fmt: skip


if __name__ == "__main__":
    for name, interactive in (("report", False), ("interactive-report", True)):
        example_report(interactive=interactive).save(FOLDER.parent / "assets" / f"{name}.html")
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        for narrow, width in WIDTHS.items():
            for theme, colours in THEMES.items():
                themed(draw(width), **colours).save(FOLDER / f"{name}{narrow}{theme}.svg")
    GALLERY.mkdir(exist_ok=True)
    for end in GALLERY_WIDTHS:
        for name, chart in gallery(end):
            (GALLERY / f"{name}{end}.svg").write_text(svg_of_two_themes(chart) + "\n", "utf-8")

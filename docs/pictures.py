"""The pictures of the pages: `python docs/pictures.py` draws them again. It needs altair and vl-convert-python.

Those of the gallery are made by the code of its page, and follow the page, light or dark.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import tidyfair as tdf
from tidyfair.datasets import lending
from tidyfair.reports.svg import svg_of_two_themes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GALLERY = Path(__file__).parent / "pages" / "gallery"
_CODE_OR_PICTURE = re.compile(
    r"^```python\n(.*?)^```|^!\[[^\]]*\]\(gallery/([\w-]+)\.svg#only-light\)", re.MULTILINE | re.DOTALL
)
FOLDER = Path(__file__).parent / "pages" / "pictures"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
WIDTH = 520


def ranges_by_chance() -> Any:
    """Ranges of six equal groups of 100 rows with a rate of 0.4."""
    import altair as alt  # noqa: PLC0415 - only where pictures are drawn

    hits = np.random.default_rng(1).binomial(100, 0.4, (100_000, 6))
    found = pl.Series("range", np.ptp(hits, axis=1) / 100).value_counts(normalize=True, name="share").sort("range")
    bars = alt.Chart(found.with_columns(large=pl.col("range") > 0.1)).mark_bar(size=12).encode(
        x=alt.X("range:Q", title="largest rate less smallest rate", scale=alt.Scale(domain=[0, 0.35])),
        y=alt.Y("share:Q", title="share of fair models", axis=alt.Axis(format="%")),
        color=alt.Color("large:N", scale=alt.Scale(domain=[False, True], range=[GREY, ORANGE]), legend=None),
    )  # fmt: skip
    title = "Six groups with the same rate: two models of three look more than 0.1 unfair"
    return bars.properties(width=WIDTH, height=200, title=title)


def disparities_beside_chance() -> Any:
    """Disparities of the lending data: as they are, how sure that is, and what equal groups would show."""
    import altair as alt  # noqa: PLC0415 - only where pictures are drawn

    loans, call = lending(), {"estimate": "approved", "pos_label": "yes"}
    asked = {
        "race": tdf.demographic_parity("race"),
        "race, groups of 100 and more": tdf.demographic_parity("race", min_n=100),
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
    about = alt.Y("compared:N", title=None, sort=list(asked), axis=alt.Axis(labelLimit=220))
    chance = alt.Chart(table).mark_bar(color=GREY, opacity=0.4, height=22).encode(
        x=alt.X("from:Q", title="difference of selection rates", scale=alt.Scale(domain=[0, 0.25])), x2="to:Q", y=about
    )  # fmt: skip
    sure_of = alt.Chart(table).mark_rule(color=BLUE, size=3).encode(x="lower:Q", x2="upper:Q", y=about)
    found = alt.Chart(table).mark_point(color=BLUE, filled=True, size=90).encode(x="estimate:Q", y=about)
    title = {
        "text": "A disparity, its 95 % interval (blue), and what equal groups show (grey)",
        "subtitle": "Where the point leaves the grey, groups differ by more than chance",
    }
    return (chance + sure_of + found).properties(width=WIDTH - 160, height=150, title=title)


def worst_of_equals() -> Any:
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
    title = "All six have a rate of 0.7; the one that looks worst shows less"
    return (truth + line).properties(width=WIDTH, height=200, title=title)


PICTURES: dict[str, Callable[[], Any]] = {
    "ranges_by_chance": ranges_by_chance, "disparities_beside_chance": disparities_beside_chance,
    "worst_of_equals": worst_of_equals,
}  # fmt: skip


def gallery() -> Iterator[tuple[str, Any]]:
    """The names of the pictures of the gallery, and the charts that the code above them makes."""
    names: dict[str, Any] = {}
    page = GALLERY.with_suffix(".md").read_text("utf-8")
    for match in _CODE_OR_PICTURE.finditer(page):
        code, picture = match.groups()
        if picture:
            yield picture, names.pop("chart")
        else:
            exec(re.sub(r"^(>>>|\.\.\.) ?", "", code, flags=re.MULTILINE), names)  # noqa: S102 - the code of the page


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        draw().save(FOLDER / f"{name}.svg")
    GALLERY.mkdir(exist_ok=True)
    for name, chart in gallery():
        (GALLERY / f"{name}.svg").write_text(svg_of_two_themes(chart) + "\n", "utf-8")

from __future__ import annotations

import re
from collections import Counter

import pytest
from conftest import DOCS, script

import tidyfair as tf

PAGES = DOCS / "pages"
KINDS = ["curves", "dependence", "fairness", "individuals", "inequality", "labels", "numbers", "scores"]
METRICS = [f"metrics/{kind}.md" for kind in KINDS]
WRITTEN = [
    *(
        f"coming-from/{library}.md"
        for library in ("aif360", "allennlp", "fairlearn", "sklego", "torchmetrics", "yardstick")
    ),
    *METRICS,
]


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return script("catalogue.py").pages()


def committed(page: str) -> str:
    return (PAGES / page).read_text("utf-8")


def names_on(text: str) -> list[str]:
    """What has a heading, a row of a table or a place among aliases."""
    aliases = [name for line in re.findall(r"^Also called (.+)\.$", text, re.MULTILINE) for name in line.split(", ")]
    entries = re.findall(r"^(?:### (\w+)$|\| `(\w+)` \|)", text, re.MULTILINE)
    return [heading or row for heading, row in entries] + [alias.strip("`") for alias in aliases]


@pytest.mark.parametrize("page", WRITTEN)
def test_pages_are_what_the_script_writes(page: str, written: dict[str, str]) -> None:
    assert committed(page) == written[page], "run `python docs/catalogue.py`"


def test_there_are_no_other_pages(written: dict[str, str]) -> None:
    there = [
        str(path.relative_to(PAGES)) for folder in ("coming-from", "metrics") for path in (PAGES / folder).iterdir()
    ]
    assert sorted(written) == sorted(there) == WRITTEN


def test_every_metric_factory_and_curve_is_on_one_page() -> None:
    kinds = (tf.Metric, tf.GroupwiseFactory, tf.Curve)
    public = {name for name, value in vars(tf).items() if isinstance(value, kinds) or name.endswith("_curve")}
    public.add("consistency")
    on_pages = Counter(name for page in METRICS for name in names_on(committed(page)))
    assert set(on_pages) == public
    assert set(on_pages.values()) == {1}


@pytest.mark.parametrize("page", METRICS)
def test_links_lead_somewhere_and_nothing_is_left_to_do(page: str) -> None:
    text = committed(page)
    assert "TODO" not in text
    for target, heading in re.findall(r"\]\(([\w.]*)#(\w+)\)", text):
        assert f"\n### {heading}\n" in committed(f"metrics/{target}" if target else page)


def test_pictures_are_drawn_by_the_script_and_shown_with_words() -> None:
    pictures, text = script("pictures.py"), committed("inference.md")
    shown = dict(re.findall(r"!\[([^\]]+)\]\(pictures/(\w+)\.svg\)", text))
    assert (
        sorted(shown.values()) == sorted(pictures.PICTURES) == sorted(path.stem for path in pictures.FOLDER.iterdir())
    )
    for name, draw in pictures.PICTURES.items():
        told = draw().to_dict()
        title = told["title"]["text"] if isinstance(told["title"], dict) else told["title"]
        assert title.partition(",")[0] in committed(f"pictures/{name}.svg"), "run `python docs/pictures.py`"

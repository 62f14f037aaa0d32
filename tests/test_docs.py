from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tidyfair as tf

ROOT = Path(__file__).parents[1] / "docs"
PAGES = ["curves.md", "fairness.md", "labels.md", "numbers.md", "scores.md"]


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("docs_catalogue", ROOT / "catalogue.py")
    assert spec
    assert spec.loader
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.pages()


def committed(page: str) -> str:
    return (ROOT / "pages" / "metrics" / page).read_text("utf-8")


def names_on(text: str) -> list[str]:
    """What has a heading, a row of a table or a place among aliases."""
    aliases = [name for line in re.findall(r"^Also called (.+)\.$", text, re.MULTILINE) for name in line.split(", ")]
    entries = re.findall(r"^(?:### (\w+)$|\| `(\w+)` \|)", text, re.MULTILINE)
    return [heading or row for heading, row in entries] + [alias.strip("`") for alias in aliases]


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_what_the_script_writes(page: str, written: dict[str, str]) -> None:
    assert committed(page) == written[page], "run `python docs/catalogue.py`"


def test_there_are_no_other_pages(written: dict[str, str]) -> None:
    assert sorted(written) == sorted(path.name for path in (ROOT / "pages" / "metrics").iterdir()) == PAGES


def test_every_metric_factory_and_curve_is_on_one_page() -> None:
    kinds = (tf.Metric, tf.GroupwiseFactory, tf.Curve)
    public = {name for name, value in vars(tf).items() if isinstance(value, kinds) or name.endswith("_curve")}
    on_pages = Counter(name for page in PAGES for name in names_on(committed(page)))
    assert set(on_pages) == public
    assert set(on_pages.values()) == {1}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_and_nothing_is_left_to_do(page: str) -> None:
    text = committed(page)
    assert "TODO" not in text
    for target, heading in re.findall(r"\]\(([\w.]*)#(\w+)\)", text):
        assert f"\n### {heading}\n" in committed(target or page)

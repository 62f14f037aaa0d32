"""Generated pages are up to date, and links resolve."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from conftest import DOCS, script

import tidyfair as tf
from tidyfair.errors import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = DOCS / "pages"
ROOT = DOCS.parent
LINKING = sorted([ROOT / "README.md", ROOT / ".github" / "CONTRIBUTING.md", *PAGES.rglob("*.md")])
KINDS = ["curves", "dependence", "fairness", "individuals", "inequality", "labels", "numbers", "scores"]
METRICS = [f"metrics/{kind}.md" for kind in KINDS]
WRITTEN = [
    *(
        f"coming-from/{library}.md"
        for library in (
            "aequitas",
            "aif360",
            "allennlp",
            "fairlearn",
            "holisticai",
            "sklego",
            "solasai",
            "torchmetrics",
            "yardstick",
        )
    ),
    *METRICS,
]


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    writer = script("catalogue.py")
    writer.catalogue = cache(writer.catalogue)  # each link looks its metric up in it
    return writer.pages()


def committed(page: str) -> str:
    return (PAGES / page).read_text("utf-8")


def names_on(text: str) -> list[str]:
    """What has a heading, a row of a table or a place among aliases."""
    aliases = [name for line in re.findall(r"^Also called (.+)\.$", text, re.MULTILINE) for name in line.split(", ")]
    entries = re.findall(r"^(?:### (\w+)$|\| `(\w+)` \|)", text, re.MULTILINE)
    return [heading or row for heading, row in entries] + [alias.strip("`") for alias in aliases]


@pytest.mark.parametrize("page", WRITTEN)
def test_generated_pages_are_up_to_date(page: str, written: dict[str, str]) -> None:
    assert committed(page) == written[page], "run `python docs/catalogue.py`"


@pytest.mark.parametrize("page", METRICS)
def test_examples_of_metric_pages_write_the_library_as_tdf(page: str) -> None:
    examples = "\n".join(re.findall(r"^(?:>>>|\.\.\.) (.+)$", committed(page), re.MULTILINE))
    assert "import tidyfair as tdf" in examples
    assert "from tidyfair import" not in examples
    assert "import *" not in examples
    code = re.sub(r'"[^"]*"', "", examples)
    bare = {name for name in tf.__all__ if re.search(rf"(?<![\w.]){name}[(.]", code)}
    assert not bare


def test_guide_shows_the_signature_of_a_call() -> None:
    block = committed("guide.md").partition("```text\nf(")[2].partition("```")[0]
    shown = re.findall(r"(\w+)=([^,)]+)", block)
    parameters = list(inspect.signature(tf.accuracy).parameters.values())[1:]
    assert sorted(name for name, _ in shown) == sorted(parameter.name for parameter in parameters)
    defaults = {parameter.name: parameter.default for parameter in parameters}
    assert {name: ast.literal_eval(text) for name, text in shown} == defaults


def test_generated_folders_hold_no_other_pages(written: dict[str, str]) -> None:
    there = [
        str(path.relative_to(PAGES)) for folder in ("coming-from", "metrics") for path in (PAGES / folder).iterdir()
    ]
    assert sorted(written) == sorted(there) == WRITTEN


def test_every_metric_factory_and_curve_is_on_exactly_one_page() -> None:
    kinds = (tf.Metric, tf.GroupwiseFactory, tf.Curve)
    public = {name for name in tf.__all__ if isinstance(getattr(tf, name), kinds) or name.endswith("_curve")}
    public.add("consistency")
    on_pages = Counter(name for page in METRICS for name in names_on(committed(page)))
    assert set(on_pages) == public
    assert set(on_pages.values()) == {1}


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> set[str]:
    """The headings that can be linked to, as the site and code hosts name them."""
    headings = Counter(_anchor(heading) for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE))
    return {heading for heading, times in headings.items() if times == 1}


def _anchor(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The file and the heading of each link of a page to somewhere in the repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" not in target:
            file, _, heading = target.partition("#")
            yield (page.parent / file).resolve() if file else page, heading


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve_and_no_todo_is_left(page: Path) -> None:
    assert "TODO" not in page.read_text("utf-8")
    lost = [
        f"{file.name}#{heading}"
        for file, heading in links(page)
        if not file.is_file() or (heading and file.suffix == ".md" and heading not in anchors(file))
    ]
    assert lost == []


def test_site_pages_link_within_the_site() -> None:
    out = {file for page in PAGES.rglob("*.md") for file, _ in links(page) if not file.is_relative_to(PAGES)}
    assert out == set()


def test_every_page_is_in_the_navigation_once() -> None:
    site = tomllib.loads((DOCS / "zensical.toml").read_text("utf-8"))

    def placed(entries: list[dict[str, Any]]) -> Iterator[str]:
        for entry in entries:
            for inside in entry.values():
                yield from placed(inside) if isinstance(inside, list) else [inside]

    there = [str(path.relative_to(PAGES)) for path in PAGES.rglob("*.md")]
    assert sorted(placed(site["project"]["nav"])) == sorted(there)


def test_reference_lists_every_other_public_name_once() -> None:
    pages = "\n".join(path.read_text("utf-8") for path in (PAGES / "reference").glob("*.md"))
    in_catalogue = {name for page in METRICS for name in names_on(committed(page))}
    public = {name for name in dir(tf) if not isinstance(getattr(tf, name), ModuleType)}
    public |= {"datasets.lending"} | {f"inference.{name}" for name in tf.inference.__all__ if name not in public}
    referred = Counter(re.findall(r"^::: tidyfair\.([\w.]+)$", pages, re.MULTILINE))
    assert set(referred) == public - in_catalogue
    assert set(referred.values()) == {1}


def test_guide_names_every_status() -> None:
    guide = (PAGES / "guide.md").read_text(encoding="utf-8")
    assert [status.value for status in Status if f"`{status.value}`" not in guide] == []


def test_page_of_simulations_has_a_place_for_every_table() -> None:
    simulated = ["all tables"]
    for module in sorted((ROOT / "tests" / "benchmarks" / "coverage").glob("*.py")):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "TABLES":
                keys = node.value.keys if isinstance(node.value, ast.Dict) else []
                simulated += [str(key.value) for key in keys if isinstance(key, ast.Constant)]
    page = committed("coverage.md")
    marks = re.findall(r"^<!-- (?!end of )(.+) -->$", page, re.MULTILINE)
    assert sorted(marks) == sorted(simulated)
    # tables are written between a pair of marks, and there are no others
    outside = re.sub(r"^<!-- (.+) -->$.*?^<!-- end of \1 -->$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert "<!--" not in outside
    assert "\n|" not in outside


def test_design_page_lists_the_modules_of_every_room() -> None:
    package = Path(tf.__file__).parent
    listed = {
        room: re.findall(r"`(\w+)`", modules)
        for room, modules in re.findall(r"^\| `(\w+)/` \| (`.+?) \| ", committed("design.md"), re.MULTILINE)
    }
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    assert set(listed) == rooms
    for room, modules in listed.items():
        assert sorted(modules) == sorted(path.stem for path in (package / room).glob("[!_]*.py"))
    alone = {path.stem for path in package.glob("[!_]*.py")}
    assert all(f"`{name}.py`" in committed("design.md") for name in alone)


def test_gallery_shows_every_picture_in_both_themes() -> None:
    pictures = script("pictures.py")
    shown = re.findall(
        r"^!\[([^\]]+)\]\(gallery/([\w-]+)\.svg#only-(light|dark)\)$", committed("gallery.md"), re.MULTILINE
    )
    both = [(alt, name, theme) for alt, name, _ in shown[::2] for theme in ("light", "dark")]
    assert shown == both
    files = sorted(pictures.GALLERY.iterdir(), key=lambda file: file.stem)
    assert sorted({name for _, name, _ in shown}) == [file.stem for file in files]
    assert sum(file.stat().st_size for file in files) < 1_500_000
    for name, chart in pictures.gallery():
        written = (pictures.GALLERY / f"{name}.svg").read_text("utf-8")
        title = chart.to_dict(validate=False)["title"]["text"]
        first = title if isinstance(title, str) else title[0]
        assert f">{first}<" in written, "run `python docs/pictures.py`"
        assert "#only-dark:target" in written


def test_pictures_match_the_script_and_have_alt_text() -> None:
    pictures, text = script("pictures.py"), committed("inference.md")
    shown = dict(re.findall(r"!\[([^\]]+)\]\(pictures/(\w+)\.svg\)", text))
    assert (
        sorted(shown.values()) == sorted(pictures.PICTURES) == sorted(path.stem for path in pictures.FOLDER.iterdir())
    )
    for name, draw in pictures.PICTURES.items():
        result = draw().to_dict()
        title = result["title"]["text"] if isinstance(result["title"], dict) else result["title"]
        assert title.partition(",")[0] in committed(f"pictures/{name}.svg"), "run `python docs/pictures.py`"

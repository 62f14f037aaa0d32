"""Generated pages are up to date, and links resolve."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shlex
import tomllib
import unicodedata
from collections import Counter
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, fromstring

import polars as pl
import pytest
from conftest import DOCS, script
from public_names import public

import tidyfair as tf
from tidyfair.cli.main import main
from tidyfair.datasets import lending
from tidyfair.errors import Status
from tidyfair.intervals.methods import METHODS
from tidyfair.metrics.other_names import places
from tidyfair.reports.theme import DARK
from tidyfair.specs.result_columns import RESERVED
from tidyfair.specs.result_kinds import KINDS as KINDS_OF_RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = DOCS / "pages"
ROOT = DOCS.parent
LINKING = sorted([ROOT / "README.md", ROOT / ".github" / "CONTRIBUTING.md", *PAGES.rglob("*.md")])
KINDS = [
    "annotators",
    "curves",
    "dependence",
    "fairness",
    "individuals",
    "inequality",
    "intervals",
    "labels",
    "numbers",
    "rankings",
    "scores",
    "survival",
]
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
    "how-to/index.md",
    "law.md",
    *sorted([*METRICS, "metrics/names.md"]),
    "reference/columns.md",
    "reference/index.md",
    "reference/interval-methods.md",
    "reference/unknown-values.md",
]
FUNCTIONS = PAGES / "functions"


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return script("catalogue.py").pages()


def committed(page: str) -> str:
    return (PAGES / page).read_text("utf-8")


def test_generated_pages_are_up_to_date(written: dict[str, str]) -> None:
    functions = [name for name in written if name.startswith("functions/")]
    assert sorted(functions) == sorted(f"functions/{path.name}" for path in FUNCTIONS.iterdir())
    stale = [name for name in [*WRITTEN, *functions] if committed(name) != written[name]]
    assert stale == [], "run `python docs/catalogue.py`"


def test_every_public_name_has_one_page_with_all_its_parts() -> None:
    entries = Counter(
        name for path in FUNCTIONS.glob("*.md")
        for name in re.findall(r"^::: tidyfair\.([\w.]+)$", path.read_text("utf-8"), re.MULTILINE)
    )  # fmt: skip
    names = [*places().values(), *vars(tf)["_FAMILIES"]]
    assert [name for name in names if entries[name] != 1] == []
    for place in places().values():
        value = attrgetter(place)(tf)
        path = FUNCTIONS / f"{place}.md"
        if not path.is_file():  # an alias, on the page of its metric
            assert isinstance(value, tf.types.Metric)
            continue
        text = path.read_text("utf-8")
        asked = ["See also"]
        if isinstance(value, tf.types.Metric):
            asked += ["Call", "Returns", "Example", "Formula", "Null and errors"]
        elif isinstance(value, tf.types.GroupwiseFactory):
            asked += ["Call", "Returns", "Example", "Null and errors"]
        elif inspect.isfunction(value):
            asked += ["Call", "Example"]
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert [heading for heading in asked if heading not in headings] == [], place
        description = re.search(r'^description: "(.{10,})"$', text, re.MULTILINE)
        assert description is not None, place


def test_every_kind_of_result_is_on_a_page_of_a_function() -> None:
    titles = set(
        re.findall(
            r"^(?:- |.*\. )?\*([A-Z][^*]+)\*: ",
            "\n".join(p.read_text("utf-8") for p in FUNCTIONS.iterdir()),
            re.MULTILINE,
        )
    )
    assert {kind.title for kind in KINDS_OF_RESULTS} - titles == set()


def test_pages_of_notebooks_are_up_to_date() -> None:
    written = script("notebooks.py").pages()
    folder = PAGES / "notebooks"
    assert sorted(path.name for path in folder.iterdir()) == sorted(written)
    for name, text in written.items():
        committed_bytes = (folder / name).read_bytes()
        assert committed_bytes == (text.encode() if isinstance(text, str) else text), "run `python docs/notebooks.py`"


def test_examples_of_metric_pages_write_the_library_as_tdf() -> None:
    for page in [*METRICS, *(f"functions/{path.name}" for path in sorted(FUNCTIONS.glob("*.md")))]:
        examples = "\n".join(re.findall(r"^(?:>>>|\.\.\.) (.+)$", committed(page), re.MULTILINE))
        assert "import tidyfair as tdf" in examples or "tdf." not in examples, page
        assert "from tidyfair import" not in examples, page
        assert "import *" not in examples, page
        called = set(re.findall(r"(?<![\w.])(\w+)[(.]", re.sub(r'"[^"]*"', "", examples)))
        bare = called & set(dir(tf)) - set(re.findall(r"^(\w+) = ", examples, re.MULTILINE))
        assert not bare, page


def in_one_line(node: Element) -> str:
    """MathML as it would be written in a line of text, with quotients, powers and roots in brackets."""
    inside = [in_one_line(child) for child in node]
    match node.tag, inside:
        case "mfrac", [above, below]:
            return f"[{above}]/[{below}]"
        case "msup", [base, power]:
            return f"{base}^{power}"
        case "msqrt", _:
            return f"√[{''.join(inside)}]"
        case "mover", [base, _]:
            return f"{base}^"
        case _:
            return (node.text or "") + "".join(inside)


@pytest.mark.parametrize(
    ("metric", "formula"),
    [
        ("sens", "sens=[TP]/[TP+FN]"),
        ("j_index", "j_index=sens+spec−1"),  # noqa: RUF001 - the sign of mathematics
        ("roc_dist", "roc_dist=√[(1−sens)^2+(1−spec)^2]"),  # noqa: RUF001 - mathematics
        ("accuracy", "accuracy=[∑labelsTP]/[∑labels(TP+FN)]"),
        ("mae", "mae=[∑|y−y^|]/[n]"),  # noqa: RUF001 - mathematics
        ("mse", "mse=[∑(y−y^)^2]/[n]"),  # noqa: RUF001 - mathematics
        ("net_benefit", "net_benefit=[TP−FP·[at]/[1−at]]/[TP+FP+FN+TN]"),  # noqa: RUF001 - mathematics
    ],
)
def test_formulas_in_mathematics_say_what_the_code_does(metric: str, formula: str) -> None:
    definition = public(metric).definition
    markup = script("mathematics.py").mathematics(definition.function, dict(definition.terms))
    assert in_one_line(fromstring(markup)) == formula  # noqa: S314 - markup of our own


def test_what_is_no_arithmetic_has_no_formula_in_mathematics() -> None:
    assert script("mathematics.py").mathematics(tf.roc_auc.definition.function, {}) is None


def test_all_formulas_in_mathematics_are_sound_markup() -> None:
    text = "\n".join(path.read_text("utf-8") for path in FUNCTIONS.iterdir())
    blocks = re.findall(r'^<div class="formula">.+$', text, re.MULTILINE)
    assert len(blocks) > 100
    for block in blocks:
        fromstring(block)  # noqa: S314 - markup of our own


def test_page_on_calls_shows_the_signature() -> None:
    block = committed("how-to/call.md").partition("```text\nf(")[2].partition("```")[0]
    shown = re.findall(r"(\w+)=([^,)]+)", block)
    parameters = list(inspect.signature(tf.accuracy).parameters.values())[1:]
    assert sorted(name for name, _ in shown) == sorted(parameter.name for parameter in parameters)
    defaults = {parameter.name: parameter.default for parameter in parameters}
    assert {name: ast.literal_eval(text) for name, text in shown} == defaults


def test_generated_folders_hold_no_other_pages(written: dict[str, str]) -> None:
    there = [
        str(path.relative_to(PAGES)) for folder in ("coming-from", "metrics") for path in (PAGES / folder).iterdir()
    ]
    others = [name for name in written if not name.startswith("functions/")]
    reference = [page for page in WRITTEN if page.startswith(("how-to/", "law", "reference/"))]
    assert sorted(others) == sorted([*there, *reference]) == WRITTEN


def test_sources_of_methods_of_intervals_are_listed() -> None:
    listed = (PAGES / "reference" / "interval-methods.md").read_text("utf-8").partition("## Sources")[2]
    for method in METHODS:
        for authors, year in re.findall(r"(\w[\w ,.]*?) \((\d{4})\)", method.source):
            first = re.split(r",| and | et al", authors.removeprefix("with ends after "))[0]
            assert re.search(rf"^- {first}, [^(]*\({year}\)", listed, re.MULTILINE), f"{authors} ({year})"


@cache
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


def test_links_resolve_and_no_todo_is_left() -> None:
    assert [page for page in LINKING if "TODO" in page.read_text("utf-8")] == []
    lost = [
        f"{page.name}: {file.name}#{heading}"
        for page in LINKING
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

    # the index of the reference leads to the pages of functions
    there = [str(path.relative_to(PAGES)) for path in PAGES.rglob("*.md") if path.parent != FUNCTIONS]
    assert sorted(placed(site["project"]["nav"])) == sorted(there)


def test_page_of_columns_describes_what_calls_return() -> None:
    described = set(re.findall(r"^\| `(\.\w+)` \|", committed("reference/columns.md"), re.MULTILINE))
    people = pl.DataFrame({"y": [1, 0] * 20, "p": [1, 0, 0, 0] * 10, "g": ["a"] * 20 + ["b"] * 20})
    fair = tf.equalized_odds("g")
    call: dict[str, Any] = {"truth": "y", "estimate": "p"}
    returned = {*fair(people, **call, interval="auto", explain=True).columns}
    returned |= {*fair.by_group(people, **call, interval="auto").columns} - {"g"}
    returned |= {*tf.check(fair, below=0.1)(people, **call).columns}
    returned |= {*tf.compare_groups(tf.sens, by="g")(people, **call, explain=True).columns} - {"g"}
    returned |= {*tf.inference.disparity_test(fair)(people, **call, times=20).columns}
    assert returned - described == set()
    assert returned <= RESERVED


def test_page_on_undefined_values_names_every_status() -> None:
    page = committed("how-to/undefined-values.md")
    assert [status.value for status in Status if f"`{status.value}`" not in page] == []


def test_page_of_simulations_has_a_place_for_every_table() -> None:
    simulated = ["all tables"]
    for module in sorted((ROOT / "tests" / "benchmarks" / "coverage").glob("*.py")):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "TABLES":
                keys = node.value.keys if isinstance(node.value, ast.Dict) else []
                simulated += [str(key.value) for key in keys if isinstance(key, ast.Constant)]
    page = committed("contributors/simulations.md")
    marks = re.findall(r"^<!-- (?!end of )(.+) -->$", page, re.MULTILINE)
    assert sorted(marks) == sorted(simulated)
    # tables are written between a pair of marks, and there are no others
    outside = re.sub(r"^<!-- (.+) -->$.*?^<!-- end of \1 -->$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert "<!--" not in outside
    assert "\n|" not in outside


def test_pages_of_benchmarks_have_the_sections_that_the_suite_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tests" / "benchmarks")
    pages: Any = importlib.import_module("pages")
    for template, page in ((pages.SPEED, "benchmarks.md"), (pages.TARGETS, "contributors/benchmark-targets.md")):
        headings = re.findall(r"^#+ .+$", template, re.MULTILINE)
        assert re.findall(r"^#+ .+$", committed(page), re.MULTILINE) == headings


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("exit code", "command-line.md"),
        ("job summary", "command-line.md"),
        ("pre-commit", "command-line.md"),
        ("wide table", "how-to/wide-tables.md"),
        ("pivot", "how-to/wide-tables.md"),
        ("sql", "how-to/wide-tables.md"),
        ("spreadsheet", "how-to/wide-tables.md"),
        ("confusion matrix", "how-to/confusion-matrix.md"),
        ("threshold by group", "how-to/call.md"),
        ("small groups", "how-to/small-groups.md"),
        ("sample size", "how-to/sample-size.md"),
        ("save state", "batches.md"),
    ],
)
def test_headings_answer_what_people_search_for(query: str, page: str) -> None:
    headings = re.findall(r"^#+ (.+)$", prose(PAGES / page), re.MULTILINE)
    words = query.split()
    assert any(all(word in heading.lower() for word in words) for heading in headings)


BY_HAND = [
    path
    for path in PAGES.rglob("*.md")
    if path.parent.name not in ("metrics", "coming-from", "notebooks", "functions")
    and path.name not in ("simulations.md", "changelog.md")
]
"""Pages of prose; those that are written from code, hold tables or list changes are as long as they are."""


def test_sections_of_prose_are_short() -> None:
    for page in BY_HAND:
        for section in re.split(r"^## ", prose(page), flags=re.MULTILINE):
            paragraphs = [line for line in section.splitlines() if not line.startswith(("|", ":::"))]
            # addresses of links are not read
            text = re.sub(r"\]\([^)]*\)", "]", "\n".join(paragraphs))
            assert len(text.split()) <= 1_500, (page, section.partition("\n")[0])


def commands_of(page: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", committed(page), re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("tidyfair ")]


@pytest.fixture(scope="module")
def folder_of_predictions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the page of the command line reads."""
    folder = tmp_path_factory.mktemp("predictions")
    loans = lending(3_000)
    other = pl.when(pl.col("score") >= 0.6).then(pl.lit("yes")).otherwise(pl.lit("no"))
    shown = loans.with_columns(
        obs=pl.col("repaid") == "yes", pred=pl.col("approved") == "yes", old=pl.col("approved") == "yes",
        new=other == "yes", hired=(pl.col("approved") == "yes").cast(pl.Int8), old_score="score",
        new_score=pl.col("score") ** 2,
    )  # fmt: skip
    shown.write_parquet(folder / "predictions.parquet")
    shown.write_csv(folder / "scores.csv")
    shown.write_csv(folder / "hiring.csv")
    for year, part in enumerate((shown[:1500], shown[1500:]), start=2025):
        (folder / "data" / f"year={year}").mkdir(parents=True)
        part.write_parquet(folder / "data" / f"year={year}" / "part.parquet")
    return folder


@pytest.mark.usefixtures("undrawn", "few_draws")
@pytest.mark.parametrize("command", commands_of("command-line.md"))
def test_commands_of_the_page_run(
    command: str, folder_of_predictions: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder_of_predictions)
    code = main(shlex.split(command, comments=True)[1:])
    assert code in ({0, 3, 4} if "--fail-if" in command else {0}), capsys.readouterr().err


@pytest.mark.parametrize("command", ["audit", "report", "compare", "metrics", "datasets"])
def test_page_of_the_command_line_has_every_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    options = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    page = committed("command-line.md")
    assert [option for option in sorted(options) if not re.search(rf"{option}\b", page)] == []


def test_design_page_lists_the_modules_of_every_room() -> None:
    package = Path(tf.__file__).parent
    listed = {
        room: re.findall(r"`(\w+)`", modules)
        for room, modules in re.findall(
            r"^\| `([\w/]+)/` \| (`.+?) \| ", committed("contributors/design.md"), re.MULTILINE
        )
    }
    rooms = {path.parent.relative_to(package).as_posix() for path in package.glob("*/**/__init__.py")}
    assert set(listed) == rooms
    for room, modules in listed.items():
        assert sorted(modules) == sorted(path.stem for path in (package / room).glob("[!_]*.py"))
    alone = {path.stem for path in package.glob("[!_]*.py")} - set(vars(tf)["_FAMILIES"])
    assert all(f"`{name}.py`" in committed("contributors/design.md") for name in alone)


def test_gallery_shows_every_picture_in_both_themes() -> None:
    pictures = script("pictures.py")
    shown = re.findall(
        r"^!\[([^\]]+)\]\(gallery/([\w-]+)\.svg#only-(light|dark)\)$", committed("gallery.md"), re.MULTILINE
    )
    both = [(alt, name, theme) for alt, name, _ in shown[::2] for theme in ("light", "dark")]
    assert shown == both
    files = list(pictures.GALLERY.iterdir())
    names = {f"{name}{end}" for _, name, _ in shown for end in pictures.GALLERY_WIDTHS}
    assert sorted(names) == sorted(file.stem for file in files)
    assert sum(file.stat().st_size for file in files) < 1_500_000
    for file in files:
        width = pictures.GALLERY_WIDTHS["-narrow" if file.stem.endswith("-narrow") else ""]
        drawn = re.search(r' width="(\d+)"', file.read_text("utf-8"))
        assert drawn is not None
        # dots at the ends of an axis reach a little beyond it
        assert width <= int(drawn[1]) < width + 5, file.name
    for name, chart in pictures.gallery():
        written = (pictures.GALLERY / f"{name}.svg").read_text("utf-8")
        title = chart.to_dict(validate=False)["title"]["text"]
        first = title if isinstance(title, str) else title[0]
        assert f">{first}<" in written, "run `python docs/pictures.py`"
        assert f"#only-dark:target {{ --ink: {DARK['ink']};" in written
        assert fromstring(written).get("id") == "only-dark"  # noqa: S314 - drawn here


def test_pictures_match_the_script_and_have_alt_text() -> None:
    pictures = script("pictures.py")
    text = "\n".join(committed(f"{page}.md") for page in ("how-sure/index", "how-sure/intervals", "how-to/few-labels"))
    shown = re.findall(r"!\[[^\]]+\]\(\.\./pictures/([\w-]+)\.svg#only-(?:light|dark)\)", text)
    drawn = [f"{name}{theme}" for name in pictures.PICTURES for theme in pictures.THEMES]
    assert sorted(shown) == sorted(drawn)
    narrow = [f"{name}-narrow{theme}" for name in pictures.PICTURES for theme in pictures.THEMES]
    assert sorted([*drawn, *narrow]) == sorted(path.stem for path in pictures.FOLDER.iterdir())
    for name, draw in pictures.PICTURES.items():
        result = draw(pictures.WIDTHS[""]).to_dict()
        (title,) = result["title"]["text"] if isinstance(result["title"], dict) else result["title"]
        assert title.partition(",")[0] in committed(f"pictures/{name}.svg"), "run `python docs/pictures.py`"


def test_pages_begin_with_their_answer() -> None:
    # a page begins with a sentence; imports belong to the first example
    assert [page for page in BY_HAND if page.read_text("utf-8").split("\n\n")[1].startswith("```")] == []


def test_numbers_in_the_prose_of_home_are_those_of_its_table() -> None:
    loans = lending()
    fair = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"), tf.equal_opportunity("race"))
    result = fair(loans, "repaid", "approved", pos_label="yes", interval="auto")
    shown = pl.col(".estimate", ".lower", ".upper")
    home = committed("index.md").partition("\n```\n\n")[2].partition("\n\n")[0]
    percents = [tuple(round(100 * value) for value in row) for row in result.select(shown).rows()]
    assert re.findall(r"(\d+)(?:%| points?) \(95% CI (\d+) to (\d+)\)", home) == [
        tuple(map(str, row)) for row in percents
    ]
    lower, upper = percents[2][1:]
    assert f"20 points (95% CI {lower} to {upper})" in home
    large = tf.equal_opportunity("race", min_n=100)
    sure = large(loans, "repaid", "approved", pos_label="yes", interval="auto", on_undefined="ignore").select(shown)
    low, high = (round(100 * value) for value in sure.row(0)[1:])
    assert f"20 points (95% CI {low} to {high})" in committed("start.md")


def test_files_that_contributors_are_sent_to_exist() -> None:
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`([\w./-]+\.(?:py|md|toml))`", text))
    files = {
        path.relative_to(ROOT).as_posix()
        for room in ("tidyfair", "tests", "docs")
        for path in (ROOT / room).rglob("*.*")
    }
    files |= {path.name for path in ROOT.iterdir()}
    assert sorted(name for name in named if not any(file == name or file.endswith(f"/{name}") for file in files)) == []


def test_every_page_is_two_clicks_from_home() -> None:
    def linked(page: Path) -> set[Path]:
        return {file for file, _ in links(page) if file.suffix == ".md"}

    first = linked(PAGES / "index.md")
    near = first.union({PAGES / "index.md"}, *map(linked, first))
    assert sorted(str(page.relative_to(PAGES)) for page in {*PAGES.rglob("*.md")} - near) == []

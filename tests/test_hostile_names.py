"""Names that a terminal, page, picture or spreadsheet could execute are escaped everywhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd
import polars as pl
import pytest
from conftest import read_csv
from markdown_it import MarkdownIt

import tidyfair as tf
from tidyfair.cli.main import main
from tidyfair.escapes import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("few_draws")

NAMES = {
    # several in one name where each is dangerous wherever it stands
    "controls": "\x01\x00a\x0b\x0c\ufffe\uffff\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b31m\x85",
    "markup": "\"' onerror=alert(1) x='\"><img src=x onerror=alert(1)>{{x}}</script><!--<script>alert(1)</script>",
    "template": "&lt;b&gt; &#60;b> ${7*7} {{7*7}} {% raw %} %s {0}",
    "prototype": "__proto__",
    "long": "x" * 3_000,
    "hidden": "\u202efdp.exe\u202c \u05d0\u05d1a\u200bb\ufeff\u00ad\u2028a\r\nb\tc",
    "reserved": ".metric",
    "empty": "",
    "null": "null",
    "markdown": "| `x` *d* [a](http://b.c) ![i](j) www.k.l m@n.op # $x$ \\",
    "rule": "---",
    "formula": "=1+1",
    "path": 'a.b[0]["c"]:d',
}
DRAWN = {name: NAMES[name] for name in ("prototype", "long", "reserved", "empty")}
DRAWN["together"] = "".join(NAMES[name] for name in ("controls", "markup", "template", "hidden", "markdown", "path"))
"""Names that are drawn, which takes longer: texts that are dangerous wherever they stand are one name."""
ROWS = 240
ALL_GROUPS: dict[str, Any] = {"unknown": "group"}
"""Some names are words for unknown groups."""
GAP = tf.new_groupwise_metric(tf.sens, "gap", tf.difference())
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""What neither a terminal, nor a page, nor a picture may get."""


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return NAMES[request.param]


@pytest.fixture(params=DRAWN)
def drawn_name(request: pytest.FixtureRequest) -> str:
    return DRAWN[request.param]


@pytest.fixture(params=[*DRAWN, "null", "rule", "formula"])
def typed_name(request: pytest.FixtureRequest) -> str:
    return (NAMES | DRAWN)[request.param]


def people(name: str) -> pl.DataFrame:
    """Predictions of two groups, one of them called so, in a column called so, and with such a label."""
    index = pl.int_range(ROWS, eager=True)
    group = pl.Series(["b", name if name != "b" else "c"])[index % 2]
    return pl.DataFrame(
        {
            "y": index // 2 % 2, "p": (index // 2 + index // 7) % 2, "other": index // 3 % 2, "s": index % 11 / 10,
            "g": group, "h": pl.Series(["u", name])[index // 4 % 2], name: group,
            "truth": pl.Series(["no", name])[index // 2 % 2], "guess": pl.Series(["no", name])[index // 5 % 2],
        }
    )  # fmt: skip


def asked(make: Callable[[], Any]) -> Any:
    """What is made, or the error of ours that says why not."""
    try:
        return make()
    except tf.errors.TidyfairError as error:
        return error


# Pages


class Page(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


PAGE = {
    "html", "head", "meta", "title", "body", "main", "header", "nav", "h1", "h2", "h3", "section", "p", "figure", "pre",
    "code", "a", "details", "summary", "dl", "dt", "dd", "ol", "ul", "li", "strong", "small", "wbr",
    "svg", "g", "path", "circle", "line", "rect", "text", "tspan", "defs", "clippath",
}  # fmt: skip
TABLE = {"style", "div", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "span", "sup", "br", "caption"}
ATTRIBUTES = {
    "align", "aria-describedby", "aria-labelledby", "charset", "class", "colspan", "content", "data-quarto-bootstrap",
    "data-quarto-disable-processing", "headers", "http-equiv", "id", "lang", "name", "rowspan", "scope", "style",
    "aria-label", "aria-hidden", "role", "data-label", "href",
    # of pictures
    "clip-path", "cx", "cy", "d", "fill", "fill-opacity", "font-family", "font-size", "font-style", "font-weight",
    "height", "opacity", "r", "stroke", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
    "stroke-opacity", "stroke-width", "text-anchor", "transform", "viewbox", "version", "width", "x", "x1", "x2",
    "xmlns", "y", "y1", "y2", "dy",
}  # fmt: skip


def check_page(html: str, known: set[str]) -> Page:
    """Refuse elements and attributes that are not ours, links that lead elsewhere, and what cannot be seen."""
    page = Page(html)
    assert {tag for tag, _ in page.elements} <= known
    assert {attribute for _, attributes in page.elements for attribute in attributes} <= ATTRIBUTES
    every = [text or "" for _, attributes in page.elements for text in attributes.values()]
    assert not [text for text in [page.text, *every] if UNSEEN.search(text)]
    links = [str(attributes["href"]) for _, attributes in page.elements if "href" in attributes]
    assert all(re.fullmatch("#[a-z-]+", link) for link in links)
    return page


def check_pictures(html: str, *, least: int) -> None:
    """Pictures are XML, and hold nothing that runs."""
    pictures = [svg for svg in re.findall("<svg .*?</svg>", html, re.DOTALL) if 'role="img"' in svg]
    # one for wide screens, and one for narrow ones
    assert len(pictures) >= 2 * least
    for picture in pictures:
        elements = list(ET.fromstring(picture).iter())  # noqa: S314 - drawn here
        assert not [item for item in elements if item.tag.endswith(("script", "foreignObject", "image", "}a"))]


def shown(text: str) -> str:
    """A name as a page shows it."""
    return " ".join(visible(text).split())


def test_reports_escape_names(drawn_name: str, request: pytest.FixtureRequest) -> None:
    name = drawn_name
    if name != DRAWN["together"]:
        # the pictures of the other names are made below, and not drawn
        request.getfixturevalue("undrawn")
    # few metrics, because each is a panel that takes its time to be drawn
    few = tf.metric_set(tf.accuracy, tf.demographic_parity(name), tf.auc_parity(name), tf.equal_opportunity("g", "h"))
    gate = tf.check(tf.demographic_parity(name), below=0.1)
    call: dict[str, Any] = {"truth": "truth", "probs": "s", "threshold": 0.5, "pos_label": name, "times": 40}
    made = tf.report(people(name), **call, by=[name, ("g", "h")], metrics=few, gate=gate, title=f"Of {name}")
    notebook = Page(made._repr_html_())  # pyright: ignore[reportPrivateUsage] - what a notebook asks for
    ((tag, attributes),) = notebook.elements
    assert tag == "iframe"
    assert set(attributes) == {"sandbox", "srcdoc", "title", "style"}
    # the page itself, as a browser reads it from the attribute
    page = check_page(str(attributes["srcdoc"]), PAGE | TABLE)
    check_pictures(str(attributes["srcdoc"]), least=4 if name == DRAWN["together"] else 0)
    assert shown(name) in " ".join(page.text.split())
    check_card(made.markdown())
    assert not UNSEEN.search(repr(made))


def test_cards_escape_names_of_groups() -> None:
    names = list(NAMES.values())
    data = people("g of").with_columns(pl.Series("named", names)[pl.int_range(ROWS, eager=True) % len(names)])
    made = tf.report(data, "y", "p", by="named", min_n=1, times=40)
    card = made.markdown()
    check_card(card)
    # a row for each name, the unknown ones too
    assert len(re.findall(r"^\|.*\| 18 \|", card, re.MULTILINE)) >= len(names)


def check_card(markdown: str) -> None:
    """Refuse anything but headings, paragraphs, tables and code, and rows of tables that fall apart."""
    assert not UNSEEN.search(markdown)
    for kind in ("gfm-like", "commonmark"):
        # links are found in gfm even where they are not marked
        reader = MarkdownIt(kind, {"linkify": False}).enable("table")
        tokens = reader.parse(markdown)
        blocks = {token.type.removesuffix("_open").removesuffix("_close") for token in tokens}
        assert blocks <= {
            "heading", "paragraph", "inline", "table", "thead", "tbody", "tr", "th", "td", "code_block", "html_block",
            "bullet_list", "list_item",
        }  # fmt: skip
        parts = [part for token in tokens for part in token.children or ()]
        inline = {part.type.removesuffix("_open").removesuffix("_close") for part in parts}
        assert inline <= {"text", "text_special", "softbreak", "strong", "em", "code_inline", "link"}
        links = [str(part.attrs["href"]) for part in parts if part.type == "link_open"]
        assert all(re.fullmatch("#[a-z-]+", link) for link in links)
        # what folds is HTML, whose elements have no attributes
        folded = [token.content for token in tokens if token.type == "html_block"]
        assert all(re.fullmatch(r"</details>\n|<details>\n<summary>[^<]*</summary>\n", text) for text in folded)
    for table in re.findall(r"(?:^\|.*\n?)+", markdown, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.strip().split("\n")}) == 1


def test_tables_escape_names(name: str) -> None:
    data = people(name)
    named = tf.new_groupwise_metric(tf.accuracy, name or "empty", tf.difference())
    every = tf.metric_set(
        tf.accuracy, tf.demographic_parity(name, **ALL_GROUPS), named("h"), tf.demographic_parity("g", "h")
    )
    results = [
        every(data, "y", "p"),
        every.by_group(data, "y", "p"),
        asked(lambda: tf.demographic_parity("h").by_group(data, "y", "p", group_by=name)),
        asked(lambda: tf.demographic_parity("h")(data, "y", "p", group_by=[name], explain=True)),
        GAP(name)(data, "truth", "guess", labels=["no", name, "maybe"], on_undefined="ignore", explain=True),
        tf.inference.pairwise(tf.demographic_parity(name, **ALL_GROUPS))(data, "y", "p"),
        tf.compare_models(tf.demographic_parity(name))(data, "y", one="p", other="other", times=40),
    ]
    for result in results:
        if not isinstance(result, tf.errors.TidyfairError):
            html = tf.as_table(result, title=f"Of {name}").as_raw_html()
            assert shown(f"Of {name}") in " ".join(check_page(html, TABLE).text.split())


# Pictures


def pictures(name: str) -> Iterator[tuple[str, Any]]:
    """Charts of all kinds, by their kind."""
    data = people(name)
    parity = partial(tf.demographic_parity, **ALL_GROUPS)
    named = tf.new_groupwise_metric(tf.accuracy, name or "empty", tf.difference())(name, **ALL_GROUPS)
    scores: dict[str, Any] = {"truth": "y", "probs": "s"}
    curve = tf.threshold_curve(parity(name), [0.2, 0.5])
    made: dict[str, Callable[[], Any]] = {
        "results": lambda: tf.metric_set(tf.accuracy, named)(data, "y", "p"),
        "verdicts": lambda: tf.check(named, below=0.1)(data, "y", "p", times=40),
        "tests": lambda: tf.inference.disparity_test(parity(name))(data, "y", "p", times=40),
        "groups": lambda: named.by_group(data, "y", "p", interval="exact"),
        "crossed": lambda: parity("g", "h").by_group(data, "y", "p"),
        "outer": lambda: tf.accuracy(data, "y", "p", group_by=name, interval="exact"),
        "strips": lambda: parity("h")(data, "y", "p", group_by=name),
        "means": lambda: tf.inference.summarize(named(data, "y", "p", group_by="h")),
        "cuts": lambda: curve(data, **scores),
        "groups over cuts": lambda: curve.by_group(data, **scores),
        "pairs": lambda: tf.inference.pairwise(named)(data, "y", "p"),
        "strata": lambda: tf.inference.stratified(parity(name), within="h")(data, "y", "p"),
        "models": lambda: tf.compare_models(named)(data, "y", one="p", other="other", times=40),
        "subgroups": lambda: tf.inference.subgroup_search(tf.selection_rate, [name, "h"], **ALL_GROUPS)(
            data, "y", "p", times=40
        ),
        "periods": lambda: tf.inference.compare_periods(parity("h"), period=name)(
            data, "y", "p", group_by=name, times=40
        ),
        "change": lambda: tf.inference.compare_periods(parity("h"), period=name, search="change")(
            data, "y", "p", group_by=name, times=40
        ),
        "components": lambda: tf.inference.decompose(tf.accuracy, between=name, by="h")(data, "y", "p"),
        "looks": lambda: tf.inference.monitor(parity("h"), below=0.1, period=name)(data, "y", "p", group_by=name),
        "labels": lambda: GAP("h", **ALL_GROUPS).by_group(
            data, "truth", "guess", labels=["no", name, "maybe"], estimator="one_vs_rest"
        ),
        "probability": lambda: tf.inference.probability(parity(name), below=0.1)(data, "y", "p"),
        "roc": lambda: tf.roc_curve(data, **scores, group_by=name),
        "gain": lambda: tf.gain_curve(data, **scores, group_by=[name, "h"]),
        "lift": lambda: tf.lift_curve(data, **scores, group_by=name),
        "precision": lambda: tf.pr_curve(data, **scores, group_by=name),
        "calibration": lambda: tf.calibration.curve(data, **scores, group_by=name),
        "confusion": lambda: tf.conf_mat(data, "truth", "guess", group_by=name),
        "comparison": lambda: tf.compare_groups(tf.selection_rate, by=[name, (name, "h")], **ALL_GROUPS)(
            data, "y", "p"
        ),
        "crossed intervals": lambda: parity(name, "h").by_group(data, "y", "p", interval="exact"),
    }
    for kind, make in made.items():
        title = f"Of {name}" if kind == "results" else None
        chart = asked(lambda make=make, title=title: tf.autoplot(make(), title=title))
        if not isinstance(chart, tf.errors.TidyfairError):
            yield kind, chart


def texts_of(part: Any) -> Iterator[str]:
    """All texts of a specification, keys too."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for key, value in part.items():
            yield key
            yield from texts_of(value)
    elif isinstance(part, list):
        for value in part:
            yield from texts_of(value)


def test_charts_escape_names(drawn_name: str) -> None:
    kinds: set[str] = set()
    for kind, chart in pictures(drawn_name):
        kinds.add(kind)
        specification = chart.to_dict(validate=False)
        for text in texts_of(specification):
            assert not UNSEEN.search(text)
            assert "\n" not in text
            assert not re.search(r"<[a-zA-Z/!?]", text)
            assert len(text) < 1_500
        if kind == "results":
            # others are embedded in the same way
            assert "</script><script>" not in chart.to_html()
        assert set(re.findall(r'"field": "([^"]*)"', json.dumps(specification))) <= {
            "at", "below", "column", "estimate", "expected_lower", "expected_upper", "from", "key", "limit", "lower",
            "mean", "model", "one", "order", "other", "outer", "raw", "row", "rows", "series", "strength", "text",
            "to", "upper", "verdict", "what", "why", "x",
        }  # fmt: skip
    assert len(kinds) >= 9


_DRAWN = """
import sys
sys.path.insert(0, sys.argv[1])
from io import StringIO

import altair
import tidyfair as tf
from test_hostile_names import DRAWN, people

call = {"truth": "y", "estimate": "p"}
for text in (DRAWN["together"], "\\ud800"):
    # polars has no such text, but a title may be one
    name = text if text != "\\ud800" else "plain"
    data = people(name)
    named = tf.new_groupwise_metric(tf.accuracy, name or "empty", tf.difference())
    chart = tf.autoplot(named("g").by_group(data, **call), title=f"Of {text}")
    chart.save(StringIO(), format="svg")
    if text == DRAWN["together"]:
        for renderer in ("svg", "png", "html"):
            with altair.renderers.enable(renderer):
                assert chart._repr_mimebundle_(), renderer
    if text not in DRAWN.values():
        tf.report(data, **call, by="g", metrics=tf.demographic_parity("g"), title=text, times=40).html()
print("all were drawn")
"""


def test_drawing_survives_characters_that_xml_forbids() -> None:
    """What draws pictures ends the process at a character that XML forbids, so another process tries.

    Reports of all names are drawn above, but for the name that no frame can hold.
    """
    ended = subprocess.run(  # noqa: S603 - this file
        [sys.executable, "-c", _DRAWN, __file__.rpartition("/")[0]], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2_000:]
    assert ended.stdout == "all were drawn\n"


# The command line


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and all that a terminal gets, which obeys none of it."""
    try:
        code = main(arguments)
    except SystemExit as left:
        code = int(left.code or 0)
    written = capsys.readouterr()
    assert not UNSEEN.search(written.out + written.err)
    # an answer, a message of ours or of polars, or usage, and never a trace
    assert code in {0, 2}
    assert "Traceback" not in written.err
    return code, written.out + written.err


def test_terminal_output_has_no_control_characters(
    typed_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = typed_name
    file = str(tmp_path / "people.parquet")
    people(name).write_parquet(file)
    call = [file, f"--truth={'truth'}", f"--pos-label={name}", "--by=g", "--by=h"]
    code, out = called(capsys, "audit", *call, "--estimate=guess", f"--group-by={name}")
    assert code == (2 if name == ".metric" else 0)
    assert visible(name)[:20] in out
    for options in (
        ["audit", *call, "--estimate=guess", f"--by={name}", "--min-n=1"],
        ["audit", file, "--truth=y", f"--estimate={name}", "--by=g"],
        ["audit", file, "--truth=truth", "--estimate=p", "--by=g"],
        ["audit", *call, f"--estimate={name}x"],
        ["audit", *call, "--estimate=guess", f"--fail-if={name}(g) > 0.1"],
        ["audit", *call, "--estimate=guess", f"--metric={name}"],
        ["audit", f"{file}{name}.csv", "--by=g"],
        ["audit", f"{file}{name}*.csv", "--by=g"],
        ["audit", file, f"--output={tmp_path}/{name}/x.csv"],
        ["audit", file, "stray", name, f"--{name}"],
        ["compare", file, "--truth=truth", "--one=guess", f"--other={name}", "--by=g"],
        ["compare", file, "--truth=y", "--one=p", "--other=other", f"--by={name}"],
        ["metrics", name],
        ["datasets", name],
        [name],
    ):  # fmt: skip
        called(capsys, *options)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_output_files_keep_names_except_formulas(name: str, suffix: str, tmp_path: Path) -> None:
    file, output = tmp_path / "people.parquet", tmp_path / f"groups.{suffix}"
    people(name).write_parquet(file)
    call = ["audit", str(file), "--truth=y", "--estimate=p", "--by=g", f"--output-groups={output}"]
    assert main(call) == 0
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        "csv": read_csv, "parquet": pl.read_parquet, "json": pl.read_json,
    }  # fmt: skip
    result = readers[suffix](output)
    assert (f"'{name}" if suffix == "csv" and name.startswith(("=", "-")) else name) in set(result[".group"])


# Messages


def test_messages_and_reprs_show_names_visibly(name: str) -> None:
    data, odd = people(name), cast("Any", f"{name}?")
    aggregate = tf.new_aggregate(pl.col(name or "empty").dt.year().sum(), name or "empty")
    made = [
        tf.demographic_parity(name),
        tf.demographic_parity(pl.col("g").alias(name)),
        tf.metric_set(tf.accuracy, tf.demographic_parity(name, name=name or "empty")),
        tf.new_groupwise_metric(tf.accuracy, name or "empty", tf.difference()),
        tf.demographic_parity(name, aggregate=aggregate),
        tf.privileged({name: name}),
        tf.metric_tweak(tf.f_meas, name or "empty", beta=2),
        tf.check(tf.demographic_parity(name), below=0.1),
        tf.compare_models(tf.demographic_parity(name)),
    ]
    assert not [item for item in made if UNSEEN.search(repr(item))]
    fails: list[Callable[[], Any]] = [
        lambda: tf.accuracy(data, f"{name}?", "p"),
        lambda: tf.accuracy(data, "truth", "guess", pos_label=f"{name}?", on_undefined="raise"),
        lambda: tf.accuracy(data, "y", "guess"),
        lambda: tf.accuracy(data, name, "p"),
        lambda: tf.demographic_parity(name)(data, estimate="p", group_by=name),
        lambda: tf.demographic_parity(name, aggregate=aggregate)(data, estimate="p"),
        lambda: tf.mae(data, name, "p"),
        lambda: tf.metric_set(tf.accuracy, tf.demographic_parity(name), tf.demographic_parity(name)),
        lambda: tf.equal_opportunity(tf.privileged({name: "nobody"}))(data, "y", "p", on_undefined="raise"),
        lambda: tf.assert_fair(tf.equal_opportunity(name), data, "y", "p", below=0.001, strict=True),
        lambda: tf.equal_opportunity(name)(data.filter(pl.col("g") != name), "y", "p", on_undefined=odd),
    ]
    for fail in fails:
        with pytest.raises(tf.errors.TidyfairError) as failed:
            fail()
        assert not UNSEEN.search(str(failed.value))
    nobody = data.with_columns(y=pl.when(pl.col("g") == "b").then("y").otherwise(0))
    with pytest.warns(tf.errors.UndefinedWarning) as warned:
        tf.equal_opportunity(name, **ALL_GROUPS)(nobody, "y", "p")
    assert not [item for item in warned if UNSEEN.search(str(item.message))]


# Internal names


SOURCES = Path(tf.__file__).parent
INTERNAL = sorted(
    {
        name.replace(r"\0", "\0")
        for file in SOURCES.rglob("*.py")
        for name in re.findall(r'"(\\0[^"{}]*)"', file.read_text(encoding="utf-8"))
    }
)
"""The names of columns that the library adds."""
OWN = "\0threshold"
NAMED: dict[str, Callable[[pl.DataFrame], object]] = {
    "group_by": lambda data: tf.accuracy(data, "y", "p", group_by=OWN),
    "a grouped frame": lambda data: tf.accuracy(data.group_by(OWN), "y", "p"),
    "a grouped frame of pandas": lambda data: tf.accuracy(in_pandas(data).groupby(OWN), "y", "p"),
    "by": lambda data: tf.demographic_parity(OWN)(data, "y", "p"),
    "one of two features": lambda data: tf.demographic_parity("g", OWN)(data, "y", "p"),
    "privileged": lambda data: tf.demographic_parity(tf.privileged({OWN: "b"}))(data, "y", "p"),
    "truth": lambda data: tf.accuracy(data, OWN, "p"),
    "estimate": lambda data: tf.accuracy(in_pandas(data), "y", OWN),
    "probs": lambda data: tf.roc_auc(data, "y", probs=OWN),
    "scores of labels": lambda data: tf.roc_auc(data, "y", probs={0: "s", 1: OWN}),
    "case_weights": lambda data: tf.accuracy(data, "y", "p", case_weights=OWN),
    "frequency_weights": lambda data: tf.accuracy(data.lazy(), "y", "p", frequency_weights=OWN),
    "cluster": lambda data: tf.accuracy(data, "y", "p", cluster=OWN, interval="auto"),
    "an expression": lambda data: tf.accuracy(data, "y", "p", group_by=pl.col("g").alias(OWN)),
    "a column of an expression": lambda data: tf.accuracy(data, "y", "p", group_by=pl.col(OWN).alias("h2")),
    "features": lambda data: tf.inference.subgroup_search(tf.accuracy, [OWN])(data, "y", "p", times=40),
    "within": lambda data: tf.inference.disparity_test(tf.demographic_parity("g"), within=OWN)(data, "y", "p"),
    "strata": lambda data: tf.accuracy(data, "y", "p", design=tf.surveys.design(strata=OWN), interval="auto"),
    "models": lambda data: tf.compare_models(tf.accuracy)(data, "y", one="p", other=OWN),
    "arrays": lambda _: tf.demographic_parity(OWN).arrays(estimate=[1, 0], by={OWN: [1, 0]}),
    "outer arrays": lambda _: tf.accuracy.arrays([1, 0], [1, 0], group_by={OWN: [1, 0]}),
}


def in_pandas(data: pl.DataFrame) -> pd.DataFrame:
    """A frame of pandas, which polars does not convert columns with such names to."""
    return pd.DataFrame(data.to_dict(as_series=False))


@pytest.mark.parametrize("role", NAMED)
def test_columns_named_like_internal_ones_are_refused(role: str) -> None:
    data = people("g of").with_columns(pl.col("g").alias(OWN))
    with pytest.raises(
        tf.errors.ColumnError, match="begins with the character NUL, as internal names do; rename the column"
    ):
        NAMED[role](data)


def test_columns_that_are_not_needed_may_have_internal_names() -> None:
    assert len(INTERNAL) > 30
    data = people("g of").drop("g of").with_columns(s=pl.int_range(pl.len()) * 7 % ROWS / ROWS)
    more = data.with_columns(pl.col("g").alias(name) for name in INTERNAL)
    call: dict[str, Any] = {"truth": "y", "estimate": "p"}
    scores: dict[str, Any] = {"truth": "y", "probs": "s"}
    parity = tf.demographic_parity("g")
    verbs: dict[str, Callable[[Any], Any]] = {
        "values": lambda rows: tf.metric_set(tf.accuracy, parity)(rows, **call, group_by="h", interval="auto"),
        "groups": lambda rows: parity.by_group(rows, **call, group_by=["h"]),
        "bootstrap": lambda rows: parity(rows, **call, interval="bootstrap", times=40),
        "thresholds": lambda rows: parity(rows, **scores, threshold=[0.2, 0.5]),
        "best rows": lambda rows: parity(rows, **scores, top_k=[20, 50]),
        "areas": lambda rows: tf.roc_auc(rows, **scores, group_by="h"),
        "clusters": lambda rows: parity(rows, **call, cluster="h", interval="auto"),
        "pairs": lambda rows: tf.inference.pairwise(parity)(rows, **call),
        "comparison": lambda rows: tf.compare_groups(tf.accuracy, by="g")(rows, **call),
        "sensitivity": lambda rows: tf.inference.verdict_sensitivity(parity, below=0.3)(rows, **call),
        "models": lambda rows: tf.compare_models(parity)(rows, "y", one="p", other="other", times=40),
        "test": lambda rows: tf.inference.disparity_test(parity, within="h")(rows, **call, times=40),
        "search": lambda rows: tf.inference.subgroup_search(tf.accuracy, ["g", "h"])(rows, **call, times=40),
        "neighbours": lambda rows: tf.inequality.consistency(["s"])(rows, **call),
        "residuals": lambda rows: next(
            iter(tf.audit("lending_adverse_impact", rows, **call, probs="s", by="g", to={"g": "b"}).tables.values())
        ),
    }
    for name, verb in verbs.items():
        assert verb(more).equals(verb(data)), name
        assert verb(more.lazy()).equals(verb(data)), name

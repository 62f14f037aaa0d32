"""Blocks of a report: texts, tables, figures and code, each as HTML and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, ClassVar, Protocol, TypeAlias

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.escapes import as_html, as_text, markdown_row, visible, visible_texts
from tidyfair.metrics import capitalized
from tidyfair.reports.findings import Finding
from tidyfair.reports.plots import picture_of
from tidyfair.reports.svg import themed_svg
from tidyfair.reports.tables import NOTHING, WORSE, Note, Units, number_in_digits, worded

_WIDE, _NARROW = 896, 350
"""The widths of a picture on a desk, and on a telephone."""
_ON_A_PAGE = 15
"""The number of rows of a table that is printed on one page."""
_LONG_WORD, _LONG_IN_WIDE = 24, 14
"""The letters of a word above which it may be broken anywhere, in a narrow and in a wide table."""
_WIDE_TABLE = 7
"""The number of columns of a wide table."""
_SENTENCE = 60
"""The letters of a cell above which its column is set as paragraphs on narrow screens."""
_INTERVAL = re.compile(r"(.+) \(((?:from |up to )?-?[\d.,]+(?: to -?[\d.,]+)?)\)")
_NUMBER = re.compile(r"(?:[<\u2265] )?-?(?:[\d.,]+|inf)(?:%| points)?(?: \(.*\)| to -?[\d.,]+(?: points)?)?")
_UNIT = re.compile(r"(?<=\d) (?=points\b)|(?<=[<\u2265]) (?=\d)|(?<=%) (?=CI\b)|(?<=CI) (?=-?\d)|(?<=All) (?=rows)")
"""Spaces at which a line does not end."""
_MARKS = {
    "pass": '<circle cx="8" cy="8" r="7"/>',
    "fail": '<path d="M2.5 0 8 5.5 13.5 0 16 2.5 10.5 8 16 13.5 13.5 16 8 10.5 2.5 16 0 13.5 5.5 8 0 2.5Z"/>',
    "not enough evidence": '<path d="M8 0 16 8 8 16 0 8Z"/>',
}
"""The shape of each verdict."""
_CLASSES = {"pass": "good", "fail": "bad", "not enough evidence": "open"}
_SYMBOLS = {"pass": "\N{BLACK CIRCLE}", "fail": "\N{MULTIPLICATION X}", "not enough evidence": "\N{BLACK DIAMOND}"}
"""The same shapes in texts."""


class Block(Protocol):
    """A part of a section."""

    def html(self, name: str) -> str:
        """As HTML, whose ids start with a name that no other block has."""
        ...

    def markdown(self) -> str:
        """As Markdown; empty where there is nothing to be read."""
        ...


Content: TypeAlias = "str | Block"
"""A paragraph, or a block."""


def prose(text: str) -> str:
    """A sentence as HTML, whose units stay beside their numbers."""
    return _UNIT.sub("\u00a0", as_html(text))


def as_code(name: str) -> str:
    """A name in code as Markdown."""
    shown = visible(name)
    return as_text(name) if re.search(r"[`|\\<]", shown) else f"`{shown}`"


def html_of(blocks: Sequence[Content], name: str) -> str:
    """Blocks as HTML, one below the other."""
    return "\n".join(
        f"<p>{prose(block)}</p>" if isinstance(block, str) else block.html(f"{name}-{number}")
        for number, block in enumerate(blocks)
    )


def markdown_of(blocks: Sequence[Content]) -> str:
    """Blocks as Markdown, one below the other."""
    texts = [as_text(block) if isinstance(block, str) else block.markdown() for block in blocks]
    return "\n\n".join(filter(None, texts))


@dataclass(frozen=True)
class Part:
    """A heading within a section, the finding in a sentence, and the blocks that show it."""

    level: ClassVar[int] = 3
    """The level of the heading."""
    heading: str
    blocks: tuple[Content, ...]
    finding: str = ""

    def html(self, name: str) -> str:
        """As a part of a section."""
        finding = f'<p class="finding">{prose(self.finding)}</p>\n' if self.finding else ""
        return f"<h{self.level}>{as_html(self.heading)}</h{self.level}>\n{finding}{html_of(self.blocks, name)}"

    def markdown(self) -> str:
        """As a heading with its blocks."""
        finding = f"**{as_text(self.finding)}**\n\n" if self.finding else ""
        return f"{'#' * self.level} {as_text(self.heading)}\n\n{finding}{markdown_of(self.blocks)}"


@dataclass(frozen=True)
class Section(Part):
    """A section of a page, to which the contents list leads."""

    level: ClassVar[int] = 2

    @property
    def anchor(self) -> str:
        """The id by which the contents list leads here."""
        return re.sub(r"[^a-z]+", "-", self.heading.lower())

    def html(self, name: str = "part") -> str:
        """As a section of a page."""
        return f'<section id="{self.anchor}">\n{super().html(f"{name}-{self.anchor}")}\n</section>\n'


@dataclass(frozen=True)
class Folded:
    """Details that are read on request; a printed page shows them."""

    summary: str
    blocks: tuple[Content, ...]

    def html(self, name: str) -> str:
        """As a part of a page that opens."""
        return f"<details>\n<summary>{as_html(self.summary)}</summary>\n{html_of(self.blocks, name)}\n</details>"

    def markdown(self) -> str:
        """As HTML that Markdown takes."""
        return f"<details>\n<summary>{as_html(self.summary)}</summary>\n\n{markdown_of(self.blocks)}\n\n</details>"


@dataclass(frozen=True)
class Facts:
    """The facts of an audit: labels and texts."""

    facts: tuple[tuple[str, str], ...]

    def html(self, name: str) -> str:
        """As a list of terms."""
        rows = [f"<div><dt>{as_html(label)}</dt><dd>{prose(text)}</dd></div>" for label, text in self.facts]
        return "\n".join([f'<dl class="facts" id="{name}">', "\n".join(rows), "</dl>"])

    def markdown(self) -> str:
        """As a list."""
        return "\n".join(f"- **{as_text(label)}**: {as_text(text)}" for label, text in self.facts)


@dataclass(frozen=True)
class Verdict:
    """A verdict of a gate, on what, and the numbers it rests on."""

    verdict: str
    title: str
    code: str
    text: str


@dataclass(frozen=True)
class Verdicts:
    """The verdict of a gate as a whole, and each of its verdicts."""

    verdict: str
    headline: str
    verdicts: tuple[Verdict, ...]

    def html(self, name: str) -> str:
        """As a headline and a list, in words, colors and shapes."""
        rows = [
            f'<li class="{_CLASSES[one.verdict]}"><span class="verdict">{_mark(one.verdict)} '
            f"{as_html(_capital(one.verdict))}</span> <span><strong>{prose(one.title)}</strong> "
            f"<code>{as_html(one.code)}</code><br>{prose(one.text)}</span></li>"
            for one in self.verdicts
        ]
        head = f'<p class="headline">{_mark(self.verdict)} {prose(self.headline)}</p>'
        start = f'<div class="verdicts {_CLASSES[self.verdict]}" id="{name}">'
        return "\n".join([start, head, "<ul>", "\n".join(rows), "</ul>", "</div>"])

    def markdown(self) -> str:
        """As a headline and a list."""
        lines = [
            f"- {_SYMBOLS[one.verdict]} **{as_text(_capital(one.verdict))}**: {as_text(one.title)} "
            f"({as_code(one.code)}). {as_text(one.text)}"
            for one in self.verdicts
        ]
        return "\n".join([f"**{_SYMBOLS[self.verdict]} {as_text(self.headline)}**\n", *lines])


def _mark(verdict: str) -> str:
    """The shape of a verdict, beside its word."""
    return f'<svg class="mark" viewBox="0 0 16 16" aria-hidden="true">{_MARKS[verdict]}</svg>'


def _capital(text: str) -> str:
    """A text that starts with a capital letter, but for the p of p-values."""
    return text if text.startswith("p,") or text == "p" else capitalized(text)


@dataclass(frozen=True)
class Findings:
    """A sentence for each feature, and remarks on who is not compared."""

    findings: tuple[Finding, ...]
    remarks: tuple[Finding, ...] = ()

    def html(self, name: str) -> str:
        """As a list."""
        kinds = [one.answer if one.answer in {"differ", "alike"} else "open" for one in self.findings]
        kinds += ["remark"] * len(self.remarks)
        rows = [
            f'<li class="{kind}"><strong>{prose(one.lead)}</strong> {prose(one.text)}</li>'
            for kind, one in zip(kinds, (*self.findings, *self.remarks), strict=True)
        ]
        return "\n".join([f'<ul class="findings" id="{name}">', "\n".join(rows), "</ul>"])

    def markdown(self) -> str:
        """As a list."""
        return "\n".join(f"- **{as_text(one.lead)}** {as_text(one.text)}" for one in (*self.findings, *self.remarks))


@dataclass(frozen=True)
class Table:
    """A table of texts, with notes on its cells and a remark below it.

    The first column names the rows; `codes` are names in code, shown beside it. Heads of columns are words, or the
    title and the name in code of a metric.
    """

    table: pl.DataFrame
    notes: tuple[Note, ...] = ()
    remark: str = ""
    codes: tuple[str | None, ...] = ()
    heads: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    caption: str = ""

    def html(self, name: str) -> str:
        """As a table that becomes a list of rows on narrow screens."""
        heads: list[str] = []
        for number, column in enumerate(self.table.columns):
            words, code = self._words(column)
            kind = _class(self._classes[column][0] if number else "")
            heads.append(f'<th scope="col"{kind}>{as_html(words)}{_code_below(code)}</th>')
        rows = [self._row(number, values) for number, values in enumerate(self.table.rows())]
        caption = f"<caption>{prose(self.caption)}</caption>\n" if self.caption else ""
        below = [f"<sup>{number}</sup> {prose(text)}." for text, number in self._marks.items()]
        if self.remark:
            below.append(prose(self.remark))
        short = " short" if len(rows) <= _ON_A_PAGE else ""
        notes = f'\n<p class="note">{"<br>".join(below)}</p>' if below else ""
        start = f'<div class="table{short}" id="{name}">\n<table>\n{caption}<thead><tr>{"".join(heads)}</tr></thead>'
        return "\n".join([start, "<tbody>", "\n".join(rows), "</tbody>", f"</table>{notes}", "</div>"])

    @cached_property
    def _marks(self) -> dict[str, int]:
        """The numbers of notes."""
        return {text: number for number, text in enumerate(dict.fromkeys(text for _, _, text in self.notes), 1)}

    @cached_property
    def _marked(self) -> dict[tuple[str, int], str]:
        """The note on each cell."""
        return {(column, row): text for column, row, text in self.notes}

    @cached_property
    def _classes(self) -> dict[str, tuple[str, str]]:
        """The classes of the cells of each column: those of numbers, and those of sentences."""
        classes: dict[str, tuple[str, str]] = {}
        for column in self.table:
            texts = [_text_of(value) for value in column if value not in {None, ""}]
            are_numbers = column.dtype.is_numeric() or (bool(texts) and all(map(_NUMBER.fullmatch, texts)))
            has_sentences = max(map(len, texts), default=0) > _SENTENCE
            classes[column.name] = "number" if are_numbers else "", "prose" if has_sentences else ""
        return classes

    def _words(self, column: str) -> tuple[str, str]:
        """The head of a column in words, and its name in code."""
        return self.heads.get(column) or (_capital(worded(column)), "")

    def _row(self, number: int, values: Sequence[object]) -> str:
        """A row, whose first cell is its head."""
        longest = _LONG_IN_WIDE if self.table.width >= _WIDE_TABLE else _LONG_WORD
        cells: list[str] = []
        for column, value in zip(self.table.columns, values, strict=True):
            note = self._marked.get((column, number))
            text = _in_cell(_text_of(value), f"<sup>{self._marks[note]}</sup>" if note else "")
            long = "long" if max(map(len, _text_of(value).split()), default=0) > longest else ""
            if not cells:
                code = self.codes[number] if self.codes else None
                cells.append(f'<th scope="row"{_class(long)}>{text}{_code_below(code)}</th>')
                continue
            kind, sentences = self._classes[column]
            named = _class(kind, "worse" if note == WORSE else "", long, sentences)
            cells.append(f'<td{named} data-label="{as_html(self._words(column)[0])}"><span>{text}</span></td>')
        return f"<tr>{''.join(cells)}</tr>"

    def texts(self, nothing: str = NOTHING) -> pl.DataFrame:
        """The cells as visible texts, with the numbers of their notes."""
        columns = {
            column.name: [visible(_text_of(cell, nothing)) for cell in column] for column in visible_texts(self.table)
        }
        for column, row, note in self.notes:
            columns[column][row] += f" [{self._marks[note]}]"
        return pl.DataFrame(columns, dict.fromkeys(columns, pl.String))

    def below(self) -> list[str]:
        """The notes with their numbers, and the remark."""
        return [f"[{number}] {text}." for text, number in self._marks.items()] + [self.remark] * bool(self.remark)

    def markdown(self) -> str:
        """As a Markdown table, with its notes and its remark below."""
        words_and_codes = map(self._words, self.table.columns)
        heads = [as_text(words) + (f" {as_code(code)}" if code else "") for words, code in words_and_codes]
        lines = [f"| {' | '.join(heads)} |", markdown_row(["---"] * len(heads))]
        for row, (first, *others) in enumerate(self.texts().rows()):
            code = f" {as_code(name)}" if self.codes and (name := self.codes[row]) else ""
            lines.append(f"| {' | '.join([as_text(first) + code, *map(as_text, others)])} |")
        above = [f"*{as_text(self.caption)}*"] if self.caption else []
        return "\n\n".join([*above, "\n".join(lines), *map(as_text, self.below())])


def _class(*names: str) -> str:
    """The attribute of an element with classes, some of which are empty."""
    given = " ".join(filter(None, names))
    return f' class="{given}"' if given else ""


def _code_below(code: str | None) -> str:
    """A name in code below words, which may go on in a new line after an underscore; nothing without one."""
    return f" <code>{as_html(code).replace('_', '_<wbr>')}</code>" if code else ""


def _text_of(value: object, nothing: str = NOTHING) -> str:
    """The value of a cell as text."""
    if value is None:
        return nothing
    if isinstance(value, float):
        return number_in_digits(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _in_cell(text: str, mark: str) -> str:
    """The text of a cell as HTML, with the mark of its note; an interval stands below its value."""
    interval = _INTERVAL.fullmatch(text)
    if interval is None:
        return prose(text) + mark
    return f"{prose(interval[1])}{mark} <small>{as_html(interval[2]).replace(' ', '&nbsp;')}</small>"


@dataclass(frozen=True)
class Figure:
    """A picture of a result, and a table of the same for files without pictures."""

    result: Any
    title: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    instead: Table | None = None
    units: Units = field(default_factory=dict[str, str])

    def html(self, name: str) -> str:
        """As a picture for wide screens and paper, and one for narrow screens."""
        pictures: list[str] = []
        try:
            for kind, width in (("wide", _WIDE), ("narrow", _NARROW)):
                picture = picture_of(self.result, units=self.units, **self.options)
                chart = picture.finished(self.title, width)
                pictures.append(f'<div class="{kind}">{themed_svg(chart, f"{name}-{kind}")}</div>')
        except ArgumentError as error:
            if "pip install" in str(error):
                raise
            nothing = f"{self.title}: there is nothing to draw, or too much for a picture."
            return self.instead.html(name) if self.instead else f"<p>{prose(nothing)}</p>"
        return "\n".join([f'<figure id="{name}">', *pictures, "</figure>"])

    def markdown(self) -> str:
        """As its table, or nothing."""
        return self.instead.markdown() if self.instead else ""


@dataclass(frozen=True)
class Code:
    """Lines of code."""

    text: str

    def html(self, name: str) -> str:
        """As preformatted text."""
        return f'<pre id="{name}"><code>{escape(visible(self.text, lines=True))}</code></pre>'

    def markdown(self) -> str:
        """As an indented block."""
        lines = visible(self.text, lines=True).split("\n")
        return "\n".join(map("    {}".format, lines))

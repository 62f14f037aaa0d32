"""Escaping of users' names for display: characters that are invisible, or control a terminal or a page, become escapes.

Results keep names unchanged. Names in texts, tables and pictures for display are escaped here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape

import polars as pl

_INVISIBLE = (
    r"\x00-\x1f\x7f-\x9f"  # controls: terminals obey them, and XML forbids most
    r"\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # format, and order of writing
    r"\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # letters without a shape
    r"\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # no characters
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
)
_SCRIPTS = r"[\u0600-\u1fff\u20d0-\uffff\U00010000-\U000dffff]"
"""Scripts and symbols in which joiners are part of the spelling."""
_ESCAPED = re.compile(rf"[{_INVISIBLE}]|(?<!{_SCRIPTS})[\u200c\u200d]|[\u200c\u200d](?!{_SCRIPTS})")
_ESCAPED_BUT_LINES = re.compile(rf"(?!\n)(?:{_ESCAPED.pattern})")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_CELL = ' style="text-align: left; vertical-align: top; padding: 0.25em 0.75em 0.25em 0.25em"'
"""Jupyter aligns cells to the right, as is right for numbers, marimo has no space between them; colors are theirs."""


def visible(text: str, *, lines: bool = False) -> str:
    r"""A text with invisible characters as Python escapes; with `lines`, line breaks are kept.

    >>> visible("red\x1b[31m, \u202eleft")
    'red\\x1b[31m, \\u202eleft'
    """
    return (_ESCAPED_BUT_LINES if lines else _ESCAPED).sub(_escape, text)


def without_tags(text: str) -> str:
    r"""A visible text without tags, even inside a script of a page.

    >>> without_tags("<18, </script>")
    '<18, \\x3c/script>'
    """
    return _TAG.sub(_escape, visible(text))


def as_html(text: str) -> str:
    """A text, escaped for HTML."""
    return escape(visible(text))


def as_text(text: str) -> str:
    """A text, escaped for Markdown and HTML."""
    escaped = re.sub(r"([\\`*_~|\[\]#{}$@^]|:(?=//)|(?<=www)\.)", r"\\\1", visible(text))
    return escape(escaped, quote=False)


def display(
    kind: str, columns: Mapping[str, Sequence[str]], *, name: str = "", remark: str = "", call: str = ""
) -> str:
    """An object as HTML, without a style that reaches beyond it.

    Args:
        kind: What the object is, as its representation says.
        columns: The table, by headings.
        name: The name of the object.
        remark: A sentence on it.
        call: The call, or its arguments in brackets.
    """
    title = " ".join(part for part in (f"<strong>{as_html(name)}</strong>" if name else "", as_html(kind)) if part)
    parts = [f"<p>{title}</p>"]
    if remark:
        parts.append(f"<p>{as_html(remark)}</p>")
    filled = {heading: cells for heading, cells in columns.items() if any(cells)}
    if filled:
        head = "".join(f"<th{_CELL}>{as_html(heading)}</th>" for heading in filled)
        rows: list[str] = []
        for cells in zip(*filled.values(), strict=True):
            rows.append("<tr>" + "".join(f"<td{_CELL}>{as_html(cell)}</td>" for cell in cells) + "</tr>")
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>")
    if call:
        before = "with" if call.startswith("(") else "as"
        parts.append(f"<p>Call it {before} <code>{as_html(call)}</code></p>")
    return f"<div>{''.join(parts)}</div>"


def markdown_row(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(map(as_text, cells))} |"


def visible_texts(frame: pl.DataFrame, change: Callable[[str], str] = visible) -> pl.DataFrame:
    """A frame with visible (or otherwise changed) texts; distinct texts of a column stay distinct."""
    columns = [column for column in frame if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum)]
    texts = list[pl.Series]()
    for column in columns:
        distinct = column.unique(maintain_order=True).drop_nulls().to_list()
        shown = dict(zip(distinct, renamed(distinct, change), strict=True))
        texts.append(pl.Series(column.name, [shown.get(text) for text in column], dtype=pl.String))
    return frame.with_columns(texts)


def renamed(names: Sequence[str], change: Callable[[str], str] = visible) -> list[str]:
    """Visible (or otherwise changed) names that stay distinct."""
    # a dictionary keeps the order and finds a name at once
    shown: dict[str, None] = {}
    for name in names:
        changed = change(name)
        text, number = changed, 2
        while text in shown:
            text, number = f"{changed} [{number}]", number + 1
        shown[text] = None
    return list(shown)


def _escape(match: re.Match[str]) -> str:
    text = match[0]
    return rf"\x{ord(text):02x}" if text == "<" else text.encode("unicode_escape").decode()

"""Objects as notebooks show them: what one is, a table of its members or settings, and the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidyfair.escapes import as_html

_CELL = ' style="text-align: left; vertical-align: top; padding: 0.25em 0.75em 0.25em 0.25em"'
"""Jupyter aligns cells to the right, as is right for numbers, marimo has no space between them; colors are theirs."""


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

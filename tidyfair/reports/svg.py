"""Charts as SVG that is part of a page: text stays text, and colors follow the page, light or dark."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

from tidyfair.errors import ArgumentError
from tidyfair.escapes import visible
from tidyfair.reports.theme import FONT, LIGHT

_SVG = "http://www.w3.org/2000/svg"
_VARIABLE_OF = {value: f"var(--{name}, {value})" for name, value in LIGHT.items()}
_NOT_NEEDED = re.compile(r"class|pointer-events|role|aria-.*|font-family")
"""Attributes of marks that a page does without: the picture has one description, and one font."""
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def themed_svg(chart: Any, name: str) -> str:
    """The SVG of an altair chart, to be written into HTML as it is.

    Colors are CSS variables with the light colors as fallback, such as `var(--ink, #1b1f24)`; the page defines them,
    by `variables` of `tidyfair.reports.theme`. Ids start with `name`, which no other picture of the page may have.

    Raises:
        ArgumentError: Where vl-convert-python is not installed.
    """
    specification = chart.to_dict(validate=False)
    root = ET.fromstring(_drawn(specification))  # noqa: S314 - drawn here
    ET.register_namespace("", _SVG)
    background = root.find(f"{{{_SVG}}}rect")
    if background is not None:
        root.remove(background)
    _clean(root, name)
    root.set("role", "img")
    root.set("aria-label", visible(str(chart.description)))
    root.set("font-family", FONT)
    # other fonts are wider than that of the drawing
    root.set("style", "max-width: 100%; height: auto; overflow: visible; font-variant-numeric: tabular-nums")
    wanted = float(specification.get("usermeta", {}).get("width", 0))
    if wanted > float(root.get("width", "0")):
        # as wide as asked, where marks do not fill the picture
        root.set("width", f"{wanted:g}")
        root.set("viewBox", f"0 0 {wanted:g} {root.get('height')}")
    return ET.tostring(root, encoding="unicode")


def _drawn(specification: dict[str, Any]) -> str:
    """The SVG of a specification as it is drawn."""
    try:
        import vl_convert  # noqa: PLC0415 - only where pictures are drawn
    except ModuleNotFoundError as error:
        msg = f"Pictures of pages are drawn by vl-convert-python: pip install 'tidyfair[report]' ({error})."
        raise ArgumentError(msg) from error
    return vl_convert.vegalite_to_svg(specification)


def _clean(element: ET.Element, name: str) -> None:
    """Give colors and ids their names, and leave out attributes and elements that show nothing."""
    for key, value in list(element.attrib.items()):
        if _NOT_NEEDED.fullmatch(key):
            del element.attrib[key]
        elif key == "id":
            element.set(key, f"{name}-{value}")
        else:
            themed = _VARIABLE_OF.get(value.lower(), value)
            renamed = _REFERENCE.sub(rf"url(#{name}-\1)", themed)
            element.set(key, _NUMBER.sub(_rounded, renamed))
    for part in list(element):
        _clean(part, name)
        if _shows_nothing(part):
            element.remove(part)


def _rounded(match: re.Match[str]) -> str:
    """A number with two decimals at most."""
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _shows_nothing(element: ET.Element) -> bool:
    """True for groups without parts, paths without paint, and texts without letters."""
    tag = element.tag.rpartition("}")[2]
    if tag == "g":
        return len(element) == 0
    if tag == "text":
        return len(element) == 0 and not element.text
    painted = {element.get("fill"), element.get("stroke")} - {None, "none", "transparent"}
    return tag == "path" and not painted

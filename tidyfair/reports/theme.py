"""Colours and type, light and dark: one list for charts, the SVG in pages, and the style of pages."""

from __future__ import annotations

from importlib.resources import files

LIGHT = {
    "ink": "#1b1f24", "muted": "#667080", "rule": "#dfe3e8", "background": "#ffffff", "accent": "#0072b2",
    "good": "#00795a", "bad": "#c2410c", "open": "#9a6700", "series-2": "#d55e00", "series-3": "#009e73",
    "series-4": "#cc79a7", "series-5": "#e69f00", "series-6": "#56b4e9", "series-8": "#8c6d31",
}  # fmt: skip
"""Colours of pictures by what they mean. No two are equal, so that each can be told by its value in an SVG."""
DARK = {
    "ink": "#e8eaed", "muted": "#9aa4b2", "rule": "#343a42", "background": "#14171a", "accent": "#56b4e9",
    "good": "#3fbf94", "bad": "#ff8a5b", "open": "#e3b341", "series-2": "#f5793a", "series-3": "#2fc79a",
    "series-4": "#e6a1c8", "series-5": "#f2c14e", "series-6": "#8fb8ff", "series-8": "#c9a35b",
}  # fmt: skip
"""The same colors on a dark page."""
SERIES = [
    LIGHT[name]
    for name in ("accent", "series-2", "series-3", "series-4", "series-5", "series-6", "ink", "series-8")
]  # fmt: skip
"""Eight colors of series, after Okabe and Ito (2008): told apart by the color-blind too."""
FONT = "system-ui, sans-serif"


def variables(colours: dict[str, str]) -> str:
    """The colors as declarations of CSS variables, which `themed_svg` reads.

    >>> variables({"ink": "#1b1f24"})
    '--ink: #1b1f24;'
    """
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def text_of_file(name: str) -> str:
    """The text of a script or a style beside this module."""
    return files("tidyfair.reports").joinpath(name).read_text("utf-8")


def page_style(*names: str) -> str:
    """The style of a page with the colors of both themes; print is always light."""
    light, dark = variables(LIGHT), variables(DARK)
    colours = f"""
:root {{ color-scheme: light dark; {light} --wash: #f6f7f9;
  --shade: rgb(0 0 0 / 0.2); }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} --wash: #1c2025;
  --shade: rgb(255 255 255 / 0.22); }} }}
"""
    return colours + "".join(map(text_of_file, names)).replace("FONT", FONT)

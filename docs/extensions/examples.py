"""Shows the examples of docstrings as code, on the pages of the reference."""  # noqa: INP001 - read by its path

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from griffe import Extension

if TYPE_CHECKING:
    from griffe import Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*(?:\n\n>>> .*(?:\n.+)*)*", re.MULTILINE)


class Examples(Extension):
    """Puts fences around examples, which Markdown would otherwise take for quotes in quotes."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of what was just read."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)

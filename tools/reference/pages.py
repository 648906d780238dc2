"""The text of a page of docs/ as it is built.

A comment `<!-- generated: NAME -->`, and the line below it that tells a reader of the source so, are replaced by what
`reference.NAME.page()` returns. A link to a file of the checkout that
is no page, such as a report's table, becomes its words and the file's path.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

INSTEAD = "*`nox -s docs` makes this part from the code, and builds it into `build/docs`.*"
GENERATED = re.compile(rf"^<!-- generated: (\w+) -->\n{re.escape(INSTEAD)}$", re.MULTILINE)
RELATIVE = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(?:#[^)]*)?\)")


def filled(text: str) -> str:
    """The text of a page with its generated parts."""
    return GENERATED.sub(lambda match: importlib.import_module(f"reference.{match[1]}").page(), text)


def inside(text: str, page: Path, pages: Path) -> str:
    """The text of a page, in which no link leads out of the folder of pages. Figures stay, since Sphinx copies them."""

    def resolved(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if target.is_relative_to(pages):
            return link[0]
        return f"{link[1]} (`{target.relative_to(pages.parent)}`)"

    return RELATIVE.sub(resolved, text)

"""The text of a page of docs/ as it is built.

The part between the comments `<!-- generated: NAME -->` and `<!-- end of NAME -->` is what `reference.NAME.page()` returns. Git
holds it, so that a clone can be read without Sphinx, and `PYTHONPATH=tools python -m reference.pages PAGE` writes it anew. A
link to a file of the checkout that is no page, such as a report's table, becomes its words and the file's path.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

HELD = re.compile(r"^<!-- generated: (\w+) -->\n(.*?)^<!-- end of \1 -->$", re.MULTILINE | re.DOTALL)
RELATIVE = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(?:#[^)]*)?\)")


def filled(text: str) -> str:
    """The text of a page with its generated parts."""
    return HELD.sub(_made, text)


def renewed(text: str) -> str:
    """The text of a page whose held parts are made anew."""
    return HELD.sub(lambda part: f"<!-- generated: {part[1]} -->\n\n{_made(part)}\n\n<!-- end of {part[1]} -->", text)


def _made(part: re.Match[str]) -> str:
    text: str = importlib.import_module(f"reference.{part[1]}").page()
    return text


def inside(text: str, page: Path, pages: Path) -> str:
    """The text of a page, in which no link leads out of the folder of pages. Figures stay, since Sphinx copies them."""

    def resolved(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if target.is_relative_to(pages):
            return link[0]
        return f"{link[1]} (`{target.relative_to(pages.parent)}`)"

    return RELATIVE.sub(resolved, text)


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")

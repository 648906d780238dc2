"""The text of a page of docs/ as it is built.

The part between the comments `<!-- generated: NAME -->` and `<!-- end of NAME -->` is what `reference.NAME.page()` returns. Git
holds it, so that a clone can be read without Sphinx, and `PYTHONPATH=tools python -m reference.pages PAGE` writes it anew. A
link to a file of the checkout that is no page, such as a report's table, becomes its words and the file's path; where the page
of that report is built too (`nox -s site`), the link leads to its table there.
"""

from __future__ import annotations

import html
import importlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

HELD = re.compile(r"^<!-- generated: (\w+) -->\n(.*?)^<!-- end of \1 -->$", re.MULTILINE | re.DOTALL)
RELATIVE = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(?:#[^)]*)?\)")
HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
TUTORIALS = "## Tutorials\n"
"""The heading of the first page before which the built pages are listed."""


def filled(text: str) -> str:
    """Return the text of a page with its generated parts."""
    return HELD.sub(_made, text)


def renewed(text: str) -> str:
    """Return the text of a page with its generated parts made anew."""
    return HELD.sub(lambda part: f"<!-- generated: {part[1]} -->\n\n{_made(part)}\n\n<!-- end of {part[1]} -->", text)


def _made(part: re.Match[str]) -> str:
    text: str = importlib.import_module(f"reference.{part[1]}").page()
    return text


def built_pages(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the page of each report or probe in these folders, by the report's name."""
    found = (path for folder in folders for name in ("probe.html", "report.html") for path in sorted(folder.glob(f"*/{name}")))
    return {path.parent.name: path for path in found}


def listed(text: str, built: Mapping[str, Path]) -> str:
    """Return the first page with a list of the pages that are built beside it, each by its first sentence."""
    rows = []
    for name, path in built.items():
        heading = HEADING.search(path.read_text(encoding="utf-8"))
        sentence = " ".join(html.unescape(TAG.sub("", heading[1])).split()) if heading else name
        rows.append(f'- <a href="{name}/{path.name}">{html.escape(sentence)}</a>')
    section = "\n".join(("## Pages to look at\n", *rows, f"\n{TUTORIALS}"))
    return text.replace(TUTORIALS, section, 1) if rows else text


def inside(text: str, page: Path, pages: Path, built: Mapping[str, Path] = {}) -> str:
    """The text of a page, in which a link out of the folder of pages leads to a built page or is no link. Figures stay, since
    Sphinx copies them."""

    def resolved(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if target.is_relative_to(pages):
            return link[0]
        parts = target.relative_to(pages.parent).parts
        if parts[0] == "reports" and len(parts) > 1 and (path := built.get(parts[1])):
            table = f"table-{target.stem}"
            anchor = f"#{table}" if f'id="{table}"' in path.read_text(encoding="utf-8") else ""
            place = os.path.relpath(pages / parts[1] / path.name, page.parent)
            return f'<a href="{place}{anchor}">{link[1]}</a>'
        shown = f"`{target.relative_to(pages.parent)}`"
        return f"{link[1]}: {shown}" if text[: link.start()].endswith("(") else f"{link[1]} ({shown})"

    return RELATIVE.sub(resolved, text)


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")

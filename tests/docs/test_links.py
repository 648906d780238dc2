"""Every link from one document to another, or to a file, leads somewhere; and none uses a word that was given up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reference.pages import HELD

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "reports" / name / "README.md" for name in (".", "probe")),
        *ROOT.glob("scenarios/*/README.md"),
    ]
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INCLUDED = re.compile(r"^```\{include\} (\S+)$", re.MULTILINE)
GIVEN_UP = re.compile(
    r"\b(ask_once|asked[-_]in|moot|unnoticed|hand(ed|s)? on|reopen(s|ed)?|rulers?|decoys?|twins?|weather|lend(s|ing)?)\b",
    re.IGNORECASE,
)
ANCHOR = re.compile(r'^<a id="([^"]+)"></a>$', re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors_of(text: str) -> set[str]:
    """What a place is linked by: a heading as GitHub and MyST do it, or a report's table by its name."""
    headings = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in HEADING.findall(text)}
    return headings | set(ANCHOR.findall(text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_link_of_a_document_leads_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = [link for link in (*LINK.findall(text), *INCLUDED.findall(text)) if "://" not in link]
    broken = []
    for link in links:
        path, _, anchor = link.partition("#")
        target = (document.parent / path) if path else document
        if not target.exists() or (anchor and anchor not in anchors_of(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_uses_one_word_for_one_thing(document: Path) -> None:
    """The changelog alone says what things were called before. What a page takes from the code is the code's to say."""
    text = "" if document.name == "CHANGELOG.md" else document.read_text(encoding="utf-8")
    assert GIVEN_UP.findall(HELD.sub("", text)) == []


def test_each_test_that_security_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert named and all((ROOT / name).exists() for name in named)

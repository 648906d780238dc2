"""Takes the numbers of the documents, as they are now, into tests/docs/numbers.toml: `python tools/doc_numbers.py`.

The tests or the reason that the list gives for a section are kept. A new section is marked as read by hand, until somebody says
what holds it.
"""

from __future__ import annotations

import json
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from quoted_numbers import DOCUMENTS, reports_named_in, sections_of, unheld  # noqa: E402

LIST = ROOT / "tests" / "docs" / "numbers.toml"
BY_HAND = {"why": "by hand: read off the run when the page was written"}


def updated(text: str) -> str:
    """Return the list as it is to be for the documents as they are."""
    listed: dict[str, Any] = tomllib.loads(text)
    reports = listed.pop("reports")
    kept = {(document, entry["section"]): entry for document, entries in listed.items() for entry in entries}
    lines = [text[: text.index("[[")].rstrip()]
    for path in DOCUMENTS:
        name, page = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        for section in sections_of(page):
            if numbers := unheld(section, reports_named_in(page) | set(reports.get(name, ()))):
                lines += ["", *_entry(name, section.heading, numbers, kept.get((name, section.heading), BY_HAND))]
    return "\n".join(lines) + "\n"


def _entry(document: str, section: str, numbers: list[str], reason: dict[str, Any]) -> list[str]:
    wrapped = textwrap.wrap(" ".join(numbers), 120, break_on_hyphens=False, break_long_words=False)
    text = json.dumps(wrapped[0]) if len(wrapped) == 1 else '"""\n' + "\n".join(wrapped) + '"""'
    held = ["held = [", *(f"  {json.dumps(test)}," for test in reason.get("held", ())), "]"]
    why = [f"why = {json.dumps(reason.get('why', ''), ensure_ascii=False)}"]
    return [
        f'[["{document}"]]',
        f"section = {json.dumps(section, ensure_ascii=False)}",
        f"numbers = {text}",
        *(held if "held" in reason else why),
    ]


if __name__ == "__main__":
    LIST.write_text(updated(LIST.read_text(encoding="utf-8")), encoding="utf-8")

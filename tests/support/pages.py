"""A report's page beside the one that git holds of the same run: what came into the code since stands in no committed page."""

from __future__ import annotations

import re

TABLE = re.compile(r'(<a id="([^"]+)"></a>\n\n)(.*?)(\n<!-- end of \2 -->\n\n?)', re.DOTALL)
HEADING = re.compile(r"^## .*\n\n?", re.MULTILINE)
IMAGE = re.compile(r"^!\[.*\]\((figures/[^)]+)\)\n\n?", re.MULTILINE)
CUT = re.compile(r"- \d+ of \d+ rows are shown; ")
CELLS = re.compile(r"(?<!\\)\|")


def as_committed(page: str, committed: str) -> str:
    """Return the page without the sections, tables, figures, columns, rows and notes that the committed one does not have.

    It is the committed page where that still shows what the run gives. A table, a row or a column that is gone, or has another
    number, is missed. The page has all rows of its tables; the committed one can have the first rows and a note that says so.
    """
    tables = {match[2]: match[3] for match in TABLE.finditer(committed)}

    def fitted(match: re.Match[str]) -> str:
        return f"{match[1]}{_fitted(match[3], tables[match[2]])}{match[4]}" if match[2] in tables else ""

    headings = {match[0].strip() for match in HEADING.finditer(committed)}
    images = {match[1] for match in IMAGE.finditer(committed)}
    page = IMAGE.sub(lambda match: match[0] if match[1] in images else "", TABLE.sub(fitted, page))
    return HEADING.sub(lambda match: match[0] if match[0].strip() in headings else "", page)


def _fitted(table: str, committed: str) -> str:
    lines = committed.splitlines()
    names, new = (_cells(next(line for line in text.splitlines() if line[:1] == "|")) for text in (committed, table))
    places = iter(range(len(new)))
    columns = [next((place for place in places if new[place] == name), -1) for name in names]
    shown = [_row(line, columns) if line[:1] == "|" else line for line in table.splitlines()]
    cut = [line for line in lines if CUT.match(line)]
    text = "\n".join(line for line in shown if line in lines).rstrip("\n") + "\n"
    between = "\n" if cut and text.splitlines()[-1][:1] == "|" else ""
    return text + between + "".join(f"{line}\n" for line in cut)


def _cells(line: str) -> list[str]:
    return CELLS.split(line)[1:-1]


def _row(line: str, columns: list[int]) -> str:
    cells = _cells(line)
    return "".join(f"|{cells[place]}" for place in columns) + "|"

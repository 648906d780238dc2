"""The numbers that a document says, and where each comes from: a committed report, or a line of `tests/docs/numbers.toml`.

A row of a report that the document names holds an estimate with its interval, a share k/n, and a number of three digits. Where
the paragraph names architectures, packs, plans or models, the row must be about one of them. So a number with another
population is missed. All other numbers of a section are listed, with what holds them.

An estimate that a row holds goes with what the row says of it: the mark of an interval that is too narrow, its unit, the N that
the text gives, and a verdict that leaves it open or turns it round (`untold`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = (*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *sorted((ROOT / "docs").rglob("*.md")))
HIDDEN = re.compile(
    r"<!--.*?-->|<a id[^>]*>|\]\([^)]*\)|`[^`\n]*`|^\s*\d+\. |\d{4}\.\d{5}|\b95%(?= interval|\.|;| \[)",
    re.DOTALL | re.MULTILINE,
)
"""What holds no measured number: comments, addresses, names of code, numbers of steps and papers, the level of intervals."""
REPORT = re.compile(r"(?:reports/([\w.+-]+)/)|(?:results/([\w.-]+)\.zip)")
NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?%?"
INTERVAL = re.compile(rf"({NUMBER})(?: points| ms| s| failures)?(?: ± [\d.,]+)? ?\[({NUMBER}), ({NUMBER})\]")
CELLS = re.compile(rf"(?<=\| )({NUMBER})(?= \| ({NUMBER}) \| ({NUMBER}) \|)")
"""An estimate and its bounds in three cells of a row."""
SHARE = re.compile(
    r"(?<![\w.-])(\d+)(?:/| of (?:all |the |its |these )?)(\d[\d,]*)(?: = [\d.]+%)?(?: \[[\d.%, ]+\])?(?![\w%]|\.\d)"
)
"""k of n, or k/n, with its interval or without."""
ALONE = re.compile(rf"(?<![\w.:-]){NUMBER}(?![\w]|\.\d|-\w)")
HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
NAME = re.compile(r"`([\w.:-]+)`")
TELLING = 3
"""Digits of a number that does not stand in a row by chance."""
NARROW = "†"
Bounds = tuple[float, float, float]


@dataclass(frozen=True)
class Section:
    """A part of a document below one heading, as it was written."""

    heading: str
    text: str

    @property
    def paragraphs(self) -> list[str]:
        return re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", self.text)


def sections_of(text: str) -> Iterator[Section]:
    """The sections of a document, in order; two of one heading are numbered. A part made from the code is left out."""
    text = re.sub(r"^(?:```.*?^```|<!-- generated: (\w+) -->.*?^<!-- end of \1 -->)$", "", text, flags=re.DOTALL | re.MULTILINE)
    parts = HEADING.split(text)
    seen: dict[str, int] = {}
    for heading, body in [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]:
        seen[heading] = seen.get(heading, 0) + 1
        yield Section(heading if seen[heading] == 1 else f"{heading} ({seen[heading]})", body)


def reports_named_in(text: str) -> set[str]:
    """The committed reports that a document leads to, itself or by the run that they are made of."""
    names = {name for names in REPORT.findall(text) for name in names if name}
    return {name for name in names if (ROOT / "reports" / name).is_dir()}


@cache
def table_rows(report: str) -> list[str]:
    """The rows of all tables of a committed report, each behind the title of its table, which may name the arm."""
    rows, title = [], ""
    for path in sorted((ROOT / "reports" / report).rglob("*.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            title = line if line.startswith("#") else title
            rows += [f"{title} {line}"] if line.startswith("|") else []
    return rows


@cache
def rows_of(report: str) -> dict[Bounds | tuple[int, int], list[str]]:
    """The rows of a committed report by the estimates with intervals, and the shares k/n, that stand in them."""
    rows: dict[Bounds | tuple[int, int], list[str]] = {}
    for row in table_rows(report):
        for match in INTERVAL.finditer(row):
            rows.setdefault(bounds_of(match), []).append(row)
        for match in SHARE.finditer(row):
            rows.setdefault(share_of(match), []).append(row)
        for match in CELLS.finditer(row):
            rows.setdefault(bounds_of(match), []).append(row)
    return rows


@cache
def rows_with(report: str, number: str) -> list[str]:
    """The rows of a committed report in which a number stands by itself."""
    alone = re.compile(rf"(?<![\w.,]){re.escape(number)}(?![\w%]|[.,]\d)")
    return [row for row in table_rows(report) if alone.search(row.replace(",", ""))]


def share_of(match: re.Match[str]) -> tuple[int, int]:
    return int(match[1]), int(match[2].replace(",", ""))


def bounds_of(match: re.Match[str]) -> Bounds:
    value, low, high = (float(group.replace(",", "").replace("−", "-").rstrip("%")) for group in match.groups())
    return value, low, high


@dataclass(frozen=True)
class Rounded:
    """An estimate and its interval as a document says them: `halves` are half a unit of each one's last digit."""

    bounds: Bounds
    halves: Bounds

    @classmethod
    def of(cls, match: re.Match[str]) -> Rounded:
        digits = [len(group.rstrip("%").partition(".")[2]) for group in match.groups()]
        value, low, high = (0.5 * 10**-count + 1e-9 for count in digits)
        return cls(bounds_of(match), (value, low, high))

    def is_of(self, row: tuple[float, ...]) -> bool:
        """Whether these are a row's, or the same difference told of the other side."""
        if len(row) != len(self.bounds):
            return False
        turned = (-row[0], -row[2], -row[1])
        return any(
            all(abs(stated - there) <= half for stated, there, half in zip(self.bounds, bounds, self.halves, strict=True))
            for bounds in (row, turned)
        )


def unheld(section: Section, reports: set[str]) -> list[str]:
    """The numbers of a section that no row of these reports holds, in order."""
    return [number for paragraph in section.paragraphs for number in _unheld(paragraph, section.heading, reports)]


def _unheld(paragraph: str, heading: str, reports: set[str]) -> Iterator[str]:
    names = set(NAME.findall(f"{heading} {paragraph}"))
    text = " ".join(HIDDEN.sub(" ", paragraph).split())

    def about(rows: Iterable[str]) -> bool:
        return any(not names or _about(row, names) for row in rows)

    def estimate(match: re.Match[str]) -> str:
        rounded = Rounded.of(match)
        rows = (row for report in reports for bounds, rows in rows_of(report).items() if rounded.is_of(bounds) for row in rows)
        return " " if about(rows) else f" <{match[0].replace(' ', '')}> "

    def share(match: re.Match[str]) -> str:
        return " " if about(row for report in reports for row in rows_of(report).get(share_of(match), ())) else match[0]

    text = INTERVAL.sub(estimate, SHARE.sub(share, text))
    for match in re.finditer(r"<([^>]*)>|" + ALONE.pattern, text):
        number = match[0].rstrip(",").replace(",", "").replace("−", "-")
        if (
            match[1]
            or len(re.sub(r"\D", "", number).lstrip("0")) < TELLING
            or not about(row for report in reports for row in rows_with(report, number))
        ):
            yield match[1] or match[0].rstrip(",")


def _about(row: str, names: set[str]) -> bool:
    """Whether a row is about something that is named."""
    return any(name in re.split(r"[|\s,()]+", row) for name in names)


# What goes with a number: its mark, its unit, its N and its verdict

OPEN_VERDICTS = {
    "inconclusive": ("inconclusive",),
    "contradicted": ("contradict", "contrary"),
    "cannot be decided": ("decide",),
}
"""Verdict of a row -> the words of which a sentence with its number has one."""
NUMBERS_OF = re.compile(
    r"\(N = (\d+)\b|(?:\(|\b(?:in|over|of) )(?:the )?(\d[\d,]*) (?:pairs|trials|instances|edits|rounds|repairs)\b"
)
"""How a sentence says over how many pairs the number before is taken."""
COULD_DIFFER, PAIRS = "Pairs that could differ", "Pairs"
SENTENCE = re.compile(r"(?<=[.;:!?])\s+(?=[A-Z`*\[(])")


@dataclass(frozen=True, eq=False)
class TableRow:
    """A row of a committed report's table, by column, and the estimates that stand in it: their text, bounds and mark."""

    text: str
    cells: dict[str, str]

    @property
    def estimates(self) -> Iterator[tuple[Bounds, bool, bool]]:
        """The bounds of each estimate, whether it is a percentage, and whether it is marked. A ratio is a percentage too."""
        for match in INTERVAL.finditer(self.text):
            is_marked, (value, low, high) = self.text[match.end() :].startswith(NARROW), bounds_of(match)
            yield (value, low, high), "%" in match[1], is_marked
            if "%" not in match[1] and "." in match[1]:
                yield (100 * value, 100 * low, 100 * high), True, is_marked

    @property
    def differ_in_some(self) -> bool:
        """Whether only some of its pairs could differ: its estimate is over these."""
        numbers = [self.cells.get(column, "").replace(",", "") for column in (COULD_DIFFER, PAIRS)]
        return all(map(str.isdigit, numbers)) and int(numbers[0]) < int(numbers[1])


@cache
def rows_by_column(report: str) -> list[TableRow]:
    rows, title, header = [], "", list[str]()
    for path in sorted((ROOT / "reports" / report).rglob("*.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if not line.startswith("|"):
                title, header = (line, []) if line.startswith("#") else (title, [])
            elif not header:
                header = cells
            elif not line.startswith("| ---"):
                rows.append(TableRow(f"{title} {line}", dict(zip(header, cells, strict=False))))
    return rows


@cache
def _estimates(row: TableRow) -> list[tuple[Bounds, bool, bool]]:
    return list(row.estimates)


def untold(section: Section, reports: set[str]) -> list[str]:
    """What the rows of these reports say of a section's numbers and the section does not: a line for each."""
    return [
        f"{number}: {lacking}"
        for paragraph in section.paragraphs
        for number, lacking in _untold(paragraph, section.heading, reports)
    ]


def _untold(paragraph: str, heading: str, reports: set[str]) -> Iterator[tuple[str, str]]:
    names = set(NAME.findall(f"{heading} {paragraph}"))
    text = " ".join(HIDDEN.sub(" ", paragraph).split())
    for match in INTERVAL.finditer(text):
        rounded, is_share = Rounded.of(match), "%" in match[1] or " points" in match[0]
        matches = [
            (row, is_percent, is_marked)
            for report in reports
            for row in rows_by_column(report)
            if not names or _about(row.text, names)
            for bounds, is_percent, is_marked in _estimates(row)
            if rounded.is_of(bounds)
        ]
        if not matches:
            continue
        of_unit = [each for each in matches if each[1] == is_share]
        number = match[0].replace(" ", "")
        if not of_unit:
            yield number, "the row has another unit"
        yield from ((number, lacking) for lacking in _lacking(text, match, of_unit))


def _lacking(text: str, match: re.Match[str], matches: list[tuple[TableRow, bool, bool]]) -> Iterator[str]:
    sentence = _sentence(text, match)
    if any(is_marked for *_, is_marked in matches) and not text[match.end() :].startswith(NARROW):
        yield NARROW
    for verdict, words in OPEN_VERDICTS.items():
        judged = any(row.cells.get("Verdict", "").startswith(verdict) for row, *_ in matches)
        if judged and not any(word in sentence for word in words):
            yield verdict
    behind = re.split(INTERVAL.pattern, text[match.end() : match.end() + 60])[0]
    if over := NUMBERS_OF.search(behind):
        n = (over[1] or over[2]).replace(",", "")
        alone = re.compile(rf"(?<![\w.,]){n}(?![\w%]|[.,]\d)")
        if not any(alone.search(row.text.replace(",", "")) for row, *_ in matches):
            yield f"no row has N {n}"
    fewer = [row for row, *_ in matches if row.differ_in_some]
    if fewer and len(fewer) == len(matches) and "could" not in text:
        yield "it is over the pairs that could differ"


def _sentence(text: str, match: re.Match[str]) -> str:
    """The sentence around a number."""
    begins = [0, *(end.end() for end in SENTENCE.finditer(text))]
    ends = [*begins[1:], len(text)]
    return next(text[begin:end] for begin, end in zip(begins, ends, strict=True) if begin <= match.start() < end)

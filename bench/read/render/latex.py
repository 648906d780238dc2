"""A table in LaTeX, with booktabs, that fits the page's width and height."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import takewhile

from bench.read.render.escaping import escape_latex
from bench.read.render.table import Table

CELL = 45
"""A cell with more characters is broken into lines."""

UPRIGHT = 150
"""A table with more characters in a row is put on a landscape page: shrunk to an upright page it could not be read."""

READABLE = 300
"""A table with more characters in a row is split by columns: even on a landscape page it could not be read."""

LINES = 36
"""A table with more lines is continued on the next page."""

BREAKING = r">{\raggedright\arraybackslash}p{5.5cm}"
SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
CONTINUED = r"\addtocounter{table}{-1}"
"""The part of a table on a further page keeps the table's number."""

PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[margin=2cm]{geometry}
\usepackage{array,booktabs,graphicx,pdflscape,textcomp}
"""


def latex(table: Table) -> str:
    """Return table environments that fit the page, for a document with `PREAMBLE`'s packages.

    A table that is too wide is split by columns, and each part repeats the columns that name a row.
    """
    table = table.shortened()
    texts = table.texts()
    longest = [max(map(len, column)) for column in zip(table.columns, *texts, strict=True)]
    widths = [min(length, CELL) + 2 for length in longest]
    parts = [(places, rows) for places in _across(widths, _names(table)) for rows in _down(texts)]
    kinds = [BREAKING if length > CELL else "l" for length in longest]
    written = "\n".join(
        _part(table, places, kinds, [table.columns, *rows], first=number == 0) for number, (places, rows) in enumerate(parts)
    )
    return f"\\begin{{landscape}}\n{written}\\end{{landscape}}\n" if sum(widths) > UPRIGHT else written


def _names(table: Table) -> int:
    """Return how many columns at the left hold only words. These columns name the row."""
    columns = zip(*table.rows, strict=True) if table.rows else ()
    worded = sum(1 for _ in takewhile(lambda cells: all(isinstance(cell, str) for cell in cells), columns))
    return min(worded, len(table.columns) - 1)


def _across(widths: Sequence[int], names: int) -> list[list[int]]:
    """Return how a wide table is split into parts: for each part, the places of its columns. Each part repeats the columns that
    name the row. The other columns follow in order. There are as few readable parts as possible, with an equal number of
    columns as far as possible."""
    fewest = len(_filled(widths, names, READABLE))
    limit = bisect_left(range(READABLE), -fewest, key=lambda limit: -len(_filled(widths, names, limit)))
    return _filled(widths, names, limit)


def _filled(widths: Sequence[int], names: int, limit: int) -> list[list[int]]:
    """Fill parts with columns up to this number of characters. Each part has at least one column besides the columns that name
    the row."""
    parts = [list(range(names))]
    for place in range(names, len(widths)):
        if len(parts[-1]) > names and sum(widths[column] for column in parts[-1]) + widths[place] > limit:
            parts.append(list(range(names)))
        parts[-1].append(place)
    return parts


def _down(rows: list[list[str]]) -> list[list[list[str]]]:
    """Split the rows, in order, into parts of at most LINES lines. There is at least one part."""
    parts: list[list[list[str]]] = [[]]
    lines = 0
    for row in rows:
        lines += max(-(-len(text) // CELL) for text in row)
        if lines > LINES and parts[-1]:
            parts.append([])
            lines = 0
        parts[-1].append(row)
    return parts


def _part(table: Table, places: Sequence[int], kinds: Sequence[str], rows: Sequence[Sequence[str]], first: bool) -> str:
    """Return one table environment with these columns of the head and the rows. Only the first part has the label and the
    notes."""
    head, *body = [_row([row[place] for place in places]) for row in rows]
    title = escape_latex(table.title)
    begun = rf"\caption{{{title}}}\label{{tab:{table.name}}}" if first else CONTINUED + rf"\caption{{{title} (continued)}}"
    lines = [r"\begin{table}[p]", r"\centering", begun]
    lines += [SHRUNK, rf"\begin{{tabular}}{{{''.join(kinds[place] for place in places)}}}"]
    lines += [r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}}"]
    lines += [rf"\par\raggedright\footnotesize {escape_latex(note)}" for note in table.footer if first]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def latex_document(title: str, warnings: Iterable[str], tables: Iterable[Table]) -> str:
    """Return a document with all tables, which needs no other file. The warnings come before any number."""
    words = [rf"\section*{{{escape_latex(title)}}}", *(escape_latex(warning) + r"\par" for warning in warnings), r"\clearpage"]
    lines = [latex(table) + r"\clearpage" for table in tables]
    return PREAMBLE + "\n".join([r"\begin{document}", *words, *lines, r"\end{document}"]) + "\n"


def _row(texts: Sequence[str]) -> str:
    # Braces keep LaTeX from reading a cell's bracket or star as an argument of the line break before it.
    cells = [f"{{{cell}}}" if cell[:1] in ("[", "*") else cell for cell in map(escape_latex, texts)]
    return " & ".join(cells) + r" \\"

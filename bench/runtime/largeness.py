"""How large an output may be: what checks and graders do with one, such as parsing the code in it, may take time that grows
faster than it does."""

from __future__ import annotations

from bench.bounds import MOST_ITEMS, items_in
from bench.scenario import LARGEST_OUTPUT, MOST_LINES, Json


def too_large(value: Json) -> str:
    """What is too large about a value that JSON can hold, in one line; "" where nothing is. In time that grows as it does."""
    characters = lines = 0
    left: list[Json] = [value]
    while left:
        match left.pop():
            case str(text):
                characters += len(text)
                lines += text.count("\n")
            case dict(table):
                left += table
                left += table.values()
                characters += len(table)
            case list(items):
                left += items
                characters += len(items)
    if characters > LARGEST_OUTPUT:
        return f"the output has {characters:,} characters and items, and may have {LARGEST_OUTPUT:,}"
    if (within := items_in(value)) > MOST_ITEMS:
        return f"the output has {within:,} items, and may have {MOST_ITEMS:,}"
    return f"the output has {lines:,} lines, and may have {MOST_LINES:,}" if lines > MOST_LINES else ""

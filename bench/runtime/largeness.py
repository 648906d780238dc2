"""How large an output may be: what checks and graders do with one, such as parsing the code in it, may take time that grows
faster than it does."""

from __future__ import annotations

from bench.bounds import MOST_ITEMS, items_in
from bench.scenario import LARGEST_OUTPUT, MOST_LINES, Json

MOST_READ = 2 * LARGEST_OUTPUT + 1
"""Values in a value that is not too large: an item counts as a character, and an entry of an object, which is two, as well."""


def too_large(value: Json) -> str:
    """What is too large about a value that JSON can hold, in one line; "" where nothing is. What has too many items is not read
    to its end."""
    characters = lines = read = 0
    left: list[Json] = [value]
    while left:
        inner, read = left.pop(), read + 1
        if isinstance(inner, str):
            characters += len(inner)
            lines += inner.count("\n")
        elif isinstance(inner, dict | list):
            characters += len(inner)
            if read + len(left) + len(inner) > MOST_READ:
                return (
                    f"the output has more than {LARGEST_OUTPUT:,} items, and may have {LARGEST_OUTPUT:,} characters and items"
                )
            left += inner
            left += inner.values() if isinstance(inner, dict) else ()
    if characters > LARGEST_OUTPUT:
        return f"the output has {characters:,} characters and items, and may have {LARGEST_OUTPUT:,}"
    if (within := items_in(value)) > MOST_ITEMS:
        return f"the output has {within:,} items, and may have {MOST_ITEMS:,}"
    return f"the output has {lines:,} lines, and may have {MOST_LINES:,}" if lines > MOST_LINES else ""

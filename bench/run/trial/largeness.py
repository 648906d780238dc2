"""The limit on the size of an output. It exists because a check or a grader, for example one that parses code, can take time
that grows faster than the output."""

from __future__ import annotations

from bench.common.bounds import MAX_ITEMS
from bench.scenario import LARGEST_OUTPUT, MAX_LINES, Json

MAX_PARTS = 2 * LARGEST_OUTPUT + 1
"""The most values and names that an output within the limit can have: each item, and each entry of an object with its name and
its value, counts as one character."""


def too_large(value: Json) -> str:
    """Return one line that says which limit a JSON value exceeds; "" if it exceeds none. A value with too many items is not
    read to its end."""
    texts: list[str] = []
    names: list[str] = []
    items, values = 0, [value]
    for inner in values:
        if isinstance(inner, str):
            texts.append(inner)
        elif isinstance(inner, (dict, list)):
            items += len(inner)
            if len(values) + len(names) + len(inner) > MAX_PARTS:
                return (
                    f"the output has more than {LARGEST_OUTPUT:,} items, and may have {LARGEST_OUTPUT:,} characters and items"
                )
            if isinstance(inner, dict):
                names += inner
                values += inner.values()
            else:
                values += inner
    text = "".join(texts + names)
    characters, lines = items + len(text), text.count("\n")
    if characters > LARGEST_OUTPUT:
        return f"the output has {characters:,} characters and items, and may have {LARGEST_OUTPUT:,}"
    if items > MAX_ITEMS:
        return f"the output has {items:,} items, and may have {MAX_ITEMS:,}"
    return f"the output has {lines:,} lines, and may have {MAX_LINES:,}" if lines > MAX_LINES else ""

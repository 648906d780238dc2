"""The options of a request besides its messages: tools, and the form and length of the reply.

The options are kept as one JSON text, as the client wrote them, so that they can be compared, stored once and sent unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

LENGTHS = ("max_tokens", "max_completion_tokens")
OPTIONS = ("tools", "tool_choice", "parallel_tool_calls", "response_format", "stop", *LENGTHS)


def options_text(fields: Mapping[str, Any]) -> str:
    """Return the options that are set, as JSON; "" if none is set."""
    options = {name: fields[name] for name in OPTIONS if fields.get(name) not in (None, [])}
    return json.dumps(options, ensure_ascii=False) if options else ""


def options_in(text: str) -> dict[str, Any]:
    """Return the options in a text of `options_text`."""
    options: dict[str, Any] = json.loads(text) if text else {}
    return options


@lru_cache(maxsize=4)
def tools_text(options: str) -> str:
    """Return the tool definitions as JSON, in which their tokens are counted; "" if there are none."""
    tools = options_in(options).get("tools")
    return json.dumps(tools, ensure_ascii=False) if tools else ""

"""Write the result of a tool call as an HTTP answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.worlds.run.environment import Acted
from bench.worlds.run.environment.calling import RefusalCode

STATUS_BY_CODE: Mapping[RefusalCode, int] = {
    "unknown_tool": 404,
    "arguments": 422,
    "key": 409,
    "stale": 409,
    **dict.fromkeys(("declined", "forbidden", "quota"), 403),
    "throttled": 429,
}
"""The status of a refused call. Any other failure is the tool's fault: UNAVAILABLE."""
DONE, UNAVAILABLE = 200, 503


@dataclass(frozen=True)
class ToolResponse:
    """An HTTP answer to a tool call. If it is `lost`, it is never sent, and the connection is closed."""

    status: int
    body: Mapping[str, Any]
    lost: bool = False

    @property
    def ok(self) -> bool:
        return self.status == DONE


def success_response(result: Any, versions: Mapping[str, int] | None = None) -> ToolResponse:
    """Return the answer to a call that was done."""
    return ToolResponse(DONE, {"result": result, "versions": dict(versions or {})})


def error_response(status: int, code: str, message: str) -> ToolResponse:
    """Return the answer to a call that was refused or failed."""
    return ToolResponse(status, {"error": {"code": code, "message": message}})


def answer_of(acted: Acted) -> ToolResponse:
    """Return the answer to a call with this result."""
    if acted.ok:
        return success_response(acted.result.model_dump(mode="json"), acted.versions)
    if acted.code == "unanswered":
        return ToolResponse(UNAVAILABLE, {}, lost=True)
    return error_response(STATUS_BY_CODE.get(acted.code, UNAVAILABLE), acted.code, acted.reason)

"""The HTTP session that sends spans to a collector. The collector's answers are bounded, and each says how many spans were
accepted."""

from __future__ import annotations

from threading import Thread
from typing import Any

import requests
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

LONGEST_ANSWER = 2**20


class NotTaken(Exception):
    """The collector accepted nothing, and another try would not change this."""


class CollectorSession(requests.Session):
    """A session whose requests follow no redirect, and end in their time with an answer of at most `LONGEST_ANSWER` bytes.

    Attributes:
        problem: Why the last request was not taken; "" if it was.
        rejected: How many spans the answers say were left out of what was taken.
        reason: The last reason that an answer gave for that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.headers["Accept-Encoding"] = "identity"
        self.problem, self.rejected, self.reason = "", 0, ""

    def request(self, *arguments: Any, timeout: Any = 10.0, **options: Any) -> requests.Response:
        """Send a request. Raises NotTaken, and what `requests` raises."""
        ended: list[requests.Response | Exception] = []

        def send() -> None:
            try:
                options.update(timeout=timeout, allow_redirects=False, stream=True)
                with super(CollectorSession, self).request(*arguments, **options) as response:
                    response._content = response.raw.read(LONGEST_ANSWER + 1)
                    ended.append(response)
            except Exception as error:
                ended.append(error)

        sending = Thread(target=send, daemon=True)  # a server can send a byte now and then, and `timeout` is of each byte
        sending.start()
        sending.join(timeout)
        answer = ended[0] if ended else requests.Timeout("no whole answer in time")
        if isinstance(answer, Exception):
            self.problem = f"no answer ({type(answer).__name__})"
            raise answer
        self.problem = f"it answered {answer.status_code} {answer.reason or ''}".strip()
        if answer.ok:
            self._read(answer)
        return answer

    def _read(self, answer: requests.Response) -> None:
        """Read how many spans were accepted. Raises NotTaken for a redirect, and for an answer that no collector gives."""
        kind, content = answer.headers.get("Content-Type", ""), answer.content
        if answer.status_code >= 300:
            self.problem += ", and no redirect is followed"
            raise NotTaken
        if len(content) > LONGEST_ANSWER or "html" in kind:
            self.problem += ", and what no collector answers"
            raise NotTaken
        response = ExportTraceServiceResponse()
        try:
            json_format.Parse(content, response, ignore_unknown_fields=True) if "json" in kind else response.ParseFromString(
                content
            )
        except (DecodeError, json_format.ParseError, ValueError, RecursionError):
            response = ExportTraceServiceResponse()
        self.problem = ""
        self.rejected += max(0, response.partial_success.rejected_spans)
        self.reason = response.partial_success.error_message or self.reason

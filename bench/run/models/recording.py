"""The responses of one model in one run, looked up by request."""

from __future__ import annotations

from collections.abc import Iterable

from bench.run.models.base import Request, RequestContent, Response

SentRequest = tuple[RequestContent, int]
"""The content of a request, and how often it had been sent in its trial, from 1."""


class Recording:
    """The responses of one model in one run, in the order of recording. `name`, `date` and `history` describe the run.
    `concurrency` is the number of calls that the model took at the same time there, or that is `declared`."""

    def __init__(
        self,
        name: str,
        date: str,
        responses: Iterable[Response],
        concurrency: int = 1,
        history: object = None,
        declared: bool = False,
    ):
        self.name, self.date, self.concurrency, self.history = name, date, concurrency, history
        self.description = (
            f"the run {name}, recorded on {date}{f', {concurrency} calls at a time as declared' if declared else ''}"
        )
        self._by_arm: dict[tuple[str, SentRequest], Response] = {}
        self._by_request: dict[SentRequest, Response] = {}
        for response in responses:
            key = _sent_request(response.request)
            self._by_arm[response.request.context.arm, key] = response
            self._by_request.setdefault(key, response)

    def __len__(self) -> int:
        return len(self._by_arm)

    def find(self, request: Request) -> Response | None:
        """Return the response to this request: of the same arm, else of any arm; None if the recording has none."""
        key = _sent_request(request)
        return self._by_arm.get((request.context.arm, key)) or self._by_request.get(key)


def _sent_request(request: Request) -> SentRequest:
    return request.content, request.occurrence

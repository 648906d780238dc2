"""The responses of one model in one run, looked up by request."""

from __future__ import annotations

from collections.abc import Iterable

from bench.run.models.base import Request, RequestContent, Response

Sent = tuple[RequestContent, int]
"""The request, and how often it had been sent, from 1."""


class Recording:
    """The responses of one model in one run, in the order of recording. `name`, `date` and `history` are the run's.
    `concurrency` is the number of calls that the model took at a time there, or is `declared` to take."""

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
        self._by_arm: dict[tuple[str, Sent], Response] = {}
        self._by_request: dict[Sent, Response] = {}
        for response in responses:
            sent = _sent_content(response.request)
            self._by_arm[response.request.context.arm, sent] = response
            self._by_request.setdefault(sent, response)

    def __len__(self) -> int:
        return len(self._by_arm)

    def find(self, request: Request) -> Response | None:
        """Return the response to this request: of the same arm, else of any arm; None if the recording has none."""
        sent = _sent_content(request)
        return self._by_arm.get((request.context.arm, sent)) or self._by_request.get(sent)


def _sent_content(request: Request) -> Sent:
    return request.content, request.occurrence

"""What one model did in one run: its responses, looked up by request."""

from __future__ import annotations

from collections.abc import Iterable

from bench.run.models.base import Request, RequestContent, Response

Sent = tuple[RequestContent, int]
"""The request, and how often it had been sent, from 1."""


class Recording:
    """The responses of one model in one run, in the order of recording. `name`, `date` and `history` are the run's.
    `concurrency` is how many calls the model took at a time there, or is `declared` to take."""

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
        self._of_arm: dict[tuple[str, Sent], Response] = {}
        self._of_any: dict[Sent, Response] = {}
        for response in responses:
            sent = _sent_content(response.request)
            self._of_arm[response.request.context.arm, sent] = response
            self._of_any.setdefault(sent, response)

    def __len__(self) -> int:
        return len(self._of_arm)

    def find(self, request: Request) -> Response | None:
        sent = _sent_content(request)
        return self._of_arm.get((request.context.arm, sent)) or self._of_any.get(sent)


def _sent_content(request: Request) -> Sent:
    return request.asked, request.occurrence

"""A running trial's log: its events, the texts that they name by digest, and the responses of its model."""

from __future__ import annotations

from collections.abc import Callable

from bench.common.digests import Texts
from bench.record.events import Event
from bench.run.models.base import Response


class TrialLog:
    """Events and texts in their order. `on_response` gets each response as it arrives, and `on_counted` once its tokens are
    counted, which takes a while for a long one."""

    def __init__(
        self,
        on_response: Callable[[Response], object] = lambda _: None,
        on_counted: Callable[[Response], object] = lambda _: None,
    ):
        self.events: list[Event] = []
        self.texts = Texts()
        self.respond, self.counted = on_response, on_counted

    @property
    def next_number(self) -> int:
        """The number of the next event."""
        return len(self.events)

    def emit(self, event: Event) -> int:
        """Append an event. Returns its number."""
        self.events.append(event)
        return len(self.events) - 1

    def store_text(self, text: str) -> str:
        """Keep a text. Returns its digest."""
        return self.texts.keep(text)

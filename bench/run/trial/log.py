"""A running trial's log: its events, the texts that they name by digest, and the responses of its model."""

from __future__ import annotations

from collections.abc import Callable

from bench.common.digests import Texts
from bench.record.events import Event
from bench.run.models.base import Response


class TrialLog:
    """The events and texts of a trial in their order. `on_response` gets each response as it arrives, and `on_counted` gets it
    after its tokens are counted, which is slow for a long response."""

    def __init__(
        self,
        on_response: Callable[[Response], object] = lambda _: None,
        on_counted: Callable[[Response], object] = lambda _: None,
    ):
        self.events: list[Event] = []
        self.texts = Texts()
        self.on_response, self.on_counted = on_response, on_counted

    @property
    def next_number(self) -> int:
        """The number of the next event."""
        return len(self.events)

    def emit(self, event: Event) -> int:
        """Append an event. Returns its number."""
        self.events.append(event)
        return len(self.events) - 1

    def keep_text(self, text: str) -> str:
        """Store a text under its digest. Return the digest."""
        return self.texts.keep(text)

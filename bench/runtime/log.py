"""What a trial leaves while it runs: its events, the texts that they name by digest, and the responses of its model."""

from __future__ import annotations

from collections.abc import Callable

from bench.digests import Texts
from bench.models.base import Response
from bench.runtime.events import Event


class TrialLog:
    """Events and texts in the order in which they came. `on_response` is told of each response as it arrives, and `on_counted`
    once its tokens are counted, which takes a while where it is long."""

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
        """The number that the next event will have."""
        return len(self.events)

    def emit(self, event: Event) -> int:
        """Append an event; its number."""
        self.events.append(event)
        return len(self.events) - 1

    def store_text(self, text: str) -> str:
        """Keep a text; its digest."""
        return self.texts.keep(text)

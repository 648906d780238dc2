"""The mends of the gateway when a cell is run again: responses that the gateway gives in place of a server or a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bench.probe.points import POINTS
from bench.probe.run.gateway.journal import JournaledCall
from bench.record.probe_events import GatewayMend


class Mends:
    """The mends of one run.

    Args:
        parts: The parts that are mended. `client` and `tool` remove the fault itself: the `FaultInjector` then has none.
        counts: How often the clean run made each call, by its identity.
        effects: The identities of calls that do not only read.
        replies: The model's replies of a clean run, each with the length of its request.
        together: How many processes of the agent run at the same time after a kill.
    """

    def __init__(
        self,
        parts: Collection[GatewayMend],
        counts: Mapping[str, int],
        effects: Collection[str],
        replies: Sequence[tuple[int, bytes]] = (),
        together: int = 1,
    ):
        self._parts, self._counts, self._effects, self._replies = frozenset(parts), counts, effects, replies
        self.together = together
        self.lost_object = ""
        """The function whose recorded result a mend needed, though it is an object that only the agent's process can make; ""
        if there is none."""

    @property
    def delivers_held_first(self) -> bool:
        """Whether a held call whose client gave up is delivered before the agent's next call."""
        return "look" in self._parts

    @property
    def refuses_stale_write(self) -> bool:
        """Whether the struck call is refused if another writer changed the row before it."""
        return "swap" in self._parts

    def resets_memory_after(self, point: str) -> bool:
        """Return whether the agent's own memory is reset before it is started again. The journal is then its only memory: a
        note that a call was made, though it was not, is lost."""
        return POINTS[point].death == "arrived" and "memory" in self._parts

    def answer_to(self, entry: JournaledCall, calls: Sequence[JournaledCall]) -> bytes:
        """Return the response that a mend gives to a call; b"" if the call is forwarded.

        Args:
            entry: A call that has just arrived.
            calls: All calls of the run until now, with this call.
        """
        is_outer = entry.call.continues is None  # a call of its own, and no part of another call
        equal_calls = [call for call in calls if call.identity == entry.identity and (call.call.continues is None) == is_outer]
        done_calls = [call for call in equal_calls if call.is_done]
        if "memory" in self._parts:
            earlier_process_calls = [call for call in done_calls if call.call.life < entry.call.life]
            # the number of this call among the equal calls of one process, rounded up if several processes make them
            nth = -(-sum(call.call.life == entry.call.life for call in equal_calls) // self.together)
            if nth <= len(earlier_process_calls) and self._recorded_answer(earlier_process_calls[nth - 1]):
                return earlier_process_calls[nth - 1].raw
        if entry.call.kind == "model":
            return self._reply(entry) if "reply" in self._parts else b""
        if "key" in self._parts and self._is_effect(entry) and len(done_calls) >= self._counts.get(entry.identity, 1):
            return self._recorded_answer(done_calls[0])
        return b""

    def _recorded_answer(self, entry: JournaledCall) -> bytes:
        """Return the recorded response of a call; b"" if it was not recorded."""
        if not entry.raw and entry.call.kind == "function":
            self.lost_object = entry.call.tool
        return entry.raw

    def _is_effect(self, entry: JournaledCall) -> bool:
        """Return whether a call has or may have an effect."""
        return entry.identity in self._effects or (entry.identity not in self._counts and not entry.call.reads)

    def _reply(self, entry: JournaledCall) -> bytes:
        """Return the reply of the clean run whose request has the most similar length. A conversation grows, so the length
        tells how far it is, even after a restart."""
        size = len(entry.arguments)
        return min(self._replies, key=lambda reply: abs(reply[0] - size), default=(0, b""))[1]

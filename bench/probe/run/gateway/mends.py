"""The mends of the gateway while a cell is run again: answers that it gives itself, in place of a server or a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bench.probe.points import POINTS
from bench.probe.run.gateway.journal import JournaledCall
from bench.record.probe_events import GatewayMend


class Mends:
    """The mends of one course.

    Args:
        parts: What is mended. `client` and `tool` mend the fault itself, which then is not delivered: a `Striker` without one.
        counts: How often the clean run made each call, by its identity.
        effects: The identities of calls that are no reads.
        replies: The model's replies of a clean run, each with how long its request was.
        together: How many processes of the agent go on at the same time: each knows what was done before.
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
        self.lacks = ""
        """A function whose answer a mend had to give, and which only the agent's process can make."""

    @property
    def lets_land(self) -> bool:
        """Whether a call whose answer was given up is done before the agent's next call."""
        return "look" in self._parts

    @property
    def swaps(self) -> bool:
        """Whether a call that was made before another writer's step is refused."""
        return "swap" in self._parts

    def forgets_after(self, point: str) -> bool:
        """Return whether the agent loses what it knows when it is started again. The journal then is its whole memory: an agent
        that notes a call before it is done remembers what nobody did."""
        return POINTS[point].death == "arrived" and "memory" in self._parts

    def answer_to(self, entry: JournaledCall, calls: Sequence[JournaledCall]) -> bytes:
        """Return the answer to a call that is not passed on; b"" if the call is passed on.

        Args:
            entry: A call that has just arrived.
            calls: All calls of the course until now.
        """
        is_own = entry.call.continues is None
        same = [call for call in calls if call.identity == entry.identity and (call.call.continues is None) == is_own]
        done = [call for call in same if call.is_done]
        if "memory" in self._parts:
            former = [call for call in done if call.call.life < entry.call.life]
            nth = -(-sum(call.call.life == entry.call.life for call in same) // self.together)
            if nth <= len(former) and self._kept_answer(former[nth - 1]):
                return former[nth - 1].raw
        if entry.call.kind == "model":
            return self._reply(entry) if "reply" in self._parts else b""
        if "key" in self._parts and self._is_effect(entry) and len(done) >= self._counts.get(entry.identity, 1):
            return self._kept_answer(done[0])
        return b""

    def _kept_answer(self, entry: JournaledCall) -> bytes:
        """Return an answer as it was kept; b"" if it was not."""
        if not entry.raw and entry.call.kind == "function":
            self.lacks = entry.call.tool
        return entry.raw

    def _is_effect(self, entry: JournaledCall) -> bool:
        return entry.identity in self._effects or (entry.identity not in self._counts and not entry.call.reads)

    def _reply(self, entry: JournaledCall) -> bytes:
        """Return the clean run's reply to the request of the most similar length. A conversation grows, so its length shows how
        far it is, even after a restart."""
        size = len(entry.arguments)
        return min(self._replies, key=lambda reply: abs(reply[0] - size), default=(0, b""))[1]

"""The gate of one run of the agent: it writes the journal, and injects the fault of a cell into one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from bench.common.errors import ConfigError
from bench.probe.points import POINTS, AgentDeath, AnswerAction, CallAction, StrikePoint
from bench.probe.run.gateway.damaged import DAMAGES, damage
from bench.probe.run.gateway.flight import MIN_HOLD_S, Flight
from bench.probe.run.gateway.gate import CallGate, LiveCall, Undelivered, WaitEnd
from bench.probe.run.gateway.journal import Journal, JournaledCall
from bench.probe.run.gateway.meeting import Meeting
from bench.probe.run.gateway.mends import Mends
from bench.probe.run.gateway.subject import OthersStatement
from bench.probe.run.gateway.tape import PlayedTape

SECOND_PROCESS_TIMEOUT_S = 2.0
"""How long a call of one of two processes waits until the other process makes the same call."""
DISCONNECT_NOTICE_S = 0.02
"""The time in which the gateway notices that a connection was closed before the next call arrived."""
_UNFORWARDED_ACTIONS = frozenset[CallAction](("hold", "error", "rate_limit", "malformed", "drop"))


@dataclass(frozen=True)
class CellFault:
    """The fault of a cell: it is injected into the `nth` call with this identity, at a point, in a wire form.

    acting  the identities of the calls that have or may have an effect
    step    the statement of another writer, which is run right before the call
    early   whether `step` is run before the agent starts instead
    """

    identity: str
    nth: int
    point: str
    form: str
    acting: frozenset[str] = frozenset()
    step: OthersStatement | None = None
    early: bool = False


class FaultInjector(CallGate):
    """Decides what happens to each call of one run of the agent, as `CallGate` describes.

    Args:
        journal: The calls and readings of the stores are written here.
        fault: The fault that is injected; None in a clean run.
        patience: Seconds without a response after which a client is said to wait longer.
        kill: Kills the agent.
        one_by_one: Whether calls of tools are forwarded one at a time.
        mends: What the gateway mends; None for nothing.
        tape: The tape that has the responses and rows; None if they come from servers and stores.

    `struck_call` is the call into which the fault was injected, and `is_delivered` whether the fault reached it: a server can
    die before it answers, and an agent may make no next request. `abandoned` says which call a client gave up while the
    gateway held it: the probe then caused what the agent did. `is_dead` says that the agent was killed and not started again:
    requests that still arrive are dropped."""

    def __init__(
        self,
        journal: Journal,
        fault: CellFault | None,
        patience: float,
        kill: Callable[[], Awaitable[None]],
        *,
        one_by_one: bool = False,
        mends: Mends | None = None,
        tape: PlayedTape | None = None,
    ):
        self.journal, self.patience = journal, patience
        self.struck_call: JournaledCall | None = None
        self.is_dead = self.is_delivered = False
        self._fault, self._kill, self._mends = fault, kill, mends
        self._point: StrikePoint | None = POINTS[fault.point] if fault else None
        self._tape = tape
        self._kills_at_next_request = False
        self._calls = dict[LiveCall, JournaledCall]()
        self._flight = Flight(
            journal,
            patience,
            one_by_one=one_by_one,
            reads_before=lambda: self._reads_stores,
            reads_after=lambda: self._reads_stores and not self.is_dead,  # after the agent's death the runner reads them
        )
        self._hold_starts = dict[JournaledCall, float]()
        """The calls that the gateway holds at the moment -> the time since which it holds them."""
        self.abandoned = ""
        self._client_gave_up, self._agent_has_looked = asyncio.Event(), asyncio.Event()
        self._calls_after_give_up = set[JournaledCall]()
        """The calls that arrived after the client of a held call had given up its answer."""
        self._delivery: asyncio.Task[None] | None = None
        self._meeting = Meeting(min(SECOND_PROCESS_TIMEOUT_S, patience))
        self._last_passed_calls = dict[str, LiveCall]()
        """The identity of a call -> the last such call that a mended gateway let pass."""
        self._stale_answer = b""

    async def begin(self) -> None:
        """Run the other writer's statement before the agent starts, if the fault is `early`."""
        if self._fault and self._fault.early and self._fault.step:
            await self._run_others_step(self._fault.step)

    async def arrive(self, call: LiveCall) -> CallAction:
        """Journal a call that has arrived, and return what the door does with it."""
        if call.continues is None and call.kind not in ("function", "model"):
            functions = [other for other in self._flight.calls if other.kind == "function" and other.life == call.life]
            # a function and its request to a service are one call
            call.continues = functions[-1].number if functions else None
        entry = self._calls[call] = self.journal.arrive(call)
        if self._meeting.is_on and self._fault and entry.identity in self._fault.acting:
            await self._meeting.attend(entry.identity)
        else:
            self._note_abandoned(entry)
        self._hold_starts[entry] = self.journal.now()
        try:
            return await self._decide(call, entry)
        finally:
            self._hold_starts.pop(entry, None)

    async def _decide(self, call: LiveCall, entry: JournaledCall) -> CallAction:
        """Return what the door does with a call, once the call may pass. First kill the agent or run the other writer's
        statement, if the point of the fault says so."""
        if self._kills_at_next_request and not self.is_dead:
            await self._kill_agent()
        if self.is_dead:
            return self._drop(entry)
        await self._note_look_at_data(entry)
        await self._wait_for_delivery(entry)
        if self._mends and await self._answer_by_mend(self._mends, entry):
            return "answer"
        if self._fault and self._is_struck(entry):
            self.struck_call, call.is_struck = entry, True
            entry.point, call.wire_form = self._fault.point, self._fault.form
        point = self._point if entry is self.struck_call else None
        is_held = bool(point and point.before == "hold")
        if call.kind != "model" and call.continues is None and not is_held:
            await self._flight.enter(call)
        if point and self._death == "arrived":
            await self._kill_agent()
        if self.is_dead:
            return self._drop(entry)
        if point and point.others and self._fault and self._fault.step and not self._fault.early:
            await self._run_others_step(self._fault.step)
        action = self._action_for(entry)
        # the fault of "pass" and "again" comes later: at the response, a death, or the second delivery
        self.is_delivered = self.is_delivered or action not in ("pass", "again")
        if action not in _UNFORWARDED_ACTIONS:
            entry.passed_on = self.journal.now()
        else:
            entry.given_otherwise = action != "hold"
        return action

    async def _run_others_step(self, step: OthersStatement) -> None:
        """Run another writer's statement. Skip it while other calls are in flight, since the change could then be theirs; the
        fault then counts as not delivered."""
        try:
            self.is_delivered = len(self._flight.calls) <= 1 and await self.journal.run_others_statement(step.store, step.sql)
        except ConfigError as error:
            self.notice("", f"another writer could not change store {step.store}: {error}")

    async def _note_look_at_data(self, entry: JournaledCall) -> None:
        """Note a call that arrives after the client gave up the call whose answer is held: by this call the agent can find out
        whether the effect happened. Wait first until the closed connection is noticed."""
        if self.holds and entry.call.kind != "model" and entry is not self.struck_call:
            await asyncio.sleep(DISCONNECT_NOTICE_S)
            if self._client_gave_up.is_set():
                self._calls_after_give_up.add(entry)

    async def _wait_for_delivery(self, entry: JournaledCall) -> None:
        """Delay a call with an effect until the held call is delivered, so that a reading can tell their effects apart."""
        if self._delivery and self._agent_has_looked.is_set() and self._fault and entry.identity in self._fault.acting:
            await asyncio.wait({self._delivery}, timeout=min(SECOND_PROCESS_TIMEOUT_S, self.patience))

    def _action_for(self, entry: JournaledCall) -> CallAction:
        """Return what the door does with a call while the agent runs: the action of the point for the struck call, "error" for
        a call that a mend refuses or a tape lacks, otherwise "pass"."""
        action = self._point.before if entry is self.struck_call and self._point else "pass"
        if self._mends and self._mends.refuses_stale_write and self.struck_call and entry.identity == self.struck_call.identity:
            return "error"
        if self._tape and action not in _UNFORWARDED_ACTIONS:
            entry.call.taped_answer = self._tape.answer_to(entry)
            return action if entry.call.taped_answer else "error"
        return action

    @staticmethod
    def _drop(entry: JournaledCall) -> CallAction:
        """Note that the agent gets no response to the call from its server, and return `drop`."""
        entry.given_otherwise = True
        return "drop"

    async def answer(self, call: LiveCall, answer: bytes) -> AnswerAction:
        """Journal a response, read the stores, and return what the door does with the response."""
        entry = self._calls[call]
        if entry.passed_on is not None:
            self.journal.answer(entry)
            entry.raw = answer
            call.finished.set()
            if self._tape:
                self._tape.apply_rows(entry)
            if entry is not self.struck_call:  # the response is held until the stores are read
                self._hold_starts[entry] = self.journal.now()
        await self._leave_flight(call)
        if self._is_next_effect(entry):
            await self._redeliver()
        if self.is_dead:
            entry.given_otherwise = True
            return "drop"
        action: AnswerAction = "give"
        if entry is self.struck_call:
            action = await self._action_on_answer(entry)
            self.is_delivered = self.is_delivered or action != "give"
        elif self._is_stale_answer(entry):
            self._stale_answer = answer
        entry.given_otherwise = entry.given_otherwise or action not in ("give", "late")
        return action

    async def note_given(self, call: LiveCall) -> None:
        """Journal that the agent has the response, and kill the agent if the point says so."""
        entry = self._calls[call]
        self._hold_starts.pop(entry, None)
        entry.given = self.journal.now()
        entry.given_otherwise = entry.given_otherwise and entry.went != "waits_longer"
        await self._leave_flight(call)
        if entry in self._calls_after_give_up:
            self._agent_has_looked.set()
        if entry is self.struck_call and not self.is_dead:
            if self._point and self._point.death == "given":
                await self._kill_agent()
            self._kills_at_next_request = bool(self._point and self._point.death == "next")

    async def note_end(self, call: LiveCall) -> None:
        """Journal that a call ended without a response. A held call that is delivered late is not over yet: its client has
        disconnected before."""
        self._calls[call].given_otherwise = True
        if not (self._delivery and self.struck_call is self._calls[call]):
            call.finished.set()
            await self._leave_flight(call)

    def note_wait_end(self, call: LiveCall, how: WaitEnd) -> None:
        """Journal how a client's wait ended, and begin to deliver a held call that the client gave up."""
        entry = self._calls[call]
        entry.went = how
        if entry in self._hold_starts:
            self._abandon(entry)
        if entry is self.struck_call and self._holds_call and how != "waits_longer":
            self._client_gave_up.set()
            self._delivery = asyncio.create_task(self._deliver(entry))

    def note_lock_wait(self, call: LiveCall) -> None:
        """Let the held call be delivered: another session waits for its locks."""
        if self._calls[call] is self.struck_call:
            self._agent_has_looked.set()

    async def note_passed_on(self, call: LiveCall) -> None:
        """Journal that the door forwards the held call."""
        await self._flight.enter(call)
        entry = self._calls[call]
        entry.passed_on = self.journal.now()
        if self._tape:
            call.taped_answer = self._tape.answer_to(entry)

    @property
    def holds(self) -> bool:
        """Whether a held call was not delivered, though its client gave it up or the agent has ended."""
        return bool(self.struck_call and self._holds_call and self.struck_call.passed_on is None)

    @property
    def has_delivered_late(self) -> bool:
        """Whether a held call was delivered after its client had given it up."""
        return self._delivery is not None

    async def end_delivery(self) -> None:
        """Wait until the held call is delivered, if the agent has made another call since. The agent can end before the
        delivery does."""
        if self._delivery and self._agent_has_looked.is_set():
            await self._delivery

    async def deliver_held(self) -> None:
        """Deliver the held call after the agent has ended, or deliver the struck call again."""
        if self._delivers_again and self.struck_call and self.struck_call.given is not None:
            await self._redeliver()
        if not self.holds and not self._delivery:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._client_gave_up.wait(), self.patience)
        self._agent_has_looked.set()
        if self._delivery:
            await self._delivery

    async def _deliver(self, entry: JournaledCall) -> None:
        """Deliver a call that its client gave up, once the agent has looked at the data, or after `patience`."""
        call = entry.call
        with suppress(TimeoutError):
            await asyncio.wait_for(
                self._agent_has_looked.wait(), 0 if self._mends and self._mends.delivers_held_first else self.patience
            )
        self._agent_has_looked.set()
        entry.given_otherwise = True
        if self._mends:
            await self._take_turn(entry)
        if call.deliver is None or (self._mends and self._mends.answer_to(entry, self.journal.calls)):
            call.finished.set()
            return
        await self._flight.enter(call)
        entry.passed_on = self.journal.now()
        if (answer := await self._deliver_late(call)) is not None:
            entry.raw = answer
            self.journal.answer(entry)
        call.finished.set()
        await self._leave_flight(call)

    @property
    def _delivers_again(self) -> bool:
        """Whether the struck call is still to be delivered a second time."""
        return bool(self._point and self._point.before == "again" and not self._delivery)

    @property
    def _death(self) -> AgentDeath:
        """The moment at which the agent is killed; "" if it is not killed."""
        return self._point.death_in.get(self._fault.form, self._point.death) if self._point and self._fault else ""

    def _is_next_effect(self, entry: JournaledCall) -> bool:
        """Return whether this call had an effect and came after the struck call, which is now delivered again."""
        struck_entry = self.struck_call if self._delivers_again else None
        is_acting = self._fault is not None and entry.identity in self._fault.acting
        is_later = struck_entry is not None and struck_entry.given is not None and entry is not struck_entry
        return is_acting and is_later and entry.is_done

    async def _redeliver(self) -> None:
        """Deliver the struck call again, and drop the response."""

        async def deliver(call: LiveCall) -> None:
            await self._flight.enter(call)
            self.is_delivered = await self._deliver_late(call) is not None
            await self._leave_flight(call)

        assert self.struck_call
        self._delivery = asyncio.create_task(deliver(self.struck_call.call))
        await self._delivery

    async def _deliver_late(self, call: LiveCall) -> bytes | None:
        """Deliver a call without its client. Return the response; None if the server sent none."""
        entry = self._calls[call]
        if self._tape:
            self._tape.apply_rows(entry)
            return self._tape.answer_to(entry)
        try:
            return await asyncio.wait_for(call.deliver(), self.patience) if call.deliver else None
        except (Undelivered, TimeoutError) as error:
            self.notice(call.door, f"call {call.number} was delivered late and not answered: {error or 'silence'}")
            return None

    def _note_abandoned(self, entry: JournaledCall) -> None:
        """Note if this call repeats a call of the same process that the gateway still holds: the client gave up the held
        one."""
        for earlier, hold_start in self._hold_starts.items():
            is_repeated = (earlier.identity, earlier.call.life) == (entry.identity, entry.call.life)
            if is_repeated and self.journal.now() - hold_start > MIN_HOLD_S:
                self._abandon(earlier)

    def _abandon(self, entry: JournaledCall) -> None:
        """Note that a client gave up a call while the gateway held it to read the stores."""
        seconds = self.journal.now() - self._hold_starts[entry]
        self.abandoned = self.abandoned or (
            f"the client of {entry.call.door}.{entry.call.tool} gave up call {entry.call.number} after the gateway had held it "
            f"for {seconds:.1f} s to read the stores"
        )

    def notice(self, door: str, message: str) -> None:
        """Record something that belongs to no call."""
        self.journal.notice(door, message)

    async def _answer_by_mend(self, mends: Mends, entry: JournaledCall) -> bool:
        """Return whether a mend answers a call in place of its server, and note the response with the call. First wait for an
        equal call that may have the response."""
        call = entry.call
        if mends.delivers_held_first and self._delivery:
            await asyncio.wait({self._delivery})
        if self._meeting.is_on or self._client_gave_up.is_set():
            await self._take_turn(entry)
        if call.continues is not None or not (answer := mends.answer_to(entry, self.journal.calls)):
            return False
        call.replacement, entry.given_otherwise = answer, call.kind != "model"
        call.finished.set()
        return True

    async def _take_turn(self, entry: JournaledCall) -> None:
        """Wait until the previous call with the same identity has its response, so that this call can get the same response."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience):
                while (previous := self._last_passed_calls.get(entry.identity)) and not previous.finished.is_set():
                    await previous.finished.wait()
        self._last_passed_calls[entry.identity] = entry.call

    def end_meeting(self) -> None:
        """Expect no further call of a second process, and let the calls of the first process that wait for it pass."""
        self._meeting.end()

    def start_again(self, *, together: bool = False) -> None:
        """Prepare for the agent's next process, or for two processes `together`. The calls in flight ended with the former
        process."""
        self._meeting.is_on = together
        self._flight.clear()
        self.is_dead = False

    @property
    def _holds_call(self) -> bool:
        """Whether the point holds the call."""
        return bool(self._point and self._point.before == "hold")

    def _is_stale_answer(self, entry: JournaledCall) -> bool:
        """Return whether this response is kept as the stale response of the struck read: it answers an earlier call with the
        same identity."""
        is_stale_point = self._point and self._point.after == "stale"
        return bool(is_stale_point and self._fault and not self.struck_call and entry.identity == self._fault.identity)

    def _is_struck(self, entry: JournaledCall) -> bool:
        """Return whether the fault is injected into this call."""
        fault, call = self._fault, entry.call
        if fault is None or self.struck_call:
            return False
        outer_entry = next((candidate for candidate in self.journal.calls if candidate.call.number == call.continues), None)
        # in place of a function's call, its request to a service is held
        if self._holds_call and outer_entry and outer_entry.call.kind == "function":
            if call.reads:
                return False
            entry = outer_entry
        elif call.continues or (self._holds_call and call.kind == "function"):
            return False  # a request of a function is a part of its call, and a function's call itself cannot be held
        return (entry.identity, entry.nth) == (fault.identity, fault.nth)

    async def _action_on_answer(self, entry: JournaledCall) -> AnswerAction:
        """Return what the door does with the response of the struck call. First kill the agent if the point of the fault says
        so."""
        call, point = entry.call, self._point
        assert point
        if self._death == "done":
            await self._kill_agent()
            return "drop"
        action = point.forms.get(call.wire_form, point.after)
        if call.kind == "function" and action in DAMAGES and (not entry.raw or damage(call.answer, action) == call.answer):
            return "give"  # the result is an object that only its own process can make, or has nothing that can be damaged
        if action == "stale":
            call.replacement = self._stale_answer
            return "stale" if self._stale_answer else "give"
        return action

    async def _kill_agent(self) -> None:
        """Kill the agent; a call that waits for a response gets none. In a mended run the servers first answer the other
        forwarded calls, so that a key or the journal can answer for them."""
        self.is_dead = self.is_delivered = True
        self._kills_at_next_request = False
        forwarded = {call for call in self._flight.calls if self._calls[call].passed_on is not None} if self._mends else set()
        awaited_calls = forwarded - {self.struck_call.call if self.struck_call else None}
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(call.finished.wait() for call in awaited_calls)), self.patience)
        await self._kill()

    @property
    def _reads_stores(self) -> bool:
        """Whether stores are read. In a cell they are not read before the fault, since until then it is like a clean run."""
        return self._fault is None or self.struck_call is not None or self._fault.early

    async def _leave_flight(self, call: LiveCall) -> None:
        """Count a call as no longer in flight."""
        await self._flight.leave(call, is_struck=self.struck_call is not None and call is self.struck_call.call)

"""The gate of one run of the agent: it writes the journal, and injects the fault of a cell into one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from bench.common.errors import ConfigError
from bench.probe.points import POINTS, AgentDeath, AnswerAction, CallAction, StrikePoint
from bench.probe.run.gateway.damaged import DAMAGES, damage
from bench.probe.run.gateway.gate import CallGate, LiveCall, Undelivered, WaitEnd
from bench.probe.run.gateway.journal import Journal, JournaledCall
from bench.probe.run.gateway.mends import Mends
from bench.probe.run.gateway.subject import OthersStatement
from bench.probe.run.gateway.tape import PlayedTape

SECOND_PROCESS = 2.0
"""Seconds for which a call of one of two processes waits until the other one makes it too."""
HELD_LONG = 0.2
"""Seconds. A call that is made again sooner was not given up: equal calls can be made at the same time."""
NOTICED = 0.02
"""Seconds in which the gateway notices that a connection was closed before another call arrived."""
_NOT_PASSED_ON = frozenset[CallAction](("hold", "error", "rate_limit", "malformed", "drop"))


@dataclass(frozen=True)
class CellFault:
    """The fault of a cell: it is injected into the `nth` call with this identity, at a point, in a wire form. `acting` has
    the identities of the calls that have or may have an effect. `step` is the statement of another writer, which is run
    right before the call, or before the agent starts if `early`."""

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
        tape: The tape that gives responses and rows; None if servers and stores do.

    `struck` is the call into which the fault was injected, and `delivered` whether the fault reached it: a server can die
    before it answers, and an agent may make no next request. `abandoned` says which call a client gave up while the gateway
    held it: the probe then caused what the agent did. `dead` says that the agent was killed and not started again: requests
    that still arrive are dropped.
    """

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
        self.struck: JournaledCall | None = None
        self.dead = self.delivered = False
        self._fault, self._kill, self._one_by_one, self._mends = fault, kill, one_by_one, mends
        self._point: StrikePoint | None = POINTS[fault.point] if fault else None
        self._tape = tape
        self._at_next_request = False
        self._calls = dict[LiveCall, JournaledCall]()
        self._in_flight = dict[LiveCall, bool]()
        """The calls in flight -> whether the call holds the slot."""
        self._slot, self._turn = asyncio.Semaphore(1), asyncio.Lock()
        self._held = dict[JournaledCall, float]()
        """The calls that the gateway keeps from going on -> since when."""
        self.abandoned = ""
        self._client_gave_up, self._agent_has_looked = asyncio.Event(), asyncio.Event()
        self._calls_after_give_up = set[JournaledCall]()
        """The calls that arrived after the client of a held call had given up its answer."""
        self._delivering: asyncio.Task[None] | None = None
        self._together = False
        self._calls_of_first_process = dict[str, asyncio.Event]()
        """The calls that one of two processes makes first -> set once the other one makes it too, by their identities."""
        self._last_passed = dict[str, LiveCall]()
        """The last call of each identity that a mended gateway let pass, while two equal ones can be under way."""
        self._earlier_answer, self._last_read = b"", True

    async def begin(self) -> None:
        """Run the other writer's statement before the agent starts, if the fault is `early`."""
        if self._fault and self._fault.early and self._fault.step:
            await self._run_others_step(self._fault.step)

    async def arrive(self, call: LiveCall) -> CallAction:
        """Journal a call that has arrived, and return what the door does with it."""
        if call.continues is None and call.kind not in ("function", "model"):
            functions = [flying for flying in self._in_flight if flying.kind == "function" and flying.life == call.life]
            call.continues = functions[-1].number if functions else None  # a function that calls a service is one call
        entry = self._calls[call] = self.journal.arrive(call)
        if self._together and self._fault and entry.identity in self._fault.acting:
            await self._await_second_process(entry)
        else:
            self._note_abandoned(entry)
        self._held[entry] = self.journal.now()
        try:
            return await self._decide(call, entry)
        finally:
            self._held.pop(entry, None)

    async def _decide(self, call: LiveCall, entry: JournaledCall) -> CallAction:
        """Return what the door does with a call, and kill the agent or run the other writer's statement if the point says
        so."""
        if self._at_next_request and not self.dead:
            await self._kill_agent()
        if self.dead:
            return self._drop(entry)
        await self._note_look_at_data(entry)
        await self._wait_for_delivery(entry)
        if self._mends and await self._answer_by_mend(self._mends, entry):
            return "answer"
        if self._fault and self._is_struck(entry):
            self.struck, call.is_struck = entry, True
            entry.point, call.wire_form = self._fault.point, self._fault.form
        point = self._point if entry is self.struck else None
        is_held = bool(point and point.before == "hold")
        if call.kind != "model" and call.continues is None and not is_held:
            await self._enter_flight(call)
        if point and self._death == "arrived":
            await self._kill_agent()
        if self.dead:
            return self._drop(entry)
        if point and point.others and self._fault and self._fault.step and not self._fault.early:
            await self._run_others_step(self._fault.step)
        action = self._action_for(entry)
        self.delivered = self.delivered or action not in ("pass", "again")
        if action not in _NOT_PASSED_ON:
            entry.passed_on = self.journal.now()
        else:
            entry.given_otherwise = action != "hold"
        return action

    async def _run_others_step(self, step: OthersStatement) -> None:
        """Run another writer's statement, unless other calls are in flight: a change could then not be attributed."""
        try:
            self.delivered = len(self._in_flight) <= 1 and await self.journal.run_others_statement(step.store, step.sql)
        except ConfigError as error:
            self.notice("", f"another writer could not change store {step.store}: {error}")

    async def _note_look_at_data(self, entry: JournaledCall) -> None:
        """Note a call that arrives after the client gave up the call whose answer is held: by this call the agent can find out
        whether the effect happened. Wait first until the closed connection is noticed."""
        if self.holds and entry.call.kind != "model" and entry is not self.struck:
            await asyncio.sleep(NOTICED)
            if self._client_gave_up.is_set():
                self._calls_after_give_up.add(entry)

    async def _wait_for_delivery(self, entry: JournaledCall) -> None:
        """Delay a call with an effect until the held call is delivered, so that a reading can tell their effects apart."""
        if self._delivering and self._agent_has_looked.is_set() and self._fault and entry.identity in self._fault.acting:
            await asyncio.wait({self._delivering}, timeout=min(SECOND_PROCESS, self.patience))

    def _action_for(self, entry: JournaledCall) -> CallAction:
        """Return what the door does with a call while the agent runs."""
        action = self._point.before if entry is self.struck and self._point else "pass"
        if self._mends and self._mends.refuses_stale_write and self.struck and entry.identity == self.struck.identity:
            return "error"
        if self._tape and action not in _NOT_PASSED_ON:
            entry.call.taped_answer = self._tape.answer_to(entry)
            return action if entry.call.taped_answer else "error"
        return action

    @staticmethod
    def _drop(entry: JournaledCall) -> CallAction:
        """Note that the call gets no response of its server, and return `drop`."""
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
            if entry is not self.struck:
                self._held[entry] = self.journal.now()
        await self._leave_flight(call)
        if self._is_next_effect(entry):
            await self._redeliver()
        if self.dead:
            entry.given_otherwise = True
            return "drop"
        action: AnswerAction = "give"
        if entry is self.struck:
            action = await self._action_on_answer(entry)
            self.delivered = self.delivered or action != "give"
        elif self._is_stale_answer(entry):
            self._earlier_answer = answer
        entry.given_otherwise = entry.given_otherwise or action not in ("give", "late")
        return action

    async def note_given(self, call: LiveCall) -> None:
        """Journal that the agent has the response, and kill the agent if the point says so."""
        entry = self._calls[call]
        self._held.pop(entry, None)
        entry.given = self.journal.now()
        entry.given_otherwise = entry.given_otherwise and entry.went != "waits_longer"
        await self._leave_flight(call)
        if entry in self._calls_after_give_up:
            self._agent_has_looked.set()
        if entry is self.struck and not self.dead:
            if self._point and self._point.death == "given":
                await self._kill_agent()
            self._at_next_request = bool(self._point and self._point.death == "next")

    async def note_end(self, call: LiveCall) -> None:
        """Journal that a call ended without a response. A held call that is delivered late goes on: its client left long
        ago."""
        self._calls[call].given_otherwise = True
        if not (self._delivering and self.struck is self._calls[call]):
            call.finished.set()
            await self._leave_flight(call)

    def note_wait_end(self, call: LiveCall, how: WaitEnd) -> None:
        """Journal how a client's wait ended, and begin to deliver a held call that the client gave up."""
        entry = self._calls[call]
        entry.went = how
        if entry in self._held:
            self._abandon(entry)
        if entry is self.struck and self._holds_call and how != "waits_longer":
            self._client_gave_up.set()
            self._delivering = asyncio.create_task(self._deliver(entry))

    def note_lock_wait(self, call: LiveCall) -> None:
        """Let the held call be delivered: another session waits for its locks."""
        if self._calls[call] is self.struck:
            self._agent_has_looked.set()

    async def note_passed_on(self, call: LiveCall) -> None:
        """Journal that the door forwards the held call."""
        await self._enter_flight(call)
        entry = self._calls[call]
        entry.passed_on = self.journal.now()
        if self._tape:
            call.taped_answer = self._tape.answer_to(entry)

    @property
    def holds(self) -> bool:
        """Whether a held call was not delivered, though its client gave it up or the agent has ended."""
        return bool(self.struck and self._holds_call and self.struck.passed_on is None)

    @property
    def has_delivered_late(self) -> bool:
        """Whether a held call was delivered after its client had given it up."""
        return self._delivering is not None

    async def end_delivery(self) -> None:
        """Wait until the held call is delivered, if the agent has looked at the data: the agent can end meanwhile."""
        if self._delivering and self._agent_has_looked.is_set():
            await self._delivering

    async def deliver_held(self) -> None:
        """Deliver the held call after the agent has ended, or deliver the struck call again."""
        if self._delivers_again and self.struck and self.struck.given is not None:
            await self._redeliver()
        if not self.holds and not self._delivering:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._client_gave_up.wait(), self.patience)
        self._agent_has_looked.set()
        if self._delivering:
            await self._delivering

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
        await self._enter_flight(call)
        entry.passed_on = self.journal.now()
        if (answer := await self._deliver_late(call)) is not None:
            entry.raw = answer
            self.journal.answer(entry)
        call.finished.set()
        await self._leave_flight(call)

    @property
    def _delivers_again(self) -> bool:
        """Whether the struck call is still to be delivered a second time."""
        return bool(self._point and self._point.before == "again" and not self._delivering)

    @property
    def _death(self) -> AgentDeath:
        """The moment at which the agent is killed; "" if it is not killed."""
        return self._point.death_in.get(self._fault.form, self._point.death) if self._point and self._fault else ""

    def _is_next_effect(self, entry: JournaledCall) -> bool:
        """Return whether this call had an effect and came after the struck call, which is now delivered again."""
        struck = self.struck if self._delivers_again else None
        acts = self._fault is not None and entry.identity in self._fault.acting
        return acts and struck is not None and struck.given is not None and entry is not struck and entry.is_done

    async def _redeliver(self) -> None:
        """Deliver the struck call again, and drop the response."""

        async def deliver(call: LiveCall) -> None:
            await self._enter_flight(call)
            self.delivered = await self._deliver_late(call) is not None
            await self._leave_flight(call)

        assert self.struck
        self._delivering = asyncio.create_task(deliver(self.struck.call))
        await self._delivering

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
        """Note that a client repeats a call which the gateway still holds."""
        for earlier, since in self._held.items():
            same = (earlier.identity, earlier.call.life) == (entry.identity, entry.call.life)
            if same and self.journal.now() - since > HELD_LONG:
                self._abandon(earlier)

    def _abandon(self, entry: JournaledCall) -> None:
        """Note that a client gave up a call while the gateway read the stores."""
        seconds = self.journal.now() - self._held[entry]
        self.abandoned = self.abandoned or (
            f"the client of {entry.call.door}.{entry.call.tool} gave up call {entry.call.number} after the gateway had held it "
            f"for {seconds:.1f} s to read the stores"
        )

    def notice(self, door: str, message: str) -> None:
        """Record something that belongs to no call."""
        self.journal.notice(door, message)

    async def _await_second_process(self, entry: JournaledCall) -> None:
        """Hold a call of one of two processes until the other process makes the same call, has ended, or does not make it
        within `SECOND_PROCESS`. Both have then looked at the data, and neither has seen the other's effect."""
        if second_call := self._calls_of_first_process.get(entry.identity):
            second_call.set()
            return
        second_call = self._calls_of_first_process[entry.identity] = asyncio.Event()
        with suppress(TimeoutError):
            await asyncio.wait_for(second_call.wait(), min(SECOND_PROCESS, self.patience))

    async def _answer_by_mend(self, mends: Mends, entry: JournaledCall) -> bool:
        """Answer a call in place of its server, if a mend does so. Return whether it was answered."""
        call = entry.call
        if mends.delivers_held_first and self._delivering:
            await asyncio.wait({self._delivering})
        if self._together or self._client_gave_up.is_set():
            await self._take_turn(entry)
        if call.continues is not None or not (answer := mends.answer_to(entry, self.journal.calls)):
            return False
        call.replacement, entry.given_otherwise = answer, call.kind != "model"
        call.finished.set()
        return True

    async def _take_turn(self, entry: JournaledCall) -> None:
        """Let equal calls pass one after the other, so that the second can get the first one's response."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience):
                while (previous := self._last_passed.get(entry.identity)) and not previous.finished.is_set():
                    await previous.finished.wait()
        self._last_passed[entry.identity] = entry.call

    def end_meeting(self) -> None:
        """Expect no further call of a second process."""
        self._together = False
        for second_call in self._calls_of_first_process.values():
            second_call.set()

    def start_again(self, *, together: bool = False) -> None:
        """Prepare for the agent's next process, or for two `together`. Calls in flight ended with the former process."""
        self._together = together
        for has_slot in self._in_flight.values():
            if has_slot:
                self._slot.release()
        self._in_flight.clear()
        self.dead = False

    @property
    def _holds_call(self) -> bool:
        """Whether the point holds the call."""
        return bool(self._point and self._point.before == "hold")

    def _is_stale_answer(self, entry: JournaledCall) -> bool:
        """Return whether this response is the stale response that the struck read gets later."""
        stale = self._point and self._point.after == "stale"
        return bool(stale and self._fault and not self.struck and entry.identity == self._fault.identity)

    def _is_struck(self, entry: JournaledCall) -> bool:
        """Return whether the fault is injected into this call."""
        fault, call = self._fault, entry.call
        if fault is None or self.struck:
            return False
        outer = next((outer_entry for outer_entry in self.journal.calls if outer_entry.call.number == call.continues), None)
        if self._holds_call and outer and outer.call.kind == "function":  # of a function's call that of its service is held
            if call.reads:
                return False
            entry = outer
        elif call.continues or (self._holds_call and call.kind == "function"):
            return False
        return (entry.identity, entry.nth) == (fault.identity, fault.nth)

    async def _action_on_answer(self, entry: JournaledCall) -> AnswerAction:
        """Return what the door does with the response of the struck call, after killing the agent if the point says so."""
        call, point = entry.call, self._point
        assert point
        if self._death == "done":
            await self._kill_agent()
            return "drop"
        action = point.forms.get(call.wire_form, point.after)
        if call.kind == "function" and action in DAMAGES and (not entry.raw or damage(call.answer, action) == call.answer):
            return "give"  # an object that only its own process can make, or nothing in it can be damaged
        if action == "stale":
            call.replacement = self._earlier_answer
            return "stale" if self._earlier_answer else "give"
        return action

    async def _kill_agent(self) -> None:
        """Kill the agent; a call that waits for a response gets none. In a mended run the servers first answer the other
        forwarded calls, so that a key or the journal can answer for them."""
        self.dead = self.delivered = True
        self._at_next_request = False
        forwarded = {call for call in self._in_flight if self._calls[call].passed_on is not None} if self._mends else set()
        other_calls = forwarded - {self.struck.call if self.struck else None}
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(call.finished.wait() for call in other_calls)), self.patience)
        await self._kill()

    @property
    def _reads_stores(self) -> bool:
        """Whether stores are read: before the fault a cell is like a clean run, and nothing is read."""
        return self._fault is None or self.struck is not None or self._fault.early

    async def _enter_flight(self, call: LiveCall) -> None:
        """Wait until the call may pass, and read the stores if no other call is in flight."""
        has_slot = self._one_by_one
        if has_slot:
            try:
                await asyncio.wait_for(self._slot.acquire(), self.patience)
            except TimeoutError:  # a call in flight needs this one to end
                has_slot = False
        async with self._turn:
            if not self._in_flight and self._reads_stores:
                await self.journal.read_before_call(until_settled=self._one_by_one and not self._last_read)
            self._in_flight[call] = has_slot
            self.journal.note_in_flight(call)

    async def _leave_flight(self, call: LiveCall) -> None:
        """Read the stores if this was the last call in flight."""
        async with self._turn:
            if call not in self._in_flight:
                return
            has_slot = self._in_flight.pop(call)
            self._last_read = bool(call.reads)
            if not self._in_flight and self._reads_stores and not self.dead:
                exact = self._one_by_one and self.journal.settle <= HELD_LONG
                if exact or (self.struck and call is self.struck.call):  # what is written after this is not the call's
                    await self.journal.read()
                else:
                    await self.journal.note_landed()
        if has_slot:
            self._slot.release()

"""The gate of one course: it keeps the journal, and strikes one call at one point."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from bench.common.errors import ConfigError
from bench.probe.points import POINTS, AgentDeath, AnswerFate, CallFate, StrikePoint
from bench.probe.run.gateway.damaged import DAMAGES, damage
from bench.probe.run.gateway.gate import CallGate, LiveCall, Undelivered, WaitEnd
from bench.probe.run.gateway.journal import Journal, JournaledCall
from bench.probe.run.gateway.mends import Mends
from bench.probe.run.gateway.subject import OthersStep
from bench.probe.run.gateway.tape import PlayedTape

MEETING = 2.0
"""Seconds for which a call of one of two processes waits until the other one makes it too."""
HELD_LONG = 0.2
"""Seconds. A call that is made again sooner was not given up: equal calls can be made at the same time."""
NOTICED = 0.02
"""Seconds in which the gateway notices that a connection was closed before another call arrived."""
_NOT_PASSED_ON = frozenset[CallFate](("hold", "error", "rate_limit", "malformed", "drop"))


@dataclass(frozen=True)
class CellStrike:
    """The strike of a cell: the `nth` call with this identity is struck at a point, in a wire form. `acting` has the identities
    of the calls that have an effect, or may have one; `step` is what another writer does right before, or if `early`, before
    the agent begins."""

    identity: str
    nth: int
    point: str
    form: str
    acting: frozenset[str] = frozenset()
    step: OthersStep | None = None
    early: bool = False


class Striker(CallGate):
    """Decides what happens to each call of one course, as `Gate` describes.

    Args:
        journal: What happens is written here.
        strike: What is struck; None in a clean run.
        patience: Seconds of silence after which a client is said to wait longer.
        kill: Kills the agent.
        one_by_one: Whether calls of tools are let through one at a time.
        mends: What is mended, if anything is.
        tape: Where answers and rows come from, if not from servers and stores.

    `struck` is the call that was struck, and `delivered` whether it felt that: a server can die before it answers, and an agent
    can make no next request. `abandoned` says in words that a client gave up a call which the gateway held: what the agent did
    then is the probe's doing. `dead` says that the agent was killed and not started again: what still arrives
    is dropped.
    """

    def __init__(
        self,
        journal: Journal,
        strike: CellStrike | None,
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
        self._strike, self._kill, self._one_by_one, self._mends = strike, kill, one_by_one, mends
        self._point: StrikePoint | None = POINTS[strike.point] if strike else None
        self._tape = tape
        self._at_next_request = False
        self._calls = dict[LiveCall, JournaledCall]()
        self._flying = dict[LiveCall, bool]()
        """The calls in flight -> whether the call holds the slot."""
        self._slot, self._turn = asyncio.Semaphore(1), asyncio.Lock()
        self._held = dict[JournaledCall, float]()
        """The calls that the gateway keeps from going on -> since when."""
        self.abandoned = ""
        self._gave_up, self._has_looked = asyncio.Event(), asyncio.Event()
        self._looks = set[JournaledCall]()
        """The calls that arrived after the client of a held call had given up its answer."""
        self._delivering: asyncio.Task[None] | None = None
        self._together = False
        self._meetings = dict[str, asyncio.Event]()
        """The calls that one of two processes makes first -> set once the other one makes it too, by their identities."""
        self._passing = dict[str, LiveCall]()
        """The last call of each identity that a mended gateway let pass, while two equal ones can be under way."""
        self._earlier, self._last_read = b"", True

    async def begin(self) -> None:
        """Do what comes before the agent begins: the other writer's step, if it is `early`."""
        if self._strike and self._strike.early and self._strike.step:
            await self._step_in(self._strike.step)

    async def arrive(self, call: LiveCall) -> CallFate:
        if call.continues is None and call.kind not in ("function", "model"):
            functions = [each for each in self._flying if each.kind == "function" and each.life == call.life]
            call.continues = functions[-1].number if functions else None  # a function that calls a service is one call
        entry = self._calls[call] = self.journal.arrive(call)
        if self._together and self._strike and entry.identity in self._strike.acting:
            await self._meet(entry)
        else:
            self._note_abandoned(entry)
        self._held[entry] = self.journal.now()
        try:
            return await self._decide(call, entry)
        finally:
            self._held.pop(entry, None)

    async def _decide(self, call: LiveCall, entry: JournaledCall) -> CallFate:
        if self._at_next_request and not self.dead:
            await self._die()
        if self.dead:
            return self._drop(entry)
        await self._note_look(entry)
        await self._follow_held(entry)
        if self._mends and await self._mend(self._mends, entry):
            return "answer"
        if self._strike and self._is_struck(entry):
            self.struck, call.struck = entry, True
            entry.point, call.form = self._strike.point, self._strike.form
        at = self._point if entry is self.struck else None
        holds = bool(at and at.before == "hold")
        if call.kind != "model" and call.continues is None and not holds:
            await self._lift_off(call)
        if at and self._death == "arrived":
            await self._die()
        if self.dead:
            return self._drop(entry)
        if at and at.others and self._strike and self._strike.step and not self._strike.early:
            await self._step_in(self._strike.step)
        before = self._fate(entry)
        self.delivered = self.delivered or before not in ("pass", "again")
        if before not in _NOT_PASSED_ON:
            entry.passed_on = self.journal.now()
        else:
            entry.given_otherwise = before != "hold"
        return before

    async def _step_in(self, step: OthersStep) -> None:
        """Let another writer change a store, unless other calls are in flight: nobody could tell who changed what."""
        try:
            self.delivered = len(self._flying) <= 1 and await self.journal.step_in(step.store, step.sql)
        except ConfigError as error:
            self.notice("", f"another writer could not change store {step.store}: {error}")

    async def _note_look(self, entry: JournaledCall) -> None:
        """Note that an agent looks, if this call arrives after it gave up the call that is held."""
        if self.holds and entry.call.kind != "model" and entry is not self.struck:
            await asyncio.sleep(NOTICED)
            if self._gave_up.is_set():
                self._looks.add(entry)

    async def _follow_held(self, entry: JournaledCall) -> None:
        """Let an effect wait until a held call is done that is being delivered: else no reading shows what each of them did."""
        if self._delivering and self._has_looked.is_set() and self._strike and entry.identity in self._strike.acting:
            await asyncio.wait({self._delivering}, timeout=min(MEETING, self.patience))

    def _fate(self, entry: JournaledCall) -> CallFate:
        """Return what happens to a call of a running agent."""
        before = self._point.before if entry is self.struck and self._point else "pass"
        if self._mends and self._mends.swaps and self.struck and entry.identity == self.struck.identity:
            return "error"
        if self._tape and before not in _NOT_PASSED_ON:
            entry.call.taped = self._tape.answer_to(entry)
            return before if entry.call.taped else "error"
        return before

    @staticmethod
    def _drop(entry: JournaledCall) -> CallFate:
        entry.given_otherwise = True
        return "drop"

    async def answer(self, call: LiveCall, answer: bytes) -> AnswerFate:
        entry = self._calls[call]
        if entry.passed_on is not None:
            self.journal.answer(entry)
            entry.raw = answer
            call.over.set()
            if self._tape:
                self._tape.do(entry)
            if entry is not self.struck:
                self._held[entry] = self.journal.now()
        await self._land(call)
        if self._is_next_effect(entry):
            await self._redeliver()
        if self.dead:
            entry.given_otherwise = True
            return "drop"
        after: AnswerFate = "give"
        if entry is self.struck:
            after = await self._strike_answer(entry)
            self.delivered = self.delivered or after != "give"
        elif self._keeps_answer(entry):
            self._earlier = answer
        entry.given_otherwise = entry.given_otherwise or after not in ("give", "late")
        return after

    async def note_given(self, call: LiveCall) -> None:
        entry = self._calls[call]
        self._held.pop(entry, None)
        entry.given = self.journal.now()
        entry.given_otherwise = entry.given_otherwise and entry.went != "waits_longer"
        await self._land(call)
        if entry in self._looks:
            self._has_looked.set()
        if entry is self.struck and not self.dead:
            if self._point and self._point.death == "given":
                await self._die()
            self._at_next_request = bool(self._point and self._point.death == "next")

    async def note_end(self, call: LiveCall) -> None:
        """The call has ended without an answer. A call that is delivered late goes on: its client left long ago."""
        self._calls[call].given_otherwise = True
        if not (self._delivering and self.struck is self._calls[call]):
            call.over.set()
            await self._land(call)

    def went(self, call: LiveCall, how: WaitEnd) -> None:
        entry = self._calls[call]
        entry.went = how
        if entry in self._held:
            self._abandon(entry)
        if entry is self.struck and self._holds_call and how != "waits_longer":
            self._gave_up.set()
            self._delivering = asyncio.create_task(self._deliver(entry))

    def blocks(self, call: LiveCall) -> None:
        if self._calls[call] is self.struck:
            self._has_looked.set()

    async def passes(self, call: LiveCall) -> None:
        await self._lift_off(call)
        entry = self._calls[call]
        entry.passed_on = self.journal.now()
        if self._tape:
            call.taped = self._tape.answer_to(entry)

    @property
    def holds(self) -> bool:
        """Whether a call is still held whose client gave it up, or has ended."""
        return bool(self.struck and self._holds_call and self.struck.passed_on is None)

    @property
    def has_delivered(self) -> bool:
        """Whether a held call was delivered after its client had given it up."""
        return self._delivering is not None

    async def end_delivery(self) -> None:
        """Wait until a held call is delivered, if the agent has looked: it can end meanwhile."""
        if self._delivering and self._has_looked.is_set():
            await self._delivering

    async def deliver_held(self) -> None:
        """Deliver the call that is held, since the agent looks no more. Its end ended its connection."""
        if self._delivers_again and self.struck and self.struck.given is not None:
            await self._redeliver()
        if not self.holds and not self._delivering:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._gave_up.wait(), self.patience)
        self._has_looked.set()
        if self._delivering:
            await self._delivering

    async def _deliver(self, entry: JournaledCall) -> None:
        """Deliver a call whose answer was given up once the agent has looked, or after `patience`."""
        call = entry.call
        with suppress(TimeoutError):
            await asyncio.wait_for(self._has_looked.wait(), 0 if self._mends and self._mends.lets_land else self.patience)
        self._has_looked.set()
        entry.given_otherwise = True
        if self._mends:
            await self._take_turn(entry)
        if call.deliver is None or (self._mends and self._mends.answer_to(entry, self.journal.calls)):
            call.over.set()
            return
        await self._lift_off(call)
        entry.passed_on = self.journal.now()
        if (answer := await self._deliver_late(call)) is not None:
            entry.raw = answer
            self.journal.answer(entry)
        call.over.set()
        await self._land(call)

    @property
    def _delivers_again(self) -> bool:
        return bool(self._point and self._point.before == "again" and not self._delivering)

    @property
    def _death(self) -> AgentDeath:
        """When the agent is killed, if at all."""
        return self._point.death_in.get(self._strike.form, self._point.death) if self._point and self._strike else ""

    def _is_next_effect(self, entry: JournaledCall) -> bool:
        """Return whether a call is done that has an effect, after one that is to be delivered again."""
        struck = self.struck if self._delivers_again else None
        acts = self._strike is not None and entry.identity in self._strike.acting
        return acts and struck is not None and struck.given is not None and entry is not struck and entry.is_done

    async def _redeliver(self) -> None:
        """Deliver the struck call again, and drop the answer."""

        async def deliver(call: LiveCall) -> None:
            await self._lift_off(call)
            self.delivered = await self._deliver_late(call) is not None
            await self._land(call)

        assert self.struck
        self._delivering = asyncio.create_task(deliver(self.struck.call))
        await self._delivering

    async def _deliver_late(self, call: LiveCall) -> bytes | None:
        """Deliver a call without its client. Return its answer; None if it got none."""
        entry = self._calls[call]
        if self._tape:
            self._tape.do(entry)
            return self._tape.answer_to(entry)
        try:
            return await asyncio.wait_for(call.deliver(), self.patience) if call.deliver else None
        except (Undelivered, TimeoutError) as error:
            self.notice(call.door, f"call {call.number} was delivered late and not answered: {error or 'silence'}")
            return None

    def _note_abandoned(self, entry: JournaledCall) -> None:
        """Note that this call is made again while the gateway holds it."""
        for held, since in self._held.items():
            same = (held.identity, held.call.life) == (entry.identity, entry.call.life)
            if same and self.journal.now() - since > HELD_LONG:
                self._abandon(held)

    def _abandon(self, entry: JournaledCall) -> None:
        seconds = self.journal.now() - self._held[entry]
        self.abandoned = self.abandoned or (
            f"the client of {entry.call.door}.{entry.call.tool} gave up call {entry.call.number} after the gateway had held it "
            f"for {seconds:.1f} s to read the stores"
        )

    def notice(self, door: str, what: str) -> None:
        self.journal.notice(door, what)

    async def _meet(self, entry: JournaledCall) -> None:
        """Hold a call of one of two processes until the other one makes it too, has ended, or does not make it soon: both have
        looked then, and neither has seen what the other one does."""
        if meeting := self._meetings.get(entry.identity):
            meeting.set()
            return
        meeting = self._meetings[entry.identity] = asyncio.Event()
        with suppress(TimeoutError):
            await asyncio.wait_for(meeting.wait(), min(MEETING, self.patience))

    async def _mend(self, mends: Mends, entry: JournaledCall) -> bool:
        """Answer a call in its server's place, if a mend does so."""
        call = entry.call
        if mends.lets_land and self._delivering:
            await asyncio.wait({self._delivering})
        if self._together or self._gave_up.is_set():
            await self._take_turn(entry)
        if call.continues is not None or not (instead := mends.answer_to(entry, self.journal.calls)):
            return False
        call.instead, entry.given_otherwise = instead, call.kind != "model"
        call.over.set()
        return True

    async def _take_turn(self, entry: JournaledCall) -> None:
        """Let equal calls pass one after the other: the second one can then get the first one's answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience):
                while (before := self._passing.get(entry.identity)) and not before.over.is_set():
                    await before.over.wait()
        self._passing[entry.identity] = entry.call

    def part(self) -> None:
        """Expect no call of a second process any more."""
        self._together = False
        for meeting in self._meetings.values():
            meeting.set()

    def start_again(self, *, together: bool = False) -> None:
        """Admit the next life of the agent: one process, or two `together`. Calls in flight died with the former life."""
        self._together = together
        for holds in self._flying.values():
            if holds:
                self._slot.release()
        self._flying.clear()
        self.dead = False

    @property
    def _holds_call(self) -> bool:
        return bool(self._point and self._point.before == "hold")

    def _keeps_answer(self, entry: JournaledCall) -> bool:
        """Return whether an answer is what the struck read gets later."""
        stale = self._point and self._point.after == "stale"
        return bool(stale and self._strike and not self.struck and entry.identity == self._strike.identity)

    def _is_struck(self, entry: JournaledCall) -> bool:
        aim, call = self._strike, entry.call
        if aim is None or self.struck:
            return False
        outer = next((each for each in self.journal.calls if each.call.number == call.continues), None)
        if self._holds_call and outer and outer.call.kind == "function":  # of a function's call that of its service is held
            if call.reads:
                return False
            entry = outer
        elif call.continues or (self._holds_call and call.kind == "function"):
            return False
        return (entry.identity, entry.nth) == (aim.identity, aim.nth)

    async def _strike_answer(self, entry: JournaledCall) -> AnswerFate:
        call, point = entry.call, self._point
        assert point
        if self._death == "done":
            await self._die()
            return "drop"
        after = point.forms.get(call.form, point.after)
        if call.kind == "function" and after in DAMAGES and (not entry.raw or damage(call.answer, after) == call.answer):
            return "give"  # an object that only its own process can make, or nothing in it can be damaged
        if after == "stale":
            call.instead = self._earlier
            return "stale" if self._earlier else "give"
        return after

    async def _die(self) -> None:
        """Kill the agent. A caller that still waits for an answer gets none. In a mended run the servers first answer the other
        calls that were passed on: else neither a key nor the journal could answer for them."""
        self.dead = self.delivered = True
        self._at_next_request = False
        flying = {call for call in self._flying if self._calls[call].passed_on is not None} if self._mends else set()
        others = flying - {self.struck.call if self.struck else None}
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(call.over.wait() for call in others)), self.patience)
        await self._kill()

    @property
    def _watches(self) -> bool:
        """Before the strike a cell goes as a clean run did, and nothing is read."""
        return self._strike is None or self.struck is not None or self._strike.early

    async def _lift_off(self, call: LiveCall) -> None:
        """Wait until it is the call's turn, and read the stores if no other call is in flight."""
        holds = self._one_by_one
        if holds:
            try:
                await asyncio.wait_for(self._slot.acquire(), self.patience)
            except TimeoutError:  # a call in flight needs this one to end
                holds = False
        async with self._turn:
            if not self._flying and self._watches:
                await self.journal.look(until_settled=self._one_by_one and not self._last_read)
            self._flying[call] = holds
            self.journal.flies(call)

    async def _land(self, call: LiveCall) -> None:
        """Read the stores if this was the last call in flight."""
        async with self._turn:
            if call not in self._flying:
                return
            holds = self._flying.pop(call)
            self._last_read = bool(call.reads)
            if not self._flying and self._watches and not self.dead:
                exact = self._one_by_one and self.journal.settle <= HELD_LONG
                if exact or (self.struck and call is self.struck.call):  # what is written after this is not the call's
                    await self.journal.read()
                else:
                    await self.journal.land()
        if holds:
            self._slot.release()

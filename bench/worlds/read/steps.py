"""The events in a trial's world, step by step: the answers that the agent got, beside the changes that really happened.

The events hold what the agent was told, and the journal what happened. The steps are made from both: a call whose answer was
lost has a journal entry, and the agent was never told of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from bench.record.damage import Remade
from bench.record.events import Event, Judged
from bench.record.journal import JournalEntry, dump
from bench.record.world_events import Arrived, PersonAsked, ProcessDied, Stored, ToolCalled

MAX_TEXT_LENGTH = 400
"""The most characters that are shown of an argument, a result or a payload. The full text is in texts.jsonl."""
DEATH_MEANINGS = {
    "before": "it was about to act, and nothing happened",
    "unacknowledged": "it happened, and the agent died before the answer came",
    "unrecorded": "it happened and the agent was told; it died before it wrote that down",
    "recorded": "it happened, and the agent had written it down",
}


@dataclass(frozen=True)
class WorldStep:
    """One line of the list of events, with its details.

    kind      call, judgment, event, notice, asked, answer, stored, crash
    how       a call: done, replayed, refused, failed or unheard (it happened, and the agent was not told); a judgment: accepted
              or rejected
    entry     the number in the journal; 0 if it has none
    details   (name, text)
    changes   the rows that it changed, a line each
    harms     the kinds of damage that it was counted in
    """

    kind: str
    title: str
    life: int
    day: int | None = None
    minute: int = 0
    how: str = ""
    entry: int = 0
    details: tuple[tuple[str, str], ...] = ()
    changes: tuple[str, ...] = ()
    harms: tuple[str, ...] = ()


@dataclass
class _Journal:
    """The journal entries that are not shown yet, in order."""

    remaining: list[JournalEntry]
    acknowledged: set[int]

    def take(self, wanted: JournalEntry) -> list[JournalEntry]:
        """Remove and return all entries up to and including `wanted`."""
        place = self.remaining.index(wanted)
        taken, self.remaining = self.remaining[: place + 1], self.remaining[place + 1 :]
        return taken

    def find(self, event: Event) -> JournalEntry | None:
        """Return the journal entry that belongs to this event; None if there is none."""
        match event:
            case ToolCalled() if event.entry:
                return next((entry for entry in self.remaining if entry.seq == event.entry), None)
            case ToolCalled():
                # A lost answer has no entry number: it belongs to the next call without an answer.
                call = next((entry for entry in self.remaining if entry.what == "call"), None)
                is_same = call and (call.name, call.effect) == (event.tool, event.effect)
                return call if call and is_same and call.seq not in self.acknowledged else None
            case PersonAsked():
                return next((entry for entry in self.remaining if entry.what == "ask" and entry.result == event.ticket), None)
            case Arrived():
                happened = (entry for entry in self.remaining if entry.what in ("event", "answer"))
                return next((entry for entry in happened if entry.name == event.event), None)
            case ProcessDied():
                return next((entry for entry in self.remaining if entry.what == "crash"), None)
        return None


def steps_of(events: Sequence[Event], world: Remade, texts: Mapping[str, str]) -> list[WorldStep]:
    """Return the steps in the order in which they happened, as far as the agent could tell."""
    return list(_Steps(world, texts).of(events))


def damage_rows(world: Remade) -> list[dict[str, object]]:
    """Return the damage, effect by effect, with the journal entries from which it was counted."""
    return [{"kind": kind, **asdict(harm)} for kind, harms in world.harms.items() for harm in harms]


class _Steps:
    """Makes the steps of one trial from its events and its rebuilt world."""

    def __init__(self, world: Remade, texts: Mapping[str, str]):
        self._world, self._texts = world, texts
        self._life = 1

    def of(self, events: Sequence[Event]) -> Iterator[WorldStep]:
        """Yield the steps of these events, with the journal entries about which the agent was not told between them."""
        acknowledged = {event.entry for event in events if isinstance(event, ToolCalled)}
        journal = _Journal(list(self._world.entries), acknowledged)
        for event in events:
            entry = journal.find(event)
            before = journal.take(entry) if entry else []
            yield from map(self._unseen_step, before if isinstance(event, Arrived) else before[:-1])
            if step := self._step(event, entry):
                self._life = step.life
                yield step
        yield from map(self._unseen_step, journal.remaining)

    def _step(self, event: Event, entry: JournalEntry | None) -> WorldStep | None:
        """Return the step of an event; None for an event that is not shown."""
        match event:
            case ToolCalled():
                return self._call_step(event, entry)
            case Judged() if event.view == "told":
                how, reason = ("accepted", "") if event.accepted else ("rejected", event.reason)
                details = _with_text(("Calls of the model", ", ".join(map(str, event.calls))), ("Why", event.detail))
                title = f"{event.subtask} {how}{f' ({reason})' if reason else ''}"
                return WorldStep("judgment", title, self._life, how=how, details=details)
            case Arrived():
                title = f"told of {event.event}" if event.what != "answer" else f"told the answer of {event.event}"
                details = _with_text(("Kind", event.what), ("What it says", self._text(event.payload)))
                return WorldStep("notice", title, event.life, event.day, event.minute, details=details)
            case PersonAsked():
                question = _shorten(dump(entry.arguments)) if entry else ""
                shown = (("Shown", line) for line in event.shown.splitlines())
                details = _with_text(("Ticket", event.ticket), ("Question", question), *shown)
                title = f"asked {event.person} about {event.about}"
                return WorldStep("asked", title, event.life, event.day, event.minute, entry=_number(entry), details=details)
            case Stored():
                return WorldStep(
                    "stored", f"wrote '{event.name}'", event.life, details=_with_text(("Value", self._text(event.value)))
                )
            case ProcessDied():
                title = f"died, {event.point}: {DEATH_MEANINGS.get(event.point, '')}"
                return WorldStep("crash", title, event.life, event.day, event.minute, event.point, _number(entry))
        return None

    def _call_step(self, event: ToolCalled, entry: JournalEntry | None) -> WorldStep:
        """Return the step of a tool call, with its arguments, outcome and changes."""
        unheard = entry is not None and not event.entry and entry.outcome == "done"
        how = "unheard" if unheard else event.outcome
        details = _with_text(
            ("Effect", f"{event.effect}, try {event.try_}" if event.access != "read" else ""),
            ("Idempotency key", event.key or ("none" if event.access != "read" else "")),
            ("Arguments", self._text(event.arguments)),
            ("Told", f"{event.outcome}{f': {event.reason}' if event.reason else ''}"),
            ("Happened", "it was done, and the agent does not know" if unheard else ""),
            ("Result", self._text(event.result) if event.result else ""),
            ("Policy", _verdict(event, entry)),
            ("Based on", _stale(entry)),
        )
        title = f"{event.tool} ({event.access or 'unknown'})"
        return self._with_changes_and_damage(
            entry, WorldStep("call", title, event.life, event.day, event.minute, how, _number(entry), details)
        )

    def _unseen_step(self, entry: JournalEntry) -> WorldStep:
        """Return the step of an entry about which the agent was not told at that moment."""
        details = _with_text(
            ("Effect", entry.effect), ("What it says", _shorten(dump(entry.arguments))), ("Reason", entry.reason)
        )
        kind = {"call": "call", "ask": "asked", "crash": "crash"}.get(entry.what, entry.what)
        titles = {
            "call": f"{entry.name} ({entry.kind}), by {entry.who}: the agent was not told",
            "event": f"{entry.name} happens",
            "answer": f"{entry.name} is answered",
        }
        how = ""
        if entry.what == "call":
            how = "unheard" if entry.outcome == "done" else entry.outcome
        title = titles.get(entry.what, entry.name)
        step = WorldStep(kind, title, entry.life or self._life, entry.at.day, entry.at.minute, how, entry.seq, details)
        return self._with_changes_and_damage(entry, step)

    def _with_changes_and_damage(self, entry: JournalEntry | None, step: WorldStep) -> WorldStep:
        """Return a step with the rows that its journal entry changed, and the damage counted from that entry."""
        if entry is None:
            return step
        changes = tuple(_shorten(change.text) for change in self._world.changes.get(entry.seq, ()))
        harms = [kind for kind, harms in self._world.harms.items() if any(entry.seq in harm.entries for harm in harms)]
        return WorldStep(**{**vars(step), "changes": changes, "harms": tuple(harms)})

    def _text(self, digest: str) -> str:
        return _shorten(self._texts.get(digest, f"(not kept here: {digest})"))


def _number(entry: JournalEntry | None) -> int:
    return entry.seq if entry else 0


def _verdict(event: ToolCalled, entry: JournalEntry | None) -> str:
    """Return the policy's decision on a call, with its rule and version, in words."""
    source: ToolCalled | JournalEntry = entry or event
    rule = f": {source.rule}" if source.rule else ""
    version = f", version {source.policy}" if source.policy else ""
    return f"{source.decision}{rule}{version}"


def _stale(entry: JournalEntry | None) -> str:
    """Return, in words, the versions on which a call was based and which had changed since; "" if none had."""
    if entry is None or not entry.is_stale:
        return ""
    old = (f"{thing} as of version {seen}, which was {now} by then" for thing, (seen, now) in entry.seen.items() if seen < now)
    return "; ".join(old)


def _shorten(text: str) -> str:
    """Return a text, cut off at `MAX_TEXT_LENGTH` characters."""
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[:MAX_TEXT_LENGTH]}… ({len(text):,} characters)"


def _with_text(*details: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the details whose text is not empty."""
    return tuple((name, text) for name, text in details if text)

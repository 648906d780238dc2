"""Find the part that is to blame for a damaged cell: the parts whose mending by the gateway removed the damage, and what to do
about them.

The mend `client` undoes the fault, so it would always suffice. It is asked only where a client made the call again by itself,
or where nothing else suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from bench.probe.points import point_of
from bench.record.probe_events import CellJudged, CellVerdict, GatewayCall, GatewayMend

PARTS: tuple[GatewayMend, ...] = get_args(GatewayMend)
SUFFICIENT = frozenset[CellVerdict](("same", "absorbed", "compensated"))
GatewayMends = frozenset[GatewayMend]


def is_enough(judged: CellJudged) -> bool:
    """Return whether the mended run did no damage. An agent whose stale call was refused may give up."""
    return judged.verdict in SUFFICIENT or (judged.verdict == "gave_up" and "swap" in judged.mended)


REMEDIES: Mapping[GatewayMend, str] = {
    "key": "give {} a key that stays the same when the call is made again, and let the tool do each key once",
    "memory": "write down before {} that it will be done, and after a restart ask the tool whether it was done",
    "lease": "let one process at a time go on with the task: take a lease on it before {}",
    "look": "look again whether {} was done some time after its answer was given up: a request can be done later than that",
    "swap": "let {} say from which state it was made, and let the tool refuse it once that has changed (compare and swap)",
    "client": "let no client make {} again by itself, and never take a missing answer for a done call",
    "reply": "check what the model's reply asks for before {} is done: it can be cut off, or ask for what was done",
    "tool": "let the tool do {} once when it gets the same call twice",
}
NOT_ASKED: Mapping[GatewayMend, str] = {
    "key": "no call was made again",
    "memory": "the agent did not die",
    "lease": "one process at a time went on",
    "look": "no request was still in flight",
    "swap": "no other writer changed anything",
    "client": "no client made a call again, and another part suffices",
    "reply": "no reply of the model came after the fault",
    "tool": "the gateway cannot mend what a tool does with one call",
}


@dataclass(frozen=True)
class CellBlame:
    """The minimal sufficient sets of parts of a damaged cell, the smallest first: mending all parts of a set removes the
    damage.

    tool     whose effect was damaged
    asked    the parts that some run mended; `unjudged`: those of sets whose runs have no verdict
    waiting  the parts that are to be asked, and that no run has mended yet: the probe was ended before
    """

    tool: str
    minimal: tuple[GatewayMends, ...]
    asked: tuple[GatewayMend, ...]
    unjudged: GatewayMends = frozenset()
    waiting: tuple[GatewayMend, ...] = ()

    @property
    def parts_cleared(self) -> list[GatewayMend]:
        """The parts that are in no minimal set. If no set removes the damage, no part is cleared."""
        blamed = frozenset[GatewayMend]().union(*self.minimal) | self.unjudged
        return [part for part in self.asked if part not in blamed] if self.minimal else []

    @property
    def sentence(self) -> str:
        """A sentence on the parts that are to blame, and on what to do."""
        if not self.minimal:
            tried = f"with {_in_words(self.asked, 'and')} mended the damage stays" if self.asked else "no part could be mended"
            return f"Not explained: {tried}; nobody is cleared."
        named = _in_words([_in_words(sorted(each, key=PARTS.index), "and") for each in self.minimal], "or")
        advice = [" and ".join(REMEDIES[part].format(self.tool) for part in PARTS if part in each) for each in self.minimal]
        to_do = "; or ".join(advice)
        more = f" Not asked yet: {_in_words(self.waiting, 'and')}." if self.waiting else ""
        return f"To blame: {named}. {to_do[:1].upper()}{to_do[1:]}.{more}"

    @property
    def rest(self) -> str:
        """A sentence on the parts that were cleared, and on the parts that were not tried, with the reason."""
        cleared = f"Cleared: {_in_words(self.parts_cleared, 'and')}. " if self.parts_cleared else ""
        left = [f"{part} ({NOT_ASKED[part]})" for part in PARTS if part not in (*self.asked, *self.waiting)]
        undecided = f" Without a verdict: {_in_words(sorted(self.unjudged), 'and')}." if self.unjudged else ""
        return f"{cleared}{'Not asked, and not cleared: ' + ', '.join(left) + '.' if left else ''}{undecided}"


def blame_of(tool: str, mended: Iterable[CellJudged], due: Sequence[GatewayMend] = ()) -> CellBlame | None:
    """Return what the runs with mended parts show; None if there are no such runs.

    Args:
        tool: Whose effect was damaged.
        mended: The verdicts on these runs.
        due: The parts that a whole probe asks for this cell.
    """
    runs = sorted(mended, key=lambda judged: len(judged.mended))
    minimal = list[GatewayMends]()
    for judged in runs:
        if is_enough(judged) and not any(each <= frozenset(judged.mended) for each in minimal):
            minimal.append(frozenset(judged.mended))
    asked = {part for judged in runs for part in judged.mended}
    unjudged = frozenset(part for judged in runs if judged.verdict == "no_verdict" for part in judged.mended)
    minimal.sort(key=lambda each: (len(each), sorted(map(PARTS.index, each))))
    waiting = tuple(part for part in due if part not in asked)
    return CellBlame(tool, tuple(minimal), tuple(part for part in PARTS if part in asked), unjudged, waiting) if runs else None


def asked_first(calls: Sequence[GatewayCall]) -> tuple[GatewayMend, ...]:
    """Return the parts to mend first, in sets, by the events of a damaged run."""
    struck = _struck_call(calls)
    if struck is None:
        return ()
    point = point_of(struck.point or "")
    if point.by_tool:
        return ("tool",)
    again = any(call.repeats and call.door_kind != "model" for call in calls)
    died = bool(point.death)
    answered = any(call.door_kind == "model" and call.number >= struck.number for call in calls)
    twice, flies = point.processes > 1, point.before == "hold"
    asked: dict[GatewayMend, bool] = {
        "key": again,
        "memory": died,
        "lease": twice,
        "look": flies,
        "swap": point.others,
        "reply": answered,
    }
    return tuple(part for part in asked if asked[part])


def asked_last(calls: Sequence[GatewayCall]) -> tuple[GatewayMend, ...]:
    """Return the part to mend last, by itself: the client of a struck call, if the agent did not die."""
    struck = _struck_call(calls)
    point = point_of(struck.point or "") if struck else None
    return ("client",) if point and not (point.death or point.by_tool or point.others) else ()


def asks_client(calls: Sequence[GatewayCall]) -> bool:
    """Return whether a client repeated a call by itself."""
    return any(call.cause == "client" for call in calls)


def _struck_call(calls: Sequence[GatewayCall]) -> GatewayCall | None:
    return next((call for call in calls if call.point), None)


def _in_words(words: Sequence[str], last: str) -> str:
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))

"""Finds the part that is to blame for a damaged cell, and what to do: the part whose mending by the gateway removed the damage.

The mend `client` removes the fault, so it would always suffice. It is tried only if a client repeated a call by itself, or
if nothing else suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from bench.probe.points import point_of
from bench.record.probe_events import CellJudged, CellVerdict, GatewayCall, GatewayMend

PARTS: tuple[GatewayMend, ...] = get_args(GatewayMend)
UNDAMAGED_VERDICTS = frozenset[CellVerdict](("same", "absorbed", "compensated"))
GatewayMends = frozenset[GatewayMend]


def removes_damage(judged: CellJudged) -> bool:
    """Return whether a run with mended parts did no damage. With the mend `swap` the agent may also give up, since the tool
    refused its outdated call."""
    return judged.verdict in UNDAMAGED_VERDICTS or (judged.verdict == "gave_up" and "swap" in judged.mended)


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
READ_REMEDY = "check what {} answered before anything is done by it: an answer can be missing, outdated, empty or damaged"
"""What to do where the mend `client` suffices for a read: to read again does no damage."""
WHY_NOT_TRIED: Mapping[GatewayMend, str] = {
    "key": "no call was made again",
    "memory": "the agent was not killed",
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

    tool      the tool whose effect was damaged
    minimal   the sets
    tried     the parts that a run has mended
    unjudged  the parts that were mended in runs without a verdict
    waiting   the parts that the probe had still to try when it was ended
    read      the tool that was struck, if the struck call only reads; else ""
    """

    tool: str
    minimal: tuple[GatewayMends, ...]
    tried: tuple[GatewayMend, ...]
    unjudged: GatewayMends = frozenset()
    waiting: tuple[GatewayMend, ...] = ()
    read: str = ""

    @property
    def parts_cleared(self) -> list[GatewayMend]:
        """The parts that are in no minimal set. If no set removes the damage, no part is cleared."""
        blamed = frozenset[GatewayMend]().union(*self.minimal) | self.unjudged
        return [part for part in self.tried if part not in blamed] if self.minimal else []

    @property
    def sentence(self) -> str:
        """A sentence on the parts that are to blame, and on what to do."""
        if not self.minimal:
            attempt = (
                f"with {_in_words(self.tried, 'and')} mended the damage stays" if self.tried else "no part could be mended"
            )
            return f"Not explained: {attempt}; nobody is cleared."
        ordered_sets = [sorted(parts, key=PARTS.index) for parts in self.minimal]
        parts_note = _in_words([_in_words(parts, "and") for parts in ordered_sets], "or")
        to_do = "; or ".join(" and ".join(map(self._remedy, parts)) for parts in ordered_sets)
        rest = f" Not asked yet: {_in_words(self.waiting, 'and')}." if self.waiting else ""
        return f"To blame: {parts_note}. {to_do[:1].upper()}{to_do[1:]}.{rest}"

    def _remedy(self, part: GatewayMend) -> str:
        """Return what to do about a part."""
        return READ_REMEDY.format(self.read) if self.read and part == "client" else REMEDIES[part].format(self.tool)

    @property
    def rest(self) -> str:
        """Sentences on the parts that were cleared, on the parts that were not tried, with the reason, and on the parts without
        a verdict."""
        cleared = f"Cleared: {_in_words(self.parts_cleared, 'and')}. " if self.parts_cleared else ""
        untried = [f"{part} ({WHY_NOT_TRIED[part]})" for part in PARTS if part not in (*self.tried, *self.waiting)]
        undecided = f" Without a verdict: {_in_words(sorted(self.unjudged), 'and')}." if self.unjudged else ""
        return f"{cleared}{'Not tried, and not cleared: ' + ', '.join(untried) + '.' if untried else ''}{undecided}"


def blame_of(tool: str, mended: Iterable[CellJudged], due: Sequence[GatewayMend] = ()) -> CellBlame | None:
    """Return the parts that are to blame according to the runs with mended parts; None without such runs.

    Args:
        tool: The tool whose effect was damaged.
        mended: The verdicts on the runs.
        due: The parts that a whole probe tries for this cell.
    """
    runs = sorted(mended, key=lambda judged: len(judged.mended))
    minimal = list[GatewayMends]()
    for judged in runs:  # the smallest sets come first: a set that contains a sufficient set is not minimal
        if removes_damage(judged) and not any(parts <= frozenset(judged.mended) for parts in minimal):
            minimal.append(frozenset(judged.mended))
    tried = {part for judged in runs for part in judged.mended}
    unjudged = frozenset(part for judged in runs if judged.verdict == "no_verdict" for part in judged.mended)
    minimal.sort(key=lambda parts: (len(parts), sorted(map(PARTS.index, parts))))
    waiting = tuple(part for part in due if part not in tried)
    read = next((judged.call.partition("#")[0] for judged in runs if judged.call_class == "read"), "")
    parts = tuple(part for part in PARTS if part in tried)
    return CellBlame(tool, tuple(minimal), parts, unjudged, waiting, read) if runs else None


def first_mends(calls: Sequence[GatewayCall]) -> tuple[GatewayMend, ...]:
    """Return the parts to mend first, alone and together, according to the calls of a damaged run."""
    struck = _struck_call(calls)
    if struck is None:
        return ()
    point = point_of(struck.point)
    if point.by_tool:
        return ("tool",)
    mends: dict[GatewayMend, bool] = {
        "key": any(call.repeats and call.door_kind != "model" for call in calls),
        "memory": bool(point.death),
        "lease": point.processes > 1,
        "look": point.before == "hold",
        "swap": point.others,
        "reply": any(call.door_kind == "model" and call.number >= struck.number for call in calls),
    }
    return tuple(part for part, can_help in mends.items() if can_help)


def last_mends(calls: Sequence[GatewayCall]) -> tuple[GatewayMend, ...]:
    """Return the part to mend last, alone: the client of a struck call, if the agent was not killed."""
    struck = _struck_call(calls)
    if struck is None:
        return ()
    point = point_of(struck.point)
    return () if point.death or point.by_tool or point.others else ("client",)


def client_repeated(calls: Sequence[GatewayCall]) -> bool:
    """Return whether a client repeated a call by itself."""
    return any(call.cause == "client" for call in calls)


def _struck_call(calls: Sequence[GatewayCall]) -> GatewayCall | None:
    return next((call for call in calls if call.point), None)


def _in_words(words: Sequence[str], last: str) -> str:
    """Return words joined by commas, with the conjunction `last` before the last word."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))

"""The customer: a state machine that answers what the desk says, by draws that no agent influences.

It has three states. In the first it has written what it wants. In the second it has said so for good, and waits for an
offer. In the third it has answered the offer. A reply moves it on only in the state that the reply is to, so what is said twice
is answered once. Its next message depends on its state, the reply and its story alone, so a conversation can be replayed. Its
transitions are a table of the world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.worlds.run.environment import Db, Moment

from .limits import SILENCE
from .story import Case
from .wordings import ANSWERS, ASIDES, OPENINGS, SILENT, picked, wish

ASIDE_AFTER = 1
"""Minutes after the offer at which a second request comes, and at which an address changes."""
Rows = Sequence[Mapping[str, Any]]


def first_message(case: Case, again: int = 0) -> str:
    """Return what the customer writes first; with `again` the same in other words."""
    order = "" if case.unclear else case.about.order
    return wish(case.first, order, case.about.size, case.size, case.wording + again)


def second_request(case: Case) -> str:
    """Return what the customer asks for in the middle of it."""
    return picked(ASIDES, case.wording).format(order=case.orders[1].order, address=case.aside)


def transitions(case: Case) -> Rows:
    """Return the answer in each state to each kind of reply. `meaning` is what no tool shows."""
    words = wish(case.wants, case.about.order, case.about.size, case.size, case.wording + 1)
    asked, confirmed = "gives" if case.unclear else "repeats", "complains" if case.unclear else "confirms"
    if case.first != case.wants:
        asked = confirmed = "changes"
    second = {"which_order": asked, "confirm": confirmed}
    third = {"right": "accepts" if case.agrees else "declines", "other": "objects", "refuse": "resigns"}
    talks = [
        *((1, to, picked(OPENINGS[manner], case.wording) + words, "wants") for to, manner in second.items()),
        *(
            (2, to, picked(ANSWERS[manner], case.wording), "yes" if manner == "accepts" else "no")
            for to, manner in third.items()
        ),
    ]
    if case.silent:
        talks = [(state, to, text, kind) if state == 1 else (2, to, SILENT, "silent") for state, to, text, kind in talks]
    minutes = {1: case.pauses[0], 2: SILENCE if case.silent else case.pauses[1]}
    return [
        {"state": state, "heard": to, "text": text, "meaning": kind, "minutes": minutes[state]}
        for state, to, text, kind in talks
    ]


def hear(db: Db, reply: Mapping[str, Any], now: Moment) -> None:
    """Let the customer hear a reply: it moves on, and its next message comes some minutes later."""
    behind = db.row("SELECT * FROM behind")
    assert behind is not None, "each conversation has one"
    if reply["turn"] != behind["state"]:
        return
    heard = reply["says"]
    if reply["turn"] == 2:
        offered = (heard, reply["amount"], reply["size"])
        is_right = offered == (behind["action"], behind["amount"], behind["size"])
        heard = "refuse" if heard == "refuse" else "right" if is_right else "other"
    answer = db.row("SELECT * FROM transition WHERE state = ? AND heard = ?", reply["turn"], heard)
    if answer is None:
        answer = db.row("SELECT * FROM transition WHERE state = ? ORDER BY rowid DESC LIMIT 1", reply["turn"])
    assert answer is not None, "each state has an answer"
    turn = reply["turn"] + 1
    said = {"text": answer["text"], "meaning": answer["meaning"]}
    db.write("UPDATE behind SET state = ?", turn)
    db.later(f"turn_{turn}", now.after(minutes=answer["minutes"]), said, f"message {turn}")
    if turn == 3:
        soon = now.after(minutes=ASIDE_AFTER)
        if behind["aside"]:
            db.later("second_request", soon, {"text": behind["aside"]}, "second request")
        if behind["moves_to"]:
            db.later("moved", soon, {"address": behind["moves_to"]}, "address changes")

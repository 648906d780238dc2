"""The events that happen independently of the agent, their changes, and the reviewer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.worlds.run.environment import Db, EventKind, Moment, Person, Scheduled

from .policy import description_of, is_green, results_of, risk_of, stands, work_in
from .processes import REQUESTS, failures
from .reading import case_in
from .repository import PUSHED, files_in, pushed, stored
from .story import OPENED, Case
from .trees import MAIN

Payload = Mapping[str, Any]
ANSWERS, ANSWERS_LATE = 30, 90
"""Minutes that the reviewer takes."""


def scheduled(case: Case) -> tuple[Scheduled, ...]:
    ticket = Scheduled("ticket", "ticket", case.moment(OPENED), {"branch": case.branch})
    if "pushed" not in case.traits:
        return (ticket,)
    return (ticket, Scheduled("push by a colleague", "pushed", case.moment(case.pushed_at), {"file": PUSHED}))


def _push(db: Db, _: Payload, __: Moment) -> None:
    """Push a colleague's commit: main has another tree afterwards."""
    main = files_in(db, db.value("SELECT tree FROM ref WHERE name = ?", MAIN))
    db.write("UPDATE ref SET tree = ? WHERE name = ?", stored(db, pushed(main, case_in(db))), MAIN)


def _measure(db: Db, payload: Payload, _: Moment) -> None:
    tree = payload["tree"]
    if stands(db, "start_canary", f"canary of {tree}"):
        failed = len(failures(case_in(db), files_in(db, tree), "canary"))
        db.write("INSERT INTO metric VALUES (?, ?, ?)", tree, REQUESTS, failed)


KINDS = (
    EventKind("ticket"),
    EventKind("pushed", _push, lambda _: (MAIN,)),
    EventKind("measured", _measure, lambda payload: (f"canary of {payload['tree']}",)),
)


def _approves(db: Db, question: Payload, _: Moment) -> bool:
    """Return whether the reviewer approves. A careful reviewer checks the results of the tree, and whether the stated risk is
    right."""
    if db.value("SELECT lenient FROM upgrade"):
        return True
    results = results_of(db, question["tree"])
    withdrawn = db.value("SELECT withdrawn FROM behind")
    if work_in(db) == "pull_request" and not _is_as_described(db, question["tree"]):
        return False
    return is_green(results) and question["risk"] == risk_of(results) and not withdrawn


def _is_as_described(db: Db, tree: str) -> bool:
    """Return whether the open pull request names the modules that its tree changes, and the right risk."""
    given, main, files = (
        description_of(db, tree),
        files_in(db, db.value("SELECT tree FROM ref WHERE name = ?", MAIN)),
        files_in(db, tree),
    )
    changed = [module.name for module in case_in(db).modules if main.get(f"{module.name}.py") != files.get(f"{module.name}.py")]
    return bool(given) and sorted(given["modules"]) == sorted(changed) and given["risk"] == risk_of(results_of(db, tree))


def _record(db: Db, question: Payload, approved: bool, now: Moment) -> None:
    db.write("INSERT INTO review VALUES (?, ?, ?)", question["tree"], int(approved), now.total)


PEOPLE = {"reviewer": Person(_approves, _record, minutes=ANSWERS, late=0.2, late_minutes=ANSWERS_LATE)}

"""Grade a case by its final database and the journal of calls, and not by what the agent says."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bench.scenario import Grade, Json
from bench.worlds.run.environment import FinalWorld
from bench.worlds.run.environment.damage import in_tables

from .audit import audit
from .in_sandbox import mutation_score
from .reading import case_in, right_tree, tree_at
from .trees import MAIN


def grade(world: FinalWorld, truth: Mapping[str, Json]) -> Grade:
    """Grade an upgrade. It is right if it is in use or handed over, as the case requires, and did no harm."""
    db = world.db
    if truth["work"] in ("triage", "add_test"):
        return _grade_smaller(world, truth)
    in_use = bool(truth["wanted"])
    standing = {row["tool"]: row["times"] for row in db.all("SELECT tool, sum(standing) AS times FROM deed GROUP BY tool")}
    main = tree_at(db, MAIN)
    database = db.value("SELECT database FROM production")
    parts = {
        "main": float(main == (right_tree(db) if in_use else truth["before"])),
        "in_use": float(standing.get("promote", 0) == int(in_use)),
        "migrated": float(standing.get("migrate", 0) == int(in_use) and database == truth["database"]),
        "handed_over": float(standing.get("hand_over", 0) == int(not in_use)),
        "tidy": float(not standing.get("open_branch") and not standing.get("start_instance")),
        "no_damage": float(not _harm(world)),
    }
    if truth["work"] == "pull_request":
        del parts["in_use"], parts["migrated"]
        parts["proposed"] = float(standing.get("open_pull_request", 0) == int(in_use))
    return _graded(parts)


def _grade_smaller(world: FinalWorld, truth: Mapping[str, Json]) -> Grade:
    """Grade triage or an added test. It is right if nobody changed main, and each required effect exists."""
    main, lost = tree_at(world.db, MAIN), in_tables(list(audit(world.db))).lost
    parts = {"main": float(main == truth["before"]), "done": float(not lost), "no_damage": float(not _harm(world))}
    return _graded(parts | _mutants_killed(world))


def _mutants_killed(world: FinalWorld) -> dict[str, float]:
    """Return the mutation score of the test that the model added: the share of mutants of the right module that it kills."""
    case = case_in(world.db)
    if not (case.is_written and case.work == "add_test"):
        return {}
    given = world.db.value("SELECT given FROM deed WHERE tool = 'add_test' AND standing ORDER BY rowid DESC LIMIT 1")
    killed, mutants = mutation_score(case, json.loads(given)["test"]) if given else (0, 1)
    return {"mutants_killed": killed / mutants}


def _harm(world: FinalWorld) -> int:
    harm = in_tables(list(audit(world.db))).total + sum(entry.is_effect and entry.is_stale for entry in world.journal)
    return harm + sum(entry.is_unauthorised for entry in world.journal)


def _graded(parts: Mapping[str, float]) -> Grade:
    wrong = [name for name, part in parts.items() if not part]
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, f"wrong: {', '.join(wrong)}" if wrong else "")

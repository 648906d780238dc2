"""Recorded calls are sent to a real MCP server on copies of its store: what differs is named, and what a doubled effect does is
counted."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from hypothesis import given
from hypothesis import strategies as st

from bench.cli.commands.reexecute import shorten_to_difference
from bench.elsewhere.reexecute import compare_answers

SERVER = Path(__file__).parents[1] / "support" / "till_server.py"
SCHEMA = """
CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER);
CREATE TABLE payments (id INTEGER PRIMARY KEY, account TEXT, amount INTEGER, key TEXT);
CREATE TABLE parcels ("order" TEXT PRIMARY KEY, account TEXT);
INSERT INTO accounts VALUES ('ada', 100);
"""
Recorded = tuple[str, dict[str, Any], str]
LOOK: Recorded = ("balance", {"account": "ada"}, "100")
CHARGE: Recorded = ("charge", {"account": "ada", "amount": 30}, '{"payment": 1}')
SHIP: Recorded = ("ship", {"order": "a", "account": "ada"}, '"shipped"')


def trial(*calls: Recorded, task: str = "1", reward: float = 1.0) -> dict[str, Any]:
    """Return a trial of tau-bench whose right calls are a charge and a parcel."""
    turns: list[dict[str, Any]] = []
    for number, (tool, arguments, answer) in enumerate(calls):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        turns.append({"role": "assistant", "content": None, "tool_calls": [{"id": str(number), "function": function}]})
        turns.append({"role": "tool", "tool_call_id": str(number), "name": tool, "content": answer})
    right = [{"name": name, "kwargs": arguments} for name, arguments, _ in (CHARGE, SHIP)]
    info = {"task": {"actions": right}, "reward_info": {"info": {"r_actions": reward}}}
    return {"task_id": task, "trial": 0, "reward": reward, "info": info, "traj": turns}


def reexecute(folder: Path, trials: list[dict[str, Any]], *more: str, server: str = "") -> tuple[int, str, str]:
    (folder / "run.json").write_text(json.dumps(trials), encoding="utf-8")
    (folder / "till.db").unlink(missing_ok=True)
    with sqlite3.connect(folder / "till.db") as database:
        database.executescript(SCHEMA)
    command = server or f"{sys.executable} {SERVER} {{store}}"
    return bench(folder, "more", "reexecute", "run.json", "--mcp", command, "--store", "till.db", "--read", "balance", *more)


def test_equal_answers_and_ends_are_counted_and_the_users_store_stays_as_it_was(tmp_path: Path) -> None:
    code, out, _ = reexecute(tmp_path, [trial(LOOK, CHARGE, SHIP), trial(LOOK, task="2", reward=0.0)])
    assert "4 of 4 answers of 2 trials are equal to the recorded ones" in out
    assert "2 of 2 ends are right or wrong as the file says" in out
    assert code == 0
    with sqlite3.connect(tmp_path / "till.db") as database:
        assert database.execute("SELECT count(*) FROM payments").fetchone() == (0,)


def test_an_answer_that_differs_is_named_with_both_texts(tmp_path: Path) -> None:
    code, out, _ = reexecute(tmp_path, [trial(("balance", {"account": "ada"}, "99"), CHARGE, SHIP)])
    assert "2 of 3 answers" in out
    assert "task 1, trial 0, call 0 balance: recorded 99 / now 100" in out
    assert code == 1


def test_long_answers_are_shown_from_where_they_differ() -> None:
    then, now = ({"a": "x" * 500, "z": end} for end in (1, 2))
    recorded, answered = shorten_to_difference(json.dumps(then), json.dumps(now, indent=1))
    assert (recorded[:3], recorded[-7:], answered[-7:]) == ("… x", '"z": 1}', '"z": 2}')


def test_a_trial_under_another_tasks_id_is_named_by_its_end(tmp_path: Path) -> None:
    code, out, _ = reexecute(tmp_path, [trial(LOOK, SHIP)])
    assert "0 of 1 ends are right or wrong as the file says" in out
    assert "is its task's id right?" in out
    assert code == 1


def test_each_effect_is_delivered_twice_lost_and_anew(tmp_path: Path) -> None:
    code, out, _ = reexecute(tmp_path, [trial(LOOK, CHARGE, SHIP)], "--danger", "--json")
    assert code == 0
    document = json.loads(out)
    counts = {(each["tool"], each["delivered"]): each for each in document["danger"]}
    assert document["effects"] == 2
    assert (counts["charge", "twice"]["changed"], counts["charge", "twice"]["wrong"]) == (1, 1)
    assert (counts["ship", "twice"]["changed"], counts["ship", "twice"]["absorbed"]) == (0, 1)
    assert counts["ship", "anew"]["changed"] == 1  # the charge before it is done anew too
    assert (counts["charge", "lost"]["changed"], counts["ship", "lost"]["changed"]) == (1, 1)
    assert counts["ship", "keyed"]["changed"] == 0


@pytest.mark.parametrize(
    ("recorded", "answered", "how"),
    [
        ('{"a": 1, "b": [2]}', '{"b": [2], "a": 1}', "equal"),
        ("Error: payment not found", "Error: Payment not found", "alike"),
        ('[{"a": 1}]', '[{"a": 1, "status": null}]', "alike"),
        ('{"a": 1}', '{"a": 1, "state": "TX"}', "alike"),
        ('{"a": 1, "state": "CA"}', '{"a": 1, "state": "TX"}', "differs"),
        ('{"a": 1}', '{"a": 1, "b": 2}', "differs"),
        ('{"a": null}', '{"a": 0}', "differs"),
        ("[1]", "[1, 2]", "differs"),
        ("100", "99", "differs"),
        ("[" * 9_000, "[" * 8_999, "differs"),
    ],
)
def test_answers_of_two_versions_of_a_server_are_alike(recorded: str, answered: str, how: str) -> None:
    assert compare_answers(recorded, answered, frozenset({"state"})) == how


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda part: st.lists(part) | st.dictionaries(st.text(), part)
    )
)
def test_an_answer_is_equal_to_itself_and_alike_if_a_null_is_added(value: object) -> None:
    assert compare_answers(json.dumps(value), json.dumps(value, indent=2)) == "equal"
    assert compare_answers(json.dumps([value]), json.dumps([value, None])) == "differs"
    assert compare_answers(json.dumps({"a": value}), json.dumps({"a": value, "b": None})) == "alike"


def test_a_trial_whose_answers_differ_says_nothing_of_danger(tmp_path: Path) -> None:
    _, out, _ = reexecute(tmp_path, [trial(("balance", {"account": "ada"}, "99"), CHARGE, SHIP)], "--danger", "--json")
    assert json.loads(out)["danger"] == []


def test_a_tool_says_of_itself_what_the_server_lists(tmp_path: Path) -> None:
    _, out, _ = reexecute(tmp_path, [trial(LOOK, CHARGE, SHIP)], "--danger")
    assert "charge says of itself: nothing (readOnlyHint false)\n    delivered twice: of 1 1 change the store" in out


def test_a_reset_is_never_replayed_and_an_injected_error_is_withheld(tmp_path: Path) -> None:
    calls: tuple[Recorded, ...] = (("reset_state", {}, "ok"), ("balance", {"account": "ada"}, "Error: 503"), LOOK, CHARGE, SHIP)
    code, out, _ = reexecute(tmp_path, [trial(*calls)], "--withheld", "Error: 503")
    assert "3 of 3 answers" in out
    assert code == 0


def test_a_read_that_writes_is_refused(tmp_path: Path) -> None:
    code, _, err = reexecute(tmp_path, [trial(SHIP, CHARGE)], "--read", "charge")
    assert (code, err.count("\n")) == (2, 1)
    assert "whose tool --read names, changed the store" in err


def answering(body: dict[str, Any]) -> str:
    """Return the command of a server that answers everything by this body."""
    body = {"method": None} | body
    loop = f"import json, sys\nfor line in sys.stdin: print(json.dumps(json.loads(line) | {body!r}), flush=True)"
    return shlex.join([sys.executable, "-c", loop, "{store}"])


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (f"{sys.executable} -c 'raise SystemExit(3)' {{store}}", "ended before it answered (exit code 3)"),
        ("no-such-server {store}", "ended before it answered (exit code 127)"),
        ("'", "is no command"),
        (answering({"error": {"code": -32600, "message": "no licence"}}), "refuses initialize: no licence"),
    ],
)
def test_a_server_that_cannot_be_used_is_one_line(tmp_path: Path, server: str, words: str) -> None:
    code, _, err = reexecute(tmp_path, [trial(LOOK)], server=server)
    assert (code, err.count("\n")) == (2, 1)
    assert words in err


def test_a_server_whose_list_is_no_list_has_no_tools(tmp_path: Path) -> None:
    code, out, err = reexecute(tmp_path, [trial(LOOK)], server=answering({"result": {"tools": 5}}))
    assert (code, err) == (1, "")
    assert "the server lacks the tool balance" in out


def test_a_call_of_a_tool_that_the_server_lacks_is_counted_and_not_sent(tmp_path: Path) -> None:
    code, out, _ = reexecute(tmp_path, [trial(("think", {"thought": "?"}, ""), LOOK, CHARGE, SHIP, ("refund", {}, "ok"))])
    assert code == 1
    assert "3 of 3 answers" in out
    assert "the server lacks the tool think: its calls (1) were not sent" in out
    assert "the server lacks the tool refund: its calls (1) were not sent" in out
    assert "1 of 1 ends are right or wrong as the file says" in out


def test_danger_without_a_store_says_where_to_name_it(tmp_path: Path) -> None:
    code, _, err = reexecute(tmp_path, [trial(LOOK)], "--danger", server=f"{sys.executable} {SERVER} till.db")
    assert (code, err.count("\n")) == (2, 1)
    assert "{store}" in err

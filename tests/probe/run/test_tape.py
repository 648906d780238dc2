"""A cell that is recorded once is played again without its server, its store and its model."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.probe_file import ProbeSettings
from bench.probe.run.secrets import Secrets
from bench.probe.run.tape import play, read_tape, record_tape, write_tape

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probe's processes are watched on Linux")
HERE = Path(__file__).parents[2] / "support"


def subject(folder: Path, mode: str) -> Path:
    """Make the till, its agent and its probe.toml in a folder. Its agent goes by words of a file, which can be mended."""
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.executescript("""
            CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, balance INTEGER);
            CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT, amount INTEGER, key TEXT);
            CREATE TABLE IF NOT EXISTS parcels (order_id TEXT PRIMARY KEY, account TEXT);
            INSERT OR IGNORE INTO accounts VALUES ('ada', 100), ('bob', 7);
        """)
    server = f'"command": "{sys.executable}", "args": ["{HERE / "till_server.py"}", "{folder / "shop.db"}"]'
    (folder / ".mcp.json").write_text(f'{{"mcpServers": {{"till": {{{server}}}}}}}', encoding="utf-8")
    (folder / "probe.toml").write_text(
        f'agent = ["{sys.executable}", "{HERE / "till_agent.py"}", "{folder / ".mcp.json"}", "{mode}"]\n'
        f'mcp = "{folder / ".mcp.json"}"\nfolder = "{folder}"\nname = "till"\nsettle = 0.02\npatience = 2.0\nlimit = 60.0\n'
        "takes_copies = true\n"
        f'[[store]]\nsqlite = "{folder / "shop.db"}"\n',
        encoding="utf-8",
    )
    return folder / "probe.toml"


def verdict_from(tape: Path, file: Path) -> tuple[str, str]:
    judged = asyncio.run(play(ProbeSettings(file, is_taped=True), read_tape(tape))).judged
    assert judged
    return judged.verdict, judged.why


def recorded(folder: Path, mode: str, plan: str) -> Path:
    settings = ProbeSettings(subject(folder, mode))
    tape, run = asyncio.run(record_tape(settings, Secrets(()), plan))
    assert run.judged and run.judged.verdict == "doubled"
    write_tape(folder / "cell.json", tape)
    return folder / "cell.json"


def test_a_tape_shows_the_damage_again_and_a_mended_agent_without_store_and_server(tmp_path: Path) -> None:
    tape = recorded(tmp_path, "again", "till.charge#1.lost")
    (tmp_path / "shop.db").unlink()
    assert verdict_from(tape, tmp_path / "probe.toml") == ("doubled", "")
    words = (tmp_path / "probe.toml").read_text()
    (tmp_path / "probe.toml").write_text(words.replace('"again"', '""'))
    assert verdict_from(tape, tmp_path / "probe.toml")[0] == "doubled"  # it gives up, and pays again when it is started again
    (tmp_path / "probe.toml").write_text(words.replace('"again"', '"trusts"'))
    assert verdict_from(tape, tmp_path / "probe.toml")[0] == "same"
    (tmp_path / "probe.toml").write_text(words.replace('"again"', '"again keyed"'))
    verdict, why = verdict_from(tape, tmp_path / "probe.toml")
    assert verdict == "no_verdict"
    assert why.startswith("it left the tape: call 1, charge, was not made so")


def test_a_cell_is_found_on_its_tape_though_a_word_of_its_calls_was_blotted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "charge-1")
    settings = ProbeSettings(subject(tmp_path, "again keyed"))
    tape, _ = asyncio.run(record_tape(settings, Secrets.of(settings.subject, {"WORD": "charge-1"}), "till.charge#1.lost"))
    write_tape(tmp_path / "cell.json", tape)
    assert "***" in (tmp_path / "cell.json").read_text()
    assert verdict_from(tmp_path / "cell.json", tmp_path / "probe.toml") == ("absorbed", "")


def test_what_no_tape_holds_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(ConfigError, match="is no tape; record it by: bench probe --test CELL"):
        read_tape(tmp_path / "bad.json")
    with pytest.raises(ConfigError, match=r"--test till.charge#9.lost: there is no such cell"):
        asyncio.run(record_tape(ProbeSettings(subject(tmp_path, "")), Secrets(()), "till.charge#9.lost"))


@pytest.mark.parametrize("places", [[10**6], [0] * 10**5])
def test_a_tape_whose_pieces_are_missing_or_make_too_long_a_text_is_refused(tmp_path: Path, places: list[int]) -> None:
    tape = read_tape(recorded(tmp_path, "again", "till.charge#1.lost"))
    assert len(set(tape.pieces)) == len(tape.pieces)
    assert all(call.arguments in course.texts for course in tape.courses() for call in course.calls)
    damaged = replace(tape, pieces=("x" * 10**4, *tape.pieces), arguments={**tape.arguments, "other": tuple(places)})
    with pytest.raises(ConfigError, match=r"the tape of till.charge#1.lost is damaged; record it anew by"):
        damaged.courses()

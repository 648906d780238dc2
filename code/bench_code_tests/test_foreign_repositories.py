"""Repositories of another person, with their settings and their state: nothing of theirs runs or leads elsewhere."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from repositories import git, impact, repository, write
from typer.testing import CliRunner

from bench_code import Edit, ExecutionState
from bench_code.cli import app
from bench_code.git import CodeError
from bench_code.patches import checked_out

HOOKS = ("post-index-change", "post-checkout", "reference-transaction", "pre-commit", "post-commit")


def stored(root: Path) -> sqlite3.Connection:
    return sqlite3.connect(root / ".git/bench-code/state.db", isolation_level=None)


def planted(root: Path, *edits: dict[str, str | None]) -> None:
    """Put a patch into the state with edits that `propose` refuses."""
    state = ExecutionState.open(root)
    keep = state.repository.keep
    rows = [
        {"path": edit["path"]}
        | {side: "" if edit[side] is None else keep(str(edit[side]).encode()) for side in ("before", "after")}
        for edit in edits
    ]
    stored(root).execute(
        "INSERT INTO patches(at, base, status, edits, action, call, person) VALUES (1, '', 'proposed', ?, '', '', '')",
        (json.dumps(rows),),
    )


def run(root: Path, *words: str) -> str:
    """Run a command of `bench code` that must be refused in one line, and return the line."""
    result = CliRunner().invoke(app, [*words, "--in", str(root)])
    assert isinstance(result.exception, CodeError), result.exception
    assert "\n" not in str(result.exception)
    return str(result.exception)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = repository(tmp_path / "tree", {"a.py": "A = 1\n"})
    ExecutionState.open(made).step("begin")
    return made


@pytest.mark.parametrize(
    "path",
    ["../outside.txt", "{outside}", "sub/../../outside.txt", ".git/hooks/pre-commit", ".GIT/config", "link/outside.txt",
     "inward/hooks/pre-commit", "leaf", "sub/.git/config", "", ".", "circle/x", "a\0b", "x" * 5000],
)  # fmt: skip
def test_no_patch_of_a_state_writes_or_removes_outside_of_the_tree(root: Path, path: str) -> None:
    outside = root.parent / "outside.txt"
    outside.write_text("precious")
    (root / "link").symlink_to(root.parent)
    (root / "inward").symlink_to(".git")
    (root / "leaf").symlink_to(outside)
    (root / "circle").symlink_to("circle")
    before = {name: name.stat().st_mtime_ns for name in (root.parent, *(root / ".git/hooks").glob("*"), root / ".git/config")}
    path = path.format(outside=outside)
    planted(root, {"path": "new.txt", "before": None, "after": "x"}, {"path": path, "before": None, "after": "harm"})
    planted(root, {"path": path, "before": "precious", "after": None})
    for number in ("1", "2"):
        run(root, "apply", number)
    assert outside.read_text() == "precious"
    assert {name: name.stat().st_mtime_ns for name in before} == before
    assert not (root / "new.txt").exists(), "nothing of the patch was written"
    with pytest.raises(CodeError):
        ExecutionState.open(root).propose([Edit(path, None, b"harm")])


def test_a_link_made_after_a_patch_was_proposed_is_not_written_through(root: Path) -> None:
    state = ExecutionState.open(root)
    patch = state.propose([Edit.write(root, "sub/new.txt", "x")])
    (root.parent / "elsewhere").mkdir()
    (root / "sub").symlink_to(root.parent / "elsewhere")
    with pytest.raises(CodeError, match="leads out of"):
        state.apply(patch)
    assert not list((root.parent / "elsewhere").iterdir())


def test_a_tree_in_the_state_is_no_option_of_git(root: Path) -> None:
    target = root.parent / "made"
    stored(root).execute("UPDATE steps SET tree = ?", (f"--output={target}",))
    write(root, {"a.py": "A = 2\n"})
    for words in (("patch",), ("at", "--step", "1", "a.py")):
        assert "which is no id of git's" in run(root, *words)
    assert not target.exists()


ODD = {
    "a view without end": "DROP TABLE artifacts; CREATE VIEW artifacts AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 "
                          "FROM n) SELECT 'p' portfolio, 'a' artifact, '{}' needs, i rowid FROM n",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON steps BEGIN DELETE FROM patches; END",
    "a text in a number's place": "UPDATE steps SET at = 'noon'",
    "a time without a date": "UPDATE steps SET at = 9e300",
    "bytes in a text's place": "UPDATE steps SET note = x'ff00'",
    "a text that is no UTF-8": "UPDATE steps SET note = CAST(x'ff' AS TEXT)",
    "a table less": "DROP TABLE versions",
}  # fmt: skip


@pytest.mark.parametrize("script", ODD.values(), ids=ODD)
def test_a_state_that_no_release_wrote_is_refused_in_one_line(root: Path, script: str) -> None:
    stored(root).executescript(script)
    write(root, {"a.py": "A = 2\n"})
    assert "rename it, and the state begins anew" in run(root, "log")
    for words in (("stale", "p"), ("patch",)):
        error = CliRunner().invoke(app, [*words, "--in", str(root)]).exception
        assert error is None or isinstance(error, CodeError), error


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"path": 1}]', "[" * 100_000, '{"path": 1}', "null", "9" * 5000])
def test_texts_in_a_state_that_are_no_json_of_ours_are_refused_in_one_line(root: Path, text: str) -> None:
    planted(root, {"path": "a.py", "before": None, "after": "x"})
    db = stored(root)
    db.execute("UPDATE patches SET edits = ?", (text,))
    db.execute("UPDATE modules SET parsed = ?", (text,))
    db.execute("INSERT INTO artifacts VALUES ('p', 'a.py', ?)", (text,))
    for words in (("apply", "1"), ("impact", "a.py"), ("stale", "p")):
        assert "rename it, and the state begins anew" in run(root, *words)


FORGING = "x\x1b]0;owned\x07\r\u202e{0}\n   9  2026-01-01 00:00:00  run     9 passed"
"""It sets a terminal's title, turns the direction of reading, and forges a line of the log."""


def test_a_name_or_a_note_of_a_state_steers_no_terminal_and_forges_no_line(root: Path) -> None:
    state = ExecutionState.open(root)
    write(root, {f"{FORGING.replace('/', ' ')}.py": "B = 2\n"})
    state.note_changes(FORGING, call=FORGING)
    db = stored(root)
    db.execute("UPDATE steps SET note = ? WHERE id = 1", (FORGING,))
    db.execute("INSERT INTO executions VALUES (1, 1, 1, '', 0, 'test', ?, 'passed', '', 0, '')", (FORGING,))
    db.execute("INSERT INTO facts VALUES (1, ?, ?, 'v')", (FORGING, FORGING))
    db.execute("INSERT INTO records VALUES (1, 'd', 'test', ?)", (FORGING,))
    db.execute("INSERT INTO record_facts VALUES (1, 1)")
    db.execute("INSERT INTO depends VALUES (1, 1)")
    state.declare(FORGING, {"a.py": ()})
    lines = {("log",): 2, ("at", "--step", "2"): 2, ("why", FORGING): 1, ("impact", "a.py"): 1}
    for words, count in lines.items():
        result = CliRunner().invoke(app, [*words, "--in", str(root)])
        assert result.exception is None, result.exception
        assert len(result.output.splitlines()) == count, result.output
        assert not set("\x1b\x07\r\u202e") & set(result.output)


@pytest.mark.parametrize("name", ["", "state.db", "state.db-wal", "state.db-journal", "lock"])
def test_a_state_behind_a_link_or_a_pipe_is_refused(tmp_path: Path, name: str) -> None:
    root = repository(tmp_path / "tree", {"a.py": "A = 1\n"})
    place, outside = root / ".git/bench-code" / name, tmp_path / "outside"
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    assert "is a link" in run(root, "log")
    assert not outside.exists()
    if name:
        place.unlink()
        os.mkfifo(place)
        assert "of another kind" in run(root, "log")


def settings(root: Path, canary: Path) -> None:
    """Write all the settings with which a repository makes git run something."""
    touch = f"touch {canary}-"
    for hook in HOOKS:
        for folder in (".git/hooks", "hooks"):
            write(root, {f"{folder}/{hook}": f"#!/bin/sh\n{touch}hook\n"})
            (root / folder / hook).chmod(0o755)
    git(root, "config", "core.hooksPath", "hooks")
    git(root, "config", "core.fsmonitor", f"sh -c '{touch}fsmonitor'")
    for name in ("evil", "a=b.c"):
        for what in ("clean", "smudge"):
            git(root, "config", f"filter.{name}.{what}", f"{touch}{what}; cat")
    git(root, "config", "filter.evil.required", "true")
    git(root, "config", "filter.long.process", f"sh -c '{touch}process'")
    write(root, {".git/more": f'[filter "included"]\n\tclean = {touch}included; cat\n'})
    git(root, "config", "include.path", "more")
    write(root, {".gitattributes": "*.py filter=evil\n*.b filter=a=b.c\n*.l filter=long\n", "x.b": "1", "x.l": "1", "x.i": "1"})
    write(root, {".git/info/attributes": "*.i filter=included\n"})


def test_nothing_that_a_repositorys_settings_name_is_run(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"inside.py": "VALUE = 1\n"})
    root, canary = repository(tmp_path / "tree", {"a.py": "A = 1\n"}), tmp_path / "ran"
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "sub")
    settings(root, canary)
    touch = f"touch {canary}-sub-"
    git(root / "sub", "config", "core.fsmonitor", f"sh -c '{touch}fsmonitor'")
    git(root / "sub", "config", "filter.evil.clean", f"{touch}clean; cat")
    write(root, {".git/modules/sub/info/attributes": "* filter=evil\n"})
    os.utime(root / "sub/inside.py", (1, 1))
    for path in tmp_path.glob("ran*"):
        path.unlink()
    state = ExecutionState.open(root)
    first = state.step("begin")
    write(root, {"a.py": "A = 2\n", "x.b": "2", "x.l": "2", "x.i": "2", "sub/inside.py": "VALUE = 2\n"})
    patch = state.note_changes()
    state.revert(patch)

    with checked_out(state, first) as folder:
        assert (folder / "a.py").read_text() == "A = 1\n"
    assert [path.name for path in tmp_path.glob("ran*")] == []
    assert state.content(first, "x.i") == b"1", "contents are stored as they stand in the tree"


@pytest.mark.parametrize("known", [True, False], ids=["known to the index", "new"])
def test_no_filter_of_a_repository_within_is_run_and_a_patch_leaves_it_out(root: Path, tmp_path: Path, known: bool) -> None:
    within = repository(root / "within", {"a.py": "A = 1\n", ".gitattributes": "* filter=theirs\n"})
    repository(within / "deeper", {"b.py": "B = 1\n"})
    git(root / "within", "config", "filter.theirs.clean", f"touch {tmp_path}/ran; cat")
    if known:
        git(root, "add", "within")
    write(root, {"within/a.py": "A = 2\n", "b.py": "B = 2\n"})
    os.utime(within / ".gitattributes", (1, 1))
    state = ExecutionState.open(root)
    assert [edit.path for edit in state.note_changes().edits] == ["b.py"]
    write(root, {"b.py": "B = 3\n"})
    git(root / "within", "-c", "filter.theirs.clean=cat", "commit", "-aqm", "another")
    assert [edit.path for edit in state.note_changes().edits] == ["b.py"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("has_commit", [True, False])
def test_a_repository_that_was_made_within_since_the_last_step_breaks_no_command(root: Path, has_commit: bool) -> None:
    state = ExecutionState.open(root)
    (root / "within").mkdir()
    git(root / "within", "init", "-q")
    if has_commit:
        repository(root / "within", {"c.py": "C = 1\n"})
    with pytest.raises(CodeError, match="nothing changed"):
        state.note_changes()
    write(root, {"within/d.py": "D = 1\n", "a.py": "A = 3\n"})
    assert [edit.path for edit in state.note_changes().edits] == ["a.py"]


def test_a_step_of_an_earlier_release_that_holds_a_repository_within_is_compared_by_its_files(root: Path) -> None:
    repository(root / "within", {"c.py": "C = 1\n"})
    git(root, "add", "-A")
    stored(root).execute("UPDATE steps SET tree = ?", (git(root, "write-tree").strip(),))
    write(root, {"a.py": "A = 2\n"})
    assert [edit.path for edit in ExecutionState.open(root).note_changes().edits] == ["a.py"]
    assert "within was not there" in run(root, "at", "--step", "1", "within")


def test_a_filter_of_the_users_own_settings_runs_as_ever(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"own": '[filter "upper"]\n\tclean = tr a-z A-Z\n[user]\n\tname = a\n'})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "own"))
    git(root, "config", "filter.upper.clean", "tr a-z ?")
    write(root, {".gitattributes": "*.txt filter=upper\n", "x.txt": "word"})
    state = ExecutionState.open(root)
    assert state.content(state.step("begin"), "x.txt") == b"WORD"


def test_a_missing_object_is_fetched_from_nowhere(root: Path, tmp_path: Path) -> None:
    for name, value in {
        "core.repositoryformatversion": "1", "extensions.partialClone": "evil", "remote.evil.promisor": "true",
        "remote.evil.url": f"ext::touch {tmp_path}/ran", "protocol.ext.allow": "always",
    }.items():  # fmt: skip
        git(root, "config", name, value)
    planted(root, {"path": "new.txt", "before": None, "after": "x"})
    stored(root).execute("UPDATE patches SET edits = ?", (json.dumps([{"path": "a", "before": "", "after": "1" * 40}]),))
    run(root, "apply", "1")
    assert not (tmp_path / "ran").exists()


def test_a_tree_elsewhere_than_around_the_named_folder_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    git(root, "config", "core.worktree", str(tmp_path / "home"))
    line = run(root, "log")
    assert "elsewhere" in line or "no git repository" in line


def test_a_journal_that_names_a_file_for_sqlite_to_delete_deletes_nothing(root: Path, tmp_path: Path) -> None:
    """SQLite deletes the file that a journal names as the journal of several databases, once it has read the journal."""
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    with closing(stored(root)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
    state = root / ".git/bench-code/state.db"
    content, name = state.read_bytes(), bytes(precious)
    page = int.from_bytes(content[16:18], "big")
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 7, len(content) // page, 512, page)
    checked = sum(name)
    end = (
        struct.pack(">I", (2**30 // page) + 1)
        + name
        + struct.pack(">II", len(name), checked)
        + bytes.fromhex("d9d505f920a163d7")
    )
    state.with_name("state.db-journal").write_bytes(head.ljust(512, b"\0") + end)
    assert "names a file for SQLite to delete" in run(root, "log")
    assert precious.exists()
    with closing(sqlite3.connect(state)) as db:
        db.execute("SELECT * FROM steps").fetchall()
    assert not precious.exists(), "the journal of this test does delete the file"


MARKS = "def total(): return x" + "\u0301\u0316" * 300_000 + "\n"


@pytest.mark.parametrize(
    "source", [MARKS.encode(), b"# coding: utf-7\n" + MARKS.encode("utf-7"), b"x = '\0'", b"(" * 300 + b")" * 300]
)
def test_code_that_strains_pythons_parser_is_told_as_not_parsing(root: Path, source: bytes) -> None:
    (root / "strains.py").write_bytes(source)
    state = ExecutionState.open(root)
    assert state.note_changes().edits[0].path == "strains.py"
    assert "strains.py does not parse" in run(root, "impact", "strains.py::total")


def test_a_file_that_git_cannot_convert_ends_every_command_in_one_line(root: Path) -> None:
    write(root, {".gitattributes": "*.txt working-tree-encoding=UTF-16\n", "x.txt": "abc", "test_a.py": "def test_a(): pass\n"})
    assert "x.txt" in run(root, "patch")
    printed = impact(root)[2]
    assert "x.txt" in printed
    assert "Traceback" not in printed
    with pytest.raises(CodeError):
        ExecutionState.open(root).run_all([["a.py"]])


def test_two_at_once_apply_a_patch_once(root: Path) -> None:
    state = ExecutionState.open(root)
    patch = state.propose([Edit(path, None, b"x" * 100_000) for path in map("new{}.txt".format, range(20))])
    command = "import sys; from bench_code import ExecutionState; s = ExecutionState.open(sys.argv[1]); s.apply(s.patch(1))"
    both = [subprocess.Popen((sys.executable, "-c", command, str(root)), stderr=subprocess.PIPE, text=True) for _ in "ab"]
    told = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 1]
    assert "patch 1 is applied; nothing is to be done" in "".join(told)
    assert [step.kind for step in state.steps()] == ["begin", "apply"]
    assert state.patch(patch.id).status == "applied"


def test_a_full_disk_is_told_as_that_and_the_state_is_kept(root: Path) -> None:
    state = ExecutionState.open(root)
    before = state.steps()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 16384):  # what is written beyond fails, as on a disk without room
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(CodeError) as error, state.store.writing():
                for number in range(1000):
                    state.store.add_step("0" * 40, "run", f"{number}" * 1000, str(root))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "what it holds is whole, so keep it; make room" in str(error.value)
        assert "anew" not in str(error.value)
    state.store.db.execute("PRAGMA max_page_count=1")
    with pytest.raises(CodeError, match="database or disk is full; what it holds is whole"), state.store.writing():
        state.store.add_step("0" * 40, "run", "long" * 100_000, str(root))
    assert ExecutionState.open(root).steps() == before


def test_a_state_that_is_damaged_is_told_as_that(root: Path) -> None:
    state = root / ".git/bench-code/state.db"
    content = state.read_bytes()
    state.write_bytes(b"no database" * 1000)
    assert run(root, "log").endswith("file is not a database; rename it, and the state begins anew")
    state.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    assert run(root, "log").endswith("database disk image is malformed; rename it, and the state begins anew")

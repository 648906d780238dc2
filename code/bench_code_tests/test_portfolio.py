"""Code, its tests and its documents as one portfolio: an agent's task of three steps over it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from repositories import MONEY, impact, repository, write
from typer.testing import CliRunner

from bench_code import Edit, ExecutionState
from bench_code.cli import app
from bench_code.git import CodeError

FILES = MONEY | {"guide.md": ">>> import money\n>>> money.total([1])\n2\n", "notes.md": "The rate is 2.\n"}
NEEDS = {"notes.md": ["money.py"], "guide.md": ["money.py"], "test_money.py": ["money.py"], "money.py": []}


def test_an_agent_is_told_at_each_step_what_is_stale(tmp_path: Path) -> None:
    state = ExecutionState.open(repository(tmp_path, FILES))
    impact(tmp_path)
    state.run_all([["guide.md"]])
    state.declare("money", NEEDS)
    assert state.stale("money") == []
    state.apply(state.propose([Edit.replace(tmp_path, "money.py", "RATE = 2", "RATE = 3")], action="raise the rate"))
    result = {each.path: (each.because, each.rerun) for each in state.stale("money")}
    assert result == {
        "notes.md": (("money.py",), ()),
        "guide.md": ((), ("guide.md",)),
        "test_money.py": ((), ("test_money.py::test_total",)),
    }
    impact(tmp_path)
    state.run_all([["guide.md"]])
    assert len(state.stale("money")) == 3, "what failed is stale as well"
    edits = [Edit.replace(tmp_path, "test_money.py", "== 6", "== 9"), Edit.replace(tmp_path, "guide.md", "\n2\n", "\n3\n")]
    state.apply(state.propose(edits, action="follow the rate"))
    impact(tmp_path)
    state.run_all([["guide.md"]])
    assert [each.path for each in state.stale("money")] == ["notes.md"]
    state.apply(state.propose([Edit.replace(tmp_path, "notes.md", "is 2", "is 3")]))
    assert [each.path for each in state.stale("money")] == ["test_money.py"], "a test may read any file"
    impact(tmp_path)
    assert state.stale("money") == []


def test_a_document_that_was_looked_at_is_no_longer_stale(tmp_path: Path) -> None:
    state = ExecutionState.open(repository(tmp_path, FILES))
    state.declare("money", NEEDS)
    (tmp_path / "money.py").write_text("# only a comment\n" + FILES["money.py"])
    assert state.stale("money") == []
    (tmp_path / "money.py").write_text("RATE = 9\n")
    assert [each.path for each in state.stale("money")] == ["notes.md", "guide.md", "test_money.py"]
    state.confirm("money", "notes.md")
    assert [each.path for each in state.stale("money")] == ["guide.md", "test_money.py"]


@pytest.mark.parametrize(
    ("needs", "line"),
    [
        ({"none.py": []}, "there is no file none.py"),
        ({"money.py": ["names.py"]}, "money.py needs names.py, which is not declared; add it"),
        ({"money.py": ["names.py"], "names.py": ["money.py"]}, "its artifacts need each other in a circle"),
    ],
)
def test_a_portfolio_that_cannot_be_is_refused(tmp_path: Path, needs: dict[str, list[str]], line: str) -> None:
    with pytest.raises(CodeError, match=line):
        ExecutionState.open(repository(tmp_path, FILES)).declare("money", needs)


def command(root: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*words, "--in", str(root)], catch_exceptions=False)
    return result.exit_code, result.output


def test_the_command_declares_a_portfolio_says_what_is_stale_and_confirms(tmp_path: Path) -> None:
    root = repository(tmp_path, FILES)
    assert command(root, "declare", "money", "notes.md=money.py", "test_money.py=money.py") == (
        0,
        "portfolio money: 3 artifacts\n",
    )
    write(root, {"money.py": FILES["money.py"].replace("RATE = 2", "RATE = 3")})
    assert "notes.md: money.py changed\n" in command(root, "stale", "money")[1]
    command(root, "confirm", "money", "notes.md")
    assert "notes.md" not in command(root, "stale", "money")[1]


def test_the_command_makes_the_scripts_and_texts_that_no_longer_hold(tmp_path: Path) -> None:
    script = "import sys, money\nprint('built')\nopen('total.txt', 'w').write(str(money.total([int(sys.argv[1])])))\n"
    root = repository(tmp_path, FILES | {"build.py": script})
    asked = ("make", "build.py 1", "guide.md")
    assert command(root, *asked) == (0, "build.py 1: passed\nguide.md: passed\n")
    assert command(root, *asked) == (0, "build.py 1: passed, kept from step 1\nguide.md: passed, kept from step 2\n")
    assert command(root, "make", "build.py 2") == (0, "build.py 2: passed\n"), "with another argument it is another execution"
    assert command(root, "impact", "money.py::total") == (0, "build.py\nguide.md\n")
    needs = command(root, "needs", "build.py")[1]
    assert all(f"build.py  file  {file}\n" in needs for file in ("build.py", "money.py", "total.txt"))
    assert "environment" not in needs
    write(root, {"money.py": FILES["money.py"].replace("RATE = 2", "RATE = 3")})
    assert command(root, *asked) == (1, "build.py 1: passed\nguide.md: failed\n")
    assert (root / "total.txt").read_text() == "3"


def test_a_word_that_is_no_file_to_make_is_answered_in_a_line(tmp_path: Path) -> None:
    root = repository(tmp_path, FILES)
    for word, line in (
        ("none.py", "there is no file 'none.py' in"),
        (".", "there is no file '.' in"),
        ("'", "is no file with arguments: No closing quotation"),
    ):
        with pytest.raises(CodeError, match=line):
            command(root, "make", word)

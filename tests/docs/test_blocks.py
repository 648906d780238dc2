"""What a document tells its reader to type is found, and a command that fails is noticed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import blocks
import pytest
from blocks import Block, blocks_of, commands_of, main, script_of
from reference import command_pages

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EMPTY = "<!-- in an empty folder -->\n"


def only(text: str) -> Block:
    [block] = blocks_of(text)
    return block


def test_a_block_knows_its_line_its_language_and_what_the_comment_above_it_says() -> None:
    assert only("Text\n\n```console\n$ a\n```\n") == Block(4, "console", "$ a\n")
    assert only("<!-- not run: it needs a key -->\n```console\n$ a\n```\n").reason == "it needs a key"
    assert only("<!-- file: a/b.toml -->\n\n```toml\na = 1\n```\n").file == "a/b.toml"


def test_a_comment_above_one_block_says_nothing_of_the_next() -> None:
    first, second = blocks_of("<!-- not run: slow -->\n```console\n$ a\n```\n```console\n$ b\n```\n")
    assert (first.reason, second.reason) == ("slow", "")


def test_a_directive_of_the_site_is_a_block_like_any_other_so_that_its_end_opens_none() -> None:
    directive, console = blocks_of("```{include} a.md\n```\n\n```console\n$ b\n```\n")
    assert (directive.language, console) == ("{include}", Block(5, "console", "$ b\n"))


def test_commands_are_the_lines_behind_a_dollar_and_go_on_behind_a_backslash() -> None:
    block = Block(1, "console", "$ one\nshown\n$ two \\\n  more\n")
    assert list(commands_of(block)) == [(1, "one"), (3, "two \\\n  more")]


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("```console\n$ true\n```\n", 0),
        ("```console\n$ false\n$ true\n```\n", 1),
        ("```python\nassert 1 == 2\n```\n", 1),
        ("<!-- not run: it fails -->\n```console\n$ false\n```\n", 0),
        ('<!-- file: a/b.py -->\n```python\nx = "it\'s"\n```\n```console\n$ grep it.s a/b.py\n```\n', 0),
        ("```console\n$ cd /\n$ test $PWD = /\n```\n", 0),
        ("```console\n$ test ! -e scenarios\n```\n", 0),
        ("```console\n$ sleep 60 &\n$ true\n```\n", 0),
        ("```console\n$ printf 'one\\ntwo\\n'\none\n$ echo three \\\n  four\nthree f...\n```\n", 0),
        ("```console\n$ echo one\n$ echo two\none\n```\n", 1),
        ("<!-- not run: it fails -->\n```console\n$ false\nnothing\n```\n", 0),
    ],
)
def test_a_document_does_as_well_as_its_commands(tmp_path: Path, document: str, code: int) -> None:
    path = tmp_path / "document.md"
    path.write_text(EMPTY + document)
    assert main([str(path)]) == code


def test_a_document_that_does_not_end_fails_and_shows_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(blocks, "PATIENCE", 1.0)
    path = tmp_path / "document.md"
    path.write_text(EMPTY + "```console\n$ echo begun\n$ exec sleep 60\n```\n")
    assert main([str(path)]) == 1
    out, _ = capfd.readouterr()
    assert "did not end in 1 s" in out and "begun\ndocument.md:4: exec sleep 60" in out


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_of_our_documents_can_be_read_as_a_session(path: Path) -> None:
    assert script_of(path.name, list(blocks_of(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_command_that_is_shown_exists_with_its_options_even_where_it_is_not_run(path: Path) -> None:
    options: dict[str, set[str]] = {}  # of all commands of a group together
    for name, described in command_pages.commands():
        options.setdefault(name.split()[1], set()).update(option for parameter in described.params for option in parameter.opts)
    for block in blocks_of(path.read_text(encoding="utf-8")):
        for _, line in commands_of(block) if block.language == "console" else ():
            program, *words = [word for word in shlex.split(line, comments=True) if not re.match(r"[A-Z_]+=", word)]
            if program == "bench":
                command, *rest = words[: words.index("--")] if "--" in words else words
                assert {word for word in rest if word.startswith("--")} <= options[command], line


def test_a_reader_who_follows_all_pages_in_one_folder_is_told_to_write_no_file_twice_with_another_text() -> None:
    texts: dict[str, set[str]] = {}
    for path in DOCUMENTS:
        for block in blocks_of(path.read_text(encoding="utf-8")):
            name = re.search(r'^name = "\w+"$', block.text, re.MULTILINE)
            for key in filter(None, (block.file, name and block.language == "toml" and name[0])):
                texts.setdefault(str(key), set()).add(block.text)
    assert {key for key, different in texts.items() if len(different) > 1} == set()

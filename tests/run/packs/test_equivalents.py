"""Equivalents of a task: which scenario is one, by which name its faults are drawn, and what is the same for every pack's."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.common.errors import PackError
from bench.record.equivalents import LEVELS, level_of, task_of
from bench.run.packs import PackFolder
from bench.run.packs.equivalents import EXAMPLES, another, retold
from bench.scenario import Grade, Output, Scenario, Subtask, Task


class Word(Output):
    word: str


def test_a_scenarios_name_says_how_far_it_is_reworded_and_keeps_its_faults() -> None:
    names = ("pack", *(f"pack:{level}" for level in LEVELS), "pack:easy")
    assert [level_of(name) for name in names] == [0, 1, 2, 0]
    assert [task_of(name) for name in names] == ["pack", "pack", "pack", "pack:easy"]


def test_another_is_never_the_same_one_and_depends_on_what_it_is_drawn_for_alone() -> None:
    drawn = {about: another("abcd", "a", about) for about in range(40)}
    assert set(drawn.values()) == {"b", "c", "d"}
    assert drawn == {about: another("abcd", "a", about) for about in reversed(range(40))}


def folder_in(path: Path, level: str) -> PackFolder:
    (path / "prompts" / "equivalents").mkdir(parents=True, exist_ok=True)
    return PackFolder(path, level, "one")


def plain(instructions: str = "Say it.") -> Scenario:
    subtask = Subtask("say", instructions, ("a", "b"), Word)
    task = Task("pack", "You speak.", {"a": "1", "b": "2"}, (subtask,), ())
    return Scenario("pack", "paper", task, lambda *_: Grade(True, 1.0, {}), {}, {}, (), lambda _: {}, instance="one")


def test_at_the_first_level_what_is_read_stands_in_another_order_and_every_word_stays(tmp_path: Path) -> None:
    [subtask] = retold(plain(), folder_in(tmp_path, "epsilon_1")).task.subtasks
    assert (subtask.reads, subtask.instructions) == (("b", "a"), "Say it.")


def test_at_the_second_level_instructions_and_role_are_in_other_words_and_examples_stay(tmp_path: Path) -> None:
    folder = folder_in(tmp_path, "epsilon_2")
    for name in ("say_1", "say_2", "role_1"):
        (folder.path / "prompts" / "equivalents" / f"{name}.md").write_text(f"Other words: {name}\n")
    task = retold(plain(f"Say it.{EXAMPLES}\n- like this"), folder).task
    first, _, examples = task.subtasks[0].instructions.partition(EXAMPLES)
    assert first in ("Other words: say_1", "Other words: say_2") and examples == "\n- like this"
    assert task.role == "Other words: role_1"


def test_a_pack_without_other_words_is_told_which_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=r"equivalents/say_1\.md: is not there; write what the prompt says in other words"):
        retold(plain(), folder_in(tmp_path, "epsilon_2"))

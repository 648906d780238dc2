"""Make a task of an instance: its problem, and the files that its patch changes. The patch is the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from pathlib import Path

from bench.common.errors import PackError
from bench.common.tokens import count_tokens
from bench.scenario import Json, WrongAnswer

from .checks import PROBLEM
from .patches import Unfit, patched, paths_in
from .place import Instance
from .trees import tree_of

MOST_TOKENS = 16_000
"""Of the problem and the files that are shown (cl100k_base)."""


@dataclass(frozen=True)
class Made:
    documents: Mapping[str, str]
    reference: Mapping[str, Json]
    wrong: tuple[WrongAnswer, ...]
    truth: Mapping[str, Json]


@cache
def made_of(instance: Instance, place: Path) -> Made:
    """Return the task of an instance. Raises PackError, with the instance's name, if no task can be made of it."""
    name = instance.instance_id
    try:
        files = tree_of(place, paths_in(f"{instance.patch}\n{instance.test_patch}"))
        shown = [path for path in paths_in(instance.patch) if path in files]
        after = _fits(files, instance.patch, name, "patch")
        tests = _fits({**files, **after}, instance.test_patch, name, "test_patch")
        named = paths_in(instance.test_patch)
    except Unfit as unfit:
        raise PackError(f"{name}: {unfit}; correct its file") from unfit
    if not shown:
        raise PackError(f"{name}: its patch changes no file that is in {place}; nothing could be shown of it")
    documents = {PROBLEM: instance.problem_statement, **{path: files[path] for path in shown}}
    tokens = sum(map(count_tokens, documents.values()))
    if tokens > MOST_TOKENS:
        raise PackError(f"{name}: its problem and files have {tokens:,} tokens, and may have {MOST_TOKENS:,}; take it out")
    return Made(
        documents=documents,
        reference={
            "diagnosis": {"file": shown[0], "cause": "What the problem tells comes from here."},
            "patch": {"patch": instance.patch},
        },
        wrong=tuple(_wrong(shown[0], files[shown[0]])),
        truth={
            "files": files,
            "tests": {path: tests[path] for path in named if path in tests},
            "fail_to_pass": list(instance.fail_to_pass),
            "pass_to_pass": list(instance.pass_to_pass),
        },
    )


def _fits(files: Mapping[str, str], patch: str, name: str, field: str) -> dict[str, str]:
    try:
        return patched(files, patch)
    except Unfit as unfit:
        raise PackError(f"{name}: its {field} does not fit its repository: {unfit}; is that of the base commit?") from unfit


def _wrong(path: str, text: str) -> list[WrongAnswer]:
    changes = {
        "only_a_comment": ("It changes a comment alone.", f"{text.rstrip()}\n# done\n"),
        "raises": ("It makes the file raise when it is imported.", f"{text.rstrip()}\nraise SystemError\n"),
        "emptied": ("It empties the file.", "\n"),
    }
    return [WrongAnswer(name, why, {"patch": {"patch": _diff(path, text, new)}}) for name, (why, new) in changes.items()]


def _diff(path: str, old: str, new: str) -> str:
    lines = unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

"""The trees at the start of a case, and the right tree at its end."""

from __future__ import annotations

from dataclasses import dataclass

from bench.common.seeding import seed_of

from .expected import base_files
from .in_sandbox import failing_tests
from .offered import ADDED, with_test
from .repository import PIN, FilesOf, module_text, pinned, pushed
from .story import NEARLY, Case, Module, shuffled

MAIN, FIX = "main", "fix"
"""Refs. The second holds what is right, where a test of it is to be added."""
AUTHORS = ("Ada", "Bo", "Cleo")
COMMITS = (1, 2, 3)
TOLERANT = "customers"
"""The part whose present line still passes its tests under the next version."""


@dataclass(frozen=True)
class Commit:
    """One of the last three commits of main. `files` are the files of main after it."""

    number: int
    author: str
    module: Module
    files: FilesOf
    breaks: bool

    @property
    def ref(self) -> str:
        """Return the name of the ref of its tree."""
        return f"commit {self.number}"


def upgraded(case: Case, **lines: str) -> dict[str, str]:
    """Return the files of the upgrade, ready to be merged; with other lines in the named modules."""
    base = base_files(case)
    modules = {f"{each.name}.py": module_text(case, each, lines.get(each.name, each.right)) for each in case.modules}
    return {**(pushed(base, case) if "pushed" in case.traits else base), PIN: pinned(case, 1), **modules}


def mistaken(case: Case) -> dict[str, str]:
    """Return the files of an upgrade whose first module passes its tests and gives wrong answers."""
    module = case.modules[0]
    return upgraded(case, **{module.name: module.wrong[NEARLY]})


def tells(case: Case, test: str) -> bool:
    """Return whether a written test fails on the mistake, and nothing fails on the fixed version."""
    failed = [tuple(failing_tests(case, with_test(case, files, test), 2)) for files in (mistaken(case), upgraded(case))]
    return len(failed[0]) == 1 and failed[0][0].partition(".")[0].endswith(ADDED) and not failed[1]


def history(case: Case) -> tuple[Commit, ...]:
    """Return the last three commits of main in a triage case. Two of them edit one module, of which one reverts a line, and a
    third edits another module. If a test is flaky, no commit breaks anything."""
    suspect = next(module for module in case.modules if module.part != TOLERANT)
    other = next(module for module in case.modules if module is not suspect)
    first, *rest = shuffled(COMMITS, case.name, "commits")
    modules = {first: suspect, **dict(zip(rest, (suspect, other), strict=True))}
    authors = dict(zip(COMMITS, shuffled(AUTHORS, case.name, "authors"), strict=True))
    files, notes, lines, commits = upgraded(case), dict[str, str](), dict[str, str](), list[Commit]()
    for number in COMMITS:
        module, breaks = modules[number], number == first and "flaky" not in case.traits
        notes[module.name] = (
            f"{notes.get(module.name, '')} See note {seed_of('service_upgrade', case.name, number) % 900 + 100}."
        )
        lines[module.name] = module.old if breaks else lines.get(module.name, module.right)
        files = {**files, f"{module.name}.py": module_text(case, module, lines[module.name], notes[module.name])}
        commits.append(Commit(number, authors[number], module, files, breaks))
    return tuple(commits)


def refs_of(case: Case) -> dict[str, tuple[FilesOf, FilesOf | None]]:
    """Return the refs at the start of a case: the files of each, and the files of its base."""
    match case.work:
        case "triage":
            commits = history(case)
            before = [None, *(commit.files for commit in commits)]
            refs = {commit.ref: (commit.files, base) for commit, base in zip(commits, before[:-1], strict=True)}
            return {MAIN: (commits[-1].files, None), **refs}
        case "add_test":
            return {MAIN: (mistaken(case), None), FIX: (upgraded(case), mistaken(case))}
        case _:
            return {MAIN: (base_files(case), None)}

"""python -m scenarios.service_upgrade.keep      runs what the right course and most slips need, and keeps what came of it

The results of some hundred trees are made in minutes. What is kept is not run again: delete `kept.json` to make it anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from .expected import base_files
from .offered import offered_tests, with_test
from .processes import KEPT, failures, kept
from .repository import PUSHED, FilesOf
from .story import NEARLY, Case, case_of
from .trees import history, mistaken, upgraded

CASES = [f"{word}_{number:02}" for word in ("case", "dev") for number in range(1, 13)]
SMALLER = [f"{word}_{number:02}" for word in ("triage", "test", "pull") for number in range(1, 7)]


def trees(case: Case) -> Iterator[FilesOf]:
    """Yield the trees that the right course and most slips need: the right tree, also before a rebase, and trees in which one
    module is nearly right. For triage, yield the tree of each commit; for a test to be added, both versions with each offered
    test."""
    if case.work == "triage":
        yield from (commit.files for commit in history(case))
        return
    if case.work == "add_test":
        for files in (mistaken(case), upgraded(case)):
            yield from (with_test(case, files, letter) for letter in offered_tests(case))
        return
    right = upgraded(case)
    yield right
    if "pushed" in case.traits:
        yield {**right, PUSHED: base_files(case)[PUSHED]}
    for module in case.modules:
        yield upgraded(case, **{module.name: module.wrong[NEARLY]})


def check(case: Case) -> None:
    for files in trees(case):
        if failures(case, files, "tests"):
            failures(case, files, "tests", 2)
        if case.work in ("triage", "add_test"):
            continue
        failures(case, files, "lint")
        if not failures(case, files, "instance") and case.work == "upgrade":
            failures(case, files, "canary")


def main() -> None:
    for name in (*CASES, *SMALLER):
        check(case_of(name))
        lines = [f'"{tree}": {json.dumps(results, sort_keys=True)}' for tree, results in sorted(kept().items())]
        KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(name, len(lines), flush=True)


if __name__ == "__main__":
    main()

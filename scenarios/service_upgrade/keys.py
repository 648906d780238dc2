"""The business key of each effect: two calls with one key mean the same effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

KEYS: Mapping[str, str] = {
    "open_branch": "branch {branch}",
    "rewrite": "rewrite {rewrite} of {module}",
    "rebase": "rebase onto {main}",
    "run_tests": "tests of {tree}, run {run}",
    "run_lint": "lint of {tree}",
    "start_instance": "instance of {tree}",
    "merge": "merge of {tree}",
    "migrate": "migration",
    "start_canary": "canary of {tree}",
    "promote": "release of {tree}",
    "hand_over": "hand-over of {branch}",
    "label": "label {label}",
    "assign": "assignment to {person}",
    "add_test": "test {test} of {module}",
    "open_pull_request": "pull request of {branch}",
}
UNDOES: Mapping[str, str] = {
    "open_branch": "delete_branch",
    "start_instance": "stop_instance",
    "merge": "revert_merge",
    "migrate": "migrate_back",
    "start_canary": "roll_back",
    "label": "take_label_off",
    "assign": "unassign",
    "add_test": "drop_test",
    "open_pull_request": "close_pull_request",
}
"""Tool -> its undo."""


def key_of(tool: str, given: Mapping[str, Any]) -> str:
    return KEYS[tool].format(**given)


def keyed(tool: str) -> Callable[[Any], str]:
    """Return the function that makes the business key of a call of this tool from its arguments."""
    return lambda arguments: key_of(tool, arguments.model_dump())

"""The baseline: judgments by rules that do not read the library. It takes the first rewrite, a low risk, and a sound canary."""

from __future__ import annotations

from collections.abc import Mapping

from bench.scenario import Json

JUDGED: Mapping[str, Json] = {
    "adapt": {"rewrite": "a"},
    "risk": {"risk": "low"},
    "canary": {"decision": "promote"},
    "blame": {"label": "regression", "commit": "3"},
    "choose": {"test": "a"},
    "describe": {"modules": [], "risk": "low"},
}
SHOWN = {"adapt": "module", "risk": "checks", "canary": "metrics", "blame": "log", "choose": "mistake", "describe": "diff"}


def judge(subtask: str) -> Json:
    """Return the output of one judgment, independent of its documents."""
    return JUDGED[subtask]


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """Return the judgments whose documents exist. A world has no documents before it is run."""
    return {subtask: judge(subtask) for subtask, name in SHOWN.items() if name in documents}

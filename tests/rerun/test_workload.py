"""A workload is read, or refused in one line that says what is wrong and where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bench.common.errors import ConfigError
from bench.rerun.workload import WorkloadEntry, read_workload

WORKLOADS = sorted((Path(__file__).parents[2] / "configs" / "workloads").glob("*.toml"))
SOUND = """
name = "work"
[work]
lasts_minutes = 30
[failures]
crash = 0.5
[evidence]
run = "none-such"
scenario = "support_desk"
"""


def read(tmp_path: Path, text: str) -> WorkloadEntry:
    (tmp_path / "work.toml").write_text(text, encoding="utf-8")
    return read_workload(tmp_path / "work.toml")


@pytest.mark.parametrize(
    ("work", "runtime"),
    [
        ({"lasts_minutes": 30}, "autonomous"),
        ({"lasts_minutes": 1440}, "long-horizon"),
        ({"lasts_minutes": 5000, "person_waits": True}, "conversational"),
    ],
)
def test_the_runtime_follows_from_the_work(work: dict[str, Any], runtime: str) -> None:
    entry = {"name": "x", "work": work, "failures": {}, "evidence": {"run": "x", "scenario": "y"}}
    assert WorkloadEntry.model_validate(entry).derived_runtime == runtime


REFUSED = {
    "an unknown key": (("crash = 0.5", "crash = 0.5\n[work.more]"), "unknown key 'work.more'"),
    "a key that is misspelt": (
        ("lasts_minutes", "last_minutes"),
        "unknown key 'work.last_minutes'; did you mean 'lasts_minutes'?",
    ),
    "a failure that comes less than never": (("0.5", "-1"), "failures.crash: must be at least 0.0, not -1"),
    "work that takes no time": (("= 30", "= 0"), "work.lasts_minutes: must be more than 0.0, not 0"),
    "no evidence": (('scenario = "support_desk"', ""), "evidence.scenario: is missing"),
    "a runtime that it has not": (
        ('name = "work"', 'name = "work"\nruntime = "conversational"'),
        "contradicts itself: runtime = 'conversational', and person_waits = false and lasts_minutes = 30 make it 'autonomous'",
    ),
    "final effects without any": (
        ("lasts_minutes = 30", "lasts_minutes = 30\noutside_effects = false\ncannot_be_undone = true"),
        "contradicts itself: work.cannot_be_undone = true, and work.outside_effects = false",
    ),
    "approvals of nothing": (
        ("lasts_minutes = 30", "lasts_minutes = 30\noutside_effects = false\napprovals = true"),
        "contradicts itself: work.approvals = true, and work.outside_effects = false",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path: Path, what: str) -> None:
    (before, after), reason = REFUSED[what]
    assert before in SOUND
    with pytest.raises(ConfigError, match=re.escape(reason)) as refused:
        read(tmp_path, SOUND.replace(before, after, 1))
    assert "\n" not in str(refused.value) and "work.toml" in str(refused.value)


def test_a_file_that_is_not_there_or_no_toml_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_workload(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="is not TOML"):
        read(tmp_path, "name = ")


def test_each_runtime_has_two_workloads_as_examples() -> None:
    runtimes = [read_workload(path).derived_runtime for path in WORKLOADS]
    assert sorted(runtimes) == sorted(2 * ["autonomous", "conversational", "long-horizon"])

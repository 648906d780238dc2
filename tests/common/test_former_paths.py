"""A pack or a package that was written for an earlier version finds our modules by their former paths."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from bench.common.former_paths import FORMER, PACKAGE, present_path


@pytest.mark.parametrize("former", sorted(FORMER))
def test_a_former_path_leads_to_a_module_that_there_is(former: str) -> None:
    path = present_path(f"{PACKAGE}{former}")
    assert path and importlib.import_module(path).__name__ == path and present_path(path) is None


def test_a_module_is_the_same_by_both_paths_and_a_line_says_the_present_one() -> None:
    code = (
        "from bench.runtime.effects import TextEffect, Point; import bench.run.trial.effects as present; "
        "from bench.worlds.environment import Environment; from bench.models.base import Message; "
        "import bench.runtime.effects as former; assert former is present and TextEffect is present.TextEffect; "
        "assert present.__spec__.name == present.__name__ == 'bench.run.trial.effects'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [
        f"bench: the import of bench.{former} still works; write bench.{present}"
        for former, present in (
            ("runtime.effects", "run.trial.effects"),
            ("worlds.environment", "worlds.run.environment"),
            ("models.base", "run.models.base"),
        )
    ]


def test_a_path_that_never_was_is_no_former_path() -> None:
    assert present_path("bench.nothing") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("bench.nothing")

"""The upgrade of a service is a world like others: the commands diagnose, shrink and score its failed trials as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import bench

ROOT = Path(__file__).parents[2]
RUN = "upgrades"


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one case, bare and with remedies, in which the agent dies after the merge, or a release arrives twice."""
    folder = tmp_path_factory.mktemp("upgrade")
    (folder / "scenarios").symlink_to(ROOT / "scenarios")
    chosen = ["--scenario", "service_upgrade/case_01", "--name", RUN]
    for option, names in {
        "--architecture": ("bare_agent", "bare_agent_remedied"),
        "--plan": ("none", "crash_after_merge", "doubled_deploy"),
    }.items():
        chosen += [word for name in names for word in (option, name)]
    code, _, problems = bench(folder, "run", str(ROOT / "studies" / "comparisons" / "service_upgrade.toml"), *chosen)
    assert code == 0, problems
    return folder


def test_a_doubled_release_is_the_commits_and_what_a_crash_after_the_merge_does_is_the_patterns(folder: Path) -> None:
    code, printed, problems = bench(folder, "explain", "diagnose", RUN)
    assert code == 0, problems
    lines = printed.splitlines()
    assert any("plan crash_after_merge" in line and line.endswith("it is gone when the pattern is mended") for line in lines)
    assert any("doubled: release of" in line and line.endswith("it is gone when the commit is mended") for line in lines)
    assert "3 of 3 are explained" in lines[0]


def test_the_crash_after_the_merge_suffices_for_the_worst_trial(folder: Path) -> None:
    code, printed, problems = bench(folder, "explain", "shrink", RUN, "--trial", "worst")
    assert code == 0, problems
    assert "process recorded: merge, try 1" in printed


def test_a_scorecard_tells_the_bare_agent_from_the_remedied(folder: Path) -> None:
    code, printed, problems = bench(folder, "scorecard", RUN)
    assert code == 0, problems
    assert "bare_agent finished none of 1 undisturbed trial right." in " ".join(printed.split())
    assert "bare_agent_remedied finished 1 of 1 undisturbed trial right." in " ".join(printed.split())

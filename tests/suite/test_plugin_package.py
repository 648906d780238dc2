"""A package with one part of each kind: its parts are listed, run, and stand in the report, as ours do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import UNDRAWN, environment, sabotaged
from little_worlds import REFUNDS, harm
from plugged import PARROT, Installed, install_package, plugged
from trials import Fault, events, matrix_of, run_all, stages

from bench.cli.authoring.new import new_plugin, new_scenario
from bench.common.errors import PackError
from bench.common.paths import PACKS
from bench.record.events import Called
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix
from bench.run.packs import find_packs, load_pack

ROOT = Path(__file__).parents[2]
CONFIG = """
name = "mine"
scenarios = ["demo"]
architectures = ["runtime_structured", "parrot"]
models = ["bird"]
plans = ["none", "squawked", "startled"]
repetitions = 2
seed = 1
study = "echo"
model.bird = { kind = "parrot", seconds = 0.5 }
plan.squawked.faults = [{ point = "output", effect = "squawked", attempts = [1] }]
plan.startled.faults = [{ point = "call", effect = "startled", attempts = [1] }]
"""


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[None]:
    install_package(tmp_path / "packages")
    with plugged(tmp_path / "packages", PARROT):
        yield


def test_its_parts_are_listed_run_and_reported(tmp_path: Path) -> None:
    install_package(tmp_path / "packages")
    parts = Installed((tmp_path / "packages", PARROT))
    new_scenario("demo", tmp_path / "scenarios")
    (tmp_path / "mine.toml").write_text(CONFIG, encoding="utf-8")

    code, listed, err = sabotaged(tmp_path, parts, "list")
    assert (code, err) == (0, "")
    for name in ("parrot", "echo", "squawked"):
        assert f"{name} (from parrot-parts 1.0)" in listed
    assert "  squawked: output  from parrot-parts 1.0" in sabotaged(tmp_path, parts, "list", "effects")[1].splitlines()
    assert "first_tokens (from parrot-parts 1.0)" in sabotaged(tmp_path, parts, "list", "metrics")[1]

    code, out, err = sabotaged(tmp_path, parts, "run", "mine.toml", "--report", **UNDRAWN)
    assert (code, err) == (0, "") and "solved 12" in out
    report = tmp_path / "reports" / "mine-bird"
    page = (report / "report.md").read_text(encoding="utf-8")
    assert "What an echo costs" in page.partition("## The study")[2].partition("\n## ")[0]
    assert "counted by a parrot" in page.partition("## Faults")[2].partition("\n## ")[0]
    assert "| First tokens |" in page
    assert (report / "tables" / "heard.csv").exists() and (report / "figures" / "heard.png").exists()

    code, out, err = sabotaged(tmp_path, parts, "export", "mine-bird", "--form", "parrot")
    assert (code, err, out) == (0, "", "1 files in reports/mine-bird/parrot: parrot.txt\n")
    assert (report / "parrot" / "parrot.txt").read_text(encoding="utf-8").count("solved, solved!\n") == 12


@pytest.mark.usefixtures("installed")
def test_its_effects_strike_as_ours_do() -> None:
    plans: dict[str, list[Fault]] = {
        "squawked": [{"point": "output", "effect": "squawked", "attempts": [1], "subtask": "total"}],
        "startled": [{"point": "call", "effect": "startled", "attempts": [1], "subtask": "total", "seconds": 0.25}],
    }
    squawked, startled = sorted(
        run_all(matrix_of(plans=plans, architectures=["parrot"])), key=lambda result: result.record.plan
    )
    assert [result.record.outcome for result in (squawked, startled)] == ["solved", "solved"]
    assert list(stages(squawked).values()) == [["planned", "delivered", "detected", "recovered"]]
    assert [(call.failure, call.delay) for call in events(startled, Called) if call.failure] == [("server_failed", 0.25)]


@pytest.mark.usefixtures("installed")
def test_its_effect_on_a_tool_harms_a_world() -> None:
    fault = {"point": "tool", "effect": "repeated", "tool": "refund", "attempts": [1]}
    values = {
        "name": "test",
        "scenarios": ["refunds"],
        "architectures": ["clerks:bare"],
        "models": ["m"],
        "plans": ["plan"],
        "repetitions": 1,
        "seed": 7,
        "model": {"m": {"kind": "simulated"}},
        "plan": {"plan": {"faults": [fault]}},
    }
    [result] = run_all(build_matrix(Config.model_validate(values), (), "code", scenarios={"refunds": REFUNDS}))
    assert stages(result) and harm(result).get("doubled", 0) >= 1


def test_the_package_that_bench_new_plugin_writes_passes_its_own_test_and_is_sound(tmp_path: Path) -> None:
    folder = new_plugin("my_parts", tmp_path)
    install_package(tmp_path / "packages", folder)
    path = os.pathsep.join((str(tmp_path / "packages"), str(folder), str(ROOT)))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    tested = subprocess.run(words, cwd=folder, env=environment(PYTHONPATH=path), capture_output=True, text=True, check=False)
    assert tested.returncode == 0 and "1 passed" in tested.stdout, tested.stdout + tested.stderr
    code, listed, err = sabotaged(tmp_path, Installed((tmp_path / "packages", folder)), "list", "effects")
    assert (code, err) == (0, "") and "my_parts_capitals: output  from my-parts 1.0" in listed
    assert not [file for file in folder.rglob("*") if file.suffix == ".j2" or "{{" in file.name]


def test_a_name_that_is_no_package_or_is_taken_is_refused(tmp_path: Path) -> None:
    for name in ("My-Parts", "1st", ""):
        with pytest.raises(PackError, match="cannot be the name; use lower-case letters"):
            new_plugin(name, tmp_path)
    new_plugin("mine", tmp_path)
    with pytest.raises(PackError, match="exists already; choose another name"):
        new_plugin("mine", tmp_path)


@pytest.mark.usefixtures("installed")
def test_the_packs_of_a_package_stand_beside_a_folders_own_which_go_before_them(tmp_path: Path) -> None:
    packaged = find_packs(PACKS)["echo"]
    assert packaged == PARROT / "parrot_parts" / "packs" / "echo" and load_pack("echo", PACKS).name == "echo"
    assert "echo" not in find_packs([tmp_path])
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        new_scenario("echo", PACKS[0])
        new_scenario("mine", PACKS[0])
        assert find_packs(PACKS) == {"echo": PACKS[0] / "echo", "mine": PACKS[0] / "mine"}

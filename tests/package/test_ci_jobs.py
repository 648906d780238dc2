"""The jobs that others copy, and our release: they are sound as text, and their steps do what they say where they are run."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from release import notes

from bench.cli.main import app

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GITHUB = yaml.safe_load((ROOT / "docs" / "ci" / "github.yml").read_text(encoding="utf-8"))
[JOB] = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text(encoding="utf-8")).values()
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
BASH = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c")
"""As both run a step."""
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
DISTRIBUTIONS = ROOT / os.environ.get("BENCH_PACKAGE", "build/dist")


def scripts() -> Iterator[str]:
    yield from (step["run"] for step in STEPS)
    yield from ("\n".join(JOB[part]) for part in ("before_script", "script"))


@pytest.mark.parametrize("script", list(scripts()))
def test_a_step_is_shell_without_an_expression_in_it_and_gives_options_that_the_command_has(script: str) -> None:
    assert "${{" not in script, "an expression in a script runs what a stranger wrote into a title"
    subprocess.run(("bash", "-n", "-c", script), check=True)
    probe = typer.main.get_command(app).commands["probe"]  # type: ignore[attr-defined]
    typed = (
        re.findall(r"(?<= )--[a-z-]+", script.partition(" probe ")[2].partition("\n\n")[0]) if 'bench" probe' in script else []
    )
    assert set(typed) <= {option for parameter in probe.params for option in parameter.opts}


@pytest.mark.parametrize("job", ["run", "nightly"])
def test_each_session_that_our_own_ci_names_is_there(job: str) -> None:
    named = re.findall(r"nox (?:--[a-z-]+ )*-s ([a-z_ ]+)", (ROOT / ".ci" / job).read_text(encoding="utf-8"))
    there = re.findall(r"^def (\w+)\(session: nox\.Session", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(named) > 2 and {session for names in named for session in names.split()} <= set(there)


def test_what_the_action_names_of_its_inputs_and_outputs_exists() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) | {"python"} == set(ACTION["inputs"])
    written = set(re.findall(r"echo \"([a-z-]+)=", text))
    assert set(re.findall(r"outputs\.([a-z-]+)", text)) == written == set(ACTION["outputs"])
    [used] = [step for step in GITHUB["jobs"]["probe"]["steps"] if step.get("id") == "probe"]
    assert set(used["with"]) <= set(ACTION["inputs"]) and all("description" in each for each in ACTION["inputs"].values())


def test_the_tag_of_a_release_is_the_version_of_the_package_and_of_its_changelog(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    version = re.search(r'^version = "(.*)"$', (tmp_path / "pyproject.toml").read_text(), re.MULTILINE)
    assert version and notes(f"v{version[1]}", tmp_path).startswith(f"## {version[1]} (")
    with pytest.raises(ValueError, match="is not the version of pyproject"):
        notes("v0.0.9", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no section"):
        notes(f"v{version[1]}", tmp_path)


def till(folder: Path, mode: str) -> Path:
    """Lay a scripted agent that charges an account, its server and their database into a folder."""
    support = ROOT / "tests" / "support"
    made = sqlite3.connect(folder / "till.db")
    made.executescript("""
        CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER);
        CREATE TABLE payments (id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT, amount INTEGER, key TEXT);
        CREATE TABLE parcels (order_id TEXT PRIMARY KEY, account TEXT);
        INSERT INTO accounts VALUES ('ada', 100);
    """)
    made.close()
    server = {"command": sys.executable, "args": [str(support / "till_server.py"), "till.db", "serve"]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"till": server}}))
    agent = json.dumps([sys.executable, str(support / "till_agent.py"), ".mcp.json", mode])
    (folder / "probe.toml").write_text(
        f'agent = {agent}\nmcp = ".mcp.json"\nsettle = 0.02\npatience = 2.0\n[[store]]\nsqlite = "till.db"\n'
    )
    return folder


# In the nightly set: each step, in a fresh folder, with the wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runner's folder in which the action's first step has installed the wheel."""
    if "BENCH_PACKAGE" not in os.environ:
        pytest.skip("nox -s package builds the wheel for this")
    runner = tmp_path_factory.mktemp("runner")
    [wheel] = DISTRIBUTIONS.glob("*.whl")
    run_step(STEPS[0], runner, runner, {"inputs.package": f"{wheel.resolve()}[mcp]"})
    return runner


def context(runner: Path, given: Mapping[str, str]) -> dict[str, str]:
    """The value of each expression of the action: its inputs' defaults, what its steps put out, and what a test gives."""
    values = {f"inputs.{name}": str(each["default"]) for name, each in ACTION["inputs"].items()}
    put_out = runner / "output"
    lines = put_out.read_text(encoding="utf-8").splitlines() if put_out.exists() else []
    values |= {f"steps.probe.outputs.{name}": value for name, _, value in (line.partition("=") for line in lines)}
    values |= {"github.event_name": "push", "github.repository": "me/shop", "github.event.pull_request.number": "7"}
    return {**values, **given}


def run_step(step: Mapping[str, Any], runner: Path, folder: Path, given: Mapping[str, str]) -> tuple[int | None, str]:
    """Run a step of the action as GitHub does; its exit code, and what it printed. None if its condition leaves it out."""
    values = context(runner, given)
    conditions = (each.split(" == ") for each in step.get("if", "").split(" && ") if each)
    if not all(values[name] == value.strip("'") for name, value in conditions):
        return None, ""
    environment = {name: EXPRESSION.sub(lambda each: values[each[1]], value) for name, value in step.get("env", {}).items()}
    paths = {
        "RUNNER_TEMP": runner,
        "GITHUB_OUTPUT": runner / "output",
        "GITHUB_STEP_SUMMARY": runner / "summary.md",
        "GITHUB_ACTION_PATH": ROOT,
    }
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    place = folder / EXPRESSION.sub(lambda each: values[each[1]], step.get("working-directory", "."))
    done = subprocess.run(
        (*BASH, step["run"]),
        cwd=place,
        env={**outer, **environment, **{name: str(path) for name, path in paths.items()}},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    return done.returncode, done.stdout + done.stderr


def steps_of(runner: Path, at: Path, **given: str) -> dict[str, tuple[int | None, str]]:
    """Run all steps but the first; the runner goes on to the last step whatever the others ended with."""
    for name in ("output", "summary.md"):
        (runner / name).unlink(missing_ok=True)
    shutil.rmtree(runner / "probe", ignore_errors=True)
    inputs = {f"inputs.{name}": value for name, value in given.items()}
    event = {"github.event_name": given["event"]} if "event" in given else {}
    return {step["name"]: run_step(step, runner, at, inputs | event) for step in STEPS[1:]}


@pytest.mark.endurance
def test_the_actions_steps_find_damage_say_so_on_the_pull_request_and_fail_the_job(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = tmp_path / "bin" / "gh"
    stub.parent.mkdir()
    stub.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/asked; cat "${{@: -1}}" > {tmp_path}/body\n'.replace("/bin/sh", "/bin/bash")
    )
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
    (shop := tmp_path / "shop").mkdir()
    ended = steps_of(
        installed,
        till(shop, "again").parent,
        folder="shop",
        options="--only charge#1.lost",
        comment="true",
        event="pull_request",
    )
    assert ended["Allow user namespaces"][0] == 0 and ended["Probe"][0] == 0, ended
    assert (ended["Comment"][0], ended["Verdict"][0]) == (0, 1)
    assert (tmp_path / "asked").read_text().startswith("pr comment 7 --edit-last")
    assert (tmp_path / "body").read_text().startswith("## bench probe: ✕ damage")
    assert (installed / "summary.md").read_text() == (tmp_path / "body").read_text()
    assert json.loads((installed / "probe" / "probe.json").read_text())["exit_code"] == 1


@pytest.mark.endurance
def test_the_actions_steps_pass_what_is_undecided_with_a_warning_and_fail_what_cannot_be_probed(
    installed: Path, tmp_path: Path
) -> None:
    folder = till(tmp_path, "again keyed")
    ended = steps_of(installed, folder, options="--budget 1s")
    assert ended["Comment"][0] is None and ended["Verdict"][0] == 0 and "::warning::" in ended["Verdict"][1], ended
    ended = steps_of(installed, folder, options="--budget 1s --name again", **{"fail-on": "1 2 3 4"})
    assert ended["Verdict"][0] == 3
    ended = steps_of(installed, folder, file="elsewhere.toml")
    assert ended["Verdict"][0] == 2 and "elsewhere.toml: is not there" in (installed / "probe" / "probe.xml").read_text()


@pytest.mark.endurance
def test_the_steps_of_the_gitlab_job_end_with_the_probes_exit_code_and_leave_its_files(installed: Path, tmp_path: Path) -> None:
    folder = till(tmp_path, "again")
    environment = {**os.environ, **JOB["variables"], "PROBE_OPTIONS": "--only charge#1.lost", "TMPDIR": str(installed)}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTHON")}
    for line in JOB["before_script"][2:]:
        subprocess.run((*BASH, line), cwd=folder, env=environment, check=True)
    codes = [subprocess.run((*BASH, line), cwd=folder, env=environment, check=False).returncode for line in JOB["script"]]
    assert codes == [0, 1] and JOB["allow_failure"] == {"exit_codes": 3}
    assert (folder / JOB["artifacts"]["reports"]["junit"]).exists() and (folder / "probe" / "probe.md").exists()

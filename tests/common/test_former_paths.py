"""A pack or a package that was written for an earlier version finds our modules by their former paths."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from commands import bench_anew
from plugged import install

from bench.common.former_paths import FORMER, PACKAGE, present_path

NAMES = """
analysis.frames: Run load_run
analysis.ledger: Account LedgerEntry book
analysis.metrics: Metric
analysis.rows: Column FramePart
analysis.trial: TrialReading
architectures.autogen: assistant
architectures.form: Approval Commit Form Signal Strength UndoOrder
architectures.part: ArchitecturePart Structure
cli.command_part: CommandPart
endpoint.dialect: Dialect
errors: BenchError GaveUp PackError ServerFailed ToolRefused Unavailable one_line
experiment.manifest: BaselineGrades Manifest ManifestPack
experiment.model_parameters: EarlierRun ModelParameters RecordingUsed
experiment.model_part: BaseModelEntry ModelPart
files: content_of text_of
models.base: Message MessageRole Model Reply Request Response StoredMessage Usage stored
models.making: Making
models.simulated: SimulatedModel SimulatedSettings
packs: PackFolder find_packs instances_of load_instances load_pack variants_of
packs.environments: EnvironmentPart
packs.equivalents: LEVELS REORDERED REWORDED another level_of retold task_of
registry: Part Registry attribute_at
render.cells: Cell Estimate Number Rate
render.drawing: Picture finish names_below panels
render.labels: arm_columns each_arm model_label
render.table: Table TableColumn table_of
report.export_part: ExportPart
report.figure_part: FigurePart
report.results: Results
report.studies: StudyPart study_values
report.table_part: TablePart
runtime.asking: Agent LineReply ModelLine
runtime.effects: CallEffect Disturbance Effect Point Send Target TextEffect
runtime.endpoint_session: EndpointSession
runtime.events: Called Committed EventPart Judged
runtime.proposal: Proposal
runtime.verification: Reason Rejected Verdict
runtime.workbench: Workbench
sandbox: Guard Limits SandboxBroken SandboxResult run_python
sandbox.cases: Case run_cases same
sandbox.syntax: unparsable
seeding: draw_for seed_of
tokens: count_tokens
wording: first_violation
worlds.environment: Acted Call Damage Db Environment EventKind Facts FinalWorld JournalEntry JudgmentState Moment Person Policy
worlds.environment: PolicyVerdict ProcedureStep Question Quota Role Scheduled Snapshot Standing Tool ToolRefused World
worlds.environment.calling: Acted RefusalCode
worlds.environment.damage: DAMAGES Damage in_journal in_tables
worlds.environment.database: Db dump
worlds.environment.declaration: Environment JudgmentState
worlds.environment.journal: CallOutcome JournalEntry
worlds.environment.parts: EventKind Person Policy PolicyVerdict Standing Tool ToolAccess
worlds.environment.procedure: AGENT COMPENSATION Facts ProcedureStep Question no_calls
worlds.environment.scene: World
worlds.environment.world: World
worlds.runtime.actions: Decision WorldActions
worlds.runtime.effects: AnswerEffect NoticeEffect ProcessEffect StruckToolCall ToolEffect
"""
"""What documents, templates and packs imported before the rooms moved, and what the Python reference listed."""

PARTS = """
from bench.analysis.metrics import Metric
from bench.architectures.part import ArchitecturePart
from bench.experiment.model_part import BaseModelEntry, ModelPart
from bench.models.making import Making
from bench.models.simulated import SimulatedModel, SimulatedSettings
from bench.report.export_part import ExportPart
from bench.runtime.effects import TextEffect
from bench.runtime.workbench import Workbench
from bench.scenario import Task
from typing import Literal

async def patient(task: Task, workbench: Workbench) -> None:
    for subtask in task.subtasks:
        while not workbench.done(subtask):
            proposal = await workbench.propose(subtask)
            if not workbench.verify(proposal):
                workbench.commit(proposal)

class Entry(BaseModelEntry):
    kind: Literal["old_model"]

ARCHITECTURE = ArchitecturePart("patient", "old_parts:patient")
EFFECT = TextEffect("capitals", lambda target, _: target.text.upper(), points=("output",), breaks_form=True)
MODEL = ModelPart("old_model", Entry, "old_parts:made")
METRIC = Metric("first_calls", "int64", lambda trial: sum(entry.call.cause == "first" for entry in trial.entries))
EXPORT = ExportPart("old_words", lambda run: iter([("calls.txt", str(run.trials["first_calls"].sum()).encode())]))

def made(settings: Entry, of: Making) -> SimulatedModel:
    return SimulatedModel(of.name, SimulatedSettings(wrapping=False), of.scenarios)
"""
"""A package's parts, by the former paths."""
PACK = """
from bench.errors import PackError
from bench.packs import PackFolder
from bench.sandbox.cases import same
from bench.scenario import Context, Grade, Output, Scenario, Subtask
from bench.seeding import seed_of
from bench.worlds.environment import Environment

class Words(Output):
    words: list[str]

def grade(answer, truth):
    return Grade(correct=answer["read"].words == ["one"], score=1.0, parts={})

def scenario(folder: PackFolder) -> Scenario:
    return folder.scenario(
        (Subtask("read", "Which words stand in `notes.txt`?", ("notes.txt",), Words),), grade=grade, baseline=lambda _: {}
    )
"""
CONFIG = """
name = "old"
scenarios = ["old_pack"]
architectures = ["patient", "runtime_structured"]
models = ["bird"]
plans = ["none", "loud"]
repetitions = 1
seed = 1
model.bird.kind = "old_model"
plan.loud.faults = [{ point = "output", effect = "capitals", attempts = [1] }]
"""


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


def test_each_name_of_the_former_reference_is_found_by_its_former_path() -> None:
    modules = [line.partition(": ") for line in NAMES.split("\n") if line]
    code = "\n".join(f"from bench.{module} import {', '.join(names.split())}" for module, _, names in modules)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("bench: the import of bench.") for line in lines) and len(lines) == len(set(lines))


def test_a_package_and_a_pack_of_the_former_paths_run_as_they_stand(tmp_path: Path) -> None:
    kinds = {"architectures": "ARCHITECTURE", "effects": "EFFECT", "models": "MODEL", "metrics": "METRIC", "exports": "EXPORT"}
    points = {f"recovery_bench.{kind}": {"old": f"old_parts:{entry}"} for kind, entry in kinds.items()}
    install(tmp_path / "packages", "old-parts", points, {"old_parts.py": PARTS}, requires=["recovery-bench>=0.2"])
    files = {
        "scenario.py": PACK,
        "documents/notes.txt": "one",
        "prompts/role.md": "You read.",
        "prompts/read.md": "Which words stand in `notes.txt`?",
        "reference/answer.json": '{"read": {"words": ["one"]}}',
        "reference/wrong/two.json": '{"why": "another word", "outputs": {"read": {"words": ["two"]}}}',
        "reference/truth/words.txt": "one",
    }
    for name, text in files.items():
        path = tmp_path / "scenarios" / "old_pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "old.toml").write_text(CONFIG)
    packages = str(tmp_path / "packages")
    code, out, err = bench_anew(tmp_path, "run", "old.toml", PYTHONPATH=packages)
    assert code == 0 and "solved 4" in out, err
    ended, _, _ = bench_anew(tmp_path, "export", "old-bird", "--form", "old_words", PYTHONPATH=packages)
    assert ended == 0 and (tmp_path / "reports/old-bird/old_words/calls.txt").read_text() == "4"
    assert "bench: the import of bench.packs still works; write bench.run.packs" in err.splitlines()
    assert all(line.startswith(("bench: the import of bench.", "'bird' is SIMULATED")) for line in err.splitlines()), err


def test_a_path_that_never_was_is_no_former_path() -> None:
    assert present_path("bench.nothing") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("bench.nothing")

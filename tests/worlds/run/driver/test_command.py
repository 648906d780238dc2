"""A command in a config: what cannot be started is refused before anything runs, and what determines it is in its digest."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from driven import AGENTS, driven, matrix_of, printed

from bench.common.errors import ConfigError, PackError
from bench.run.architectures.registry import architecture_named
from bench.run.experiment.config import Config
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.preview import preview
from bench.run.packs.loading import load_pack
from bench.worlds.run.driver.command import Bounds, command_of


@pytest.mark.parametrize(
    ("words", "entry", "message"),
    [
        (["no_such_program"], {}, "architecture.mine.command: there is no program 'no_such_program'"),
        (["no/such/program"], {}, "architecture.mine.command: there is no program 'no/such/program'"),
        (["x" * 4000], {}, "architecture.mine.command: there is no program 'xxx"),
        (["."], {}, "architecture.mine.command: '.' is a folder; name the program in it"),
        (["python", "clrk.py"], {}, "architecture.mine.command: there is no file clrk.py in"),
        (["python"], {"folder": "no/such"}, "architecture.mine.folder: there is no folder no/such"),
        (["python"], {"env": {"HOME": "/"}}, "architecture.mine.env: 'HOME' cannot be set; the driver itself sets"),
        (["python"], {"files": ["no.py"]}, "architecture.mine.files: there is no file no.py in"),
        (["python"], {"packages": ["no-such"]}, "architecture.mine.packages: no-such is not installed"),
    ],
)
def test_a_command_that_cannot_be_started_is_refused(words: list[str], entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        matrix_of(words, **entry)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"base": "static", "command": ["python"]}, "give either a base"),
        ({"max_attempts": 2}, "give either a base"),
        ({"base": "static", "env": {"A": "b"}}, "are those of a command"),
        ({"command": ["python"], "max_attempts": 2}, "max_attempts is not a setting of a command"),
        ({"command": []}, "at least 1"),
        ({"command": ["python"], "time_limit_seconds": 0}, "greater than 0"),
        ({"command": ["python"], "model_calls": 0}, "greater than or equal to 1"),
        ({"base": "static", "model_calls": 5}, "are those of a command"),
    ],
)
def test_a_table_is_a_variant_or_a_command(entry: dict[str, Any], words: str) -> None:
    values = {"name": "t", "scenarios": ["x"], "architectures": ["mine"], "models": ["m"], "repetitions": 1, "seed": 1}
    model = {"m": {"kind": "simulated"}}
    with pytest.raises(ValueError, match=words):
        Config.model_validate({**values, "model": model, "architecture": {"mine": entry}})


def test_its_digest_is_that_of_its_words_its_environment_and_its_files(tmp_path: Path) -> None:
    def digest(words: list[str], env: dict[str, str]) -> str:
        return command_of(words, tmp_path, env, Bounds(300.0), "mine").digest

    shutil.copy(AGENTS / "clerk.py", tmp_path)
    words = ["python", "clerk.py"]
    digests = [digest(words, {}), digest([*words, "careful"], {}), digest(words, {"A": "1"})]
    (tmp_path / "clerk.py").write_text("pass", encoding="utf-8")
    assert len({*digests, digest(words, {})}) == 4
    assert digest(words, {}) == digest(words, {})


def test_files_beside_it_and_versions_of_packages_are_part_of_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text("one", encoding="utf-8")
    plain = matrix_of(["python"], folder=str(tmp_path))
    entry: dict[str, Any] = {"folder": str(tmp_path), "files": ["shared.py"], "packages": ["aiohttp"]}
    before = matrix_of(["python"], **entry)
    (tmp_path / "shared.py").write_text("two", encoding="utf-8")
    after = matrix_of(["python"], **entry)
    assert len({each.architectures["mine"].digest for each in (plain, before, after)}) == 3
    assert len({each.specs[0].id for each in (plain, before, after)}) == 3
    assert manifest_of(after, "run").packages["aiohttp"] == metadata.version("aiohttp")


def test_an_agent_has_its_own_folder_over_its_lives_and_nothing_of_its_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_SECRET", "secret")
    fault = {"point": "process", "effect": "before", "tool": "notify", "attempts": [1]}
    text = printed(driven(["python", "surroundings.py"], [fault], env={"MINE": "1"}))
    first, second = (dict(line.split("=", 1) for line in life.splitlines()) for life in text.split("--\n") if life.strip())
    given = {"MCP_COMMAND", "MCP_URL", "MINE", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "PATH", "TOOLS_URL"}
    assert {"HOME", "LANG", "AGENT_FOLDER", "AGENT_TASK", *given} == first.keys()
    assert first == second
    assert first["HOME"] == first["AGENT_FOLDER"]
    assert "refund" in first["AGENT_TASK"]


def test_a_preview_starts_no_command_and_says_that_it_knows_nothing_of_it(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    rows = list(preview(matrix_of(["touch", str(touched)])))
    assert [(row.architecture, row.trials, row.calls, row.tokens, row.cost) for row in rows] == [("mine", 1, None, None, None)]
    assert not touched.exists()


def test_an_unknown_architecture_may_be_meant_to_be_one_of_the_config() -> None:
    with pytest.raises(ConfigError, match="unknown architecture 'mien'; did you mean 'mine'"):
        architecture_named("mien", ["mine"])


def test_where_no_pack_is_at_all_the_line_says_where_to_be(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=r"there is no pack in .*: run this where the folder scenarios/ is"):
        load_pack("contract_renewal", [tmp_path])

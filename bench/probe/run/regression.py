"""The test that `bench probe --test` writes: it plays a cell from its tape, and fails until the agent is mended."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

from bench.common.digests import digest_of
from bench.common.errors import ConfigError
from bench.common.escaping import escape_line
from bench.common.files import new_file
from bench.probe.read.sentences import consequence_clause, fault_clause
from bench.probe.run.secrets import Secrets
from bench.probe.run.settings import ProbeSettings
from bench.probe.run.tape import CellTape, record_tapes, write_tape
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import CellJudged, GatewayCall

TEST_FILE_HEAD = '''"""{sentence}

This plays the agent from tapes: it needs no key, no network, no store and no server, and runs in the folder of {file}.
Where the mended agent asks otherwise, it leaves a tape. Then this records them anew: bench probe --test '{plan}'
An agent that writes down first and never asks the tool passes at the one cell, and loses the call where it is killed before it.
"""

import pytest
'''
TEST_FUNCTION = """

@pytest.mark.probe({file}, {plan}, tape={tape})
def test_{name}(probed):
    assert probed.verdict in ("same", "absorbed", "compensated", "gave_up"), probed.timeline
"""
MAX_NAME_CHARS = 80


def write_test(file: Path, settings: ProbeSettings, hidden: Secrets, plan: str, folder: Path) -> str:
    """Run a cell again, and the cell in which the agent is killed before the same call; write their tapes and tests into a
    folder. An existing test is not changed.

    Args:
        file: The `probe.toml`, as the test will name it.
        settings: Its settings.
        hidden: The secrets, which no tape may contain.
        plan: The name of the cell.
        folder: The folder for the test.

    Returns:
        What was written, in one line.

    Raises:
        ConfigError: There is no such cell, it cannot be run, or it does no damage and has no test yet.
    """
    test = folder / f"test_{_file_name(plan)}.py"
    with hidden.removed_from_errors():
        recorded = asyncio.run(record_tapes(settings, hidden, plan))
    judged = recorded[0][1].judgement
    assert judged
    verdict = judged.verdict.replace("_", " ")
    if not test.exists() and not judged.is_damage:
        raise ConfigError(f"--test {plan}: this time its verdict is {verdict}; nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    for tape, _ in recorded:
        write_tape(folder / _tape_name(tape.plan), tape)
    tapes = " and ".join(_tape_name(tape.plan) for tape, _ in recorded)
    if test.exists():
        return f"{tapes} in {folder}: recorded anew, {verdict}; {test} stays as it was"
    with new_file(test) as written:
        written.write(_test_code(file, recorded, judged).encode())
    return f"{test} and its tapes, {tapes}, are written; run it by: pytest {test}"


def _file_name(plan: str) -> str:
    """Return a cell's name in letters that names of files and functions may have."""
    name = re.sub(r"[^a-z0-9]+", "_", plan.lower()).strip("_")[:MAX_NAME_CHARS]
    return name if plan.isascii() and len(plan) <= MAX_NAME_CHARS else f"{name}_{digest_of(plan)[:8]}"


def _tape_name(plan: str) -> str:
    return f"test_{_file_name(plan)}.json"


def _test_code(file: Path, recorded: Sequence[tuple[CellTape, CellRun]], judged: CellJudged) -> str:
    """Return the code of the test file, with a test function for each tape."""
    tape, run = recorded[0]
    sentence = f"When {fault_clause(judged, of_kind(run.events, GatewayCall), run.texts)}, {consequence_clause(judged)}."
    parts = {"sentence": sentence, "plan": tape.plan, "file": str(file)}
    code = TEST_FILE_HEAD.format(
        **{name: escape_line(text).replace("\\", "\\\\").replace('"', "'") for name, text in parts.items()}
    )
    for cell_tape, _ in recorded:
        marked = {"file": str(file), "plan": cell_tape.plan, "tape": _tape_name(cell_tape.plan)}
        code += TEST_FUNCTION.format(
            name=_file_name(cell_tape.plan), **{name: json.dumps(text) for name, text in marked.items()}
        )
    compile(code, _tape_name(tape.plan), "exec")
    return code

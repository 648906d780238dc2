"""The test that `bench probe --test` writes: it plays a cell from its tape, and fails until the agent is mended."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from bench.common.errors import ConfigError
from bench.common.files import new_file
from bench.probe.read.sentences import what, when
from bench.probe.run.probe_file import ProbeSettings
from bench.probe.run.secrets import Secrets
from bench.probe.run.tape import record_tape, write_tape
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe.events import CellJudged, GatewayCall

TEST = '''"""{sentence}

This test plays the agent from a tape: it needs no key, no network, no store and no server, and runs in the folder of {file}.
Where the mended agent asks otherwise, it leaves the tape. Then this records it anew: bench probe --test '{plan}'
"""

import pytest


@pytest.mark.probe({file}, {plan_text}, tape={tape})
def test_{name}(probed):
    assert probed.verdict in ("same", "absorbed", "compensated", "gave_up"), probed.timeline
'''


def write_test(file: Path, settings: ProbeSettings, hidden: Secrets, plan: str, folder: Path) -> str:
    """Run a cell once more, and write its tape and its test into a folder. An existing test is not changed.

    Args:
        file: The `probe.toml`, as the test will name it.
        settings: What it says.
        hidden: What may stand in no tape.
        plan: The cell.
        folder: Where the test goes.

    Returns:
        What was written, in one line.

    Raises:
        ConfigError: There is no such cell, it cannot be run, or it does no damage and has no test yet.
    """
    name = re.sub(r"\W+", "_", plan).strip("_")
    test, tape_file = folder / f"test_{name}.py", folder / f"test_{name}.json"
    tape, run = asyncio.run(record_tape(settings, hidden, plan))
    judged = run.judged
    assert judged
    if not test.exists() and not judged.is_damage:
        raise ConfigError(f"--test {plan}: this time its verdict is {judged.verdict.replace('_', ' ')}; nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    write_tape(tape_file, tape)
    if test.exists():
        return f"{tape_file} is recorded anew: {judged.verdict.replace('_', ' ')}; {test} stays as it was"
    with new_file(test) as written:
        written.write(_text(file, run, judged, plan, name, tape_file.name).encode())
    return f"{test} and its tape {tape_file.name} are written; run it by: pytest {test}"


def _text(file: Path, run: CellRun, judged: CellJudged, plan: str, name: str, tape: str) -> str:
    sentence = f"When {when(judged, of_kind(run.events, GatewayCall), run.texts)}, {what(judged)}."
    plain = sentence.replace("\\", "/").replace('"""', "'''")
    parts = {"file": json.dumps(str(file)), "plan_text": json.dumps(plan), "tape": json.dumps(tape)}
    return TEST.format(sentence=plain, plan=plan.replace("'", "?"), name=name.lower(), **parts)

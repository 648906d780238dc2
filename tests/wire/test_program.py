"""A program that cannot be started is refused ahead of the run, or ends its trial in an error: it is no agent that gave up."""

from __future__ import annotations

import errno
import os
import re
import sys
from pathlib import Path

import pytest
from driven import driven, ends, matrix_of
from trials import GRADERS

from bench.common.errors import ConfigError
from bench.run.experiment.trial import run_trial
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots
from bench.wire.program import start_hint, start_problem
from bench.worlds.run.driver import command_session

WORKS = "#!/bin/sh\nexit 0\n"
REFUSED = {
    "a CRLF behind #!": (b"#!/bin/sh\r\nexit 0\r\n", "has Windows line ends (CRLF)"),
    "one behind env": (b"#!/usr/bin/env python3\r\nprint(1)\r\n", "has Windows line ends (CRLF)"),
    "one behind a word": (b"#!/bin/sh -e\r\nexit 0\r\n", "has Windows line ends (CRLF)"),
    "CRs alone": (b"#!/bin/sh\rexit 0\r", "has Windows line ends (CRLF)"),
    "a BOM": (b"\xef\xbb\xbf#!/bin/sh\nexit 0\n", "begins with a byte order mark, not with #!"),
    "no such interpreter": (
        b"#!/no/such/python3\n",
        "begins with '#!/no/such/python3', and there is no program '/no/such/python3'",
    ),
    "none for env": (b"#!/usr/bin/env no_such\n", "begins with '#!/usr/bin/env no_such', and there is no program 'no_such'"),
    "none for env -S": (b"#!/usr/bin/env -S no_such -x\n", "there is no program 'no_such'"),
    "none at all": (b"#!\n", "begins with '#!', and there is no program ''"),
    "no text": (b"#!\xff\xfe\n", "begins with '#!"),
}


def script(folder: Path, content: str | bytes, mode: int = 0o755) -> Path:
    path = folder / "agent.sh"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        matrix_of(["./agent.sh"], folder=str(folder))
    text = str(refused.value)
    assert text.startswith("architecture.mine.command: './agent.sh' ") and "\n" not in text
    return text


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_a_script_that_no_kernel_would_start_is_refused_with_what_to_do(content: bytes, words: str, tmp_path: Path) -> None:
    script(tmp_path, content)
    assert words in refusal(tmp_path)
    assert re.search(r'or put what runs it before it, as in \["sh", "run.sh"\]$', refusal(tmp_path))


def test_a_script_without_its_x_bit_is_refused_as_that(tmp_path: Path) -> None:
    script(tmp_path, WORKS, 0o644)
    assert "is not executable; chmod +x it" in refusal(tmp_path)
    matrix_of(["sh", "agent.sh"], folder=str(tmp_path))


def test_so_is_one_that_lies_on_the_path(tmp_path: Path) -> None:
    script(tmp_path, WORKS, 0o644)
    with pytest.raises(ConfigError, match=r"'agent.sh' is not executable"):
        matrix_of(["agent.sh"], env={"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    "content",
    [
        WORKS,
        "#! /bin/sh -e\r\n".replace("\r", ""),
        "#!/usr/bin/env sh\n",
        "#!/usr/bin/env -S sh -e\n",
        "#!/usr/bin/env A=1 sh\n",
    ],
)
def test_a_script_that_can_be_started_is_not_refused(content: str, tmp_path: Path) -> None:
    path = script(tmp_path, content + "echo\r\n")
    assert start_problem(str(path), os.defpath) == ""
    assert start_problem(sys.executable, "") == ""


@pytest.mark.parametrize("content", [b"echo hi\n", b"", b"\x7fELF" + bytes(200), b"MZ" + bytes(200)])
def test_what_the_kernel_does_not_start_is_an_error_and_no_agent_that_gave_up(content: bytes, tmp_path: Path) -> None:
    script(tmp_path, content)
    result = driven(["./agent.sh"], folder=str(tmp_path))
    text = "agent.sh cannot be started: Exec format error; it is no program of this machine, and no script that begins with #!"
    assert (result.record.outcome, result.record.traceback) == ("error", None)
    assert result.record.reason.startswith(text)
    [life] = ends(result)
    assert (life.code, life.signal, life.why) == (127, None, "cannot be started: Exec format error")


def test_a_program_that_is_gone_when_its_trial_begins_is_an_error(tmp_path: Path) -> None:
    path = script(tmp_path, WORKS)
    matrix = matrix_of(["./agent.sh"], folder=str(tmp_path))
    path.unlink()
    record = run(run_trial(matrix.specs[0], matrix, Slots(), GRADERS)).record
    assert record.outcome == "error"
    assert record.reason.startswith("agent.sh cannot be started: No such file or directory; see to it that its file")


def test_an_agent_that_ends_with_127_itself_was_started(tmp_path: Path) -> None:
    script(tmp_path, "#!/bin/sh\nno_such_command_here\n")
    result = driven(["./agent.sh"], folder=str(tmp_path))
    assert (result.record.outcome, ends(result)[0].code) == ("error", 127)
    assert result.record.reason.startswith("the agent: ended with code 127: ")
    assert result.record.reason.endswith("it asked neither its model nor a tool")


def test_a_machine_that_can_start_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_life(*_: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(command_session, "AgentProcess", no_life)
    result = driven(["python", "clerk.py"])
    text = "the command cannot be started: Resource temporarily unavailable; see to this machine"
    assert (result.record.outcome, result.record.reason) == ("error", text)


def test_each_error_of_the_kernel_has_its_advice() -> None:
    assert len({start_hint(number) for number in (errno.ENOEXEC, errno.E2BIG, errno.EACCES)}) == 3

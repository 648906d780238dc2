"""Hostile answers: none reaches anything, none outlives its run, and none leaves anything behind."""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from reliability.attacks import GROUPS, attacks
from reliability.attempts import LIMITS, SECRET, TRIES, Target, absent, attacked, forged, targets, tried
from reliability.normal_user import as_nobody, interpreter
from reliability.policy import FORGED, POLICY, SLEEPS

from bench.run.sandbox import Limits, SandboxResult, launching, run_python
from bench.run.sandbox.bubblewrap import BACKEND_ENV
from bench.run.sandbox.guards import WITHOUT_ENV

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="Linux on a known machine only"
)


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with targets() as places:
        yield places


@pytest.fixture
def no_trip_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's guards alone, as for code that had stepped over the audit hook."""
    monkeypatch.setenv(WITHOUT_ENV, "trip-wire")


@pytest.mark.usefixtures("no_trip_wire")
@pytest.mark.parametrize("group", GROUPS)
def test_the_kernel_alone_refuses_every_attack(
    group: str, target: Target, record_property: Callable[[str, object], None]
) -> None:
    record_property("tries", len(attacks(group)))
    ipc = channels()
    assert tried(attacks(group), target) == {}
    assert target.untouched()
    assert ipc == channels()


@pytest.mark.usefixtures("no_trip_wire")
def test_an_attack_that_is_none_is_seen_to_succeed(target: Target) -> None:
    harmless = ["open('mine.py').read()", "os.listdir('.')", "os.getpid()", "os.dup(1)", "time.sleep(0.001)", "import decimal"]
    assert set(tried(harmless, target).values()) == {"not refused"}


SHORT = ("the tables in main", "the built-ins of all frames", "a text with its own methods", "a finalizer")


@pytest.mark.parametrize("what", [pytest.param(name, marks=() if name in SHORT else pytest.mark.endurance) for name in POLICY])
def test_the_trip_wire_cannot_be_cut(what: str, target: Target) -> None:
    result = attacked(POLICY[what], target)
    assert SECRET not in repr(result)
    assert target.untouched()


@pytest.mark.endurance
@pytest.mark.parametrize("group", GROUPS)
def test_every_attack_ends_in_nothing_with_the_trip_wire_too(group: str, target: Target) -> None:
    for body in attacks(group):
        program = TRIES.replace("def main(given):", "def main(given):\n    given['bodies'] = [given['bodies']]")
        result = run_python({"mine.py": "x = 1"}, program, {**target.given, "bodies": body}, LIMITS)
        what = result.value[body] if isinstance(result.value, dict) else ""
        assert not what or absent(str(what)), (body, result)
    assert target.untouched()


@pytest.mark.endurance
def test_a_normal_user_is_as_safe() -> None:
    """The short form of these tests again, as nobody."""
    if not interpreter():
        pytest.skip("no setpriv, or no interpreter that another user can run; or not root")
    files = [str(Path(__file__).with_name(name)) for name in ("test_hostile.py", "test_sandbox.py")]
    words = ("-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not endurance")
    done = as_nobody("-m", "pytest", *words, *files, capture=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.parametrize("attack", FORGED)
def test_no_result_comes_of_forging_one(attack: str) -> None:
    result = forged(FORGED[attack])
    assert not result.ok and result.value is None and result.problem
    assert len(result.problem) <= 200 and result.problem.isprintable()
    json.dumps(result.problem).encode()


@pytest.mark.parametrize("attack", SLEEPS)
def test_sleeping_code_is_ended_soon(attack: str) -> None:
    limits = Limits(wall_seconds=60.0, idle_seconds=0.3)
    result = forged(SLEEPS[attack], limits)
    assert result.timed_out, result


def test_code_that_works_is_not_taken_for_sleeping() -> None:
    working = "import time\ndef answer(value):\n    while time.process_time() < 0.4: pass\n    return value"
    assert forged(working, Limits(idle_seconds=0.25)) == SandboxResult(True, 1)


def test_what_runs_at_the_same_time_does_not_meet() -> None:
    """Eight at once, each of which looks for the others' folders."""
    program = "import os\ndef main(value):\n    up = os.path.dirname(os.getcwd())\n    return [value, os.stat(up).st_nlink]"
    values: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda n=n: values.update({n: run_python({}, program, n, LIMITS).value})) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: value[0] for number, value in values.items()} == {number: number for number in range(8)}
    launching.launcher().close_spares()
    assert list(launching.launcher().folder.iterdir()) == []


def status_of(process: int) -> Mapping[str, str]:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.skipif(bool(os.environ.get(BACKEND_ENV)), reason="within bubblewrap processes have other numbers")
def test_the_kernel_says_that_the_guards_are_in_force() -> None:
    launcher = launching.launcher()._process.pid
    children = Path(f"/proc/{launcher}/task/{launcher}/children")
    program = "import time\ndef main(value): time.sleep(9)"
    with_thread = threading.Thread(target=run_python, args=({}, program, None, Limits(idle_seconds=0.3)))
    with_thread.start()
    seen: list[Mapping[str, str]] = []
    while with_thread.is_alive():
        for process in children.read_text().split():
            try:
                seen.append(status_of(int(process)))
            except OSError:
                continue
        with_thread.join(0.02)
    last = [status for status in seen if status.get("Seccomp") == "2"][-1]
    assert last["NoNewPrivs"] == "1" and last["Threads"] == "1"
    assert {int(last[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}


def channels() -> set[tuple[str, str]]:
    """Return the kind and the number of each System V channel of this user. Those of other users come and go."""
    owned = set[tuple[str, str]]()
    for kind, number in (("shm", "shmid"), ("msg", "msqid"), ("sem", "semid")):
        names, *rows = (line.split() for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines())
        uid, place = names.index("uid"), names.index(number)
        owned |= {(kind, row[place]) for row in rows if row[uid] == str(os.getuid())}
    return owned

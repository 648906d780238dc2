"""The launcher ends with whom it serves, its children end with it, and nothing stays behind."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from waiting import wait_until

import bench
from bench.run.sandbox import Limits, SandboxBroken, SandboxResult, launching, run_python
from bench.run.sandbox.cell import SandboxCell, keep_ready

WHO = "import os\ndef main(value): return os.getpid()"
SLEEPER = "import time\ndef main(value): time.sleep(600)"
LONG = Limits(wall_seconds=600, idle_seconds=600)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def children_of(process: int) -> list[int]:
    return [int(number) for number in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def serving(folder: Path) -> subprocess.Popen[bytes]:
    """A process of its own that runs a sleeper, with its temporary folder in `folder`."""
    path = str(Path(bench.__file__).parents[2])
    script = f"import sys; sys.path.insert(0, {path!r})\nfrom bench.run.sandbox import Limits, run_python\n"
    script += f"run_python({{}}, {SLEEPER!r}, None, Limits(wall_seconds=600, idle_seconds=600))"
    return subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "TMPDIR": str(folder)})


@LINUX
def test_nothing_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        wait_until(lambda: bool(children_of(process.pid) and children_of(children_of(process.pid)[0])))
        [launcher] = children_of(process.pid)
        started = children_of(launcher)
        process.kill()
        wait_until(lambda: is_gone(launcher) and all(map(is_gone, started)))
    assert list(tmp_path.iterdir()) == []


def in_a_thread(outcomes: list[object]) -> threading.Thread:
    def run() -> None:
        try:
            outcomes.append(run_python({}, SLEEPER, None, LONG))
        except SandboxBroken as error:
            outcomes.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@LINUX
def test_children_end_with_a_launcher_that_is_killed_and_the_next_run_has_another() -> None:
    outcomes: list[object] = []
    launcher = launching.launcher()._process.pid
    thread = in_a_thread(outcomes)
    wait_until(lambda: len(children_of(launcher)) > 1)  # the next one is started when the first is at work
    started = children_of(launcher)
    os.kill(launcher, signal.SIGKILL)
    thread.join()
    wait_until(lambda: all(map(is_gone, started)))
    assert str(outcomes[0]) == "the sandbox's launcher has ended"
    assert run_python({}, "def main(value): return value", 1) == SandboxResult(True, 1)
    assert launching.launcher()._process.pid != launcher


@LINUX
def test_a_launcher_that_has_ended_starts_nothing_and_keeps_nothing_ready() -> None:
    serving, limits = launching.launcher(), asdict(Limits())
    serving.close_spares()
    serving._process.kill()
    serving._process.wait()
    keep_ready(serving, limits, ())
    assert not serving.spares
    with pytest.raises(SandboxBroken, match="the sandbox's launcher has ended"):
        SandboxCell(serving, limits, ())


@LINUX
def test_an_interrupt_ends_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = launching.launcher()

    def interrupted(_: SandboxCell) -> bytes:
        wait_until(lambda: bool(children_of(launcher.process)))
        raise KeyboardInterrupt

    monkeypatch.setattr(SandboxCell, "wait_for_report", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_python({}, SLEEPER, None, LONG)
    launcher.close_spares()
    wait_until(lambda: not children_of(launcher.process))
    assert list(launcher.folder.iterdir()) == []


def test_nothing_is_left_behind() -> None:
    run_python({"one.py": "x = 1"}, "import one\ndef main(value): print(one.x)", None)
    launching.launcher().close_spares()
    assert list(launching.launcher().folder.iterdir()) == []


def abandoned(folder: Path, age: float = 2 * launching.MIN_ABANDONED_AGE_S) -> Path:
    (folder / "job").mkdir(parents=True)
    (folder / "job" / "x.py").write_text("x = 1")
    then = time.time() - age
    os.utime(folder, (then, then))
    return folder


def test_a_process_that_ends_removes_what_waited_without_a_warning() -> None:
    script = 'from bench.run.sandbox import run_python; run_python({}, "def main(x): return x", 1)'
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_that_nobody_holds_is_swept_and_nothing_else_is(tmp_path: Path) -> None:
    gone = abandoned(tmp_path / f"{launching.PREFIX}gone")
    abandoned(tmp_path / f"{launching.PREFIX}young", age=0)
    abandoned(tmp_path / "of-another-program")
    (tmp_path / f"{launching.PREFIX}link").symlink_to(abandoned(tmp_path / "elsewhere"))
    held = abandoned(tmp_path / f"{launching.PREFIX}held")
    holder = os.open(held, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    launching._remove_abandoned_folders(tmp_path)
    os.close(holder)
    assert not gone.exists()
    assert {path.name.removeprefix(launching.PREFIX) for path in tmp_path.iterdir()} == {
        *("young", "of-another-program", "link", "elsewhere", "held")
    }


def test_a_process_that_was_forked_off_has_a_launcher_of_its_own() -> None:
    ours = launching.launcher()._process.pid
    reading, writing = os.pipe()
    if (forked := os.fork()) == 0:
        try:
            run = run_python({}, "def main(value): return value", 2).value
            os.write(writing, f"{run} {launching.launcher()._process.pid}".encode())
            launching.launcher().close()
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(forked, 0)
    with os.fdopen(reading) as pipe:
        value, theirs = pipe.read().split()
    assert value == "2" and int(theirs) != ours
    assert run_python({}, "def main(value): return value", 3).value == 3


def test_a_launcher_that_does_not_start_is_our_failure_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(launching, "START_LAUNCHER", "raise SystemExit('no such thing')")
    with pytest.raises(SandboxBroken, match="the sandbox's launcher did not start: no such thing"):
        launching.Launcher()
    monkeypatch.setattr("sys.executable", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        launching.Launcher()
    assert list(tmp_path.iterdir()) == []


def waiting_children() -> list[int]:
    """What the launcher keeps ready, once there is any: it starts the next one after it has given a job away."""

    def waiting() -> list[int]:
        return [process for process in children_of(launching.launcher().process) if not is_gone(process)]

    wait_until(lambda: bool(waiting()))
    return waiting()


@LINUX
def test_one_interpreter_waits_for_the_next_job_and_each_serves_one() -> None:
    launching.launcher().close_spares()
    leaves = "import json, os\ndef main(value):\n    before = getattr(json, 'left', 0)\n    json.left = 1\n"
    leaves += "    return [os.getpid(), before]"
    seen = []
    for _ in range(3):
        value = run_python({}, leaves, None).value
        [waiting] = waiting_children()
        seen.append((value, waiting))
    assert [value[1] for value, _ in seen] == [0, 0, 0]
    assert [value[0] for value, _ in seen[1:]] == [waiting for _, waiting in seen[:-1]]
    assert len({value[0] for value, _ in seen}) == 3


@LINUX
def test_an_interpreter_waits_longer_than_its_job_may_take() -> None:
    limits = Limits(idle_seconds=0.3)
    run_python({}, WHO, None, limits)
    [waiting] = waiting_children()
    time.sleep(0.6)
    assert run_python({}, WHO, None, limits).value == waiting


@LINUX
def test_a_job_is_run_all_the_same_where_what_waited_for_it_has_ended() -> None:
    run_python({}, WHO, None)
    [waiting] = waiting_children()
    os.kill(waiting, signal.SIGKILL)
    value = run_python({}, WHO, None).value
    assert isinstance(value, int) and value != waiting


@LINUX
def test_what_waits_has_other_limits_than_a_job_that_asks_for_others() -> None:
    counts = "import resource\ndef main(value): return resource.getrlimit(resource.RLIMIT_NOFILE)[0]"
    assert [run_python({}, counts, None, Limits(open_files=many)).value for many in (20, 20, 30, 20)] == [20, 20, 30, 20]

"""Hostile answers: none reaches anything, none outlives its run, and none leaves anything behind."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bench.sandbox.parent
from bench.sandbox import Limits, SandboxResult, launching, run_python
from bench.scenario import Json
from tests.sandbox.attacks import GROUPS, OPENS, POLICY, PRELUDE, attacks

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="Linux on a known machine only"
)
SECRET = "the secret of the user"
LIMITS = Limits(cpu_seconds=5, open_files=64)
CAN_START = "import os, sys; sys.exit(not os.access(sys.executable, os.X_OK))"
LIBRARY = Path(os.__file__).resolve().parent

TRIES = f"""
{PRELUDE}
def main(given):
    space = dict(globals(), **given, folder=os.getcwd())
    return {{body: tried(body, space) for body in given["bodies"]}}

def tried(body, space):
    try:
        lines = body if "return " in body else body + "; return True"
        exec("def attack():\\n    " + lines, space)
        return "" if space["attack"]() is False else "not refused"
    except FileNotFoundError as error:
        return "nothing there: " + str(error.filename)
    except OSError as error:
        return "" if error.errno != errno.EMFILE else str(error)
    except (ImportError, RuntimeError, AttributeError) as error:
        return ""
    except Exception as error:
        names = ("SSLError", "error", "OperationalError", "ValueError", "URLError")
        return "" if type(error).__name__ in names else type(error).__name__ + ": " + str(error)
"""


@dataclass(frozen=True)
class Target:
    """What there is to be reached."""

    secret: Path
    victim: subprocess.Popen[bytes]
    given: dict[str, Json]

    def untouched(self) -> bool:
        process = self.victim.pid
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return (
            self.secret.read_text() == SECRET
            and list(self.secret.parent.iterdir()) == [self.secret]
            and self.victim.poll() is None
            and state != "T"
            and os.getpriority(os.PRIO_PROCESS, os.getpid()) == os.getpriority(os.PRIO_PROCESS, process)
            and os.sched_getaffinity(0) == os.sched_getaffinity(process)
        )


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    secret = tmp_path_factory.mktemp("home") / "secret.txt"
    secret.write_text(SECRET)
    secret.parent.chmod(0o755)
    name = f"bench-test-{os.getpid()}"
    with (
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as victim,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind(f"\0{name}")
        abstract.listen()
        module = next(iter((LIBRARY / "lib-dynload").glob("_ctypes.*")), LIBRARY / "none")
        yield Target(
            secret,
            victim,
            {
                "secret": str(secret),
                "installed": str(next((LIBRARY / "site-packages").rglob("*.py"), secret)),
                "library": str(LIBRARY),
                "victim": victim.pid,
                "parent": os.getpid(),
                "launcher": launching.launcher()._process.pid,
                "port": server.getsockname()[1],
                "name": name,
                "ctypes_module": str(module),
            },
        )
        victim.kill()


@pytest.fixture
def no_trip_wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's guards alone, as for code that had stepped over the audit hook."""
    code = bench.sandbox.parent.CHILD.read_text()
    assert code.count("sys.addaudithook(") == 1
    changed = tmp_path / "child.py"
    changed.write_text(code.replace("sys.addaudithook(", "("))
    monkeypatch.setattr(bench.sandbox.parent, "CHILD", changed)


def tried(bodies: list[str], target: Target) -> dict[str, str]:
    """What became of each that was not refused. A file that is not there on this machine refuses nothing, and is left out."""
    result = run_python({"mine.py": "x = 1"}, TRIES, {**target.given, "bodies": list[Json](bodies)}, LIMITS)
    assert isinstance(result.value, dict), result.problem
    return {body: str(what) for body, what in result.value.items() if what and not absent(str(what))}


def absent(what: str) -> bool:
    found, _, name = what.partition("nothing there: ")
    return not found and bool(name) and not os.path.lexists(name)


@pytest.mark.usefixtures("no_trip_wire")
@pytest.mark.parametrize("group", GROUPS)
def test_the_kernel_alone_refuses_every_attack(group: str, target: Target) -> None:
    ipc = [Path(f"/proc/sysvipc/{kind}").read_text() for kind in ("shm", "msg", "sem")]
    assert tried(attacks(group), target) == {}
    assert target.untouched()
    assert ipc == [Path(f"/proc/sysvipc/{kind}").read_text() for kind in ("shm", "msg", "sem")]


@pytest.mark.usefixtures("no_trip_wire")
def test_an_attack_that_is_none_is_seen_to_succeed(target: Target) -> None:
    harmless = ["open('mine.py').read()", "os.listdir('.')", "os.getpid()", "os.dup(1)", "time.sleep(0.001)", "import decimal"]
    assert set(tried(harmless, target).values()) == {"not refused"}


def attacked(attack: str, target: Target) -> SandboxResult:
    body = "\n".join(f"    {line}" for line in attack.splitlines())
    return run_python({"mine.py": "x = 1"}, f"def main(given):\n{body}\n{OPENS}", target.given, LIMITS)


SHORT = ("the tables in main", "the built-ins of all frames", "a text with its own methods", "a finalizer")


@pytest.mark.parametrize("what", [pytest.param(one, marks=() if one in SHORT else pytest.mark.endurance) for one in POLICY])
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
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_normal_user_is_as_safe() -> None:
    """The short form of these tests again, as nobody, with the system's interpreter where ours is root's own."""
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    interpreters = [os.path.realpath(sys.executable), shutil.which(version, path="/usr/local/bin:/usr/bin") or "none"]
    runs = (one for one in interpreters if shutil.which("setpriv") and ends_well([*become, one, "-c", CAN_START]))
    if not (interpreter := next(runs, "")):
        pytest.skip("no setpriv, or no interpreter that another user can run")
    (home := Path(tempfile.mkdtemp(dir="/tmp"))).chmod(0o777)
    path = os.pathsep.join(["tests", ".", *(one for one in sys.path if one.endswith("-packages"))])
    env = {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path, "PATH": os.defpath}
    command = [*become, interpreter, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not endurance"]
    files = [str(Path(__file__).with_name(name)) for name in ("test_hostile.py", "test_sandbox.py")]
    root = Path(__file__).parents[2]
    done = subprocess.run([*command, *files], check=False, capture_output=True, text=True, env=env, cwd=root)
    shutil.rmtree(home)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def ends_well(command: list[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True, env={}).returncode == 0


def forged(attack: str, limits: Limits = LIMITS) -> SandboxResult:
    return run_python({"mine.py": attack}, "import mine\ndef main(value): return mine.answer(value)", 1, limits)


@pytest.mark.parametrize(
    "attack",
    [
        "import os\nos._exit(0)",
        "raise SystemExit(0)",
        "raise KeyboardInterrupt",
        "import atexit, sys\natexit.register(print, '{\"value\": 1}')\nsys.exit(0)",
        "print('{\"value\": 1}')\nraise SystemExit",
        "import os\nos.write(1, b'{\"value\": 1}')\nos._exit(0)",
        "import os\nos.write(4, b'started')",
        "import os\nos.closerange(0, 100)\nraise SystemExit",
        "import os\nos.abort()",
        "import os\nos.write(3, b'{\"value\": 1')\nos._exit(0)",
        "import os\nos.write(3, b'{\"value\": NaN')\nos._exit(0)",
        "import os\nos.write(3, b'[' * 100000)\nos._exit(0)",
        "def answer(value): return {value: answer}",
        "def answer(value): return float",
        "def answer(value):\n    x = []\n    x.append(x)\n    return x",
        "def answer(value): raise Exception('\\ud800' + '\\x1b]52;c;\\a' * 1000)",
        "class E(Exception):\n    def __str__(self): raise E\nraise E",
        "import json\njson.dumps = None\ndef answer(value): return 1",
    ],
)
def test_no_result_comes_of_forging_one(attack: str) -> None:
    result = forged(attack)
    assert not result.ok and result.value is None and result.problem
    assert len(result.problem) <= 200 and result.problem.isprintable()
    json.dumps(result.problem).encode()


@pytest.mark.parametrize(
    "attack",
    [
        "import time\nwhile True: time.sleep(0.01)",
        "import os\nos.read(os.pipe()[0], 1)",
        "import select\nselect.select([], [], [])",
        "import signal, time\nfor n in range(1, 30):\n    if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\ntime.sleep(9)",
    ],
)
def test_sleeping_code_is_ended_soon(attack: str) -> None:
    limits = Limits(wall_seconds=60.0, idle_seconds=0.3)
    result = forged(attack, limits)
    assert result.timed_out, result


def test_code_that_works_is_not_taken_for_sleeping() -> None:
    working = "import time\ndef answer(value):\n    while time.process_time() < 0.4: pass\n    return value"
    assert forged(working, Limits(idle_seconds=0.25)) == SandboxResult(True, 1)


def test_what_runs_at_the_same_time_does_not_meet() -> None:
    """Eight at once, each of which looks for the others' folders."""
    program = "import os\ndef main(value):\n    up = os.path.dirname(os.getcwd())\n    return [value, os.stat(up).st_nlink]"
    found: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: run_python({}, program, n, LIMITS).value})) for n in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert {number: value[0] for number, value in found.items()} == {number: number for number in range(8)}
    assert list(Path(launching.launcher().folder).iterdir()) == []


def status_of(process: int) -> Mapping[str, str]:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


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
    last = [one for one in seen if one.get("Seccomp") == "2"][-1]
    assert last["NoNewPrivs"] == "1" and last["Threads"] == "1"
    assert {int(last[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}

"""Lets hostile code try things, on targets of its own, and says what it was not refused."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from reliability.attacks import PRELUDE
from reliability.policy import OPENS

from bench.run.sandbox import Limits, SandboxResult, launching, run_python
from bench.run.sandbox.bubblewrap import backend
from bench.scenario import Json

SECRET = "the secret of the user"
LIMITS = Limits(cpu_seconds=5, open_files=64, idle_seconds=0.5)
LIBRARY = Path(os.__file__).resolve().parent
FILES = {"mine.py": "x = 1"}

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


@dataclass
class Target:
    """What there is to be reached: all of it is there to be reached, and nobody else's.

    sacrificed   in the place of a file of the library, of the parent and of the launcher stand a file of the sandbox's own and
                 the victim: so that an attack that is not refused harms nobody
    """

    folder: Path
    given: dict[str, Json]
    sacrificed: bool
    victim: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.secret = self.folder / "home" / "secret.txt"
        self.restore()

    def restore(self) -> None:
        """Put everything back that an attack has reached."""
        for folder in (self.secret.parent, Path(str(self.given["outside"]))):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o755)
        self.secret.write_text(SECRET)
        with suppress(FileNotFoundError):
            Path(str(self.given["shared"])).unlink()
        if hasattr(self, "victim"):
            self.end()
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
        )
        pids = dict.fromkeys(("victim", "parent", "launcher"), self.victim.pid)
        if not self.sacrificed:
            pids |= {"parent": os.getpid(), "launcher": launching.launcher().process}
        self.given |= {"secret": str(self.secret), **pids}

    def end(self) -> None:
        self.victim.kill()
        self.victim.communicate()

    def untouched(self) -> bool:
        process = self.victim.pid
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return (
            list(self.secret.parent.iterdir()) == [self.secret]
            and self.secret.read_text() == SECRET
            and not Path(str(self.given["shared"])).exists()
            and list(Path(str(self.given["outside"])).iterdir()) == []
            and self.victim.poll() is None
            and state not in ("T", "Z")
            and os.getpriority(os.PRIO_PROCESS, os.getpid()) == os.getpriority(os.PRIO_PROCESS, process)
            and os.sched_getaffinity(0) == os.sched_getaffinity(process)
        )


@contextmanager
def targets(sacrificed: bool = False) -> Iterator[Target]:
    """Yield a target for attacks: a secret, a process, a port and a socket."""
    name = f"bench-test-{os.getpid()}"
    with ExitStack() as leaving:
        folder = Path(leaving.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        server = leaving.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = leaving.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{name}")
        abstract.listen()
        threading.Thread(target=_answer, args=(server,), daemon=True).start()
        given: dict[str, Json] = {
            "installed": str(next((LIBRARY / "site-packages").rglob("*.py"), folder / "home" / "secret.txt")),
            "library": str(LIBRARY),
            "module": "mine.py" if sacrificed else os.__file__,
            "outside": str(folder / "outside"),
            "shared": f"/dev/shm/{name}",
            "port": server.getsockname()[1],
            "name": name,
            "ctypes_module": str(next(iter((LIBRARY / "lib-dynload").glob("_ctypes.*")), LIBRARY / "none")),
        }
        target = Target(folder, given, sacrificed)
        leaving.callback(target.end)
        leaving.callback(server.shutdown, socket.SHUT_RDWR)
        yield target


def _answer(server: socket.socket) -> None:
    """Answer whoever connects, so that an attack that is not refused is seen to succeed."""
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.0 204 none\r\n\r\n")


def tried(bodies: Sequence[str], target: Target) -> dict[str, str]:
    """What became of each that was not refused. A file that is not there on this machine refuses nothing, and is left out."""
    result = run_python(FILES, TRIES, {**target.given, "bodies": list[Json](bodies)}, LIMITS)
    assert isinstance(result.value, dict), result.problem
    return {body: str(what) for body, what in result.value.items() if what and not absent(str(what))}


def absent(what: str) -> bool:
    """Whether it says that a file is not there: on this machine, or in a wall that shows few of its files."""
    before, _, name = what.partition("nothing there: ")
    return not before and bool(name) and (bool(backend()) or not os.path.lexists(name))


def attacked(attack: str, target: Target) -> SandboxResult:
    """Open the secret, once this was tried against the trip-wire."""
    body = "\n".join(f"    {line}" for line in attack.splitlines())
    return run_python(FILES, f"def main(given):\n{body}\n{OPENS}", target.given, LIMITS)


def forged(attack: str, limits: Limits = LIMITS) -> SandboxResult:
    """Ask code for an answer."""
    return run_python({"mine.py": attack}, "import mine\ndef main(value): return mine.answer(value)", 1, limits)

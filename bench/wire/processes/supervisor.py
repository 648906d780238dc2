"""A program between the driver and an agent's processes. It makes sure that no process is left behind:

    supervisor.py STATUS CONTROL LARGEST PROGRAM WORD...

It starts the command as the leader of a new session. It writes `started PID` to the file STATUS, then `exit CODE` or `signal
NUMBER` once the command has ended, or `failed ERROR` if the command never started. The command is killed when CONTROL ends,
because the driver closed it or died. At the end all that the command started is killed, also processes that left its session:
orphans become children of this process (Linux). LARGEST is the largest file that the command can write, in bytes.

It imports little, and only from the standard library: it starts once for each life of an agent.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

LINUX = sys.platform == "linux"
SET_SUBREAPER, SET_DEATH_SIGNAL = 36, 1


def main() -> None:
    status, control, largest = map(int, sys.argv[1:4])
    for opened in (status, control):
        os.set_inheritable(opened, False)
    _prctl(SET_SUBREAPER, 1)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    why, failed = os.pipe()
    child = os.fork()
    if not child:
        _become(sys.argv[4:], largest, failed)
    for opened in (0, 1, failed):  # stdin and stdout are the command's alone: their other ends see when it closes them
        os.close(opened)
    os.write(status, b"started %d\n" % child)
    number = os.read(why, 20)  # nothing if exec worked: nobody reads what the command writes here
    os.close(why)
    ended = _wait(child, control, woken)
    _kill_rest(child)
    os.write(status, b"failed %s\n" % number if number else ended.encode())


def _become(words: list[str], largest: int, failed: int) -> None:
    try:
        os.setsid()
        _prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.execv(words[0], words)
    except OSError as error:
        os.write(failed, b"%d" % (error.errno or 0))
    finally:
        os._exit(1)


def _wait(child: int, control: int, woken: int) -> str:
    """Wait until the command has ended, and kill it if CONTROL ends. Return how it ended."""
    watched = [control, woken]
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return f"exit {code}\n" if code >= 0 else f"signal {-code}\n"
        ready = select.select(watched, [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
        if control in ready:
            watched.remove(control)
            os.killpg(child, signal.SIGKILL)


def _kill_rest(group: int) -> None:
    """Kill all that the command left: its session, and on Linux every orphan."""
    while True:
        for kill, whom in ((os.killpg, group), *((os.kill, pid) for pid in _children())):
            with suppress(OSError):
                kill(whom, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.001)  # orphans come one by one, as their parents die
        except ChildProcessError:
            return


def _children() -> list[int]:
    process = os.getpid()
    listed = os.listdir("/proc") if LINUX else []  # noqa: PTH208  as below
    return [int(name) for name in listed if name.isdecimal() and _parent(name) == process]


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123  noqa: PTH123  pathlib takes longer than all the rest
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()

"""A program between the driver and an agent's processes. It makes sure that no process is left behind:

    supervisor.py STATUS CONTROL LARGEST BOX PROGRAM WORD...

It starts the command as the leader of a new session. It writes `started PID` to the file STATUS, then `exit CODE` or `signal
NUMBER` once the command has ended, or `failed ERROR` if the command never started. The command is killed when CONTROL ends,
because the driver closed it or died. At the end all that the command started is killed, also processes that left its session:
orphans become children of this process (Linux). LARGEST is the largest file that the command can write, in bytes.

BOX is "", or the numbers of open files of namespaces, in the order in which they are entered. Then the command gets a list of
processes of its own, whose first process ends with this one, and all others with it.

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
SET_SUBREAPER, SET_DEATH_SIGNAL, DROP_RIGHT = 36, 1, 24
NEW_MOUNTS, NEW_PROCESSES = 0x00020000, 0x20000000
PROC_FLAGS, MAKE_READ_ONLY = 2 | 4 | 8, 1 | 32 | 4096
"""No set-user-id, no devices, no programs; and to make a mount read-only that is there."""
RIGHTS, FILE_RIGHTS = 64, frozenset(range(8))
"""How many capabilities there can be, and those of root on files, users and groups."""


def main() -> None:
    """Start the command, wait for its exit, and kill every process that it left."""
    status, control, largest = map(int, sys.argv[1:4])
    namespaces = [int(number) for number in sys.argv[4].split(",") if number]
    for opened in (status, control):
        os.set_inheritable(opened, False)
    _prctl(SET_SUBREAPER, 1)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        init = _enter(namespaces) if namespaces else 0
    except OSError as error:
        os.write(status, b"failed %d\n" % (error.errno or 0))
        return
    why, failed = os.pipe()
    child = os.fork()
    if not child:
        _become(sys.argv[5:], largest, failed, in_box=bool(init))
    for opened in (0, 1, failed):  # stdin and stdout are the command's alone: their other ends see when it closes them
        os.close(opened)
    os.write(status, b"started %d\n" % child)
    number = os.read(why, 20)  # nothing if exec worked: nobody reads what the command writes here
    os.close(why)
    ended = _wait(child, control, woken, init)
    if init:
        _kill_box(init)
    else:
        _kill_rest(child)
    os.write(status, b"failed %s\n" % number if number else ended.encode())


def _enter(namespaces: list[int]) -> int:
    """Enter a box, and return the id of the first process in it, whose end kills all others in the box. Raises OSError."""
    folder, libc, last = os.getcwd(), ctypes.CDLL(None, use_errno=True), b"%d" % os.getpid()  # noqa: PTH109  as below
    for namespace in namespaces:
        _check(libc.setns(namespace, 0))
        os.close(namespace)
    _check(libc.unshare(NEW_MOUNTS | NEW_PROCESSES))
    os.chdir(folder)
    ready, tell = os.pipe()
    if init := os.fork():
        os.close(tell)
        number = int(os.read(ready, 20) or b"1")
        os.close(ready)
        if number:
            raise OSError(number, os.strerror(number))
        return init
    try:
        _prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries orphans then
        failed = libc.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(PROC_FLAGS), None)
        with suppress(OSError):  # a number of its own: a lock with the number of a dead life is not that of the next
            file = os.open("/proc/sys/kernel/ns_last_pid", os.O_WRONLY)
            os.write(file, last)
            os.close(file)
        if not os.geteuid():  # root could set what holds for the whole machine
            failed = failed or libc.mount(None, b"/proc", None, ctypes.c_ulong(PROC_FLAGS | MAKE_READ_ONLY), None)
        os.write(tell, b"%d" % (ctypes.get_errno() if failed else 0))
        os.closerange(0, 2**20)
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _check(done: int) -> None:
    """Raise OSError if a call of the C library failed."""
    if done:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _become(words: list[str], largest: int, failed: int, *, in_box: bool) -> None:
    """Replace this process by the command, with its limits and rights."""
    try:
        os.setsid()
        _prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for right in range(RIGHTS if in_box else 0):
            if os.geteuid() or right not in FILE_RIGHTS:  # none that could undo the box
                _prctl(DROP_RIGHT, right)
        os.execv(words[0], words)
    except OSError as error:
        os.write(failed, b"%d" % (error.errno or 0))
    finally:
        os._exit(1)


def _wait(child: int, control: int, woken: int, init: int) -> str:
    """Wait until the command has exited, and kill it if CONTROL ends. Return its status line."""
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
            if init:
                os.kill(init, signal.SIGKILL)
            else:
                os.killpg(child, signal.SIGKILL)


def _kill_box(init: int) -> None:
    """Kill the first process of a box, and wait until all processes in it have exited."""
    os.kill(init, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _kill_rest(group: int) -> None:
    """Kill the processes that the command left: its session, and on Linux every orphan."""
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
    """Return the ids of this process's children (Linux only)."""
    process = os.getpid()
    listed = os.listdir("/proc") if LINUX else []  # noqa: PTH208  as below
    return [int(name) for name in listed if name.isdecimal() and _parent(name) == process]


def _parent(pid: str) -> int:
    """Return the id of a process's parent; 0 if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123  noqa: PTH123  pathlib takes longer than all the rest
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _prctl(option: int, value: int) -> None:
    """Call prctl on Linux."""
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()

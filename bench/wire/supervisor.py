"""A program between the driver and an agent's processes. It makes sure that no process is left behind:

    supervisor.py STATUS CONTROL LARGEST BOX PROGRAM WORD...

It starts the command as the leader of a new session. It writes `started PID` to the file STATUS, then `exit CODE` or `signal
NUMBER` once the command has ended, or `failed ERROR` if the command never started. Before `exit CODE` it writes `left WORDS`
for each process that still runs `LEAVING_S` after the command. The command is killed when CONTROL ends,
because the driver closed it or died. At the end all that the command started is killed, also processes that left its session:
orphans become children of this process (Linux). LARGEST is the largest file that the command can write, in bytes.

BOX is "", or the numbers of open files of namespaces, in the order in which they are entered. Then the command gets a process
namespace of its own. Its first process ends with this one, and all others with the first.

It imports little, and only from the standard library, since it starts once for each process of an agent.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

IS_LINUX = sys.platform == "linux"
SET_SUBREAPER, SET_DEATH_SIGNAL, DROP_CAPABILITY = 36, 1, 24
"""Options of prctl."""
NEW_MOUNTS, NEW_PROCESSES = 0x00020000, 0x20000000
"""Flags of unshare: a mount namespace of its own, and a process namespace for its children."""
PROC_FLAGS, MAKE_READ_ONLY = 2 | 4 | 8, 1 | 32 | 4096
"""Flags of mount: no set-user-id, no devices, no programs; and an existing mount becomes read-only."""
LEAVING_S, MAX_LEFT, MAX_LEFT_BYTES = 0.3, 5, 500
"""Seconds in which the processes that the command started can end after it, and the most that are named, with their words."""
CAPABILITY_COUNT, FILE_CAPABILITIES = 64, frozenset(range(8))
"""The number of capabilities that a kernel can have, and root's capabilities on files, users and groups."""


def main() -> None:
    """Start the command, wait for its exit, and kill every process that it left."""
    status, control, largest = map(int, sys.argv[1:4])
    namespaces = [int(descriptor) for descriptor in sys.argv[4].split(",") if descriptor]
    for opened in (status, control):
        os.set_inheritable(opened, False)
    _prctl(SET_SUBREAPER, 1)
    wake_out, wake_in = os.pipe()
    os.set_blocking(wake_in, False)
    signal.set_wakeup_fd(wake_in)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        init = _enter_box(namespaces) if namespaces else 0
    except OSError as error:
        os.write(status, b"failed %d\n" % (error.errno or 0))
        return
    error_out, error_in = os.pipe()
    child = os.fork()
    if not child:
        _execute(sys.argv[5:], largest, error_in, in_box=bool(init))
    for opened in (0, 1, error_in):  # only the command has stdin and stdout, so that closing them shows at their other ends
        os.close(opened)
    os.write(status, b"started %d\n" % child)
    error_number = os.read(error_out, 20)  # b"" if exec worked: the pipe is then closed
    os.close(error_out)
    status_line = _wait_for_command(child, control, wake_out, init)
    if status_line.startswith("exit") and not error_number:
        for words in _left_running(control, init):
            os.write(status, b"left %s\n" % words)
    if init:
        _kill_box(init)
    else:
        _kill_rest(child)
    os.write(status, b"failed %s\n" % error_number if error_number else status_line.encode())


def _enter_box(namespaces: list[int]) -> int:
    """Enter a box, and return the id of the first process in it, whose end kills all others in the box. Raises OSError."""
    folder, libc, last_pid = os.getcwd(), ctypes.CDLL(None, use_errno=True), b"%d" % os.getpid()  # noqa: PTH109  as below
    for namespace in namespaces:
        _raise_on_failure(libc.setns(namespace, 0))
        os.close(namespace)
    _raise_on_failure(libc.unshare(NEW_MOUNTS | NEW_PROCESSES))
    os.chdir(folder)
    error_out, error_in = os.pipe()
    if init := os.fork():
        os.close(error_in)
        error_number = int(os.read(error_out, 20) or b"1")
        os.close(error_out)
        if error_number:
            raise OSError(error_number, os.strerror(error_number))
        return init
    try:
        _prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries orphans then
        failed = libc.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(PROC_FLAGS), None)
        with suppress(OSError):  # ids go on after this process's: no two processes of an agent have the same id
            file = os.open("/proc/sys/kernel/ns_last_pid", os.O_WRONLY)
            os.write(file, last_pid)
            os.close(file)
        if not os.geteuid():  # through /proc root could change settings of the whole machine
            failed = failed or libc.mount(None, b"/proc", None, ctypes.c_ulong(PROC_FLAGS | MAKE_READ_ONLY), None)
        os.write(error_in, b"%d" % (ctypes.get_errno() if failed else 0))
        os.closerange(0, 2**20)
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _raise_on_failure(result: int) -> None:
    """Raise OSError with the C library's error number if `result` is not 0."""
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _execute(words: list[str], largest: int, error_in: int, *, in_box: bool) -> None:
    """Replace this process by the command, after setting its limits and capabilities. If this fails, write the error number to
    `error_in`."""
    try:
        os.setsid()
        _prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for capability in range(CAPABILITY_COUNT if in_box else 0):
            if os.geteuid() or capability not in FILE_CAPABILITIES:  # root keeps no capability that could undo the box
                _prctl(DROP_CAPABILITY, capability)
        os.execv(words[0], words)
    except OSError as error:
        os.write(error_in, b"%d" % (error.errno or 0))
    finally:
        os._exit(1)


def _wait_for_command(child: int, control: int, wake_out: int, init: int) -> str:
    """Wait until the command has exited, and kill it if CONTROL ends. Return its status line: `exit CODE` or `signal
    NUMBER`."""
    watched = [control, wake_out]
    while True:
        exited_pid, status = os.waitpid(child, os.WNOHANG)
        if exited_pid:
            code = os.waitstatus_to_exitcode(status)
            return f"exit {code}\n" if code >= 0 else f"signal {-code}\n"
        ready = select.select(watched, [], [])[0]
        if wake_out in ready:
            os.read(wake_out, 4096)
        if control in ready:
            watched.remove(control)
            if init:
                os.kill(init, signal.SIGKILL)
            else:
                os.killpg(child, signal.SIGKILL)


def _left_running(control: int, init: int) -> list[bytes]:
    """Return the words of the processes that still run some time after the command: all others in the box, or the orphans
    (Linux only). Return none if CONTROL ends."""
    deadline = time.monotonic() + LEAVING_S
    while True:
        listed = os.listdir("/proc") if init else map(str, _children())  # noqa: PTH208  as below
        words = [_words_of(pid) for pid in listed if pid.isdecimal() and pid != "1"]
        left = [line for line in words if line][:MAX_LEFT]
        if not left or time.monotonic() > deadline:
            return left
        if select.select([control], [], [], 0.01)[0]:
            return []


def _words_of(pid: str) -> bytes:
    """Return the beginning of the command of a process; b"" if the process is gone or has none."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123  as below
            words = file.read(MAX_LEFT_BYTES).rstrip(b"\0").replace(b"\0", b" ")
    except OSError:
        return b""
    return words.decode("ascii", "replace").encode("ascii", "replace").replace(b"\n", b" ")


def _kill_box(init: int) -> None:
    """Kill the first process of a box, and wait until all processes in it have exited."""
    os.kill(init, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _kill_rest(group: int) -> None:
    """Kill the processes that the command left: its session, and on Linux every orphan."""
    while True:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
        for pid in _children():
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.001)  # orphans come one by one, as their parents die
        except ChildProcessError:
            return


def _children() -> list[int]:
    """Return the ids of this process's children (Linux only)."""
    process = os.getpid()
    listed = os.listdir("/proc") if IS_LINUX else []  # noqa: PTH208  as below
    return [int(name) for name in listed if name.isdecimal() and _parent(name) == process]


def _parent(pid: str) -> int:
    """Return the id of a process's parent; 0 if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123  pathlib takes longer than all the rest
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _prctl(option: int, value: int) -> None:
    """Call prctl, on Linux only."""
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()

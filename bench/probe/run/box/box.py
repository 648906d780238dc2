"""The box from the side of the probe: a sandbox in which the agent runs. This module decides what a box contains, opens a box,
and gives the probe its networks, files and stores."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from os.path import normpath
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from bench.common.errors import ConfigError, one_line
from bench.common.paths import PACKAGE
from bench.probe.run.box.frameworks import FileForm
from bench.probe.run.box.inside import BoxPlan, NetworkName
from bench.probe.run.box.loading import LOADERS, loader_of
from bench.probe.run.box.loopback import SocketPlace
from bench.probe.run.box.written import WrittenFile

if TYPE_CHECKING:
    from bench.probe.run.witness.path_store import PathStore

HIDDEN_FOLDERS = ("/tmp", "/var/tmp", "/run", "/dev/shm")
"""Folders that are new and empty in each run of the agent."""
HIDDEN_FOLDER_VARIABLES = ("XDG_RUNTIME_DIR", "TMPDIR")
"""Variables that name further hidden folders."""
RESOLV_CONF, HOSTS_FILE = Path("/etc/resolv.conf"), Path("/etc/hosts")
"""The files that configure the lookup of host names, which the box replaces."""
CLOSE_TIMEOUT_S = 5.0
"""Seconds in which the program that holds a box must end, before it is killed."""
MAX_SOCKETS_PER_MESSAGE, SPARE_SOCKETS = 200, 16
"""The most sockets that are passed in one message, of which the kernel accepts 253, and the number of unconnected sockets that
are opened at a time, in reserve."""
CONTAINER_CLIENTS = frozenset(("docker", "podman", "nerdctl"))
"""Programs that send a command to a server, which starts it outside of any box."""
UNBOXED_ADVICE = "or give --unboxed: then copies are handed over by path, and what your agent opens by its own path is real"
_KERNEL_SETTINGS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)
"""Settings of the kernel that can forbid a box, each with the value that forbids it and the value that allows it."""


class NoBox(ConfigError):
    """This machine cannot make a box."""


class Box:
    """A box, from its opening until it is closed. Its methods block, and may be called from any thread.

    Args:
        plan: What the box contains.
    """

    def __init__(self, plan: BoxPlan) -> None:
        self._plan, self._lock, self._sockets_lock, self._callers_lock = plan, Lock(), Lock(), Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._files = list[int]()
        self._networks = dict[NetworkName, int]()
        """The open files of the namespaces of its two networks."""
        self._channel: socket.socket | None = None
        self._unconnected_sockets = dict[tuple[NetworkName, bool], list[socket.socket]]()

    def open(self) -> None:
        """Open the box.

        Raises:
            NoBox: The machine cannot make one. The line says what is missing, and how to allow it.
        """
        if sys.platform != "linux":
            raise NoBox(f"the agent's box needs Linux; {UNBOXED_ADVICE}")
        self._channel, theirs = socket.socketpair()
        words = [sys.executable, "-I", "-m", "bench.probe.run.box.inside", str(theirs.fileno())]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        with theirs:
            self._process = subprocess.Popen(
                words, stdin=pipe, stdout=pipe, stderr=nothing, cwd="/", start_new_session=True, pass_fds=[theirs.fileno()]
            )
        try:
            self._send(self._plan)
            self._ask("begin")
            # the process is in new namespaces now; only its parent can map users there, without whom it could not mount
            for name, text in _id_maps():
                Path(f"/proc/{self._process.pid}/{name}").write_text(text, encoding="ascii")
            number = self._ask("build")
            self._files = [os.open(self._proc_path(f"ns/{kind}"), os.O_RDONLY) for kind in ("user", "ipc")]
            self._files.append(os.open(self._proc_path(f"fd/{number}"), os.O_RDONLY))
            for side, network in self._ask("networks").items():
                self._networks[side] = os.open(self._proc_path(f"fd/{network}"), os.O_RDONLY)
        except OSError as error:
            self.close()
            raise NoBox(f"the agent cannot be put into a box: {why_not(error)}; {UNBOXED_ADVICE}") from error
        except BaseException:
            self.close()
            raise

    @property
    def namespaces(self) -> Sequence[int]:
        """Open files of the namespaces for the agent and its MCP servers, in the order of entering."""
        return *self._files, self._networks["agent"]

    @property
    def loaders_namespaces(self) -> Sequence[int]:
        """Open files of the namespaces for loading a server before the runs: the network is the machine's."""
        return tuple(self._files)

    @property
    def servers_namespaces(self) -> Sequence[int]:
        """Open files of the namespaces for the services that the probe starts, and for the owner's checks: they have another
        network."""
        return *self._files, self._networks["servers"]

    def sockets(self, side: NetworkName, places: Sequence[SocketPlace]) -> list[socket.socket]:
        """Return open sockets in one of the box's networks, in the order of their places. Raises ConfigError."""
        numbers = list[int]()
        with _as_config_error("the network of the agent's box cannot be used"), self._sockets_lock:
            for start in range(0, len(places), MAX_SOCKETS_PER_MESSAGE):
                batch = places[start : start + MAX_SOCKETS_PER_MESSAGE]
                self._ask("open_sockets", side, batch)
                assert self._channel
                numbers += socket.recv_fds(self._channel, 1, len(batch))[1]
        return [socket.socket(fileno=number) for number in numbers]

    def connect(self, side: NetworkName, host: str, port: int, seconds: float) -> socket.socket:
        """Return a connection to a server in one of the box's networks. A host name means the loopback addresses. Raises
        OSError."""
        address = host if ":" in host or host.replace(".", "").isdecimal() else "127.0.0.1"
        try:
            return self._connect_to(side, address, port, seconds)
        except ConnectionRefusedError:
            if address != "127.0.0.1":
                raise
            return self._connect_to(side, "::1", port, seconds)

    def _connect_to(self, side: NetworkName, address: str, port: int, seconds: float) -> socket.socket:
        """Return a connection to an address in one of the box's networks."""
        with self._callers_lock:
            callers = self._unconnected_sockets.setdefault((side, ":" in address), [])
            if not callers:
                # open several, since a request can wait while the program that holds the box reads a store
                callers += self.sockets(side, [("caller", address, 0)] * SPARE_SOCKETS)
            connecting = callers.pop()
        try:
            connecting.settimeout(seconds)
            connecting.connect((address, port))
        except OSError:
            connecting.close()
            raise
        return connecting

    def take_store(self, store: PathStore) -> None:
        """Move a store into the box: its methods now run there. The store's first state has been made."""
        store.run_in_box(self, self._ask("take_store", store))

    def store_method(self, store: int, name: str) -> Callable[..., Any]:
        """Return a function that calls a method of a store in the box. The method `snapshot` returns a function that completes
        the reading."""

        def call(*arguments: object) -> Any:
            result = self._ask("call", store, name, *arguments)
            return partial(self._ask, "end", result) if name == "snapshot" else result

        return call

    def reset_files(self) -> None:
        """Reset all files in the box except the stores. No process may run in the box. Raises ConfigError."""
        with _as_config_error("the agent's box cannot be made anew"):
            number = self._ask("reset_files")
            os.close(self._files.pop())
            self._files.append(os.open(self._proc_path(f"fd/{number}"), os.O_RDONLY))

    def write(self, path: Path, content: bytes) -> None:
        """Write the agent's copy of a config at the path of the owner's config. Raises ConfigError."""
        with _as_config_error(f"{path}: its copy cannot be written in the box"):
            self._ask("write", path, content)

    def paths_written(self) -> dict[str, str]:
        """Return the paths outside the stores that were written or removed since `reset_files`, each with the framework that
        keeps the agent's memory there; "" if no known framework does."""
        paths: dict[str, str] = self._ask("paths_written")
        return paths

    def files_written(self) -> list[WrittenFile]:
        """Return the files outside the stores that were written or removed since `reset_files`, with their digests before
        and after."""
        files: list[WrittenFile] = self._ask("files_written")
        return files

    def form(self, path: Path) -> FileForm:
        """Return whether a file in the box is a database, and which framework keeps the agent's memory in it."""
        form: FileForm = self._ask("form", path)
        return form

    def reset_memory(self) -> None:
        """Reset the files in which frameworks keep the agent's memory. No process may run in the box."""
        with _as_config_error("what the agent knows cannot be taken from it"):
            self._ask("reset_memory")

    def close(self) -> None:
        """Close the box: its files, its networks and the program that holds it. A closed box may be closed again."""
        for number in (*self._files, *self._networks.values()):
            os.close(number)
        self._files, self._networks = [], {}
        if self._channel:
            self._channel.close()
        while self._unconnected_sockets:
            for caller in self._unconnected_sockets.popitem()[1]:
                caller.close()
        if (process := self._process) is None:
            return
        self._process = None
        with process:
            with suppress(OSError):
                assert process.stdin
                process.stdin.close()
            try:
                process.wait(CLOSE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def _proc_path(self, name: str) -> str:
        """Return a path in `/proc` of the program that holds the box."""
        assert self._process
        return f"/proc/{self._process.pid}/{name}"

    def _send(self, message: object) -> None:
        """Send a message to the program that holds the box."""
        assert self._process and self._process.stdin
        pickle.dump(message, self._process.stdin)
        self._process.stdin.flush()

    def _ask(self, *request: object) -> Any:
        """Send a request to the program that holds the box, and return the result. Raises what the request raised there."""
        try:
            with self._lock:
                if self._process is None:
                    raise EOFError
                self._send(request)
                assert self._process.stdout
                succeeded, result = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, ValueError) as error:
            raise ConfigError("the program that holds the agent's box has ended; run it again") from error
        if not succeeded:
            raise result
        return result


@contextmanager
def _as_config_error(problem: str) -> Iterator[None]:
    """Raise a ConfigError, one line that begins with `problem`, for an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{problem}: {one_line(str(error), 300)}") from error


def box_plan(
    folder: Path,
    layers: Path,
    gateway: Path,
    owners: Iterable[Path],
    programs: Sequence[Sequence[str]],
    state_folders: Iterable[Path],
    variables: Mapping[str, str],
    sockets: Mapping[Path, Path] = {},
    files: Sequence[tuple[Path, bytes]] = (),
    beside: Iterable[Path] = (),
) -> BoxPlan:
    """Return what a box contains.

    Args:
        folder: The agent's folder.
        layers: The private folder for what is written in the box.
        gateway: The folder of the gateway's socket.
        owners: The paths of the stores and of the agent's configs.
        programs: The commands that run in the box.
        state_folders: Folders with the first states of the stores.
        variables: The agent's variables.
        sockets: Paths at which the agent looks for a socket -> the gateway's sockets that replace them.
        files: Files that replace files of the machine, with their content.
        beside: Further paths of which the agent sees copies.

    Raises:
        ConfigError: A folder cannot be copied.
    """
    folder, owners_paths = folder.resolve(), tuple(path.resolve() for path in owners)
    homes = [Path(home).resolve() for home in (variables.get("HOME"), os.environ.get("HOME")) if home and Path(home).is_dir()]
    roots = _outermost([folder, *homes, *(_copied_folder_for(path.resolve()) for path in (*owners_paths, *beside))])
    for root in roots:
        _check_root(root, (folder, *owners_paths))
    named_folders = [variables.get(name) for name in HIDDEN_FOLDER_VARIABLES]
    hidden_folders = {Path(path).resolve() for path in (*HIDDEN_FOLDERS, *named_folders) if path and Path(path).is_dir()}
    hidden = [path for path in sorted(hidden_folders) if not any(path.is_relative_to(root) for root in roots)]

    caches = [path for words in programs for path in LOADERS.get(loader_of(words), ())]
    cache_folders = dict.fromkeys(homes[0] / path for path in caches if homes)
    needed = [Path(sys.prefix), Path(sys.base_prefix), PACKAGE]
    for words in programs:  # a word of a command may be the path of a file that the program opens
        program = shutil.which(words[0], path=variables.get("PATH"))
        needed += [folder / word for word in (program or "", *words)]
    existing = list(filter(_exists, needed))
    shown = []
    for path in (*(Path(normpath(path)) for path in existing), *(path.resolve() for path in existing)):
        above = [hidden_folder for hidden_folder in hidden if path.is_relative_to(hidden_folder) and path != hidden_folder]
        if above and not any(map(path.is_relative_to, roots)):  # of a hidden folder show the entry that leads to the path
            shown.append(above[-1] / path.relative_to(above[-1]).parts[0])
    replaced_sockets = tuple((path.resolve(), ours) for path, ours in sockets.items())
    hosts = f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {socket.gethostname()}\n".encode()
    files = ((RESOLV_CONF, b"nameserver 127.0.0.1\n"), (HOSTS_FILE, hosts), *files)
    return BoxPlan(
        layers,
        gateway,
        roots,
        tuple(hidden),
        _outermost(shown),
        owners_paths,
        tuple(state_folders),
        tuple(cache_folders),
        replaced_sockets,
        files,
    )


def with_names_of_machine(plan: BoxPlan) -> BoxPlan:
    """Return the plan of a box in which host names are resolved as on this machine."""
    files = tuple((path, path.read_bytes()) for path in (RESOLV_CONF, HOSTS_FILE) if path.is_file())
    return replace(plan, files=files)


def program_outside_box(words: Sequence[str]) -> str:
    """Return the program of a command that starts processes outside any box, such as `docker`; "" if there is none."""
    names = [Path(word).name for word in words[:3]]
    return next((name for name in names if name in CONTAINER_CLIENTS), "")


def why_not(error: OSError) -> str:
    """Return in words what this machine lacks for a box, and how to allow it, from the kernel's error."""
    for setting, forbids, allows in _KERNEL_SETTINGS:
        with suppress(OSError):
            if Path("/proc/sys", *setting.split(".")).read_text(encoding="ascii").strip() == forbids:
                return f"this system forbids user namespaces; allow them by: sudo sysctl {setting}={allows}"
    message = one_line(str(error), 200)
    if error.errno == errno.ENODEV:
        return f"the kernel has no overlay file system ({message}); load it by: sudo modprobe overlay"
    if error.errno in (errno.EPERM, errno.EACCES):
        return (
            f"the kernel refuses it ({message}); in a container give it --security-opt seccomp=unconfined --security-opt "
            f"systempaths=unconfined; Linux 5.12 is needed"
        )
    return f"{message}; Linux 5.12 is needed"


def _id_maps() -> Iterator[tuple[str, str]]:
    """Yield the names in `/proc/PID` and the contents of the files that map users and groups into the box: root maps all users,
    another user only itself."""
    if os.geteuid():
        yield "setgroups", "deny"
    for name, number in (("uid_map", os.geteuid()), ("gid_map", os.getegid())):
        text = f"{number} {number} 1\n"
        if os.geteuid() == 0:
            ranges = [line.split() for line in Path(f"/proc/self/{name}").read_text(encoding="ascii").splitlines()]
            text = "".join(f"{first} {first} {count}\n" for first, _, count in ranges)
        yield name, text


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths that lie in no other of these paths."""
    ordered = sorted(set(paths))
    return tuple(path for path in ordered if not any(other != path and path.is_relative_to(other) for other in ordered))


def _copied_folder_for(path: Path) -> Path:
    """Return the folder that the box must copy for a store or config: its parent, since a store may be replaced as a whole. A
    folder in `/`, or in another user's folder, is copied itself."""
    parent = path.parent
    return path if path.is_dir() and (parent == Path("/") or parent.stat().st_uid != path.stat().st_uid) else parent


def _check_root(root: Path, inner: Iterable[Path]) -> None:
    """Raise ConfigError for a folder `root` that the box cannot copy: it is `/`, contains a mount, or another user owns a
    folder on the way to one of the paths `inner`."""
    if root == Path("/"):
        raise ConfigError(
            f"the agent's folder, its home or a store's folder is /, which no box can copy; use another, {UNBOXED_ADVICE}"
        )
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        mount = Path(line.split()[4].encode("utf-8", "surrogateescape").decode("unicode_escape"))
        if mount != root and mount.is_relative_to(root):
            raise ConfigError(f"{mount} is a mount in {root}, which no box can copy with it; unmount it, {UNBOXED_ADVICE}")
    if os.geteuid() == 0:
        return
    for path in (candidate for candidate in inner if candidate.is_relative_to(root)):
        for folder in (path, *path.parents):
            item = folder.stat() if folder.exists() else None
            if folder == root:
                break
            if item and stat.S_ISDIR(item.st_mode) and (item.st_uid, item.st_gid) != (os.geteuid(), os.getegid()):
                raise ConfigError(
                    f"{folder} belongs to another user or group than {os.geteuid()}:{os.getegid()}, and no box can copy it; "
                    f"give it to yours by: chown {os.geteuid()}:{os.getegid()} {folder}, {UNBOXED_ADVICE}"
                )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a word of a command that can be no path
        return False

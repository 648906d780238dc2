"""The program that makes a box and keeps it open:

    python -m bench.probe.run.box.inside CHANNEL

It reads requests from stdin and writes results to stdout, both pickled, until stdin ends; stdin also ends when the parent dies.
Sockets are passed through the open socket CHANNEL. The first request is the `BoxPlan`. The program reads and resets the
stores itself: only a process in the box sees the files that the agent sees, and is subject to the agent's locks. (A process
outside could not use `/proc/PID/root`, since SQLite resolves a path, and would open the owner's file.)
"""

from __future__ import annotations

import filecmp
import os
import pickle
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.probe.run.box import kernel
from bench.probe.run.box.frameworks import FileForm, file_form, memory_owner
from bench.probe.run.box.loopback import LoopbackNetwork, SocketPlace
from bench.probe.run.box.written import WrittenFile, written_file
from bench.probe.run.witness.place import remove_tree

if TYPE_CHECKING:
    from bench.probe.run.witness.path_store import PathStore

STORE_FILE_ENDINGS = ("", "-wal", "-shm", "-journal")
"""The endings of a store's path, and of the paths of the files that a database has beside it."""
NetworkName = Literal["agent", "servers"]
"""The two networks of a box: one for the agent and its MCP servers, one for the services that the probe starts."""
UNREPORTED_FOLDERS = frozenset(("__pycache__",))
"""Folders whose files an interpreter can make again, so they are not reported. `reset_files` does reset them, since an
interpreter runs these files."""
MAX_REPORTED_PATHS, MAX_COMPARED_BYTES = 1000, 2**26
"""The most paths that are reported, and the most bytes of a file that is compared with the owner's file."""


@dataclass(frozen=True)
class BoxPlan:
    """What a box contains. All paths are resolved.

    layers         the private folder for what is written in the box
    gateway        the folder of the gateway's socket, which is visible in the box
    roots          the folders of which the agent sees copies: what it writes there is in a layer
    hidden         the folders that are new and empty
    shown          files and folders in hidden folders that are visible nevertheless, read-only
    stores         the paths of the stores, and of the configs that the probe writes
    state_folders  folders that only this program sees: the first states of the stores
    cache_folders  folders in the roots whose content stays from run to run: caches of programs such as npx
    sockets        paths at which the agent looks for a socket, each with the gateway's socket that replaces it
    files          files that replace files of the machine, with their content
    """

    layers: Path
    gateway: Path
    roots: tuple[Path, ...]
    hidden: tuple[Path, ...]
    shown: tuple[Path, ...] = ()
    stores: tuple[Path, ...] = ()
    state_folders: tuple[Path, ...] = ()
    cache_folders: tuple[Path, ...] = ()
    sockets: tuple[tuple[Path, Path], ...] = ()
    files: tuple[tuple[Path, bytes], ...] = ()


class BoxProgram:
    """An open box. Its public methods are the requests of the parent process."""

    def __init__(self, plan: BoxPlan, channel: socket.socket) -> None:
        self._channel = channel
        self._plan, self._layer, self._on_disk = plan, 0, True
        self._outside, self._namespace = -1, -1
        self._layers, self._opened = str(plan.layers), list[int]()
        self._sources = dict[Path, str]()
        self._stores: list[PathStore] = []
        self._unreset_stores = set[int]()
        """The numbers of the stores that were not reset since the current layer was made."""
        self._unfinished_calls, self._call_numbers = dict[int, Callable[[], Any]](), count()

    def begin(self) -> None:
        """Leave the machine's namespaces. The parent then maps this process's user into the new namespace, before `build`."""
        kernel.unshare(kernel.NEW_USER | kernel.NEW_MOUNTS | kernel.NEW_IPC)
        kernel.mount("none", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)

    def build(self) -> int:
        """Make the box's mounts, with a new layer. Return the number of the open file by which processes enter them."""
        if self._outside < 0:
            self._check_processes()
            self._networks: Mapping[NetworkName, LoopbackNetwork] = {"agent": LoopbackNetwork(), "servers": LoopbackNetwork()}
            self._outside = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        kernel.enter(self._outside)
        self._close()
        self._layer += 1
        try:
            self._mount_all()
        except OSError:
            if not self._on_disk:
                raise
            self._on_disk = False  # some file systems hold no layer: an overlay, or one that is in a root
            kernel.enter(self._outside)
            self._close()
            kernel.mount("tmpfs", self._plan.layers, "tmpfs", kernel.NO_SETUID | kernel.NO_DEVICES)
            self._mount_all()
        self._unreset_stores = set(range(len(self._stores)))
        remove_tree(Path(self._layers, str(self._layer - 1)))
        return self._namespace

    def _mount_all(self) -> None:
        """Mount the folders of the plan in new namespaces: one for the agent, and one in which this program also sees
        `state_folders`."""
        plan = self._plan
        kernel.unshare(kernel.NEW_MOUNTS)
        kernel.bind(plan.layers, plan.layers)
        self._layers = self._open(plan.layers)
        remove_tree(self._upper)  # what an earlier box of these layers left
        self._upper.mkdir()
        caches = filter(Path.is_dir, plan.cache_folders)
        sources = {path: self._open(path) for path in (*plan.roots, plan.gateway, *plan.shown, *plan.state_folders, *caches)}
        devices = {path: path.stat().st_dev for path in plan.roots}
        kernel.set_read_only("/", is_read_only=True, recursive=True)
        kernel.set_read_only(self._layers, is_read_only=False)
        for path in plan.hidden:
            mode = "755" if path == Path("/run") else "1777"
            path.mkdir(parents=True, exist_ok=True)
            kernel.mount("tmpfs", path, "tmpfs", kernel.NO_SETUID | kernel.NO_DEVICES, f"mode={mode}")
        for path in plan.shown:
            self._mount_visible(sources[path], path)
        for number, path in enumerate(plan.roots):
            path.mkdir(parents=True, exist_ok=True)
            _overlay(sources[path], path, self._upper / f"upper{number}", self._upper / f"work{number}")
            if path.stat().st_dev == devices[path]:  # the path still leads to the owner's folder
                raise OSError(f"{path} is not a copy in the box")
        for number, path in enumerate(plan.cache_folders):
            path.mkdir(parents=True, exist_ok=True)
            lower = sources.get(path) or self._open(self._new_folder("empty"))
            _overlay(lower, path, self._new_folder(f"kept{number}"), self._new_folder(f"work{number}"))
        self._sources = sources
        self._mount_visible(sources[plan.gateway], plan.gateway)
        self._replace_files()
        self._cover_sockets()
        for path, gateway_socket in plan.sockets:
            self._mount_visible(f"{sources[plan.gateway]}/{gateway_socket.relative_to(plan.gateway)}", path)
        for path in plan.state_folders:
            self._mount_visible(sources[path], path)
        ours = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        kernel.unshare(kernel.NEW_MOUNTS)
        for path in plan.state_folders:
            kernel.unmount(path)
        self._namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        kernel.enter(ours)
        os.close(ours)
        self._new = set(self._files_in_hidden())
        self._made_folders = set(self._folders_made())

    def networks(self) -> Mapping[NetworkName, int]:
        """Return the numbers of the open files by which processes enter the networks."""
        return {side: network.namespace for side, network in self._networks.items()}

    def open_sockets(self, side: NetworkName, places: Sequence[SocketPlace]) -> None:
        """Send open sockets of a network through the channel."""
        sockets = self._networks[side].sockets(places)
        socket.send_fds(self._channel, [b"\0"], [opened.fileno() for opened in sockets])
        for opened in sockets:
            opened.close()

    def _cover_sockets(self) -> None:
        """Hide the machine's sockets from the box."""
        for path in _sockets():
            with suppress(OSError):
                if not path.is_relative_to(self._plan.gateway) and path.is_socket():
                    kernel.bind("/dev/null", path)

    def take_store(self, store: PathStore) -> int:
        """Add a store whose first state was made, so that this program reads and resets it. Return its number."""
        store.enter_box()
        self._stores.append(store)
        self._unreset_stores.add(number := len(self._stores) - 1)
        return number

    def reset_files(self) -> int:
        """Reset all files except the stores, which have a reset of their own. No process may run in the box.

        Returns:
            The descriptor of the namespace by which processes enter the box.
        """
        self._unfinished_calls.clear()
        has_new_folders = set(self._folders_made()) != self._made_folders
        if has_new_folders or any(self._changed_paths(frozenset())) or set(self._files_in_hidden()) != self._new:
            self.build()
        return self._namespace

    def call(self, store: int, method: str, *arguments: Any) -> Any:
        """Call a method of a store, and return the result. If the method returns a function, keep the function and return its
        number, for `end`."""
        if method == "reset" and store in self._unreset_stores:
            self._clear_store(self._stores[store].place)
            self._unreset_stores.discard(store)
        result = getattr(self._stores[store], method)(*arguments)
        if not callable(result):
            return result
        self._unfinished_calls[number := next(self._call_numbers)] = result
        return number

    def end(self, number: int) -> Any:
        """Call the function with this number that `call` has kept, remove it, and return its result."""
        return self._unfinished_calls.pop(number)()

    def write(self, path: Path, content: bytes) -> None:
        """Write the agent's copy of a config at the path of the owner's config."""
        unfinished = path.with_name(f"{path.name}.half")
        unfinished.write_bytes(content)
        unfinished.chmod(stat.S_IMODE(path.stat().st_mode))
        unfinished.replace(path)

    def paths_written(self) -> dict[str, str]:
        """Return the paths outside the stores that were written or removed, each with the framework that keeps the agent's
        memory there; "" if no known framework does. A database's journals are not listed."""
        return {str(path): memory_owner(path) for path in sorted(dict(islice(self._changed_paths(), MAX_REPORTED_PATHS)))}

    def files_written(self) -> list[WrittenFile]:
        """Return the files outside the stores that were written or removed, with their digests before and after."""
        paths = dict(islice(self._changed_paths(), MAX_REPORTED_PATHS))
        return [written_file(path, lower) for path, lower in sorted(paths.items())]

    def form(self, path: Path) -> FileForm:
        """Return the format of a file."""
        return file_form(path)

    def reset_memory(self) -> None:
        """Reset the files in which frameworks keep the agent's memory, also those that were removed."""
        for path, lower in list(self._changed_paths()):
            if memory_owner(path):
                _copy_with_journals(lower, path)
        for path, lower in list(self._removed_files()):
            missing_folders = [folder for folder in path.parents if not folder.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            _copy_with_journals(lower, path)
            if not memory_owner(path):  # SQLite reads a database by its path in the box, so that it is copied first
                _remove_with_journals(path)
                for folder in missing_folders:
                    folder.rmdir()

    def _removed_files(self) -> Iterator[tuple[Path, Path]]:
        """Yield the owner's files that were removed, alone or with their folder: the path in the box, and the path of the
        owner's file."""
        removed = [(path, lower) for path, lower in self._changed_paths() if not os.path.lexists(path)]
        for path, lower in (*removed, *self._folders_made()):
            files = [Path(parent, name) for parent, _, names in os.walk(lower) for name in names] or [lower]
            for file in files:
                path_in_box = path / file.relative_to(lower)
                if file.is_file() and not os.path.lexists(path_in_box):
                    yield path_in_box, file

    def _folders_made(self) -> Iterator[tuple[Path, Path]]:
        """Yield the folders in the box, outside the stores, that were made, or removed and made again, each with the path of
        the owner's folder."""
        for number, root in enumerate(self._plan.roots):
            for folder, layer_path in _folders(self._upper / f"upper{number}", root, self._plan.stores, frozenset()):
                owners_path = Path(self._sources[root], folder.relative_to(root))
                if not owners_path.is_dir() or _is_opaque(layer_path):
                    yield folder, owners_path

    def _changed_paths(self, left_out: frozenset[str] = UNREPORTED_FOLDERS) -> Iterator[tuple[Path, Path]]:
        """Yield the paths in the box that were written or removed outside the stores, each with the path of the owner's file. A
        journal counts as its database, which can be yielded more than once. Folders named `left_out` are skipped."""
        for number, root in enumerate(self._plan.roots):
            for path, layer_path, status in _items(self._upper / f"upper{number}", root, self._plan.stores, left_out):
                owners_path = Path(self._sources[root], path.relative_to(root))
                if not _has_owners_content(layer_path, status, owners_path):
                    database = _database_of(path)
                    yield database, owners_path.with_name(database.name)

    @property
    def _upper(self) -> Path:
        """The folder of the current layer."""
        return Path(self._layers, str(self._layer))

    def _new_folder(self, name: str) -> Path:
        """Make a folder next to the layers, and return it."""
        (folder := Path(self._layers, name)).mkdir(exist_ok=True)
        return folder

    def _close(self) -> None:
        """Close the files of the current mounts."""
        for opened in (*self._opened, self._namespace):
            if opened >= 0:
                os.close(opened)
        self._opened, self._namespace = [], -1

    def _open(self, path: Path) -> str:
        """Return a path in `/proc` by which a file or folder is reached even if another is mounted over it."""
        self._opened.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
        return f"/proc/self/fd/{self._opened[-1]}"

    def _mount_visible(self, source: str, path: Path) -> None:
        """Mount a file or folder at its own path, where another mount may hide it."""
        if not Path(source).is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.touch()
        elif not path.is_dir():
            path.mkdir(parents=True)
        kernel.bind(source, path)

    def _replace_files(self) -> None:
        """Replace files of the machine by the plan's files, read-only. Their paths may be links."""
        for number, (path, content) in enumerate(self._plan.files):
            (ours := self._new_folder("files") / str(number)).write_bytes(content)
            if (target := path.resolve()).exists() or any(map(target.is_relative_to, self._plan.hidden)):
                self._mount_visible(str(ours), target)
                kernel.set_read_only(target, is_read_only=True)

    def _files_in_hidden(self) -> Iterator[str]:
        """Yield the paths of the files and folders in the hidden folders, without what is mounted there."""
        for path in self._plan.hidden:
            device = path.stat().st_dev
            for parent, folders, files in os.walk(path):
                yield from (f"{parent}/{name}" for name in (*folders, *files))
                # do not enter what is mounted in a hidden folder
                folders[:] = [name for name in folders if os.lstat(f"{parent}/{name}").st_dev == device]

    def _clear_store(self, store_path: Path) -> None:
        """Remove a store's content from the box, so that all of it is written anew, and no file is the owner's in a lower
        layer. A process that opened an owner's file for reading would not see later writes, and an owner's folder could not be
        renamed."""
        root = next(root for root in self._plan.roots if store_path.is_relative_to(root))
        folder = store_path if store_path == root else store_path.parent
        if folder.stat().st_dev != root.stat().st_dev or root.stat().st_dev == Path(self._sources[root]).stat().st_dev:
            raise OSError(f"{store_path} is not a copy in the box")
        for path in store_path.iterdir() if store_path.is_dir() and not store_path.is_symlink() else (store_path,):
            remove_tree(path)

    def _check_processes(self) -> None:
        """Raise OSError if a process of the box could not mount `/proc` for its own processes. A child tries it: it makes the
        namespaces, and its own child, the first process in them, mounts. Exit codes carry the number of the error."""
        child = os.fork()
        if child:
            if number := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
                raise OSError(number, f"{os.strerror(number)} (mount of proc at /proc)")
            return
        code = 1
        try:
            kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_PIDS)
            if inner := os.fork():
                code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
            else:
                kernel.mount("proc", "/proc", "proc", kernel.NO_SETUID | kernel.NO_DEVICES | kernel.NO_PROGRAMS)
                code = 0
        except OSError as error:
            code = error.errno or 1
        finally:
            os._exit(code)


def _overlay(lower: str, path: Path, upper: Path, work: Path) -> None:
    """Mount a copy of the folder `lower` at `path`. Written files are in `upper`; the kernel uses the folder `work`."""
    for folder in (upper, work):
        folder.mkdir(exist_ok=True)
    upper.chmod(stat.S_IMODE(Path(lower).stat().st_mode))
    options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr,index=off"
    kernel.mount("overlay", path, "overlay", kernel.NO_SETUID | kernel.NO_DEVICES, options)


def _items(
    layer: Path, root: Path, stores: tuple[Path, ...], left_out: frozenset[str]
) -> Iterator[tuple[Path, Path, os.stat_result]]:
    """Yield the files in a layer, outside the stores and outside folders named `left_out`: the path in the box, the path in
    the layer, and its status."""
    store_files = _store_files(stores)
    for folder_in_box, folder in _folders(layer, root, stores, left_out):
        for path in folder.iterdir():
            if (path.is_symlink() or not path.is_dir()) and folder_in_box / path.name not in store_files:
                yield folder_in_box / path.name, path, path.lstat()


def _folders(layer: Path, root: Path, stores: tuple[Path, ...], left_out: frozenset[str]) -> Iterator[tuple[Path, Path]]:
    """Yield the folders in a layer, outside the stores and outside folders named `left_out`: the path in the box, and the path
    in the layer."""
    store_files = _store_files(stores)
    for parent, folders, _ in os.walk(layer):
        folder_in_box = root / os.path.relpath(parent, layer)
        folders[:] = [name for name in folders if folder_in_box / name not in store_files and name not in left_out]
        yield folder_in_box, Path(parent)


def _remove_with_journals(path: Path) -> None:
    """Remove a file and the journals of a database."""
    for end in STORE_FILE_ENDINGS:
        Path(f"{path}{end}").unlink(missing_ok=True)


def _copy_with_journals(source: Path, target: Path) -> None:
    """Make a file equal to another, with the journals of a database. If there is no source, the target is removed."""
    _remove_with_journals(target)
    for end in STORE_FILE_ENDINGS:
        original = Path(f"{source}{end}")
        if original.is_file():
            shutil.copy2(original, f"{target}{end}")


def _store_files(stores: tuple[Path, ...]) -> set[Path]:
    """Return the paths of the stores and of their journals."""
    return {Path(f"{store}{end}") for store in stores for end in STORE_FILE_ENDINGS}


def _is_opaque(folder: Path) -> bool:
    """Return whether a folder of a layer hides the owner's folder, since it was removed and made again."""
    with suppress(OSError):
        return os.getxattr(folder, "user.overlay.opaque") == b"y"
    return False


def _database_of(path: Path) -> Path:
    """Return the database to which a journal belongs, if the database exists; for another file the file itself."""
    end = next((end for end in STORE_FILE_ENDINGS if end and path.name.endswith(end)), "")
    database = path.with_name(path.name.removesuffix(end))
    return database if end and database.is_file() else path


def _has_owners_content(layer_path: Path, status: os.stat_result, owners_path: Path) -> bool:
    """Return whether a regular file in a layer has the content of the owner's file: it was opened for writing, and not changed.
    `status` is the status of the file in the layer."""
    with suppress(OSError):
        are_regular = stat.S_ISREG(status.st_mode) and stat.S_ISREG(owners_path.lstat().st_mode)
        is_small = status.st_size <= MAX_COMPARED_BYTES
        return are_regular and is_small and filecmp.cmp(layer_path, owners_path, shallow=False)
    return False


def _sockets() -> Iterator[Path]:
    """Yield the paths of all Unix sockets of the machine."""
    for line in Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]:
        path = line.split(maxsplit=7)[7:]
        if path and path[0].startswith("/"):
            yield Path(path[0])


def main() -> None:
    """Answer the requests of the parent process until stdin ends: each result is (whether it succeeded, result or error)."""
    requests, results = os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed does not come among the results
    inside = BoxProgram(pickle.load(requests), socket.socket(fileno=int(sys.argv[1])))
    while True:
        try:
            name, *arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            result = True, getattr(inside, name)(*arguments)
        except Exception as error:
            result = False, error
        pickle.dump(result, results)
        results.flush()


if __name__ == "__main__":
    main()

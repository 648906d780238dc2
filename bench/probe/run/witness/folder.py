"""A folder as a store: each file, link and folder in it is a row, named by its path, and so is each object in a JSON file.

A single file is stored as a folder that contains only this file.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from bench.common.digests import digest_of
from bench.common.errors import ConfigError
from bench.common.paths import expanded_path
from bench.common.values import dataclass
from bench.probe.run.witness.documents import MAX_FILE_BYTES, SUFFIXES, Objects, objects_in, unignored_objects
from bench.probe.run.witness.folder_watch import FolderWatch
from bench.probe.run.witness.ignored import NOTHING, Ignored
from bench.probe.run.witness.kinds import StoreKind, StoreSettings
from bench.probe.run.witness.path_store import PathStore
from bench.probe.run.witness.place import NAME_PREFIX, remove_tree
from bench.probe.run.witness.rows import MAX_VALUE_CHARS, Encoding, printable
from bench.record.probe_rows import IN_LIST, Cell, RowDifference, StoreReading

_ROOT_MARK = "{store}/"
_READ_BYTES = 2**20
_OBJECTS_SIZE = -1
"""Replaces the size of a JSON file, whose content is its objects and not its bytes."""
_CLOCK_STEP_NS = 50_000_000
"""Two changes of a file within this time can leave the same time of change."""


@dataclass(frozen=True)
class _PathEntry:
    """The content at a path: the target of a link, or the digest of a file."""

    kind: Literal["file", "folder", "link"]
    mode: int
    size: int = 0
    content: str = ""


class FolderStore(PathStore):
    """A folder, or a file, that the owner named.

    A link that points into the folder points into the copy there. No link may point out of the folder to a folder, or to a file
    that its user can write. Pipes, sockets and devices are left out, and so are times and owners of files.

    `encoding` encodes its texts. `ignores` returns whether a path, or a position in a JSON file, is not read.
    """

    def __init__(
        self, name: str, path: Path, folder: Path, encoding: Encoding, variables: Mapping[str, str], ignores: Ignored = NOTHING
    ) -> None:
        super().__init__(name, path, folder, variables)
        self._encoding, self._ignores = encoding, ignores
        self._first_entries: dict[str, _PathEntry] = {}
        self._contents_by_stamp: dict[tuple[int, ...], tuple[int, str]] = {}
        self._objects: dict[str, Objects] = {}
        self._partial_digests = set[str]()
        """The digests of JSON files of which an object is ignored."""
        self._is_single_file = path.is_file()
        self.kind = "file" if self._is_single_file else "folder"
        self._watch: FolderWatch | None = None
        self._present_entries, self._differing_paths = dict[str, _PathEntry](), set[str]()
        """The entries of the copy at the last reading, and the paths at which they differ from the first entries."""
        self._touched_paths, self._touch_count = set[str](), 0
        """The paths that changed since the last reading, and how many calls of `stamp` saw a change."""

    def _check(self, path: Path) -> None:
        """Raise ConfigError if the folder cannot be copied: it is missing, contains its own copies, or has a link out of
        it."""
        if not path.is_dir() and not path.is_file():
            raise ConfigError(f"store {self.name!r}: {self._path} is no folder")
        if self._parent.resolve().is_relative_to(path):
            raise ConfigError(
                f"store {self.name!r}: its copies would be made in itself, in {self._parent}; name another folder"
            )
        check_links(self.name, path)

    def _copy_first_state(self, path: Path) -> None:
        """Save the first state and its entries, and make the copy."""
        if path.is_file():
            self._first.mkdir()
            shutil.copy2(path, self._first)
        else:
            restore(path, self._first, path, path)
        self._first_entries = self._entries(self._first, path)
        if not self._box:
            self._root.parent.mkdir(exist_ok=True)
            self.reset()

    def reset(self) -> None:
        """Reset the copy to its first state. Only differing files are written."""
        with self._errors_in_one_line("cannot be reset"):
            if self._single_name:
                restore_file(self._first / self._copy.name, self._copy)
            else:
                restore(self._first, self._root, self._path if self._box else self._path.resolve(), self._root)

    def read(self, most: int) -> StoreReading:
        """Return the digest of the content, and the paths that differ from the first state, at most `most`."""
        with self._errors_in_one_line("cannot be read"):
            current, paths = self._current_entries(), sorted(self._differing_paths)
            pairs = [(path, self._first_entries.get(path), current.get(path)) for path in paths]
            differences = [row for pair in pairs for row in self._differences(*pair)]
            differing = repr([(path, current.get(path)) for path in paths]).encode("utf-8", "surrogatepass")
            return StoreReading(self._encoding.digest(differing), tuple(differences[:most]), max(0, len(differences) - most))

    def stamp(self) -> int | None:
        """Return how often the kernel has reported a change; None if the folder is not watched."""
        with self._errors_in_one_line("cannot be read"):
            if self._watch:
                changed_paths = self._watch.changed_paths()
                if changed_paths is None:
                    self._end_watch()
                    return None
                self._touched_paths |= changed_paths
                self._touch_count += bool(changed_paths)
            return self._touch_count if self._watch else None

    def remove(self) -> None:
        """Remove the copy. This may be called again."""
        self._end_watch()
        super().remove()

    def _end_watch(self) -> None:
        """Stop watching the copy; the next reading walks through all of it."""
        if self._watch:
            self._watch.close()
            self._watch = None

    def recheck(self) -> None:
        """Walk the whole folder at the next reading, since the kernel does not report writes through a memory mapping."""
        self._end_watch()

    def _current_entries(self) -> dict[str, _PathEntry]:
        """Return path -> entry of the copy now. If the kernel reports the changed paths, only these are read again."""
        if self.stamp() is None:  # not watched: all entries are read
            if not self._single_name:
                with suppress(OSError):  # without a watch each reading walks through the whole folder
                    self._watch = FolderWatch(self._root)
            self._present_entries = self._entries(self._root, self._root, self._single_name or None)
            self._differing_paths, checked = set[str](), {*self._first_entries, *self._present_entries}
            used_contents = {entry.content for entry in (*self._first_entries.values(), *self._present_entries.values())}
            self._objects = {content: objects for content, objects in self._objects.items() if content in used_contents}
            unused_stamps = [stamp for stamp, (_, content) in self._contents_by_stamp.items() if content not in used_contents]
            for stamp in unused_stamps:
                del self._contents_by_stamp[stamp]
        else:
            checked = set(self._touched_paths)
            for path in self._touched_paths:
                if (entry := self._present_entries.get(path)) and entry.kind == "folder":  # all below may have changed
                    checked.update(entry_path for entry_path in self._present_entries if entry_path.startswith(f"{path}/"))
            for path in checked:
                self._present_entries.pop(path, None)
            entries = self._entries(self._root, self._root, self._touched_paths)
            self._present_entries |= entries
            checked |= entries.keys()
        self._touched_paths = set()
        self._differing_paths -= checked
        self._differing_paths |= {path for path in checked if self._first_entries.get(path) != self._present_entries.get(path)}
        return self._present_entries

    @property
    def _root(self) -> Path:
        """The folder whose content is the copy."""
        return self._copy.parent if self._is_single_file else self._copy

    @property
    def _single_name(self) -> tuple[str, ...]:
        """The name of the file if the store is a file in a box, where other files are beside it; otherwise ()."""
        return (self._copy.name,) if self._box and self._is_single_file else ()

    def _entries(self, folder: Path, root: Path, paths: Iterable[str] | None = None) -> dict[str, _PathEntry]:
        """Return path -> entry of a folder, or at these paths in it. The targets of links are compared below `root`."""
        entries = {}
        for path, item in walk(folder, paths=paths):
            if self._ignores(path):
                continue
            mode = stat.S_IMODE(item.st_mode)
            with suppress(FileNotFoundError):  # it was removed in the meantime, which the next reading sees
                if stat.S_ISLNK(item.st_mode):
                    entries[path] = _PathEntry("link", 0, 0, _comparable_target(_read_link(folder / path), path, root))
                elif stat.S_ISDIR(item.st_mode):
                    entries[path] = _PathEntry("folder", mode)
                else:
                    known_content = self._contents_by_stamp.get(_stamp_of(item))
                    entries[path] = _PathEntry("file", mode, *(known_content or self._content_of(folder / path)))
        return entries

    def _content_of(self, path: Path) -> tuple[int, str]:
        """Return the size and digest of a file; of a JSON file `_OBJECTS_SIZE` and the digest of its objects. An unchanged file
        is not read again."""
        begun = time.time_ns()
        with _open_file(path) as file:
            item = os.fstat(file)
            stamp = _stamp_of(item)
            if stamp in self._contents_by_stamp:
                return self._contents_by_stamp[stamp]
            content = self._content_of_objects(path, file, item.st_size) or self._content_of_bytes(file)
        if max(item.st_mtime_ns, item.st_ctime_ns) < begun - _CLOCK_STEP_NS:
            self._contents_by_stamp[stamp] = content
        return content

    def _content_of_bytes(self, file: int) -> tuple[int, str]:
        """Return the size and digest of a file's bytes."""
        size, digest = 0, self._encoding.new_hash()
        while piece := os.read(file, _READ_BYTES):
            size += len(piece)
            digest.update(piece)
        return size, digest.hexdigest()

    def _content_of_objects(self, path: Path, file: int, size: int) -> tuple[int, str] | None:
        """Return `_OBJECTS_SIZE` and the digest of a JSON file's objects, and keep the objects. Return None for another file,
        whose position is then its beginning."""
        if not path.name.endswith(SUFFIXES) or size > MAX_FILE_BYTES:
            return None
        content = os.read(file, MAX_FILE_BYTES + 1)
        objects = objects_in(path.name, content, self._encoding.hidden)
        if objects is None:
            os.lseek(file, 0, os.SEEK_SET)
            return None
        kept_objects = unignored_objects(objects, lambda position: self._ignores(f"{path.name}{position}"))
        digest = self._encoding.digest(repr(sorted(kept_objects.items())).encode("utf-8", "surrogatepass"))
        self._objects[digest] = kept_objects
        if len(kept_objects) < len(objects):
            self._partial_digests.add(digest)
        return _OBJECTS_SIZE, digest

    def _differences(self, path: str, old: _PathEntry | None, new: _PathEntry | None) -> Iterator[RowDifference]:
        """Yield the differences at a path: of two JSON files each object that differs, else the file, link or folder itself."""
        # the objects of a JSON file in the first state and now; None for no file, and for a file without objects
        before, after = (self._objects.get(entry.content) if entry else None for entry in (old, new))
        if old is None and new and new.content not in self._partial_digests:
            after = None  # a new file is one row, since the file's name can differ between runs
        # without objects on both sides, or if only one of two files has objects, the whole files are compared
        if (before is None and after is None) or (before is None and old) or (after is None and new):
            yield self._difference(path, old, new)
            return
        before, after = before or {}, after or {}
        if before == after:  # only its mode differs
            yield self._difference(path, old, new)
        for position in sorted(key for key in {*before, *after} if before.get(key) != after.get(key)):
            rows = [self._row_of(objects[position]) if position in objects else None for objects in (before, after)]
            list_match = IN_LIST.fullmatch(position)
            table = f"{path}{list_match[1].rstrip('/')}" if list_match else path
            yield RowDifference(self.name, printable(table), printable(position), *rows)

    def _row_of(self, members: Mapping[str, object]) -> dict[str, Cell]:
        return self._encoding.row(list(members), list(members.values()))

    def _difference(self, path: str, old: _PathEntry | None, new: _PathEntry | None) -> RowDifference:
        """Return the difference of the file, link or folder at a path, as a row."""
        before = self._row(self._first / path, old)
        after = self._row(self._root / path, new)
        if old and new and before and after and old.kind == new.kind == "file" and new.size > old.size >= 0:
            after |= self._appended_cell(self._root / path, old)
        return RowDifference(self.name, "", printable(path), before, after)

    def _row(self, path: Path, entry: _PathEntry | None) -> dict[str, Cell] | None:
        """Return the entry at a path as a row; None if there is none."""
        if entry is None:
            return None
        if entry.kind == "link":
            return {"kind": "link", "target": printable(entry.content)}
        row: dict[str, Cell] = {"kind": entry.kind, "mode": f"{entry.mode:o}"}
        if entry.kind == "file":
            row |= {"size": entry.size, "digest": entry.content}
            if entry.size == _OBJECTS_SIZE:
                row["size"] = path.stat().st_size
            if path.stat().st_size <= MAX_VALUE_CHARS:
                with _open_file(path) as file:
                    row["text"] = self._text(os.read(file, MAX_VALUE_CHARS))
        return row

    def _appended_cell(self, path: Path, old: _PathEntry) -> dict[str, Cell]:
        """Return the appended content as a cell `appended`, if the file still begins with its former content; otherwise {}."""
        digest, remaining = self._encoding.new_hash(), old.size
        with _open_file(path) as file:
            while remaining and (piece := os.read(file, min(remaining, _READ_BYTES))):
                digest.update(piece)
                remaining -= len(piece)
            if digest.hexdigest() != old.content:
                return {}
            tail = os.read(file, MAX_VALUE_CHARS + 1)
            if len(tail) <= MAX_VALUE_CHARS:
                return {"appended": self._text(tail)}
            tail_digest, tail_size = self._encoding.new_hash(tail), len(tail)
            while piece := os.read(file, _READ_BYTES):
                tail_digest.update(piece)
                tail_size += len(piece)
            return {"appended": f"(digest) {tail_size} bytes {tail_digest.hexdigest()}"}

    def _text(self, content: bytes) -> Cell:
        """Return a file's content as a cell: as text if it is UTF-8."""
        try:
            return self._encoding.cell("text", content.decode())
        except UnicodeDecodeError:
            return self._encoding.cell("text", content)


def restore(source: Path, folder: Path, root: Path, link_target: Path) -> None:
    """Make a folder equal to another. Only differing files are removed or written. If a call is killed, it can be repeated.

    Args:
        source: The folder with the wanted content.
        folder: The folder that is changed.
        root: Where the source's content was originally, to which its links refer.
        link_target: The folder to which links into `root` are changed to point.
    """
    if folder.is_symlink() or not folder.is_dir():
        remove_tree(folder)
        folder.mkdir(parents=True)
    folder.chmod(0o700)
    wanted, existing = dict(walk(source)), dict(walk(folder, entering=True))
    for path, item in sorted(existing.items(), reverse=True):
        if path not in wanted or stat.S_IFMT(wanted[path].st_mode) != stat.S_IFMT(item.st_mode):
            remove_tree(folder / path)
    for path, item in sorted(wanted.items()):
        if stat.S_ISDIR(item.st_mode):
            (folder / path).mkdir(mode=0o700, exist_ok=True)
        elif stat.S_ISLNK(item.st_mode):
            _copy_link(source / path, folder / path, path, root, link_target)
        elif not _has_equal_content(source / path, folder / path):
            _copy_file(source / path, folder / path, item)
    # the modes come last, the innermost first, since the mode of a folder can forbid changes in it
    modes = {".": source.stat(), **{path: item for path, item in wanted.items() if not stat.S_ISLNK(item.st_mode)}}
    for path, item in sorted(modes.items(), reverse=True):
        if stat.S_IMODE((folder / path).stat().st_mode) != stat.S_IMODE(item.st_mode):
            (folder / path).chmod(stat.S_IMODE(item.st_mode))


def restore_file(source: Path, target: Path) -> None:
    """Make a file equal to another, whatever is at its path."""
    if target.is_symlink() or not target.is_file():
        remove_tree(target)
    if not _has_equal_content(source, target):
        _copy_file(source, target, source.stat())
    target.chmod(stat.S_IMODE(source.stat().st_mode))


def check_links(name: str, root: Path) -> None:
    """Raise ConfigError for a link that points out of a store to a folder, or to a file that its user can write: a write
    through a copy of the link would change the original."""
    for path, item in walk(root) if root.is_dir() else ():
        if stat.S_ISLNK(item.st_mode):
            target = Path(os.path.normpath((root / path).parent / _read_link(root / path)))
            if not target.is_relative_to(root) and (not target.is_file() or os.access(target, os.W_OK)):
                raise ConfigError(
                    f"store {name!r}: the link {printable(str(root / path))} leads out of it, to {printable(str(target))}, "
                    f"which is not copied; put a file or a folder in the link's place, or name a smaller folder"
                )


def _copy_link(source: Path, target: Path, path: str, root: Path, link_target: Path) -> None:
    """Copy the link `source`, in the folder `root`, to `target`: a target inside `root` is replaced by the same place below
    `link_target`."""
    link_text = _read_link(source)
    wanted_target = _comparable_target(link_text, path, root)
    if target.is_symlink():
        if _comparable_target(_read_link(target), path, link_target) == wanted_target:
            return
        target.unlink()
    target.symlink_to(link_text if root == link_target else wanted_target.replace(_ROOT_MARK, f"{link_target}/", 1))


def _read_link(link: Path) -> str:
    return os.readlink(link)  # noqa: PTH115  `Path.readlink` writes it in another form


def _comparable_target(link_text: str, path: str, root: Path) -> str:
    """Return the target of a link in a form that does not depend on `root`: the text of a relative link that stays inside, a
    path with `_ROOT_MARK` for another link that stays inside, and the absolute path of a target outside."""
    target = os.path.normpath(root / Path(path).parent / link_text)
    is_inside = Path(target).is_relative_to(root)
    if is_inside and not Path(link_text).is_absolute():
        return link_text
    return f"{_ROOT_MARK}{os.path.relpath(target, root)}" if is_inside else target


def _copy_file(source: Path, target: Path, item: os.stat_result) -> None:
    """Copy a file with its time and mode. A killed call leaves the former target."""
    partial_file = target.with_name(f"{NAME_PREFIX}{digest_of(target.name)}.half")
    shutil.copyfile(source, partial_file)
    os.utime(partial_file, ns=(item.st_atime_ns, item.st_mtime_ns))
    partial_file.chmod(stat.S_IMODE(item.st_mode))
    partial_file.replace(target)


def _has_equal_content(source: Path, target: Path) -> bool:
    """Return whether two files have the same content."""
    try:
        with _open_file(source) as file, _open_file(target) as target_file:
            if os.fstat(file).st_size != os.fstat(target_file).st_size:
                return False
            while piece := os.read(file, _READ_BYTES):
                if piece != os.read(target_file, len(piece)):
                    return False
    except FileNotFoundError:
        return False
    return True


def _stamp_of(item: os.stat_result) -> tuple[int, ...]:
    """Return a value that changes with each write to a file."""
    return item.st_dev, item.st_ino, item.st_size, item.st_mtime_ns, item.st_ctime_ns


def walk(folder: Path, *, entering: bool = False, paths: Iterable[str] | None = None) -> Iterator[tuple[str, os.stat_result]]:
    """Yield (relative path, status) of the files, links and folders in a folder and in its subfolders. A path that disappears
    meanwhile, a socket, a pipe and a device are left out.

    `entering`: whether subfolders without permission are made readable first. `paths`: the only paths that are yielded,
    together with all paths below them.
    """
    parents = [""] if paths is None else []
    for path in paths or ():
        with suppress(FileNotFoundError, NotADirectoryError):
            item = (folder / path).lstat()
            if stat.S_ISDIR(item.st_mode):
                parents.append(f"{path}/")
            if stat.S_IFMT(item.st_mode) in (stat.S_IFDIR, stat.S_IFLNK, stat.S_IFREG):
                yield path, item
    while parents:
        parent = parents.pop()
        with suppress(FileNotFoundError), os.scandir(folder / parent) as items:
            for child in items:
                path = f"{parent}{child.name}"
                with suppress(FileNotFoundError):
                    item = child.stat(follow_symlinks=False)
                    if stat.S_ISDIR(item.st_mode):
                        parents.append(f"{path}/")
                        if entering:
                            (folder / path).chmod(0o700)
                    if stat.S_IFMT(item.st_mode) in (stat.S_IFDIR, stat.S_IFLNK, stat.S_IFREG):
                        yield path, item


@contextmanager
def _open_file(path: Path) -> Iterator[int]:
    """Open a regular file for reading."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is no file any more", str(path))
        yield file
    finally:
        os.close(file)


def _make_store(store: StoreSettings, folder: Path, encoding: Encoding) -> FolderStore:
    path, ignores = expanded_path(store.where), Ignored(store.ignore)
    return FolderStore(store.name, path, folder, encoding, store.variables, ignores)


KINDS = (
    StoreKind("folder", _make_store, frozenset(("ignore",)), must_be="folder"),
    StoreKind("file", _make_store, frozenset(("ignore",)), must_be="file"),
)

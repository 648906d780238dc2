"""A folder as a store: each file, link and folder in it is a row, named by its path, and so is each object in a file of JSON.

A file that stands for itself is a folder that holds this file.
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
from bench.probe.run.witness.documents import LARGEST, SUFFIXES, Objects, objects_in, without
from bench.probe.run.witness.folder_watch import FolderWatch
from bench.probe.run.witness.ignored import NOTHING, Ignored
from bench.probe.run.witness.kinds import StoreKind, StoreSettings
from bench.probe.run.witness.path_store import PathStore
from bench.probe.run.witness.place import PREFIX, remove_tree
from bench.probe.run.witness.rows import LONGEST, Encoding, printable
from bench.record.probe_rows import IN_LIST, Cell, RowDifference, StoreReading

_INSIDE = "{store}/"
_PIECE = 2**20
_AS_OBJECTS = -1
"""Stands for the size of a file whose content is that of its objects, whatever its bytes are."""
_FRESH = 50_000_000
"""Nanoseconds in which a file can change twice without another time of change."""


@dataclass(frozen=True)
class _Entry:
    """The content at a path: for a link the path to which it leads, for a file its digest."""

    kind: Literal["file", "folder", "link"]
    mode: int
    size: int = 0
    content: str = ""


class FolderStore(PathStore):
    """A folder, or a file, that the owner named.

    A link that leads into the folder leads into the copy there; no link may lead out, to what can be written. Pipes, sockets
    and devices are left out, and so are times and owners of files.

    `encoding` shows its texts. `ignores`: whether a path, or a place in a file of JSON, is not read.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        folder: Path,
        encoding: Encoding,
        variables: Mapping[str, str],
        ignores: Ignored = NOTHING,
    ) -> None:
        super().__init__(name, path, folder, variables)
        self._encoding, self._ignores = encoding, ignores
        self._first_entries: dict[str, _Entry] = {}
        self._contents_by_stamp: dict[tuple[int, ...], tuple[int, str]] = {}
        self._objects: dict[str, Objects] = {}
        self._digests_in_part = set[str]()
        """The digests of files of JSON of which something is ignored."""
        self._is_file = path.is_file()
        self.kind = "file" if self._is_file else "folder"
        self._watch: FolderWatch | None = None
        self._present_entries, self._differing_paths = dict[str, _Entry](), set[str]()
        """The entries of the copy at the last reading, and the paths at which they differ from the first entries."""
        self._touched_paths, self._times_touched = set[str](), 0
        """The paths that changed since the last reading, and how many calls of `stamp` saw a change."""

    def _check(self, path: Path) -> None:
        if not path.is_dir() and not path.is_file():
            raise ConfigError(f"store {self.name!r}: {self._path} is no folder")
        if self._parent.resolve().is_relative_to(path):
            raise ConfigError(
                f"store {self.name!r}: its copies would be made in itself, in {self._parent}; name another folder"
            )
        check_links(self.name, path)

    def _begin(self, path: Path) -> None:
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
        """Bring the copy back to its first state. Only what differs is written."""
        with self._one_line("cannot be reset"):
            if self._alone:
                restore_file(self._first / self._copy.name, self._copy)
            else:
                restore(self._first, self._root, self._path if self._box else self._path.resolve(), self._root)

    def read(self, most: int) -> StoreReading:
        """Return the digest of its content, and the paths that differ from the first state, at most `most`."""
        with self._one_line("cannot be read"):
            now, paths = self._present(), sorted(self._differing_paths)
            differences = [
                row for path in paths for row in self._differences(path, self._first_entries.get(path), now.get(path))
            ]
            differing = repr([(path, now.get(path)) for path in paths]).encode("utf-8", "surrogatepass")
            return StoreReading(self._encoding.digest(differing), tuple(differences[:most]), max(0, len(differences) - most))

    def stamp(self) -> int | None:
        """Return how often the kernel said that something changed; None if nobody watches."""
        with self._one_line("cannot be read"):
            if self._watch:
                touched = self._watch.changed_paths()
                if touched is None:
                    self._end_watch()
                    return None
                self._touched_paths |= touched
                self._times_touched += bool(touched)
            return self._times_touched if self._watch else None

    def remove(self) -> None:
        """Remove the copy. This can be called again."""
        self._end_watch()
        super().remove()

    def _end_watch(self) -> None:
        if self._watch:
            self._watch.close()
            self._watch = None

    def recheck(self) -> None:
        """Walk through all at the next reading: the kernel says nothing of what is written through a mapping."""
        self._end_watch()

    def _present(self) -> dict[str, _Entry]:
        """Return what stands in the copy now. If the kernel says which paths were touched, only these are looked at."""
        if self.stamp() is None:
            if not self._alone:
                with suppress(OSError):  # then every reading walks through all
                    self._watch = FolderWatch(self._root)
            self._present_entries = self._entries(self._root, self._root, self._alone or None)
            self._differing_paths, seen = set[str](), {*self._first_entries, *self._present_entries}
            shown = {entry.content for entries in (self._first_entries, self._present_entries) for entry in entries.values()}
            self._objects = {content: objects for content, objects in self._objects.items() if content in shown}
            self._contents_by_stamp = {
                stamp: content for stamp, content in self._contents_by_stamp.items() if content[1] in shown
            }
        else:
            seen = set(self._touched_paths)
            for path in self._touched_paths:
                if (entry := self._present_entries.get(path)) and entry.kind == "folder":
                    seen.update(place for place in self._present_entries if place.startswith(f"{path}/"))
            for path in seen:
                self._present_entries.pop(path, None)
            entries = self._entries(self._root, self._root, self._touched_paths)
            self._present_entries |= entries
            seen |= entries.keys()
        self._touched_paths = set()
        self._differing_paths -= seen
        self._differing_paths |= {path for path in seen if self._first_entries.get(path) != self._present_entries.get(path)}
        return self._present_entries

    @property
    def _root(self) -> Path:
        """The folder whose content is the copy."""
        return self._copy.parent if self._is_file else self._copy

    @property
    def _alone(self) -> tuple[str, ...]:
        """The name of a file that stands among others, in a box."""
        return (self._copy.name,) if self._box and self._is_file else ()

    def _entries(self, folder: Path, root: Path, paths: Iterable[str] | None = None) -> dict[str, _Entry]:
        """Return what stands in a folder, or at these paths in it, by path. Its links refer to `root`."""
        entries = {}
        for path, item in items_in(folder, paths=paths):
            if self._ignores(path):
                continue
            mode = stat.S_IMODE(item.st_mode)
            with suppress(FileNotFoundError):  # it was removed meanwhile: the next reading shows it
                if stat.S_ISLNK(item.st_mode):
                    entries[path] = _Entry("link", 0, 0, _where(_leads(folder / path), path, root))
                elif stat.S_ISDIR(item.st_mode):
                    entries[path] = _Entry("folder", mode)
                else:
                    known = self._contents_by_stamp.get(_stamp_of(item))
                    entries[path] = _Entry("file", mode, *(known or self._content_of(folder / path)))
        return entries

    def _content_of(self, path: Path) -> tuple[int, str]:
        """Return size and digest of a file: of its objects, if it holds JSON. A file that has not changed is not read again."""
        begun = time.time_ns()
        with _open(path) as file:
            item = os.fstat(file)
            stamp = _stamp_of(item)
            if stamp in self._contents_by_stamp:
                return self._contents_by_stamp[stamp]
            content = self._content_of_objects(path, file, item.st_size) or self._content_of_bytes(file)
        if max(item.st_mtime_ns, item.st_ctime_ns) < begun - _FRESH:
            self._contents_by_stamp[stamp] = content
        return content

    def _content_of_bytes(self, file: int) -> tuple[int, str]:
        size, digest = 0, self._encoding.new_hash()
        while piece := os.read(file, _PIECE):
            size += len(piece)
            digest.update(piece)
        return size, digest.hexdigest()

    def _content_of_objects(self, path: Path, file: int, size: int) -> tuple[int, str] | None:
        """Return what stands for the content of a file of JSON, and keep its objects. None, at its begin, for another file."""
        if not path.name.endswith(SUFFIXES) or size > LARGEST:
            return None
        content = os.read(file, LARGEST + 1)
        objects = objects_in(path.name, content)
        if objects is None:
            os.lseek(file, 0, os.SEEK_SET)
            return None
        read = without(objects, lambda place: self._ignores(f"{path.name}{place}"))
        digest = self._encoding.digest(repr(sorted(read.items())).encode("utf-8", "surrogatepass"))
        self._objects[digest] = read
        if len(read) < len(objects):
            self._digests_in_part.add(digest)
        return _AS_OBJECTS, digest

    def _differences(self, path: str, old: _Entry | None, new: _Entry | None) -> Iterator[RowDifference]:
        before, after = (self._objects.get(entry.content) if entry else None for entry in (old, new))
        if old is None and new and new.content not in self._digests_in_part:  # its name can be another in each run
            after = None
        if (before is None and after is None) or (before is None and old) or (after is None and new):
            yield self._difference(path, old, new)
            return
        before, after = before or {}, after or {}
        if before == after:  # its mode differs
            yield self._difference(path, old, new)
        for place in sorted(place for place in {*before, *after} if before.get(place) != after.get(place)):
            rows = [None if (item := objects.get(place)) is None else self._row_of(item) for objects in (before, after)]
            of_list = IN_LIST.fullmatch(place)
            table = f"{path}{of_list[1].rstrip('/')}" if of_list else path
            yield RowDifference(self.name, printable(table), printable(place), *rows)

    def _row_of(self, members: Mapping[str, object]) -> dict[str, Cell]:
        return self._encoding.row(list(members), list(members.values()))

    def _difference(self, path: str, old: _Entry | None, new: _Entry | None) -> RowDifference:
        before = self._row(self._first / path, old)
        after = self._row(self._root / path, new)
        if old and new and before and after and old.kind == new.kind == "file" and new.size > old.size >= 0:
            after |= self._appended_cell(self._root / path, old)
        return RowDifference(self.name, "", printable(path), before, after)

    def _row(self, path: Path, entry: _Entry | None) -> dict[str, Cell] | None:
        if entry is None:
            return None
        if entry.kind == "link":
            return {"kind": "link", "target": printable(entry.content)}
        row: dict[str, Cell] = {"kind": entry.kind, "mode": f"{entry.mode:o}"}
        if entry.kind == "file":
            row |= {"size": entry.size, "digest": entry.content}
            if entry.size == _AS_OBJECTS:
                row["size"] = path.stat().st_size
            if path.stat().st_size <= LONGEST:
                with _open(path) as file:
                    row["text"] = self._text(os.read(file, LONGEST))
        return row

    def _appended_cell(self, path: Path, old: _Entry) -> dict[str, Cell]:
        """Return what follows the former content, if the file still begins with that."""
        digest, left = self._encoding.new_hash(), old.size
        with _open(path) as file:
            while left and (piece := os.read(file, min(left, _PIECE))):
                digest.update(piece)
                left -= len(piece)
            if digest.hexdigest() != old.content:
                return {}
            tail = os.read(file, LONGEST + 1)
            if len(tail) <= LONGEST:
                return {"appended": self._text(tail)}
            rest, size = self._encoding.new_hash(tail), len(tail)
            while piece := os.read(file, _PIECE):
                rest.update(piece)
                size += len(piece)
            return {"appended": f"(digest) {size} bytes {rest.hexdigest()}"}

    def _text(self, content: bytes) -> Cell:
        try:
            return self._encoding.cell("text", content.decode())
        except UnicodeDecodeError:
            return self._encoding.cell("text", content)


def restore(source: Path, folder: Path, root: Path, stands_for: Path) -> None:
    """Make a folder equal to another. Only what differs is removed or written. A call that was killed can be repeated.

    Args:
        source: What it is to be equal to.
        folder: What is made equal.
        root: Where the source's content lay first, to which its links refer.
        stands_for: The folder to which links that lead into `root` are to lead.
    """
    if folder.is_symlink() or not folder.is_dir():
        remove_tree(folder)
        folder.mkdir(parents=True)
    folder.chmod(0o700)
    wanted, there = dict(items_in(source)), dict(items_in(folder, entering=True))
    for path, item in sorted(there.items(), reverse=True):
        if path not in wanted or stat.S_IFMT(wanted[path].st_mode) != stat.S_IFMT(item.st_mode):
            remove_tree(folder / path)
    for path, item in sorted(wanted.items()):
        if stat.S_ISDIR(item.st_mode):
            (folder / path).mkdir(mode=0o700, exist_ok=True)
        elif stat.S_ISLNK(item.st_mode):
            _link(source / path, folder / path, path, root, stands_for)
        elif not _same(source / path, folder / path):
            _write(source / path, folder / path, item)
    modes = {".": source.stat(), **{path: item for path, item in wanted.items() if not stat.S_ISLNK(item.st_mode)}}
    for path, item in sorted(modes.items(), reverse=True):
        if stat.S_IMODE((folder / path).stat().st_mode) != stat.S_IMODE(item.st_mode):
            (folder / path).chmod(stat.S_IMODE(item.st_mode))


def restore_file(source: Path, target: Path) -> None:
    """Make a file equal to another, whatever stands in its place."""
    if target.is_symlink() or not target.is_file():
        remove_tree(target)
    if not _same(source, target):
        _write(source, target, source.stat())
    target.chmod(stat.S_IMODE(source.stat().st_mode))


def check_links(name: str, root: Path) -> None:
    """Raise ConfigError for a link in a store that leads out of it, to a folder or to a file that its user can write: who
    writes through a copy of the link writes there."""
    for path, item in items_in(root) if root.is_dir() else ():
        if stat.S_ISLNK(item.st_mode):
            place = Path(os.path.normpath((root / path).parent / _leads(root / path)))
            if not place.is_relative_to(root) and (not place.is_file() or os.access(place, os.W_OK)):
                raise ConfigError(
                    f"store {name!r}: the link {printable(str(root / path))} leads out of it, to {printable(str(place))}, "
                    f"which is not copied; put a file or a folder in the link's place, or name a smaller folder"
                )


def _link(source: Path, target: Path, path: str, root: Path, stands_for: Path) -> None:
    leads = _leads(source)
    wanted = _where(leads, path, root)
    if target.is_symlink():
        if _where(_leads(target), path, stands_for) == wanted:
            return
        target.unlink()
    target.symlink_to(leads if root == stands_for else wanted.replace(_INSIDE, f"{stands_for}/", 1))


def _leads(link: Path) -> str:
    return os.readlink(link)  # noqa: PTH115  `Path.readlink` writes it in another form


def _where(leads: str, path: str, root: Path) -> str:
    """Return where a link at a path below a root leads, in words that are the same below another root."""
    place = os.path.normpath(root / Path(path).parent / leads)
    is_inside = Path(place).is_relative_to(root)
    if is_inside and not Path(leads).is_absolute():
        return leads
    return f"{_INSIDE}{os.path.relpath(place, root)}" if is_inside else place


def _write(source: Path, target: Path, item: os.stat_result) -> None:
    half = target.with_name(f"{PREFIX}{digest_of(target.name)}.half")
    shutil.copyfile(source, half)
    os.utime(half, ns=(item.st_atime_ns, item.st_mtime_ns))
    half.chmod(stat.S_IMODE(item.st_mode))
    half.replace(target)


def _same(source: Path, target: Path) -> bool:
    try:
        with _open(source) as file, _open(target) as other:
            if os.fstat(file).st_size != os.fstat(other).st_size:
                return False
            while piece := os.read(file, _PIECE):
                if piece != os.read(other, len(piece)):
                    return False
    except FileNotFoundError:
        return False
    return True


def _stamp_of(item: os.stat_result) -> tuple[int, ...]:
    return item.st_dev, item.st_ino, item.st_size, item.st_mtime_ns, item.st_ctime_ns


def items_in(
    folder: Path, *, entering: bool = False, paths: Iterable[str] | None = None
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files, links and folders in a folder by their relative paths. Files that disappear meanwhile are left out.

    `entering`: a folder that does not let its owner in is opened. `paths`: only these, and what is below them.
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
def _open(path: Path) -> Iterator[int]:
    """Open a file for reading, but no link, pipe or device."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is no file any more", str(path))
        yield file
    finally:
        os.close(file)


def _of(store: StoreSettings, folder: Path, encoding: Encoding) -> FolderStore:
    where, ignores = expanded_path(store.where), Ignored(store.ignore)
    return FolderStore(store.name, where, folder, encoding, store.variables, ignores)


KINDS = (
    StoreKind("folder", _of, frozenset(("ignore",)), must_be="folder"),
    StoreKind("file", _of, frozenset(("ignore",)), must_be="file"),
)

"""Read a repository's files from a folder or an archive. Nothing is unpacked, and no link is followed."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path

from bench.common.errors import PackError
from bench.common.files import content_of

MOST_FILES, MOST_BYTES = 20_000, 2**26
"""Of all files that are read of a repository."""


def tree_of(path: Path, also: Collection[str] = ()) -> dict[str, str]:
    """Return the texts of a repository by path: of Python files and of the files in `also`. A file that is no UTF-8 is left
    out. An archive's only folder is the repository itself.

    Raises PackError where it cannot be read, has no Python file, or is larger than the bounds.
    """
    found: dict[str, str] = {}
    size = 0
    try:
        for name, content in _contents(path, frozenset(also)):
            size += len(content)
            if len(found) >= MOST_FILES or size > MOST_BYTES:
                said = f"{path}: has more than {MOST_FILES:,} Python files, or {MOST_BYTES:,} bytes of them"
                raise PackError(f"{said}; take out what the tests do not need")
            try:
                found[name] = content.decode("utf-8")
            except UnicodeDecodeError:
                continue
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise PackError(f"{path}: cannot be read: {' '.join(str(error).split())}; fetch it anew") from error
    if not found:
        raise PackError(f"{path}: has no Python file; put the repository there, as it was at the base commit")
    tops = {name.split("/")[0] for name in found}
    if path.is_file() and len(tops) == 1 and all("/" in name for name in found):
        return {name.partition("/")[2]: text for name, text in found.items()}
    return found


def _contents(path: Path, also: Collection[str]) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for one in sorted(path.rglob("*")):
            name = one.relative_to(path).as_posix()
            if one.is_file() and not one.is_symlink() and _is_read(name, also):
                yield name, content_of(one, MOST_BYTES)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if _is_read(name, also):
                    with archive.open(name) as file:
                        yield name, file.read(MOST_BYTES + 1)
    else:
        with tarfile.open(path) as packed:
            for member in packed:
                name = member.name.removeprefix("./")
                if member.isfile() and _is_read(name, also) and (content := packed.extractfile(member)):
                    yield name, content.read(MOST_BYTES + 1)


def _is_read(name: str, also: Collection[str]) -> bool:
    """Return whether a file is read. A name in an archive may begin with the repository's own."""
    return name.endswith(".py") or name in also or name.partition("/")[2] in also

"""A recording in one file: `results/NAME.zip` instead of the folder `results/NAME`.

    path = archive(Path("results/mine"))     # results/mine.zip: the run's files, always the same bytes
    file = member(Path("results/mine.zip"), "trials.jsonl")

An archive is read in place and never written to. It can come from a stranger, so its list of files is checked before anything
is unpacked: it may hold only a run's files, which may unpack to `LARGEST` bytes together. A member is unpacked while it is
read, so memory stays flat.
"""

from __future__ import annotations

import errno
import io
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import IO, cast

from bench.errors import ResultsError

SUFFIX = ".zip"
# The order in which they stand in an archive.
MEMBERS = ("manifest.json", "trials.jsonl", "texts.jsonl", "responses.jsonl", "grades.jsonl")
LARGEST = 4 * 2**30
"""Bytes to which the files of an archive may unpack."""
LONGEST_LIST = 2**20
"""Bytes of the list of files at an archive's end: a list of five names is a thousand times shorter."""
STAMP = (1980, 1, 1, 0, 0, 0)
"""The time of every member, so that the same run makes the same bytes."""
COMPRESSIONS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA})
LARGEST_DICTIONARY = 2**26
"""Bytes that unpacking a member by LZMA may look back, and so keep in memory. Ours take an eighth."""
ENCRYPTED = 0x1


def archive_path(folder: Path) -> Path:
    """Return the path of the archive of a run's folder, whether it exists or not."""
    return Path(f"{folder}{SUFFIX}")


def archive_of(folder: Path) -> Path | None:
    """Return the archive that replaces a run's folder; None if the folder exists or there is no archive."""
    archive = archive_path(folder)
    return archive if not folder.exists() and archive.is_file() else None


def refuse_archived(folder: Path) -> None:
    """Raise ResultsError if a run that is to be written to is archived."""
    if archive := archive_of(folder):
        problem = f"{archive}: is an archived recording, which no command writes to"
        raise ResultsError(f"{problem}; give another --name, or unpack it into {folder} first")


def archive(folder: Path) -> Path:
    """Write a run's folder as one file beside it.

    Args:
        folder: The run's folder. It stays as it is.

    Returns:
        The archive's path.

    Raises:
        ResultsError: There is an archive already, or a file cannot be read or written.
    """
    path = archive_path(folder)
    half = path.with_name(f".{path.name}.half")
    if path.exists():
        raise ResultsError(f"{path}: exists already; remove it, and run the command again")
    try:
        with zipfile.ZipFile(half, "w") as written:
            for name in MEMBERS:
                if (folder / name).exists():
                    entry = zipfile.ZipInfo(name, STAMP)
                    entry.external_attr = 0o644 << 16
                    written.writestr(entry, (folder / name).read_bytes(), zipfile.ZIP_LZMA)
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise ResultsError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def names_in(archive: Path) -> frozenset[str]:
    """Return the names of the files in an archive. Raises ResultsError if it is damaged or holds something else."""
    with _checked(archive) as opened:
        return frozenset(opened.namelist())


def member(archive: Path, name: str) -> IO[bytes]:
    """Open one file of an archive for reading.

    Raises:
        FileNotFoundError: The archive has no file of this name.
        ResultsError: The archive is damaged, too large, or holds files that no run writes.
    """
    opened = _checked(archive)
    if name not in opened.namelist():
        opened.close()
        raise FileNotFoundError(errno.ENOENT, "the archive has no such file", str(archive / name))
    return io.BufferedReader(_Member(archive, opened, name), 1 << 16)


def _checked(archive: Path) -> zipfile.ZipFile:
    """Open an archive, if its list of files can be a run's."""
    damaged = f"{archive}: is not a whole archive of a run; restore the file from a copy"
    try:
        _refuse_long_list(archive)
        opened = zipfile.ZipFile(archive)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ResultsError(damaged) from error
    entries = opened.infolist()
    names = [entry.filename for entry in entries]
    problem = ""
    if strange := sorted(set(names) - set(MEMBERS)):
        problem = f"holds {strange[0][:60]!r}, which no run writes"
    elif len(names) > len(set(names)):
        problem = "holds two files of one name"
    elif any(entry.flag_bits & ENCRYPTED or entry.compress_type not in COMPRESSIONS for entry in entries):
        problem = "is packed in a way that this version does not read"
    elif sum(entry.file_size for entry in entries) > LARGEST:
        problem = f"unpacks to more than {LARGEST // 2**30} GiB"
    elif any(_dictionary(archive, entry) > LARGEST_DICTIONARY for entry in entries):
        problem = "needs more memory than a run's archive does"
    if problem:
        opened.close()
        raise ResultsError(f"{archive}: {problem}; make it anew with `bench archive`")
    return opened


def _refuse_long_list(archive: Path) -> None:
    """Raise ValueError if the list of files, which is read as a whole, is too long for a run's."""
    with archive.open("rb") as file:
        file.seek(0, io.SEEK_END)
        file.seek(max(0, file.tell() - 66_000))
        end = file.read()
    at = end.rfind(b"PK\x05\x06")
    if at < 0 or int.from_bytes(end[at + 12 : at + 16], "little") > LONGEST_LIST:
        raise ValueError("no list of files, or one that is too long")


def _dictionary(archive: Path, entry: zipfile.ZipInfo) -> int:
    """Return how many bytes unpacking a member by LZMA looks back; 0 for another compression.

    The number follows the member's local header (30 bytes, its name and an extra field), in bytes 5 to 8 of the packed data:
    APPNOTE.TXT of the zip format, 4.3.7 and 5.8.8.
    """
    if entry.compress_type != zipfile.ZIP_LZMA:
        return 0
    with archive.open("rb") as file:
        file.seek(entry.header_offset + 26)
        lengths = file.read(4)
        file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little") + 5, io.SEEK_CUR)
        return int.from_bytes(file.read(4), "little")


class _Member(io.RawIOBase):
    """The bytes of one member, unpacked as they are read. Damage raises OSError, as on a bad disk.

    zipfile reads no more than the size in the list of files, and compares the checksum at the end.
    """

    def __init__(self, archive: Path, opened: zipfile.ZipFile, name: str):
        super().__init__()
        self._archive, self._opened = archive, opened
        try:
            self._file = cast(zipfile.ZipExtFile, opened.open(name))
        except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
            opened.close()
            raise self._damage() from error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            content = self._file.read1(len(buffer))
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError) as error:
            raise self._damage() from error
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        self._opened.close()
        super().close()

    def _damage(self) -> OSError:
        return OSError(errno.EIO, f"{self._archive.name} is damaged; restore it from a copy")

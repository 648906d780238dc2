"""Write and read the archive of a run: one file `results/NAME.zip` instead of the folder `results/NAME`.

    path = archive(Path("results/mine"))     # results/mine.zip: the run's files, always the same bytes
    file = member(Path("results/mine.zip"), "trials.jsonl")

An archive is read in place and never changed. It can come from a stranger, so its list of files is checked before anything is
unpacked: it may hold only a run's files, which may unpack to `LARGEST` bytes together. A member is unpacked while it is read,
so memory stays flat. `zipfile` itself unpacks all LZMA input that it has read at once, whatever its size; `unpack` does not.
"""

from __future__ import annotations

import copy
import errno
import io
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import IO, cast

from bench.common.errors import ResultsError
from bench.common.files import new_file, opened

SUFFIX = ".zip"
# The files of a run, in their order in an archive.
MEMBERS = ("manifest.json", "trials.jsonl", "texts.jsonl", "responses.jsonl", "grades.jsonl")
LARGEST = 4 * 2**30
"""The most bytes to which all files of an archive may unpack."""
DENSEST, DENSE = 1_000, 2**25
"""How many times its packed size a file may unpack to, and the bytes to which any file may unpack. Files of real runs unpack
to at most sixty times their packed size."""
LONGEST_LIST = 2**20
"""The most bytes of the list of files at an archive's end. A list of five names is a thousand times shorter."""
STAMP = (1980, 1, 1, 0, 0, 0)
"""The time of every member, so that the same run makes the same bytes."""
COMPRESSIONS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA})
MAX_MEMORY = 2**26
"""The most bytes of memory for unpacking a member by LZMA. Members that `archive` writes need an eighth."""
BLOCK = 2**16
ENCRYPTED = 0x1
END, END_OF_64 = b"PK\x05\x06", b"PK\x06\x07"
"""The bytes with which the end of an archive begins, and the bytes before this end if the list of files is of zip64."""


def archive_path(folder: Path) -> Path:
    """Return the path of the archive of a run's folder, whether the archive exists or not."""
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
    if path.exists():
        raise ResultsError(f"{path}: exists already; remove it, and run the command again")
    try:
        with new_file(path) as file, zipfile.ZipFile(file, "w") as written:
            for name in MEMBERS:
                if (folder / name).exists():
                    entry = zipfile.ZipInfo(name, STAMP)
                    entry.external_attr = 0o644 << 16
                    with opened(folder / name) as read:
                        written.writestr(entry, read.read(), zipfile.ZIP_LZMA)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def names_in(archive: Path) -> frozenset[str]:
    """Return the names of the files in an archive. Raises ResultsError if the archive is damaged or has other files than a
    run's."""
    with _open_checked(archive) as listed:
        return frozenset(listed.namelist())


def member(archive: Path, name: str) -> IO[bytes]:
    """Open one file of an archive for reading.

    Raises:
        FileNotFoundError: The archive has no file of this name.
        ResultsError: The archive is damaged, too large, or holds files that no run writes.
    """
    listed = _open_checked(archive)
    if name not in listed.namelist():
        listed.close()
        raise FileNotFoundError(errno.ENOENT, "the archive has no such file", str(archive / name))
    return io.BufferedReader(_Member(archive, listed, name), BLOCK)


def unpack(listed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Unpacked | zipfile.ZipExtFile:
    """Open a file of an archive that can come from anybody. `read1(N)` of the result unpacks at most N bytes.

    Raises:
        NotImplementedError: It is packed in a way that `zipfile` unpacks in one piece, or that it does not know.
        LZMAError, OSError, RuntimeError, BadZipFile: It is damaged, or encrypted.
    """
    if entry.compress_type not in COMPRESSIONS:
        raise NotImplementedError(f"packing of the kind {entry.compress_type} is not read")
    return Unpacked(listed, entry) if entry.compress_type == zipfile.ZIP_LZMA else cast(zipfile.ZipExtFile, listed.open(entry))


def _open_checked(archive: Path) -> zipfile.ZipFile:
    """Open an archive. Raises ResultsError if its list of files cannot be that of a run."""
    damaged = f"{archive}: is not a whole archive of a run; restore the file from a copy"
    try:
        with opened(archive) as file:
            _refuse_long_list(file)
        listed = zipfile.ZipFile(archive)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ResultsError(damaged) from error
    entries = listed.infolist()
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
    elif dense := [entry.filename for entry in entries if entry.file_size > max(DENSE, DENSEST * entry.compress_size)]:
        problem = f"holds {dense[0]!r}, which unpacks to more than {DENSEST:,} times its size, as no run's does"
    if problem:
        listed.close()
        raise ResultsError(f"{archive}: {problem}; make it anew with `bench more archive`")
    return listed


def _refuse_long_list(file: IO[bytes]) -> None:
    """Raise ValueError if the list of files, which `zipfile` reads as a whole, is too long for a run's. An archive with a
    comment at its end, and zip64, are refused as well: `zipfile` would then read the list's length elsewhere."""
    file.seek(-min(42, file.seek(0, io.SEEK_END)), io.SEEK_END)
    last = file.read()
    end = last[-22:]
    is_plain = end.startswith(END) and end.endswith(b"\0\0") and not last[:-22].startswith(END_OF_64)
    if not is_plain or int.from_bytes(end[12:16], "little") > LONGEST_LIST:
        raise ValueError("no list of files, or one that is too long")


class Unpacked:
    """A member of an archive, packed by LZMA, that is unpacked in pieces of at most the requested size: APPNOTE.TXT of the zip
    format, 5.8.8."""

    def __init__(self, listed: zipfile.ZipFile, entry: zipfile.ZipInfo):
        stored = copy.copy(entry)
        stored.compress_type, stored.file_size = zipfile.ZIP_STORED, entry.compress_size
        del stored.CRC
        self._packed, self._left, self._sum, self._expected = listed.open(stored), entry.file_size, 0, entry.CRC
        if self._packed.read(4)[2:] != b"\5\0":
            raise lzma.LZMAError("its properties have another length")
        self._unpacking = lzma.LZMADecompressor(lzma.FORMAT_ALONE, MAX_MEMORY)
        self._unpacking.decompress(self._packed.read(5) + b"\xff" * 8, 0)

    def read1(self, most: int) -> bytes:
        """Return at most `most` unpacked bytes; b"" at the end. Raises EOFError or BadZipFile if the member is damaged."""
        content = b""
        while not content and self._left and most:
            packed = b""
            if self._unpacking.needs_input and not (packed := self._packed.read(BLOCK)):
                raise EOFError
            content = self._unpacking.decompress(packed, min(most, self._left))
        self._left -= len(content)
        self._sum = zlib.crc32(content, self._sum)
        if not self._left and self._sum != self._expected:
            raise zipfile.BadZipFile("its sum is another")
        return content

    def close(self) -> None:
        self._packed.close()


class _Member(io.RawIOBase):
    """The bytes of one member, unpacked as they are read. Damage raises OSError, as on a bad disk.

    zipfile reads at most the size in the list of files, and compares the checksum at the end.
    """

    def __init__(self, archive: Path, listed: zipfile.ZipFile, name: str):
        super().__init__()
        self._archive, self._listed, entry = archive, listed, listed.getinfo(name)
        try:
            self._file = unpack(listed, entry)
        except (zipfile.BadZipFile, lzma.LZMAError, OSError, NotImplementedError, RuntimeError) as error:
            listed.close()
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
        self._listed.close()
        super().close()

    def _damage(self) -> OSError:
        return OSError(errno.EIO, f"{self._archive.name} is damaged; restore it from a copy")

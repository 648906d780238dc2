"""The cache of the frames of large runs, in the user's cache folder. Only the first reading of a run makes its frames from the
records.

The frames are made again if a byte of the run, of the cache file, of our code, Python or a package that computes has changed.
A cache file begins with a digest of the rest, and a line of JSON. Then come the columns, as numpy writes arrays: integers in
as few bytes as they need, and a text as its number among all texts of its column."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionArray
from pydantic import TypeAdapter

from bench.common.bounds import Many
from bench.common.digests import digest_of_file
from bench.common.files import new_file, opened
from bench.common.paths import cache_folder
from bench.common.registry import Registry
from bench.common.values import kept
from bench.read.analysis.blocks import dtype_of
from bench.read.analysis.metrics import METRICS, Metric
from bench.read.analysis.rows import FRAMES, PLACE, Column
from bench.record.archive import MEMBERS, archive_path
from bench.record.record import SessionRecord

PACKAGE = Path(__file__).parents[2]
COMPUTING_PACKAGES = ("numpy", "pandas", "pydantic", "scipy")
"""The packages whose versions can change the frames."""
MIN_CACHED_BYTES = 2**22
"""The bytes of the files of the smallest run that is cached. A run of this size is read in a quarter of a second."""
MAX_CACHE_BYTES = 2**30
"""The most bytes of all cache files. The oldest are removed first."""
SESSIONS: TypeAdapter[tuple[SessionRecord, ...]] = TypeAdapter(Many[SessionRecord])
DIGEST_BYTES = 64
"""The length of the digest at a file's beginning, in hex digits."""
SMALL_INTEGERS = (np.int8, np.int16, np.int32)


@dataclass(frozen=True)
class Loaded:
    """The frames and the sessions of a run, read from its records or from the cache.

    frames     the frames by name, `trials` first
    sessions   the records of its sessions, in order
    trials     the number of its records of trials
    rerun      the ids of the trials that have more than one record
    checked    whether all its files were checked, as by `bench verify`
    """

    frames: Mapping[str, pd.DataFrame]
    sessions: tuple[SessionRecord, ...]
    trials: int
    rerun: frozenset[str]
    checked: bool


class KeptFrames:
    """The cached frames of a run. A small run has no cache."""

    def __init__(self, run: Path):
        self._run, self._path = run, cache_folder("frames") / cache_name(run)
        self._state = self._present_state()

    def read(self) -> Loaded | None:
        """Return the frames from the cache; None if the cache has none of the run's present state."""
        with suppress(Exception), open_cache(self._path) as file:  # frames are made again, whatever is wrong with the file
            head = json.loads(file.readline())
            if self._key and head["key"] == self._key:
                sessions, rerun = SESSIONS.validate_python(head["sessions"]), frozenset(head["rerun"])
                return Loaded(_read_frames(file), sessions, head["trials"], rerun, head["checked"])
        return None

    def keep(self, loaded: Loaded) -> None:
        """Write frames to the cache, unless the run has changed meanwhile or the folder cannot be written."""
        if not self._key or self._state != self._present_state():
            return
        head = {"key": self._key, "trials": loaded.trials, "rerun": sorted(loaded.rerun), "checked": loaded.checked}
        head["sessions"] = SESSIONS.dump_python(loaded.sessions, mode="json")
        with suppress(OSError):
            with create_cache(self._path) as file:
                file.write(json.dumps(head).encode() + b"\n")
                for array in _arrays(loaded.frames):
                    np.save(file, array, allow_pickle=False)
            _remove_oldest(self._path.parent)

    @kept
    def _key(self) -> str | None:
        """The digest of the run and of the code that computes its frames; None if the run is not cached."""
        is_large = sum(size for size, _ in self._state) >= MIN_CACHED_BYTES
        return key_of(self._run, (METRICS, FRAMES)) if is_large else None

    def _present_state(self) -> list[tuple[int, int]]:
        """Return the size of each file of the run, and the time of its last change in nanoseconds."""
        with suppress(OSError):
            return [(state.st_size, state.st_mtime_ns) for state in (path.stat() for path in _run_files(self._run))]
        return []


@contextmanager
def open_cache(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that `create_cache` wrote, after a check of its digest. Raises OSError, and ValueError if a byte of the file
    has changed."""
    with opened(path) as file:
        if file.read(DIGEST_BYTES) != digest_of_file(file).encode():
            raise ValueError("its digest is another")
        file.seek(DIGEST_BYTES)
        yield file


@contextmanager
def create_cache(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that only its owner can read, in place of any file of this name. A digest of the content is written before
    the content. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with new_file(path, 0o600) as file:
        file.write(bytes(DIGEST_BYTES))
        yield file
        file.seek(DIGEST_BYTES)
        digest = digest_of_file(file).encode()
        file.seek(0)
        file.write(digest)


def cache_name(run: Path) -> str:
    """Return the name of the cache file of a run. It depends only on the run's path, so that the cache of a later state of the
    run replaces the file."""
    return _digest(("", os.fsencode(run.absolute())))


def key_of(run: Path, registries: Iterable[Registry[Any]]) -> str | None:
    """Return the digest of all that determines what is computed from a run.

    Args:
        run: Its folder, or the folder into which its archive would be unpacked.
        registries: The registries of the parts that compute.

    Returns:
        The digest; None if a part comes from another package, which can change unnoticed, or a file cannot be read.
    """
    if any(part.package for registry in registries for part in registry):
        return None
    with suppress(OSError):
        digests = []
        for path in _run_files(run):
            with opened(path) as file:
                digests.append((path.name, digest_of_file(file).encode()))
        return _digest(_code_digest(PACKAGE), *digests)
    return None


def _run_files(run: Path) -> list[Path]:
    """Return the files of a run: its archive, or the files of its folder."""
    return [path for path in (archive_path(run), *(run / name for name in MEMBERS)) if path.is_file()]


@cache
def _code_digest(package: Path) -> tuple[str, bytes]:
    """Return the versions of Python and of packages as text, and the digest of our code."""
    versions = [sys.version, *(f"{name} {metadata.version(name)}" for name in COMPUTING_PACKAGES)]
    files = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".toml"))
    return " ".join(versions), _digest(*((str(path.relative_to(package)), path.read_bytes()) for path in files)).encode()


def _digest(*parts: tuple[str, bytes]) -> str:
    """Return one digest of named contents."""
    digest = hashlib.sha256()
    for name, content in parts:
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _remove_oldest(folder: Path) -> None:
    """Remove the oldest files of a folder until the others have at most MAX_CACHE_BYTES."""
    size = 0
    for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True):
        size += path.stat().st_size
        if size > MAX_CACHE_BYTES:
            path.unlink(missing_ok=True)


# The columns of a file


def _columns() -> Mapping[str, Sequence[Column[Any] | Metric]]:
    """Return the columns of each frame that a cache file has. The columns that name the trial of a row are written only for
    the frame `trials`."""
    return {"trials": (*PLACE, *METRICS), **{part.name: part.rows.columns for part in FRAMES}}


def _arrays(frames: Mapping[str, pd.DataFrame]) -> Iterator[NDArray[Any]]:
    """Yield the arrays of a cache file: the columns of each frame. For every frame but `trials`, the first array has the
    number of each row's trial."""
    trials = pd.Index(frames["trials"]["trial"])
    for name, columns in _columns().items():
        if name != "trials":
            yield _smallest_integers(trials.get_indexer(pd.Index(frames[name]["trial"])))
        for column in columns:
            yield from _arrays_of(frames[name][column.name], column.dtype)


def _read_frames(file: IO[bytes]) -> dict[str, pd.DataFrame]:
    """Return the frames whose arrays `_arrays` wrote."""
    frames: dict[str, pd.DataFrame] = {}
    place_columns: dict[str, ExtensionArray] = {}
    for name, columns in _columns().items():
        trials = np.load(file) if place_columns else ()  # the first frame, `trials`, has no numbers of trials
        values = {column: by_trial.take(trials) for column, by_trial in place_columns.items()}
        values |= {column.name: _read_column(file, column.dtype) for column in columns}
        place_columns = place_columns or {column.name: values[column.name] for column in PLACE}
        frames[name] = pd.DataFrame(values)
    return frames


def _arrays_of(column: pd.Series[Any], dtype: str) -> Iterator[NDArray[Any]]:
    """Yield the arrays of one column: its values, and for some types a second array of texts or of missing values."""
    match dtype:
        case "str":
            numbers, texts = pd.factorize(column.array)
            yield _smallest_integers(numbers)
            yield np.frombuffer(json.dumps(list(texts)).encode(), np.uint8)
        case "Int64" | "boolean":
            yield _smallest_integers(column.to_numpy(dtype_of(dtype).numpy_dtype, na_value=0))
            yield column.isna().to_numpy()
        case _:
            yield _smallest_integers(column.to_numpy())


def _read_column(file: IO[bytes], dtype: str) -> ExtensionArray:
    """Return a column whose arrays `_arrays_of` wrote."""
    values, kind = np.load(file), dtype_of(dtype)
    match dtype:
        case "str":
            column: ExtensionArray = pd.array(json.loads(np.load(file).tobytes()), dtype=kind).take(values, allow_fill=True)
        case "Int64" | "boolean":
            column = kind.construct_array_type()(values.astype(kind.numpy_dtype), np.load(file))
        case _:
            column = pd.array(values, dtype=kind)
    return column


def _smallest_integers(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers in the smallest type that holds them all; anything else as it is."""
    if values.dtype.kind != "i" or not len(values):
        return values
    low, high = values.min(), values.max()
    fitting = (kind for kind in SMALL_INTEGERS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return values.astype(next(fitting, np.int64))

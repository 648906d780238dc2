"""The memory of the folders of packs that the user named for a run or a config, so that a later command need not name them
again.

A pack is code. So the folders are stored in the user's state folder, and not in the run: a person who sends a run must not
choose what is imported here. The file's name is a digest of the path of the run or config. Only folders that the user typed
as `--scenarios` are stored.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from bench.cli.terminal import Terminal
from bench.common.files import content_of, write_whole
from bench.common.paths import PACKS, state_folder

MAX_BYTES = 2**16
"""The most bytes of a file of remembered folders."""


def remember(target: Path, packs: Sequence[Path]) -> None:
    """Store the folders of packs that the user named for a run's folder or a config. The default folders delete the stored
    entry. A file that cannot be written is no error: a later command only needs the option again."""
    with suppress(OSError, RuntimeError):
        path = _path_of(target)
        if packs == PACKS:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, b"\0".join(os.fsencode(folder.resolve()) for folder in packs))


def packs_of(given: list[Path], target: Path, err: Terminal) -> list[Path]:
    """Return the folders of packs to use for a run's folder or a config: the given folders, else the remembered folders,
    else the default. A printed line names remembered folders.

    Args:
        given: The value of `--scenarios`.
        target: The run's folder, or the config.
        err: The terminal that the line is printed to.
    """
    remembered = _recall(target) if given == PACKS else []
    if remembered:
        err.print(f"packs: {', '.join(map(str, remembered))}, as you named them for {target}")
    return remembered or given


def option_of(packs: Sequence[Path]) -> str:
    """Return the command-line option that names these folders of packs; "" for the default folders."""
    return "" if packs == PACKS else "".join(f" --scenarios {shlex.quote(str(folder))}" for folder in packs)


def _recall(target: Path) -> list[Path]:
    """Return the remembered folders, if only the user can write the file and all folders still exist."""
    with suppress(OSError, RuntimeError):
        path = _path_of(target)
        status = path.stat()
        if status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            folders = [Path(os.fsdecode(name)) for name in content_of(path, MAX_BYTES).split(b"\0")]
            return folders if all(folder.is_absolute() and folder.is_dir() for folder in folders) else []
    return []


def _path_of(target: Path) -> Path:
    """Return the path of the file that stores the folders for a run or config. Raises RuntimeError if the user has no home."""
    return state_folder() / "packs" / sha256(os.fsencode(target.resolve())).hexdigest()[:32]

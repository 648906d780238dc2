"""Run the launcher inside bubblewrap (`bwrap`), chosen by BENCH_SANDBOX=bubblewrap, as a further guard.

The launcher and all processes that it starts then have files, processes, a network and users of their own. Of this machine's
files they see only the interpreter, its library, the system's shared libraries and the folder of their jobs, all read-only. The
other guards also work within bubblewrap. If Landlock is missing, bubblewrap replaces it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Literal

from bench.common.errors import ConfigError
from bench.run.sandbox.readable import PACKAGE_FOLDERS

BACKEND_ENV = "BENCH_SANDBOX"
NAME, PROGRAM = "bubblewrap", "bwrap"
Backend = Literal["", "bubblewrap"]

LIBRARY_PATHS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
"""The folders of shared libraries, and the loader's cache of them."""
ISOLATION_OPTIONS = ("--unshare-all", "--cap-drop", "ALL", "--clearenv", "--chdir", "/")


def backend() -> Backend:
    """Return the backend that the environment names; "" for the launcher alone. Raises ConfigError if it is not available."""
    name = os.environ.get(BACKEND_ENV, "")
    if not name:
        return ""
    if name != NAME:
        raise ConfigError(f"{BACKEND_ENV}: there is no '{name}'; give {NAME}, or nothing")
    if obstacle := _obstacle():
        raise ConfigError(f"{BACKEND_ENV}: {NAME} does not run here: {obstacle}; mend that, or leave {BACKEND_ENV} out")
    return "bubblewrap"


def wrapping_command(interpreter: str, library: Path, room: Path, folder: Path) -> list[str]:
    """Return the words of bubblewrap's command that come before the launcher's command. `room` is the folder of the launcher's
    code, and `folder` the folder of its jobs."""
    visible = [*LIBRARY_PATHS, str(Path(interpreter).parents[1] / "lib"), interpreter, str(library), str(room), str(folder)]
    binds = [word for path in dict.fromkeys(visible) for word in ("--ro-bind-try", path, path)]
    masks = [word for path in _package_folders(library) for word in ("--tmpfs", str(path))]
    read_only = ("--proc", "/proc", "--remount-ro", "/proc", "--remount-ro", "/")
    return [shutil.which(PROGRAM) or PROGRAM, *ISOLATION_OPTIONS, *binds, *masks, *read_only, "--"]


def _package_folders(library: Path) -> list[Path]:
    """Return the folders of installed packages: in Python's library, in the folder `python3` beside it, and in the system's
    Python. They are hidden, since they can contain data that only graders may read."""
    homes = (library, library.parent / "python3", Path("/usr/lib/python3"))
    return [home / name for home in dict.fromkeys(homes) for name in PACKAGE_FOLDERS if (home / name).is_dir()]


@cache
def _obstacle() -> str:
    """Return why bubblewrap cannot be used; "" if it can."""
    if not shutil.which(PROGRAM):
        return f"there is no program {PROGRAM} (Debian: bubblewrap)"
    process = subprocess.run(
        [PROGRAM, *ISOLATION_OPTIONS, "--ro-bind", "/", "/", "--proc", "/proc", "--", "/bin/sh", "-c", ":"],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return " ".join(process.stderr.split())[:200] or f"it ends with {process.returncode}" if process.returncode else ""
